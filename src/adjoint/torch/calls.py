"""From the face's tensors to adjoint's primitives and functions, and back; and what in-place operations share."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np

import adjoint as ad
from adjoint import errors
from adjoint.backend import Decorator
from adjoint.graph.nodes import var_of
from adjoint.tensor import Tensor as Inner
from adjoint.tensor import wrap
from adjoint.torch import devices, lifted, state
from adjoint.torch.dtypes import check_cast, default_float, of_numpy, result_dtype
from adjoint.torch.graph import keep, label, marks_of, owner
from adjoint.torch.memory import counter_of
from adjoint.torch.refusals import OVERLAP, TooLongError
from adjoint.torch.state import modes
from adjoint.torch.tensor import (
    INNER,
    LEVEL,
    Tensor,
    array_on,
    copied,
    is_elsewhere,
    is_lifted,
    leaf_of,
    level_of,
    meeting,
    next_number,
    of,
    unnoticed,
    values,
    where_is,
)
from adjoint.torch.writes import check_write, refuse_inference, store

NUMBERS = (bool, int, float, complex)
KNOWN = (Tensor, *NUMBERS, np.number, np.bool_)  # what operators take
LEAST, MOST = -(1 << 63), (1 << 64) - 1  # of the integers that PyTorch takes for numbers


def check_size(value: Any) -> None:
    """Raise PyTorch's error for an integer of more than 64 bits in the place of a number."""
    if value.__class__ is int and not LEAST <= value <= MOST:
        raise TooLongError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")


class LinAlgError(RuntimeError):
    """A matrix that has not got what was asked for, such as an inverse."""


def off() -> bool:
    """Whether nothing is recorded now."""
    return bool(state.special) and not modes.enabled


def number(value: Any, dtype: Any) -> Any:
    """One of Python's numbers, such as what a tensor is filled with. Raises RuntimeError where it does not fit."""
    check_size(value)
    if value.__class__ is complex and dtype.kind in "iuf":
        if value.imag:
            raise overflow(dtype)
        value = value.real
    if dtype.kind in "fc":
        parts = (value.real, value.imag) if value.__class__ is complex else (value,)
        if dtype in _LARGEST and any([_LARGEST[dtype] < abs(part) < math.inf for part in parts]):
            raise overflow(dtype)
        return INNER.as_scalar(value, dtype) if value else np.asarray(value, dtype)
    if dtype.kind in "iu":
        least, most = _INTEGERS[dtype]
        if dtype.kind == "u" and value.__class__ is not float:
            least = -most  # negative integers count from the other end
        if not least <= value <= most:  # a nan, too, is no integer
            raise overflow(dtype)
        value = int(value) % (most + 1) if least == -most else int(value)
    return np.asarray(value, dtype)


_INTEGERS = {
    np.dtype(n): (int(np.iinfo(n).min), int(np.iinfo(n).max)) for n in ("uint8", "int8", "int16", "int32", "int64")
}
_LARGEST = {np.dtype(name): float(np.finfo(name).max) for name in ("float16", "float32", "complex64")}


def beside_tensors(value: Any, dtype: Any) -> Any:
    """One of Python's numbers as an operand of operators, which take the last bits of integers that do not fit."""
    check_size(value)
    if dtype.kind in "fc" and value:
        return INNER.as_scalar(value, dtype)
    if dtype.kind in "iu" and value.__class__ is int:
        return np.asarray(value % (MOST + 1), np.uint64).astype(dtype)
    return number(value, dtype)


def element(value: Any, dtype: Any) -> Any:
    """One of Python's numbers where PyTorch makes a tensor of it first: what half has no place for is infinite."""
    return beside_tensors(value, dtype) if dtype == np.float16 else number(value, dtype)


# what PyTorch calls types to which a number does not go
_IN_CPP = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "float16": "c10::Half", "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def overflow(dtype: Any) -> RuntimeError:
    """The error of a number that has no place in a type."""
    return RuntimeError(f"value cannot be converted to type {_IN_CPP[of_numpy(dtype).name]} without overflow")


