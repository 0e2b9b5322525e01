"""A call of a compiled function that is like the last one, which is seen without reading all of it anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import dtypes
from adjoint.backend import Backend
from adjoint.compiler.calls import Signature, can_vary
from adjoint.compiler.environment import environment
from adjoint.compiler.programs import Program
from adjoint.devices import default_device
from adjoint.tensor import Tensor

VARYING = object()  # of a number that is traced


class Again(NamedTuple):
    """The last call, where the next one can be seen to be of its kind without reading all of it anew."""

    structure: Any
    specs: list[tuple[Any, ...]]  # of leaves: the class, and what is looked at
    base: Backend
    surroundings: tuple[Any, ...]
    guard: tuple[Any, ...]
    as_numpy: bool
    program: Program

    @classmethod
    def after(cls, call: Signature, program: Program) -> Again | None:
        if call.named or call.of_module or call.closed or call.level is not None:
            return None
        specs: list[tuple[Any, ...]] = []
        for i, (x, spec) in enumerate(zip(call.leaves, call.specs, strict=True)):
            if i in call.numbers:
                specs.append((x.__class__, VARYING))
            elif x.__class__ is np.ndarray:
                specs.append((np.ndarray, *spec))
            elif x.__class__ is Tensor and getattr(x._array, "node", None) is None:
                specs.append((Tensor, x.shape, x._dtype, x._device))
            elif x.__class__ in (bool, int, str, type(None)) or (
                x.__class__ is float and x
            ):  # not 0.0, which -0.0 equals
                specs.append((x.__class__, x))
            else:
                return None
        return cls(call.structure, specs, call.base, _surroundings(), call.guard, call.as_numpy, program)

    def arrays(self, f: Any, leaves: Sequence[Any]) -> list[Any] | None:
        """The arrays of this call, if it is of the same kind."""
        found = []
        for x, spec in zip(leaves, self.specs, strict=True):
            if x.__class__ is not spec[0]:
                return None
            if spec[0] is np.ndarray:
                if x.shape != spec[1] or x.dtype is not spec[2]:
                    return None
                found.append(self.base.from_numpy(x, copy=False))
            elif spec[0] is Tensor:
                if x._device is not spec[3] or x._dtype is not spec[2] or x.shape != spec[1]:
                    return None
                if getattr(x._array, "node", None) is not None:
                    return None
                found.append(x._device.leaf_array(x._array))
            elif spec[1] is VARYING and can_vary(x):
                found.append(self.base.from_numpy(np.asarray(x), copy=False))
            elif x != spec[1]:
                return None
        return found if _surroundings() == self.surroundings and environment(f)[1] == self.guard else None


def _surroundings() -> tuple[Any, ...]:
    return default_device(), dtypes.default_dtype(), dtypes.chosen_dtype()
