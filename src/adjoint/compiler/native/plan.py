"""What of a graph can be one loop.

Equations are taken in order. Each joins the first kernel that stands after what it reads and runs over the same axes,
or begins a new one; what has no machine code is a step of its own, run by Python. A kernel runs over all axes of its
domain: the last ones are columns, over which vectors run, and those before them are rows. A value of a kernel is
`full`, of the domain's shape; or it belongs to a `row`, as the sum over the columns does, and full values that follow
from it are computed in the next pass over the same row; or it is `late`, known when the kernel has run, as sums over
rows are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native import assignments, filters, following, images, orders
from adjoint.compiler.native.elements import computable, constant, supported
from adjoint.compiler.native.gemm import is_vector, pays, serves_any
from adjoint.compiler.native.kernels import (
    MOVED,
    REDUCTIONS,
    Check,
    Choice,
    Host,
    Kernel,
    Loop,
    Product,
    Step,
    While,
    bytes_of,
    is_one,
    is_row,
    squashed,
)
from adjoint.compiler.native.lowering import lowered
from adjoint.compiler.native.machine import integer_bits
from adjoint.compiler.native.symbolic import Written, sizes_in, sizes_of
from adjoint.compiler.native.units import take_units
from adjoint.compiler.native.views import Layout, contiguous, is_view, lies_across, picked, transposed, view
from adjoint.compiler.sizes import is_size
from adjoint.primitives import broadcast_shapes
from adjoint.primitives.sizes import as_recorded

_LOOPS = {"branch", "scan", "while"}
_PLACES = {"index", "index_add", "index_max", "index_min", "index_multiply", "index_set", "take_along_axis"}
_IMAGES = {"conv", "conv_input", "conv_weight", "max_pool", "max_pool_pullback", "window_spread", "window_sum"}
_WHOLE = {"arange", "check", "concat", "matmul", "real"}
_ANY_SIZE = REDUCTIONS | _IMAGES | _LOOPS | _PLACES | _WHOLE  # beside elementwise ones, what sizes may be symbols of
_AS_ONE_ROW = 1 << 13  # elements: an array that is reduced wholly is one row up to here
_EQUATIONS = 4000  # of one kernel: what it keeps goes to the stack, a vector each
_LOOK_BACK = 24  # kernels that are tried
_PARTS = 16  # arrays that are joined
_WRITTEN = 1 << 16  # elements of a result that is a view of others, up to which it is written
_PRODUCT = 1 << 12  # multiplications: larger products are BLAS's
_BLAS = 1 << 31  # sizes and distances that BLAS's integers may be too small for
_REGISTERS = 1 << 9  # ... and in the step of a loop, whose small arrays are in registers
_PRODUCT_OF_STEP = 1 << 15  # ... and in the step of a loop, which without BLAS would be run by Python


class Plan:
    """A graph as kernels and steps of Python's, in order.

    `taken` has by the names of primitives what makes steps of those that are neither elementwise nor sums.
    """

    taken: ClassVar[Mapping[str, Callable[[Any, Equation], bool]]]
    checks: bool
    donated: Container[Any]
    graph: Graph
    inner: bool
    memory: dict[Value, Value]

    def __init__(
        self,
        graph: Graph,
        inner: bool = False,
        checks: bool = True,
        pairs: assignments.Pairs = (),
        prepared: dict[Graph, Graph] | None = None,
        donated: Container[Any] = (),
    ) -> None:
        self.inner, self.checks, self.donated = inner, checks, donated
        self.prepared: dict[Graph, Graph] = {} if prepared is None else prepared  # graphs of equations
        self.graph, self.memory = assignments.in_place(graph, pairs, self._prepare)  # which outputs have an input's
        self.sizes: Written | None = sizes_of(graph)
        self.steps: list[Step] = []
        self.parts: dict[Value, list[int]] = {}  # arrays that several kernels write parts of
        self.place: dict[Any, int] = dict.fromkeys(graph.inputs, -1)  # the step that gives a value, of views' roots
        self.source: dict[Value, tuple[Equation, Value]] = {}  # of a view
        self.root: dict[Any, Any] = {}  # the array that a view is of
        self.layout: dict[Any, Layout] = {}
        self.order: dict[Value, tuple[int, ...]] = {}  # of views: the axes as they lie in memory
        self.leading: set[Any] = set()  # arrays of which a view in another order is followed by what is computed of it
        self.following: set[Value] = set() if inner else orders.following(self.graph, self._supported)
        self.written: set[Any] = _other_elements(self.graph)
        self.spread: dict[Any, Value] = {}  # numbers, by what has one in all places
        self.padded: dict[Any, Value] = {}  # images with zeros around, by what they are of and how many
        self.transposed: dict[Value, Value] = {}  # copies of what lies across the lines of others
        self.divided: dict[Any, Value] = {}  # ... and by the stride by which they are divided
        for e in self.graph.equations:
            self._take(e)
        self._store()
        following.join(self)

    def _take(self, e: Equation) -> None:
        if is_view(e) and ((e.results[0] in self.written and self._take_written(e)) or self._take_view(e)):
            return
        if e.name == "broadcast_to" and (fixed := constant(e.operands[0])) is not None:
            wide: Any = e.results[0]
            self.spread[wide] = Value((), wide.dtype, np.asarray(fixed, wide.dtype))
        taken = self.taken
        if self.sizes is not None and e.name not in _ANY_SIZE and not self._supported(e) and sizes_in(e):
            taken = {}  # it is NumPy's
        if e.name == "check" and self.checks and self._take_check(e.operands[0]):
            return
        if all(computable(x.dtype) and math.prod(x.shape) for x in (*e.results, *e.operands) if isinstance(x, Value)):
            if e.name in REDUCTIONS:
                if _sums(e) and (self._take_ordered_sum(e) or self._take_native(e)):
                    return
            elif e.name == "real" and assignments.take_unchanged(self, e):
                return
            elif self._supported(e):
                if self._take_ordered(e) or self._take_native(self._along_lines(e)):
                    return
            elif e.name in taken and taken[e.name](self, e):
                return
            elif (order := self._order_of_result(e)) is not None:
                (out,) = e.results
                made, base = Value(out.shape, out.dtype), Value(tuple([out.shape[i] for i in order]), out.dtype)  # type: ignore[union-attr]
                self._take_host(Equation(e.name, e.operands, e.parameters, [made], backward=e.backward, line=e.line))
                self._take_host(Equation("permute_dims", [made], {"axes": order}, [base]))
                self._order_as(base, out, order)  # type: ignore[arg-type]
                return
        self._take_host(e)

    def _take_written(self, e: Equation) -> bool:
        """A result that has other elements than what it is a view of is written, if not large: some callers copy it."""
        x, out = e.operands[0], e.results[0]
        assert isinstance(out, Value)
        small = as_recorded(math.prod(out.shape)) <= _WRITTEN and computable(out.dtype)
        if not small or self.root.get(x, x) in self.graph.inputs:
            return False
        view = Value(out.shape, out.dtype)
        return self._take_view(Equation(e.name, e.operands, e.parameters, [view])) and self._take_native(
            Equation("real", [view], {}, [out])
        )

    def _supported(self, e: Equation) -> bool:
        """Whether there is code for an equation, if it is elementwise."""
        return supported(e)

    def _take_host(self, e: Equation) -> None:
        self.place.update(dict.fromkeys(e.results, len(self.steps)))
        self.steps.append(Host(e))

    # --- memory in another order than that of the axes ---

    def _order_of_result(self, e: Equation) -> tuple[int, ...] | None:
        """How functions of NumPy's leaf lay out what they give. Were it otherwise, it would be copied."""
        if e.name in ("conv", "conv_input"):
            return (*range(1, len(e.results[0].shape)), 0)  # type: ignore[union-attr]
        like = {"max_pool": 0, "max_pool_pullback": 1}.get(e.name)
        return None if like is None else self.order.get(e.operands[like])

    def _order_as(self, base: Value, out: Value, order: tuple[int, ...]) -> None:
        """Have a value be a view of an array whose axes are in another order; what a step of a loop gives is copied."""
        back = tuple([order.index(i) for i in range(len(order))])
        given = self.inner and out in self.graph.outputs
        turned = Value(out.shape, out.dtype) if given else out
        if not self._take_view(Equation("permute_dims", [base], {"axes": back}, [turned])):
            raise AssertionError(base.shape)  # transposes are always views
        self.order[turned] = order
        if given and not self._take_native(Equation("real", [turned], {}, [out])):
            raise AssertionError(out.dtype)  # a kernel of its own can be made of any

    def _order(self, x: Any, followed: bool = False) -> tuple[int, ...] | None:
        """The axes of a view as they lie in memory, where what is computed with it is to lie so."""
        if x in self.order or not (x in self.root and (followed or self.root[x] in self.leading)):
            return self.order.get(x)
        sizes, _, strides = layout = self.layout[x]
        order = tuple(sorted(range(len(sizes)), key=lambda i: (sizes[i] == 1, -strides[i], i)))
        lies = Layout(tuple([sizes[i] for i in order]), layout.offset, tuple([strides[i] for i in order]))
        moved = [i for i in order if sizes[i] != 1]
        return order if moved != sorted(moved) and _is_whole(lies, self.root[x]) else None

    def _as_it_lies(self, x: Value, order: tuple[int, ...]) -> Value:
        """What a view in another order is a view of, with this order of its axes."""
        root: Value = self.root[x]
        shape = tuple([x.shape[i] for i in order])
        if root.shape == shape:
            return root
        made = Value(shape, x.dtype)
        self._take_view(Equation("reshape", [root], {"shape": shape}, [made]))
        return made

    def _take_ordered(self, e: Equation) -> bool:
        """What is computed elementwise lies as its operands do."""
        (out,) = e.results
        if not isinstance(out, Value):
            return False
        lies = {
            x: order
            for x in e.operands
            if x.__class__ is Value and orders.like(x, out) and (order := self._order(x, out in self.following))
        }
        if len(set(lies.values())) != 1:
            return False
        order = next(iter(lies.values()))
        operands: list[Any] = []
        for x in e.operands:
            if x in lies:
                x = self._as_it_lies(x, order)
            elif x.__class__ is Value and constant(x) is None:
                is_one = not any(self._layout(x).strides)  # element, spread over all places
                if x.const is not None or not (is_one or math.prod(x.shape) != math.prod(out.shape)):
                    return False
                wide = Value((*[1] * (len(order) - len(x.shape)), *x.shape), x.dtype)
                turned = Value(tuple([wide.shape[i] for i in order]), x.dtype)
                views = (
                    Equation("reshape", [x], {"shape": wide.shape}, [wide]),
                    Equation("permute_dims", [wide], {"axes": order}, [turned]),
                )
                if not all(map(self._take_view, views)):
                    return False
                x = turned
            operands.append(x)
        base = Value(tuple([out.shape[i] for i in order]), out.dtype)
        if not self._take_native(Equation(e.name, operands, e.parameters, [base], backward=e.backward, line=e.line)):
            return False
        self._order_as(base, out, order)
        return True

    def _take_ordered_sum(self, e: Equation) -> bool:
        """What is reduced is read as it lies."""
        (x,), (out,), order = e.operands, e.results, self._order(e.operands[0], True)
        if order is None or not isinstance(out, Value):
            return False
        axis = {i % len(order) for i in e.parameters["axis"]}
        left = [i for i in order if i not in axis]
        if left != sorted(left) or (e.parameters["keepdims"] and self.inner and out in self.graph.outputs):
            return False
        how = {"axis": tuple([k for k, i in enumerate(order) if i in axis]), "keepdims": False}
        found = Value(tuple([x.shape[i] for i in left]), out.dtype) if e.parameters["keepdims"] else out
        return self._take_native(Equation(e.name, [self._as_it_lies(x, order)], how, [found])) and (
            found is out or self._take_view(Equation("reshape", [found], {"shape": out.shape}, [out]))
        )

    def _take_view(self, e: Equation) -> bool:
        x, out = e.operands[0], e.results[0]
        if x.const is not None or not math.prod(out.shape) or not math.prod(x.shape):  # type: ignore[union-attr]
            return False
        found = view(e, self._layout(x))
        if found is None:
            if not computable(x.dtype):
                return False
            x = self._copied(x)
            e = Equation(e.name, [x], e.parameters, e.results)
            found = contiguous(out.shape)  # type: ignore[union-attr]
        root = self.root.get(x, x)
        self.layout[out], self.root[out], self.source[out] = found, root, (e, x)  # type: ignore[index]
        return True

    def _layout(self, x: Value) -> Layout:
        return self.layout.get(x) or contiguous(x.shape)

    def _step(self, x: Any) -> int:
        return self.place.get(self.root.get(x, x), -1)

    # --- kernels ---

    def _take_native(self, e: Equation, after: int = -1, part: tuple[Value, Layout] | None = None) -> bool:
        """Have a kernel after this step compute an equation, whose result may be a part of another array."""
        values = [x for x in e.operands if x.__class__ is Value and constant(x) is None]
        first = max([after + 1, *[self._step(x) for x in values]])
        for i in range(max(first, 0, len(self.steps) - _LOOK_BACK), len(self.steps)):
            kernel = self.steps[i]
            if not isinstance(kernel, Kernel) or kernel.is_alone or len(kernel.equations) >= _EQUATIONS:
                continue
            if self._joins(kernel, i, e, part):
                self.place[e.results[0]] = i
                return True
        shape = e.operands[0].shape if e.name in REDUCTIONS else e.results[0].shape  # type: ignore[union-attr]
        kernel = Kernel(squashed(shape))
        if not self._joins(kernel, len(self.steps), e, part):
            return False
        self.place[e.results[0]] = len(self.steps)
        self.steps.append(kernel)
        return True

    def axes_in(self, kernel: Kernel, x: Value) -> tuple[int | None, ...] | None:
        """On which axes of a kernel's domain the axes of a value lie that it computes; None of others."""
        chain = []
        while x not in kernel.axes:
            if x not in self.source:
                return None
            e, x = self.source[x]
            chain.append(e)
        if chain and kernel.kind[x] == "late":
            return None
        axes = kernel.axes[x]
        for e in reversed(chain):
            old, new = e.operands[0].shape, e.results[0].shape  # type: ignore[union-attr]
            if e.name == "broadcast_to":
                axes = (*[None] * (len(new) - len(old)), *axes)
                if any(a is None and n != 1 for a, n in zip(axes, new, strict=True)):
                    return None
            elif e.name in ("permute_dims", "index", "windows") or squashed(old) != squashed(new):
                return None
            else:
                left = iter([a for a in axes if a is not None])
                axes = tuple([None if n == 1 else next(left) for n in new])
        return axes

    def _joins(self, kernel: Kernel, place: int, e: Equation, part: tuple[Value, Layout] | None = None) -> bool:
        """Have a kernel compute an equation, if it can."""
        out: Any = e.results[0]
        operands = [x for x in e.operands if x.__class__ is Value and constant(x) is None]
        inside: dict[Value, tuple[int | None, ...]] = {}
        for x in operands:
            if self._step(x) == place:
                axes = self.axes_in(kernel, x)
                if axes is None or kernel.kind[self.root.get(x, x)] == "late":
                    return False
                inside[x] = axes
        target = e.operands[0].shape if e.name in REDUCTIONS else out.shape
        placed = self._placed(kernel, target, inside)
        if placed is None:
            return False
        is_full = sum(a is not None for a in placed) == len(kernel.domain)
        if not is_full and (e.name in REDUCTIONS or not is_row(kernel, placed) or not inside):
            return False
        read = {}
        for x in operands:
            if x not in inside:
                layout = self._layout(x)
                read[x] = (layout, kernel.strides(layout, placed), is_full)
        if not is_full and (part is not None or e.name == "gather"):
            return False
        trial = kernel.split, kernel.least
        if e.name in REDUCTIONS and not self._reduces(kernel, e, placed):
            return False
        wide = [*kernel.wide(), *[strides for _, strides, full in read.values() if full]]
        if part is not None:
            wide.append(kernel.strides(part[1], placed))
        uneven = kernel.split is not None and not all(is_one(kernel, strides, kernel.split) for strides in wide)
        if uneven or any(x in kernel.read and kernel.read[x][1:] != how[1:] for x, how in read.items()):
            kernel.split, kernel.least = trial
            kernel.reduced.pop(out, None)
            return False
        if part is not None:
            kernel.target[out] = part
            kernel.stored[out] = None
        kernel.read.update(read)
        if (
            e.name == "max"
            and out.dtype.kind == "f"
            and any(e.operands == m.results for m in kernel.equations if m.name == "abs")
        ):
            e = Equation(e.name, e.operands, {**e.parameters, "of_sizes": True}, e.results, backward=e.backward)
        kernel.equations.append(e)
        if e.name in REDUCTIONS:
            axis = {i % len(target) for i in e.parameters["axis"]}
            left = [None if i in axis else a for i, a in enumerate(placed) if e.parameters["keepdims"] or i not in axis]
            kernel.axes[out] = tuple(left)
            kernel.kind[out] = "row" if kernel.reduced[out] == tuple(range(kernel.split or 0, len(kernel.domain))) and (
                kernel.split is not None
            ) else "late"  # fmt: skip
        else:
            kernel.axes[out], kernel.kind[out] = placed, "full" if is_full else "row"
        return True

    def _placed(
        self, kernel: Kernel, shape: Sequence[int], inside: dict[Value, tuple[int | None, ...]]
    ) -> tuple[int | None, ...] | None:
        """The domain's axes of a value of this shape, computed from values that the kernel computes, and others."""
        found: list[int | None] = [None] * len(shape)
        if squashed(shape) == kernel.domain:
            axes = iter(range(len(kernel.domain)))
            found = [None if n == 1 else next(axes) for n in shape]
        for x, placed in inside.items():
            for i, (n, a) in enumerate(zip(x.shape[::-1], placed[::-1], strict=True)):
                if n != 1:
                    k = len(shape) - 1 - i
                    if found[k] is None:
                        found[k] = a
                    if found[k] != a:
                        return None
        if any(a is None and n != 1 for a, n in zip(found, shape, strict=True)):
            return None
        axes_found = [a for a in found if a is not None]
        return tuple(found) if axes_found == sorted(set(axes_found)) else None

    def _reduces(self, kernel: Kernel, e: Equation, placed: tuple[int | None, ...]) -> bool:
        """Decide which axes are rows, so that these can be reduced; False if that cannot be."""
        count = len(kernel.domain)
        axis = {i % len(placed) for i in e.parameters["axis"]}
        over = tuple([a for i, a in enumerate(placed) if i in axis and a is not None])
        if not over:
            return False
        last = over == tuple(range(count - len(over), count))
        whole = len(over) == count
        if (
            whole
            and kernel.split != 0
            and (kernel.split is not None or kernel.least or _is_many(math.prod(kernel.domain)))
        ):
            pass  # late, whatever the rows are
        elif last:
            split = count - len(over)
            if kernel.split not in (None, split) or kernel.least > split:
                return False
            kernel.split = split
        elif count - 1 not in over:
            if kernel.split is not None and kernel.split <= max(over):
                return False
            kernel.least = max(kernel.least, max(over) + 1)
        else:
            return False
        kernel.reduced[e.results[0]] = over  # type: ignore[index]
        return True

    # --- parts of arrays, products, loops ---

    def _take_part(
        self,
        x: Any,
        out: Value,
        layout: Layout,
        name: str = "real",
        more: Sequence[Any] = (),
        after: int = -1,
        **parameters: Any,
    ) -> int:
        """Write a value, or something computed with it, into a part of an array; gives the step that does."""
        made = Value(layout.shape, out.dtype)
        if not self._take_native(Equation(name, [x, *more], parameters, [made]), after, (out, layout)):
            raise AssertionError(name)  # a kernel of its own can be made of any
        step = self.place[made]
        self.parts.setdefault(out, []).append(step)
        self.place[out] = max(step, self.place.get(out, -1))
        return step

    def _take_arange(self, e: Equation) -> bool:
        """Whole numbers up to a size that stands for several; others are constants.

        As floats only 0, 1, ...: of these NumPy's sums of a start and steps are the numbers, rounded once.
        """
        out, how = e.results[0], e.parameters
        assert isinstance(out, Value)
        plain = all(isinstance(how[key], int) for key in ("start", "step"))
        counts = plain and out.dtype.kind == "f" and (how["start"], how["step"]) == (0, 1)
        if not (counts or (plain and out.dtype.kind in "iu")) or not is_size(out.shape[0]):
            return False
        return self._take_native(e)

    def _take_concat(self, e: Equation) -> bool:
        (out,), axis = e.results, e.parameters["axis"]
        assert isinstance(out, Value)
        if len(e.operands) > _PARTS or any(x.__class__ is not Value for x in e.operands):
            return False
        whole, start = contiguous(out.shape), 0
        for x in e.operands:
            self._take_part(x, out, Layout(x.shape, start * whole.strides[axis], whole.strides))
            start += x.shape[axis]
        return True

    def _take_index(self, e: Equation) -> bool:
        """Elements at places that arrays name."""
        x, *arrays = e.operands
        if not arrays or x.__class__ is not Value or not self._names_places(arrays):
            return False
        common = broadcast_shapes(*[a.shape for a in arrays])
        return self._take_gather(e, arrays, *picked(self._layout(x), e.parameters["key"], common))

    def _take_along_axis(self, e: Equation) -> bool:
        (x, indices), (out,), axis = e.operands, e.results, e.parameters["axis"]
        if x.__class__ is not Value or not self._names_places([indices]):
            return False
        old = self._layout(x)
        strides = [0 if i == axis or n == 1 else s for i, (n, s) in enumerate(zip(old.shape, old.strides, strict=True))]
        layout = Layout(tuple(out.shape), old.offset, tuple(strides))  # type: ignore[union-attr]
        return self._take_gather(e, [indices], layout, ((old.shape[axis], old.strides[axis]),), 0)

    def _take_gather(
        self, e: Equation, arrays: Sequence[Value], layout: Layout, places: tuple[tuple[int, int], ...], after: int
    ) -> bool:
        x, (out,) = e.operands[0], e.results
        there = Value(layout.shape, x.dtype)  # what would be read if all places were 0
        self.layout[there], self.root[there] = layout, self.root.get(x, x)
        operands = [there, *[self._followed(a, after) for a in arrays]]
        return self._take_native(Equation("gather", operands, {"places": places}, [out]))

    def _names_places(self, arrays: Sequence[Any]) -> bool:
        """Whether these may be looked up by machine code, which notes those out of range."""
        return self.checks and all(a.__class__ is Value and a.dtype.kind in "iu" for a in arrays)

    def _followed(self, x: Value, count: int) -> Value:
        """The same with so many axes of one element behind."""
        if not count:
            return x
        made = Value((*x.shape, *[1] * count), x.dtype)
        if x.const is not None:
            made.const = np.reshape(x.const, made.shape)
        else:
            self._take_view(Equation("reshape", [x], {"shape": made.shape}, [made]))
        return made

    def _take_product(self, e: Equation) -> bool:
        x, y = e.operands
        if not (x.__class__ is y.__class__ is Value) or x.dtype != y.dtype or x.dtype.kind != "f":
            return False
        out: Any = e.results[0]
        width, layouts = integer_bits(), (self._layout(x), self._layout(y))
        if min(len(x.shape), len(y.shape)) < 2:
            return False
        if take_units(self, e):
            return True
        if self.sizes is not None and sizes_in(e):
            any_size = "tiles" if serves_any(*layouts) else "blas" if width == 64 else ""
            return bool(any_size) and self._take_as_product(e, x, y, any_size)
        plain = len(x.shape) == len(y.shape) == 2
        least = _PRODUCT_OF_STEP if self.inner and not width else _PRODUCT
        small = plain and math.prod(out.shape) * x.shape[1] <= least
        if small and (is_vector(*layouts) or (self.inner and math.prod(out.shape) * x.shape[1] <= _REGISTERS)):
            way = "loops"
        elif pays(*layouts):
            way = "tiles"
        elif width and max(*x.shape, *y.shape) < _BLAS:
            way = "blas"
        else:
            return False
        return self._take_as_product(e, x, y, way)

    def _take_as_product(self, e: Equation, x: Value, y: Value, way: str) -> bool:
        if way == "blas":
            x, y = (z if _is_blas(self._layout(z)) else self._copied(z) for z in (x, y))
        (out,) = e.results
        self.place[out] = len(self.steps)
        self.steps.append(Product(out, (x, y), self._layout(x), self._layout(y), way))  # type: ignore[arg-type]
        return True

    def _copied(self, x: Value) -> Value:
        """The same elements, one after the other."""
        copy = Value(x.shape, x.dtype)
        if not self._take_native(Equation("real", [x], {}, [copy])):
            raise AssertionError(x.dtype)  # a kernel of its own can be made of any
        return copy

    def _along_lines(self, e: Equation) -> Equation:
        """The same, with copies of large operands whose lines go along another axis than those of the result."""
        if self.inner:
            return e
        out: Any = e.results[0]
        operands = [self._transposed(x) if x.__class__ is Value and orders.like(x, out) else x for x in e.operands]
        return Equation(e.name, operands, e.parameters, e.results, backward=e.backward, line=e.line)

    def _transposed(self, x: Value) -> Value:
        """The same elements one after the other, made once, if they lie one after the other along another axis."""
        if x not in self.layout or x.const is not None or not lies_across(self.layout[x], x.dtype):
            return x
        if x not in self.transposed:
            copy = self.transposed[x] = Value(x.shape, x.dtype)
            kernel = Kernel(squashed(x.shape))
            if not self._joins(kernel, len(self.steps), Equation("real", [x], {}, [copy])):
                raise AssertionError(x.dtype)  # a kernel of its own can be made of any
            kernel.is_alone = True
            self.place[copy] = len(self.steps)
            self.steps.append(kernel)
        return self.transposed[x]

    def _take_scan(self, e: Equation) -> bool:
        if not e.parameters["length"] or not all(x.__class__ is Value for x in e.operands):
            return False
        step = self._within(e.graphs[0], _carried(e))
        if step is None:
            return False
        self._add(Loop(e, self._whole(e.operands), step), e)
        return True

    def _take_branch(self, e: Equation) -> bool:
        if not all(x.__class__ is Value for x in e.operands) or e.operands[0].shape:
            return False
        pairs = assignments.pairs_of(self, e)
        cases = [self._within(g, pairs) for g in e.graphs]
        if None in cases:
            return False
        self._add(Choice(e, self._whole(e.operands), cases), e)  # type: ignore[arg-type]
        return True

    def _take_while(self, e: Equation) -> bool:
        goes, step = self._within(e.graphs[0]), self._within(e.graphs[1], _carried(e))
        if not all(x.__class__ is Value for x in e.operands) or goes is None or step is None:
            return False
        self._add(While(e, self._whole(e.operands), goes, step), e)
        return True

    def _within(self, graph: Graph, pairs: assignments.Pairs = ()) -> Plan | None:
        """The plan of a graph in this one, if all of it has machine code. Of pairs the output may lie in the input."""
        plan = Plan(self._prepare(graph), True, self.checks, pairs, self.prepared)
        return None if any(isinstance(s, Host) for s in plan.steps) else plan

    def _prepare(self, graph: Graph) -> Graph:
        found = self.prepared.get(graph)
        if found is None:
            found = self.prepared[graph] = _with_own_outputs(lowered(graph, self.checks))
        return found

    def _whole(self, operands: Sequence[Value]) -> list[Value]:
        """The operands as arrays that lie in memory as a whole."""
        found = []
        for x in operands:
            if x.const is not None:
                x = Value(x.shape, x.dtype, np.array(x.const, order="C"))
            elif self._layout(x)[1:] != contiguous(x.shape)[1:]:
                x = self._copied(x)
            found.append(x)
        return found

    def _add(self, step: Step, e: Equation) -> None:
        for x in e.results:
            if x in self.memory:
                x = assignments.place(self, x)
                self.parts.setdefault(x, []).append(len(self.steps))
            self.place[x] = len(self.steps)
        self.steps.append(step)

    def _take_check(self, holds: Any) -> bool:
        if holds.__class__ is not Value or holds.const is not None or not math.prod(holds.shape):
            return False
        if squashed(holds.shape):
            found = Value((), holds.dtype)
            axis = tuple(range(len(holds.shape)))
            self._take_native(Equation("all", [holds], {"axis": axis, "keepdims": False}, [found]))
            holds = found
        self.steps.append(Check(*self._whole([holds])))
        return True

    # --- what is written to memory ---

    def _store(self) -> None:
        """Note what of a kernel others read: later kernels, Python, who called."""

        def needed(x: Any) -> None:
            x = self.root.get(x, x)
            step = self.place.get(x, -1)
            if x not in self.parts and step >= 0 and isinstance(kernel := self.steps[step], Kernel):
                kernel.stored[x] = None

        for step in self.steps:
            if isinstance(step, Host):
                for x in step.equation.reads():
                    needed(x)
            else:
                for x in step.read:
                    needed(x)
        for x in self.graph.outputs:
            needed(x)