def check_factor(what: str, value: Any, operands: Any) -> None:
    """Raise PyTorch's error for a factor such as `alpha` that does not go into the type that operands meet in."""
    kind = result_dtype(operands).kind
    if isinstance(value, bool) and kind != "b":
        raise RuntimeError(f"Boolean {what} only supported for Boolean results.")
    if isinstance(value, (float, complex)) and kind in "biu":
        raise RuntimeError(f"For integral input tensors, argument {what} must not be a floating point number.")
    if isinstance(value, complex) and kind != "c":
        raise RuntimeError(f"For non-complex input tensors, argument {what} must not be a complex number.")


def factor(value: Any, dtype: Any) -> Any:
    """A factor such as `beta` in a type: of integers without its fraction. Raises RuntimeError for a complex one of
    reals."""
    check_size(value)
    if isinstance(value, complex) and dtype.kind != "c":
        if value.imag:
            raise overflow(dtype)
        value = value.real
    if dtype.kind == "b":
        return int(value.real)
    found = number(value, np.dtype("float32") if dtype == np.float16 else dtype)  # in which halves are computed
    return int(found) if dtype.kind in "iu" else value


def operand(value: Any, name: str, place: str = "other") -> Any:
    """A tensor or a number; NumPy's numbers count as Python's, and its truths as floats, as in PyTorch."""
    if isinstance(value, (np.number, np.bool_)):
        return float(value) if isinstance(value, np.bool_) else value.item()
    if isinstance(value, (Tensor, *NUMBERS)):
        check_size(value)
        return value
    raise TypeError(f"{name}(): argument '{place}' must be Tensor or Number, not {type(value).__name__}")


def number_of(value: Any, name: str, place: str, at: int = 0) -> Any:
    """A number, which a tensor of one element stands for as well. Raises TypeError where its gradient would be lost."""
    if not isinstance(value, Tensor):
        check_size(value)
        return value
    if value.ndim or value.requires_grad:
        position = f" (position {at})" if at else ""
        raise TypeError(f"{name}(): argument '{place}'{position} must be Number, not Tensor")
    return value.item()


def only_number(value: Any, name: str, place: str, at: int = 0) -> Any:
    """The same. Raises TypeError for what is no number."""
    found = number_of(value, name, place, at)
    if isinstance(found, (*NUMBERS, np.number, np.bool_)):
        return found
    position = f" (position {at})" if at else ""
    raise TypeError(f"{name}(): argument '{place}'{position} must be Number, not {type(value).__name__}")


def run(
    name: str, operands: Any, made: str | None = None, *, floating: bool = False, dtype: Any = None, **parameters: Any
) -> Tensor:
    """A primitive on tensors and numbers, which meet in one dtype by PyTorch's rules."""
    dtype = dtype or result_dtype(operands)
    if floating and dtype.kind in "biu":
        dtype = default_float()
    operands = [x if isinstance(x, Tensor) else beside_tensors(x, dtype) for x in operands]
    start = next_number()
    quiet = off()
    where: Any = None
    if any([isinstance(x, Tensor) and is_elsewhere(x) for x in operands]):
        if any([isinstance(x, Tensor) and is_lifted(x) for x in operands]):
            try:
                return lifted.run(name, operands, dtype, parameters, quiet)
            except Exception as error:
                raise explained(error, operands) from None
        where = meeting([x for x in operands if isinstance(x, Tensor)])
    B = (INNER if quiet else LEVEL) if where is None else where.leaf if quiet else where.level
    arrays = []
    cast = False
    for x in operands:
        if isinstance(x, Tensor):
            array = (values(x) if quiet else x._here) if where is None else array_on(x, where, quiet)
            if x._dtype is not dtype:
                array, cast = B.astype(array, dtype=dtype), True
            arrays.append(array)
        else:
            arrays.append(x if where is None else where.constant(x))
    try:
        out = B[name](*arrays, **parameters)
    except Exception as error:
        raise explained(error, operands) from None
    if quiet:
        return of(var_of(out, None))
    if out.node is not None and (cast or made is not None):
        label(out.node, made or name.capitalize(), start if cast else None)
    return of(out)


def explained(error: Exception, operands: Any) -> Exception:
    """PyTorch's error for operands that do not broadcast, or the error itself."""
    shapes = [tuple(x.shape) for x in operands if isinstance(x, Tensor)]
    return misfit(*shapes) or translated(error)


