"""Optics: layers on glass that reflect no light.

Light that meets a thin film is reflected at both of its sides, and the two waves can cancel. Here the thicknesses of
six layers, of two materials in turn, are sought so that glass reflects little of all colours. A layer is a complex
2x2 matrix for each wavelength, and a stack is their product (Born and Wolf, Principles of Optics, section 1.6). The
mean reflectance is differentiated through these products. The picture shows what is reflected, and the layers.
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

GLASS, LOW, HIGH = 1.52, 1.46, 2.35  # refractive indices: crown glass, silica, titania
FLUORIDE = 1.38  # of magnesium, the usual single layer
LAYERS = np.array([HIGH, LOW] * 3)  # from glass to air
WAVES = np.linspace(420.0, 680.0, 53)  # wavelengths, in nanometres

Array = np.ndarray


def reflectance(thickness: Any, indices: Array, waves: Array = WAVES) -> Any:
    """The part of the light that a stack reflects, for each wavelength; light comes at a right angle, from air."""
    phase = 2 * np.pi * indices[:, None] * ad.expand_dims(thickness, 1) / waves
    c, s = ad.cos(phase), ad.sin(phase)
    field: Any = np.ones(len(waves), dtype=complex)  # electric and magnetic, at the side of the glass
    magnetic: Any = GLASS * field
    for k, n in enumerate(indices):
        field, magnetic = c[k] * field + 1j / n * s[k] * magnetic, 1j * n * s[k] * field + c[k] * magnetic
    ratio = (field - magnetic) / (field + magnetic)
    return ad.real(ratio * ad.conj(ratio))


def mean_reflectance(thickness: Any) -> Any:
    return reflectance(thickness, LAYERS).mean()


def search(starts: int, seed: int) -> tuple[Array, float, float]:
    """The best thicknesses, their mean reflectance and the median one: there are many local minima."""
    rng = np.random.default_rng(seed)
    slope = ad.compile(ad.value_and_grad(mean_reflectance))
    found = []
    for _ in progress(starts, "searching"):
        start = rng.uniform(10.0, 120.0, len(LAYERS))
        bounds = [(5.0, 250.0)] * len(LAYERS)
        found.append(scipy.optimize.minimize(slope, start, jac=True, method="L-BFGS-B", bounds=bounds))
    values = [float(run.fun) for run in found]
    return found[int(np.argmin(values))].x, min(values), float(np.median(values))


def draw(path: Path, thickness: Array, quarter: Array) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    spectra, stack = figure.subplots(1, 2, width_ratios=(2, 1))
    waves = np.linspace(WAVES[0], WAVES[-1], 300)
    bare = reflectance(np.zeros(1), np.ones(1), waves)
    for label, values in {
        "bare glass": bare,
        "one layer of magnesium fluoride": reflectance(quarter, np.array([FLUORIDE]), waves),
        "six layers": reflectance(thickness, LAYERS, waves),
    }.items():
        spectra.plot(waves, 100 * np.asarray(values), label=label)
    spectra.set(xlabel="wavelength, nm", ylabel="reflected, %", ylim=(0, None))
    spectra.legend()
    bottom = np.concatenate([[0], np.cumsum(thickness)])
    for k, n in enumerate(LAYERS):
        stack.bar(0, thickness[k], bottom=bottom[k], color="#3b6fb5" if n == HIGH else "#c9ddf2", width=1)
        stack.text(0.55, bottom[k] + thickness[k] / 2, f"{thickness[k]:.0f}", va="center", fontsize=8)
    stack.set(title="layers: titania dark, silica pale", ylabel="nm above the glass", xticks=[], xlim=(-0.6, 1))
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("thin_film.py", __doc__)
    parser.add_argument("--starts", type=at_least(1), default=40, help="searches from random thicknesses (40)")
    parser.add_seed("where searches start")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("thin_film.py"):
        thickness, best, median = search(options.starts, options.seed)
        quarter = np.array([550 / (4 * FLUORIDE)])
        single = float(reflectance(quarter, np.array([FLUORIDE])).mean())
        print(f"bare glass reflects {100 * ((GLASS - 1) / (GLASS + 1)) ** 2:.2f}%, one layer {100 * single:.2f}%")
        print(f"six layers {100 * best:.3f}%; the median of {options.starts} searches is {100 * median:.3f}%")
        print("thicknesses from the glass, nm:", " ".join([f"{t:.1f}" for t in thickness]))
        draw(options.out, thickness, quarter)


if __name__ == "__main__":
    main(sys.argv[1:])
