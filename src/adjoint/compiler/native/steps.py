"""A graph for replay in which kernels that follow each other are one equation, `native`."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol, TypeVar

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native.entry import Region, regions
from adjoint.compiler.native.kernels import Host
from adjoint.compiler.native.lowering import lowered
from adjoint.compiler.native.plan import Plan


class _Region(Protocol):
    inputs: list[Value]
    outputs: list[Any]


AnyRegion = TypeVar("AnyRegion", bound=_Region)


def with_regions(
    graph: Graph, name: Callable[[], str], donated: Container[Any] = (), checks: bool = True, apart: bool = False
) -> tuple[Graph, list[Region]]:
    """The graph with equations `native` in the place of others. Views are made where Python reads them.

    `checks` says that machine code may check values, and the graph be run again where these are not as they should be.
    `apart` makes an equation of each kernel, so that each can be timed.
    """
    plan = Plan(lowered(graph, checks), checks=checks, donated=donated)
    made, found = joined(plan, "native", lambda wanted: regions(plan, wanted, name, donated, apart), apart)
    return made, list(found.values())


def joined(
    plan: Plan, equation: str, regions: Callable[[set[Any]], Mapping[int, AnyRegion]], apart: bool = False
) -> tuple[Graph, Mapping[int, AnyRegion]]:
    """The graph of a plan with an equation of this name for each region; `regions` are told what has to be at hand."""
    graph = plan.graph
    region_of = _numbered(plan, apart)
    wanted: set[Any] = set()  # what Python has to have
    for i, step in enumerate(plan.steps):
        if isinstance(step, Host):
            wanted.update(plan.root.get(x, x) for x in step.equation.reads())
        else:
            roots = {plan.root.get(x, x) for x in step.read}
            wanted.update(x for x in roots if region_of.get(plan.place.get(x, -1)) != region_of[i])
    wanted.update(plan.root.get(x, x) for x in graph.outputs)
    wanted.update(x for x, steps in plan.parts.items() if len({region_of[i] for i in steps}) > 1)
    found = regions(wanted)
    equations: list[Equation] = []
    made: set[Any] = set()
    written: set[Any] = set()

    def bring(x: Any) -> None:
        """Have a view at hand."""
        chain = []
        while x in plan.source and x not in made:
            made.add(x)
            e, x = plan.source[x]
            chain.append(e)
        equations.extend(reversed(chain))

    for i, step in enumerate(plan.steps):
        if isinstance(step, Host):
            for x in step.equation.reads():
                bring(x)
            equations.append(step.equation)
        elif i in found:
            region = found[i]
            begun = [x for x in region.outputs if x in written]  # of which another region has written parts
            new = [x for x in region.outputs if x not in written]
            written.update(new)
            equations.append(Equation(equation, [*region.inputs, *begun], {"region": region}, new))
    for x in graph.outputs:
        bring(x)
    return Graph(graph.inputs, equations, graph.outputs), found


def _numbered(plan: Plan, apart: bool) -> dict[int, int]:
    """The region of each step that is a kernel, as the number of its first step."""
    found: dict[int, int] = {}
    for i, step in enumerate(plan.steps):
        if not isinstance(step, Host):
            found[i] = i if apart else found.get(i - 1, i)
    return found
