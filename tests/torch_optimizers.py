"""Programs of optimizers, their hooks and states, schedulers and averages of weights, for both libraries."""

from __future__ import annotations

import copy
import functools
import gc
import io
import pickle
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from torch_autograd import module, program, refused, shown

NAMES = "SGD Adam AdamW Adamax NAdam RAdam RMSprop Adagrad Adadelta ASGD Rprop Adafactor".split()


def parameter(torch: Any, *shape: int, **kind: Any) -> Any:
    count = 1
    for size in shape:
        count *= size
    return torch.nn.Parameter(torch.linspace(0.5, 1.5, count, **kind).reshape(shape))


def with_gradients(torch: Any, *parameters: Any) -> None:
    for i, p in enumerate(parameters):
        p.grad = torch.full_like(p, 0.1 * (i + 1))


def warned(show: Any, do: Callable[[], Any], upto: int = 70) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        do()
    show([(w.category.__name__, str(w.message)[:upto]) for w in found])


def two_rates(torch: Any) -> Any:
    groups = [{"params": [parameter(torch, 2)]}, {"params": [parameter(torch, 3)], "lr": torch.tensor(0.5)}]
    return torch.optim.SGD(groups, lr=0.05)


def one_rate(torch: Any, lr: Any = 0.1, **settings: Any) -> Any:
    return torch.optim.SGD([parameter(torch, 2)], lr=lr, **settings)


def rates(optimizer: Any, digits: int = 7) -> list[float]:
    return [round(float(group["lr"]), digits) for group in optimizer.param_groups]


@program
def hooks_around_steps(torch: Any, show: Any) -> None:
    room = module(torch, "optim.optimizer")
    p = parameter(torch, 2)
    with_gradients(torch, p)
    optimizer = torch.optim.SGD([p], lr=0.1)
    said = lambda when: lambda o, args, kwargs: show(when, type(o).__name__, len(args), sorted(kwargs))
    handles = [
        room.register_optimizer_step_pre_hook(said("before any")),
        room.register_optimizer_step_post_hook(said("after any")),
        optimizer.register_step_pre_hook(said("before")),
        optimizer.register_step_post_hook(said("after")),
    ]
    optimizer.step()
    optimizer.step(lambda: torch.tensor(1.0))
    optimizer.step(closure=lambda: torch.tensor(1.0))
    torch.optim.Adam([p]).step()
    for handle in handles:
        handle.remove()
    with optimizer.register_step_pre_hook(lambda o, args, kwargs: (args, {"closure": lambda: torch.tensor(5.0)})):
        show(optimizer.step())
    with optimizer.register_step_pre_hook(lambda o, args, kwargs: 3):
        refused(show, optimizer.step, 10)


@program
def hooks_around_states(torch: Any, show: Any) -> None:
    p = parameter(torch, 2)
    with_gradients(torch, p)
    o = torch.optim.SGD([p], lr=0.1, momentum=0.9)
    o.step()
    seen: list[str] = []
    handles = [
        o.register_state_dict_pre_hook(lambda o: seen.append("before")),
        o.register_state_dict_post_hook(lambda o, state: seen.append("after")),
        o.register_load_state_dict_pre_hook(lambda o, state: seen.append("before load")),
        o.register_load_state_dict_post_hook(lambda o: seen.append("after load")),
        o.register_load_state_dict_pre_hook(lambda o, state: seen.append("first"), prepend=True),
    ]
    o.load_state_dict(o.state_dict())
    show(seen)
    for handle in handles:
        handle.remove()
    o.load_state_dict(o.state_dict())
    show(len(seen))
    with o.register_state_dict_post_hook(lambda o, state: {**state, "more": 1}):
        show(sorted(o.state_dict()))
    faster = lambda o, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 7.0}]}
    with o.register_load_state_dict_pre_hook(faster):
        o.load_state_dict(o.state_dict())
    show(o.param_groups[0]["lr"])


