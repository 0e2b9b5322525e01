"""What a tensor is: operators, promotion, its life as a container and in other libraries."""

from __future__ import annotations

import operator
import pickle
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import errors

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
DTYPES = [
    ad.bool, ad.int8, ad.int16, ad.int32, ad.int64, ad.uint8, ad.uint16, ad.uint32, ad.uint64,
    ad.float16, ad.float32, ad.float64, ad.complex64, ad.complex128,
]  # fmt: skip


def same(x: ad.Tensor[Any], y: Any) -> None:
    """Equal values, shape and dtype."""
    expected = np.asarray(y)
    assert isinstance(x, ad.Tensor)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(x.numpy(), expected)


# --- operators ---


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    ("left", "right"), [((), ()), ((3,), (3,)), ((2, 1), (3,)), ((0,), (1,)), ((2, 3), ()), ((1, 3), (2, 1))]
)
def test_operators_broadcast_as_numpy(op: Any, left: Any, right: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 3, left), rng.uniform(1, 3, right)
    same(op(ad.tensor(x), ad.tensor(y)), op(x, y))
    same(op(ad.tensor(x), np.asarray(y)), op(x, y))
    same(op(np.asarray(x), ad.tensor(y)), op(x, y))


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("dtype", [ad.int16, ad.float32, ad.float64])
def test_operators_with_python_scalars_on_both_sides(op: Any, dtype: Any) -> None:
    x = np.array([1, 2, 3], dtype)
    result = op(x, 2)
    if dtype is ad.int16 and op is operator.truediv:
        result = result.astype(np.float32)  # integers divide in the default dtype
    same(op(ad.tensor(x), 2), result)
    reflected = op(2, x)
    if dtype is ad.int16 and op is operator.truediv:
        reflected = reflected.astype(np.float32)
    same(op(2, ad.tensor(x)), reflected)


@pytest.mark.parametrize("op", BITWISE)
def test_bitwise_operators_on_both_sides(op: Any) -> None:
    x, y = np.array([1, 6, 3]), np.array([2, 1, 3])
    same(op(ad.tensor(x), ad.tensor(y)), op(x, y))
    same(op(ad.tensor(x), 2), op(x, 2))
    same(op(2, ad.tensor(x)), op(2, x))
    same(op(x, ad.tensor(y)), op(x, y))


def test_unary_operators() -> None:
    x = ad.tensor([-1.5, 2.0])
    same(-x, np.array([1.5, -2.0], "f4"))
    same(abs(x), np.array([1.5, 2.0], "f4"))
    assert +x is not x
    assert (+x).tolist() == x.tolist()
    same(~ad.tensor([True, False]), [False, True])
    same(~ad.tensor([1, -3]), [-2, 2])


def test_matmul_operator_takes_arrays_on_both_sides() -> None:
    x = np.arange(6.0).reshape(2, 3)
    same(ad.tensor(x) @ x.T, x @ x.T)
    same(x.T @ ad.tensor(x), x.T @ x)
    same(ad.tensor(x) @ [1.0, 2.0, 3.0], x @ [1.0, 2.0, 3.0])
    same(ad.tensor(x) @ (1.0, 2.0, 3.0), x @ [1.0, 2.0, 3.0])
    same((1.0, 2.0) @ ad.tensor(x), [1.0, 2.0] @ x)


@pytest.mark.parametrize("value", [np.arange(3.0), np.float64(2), np.float32(2), np.array(2.0), np.int64(2)])
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.sub, operator.truediv, operator.pow, operator.lt])
def test_numpy_on_the_left_defers_to_the_tensor(value: Any, op: Any) -> None:
    x = ad.tensor([1.0, 2.0, 3.0], dtype=ad.float64).require_grad()
    out = op(value, x)
    assert isinstance(out, ad.Tensor)
    np.testing.assert_allclose(out.numpy(), op(value, x.numpy()))
    assert out.is_tracked() == (op is not operator.lt)


REFLECTED = "add sub mul truediv floordiv mod pow divmod matmul and or xor lshift rshift".split()


