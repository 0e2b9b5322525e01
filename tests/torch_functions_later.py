"""More cases of `torch_functions.CASES`: functions that are imported when they are first asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch_functions import Values, case, cases, fraction, positive, real, regular, square, stack, vector


def ties(r: Any) -> Values:
    return r.choice([0.5, 1.5, -2.5], (4, 5))  # type: ignore[no-any-return]


def with_nan(r: Any) -> Values:
    x = real(r, (4, 5))
    x[0, 1] = x[2, :3] = np.nan
    return x


def three(r: Any) -> Values:
    return real(r, (4, 3))


def apart(r: Any) -> Values:
    """A matrix whose eigenvalues are far from each other."""
    return real(r, (3, 3)) * 0.2 + np.diag([1.0, 3.0, 6.0])  # type: ignore[no-any-return]


def ints(r: Any) -> Values:
    return r.integers(0, 3, (2, 5))  # type: ignore[no-any-return]


# statistics
cases("cov", case(lambda t, x: t.cov(x), real, kinds="fc"), case(lambda t, x: x.cov(correction=0), vector))
cases(
    "cov",
    case(lambda t, x, i: t.cov(x, fweights=i, aweights=(i + 0.5).to(x.dtype)), real, lambda r: r.integers(1, 4, 4)),
)
cases("corrcoef", case(lambda t, x: t.corrcoef(x), real))
cases("histc", case(lambda t, x: t.histc(x, 5), real), case(lambda t, x: x.histc(4, min=-1, max=1), real))
cases("histogram", case(lambda t, x: tuple(t.histogram(x.detach(), 4)), real))
cases("histogram", case(lambda t, x: tuple(t.histogram(x.detach(), 3, range=(-1.0, 2.0), density=True)), real))
cases("histogram", case(lambda t, x: tuple(t.histogram(x.detach().sum(), 1)), real))
cases("histogram", case(lambda t, x, w: tuple(t.histogram(x.detach(), w.detach().sort().values)), real, vector))
for _name in ("quantile", "nanquantile"):
    _maker = with_nan if _name == "nanquantile" else real
    for _function in (
        lambda t, x, _name=_name: getattr(t, _name)(x, 0.3),
        lambda t, x, _name=_name: getattr(x, _name)(t.tensor([0.2, 0.7], dtype=x.dtype), 1, keepdim=True),
        lambda t, x, _name=_name: getattr(t, _name)(x, 0.45, dim=0, interpolation="higher"),
    ):
        cases(_name, case(_function, _maker))
    _function = lambda t, x, q, _name=_name: getattr(t, _name)(x, q.abs() / 4, 1)
    cases(_name, case(_function, _maker, vector))  # with a slope by the place
    cases(_name, case(lambda t, x, _name=_name: getattr(t, _name)(x.sum(), 0.5, 0, keepdim=True), real))
cases("nanmedian", case(lambda t, x: t.nanmedian(x), with_nan), case(lambda t, x: tuple(t.nanmedian(x, 1)), with_nan))
cases("nanmedian", case(lambda t, x: tuple(x.nanmedian(0, keepdim=True)), with_nan))
cases("mode", case(lambda t, x: tuple(t.mode(x)), ties), case(lambda t, x: tuple(x.mode(0, keepdim=True)), ties))
for _name in ("cummax", "cummin"):
    cases(_name, case(lambda t, x, _name=_name: tuple(getattr(t, _name)(x, 1)), ties))
    cases(_name, case(lambda t, x, _name=_name: tuple(getattr(x, _name)(0)), stack))
    cases(_name, case(lambda t, x, _name=_name: tuple(getattr(x > 1, _name)(1)), stack))
cases("msort", case(lambda t, x: t.msort(x), real))
cases("unique_consecutive", case(lambda t, x: t.unique_consecutive(x, True, True), ints, kinds="i"))
cases("unique_consecutive", case(lambda t, x: x.unique_consecutive(), ints, kinds="i"))
cases("unique_consecutive", case(lambda t, x: t.unique_consecutive(x, return_counts=True, dim=0), ints, kinds="i"))
cases("bucketize", case(lambda t, x, b: t.bucketize(x.detach(), b.detach().sort().values, right=True), real, vector))
cases(
    "bucketize", case(lambda t, x, b: t.bucketize(x.detach(), b.detach().sort().values, out_int32=True), real, vector)
)
cases("isin", case(lambda t, x, y: t.isin(x, y), ints, lambda r: np.array([0, 2]), kinds="i"))
cases("isin", case(lambda t, x: t.isin(x, 1, invert=True), ints, kinds="i"))
cases("renorm", case(lambda t, x: t.renorm(x, 2, 0, 1.5), real), case(lambda t, x: (x * 1).renorm_(1, 1, 2.0), real))
for _p in (2.0, 1.0, 3.0):  # PyTorch has no second derivative
    _distances = lambda t, x, y, _p=_p: (t.cdist(x, y, p=_p) ** 2).sum()
    cases("cdist", case(lambda t, x, y, _f=_distances: t.autograd.grad(_f(t, x, y), (x, y)), real, stack))
    cases("cdist", case(lambda t, x, y, _p=_p: t.cdist(x.detach(), y.detach(), p=_p), real, stack))
for _name in ("trapezoid", "trapz", "cumulative_trapezoid"):
    cases(_name, case(lambda t, y, _name=_name: getattr(t, _name)(y, dx=0.5), real))
    cases(_name, case(lambda t, y, x, _name=_name: getattr(t, _name)(y, x, dim=1), real, vector))
    cases(_name, case(lambda t, y, x, _name=_name: getattr(t, _name)(y, x[:3, :1], dim=1), stack, three))
    cases(_name, case(lambda t, y, x, _name=_name: getattr(t, _name)(y[:1], x), stack, stack))
cases(
    "gradient",
    case(lambda t, x: t.gradient(x, spacing=None), real),
    case(lambda t, x: t.gradient(x, spacing=0.5, dim=1), real),
)
cases(
    "gradient",
    case(
        lambda t, x: t.gradient(x, spacing=[t.tensor([0.0, 1.0, 3.0, 3.5], dtype=t.float64)], dim=1, edge_order=2), real
    ),
)

# parts
cases("select_scatter", case(lambda t, x, s: t.select_scatter(x, s, 0, 1), real, vector))
cases("slice_scatter", case(lambda t, x, s: t.slice_scatter(x, s, 1, 0, 4, 2), real, lambda r: real(r, (3, 2))))
cases("diagonal_scatter", case(lambda t, x, s: t.diagonal_scatter(x, s, 1), square, lambda r: real(r, (2,))))
cases(
    "as_strided_scatter",
    case(
        lambda t, x, s: t.as_strided_scatter(x.detach(), s, (2,), (5,), storage_offset=1), real, lambda r: real(r, (2,))
    ),
)
for _mode in ("sum", "prod", "mean", "amax", "amin"):
    for _own in (True, False):
        _call = lambda t, x, i, s, _mode=_mode, _own=_own: t.scatter_reduce(x, 0, i, s, _mode, include_self=_own)
        cases("scatter_reduce", case(_call, three, lambda r: r.integers(0, 4, (5, 3)), lambda r: real(r, (5, 3))))
        _call = lambda t, x, s, _mode=_mode, _own=_own: x.sum().scatter_reduce(
            0, t.tensor(0), s.sum(), _mode, include_self=_own
        )
        cases("scatter_reduce", case(_call, three, three))
        if _mode != "mean":
            _call = lambda t, x, i, s, _mode=_mode, _own=_own: t.scatter_reduce(
                x > 0, 0, i, s > 0, _mode, include_self=_own
            )
            cases("scatter_reduce", case(_call, three, lambda r: r.integers(0, 4, (5, 3)), lambda r: real(r, (5, 3))))
        if _mode != "sum":
            _call = lambda t, x, i, s, _mode=_mode, _own=_own: x.index_reduce(0, i, s, _mode, include_self=_own)
            cases("index_reduce", case(_call, three, lambda r: r.integers(0, 4, 5), lambda r: real(r, (5, 3))))
        _call = lambda t, x, s, _mode=_mode, _own=_own: x.sum().index_reduce(
            0, t.tensor([0]), s.sum(), _mode, include_self=_own
        )
        if _mode != "sum":
            cases("index_reduce", case(_call, three, three))
cases("put", case(lambda t, x, i, s: t.put(x, -i, s[0, :2], accumulate=True), real, lambda r: np.array([3, 7]), three))
cases("put", case(lambda t, x, i, s: t.put(x, i, s), real, lambda r: np.array([3, 7]), lambda r: real(r, (2,))))
cases(
    "put",
    case(
        lambda t, x, i, s: (x * 1).put_(i, s, accumulate=True),
        real,
        lambda r: np.array([7, 7]),
        lambda r: real(r, (2,)),
    ),
)
cases("fill_diagonal_", case(lambda t, x: (x * 1).fill_diagonal_(0.5), real))
cases("fill_diagonal_", case(lambda t, x: (x * 1).fill_diagonal_(2, wrap=True), lambda r: real(r, (7, 3))))
cases("fill", case(lambda t, x: t.fill(x, 2.5), real), case(lambda t, x, y: t.fill(x, y.sum()), real, vector))
for _count in (1, 2, 3):
    cases(f"atleast_{_count}d", case(lambda t, x, _count=_count: getattr(t, f"atleast_{_count}d")(x), vector))
    cases(
        f"atleast_{_count}d",
        case(lambda t, x, y, _count=_count: getattr(t, f"atleast_{_count}d")(x.sum(), y), real, stack),
    )
cases("block_diag", case(lambda t, x, y: t.block_diag(x, y), real, square, kinds="fc"))
cases("cartesian_prod", case(lambda t, x, y: t.cartesian_prod(x, y), vector, lambda r: real(r, (2,))))
cases(
    "combinations", case(lambda t, x: t.combinations(x), vector), case(lambda t, x: t.combinations(x, 3, True), vector)
)
cases("diag_embed", case(lambda t, x: t.diag_embed(x), real), case(lambda t, x: x.diag_embed(1, 0, 2), stack))
cases("diagflat", case(lambda t, x: t.diagflat(x, -1), lambda r: real(r, (2, 2))))
cases("hsplit", case(lambda t, x: t.hsplit(x, 2), real), case(lambda t, x: t.hsplit(x, [1]), vector))
cases("vsplit", case(lambda t, x: t.vsplit(x, [1, 2]), real))
cases("dsplit", case(lambda t, x: t.dsplit(x, 2), stack))
cases(
    "vander",
    case(lambda t, x: t.vander(x.detach()), vector),
    case(lambda t, x: t.vander(x.detach(), 3, increasing=True), vector),
)
for _name in ("tril_indices", "triu_indices"):
    cases(_name, case(lambda t, x, _name=_name: getattr(t, _name)(3, 4, -1), vector))
cases("unravel_index", case(lambda t, x: t.unravel_index(x, (3, 2)), ints, kinds="i"))
cases("range", case(lambda t, x: t.range(1, 2, 0.5) * x[0], vector))
cases("view_as_real", case(lambda t, x: t.view_as_real(x), real, kinds="c"))
cases("view_as_complex", case(lambda t, x: t.view_as_complex(x), lambda r: real(r, (3, 2))))
cases(
    "transpose_", case(lambda t, x: (x * 1).transpose_(0, 2), stack), case(lambda t, x: (x * 1).swapaxes_(0, 1), real)
)
cases("transpose_", case(lambda t, x: (x * 1).swapdims_(0, 1), real))
cases("t_", case(lambda t, x: (x * 1).t_(), real, kinds="fc"))
cases("squeeze_", case(lambda t, x: (x * 1).unsqueeze_(0).squeeze_(0), real))
cases("unsqueeze_", case(lambda t, x: (x * 1).unsqueeze_(-1).mul_(2), real))
cases("sum_to_size", case(lambda t, x: x.sum_to_size(1, 4), stack), case(lambda t, x: x.sum_to_size(2, 3, 4), stack))
cases("sum_to_size", case(lambda t, x: (x.sum() > 1).sum_to_size(()), stack))
cases("put", case(lambda t, x, i: t.put(x > 1, i, x[0, :2] > 1, True), real, lambda r: np.array([3, 7])))

# matrices
cases("det", case(lambda t, x: t.det(x), regular))
cases("slogdet", case(lambda t, x: tuple(t.slogdet(x)), regular))
cases("logdet", case(lambda t, x: t.logdet(x @ x.T), regular))
cases("inverse", case(lambda t, x: x.inverse(), regular, kinds="fc"))
cases("pinverse", case(lambda t, x: t.pinverse(x), real))
cases("matrix_exp", case(lambda t, x: t.matrix_exp(x * 0.3), regular))
cases("matrix_power", case(lambda t, x: t.matrix_power(x, -2), regular))
cases("chain_matmul", case(lambda t, x, y: t.linalg.multi_dot([x, y]), square, real))
cases("cholesky", case(lambda t, x: t.cholesky(x @ x.mH, upper=True), regular))
cases("cholesky_solve", case(lambda t, x, y: t.cholesky_solve(y, x.tril()), regular, real))
cases("cholesky_solve", case(lambda t, x, y: t.cholesky_solve(y, x.triu(), upper=True), regular, real))
cases("cholesky_inverse", case(lambda t, x: t.cholesky_inverse(x.tril()), regular))
cases("cholesky_inverse", case(lambda t, x: t.cholesky_inverse(x.triu(), True), regular))
cases(
    "cross",
    case(lambda t, x, y: t.cross(x, y, 1), three, three),
    case(lambda t, x, y: t.linalg.cross(x, y), three, three),
)
cases("lu", case(lambda t, x: tuple(t.lu(x, get_infos=True)), regular))
for _shape in ((3, 3), (2, 4, 3), (2, 3, 5), (0, 2, 2)):
    cases(
        "lu_unpack",
        case(lambda t, x: tuple(t.lu_unpack(*t.linalg.lu_factor(x))), lambda r, _shape=_shape: real(r, _shape)),
    )
cases("lu_unpack", case(lambda t, x: t.lu_unpack(*t.linalg.lu_factor(x), unpack_pivots=False).U, square))
cases("lu_unpack", case(lambda t, x: t.lu_unpack(*t.linalg.lu_factor(x.detach()), unpack_data=False).P, square))
# of values alone: PyTorch's gradients through its random products are nan by chance
cases("svd_lowrank", case(lambda t, x: t.svd_lowrank(x.detach(), 4)[1], real))
cases("svd_lowrank", case(lambda t, x: t.svd_lowrank(x.detach())[1], real))
cases("svd_lowrank", case(lambda t, x, m: t.svd_lowrank(x.detach(), None, None, m.detach())[1], real, real))
cases("pca_lowrank", case(lambda t, x: t.pca_lowrank(x.detach(), 3)[1], lambda r: real(r, (6, 3))))
cases("pca_lowrank", case(lambda t, x: t.pca_lowrank(x.detach(), center=False)[1], real))


def some_indefinite(r: Any) -> Values:
    """Matrices of which the second has no Cholesky factor, and the third no inverse."""
    return np.stack([np.eye(3) * 4, np.diag([1.0, -2.0, 3.0]), np.zeros((3, 3))]) + 0 * real(r, (3, 3, 3))


cases("linalg.cholesky_ex", case(lambda t, x: tuple(t.linalg.cholesky_ex(x @ x.mH)), regular))
cases("linalg.cholesky_ex", case(lambda t, x: t.linalg.cholesky_ex(x.detach()).info, some_indefinite))
for _shape in ((0, 0), (0, 2, 2), (3, 0, 0)):
    _maker = lambda r, _shape=_shape: real(r, _shape)
    cases("linalg.cholesky_ex", case(lambda t, x: tuple(t.linalg.cholesky_ex(x)), _maker))
    cases("linalg.solve_ex", case(lambda t, x: tuple(t.linalg.solve_ex(x, x)), _maker))
    cases("linalg.inv_ex", case(lambda t, x: tuple(t.linalg.inv_ex(x)), _maker))
cases("linalg.inv_ex", case(lambda t, x: tuple(t.linalg.inv_ex(x)), regular, kinds="fc"))
cases("linalg.inv_ex", case(lambda t, x: t.linalg.inv_ex(x.detach()).info, some_indefinite))
cases("linalg.solve_ex", case(lambda t, x, y: tuple(t.linalg.solve_ex(x, y)), regular, real))
cases("linalg.solve_ex", case(lambda t, x: t.linalg.solve_ex(x[:2], x[:2, :, 0]).result, some_indefinite))
cases("linalg.solve_ex", case(lambda t, x: t.linalg.solve_ex(x.detach(), x.detach()).info, some_indefinite))
cases("linalg.solve_ex", case(lambda t, x, y: t.linalg.solve_ex(x, y, left=False).result, regular, three))
cases("linalg.lu_factor_ex", case(lambda t, x: tuple(t.linalg.lu_factor_ex(x)), regular))
cases("linalg.lu_factor_ex", case(lambda t, x: t.linalg.lu_factor_ex(x.detach()).info, some_indefinite))
cases("qr", case(lambda t, x: t.qr(x).R ** 2, regular))
cases("svd", case(lambda t, x: t.svd(x).S, regular), case(lambda t, x: t.svd(x).V ** 2, regular))
cases("orgqr", case(lambda t, x, y: t.orgqr(x * 0.3, y), lambda r: real(r, (4, 2)), lambda r: fraction(r, (2,))))
cases("lu_solve", case(lambda t, x, y: t.lu_solve(y, *t.linalg.lu_factor(x)), regular, real))
cases(
    "inner", case(lambda t, x, y: t.inner(x, y), stack, vector), case(lambda t, x, y: t.inner(x.sum(), y), real, vector)
)
cases("linalg.eigvals", case(lambda t, x: t.linalg.eigvals(x).abs().sort().values, apart))
cases("linalg.eig", case(lambda t, x: t.linalg.eig(x).eigenvectors.abs().sum(), apart))
cases(
    "linalg.lu",
    case(lambda t, x: tuple(t.linalg.lu(x)), square),
    case(lambda t, x: tuple(t.linalg.lu(x)), lambda r: real(r, (4, 3))),
)
for _shape in ((2, 4, 4), (2, 3, 4), (4, 3), (0, 3, 3), (2, 0, 0), (0, 2)):
    _maker = lambda r, _shape=_shape: real(r, _shape)
    cases("linalg.lu_factor", case(lambda t, x: tuple(t.linalg.lu_factor(x)), _maker, kinds="fc"))
_empty = case(lambda t, x: t.linalg.lu_solve(*t.linalg.lu_factor(x), x), lambda r: real(r, (0, 3, 3)))
cases("linalg.lu_solve", _empty)
cases("linalg.vander", case(lambda t, x: t.linalg.vander(x.sum(), N=3), real))
for _left, _adjoint in ((True, False), (True, True), (False, False)):
    _call = lambda t, x, y, _left=_left, _adjoint=_adjoint: t.linalg.lu_solve(
        *t.linalg.lu_factor(x), y if _left else y.T, left=_left, adjoint=_adjoint
    )
    cases("linalg.lu_solve", case(_call, regular, real, kinds="fc"))
for _driver in ("gels", "gelsy", "gelsd"):
    _call = lambda t, x, y, _driver=_driver: tuple(t.linalg.lstsq(x, y, driver=_driver))
    cases("linalg.lstsq", case(_call, three, lambda r: real(r, (4, 2))))
cases(
    "linalg.lstsq",
    case(
        lambda t, x, y: t.linalg.lstsq(x, y).solution,
        lambda r: real(r) * 0.3 + np.eye(3, 4) * 2,
        lambda r: real(r, (3, 2)),
    ),
)
cases(
    "linalg.cond",
    case(lambda t, x: t.linalg.cond(x), regular),
    case(lambda t, x: t.linalg.cond(x.detach(), 1), regular),
)
cases("linalg.matrix_rank", case(lambda t, x: t.linalg.matrix_rank(x.detach() @ x.detach().T), three))
cases("linalg.matrix_rank", case(lambda t, x: t.linalg.matrix_rank(x.detach(), atol=2.5), regular))
cases("linalg.pinv", case(lambda t, x: t.linalg.pinv(x, rtol=1e-3), real))
cases("linalg.pinv", case(lambda t, x: t.linalg.pinv(x + x.T, hermitian=True), regular))
cases("linalg.cholesky", case(lambda t, x: t.linalg.cholesky(x @ x.mH, upper=True), regular))
cases("linalg.diagonal", case(lambda t, x: t.linalg.diagonal(x, offset=1), stack))
cases(
    "linalg.householder_product",
    case(
        lambda t, x, y: t.linalg.householder_product(x * 0.3, y), lambda r: real(r, (4, 2)), lambda r: fraction(r, (2,))
    ),
)
cases("linalg.matmul", case(lambda t, x, y: t.linalg.matmul(x, y), square, real))
cases("linalg.matrix_norm", case(lambda t, x: t.linalg.matrix_norm(x, "nuc", dim=(0, 2)), stack))
cases("linalg.matrix_norm", case(lambda t, x: t.linalg.matrix_norm(x, 1, dim=(2, 0), keepdim=True), stack))
cases(
    "linalg.solve_triangular",
    case(lambda t, x, y: t.linalg.solve_triangular(x, y, upper=True, left=False), regular, three),
)
cases(
    "linalg.tensorsolve",
    case(
        lambda t, x, y: t.linalg.tensorsolve(x, y),
        lambda r: real(r, (2, 3, 6)) + np.eye(6).reshape(2, 3, 6) * 4,
        lambda r: real(r, (2, 3)),
    ),
)
cases(
    "linalg.tensorinv",
    case(lambda t, x: t.linalg.tensorinv(x, ind=1), lambda r: real(r, (6, 2, 3)) + np.eye(6).reshape(6, 2, 3) * 4),
)
cases("linalg.vander", case(lambda t, x: t.linalg.vander(x, N=3), real))

# special functions
cases(
    "float_power",
    case(lambda t, x, y: t.float_power(x, y), positive, vector),
    case(lambda t, x: t.float_power(2, x), real),
)
cases("igamma", case(lambda t, a, x: t.igamma(a.detach(), x), positive, positive))
cases("igammac", case(lambda t, a, x: t.igammac(a.detach(), x), positive, positive))
cases("mvlgamma", case(lambda t, x: t.mvlgamma(x + 2, 3), positive))
cases("polygamma", case(lambda t, x: t.polygamma(2, x), positive), case(lambda t, x: (x * 1).polygamma_(1), positive))
cases("frexp", case(lambda t, x: tuple(t.frexp(x)), real))
cases("ldexp", case(lambda t, x, i: t.ldexp(x, i), real, lambda r: r.integers(0, 4, (4,))))

# windows and transforms
for _name in "bartlett blackman hamming hann kaiser".split():
    for _periodic in (True, False):
        cases(
            f"{_name}_window",
            case(
                lambda t, x, _name=_name, _periodic=_periodic: (
                    getattr(t, f"{_name}_window")(7, _periodic, dtype=x.dtype) * x
                ),
                lambda r: real(r, (7,)),
            ),
        )
cases("hamming_window", case(lambda t, x: t.hamming_window(6, True, 0.6, 0.3, dtype=x.dtype), vector))
cases("kaiser_window", case(lambda t, x: t.kaiser_window(6, True, 5.0, dtype=x.dtype), vector))
cases(
    "stft",
    case(
        lambda t, x: t.stft(x, 8, 3, window=t.hann_window(8, dtype=x.dtype), return_complex=True),
        lambda r: real(r, (2, 20)),
    ),
)
cases(
    "stft",
    case(
        lambda t, x: t.stft(x, 8, center=False, normalized=True, window=t.ones(8, dtype=x.dtype), return_complex=False),
        lambda r: real(r, (20,)),
    ),
)
cases(
    "istft",
    case(
        lambda t, x: t.istft(
            t.stft(x, 8, window=t.hann_window(8, dtype=x.dtype), return_complex=True),
            8,
            window=t.hann_window(8, dtype=x.dtype),
            length=20,
        ),
        lambda r: real(r, (2, 20)),
    ),
)
for _options in ({}, {"length": 20}, {"normalized": True, "win_length": 6, "length": 7}):

    def _of_complex(t: Any, x: Any, w: Any, y: Any, _options: Any = _options) -> Any:
        w = t.complex(w, y)[: _options.get("win_length", 8)]
        return t.istft(t.complex(x, x.flip(0)), 8, window=w, return_complex=True, **_options)

    _sides = [lambda r: real(r, (2, 8, 5)), lambda r: real(r, (8,)), lambda r: real(r, (8,)) * 0.3]
    cases("istft", case(_of_complex, *_sides))
cases("istft", case(lambda t, x: t.istft(t.complex(x, x * 2), 8), lambda r: real(r, (8, 5))))
cases("round", case(lambda t, x: t.round(x * 7, decimals=1), real), case(lambda t, x: x.round(decimals=-1), real))

# copies of views
_COPIES: dict[str, Any] = {
    "alias": (), "as_strided": ((2, 2), (3, 1), 1), "detach": (), "diagonal": (1,), "expand": ((2, 4, 5),),
    "permute": ((1, 0),), "select": (1, 2), "slice": (1, 1, 5, 2), "split": (3, 1), "split_with_sizes": ((1, 3),),
    "squeeze": (), "t": (), "transpose": (0, 1), "unbind": (1,), "unfold": (1, 2, 2), "unsqueeze": (1,),
    "view": ((5, 4),),
}  # fmt: skip
for _name, _given in _COPIES.items():
    _function = lambda t, x, _name=_name, _given=_given: getattr(t, f"{_name}_copy")(
        x.detach() if _name == "detach" else x, *_given
    )
    cases(f"{_name}_copy", case(_function, lambda r: real(r, (4, 5))))
cases(
    "narrow_copy", case(lambda t, x: x.narrow_copy(0, 1, 2), real), case(lambda t, x: t.narrow_copy(x, 1, 0, 2), real)
)
cases("view_as_real_copy", case(lambda t, x: t.view_as_real_copy(x.detach() * 1j), real))
cases("view_as_complex_copy", case(lambda t, x: t.view_as_complex_copy(x.detach()), lambda r: real(r, (3, 2))))

# names of earlier versions
cases("unsafe_split", case(lambda t, x: t.unsafe_split(x, 3, 1), real))
cases("unsafe_chunk", case(lambda t, x: t.unsafe_chunk(x, 3), real))
cases("unsafe_split_with_sizes", case(lambda t, x: x.unsafe_split_with_sizes([1, 3], 1), real))
cases("split_with_sizes", case(lambda t, x: t.split_with_sizes(x, [1, 3], 1), real))
cases("nonzero_static", case(lambda t, x: t.nonzero_static(x > 0, size=30, fill_value=7), real))
cases(
    "triangular_solve",
    case(lambda t, x, y: tuple(t.triangular_solve(y, x, False, True)), apart, lambda r: real(r, (3, 2))),
)
cases("einsum", case(lambda t, x, y: t.einsum(x, [0, 1], y, [2, 1], [0, 2]), real, real, kinds="fc"))
