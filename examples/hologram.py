"""A GPU, if there is one: a hologram that throws a picture.

A laser falls on a plate that delays the light by another phase at each point. Far away, the light is the Fourier
transform of what leaves the plate. Which phases throw a given picture? The squared distance of the picture is a
function of 65,536 phases, and its gradient finds them. The same program runs on CuPy or PyTorch where they have a GPU,
and on NumPy elsewhere; it says what it ran on. Gerchberg and Saxton's method (1972) finds phases without gradients,
and is the comparison. The gradient is compared with NumPy's, in double precision.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, check, progress, save

import adjoint as ad

Array = np.ndarray


def place() -> tuple[str, str]:
    """The device of a GPU, if a library here can use one, else NumPy; and what that is, in words."""
    if importlib.util.find_spec("cupy"):
        import cupy

        try:
            return "cupy:0", f"CuPy, on {cupy.cuda.runtime.getDeviceProperties(0)['name'].decode()}"
        except cupy.cuda.runtime.CUDARuntimeError:  # no driver or no device
            pass
    if importlib.util.find_spec("torch"):
        import torch

        if torch.cuda.is_available():
            return "torch:cuda:0", f"PyTorch, on {torch.cuda.get_device_name(0)}"
    return "numpy", "NumPy, on the processor: neither CuPy nor PyTorch finds a GPU here"


def wanted(size: int) -> Array:
    """The picture: two rings and a cross, of unit mean brightness, in single precision."""
    side = np.linspace(-1, 1, size)
    x, y = np.meshgrid(side, side)
    picture = np.zeros((size, size))
    for left in (-0.4, 0.4):
        picture[np.abs(np.hypot(x - left, y) - 0.28) < 0.03] = 1
    picture[(np.minimum(np.abs(x), np.abs(y - 0.55)) < 0.02) & (np.abs(x) < 0.2) & (np.abs(y - 0.55) < 0.2)] = 1
    return (picture / picture.mean()).astype(np.float32)


def thrown(phase: Any) -> Any:
    """The brightness far away, of unit mean; its middle is the middle of the picture."""
    light = ad.fft.fftshift(ad.fft.fft2(ad.exp(1j * phase), norm="ortho"))
    return ad.real(light * ad.conj(light))


def loss(phase: Any, picture: Any) -> Any:
    """The distance of amplitudes, the square roots of brightness."""
    away = ad.sqrt(thrown(phase) + 1e-6) - ad.sqrt(picture)
    return (away * away).mean()


class Search(NamedTuple):
    """The phases found, the loss on the way, and seconds for a step."""

    phase: Array
    losses: list[float]
    seconds: float


def descend(picture: Array, start: Array, steps: int, device: str) -> Search:
    """Gradient descent with momentum, on a device."""
    with ad.use_device(device):
        goal, phases = ad.tensor(picture), [ad.tensor(start)]
        slope = ad.value_and_grad(lambda phases: loss(phases[0], goal))
        optimizer = ad.optim.SGD(lr=0.5 * start.size, momentum=0.9)
        state, losses = optimizer.init(phases), []
        slope(phases)[0].item()  # the first call loads kernels
        begin = time.perf_counter()
        for _ in progress(steps, "searching"):
            value, grads = slope(phases)
            phases, state = optimizer.step(phases, grads, state)
            losses.append(value)
        found = [value.item() for value in losses]  # a GPU may still be at work until its numbers are asked for
        return Search(phases[0].numpy(), found, (time.perf_counter() - begin) / steps)


def without_gradients(picture: Array, start: Array, steps: int) -> Search:
    """Gerchberg and Saxton: there the amplitudes of the picture, here light of unit amplitude; phases are kept."""
    amplitude, phase, losses = np.sqrt(picture), start, []
    begin = time.perf_counter()
    for _ in range(steps):
        losses.append(float(loss(phase, picture)))
        far = np.fft.fftshift(np.fft.fft2(np.exp(1j * phase), norm="ortho"))
        phase = np.angle(np.fft.ifft2(np.fft.ifftshift(amplitude * np.exp(1j * np.angle(far)))))
    return Search(phase, losses, (time.perf_counter() - begin) / steps)


def distance(picture: Array, start: Array, device: str) -> float:
    """Of the device's gradient from one by NumPy in double precision, written by hand, relative to its size."""
    with ad.use_device(device):
        here = ad.grad(loss)(ad.tensor(start), ad.tensor(picture)).numpy()
    light = np.exp(1j * start.astype(float))
    far = np.fft.fftshift(np.fft.fft2(light, norm="ortho"))
    size = np.sqrt(np.abs(far) ** 2 + 1e-6)
    back = np.fft.ifft2(np.fft.ifftshift((size - np.sqrt(picture)) / size * far), norm="ortho")
    exact = 2 * np.imag(back * np.conj(light)) / picture.size
    return float(np.linalg.norm(here - exact) / np.linalg.norm(exact))


def draw(path: Path, picture: Array, ours: Search, theirs: Search) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    plate, screen, curve = figure.subplots(1, 3)
    plate.imshow(ours.phase % (2 * np.pi), cmap="twilight")
    plate.set(title="the phases of the plate", xticks=[], yticks=[])
    screen.imshow(np.sqrt(np.asarray(thrown(ours.phase))), cmap="magma", vmax=np.sqrt(picture.max()), origin="lower")
    screen.set(title="what it throws", xticks=[], yticks=[])
    for label, search in {"by gradients": ours, "Gerchberg and Saxton": theirs}.items():
        curve.semilogy(search.losses, label=label)
    curve.set(xlabel="step", ylabel="squared distance", title="Both searches")
    curve.legend()
    curve.grid(alpha=0.3)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("hologram.py", __doc__)
    parser.add_argument("--steps", type=at_least(1), default=60, help="of the search (60)")
    parser.add_argument("--size", type=at_least(16), default=256, help="points on a side of the plate (256)")
    parser.add_argument("--device", help="such as cupy:0, torch:cpu or numpy (a GPU if there is one)")
    parser.add_seed("the first phases")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("hologram.py"):
        device, words = (options.device, options.device) if options.device else place()
        print("runs on:", words)
        picture = wanted(options.size)
        start = np.random.default_rng(options.seed).uniform(0, 2 * np.pi, picture.shape).astype(np.float32)
        check("the gradient by hand, in double precision", distance(picture, start, device), 1e-4)
        ours = descend(picture, start, options.steps, device)
        theirs = without_gradients(picture, start, options.steps)
        for name, search in {"by gradients": ours, "Gerchberg and Saxton, in NumPy": theirs}.items():
            last = float(loss(search.phase, picture))
            print(f"{name}: squared distance {last:.4f}, from {search.losses[0]:.4f}")
        print(f"a step takes {1000 * ours.seconds:.1f} ms")
        draw(options.out, picture, ours, theirs)


if __name__ == "__main__":
    main(sys.argv[1:])
