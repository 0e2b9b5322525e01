"""Sparse Jacobians and Hessians: patterns that miss nothing, colourings that keep entries apart, values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from calls import DIFFERENTIABLE, RECORDED, arrays_of, call, is_finite
from cases import CASES, Case
from conftest import peer
from each import Each
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as ad
from adjoint import errors
from adjoint.decorators.batched import Batch
from adjoint.decorators.dependence import Dependent
from adjoint.primitives import ARRAY, ELEMENTWISE, TABLE
from adjoint.tensor import wrap
from adjoint.transforms.sparse import coloured, hessian_colouring, jacobian_colouring, star_coloured

scipy_sparse = peer("scipy.sparse")

LEAF = ad.NumPy()
Values = np.ndarray[Any, Any]


def identity(n: int) -> Any:
    return scipy_sparse.eye_array(n, dtype=np.bool_, format="csr")


def pattern_of(f: Callable[[Any], Any], x: Values) -> Values:
    """What each element of f's result depends on: (elements of the result, elements of x)."""
    level: ad.Dependence[Any] = ad.Dependence(LEAF)
    out = f(wrap(Dependent(x, identity(x.size)), level))
    if out._array.pattern is None:
        return np.zeros((out.size, x.size), dtype=np.bool_)
    found: Values = out._array.pattern.toarray()
    return found


def calls(name: str, *, only: int | None = None) -> Iterator[tuple[Case, Callable[[Any], Any], Values]]:
    """Each case of a primitive as a function of each of its real operands, or of that in one place."""
    for case in CASES[name]:
        operands = arrays_of(case)
        if not is_finite(name, case):
            continue
        for i, x in enumerate(operands):
            if not (isinstance(x, np.ndarray) and x.dtype.kind == "f") or only not in (None, i):
                continue
            g = call(name, case, operands, (i,))

            def f(t: Any, g: Any = g) -> Any:
                out = g(t)
                return out[0] if isinstance(out, tuple) else out

            if f(ad.asarray(x, device=LEAF)).dtype.kind == "f":
                yield case, f, x


# --- every primitive ---


COMPLEX = {
    "eig",
    "eigvals",
    "erf_complex",
    "erfc_complex",
    "fft",
    "hfft",
    "rfft",
    "wofz",
}


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name not in COMPLEX])
def test_patterns_have_every_entry_that_is_not_zero(name: str) -> None:
    """And sparse Jacobians are the dense ones."""
    compared = 0
    with Each() as each:
        for case, f, x in calls(name):
            with each(case):
                with np.errstate(all="ignore"):
                    sparse, dense = ad.sparse_jacobian(f)(x), ad.jacobian(f)(x)
                    out = f(ad.asarray(x, device=LEAF))
                pattern = pattern_of(f, x)
                dense = dense.reshape(pattern.shape)
                assert not ((dense != 0) & ~pattern).any()
                assert (sparse.format, sparse.shape, sparse.dtype) == ("csr", (out.size, x.size), out.dtype)
                assert sparse.nnz == pattern.sum()
                np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-13, atol=1e-14)
                compared += 1
    assert compared


# derivatives that are zero at some points only, or that rounding makes zero; kernels that see nothing but padding
NOT_TIGHT = set(
    "attention attention_pullback cholesky cofactor cofactor_pullback conv2d_weight conv_weight cummax cummin "
    "cumulative_prod index_max index_min labelled_cross_entropy labelled_cross_entropy_pullback labelled_mean "
    "labelled_mean_pullback log_softmax log_softmax_pullback lstsq lu max min nanmax nanmin prod qr "
    "softmax softmax_cross_entropy solve_banded solve_triangular sort standardize topk".split()
)


@pytest.mark.parametrize("name", sorted(set(DIFFERENTIABLE) - NOT_TIGHT - COMPLEX))
def test_patterns_have_no_more_than_that(name: str) -> None:
    """Where derivatives are not zero by chance: windows of a convolution, rows of a product, places of an index."""
    with Each() as each:
        for case, f, x in calls(name, only=0 if name.startswith("conv") else None):
            with each(case):
                pattern = pattern_of(f, x)
                if TABLE[name].kind is ELEMENTWISE:  # at most the element at its own place; some slopes are zero
                    assert pattern.sum(axis=1).max(initial=0) <= 1
                else:
                    np.testing.assert_array_equal(pattern, ad.jacobian(f)(x).reshape(pattern.shape) != 0)


