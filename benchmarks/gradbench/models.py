"""gmm: a mixture of normal distributions.  kmeans: a step of Newton's.  lstm: a network with diagonal weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import multigammaln

from benchmarks.gradbench.libraries import Library, Problem, Run, arrays

Data = tuple[Any, ...]


def _gmm_data(d: int, k: int, n: int) -> Data:
    """Logarithms of weights, means, factors of the inverse covariances (logarithms of the diagonal first), points."""
    rng = np.random.default_rng(31337)
    return rng.normal(size=k), rng.random((k, d)), rng.normal(size=(k, d + d * (d - 1) // 2)), rng.normal(size=(n, d))


def _gmm(lib: Library, data: Data) -> Run:
    """The logarithm of the posterior with a Wishart prior of gamma = 1 and m = 0, by all parameters."""
    xp, (n, d), k = lib.xp, data[3].shape, len(data[0])
    rows, columns = np.tril_indices(d, -1)
    place = np.zeros((d, d), int)
    place[columns, rows] = 0
    order = np.lexsort((rows, columns))  # column after column
    place[rows[order], columns[order]] = d + np.arange(len(rows))
    below = lib.array(np.tri(d, k=-1))
    freedom = d + 1
    prior = k * (freedom * d * math.log(1 / math.sqrt(2)) - float(multigammaln(freedom / 2, d)))
    constant = -n * d * 0.5 * math.log(2 * math.pi) - prior

    def posterior(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
        diagonals = xp.exp(icf[:, :d])
        sums = xp.sum(icf[:, :d], 1)
        lower = icf[:, place] * below
        centred = x[:, None, :] - means
        products = xp.matmul(lower, lib.permute(centred, (1, 2, 0)))  # of each component: (k, d, n)
        whitened = diagonals * centred + lib.permute(products, (2, 0, 1))
        terms = alphas + sums - 0.5 * xp.sum(whitened * whitened, 2)
        wishart = 0.5 * (xp.sum(diagonals * diagonals) + xp.sum(icf[:, d:] * icf[:, d:]))
        return constant + xp.sum(lib.logsumexp(terms, 1)) - n * lib.logsumexp(alphas, 0) + wishart

    gradient = lib.compiled(lib.grad(posterior, (0, 1, 2)))
    given = arrays(lib, data)
    return lambda: gradient(*given)


def _kmeans_data(k: int, n: int, d: int) -> Data:
    points = np.random.default_rng(31337).random((n, d))
    return points[-k:].copy(), points


def _kmeans(lib: Library, data: Data) -> Run:
    """The gradient of the sum of squared distances to the nearest centre, divided by the Hessian, which is diagonal."""
    xp = lib.xp

    def cost(centres: Any, points: Any) -> Any:
        squares = xp.sum(centres * centres, 1) - 2 * xp.matmul(points, centres.T) + xp.sum(points * points, 1)[:, None]
        return xp.sum(lib.smallest(squares))

    def direction(centres: Any, points: Any) -> Any:
        slope = lib.grad(cost)
        g, h = lib.jvp(lambda c: slope(c, points), (centres,), (xp.ones_like(centres),))
        return g / h

    run, (centres, points) = lib.compiled(direction), arrays(lib, data)
    return lambda: run(centres, points)


def _lstm_data(layers: int, length: int) -> Data:
    """Weights and biases of layers, scales around them, states, and the bits of characters."""
    rng, d = np.random.default_rng(31337), 14
    main = rng.random((layers, 2, 4, d))
    return main, rng.random((3, d)), rng.random((layers, 2, d)), rng.integers(0, 2, (length, d)).astype(float)


def _lstm(lib: Library, data: Data) -> Run:
    """Minus the mean logarithm of the probabilities of the next characters.

    Forget and output gates see the input alone, the input gate and the change the hidden state alone; weights are
    diagonal. All layers work at once, each on the character before that of the layer below.
    """
    xp, (main, _, _, bits) = lib.xp, data
    layers, d = len(main), bits.shape[1]
    rows = lib.array(np.concatenate([bits[:-1], np.zeros((layers - 1, d))])[:, None])  # zeros: the others go on

    def loss(main: Any, extra: Any, state: Any, bits: Any, rows: Any) -> Any:
        w, b = [[main[:, k, i] for i in range(4)] for k in (0, 1)]  # each of shape (layers, d)
        x = rows * extra[0]

        def step(carry: Any, x: Any) -> Any:
            hidden, cell = carry
            below = lib.concat([x[0], hidden[:-1]])
            forget, opened = lib.sigmoid(below * w[0] + b[0]), lib.sigmoid(below * w[2] + b[2])
            change = lib.sigmoid(hidden * w[1] + b[1]) * xp.tanh(hidden * w[3] + b[3])
            cell = cell * forget + change
            hidden = opened * xp.tanh(cell)
            return (hidden, cell), hidden[-1]

        carry = start = state[:, 0], state[:, 1]
        for k in range(1, layers):  # of the upper layers nothing counts before a character comes there
            moved, _ = step(carry, (x[k - 1],))
            carry = tuple([lib.concat([new[:k], old[k:]]) for new, old in zip(moved, start, strict=True)])
        y = lib.scan(step, carry, (x[layers - 1 :],), None)[1] * extra[1] + extra[2]
        y = y - xp.log(xp.sum(xp.exp(y), 1) + 2.0)[:, None]
        return -xp.sum(bits[1:] * y) / (bits.shape[1] * (bits.shape[0] - 1))

    gradient, given = lib.compiled(lib.grad(loss, (0, 1))), [*arrays(lib, data), rows]
    return lambda: gradient(*given)


PROBLEMS = [
    Problem(
        "gmm",
        {f"d {d}, k {k}, n {n:,}": (d, k, n) for n in (1000, 10000) for d, k in ((2, 5), (10, 25), (32, 10))},
        _gmm_data,
        _gmm,
    ),
    Problem(
        "kmeans",
        {f"k {k}, n {n:,}, d {d}": (k, n, d) for k in (10, 100) for n in (1000, 10000) for d in (8,)},
        _kmeans_data,
        _kmeans,
    ),
    Problem("lstm", {f"{k} layers, {n:,}": (k, n) for k in (2, 4) for n in (1024, 4096)}, _lstm_data, _lstm),
]
