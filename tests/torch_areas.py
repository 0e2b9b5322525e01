"""Programs of indices, masks, types, `out=`, printing and shared memory, each for both libraries."""

from __future__ import annotations

import math
from typing import Any

from torch_autograd import program, refused


def short(v: Any) -> str:
    """A number to four digits; what is nothing but a rounding error is zero."""
    return f"{0.0 if abs(v) < 1e-12 else v:+.4g}"


def seen(x: Any) -> Any:
    """Values to five digits, with type and shape; of containers one by one."""
    if isinstance(x, (tuple, list)):
        return [seen(entry) for entry in x]
    if isinstance(x, dict):
        return {name: seen(entry) for name, entry in x.items()}
    if not hasattr(x, "detach"):
        return f"{x + 0.0:.5g}" if isinstance(x, float) else x
    flat = x.detach().reshape(-1).tolist()
    digits = [f"{short(v.real)}{short(v.imag)}j" if isinstance(v, complex) else short(v) for v in flat]
    return f"{str(x.dtype)[6:]}{tuple(x.shape)} {' '.join(digits)} {x.requires_grad}"


def numbers(torch: Any, *shape: int, grad: bool = False, shift: float = 0.3) -> Any:
    """Numbers without symmetry."""
    count = math.prod(shape)
    x = torch.tensor([math.sin(1.7 * i + shift) + 0.1 * i for i in range(count)], dtype=torch.float64).reshape(shape)
    return x.requires_grad_() if grad else x


def slopes(torch: Any, show: Any, function: Any, *inputs: Any) -> None:
    """The value, and derivatives of first and second order."""
    out = function(*inputs)
    outs = [
        o for o in (out if isinstance(out, (tuple, list)) else (out,)) if o.dtype.is_floating_point or o.is_complex()
    ]
    show(seen(list(out) if isinstance(out, (tuple, list)) else out))
    total = sum((torch.view_as_real(o.resolve_conj()) if o.is_complex() else o).mul(1.3).sin().sum() for o in outs)
    first = torch.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
    show(seen(list(first)))
    second = sum(
        ((torch.view_as_real(g.resolve_conj()) if g.is_complex() else g) ** 2).sum() for g in first if g is not None
    )
    if second.requires_grad:
        show(seen(list(torch.autograd.grad(second, inputs, allow_unused=True))))


# --- indices and masks ----------------------------------------------------------------------------------


@program
def masks_read_and_written(torch: Any, show: Any) -> None:
    x = numbers(torch, 3, 4, grad=True)
    mask = x.detach() > 0.5
    y = x * 2
    y[mask] = 0.0
    show(seen(y), y.grad_fn.name(), y._version)
    y[~mask] *= 3
    y[mask] += x[mask] ** 2
    (y**2).sum().backward()
    show(seen(x.grad))
    z = x.detach().clone()
    z[z > 0] = torch.arange(float((z > 0).sum()), dtype=torch.float64)
    z[0, mask[0]] = -1
    z[mask[:, 0]] = torch.tensor([9.0, 8, 7, 6], dtype=torch.float64)
    show(seen(z))
    refused(show, lambda: z.__setitem__(mask, torch.ones(50, dtype=torch.float64)))
    refused(show, lambda: z[torch.ones(2, 4, dtype=torch.bool)])
    refused(show, lambda: z[mask, 0, 0])


@program
def views_of_indexed_rows_written_in_place(torch: Any, show: Any) -> None:
    x = numbers(torch, 4, 3, grad=True)
    y = x.clone()
    rows = y[1:3]
    rows[rows > 0] = 0.5
    rows[:, [0, 2]] *= 4
    y[..., 1].add_(y[..., 0].detach())
    y.T[2][::2] = x[0, :2]
    show(seen(y), seen(rows), y._version, rows._version)
    (y.sin() * y).sum().backward()
    show(seen(x.grad))


