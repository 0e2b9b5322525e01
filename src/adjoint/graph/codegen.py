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
from adjoint.rules.records import Rule

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


def make_vjp(rules: Sequence[Rule], counts: Sequence[int]) -> Callable[[Any, Any, Any], Any]:
    """A function that calls each rule with its part of what was saved.

    Written out as a lambda expression: `lambda B, g, s: (r0(B, g, s[0]), r1(B, g, s[1], s[2]), )`.
    """
    calls, start = [], 0
    for i, count in enumerate(counts):
        calls.append(f"r{i}(B, g{''.join(f', s[{k}]' for k in range(start, start + count))}), ")
        start += count
    scope = {f"r{i}": rule for i, rule in enumerate(rules)}
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
    fixed = [i for i, name in enumerate(primitive.operands) if not name.startswith("*")]
    rest = ", *rest" if primitive.variadic else ""
    given = "".join(f"v{i}, " for i in fixed)
    lines = [f"def lifted({given}/{rest}{', **p' if primitive.parameters else ''}):".replace(", /, *", ", *")]
    for i in fixed:
        lines += [f"    if v{i}.__class__ is Var:"]
        lines += [f"        n{i} = v{i}.node"] if i in sources else []
        lines += [f"        v{i} = v{i}.value"]
        lines += ["    else:", f"        n{i} = None"] if i in sources else []
    if rest:
        lines += ["    if rest:", "        rest = [r.value if r.__class__ is Var else r for r in rest]"]
    lines += [f"    out = run({given}{rest[2:]}{', ' if rest else ''}{'**p' if primitive.parameters else ''})"]
    lines += ["    var = Var()", "    var.value = out"]

    def branch(choice: tuple[int, ...], indent: str) -> list[str]:
        first, second = [*[f"n{i}" for i in choice], "None"][:2]
        saved = vjps[choice].saved
        for i in fixed:
            saved = saved.replace(f"kept[{i}]", f"v{i}").replace(f"v[{i}]", f"v{i}")
        saved = saved.replace(f"kept[{len(fixed)}:]", "tuple(rest)").replace(f"v[{len(fixed)}:]", "rest")
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
    scope: dict[str, Any] = {"Var": Var, "Node": Node, "number": numbers, "run": run}
    scope |= {"shape": shape_of, "dtype": inner.dtype_of, **{_name(choice): vjp for choice, vjp in vjps.items()}}
    exec(_compiled("\n".join(lines), "exec"), scope)
    return scope.pop("lifted")  # type: ignore[no-any-return]  # left there, the two would be a cycle


def _name(choice: tuple[int, ...]) -> str:
    return "vjp" + "".join(map(str, choice))
