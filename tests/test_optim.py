"""Optimizers: ten steps are PyTorch's, for gradients of all kinds; states and errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each

import adjoint as ad
from adjoint import errors

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(16, 3)), RNG.normal(size=(16, 2))

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6)}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.3}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "betas": (0.5, 0.9)}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.3, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"weight_decay": 0.1, "rho": 0.8}),
]


def model() -> Any:
    ad.random.seed(1)
    layer = lambda *sizes: ad.nn.Linear(*sizes, dtype=ad.float64)
    return ad.nn.Sequential(layer(3, 4), ad.tanh, layer(4, 2))


def loss(model: Any) -> Any:
    return ((model(ad.asarray(X)) - ad.asarray(Y)) ** 2).mean()


def trained(optimizer: Any, steps: int = 10, **options: Any) -> dict[str, Any]:
    made = model()
    state = optimizer.init(made)
    for _ in range(steps):
        made, state = optimizer.step(made, ad.grad(loss)(made), state, **options)
    return {path: x.numpy() for path, x in made.named_parameters().items()}


@pytest.mark.peers
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_ten_steps_are_pytorchs(name: str, settings: dict[str, Any]) -> None:
    torch = peer("torch")
    torch.set_default_dtype(torch.float64)  # in which NAdam keeps its product
    try:
        compare_with(torch, name, settings)
    finally:
        torch.set_default_dtype(torch.float32)


def compare_with(torch: Any, name: str, settings: dict[str, Any]) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    with torch.no_grad():
        for p, x in zip(net.parameters(), model().named_parameters().values(), strict=True):
            p.copy_(torch.from_numpy(x.numpy().copy()))
    theirs = getattr(torch.optim, name)(net.parameters(), **settings)
    for _ in range(10):
        theirs.zero_grad()
        ((net(torch.from_numpy(X)) - torch.from_numpy(Y)) ** 2).mean().backward()
        theirs.step()
    found = trained(getattr(ad.optim, name)(**settings))
    for p, x in zip(net.parameters(), found.values(), strict=True):
        np.testing.assert_allclose(x, p.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize(("name", "settings"), [case for case in CASES if case[0] != "NAdam"])  # of single precision
def test_complex_parameters_are_pairs_as_in_pytorch(name: str, settings: dict[str, Any]) -> None:
    torch = peer("torch")
    start = RNG.normal(size=3) + 1j * RNG.normal(size=3)
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    rule = getattr(torch.optim, name)([theirs], **settings)
    optimizer = getattr(ad.optim, name)(**settings)

    class Point(ad.nn.Module):
        at_: ad.Tensor[Any]

    made = Point(ad.asarray(start))
    state = optimizer.init(made)
    for t in range(10):
        g = made.at_.numpy() * (1 + 0.3j) - t
        theirs.grad = torch.from_numpy(g.copy())
        rule.step()
        made, state = optimizer.step(made, {"at_": ad.asarray(g)}, state)
        np.testing.assert_allclose(made.at_.numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_lion_is_the_papers() -> None:
    optimizer = ad.optim.Lion(lr=0.1, betas=(0.9, 0.99), weight_decay=0.3)
    x, m = np.array([0.5, -2.0]), np.zeros(2)

    class Point(ad.nn.Module):
        at_: ad.Tensor[Any]

    made = Point(ad.tensor(x, dtype=ad.float64))
    state = optimizer.init(made)
    for t in range(10):
        g = np.array([np.cos(3 * t), x[1] - t])
        x, m = x - 0.1 * (np.sign(0.9 * m + 0.1 * g) + 0.3 * x), 0.99 * m + 0.01 * g
        made, state = optimizer.step(made, {"at_": ad.asarray(g)}, state)
    np.testing.assert_allclose(made.at_.numpy(), x, rtol=1e-12)


ALL = [getattr(ad.optim, name) for name in dict.fromkeys([name for name, _ in CASES] + ["Lion"])]


@pytest.mark.parametrize("kind", ALL)
def test_gradients_of_all_kinds_give_the_same(kind: Any) -> None:
    optimizer = kind(lr=0.05)
    wanted = trained(optimizer, 3)
    leaves = model().require_grad()
    state = optimizer.init(leaves)
    for _ in range(3):
        leaves, state = optimizer.step(leaves, loss(leaves).backward(), state)
        assert all(x.is_require_grad() for x in leaves.named_parameters().values())
        state = pickle.loads(pickle.dumps(state))
    by_path = model()
    again = optimizer.init(by_path)
    for _ in range(3):
        by_path, again = optimizer.step(by_path, ad.grad(loss)(by_path).named_parameters(), again)
    for made in (leaves, by_path):
        for path, x in made.named_parameters().items():
            np.testing.assert_allclose(x.numpy(), wanted[path], rtol=1e-12)


@pytest.mark.parametrize("kind", ALL)
def test_ensembles_are_trained_at_once(kind: Any) -> None:
    optimizer, models = kind(lr=0.05), [model().map(lambda x, k=k: x * (1 + k)) for k in range(3)]

    def run(made: Any) -> Any:
        state = optimizer.init(made)
        for _ in range(3):
            made, state = optimizer.step(made, ad.grad(loss)(made), state)
        return made

    together = ad.vmap(run)(ad.tree.map(lambda *xs: ad.stack(xs), *models))
    for k, one in enumerate(models):
        for path, x in run(one).named_parameters().items():
            np.testing.assert_allclose(together.at(path).get()[k].numpy(), x.numpy(), rtol=1e-10)


def test_slots_hold_no_graph() -> None:
    """Gradients of leaves may be tracked, as those inside of `vmap` and recorded ones are; a step ends that."""
    start = ad.tree.map(lambda *xs: ad.stack(xs), model(), model()).require_grad()
    optimizer = ad.optim.Adam(lr=0.05)
    by_vmap = ad.vmap(ad.grad(loss))(start)
    recorded = ad.vmap(loss)(start).sum().backward(create_graph=True)
    assert by_vmap.at(next(iter(start.named_parameters()))).get().is_tracked()
    for grads in (by_vmap, recorded):
        made, state = optimizer.step(start, grads, optimizer.init(start))
        assert all(x.is_require_grad() for x in made.named_parameters().values())
        assert not any(x.is_tracked() for slots in state.slots.values() for x in slots.values())


def test_rates() -> None:
    seen: list[int] = []

    def schedule(step: int) -> float:
        seen.append(step)
        return 0.1 / (1 + step)

    scheduled = trained(ad.optim.SGD(lr=schedule), 3)
    assert seen == [0, 1, 2]
    made = model()
    state = ad.optim.SGD().init(made)
    for step in range(3):
        made, state = ad.optim.SGD().step(made, ad.grad(loss)(made), state, lr=0.1 / (1 + step))
    for path, x in made.named_parameters().items():
        np.testing.assert_allclose(x.numpy(), scheduled[path])


def test_a_step_is_differentiable_in_the_rate() -> None:
    made = model()

    def after(rate: Any) -> Any:
        other = ad.optim.SGD(momentum=0.9)
        state, now = other.init(made), made
        for _ in range(2):
            now, state = other.step(now, ad.grad(loss)(now), state, lr=rate)
        return loss(now)

    slope = ad.grad(after)(0.1)
    np.testing.assert_allclose(slope, (after(0.1 + 1e-6) - after(0.1 - 1e-6)).item() / 2e-6, rtol=1e-6)


def test_a_step_is_differentiable_in_the_model() -> None:
    """C. Finn et al. (2017): the loss after a step, by the parameters before it."""
    model = ad.nn.Linear(2, 1, dtype=ad.float64)
    x = ad.random.normal((5, 2), dtype=ad.float64)
    optimizer = ad.optim.SGD(lr=0.01)

    def loss(model: Any) -> Any:
        return (ad.sin(model(x)) ** 2).sum()

    def by_optimizer(model: Any) -> Any:
        return loss(optimizer.step(model, ad.grad(loss)(model), optimizer.init(model))[0])

    values = [v.numpy() for v in model.named_parameters().values()]

    def by_hand(weight: Any, bias: Any) -> Any:
        run = lambda w, b: (ad.sin(x @ w.mT + b) ** 2).sum()
        slopes = ad.grad(run, (0, 1))(weight, bias)
        return run(weight - 0.01 * slopes[0], bias - 0.01 * slopes[1])

    wanted = ad.grad(by_hand, (0, 1))(*values)
    for start in (model, model.require_grad()):
        for mine, theirs in zip(ad.grad(by_optimizer)(start).named_parameters().values(), wanted, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-10)


def test_frozen_and_unreached_parameters_stay() -> None:
    made = model().freeze("layers.0")
    optimizer = ad.optim.Adam(lr=0.1)
    state = optimizer.init(made)
    assert list(state.slots) == ["layers.2.weight", "layers.2.bias"]
    after, _ = optimizer.step(made, ad.grad(loss)(made), state)
    assert after.layers[0].weight is made.layers[0].weight
    assert after.layers[2].weight.tolist() != made.layers[2].weight.tolist()
    after, _ = optimizer.step(made, {"layers.2.bias": ad.ones(2, dtype=ad.float64)}, state)
    assert after.layers[2].weight is made.layers[2].weight


def test_wrong_input() -> None:
    made, optimizer = model(), ad.optim.Adam()
    state, grads = optimizer.init(made), ad.grad(loss)(made)
    with pytest.raises(errors.ArgumentTypeError, match=r"step: grads are what backward\(\) gave, .* received 3"):
        optimizer.step(made, 3, state)
    with pytest.raises(errors.ArgumentError, match="step: there is no gradient of a parameter of this model"):
        optimizer.step(made, loss(model().require_grad()).backward(), state)
    with pytest.raises(errors.ArgumentError, match=r"step: the state knows nothing of layers\.0\.weight; init"):
        optimizer.step(made, grads, optimizer.init(ad.nn.Linear(2, 2)))
    with pytest.raises(errors.ShapeError, match=r"step: layers\.0\.bias has shape \(4,\), its gradient \(3,\)"):
        optimizer.step(made, {"layers.0.bias": ad.ones(3)}, state)


# --- schedules ---------------------------------------------------------------------------------------


@pytest.mark.peers
def test_schedules_are_pytorchs() -> None:
    torch = peer("torch")
    S = torch.optim.lr_scheduler
    pairs = {
        "linear": (ad.optim.linear(0.1, 0.02, 7), lambda o: S.LinearLR(o, 1.0, 0.2, 7)),
        "polynomial": (ad.optim.polynomial(0.1, 0.0, 9, 2.0), lambda o: S.PolynomialLR(o, 9, 2.0)),
        "exponential": (ad.optim.exponential(0.1, 0.9), lambda o: S.ExponentialLR(o, 0.9)),
        "stairs": (ad.optim.stairs(0.1, 4, 0.5), lambda o: S.StepLR(o, 4, 0.5)),
        "steps": (ad.optim.stairs(0.1, [3, 4, 11], 0.5), lambda o: S.MultiStepLR(o, [3, 4, 11], 0.5)),
        "held": (
            ad.optim.joined([ad.optim.constant(0.05), ad.optim.constant(0.1)], [5]),
            lambda o: S.ConstantLR(o, 0.5, 5),
        ),
        "cosine": (ad.optim.cosine(0.1, 20, 0.01), lambda o: S.CosineAnnealingLR(o, 20, 0.01)),
        "cyclic": (
            lambda step: 0.1 + (0.4 - 0.1) * (1 - abs(step / 6 % 2 - 1)),
            lambda o: S.CyclicLR(o, 0.1, 0.4, 6, cycle_momentum=False),
        ),
        "restarts": (
            ad.optim.cosine(0.1, 6, 0.01, restarts=True),
            lambda o: S.CosineAnnealingWarmRestarts(o, 6, eta_min=0.01),
        ),
        "one_cycle": (ad.optim.one_cycle(0.1, 20), lambda o: S.OneCycleLR(o, 0.1, 20, cycle_momentum=False)),
    }
    for name, (ours, theirs) in pairs.items():
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        scheduler = theirs(optimizer)
        for step in range(19):
            assert ours(step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9), (name, step)
            assert ours(ad.tensor(step)).item() == pytest.approx(ours(step), rel=1e-4, abs=1e-8)  # as when compiled
            optimizer.step()
            scheduler.step()


def test_schedules_of_their_own() -> None:
    assert ad.optim.constant(0.3)(17) == 0.3
    cosine = ad.optim.cosine(1.0, 4, 0.2)
    np.testing.assert_allclose([cosine(t) for t in (0, 2, 4, 9)], [1.0, 0.6, 0.2, 0.2])
    noam = ad.optim.noam(512, 4000)
    np.testing.assert_allclose([noam(t) for t in (0, 3999, 9999)], 512**-0.5 * np.array([4000**-1.5, 4000**-0.5, 1e-2]))
    warm = ad.optim.warmup(ad.optim.exponential(0.8, 0.5), 4)
    np.testing.assert_allclose([warm(t) for t in range(7)], [0, 0.2, 0.4, 0.6, 0.8, 0.4, 0.2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ad.optim.linear(0.1, "a", 3), "polynomial: a rate or power is a number, received 'a'"),
        (lambda: ad.optim.stairs(0.1, [4, 3]), r"stairs: the steps are in increasing order, received \[4, 3\]"),
        (lambda: ad.optim.stairs(0.1, [0, 3]), "stairs: the number of steps is a positive integer, received 0"),
        (lambda: ad.optim.cosine(0.1, 0), "cosine: the number of steps is a positive integer, received 0"),
        (lambda: ad.optim.one_cycle(0.1, 100, rising=1.5), "one_cycle: rising is a part of the steps"),
        (lambda: ad.optim.one_cycle(0.1, 3), "one_cycle: .* 0.3 of 3 steps are not more"),
        (
            lambda: ad.optim.joined([ad.optim.constant(1.0)] * 3, [4, 4]),
            "joined: between 3 schedules there is one boundary less",
        ),
        (lambda: ad.optim.warmup(0.1, 3), "warmup: a schedule is a function, received 0.1"),
    ],
)
def test_wrong_schedules(make: Any, message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        make()


@pytest.mark.peers
def test_what_pytorch_has_is_here_or_its_name_says_where() -> None:
    """Optimizers, schedules, first values, modules and functions: all that PyTorch has a public name for."""
    torch = peer("torch")
    classes = lambda module: {n for n, x in vars(module).items() if isinstance(x, type) and n[0] != "_"}
    kinds = lambda module, base: {n for n in classes(module) if issubclass(getattr(module, n), base)}
    own = lambda f, module: getattr(f, "__module__", "") == module.__name__
    functions = lambda module: {n for n, f in vars(module).items() if own(f, module) and n[0] != "_"}
    F = torch.nn.functional
    kernels = set("ScalingType SwizzleType assert_int_or_pair grouped_mm scaled_grouped_mm scaled_mm".split())
    for ours, names in (
        (ad.optim, kinds(torch.optim, torch.optim.Optimizer)),
        (ad.optim, kinds(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler) - {"LRScheduler"}),
        (ad.nn.init, {name for name in functions(torch.nn.init) if name.endswith("_")}),
        (ad.nn, kinds(torch.nn, torch.nn.Module)),
        (ad.nn, {name for name in functions(F) - kernels if not name.endswith(("_", "_indices"))}),
    ):
        assert len(names) > 10
        with Each() as each:
            for name in sorted(names):
                with each(name):
                    if not hasattr(ours, name):
                        with pytest.raises(AttributeError, match=f"'{name}': use (ad|a|any|lambda|model)\\b"):
                            getattr(ours, name)


# --- containers of gradients ---------------------------------------------------------------------


def test_gradients_by_path() -> None:
    made = model().require_grad()
    grads = loss(made).backward()
    found = ad.optim.GradientsParams.from_grads(grads, made)
    assert list(found) == list(made.named_parameters())
    assert all(
        found[path] is not None and (found[path] == grads[x]).all() for path, x in made.named_parameters().items()
    )
    twice = sum([found, found]) * 0.5 + {"other": ad.ones(2)}
    assert (twice["layers.0.weight"] == found["layers.0.weight"]).all()
    assert twice["other"].tolist() == [1, 1]
    again = pickle.loads(pickle.dumps(found)).to_device("numpy")
    assert (again["layers.2.bias"] == found["layers.2.bias"]).all()
    with pytest.raises(errors.NoGradientError, match="no gradient at 'layers.1'; there are 'layers.0.weight"):
        found["layers.1"]


@pytest.mark.peers
def test_clipping_is_pytorchs() -> None:
    torch = peer("torch")
    made = model()
    found = ad.optim.GradientsParams.from_grads(ad.grad(loss)(made), made) * 10.0
    theirs = [torch.zeros(g.shape, dtype=torch.float64, requires_grad=True) for g in found.values()]

    def given() -> Any:
        for p, g in zip(theirs, found.values(), strict=True):
            p.grad = torch.from_numpy(g.numpy().copy())
        return theirs

    norm = torch.nn.utils.clip_grad_norm_(given(), 1.0).item()
    assert found.global_norm().item() == pytest.approx(norm)
    for g, p in zip(found.clip_by_global_norm(1.0).values(), theirs, strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-5)  # they divide by norm + 1e-6
    torch.nn.utils.clip_grad_value_(given(), 0.3)
    for g, p in zip(found.clip_by_value(0.3).values(), theirs, strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy())
    assert (found.clip_by_global_norm(1e6)["layers.0.weight"] == found["layers.0.weight"]).all()
    for g, before in zip(found.clip_by_norm(0.5).values(), found.values(), strict=True):
        assert np.linalg.norm(g.numpy()) == pytest.approx(min(0.5, np.linalg.norm(before.numpy())))
    assert (found * 0.0).clip_by_global_norm(1.0).global_norm().item() == 0
    with pytest.raises(errors.ArgumentError, match="clip_by_value: the limit is a positive number, received 0"):
        found.clip_by_value(0)


def test_accumulated_batches_are_one() -> None:
    made = model()
    whole = ad.grad(loss)(made).named_parameters()
    accumulator = ad.optim.GradientsAccumulator()
    for part in range(4):
        rows = slice(4 * part, 4 * part + 4)
        small = lambda m, rows=rows: ((m(ad.asarray(X[rows])) - ad.asarray(Y[rows])) ** 2).mean()
        accumulator.accumulate(ad.grad(small)(made), made)
    assert accumulator.count == 4
    for path, g in accumulator.mean().items():
        np.testing.assert_allclose(g.numpy(), whole[path].numpy(), rtol=1e-12)
    with pytest.raises(errors.ArgumentError, match="nothing was accumulated"):
        accumulator.mean()
