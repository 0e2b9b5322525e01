"""Settings of optimizers, averages, plateaus and scalers: what they may be, and that steps have derivatives by them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from each import Each
from test_optim import X, Y, loss, model

import adjoint as ad
from adjoint import errors
from adjoint.optim.settings import Settings

NAN = float("nan")
KINDS = [kind for kind in vars(ad.optim).values() if isinstance(kind, type) and issubclass(kind, Settings)]
NEEDED = {kind: {"optimizer": ad.optim.SGD()} for kind in (ad.optim.SAM, ad.optim.Averaged)}


def test_there_are_all() -> None:
    assert len(KINDS) >= 30
    for kind in KINDS:
        for field in dataclasses.fields(kind):
            assert "read" in field.metadata or field.name in ("groups", "optimizer"), (kind, field.name)


def test_no_setting_takes_what_it_cannot_be() -> None:
    with Each() as each:
        for kind in KINDS:
            for field in dataclasses.fields(kind):
                if "read" not in field.metadata:
                    continue
                default = field.default
                wrong: list[Any] = ["x", [1, 2, 3, 4], object()]
                if isinstance(default, tuple):
                    wrong += [(*default, 0.5), (NAN,) * len(default), ("x",) * len(default), 0.5]
                elif isinstance(default, float) or field.name == "lr":
                    wrong += [NAN, True, 1j] + ([1.0] if field.name == "beta2_decay" else [-1.0])
                elif isinstance(default, int) and not isinstance(default, bool):
                    wrong += [-1, 2.5, NAN]
                for value in wrong:
                    with each(f"{kind.__name__}({field.name}={value!r})"), pytest.raises(errors.ArgumentError):
                        kind(**NEEDED.get(kind, {}), **{field.name: value})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ad.optim.SGD(lr=-1), "SGD: lr is a number of zero or more, received -1"),
        (lambda: ad.optim.Adam(betas=0.9), "Adam: betas are 2 numbers, received 0.9"),
        (lambda: ad.optim.Adam(betas=(1.5, 2)), "Adam: betas is less than 1, received 1.5"),
        (lambda: ad.optim.SGD(nesterov=True), "SGD: nesterov looks ahead by momentum, which is 0"),
        (lambda: ad.optim.SGD(nesterov=True, momentum=0.9, dampening=0.1), "SGD: nesterov goes without dampening"),
        (lambda: ad.optim.SGD(groups=[3]), "SGD: groups are made by the method group"),
        (lambda: ad.optim.SGD().group("bias", lr=NAN), "SGD: lr is a number of zero or more, received nan"),
        (lambda: ad.optim.SGD(0.1), r"SGD: settings are given by name, as SGD\(lr=0\.1\); its settings are lr, donate"),
        (lambda: ad.optim.Adam(model()), r"as Adam\(lr=\.\.\.\).*, and a model is for init and step"),
        (lambda: ad.optim.SGD(rate=0.1), "SGD: no setting is called rate: use lr; its settings are lr, donate"),
        (lambda: ad.optim.Adam(beta1=0.1), "Adam: no setting is called beta1: use betas, a pair; its"),
        (lambda: ad.optim.SWA(speed=1), "SWA: no setting is called speed; it has none"),
        (lambda: ad.optim.SAM(), "SAM: give optimizer=$"),
        (lambda: ad.optim.SAM(ad.optim.SGD()), r"SAM: settings are given by name, as SAM\(optimizer="),
        (lambda: ad.optim.EMA(decay=lambda: 0.9).update(*averaged()), r"EMA: decay: .* called as decay\(count\)"),
        (lambda: ad.optim.cosine(0.1, 5, restarts="no"), "cosine: restarts is True or False, received 'no'"),
        (lambda: ad.optim.SGD().init({"w": np.ones(2)}), r"init: parameters are tensors.* as ad\.tensor\(w\)"),
        (lambda: ad.optim.SGD().init([]), r"init: parameters are tensors .* there is none in \[\]"),
        (lambda: ad.optim.constant(NAN), "constant: the rate is a finite number, received nan"),
        (lambda: ad.optim.linear(0.1, float("inf"), 5), "polynomial: a rate or power is a finite number, received inf"),
        (lambda: ad.optim.SGD().init(3), "init: the model is an ad.nn.Module, or a .* tensors, received 3"),
        (
            lambda: ad.optim.SGD().step(3, {}, ad.optim.State(0, {})),
            "step: the model is an ad.nn.Module, or a .* received 3",
        ),
        (lambda: ad.optim.EMA().init(3), "the model is an ad.nn.Module, or a .* received 3"),
        (lambda: ad.optim.EMA().update(None, model()), r"state of an average is what init\(model\) or the last update"),
        (
            lambda: ad.optim.EMA().update(ad.optim.EMA().init(model()), 3),
            "the model is an ad.nn.Module, or a .* received 3",
        ),
        (lambda: ad.optim.EMA().model(3, model()), "the state of an average is what init"),
        (lambda: ad.optim.EMA(decay=1.1), "EMA: decay is a number from 0 to 1, received 1.1"),
        (lambda: ad.optim.batch_statistics(3, []), "batch_statistics: the model is an ad.nn.Module"),
        (lambda: ad.optim.ASGD().averaged(model(), 3), "averaged: the state comes last and is what init"),
        (lambda: ad.optim.GradientsParams(3), "GradientsParams: gradients are a mapping from paths, received 3"),
        (lambda: ad.optim.GradientsParams({"a": 3}), "GradientsParams: a path has a tensor, received 'a': 3"),
        (lambda: ad.optim.GradientsParams.from_grads({}, 3), "gradients: the model is an ad.nn.Module"),
        (lambda: ad.optim.Plateau().update(ad.optim.Plateau().init(0.1), "x"), "Plateau.update: the value is a number"),
        (lambda: ad.optim.Plateau().update(3, 0.1), r"Plateau.update: the state is what init\(rate\)"),
        (lambda: ad.optim.Plateau().init(-1), "Plateau.init: the rate is a number of zero or more, received -1"),
        (lambda: ad.optim.GradScaler().scale("x", ad.optim.GradScaler().init()), "expected a tensor, received 'x'"),
        (lambda: ad.optim.GradScaler().scale(ad.ones(()), 3), r"GradScaler: the state is what init\(\)"),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        make()


def averaged() -> Any:
    return ad.optim.EMA().init(model()), model()


@pytest.mark.parametrize(
    ("rate", "match"),
    [
        (lambda: 0.1, r"called as lr\(step\)"),
        (lambda step, more: 0.1, r"called as lr\(step\)"),
        (lambda step: ad.ones(2), r"one number, received a tensor of shape \(2,\)"),
        (ad.ones(2), r"one number, received a tensor of shape \(2,\)"),
    ],
)
def test_schedules_are_called_with_a_step_and_give_a_number(rate: Any, match: str) -> None:
    made, optimizer = model(), ad.optim.SGD()
    with pytest.raises(errors.AdjointError, match=match):
        optimizer.step(made, ad.grad(loss)(made), optimizer.init(made), lr=rate)


def test_errors_of_a_schedule_itself_are_its_own() -> None:
    def rate(step: int) -> Any:
        return len(step)  # type: ignore[arg-type]

    made, optimizer = model(), ad.optim.SGD(lr=rate)
    with pytest.raises(TypeError, match="has no len") as caught:
        optimizer.step(made, ad.grad(loss)(made), optimizer.init(made))
    assert not isinstance(caught.value, errors.AdjointError)


# --- containers of tensors -----------------------------------------------------------------------

NAMED = collections.namedtuple("NAMED", "matrix rest")
START, SLOPES = np.array([[0.3, -0.7], [1.1, 0.2]]), np.array([[1.0, -2.0], [0.5, 3.0]])
CONTAINERS: dict[str, Any] = {
    "dict": lambda x, y: {"w": x, "b": y},
    "list": lambda x, y: [x, y],
    "tuple": lambda x, y: (x, y),
    "nested": lambda x, y: {"layers": [{"w": x}], "b": (y, None)},
    "named": lambda x, y: NAMED(x, [y]),
    "places": lambda x, y: {1: x, 0: y},
    "with a module": lambda x, y: [Pair(x, y)],
}


class Pair(ad.nn.Module):
    w: ad.Tensor[Any]
    b: ad.Tensor[Any]


@pytest.mark.parametrize("shape", CONTAINERS)
def test_every_optimizer_steps_containers_as_modules(shape: str) -> None:
    """Gradients come as a container of tensors, of NumPy's arrays, or from `backward`."""
    make, start, g = CONTAINERS[shape], (START, START[0]), (SLOPES, SLOPES[0])
    tensors = lambda xs: [ad.tensor(x) for x in xs]

    def after(optimizer: Any, tree: Any, slope: Any) -> list[Any]:
        state = optimizer.init(tree)
        for _ in range(2):
            given = slope if not isinstance(optimizer, ad.optim.ClosureOptimizer) else lambda tree: (total(tree), slope)
            tree, state = optimizer.step(tree, given, state)
        assert ad.tree.structure(tree) == ad.tree.structure(make(*tensors(start)))
        return [x.numpy() for x in ad.tree.leaves(tree)]

    def total(tree: Any) -> Any:
        return sum((x**2).sum() for x in ad.tree.leaves(tree))

    with Each() as each:
        for kind in KINDS:
            if not issubclass(kind, ad.optim.Optimizer) or kind.step is ad.optim.Optimizer.step is kind.update:
                continue
            if kind.update is ad.optim.Optimizer.update and kind not in (*NEEDED, ad.optim.LBFGS):
                continue
            with each(kind.__name__):
                optimizer = kind(**NEEDED.get(kind, {}))
                wanted = after_module(optimizer, start, g, total)
                order = [
                    int(k) for k in ad.tree.leaves(make(np.array(0), np.array(1)))
                ]  # dictionaries are in the order of their keys
                for arrays in (tensors(g), g):
                    found = after(optimizer, make(*tensors(start)), make(*arrays))
                    for k, x in zip(order, found, strict=True):
                        np.testing.assert_array_equal(x, wanted[k])


