"""A deep ensemble: twenty networks, trained as one, which say how sure they are.

The networks learn from scikit-learn's diabetes data how far the disease will have gone in a year, from ten
measurements: each gives a mean and a variance. They differ in their first weights and in the patients of each step.
Together they know more, and where there was little data they disagree, which is added to the variance (B.
Lakshminarayanan et al., Simple and scalable predictive uncertainty estimation using deep ensembles, 2017). All are one
module whose parameters have an axis in front, and one call of `ad.vmap` gives all gradients. Prints the negative
log-likelihood of patients who were held out, and draws how sure the ensemble is. Takes five seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

HIDDEN, STEPS, BATCH = 20, 150, 32
BMI = 2  # the column of the body mass index

Array = np.ndarray


class Data(NamedTuple):
    """Measurements (patients, 10) and progression (patients, 1), both standardised by those to learn from."""

    x: Array
    y: Array


class Scale(NamedTuple):
    """What a column was divided by, after its mean was taken off."""

    mean: Array
    std: Array


def load(seed: int) -> tuple[Data, Data, Scale]:
    """Patients to learn from, a fifth held out, and the scale of all columns, of which progression is the last."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = np.column_stack([bunch.data, bunch.target]).astype("float32")
    train, test = (part[:] for part in ad.data.split(columns, (0.8, 0.2), seed=seed))
    scale = Scale(train.mean(0), train.std(0))
    train, test = ((part - scale.mean) / scale.std for part in (train, test))
    return Data(train[:, :-1], train[:, -1:]), Data(test[:, :-1], test[:, -1:]), scale


def network() -> ad.nn.Module:
    linear, relu = ad.nn.Linear, ad.nn.relu
    return ad.nn.Sequential(linear(10, HIDDEN), relu, linear(HIDDEN, HIDDEN), relu, linear(HIDDEN, 2))


def moments(model: Any, x: Any) -> tuple[Any, Any]:
    """The mean and the variance of y given x."""
    found = model(ad.asarray(x))
    return found[:, :1], ad.nn.softplus(found[:, 1:]) + 1e-3


def loss(model: Any, x: Any, y: Any) -> Any:
    mean, variance = moments(model, x)
    return ad.nn.gaussian_nll_loss(mean, y, variance, full=True)


def fit(data: Data, members: int, seed: int) -> ad.nn.Module:
    """All members at once, each by its own patients in each step."""
    rng = np.random.default_rng(seed)
    models = ad.tree.map(lambda *ws: ad.stack(ws), *[network() for _ in range(members)])
    optimizer = ad.optim.Adam(lr=ad.optim.cosine(5e-3, STEPS))
    state, slopes = optimizer.init(models), ad.vmap(ad.grad(loss))
    for _ in progress(STEPS, "training"):
        chosen = rng.integers(len(data.x), size=(members, BATCH))
        models, state = optimizer.step(models, slopes(models, data.x[chosen], data.y[chosen]), state)
    return models


def predicted(models: Any, x: Array) -> tuple[Array, Array]:
    """The means and variances of all members, of shape (members, patients, 1)."""
    means, variances = ad.vmap(moments, in_axes=(0, None))(models, x)
    return means.numpy(), variances.numpy()


def together(means: Array, variances: Array) -> tuple[Array, Array]:
    """The mean and the variance of the mixture: that of the members, and how far they disagree."""
    return means.mean(0), variances.mean(0) + means.var(0)


def surprise(y: Array, mean: Array, variance: Array) -> float:
    """The mean negative log-likelihood, as of normal numbers."""
    return ad.nn.gaussian_nll_loss(ad.asarray(mean), y, ad.asarray(variance), full=True).item()


# --- what people see ---


def draw(path: Path, models: Any, train: Data, test: Data, scale: Scale) -> None:
    """Progression by body mass index, where all else is average, and what more members are good for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1))
    bmi = np.linspace(10, 55, 181)
    x = np.zeros((len(bmi), 10), "float32")
    x[:, BMI] = (bmi - scale.mean[BMI]) / scale.std[BMI]
    means, variances = predicted(models, x)
    mean, variance = together(means, variances)
    back = lambda y: y[..., 0] * scale.std[-1] + scale.mean[-1]
    for spread, alpha, said in (
        (np.sqrt(variance), 0.15, "two standard deviations"),
        (means.std(0), 0.5, "of them, where members disagree"),
    ):
        low, high = back(mean - 2 * spread), back(mean + 2 * spread)
        left.fill_between(bmi, low, high, color="tab:blue", alpha=alpha, linewidth=0, label=said)
    left.plot(bmi, back(means).T, color="tab:blue", linewidth=0.5, alpha=0.6)
    left.plot(bmi, back(mean), color="black", linewidth=2, label="ensemble, and its members")
    recorded = train.x[:, BMI] * scale.std[BMI] + scale.mean[BMI]
    left.plot(recorded, back(train.y), ".", color="tab:orange", markersize=4, zorder=1, label="patients")
    left.set(xlabel="body mass index (all else average)", ylabel="progression in a year", xlim=(10, 55))
    left.set_title("Beyond the data the members disagree more")
    left.legend(loc="upper left")

    means, variances = predicted(models, test.x)
    counts = range(1, len(means) + 1)
    each = [surprise(test.y, *one) for one in zip(means, variances, strict=True)]
    grown = [surprise(test.y, *together(means[:k], variances[:k])) for k in counts]
    right.plot(counts, each, "o", color="tab:orange", label="each member alone")
    right.axhline(np.mean(each), color="tab:orange", linestyle="--", label="their average")
    right.plot(counts, grown, color="black", linewidth=2, label="ensemble of so many")
    right.set_xticks(counts[4::5])
    right.set(xlabel="members", ylabel="negative log-likelihood", title="Held-out patients: lower is better")
    right.grid(alpha=0.3)
    right.legend()
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("ensemble.py", __doc__)
    parser.add_argument("--members", type=at_least(2), default=20, help="networks (20)")
    parser.add_seed("the split, the weights and the patients of each step")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("ensemble.py"):
        ad.random.seed(options.seed)
        train, test, scale = load(options.seed)
        models = fit(train, options.members, options.seed)
        means, variances = predicted(models, test.x)
        each = [surprise(test.y, *one) for one in zip(means, variances, strict=True)]
        print("negative log-likelihood of held-out patients:")
        print(f"members   {np.mean(each):.3f} on average, the best {min(each):.3f}")
        print(f"ensemble  {surprise(test.y, *together(means, variances)):.3f}")
        draw(options.out, models, train, test, scale)


if __name__ == "__main__":
    main(sys.argv[1:])
