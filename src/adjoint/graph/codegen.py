"""Functions written out as source: what runs at every primitive, without a loop or a call beyond the work.

As with named tuples, a function is made from source, once per primitive and choice of tracked operands. Closures
need one call more, of what picks the values to keep: a chain of elementwise primitives is a tenth slower with them.
The names of a rule's parameters say what it needs, and here they become an expression that picks just that.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from adjoint.backend import Backend, Implementation
from adjoint.graph.nodes import Joint, Node, Var, freed
from adjoint.graph.nodes import numbers as numbers_of_nodes
from adjoint.primitives import ELEMENTWISE, TABLE, Primitive, Shape
from adjoint.rules import RECORDS
from adjoint.rules.records import Rule, names_of
from adjoint.rules.shape import unbroadcast

if TYPE_CHECKING:
    from adjoint.graph.vjp import VJP

Pull = Callable[[Any, Any, Any], Any]
Spreading = Callable[[], Callable[..., None]]


@functools.lru_cache(2048)  # of many primitives it is the same source
def _compiled(source: str, mode: str) -> CodeType:
    """Source as code of this one line, which NumPy's warnings show: of what they tell, ad.Checked names the user's."""
    return _at_line(compile(source, __file__, mode), sys._getframe().f_lineno - 1)


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
    rules: Sequence[Rule], needs: Sequence[Sequence[str]], primitive: Primitive, inner: Backend
) -> tuple[Pull, Spreading, tuple[Pull, Spreading] | None]:
    """A function that gives what each rule does of its part of what was saved, and what makes `VJP.spread` of it.

    Then both for operands that are one. The function is written out as a lambda expression. Of `multiply` it is

        lambda B, g, s: ((g * s[0]), (g * s[1]), ) if g.__class__ is Number and B is leaf
            else (B.multiply(g, s[0]), B.multiply(g, s[1]), )

    and where a rule has no expression, it is called: `r0(B, g, s[0])`. Of x * x, where both give the same, one is
    computed: `((c := (g * s[0])), c, )`. There is no such function where rules differ, or hardly compute. Where the
    backend below records, rules of several primitives are single functions there: `one_r0(g, s[0])`.
    """
    scope: dict[str, Any] = {f"r{i}": rule for i, rule in enumerate(rules)}
    parts, start = [], 0
    for i, (rule, names) in enumerate(zip(rules, needs, strict=True)):
        places = [f"s[{k}]" for k in range(start, start + len(names))]
        parts.append((f"r{i}", term_of(rule, names, primitive, places, "g"), ", ".join(["g", *places])))
        start += len(names)
    numbers = inner.numbers(primitive)
    if numbers is not None:
        scope |= {"Number": numbers.number_type, "N": numbers, "leaf": inner}

    def made(by_primitives: str, by_numbers: str, recorded: str) -> Pull:
        source = f"({by_primitives})"
        if numbers is not None and start:  # others hardly compute
            source = f"({by_numbers}) if g.__class__ is Number and B is leaf else {source}"
        if recorded != by_primitives:
            scope["below"] = inner
            source = f"({recorded}) if B is below else {source}"
        return eval(_compiled(f"lambda B, g, s: {source}", "eval"), scope)  # type: ignore[no-any-return]

    below = _recorded(parts, primitive, inner, scope)
    every = _applied(parts, "B"), _applied(parts, "N", True), _applied(below, "B")
    of_numbers = [_applied([part], "N", True)[:-2] for part in parts] if numbers is not None else []
    found = [(_applied([part], "B")[:-2], part[1] is None) for part in below]
    spreads = functools.partial(spreading, of_numbers, found, scope, inner)
    if start != 2 or not _mirrored(parts, "s[0]", "s[1]"):
        return made(*every), spreads, None
    once, by_numbers = (f"(c := {_applied(parts[:1], place, place == 'N')[:-2]}), c, " for place in "BN")
    [double] = _recorded([_twice(parts[0])], primitive, inner, scope)
    shared = once, by_numbers, once if double[1].operands else _applied([double], "B") + "None, "
    # a hook may have given one of the two other values
    both = [f"({x}) if s[0] is s[1] else ({y})" for x, y in zip(shared, every, strict=True)]
    return (
        made(*every),
        spreads,
        (made(*both), functools.partial(spreading, of_numbers, found, scope, inner, both[2])),
    )


def spreading(
    of_numbers: Sequence[str],
    of_arrays: Sequence[tuple[str, bool]],
    scope: Mapping[str, Any],
    below: Backend,
    together: str = "",
) -> Callable[..., None]:
    """What takes the cotangent of a node from those found and adds to them what the rules make of it.

    It has the sources of what each rule gives, of single numbers, if there are, and of arrays, which may be None; or
    all of arrays `together`. Of `negative` it is

        def spread(node, found, owned, keep):
            g, first, second, s = found.pop(node, None), node.first, node.second, node.saved
            if not keep:
                node.saved = node.first = node.second = None
            if g is None:
                return
            if s is None:
                raise freed(node, "another thread's backward meanwhile")
            if g.__class__ is Number:
                c = (-g)
                found[first] = found[first] + c if first in found else c
                return
            c0 = B.negative(g)
            g = s = None
            if c0.shape != first.shape:
                c0 = unbroadcast(B, c0, tuple(first.shape))
            if first not in found:
                found[first] = c0
            elif first in owned:
                found[first] = B.add_into(found[first], c0)
            else:
                found[first] = B.add(found[first], c0)
                owned.update((first,))
    """
    count = len(of_arrays)
    parents = ["first", "second"][:count] if count <= 2 else ["first", *[f"n{i}" for i in range(1, count)]]
    lines = [
        "def spread(node, found, owned, keep):",
        # what was saved after the parents: a pass that uses up the graph takes it away before them
        "    g, first, second, s = found.pop(node, None), node.first, node.second, node.saved",
        "    if not keep:",
        "        node.saved = node.first = node.second = None",
        "    if g is None:",
        "        return",
        "    if s is None:",
        '        raise freed(node, "another thread\'s backward meanwhile")',
        *[f"    {', '.join(parents[1:])}, = second"] * (count > 2),
    ]
    if of_numbers:
        lines += ["    if g.__class__ is Number:"]
        for parent, source in zip(parents, of_numbers, strict=True):
            lines += [
                f"        c = {source}",
                f"        found[{parent}] = found[{parent}] + c if {parent} in found else c",
            ]
        lines += ["        return"]
    if together:
        lines += [f"    {', '.join([f'c{i}' for i in range(count)])} = {together}"]
    else:
        lines += [f"    c{i} = {source}" for i, (source, _) in enumerate(of_arrays)]
    lines += ["    g = s = None"]
    for i, (parent, (_, may_be_none)) in enumerate(zip(parents, of_arrays, strict=True)):
        adding = [
            f"if c{i}.shape != {parent}.shape:",
            f"    c{i} = unbroadcast(B, c{i}, tuple({parent}.shape))",
            f"if {parent} not in found:",
            f"    found[{parent}] = c{i}",
            f"elif {parent} in owned:",
            f"    found[{parent}] = B.add_into(found[{parent}], c{i})",
            "else:",
            f"    found[{parent}] = B.add(found[{parent}], c{i})",
            f"    owned.update(({parent},))",
        ]
        if may_be_none or together:
            adding = [f"if c{i} is not None:", *[f"    {line}" for line in adding]]
        lines += [f"    {line}" for line in adding]
    return _made(lines, {**scope, "B": below, "freed": freed, "unbroadcast": unbroadcast})


def _recorded(
    parts: Sequence[tuple[str, Any, str]], primitive: Primitive, inner: Backend, scope: dict[str, Any]
) -> list[tuple[str, Any, str]]:
    """The rules, of which a backend that records has some as one function, each then in the scope."""
    found = []
    for rule, term, given in parts:
        run, g = None, given.partition(",")[0]
        others = sorted(_named(term) - {g})
        if others and any([type(x) is Term and x.operands for x in term.operands or ()]):  # several primitives
            run = inner.recorded(term, g, primitive)
        if run is None:
            found.append((rule, term, given))
        else:
            scope[f"one_{rule}"] = run
            found.append((rule, Term(f"one_{rule}({', '.join([g, *others])})"), given))
    return found


def _mirrored(parts: Sequence[tuple[str, Any, str]], one: str, other: str) -> bool:
    """Whether two rules are one expression, of one operand and of the other."""
    if len(parts) != 2 or any([type(term) is not Term for _, term, _ in parts]):
        return False
    left, right = [written(term, "B") for _, term, _ in parts]
    return one in left and right.replace(other, one) == left


def _twice(part: tuple[str, Any, str]) -> tuple[str, Any, str]:
    """A rule, and its result added to itself."""
    rule, term, given = part
    return f"{rule}_twice", Term(_SUM, (term, term)), given


def _applied(parts: Sequence[tuple[str, Any, str]], place: str, numbers: bool = False) -> str:
    """What rules compute on a backend: their expressions, or calls of them with these arguments."""
    return "".join(
        [
            (f"{rule}({place}, {given})" if term is None else written(term, place, numbers)) + ", "
            for rule, term, given in parts
        ]
    )


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
                first = n1
                var.node = node = Node()
                node.vjp, node.saved, node.second = vjp1, (v0,), None
            ...
            node.first = first
            node.number = next(number)
            ...
            return var
    """
    sources = sorted({i for choice in vjps for i in choice})
    fixed, lines, scope = _opening(primitive, run, inner, sources, "Var", "node", "n")
    lines += [*_run(primitive, fixed, scope), "    var = Var()", "    var.value = out"]

    def branch(choice: tuple[int, ...], indent: str) -> list[str]:
        first, second = [*[f"n{i}" for i in choice], "None"][:2]
        saved = _at_hand(vjps[choice].saved, fixed)
        lines = [f"first = {first}", "var.node = node = Node()"]
        vjp = _name(choice)
        if vjps[choice].of_one is not None:
            vjp += f" if v0 is not v1 or n0 is not n1 else {vjp}.of_one"
        lines += [f"node.vjp = {vjp}", f"node.saved = {saved}", f"node.second = {second}"]
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
    lines += ["    node.first = first", "    node.number = next(number)", "    node.visit = 0"]
    lines += ["    if out.__class__ is Number:", "        node.shape = ()", "        return var"] * ("Number" in scope)
    lines += ["    sizes = out.shape"]
    lines += ["    node.shape = first.shape if sizes == first.shape else sizes"]  # a tuple that is there already
    lines += ["    return var"]
    scope |= {"Var": Var, "Node": Node, "number": numbers_of_nodes}
    scope |= {_name(choice): vjp for choice, vjp in vjps.items()}
    return _made(lines, scope)


