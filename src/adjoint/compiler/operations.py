"""Operations and bytes of equations, and of machine code in their place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from adjoint.compiler.graph import Equation, Value
from adjoint.decorators.observed import flops
from adjoint.primitives import TABLE

if TYPE_CHECKING:
    from adjoint.compiler.native.entry import Region


def operations_of(e: Equation) -> int:
    """An estimate of the floating-point operations of an equation, with those of its graphs."""
    if e.name == "native":
        return operations_of_region(e.parameters["region"])
    if e.name in TABLE:
        shapes = [x.shape for x in e.operands if isinstance(x, Value)]
        result = e.results[0]
        assert isinstance(result, Value)
        return flops(TABLE[e.name], shapes, result.shape, e.parameters)
    inner = [sum(map(operations_of, g.equations)) for g in e.graphs]
    if e.name == "scan":
        return int(e.parameters["length"]) * inner[0]
    return max(inner, default=0) if e.name == "branch" else 0


def operations_of_region(region: Region) -> int:
    """The same of kernels: what a product or a convolution multiplies and adds, and equations for the others."""
    from adjoint.compiler.native.kernels import Choice, Convolution, Kernel, Loop, Product  # where there are any

    found = 0
    for step in region.steps:
        if isinstance(step, Kernel):
            found += sum(map(operations_of, step.equations))
        elif isinstance(step, Product):
            found += 2 * step.work + sum(map(operations_of, step.follows))
        elif isinstance(step, Convolution):
            found += 2 * step.work
        elif isinstance(step, (Loop, Choice)):
            found += operations_of(step.equation)
    return found


def bytes_of_equation(e: Equation) -> int:
    """Those of the arrays that it reads and makes."""
    arrays = [x for x in (*e.operands, *e.results) if isinstance(x, Value)]
    return sum([math.prod(x.shape) * x.dtype.itemsize for x in arrays])
