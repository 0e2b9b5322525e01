"""An elementwise formula on large arrays of NumPy, without an array per operation.

The formula runs once on values that only note what is done with them (`_Formula`, a leaf). What it noted is a program,
which runs block by block: what lies between operands and results stays in the cache, and nothing is allocated but
results, or not even these. A formula with anything in it that is not elementwise, such as a norm, cannot be taken
apart: it runs as it is, and so do all formulas on small arrays, on other leaves and on levels.

Where machine code can be made (`adjoint[compile]`), the program is one loop without anything between, if that gives the
same bits; what is no whole number of its blocks is done by NumPy all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation, LeafBackend
from adjoint.backends.numpy import NumPy
from adjoint.compiler.native import flat
from adjoint.decorators.autodiff import Autodiff
from adjoint.primitives import ELEMENTWISE, DType, Primitive, Spec, result_spec
from adjoint.tensor import Tensor, wrap

Slots = dict[str, Tensor[Any]]
Done = tuple[Tensor[Any], Slots]
Update = Callable[[Tensor[Any], Tensor[Any], Slots], Done]

_NUMPY = NumPy()
_MANY = 65536  # elements: with so many in all a program is worth its making
_LARGE = 2048  # elements of one array: with fewer calls take longer than memory
_BLOCK = 32768  # elements: a dozen such blocks stay in a core's second-level cache
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
    programs: dict[tuple[Any, ...], _Program | None] = {}
    found = []
    large = [_large(job) for job in jobs]
    if sum([arrays[0].size for arrays in large if arrays]) < _MANY:
        return [update(*job) for job in jobs]
    for job, arrays in zip(jobs, large, strict=True):
        program = None
        if arrays:
            key = (arrays[0].dtype, *job.slots)
            if key not in programs:
                programs[key] = _program(update, arrays[0].dtype, list(job.slots))
            program = programs[key]
        if program is None:
            found.append(update(*job))
        else:
            device = job.x.device
            x, *slots = [wrap(device.lift(y, _NUMPY), device) for y in program.run(arrays, donate)]
            found.append((x, dict(zip(program.new, slots, strict=True))))
    return found


def _large(job: Job) -> list[Array]:
    """The job's arrays if they are NumPy's, of one shape and dtype, and large; constants of an autodiff count."""
    first = _array(job.x)
    if first is None or first.size < _LARGE:
        return []
    arrays = [_array(x) for x in (job.x, job.g, *job.slots.values())]
    same = all(y is not None and y.shape == first.shape and y.dtype == first.dtype for y in arrays)
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
    run: Implementation
    operands: tuple[Any, ...]
    out: _Value


class _Formula(LeafBackend):
    """Notes elementwise primitives."""

    def implement(self, primitive: Primitive) -> Implementation:
        if primitive.kind is not ELEMENTWISE or primitive.results > 1:
            raise errors.UnsupportedPrimitiveError(f"{primitive.name} is not elementwise")
        run = _NUMPY[primitive]

        def note(*operands: Any, **parameters: Any) -> _Value:
            like = next(x for x in operands if x.__class__ is _Value)
            dtype = like.dtype
            if not primitive.keeps_dtype:
                specs = [Spec((), x.dtype) if hasattr(x, "dtype") else x for x in operands]
                dtype = result_spec(primitive, specs, parameters).dtype
            out = _Value(dtype, like.steps)
            known = functools.partial(run, **parameters) if parameters else run
            like.steps.append(_Step(primitive.name, parameters, known, operands, out))
            return out

        return note

    def dtype_of(self, array: Array) -> DType:
        return array.dtype  # type: ignore[no-any-return]

    def as_scalar(self, value: complex, dtype: DType) -> Any:
        return _NUMPY.as_scalar(value, dtype)


_FORMULA = _Formula()


def _program(update: Update, dtype: DType, names: list[str]) -> _Program | None:
    """The formula's, or None if it has other things in it than elementwise primitives."""
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
    return _Program(steps, given, [y._array for y in made], names, list(new))