def recorded(
    term: Any,
    g: str,
    level: Any,
    inner: Backend,
    vjp_of: Callable[..., VJP],
) -> Implementation | None:
    """The expression of a rule, of single numbers as one node; of anything else, primitive by primitive.

    All have nodes, but for `g`, which comes first and may be a constant. `vjp_of` makes a VJP of its parts.
    For g * 0.5 / out, the derivative of the square root, it is

        def lifted(v0, v1, /):
            if v0.__class__ is Var and v1.__class__ is Var:
                x0, x1, n0, n1 = v0.value, v1.value, v0.node, v1.node
                if x0.__class__ is Number and x1.__class__ is Number and n1 is not None:
                    var = Var()
                    var.value = ((x0 * 0.5) / x1)
                    if n0 is not None:
                        var.node = node = Node()
                        node.vjp, node.first, node.second = vjp01, n0, n1
                    else:
                        var.node = node = Node()
                        node.vjp, node.first, node.second = vjp1, n1, None
                    node.saved = (x0, x1, )
                    ...
                    return var
            return B.divide(B.multiply(v0, 0.5), v1)
    """
    names = [g, *sorted(_named(term) - {g})]
    places = tuple(range(len(names)))
    cotangents: dict[str, Any] = {}
    try:
        _pull_back(_renamed(term, names, "s[{}]"), Term("g"), cotangents, inner)
    except _NoExpressionError:
        return None
    numbers: Any = inner.numbers(TABLE[term.source])
    scope: dict[str, Any] = {"Number": numbers.number_type, "N": numbers, "leaf": inner}
    vjps: dict[str, Any] = {}

    def branch(tracked: tuple[int, ...]) -> list[str]:
        found = [cotangents[f"s[{i}]"] for i in tracked]
        by_numbers, by_primitives = [[written(x, *how) for x in found] for how in (("N", True), ("B", False))]
        both = [", ".join([*parts, ""]) for parts in (by_numbers, by_primitives)]
        source = f"lambda B, g, s: ({both[0]}) if g.__class__ is Number and B is leaf else ({both[1]})"
        spreads = functools.partial(spreading, by_numbers, [(x, False) for x in by_primitives], scope, inner)
        pull = eval(_compiled(source, "eval"), scope)
        vjps[_name(tracked)] = vjp_of(pull, spreads, [f"x{i}" for i in places], tracked)
        first, *others = [f"n{i}" for i in tracked]
        second = f"({', '.join(others)})" if len(others) > 1 else "".join(others) or "None"
        return [
            f"var.node = node = {'Joint' if len(others) > 1 else 'Node'}()",
            f"node.vjp, node.first, node.second = {_name(tracked)}, {first}, {second}",
        ]

    def each(part: str, of: Sequence[int] = places, between: str = ", ") -> str:
        return between.join([part.format(i) for i in of])

    with_nodes = each("n{} is not None", places[1:], " and ")
    lines = [
        f"def lifted({each('v{}')}, /):",
        f"    if {each('v{}.__class__ is Var', between=' and ')}:",
        f"        {each('x{}')}, {each('n{}')} = {each('v{}.value')}, {each('v{}.node')}",
        f"        if {each('x{}.__class__ is Number', between=' and ')} and {with_nodes}:",
        "            var = Var()",
        f"            var.value = {written(_renamed(term, names, 'x{}'), 'N', True)}",
        "            if n0 is not None:",
        *[" " * 16 + line for line in branch(places)],
        "            else:",
        *[" " * 16 + line for line in branch(places[1:])],
        f"            node.saved = ({each('x{}')}, )",
        "            node.number = next(number)",
        "            node.visit = 0",
        "            node.shape = ()",
        "            return var",
        f"    return {written(_renamed(term, names, 'v{}'), 'B')}",
    ]
    scope = scope | vjps | {"Var": Var, "Node": Node, "Joint": Joint, "number": numbers_of_nodes, "B": level}
    return _made(lines, scope)


