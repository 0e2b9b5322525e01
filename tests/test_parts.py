"""Parts, borders, orders and distances: values are NumPy's, also at edges, and errors say what was wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import errors

_rng = np.random.default_rng(17)
NAN, INF = np.nan, np.inf


def normal(*shape: int) -> Any:
    return np.asarray(_rng.standard_normal(shape))


def ints(*shape: int) -> Any:
    return _rng.integers(-3, 4, shape)


A, N, C, CUBE, LINE, EMPTY = (
    normal(3, 4),
    ints(3, 4),
    normal(3, 4) * 1j + 1,
    normal(2, 3, 4),
    normal(7),
    np.zeros((0, 3)),
)
HOLED = np.array([0.0, 2.0, NAN, 1.0, 2.0, 2.0, NAN])
TIED = ints(4, 6)

# name, arguments, options: called with the same ones in both libraries
NUMPYS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[("resize", (x, shape), {}) for x in (A, N, C, EMPTY, np.array(2.0)) for shape in ((2, 3), (5, 5), (0,), ())],
    *[("trim_zeros", (x, how), {}) for x in (np.array([0, 0, 1, 0, 2, 0]), np.zeros(3), np.zeros(0), np.array([1.0]))
      for how in ("fb", "f", "b", "FB")],
    *[("trim_zeros", (np.pad(A, 2), "fb"), {"axis": axis}) for axis in (None, 0, -1, (0, 1))],
    *[("unique", (x,), {"axis": axis, **dict.fromkeys(("return_index", "return_inverse", "return_counts"), asked)})
      for x in (TIED, TIED * 1.0, TIED % 2, EMPTY, TIED > 0) for axis in (None, 0, -1) for asked in (False, True)],
    *[("unique", (HOLED,), {"equal_nan": same, "return_counts": True}) for same in (True, False)],
    *[("cbrt", (x,), {}) for x in (A * 1e3, N, np.array([0.0, -0.0, INF, -INF, NAN, 5e-324, 1e308]))],
    *[(f, (x, y), {}) for f in ("gcd", "lcm")
      for x, y in ((N, N[::-1]), (N, 6), (N.astype("int8"), N[0]), (abs(N), 0))],
    ("gcd", (np.array([7540113804746346429]), np.array([4660046610375530309])), {}),
]  # fmt: skip


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _, _ in NUMPYS))
def test_values_are_numpys(name: str) -> None:
    with Each() as each:
        for args, options in [case[1:] for case in NUMPYS if case[0] == name]:
            with each(*[getattr(x, "shape", x) for x in args], options):
                theirs = getattr(np, name)(*args, **options)
                ours = getattr(ad, name)(*[ad.asarray(x) if isinstance(x, np.ndarray) else x for x in args], **options)
                through = getattr(np, name)(ad.asarray(args[0]), *args[1:], **options)  # NumPy hands it over
                for found in (ours, through):
                    pairs = zip(found, theirs, strict=True) if isinstance(theirs, tuple) else [(found, theirs)]
                    for x, y in pairs:
                        wide = np.asarray(y, np.float32) if x.dtype == ad.float32 else y  # of integers
                        assert (x.shape, x.dtype) == (wide.shape, wide.dtype)
                        np.testing.assert_allclose(x.numpy(), wide, rtol=1e-6 if x.dtype == ad.float32 else 1e-15)


MODES = "constant edge linear_ramp maximum mean median minimum reflect symmetric wrap empty".split()


@pytest.mark.parametrize("mode", MODES)
def test_borders_are_numpys(mode: str) -> None:
    options: list[dict[str, Any]] = [{}]
    if mode in ("maximum", "mean", "median", "minimum"):
        options = [{}, {"stat_length": 2}, {"stat_length": ((1, 3), (2, 9))}]
    elif mode == "linear_ramp":
        options = [{}, {"end_values": 2}, {"end_values": ((1, -2), (0, 5))}]
    elif mode in ("reflect", "symmetric"):
        options = [{}, {"reflect_type": "odd"}]
    widths: list[Any] = [0, 1, (2, 0), ((1, 2), (0, 3)), ((7, 9), (8, 11))]
    with Each() as each:
        for x, width, how in itertools.product((A, A.astype("f4"), N, N.astype("u1"), C, A[:1]), widths, options):
            if x.dtype.kind == "c" and mode in ("maximum", "median", "minimum"):
                continue
            if x.dtype.kind == "u" and mode == "linear_ramp":
                continue  # NumPy's differences of unsigned numbers wrap round
            with each(x.dtype, width, how):
                theirs = np.pad(x, width, mode=mode, **how)  # type: ignore[call-overload]
                for ours in (ad.pad(ad.asarray(x), width, mode=mode, **how), np.pad(ad.asarray(x), width, mode, **how)):
                    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
                    expected = theirs
                    if mode == "empty":
                        (top, _), (left, _) = np.broadcast_to(width, (2, 2))
                        ours, expected = ours[top : top + len(x), left : left + 4], x
                    tolerance = 1e-6 if x.dtype == np.float32 else 1e-14
                    np.testing.assert_allclose(ours.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_borders_of_few_axes() -> None:
    """0-d, empty ones that need none, infinite ends, and widths by axis."""
    assert ad.pad(2.0, 3, mode="mean").item() == 2.0
    assert ad.pad(EMPTY, {1: 2}, mode="edge").shape == (0, 7)
    np.testing.assert_array_equal(ad.pad(A, {-1: (1, 2)}).numpy(), np.pad(A, ((0, 0), (1, 2))))
    line = np.array([INF, 1.0, 2.0, -INF])
    for kind in ("reflect", "symmetric"):
        for n in (1, 2, 3):
            ours = ad.pad(line[1:], (n, 0), mode=kind, reflect_type="odd").numpy()
            np.testing.assert_array_equal(ours, np.pad(line[1:], (n, 0), mode=kind, reflect_type="odd"))


def test_what_numpy_pads_by_each_side() -> None:
    values = ((1.0, 2.0), (3.0, 4.0))
    np.testing.assert_array_equal(
        np.pad(ad.asarray(A), ((1, 2), (2, 1)), constant_values=values).numpy(),  # type: ignore[call-overload]
        np.pad(A, ((1, 2), (2, 1)), constant_values=values),
    )


def test_logarithms_of_running_sums_of_nothing() -> None:
    x = ad.tensor([-INF, -INF, 1.0, -INF]).require_grad()
    out = ad.logcumsumexp(x)
    assert out.tolist() == [-INF, -INF, 1.0, 1.0]
    assert out.backward(ad.ones(4))[x].tolist() == [0.0, 0.0, 2.0, 0.0]
    assert ad.jvp(ad.logcumsumexp, (x.detach(),), (ad.ones(4),))[1].tolist() == [0.0, 0.0, 1.0, 1.0]
    x = np.array([1e8, 0.0, 1e8], dtype=np.float32)  # where the logarithm of 2 is rounded away
    assert ad.grad(lambda t: ad.logcumsumexp(t)[-1])(x).tolist() == [0.5, 0.0, 0.5]


def test_gradients_of_what_depends_on_values() -> None:
    x = ad.tensor([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]).require_grad()
    for found, expected in (
        (ad.unique(x, axis=0), [[1, 1], [1, 1], [0, 0]]),
        (ad.unique(x), [[1, 1], [1, 1], [0, 0]]),
        (ad.unique_consecutive(x[:, 0]), [[1, 0], [1, 0], [1, 0]]),
        (ad.trim_zeros(x[:, 0]), [[0, 0], [1, 0], [0, 0]]),
    ):
        assert found.sum().backward()[x].tolist() == expected
    for f in (lambda t: ad.unique(t, axis=0), ad.unique_consecutive, ad.trim_zeros):
        with pytest.raises(errors.ShapeError, match="vmap|batch"):
            ad.vmap(f)(A)


def test_places_of_extremes_in_the_flat_tensor() -> None:
    for x in (A, TIED, np.array(3.0), CUBE):
        for keep in (False, True):
            values, places = ad.max(ad.asarray(x), keepdims=keep, return_indices=True)
            assert values.shape == places.shape == (1,) * x.ndim * keep
            assert (values.item(), places.item()) == (x.max(), x.argmax())


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ad.chunk(A, 0), errors.ArgumentError, "positive"),
    (lambda: ad.chunk(A, 10**9), errors.ArgumentError, "too many"),
    (lambda: ad.split_with_sizes(A, (1, 1)), errors.ShapeError, "axis has size 3"),
    (lambda: ad.split_with_sizes(A, (4, -1)), errors.ShapeError, "not negative"),
    (lambda: ad.narrow(A, 0, 2, 2), errors.OutOfRangeError, "not inside"),
    (lambda: ad.narrow(A, 0, -4, 1), errors.OutOfRangeError, "not inside"),
    (lambda: ad.unflatten(A, 1, (3, -1)), errors.ShapeError, "do not fill"),
    (lambda: ad.unflatten(A, 1, ()), errors.ShapeError, "do not fill"),
    (lambda: ad.unflatten(A, 2, (1,)), errors.AxisError, "axis 2"),
    (lambda: ad.diag_embed(1.0), errors.AxisError, "lines"),
    (lambda: ad.diag_embed(A, 0, 1, 1), errors.AxisError, "different axes"),
    (lambda: ad.resize(A, (2, -1)), errors.ShapeError, "not negative"),
    (lambda: ad.trim_zeros(A, "x"), errors.ArgumentError, "'f', 'b' or 'fb'"),
    (lambda: ad.pad(A, 1, mode=lambda *a: None), errors.ArgumentError, "mode"),  # type: ignore[arg-type]
    (lambda: ad.pad(A, -1), errors.ArgumentError, "pad_width"),
    (lambda: ad.pad(A, (1, 2, 3)), errors.ArgumentError, "pad_width"),
    (lambda: ad.pad(A, 1, mode="mean", stat_length=0), errors.ArgumentError, "stat_length"),
    (lambda: ad.pad(A, 1, mode="linear_ramp", end_values="a"), errors.ArgumentError, "end_values"),
    (lambda: ad.pad(N, 1, mode="linear_ramp", end_values=1j), errors.DtypeError, "complex"),
    (lambda: ad.pad(A, 1, reflect_type="off"), errors.ArgumentError, "reflect_type"),
    (lambda: ad.pad(EMPTY, 1, mode="mean"), errors.ShapeError, "axis 0"),
    (lambda: ad.pad(C, 1, mode="maximum"), errors.DtypeError, "complex"),
    (lambda: ad.cartesian_prod(), errors.ArgumentError, "vector"),
    (lambda: ad.cartesian_prod(A), errors.ShapeError, "vectors"),
    (lambda: ad.combinations(A), errors.ShapeError, "vector"),
    (lambda: ad.combinations(LINE, -1), errors.ArgumentError, "non-negative"),
    (lambda: ad.kthvalue(A, 5), errors.OutOfRangeError, "between 1 and"),
    (lambda: ad.kthvalue(A, 0), errors.OutOfRangeError, "between 1 and"),
    (lambda: ad.kthvalue(C, 1), errors.DtypeError, "complex"),
    (lambda: ad.mode(EMPTY, axis=0), errors.ShapeError, "empty axis"),
    (lambda: ad.mode(C), errors.DtypeError, "complex"),
    (lambda: ad.max(A, (0, 1), return_indices=True), errors.ArgumentTypeError, "axis"),  # type: ignore[call-overload]
    (lambda: ad.max(EMPTY, return_indices=True), errors.ShapeError, "empty axis"),
    (lambda: ad.min(A, return_indices="yes"), errors.ArgumentTypeError, "True or False"),  # type: ignore[call-overload]
    (lambda: ad.unique(A, axis=2), errors.AxisError, "axis 2"),
    (lambda: ad.unique(A, return_index="yes"), errors.ArgumentTypeError, "True or False"),  # type: ignore[arg-type]
    (lambda: ad.unique_consecutive(A, axis=2), errors.AxisError, "axis 2"),
    (lambda: ad.masked_scatter(A, N, A), errors.DtypeError, "boolean"),
    (lambda: ad.masked_scatter(A, [True, False], A), errors.ShapeError, "broadcast"),
    (lambda: ad.masked_scatter(A, A < INF, LINE), errors.OutOfRangeError, "7 elements"),
    (lambda: ad.addmm(A, A, A), errors.ShapeError, "matmul"),
    (lambda: ad.addmm(A, A, A.T, beta=LINE), errors.ArgumentTypeError, "numbers"),  # type: ignore[arg-type]
    (lambda: ad.cdist(A, LINE), errors.ShapeError, "features"),
    (lambda: ad.cdist(A, A, -1.0), errors.ArgumentError, "zero or more"),
    (lambda: ad.cdist(normal(2, 1, 3), normal(3, 1, 3)), errors.ShapeError, "broadcast"),
    (lambda: ad.renorm(LINE, 2, 0, 1.0), errors.ShapeError, "two axes"),
    (lambda: ad.renorm(A, 0, 0, 1.0), errors.ArgumentError, "positive"),
    (lambda: ad.renorm(A, 2, 2, 1.0), errors.AxisError, "axis 2"),
    (lambda: ad.logcumsumexp(A), errors.AxisError, "axis="),
    (lambda: ad.gcd(A, 2), errors.DtypeError, "integers"),
    (lambda: ad.cbrt(C), errors.DtypeError, "real"),
    (lambda: ad.searchsorted(A, LINE), errors.ShapeError, "agree"),
    (lambda: ad.scatter(A, [0], 1.0, include_self="no"), errors.ArgumentTypeError, "True or False"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "kind", "text"), [pytest.param(*w, id=str(i)) for i, w in enumerate(WRONG)])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert text in str(caught.value)
