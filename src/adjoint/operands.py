"""How operands meet: promotion, lifting to one backend, and the call of a primitive."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeGuard

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Decorator
from adjoint.concrete import Check, Lazy, collecting
from adjoint.devices import leaf_of
from adjoint.dtypes import DType
from adjoint.primitives import CAST, TABLE, Spec, result_spec
from adjoint.primitives.sizes import LATER, stands
from adjoint.tensor import Counter, Number, Scalar, Tensor, allocate, raw_array, same, wrap

_LARGEST = int(np.finfo(np.float64).max)
_WIDE = 1 << 63  # which integers of 64 bits with a sign do not hold
# by Python's operator: what has an answer for integers of any size
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    compare.__name__: compare
    for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
}


def common_backend(*tensors: Tensor[Any]) -> Backend:
    """The backend that all tensors can be lifted to: the highest of them on one chain.

    Raises DeviceError, with both chains, where there is none.
    """
    top = tensors[0]._device
    for x in tensors[1:]:
        other = x._device
        if other is not top and not _in_chain(other, top):
            if not _in_chain(top, other):
                return _common_of_constants(tensors)
            top = other
    return top


def _in_chain(backend: Backend, of: Backend) -> bool:
    if backend is of or backend.depth > of.depth:  # views are as deep as the levels that they stand for
        return backend is of
    return (isinstance(of, Decorator) and of.inner is backend) or backend in of.chain()


def _common_of_constants(tensors: Sequence[Tensor[Any]]) -> Backend:
    """A transform's level, or one over a leaf that records, takes in constants of any: nothing is lost with theirs."""
    devices = {id(x._device): x._device for x in tensors}.values()
    for top in devices:
        if (top.is_fresh or top.leaf.is_fresh) and all(lower(x._array, x._device, top) is not None for x in tensors):
            return top
    raise unmet(tensors)


def unmet(tensors: Sequence[Tensor[Any]], level: Backend | None = None, name: str = "") -> errors.AdjointError:
    """The error for tensors none of whose backends continues the others' chains, or that of `level`.

    `name` is of the function that they are arguments of.
    """
    found: dict[Backend, Tensor[Any]] = {}
    for x in tensors:
        found.setdefault(x._device, x)
    devices = [*found] if level is None else [*found, level]
    for device in devices:
        for each in device.chain():
            if each.ended:
                return each.ended_error("tensors that do not meet")
    apart = [x for x in devices[1:] if not _in_chain(x, devices[0]) and not _in_chain(devices[0], x)]
    pair = [devices[0], (apart or devices[1:])[0]]
    outside = [x for x in pair if not x.is_fresh]
    what = [f"{described(found[x])} on {x}" if x in found else f"what is on {x}" for x in pair]
    if any([x.leaf.is_fresh for x in pair]):
        advice = (
            "the function is being recorded; make what is tracked an argument, or take w.detach() of what is constant; "
            "variables, and attributes of objects whose class is written in Python, are like arguments"
        )
    elif pair[0].leaf is not pair[1].leaf:
        advice = f"they compute with different libraries; move one with to_device({pair[1].leaf.name!r})"
    elif len(outside) == 1:
        advice = (
            f"the transform was not built on {outside[0]}; make all that is tracked arguments of its function, on one "
            "device, or take w.detach() of what is constant"
        )
    else:
        advice = "neither backend is in the other's chain; go down to a common one with inner(), or take x.detach()"
    error = errors.DeviceError(f"{name and name + ': '}{what[0]} and {what[1]} do not meet: {advice}")
    if len(outside) == 1 and not any([x.leaf.is_fresh for x in pair]):
        error.place = outside[0]
    return error


def described(x: Tensor[Any]) -> str:
    """A tensor as messages name it: `the float64 leaf of shape (3,), which require_grad tracks,`."""
    of = f"{x._dtype} {{}} of shape {x.shape}"
    node = getattr(raw_array(x), "node", None)
    if x._device.is_fresh:
        return f"the {of.format('tensor')} of a transform's function"
    if node is not None:
        is_leaf = node.parents == ()
        return (
            f"the {of.format('leaf')}, which require_grad tracks,"
            if is_leaf
            else (f"the {of.format('tensor')}, tracked by {node.name},")
        )
    return f"the {of.format('tensor')}" + (", which is tracked," if x._device.tracked(raw_array(x)) else "")


