"""Averages of models, scales of losses, and rates that fall on plateaus: PyTorch's values."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import peer
from test_optim_shared import X, Y, loss, network, torch_twin

import adjoint as ad
from adjoint import errors

# --- averages ----------------------------------------------------------------------------------------


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["EMA", "SWA"])
def test_averages_are_pytorchs(kind: str) -> None:
    torch = peer("torch")
    utils = torch.optim.swa_utils
    net = torch_twin(torch)
    theirs = utils.AveragedModel(net, multi_avg_fn=utils.get_ema_multi_avg_fn(0.7) if kind == "EMA" else None)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    average = ad.optim.EMA(decay=0.7) if kind == "EMA" else ad.optim.SWA()
    optimizer, model = ad.optim.SGD(lr=0.1), network().require_grad()
    state, averaged = optimizer.init(model), average.init(model)
    for path, x in average.model(averaged, model).named_parameters().items():
        assert (x == model.at(path).get()).all()
    for _ in range(6):
        sgd.zero_grad()
        ((net(torch.from_numpy(X)) - torch.from_numpy(Y)) ** 2).mean().backward()
        sgd.step()
        theirs.update_parameters(net)
        model, state = optimizer.step(model, loss(model).backward(), state)
        averaged = pickle.loads(pickle.dumps(average.update(averaged, model)))
    found = average.model(averaged, model)
    for p, x in zip(theirs.module.parameters(), found.named_parameters().values(), strict=True):
        assert x.is_require_grad()
        np.testing.assert_allclose(x.numpy(), p.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("by", [ad.optim.EMA(decay=0.7), ad.optim.SWA()], ids=lambda by: type(by).__name__)
def test_an_optimizer_keeps_the_average_of_the_models_it_makes(by: Any) -> None:
    """Beside the same steps with the average in a loop of one's own: bit by bit, also where memory is written over."""
    for inner in (ad.optim.SGD(lr=0.1, momentum=0.9), ad.optim.Adam(lr=0.1).group("*.bias", lr=0.5)):
        for start, every in ((0, 1), (2, 1), (1, 3)):
            model = network()
            state, average, plain = inner.init(model), by.init(model), model
            inners = [dataclasses.replace(inner, donate=donate) for donate in (False, True)]
            kept = [ad.optim.Averaged(optimizer=each, by=by, start=start, every=every) for each in inners]
            states, models = [optimizer.init(model) for optimizer in kept], [model, copy.deepcopy(model)]
            count = ad.tensor(0)
            compiled = states[0]._replace(step=count), model
            for step in range(1, 9):
                plain, state = inner.step(plain, ad.grad(loss)(plain), state)
                taken = step - start
                if taken < every:
                    average = by.init(plain)
                elif taken % every == 0:
                    average = by.update(average, plain)
                wanted = by.model(average, plain).record()
                for k, optimizer in enumerate(kept):
                    models[k], states[k] = optimizer.step(models[k], ad.grad(loss)(models[k]), states[k])
                    states[k] = pickle.loads(pickle.dumps(states[k]))
                    found = optimizer.averaged(models[k], states[k]).record()
                    for path, x in wanted.items():
                        np.testing.assert_array_equal(found[path], x)
                        np.testing.assert_array_equal(models[k].record()[path], plain.record()[path])
                now, of = compiled[1], compiled[0]
                compiled = kept[0].step(now, ad.grad(loss)(now), of)[
                    ::-1
                ]  # counted by a tensor, as where it is compiled
                for path, x in kept[0].averaged(*compiled[::-1]).record().items():
                    np.testing.assert_allclose(x, wanted[path], rtol=1e-5, atol=1e-7)


def test_averages_with_a_decay_that_changes() -> None:
    average = ad.optim.EMA(decay=lambda count: min(0.9, (1 + count) / (10 + count)))
    model = ad.nn.Linear(1, 1, bias=False, dtype=ad.float64)
    state, wanted = average.init(model), 0.0
    for k, value in enumerate([3.0, 5.0, -1.0, 2.0]):
        state = average.update(state, model.map(lambda w, value=value: w * 0 + value))
        decay = min(0.9, (1 + k) / (10 + k)) if k else 0.0
        wanted = decay * wanted + (1 - decay) * value
    assert average.model(state, model).weight.item() == pytest.approx(wanted, rel=1e-12)
    traced = ad.optim.AverageState(ad.tensor(0), state.values)  # as in a program that counts itself
    assert average.update(traced, model).values["weight"].item() == model.weight.item()