def after_module(optimizer: Any, start: Any, g: Any, total: Any) -> list[Any]:
    tree, slope = Pair(*[ad.tensor(x) for x in start]), Pair(*[ad.tensor(x) for x in g])
    state = optimizer.init(tree)
    for _ in range(2):
        given = slope if not isinstance(optimizer, ad.optim.ClosureOptimizer) else lambda tree: (total(tree), slope)
        tree, state = optimizer.step(tree, given, state)
    return [tree.w.numpy(), tree.b.numpy()]


def test_containers_of_leaves_step_by_what_backward_gave() -> None:
    w = {"a": ad.tensor([1.0, 2.0]).require_grad(), "b": [ad.tensor(3.0).require_grad()]}
    optimizer = ad.optim.SGD(lr=0.5)
    grads = ((w["a"] ** 2).sum() + w["b"][0] * 4).backward()
    w, state = optimizer.step(w, grads, optimizer.init(w))
    assert (w["a"].tolist(), w["b"][0].item()) == ([0.0, 0.0], 1.0)
    assert w["a"].is_require_grad()
    assert state.slots.keys() == {"a", "b.0"}
    with pytest.raises(errors.ShapeError, match=r"step: a has shape \(2,\), its gradient \(3,\)"):
        optimizer.step(w, {"a": np.ones(3)}, state)
    with pytest.raises(errors.ArgumentTypeError, match="step: the gradient of a is a tensor, received 'x'"):
        optimizer.step(w, {"a": "x"}, state)