def outer_error(x: Tensor[Any], value: Tensor[Any], what: str) -> errors.DeviceError:
    """The error for writing a value of one level into a tensor that is further in."""
    if value._device.leaf.is_fresh and not x._device.leaf.is_fresh:
        return errors.DeviceError(
            f"{what}: a function that ad.compile records assigns to {described(x)} that is not its own; only results "
            "come out of a compiled function: assign to a copy, x.copy(), and return it"
        )
    where = "make the tensor in that function" if value._device.is_fresh else "start from a tensor there"
    return errors.DeviceError(
        f"{what}: {described(x)} on {x._device} cannot take {described(value)} on {value._device}, whose derivative "
        f"would be lost; {where}, lift it by x = ad.asarray(x, device=v.device), or write v.detach()"
    )


def lower(array: Array, source: Backend, device: Backend) -> tuple[Array, Backend] | None:
    """An array and its backend, or the same constant of one further in that is in the chain of `device`."""
    while not _in_chain(source, device):
        if not isinstance(source, Decorator) or source.is_active(array):
            return None
        array, source = source.unwrap(array), source.inner
    return array, source


def lift_to(x: Tensor[Any], device: Backend) -> Array:
    """The array of a tensor, as a constant of `device` if it is of a backend further in.

    Raises DeviceError, or EndedError, if it is of no such backend and more than a constant.
    """
    if x._device is device:
        return x._array
    if isinstance(device, Decorator) and device.inner is x._device:
        return device.wrap(x._array)
    found = lower(x._array, x._device, device)
    if found is None:
        raise unmet([x], device)
    return device.lift(*found)


def met(x: Tensor[Any], y: Tensor[Any]) -> tuple[Backend, Array, Array]:
    """The backend that two tensors can be lifted to, and their arrays there."""
    here: Any = x._device
    there: Any = y._device
    if here.depth > there.depth and here.inner is there:
        return here, x._array, here.wrap(y._array)
    if there.depth > here.depth and there.inner is here:
        return there, there.wrap(x._array), y._array
    device = common_backend(x, y)
    return device, lift_to(x, device), lift_to(y, device)


def operand(value: Any, like: Tensor[Any], name: str, wide: bool = False) -> Tensor[Any]:
    """A tensor as it is; a copy of anything with values as a constant on the backend of `like`.

    Lists of Python's floats are as precise as `like`, or in double precision if they meet something `wide`.
    """
    if isinstance(value, Tensor):
        return value
    device = like._device
    if not isinstance(value, (np.ndarray, np.generic, list, tuple)):
        found = device.from_native(value)
        if found is not None:
            return wrap(found, device)
    values = dtypes.values_of(value, None, name, device, wide or dtypes.is_wide(like))
    return wrap(device.from_numpy(values, copy=True), device)


def constant_like(values: Any, like: Tensor[Any], name: str) -> Tensor[Any]:
    """An array of our own as a constant beside `like`, in no wider dtype than its library has."""
    if isinstance(values, Tensor):  # of places whose number is not known
        return values
    return operand(values.astype(like._device.leaf.widest(values.dtype), copy=False), like, name)


def is_weak(value: Any) -> TypeGuard[complex]:
    """Whether it is one of Python's own numbers, which adapt to the dtype of the tensor they meet."""
    return isinstance(value, Scalar) and not isinstance(value, np.generic)


def cast(x: Tensor[Any], dtype: DType) -> Tensor[Any]:
    """The tensor in this dtype; differentiable."""
    return x if x._dtype is dtype else run(CAST.name, (x,), dtype=dtype)


def held(value: Any, like: Tensor[Any], name: str) -> Tensor[Any]:
    """What is written into `like`, in its dtype; differentiable. Raises DtypeError for what the dtype does not hold."""
    dtype = like._dtype
    if is_weak(value):
        refuse_fractions(value, dtype, name)
        value = constant_like(
            np.asarray(fitting(value, dtype, name)), like, name
        )  # in full precision: the dtype may be wider
    else:
        if isinstance(value, (list, tuple)) and dtype.kind in dtypes.INEXACT:
            value = constant_like(dtypes.values_of(value, dtypes.promote(dtype, dtypes.float64), name), like, name)
        value = operand(value, like, name)
        refuse_fractions(value, dtype, name)
    dtypes.refuse_complex(value._dtype, dtype, name)
    return cast(value, dtype)