@program
def optimizers_of_users(torch: Any, show: Any) -> None:
    class Plain(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 0.5) -> None:
            super().__init__(params, {"lr": lr})

        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("new", 1)

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])
                    self.state[p]["count"] = self.state[p].get("count", 0) + 1

    class Louder(Plain):
        def step(self, closure: Any = None) -> Any:
            seen.append("louder")
            return super().step(closure)

    seen: list[str] = []
    for kind in (Plain, Louder):
        p = parameter(torch, 2)
        with_gradients(torch, p)
        optimizer = kind([p])
        optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
        optimizer.register_step_post_hook(lambda *_: seen.append("after"))
        optimizer.step()
        show(shown(p), optimizer)
        optimizer.load_state_dict(optimizer.state_dict())
        show(optimizer.param_groups[0]["new"], optimizer.state[p]["count"])
    show(seen[:3], seen.count("louder"))
    refused(show, lambda: torch.optim.Optimizer([p], {}).step(), 0)


@program
def names_of_parameters(torch: Any, show: Any) -> None:
    layer = torch.nn.Linear(2, 1)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        named, plain = kind(layer.named_parameters()), kind(layer.parameters())
        show(named.param_groups[0]["param_names"], named.state_dict()["param_groups"][0]["param_names"])
        refused(show, lambda o=named: o.add_param_group({"params": [parameter(torch, 2)]}), 90)
        refused(show, lambda k=kind: k([("a", parameter(torch, 2)), parameter(torch, 3)]), 90)
        first, second = copy.deepcopy(named.state_dict()), copy.deepcopy(plain.state_dict())
        plain.load_state_dict(first)
        named.load_state_dict(second)
        show(plain.param_groups[0].get("param_names"), named.param_groups[0].get("param_names"))
    p = parameter(torch, 2)
    warned(show, lambda: torch.optim.SGD([p, p]), 50)


@program
def states_of_earlier_versions(torch: Any, show: Any) -> None:
    for name in NAMES:
        p = parameter(torch, 2, 2)
        optimizer = getattr(torch.optim, name)([p])
        show(name, len(optimizer.state), sorted(optimizer.state.get(p, ())))
        with_gradients(torch, p)
        optimizer.step()
        state = copy.deepcopy(optimizer.state_dict())
        for group in state["param_groups"]:
            for setting in ("foreach", "differentiable", "capturable", "fused"):
                group.pop(setting, None)
        for known in state["state"].values():
            if "step" in known:
                known["step"] = known["step"].item()
        other = getattr(torch.optim, name)([p])
        other.load_state_dict(state)
        other.step()
        show(sorted(other.param_groups[0]), shown(p), shown(other.state[p].get("step")))
        public = lambda o: sorted([k for k in vars(o) if not k.startswith("_")])
        show(public(copy.deepcopy(optimizer)), type(pickle.loads(pickle.dumps(optimizer))).__name__)


@program
def complex_states_and_rates_that_are_tensors(torch: Any, show: Any) -> None:
    for name in NAMES[:-1]:
        z = torch.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
        parts = torch.view_as_real(z).detach().clone().requires_grad_()
        one, other = getattr(torch.optim, name)([z]), getattr(torch.optim, name)([parts])
        for i in range(3):
            z.grad = torch.tensor([0.1 + 0.2j, 0.3 - 0.1j]) * (i + 1)
            parts.grad = torch.view_as_real(z.grad).clone()
            one.step()
            other.step()
        show(name, torch.allclose(torch.view_as_real(z.detach()), parts))
        show(sorted([(key, str(value.dtype)) for key, value in one.state[z].items()]))
    for name in NAMES:
        rate, p, q = torch.tensor(0.01), parameter(torch, 2, 2), parameter(torch, 2, 2)
        one, other = getattr(torch.optim, name)([p], lr=rate), getattr(torch.optim, name)([q], lr=0.01)
        for optimizer, x in ((one, p), (other, q)):
            with_gradients(torch, x)
            optimizer.step()
        show(torch.allclose(p, q), one.param_groups[0]["lr"] is rate)
    p = parameter(torch, 2)
    with_gradients(torch, p)
    torch.optim.Adam([p], betas=(torch.tensor(0.9), torch.tensor(0.99))).step()
    show(shown(p))


@program
def settings_that_are_refused(torch: Any, show: Any) -> None:
    p = parameter(torch, 2, 2)
    several = torch.tensor([0.1, 0.2])
    for name, settings in (
        ("Adam", {"lr": torch.tensor(0.1), "foreach": True}), ("Adam", {"fused": True, "foreach": True}),
        ("Adam", {"lr": several}), ("SGD", {"lr": several}), ("Adam", {"betas": (torch.tensor(0.9), 0.99)}),
        ("Adafactor", {"beta2_decay": 0.8}), ("Adafactor", {"d": 0}), ("Adafactor", {"eps": (-1, 1e-3)}),
        ("Adafactor", {"eps": (None, -1)}), ("Adafactor", {"lr": -1}), ("NAdam", {"momentum_decay": -0.2}),
        ("RMSprop", {"alpha": -1}), ("Adagrad", {"initial_accumulator_value": -1}), ("ASGD", {"weight_decay": -0.5}),
    ):  # fmt: skip
        refused(show, lambda name=name, settings=settings: getattr(torch.optim, name)([p], **settings), 90)