def _is_many(n: int) -> bool:
    """Whether so many elements are not reduced as one row."""
    return is_size(n) or n > _AS_ONE_ROW


def _carried(e: Equation) -> assignments.Pairs:
    """Of what a loop carries along that which is large, as pairs of an input and an output of its step."""
    return [(k, k) for k in range(e.parameters["count"]) if as_recorded(bytes_of(e.results[k])) > MOVED]


def _other_elements(graph: Graph) -> set[Any]:
    """Outputs that repeat elements of what they are views of, or leave out some, and that nobody else reads."""
    found: set[Any] = {x for e in graph.equations if e.name in ("broadcast_to", "index") for x in e.results}
    return found.intersection(graph.outputs).difference(*[e.reads() for e in graph.equations])


def _with_own_outputs(graph: Graph) -> Graph:
    """The same, whose outputs are all computed, each once: machine code writes them where they belong."""
    computed = {x for e in graph.equations if not is_view(e) for x in e.results}
    equations, outputs = list(graph.equations), []
    for x in graph.outputs:
        if x.const is not None or x not in computed:
            x, old = Value(x.shape, x.dtype), x
            equations.append(Equation("real", [old], {}, [x]))
        computed.discard(x)  # the next time it is copied
        outputs.append(x)
    return Graph(graph.inputs, equations, outputs)


