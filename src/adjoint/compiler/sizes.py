"""Sizes that are symbols: a graph is recorded for whatever size an axis has.

A `Size` counts as the integer that it has in the call that is recorded, and arithmetic with it gives sizes again: a
polynomial of symbols, or the text of what is no polynomial. Whoever asks for its value, or which of two is larger, gets
the answer, and the question becomes a guard: the graph serves for other sizes of which all answers are the same. So a
question too many costs another recording, and never a wrong result.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.lines import Line
from adjoint.primitives import Shape
from adjoint.primitives.sizes import LATER, Places, as_recorded, square_root
from adjoint.scopes import Block, Variable, innermost
from adjoint.tensor import Tensor

Terms = dict[tuple[str, ...], int]  # a polynomial: coefficients by products of symbols

_BOUND = re.compile(r"\(?(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?\)? (<|<=|>|>=|==) (\d+)")  # of one symbol

_LARGE = re.compile(r"\b(inf|nan)\b|\de|\d{20}")  # numbers with which sizes may become infinite, and then nan
_SHORT = 80  # characters: in fewer sizes are not multiplied often enough for that

LEAST = 2  # of a symbol: axes of one element broadcast, and empty ones have rules of their own, so these are recorded

_bound: Variable[tuple[Symbols, dict[str, int]]] = contextvars.ContextVar("adjoint_sizes", default=None)
BUILTINS = {"__import__": __import__}  # of functions made from source: what they call in C may import
SCOPE: dict[str, Any] = {
    "__builtins__": BUILTINS,
    **{x.__name__: x for x in (abs, math.ceil, math.floor, max, min, range, slice)},
    "sqrt": square_root,
    **{repr(x): x for x in (math.inf, math.nan)},
}


class OneSizeError(Exception):
    """What is recorded is right for one size alone."""


class Symbols:
    """The symbols of one recording, and the answers that it took for granted."""

    kinds: Mapping[type, type] = {}  # of numbers, where it is not their own

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.places: dict[str, tuple[int, int]] = {}  # of a symbol, an array and its axis
        self._axes: list[tuple[int, int]] = []
        self.guards: dict[str, bool] = {}
        self.pinned: dict[str, Line] = {}  # symbols whose values were asked for, and where
        self.count = 0  # how often
        self.is_open = True
        self._holds: Callable[..., bool] | None = None

    def shapes(self, shapes: Sequence[Shape], axes: set[tuple[int, int]]) -> list[Shape]:
        """The shapes with symbols for some axes, one symbol for axes of one size."""
        names: dict[int, Size] = {}
        made = []
        for i, shape in enumerate(shapes):
            sizes: list[Any] = list(shape)
            for k, n in enumerate(shape):
                if (i, k) in axes and n >= LEAST:
                    if n not in names:
                        name = f"n{len(names)}"
                        self.values[name], self.places[name] = n, (i, k)
                        names[n] = Size(n, {(name,): 1}, name, self)
                    sizes[k] = names[n]
            made.append(tuple(sizes))
        self.pattern = made
        return made

    def among(self, shapes: Sequence[Shape]) -> Symbols:
        """The same symbols, found among arrays of these shapes."""
        other = Symbols()
        other.values, other.guards, other.pinned, other.is_open = self.values, self.guards, self.pinned, False
        other.pattern = list(shapes)
        for i, shape in enumerate(shapes):
            for k, n in enumerate(shape):
                if is_size(n) and (name := str(n)) in self.values:
                    other.places.setdefault(name, (i, k))
        return other

    def serves_as(self, other: Symbols) -> bool:
        """Whether it is right for the same shapes."""
        return repr(self.pattern) == repr(other.pattern) and self.guards == other.guards

    @property
    def axes(self) -> list[tuple[int, int]]:
        """Where the symbols are, in order: an array and its axis."""
        if not self._axes:
            self._axes = [self.places[name] for name in self.values]
        return self._axes

    def bind(self, shapes: Sequence[Shape]) -> dict[str, int]:
        """What the symbols are for arrays of these shapes."""
        return {name: shapes[i][k] for name, (i, k) in zip(self.values, self.axes, strict=True)}

    def at(self, *sizes: int) -> list[Shape]:
        """The shapes of the arrays, where the symbols are these."""
        known = dict(zip(self.values, sizes, strict=True))
        return [tuple([known[n.text] if type(n) is Size else n for n in shape]) for shape in self.pattern]

    def fits(self, shapes: Sequence[Shape]) -> bool:
        """Whether the graph is right for arguments of these shapes, of as many axes as those recorded."""
        sizes = self.bind(shapes)
        for shape, pattern in zip(shapes, self.pattern, strict=True):
            for n, known in zip(shape, pattern, strict=True):
                if n != (sizes[known.text] if type(known) is Size else known):
                    return False
        return self.serves(*sizes.values())

    def serves(self, *sizes: int) -> bool:
        """Whether the graph is right for these sizes."""
        if self._holds is None:
            self._holds = self.function(self.serving)
        try:
            return bool(self._holds(*sizes))
        except ArithmeticError:  # a division by a size that is zero now, say
            return False

    @property
    def conditions(self) -> str:
        """What was answered, as the text of a condition: of a symbol that has many bounds the closest ones."""
        low, high = dict[str, int](), dict[str, int]()
        others: list[str] = []
        unlike: dict[tuple[str, int], str] = {}  # numbers that a symbol is not
        for text, holds in self.guards.items():
            bound = _BOUND.fullmatch(text)
            if bound is None or type(self.values.get(bound[2])) is not int:  # Python's numbers may be floats
                others.append(f"({text})" if holds else f"not ({text})")
                continue
            name, end = bound[2], int(bound[6]) - int((bound[3] or "") + (bound[4] or "0"))
            factor = int(bound[1] or 1)
            if bound[5] == "==":
                if holds:
                    others.append(f"({text})")
                elif end % factor == 0:
                    unlike[name, end // factor] = f"not ({text})"
                continue
            last = (end - (bound[5] in ("<", ">="))) // factor  # the largest n with factor * n < end, or <= end
            if holds == bound[5].startswith("<"):
                high[name] = min(high.get(name, last), last)
            else:
                low[name] = max(low.get(name, last + 1), last + 1)
        for name in low:
            while unlike.pop((name, low[name]), None):
                low[name] += 1
        others += [text for (name, n), text in unlike.items() if n > low.get(name, n - 1)]
        bounds = [f"{low[x]} <= {x} <= {high[x]}" for x in low if x in high]
        bounds += [f"{x} >= {low[x]}" for x in low if x not in high]
        bounds += [f"{x} <= {high[x]}" for x in high if x not in low]
        return " and ".join([*bounds, *others]) or "True"

    @property
    def serving(self) -> str:
        """The same, and that each symbol is one."""
        return "".join([f"{name} >= {LEAST} and " for name in self.values]) + self.conditions

    def function(self, text: str) -> Callable[..., Any]:
        """A text of these symbols as a function of them."""
        return eval(f"lambda {', '.join(self.values)}: {text}", dict(SCOPE))  # type: ignore[no-any-return]

    def may_be_nan(self, text: str) -> bool:
        """Whether what is computed by this text of symbols may be no number."""
        return len(text) >= _SHORT or _LARGE.search(text) is not None

    def answer(self, text: str, holds: bool) -> bool:
        self.guards[text] = holds
        return holds

    def pin(self, size: Size) -> None:
        """The value was asked for."""
        self.count += 1
        self.answer(f"{_text(size)} == {size.value!r}", True)
        for name in self.values if size.terms is None else {x for term in size.terms for x in term}:
            self.pinned.setdefault(name, Line())

    def are_in(self, structure: Any, results: Sequence[Any]) -> bool:
        """Whether keys and settings of a structure, or objects among the results, have some: they stay as they are."""
        before = self.count
        repr((structure, [getattr(r.of, "__dict__", r.of) for r in results if r.kind == "fixed"]))
        return self.count > before

    def binding(self, function: Callable[..., Any], **sizes: int) -> Callable[..., Any]:
        """A function that was made in the recording, for when its sizes have these values."""

        def run(*args: Any) -> Any:
            with Block(_bound, (self, sizes)):
                return function(*args)

        return run

    def hashed(self, size: Size) -> int:
        """The hash of a size: of its number, which is asked for, or of its text."""
        return hash(size.known() if self.is_open else size.text)

    def shown(self, size: Size) -> str:
        """A size as text: its number, which is asked for, or how it follows from others."""
        return repr(size.known()) if self.is_open or self.is_bound else size.text

    @property
    def is_bound(self) -> bool:
        now = innermost(_bound)
        return now is not None and now.value[0] is self


class Size:
    """An integer, or a float made of one, that is another one in other calls. To `isinstance` it is its number."""

    owner: Symbols
    terms: Terms | None
    text: str
    value: Any

    __slots__ = ("owner", "terms", "text", "value")

    def __init__(self, value: Any, terms: Terms | None, text: str, owner: Symbols) -> None:
        self.value, self.terms, self.text, self.owner = value, terms, text, owner

    @property
    def __class__(self) -> Any:
        return self.owner.kinds.get(type(self.value), type(self.value))

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("a size has the class of its number")

    def known(self) -> Any:
        """The number, by which the recording is from now on."""
        if self.owner.is_open:
            self.owner.pin(self)
            return self.value
        now = innermost(_bound)
        if now is None or now.value[0] is not self.owner:
            raise errors.EndedError(
                "a size of a function that ad.compile recorded was used after the recording; only what the function "
                "returns comes out"
            )
        return eval(self.text, {**SCOPE, **now.value[1]})

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self.value, name):
            raise AttributeError(f"{type(self.value).__name__!r} object has no attribute {name!r}")
        return getattr(self.known(), name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any([isinstance(x, Tensor) for x in inputs]):
            return NotImplemented  # tensors take sizes
        compare = _UFUNCS.get(ufunc)
        if compare is not None and method == "__call__" and not options:
            # NumPy makes its scalars arrays without axes
            x, y = [v.item() if isinstance(v, (np.generic, np.ndarray)) and not v.ndim else v for v in inputs]
            if not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray):
                return compare(x, y)
        return getattr(ufunc, method)(*_knowns(*inputs), **options)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.known(), dtype)

    def __hash__(self) -> int:
        return self.owner.hashed(self)

    def __bool__(self) -> bool:
        return self != 0

    def __repr__(self) -> str:
        return self.owner.shown(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.known(), spec) if spec else str(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.known().__reduce_ex__(protocol)

    def __eq__(self, other: object) -> bool:
        if self is other and type(self.value) is int:  # a float may be nan
            return True
        if type(other) is Size and other.owner is not self.owner:
            return False
        if other is None or other is Ellipsis or type(other) in (str, slice, tuple, list):  # no number, whatever it is
            return NotImplemented
        if not self.owner.is_open and not self.owner.is_bound:
            return type(other) is Size and other.text == self.text
        return _compared("==", self, other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        return not self == other


def is_size(x: Any) -> bool:
    return type(x) is Size


def _text(x: Any) -> str:
    """As a part of a longer text."""
    if type(x) is not Size:
        return f"({x!r})" if repr(x).startswith("-") else repr(x)  # -2 ** n is -(2 ** n)
    return x.text if x.text.isidentifier() else f"({x.text})"


def _compared(symbol: str, x: Any, y: Any) -> Any:
    run = _COMPARISONS[symbol]
    x, y = [v.item() if isinstance(v, np.generic) else v for v in (x, y)]
    if not _plain(x) or not _plain(y) or not _is_open(x, y) or _owner(y, x) is not _owner(x, y):
        return run(*_knowns(x, y))
    if symbol == "==" and _text(x) == _text(y) and not _owner(x, y).may_be_nan(_text(x)):
        return True
    a, b = _terms(x), _terms(y)
    if a is not None and b is not None:
        difference = _sum(a, b, -1)
        if not difference.keys() - {()}:
            return run(difference.get((), 0), 0)
        for sign in (1, -1):  # where the difference is positive whatever the sizes are
            if _least({term: sign * n for term, n in difference.items()}) > 0:
                return run(sign, 0)
    return _owner(x, y).answer(f"{_text(x)} {symbol} {_text(y)}", run(as_recorded(x), as_recorded(y)))


def _plain(x: Any) -> bool:
    return type(x) in (Size, bool, int, float)


def _is_open(x: Any, y: Any) -> bool:
    return all([v.owner.is_open for v in (x, y) if type(v) is Size])


def _owner(x: Any, y: Any) -> Symbols:
    return x.owner if type(x) is Size else y.owner


def _knowns(*xs: Any) -> list[Any]:
    return [x.known() if type(x) is Size else x for x in xs]


_COMPARISONS: dict[str, Any] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UFUNCS: dict[Any, Callable[[Any, Any], Any]] = {
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
}

# --- arithmetic ----------------------------------------------------------------------------------


def _terms(x: Any) -> Terms | None:
    if type(x) is Size:
        return x.terms
    return ({(): x} if x else {}) if type(x) is int else None


def _sum(a: Terms, b: Terms, sign: int) -> Terms:
    found = dict(a)
    for term, n in b.items():
        found[term] = found.get(term, 0) + sign * n
    return {term: n for term, n in found.items() if n}


def _product(a: Terms, b: Terms) -> Terms:
    found: Terms = {}
    for (s, n), (t, m) in itertools.product(a.items(), b.items()):
        term = tuple(sorted((*s, *t)))
        found[term] = found.get(term, 0) + n * m
    return {term: n for term, n in found.items() if n}


def _quotient(a: Terms, b: Terms) -> Terms | None:
    """The polynomial a / b, where b is one product that divides each of a, and is not zero; else None."""
    if len(b) != 1:
        return None
    ((divisor, m),) = b.items()
    if any("(" in name for name in divisor):
        return None
    found: Terms = {}
    for term, n in a.items():
        rest = list(term)
        for name in divisor:
            if name not in rest:
                return None
            rest.remove(name)
        if n % m:
            return None
        found[tuple(rest)] = n // m
    return found


def _least(a: Terms) -> int:
    """A bound from below, for all sizes; 0 where none is known."""
    if any(n < 0 for term, n in a.items() if term) or any("(" in name for term in a for name in term):
        return 0
    return builtins.sum(n * LEAST ** len(term) for term, n in a.items())


def _of(value: Any, terms: Terms | None, text: str, owner: Symbols) -> Any:
    """The size; a plain number where it is one."""
    if terms is not None:
        if not terms.keys() - {()}:
            return terms.get((), 0)
        if len(terms) == 1 and [*terms.values()] == [1] and len(next(iter(terms))) == 1:
            text = next(iter(terms))[0]
        else:
            shown = [
                "*".join([*([str(n)] if n != 1 or not term else []), *term])
                for term, n in sorted(terms.items(), key=lambda pair: (-len(pair[0]), pair[0]))
            ]
            text = " + ".join(shown).replace("+ -", "- ")
    return Size(value, terms, text, owner)


_FACTORS = 4  # of a power that is a polynomial
_ARITHMETIC: dict[str, tuple[str, Any]] = {
    "add": ("+", operator.add),
    "sub": ("-", operator.sub),
    "mul": ("*", operator.mul),
    "floordiv": ("//", operator.floordiv),
    "mod": ("%", operator.mod),
    "truediv": ("/", operator.truediv),
    "pow": ("**", operator.pow),
}


def _combined(name: str, x: Any, y: Any) -> Any:
    symbol, run = _ARITHMETIC[name]
    if isinstance(x, Tensor) or isinstance(y, Tensor):
        return NotImplemented
    if not _plain(x) or not _plain(y) or not _is_open(x, y) or _owner(y, x) is not _owner(x, y):
        return run(*_knowns(x, y))
    value, owner = run(as_recorded(x), as_recorded(y)), _owner(x, y)
    if type(value) not in (int, float):  # complex, of a negative base
        return run(*_knowns(x, y))
    a, b = _terms(x), _terms(y)
    terms: Terms | None = None
    if a is not None and b is not None:
        if name in ("add", "sub"):
            terms = _sum(a, b, 1 if name == "add" else -1)
        elif name == "mul":
            terms = _product(a, b)
        elif name == "pow" and type(y) is int and 0 < y <= _FACTORS:
            terms = functools.reduce(_product, [a] * y)
        elif name in ("floordiv", "mod") and (whole := _quotient(a, b)) is not None:
            terms = whole if name == "floordiv" else {}
    text = f"{_text(x)} {symbol} {_text(y)}"
    if terms is None and type(value) is int:  # what is no polynomial counts as a symbol in others
        terms = {(f"({text})",): 1}
    return _of(value, terms, text, owner)


def smaller(x: Any, y: Any) -> Any:
    """The smaller one of two integers, without a question which one it is."""
    return _one_of(min, x, y)


def larger(x: Any, y: Any) -> Any:
    return _one_of(max, x, y)


def _one_of(run: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    if type(x) is not Size and type(y) is not Size:
        return run(x, y)
    text = f"{run.__name__}({', '.join([n.text if type(n) is Size else repr(n) for n in (x, y)])})"
    return Size(run(as_recorded(x), as_recorded(y)), {(text,): 1}, text, _owner(x, y))


def _rounded(name: str) -> Any:
    run = getattr(math, name)

    def method(self: Size) -> Any:
        if type(self.value) is int:
            return self
        if not self.owner.is_open:
            return run(self.known())
        text = f"{name}({self.text})"
        return Size(run(self.value), {(text,): 1}, text, self.owner)

    return method


def _root(x: Size) -> Any:
    if not x.owner.is_open:
        return math.sqrt(x.known())
    return Size(math.sqrt(x.value), None, f"sqrt({x.text})", x.owner)


def _magnitude(x: Any) -> Any:
    if type(x.value) is int:
        return x if x >= 0 else 0 - x
    if not x.owner.is_open:
        return abs(x.known())
    return Size(abs(x.value), None, f"abs({x.text})", x.owner)  # no comparison tells -0.0 from 0.0


def _power(x: Any, y: Any, modulus: Any = None) -> Any:
    return _combined("pow", x, y) if modulus is None else pow(*_knowns(x, y, modulus))


def _asked(name: str) -> Any:
    """A method of numbers that needs the value."""
    return lambda self, *args: getattr(self.known(), name)(*_knowns(*args))


def _defined() -> Iterator[tuple[str, Any]]:
    for name in _ARITHMETIC:
        yield f"__{name}__", lambda x, y, name=name: _combined(name, x, y)
        yield f"__r{name}__", lambda x, y, name=name: _combined(name, y, x)
    for name, symbol in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
        yield f"__{name}__", lambda x, y, symbol=symbol: _compared(symbol, x, y)
    for name in ("ceil", "floor"):
        yield f"__{name}__", _rounded(name)
    yield "sqrt", _root
    yield "__neg__", lambda x: -1 * x  # not 0 - x, which has no -0.0
    yield "__pos__", lambda x: x
    yield "__abs__", _magnitude
    yield "__pow__", _power
    yield "__divmod__", lambda x, y: (x // y, x % y)
    yield "__rdivmod__", lambda x, y: (y // x, y % x)
    for name in "index int float trunc round".split():
        yield f"__{name}__", _asked(f"__{name}__")
    yield "__complex__", lambda x: complex(x.known())
    for name in "and or xor lshift rshift".split():
        yield f"__{name}__", _asked(f"__{name}__")
        yield f"__r{name}__", _asked(f"__r{name}__")
    yield "__invert__", _asked("__invert__")


for _name, _method in _defined():
    setattr(Size, _name, _method)
LATER.add(Size)


# --- in parameters ---------------------------------------------------------------------------------


def has_sizes(x: Any) -> bool:
    """Whether there is a size in a parameter."""
    if type(x) is Size or type(x) is Places:
        return True
    if isinstance(x, (tuple, list)):
        return any([has_sizes(y) for y in x])
    if isinstance(x, dict):
        return any([has_sizes(y) for y in x.values()])
    return type(x) is slice and (has_sizes(x.start) or has_sizes(x.stop) or has_sizes(x.step))


def written(x: Any, literal: Callable[[Any], str]) -> str:
    """A parameter as source text, with symbols as names."""
    if type(x) is Size:
        return x.text
    if type(x) is Places:
        return f"range({_text(x.start)}, {_text(x.stop)}, {_text(x.step)})"
    if not has_sizes(x):
        return literal(x)
    if type(x) is slice:
        return f"slice({', '.join(written(y, literal) for y in (x.start, x.stop, x.step))})"
    if isinstance(x, dict):
        return f"{{{', '.join(f'{literal(key)}: {written(y, literal)}' for key, y in x.items())}}}"
    entries = ", ".join(written(y, literal) for y in x)
    return f"[{entries}]" if isinstance(x, list) else f"({entries},)"


def filled(x: Any, sizes: dict[str, int]) -> Any:
    """A parameter or a shape with numbers in the places of symbols."""
    if type(x) is Size:
        return eval(x.text, {**SCOPE, **sizes})
    if type(x) is Places:
        start, stop, step, size = [filled(y, sizes) for y in (x.start, x.stop, x.step, x.size)]
        return Places(start, stop, step, size) if has_sizes((start, stop, step)) else range(start, stop, step)
    if not has_sizes(x):
        return x
    if type(x) is slice:
        return slice(*[filled(y, sizes) for y in (x.start, x.stop, x.step)])
    if isinstance(x, dict):
        return {key: filled(y, sizes) for key, y in x.items()}
    return type(x)([filled(y, sizes) for y in x])
