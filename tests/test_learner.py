"""`ad.train.Learner`: the same numbers as a loop written out, any loader, interruptions, and what is said of a nan."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(35, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]], "float32")).astype("float32")


def pairs(size: int = 8, x: Any = X, y: Any = Y) -> list[Any]:
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def network(dtype: str = "float32") -> Any:
    ad.random.seed(1)
    make = lambda *sizes: ad.nn.Linear(*sizes, dtype=dtype)
    return ad.nn.Sequential(make(3, 5), ad.tanh, make(5, 1))


def learner(model: Any = None, optimizer: Any = None, **options: Any) -> ad.train.Learner:
    model = network() if model is None else model
    return ad.train.Learner(model, ad.nn.mse_loss, optimizer or ad.optim.Adam(lr=0.01), **options)


def same(x: Any, y: Any) -> bool:
    a, b = x.record(), y.record()
    return a.keys() == b.keys() and all(a[path].tobytes() == b[path].tobytes() for path in a)


def close(x: Any, y: Any, rtol: float = 1e-5) -> None:
    a, b = x.record(), y.record()
    assert a.keys() == b.keys()
    for path in a:
        np.testing.assert_allclose(a[path], b[path], rtol=rtol, atol=rtol * 0.1, err_msg=path)


def by_hand(model: Any, batches: Any, optimizer: Any, epochs: int, change: Any = lambda g: g) -> Any:
    """The loop written out."""
    state = optimizer.init(model)
    for _ in range(epochs):
        for x, y in batches:
            grads = ad.grad(lambda m, x=x, y=y: ad.nn.mse_loss(m(ad.asarray(x)), y))(model)
            grads = change(ad.optim.GradientsParams.from_grads(grads, model))
            model, state = optimizer.step(model, grads, state)
    return model


class Error:
    """A metric: the mean of absolute errors."""

    name = "error"

    def init(self) -> dict[str, Any]:
        return {"sum": 0.0, "count": 0}

    def update(self, state: dict[str, Any], prediction: Any, target: Any) -> dict[str, Any]:
        gap = abs(prediction.numpy() - target.numpy())
        return {"sum": state["sum"] + float(gap.sum()), "count": state["count"] + gap.size}

    def value(self, state: dict[str, Any]) -> float:
        return state["sum"] / state["count"]  # type: ignore[no-any-return]


class Note(ad.train.Callback):
    """Which of its methods were called, and what they do beside."""

    def __init__(self, do: Callable[[str, Any], None] = lambda *_: None) -> None:
        self.calls: list[str] = []
        self.do = do

    def _note(self, name: str, run: Any) -> None:
        self.calls.append(f"{name} {run.step}")
        self.do(name, run)

    def start(self, run: Any) -> None:
        self._note("start", run)

    def step(self, run: Any) -> None:
        self._note("step", run)

    def epoch(self, run: Any) -> None:
        self._note("epoch", run)

    def end(self, run: Any) -> None:
        self._note("end", run)


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


def test_optimizers_that_ask_again_and_that_average(tmp_path: Any) -> None:
    sam = ad.optim.SAM(optimizer=ad.optim.SGD(lr=0.1), rho=0.05)
    model, state = network(), sam.init(network())
    for _ in range(2):
        for x, y in pairs():
            loss = ad.value_and_grad(lambda m, x=x, y=y: ad.nn.mse_loss(m(ad.asarray(x)), y))
            model, state = sam.step(model, loss, state)
    close(learner(optimizer=sam).fit(pairs(), epochs=2)[0], model)
    _, history = learner(optimizer=ad.optim.LBFGS()).fit([(X, Y)], epochs=20)
    assert history["loss"][-1] < 1e-3

    free = ad.optim.ScheduleFreeSGD(lr=0.1)
    model, state = network(), free.init(network())
    for x, y in [*pairs(), *pairs()]:
        grads = ad.grad(lambda m, x=x, y=y: ad.nn.mse_loss(m(ad.asarray(x)), y))(model)
        model, state = free.step(model, grads, state)
    for epochs in (1, 2):
        made = learner(optimizer=free)
        found, history = made.fit(pairs(), pairs(), epochs, checkpoints=tmp_path)
    close(made.run.model, model)
    close(found, free.averaged(model, state))
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


# --- devices ---


def test_several_devices_are_one() -> None:
    x, y = X.astype("float64"), Y.astype("float64")
    devices = [ad.Profiled(ad.NumPy()) for _ in range(3)]
    found, history = learner(network("float64"), devices=devices).fit(pairs(8, x, y), epochs=3)
    wanted, expected = learner(network("float64")).fit(pairs(8, x, y), epochs=3)
    close(found, wanted, 1e-10)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-12)
    assert all("tanh" in str(device.profile()) for device in devices)  # each has worked
    assert found.layers[0].weight.device is wanted.layers[0].weight.device


@pytest.mark.peers
def test_devices_of_several_libraries() -> None:
    peer("torch")
    loss = lambda model, batch: ad.nn.mse_loss(model(batch["x"]), batch["y"])
    model = network("float64")
    batch = {"x": X.astype("float64"), "y": Y.astype("float64"), "name": "a", "scale": np.array(2.0)}
    value, grads = ad.train.data_parallel(loss, ["numpy", "torch", "reference"])(model, batch)
    wanted, slopes = ad.value_and_grad(loss)(model, {k: batch[k] for k in "xy"})
    assert value.item() == pytest.approx(wanted.item(), rel=1e-12)
    for path, g in grads.items():
        np.testing.assert_allclose(g.numpy(), slopes.at(path).get().numpy(), rtol=1e-10)
        assert g.device is ad.NumPy()


@pytest.mark.parametrize(
    "device",
    [
        "reference",
        "checked<numpy>",
        pytest.param("torch", marks=pytest.mark.peers),
        pytest.param("jax", marks=[pytest.mark.peers, pytest.mark.slow]),
        pytest.param("dask", marks=[pytest.mark.peers, pytest.mark.slow]),
    ],
)
def test_models_on_other_devices(device: str, tmp_path: Any) -> None:
    if (library := device.partition("<")[0]) in ("torch", "jax", "dask"):
        peer(library)
    wanted, history = learner(clip=1.0).fit(pairs()[:3], pairs()[:1], epochs=2)
    for epochs in (1, 2):  # the second goes on from a file
        model = network().to_device(device)
        found, others = learner(model, clip=1.0).fit(pairs()[:3], pairs()[:1], epochs, checkpoints=tmp_path)
    close(found, wanted, 1e-4)
    np.testing.assert_allclose(others["valid_loss"], history["valid_loss"], rtol=1e-4)
    assert found.layers[0].weight.device is model.layers[0].weight.device


@pytest.mark.parametrize("devices", [["reference"], ["reference", "reference"]])
def test_gradients_come_to_where_the_model_is(devices: list[str]) -> None:
    model = ad.nn.Linear(3, 1).to_device(ad.NumPy())
    f = lambda model, batch: ad.nn.mse_loss(model(batch[0]), batch[1])
    value, grads = ad.train.data_parallel(f, devices)(model, (X[:4], Y[:4]))
    assert {value.device, *[g.device for g in grads.values()]} == {ad.NumPy()}


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


@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_of_another_program_comes_after_the_step(twice: bool) -> None:
    """A handler that was there, as asyncio's, is called when the training is saved; at once by a second Ctrl-C."""
    told: list[int] = []
    trained = learner(callbacks=[Note(lambda name, run: press(name, run))])

    def press(name: str, run: Any) -> None:
        if name == "step" and run.step == 2:
            for _ in range(1 + twice):
                signal.raise_signal(signal.SIGINT)
            told.append(-run.step)

    before = signal.signal(signal.SIGINT, lambda *_: told.append(trained.run.step))
    try:
        trained.fit(pairs(), epochs=3)
        assert told == ([2, 2, -2] if twice else [-2, 2])  # the first one, too
        assert trained.run.reason == "interrupted"
        told.clear()
        signal.raise_signal(signal.SIGINT)
        assert told == [2]
    finally:
        signal.signal(signal.SIGINT, before)


