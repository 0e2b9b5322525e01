"""Functions that are one primitive, from one table: operators, functions, methods and in-place methods.

Their code is written out, as `graph/codegen.py` writes primitives: straight to the primitive where operands agree,
and to `calls.run` for everything else.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import numpy as np

from adjoint import nn
from adjoint.graph.nodes import Var, numbers
from adjoint.torch import overriding, state, unsupported
from adjoint.torch.calls import KNOWN, LEAST, MOST, call, check_factor, into, number_of, operand, run, write
from adjoint.torch.dtypes import of_numpy, result_dtype
from adjoint.torch.graph import Accumulate, keep, label, overwritten, result_overwritten
from adjoint.torch.state import recorded
from adjoint.torch.tensor import INNER, LEVEL, Rare, Tensor, is_lifted, new, next_number

FUNCTIONS: dict[str, Any] = {}  # torch.name
METHODS: dict[str, Any] = {}  # Tensor.name


def function(made: Any) -> Any:
    """Make it a function of the face."""
    FUNCTIONS[made.__name__] = made
    return made


# name, primitive, name of the node, kinds of dtypes that go straight to it, whether integers become floating
_UNARY = """
abs                 abs                  Abs           fi   -
acos arccos         acos                 Acos          fc   floating
acosh arccosh       acosh                Acosh         fc   floating
asin arcsin         asin                 Asin          fc   floating
asinh arcsinh       asinh                Asinh         fc   floating
atan arctan         atan                 Atan          fc   floating
atanh arctanh       atanh                Atanh         fc   floating
ceil                ceil                 Ceil          f    -
cos                 cos                  Cos           fc   floating
cosh                cosh                 Cosh          fc   floating
digamma             digamma              Digamma       f    floating
erf                 erf                  Erf           f    floating
erfc                erfc                 Erfc          f    floating
erfinv              erfinv               Erfinv        f    floating
exp                 exp                  Exp           fc   floating
expm1               expm1                Expm1         fc   floating
floor               floor                Floor         f    -
lgamma              gammaln              Lgamma        f    floating
log                 log                  Log           fc   floating
log10               log10                Log10         fc   floating
log1p               log1p                Log1P         fc   floating
log2                log2                 Log2          fc   floating
neg negative        negative             Neg           fci  -
relu                relu                 Relu          f    -
round               round                Round         f    -
sigmoid             expit                Sigmoid       f    floating
sign                sign                 Sign          fi   -
sin                 sin                  Sin           fc   floating
sinh                sinh                 Sinh          fc   floating
sqrt                sqrt                 Sqrt          fc   floating
square              square               Pow           fci  -
tan                 tan                  Tan           fc   floating
tanh                tanh                 Tanh          fc   floating
trunc fix           trunc                Trunc         f    -
"""

# name, operator, primitive, name of the node, kinds, whether integers become floating
_BINARY = """
add                 add       add        Add       fci  -
sub subtract        sub       subtract   Sub       fci  -
mul multiply        mul       multiply   Mul       fci  -
div divide          truediv   divide     Div       fc   floating
"""

_COMPARISONS = """
eq                        eq   equal
ne not_equal              ne   not_equal
lt less                   lt   less
le less_equal             le   less_equal
gt greater                gt   greater
ge greater_equal          ge   greater_equal
"""

_UNARY_SOURCE = """
def function(input{options}):
    try:
        dtype = input._dtype
        if dtype.kind not in kinds{asked}:
            return slow(input{out})
        if state.special:
            block = recorded._top
            if block is None or block.holder() is None or block.value != quiet:
                return slow(input)
            var = Var()
            var.value = inner(input._here.value)
            var.node = None
        else:
            var = primitive(input._here)
    except AttributeError:
        return slow(input{out})
    made = new(Tensor)
    made._here = var
    made._dtype = dtype
    made._rare = None
    return made
