"""Assignment: the object gets a new value, differentiably, and nothing that was saved changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import same
from each import Each
from options import assert_same_under_options

import adjoint as ad
from adjoint import errors

LARGE = 1_000_000


def leaf(*values: float) -> Any:
    return ad.tensor(values, dtype=ad.float64).require_grad()


KEYS: list[Any] = [
    0, -1, slice(1, 3), slice(None, None, -2), Ellipsis, (), None, (slice(None), 1), (0, 2), (None, 1, ..., None),
    [0, 2], [1, 1], (slice(None), [2, 0]), ([0, 1], [1, 3]), np.array([True, False, True]),
    np.arange(12).reshape(3, 4) % 3 == 0, (slice(0, 0),), ([0, 2], slice(None, None, 2)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading_and_assigning_follow_numpy(key: Any) -> None:
    values = np.arange(12.0).reshape(3, 4)
    x = ad.tensor(values)
    same(x[key], values[key])
    expected = values.copy()
    expected[key] = 7.5
    x[key] = 7.5
    same(x, expected)
    expected[key] = -np.arange(expected[key].size).reshape(expected[key].shape)
    x[key] = ad.tensor(-np.arange(x[key].size).reshape(x[key].shape))
    same(x, expected)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading_and_assigning_are_differentiable(key: Any) -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3, 4))
    new = rng.standard_normal(values[key].shape)

    def f(x: Any, v: Any) -> Any:
        y = x * x
        y[key] = v * v * y[key]
        return y * y

    ad.testing.check_grads(f, (values, new))
    assert_same_under_options(f, (values, new))


def test_assigned_values_broadcast(device: Any) -> None:
    x, v = leaf(1, 2, 3).reshape((1, 3)) * ad.ones((2, 1)), leaf(5)
    x[:] = v
    same(x, np.full((2, 3), 5.0))
    same(x.sum().backward()[v], np.array([6.0]))
    y = ad.zeros(3)
    y[:2] = [[1.0, 2.0]]  # extra leading axes of size one, as NumPy has it
    same(y, np.array([1, 2, 0], "f4"))


def test_all_names_of_the_object_see_the_new_value(device: Any) -> None:
    x = leaf(1, 2, 3) * 1
    alias = x
    x[0] = 9.0
    assert alias is x
    same(alias, [9.0, 2.0, 3.0])
    x *= 2
    assert alias is x
    same(alias, [18.0, 4.0, 6.0])


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("__iadd__", 2, [3, 7]), ("__isub__", 2, [-1, 3]), ("__imul__", 2, [2, 10]), ("__itruediv__", 2, [0.5, 2.5]),
        ("__ifloordiv__", 2, [0, 2]), ("__imod__", 2, [1, 1]), ("__ipow__", 2, [1, 25]),
        ("__imatmul__", np.array([[2.0, 0.0], [1.0, 1.0]]), [7, 5]),
    ],
)  # fmt: skip
def test_augmented_assignment_changes_the_object(device: Any, name: str, other: Any, expected: Any) -> None:
    x = ad.tensor([1.0, 5.0], dtype=ad.float64)
    assert getattr(x, name)(other) is x
    same(x, np.array(expected, float))


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [("__iand__", 6, [4, 2]), ("__ior__", 1, [5, 3]), ("__ixor__", 1, [4, 2]),
     ("__ilshift__", 1, [10, 6]), ("__irshift__", 1, [2, 1])],
)  # fmt: skip
def test_augmented_bitwise_assignment_changes_the_object(name: str, other: Any, expected: Any) -> None:
    x = ad.tensor([5, 3] if name != "__iand__" else [4, 2])
    assert getattr(x, name)(other) is x
    same(x, np.array(expected))


def test_augmented_assignment_is_differentiable() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * y
        z += y
        z *= z
        z -= x * z
        z /= y
        z **= 2
        z @= ad.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=ad.float64)
        return z

    values = np.array([0.5, 1.5]), np.array([2.0, -1.0])
    ad.testing.check_grads(f, values)
    assert_same_under_options(f, values)


def test_assignment_of_a_tensor_to_parts_of_itself(device: Any) -> None:
    x = ad.tensor([1.0, 2.0, 3.0, 4.0])
    x[1:] = x[:-1]
    same(x, np.array([1, 1, 2, 3], "f4"))
    x[::-1] = x
    same(x, np.array([3, 2, 1, 1], "f4"))
    places = ad.tensor([2, 0, 1])
    places[places] = places
    same(places, np.array([0, 1, 2])[np.array([0, 1, 2])])


def test_what_a_graph_saved_does_not_change(device: Any) -> None:
    w = leaf(2, 3)
    x = w * 1
    square, exponential, product = x * x, x.exp(), x * w
    x[0] = 100.0
    x += 5
    x[:] = 0.0
    same(square.sum().backward(retain_graph=True)[w], [4.0, 6.0])
    np.testing.assert_allclose(exponential.sum().backward(retain_graph=True)[w].numpy(), np.exp([2.0, 3.0]))
    same(product.sum().backward()[w], [4.0, 6.0])


def test_values_saved_between_assignments_do_not_change(device: Any) -> None:
    """The second assignment could reuse the buffer of the first, were it not saved in between."""
    w = leaf(2, 3)
    x = w * 1
    x[0] = 5.0
    square = x * x
    x[1] = 100.0
    shared = x.numpy()
    x[0] = -1.0
    same(square.sum().backward()[w], [0.0, 6.0])
    assert shared.tolist() == [5.0, 100.0]


@pytest.mark.parametrize(
    "use", ["multiply", "copy", "slice", "reshape", "numpy", "lift", "index", "value", "detach", "dlpack"]
)
def test_no_other_holder_of_the_buffer_sees_an_assignment(device: Any, use: str) -> None:
    x = ad.zeros(4, dtype=ad.float64)
    x[0] = 1.0  # from here on nothing else holds the buffer
    other = ad.zeros(4, dtype=ad.float64)
    match use:
        case "multiply":
            held: Any = ad.from_inner(x) * 1
        case "copy":
            held = __import__("copy").copy(x)
        case "slice":
            held = x[:]
        case "reshape":
            held = x.reshape((4, 1))
        case "numpy":
            held = x.numpy()
        case "lift":
            held = ad.from_inner(x)
        case "index":
            held = x[None, ...]
        case "value":
            other[:] = x
            held = other
        case "detach":
            held = x.detach()
        case _:
            held = np.from_dlpack(x, copy=False)
    before = np.array(held.numpy() if isinstance(held, ad.Tensor) else held)
    x[1] = 2.0
    x[2:] = 3.0
    same(x, [1.0, 2.0, 3.0, 3.0])
    np.testing.assert_array_equal(held.numpy() if isinstance(held, ad.Tensor) else held, before)


def test_the_callers_array_is_never_written_to() -> None:
    values = np.zeros(3)
    x = ad.asarray(values)
    x[0] = 1.0
    x += 1
    x[1] = 7.0
    assert values.tolist() == [0.0, 0.0, 0.0]


def test_assignment_under_nesting() -> None:
    """d2/dx2 of sum(y), y[0] = x^3 and y[1] = x^2 * y[0]."""
    x = ad.tensor(2.0, dtype=ad.float64).require_grad()
    u = ad.from_inner(x).require_grad()
    y = ad.zeros(2, dtype=ad.float64, device=u.device)
    y[0] = u * u * u
    y[1] = u * u * y[0]
    first = y.sum().backward()[u]
    assert first.item() == 3 * 4 + 5 * 16
    assert first.backward()[x].item() == 6 * 2 + 20 * 8


def test_a_value_of_an_inner_level_is_lifted() -> None:
    x = ad.tensor(2.0, dtype=ad.float64).require_grad()
    y = ad.zeros(2, dtype=ad.float64, device=ad.Autodiff(x.device))
    y[0] = x * x
    assert y.is_tracked()
    y *= x
    assert y.inner().sum().backward()[x].item() == 12.0


def test_a_value_of_an_outer_level_is_refused() -> None:
    x = ad.zeros(2)
    outer = ad.from_inner(ad.ones(2)).require_grad()
    with pytest.raises(errors.DeviceError, match=r"detach\(\)"):
        x[0] = outer[0]
    with pytest.raises(ValueError, match=r"detach\(\)"):
        x += outer
    same(x, np.zeros(2, "f4"))


def test_leaves_refuse_assignment(device: Any) -> None:
    w = leaf(1, 2)
    for attempt in (
        lambda: w.__setitem__(0, 5.0),
        lambda: w.__iadd__(1),
        lambda: w.__imul__(w),
        lambda: w.__imatmul__(np.eye(2)),
    ):
        with pytest.raises(errors.GraphError, match="with_value"):
            attempt()
    same(w, [1.0, 2.0])
    new = w.with_value([5.0, 2.0])
    assert new.is_require_grad()
    assert (new * 2).sum().backward().get(w) is None
    constant = w.detach()
    constant[0] = 5.0
    same(constant, [5.0, 2.0])
    same(w, [1.0, 2.0])


def test_leaves_of_an_inner_level_refuse_through_that_level_only() -> None:
    """Lifting makes a constant of the outer level, which is a tensor of its own."""
    w = leaf(1, 2)
    lifted = ad.from_inner(w)
    lifted[0] = 5.0
    same(w, [1.0, 2.0])
    same((lifted * lifted).inner().sum().backward()[w], [0.0, 4.0])


@pytest.mark.parametrize(
    ("x", "other", "error", "message"),
    [
        (ad.ones(2), np.ones(2), errors.DtypeError, "float32.*float64.*astype"),
        (ad.tensor([1, 2]), 0.5, errors.DtypeError, "int64.*float32"),
        (ad.ones(2), 1j, errors.DtypeError, "float32.*complex64"),
        (ad.ones(2), ad.ones((3, 2)), errors.ShapeError, r"\(2,\).*\(3, 2\)"),
        (ad.ones((1, 2)), ad.ones((3, 1)), errors.ShapeError, r"\(1, 2\).*\(3, 2\)"),
        (ad.ones(()), ad.ones(1), errors.ShapeError, r"\(\).*\(1,\)"),
    ],
)
def test_augmented_assignment_refuses_wider_results(x: Any, other: Any, error: Any, message: str) -> None:
    before = x.numpy().copy()
    with pytest.raises(error, match=message):
        x += other
    same(x, before)


def test_assigned_values_are_cast(device: Any) -> None:
    x = ad.zeros(2)
    v = ad.tensor([1.5, 2.5], dtype=ad.float64).require_grad()
    x[:] = v
    assert x.dtype is ad.float32
    gradient = (x * 2).sum().backward()[v]
    assert gradient.dtype is ad.float64
    same(gradient, [2.0, 2.0])
    n = ad.zeros(2, dtype=ad.int64)
    n[0] = 2.0
    n[1] = True
    same(n, np.array([2, 1]))
    with pytest.raises(errors.DtypeError, match="complex.*real"):
        x[0] = 1j
    z = ad.zeros(1, dtype=ad.complex64)
    z[0] = 2
    same(z, np.array([2], "c8"))


def test_integers_hold_no_floats() -> None:
    """Their fractions, and the derivatives of what is tracked, would be lost silently."""
    large = 2**60 + 1

    def assigned(key: Any) -> Any:
        def way(x: Any, v: Any) -> Any:
            x = x.copy()
            x[key] = v
            return x

        return way

    def filled(x: Any, v: Any) -> Any:
        x = x.copy()
        x.fill(v)
        return x

    def put(x: Any, v: Any) -> Any:
        x = x.copy()
        x.put([0], v)
        return x

    mask = np.array([True, False, False])
    ways = {
        **{f"x[{key}]": assigned(key) for key in (0, slice(1), [0], mask, ad.tensor(mask))},
        "fill": filled,
        "put": put,
        "piecewise": lambda x, v: ad.piecewise(x, [mask], [v, x]),
        "of a function": lambda x, v: ad.piecewise(x, [mask], [lambda t: t * 0 + v, x]),
        "np.piecewise": lambda x, v: np.piecewise(x, [mask], [v, 0]),
        "full_like": ad.full_like,
        "pad": lambda x, v: ad.pad(x, (1, 0), value=v),
        "np.full_like": np.full_like,
    }
    x = ad.tensor([1, large, 3])
    with Each() as each:
        for name, way in ways.items():
            run = lambda v, way=way: (way(ad.arange(1, 4), v) * 1.0).sum()
            for dtype in (ad.int64, ad.bool):
                for v in (np.float32(2.5), np.array(2.5), ad.tensor(2.5), ad.tensor(2.0).require_grad(), 0.5, 1j):
                    with each((name, dtype, v)), pytest.raises(errors.DtypeError, match="does not hold"):
                        way(ad.ones(3, dtype=dtype), v)
            transforms = [ad.grad(run), lambda v, f=run: ad.jvp(f, (v,), (v,)), lambda v, f=run: ad.vmap(f)(v[None])]
            for i, transform in enumerate([*transforms, ad.compile(run)] if name == "x[0]" else transforms):
                with each((name, i)), pytest.raises(errors.DtypeError, match="does not hold"):
                    transform(np.array(2.0))
            with each((name, "whole")):
                out = way(x, 2) if name == "of a function" else way(x, 2.0)
                assert out.dtype is ad.int64
                assert out[0].item() == 2
                assert name in ("fill", "full_like", "np.full_like", "np.piecewise") or large in out.tolist()


def test_a_number_in_a_mask_changes_nothing_else() -> None:
    x = ad.tensor([2**60 + 1, 5])
    x[np.array([False, True])] = 2.0
    assert x.tolist() == [2**60 + 1, 2]


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (5, 1.0, IndexError), ((0, 0), 1.0, IndexError), (slice(0, 2), [1.0, 2.0, 3.0], ValueError),
        ("a", 1.0, IndexError), (1.5, 1.0, IndexError), ([0, 7], [1.0, 2.0], IndexError),
        (0, [1.0, 2.0], ValueError), (0, 1j, TypeError),
        (0, "a", TypeError), ([True, False], 1.0, IndexError), ([0, 1], [[1.0], [2.0]], ValueError),
        ((..., ...), 1.0, IndexError), (slice(0, 2, 0), 1.0, IndexError), (0, None, TypeError),
        (0, [[1.0], [1.0, 2.0]], ValueError),
    ],
    ids=str,
)  # fmt: skip
def test_a_failed_assignment_changes_nothing(device: Any, key: Any, value: Any, error: Any, owned: bool) -> None:
    x = leaf(1, 2, 3) * 1
    if owned:
        x[0] = 1.0
    before, shared = x.numpy().copy(), x.numpy()
    if owned:
        x[0] = 1.0
    node = x.grad_fn
    if owned:
        x[0] = 1.0
    with pytest.raises(error) as caught:
        x[key] = value
    assert isinstance(caught.value, errors.AdjointError)
    same(x, before)
    assert shared.tolist() == before.tolist()
    assert owned or x.grad_fn is node


def test_chained_indexing_changes_a_temporary() -> None:
    x = ad.zeros((2, 2))
    x[0][1] = 5.0
    same(x, np.zeros((2, 2), "f4"))


def test_assigning_twice_to_one_place_keeps_the_last_value_and_its_gradient(device: Any) -> None:
    v = leaf(1, 2, 3)
    x = ad.zeros(2, dtype=ad.float64)
    x[[0, 1, 0]] = v
    same(x, [3.0, 2.0])
    same((x * 10).sum().backward()[v], [0.0, 10.0, 10.0])


@pytest.mark.parametrize("key", [None, ..., (), (None, ..., None)])
def test_parts_of_a_tensor_without_axes(device: Any, key: Any) -> None:
    x = ad.tensor(1.5, dtype=ad.float64)
    for f in (lambda x: 3 * (x[key] ** 2).sum() + x * x, lambda x: x * x + 3 * (x[key] ** 2).sum() + x * x - x * x):
        same(ad.grad(f)(x), 12.0)
        same(ad.grad(ad.compile(f))(x), 12.0)
    y = x + 1
    y[key] = 5.0
    same(y, 5.0)
    y[key] += 1.0
    same(y, 6.0)


# --- large tensors are not copied for every element ---


def base_address(x: Any) -> int:
    """Where the values of a tensor lie, without reading them in a way that shares them."""
    from adjoint.tensor import raw_array

    array = raw_array(x)
    while not isinstance(array, np.ndarray):
        array = array.value
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("reading", [False, True])
def test_a_thousand_element_assignments_use_one_buffer(device: Any, tracked: bool, reading: bool) -> None:
    x = ad.zeros(LARGE)
    if tracked:
        v = ad.tensor(3.0).require_grad()
        x[0] = v
    x[1] = 1.0
    addresses = set()
    total = 0.0
    for i in range(1000):
        x[i] = float(i) if not tracked or i % 2 else v * i
        addresses.add(base_address(x))
        if reading:
            total += x[i].item() + x[i : i + 2].shape[0] + len(x) + x.size + x.ndim + x.shape[0] * (x.dtype is ad.int8)
    assert len(addresses) == 1
    expected = np.arange(1000.0) * (np.where(np.arange(1000) % 2, 1, 3) if tracked else 1)
    np.testing.assert_array_equal(x[:1000].numpy(), expected)
    if tracked:
        assert x.sum().backward()[v].item() == sum(range(0, 1000, 2))


def test_assignments_to_slices_and_by_arrays_use_one_buffer(device: Any) -> None:
    x = ad.zeros((1000, 1000))
    x[0] = 1.0
    address = base_address(x)
    for i in range(10):
        x[i] = ad.ones(1000)
        x[:, i] = 2.0
        x[[i, i + 1], [3, 4]] = 3.0
    assert base_address(x) == address


def test_an_aliased_large_tensor_is_copied_once() -> None:
    x = ad.zeros(LARGE)
    held = x.numpy()
    x[0] = 1.0
    address = base_address(x)
    assert address != held.__array_interface__["data"][0]
    x[1] = 1.0
    assert base_address(x) == address
    assert held[0] == 0.0
