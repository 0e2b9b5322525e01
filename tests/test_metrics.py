"""Metrics over batches of any sizes are scikit-learn's on the whole set."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from conftest import peer
from each import Each
from sklearn.calibration import calibration_curve

import adjoint as ad
from adjoint import errors

train = ad.train
sk = sklearn.metrics
AVERAGES = ("micro", "macro", "weighted", None)
SEEDS = pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6)]])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def batches(rng: Any, rows: int, *arrays: Any) -> Iterator[tuple[Any, ...]]:
    """Parts of different sizes, also of none."""
    cuts = np.sort(rng.integers(0, rows + 1, 5))
    for begin, end in zip([0, *cuts], [*cuts, rows], strict=True):
        yield tuple(None if x is None else x[begin:end] for x in arrays)


def streamed(metric: Any, rng: Any, prediction: Any, target: Any, weight: Any = None) -> Any:
    """The value over random batches, every second of them as tensors; the state is saved and loaded on the way."""
    state = metric.init()
    for k, (y, t, w) in enumerate(batches(rng, len(target), prediction, target, weight)):
        y, t = (ad.tensor(y), ad.tensor(t)) if k % 2 else (y, t)
        before = repr(state)
        new = metric.update(state, y, t, w)
        assert repr(state) == before
        state = ad.tree.map(np.copy, new) if k % 3 else new
    return metric.value(state)


def compare(
    metric: Any, theirs: Any, pair: Any, rng: Any, prediction: Any, target: Any, weight: Any = None, **options: Any
) -> None:
    """With and without weights: `theirs` gets targets and predictions as scikit-learn wants them, the pair."""
    for w in (None, weight) if weight is not None else (None,):
        wanted = theirs(*pair, sample_weight=w, **options)
        np.testing.assert_allclose(streamed(metric, rng, prediction, target, w), wanted, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(metric.compute(prediction, target, w), wanted, rtol=1e-10, atol=1e-12)


def present(x: Any, t: Any) -> Any:
    """The classes that occur: scikit-learn leaves the others out."""
    return np.union1d(x, t)


RATIOS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "precision": (train.Precision, sk.precision_score),
    "recall": (train.Recall, sk.recall_score),
    "f1": (lambda **kw: train.FBeta(1, **kw), sk.f1_score),
    "f0.5": (lambda **kw: train.FBeta(0.5, **kw), lambda *a, **kw: sk.fbeta_score(*a, beta=0.5, **kw)),
}


@SEEDS
@pytest.mark.parametrize("kind", ["scores", "labels"])
def test_several_classes(kind: str, seed: int) -> None:
    """Class 4 never occurs in the targets; with labels, nowhere."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(1, 80)), 6
    t = rng.choice([0, 1, 2, 3, 5], n)
    scores = np.round(rng.normal(size=(n, classes)), 1) + 2 * np.eye(classes)[t]
    scores[:, 4] -= 100 if kind == "labels" else 0
    y = scores.argmax(axis=1)
    w = rng.integers(0, 4, n) + 0.5
    given = scores if kind == "scores" else y
    with Each() as each:
        with each("accuracy"):
            compare(train.Accuracy(), sk.accuracy_score, (t, y), rng, given, t, w)
        for name, (ours, theirs) in RATIOS.items():
            for average in AVERAGES:
                with each(name, average):
                    keep = present(y, t) if average is None else slice(None)
                    found = streamed(ours(average=average), rng, given, t, w)
                    wanted = theirs(t, y, average=average, sample_weight=w)
                    np.testing.assert_allclose(np.atleast_1d(found)[keep], np.atleast_1d(wanted), rtol=1e-10)
                    if average is None:
                        assert np.isnan(np.delete(found, keep)).all()
                    else:
                        compare(ours(average=average), theirs, (t, y), rng, given, t, average=average)
        for normalize in ("true", "pred", "all", None):
            with each("confusion", normalize):
                labels = range(classes) if kind == "scores" else range(max(y.max(), t.max()) + 1)
                metric = train.ConfusionMatrix(normalize=normalize)
                compare(metric, sk.confusion_matrix, (t, y), rng, given, t, w, labels=labels, normalize=normalize)