@pytest.mark.parametrize("name", sorted(set(RECORDED) - set(DIFFERENTIABLE)))
def test_results_without_derivatives_depend_on_nothing(name: str) -> None:
    level: Any = ad.Dependence(LEAF)
    with Each() as each:
        for case in CASES[name]:
            with each(case):
                operands = [Dependent(x, identity(x.size)) if isinstance(x, np.ndarray) else x for x in arrays_of(case)]
                with np.errstate(all="ignore"):
                    out = getattr(level, name)(*operands, **case.parameters)
                assert not level.is_active(out)


# --- random programs ---

INDEX = np.array([2, 0, 0, 3, 1, 4])
MATRIX = np.triu(np.tril(np.arange(36.0).reshape(6, 6) % 5 - 1.5, 1), -1)
KERNEL = np.array([0.5, -1.0, 0.25]).reshape(1, 1, 1, 3)


def _assigned(x: Any) -> Any:
    y = x * 1.0
    y[1:3] = ad.sin(x[3:5])
    y[0] += x[5] * x[5]
    return y


def _looped(x: Any) -> Any:
    return ad.stack([x[i] * x[(i * 2) % 6] for i in range(6)])


# functions of vectors of 6, of all kinds of primitives
STEPS: dict[str, Callable[[Any], Any]] = {
    "sin": ad.sin,
    "square": lambda x: x * x,
    "neighbours": lambda x: x * ad.roll(x, 1) - ad.exp(-ad.roll(x, 2)),
    "where": lambda x: ad.where(x > 0.1, x * x, -x),
    "clip": lambda x: ad.clip(x, -0.7, 0.9) * x,
    "maximum": lambda x: ad.maximum(x, ad.flip(x) * 0.5),
    "flip": ad.flip,
    "pad": lambda x: ad.pad(x[1:-1], (1, 1)) + x,
    "concat": lambda x: ad.concat([x[3:] * 2, x[:3] ** 3]),
    "index": lambda x: x[ad.asarray(INDEX, device=LEAF)],
    "assigned": _assigned,
    "looped": _looped,
    "reshape": lambda x: ad.reshape(ad.sum(ad.reshape(x, (2, 3)), axis=0, keepdims=True) * ad.reshape(x, (2, 3)), (6,)),
    "prod": lambda x: x + ad.repeat(ad.prod(ad.reshape(x, (3, 2)), axis=1), 2),
    "max": lambda x: x * ad.repeat(ad.max(ad.reshape(x, (2, 3)), axis=1), 3),
    "cumulative": lambda x: ad.reshape(ad.cumulative_sum(ad.reshape(x, (3, 2)), axis=1), (6,)),
    "sort": lambda x: ad.reshape(ad.sort(ad.reshape(x, (3, 2)), axis=1), (6,)) * x,
    "softmax": lambda x: ad.reshape(ad.special.softmax(ad.reshape(x, (2, 3)), axis=1), (6,)),
    "logsumexp": lambda x: x - ad.special.logsumexp(x[:2], axis=0),
    "matmul": lambda x: ad.reshape(ad.reshape(x, (3, 2)) @ ad.reshape(x[:4], (2, 2)), (6,)),
    "einsum": lambda x: ad.einsum("ij,j->i", ad.asarray(MATRIX, device=LEAF), x),
    "convolution": lambda x: ad.reshape(
        ad.nn.conv2d(ad.reshape(x, (1, 1, 1, 6)), ad.asarray(KERNEL, device=LEAF), padding=(0, 1)), (6,)
    ),
    "kernel": lambda x: ad.reshape(
        ad.nn.conv2d(ad.reshape(x, (1, 1, 1, 6)), ad.reshape(x[1:4], (1, 1, 1, 3)), padding=(0, 1)), (6,)
    ),
    "solve": lambda x: ad.reshape(
        ad.linalg.solve(ad.reshape(x[:4], (2, 2)) + 4 * ad.eye(2, dtype=ad.float64), ad.reshape(x, (2, 3))), (6,)
    ),
    "norm": lambda x: x / (1 + ad.linalg.vector_norm(x[2:4])),
    "vmap": lambda x: ad.vmap(lambda v: v * v.sum())(ad.reshape(x, (3, 2))).reshape(6),
    "grad": lambda x: ad.grad(lambda v: (ad.sin(v[1:]) * v[:-1]).sum())(x),
    "jvp": lambda x: ad.jvp(lambda v: v * ad.roll(v, 1), (x,), (x * x,))[1],
    "checkpoint": ad.checkpoint(lambda x: ad.sin(x) * ad.roll(x, 3)),
    "constant": lambda x: ad.ones(6, dtype=ad.float64) * 2.0 + ad.stop_gradient(x),
}