def misfit(*shapes: tuple[int, ...]) -> RuntimeError | None:
    """PyTorch's error for shapes that do not broadcast, or None if they do."""
    a: tuple[int, ...] = ()
    for b in shapes:
        for i in range(1, min(len(a), len(b)) + 1):
            if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
                return RuntimeError(
                    f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton "
                    f"dimension {max(len(a), len(b)) - i}"
                )
        a = np.broadcast_shapes(a, b)
    return None


def refuse_misfit(*tensors: Tensor) -> None:
    """Raise PyTorch's RuntimeError for tensors that do not broadcast."""
    if (error := misfit(*[tuple(x.shape) for x in tensors])) is not None:
        raise error


def translated(error: Exception) -> Exception:
    """An error of adjoint's as the type that PyTorch raises."""
    if isinstance(error, errors.AdjointError):
        if isinstance(error, errors.EndedError):
            return RuntimeError(f"Your tensor may have escaped from inside a function being vmapped: {error}")
        if isinstance(error, errors.SingularError):
            name, _, rest = str(error).partition(": ")
            return LinAlgError(f"linalg.{name}: {_SINGULAR[name]}: {rest}" if name in _SINGULAR else str(error))
        if isinstance(error, (IndexError, NotImplementedError)):
            return error
        if isinstance(error, TypeError) and not isinstance(error, errors.DtypeError):
            return TypeError(str(error))
        return RuntimeError(_of_matrices(str(error)) if isinstance(error, errors.ShapeError) else str(error))
    if isinstance(error, TypeError) and "ufunc" in str(error):
        return NotImplementedError(f"the operation is not implemented for these types: {error}")
    return RuntimeError(str(error)) if isinstance(error, ValueError) else error


_WRONG_MATRICES = re.compile(r"(\w+): expected (?:square )?matrices, shape .* received \((\d*),? ?(.*)\)")
_SINGULAR = {
    "cholesky": "The factorization could not be completed because the input is not positive-definite",
    "inv": "The inversion could not be completed because the input matrix is singular",
    "solve": "The solver failed because the input matrix is singular",
}


def _of_matrices(text: str) -> str:
    """What adjoint says of wrong matrices, in PyTorch's words."""
    if (found := _WRONG_MATRICES.match(text)) is None:
        return text
    name = found[1]
    if not found[3]:
        return f"linalg.{name}: The input tensor A must have at least 2 dimensions."
    m, n = [found[2], *found[3].split(", ")][-2:]
    return f"linalg.{name}: A must be batches of square matrices, but they are {m} by {n} matrices"


@functools.cache
def named(path: str) -> Any:
    """A function of adjoint's by its name, `nn.softmax` for one: its module is imported when it is first called."""
    found: Any = ad
    for name in path.split("."):
        found = getattr(found, name)
    return found


