"""Cases of linear algebra and of Fourier transforms.

Singular values and eigenvalues are well apart, so that vectors have derivatives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cases.values import Array, Case, regular, squares

_rng = np.random.default_rng(20240301)

_RECTANGLES = [(1, 1), (2, 2), (2, 3), (3, 2), (2, 3, 2), (2, 2, 4), (0, 2, 2), (0, 3), (2, 0), (0, 0)]
_SQUARES = [(1, 1), (2, 2), (3, 3), (2, 2, 2), (0, 2, 2), (0, 0)]


def normal(*shape: int) -> Array:
    return _rng.standard_normal(shape)


def complex_normal(*shape: int) -> Array:
    return normal(*shape) + 1j * normal(*shape)


MAKERS: list[Callable[..., Array]] = [normal, complex_normal]


def _adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def apart(make: Callable[..., Array]) -> Callable[..., Array]:
    """A maker of matrices with singular values 1, 1.7, 2.4, ..., a bit off."""

    def matrices(*shape: int) -> Array:
        m, n = shape[-2:]
        k = min(m, n)
        if not np.prod(shape):
            return make(*shape)
        u, v = (np.linalg.qr(make(*shape[:-2], size, k))[0] for size in (m, n))
        s = 1 + 0.7 * np.arange(k) + 0.1 * _rng.uniform(size=k)
        return np.asarray((u * s) @ _adjoint(v))

    return matrices


def hermitian(make: Callable[..., Array]) -> Callable[..., Array]:
    """A maker of Hermitian matrices with eigenvalues -1, 0.3, 1.6, ..., a bit off."""

    def matrices(*shape: int) -> Array:
        if not np.prod(shape):
            return make(*shape)
        v = np.linalg.qr(make(*shape))[0]
        w = -1 + 1.3 * np.arange(shape[-1]) + 0.1 * _rng.uniform(size=shape[-1])
        return np.asarray((v * w) @ _adjoint(v))

    return matrices


def diagonalizable(make: Callable[..., Array]) -> Callable[..., Array]:
    """A maker of matrices with eigenvalues apart; real ones have a pair of conjugates among them."""

    def matrices(*shape: int) -> Array:
        n = shape[-1]
        if not np.prod(shape):
            return make(*shape)
        middle = np.zeros((n, n), complex if make is complex_normal else float)
        middle[range(n), range(n)] = (1 + 0.5j if make is complex_normal else 1) * (1.5 * np.arange(n) - 1)
        if make is normal and n > 1:
            middle[:2, :2] = [[0.5, -1.2], [0.9, 0.5]]
        basis = regular(make)(*shape)
        return np.asarray(basis @ middle @ np.linalg.inv(basis))

    return matrices


def _dominant(make: Callable[..., Array], main: int) -> Callable[..., Array]:
    """A maker of diagonals of which that one is large."""

    def diagonals(*shape: int) -> Array:
        x = make(*shape)
        x[..., main, :] += 4 * np.sign(x[..., main, :].real)
        return x

    return diagonals


def triangles(make: Callable[..., Array]) -> list[Case]:
    """With values in the triangle that is not read, too."""
    cases = []
    for a, b in [((1, 1), (1, 2)), ((3, 3), (3, 1)), ((2, 2, 2), (2, 1)), ((2, 2), (2, 2, 1)), ((0, 0), (0, 2))]:
        for upper in (False, True):
            unit = upper != (len(b) == 2)
            cases.append(Case((regular(make)(*a), make(*b)), {"upper": upper, "unit": unit}))
    return cases


def _systems(make: Callable[..., Array]) -> list[Case]:
    shapes = [((3, 2), (3, 1)), ((2, 3), (2, 2)), ((2, 2), (2, 2)), ((2, 3, 2), (3, 1)), ((3, 2), (2, 3, 1))]
    cases = [Case((apart(make)(*a), make(*b), 1e-10)) for a, b in shapes]
    low = apart(make)(3, 1) @ apart(make)(1, 2)  # of rank 1
    return [*cases, Case((apart(make)(3, 2), make(3, 1), np.asarray([[1e-9]]))), Case((low[:, :1], make(3, 2), 1e-10))]


_SYLVESTER = [
    (normal, (2, 2), (3, 3), (2, 3)), (normal, (0, 2, 2), (2, 2), (2, 2)), (normal, (0, 0), (2, 2), (0, 2)),
    (complex_normal, (2, 2, 2), (1, 1), (2, 1)),
]  # fmt: skip
_BANDED = [
    (normal, (3, 3), 1, (3, 1)), (normal, (2, 3, 4), 0, (4, 2)), (normal, (3, 0), 1, (0, 2)),
    (complex_normal, (4, 2), 2, (2, 2, 1)),
]  # fmt: skip

_NORMS = ["backward", "ortho", "forward"]


def _transforms(make: Callable[..., Array], shapes: list[tuple[tuple[int, ...], object]]) -> list[Case]:
    return [
        Case((make(*shape),), {"axis": axis, "inverse": inverse, "norm": _NORMS[i % 3]})
        for i, (shape, axis) in enumerate(shapes)
        for inverse in (False, True)
    ]


def _halves(sizes: list[tuple[tuple[int, ...], int, int]]) -> list[Case]:
    return [
        Case((complex_normal(*shape),), {"axis": axis, "size": size, "inverse": inverse, "norm": _NORMS[i % 3]})
        for i, (shape, axis, size) in enumerate(sizes)
        for inverse in (False, True)
    ]


CASES: dict[str, list[Case]] = {
    "slogdet": squares(regular(normal), regular(complex_normal)),
    "cofactor_pullback": [Case((make(*s), regular(make)(*s))) for make in MAKERS for s in _SQUARES],
    "expm": [Case((0.4 * make(*shape),)) for make in MAKERS for shape in _SQUARES],
    **{
        name: [
            Case((2.5 * np.eye(shape[-1]) + 0.4 * make(*shape),))
            for make, shape in [(normal, (3, 3)), (normal, (0, 0)), (complex_normal, (2, 2, 2))]
        ]
        for name in ("sqrtm", "logm")
    },
    "solve_sylvester": [Case((regular(make)(*a), regular(make)(*b), make(*q))) for make, a, b, q in _SYLVESTER],
    "solve_banded": [
        Case((_dominant(make, upper)(*ab), make(*b)), {"lower": ab[-2] - 1 - upper, "upper": upper})
        for make, ab, upper, b in _BANDED
    ],
    "solve_triangular": [case for make in MAKERS for case in triangles(make)],
    **{name: [Case((hermitian(make)(*s),)) for make in MAKERS for s in _SQUARES] for name in ("eigh", "eigvalsh")},
    **{name: [Case((diagonalizable(make)(*s),)) for make in MAKERS for s in _SQUARES] for name in ("eig", "eigvals")},
    "svdvals": [Case((apart(make)(*shape),)) for make in MAKERS for shape in _RECTANGLES],
    "svd": [
        Case((apart(make)(*shape),), {"full_matrices": full})
        for make in MAKERS
        for shape in _RECTANGLES
        for full in (False, True)
    ],
    "qr": [
        Case((apart(make)(*shape),), {"complete": complete})
        for make in MAKERS
        for shape in _RECTANGLES
        for complete in (False, True)
    ],
    "lu": [Case((apart(make)(*shape),)) for make in MAKERS for shape in _RECTANGLES],
    "pinv": [Case((apart(make)(*shape), 1e-10)) for make in MAKERS for shape in _RECTANGLES]
    + [Case((apart(normal)(2, 2, 3), np.full((2, 1, 1), 1e-9)))],
    "lstsq": [case for make in MAKERS for case in _systems(make)],
    "fft": _transforms(
        complex_normal,
        [((1,), (0,)), ((4,), (0,)), ((3, 5), (1,)), ((3, 2), (0, 1)), ((2, 3, 2), (0, 2)), ((0, 3), (1,))],
    ),
    "rfft": _transforms(normal, [((1,), 0), ((2,), 0), ((3, 5), 1), ((6, 2), 0), ((3, 4), 1), ((0, 3), 1)]),
    "hfft": _halves([((1,), 0, 1), ((2,), 0, 2), ((3, 3), 1, 5), ((4, 2), 0, 6), ((2, 3), 1, 4), ((0, 2), 1, 3)]),
}
