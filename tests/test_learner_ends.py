"""How `ad.train.Learner` ends: Ctrl-C, callbacks, early stopping, and what is said of a nan."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from training import Note, learner, lossy, network, pairs, same

import adjoint as ad
from adjoint import errors
from adjoint.train.stopping import Interrupts


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


@pytest.mark.parametrize(("twice", "saved"), [(False, False), (False, True), (True, False)])
def test_ctrl_c_of_another_program_comes_after_the_step(
    twice: bool, saved: bool, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    """A handler that was there, as asyncio's, is called when the training is saved; at once by a second Ctrl-C.

    How to go on is said where there is a file to go on from; else what to say is the handler's own.
    """
    told: list[int] = []
    trained = learner(callbacks=[Note(lambda name, run: press(name, run))])

    def press(name: str, run: Any) -> None:
        if name == "step" and run.step == 2:
            for _ in range(1 + twice):
                signal.raise_signal(signal.SIGINT)
            told.append(-run.step)

    before = signal.signal(signal.SIGINT, lambda *_: told.append(trained.run.step))
    try:
        trained.fit(pairs(), epochs=3, checkpoints=tmp_path if saved else None)
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("Interrupted after step 2") if saved else said.err == ""
        assert told == ([2, 2, -2] if twice else [-2, 2])  # the first one, too
        assert trained.run.reason == "interrupted"
        told.clear()
        signal.raise_signal(signal.SIGINT)
        assert told == [2]
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_works_after_blocks_that_were_dropped_in_any_order() -> None:
    """As those of trainings that a signal ended where the block begins, kept meanwhile by their errors."""
    first = Interrupts().__enter__()
    with Interrupts():
        del first
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# --- nans ---


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