@SEEDS
def test_scores_of_several_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, classes = 60, 5
    t = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    logits = np.round(rng.normal(size=(n, classes)), 1)  # with ties
    p = softmax(logits)
    w = rng.uniform(0.1, 3, n)
    labels = np.arange(classes)
    with Each() as each:
        for k in (1, 2, 4):
            with each("top", k):
                compare(train.TopK(k), sk.top_k_accuracy_score, (t, logits), rng, logits, t, w, k=k, labels=labels)
        for average in AVERAGES:
            with each("auroc", average):
                options = {"multi_class": "ovr", "average": average}
                compare(train.AUROC(average=average), sk.roc_auc_score, (t, p), rng, p, t, w, **options)
                ours = train.AUROC(average=average, logits=True)
                compare(ours, sk.roc_auc_score, (t, p), rng, logits, t, **options)
        theirs = lambda *pair, **options: np.exp(sk.log_loss(*pair, **options))
        with each("perplexity"):
            compare(train.Perplexity(), theirs, (t, p), rng, logits, t, w)
        with each("perplexity of log-probabilities"):
            compare(train.Perplexity(), theirs, (t, p), rng, np.log(p), t, w)
        with each("calibration"):
            right, sure = (p.argmax(axis=1) == t).astype(int), p.max(axis=1)
            check_calibration(rng, right, sure, 4, logits, t, logits=True)


def check_calibration(rng: Any, true: Any, p: Any, bins: int, prediction: Any, target: Any, **options: Any) -> None:
    found = streamed(train.Calibration(bins, **options), rng, prediction, target)
    theirs = calibration_curve(true, p, n_bins=bins)
    used = found[:, 2] > 0
    assert found.shape == (bins, 3)
    assert found[:, 2].sum() == len(p)
    np.testing.assert_allclose(found[used, 1], theirs[0])
    np.testing.assert_allclose(found[used, 0], theirs[1])
    assert np.isnan(found[~used, :2]).all()
    error = streamed(train.CalibrationError(bins, **options), rng, prediction, target)
    edges = np.linspace(0, 1, bins + 1)
    edges[0] = -1  # the first bin has its lower end
    parts = [(p > low) & (p <= high) for low, high in zip(edges, edges[1:], strict=False)]
    np.testing.assert_allclose(error, sum(abs((true[s] - p[s]).sum()) for s in parts) / len(p), atol=1e-12)


@SEEDS
def test_two_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 50
    t = rng.integers(0, 2, n)
    p = np.round(np.clip(rng.normal(0.3 + 0.3 * t, 0.3), 0, 1), 2)  # ties, also at 0, 1 and the threshold
    y = (p > 0.5).astype(int)
    w = rng.uniform(0, 3, n)
    with Each() as each:
        for shape in ((n,), (n, 1)):
            for target in (t, t.astype(float), t.astype(bool)):
                with each("accuracy", shape, target.dtype):
                    given = p.reshape(shape), target.reshape(shape)
                    compare(train.Accuracy(), sk.accuracy_score, (t, y), rng, *given, w)
        with each("a column of scores, labels in a row"):
            assert train.Accuracy().compute(p[:, None], t) == sk.accuracy_score(t, y)
        for name, (ours, theirs) in RATIOS.items():
            for average in ("binary", *AVERAGES):
                with each(name, average):
                    compare(ours(average=average), theirs, (t, y), rng, p, t, w, average=average)
        with each("auroc"):
            compare(train.AUROC(), sk.roc_auc_score, (t, p), rng, p, t, w)
        with each("calibration"):
            check_calibration(rng, t, p, 5, p, t)
        with each("logits"):
            logits = np.log((p + 0.01) / (1.01 - p))
            check_calibration(rng, t, 1 / (1 + np.exp(-logits)), 5, logits, t, logits=True)
            assert train.Accuracy(threshold=0.0).compute(logits, t) == sk.accuracy_score(t, logits > 0)


