"""Functions that boxes go through: NumPy's and SciPy's by name, and those that users give rules (`extend`).

`traced` makes either: without boxes it is the function itself; with boxes it runs what is here for it on tensors, or,
where rules were given, records the rule. Rules see and give boxes and arrays, in HIPS autograd's complex convention.
"""

from __future__ import annotations

import copy
import functools
import warnings
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.autograd.boxes import Box, boxed, boxed_tensor, conjugated, getval, has_tensors, unboxed
from adjoint.autograd.spaces import vspace
from adjoint.decorators.batched import Batched
from adjoint.devices import leaf_of
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import is_numeric
from adjoint.functions.shape import broadcast_to, stack
from adjoint.operands import cast, common_backend, lift_to
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import array_of
from adjoint.transforms.levels import CustomRules, Tensors, apply

Function = Callable[..., Any]


class _Rules(MutableMapping[Any, Function]):
    """Rules by their function, which has them itself: they go with it, also where they refer to it."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self._functions: weakref.WeakSet[Any] = weakref.WeakSet()

    def __getitem__(self, function: Any) -> Function:
        try:
            return vars(function)[self.attribute]  # type: ignore[no-any-return]
        except (KeyError, TypeError):
            raise KeyError(function) from None

    def __setitem__(self, function: Any, rule: Function) -> None:
        try:
            weakref.ref(function)  # or raise
            setattr(function, self.attribute, rule)
        except (AttributeError, TypeError):
            raise errors.ArgumentTypeError(
                f"{errors.shown(function)} takes no rules: give them to f = primitive(function), and call that"
            ) from None
        self._functions.add(function)

    def __delitem__(self, function: Any) -> None:
        delattr(function, self.attribute)
        self._functions.discard(function)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._functions))

    def __len__(self) -> int:
        return len(self._functions)


# `maker(argnums, ans, args, kwargs)` gives the pullback, and
# `maker(argnums, tangents, ans, args, kwargs)` the tangent of the result
primitive_vjps = _Rules("_adjoint_vjps")
primitive_jvps = _Rules("_adjoint_jvps")
NOT_TRACED = "_adjoint_not_traced"

_PLAIN = {
    np.ndarray, bool, int, float, complex, str, type(None), slice, type, np.bool_, np.float32, np.float64,
    np.complex64, np.complex128, np.int32, np.int64,
}  # fmt: skip


def traced(function: Function, on_tensors: Function | None) -> Function:
    """The function, also of boxes: `on_tensors(*args, **kwargs)` runs there, or the rules that it is given."""

    def run(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if x.__class__ not in _PLAIN:
                break
        else:
            if not kwargs or _PLAIN.issuperset(map(type, kwargs.values())):
                return function(*args, **kwargs)
        if NOT_TRACED in said:
            return function(*map(getval, args), **kwargs)
        ruled = on_tensors is None or primitive_vjps.attribute in said or primitive_jvps.attribute in said
        given = unboxed(args)
        if ruled:
            return _ruled(run, function, given, kwargs) if has_tensors(given) else function(*args, **kwargs)
        named = unboxed(kwargs) if kwargs else kwargs
        if not has_tensors(given) and not has_tensors(named):
            return function(*args, **kwargs)
        return boxed(on_tensors(*given, **named))  # type: ignore[misc]

    functools.update_wrapper(run, function)
    said = vars(run)
    for attribute in (primitive_vjps.attribute, primitive_jvps.attribute, NOT_TRACED):
        said.pop(attribute, None)  # of the other function, if that has rules
    run.fun = function  # type: ignore[attr-defined]
    return run


def _ruled(run: Function, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function with rules, of tensors among its arguments."""
    rules = _Ruled(run, function, args, kwargs)
    device = common_backend(*rules.tensors)
    ys = apply(rules, [wrap(lift_to(x, device), device) for x in rules.tensors], device)
    return boxed(rules.results.tree(ys))


