"""Sparse Jacobians and Hessians: many columns at a time, kept apart by a colouring.

Columns that no row has two of can be pushed forward as one: their sum says what is in each. Which those are is a
colouring of a graph; A. Curtis, M. Powell, J. Reid, On the estimation of sparse Jacobian matrices (1974);
A. Gebremedhin, F. Manne, A. Pothen, What color is your Jacobian? (2005).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.backend import Array
from adjoint.decorators.batched import Batch, Batched
from adjoint.decorators.dependence import Dependence, Dependent
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.devices import transform_level
from adjoint.dtypes import FLOATING
from adjoint.functions.arguments import check_shape, is_integer
from adjoint.graph.nodes import key_of, new_leaf
from adjoint.random_keys import Replay, replayed
from adjoint.rules.sparsity import scipy_sparse
from adjoint.transforms.arguments import Arguments, Function, named, on_level, results_of, reverse_level
from adjoint.transforms.reverse import gradient

Matrix = Any  # a scipy.sparse.csr_array
Numbers = np.ndarray[Any, np.dtype[np.int64]]
Values = np.ndarray[Any, Any]


def sparse_jacobian(f: Function, argnums: int | str = 0, *, pattern: Any = None) -> Function:
    """A function that gives the Jacobian of f as a SciPy sparse matrix.

    Needs SciPy: `pip install 'adjoint[sparse]'`.

    Parameters
    ----------
    f
        A function whose result is one array.
    argnums
        The position or name of the argument to differentiate by, one real floating array.
    pattern
        A SciPy sparse matrix with an entry wherever the Jacobian may be other than zero; other entries are not
        computed. Without it the pattern is found at each call, by running f once more. A Jacobian that this function
        gave is a pattern for others, at any argument where f does not decide otherwise by values.

    Returns
    -------
    Function
        Its answer is a `scipy.sparse.csr_array` of shape (result.size, argument.size), of the result's dtype. It has
        an entry for every element of the pattern, also where that is zero.

    Raises
    ------
    MissingLibraryError
        SciPy is not installed.
    ShapeError, DtypeError, ArgumentError
        The argument or the result is not one array of a real floating dtype that SciPy has; the pattern has another
        shape, or is no SciPy sparse matrix.
    TrackedError
        The Jacobian depends on what is tracked or batched outside, which a SciPy matrix cannot show.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> J = ad.sparse_jacobian(lambda x: x[1:] - x[:-1] ** 2)(np.array([1.0, 2.0, 3.0]))
    >>> J.toarray()
    array([[-2.,  1.,  0.],
           [ 0., -4.,  1.]])
    """
    known = None if pattern is None else jacobian_colouring(_given("sparse_jacobian", pattern))

    @named("sparse_jacobian", f)
    def run(*args: Any, **kwargs: Any) -> Any:
        call = _arguments("sparse_jacobian", f, argnums, args, kwargs)
        replay = Replay()
        return _computed(f, call, jacobian_colouring(_detected(f, call, replay)) if known is None else known, replay)

    return run


def sparse_hessian(f: Function, argnums: int | str = 0, *, pattern: Any = None) -> Function:
    """A function that gives the Hessian of a scalar f as a SciPy sparse matrix, exactly symmetric.

    The answer has the shape (argument.size, argument.size). Parameters and errors are those of `sparse_jacobian`; the
    pattern is that of the gradient's Jacobian, and symmetric.

    >>> import adjoint as ad
    >>> import numpy as np
    >>> H = ad.sparse_hessian(lambda x: (x[1:] * x[:-1] ** 2).sum())(np.array([1.0, 2.0, 3.0]))
    >>> H.toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """
    known = None
    if pattern is not None:
        given = _given("sparse_hessian", pattern)
        if given.shape[0] != given.shape[1] or (given != given.T).nnz:
            raise errors.ArgumentError(
                f"sparse_hessian: the pattern, of shape {given.shape}, is not symmetric; take pattern + pattern.T"
            )
        known = hessian_colouring(given)
    slopes = gradient("sparse_hessian", f, argnums)

    @named("sparse_hessian", f)
    def run(*args: Any, **kwargs: Any) -> Any:
        call = _arguments("sparse_hessian", f, argnums, args, kwargs)
        replay = Replay()
        colouring = known
        if colouring is None:
            found = _detected(slopes, call, replay)
            colouring = hessian_colouring(found.multiply(found.T))  # what one half does not have is zero in the other
        return _computed(slopes, call, colouring, replay)

    return run


# --- what is asked -------------------------------------------------------------------------------


def _arguments(name: str, f: Function, argnums: Any, args: Any, kwargs: Any) -> Arguments:
    if not is_integer(argnums) and not isinstance(argnums, str):
        raise errors.ArgumentTypeError(f"{name}: argnums is one position or name, received {errors.shown(argnums)}")
    scipy_sparse()
    call = Arguments(name, f, argnums, args, kwargs)
    if len(call.arrays) != 1:
        raise errors.ArgumentError(f"{name}: the argument is a tree of {len(call.arrays)} arrays, expected one array")
    dtype = call.base.dtype_of(call.arrays[0])
    if dtype.kind not in FLOATING:
        raise errors.DtypeError(f"{name}: the argument is {dtype}, expected a real one; ad.jacobian takes complex ones")
    return call


def _given(name: str, pattern: Any) -> Matrix:
    """A user's pattern as a matrix of booleans."""
    sparse = scipy_sparse()
    if not sparse.issparse(pattern) or pattern.ndim != 2:
        raise errors.ArgumentTypeError(
            f"{name}: pattern is a SciPy sparse matrix, received {type(pattern).__name__}; "
            "scipy.sparse.csr_array(mask) makes one"
        )
    entries = pattern.tocoo()
    ones = np.ones(entries.nnz, dtype=np.bool_)
    return sparse.csr_array((ones, (entries.row, entries.col)), shape=pattern.shape)