def test_averages_and_scalers_of_containers() -> None:
    w = {"a": ad.tensor([1.0, 2.0])}
    ema = ad.optim.EMA(decay=0.5)
    state = ema.update(ema.update(ema.init(w), w), {"a": ad.tensor([3.0, 4.0])})
    assert ema.model(state, w)["a"].tolist() == [2.0, 3.0]
    optimizer, scaler = ad.optim.SGD(lr=1.0), ad.optim.GradScaler(init_scale=2.0)
    w, _, _ = scaler.step(optimizer, w, {"a": np.array([2.0, 4.0])}, optimizer.init(w), scaler.init())
    assert w["a"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("rate", "kind"), [("x", TypeError), (-0.1, ValueError), (lambda t: None, TypeError)])
def test_wrong_rates_of_a_step(rate: Any, kind: Any) -> None:
    made, optimizer = model(), ad.optim.SGD()
    grads = ad.grad(loss)(made)
    with pytest.raises(kind, match="step: the rate is a number of zero or more"):
        optimizer.step(made, grads, optimizer.init(made), lr=rate)
    with pytest.raises(errors.ShapeError, match="the state of an average has shape"):
        ad.optim.EMA().update(ad.optim.EMA().init(ad.nn.Linear(1, 2)), ad.nn.Linear(1, 3))
    with pytest.raises(errors.ArgumentTypeError, match=r"step: the gradient of layers\.0\.bias is a tensor"):
        optimizer.step(made, {"layers.0.bias": [0.0] * 4}, optimizer.init(made))