def call(function: Any, made: str | None, *args: Any, **options: Any) -> Any:
    """A function of adjoint's, or its name, on the face's tensors. What it records has one name, `made`."""
    if function.__class__ is str:
        function = named(function)
    start = next_number()
    quiet = off()
    owners: list[Any] = []
    operands: list[Any] = []
    where = _where((args, list(options.values()))) if devices.in_use else None

    def given(value: Any) -> Any:
        if isinstance(value, Tensor):
            if is_lifted(value):
                return lifted.inner_of(value)
            if where is not None:
                array = array_on(value, where, quiet)
                owners.append(array if quiet else array.value)
                return wrap(array, where.leaf if quiet else where.level, value._dtype)
            array = values(value) if quiet else value._here
            owners.append(owner(array if quiet else array.value))
            if not quiet and value._dtype.kind in "fc":
                operands.append(array.node)
            return wrap(array, INNER if quiet else LEVEL, value._dtype)
        if value.__class__ in (list, tuple) and any([isinstance(v, (Tensor, list, tuple)) for v in value]):
            return type(value)([given(v) for v in value])
        return value

    def taken(value: Any) -> Any:
        if isinstance(value, Inner):
            here, there = (INNER, LEVEL) if where is None else (where.leaf, where.level)
            device = value._device
            if device is there or device is here:
                array = value._array if device is there else var_of(value._array, None)
            elif isinstance(device, Decorator) and device is not LEVEL:
                return lifted.to_face(lifted.without_history(value) if quiet else value)
            else:  # of what was made of numbers alone
                array = var_of(here.from_numpy(value.detach().numpy(), copy=False), None)
            return _own(array)
        if isinstance(value, (list, tuple)):
            return tuple([taken(v) for v in value])
        return value

    def _own(array: Any) -> Tensor:
        """What is only another look at an operand's memory is copied: to PyTorch it is a tensor of its own."""
        value = array.value
        if not isinstance(value, np.generic):
            its = owner(value)
            if any([its is known for known in owners]):
                array = var_of(copied(value), array.node)
        node = array.node
        if node is not None and node.number <= start:  # an operand as it is
            level = LEVEL if where is None else where.level
            node = level.reshape(array, shape=tuple(value.shape)).node
            array = var_of(array.value, node)
        if made is not None and node is not None and node.number > start:
            known = operands if len(operands) > 1 and where is None else None
            label(node.first if node.result is not None else node, made, start, known)
        return of(array)

    try:
        return taken(function(*[given(a) for a in args], **{k: given(v) for k, v in options.items()}))
    except errors.AdjointError as error:
        fits = not isinstance(error, errors.ShapeError) or "not broadcast" not in str(error)
        raise (translated(error) if fits else explained(error, [*args, *options.values()])) from error
    except RecursionError as error:
        raise ValueError("too many dimensions, or a list that contains itself") from error


def without_values(found: Any, start: int) -> Any:
    """Results of a function for which PyTorch saves nothing: they can be differentiated again. It began at a number."""
    for x in found if isinstance(found, tuple) else (found,):
        if not is_lifted(x) and (node := x._array.node) is not None and node.number > start:
            keep(node, start)
    return found


def without_slope(made: str, value: Tensor, *inputs: Any) -> Any:
    """A value whose derivatives by the inputs are zero. It has their history all the same, as PyTorch's has."""

    def found(v: Any, *xs: Any) -> Any:
        for x in xs:  # their sum has any shape
            v = ad.where(False, ad.astype(ad.sum(ad.real(x) if x.dtype.kind == "c" else x), v.dtype), v)
        return v

    tracked = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not tracked:
        return value
    out = call(found, made, value, *tracked)
    if not is_lifted(out) and (node := out._array.node) is not None:  # in no_grad there is none
        if len(marks_of(node).operands or ()) == len(tracked) + 1:
            marks_of(node).operands = [x._array.node for x in tracked]
    return out


def _where(given: Any) -> Any:
    """Where the tensors among arguments meet, if one is on another device than "cpu"."""
    found: list[Any] = []
    ahead, seen = [given], set()  # no recursion: lists may be deep, or contain themselves
    while ahead:
        value = ahead.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif value.__class__ in (list, tuple) and id(value) not in seen:
            seen.add(id(value))
            ahead.extend(reversed(value))
    if any([x._rare is not None and x._rare.where is not None for x in found]):
        return meeting([x for x in found if not is_lifted(x)])
    return None


def write(x: Any, function: Any, *others: Any, **options: Any) -> Any:
    """The in-place form of a function: x gets the value of `function(x, *others)`."""
    check_write(x, [*others, *options.values()])
    others = tuple([_apart(x, other) for other in others])
    start = next_number()
    out = function(x, *others, **options)
    if is_lifted(x) or is_lifted(out):
        return put_lifted(x, out)
    if out._dtype.kind == "b" and x._dtype.kind in "fc" and x.requires_grad and not off():
        numbers = of(level_of(x).astype(out._array, dtype=x._dtype))
        out = without_slope(f"{function.__name__.capitalize()}Backward0", numbers, x)
    if any([shares(x, other) for other in others]):  # what was saved of it is overwritten, too
        if out._array.node is not None and out._array.node.number > start:
            marks_of(out._array.node).in_place = True
        return put(x, out, start, next_number())
    return put(x, out, start)


