"""Learning on a graph: who stays when a karate club splits.

For two years W. Zachary watched who of a karate club met whom outside of it (An Information Flow Model for Conflict and
Fission in Small Groups, 1977). Then the club split, between its teacher and its president. A graph network is told
the side of these two alone. It mixes what it knows of each member with what it knows of friends, twice, and so finds
the sides of the other 32 (Kipf and Welling, 2017). The picture shows the graph, and how sure the network is; places
in it are found by gradients, too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

# friends of each member with higher numbers, from figure 3 of Zachary's paper; members count from 0
FRIENDS = {
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    1: [2, 3, 7, 13, 17, 19, 21, 30],
    2: [3, 7, 8, 9, 13, 27, 28, 32],
    3: [7, 12, 13],
    4: [6, 10],
    5: [6, 10, 16],
    6: [16],
    8: [30, 32, 33],
    9: [33],
    13: [33],
    14: [32, 33],
    15: [32, 33],
    18: [32, 33],
    19: [33],
    20: [32, 33],
    22: [32, 33],
    23: [25, 27, 29, 32, 33],
    24: [25, 27, 31],
    25: [31],
    26: [29, 33],
    27: [33],
    28: [31, 33],
    29: [32, 33],
    30: [32, 33],
    31: [32, 33],
    32: [33],
}
EDGES = np.array([(one, other) for one, others in FRIENDS.items() for other in others])
MEMBERS, TEACHER, PRESIDENT = 34, 0, 33
STAYED = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21])  # with the teacher
SIDES = np.where(np.isin(np.arange(MEMBERS), STAYED), 0, 1)
KNOWN = np.array([TEACHER, PRESIDENT])
HIDDEN = 8

Array = np.ndarray


def mixed(x: Any) -> Any:
    """A mean over each member and friends, weighted by 1 / sqrt(degree degree)."""
    loops = np.arange(MEMBERS)
    source = np.concatenate([EDGES[:, 0], EDGES[:, 1], loops])
    target = np.concatenate([EDGES[:, 1], EDGES[:, 0], loops])
    degree = np.bincount(target)
    weight = 1 / np.sqrt(degree[source] * degree[target])
    return ad.segment_sum(weight[:, None] * x[source], target, MEMBERS)


def scores(model: Any, x: Array) -> Any:
    """(members, 2): a score for either side."""
    return mixed(ad.tanh(mixed(x @ model["first"])) @ model["second"])


def loss(model: Any) -> Any:
    """Cross entropy of the two members whose side is known, and a penalty."""
    found = ad.nn.cross_entropy(scores(model, np.eye(MEMBERS))[KNOWN], SIDES[KNOWN])
    return found + 5e-4 * sum([(w**2).sum() for w in model.values()])


def learn(iterations: int, seed: int) -> Array:
    """The probability of either side for each member, (members, 2)."""
    rng = np.random.default_rng(seed)
    shapes = {"first": (MEMBERS, HIDDEN), "second": (HIDDEN, 2)}
    model: Any = {name: ad.tensor(rng.normal(size=s) / np.sqrt(s[0])) for name, s in shapes.items()}
    optimizer = ad.optim.Adam(lr=0.02)
    state = optimizer.init(model)
    slope = ad.compile(ad.grad(loss))
    for _ in progress(iterations, "learning"):
        model, state = optimizer.step(model, slope(model), state)
    return ad.nn.softmax(scores(model, np.eye(MEMBERS)), axis=-1).numpy()


def steps_between() -> Array:
    """How many friends lie between each two members, by Floyd's and Warshall's algorithm."""
    away = np.full((MEMBERS, MEMBERS), float(MEMBERS))
    away[EDGES[:, 0], EDGES[:, 1]] = away[EDGES[:, 1], EDGES[:, 0]] = 1
    np.fill_diagonal(away, 0)
    for k in range(MEMBERS):
        away = np.minimum(away, away[:, k, None] + away[k])
    return away


def places(seed: int) -> Array:
    """Places in the plane whose distances are near the numbers of steps (Kamada and Kawai, 1989)."""
    i, j = np.triu_indices(MEMBERS, 1)
    wanted = steps_between()[i, j]

    def stress(at: Any) -> Any:
        between = ad.sqrt(((at[i] - at[j]) ** 2).sum(axis=1) + 1e-9)
        return ((between / wanted - 1) ** 2).sum()

    start = np.random.default_rng(seed).normal(size=(MEMBERS, 2))
    slope = ad.compile(ad.value_and_grad(lambda flat: stress(flat.reshape(MEMBERS, 2))))
    at = scipy.optimize.minimize(slope, start.ravel(), jac=True, method="L-BFGS-B").x.reshape(MEMBERS, 2)
    at -= at.mean(axis=0)
    return at @ np.linalg.svd(at)[2].T  # turned, so that it is wide


def draw(path: Path, probability: Array, at: Array) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 6), layout="constrained")
    axes = figure.subplots()
    for one, other in EDGES:
        axes.plot(*at[[one, other]].T, color="0.8", linewidth=1, zorder=1)
    for side, mark in ((0, "o"), (1, "s")):
        members = np.flatnonzero(side == SIDES)
        shown = axes.scatter(*at[members].T, c=probability[members, 1], cmap="coolwarm", vmin=0, vmax=1, marker=mark,
                             s=260, edgecolors="0.2", zorder=2)  # fmt: skip
    for member, (x, y) in enumerate(at):
        axes.text(x, y, str(member), ha="center", va="center", fontsize=8, zorder=3)
    figure.colorbar(shown, ax=axes, label="probability of the president's side")
    axes.set(title="circles went with the teacher (0), squares with the president (33)", xticks=[], yticks=[])
    axes.set_aspect("equal")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("karate.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=200, help="of learning (200)")
    parser.add_seed("the network at the start, and places")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("karate.py"):
        probability = learn(options.iterations, options.seed)
        others = np.setdiff1d(np.arange(MEMBERS), KNOWN)
        right = probability.argmax(axis=1) == SIDES
        print(f"{right[others].sum()} of {len(others)} sides are right")
        print("wrong:", ", ".join([f"member {m}, {probability[m, SIDES[m]]:.2f}" for m in np.flatnonzero(~right)]))
        draw(options.out, probability, places(options.seed))


if __name__ == "__main__":
    main(sys.argv[1:])
