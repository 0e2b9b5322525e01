"""Primitives of the user's own: a function of any array library, and all that a record can say of it."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Decorator, LeafBackend
from adjoint.backends.numpy import NumPy
from adjoint.dtypes import FLOATING, INEXACT, DType, as_dtype, floating
from adjoint.functions.arguments import called, check_callable, takes
from adjoint.graph.codegen import saved_source
from adjoint.primitives import ANY, ELEMENTWISE, KINDS, LINALG, TABLE, Accepted, Primitive, broadcast_shapes, same_dtype
from adjoint.rules import Composed, Custom, Elementwise, NotDifferentiable, Record, names_of
from adjoint.rules.batching import BatchingRule, along_axes, count_of, each_alone, in_stacks, one_of
from adjoint.rules.sparsity import by_definition, everything
from adjoint.user_primitives import DECLARED, UserPrimitive, declare

Rules = Mapping[str, Callable[..., Any]]


def primitive(
    name: str,
    implementation: Callable[..., Any] | Mapping[type[LeafBackend] | str, Callable[..., Any]],
    *,
    kind: str = "elementwise",
    operands: str | None = None,
    parameters: str | None = None,
    shape: Callable[..., Any] | None = None,
    dtype: Callable[..., Any] | None = None,
    derivative: Record | Rules | None = None,
    pushforward: Callable[..., Any] | None = None,
    definition: Callable[..., Any] | None = None,
    batching: Callable[..., Any] | None = None,
    sparsity: Callable[..., Any] | None = None,
    taylor: Callable[..., Any] | None = None,
    operations: Callable[..., Any] | None = None,
    accumulate: Callable[..., Any] | None = None,
    strong_zero: bool | None = None,
    into: Callable[..., Any] | Mapping[type[LeafBackend] | str, Callable[..., Any]] | None = None,
    accepts: str | None = None,
    promotes: Callable[[Any], Any] | None = None,
) -> UserPrimitive:
    """Declare a primitive of your own, and get the function of tensors that runs it.

    Parameters
    ----------
    name
        An identifier that none of our primitives has. Rules find the primitive as `B.name`, or as `B["name"]`, which
        is the primitive also where backends have a method of that name. A name of one's own may be declared anew, as a
        loop does: functions of the earlier declaration then refuse calls, and graphs made by them keep their rules. A
        primitive goes with the last reference to its function, to a graph that needs it, or to a primitive whose rules
        have its name. One whose function was never called stays: others may ask for its name.
    implementation
        A function of NumPy arrays; or a mapping from leaf backends (`ad.NumPy`, `ad.ArrayAPI`, or a name such as
        "numpy") to functions of their arrays. Operands come by position, parameters by keyword.
    kind
        "elementwise", "reduction", "structural", "contraction", "indexing" or "linear algebra". Batching follows from
        it: elementwise ones broadcast, linear algebra takes stacks of matrices, others have `axis` among their
        parameters; those that have none run for one example after the other.
    operands, parameters
        Names with spaces between; read off the implementation's signature, where it has one.
    shape, dtype
        `shape(*shapes, **parameters)` and `dtype(*dtypes, **parameters)` of the result. By default operands broadcast
        (elementwise), and the dtype is the first operand's.
    derivative
        A rule per differentiable operand, `rule(B, g, ...)`, whose further parameters say what it needs
        (adjoint.rules.records says how); or a record. An empty mapping says that the derivative is zero. Without any, a
        derivative that is asked for is an error.
    pushforward
        For forward mode, `pushforward(B, tangents, ...)`, where it does not follow: for rules of primitives that are
        not elementwise.
    definition
        The same function in other primitives, `definition(B, *operands, **parameters)`: other leaf backends run it, and
        what derivatives are not given follow from it.
    batching
        `rule(B, primitive, values, flags, parameters)`, the result for all examples, where it does not follow from the
        kind: `flags` says which values have an axis of examples in front, and the result has it there.
    sparsity
        `rule(call)`, which elements of the input each element of the result depends on (adjoint.rules.sparsity says
        how). Without it, elementwise ones depend element by element, those with a definition as that does, and all
        others on all of their operands.
    taylor
        `rule(B, terms, out, **parameters)`, the next coefficient of the result's series (adjoint.rules.taylor says
        how), where it is to be faster than what follows from the derivative.
    operations
        `rule(operands, result, parameters)`, the floating-point operations of a call, from shapes, for `ad.Profiled`.
    accumulate
        `rule(B, sink, g, ...)`, the sum of `sink`, an array of the operand's shape, and the operand's cotangent,
        written into `sink` where that is cheaper, as it is for a few elements of many. For one operand with a rule in
        `derivative`; further parameters are as there.
    strong_zero
        True says that elementwise rules give zero for a zero cotangent as they are, also where the derivative is
        infinite. Otherwise `Autodiff(strong_zero=True)` sees to it.
    into
        A function, or functions by leaf backend, like `implementation`, that may write the result into the memory of
        the first operand, which nobody else uses. Rules run it as `B.<name>_into`. Reverse mode does so where no rule
        needs that operand or the result.
    accepts, promotes
        The kinds of data types that operands may have, as NumPy's letters: some of "biufc", all by default; and a
        function from the dtype in which operands meet to the one that they are converted to. By default integers and
        booleans get the default dtype where there is a derivative, and stay what they are where there is none.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A name that is taken, an unknown kind, a rule for what is no operand, one that needs what is not there, or that
        cannot be called as above. In a call, an implementation that gives no array, or a name that was declared anew
        since. In a pass back, as the cause of a BackwardError, a rule that gives no array.
    ShapeError
        In a call, an implementation of an elementwise primitive that is not.
    DtypeError
        A rule gives complex numbers for a real operand; likewise.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> cube_root = ad.primitive(
    ...     "cube_root", np.cbrt, derivative={"x": lambda B, g, out: B.divide(g, B.multiply(B.square(out), 3.0))}
    ... )
    >>> ad.grad(cube_root)(8.0)
    np.float64(0.08333333333333333)
    """
    if not isinstance(name, str) or not name.isidentifier() or name.endswith("_into"):
        raise errors.ArgumentError(f"primitive: a name is an identifier, received {errors.shown(name)}")
    if name in TABLE and name not in DECLARED:
        raise errors.ArgumentError(f"primitive: {name!r} is taken; choose another name")
    if not isinstance(kind, str) or kind not in KINDS:
        raise errors.ArgumentError(
            f"primitive {name}: a kind is one of {', '.join(KINDS)}; received {errors.shown(kind)}"
        )
    functions = {"shape": shape, "dtype": dtype, "definition": definition, "promotes": promotes}
    fields = {
        "batching": batching,
        "sparsity": sparsity,
        "taylor": taylor,
        "operations": operations,
        "accumulate": accumulate,
    }
    for option, function in {**functions, **fields}.items():
        if function is not None:
            check_callable(f"primitive {name}", function, option)
    for option, names in {"operands": operands, "parameters": parameters}.items():
        if names is not None and not isinstance(names, str):
            raise errors.ArgumentTypeError(
                f"primitive {name}: {option} are names with spaces between, received {errors.shown(names)}"
            )
    if not isinstance(strong_zero, (bool, type(None))):
        raise errors.ArgumentError(
            f"primitive {name}: strong_zero is True or False, received {errors.shown(strong_zero)}"
        )
    if accepts is not None and (not isinstance(accepts, str) or not accepts or set(accepts) - set(_KINDS)):
        raise errors.ArgumentError(
            f"primitive {name}: accepts are letters of 'biufc', received {errors.shown(accepts)}"
        )
    implementations = _implementations(name, implementation)
    first = next(iter(implementations.values()), definition)
    read_operands, read_parameters = _signature(name, first, skip=first is definition)
    operands = read_operands if operands is None else operands
    parameters = read_parameters if parameters is None else parameters
    if shape is None and kind != ELEMENTWISE:
        raise errors.ArgumentError(f"primitive {name}: give shape=, the rule for the shape of its result")
    made = Primitive(
        name,
        next(known for known in KINDS if known == kind),
        operands,
        parameters,
        shape=shape or (lambda *shapes, **_: broadcast_shapes(*shapes)),
        dtype=dtype or same_dtype,
        accepts=ANY
        if accepts is None
        else Accepted(accepts.replace("f", FLOATING), " or ".join(_KINDS[kind] for kind in accepts)),
        promotes=_promoting(promotes)
        if promotes
        else floating
        if _given(derivative) or definition is not None
        else None,
    )
    made.implementations.update({leaf: _answering(made, function) for leaf, function in implementations.items()})
    if into is not None:
        made.into.update({leaf: _answering(made, function) for leaf, function in _implementations(name, into).items()})
    record = _record(made, derivative, pushforward, definition)
    rules = [*record.rules.values(), record.pullback, record.pushforward, getattr(record, "definition", None)]
    for field, value in {**fields, "strong_zero": strong_zero}.items():
        if value is not None:
            setattr(record, field, value)
    _check_fields(made, record, fields)
    _check_results(made, record)
    if kind != ELEMENTWISE:  # what follows from the kinds of our own is more than is known of these
        record.batching = _fitting(record.batching or _batching(made))
        record.sparsity = record.sparsity or (by_definition if isinstance(record, Composed) else everything)
    elif record.batching is not None:
        record.batching = _fitting(record.batching)
    made.record = record
    return declare(made, [*rules, *fields.values()], getattr(first, "__doc__", None))


_KINDS = {
    "b": "booleans",
    "i": "integers",
    "u": "unsigned integers",
    "f": "real numbers",
    "c": "complex numbers",
}


def _given(derivative: Any) -> bool:
    return isinstance(derivative, Record) or (isinstance(derivative, Mapping) and bool(derivative))


def _promoting(promotes: Callable[[Any], Any]) -> Callable[[DType], DType]:
    return lambda dtype: as_dtype(promotes(dtype))


def _implementations(name: str, given: Any) -> dict[Any, Callable[..., Any]]:
    found = dict(given) if isinstance(given, Mapping) else {NumPy: given}
    for leaf, function in found.items():
        if not (isinstance(leaf, str) or (isinstance(leaf, type) and issubclass(leaf, LeafBackend))) or not callable(
            function
        ):
            raise errors.ArgumentTypeError(
                f"primitive {name}: implementations are functions by leaf backend; received {errors.shown(leaf)}: "
                f"{errors.shown(function)}"
            )
    return found


def _answering(made: Primitive, function: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation; raises where it gives no array, or none of the shape of elementwise functions."""

    @functools.wraps(function)
    def run(*operands: Any, **parameters: Any) -> Any:
        out = function(*operands, **parameters)
        if not hasattr(out, "shape"):
            raise errors.ArgumentTypeError(
                f"{made.name}: its implementation gave {type(out).__name__}, expected an array"
            )
        if made.kind == ELEMENTWISE:
            shapes = [tuple(getattr(x, "shape", ())) for x in operands]
            if tuple(out.shape) != tuple(made.shape(*shapes, **parameters)):
                raise errors.ShapeError(
                    f"{made.name}: its implementation gave shape {tuple(out.shape)} for operands of shapes {shapes}; "
                    "another kind= is for what is not elementwise"
                )
        return out

    return run


