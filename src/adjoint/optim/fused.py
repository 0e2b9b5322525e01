"""An elementwise formula on large arrays of NumPy, without an array per operation.

The formula runs once on values that only note what is done with them (`_Formula`, a leaf). What it noted is a program,
which runs block by block: what lies between operands and results stays in the cache, and nothing is allocated but
results, or not even these. Small arrays and the ends of large ones are gathered in blocks, and done in one go. A
formula with anything in it that is not elementwise, such as a norm, cannot be taken apart: it runs as it is, and so do
all formulas on few numbers, on other leaves and on levels.

Where machine code can be made (`adjoint[compile]`), the program is one loop without anything between, if that gives the
same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation, LeafBackend
from adjoint.backends.numpy import NumPy
from adjoint.compiler.native import flat
from adjoint.compiler.native.machine import possible
from adjoint.decorators.autodiff import Autodiff
from adjoint.primitives import ELEMENTWISE, DType, Primitive, Spec, result_spec
from adjoint.tensor import Tensor, wrap

Slots = dict[str, Tensor[Any]]
Done = tuple[Tensor[Any], Slots]
Update = Callable[[Tensor[Any], Tensor[Any], Slots], Done]

_NUMPY = NumPy()
_MANY = 65536  # elements: with so many in all a program is worth its making
_BLOCK = 32768  # elements: a dozen such blocks stay in a core's second-level cache
_SMALL = 2048  # elements: with fewer calls take longer than memory
_LOOPS = (32768, 4096)  # elements that machine code is made for: two sizes, as making it takes a tenth of a second


class Job(NamedTuple):
    """A parameter, its gradient and what is remembered of it."""

    x: Tensor[Any]
    g: Tensor[Any]
    slots: Slots


def updated(update: Update, jobs: Sequence[Job], donate: bool = False) -> list[Done]:
    """The formula's results for each parameter.

    With `donate` they are written over what is given, where that is a result of an earlier call.
    """
    if sum([x.size for job in jobs if (x := _array(job.x)) is not None]) < _MANY:
        return [update(*job) for job in jobs]
    given = [_arrays(job) for job in jobs]
    alike: dict[tuple[Any, ...], list[int]] = {}
    for k, arrays in enumerate(given):
        if arrays:
            alike.setdefault((arrays[0].dtype, *jobs[k].slots), []).append(k)
    found: dict[int, Done] = {}
    for (dtype, *names), places in alike.items():
        noted = _noted(update, dtype, names)
        if noted is None:
            continue
        program, numbers = noted
        for k, made in zip(places, program.run([given[k] for k in places], numbers, donate), strict=True):
            device = jobs[k].x.device
            x, *slots = [wrap(device.lift(y, _NUMPY), device) for y in made]
            found[k] = x, dict(zip(program.new, slots, strict=True))
    return [found[k] if k in found else update(*job) for k, job in enumerate(jobs)]


def _arrays(job: Job) -> list[Array]:
    """The job's arrays if they are NumPy's, of one shape and dtype; constants of an autodiff count."""
    first = _array(job.x)
    if first is None:
        return []
    arrays = [_array(x) for x in (job.x, job.g, *job.slots.values())]
    same = all([y is not None and y.shape == first.shape and y.dtype == first.dtype for y in arrays])
    return arrays if same else []


def _array(x: Any) -> Array | None:
    """The array of a tensor on NumPy, or of a constant on an autodiff over it."""
    if x.__class__ is not Tensor:
        return None
    array, device = x._array, x._device
    if device.__class__ is Autodiff and array.node is None:
        array, device = array.value, device.inner
    return array if device is _NUMPY else None


# --- the formula as a program --------------------------------------------------------------------


class _Value:
    """A number of the formula. It has no shape: what asks for one is not elementwise."""

    __slots__ = ("dtype", "steps")

    def __init__(self, dtype: DType, steps: list[_Step]) -> None:
        self.dtype, self.steps = dtype, steps


class _Step(NamedTuple):
    name: str
    parameters: dict[str, Any]
    operands: tuple[Any, ...]
    out: _Value


class _Formula(LeafBackend):
    """Notes elementwise primitives."""

    def implement(self, primitive: Primitive) -> Implementation:
        if primitive.kind is not ELEMENTWISE or primitive.results > 1:
            raise errors.UnsupportedPrimitiveError(f"{primitive.name} is not elementwise")

        def note(*operands: Any, **parameters: Any) -> _Value:
            like = next(x for x in operands if x.__class__ is _Value)
            dtype = like.dtype
            if not primitive.keeps_dtype:
                specs = [Spec((), x.dtype) if hasattr(x, "dtype") else x for x in operands]
                dtype = result_spec(primitive, specs, parameters).dtype
            out = _Value(dtype, like.steps)
            like.steps.append(_Step(primitive.name, parameters, operands, out))
            return out

        return note

    def dtype_of(self, array: Array) -> DType:
        return array.dtype  # type: ignore[no-any-return]

    def as_scalar(self, value: complex, dtype: DType) -> Any:
        return _NUMPY.as_scalar(value, dtype)


_FORMULA = _Formula()


def _noted(update: Update, dtype: DType, names: list[str]) -> tuple[_Program, list[Any]] | None:
    """The formula's program and numbers, or None if it has other things in it than elementwise primitives."""
    steps: list[_Step] = []
    given = [_Value(dtype, steps) for _ in range(2 + len(names))]
    x, g, *slots = [wrap(value, _FORMULA) for value in given]
    try:
        out, new = update(x, g, dict(zip(names, slots, strict=True)))
    except Exception:  # what is wrong with it, if anything is, the caller sees who runs it as it is
        return None
    made = [out, *new.values()]
    if not all(y.__class__ is Tensor and y._array.__class__ is _Value and y.dtype is dtype for y in made):
        return None
    numbers = [x for step in steps for x in step.operands if x.__class__ is not _Value]
    order = [*given, *[None] * len(numbers), *[step.out for step in steps]]
    places = {value: k for k, value in enumerate(order)}
    following = iter(range(len(given), len(given) + len(numbers)))
    lines = tuple(
        [
            flat.Line(
                step.name,
                tuple(step.parameters.items()),
                tuple([places[x] if x.__class__ is _Value else next(following) for x in step.operands]),
                step.out.dtype,
            )
            for step in steps
        ]
    )
    # a parameter may be a number, and numbers that are equal are not always the same
    make = _Program if any([line.parameters for line in lines]) else _program
    results = tuple([places[y._array] for y in made])
    return make(dtype, tuple(names), tuple(new), len(numbers), lines, results, possible()), numbers