def shares(x: Any, other: Any) -> bool:
    """Whether another value is the same tensor, or one on its memory."""
    if not isinstance(other, Tensor):
        return False
    return other is x or (
        x._rare is not None
        and x._rare.memory is not None
        and other._rare is not None
        and (other._rare.memory is x._rare.memory)
    )


def _apart(x: Any, other: Any) -> Any:
    """An operand; a copy of one that `.data` keeps from the count of x's writes, so that what is saved of it stays."""
    if other is x or not shares(x, other) or counter_of(x) is counter_of(other):
        return other
    array = other._array
    return unnoticed(var_of(copied(array.value), array.node))


def put(x: Any, out: Tensor, start: int, number: int | None = None) -> Any:
    """Give x the value of a result, in its own dtype. What nodes below a number saved of x is overwritten."""
    if is_lifted(x) or is_lifted(out):
        return put_lifted(x, out)
    if tuple(out.shape) != tuple(x.shape):
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(out.shape)}")
    if devices.in_use and where_is(x) is not where_is(out):
        raise devices.different(where_is(x), where_is(out))
    array = out._array
    if out._dtype is not x._dtype:
        check_cast(out._dtype, x._dtype)
        array = level_of(x).astype(array, dtype=x._dtype)
    if array.node is not None and array.node.number <= start:  # an operand itself: the result is a node of its own
        array = level_of(x).reshape(array, shape=tuple(array.shape))
        array.node.marks = "CopyBackwards"
    if x._rare is None or x._rare.memory is None:
        array = _laid_as(x._array.value, array)
    store(x, array, start if number is None else number)
    return x


def _laid_as(old: Any, array: Any) -> Any:
    """A value in the order that another one has in memory: a write does not change the strides of its target."""
    value = array.value
    if value.__class__ is not np.ndarray or old.__class__ is not np.ndarray or value.strides == old.strides:
        return array
    laid = np.empty_like(old)
    laid[...] = value
    return var_of(laid, array.node)


def put_lifted(x: Any, out: Tensor) -> Any:
    """The same where one of the two is on a level of a function transform."""
    left = lifted.write(x, out)
    return x if left is None else put(x, left, next_number())


def _check_out(out: Any, result: Tensor, operands: Any) -> None:
    """Raise PyTorch's errors for what a result cannot be written to."""
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if lifted.is_dual(result) or lifted.is_dual(out):
        raise NotImplementedError(
            "Trying to use forward AD with a function that does not support it because it has out=: its tangent would "
            "be lost"
        )
    if result.requires_grad or (out.requires_grad and modes.enabled):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    refuse_inference(out)
    check_cast(result._dtype, out._dtype)
    check_write(out, operands)
    rare = out._rare
    if rare is not None and rare.memory is not None and tuple(out.shape) != tuple(result.shape):
        parts = [p for x in operands for p in (x if isinstance(x, (list, tuple)) else (x,))]
        if any([shares(out, p) for p in parts]):
            raise RuntimeError(OVERLAP)
        if rare.parent is not None or rare.memory.buffer is not None:
            raise NotImplementedError(
                "adjoint.torch: out= of another shape that is a view, or shares memory with NumPy, is not there"
            )


def into(out: Any, result: Any, operands: Any = ()) -> Any:
    """The `out=` argument: the result is written to a tensor, which takes its shape."""
    if out is None:
        return result
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            found = f"{len(out)}" if isinstance(out, (tuple, list)) else type(out).__name__
            raise TypeError(f"argument 'out' must be a tuple of {len(result)} Tensors, but got {found}")
        for o, r in zip(out, result, strict=True):  # before any of them is written to
            _check_out(o, r, operands)
        for o, r in zip(out, result, strict=True):
            into(o, r, operands)
        make: Any = getattr(result, "_make", tuple)  # a pair keeps its names
        return make(out)
    _check_out(out, result, operands)
    start = next_number()
    if tuple(out.shape) != tuple(result.shape):
        if out._rare is not None and out._rare.memory is not None:
            out.resize_(tuple(result.shape))
            return put(out, result, start)
        out._array = var_of(leaf_of(values(out)).full(shape=tuple(result.shape), value=0, dtype=out._dtype), None)
    return put(out, result, start)