"""

_BINARY_SOURCE = """
def function(self, other):
    dtype = self._dtype
    kind = other.__class__
    if kind is float or (kind is int and least <= other <= most):
        if not other or dtype.kind not in {of_numbers}:
            return slow(self, other)
        array = scalar(other, dtype)
    else:
        try:
            if other._dtype is not dtype or dtype.kind not in kinds:
                return slow(self, other)
            array = other._here
        except AttributeError:
            return slow(self, other)
    try:
        if state.special:
            block = recorded._top
            if block is None or block.holder() is None or block.value != quiet:
                return slow(self, other)
            if array.__class__ is Var:
                array = array.value
            var = Var()
            var.value = inner({inner_operands})
            var.node = None
        else:
            var = primitive({operands})
    except (ValueError, AttributeError):
        return slow(self, other)
    made = new(Tensor)
    made._here = var
    made._dtype = {dtype}
    made._rare = None
    return made
"""

# a value that somebody beside the tensor refers to, perhaps a graph, is remembered as overwritten
_WRITE_SOURCE = """
def function(self{parameter}, **options):
    rare = self._rare
    if rare is None:
        rare = self._rare = Rare()
    if state.special or rare.entangled or options:
        return slow(self{argument}, **options)
    old = self._here
    dtype = self._dtype
    if old.node.__class__ is Accumulate or dtype.kind not in kinds:
        return slow(self{argument})
{prepare}
    try:
        var = primitive(old{value})
    except ValueError:
        return slow(self{argument})
    if var.value.shape != old.value.shape or (var.node is None) is not (old.node is None):
        return slow(self{argument})
    if references(old.value) > alone or old.value.base is not None:
        overwritten(old.value, next(numbers) if var.node is None else var.node.number)
    if old.node is not None:
        result_overwritten(old.node)
    self._here = var
    rare.version += 1
    return self
"""

_PREPARE_OPERAND = """
    kind = other.__class__
    if kind is float or (kind is int and least <= other <= most):
        if not other or dtype.kind not in "fc":
            return slow(self, other)
        array = scalar(other, dtype)
    else:
        try:
            if other._dtype is not dtype or other is self:
                return slow(self, other)
            array = other._here
        except AttributeError:
            return slow(self, other)
"""


def _alone() -> int:
    """What `getrefcount(old.value)` counts for a value that one Var alone refers to."""
    old = Var()
    old.value = np.zeros(1)
    return sys.getrefcount(old.value)


_ALONE = _alone()


@functools.cache
def _code(source: str) -> Any:
    """A source is one for many functions: what they differ in is in their scope."""
    return compile(source, __file__, "exec")


def _compiled(name: str, source: str, kinds: str, primitive: str, slow: Any) -> Any:
    scope: dict[str, Any] = {
        "Accumulate": Accumulate, "Rare": Rare, "Tensor": Tensor, "Var": Var, "alone": _ALONE, "bool_": np.dtype(bool),
        "inner": INNER[primitive], "kinds": kinds, "least": LEAST, "most": MOST, "new": new,
        "nothing": _NOTHING, "numbers": numbers,
        "overwritten": overwritten, "primitive": LEVEL[primitive], "quiet": (False, False), "recorded": recorded,
        "references": sys.getrefcount, "result_overwritten": result_overwritten, "scalar": INNER.as_scalar,
        "slow": slow, "state": state,
    }  # fmt: skip
    exec(_code(source), scope)
    function = scope.pop("function")
    function.__code__ = function.__code__.replace(co_name=name)
    function.__module__, function.__name__, function.__qualname__ = "adjoint.torch", name, name
    return function


# NumPy's names of operands, which PyTorch takes as well
OPERANDS = {"x": "input", "a": "input", "x1": "input", "x2": "other"}
_NOTHING = object()  # in the place of an operand that is given by one of these, so that others pay nothing for it
_USUAL = frozenset((Tensor, float))
_ONE_OPERAND = inspect.signature(lambda input, *, out=None: None)


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Options with operands under PyTorch's names. Raises TypeError for an `out` that is no tensor."""
    if (out := options.get("out")) is not None and not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    return {own if (own := OPERANDS.get(name, name)) not in options else name: x for name, x in options.items()}


def _named_operands(name: str, operator: Any, function: Any, *, method: bool = False) -> Any:
    """A function of two operands, also by NumPy's names; of a tensor and another, or a float, it is the operator.

    A method takes no `out`.
    """
    function.__name__ = function.__qualname__ = name  # for errors of a wrong call

    @functools.wraps(function)
    def called(*operands: Any, **options: Any) -> Any:
        if len(operands) == 2 and operands[0].__class__ is Tensor and operands[1].__class__ in _USUAL and not options:
            return operator(*operands)
        if overriding.used and (found := overriding.overridden(called, operands, options)) is not NotImplemented:
            return found
        if method and "out" in options:
            raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
        try:
            return function(*operands, **(_renamed(options) if options else options))
        except TypeError:  # of what is no tensor, but overrides
            if (found := overriding.overridden(called, operands, options)) is not NotImplemented:
                return found
            raise

    return called