@SEEDS
def test_several_labels_at_once(seed: int) -> None:
    """One label never occurs, in targets or predictions."""
    rng = np.random.default_rng(seed)
    n, labels = 40, 4
    t = rng.integers(0, 2, (n, labels))
    p = np.round(rng.uniform(size=(n, labels)), 1)
    t[:, 2] = 0
    p[:, 2] *= 0.4
    y, w = (p > 0.5).astype(int), rng.uniform(0.1, 3, n)
    with Each() as each:
        for given in (p, y):
            with each("accuracy", given.dtype):
                compare(train.Accuracy(), sk.accuracy_score, (t, y), rng, given, t, w)
        for name, (ours, theirs) in RATIOS.items():
            for average in AVERAGES:
                with each(name, average):
                    given = p if average else y
                    compare(ours(average=average), theirs, (t, y), rng, given, t, w, average=average)
        for average in AVERAGES:
            with each("auroc", average):
                some = [0, 1, 3]  # scikit-learn's "weighted" is a number for a label without examples, all else nan
                pair = t[:, some], p[:, some]
                compare(train.AUROC(average=average), sk.roc_auc_score, pair, rng, *pair[::-1], w, average=average)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2)])
def test_numbers(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    n = 40
    t = rng.normal(1e3, 1, (n, *shape))
    y = t + rng.normal(0, 0.5, t.shape)
    w = rng.uniform(0, 3, n)
    flat = lambda x: x.reshape(n, -1)
    pairs = [
        (train.MAE(), sk.mean_absolute_error),
        (train.RMSE(), sk.root_mean_squared_error),
        (train.R2(), sk.r2_score),
    ]
    with Each() as each:
        for metric, theirs in pairs:
            with each(metric.name):
                compare(metric, theirs, (flat(t), flat(y)), rng, y, t, w)
        for prediction in (np.ones(4), np.arange(4.0)):
            with each("R2 of what does not vary", prediction):
                assert train.R2().compute(prediction, np.ones(4)) == sk.r2_score(np.ones(4), prediction)


def test_a_mean_counts_examples_and_not_batches() -> None:
    rng = np.random.default_rng(0)
    y, t = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    wanted = ad.nn.cross_entropy(ad.tensor(y), ad.tensor(t)).item()
    each = lambda y, t: ad.nn.cross_entropy(ad.asarray(y), ad.asarray(t), reduction="none")
    batch = lambda y, t: ad.nn.cross_entropy(ad.asarray(y), ad.asarray(t))
    found = [train.Mean(f, name="loss").compute(y, t) for f in (each, batch)]
    np.testing.assert_allclose(found, wanted)
    state = train.Mean(batch).init()
    for part in ((y[:3], t[:3]), (y[3:], t[3:])):
        state = train.Mean(batch).update(state, *part)
    np.testing.assert_allclose(train.Mean(batch).value(state), wanted)
    np.testing.assert_allclose(
        train.Mean(each).compute(y, t, np.arange(30)),
        sk.log_loss(t, softmax(y), sample_weight=np.arange(30)),
    )
    with pytest.raises(errors.ArgumentError, match="weights need a number for each example"):
        train.Mean(batch).compute(y, t, np.arange(30))


def test_axes_behind_the_classes_and_targets_that_do_not_count() -> None:
    rng = np.random.default_rng(0)
    y, t = rng.normal(size=(4, 3, 5)), rng.integers(0, 3, (4, 5))
    t[:, 4] = -100
    rows, labels = np.moveaxis(y, 1, -1)[:, :4].reshape(-1, 3), t[:, :4].ravel()
    wanted = ad.nn.cross_entropy(ad.tensor(y), ad.tensor(t)).exp().item()
    np.testing.assert_allclose(train.Perplexity().compute(y, t), wanted)
    assert train.Accuracy().compute(y, t) == sk.accuracy_score(labels, rows.argmax(axis=1))
    mask = (t >= 0).astype(float)
    assert train.Accuracy().compute(y, np.maximum(t, 0), mask) == sk.accuracy_score(labels, rows.argmax(axis=1))
    assert train.Accuracy(ignore_index=2).compute([0, 1, 1], [0, 2, 2]) == 1.0
    probabilities = softmax(rows)
    wanted = sk.roc_auc_score(labels, probabilities, multi_class="ovr")
    np.testing.assert_allclose(train.AUROC(logits=True).compute(y, t), wanted)


EMPTY: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [
    (train.Accuracy(), (0, 3), (0,)),
    (train.TopK(2), (0, 3), (0,)),
    (train.Precision(average="macro"), (0, 3), (0,)),
    (train.Recall(), (0,), (0,)),
    (train.FBeta(1, average="micro"), (0, 3), (0,)),
    (train.AUROC(), (0,), (0,)),
    (train.AUROC(), (0, 3), (0,)),
    (train.CalibrationError(), (0,), (0,)),
    (train.Perplexity(), (0, 3), (0,)),
    (train.MAE(), (0,), (0,)),
    (train.RMSE(), (0, 2), (0, 2)),
    (train.R2(), (0,), (0,)),
]


def test_without_examples_there_is_nan() -> None:
    with Each() as each:
        for metric, scores, labels in EMPTY:
            with each(metric, scores):
                assert np.isnan(metric.value(metric.init()))
                assert np.isnan(metric.compute(np.zeros(scores), np.zeros(labels)))
        with each("one example has no variance"):
            assert np.isnan(train.R2().compute([1.0], [1.0]))
        with each("one class alone has no curve"):
            assert np.isnan(train.AUROC().compute([0.1, 0.2], [1, 1]))
        with each("a confusion matrix"):
            assert train.ConfusionMatrix().value(train.ConfusionMatrix().init()).shape == (0, 0)


def test_nan_is_no_right_answer() -> None:
    nan = float("nan")
    scores = [[nan, nan, nan], [0.0, 1.0, 0.0]]
    assert train.TopK(2).compute(scores, [2, 1]) == 0.5
    assert np.isnan(train.AUROC().compute([nan, 0.5], [0, 1]))
    assert np.isnan(train.AUROC(logits=True).compute(scores, [2, 1]))
    assert np.isnan(train.Perplexity().compute(scores, [2, 1]))
    some = [[nan, 1.0], [0.2, 0.8]]  # nan in one place
    for metric in (train.Accuracy(), train.Precision(), train.Recall(), train.FBeta(), train.Accuracy(logits=True)):
        assert np.isnan(metric.compute(some, [1, 1]))
        assert np.isnan(metric.compute([nan, 0.9], [1, 1]))
        assert np.isnan(metric.value(metric.update(metric.update(metric.init(), some, [1, 1]), [0.1, 0.9], [0, 1])))
    assert np.isnan(train.Accuracy().compute([[0.1, nan], [0.2, 0.8]], [[0, 1], [0, 1]]))
    assert np.isnan(train.ConfusionMatrix().compute(some, [1, 1])).any()


def test_a_class_that_never_occurs_has_no_area() -> None:
    p = softmax(np.array([[1.0, 0.0, 0.5], [0.2, 1.0, 0.1], [0.3, 0.2, 0.0]]))
    areas = train.AUROC(average=None).compute(p, [0, 1, 0])
    np.testing.assert_array_equal(np.isnan(areas), [False, False, True])
    assert np.isnan(train.AUROC().compute(p, [0, 1, 0]))


def test_states_are_bounded_but_for_auroc() -> None:
    """And its chunks are few, so that a batch does not copy all that came before."""
    rng = np.random.default_rng(0)
    metrics = [train.Accuracy(), train.ConfusionMatrix(), train.Calibration(), train.FBeta(1), train.AUROC()]
    states = [metric.init() for metric in metrics]
    for _ in range(200):
        y, t = rng.uniform(size=3), rng.integers(0, 2, 3)
        states = [metric.update(state, y, t) for metric, state in zip(metrics, states, strict=True)]
    sizes = [sum(np.size(x) for x in ad.tree.leaves(state)) for state in states]
    assert max(sizes[:-1]) <= 30
    assert len(states[-1]["chunks"]) <= 9
    assert sizes[-1] == 3 * 600


def test_rate_and_memory() -> None:
    rate = train.Rate()
    state = rate.init()
    for size in (3, 5):
        state = rate.update(state, np.zeros((size, 2)), None)
    assert state["examples"] == 8
    assert rate.value(state) == 8 / state["seconds"]
    loaded = rate.update({**json.loads(json.dumps(state)), "process": 0.0}, np.zeros((4, 2)), None)
    assert (loaded["examples"], loaded["seconds"]) == (8, state["seconds"])
    assert rate.update(loaded, np.zeros((4, 2)), None)["examples"] == 12
    block = np.ones(2**22)  # 32 MiB
    most = train.Memory().compute(block, block)
    assert 32 < most < 2**20
    assert train.Memory().update({"most": 1e9}, block, block) == {"most": 1e9}


def test_names() -> None:
    names = [m.name for m in (train.Accuracy(), train.TopK(3), train.FBeta(0.5), train.CalibrationError(), train.R2())]
    assert names == ["accuracy", "top3_accuracy", "f0.5", "calibration_error", "r2"]
    assert train.Precision(name="p", average=None) == train.Precision(average=None, name="p")
    assert train.Mean(lambda y, t: 0.0).name == "lambda"


ONE = np.zeros(2)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: train.TopK(0), errors.ArgumentError, "k is a positive integer"),
    (lambda: train.FBeta(-1), errors.ArgumentError, "beta is a positive number"),
    (lambda: train.Precision(average="all"), errors.ArgumentError, "average is 'binary'"),
    (lambda: train.AUROC(average="binary"), errors.ArgumentError, "average is 'macro'"),
    (lambda: train.Calibration(0), errors.ArgumentError, "bins is a positive integer"),
    (lambda: train.Accuracy(name=3), errors.ArgumentTypeError, "name is a string"),
    (lambda: train.Mean(3), errors.ArgumentTypeError, "expected a function"),
    (lambda: train.Accuracy().compute(np.zeros((2, 3)), np.zeros(3)), errors.ShapeError, "do not fit"),
    (lambda: train.Accuracy().compute(ONE, np.zeros((2, 1))), errors.ShapeError, "do not fit"),
    (lambda: train.Accuracy().compute(1.0, 1), errors.ShapeError, "do not fit"),
    (lambda: train.Accuracy().compute(ONE + 1j, ONE), errors.DtypeError, "scores or labels"),
    (lambda: train.Accuracy().compute(np.zeros((2, 3), int), ONE), errors.DtypeError, "floating numbers"),
    (lambda: train.Accuracy().compute(ONE, ONE + 0.5), errors.ArgumentError, "class numbers from 0"),
    (lambda: train.Accuracy().compute(ONE, ONE - 1), errors.ArgumentError, "class numbers from 0"),
    (lambda: train.Accuracy().compute(ONE, ONE + np.nan), errors.ArgumentError, "class numbers from 0"),
    (lambda: train.Accuracy().compute(np.zeros((2, 3)), [0, 3]), errors.OutOfRangeError, "3 is none of 3 classes"),
    (lambda: train.Accuracy().compute(np.zeros((2, 3)), [[0, 1, 2]] * 2), errors.ArgumentError, "0 or 1 for each"),
    (lambda: train.Accuracy().compute(ONE, ONE, [1, 2, 3]), errors.ShapeError, "weights have shape"),
    (lambda: train.Accuracy().compute(ONE, ONE, [1, -2]), errors.ArgumentError, "weights are 0 or more"),
    (lambda: train.Precision().compute(np.zeros((2, 3)), [0, 1]), errors.ArgumentError, 'choose average="macro"'),
    (lambda: train.Recall().compute(np.zeros((2, 3)), np.zeros((2, 3))), errors.ArgumentError, "3 labels"),
    (lambda: train.TopK(1).compute(ONE, ONE), errors.ArgumentError, "scores of several classes"),
    (lambda: train.AUROC().compute([0, 1], [0, 1]), errors.ArgumentError, "received labels"),
    (lambda: train.AUROC().compute(np.zeros((2, 3)), [0, 1]), errors.ArgumentError, "logits=True"),
    (lambda: train.Calibration().compute(ONE - 1, ONE), errors.ArgumentError, "logits=True"),
    (lambda: train.Calibration().compute(np.zeros((2, 3)), np.zeros((2, 3))), errors.ArgumentError, "several labels"),
    (lambda: train.Perplexity().compute(ONE, ONE), errors.ArgumentError, "logits of several classes"),
    (lambda: train.ConfusionMatrix().compute(np.zeros((2, 3)), np.zeros((2, 3))), errors.ArgumentError, "of one class"),
    (lambda: train.MAE().compute(ONE, np.zeros((2, 1))), errors.ShapeError, "one shape"),
    (lambda: train.R2().compute(ONE + 1j, ONE), errors.DtypeError, "real numbers"),
]  # fmt: skip


