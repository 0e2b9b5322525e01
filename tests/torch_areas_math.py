"""Programs of linear algebra, spectra, special functions and sums, with derivatives, each for both libraries."""

from __future__ import annotations

from typing import Any

from torch_areas import numbers, seen, slopes
from torch_autograd import program, refused

# --- linear algebra -------------------------------------------------------------------------------------


@program
def decompositions_and_their_slopes(torch: Any, show: Any) -> None:
    a = numbers(torch, 3, 3, grad=True)
    linalg = torch.linalg
    eye = torch.eye(3, dtype=torch.float64)
    spd = lambda a: a @ a.mT + eye
    for f in (
        lambda a: linalg.det(a + eye),
        lambda a: linalg.slogdet(a + 2 * eye),
        lambda a: linalg.inv(a + 2 * eye),
        lambda a: linalg.cholesky(spd(a)),
        lambda a: linalg.eigvalsh(spd(a)),
        lambda a: linalg.svdvals(a),
        lambda a: linalg.solve(a + 2 * eye, a[:, :2]),
        lambda a: linalg.qr(a + eye)[1].abs(),
        lambda a: linalg.matrix_exp(a * 0.3),
        lambda a: linalg.matrix_power(a, 3),
        lambda a: linalg.matrix_power(a + 2 * eye, -2),
        lambda a: linalg.pinv(a),
        lambda a: linalg.lstsq(a + eye, a[:, :1]).solution,
        lambda a: linalg.norm(a),
        lambda a: linalg.norm(a, 2),
        lambda a: linalg.norm(a, "nuc"),
        lambda a: linalg.vector_norm(a, 3, dim=1),
        lambda a: linalg.matrix_norm(a, 1),
        lambda a: linalg.solve_triangular(a.triu() + 2 * eye, a, upper=True),
        lambda a: torch.cholesky_solve(a[:, :1], linalg.cholesky(spd(a))),
        lambda a: linalg.multi_dot([a, a.T, a]),
        lambda a: linalg.cross(a, a.roll(1, 0)),
        lambda a: torch.logdet(spd(a)),
        lambda a: torch.trace(a @ a),
        lambda a: linalg.householder_product(a.tril(-1) + eye, a[0]),
        lambda a: linalg.vander(a[0]),
        lambda a: linalg.lu(a + eye)[2],
        lambda a: linalg.tensorsolve(a + 2 * eye, a[0]),
        lambda a: linalg.cond(a + 2 * eye),
        lambda a: linalg.vecdot(a, a.roll(1, 1)),
        lambda a: linalg.diagonal(a),
        lambda a: torch.kron(a[:2, :2], a[:1]),
        lambda a: torch.tensordot(a, a, dims=([0], [1])),
        lambda a: torch.einsum("ij,jk,ik->i", a, a, a),
        lambda a: linalg.eigh(spd(a))[0],
        lambda a: torch.chain_matmul(a, a, a),
        lambda a: torch.block_diag(a[:1], a[1:, :2]),
    ):
        slopes(torch, show, f, a)
    show(seen(linalg.matrix_rank(a.detach())), seen(linalg.matrix_rank(torch.ones(3, 3))))
    for wrong in (
        lambda: linalg.cholesky(-eye),
        lambda: linalg.inv(torch.zeros(2, 2)),
        lambda: linalg.det(torch.ones(2, 3)),
    ):
        try:
            wrong()
        except RuntimeError as error:
            show(isinstance(error, linalg.LinAlgError))


@program
def linear_algebra_of_complex_matrices(torch: Any, show: Any) -> None:
    re, im = numbers(torch, 2, 3, 3, grad=True), numbers(torch, 2, 3, 3, grad=True, shift=4.0)
    linalg = torch.linalg
    eye = torch.eye(3, dtype=torch.complex128)
    for f in (
        lambda a: linalg.det(a + eye),
        lambda a: linalg.inv(a + 2 * eye),
        lambda a: linalg.eigvalsh(a @ a.mH),
        lambda a: linalg.svdvals(a),
        lambda a: linalg.solve(a + 2 * eye, a[..., :2]),
        lambda a: linalg.norm(a, dim=(1, 2)),
        lambda a: linalg.matrix_exp(a * 0.2),
        lambda a: a.mH @ a,
        lambda a: torch.bmm(a, a.conj()),
        lambda a: a.abs(),
        lambda a: a.angle(),
        lambda a: torch.polar(a.abs(), a.angle() * 2),
        lambda a: linalg.pinv(a + eye),
        lambda a: linalg.slogdet(a + eye)[1],
        lambda a: (
            torch.linalg.eigvals(a[0] + 3 * torch.diag(torch.arange(3.0, dtype=torch.float64))).abs().sort().values
        ),
    ):
        slopes(torch, show, lambda re, im, f=f: f(torch.complex(re, im)), re, im)


