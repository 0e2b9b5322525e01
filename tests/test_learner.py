"""`ad.train.Learner`: the same numbers as a loop written out, and batches of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import peer
from training import Error, Note, X, Y, by_hand, close, learner, lossy, network, pairs, same

import adjoint as ad
from adjoint import errors

# --- numbers ---


@pytest.mark.parametrize("leaves", [False, True])
def test_it_is_the_loop_written_out(leaves: bool) -> None:
    model = network().require_grad() if leaves else network()
    note = Note()
    made = learner(model, metrics=[Error()], callbacks=[note])
    trained, history = made.fit(pairs(), pairs(10), epochs=3)
    close(trained, by_hand(network(), pairs(), ad.optim.Adam(lr=0.01), 3))
    assert trained.layers[0].weight.is_require_grad() is leaves
    assert trained.layers[0].weight.device is model.layers[0].weight.device
    names = ["epoch", "step", "seconds", "loss", "lr", "error", "valid_loss", "valid_error"]
    assert history.columns == names
    assert history["step"] == [5, 10, 15]
    assert history.steps["step"] == list(range(1, 16))
    np.testing.assert_allclose(history["lr"], 0.01)
    gaps = trained(ad.asarray(X)).numpy() - Y
    np.testing.assert_allclose(history["valid_loss"][-1], (gaps**2).mean(), rtol=1e-5)
    np.testing.assert_allclose(history["valid_error"][-1], abs(gaps).mean(), rtol=1e-5)
    assert note.calls[:2] == ["start 0", "step 1"]
    assert note.calls[-3:] == ["step 15", "epoch 15", "end 15"]
    assert made.run.reason == "done"
    assert made.run.steps_per_epoch == 5
    found = made.evaluate(pairs(10))
    assert found == {"loss": history["valid_loss"][-1], "error": history["valid_error"][-1]}
    np.testing.assert_allclose(made.predict(pairs(10)), trained(ad.asarray(X)).numpy(), rtol=1e-6)
    np.testing.assert_allclose(made.predict(X), trained(ad.asarray(X)).numpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, ad.asarray])
def test_a_pair_of_arrays_is_one_batch(kind: Any) -> None:
    pair = kind(X[:2]), kind(Y[:2])  # of two examples, so that x and y by themselves look like pairs
    one, other = learner(), learner()
    _, history = one.fit(pair, pair, epochs=2)
    _, expected = other.fit([pair], [pair], epochs=2)
    assert one.run.step == 2
    assert history["valid_loss"] == expected["valid_loss"]
    assert one.evaluate(pair) == other.evaluate([pair])
    np.testing.assert_array_equal(one.predict(pair), other.predict(X[:2]))


def test_accumulated_batches_are_one_large_batch() -> None:
    # 8, 8, 8, 8 and 3 examples by twos: also the last, incomplete one, and batches of different sizes.
    found, history = learner(accumulate=2, optimizer=ad.optim.SGD(lr=0.1)).fit(pairs(8), epochs=2)
    wanted, _ = learner(optimizer=ad.optim.SGD(lr=0.1)).fit(pairs(16), epochs=2)
    close(found, wanted)
    assert history["step"] == [3, 6]
    uneven = [(X[:8], Y[:8]), (X[8:11], Y[8:11])]
    found, _ = learner(accumulate=2, optimizer=ad.optim.SGD(lr=0.1)).fit(uneven)
    wanted, _ = learner(optimizer=ad.optim.SGD(lr=0.1)).fit([(X[:11], Y[:11])])
    close(found, wanted)


@pytest.mark.parametrize(
    ("clip", "change"),
    [
        (0.1, lambda g: g.clip_by_global_norm(0.1)),
        (lambda g: g.clip_by_value(0.01), lambda g: g.clip_by_value(0.01)),
    ],
)
def test_clipping(clip: Any, change: Any) -> None:
    found, _ = learner(clip=clip, optimizer=ad.optim.SGD(lr=0.1)).fit(pairs(), epochs=2)
    close(found, by_hand(network(), pairs(), ad.optim.SGD(lr=0.1), 2, change))
    with pytest.raises(AssertionError):
        close(found, by_hand(network(), pairs(), ad.optim.SGD(lr=0.1), 2))


def test_rates_by_step_and_by_epoch() -> None:
    rate = ad.optim.stairs(0.1, 5, 0.5)
    by_step, steps = learner(optimizer=ad.optim.SGD(lr=rate)).fit(pairs(), epochs=3)
    by_epoch, epochs = learner(optimizer=ad.optim.SGD(lr=7.0), lr_by_epoch=lambda k: 0.1 * 0.5**k).fit(
        pairs(), epochs=3
    )
    assert steps["lr"] == epochs["lr"] == [0.1, 0.05, 0.025]
    close(by_step, by_epoch)


def test_buffers_are_handed_on() -> None:
    ad.random.seed(0)
    model = ad.nn.Sequential(ad.nn.Linear(3, 4), ad.nn.BatchNorm(4), ad.nn.Linear(4, 1))
    trained, _ = learner(model, ad.optim.SGD(lr=0.0)).fit(pairs(8)[:4], epochs=5)
    state = model.state()
    for _ in range(5):
        for x, _ in pairs(8)[:4]:
            state = model.apply(ad.asarray(x), state)[1]
    close(trained.state(), state)
    halves, _ = learner(model, ad.optim.SGD(lr=0.0), devices=["numpy", "numpy"]).fit([(X[:8], Y[:8])])
    parts = [model.apply(ad.asarray(x), model.state())[1].layers[1].running_mean for x in (X[:4], X[4:8])]
    assert ad.allclose(halves.layers[1].running_mean, sum(parts) / 2)


def test_buffers_that_are_none() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(3, 4), ad.nn.BatchNorm(4), ad.nn.Linear(4, 1))
    for given in (3, ad.nn.Linear(3, 4)):

        def forward(model: Any, batch: Any, key: Any, given: Any = given) -> Any:
            return {"loss": ad.mean(model.apply(batch[0], model.state())[0]), "buffers": given}

        made = ad.train.Learner(model, None, ad.optim.SGD(lr=0.1), forward=forward)
        with pytest.raises(
            ad.errors.ArgumentTypeError, match=r"model\.apply\(x, model\.state\(\)\), its second result"
        ):
            made.fit([(X[:8], Y[:8])])


def test_what_is_dropped_follows_from_seed_and_batch() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(3, 20), ad.nn.Dropout(0.5), ad.nn.Linear(20, 1))
    first, _ = learner(model, seed=1).fit(pairs(), epochs=2)
    ad.random.uniform(3)
    again = learner(model, seed=1)
    again.fit(pairs(), epochs=1)
    ad.random.uniform(3)
    assert same(again.fit(pairs(), epochs=2)[0], first)
    assert not same(learner(model, seed=2).fit(pairs(), epochs=2)[0], first)
    loss = [learner(model, ad.optim.SGD(lr=0.0)).fit([(X[:8], Y[:8])] * 2)[1].steps["loss"] for _ in range(2)]
    assert loss[0] == loss[1]
    assert loss[0][0] != loss[0][1]


def test_optimizers_that_ask_again() -> None:
    sam = ad.optim.SAM(optimizer=ad.optim.SGD(lr=0.1), rho=0.05)
    model, state = network(), sam.init(network())
    for _ in range(2):
        for x, y in pairs():
            loss = ad.value_and_grad(lambda m, x=x, y=y: ad.nn.mse_loss(m(ad.asarray(x)), y))
            model, state = sam.step(model, loss, state)
    close(learner(optimizer=sam).fit(pairs(), epochs=2)[0], model)
    _, history = learner(optimizer=ad.optim.LBFGS()).fit([(X, Y)], epochs=20)
    assert history["loss"][-1] < 1e-3


@pytest.mark.parametrize(
    "free",
    [
        ad.optim.ScheduleFreeSGD(lr=0.1),
        ad.optim.Averaged(optimizer=ad.optim.SGD(lr=0.1), by=ad.optim.EMA(decay=0.7)),
        ad.optim.Averaged(optimizer=ad.optim.SGD(lr=0.1), by=ad.optim.SWA(), start=1),
    ],
    ids=["free", "EMA", "SWA"],
)
def test_averages_are_evaluated_and_given(free: Any, tmp_path: Any) -> None:
    model, state = network(), free.init(network())
    for x, y in [*pairs(), *pairs()]:
        grads = ad.grad(lambda m, x=x, y=y: ad.nn.mse_loss(m(ad.asarray(x)), y))(model)
        model, state = free.step(model, grads, state)
    for epochs in (1, 2):
        made = learner(optimizer=free)
        found, history = made.fit(pairs(), pairs(), epochs, checkpoints=tmp_path)
    close(made.run.model, model)
    close(found, free.averaged(model, state))
    around = learner(optimizer=ad.optim.SAM(optimizer=free, rho=0.0))  # whose second gradient is the first
    close(around.fit(pairs(), epochs=2)[0], found)
    assert not same(around.run.model, around.model)
    gaps = found(ad.asarray(X)).numpy() - Y
    np.testing.assert_allclose(history["valid_loss"][-1], (gaps**2).mean(), rtol=1e-5)


# --- precision ---


def test_half_precision(tmp_path: Any) -> None:
    seen = set()

    def look(x: Any) -> Any:
        seen.add(str(x.dtype))
        return x

    first = network()
    model = ad.nn.Sequential(*first.layers, ad.nn.Lambda(look))
    found, _ = learner(model, precision="float16", scaler=ad.optim.GradScaler(init_scale=2.0**8)).fit(pairs(), epochs=3)
    assert seen == {"float16"}
    close(found, learner().fit(pairs(), epochs=3)[0], 5e-3)
    assert found.layers[0].weight.dtype == ad.float32

    make = lambda: learner(model, precision="float16", scaler=ad.optim.GradScaler(init_scale=2.0**17))
    made = make()
    found, history = made.fit(pairs(), pairs(), epochs=3)
    assert made.run.step == history["step"][-1] < 15  # some steps were left out, until the scale was small enough
    assert 1 < made._objective.scaling.scale < 2**17
    assert made._at.batches == 15
    np.testing.assert_allclose(history["valid_loss"][-1], ((made.predict(pairs()) - Y) ** 2).mean(), rtol=1e-5)

    halfway = make()
    halfway.fit(pairs(), pairs(), epochs=1, checkpoints=tmp_path)
    again = make()
    resumed, _ = again.fit(pairs(), pairs(), epochs=3, checkpoints=tmp_path)
    assert same(resumed, found)
    assert again._objective.scaling == made._objective.scaling
    assert isinstance(learner(model, precision="float16").scaler, ad.optim.GradScaler)
    assert learner(model, precision="float32").scaler is None
    with pytest.raises(errors.DtypeError, match="a real floating dtype"):
        learner(precision="int8")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_half_precision_without_end() -> None:
    with pytest.raises(errors.NonFiniteError, match="first in the output of"):
        learner(
            lossy(lambda x: ad.log(x - x)), precision="float16", scaler=ad.optim.GradScaler(init_scale=2.0**17)
        ).fit(pairs(), epochs=10)


# --- batches ---


def test_a_batch_without_examples_is_an_error() -> None:
    learner = ad.train.Learner(ad.nn.Linear(3, 1), ad.nn.mse_loss, ad.optim.SGD())
    with pytest.raises(errors.ArgumentError, match="fit: train: a batch has no examples, and so no mean loss"):
        learner.fit([(X[:4], Y[:4]), (X[:0], Y[:0])])
    assert learner.run.step == 1
    with pytest.raises(errors.ArgumentError, match="fit: valid: a batch has no examples"):
        learner.fit([(X[:4], Y[:4])], [(X[:0], Y[:0])])
    with pytest.raises(errors.ArgumentError, match="evaluate: a batch has no examples"):
        learner.evaluate((X[:0], Y[:0]))
    assert learner.predict(X[:0]).shape == (0, 1)


def test_weights_of_examples_reach_loss_and_metrics() -> None:
    """A weight of 0 is an example less, in steps, in the history and in an evaluation."""
    weight = (np.arange(35) % 3 > 0).astype("float32")[:, None]

    def weighed(prediction: Any, target: Any, weight: Any) -> Any:
        return (ad.nn.mse_loss(prediction, target, reduction="none") * weight).sum() / weight.sum()

    def mae(prediction: Any, target: Any, weight: Any) -> float:
        return float((abs(prediction - target) * weight).sum() / weight.sum())

    start = network()
    trained = ad.train.Learner(start, weighed, ad.optim.SGD(lr=0.1), [ad.train.MAE()])
    found, history = trained.fit((X, Y, weight), epochs=1)
    kept = weight[:, 0] > 0
    wanted, expected = ad.train.Learner(start, ad.nn.mse_loss, ad.optim.SGD(lr=0.1), [ad.train.MAE()]).fit(
        (X[kept], Y[kept]), epochs=1
    )
    close(found, wanted, 1e-5)
    assert history["loss"][0] == pytest.approx(expected["loss"][0], rel=1e-5)
    assert history["mae"][0] == pytest.approx(expected["mae"][0], rel=1e-5)
    assert trained.evaluate((X, Y, weight))["mae"] == pytest.approx(mae(found(X).numpy(), Y, weight), rel=1e-5)
    np.testing.assert_array_equal(trained.predict((X, Y, weight)), trained.predict(X))
    parts = ad.train.Learner(start, weighed, ad.optim.SGD(lr=0.1), [ad.train.MAE()], devices=["numpy", "reference"])
    assert parts.fit((X, Y, weight), epochs=1)[1]["mae"][0] == pytest.approx(expected["mae"][0], rel=1e-5)


def test_what_forward_may_give() -> None:
    start, weight = network(), np.ones((35, 1), "float32")
    loss = lambda model, batch: ad.nn.mse_loss(model(batch["x"]), batch["y"])
    batch = {"x": X, "y": Y, "w": weight}
    alone = ad.train.Learner(start, None, ad.optim.SGD(lr=0.1), forward=lambda model, batch, key: loss(model, batch))
    found, history = alone.fit([batch], [batch], epochs=2)
    assert history.columns[-1] == "valid_loss"

    def named(model: Any, batch: Any, key: int) -> dict[str, Any]:
        prediction = model(batch["x"])
        given = {"prediction": prediction, "target": batch["y"], "weight": batch["w"]}
        return {"loss": ad.nn.mse_loss(prediction, batch["y"]), **given}

    other = ad.train.Learner(start, None, ad.optim.SGD(lr=0.1), [ad.train.RMSE()], forward=named)
    wanted, expected = other.fit([batch], [batch], epochs=2)
    close(found, wanted, 1e-12)
    assert expected["rmse"][0] == pytest.approx(expected["loss"][0] ** 0.5, rel=1e-5)
    with pytest.raises(errors.ArgumentError, match="predict: forward gave no prediction"):
        alone.predict([batch])
    with pytest.raises(errors.ArgumentError, match="metrics see a prediction and a target, and forward gave none"):
        ad.train.Learner(
            start, None, ad.optim.SGD(), [ad.train.RMSE()], forward=lambda model, batch, key: loss(model, batch)
        ).fit([batch])
    for wrong in (3, (1, 2), {"loss": 1, "losses": 2}, None):
        with pytest.raises(errors.ArgumentTypeError, match=r"forward gives a loss, or \(loss, prediction, target\)"):
            ad.train.Learner(start, None, ad.optim.SGD(), forward=lambda *_, wrong=wrong: wrong).fit([batch])
    assert ad.train.History()["loss"] == []


def test_any_iterable_of_batches() -> None:
    wanted, _ = learner().fit(pairs(), epochs=2)

    def function() -> Iterator[Any]:
        yield from pairs()

    seen: list[int] = []

    def of_epoch(epoch: int) -> list[Any]:
        seen.append(epoch)
        return pairs()

    def in_the_same_arrays() -> Iterator[Any]:
        x, y = np.empty((8, 3), "float32"), np.empty((8, 1), "float32")
        for a, b in pairs():
            x[: len(a)], y[: len(a)] = a, b
            yield x[: len(a)], y[: len(a)]

    for train in (function, of_epoch, in_the_same_arrays, tuple(pairs()), [list(p) for p in pairs()]):
        made = learner()
        assert same(made.fit(train, epochs=2)[0], wanted)
        assert made.run.steps_per_epoch == (5 if isinstance(train, (tuple, list)) else None)
    assert seen == [0, 1]
    with pytest.raises(errors.ArgumentError, match="no batch in epoch 2; an iterator gives its batches once"):
        learner().fit(function(), epochs=2)
    with pytest.raises(errors.ArgumentError, match="fit: valid: there is no batch in epoch 2; an iterator"):
        learner().fit(pairs(), function(), epochs=2)
    with pytest.raises(errors.ArgumentError, match="fit: train: there is no batch in epoch 1"):
        learner().fit([])
    with pytest.raises(errors.ArgumentError, match="fit: valid: there is no batch"):
        learner().fit(pairs(), [])
    with pytest.raises(errors.ArgumentTypeError, match="received 3"):
        learner().fit(3)
    with pytest.raises(errors.ArgumentTypeError, match="a function of batches gives an iterable"):
        learner().fit(lambda: 3)
    with pytest.raises(errors.ArgumentError, match=r"a batch is a pair \(input, target\)"):
        learner().fit([X])


@pytest.mark.peers
def test_pytorchs_loader() -> None:
    torch = peer("torch")
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    found, _ = learner().fit(torch.utils.data.DataLoader(data, batch_size=8), epochs=2)
    assert same(found, learner().fit(pairs(), epochs=2)[0])


def test_batches_of_another_kind() -> None:
    def forward(model: Any, batch: Any, key: int) -> Any:
        prediction = model(batch["x"])
        return ad.nn.mse_loss(prediction, batch["y"]), prediction, batch["y"]

    batches = [{"x": x, "y": y, "name": "some"} for x, y in pairs()]
    made = ad.train.Learner(network(), None, ad.optim.Adam(lr=0.01), [Error()], forward=forward)
    model, _ = made.fit(batches, batches, epochs=2)
    assert same(model, learner().fit(pairs(), epochs=2)[0])
    assert made.predict(batches).shape == (35, 1)


# --- arguments ---


class Nameless:
    """A metric without a name for its column."""

    init = update = value = lambda *_: 0


def test_arguments() -> None:
    optimizer = ad.optim.SGD()
    for wrong, error, said in [
        (lambda: ad.train.Learner(3, ad.nn.mse_loss, optimizer), errors.ArgumentTypeError, "an ad.nn.Module"),
        (lambda: ad.train.Learner(network(), ad.nn.mse_loss, "adam"), errors.ArgumentTypeError, "one of ad.optim"),
        (lambda: ad.train.Learner(network(), None, optimizer), errors.ArgumentError, "give a loss, or None and"),
        (lambda: ad.train.Learner(network(), 3, optimizer), errors.ArgumentTypeError, "the loss is a function"),
        (lambda: learner(metrics=["accuracy"]), errors.ArgumentTypeError, "metrics are a list of objects"),
        (lambda: learner(metrics=[Nameless()]), errors.ArgumentTypeError, "objects with name, init, update and value"),
        (lambda: learner(callbacks=[print]), errors.ArgumentTypeError, "callbacks are a list of objects"),
        (lambda: learner(accumulate=0), errors.ArgumentError, "accumulate is a positive integer"),
        (lambda: learner(clip=-1.0), errors.ArgumentError, "clip is a positive number"),
        (lambda: learner(seed=-1), errors.ArgumentError, "the seed is a non-negative integer"),
        (lambda: learner(lr_by_epoch=0.1), errors.ArgumentTypeError, "lr_by_epoch is a function"),
        (lambda: learner().fit(pairs(), epochs=1.5), errors.ArgumentTypeError, "epochs is an integer"),
        (lambda: learner(network().freeze()).fit(pairs()), errors.ArgumentError, "fit: all parameters .* are frozen"),
        (lambda: learner(ad.nn.Sequential(ad.nn.relu)), errors.ArgumentError, "has no parameters"),
        (lambda: ad.train.EarlyStopping(mode="least"), errors.ArgumentError, "mode is 'min' or 'max'"),
        (lambda: ad.train.EarlyStopping(patience=0), errors.ArgumentError, "patience is a positive integer"),
        (lambda: ad.train.EarlyStopping(3), errors.ArgumentTypeError, "column is one of the history"),
        (lambda: learner(metrics=[ad.train.MAE(), ad.train.MAE()]), errors.ArgumentError, "would be 'mae'; give"),
        (lambda: learner(metrics=[ad.train.MAE(name="lr")]), errors.ArgumentError, "would be 'lr'; give the metric"),
        (lambda: ad.train.Learner(network(), lambda *_: 3.0, optimizer).evaluate((X, Y)), errors.ArgumentTypeError,
         "Learner: the loss: expected a tensor, received 3.0"),
    ]:  # fmt: skip
        with pytest.raises(error, match=said):
            wrong()
