"""Functions written out as source: what runs at every primitive, without a loop or a call beyond the work.

As with named tuples, a function is made from source, once per primitive and choice of tracked operands. Closures
need one call more, of what picks the values to keep: a chain of elementwise primitives is a tenth slower with them.
The names of a rule's parameters say what it needs, and here they become an expression that picks just that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from adjoint.backend import Backend, Implementation
from adjoint.graph.nodes import Node, Var, numbers
from adjoint.primitives import Primitive, Shape
from adjoint.rules.records import Rule, names_of

if TYPE_CHECKING:
    from adjoint.graph.vjp import VJP


def _compiled(source: str, mode: str) -> CodeType:
    """Source as code of this one line, which NumPy's warnings show: of what they tell, ad.Checked names the user's."""
    return _at_line(compile(source, __file__, mode), _compiled.__code__.co_firstlineno + 1)


def _at_line(code: CodeType, line: int) -> CodeType:
    """The code with one line for all of its instructions: CPython's table of them, Objects/locations.md."""
    count = len(code.co_code) // 2
    runs = [8] * (count // 8) + [count % 8] * (count % 8 > 0)
    table = b"".join([bytes([0x80 | 13 << 3 | n - 1, 0]) for n in runs])  # n instructions, as far from the last as 0
    inner = tuple([_at_line(x, line) if isinstance(x, CodeType) else x for x in code.co_consts])
    return code.replace(co_firstlineno=line, co_linetable=table, co_consts=inner)


def shape_of(value: Any) -> Shape:
    return tuple(value.shape) if hasattr(value, "shape") else ()


def saved_source(primitive: Primitive, needs: Sequence[str]) -> str:
    """The source of a tuple of what rules name."""
    places = {name: f"[{i}]" for i, name in enumerate(primitive.operands)}
    many = ""
    if primitive.variadic:
        many = primitive.operands[-1].lstrip("*")
        places[many] = f"[{len(primitive.operands) - 1}:]"

    def source(need: str) -> str:
        operand, _, what = need.rpartition("_")
        if need in places:
            return "kept" + places[need]
        if need in ("out", "outs"):
            return "out"
        if need in primitive.parameters:
            return f"p[{need!r}]"
        if operand in places and what == "shape":
            return f"tuple([shape(a) for a in v{places[operand]}])" if operand == many else f"shape(v{places[operand]})"
        if operand in places and what == "dtype":
            return f"dtype(v{places[operand]})"
        raise TypeError(f"the rule of {primitive.name} asks for {need!r}, which is no operand, result or parameter")

    return "(" + "".join(source(need) + ", " for need in needs) + ")"


def saved_getter(source: str, inner: Backend) -> Callable[..., Any]:
    """What `saved_source` wrote as a function: of operands, of these or how to make them, of result and parameters."""
    scope = {"shape": shape_of, "dtype": inner.dtype_of}
    return eval(f"lambda v, kept, out, p: {source}", scope)  # type: ignore[no-any-return]


def make_vjp(
    rules: Sequence[Rule], counts: Sequence[int], primitive: Primitive, inner: Backend
) -> Callable[[Any, Any, Any], Any]:
    """A function that calls each rule with its part of what was saved.

    Written out as a lambda expression: `lambda B, g, s: (r0(B, g, s[0]), r1(B, g, s[1], s[2]), )`.
    """
    scope: dict[str, Any] = {f"r{i}": rule for i, rule in enumerate(rules)}
    place = "B"
    if any(counts) and (numbers := inner.numbers(primitive)) is not None:  # others hardly compute
        scope |= {"Number": numbers.number_type, "N": numbers, "leaf": inner}
        place = "N if g.__class__ is Number and B is leaf else B"
    calls, start = [], 0
    for i, count in enumerate(counts):
        calls.append(f"r{i}({place}, g{''.join(f', s[{k}]' for k in range(start, start + count))}), ")
        start += count
    source = f"lambda B, g, s: ({''.join(calls)})"
    return eval(_compiled(source, "eval"), scope)  # type: ignore[no-any-return]


def lifted(
    primitive: Primitive, run: Implementation, vjps: Mapping[tuple[int, ...], VJP], inner: Backend
) -> Implementation:
    """A primitive that is run and recorded: one or two of its operands are differentiable, those that `vjps` name.

    For `multiply` it is, without what the other choices of tracked operands add:

        def lifted(v0, v1, /):
            if v0.__class__ is Var:
                n0 = v0.node
                v0 = v0.value
            else:
                n0 = None
            ...
            out = run(v0, v1)
            var = Var()
            var.value = out
            if n0 is None:
                if n1 is None:
                    var.node = None
                    return var
                vjp, first, second, saved = vjp1, n1, None, (v0,)
            ...
            var.node = node = Node()
            node.vjp = vjp
            ...
            return var
    """
    sources = sorted({i for choice in vjps for i in choice})
    fixed, lines, scope = _opening(primitive, run, inner, sources, "Var", "node", "n")
    lines += ["    var = Var()", "    var.value = out"]

    def branch(choice: tuple[int, ...], indent: str) -> list[str]:
        first, second = [*[f"n{i}" for i in choice], "None"][:2]
        saved = _at_hand(vjps[choice].saved, fixed)
        lines = [f"vjp = {_name(choice)}", f"first = {first}", f"second = {second}", f"saved = {saved}"]
        return [indent + line for line in lines]

    constant = ["var.node = None", "return var"]
    first = sources[0]
    if len(sources) == 1:
        lines += [f"    if n{first} is None:", *[f"        {line}" for line in constant]]
        lines += branch((first,), "    ")
    else:
        second = sources[1]
        lines += [f"    if n{first} is None:", f"        if n{second} is None:"]
        lines += [f"            {line}" for line in constant]
        lines += branch((second,), "        ")
        lines += [f"    elif n{second} is None:", *branch((first,), "        ")]
        lines += ["    else:", *branch((first, second), "        ")]
    lines += [
        "    var.node = node = Node()",
        "    node.number = next(number)",
        "    node.vjp = vjp",
        "    node.saved = saved",
        "    node.first = first",
        "    node.second = second",
        "    node.visit = 0",
        "    node.shape = out.shape",
        "    return var",
    ]
    scope |= {"Var": Var, "Node": Node, "number": numbers}
    scope |= {_name(choice): vjp for choice, vjp in vjps.items()}
    return _made(lines, scope)


def pushed(
    primitive: Primitive, run: Implementation, rules: Mapping[int, Rule | None], inner: Backend, box: type
) -> Implementation:
    """A primitive that is run, and that pushes tangents forward: those of one or two operands, which `rules` names.

    The rules are those of reverse mode, where the Jacobian is diagonal; None stands for the primitive itself, which is
    linear in its only operand. Arrays are a `box` of a value and a tangent. For `multiply` it is:

        def lifted(v0, v1, /):
            if v0.__class__ is Box:
                t0 = v0.tangent
                v0 = v0.value
            else:
                t0 = None
            ...
            out = run(v0, v1)
            dual = new(Box)
            dual.value = out
            if t0 is None:
                if t1 is None:
                    dual.tangent = None
                    return dual
                tangent = r1(B, t1, v0)
            ...
            if tangent.shape != out.shape:
                tangent = spread(tangent, shape=tuple(out.shape))
            dual.tangent = tangent
            return dual
    """
    sources = sorted(rules)
    fixed, lines, scope = _opening(primitive, run, inner, sources, "Box", "tangent", "t")
    place = "N if v0.__class__ is Number else B" if "N" in scope else "B"
    parts = {}
    for i, rule in rules.items():
        if rule is None:
            parts[i] = f"run(t{i}{', **p' if primitive.parameters else ''})"
        else:
            saved = _at_hand(saved_source(primitive, names_of(rule, 2)), fixed)[1:-1]
            parts[i] = f"r{i}({place}, t{i}, {saved})"
    lines += ["    dual = new(Box)", "    dual.value = out"]
    constant = ["dual.tangent = None", "return dual"]
    first = sources[0]
    widened = ["if tangent.shape != out.shape:", "    tangent = spread(tangent, shape=tuple(out.shape))"]
    widened = widened if len(fixed) > 1 else []
    if len(sources) == 1:
        lines += [f"    if t{first} is None:", *[f"        {line}" for line in constant]]
        lines += [f"    {line}" for line in [f"tangent = {parts[first]}", *widened]]
    else:
        second = sources[1]
        plus = "(N.add if v0.__class__ is Number else plus)" if "N" in scope else "plus"
        lines += [f"    if t{first} is None:", f"        if t{second} is None:"]
        lines += [f"            {line}" for line in constant]
        lines += [f"        {line}" for line in [f"tangent = {parts[second]}", *widened]]
        lines += [f"    elif t{second} is None:"]
        lines += [f"        {line}" for line in [f"tangent = {parts[first]}", *widened]]
        lines += ["    else:", f"        tangent = {plus}({parts[first]}, {parts[second]})"]
    lines += ["    dual.tangent = tangent", "    return dual"]
    scope |= {"Box": box, "new": object.__new__, "B": inner, "plus": inner.add, "spread": inner.broadcast_to}
    scope |= {f"r{i}": rule for i, rule in rules.items()}
    return _made(lines, scope)


def constant(primitive: Primitive, run: Implementation, inner: Backend, box: type, beside: str) -> Implementation:
    """An elementwise primitive without derivatives: a `box` with its value, and with None `beside` it."""
    _, lines, scope = _opening(primitive, run, inner, range(len(primitive.operands)), "Box", beside, "n")
    lines += ["    made = new(Box)", "    made.value = out", f"    made.{beside} = None", "    return made"]
    return _made(lines, scope | {"Box": box, "new": object.__new__})


def _opening(
    primitive: Primitive, run: Implementation, inner: Backend, sources: Sequence[int], box: str, beside: str, short: str
) -> tuple[list[int], list[str], dict[str, Any]]:
    """The operands that are there in every call; the lines that take arrays apart and run the primitive; names in them.

    Where the inner backend has another way for single numbers, it goes by the first operand. A constant beside one is
    made one: `Tensor` hands over an array without axes, which is faster beside arrays.
    """
    fixed = [i for i, name in enumerate(primitive.operands) if not name.startswith("*")]
    rest = ", *rest" if primitive.variadic else ""
    given = "".join(f"v{i}, " for i in fixed)
    parameters = "**p" if primitive.parameters else ""
    scope: dict[str, Any] = {"run": run, "shape": shape_of, "dtype": inner.dtype_of}
    run_name, numbers = "run", inner.numbers(primitive)
    if numbers is not None:
        scope |= {"Number": numbers.number_type, "N": numbers, "fast": numbers[primitive]}
        run_name = "(fast if v0.__class__ is Number else run)"
    lines = [f"def lifted({given}/{rest}{', ' + parameters if parameters else ''}):".replace(", /, *", ", *")]
    for i in fixed:
        lines += [f"    if v{i}.__class__ is {box}:"]
        lines += [f"        {short}{i} = v{i}.{beside}"] if i in sources else []
        lines += [f"        v{i} = v{i}.value"]
        lines += ["    else:", f"        {short}{i} = None"] if i in sources else []
        if numbers is not None and len(fixed) == 2 and i in sources:
            one = f"v1.__class__ is {box} and v1.value.__class__ is Number" if i == 0 else "v0.__class__ is Number"
            lines += [f"        if {one}:", f"            v{i} = Number(v{i})"]
    if rest:
        lines += ["    if rest:", f"        rest = [r.value if r.__class__ is {box} else r for r in rest]"]
    lines += [f"    out = {run_name}({given}{rest[2:]}{', ' if rest else ''}{parameters})"]
    return fixed, lines, scope


def _at_hand(saved: str, fixed: Sequence[int]) -> str:
    """What `saved_source` wrote, of the operands by their own names."""
    for i in fixed:
        saved = saved.replace(f"kept[{i}]", f"v{i}").replace(f"v[{i}]", f"v{i}")
    return saved.replace(f"kept[{len(fixed)}:]", "tuple(rest)").replace(f"v[{len(fixed)}:]", "rest")


def _made(lines: Sequence[str], scope: dict[str, Any]) -> Implementation:
    exec(_compiled("\n".join(lines), "exec"), scope)
    return scope.pop("lifted")  # type: ignore[no-any-return]  # left there, the two would be a cycle


def _name(choice: tuple[int, ...]) -> str:
    return "vjp" + "".join(map(str, choice))