def test_averages_of_ensembles_and_shared_tensors() -> None:
    average = ad.optim.SWA()
    model = network()
    many = ad.tree.map(lambda x: ad.stack([x, x + 1]), model)

    def run(model: Any) -> Any:
        state = average.init(model)
        for k in range(3):
            state = average.update(state, model.map(lambda x, k=k: x + k))
        return average.model(state, model)

    together, alone = ad.vmap(run)(many), run(model)
    for path, x in alone.named_parameters().items():
        np.testing.assert_allclose(together.at(path).get()[0].numpy(), x.numpy())
        np.testing.assert_allclose(together.at(path).get()[1].numpy(), x.numpy() + 1)
    pair = ad.nn.Sequential(ad.nn.Linear(2, 2), ad.nn.Linear(2, 2))
    pair = pair.at("layers.1.weight").set(pair.layers[0].weight)
    made = run(pair)
    assert made.layers[0].weight is made.layers[1].weight
    with pytest.raises(errors.ArgumentError, match=r"the state of an average knows nothing of layers\.0\.weight; init"):
        average.update(average.init(ad.nn.Linear(2, 2)), pair)
    with pytest.raises(errors.ArgumentError, match="EMA: decay is a number from 0 to 1, received 1.5"):
        ad.optim.EMA(decay=1.5)


