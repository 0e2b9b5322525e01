"""What fills tensors in place, and comparisons of whole tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.graph.nodes import var_of
from adjoint.torch import creation, generators, lifted
from adjoint.torch.arguments import guarded, public, same_types, spelled_as
from adjoint.torch.calls import call, explained, number, off, only_number, put, put_lifted, refuse_misfit
from adjoint.torch.functions import check_tensors, to
from adjoint.torch.graph import label
from adjoint.torch.memory import place_of
from adjoint.torch.operators import METHODS
from adjoint.torch.tensor import (
    INNER,
    LEVEL,
    Tensor,
    array_on,
    beside,
    copied,
    is_lifted,
    looked,
    meeting,
    next_number,
    of,
    where_is,
)
from adjoint.torch.writes import check_write


def _erase(x: Any, value: Any, made: str, others: Any = (), start: int | None = None) -> Any:
    """x with the values of another tensor: the gradient of what it was is zero, but its history stays, as PyTorch's.

    What `others` were cast to has nodes above `start`.
    """
    filling = made in ("FillBackward2", "Zero")  # with a number; a tensor of one is refused as others are
    check_write(x, others, filling=filling, copied=made == "FillBackward3")
    if is_lifted(x) or is_lifted(value):
        if tuple(value.shape) != tuple(x.shape):
            value = call(lambda a: ad.broadcast_to(a, tuple(x.shape)), None, value)
        return put_lifted(x, value)
    start = next_number() if start is None else start
    quiet = off()
    where = where_is(x)
    B = (INNER if quiet else LEVEL) if where is None else where.leaf if quiet else where.level
    given: Any = array_on(value, where, quiet)
    try:
        if tuple(given.shape) != tuple(x.shape):
            if _spreads(tuple(x.shape), tuple(given.shape)):
                raise RuntimeError(
                    f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(given.shape)}"
                )
            given = B.broadcast_to(given, shape=tuple(x.shape))
        if not quiet and x.requires_grad and not (filling and _stretched(x)):
            always = np.ones((), bool)
            given = B.where(always if where is None else where.constant(always), given, x._array)
            label(given.node, made, start, [t._array.node for t in (x, *others)] if others else None)
        elif not quiet and given.node is not None:  # a node of its own
            operands = [t._array.node for t in others]
            if given.node.number <= start or given.node in operands:
                given = B.reshape(given, shape=tuple(given.shape))
            label(given.node, made, start, [None, *operands])
    except Exception as error:
        raise explained(error, (x, value)) from None
    return put(x, of(var_of(copied(given), None) if quiet else _owned(given)), start)


def _stretched(x: Any) -> bool:
    """Whether several elements are in one place."""
    return x._rare is not None and x._rare.memory is not None and 0 in place_of(x)[0]


def _spreads(shape: Any, other: Any) -> bool:
    """Whether the two broadcast to something larger than the first."""
    try:
        return tuple(np.broadcast_shapes(shape, other)) != tuple(shape)
    except ValueError:
        return False


def _owned(array: Any) -> Any:
    """The array with memory of its own, which no other tensor's is."""
    return var_of(copied(array.value), array.node)


def _copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Take the values of another tensor, in this one's type and shape."""
    other = other if isinstance(other, Tensor) else creation.tensor(other)
    check_write(self, (other,))
    start = next_number()
    cast = to(other, self.device, dtype=self._dtype)
    return _erase(self, cast, "CopyBackwards", (other,), start)