def test_what_makes_no_sense_is_refused() -> None:
    with Each() as each:
        for call, error, message in REFUSED:
            with each(message), pytest.raises(error, match=re.escape(message)):
                call()


@pytest.mark.parametrize("name", ["numpy", "reference", "torch", "jax", "dask"])
def test_values_of_tracked_tensors_and_of_other_leaves(name: str) -> None:
    if name not in ("numpy", "reference"):
        peer(name)
    scores = ad.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=ad.float32, device=name)
    labels = ad.tensor([0, 0], dtype=ad.int32, device=name)
    for x in (scores, scores.require_grad() * 1):
        assert train.Accuracy().compute(x, labels) == 0.5
        assert train.TopK(2).compute(x, labels) == 1.0
        np.testing.assert_allclose(train.MAE().compute(x, ad.zeros_like(x)), 0.5, rtol=1e-6)
        loss = train.Mean(ad.nn.cross_entropy).compute(x, labels)
        np.testing.assert_allclose(np.exp(loss), train.Perplexity().compute(x, labels), rtol=1e-6)


# --- classes on another axis, logits, weights -----------------------------------------------------


@pytest.mark.parametrize(
    "metric",
    [
        train.Accuracy(axis=-1),
        train.TopK(2, axis=-1),
        train.Precision(average="macro", axis=-1),
        train.FBeta(2, average=None, axis=-1),
        train.ConfusionMatrix(axis=-1),
        train.AUROC(logits=True, axis=-1),
        train.CalibrationError(logits=True, axis=-1),
        train.Perplexity(axis=-1),
    ],
    ids=lambda metric: type(metric).__name__,
)
def test_classes_of_sequences_are_last(metric: Any) -> None:
    """(batch, steps, classes) is what (batch, classes, steps) is, and what all steps are as examples."""
    rng = np.random.default_rng(4)
    scores, labels = rng.normal(size=(6, 5, 4)), rng.integers(0, 4, (6, 5))
    weight = rng.integers(0, 2, (6, 5))
    usual = dataclasses.replace(metric, axis=1)
    for w in (None, weight):
        found = metric.compute(scores, labels, w)
        np.testing.assert_allclose(found, usual.compute(np.moveaxis(scores, -1, 1), labels, w), rtol=1e-12)
        flat = None if w is None else w.ravel()
        np.testing.assert_allclose(found, usual.compute(scores.reshape(-1, 4), labels.ravel(), flat), rtol=1e-12)
    with pytest.raises(errors.AxisError, match="axis 3 is out of range"):
        dataclasses.replace(metric, axis=3).compute(scores, labels)


def test_logits_are_said_in_one_way() -> None:
    rng = np.random.default_rng(5)
    logits, labels = rng.normal(size=50), rng.integers(0, 2, 50)
    p = 1 / (1 + np.exp(-logits))
    for kind in (train.Accuracy, train.Precision, train.Recall, train.FBeta):
        for threshold in (0.2, 0.5, 0.9):
            found = kind(logits=True, threshold=threshold).compute(logits, labels)
            assert found == kind(threshold=threshold).compute(p, labels)
    several = rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 3))
    assert train.Accuracy(logits=True).compute(*several) == train.Accuracy(threshold=0.0).compute(*several)
    with pytest.raises(errors.ArgumentError, match="with logits=True the threshold is a probability, between 0 and 1"):
        train.Accuracy(logits=True, threshold=0)
    assert repr(train.Calibration(4, logits=True)) == "Calibration(4, logits=True)"