@program
def orders_of_steps(torch: Any, show: Any) -> None:
    L = torch.optim.lr_scheduler

    def run(optimizer: Any, scheduler: Any, first: str) -> None:
        for _ in range(3):
            if first == "rate":
                scheduler.step()
            optimizer.step()
            if first == "optimizer":
                scheduler.step()

    for first in ("rate", "optimizer"):
        o = two_rates(torch)
        s = L.StepLR(o, 3)
        warned(show, lambda o=o, s=s, first=first: run(o, s, first))
    for replaced in ("before", "after"):
        o = two_rates(torch)
        old = o.step
        if replaced == "before":
            o.step = types.MethodType(lambda self, *args, old=old: old(*args), o)
        s = L.StepLR(o, 3)
        if replaced == "after":
            o.step = types.MethodType(lambda self, *args, old=old: old(*args), o)
        warned(show, lambda o=o, s=s: run(o, s, "optimizer"), 90)
    s = L.ExponentialLR(one_rate(torch), 0.9)
    warned(show, s.get_lr)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        s.step(2)
    show([str(w.message) == L.EPOCH_DEPRECATION_WARNING for w in found][-1], rates(s.optimizer))

    def references() -> Any:
        o = one_rate(torch)
        s = L.LambdaLR(o, lambda epoch: 1.0)
        run(o, s, "optimizer")
        return weakref.ref(s), weakref.ref(o)

    gc.disable()
    try:
        show([r() is None for r in references()])
    finally:
        gc.enable()
    show(isinstance(s, L._LRScheduler), issubclass(L._LRScheduler, L.LRScheduler))


@program
def rates_that_are_tensors(torch: Any, show: Any) -> None:
    L = torch.optim.lr_scheduler
    for name, settings in (
        ("StepLR", {"step_size": 2}), ("ExponentialLR", {"gamma": 0.9}), ("ConstantLR", {}), ("LinearLR", {}),
        ("PolynomialLR", {"power": 0.9}), ("MultiStepLR", {"milestones": [2, 5]}), ("CosineAnnealingLR", {"T_max": 9}),
    ):  # fmt: skip
        o = two_rates(torch)
        s = getattr(L, name)(o, **settings)
        for epoch in (2, 2, 0, 5, 3, 9):
            o.step()
            s.step(epoch)
            show(name, rates(o), type(o.param_groups[1]["lr"]).__name__)
        show([type(rate).__name__ for rate in (*s.base_lrs, *s.get_last_lr(), *s._get_closed_form_lr())])
    for make in (
        lambda o: L.LambdaLR(o, lambda epoch: 0.9**epoch), lambda o: L.MultiplicativeLR(o, lambda epoch: 0.9),
        lambda o: L.CyclicLR(o, 0.01, 0.5, cycle_momentum=False), lambda o: L.CosineAnnealingWarmRestarts(o, 4),
        lambda o: module(torch, "optim.swa_utils").SWALR(o, 0.5),
    ):  # fmt: skip
        rate = torch.tensor(0.1)
        o = one_rate(torch, rate)
        s = make(o)
        for _ in range(3):
            o.step()
            s.step()
        group = o.param_groups[0]
        show(type(s).__name__, rates(o, 5), group["lr"] is rate, type(group["initial_lr"]).__name__)
        show(round(float(group["initial_lr"]), 5), s.get_last_lr()[0] is rate)


