"""What a bug report needs: `python -m adjoint` prints versions, the array libraries that are there, and devices."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Callable, Iterator

import adjoint as ad

# the libraries of leaves: their module, and the names of the devices that they find
_LIBRARIES: dict[str, Callable[[], list[str]]] = {
    "torch": lambda: _torch(),
    "jax": lambda: [f"jax:{found.platform}:{found.id}" for found in importlib.import_module("jax").devices()],
    "cupy": lambda: [f"cupy:{i}" for i in range(importlib.import_module("cupy").cuda.runtime.getDeviceCount())],
    "dask": lambda: ["dask"],
}
_OTHERS = ("numpy", "optree", "scipy", "opt_einsum", "array_api_compat")
REPORT = """To report a bug, send these lines and
  - the shortest program that shows it, with what it printed and what you expected;
  - of an error, all of its text;
  - of a wrong derivative, what ad.testing.check_grads(f, args) says;
  - of a nan, what the program says under ad.use_device("autodiff<checked<numpy>>")."""


def _torch() -> list[str]:
    torch = importlib.import_module("torch")
    found = ["torch:cpu", *[f"torch:cuda:{i}" for i in range(torch.cuda.device_count())]]
    return found + (["torch:mps"] if torch.backends.mps.is_available() else [])


def _version(module: str) -> str:
    """The version of a library, which some have under another name than their module's."""
    names = importlib.metadata.packages_distributions().get(module, [module])
    return importlib.metadata.version(names[0])


def _devices(library: str) -> str:
    if importlib.util.find_spec(library) is None:
        return f"not installed: pip install 'adjoint[{library}]'"
    try:
        return f"{_version(library)}: {', '.join(_LIBRARIES[library]()) or 'no device'}"
    except Exception as error:  # a library without its driver raises errors of its own
        return f"{_version(library)} cannot be used: {type(error).__name__}: {error}"


def lines() -> Iterator[str]:
    """What is printed, line by line."""
    machine = f"{platform.platform()}, {os.cpu_count()} processors"
    yield f"adjoint {ad.__version__} on Python {platform.python_version()}, {machine}"
    present = [f"{name} {_version(name)}" for name in _OTHERS if importlib.util.find_spec(name) is not None]
    yield f"with {', '.join(present)}"
    yield f"default device: {ad.default_device().name}, default dtype: {ad.default_dtype()}"
    settings = sorted(name for name in os.environ if name.startswith("ADJOINT_") or name == "OMP_NUM_THREADS")
    yield f"environment: {', '.join([f'{name}={os.environ[name]}' for name in settings]) or 'nothing set'}"
    yield ""
    yield "backends:"
    yield f"  numpy      {_version('numpy')}: numpy"
    yield "  reference  reference"
    for library in _LIBRARIES:
        yield f"  {library:10} {_devices(library)}"
    yield ""
    yield REPORT


if __name__ == "__main__":
    print("\n".join(lines()))