def refuse_fractions(value: Any, dtype: DType, name: str) -> None:
    """Raises DtypeError for floats where integers are kept, which would lose fractions and derivatives silently.

    A Python float may be whole.
    """
    if dtype.kind in dtypes.INEXACT:
        return
    if is_weak(value):
        if isinstance(value, int) or (isinstance(value, float) and (value.is_integer() or not math.isfinite(value))):
            return  # an infinity or a nan has an error of its own
        what, wide = str(value), type(value).__name__
    elif isinstance(value, (Tensor, np.ndarray, np.generic)) and value.dtype.kind in dtypes.INEXACT:
        what, wide = str(value.dtype), "complex" if value.dtype.kind == "c" else "float"
    else:
        return
    raise errors.DtypeError(
        f"{name}: {dtype} does not hold {what}, whose fraction and derivative would be lost; convert the tensor by "
        f"x.astype({wide}), or the value by v.astype(int) if its whole part is meant"
    )


def available_dtype(dtype: DType, tensors: Sequence[Tensor[Any]]) -> DType:
    """What tensors are promoted to: where integers become floating, no wider than their library has it."""
    if dtype.kind not in dtypes.INEXACT or any([x._dtype.kind in dtypes.INEXACT for x in tensors]):
        return dtype
    return tensors[0]._device.leaf.widest(dtype)


def binary(name: str, x: Any, y: Any) -> Any:
    """An elementwise primitive of two operands, one of them a tensor, with promotion.

    Returns NotImplemented for operands that are no arrays, so that Python asks the other side; raises
    DtypeError for Python's own, which know no tensors.
    """
    if x.__class__ is Tensor and y.__class__ is Tensor and x._dtype is y._dtype and x._dtype.kind in TABLE[name].direct:
        return run(name, (x, y))  # on different backends
    if x.__class__ is Number or y.__class__ is Number:
        return _with_numbers(name, x, y)
    pair = []
    for value, other in ((x, y), (y, x)):
        if not isinstance(value, Tensor) and not is_weak(value):
            if (
                not isinstance(value, (np.ndarray, np.generic, list, tuple))
                and other._device.from_native(value) is None
                and not dtypes.is_table(value)
            ):
                return refuse_operand(value, other, name)
            value = operand(value, other, name)
        pair.append(value)
    x, y = pair
    primitive = TABLE[name]
    if primitive.truth:  # numbers may be of any size
        x, y = (int(v != 0) if is_weak(v) and not isinstance(v, bool) else v for v in pair)
    if not isinstance(x, Tensor):
        assert isinstance(y, Tensor)
        dtype = dtypes.promote_scalar(y._dtype, x)
    elif not isinstance(y, Tensor):
        dtype = dtypes.promote_scalar(x._dtype, y)
    else:
        try:
            dtype = dtypes.promote(x._dtype, y._dtype)
        except errors.DtypeError as error:
            raise errors.DtypeError(f"{name}: {error}") from None
    dtype = available_dtype(primitive.promoted(dtype), [v for v in (x, y) if isinstance(v, Tensor)])
    try:
        pair = [cast(v, dtype) if isinstance(v, Tensor) else fitting(v, dtype, name) for v in (x, y)]
    except errors.RangeError:
        compare = COMPARISONS.get(primitive.operator)
        if compare is None or dtype.kind in dtypes.INEXACT:  # of floats not all are near to zero
            raise
        # every element stands to an integer outside the dtype as zero does
        answer = compare(*[0 if isinstance(v, Tensor) else v for v in (x, y)])
        tensor = x if isinstance(x, Tensor) else y
        device = tensor._device
        return wrap((device.equal if answer else device.not_equal)(tensor._array, tensor._array), device)
    return run(name, pair)


_NUMBERS = {"b": True, "i": 1, "f": 1.0, "c": 1j}  # of Python's, by the kind of the dtype that keeps them
_WIDEST = {"i": dtypes.int64, "f": dtypes.float64, "c": dtypes.complex128}


def chosen_number(x: Tensor[Any], bounds: Any = None) -> Tensor[Any]:
    """A tensor without axes, of a dtype that keeps Python's numbers, as one of these; with bounds as that of a step."""
    out: Tensor[Any] = allocate(Number if bounds is None else Counter)
    if bounds is not None and type(out) is Counter:
        out.bounds = bounds
    out._array, out._device, out._dtype = x._array, x._device, x._dtype
    return out