@program
def spectra(torch: Any, show: Any) -> None:
    x = numbers(torch, 2, 6, grad=True)
    fft = torch.fft
    for f in (
        lambda x: fft.fft(x),
        lambda x: fft.rfft(x),
        lambda x: fft.ifft(x, norm="ortho"),
        lambda x: fft.irfft(fft.rfft(x) ** 2),
        lambda x: fft.rfft(x, n=4),
        lambda x: fft.irfft(fft.rfft(x), n=5),
        lambda x: fft.fft2(x, norm="forward"),
        lambda x: fft.rfftn(x, s=(2, 8)),
        lambda x: fft.ihfft(x),
        lambda x: fft.fftshift(x, 1),
        lambda x: fft.ifftshift(fft.fft(x, dim=0)),
        lambda x: fft.irfft2(fft.rfft2(x) * 2j),
        lambda x: fft.fftn(x, dim=(0,)),
        lambda x: fft.ifft(fft.fft(x)).real,
        lambda x: fft.fft(x, n=9, dim=-1).abs(),
        lambda x: fft.ihfft2(x),
        lambda x: fft.hfft2(torch.complex(x, x)),
        lambda x: torch.stft(x, 4, window=torch.ones(4, dtype=torch.float64), return_complex=True),
    ):
        slopes(torch, show, f, x)
    show(seen(fft.fftfreq(5, 0.5)), seen(fft.rfftfreq(6)), seen(fft.fft(torch.arange(4))))
    refused(show, lambda: fft.rfft(torch.ones(2, dtype=torch.complex64)))
    refused(show, lambda: fft.fft(x, n=0))
    refused(show, lambda: fft.fft(x, dim=3))


@program
def special_functions_and_their_slopes(torch: Any, show: Any) -> None:
    special = torch.special
    x, p = numbers(torch, 5, grad=True), (numbers(torch, 5) * 0.3 + 0.4).clamp(0.05, 0.95).requires_grad_()
    for f in (
        special.erf,
        special.erfc,
        special.erfcx,
        special.digamma,
        special.gammaln,
        special.expm1,
        special.exp2,
        special.sinc,
        special.i0,
        special.i0e,
        special.i1,
        special.i1e,
        special.log_ndtr,
        special.ndtr,
        special.round,
        lambda x: special.xlogy(x, x.abs() + 1),
        lambda x: special.xlog1py(x, x * x),
        lambda x: special.softmax(x, 0),
        lambda x: special.log_softmax(x, 0),
        lambda x: special.logsumexp(x, 0),
        lambda x: special.multigammaln(x + 4, 2),
        lambda x: special.polygamma(1, x + 2),
        lambda x: special.gammainc(torch.tensor(2.0), x.abs()),
        lambda x: special.zeta(torch.tensor(2.0, dtype=torch.float64), x.abs() + 1),
        special.psi,
    ):
        slopes(torch, show, f, x)
    for f in (
        special.logit,
        special.ndtri,
        special.erfinv,
        special.entr,
        special.expit,
        special.log1p,
        lambda p: special.logit(p, eps=0.2),
    ):
        slopes(torch, show, f, p)
    edge = torch.tensor([0.0, -1.0, float("inf"), float("nan"), 1.0], dtype=torch.float64)
    for f in (
        special.entr,
        special.gammaln,
        special.digamma,
        special.erfinv,
        special.logit,
        special.ndtri,
        special.log_ndtr,
        special.i0e,
        torch.lgamma,
        torch.log1p,
        torch.rsqrt,
    ):
        show(seen(f(edge)))
    show(seen(special.erf(torch.tensor([1, 2]))), seen(special.expit(torch.tensor([1, 2], dtype=torch.int32))))


