"""PyTorch's names over adjoint: `import adjoint.torch as torch`.

Spelling, defaults and bookkeeping of PyTorch: no derivative rule and no numerical code is here. Nothing else in
adjoint imports it. docs/torch.md says what is there.
"""

from __future__ import annotations

import functools as _functools
import importlib as _importlib
import math as _math
from typing import Any

import numpy as _np

from adjoint.torch import autograd as autograd
from adjoint.torch import filling as _filling  # noqa: F401
from adjoint.torch import gradients as _gradients  # noqa: F401
from adjoint.torch import indexing as _indexing  # noqa: F401
from adjoint.torch import later as _later
from adjoint.torch import linalg as linalg
from adjoint.torch import products as _products  # noqa: F401
from adjoint.torch import state as _state
from adjoint.torch import utils as utils
from adjoint.torch import views as _views  # noqa: F401
from adjoint.torch.arguments import guarded as _guarded
from adjoint.torch.arguments import spelled_as as _spelled_as
from adjoint.torch.calls import NUMBERS as _NUMBERS
from adjoint.torch.creation import of_type as _of_type
from adjoint.torch.devices import device as _device_of
from adjoint.torch.devices import device as device
from adjoint.torch.dtypes import (
    DTYPES as _DTYPES,
)
from adjoint.torch.dtypes import (
    LAYOUTS as _LAYOUTS,
)
from adjoint.torch.dtypes import (
    MEMORY_FORMATS as _MEMORY_FORMATS,
)
from adjoint.torch.dtypes import (
    Size as Size,
)
from adjoint.torch.dtypes import (
    bfloat16 as bfloat16,
)
from adjoint.torch.dtypes import (
    can_cast as can_cast,
)
from adjoint.torch.dtypes import (
    dtype as dtype,
)
from adjoint.torch.dtypes import (
    finfo as finfo,
)
from adjoint.torch.dtypes import (
    get_default_dtype as get_default_dtype,
)
from adjoint.torch.dtypes import (
    iinfo as iinfo,
)
from adjoint.torch.dtypes import (
    layout as layout,
)
from adjoint.torch.dtypes import (
    memory_format as memory_format,
)
from adjoint.torch.dtypes import (
    of_numpy as _of_numpy,
)
from adjoint.torch.dtypes import (
    promote as _promote,
)
from adjoint.torch.dtypes import (
    result_dtype as _result_dtype,
)
from adjoint.torch.dtypes import (
    set_default_dtype as set_default_dtype,
)
from adjoint.torch.generators import Generator as Generator
from adjoint.torch.missing import missing as _missing
from adjoint.torch.missing import refuse_modules as _refuse_modules
from adjoint.torch.operators import FUNCTIONS as _FUNCTIONS
from adjoint.torch.operators import METHODS as _METHODS
from adjoint.torch.overriding import asking as _may_ask
from adjoint.torch.printing import set_printoptions as set_printoptions
from adjoint.torch.settings import ALL as _SETTINGS
from adjoint.torch.state import (
    enable_grad as enable_grad,
)
from adjoint.torch.state import (
    inference_mode as inference_mode,
)
from adjoint.torch.state import (
    is_grad_enabled as is_grad_enabled,
)
from adjoint.torch.state import (
    is_inference_mode_enabled as is_inference_mode_enabled,
)
from adjoint.torch.state import (
    no_grad as no_grad,
)
from adjoint.torch.state import (
    set_grad_enabled as set_grad_enabled,
)
from adjoint.torch.tensor import Tensor as Tensor
from adjoint.torch.version import __version__ as _VERSION

__version__ = _VERSION
inf: float = _math.inf
nan: float = _math.nan
pi: float = _math.pi
e: float = _math.e
newaxis = None

_refuse_modules()
for _name, _member in _METHODS.items():
    setattr(Tensor, _name, _member)
_later.give_methods()
globals().update(_FUNCTIONS)
globals().update(_SETTINGS)
globals().update(_DTYPES)
globals().update(_LAYOUTS)
globals().update(_MEMORY_FORMATS)
for _name, _short in {
    "float32": "float", "float64": "double", "int64": "long", "int32": "int", "float16": "half", "int16": "short",
    "complex64": "cfloat", "complex128": "cdouble",
}.items():  # fmt: skip
    globals()[_short] = _DTYPES[_name]


