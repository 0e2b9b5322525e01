"""A call of a compiled function that is like the last one, which is seen without reading all of it anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adjoint import dtypes
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.compiler.calls import Signature, can_vary
from adjoint.compiler.environment import Environment
from adjoint.compiler.programs import Program
from adjoint.devices import default_device
from adjoint.tensor import Tensor

if TYPE_CHECKING:
    from adjoint.compiler.compiled import Compiled

_PLAIN = (bool, int, float, str)
VARYING = object()  # of a number that is traced


class Again(NamedTuple):
    """The last call, where the next one can be seen to be of its kind without reading all of it anew."""

    structure: Any
    specs: list[tuple[Any, ...]]  # of leaves and closed-over tensors: the class, and what is looked at
    base: Backend
    surroundings: tuple[Any, ...]
    environment: Environment | None
    as_numpy: bool
    program: Program

    @classmethod
    def after(cls, call: Signature, program: Program) -> Again | None:
        if call.level is not None:
            return None
        specs: list[tuple[Any, ...]] = []
        for i, x in enumerate((*call.leaves, *call.closed)):
            if i in call.numbers:
                specs.append((x.__class__, VARYING))
            elif x.__class__ is np.ndarray:
                specs.append((np.ndarray, *call.specs[i]))
            elif x.__class__ is Tensor:
                if getattr(x._array, "node", None) is not None:
                    return None
                specs.append((Tensor, x.shape, x._dtype, x._device))
            elif isinstance(x, (Tensor, np.ndarray, np.generic, complex)) or (x.__class__ is float and not x):
                return None  # -0.0 equals 0.0, also as a part of a complex number
            else:
                specs.append((x.__class__, x))
        return cls(call.structure, specs, call.base, _surroundings(), call.environment, call.as_numpy, program)

    def run(self, compiled: Compiled, args: Any, kwargs: Any) -> tuple[Any] | None:
        """The result of this call, if it is of the same kind."""
        f: Any = compiled.f
        given = (f, args, kwargs) if compiled.of_module else (args, kwargs) if kwargs else args
        leaves, structure = trees.flatten(given)
        if structure != self.structure or _surroundings() != self.surroundings:
            return None
        if (before := self.environment) is not None:
            if not before.is_unchanged():
                now = Environment(f)
                if now.guard != before.guard:
                    return None
                compiled.again = self._replace(environment=now)
                before = now
            leaves = [*leaves, *before.tensors]
        inputs: list[Any] = []
        arrays = []
        for x, spec in zip(leaves, self.specs, strict=True):
            cls = x.__class__
            if cls is not spec[0]:
                return None
            if cls is np.ndarray:
                if x.shape != spec[1] or x.dtype is not spec[2]:
                    return None
                arrays.append(self.base.from_numpy(x, copy=False))
            elif cls is Tensor:
                if x._device is not spec[3] or x._dtype is not spec[2] or x.shape != spec[1]:
                    return None
                if getattr(x._array, "node", None) is not None:
                    return None
                arrays.append(x._device.leaf_array(x._array))
            elif spec[1] is VARYING and can_vary(x):
                arrays.append(self.base.from_numpy(np.asarray(x), copy=False))
            elif x is spec[1] or (cls in _PLAIN and x == spec[1]):
                continue
            else:
                return None
            inputs.append(x)
        return (self.program.arrays(arrays) if self.as_numpy else self.program.tensors(arrays, inputs),)


def _surroundings() -> tuple[Any, ...]:
    return default_device(), dtypes.default_dtype(), dtypes.chosen_dtype()
