"""Derivatives of recurrent networks over all steps of a sequence.

S. Hochreiter, J. Schmidhuber, Long Short-Term Memory (1997), with the forget gate of F. Gers et al. (2000). The
pullback makes the gates again from the states, and goes back through the steps: P. Werbos, Backpropagation Through
Time (1990).
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.dtypes import summing
from adjoint.rules.batching import along_axes
from adjoint.rules.records import Composed, Record
from adjoint.rules.sparsity import by_definition


def _T(B: Any, x: Any) -> Any:
    n = len(x.shape)
    return B.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


def _at(B: Any, x: Any, *places: int) -> Any:
    """The element at places along the axes before the last two."""
    lead = len(x.shape) - 2 - len(places)
    whole = [slice(0, n, 1) for n in x.shape]
    return B.index(x, key=(*whole[:lead], *places, *whole[-2:]))


def _parts(B: Any, x: Any, size: int) -> list[Any]:
    """The four gates."""
    whole = [slice(0, n, 1) for n in x.shape[:-1]]
    return [B.index(x, key=(*whole, slice(k * size, (k + 1) * size, 1))) for k in range(4)]


def _lstm_definition(B: Any, x: Any, weight: Any, h: Any, c: Any) -> Any:
    axis, size, turned = len(x.shape) - 3, weight.shape[-1], _T(B, weight)
    rows = []
    for t in range(x.shape[axis]):
        i, f, g, o = _parts(B, B.add(_at(B, x, t), B.matmul(h, turned)), size)
        c = B.add(B.multiply(B.expit(f), c), B.multiply(B.expit(i), B.tanh(g)))
        h = B.multiply(B.expit(o), B.tanh(c))
        row = B.concat(*[B.expand_dims(part, axis=(axis,)) for part in (h, c)], axis=axis)
        rows.append(B.expand_dims(row, axis=(axis,)))
    return B.concat(*rows, axis=axis)


def _lstm_pullback_definition(B: Any, *operands: Any) -> tuple[Any, ...]:
    """In single precision at least: gradients of half numbers are sums over all steps."""
    dtype = B.dtype_of(operands[0])
    wide = summing(dtype)
    if wide is dtype:
        return _pulled_back(B, *operands)
    found = _pulled_back(B, *[B.astype(x, dtype=wide) for x in operands])
    return tuple([B.astype(x, dtype=dtype) for x in found])


def _pulled_back(B: Any, g: Any, x: Any, weight: Any, h: Any, c: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    axis, size, turned = len(x.shape) - 3, weight.shape[-1], _T(B, weight)
    slopes, to_weight, to_h, to_c = [], None, None, None
    for t in reversed(range(x.shape[axis])):
        before, cell = (_at(B, y, t - 1, k) if t else first for k, first in enumerate((h, c)))
        a, b, d, e = _parts(B, B.add(_at(B, x, t), B.matmul(before, turned)), size)
        i, f, o, new, end = B.expit(a), B.expit(b), B.expit(e), B.tanh(d), B.tanh(_at(B, y, t, 1))
        of_h, of_c = _at(B, g, t, 0), _at(B, g, t, 1)
        of_h = of_h if to_h is None else B.add(of_h, to_h)
        of_c = of_c if to_c is None else B.add(of_c, to_c)
        of_c = B.add(of_c, B.multiply(of_h, B.multiply(o, B.subtract(1.0, B.square(end)))))
        slope = B.concat(
            B.expit_pullback(B.multiply(of_c, new), a),
            B.expit_pullback(B.multiply(of_c, cell), b),
            B.multiply(B.multiply(of_c, i), B.subtract(1.0, B.square(new))),
            B.expit_pullback(B.multiply(of_h, end), e),
            axis=axis + 1,
        )
        slopes.append(B.expand_dims(slope, axis=(axis,)))
        product = B.matmul(_T(B, slope), before)
        to_weight = product if to_weight is None else B.add(to_weight, product)
        to_h, to_c = B.matmul(slope, weight), B.multiply(of_c, f)
    return B.concat(*slopes[::-1], axis=axis), to_weight, to_h, to_c


def _lstm(B: Any, g: Any, wanted: tuple[int, ...], x: Any, weight: Any, h: Any, c: Any, out: Any) -> tuple[Any, ...]:
    pulled = B.lstm_pullback(g, x, weight, h, c, out)
    return tuple([pulled[i] for i in wanted])


def _operations(operands: Any, result: Any, parameters: Any) -> int:
    x, weight = operands[:2]
    return 2 * math.prod(x) * weight[-1]  # type: ignore[no-any-return]


def _pullback_operations(operands: Any, result: Any, parameters: Any) -> int:
    """The gates again, and a product for each operand of a product."""
    return 3 * _operations(operands[1:], result, parameters)


RECORDS: dict[str, Record] = {
    "lstm": Composed(
        _lstm_definition, pullback=_lstm, batching=along_axes, sparsity=by_definition, operations=_operations
    ),
    "lstm_pullback": Composed(
        _lstm_pullback_definition, batching=along_axes, sparsity=by_definition, operations=_pullback_operations
    ),
}