@program
def lists_tensors_and_slices_together(torch: Any, show: Any) -> None:
    x = numbers(torch, 3, 4, 2, grad=True)
    i, j = torch.tensor([0, 2, 2]), torch.tensor([1, 1, 3])
    for key in (
        (i, j),
        (slice(None), j),
        (i, slice(1, 3)),
        (i, slice(None), torch.tensor([0, 1, 0])),
        (Ellipsis, torch.tensor([1, 0, 1])),
        (None, i, j),
        (i, None, j),
        (i[:, None], j),
        (i, 1),
        (1, slice(None), 0),
        (torch.tensor(2), j),
        (slice(None), [True, False, True, True]),
        (torch.tensor([True, False, True]), slice(None), 0),
        (slice(-2, None), slice(None, None, 2), 1),
        (i.to(torch.int32), j),
    ):
        y = x[key]
        (g,) = torch.autograd.grad((y * y).sum(), x)
        show(seen(y), seen(g))
    refused(show, lambda: x[3])
    refused(show, lambda: x[i + 3])
    refused(show, lambda: x[0, 0, 0, 0])
    refused(show, lambda: x[1.5])
    refused(show, lambda: x[::-1])


@program
def assignments_at_repeated_places(torch: Any, show: Any) -> None:
    x = numbers(torch, 5, grad=True)
    v = numbers(torch, 4, grad=True, shift=1.1)
    i = torch.tensor([0, 3, 3, 1])
    y = x * 1
    y.index_put_((i,), v, accumulate=True)
    z = x.index_add(0, i, v, alpha=2.0)
    w = x.scatter_add(0, i, v) * x.scatter(0, i[:2], 2.5)
    u = x.scatter_reduce(0, i, v, "amax") + x.scatter_reduce(0, i, v, "mean", include_self=False)
    p = x.put(i, v, accumulate=True) + x.take(i).sum()
    for t in (y, z, w, u, p):
        show(seen(t), seen(torch.autograd.grad((t * t).sum(), [x, v], retain_graph=True, allow_unused=True)))
    q = torch.zeros(5, dtype=torch.float64)
    q[i] += 1
    show(seen(q))
    refused(show, lambda: x.index_add(0, i, v[:2]))
    refused(show, lambda: x.scatter(0, i + 3, v))
    refused(show, lambda: x.gather(0, torch.tensor([0.5])))


@program
def masked_functions(torch: Any, show: Any) -> None:
    x, v = numbers(torch, 2, 4, grad=True), numbers(torch, 6, grad=True, shift=2.0)
    mask = torch.tensor([[True, False, True, True], [False, False, True, False]])
    slopes(torch, show, lambda x, v: x.masked_scatter(mask, v), x, v)
    slopes(torch, show, lambda x: x.masked_fill(mask[0], -2.0).exp(), x)
    slopes(torch, show, lambda x: x.masked_select(mask) ** 3, x)
    slopes(torch, show, lambda x, v: torch.where(mask, x**2, v[:4]), x, v)
    show(
        seen(torch.where(mask)),
        seen(mask.nonzero()),
        seen(torch.argwhere(x > 1)),
        seen(torch.count_nonzero(x > 0.5, dim=1)),
    )
    show(seen(torch.where(mask, 1, 2.5)), seen(torch.where(mask, x.detach().float(), 2)))
    refused(show, lambda: x.masked_fill(mask.long(), 1.0))


@program
def rows_selected_and_sorted(torch: Any, show: Any) -> None:
    x = numbers(torch, 3, 4, grad=True)
    slopes(torch, show, lambda x: x.sort(dim=1, descending=True)[0], x)
    slopes(torch, show, lambda x: torch.topk(x, 2, dim=0).values, x)
    slopes(torch, show, lambda x: x.kthvalue(2, 1).values * x.median(1).values, x)
    slopes(torch, show, lambda x: x.index_select(1, torch.tensor([3, 0, 3])) ** 2, x)
    slopes(torch, show, lambda x: torch.take_along_dim(x, x.detach().argsort(1), 1) ** 2, x)
    slopes(torch, show, lambda x: x.cummax(1).values + x.cummin(0).values, x)
    slopes(torch, show, lambda x: x.max(1).values + x.amin(1) + x.aminmax(dim=1).max, x)
    slopes(
        torch, show, lambda x: x.quantile(torch.tensor([0.2, 0.7], dtype=torch.float64), dim=1) + x.nanquantile(0.4), x
    )
    s = torch.tensor([1.0, 3, 5])
    show(
        seen(torch.searchsorted(s, torch.tensor([3.0, 0, 6]), right=True)), seen(torch.bucketize(torch.tensor(4.0), s))
    )
    show(seen(torch.tensor([3, 1, 3, 2]).argsort(stable=True)), seen(torch.tensor([3, 1, 3, 2]).msort()))


