"""Generators of random numbers, and how examples of a vmap draw from one."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import errors
from adjoint.locks import released_by_forks
from adjoint.torch import lifted
from adjoint.torch.devices import CPU
from adjoint.torch.devices import device as device_of
from adjoint.torch.memory import of_numpy_array
from adjoint.torch.operators import function
from adjoint.torch.state import modes
from adjoint.torch.tensor import Tensor, beside, is_lifted, looked

_UNSAID = 67280421310721  # the seed of a generator that was given none, which is PyTorch's


class Generator:
    """A source of random numbers. Numbers of one seed are the same each time and on each device, not those of PyTorch.

    They are drawn in main memory, and tensors of any device are filled with them.
    """

    def __init__(self, device: Any = None) -> None:
        if isinstance(device, int):
            raise RuntimeError(f"Generator: expected a device, received {device}")
        self.device = CPU if device is None else device_of(device)
        self.manual_seed(_UNSAID)

    def manual_seed(self, seed: int) -> Generator:
        try:
            number = int(seed)
        except (TypeError, ValueError):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}") from None
        if not -(1 << 63) <= number < 1 << 64:
            raise ValueError(
                f"manual_seed: a seed has 64 bits, received {errors.shown(seed)}: Overflow when unpacking long long"
            )
        self._seed: int = number % (1 << 64)
        self.source: np.random.Generator = np.random.default_rng(self._seed)
        released_by_forks(self.source.bit_generator.lock)  # which another thread may hold, as it draws
        return self

    def initial_seed(self) -> int:
        return self._seed

    def seed(self) -> int:
        fresh = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self.manual_seed(fresh)
        return fresh

    def get_state(self) -> Any:
        """Where the numbers are, and their seed, as a tensor of bytes."""
        now: Any = self.source.bit_generator.state
        parts = [(now["state"]["state"], 16), (now["state"]["inc"], 16), (self._seed, 8), (now["uinteger"], 4)]
        parts.append((now["has_uint32"], 4))
        return of_numpy_array(np.frombuffer(bytearray(b"".join([n.to_bytes(k, "little") for n, k in parts])), np.uint8))

    def set_state(self, new_state: Any) -> Generator:
        """Go on from a state. Raises TypeError for what is no tensor of bytes, RuntimeError for one of another size."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state._dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        given = np.asarray(looked(new_state)).tobytes()
        if len(given) != 48:
            raise RuntimeError(f"Expected a state of size 48 but found the input RNG state size to be {len(given)}")
        state, inc, seed, half, has_half = [
            int.from_bytes(given[a:b], "little") for a, b in ((0, 16), (16, 32), (32, 40), (40, 44), (44, 48))
        ]
        self._seed = seed
        self.source.bit_generator.state = {
            "bit_generator": "PCG64", "state": {"state": state, "inc": inc}, "has_uint32": has_half, "uinteger": half,
        }  # fmt: skip
        return self

    def clone_state(self) -> Generator:
        """Another source, which goes on with the same numbers."""
        return Generator(self.device).set_state(self.get_state())

    def graphsafe_get_state(self) -> Any:
        """Refused, as on PyTorch's CPU: states are for graphs of kernels."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator: there are no CUDA graphs")

    def graphsafe_set_state(self, state: Any) -> Any:
        """Refused, as on PyTorch's CPU."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator: there are no CUDA graphs")

    def get_offset(self) -> Any:
        """Refused, as on PyTorch's CPU: the numbers are no function of a place."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> Any:
        """Refused, as on PyTorch's CPU."""
        raise RuntimeError("CPU Generator does not use offset")


default_generator: Generator = Generator()


@function
def manual_seed(seed: int) -> Generator:
    """Start the default random numbers anew."""
    return default_generator.manual_seed(int(seed))


@function
def initial_seed() -> int:
    return default_generator.initial_seed()


@function
def seed() -> int:
    return default_generator.seed()


def source(generator: Any, *, apart: bool = False) -> Any:
    """What random numbers come from; `apart` says that the caller draws some for each example of a vmap."""
    for randomness, _, _ in modes.drawing:
        if randomness == "different" and not apart:
            raise NotImplementedError(
                "adjoint.torch: this function does not draw with randomness='different'; draw with rand or randn"
            )
        if randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
    if generator is None:
        return default_generator.source
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator.source


def drawn_apart(make: Any, size: tuple[int, ...], generator: Any, dtype: Any) -> Tensor:
    """Numbers for each example of the vmaps around that want them to differ."""
    examples = apart()
    value = make((*[count for count, _ in examples], *size), generator)
    return lifted.of_examples(np.asarray(value, dtype), [level for _, level in examples])


def in_parts(make: Any, kind: Any, scale: float = 1.0) -> Any:
    """`make(size, ...)` of real numbers as one for a type: the parts of complex numbers are drawn each, and scaled."""
    if kind.kind != "c":
        return make

    def made(size: Any, *given: Any) -> Any:
        parts = make((*size, 2), *given)
        return scale * (parts[..., 0] + 1j * parts[..., 1])

    return made


def apart() -> list[tuple[int, Any]]:
    """The examples, and their levels, that draw numbers of their own."""
    return [(count, level) for randomness, count, level in modes.drawing if randomness == "different"]


def drawn_by(draw: Any, generator: Any, *parameters: Tensor) -> Tensor:
    """`draw(source, *arrays)` of parameters that broadcast, a number for each element; each example has its own."""
    last = parameters[-1]
    if not apart() and not any(map(is_lifted, parameters)):
        return beside(last, np.asarray(draw(source(generator), *map(looked, parameters)), last._dtype))
    drawing, examples = source(generator, apart=True), apart()
    levels = [level for _, level in examples]
    if any(level not in levels for x in parameters for _, level in lifted.examples_of(x)):
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input: what differs between "
            "examples would draw numbers that do; say randomness='different'"
        )
    ndim = max(x.ndim for x in parameters)
    arrays = [lifted.values_of_examples(x, examples, ndim) for x in parameters]
    return lifted.of_examples(np.asarray(draw(drawing, *arrays), last._dtype), levels)
