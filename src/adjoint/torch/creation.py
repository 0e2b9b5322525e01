"""Tensors out of values, of nothing, of random numbers and of NumPy's arrays."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from typing import Any

import numpy as np

from adjoint import conventions, errors
from adjoint.torch import lifted, overriding, state
from adjoint.torch.calls import call, check_size, into, number, number_of, only_number, overflow, without_slope
from adjoint.torch.devices import chosen
from adjoint.torch.dtypes import (
    DTYPES,
    Size,
    default_complex,
    default_float,
    dtype_of_number,
    numpy_dtype,
    of_numpy,
    result_dtype,
    strided,
)
from adjoint.torch.dtypes import layout as Layout
from adjoint.torch.dtypes import memory_format as MemoryFormat
from adjoint.torch.generators import apart, drawn_apart, in_parts, source
from adjoint.torch.lists import array_of
from adjoint.torch.memory import of_numpy_array
from adjoint.torch.operators import FUNCTIONS, METHODS, function
from adjoint.torch.state import modes
from adjoint.torch.tensor import Tensor, adopt, beside, constant, is_lifted, looked, placed


def _check_tensor(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


def check_placing(name: str, layout: Any, pin_memory: Any = None, memory_format: Any = None) -> None:
    """Raise TypeError for what does not say where elements lie, NotImplementedError for another layout than strided."""
    for word, value, kind in (
        ("layout", layout, Layout), ("pin_memory", pin_memory, bool), ("memory_format", memory_format, MemoryFormat),
    ):  # fmt: skip
        if value is not None and not isinstance(value, kind):
            wanted = "bool" if kind is bool else f"torch.{word}"
            raise TypeError(f"{name}(): argument '{word}' must be {wanted}, not {type(value).__name__}")
    if layout not in (None, strided):
        raise NotImplementedError(f"adjoint.torch: {name} has the layout torch.strided alone")


def filling(made: Any) -> Any:
    """Make it a function of the face that also takes `layout`, of which there is one, `pin_memory`, and `out`."""

    @functools.wraps(made)
    def spelled(
        *args: Any, layout: Any = None, pin_memory: bool = False, memory_format: Any = None, out: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        if overriding.used and args and isinstance(args[0], Tensor):
            given = {"layout": layout, "memory_format": memory_format} if made.__name__.endswith("_like") else {}
            given = {**options, **{name: value for name, value in given.items() if value is not None}}
            if (found := overriding.overridden(spelled, args, given)) is not NotImplemented:
                return found
        check_placing(made.__name__, layout, pin_memory, memory_format)
        if out is not None and made.__name__.endswith("_like"):
            raise TypeError(f"{made.__name__}() got an unexpected keyword argument 'out'")
        if isinstance(out, Tensor) and out._dtype.kind not in "fc" and made.__name__ in ("rand", "randn", "normal"):
            raise NotImplementedError(f"{made.__name__} is not implemented for '{out.dtype.class_name}'")
        if memory_format is not None and not made.__name__.startswith("empty") and not made.__name__.endswith("_like"):
            raise TypeError(f"{made.__name__}() got an unexpected keyword argument 'memory_format'")
        if out is not None and options.get("dtype") is None and isinstance(out, Tensor):
            options["dtype"] = out.dtype
        try:
            return into(out, made(*args, **options))
        except MemoryError as error:
            raise RuntimeError(f"{made.__name__}(): can't allocate memory: {error}") from error
        except TypeError:  # of what is no tensor, but overrides
            if (found := overriding.overridden(spelled, args, options)) is not NotImplemented:
                return found
            raise

    return function(spelled)


def finished(value: Any, dtype: Any, requires_grad: bool, where: Any = None) -> Tensor:
    there: Any = None if where is None and not state.special else chosen(where)
    try:
        out = constant(np.asarray(value, dtype)) if there is None else placed(np.asarray(value, dtype), there)
    except errors.AdjointError as error:
        raise TypeError(f"Cannot make a tensor of this type on the device: {error}") from error
    if requires_grad is not None and requires_grad.__class__ is not bool:
        raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if requires_grad and out._dtype.kind not in "fc":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return out.requires_grad_() if requires_grad else out


@function
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A tensor with these values: a copy.

    >>> import adjoint.torch as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    given = numpy_dtype(dtype)
    check_placing("tensor", None, pin_memory)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        device = data.device if device is None else device
        data = looked(data)
    if not isinstance(data, (np.ndarray, np.generic)):
        return finished(array_of(data, given), None, requires_grad, device)
    of_numpy(data.dtype)
    return finished(np.array(data, dtype=given), None, requires_grad, device)


def legacy(cls: type, *args: Any, kind: Any = None, **options: Any) -> Any:
    """`torch.Tensor(...)`: sizes, or values in the default type."""
    there, kind = chosen(options.pop("device", None)), kind or default_float()
    if options.keys() & {"size", "data"} and not args:
        args = tuple(options.values())
    if len(args) == 1 and isinstance(args[0], Tensor):
        if type(args[0]) is not Tensor:  # of a subclass, or a parameter
            args = (args[0].as_subclass(Tensor),)
        if args[0]._dtype is not kind and cls is Tensor and kind is not default_float():
            raise TypeError(f"expected a tensor of {of_numpy(kind)}, but got one of {args[0].dtype}")
        out = args[0] if cls is Tensor else args[0].detach()
    elif len(args) == 1 and not isinstance(args[0], Size) and not _is_size(args[0]):
        out = placed(_values_of(args[0], kind), there)
    else:
        try:
            out = placed(np.zeros(sizes_of(args) if args else 0, kind), there)
        except MemoryError as error:
            raise RuntimeError(f"new(): can't allocate memory: {error}") from error
    if cls is not Tensor:
        out.__class__ = cls
    return out


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _values_of(data: Any, kind: Any) -> Any:
    """Values in a type. Raises TypeError for what is no sequence, and for floating tensors among integers."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, (list, tuple, range, np.ndarray)):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    if isinstance(data, np.ndarray):
        of_numpy(data.dtype)
        return data.astype(kind)
    return array_of(data, kind)