@program
def writes_to_what_is_selected_twice(torch: Any, show: Any) -> None:
    x = numbers(torch, 6, grad=True)
    y = x * 1.0
    a, b = y[:3], y[2:]
    a.mul_(2)
    b.add_(a[2].clone())
    y[2] = y[3].detach().clone() * y[0].clone()
    show(seen(a), seen(b), a._version)
    c = y.view(2, 3)
    c[:, 1] = c[:, 0]
    c.t()[0].exp_()
    y.diff().pow(2).sum().backward()
    show(seen(y), seen(x.grad))


# --- types ----------------------------------------------------------------------------------------------


@program
def types_of_numbers_and_tensors_without_axes(torch: Any, show: Any) -> None:
    kinds = (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int32,
        torch.int64,
        torch.float32,
        torch.float64,
        torch.complex64,
    )
    for kind in kinds:
        x, s = torch.ones(2).to(kind), torch.ones(()).to(kind)
        row = []
        for other in (True, 2, 2.5, 1j, *[torch.ones(()).to(k) for k in kinds], *[torch.ones(2).to(k) for k in kinds]):
            for operation in (lambda a, b: a + b, lambda a, b: b * a):
                for a in (x, s):
                    row.append(str(operation(a, other).dtype)[6:])
        show(kind, *row)
        show([str(torch.result_type(x, o))[6:] for o in (True, 2, 2.5, 1j)])


@program
def types_of_comparisons_powers_and_integers(torch: Any, show: Any) -> None:
    i, u, f = torch.tensor([-7, 7, 3]), torch.tensor([250, 3, 0], dtype=torch.uint8), torch.tensor([-2.5, 0.5, 2.0])
    for make in (
        lambda: i // 2,
        lambda: i % 3,
        lambda: i / 2,
        lambda: i // -2,
        lambda: i % -3,
        lambda: torch.fmod(i, 3),
        lambda: u + 10,
        lambda: u - 4,
        lambda: u * 2,
        lambda: i**2,
        lambda: 2 ** u[1:],
        lambda: f // 1,
        lambda: f % 1,
        lambda: 5 % i,
        lambda: 7 // f,
        lambda: i & 3,
        lambda: i | u,
        lambda: i ^ 1,
        lambda: ~i,
        lambda: ~u,
        lambda: i << 1,
        lambda: i >> 1,
        lambda: -u,
        lambda: i == 7.0,
        lambda: f > 0,
        lambda: u == -6,
        lambda: torch.div(i, 2, rounding_mode="floor"),
        lambda: torch.div(i, 2, rounding_mode="trunc"),
        lambda: torch.true_divide(i, u[1]),
        lambda: i.sum(dtype=torch.float32),
        lambda: u.sum(),
        lambda: u.prod(),
        lambda: (u > 1).sum(),
        lambda: u.cumsum(0),
        lambda: (f > 0) + 1,
        lambda: (f > 0) * 2.5,
        lambda: torch.sqrt(i.abs()),
        lambda: i.float().mean(),
        lambda: f.round(decimals=0),
        lambda: torch.sign(i),
        lambda: i.clamp(-2.5, 3),
        lambda: i.clamp(min=0),
        lambda: f.clamp(max=1),
        lambda: torch.bitwise_not(f > 0),
        lambda: i.bool() & (f > 0),
        lambda: torch.arange(3) + 0.5,
        lambda: torch.full((2,), 3),
        lambda: torch.full((2,), True),
        lambda: torch.tensor([1, 2.5]),
        lambda: torch.tensor([True, 2]),
        lambda: torch.pow(i, 0.5 * 2),
        lambda: torch.pow(2, f),
        lambda: f**i,
        lambda: torch.float_power(i, 2),
        lambda: i.true_divide(3),
        lambda: round(2.6) + i,
        lambda: abs(i),
        lambda: torch.maximum(i, u),
        lambda: torch.atan2(i, f),
        lambda: torch.lerp(f, f + 1, 0.25),
        lambda: torch.logical_xor(i, u),
        lambda: torch.hypot(f, f),
    ):
        show(seen(make()))
    refused(show, lambda: i.mean())
    refused(show, lambda: -(f > 0))
    refused(show, lambda: i**-1)
    refused(show, lambda: i.add_(0.5))
    refused(show, lambda: i.div_(2))
    refused(show, lambda: u.mul_(1j))


