"""The leaf backend over PyTorch's tensors, without its autograd."""

from __future__ import annotations

import cmath
import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend
from adjoint.backends import complex_numbers, composed, convolution, imported, matrices, needed
from adjoint.backends.array_api import ArrayAPI, elementwise, fft, indexing, scatter
from adjoint.backends.array_api.reduction import labels_error
from adjoint.primitives import ARRAY, TABLE, DType, Key, Primitive, Shape, slices


class Torch(ArrayAPI):
    """PyTorch on one of its devices: `"cpu"`, `"cuda:0"`, `"mps"`.

    Tensors of PyTorch come in without a copy and detached: from then on gradients are ours. Needs
    `pip install 'adjoint[torch]'`. Raises DeviceError where PyTorch is not installed, or has no such device.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0], device=ad.Torch())  # doctest: +SKIP
    Tensor([1., 2.], dtype=float32, device=torch:cpu)
    """

    torch: Any

    place = "device"

    def __init__(self, device: str = "cpu") -> None:
        torch = needed("torch", "torch")
        try:
            place = torch.empty(0, device=torch.device(device)).device  # of "cuda" the one that tensors show, "cuda:0"
        except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError) as error:
            why = re.split(r"\.\s|\n", errors.said(error))[0]  # more sentences follow, about PyTorch's own build
            why = "a device is named, as 'cpu' or 'cuda:0'" if isinstance(error, TypeError) else why
            raise errors.DeviceError(f"Torch: no device {errors.shown(device)}: {why}") from error
        super().__init__(torch, place)
        self.torch, self.bfloat16 = torch, torch.bfloat16
        self.computes = place.type != "meta"

    def configuration(self) -> tuple[Any, ...]:
        return (str(self.device),)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.configuration()

    @classmethod
    def of(cls, value: Any) -> Torch | None:
        torch = imported("torch")
        return _at(str(value.device)) if torch is not None and isinstance(value, torch.Tensor) else None

    def from_native(self, value: Any) -> Array | None:
        if not isinstance(value, self.torch.Tensor):
            return None
        if value.grad_fn is not None:
            raise errors.TrackedError(
                f"PyTorch tracks the tensor of shape {tuple(value.shape)} as a result of {value.grad_fn.name()}; "
                "take its detach() first: gradients do not flow from one library's graph into another's"
            )
        if value.layout is not self.torch.strided or value.is_nested:
            raise errors.ArgumentTypeError(
                f"{self.name}: expected a dense tensor, received {'a nested one' if value.is_nested else 'one'} of "
                f"layout {value.layout}; convert it first, as with to_dense()"
            )
        if value.is_meta and self.device.type != "meta":
            raise errors.DeviceError(
                f"{self.name}: a tensor of shape {tuple(value.shape)} on meta, which has no values"
            )
        self.dtype_of(value)
        return value.detach().to(self.device).resolve_conj().resolve_neg()

    def copied(self, array: Array) -> Array:
        return array.clone()

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        self.dtype(values.dtype)
        if copy or not values.flags.writeable or any(n < 0 for n in values.strides):
            values = np.array(values, order="C")  # an array, also of a number of NumPy's
        if values.dtype.kind == "V":  # which PyTorch does not exchange with NumPy: as the same bits
            return self.torch.from_numpy(values.view(np.int16)).view(self.bfloat16).to(self.device)
        return self.torch.from_numpy(values).to(self.device)

    def computes_in(self, dtype: DType) -> bool:
        """PyTorch stores unsigned integers of more than 8 bits, and its device `mps` has no double precision."""
        if dtype in (dtypes.uint16, dtypes.uint32, dtypes.uint64):
            return False
        return self.device.type != "mps" or dtype not in (dtypes.float64, dtypes.complex128)

    def transfer(self, array: Array, source: Backend) -> Array:
        known = (
            isinstance(array, self.torch.Tensor) or source.dtype_of(array).kind == "V"
        )  # NumPy exchanges no bfloat16
        backwards = not known and any([n < 0 for n in _strides(array)])
        # from_dlpack ends the process where an array goes backwards
        return LeafBackend.transfer(self, array, source) if backwards else super().transfer(array, source)

    def is_concrete(self, array: Array) -> bool:
        return self.computes

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        if array.is_meta:
            raise errors.DeviceError(
                f"{self.name}: a tensor of shape {tuple(array.shape)} has no values on meta, where shapes and dtypes "
                "alone are computed; make it on another device"
            )
        array = array.resolve_conj().resolve_neg().cpu()
        if array.dtype is self.bfloat16:
            return array.view(self.torch.int16).numpy().view(self.dtype_of(array))  # type: ignore[no-any-return]
        return array.numpy()  # type: ignore[no-any-return]

    def lacks_memory(self, error: Exception) -> bool:
        return isinstance(error, self.torch.OutOfMemoryError) or "can't allocate memory" in str(error)

    def implement(self, primitive: Primitive) -> Implementation:
        native = _NATIVE.get(primitive.name)
        if native is None:
            return super().implement(primitive)
        return native if callable(native) else operator.attrgetter(native)(self.torch)