class _Program:
    """Steps over places: those of what is given, of the results, of what lies between, and from the end numbers.

    A ufunc writes into its result's place, which may be that of an operand that nobody reads later. Numbers change from
    one run to the next, as a rate does, and the program stays.
    """

    def __init__(
        self,
        dtype: DType,
        names: tuple[str, ...],
        new: tuple[str, ...],
        numbers: int,
        lines: tuple[flat.Line, ...],
        made: tuple[int, ...],
        loops: bool,
    ) -> None:
        self.new, self.dtype = new, dtype
        given, results = 2 + len(names), len(made)
        self.given, self.results = given, results
        self.steps: list[tuple[Implementation, list[int], int, bool]] = []
        self.temporaries = 0
        values = given + numbers  # from here on they are those of the lines
        places = {k: k if k < given else k - values for k in range(values)}
        outs = {value: given + k for k, value in enumerate(made) if value >= values}
        last = {x: k for k, line in enumerate(lines) for x in line.operands}
        free: list[int] = []
        for k, line in enumerate(lines):
            run = _NUMPY[line.name]
            fused = run.__class__ is np.ufunc and line.dtype is dtype
            read, out = [places[x] for x in line.operands], values + k
            if fused:
                over = {places[x] for x in line.operands if last[x] == k}
                free += [place for place in over if place >= given + results]
            if out in outs:
                places[out] = outs[out]
            elif fused and free:
                places[out] = free.pop()
            else:
                places[out] = given + results + self.temporaries
                self.temporaries += 1
            known = functools.partial(run, **dict(line.parameters)) if line.parameters else run
            self.steps.append((known, read, places[out], fused))
        for k, value in enumerate(made, given):  # what is no step's, or is two results
            if places[value] != k:
                self.steps.append((np.positive, [places[value]], k, True))
        # where results may lie in memory that only the program knows: a step that gives what it likes could refer to it
        self.over: dict[int, int] = {}
        if all(fused for *_, fused in self.steps):
            written = {place: k for k, (*_, place, _) in enumerate(self.steps)}
            read_last = {place: k for k, (_, read, *_) in enumerate(self.steps) for place in read}
            for k, name in enumerate(["", *new], given):
                source = 0 if not name else 2 + names.index(name) if name in names else None
                if source is not None and read_last.get(source, -1) <= written[k]:
                    self.over[k] = source
        found = [(n, flat.loop(n, dtype, given, numbers, lines, made)) for n in _LOOPS] if loops else []
        self.loops = [(n, loop) for n, loop in found if loop is not None]

    def run(self, jobs: list[list[Array]], numbers: list[Any], donate: bool) -> list[list[Array]]:
        """The results for each job. They lie in memory as its gradient does, often the transpose of a product."""
        rows, orders = [], []
        for x, g, *slots in jobs:
            order: Any = "F" if g.flags.f_contiguous and not g.flags.c_contiguous else "C"
            row = [array.ravel(order) for array in (x, g, *slots)]
            for k in range(self.given, self.given + self.results):
                old = row[self.over[k]] if donate and k in self.over else None
                row.append(_Owner.empty(x.size, x.dtype) if old is None or not _Owner.has(old) else old)
            rows.append(row)
            orders.append(order)
        self._compute(rows, numbers)
        return [
            [y.reshape(job[0].shape, order=order) for y in row[self.given :]]
            for job, row, order in zip(jobs, rows, orders, strict=True)
        ]

    def _compute(self, rows: list[list[Array]], numbers: list[Any]) -> None:
        """Fill the results, which follow what is given: whole blocks where they lie, the rest gathered in blocks."""
        *loops, (_, calls) = ways = self._ways(numbers)
        rests = []
        for row in rows:
            size, begin = row[0].size, 0
            for count, run in ways:
                while begin + count <= size and run([x[begin : begin + count] for x in row]):
                    begin += count
            rest = [x[begin:] for x in row] if begin else row
            if size - begin >= _SMALL:
                calls(rest)
            elif begin < size:
                rests.append(rest)
        count, run = loops[-1] if loops else (_SMALL, calls)
        side = list(np.zeros((self.given + self.results, count), self.dtype)) if rests else []
        for block in _gathered(rests, count):
            begin = sum([row[0].size for row in block])
            for k in range(self.given):
                np.concatenate([row[k] for row in block], out=side[k][:begin])
            run(side if loops else [x[:begin] for x in side])  # what is beyond the rests is computed with, too
            for row in reversed(block):
                end, begin = begin, begin - row[0].size
                for x, y in zip(row[self.given :], side[self.given :], strict=True):
                    x[:] = y[begin:end]

    def _ways(self, numbers: list[Any]) -> list[tuple[int, Callable[[list[Array]], bool]]]:
        """What fills blocks of so many elements, or refuses to; the last one, calls of NumPy, also smaller blocks."""
        dtype = self.dtype
        loops = []
        if all([x.__class__ in (bool, int, float) or (np.ndim(x) == 0 and x.dtype == dtype) for x in numbers]):
            arrays = [np.asarray(x, dtype) for x in numbers]
            loops = [(count, functools.partial(self._loop, loop, arrays)) for count, loop in self.loops]
        between = np.empty((self.temporaries, _BLOCK), dtype)
        return [*loops, (_BLOCK, functools.partial(self._call, between, numbers))]

    def _loop(self, loop: flat.Loop, numbers: list[Array], arrays: list[Array]) -> bool:
        return loop([*arrays[: self.given], *numbers, *arrays[self.given :]])

    def _call(self, between: Array, numbers: list[Any], arrays: list[Array]) -> bool:
        """The steps as calls of NumPy, on one block."""
        env = [*arrays, *between[:, : arrays[0].size], *numbers]
        for run, read, place, fused in self.steps:
            if not fused:
                made = run(*[env[k] for k in read])
                if place < len(arrays):
                    env[place][:] = made
                else:
                    env[place] = made
            elif len(read) == 2:  # without a list, as calls are half of the work
                run(env[read[0]], env[read[1]], out=env[place])
            else:
                run(*[env[k] for k in read], out=env[place])
        return True


_program = functools.lru_cache(256)(_Program)


def _gathered(rows: list[list[Array]], size: int) -> Iterator[list[list[Array]]]:
    """The rows, cut and gathered in blocks of so many elements; the last one may have fewer."""
    block: list[list[Array]] = []
    room = size
    for row in rows:
        begin, end = 0, row[0].size
        while begin < end:
            stop = min(end, begin + room)
            block.append([x[begin:stop] for x in row])
            room -= stop - begin
            begin = stop
            if not room:
                yield block
                block, room = [], size
    if block:
        yield block


class _Owner(np.ndarray[Any, Any]):
    """Memory of results: no array of a user's lies in it that was there before."""

    @staticmethod
    def empty(size: int, dtype: DType) -> Array:
        return _Owner(size, dtype).view(np.ndarray)

    @staticmethod
    def has(array: Any) -> bool:
        while array is not None and array.__class__ is not _Owner:
            array = getattr(array, "base", None)  # of what was in a pickle it is bytes
        return array is not None
