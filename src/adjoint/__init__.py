"""adjoint: gradients for any array library. `import adjoint as ad`.

A module is imported when a name of its is first asked for: `ad.sin` looks into the table, and is an ordinary attribute
from then on. The environment variable `ADJOINT_EAGER=1` imports all at once. Type checkers and editors read
`__init__.pyi`, which `scripts/stubs.py` writes from the table.
"""

import os
from importlib import import_module
from typing import Any

from adjoint.methods import modules_of
from adjoint.renamed import missing

# The public names, by the modules they are in; first those that are modules themselves.
_TABLE = {
    "": "data debug errors fft implicit linalg nn optim plot random scipy special stats testing train tree",
    "backend": "Backend",
    "backends.array_api": "ArrayAPI",
    "backends.cupy": "CuPy",
    "backends.dask": "Dask",
    "backends.jax": "JAX",
    "backends.numpy": "NumPy",
    "backends.reference": "Reference",
    "backends.torch": "Torch",
    "compiler.compiled": "compile disable_compile",
    "compiler.threads": "get_num_threads set_num_threads",
    "constants": "__array_api_version__ __version__ e inf nan newaxis pi",
    "decorators.autodiff": "Autodiff",
    "decorators.batched": "Batched",
    "decorators.dependence": "Dependence",
    "decorators.observed": "Checked Profiled",
    "decorators.tangent": "Tangent",
    "decorators.taylor": "Taylor",
    "devices": "default_device device register_namespace set_default_device use_device",
    "dtypes": (
        "bfloat16 bool complex64 complex128 default_dtype float16 float32 float64 int8 int16 int32 int64 "
        "set_default_dtype uint8 uint16 uint32 uint64 use_dtype"
    ),
    "extend": "primitive",
    "functions.binning": "digitize histogram interp",
    "functions.calculus": "cumulative_trapezoid gradient polyval trapezoid unwrap vander",
    "functions.combinations": "cartesian_prod combinations",
    "functions.connections": "why",
    "functions.contraction": "addmm dot einsum matmul outer tensordot vdot vecdot",
    "functions.conversion": "compute persist",
    "functions.convolution": "convolve correlate",
    "functions.creation": (
        "asarray astype empty empty_like eye from_dlpack from_inner full full_like ones ones_like tensor tri zeros "
        "zeros_like"
    ),
    "functions.elementwise": (
        "abs acos acosh add angle asin asinh atan atan2 atanh cbrt ceil clip conj copysign cos cosh deg2rad divide exp "
        "exp2 expm1 floor floor_divide fmax fmin fmod heaviside hypot imag lerp log log1p log2 log10 logaddexp "
        "maximum minimum multiply nan_to_num negative nextafter piecewise positive pow rad2deg real reciprocal "
        "remainder round rsqrt select sign sin sinh sqrt square subtract tan tanh trunc where"
    ),
    "functions.gradients": "Gradients",
    "functions.indexing": (
        "argwhere delete diag_indices flatnonzero indices insert nonzero ravel_multi_index take take_along_axis "
        "tril_indices triu_indices unravel_index"
    ),
    "functions.inspection": "__array_namespace_info__ broadcast_shapes can_cast finfo iinfo isdtype result_type",
    "functions.logic": (
        "allclose array_equal bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
        "equal greater greater_equal isclose isfinite isinf isnan less less_equal logical_and logical_not logical_or "
        "logical_xor not_equal signbit"
    ),
    "functions.numbers": "frexp gcd lcm ldexp",
    "functions.padding": "pad",
    "functions.parts": "array_split chunk narrow split split_with_sizes trim_zeros",
    "functions.polynomials": "poly polyadd polyder polydiv polyfit polyint polymul roots",
    "functions.ranges": "arange geomspace linspace logspace meshgrid",
    "functions.reduction": (
        "all any argmax argmin count_nonzero cummax cummin cumulative_prod cumulative_sum diff logcumsumexp max mean "
        "min prod std std_mean sum var var_mean"
    ),
    "functions.scatter": (
        "bincount masked_scatter one_hot put_along_axis scatter segment_max segment_mean segment_min segment_prod "
        "segment_sum"
    ),
    "functions.sets": "isin unique unique_all unique_consecutive unique_counts unique_inverse unique_values",
    "functions.shape": (
        "append atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to column_stack concat diag "
        "diag_embed diagflat diagonal dstack expand_dims flip fliplr flipud hstack matrix_transpose moveaxis "
        "permute_dims ravel repeat reshape resize roll rot90 sliding_window_view squeeze stack swapaxes tile tril triu "
        "unflatten unstack vstack"
    ),
    "functions.sorting": "argpartition argsort kthvalue mode partition searchsorted sort topk",
    "functions.statistics": (
        "average corrcoef cov median nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin "
        "nanpercentile nanprod nanquantile nanstd nansum nanvar percentile ptp quantile"
    ),
    "linalg.distances": "cdist renorm",
    "pictures.drawing": "draw",
    "solvers.events": "odeint_event",
    "solvers.ode": "odeint",
    "tensor": "Tensor",
    "transforms.batches": "apply_along_axis vmap",
    "transforms.checkpoints": "checkpoint checkpoint_name",
    "transforms.closures": "closure_convert",
    "transforms.control": "cond fori_loop map scan switch while_loop",
    "transforms.custom": "custom_batching custom_jvp custom_vjp",
    "transforms.elementwise": "apply_where",
    "transforms.external": "external",
    "transforms.forward": "hvp jvp linearize",
    "transforms.jacobians": "hessian jacobian",
    "transforms.reverse": "grad linear_transpose stop_gradient value_and_grad vjp",
    "transforms.sparse": "sparse_hessian sparse_jacobian",
    "transforms.taylor": "jet",
}
_MODULES = modules_of(_TABLE)

# without bfloat16, for which ml_dtypes must be there: `from adjoint import *` asks for all of them
__all__ = sorted(_MODULES.keys() - {"bfloat16"})  # pyright: ignore[reportUnsupportedDunderAll]  # it reads them in the stub

import_module("adjoint.tensor")  # now, because Python binds the module to the name of a public function
globals().pop("tensor", None)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise missing(__name__, name)
    module = _MODULES[name]
    value = getattr(import_module(f"adjoint.{module}"), name) if module else import_module(f"adjoint.{name}")
    globals()[name] = value  # from here on `any`, `max` and their like mean ours in this file, too
    return value


def __dir__() -> list[str]:
    return __all__


if os.environ.get("ADJOINT_EAGER", "0") != "0":
    for _name in __all__:
        __getattr__(_name)