def test_parts_of_a_batch() -> None:
    loss = lambda model, batch: (ad.nn.mse_loss(model(batch[0]), batch[1]), len(batch[0]))
    value, _ = ad.train.data_parallel(loss, ["numpy"] * 4, has_aux=True)(network(), (X[:3], Y[:3]))
    assert value[1] == [1, 1, 1]  # none is empty
    with pytest.raises(errors.ArgumentError, match=r"arrays of lengths \[3, 4\]"):
        ad.train.data_parallel(loss, ["numpy"] * 2, has_aux=True)(network(), (X[:3], Y[:4]))
    with pytest.raises(errors.ArgumentError, match=r"devices are a sequence .* received \[\]"):
        ad.train.data_parallel(loss, [])
    with pytest.raises(errors.DeviceError):
        ad.train.data_parallel(loss, ["abacus"])
    noise = lambda model, batch: (model(batch[0]) * ad.random.normal(batch[1].shape)).sum()
    run = ad.train.data_parallel(noise, ["numpy"] * 2)
    losses = []
    for _ in range(3):
        ad.random.seed(5)
        losses.append(run(network(), (X[:8], Y[:8]))[0].item())
    assert losses[0] == losses[1] == losses[2]


# --- loaders ---


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


# --- stopping ---


@pytest.mark.parametrize("at", [2, 5, 7])
def test_ctrl_c_finishes_the_step_and_says_how_to_go_on(
    at: int, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    wanted, history = learner().fit(pairs(), pairs(), epochs=3)

    def press(name: str, run: Any) -> None:
        if name == "step" and run.step == at and not seen:
            seen.append(at)
            signal.raise_signal(signal.SIGINT)

    for folder in (None, tmp_path / "run"):
        seen: list[int] = []
        made = learner(callbacks=[Note(press)])
        model, _ = made.fit(pairs(), pairs(), epochs=3, checkpoints=folder)
        assert (made.run.step, made.run.reason) == (at, "interrupted")
        said = capsys.readouterr().err
        assert f"Interrupted after step {at}, in epoch {1 if at <= 5 else 2} of 3" in said
        assert "the same call of fit" in said
        assert not same(model, wanted)
        if folder is not None:
            assert str(folder / f"step-{at:08d}.safetensors") in said
            made = learner()
        model, found = made.fit(pairs(), pairs(), epochs=3, checkpoints=folder)
        assert same(model, wanted)
        assert found["loss"] == history["loss"]
        assert found["valid_loss"] == history["valid_loss"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_twice_and_in_a_validation() -> None:
    def twice(name: str, run: Any) -> None:
        if name == "step" and run.step == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    made = learner(callbacks=[note := Note(twice)])
    with pytest.raises(KeyboardInterrupt):
        made.fit(pairs())
    assert note.calls[-1] == "end 2"
    assert made.run.reason == "interrupted"

    pressed: list[int] = []

    def valid() -> Iterator[Any]:
        for k, pair in enumerate(pairs()):
            if k == 2 and not pressed:
                pressed.append(k)
                signal.raise_signal(signal.SIGINT)
            yield pair

    made = learner()
    _, history = made.fit(pairs(), valid, epochs=2)
    assert (len(history), made.run.step, made.run.reason) == (0, 5, "interrupted")
    model, history = made.fit(pairs(), valid, epochs=2)
    assert (len(history), made.run.step) == (2, 10)
    assert same(model, learner().fit(pairs(), epochs=2)[0])


def test_callbacks_stop_and_fail() -> None:
    def stop(name: str, run: Any) -> None:
        if name == "step" and run.step == 7 and run.epochs == 3:
            run.stop("enough")

    made = learner(callbacks=[note := Note(stop)])
    _, history = made.fit(pairs(), epochs=3)
    assert (made.run.reason, len(history), note.calls[-1]) == ("stopped: enough", 1, "end 7")
    made.fit(pairs(), epochs=4)
    assert made.run.reason == "done"
    assert same(made.model, learner().fit(pairs(), epochs=4)[0])

    def fail(name: str, run: Any) -> None:
        if name == "epoch":
            raise ZeroDivisionError

    made = learner(callbacks=[note := Note(fail)])
    with pytest.raises(ZeroDivisionError):
        made.fit(pairs())
    assert note.calls[-1] == "end 5"
    assert made.run.reason == "error"


def test_early_stopping(tmp_path: Any) -> None:
    options: dict[str, Any] = {"checkpoints": tmp_path, "epochs": 50}
    make = lambda: learner(optimizer=ad.optim.SGD(lr=0.0), callbacks=[ad.train.EarlyStopping("valid_loss", 3)])
    for _ in range(2):  # started again, it is still at its end
        made = make()
        _, history = made.fit(pairs(), pairs(), **options)
        assert made.run.reason == "stopped: valid_loss was not better for 3 epochs"
        assert len(history) == 4
    _, history = learner(callbacks=[ad.train.EarlyStopping("loss", 3)]).fit(pairs(), epochs=10)
    assert len(history) == 10
    with pytest.raises(errors.ArgumentError, match="no valid_loss; there are 'epoch"):
        learner(callbacks=[ad.train.EarlyStopping()]).fit(pairs())


# --- nans ---


def lossy(f: Any) -> Any:
    """A model with a function between its layers."""
    ad.random.seed(1)
    return ad.nn.Sequential(ad.nn.Linear(3, 5), ad.nn.Sequential(ad.nn.Lambda(f), ad.nn.Identity()), ad.nn.Linear(5, 1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of the same
def test_the_layer_that_gives_a_nan_is_named() -> None:
    model = lossy(lambda x: ad.log(x - x))
    made = learner(model)
    with pytest.raises(
        errors.NonFiniteError,
        match=r"step 1, epoch 1: the loss is (nan|-?inf), first in .* layers\.1\.layers\.0\.function \(<lambda>\)",
    ) as caught:
        made.fit(pairs())
    assert "log" in str(caught.value.__cause__)
    assert made.model is model


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_layers_with_buffers_and_classes_of_ones_own_are_named() -> None:
    class Block(ad.nn.Module):
        inside: Any
        scale: ad.Tensor

        def __call__(self, x: Any) -> Any:
            return ad.sqrt(self.inside(x) + self.inside.layers[1].bias) * self.scale

        def apply(self, x: Any, state: Any) -> Any:
            y, inside = self.inside.apply(x, state.inside)
            return ad.sqrt(y + self.inside.layers[1].bias) * self.scale, state.at("inside").set(inside)

    ad.random.seed(1)
    inside = ad.nn.Sequential(ad.nn.Linear(3, 5), ad.nn.BatchNorm(5))
    model = ad.nn.Sequential(Block(inside, ad.ones(5)), ad.nn.Dropout(0.5), ad.nn.Linear(5, 1))
    made = learner(model)
    with pytest.raises(errors.NonFiniteError, match=r"first in the output of layers\.0 \(Block\)") as caught:
        made.fit(pairs())
    assert "sqrt" in str(caught.value.__cause__)
    assert same(made.model, model)  # buffers, too


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_batches_losses_and_parameters_that_are_not_finite() -> None:
    with pytest.raises(
        errors.NonFiniteError, match=r"a gradient is not finite, on the way back first in .* layers\.0\.bias"
    ) as e:
        learner(lossy(lambda x: ad.sqrt(x - x) + x)).fit(pairs())
    assert "those of 'layers.2.weight, layers.2.bias' are finite" in str(e.value)
    assert "sqrt" in str(e.value.__cause__)
    bad = pairs()
    bad[2] = (bad[2][0].copy(), bad[2][1])
    bad[2][0][1, 1] = np.nan
    made = learner()
    with pytest.raises(errors.NonFiniteError, match=r"step 3, .* in the batch, at batch\[0\]"):
        made.fit(bad)
    assert same(made.model, learner().fit(pairs()[:2])[0])
    with pytest.raises(errors.NonFiniteError, match="the loss is inf, in the loss, of finite predictions"):
        ad.train.Learner(network(), lambda p, t: (p / (t - t) ** 2).sum() ** 2, ad.optim.SGD()).fit(pairs())
    with pytest.raises(errors.NonFiniteError, match=r"step 2, .* in the model itself, at layers\.0\.weight"):
        learner(optimizer=ad.optim.SGD(lr=float("inf"))).fit(pairs())


def test_large_gradients_are_finite() -> None:
    x, y = np.full((4, 3), 1.5e19, "float32"), np.zeros((4, 1), "float32")
    model = ad.nn.Linear(3, 1).map(ad.zeros_like)
    made = ad.train.Learner(model, lambda p, t: (p - t).mean() * 1e19, ad.optim.SGD(lr=0.0))
    made.fit([(x, y)])  # 1.5e38 each, and their sum is beyond float32
    assert made.run.step == 1


# --- arguments ---


def test_arguments() -> None:
    optimizer = ad.optim.SGD()
    for wrong, error, said in [
        (lambda: ad.train.Learner(3, ad.nn.mse_loss, optimizer), errors.ArgumentTypeError, "an ad.nn.Module"),
        (lambda: ad.train.Learner(network(), ad.nn.mse_loss, "adam"), errors.ArgumentTypeError, "one of ad.optim"),
        (lambda: ad.train.Learner(network(), None, optimizer), errors.ArgumentError, "give a loss, or None and"),
        (lambda: ad.train.Learner(network(), 3, optimizer), errors.ArgumentTypeError, "the loss is a function"),
        (lambda: learner(metrics=["accuracy"]), errors.ArgumentTypeError, "metrics are a list of objects"),
        (lambda: learner(callbacks=[print]), errors.ArgumentTypeError, "callbacks are a list of objects"),
        (lambda: learner(accumulate=0), errors.ArgumentError, "accumulate is a positive integer"),
        (lambda: learner(clip=-1.0), errors.ArgumentError, "clip is a positive number"),
        (lambda: learner(seed=-1), errors.ArgumentError, "the seed is a non-negative integer"),
        (lambda: learner(lr_by_epoch=0.1), errors.ArgumentTypeError, "lr_by_epoch is a function"),
        (lambda: learner().fit(pairs(), epochs=1.5), errors.ArgumentTypeError, "epochs is an integer"),
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
