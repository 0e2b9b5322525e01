"""`adjoint.autograd` on arrays of each library: values, pullbacks and tangents are those of NumPy's arrays.

Every function that is compared with HIPS autograd is called, and the cases below: more of NumPy's functions, arrays of
NumPy beside, operators, optimizers, and rules of users. Results are arrays of the library.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from numpy.testing import assert_allclose
from test_face_autograd_functions import (
    CASES as COMPARED,
)
from test_face_autograd_functions import (
    COMPLEX,
    CUBE,
    LINE,
    OURS,
    POSITIVE,
    ROW,
    SIGNED,
    SQUARE,
    Case,
    X,
    phase,
)

import adjoint as ad
import adjoint.autograd as face
from adjoint import errors
from adjoint.autograd.core import vspace
from adjoint.autograd.extend import defjvp, defvjp, notrace_primitive, primitive
from adjoint.autograd.misc import const_graph, flatten, optimizers
from adjoint.autograd.misc.fixed_points import fixed_point
from adjoint.autograd.scipy import integrate, linalg
from adjoint.autograd.test_util import check_grads
from adjoint.autograd.tracer import getval

pytestmark = pytest.mark.peers

CONSTANT = np.arange(6.0).reshape(2, 3)  # of NumPy, in every library's case
TIMES = np.linspace(0.0, 1.0, 3)


def energy(n: Any, x: Any) -> Any:
    return n.np.sum(n.np.tanh(x) * n.np.sin(x) ** 2)


def rows(n: Any) -> Callable[[Any], Any]:
    return lambda x: n.np.outer(x, n.np.sin(x))


def cubes(on_numpy: bool) -> Any:
    cube = primitive(lambda x: (np.asarray(x) if on_numpy else x) ** 3)
    defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    defjvp(cube, lambda t, ans, x: t * 3 * x**2)
    return cube


CUBES, CUBES_ON_NUMPY = cubes(False), cubes(True)
ROUNDED = notrace_primitive(np.round)


def checked(n: Any, x: Any) -> Any:
    check_grads(lambda x: energy(n, x))(x)
    return x


def parts(x: Any) -> Any:
    return {"a": x, "b": [x * 2, x[0]]}


def decay(y: Any, t: Any, rate: Any) -> Any:
    return -rate * y


def root_of(a: Any, start: Any) -> Any:
    return fixed_point(lambda a: lambda y: 0.5 * (y + a / y), a, start, lambda p, q: abs(p - q).max(), 1e-12)


UNARY = (
    "zeros_like ones_like argmax argmin argsort isnan isfinite isinf sign floor ceil rint trunc round fix around "
    "flatnonzero signbit count_nonzero any all ptp median nanmin nanmax nansum nanmean nanvar nanstd nanprod cumprod "
    "nancumsum cov corrcoef copy asarray ascontiguousarray flip cbrt positive iscomplex isreal unwrap trapezoid "
    "average ediff1d unique logical_not matrix_transpose"
).split()
CASES: dict[str, Case] = {
    # more of NumPy's functions; factors make floating numbers of steps and flags
    **{name: (lambda n, x, name=name: getattr(n.np, name)(x) * 1.0, (X,)) for name in UNARY},
    "size": (lambda n, x: x * n.np.size(x) * n.np.ndim(x) * n.np.shape(x)[0], (X,)),
    "cumulative_sum": (lambda n, x: n.np.cumulative_sum(x, axis=0), (X,)),
    "full_like": (lambda n, x: n.np.full_like(x, 2.0) * x, (X,)),
    "full_like of a box": (lambda n, x: n.np.full_like(x, x[0, 0]), (X,)),
    "full_like of a list": (lambda n, x: n.np.full_like(x, [1, 2, 3]) * x, (X,)),
    "full_like a constant": (lambda n, x: n.np.full_like(CONSTANT, x[0, 0]) * x, (X,)),
    "broadcast_arrays": (lambda n, x: n.np.broadcast_arrays(x, x[0])[1], (X,)),
    "meshgrid": (lambda n, x: n.np.meshgrid(x[0], x[1])[0], (X,)),
    "block": (lambda n, x: n.np.block([[x, x], [x, x]]), (X,)),
    "polyval": (lambda n, x: n.np.polyval(np.array([1.0, 2.0, 3.0]), x), (X,)),
    "polyval by coefficients": (lambda n, x: n.np.polyval(x, 2.0), (ROW,)),
    "interp": (lambda n, x: n.np.interp(x, TIMES, np.array([1.0, 3.0, 4.0])), (X[0],)),
    "heaviside": (lambda n, x: n.np.heaviside(x, 0.5), (X,)),
    "take": (lambda n, x: n.np.take(x, [0, 2], axis=1), (X,)),
    "take_along_axis": (lambda n, x: n.np.take_along_axis(x, np.argsort(X, axis=1), axis=1), (X,)),
    "delete": (lambda n, x: n.np.delete(x, 1, axis=1), (X,)),
    "insert": (lambda n, x: n.np.insert(x, 1, 5.0, axis=1), (X,)),
    "compress": (lambda n, x: n.np.compress([True, False, True], x, axis=1), (X,)),
    "percentile": (lambda n, x: n.np.percentile(x, 30, axis=1), (X,)),
    "quantile": (lambda n, x: n.np.quantile(x, 0.3), (X,)),
    "convolve": (lambda n, x: n.np.convolve(x, TIMES), (LINE,)),
    "correlate": (lambda n, x: n.np.correlate(x, TIMES), (LINE,)),
    "vander": (lambda n, x: n.np.vander(x, 3), (ROW,)),
    "geomspace": (lambda n, x: n.np.geomspace(x[0], x[1], 4), (ROW,)),
    "logspace": (lambda n, x: n.np.logspace(x[0], x[1], 4), (ROW,)),
    "copysign": (lambda n, x: n.np.copysign(x, -1.0), (X,)),
    "apply_along_axis": (lambda n, x: n.np.apply_along_axis(lambda v: n.np.sum(v) * v, 0, x), (X,)),
    "allclose": (lambda n, x: x * (1.0 if n.np.allclose(x, X) else 2.0), (X,)),
    "comparison": (lambda n, x: n.np.logical_and(x > 0.5, x < 0.8) * x + (x // 0.3), (X,)),
    "rows": (lambda n, x: n.np.array([n.np.sum(row) for row in x]), (X,)),
    "new axes": (lambda n, x: x[:, None] * x[None], (LINE,)),
    "an ellipsis": (lambda n, x: x[..., 0], (CUBE,)),
    "a negative step": (lambda n, x: x[::-1], (LINE,)),
    "an index that is a list": (lambda n, x: x[[0, 2, 2]], (LINE,)),
    "random.RandomState": (lambda n, x: x * n.np.random.RandomState(0).randn(2, 3), (X,)),
    # arrays of NumPy beside
    "where beside": (lambda n, x: n.np.where(x > 0.5, x, CONSTANT), (X,)),
    "where of a constant": (lambda n, x: n.np.where(CONSTANT > 2, x, 0.0), (X,)),
    "where, zero first": (lambda n, x: n.np.where(x > 0.5, 0, x), (X,)),
    "where of one argument": (lambda n, x: x[n.np.where(x > 0.5)[0]], (LINE,)),
    "sum where": (lambda n, x: n.np.sum(x, where=CONSTANT > 2), (X,)),
    "maximum beside": (lambda n, x: n.np.maximum(x, CONSTANT / 10) + n.np.maximum(0, x), (X,)),
    "concatenate beside": (lambda n, x: n.np.concatenate([x, CONSTANT]), (X,)),
    "stack beside": (lambda n, x: n.np.stack([x, CONSTANT, 2 * x]), (X,)),
    "array beside": (lambda n, x: n.np.array([x[0], CONSTANT[1]]), (X,)),
    "hstack beside": (lambda n, x: n.np.hstack([x[0, 0], 1.0, x[1]]), (X,)),
    "einsum beside": (lambda n, x: n.np.einsum("ij,kj->ik", x, CONSTANT), (X,)),
    "dot beside": (lambda n, x: n.np.dot(n.np.dot(CONSTANT.T, x), CONSTANT.T), (X,)),
    "vdot beside": (lambda n, x: n.np.vdot(x, CONSTANT), (X,)),
    "logsumexp beside": (lambda n, x: n.special.logsumexp(x, b=CONSTANT + 1), (X,)),
    "norm.logpdf beside": (lambda n, x: n.stats.norm.logpdf(x, loc=x / 2, scale=CONSTANT + 1), (X,)),
    "multivariate_normal.logpdf beside": (
        lambda n, x: n.stats.multivariate_normal.logpdf(x, np.zeros(3), POSITIVE), (ROW,)
    ),
    # on the left, where the operator is asked of NumPy's array: PyTorch's own tensors refuse some
    "a constant on the left": (lambda n, x: CONSTANT * x + (n.np.zeros((2, 3)) + x), (X,)),
    "a matrix on the left": (lambda n, x: CONSTANT.T @ x, (X,)),
    "eye": (lambda n, x: n.np.diag(n.np.ones(3)) * x + n.np.full((3, 3), 2.0) * x, (SQUARE,)),
    # numpy.linalg, scipy.linalg, scipy.integrate
    "linalg.eigvalsh": (lambda n, x: n.np.linalg.eigvalsh(x), (POSITIVE,)),
    "linalg.eigvals": (lambda n, x: n.np.sort(n.np.real(n.np.linalg.eigvals(x))), (POSITIVE,)),
    "linalg.svdvals": (lambda n, x: n.np.linalg.svdvals(x), (SIGNED,)),
    "linalg.matrix_norm": (lambda n, x: n.np.linalg.matrix_norm(x), (SIGNED,)),
    "linalg.vector_norm": (lambda n, x: n.np.linalg.vector_norm(x), (SIGNED,)),
    "linalg.matrix_power": (lambda n, x: n.np.linalg.matrix_power(x, 3), (SQUARE,)),
    "linalg.multi_dot": (lambda n, x: n.np.linalg.multi_dot([x, POSITIVE, x]), (SQUARE,)),
    "linalg.qr": (lambda n, x: n.np.abs(n.np.linalg.qr(x)[1]), (SQUARE,)),
    "linalg.lstsq": (lambda n, x: n.np.linalg.lstsq(x, np.ones(3), rcond=None)[0], (SQUARE,)),
    "linalg.cond": (lambda n, x: n.np.linalg.cond(x), (SQUARE,)),
    "linalg.norm inf": (lambda n, x: n.np.linalg.norm(x, np.inf) + n.np.linalg.norm(x, "fro"), (SQUARE,)),
    "linalg.solve beside": (lambda n, x: n.np.linalg.solve(POSITIVE, x), (SQUARE,)),
    "fft.hfft": (lambda n, x: n.np.fft.hfft(x), (LINE,)),
    **{
        f"scipy.linalg.{name}": (lambda n, x, name=name: getattr(linalg, name)(x), (POSITIVE,))
        for name in "expm inv det logm norm".split()
    },
    "scipy.linalg.cholesky": (lambda n, x: linalg.cholesky(x, lower=True), (POSITIVE,)),
    "scipy.linalg.solve": (lambda n, x, y: linalg.solve(x, y), (POSITIVE, ROW)),
    "scipy.linalg.block_diag": (lambda n, x: linalg.block_diag(x, np.eye(2), x), (POSITIVE,)),
    "odeint": (lambda n, x: integrate.odeint(decay, x, TIMES, (2.0,)), (ROW,)),
    "odeint by a rate": (lambda n, x, k: integrate.odeint(decay, x, TIMES, (k,)), (ROW, np.array(2.0))),
    # operators
    "grad": (lambda n, x: face.grad(lambda x: energy(n, x))(x), (X,)),
    "value_and_grad": (lambda n, x: face.value_and_grad(lambda x: energy(n, x))(x)[1], (X,)),
    "hessian": (lambda n, x: face.hessian(lambda x: energy(n, x))(x), (ROW,)),
    "jacobian": (lambda n, x: face.jacobian(rows(n))(x), (ROW,)),
    "elementwise_grad": (lambda n, x: face.elementwise_grad(n.np.sin)(x), (ROW,)),
    "deriv": (lambda n, x: face.deriv(n.np.sin)(x), (ROW,)),
    "hessian_vector_product": (
        lambda n, x, v: face.hessian_vector_product(lambda x: energy(n, x))(x, v), (ROW, ROW + 1)
    ),
    "hessian_tensor_product": (lambda n, x: face.hessian_tensor_product(lambda x: energy(n, x))(x, CONSTANT), (X,)),
    "tensor_jacobian_product": (lambda n, x: face.tensor_jacobian_product(rows(n))(x, SQUARE), (ROW,)),
    "vector_jacobian_product": (lambda n, x, v: face.vector_jacobian_product(n.np.sin)(x, v), (ROW, ROW + 2)),
    "make_hvp": (lambda n, x: face.make_hvp(lambda x: energy(n, x))(x)[0](ROW + 1), (ROW,)),
    "make_ggnvp": (lambda n, x: face.make_ggnvp(lambda x: n.np.sin(x) * x)(x)(ROW + 1), (ROW,)),
    "make_ggnvp of a loss": (
        lambda n, x: face.make_ggnvp(lambda x: n.np.sin(x) * x, lambda y: n.np.sum(n.np.exp(y)))(x)(ROW + 1), (ROW,)
    ),
    "make_jvp_reversemode": (lambda n, x: face.make_jvp_reversemode(rows(n))(x)(ROW + 1), (ROW,)),
    "grad_and_aux": (
        lambda n, x: n.np.stack(face.grad_and_aux(lambda x: (energy(n, x), n.np.sin(x)))(x)), (ROW,)
    ),
    "grad_named": (lambda n, x: face.grad_named(lambda s, x: energy(n, x) * s, "x")(2.0, x), (ROW,)),
    "grad by several": (lambda n, x: face.grad(lambda s, x: energy(n, x) * s**2, (0, 1))(3.0, x)[1], (ROW,)),
    "grad by a number": (lambda n, x: face.grad(lambda s: energy(n, x) * s**2)(3.0), (ROW,)),
    "multigrad_dict": (lambda n, x: face.multigrad_dict(lambda a, b=2.0: energy(n, a) * b)(x)["a"], (ROW,)),
    "holomorphic_grad": (
        lambda n, z: face.holomorphic_grad(lambda z: n.np.sum(n.np.sin(z) * z))(z), (phase(ROW),)
    ),
    "checkpoint": (lambda n, x: face.grad(face.checkpoint(lambda x: energy(n, x)))(x), (ROW,)),
    "grad by containers": (
        lambda n, x: face.grad(lambda p: n.np.sum(p["a"][0] * p["b"] ** 2))({"a": [x, 1.0], "b": x * 2})["b"], (ROW,)
    ),
    # misc, extend, test_util
    "fixed_point": (lambda n, a: root_of(a, 1.0), (np.array(2.0),)),
    "fixed_point of a vector": (lambda n, a: root_of(a, np.ones(3)), (ROW + 1,)),
    "flatten": (lambda n, x: flatten(parts(x))[0], (ROW,)),
    "unflatten": (lambda n, x: flatten(parts(x))[1](flatten(parts(x))[0] * 3)["b"][0], (ROW,)),
    **{
        name: (
            lambda n, x, name=name: getattr(optimizers, name)(
                face.grad(lambda p, i: n.np.sum((p["w"] - 3.0) ** 2)), {"w": x}, num_iters=3
            )["w"],
            (ROW,),
        )
        for name in ("sgd", "rmsprop", "adam")
    },
    "const_graph": (lambda n, x: const_graph(lambda s, x: energy(n, x) * s, 2.0)(x), (ROW,)),
    "primitive": (lambda n, x: CUBES(x) * x, (ROW,)),
    "primitive, grad": (lambda n, x: face.grad(lambda x: n.np.sum(CUBES(x)))(x), (ROW,)),
    "primitive on NumPy": (lambda n, x: face.grad(lambda x: n.np.sum(CUBES_ON_NUMPY(x) * x))(x), (ROW,)),
    "notrace_primitive": (lambda n, x: ROUNDED(x) * x, (ROW,)),
    "check_grads": (checked, (ROW,)),
    "vspace": (lambda n, x: x * vspace(getval(x)).size, (ROW,)),
}  # fmt: skip
ALL = {f"compared: {name}": case for name, case in COMPARED.items()} | {
    f"complex: {name}": (COMPARED[name][0], tuple([phase(x, k) for k, x in enumerate(COMPARED[name][1])]))
    for name in COMPLEX
} | CASES  # fmt: skip

# functions that ask the library's own arrays for what these do not have, so outside of derivatives they are the user's
# to write in another way
OWN = {
    "torch": {
        "compared: astype", "a negative step", "a constant on the left", "a matrix on the left", "eye",
        "random.RandomState",
    },
    "jax": {"an index that is a list"},
    "dask": {"compared: index by arrays"},
    "array_api_strict": {"compared: T"},
    "reference": {"compared: T"},
}  # fmt: skip
UNORDERED = {"compared: linalg.eig"}  # the order of the eigenvalues is the library's


def values(
    f: Callable[..., Any], args: tuple[Any, ...], put: Callable[[Any], Any], plain: bool, forward: bool
) -> Iterator[Any]:
    """The value of a call, the pullback of one cotangent, the tangent along one direction."""
    random = np.random.default_rng(1)

    def like(x: Any) -> Any:
        z = random.normal(size=np.shape(x))
        return put(z + 1j * random.normal(size=z.shape) if np.iscomplexobj(x) else z)

    def of_boxes(*xs: Any) -> Any:
        return f(OURS, *xs)

    argnums = tuple(range(len(args)))
    given = [put(x) for x in args]
    if plain:
        yield of_boxes(*given)
    vjp, value = face.make_vjp(of_boxes, argnums)(*given)
    yield value
    yield from vjp(like(host(value)))
    if forward:
        yield from face.make_jvp(of_boxes, argnums)(*given)(tuple([like(x) for x in args]))


def host(x: Any) -> Any:
    """NumPy's array of the values."""
    return x.numpy() if isinstance(x, ad.Tensor) else np.asarray(x)


