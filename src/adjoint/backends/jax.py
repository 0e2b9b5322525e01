"""The leaf backend over JAX's arrays. Every primitive is traceable: what calls nothing else runs under `jax.jit`.

No value is looked at while JAX traces: checks of values run on arrays that are there, and loops whose length depends on
values are JAX's. https://docs.jax.dev/en/latest/jax.lax.html
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend
from adjoint.backends import array_api, matrices, special
from adjoint.backends.array_api import ArrayAPI, labels_error, needed
from adjoint.backends.numpy import random
from adjoint.concrete import Staged
from adjoint.primitives import ARRAY, DType, Key, Primitive, Shape, index_shape, slices
from adjoint.rules import RECORDS
from adjoint.rules.pooling import places

_DTYPES = {dtype: dtype for dtype in dtypes.ALL}


class JAX(Staged, ArrayAPI):
    """JAX on one of its devices, `"cpu"`, `"gpu:1"`, or on those where its arrays are.

    Without a device arrays stay where JAX has put them, also those that are sharded over several devices. Functions of
    tensors run under `jax.jit`, `jax.vmap` and `jax.pmap`: the first leaf registers `Tensor` as a pytree of JAX.
    JAX has 64 bits only where its setting `jax_enable_x64` says so: without it integers of 64 bits become 32 wide, and
    float64 and complex128 raise DtypeError. Random numbers are those of the NumPy leaf, and constants of a compiled
    function. Needs `pip install 'adjoint[jax]'`. Raises DeviceError where JAX is not installed, or has no such device.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0], device=ad.JAX())  # doctest: +SKIP
    Tensor([1., 2.], dtype=float32, device=jax)
    """

    place = "device"

    def __init__(self, device: str | None = None) -> None:
        LeafBackend.__init__(self)
        self.jax = needed("jax", "jax")
        self.module, self.device = self.jax.numpy, _device(self.jax, device)
        self.xp: Any = _Namespace(self.jax, self.device)
        import_module("adjoint.functions.pytrees").register(self.jax)  # by name, because functions stand above leaves

    def configuration(self) -> tuple[Any, ...]:
        return () if self.device is None else (f"{self.device.platform}:{self.device.id}",)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.configuration()

    @classmethod
    def of(cls, value: Any) -> JAX | None:
        jax = sys.modules.get("jax")
        return _anywhere() if jax is not None and isinstance(value, jax.Array) else None

    def traced(self, *arrays: Array) -> bool:
        """Whether JAX traces one of them: it has no values then."""
        return any([isinstance(x, self.jax.core.Tracer) for x in arrays])

    def is_concrete(self, array: Array) -> bool:
        """Not of a tracer, a shape or whatever else JAX puts in the place of an array, or parts in other processes."""
        there = isinstance(array, self.jax.Array) and not isinstance(array, self.jax.core.Tracer)
        return there and bool(array.is_fully_addressable)

    def branch(self, index: Array, branches: Sequence[Callable[..., Any]], arrays: Sequence[Array]) -> list[Array]:
        return list(self.jax.lax.switch(index, branches, *arrays))

    def loop(
        self, goes: Callable[..., Array], step: Callable[..., Sequence[Array]], arrays: Sequence[Array]
    ) -> list[Array]:
        return self.jax.lax.while_loop(lambda xs: goes(*xs), lambda xs: list(step(*xs)), list(arrays))  # type: ignore[no-any-return]

    def dtype(self, dtype: DType) -> Any:
        if self.jax.config.jax_enable_x64 or dtype not in (dtypes.float64, dtypes.complex128):
            return self.xp.allowed(dtype)
        raise errors.DtypeError(
            f'{self.name} has no {dtype} as it is set: switch it on with jax.config.update("jax_enable_x64", True) '
            f"before arrays are made, or use {dtypes.float32 if dtype.kind == 'f' else dtypes.complex64}"
        )

    def dtype_of(self, array: Array) -> DType:
        try:
            return _DTYPES[array.dtype]
        except (KeyError, TypeError):
            return dtypes.as_dtype(array.dtype)  # raises

    def from_native(self, value: Any) -> Array | None:
        if not isinstance(value, self.jax.Array):
            return None
        self.dtype_of(value)
        if self.device is None or self.traced(value) or value.devices() == {self.device}:
            return value
        return self.placed(value)

    def copied(self, array: Array) -> Array:
        return array if self.traced(array) else self.xp.array(array, copy=True)  # which may be donated

    def transfer(self, array: Array, source: Backend) -> Array:
        """Between JAX's devices by JAX, also while it traces."""
        if isinstance(source, JAX):
            return array if self.device is None else self.placed(array)
        dtype = source.dtype_of(array)  # DLPack narrows silently
        whole = self.dtype(dtype) == dtype
        return super().transfer(array, source) if whole else LeafBackend.transfer(self, array, source)

    def placed(self, array: Array) -> Array:
        return self.jax.device_put(array, self.device)

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        theirs = self.dtype(values.dtype)
        if theirs != values.dtype and values.size:
            least, most = dtypes.limits(dtypes.as_dtype(theirs))
            if values.min() < least or values.max() > most:
                raise errors.RangeError(
                    f"{self.name}: integers from {values.min()} to {values.max()} do not fit in {theirs}, which "
                    f'{values.dtype} is without jax.config.update("jax_enable_x64", True)'
                )
        with self.jax.ensure_compile_time_eval():  # constants have values, also while JAX traces
            return self.xp.asarray(values, dtype=theirs, copy=True if copy else None)

    def widest(self, dtype: DType) -> DType:
        return self.xp.allowed(dtype)  # type: ignore[no-any-return]

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        if self.traced(array):
            raise errors.TrackedError(
                f"JAX traces the tensor of shape {array.shape}, which has no values to read before the compiled "
                "function runs; return it, choose with ad.where, or show it with jax.debug.print and x.native()"
            )
        return np.asarray(array)

    def implement(self, primitive: Primitive) -> Implementation:
        if primitive.name in special.KERNELS:
            return _in_double(self.jax, special.KERNELS[primitive.name], self.xp, primitive.parameters)
        return super().implement(primitive)