@pytest.mark.peers
def test_batch_statistics_are_pytorchs() -> None:
    torch = peer("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh()).double()
    norm = ad.nn.BatchNorm(4, dtype=ad.float64)
    model = ad.nn.Sequential(ad.nn.Linear(3, 4, dtype=ad.float64), norm, ad.tanh).train(False)
    with torch.no_grad():
        net[0].weight.copy_(torch.from_numpy(model.layers[0].weight.numpy().copy()))
        net[0].bias.copy_(torch.from_numpy(model.layers[0].bias.numpy().copy()))
    batches = [X[:5], X[5:9], X[9:]]
    torch.optim.swa_utils.update_bn([torch.from_numpy(x) for x in batches], net)
    found = ad.optim.batch_statistics(model, (ad.asarray(x) for x in batches))
    np.testing.assert_allclose(found.layers[1].running_mean.numpy(), net[1].running_mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(found.layers[1].running_var.numpy(), net[1].running_var.numpy(), rtol=1e-12)
    assert not found.layers[1].training
    assert found.layers[1].momentum == norm.momentum
    with pytest.raises(errors.ArgumentError, match="batch_statistics: there are no batches"):
        ad.optim.batch_statistics(model, [])


# --- scales of losses --------------------------------------------------------------------------------


@pytest.mark.peers
def test_scales_are_pytorchs() -> None:
    torch = peer("torch")
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    sgd = torch.optim.SGD([p], lr=0.1, momentum=0.9)
    settings = {"init_scale": 8.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 2}
    theirs = torch.amp.GradScaler("cpu", **settings)
    theirs.scale(torch.zeros(1))  # it is made when it is first used
    scaler, optimizer = ad.optim.GradScaler(**settings), ad.optim.SGD(lr=0.1, momentum=0.9)
    model = ad.nn.PReLU().at("weight").set(ad.tensor([1.0, 2.0]))
    state, scaling = optimizer.init(model), scaler.init()
    for factor in (1.0, 2.0, np.inf, 1.0, np.nan, 3.0, 1.0, 1.0, 1.0):
        p.grad = torch.tensor([factor, 1.0]) * theirs.get_scale()
        theirs.step(sgd)
        theirs.update()
        grads = {"weight": ad.tensor([factor, 1.0]) * scaling.scale}
        model, state, scaling = scaler.step(optimizer, model, grads, state, pickle.loads(pickle.dumps(scaling)))
        np.testing.assert_allclose(model.weight.numpy(), p.detach().numpy(), rtol=1e-6)
        assert scaling.scale == theirs.get_scale()
    assert state.step == 7


def test_half_precision_needs_a_scale() -> None:
    """Gradients below 6e-8 are zero in float16; the scaled ones are not."""
    x = ad.asarray(X[:, :2].astype("float16"))
    model, scaler, optimizer = ad.nn.Linear(2, 1), ad.optim.GradScaler(init_scale=2.0**20), ad.optim.SGD(lr=1e6)

    def small(model: Any) -> Any:
        return (model.map(lambda w: w.astype(ad.float16))(x).astype(ad.float32) * 1e-9).sum()

    state, scaling = optimizer.init(model), scaler.init()
    assert not ad.grad(small)(model).weight.any()
    grads = ad.grad(lambda model: scaler.scale(small(model), scaling))(model)
    wanted = 1e-9 * X[:, :2].sum(0)
    np.testing.assert_allclose(scaler.unscale(grads, model, scaling)["weight"][0].numpy(), wanted, rtol=1e-2)
    after, state, scaling = scaler.step(optimizer, model, grads, state, scaling)
    np.testing.assert_allclose((model.weight - after.weight)[0].numpy(), 1e6 * wanted, rtol=2e-2)
    assert scaler.scale(ad.tensor(3.0, dtype=ad.float16), scaling).item() == 3 * 2.0**20


@pytest.mark.peers
def test_a_compiled_step_chooses_itself() -> None:
    jax = peer("jax")
    scaler, optimizer = ad.optim.GradScaler(growth_interval=2), ad.optim.SGD(lr=0.1)

    def step(weight: Any, g: Any, scale: Any, count: Any) -> Any:
        state, scaling = ad.optim.State(count, {"weight": {}}), ad.optim.ScaleState(scale, count)
        made = scaler.step(optimizer, ad.nn.PReLU().at("weight").set(weight), {"weight": g}, state, scaling)
        return made[0].weight, made[1].step, *made[2]

    run = jax.jit(step)
    two, zero, one = (ad.tensor(v, device="jax") for v in (2.0, 0, 1))
    for g, wanted in ((1.0, (0.95, 1, 2.0, 1)), (np.inf, (1.0, 0, 1.0, 0))):
        found = run(ad.ones(1, device="jax"), ad.full(1, g, device="jax"), two, zero)
        np.testing.assert_allclose([x.item() for x in found], wanted, rtol=1e-6)
    assert run(ad.ones(1, device="jax"), ad.ones(1, device="jax"), two, one)[2].item() == 4.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ad.optim.GradScaler(init_scale=0), "GradScaler: init_scale is a positive number, received 0"),
        (lambda: ad.optim.GradScaler(growth_factor=0.5), "GradScaler: growth_factor is more than 1 and backoff_factor"),
        (lambda: ad.optim.GradScaler(growth_interval=0), "GradScaler: growth_interval is a positive integer"),
        (lambda: ad.optim.Plateau(mode="least"), "Plateau: mode is 'min' or 'max', received 'least'"),
        (lambda: ad.optim.Plateau(factor=1.0), "Plateau: factor is less than 1, received 1.0"),
        (lambda: ad.optim.Plateau(patience=-1), "Plateau: patience"),
        (lambda: ad.optim.Plateau().init("fast"), "Plateau.init: the rate"),
    ],
)
def test_wrong_settings(make: Any, message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        make()


# --- plateaus ----------------------------------------------------------------------------------------


@pytest.mark.peers
@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateaus_are_pytorchs(mode: str, threshold_mode: str) -> None:
    torch = peer("torch")
    rng = np.random.default_rng(7)
    for patience, cooldown in ((0, 0), (1, 2), (3, 1)):
        settings: dict[str, Any] = {"mode": mode, "threshold_mode": threshold_mode, "threshold": 0.05, "factor": 0.5}
        settings |= {"patience": patience, "cooldown": cooldown}
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=0.01, **settings)
        plateau = ad.optim.Plateau(min_lr=0.01, **settings)
        state = plateau.init(0.1)
        for value in [*(1 + rng.normal(size=30) * 0.1), np.nan, *(1 + rng.normal(size=30) * 0.1)]:
            theirs.step(value)
            state = pickle.loads(pickle.dumps(plateau.update(state, ad.tensor(value, dtype=ad.float64))))
            assert state.rate == optimizer.param_groups[0]["lr"]
        assert state.rate == 0.01


def test_plateaus_of_negative_values() -> None:
    """A part of the best value's size counts, also below zero."""
    plateau = ad.optim.Plateau(patience=0, threshold=0.1)
    state = plateau.update(plateau.init(1.0), -10.0)
    assert plateau.update(state, -10.5).rate == pytest.approx(0.1)
    assert plateau.update(state, -11.5).rate == 1.0
