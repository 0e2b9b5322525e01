"""Control: swing a pendulum up with a motor that is too weak to lift it.

The motor has half of the torque that holds the pendulum level, so it must swing to and fro first. The torques of all
steps are unknowns. The gradient of the cost goes back through the whole simulation, which is one `ad.scan`, and Adam
finds the torques. The picture shows angle and torque over time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

GRAVITY, LIMIT = 9.81, 4.9  # of a pendulum of one metre and one kilogram
SECONDS, STEPS = 5.0, 250
DT = SECONDS / STEPS

Array = np.ndarray


class Swing(NamedTuple):
    """Angles (0 hangs down, pi stands up), speeds and torques of all steps, and the costs of the search."""

    angle: Array
    speed: Array
    torque: Array
    costs: list[float]


def simulate(u: Any) -> Any:
    """Angles and speeds after each step, for torques of LIMIT tanh(u)."""

    def step(state: Any, u: Any) -> Any:
        angle, speed = state
        speed = speed + DT * (LIMIT * ad.tanh(u) - GRAVITY * ad.sin(angle))
        angle = angle + DT * speed
        return (angle, speed), (angle, speed)

    return ad.scan(step, (np.zeros(()), np.zeros(())), u)[1]


def cost(torques: Any) -> Any:
    """How far it is from standing still upright in the last second, and a little for the work of the motor."""
    u = torques["u"]
    angle, speed = simulate(u)
    last = STEPS // 5
    off = (1 + ad.cos(angle[-last:])).mean() + 0.05 * (speed[-last:] ** 2).mean()
    return off + 1e-3 * (ad.tanh(u) ** 2).mean()


def search(iterations: int, seed: int) -> Swing:
    torques: Any = {"u": ad.tensor(0.1 * np.random.default_rng(seed).normal(size=STEPS))}
    optimizer = ad.optim.Adam(lr=ad.optim.cosine(0.1, iterations))
    state, costs = optimizer.init(torques), []
    slope = ad.compile(ad.value_and_grad(cost))
    for _ in progress(iterations, "swinging"):
        value, g = slope(torques)
        torques, state = optimizer.step(torques, g, state)
        costs.append(float(value))
    u = torques["u"].numpy()
    angle, speed = simulate(u)
    return Swing(np.asarray(angle), np.asarray(speed), LIMIT * np.tanh(u), costs)


def draw(path: Path, swing: Swing) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    angles, torques, costs = figure.subplots(1, 3)
    t = DT * np.arange(1, STEPS + 1)
    angles.plot(t, np.degrees(swing.angle))
    for upright in (-180, 180):
        angles.axhline(upright, color="black", linestyle=":")
    angles.set(xlabel="seconds", ylabel="degrees", title="Angle: 0 hangs, 180 stands")
    torques.plot(t, swing.torque)
    for limit in (-GRAVITY, GRAVITY):
        torques.axhline(limit, color="black", linestyle=":")
    torques.set(xlabel="seconds", ylabel="newton metres", title="Torque; dotted: what holds it level")
    costs.semilogy(swing.costs)
    costs.set(xlabel="iteration", title="Cost")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("swing_up.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=400, help="of the search (400)")
    parser.add_seed("the first torques")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("swing_up.py"):
        swing = search(options.iterations, options.seed)
        print(f"cost {swing.costs[0]:.3f} at first, {swing.costs[-1]:.4f} at last")
        print(f"at the end {np.degrees(swing.angle[-1]):.1f} degrees, {swing.speed[-1]:.2f} radians per second")
        draw(options.out, swing)


if __name__ == "__main__":
    main(sys.argv[1:])