@functools.cache
def _anywhere() -> JAX:
    return JAX()


def _device(jax: Any, name: Any) -> Any:
    """One of JAX's devices by its platform and number."""
    if name is None or isinstance(name, jax.Device):
        return name
    platform, _, number = str(name).partition(":")
    try:
        if not number:
            return jax.local_devices(backend=platform)[0]
        return next(place for place in jax.devices(platform) if place.id == int(number))
    except (RuntimeError, ValueError, StopIteration) as error:
        known = ", ".join([f"{d.platform}:{d.id}" for d in jax.devices()])
        raise errors.DeviceError(
            f"JAX: no device {name!r}; there are {known}, and jax.devices(...) shows others"
        ) from error


class _Namespace:
    """`jax.numpy`, with the dtypes that JAX's setting allows at the time, and new arrays on one device, if any."""

    def __init__(self, jax: Any, device: Any) -> None:
        self._jax, self._device = jax, device
        self.traced_loop = jax.lax.while_loop  # for kernels: their loops are traced
        for name in "arange empty eye full linspace ones zeros".split():
            setattr(self, name, functools.partial(getattr(jax.numpy, name), device=device))

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(self._jax.numpy, name)
        return found

    def allowed(self, dtype: DType) -> DType:
        return dtypes.as_dtype(self._jax.dtypes.canonicalize_dtype(dtype))

    @property
    def int64(self) -> DType:
        return self.allowed(dtypes.int64)

    @property
    def uint64(self) -> DType:
        return self.allowed(dtypes.uint64)

    @property
    def float64(self) -> DType:
        return self.allowed(dtypes.float64)

    @property
    def complex128(self) -> DType:
        return self.allowed(dtypes.complex128)

    def asarray(self, values: Any, dtype: Any = None, copy: Any = None) -> Array:
        device = None if isinstance(values, self._jax.Array) else self._device
        return self._jax.numpy.asarray(values, dtype=dtype, copy=copy, device=device)