def _unary(names: list[str], primitive: str, made: str, kinds: str, floating: bool) -> None:
    name = names[0]
    refused = unsupported.codes_of(name)

    def plain(input: Any, *, out: Any = None) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        if out is not None and name == "relu":
            raise TypeError("relu() got an unexpected keyword argument 'out'")
        kind = input._dtype.kind
        if kind == "b" and name in ("sign", "square"):  # a truth is its own sign
            return into(out, input.clone() if name == "sign" else plain(input.long()))
        if kind == "b" and name == "relu":
            raise RuntimeError("Boolean inputs not supported for relu")
        if kind == "b" and name == "neg":
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
                "use the `~` or `logical_not()` operator instead."
            )
        if input._dtype.char in refused:
            unsupported.refuse(name, (input,))
        if kind == "c" and name == "sigmoid":
            return into(out, call(nn.sigmoid, made, input))
        if kind in "biu" and name in ("ceil", "floor", "trunc", "round"):
            return into(out, input.clone())
        found = run(primitive, (input,), made, floating=floating)
        same = out is None or out._dtype is found._dtype or (kind == "c" and name == "abs" and out._dtype.kind == "f")
        if out is not None and not same and not floating and name != "square":
            raise RuntimeError(f"Found dtype {out.dtype.class_name} but expected {found.dtype.class_name}")
        return into(out, found)

    def slow(input: Any = _NOTHING, *more: Any, **options: Any) -> Any:
        if overriding.used or not isinstance(input, Tensor):
            found = overriding.overridden(function, (input, *more), options)
            if found is not NotImplemented:
                return found
        if more:
            raise TypeError(f"{name}() takes 1 positional argument but {1 + len(more)} were given")
        return plain(*([] if input is _NOTHING else [input]), **_renamed(options))

    plain.__qualname__ = name  # for errors of a wrong call
    alone = _UNARY_SOURCE.format(options="", asked="", out="")
    with_options = _UNARY_SOURCE.format(
        options="=nothing, *more, **options", asked=" or options or more", out=", *more, **options"
    )
    method = _compiled(name, alone, kinds, primitive, slow)
    function = _compiled(name, with_options, kinds, primitive, slow)
    function.__signature__ = _ONE_OPERAND
    source = _WRITE_SOURCE.format(parameter="", argument="", prepare="", value="")

    def slow_write(self: Any) -> Any:
        if name == "abs" and self._dtype.kind == "c":  # whose result is real
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        return write(self, function)

    in_place = _compiled(name + "_", source, kinds.replace("i", ""), primitive, slow_write)
    _declare(names, function, in_place, method)


