"""An elementwise formula of arrays of one size as one loop of machine code, for who has no graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native import elementary
from adjoint.compiler.native.elements import EMITTERS, supported
from adjoint.compiler.native.entry import module, regions
from adjoint.compiler.native.kernels import Kernel
from adjoint.compiler.native.linked import machine
from adjoint.compiler.native.machine import possible, stored_or_emitted
from adjoint.compiler.native.plan import Plan
from adjoint.primitives import DType

Loop = Callable[[list[Any]], bool]
_EXACT = EMITTERS.keys() - elementary.CALLED


class Line(NamedTuple):
    """A primitive with its parameters, the numbers of its operands, and the dtype of its result, the next number."""

    name: str
    parameters: tuple[tuple[str, Any], ...]
    operands: tuple[int, ...]
    dtype: DType


def loop(size: int, dtype: DType, given: int, numbers: int, lines: Sequence[Line], made: Sequence[int]) -> Loop | None:
    """A function of a list: arrays of one axis, numbers as arrays of none, arrays for results.

    It gives False, and has done nothing, where an array is not one of NumPy's own, of this size and dtype and aligned.
    Values are counted: `given` arrays, then `numbers`, then the result of each line; `made` are the results to write.
    An array for a result may be that of a value which no line reads from there on. None if there is no machine code on
    this machine, or none of these lines whose results are NumPy's to the last bit.
    """
    if not all([line.name in _EXACT for line in lines]) or not possible():
        return None
    return _loop(size, dtype, given, numbers, tuple(lines), tuple(made))


@functools.lru_cache(256)
def _loop(
    size: int, dtype: DType, given: int, numbers: int, lines: tuple[Line, ...], made: tuple[int, ...]
) -> Loop | None:
    inputs = [*[Value((size,), dtype) for _ in range(given)], *[Value((), dtype) for _ in range(numbers)]]
    values, equations = [*inputs], []
    for line in lines:
        values.append(Value((size,), line.dtype))
        operands = [values[k] for k in line.operands]
        equations.append(Equation(line.name, operands, dict(line.parameters), values[-1:]))
    outputs: list[Value] = []
    for value in [values[k] for k in made]:
        out = value
        if value in inputs or value in outputs:  # what is no line's, or is two results
            out = Value((size,), dtype)
            equations.append(Equation("real", [value], {}, [out]))
        outputs.append(out)
    if not all(map(supported, equations)):
        return None
    plan = Plan(Graph(inputs, equations, outputs))
    if len(plan.steps) != 1 or not isinstance(plan.steps[0], Kernel):
        return None
    (region,) = regions(plan, set(outputs), lambda: "flat").values()
    if len(region.outputs) != len(outputs):
        return None
    text = module([region])
    run = machine(text, lambda: stored_or_emitted(text), region.shares).function(region.name)
    order = [[*inputs, *outputs].index(x) for x in (*region.inputs, *region.outputs)]
    return lambda arrays: run(*[arrays[k] for k in order])