def _in_double(jax: Any, kernel: Callable[..., Array], xp: Any, parameters: tuple[str, ...]) -> Implementation:
    """A kernel of special functions, which computes in double precision also where JAX is set to have none."""
    run = jax.jit(functools.partial(kernel, xp), static_argnames=parameters)

    def in_double(*operands: Array, **how: Any) -> Array:
        dtype = next(x.dtype for x in operands if hasattr(x, "dtype"))
        with jax.enable_x64(True):
            wide = [jax.numpy.asarray(x, dtype=dtypes.float64) for x in operands]
            return jax.lax.convert_element_type(run(*wide, **how), dtype)

    return in_double


def _astype(B: JAX, x: Array, *, dtype: DType) -> Array:
    """Constants keep their values, also while JAX traces."""
    with contextlib.nullcontext() if B.traced(x) else B.jax.ensure_compile_time_eval():
        return array_api.astype(B, x, dtype=dtype)


# --- elementwise ---------------------------------------------------------------------------------


def _of_constants(name: str) -> Callable[..., Array]:
    """The definition, whose result has values if the operands have: labels and places stay known."""
    definition: Any = RECORDS[name].definition  # type: ignore[attr-defined]

    def run(B: JAX, *operands: Array, **parameters: Any) -> Array:
        with contextlib.nullcontext() if B.traced(*operands) else B.jax.ensure_compile_time_eval():
            return definition(B, *operands, **parameters)

    return run


def _whole(name: str) -> Callable[..., Array]:
    """Of integers, where what is divided by zero is zero."""

    def run(B: JAX, x: Array, y: Array) -> Array:
        xp = B.xp
        dtype = next(v.dtype for v in (x, y) if hasattr(v, "dtype"))
        if dtype.kind not in "iu":
            return xp.remainder(x, y) if name == "remainder" else array_api.floor_divide(xp, x, y)
        none = xp.equal(y, 0)
        out = getattr(xp, name)(x, xp.where(none, xp.ones((), dtype=dtype), y))
        return xp.where(none, xp.zeros((), dtype=dtype), out)

    return run


def _expit(B: JAX, x: Array) -> Array:
    return B.jax.lax.logistic(x)


def _erf(B: JAX, x: Array) -> Array:
    return B.jax.lax.erf(x)


def _relu_pullback(B: JAX, g: Array, out: Array) -> Array:
    return B.xp.where(out <= 0, B.xp.zeros((), dtype=out.dtype), g)


def _cross_entropy(B: JAX, x: Array, labels: Array) -> Array:
    xp, classes = B.xp, x.shape[-1]
    values = _values(B, labels)
    if values is not None and values.size and not (values.min() >= 0 and values.max() < classes):
        raise labels_error(np, values, classes)
    if classes:
        x = x - xp.max(x, axis=-1, keepdims=True)
    picked = xp.take_along_axis(x, xp.expand_dims(labels, axis=-1), axis=-1)
    return array_api.logsumexp(xp, x, axis=(x.ndim - 1,), keepdims=False) - xp.squeeze(picked, axis=-1)


def _binary_exponent(B: JAX, x: Array) -> Array:
    """From the bits, because XLA takes subnormal numbers for zeros, and joins factors that overflow together."""
    lax, xp = B.jax.lax, B.xp
    kind, digits, bias = {2: ("uint16", 10, 15), 4: ("uint32", 23, 127), 8: ("uint64", 52, 1023)}[x.dtype.itemsize]
    word = lax.bitcast_convert_type(x, kind)
    power = xp.astype((word >> digits) & (2 * bias + 1), xp.int32)
    fraction = word & ((1 << digits) - 1)
    length = 8 * x.dtype.itemsize - xp.astype(lax.clz(fraction), xp.int32)
    out = xp.where(power == 0, length - digits, power) + 1 - bias
    return xp.where((power == 2 * bias + 1) | ((power == 0) & (fraction == 0)), 0, out)


