"""Functions that the array API standard added: sets, searches, differences; elements of lists; arrays of others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_leaf_backends import LEAVES, MARKS, as_leaves_are, every_leaf  # noqa: F401 (a fixture)
from test_standard import DTYPES

import adjoint as ad
from adjoint import errors


@pytest.mark.parametrize("device", ["numpy", "autodiff<numpy>", "reference"])
def test_sets(device: str) -> None:
    for values in (
        np.array([[3, 1, 3], [2, 1, 7]]),
        np.array([2.5, np.nan, -0.0, 2.5, 0.0, np.nan, -np.inf]),
        np.array([1j, 1, 1j, 2 - 1j, 1 + 0j]),
        np.array([True, True]),
        np.zeros((0, 2)),
        np.array(5),
    ):
        x = ad.asarray(values, device=device)
        theirs = np.unique(values, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
        everything, counted, placed = ad.unique_all(x), ad.unique_counts(x), ad.unique_inverse(x)
        for ours, other in zip(everything, theirs, strict=True):
            np.testing.assert_array_equal(ours.numpy(), other)
        assert everything.inverse_indices.shape == values.shape
        assert {t.dtype for t in everything[1:]} == {ad.int64}
        for ours in (counted.values, placed.values, ad.unique_values(x)):
            np.testing.assert_array_equal(ours.numpy(), theirs[0])
        np.testing.assert_array_equal(counted.counts.numpy(), theirs[3])
        np.testing.assert_array_equal(placed.inverse_indices.numpy(), theirs[2])


def test_gradients_flow_from_distinct_values_to_one_of_the_equal_ones() -> None:
    x = ad.tensor([3.0, 1.0, 3.0]).require_grad()
    for f in (ad.unique_values, lambda v: ad.unique_all(v).values):
        g = (f(x) * ad.tensor([10.0, 20.0])).sum().backward()[x]
        assert g.tolist() == [20.0, 10.0, 0.0]
    with pytest.raises(errors.ShapeError, match="vmap"):
        ad.vmap(ad.unique_values)(np.ones((2, 3)))


def test_searching_in_a_sorted_line() -> None:
    line, wanted = np.array([1.0, 2.0, 2.0, 3.0, np.nan]), np.array([[2.0, 0.0], [9.0, np.nan]])
    for side in ("left", "right"):
        np.testing.assert_array_equal(
            ad.searchsorted(ad.tensor(line), wanted, side=side).numpy(),
            np.searchsorted(line, wanted, side=side),  # type: ignore[call-overload]
        )
    mixed = ad.tensor([3.0, 1.0, 2.0])
    assert ad.searchsorted(mixed, 2.5, sorter=ad.argsort(mixed)).item() == 2
    together = ad.vmap(lambda a, v: ad.searchsorted(ad.sort(a), v))(
        np.array([[2.0, 1.0], [9.0, 8.0]]), np.array([2, 2])
    )
    assert together.tolist() == [1, 0]
    with pytest.raises(errors.ArgumentError, match="middle"):
        ad.searchsorted(mixed, 1.0, side="middle")  # type: ignore[arg-type]
    with pytest.raises(errors.ShapeError, match="one sorted line"):
        ad.searchsorted(ad.ones((2, 2)), 1.0)


def test_membership() -> None:
    x = ad.tensor([[1.0, 2.0], [np.nan, 4.0]])
    assert ad.isin(x, [4.0, 1.0, np.nan]).tolist() == [[True, False], [False, True]]
    assert ad.isin(x, [4.0, 1.0], invert=True).tolist() == [[False, True], [True, False]]
    assert ad.isin(x, []).tolist() == [[False, False], [False, False]]
    assert ad.isin(x, [], invert=True).tolist() == [[True, True], [True, True]]


def test_neighbouring_numbers() -> None:
    for dtype in ("float16", "float32", "float64"):
        x, y = np.array([1.0, -0.0, 2.0, -1.5], dtype), np.array([2.0, 1.0, 2.0, -np.inf], dtype)
        for device in ("numpy", "autodiff<numpy>", "reference"):
            ours = ad.nextafter(ad.asarray(x, device=device), ad.asarray(y, device=device)).numpy()
            np.testing.assert_array_equal(ours, np.nextafter(x, y))


def test_differences_of_neighbours() -> None:
    x = np.array([[1, 4, 9], [2, 3, 5]])
    for axis, n in ((0, 1), (1, 1), (-1, 2), (1, 0), (1, 4)):
        np.testing.assert_array_equal(ad.diff(ad.tensor(x), axis=axis, n=n).numpy(), np.diff(x, axis=axis, n=n))
    ends = np.array([[7], [8]])
    np.testing.assert_array_equal(
        ad.diff(ad.tensor(x), prepend=ad.tensor(ends), append=ends).numpy(), np.diff(x, prepend=ends, append=ends)
    )
    for axis in (0, 1):
        np.testing.assert_array_equal(
            ad.diff(ad.tensor(x), axis=axis, prepend=7, append=ad.tensor(8)).numpy(),
            np.diff(x, axis=axis, prepend=7, append=8),
        )
    assert ad.grad(lambda a: (ad.diff(ad.tensor([1.0, 2.0]), prepend=a) ** 2).sum())(3.0) == 4.0
    with pytest.raises(errors.ArgumentError, match="diff"):
        ad.diff(ad.tensor(x), n=-1)
    with pytest.raises(errors.AxisError, match="diff"):
        ad.diff(ad.tensor(1.0))


def test_repeating_by_several_numbers() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for repeats, axis in (([2, 0], 1), ([1, 3], 0), ([1, 0, 2, 1], None), ([3], None), (np.array(2), 0)):
        out = ad.repeat(ad.tensor(x), repeats, axis=axis)
        np.testing.assert_array_equal(out.numpy(), np.repeat(x, repeats, axis=axis))
        assert ad.repeat(ad.tensor(x), ad.tensor(repeats), axis=axis).shape == out.shape
    ad.testing.check_grads(lambda a: ad.repeat(a, [2, 1], axis=1), (x,))
    for wrong, kind in (([1.5, 2.0], TypeError), ([1, -1], ValueError), ([1, 2, 3], ValueError)):
        with pytest.raises(kind, match="repeat"):
            ad.repeat(ad.tensor(x), wrong, axis=0)


@pytest.mark.parametrize("device", ["numpy", "autodiff<numpy>"])
def test_a_single_boolean_is_an_index_alone(device: str) -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    for key in (True, False, np.True_, np.array(False), ad.tensor(True, device=device)):
        x = ad.tensor(values, device=device)
        truth = bool(key)
        np.testing.assert_array_equal(x[key].numpy(), values[np.array(truth)])
        x[key] = 7.0
        assert x.tolist() == ([[7.0, 7.0], [7.0, 7.0]] if truth else values.tolist())
    with pytest.raises(IndexError, match="0-d boolean"):
        ad.tensor(values, device=device)[0, True]
    x = ad.tensor(3.0, device=device)
    assert x[x > 2].tolist() == [3.0]
    assert x[x > 5].shape == (0,)
    assert ad.tensor(values, device=device)[np.zeros((2, 0), dtype=bool)].shape == (0,)
    with pytest.raises(IndexError, match="mask"):
        ad.tensor(values, device=device)[np.zeros((2, 3), dtype=bool)]


def test_diagonals_out_of_reach() -> None:
    x = ad.ones((2, 3))
    assert ad.eye(2, 3, k=10**30).tolist() == ad.eye(2, 3, k=-(10**30)).tolist() == [[0.0] * 3] * 2
    assert ad.triu(x, k=10**30).tolist() == ad.tril(x, k=-(10**30)).tolist() == [[0.0] * 3] * 2
    assert ad.tril(x, k=10**30).tolist() == ad.triu(x, k=-(10**30)).tolist() == x.tolist()


def test_dtype_and_device_at_once() -> None:
    x = ad.tensor([1.5], device="numpy")
    y = ad.astype(x, ad.float64, device="autodiff<numpy>")
    assert (y.dtype, y.device.name) == (ad.float64, "autodiff<numpy>")
    assert x.astype(ad.float32, copy=False, device="numpy") is x
    assert x.to_device("autodiff<numpy>", stream=None).device.name == "autodiff<numpy>"
    with pytest.raises(errors.ArgumentError, match="stream"):
        x.to_device("numpy", stream=1)


def test_sums_along_an_axis_of_products_keep_integers() -> None:
    x = ad.tensor([1, 2], dtype=ad.int8)
    assert ad.vecdot(x, x).dtype == ad.int8
    assert ad.vecdot(x, ad.tensor([1, 2], dtype=ad.uint8)).dtype == ad.int16


@pytest.mark.parametrize("shapes", [((3,), (1,)), ((2, 1), (3,)), ((0,), (1,)), ((4, 1), (1, 3))])
def test_the_axis_of_a_dot_product_does_not_broadcast(shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (ad.ones(shape) for shape in shapes)
    for vecdot in (ad.vecdot, ad.linalg.vecdot):
        with pytest.raises(errors.ShapeError, match=r"vecdot.*axis -1"):
            vecdot(x, y)


@pytest.mark.parametrize("device", ["numpy", "autodiff<numpy>", "reference"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lists_of_elements_make_an_array(dtype: str, device: str) -> None:
    x = ad.asarray([[0, 1, 0], [1, 1, 0]], dtype=dtype, device=device)
    turned = ad.asarray([[x[i, j] for i in range(2)] for j in range(3)], dtype=dtype)
    assert (turned.dtype, turned.device, turned.tolist()) == (x.dtype, x.device, x.mT.tolist())
    rows = ad.asarray(([x[1], x[0]], [x[0], x[1]]))
    assert (rows.shape, rows.dtype, rows[1, 0].tolist()) == ((2, 2, 3), x.dtype, x[0].tolist())


def test_lists_of_elements_are_differentiable() -> None:
    x = ad.tensor([0.1, 2.0, 3.0], dtype=ad.float64).require_grad()
    y = ad.asarray([[x[2], 0.1], [1, x[0] * x[1]]])
    assert (y.dtype, y.tolist()) == (ad.float64, [[3.0, 0.1], [1.0, 0.2]])
    assert (y * ad.asarray([[1.0, 2.0], [3.0, 4.0]])).sum().backward()[x].tolist() == pytest.approx([8.0, 0.4, 1.0])
    assert ad.asarray([x[0], x[1]], dtype=ad.float32, copy=True).dtype == ad.float32
    assert ad.grad(lambda v: ad.asarray([v * v, 0.0]).sum())(3.0) == 6.0
    assert ad.vmap(lambda v: ad.asarray([[v], [1.0]]))(x).tolist() == [[[0.1], [1.0]], [[2.0], [1.0]], [[3.0], [1.0]]]
    for ragged in ([x[0], [x[1]]], [[x[0]], [x[1], 1.0]], [x, x[0]], [[], [x[0]]]):
        with pytest.raises(errors.ShapeError, match="asarray"):
            ad.asarray(ragged)
    with pytest.raises(errors.ArgumentError, match="copy=False"):
        ad.asarray([x[0]], copy=False)
    with pytest.raises(errors.ArgumentError, match="ad.asarray"):
        ad.tensor([x[0], 0.0])


@pytest.mark.parametrize("device", ["numpy", "autodiff<numpy>", "reference"])
def test_assigned_numbers_keep_the_precision_of_the_tensor(device: str) -> None:
    x = ad.zeros(3, dtype=ad.float64, device=device)
    x[0] = 0.1
    x[1:] = [16777217.0, 0.3]
    assert x.tolist() == [0.1, 16777217.0, 0.3]
    z = ad.zeros(2, dtype=ad.complex128, device=device)
    z[0], z[1:] = 0.1 + 0.3j, [0.7j]
    assert z.tolist() == [0.1 + 0.3j, 0.7j]
    n = ad.zeros(2, dtype=ad.uint64, device=device)
    n[0], n[1] = 2**63 + 1, True
    assert n.tolist() == [2**63 + 1, 1]
    with pytest.raises(TypeError, match="complex"):
        x[0] = 1j


def test_lists_of_large_integers_are_not_rounded() -> None:
    """NumPy meets 64-bit integers with and without a sign in float64."""
    for dtype in ("uint64", None):
        x = ad.asarray([[0], [2**63 + 1]], dtype=dtype)
        assert (x.dtype, x.tolist()) == (ad.uint64, [[0], [2**63 + 1]])
    for values, dtype in (
        ([-1, 2**63 + 1], "uint64"),
        ([-1, 2**63], None),
        ([0, 2**63], "int64"),
        ([0, 2**64], "uint64"),
    ):
        with pytest.raises(OverflowError, match="integer"):
            ad.asarray(values, dtype=dtype)
    assert ad.asarray([0.5, 2.0**63], dtype=ad.float64).tolist() == [0.5, 2.0**63]
    assert ad.asarray([1, 2**70], dtype=ad.float64).tolist() == [1.0, 2.0**70]


def test_memory_goes_both_ways_through_dlpack() -> None:
    for name in DTYPES:
        x = ad.ones((2, 3), dtype=name)
        assert x.__dlpack_device__() == (1, 0)
        for copy, version in itertools.product((None, True, False), (None, (0, 0), (1, 0), (2, 0))):
            x.__dlpack__(copy=copy, max_version=version, dl_device=(1, 0))
        for device in (None, *ad.__array_namespace_info__().devices()):
            y = ad.from_dlpack(x, device=device)
            assert (y.dtype, y.device) == (x.dtype, device or x.device)
            assert y.tolist() == x.tolist()
    with pytest.raises(errors.ArgumentError, match="no streams"):
        ad.ones(2).__dlpack__(stream=5)
    plain = ad.ones(2, device="numpy")
    assert ad.from_dlpack(plain).device is plain.device


@every_leaf
def test_every_leaf_gives_its_arrays_to_consumers_of_any_dlpack(leaf: str) -> None:
    place = LEAVES[leaf]()
    for name in ("bool", "int32", "float64", "complex64"):
        x = ad.ones((2, 3), dtype=name, device=place)
        assert isinstance(x.__dlpack_device__()[1], int)
        for copy, version in itertools.product((None, True), (None, (0, 0), (0, 8), (1, 0), (2, 0))):
            x.__dlpack__(copy=copy, max_version=version)
        y = ad.from_dlpack(x, copy=True)
        assert (y.dtype, y.device, y.tolist()) == (x.dtype, place, x.tolist())


def test_the_copy_of_a_leaf_can_be_assigned_to() -> None:
    """As libraries do that are written for the standard: the gradient flows through the copy."""
    x = ad.tensor([1.0, 2.0, 3.0]).require_grad()
    for y in (ad.asarray(x, copy=True), x.astype(x.dtype)):
        y[0] = 10.0
        assert (x.tolist(), y.tolist()) == ([1.0, 2.0, 3.0], [10.0, 2.0, 3.0])
        assert (y * y).sum().backward()[x].tolist() == [0.0, 4.0, 6.0]
    assert ad.asarray(x) is x
    assert x.astype(x.dtype, copy=False) is x


@every_leaf
def test_numbers_of_more_than_64_bits_beside_floats(leaf: str) -> None:
    x = ad.asarray([1.5, -2.0], dtype="float64", device=LEAVES[leaf]())
    z = ad.asarray([1j], dtype="complex128", device=LEAVES[leaf]())
    for number in (2**63, 2**64, -(2**100)):
        assert (x * number).tolist() == (number * x).tolist() == [1.5 * float(number), -2.0 * float(number)]
        assert (x + number).tolist() == [float(number)] * 2
        assert (x < number).tolist() == (number >= x).tolist() == [number > 0] * 2
        assert ad.maximum(x, number).tolist() == ([float(number)] * 2 if number > 0 else x.tolist())
        assert (z * number).tolist() == [complex(0, number)]


@pytest.mark.parametrize("leaf", [name for name in LEAVES if not name.startswith("torch") and name not in MARKS])
def test_numbers_beyond_int64_beside_uint64(leaf: str) -> None:
    """Whose sums and the like PyTorch does not have."""
    x = ad.asarray([1, 3], dtype="uint64", device=LEAVES[leaf]())
    for number in (2**63, 2**64 - 1):
        assert (x & number).tolist() == (number & x).tolist() == [1 & number, 3 & number]
        assert (x + (number - 3)).tolist() == [number - 2, number]
        assert (x * 0 + number).tolist() == ad.maximum(x, number).tolist() == [number] * 2
        assert (x == number).tolist() == [False] * 2
        assert (x < number).tolist() == (number > x).tolist() == [True] * 2
        assert (number // x).tolist() == [number, number // 3]
        assert (number % x).tolist() == [0, number % 3]
        assert (number >> x).tolist() == [number >> 1, number >> 3]
