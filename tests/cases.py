"""Calls of every primitive, as data: the conformance suite runs them, and so do derivative checks.

Values stay away from points where a function is singular, jumps or has a kink, and compared values
are well apart, so that a numerical derivative makes sense in every floating operand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjoint import dtypes
from adjoint.primitives import ARRAY, conv_size

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One call: operands in order, NumPy arrays or Python scalars, and the parameters by name."""

    operands: tuple[Any, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        operands = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in self.operands]
        return ",".join(operands + [f"{name}={value}" for name, value in self.parameters.items()])


_rng = np.random.default_rng(20240229)


# --- operands ---


def _between(low: float, high: float) -> Callable[..., Array]:
    """A maker of uniform values of a shape."""
    return lambda *shape: np.asarray(_rng.uniform(low, high, shape))


def _either_sign(low: float, high: float) -> Callable[..., Array]:
    """A maker of values whose sizes are uniform."""
    return lambda *shape: np.asarray(_rng.uniform(low, high, shape) * _rng.choice([-1.0, 1.0], shape))


real = _either_sign(0.3, 2.0)
positive = _between(0.3, 2.5)
unit = _either_sign(0.1, 0.8)


def cplx(*shape: int) -> Array:
    return np.asarray(real(*shape) + 1j * real(*shape))


def off_integers(*shape: int) -> Array:
    """Values away from integers and halves."""
    return np.asarray(_rng.integers(-3, 3, shape) + _rng.uniform(0.1, 0.4, shape))


def distinct(*shape: int) -> Array:
    """Values at least 0.2 apart, in no order, none near zero."""
    count = int(np.prod(shape))
    values = 0.3 * (np.arange(count) - count // 2) + 0.1
    return np.asarray(_rng.permutation(values).reshape(shape) + _rng.uniform(-0.05, 0.05, shape))


def grid(offset: float) -> Callable[..., Array]:
    """A maker of multiples of 0.6 plus an offset: those of two offsets never tie."""
    return lambda *shape: np.asarray(0.6 * _rng.integers(-3, 3, shape) + offset)


def ints(*shape: int) -> Array:
    return np.asarray(_rng.integers(-5, 6, shape))


def wholes(*shape: int) -> Array:
    """Small whole numbers as floats, from 1."""
    return natural(*shape).astype(np.float64)


def shuffled(*shape: int) -> Array:
    """The integers from 0, in no order."""
    return np.asarray(_rng.permutation(int(np.prod(shape))).reshape(shape))


def natural(*shape: int) -> Array:
    return np.asarray(_rng.integers(1, 5, shape))


def bools(*shape: int) -> Array:
    return np.asarray(_rng.integers(0, 2, shape, dtype=np.int64) == 1)


# --- cases of many primitives ---

_SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (3,), (2, 3)]
_PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), (3,)), ((2, 3), (3,)), ((), (2, 2)), ((2, 1), (1, 3)), ((1,), (2, 2)), ((0, 3), (1, 3)),
    ((1, 2, 1), (3, 1, 2)),
]  # fmt: skip


def _unary(*makers: Callable[..., Array]) -> list[Case]:
    return [Case((make(*shape),)) for make in makers for shape in _SHAPES]


def _binary(left: Callable[..., Array], right: Callable[..., Array], *scalars: Any) -> list[Case]:
    """Broadcasting patterns, and each scalar on either side."""
    cases = [Case((left(*x), right(*y))) for x, y in _PAIRS]
    cases += [Case((left(2, 2), scalar)) for scalar in scalars]
    return cases + [Case((scalar, right(3))) for scalar in scalars]


_AXES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), (0,)), ((1,), (0,)), ((2, 3), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 3), ()),
    ((2, 3, 2), (0, 2)), ((0, 3), (1,)),
]  # fmt: skip
_EMPTY_AXES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((0,), (0,)), ((2, 0), (1,))]