def _signature(name: str, function: Any, *, skip: bool) -> tuple[str, str]:
    """The names of operands and parameters: positional and keyword-only ones of the signature."""
    if isinstance(function, np.ufunc):
        return ("x", "x y", "x y z")[function.nin - 1] if function.nin < 4 else "", ""
    try:
        signature = list(inspect.signature(function).parameters.values())[int(skip) :]
    except (TypeError, ValueError):
        raise errors.ArgumentError(f"primitive {name}: its implementation has no signature; give operands=") from None
    names = []
    for p in signature:
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names.append("*" + p.name)
    return " ".join(names), " ".join(p.name for p in signature if p.kind is p.KEYWORD_ONLY)


def _record(made: Primitive, derivative: Any, pushforward: Any, definition: Any) -> Record:
    """The record, checked: a rule names an operand, and needs what there is."""
    record: Record
    if isinstance(derivative, Record):
        if pushforward is not None or definition is not None:
            raise errors.ArgumentError(
                f"primitive {made.name}: derivative is a record, which says its pushforward and its definition itself; "
                "give them to the record"
            )
        record = copy.copy(derivative)
    elif definition is not None:
        record = Composed(definition, pushforward=pushforward)
        record.rules.update(derivative or {})
    elif derivative is None:
        record = _refusing(made.name, pushforward)
    elif isinstance(derivative, Mapping) and not derivative:
        record = NotDifferentiable()
    elif isinstance(derivative, Mapping):
        simple = made.kind == ELEMENTWISE and pushforward is None
        record = Elementwise() if simple else Custom(pushforward=pushforward)
        record.rules.update(derivative)
    else:
        raise errors.ArgumentTypeError(
            f"primitive {made.name}: derivative is a mapping from operands to rules, or a record; received "
            f"{errors.shown(derivative)}"
        )
    if unknown := set(record.rules) - set(made.operands):
        raise errors.ArgumentError(f"primitive {made.name}: rules for {sorted(unknown)}, which are no operands")
    joint = {
        "pullback": (record.pullback, ("B", "g", "wanted")),
        "pushforward": (record.pushforward, ("B", "tangents")),
    }
    for what, (rule, first) in ({f"rule of {x}": (r, ("B", "g")) for x, r in record.rules.items()} | joint).items():
        if rule is not None:
            _check_rule(made, what, rule, first)
    return record


