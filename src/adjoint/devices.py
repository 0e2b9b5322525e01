"""Which backend tensors are made on: the default, the current one, and backends by name."""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from types import ModuleType, TracebackType
from typing import Any

from adjoint import errors, names
from adjoint.backend import Backend, Decorator
from adjoint.backends.numpy import NumPy
from adjoint.decorators.autodiff import Autodiff
from adjoint.dtypes import DType
from adjoint.locks import lock
from adjoint.scopes import Block, Here, Using, here

process_default: Backend | None = None  # the default of the process, once it is set or asked for
_setting = lock()

# The classes that names mean; a class is imported when it is asked for.
_LEAVES = {"numpy": "backends.numpy.NumPy", "reference": "backends.reference.Reference"}
_LIBRARIES = {  # optional
    "cupy": "backends.cupy.CuPy",
    "dask": "backends.dask.Dask",
    "jax": "backends.jax.JAX",
    "torch": "backends.torch.Torch",
}
_TABLES = {"pandas", "polars", "xarray"}  # libraries whose tables hand out NumPy arrays
_HARDWARE = {  # what other libraries call devices by
    "cpu": "'numpy', 'torch:cpu' or 'jax:cpu'",
    **dict.fromkeys(("cuda", "gpu"), "'torch:cuda', 'cupy' or 'jax:gpu'"),
    "mps": "'torch:mps'; on others 'torch:cuda' or 'jax:gpu'",
    "tpu": "'jax:tpu'; on others 'torch:cuda'",
}
_OPTIONAL = _TABLES.union(_LIBRARIES)
_DECORATORS = {
    "autodiff": "decorators.autodiff.Autodiff",
    "tangent": "decorators.tangent.Tangent",
    "taylor": "decorators.taylor.Taylor",
    "batched": "decorators.batched.Batched",
    "dependence": "decorators.dependence.Dependence",
    "checked": "decorators.observed.Checked",
    "profiled": "decorators.observed.Profiled",
}


# modules that follow the array API standard and may be imported because a name says so
_NAMESPACES = {"array_api_strict", "cupy", "dask.array", "jax.numpy", "ndonnx", "numpy", "sparse", "torch"}
_registered: dict[str, ModuleType] = {}  # by users, under a name
LONGEST = 1000  # characters of a name


@functools.cache
def _class(word: str) -> Any:
    """The class of backends that a word in a name means."""
    module, _, name = {**_LEAVES, **_LIBRARIES, **_DECORATORS}[word].rpartition(".")
    return getattr(importlib.import_module(f"adjoint.{module}"), name)


def libraries_imported() -> bool:
    """Whether an optional library was imported, so that there may be arrays or tables of it."""
    return not sys.modules.keys().isdisjoint(_OPTIONAL)


def leaf_of(value: Any) -> Backend | None:
    """The leaf that an array of an optional library is on; None for anything else. Imports nothing.

    >>> leaf_of([1.0, 2.0])
    """
    kinds = [_class(word) for word in _LIBRARIES if word in sys.modules]
    return next((leaf for kind in kinds if (leaf := kind.of(value)) is not None), None)