@adopt
class _Made:
    def __new__(cls, *args: Any, **options: Any) -> Any:
        return legacy(cls, *args, **options)


class _OfType(type):
    """The class of `FloatTensor` and its like, which have no tensors of their own."""

    kind: Any

    @property
    def dtype(cls) -> Any:
        """The type of the tensors that it makes."""
        return of_numpy(cls.kind)

    def __call__(cls, *args: Any) -> Any:
        return legacy(Tensor, *args, kind=cls.kind)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x._dtype is cls.kind


def _new(self: Tensor, *args: Any, device: Any = None, size: Any = None) -> Any:
    """A tensor of the same type: of sizes, or of values."""
    made = of_type(self.dtype.class_name)(*(args if size is None else size))
    return made if device is None else made.to(device)


METHODS["new"] = _new


def of_type(name: str) -> Any:
    """`torch.FloatTensor` for "Float", which makes tensors of its type and knows them; None for another name."""
    found = next((d for d in DTYPES.values() if d.class_name == name), None)
    return None if found is None else _OfType(f"{name}Tensor", (), {"kind": found.of_numpy, "__module__": "torch"})


@function
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """The tensor itself, one that shares the memory of NumPy's array, or a new one of other values."""
    if isinstance(data, Tensor):
        return data.to(device, dtype=dtype)
    there = chosen(device)
    if there is None and isinstance(data, np.ndarray) and (dtype is None or numpy_dtype(dtype) == data.dtype):
        return from_numpy(data)
    return tensor(data, dtype=dtype, device=device)


@function
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Any:
    """`as_tensor`, or a copy; with `copy=False` an error where there would be one."""
    for what, flag in (("copy", copy), ("requires_grad", requires_grad)):
        if flag is not None and flag.__class__ is not bool:
            raise TypeError(f"asarray(): argument '{what}' must be bool, not {type(flag).__name__}")
    given = obj.detach() if requires_grad is False and isinstance(obj, Tensor) and obj.requires_grad else obj
    made = as_tensor(given, dtype, device)
    shares = made is given or (isinstance(obj, np.ndarray) and np.shares_memory(looked(made), obj))
    if copy is False and not shares:
        raise ValueError("can't alias tensor or array of this type or on this device, but copy=False was given")
    if copy and shares:
        made = made.clone()
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


@function
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares the memory of an array: what is written to one is in the other."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if any([s < 0 for s in ndarray.strides]):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().)"
        )
    of_numpy(ndarray.dtype)
    return of_numpy_array(ndarray)