def _reductions(make: Callable[..., Array], axes: Any = None) -> list[Case]:
    return [
        Case((make(*shape),), {"axis": axis, "keepdims": keepdims})
        for shape, axis in axes or [*_AXES, *_EMPTY_AXES]
        for keepdims in (False, True)
    ]


_LINES: list[tuple[tuple[int, ...], int]] = [
    ((3,), 0),
    ((1,), 0),
    ((2, 3), 0),
    ((2, 3), 1),
    ((0, 3), 1),
    ((2, 2, 2), 1),
]


def _lines(*makers: Callable[..., Array], **parameters: Any) -> list[Case]:
    return [Case(tuple([make(*shape) for make in makers]), {"axis": axis, **parameters}) for shape, axis in _LINES]


# --- indexing ---

_ALL = slice(None)
_BASIC_KEYS: list[tuple[tuple[int, ...], Any]] = [
    ((), ()),
    ((), (None,)),
    ((4,), (2,)),
    ((4,), (slice(1, 3, 1),)),
    ((4,), (slice(3, None, -1),)),
    ((4,), (slice(3, 0, -2),)),
    ((4,), (slice(2, 2, 1),)),
    ((3, 4), (1,)),
    ((3, 4), (_ALL, slice(0, 4, 2))),
    ((3, 4), (None, slice(2, None, -1), None, 1)),
    ((2, 3, 2), (1, slice(0, 3, 2), 0)),
    ((0, 3), (_ALL, slice(0, 2, 1))),
    ((3, 2), ()),
]
_ARRAY_KEYS: list[tuple[tuple[int, ...], Any, tuple[Any, ...]]] = [
    ((4,), (ARRAY,), ([2, 0, 3],)),
    ((4,), (ARRAY,), (1,)),
    ((4,), (ARRAY,), ([],)),
    ((4,), (ARRAY,), ([1, 1, 0, 1],)),
    ((4,), (None, ARRAY), ([[1, 3], [0, 1]],)),
    ((3, 4), (ARRAY,), ([2, 0],)),
    ((3, 4), (_ALL, ARRAY), ([3, 1, 3],)),
    ((3, 4), (ARRAY, ARRAY), ([0, 2, 0], [1, 3, 1])),
    ((3, 4), (ARRAY, ARRAY), ([[0], [2]], [1, 1, 3])),
    ((3, 4), (2, ARRAY), ([1, 0],)),
    ((3, 4), (ARRAY, slice(3, None, -2)), ([1, 1],)),
    ((2, 3, 4), (ARRAY, _ALL, ARRAY), ([1, 0, 1], [3, 2, 3])),
    ((2, 3, 4), (_ALL, ARRAY, ARRAY), ([2, 0], [1, 1])),
    ((2, 3, 4), (_ALL, ARRAY, 1), ([2, 2],)),
    ((2, 3, 4), (1, _ALL, ARRAY), ([0, 2],)),
    ((2, 3, 2), (None, ARRAY, slice(0, 2, 1), None, ARRAY), ([1, 0], [[1], [0]])),
]


def _arrays(arrays: tuple[Any, ...]) -> tuple[Array, ...]:
    return tuple([np.asarray(a, dtype=np.int64) for a in arrays])


def _reads(make: Callable[..., Array]) -> list[Case]:
    cases = [Case((make(*shape),), {"key": key}) for shape, key in _BASIC_KEYS]
    return cases + [Case((make(*shape), *_arrays(arrays)), {"key": key}) for shape, key, arrays in _ARRAY_KEYS]


def _numpy_key(key: Any, arrays: tuple[Any, ...]) -> Any:
    rest = iter(arrays)
    return tuple([next(rest) if entry is ARRAY else entry for entry in key])


def _writes(make: Callable[..., Array]) -> list[Case]:
    """Values of the whole indexed shape, 0-d ones, and ones that broadcast along the first axis."""
    cases = []
    for shape, key, arrays in [*[(shape, key, ()) for shape, key in _BASIC_KEYS], *_ARRAY_KEYS]:
        indices = _arrays(arrays)
        target = np.empty(shape)[_numpy_key(key, indices)].shape
        values = [make(*target), make()]
        if len(target) > 1:
            values.append(make(1, *target[1:]))
        cases += [Case((make(*shape), value, *indices), {"key": key}) for value in values]
    return cases


