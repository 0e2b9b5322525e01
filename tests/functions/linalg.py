"""Calls of linear algebra and of Fourier transforms.

Vectors of eigenvalues and singular values enter as `calls.determined` has them: without the phases that are free.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from calls import determined, hermitian
from cases.linalg import MAKERS, apart, diagonalizable
from cases.linalg import hermitian as hermitian_values

import adjoint as ad
from functions.draw import Call, Draw, Shape
from functions.random import seeded

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {}
# of integers, or made from nothing
OTHER = {"linalg.matrix_rank"} | {
    f"fft.{name}" for name in "bartlett blackman cosine fftfreq hamming hann nuttall rfftfreq".split()
}


def _each(names: str, maker: Callable[[Any, Draw], Call]) -> None:
    for name in names.split():
        FUNCTIONS[name] = lambda d, f=operator.attrgetter(name)(ad): maker(f, d)


def _stack(d: Draw) -> Shape:
    return d.pick((), (2,), (1, 2), (0,))


def _rectangle(d: Draw) -> Any:
    m, n = d.pick(2, 1, 3), d.pick(2, 1, 3)
    return d.lay(apart(d.pick(*MAKERS))(*_stack(d), m, n))


def _square(d: Draw, maker: Any) -> Any:
    n = d.pick(2, 1, 3)
    return d.lay(maker(d.pick(*MAKERS))(*_stack(d), n, n))


def _eigh(f: Any, d: Draw) -> Call:
    name = f.__name__
    return (lambda a: determined(name, tuple(f(hermitian(a))) if name == "eigh" else f(hermitian(a)))), _square(
        d, hermitian_values
    )


def _eig(f: Any, d: Draw) -> Call:
    name = f.__name__
    return (lambda a: determined(name, tuple(f(a)) if name == "eig" else f(a))), _square(d, diagonalizable)


_each("linalg.eigh linalg.eigvalsh", _eigh)
_each("linalg.eig linalg.eigvals", _eig)


def _svd(d: Draw) -> Call:
    full = d.pick(False, True)
    return (lambda a: determined("svd", tuple(ad.linalg.svd(a, full_matrices=full)))), _rectangle(d)


def _qr(d: Draw) -> Call:
    mode = d.pick("reduced", "complete")
    return (lambda a: determined("qr", tuple(ad.linalg.qr(a, mode=mode)))), _rectangle(d)


def _solve_triangular(d: Draw) -> Call:
    a, upper, unit = d.square(), d.pick(False, True), d.pick(False, True)
    b = d.pick((a.shape[-1],), (a.shape[-1], 2), (*a.shape[:-1], 2))
    return (lambda x, y: ad.linalg.solve_triangular(x, y, upper=upper, unitriangular=unit)), a, d.either(b)


def _cholesky_solve(d: Draw) -> Call:
    a, upper = d.square(), d.pick(False, True)
    b = d.pick((a.shape[-1],), (a.shape[-1], 2), (*a.shape[:-1], 2))
    return (lambda x, y: ad.linalg.cholesky_solve(x, y, upper=upper)), d.either(b), a


def _sylvester(d: Draw) -> Call:
    a, n = d.square(), d.pick(2, 1, 3)
    b = 0.5 * d.either((*d.pick((), a.shape[:-2]), n, n)) + 2.5 * np.eye(n)
    return ad.linalg.solve_sylvester, a, b, d.either((*d.pick((), a.shape[:-2]), a.shape[-1], n))


def _banded(d: Draw) -> Call:
    n, lower, upper = d.pick(3, 1, 2, 12), d.pick(1, 0, 2), d.pick(1, 0, 2)
    ab = d.either((*_stack(d), lower + upper + 1, n))
    ab[..., upper, :] += 6
    b = d.either(d.pick((n,), (n, 2), (*ab.shape[:-2], n, 1)))
    return (lambda x, y: ad.linalg.solve_banded((lower, upper), x, y)), ab, b


def _hermitian_banded(d: Draw) -> Call:
    n, count, lower = d.pick(3, 1, 2), d.pick(1, 0, 2), d.pick(False, True)
    ab = d.either((*_stack(d), count + 1, n))
    ab[..., 0 if lower else count, :] += 6
    return (lambda x, y: ad.linalg.solveh_banded(x, y, lower=lower)), ab, d.either(d.pick((n,), (n, 2)))


def _lu_solve(d: Draw) -> Call:
    a, trans = d.square(), d.pick(0, 1, 2)
    b = d.pick((a.shape[-1],), (a.shape[-1], 2), (*a.shape[:-1], 2))
    return (lambda x, y: ad.linalg.lu_solve(ad.linalg.lu_factor(x), y, trans=trans)), a, d.either(b)


def _svd_lowrank(d: Draw) -> Call:
    m, n, q = d.pick(3, 4), d.pick(3, 2), d.pick(1, 2)

    @seeded
    def values(x: Any, *mean: Any) -> Any:
        u, s, v = ad.linalg.svd_lowrank(x, q, 1, *mean)
        return s, abs(u), abs(v)

    return values, d.lay(apart(d.pick(*MAKERS))(m, n)), *d.pick([], [0.1 * d.real((n,))])


def _block_diag(d: Draw) -> Call:
    shapes = d.pick([(2, 3), (1, 1)], [(3,), (2, 2, 1), ()], [(2, 2)], [(0, 2), (2, 1, 2)])
    return (lambda *xs: ad.linalg.block_diag(*xs)), *[d.either(shape) for shape in shapes]


def _toeplitz(d: Draw) -> Call:
    c, r = d.pick((3,), (2, 2), (1,), (0,)), d.pick(None, (2,), (2, 3), (1,))
    return ad.linalg.toeplitz, d.either(c), *([] if r is None else [d.either(r)])


def _pinv(d: Draw) -> Call:
    x = _rectangle(d)
    return d.pick((ad.linalg.pinv, x), (lambda a: ad.linalg.pinv(a, rtol=np.full(x.shape[:-2], 1e-9)), x))


def _lstsq(d: Draw) -> Call:
    a = _rectangle(d)
    b = d.pick((a.shape[-2],), (*a.shape[:-1], 2))
    return (lambda x, y: ad.linalg.lstsq(x, y)), a, d.either(b)


def _householder_product(d: Draw) -> Call:
    m, n = d.pick((3, 2), (2, 2), (3, 1), (2, 0))
    k = d.pick(*range(n, -1, -1))
    stack = _stack(d)
    return ad.linalg.householder_product, d.either((*stack, m, n)), d.either((*stack, k)) * d.pick(1.0, 0.0)


def _matrix_power(d: Draw) -> Call:
    n = d.pick(3, 0, 1, 2, 5, -1, -2)
    return (lambda a: ad.linalg.matrix_power(a, n)), d.square()


def _multi_dot(d: Draw) -> Call:
    shapes = d.pick(
        [(2, 3), (3, 1)], [(3,), (3, 2), (2,)], [(2, 3), (3, 1), (1, 2)], [(2, 2, 3), (3, 2), (2, 2, 1)], [(3,), (3,)]
    )
    return (lambda *xs: ad.linalg.multi_dot(xs)), *[d.either(shape) for shape in shapes]


def _cond(d: Draw) -> Call:
    p = d.pick(None, 2, -2, "fro", 1, -1, np.inf, -np.inf, "nuc")
    x = _square(d, apart) if p not in (None, 2, -2) else _rectangle(d)
    return (lambda a: ad.linalg.cond(a, p)), x


def _matrix_norm(d: Draw) -> Call:
    order, keepdims = d.pick("nuc", 2, -2, "fro"), d.pick(False, True)
    return (lambda a: ad.linalg.matrix_norm(a, ord=order, keepdims=keepdims)), _rectangle(d)


def _cross(d: Draw) -> Call:
    x, y, axis = d.pick(((3,), (3,), -1), ((2, 3), (3,), -1), ((3, 2), (3, 1), -2), ((0, 3), (1, 3), 1))
    return (lambda a, b: ad.linalg.cross(a, b, axis=axis)), d.either(x), d.either(y)


def _diagonal(f: Any, d: Draw) -> Call:
    offset = d.pick(0, 1, -1, 4, -4)
    return (lambda a: f(a, offset=offset)), d.either(d.pick((2, 3), (3, 2), (2, 2, 2), (0, 2), (0, 2, 2)))


_each("linalg.diagonal linalg.trace", _diagonal)
_each("linalg.slogdet linalg.expm", lambda f, d: (f, d.square() * d.pick(1.0, 0.2)))
_each("linalg.sqrtm linalg.logm linalg.logdet", lambda f, d: (f, d.square()))
_each("linalg.lu_factor", lambda f, d: ((lambda x: f(x).LU), _square(d, apart)))
_each("linalg.circulant", lambda f, d: (f, d.either(d.pick((3,), (2, 2), (1,), (0,)))))
_each("linalg.kron", lambda f, d: (f, d.either(d.shape(most=2)), d.either(d.shape(most=2))))
_each("linalg.svdvals linalg.lu", lambda f, d: (f, _rectangle(d)))
FUNCTIONS |= {
    "linalg.svd": _svd,
    "linalg.qr": _qr,
    "linalg.solve_triangular": _solve_triangular,
    "linalg.cholesky_solve": _cholesky_solve,
    "linalg.lu_solve": _lu_solve,
    "linalg.solve_sylvester": _sylvester,
    "linalg.solve_banded": _banded,
    "linalg.solveh_banded": _hermitian_banded,
    "linalg.svd_lowrank": _svd_lowrank,
    "linalg.block_diag": _block_diag,
    "linalg.toeplitz": _toeplitz,
    "linalg.pinv": _pinv,
    "linalg.lstsq": _lstsq,
    "linalg.householder_product": _householder_product,
    "linalg.matrix_power": _matrix_power,
    "linalg.multi_dot": _multi_dot,
    "linalg.cond": _cond,
    "linalg.cross": _cross,
    "operator.matrix_norm of singular values": _matrix_norm,
}


# --- Fourier transforms ---


def _transform(f: Any, d: Draw) -> Call:
    shape = d.shape(1, sizes=(3, 1, 2, 4))
    real = f.__name__ in ("rfft", "ihfft")
    options = {"n": d.pick(None, 1, 2, 3, 5), "axis": d.axis(shape), "norm": d.pick("backward", "ortho", "forward")}
    if f.__name__ in ("irfft", "hfft") and options["n"] is None:
        options["n"] = 4
    return (lambda x: f(x, **options)), (d.real if real else d.either)(shape)


def _transform_over(f: Any, d: Draw) -> Call:
    shape = (d.pick(2, 1), d.pick(3, 2), d.pick(2, 4))
    real, two = f.__name__ in ("rfftn", "rfft2", "ihfftn", "ihfft2"), f.__name__.endswith("2")
    options: dict[str, Any] = {"norm": d.pick("backward", "ortho", "forward")}
    options |= d.pick({"axes": (0, 2)}, {"s": (3, 2), "axes": (2, 1)}, {"s": (1, 3)})
    if not two:
        options = d.pick(options, {"axes": (1,)}, {})
    return (lambda x: f(x, **options)), (d.real if real else d.either)(shape)


_each("fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft", _transform)
_each("fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2", _transform_over)
_each("fft.hfftn fft.hfft2 fft.ihfftn fft.ihfft2", _transform_over)


def _window(f: Any, d: Draw) -> Call:
    n, periodic = d.pick(5, 2, 1, 0), d.pick(True, False)
    return (lambda a: f(n, a, periodic=periodic)), d.positive(())


_each("fft.gaussian fft.kaiser", _window)


def _shift(f: Any, d: Draw) -> Call:
    axes = d.pick(None, 0, (1, -2))
    return (lambda x: f(x, axes=axes)), d.either((3, 2))


_each("fft.fftshift fft.ifftshift", _shift)


def _stft(d: Draw) -> Call:
    options = {
        "hop_length": d.pick(None, 1, 3), "center": d.pick(True, False), "normalized": d.pick(False, True),
        "pad_mode": d.pick("reflect", "constant"), "onesided": d.pick(None, False),
    }  # fmt: skip
    x, window = d.either((*d.pick((), (2,)), 9)), d.positive((3,))
    if d.pick(False, True):
        return (lambda a, w: ad.fft.stft(a, 4, win_length=3, window=w, **options)), x, window
    return (lambda a: ad.fft.stft(a, 4, **options)), x


def _istft(d: Draw) -> Call:
    length, one = d.pick(None, 5, 9), d.pick(True, False)
    x = d.complex((*d.pick((), (2,)), 3 if one else 4, 4))
    return (lambda a, w: ad.fft.istft(a, 4, hop_length=2, window=w, onesided=one, length=length)), x, d.positive((4,))


FUNCTIONS |= {"fft.stft": _stft, "fft.istft": _istft}