@program
def sums_along_axes(torch: Any, show: Any) -> None:
    x = numbers(torch, 2, 3, 2, grad=True)
    for f in (
        lambda x: x.sum((0, 2)),
        lambda x: x.mean(1, keepdim=True),
        lambda x: x.std(0),
        lambda x: x.var((0, 1), correction=0),
        lambda x: x.prod(1),
        lambda x: x.logsumexp((0, 1)),
        lambda x: x.norm(),
        lambda x: x.norm(1, dim=0),
        lambda x: x.norm(float("inf")),
        lambda x: x.cumsum(1),
        lambda x: x.cumprod(2),
        lambda x: x.logcumsumexp(0),
        lambda x: x.diff(dim=1, n=2),
        lambda x: torch.trapezoid(x, dim=1),
        lambda x: torch.cumulative_trapezoid(x, dx=0.5),
        lambda x: torch.std_mean(x, 1),
        lambda x: x.nansum(0),
        lambda x: x.nanmean(),
        lambda x: x.amax((0, 2)),
        lambda x: x.softmax(1),
        lambda x: x.log_softmax(0),
        lambda x: torch.cov(x[0]),
        lambda x: torch.corrcoef(x[:, :, 0]),
        lambda x: torch.gradient(x, dim=1)[0],
        lambda x: x.unfold(1, 2, 1).sum(-1),
        lambda x: x.roll((1, -1), (0, 1)),
        lambda x: x.rot90(1, (0, 1)),
        lambda x: x.flip(0, 1),
        lambda x: x.repeat_interleave(2, 1),
        lambda x: x.repeat(1, 2, 1),
        lambda x: x.tile(2),
        lambda x: torch.nn.functional.pad(x, (1, 0, 2, 1), value=3.0),
        lambda x: torch.nn.functional.pad(x, (1, 1), mode="reflect"),
        lambda x: x.movedim(0, 2).flatten(1),
        lambda x: torch.combinations(x[0, :, 0]),
        lambda x: torch.cartesian_prod(x[0, :, 0], x[1, :, 1]),
        lambda x: torch.meshgrid(x[0, 0], x[1, 0], indexing="xy"),
        lambda x: x.median(),
        lambda x: x.mode(1)[0],
        lambda x: torch.dist(x[0], x[1], 3),
        lambda x: torch.bucketize(x.detach(), torch.tensor([0.0, 0.5])) * x,
        lambda x: torch.addcmul(x, x, x, value=0.5),
        lambda x: torch.addcdiv(x, x, x.abs() + 1),
        lambda x: torch.baddbmm(x[:, :2], x[:, :2], x[:, 1:], beta=0.5, alpha=2.0),
    ):
        slopes(torch, show, f, x)


@program
def functions_at_their_corners(torch: Any, show: Any) -> None:
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    for f in (
        lambda x: x.abs(),
        lambda x: x.relu(),
        lambda x: x.sign(),
        lambda x: x.clamp(-1, 1),
        lambda x: x.sqrt(),
        lambda x: x.pow(0),
        lambda x: x**2,
        lambda x: x ** x.detach(),
        lambda x: 0.0**x,
        lambda x: x.norm() * 0 + x.clamp(0, 0).norm(),
        lambda x: x.log(),
        lambda x: x.max(),
        lambda x: x.max(0)[0],
        lambda x: torch.maximum(x, -x),
        lambda x: torch.nn.functional.leaky_relu(x),
        lambda x: torch.nn.functional.elu(x),
        lambda x: torch.nn.functional.hardtanh(x),
        lambda x: torch.nn.functional.softshrink(x, 1.0),
        lambda x: torch.where(x > 0, x.log(), x),
        lambda x: x.prod(),
        lambda x: x.cumprod(0),
        lambda x: torch.atan2(x, x),
        lambda x: torch.nn.functional.smooth_l1_loss(x, x.detach().flip(0)),
        lambda x: torch.copysign(x, -x.detach()),
        lambda x: x.floor() + x.frac(),
        lambda x: torch.fmod(x, 1.0),
        lambda x: torch.remainder(x, -1.0),
        lambda x: torch.nan_to_num(x / 0),
        lambda x: x.asin(),
        lambda x: x.std(),
        lambda x: x.amax(),
        lambda x: torch.logaddexp(x, x),
        lambda x: torch.fmax(x, x.detach()),
        lambda x: torch.nn.functional.normalize(x[:2], dim=0),
        lambda x: torch.nn.functional.cosine_similarity(x, x.detach() * 0, dim=0),
        lambda x: torch.special.entr(x),
        lambda x: x.clamp(min=x.detach()),
        lambda x: x.clamp(x.detach(), x.detach() + 1),
        lambda x: x.detach().clamp(max=x),
        lambda x: torch.minimum(x, x.detach()),
    ):
        y = f(x)
        (g,) = torch.autograd.grad(y.sum(), x)
        show(seen(y), seen(g + 0.0))