# --- convolutions ---

# x, weight, stride, padding, dilation, groups
_CONVOLUTIONS: list[tuple[Any, ...]] = [
    ((1, 1, 3, 3), (1, 1, 2, 2), (1, 1), (0, 0), (1, 1), 1),
    ((1, 2, 4, 3), (2, 2, 2, 2), (1, 1), (1, 0), (1, 1), 1),
    ((2, 1, 3, 4), (2, 1, 1, 3), (1, 2), (0, 1), (1, 1), 1),
    ((1, 1, 5, 4), (1, 1, 2, 2), (2, 2), (0, 0), (1, 1), 1),  # the stride does not reach the border
    ((1, 1, 5, 4), (2, 1, 2, 2), (1, 1), (1, 1), (2, 3), 1),
    ((1, 2, 3, 3), (4, 1, 2, 2), (1, 1), (0, 1), (1, 1), 2),
    ((1, 4, 2, 3), (2, 2, 2, 1), (2, 1), (1, 0), (1, 1), 2),
    ((0, 1, 3, 3), (1, 1, 2, 2), (1, 1), (0, 0), (1, 1), 1),
]


def _convolutions(name: str, make: Callable[..., Array]) -> list[Case]:
    cases = []
    for x, weight, stride, padding, dilation, groups in _CONVOLUTIONS:
        out = [conv_size(x[2 + i], weight[2 + i], stride[i], padding[i], dilation[i]) for i in range(2)]
        g = (x[0], weight[0], *out)
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        match name:
            case "conv2d":
                cases.append(Case((make(*x), make(*weight)), how))
            case "conv2d_input":
                cases.append(Case((make(*g), make(*weight)), {**how, "size": x[2:]}))
            case _:
                cases.append(Case((make(*x), make(*g)), {**how, "size": weight[2:]}))
    return cases


# --- linear algebra ---


def _regular(make: Callable[..., Array]) -> Callable[..., Array]:
    """A maker of square matrices with a good condition number."""

    def matrices(*shape: int) -> Array:
        return 0.5 * make(*shape) + 2.5 * np.eye(shape[-1]) if shape[-1] else make(*shape)

    return matrices


def _definite(make: Callable[..., Array]) -> Callable[..., Array]:
    """A maker of symmetric or Hermitian positive definite matrices."""

    def matrices(*shape: int) -> Array:
        a = make(*shape)
        return np.asarray(np.matmul(a, np.conj(np.swapaxes(a, -1, -2))) + np.eye(shape[-1]))

    return matrices


_SQUARES = [(1, 1), (2, 2), (3, 3), (2, 2, 2), (0, 2, 2), (0, 0)]


def _squares(*makers: Callable[..., Array]) -> list[Case]:
    return [Case((make(*shape),)) for make in makers for shape in _SQUARES]


_SYSTEMS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 1), (1, 1)), ((2, 2), (2, 3)), ((3, 3), (3, 1)), ((2, 2, 2), (2, 1)), ((2, 2), (2, 2, 1)),
    ((2, 1, 2, 2), (3, 2, 1)), ((2, 2), (2, 0)),
]  # fmt: skip
_PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3), (3, 2)), ((1, 1), (1, 1)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 1)), ((2, 1, 2, 2), (3, 2, 1)),
    ((0, 3), (3, 2)), ((2, 0), (0, 3)),
]  # fmt: skip


_JOINS: list[tuple[list[tuple[int, ...]], int]] = [
    ([(3,)], 0), ([(2,), (0,), (3,)], 0), ([(2, 2), (2, 1), (2, 3)], 1), ([(1, 2), (2, 2)], 0), ([(0,), (0,)], 0),
]  # fmt: skip


# --- the table ---