@pytest.mark.parametrize("right", [ad.int32, ad.int64, ad.float32, ad.float64])
@pytest.mark.parametrize("left", [ad.int32, ad.float32, ad.float64])
def test_reflected_methods_have_their_operands_the_other_way_round(left: Any, right: Any) -> None:
    with Each() as each:
        for name in REFLECTED:
            op = divmod if name == "divmod" else getattr(operator, f"__{name}__")
            if name in {"and", "or", "xor", "lshift", "rshift"} and np.result_type(left, right).kind == "f":
                continue
            x, y = ad.tensor([7, 2, 9], dtype=left), ad.tensor([3, 4, 2], dtype=right)
            with each(name):
                np.testing.assert_array_equal(getattr(y, f"__r{name}__")(x), op(x, y))
                level = ad.Autodiff(ad.NumPy())
                np.testing.assert_array_equal(getattr(y, f"__r{name}__")(x.to_device(level)), op(x, y))


def test_unknown_operands_are_left_to_the_other_side() -> None:
    class Other:
        def __radd__(self, x: Any) -> str:
            return "theirs"

        __rmatmul__ = __radd__

    x = ad.tensor([1.0])
    assert x + Other() == "theirs"
    assert x @ Other() == "theirs"
    assert (x == None) is False  # noqa: E711 (the comparison is what is tested)
    assert (x != "a") is True
    assert "a" not in x
    with pytest.raises(TypeError, match="'Tensor' and 'Other'"):
        x - Other()


# --- promotion ---


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_promotion_follows_the_array_api(left: Any, right: Any) -> None:
    kinds = left.kind + right.kind
    x, y = ad.tensor([1], dtype=left), ad.tensor([1], dtype=right)
    if ad.uint64 in (left, right) and "i" in kinds:
        with pytest.raises(errors.DtypeError, match="no common integer dtype"):
            x + y
        return
    found = (x + y).dtype
    if left is right is ad.bool:
        assert found is ad.int64
    elif left.kind == right.kind or set(kinds) <= set("iu") or set(kinds) <= set("fc"):
        assert found is np.promote_types(left, right) or found == np.promote_types(left, right)
    else:  # across kinds, the higher kind keeps its dtype
        rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
        assert found is max(left, right, key=lambda dtype: rank[dtype.kind])
    assert (y + x).dtype is found


@pytest.mark.parametrize(
    ("dtype", "scalar", "expected"),
    [
        (ad.float16, 2, ad.float16), (ad.float32, 2.5, ad.float32), (ad.float64, True, ad.float64),
        (ad.int8, 2, ad.int8), (ad.int8, 2.5, ad.float32), (ad.int8, True, ad.int8), (ad.bool, 2, ad.int64),
        (ad.float32, 1j, ad.complex64), (ad.float64, 1j, ad.complex128), (ad.complex64, 2.5, ad.complex64),
        (ad.int64, 1j, ad.complex64), (ad.uint8, 2.0, ad.float32),
    ],
)  # fmt: skip
def test_python_scalars_are_weak(dtype: Any, scalar: Any, expected: Any) -> None:
    x = ad.tensor([1], dtype=dtype)
    for op in (operator.add, operator.mul, operator.sub):
        assert op(x, scalar).dtype is expected
        assert op(scalar, x).dtype is expected
    assert ad.where(ad.tensor([True]), x, scalar).dtype is expected
    assert ad.where(ad.tensor([True]), scalar, x).dtype is expected


def test_a_number_that_meets_arrays_on_numpy_is_made_an_array_once() -> None:
    level = ad.Autodiff(ad.NumPy())
    number = level.as_scalar(2.5, ad.float64)
    assert number.shape == ()
    assert number == 2.5
    assert level.as_scalar(2.5, ad.float64) is number
    assert level.as_scalar(2.5, ad.float32).dtype == ad.float32


@pytest.mark.parametrize("scalar", [np.float64(2), np.array(2.0)])
def test_numpy_scalars_are_not_weak(scalar: Any) -> None:
    x = ad.tensor([1.0], dtype=ad.float32).require_grad()
    for out in (x * scalar, scalar * x, x**scalar, ad.where(ad.tensor([True]), x, scalar), ad.maximum(x, scalar)):
        assert out.dtype is ad.float64
        assert out.sum().backward()[x].dtype is ad.float32


