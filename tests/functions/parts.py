"""Calls of functions that cut, pad, pick, order and compare parts of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from functions.arrays import two
from functions.draw import Call, Draw

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {}


def _cut(name: str) -> Callable[[Draw], Call]:
    def make(d: Draw) -> Call:
        shape = d.shape(1)
        axis = d.axis(shape)
        n = shape[axis]
        match name:
            case "chunk":
                f: Any = lambda a, k=d.pick(1, 2, 5): ad.chunk(a, k, axis=axis)
            case "split_with_sizes":
                first = d.pick(*range(n + 1))
                f = lambda a: ad.split_with_sizes(a, (first, n - first), axis=axis)
            case "narrow":
                start = d.pick(*range(n + 1))
                f = lambda a: ad.narrow(a, axis, start, n - start)
            case "unflatten":
                f = lambda a, sizes=d.pick((n,), (1, n), (n, 1, 1)): ad.unflatten(a, axis, sizes)
            case "diag_embed":
                k, axes = d.pick(0, 1, -2), d.pick((-2, -1), (0, 1), (-1, 0))
                f = lambda a: ad.diag_embed(a, k, *axes)
            case "resize":
                f = lambda a, to=d.pick((2, 3), (0,), (), (7,)): ad.resize(a, to)
            case _:
                raise AssertionError(name)
        return f, d.either(shape)

    return make


FUNCTIONS |= {name: _cut(name) for name in "chunk split_with_sizes narrow unflatten diag_embed resize".split()}


def _padded(d: Draw) -> Call:
    shape = d.shape(1, 2, sizes=(3, 2, 1))
    width = d.pick(1, (0, 2), (5, 1), 0, {0: (1, 2)}, [(i, 1) for i in range(len(shape))])
    mode = d.pick(
        "edge", "reflect", "symmetric", "wrap", "linear_ramp", "mean", "maximum", "minimum", "median", "constant"
    )
    odd = d.pick("even", "odd")
    how: dict[str, Any] = {"mode": mode, "value": 1.5, "end_values": (1.0, -2.0), "reflect_type": odd}
    if mode in ("mean", "maximum", "minimum", "median"):
        how["stat_length"] = d.pick(None, 1, (2, 1))
    if mode in ("maximum", "minimum", "median"):  # a corner may tie with the border that was padded before
        return (lambda a: ad.pad(a, {0: (2, 1)}, **how)), d.distinct(shape)
    return (lambda a: ad.pad(a, width, **how)), d.either(shape)


FUNCTIONS["pad"] = _padded

# --- picked and compared ---


def _lines(f: Any, d: Draw) -> Call:
    return (lambda *xs: f(*xs)), *[d.either((d.pick(2, 3, 1, 0),)) for _ in range(d.pick(2, 1, 3))]


def _combinations(d: Draw) -> Call:
    r, again = d.pick(2, 1, 3, 0), d.pick(False, True)
    return (lambda a: ad.combinations(a, r, again)), d.either((d.pick(3, 2, 0),))


def _placed(f: Any, d: Draw) -> Call:
    shape = d.shape(1, sizes=(3, 1, 2))
    axis, keepdims = d.pick(d.axis(shape), None), d.pick(False, True)
    if f is ad.kthvalue:
        k = d.pick(1, int(np.prod(shape)) if axis is None else shape[axis])
        return (lambda a: f(a, k, axis=axis, keepdims=keepdims)), d.distinct(shape)
    return (lambda a: f(a, axis=axis, keepdims=keepdims)), d.distinct(shape)


def _extreme(f: Any, d: Draw) -> Call:
    shape = d.shape(sizes=(3, 1, 2))
    if d.pick(False, True):
        axis, keepdims = d.axes(shape), d.pick(False, True)
        return (lambda a: f(a, axis, keepdims=keepdims)), d.distinct(shape)
    one = d.pick(None, *[d.axis(shape)] * bool(shape))
    keep = d.pick(False, True)
    return (lambda a: f(a, one, keepdims=keep, return_indices=True)), d.distinct(shape)


def _moments(f: Any, d: Draw) -> Call:
    shape = d.shape(sizes=(3, 2))
    axis, keepdims = d.axes(shape), d.pick(False, True)
    return (lambda a: f(a, axis, keepdims=keepdims)), d.distinct(shape)


def _masked(d: Draw) -> Call:
    shape = d.pick((3,), (2, 3), (), (0, 2))
    mask = d.mask(d.pick(shape, shape[-1:]))
    return (lambda a, v: ad.masked_scatter(a, mask, v)), d.either(shape), d.either(d.pick((2, 4), (8,)))


def _addmm(d: Draw) -> Call:
    x, y, c = d.pick(((2, 3), (3, 2), (2, 2)), ((2, 3), (3,), ()), ((2, 1, 3), (3, 2), (2,)), ((0, 3), (3, 2), (2,)))
    beta, alpha = d.pick(1, 0.5, 0), d.pick(1, -2.0)
    return (lambda c, a, b: ad.addmm(c, a, b, beta=beta, alpha=alpha)), d.either(c), d.either(x), d.either(y)


def _distances(d: Draw) -> Call:
    x, y = d.pick(((2, 3), (4, 3)), ((2, 1, 2), (3, 2)), ((0, 2), (3, 2)), ((1, 2), (2, 3, 2)))
    p = d.pick(2.0, 1.0, 3.0, 1.5, np.inf)
    left, right = two(d, x, y)
    return (lambda a, b: ad.cdist(a, b, p)), left, right


def _renorm(d: Draw) -> Call:
    p, axis, bound = d.pick(2.0, 1.0, 3.0), d.pick(0, -1), d.pick(0.7, 2.0)
    return (lambda a: ad.renorm(a, p, axis, bound)), d.either(d.pick((2, 3), (3, 2, 2)))


def _running(f: Any, d: Draw) -> Call:
    shape = d.shape(1)
    axis = d.axis(shape)
    return (lambda a: f(a, axis=axis)), d.real(shape)


FUNCTIONS |= {
    "cartesian_prod": lambda d: _lines(ad.cartesian_prod, d),
    "combinations": _combinations,
    "kthvalue": lambda d: _placed(ad.kthvalue, d),
    "mode": lambda d: _placed(ad.mode, d),
    "max": lambda d: _extreme(ad.max, d),
    "min": lambda d: _extreme(ad.min, d),
    "var_mean": lambda d: _moments(ad.var_mean, d),
    "std_mean": lambda d: _moments(ad.std_mean, d),
    "masked_scatter": _masked,
    "addmm": _addmm,
    "cdist": _distances,
    "renorm": _renorm,
    "logcumsumexp": lambda d: _running(ad.logcumsumexp, d),
    "rsqrt": lambda d: (ad.rsqrt, d.pick(d.positive, d.complex)(d.shape())),
}