def in_place_of(like: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    """x, as a chosen number where what it takes the place of is one."""
    return chosen_number(x, getattr(like, "bounds", None)) if like.__class__ is Number else x


def is_number(x: Any) -> bool:
    """Whether it adapts to the dtype of what it meets: one of Python's numbers, or a chosen one."""
    return x.__class__ is Number or is_weak(x)


def like_number(dtype: DType) -> Any:
    """A number of Python's whose class has this dtype."""
    return _NUMBERS[dtype.kind]


def dtype_beside(dtype: DType, x: Any) -> DType:
    """The dtype in which a tensor of one meets what is a tensor, a number or a chosen number."""
    if x.__class__ is Number:
        x = _NUMBERS[x._dtype.kind]
    return dtypes.promote(dtype, x._dtype) if isinstance(x, Tensor) else dtypes.promote_scalar(dtype, x)


def dtype_of_numbers(xs: Sequence[Any]) -> DType:
    """The dtype that keeps numbers and chosen numbers."""
    kinds = [x._dtype.kind if x.__class__ is Number else _kind_of(x) for x in xs]
    kind = max(kinds, key="biuOfc".index)
    return dtypes.bool if kind == "b" else _WIDEST.get(kind, dtypes.int64)


def _kind_of(x: Any) -> str:
    return ("i" if isinstance(x, int) else "f") if stands(x) else np.asarray(x).dtype.kind


def in_dtype(x: Any, dtype: DType, like: Backend, name: str) -> Tensor[Any]:
    """A tensor, a number or a chosen number as a tensor of this dtype."""
    if x.__class__ is Number:
        return _fitted(x, dtype, name)
    if isinstance(x, Tensor):
        return cast(x, dtype)
    return wrap(like.full(shape=(), value=fitting(x, dtype, name), dtype=dtype), like)


def adapted(xs: Sequence[Any], name: str) -> list[Any]:
    """Operands with chosen numbers in the dtype that others give to Python's numbers; alone these get the default."""
    like = next(v for v in xs if isinstance(v, Tensor))
    others = [operand(v, like, name) if isinstance(v, np.ndarray | np.generic) else v for v in xs]
    tensors = [v for v in others if isinstance(v, Tensor) and v.__class__ is not Number]
    dtype = functools.reduce(dtypes.promote, [v._dtype for v in tensors]) if tensors else None
    found = []
    for v in others:
        if v.__class__ is Number:
            kind = v._dtype.kind
            if dtype is not None:
                wanted = available_dtype(dtype_beside(dtype, v), tensors)
            else:
                wanted = dtypes.default_on(v._device, kind) if kind in dtypes.INEXACT else v._dtype
            v = _fitted(v, wanted, name)
        found.append(v)
    return found


def _fitted(x: Tensor[Any], dtype: DType, name: str) -> Tensor[Any]:
    """A chosen number as a tensor. RangeError for an integer that does not fit, as of Python's."""
    if x._dtype.kind == "i" and dtype.kind in "iu" and dtype is not x._dtype:
        low, high = dtypes.limits(dtype)
        least, most = max(low, -(1 << 63)), min(high, (1 << 63) - 1)
        deferred_check(
            x,
            lambda v: ((v >= least) & (v <= most)).all(),
            lambda v: errors.RangeError(f"{name}: {v} does not fit in {dtype}; convert the tensor with astype"),
        )
    return cast(same(x), dtype)


def _with_numbers(name: str, x: Any, y: Any) -> Any:
    """An operator of chosen numbers: among Python's numbers it gives one again."""
    if not (is_number(x) and is_number(y)):
        return binary(name, *adapted([x, y], name))
    bounds = numbers_bounds(name, x, y)
    wide = dtype_of_numbers([x, y, 1.0 if TABLE[name].promotes is dtypes.floating else 1])  # quotients are floats
    out = binary(name, *[cast(same(v), wide) if v.__class__ is Number else v for v in (x, y)])
    return out if out._dtype.kind == "b" else chosen_number(out, bounds)


def numbers_bounds(name: str, *operands: Any) -> Any:
    """The bounds of what follows from the number of a step and Python's numbers alone; None for all else."""
    if not any([type(v) is Counter for v in operands]):
        return None
    from adjoint.counters import DIVIDING, bounds_of  # when it is needed: by loops of programs

    given = [_bounds_of_one(v) for v in operands]
    if given[-1] is None and not isinstance(operands[-1], Tensor) and name in DIVIDING and operands[-1] == 0:
        given = [(0, 0)] * 2  # a number that stands for others, and is zero now
    return None if None in given else bounds_of(name, *given)


def _bounds_of_one(v: Any) -> Any:
    if type(v) is Counter:
        return v.bounds
    if type(v) in _COUNTED:
        return v, v
    if v.__class__ in LATER and isinstance(v, int):  # whoever it stands for, it is asked whether they are as small
        return (-_SMALL, _SMALL) if -_SMALL <= v <= _SMALL else (-_WIDE, _WIDE)
    return None


_COUNTED = (int, float, bool, np.float64)
_SMALL = 1 << 31


def refuse_operand(value: Any, like: Tensor[Any], name: str) -> Any:
    """NotImplemented for an operand of a class that may know tensors, or that need only be compared; else an error.

    DeviceError for an array of another library, DtypeError for Python's own: Python would take a tensor for a number
    of repetitions of a string, if it were asked.
    """
    if (leaf := leaf_of(value)) is not None:
        raise errors.DeviceError(
            f"{name}: an array on {leaf} meets a tensor on {like._device}; move the tensor with "
            f"to_device({leaf.name!r}), or take the array over with ad.asarray(array, device={like._device.name!r})"
        )
    compare = COMPARISONS.get(TABLE[name].operator)
    if compare in (operator.eq, operator.ne) or type(value).__module__ not in ("builtins", "array", "collections"):
        return NotImplemented
    raise errors.DtypeError(
        f"{name}: expected a tensor, an array or a number, received {errors.shown(value)} of type "
        f"{type(value).__name__}; convert it to numbers first"
    )


def of_later(x: Any, place: Backend, wide: bool = False, dtype: DType | None = None) -> Tensor[Any]:
    """A tensor of a number that stands for others, as precise as of Python's."""
    whole = isinstance(x, int)
    if dtype is None:
        dtype = dtypes.int64 if whole else place.leaf.widest(dtypes.float64) if wide else dtypes.default_on(place)
    return wrap(place.full(shape=(), value=x, dtype=dtype), place)


def fitting(scalar: Any, dtype: DType, name: str) -> Any:
    """A Python scalar that the dtype can hold; the standard knows Python's booleans among booleans only.

    Beside floats, integers of more than 64 bits are floats: libraries do not take them as they are.
    Raises RangeError for an integer outside the dtype, or which no float is near to.
    """
    if scalar is True or scalar is False:
        return scalar if dtype.kind == "b" else int(scalar)
    if dtype.kind in "iu":
        if scalar.__class__ not in LATER and not np.iinfo(dtype).min <= scalar <= np.iinfo(dtype).max:
            raise errors.RangeError(
                f"{name}: {errors.shown(scalar)} does not fit in {dtype}; convert the tensor with astype"
            )
    elif scalar.__class__ is int and dtype.kind in dtypes.INEXACT and not -_WIDE <= scalar < _WIDE:
        if abs(scalar) > _LARGEST:
            raise errors.RangeError(f"{name}: {errors.shown(scalar)} is beyond all floats")
        return float(scalar)
    return scalar


def followed_by(x: Tensor[Any]) -> Backend | None:
    """The level of a running transform that tracks the tensor: of several a batch, or else the outermost."""
    level, array = x.device, x._array
    found: Backend | None = None
    while isinstance(level, Decorator):
        if level.is_fresh and not level.ended and level.is_active(array):
            if not level.differentiates:
                return level
            found = found or level
        level, array = level.inner, level.unwrap(array)
    return found


def is_concrete(x: Tensor[Any]) -> bool:
    """Whether there are values, without computing any: not where a library computes them later."""
    return x._device.is_concrete(x._array)


def has_none_yet(x: Tensor[Any]) -> bool:
    """Whether a program that is recorded now computes its values: not where a library does when it is asked."""
    return not is_concrete(x) and not isinstance(x._device.leaf, Lazy)


_WAY = "make it an argument that is no tensor, choose with ad.where or ad.cond, or compute it before"


def concrete_values(x: Any, name: str, way: str = _WAY) -> np.ndarray[Any, Any]:
    """All values of a tensor, of a batch those of every example; an array of anything else.

    For control flow, solvers, and what stands for parameters, such as a tensor of axes: nothing else looks at values.
    A lazy leaf computes them. Raises TrackedError, with the `name` of what asked and the `way` out, on a leaf that has
    none yet, DeviceError on one that never has any.
    """
    if not isinstance(x, Tensor):
        return dtypes.array_of(x, name)
    device = x._device
    leaf = device.leaf
    if not isinstance(leaf, Lazy) and leaf.computes and not device.is_concrete(x._array):
        raise errors.TrackedError(
            f"{name} asks for the values of a tensor of shape {x.shape}, and on {leaf} there are none before its "
            f"program runs: {way}"
        )
    return device.concrete_values(x._array)


def deferred_check(
    x: Tensor[Any], test: Callable[[Any], Any], error: Callable[[np.ndarray[Any, Any]], Exception]
) -> Tensor[Any]:
    """The tensor, of which all elements pass a test: now, or when they are computed, each part of them.

    The test gives one boolean, by operators and NumPy's functions: it is run on arrays of NumPy's, or where a program
    is recorded on a tensor. Neither function holds tensors: lazy leaves send them to other processes.
    """
    device, array = x._device, x._array
    if device.is_concrete(array):
        values = device.concrete_values(array)
        if values.size and not test(values):
            raise error(values)
        return x
    leaf = device.leaf
    if isinstance(leaf, Lazy):
        return wrap(device.with_primal(array, lambda below: leaf.checked(below, test, error)), device)
    checks = collecting()
    if checks is not None and x.size:
        late = wrap(device.leaf_array(array), leaf)
        checks.append(Check(test(late)._array, late._array, error))
    return x


def refuse(wrong: Any, error: Callable[[], Exception], name: str) -> bool:
    """Raises where a truth value is true; one that a program has when it runs is a check of that program.

    Whether it is known to be false. Lazy leaves compute it. `name` is who asks.
    """
    if isinstance(wrong, Tensor) and not isinstance(wrong.device.leaf, Lazy) and not is_concrete(wrong):
        deferred_check(wrong.detach(), lambda values: (~values).all(), lambda _: error())
        return False
    if concrete_values(wrong, name).any():
        raise error()
    return True


@functools.cache
def unary_of(name: str) -> Callable[[Tensor[Any]], Tensor[Any]]:
    """An elementwise primitive of one operand as a function of tensors, with promotion."""
    primitive = TABLE[name]
    direct, keeps_dtype = primitive.direct, primitive.keeps_dtype
    usual = dtypes.float64 if dtypes.float64.kind in direct else None  # which needs no look at its kind

    def body(x: Tensor[Any]) -> Tensor[Any]:
        dtype: Any = x._dtype
        if dtype is not usual and dtype.kind not in direct:
            x = cast(x, available_dtype(primitive.promoted(dtype), [x]))
            dtype = x._dtype
            if dtype.kind in primitive.identity:
                return same(x)
        device: Any = x._device
        try:
            array = (device.implementations.get(name) or device[name])(x._array)
        except Exception as error:
            fail(error, device, name, [x._array], {})
        out: Tensor[Any] = allocate(Tensor)
        out._array, out._device = array, device
        out._dtype = dtype if keeps_dtype else device.dtype_of(array)
        return out

    body.__name__ = body.__qualname__ = name
    return body


def run(name: str, operands: Sequence[Any], **parameters: Any) -> Any:
    """Run a primitive on tensors and Python scalars that already have their dtypes.

    Tensors are lifted to where they meet. A failing call is explained as a typed error. A primitive
    of several results gives a tuple.
    """
    first: Any = operands[0]
    device: Any
    arrays: Sequence[Any]
    if first.__class__ is Tensor and len(operands) == 1:
        device, arrays = first._device, (first._array,)
    else:
        device, arrays = _where_they_meet(operands)
    try:
        out = (device.implementations.get(name) or device[name])(*arrays, **parameters)
    except Exception as error:
        fail(error, device, name, arrays, parameters)
    if isinstance(out, tuple):
        return tuple([wrap(array, device) for array in out])
    if not TABLE[name].keeps_dtype or not isinstance(first, Tensor):
        return wrap(out, device)
    result: Tensor[Any] = allocate(Tensor)
    result._array, result._device, result._dtype = out, device, first._dtype
    return result


def _where_they_meet(operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The backend of tensors, and all operands as its arrays; numbers as they are."""
    device: Any = None
    arrays: list[Any] = []
    for x in operands:
        if isinstance(x, Tensor):
            if device is None:
                device = x._device
            elif x._device is not device:
                device = common_backend(*[x for x in operands if isinstance(x, Tensor)])
                return device, [lift_to(x, device) if isinstance(x, Tensor) else x for x in operands]
            arrays.append(x._array)
        else:
            arrays.append(x)
    return device, arrays


def fail(error: Exception, device: Backend, name: str, arrays: Sequence[Any], parameters: dict[str, Any]) -> NoReturn:
    """Raise the error a user should see for a primitive that failed."""
    found = _explained(error, device, name, arrays, parameters)
    if found is error:  # no error is its own cause: who follows causes, as Dask's workers do, would not come to an end
        raise error
    raise found from error


def _explained(
    error: Exception, device: Backend, name: str, arrays: Sequence[Any], parameters: dict[str, Any]
) -> Exception:
    """What the shape rule finds, or a wrap, or the error itself."""
    if not isinstance(error, errors.AdjointError) and device.leaf.lacks_memory(error):
        return errors.OutOfMemoryError(
            f"{name}: {errors.said(error) or 'there is not enough memory'}; ask for fewer elements"
        )
    vague = isinstance(error, (errors.ShapeError, errors.SingularError)) and not TABLE[name].dynamic
    if isinstance(error, errors.AdjointError) and not vague:
        return error
    specs = [Spec(tuple(a.shape), device.dtype_of(a)) if hasattr(a, "shape") else a for a in arrays]
    try:
        if not TABLE[name].dynamic:
            result_spec(TABLE[name], specs, parameters)
    except errors.ShapeError as found:
        return found if str(found).startswith(name) else type(found)(f"{name}: {found}")
    received = ", ".join(f"{s.dtype} of shape {s.shape}" if isinstance(s, Spec) else errors.shown(s) for s in specs)
    if isinstance(error, np.linalg.LinAlgError):
        fault, advice = TABLE[name].failure
        return errors.SingularError(f"{name}: {fault}; received {received}; {advice}")
    if isinstance(error, errors.AdjointError):
        return error
    refused = type(error) is RuntimeError  # as PyTorch refuses dtypes, and by nothing else that has a type of its own
    if isinstance(error, NotImplementedError) or refused:
        return errors.UnsupportedPrimitiveError(
            f"{device.leaf} cannot run the primitive {name!r} on {received}: {errors.said(error)}"
        )
    kinds: list[tuple[type[Exception], type[errors.AdjointError]]] = [
        (IndexError, errors.OutOfRangeError),
        (OverflowError, errors.RangeError),
        (TypeError, errors.DtypeError),
        (ValueError, errors.ArgumentError),
    ]
    for builtin, ours in kinds:
        if isinstance(error, builtin):
            return ours(f"{name}: {errors.said(error)}; received {received or errors.shown(parameters)}")
    return error


# --- assignment ----------------------------------------------------------------------------------


def refuse_leaf(x: Tensor[Any], what: str) -> None:
    """Leaf tensors are what gradients are asked for: they keep their value.

    The arguments of a transform's function do not matter to it as objects.
    """
    node = getattr(raw_array(x), "node", None)
    if node is not None and node.parents == () and not x._device.is_fresh:
        raise errors.GraphError(
            f"{what} on a leaf tensor of shape {x.shape}: the graph answers for its value; w.with_value(v) gives a "
            "new leaf, w.detach() a constant that can be assigned to"
        )


def change(x: Tensor[Any], value: Tensor[Any], what: str) -> None:
    """Give the object `x` a new value of the same shape, dtype and backend."""
    if value._device is not x._device:
        raise outer_error(x, value, what)
    if value.shape != x.shape:
        raise errors.ShapeError(f"{what}: the tensor has shape {x.shape} and the result {value.shape}; shapes stay")
    if value._dtype is not x._dtype:
        raise errors.DtypeError(
            f"{what}: the tensor is {x._dtype} and the result {value._dtype}; dtypes stay, so write x = x.astype(...)"
        )
    x._array = value._array
