"""`adjoint.torch.optim` beside PyTorch's: ten steps of each optimizer, states, rates, errors."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint.torch as ours

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.5, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1, "betas": (0.5, 0.7)}),
    ("Adam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.2}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05, "betas": (0.9, 0.9)}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 3}),
    ("Rprop", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1}),
    ("LBFGS", {"max_iter": 3, "history_size": 4}),
    ("LBFGS", {"max_iter": 4, "line_search_fn": "strong_wolfe"}),
]  # fmt: skip


@contextlib.contextmanager
def double(*libraries: Any) -> Iterator[None]:
    """In this block the default type is double: PyTorch keeps rates and products of some states in it."""
    for torch in libraries:
        torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        for torch in libraries:
            torch.set_default_dtype(torch.float32)


def trained(
    torch: Any, name: str, settings: dict[str, Any], steps: int = 10, kind: str = "float64", *, falling: bool = False
) -> dict[str, Any]:
    """Parameters and state after some steps of a small problem, and what the optimizer says of itself."""
    r = np.random.default_rng(3)
    w = torch.tensor(r.standard_normal((3, 2)).astype(kind), requires_grad=True)
    b = torch.tensor(r.standard_normal(2).astype(kind), requires_grad=True)
    x = torch.tensor(r.standard_normal((5, 3)).astype(kind))
    optimizer = getattr(torch.optim, name)([w, b], **settings)
    unused = torch.zeros(2, requires_grad=True)
    if name != "LBFGS":
        optimizer.add_param_group({"params": unused, "lr": 0.5})
    losses = []
    rates = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.6 if falling else 1.0)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x @ w + b).sin() ** 2).sum() + (w**4).sum() * 0.1
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(optimizer.step(closure).item())
        rates.step()
    state = optimizer.state_dict()
    return {
        "losses": np.array(losses), "w": w.detach().numpy(), "b": b.detach().numpy(), "text": repr(optimizer),
        "groups": state["param_groups"], "state": {k: dict(v) for k, v in state["state"].items()},
        "version": w._version > 0,
    }  # fmt: skip


def plain(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else np.array([plain(v) for v in value]) if isinstance(
        value, list
    ) else value  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("falling", [False, True])
def test_ten_steps_are_those_of_pytorch(falling: bool) -> None:
    """With one rate, and with one that a scheduler lowers."""
    theirs = pytest.importorskip("torch")
    with Each() as each, double(ours, theirs):
        for name, settings in CASES:
            with each(f"{name} {settings}"):
                a, b = [trained(torch, name, settings, falling=falling) for torch in (ours, theirs)]
                for part in ("losses", "w", "b"):
                    np.testing.assert_allclose(a[part], b[part], rtol=1e-10, atol=1e-10, err_msg=part)
                assert a["text"] == b["text"]
                assert a["version"]
                assert a["groups"] == b["groups"]
                assert a["state"].keys() == b["state"].keys()
                for key, known in b["state"].items():
                    missing = {"al", "prev_loss"} if name == "LBFGS" else set()  # what only that class's code reads
                    assert set(known) - missing == set(a["state"][key]) - missing
                    for field in set(known) - missing:
                        found, wanted = plain(a["state"][key][field]), plain(known[field])
                        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9, err_msg=field)
                        if isinstance(wanted, np.ndarray) and not isinstance(known[field], list):
                            assert found.dtype == wanted.dtype, field


@pytest.mark.slow
@pytest.mark.peers
def test_complex_parameters_and_single_precision_take_the_steps_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")

    def run(torch: Any, name: str, settings: dict[str, Any]) -> Any:
        z = torch.tensor(np.array([1 + 2j, -0.5j, 0.3]), requires_grad=True)
        optimizer = getattr(torch.optim, name)([z], **settings)
        for _ in range(5):
            optimizer.zero_grad()
            (z * z * z.conj()).abs().sum().backward()
            optimizer.step()
        return z.detach().numpy()

    with Each() as each, double(ours, theirs):
        for name, settings in CASES:
            if name not in ("LBFGS", "Adafactor"):
                with each(f"{name} {settings}"):
                    np.testing.assert_allclose(run(ours, name, settings), run(theirs, name, settings), rtol=1e-9)
            with each(f"single {name} {settings}"):
                a, b = (trained(t, name, settings, 3, "float32") for t in (ours, theirs))
                np.testing.assert_allclose(a["w"], b["w"], rtol=2e-4, atol=1e-5)


@pytest.mark.peers
def test_states_go_from_one_optimizer_to_the_next_and_from_pytorch() -> None:
    theirs = pytest.importorskip("torch")

    def steps(torch: Any, optimizer: Any, w: Any, count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            (w**4).sum().backward()
            optimizer.step()

    with Each() as each:
        for name, settings in CASES:
            if name == "LBFGS":
                continue
            with each(f"{name} {settings}"):
                start = np.array([1.0, -2.0, 0.5])
                w = theirs.tensor(start, requires_grad=True)
                optimizer = getattr(theirs.optim, name)([w], **settings)
                steps(theirs, optimizer, w, 3)
                saved = copy.deepcopy(optimizer.state_dict())
                here = ours.tensor(w.detach().numpy().copy(), requires_grad=True)
                steps(theirs, optimizer, w, 3)
                state = {
                    key: {field: ours.tensor(value.numpy()) for field, value in known.items()}
                    for key, known in saved["state"].items()
                }
                other = getattr(ours.optim, name)([here], lr=99.0)
                other.load_state_dict({"state": state, "param_groups": saved["param_groups"]})
                steps(ours, other, here, 3)
                np.testing.assert_allclose(here.detach().numpy(), w.detach().numpy(), rtol=1e-6)


SCHEDULERS = """
StepLR(o, 3, gamma=0.5)
MultiStepLR(o, [2, 5, 5], gamma=0.5)
ConstantLR(o, factor=0.5, total_iters=4)
LinearLR(o, start_factor=0.25, total_iters=6)
LinearLR(o, start_factor=1.0, end_factor=0.1, total_iters=3)
ExponentialLR(o, 0.8)
PolynomialLR(o, total_iters=8, power=2.0)
CosineAnnealingLR(o, 4, eta_min=0.01)
CosineAnnealingWarmRestarts(o, 3, T_mult=2)
LambdaLR(o, lambda epoch: 0.9**epoch)
MultiplicativeLR(o, lambda epoch: 0.9)
OneCycleLR(o, 0.5, total_steps=15)
OneCycleLR(o, [0.5, 0.2], epochs=3, steps_per_epoch=5, anneal_strategy='linear', three_phase=True)
CyclicLR(o, 0.1, 0.5, step_size_up=3, step_size_down=2, mode='triangular2')
CyclicLR(o, 0.1, 0.5, step_size_up=3, mode='exp_range', gamma=0.9, cycle_momentum=False)
SequentialLR(o, [L.ConstantLR(o, 0.1, total_iters=2), L.ExponentialLR(o, 0.9), L.StepLR(o, 2)], [4, 8])
SequentialLR(o, [L.LinearLR(o, 0.1, total_iters=3), L.CosineAnnealingLR(o, 9)], [3])
ChainedScheduler([L.ConstantLR(o, 0.1, total_iters=2), L.ExponentialLR(o, 0.9)])
ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1)
ReduceLROnPlateau(o, mode='max', factor=0.5, patience=0, threshold_mode='abs', threshold=0.2, min_lr=[0.1, 0.01])
""".strip().splitlines()


@pytest.mark.peers
def test_rates_are_those_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    metrics = [3.0, 2.0, 2.0, 2.0, 2.5, 1.0, 1.0, 1.0, 1.0, 0.5, 0.6, 0.6, 0.6, 0.6]

    def rates(torch: Any, text: str) -> tuple[list[Any], list[Any]]:
        L = torch.optim.lr_scheduler
        groups = [{"params": [torch.ones(1, requires_grad=True)]}, {"params": [torch.ones(1, requires_grad=True)]}]
        o = torch.optim.SGD(groups, lr=0.3, momentum=0.9)
        o.param_groups[1]["lr"] = 0.05
        scheduler = eval(f"L.{text}", {"L": L, "o": o})
        found = []
        for i, metric in enumerate(metrics):
            found.append([group["lr"] for group in o.param_groups] + [group["momentum"] for group in o.param_groups])
            o.step()
            scheduler.step(*([metric] if "Plateau" in text else []))
            assert scheduler.get_last_lr() == [group["lr"] for group in o.param_groups]
            if i == 6:  # a state takes up where it left off
                saved = copy.deepcopy(scheduler.state_dict())
                names = sorted(saved)  # PyTorch takes entries out as it reads them
                scheduler.load_state_dict(saved)
        parts = [scheduler, *getattr(scheduler, "_schedulers", [])]
        counts = [(part.last_epoch, getattr(part, "_step_count", 0)) for part in parts if hasattr(part, "last_epoch")]
        return found, [names, counts, *[sorted(group) for group in o.param_groups]]

    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in SCHEDULERS:
            with each(text):
                (a, said), (b, known) = rates(ours, text), rates(theirs, text)
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)
                assert said == known


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda t, w: t.optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (
            lambda t, w: t.optim.SGD(w),
            TypeError,
            "should be an iterable of Tensors or dicts, but got torch.FloatTensor",
        ),
        (lambda t, w: t.optim.SGD([w], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda t, w: t.optim.SGD([w * 1]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda t, w: t.optim.SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda t, w: t.optim.SGD([{"params": [w]}, {"params": [w]}]), ValueError, "in more than one parameter group"),
        (lambda t, w: t.optim.SGD([w], nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda t, w: t.optim.SGD([w], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda t, w: t.optim.Adam([w], betas=(0.5, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda t, w: t.optim.Adam([w], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda t, w: t.optim.Adadelta([w], rho=2), ValueError, "Invalid rho value: 2"),
        (lambda t, w: t.optim.Rprop([w], etas=(2, 3)), ValueError, "Invalid eta values: 2, 3"),
        (
            lambda t, w: t.optim.SGD([w]).add_param_group(3),
            TypeError,
            "param_group must be a dict, but got <class 'int'>",
        ),
        (
            lambda t, w: t.optim.SGD([w]).load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "different number",
        ),
        (lambda t, w: t.optim.lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda t, w: t.optim.lr_scheduler.OneCycleLR(t.optim.SGD([w]), 0.1), ValueError, "You must define either"),
        (
            lambda t, w: t.optim.lr_scheduler.LambdaLR(t.optim.SGD([w]), []),
            ValueError,
            "Expected 1 lr_lambdas, but got 0",
        ),
        (lambda t, w: t.optim.lr_scheduler.StepLR(t.optim.SGD([w]), 1, last_epoch=3), KeyError, "'initial_lr' is not"),
    ],
)
@pytest.mark.peers
def test_refusals_are_those_of_pytorch(make: Any, error: Any, message: str) -> None:
    theirs = pytest.importorskip("torch")
    for torch in (ours, theirs):
        with pytest.raises(error, match=message):
            make(torch, torch.nn.Parameter(torch.ones(2)))


@pytest.mark.peers
def test_muon_is_that_of_pytorch_but_for_its_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = pytest.importorskip("torch")
    monkeypatch.setattr(theirs.Tensor, "bfloat16", lambda x: x.clone())  # which it computes the iteration in

    def steps(t: Any, **settings: Any) -> Any:
        r = np.random.default_rng(2)
        w, x = (t.tensor(r.standard_normal(shape)) for shape in ((3, 5), (4, 3)))
        v = w.T.clone().requires_grad_()
        w.requires_grad_()
        optimizer = t.optim.Muon([w, v], lr=0.1, **settings)
        for _ in range(4):
            optimizer.zero_grad()
            (x @ w @ v).sin().sum().backward()
            optimizer.step()
        state = optimizer.state_dict()["state"]
        return w.detach().numpy(), v.detach().numpy(), state[1]["momentum_buffer"].numpy(), str(optimizer)

    for settings in ({}, {"nesterov": False, "weight_decay": 0.3}, {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}):
        wanted, found = steps(theirs, **settings), steps(ours, **settings)
        assert wanted[3] == found[3]
        for a, b in zip(wanted[:3], found[:3], strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)
    for torch in (ours, theirs):
        with pytest.raises(ValueError, match="only supports 2D"):
            torch.optim.Muon([torch.ones(2, requires_grad=True)])
        with pytest.raises(ValueError, match="is not supported"):
            torch.optim.Muon([torch.ones(2, 2, requires_grad=True)], adjust_lr_fn="x")
    still = ours.ones(2, 2, requires_grad=True)
    still.grad = ours.zeros(2, 2)
    ours.optim.Muon([still], weight_decay=0.0).step()
    assert still.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(AttributeError, match="sparse"):
        ours.optim.SparseAdam


def after_steps(torch: Any, name: str, settings: dict[str, Any], numbers: Any, rate: Any) -> tuple[Any, list[Any]]:
    """The weighted sum of parameters after recorded steps, and what it depends on: first values, gradients, rate."""
    first, *gradients = [torch.tensor(row, requires_grad=True) for row in numbers]
    lr = torch.tensor(rate, requires_grad=True) if settings.get("by_rate") else rate
    p = first.clone()
    own = {key: value for key, value in settings.items() if key not in ("lr", "by_rate")}
    optimizer = getattr(torch.optim, name)([p], lr=lr, differentiable=True, **own)
    for gradient in gradients:
        p.grad = gradient
        with torch.no_grad():  # a step is recorded all the same
            optimizer.step()
    weights = torch.tensor([1.0, 2.0, 3.0, -1.0], dtype=torch.float64)
    return (p * weights).sum(), [first, *gradients, *([lr] if settings.get("by_rate") else [])]


RECORDED = [
    (name, {**settings, "by_rate": by_rate})
    for name, settings in CASES
    if name not in ("Adafactor", "LBFGS")
    for by_rate in ((False, True) if name not in ("ASGD", "Rprop") else (False,))
]


@pytest.mark.parametrize(("name", "settings"), RECORDED)
def test_differentiable_steps_have_the_slopes_of_differences(name: str, settings: dict[str, Any]) -> None:
    numbers, h = np.random.default_rng(0).normal(size=(7, 4)), 1e-6  # RAdam corrects from the sixth step on
    with double(ours):
        loss, inputs = after_steps(ours, name, settings, numbers, 0.05)
        found = ours.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)

        def loss_at(k: int, change: Any) -> float:
            moved = numbers.copy()
            if k < len(moved):
                moved[k] += change
            return float(after_steps(ours, name, settings, moved, 0.05 + (change if k == len(moved) else 0.0))[0])

        for k, slope in enumerate(found):
            for unit in np.eye(4) if k < len(numbers) else [1.0]:
                expected = (loss_at(k, h * unit) - loss_at(k, -h * unit)) / (2 * h)
                assert float((slope.numpy() * unit).sum()) == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.peers
def test_differentiable_steps_have_pytorchs_gradients_where_it_has_them() -> None:
    theirs = pytest.importorskip("torch")
    numbers, compared = np.random.default_rng(0).normal(size=(7, 4)), 0
    with Each() as each, double(ours, theirs):
        for name, settings in RECORDED:
            if "momentum" in settings:
                continue  # PyTorch detaches the first gradient
            with each(f"{name} {settings}"):
                try:
                    loss, inputs = after_steps(theirs, name, settings, numbers, 0.05)
                    wanted = theirs.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
                except (TypeError, RuntimeError):  # of rates, and of what it has overwritten itself
                    continue
                loss, inputs = after_steps(ours, name, settings, numbers, 0.05)
                found = ours.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
                compared += 1
                for a, b in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-7, 1e-9)
    assert compared > 10


def test_differentiable_steps_refuse_what_would_lose_a_derivative() -> None:
    for name, setting in (("ASGD", "lr"), ("Rprop", "lr"), ("Adam", "betas")):
        x = ours.ones(2, requires_grad=True)
        tracked = ours.tensor(0.5, requires_grad=True)
        p = x.clone()
        given = {setting: [tracked, tracked] if setting == "betas" else tracked}
        optimizer = getattr(ours.optim, name)([p], differentiable=True, **given)
        p.grad = ours.ones(2)
        with pytest.raises(NotImplementedError, match=f"a step of {name} has no derivative by {setting}"):
            optimizer.step()
        assert p.tolist() == [1.0, 1.0]
    p = ours.ones(2, dtype=ours.complex64)
    optimizer = ours.optim.SGD([p], lr=0.1, differentiable=True)
    p.grad = ours.ones(2, dtype=ours.complex64)
    with pytest.raises(NotImplementedError, match="complex parameters"):
        optimizer.step()
    real = ours.ones(2)
    real.grad, q = ours.ones(2), ours.ones(2, dtype=ours.complex64)
    q.grad = ours.ones(2, dtype=ours.complex64)
    with pytest.raises(NotImplementedError, match="complex parameters"):
        ours.optim.SGD([real, q], lr=0.1, differentiable=True).step()
    assert real.tolist() == [1.0, 1.0]  # nothing is half-changed
    leaf = ours.ones(2, requires_grad=True)
    leaf.grad = ours.ones(2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        ours.optim.SGD([leaf], lr=0.1, differentiable=True).step()
