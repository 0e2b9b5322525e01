"""NumPy's reductions called with tensors and `where=`, `initial=` and `dtype=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_numpy_protocols import V, W

import adjoint as ad

MASK = np.array([[True, False, True], [False, True, True]])
REDUCED: dict[str, Callable[[Any], Any]] = {
    **{
        f"{name} of {which}": (
            lambda a, f=getattr(np, name), axis=axis, where=where: f(a, axis=axis, where=where, **_begun(f, 2.5))
        )
        for name in "sum prod max amin mean var std nansum nanprod nanmax nanmin nanmean nanvar nanstd any all".split()
        for which, axis, where in (("some", None, MASK), ("some in rows", 1, MASK), ("columns", (0, 1), MASK[0]))
    },
    **{
        f"{name} from": lambda a, f=getattr(np, name): f(a, axis=0, initial=3.75)
        for name in "sum prod max amin nansum nanprod nanmax nanmin".split()
    },
    **{
        f"{name} in float32": lambda a, f=getattr(np, name): f(a, axis=0, dtype=np.float32)
        for name in "sum prod mean var std nansum nanprod nanmean nanvar nanstd".split()
    },
    "std with ddof": lambda a: np.std(a, axis=1, ddof=1, where=MASK, keepdims=True),
    "add.reduce": lambda a: np.add.reduce(a, where=MASK, initial=1.5),
    "multiply.reduce": lambda a: np.multiply.reduce(a, axis=1, where=MASK),
    "maximum.reduce": lambda a: np.maximum.reduce(a, axis=None, where=MASK, initial=-1.0),
    "logaddexp.reduce": lambda a: np.logaddexp.reduce(a, axis=1, where=MASK, initial=0.5),
    "a mask that is a tensor": lambda a: np.sum(a, where=a > 1.5),
    "sum of integers": lambda a: np.sum(np.floor(a).astype(np.int64), initial=1.5),
}


def _begun(f: Any, initial: float) -> dict[str, float]:
    """The initial value that a masked extreme needs; other reductions are called without one."""
    return {"initial": initial} if f in (np.max, np.amin, np.nanmax, np.nanmin) else {}


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_of_some_elements_from_an_initial_value_on(name: str) -> None:
    f = REDUCED[name]
    out, wanted = f(ad.tensor(V).require_grad()), f(V)
    assert isinstance(out, ad.Tensor)
    assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-6 if out.dtype is ad.float32 else 1e-13)
    if out.dtype is ad.float64:
        ad.testing.check_grads(f, (V + 0.01 * W,))


@pytest.mark.parametrize("name", [name for name in REDUCED if " of some" in name and name[:3] not in ("any", "all")])
def test_what_is_left_out_has_no_gradient_also_where_it_is_nan(name: str) -> None:
    f, holes = REDUCED[name], np.where(MASK, V, np.nan)
    slopes = [ad.grad(lambda a: f(a).sum())(x) for x in (V, holes)]
    assert np.all(slopes[0][~MASK] == 0)
    np.testing.assert_array_equal(slopes[1], slopes[0])
    second = ad.hessian(lambda a: f(a).sum())(holes)
    assert np.isfinite(second).all()


def test_an_initial_value_may_be_a_tensor() -> None:
    start = ad.tensor(3.0).require_grad()
    assert np.prod(ad.tensor(V), initial=start).backward()[start].item() == pytest.approx(np.prod(V))


ALONG = (
    "sum prod max min amax amin any all argmax argmin count_nonzero ptp mean var std median average nansum nanprod "
    "nanmax nanmin nanmean nanvar nanstd nanmedian nanargmax nanargmin squeeze sort argsort flip cumsum cumprod "
    "nancumsum nancumprod expand_dims"
).split()
OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ALONG},
    **{
        f"{name} with keepdims": lambda x, f=getattr(np, name), **options: f(x, keepdims=True, **options)
        for name in "sum prod max any argmin count_nonzero mean var nansum nanmax nanmean nanstd nanargmax".split()
    },
    **{
        f"{name}.reduce": getattr(np, name).reduce
        for name in "add multiply maximum minimum logical_and logical_or logaddexp".split()
    },
    "sum from": lambda x, **options: np.sum(x, initial=1.5, **options),
    "quantile": lambda x, **options: np.quantile(x, 0.5, **options),
    "take": lambda x, **options: np.take(x, 0, **options),
    "repeat": lambda x, **options: np.repeat(x, 2, **options),
    "compress": lambda x, **options: np.compress([True], x, **options),
    "argpartition": lambda x, **options: np.argpartition(x, 0, **options),
}
AXES: list[Any] = [0, -1, np.int64(0), 1, -2, None, (), (0,), (0, 0), "left out"]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_number_has_the_axes_that_it_has_in_numpy(name: str) -> None:
    """0 and -1 are axes of a number to sums and the like, and to averages not."""
    f = OF_NUMBERS[name]
    for axis in AXES:
        options = {} if axis == "left out" else {"axis": axis}
        try:
            wanted = f(np.float64(2.5), **options)
        except (ValueError, TypeError):
            with pytest.raises((ValueError, TypeError)):
                f(ad.tensor(2.5, dtype=ad.float64), **options)
            continue
        out = f(ad.tensor(2.5, dtype=ad.float64), **options)
        assert (out.shape, out.dtype.kind) == (np.shape(wanted), np.asarray(wanted).dtype.kind), axis
        np.testing.assert_array_equal(out.numpy(), wanted)
        if out.dtype.kind == "f":
            ad.testing.check_grads(lambda x, options=options: f(x * x, **options).sum(), (np.float64(2.5),))
