"""Programs of subclasses of `Tensor` and of `__torch_function__`, which print the same under both libraries."""

from __future__ import annotations

import copy
import importlib
from typing import Any

from torch_names import refused

_CALLS = """
x+1|1+x|x-1|1-x|x*2|2*x|x/2|x**2|2**x|x@x|p@x|p+x|p-x|x[0]|-x|x==1|x<1|p<x|len(x)|bool(x[0])|x.sum()|torch.sum(x)
torch.add(p,x)|p.add(x)|torch.cat([p,x])|x.shape|x.mT.shape if x.ndim>1 else 0|x.dtype|x.requires_grad|x.size()
x[0].item()|x.tolist()|x.clone()|x.detach()|x.to(torch.float64)|x.max(0)|x.max(0).values|x.split(1)|torch.zeros_like(x)
x.add_(1)|p.add_(x)|F.linear(x,p[None])|x.as_subclass(torch.Tensor)|x.is_leaf|x.data|x.new_zeros(2)|x.new_tensor([1.])
torch.stack([x,x])|p[x>1]|torch.where(p>0,x,p)|torch.sin(x)|x.sin()|p.mul_(x)|x.mul_(p)|x.abs()|torch.softmax(x,0)
x.reshape(2,1)|x.view(2,1)|x.device|x.is_floating_point()|x.dim()|x.ndim|x.unbind()|x.topk(1)|torch.equal(x,p)
torch.full_like(x,1)|x.fill_(3)|2//x|x%2|torch.maximum(p,x)|float(x[0])|x.masked_fill(x>1,0.)|torch.nn.Linear(2,1)(x).shape
torch.relu_(x)|torch.clamp(x,0,1)|torch.sort(x)|torch.fft.fft(x).real|torch.special.expit(x)|F.pad(x,(1,1))
F.conv1d(x[None,None],p[None,None])|F.dropout(x,0.0)|F.leaky_relu(x)|F.relu(x)|x.expand(2,2)|x.cumsum(0)|x.var()
""".replace("\n", "|")


def calls_of_a_subclass(torch: Any, show: Any) -> None:
    asked: list[Any] = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append((func.__name__, [kind.__name__ for kind in types if kind is not torch.Tensor]))
            return super().__torch_function__(func, types, args, kwargs or {})

    renamed = {"fft_fft": "fft", "special_expit": "sigmoid"}
    for call in _CALLS.strip("|").split("|"):
        p = torch.tensor([1.0, 2.0])
        scope = {"torch": torch, "F": torch.nn.functional, "x": torch.tensor([1.0, 2.0]).as_subclass(Own), "p": p}
        asked.clear()
        result = eval(call, scope)
        seen = [(renamed.get(name, name), kinds) for name, kinds in asked]
        with torch._C.DisableTorchFunctionSubclass():
            show(call, type(result).__name__, seen, result if call != "torch.nn.Linear(2,1)(x).shape" else "")


def subclasses_keep_their_class(torch: Any, show: Any) -> None:
    class M(torch.Tensor):
        pass

    class N(M):
        pass

    class Labelled(torch.Tensor):
        label: str

        @staticmethod
        def __new__(cls: Any, values: Any, label: str) -> Any:
            return super().__new__(cls, values)

        def __init__(self, values: Any, label: str) -> None:
            self.label = label

        def clone(self) -> Any:
            return Labelled(super().clone(), self.label + "'")

    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Weight(torch.nn.Parameter):
        pass

    p = torch.tensor([1.0, 2.0])
    m, n, label = p.clone().as_subclass(M), p.clone().as_subclass(N), Labelled([1.0, 2.0], "a")
    for x in (
        M([1, 2]), m + n, n + m, m * p, Plain([1, 2]) + 1, Weight(p) * 2, Weight(p).detach(), label * 2, label.clone(),
        m.sum(), copy.copy(m), torch.Tensor._make_subclass(M, p, True), m.view(2, 1)[0], str(m),
        torch.no_grad()(lambda: m * 2)(), f"{m[0]}", torch.Tensor.add(m, 1), [x.item() for x in m],
    ):  # fmt: skip
        show(type(x).__name__, getattr(x, "requires_grad", None), x)
    show(label.label, label.clone().label)
    w = torch.tensor([1.0, 2.0]).as_subclass(M).requires_grad_()
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    show(w, type(w.grad).__name__, w.grad, torch.autograd.grad((w**3).sum(), w))

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.ones(2).as_subclass(M))

        def forward(self, x: Any) -> Any:
            return x * self.scale

    layer = Layer()
    show(type(layer(p)).__name__, type(layer.state_dict()["scale"]).__name__, type(layer.double().scale).__name__)
    y = m.clone()
    y[0] = 5.0
    y += 1
    show(type(y).__name__, y)
    with torch._C.DisableTorchFunctionSubclass():
        show(type(m + 1).__name__, type(m).__name__)