def is_anomaly_enabled() -> bool:
    """Whether anomalies are looked for."""
    return _state.anomaly[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a nan in backward is an anomaly."""
    return _state.anomaly[1]


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Look for anomalies from now on, or no more."""
    _importlib.import_module(f"{__name__}.autograd").set_detect_anomaly(enabled, check_nan)


@_guarded
def is_nonzero(input: Tensor) -> Any:
    """Whether the only element is not zero."""
    return input.is_nonzero()


def _asking(name: str, words: str) -> Any:
    """A function of one tensor, or two, that is its method."""
    both = "input: Tensor, other: Tensor" if name == "is_same_size" else "input: Tensor"
    function = _guarded(_spelled_as(name, both, _of_method(name)))
    function.__doc__ = words
    return function


def _of_method(name: str) -> Any:
    method = getattr(Tensor, name)

    @_functools.wraps(method)
    def function(input: Tensor, *args: Any, **options: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        if input.__class__ is not Tensor:  # a subclass may have one of its own
            return getattr(input, name)(*args, **options)
        return method(input, *args, **options)

    return function


for _name, _words in {
    "detach": "The tensor without its graph, on the same memory.",
    "get_device": "The number of the tensor's device, -1 in main memory.",
    "is_complex": "Whether the elements are complex numbers.",
    "is_conj": "Whether the tensor is a conjugate that is still to be computed: never.",
    "is_distributed": "Whether the tensor is one of several processes: never.",
    "is_floating_point": "Whether the elements are real floating-point numbers.",
    "is_inference": "Whether the tensor was made in inference mode.",
    "is_neg": "Whether the tensor is a negative that is still to be computed: never.",
    "is_same_size": "Whether two tensors have one shape.",
    "is_signed": "Whether the elements have signs.",
    "numel": "The number of elements.",
}.items():
    globals()[_name] = _asking(_name, _words)


def is_storage(obj: Any) -> bool:
    """No: there are no storages."""
    return False


def typename(obj: Any) -> str:
    """What an object's type is called; of a tensor, with its numbers: "torch.FloatTensor"."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = (getattr(kind, "__module__", None) or "").replace("adjoint.torch", "torch")
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def set_default_tensor_type(t: Any) -> None:
    """Make new tensors of numbers floating point of this type: `torch.DoubleTensor` or "torch.DoubleTensor"."""
    found = _of_type(t.removeprefix("torch.").removesuffix("Tensor")) if isinstance(t, str) else t
    kind = getattr(found, "kind", None)
    if kind is None:
        raise TypeError(f"invalid type object: {t!r} is no type of tensors")
    if kind.kind != "f":
        raise TypeError("only floating-point types are supported as the default type")
    set_default_dtype(_of_numpy(kind))


def get_device_module(device: Any = None) -> Any:
    """`torch.cuda`, `torch.cpu` or another module of the kind of a device."""
    kind = _SETTINGS["get_default_device"]() if device is None else _device_of(device)
    return globals().get(kind.type, globals()["cpu"])


@_may_ask
def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The type that two operands of an operation meet in."""
    for given in (tensor1, tensor2):
        if not isinstance(given, (Tensor, *_NUMBERS)):
            raise TypeError(f"result_type(): expected a Tensor or a Number, not {type(given).__name__}")
    return _of_numpy(_result_dtype((tensor1, tensor2)))


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that both can be converted to."""
    for given in (type1, type2):
        if not isinstance(given, dtype):
            raise TypeError(f"promote_types(): expected a torch.dtype, not {type(given).__name__}")
    if bfloat16 in (type1, type2):
        other = type2 if type1 is bfloat16 else type1
        if other is bfloat16 or not (other.is_floating_point or other.is_complex):
            return bfloat16
        return _of_numpy(_promote(_np.dtype("float32"), other.of_numpy))
    return _of_numpy(_promote(type1.of_numpy, type2.of_numpy))


# imported when they are first asked for: modules, and functions with the module that each is in
# of `nn.functional`, where the arguments are in the same order
_FUNCTIONAL = frozenset(
    """
    adaptive_avg_pool1d alpha_dropout avg_pool1d binary_cross_entropy_with_logits bilinear celu celu_ channel_shuffle
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity dropout
    feature_alpha_dropout group_norm
    hardshrink layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu
    rms_norm rrelu rrelu_ selu selu_ threshold threshold_
    """.split()
)
_ROOMS = {
    "_C", "amp", "backends", "distributed", "distributions", "fft", "func", "functional", "futures", "jit",
    "multiprocessing", "nn", "optim", "overrides", "random", "return_types", "serialization", "signal", "special",
    "testing", "torch_version", "types", "utils", "version",
}  # fmt: skip
_REMOVED = {"eig", "lstsq", "matrix_rank", "solve", "symeig"}
_FROM = {"load": "serialization", "save": "serialization", "vmap": "func"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _FROM:
        return getattr(_importlib.import_module(f"{__name__}.{_FROM[name]}"), name)
    if name in _REMOVED:
        return _importlib.import_module(f"{__name__}.older").REMOVED[name]
    if name.endswith("Tensor") and name != "BFloat16Tensor":
        found = _of_type(name.removesuffix("Tensor"))
    elif name in _FUNCTIONAL:
        found = _importlib.import_module(f"{__name__}.nn.functional").ALL[name]
    else:
        found = _later.function(name)
    if found is None and name.endswith("_"):
        found = _of_method(name) if hasattr(Tensor, name) else None  # torch.relu_(x), for one
    if found is None:
        raise _missing(name)
    globals()[name] = found
    return found
