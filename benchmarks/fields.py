"""Comparisons of linear algebra, Fourier transforms, special functions and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

import adjoint as ad
from benchmarks.comparisons import CUBE, DOUBLE, Comparison, M, N, W, X, Y, normal

Value = Any

# --- linear algebra ---

STACK, OTHERS = normal(64, 32, 32), normal(64, 32, 32)
SPD = STACK @ STACK.transpose(0, 2, 1) + 32 * np.eye(32, dtype=np.float32)
FACTOR = np.linalg.cholesky(SPD)
THREE = normal(33_000, 3), normal(33_000, 3)
CHAIN = normal(100, 200), normal(200, 50), normal(50, 300)
TALL, LEFT = normal(300, 100), normal(300, 10)


def _pair(name: str, ours: Any, theirs: Any, *operands: Value, **how: Any) -> Comparison:
    return Comparison(name, ours, theirs, operands, **how)


def _cholesky_solve(b: Value, factor: Value) -> Value:
    return np.linalg.solve(factor.transpose(0, 2, 1), np.linalg.solve(factor, b))


LINALG = [
    _pair("linalg.cond", ad.linalg.cond, np.linalg.cond, SPD),
    _pair("linalg.cholesky_solve", ad.linalg.cholesky_solve, _cholesky_solve, OTHERS, FACTOR),
    _pair(
        "linalg.solve_triangular",
        lambda a, b: ad.linalg.solve_triangular(a, b, upper=False),
        np.linalg.solve,
        FACTOR,
        OTHERS,
    ),
    _pair("linalg.cross", ad.linalg.cross, np.linalg.cross, *THREE),
    _pair("linalg.diagonal", lambda x: ad.linalg.diagonal(x) + 0, lambda x: np.linalg.diagonal(x) + 0, CUBE),
    _pair("linalg.trace", ad.linalg.trace, np.linalg.trace, CUBE),
    _pair("linalg.kron", ad.linalg.kron, np.kron, M[:20, :20], W[:20, :20]),
    _pair("linalg.matrix_norm", ad.linalg.matrix_norm, np.linalg.matrix_norm, CUBE),
    _pair(
        "linalg.matrix_norm, 1",
        lambda x: ad.linalg.matrix_norm(x, ord=1),
        lambda x: np.linalg.matrix_norm(x, ord=1),
        CUBE,
    ),
    _pair(
        "linalg.matrix_power", lambda x: ad.linalg.matrix_power(x, 5), lambda x: np.linalg.matrix_power(x, 5), STACK / 6
    ),
    _pair("linalg.matrix_rank", ad.linalg.matrix_rank, np.linalg.matrix_rank, STACK),
    _pair("linalg.multi_dot", lambda *xs: ad.linalg.multi_dot(xs), lambda *xs: np.linalg.multi_dot(xs), *CHAIN),
    _pair("linalg.norm", ad.linalg.norm, np.linalg.norm, X),
    _pair(
        "linalg.vector_norm", lambda x: ad.linalg.vector_norm(x, axis=1), lambda x: np.linalg.vector_norm(x, axis=1), M
    ),
    _pair(
        "linalg.vector_norm, 3",
        lambda x: ad.linalg.vector_norm(x, axis=1, ord=3),
        lambda x: np.linalg.vector_norm(x, axis=1, ord=3),
        M,
    ),
    _pair("linalg.pinv", ad.linalg.pinv, np.linalg.pinv, STACK[:, :20]),
    _pair("linalg.inv", ad.linalg.inv, np.linalg.inv, SPD),
    _pair("linalg.det", ad.linalg.det, np.linalg.det, STACK),
    _pair("linalg.slogdet", ad.linalg.slogdet, np.linalg.slogdet, STACK),
    _pair("linalg.solve", ad.linalg.solve, np.linalg.solve, SPD, OTHERS),
    _pair("linalg.cholesky", ad.linalg.cholesky, np.linalg.cholesky, SPD),
    _pair("linalg.eigvalsh", ad.linalg.eigvalsh, np.linalg.eigvalsh, SPD),
    _pair("linalg.eigh", ad.linalg.eigh, np.linalg.eigh, SPD, equal=False),
    _pair("linalg.svd", ad.linalg.svd, np.linalg.svd, STACK, equal=False),
    _pair("linalg.svdvals", ad.linalg.svdvals, np.linalg.svdvals, STACK),
    _pair("linalg.qr", ad.linalg.qr, np.linalg.qr, STACK, equal=False),
    _pair("linalg.eig", ad.linalg.eig, np.linalg.eig, STACK, equal=False),
    _pair("linalg.eigvals", ad.linalg.eigvals, np.linalg.eigvals, STACK, equal=False),
    _pair("linalg.lstsq", lambda a, b: ad.linalg.lstsq(a, b)[0], lambda a, b: np.linalg.lstsq(a, b)[0], TALL, LEFT),
    _pair("linalg.expm", ad.linalg.expm, scipy.linalg.expm, STACK.astype(np.float64) / 6, peer="SciPy"),
    _pair("linalg.lu", ad.linalg.lu, scipy.linalg.lu, STACK, peer="SciPy", equal=False),
]

# --- Fourier transforms ---

IMAGE = normal(320, 320)
WAVE = IMAGE.astype(np.complex64)
SPECTRUM = np.fft.rfft2(IMAGE)
HANN = np.hanning(257)[:-1].astype(np.float32)


def _fourier(name: str, x: Value) -> Comparison:
    return _pair(f"fft.{name}", getattr(ad.fft, name), getattr(np.fft, name), x)


def _stft(x: Value, window: Value) -> Value:
    x = np.pad(x, 128, "reflect")
    frames = np.lib.stride_tricks.sliding_window_view(x, 256)[::64] * window
    return np.fft.rfft(frames).T


def _istft(x: Value, window: Value) -> Value:
    frames = np.fft.irfft(x.T, n=256) * window
    count = len(frames)
    signal, total = np.zeros((count + 3, 64), frames.dtype), np.zeros((count + 3, 64), frames.dtype)
    blocks, squares = frames.reshape(count, 4, 64), (window * window).reshape(4, 64)
    for k in range(4):
        signal[k : k + count] += blocks[:, k]
        total[k : k + count] += squares[k]
    return signal.reshape(-1)[128:-128] / total.reshape(-1)[128:-128]


FFT = [
    *[_fourier(name, WAVE) for name in "fft ifft fft2 ifft2 fftn ifftn fftshift ifftshift".split()],
    *[_fourier(name, IMAGE) for name in "rfft rfft2 rfftn ihfft".split()],
    *[_fourier(name, SPECTRUM) for name in "irfft irfft2 irfftn hfft".split()],
    _pair("fft.stft", lambda x, w: ad.fft.stft(x, 256, window=w), _stft, X, HANN),
    _pair("fft.istft", lambda x, w: ad.fft.istft(x, 256, window=w), _istft, _stft(X, HANN), HANN),
    _pair("fft.fftfreq", lambda: ad.fft.fftfreq(N), lambda: np.fft.fftfreq(N).astype(np.float32)),
    _pair("fft.rfftfreq", lambda: ad.fft.rfftfreq(N), lambda: np.fft.rfftfreq(N).astype(np.float32)),
    _pair("fft.hamming", lambda: ad.fft.hamming(N, periodic=False), lambda: np.hamming(N).astype(np.float32)),
    _pair(
        "fft.kaiser", lambda: ad.fft.kaiser(N, beta=8.0, periodic=False), lambda: np.kaiser(N, 8.0).astype(np.float32)
    ),
]

# --- special functions ---

POSITIVE, POSITIVE2 = np.abs(DOUBLE) + 0.1, np.abs(Y.astype(np.float64)) + 0.1
UNIT = np.clip(POSITIVE / 5, 0.01, 0.99)


def _logsumexp(x: Value) -> Value:
    top = x.max(axis=-1)
    return np.log(np.exp(x - top[:, None]).sum(axis=-1)) + top


def softmax(x: Value) -> Value:
    t = np.exp(x - x.max(axis=-1, keepdims=True))
    t /= t.sum(axis=-1, keepdims=True)
    return t


def _log_softmax(x: Value) -> Value:
    t = x - x.max(axis=-1, keepdims=True)
    t -= np.log(np.exp(t).sum(axis=-1, keepdims=True))
    return t


def expit(x: Value) -> Value:
    return 1 / (1 + np.exp(-x))


def _scipy(name: str, *operands: Value) -> Comparison:
    return _pair(f"special.{name}", getattr(ad.special, name), getattr(scipy.special, name), *operands, peer="SciPy")


SPECIAL = [
    _pair("special.logsumexp", lambda x: ad.special.logsumexp(x, axis=-1), _logsumexp, M),
    _pair("special.softmax", lambda x: ad.special.softmax(x, axis=-1), softmax, M),
    _pair("special.log_softmax", lambda x: ad.special.log_softmax(x, axis=-1), _log_softmax, M),
    _pair("special.expit", ad.special.expit, expit, X),
    _pair("special.logit", ad.special.logit, lambda p: np.log(p / (1 - p)), UNIT),
    _pair("special.log_expit", ad.special.log_expit, lambda x: -np.logaddexp(0, -x), X),
    _pair("special.sinc", ad.special.sinc, np.sinc, X),
    _pair("special.xlogy", ad.special.xlogy, lambda x, y: x * np.log(y), POSITIVE, POSITIVE2),
    _pair("special.xlog1py", ad.special.xlog1py, lambda x, y: x * np.log1p(y), POSITIVE, POSITIVE2),
    _pair("special.entr", ad.special.entr, lambda x: -x * np.log(x), POSITIVE),
    _pair("special.rel_entr", ad.special.rel_entr, lambda x, y: x * np.log(x / y), POSITIVE, POSITIVE2),
    _pair("special.kl_div", ad.special.kl_div, lambda x, y: x * np.log(x / y) - x + y, POSITIVE, POSITIVE2),
    _pair("special.i0", ad.special.i0, np.i0, DOUBLE),
    *[_scipy(n, DOUBLE) for n in "erf erfc erfcx ndtr log_ndtr i0e i1 i1e gamma gammaln digamma loggamma".split()],
    *[_scipy(n, UNIT) for n in "erfinv erfcinv ndtri".split()],
    *[_scipy(n, POSITIVE, POSITIVE2) for n in "beta betaln gammainc gammaincc".split()],
    _scipy("betainc", POSITIVE, POSITIVE2, UNIT),
    _pair(
        "special.polygamma",
        lambda x: ad.special.polygamma(1, x),
        lambda x: scipy.special.polygamma(1, x),
        POSITIVE,
        peer="SciPy",
    ),
    _pair(
        "special.zeta", lambda x: ad.special.zeta(2.5, x), lambda x: scipy.special.zeta(2.5, x), POSITIVE, peer="SciPy"
    ),
]

# --- random numbers: others than ours, of the same distribution ---

_GENERATOR = np.random.Generator(np.random.Philox(0))


def _random(name: str, theirs: Any, *arguments: Any, **how: Any) -> Comparison:
    function = getattr(ad.random, name)
    return Comparison(f"random.{name}", lambda: function(*arguments, **how), lambda: theirs(_GENERATOR), equal=False)


def _open(g: Any) -> Value:
    return np.maximum(g.random(N, np.float32), np.float32(2**-25))


RANDOM = [
    _random("uniform", lambda g: g.random(N, np.float32), N),
    _random("normal", lambda g: g.standard_normal(N, np.float32), N),
    _random("exponential", lambda g: g.standard_exponential(N, np.float32, method="inv"), N),
    _random("laplace", lambda g: g.laplace(size=N).astype(np.float32), N),
    _random("logistic", lambda g: g.logistic(size=N).astype(np.float32), N),
    _random("gumbel", lambda g: g.gumbel(size=N).astype(np.float32), N),
    _random("cauchy", lambda g: g.standard_cauchy(N).astype(np.float32), N),
    _random("lognormal", lambda g: np.exp(g.standard_normal(N, np.float32)), N),
    _random("weibull", lambda g: g.weibull(1.5, N).astype(np.float32), 1.5, N),
    _random("gamma", lambda g: g.standard_gamma(2.5, N, np.float32), 2.5, N),
    _random("chisquare", lambda g: g.chisquare(5.0, N).astype(np.float32), 5.0, N),
    _random("beta", lambda g: g.beta(2.0, 3.0, N).astype(np.float32), 2.0, 3.0, N),
    _random(
        "dirichlet", lambda g: g.dirichlet(np.ones(10), N // 10).astype(np.float32), np.ones(10, np.float32), N // 10
    ),
    _random("student_t", lambda g: g.standard_t(5.0, N).astype(np.float32), 5.0, N),
    _random(
        "multivariate_normal",
        lambda g: g.standard_normal((N // 10, 10), np.float32) @ np.linalg.cholesky(np.eye(10, dtype=np.float32)).T,
        np.zeros(10, np.float32),
        np.eye(10, dtype=np.float32),
        N // 10,
    ),
    _random("bernoulli", lambda g: g.random(N, np.float32) < 0.3, 0.3, N),
    _random("geometric", lambda g: g.geometric(0.3, N), 0.3, N),
    _random("rademacher", lambda g: 2 * g.integers(0, 2, N) - 1, N),
    _random(
        "categorical",
        lambda g: np.searchsorted(np.cumsum(np.full(16, 1 / 16)), g.random(N)),
        np.zeros(16, np.float32),
        N,
    ),
    _random("choice", lambda g: g.integers(0, 1000, N), 1000, N),
    _random("permutation", lambda g: g.permutation(N), N),
    _pair(
        "random.choice, weights",
        lambda p: ad.random.choice(100, N, p=p),
        lambda p: _GENERATOR.choice(100, N, p=p),
        np.full(100, 0.01),
        equal=False,
    ),
    _pair("random.shuffle", lambda x: ad.random.shuffle(x), lambda x: _GENERATOR.permutation(x), X, equal=False),
    _random("integers", lambda g: g.integers(0, 1000, N), 0, 1000, N),
    _random("poisson", lambda g: g.poisson(3.0, N), 3.0, N),
    _random("binomial", lambda g: g.binomial(20, 0.3, N), 20, 0.3, N),
]

FIELDS = [*LINALG, *FFT, *SPECIAL, *RANDOM]