# --- in trees, and derivatives -------------------------------------------------------------------

RULES = [
    kind for kind in KINDS if issubclass(kind, ad.optim.Optimizer) and kind.update is not ad.optim.Optimizer.update
]
MORE: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.0, "dampening": 0.0},
    "RMSprop": {"centered": True},
    "SOAP": {"precondition_frequency": 2, "max_size": 3},  # of more the first gradient has no unique eigenvectors
    "ASGD": {"t0": 1.5, "lambd": 0.1},
    "Adafactor": {"eps": (1e-3, 1e-2), "d": 0.7},
    "Adagrad": {"initial_accumulator_value": 0.2},
    "Adan": {"eps_root": 0.1},
}


def after(optimizer: Any) -> Any:
    made = model()
    state = optimizer.init(made)
    for _ in range(3):
        made, state = optimizer.step(made, ad.grad(loss)(made), state)
    return ((made(ad.asarray(X)) - ad.asarray(Y)) ** 2).mean()


def places(optimizer: Any) -> list[tuple[str, int | None, float]]:
    """The settings that are real numbers, also those in tuples, with their values."""
    found: list[tuple[str, int | None, float]] = []
    for field in dataclasses.fields(optimizer):
        value = getattr(optimizer, field.name)
        if isinstance(value, tuple):
            found += [(field.name, k, x) for k, x in enumerate(value) if isinstance(x, float)]
        elif isinstance(value, float):
            found.append((field.name, None, value))
    return found


def changed(optimizer: Any, name: str, k: int | None, value: Any) -> Any:
    if k is not None:
        value = tuple([value if i == k else x for i, x in enumerate(getattr(optimizer, name))])
    return dataclasses.replace(optimizer, **{name: value})


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_a_step_is_differentiable_by_each_setting(kind: Any) -> None:
    """Also where the setting is 0, of which the rule has a shorter form."""
    optimizer = kind(**{"lr": 0.05, **MORE.get(kind.__name__, {})})
    with Each() as each:
        for name, k, value in places(optimizer):
            with each(f"{name} {k}"):
                at = lambda x, name=name, k=k: after(changed(optimizer, name, k, x))
                x, h = ad.tensor(value, dtype=ad.float64), 1e-6 * max(abs(value), 1e-2)
                slope = ad.grad(at)(x).item()
                wanted = (at(x + h).item() - at(x - h).item()) / (2 * h)
                np.testing.assert_allclose(slope, wanted, rtol=2e-4, atol=1e-7)
                np.testing.assert_allclose(at(x).item(), at(value).item(), rtol=1e-12)