_SMOOTH: dict[str, tuple[Callable[..., Array], ...]] = {
    "negative": (real, cplx, ints),
    "square": (real, cplx, ints),
    "sqrt": (positive, cplx),
    "exp": (real, cplx),
    "expm1": (real, cplx),
    "log": (positive, cplx),
    "log1p": (unit, cplx),
    "log2": (positive, cplx),
    "log10": (positive, cplx),
    "sin": (real, cplx),
    "cos": (real, cplx),
    "tan": (_either_sign(0.2, 1.2), cplx),
    "asin": (unit, cplx),
    "acos": (unit, cplx),
    "atan": (real, cplx),
    "sinh": (real, cplx),
    "cosh": (real, cplx),
    "tanh": (real, cplx),
    "asinh": (real, cplx),
    "acosh": (_between(1.3, 3.0), cplx),
    "atanh": (unit, cplx),
    "conj": (real, cplx),
    "real": (real, cplx),
    "imag": (real, cplx),
    "abs": (real, cplx, ints),
    "sign": (real, cplx, ints),
    "expit": (real,),
    "erf": (real,),
    "relu": (real, ints),
    "softplus": (real,),
    "silu": (real,),
    "gelu": (real,),
    "floor": (off_integers, ints),
    "ceil": (off_integers, ints),
    "trunc": (off_integers, ints),
    "round": (off_integers, ints),
    "logical_not": (bools, real, ints),
    "isnan": (real, cplx, ints),
    "isinf": (real, cplx, ints),
    "isfinite": (real, cplx, ints),
    "bitwise_invert": (ints, bools),
}

_KEYED = [
    {"key": (7, 3), "shape": shape, "dtype": dtype}
    for shape in ((), (0,), (2, 3))
    for dtype in (dtypes.float32, dtypes.float64)
]