def sizes_of(size: Any) -> tuple[int, ...]:
    """Sizes that are given one by one, or as one sequence."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    elif len(size) == 1 and isinstance(size[0], Tensor) and size[0].ndim:
        raise TypeError("argument 'size' must be tuple of ints, not Tensor")
    out = tuple([n if n.__class__ is int else size_of(n) for n in size])
    if any([n < 0 for n in out]):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {errors.shown(min(out))}: {errors.shown(list(out))}"
        )
    if any([n > 1 << 62 for n in out]) or math.prod([n for n in out if n]) > 1 << 60:
        if max(out) >= 1 << 63:
            raise TypeError(
                f"argument 'size' failed to unpack: Overflow when unpacking long long: {errors.shown(list(out))}"
            )
        if 0 not in out:
            raise RuntimeError(f"Storage size calculation overflowed with sizes={errors.shown(list(out))}")
    return out


def size_of(value: Any) -> int:
    """A size that is a number of NumPy's, or a tensor of one integer. Raises TypeError for what is no integer."""
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise TypeError(f"argument 'size' must be tuple of ints, but found element of type {type(value).__name__}")


def _count(name: str, n: Any, what: str = "n", place: int = 1) -> int:
    """A number of elements. Raises TypeError for what is no integer."""
    try:
        return n if n.__class__ is int else size_of(n)
    except TypeError:
        raise TypeError(f"{name}(): argument '{what}' (position {place}) must be int, not {type(n).__name__}") from None


def _once(name: str, given: Any, size: Any) -> tuple[int, ...]:
    """Sizes that are given one by one, or by name."""
    if given and size is not None:
        raise TypeError(f"{name}() got multiple values for argument 'size'")
    if not given and size is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    if len(given) == 1 and isinstance(given[0], Tensor) and given[0].ndim == 1 == given[0].numel():
        given = (given[0].reshape(()),)  # which stands for one size
    return sizes_of(given or (size,))


def check_drawn(name: str, kind: Any, random: bool = True) -> None:
    """Raise NotImplementedError for integers where floating numbers are drawn."""
    if random and kind.kind not in "fc":
        code = "check_uniform_bounds" if name == "rand" else "normal_kernel_cpu"
        raise NotImplementedError(f"\"{code}\" not implemented for '{of_numpy(kind).class_name}'")


def _refuse_kinds(name: str, kind: Any, kinds: str) -> None:
    """Raise NotImplementedError for a type that a function does not make."""
    if kind.kind in kinds:
        raise NotImplementedError(f"\"{name}\" not implemented for '{of_numpy(kind).class_name}'")


_PARTS = {"randn": math.sqrt(0.5)}  # by how much a part of a complex number is less: its variance is 1


def _of_sizes(name: str, make: Any, *, random: bool = False) -> Any:
    def _check_generator(name: str, generator: Any) -> None:
        if generator is not None and not random:
            raise TypeError(f"{name}() got an unexpected keyword argument 'generator'")

    def made(
        *given: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None,
        generator: Any = None,
    ) -> Tensor:  # fmt: skip
        sizes = _once(name, given, size)
        _check_generator(name, generator)
        kind = numpy_dtype(dtype) or default_float()
        check_drawn(name, kind, random)
        draw = in_parts(make, kind, _PARTS.get(name, 1.0)) if random else make
        if random and apart():
            return drawn_apart(draw, sizes, generator, kind)
        return finished(draw(sizes, generator), kind, requires_grad, device)

    def like(
        input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, generator: Any = None
    ) -> Tensor:
        _check_tensor(f"{name}_like", input)
        _check_generator(f"{name}_like", generator)
        kind = numpy_dtype(dtype) or input._dtype
        check_drawn(name, kind, random)
        draw = in_parts(make, kind, _PARTS.get(name, 1.0)) if random else make
        if random and apart():
            return drawn_apart(draw, tuple(input.shape), generator, kind)
        value = draw(tuple(input.shape), generator)
        out = finished(value, kind, requires_grad, input.device if device is None else device)
        return out if random else lifted.as_many(out, lifted.examples_of(input))

    def new(
        self: Tensor, *given: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None,
        layout: Any = None, pin_memory: bool = False,
    ) -> Tensor:  # fmt: skip
        check_placing(f"new_{name}", layout, pin_memory)
        sizes = _once(f"new_{name}", given, size)
        out = finished(
            make(sizes, None),
            numpy_dtype(dtype) or self._dtype,
            requires_grad,
            self.device if device is None else device,
        )
        return lifted.as_many(out, lifted.examples_of(self))

    made.__name__ = made.__qualname__ = name
    like.__name__ = like.__qualname__ = f"{name}_like"
    filling(like)
    made = filling(made)
    if name in ("zeros", "ones", "empty"):
        METHODS[f"new_{name}"] = new
    return made


