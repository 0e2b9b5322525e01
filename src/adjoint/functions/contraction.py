"""Products that sum over shared axes: matmul, tensordot, einsum and their kin."""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any, Never

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_axis, as_integer, as_tensors, explained, integers, keyword_error
from adjoint.functions.ranges import arange
from adjoint.functions.reduction import sum as total
from adjoint.functions.shape import broadcast_to, expand_dims, permute_dims, reshape, squeeze
from adjoint.operands import change, is_weak, operand, refuse_leaf, refuse_operand, run
from adjoint.primitives import Shape, broadcast_shapes
from adjoint.primitives.sizes import as_recorded
from adjoint.tensor import Operand, Tensor, same
from adjoint.variables import B


def matmul(x: Operand[B], y: Any, /) -> Tensor[B]:
    """The matrix product over the last two axes, with broadcasting over the others.

    A vector counts as a row on the left and a column on the right. Raises ShapeError where sizes do
    not fit.

    >>> import adjoint as ad
    >>> (ad.eye(2) @ ad.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    x, y = as_tensors([x, y], "matmul")
    if x.ndim >= 2 and y.ndim >= 2:
        return run("matmul", (x, y))  # type: ignore[no-any-return]
    if not x.ndim or not y.ndim:
        raise errors.ShapeError(f"matmul: shapes {x.shape} and {y.shape}; scalars are multiplied with *")
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else -1]:
        raise errors.ShapeError(
            f"matmul: shapes {x.shape} and {y.shape} do not fit: {x.shape[-1]} elements along the last axis of the "
            f"left one meet {y.shape[-2 if y.ndim > 1 else -1]}"
        )
    left = run("expand_dims", (x,), axis=(0,)) if x.ndim == 1 else x
    right = run("expand_dims", (y,), axis=(1,)) if y.ndim == 1 else y
    out = run("matmul", (left, right))
    drop = tuple([out.ndim - i for i, operand in ((2, x), (1, y)) if operand.ndim == 1])
    return run("squeeze", (out,), axis=drop)  # type: ignore[no-any-return]


def addmm(c: Operand[B], x: Any, y: Any, /, *, beta: complex = 1, alpha: complex = 1) -> Tensor[B]:
    """beta c + alpha x @ y, with broadcasting; x and y are whatever `matmul` takes, also vectors and stacks.

    A c that is infinite or nan does not count where beta is 0. Raises ShapeError where sizes do not fit.

    >>> import adjoint as ad
    >>> ad.addmm(ad.ones(2), ad.eye(2), ad.tensor([1.0, 2.0]), beta=10).tolist()
    [11.0, 12.0]
    """
    c, x, y = as_tensors([c, x, y], "addmm")
    for factor in (beta, alpha):
        if not is_weak(factor):
            raise errors.ArgumentTypeError(f"addmm: beta and alpha are numbers, received {errors.shown(factor)}")
    product = matmul(x, y)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return broadcast_to(product, broadcast_shapes(c.shape, product.shape))
    return product + (c if beta == 1 else c * beta)


def __matmul__(x: Tensor[Any], y: Any, /) -> Any:
    """x @ y."""
    if y.__class__ is Tensor and y._device is x._device and y._dtype is x._dtype and x.ndim > 1 and y.ndim > 1:
        return run("matmul", (x, y))
    return matmul(x, y) if _multiplies(y, x) else refuse_operand(y, x, "matmul")


def __rmatmul__(y: Tensor[Any], x: Any, /) -> Any:
    """x @ y for an x that is no tensor."""
    return matmul(operand(x, y, "matmul"), y) if _multiplies(x, y) else refuse_operand(x, y, "matmul")


def _multiplies(value: Any, x: Tensor[Any]) -> bool:
    """Whether it has values; single numbers are refused by `matmul`, which says why."""
    if isinstance(value, (Tensor, np.ndarray, np.generic, list, tuple)) or is_weak(value):
        return True
    return x.device.from_native(value) is not None or dtypes.is_table(value)


def __imatmul__(x: Tensor[Any], y: Any, /) -> Any:
    """x @= y: the object gets the new value."""
    refuse_leaf(x, "augmented assignment")
    out = __matmul__(x, y)
    if out is not NotImplemented:
        change(x, out, "matmul in place")
        return x
    return out


@explained
def vecdot(x: Operand[B], y: Any, /, *, axis: int = -1, **unknown: Never) -> Tensor[B]:
    """The sum of conj(x) * y along an axis, which has one size in both; the other axes broadcast.

    Raises ShapeError for sizes that do not fit, AxisError for an axis that is not in both.

    >>> import adjoint as ad
    >>> ad.vecdot(ad.tensor([[1.0, 2.0], [3.0, 4.0]]), ad.tensor([1.0, 10.0])).tolist()
    [21.0, 43.0]
    """
    if unknown:
        raise keyword_error(vecdot, unknown)
    x, y = as_tensors([x, y], "vecdot")
    try:
        broadcast_shapes(x.shape, y.shape)
    except errors.ShapeError as error:
        raise errors.ShapeError(f"vecdot: {error}") from None
    ndim = min(y.ndim, x.ndim)
    place = as_axis(axis, ndim, "vecdot") - ndim
    if x.shape[place] != y.shape[place]:
        raise errors.ShapeError(
            f"vecdot: shapes {x.shape} and {y.shape} have sizes {x.shape[place]} and {y.shape[place]} along axis "
            f"{place}, which is summed; they must be equal"
        )
    if place == -1 and x.dtype.kind in dtypes.FLOATING and x.dtype.itemsize > 2:
        return squeeze(run("matmul", (expand_dims(x, -2), expand_dims(y, -1))), (-2, -1))
    left = run("conj", (x,)) if x.dtype.kind == "c" else x
    products = left * y
    return total(products, axis=place, dtype=products.dtype)


def outer(x: Operand[B], y: Any, /) -> Tensor[B]:
    """The products of all pairs of elements of two vectors."""
    x, y = as_tensors([x, y], "outer")
    return reshape(x, (-1, 1)) * reshape(y, (1, -1))


def dot(x: Operand[B], y: Any, /) -> Tensor[B]:
    """The sums of products over the last axis of x and the last but one of y, as NumPy; with a 0-d one the product.

    Of vectors their inner product without a conjugate, of matrices `matmul`; more axes stand beside each other, those
    of x first. Raises ShapeError where sizes do not fit.

    >>> import adjoint as ad
    >>> ad.dot(ad.tensor([1.0, 2.0]), ad.tensor([3.0, 4.0])).item()
    11.0
    """
    x, y = as_tensors([x, y], "dot")
    if not x.ndim or not y.ndim:
        return x * y  # type: ignore[no-any-return]
    return matmul(x, y) if y.ndim == 1 or x.ndim <= 2 >= y.ndim else tensordot(x, y, axes=([-1], [-2]))


def vdot(x: Operand[B], y: Any, /) -> Tensor[B]:
    """The inner product of the flattened tensors, in which x is conjugated. Raises ShapeError for other sizes."""
    x, y = as_tensors([x, y], "vdot")
    if x.size != y.size:
        raise errors.ShapeError(f"vdot: shapes {x.shape} and {y.shape} have {x.size} and {y.size} elements")
    return vecdot(reshape(x, -1), reshape(y, -1))


@explained
def tensordot(
    x: Operand[B], y: Any, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2, **unknown: Never
) -> Tensor[B]:
    """The sum of products over pairs of axes.

    An int takes the last axes of x with the first of y; else two sequences of axes that go together.
    Raises ShapeError where paired sizes differ, AxisError for axes that are not there.
    """
    if unknown:
        raise keyword_error(tensordot, unknown)
    x, y = as_tensors([x, y], "tensordot")
    if isinstance(axes, (int, np.integer)):
        if not 0 <= as_integer(axes, "tensordot", "axes") <= min(x.ndim, y.ndim):
            raise errors.AxisError(f"tensordot: {axes} axes of shapes {x.shape} and {y.shape}")
        pairs = [tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))]
    else:
        if not isinstance(axes, (tuple, list, np.ndarray)) or not getattr(axes, "ndim", 1) or len(axes) != 2:
            raise errors.ArgumentTypeError(
                f"tensordot: axes is an integer or two sequences of them, received {errors.shown(axes)}"
            )
        given = [integers(side, "tensordot", "axes") for side in axes]
        pairs = [tuple(as_axis(i, t.ndim, "tensordot") for i in side) for side, t in zip(given, (x, y), strict=True)]
    summed = [[t.shape[i] for i in side] for t, side in zip((x, y), pairs, strict=True)]
    if summed[0] != summed[1]:
        raise errors.ShapeError(
            f"tensordot: shapes {x.shape} and {y.shape} over axes {pairs[0]} and {pairs[1]} have sizes "
            f"{summed[0]} and {summed[1]}"
        )
    rest = [[i for i in range(t.ndim) if i not in side] for t, side in zip((x, y), pairs, strict=True)]
    inner = math.prod(summed[0])
    rows, columns = [x.shape[i] for i in rest[0]], [y.shape[i] for i in rest[1]]
    left = reshape(permute_dims(x, (*rest[0], *pairs[0])), (math.prod(rows), inner))
    right = reshape(permute_dims(y, (*pairs[1], *rest[1])), (inner, math.prod(columns)))
    return reshape(run("matmul", (left, right)), (*rows, *columns))


# --- einsum: a composition of diagonals, sums and matrix products --------------------------------


def einsum(subscripts: str, /, *operands: Any) -> Tensor[Any]:
    """The sum of products that Einstein's notation describes, "ij,jk->ik"; `...` stands for more axes.

    Two operands at a time become one batched matrix product. For three or more `opt_einsum` finds the order, where that
    is installed (pip install 'adjoint[einsum]'), else `numpy.einsum_path`. Raises ArgumentError for a wrong notation,
    ShapeError for sizes that do not fit.

    >>> import adjoint as ad
    >>> ad.einsum("ij,j->i", ad.eye(2), ad.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    if not isinstance(subscripts, str):
        raise errors.ArgumentTypeError(
            f"einsum: the notation is a string such as 'ij,jk->ik', received {errors.shown(subscripts)}"
        )
    if not operands:
        raise errors.ArgumentError("einsum: expected at least one operand")
    tensors = as_tensors(operands, "einsum")
    inputs, output = _parse(subscripts, tuple([x.ndim for x in tensors]))
    sizes: dict[str, int] = {}
    for labels, x in zip(inputs, tensors, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            known = sizes.get(label, 1)
            if n != 1 and known not in (1, n):
                raise errors.ShapeError(
                    f"einsum {subscripts!r}: index {label!r} has sizes {known} and {n}, in shapes "
                    f"{', '.join(str(t.shape) for t in tensors)}"
                )
            sizes[label] = known if n == 1 else n
    terms = [_single(x, labels, sizes) for x, labels in zip(tensors, inputs, strict=True)]
    for step in _path(
        tuple([labels for _, labels in terms]), output, tuple([tuple(map(as_recorded, x.shape)) for x, _ in terms])
    ):
        chosen = [terms.pop(i) for i in sorted(step, reverse=True)]
        while len(chosen) > 1:
            second, first = chosen.pop(), chosen.pop()
            others = set(output).union(*[labels for _, labels in (*terms, *chosen)])
            chosen.append(_pair(first, second, others))
        terms += chosen
    x, labels = terms[0]
    gone = [i for i, label in enumerate(labels) if label not in output]
    if gone:
        x, labels = total(x, axis=gone), "".join(label for label in labels if label in output)
    x = _ordered(x, [labels.index(label) for label in output])
    if x.shape != tuple(sizes[l] for l in output):
        return broadcast_to(x, [sizes[label] for label in output])
    return same(x) if x is tensors[0] else x


@functools.lru_cache(512)
def _parse(subscripts: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Labels per operand and of the output, with `...` spelt out in capital labels that nobody typed."""
    name = f"einsum {errors.shown(subscripts)}"
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ndims):
        raise errors.ArgumentError(f"{name}: {len(inputs)} terms for {len(ndims)} operands")
    spare = [chr(0x391 + i) for i in range(32)]  # Greek capitals
    most = 0
    spelt = []
    for term, ndim in zip(inputs, ndims, strict=True):
        named = term.replace("...", "")
        if not named.isalpha() and named:
            raise errors.ArgumentError(f"{name}: indices are letters, received {errors.shown(term)}")
        extra = ndim - len(named)
        if extra < 0 or (extra and "..." not in term):
            raise errors.ArgumentError(f"{name}: term {errors.shown(term)} for an operand of {ndim} axes")
        most = max(most, extra)
        spelt.append(term.replace("...", "".join(spare[:extra][::-1])))
    dots = "".join(spare[:most][::-1])
    if arrow:
        output = right.replace("...", dots)
    else:
        letters = sorted(set("".join(t.replace("...", "") for t in inputs)))
        output = dots + "".join(l for l in letters if left.count(l) == 1)
    if len(set(output)) < len(output) or not set(output) <= set("".join(spelt)):
        raise errors.ArgumentError(f"{name}: output {errors.shown(right)} repeats an index or names a new one")
    return tuple(spelt), output


Term = tuple[Tensor[Any], str]


def _single(x: Tensor[Any], labels: str, sizes: dict[str, int]) -> Term:
    """A term in which every index stands once: repeated ones take the diagonal."""
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            n = sizes[label]
            x = broadcast_to(x, [n if k in (i, j) else size for k, size in enumerate(x.shape)])
            x = permute_dims(x, [i, j, *[k for k in range(x.ndim) if k not in (i, j)]])
            line = arange(n, device=x.device)
            x = x[line, line]
            labels = label + "".join(l for k, l in enumerate(labels) if k not in (i, j))
    return x, labels


@functools.lru_cache(512)
def _path(labels: tuple[str, ...], output: str, shapes: tuple[Shape, ...]) -> tuple[tuple[int, ...], ...]:
    """Which terms to multiply, step by step; each step's result stands behind the rest."""
    if len(labels) < 3:
        return ((0, 1),) * (len(labels) - 1)
    try:
        import opt_einsum
    except ModuleNotFoundError:
        names = dict(zip(sorted(set("".join(labels))), string.ascii_letters, strict=False))
        text = ",".join("".join(names[l] for l in term) for term in labels)
        arrays = [np.broadcast_to(np.empty(()), shape) for shape in shapes]
        path, _ = np.einsum_path(text + "->" + "".join(names[l] for l in output), *arrays, optimize="greedy")
        return tuple(tuple(map(int, step)) for step in path[1:])
    path, _ = opt_einsum.contract_path(",".join(labels) + "->" + output, *shapes, shapes=True)
    return tuple(tuple(map(int, step)) for step in path)


def _pair(first: Term, second: Term, others: set[str]) -> Term:
    """The product of two terms, summed over the indices that nobody else has: one matmul."""
    (x, left), (y, right) = first, second
    for_later = others | (set(left) & set(right))
    x, left = _sum_out(x, left, for_later)
    y, right = _sum_out(y, right, for_later)
    shared = [l for l in left if l in right]
    batch = [l for l in shared if l in others]
    inner = [l for l in shared if l not in others]
    rows = [l for l in left if l not in right]
    columns = [l for l in right if l not in left]
    size = {**dict(zip(left, x.shape, strict=True))}
    for l, n in zip(right, y.shape, strict=True):
        size[l] = n if size.get(l, 1) == 1 else size[l]
    if not inner and not (rows and columns):  # nothing to sum: an elementwise product
        order = batch + rows + columns
        return _spread(x, left, order) * _spread(y, right, order), "".join(order)
    x = _stretch(x, left, inner, size)
    y = _stretch(y, right, inner, size)
    parts = [math.prod(size[l] for l in group) for group in (rows, inner, columns)]
    x = _ordered(x, [left.index(l) for l in batch + rows + inner])
    y = _ordered(y, [right.index(l) for l in batch + inner + columns])
    x = _shaped(x, (*x.shape[: len(batch)], parts[0], parts[1]))
    y = _shaped(y, (*y.shape[: len(batch)], parts[1], parts[2]))
    out = run("matmul", (x, y))
    shape = (*broadcast_shapes(x.shape[:-2], y.shape[:-2]), *[size[l] for l in rows + columns])
    return _shaped(out, shape), "".join(batch + rows + columns)


def _ordered(x: Tensor[Any], order: list[int]) -> Tensor[Any]:
    return x if order == list(range(x.ndim)) else run("permute_dims", (x,), axes=tuple(order))


def _shaped(x: Tensor[Any], shape: Shape) -> Tensor[Any]:
    return x if x.shape == shape else run("reshape", (x,), shape=shape)


def _sum_out(x: Tensor[Any], labels: str, keep: set[str]) -> Term:
    gone = [i for i, label in enumerate(labels) if label not in keep]
    return (total(x, axis=gone), "".join(l for l in labels if l in keep)) if gone else (x, labels)


def _spread(x: Tensor[Any], labels: str, order: list[str]) -> Tensor[Any]:
    """The term with its axes in this order, of size one where it has none."""
    x = permute_dims(x, [labels.index(l) for l in order if l in labels])
    missing = [i for i, l in enumerate(order) if l not in labels]
    return expand_dims(x, missing) if missing else x


def _stretch(x: Tensor[Any], labels: str, inner: list[str], size: dict[str, int]) -> Tensor[Any]:
    """Summed indices of size one broadcast to the other operand's size."""
    shape = [size[l] if l in inner else n for l, n in zip(labels, x.shape, strict=True)]
    return broadcast_to(x, shape) if tuple(shape) != x.shape else x