def _result(call: Arguments, out: Any, level: Any) -> Any:
    """The one result of f, on a level."""
    leaves, _ = results_of(call.name, out)
    if len(leaves) != 1:
        raise errors.ArgumentError(f"{call.name}: the function gives {len(leaves)} results, expected one array")
    array = on_level(leaves[0], level)
    dtype = level.dtype_of(array)
    if dtype.kind not in FLOATING or dtype.itemsize < 4:
        raise errors.DtypeError(f"{call.name}: the function gives {dtype}; SciPy's matrices want float32 or float64")
    return array


def _detected(f: Function, call: Arguments, replay: Replay) -> Matrix:
    """The pattern of the Jacobian of f, and the random keys that it drew."""
    (x,) = call.arrays
    sparse, size = scipy_sparse(), math.prod(x.shape)
    level: Dependence[Any] = Dependence.fresh(call.base)
    itself = sparse.eye_array(size, dtype=np.bool_, format="csr")
    with transform_level(level, call.dtype), replayed(replay):
        out = _result(call, call.run(f, level, [Dependent(x, itself)]), level)
    if out.pattern is None:
        return sparse.csr_array((math.prod(out.shape), size), dtype=np.bool_)
    return out.pattern


def pattern_of(name: str, f: Function, x: Any) -> Matrix:
    """The pattern of the Jacobian of f at a tensor x, rows in order."""
    pattern = _detected(f, Arguments(name, f, 0, (x,), {}), Replay())
    pattern.sum_duplicates()
    return pattern


def same_pattern(a: Matrix, b: Matrix) -> bool:
    return a.shape == b.shape and np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)


# --- colourings: how to get all entries from few products ----------------------------------------


class Colouring(NamedTuple):
    """Columns, or rows, of one colour are computed as one; each entry is found in one of those sums.

    Entry e of the pattern is element `place[e]` of the sum number `group[e]`.
    """

    pattern: Matrix  # csr, canonical
    forward: bool  # columns, pushed forward, or rows, pulled back
    colours: Numbers  # of each column or row
    group: Numbers
    place: Numbers

    @property
    def products(self) -> int:
        return int(self.colours.max(initial=-1)) + 1