@program
def in_place_operations_keep_types(torch: Any, show: Any) -> None:
    f = torch.tensor([1.5, -2.0])
    f += torch.tensor([1, 2])
    f *= torch.tensor(2.0, dtype=torch.float64)
    f[0] = 3
    f[1:] = torch.tensor([7], dtype=torch.int16)
    i = torch.tensor([5, -5])
    i += True
    i[0] = 2.9
    i //= 2
    i **= 2
    b = torch.tensor([True, False])
    b |= torch.tensor([False, True])
    b[0] = 0
    h = torch.tensor([1.0], dtype=torch.float16)
    h += 1e-4
    h *= 60000.0
    h *= 2
    show(f, i, b, h, f.dtype, i.dtype, b.dtype, h.dtype)
    refused(show, lambda: b.__iadd__(1.5))
    refused(show, lambda: i.__itruediv__(2))
    refused(show, lambda: f.__iadd__(1j))
    refused(show, lambda: f.add_(torch.ones(3)))
    refused(show, lambda: f.add_(torch.ones(2, 2)))


@program
def gradients_have_the_types_of_their_tensors(torch: Any, show: Any) -> None:
    half = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
    single = torch.tensor([1.0, 2.0], requires_grad=True)
    double = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    comp = torch.tensor([1 + 2j, 2 - 1j], requires_grad=True)
    out = (half * single + double) * comp
    show(out.dtype)
    out.abs().sum().backward()
    show(seen([half.grad, single.grad, double.grad, comp.grad]))
    y = single.to(torch.float64).pow(2).sum() + single.half().sum() + single.double().exp().float().sum()
    single.grad = None
    y.backward()
    show(seen(single.grad), y.dtype)
    z = torch.tensor([1.0, 2], requires_grad=True)
    w = z.to(torch.complex64)
    (w * (1 + 1j)).real.sum().backward()
    show(seen(z.grad))


# --- out= -----------------------------------------------------------------------------------------------


@program
def results_written_to_given_tensors(torch: Any, show: Any) -> None:
    x, y = numbers(torch, 2, 3), numbers(torch, 2, 3, shift=2.0)
    out = torch.empty(0, dtype=torch.float64)
    r = torch.add(x, y, out=out)
    show(r is out, seen(out), out._version)
    big = torch.zeros(4, 3, dtype=torch.float64)
    torch.mul(x, y, out=big[1:3])
    torch.matmul(x, y.T, out=big[:2, :2])
    show(seen(big), big._version)
    values, places = torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int64)
    got = torch.max(x, 1, out=(values, places))
    show(seen(values), seen(places), got.values is values)
    show(seen(torch.sort(x, 1, out=(values, places))[0]), seen(places))
    torch.sum(x, 0, out=values)
    torch.cat([x, y], 1, out=big)
    show(seen(values), seen(big))
    f = torch.empty(2, 3)
    torch.add(x, y, out=f)
    show(seen(f))
    torch.stack([x, y], out=big)
    torch.exp(x, out=x)
    show(seen(x), big.shape)
    show(seen(torch.arange(4, out=torch.empty(4, dtype=torch.int64))), seen(torch.eye(2, out=torch.empty(2, 2))))
    i = torch.empty(2, 3, dtype=torch.int64)
    refused(show, lambda: torch.add(x, y, out=i))
    w = x.clone().requires_grad_()
    refused(show, lambda: torch.add(w, y, out=f), 0)
    with torch.no_grad():
        torch.add(w, 1, out=f)
    show(seen(f))