def _check_rule(made: Primitive, what: str, rule: Any, first: Sequence[str]) -> None:
    """Raises for a rule that cannot be called with what all rules get first, or that needs what there is not."""
    if not isinstance(rule, FunctionType):
        raise errors.ArgumentTypeError(
            f"primitive {made.name}: a rule is a Python function, whose parameters say what it needs; received "
            f"{errors.shown(rule)}"
        )
    needs = names_of(rule, len(first))
    try:
        saved_source(made, needs)
    except TypeError as error:
        raise errors.ArgumentError(f"primitive {made.name}: {error}") from None
    if not takes(rule, (*first, *needs)):
        raise errors.ArgumentError(
            f"primitive {made.name}: the {what} is called as rule({', '.join(first)}, ...), with what its further "
            f"parameters name; this one is rule{errors.said(inspect.signature(rule))}"
        )


def _check_results(made: Primitive, record: Record) -> None:
    """Makes rules of users raise where they give no array, or complex numbers for a real operand.

    To that end they need the dtypes of operands, too.
    """
    if record.pullback is not None:
        operands = () if made.variadic else made.operands
        needs, dtypes = names_of(record.pullback, 3), [f"{x}_dtype" for x in operands]

        def several(found: Any, B: Any, wanted: Sequence[int], *dtypes: Any) -> Any:
            if not isinstance(found, (tuple, list)) or len(found) != len(wanted):
                raise errors.ArgumentTypeError(
                    f"{made.name}: its pullback gives a tuple with a cotangent for each operand of wanted, here "
                    f"{len(wanted)}; it gave {errors.shown(found)}"
                )
            known = [dtypes[i] if dtypes else None for i in wanted]
            return tuple([_cotangent(made, i, g, B, d) for i, g, d in zip(wanted, found, known, strict=True)])

        extra = [name for name in dtypes if name not in needs]
        record.pullback = _written(
            ["B", "g", "wanted", *needs, *extra],
            f"several(rule({', '.join(['B', 'g', 'wanted', *needs])}), {', '.join(['B', 'wanted', *dtypes])})",
            {"several": several, "rule": _explained(made, record.pullback)},
        )
    if record.pushforward is not None:
        needs = names_of(record.pushforward, 2)
        record.pushforward = _written(
            ["B", "tangents", *needs, *(() if "out" in needs else ("out",))],
            f"tangent(made, rule({', '.join(['B', 'tangents', *needs])}), B, out)",
            {"tangent": _tangent, "made": made, "rule": _explained(made, record.pushforward)},
        )
    rules, record.rules = record.rules, {}
    for i, operand in enumerate(made.operands):
        if operand not in rules:
            continue
        needs, dtype = names_of(rules[operand], 2), f"{operand}_dtype"
        extra = [] if dtype in needs or made.variadic else [dtype]
        known = dtype if extra or dtype in needs else None
        record.rules[operand] = _written(
            ["B", "g", *needs, *extra],
            f"one(made, {i}, rule({', '.join(['B', 'g', *needs])}), B, {known})",
            {"one": _cotangent, "made": made, "rule": _explained(made, rules[operand])},
        )
        if record.accumulate is not None and extra:
            known = ", ".join(["B", "sink", "g", *needs])
            record.accumulate = _written([known, *extra], f"rule({known})", {"rule": record.accumulate})