@pytest.mark.parametrize("kind", [ad.optim.SGD, ad.optim.Adam, ad.optim.LAMB], ids=lambda kind: kind.__name__)
def test_optimizers_are_arguments_of_transforms(kind: Any) -> None:
    """Real numbers and tensors are leaves, everything else is structure."""
    plain = kind(lr=0.05, weight_decay=0.1).group("*.bias", weight_decay=0.0)
    assert {0.05, 0.1, 0.0} <= set(ad.tree.leaves(plain))
    assert all(isinstance(x, float) for x in ad.tree.leaves(plain))
    assert ad.tree.map(lambda x: None, plain).groups[0].optimizer.lr is None
    numbers = ad.grad(after)(plain)
    both = ad.grad(lambda r: after(kind(lr=r, weight_decay=0.1).group("*.bias", weight_decay=0.0)))(0.05)
    np.testing.assert_allclose(numbers.lr + numbers.groups[0].optimizer.lr, both, rtol=1e-10)
    rate, decay = ad.tensor(0.05, dtype=ad.float64), ad.tensor(0.1, dtype=ad.float64)
    tensors = kind(lr=rate, weight_decay=decay).group("*.bias", weight_decay=decay)
    slopes = ad.grad(after)(tensors)
    assert type(slopes) is kind
    wanted = ad.grad(lambda d: after(kind(lr=0.05, weight_decay=d)))(decay).item()
    found = slopes.weight_decay + slopes.groups[0].optimizer.weight_decay
    np.testing.assert_allclose(found.item(), wanted, rtol=1e-10)
    rates = ad.tensor([0.01, 0.05], dtype=ad.float64)
    axes = ad.tree.map(lambda x: 0 if isinstance(x, ad.Tensor) else None, kind(lr=rates))
    found = ad.vmap(after, in_axes=(axes,), randomness="shared")(kind(lr=rates))
    np.testing.assert_allclose(found.numpy(), [after(kind(lr=r)).item() for r in (0.01, 0.05)], rtol=1e-10)
    along = ad.tree.map(lambda x: float(isinstance(x, ad.Tensor)), kind(lr=rate))
    forward = ad.jvp(after, (kind(lr=rate),), (along,))[1]
    np.testing.assert_allclose(forward.item(), ad.grad(after)(kind(lr=rate)).lr.item(), rtol=1e-10)
    second = ad.grad(lambda o: ad.grad(after)(o).lr)(kind(lr=rate)).lr
    h = 1e-5
    wanted = (ad.grad(after)(kind(lr=rate + h)).lr - ad.grad(after)(kind(lr=rate - h)).lr).item() / (2 * h)
    np.testing.assert_allclose(second.item(), wanted, rtol=1e-4)


def test_settings_are_values() -> None:
    for kind in KINDS:
        made = kind(**NEEDED.get(kind, {}))
        assert pickle.loads(pickle.dumps(made)) == made
        assert copy.deepcopy(made) == made
        leaves, structure = ad.tree.flatten(made)
        assert ad.tree.unflatten(structure, leaves) == made
        assert structure == ad.tree.structure(kind(**NEEDED.get(kind, {})))
    schedule = ad.optim.linear(0.1, 0.0, 5)
    assert schedule not in ad.tree.leaves(ad.optim.Adam(lr=schedule, betas=(0.5, 0.6)))
    assert ad.optim.SGD(lr=1) == ad.optim.SGD(lr=np.float32(1.0))
    assert ad.optim.SAM(optimizer=ad.optim.SGD(lr=0.3)).lr == 0.3
