"""Libraries written for the array API, run on tensors: what works, and what has right gradients.

`python tests/consumers.py` prints the table of docs/consumers.md, `--write` puts it there. A row's function gets NumPy
arrays, which gives the value to compare with, and then tensors inside `ad.vjp`, whose cotangent is compared with
central differences of the library's own answer.
"""

from __future__ import annotations

import os

if __name__ == "__main__":
    os.environ["SCIPY_ARRAY_API"] = "1"  # is read when SciPy is imported; a test sets it for its own process

import importlib.metadata
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import einops.array_api
import numpy as np
import opt_einsum
import scipy.cluster.vq
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.optimize.elementwise
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
import sklearn.covariance
import sklearn.decomposition
import sklearn.discriminant_analysis
import sklearn.linear_model
import sklearn.metrics
import sklearn.metrics.pairwise
import sklearn.naive_bayes
import sklearn.preprocessing

import adjoint as ad

PAGE = Path(__file__).resolve().parent.parent / "docs" / "consumers.md"
LIBRARIES = ("scipy", "scikit-learn", "einops", "opt_einsum")

Array = Any

_rng = np.random.default_rng(0)
A = _rng.uniform(0.5, 1.5, 6)
B = _rng.uniform(0.5, 1.5, 6)
LONG = np.sort(_rng.uniform(0.2, 2.0, 40))
SIGNAL = _rng.normal(size=60)
M = _rng.normal(size=(4, 4))
SPD = M @ M.T + 4 * np.eye(4)
IMAGE = _rng.normal(size=(8, 9))
X = _rng.normal(size=(20, 4))
Y = _rng.normal(size=(20, 4))
TARGET = X @ np.array([1.0, 2.0, -1.0, 0.5]) + 0.1 * _rng.normal(size=20)
LABELS = (TARGET > 0).astype(int)
POSITIVE = np.abs(X) + 0.1
PROBABILITIES = POSITIVE[:, :2] / POSITIVE[:, :2].sum(1, keepdims=True)


class Row(NamedTuple):
    topic: str
    name: str
    f: Callable[..., Any]
    args: tuple[Array, ...]


ROWS: list[Row] = []


def _add(topic: str, args: tuple[Array, ...], **functions: Any) -> None:
    for name, f in functions.items():
        ROWS.append(Row(topic, name, f, args))


def _named(topic: str, module: Any, names: str, *args: Array) -> None:
    _add(topic, args, **{name: getattr(module, name) for name in names.split() if hasattr(module, name)})


def _beside(x: Array, values: Any) -> Array:
    """Constants in the library of x: SciPy takes arrays of one library."""
    return ad.asarray(values, device=x.device) if isinstance(x, ad.Tensor) else np.asarray(values)


# --- SciPy ---

_special = "scipy.special"
_named(
    _special,
    scipy.special,
    "erf erfc gammaln digamma expit ndtr i0 i0e i1 i1e entr log_ndtr loggamma psi softmax log_softmax logsumexp sinc",
    A,
)
_named(_special, scipy.special, "erfinv logit ndtri", A / 2)
_named(_special, scipy.special, "xlogy xlog1py rel_entr kl_div betaln gammainc gammaincc zeta", A + 1, B + 1)
_add(_special, (A, B, A / 4), betainc=scipy.special.betainc)
_named(_special, scipy.special, "erfcx gamma expm1 log1p log_expit softplus exp1 rgamma j0 k0 dawsn", A)
_add(_special, (A + 1, B / 3), stdtrit=scipy.special.stdtrit, gammaincinv=scipy.special.gammaincinv)
_add(_special, (B + 1, A), chdtr=scipy.special.chdtr, chdtrc=scipy.special.chdtrc, stdtr=scipy.special.stdtr)

