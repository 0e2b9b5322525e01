"""What a product's tiles compute before they are written: cheap equations of the first kernel that reads the product.

So a bias is added, negative numbers are made zero and a parameter is moved along its gradient while the product is in
registers, and what only these equations read is never written. Their results are those of a kernel, bit by bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native.elementary import CALLED, EXACT
from adjoint.compiler.native.elements import BOOL, EMITTERS, constant
from adjoint.compiler.native.gemm import has_parts
from adjoint.compiler.native.kernels import Host, Kernel, Product, Step, squashed
from adjoint.compiler.native.views import Layout, contiguous, merged
from adjoint.compiler.sizes import has_sizes, is_size

if TYPE_CHECKING:
    from adjoint.compiler.native.plan import Plan

_EQUATIONS = 12  # that a tile computes
_ARRAYS = 6  # that it reads and writes
_LONG = frozenset({*CALLED, *EXACT, "raise_to"})  # functions that need the registers themselves


def join(plan: Plan) -> None:
    """Have products compute what follows from them, and leave out kernels of which nothing is left."""
    for place, step in enumerate(plan.steps):
        if isinstance(step, Product) and step.way == "tiles":
            reader = _first_reader(plan, step.out, place)
            if reader is not None:
                _Followed(plan, step, place, *reader).move()
    stays = [not isinstance(step, Kernel) or bool(step.equations) for step in plan.steps]
    if all(stays):
        return
    new = [sum(stays[:i]) for i in range(len(stays))]
    plan.steps = [step for step, goes_on in zip(plan.steps, stays, strict=True) if goes_on]
    plan.place = {x: i if i < 0 else new[i] for x, i in plan.place.items()}
    plan.parts = {x: [new[i] for i in steps] for x, steps in plan.parts.items()}


def _first_reader(plan: Plan, out: Value, place: int) -> tuple[Kernel, int] | None:
    """The kernel that reads a product first, and its place, if it runs over as many numbers."""
    for i in range(place + 1, len(plan.steps)):
        step = plan.steps[i]
        if _reads(plan, step, out):
            shape = squashed(out.shape)
            if isinstance(step, Kernel) and len(step.domain) == len(shape) and step.domain == shape:
                return step, i
            return None
    return None


def _reads(plan: Plan, step: Step, array: Value) -> bool:
    read = step.equation.reads() if isinstance(step, Host) else step.read
    return any(plan.root.get(x, x) is array for x in read)


def _values(e: Equation) -> list[Any]:
    return [x for x in e.operands if x.__class__ is Value and constant(x) is None]


class _Followed:
    """A product and the kernel that reads it first."""

    def __init__(self, plan: Plan, product: Product, place: int, kernel: Kernel, after: int) -> None:
        self.plan, self.product, self.place, self.kernel, self.after = plan, product, place, kernel, after
        out = product.out
        axes = iter(range(len(kernel.domain)))
        self.natural = kernel.strides(contiguous(out.shape), [None if n == 1 else next(axes) for n in out.shape])
        self.may: dict[Any, Equation] = {}  # what tiles may compute
        self.follows: set[Any] = set()  # ... of which this follows from the product
        self.beside: dict[Any, Layout] = {}  # what they may read, with the axes of the product
        for e in kernel.equations:
            self._try(e)

    def _root(self, x: Any) -> Any:
        return self.plan.root.get(x, x)

    def _is_product(self, x: Any) -> bool:
        return x in self.kernel.read and self._root(x) is self.product.out

    def _try(self, e: Equation) -> None:
        made: Any = e.results[0]
        kernel, dtype = self.kernel, self.product.out.dtype
        if e.name not in EMITTERS or e.name in _LONG or kernel.kind[made] != "full":
            return
        if has_sizes(e.operands) or has_sizes(e.parameters):  # which are not at hand in a tile
            return
        if made in kernel.target or made in self.plan.memory or (made in kernel.stored and made.dtype != dtype):
            return
        values = _values(e)
        if all(x.dtype in (dtype, BOOL) for x in (made, *values)) and all(map(self._is_there, values)):
            self.may[made] = e
            if any(self._is_product(x) or self._root(x) in self.follows for x in values):
                self.follows.add(made)

    def _is_there(self, x: Any) -> bool:
        """Whether a tile can have an operand: what lies in memory has its columns one after the other, or one alone."""
        if x not in self.kernel.read:
            return self._root(x) in self.may
        (_, offset, _), strides, is_full = self.kernel.read[x]
        if self._is_product(x):
            return offset == 0 and strides == self.natural
        shape, left = self.product.out.shape, iter(strides)
        there = Layout(shape, offset, tuple([0 if n == 1 else next(left) for n in shape]))
        lies = (
            not is_size(there.strides[-2]) or there.strides == contiguous(shape).strides
        )  # else a tile is not told how
        if not is_full or not lies or x.dtype != self.product.out.dtype or there.strides[-1] not in (0, 1):
            return False
        self.beside[x] = there
        return self.plan.place.get(self._root(x), -1) < self.place and (
            len(shape) == 2 or len(merged(list(shape[:-1]), list(there.strides[:-1]))) == 1
        )

    def move(self) -> None:
        """Have tiles compute what they can, if the kernel has less to read then."""
        kernel, product, wanted = self.kernel, self.product, set(self.follows)
        for made, e in reversed(self.may.items()):
            if made in wanted:
                wanted.update(self._root(x) for x in _values(e) if x not in kernel.read)
        moved = [e for made, e in self.may.items() if made in wanted]
        rest = [e for e in kernel.equations if e.results[0] not in wanted]
        stored = [x for x in kernel.stored if x in wanted]
        left = dict.fromkeys(x for e in rest for x in _values(e))
        handed = [x for x in left if x not in kernel.read and self._root(x) in wanted]
        if not stored or not {self._root(x) for x in handed} <= set(stored) or len(moved) > _EQUATIONS:
            return
        if any(map(self._is_product, left)) or self._is_read_later():
            stored.append(product.out)
        beside = {x: self.beside[x] for e in moved for x in _values(e) if x in self.beside}
        if len(stored) + len(beside) > _ARRAYS or any(map(self._waits, beside)):
            return
        product.have_follow(moved, stored, beside, {x: self._root(x) for e in moved for x in _values(e)})
        for x in handed:
            layout, axes = self.plan.layout.get(x) or contiguous(x.shape), self.plan.axes_in(kernel, x)
            is_full = sum(a is not None for a in axes or ()) == len(kernel.domain)
            kernel.read[x] = layout, kernel.strides(layout, axes or ()), is_full
        kernel.equations = rest
        kernel.read = {x: how for x, how in kernel.read.items() if x in left}
        for x in wanted:
            self.plan.place[x] = self.place
            del kernel.kind[x], kernel.axes[x]
            kernel.stored.pop(x, None)

    def _is_read_later(self) -> bool:
        """Whether others than this kernel read the product as it is."""
        plan, out = self.plan, self.product.out
        steps = [step for step in plan.steps[self.after + 1 :] if _reads(plan, step, out)]
        hosts = [step for step in plan.steps[: self.after] if _reads(plan, step, out)]
        return bool(steps or hosts) or any(self._root(x) is out for x in plan.graph.outputs)

    def _waits(self, x: Any) -> bool:
        """Whether a donated argument is written over by the kernel, and cannot be by tiles: it is read between, or the
        sum has parts, which lie where the result will.
        """
        root, product = self._root(x), self.product
        if root not in self.plan.donated:
            return False
        between = self.plan.steps[self.place + 1 : self.after]
        parts = has_parts(product.x, product.y)
        return parts or any(_reads(self.plan, step, root) for step in between)
