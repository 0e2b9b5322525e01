"""Every function of `adjoint.torch`, called as PyTorch's is: the table that both libraries run."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


def real(r: Any, shape: Any = (3, 4)) -> Values:
    """Numbers of either sign, none of them near 0 or near an integer."""
    whole = r.integers(0, 3, shape)
    return (whole + r.uniform(0.1, 0.45, shape)) * r.choice([-1.0, 1.0], shape)  # type: ignore[no-any-return]


def positive(r: Any, shape: Any = (3, 4)) -> Values:
    return np.abs(real(r, shape))


def unit(r: Any, shape: Any = (3, 4)) -> Values:
    return r.uniform(-0.9, 0.9, shape)  # type: ignore[no-any-return]


def fraction(r: Any, shape: Any = (3, 4)) -> Values:
    return r.uniform(0.1, 0.9, shape)  # type: ignore[no-any-return]


def above_one(r: Any, shape: Any = (3, 4)) -> Values:
    return 1.1 + positive(r, shape)  # type: ignore[no-any-return]


def regular(r: Any, shape: Any = (3, 3)) -> Values:
    return real(r, shape) * 0.2 + 2.0 * np.eye(3)  # type: ignore[no-any-return]


def definite(r: Any, shape: Any = (3, 3)) -> Values:
    a = real(r, shape)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(3)  # type: ignore[no-any-return]


def vector(r: Any) -> Values:
    return real(r, (4,))


def square(r: Any) -> Values:
    return real(r, (3, 3))


def stack(r: Any) -> Values:
    return real(r, (2, 3, 4))


def case(function: Any, *makers: Any, kinds: str = "f") -> tuple[Any, Any, str]:
    return function, makers, kinds


CASES: dict[str, list[tuple[Any, Any, str]]] = {}


def cases(name: str, *found: tuple[Any, Any, str]) -> None:
    CASES.setdefault(name, []).extend(found)


# of one tensor: the names, what the numbers are, and c where complex numbers go, too
_UNARY: list[tuple[str, Any, str]] = [
    ("abs absolute cos cosh exp expm1 neg negative sin sinh square tan tanh asinh arcsinh atan arctan", real, "fc"),
    ("deg2rad rad2deg exp2 erf erfc sigmoid frac trunc fix floor ceil round sign relu sinc", real, "f"),
    ("nan_to_num i0 sgn", real, "f"),
    ("isnan isinf isfinite signbit isposinf isneginf positive conj_physical resolve_conj resolve_neg", real, "f"),
    ("log log10 log2 sqrt reciprocal", positive, "fc"),
    ("log1p rsqrt lgamma digamma", positive, "f"),
    ("acos asin atanh arccos arcsin arctanh", unit, "fc"),
    ("acosh arccosh", above_one, "f"),
    ("logit erfinv", fraction, "f"),
    ("logical_not", real, "f"),
    ("isreal angle", real, "f"),
]  # fmt: skip
for _names, _maker, _kinds in _UNARY:
    for _name in _names.split():
        cases(_name, case(lambda t, x, _name=_name: getattr(t, _name)(x), _maker, kinds=_kinds))

_BINARY: list[tuple[str, Any, str]] = [
    ("add sub subtract mul multiply div divide true_divide", real, "fc"),
    ("maximum minimum fmax fmin hypot logaddexp logaddexp2 copysign atan2 arctan2 remainder fmod", real, "f"),
    ("eq ne not_equal", real, "fc"),
    ("lt less le less_equal gt greater ge greater_equal nextafter logical_and logical_or logical_xor", real, "f"),
    ("xlogy", positive, "f"),
]  # fmt: skip
for _names, _maker, _kinds in _BINARY:
    for _name in _names.split():
        _call = lambda t, x, y, _name=_name: getattr(t, _name)(x, y)
        cases(
            _name,
            case(_call, _maker, _maker, kinds=_kinds),
            case(_call, _maker, lambda r, _maker=_maker: _maker(r, (4,)), kinds=_kinds),
        )

for _name in "floor_divide heaviside".split():  # PyTorch has no derivatives of these; here they are zero
    cases(_name, case(lambda t, x, y, _name=_name: getattr(t, _name)(x.detach(), y.detach()), real, real))

_int = lambda r: r.integers(0, 8, (3, 4))
for _name in "bitwise_and bitwise_or bitwise_xor gcd lcm bitwise_left_shift bitwise_right_shift".split():
    cases(
        _name,
        case(lambda t, x, y, _name=_name: getattr(t, _name)(x, y), _int, lambda r: r.integers(0, 5, (4,)), kinds="i"),
    )
cases("bitwise_not", case(lambda t, x: t.bitwise_not(x), _int, kinds="i"))

cases(
    "pow",
    case(lambda t, x: t.pow(x, 2), real, kinds="fc"),
    case(lambda t, x: x**3, real),
    case(lambda t, x: x**-1.5, positive),
    case(lambda t, x: 2.0**x, real),
    case(lambda t, x, y: x**y, positive, real),
)
cases("sub", case(lambda t, x, y: t.sub(x, y, alpha=3), real, real), case(lambda t, x: 2 - x, real))
cases("add", case(lambda t, x, y: t.add(x, y, alpha=0.5), real, real), case(lambda t, x: 1 + x, real))
cases("div", case(lambda t, x: 3 / x, real), case(lambda t, x, y: t.div(x, y, rounding_mode="floor"), real, real))
cases("div", case(lambda t, x, y: t.div(x, y, rounding_mode="trunc"), real, real))
cases("rsub", case(lambda t, x, y: t.rsub(x, y, alpha=2), real, real))
cases(
    "lerp",
    case(lambda t, x, y: t.lerp(x, y, 0.3), real, real),
    case(lambda t, x, y, w: t.lerp(x, y, w), real, real, unit),
)
cases("addcmul", case(lambda t, x, y, z: t.addcmul(x, y, z, value=0.5), real, real, real, kinds="fc"))
cases("addcdiv", case(lambda t, x, y, z: t.addcdiv(x, y, z, value=2), real, real, positive))
cases("clamp", case(lambda t, x: t.clamp(x, -1, 1.5), real), case(lambda t, x: x.clamp(min=0.2), real))
cases("clamp", case(lambda t, x, a: t.clamp(x, a, 2.0 + a), real, unit))
cases("clip", case(lambda t, x: t.clip(x, max=0.5), real))
cases("clamp_min", case(lambda t, x: t.clamp_min(x, 0.5), real))
cases("clamp_max", case(lambda t, x: t.clamp_max(x, 0.5), real))
cases("where", case(lambda t, x, y: t.where(x > 0, x, y), real, real), case(lambda t, x: t.where(x > 0, x, 0.5), real))
cases(
    "masked_fill",
    case(lambda t, x: x.masked_fill(x > 0, 2.0), real),
    case(lambda t, x: t.masked_fill(x, x > 1, 3), real),
)
cases("real", case(lambda t, x: t.real(x), real, kinds="fc"))
cases("imag", case(lambda t, x: t.imag(x), real, kinds="c"))
cases("conj", case(lambda t, x: t.conj(x).resolve_conj() * 2, real, kinds="fc"))
cases("complex", case(lambda t, x, y: t.complex(x, y), real, real))
cases("polar", case(lambda t, x, y: t.polar(x, y), positive, real))
cases("abs", case(lambda t, x: abs(x), real, kinds="fc"))
cases("angle", case(lambda t, x: t.angle(x), real, kinds="c"))
cases("to", case(lambda t, x: x.to(t.float64) * 2, real), case(lambda t, x: x.double().float(), real))
cases("clone", case(lambda t, x: t.clone(x), real, kinds="fc"))
cases("equal", case(lambda t, x: t.tensor(t.equal(x, x)), real))
cases("isclose", case(lambda t, x, y: t.isclose(x, y), real, real))
cases("allclose", case(lambda t, x, y: t.tensor(t.allclose(x, y)), real, real))

# products
cases(
    "matmul",
    case(lambda t, x, y: t.matmul(x, y), real, lambda r: real(r, (4, 2)), kinds="fc"),
    case(lambda t, x, y: x @ y, stack, lambda r: real(r, (4, 2)), kinds="fc"),
    case(lambda t, x, y: x @ y, stack, lambda r: real(r, (2, 4, 3))),
    case(lambda t, x, y: x @ y, real, vector),
    case(lambda t, x, y: x @ y, vector, lambda r: real(r, (4, 2))),
)
cases("mm", case(lambda t, x, y: t.mm(x, y), real, lambda r: real(r, (4, 2)), kinds="fc"))
cases("bmm", case(lambda t, x, y: t.bmm(x, y), stack, lambda r: real(r, (2, 4, 2))))
cases("mv", case(lambda t, x, y: t.mv(x, y), real, vector, kinds="fc"))
cases("dot", case(lambda t, x, y: t.dot(x, y), vector, vector, kinds="fc"))
cases("vdot", case(lambda t, x, y: t.vdot(x, y), vector, vector, kinds="fc"))
cases("outer", case(lambda t, x, y: t.outer(x, y), vector, vector, kinds="fc"))
cases("ger", case(lambda t, x, y: t.ger(x, y), vector, vector))
cases("einsum", case(lambda t, x, y: t.einsum("ij,kj->ik", x, y), real, real, kinds="fc"))
cases("einsum", case(lambda t, x: t.einsum("bij->ji", x), stack))
cases("tensordot", case(lambda t, x, y: t.tensordot(x, y, dims=([0, 1], [1, 0])), real, lambda r: real(r, (4, 3))))
cases("kron", case(lambda t, x, y: t.kron(x, y), square, real))
cases("addmm", case(lambda t, b, x, y: t.addmm(b, x, y, beta=0.5, alpha=2), square, real, lambda r: real(r, (4, 3))))
cases("addmv", case(lambda t, b, x, y: t.addmv(b, x, y), lambda r: real(r, (3,)), real, vector))
cases("addr", case(lambda t, b, x, y: t.addr(b, x, y), lambda r: real(r, (4, 4)), vector, vector))
cases(
    "baddbmm",
    case(lambda t, b, x, y: t.baddbmm(b, x, y), lambda r: real(r, (2, 3, 2)), stack, lambda r: real(r, (2, 4, 2))),
)
cases(
    "addbmm",
    case(lambda t, b, x, y: t.addbmm(b, x, y), lambda r: real(r, (3, 2)), stack, lambda r: real(r, (2, 4, 2))),
)

# reductions
for _name in "sum mean prod var std amax amin logsumexp nansum nanmean any all count_nonzero max min median".split():
    if _name != "logsumexp":
        _kinds = "fc" if _name in ("sum", "mean", "prod") else "f"
        cases(_name, case(lambda t, x, _name=_name: getattr(t, _name)(x), real, kinds=_kinds))
    if _name not in ("max", "min", "median"):
        cases(_name, case(lambda t, x, _name=_name: getattr(t, _name)(x, 1), real))
        if _name not in ("prod", "count_nonzero"):
            cases(_name, case(lambda t, x, _name=_name: getattr(t, _name)(x, dim=-1, keepdim=True), stack))
for _name in "sum mean var std amax amin logsumexp".split():
    cases(_name, case(lambda t, x, _name=_name: getattr(t, _name)(x, (0, 2)), stack))
cases("var", case(lambda t, x: t.var(x, 0, unbiased=False), real), case(lambda t, x: x.var(0, correction=2), real))
cases("std", case(lambda t, x: x.std(unbiased=False), real))
cases("var_mean", case(lambda t, x: t.var_mean(x, 1), real))
cases("std_mean", case(lambda t, x: t.std_mean(x, 1), real))
for _name in "max min median".split():
    cases(_name, case(lambda t, x, _name=_name: tuple(getattr(t, _name)(x, 1)), real))
    cases(_name, case(lambda t, x, _name=_name: getattr(x, _name)(0, keepdim=True).values, real))
cases("max", case(lambda t, x, y: t.max(x, y), real, real))
cases("min", case(lambda t, x, y: t.min(x, y), real, real))
cases("aminmax", case(lambda t, x: tuple(t.aminmax(x, dim=1)), real))
cases("argmax", case(lambda t, x: t.argmax(x), real), case(lambda t, x: x.argmax(1), real))
cases("argmin", case(lambda t, x: t.argmin(x), real), case(lambda t, x: x.argmin(0, keepdim=True), real))
cases(
    "norm",
    case(lambda t, x: t.norm(x), real),
    case(lambda t, x: t.norm(x, 1, 1), real),
    case(lambda t, x: x.norm(3), real),
)
cases("dist", case(lambda t, x, y: t.dist(x, y), real, real))
for _name in "cumsum cumprod logcumsumexp softmax log_softmax".split():
    cases(
        _name,
        case(lambda t, x, _name=_name: getattr(t, _name)(x, 1), real),
        case(lambda t, x, _name=_name: getattr(x, _name)(0), stack),
    )
for _name in "sort topk kthvalue".split():
    _extra = {"sort": (), "topk": (2,), "kthvalue": (2,)}[_name]
    cases(_name, case(lambda t, x, _name=_name, _extra=_extra: tuple(getattr(t, _name)(x, *_extra)), real))
cases("sort", case(lambda t, x: tuple(t.sort(x, 0, descending=True)), real))
cases("topk", case(lambda t, x: tuple(t.topk(x, 2, dim=0, largest=False)), real))
cases("argsort", case(lambda t, x: t.argsort(x, 1), real))

# joins and moves
for _name in "cat concat concatenate stack hstack vstack dstack row_stack column_stack".split():
    cases(_name, case(lambda t, x, y, _name=_name: getattr(t, _name)([x, y]), real, real))
cases("cat", case(lambda t, x, y: t.cat((x, y), dim=1), real, real, kinds="fc"))
cases("stack", case(lambda t, x, y: t.stack((x, y), dim=-1), real, real))
cases("flip", case(lambda t, x: t.flip(x, (0, 1)), real), case(lambda t, x: x.flip(1), real))
cases("fliplr", case(lambda t, x: t.fliplr(x), real))
cases("flipud", case(lambda t, x: t.flipud(x), real))
cases("roll", case(lambda t, x: t.roll(x, 1), real), case(lambda t, x: x.roll((1, 2), (0, 1)), real))
cases("rot90", case(lambda t, x: t.rot90(x, 1, (0, 1)), real))
cases("tile", case(lambda t, x: t.tile(x, (2, 1)), real), case(lambda t, x: x.repeat(2, 1, 3), real))
cases(
    "repeat_interleave",
    case(lambda t, x: t.repeat_interleave(x, 2, 1), real),
    case(lambda t, x: x.repeat_interleave(3), real),
)
cases("tril", case(lambda t, x: t.tril(x, 1), real), case(lambda t, x: x.tril(-1), stack))
cases("triu", case(lambda t, x: t.triu(x), real))
cases("diag", case(lambda t, x: t.diag(x), vector), case(lambda t, x: t.diag(x, 1), square))
cases("trace", case(lambda t, x: t.trace(x), square, kinds="fc"))
cases("diff", case(lambda t, x: t.diff(x), real), case(lambda t, x: t.diff(x, 2, 0), real))
cases("meshgrid", case(lambda t, x, y: t.meshgrid(x, y, indexing="ij"), vector, vector))

# views
for _name, _call in {
    "reshape": lambda t, x: t.reshape(x, (6, 2)), "flatten": lambda t, x: t.flatten(x),
    "ravel": lambda t, x: t.ravel(x),
    "unflatten": lambda t, x: t.unflatten(x, 1, (2, 2)), "unsqueeze": lambda t, x: t.unsqueeze(x, 1),
    "squeeze": lambda t, x: t.squeeze(x.unsqueeze(0)), "permute": lambda t, x: t.permute(x, (1, 0)),
    "transpose": lambda t, x: t.transpose(x, 0, 1), "swapaxes": lambda t, x: t.swapaxes(x, 0, 1),
    "swapdims": lambda t, x: t.swapdims(x, 0, 1), "t": lambda t, x: t.t(x), "movedim": lambda t, x: t.movedim(x, 0, 1),
    "moveaxis": lambda t, x: t.moveaxis(x, 0, 1), "broadcast_to": lambda t, x: t.broadcast_to(x, (2, 3, 4)),
    "broadcast_tensors": lambda t, x: t.broadcast_tensors(x, x[:1]), "select": lambda t, x: t.select(x, 1, 2),
    "narrow": lambda t, x: t.narrow(x, 1, 1, 2), "split": lambda t, x: t.split(x, 2, 1),
    "chunk": lambda t, x: t.chunk(x, 3, 1), "tensor_split": lambda t, x: t.tensor_split(x, 3, 1),
    "unbind": lambda t, x: t.unbind(x, 1), "as_strided": lambda t, x: t.as_strided(x, (2, 2), (4, 1), 1),
    "diagonal": lambda t, x: t.diagonal(x, 1), "adjoint": lambda t, x: t.adjoint(x) * 2,
    "getitem": lambda t, x: (x[1], x[:, 1:3], x[..., None], x[None, 0], x[::2, -1], x[[0, 2]], x[x > 0]),
    "tensor index": lambda t, x: (x[:, [1, 1, 0]], x[t.tensor([0, 2]), 1:], x[[0, 1], [1, 3]]),
    "view": lambda t, x: (x.view(-1), x.view_as(x), x.reshape_as(x), x.expand(2, 3, 4), x.expand_as(x)),
    "T": lambda t, x: (x.T, x.mT, x.unfold(1, 2, 1), x.T.contiguous()),
    "split_with_sizes": lambda t, x: x.split_with_sizes([1, 3], 1),
}.items():  # fmt: skip
    cases(_name, case(_call, real, kinds="fc" if _name != "getitem" else "f"))

# places
_rows = lambda r: r.integers(0, 3, (2, 4))
cases(
    "gather",
    case(lambda t, x, i: t.gather(x, 0, i), real, _rows),
    case(lambda t, x, i: x.gather(0, i), real, _rows, kinds="fc"),
)
_once = lambda r: np.argsort(r.random((3, 4)), 0)[:2]
cases("scatter", case(lambda t, x, i, s: t.scatter(x, 0, i, s), real, _once, lambda r: real(r, (2, 4))))
cases("scatter", case(lambda t, x, i: x.scatter(0, i, 1.5), real, _once))
cases("scatter_add", case(lambda t, x, i, s: t.scatter_add(x, 0, i, s), real, _rows, lambda r: real(r, (2, 4))))
_some = lambda r: np.array([2, 0])
cases("index_select", case(lambda t, x, i: t.index_select(x, 1, i), real, _some))
cases("index_add", case(lambda t, x, i, s: t.index_add(x, 1, i, s, alpha=2), real, _some, lambda r: real(r, (3, 2))))
cases("index_copy", case(lambda t, x, i, s: t.index_copy(x, 1, i, s), real, _some, lambda r: real(r, (3, 2))))
cases("index_fill", case(lambda t, x, i: t.index_fill(x, 1, i, 0.5), real, _some))
cases("index_put", case(lambda t, x, i, s: t.index_put(x, (i,), s), real, _some, lambda r: real(r, (2, 4))))
cases("index_put", case(lambda t, x, i, s: t.index_put(x, (i,), s, accumulate=True), real, _some, vector))
cases("masked_select", case(lambda t, x: t.masked_select(x, x > 0), real))
cases("masked_scatter", case(lambda t, x, s: t.masked_scatter(x, x > 0, s), real, real))
cases("take", case(lambda t, x, i: t.take(x, i), real, _some))
cases("take_along_dim", case(lambda t, x, i: t.take_along_dim(x, i, 0), real, _rows))
cases("nonzero", case(lambda t, x: t.nonzero(x > 0), real), case(lambda t, x: t.nonzero(x > 0, as_tuple=True), real))
cases("argwhere", case(lambda t, x: t.argwhere(x > 0), real))
cases("unique", case(lambda t, x: t.unique(x, return_inverse=True, return_counts=True), _int, kinds="i"))
cases("bincount", case(lambda t, x: t.bincount(x.reshape(-1)), _int, kinds="i"))
cases("searchsorted", case(lambda t, x, y: t.searchsorted(x.sort().values, y, right=True), vector, vector))

# linear algebra
cases("linalg.det", case(lambda t, x: t.linalg.det(x), regular))
cases("linalg.inv", case(lambda t, x: t.linalg.inv(x), regular, kinds="fc"))
cases("linalg.pinv", case(lambda t, x: t.linalg.pinv(x), regular))
cases("linalg.solve", case(lambda t, x, y: t.linalg.solve(x, y), regular, real, kinds="fc"))
cases("linalg.cholesky", case(lambda t, x: t.linalg.cholesky(x @ x.T + 3 * t.eye(3, dtype=x.dtype)), regular))
cases("linalg.slogdet", case(lambda t, x: t.linalg.slogdet(x)[1], regular))
cases("linalg.eigvalsh", case(lambda t, x: t.linalg.eigvalsh(x + x.T), regular))
cases("linalg.eigh", case(lambda t, x: t.linalg.eigh(x + x.T).eigenvectors ** 2, regular))
cases("linalg.svdvals", case(lambda t, x: t.linalg.svdvals(x), regular))
cases("linalg.svd", case(lambda t, x: t.linalg.svd(x).Vh ** 2, regular))
cases("linalg.qr", case(lambda t, x: t.linalg.qr(x).R ** 2, regular))
cases("linalg.matrix_exp", case(lambda t, x: t.linalg.matrix_exp(x * 0.3), regular))
cases("linalg.matrix_power", case(lambda t, x: t.linalg.matrix_power(x, 3), regular))
cases("linalg.multi_dot", case(lambda t, x, y: t.linalg.multi_dot([x, y, y.T]), regular, real))
cases("linalg.norm", case(lambda t, x: t.linalg.norm(x), real), case(lambda t, x: t.linalg.norm(x, 1, 1), real))
cases("linalg.vector_norm", case(lambda t, x: t.linalg.vector_norm(x, 3, dim=1), real))
cases(
    "linalg.matrix_norm",
    case(lambda t, x: t.linalg.matrix_norm(x), stack),
    case(lambda t, x: t.linalg.matrix_norm(x, 1), real),
)
cases("linalg.cross", case(lambda t, x, y: t.linalg.cross(x, y), square, square))
cases("linalg.vecdot", case(lambda t, x, y: t.linalg.vecdot(x, y), real, real))
cases(
    "linalg.solve_triangular", case(lambda t, x, y: t.linalg.solve_triangular(x.tril(), y, upper=False), regular, real)
)

# in place, on a copy
for _name in "abs exp sin sqrt tanh neg sigmoid relu round floor".split():
    cases(_name + "_", case(lambda t, x, _name=_name: getattr(x * 1, _name + "_")(), positive))
for _name in "add sub mul div".split():
    cases(_name + "_", case(lambda t, x, y, _name=_name: getattr(x * 1, _name + "_")(y), real, vector, kinds="fc"))
cases("pow_", case(lambda t, x: (x * 1).pow_(3), real))
cases("clamp_", case(lambda t, x: (x * 1).clamp_(-1, 1), real))
cases("masked_fill_", case(lambda t, x: (x * 1).masked_fill_(x > 0, 0.5), real))
cases("copy_", case(lambda t, x, y: (x * 1).copy_(y), real, vector, kinds="fc"))
cases("fill_", case(lambda t, x: (x * 1).fill_(2), real))
cases("zero_", case(lambda t, x: (x * 1).zero_(), real))
cases("lerp_", case(lambda t, x, y: (x * 1).lerp_(y, 0.2), real, real))
cases("scatter_add_", case(lambda t, x, i, s: (x * 1).scatter_add_(0, i, s), real, _rows, lambda r: real(r, (2, 4))))
cases("index_add_", case(lambda t, x, i, s: (x * 1).index_add_(1, i, s), real, _some, lambda r: real(r, (3, 2))))


def outcome(torch: Any, case: tuple[Any, Any, str], dtype: str, seed: int, orders: int = 2) -> dict[str, Any]:
    """Values, types and gradients of one case, of first and second order; of complex numbers first."""
    function, makers, _ = case
    r = np.random.default_rng(seed)
    args, leaves = [], []
    for make in makers:
        values = make(r)
        if values.dtype.kind == "f" and dtype.startswith("complex"):
            values = values + 1j * make(r)
        x = torch.tensor(values if values.dtype.kind in "iu" else values.astype(dtype))
        if values.dtype.kind in "fc":
            leaves.append(x.requires_grad_())
        args.append(x)
    out = function(torch, *args)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    found: dict[str, Any] = {"dtypes": [str(o.dtype) for o in outs], "values": [_values(o) for o in outs]}
    found["requires_grad"] = [o.requires_grad for o in outs]
    tracked = [o for o in outs if o.requires_grad]
    if not tracked:
        return found
    weights = [_weights(r, o) for o in tracked]
    first = torch.autograd.grad(
        tracked, leaves, [torch.tensor(w) for w in weights], create_graph=True, allow_unused=True
    )
    found["first"] = [None if g is None else _values(g) for g in first]
    known = [g for g in first if g is not None and g.requires_grad]
    if known and orders > 1:
        second = torch.autograd.grad(known, leaves, [torch.tensor(_weights(r, g)) for g in known], allow_unused=True)
        found["second"] = [None if g is None else _values(g) for g in second]
    return found


def _values(x: Any) -> Values:
    return np.array(x.detach().resolve_conj().numpy(force=True))


def _weights(r: Any, x: Any) -> Values:
    shape, dtype = tuple(x.shape), str(x.dtype).removeprefix("torch.")
    made = r.standard_normal(shape) + (1j * r.standard_normal(shape) if dtype.startswith("complex") else 0)
    return np.asarray(made).astype(dtype)


def different(theirs: dict[str, Any], ours: dict[str, Any], rtol: float) -> str | None:
    """What differs, or None. A gradient that is not there is zero."""
    for what in ("dtypes", "requires_grad"):
        if theirs[what] != ours[what]:
            return f"{what}: PyTorch {theirs[what]}, here {ours[what]}"
    for what in ("values", "first", "second"):
        one, other = theirs.get(what), ours.get(what)
        count = len(one or other or ())
        for i, (a, b) in enumerate(zip(one or [None] * count, other or [None] * count, strict=True)):
            shape = next((g.shape for g in (a, b) if g is not None), ())
            a, b = (np.zeros(shape) if g is None else g for g in (a, b))
            if a.shape != b.shape or not np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True):
                return f"{what} {i}: PyTorch {a}, here {b}"
    return None


# --- the table in docs/torch.md ---------------------------------------------------------------------------

_GROUPS = {  # by the file that they are in
    "creation": "made of values, of nothing, of chance",
    "generators": "seeds of random numbers",
    "operators": "elementwise, one primitive each",
    "functions": "elementwise, copies",
    "filling": "filled, compared as a whole",
    "products": "products",
    "views": "views",
    "reductions": "reductions, along axes, joins",
    "indexing": "by index",
    "statistics": "statistics, integrals",
    "placing": "parts, blocks",
    "copies": "copies of views",
    "exchange": "memory of other libraries",
    "matrices": "matrices",
    "special": "special functions, powers",
    "older": "parts, places, by older names",
    "resizing": "memory of given strides",
    "signals": "windows, short-time transforms, chance",
}


def table() -> str:
    """What is there, counted."""
    from adjoint.torch import later, linalg, older
    from adjoint.torch.operators import FUNCTIONS, METHODS

    later.load()
    groups: dict[str, list[str]] = {name: [] for name in _GROUPS}
    for name, function in sorted(FUNCTIONS.items()):
        if name != "Size":
            groups[_place(function)].append(name)
    lines = ["| kind | count | functions |", "|---|---|---|"]
    for group, text in _GROUPS.items():
        names = groups[group]
        lines.append(f"| {text} | {len(names)} | {' '.join([f'`{name}`' for name in names])} |")
    decompositions = [
        name for name in vars(linalg) if not name.startswith("_") and name.islower() and _ours(linalg, name)
    ]
    lines.append(
        f"| `torch.linalg` | {len(decompositions)} | {' '.join([f'`{name}`' for name in sorted(decompositions)])} |"
    )
    lines += [f"| {text} | {len(names)} | {' '.join([f'`{n}`' for n in names])} |" for text, names in rooms().items()]
    in_place = sorted([name for name in METHODS if name.endswith("_") and not name.startswith("__")])
    lines.append(f"| in-place methods | {len(in_place)} | {' '.join([f'`{name}`' for name in in_place])} |")
    known = {*FUNCTIONS, *older.REMOVED}
    only = sorted([n for n in METHODS if not n.startswith("_") and not n.endswith("_") and n not in known])
    lines.append(f"| other methods | {len(only)} | {' '.join([f'`{name}`' for name in only])} |")
    return "\n".join(lines)


def rooms() -> dict[str, list[str]]:
    """What is there in modules of their own."""
    from adjoint.torch import nn, optim
    from adjoint.torch.utils import data

    def own(module: Any, prefix: str) -> list[str]:
        found = [name for name, v in vars(module).items() if getattr(v, "__module__", "").startswith(prefix)]
        return sorted([name for name in found if not name.startswith("_") and callable(getattr(module, name))])

    containers = ["Module", "ModuleDict", "ModuleList", "Parameter", "Buffer", "ParameterDict", "ParameterList"]
    utilities = [n for n in own(nn.utils, "adjoint.torch.nn.utils") if n[0].islower()]
    return {
        "`torch.nn`": sorted([*nn.LAYERS, *containers, "Sequential"]),
        "`nn.functional`": sorted(nn.functional.ALL),
        "`nn.init`": [name for name in own(nn.init, "adjoint.torch.nn.init") if name[0].islower()],
        "`nn.utils`": sorted(
            [*utilities, "spectral_norm", "weight_norm", "remove_spectral_norm", "remove_weight_norm"]
        ),
        "`nn.utils.rnn`": [
            n for n in own(nn.utils.rnn, "adjoint.torch.nn.utils.rnn") if n not in ("padded", "repacked")
        ],
        "`nn.utils.parametrize` and `parametrizations`": sorted(
            [*own(nn.utils.parametrize, "adjoint.torch.nn.utils.parametrize"), "spectral_norm", "weight_norm"]
        ),
        "`optim`": sorted([*optim.OPTIMIZERS, "Optimizer"]),
        "`optim.lr_scheduler`": own(optim.lr_scheduler, "adjoint.torch.optim.lr_scheduler"),
        "`utils.data`": own(data, "adjoint.torch.utils.data"),
    }


def _ours(module: Any, name: str) -> bool:
    value = getattr(module, name)
    return callable(value) and getattr(value, "__module__", "").startswith("adjoint.torch.linalg")


def _place(function: Any) -> str:
    module = function.__module__.rpartition(".")[2]
    return module if module in _GROUPS else "operators"


if __name__ == "__main__":
    import re
    import sys
    from pathlib import Path

    if "--write" in sys.argv:
        page = Path(__file__).parent.parent / "docs" / "torch.md"
        new = re.sub(r"\| kind \| count \| functions \|\n(\|.*\n)+", lambda _: table() + "\n", page.read_text())
        page.write_text(new)
    else:
        print(table())