def _strides(array: Array) -> tuple[int, ...]:
    """Of an array that says them itself, as CuPy's, or is in main memory."""
    if hasattr(array, "strides") or not hasattr(array, "__dlpack_device__"):
        return getattr(array, "strides", ())
    return np.from_dlpack(array).strides if array.__dlpack_device__()[0] == _MAIN_MEMORY else ()


_MAIN_MEMORY = 1  # of DLPack's kinds of devices


@functools.cache
def _at(device: str) -> Torch:
    return Torch(device)


# functions that are the primitive as they stand: objects, or names in torch
_NATIVE: dict[str, Implementation | str] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    **{
        name: name
        for name in (
            "negative abs floor ceil trunc sqrt square exp log log2 log10 sin cos asin atan sinh "
            "cosh asinh acosh atanh isnan isinf isfinite logical_not relu"
        ).split()
    },
    **{name: f"special.{name}" for name in "erf erfc erfinv digamma entr logit expit".split()},
    **{name: f"nn.functional.{name}" for name in ("silu", "gelu")},
}


def _sum(B: Torch, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return x.sum(axis, keepdims, dtype=x.dtype) if axis else x  # PyTorch takes no axes for all


def _unsigned(run: Callable[..., Array]) -> Callable[..., Array]:
    """A sum or product of what PyTorch has no arithmetic for: with a sign it has the same bits."""

    def either(B: Torch, x: Array, **how: Any) -> Array:
        signed = _SIGNED.get(x.dtype.itemsize) if x.dtype in (B.torch.uint16, B.torch.uint32, B.torch.uint64) else None
        return run(B, x, **how) if signed is None else run(B, x.view(getattr(B.torch, signed)), **how).view(x.dtype)

    return either


_SIGNED = {2: "int16", 4: "int32", 8: "int64"}


def _running(name: str) -> Callable[..., Array]:
    return _unsigned(lambda B, x, *, axis: getattr(B.torch, name)(x, axis, dtype=x.dtype))


def _prod(B: Torch, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return B.xp.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _largest(name: str) -> Callable[..., Array]:
    def run(B: Torch, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
        return getattr(B.torch, name)(x, axis, keepdims) if axis else x

    return run


def _relu_pullback(B: Torch, g: Array, out: Array) -> Array:
    return B.torch.ops.aten.threshold_backward(g, out, 0)


def _logsumexp(B: Torch, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return B.torch.logsumexp(x, axis, keepdims) if axis else x


def _softmax(B: Torch, x: Array, *, axis: int) -> Array:
    return B.torch.softmax(x, axis)


def _log_softmax(B: Torch, x: Array, *, axis: int) -> Array:
    return B.torch.log_softmax(x, axis)


def _cross_entropy(B: Torch, x: Array, labels: Array) -> Array:
    """By a gather: PyTorch's cross entropy of each row starts threads for any number of rows."""
    if labels.numel():
        least, most = B.torch.aminmax(labels)
        if least.item() < 0 or most.item() >= x.shape[-1]:
            raise labels_error(B.xp, labels, x.shape[-1])
    return B.torch.log_softmax(x, -1).gather(-1, labels.long().unsqueeze(-1)).squeeze(-1).neg()


def _cross_entropy_pullback(B: Torch, g: Array, x: Array, labels: Array) -> Array:
    """softmax(x) minus one at the label, times g."""
    out, places = B.torch.softmax(x, -1), labels.long().unsqueeze(-1)
    return out.scatter_(-1, places, out.gather(-1, places) - 1).mul_(g.unsqueeze(-1))


def _whole(divide: Callable[..., Array]) -> Callable[..., Array]:
    """Division of integers, where NumPy gives zero for zero and PyTorch an error."""

    def run(B: Torch, x: Array, y: Array) -> Array:
        if (y if hasattr(y, "dtype") else x).dtype.is_floating_point:
            return divide(B.xp, x, y)
        dtype = (y if hasattr(y, "dtype") else x).dtype
        x, y = (B.torch.as_tensor(v, dtype=dtype, device=B.device) for v in (x, y))
        none = y == 0
        out = divide(B.xp, x, B.torch.where(none, B.torch.ones_like(y), y))
        return B.torch.where(none, B.torch.zeros_like(out), out)

    return run


def _remainder(xp: Any, x: Array, y: Array) -> Array:
    out = xp.remainder(x, y)
    return out.copysign_(y) if out.is_floating_point() else out  # zeros have the sign of y too


def _pow(B: Torch, x: Array, y: Array) -> Array:
    """In complex numbers PyTorch's 0 ** 0 is nan. An exponent 0.5 is the square root, which differs at -0 and -inf."""
    if y.__class__ is float and abs(y) == 0.5 and x.is_floating_point():
        return B.torch.pow(x.nan_to_num(math.nan, math.inf, math.inf).add_(0.0), y)
    out = B.torch.pow(x, y)
    return B.torch.where(B.torch.as_tensor(y == 0, device=B.device), 1.0, out) if out.is_complex() else out


def _integers(name: str) -> Callable[..., Array]:
    """A function of two integers, which PyTorch has for tensors alone."""
    return lambda B, x, y: getattr(B.torch, name)(*elementwise.as_arrays(B.xp, x, y))


def _round(B: Torch, x: Array) -> Array:
    return B.torch.complex(x.real.round(), x.imag.round()) if x.is_complex() else B.torch.round(x)


def _repaired(name: str) -> Callable[..., Array]:
    """A function whose complex results are repaired where a part is infinite or nan."""
    repair = complex_numbers.REPAIRS[name]

    def run(B: Torch, x: Array) -> Array:
        out = getattr(B.torch, name)(x)
        if not out.is_complex() or (x.is_cpu and cmath.isfinite(x.sum().item())):
            return out
        return B.torch.complex(*repair(B.torch, x.real, x.imag, out.real, out.imag))

    return run


def _expm1(B: Torch, x: Array) -> Array:
    """Of complex -0 the standard has 0."""
    out = _complex_expm1(B, x)
    if out.is_complex():
        out.real.add_(0.0)
    return out


_complex_expm1 = _repaired("expm1")


def _acos(B: Torch, x: Array) -> Array:
    """PyTorch's complex one is pi / 2 - asin(x), which has no digits beside 1; acosh(x) is acos(x) turned."""
    if not x.is_complex():
        return B.torch.acos(x)
    out = B.torch.acosh(x)
    return B.torch.complex(out.imag.abs(), out.real.copysign(x.imag).neg_())


def _sign(B: Torch, x: Array) -> Array:
    out = B.xp.sign(x)
    if out.is_complex():
        out.imag.copysign_(B.torch.where(x == 0, 0.0, x.imag))  # of zeros too, but of zero itself
    return out


def _in_single(name: str) -> Callable[..., Array]:
    """A special function that PyTorch does not have for float16 and bfloat16."""

    def run(B: Torch, x: Array) -> Array:
        function = getattr(B.torch.special, name)
        return function(x.float()).to(x.dtype) if x.dtype.itemsize == 2 else function(x)

    return run


def _matmul(B: Torch, x: Array, y: Array) -> Array:
    return B.torch.matmul(x.float(), y.float()) > 0 if x.dtype is B.torch.bool else B.torch.matmul(x, y)


# --- indexing ------------------------------------------------------------------------------------


def _index(B: Torch, x: Array, *arrays: Array, key: Key) -> Array:
    if arrays:
        return x[_filled(key, arrays)] if _plain(key) else indexing.index(B.xp, x, *arrays, key=key)
    forward, turned = _forward(key, x.shape)
    out = x[forward]
    return B.torch.flip(out, turned) if turned else out


def _index_set(B: Torch, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if arrays:  # where a place is named twice the last value counts, which PyTorch does not promise
        return scatter.index_set(B.xp, x, value, *arrays, key=key)
    forward, turned = _forward(key, x.shape)
    out = x.clone()
    part = out[forward]
    part[...] = _turned(B, value, part.shape, turned)
    return out


def _index_add(B: Torch, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    out = x.clone()
    if arrays:
        if not _plain(key):
            return scatter.index_add(B.xp, x, value, *arrays, key=key)
        value = value if isinstance(value, B.torch.Tensor) else x.new_tensor(value)
        places = [None if isinstance(entry, slice) else entry for entry in _filled(key, arrays)]
        return B.torch.ops.aten.index_put_(out, places, value, True)
    forward, turned = _forward(key, x.shape)
    part = out[forward]
    part += _turned(B, value, part.shape, turned)
    return out


def _turned(B: Torch, value: Array, shape: Shape, turned: list[int]) -> Array:
    """A value for a key that went backwards, in the order of the key that goes forward."""
    return B.torch.flip(B.torch.broadcast_to(value, shape), turned) if turned and hasattr(value, "shape") else value


def _forward(key: Key, shape: Shape) -> tuple[tuple[Any, ...], list[int]]:
    """A key whose slices all go forward, as PyTorch wants them, and the axes of `x[key]` that are turned round then."""
    forward: list[Any] = []
    turned: list[int] = []
    axes, out = iter(shape), 0
    for entry in slices(key):
        if isinstance(entry, slice):
            places = range(*entry.indices(next(axes)))
            if places.step < 0:
                entry = slice(places[-1], places[0] + 1, -places.step) if places else slice(0, 0)
                turned.append(out)
        elif entry is not None:
            next(axes)
        out += not isinstance(entry, int)
        forward.append(entry)
    return (*forward, ...), turned


def _plain(key: Key) -> bool:
    """Whether PyTorch reads a key with arrays as NumPy does: beside integers and new axes it need not."""
    return all(entry is ARRAY or (isinstance(entry, slice) and entry == slice(None)) for entry in key)


def _filled(key: Key, arrays: tuple[Array, ...]) -> tuple[Any, ...]:
    rest = iter(arrays)
    return tuple([next(rest).long() if entry is ARRAY else entry for entry in key])


def _searchsorted(B: Torch, x: Array, values: Array, *, side: str) -> Array:
    """With nans, which PyTorch's bisection does not compare, after all numbers."""
    torch, right, x, values = B.torch, side == "right", x.contiguous(), values.contiguous()
    if x.dtype is torch.bool:
        x, values = x.byte(), values.byte()
    if not x.is_floating_point():
        return torch.searchsorted(x, values, right=right)
    numbers = (~x.isnan()).sum(-1, keepdim=x.ndim > 1)
    found = torch.searchsorted(x.nan_to_num(math.inf, math.inf, -math.inf), values, right=right)
    return torch.where(values.isnan(), x.shape[-1] if right else numbers, torch.minimum(found, numbers))


# --- Fourier transforms --------------------------------------------------------------------------


def _fourier(name: str) -> Callable[..., Array]:
    """MKL transforms no empty stack: it takes the shape of the transform of one that is not."""
    transform = getattr(fft, name)

    def run(B: Torch, x: Array, **how: Any) -> Array:
        if x.numel():
            return transform(B.xp, x, **how)
        some = transform(B.xp, x.new_zeros([max(1, n) for n in x.shape]), **how)
        return some[tuple([slice(None) if n else slice(0) for n in x.shape])]

    return run


# --- linear algebra ------------------------------------------------------------------------------


def _regular(run: Callable[..., Array]) -> Callable[..., Array]:
    """With NumPy's error where a matrix is singular."""

    def regular(B: Torch, *operands: Array, **how: Any) -> Array:
        try:
            return run(B, *operands, **how)
        except B.torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(str(error)) from error

    return regular


def _linalg(name: str, finish: Callable[[Array], Array] = lambda out: out) -> Callable[..., Array]:
    """A function of torch.linalg."""
    return _regular(lambda B, *operands, **how: finish(getattr(B.torch.linalg, name)(*operands, **how)))


def _eig(name: str, finish: Callable[[Array], Array]) -> Callable[..., Array]:
    """Of finite matrices, as NumPy has it: LAPACK may look for eigenvalues of others without end."""
    found = _linalg(name, finish)

    def run(B: Torch, x: Array) -> Array:
        if not x.isfinite().all():
            raise np.linalg.LinAlgError("matrices must be finite")
        return found(B, x)

    return run


def _solve(B: Torch, a: Array, b: Array) -> Array:
    """With matrices on the right, which PyTorch takes for a stack of vectors where the shapes allow both."""
    return B.torch.linalg.solve(a, b[(None,) * (a.ndim - b.ndim)] if b.ndim < a.ndim else b)


def _expm(B: Torch, x: Array) -> Array:
    """PyTorch's bounds are those of single precision and more: in half precision its powers overflow."""
    wide = x.float() if x.dtype.itemsize == 2 else x
    return B.torch.linalg.matrix_exp(wide).to(x.dtype)


def _lu(B: Torch, x: Array) -> tuple[Array, Array, Array]:
    permutation, lower, upper = B.torch.linalg.lu(x)
    order = permutation.real.mT @ B.torch.arange(x.shape[-2], dtype=permutation.real.dtype, device=x.device)
    return order.long(), lower, upper


def _qr(B: Torch, x: Array, *, complete: bool) -> tuple[Array, Array]:
    q, r = B.torch.linalg.qr(x, "complete" if complete else "reduced")
    return q, r


def _solve_triangular(B: Torch, a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    return B.torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)


# --- convolution, pooling, attention -------------------------------------------------------------

Padding = tuple[tuple[int, int], ...]


def _same_around(padding: Padding) -> list[int] | None:
    """The widths, where they are the same on both sides, as PyTorch's kernels want them."""
    return [before for before, _ in padding] if all(before == after for before, after in padding) else None


def _native(x: Array, kernel: Shape, padding: Padding) -> list[int] | None:
    """The widths, where PyTorch has a kernel for this."""
    return _same_around(padding) if 1 <= len(kernel) <= 3 and x.numel() and x.is_floating_point() else None


def _conv(B: Torch, x: Array, weight: Array, *, stride: Shape, padding: Padding, dilation: Shape, groups: int) -> Array:
    around = _native(x, weight.shape[2:], padding)
    if around is None or not weight.numel():
        return convolution.conv(B.xp, x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return B.torch.convolution(x, weight, None, stride, around, dilation, False, [0] * len(stride), groups)


def _conv_backward(which: int) -> Callable[..., Array]:
    """One of the transposes of a convolution: by its input, 0, or by its weight, 1."""
    name = ("conv_input", "conv_weight")[which]

    def run(B: Torch, first: Array, second: Array, *, size: Shape, **how: Any) -> Array:
        g, other = (first, second) if which == 0 else (second, first)
        around = _native(g, how["stride"], how["padding"])
        if around is None or not other.numel():
            return getattr(convolution, name)(B.xp, first, second, size=size, **how)
        groups = how["groups"]
        if which == 0:  # only the shape of the input counts
            x, weight = g.new_empty(1).expand(g.shape[0], other.shape[1] * groups, *size), other
        else:
            x, weight = other, g.new_empty(1).expand(g.shape[1], other.shape[1] // groups, *size)
        wanted = [which == 0, which == 1, False]
        return B.torch.ops.aten.convolution_backward(
            g, x, weight, None, how["stride"], around, how["dilation"], False, [0] * len(size), groups, wanted
        )[which]

    return run


def _best(B: Torch, x: Array, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape) -> Any:
    """The largest elements of windows and their places, by PyTorch's kernel, or None where it has none."""
    around = _native(x, kernel, padding)
    if around is None or any(2 * p > k for p, k in zip(around, kernel, strict=True)):
        return None
    pool = getattr(B.torch.nn.functional, f"max_pool{len(kernel)}d_with_indices")
    sizes = x.shape[x.ndim - len(kernel) :]
    return pool(x.reshape(1, -1, *sizes), kernel, stride, around, dilation)


def _max_pool(B: Torch, x: Array, **how: Any) -> Array:
    found = _best(B, x, **how)
    if found is None:
        return _composed(B, "max_pool", x, **how)
    axes = len(how["kernel"])
    return found[0].reshape(*x.shape[: x.ndim - axes], *found[0].shape[2:])


def _max_pool_pullback(B: Torch, g: Array, x: Array, **how: Any) -> Array:
    found = _best(B, x, **how)
    if found is None:
        return _composed(B, "max_pool_pullback", g, x, **how)
    places = found[1].flatten(2)[0]
    pulled = x.new_zeros(places.shape[0], math.prod(x.shape[x.ndim - len(how["kernel"]) :]))
    return pulled.scatter_add_(1, places, g.reshape(places.shape)).reshape(x.shape)


def _attention(B: Torch, q: Array, k: Array, v: Array, *bias: Array, scale: float, causal: bool) -> Array:
    if bias or not q.numel() or not k.numel():  # a query without keys has zeros, which PyTorch does not promise
        return _composed(B, "attention", q, k, v, *bias, scale=scale, causal=causal)
    return B.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)


def _composed(B: Torch, name: str, *operands: Array, **parameters: Any) -> Any:
    return composed(B, TABLE[name])(*operands, **parameters)


Torch.deviations = {
    "matmul": _matmul,
    "floor_divide": _whole(elementwise.floor_divide),
    "remainder": _whole(_remainder),
    **{name: _repaired(name) for name in ("log1p", "tanh", "tan")},
    "expm1": _expm1,
    "acos": _acos,
    "sign": _sign,
    "pow": _pow,
    "gcd": _integers("gcd"),
    "lcm": _integers("lcm"),
    "round": _round,
    **{name: _in_single(name) for name in ("erfcx", "log_ndtr")},
    "sum": _unsigned(_sum),
    "prod": _unsigned(_prod),
    "cumulative_sum": _running("cumsum"),
    "cumulative_prod": _running("cumprod"),
    "max": _largest("amax"),
    "min": _largest("amin"),
    "relu_pullback": _relu_pullback,
    "logsumexp": _logsumexp,
    "logcumsumexp": lambda B, x, *, axis: B.torch.logcumsumexp(x, axis),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "softmax_cross_entropy": _cross_entropy,
    "softmax_cross_entropy_pullback": _cross_entropy_pullback,
    "index": _index,
    "index_set": _index_set,
    "index_add": _index_add,
    "searchsorted": _searchsorted,
    **{name: _fourier(name) for name in ("fft", "rfft", "hfft")},
    **{name: _linalg(name) for name in "inv cholesky det eigvalsh svdvals".split()},
    "solve": _regular(_solve),
    **{name: _linalg(name, tuple) for name in ("slogdet", "eigh")},
    "eig": _eig("eig", tuple),
    "eigvals": _eig("eigvals", lambda out: out),
    "svd": _linalg("svd", tuple),
    "expm": _expm,
    "lu": _lu,
    "sqrtm": _regular(lambda B, x: matrices.sqrtm(B.xp, x)),
    "logm": _regular(lambda B, x: matrices.logm(B.xp, x)),
    "cofactor": _regular(lambda B, x: matrices.cofactor(B.xp, x)),
    "cofactor_pullback": _regular(lambda B, *operands: matrices.cofactor_pullback(B.xp, *operands)),
    "qr": _qr,
    "solve_triangular": _solve_triangular,
    "conv": _conv,
    "conv_input": _conv_backward(0),
    "conv_weight": _conv_backward(1),
    "max_pool": _max_pool,
    "max_pool_pullback": _max_pool_pullback,
    "attention": _attention,
}