def _fill_(self: Any, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        start = next_number()
        there = None if is_lifted(value) else self.device
        return _erase(self, to(value, there, dtype=self._dtype), "FillBackward3", (value,), start)
    return _erase(self, _filled(self, only_number(value, "fill_", "value", 1)), "FillBackward2")


def _filled(x: Any, value: Any) -> Tensor:
    """A tensor like another one, with one number everywhere."""
    return beside(x, np.full(tuple(x.shape), number(value, x._dtype), x._dtype))


_copy_.__name__ = _copy_.__qualname__ = "copy_"
METHODS["copy_"] = guarded(_copy_)
METHODS["fill_"] = _fill_
METHODS["zero_"] = lambda self: _erase(self, _filled(self, 0), "Zero")


def drawn(name: str, parameters: str, draw: Any, made: str | None = None) -> Any:
    """The in-place method of a distribution of these parameters."""
    known = made or "".join([part.capitalize() for part in name.split("_")])

    def filled(self: Any, *args: Any, generator: Any = None) -> Any:
        made = known.replace("2", "1") if isinstance(args[0], Tensor) else known  # of tensors of chances
        if name == "normal_" and self._dtype.kind == "c":  # a part has half of the variance
            args = (args[0], args[1] / math.sqrt(2))
        several = bool(generators.apart())
        make = generators.in_parts(lambda size, g: draw(generators.source(g, apart=several), size, *args), self._dtype)
        if several:
            each = generators.drawn_apart(make, tuple(self.shape), generator, self._dtype)
            return _erase(self, each, made, [x for x in args if isinstance(x, Tensor)])
        value = make(tuple(self.shape), generator)
        others = [x for x in args if isinstance(x, Tensor)]
        return _erase(self, beside(self, np.asarray(value, self._dtype)), made, others)

    METHODS[name] = guarded(spelled_as(name, f"self, {parameters}, *, generator=None", filled))
    return METHODS[name]


def _values(x: Any) -> Any:
    return looked(x) if isinstance(x, Tensor) else x


def expect(name: str, right: Any, what: str) -> None:
    """Raise RuntimeError where a distribution has no such parameters."""
    if not right:
        raise RuntimeError(f"{name} expects {what}")


def _normal(r: Any, size: Any, mean: Any, std: Any) -> Any:
    expect("normal", std >= 0, f"std >= 0.0, but found std {std}")
    return r.normal(mean, std, size)


def _uniform(r: Any, size: Any, low: Any, high: Any) -> Any:
    expect("uniform_", low <= high, f"to return a [from, to) range, but found from={low} > to={high}")
    return r.uniform(low, high, size)


def _exponential(r: Any, size: Any, lambd: Any) -> Any:
    expect("exponential_", lambd > 0, f"lambda > 0.0, but found lambda={lambd}")
    return r.exponential(1 / lambd, size)


def _bernoulli(r: Any, size: Any, p: Any) -> Any:
    chance = _values(p)
    expect("bernoulli_", np.all((chance >= 0) & (chance <= 1)), "p between 0 and 1")
    return r.random(size) < chance


def _random_(self: Any, from_: Any = None, to: Any = None, *, generator: Any = None) -> Any:
    """Integers below a bound, or from one up to another; without them all that the type counts one by one."""
    kind = self._dtype.kind
    if kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    info: Any = None if kind == "b" else np.finfo(self._dtype) if kind == "f" else np.iinfo(self._dtype)
    low: Any
    high: Any
    if from_ is None and to is None:
        low, high = 0, 2 if info is None else (2 << info.nmant) + 1 if kind == "f" else int(info.max) + 1
    else:
        low, high = (0, from_) if to is None else (from_ or 0, to)
        expect("random_", low < high, f"'from' to be less than 'to', but got from={low} >= to={high}")
        lowest, highest = (0, 1) if info is None else (info.min, info.max)
        for what, end in (("from", low), ("to - 1", high - 1)):
            if not lowest <= end <= highest:
                raise RuntimeError(f"{what} is out of bounds for {self._dtype.name}")
    draw = _INTEGERS[2 if from_ is None and to is None else 1 if to is None else 0]
    return draw(self, low, high, generator=generator)


drawn("normal_", "mean: float = 0.0, std: float = 1.0", _normal)
drawn("uniform_", "from_: float = 0.0, to: float = 1.0", _uniform)
drawn("bernoulli_", "p: Tensor | float = 0.5", _bernoulli, "BernoulliBackward2")
drawn("exponential_", "lambd: float = 1.0", _exponential)
_INTEGERS = [
    drawn("random_", "low, high", lambda r, size, low, high: r.integers(low, high, size), f"RandomBackward{number}")
    for number in range(3)
]
METHODS["random_"] = guarded(_random_)


# --- comparisons of whole tensors --------------------------------------------------------------------------


@public("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and values."""
    meeting((input, other))
    if lifted.is_batched(input) or lifted.is_batched(other):
        raise RuntimeError("torch.equal gives one truth value, and examples of a vmap have one each; see torch.eq")
    return tuple(input.shape) == tuple(other.shape) and bool((looked(input) == looked(other)).all())


@public("isclose")
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    check_tensors("isclose", input, other)
    same_types("isclose", input, other)
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if bound < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {bound}")
    meeting((input, other))
    if is_lifted(input) or is_lifted(other):  # whose examples have values of their own
        return call("isclose", None, input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)  # type: ignore[no-any-return]
    refuse_misfit(input, other)
    return beside(input, np.isclose(looked(input), looked(other), rtol, atol, equal_nan))


@public("allclose")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"rtol and atol must be greater than or equal to zero, but got {rtol} and {atol}")
    same_types("allclose", input, other)
    meeting((input, other))
    refuse_misfit(input, other)
    return bool(np.allclose(looked(input), looked(other), rtol, atol, equal_nan))
