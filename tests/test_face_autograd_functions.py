"""Every function that HIPS autograd differentiates: `adjoint.autograd` gives the same values and gradients, twice.

Of complex numbers the convention is HIPS autograd's, too: nothing is conjugated.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from numpy.testing import assert_allclose

import adjoint.autograd as face
import adjoint.autograd.numpy as face_numpy
from adjoint.autograd.scipy import linalg, signal, special, stats

hips = peer("autograd")
peer("scipy")
hips_numpy, hips_stats = importlib.import_module("autograd.numpy"), importlib.import_module("autograd.scipy.stats")
hips_linalg, hips_signal, hips_special = (
    importlib.import_module(f"autograd.scipy.{name}") for name in ("linalg", "signal", "special")
)
primitive_vjps = hips.core.primitive_vjps

pytestmark = pytest.mark.peers

OURS = SimpleNamespace(np=face_numpy, special=special, stats=stats, linalg=linalg, signal=signal)
THEIRS = SimpleNamespace(np=hips_numpy, special=hips_special, stats=hips_stats, linalg=hips_linalg, signal=hips_signal)

rng = np.random.default_rng(7)
X, Y = rng.uniform(0.3, 0.9, (2, 3)), rng.uniform(1.1, 1.9, (2, 3))
ROW, COLUMN = rng.uniform(0.3, 0.9, 3), rng.uniform(1.1, 1.9, (2, 1))
SIGNED, LINE = rng.normal(size=(3, 4)), rng.normal(size=6)
CUBE, SQUARE = rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 3))
POSITIVE = SQUARE @ SQUARE.T + 3 * np.eye(3)
BANDS = rng.normal(size=(3, 5)) + np.array([[0], [5], [0]])
WIDE = rng.normal(size=(2, 4, 6))


def phase(z: np.ndarray[Any, Any], seed: int = 3) -> np.ndarray[Any, Any]:
    """The numbers with imaginary parts."""
    return z + 1j * np.random.default_rng(seed).uniform(-0.5, 0.5, z.shape)


Case = tuple[Callable[..., Any], tuple[Any, ...]]


def unary(name: str, x: Any = X) -> Case:
    return (lambda n, x: getattr(n.np, name)(x), (x,))


def binary(name: str, x: Any = X, y: Any = Y) -> Case:
    return (lambda n, x, y: getattr(n.np, name)(x, y), (x, y))


def special_of(name: str, *args: Any) -> Case:
    return (lambda n, *xs: getattr(n.special, name)(*xs), args)


def fft_of(name: str, x: Any, *args: Any, **options: Any) -> Case:
    return (lambda n, x: getattr(n.np.fft, name)(x, *args, **options), (x,))


ELEMENTWISE = (
    "abs absolute arccos arcsin arcsinh arctan arctanh cos cosh deg2rad degrees exp exp2 expm1 fabs log log10 log1p "
    "log2 negative rad2deg radians reciprocal sin sinc sinh sqrt square tan tanh acos asin asinh atan atanh nan_to_num "
    "real imag real_if_close conj conjugate angle"
).split()
BINARY = (
    "add arctan2 atan2 divide fmax fmin hypot logaddexp logaddexp2 maximum minimum mod multiply power pow remainder "
    "subtract true_divide"
).split()
CASES: dict[str, Case] = {
    **{name: unary(name) for name in ELEMENTWISE},
    "arccosh": unary("arccosh", Y),
    "acosh": unary("acosh", Y),
    **{name: binary(name) for name in BINARY},
    **{f"{name} broadcast": binary(name, ROW, COLUMN) for name in ("add", "divide", "power", "maximum", "arctan2")},
    "amax": (lambda n, x: n.np.amax(x, axis=1), (X,)),
    "amin": (lambda n, x: n.np.amin(x, axis=(0, 1)), (X,)),
    "max": (lambda n, x: n.np.max(x), (X,)),
    "max of ties": (lambda n, x: n.np.max(n.np.round(x) + x - x, axis=0), (np.round(SIGNED),)),
    "min": (lambda n, x: n.np.min(x, axis=0, keepdims=True), (X,)),
    "sum": (lambda n, x: n.np.sum(x, axis=1), (X,)),
    "sum of a list": (lambda n, x: n.np.sum([x[0], x[1]]), (X,)),
    "prod": (lambda n, x: n.np.prod(x, axis=0), (X,)),
    "mean": (lambda n, x: n.np.mean(x, axis=1, keepdims=True), (X,)),
    "var": (lambda n, x: n.np.var(x, axis=1, ddof=1), (X,)),
    "std": (lambda n, x: n.np.std(x), (X,)),
    "cumsum": (lambda n, x: n.np.cumsum(x, axis=1), (SIGNED,)),
    "cumsum of all": (lambda n, x: n.np.cumsum(x), (LINE,)),
    "diff": (lambda n, x: n.np.diff(x, n=2, axis=1), (SIGNED,)),
    "gradient": (lambda n, x: n.np.gradient(x, axis=0), (WIDE[0],)),
    "gradient of both": (lambda n, x: n.np.gradient(x, axis=1) * 2, (WIDE[0],)),
    "array_split": (lambda n, x: n.np.array_split(x, 4)[1] * 2, (LINE,)),
    "split": (lambda n, x: n.np.split(x, [2, 3])[2], (LINE,)),
    "vsplit": (lambda n, x: n.np.vsplit(x, 3)[1], (SIGNED,)),
    "hsplit": (lambda n, x: n.np.hsplit(x, 2)[1], (SIGNED,)),
    "dsplit": (lambda n, x: n.np.dsplit(x, 2)[0], (CUBE,)),
    "astype": (lambda n, x: x.astype(np.float64) * 2, (X,)),
    "atleast_1d": (lambda n, x: n.np.atleast_1d(x[0, 0]), (X,)),
    "atleast_2d": (lambda n, x: n.np.atleast_2d(x), (LINE,)),
    "atleast_3d": (lambda n, x: n.np.atleast_3d(x), (X,)),
    "broadcast_to": (lambda n, x: n.np.broadcast_to(x, (2, 3)), (COLUMN,)),
    "clip": (lambda n, x: n.np.clip(x, 0.4, 0.7), (X,)),
    "concatenate": (lambda n, x, y: n.np.concatenate([x, y], axis=1), (X, Y)),
    "array": (lambda n, x: n.np.array([[x[0, 0], 1.0], [2, x[1, 2] * x[0, 0]]]), (X,)),
    "stack": (lambda n, x, y: n.np.stack([x, y], axis=1), (X, Y)),
    "vstack": (lambda n, x, y: n.np.vstack([x, y]), (X, Y)),
    "hstack": (lambda n, x, y: n.np.hstack([x, y]), (X, Y)),
    "column_stack": (lambda n, x: n.np.column_stack([x, x * x]), (LINE,)),
    "append": (lambda n, x, y: n.np.append(x, y), (X, ROW)),
    "select": (lambda n, x: n.np.select([x > 0.5, x > 0.3], [x * x, 3 * x], default=1.0), (LINE,)),
    "where": (lambda n, x, y: n.np.where(X > 0.5, x, y), (X, Y)),
    "full": (lambda n, x: n.np.full((2, 2), x[0, 0]), (X,)),
    "r_": (lambda n, x: n.np.r_[x, 2.0, x[:2]], (LINE,)),
    "c_": (lambda n, x: n.np.c_[x, x * 2], (LINE,)),
    "cross": (lambda n, x, y: n.np.cross(x, y), (SQUARE, Y[0] + SQUARE)),
    "diag": (lambda n, x: n.np.diag(x), (LINE,)),
    "diag of a matrix": (lambda n, x: n.np.diag(x, 1), (SQUARE,)),
    "diagonal": (lambda n, x: n.np.diagonal(x, axis1=-1, axis2=-2), (rng.normal(size=(2, 3, 3)),)),
    "make_diagonal": (lambda n, x: n.np.make_diagonal(x, axis1=-1, axis2=-2), (X,)),
    "expand_dims": (lambda n, x: n.np.expand_dims(x, 1), (X,)),
    "fliplr": unary("fliplr", SIGNED),
    "flipud": unary("flipud", SIGNED),
    "rot90": (lambda n, x: n.np.rot90(x, 3), (SIGNED,)),
    "linspace": (lambda n, x: n.np.linspace(x[0, 0], x[1, 1], 5), (X,)),
    "moveaxis": (lambda n, x: n.np.moveaxis(x, 0, 2), (CUBE,)),
    "rollaxis": (lambda n, x: n.np.rollaxis(x, 2, 1), (CUBE,)),
    "swapaxes": (lambda n, x: n.np.swapaxes(x, 0, 2), (CUBE,)),
    "transpose": (lambda n, x: n.np.transpose(x, (1, 2, 0)), (CUBE,)),
    "permute_dims": (lambda n, x: n.np.permute_dims(x, (1, 2, 0)), (CUBE,)),
    "T": (lambda n, x: x.T, (CUBE,)),
    "pad": (lambda n, x: n.np.pad(x, [(1, 0), (2, 1)], "constant"), (X,)),
    "partition": (lambda n, x: n.np.partition(x, 2), (LINE,)),
    "sort": unary("sort", LINE),
    "ravel": unary("ravel", SIGNED),
    "repeat": (lambda n, x: n.np.repeat(x, 3, axis=1), (X,)),
    "reshape": (lambda n, x: n.np.reshape(x, (3, 2)), (X,)),
    "reshape by columns": (lambda n, x: n.np.reshape(x, (3, 2), order="F"), (X,)),
    "roll": (lambda n, x: n.np.roll(x, 2, axis=1), (SIGNED,)),
    "squeeze": unary("squeeze", COLUMN),
    "tile": (lambda n, x: n.np.tile(x, (2, 3)), (X,)),
    "trace": unary("trace", SIGNED),
    "tril": (lambda n, x: n.np.tril(x, 1), (SIGNED,)),
    "triu": (lambda n, x: n.np.triu(x, -1), (SIGNED,)),
    "index": (lambda n, x: x[1:, ::2], (SIGNED,)),
    "index by arrays": (lambda n, x: x[np.array([0, 0, 2]), np.array([1, 1, 3])], (SIGNED,)),
    "index by a mask": (lambda n, x: x[x > 0], (SIGNED,)),
    "iteration": (lambda n, x: sum([v * i for i, v in enumerate(x)]), (SIGNED,)),
    "dot": binary("dot", SIGNED, SIGNED.T.copy()),
    "dot of vectors": binary("dot", LINE, LINE + 1),
    "dot of stacks": binary("dot", CUBE, SIGNED.T.copy()),
    "matmul": binary("matmul", CUBE, SIGNED.T.copy()),
    "matmul of vectors": binary("matmul", SIGNED.T.copy(), ROW),
    "inner": binary("inner", X, Y),
    "outer": binary("outer", LINE, ROW),
    "kron": binary("kron", X, SQUARE),
    "tensordot": (lambda n, x, y: n.np.tensordot(x, y, axes=([1, 2], [0, 1])), (CUBE, SIGNED)),
    "einsum": (lambda n, x, y: n.np.einsum("abc,bc,a->c", x, y, np.ones(2)), (CUBE, SIGNED)),
    "einsum by lists": (lambda n, x, y: n.np.einsum(x, [0, 1, 2], y, [1, 2], [0, 2]), (CUBE, SIGNED)),
    # numpy.linalg
    "linalg.det": (lambda n, x: n.np.linalg.det(x), (POSITIVE,)),
    "linalg.slogdet": (lambda n, x: n.np.linalg.slogdet(x)[1], (SQUARE,)),
    "linalg.inv": (lambda n, x: n.np.linalg.inv(x), (POSITIVE,)),
    "linalg.pinv": (lambda n, x: n.np.linalg.pinv(x), (SIGNED,)),
    "linalg.solve": (lambda n, x, y: n.np.linalg.solve(x, y), (POSITIVE, SQUARE)),
    "linalg.solve of a vector": (lambda n, x, y: n.np.linalg.solve(x, y), (POSITIVE, ROW)),
    "linalg.cholesky": (lambda n, x: n.np.linalg.cholesky(x), (POSITIVE,)),
    "linalg.eigh": (lambda n, x: n.np.linalg.eigh(x)[0], (SQUARE,)),
    "linalg.eigh vectors": (lambda n, x: n.np.linalg.eigh(x)[1] ** 2, (SQUARE,)),
    "linalg.eigh of the upper triangle": (lambda n, x: n.np.linalg.eigh(x, "U")[0], (SQUARE,)),
    "linalg.eig": (lambda n, x: n.np.real(n.np.linalg.eig(x)[0]) ** 2, (POSITIVE + 0.1 * SQUARE,)),
    "linalg.svd": (lambda n, x: n.np.linalg.svd(x, full_matrices=False)[1], (SIGNED,)),
    "linalg.svd vectors": (lambda n, x: n.np.linalg.svd(x, full_matrices=False)[0] ** 2, (SIGNED,)),
    "linalg.svd values": (lambda n, x: n.np.linalg.svd(x, compute_uv=False), (SIGNED,)),
    "linalg.norm": (lambda n, x: n.np.linalg.norm(x), (SIGNED,)),
    "linalg.norm of rows": (lambda n, x: n.np.linalg.norm(x, ord=3, axis=1), (SIGNED,)),
    "linalg.norm nuc": (lambda n, x: n.np.linalg.norm(x, ord="nuc"), (SIGNED,)),
    # numpy.fft
    **{f"fft.{name}": fft_of(name, WIDE[0]) for name in "fft ifft rfft fftshift ifftshift".split()},
    **{f"fft.{name}": fft_of(name, WIDE) for name in "fft2 ifft2 fftn ifftn rfft2 rfftn".split()},
    "fft.fft of another length": fft_of("fft", WIDE[0], 8),
    "fft.irfft": fft_of("irfft", phase(rng.normal(size=(2, 4)))),
    "fft.irfft2": fft_of("irfft2", phase(rng.normal(size=(4, 4)))),
    "fft.irfftn": fft_of("irfftn", phase(rng.normal(size=(4, 4)))),
    # scipy.special
    **{f"special.{name}": special_of(name, Y) for name in "digamma psi erf erfc gamma gammaln rgamma".split()},
    **{f"special.{name}": special_of(name, Y) for name in "i0 i1 j0 j1 y0 y1 expit logsumexp".split()},
    **{f"special.{name}": special_of(name, X) for name in "erfinv erfcinv logit".split()},
    **{f"special.{name}": special_of(name, X, Y) for name in "beta betaln".split()},
    "special.betainc": (lambda n, x: n.special.betainc(Y, 2.0, x), (X,)),
    "special.gammainc": (lambda n, x: n.special.gammainc(X, x), (Y,)),
    "special.gammaincc": (lambda n, x: n.special.gammaincc(X, x), (Y,)),
    "special.iv": (lambda n, x: n.special.iv(2.5, x), (Y,)),
    "special.ive": (lambda n, x: n.special.ive(2, x), (Y,)),
    "special.jn": (lambda n, x: n.special.jn(2, x), (Y,)),
    "special.yn": (lambda n, x: n.special.yn(2, x), (Y,)),
    "special.polygamma": (lambda n, x: n.special.polygamma(1, x), (Y,)),
    "special.multigammaln": (lambda n, x: n.special.multigammaln(x, 2), (Y,)),
    "special.gammasgn": (lambda n, x: n.special.gammasgn(x) * x, (SIGNED,)),
    "special.logsumexp of rows": (lambda n, x: n.special.logsumexp(x, axis=1, keepdims=True), (SIGNED,)),
    "special.logsumexp weighted": (lambda n, x: n.special.logsumexp(x, axis=0, b=Y), (X,)),
    # scipy.stats
    **{
        f"stats.norm.{each}": (lambda n, *xs, each=each: getattr(n.stats.norm, each)(*xs), (SIGNED[:2, :3], X, Y))
        for each in "pdf cdf sf logpdf logcdf logsf".split()
    },
    **{
        f"stats.t.{each}": (lambda n, x, *m, each=each: getattr(n.stats.t, each)(x, 3.5, *m), (SIGNED[:2, :3], X, Y))
        for each in "pdf logpdf".split()
    },
    "stats.t.pdf by df": (lambda n, df: n.stats.t.pdf(X, df), (Y,)),
    "stats.t.cdf": (lambda n, x, m: n.stats.t.cdf(x, 3.5, m), (SIGNED[:2, :3], X)),
    "stats.t.logcdf": (lambda n, x, m: n.stats.t.logcdf(x, 3.5, m), (SIGNED[:2, :3], X)),
    "stats.beta.pdf": (lambda n, *xs: n.stats.beta.pdf(*xs), (X, Y, Y + 0.5)),
    "stats.beta.logpdf": (lambda n, *xs: n.stats.beta.logpdf(*xs), (X, Y, Y + 0.5)),
    "stats.beta.cdf": (lambda n, x: n.stats.beta.cdf(x, Y, 1.7), (X,)),
    "stats.gamma.pdf": (lambda n, *xs: n.stats.gamma.pdf(*xs), (X, Y)),
    "stats.gamma.logpdf": (lambda n, *xs: n.stats.gamma.logpdf(*xs), (X, Y)),
    "stats.gamma.cdf": (lambda n, x: n.stats.gamma.cdf(x, Y), (X,)),
    "stats.chi2.pdf": (lambda n, x: n.stats.chi2.pdf(x, 3), (Y,)),
    "stats.chi2.logpdf": (lambda n, x: n.stats.chi2.logpdf(x, 3), (Y,)),
    "stats.chi2.cdf": (lambda n, x: n.stats.chi2.cdf(x, 3), (Y,)),
    "stats.poisson.pmf": (lambda n, m: n.stats.poisson.pmf(2, m), (Y,)),
    "stats.poisson.logpmf": (lambda n, m: n.stats.poisson.logpmf(2, m), (Y,)),
    "stats.poisson.cdf": (lambda n, m: n.stats.poisson.cdf(2, m), (Y,)),
    "stats.multivariate_normal.pdf": (
        lambda n, x, m, c: n.stats.multivariate_normal.pdf(x, m, (c + c.T) / 2), (X, ROW, POSITIVE)
    ),
    "stats.multivariate_normal.entropy": (
        lambda n, m, c: n.stats.multivariate_normal.entropy(m, (c + c.T) / 2), (ROW, POSITIVE)
    ),
    "stats.multivariate_normal.logpdf": (
        lambda n, x, m, c: n.stats.multivariate_normal.logpdf(x, m, (c + c.T) / 2), (X, ROW, POSITIVE)
    ),
    "stats.dirichlet.pdf": (lambda n, a: n.stats.dirichlet.pdf(np.array([0.2, 0.3, 0.5]), a), (Y[0],)),
    "stats.dirichlet.logpdf": (lambda n, a: n.stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), a), (Y[0],)),
    # scipy.linalg, scipy.signal
    "linalg of scipy.sqrtm": (lambda n, x: n.linalg.sqrtm(x), (POSITIVE,)),
    "linalg of scipy.solve_sylvester": (
        lambda n, *xs: n.linalg.solve_sylvester(*xs), (POSITIVE, SQUARE + POSITIVE, SQUARE)
    ),
    "linalg of scipy.solve_triangular": (
        lambda n, x, y: n.linalg.solve_triangular(x, y, lower=True), (POSITIVE, SQUARE)
    ),
    "linalg of scipy.solve_triangular transposed": (
        lambda n, x, y: n.linalg.solve_triangular(x, y, trans="T"), (POSITIVE, SQUARE)
    ),
    "linalg of scipy.solve_banded": (
        lambda n, x, y: n.linalg.solve_banded((1, 1), x, y), (BANDS, LINE[:5])
    ),
    **{
        f"signal.convolve {mode}": (lambda n, x, y, mode=mode: n.signal.convolve(x, y, mode=mode), (WIDE[0], X))
        for mode in ("full", "valid", "same")
    },
    "signal.convolve along axes": (
        lambda n, x, y: n.signal.convolve(x, y, axes=([2], [2]), dot_axes=([1], [0])), (WIDE, CUBE.T)
    ),
}  # fmt: skip
# those that HIPS autograd differentiates of complex numbers as well
COMPLEX = (
    "abs arcsinh arctanh cos cosh exp exp2 expm1 log log10 log1p log2 negative sin sinh sqrt square tan tanh real imag "
    "conj conjugate angle add divide multiply subtract power sum prod mean var std concatenate dot matmul outer kron "
    "tensordot einsum index diag trace transpose linalg.inv linalg.solve linalg.det fft.fft fft.ifft fft.fftn "
    "fft.ifftn linalg.norm cumsum reshape array arccosh reciprocal where roll tile repeat inner true_divide sinc"
).split()

# names of helpers, and of one function under several names, in HIPS autograd's tables
HELPERS = {"array_from_args", "concatenate_args", "truncate_pad", "metadata"}


def pulled(package: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    """The value, the pullback of one cotangent, and the gradient of a product with that."""
    argnums = tuple(range(len(args)))
    random = np.random.default_rng(11)

    def like(v: Any) -> Any:
        real = random.normal(size=np.shape(v))
        return real + 1j * random.normal(size=np.shape(v)) if np.iscomplexobj(v) else real

    vjp, value = package.make_vjp(f, argnums)(*args)
    g = like(value)
    first = vjp(g)
    weights = [like(x) for x in args]

    def slope(*xs: Any) -> Any:
        vjp, _ = package.make_vjp(f, argnums)(*xs)
        np_ = OURS.np if package is face else THEIRS.np
        return sum([np_.sum(np_.real(w * t)) for w, t in zip(weights, vjp(g), strict=True)])

    return [value, *first, *package.grad(slope, argnums)(*args)]


def compare(name: str, args: tuple[Any, ...]) -> None:
    f = CASES[name][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constants, and of divisions by zero in HIPS autograd's rules
        ours = pulled(face, lambda *xs: f(OURS, *xs), args)
        theirs = pulled(hips, lambda *xs: f(THEIRS, *xs), args)
    for x, y in zip(ours, theirs, strict=True):
        assert np.shape(x) == np.shape(y)
        assert np.iscomplexobj(x) == np.iscomplexobj(y)
        assert_allclose(x, y, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("start", range(8))
def test_values_and_gradients_are_those_of_hips_autograd(start: int) -> None:
    with Each() as each:
        for name in list(CASES)[start::8]:
            with each(name):
                compare(name, CASES[name][1])


@pytest.mark.parametrize("start", range(2))
def test_complex_values_and_gradients_are_those_of_hips_autograd(start: int) -> None:
    with Each() as each:
        for name in COMPLEX[start::2]:
            with each(name):
                args = tuple([phase(x, k) for k, x in enumerate(CASES[name][1])])
                compare(name, args)


def differentiated() -> set[str]:
    """The names of all functions that HIPS autograd has rules for, by where users find them."""
    found: set[str] = set()
    places = {"": hips_numpy, "linalg.": hips_numpy.linalg, "fft.": hips_numpy.fft, "special.": hips_special}
    places |= {"linalg of scipy.": hips_linalg, "signal.": hips_signal}
    places |= {f"stats.{name}.": getattr(hips_stats, name) for name in "norm t beta gamma chi2 poisson".split()}
    places |= {f"stats.{name}.": getattr(hips_stats, name) for name in "dirichlet multivariate_normal".split()}
    for prefix, module in places.items():
        known = {v: k for k, v in vars(module).items() if type(v).__hash__ is not None and v in primitive_vjps}
        own = [name for name in known.values() if not name.startswith("_") and name not in HELPERS]
        inner = {"psi", "digamma", "gamma", "beta"} if prefix.startswith("stats.") else set()
        found |= {prefix + name for name in own if name not in inner}
    return found


def test_every_function_that_hips_autograd_differentiates_is_in_the_table() -> None:
    known = {name.partition(" ")[0] if not name.startswith("linalg of") else name for name in CASES}
    same = {"max": "amax", "min": "amin"}
    wanted = {same.get(name, name) for name in differentiated()}
    assert len(wanted) > 180
    assert wanted - known == set()


# --- the page ------------------------------------------------------------------------------------

PAGE = Path(__file__).parent.parent / "docs" / "autograd.md"
TOPICS = {
    "autograd.numpy": "", "autograd.numpy.linalg": "linalg.", "autograd.numpy.fft": "fft.",
    "autograd.scipy.special": "special.", "autograd.scipy.stats": "stats.", "autograd.scipy.linalg": "linalg of scipy.",
    "autograd.scipy.signal": "signal.",
}  # fmt: skip
NOT_NAMES = {"T", "index", "iteration"}


def table() -> str:
    """What is compared with HIPS autograd, by where it is; in italics what that has no rule for."""
    theirs = differentiated()
    lines, count = ["| module | functions |", "|---|---|"], 0
    for topic, prefix in TOPICS.items():
        others = [q for q in TOPICS.values() if q and not prefix.startswith(q)]
        names = {
            name.removeprefix(prefix).partition(" ")[0]
            for name in CASES
            if name.startswith(prefix) and not any(name.startswith(q) for q in others if q != prefix)
        } - NOT_NAMES
        count += len(names)
        cells = [f"{name}" if prefix + name in theirs else f"*{name}*" for name in sorted(names)]
        lines.append(f"| `{topic}` | {', '.join(cells)} |")
    return "\n".join(
        [*lines, "", f"{count} functions, {len(CASES)} calls, {len(COMPLEX)} of them of complex numbers too."]
    )


def test_the_page_has_the_table() -> None:
    found = PAGE.read_text().partition("<!-- table -->\n")[2].partition("\n<!-- end of table -->")[0]
    assert found == table(), "run python tests/test_face_autograd_functions.py --write"


if __name__ == "__main__":
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text().partition("<!-- table -->\n")
        PAGE.write_text(
            f"{before}<!-- table -->\n{table()}\n<!-- end of table -->{rest.partition('<!-- end of table -->')[2]}"
        )
    else:
        print(table())
