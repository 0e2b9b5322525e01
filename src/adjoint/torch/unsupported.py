"""The types that functions do not take, and what PyTorch says then."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.torch.dtypes import of_numpy, result_dtype

# by NumPy's letters: b bool, u uint8, i other integers, h half, f other reals, c complex
_LETTERS = {"b": "bool", "u": "uint8", "i": "int8 int16 int32 int64", "h": "float16", "f": "float32 float64",
            "c": "complex64 complex128"}  # fmt: skip
_CODES = {letter: "".join([np.dtype(name).char for name in names.split()]) for letter, names in _LETTERS.items()}

# Types, what PyTorch calls its code for them, functions. Behind a + it is the type that all operands meet in; the
# others look at their first argument, and behind a . it is taken without axes, or without elements.
_KERNELS = """
buic frac_cpu frac
b trunc_vml_cpu trunc
b floor_vml_cpu floor
b ceil_vml_cpu ceil
bc round_vml_cpu round
b abs_cpu abs
c erf_vml_cpu erf
c erfc_vml_cpu erfc
c erfinv_vml_cpu erfinv
c lgamma_vml_cpu lgamma
c digamma digamma
c i0_vml_cpu i0
c logit_cpu logit
c mvlgamma mvlgamma
bc+ div_floor_cpu floor_divide
bc+ remainder_cpu remainder
bc+ fmod_cpu fmod
buic+ hypot_cpu hypot
buic+ logaddexp2_cpu logaddexp2
bui+ nextafter_cpu nextafter
buic+ igamma_cpu igamma
buic+ igammac_cpu igammac
c+ xlogy_cpu xlogy
bfch+ lshift_cpu bitwise_left_shift
bfch+ rshift_cpu bitwise_right_shift
fch+ bitwise_and_cpu bitwise_and
fch+ bitwise_or_cpu bitwise_or
fch+ bitwise_xor_cpu bitwise_xor
fch bitwise_not_cpu bitwise_not
fchb+ gcd_cpu gcd
fchb+ lcm_cpu lcm
bui lerp_kernel_scalar lerp
h polar_cpu polar
b addmm_impl_cpu_ mm addmm addbmm inner chain_matmul linalg.multi_dot
b bmm bmm
b addmv_impl_cpu mv addmv
b dot dot vdot
b baddbmm baddbmm
bc median_cpu median nanmedian
c max_all max
c min_all min
c max_values_cpu amax
c min_values_cpu amin
c aminmax_cpu aminmax
c. cummax_cpu cummax
c. cummin_cpu cummin
c. mode_cpu mode
bui logcumsumexp_out_cpu logcumsumexp
bc. kthvalue_cpu kthvalue
b trace trace
c unique unique unique_consecutive
bhfc bincount_cpu bincount
h cdist cdist
h lu_cpu det linalg.det linalg.solve linalg.solve_ex linalg.tensorsolve
buih lu_cpu lu lu_solve linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve
h cholesky_cpu linalg.cholesky linalg.cholesky_ex
uih cholesky_cpu cholesky
b addmm_impl_cpu_ cholesky
buih cholesky_solve_cpu cholesky_solve
buih cholesky_inverse_out_cpu cholesky_inverse
buih linalg_eigh_cpu linalg.eigh linalg.eigvalsh
h linalg_svd_cpu svd linalg.svd linalg.svdvals linalg.cond
h geqrf_cpu qr linalg.qr svd_lowrank pca_lowrank
h orgqr_cpu orgqr linalg.householder_product
h linalg_eig_out_cpu linalg.eig linalg.eigvals
buih triangular_solve_cpu triangular_solve linalg.solve_triangular
b cross cross linalg.cross
c index_func_ index_reduce
bui normal_kernel_cpu normal_
bui check_uniform_bounds uniform_
buic log_normal_cpu log_normal_
c geometric_cpu geometric_
c random_kernel_cpu random_
buic GeluKernelImpl gelu
buic GroupNormKernelImpl group_norm
buic LayerNormKernelImpl layer_norm
buic adaptive_max_pool2d adaptive_max_pool1d adaptive_max_pool2d
buic adaptive_max_pool3d_cpu adaptive_max_pool3d
buc avg_pool2d avg_pool1d avg_pool2d
buc avg_pool2d local_response_norm
uc avg_pool2d lp_pool1d lp_pool2d
buhc avg_pool3d_out_frame avg_pool3d
uhc avg_pool3d_out_frame lp_pool3d
buic batch_norm batch_norm instance_norm
b bmm bilinear
b compute_columns3d conv3d
b slow_conv2d_cpu conv1d conv2d
buic elu_cpu celu selu elu
buic grid_sampler_2d_cpu_kernel_impl grid_sample
c fractional_max_pool2d_out_frame fractional_max_pool2d
c fractional_max_pool3d_out_frame fractional_max_pool3d
buic leaky_relu_cpu rrelu
buic log_sigmoid_cpu binary_cross_entropy_with_logits logsigmoid multilabel_soft_margin_loss
bc max_pool2d max_pool2d
bc max_pool3d max_pool3d
buic max_unpool2d max_unpool1d max_unpool2d
buic max_unpool3d max_unpool3d
buihc multi_margin_loss_cpu_kernel multi_margin_loss
buihc multilabel_margin_loss_forward_out_frame multilabel_margin_loss
buic nll_loss_out_frame nll_loss
h pdist pdist
bui rms_norm rms_norm
c softmax_lastdim_kernel_impl scaled_dot_product_attention
buic softshrink_check softshrink
c bernoulli_scalar_cpu_ bernoulli_
"""

_NOT_IMPLEMENTED = {  # the same, where PyTorch says it in words
    "c trunc floor ceil": "{name} is not supported for complex inputs",
    "c sign": "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    "c relu": "clamp is not supported for complex types",
    "c hinge_embedding_loss margin_ranking_loss cosine_embedding_loss relu6 hardtanh": "clamp is not supported for "
    "complex types",
    "c+ clamp clamp_min clamp_max": "clamp is not supported for complex types",
}
_FLOATING = "{name}: Expected a floating point or complex tensor as input. Got {type}"
_LOW = "{name}: Low precision dtypes not supported. Got {type}"
_REFUSED = {  # and where it is a RuntimeError
    "c deg2rad rad2deg": "{name} is not supported for complex tensors.",
    "c isposinf isneginf": "{name} does not support complex inputs.",
    "c+ maximum minimum": "{name} not implemented for complex tensors.",
    "c nansum nanmean": "nansum on CPU does not support complex inputs",
    "bui nanmean": "nanmean(): expected input to have floating point or complex dtype but got {type}",
    "b argmax argmin": "{name}(): does not support bool input",
    "c argmax argmin": "{name}(): does not support complex input",
    "c sort argsort msort": "Sort does not support complex dtypes on CPU",
    "b topk": "topk does not support bool dtypes on CPU",
    "c topk": "topk does not support complex dtypes on CPU",
    "b cov corrcoef": "cov(): bool dtype is not supported for input",
    "bc isin": "Unsupported input type encountered for isin(): {type}",
    "b. trapezoid cumulative_trapezoid": "trapezoid: received a bool input for `y`, but bool is not supported",
    "u gradient": "torch.gradient does not support uint8 input.",
    "b gradient": "Subtraction, the `-` operator, with two bool tensors is not supported.",
    "b+ dist": "Subtraction, the `-` operator, with two bool tensors is not supported.",
    "ui+ dist": "norm(): input dtype should be either floating point or complex. Got {type} instead.",
    "h quantile nanquantile": "{name}() input tensor must be either float or double dtype",
    "bui linalg.det linalg.inv linalg.inv_ex linalg.solve linalg.solve_ex linalg.cholesky": _FLOATING,
    "bui linalg.slogdet linalg.svd linalg.svdvals linalg.qr linalg.vector_norm linalg.norm": _FLOATING,
    "bui linalg.vecdot linalg.cond linalg.tensorinv linalg.tensorsolve logdet renorm": _FLOATING,
    "bui linalg.cholesky_ex linalg.matrix_norm linalg.matrix_exp matrix_exp": _FLOATING,
    "buic exponential_": "Exponential distribution is a continuous probability distribution, not of {type}",
    "buic cauchy_": "Cauchy distribution is a continuous probability distribution, not of {type}",
    "bui det slogdet svd qr": "linalg." + _FLOATING,
    "bui inverse": _FLOATING.replace("{name}", "linalg.inv"),
    "h logdet linalg.slogdet": _LOW,
    "h slogdet": "linalg." + _LOW,
    "h inverse linalg.inv linalg.inv_ex linalg.tensorinv": _LOW.replace("{name}", "linalg.inv"),
    "bui linalg.eig linalg.eigvals": "Unknown Complex ScalarType for {type}",
    "bui linalg.pinv pinverse": "linalg.pinv({type}): expected a tensor of float, double, cfloat or cdouble types",
    "bui orgqr linalg.householder_product": "torch.linalg.householder_product: does not take tensors of {type}",
    "bui svd_lowrank pca_lowrank": "expected m1 and m2 to have the same dtype, but got: {type} != Float",
    "buih linalg.lstsq linalg.matrix_rank": "This function doesn't handle types other than float and double",
    "bh linalg.vander": "linalg.vander supports floating point, complex, and integer tensors, but got {type}",
    "bui scaled_dot_product_attention": "expected m1 and m2 to have the same dtype, but got: float != {type}",
    "buic pdist": "{name} only supports floating-point dtypes",
    "bui normalize": "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {type}",
    "h stft istft": "MKL FFT doesn't support tensors of type: {type}",
    "bui stft": "stft(): expected a tensor of floating point or complex values, but got {type}",
}  # fmt: skip


# what takes tensors alone, and says so before it looks at types
NO_NUMBERS = frozenset(
    "arctan2 atan2 complex fmax fmin gammainc gammaincc gcd heaviside hypot igamma igammac isclose lcm logaddexp "
    "logaddexp2 logical_and logical_or logical_xor maximum minimum nextafter polar".split()
)


class _Row:
    """Types that a function does not take: whether all operands count, or those with elements along axes, and what is
    said."""

    def __init__(self, codes: str, how: str, error: type[Exception], text: str) -> None:
        self.codes, self.how, self.error, self.text = codes, how, error, text


_ROWS: dict[str, list[_Row]] = {}


def _declare(letters: str, names: str, error: type[Exception], text: str) -> None:
    codes = "".join([_CODES[letter] for letter in letters.rstrip("+.")])
    for name in names.split():
        _ROWS.setdefault(name, []).append(_Row(codes, letters[-1], error, text))


for _line in _KERNELS.strip().splitlines():
    _letters, _kernel, _names = _line.split(" ", 2)
    _declare(_letters, _names, NotImplementedError, f"\"{_kernel}\" not implemented for '{{type}}'")
for _table, _error in ((_NOT_IMPLEMENTED, NotImplementedError), (_REFUSED, RuntimeError)):
    for _key, _text in _table.items():
        _letters, _, _names = _key.partition(" ")
        _declare(_letters, _names, _error, _text)


def codes_of(name: str) -> str:
    """The types, by NumPy's letters, which a function of that name refuses of some argument; "" where there is none."""
    return "".join([row.codes for row in _ROWS.get(name, ())])


def refuse(name: str, operands: Any) -> None:
    """Raise PyTorch's error for operands of a type that a function does not take."""
    known = [float(x) if isinstance(x, np.bool_) else x.item() if isinstance(x, np.number) else x for x in operands]
    known = [x for x in known if hasattr(x, "_dtype") or isinstance(x, (bool, int, float, complex))]
    if name in NO_NUMBERS and not all([hasattr(x, "_dtype") for x in known[:2]]):
        return
    for row in _ROWS[name]:
        first = operands[0]
        dtype = result_dtype(known) if row.how == "+" else getattr(first, "_dtype", None)
        if dtype is not None and dtype.char in row.codes and (row.how != "." or (first.ndim and first.numel())):
            raise row.error(row.text.format(name=name, type=of_numpy(dtype).class_name))
