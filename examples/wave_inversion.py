"""Wave inversion: see inside the ground by the echoes of a few bangs.

Sources at the sides of a square of ground send waves, and receivers around it hear them. The speed of waves in between
is not known. The wave equation is solved for a guess, and the gradient of what is heard by the speeds says how to
mend it: full waveform inversion (Tarantola, 1984). It runs back through all steps in time. The picture shows the
ground, a wave in it, what was found, and what a receiver hears.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from command_line import Parser, Stop, at_least, save

import adjoint as ad

SIZE, SPACING = 40, 10.0  # points a side, metres apart
STEP, STEPS = 0.0015, 160  # seconds; their number
SPEED, FREQUENCY = 2000.0, 20.0  # of the ground around, metres per second; of the bangs, per second
BORDER = 8  # points where waves die out
FIRST, LAST, MIDDLE = BORDER, SIZE - BORDER - 1, SIZE // 2
SOURCES = np.array([[FIRST, MIDDLE], [MIDDLE, FIRST], [MIDDLE, LAST], [LAST, MIDDLE]])  # row and column
LINE = np.arange(FIRST, LAST + 1)
RECEIVERS = np.concatenate([[(FIRST, k), (k, FIRST), (k, LAST), (LAST, k)] for k in LINE[1::2]])

Array = np.ndarray


def ground() -> Array:
    """The speed of waves: two bodies in a uniform ground."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    speed = np.full((SIZE, SIZE), SPEED)
    speed[(x - 15) ** 2 + (y - 17) ** 2 < 18] *= 1.15
    speed[(x - 25) ** 2 + (y - 23) ** 2 < 18] *= 0.87
    return speed


def pulse() -> Array:
    """Ricker's wavelet, at each step."""
    a = (np.pi * FREQUENCY * (STEP * np.arange(STEPS) - 1.2 / FREQUENCY)) ** 2
    return (1 - 2 * a) * np.exp(-a)


def damping() -> Array:
    """1 inside, a little less in the border."""
    edge = np.minimum(np.arange(SIZE), np.arange(SIZE)[::-1])
    line = np.exp(-((0.03 * np.maximum(0, BORDER - edge)) ** 2))
    return line[:, None] * line


def waves(speed: Any) -> tuple[Any, Any]:
    """What receivers hear, (steps, sources, receivers), and the pressures at the last step.

    Differences of second order in space and in time; all sources at once.
    """
    rate = (speed * (STEP / SPACING)) ** 2
    bangs = np.zeros((len(SOURCES), SIZE, SIZE))
    bangs[np.arange(len(SOURCES)), *SOURCES.T] = 1.0
    damp = damping()

    def advance(carry: Any, strength: Any) -> Any:
        now, before = carry
        wide = ad.pad(now, ((0, 0), (1, 1), (1, 1)))
        around = wide[:, 2:, 1:-1] + wide[:, :-2, 1:-1] + wide[:, 1:-1, 2:] + wide[:, 1:-1, :-2]
        after = damp * (2 * now - damp * before + rate * (around - 4 * now) + strength * bangs)
        return (after, now), after[:, *RECEIVERS.T]

    quiet = np.zeros_like(bangs)
    (last, _), heard = ad.scan(advance, (quiet, quiet), pulse())
    return heard, last


def inside(bodies: Any) -> Any:
    """Speeds from relative changes at the points that waves reach undamped."""
    return SPEED * (1 + ad.pad(bodies, BORDER))


def misfit(bodies: Any, heard: Array) -> Any:
    """Squared differences in what is heard, and a penalty on differences of neighbours."""
    found, _ = waves(inside(bodies))
    rough = (ad.diff(bodies, axis=0) ** 2).sum() + (ad.diff(bodies, axis=1) ** 2).sum()
    return ((found - heard) ** 2).sum() / (heard**2).sum() + 1e-3 * rough


def invert(heard: Array, iterations: int) -> tuple[Array, list[float]]:
    """The speeds, and the misfit after each iteration."""
    inner = SIZE - 2 * BORDER
    losses: list[float] = []
    found = scipy.optimize.minimize(
        ad.compile(ad.value_and_grad(lambda flat: misfit(flat.reshape(inner, inner), heard))), np.zeros(inner**2),
        jac=True, method="L-BFGS-B", options={"maxiter": iterations},
        callback=lambda intermediate_result: losses.append(float(intermediate_result.fun)),
    )  # fmt: skip
    return np.asarray(inside(found.x.reshape(inner, inner))), losses


def draw(path: Path, exact: Array, found: Array, heard: Array) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 3.9), layout="constrained")
    first, second, third, fourth = figure.subplots(1, 4)
    for axes, title, speed in ((first, "speed in the ground", exact), (third, "speed found", found)):
        shown = axes.imshow(speed, cmap="coolwarm", vmin=0.85 * SPEED, vmax=1.15 * SPEED)
        figure.colorbar(shown, ax=axes, shrink=0.75)
        axes.plot(*RECEIVERS.T[::-1], "k.", markersize=3)
        axes.plot(*SOURCES.T[::-1], "k*")
        axes.set(title=title, xticks=[], yticks=[])
    snapshot = np.asarray(waves(exact)[1])[0]
    second.imshow(snapshot, cmap="gray", vmin=-np.abs(snapshot).max(), vmax=np.abs(snapshot).max())
    second.set(title="pressure of one bang", xticks=[], yticks=[])
    opposite, times = int(np.argmax(RECEIVERS[:, 0] * SIZE - abs(RECEIVERS[:, 1] - MIDDLE))), STEP * np.arange(STEPS)
    for label, values in {"heard": heard, "uniform ground": waves(np.full_like(exact, SPEED))[0],
                          "found": waves(found)[0]}.items():  # fmt: skip
        fourth.plot(times, np.asarray(values)[:, 0, opposite], "--" if label == "found" else "-", label=label)
    fourth.set(title="at the other side", xlabel="seconds")
    fourth.legend()
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("wave_inversion.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=40, help="of the search (40)")
    parser.add_seed("the noise of receivers")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("wave_inversion.py"):
        exact = ground()
        heard = np.asarray(waves(exact)[0])
        heard = heard + 0.01 * heard.std() * np.random.default_rng(options.seed).normal(size=heard.shape)
        found, losses = invert(heard, options.iterations)
        off, before = (float(np.sqrt(((s - exact) ** 2).mean())) for s in (found, np.full_like(exact, SPEED)))
        print(f"misfit: {losses[-1]:.5f} after {len(losses)} iterations")
        print(f"error of speeds: {off:.1f} metres per second, {before:.1f} of a uniform ground")
        draw(options.out, exact, found, heard)


if __name__ == "__main__":
    main(sys.argv[1:])