class _Program:
    """Steps over places: those of what is given, of the results, of what lies between, and from the end constants.

    A ufunc writes into its result's place, which may be that of an operand that nobody reads later.
    """

    def __init__(
        self, steps: list[_Step], given: list[_Value], made: list[_Value], names: list[str], new: list[str]
    ) -> None:
        self.new, self.given, self.results = new, len(given), len(made)
        self.steps: list[tuple[Implementation, list[int], int, bool]] = []
        self.constants: list[Any] = []
        self.temporaries = 0
        places: dict[Any, int] = {value: k for k, value in enumerate(given)}
        outs = {value: self.given + k for k, value in enumerate(made) if value not in places}
        last = {x: k for k, step in enumerate(steps) for x in step.operands if x.__class__ is _Value}
        free: list[int] = []
        for k, (_, _, run, operands, out) in enumerate(steps):
            read = [self._constant(x) if x.__class__ is not _Value else places[x] for x in operands]
            fused = run.__class__ is np.ufunc and out.dtype is given[0].dtype
            if fused:
                over = {places[x] for x in operands if x.__class__ is _Value and last[x] == k}
                free += [place for place in over if place >= self.given + self.results]
            if out in outs:
                places[out] = outs[out]
            elif fused and free:
                places[out] = free.pop()
            else:
                places[out] = self.given + self.results + self.temporaries
                self.temporaries += 1
            self.steps.append((run, read, places[out], fused))
        for k, value in enumerate(made, self.given):  # what is no step's, or is two results
            if places[value] != k:
                self.steps.append((np.positive, [places[value]], k, True))
        # where results may lie in memory that only the program knows: a step that gives what it likes could refer to it
        self.over: dict[int, int] = {}
        if all(fused for *_, fused in self.steps):
            written = {place: k for k, (*_, place, _) in enumerate(self.steps)}
            read_last = {place: k for k, (_, read, *_) in enumerate(self.steps) for place in read}
            for k, name in enumerate(["", *new], self.given):
                source = 0 if not name else 2 + names.index(name) if name in names else None
                if source is not None and read_last.get(source, -1) <= written[k]:
                    self.over[k] = source
        self.numbers, self.loops = _loops(steps, given, made)

    def _constant(self, value: Any) -> int:
        self.constants.append(value)
        return -len(self.constants)

    def run(self, arrays: list[Array], donate: bool) -> list[Array]:
        """The results. They lie in memory as the gradient does, which is often the transpose of a product."""
        x, g = arrays[:2]
        order: Any = "F" if g.flags.f_contiguous and not g.flags.c_contiguous else "C"
        given = [array.ravel(order) for array in arrays]
        results = []
        for k in range(self.given, self.given + self.results):
            old = given[self.over[k]] if donate and k in self.over else None
            results.append(_Owner.empty(x.size, x.dtype) if old is None or not _Owner.has(old) else old)
        self._compute(given + results)
        return [y.reshape(x.shape, order=order) for y in results]

    def _compute(self, arrays: list[Array]) -> None:
        """Fill the results, which follow what is given."""
        size, begin = arrays[0].size, 0
        for count, loop in self.loops:
            while begin + count <= size:
                parts = [x[begin : begin + count] for x in arrays]
                if not loop([*parts[: self.given], *self.numbers, *parts[self.given :]]):
                    break
                begin += count
        between = list(np.empty((self.temporaries, min(size, _BLOCK)), arrays[0].dtype))
        constants = self.constants[::-1]
        for start in range(begin, size, _BLOCK):
            stop = min(start + _BLOCK, size)
            env = [*[x[start:stop] for x in arrays], *[x[: stop - start] for x in between], *constants]
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


def _loops(
    steps: list[_Step], given: list[_Value], made: list[_Value]
) -> tuple[list[Array], list[tuple[int, flat.Loop]]]:
    """The steps' numbers, and machine code of so many elements that reads them; none where there is no such code."""
    dtype = given[0].dtype
    found = [x for step in steps for x in step.operands if x.__class__ is not _Value]
    if not all(x.__class__ in (bool, int, float) or (np.ndim(x) == 0 and x.dtype == dtype) for x in found):
        return [], []
    numbers = [np.asarray(x, dtype) for x in found]
    order = [*given, *[None] * len(numbers), *[step.out for step in steps]]
    places = {value: k for k, value in enumerate(order)}
    following = iter(range(len(given), len(given) + len(numbers)))
    lines = [
        flat.Line(
            step.name,
            tuple(step.parameters.items()),
            tuple([places[x] if x.__class__ is _Value else next(following) for x in step.operands]),
            step.out.dtype,
        )
        for step in steps
    ]
    results = [places[value] for value in made]
    loops = [(n, flat.loop(n, dtype, len(given), len(numbers), lines, results)) for n in _LOOPS]
    return numbers, [(n, loop) for n, loop in loops if loop is not None]


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