def test_booleans_compute_as_integers_and_divide_as_floats() -> None:
    x = ad.tensor([True, False])
    same(x + x, np.array([2, 0]))
    same(x * True, np.array([1, 0]))
    same(x**2, np.array([1, 0]))
    same(x / ad.tensor([1, 2]), np.array([1, 0], "f4"))
    same(x**True, np.array([1, 0]))
    same(True**x, np.array([1, 1]))
    same(x**x, np.array([1, 1]))
    same(ad.pow(x, x), np.array([1, 1]))
    same(x**0.5, np.array([1, 0], "f4"))
    same(ad.tensor([2, 3], dtype=ad.int8) ** True, np.array([2, 3], "i1"))
    same(ad.tensor([2, 3], dtype=ad.int8) ** x, np.array([2, 1], "i1"))
    same(x << x, np.array([2, 0]))
    same(x >> True, np.array([0, 0]))
    for function in (ad.square, ad.sign, ad.conj):
        same(function(x), np.array([1, 0]))


def test_pythons_booleans_meet_numbers_on_every_backend() -> None:
    for device in ("numpy", "reference", ad.ArrayAPI(pytest.importorskip("array_api_strict"))):
        for x in (ad.tensor([2, 3], device=device), ad.tensor([2.0, 3.0], device=device)):
            for op in (operator.add, operator.mul, operator.floordiv, operator.pow, operator.eq):
                assert op(x, True).tolist() == op(x, 1).tolist()
                assert op(True, x).tolist() == op(1, x).tolist()
        x = ad.tensor([True, False], device=device)
        assert (x == True).tolist() == ad.logical_or(x, False).tolist() == [True, False]  # noqa: E712
        assert (x**True).tolist() == [1, 0]


def test_integers_to_a_float_power_become_floats() -> None:
    same(ad.tensor([1, 3]) ** 2, np.array([1, 9]))
    same(ad.tensor([1, 3]) ** 2.0, np.array([1, 9], "f4"))


def test_values_taken_from_numpy_operands_are_copied() -> None:
    """What a graph saved does not change when the caller goes on to use the array."""
    x = ad.tensor([1.0, 2.0], dtype=ad.float64).require_grad()
    values, places = np.array([3.0, 5.0]), np.array([1, 1])
    for f in (
        lambda: x * values,
        lambda: ad.where(x > 0, x * 1, values) * values,
        lambda: x @ values,
        lambda: ad.maximum(x, values - 10) * values,
    ):
        values[:] = [3.0, 5.0]
        loss = f().sum()
        values[:] = 0
        same(loss.backward()[x], np.array([3.0, 5.0]))
    for g in (lambda: x[places], lambda: ad.take(x, places), lambda: ad.take_along_axis(x, places)):
        places[:] = 1
        loss = g().sum()
        places[:] = 0
        same(loss.backward()[x], np.array([0.0, 2.0]))
    cotangent = np.array([1.0, 2.0])
    grads = (x + 1).backward(cotangent)
    leaf = x.with_value(cotangent)
    cotangent[:] = 0
    same(grads[x], np.array([1.0, 2.0]))
    same(leaf, np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("narrow", "wide"), [(ad.float32, ad.float64), (ad.float16, ad.float32), (ad.float32, ad.complex64)]
)
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.pow, operator.matmul])
def test_the_gradient_of_a_promoted_argument_has_its_own_dtype(device: Any, narrow: Any, wide: Any, op: Any) -> None:
    x = ad.tensor([1.0, 2.0], dtype=narrow).require_grad()
    y = ad.tensor([3.0, 5.0], dtype=wide).require_grad()
    for out in (op(x, y), op(y, x)):
        assert out.dtype is wide
        grads = out.sum().backward()
        assert grads[x].dtype is narrow
        assert grads[y].dtype is wide