@program
def schedulers_with_states(torch: Any, show: Any) -> None:
    L = torch.optim.lr_scheduler

    class Scale:
        def __init__(self, value: float) -> None:
            self.value = value

        def __call__(self, x: float) -> float:
            return self.value / (x + 1)

    for make in (
        lambda o, v: L.CyclicLR(o, 0.1, 0.5, scale_fn=Scale(v)), lambda o, v: L.CyclicLR(o, 0.1, 0.5),
        lambda o, v: L.LambdaLR(o, Scale(v)), lambda o, v: L.LambdaLR(o, functools.partial(pow, v)),
        lambda o, v: L.LinearLR(o, total_iters=4),
    ):  # fmt: skip
        one, other = (make(one_rate(torch, momentum=0.9), v) for v in (3.0, 2.0))
        state = one.state_dict()
        show(sorted(state), state.get("_scale_fn_custom"), state.get("lr_lambdas"))
        for s in (one, other):
            s.optimizer.step()
            s.step()
        other.load_state_dict(one.state_dict())
        other.optimizer.step()
        other.step()
        show(other.get_last_lr(), copy.deepcopy(one).get_last_lr())
        refused(show, lambda s=one: torch.save(s.state_dict(), io.BytesIO()))


@program
def schedulers_put_together(torch: Any, show: Any) -> None:
    L = torch.optim.lr_scheduler
    o = one_rate(torch, 1.0)
    inner = L.SequentialLR(o, [L.ConstantLR(o, 0.5, 2), L.ExponentialLR(o, 0.9)], [2])
    s = L.SequentialLR(o, [inner, L.StepLR(o, 2)], [4])
    for _ in range(8):
        show(rates(o))
        o.step()
        s.step()
    one, other = L.ExponentialLR(o, 0.9), L.ExponentialLR(one_rate(torch), 0.9)
    for parts in ([one, other], [L.ReduceLROnPlateau(o)], []):
        refused(show, lambda parts=parts: L.SequentialLR(o, parts, [3] * (len(parts) - 1)), 80)
        refused(show, lambda parts=parts: L.ChainedScheduler(parts), 80)
    refused(show, lambda: L.ChainedScheduler([one], optimizer=other.optimizer), 120)
    refused(show, lambda: L.CosineAnnealingWarmRestarts(o, 2, eta_min="a"))
    refused(show, lambda: L.ReduceLROnPlateau(o, min_lr=[1, 2]))
    for least in (0.01, [0.01]):
        o = one_rate(torch)
        s = L.ReduceLROnPlateau(o, patience=0, min_lr=least)
        o.add_param_group({"params": [parameter(torch, 4)], "lr": 0.5})
        refused(show, lambda s=s: [s.step(1.0) for _ in range(3)], 60)
        show(rates(o))


@program
def rooms_of_names(torch: Any, show: Any) -> None:
    for name in NAMES[:-1]:
        show(getattr(module(torch, f"optim.{name.lower()}"), name) is getattr(torch.optim, name))
    for room, name in (
        ("linear", "Linear"), ("conv", "Conv2d"), ("batchnorm", "BatchNorm1d"), ("activation", "ReLU"),
        ("loss", "MSELoss"), ("rnn", "LSTM"), ("pooling", "MaxUnpool2d"), ("container", "Sequential"),
        ("normalization", "LayerNorm"), ("sparse", "Embedding"), ("transformer", "TransformerEncoder"),
    ):  # fmt: skip
        show(getattr(module(torch, f"nn.modules.{room}"), name) is getattr(torch.nn, name))
    data = torch.utils.data
    show(module(torch, "utils.data.dataset").Dataset is data.Dataset)
    show(module(torch, "utils.data.dataloader").DataLoader is data.DataLoader)
    modules = torch.nn.modules
    show(isinstance(torch.nn.BatchNorm2d(2), modules.batchnorm._BatchNorm))
    show(isinstance(torch.nn.Conv2d(1, 1, 1), modules.conv._ConvNd), isinstance(torch.nn.MSELoss(), modules.loss._Loss))

    class Far(modules.loss._Loss):
        def forward(self, x: Any, y: Any) -> Any:
            return (x - y).abs().max()

    show(Far(reduction="sum").reduction, Far(), shown(Far()(torch.ones(2), torch.zeros(2))))


@program
def ways_of_a_step_that_are_not_there_on_this_device(torch: Any, show: Any) -> None:
    for name in ("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"):
        for options in (
            {"capturable": True},
            {"fused": True},
            {"foreach": True},
            {"fused": True, "differentiable": True},
        ):
            p = parameter(torch, 2, 2)
            with_gradients(torch, p)
            try:
                getattr(torch.optim, name)([p], lr=0.1, **options).step()
            except (TypeError, RuntimeError, AssertionError) as error:
                show(name, options, type(error).__name__, str(error)[:26])
            else:
                show(name, options, shown(p))
