"""Gradients where mathematics leaves a choice: PyTorch's conventions, as docs/conventions.md lists them."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

inf, nan = math.inf, math.nan


def gradient(f: Any, *values: Any, device: Any = None) -> list[Any]:
    """The gradients of the sum of f at values."""
    leaves = [ad.tensor(v, dtype=ad.float64, device=device).require_grad() for v in values]
    with np.errstate(all="ignore"):
        grads = f(*leaves).sum().backward()
    return [grads[x].tolist() for x in leaves]


# function, arguments, gradients, and PyTorch's spelling where it answers the same
CONVENTIONS: dict[str, tuple[Any, list[Any], list[Any], str | None]] = {
    "relu at 0": (ad.nn.relu, [[-1.0, 0.0, 2.0]], [[0, 0, 1]], "lambda x: F.relu(x)"),
    "abs at 0": (ad.abs, [[-1.0, 0.0, 2.0]], [[-1, 0, 1]], "torch.abs"),
    "sign": (ad.sign, [[-1.0, 0.0]], [[0, 0]], "torch.sign"),
    "max of all, ties": (ad.max, [[3.0, 1.0, 3.0]], [[0.5, 0, 0.5]], "torch.max"),
    "min of all, ties": (ad.min, [[[1.0, 1.0], [1.0, 3.0]]], [[[1 / 3, 1 / 3], [1 / 3, 0]]], "torch.min"),
    "max along an axis, ties": (
        lambda x: ad.max(x, axis=1), [[[3.0, 3.0, 3.0], [1.0, 2.0, 2.0]]], [[[1 / 3] * 3, [0, 0.5, 0.5]]],
        "lambda x: torch.amax(x, 1)"
    ),
    "max along two axes, ties": (lambda x: ad.max(x, axis=(0, 1)), [[[2.0, 2.0]]], [[[0.5, 0.5]]],
        "lambda x: torch.amax(x, (0, 1))"),
    "cummax, ties": (lambda x: ad.cummax(x)[0], [[1.0, 3.0, 3.0, 2.0]], [[1, 1, 2, 0]],
        "lambda x: torch.cummax(x, 0)[0]"),
    "scatter, ties": (lambda x, v: ad.scatter(x, [0, 0], v, mode="max"), [[2.0, 1.0], [2.0, 2.0]],
        [[1 / 3, 1], [1 / 3, 1 / 3]],
        "lambda x, v: x.scatter_reduce(0, torch.tensor([0, 0]), v, 'amax')"),
    "products at a place, zeros": (lambda x, v: ad.scatter(x, [0, 0], v, mode="multiply"), [[2.0, 1.0], [0.0, 3.0]],
        [[0, 1], [6, 0]], "lambda x, v: x.scatter_reduce(0, torch.tensor([0, 0]), v, 'prod')"),
    "fmod": (ad.fmod, [[0.0, -3.0, 5.5], [2.0, 2.0, -2.0]], [[1, 1, 1], [0, 1, 2]], "torch.fmod"),
    "nansum": (ad.nansum, [[1.0, nan]], [[1, 0]], "torch.nansum"),
    "nan_to_num": (ad.nan_to_num, [[1.0, nan, inf]], [[1, 0, 0]], "torch.nan_to_num"),
    "interp at a point": (lambda x: ad.interp(x, [0.0, 1.0, 2.0], [0.0, 1.0, 5.0]), [[0.0, 1.0, 2.0, 3.0]],
        [[1, 4, 0, 0]], None),
    "maximum, ties": (ad.maximum, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], [[0, 0.5, 1], [1, 0.5, 0]], "torch.maximum"),
    "minimum, ties": (ad.minimum, [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], [[1, 0.5, 0], [0, 0.5, 1]], "torch.minimum"),
    "maximum with a scalar, ties": (
        lambda x: ad.maximum(x, 0.0), [[-1.0, 0.0, 1.0]], [[0, 0.5, 1]],
        "lambda x: torch.maximum(x, torch.zeros(()).double())"
    ),
    "maximum beside nan": (ad.maximum, [[nan, 1.0], [1.0, nan]], [[1, 1], [1, 1]], "torch.maximum"),
    "clip at its bounds": (lambda x: ad.clip(x, 0, 1), [[-1.0, 0.0, 0.5, 1.0, 2.0]], [[0, 1, 1, 1, 0]],
        "lambda x: torch.clamp(x, 0, 1)"),
    "clip between equal bounds": (lambda x: ad.clip(x, 1, 1), [[0.0, 1.0, 2.0]], [[0, 1, 0]],
        "lambda x: torch.clamp(x, 1, 1)"),
    "clip at tensor bounds": (
        ad.clip, [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], [[1, 1, 0], [0, 0, 0], [0, 0, 1]], "torch.clamp"
    ),
    "clip between crossed bounds": (
        ad.clip, [[0.0, 1.5, 3.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0]], [[0, 0, 0], [0, 0, 0], [1, 1, 1]], "torch.clamp"
    ),
    "clip where all meet": (ad.clip, [[1.0], [1.0], [1.0]], [[1], [0], [0]], "torch.clamp"),
    "x ** 0.0": (lambda x: x**0.0, [[0.0, 2.0, inf]], [[0, 0, 0]], "lambda x: x ** 0.0"),
    "x ** 0": (lambda x: x**0, [[0.0, -2.0]], [[0, 0]], "lambda x: x ** 0"),
    "x ** 1 at 0": (lambda x: x**1, [[0.0, 2.0]], [[1, 1]], "lambda x: x ** 1"),
    "x ** 2 at 0": (lambda x: x**2, [[0.0, 2.0]], [[0, 4]], "lambda x: x ** 2"),
    "x ** y with x = 0": (ad.pow, [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]], [[0, 1, 0], [0, 0, 0]], "torch.pow"),
    "0 ** y": (lambda y: 0.0**y, [[0.0, 1.0, 2.5]], [[0, 0, 0]], "lambda y: 0.0 ** y"),
    "x ** 0.5 at 0": (lambda x: x**0.5, [[0.0]], [[inf]], "lambda x: x ** 0.5"),
    "sqrt at 0": (ad.sqrt, [[0.0]], [[inf]], "torch.sqrt"),
    "log at 0": (ad.log, [[0.0]], [[inf]], "torch.log"),
    "asin at its ends": (ad.asin, [[-1.0, 1.0]], [[inf, inf]], "torch.asin"),
    "atan2 at the origin": (ad.atan2, [[0.0], [0.0]], [[0], [0]], "torch.atan2"),
    "floor, ceil, trunc, round": (
        lambda x: x.floor() + x.ceil() + ad.trunc(x) + x.round(), [[0.0, 0.5, 1.0]], [[0, 0, 0]],
        "lambda x: x.floor() + x.ceil() + x.trunc() + x.round()",
    ),
    "remainder at multiples": (lambda x: ad.remainder(x, 2.0), [[0.0, 2.0, 3.0]], [[1, 1, 1]],
        "lambda x: torch.remainder(x, 2.0)"),
    "remainder, the divisor": (ad.remainder, [[7.0], [2.0]], [[1], [-3]], "torch.remainder"),
    "norm at 0": (ad.linalg.norm, [[0.0, 0.0]], [[0, 0]], "torch.linalg.norm"),
    "vector_norm along an axis at 0": (
        lambda x: ad.linalg.vector_norm(x, axis=1), [[[0.0, 0.0], [3.0, 4.0]]], [[[0, 0], [0.6, 0.8]]],
        "lambda x: torch.linalg.vector_norm(x, dim=1)"
    ),
    "matrix_norm at 0": (ad.linalg.matrix_norm, [[[0.0, 0.0]]], [[[0, 0]]], "torch.linalg.matrix_norm"),
    "std of equal values": (ad.std, [[2.0, 2.0]], [[0, 0]], "lambda x: torch.std(x, correction=0)"),
    "prod with a zero": (ad.prod, [[2.0, 0.0, 3.0]], [[0, 6, 0]], "torch.prod"),
    "prod with two zeros": (ad.prod, [[2.0, 0.0, 0.0]], [[0, 0, 0]], "torch.prod"),
    "cumulative_prod with zeros": (
        ad.cumulative_prod, [[2.0, 0.0, 3.0, 0.0, 5.0]], [[1, 8, 0, 0, 0]], "lambda x: torch.cumprod(x, 0)"
    ),
    "det of a singular matrix": (ad.linalg.det, [[[1.0, 2.0], [2.0, 4.0]]], [[[4, -2], [-2, 1]]], None),  # PyTorch: 0
    "max_pool2d, ties": (
        lambda x: ad.nn.max_pool2d(x, 2), [[[[[1.0, 1.0], [1.0, 1.0]]]]], [[[[[1, 0], [0, 0]]]]],
        "lambda x: F.max_pool2d(x, 2)"
    ),
    "logsumexp with an infinity": (ad.special.logsumexp, [[-inf, 0.0]], [[0, 1]], "lambda x: torch.logsumexp(x, 0)"),
    "logsumexp of nothing but minus infinity": (ad.special.logsumexp, [[-inf, -inf]], [[0, 0]], None),
    "logaddexp with an infinity": (ad.logaddexp, [[-inf], [0.0]], [[0], [1]], "torch.logaddexp"),
    "sort, ties": (lambda x: ad.sort(x) * ad.tensor([1.0, 2.0, 3.0]), [[1.0, 0.0, 0.0]], [[3, 1, 2]], None),
    "reciprocal at 0": (ad.reciprocal, [[0.0]], [[-inf]], "torch.reciprocal"),
}  # fmt: skip
for _order in (0.5, 1, 1.5, 2, 3, inf, -inf, -1):
    for _point, _spot in (([0.0, 0.0], "the origin"), ([0.0, 4.0, 0.0], "zeros"), ([-2.0, 2.0], "ties")):
        CONVENTIONS[f"vector_norm {_order} at {_spot}"] = (
            lambda x, o=_order: ad.linalg.vector_norm(x, ord=o), [_point], [],
            f"lambda x: torch.linalg.vector_norm(x, {_order})",
        )  # fmt: skip


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions(name: str, device: Any) -> None:
    f, values, expected, _ = CONVENTIONS[name]
    found = gradient(f, *values)
    for ours, theirs in zip(found, expected, strict=bool(expected)):
        np.testing.assert_allclose(ours, theirs)
    assert expected or not np.isnan(found[0]).any()


@pytest.mark.parametrize("name", CONVENTIONS)
def test_strong_zeros_keep_the_conventions(name: str) -> None:
    f, values, _, _ = CONVENTIONS[name]
    with ad.use_device("autodiff[strong_zero]<numpy>"):
        found = gradient(f, *values)
    for ours, theirs in zip(found, gradient(f, *values), strict=True):
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("name", [name for name, row in CONVENTIONS.items() if row[3]])
def test_pytorch_has_the_same_conventions(name: str) -> None:
    torch = peer("torch")
    f, values, _, theirs = CONVENTIONS[name]
    assert theirs is not None
    g = eval(theirs, {"torch": torch, "F": torch.nn.functional, "inf": inf})
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    out = g(*leaves)
    for ours, other in zip(gradient(f, *values), torch.autograd.grad(out.sum(), leaves), strict=True):
        np.testing.assert_allclose(ours, other.tolist(), atol=1e-15)


@pytest.mark.parametrize(
    ("f", "z", "expected"),
    [
        (lambda z: ad.abs(z), 0j, 0),
        (lambda z: ad.abs(z), 3 + 4j, 0.6 + 0.8j),
        (lambda z: ad.sign(z).real, 0j, 0),
        (lambda z: ad.linalg.vector_norm(z), 0j, 0),
        (lambda z: abs(z) ** 2, 1 + 2j, 2 + 4j),
        (lambda z: z.real, 1 + 2j, 1),
        (lambda z: z.imag, 1 + 2j, 1j),
        (lambda z: (z * z.conj()).real, 1 + 2j, 2 + 4j),
        (lambda z: (z * z).real, 1 + 2j, 2 - 4j),
        (lambda z: z.exp().real, 0j, 1),
    ],
)
def test_complex_gradients_are_the_direction_of_steepest_ascent(f: Any, z: complex, expected: complex) -> None:
    x = ad.tensor([z], dtype=ad.complex128).require_grad()
    np.testing.assert_allclose(f(x).sum().backward()[x].numpy(), [expected])


def test_topk_gives_the_gradient_of_ties_to_those_it_took(device: Any) -> None:
    x = ad.tensor([1.0, 1.0, 1.0, 0.0]).require_grad()
    values, places = ad.topk(x, 2)
    found = values.sum().backward()[x].numpy()
    assert sorted(np.flatnonzero(found)) == sorted(places.tolist())
    assert found.sum() == 2


def test_second_derivatives_at_singular_points() -> None:
    """Where the first derivative is constant around the point, or there by convention."""
    x = ad.zeros(3, dtype=ad.float64).require_grad()
    for f in (
        ad.nn.relu,
        ad.abs,
        lambda t: t**2.0 * 0 + t**0.0,
        lambda t: ad.clip(t, 0, 1),
        lambda t: t**1,
        ad.linalg.norm,
    ):
        high = ad.from_inner(x).require_grad()
        first = f(high).sum().backward()[high]
        assert first.tolist() in ([0.0] * 3, [1.0] * 3)
        if first.is_tracked():
            assert np.isfinite(first.sum().backward()[x].numpy()).all()


# functions whose first derivative at a point is 0 by convention, and so are all further ones
FLAT: dict[str, tuple[Any, list[Any], Any]] = {
    "vector_norm": (lambda x: ad.linalg.vector_norm(x * 100), [[0.0, 0.0]], ad.float64),
    "vector_norm along an axis": (lambda x: ad.linalg.vector_norm(x, axis=1), [[[0.0, 0.0]]], ad.float64),
    "vector_norm, complex": (ad.linalg.vector_norm, [[0j, 0j]], ad.complex128),
    "matrix_norm": (ad.linalg.matrix_norm, [[[0.0, 0.0]]], ad.float64),
    "std": (ad.std, [[2.0, 2.0, 2.0]], ad.float64),
    "std, complex": (ad.std, [[1 + 2j, 1 + 2j]], ad.complex128),
    "abs": (ad.abs, [[0.0]], ad.float64),
    "abs, complex": (ad.abs, [[0j]], ad.complex128),
    "sign, complex": (lambda z: ad.sign(z).real, [[0j]], ad.complex128),
    "atan2": (ad.atan2, [[0.0], [0.0]], ad.float64),
    "atan2 of a number": (lambda x: ad.atan2(x, 0.0), [[0.0]], ad.float64),
    "x ** y": (ad.pow, [[0.0], [0.0]], ad.float64),
    "x ** y, complex": (lambda x, y: ad.pow(x, y).real, [[0j], [0j]], ad.complex128),
    "logsumexp": (ad.special.logsumexp, [[-inf, -inf]], ad.float64),
}


def flat_function(name: str) -> tuple[Any, list[Any]]:
    """The function as a real scalar, and where it is flat."""
    f, values, dtype = FLAT[name]
    return lambda *xs: f(*xs).sum(), [ad.tensor(v, dtype=dtype) for v in values]


@pytest.mark.parametrize("name", FLAT)
def test_where_a_derivative_is_zero_by_convention_so_are_the_next(name: str, device: Any) -> None:
    f, values = flat_function(name)
    leaves = [x.require_grad() for x in values]
    for _ in range(2):
        leaves = [ad.from_inner(x, device.over(x.device)).require_grad() for x in leaves]
    roots = [f(*leaves)]
    for order in (1, 2, 3):
        containers = [root.backward(retain_graph=True) for root in roots]
        found = [grads[x] for grads in containers for x in leaves if x in grads]
        assert order > 1 or len(found) == len(values)
        for g in found:
            np.testing.assert_array_equal(g.numpy(), 0, f"order {order}")
        leaves = [x.inner() for x in leaves]
        ramps = [np.arange(1.0, 1 + g.size).reshape(g.shape) for g in found]
        roots = [(g.real * ramp).sum() for g, ramp in zip(found, ramps, strict=True) if g.is_tracked()]


@pytest.mark.parametrize("name", FLAT)
def test_forward_mode_is_zero_there_too(name: str) -> None:
    f, values = flat_function(name)
    primals = tuple(values)
    tangents = tuple([ad.arange(1.0, 1 + x.size).astype(x.dtype).reshape(x.shape) for x in values])

    def along(*xs: Any) -> Any:
        return ad.jvp(f, xs, tangents)[1]

    with np.errstate(all="ignore"):
        found = [along(*primals)]
        found.append(ad.jvp(along, primals, tangents)[1])  # forward over forward
        found += ad.grad(along, range(len(primals)))(*primals)  # reverse over forward
        found += ad.jvp(ad.grad(f, range(len(primals))), primals, tangents)[1]  # forward over reverse
    for g in found:
        np.testing.assert_array_equal(g.numpy(), 0)


def test_the_mixed_second_derivative_of_a_zeroth_power() -> None:
    """d/dx d/dy x^y at y = 0 is 1 / x, in either order."""
    x, y = (ad.tensor([v], dtype=ad.float64).require_grad() for v in (4.0, 0.0))
    high = [ad.from_inner(v).require_grad() for v in (x, y)]
    first = (high[0] ** high[1]).backward()
    assert first[high[0]].backward()[y].tolist() == [0.25]
    assert first[high[1]].backward()[x].tolist() == [0.25]


def test_powers_of_zero_beside_nan() -> None:
    assert np.isnan(gradient(lambda y: 0.0**y, [nan])[0]).all()
    assert gradient(lambda y: 0.0**y, [-1.0]) == [[-inf]]


@pytest.mark.parametrize("large", [1e8, -1e8])
def test_weights_beside_large_elements_sum_to_one(large: float, device: Any) -> None:
    """The logarithm of their number is rounded away in float32, but not from their derivative."""
    x = ad.tensor([large, large]).require_grad()
    assert ad.special.logsumexp(x).backward()[x].tolist() == [0.5, 0.5]
    ones = ad.ones(2)
    assert ad.jvp(ad.special.logsumexp, (x.detach(),), (ones,))[1].item() == 1.0


@pytest.mark.parametrize("leaf", ["numpy", "reference", "array_api_strict"])
def test_logarithms_of_softmax_beside_large_elements(leaf: str) -> None:
    backend = ad.ArrayAPI(pytest.importorskip(leaf)) if leaf == "array_api_strict" else leaf
    x = ad.tensor([[2.0**60, 2.0**60]], dtype=ad.float64, device=backend)
    np.testing.assert_allclose(ad.special.log_softmax(x).numpy(), [[-math.log(2)] * 2])
    labels = ad.tensor([1], device=backend)
    np.testing.assert_allclose(ad.nn.cross_entropy(x, labels).item(), math.log(2))


@pytest.mark.parametrize("logit", [-inf, -20.0, 0.0, 3.0, 20.0, inf])
@pytest.mark.parametrize("target", [0.0, 0.3, 1.0])
def test_binary_cross_entropy_of_any_logit(logit: float, target: float) -> None:
    """As the double precision of the definition has it, and as PyTorch has it, where that is no nan."""
    x, z = ad.tensor([logit]).require_grad(), ad.tensor([target]).require_grad()
    loss = ad.nn.binary_cross_entropy_with_logits(x, z)
    grads = loss.backward()
    with np.errstate(divide="ignore"):
        p, q = (1 / (1 + np.exp(v)) for v in (-logit, logit))
        expected = -sum([w * np.log(v) for w, v in ((target, p), (1 - target, q)) if w], start=np.float64(0))
    np.testing.assert_allclose(loss.item(), expected, rtol=1e-6)
    np.testing.assert_allclose(grads[x].item(), (1 - target) * p - target * q, rtol=1e-6, atol=1e-7 * (0 < target < 1))
    assert grads[z].item() == -logit
    torch = peer("torch")
    theirs = [torch.tensor([v], requires_grad=True) for v in (logit, target)]
    value = torch.nn.functional.binary_cross_entropy_with_logits(*theirs)
    if not value.isnan():
        np.testing.assert_allclose(loss.item(), value.item(), atol=1e-7)
        for ours, other in zip((x, z), torch.autograd.grad(value, theirs), strict=True):
            np.testing.assert_allclose(grads[ours].item(), other.item(), atol=1e-7)


def test_singular_matrices_have_no_third_derivative_of_det() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(errors.SingularError, match="(?i)singular"):
        ad.jet(ad.linalg.det, (x,), ([np.eye(2), np.eye(2), np.eye(2)],))


SLOPES: dict[str, tuple[Any, Any, list[float]]] = {  # near to where digits are lost, or what leads to them overflows
    "rgamma": (ad.special.rgamma, mpmath.rgamma, [-160.0, -160.5, -169.0, -170.0, -170.5]),
    "gamma": (ad.special.gamma, lambda x: mpmath.gamma(x) * mpmath.digamma(x), [-1e-150, 1e-150, 171.0, 171.3]),
    "acosh": (ad.acosh, lambda x: 1 / mpmath.sqrt(x * x - 1), [1.0 + 1e-13, 1.0001, 1e160]),
    "atanh": (ad.atanh, lambda x: 1 / (1 - x * x), [1.0 - 1e-13, 1e-13 - 1.0, 0.9999]),
    "asin": (ad.asin, lambda x: 1 / mpmath.sqrt(1 - x * x), [1.0 - 1e-13, 1e-13 - 1.0, 0.9999]),
    "acos": (ad.acos, lambda x: -1 / mpmath.sqrt(1 - x * x), [1.0 - 1e-13, 1e-13 - 1.0, 0.9999]),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_are_exact_as_long_as_they_are_finite(name: str) -> None:
    f, exact, points = SLOPES[name]
    with np.errstate(all="ignore"), mpmath.workdps(400):
        for x in points:
            slope = float(mpmath.diff(exact, mpmath.mpf(x)) if name == "rgamma" else exact(mpmath.mpf(x)))
            assert np.isfinite(slope)
            for found in (ad.grad(f)(x), ad.jvp(f, (x,), (1.0,))[1], ad.compile(ad.grad(f))(x)):
                np.testing.assert_allclose(found, slope, rtol=1e-13)


@pytest.mark.parametrize(
    ("f", "x", "second"),
    [(ad.acosh, 1.0, -inf), (ad.atanh, 1.0, inf), (ad.atanh, -1.0, -inf), (ad.asin, 1.0, inf), (ad.asin, -1.0, -inf)],
)
def test_infinite_second_slopes_are_so_in_every_mode(f: Any, x: float, second: float) -> None:
    with np.errstate(all="ignore"):
        for first in (ad.grad(f), lambda x: ad.jvp(f, (x,), (1.0,))[1]):
            assert ad.grad(first)(x) == ad.jvp(first, (x,), (1.0,))[1] == ad.compile(ad.grad(first))(x) == second