CASES: dict[str, list[Case]] = {
    **{name: _unary(*makers) for name, makers in _SMOOTH.items()},
    **{
        name: [*_binary(real, real, 2.0, 3), *_binary(cplx, cplx, 2.0, 1 - 2j), *_binary(ints, ints, 3)]
        for name in ("add", "subtract", "multiply")
    },
    "absorbing_multiply": [*_binary(real, real, 2.0, 0.0), *_binary(cplx, cplx, 2.0)],
    "divide": [*_binary(real, real, 2.0, 3), *_binary(cplx, cplx, 1 - 2j)],
    "floor_divide": [*_binary(off_integers, wholes, 2.5), *_binary(ints, natural, 3)],
    "remainder": [
        *_binary(off_integers, wholes, 2.5),
        *_binary(off_integers, lambda *s: np.asarray(-wholes(*s))),
        *_binary(ints, natural, 3),
    ],
    "pow": [
        *_binary(positive, real, 2.0, 0.5),
        Case((real(2, 2), 3)),
        Case((real(3), 3.0)),
        Case((real(3), -2)),
        Case((0.0, positive(3))),
        *_binary(cplx, cplx, 2.0),
        Case((ints(3), 2)),
        Case((ints(2, 2), natural(2))),
    ],
    **{
        name: [*_binary(grid(0.1), grid(0.4), 0, 0.25), *_binary(ints, ints, 0), *_binary(bools, bools, False)]
        for name in ("maximum", "minimum")
    },
    "atan2": _binary(real, real, 2.0),
    "logaddexp": _binary(real, real, 0.5, 0),
    **{
        name: [*_binary(natural, natural, 3), *(_binary(bools, bools, True) if "shift" not in name else [])]
        for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
    },
    **{
        name: [*_binary(grid(0.1), grid(0.4), 0), *_binary(ints, ints, 1)]
        for name in ["less", "less_equal", "greater", "greater_equal"]
    },
    **{
        name: [
            *_binary(grid(0.25), grid(0.25), 0.25),
            *_binary(ints, ints, 1),
            *_binary(bools, bools, True),
            *_binary(cplx, cplx, 1j),
        ]
        for name in ("equal", "not_equal")
    },
    **{
        name: [*_binary(bools, bools, True), *_binary(ints, ints, 0), Case((real(3), real(3)))]
        for name in ("logical_and", "logical_or", "logical_xor")
    },
    **{
        name: [Case((real(*x), unit(*y))) for x, y in _PAIRS]
        for name in ("tanh_pullback", "expit_pullback", "relu_pullback", "silu_pullback", "gelu_pullback")
    },
    "where": [
        Case((bools(*c), make(*x), make(*y)))
        for make in (real, cplx, ints)
        for c, x, y in [((), (), ()), ((3,), (3,), (3,)), ((2, 1), (3,), ()), ((2,), (1,), (2, 2)), ((0,), (1,), (1,))]
    ]
    + [Case((bools(3), real(3), 0.0)), Case((bools(3), 1.5, real(2, 3))), Case((bools(3), 0, cplx(3)))],
    "clip": [
        Case((grid(0.1)(*x), low, high))
        for x in ((), (4,), (2, 3), (0,))
        for low, high in [(-0.8, 0.9), (np.asarray(-0.8), np.asarray(0.9)), (-0.8, np.asarray(0.9)), (-100, 0)]
    ]
    + [
        Case((grid(0.1)(2, 1), np.asarray([-1.0, -0.3, 0.3]), np.asarray([0.9, 0.9, 0.8]))),
        Case((grid(0.1)(3), np.asarray([1.0]), np.asarray([-1.0]))),  # crossed bounds give the higher one
        Case((ints(2, 3), -2, 3)),
    ],
    "astype": [
        Case((make(*shape),), {"dtype": dtype})
        for shape in ((), (0,), (2, 3))
        for make, dtype in [
            (real, dtypes.float32),
            (real, dtypes.float64),
            (real, dtypes.complex128),
            (real, dtypes.complex64),
            (cplx, dtypes.float64),
            (cplx, dtypes.float32),
            (cplx, dtypes.complex64),
            (real, dtypes.int64),
            (real, dtypes.int8),
            (positive, dtypes.uint8),
            (real, dtypes.bool),
            (cplx, dtypes.bool),
            (ints, dtypes.float64),
            (ints, dtypes.uint8),
            (ints, dtypes.bool),
            (bools, dtypes.float64),
            (bools, dtypes.int64),
            (cplx, dtypes.int64),
            (ints, dtypes.complex128),
        ]
    ],
    # reductions
    "sum": [*_reductions(real), *_reductions(cplx), *_reductions(ints)],
    "prod": [
        *_reductions(real),
        *_reductions(cplx),
        *_reductions(ints),
        Case((np.asarray([[2.0, 0.0, -1.5], [0.0, 0.0, 1.0]]),), {"axis": (1,), "keepdims": False}),
    ],
    "logsumexp": _reductions(real),
    "vector_norm": [*_reductions(real), *_reductions(cplx)],
    **{name: [*_reductions(distinct, _AXES), *_reductions(bools, _AXES[:4])] for name in ("max", "min")},
    **{name: [*_reductions(bools), *_reductions(ints), *_reductions(real)] for name in ("any", "all")},
    **{
        name: [
            Case((distinct(*shape),), {"axis": axis, "keepdims": keepdims})
            for shape, axis in [
                ((), None),
                ((3,), 0),
                ((3,), None),
                ((2, 3), 0),
                ((2, 3), 1),
                ((2, 3), None),
                ((0, 2), 1),
            ]
            for keepdims in (False, True)
        ]
        + [Case((bools(4),), {"axis": 0, "keepdims": False})]
        for name in ("argmax", "argmin")
    },
    "cumulative_sum": [*_lines(real), *_lines(cplx), *_lines(ints), Case((real(2, 0),), {"axis": 1})],
    "cumulative_prod": [
        *_lines(real),
        *_lines(cplx),
        *_lines(ints),
        Case((np.asarray([[2.0, 0.0, -1.5], [0.5, 0.0, 0.0]]),), {"axis": 1}),
    ],
    "softmax": _lines(real),
    "log_softmax": _lines(real),
    "softmax_pullback": _lines(real, positive),
    "log_softmax_pullback": _lines(real, _between(-2.5, -0.3)),
    "standardize": [
        Case((real(*shape),), {"axis": axis, "epsilon": 1e-3})
        for shape, axis in [
            ((3,), (0,)),
            ((2, 3), (1,)),
            ((2, 3), (0, 1)),
            ((2, 2, 3), (0, 2)),
            ((1,), (0,)),
            ((0, 3), (1,)),
        ]
    ],
    "softmax_cross_entropy": [
        Case((real(3), np.asarray(1))),
        Case((real(4, 3), np.asarray([2, 0, 2, 1]))),
        Case((real(2, 2, 3), np.asarray([[2, 0], [1, 1]]))),
        Case((real(1, 1), np.asarray([0]))),
        Case((real(0, 3), np.zeros(0, dtype=np.int64))),
    ],
    "softmax_cross_entropy_pullback": [
        Case((real(), real(3), np.asarray(1))),
        Case((real(4), real(4, 3), np.asarray([2, 0, 2, 1]))),
        Case((real(2, 2), real(2, 2, 3), np.asarray([[2, 0], [1, 1]]))),
        Case((real(0), real(0, 3), np.zeros(0, dtype=np.int64))),
    ],
    # structure
    "reshape": [
        Case((make(*old),), {"shape": new})
        for make in (real, cplx, bools)
        for old, new in [((), (1, 1)), ((6,), (2, 3)), ((2, 3), (3, 2)), ((2, 3), (6,)), ((1,), ()), ((0, 3), (3, 0))]
    ],
    "broadcast_to": [
        Case((make(*old),), {"shape": new})
        for make in (real, cplx, ints)
        for old, new in [
            ((), ()),
            ((), (2, 2)),
            ((3,), (2, 3)),
            ((2, 1), (2, 3)),
            ((1,), (0,)),
            ((1, 2, 1), (2, 3, 2, 2)),
        ]
    ],
    "permute_dims": [
        Case((make(*shape),), {"axes": axes})
        for make in (real, cplx)
        for shape, axes in [((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((0, 2), (1, 0))]
    ],
    "expand_dims": [
        Case((real(*shape),), {"axis": axis})
        for shape, axis in [((), (0,)), ((3,), (0,)), ((3,), (1,)), ((2, 3), (0, 2)), ((2,), (0, 1, 3)), ((3,), ())]
    ],
    "squeeze": [
        Case((real(*shape),), {"axis": axis})
        for shape, axis in [((1,), (0,)), ((1, 3), (0,)), ((2, 1, 1), (1, 2)), ((1, 0), (0,)), ((1, 3), ())]
    ],
    "concat": [
        Case(tuple([make(*shape) for shape in shapes]), {"axis": axis})
        for make in (real, cplx, bools)
        for shapes, axis in _JOINS
    ],
    "flip": [
        Case((real(*shape),), {"axis": axis})
        for shape, axis in [((3,), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((0,), (0,)), ((2, 2), ()), ((), ())]
    ],
    "pad": [
        Case((make(*shape),), {"widths": widths, "value": value})
        for make, value in [(real, 0), (real, 1.5), (cplx, 0), (ints, 7), (bools, True)]
        for shape, widths in [
            ((), ()),
            ((3,), ((1, 2),)),
            ((2, 2), ((0, 1), (2, 0))),
            ((0,), ((1, 1),)),
            ((2,), ((0, 0),)),
        ]
    ],
    **{
        name: [
            Case((make(*shape),), {"k": k})
            for make in (real, cplx)
            for shape in [(3, 3), (2, 3), (3, 2), (2, 2, 2), (1, 1), (0, 2)]
            for k in (-1, 0, 1)
        ]
        for name in ("tril", "triu")
    },
    # indexing
    "index": [*_reads(real), *_reads(cplx)[::5], *_reads(bools)[::7]],
    "index_set": [*_writes(real), *_writes(cplx)[::5], *_writes(ints)[::7]],
    "index_add": [*_writes(real), *_writes(cplx)[::5], *_writes(ints)[::7]],
    "take_along_axis": [
        Case((make(*shape), np.asarray(indices, dtype=np.int64)), {"axis": axis})
        for make in (real, cplx)
        for shape, indices, axis in [
            ((3,), [2, 0, 2, 1], 0),
            ((2, 3), [[1], [0]], 1),
            ((2, 3), [[1, 0, 1]], 0),
            ((2, 3), [[0, 2, 2, 1]], 1),
            ((1, 3), [[1], [2]], 1),
            ((3,), [], 0),
        ]
    ],
    **{
        name: [
            Case((make(*shape),), {"axis": axis, "descending": descending})
            for make in (distinct, shuffled)
            for shape, axis in _LINES
            for descending in (False, True)
        ]
        + [Case((bools(4),), {"axis": 0, "descending": True})]
        for name in ("sort", "argsort")
    },
    "topk": [
        Case((distinct(*shape),), {"k": k, "axis": axis, "largest": largest})
        for shape, axis in [((4,), 0), ((2, 3), 0), ((2, 3), 1), ((0, 3), 1)]
        for k in (0, 1, 2)
        for largest in (True, False)
    ],
    "nonzero": [Case((make(*shape),)) for make in (bools, ints, real) for shape in [(0,), (4,), (2, 3)]],
    # products
    "matmul": [Case((make(*x), make(*y))) for make in (real, cplx, ints) for x, y in _PRODUCTS],
    **{
        name: [*_convolutions(name, real), *_convolutions(name, cplx)[1::3]]
        for name in ("conv2d", "conv2d_input", "conv2d_weight")
    },
    # linear algebra
    **{name: _squares(_regular(real), _regular(cplx)) for name in ("inv", "det", "cofactor")},
    "cholesky": _squares(_definite(real), _definite(cplx)),
    "solve": [Case((_regular(make)(*a), make(*b))) for make in (real, cplx) for a, b in _SYSTEMS],
    # creation
    "full": [
        Case((), {"shape": shape, "value": value, "dtype": dtype})
        for shape in ((), (0,), (2, 3))
        for value, dtype in [
            (0, dtypes.float64),
            (1.5, dtypes.float32),
            (3, dtypes.int64),
            (True, dtypes.bool),
            (1j, dtypes.complex128),
        ]
    ],
    "arange": [
        Case((), {"start": start, "stop": stop, "step": step, "dtype": dtype})
        for start, stop, step, dtype in [
            (0, 5, 1, dtypes.int64),
            (5, 0, -2, dtypes.int64),
            (3, 3, 1, dtypes.int64),
            (3, 0, 1, dtypes.int8),
            (0.5, 2.0, 0.4, dtypes.float64),
            (0, 4, 1, dtypes.float32),
        ]
    ],
    "linspace": [
        Case((), {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": dtypes.float64})
        for start, stop in [(0.0, 1.0), (2.0, -1.0)]
        for num, endpoint in itertools.product((0, 1, 2, 5), (True, False))
    ],
    "eye": [
        Case((), {"rows": rows, "columns": columns, "k": k, "dtype": dtype})
        for rows, columns, k in [(3, 3, 0), (2, 3, 1), (3, 2, -1), (0, 2, 0), (1, 1, 0)]
        for dtype in (dtypes.float64, dtypes.bool, dtypes.int64)
    ],
    "random_uniform": [Case((), parameters) for parameters in _KEYED],
    "random_normal": [Case((), parameters) for parameters in _KEYED],
    "random_integers": [
        Case((), {"key": (7, 3), "low": -2, "high": 9, "shape": shape, "dtype": dtype})
        for shape in ((), (0,), (2, 3))
        for dtype in (dtypes.int64, dtypes.int8)
    ],
    "random_permutation": [Case((), {"key": (7, 3), "size": size, "dtype": dtypes.int64}) for size in (0, 1, 5)],
}