def jacobian_colouring(pattern: Matrix) -> Colouring:
    """Columns or rows, whichever need fewer colours."""
    rows, columns = _entries(pattern)
    by_column = coloured(pattern)
    colouring = Colouring(pattern, True, by_column, by_column[columns], rows)
    turned = pattern.T.tocsr()
    if colouring.products > np.diff(turned.indptr).max(initial=0):  # that many colours do rows need at least
        by_row = coloured(turned)
        other = Colouring(pattern, False, by_row, by_row[rows], columns)
        colouring = other if other.products < colouring.products else colouring
    return colouring


def hessian_colouring(pattern: Matrix) -> Colouring:
    """Columns of a symmetric matrix: of an entry and its mirror image one is enough.

    In a star colouring every entry (i, j) stands alone, in row i among the columns of j's colour, or in row j among
    those of i's.
    """
    rows, columns = _entries(pattern)
    colours = star_coloured(pattern)
    _, which, counts = np.unique(
        rows * (pattern.shape[0] + 1) + colours[columns], return_inverse=True, return_counts=True
    )
    alone = counts[which.reshape(-1)] == 1
    mirrored = scipy_sparse().csr_array((alone, pattern.indices, pattern.indptr), shape=pattern.shape).T.tocsr()
    own = np.where(rows <= columns, alone, ~mirrored.data)  # both look where the upper one can be found
    group = np.where(own, colours[columns], colours[rows])
    return Colouring(pattern, True, colours, group, np.where(own, rows, columns))


def _entries(pattern: Matrix) -> tuple[Numbers, Numbers]:
    """The row and column of each entry."""
    pattern.sum_duplicates()
    rows = np.repeat(np.arange(pattern.shape[0], dtype=np.int64), np.diff(pattern.indptr))
    return rows, pattern.indices.astype(np.int64)


def coloured(pattern: Matrix) -> Numbers:
    """A colour for each column, so that no row has two of one colour.

    Greedy, columns that meet most others first (D. Welsh, M. Powell, 1967). Sets of colours are the bits of integers.
    """
    columns = pattern.tocsc()
    ends, rows = columns.indptr.tolist(), columns.indices.tolist()
    meets = pattern.T.astype(np.int64) @ (np.diff(pattern.indptr).astype(np.int64))
    colours = np.zeros(pattern.shape[1], dtype=np.int64)
    used = [0] * pattern.shape[0]
    for j in np.argsort(-meets, kind="stable").tolist():
        mine = rows[ends[j] : ends[j + 1]]
        taken = 0
        for i in mine:
            taken |= used[i]
        colours[j] = colour = _free(taken)
        for i in mine:
            used[i] |= 1 << colour
    return colours


def star_coloured(pattern: Matrix) -> Numbers:
    """A colour for each column of a symmetric pattern, so that every path of four vertices has three colours.

    Greedy, largest degree first. A. Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, New acyclic and star coloring
    algorithms with application to computing Hessians (2007), with bits of integers for sets of colours.
    """
    n = pattern.shape[0]
    ends, columns = pattern.indptr.tolist(), pattern.indices.tolist()
    neighbours = [[j for j in columns[ends[i] : ends[i + 1]] if j != i] for i in range(n)]
    colour = [-1] * n
    near = [0] * n  # the colours of a vertex's neighbours
    first: list[dict[int, int]] = [{} for _ in range(n)]  # of each colour the first neighbour
    centres = [0] * n  # the colours of those neighbours that have another neighbour of the vertex's colour
    for v in sorted(range(n), key=lambda i: -len(neighbours[i])):
        done = [w for w in neighbours[v] if colour[w] >= 0]
        once = twice = 0
        for w in done:
            twice |= once & 1 << colour[w]
            once |= 1 << colour[w]
        taken = once
        for w in done:
            taken |= centres[w]  # v - w - x - y, where w and y have one colour: x has another than v
            if twice >> colour[w] & 1:
                taken |= near[w]  # u - v - w - x, where u and w have one colour
        colour[v] = mine = _free(taken)
        for w in done:
            if twice >> colour[w] & 1:
                centres[w] |= 1 << mine
        for w in neighbours[v]:
            near[w] |= 1 << mine
            other = first[w].setdefault(mine, v)
            if other != v and colour[w] >= 0:
                centres[other] |= 1 << colour[w]
                centres[v] |= 1 << colour[w]
    return np.array(colour, dtype=np.int64)