def classes_that_are_no_tensors(torch: Any, show: Any) -> None:
    known: dict[Any, Any] = {}
    overrides = importlib.import_module(f"{torch.__name__}.overrides")

    class Diagonal:
        def __init__(self, value: float) -> None:
            self.value = value

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func not in known or not all([issubclass(kind, (torch.Tensor, Diagonal)) for kind in types]):
                return NotImplemented
            return known[func](*args, **(kwargs or {}))

    def value(x: Any) -> Any:
        return x.value if isinstance(x, Diagonal) else x

    known[torch.mean] = lambda x: x.value / 2
    known[torch.add] = lambda x, other: ("added", value(x), value(other))
    known[torch.cat] = lambda xs, dim=0: ("joined", [value(x) for x in xs], dim)
    known[torch.sin] = lambda x: ("sin", x.value)
    known[torch.nn.functional.relu] = lambda x, inplace=False: ("relu", x.value)
    known[torch.nn.functional.linear] = lambda x, weight, bias=None: ("linear", value(x), bias)
    d, p = Diagonal(6.0), torch.ones(2)
    show(torch.mean(d), torch.add(d, 1), torch.add(p, d), torch.add(p, other=d), torch.cat([p, d], dim=1), torch.sin(d))
    show(torch.nn.functional.relu(d), torch.nn.functional.linear(d, p))
    for name in ("mul", "cos", "sum", "matmul"):
        refused(show, lambda name=name: getattr(torch, name)(*(d, p)[: 2 if name in ("mul", "matmul") else 1]), 36)
    refused(show, lambda: torch.nn.functional.softmax(d, 0))
    refused(show, lambda: torch.mul(object(), p), 0)
    show(overrides.is_tensor_like(d), overrides.is_tensor_like(p), overrides.is_tensor_like(3))
    show([overrides.has_torch_function((x,)) for x in (p, d, 3, torch.nn.Parameter(p))])

    def scaled(x: Any, factor: float = 2.0) -> Any:
        if overrides.has_torch_function_variadic(x):
            return overrides.handle_torch_function(scaled, (x,), x, factor=factor)
        return x * factor

    decorated = overrides.wrap_torch_function(lambda x: (x,))(lambda x: x * 3)
    known[scaled] = lambda x, factor: ("scaled", x.value, factor)
    known[decorated] = lambda x: ("decorated", x.value)
    show(scaled(d), scaled(p), decorated(d), decorated(p), overrides.is_tensor_method_or_property(torch.Tensor.add))


_ASKING = """
torch.zeros_like(t); torch.ones_like(t); torch.full_like(t, 1.0); torch.rand_like(t); x.expand_as(t); x.type_as(t)
x.view_as(t); x.reshape_as(t); x + t; x / t; torch.add(x, t); torch.sin(t); x.add(t); x.add_(t); x.copy_(t); x[t]
x == t; torch.bernoulli(t); torch.normal(t, x); torch.multinomial(t, 1); torch.result_type(t, x); torch.arange(t)
torch.full((2,), t); torch.split(t, 1); torch.norm(t); torch.tensordot(t, x); torch.cdist(t, x); torch.meshgrid(t, x)
torch.broadcast_tensors(t, x); torch.block_diag(t, x); torch.cartesian_prod(t, x); torch.cat([t, x])
torch.where(t, x, x); nn.Sigmoid()(t); nn.Tanh()(t); nn.ReLU()(t); nn.Softmax(0)(t); nn.LogSoftmax(0)(t)
nn.Linear(2, 2)(t); nn.Dropout()(t); nn.MSELoss()(t, x); nn.LeakyReLU()(t); nn.ELU()(t)
nn.MaxPool2d(2)(t); nn.AvgPool2d(2)(t)
nn.LayerNorm(2)(t); nn.Embedding(2, 2)(t); nn.CrossEntropyLoss()(t, x); nn.GLU()(t); nn.Hardtanh()(t)
nn.Upsample(2)(t); nn.ZeroPad2d(1)(t)
nn.BCELoss()(t, x); nn.NLLLoss()(t, x); nn.GroupNorm(1, 2)(t); nn.Conv2d(1, 1, 1)(t); nn.Sequential(nn.ReLU())(t)
F.relu(t); F.softmax(t, 0); F.linear(t, x); F.linear(x, t); F.conv2d(t, x); F.dropout(t); F.mse_loss(t, x)
F.mse_loss(x, t); F.cross_entropy(t, x); F.nll_loss(t, x); F.layer_norm(t, (2,)); F.batch_norm(t, x, x)
F.pad(t, (1, 1)); F.embedding(t, x); F.max_pool2d(t, 2); F.interpolate(t, 2); F.one_hot(t); F.normalize(t)
F.gelu(t); F.silu(t); F.elu(t); F.kl_div(t, x); F.binary_cross_entropy(t, x); F.smooth_l1_loss(t, x); F.huber_loss(t, x)
F.triplet_margin_loss(t, x, x); F.scaled_dot_product_attention(t, x, x); F.grid_sample(t, x); F.unfold(t, 2)
F.glu(t); F.prelu(t, x); F.group_norm(t, 1)
"""


def what_objects_are_asked_by_functions(torch: Any, show: Any) -> None:
    asked: list[Any] = []

    class Own:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kinds = [[kind.__name__ for kind in types], [type(value).__name__ for value in args]]
            asked.append((func.__name__, *kinds, sorted(kwargs or {})))
            return 1

    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "t": Own(), "x": torch.ones(2)}
    for line in _ASKING.strip().splitlines():
        for expression in line.split("; "):
            asked.clear()
            show(expression, eval(expression, names), asked)


PROGRAMS = {
    function.__name__: function
    for function in (
        calls_of_a_subclass,
        subclasses_keep_their_class,
        classes_that_are_no_tensors,
        what_objects_are_asked_by_functions,
    )
}


def printed(name: str, torch: Any) -> list[str]:
    """The lines of a program under a library."""
    lines: list[str] = []
    PROGRAMS[name](torch, lambda *values: lines.append(" ".join(map(str, values))))
    return lines