_stats = "scipy.stats"
s = scipy.stats
_named(_stats, s, "skew kurtosis zscore gmean hmean variation sem circmean circvar circstd entropy iqr gstd", A)
_named(_stats, s, "kstat kstatvar gzscore median_abs_deviation differential_entropy lmoment expectile", A)
_add(
    _stats,
    (A,),
    pmean=lambda x: s.pmean(x, 2),
    moment=lambda x: s.moment(x, 3),
    trim_mean=lambda x: s.trim_mean(x, 0.2),
    quantile=lambda x: s.quantile(x, 0.3),
    boxcox_llf=lambda x: s.boxcox_llf(0.5, x),
    describe=lambda x: s.describe(x).variance,
    ttest_1samp=lambda x: s.ttest_1samp(x, 0.9).statistic,
    sigmaclip=lambda x: s.sigmaclip(x).clipped,
    rankdata=s.rankdata,
    tmean=lambda x: s.tmean(x),
    tvar=lambda x: s.tvar(x),
    tstd=lambda x: s.tstd(x),
    tsem=lambda x: s.tsem(x),
    tmin=lambda x: s.tmin(x),
    tmax=lambda x: s.tmax(x),
    mode=lambda x: s.mode(x).mode,
    yeojohnson_llf=lambda x: s.yeojohnson_llf(0.5, x),
    combine_pvalues=lambda x: s.combine_pvalues(x / 3).statistic,
    false_discovery_control=lambda x: s.false_discovery_control(x / 3),
    directional_stats=lambda x: s.directional_stats(x.reshape((3, 2))).mean_direction,
)
_add(
    _stats,
    (A, B),
    zmap=s.zmap,
    pearsonr=lambda x, y: s.pearsonr(x, y).statistic,
    ttest_ind=lambda x, y: s.ttest_ind(x, y).pvalue,
    ttest_rel=lambda x, y: s.ttest_rel(x, y).pvalue,
    f_oneway=lambda x, y: s.f_oneway(x, y).statistic,
    bartlett=lambda x, y: s.bartlett(x, y).statistic,
    levene=lambda x, y: s.levene(x, y).statistic,
    power_divergence=lambda x, y: s.power_divergence(x, y * (x.sum() / y.sum())).statistic,
    chisquare=lambda x, y: s.chisquare(x, y * (x.sum() / y.sum())).statistic,
    mannwhitneyu=lambda x, y: s.mannwhitneyu(x, y).statistic,
    wilcoxon=lambda x, y: s.wilcoxon(x, y).statistic,
    kruskal=lambda x, y: s.kruskal(x, y).statistic,
    alexandergovern=lambda x, y: s.alexandergovern(x, y).statistic,
    brunnermunzel=lambda x, y: s.brunnermunzel(x, y).statistic,
    fligner=lambda x, y: s.fligner(x, y).statistic,
    mood=lambda x, y: s.mood(x, y).statistic,
    cramervonmises_2samp=lambda x, y: s.cramervonmises_2samp(x, y).statistic,
    spearmanr=lambda x, y: s.spearmanr(x, y).statistic,
    pointbiserialr=lambda x, y: s.pointbiserialr(x > 1, y).statistic,
    linregress=lambda x, y: s.linregress(x, y).slope,
    kendalltau=lambda x, y: s.kendalltau(x, y).statistic,
    wasserstein_distance=s.wasserstein_distance,
    bootstrap=lambda x, y: s.bootstrap((x,), np.mean, n_resamples=9, rng=1).standard_error,
    gaussian_kde=lambda x, y: s.gaussian_kde(x)(y),
)
_add(
    _stats,
    (LONG,),
    skewtest=lambda x: s.skewtest(x).statistic,
    kurtosistest=lambda x: s.kurtosistest(x).statistic,
    normaltest=lambda x: s.normaltest(x).pvalue,
    jarque_bera=lambda x: s.jarque_bera(x).statistic,
)
_add(_stats, (A,), **{"Normal.pdf": lambda x: s.Normal().pdf(x), "Normal.logcdf": lambda x: s.Normal().logcdf(x)})