def _explained(made: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, whose error says so where it takes the arrays of a transform for numbers."""

    def explained(B: Any, *given: Any) -> Any:
        try:
            return rule(B, *given)
        except (TypeError, AttributeError) as error:
            arrays = [x for xs in given for x in (xs if isinstance(xs, (list, tuple)) else (xs,))]
            if not isinstance(B, Decorator) or not any(f"'{type(x).__name__}'" in str(error) for x in arrays):
                raise
            raise errors.ArgumentTypeError(
                f"{made.name}: a rule computes by the functions of B, its first argument, as it gets the arrays of any "
                "transform: B.multiply(g, x) for g * x or np.multiply(g, x), B.index(x, key=(0,)) for x[0], B.where "
                f"for if; this one ended in {type(error).__name__}: {error}"
            ) from error

    return explained


def _written(names: Sequence[str], body: str, scope: dict[str, Any]) -> Any:
    """A function with parameters of these names: they say what a rule needs."""
    return eval(f"lambda {', '.join(names)}: {body}", scope)


def _tangent(made: Primitive, t: Any, B: Any, out: Any) -> Any:
    """What a pushforward gave. Raises for what is no tangent of the result."""
    if t is None:
        return t
    if not hasattr(t, "shape"):
        raise errors.ArgumentTypeError(
            f"{made.name}: its pushforward gives an array of B, or None, and it gave {errors.shown(t)}"
        )
    if (dtype := B.dtype_of(out)).kind != "c" and (found := B.dtype_of(t)).kind == "c":
        raise errors.DtypeError(f"{made.name}: its pushforward gave {found}, and the result is {dtype}; take B.real")
    return t


def _cotangent(made: Primitive, i: int, g: Any, B: Any, dtype: Any) -> Any:
    """What a rule gave for the i-th operand, which is of this dtype. Raises for what it cannot be."""
    if g is None:
        return g
    operand = made.operands[min(i, len(made.operands) - 1)]
    if not hasattr(g, "shape"):
        raise errors.ArgumentTypeError(
            f"{made.name}: the rule of {operand} gives an array of B, as B.multiply(g, 2.0) is, or None; it gave "
            f"{errors.shown(g)}"
        )
    if dtype is not None and dtype.kind != "c" and (found := B.dtype_of(g)).kind == "c":
        raise errors.DtypeError(
            f"{made.name}: the rule of {operand} gave {found}, and the operand is {dtype}; take the real part, B.real"
        )
    return g


def _check_fields(made: Primitive, record: Record, fields: Iterable[str]) -> None:
    """Raises for fields that are no functions, also of a given record, and for an `accumulate` that cannot be."""
    for field in fields:
        if (function := getattr(record, field)) is not None:
            check_callable(f"primitive {made.name}", function, field)
    if record.accumulate is None:
        return
    rules, wanted = list(record.rules.values()), f"primitive {made.name}: accumulate is for"
    if record.pullback is not None or len(rules) != 1 or made.variadic:
        raise errors.ArgumentError(f"{wanted} one operand with a rule, and there are rules for {list(record.rules)}")
    if made.kind == ELEMENTWISE and len(made.operands) > 1:
        raise errors.ArgumentError(f"{wanted} operands that do not broadcast: give another kind, or leave it out")
    if not hasattr(record.accumulate, "__code__") or names_of(record.accumulate, 3) != names_of(rules[0], 2):
        raise errors.ArgumentError(
            f"{wanted} what the rule is for: after B, sink and g its parameters are {names_of(rules[0], 2)}, too"
        )


def _refusing(name: str, pushforward: Callable[..., Any] | None) -> Record:
    """A record that says, where a derivative is asked for, that none was given."""

    def refuse(*_: Any) -> Any:
        raise errors.UnsupportedPrimitiveError(
            f"the primitive {name!r} has no derivative: give derivative= to ad.primitive, {{}} where it is zero, or "
            "stop_gradient its operands"
        )

    return Custom(
        pullback=lambda B, g, wanted: refuse(),
        pushforward=pushforward or (lambda B, tangents, out: refuse() if B.dtype_of(out).kind in INEXACT else None),
    )


def _batching(made: Primitive) -> BatchingRule:
    """The rule that follows from a primitive: in stacks, along an axis, or else one example after the other."""
    if made.kind is LINALG:
        return in_stacks
    return _along_axis if "axis" in made.parameters else each_alone


def _along_axis(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    axis = parameters["axis"]
    counted = [isinstance(i, int) for i in (axis if isinstance(axis, (tuple, list)) else [axis])]  # not None, say
    return (along_axes if all(counted) else each_alone)(B, primitive, values, flags, parameters)


def _fitting(rule: BatchingRule) -> BatchingRule:
    """The rule, whose results are those of all examples; raises ShapeError where they are not."""

    def checked(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
        form = "batching(B, primitive, values, flags, parameters)"
        out = called(primitive.name, form, rule, B, primitive, values, flags, parameters)
        if not isinstance(getattr(out, "shape", None), tuple):
            raise errors.ArgumentTypeError(f"{primitive.name}: batching gives {errors.shown(out)}, expected an array")
        wanted = (count_of(values, flags), *primitive.shape(*one_of(values, flags), **parameters))
        if tuple(out.shape) != wanted:
            raise errors.ShapeError(
                f"{primitive.name}: in a batch it gave shape {tuple(out.shape)}, expected {wanted}, examples first; "
                "give batching=, or another kind"
            )
        return out

    return checked
