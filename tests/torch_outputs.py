"""Programs of `out=`, of types of gradients, and of other memory in a tensor's place, for both libraries."""

from __future__ import annotations

from typing import Any

from torch_autograd import module, program, refused, shown


def _empty(torch: Any, count: int, kind: Any = None) -> Any:
    made = tuple([torch.empty(0, dtype=kind or torch.float64) for _ in range(count)])
    return made[0] if count == 1 else made


@program
def factors_are_written_to_given_tensors(torch: Any, show: Any) -> None:
    linalg = module(torch, "linalg")
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    for f, count in [
        (linalg.svd, 3), (torch.svd, 3), (linalg.eigh, 2), (linalg.qr, 2), (torch.qr, 2), (linalg.slogdet, 2),
        (linalg.lu, 3), (linalg.pinv, 1), (linalg.cond, 1), (linalg.norm, 1), (linalg.vector_norm, 1),
        (linalg.matrix_norm, 1), (linalg.svdvals, 1), (linalg.det, 1), (torch.cholesky, 1), (torch.cholesky_inverse, 1),
    ]:  # fmt: skip
        out = _empty(torch, count)
        given = f(a, out=out)
        same = given is out if count == 1 else all([x is y for x, y in zip(given, out, strict=True)])
        show(same, shown(given.abs() if count == 1 else [x.abs() for x in given]))
    ones = torch.ones(3, dtype=torch.float64)
    calls = [
        lambda out: linalg.matrix_power(a, 2, out=out), lambda out: linalg.multi_dot([a, a], out=out),
        lambda out: linalg.solve_triangular(a, a, upper=True, out=out), lambda out: linalg.solve(a, a, out=out),
        lambda out: linalg.cross(ones, ones + a[0, 0], out=out), lambda out: torch.cholesky_solve(a, a, out=out),
        lambda out: torch.vdot(ones, ones, out=out.reshape(())), lambda out: linalg.vecdot(a, a, out=out),
    ]  # fmt: skip
    for call in calls:
        out = torch.empty(1, dtype=torch.float64) if call is calls[6] else _empty(torch, 1)
        show(shown(call(out)), shown(out))
    eigenvalues, vectors = linalg.eig(a, out=_empty(torch, 2, torch.complex128))
    show(shown(eigenvalues.real.sort()[0]), tuple(vectors.shape))
    show(linalg.matrix_rank(a, out=_empty(torch, 1, torch.int64)))
    try:
        linalg.svd(a.requires_grad_(), out=_empty(torch, 3))
    except RuntimeError as error:
        show("out=... arguments don't support automatic differentiation" in str(error))


@program
def transforms_and_joins_are_written_to_given_tensors(torch: Any, show: Any) -> None:
    fft, special = module(torch, "fft"), module(torch, "special")
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    v, index = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1])
    real = ("irfft", "hfft", "irfft2", "hfft2", "irfftn", "hfftn")
    for name in ("fft", "ifft", "rfft", "ihfft", "fft2", "rfft2", "ihfft2", "ifftn", "rfftn", "ihfftn", *real):
        out = _empty(torch, 1, torch.float64 if name in real else torch.complex128)
        found = getattr(fft, name)(a, out=out)
        show(name, found is out, shown(torch.view_as_real(out) if out.is_complex() else out))
    for call in (
        lambda out: torch.softmax(v, 0, out=out), lambda out: torch.log_softmax(v, 0, out=out),
        lambda out: torch.hstack([v, v], out=out), lambda out: torch.vstack([v, v], out=out),
        lambda out: torch.dstack([v, v], out=out), lambda out: torch.column_stack([v, v], out=out),
        lambda out: torch.histc(v, 3, out=out), lambda out: torch.index_copy(v, 0, index, v[:1], out=out),
        lambda out: torch.scatter_reduce(v, 0, index, v, "sum", out=out), lambda out: torch.range(0, 2, out=out),
        lambda out: torch.index_reduce(v, 0, index, v[:1], "amax", out=out), lambda out: fft.fftfreq(4, out=out),
        lambda out: special.zeta(v + 1, v, out=out), lambda out: torch.conj_physical(v, out=out),
    ):  # fmt: skip
        out = torch.empty(0)
        show(call(out) is out, shown(out))
    show(shown(torch.histogram(v, 2, out=(torch.empty(0), torch.empty(0)))))
    show(torch.isin(v, v, out=torch.empty(0, dtype=torch.bool)))
    show(shown(torch.frexp(v, out=(torch.empty(0), torch.empty(0, dtype=torch.int32)))))


@program
def gradients_have_the_type_that_was_set(torch: Any, show: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    show(x.grad_dtype)
    x.grad_dtype = torch.float64
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g.dtype))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    show(x.grad_dtype, x.grad, seen, torch.autograd.grad((x * 2).sum(), x))
    refused(show, lambda: setattr(x, "grad_dtype", torch.float16), 70)
    x.grad, x.grad_dtype = None, torch.float16
    refused(show, lambda: setattr(x, "grad", torch.ones(3)), 40)
    x.grad = torch.ones(3, dtype=torch.float16)
    (x * 3).sum().backward()
    show(x.grad)
    y = torch.ones(3, requires_grad=True)
    y.grad_dtype = None
    y.grad = torch.ones(3, dtype=torch.float64)
    show(y.grad_dtype, y.grad)
    refused(show, lambda: (y * 2).grad_dtype)
    refused(show, lambda: setattr(y * 2, "grad_dtype", torch.float64))
    refused(show, lambda: setattr(y, "grad_dtype", 3), 70)


@program
def other_memory_in_the_place_of_tracked_tensors_and_views(torch: Any, show: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    refused(show, lambda: x.set_(torch.zeros(2)), 80)
    with torch.no_grad():
        show(x.set_(torch.zeros(2)) is x, x, x.is_leaf, x._version)
    (x * 2).sum().backward()
    show(x.grad)
    x = torch.arange(4.0)
    v = x[1:]
    part = v.view(3, 1)
    v.data = torch.zeros(3)
    part.add_(1)
    show(part, v, x)


@program
def the_deviation_of_one_element_has_no_slope(torch: Any, show: Any) -> None:
    for value in ([3.0], [3.0, 4.0]):
        for correction in (0, 1, 2)[: 4 - len(value)]:
            x = torch.tensor(value, requires_grad=True)
            out = x.std(correction=correction)
            out.backward()
            show(len(value), correction, out, x.grad)


@program
def hooks_see_what_a_sigmoid_keeps(torch: Any, show: Any) -> None:
    for name in ("sigmoid", "expm1", "exp", "tanh"):
        seen: list[Any] = []
        x = torch.ones(2, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append("pack") or t, lambda t: t):  # noqa: B023
            y = getattr(x, name)()
        y.sum().backward()
        show(name, seen, shown(x.grad))