_signal = "scipy.signal"
g = scipy.signal
_add(
    _signal,
    (SIGNAL,),
    detrend=g.detrend,
    convolve=lambda x: g.convolve(x, x[:5]),
    fftconvolve=lambda x: g.fftconvolve(x, x[:5]),
    oaconvolve=lambda x: g.oaconvolve(x, x[:5]),
    correlate=lambda x: g.correlate(x, x[:5], method="fft"),
    hilbert=lambda x: abs(g.hilbert(x)),
    envelope=lambda x: g.envelope(x),
    periodogram=lambda x: g.periodogram(x)[1],
    welch=lambda x: g.welch(x, nperseg=16)[1],
    csd=lambda x: abs(g.csd(x, x[::-1] if isinstance(x, np.ndarray) else ad.flip(x), nperseg=16)[1]),
    resample=lambda x: g.resample(x, 30),
    savgol_filter=lambda x: g.savgol_filter(x, 5, 2),
    lfilter=lambda x: g.lfilter(_beside(x, [1.0, 0.5]), _beside(x, [1.0, 0.2]), x),
    filtfilt=lambda x: g.filtfilt(_beside(x, [1.0]), _beside(x, [1.0, 0.3]), x),
    upfirdn=lambda x: g.upfirdn(_beside(x, np.ones(3)), x),
    lombscargle=lambda x: g.lombscargle(_beside(x, np.arange(60.0)), x, _beside(x, [0.5, 1.0])),
    spectrogram=lambda x: g.spectrogram(x, nperseg=8)[2],
    coherence=lambda x: g.coherence(x, x**2, nperseg=16)[1],
    resample_poly=lambda x: g.resample_poly(x, 2, 3),
    freqs=lambda x: abs(g.freqs(x[:3], x[3:6], _beside(x, np.arange(4.0)))[1]),
    group_delay=lambda x: g.group_delay((x[:3], x[3:5]), w=8)[1],
    tf2zpk=lambda x: abs(g.tf2zpk(x[:3], x[3:6])[2]),
    lp2lp=lambda x: g.lp2lp(x[:3], x[3:6])[0],
    gauss_spline=lambda x: g.gauss_spline(x, 2),
    gausspulse=lambda x: g.gausspulse(x),
    windows=lambda x: (
        x * (g.windows.hann(60, xp=ad, device=x.device) if isinstance(x, ad.Tensor) else g.windows.hann(60))
    ),
    decimate=lambda x: g.decimate(x, 2),
    medfilt=lambda x: g.medfilt(x),
    wiener=lambda x: g.wiener(x),
    vectorstrength=lambda x: g.vectorstrength(x, 2.0)[0],
    normalize=lambda x: g.normalize(x[:3], x[3:6])[0],
    freqz=lambda x: abs(g.freqz(x[:3], worN=8)[1]),
    zpk2tf=lambda x: g.zpk2tf(x[:2], x[2:4], 1.0)[0],
    bilinear=lambda x: g.bilinear(x[:2], x[2:4])[0],
)

_linalg = "scipy.linalg"
la = scipy.linalg
_named(_linalg, la, "inv det cholesky expm norm pinv sqrtm", SPD)
_add(
    _linalg,
    (SPD,),
    solve=lambda x: la.solve(x, x[:, 0]),
    eigvalsh=la.eigvalsh,
    svdvals=la.svdvals,
    block_diag=lambda x: la.block_diag(x, x),
    toeplitz=lambda x: la.toeplitz(x[0]),
    circulant=lambda x: la.circulant(x[0]),
    fiedler=lambda x: la.fiedler(x[0]),
    orthogonal_procrustes=lambda x: la.orthogonal_procrustes(x, x @ x)[0],
    lu=lambda x: la.lu(x)[2],
    qr=lambda x: la.qr(x)[1],
    lstsq=lambda x: la.lstsq(x, x[0])[0],
    khatri_rao=lambda x: la.khatri_rao(x, x),
)

_ndimage = "scipy.ndimage"
n = scipy.ndimage
_add(
    _ndimage,
    (IMAGE,),
    gaussian_filter=lambda x: n.gaussian_filter(x, 1.0),
    sobel=n.sobel,
    laplace=n.laplace,
    uniform_filter=n.uniform_filter,
    zoom=lambda x: n.zoom(x, 2, order=1),
    convolve=lambda x: n.convolve(x, _beside(x, np.ones((3, 3)))),
    map_coordinates=lambda x: n.map_coordinates(x, _beside(x, [[1.5], [2.5]])),
    shift=lambda x: n.shift(x, 1.5),
    rotate=lambda x: n.rotate(x, 30.0),
    median_filter=lambda x: n.median_filter(x, 3),
)

_integrate = "scipy.integrate"
i = scipy.integrate
_named(_integrate, i, "trapezoid simpson cumulative_trapezoid", A)
_add(
    _integrate,
    (A,),
    cumulative_simpson=lambda x: i.cumulative_simpson(x, dx=1.0),
    romb=lambda x: i.romb(x[:5]),
    cubature=lambda x: i.cubature(lambda u: (u**2).sum(axis=-1) * x[0], x[:1] * 0, x[:1]).estimate,
    tanhsinh=lambda x: i.tanhsinh(lambda u: u**2, x[0] * 0, x[0]).integral,
    nsum=lambda x: i.nsum(lambda k: 1 / k**2, x[0] * 0 + 1, x[0] * 0 + 10).sum,
)

