"""The training loop: `Learner`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.data.batches import Unread
from adjoint.dtypes import DType, as_real, float16
from adjoint.functions.arguments import as_integer, as_positive, called, check_callable, is_array, items
from adjoint.module.base import Module
from adjoint.module.fields import leaves_of
from adjoint.optim.averaging_optimizers import AveragingOptimizer
from adjoint.optim.base import Optimizer, rate_at
from adjoint.optim.closures import SAM, ClosureOptimizer
from adjoint.optim.gradients import GradientsParams
from adjoint.optim.scaling import GradScaler
from adjoint.random_keys import seeded
from adjoint.tensor import Tensor
from adjoint.train.checkpoints import Checkpoints, Content
from adjoint.train.cluster import Cluster
from adjoint.train.loaders import Loader, batches_of, one_batch
from adjoint.train.nonfinite import all_finite, find_layer
from adjoint.train.objective import Forward, Objective, Outcome, has_buffers, paired, with_buffers
from adjoint.train.parallel import data_parallel
from adjoint.train.parts import on_device, place_of, seed_of, size_of, values
from adjoint.train.run import Callback, History, Run, check_names
from adjoint.train.stopping import Interrupts


class Learner:
    """A model, its loss and its optimizer, and the loop that trains it.

    `fit` trains, `evaluate` measures, `predict` applies. The learner is the only thing here that changes: its `model`
    and its `run` are those of the last step. None of it is needed to train: `docs/training.md` has the same loop
    written out.

    Parameters
    ----------
    model
        An `ad.nn.Module`, of leaves or not. Its buffers, such as running statistics, are handed on.
    loss
        `loss(prediction, target)`, a mean over examples, for batches that are pairs (input, target). Of a batch (input,
        target, weight) it is `loss(prediction, target, weight)`, and metrics are weighed by it: a number of 0 or more
        per example, or of the target's shape, as 0 where a sequence is padded.
    optimizer
        One of `ad.optim`.
    metrics
        Metrics of training and validation, such as `ad.train.Accuracy()`.
    callbacks
        What is done beside training: objects of `ad.train.Callback`.
    forward
        In the place of `loss` (which is then None), for batches of any other kind: `forward(model, batch, key)` gives a
        loss; or (loss, prediction, target), which metrics see; or a dictionary of these by name, which may have a
        `weight` for metrics, and `buffers`, the next ones, as `model.apply` gives them. `key` is a seed.
    seed
        From it and the number of the batch follows what the model draws, such as what dropout drops.
    accumulate
        How many batches make one step, of the mean of their gradients, weighed by their sizes. At the end of an epoch
        there may be fewer.
    clip
        A limit to the global norm of gradients, or a function of `GradientsParams` that gives others.
    lr_by_epoch
        A schedule by epochs, from 0, in the place of the optimizer's rate by steps.
    devices
        Backends or their names among which each batch is divided, see `data_parallel`; or an `ad.train.Cluster`.
    precision
        A dtype such as "float16" in which the model computes while it is trained; its parameters, the loss and the
        optimizer keep theirs. The inputs of pairs are brought to it, those of `forward=` are yours to bring.
    scaler
        Scales the loss for it, so that small gradients do not vanish, and leaves out steps whose gradients are not
        finite: an `ad.optim.GradScaler`, which is there by itself in float16.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        An argument is none of these.

    Examples
    --------
    >>> import adjoint as ad
    >>> x = ad.random.normal((64, 2))
    >>> batches = [(x[i : i + 16], x[i : i + 16].sum(axis=1, keepdims=True)) for i in range(0, 64, 16)]
    >>> learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.Adam(lr=0.1))
    >>> model, history = learner.fit(batches, epochs=40)
    >>> len(history), history["loss"][-1] < 0.01
    (40, True)
    >>> learner.predict(x).shape
    (64, 1)
    """

    forward: Forward | None
    loss: (Callable[..., Any]) | None
    optimizer: Optimizer

    def __init__(
        self, model: Any, loss: Callable[..., Any] | None, optimizer: Optimizer, metrics: Sequence[Any] = (),
        callbacks: Sequence[Callback] = (), *, forward: Forward | None = None, seed: int = 0, accumulate: int = 1,
        clip: float | Callable[[GradientsParams], GradientsParams] | None = None,
        lr_by_epoch: Callable[[int], Any] | None = None, devices: Sequence[Any] | Cluster | None = None,
        precision: Any = None, scaler: Any = None,
    ) -> None:  # fmt: skip
        if not isinstance(model, Module):
            raise errors.ArgumentTypeError(f"Learner: the model is an ad.nn.Module, received {errors.shown(model)}")
        if not isinstance(optimizer, Optimizer):
            raise errors.ArgumentTypeError(
                f"Learner: the optimizer is one of ad.optim, such as ad.optim.SGD(), received {errors.shown(optimizer)}"
            )
        if (loss is None) == (forward is None):
            raise errors.ArgumentError("Learner: give a loss, or None and forward=, a function of model, batch and key")
        check_callable("Learner", loss if forward is None else forward, "the loss" if forward is None else "forward")
        self.optimizer, self.loss, self.forward = optimizer, loss, forward
        is_metric = lambda x: (
            not isinstance(x, type) and all([hasattr(x, n) for n in ("name", "init", "update", "value")])
        )
        told = "metrics are a list of objects with name, init, update and value, such as ad.train.Accuracy()"
        self.metrics: tuple[Any, ...] = _objects(metrics, is_metric, told)
        check_names([metric.name for metric in self.metrics])
        is_callback = lambda x: isinstance(x, Callback)
        self.callbacks: tuple[Any, ...] = _objects(
            callbacks, is_callback, "callbacks are a list of objects of ad.train.Callback"
        )
        self.seed: int = as_integer(seed, "Learner", "the seed", 0)
        self.accumulate: int = as_integer(accumulate, "Learner", "accumulate", 1)
        self.clip = clip if clip is None or callable(clip) else as_positive(clip, "Learner", "clip")
        if lr_by_epoch is not None:
            check_callable("Learner", lr_by_epoch, "lr_by_epoch")
        self.lr_by_epoch = lr_by_epoch
        if scaler is not None and isinstance(optimizer, ClosureOptimizer):
            raise errors.ArgumentError(
                f"Learner: {type(optimizer).__name__} asks for gradients itself, without scaler="
            )
        if scaler is not None and not hasattr(scaler, "step_unscaled"):
            raise errors.ArgumentTypeError(f"Learner: scaler is ad.optim.GradScaler(), received {errors.shown(scaler)}")
        self.precision: DType | None = None if precision is None else as_real(precision, "Learner")
        if scaler is None and self.precision is float16 and not isinstance(optimizer, ClosureOptimizer):
            scaler = GradScaler()
        self.scaler = scaler
        self._place = place_of(model)
        self._objective = Objective(
            paired(loss, has_buffers(model), self.precision) if forward is None else forward,
            self._place, self.precision, scaler, is_seen=bool(self.metrics),
        )  # fmt: skip
        first = next(leaf.value.device for leaf in leaves_of(model) if isinstance(leaf.value, Tensor))
        self.devices = devices
        self._unread = isinstance(devices, Cluster)
        self._gradients = data_parallel(self._objective, [first] if devices is None else devices, has_aux=True)
        self.run: Run = Run(self, model, optimizer.init(model), 0)
        self._at = _Position(metrics=[metric.init() for metric in self.metrics])

    @property
    def model(self) -> Any:
        """The model of the last step, averaged if its optimizer averages; `run.model` is the one that is trained."""
        rule = self.optimizer.optimizer if isinstance(self.optimizer, SAM) else self.optimizer
        if isinstance(rule, AveragingOptimizer):
            return rule.averaged(self.run.model, self.run.state)
        return self.run.model

    def fit(self, train: Any, valid: Any = None, epochs: int = 1, *, checkpoints: Any = None) -> tuple[Any, History]:
        """Train until so many epochs are done in all, and give the model and the history.

        Called again, with a larger number or after Ctrl-C, it goes on. The first Ctrl-C finishes the step, saves, and
        says on standard error how to go on; a second one interrupts at once. A handler of the program's own is called
        after that, and where nothing is saved, what to say is left to it.

        Parameters
        ----------
        train
            The batches of an epoch: a list, an `ad.data.DataLoader`, PyTorch's, any iterable, or a function that gives
            one, with the number of the epoch, from 0, if it takes an argument. A tuple (input, target) of arrays, or
            (input, target, weight), is one batch.
        valid
            The batches of a validation after each epoch, likewise.
        epochs
            How many epochs there are to be in all.
        checkpoints
            A folder, or `ad.train.Checkpoints`. If there is one of this training in it, `fit` goes on from there: after
            a crash the same command, started again, gives the same parameters as a run without one, bit by bit. The
            batches must be the same again, which an `ad.data.DataLoader` sees to; of another loader those that were
            done are drawn and dropped.

        Raises
        ------
        NonFiniteError
            A loss or a gradient is not finite. The message names the layer; the model is that of the step before.
        FileError, ArgumentError, ShapeError, DtypeError
            A checkpoint cannot be written or read, or is one of another model; there are no batches, or one of them
            has no examples; all parameters are frozen.
        """
        loader = Loader(batches_of(train), "fit: train", self._unread)
        others = None if valid is None else Loader(batches_of(valid), "fit: valid")
        run = self.run
        if all([leaf.kind != "parameter" for leaf in leaves_of(run.model)]):
            raise errors.ArgumentError("fit: all parameters of the model are frozen; model.unfreeze(path) frees some")
        run.epochs = as_integer(epochs, "fit", "epochs", 0)
        run.reason, run.steps_per_epoch = None, _steps(loader, self.accumulate)
        saver = checkpoints if checkpoints is None or isinstance(checkpoints, Checkpoints) else Checkpoints(checkpoints)
        training = _Training(self, run, loader, others, saver)
        training.begin()
        with Interrupts() as interrupts:
            try:
                for callback in self.callbacks:
                    callback.start(run)
                while run.reason is None and run.epoch < run.epochs:
                    training.epoch(interrupts)
                run.reason = run.reason or "done"
            except KeyboardInterrupt:
                run.reason = "interrupted"
                raise
            except BaseException:
                run.reason = "error"
                raise
            finally:
                with contextlib.ExitStack() as ends:  # each one ends, whatever another raises
                    for callback in self.callbacks[::-1]:
                        ends.callback(callback.end, run)
        return self.model, run.history

    def evaluate(self, data: Any) -> dict[str, Any]:
        """The mean loss and the metrics over batches, or a tuple (input, target) of arrays, without training."""
        found = self._evaluated(Loader(one_batch(data), "evaluate"), 0, lambda: False)
        assert found is not None  # nobody asked it to stop
        return found

    def predict(self, data: Any) -> Any:
        """Predictions for batches, or one array or pair of them, joined along the first axis, as NumPy arrays.

        Of a batch (input, target) or (input, target, weight) the first part is the input. A model with `forward=` is
        given whole batches.
        """
        model, parts = self.model.valid(), []
        for number, (batch, _, _) in enumerate(Loader(one_batch(data), "predict").batches(0, 0, self._place)):
            with seeded(seed_of(self.seed, number)):
                if self.forward is not None:
                    found = self._objective.loss(model, batch)[1].prediction
                    if found is None:
                        raise errors.ArgumentError(
                            "predict: forward gave no prediction; let it give (loss, prediction, target)"
                        )
                else:
                    found = model(batch[0] if isinstance(batch, (tuple, list)) and len(batch) in (2, 3) else batch)
            parts.append(trees.map(_as_array, found))
        return trees.map(lambda *xs: np.concatenate(xs), *parts)

    # --- one step ---

    def _gathered(self, model: Any, batches: list[Any], check: bool) -> _Gathered:
        """Loss and gradients of some batches, weighed by their sizes, and clipped. Raises NonFiniteError if `check`."""
        losses, slopes, sizes, states = [], [], [], list(self._at.metrics)
        scaling = self._objective.scaling
        for number, batch in enumerate(batches):
            size, seed = _weight(batch, "fit: train"), seed_of(self.seed, self._at.batches + number)
            with seeded(seed):
                (loss, auxes), grads = self._gradients(model, batch)
            if self.scaler is not None:
                loss, grads = loss / scaling.scale, self.scaler.unscale(grads, model, scaling)
            bound = check and (self.scaler is None or scaling.scale < 1)  # else such a step is left out
            if bound and not (math.isfinite(loss.item()) and all_finite(grads)):
                raise self._not_finite(model, batch, seed, loss.item())
            model = with_buffers(model, [found.buffers for found in auxes], self._place)
            losses.append(loss)
            slopes.append(grads)
            sizes.append(size)
            for found in auxes:
                states = self._seen(states, found)
        weight = sum(sizes)
        if len(batches) > 1:
            losses = [x * (w / weight) for x, w in zip(losses, sizes, strict=True)]
            slopes = [g * (w / weight) for g, w in zip(slopes, sizes, strict=True)]
        grads = sum(slopes[1:], slopes[0])
        if self.clip is not None:
            if callable(self.clip):
                grads = called("Learner: clip", "clip(gradients)", self.clip, grads)
                if not isinstance(grads, GradientsParams):
                    raise errors.ArgumentTypeError(
                        "Learner: clip gives GradientsParams, as gradients.clip_by_norm(1.0) is, and this one gave "
                        f"{errors.shown(grads)}"
                    )
            else:
                grads = grads.clip_by_global_norm(self.clip)
        return _Gathered(model, sum(losses[1:], losses[0]), grads, weight, states)

    def _step(self, batches: list[Any]) -> bool:
        """One step of the optimizer, by some batches; False where the scaler left it out."""
        run, at = self.run, self._at
        model, loss, grads, weight, states = self._gathered(run.model, batches, True)
        if isinstance(self.optimizer, ClosureOptimizer):  # which asks again, at other points
            first = [(loss, grads)]
            grads = lambda model: first.pop() if first else self._gathered(model, batches, False)[1:3]
        rate: Any = self.optimizer.lr
        if self.lr_by_epoch is not None:
            rate = rate_at(self.lr_by_epoch, run.epoch, "Learner: lr_by_epoch", "lr_by_epoch(epoch)")
        now = rate_at(rate, run.state.step)
        given = None if self.lr_by_epoch is None else rate
        if self.scaler is not None:
            before = run.state.step
            made, run.state, self._objective.scaling = self.scaler.step_unscaled(
                self.optimizer, model, grads, run.state, self._objective.scaling, lr=given
            )
            stepped = run.state.step != before
            run.model = made if stepped else run.model  # with the buffers of before, too
        else:
            stepped = True
            run.model, run.state = self.optimizer.step(model, grads, run.state, lr=given)
        at.batches, at.in_epoch = at.batches + len(batches), at.in_epoch + len(batches)
        if not stepped:
            return False
        run.lr, run.loss = float(now), loss.item()
        run.step += 1
        run.examples += int(weight)
        run.history.add_step(run.step, run.loss)
        at.loss, at.weight, at.metrics = at.loss + run.loss * weight, at.weight + weight, states
        run.measure = lambda: self._values(states)
        return True

    def _seen(self, states: list[Any], found: Outcome) -> list[Any]:
        """The metrics' states after a batch."""
        more = () if found.weight is None else (found.weight,)  # a metric of a user's may know none
        pairs = zip(self.metrics, states, strict=True)
        return [metric.update(state, found.prediction, found.target, *more) for metric, state in pairs]

    def _values(self, states: Sequence[Any]) -> dict[str, Any]:
        pairs = zip(self.metrics, states, strict=True)
        return {metric.name: _plain(metric.value(state)) for metric, state in pairs}

    def _not_finite(self, model: Any, batch: Any, seed: int, loss: float) -> errors.NonFiniteError:
        """The error that says where it came from: the step is made again, with an eye on each layer."""
        if isinstance(batch, Unread):
            batch = on_device(batch.read(), self._place)

        def forward(model: Any) -> Any:
            with seeded(seed), seeded(seed_of(self._place.next_key(), 0)):
                return self._objective.loss(model, batch)[0]

        def backward(model: Any) -> Mapping[str, Any]:
            device = next(leaf.value.device for leaf in leaves_of(model) if isinstance(leaf.value, Tensor))
            with seeded(seed):
                return data_parallel(self._objective, [device], has_aux=True)(model, batch)[1]

        with self._place.leaf.quiet():
            where, cause = find_layer(values(model), batch, forward, backward)
        what = f"the loss is {loss}" if not math.isfinite(loss) else "a gradient is not finite"
        error = errors.NonFiniteError(
            f"fit: step {self.run.step + 1}, epoch {self.run.epoch + 1}: {what}, {where}; learner.model is that of the "
            "step before"
        )
        error.__cause__ = cause
        return error

    def _evaluated(self, loader: Loader, epoch: int, asked: Callable[[], bool]) -> dict[str, Any] | None:
        """The mean loss and the metrics over batches; None where somebody asked to stop meanwhile."""
        model, states = self.model.valid(), [metric.init() for metric in self.metrics]
        total = weight = 0.0
        for number, (batch, _, _) in enumerate(loader.batches(epoch, 0, self._place)):
            if asked():
                return None
            size = _weight(batch, loader.name)
            with seeded(seed_of(self.seed, number)):
                loss, found = self._objective.loss(model, batch)
            total, weight = total + loss.item() * size, weight + size
            states = self._seen(states, found)
        return {"loss": total / weight, **self._values(states)}


