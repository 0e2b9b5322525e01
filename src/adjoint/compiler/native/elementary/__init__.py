"""Elementary functions of vectors as LLVM IR: `function("exp", np.float32, 8)` is the symbol and the text of one.

The text defines `<8 x float> @symbol(<8 x float>)`; vectors of one number are `<1 x float>`. It needs no other symbol
and no library, but a processor that adds products with one rounding (FMA: x86-64 since AVX2, every ARM of 64 bits).
Results are within 2 units in the last place, docs/elementary.md has what was measured, and special values are NumPy's.

Texts of several functions may share helpers: a `Library` has each once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from adjoint.compiler.native.elementary import exponential, gammas, gauss, remainders, trigonometric
from adjoint.compiler.native.elementary.code import Code, Value

if TYPE_CHECKING:
    import numpy.typing as npt

_KINDS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}

_ONE = {
    exponential: "exp expm1 expit tanh sinh cosh log log2 log10 log1p softplus asinh acosh atanh cbrt",
    trigonometric: "sin cos tan asin acos atan",
    gauss: "erf erfc",
    gammas: "gammaln digamma",
}

# by the names of primitives: the formula, which is called with a Code and as many values as the primitive has operands
FUNCTIONS: dict[str, tuple[Callable[..., Value], int]] = {
    **{name: (getattr(module, name), 1) for module, names in _ONE.items() for name in names.split()},
    "logaddexp": (exponential.logaddexp, 2),
    "pow": (exponential.power, 2),
    "hypot": (exponential.hypot, 2),
    "atan2": (trigonometric.atan2, 2),
}
# ... and those whose results are exact
EXACT = {name: (getattr(remainders, name), 2) for name in ("fmod", "remainder", "floor_divide")}
# ... and of vectors in single precision with AVX-512 alone, whose errors are units of the last place of x: elsewhere
# they are what their definitions make of others
IN_PIECES = {"gelu": (gauss.gelu, 1)}
# ... and derivatives that have steps in common with their functions
SLOPES = {"expit_pullback": (exponential.expit_pullback, 2)}
CALLED = FUNCTIONS.keys() | IN_PIECES.keys() | SLOPES.keys()  # what takes many operations


class Library:
    """Functions that one module of LLVM has: definitions by their symbols, each once.

    `avx512` says that the processor has AVX-512 with vectors of all lengths, which computes some steps at once.
    """

    avx512: bool

    def __init__(self, avx512: bool = False) -> None:
        self.avx512 = avx512
        self.definitions: dict[str, str] = {}

    def function(self, name: str, dtype: npt.DTypeLike, lanes: int) -> str:
        """The symbol of the function, which is defined from then on."""
        kind = _KINDS[np.dtype(dtype)]
        symbol = f"adjoint_{name}_{np.dtype(dtype)}x{lanes}"
        if symbol not in self.definitions:
            formula, count = FUNCTIONS.get(name) or EXACT.get(name) or SLOPES.get(name) or IN_PIECES[name]
            code = Code(kind, lanes, self.avx512)
            operands = [Value(code, f"%x{i}", kind) for i in range(count)]
            result = formula(code, *operands)
            self.definitions.update(code.helpers)
            vector = code.vector(kind)
            body = "\n".join(code.lines)
            parameters = ", ".join(f"{vector} {x.name}" for x in operands)
            self.definitions[symbol] = (
                f"define {vector} @{symbol}({parameters}) {{\nentry:\n{body}\n  ret {result.typed}\n}}\n"
            )
        return symbol

    @property
    def text(self) -> str:
        return "\n".join(self.definitions.values())


def function(name: str, dtype: npt.DTypeLike, lanes: int) -> tuple[str, str]:
    """The symbol and the text of the primitive's function of vectors of `lanes` numbers, for float32 or float64."""
    library = Library()
    return library.function(name, dtype, lanes), library.text