_optimize = "scipy.optimize.elementwise"
_add(
    _optimize,
    (A,),
    find_root=lambda x: scipy.optimize.elementwise.find_root(lambda u, a: u**2 - a, (0 * x, 3 + 0 * x), args=(x,)).x,
    find_minimum=lambda x: (
        scipy.optimize.elementwise.find_minimum(lambda u, a: (u - a) ** 2, (x - 1, x + 0.1, x + 2), args=(x,)).x
    ),
)
_differentiate = "scipy.differentiate"
_add(
    _differentiate,
    (A,),
    derivative=lambda x: scipy.differentiate.derivative(lambda u: u**3, x).df,
    jacobian=lambda x: scipy.differentiate.jacobian(lambda u: u**2, x).df,
    hessian=lambda x: scipy.differentiate.hessian(lambda u: (u**3).sum(axis=0), x[:2]).ddf,
)
_add(
    "scipy.fft",
    (A,),
    fft=lambda x: abs(scipy.fft.fft(x)),
    rfft=lambda x: abs(scipy.fft.rfft(x)),
    irfft=lambda x: scipy.fft.irfft(x),
    dct=scipy.fft.dct,
)
_add("scipy.cluster", (IMAGE,), whiten=scipy.cluster.vq.whiten)

# --- scikit-learn, with sklearn.set_config(array_api_dispatch=True) ---

_metrics = "sklearn.metrics"
_named(
    _metrics,
    sklearn.metrics,
    "mean_squared_error mean_absolute_error r2_score explained_variance_score mean_pinball_loss",
    TARGET,
    TARGET + 0.3 * np.cos(TARGET),
)
_named(
    "sklearn.metrics.pairwise",
    sklearn.metrics.pairwise,
    "cosine_similarity cosine_distances euclidean_distances rbf_kernel polynomial_kernel sigmoid_kernel linear_kernel "
    "laplacian_kernel chi2_kernel paired_euclidean_distances paired_cosine_distances manhattan_distances",
    POSITIVE,
    np.abs(Y) + 0.1,
)
p = sklearn.preprocessing
_add(
    "sklearn.preprocessing",
    (X,),
    StandardScaler=lambda x: p.StandardScaler().fit_transform(x),
    MinMaxScaler=lambda x: p.MinMaxScaler().fit_transform(x),
    MaxAbsScaler=lambda x: p.MaxAbsScaler().fit_transform(x),
    Normalizer=lambda x: p.Normalizer().fit_transform(x),
    PolynomialFeatures=lambda x: p.PolynomialFeatures(2).fit_transform(x),
    KernelCenterer=lambda x: p.KernelCenterer().fit_transform(x @ x.T),
)
_add(
    "sklearn.decomposition",
    (X,),
    **{
        "PCA.explained_variance_": lambda x: sklearn.decomposition.PCA(2, svd_solver="full").fit(x).explained_variance_,
        "PCA.transform": lambda x: sklearn.decomposition.PCA(2, svd_solver="full").fit_transform(x),
    },
)
_add(
    "sklearn.linear_model",
    (X, TARGET),
    **{
        "Ridge.coef_": lambda x, y: sklearn.linear_model.Ridge(solver="svd").fit(x, y).coef_,
        "RidgeCV.coef_": lambda x, y: sklearn.linear_model.RidgeCV().fit(x, y).coef_,
        "LinearRegression.coef_": lambda x, y: sklearn.linear_model.LinearRegression().fit(x, y).coef_,
    },
)
_add(
    "sklearn.linear_model",
    (X, LABELS),
    **{"LogisticRegression.coef_": lambda x, y: sklearn.linear_model.LogisticRegression().fit(x, y).coef_},
)
_add(
    "sklearn.discriminant_analysis",
    (X, LABELS),
    **{
        "LinearDiscriminantAnalysis.coef_": lambda x, y: (
            sklearn.discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(x, y).coef_
        )
    },
)
_add(
    "sklearn.naive_bayes",
    (X, LABELS),
    **{"GaussianNB.predict_proba": lambda x, y: sklearn.naive_bayes.GaussianNB().fit(x, y).predict_proba(x)},
)

# --- einops, opt_einsum ---

e = einops.array_api
_add(
    "einops.array_api",
    (_rng.normal(size=(2, 3, 4)),),
    rearrange=lambda x: e.rearrange(x, "a b c -> c (a b)"),
    reduce=lambda x: e.reduce(x, "a (b k) c -> a c b", "max", k=3),
    repeat=lambda x: e.repeat(x, "a b c -> a (b k) c", k=2),
    pack=lambda x: e.pack([x, x[:, 0]], "a * c")[0],
)
_add(
    'opt_einsum (backend="numpy")',
    (_rng.normal(size=(3, 4)), _rng.normal(size=(4, 5)), _rng.normal(size=(5, 2))),
    contract=lambda x, y, z: opt_einsum.contract("ij,jk,kl->il", x, y, z, backend="numpy"),
    contract_batch=lambda x, y, z: opt_einsum.contract("ij,jk,kl->ijl", x, y, z, backend="numpy"),
)