class _Gathered(NamedTuple):
    """What some batches gave: the model with the next buffers, means of loss and gradients, examples, metrics."""

    model: Any
    loss: Any
    grads: Any
    weight: float
    metrics: list[Any]


@dataclasses.dataclass
class _Position:
    """Where in the epoch a training is, and what it has gathered there."""

    metrics: list[Any]
    batches: int = 0  # of the whole run: seeds follow from it
    in_epoch: int = 0
    ended: bool = False  # all batches of the epoch are done, and only the validation is not
    loss: float = 0.0
    weight: float = 0.0
    loader: Any = None  # the loader's own record

    @property
    def mean(self) -> float:
        """The mean loss of the epoch; nan where every step was left out."""
        return self.loss / self.weight if self.weight else math.nan

    def next_epoch(self, metrics: list[Any]) -> None:
        self.in_epoch, self.ended, self.loss, self.weight, self.metrics = 0, False, 0.0, 0.0, metrics

    def record(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "metrics"}


class _Training:
    """One call of `fit`: epochs, and the checkpoints between."""

    def __init__(
        self, learner: Learner, run: Run, loader: Loader, valid: Loader | None, saver: Checkpoints | None
    ) -> None:
        self.learner, self.run, self.loader, self.valid, self.saver = learner, run, loader, valid, saver
        self.started = time.perf_counter()

    @property
    def at(self) -> _Position:
        return self.learner._at

    def begin(self) -> None:
        """Go to where the last checkpoint is, or where this learner has stopped."""
        if self.saver is not None and self.run.step == 0 and self.saver.steps():
            self._restore(self.saver.content())
        elif self.at.in_epoch:
            self.loader.load_record(self.at.loader)
        if self.saver is not None:
            self.saver.prepare(self.run.step)
        self.at.loader = self.loader.record()
        self.started = time.perf_counter() - self.run.seconds

    def epoch(self, interrupts: Interrupts) -> None:
        """The rest of an epoch, its validation, and its row in the history."""
        learner, run, at = self.learner, self.run, self.at
        if not at.ended:
            self._steps(interrupts)
        if not at.ended or run.reason is not None or interrupts.asked:
            self._stopped(interrupts)
            return
        row = {"epoch": run.epoch + 1, "step": run.step, "seconds": self._seconds(), "loss": at.mean}
        row |= {"lr": run.lr, **learner._values(at.metrics)}
        if self.valid is not None:
            before = self.valid.record()
            found = learner._evaluated(self.valid, run.epoch, lambda: interrupts.asked)
            if found is None:
                self.valid.load_record(before)
                self._stopped(interrupts)
                return
            row |= {f"valid_{name}": value for name, value in found.items()}
        row["seconds"] = self._seconds()
        run.history.rows.append(row)
        run.epoch += 1
        at.next_epoch([metric.init() for metric in learner.metrics])
        self._call("epoch")
        self._save(row)
        if interrupts.asked:
            self._stopped(interrupts)

    def _steps(self, interrupts: Interrupts) -> None:
        """The steps of an epoch that are not done yet."""
        run, at = self.run, self.at
        batches: Any = self.loader.batches(run.epoch, at.in_epoch, self.learner._place)
        group: list[Any] = []
        try:
            for batch, last, position in batches:
                group.append(batch)
                if len(group) < self.learner.accumulate and not last:
                    continue
                stepped = self.learner._step(group)
                at.ended, at.loader, group = last, position, []
                run.seconds = self._seconds()
                if stepped:
                    self._call("step")
                if run.reason is not None or interrupts.asked:
                    return
                if stepped and self.saver is not None and self.saver.is_due(run):
                    self._save()
            at.ended = True  # also where a checkpoint was of the last batch, and none came
        finally:
            batches.close()
            if not at.ended:
                self.loader.load_record(at.loader)

    def _stopped(self, interrupts: Interrupts) -> None:
        """Save in the midst of an epoch, and say how to go on."""
        run = self.run
        path = self._save()
        if interrupts.asked:
            run.reason = run.reason or "interrupted"
            if path is None and interrupts.is_shared:
                return  # nothing is left but what the program keeps, and it says so itself
            saved = "" if path is None else f", saved in {path}"
            print(
                f"Interrupted after step {run.step}, in epoch {min(run.epoch + 1, run.epochs)} of {run.epochs}{saved}; "
                f"the same call of fit{'' if path is None else ', or the same command,'} goes on from there.",
                file=sys.stderr,
            )

    def _call(self, name: str) -> None:
        for callback in self.learner.callbacks:
            getattr(callback, name)(self.run)

    def _seconds(self) -> float:
        return time.perf_counter() - self.started

    # --- checkpoints ---

    def _save(self, row: Mapping[str, Any] | None = None) -> Any:
        run, saver = self.run, self.saver
        if saver is None:
            return None
        score = None
        if saver.best is not None and row is not None:
            score = row.get(saver.best)
            if score is None:
                raise errors.ArgumentError(
                    f"Checkpoints: the history has no column {saver.best!r} to choose the best by; there are "
                    f"{errors.shown(', '.join(row))}"
                )
        about = {
            "run": {name: getattr(run, name) for name in ("step", "examples", "epoch", "loss", "lr", "seconds")},
            "position": self.at.record(),
            "history": run.history.record(),
            "callbacks": [[type(c).__name__, c.record()] for c in self.learner.callbacks],
            "valid": None if self.valid is None else self.valid.record(),
        }
        tree = {
            "model": run.model,
            "optimizer": run.state,
            "metrics": self.at.metrics,
            "scaling": self.learner._objective.scaling,
        }
        return saver.save(run.step, tree, about, score=score)

    def _restore(self, content: Content) -> None:
        """Go on from a checkpoint: first all is read, then it becomes that of the learner."""
        learner, run, about = self.learner, self.run, content.about
        model = content.fill(run.model, "model")
        state = content.fill(run.state, "optimizer")
        scaling = content.fill(learner._objective.scaling, "scaling")
        metrics = content.fill(self.at.metrics, "metrics", free=True)
        self.loader.load_record(about["position"]["loader"])
        if self.valid is not None:
            self.valid.load_record(about["valid"])
        records: dict[str, Iterator[Any]] = {}
        for name in {type(callback).__name__ for callback in learner.callbacks}:
            records[name] = iter([record for kind, record in about["callbacks"] if kind == name])
        for callback in learner.callbacks:  # one that was not there before starts anew
            record = next(records[type(callback).__name__], None)
            if record is not None:
                callback.load_record(record)
        run.model, run.state, learner._objective.scaling = model, state, scaling
        for name, value in about["run"].items():
            setattr(run, name, value)
        run.history.load_record(about["history"])
        learner._at = _Position(metrics=metrics, **about["position"])


def _objects(given: Any, fits: Callable[[Any], bool], what: str) -> tuple[Any, ...]:
    """What is in a list. Raises ArgumentTypeError for none, and for objects that do not fit."""
    found = items(given)
    wrong = [given] if found is None else [x for x in found if not fits(x)]
    if found is None or wrong:
        raise errors.ArgumentTypeError(f"Learner: {what}, received {errors.shown(wrong[0])}")
    return found


def _weight(batch: Any, name: str) -> float:
    """How much a batch counts in means: its examples, or 1 where its arrays do not say; raises ArgumentError for 0."""
    try:
        size = float(size_of(batch))
    except errors.ArgumentError:
        return 1.0
    if not size:
        raise errors.ArgumentError(f"{name}: a batch has no examples, and so no mean loss; leave it out")
    return size


def _steps(loader: Loader, accumulate: int) -> int | None:
    try:
        return math.ceil(len(loader) / accumulate)
    except TypeError:
        return None


def _as_array(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x


def _plain(value: Any) -> Any:
    """A metric's value as plain JSON."""
    return value.tolist() if is_array(value) else value