@settings(max_examples=60)
@given(names=st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=3), seed=st.integers(0, 100))
def test_random_programs(names: list[str], seed: int) -> None:
    def f(x: Any) -> Any:
        for name in names:
            x = STEPS[name](x)
        return x

    def total(x: Any) -> Any:
        return (f(x)[:4] ** 2).sum()

    x = np.random.default_rng(seed).permutation(np.linspace(-1.3, 1.4, 6))
    for sparse, dense in (
        (ad.sparse_jacobian(f)(x), ad.jacobian(f)(x)),
        (ad.sparse_hessian(total)(x), ad.hessian(total)(x)),
    ):
        np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-9, atol=1e-10 * max(1.0, np.max(np.abs(dense))))


@pytest.mark.parametrize("name", STEPS)
def test_each_step(name: str) -> None:
    x = np.array([0.3, -1.1, 0.8, 1.3, -0.4, 0.6])
    f = STEPS[name]
    np.testing.assert_allclose(ad.sparse_jacobian(f)(x).toarray(), ad.jacobian(f)(x), rtol=1e-12, atol=1e-14)
    total = lambda v: (f(v) ** 2).sum()
    np.testing.assert_allclose(ad.sparse_hessian(total)(x).toarray(), ad.hessian(total)(x), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["where", "clip", "maximum", "max", "sort", "prod", "norm"])
def test_a_pattern_holds_elsewhere(name: str) -> None:
    """Also where another branch is taken, and another element is the largest."""
    x = np.array([0.3, -1.1, 0.8, 1.3, -0.4, 0.6])
    f = STEPS[name]
    pattern = ad.sparse_jacobian(f)(x)
    for _ in range(5):
        x = np.roll(x, 1) * 1.1
        np.testing.assert_allclose(
            ad.sparse_jacobian(f, pattern=pattern)(x).toarray(), ad.jacobian(f)(x), rtol=1e-12, atol=1e-14
        )


# --- colourings ---


@st.composite
def masks(draw: Any, square: bool = False) -> Values:
    rows = draw(st.integers(0, 9))
    columns = rows if square else draw(st.integers(0, 9))
    density = draw(st.sampled_from([0.05, 0.2, 0.5, 1.0]))
    return np.random.default_rng(draw(st.integers(0, 10**6))).random((rows, columns)) < density


@settings(max_examples=200)
@given(mask=masks())
def test_no_row_has_two_columns_of_one_colour(mask: Values) -> None:
    colours = coloured(scipy_sparse.csr_array(mask))
    for row in mask:
        assert len(set(colours[row])) == row.sum()
    assert set(colours.tolist()) == set(range(colours.max(initial=-1) + 1))


@settings(max_examples=300)
@given(mask=masks(square=True))
def test_paths_of_four_have_three_colours(mask: Values) -> None:
    mask |= mask.T
    colours, n = star_coloured(scipy_sparse.csr_array(mask)), len(mask)
    near = [[j for j in range(n) if mask[i, j] and i != j] for i in range(n)]
    for a in range(n):
        for b in near[a]:
            assert colours[a] != colours[b]
            for c in near[b]:
                for d in near[c]:
                    if a not in (b, c, d) and b != d:
                        assert len({colours[v] for v in (a, b, c, d)}) > 2


@settings(max_examples=200)
@given(mask=masks(), seed=st.integers(0, 1000))
def test_every_entry_is_found_in_the_sums(mask: Values, seed: int) -> None:
    matrix = np.where(mask, np.random.default_rng(seed).random(mask.shape), 0.0)
    colouring = jacobian_colouring(scipy_sparse.csr_array(mask))
    seeds = np.eye(colouring.products)[colouring.colours].T
    sums = seeds @ matrix.T if colouring.forward else seeds @ matrix
    np.testing.assert_array_equal(sums[colouring.group, colouring.place], matrix[mask])