def _binary(names: list[str], symbol: str, primitive: str, made: str, kinds: str, floating: bool) -> None:
    name = names[0]

    def apply(x: Any, y: Any) -> Any:
        if name == "sub":
            refuse_truths(x, y)
        if floating or not (_is_bool(x) and _is_bool(y)):
            return run(primitive, (x, y), made, floating=floating)
        return run("logical_or" if name == "add" else "logical_and", (x, y), made)

    def slow(x: Any, y: Any) -> Any:
        return apply(x, operand(y, name)) if isinstance(y, KNOWN) else overriding.operated(name, x, y)

    def slow_reflected(x: Any, y: Any) -> Any:
        return apply(operand(y, name), x) if isinstance(y, KNOWN) else overriding.operated(name, y, x)

    def source(reflected: bool) -> str:
        pair = "array, self._here" if reflected else "self._here, array"
        inner = pair.replace("self._here", "self._here.value")
        return _BINARY_SOURCE.format(operands=pair, inner_operands=inner, dtype="dtype", of_numbers='"fc"')

    straight = METHODS[f"__{symbol}__"] = _compiled(name, source(False), kinds, primitive, slow)
    commutes = name in ("add", "mul")  # 2 * x is x * 2, as its node says
    reflected = straight if commutes else _compiled(name, source(True), kinds, primitive, slow_reflected)
    if name == "div":
        reciprocal = _named(reflected, "Reciprocal")
        METHODS["reciprocal"] = lambda x: reciprocal(x, 1.0)
        reflected = _quotient(reciprocal)
    elif name == "sub":
        reflected = _named(reflected, "RsubBackward1")
    METHODS[f"__r{symbol}__"] = reflected
    spelled = _spelled(name, straight, apply)
    function, method = [_named_operands(name, straight, spelled, method=of_tensor) for of_tensor in (False, True)]
    write_source = _WRITE_SOURCE.format(
        parameter=", other=nothing, *older", argument=", other", prepare=_PREPARE_OPERAND, value=", array"
    ).replace("options:\n        return slow(self, other", "options or older:\n        return slow(self, other, *older")

    def slow_write(self: Any, other: Any = _NOTHING, *older: Any, **options: Any) -> Any:
        written = (self, other, *older)
        asked = overriding.used or not isinstance(other, KNOWN)
        if asked and (found := overriding.overridden(in_place, written, options)) is not NotImplemented:
            return found
        if other is _NOTHING:
            options = _renamed(options)
            if "other" not in options:
                raise TypeError(f"{name}_() missing 1 required positional argument: 'other'")
            other = options.pop("other")
        return write(self, function, operand(other, name), *older, **options)

    def slow_operator(self: Any, other: Any) -> Any:
        if isinstance(other, KNOWN):
            return slow_write(self, other)
        return overriding.operated(name + "_", self, other)

    writes = kinds.replace("i", "")
    in_place = _compiled(name + "_", write_source, writes, primitive, slow_write)
    METHODS[f"__i{symbol}__"] = _compiled(name + "_", write_source, writes, primitive, slow_operator)
    _declare(names, function, in_place, method)


_MULTIPLES = (*KNOWN, np.ndarray)


def _quotient(reciprocal: Any) -> Any:
    """y / x, which PyTorch computes as a product."""
    return lambda x, y: reciprocal(x, 1.0) * y if isinstance(y, _MULTIPLES) else overriding.operated("div", y, x)


def _named(function: Any, made: str) -> Any:
    """An operator whose node has another name."""

    def spelled(x: Any, y: Any) -> Any:
        out = function(x, y)
        if isinstance(out, Tensor) and not is_lifted(out) and (node := out._array.node) is not None:
            label(node, made, node.number - 1)  # of the one operand that is a tensor
        return out

    return spelled


def refuse_truths(x: Any, y: Any) -> None:
    """Raise PyTorch's error for a difference with truths."""
    if _is_bool(x) and _is_bool(y):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if _is_bool(x) or _is_bool(y):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


def _is_bool(x: Any) -> bool:
    return x._dtype.kind == "b" if isinstance(x, Tensor) else isinstance(x, bool)


