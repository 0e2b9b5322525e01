"""The leaf backend over Dask's arrays: a graph of tasks over chunks, which runs when values are asked for.

What a primitive does to chunks follows from its kind. Tasks run the NumPy leaf's implementations, so values, data types
and promotion are NumPy's. What has no way chunk by chunk is one task over whole operands: so nothing is missing.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend
from adjoint.backends import composed, needed, numpy, without_bfloat16
from adjoint.backends.dask import contraction, creation, indexing, reduction, scatter, shape
from adjoint.backends.dask.blocks import BLOCKWISE, Labels, elementwise, gathered, source_of, stacked
from adjoint.backends.dask.tasks import BlockCheck
from adjoint.backends.numpy import NumPy
from adjoint.concrete import Fault, Lazy, Test
from adjoint.primitives import ELEMENTWISE, LINALG, DType, Primitive, Shape
from adjoint.rules import RECORDS


class Dask(Lazy, LeafBackend):
    """Dask's arrays, in chunks: `"auto"`, a number of elements along each axis, or bytes such as `"64MiB"`.

    Chunks are those of what is made here; Dask's own arrays come in with theirs. Forward and backward only build a
    graph of tasks. `compute()`, `numpy()`, `item()` and `bool()` run it, on Dask's current scheduler or cluster.

    Needs `pip install 'adjoint[dask]'`. Raises DeviceError where Dask is not installed, or for other chunks.

    >>> import adjoint as ad
    >>> x = ad.ones(5, device=ad.Dask(chunks=2))  # doctest: +SKIP
    >>> x.sum()  # doctest: +SKIP
    Tensor(shape=(), chunks=(), dtype=float32, device=dask[chunks=2])
    """

    def __init__(self, chunks: int | str = "auto") -> None:
        super().__init__()
        self.da: Any = needed("dask.array", "dask")
        self.dask: Any = needed("dask", "dask")
        self.many: bool = not (isinstance(chunks, str) and chunks == "auto")
        self.chunks: str | int = chunks.lower() if isinstance(chunks, str) else chunks  # "64MiB" as names have it
        try:
            if not isinstance(chunks, str) and (chunks.__class__ is not int or chunks < 1):
                raise ValueError("expected a positive integer or a string")
            self.divided((8,), np.dtype("f4"))
        except (ValueError, TypeError) as error:
            raise errors.DeviceError(
                f"Dask: chunks are 'auto', a number of elements, or bytes such as '64MiB'; received "
                f"{errors.shown(chunks)}: {errors.said(error)}"
            ) from error

    def configuration(self) -> tuple[Any, ...]:
        return (self.chunks,)

    # --- between arrays and the outside ---

    @classmethod
    def of(cls, value: Any) -> Dask | None:
        array = sys.modules.get("dask.array")
        return cls() if array is not None and isinstance(value, array.Array) else None

    def computes_in(self, dtype: DType) -> bool:
        return dtype.kind != "V"

    def dtype_of(self, array: Array) -> DType:
        return array.dtype  # type: ignore[no-any-return]

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        if values.dtype.kind == "V":
            raise dtypes.no_bfloat16(self.name)
        values = np.array(values) if copy else np.asarray(values)
        return self.da.from_array(values, chunks=self.divided(values.shape, values.dtype), name=False)

    def from_native(self, value: Any) -> Array | None:
        if not isinstance(value, self.da.Array):
            return None
        if any(math.isnan(n) for n in value.shape):
            raise errors.ShapeError(
                f"asarray: a Dask array of unknown shape {value.shape}; its compute_chunk_sizes() finds it"
            )
        dtypes.refuse_masked(value._meta, "asarray")
        if not isinstance(value._meta, (np.ndarray, np.generic)):
            kind = type(value._meta)
            raise errors.DtypeError(
                f"asarray: a Dask array whose chunks are {kind.__module__}.{kind.__name__}, and tasks here are NumPy's "
                "functions; make them NumPy's arrays first, with map_blocks"
            )
        if dtypes.is_bfloat16(value.dtype):
            raise dtypes.no_bfloat16(self.name)
        if value.dtype.kind not in "biufc":
            raise errors.DtypeError(f"asarray: a Dask array of {value.dtype}; convert it to numbers first")
        dtype = dtypes.as_dtype(value.dtype)
        if not value.dtype.isnative:
            value = value.astype(dtype)
        if any(0 in sizes and len(sizes) > 1 for sizes in value.chunks):  # a filter leaves some: they have no maximum
            value = value.rechunk(tuple([tuple([n for n in sizes if n]) or (0,) for sizes in value.chunks]))
        meta = np.empty((0,) * value.ndim, dtype)
        return self.da.Array(value.dask, value.name, value.chunks, meta=meta)  # of its own: theirs may be assigned to

    def transfer(self, array: Array, source: Backend) -> Array:
        """Of Dask's own chunks others are made, without computing; `"auto"` leaves them as they are."""
        if not isinstance(source, Dask):
            return super().transfer(array, source)
        return array if self.chunks == "auto" else array.rechunk(self.divided(array.shape, array.dtype))

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return self.computed([array])[0]

    def computed(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        return [np.asarray(values) for values in self.dask.compute(*arrays)]

    def persisted(self, arrays: Sequence[Array]) -> list[Array]:
        return list(self.dask.persist(*arrays))

    def is_concrete(self, array: Array) -> bool:
        return False

    def checked(self, array: Array, test: Test, error: Fault) -> Array:
        labels = tuple(range(array.ndim))
        return self.blockwise(BlockCheck(test, error), labels, [(array, labels)], array.dtype)

    def summary(self, array: Array) -> str:
        return f"shape={tuple(array.shape)}, chunks={_shown(array.chunks)}"

    # --- arrays of tasks ---

    def divided(self, shape: Shape, dtype: DType, known: Sequence[Any] | None = None) -> tuple[tuple[int, ...], ...]:
        """The chunks of an array that is made here; `known` are those that are given, None for other axes."""
        ours = -1 if 0 in shape else self.chunks  # Dask divides by the number of elements
        chunks = tuple([ours if c is None else c for c in (known or [None] * len(shape))])
        return self.da.core.normalize_chunks(chunks, shape=shape, dtype=dtype)  # type: ignore[no-any-return]

    def blockwise(
        self,
        run: Callable[..., Any],
        labels: Labels,
        operands: Sequence[tuple[Any, Labels | None]],
        dtype: Any,
        *,
        new_axes: Mapping[int, int] | None = None,
        terms: Sequence[int] = (),
    ) -> Array:
        """An array whose blocks are `run` of the operands' blocks; axes of one label go together.

        `new_axes` are the sizes of axes that only the result has; those in `terms` have one element for each block.
        """
        pairs = [part for pair in operands for part in pair]
        chunks, arrays = self.da.core.unify_chunks(*pairs, warn=False)
        pairs[::2] = arrays
        chunks = {a: (1,) * len(chunks[a]) if a in terms else chunks[a] for a in labels if a in chunks}
        meta = np.empty((0,) * len(labels), dtype)
        name = f"{run}-{os.urandom(16).hex()}"
        return self.da.blockwise(
            run, labels, *pairs, name=name, meta=meta, dtype=dtype, new_axes=new_axes, adjust_chunks=chunks,
            align_arrays=False,
        )  # fmt: skip

    def spread(self, x: Array, shape: Shape, chunks: Sequence[Any] | None = None) -> Array:
        """`x` broadcast to a shape. What follows may take `x` in its place, whose chunks are no matter then."""
        x = source_of(x)
        if tuple(x.shape) == shape:
            return x
        old = (*[None] * (len(shape) - x.ndim), *[c if n > 1 else None for n, c in zip(x.shape, x.chunks, strict=True)])
        wanted = [c or w for c, w in zip(old, chunks or [None] * len(shape), strict=True)]
        out = self.da.broadcast_to(x, shape, chunks=self.divided(shape, x.dtype, wanted))
        out.spread_of = x
        return out

    def beside(self, x: Array, labels: Labels, chunks: Mapping[Any, Any]) -> Array:
        """What was broadcast, in the chunks of what it meets."""
        if not hasattr(x, "spread_of"):
            return x
        return self.spread(x, x.shape, [chunks.get(a) if n > 1 else None for a, n in zip(labels, x.shape, strict=True)])

    # --- primitives ---

    def implement(self, primitive: Primitive) -> Implementation:
        return without_bfloat16(self, primitive, self._way(primitive))

    def _way(self, primitive: Primitive) -> Implementation:
        """What makes the tasks of a primitive."""
        name, given = primitive.name, primitive.implementations
        if given.keys() & {self.name, Dask, LeafBackend} or (NumPy not in given and name not in numpy.IMPLEMENTATIONS):
            return composed(self, primitive)
        if name in _OWN:
            own = _OWN[name]
            return lambda *operands, **parameters: own(self, *operands, **parameters)
        if name in _DEFINED:
            definition = RECORDS[name].definition  # type: ignore[attr-defined]
            return lambda *operands, **parameters: definition(self, *operands, **parameters)
        if primitive.kind is ELEMENTWISE:
            way = elementwise
        elif name in _REDUCED:
            way = reduction.reduced
        elif primitive.kind is LINALG and not given:
            way = stacked
        else:
            way = BLOCKWISE.get(name, gathered)
        return lambda *operands, **parameters: way(self, primitive, operands, parameters)


# reductions that repeat: of a chunk, and of what chunks gave
_REDUCED = frozenset("sum prod max min any all nanmax nanmin".split())
# whose definition in other primitives leaves chunks as they are
_DEFINED = frozenset(
    "linear softmax softmax_pullback log_softmax log_softmax_pullback vector_norm standardize normalize "
    "normalize_pullback isin one_hot labelled_cross_entropy "
    "labelled_cross_entropy_pullback labelled_mean labelled_mean_pullback".split()
)


def _shown(chunks: tuple[tuple[int, ...], ...]) -> str:
    """Chunks as their sizes along each axis; of many equal ones the first, and the last."""
    parts = []
    for sizes in chunks:
        if len(sizes) > 4 and len(set(sizes[:-1])) == 1:
            parts.append(f"({sizes[0]}, ..., {sizes[-1]})")
        else:
            parts.append(str(tuple(int(n) for n in sizes)))
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


_TOPICS = (reduction, contraction, creation, shape, indexing, scatter)
_OWN = {name: run for topic in _TOPICS for name, run in topic.IMPLEMENTATIONS.items()}