def _renamed(term: Any, names: Sequence[str], place: str) -> Any:
    """The term of arrays in other places, which may be written down any number of times."""
    if type(term) is not Term:
        return term
    if term.operands is None:
        return Term(place.format(names.index(term.source)))
    known = {id(x): _renamed(x, names, place) for x in term.operands}  # what is written once stays so
    made = Term(term.source, tuple([known[id(x)] for x in term.operands]))
    made.left = math.inf
    return made


def _pull_back(term: Any, g: Any, found: dict[str, Any], inner: Backend) -> None:
    """Add the cotangents of the arrays of a term to those found, given its own."""
    g.left = math.inf
    if term.operands is None:
        found[term.source] = Term(_SUM, (found[term.source], g)) if term.source in found else g
        return
    primitive = TABLE[term.source]
    if inner.numbers(primitive) is None:
        raise _NoExpressionError
    rules = RECORDS[term.source].rules
    known = {"out": term, **dict(zip(primitive.operands, term.operands, strict=True))}
    for name, x in zip(primitive.operands, term.operands, strict=True):
        if type(x) is Term:
            g_of_x = rules[name](_Primitives(), g, *[known[need] for need in names_of(rules[name], 2)])
            _pull_back(x, g_of_x, found, inner)


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
                tangent = B.multiply(t1, v0)
            ...
            dual.tangent = tangent
            return dual

    Where a rule does not name the other operand, as that of `add`, its tangent is spread to the result's shape.
    """
    sources = sorted(rules)
    fixed, lines, scope = _opening(primitive, run, inner, sources, "Box", "tangent", "t")
    parameters = ", **p" if primitive.parameters else ""
    parts = {}
    narrow = set()  # where a tangent may lack axes that another operand has
    for i, rule in rules.items():
        needs = names_of(rule, 2) if rule is not None else ()
        places = [_at_hand(saved_source(primitive, [need]), fixed)[1:-3] for need in needs]
        term = None if rule is None else term_of(rule, needs, primitive, places, f"t{i}")
        [parts[i]] = _recorded([(f"r{i}", term, ", ".join([f"t{i}", *places]))], primitive, inner, scope)
        named = _named(term)
        if "out" not in named and not named.issuperset([f"v{k}" for k in fixed if k != i]):
            narrow.add(i)

    def ending(place: str, plus: str, numbers: bool, indent: str) -> list[str]:
        """The lines that push the tangents."""
        pushed = {i: _applied([part], place, numbers)[:-2] for i, part in parts.items()}
        pushed |= {i: f"run(t{i}{parameters})" for i, rule in rules.items() if rule is None}

        def pushing(i: int) -> list[str]:
            widened = ["if tangent.shape != out.shape:", "    tangent = spread(tangent, shape=tuple(out.shape))"]
            return [f"tangent = {pushed[i]}", *widened * (i in narrow and not numbers)]

        lines = ["dual = new(Box)", "dual.value = out"]
        constant = ["dual.tangent = None", "return dual"]
        first, second = f"t{sources[0]}", f"t{sources[-1]}"
        if len(sources) == 1:
            lines += [f"if {first} is None:", *[f"    {line}" for line in constant]]
            lines += pushing(sources[0])
        else:
            lines += [f"if {first} is None:", f"    if {second} is None:", *[f"        {line}" for line in constant]]
            lines += [f"    {line}" for line in pushing(sources[1])]
            lines += [f"elif {second} is None:", *[f"    {line}" for line in pushing(sources[0])]]
            left, right = pushed[sources[0]], pushed[sources[1]]
            same = sources == [0, 1] and "(" in left and right.replace("t1", "t0").replace("v0", "v1") == left
            if same and not numbers:  # as of x * x
                twice = _recorded([_twice(parts[0])], primitive, inner, scope)
                lines += ["elif t0 is t1 and v0 is v1:", f"    tangent = {_applied(twice, place)[:-2]}"]
            lines += ["else:", f"    tangent = {plus.format(left, right)}"]
        return [indent + line for line in [*lines, "dual.tangent = tangent", "return dual"]]

    if "N" in scope:
        lines += [f"    if {_are_numbers(fixed)}:", f"        out = {_of_numbers(primitive, fixed)}"]
        lines += ending("N", "{} + {}", True, " " * 8)
    lines += [f"    out = {_called('run', primitive, fixed)}", *ending("B", "plus({}, {})", False, " " * 4)]
    scope |= {"Box": box, "new": object.__new__, "B": inner, "spread": inner.broadcast_to, "plus": inner.add}
    scope |= {f"r{i}": rule for i, rule in rules.items()}
    return _made(lines, scope)


def constant(primitive: Primitive, run: Implementation, inner: Backend, box: type, beside: str) -> Implementation:
    """An elementwise primitive without derivatives: a `box` with its value, and with None `beside` it."""
    fixed, lines, scope = _opening(primitive, run, inner, range(len(primitive.operands)), "Box", beside, "n")
    lines += _run(primitive, fixed, scope)
    lines += ["    made = new(Box)", "    made.value = out", f"    made.{beside} = None", "    return made"]
    return _made(lines, scope | {"Box": box, "new": object.__new__})


def _opening(
    primitive: Primitive, run: Implementation, inner: Backend, sources: Sequence[int], box: str, beside: str, short: str
) -> tuple[list[int], list[str], dict[str, Any]]:
    """The operands that are there in every call; the lines that take arrays apart; names in them.

    Where the inner backend has another way for single numbers, a constant beside one is made one: `Tensor` hands over
    an array without axes, which is faster beside arrays.
    """
    fixed = [i for i, name in enumerate(primitive.operands) if not name.startswith("*")]
    scope: dict[str, Any] = {"run": run, "shape": shape_of, "dtype": inner.dtype_of}
    numbers = inner.numbers(primitive)
    if numbers is not None:
        scope |= {"Number": numbers.number_type, "N": numbers}
    given = [*[f"v{i}" for i in fixed], "*rest" if primitive.variadic else "/", *["**p"] * bool(primitive.parameters)]
    lines = [f"def lifted({', '.join(given)}):"]
    for i in fixed:
        lines += [f"    if v{i}.__class__ is {box}:"]
        lines += [f"        {short}{i} = v{i}.{beside}"] if i in sources else []
        lines += [f"        v{i} = v{i}.value"]
        lines += ["    else:", f"        {short}{i} = None"] if i in sources else []
        if numbers is not None and len(fixed) == 2 and i in sources:
            one = f"v1.__class__ is {box} and v1.value.__class__ is Number" if i == 0 else "v0.__class__ is Number"
            lines += [f"        if {one}:", f"            v{i} = v{i}[()] if hasattr(v{i}, 'shape') else Number(v{i})"]
    if primitive.variadic:
        lines += ["    if rest:", f"        rest = [r.value if r.__class__ is {box} else r for r in rest]"]
    return fixed, lines, scope


def _run(primitive: Primitive, fixed: Sequence[int], scope: Mapping[str, Any]) -> list[str]:
    """The line that runs the primitive, of numbers in their own way."""
    out = _called("run", primitive, fixed)
    if "N" in scope:
        out = f"{_of_numbers(primitive, fixed)} if {_are_numbers(fixed)} else {out}"
    return [f"    out = {out}"]


def _called(run: str, primitive: Primitive, fixed: Sequence[int]) -> str:
    given = [f"v{i}" for i in fixed] + ["*rest"] * primitive.variadic + ["**p"] * bool(primitive.parameters)
    return f"{run}({', '.join(given)})"


def _are_numbers(fixed: Sequence[int]) -> str:
    return " and ".join([f"v{i}.__class__ is Number" for i in fixed])


def _of_numbers(primitive: Primitive, fixed: Sequence[int]) -> str:
    return written(Term(primitive.name, tuple([Term(f"v{i}") for i in fixed])), "N", True)


def _at_hand(saved: str, fixed: Sequence[int]) -> str:
    """What `saved_source` wrote, of the operands by their own names."""
    for i in fixed:
        saved = saved.replace(f"kept[{i}]", f"v{i}").replace(f"v[{i}]", f"v{i}")
    return saved.replace(f"kept[{len(fixed)}:]", "tuple(rest)").replace(f"v[{len(fixed)}:]", "rest")


def _made(lines: Sequence[str], scope: dict[str, Any]) -> Implementation:
    exec(_compiled("\n".join(lines), "exec"), scope)
    name = lines[0].removeprefix("def ").partition("(")[0]
    return scope.pop(name)  # type: ignore[no-any-return]  # left there, the two would be a cycle


def _name(choice: tuple[int, ...]) -> str:
    return "vjp" + "".join(map(str, choice))


# --- rules as expressions: what a rule calls, found by calling it once with terms in place of arrays ---
# One that does more with arrays than hand them to elementwise primitives has no expression, and is called.

# Python's operators as the primitives' declarations name them: of numbers that are their own backend
SIGNS = "add + sub - mul * truediv / lt < le <= gt > ge >= eq == ne != neg -"
OPERATORS: dict[str, str] = dict(zip(SIGNS.split()[::2], SIGNS.split()[1::2], strict=True))
_SUM = next(name for name, p in TABLE.items() if len(p.operands) == 2 and OPERATORS.get(p.operator) == "+")


class _NoExpressionError(Exception):
    """A rule does something else."""


def _refuse(*_: Any) -> Any:
    raise _NoExpressionError


class Term:
    """Stands for an array: an operand by its name in the source, or a primitive of other terms and numbers."""

    __slots__ = ("left", "operands", "source")

    def __init__(self, source: str, operands: tuple[Any, ...] | None = None) -> None:
        self.source = source  # a primitive's name, where there are operands
        self.operands = operands
        self.left: float = math.inf if operands is None else 1  # how often it may be written down: not computed twice

    __class__: Any = property(_refuse)  # pyright: ignore[reportIncompatibleMethodOverride]  # what isinstance asks for
    __bool__ = __eq__ = __ne__ = __len__ = __iter__ = __getattr__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class _Primitives:
    """Stands for the backend."""

    def __getattr__(self, name: str) -> Callable[..., Term]:
        primitive = TABLE.get(name)
        if primitive is None or primitive.kind is not ELEMENTWISE or primitive.variadic or primitive.parameters:
            raise _NoExpressionError

        def term(*operands: Any) -> Term:
            for x in operands:
                if type(x) is Term:
                    x.left -= 1
                    if x.left < 0:
                        raise _NoExpressionError
                elif type(x) not in (int, float) or not math.isfinite(x):
                    raise _NoExpressionError
            return Term(name, operands)

        return term


def term_of(rule: Rule, needs: Sequence[str], primitive: Primitive, places: Sequence[str], g: str) -> Any:
    """What one of our rules computes, if it is an expression: its needs have these places in the source."""
    arrays = {*primitive.operands, "out"}
    ours = str(getattr(rule, "__module__", None)).startswith("adjoint.rules.")
    if not ours or not arrays.issuperset(needs):
        return None  # a user's may do anything when it is called
    try:
        found = rule(_Primitives(), Term(g), *map(Term, places))
    except Exception:  # of whatever a rule does with a term
        return None
    return found if type(found) is Term else None


def _named(term: Any) -> set[str]:
    """The arrays that a term names, elementwise: its shape is that of all of them together."""
    if type(term) is not Term:
        return set()
    return {term.source} if term.operands is None else set().union(*map(_named, term.operands))


def written(term: Any, backend: str, numbers: bool = False) -> str:
    """The source of a term: calls of the backend, which of `numbers` are operators where Python has them."""
    if type(term) is not Term:
        return repr(term)
    if term.operands is None:
        return term.source
    parts = [written(x, backend, numbers) for x in term.operands]
    if len(parts) == 2 and term.operands[0] is term.operands[1] and type(term.operands[0]) is Term and "(" in parts[0]:
        parts = [f"(c := {parts[0]})", "c"]
    if numbers and (sign := OPERATORS.get(TABLE[term.source].operator)):
        return f"({sign}{parts[0]})" if len(parts) == 1 else f"({parts[0]} {sign} {parts[1]})"
    return f"{backend}.{term.source}({', '.join(parts)})"
