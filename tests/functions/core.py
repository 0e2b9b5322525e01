"""Calls of the first functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from functions.draw import Call, Draw, Shape

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {}


def _each(names: str, maker: Callable[[Any, Draw], Call]) -> None:
    for name in names.split():
        FUNCTIONS[name] = lambda d, f=operator.attrgetter(name)(ad): maker(f, d)


# --- elementwise ---

_each(
    "negative positive square exp expm1 sin cos sinh cosh asinh conj real abs sign",
    lambda f, d: (f, d.either(d.shape())),
)
_each("sqrt log log2 log10", lambda f, d: (f, d.pick(d.positive, d.complex)(d.shape())))
_each("log1p asin acos atanh", lambda f, d: (f, d.pick(d.unit, d.complex)(d.shape())))
_each("tan tanh atan reciprocal", lambda f, d: (f, d.pick(d.unit, d.complex)(d.shape()) + 0.0))
_each("acosh", lambda f, d: (f, d.between(d.shape(), 1.3, 3.0)))
_each("imag", lambda f, d: (f, d.complex(d.shape())))
_each("floor ceil trunc round", lambda f, d: (f, d.between(d.shape(), 0.1, 0.4) + d.rng.integers(-3, 3)))
_each("special.erf special.expit nn.relu nn.sigmoid nn.silu nn.gelu nn.softplus", lambda f, d: (f, d.real(d.shape())))


def pair(f: Any, d: Draw, left: Any, right: Any) -> Call:
    """Two arrays that broadcast, or an array and a Python scalar on either side."""
    x, y = d.shapes(2)
    match d.pick("arrays", "arrays", "scalar on the right", "scalar on the left"):
        case "scalar on the right":
            scalar = right(()).item()
            return (lambda a: f(a, scalar)), left(x)
        case "scalar on the left":
            scalar = left(()).item()
            return (lambda b: f(scalar, b)), right(y)
    return f, left(x), right(y)


def _pairs(name: str, f: Any) -> None:
    """A function or operator of two operands, by the name of the function."""
    match name.rpartition(".")[2].strip("_"):
        case "maximum" | "minimum":
            FUNCTIONS[name] = lambda d: pair(f, d, lambda s: d.grid(s, 0.1), lambda s: d.grid(s, 0.4))
        case "remainder" | "mod" | "floor_divide" | "floordiv":
            FUNCTIONS[name] = lambda d: pair(
                f,
                d,
                lambda s: d.rng.integers(-6, 6, s) + d.between(s, 0.2, 0.4),
                lambda s: d.lay(d.rng.integers(1, 4, s) * 1.0),
            )
        case "pow":
            FUNCTIONS[name] = lambda d: pair(f, d, *d.pick((d.positive, d.real), (d.complex, d.complex)))
        case "atan2" | "logaddexp":
            FUNCTIONS[name] = lambda d: pair(f, d, d.real, d.real)
        case _:
            FUNCTIONS[name] = lambda d: pair(f, d, d.either, d.either)


for _name in "add subtract multiply divide floor_divide remainder pow atan2 logaddexp maximum minimum".split():
    _pairs(_name, getattr(ad, _name))
for _name in "add sub mul truediv floordiv mod pow".split():
    _pairs(f"operator.{_name}", getattr(operator, _name))


def _clip(d: Draw) -> Call:
    x, low, high = d.shapes(3)
    values, bottom, top = d.grid(x, 0.1), -0.5 - d.between(low, 0.05, 0.2), 0.9 + d.between(high, 0.0, 0.2)
    return d.pick(
        (ad.clip, values, np.asarray(bottom), np.asarray(top)),
        (lambda a: ad.clip(a, -0.7, 0.9), values),
        (lambda a: ad.clip(a, max=0), values),
        (lambda a, b: ad.clip(a, b), values, np.asarray(bottom)),
    )


def _where(d: Draw) -> Call:
    c, x, y = d.shapes(3)
    mask = d.mask(c)
    return d.pick(
        (lambda a, b: ad.where(ad.asarray(mask, device=a.device), a, b), d.either(x), d.either(y)),
        (lambda a: ad.where(a.real > 0, a * 2, 1.5), d.either(x)),
        (lambda b: ad.where(b.real > 0, 2, b), d.either(y)),
    )


def _astype(d: Draw) -> Call:
    dtype = d.pick(ad.float64, ad.complex128)
    return (lambda a: ad.astype(ad.astype(a * a, ad.complex128) * (1 - 2j), dtype)), d.either(d.shape())


FUNCTIONS |= {"clip": _clip, "where": _where, "astype": _astype}


# --- reductions and scans ---


def _reduction(f: Any, d: Draw, make: Any, sizes: Shape = (3, 1, 2, 0)) -> Call:
    shape = d.shape(sizes=sizes)
    axis, keepdims = d.axes(shape), d.pick(False, True)
    return (lambda a: f(a, axis=axis, keepdims=keepdims)), make(shape)


_each("sum prod", lambda f, d: _reduction(f, d, d.either))
_each("mean var std", lambda f, d: _reduction(f, d, d.pick(d.distinct, d.complex), (3, 2)))


def _scan(f: Any, d: Draw) -> Call:
    shape = d.shape(1)
    axis, initial = d.axis(shape), d.pick(False, True)
    x = d.either(shape)
    if x.size and d.pick(False, True):
        x = x * (d.rng.uniform(size=shape) < 0.6)  # zeros
    return (lambda a: f(a, axis=axis, include_initial=initial)), x


_each("cumulative_sum cumulative_prod", _scan)


# --- structure ---


def _reshape(d: Draw) -> Call:
    old, new = d.pick(
        ((2, 3), (3, 2)), ((), (1,)), ((0, 3), (2, 0)), ((4,), (-1, 2)), ((2, 1, 2), (4,)), ((6,), (6, 1, 1))
    )
    return (lambda a: ad.reshape(a, new)), d.either(old)


def _moving(name: str) -> Callable[[Draw], Call]:
    def make(d: Draw) -> Call:
        shape = d.shape(2)
        n = len(shape)
        order = tuple(int(i) for i in d.rng.permutation(n))
        match name:
            case "permute_dims":
                f: Any = lambda a: ad.permute_dims(a, order)
            case "matrix_transpose":
                f = ad.matrix_transpose
            case "linalg.matrix_transpose":
                f = ad.linalg.matrix_transpose
            case "moveaxis":
                f = d.pick(lambda a: ad.moveaxis(a, order[0], -1), lambda a: ad.moveaxis(a, order[:2], (1, 0)))
            case "expand_dims":
                f = d.pick(
                    lambda a: ad.expand_dims(a, -1), lambda a: ad.expand_dims(a, (0, 2)), lambda a: ad.expand_dims(a)
                )
            case "squeeze":
                f = d.pick(
                    ad.squeeze,
                    lambda a: ad.squeeze(ad.expand_dims(a, 1), 1),
                    lambda a: ad.squeeze(a[:, None, None], (1, 2)),
                )
            case "flip":
                axes = d.axes(shape)
                f = lambda a: ad.flip(a, axis=axes)
            case "roll":
                f = d.pick(
                    lambda a: ad.roll(a, 2), lambda a: ad.roll(a, -1, axis=0), lambda a: ad.roll(a, (1, 4), axis=(0, 1))
                )
            case "tile":
                times = d.pick((2,), (2, 1, 3), (1, 0), (2, 2))
                f = lambda a: ad.tile(a, times)
            case "repeat":
                f = d.pick(
                    lambda a: ad.repeat(a, 2), lambda a: ad.repeat(a, 3, axis=1), lambda a: ad.repeat(a, 0, axis=0)
                )
            case "tril" | "triu":
                k = d.pick(-1, 0, 1, 5)
                f = lambda a: getattr(ad, name)(a, k=k)
            case "unstack":
                if not shape[-1]:
                    shape = (*shape[:-1], 2)  # there is nothing to check of no results
                f = lambda a: ad.unstack(a, axis=-1)
            case "broadcast_to":
                f = lambda a: ad.broadcast_to(a[:, None], (2, shape[0], 3, *shape[1:]))
            case _:
                raise AssertionError(name)
        return f, d.either(shape)

    return make


FUNCTIONS |= {"reshape": _reshape}
FUNCTIONS |= {
    name: _moving(name)
    for name in (
        "permute_dims matrix_transpose linalg.matrix_transpose moveaxis expand_dims squeeze flip roll tile repeat "
        "tril triu unstack broadcast_to"
    ).split()
}


def _concat(d: Draw) -> Call:
    shape, axis = list(d.shape(1)), 0
    axis = d.axis(tuple(shape))
    parts = []
    for _ in range(d.pick(2, 1, 3)):
        shape[axis] = d.pick(2, 0, 1, 3)
        parts.append(d.either(tuple(shape)))
    return (lambda *xs: ad.concat(xs, axis=axis)), *parts


def _stack(d: Draw) -> Call:
    shape = d.shape()
    axis = d.pick(0, -1)
    return (lambda *xs: ad.stack(xs, axis=axis)), *[d.either(shape) for _ in range(d.pick(2, 1, 3))]


def _broadcast_arrays(d: Draw) -> Call:
    return (lambda *xs: ad.broadcast_arrays(*xs)), *[d.either(s) for s in d.shapes(2)]


def _meshgrid(d: Draw) -> Call:
    indexing = d.pick("xy", "ij")
    return (lambda *xs: ad.meshgrid(*xs, indexing=indexing)), *[d.real((n,)) for n in (2, 3, 1)[: d.pick(1, 2, 3)]]


FUNCTIONS |= {"concat": _concat, "stack": _stack, "broadcast_arrays": _broadcast_arrays, "meshgrid": _meshgrid}


# --- indexing and sorting ---


def _take(d: Draw) -> Call:
    shape = d.shape(1, sizes=(3, 1, 2))
    axis = d.axis(shape)
    places = d.indices(d.pick((2,), (), (2, 2), (0,)), shape[axis])
    return (lambda a: ad.take(a, places, axis=axis)), d.either(shape)


def _take_along_axis(d: Draw) -> Call:
    shape = d.shape(1, sizes=(3, 1, 2))
    axis = d.axis(shape)
    wanted = list(shape)
    wanted[axis] = d.pick(2, 0, 4)
    places = d.indices(tuple(wanted), shape[axis])
    return (lambda a: ad.take_along_axis(a, places, axis=axis)), d.either(shape)


def _getitem(d: Draw) -> Call:
    key = d.pick(
        1, (0, slice(None, None, -1)), (..., None, 0), ([2, 0, 2],), ([[0, 1]], [[1, 0]]), (slice(1, None), [1, 0]),
        np.array([True, False, True]), (None, [0, 0], 1),
    )  # fmt: skip
    return (lambda a: a[key]), d.either((3, 2))


def _sorting(f: Any, d: Draw) -> Call:
    shape = d.shape(1)
    axis, descending = d.axis(shape), d.pick(False, True)
    return (lambda a: f(a, axis=axis, descending=descending)), d.distinct(shape)


def _topk(d: Draw) -> Call:
    shape = d.shape(1)
    axis, largest = d.axis(shape), d.pick(True, False)
    k = d.pick(*range(shape[axis] + 1))
    return (lambda a: ad.topk(a, k, axis=axis, largest=largest)), d.distinct(shape)


FUNCTIONS |= {"take": _take, "take_along_axis": _take_along_axis, "operator.getitem": _getitem, "topk": _topk}
_each("sort", _sorting)


# --- products ---


def _matmul(f: Any, d: Draw) -> Call:
    n, k, m = d.pick(2, 1, 0), d.pick(3, 1, 0), d.pick(2, 1)
    x, y = d.pick(
        ((n, k), (k, m)), ((k,), (k, m)), ((n, k), (k,)), ((k,), (k,)), ((2, n, k), (k, m)), ((2, 1, n, k), (3, k, m)),
        ((2, n, k), (k,)),
    )  # fmt: skip
    return f, d.either(x), d.either(y)


_each("matmul linalg.matmul", _matmul)
FUNCTIONS["operator.matmul"] = lambda d: _matmul(operator.matmul, d)
_each("vecdot linalg.vecdot", lambda f, d: (f, d.either((2, 3)), d.either(d.pick((3,), (2, 3), (1, 3)))))
_each("outer linalg.outer", lambda f, d: (f, d.either((d.pick(2, 0, 1),)), d.either((3,))))


def _tensordot(f: Any, d: Draw) -> Call:
    x, y, axes = d.pick(
        ((2, 3), (3, 2), 1), ((2, 3), (2, 3), 2), ((2,), (3,), 0), ((2, 3, 2), (3, 1, 2), ((1, 2), (0, 2))),
        ((2, 3), (2, 3), ((-1,), (-1,))), ((0, 3), (3, 2), 1), ((2, 0), (0, 2), 1),
    )  # fmt: skip
    return (lambda a, b: f(a, b, axes=axes)), d.either(x), d.either(y)


_each("tensordot linalg.tensordot", _tensordot)

EINSUMS: list[tuple[str, tuple[Shape, ...]]] = [
    ("ij,jk->ik", ((2, 3), (3, 2))), ("ij,jk", ((2, 3), (3, 2))), ("i,i->", ((3,), (3,))), ("i,j->ij", ((2,), (3,))),
    ("ij->ji", ((2, 3),)), ("ij->", ((2, 3),)), ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("iij->j", ((2, 2, 3),)),
    ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))), ("...ij,...jk->...ik", ((2, 2, 3), (3, 2))), ("i...->...", ((2, 3),)),
    ("ij,j,i->", ((2, 3), (3,), (2,))), ("ab,bc,cd->ad", ((2, 3), (3, 2), (2, 1))), ("ij,ij->ij", ((2, 3), (1, 3))),
    ("ij,ij->i", ((2, 1), (2, 3))), ("abc,cd->abd", ((2, 1, 3), (3, 2))), ("i,ij,ij->j", ((2,), (2, 3), (2, 3))),
    ("ij,kj->", ((2, 3), (2, 3))), ("i->i", ((0,),)), ("ij,jk->ik", ((2, 0), (0, 2))),
    ("a,b,c->cab", ((2,), (1,), (3,))),
    ("bhqd,bhkd->bhqk", ((1, 2, 2, 3), (1, 2, 3, 3))), ("ij,j->ij", ((2, 3), (3,))), ("->", ((),)),
    (",i->i", ((), (2,))),
    ("ii,jj->", ((2, 2), (3, 3))), ("i...,i...->...", ((2, 3), (2, 1))), ("ij , jk -> ki", ((2, 3), (3, 2))),
    ("i,i->i", ((1,), (0,))), ("i,i->i", ((0,), (1,))), ("i,i->", ((0,), (1,))), ("ij,jk->ik", ((2, 1), (3, 2))),
]  # fmt: skip


def _einsum(d: Draw) -> Call:
    subscripts, shapes = d.pick(*EINSUMS)
    return (lambda *xs: ad.einsum(subscripts, *xs)), *[d.either(shape) for shape in shapes]


FUNCTIONS["einsum"] = _einsum

# --- linear algebra ---


def _hermitian(x: Any) -> Any:
    return (x + (x.mT.conj() if x.dtype.kind == "c" else x.mT)) / 2


def _cholesky(d: Draw) -> Call:
    x = d.square()
    upper = d.pick(False, True)
    definite = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1])
    return (lambda a: ad.linalg.cholesky(_hermitian(a), upper=upper)), d.lay(definite)


def _solve(d: Draw) -> Call:
    a = d.square()
    n = a.shape[-1]
    b = d.pick((n,), (n, 2), (*a.shape[:-1], 2), (n, 0))
    return ad.linalg.solve, a, d.either(b)


def _vector_norm(d: Draw) -> Call:
    shape = d.shape(sizes=(3, 1, 2))
    axis, keepdims, order = d.axes(shape), d.pick(False, True), d.pick(2, 1, 3, 0.5, math.inf, -math.inf, 0, -1)
    return (lambda a: ad.linalg.vector_norm(a, axis=axis, keepdims=keepdims, ord=order)), d.distinct(shape) + 5.0


def _matrix_norm(d: Draw) -> Call:
    order, keepdims = d.pick("fro", 1, -1, math.inf, -math.inf), d.pick(False, True)
    return (lambda a: ad.linalg.matrix_norm(a, ord=order, keepdims=keepdims)), d.distinct(
        d.pick((2, 3), (2, 3, 2), (1, 1))
    )


def _norm(d: Draw) -> Call:
    return d.pick(
        (ad.linalg.norm, d.either((2, 3))),
        (lambda a: ad.linalg.norm(a, "fro", axis=(0, 2)), d.either((2, 3, 2))),
        (lambda a: ad.linalg.norm(a, 1, axis=0, keepdims=True), d.either((2, 3))),
        (lambda a: ad.linalg.norm(a, math.inf), d.distinct((2, 3))),
        (lambda a: ad.linalg.norm(a, -1, axis=(1, 0), keepdims=True), d.distinct((2, 3))),
    )


_each("linalg.inv linalg.det", lambda f, d: (f, d.square()))
FUNCTIONS |= {
    "linalg.cholesky": _cholesky,
    "linalg.solve": _solve,
    "linalg.vector_norm": _vector_norm,
    "linalg.matrix_norm": _matrix_norm,
    "linalg.norm": _norm,
}

# --- neural networks ---


def _linear(d: Draw) -> Call:
    x, weight, bias = d.real((*d.pick((), (2,), (2, 2), (0,)), 3)), d.real((2, 3)), d.real((2,))
    return d.pick((ad.nn.linear, x, weight, bias), (ad.nn.linear, x, weight))


def _cross_entropy(d: Draw) -> Call:
    shape = d.pick((3,), (2, 3), (4, 3, 2), (1, 1))
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = d.rng.integers(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    reduction = d.pick("mean", "sum", "none")
    return (lambda a: ad.nn.cross_entropy(a, target, reduction=reduction)), d.real(shape)


def _pairwise_loss(f: Any, d: Draw) -> Call:
    shape, reduction = d.shape(sizes=(3, 1, 2)), d.pick("mean", "sum", "none")
    return (lambda a, b: f(a, b, reduction=reduction)), d.real(shape), d.between(shape, 0.1, 0.9)


def _conv2d(d: Draw) -> Call:
    groups = d.pick(1, 2)
    kernel = d.pick((2, 2), (1, 3), (1, 1))
    how = {
        "stride": d.pick(1, 2, (1, 2)),
        "padding": d.pick(0, 1, (0, 2)),
        "dilation": d.pick(1, (2, 1)),
        "groups": groups,
    }
    x, weight = d.real((d.pick(1, 2, 0), 2, 4, 5)), d.real((2 * d.pick(1, 2), 2 // groups, *kernel))
    bias = d.real((weight.shape[0],))
    return d.pick(
        (lambda a, w, b: ad.nn.conv2d(a, w, b, **how), x, weight, bias),
        (lambda a, w: ad.nn.conv2d(a, w, **how), x, weight),
    )


def _max_pool2d(d: Draw) -> Call:
    kernel, stride, padding = d.pick((2, None, 0), (2, 1, 1), ((2, 3), (2, 1), (1, 0)), (1, 2, 0), (3, 3, 1))
    return (lambda a: ad.nn.max_pool2d(a, kernel, stride, padding=padding)), d.distinct((d.pick(1, 2), 2, 4, 5))


def _layer_norm(d: Draw) -> Call:
    shape = d.pick((3,), (2, 3), (0, 3), (2, 2, 3))
    inside = d.pick(shape[-1:], shape[-2:] if 0 not in shape else shape[-1:])
    x, weight, bias = d.distinct(shape), d.real(inside), d.real(inside)
    return d.pick(
        (lambda a, w, b: ad.nn.layer_norm(a, inside, w, b), x, weight, bias),
        (lambda a: ad.nn.layer_norm(a, inside, eps=1e-3), x),
    )


_each("nn.binary_cross_entropy_with_logits nn.mse_loss", _pairwise_loss)
FUNCTIONS |= {
    "nn.linear": _linear,
    "nn.cross_entropy": _cross_entropy,
    "nn.conv2d": _conv2d,
    "nn.max_pool2d": _max_pool2d,
    "nn.layer_norm": _layer_norm,
}


# --- random numbers: gradients flow to their parameters ---


def _seeded(f: Any) -> Any:
    def call(*xs: Any) -> Any:
        xs[0].device.seed(7)
        return f(*xs)

    return call


def _sampling(f: Any, d: Draw) -> Call:
    names = ("low", "high") if f is ad.random.uniform else ("mean", "std")
    call = _seeded(lambda a, b: f((2, 3), **dict(zip(names, (a, b), strict=True)), dtype=ad.float64, device=a.device))
    return call, d.real((3,)), d.positive((2, 1))


_each("random.uniform random.normal", _sampling)
FUNCTIONS["random.permutation"] = lambda d: (_seeded(ad.random.permutation), d.either((3, 2)))

# --- functions without derivatives, and the NumPy function that each equals ---

PLAIN: dict[str, Any] = {
    **{
        name: getattr(np, name)
        for name in (
            "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not "
            "isnan isinf isfinite bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift "
            "bitwise_right_shift any all argmax argmin argsort nonzero"
        ).split()
    },
}
BITWISE = {name for name in PLAIN if name.startswith("bitwise")}

# public names that make tensors from nothing, choose backends or inspect: not functions of tensors
OTHER = set(
    "arange asarray compute empty empty_like eye from_dlpack from_inner full full_like linspace ones ones_like persist "
    "tensor zeros zeros_like default_device default_dtype device primitive register_namespace set_default_device "
    "set_default_dtype use_device use_dtype why draw random.bernoulli random.integers random.seed "
    "testing.check_grads testing.grads_report testing.source_locations".split()
)