@settings(max_examples=300)
@given(mask=masks(square=True), seed=st.integers(0, 1000))
def test_every_entry_of_a_symmetric_matrix_is_found_in_the_sums(mask: Values, seed: int) -> None:
    mask |= mask.T
    matrix = np.where(mask, np.random.default_rng(seed).random(mask.shape), 0.0)
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    colouring = hessian_colouring(scipy_sparse.csr_array(mask))
    sums = np.eye(colouring.products)[colouring.colours].T @ matrix
    np.testing.assert_array_equal(sums[colouring.group, colouring.place], matrix[mask])
    # an entry and its mirror image are one number
    where = np.zeros((*mask.shape, 2), dtype=int)
    where[mask] = np.stack([colouring.group, colouring.place], axis=1)
    np.testing.assert_array_equal(where, where.transpose(1, 0, 2))


def banded(n: int, below: int, above: int) -> Any:
    return scipy_sparse.csr_array(np.triu(np.tril(np.ones((n, n), dtype=np.bool_), above), -below))


@pytest.mark.parametrize(
    ("pattern", "columns", "star"),
    [
        (banded(30, 0, 0), 1, 1),
        (banded(30, 1, 1), 3, 3),
        (banded(30, 2, 2), 5, 5),
        (banded(30, 30, 30), 30, 30),
        (scipy_sparse.csr_array((4, 4), dtype=np.bool_), 1, 1),
        (scipy_sparse.csr_array((0, 0), dtype=np.bool_), 0, 0),
    ],
)
def test_numbers_of_colours(pattern: Any, columns: int, star: int) -> None:
    assert jacobian_colouring(pattern).products == columns
    assert hessian_colouring(pattern).products == star


def test_an_arrow_needs_two_colours_by_symmetry() -> None:
    mask = np.eye(30, dtype=np.bool_)
    mask[0] = mask[:, 0] = True
    assert jacobian_colouring(scipy_sparse.csr_array(mask)).products == 30
    assert hessian_colouring(scipy_sparse.csr_array(mask)).products == 2


def test_rows_are_taken_where_they_are_fewer() -> None:
    colouring = jacobian_colouring(scipy_sparse.csr_array(np.ones((2, 9), dtype=np.bool_)))
    assert (colouring.forward, colouring.products) == (False, 2)
    colouring = jacobian_colouring(scipy_sparse.csr_array(np.ones((9, 2), dtype=np.bool_)))
    assert (colouring.forward, colouring.products) == (True, 2)


# --- problems ---


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_rosenbrock() -> None:
    optimize = peer("scipy.optimize")
    x = np.linspace(-1.2, 1.0, 40)
    found = ad.sparse_hessian(rosenbrock)(x)
    np.testing.assert_allclose(found.toarray(), optimize.rosen_hess(x), rtol=1e-12)
    assert found.nnz == 3 * 40 - 2
    assert hessian_colouring(found.astype(np.bool_)).products == 3


def test_a_discretised_equation() -> None:
    """u_t = (k(u) u_x)_x on a line, and on a square through a convolution."""
    n = 25

    def line(u: Any) -> Any:
        v = ad.pad(u, (1, 1))
        flux = (1 + v[1:] ** 2) * (v[1:] - v[:-1])
        return (flux[1:] - flux[:-1]) * n**2

    u = np.sin(np.linspace(0, 3, n))
    found = ad.sparse_jacobian(line)(u)
    np.testing.assert_allclose(found.toarray(), ad.jacobian(line)(u), rtol=1e-12)
    assert (found.nnz, jacobian_colouring(found.astype(np.bool_)).products) == (3 * n - 2, 3)

    stencil = np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]).reshape(1, 1, 3, 3)

    def square(u: Any) -> Any:
        images = ad.reshape(u, (1, 1, 6, 7))
        return ad.nn.conv2d(images, ad.asarray(stencil, device=LEAF), padding=(1, 1))[0, 0] - ad.exp(u)

    u = np.linspace(0, 1, 42).reshape(6, 7)
    found = ad.sparse_jacobian(square)(u)
    np.testing.assert_allclose(found.toarray(), ad.jacobian(square)(u).reshape(42, 42), rtol=1e-12)
    assert found.nnz < 9 * 42  # the kernel's zeros count
    assert jacobian_colouring(found.astype(np.bool_)).products <= 12  # of 42


# --- as functions ---


def g(x: Any, y: Any) -> Any:
    return x[1:] * y - x[:-1] ** 3