def test_the_gradient_of_a_promoted_argument_is_right(device: Any) -> None:
    x = ad.tensor([1.0, 2.0], dtype=ad.float32).require_grad()
    weights = ad.tensor([3.0, 5.0], dtype=ad.float64)
    same((x * weights).sum().backward()[x], np.array([3, 5], "f4"))
    z = ad.tensor([1 + 2j, 3 - 1j])
    same((x * z).real.sum().backward()[x], np.array([1, 3], "f4"))
    same((x * z).imag.sum().backward()[x], np.array([2, -1], "f4"))


# --- making tensors ---


def test_dtypes_of_python_values() -> None:
    assert ad.tensor(1.5).dtype is ad.float32
    assert ad.tensor([1, 2]).dtype is ad.int64
    assert ad.tensor([True]).dtype is ad.bool
    assert ad.tensor([1j]).dtype is ad.complex64
    assert ad.tensor([]).dtype is ad.float32
    assert ad.tensor([[1, 2.5]]).dtype is ad.float32
    assert ad.tensor(np.float64(1)).dtype is ad.float64
    assert ad.tensor([np.float64(1)]).dtype is ad.float64
    assert ad.tensor(np.arange(2, dtype="i2")).dtype is ad.int16
    assert ad.tensor([1, 2], dtype=ad.float64).dtype is ad.float64
    assert (ad.tensor([1.0]) * [1j]).dtype is ad.complex64


def test_arrays_of_other_byte_orders_become_native() -> None:
    x = np.array([1.0, 2.0], dtype=">f8")
    same(ad.tensor(x), np.array([1.0, 2.0]))
    same(ad.asarray(x), np.array([1.0, 2.0]))


def test_tensor_copies_and_asarray_shares() -> None:
    values = np.array([1.0, 2.0])
    copied, shared = ad.tensor(values), ad.asarray(values)
    assert not np.shares_memory(copied.numpy(), values)
    assert np.shares_memory(shared.numpy(), values)
    assert not np.shares_memory(ad.asarray(values, copy=True).numpy(), values)
    with pytest.raises(errors.ArgumentError, match="copy"):
        ad.asarray([1.0], copy=False)
    with pytest.raises(errors.ArgumentError, match="copy"):
        ad.asarray(values, dtype=ad.float32, copy=False)


def test_a_tensor_made_of_a_tensor_is_a_constant_of_its_own() -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    constant = (x * 2).detach()
    y = ad.tensor(constant)
    assert not y.is_tracked()
    assert y.device is x.device
    same(y, np.array([2, 4], "f4"))
    y[0] = 5.0
    same(constant, np.array([2, 4], "f4"))
    assert ad.asarray(x) is x
    assert ad.tensor(constant, device="numpy").device is ad.NumPy()
    for tracked in (x, x * 2):
        with pytest.raises(errors.TrackedError, match="ad.asarray"):
            ad.tensor(tracked)


def test_asarray_casts_differentiably() -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    y = ad.asarray(x, dtype=ad.float64)
    assert y.dtype is ad.float64
    same((y * 3).sum().backward()[x], np.array([3, 3], "f4"))


def test_tensors_are_not_made_by_their_class() -> None:
    with pytest.raises(TypeError, match="ad.tensor"):
        ad.Tensor([1.0])


# --- to Python and NumPy ---