# --- running them ---


def outcome(row: Row) -> str:
    """`gradient`, `value`, or what went wrong."""
    wanted = np.asarray(row.f(*row.args))
    places = [i for i, x in enumerate(row.args) if x.dtype.kind == "f"]
    results = []

    def f(*active: Any) -> Any:
        args = [ad.asarray(x) for x in row.args]
        for i, x in zip(places, active, strict=True):
            args[i] = x
        results.append(row.f(*args))
        return results[-1]

    try:
        found, pullback = ad.vjp(f, *[row.args[i] for i in places])
    except Exception as error:
        return _value(row, wanted) or type(error).__name__
    if not isinstance(results[-1], ad.Tensor):
        return _value(row, wanted) or f"gives {type(results[-1]).__name__}"
    if not _close(found, wanted):
        return "WRONG VALUE"
    if wanted.dtype.kind != "f":
        return "value"
    weights = np.random.default_rng(1).normal(size=wanted.shape)
    try:
        cotangents = pullback(weights)
    except Exception as error:
        return type(error).__name__
    h = 1e-6
    for i, cotangent in zip(places, cotangents, strict=True):
        direction = np.random.default_rng(2).normal(size=row.args[i].shape)
        ends = []
        for step in (h, -h):
            args = list(row.args)
            args[i] = args[i] + step * direction
            ends.append((np.asarray(row.f(*args)) * weights).sum())
        slope = (ends[0] - ends[1]) / (2 * h)
        if not abs(slope - (cotangent * direction).sum()) <= 1e-5 * (1 + abs(slope)):
            return "WRONG GRADIENT"
    return "gradient"


def _value(row: Row, wanted: Any) -> str | None:
    """`value` where tensors that nothing follows give the right one."""
    try:
        found = row.f(*[ad.asarray(x, device=ad.NumPy()) for x in row.args])
        return "value" if _close(found, wanted) else "WRONG VALUE"
    except Exception:
        return None


def _close(found: Any, wanted: Any) -> bool:
    found = found.numpy() if isinstance(found, ad.Tensor) else np.asarray(found)
    return found.shape == wanted.shape and bool(np.allclose(found, wanted, rtol=1e-6, atol=1e-9, equal_nan=True))


def outcomes() -> dict[str, dict[str, str]]:
    """What became of each row, by topic."""
    sklearn.set_config(array_api_dispatch=True)
    found: dict[str, dict[str, str]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in ROWS:
            what = outcome(row)
            if what == "WRONG GRADIENT":  # zero times infinity, as behind a where
                with ad.use_device(ad.Autodiff(ad.NumPy(), strong_zero=True)):
                    what = outcome(row).replace("gradient", "gradient*")
            found.setdefault(row.topic, {})[row.name] = what
    return found


def versions() -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)


def lines(found: dict[str, dict[str, str]]) -> Iterator[str]:
    yield "| module | gradients | values alone | neither |"
    yield "| --- | --- | --- | --- |"
    for topic, rows in found.items():
        cells = [
            [name + what.removeprefix("gradient") for name, what in rows.items() if what.startswith("gradient")],
            [name for name, what in rows.items() if what == "value"],
            [f"{name} ({what})" for name, what in rows.items() if not what.startswith(("gradient", "value"))],
        ]
        yield f"| `{topic}` | " + " | ".join(", ".join(cell) for cell in cells) + " |"
    total = [what for rows in found.values() for what in rows.values()]
    yield ""
    gradients = sum(what.startswith("gradient") for what in total)
    yield f"{gradients} of {len(total)} with gradients, {total.count('value')} more with values."
    yield f"Found with {versions()}."


def table(found: dict[str, dict[str, str]]) -> str:
    return "\n".join(lines(found))


if __name__ == "__main__":
    made = table(outcomes())
    if "--write" in sys.argv:
        page = PAGE.read_text()
        start, end = "<!-- table -->\n", "<!-- end of table -->"
        PAGE.write_text(page[: page.index(start) + len(start)] + made + "\n" + page[page.index(end) :])
    else:
        print(made)