def device(name: str | Backend) -> Backend:
    """The backend of a name such as `"numpy"`, `"autodiff<torch:cpu>"`, `"autodiff[strong_zero]<reference>"`.

    `"torch:cuda:0"` is a device of an optional library, `"array_api[module]"` is one that is known to follow the array
    API standard, or was registered with `ad.register_namespace`. A backend comes back as it is, so that both do
    wherever a device is wanted. Raises DeviceError for a name that means none, EndedError for the level of a transform
    that has returned.

    >>> device("autodiff<autodiff<numpy>>").inner
    autodiff<numpy>
    """
    if isinstance(name, Backend):
        if name.ended:
            raise errors.EndedError(
                f"a transform's level ({name}) was used as a device after the transform had returned; take another "
                "one, such as ad.default_device()"
            )
        return name
    if not isinstance(name, str):
        raise errors.DeviceError(
            f"a device is a backend such as ad.NumPy() or the name of one; received {errors.shown(name)}"
        )
    if len(name) > LONGEST:
        raise errors.DeviceError(
            f"names of devices have at most {LONGEST} characters, received {errors.shown(name)} of {len(name)}; deeper "
            "chains are made by calls, as in ad.Autodiff(device)"
        )
    parts = re.fullmatch(r"(\w+)(?::([\w:]+))?(?:\[([^\]]*)\])?(?:<(.*)>)?", name.strip())
    if parts is not None:
        word, place, inside, inner = parts[1].lower(), parts[2], parts[3], parts[4]
        if word == "array_api" and inside and inner is None and place is None:
            return _array_api(name, inside.strip())
        kind = _class(word) if word in (_LEAVES | _LIBRARIES if inner is None else _DECORATORS) else None
        if kind is not None and (place is None or kind.place is not None):
            arguments = names.parse_options(kind, inside, name)
            if place is not None:
                arguments[kind.place] = names.number(place)
            made: Backend = kind(**arguments) if inner is None else kind(device(inner), **arguments)
            return made
    known = ", ".join([*_LEAVES, *_LIBRARIES, "array_api[module]", *(f"{word}<...>" for word in _DECORATORS)])
    library = _HARDWARE.get(name.strip().lower().partition(":")[0])
    hint = f"name the library too: {library}; " if library else ""
    raise errors.DeviceError(f"no device is called {errors.shown(name)}; {hint}known are {known}")


def _array_api(name: str, module: str) -> Backend:
    """The backend over a module that follows the array API standard."""
    from adjoint.backends.array_api import ArrayAPI

    known = _registered.get(module) or ArrayAPI.living(module)
    if known is not None:
        return ArrayAPI(known)
    if module not in _NAMESPACES:
        raise errors.DeviceError(
            f"device {errors.shown(name)}: a name imports no module but {', '.join(sorted(_NAMESPACES))}; register "
            f"another one, as in ad.register_namespace({errors.shown(module)}, module), or pass ad.ArrayAPI(module)"
        )
    try:
        return ArrayAPI(importlib.import_module(module))
    except ImportError as error:
        package = module.partition(".")[0]
        raise errors.DeviceError(f"device {name!r}: {error}; install it, as with pip install {package}") from error


def register_namespace(name: str, module: ModuleType, /) -> None:
    """Make `"array_api[name]"` the name of `ad.ArrayAPI(module)`, a module that follows the array API standard.

    Names are input, and importing a module runs it. So they import a few modules that are known, and others are given.
    A name and its module stay as long as the process: a program that makes modules passes `ad.ArrayAPI(module)` as
    `device=`, which goes with its last reference.

    Raises ArgumentTypeError for what is no module, or a name that is no string; DeviceError for a module that does not
    follow the standard, and for a name in use.

    >>> import array_api_strict
    >>> import adjoint as ad
    >>> ad.register_namespace("strict", array_api_strict)
    >>> ad.zeros(2, device="array_api[strict]").device
    array_api[array_api_strict]
    """
    from adjoint.backends.array_api import ArrayAPI

    if not isinstance(name, str) or not isinstance(module, ModuleType):
        raise errors.ArgumentTypeError(
            f"register_namespace: expected a name and a module, received {errors.shown(name)}, {errors.shown(module)}"
        )
    if re.fullmatch(r"[\w.]+", name) is None or name in _NAMESPACES or _registered.get(name, module) is not module:
        raise errors.DeviceError(
            f"register_namespace: {errors.shown(name)} is in use, or no name of letters, digits, dots and underscores"
        )
    ArrayAPI(module)
    _registered[name] = module


def default_device() -> Backend:
    """The backend that new tensors are made on where no `device=` says otherwise.

    The innermost `with use_device(...)` of this context, else what `set_default_device` set for the process, else the
    environment variable `ADJOINT_DEVICE`, else `Autodiff(NumPy())`.
    """
    block = here.get()
    while block is not None:
        default = block.value[1]
        if default is not None and not default.ended and block.holder() is not None:
            return default  # type: ignore[no-any-return]
        block = block.outer
    return process_default or _of_the_process()