def test_numpy_is_read_only_and_shares(device: Any) -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    for tensor in (x, x * 2, x.sum(), x[0]):
        values = tensor.numpy()
        assert isinstance(values, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0
    assert np.shares_memory(x.numpy(), x.numpy())


def test_item_and_tolist(device: Any) -> None:
    x = ad.tensor([[1.5, 2.0]]).require_grad()
    assert (x * 2).tolist() == [[3.0, 4.0]]
    assert x[0, 0].item() == 1.5
    assert x.item(0) == x.item(0, 0) == x.item((0, 0)) == 1.5
    assert x.item(-1) == x[-1, -1].item()
    assert isinstance(x.sum().item(), float)
    assert isinstance(ad.tensor([3]).item(), int)
    assert ad.tensor(True).item() is True
    assert ad.tensor([[1j]]).item() == 1j
    with pytest.raises(errors.ArgumentError, match=r"item.*\(1, 2\).*tolist"):
        x.item()


def test_python_conversions() -> None:
    assert float(ad.tensor([1.5])) == 1.5
    assert int(ad.tensor(2.7)) == 2
    assert complex(ad.tensor(1j)) == 1j
    assert [10, 20, 30][ad.tensor(1)] == 20
    assert f"{ad.tensor(1.23456):.2f}" == "1.23"
    with pytest.raises(TypeError, match="indices"):
        [1, 2][ad.tensor(1.0)]
    with pytest.raises(TypeError, match="indices"):
        [1, 2][ad.tensor([1])]


def test_bool_behaves_as_numpy(device: Any) -> None:
    assert ad.tensor([2.0]).require_grad()
    assert not ad.tensor(0)
    with pytest.raises(ValueError, match=r"ambiguous.*any\(\) or \.all\(\)"):
        bool(ad.tensor([1, 2]))
    with pytest.raises(errors.ArgumentError, match="ambiguous"):
        bool(ad.tensor([]))


def test_len_and_iteration_behave_as_numpy(device: Any) -> None:
    x = ad.tensor([[1.0, 2.0], [3.0, 4.0]]).require_grad()
    assert len(x) == 2
    first, second = x
    same(second, np.array([3, 4], "f4"))
    same((first * second).sum().backward()[x], np.array([[3, 4], [1, 2]], "f4"))
    assert list(ad.tensor([])) == []
    assert 3.0 in x
    assert 5.0 not in x
    for what in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            what(ad.tensor(1.0))


def test_tensors_do_not_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(ad.tensor(1.0))
    with pytest.raises(TypeError, match="unhashable"):
        {ad.tensor(1.0): 1}


def test_attributes() -> None:
    x = ad.tensor(np.zeros((2, 3, 0)))
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3, 0), 3, 0, ad.float64)
    assert x.mT.shape == (2, 0, 3)
    assert ad.tensor([[1.0, 2.0]]).T.shape == (2, 1)
    z = ad.tensor([1 + 2j])
    same(z.real, np.array([1], "f4"))
    same(z.imag, np.array([2], "f4"))
    assert x.real is not x
    assert x.real.tolist() == x.tolist()
    assert all(isinstance(n, int) for n in (*x.shape, x.ndim, x.size))


def test_implicit_conversion_of_a_tracked_tensor_names_detach(device: Any) -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    for tensor in (x, x * 2, ad.from_inner(x)):
        for convert in (np.asarray, np.array, np.from_dlpack):
            with pytest.raises(errors.TrackedError, match=r"detach\(\)"):
                convert(tensor)
    assert np.asarray(x.detach()).tolist() == [1.0, 2.0]


def test_array_protocol_of_an_untracked_tensor() -> None:
    x = ad.tensor([1.0, 2.0])
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    copied = np.array(x)
    copied[0] = 5  # a copy may be written to
    same(x, np.array([1, 2], "f4"))
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 5


def test_array_protocol_without_a_copy() -> None:
    x = ad.tensor([1.0, 2.0])
    assert np.shares_memory(np.asarray(x, copy=False), x.numpy())
    assert np.asarray(x, dtype=np.float32, copy=False).tolist() == [1.0, 2.0]
    assert np.asarray(ad.zeros(0, device="reference"), copy=False).shape == (0,)
    for refused in (
        lambda: np.asarray(x, dtype=np.float64, copy=False),
        lambda: np.asarray(ad.zeros(0), dtype=np.int64, copy=False),
        lambda: np.asarray(ad.ones(2, device="reference"), copy=False),
    ):
        with pytest.raises(ValueError, match="copy") as caught:
            refused()
        assert isinstance(caught.value, errors.ArgumentError)