def _spelled(name: str, operator: Any, apply: Any) -> Any:
    """The function of an operator, with PyTorch's options."""
    if name in ("add", "sub"):

        def scaled(input: Any, other: Any, *older: Any, alpha: Any = 1, out: Any = None) -> Any:
            if older:  # `alpha` stood before `other`
                alpha, (other,) = other, older
            other = operand(other, name)
            if alpha.__class__ is not int:
                alpha = operand(number_of(alpha, name, "alpha"), name, "alpha")
                check_factor("alpha", alpha, (operand(input, name, "input"), other))
            if alpha == 1 and out is None and isinstance(input, Tensor):
                return operator(input, other)
            if alpha != 1 and _is_bool(input) and _is_bool(other):
                alpha = bool(alpha)
            start = next_number()
            found = apply(operand(input, name, "input"), other if alpha == 1 else other * alpha)
            if alpha != 1 and not is_lifted(found) and found._array.node is not None:
                tracked = [x._array.node for x in (input, other) if isinstance(x, Tensor)]
                label(found._array.node, name.capitalize(), start, tracked)
                keep(found._array.node, start)
            return into(out, found)

        return scaled
    if name == "div":

        def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
            x, y = operand(input, name, "input"), operand(other, name)
            if rounding_mode is None:
                return into(out, apply(x, y))
            if rounding_mode == "floor":
                found = FUNCTIONS["floor_divide"](x, y)
                if not is_lifted(found) and found._array.node is not None:
                    label(found._array.node, "DivBackward2")
                return into(out, found)
            if not isinstance(rounding_mode, str):
                kind = type(rounding_mode).__name__
                raise TypeError(f"div(): argument 'rounding_mode' must be str, not {kind}")
            if rounding_mode != "trunc":
                raise RuntimeError(
                    f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
                )
            kind = result_dtype((x, y)).kind
            if kind == "b":
                raise NotImplementedError("div with rounding_mode='trunc' is not implemented for 'Bool'")
            if kind in "iu":  # floats have too few digits
                x = x if isinstance(x, Tensor) or isinstance(y, Tensor) else FUNCTIONS["tensor"](x)
                quotient = FUNCTIONS["floor_divide"](x, y)
                return into(out, quotient + ((quotient < 0) & (quotient * y != x)))
            start = next_number()
            quotient = run("trunc", (apply(x, y),))
            if not is_lifted(quotient) and quotient._array.node is not None:
                tracked = [v._array.node if isinstance(v, Tensor) else None for v in (x, y)]
                label(quotient._array.node, "DivBackward2", start, tracked)
            return into(out, quotient)

        return div

    def mul(input: Any, other: Any, *, out: Any = None) -> Any:
        other = operand(other, name)
        if out is None and isinstance(input, Tensor):
            return operator(input, other)
        return into(out, apply(operand(input, name, "input"), other))

    return mul


def _comparison(names: list[str], symbol: str, primitive: str) -> None:
    name = names[0]

    def apply(input: Any, other: Any, *, out: Any = None) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        x, y = operand(input, name, "input"), operand(other, name)
        if name not in ("eq", "ne") and result_dtype((x, y)).kind == "c":
            kind = of_numpy(result_dtype((x, y))).class_name
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{kind}'")
        return into(out, run(primitive, (x, y)))

    def slow(x: Any, y: Any) -> Any:
        if isinstance(y, np.ndarray) and name == "eq" and y.dtype.kind in "biufc":
            y = FUNCTIONS["tensor"](y)
        return apply(x, y) if isinstance(y, KNOWN) else overriding.operated(name, x, y)

    source = _BINARY_SOURCE.format(
        operands="self._here, array",
        inner_operands="self._here.value, array",
        dtype="bool_",
        of_numbers='"fc"' if name in ("eq", "ne") else '"f"',  # complex numbers have no order
    )
    METHODS[f"__{symbol}__"] = _compiled(name, source, "fi", primitive, slow)
    straight = METHODS[f"__{symbol}__"]
    function, method = [_named_operands(name, straight, apply, method=of_tensor) for of_tensor in (False, True)]
    in_place = lambda self, *other, **named: write(self, method, *other, **_renamed(named))
    _declare(names, function, in_place, method)


def _declare(names: list[str], function: Any, in_place: Any, method: Any) -> None:
    for name in names:
        function.__name__ = function.__qualname__ = names[0]
        FUNCTIONS[name], METHODS[name] = function, method
        METHODS[name + "_"] = in_place
        if in_place is not None:
            in_place.__name__ = in_place.__qualname__ = names[0] + "_"
            in_place.__wrapped__ = function


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


for _row in _rows(_UNARY):
    *_names, _primitive, _made, _kinds, _floating = _row
    _unary(_names, _primitive, _made, _kinds, _floating == "floating")
for _row in _rows(_BINARY):
    *_names, _symbol, _primitive, _made, _kinds, _floating = _row
    _binary(_names, _symbol, _primitive, _made, _kinds, _floating == "floating")
for _row in _rows(_COMPARISONS):
    *_names, _symbol, _primitive = _row
    _comparison(_names, _symbol, _primitive)
for _name in ("true_divide",):
    FUNCTIONS[_name], METHODS[_name] = FUNCTIONS["div"], METHODS["div"]
    METHODS[_name + "_"] = METHODS["div_"]
for _name in ("absolute",):
    FUNCTIONS[_name], METHODS[_name] = FUNCTIONS["abs"], METHODS["abs"]
    METHODS[_name + "_"] = METHODS["abs_"]
METHODS["__neg__"] = METHODS["neg"]
METHODS["__abs__"] = METHODS["abs"]