Plan.taken = {
    "arange": Plan._take_arange,
    "branch": Plan._take_branch,
    "concat": Plan._take_concat,
    "conv": filters.take_conv,
    "conv_input": filters.take_conv_input,
    "conv_weight": filters.take_conv_weight,
    "index": Plan._take_index,
    "index_add": assignments.take_assignment,
    "index_max": assignments.take_scatter,
    "index_min": assignments.take_scatter,
    "index_multiply": assignments.take_scatter,
    "index_set": assignments.take_assignment,
    "matmul": Plan._take_product,
    "max_pool": images.take_max_pool,
    "max_pool_pullback": images.take_max_pool_pullback,
    "scan": Plan._take_scan,
    "take_along_axis": Plan._take_along_axis,
    "while": Plan._take_while,
    "window_spread": images.take_window_spread,
    "window_sum": images.take_window_sum,
}


def _is_whole(x: Layout, root: Value) -> bool:
    """Whether these are all elements of an array, as they follow each other in memory."""
    pairs = zip(x.shape, x.strides, contiguous(x.shape).strides, strict=True)
    return math.prod(x.shape) == math.prod(root.shape) and all(n == 1 or s == like for n, s, like in pairs)


def _is_blas(x: Layout) -> bool:
    """Whether BLAS reads the matrices as they lie."""
    return transposed(x) is not None and all([s < _BLAS for s in x.strides[-2:]])


def _sums(e: Equation) -> bool:
    x = e.operands[0]
    if x.__class__ is not Value or constant(x) is not None or e.results[0].dtype != x.dtype:  # type: ignore[union-attr]
        return False
    if (x.dtype.kind == "b") != (e.name in ("any", "all")):
        return False
    return bool(squashed([x.shape[i] for i in e.parameters["axis"]]))