def test_making_tensors_without_a_copy() -> None:
    x, values = ad.tensor([1.0, 2.0]), np.array([1.0, 2.0])
    assert ad.asarray(x, dtype=ad.float32, copy=False) is x
    assert ad.asarray(x.inner(), device=x.device, copy=False).device is x.device
    assert ad.asarray(ad.ones(2, device="reference"), device="autodiff<reference>", copy=False).tolist() == [1.0, 1.0]
    assert ad.asarray(np.zeros((0, 2)), copy=False).shape == (0, 2)
    for make in (ad.asarray, ad.from_dlpack):
        assert np.shares_memory(make(values, copy=False).numpy(), values)
        assert not np.shares_memory(make(values, copy=True).numpy(), values)
    assert np.shares_memory(ad.from_dlpack(x, copy=False).numpy(), x.numpy())
    for refused in (
        lambda: ad.asarray(x, dtype=ad.float64, copy=False),
        lambda: ad.asarray(x, device="reference", copy=False),
        lambda: ad.asarray(values, device="reference", copy=False),
        lambda: ad.from_dlpack(values, device="reference", copy=False),
        lambda: ad.asarray(np.zeros(0), dtype=ad.float32, copy=False),
    ):
        with pytest.raises(errors.ArgumentError, match="copy=False"):
            refused()


# --- DLPack ---


def test_dlpack_both_ways_with_numpy() -> None:
    x = ad.tensor([[1.0, 2.0], [3.0, 4.0]])
    shared = np.from_dlpack(x, copy=False)
    assert np.shares_memory(shared, x.numpy())
    assert not shared.flags.writeable
    for copied in (np.from_dlpack(x), np.from_dlpack(x, copy=True), np.from_dlpack(ad.ones(2, device="reference"))):
        copied[...] = 9.0
    same(x, np.array([[1, 2], [3, 4]], "f4"))
    back = ad.from_dlpack(np.arange(3.0))
    same(back, np.arange(3.0))
    assert ad.from_dlpack(np.arange(3), device="numpy").device is ad.NumPy()