X = np.array([0.5, 1.5, -0.7, 2.0])


def test_a_known_pattern_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = ad.sparse_jacobian(g)(X, 2.0)
    monkeypatch.setattr("adjoint.transforms.sparse.Dependence", None)
    for known in (pattern, pattern.tocoo(), pattern.tocsc(), scipy_sparse.csr_matrix(pattern)):
        again = ad.sparse_jacobian(g, pattern=known)(X * 2, 3.0)
        np.testing.assert_allclose(again.toarray(), ad.jacobian(g)(X * 2, 3.0), rtol=1e-14)
    again.data[:] = 0
    np.testing.assert_array_equal(pattern.toarray(), ad.jacobian(g)(X, 2.0))  # nothing is shared
    hessian = scipy_sparse.csr_array(np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1))
    found = ad.sparse_hessian(rosenbrock, pattern=hessian)(X)
    np.testing.assert_allclose(found.toarray(), ad.hessian(rosenbrock)(X), rtol=1e-12)


def test_entries_that_are_zero_stay() -> None:
    """Results at different points have one structure, as solvers want it."""
    f = lambda x: ad.maximum(x, 0.0) * x[::-1]
    found = [ad.sparse_jacobian(f)(x) for x in (X, -X)]
    np.testing.assert_array_equal(found[0].indices, found[1].indices)
    np.testing.assert_array_equal(found[0].indptr, found[1].indptr)


def test_which_argument() -> None:
    for argnums in (1, -1, "y"):
        found = ad.sparse_jacobian(lambda x, y: y * y * x[:2], argnums)(X, np.array([1.0, 2.0]))
        np.testing.assert_allclose(found.toarray(), np.diag([1.0, 6.0]))
    found = ad.sparse_hessian(lambda x, y: (y**3).sum() * x[0], "y")(X, y=np.array([1.0, 2.0]))
    np.testing.assert_allclose(found.toarray(), np.diag([3.0, 6.0]))


def test_arrays_are_flattened() -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    f = lambda v: v.mT * v.mT
    assert ad.sparse_jacobian(f)(x).shape == (6, 6)
    np.testing.assert_allclose(ad.sparse_jacobian(f)(x).toarray(), ad.jacobian(f)(x).reshape(6, 6))
    assert ad.sparse_jacobian(lambda v: v * v)(2.0).toarray().tolist() == [[4.0]]
    assert ad.sparse_jacobian(f)(np.zeros((0, 3))).shape == (0, 0)
    assert ad.sparse_hessian(lambda v: 3.0 * v.sum())(x).nnz == 0


def test_single_precision() -> None:
    x = X.astype(np.float32)
    for f in (lambda v: v[1:] * v[:-1], lambda v: v.sum()[None] * 2.0, lambda v: ad.ones(3, dtype=ad.float32)):
        assert ad.sparse_jacobian(f)(x).dtype == np.float32
    assert ad.sparse_hessian(rosenbrock)(x).dtype == np.float32


def test_tensors_on_any_backend() -> None:
    wanted = ad.jacobian(g)(X, 2.0)
    leaves = [ad.Reference(), ad.ArrayAPI(peer("array_api_strict")), ad.Autodiff(ad.NumPy()), ad.Reference(digits=20)]
    for device in leaves:
        x = ad.asarray(X, device=device)
        np.testing.assert_allclose(ad.sparse_jacobian(g)(x, 2.0).toarray(), wanted, rtol=1e-14)
        found = ad.sparse_hessian(lambda x: (x[ad.asarray([0, 0, 2], device=x.device)] ** 3).sum())(x)
        np.testing.assert_allclose(found.toarray(), np.diag([6.0, 0, -4.2, 0]), rtol=1e-14)


def test_functions_with_rules_of_their_own() -> None:
    """The rule's derivative counts: the functions themselves are constant."""

    @ad.custom_jvp
    def pushed(x: Any) -> Any:
        return ad.stop_gradient(x)

    @ad.custom_vjp
    def pulled(x: Any) -> Any:
        return ad.stop_gradient(x)

    pushed.defjvp(lambda p, t: (pushed(p[0]), ad.roll(t[0], 1) * p[0]))
    pulled.defvjp(lambda x: (x, x), lambda x, g: (ad.roll(g * x, -1),))
    for f in (pushed, pulled):
        np.testing.assert_allclose(ad.sparse_jacobian(f)(X).toarray(), ad.jacobian(f)(X), rtol=1e-14)
        assert ad.sparse_jacobian(f)(X).nnz == 4
    assert ad.sparse_hessian(lambda x: (pushed(x) ** 2).sum())(X).shape == (4, 4)
    assert ad.sparse_jacobian(lambda x: pushed(ad.ones(2, dtype=ad.float64)) * x[:2])(X).nnz == 2