def _free(taken: int) -> int:
    """The lowest bit that is not set."""
    return (~taken & (taken + 1)).bit_length() - 1


# --- the products --------------------------------------------------------------------------------


def _computed(f: Function, call: Arguments, colouring: Colouring, replay: Replay) -> Matrix:
    """The entries of the Jacobian of f, which draws what it drew for its pattern."""
    (x,) = call.arrays
    if colouring.pattern.shape[1] != math.prod(x.shape):
        raise errors.ShapeError(
            f"{call.name}: the pattern has shape {colouring.pattern.shape}, the argument {math.prod(x.shape)} elements"
        )
    seeds = np.zeros((max(1, colouring.products), colouring.colours.size))
    seeds[colouring.colours, np.arange(colouring.colours.size)] = 1
    with replayed(replay):
        sums = _jvps(f, call, colouring, seeds) if colouring.forward else _vjps(f, call, colouring, seeds)
    pattern = colouring.pattern
    data = sums[colouring.group, colouring.place]
    return scipy_sparse().csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)


def _jvps(f: Function, call: Arguments, colouring: Colouring, seeds: Values) -> Values:
    """A tangent of the result for each seed of the argument."""
    (x,) = call.arrays
    batch: Batched[Any] = Batched.fresh(call.base, None, "shared")  # of directions: there is one example
    level: Tangent[Any] = Tangent.fresh(batch)
    with transform_level(level, call.dtype, batch):
        out = _result(call, call.run(f, level, [Dual(batch.wrap(x), _batch(call, seeds, x))]), level)
        return _read(call, colouring, out, out.value.value, out.tangent, seeds)


def _vjps(f: Function, call: Arguments, colouring: Colouring, seeds: Values) -> Values:
    """A cotangent of the argument for each seed of the result."""
    (x,) = call.arrays
    batch: Batched[Any] = Batched.fresh(call.base, None, "shared")  # of directions: there is one example
    level = reverse_level(batch)
    with transform_level(level, call.dtype, batch):
        variable = new_leaf(batch.wrap(x))
        out = _result(call, call.run(f, level, [variable]), level)
        _check_rows(call, colouring, out)
        pairs = [(out, _batch(call, seeds, out.value.value))] if out.node is not None else []
        g = level.pull(pairs).get(key_of(variable), (None, None))[1] if pairs else None
        return _read(call, colouring, out, x, g, seeds)


def _batch(call: Arguments, seeds: Values, like: Array) -> Batch:
    base: Any = call.base
    shape = check_shape((len(seeds), *like.shape), call.name)
    values = base.from_numpy(seeds.reshape(shape).astype(base.dtype_of(like)), copy=True)
    return Batch(values, True)


def _check_rows(call: Arguments, colouring: Colouring, out: Any) -> None:
    if colouring.pattern.shape[0] != math.prod(out.shape):
        raise errors.ShapeError(
            f"{call.name}: the pattern has shape {colouring.pattern.shape}, the result {math.prod(out.shape)} elements"
        )


def _read(call: Arguments, colouring: Colouring, out: Any, like: Array, sums: Batch | None, seeds: Values) -> Values:
    """The sums as a NumPy array, (seeds, elements)."""
    base, dtype = call.base, call.base.dtype_of(out.value.value)
    _check_rows(call, colouring, out)
    size = math.prod(like.shape)
    if sums is None:
        return np.zeros((len(seeds), size), dtype=dtype)
    if base.tracked(sums.value) or base.tracked(out.value.value):
        raise errors.TrackedError(
            f"{call.name}: a SciPy matrix is a constant, but this one depends on a tensor that is tracked or batched "
            "outside; detach() that, or take ad.jacobian"
        )
    values = base.to_numpy(sums.value).astype(dtype, copy=False)
    return np.broadcast_to(values.reshape(len(seeds) if sums.batched else 1, size), (len(seeds), size))