def test_old_consumers_of_dlpack_get_a_copy_unless_they_want_none() -> None:
    x = ad.tensor([1.0, 2.0])

    class Old:
        def __init__(self, **options: Any) -> None:
            self.options = options

        def __dlpack__(self, **_: Any) -> Any:
            return x.__dlpack__(**self.options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()

    assert not np.shares_memory(np.from_dlpack(Old()), x.numpy())
    assert np.shares_memory(np.from_dlpack(Old(copy=False)), x.numpy())
    with pytest.raises(BufferError):
        ad.broadcast_to(x, (2, 2)).__dlpack__(copy=False)  # its memory is marked, and such consumers know no mark
    with pytest.raises(BufferError, match="no memory"):
        np.from_dlpack(ad.ones(2, device="reference"), copy=False)


def test_a_consumer_of_dlpack_cannot_write_to_a_tensor() -> None:
    x = ad.tensor([1.0, 2.0])
    for xp in (np, pytest.importorskip("array_api_strict")):
        for options in ({}, {"copy": None}, {"copy": True}):
            values = xp.from_dlpack(x, **options)
            values[0] = 9.0
            assert [float(v) for v in values] == [9.0, 2.0]
            same(x, np.array([1, 2], "f4"))


# --- what people see ---


def test_repr_shows_values_dtype_device_and_status(device: Any) -> None:
    x = ad.tensor([1.0, 2.5])
    name = device.name
    assert repr(x) == f"Tensor([1. , 2.5], dtype=float32, device={name})"
    leaf = x.require_grad()
    assert repr(leaf) == f"Tensor([1. , 2.5], dtype=float32, device={name}, leaf)"
    assert repr(leaf * 2) == f"Tensor([2., 5.], dtype=float32, device={name}, tracked by multiply)"
    assert repr(ad.from_inner(leaf)) == f"Tensor([1. , 2.5], dtype=float32, device=autodiff<{name}>, tracked)"
    assert repr(ad.zeros((0, 3))) == f"Tensor([], shape=(0, 3), dtype=float32, device={name})"
    assert repr(ad.tensor(True, device="numpy")) == "Tensor(True, dtype=bool, device=numpy)"


def test_repr_shows_values_as_numpy_does() -> None:
    for values in (np.linspace(0, 1, 7).reshape(7, 1), np.arange(5000.0), np.array([1e-9, 1e9]), np.array([1 + 2j])):
        shown = repr(ad.tensor(values, device="numpy"))
        assert shown.startswith("Tensor(" + np.array2string(values, separator=", ", prefix="Tensor("))


def test_repr_html() -> None:
    text = ad.tensor([[1.0, 2.0]]).require_grad()._repr_html_()
    for part in ("<div>", "<pre", "float32", "(1, 2)", "autodiff&lt;numpy&gt;", "leaf", "1., 2."):
        assert part in text
    assert "<numpy>" not in text


def test_str_and_format() -> None:
    x = ad.tensor([1.0])
    assert str(x) == f"{x}" == repr(x)


# --- pickle, copy, deepcopy ---


def test_pickle_keeps_values_backend_and_leaf_key(device: Any) -> None:
    x = ad.tensor([1.0, 2.0])
    loaded = pickle.loads(pickle.dumps(x))
    same(loaded, x.numpy())
    assert loaded.device is device
    assert not loaded.is_tracked()
    leaf = x.require_grad()
    again = pickle.loads(pickle.dumps(leaf))
    assert again.is_require_grad()
    grads = (leaf * 3).sum().backward()
    same(grads[again], np.array([3, 3], "f4"))
    same((again * 2).sum().backward()[leaf], np.array([2, 2], "f4"))


def test_gradients_of_leaves_with_one_key_add_up(device: Any) -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    again = pickle.loads(pickle.dumps(x))
    grads = (x * 2 + again * 3).sum().backward()
    assert len(grads) == 1
    same(grads[x], np.array([5, 5], "f4"))


def test_pickles_keep_the_very_dtype() -> None:
    x = pickle.loads(pickle.dumps(ad.ones(2, dtype=ad.float64).require_grad()))
    assert x.dtype is ad.float64
    assert x.with_value(ad.ones(2, dtype=ad.float64)).tolist() == [1, 1]
    y = pickle.loads(pickle.dumps(ad.ones(2, dtype=ad.float64)))
    assert ad.zeros(2, dtype=ad.float64).require_grad().with_value(y).tolist() == [1, 1]


@pytest.mark.parametrize("take_along", [pickle.dumps, deepcopy])
def test_results_of_a_graph_neither_pickle_nor_deepcopy(device: Any, take_along: Any) -> None:
    x = ad.tensor([1.0]).require_grad()
    lifted = ad.from_inner(x * 2)
    for tensor in (x * 2, lifted):
        with pytest.raises(errors.TrackedError, match=r"multiply.*detach\(\)"):
            take_along(tensor)
    same(pickle.loads(pickle.dumps((x * 2).detach())), np.array([2], "f4"))


def test_copy_stays_in_the_graph(device: Any) -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    y = x * 2
    other = copy(y)
    assert other is not y
    same((other * 3).sum().backward()[x], np.array([6, 6], "f4"))
    twin = copy(x)
    assert twin.is_require_grad()
    same((twin * 3).sum().backward()[x], np.array([3, 3], "f4"))
    constant = ad.tensor([1.0, 2.0])
    changed = copy(constant)
    changed[0] = 9
    same(constant, np.array([1, 2], "f4"))


def test_deepcopy_makes_another_leaf(device: Any) -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    y = deepcopy(x)
    assert y.is_require_grad()
    assert y.device is device
    assert not np.shares_memory(x.numpy(), y.numpy())
    grads = (x * 2).sum().backward()
    assert x in grads
    assert y not in grads
    pair = deepcopy([x, x])
    assert pair[0] is pair[1]
    constant = ad.tensor([1.0])
    assert not deepcopy(constant).is_tracked()


def test_pickle_of_nested_levels_keeps_every_key() -> None:
    x = ad.tensor([2.0]).require_grad()
    both = ad.from_inner(x).require_grad()
    again = pickle.loads(pickle.dumps(both))
    assert again.device is both.device
    outer = (again * again).sum().backward()
    same(outer[both].backward()[x], np.array([2], "f4"))


def test_pickled_gradients_find_their_leaves() -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    grads = pickle.loads(pickle.dumps((x * x).sum().backward()))
    same(grads[x], np.array([2, 4], "f4"))