# --- structure and indexing ----------------------------------------------------------------------


def _pad(B: JAX, x: Array, *, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    return B.jax.lax.pad(x, B.xp.asarray(value, dtype=x.dtype), [(before, after, 0) for before, after in widths])


def _filled(B: JAX, shape: Shape, arrays: tuple[Array, ...], key: Key) -> tuple[Any, ...]:
    """The key with its arrays in their places. Raises IndexError for an index that is known to be outside."""
    rest, sizes, filled = iter(arrays), iter(shape), []
    for entry in slices(key):
        size = 1 if entry is None else next(sizes)
        if entry is ARRAY:
            entry = next(rest)
            _refuse_outside(B, entry, size)
        filled.append(entry)
    return (*filled, ...)


def _values(B: JAX, x: Array) -> np.ndarray[Any, Any] | None:
    """The values, to look at; those of a constant also while JAX traces. None where this process has not got them."""
    return None if B.traced(x) or not x.is_fully_addressable else np.asarray(x)


def _refuse_outside(B: JAX, places: Array, size: int) -> None:
    values = _values(B, places)
    if values is None or not values.size:
        return
    least, most = int(values.min()), int(values.max())
    if least < -size or most >= size:
        raise IndexError(f"index {least if least < -size else most} is out of bounds for an axis of size {size}")


def _index(B: JAX, x: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return x[slices(key)]
    return x.at[_filled(B, x.shape, arrays, key)].get(mode="fill")  # a traced index outside reads nan


def _take_along_axis(B: JAX, x: Array, indices: Array, *, axis: int) -> Array:
    _refuse_outside(B, indices, x.shape[axis])
    return B.xp.take_along_axis(x, indices, axis=axis)


def _block(shape: Shape, key: Key) -> tuple[Shape, Shape] | None:
    """Where the block starts that a key without arrays picks, and its sizes; None where it has steps."""
    entries = iter([entry for entry in slices(key) if entry is not None])
    starts, sizes = [], []
    for n in shape:
        entry = next(entries, slice(None))
        chosen = range(*entry.indices(n)) if isinstance(entry, slice) else range(entry % n, entry % n + 1)
        if chosen.step != 1:
            return None
        starts.append(chosen.start)
        sizes.append(len(chosen))
    return tuple(starts), tuple(sizes)


def _joining(name: str) -> Callable[..., Array]:
    """Elements at a key joined with a value; `set` takes the last value of a place that is named twice."""

    def run(B: JAX, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
        if not arrays:
            block = _block(x.shape, key)
            if block is None:
                return getattr(x.at[slices(key)], name)(value)
            starts, sizes = block
            value = B.xp.broadcast_to(B.xp.asarray(value, dtype=x.dtype), index_shape(x.shape, key=key)).reshape(sizes)
            if name != "set":
                here = B.jax.lax.slice(x, starts, [a + n for a, n in zip(starts, sizes, strict=True)])
                value = getattr(B.xp, name)(here, value)
            return B.jax.lax.dynamic_update_slice(x, value, starts)
        filled = _filled(B, x.shape, arrays, key)
        if name != "set":
            how = {"maximum": "max", "minimum": "min"}.get(name, name)
            return getattr(x.at[filled], how)(value)
        target = index_shape(x.shape, *[a.shape for a in arrays], key=key)
        count = math.prod(target)
        if not count:
            return x
        numbers = B.jax.numpy.arange(count).reshape(target)
        latest = B.jax.numpy.full(x.shape, -1, dtype=numbers.dtype).at[filled].max(numbers)
        values = B.xp.broadcast_to(B.xp.asarray(value, dtype=x.dtype), target).reshape(count)
        return B.xp.where(latest < 0, x, values[latest])

    return run


def _searchsorted(B: JAX, x: Array, values: Array, *, side: str) -> Array:
    """In several lines beside each other, too."""
    search = functools.partial(B.xp.searchsorted, side=side)
    if x.ndim > 1:
        search = B.xp.vectorize(search, signature="(n),(m)->(m)")
    return B.xp.astype(search(x, values), B.xp.int64)


def _nonzero(B: JAX, x: Array) -> Array:
    if B.traced(x):
        raise errors.UnsupportedPrimitiveError(
            f"{B.name} cannot run the primitive 'nonzero' while JAX traces: how many places there are depends on the "
            "values; boolean masks need it too, and ad.where(mask, x, 0) does not"
        )
    with B.jax.ensure_compile_time_eval():  # of a constant while other arrays are traced
        return B.xp.astype(B.xp.stack(B.xp.nonzero(x)), B.xp.int64)


# --- convolution and windows ---------------------------------------------------------------------


def _fitted(
    size: Shape, kernel: Shape, counts: Shape, stride: Shape, padding: Any, dilation: Shape
) -> list[tuple[int, int]]:
    """The padding with which there are just so many places: what they do not reach is cut off."""
    return [
        (before, (count - 1) * s + d * (k - 1) + 1 - n - before)
        for n, k, count, s, (before, _), d in zip(size, kernel, counts, stride, padding, dilation, strict=True)
    ]


def _conv(B: JAX, x: Array, weight: Array, *, stride: Shape, padding: Any, dilation: Shape, groups: int) -> Array:
    return B.jax.lax.conv_general_dilated(x, weight, stride, padding, rhs_dilation=dilation, feature_group_count=groups)


def _transposed(B: JAX, f: Callable[[Array], Array], g: Array, shape: Shape) -> Array:
    """The transpose of a linear function of an array of this shape, at g."""
    (out,) = B.jax.linear_transpose(f, B.jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return out


def _conv_input(
    B: JAX, g: Array, weight: Array, *, stride: Shape, padding: Any, dilation: Shape, groups: int, size: Shape
) -> Array:
    padding = _fitted(size, weight.shape[2:], g.shape[2:], stride, padding, dilation)
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _transposed(B, lambda x: _conv(B, x, weight, **how), g, (g.shape[0], weight.shape[1] * groups, *size))


def _conv_weight(
    B: JAX, x: Array, g: Array, *, stride: Shape, padding: Any, dilation: Shape, groups: int, size: Shape
) -> Array:
    padding = _fitted(x.shape[2:], size, g.shape[2:], stride, padding, dilation)
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _transposed(B, lambda w: _conv(B, x, w, **how), g, (g.shape[1], x.shape[1] // groups, *size))


def _convolve(B: JAX, a: Array, v: Array, *, full: bool) -> Array:
    """A group of channels for each line of the stacks."""
    stack = np.broadcast_shapes(a.shape[:-1], v.shape[:-1])
    if not math.prod(stack):
        n, m = a.shape[-1], v.shape[-1]
        return B.xp.zeros((*stack, n + m - 1 if full else n - m + 1), dtype=a.dtype)
    a, v = (B.xp.broadcast_to(x, (*stack, x.shape[-1])).reshape(math.prod(stack), x.shape[-1]) for x in (a, v))
    around = v.shape[-1] - 1 if full else 0
    out = B.jax.lax.conv_general_dilated(
        a[None], v[:, None, ::-1], (1,), [(around, around)], feature_group_count=a.shape[0]
    )
    return out.reshape(*stack, out.shape[-1])


def _folded(
    B: JAX, x: Array, start: Any, join: Any, kernel: Shape, stride: Shape, padding: Any, dilation: Shape
) -> Array:
    lead = (1,) * (x.ndim - len(kernel))
    return B.jax.lax.reduce_window(
        x,
        np.asarray(start, dtype=x.dtype),
        join,
        (*lead, *kernel),
        (*lead, *stride),
        [*[(0, 0)] * len(lead), *padding],
        window_dilation=(*lead, *dilation),
    )


def _max_pool(B: JAX, x: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape) -> Array:
    return _folded(B, x, -math.inf, B.jax.lax.max, kernel, stride, padding, dilation)


def _max_pool_pullback(
    B: JAX, g: Array, x: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape
) -> Array:
    """Place by place of the windows, to the first of equal elements."""
    lax, xp = B.jax.lax, B.xp
    lead = x.ndim - len(kernel)
    best = _max_pool(B, x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    wide = _pad(B, x, widths=((0, 0),) * lead + tuple(padding), value=-math.inf)
    none = xp.zeros((), dtype=g.dtype)
    left, pulled = xp.ones(best.shape, dtype=bool), None
    for key in places(kernel, stride, dilation, best.shape[lead:]):
        part = wide[(..., *key)]
        hit = left & ((part == best) | xp.isnan(part))
        left = left & ~hit
        around = [(0, 0, 0)] * lead + [
            (entry.start, n - entry.stop, s - 1) for entry, n, s in zip(key, wide.shape[lead:], stride, strict=True)
        ]
        part = lax.pad(xp.where(hit, g, none), none, around)
        pulled = part if pulled is None else pulled + part
    assert pulled is not None
    return pulled[(..., *[slice(a, a + n) for (a, _), n in zip(padding, x.shape[lead:], strict=True)])]


def _window_sum(B: JAX, x: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape) -> Array:
    return _folded(B, x, 0, B.jax.lax.add, kernel, stride, padding, dilation)


def _window_spread(
    B: JAX, g: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape, size: Shape
) -> Array:
    """A sum over windows of the elements with zeros between them."""
    lead = g.ndim - len(kernel)
    around = [(0, 0, 0)] * lead
    for n, count, k, s, (before, _), d in zip(size, g.shape[lead:], kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1)
        around.append((reach - before, n - 1 - (count - 1) * s + before, s - 1))
    wide = B.jax.lax.pad(g, np.zeros((), dtype=g.dtype), around)
    ones = (1,) * len(kernel)
    return _folded(B, wide, 0, B.jax.lax.add, kernel, ones, [(0, 0)] * len(kernel), dilation)


# --- linear algebra ------------------------------------------------------------------------------


def _regular(name: str, run: Callable[..., Array]) -> Callable[..., Array]:
    """Raises LinAlgError for singular matrices, where there are values to look at: JAX answers with nan."""

    def checked(B: JAX, *operands: Array) -> Array:
        out = run(B, *operands)
        if not B.traced(out, *operands) and not bool(B.xp.all(B.xp.isfinite(out))):
            if all([bool(B.xp.all(B.xp.isfinite(x))) for x in operands]):
                raise np.linalg.LinAlgError(f"{name}: singular matrix")
        return out

    return checked


def _cholesky(B: JAX, x: Array) -> Array:
    return B.jax.lax.linalg.cholesky(x, symmetrize_input=False)


def _eigh(B: JAX, x: Array) -> tuple[Array, Array]:
    return tuple(B.jax.numpy.linalg.eigh(x, UPLO="L", symmetrize_input=False))


def _solve_triangular(B: JAX, a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (B.xp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b))
    return B.jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=not upper, unit_diagonal=unit)


def _lu(B: JAX, x: Array) -> tuple[Array, Array, Array]:
    both, _, order = B.jax.lax.linalg.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    lower = B.xp.tril(both[..., :k], k=-1) + B.xp.eye(m, k, dtype=x.dtype)
    return B.xp.astype(order, B.xp.int64), lower, B.xp.triu(both[..., :k, :])


def _expm(B: JAX, x: Array) -> Array:
    """With as many squarings as the largest of the matrices needs, in a loop of JAX's."""
    if not math.prod(x.shape):
        return x
    xp, norms = B.xp, matrices.norm(B.xp, x)
    degree, bound = matrices.LAST["single" if float(xp.finfo(x.dtype).eps) > 1e-10 else "double"]
    halvings = matrices.halvings(xp, x, norms, degree, bound)
    scale = xp.pow(xp.asarray(2.0, dtype=norms.dtype), -halvings)[..., None, None]
    out = matrices.approximated(xp, x * xp.astype(scale, x.dtype), xp.eye(x.shape[-1], dtype=x.dtype), degree)
    most = xp.max(halvings)

    def squared(state: tuple[Array, Array]) -> tuple[Array, Array]:
        i, out = state
        return i + 1, xp.where((halvings > i)[..., None, None], xp.matmul(out, out), out)

    return B.jax.lax.while_loop(lambda state: state[0] < most, squared, (xp.zeros_like(most), out))[1]


# --- Fourier transforms --------------------------------------------------------------------------


def _fft(B: JAX, x: Array, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Array:
    """XLA transforms up to three axes at once."""
    for start in range(0, len(axis), 3):
        x = array_api.fft(B.xp, x, axis=axis[start : start + 3], inverse=inverse, norm=norm)
    return x


# --- random numbers ------------------------------------------------------------------------------


def _random(name: str) -> Callable[..., Array]:
    """The numbers that the NumPy leaf draws; by traced operands when the compiled function runs."""
    draw = random.IMPLEMENTATIONS[name]

    def run(B: JAX, *operands: Array, **parameters: Any) -> Array:
        if not B.traced(*operands):
            return B.from_numpy(draw(*map(B.to_numpy, operands), **parameters), copy=False)
        dtype = B.dtype(parameters["dtype"]) if "dtype" in parameters else operands[0].dtype
        result = B.jax.ShapeDtypeStruct(parameters["shape"], dtype)
        return B.jax.pure_callback(
            lambda *values: draw(*map(np.asarray, values), **parameters).astype(dtype, copy=False),
            result,
            *operands,
            vmap_method="sequential",
        )

    return run


JAX.deviations = {
    "astype": _astype,
    "replace_where_equal": _of_constants("replace_where_equal"),
    "floor_divide": _whole("floor_divide"),
    "remainder": _whole("remainder"),
    "binary_exponent": _binary_exponent,
    "expit": _expit,
    "erf": _erf,
    "relu_pullback": _relu_pullback,
    "softmax_cross_entropy": _cross_entropy,
    "pad": _pad,
    "index": _index,
    "index_set": _joining("set"),
    "index_add": _joining("add"),
    "index_multiply": _joining("multiply"),
    "index_max": _joining("maximum"),
    "index_min": _joining("minimum"),
    "take_along_axis": _take_along_axis,
    "searchsorted": _searchsorted,
    "nonzero": _nonzero,
    "conv": _conv,
    "conv_input": _conv_input,
    "conv_weight": _conv_weight,
    "convolve": _convolve,
    "max_pool": _max_pool,
    "max_pool_pullback": _max_pool_pullback,
    "window_sum": _window_sum,
    "window_spread": _window_spread,
    "inv": _regular("inv", lambda B, x: B.xp.linalg.inv(x)),
    "solve": _regular("solve", lambda B, a, b: B.xp.linalg.solve(a, b)),
    "cholesky": _regular("cholesky", _cholesky),
    "eigh": _eigh,
    "eigvalsh": lambda B, x: _eigh(B, x)[0],
    "eig": lambda B, x: tuple(B.xp.linalg.eig(x)),
    "eigvals": lambda B, x: B.xp.linalg.eigvals(x),
    "solve_triangular": _solve_triangular,
    "lu": _lu,
    "expm": _expm,
    "fft": _fft,
    **{name: _random(name) for name in random.IMPLEMENTATIONS},
}