# --- printing -------------------------------------------------------------------------------------------


@program
def options_of_printing(torch: Any, show: Any) -> None:
    x = torch.tensor([[1.23456789, 1000.5, -0.001], [1e-8, 3.0, 2e5]])
    many = torch.arange(2500.0).reshape(50, 50)
    try:
        for options in (
            {},
            {"precision": 2},
            {"sci_mode": True},
            {"sci_mode": False},
            {"precision": 6, "linewidth": 40},
            {"threshold": 5, "edgeitems": 1},
            {"profile": "short"},
            {"profile": "full"},
            {"profile": "default"},
        ):
            torch.set_printoptions(**options)
            show(x)
            show(x[0], x * 1e-3, torch.tensor(3.14159265), torch.tensor([1 + 2j, 1e-5j]), x.long(), x > 1)
            if options.get("profile") != "full":
                show(many)
    finally:
        torch.set_printoptions(profile="default")
    show(
        torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0]),
        torch.tensor([]),
        torch.empty(0, 3),
        torch.tensor([[[]]]),
    )
    show(
        torch.tensor(2, dtype=torch.int8),
        torch.tensor([1.0], dtype=torch.float16),
        torch.ones(2, dtype=torch.float64),
        torch.zeros(2, 0, 3, dtype=torch.int64),
    )
    show(
        torch.ones(2, requires_grad=True),
        torch.ones(2, requires_grad=True) * 2,
        torch.ones(3, 2).T,
        torch.full((2, 2), 1e10),
        torch.tensor([1e-10, 1.0]),
    )
    show(
        f"{torch.tensor(2.5):.3f}",
        f"{torch.tensor(3):04d}",
        str(torch.nn.Parameter(torch.ones(2))),
        repr(torch.Size([2, 3])),
        torch.float32,
        [torch.tensor(1)],
    )
    show(
        torch.tensor([1e5, 12345.678, 1.0]),
        torch.tensor([100000000, 1]),
        torch.tensor([0.1, 0.22, 0.333]),
        torch.tensor([1.0, 2.0]),
        torch.tensor([1e38, 1e-38]),
    )


# --- other memory in a tensor's place -----------------------------------------------------------------------


@program
def data_of_another_tensor(torch: Any, show: Any) -> None:
    x, y = numbers(torch, 3, grad=True), numbers(torch, 3, shift=2.0)
    z = x * 2
    x.data = y
    y.add_(1)
    show(seen(x), x._version, y._version, x.is_leaf)
    with torch.no_grad():
        x.mul_(2)
    show(seen(y), x._version, y._version)
    (z * x).sum().backward()
    show(seen(x.grad))
    base = torch.zeros(2, 3, dtype=torch.float64)
    part = base[0]
    part.data = y
    part.add_(1)
    show(seen(base), seen(part), seen(y))
    tied, other = torch.nn.Linear(2, 1, bias=False).double(), torch.nn.Linear(2, 1, bias=False).double()
    other.weight.data = torch.ones(1, 2, dtype=torch.float64)
    tied.weight.data = other.weight.data
    optimizer = torch.optim.SGD([*tied.parameters(), *other.parameters()], lr=0.1)
    (tied(torch.ones(2, dtype=torch.float64)) * other(torch.ones(2, dtype=torch.float64))).sum().backward()
    optimizer.step()
    show(seen(tied.weight), seen(other.weight))
    w = numbers(torch, 2, grad=True)
    w.data = torch.ones(3, dtype=torch.float64)
    out = w * w
    with torch.no_grad():
        w += 1
    show(seen(w), w._version)
    refused(show, lambda: out.sum().backward())
    refused(show, lambda: setattr(w, "data", 3.0))
    refused(show, lambda: setattr(w, "data", torch.tensor([1, 2])))
    half = numbers(torch, 2, 2, grad=True)
    half.data = half.data.float().t()
    show(seen(half), half.dtype, half.stride())
    half.sum().backward()
    show(half.grad.dtype)