def library(name: str) -> tuple[Callable[[Any], Any], Any]:
    """What makes arrays of a library, and their class."""
    if name == "torch":
        torch = peer("torch")
        return torch.tensor, torch.Tensor
    if name == "jax":
        return peer("jax.numpy").asarray, peer("jax").Array
    if name == "dask":
        dask = peer("dask.array")
        return dask.from_array, dask.Array
    device = ad.device("reference") if name == "reference" else ad.ArrayAPI(peer(name))
    return lambda x: ad.asarray(x, device=device), ad.Tensor


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize(
    "name",
    ["reference", "array_api_strict", *[pytest.param(x, marks=pytest.mark.slow) for x in ("torch", "jax", "dask")]],
)
def test_arrays_of_every_library_have_the_derivatives_of_numpys(name: str, start: int) -> None:
    put, kind = library(name)
    double = peer("jax").enable_x64(True) if name == "jax" else contextlib.nullcontext()
    with Each() as each, warnings.catch_warnings(), double:
        warnings.simplefilter("ignore")  # of constants
        for label in list(ALL)[start::4]:
            f, args = ALL[label]
            with each(label):
                plain = label not in OWN[name]
                forward = name not in ("jax", "dask")  # whose calls take longest
                expected = list(values(f, args, np.asarray, plain, forward))
                found = list(values(f, args, put, plain, forward))
                for x, y in zip(found, expected, strict=True):
                    assert isinstance(x, kind), type(x)
                    z = host(x)
                    assert (z.shape, z.dtype.kind) == (np.shape(y), np.asarray(y).dtype.kind)
                    if name != "reference" or label not in UNORDERED:
                        # PyTorch multiplies flags and steps in single precision
                        assert_allclose(z, y, rtol=1e-7 if z.dtype.itemsize >= 8 else 1e-5, atol=1e-9)


def test_arrays_of_libraries_that_are_no_tensors_say_how_to_make_them() -> None:
    strict = peer("array_api_strict")
    with pytest.raises(errors.DtypeError, match=r"ad\.asarray\(x, device=ad\.ArrayAPI\(array_api_strict\)\)"):
        face.grad(lambda x: OURS.np.sum(x))(strict.asarray([1.0, 2.0]))
    x = ad.asarray(strict.asarray([1.0, 2.0]), device=ad.ArrayAPI(strict))
    assert isinstance(face.grad(lambda x: OURS.np.sum(x**2))(x), ad.Tensor)