zeros: Any = _of_sizes("zeros", lambda size, _: np.zeros(size))
ones: Any = _of_sizes("ones", lambda size, _: np.ones(size))
empty: Any = _of_sizes("empty", lambda size, _: np.zeros(size))
rand: Any = _of_sizes("rand", lambda size, generator: source(generator, apart=True).random(size), random=True)
randn: Any = _of_sizes(
    "randn", lambda size, generator: source(generator, apart=True).standard_normal(size), random=True
)


@filling
def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    if isinstance(size, (int, np.integer)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    fill = only_number(fill_value, "full", "fill_value", 2)
    kind = numpy_dtype(dtype) or (fill_value._dtype if isinstance(fill_value, Tensor) else dtype_of_number(fill))
    return finished(np.full(sizes_of((size,)), number(fill, kind), kind), kind, requires_grad, device)


@filling
def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    _check_tensor("full_like", input)
    kind = numpy_dtype(dtype) or input._dtype
    made = np.full(tuple(input.shape), number(only_number(fill_value, "full_like", "fill_value", 2), kind), kind)
    return lifted.as_many(
        finished(made, kind, requires_grad, input.device if device is None else device), lifted.examples_of(input)
    )


@filling
def arange(
    *args: Any, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, requires_grad: bool = False,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers from a start up to an end, which is left out.

    >>> import adjoint.torch as torch
    >>> torch.arange(4)
    tensor([0, 1, 2, 3])
    """
    if len(args) == 1 and end is None:
        end = args[0]
    elif args:
        start, end, step = (*args, *(end, step)[len(args) - 1 :])
    if end is None:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    start, end, step = (only_number(v, "arange", "end") for v in (start, end, step))
    if any([isinstance(v, complex) for v in (start, end, step)]):
        raise overflow(np.dtype("float64"))
    if not math.isfinite(start) or not math.isfinite(end):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    floating = any([isinstance(v, float) for v in (start, end, step)])
    kind = numpy_dtype(dtype) or (default_float() if floating else np.dtype("int64"))
    _refuse_kinds("arange_cpu", kind, "bc")
    if not (step > 0 or step < 0):  # nor is it nan
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if kind == np.int64:
        start, end, step = (_whole(v, dtype) for v in (start, end, step))
        if not step:
            raise ValueError("step must be nonzero")
    count = math.ceil((end - start) / step)  # of small integers, too, before the fractions go
    return finished(_whole(start, dtype) + np.arange(count) * _whole(step, dtype), kind, requires_grad, device)


def _whole(value: Any, dtype: Any) -> Any:
    """A number of a range of integers. Raises RuntimeError for one that is none of 64 bits."""
    return int(number(value, np.dtype("int64"))) if dtype is not None and numpy_dtype(dtype).kind in "iu" else value


def _ends(name: str, start: Any, end: Any, steps: Any) -> list[Any]:
    """Both ends as numbers. Raises TypeError for tensors that are tracked, which PyTorch gives no gradient."""
    if not isinstance(steps, (int, np.integer)):
        raise TypeError(f"{name}() received an invalid combination of arguments: steps is an integer, not {steps!r}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    axes = [x.ndim if isinstance(x, Tensor) else 0 for x in (start, end)]
    if any(axes):
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {axes[0]} dimension(s) and "
            f"end with {axes[1]} dimension(s)."
        )
    if modes.enabled and any([isinstance(x, Tensor) and x.requires_grad for x in (start, end)]):
        raise TypeError(
            f"{name}(): the ends have no gradient here, and one of them requires it; multiply torch.{name}(0, 1, ...) "
            "by what is tracked, or detach it"
        )
    check_size(start)
    check_size(end)
    return [x.item() if isinstance(x, Tensor) else x for x in (start, end)]


@filling
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    steps = steps if not isinstance(steps, Tensor) or steps.ndim else size_of(steps)
    start, end = _ends("linspace", start, end, steps)
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    kind = numpy_dtype(dtype) or (default_complex() if is_complex else default_float())
    if is_complex and kind.kind != "c":
        raise RuntimeError(
            f"torch.linspace(): inferred dtype {default_complex()} can't be safely cast to passed dtype {kind}"
        )
    _refuse_kinds("linspace_cpu", kind, "b")
    first, last = (number(x, kind) for x in (start, end))
    made = np.linspace(first, last, steps) if kind.kind in "iu" else np.linspace(start, end, steps)
    return finished(made, kind, requires_grad, device)


@filling
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, requires_grad: bool = False,
    device: Any = None,
) -> Tensor:  # fmt: skip
    start, end = (_whole(x, dtype) for x in _ends("logspace", start, end, steps))
    made = np.logspace(start, end, steps, base=base)
    return finished(made, numpy_dtype(dtype) or default_float(), requires_grad, device)


@filling
def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    n, m = _count("eye", n), None if m is None else _count("eye", m, "m", 2)
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return finished(np.eye(n, m), numpy_dtype(dtype) or default_float(), requires_grad, device)


@function
def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    check_placing("scalar_tensor", layout, pin_memory)
    kind = numpy_dtype(dtype) or default_float()
    return finished(number(only_number(s, "scalar_tensor", "s"), kind), kind, requires_grad, device)


def _bound(value: Any, place: str) -> int:
    """A bound of integers. Raises TypeError for what is none."""
    value = number_of(value, "randint", place) if isinstance(value, Tensor) else value
    if not isinstance(value, (int, np.integer)):
        raise TypeError(f"randint(): argument '{place}' must be int, not {type(value).__name__}")
    bound = int(value)
    if not -(1 << 63) <= bound < 1 << 63:
        raise ValueError("randint(): Overflow when unpacking long long")
    return bound


@filling
def randint(
    *args: Any, generator: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None, **named: Any
) -> Tensor:
    every = ("low", "high", "size")
    names = every[1:] if len(args) + len(named) == 2 else every
    given = {**dict(zip([n for n in names if n not in named], args, strict=False)), **named}
    if len(args) + len(named) > 3 or given.keys() != {*names}:
        raise TypeError(f"randint() received an invalid combination of arguments - got {(*args, *named)}")
    low, high = (_bound(given.get(n, 0), n) for n in ("low", "high"))
    size = given["size"]
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    make: Any = lambda size, generator: source(generator, apart=True).integers(low, high, size)
    sizes, kind = sizes_of((size,)), numpy_dtype(dtype) or np.dtype("int64")
    if kind.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if kind.kind == "b" and not 0 <= low < high <= 2:
        raise RuntimeError("from or to - 1 is out of bounds for bool")
    if kind.kind in "iu" and not int(np.iinfo(kind).min) <= low < high <= int(np.iinfo(kind).max) + 1:
        raise RuntimeError(f"from or to - 1 is out of bounds for {of_numpy(kind).name}")
    if apart():
        return drawn_apart(make, sizes, generator, kind)
    return finished(make(sizes, generator), kind, requires_grad, device)


@filling
def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    kind, n = numpy_dtype(dtype) or np.dtype("int64"), _count("randperm", n)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    _refuse_kinds("randperm", kind, "bc")
    number(max(n - 1, 0), kind)
    if apart():
        orders = lambda size, g: source(g, apart=True).permuted(np.broadcast_to(np.arange(n), size), axis=-1)
        return drawn_apart(orders, (n,), generator, kind)
    return finished(source(generator).permutation(n), kind, requires_grad, device)


@filling
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers of a mean and a standard deviation each."""
    for what, flag in (("mean", mean), ("std", std)):
        if not isinstance(flag, Tensor):
            only_number(flag, "normal", what)
    if size is not None and not isinstance(size, (tuple, list)):
        raise TypeError(f"normal(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    if requires_grad.__class__ is not bool:
        raise TypeError(f"normal(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if size is None:
        size = np.broadcast_shapes(*[tuple(v.shape) for v in (mean, std) if isinstance(v, Tensor)])
    if device is None:
        device = next((v.device for v in (mean, std) if isinstance(v, Tensor)), None)
    if dtype is None:
        dtype = of_numpy(result_dtype([v for v in (mean, std) if isinstance(v, Tensor)] or [1.0]))
    check_drawn("normal", numpy_dtype(dtype))
    if not is_lifted(std) if isinstance(std, Tensor) else True:
        least = looked(std).min(initial=0) if isinstance(std, Tensor) else std
        if least < 0:
            raise RuntimeError(f"normal expects all elements of std >= 0.0, but found {least}")
    made = randn(tuple(size), generator=generator, dtype=dtype, device=device)
    with state.grad_mode(False):
        made = made * std + mean
    number = isinstance(mean, Tensor) + 2 * isinstance(std, Tensor)
    made = without_slope(f"NormalBackward{number}", made, mean, std)
    return made.requires_grad_() if requires_grad else made  # type: ignore[no-any-return]


@function
@overriding.asking
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """One with the probability of each element, or p, else zero."""
    _check_tensor("bernoulli", input)
    p = number_of(p, "bernoulli", "p", 2)
    if input._dtype.kind == "c" or (p is None and input._dtype.kind != "f"):
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{input.dtype.class_name}'")
    if out is not None:
        return into(out, bernoulli(input, p, generator=generator))  # type: ignore[no-any-return]
    if apart() or is_lifted(input):
        below = FUNCTIONS["rand_like"](input, generator=generator) < (input if p is None else p)
        return below.to(dtype=input._dtype)  # type: ignore[no-any-return]
    chance = looked(input) if p is None else p
    if not np.all((chance >= 0) & (chance <= 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    drawn = (source(generator).random(tuple(input.shape)) < chance).astype(input._dtype)
    chosen_ones = beside(input, drawn)
    return without_slope("Bernoulli", chosen_ones, input)  # type: ignore[no-any-return]


@function
@overriding.asking
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """Places of a row, drawn with chances that are in proportion to its entries."""
    _check_tensor("multinomial", input)
    if replacement.__class__ is not bool:
        raise TypeError(f"multinomial(): argument 'replacement' must be bool, not {type(replacement).__name__}")
    if not isinstance(num_samples, (int, np.integer)) or isinstance(num_samples, bool):
        raise TypeError(f"multinomial(): argument 'num_samples' must be int, not {type(num_samples).__name__}")
    if out is not None:
        if isinstance(out, Tensor) and out._dtype != np.dtype("int64"):
            raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.class_name}")
        return into(out, multinomial(input, num_samples, replacement, generator=generator))  # type: ignore[no-any-return]
    if input._dtype.kind != "f":
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.class_name}")
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if apart() or is_lifted(input):
        return _multinomial_of_examples(input, num_samples, replacement)
    chances = looked(input).astype(np.float64)
    if (chances < 0).any() or not np.isfinite(chances).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (chances.sum(-1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > chances.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rows = chances.reshape(-1, chances.shape[-1])
    drawn = [source(generator).choice(r.size, num_samples, replace=replacement, p=r / r.sum()) for r in rows]
    return beside(input, np.array(drawn, np.int64).reshape(*chances.shape[:-1], num_samples))


def _multinomial_of_examples(chances: Any, count: int, replacement: bool) -> Tensor:
    """Places drawn by chances that nobody can look at."""
    drawn, dtype = FUNCTIONS["rand"], chances.dtype
    if replacement:
        uniform = drawn((*chances.shape[:-1], count), dtype=dtype)
        return call(conventions.drawn_again, None, chances, uniform)  # type: ignore[no-any-return]
    if count > chances.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    return call(conventions.drawn_once, None, chances, drawn(chances.shape, dtype=dtype), count)  # type: ignore[no-any-return]


def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    return tensor(
        data, dtype=dtype or self.dtype, requires_grad=requires_grad, device=self.device if device is None else device
    )


def _new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    check_placing("new_full", layout, pin_memory)
    fill_value = only_number(fill_value, "new_full", "fill_value", 2)
    out = full(
        size,
        fill_value,
        dtype=dtype or self.dtype,
        requires_grad=requires_grad,
        device=self.device if device is None else device,
    )
    return lifted.as_many(out, lifted.examples_of(self))


METHODS["new_tensor"], METHODS["new_full"] = _new_tensor, _new_full
METHODS["bernoulli"] = lambda self, p=None, *, generator=None: bernoulli(self, p, generator=generator)
METHODS["multinomial"] = lambda self, num_samples, replacement=False, *, generator=None: multinomial(
    self, num_samples, replacement, generator=generator
)
FUNCTIONS["is_tensor"] = lambda obj: isinstance(obj, Tensor)
FUNCTIONS["Size"] = Size