def chosen_device() -> Backend:
    """The default device that the user set, also inside of transforms, which make their level the default."""
    block = here.get()
    while block is not None:
        level, default, _ = block.value
        if level is None and default is not None and block.holder() is not None:
            return default  # type: ignore[no-any-return]
        block = block.outer
    return process_default or _of_the_process()


def _of_the_process() -> Backend:
    global process_default
    if process_default is None:
        found = _from_environment()
        with _setting:  # another thread may have set it meanwhile
            process_default = process_default or found
    return process_default


def set_default_device(dev: str | Backend, /) -> None:
    """Set the default device of the process: every thread sees it, where no `with ad.use_device(...)` says otherwise.

    Raises DeviceError for a name that means no backend, and for a transform's level, which ends with the transform.
    Nothing is changed then.

    >>> import adjoint as ad
    >>> ad.set_default_device("numpy")
    >>> ad.zeros(2).device
    numpy
    >>> ad.set_default_device("autodiff<numpy>")
    """
    global process_default
    found = device(dev)
    if any(level.prototype is not level for level in found.chain()):
        raise errors.DeviceError(
            f"set_default_device: {found} is the level of a transform and ends with it; with ad.use_device(x.device) "
            "makes it the default of a block"
        )
    with _setting:
        process_default = found


def observed_leaf(device: Backend) -> Backend:
    """The leaf of a chain, with the observers that stand right above it: what computes, and nothing that follows.

    >>> observed_leaf(device("autodiff<checked<numpy>>"))
    checked<numpy>
    """
    found = device
    while isinstance(device, Decorator):
        if not device.observes:
            found = device.inner
        device = device.inner
    return found


def _from_environment() -> Backend:
    name = os.environ.get("ADJOINT_DEVICE")
    try:
        return device(name) if name else Autodiff(NumPy())
    except errors.AdjointError as error:
        raise errors.DeviceError(f"the environment variable ADJOINT_DEVICE: {error}") from None


def creating_on(backend: Backend) -> Block[Here]:
    """In this block, make tensors on this backend where no `device=` says otherwise."""
    return Block(here, (None, backend, None))


def current_level() -> Backend | None:
    """The level of the innermost transform that this context runs in, if there is one."""
    block = here.get()
    while block is not None:
        level = block.value[0]
        if level is not None and not level.ended and block.holder() is not None:
            return level  # type: ignore[no-any-return]
        block = block.outer
    return None


class transform_level(Block[Here]):
    """Run a transform's function on its level: what is created here is made there, in this dtype if one is given.

    Ends the level, and others that were made with it.
    """

    value: tuple[Backend, Backend, DType | None]

    __slots__ = ("_levels",)

    def __init__(self, level: Backend, dtype: DType | None = None, *others: Backend) -> None:
        self.variable, self.value = here, (level, level, dtype)
        self._levels = (level, *others)

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.variable.get() is self:
            self.variable.set(self.outer)
        for level in self._levels:
            level.end()


def running_on(level: Backend, dtype: DType | None = None) -> Block[Here]:
    """Run a function on a level: what is created here is made there, in this dtype if one is given."""
    return Block(here, (level, level, dtype))


class use_device(Using[Backend]):
    """Make this the default device in a `with` block: of this context alone, so other threads do not see it.

    For the process there is `ad.set_default_device`. A call without `with` changes nothing: when its result is dropped,
    a DeviceError says so. Python prints it and goes on, because it can be known no earlier.

    Raises DeviceError for a name that means no backend, EndedError for the level of a transform that has returned.

    >>> import adjoint as ad
    >>> with ad.use_device("numpy"):
    ...     ad.zeros(2).device
    numpy
    >>> ad.zeros(2).device
    autodiff<numpy>
    """

    _variable, _setter, _what, _error = here, "set_default_device", "default device", errors.DeviceError

    def __init__(self, dev: str | Backend) -> None:
        found = device(dev)
        super().__init__(found, found.name, (None, found, None))