@program
def sizes_and_strides_in_place(torch: Any, show: Any) -> None:
    x = torch.arange(6.0)
    y = x[1:]
    show(x.resize_(2, 3).tolist(), x._version, x.is_contiguous(), y.tolist())
    x[0, 1] = 9
    show(y.tolist(), x.resize_(2).tolist(), x.resize_(6).tolist()[:2], x.resize_(8).shape, x[:2].tolist())
    x.resize_as_(torch.ones(2, 2))
    show(x.shape, x.stride(), x is x.resize_((2, 2)))
    w = torch.ones(2, requires_grad=True)
    refused(show, lambda: w.resize_(3))
    refused(show, lambda: (w * 2).resize_(3))
    a = torch.arange(12.0).reshape(3, 4)
    b = a.as_strided_((2, 2), (4, 1), 1)
    b.mul_(2)
    show(b is a, a.tolist(), a.stride(), a.storage_offset(), a._version)
    refused(show, lambda: w.as_strided_((1,), (1,)))
    tracked = numbers(torch, 6, grad=True)
    part = (tracked * 2).as_strided_((2, 2), (1, 3), 1)
    (part**2).sum().backward()
    show(seen(part), part._version, seen(tracked.grad))
    s, t = torch.zeros(2), torch.arange(4.0)
    r = s.set_(t)
    s[0] = 7
    t[1] = 8
    show(r is s, s.tolist(), t.tolist(), s.shape, s._version, t._version)
    show(s.set_(t, 1, (2, 1), (2, 1)).tolist(), s.stride(), s.storage_offset())
    show(s.set_().shape, t.tolist())
    refused(show, lambda: w.set_(t))
    out = torch.zeros(2, 2)
    row = out[0]
    torch.add(torch.ones(2), 1, out=row)
    show(out.tolist())


@program
def steps_are_noticed_by_what_was_saved(torch: Any, show: Any) -> None:
    for read in (
        lambda x: x,
        lambda x: x[0],
        lambda x: x.as_strided((2,), (2,)),
        lambda x: x.expand(2, 4)[1],
        lambda x: x.detach() * x,
    ):
        x = numbers(torch, 4, grad=True)
        part = read(x)
        out = (part * part).sum()
        del part
        x.grad = torch.ones(4, dtype=torch.float64)
        torch.optim.SGD([x], lr=0.1).step()
        show(seen(x))
        refused(show, lambda out=out: out.backward())


@program
def writes_keep_strides(torch: Any, show: Any) -> None:
    def layout(x: Any) -> None:
        show(x.stride(), seen(x), seen(x.detach().as_strided((x.numel(),), (1,))), x._version)

    turned = torch.arange(6.0).reshape(3, 2).t()
    for source in (turned, turned.double(), torch.arange(3.0), torch.ones(3).expand(2, 3)):
        z = torch.zeros(2, 3)
        layout(z.copy_(source))
        layout(z.mul_(2))
        show(seen(z.view(6)))
    layout(torch.zeros(3, 2).t().clone().copy_(turned.contiguous()))
    layout(torch.add(turned, 1, out=torch.zeros(2, 3)))
    layout(torch.transpose_copy(turned, 0, 1, out=torch.zeros(3, 2)))
    layer = torch.nn.Linear(3, 2)
    layer.load_state_dict({"weight": turned, "bias": torch.zeros(2)})
    layout(layer.weight)
    x, v = numbers(torch, 2, 3, grad=True), numbers(torch, 3, 2, grad=True)
    y = (x * 1).copy_(v.t())
    show(y.grad_fn.name(), y.stride())
    saved = y.exp()
    y.add_(1)
    show(seen(list(torch.autograd.grad((saved * y).sum(), (x, v)))))