class _Results:
    """The structure of the result, which is known once the function ran."""

    structure: Any = None

    def tree(self, leaves: Sequence[Any]) -> Any:
        return trees.unflatten(self.structure, list(leaves))


class _Ruled(CustomRules):
    """A function of arrays as levels see it: values below, and the user's rules at each level."""

    active: list[bool] | None = None  # which tensors the level that applies it follows

    def __init__(self, run: Function, function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.run, self.function, self.kwargs = run, function, kwargs
        self.name = getattr(function, "__name__", repr(function))
        self.results = _Results()
        self.args = list(args)
        self.tensors: Tensors = []
        # of each argument with tensors: its structure, its leaves, and which of these are tensors
        self.parts: dict[int, tuple[Any, list[Any], list[int]]] = {}
        for i, x in enumerate(args):
            if has_tensors(x):
                leaves, structure = trees.flatten(x)
                places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
                self.parts[i] = structure, leaves, places
                self.tensors += [leaves[k] for k in places]

    # --- values, arguments and results ---

    def with_arrays(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with these in the place of the tensors."""
        args, rest = list(self.args), list(arrays)
        for i, (structure, leaves, places) in self.parts.items():
            leaves = list(leaves)
            for k in places:
                leaves[k] = rest.pop(0)
            args[i] = trees.unflatten(structure, leaves)
        return tuple(args)

    def argument_of(self) -> list[int]:
        """For each tensor the position of its argument."""
        return [i for i, (_, _, places) in self.parts.items() for _ in places]

    def plain(self, xs: Tensors) -> Tensors:
        device = common_backend(*xs)
        out = self.function(*self.with_arrays([boxed_tensor(x) for x in xs]), **self.kwargs)
        leaves, self.results.structure = trees.flatten(unboxed(out))
        ys = []
        for y in leaves:
            if isinstance(y, Tensor):
                ys.append(y)
            elif is_numeric(y) or isinstance(y, (int, float, complex)):
                ys.append(wrap(array_of(y, device, keep=True), device))
            elif (leaf := leaf_of(y)) is not None:
                ys.append(wrap(leaf.from_native(y), leaf))
            else:
                raise errors.ArgumentTypeError(
                    f"{self.name}: can't differentiate w.r.t. type {type(y)}: results are arrays, or containers of them"
                )
        return ys

    def on(self, xs: Tensors) -> Tensors:
        """The same function on the levels below: they look at a copy, what is known of this level stays."""
        return apply(copy.copy(self), xs, common_backend(*xs))

    def argnums(self) -> tuple[int, ...]:
        """The positions of the arguments that the level follows."""
        of = self.argument_of()
        return tuple(sorted({i for k, i in enumerate(of) if self.active is None or self.active[k]}))

    def boxes(self, xs: Tensors) -> tuple[Any, ...]:
        return self.with_arrays([boxed_tensor(x) for x in xs])

    # --- backward ---

    def forward_by(self, xs: Tensors, active: Sequence[bool]) -> tuple[Tensors, Any]:
        self.active = list(active)
        return self.forward(xs)

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        ys = self.on(xs)
        return ys, self.residuals(xs, ys)

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        argnums = self.argnums()
        maker = primitive_vjps.get(self.run)
        if maker is None:
            raise _undefined("VJP", self.name, argnums)
        return argnums, maker(argnums, boxed(self.results.tree(ys)), self.boxes(xs), self.kwargs), xs, ys

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        argnums, vjp, xs, ys = saved
        device = common_backend(*cotangents, *xs)
        if isinstance(device, Batched):  # rules may be of NumPy alone: one example after the other
            return _each(device, lambda *parts: self._example(len(xs), parts), [*xs, *ys, *cotangents])
        given = boxed(self.results.tree([conjugated(c) for c in cotangents]))
        found = dict(zip(argnums, vjp(given), strict=True))
        answers, start = [], 0
        for i, (structure, _, places) in self.parts.items():
            likes = xs[start : start + len(places)]
            start += len(places)
            if i not in found:
                answers += [_fitting(0.0, x, self.name, i) for x in likes]
                continue
            leaves, of = trees.flatten(_in_containers(unboxed(found[i]), self.args[i]))
            if of != structure:
                raise errors.ArgumentError(
                    f"{self.name}: the VJP of argument {i} gives a structure {errors.said(of)}, the argument has "
                    f"{errors.said(structure)}"
                )
            leaves = [conjugated(v) for v in leaves]
            if any([y.dtype.kind == "c" for y in ys]):  # of what it sends to a real argument, the real part counts
                for k, x in zip(places, likes, strict=True):
                    leaves[k] = leaves[k] if x.dtype.kind == "c" else np.real(leaves[k])
            answers += [_fitting(leaves[k], x, self.name, i) for k, x in zip(places, likes, strict=True)]
        return answers

    def _example(self, count: int, parts: Sequence[Tensor[Any]]) -> Tensors:
        """`backward` of one example, of arguments, results and cotangents."""
        xs, rest = list(parts[:count]), list(parts[count:])
        ys, cotangents = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        return self.backward(self.residuals(xs, ys), cotangents)

    # --- forward mode, batches ---

    def push_of(
        self, xs: Tensors, tangents: Sequence[Tensor[Any] | None]
    ) -> tuple[Tensors, Sequence[Tensor[Any] | None]]:
        self.active = [t is not None for t in tangents]
        return super().push_of(xs, tangents)

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        ys = self.on(xs)
        argnums = self.argnums()
        maker = primitive_jvps.get(self.run)
        if maker is None:
            raise _undefined("JVP", self.name, argnums)
        args = self.boxes(xs)
        moved = self.with_arrays([boxed_tensor(t) for t in tangents])
        out = maker(argnums, [moved[i] for i in argnums], boxed(self.results.tree(ys)), args, self.kwargs)
        leaves, structure = trees.flatten(unboxed(out))
        if structure != self.results.structure:
            raise errors.ArgumentError(
                f"{self.name}: the JVP gives a structure {errors.said(structure)}, the result has "
                f"{errors.said(self.results.structure)}"
            )
        return ys, [_fitting(t, y, self.name, None) for t, y in zip(leaves, ys, strict=True)]

    def batch(self, level: Any, size: int, flags: list[bool], xs: Tensors) -> tuple[Tensors, list[bool]]:
        if not size:
            raise errors.ArgumentError(f"{self.name}: of a batch of no examples nobody knows the shape of the result")
        rows = [self.on([x[k] if flag else x for x, flag in zip(xs, flags, strict=True)]) for k in range(size)]
        return [stack(column) for column in zip(*rows, strict=True)], [True] * len(rows[0])


def _each(device: Any, f: Callable[..., Tensors], tensors: Tensors) -> Tensors:
    """The results of f for each example of a batched level, as tensors of the level."""
    lifted = [lift_to(x, device) for x in tensors]
    inner = [wrap(device.unwrap(a), device.inner) for a in lifted]
    flags = [device.is_active(a) for a in lifted]
    size = next((x.shape[0] for x, flag in zip(inner, flags, strict=True) if flag), None)
    if size is None:
        return f(*inner)
    rows = [f(*[x[k] if flag else x for x, flag in zip(inner, flags, strict=True)]) for k in range(size)]
    columns = [stack(column) for column in zip(*rows, strict=True)]
    return [wrap(device.rewrap(lift_to(y, device.inner), True), device) for y in columns]


def _in_containers(g: Any, like: Any) -> Any:
    """What a rule gives, in the lists and tuples of its argument: for these any sequence of their length will do."""
    kind = type(like)
    sequence = isinstance(g, (list, tuple)) or (isinstance(g, (np.ndarray, Tensor)) and g.ndim > 0)
    if kind not in (list, tuple) or not sequence or len(g) != len(like):
        return g
    return kind(map(_in_containers, g, like))


def _fitting(g: Any, like: Tensor[Any], name: str, argnum: int | None) -> Tensor[Any]:
    """What a rule gives, as a tensor of the shape and dtype of what it belongs to; fewer axes are broadcast."""
    if not isinstance(g, Tensor):
        device = like.device
        g = wrap(array_of(g, device), device)
    what = f"{name}: the {'JVP' if argnum is None else f'VJP of argument {argnum}'}"
    if g.dtype.kind == "c" and like.dtype.kind in INEXACT and like.dtype.kind != "c":
        raise errors.DtypeError(f"{what} is {g.dtype}, for {like.dtype}; take np.real, as match_complex does")
    if g.shape != like.shape:
        try:
            g = broadcast_to(g, like.shape)
        except errors.ShapeError:
            raise errors.ShapeError(
                f"{what} has shape {g.shape}, for {like.shape}; unbroadcast_f sums over axes that were broadcast"
            ) from None
    return cast(g, like.dtype)


def _undefined(kind: str, name: str, argnums: Sequence[int]) -> errors.AdjointError:
    maker = "defvjp" if kind == "VJP" else "defjvp"
    return errors.UnsupportedPrimitiveError(
        f"{kind} of {name} wrt argnums {tuple(argnums)} not defined: give it by {maker}({name}, ...)"
    )


# --- what users write ----------------------------------------------------------------------------


def primitive(function: Function) -> Function:
    """A function of arrays that is given rules, by `defvjp` and `defjvp`.

    >>> from adjoint.autograd import grad
    >>> from adjoint.autograd.extend import defvjp, primitive
    >>> import numpy as np
    >>> @primitive
    ... def cube(x):                # imagine that it calls a library of C
    ...     return np.asarray(x) ** 3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> grad(cube)(2.0), grad(grad(cube))(2.0)
    (np.float64(12.0), np.float64(12.0))
    """
    run: Any = traced(function, None)
    run.defvjp, run.defgrad, run.defvjp_is_zero = _OldRules(run).each()
    return run  # type: ignore[no-any-return]


class _OldRules:
    """`f.defgrad(rule, argnum)` and its like of the first versions: one rule after the other. They warn."""

    def __init__(self, function: Function) -> None:
        self.function = weakref.ref(function)
        self.rules: dict[int, Function | None] = {}

    def each(self) -> tuple[Function, Function, Function]:
        return self.defvjp, self.defgrad, self.defvjp_is_zero

    def _define(self, name: str, rules: dict[int, Function | None]) -> None:
        warnings.warn(f"the {name} method is deprecated: use defvjp of adjoint.autograd.extend", stacklevel=3)
        self.rules.update(rules)
        defvjp(self.function(), *self.rules.values(), argnums=list(self.rules))  # type: ignore[arg-type]

    def defgrad(self, rule: Function, argnum: int = 0) -> None:
        self._define("defgrad", {argnum: rule})

    def defvjp(self, rule: Function, argnum: int = 0) -> None:
        def staged(ans: Any, *args: Any, **kwargs: Any) -> Function:
            return lambda g: rule(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        self._define("defvjp", {argnum: staged})

    def defvjp_is_zero(self, argnums: Sequence[int] = (0,)) -> None:
        self._define("defvjp_is_zero", dict.fromkeys(argnums))


def notrace_primitive(function: Function) -> Function:
    """A function that is given the values of boxes: no derivative flows through it."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*map(getval, args), **kwargs)

    return run


def register_notrace(trace_type: Any, function: Function) -> None:
    """No derivative flows through this function, in either mode; `trace_type` is not looked at."""
    setattr(function, NOT_TRACED, True)


def defvjp_argnums(function: Function, maker: Function) -> None:
    """`maker(argnums, ans, args, kwargs)` gives a function of the cotangent, which gives one for each of argnums."""
    primitive_vjps[function] = maker


def defvjp_argnum(function: Function, maker: Function) -> None:
    """`maker(argnum, ans, args, kwargs)` gives the pullback to one argument."""

    def all_of_them(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        vjps = [maker(i, ans, args, kwargs) for i in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(function, all_of_them)


def _by_argnum(kind: str, function: Function, rules: Sequence[Any], argnums: Any) -> dict[int, Any]:
    """The rules by the position of their argument, those of the first arguments if no positions are named."""
    chosen = range(len(rules)) if argnums is None else argnums
    return dict(zip(chosen, rules, strict=False))


def defvjp(function: Function, *rules: Function | None, argnums: Sequence[int] | None = None) -> None:
    """A rule for each argument: `rule(ans, *args, **kwargs)` gives a function of the cotangent; None for zero.

    Rules are of the first arguments, or of those at `argnums`. They are HIPS autograd's: of complex numbers nothing is
    conjugated, so that the rule of x**2 is `g * 2 * x`. Raises ArgumentTypeError for what is no function.
    """
    name = getattr(function, "__name__", repr(function))
    known = _by_argnum("VJP", function, rules, argnums)
    for rule in known.values():
        if rule is not None and not callable(rule):
            raise errors.ArgumentTypeError(
                f"defvjp({name}): bad VJP {errors.shown(rule)}; a rule is a function, or None"
            )

    def maker(wanted: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        if any(i not in known for i in wanted):
            raise _undefined("VJP", name, wanted)
        vjps = [_zero_vjp(args[i]) if known[i] is None else known[i](ans, *args, **kwargs) for i in wanted]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(function, maker)


def _zero_vjp(x: Any) -> Function:
    zero = _zeros(x)
    return lambda g: zero


def _zeros(x: Any) -> Any:
    """Zeros of the structure of a value."""
    return trees.map(lambda v: np.zeros(np.shape(getval(v)), getattr(v, "dtype", float)), x)


def defjvp_argnums(function: Function, maker: Function) -> None:
    """`maker(argnums, tangents, ans, args, kwargs)` gives the tangent of the result."""
    primitive_jvps[function] = maker


def defjvp_argnum(function: Function, maker: Function) -> None:
    """`maker(argnum, tangent, ans, args, kwargs)` gives the tangent of the result by one argument."""

    def total(argnums: Sequence[int], tangents: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
        return _sum([maker(i, t, ans, args, kwargs) for i, t in zip(argnums, tangents, strict=True)])

    defjvp_argnums(function, total)


def _sum(terms: list[Any]) -> Any:
    return functools.reduce(lambda a, b: trees.map(lambda x, y: x + y, a, b), terms)


def defjvp(function: Function, *rules: Function | str | None, argnums: Sequence[int] | None = None) -> None:
    """A rule for each argument: `rule(tangent, ans, *args, **kwargs)` gives the tangent of the result.

    None is for zero, "same" for a function that is linear in that argument. Raises ArgumentTypeError for anything else.
    """
    name = getattr(function, "__name__", repr(function))
    known = _by_argnum("JVP", function, rules, argnums)
    for rule in known.values():
        if rule is not None and rule != "same" and not callable(rule):
            raise errors.ArgumentTypeError(
                f'defjvp({name}): bad JVP {errors.shown(rule)}; a rule is a function, "same" or None'
            )

    def maker(wanted: Sequence[int], tangents: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
        if any(i not in known for i in wanted):
            raise _undefined("JVP", name, wanted)
        terms = []
        for i, t in zip(wanted, tangents, strict=True):
            rule = known[i]
            if rule is None:
                terms.append(_zeros(ans))
            elif rule == "same":
                terms.append(function(*args[:i], t, *args[i + 1 :], **kwargs))
            else:
                terms.append(rule(t, ans, *args, **kwargs))
        return _sum(terms)

    defjvp_argnums(function, maker)


def def_linear(function: Function) -> None:
    """Say that a function is linear in each of its arguments, for forward mode."""
    defjvp_argnum(
        function, lambda argnum, t, ans, args, kwargs: function(*args[:argnum], t, *args[argnum + 1 :], **kwargs)
    )


__all__ = [
    "Box", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum", "defvjp_argnums",
    "notrace_primitive", "primitive", "register_notrace",
]  # fmt: skip