def test_rules_that_call_their_own_function() -> None:
    """As those of linear functions do."""

    @ad.custom_jvp
    def shifted(x: Any) -> Any:
        return ad.roll(ad.stop_gradient(x), 1)

    shifted.defjvp(lambda p, t: (shifted(p[0]), shifted(t[0])))
    f = lambda x: shifted(x) * ad.argmax(x)
    np.testing.assert_allclose(ad.sparse_jacobian(f)(X).toarray(), ad.jacobian(f, mode="forward")(X), rtol=1e-14)
    value, series = ad.jet(shifted, (X,), ([X, 2 * X],))
    np.testing.assert_array_equal([value, *series], [np.roll(X * n, 1) for n in (1, 1, 2)])


def test_control_flow() -> None:
    def scanned(x: Any, every: int | None = None) -> Any:
        return ad.scan(lambda c, v: (c * ad.sin(v), c + v), x[0], x, checkpoint_every=every)[1]

    loops = [
        scanned,
        lambda x: scanned(x, 2),
        lambda x: ad.fori_loop(0, 2, lambda i, v: ad.sin(v) * x, x),
        lambda x: ad.cond(x[0] > 0, lambda v: v * v, lambda v: v * v[0], x),
        lambda x: ad.map(lambda v: v**3, x),
    ]
    for f, entries in zip(loops, (10, 10, 4, 4, 4), strict=True):
        total = lambda x, f=f: (f(x) ** 2).sum()
        found = ad.sparse_jacobian(f)(X)
        assert found.nnz == entries
        np.testing.assert_allclose(found.toarray(), ad.jacobian(f)(X), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(ad.sparse_hessian(total)(X).toarray(), ad.hessian(total)(X), rtol=1e-11, atol=1e-12)


def test_python_decides_by_values() -> None:
    f = lambda x: x[:2] ** 2 if x[0] > 0 else x[2:] ** 2
    assert ad.sparse_jacobian(f)(X).toarray()[0].tolist() == [1.0, 0, 0, 0]
    assert ad.sparse_jacobian(f)(-X).toarray()[0].tolist() == [0, 0, 1.4, 0]


# --- levels ---


def test_a_plain_call() -> None:
    x = ad.tensor([0.5, 1.0], device=ad.Dependence(ad.NumPy()))
    np.testing.assert_array_equal(ad.sin(x).numpy(), np.sin(np.float32([0.5, 1.0])))
    assert not x.is_tracked()
    assert ad.device("dependence<numpy>") is x.device


def test_places_that_differ_between_examples_count_all() -> None:
    level: Any = ad.Dependence(ad.Batched(LEAF))
    x = Dependent(Batch(np.arange(8.0).reshape(2, 4), True), identity(4))
    places = level.wrap(Batch(np.array([[0, 3], [0, 2]]), True))
    read = level.index(x, places, key=(ARRAY,))
    np.testing.assert_array_equal(read.pattern.toarray(), [[1, 0, 0, 0], [0, 0, 1, 1]])
    written = level.index_add(level.wrap(Batch(np.zeros(4), False)), read, places, key=(ARRAY,))
    np.testing.assert_array_equal(written.pattern.toarray(), [[1, 0, 0, 0], [0] * 4, [0, 0, 1, 1], [0, 0, 1, 1]])


def test_scipy_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    for f in (ad.sparse_jacobian(g), ad.sparse_hessian(rosenbrock)):
        with pytest.raises(errors.MissingLibraryError, match=r"pip install 'adjoint\[sparse\]'"):
            f(X, 2.0) if f.__name__ == "sparse_jacobian(g)" else f(X)


A = scipy_sparse.csr_array(np.ones((3, 4)))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: ad.sparse_jacobian(g, (0, 1))(X, 2.0), errors.ArgumentTypeError, "argnums is one position"),
        (lambda: ad.sparse_jacobian(g, 2)(X, 2.0), errors.ArgumentError, "argnums is 2"),
        (lambda: ad.sparse_jacobian(lambda t: t[0])((X, X)), errors.ArgumentError, "tree of 2 arrays"),
        (lambda: ad.sparse_jacobian(lambda x: (x, x))(X), errors.ArgumentError, "2 results"),
        (lambda: ad.sparse_jacobian(lambda x: "text")(X), errors.ArgumentTypeError, "results are tensors"),
        (lambda: ad.sparse_jacobian(ad.sin)(X * 1j), errors.DtypeError, "complex128, expected a real one"),
        (lambda: ad.sparse_jacobian(lambda x: x * 1j)(X), errors.DtypeError, "the function gives complex128"),
        (lambda: ad.sparse_jacobian(ad.sin)(np.float16(1)), errors.DtypeError, "float16; SciPy"),
        (lambda: ad.sparse_jacobian(ad.sin)(np.arange(3)), errors.DtypeError, "int64, which has no derivatives"),
        (lambda: ad.sparse_jacobian(ad.argmax)(X), errors.DtypeError, "the function gives int64"),
        (lambda: ad.sparse_jacobian(g, pattern=np.ones((3, 4))), errors.ArgumentTypeError, "received ndarray"),
        (lambda: ad.sparse_jacobian(g, pattern=A[:, :3])(X, 2.0), errors.ShapeError, r"\(3, 3\), the argument 4"),
        (lambda: ad.sparse_jacobian(g, pattern=A[:2])(X, 2.0), errors.ShapeError, r"\(2, 4\), the result 3"),
        (lambda: ad.sparse_jacobian(g, pattern=A[[0, 1, 2, 0, 1]].T.T)(X, 2.0), errors.ShapeError, r"\(5, 4\)"),
        (lambda: ad.sparse_hessian(rosenbrock, pattern=A), errors.ArgumentError, r"\(3, 4\), is not symmetric"),
        (lambda: ad.sparse_hessian(rosenbrock, pattern=scipy_sparse.csr_array(np.tri(4)))(X), errors.ArgumentError,
            r"pattern \+ pattern\.T"),
        (lambda: ad.sparse_hessian(g)(X, 2.0), errors.ShapeError, "gradients are of one scalar"),
        (lambda: ad.sparse_jacobian(3), errors.ArgumentTypeError, "expected a function"),
        (lambda: ad.sparse_hessian(3), errors.ArgumentTypeError, "expected a function"),
        (lambda: ad.sparse_jacobian(ad.sin)(ad.tensor(X).require_grad()), errors.TrackedError, r"detach\(\)"),
        (lambda: ad.grad(lambda y: y * ad.sparse_jacobian(g)(X, y).sum())(2.0), errors.TrackedError, "tracked"),
        (lambda: ad.vmap(lambda x: ad.sparse_jacobian(g)(x, 2.0))(X[None]), errors.TrackedError, "batched"),
    ],
)  # fmt: skip
def test_wrong_arguments(wrong: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def test_errors_of_the_gradient_name_the_hessian() -> None:
    with pytest.raises(ad.errors.ShapeError, match="^sparse_hessian: the function gives a result of shape"):
        ad.sparse_hessian(lambda x: x * x)(np.ones(3))


def test_random_numbers_are_drawn_once_for_all_directions() -> None:
    x = np.arange(1.0, 7.0)
    for _ in range(5):
        J = ad.sparse_jacobian(lambda x: ad.random.shuffle(ad.nn.dropout(x, 0.5)))(x).toarray()
        assert set(np.unique(J)) <= {0.0, 2.0}
        assert (np.count_nonzero(J, axis=0) <= 1).all()
        assert (np.count_nonzero(J, axis=1) <= 1).all()


@pytest.mark.parametrize("transform", ["jacobian", "hessian"])
def test_random_functions_have_the_dense_derivative(transform: str) -> None:
    def f(x: Any) -> Any:
        moved = ad.random.shuffle(x) * ad.random.normal((6,), dtype=ad.float64)
        return moved[1:] * x[:-1] if transform == "jacobian" else (moved**2 * x).sum()

    x = np.arange(1.0, 7.0)
    answers = []
    for name in (f"sparse_{transform}", transform):
        ad.random.seed(0)
        answers.append(getattr(ad, name)(f)(x))
    np.testing.assert_allclose(answers[0].toarray(), answers[1], rtol=1e-13)
