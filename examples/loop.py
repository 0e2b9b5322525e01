"""The compiler: what it makes of a loop, and of the gradient of a loop.

A swing is pushed in time, and 1,000 small steps say where it is after a minute. Its gradient says how that depends on
the push and on the start. As it is, each operation of each step is a call from Python. `ad.compile` writes the loop
down once, and makes machine code of it, forward and backward. Here are the times of this run, with and without, for
more and more steps. The picture shows them beside the graph that `lower` gives. The gradient is compared with one by
hand.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, check, save

import adjoint as ad

SECONDS, FRICTION, PACE = 60.0, 0.1, 0.9
START = np.array([0.3, 0.0, 0.2])  # angle, speed, and strength of the push

Array = np.ndarray


def swing(start: Any, steps: int) -> Any:
    """The angle at the end."""
    h, push = SECONDS / steps, start[2]

    def step(state: Any, t: Any) -> tuple[Any, None]:
        angle, speed = state
        speed = speed + h * (push * ad.cos(PACE * t) - ad.sin(angle) - FRICTION * speed)
        return (angle + h * speed, speed), None

    (angle, _), _ = ad.scan(step, (start[0], start[1]), h * np.arange(steps))
    return angle


def by_hand(start: Array, steps: int) -> Array:
    """The gradient in plain Python: derivatives by the three numbers of the start go along with angle and speed."""
    h, (angle, speed, push) = SECONDS / steps, start.tolist()
    of_angle, of_speed = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    for i in range(steps):
        drive, slope = math.cos(PACE * h * i), math.cos(angle)
        pushed = (0.0, 0.0, drive)
        both = zip(of_angle, of_speed, pushed, strict=True)
        of_speed = [v + h * (p - slope * a - FRICTION * v) for a, v, p in both]
        speed += h * (push * drive - math.sin(angle) - FRICTION * speed)
        of_angle = [a + h * v for a, v in zip(of_angle, of_speed, strict=True)]
        angle += h * speed
    return np.array(of_angle)


def seconds(f: Callable[[], Any]) -> float:
    """For a call, the shortest of some; the first one, which records and compiles, does not count."""
    f()
    found, until = [], time.perf_counter() + 0.1
    while len(found) < 3 or time.perf_counter() < until:
        begin = time.perf_counter()
        f()
        found.append(time.perf_counter() - begin)
    return min(found)


def draw(path: Path, times: dict[str, list[float]], steps: Sequence[int], graph: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    for (label, values), style in zip(times.items(), ("o-", "o--", "s-", "s--", "^:"), strict=True):
        left.loglog(steps, [1000 * value for value in values], style, label=label)
    left.set(xlabel="steps", ylabel="milliseconds", title="Times of this run")
    left.legend()
    left.grid(alpha=0.3)
    right.set_axis_off()
    right.set_title("The gradient, written down: a loop forward, a loop back")
    lines = [line.replace("float64", "f64") for line in graph.splitlines()]
    for i, line in enumerate(lines):
        inside = line.startswith("    ")
        colour = "tab:gray" if not inside else "tab:blue" if i < len(lines) / 2 else "tab:orange"
        shown = line if len(line) < 88 else line[:85] + "..."
        right.text(0, 1 - (i + 1) / (len(lines) + 1), shown, family="monospace", fontsize=8, color=colour)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("loop.py", __doc__)
    parser.add_argument("--steps", type=at_least(100), default=1000, help="of the loop (1,000)")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("loop.py"):
        gradient = ad.grad(swing)
        compiled, compiled_gradient = ad.compile(swing), ad.compile(gradient)
        exact, found = by_hand(START, options.steps), compiled_gradient(START, options.steps)
        print("the angle at the end changes by", " ".join([f"{slope:.4f}" for slope in found]))
        check("the gradient by hand", float(np.abs(found - exact).max() / np.abs(exact).max()), 1e-10)
        graph = str(compiled_gradient.lower(START, options.steps))
        print(graph)
        steps = [options.steps // 10, options.steps // 3, options.steps, 3 * options.steps]
        times: dict[str, list[float]] = {}
        for name, f in {
            "gradient, as it is": gradient,
            "value, as it is": swing,
            "gradient, compiled": compiled_gradient,
            "value, compiled": compiled,
            "gradient, by hand in plain Python": by_hand,
        }.items():
            times[name] = [seconds(lambda f=f, count=count: f(START, count)) for count in steps]
            print(f"{name}: {1000 * times[name][2]:.3f} ms for {options.steps} steps")
        draw(options.out, times, steps, graph)


if __name__ == "__main__":
    main(sys.argv[1:])
