"""Cases of the primitives that the first functions needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes
from adjoint.primitives import ARRAY, conv_size
from cases.values import (
    AXES,
    LINES,
    PAIRS,
    Array,
    Case,
    between,
    binary,
    bools,
    cplx,
    definite,
    distinct,
    either_sign,
    grid,
    ints,
    lines,
    natural,
    off_integers,
    positive,
    real,
    reductions,
    regular,
    shuffled,
    squares,
    unary,
    unit,
    wholes,
)

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
    ((4,), (ARRAY,), ([2, -1, 0, -4],)),  # from the end; one place by two names
    ((4,), (None, ARRAY), ([[1, 3], [0, 1]],)),
    ((3, 4), (ARRAY,), ([2, 0],)),
    ((3, 4), (_ALL, ARRAY), ([3, 1, 3],)),
    ((3, 4), (ARRAY, ARRAY), ([0, 2, 0], [1, 3, 1])),
    ((3, 4), (ARRAY, ARRAY), ([[0], [2]], [1, 1, 3])),
    ((3, 4), (ARRAY, ARRAY), ([-1, 2, 0], [1, -3, -4])),
    ((3, 4), (2, ARRAY), ([1, 0],)),
    ((3, 4), (ARRAY, slice(3, None, -2)), ([1, 1],)),
    ((2, 3, 4), (ARRAY, _ALL, ARRAY), ([1, 0, 1], [3, 2, 3])),
    ((2, 3, 4), (_ALL, ARRAY, ARRAY), ([2, 0], [1, 1])),
    ((2, 3, 4), (_ALL, ARRAY, 1), ([2, 2],)),
    ((2, 3, 4), (1, _ALL, ARRAY), ([0, 2],)),
    ((2, 3, 4), (_ALL, ARRAY, 1), ([-1, 0],)),
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
    ((1, 1, 3, 3), (1, 1, 2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((1, 2, 4, 3), (2, 2, 2, 2), (1, 1), ((1, 1), (0, 0)), (1, 1), 1),
    ((2, 1, 3, 4), (2, 1, 1, 3), (1, 2), ((0, 0), (1, 1)), (1, 1), 1),
    ((1, 1, 5, 4), (1, 1, 2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1), 1),  # the stride does not reach the border
    ((1, 1, 5, 4), (2, 1, 2, 2), (1, 1), ((1, 1), (1, 1)), (2, 3), 1),
    ((1, 2, 3, 3), (4, 1, 2, 2), (1, 1), ((0, 0), (1, 0)), (1, 1), 2),  # as "same" pads an even kernel
    ((1, 4, 2, 3), (2, 2, 2, 1), (2, 1), ((1, 0), (0, 2)), (1, 1), 2),
    ((0, 1, 3, 3), (1, 1, 2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((2, 2, 5), (4, 1, 2), (2,), ((1, 0),), (2,), 2),
    ((1, 1, 2, 3, 2), (2, 1, 2, 2, 1), (1, 2, 1), ((0, 0), (1, 1), (0, 1)), (1, 2, 1), 1),
]


def _convolutions(name: str, make: Callable[..., Array]) -> list[Case]:
    cases = []
    for x, weight, stride, padding, dilation, groups in _CONVOLUTIONS:
        g = (x[0], weight[0], *map(conv_size, x[2:], weight[2:], stride, padding, dilation))
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        match name:
            case "conv":
                cases.append(Case((make(*x), make(*weight)), how))
            case "conv_input":
                cases.append(Case((make(*g), make(*weight)), {**how, "size": x[2:]}))
            case _:
                cases.append(Case((make(*x), make(*g)), {**how, "size": weight[2:]}))
    return cases


# --- linear algebra ---


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
    "tan": (either_sign(0.2, 1.2), cplx),
    "asin": (unit, cplx),
    "acos": (unit, cplx),
    "atan": (real, cplx),
    "sinh": (real, cplx),
    "cosh": (real, cplx),
    "tanh": (real, cplx),
    "asinh": (real, cplx),
    "acosh": (between(1.3, 3.0), cplx),
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
    **{name: unary(*makers) for name, makers in _SMOOTH.items()},
    **{
        name: [*binary(real, real, 2.0, 3), *binary(cplx, cplx, 2.0, 1 - 2j), *binary(ints, ints, 3)]
        for name in ("add", "subtract", "multiply")
    },
    "absorbing_multiply": [*binary(real, real, 2.0, 0.0), *binary(cplx, cplx, 2.0)],
    "divide": [*binary(real, real, 2.0, 3), *binary(cplx, cplx, 1 - 2j)],
    "floor_divide": [*binary(off_integers, wholes, 2.5), *binary(ints, natural, 3)],
    "remainder": [
        *binary(off_integers, wholes, 2.5),
        *binary(off_integers, lambda *s: np.asarray(-wholes(*s))),
        *binary(ints, natural, 3),
    ],
    "pow": [
        *binary(positive, real, 2.0, 0.5),
        Case((real(2, 2), 3)),
        Case((real(3), 3.0)),
        Case((real(3), -2)),
        Case((0.0, positive(3))),
        *binary(cplx, cplx, 2.0),
        Case((ints(3), 2)),
        Case((ints(2, 2), natural(2))),
    ],
    **{
        name: [*binary(grid(0.1), grid(0.4), 0, 0.25), *binary(ints, ints, 0), *binary(bools, bools, False)]
        for name in ("maximum", "minimum")
    },
    "atan2": binary(real, real, 2.0),
    "logaddexp": binary(real, real, 0.5, 0),
    **{
        name: [*binary(natural, natural, 3), *(binary(bools, bools, True) if "shift" not in name else [])]
        for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
    },
    **{
        name: [*binary(grid(0.1), grid(0.4), 0), *binary(ints, ints, 1)]
        for name in ["less", "less_equal", "greater", "greater_equal"]
    },
    **{
        name: [
            *binary(grid(0.25), grid(0.25), 0.25),
            *binary(ints, ints, 1),
            *binary(bools, bools, True),
            *binary(cplx, cplx, 1j),
        ]
        for name in ("equal", "not_equal")
    },
    **{
        name: [*binary(bools, bools, True), *binary(ints, ints, 0), Case((real(3), real(3)))]
        for name in ("logical_and", "logical_or", "logical_xor")
    },
    **{
        name: [Case((real(*x), unit(*y))) for x, y in PAIRS]
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
    "sum": [*reductions(real), *reductions(cplx), *reductions(ints)],
    "prod": [
        *reductions(real),
        *reductions(cplx),
        *reductions(ints),
        Case((np.asarray([[2.0, 0.0, -1.5], [0.0, 0.0, 1.0]]),), {"axis": (1,), "keepdims": False}),
    ],
    "logsumexp": reductions(real),
    "vector_norm": [*reductions(real), *reductions(cplx)],
    **{name: [*reductions(distinct, AXES), *reductions(bools, AXES[:4])] for name in ("max", "min")},
    **{name: [*reductions(bools), *reductions(ints), *reductions(real)] for name in ("any", "all")},
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
    "cumulative_sum": [*lines(real), *lines(cplx), *lines(ints), Case((real(2, 0),), {"axis": 1})],
    "cumulative_prod": [
        *lines(real),
        *lines(cplx),
        *lines(ints),
        Case((np.asarray([[2.0, 0.0, -1.5], [0.5, 0.0, 0.0]]),), {"axis": 1}),
    ],
    "softmax": lines(real),
    "log_softmax": lines(real),
    "softmax_pullback": lines(real, positive),
    "log_softmax_pullback": lines(real, between(-2.5, -0.3)),
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
    "roll": [
        Case((np.arange(math.prod(shape), dtype=dtype).reshape(shape) + 1,), {"shift": shift, "axis": axis})
        for dtype in (np.float64, np.int64)
        for shape, shift, axis in [((3,), 1, 0), ((2, 3), 2, 1), ((4, 3), 3, 0), ((2, 3, 0), 2, 1)]
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
            ((2, 3), [[-1, 0], [1, -3]], 1),
            ((3,), [], 0),
        ]
    ],
    **{
        name: [
            Case((make(*shape),), {"axis": axis, "descending": descending})
            for make in (distinct, shuffled)
            for shape, axis in LINES
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
        for name in ("conv", "conv_input", "conv_weight")
    },
    # linear algebra
    **{name: squares(regular(real), regular(cplx)) for name in ("inv", "det", "cofactor")},
    "cholesky": squares(definite(real), definite(cplx)),
    "solve": [Case((regular(make)(*a), make(*b))) for make in (real, cplx) for a, b in _SYSTEMS],
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
