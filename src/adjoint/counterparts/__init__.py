"""Names of NumPy, SciPy, PyTorch and JAX that are called otherwise, or elsewhere, here: for the errors that say so.

The tables of modules and of SciPy's functions are imported when somebody asks for a name that is not there.
"""

from __future__ import annotations

import re
import sys
from typing import Any

# NumPy's second names of functions that are ours
NUMPY_NAMES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "around": "round",
    "bitwise_not": "bitwise_invert",
    "concatenate": "concat",
    "conjugate": "conj",
    "degrees": "rad2deg",
    "fabs": "abs",
    "fix": "trunc",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "power": "pow",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "true_divide": "divide",
}
# NumPy's functions that take tensors, without one of ours
TAKES_TENSORS = (
    "array_equiv choose compress divmod dsplit ediff1d extract float_power hsplit iscomplex iscomplexobj isneginf "
    "isposinf isreal isrealobj lexsort intersect1d logaddexp2 matvec modf ndim polysub rollaxis setdiff1d setxor1d "
    "shape size union1d vecmat vsplit"
).split()

TORCH = {
    "addbmm": "c + ad.sum(a @ b, axis=0)",
    "addcdiv": "x + value * y / z",
    "addcmul": "x + value * y * z",
    "addmv": "ad.addmm, which takes vectors",
    "addr": "x + ad.outer(y, z)",
    "aminmax": "ad.min and ad.max",
    "baddbmm": "ad.addmm, which takes stacks",
    "bmm": "ad.matmul",
    "broadcast_tensors": "ad.broadcast_arrays",
    "bucketize": "ad.digitize",
    "cat": "ad.concat",
    "clamp": "ad.clip",
    "clamp_max": "ad.clip",
    "clamp_min": "ad.clip",
    "conj_physical": "ad.conj",
    "cummul": "ad.cumulative_prod",
    "device_put": "x.to_device(device)",
    "div": "ad.divide",
    "eq": "ad.equal",
    "gather": "ad.take_along_axis",
    "ge": "ad.greater_equal",
    "ger": "ad.outer",
    "gt": "ad.greater",
    "histc": "ad.histogram",
    "igamma": "ad.special.gammainc",
    "igammac": "ad.special.gammaincc",
    "index_add": "ad.scatter with mode 'add'",
    "index_copy": "ad.scatter",
    "index_put": "ad.scatter",
    "index_select": "ad.take",
    "inverse": "ad.linalg.inv",
    "le": "ad.less_equal",
    "lgamma": "ad.special.gammaln",
    "lt": "ad.less",
    "masked_fill": "ad.where",
    "masked_select": "x[mask]",
    "matrix_exp": "ad.linalg.expm",
    "mm": "ad.matmul",
    "movedim": "ad.moveaxis",
    "msort": "ad.sort with axis=0",
    "mul": "ad.multiply",
    "mv": "ad.matmul",
    "mvlgamma": "ad.special.multigammaln",
    "ne": "ad.not_equal",
    "neg": "ad.negative",
    "numel": "x.size",
    "orgqr": "ad.linalg.householder_product",
    "permute": "ad.permute_dims",
    "pinverse": "ad.linalg.pinv",
    "repeat_interleave": "ad.repeat",
    "scatter_add": "ad.scatter with mode 'add'",
    "scatter_reduce": "ad.put_along_axis with a mode",
    "sgn": "ad.sign",
    "sigmoid": "ad.special.expit",
    "sub": "ad.subtract",
    "swapdims": "ad.swapaxes",
    "take_along_dim": "ad.take_along_axis",
    "tensor_split": "ad.array_split",
    "trapz": "ad.trapezoid",
    "triangular_solve": "ad.linalg.solve_triangular",
    "unbind": "ad.unstack",
    "unsqueeze": "ad.expand_dims",
    "view": "ad.reshape",
    "as_strided": "ad.reshape, ad.permute_dims or ad.sliding_window_view: tensors have no strides",
    "dist": "ad.linalg.vector_norm(x - y)",
    "frac": "x - ad.trunc(x)",
    "geqrf": "ad.linalg.qr",
    "index_fill": "ad.scatter",
    "index_reduce": "ad.scatter with a mode",
    "is_complex": 'ad.isdtype(x.dtype, "complex floating")',
    "is_floating_point": 'ad.isdtype(x.dtype, "real floating")',
    "is_nonzero": "bool(x)",
    "is_same_size": "x.shape == y.shape",
    "is_signed": "not ad.isdtype(x.dtype, 'unsigned integer')",
    "multinomial": "ad.random.categorical, or ad.random.choice",
    "narrow_copy": "ad.narrow",
    "nonzero_static": "ad.nonzero",
    "ormqr": "ad.linalg.qr, and its Q @ x",
    "resolve_conj": "x itself: its values are conjugated already",
    "resolve_neg": "x itself: its values are negated already",
    **dict.fromkeys(
        "diagonal_scatter select_scatter slice_inverse slice_scatter".split(),
        "y = x.copy(); y[i] = v, which has gradients",
    ),
    **dict.fromkeys("unsafe_chunk unsafe_split unsafe_split_with_sizes".split(), "ad.split_with_sizes, or ad.chunk"),
}
# names of PyTorch's that change a tensor in place, without their underscore
IN_PLACE = (
    "abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2 "
    "arctanh asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or "
    "bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip conj_physical copy copysign cos cosh cumprod "
    "cumsum deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1 fill fill_diagonal fix float_power floor "
    "floor_divide fmod frac gcd ge greater greater_equal gt heaviside hypot i0 igamma igammac index_copy index_fill "
    "index_put index_reduce lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 logical_and logical_not "
    "logical_or logical_xor logit lt masked_fill masked_scatter mul multiply mvlgamma nan_to_num ne neg negative "
    "nextafter not_equal polygamma pow put rad2deg reciprocal relu remainder renorm round rsqrt scatter_reduce set sgn "
    "sigmoid sign sin sinc sinh sqrt square sub subtract swapaxes swapdims t tan tanh transpose tril triu "
    "true_divide trunc unsqueeze xlogy zero"
).split()
# functions that NumPy or PyTorch has at the top, or for "ad" as methods, and we in a room
ROOMS = {
    "ad": (
        "acos acosh addmm allclose angle argwhere asin asinh atan atan2 atanh bincount bitwise_and "
        "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign corrcoef cosh count_nonzero "
        "cov cummax cummin deg2rad diag diag_embed diagflat diff divide equal exp2 expm1 fliplr flipud "
        "floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside histogram hypot isclose "
        "isfinite isinf isnan kthvalue lcm ldexp lerp less less_equal log10 log1p log2 logaddexp logcumsumexp "
        "logical_and logical_not logical_or logical_xor masked_scatter maximum median minimum mode moveaxis "
        "multiply nan_to_num nanmean nanmedian nanquantile nansum narrow negative nextafter not_equal outer "
        "positive ptp quantile rad2deg reciprocal remainder renorm roll rot90 rsqrt scatter signbit sinh "
        "split_with_sizes subtract tan tril triu trunc unflatten unique unique_consecutive vdot"
    ),
    "ad.fft": "bartlett blackman hamming istft kaiser stft",
    "ad.linalg": (
        "block_diag cholesky cholesky_solve cross det eig expm inv kron logdet lstsq lu lu_solve matrix_power "
        "matrix_rank norm pinv qr slogdet solve svd svd_lowrank trace"
    ),
    "ad.nn": (
        "adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d batch_norm bilinear "
        "binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity ctc_loss dropout embedding "
        "embedding_bag feature_alpha_dropout group_norm hardshrink hinge_embedding_loss instance_norm kl_div "
        "layer_norm log_softmax margin_ranking_loss max_pool1d max_pool2d max_pool3d pairwise_distance pdist "
        "pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu rms_norm rrelu selu softmax threshold "
        "triplet_margin_loss unfold"
    ),
    "ad.random": "bernoulli binomial normal poisson seed",
    "ad.special": "digamma erf erfc erfinv expit gammaln i0 logit logsumexp polygamma sinc xlogy",
}
ALIASES = "absolute amax amin arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_not fix true_divide".split()
# parameters of PyTorch's, by those of ours that they may be
PARAMETERS = {
    **dict.fromkeys("dim dims".split(), ("axis", "axes")),
    **{f"dim{n}": (f"axis{n}",) for n in (1, 2)},
    **dict.fromkeys("keepdim keep_dims".split(), ("keepdims",)),
    "ddof": ("correction",),
    "interpolation": ("method",),
}
CUT = "x.detach() for a constant in the graph, ad.stop_gradient(x) in a transform's function"
LEAF = "ad.tensor(values).require_grad(), a leaf that backward gives a gradient for"

# --- names that tensors, modules, optimizers, distributions and calls of functions lack ------------

_OF_MEMORY = "base byteswap ctypes dump dumps flags getfield setfield setflags strides tobytes tofile".split()
_CASTS = {"byte": "uint8", "cdouble": "complex128", "cfloat": "complex64", "char": "int8", "short": "int16"}
_DRAWN = {
    "bernoulli": "bernoulli", "cauchy": "cauchy", "exponential": "exponential", "geometric": "geometric",
    "log_normal": "lognormal", "random": "integers",
}  # fmt: skip
_METHODS_OF_NUMPYS = "dsplit float_power hsplit isneginf isposinf logaddexp2 vsplit".split()
_SPARSE = (
    "ccol_indices coalesce col_indices crow_indices dense_dim hspmm indices is_coalesced is_sparse is_sparse_csr "
    "row_indices smm sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm to_dense to_sparse "
    "to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values resize_as_sparse_"
).split()
_QUANTISED = (
    "dequantize int_repr is_quantized q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
    "q_zero_point qscheme"
).split()
_WHERE = (
    "get_device ipu is_cpu is_cuda is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_vulkan is_xla is_xpu mtia "
    "to_mkldnn xpu"
).split()
_STORED = (
    "const_data_ptr data_ptr dim_order hash_tensor on_device_size_in_bytes storage storage_offset storage_type stride "
    "unsafe_buffer_pointer untyped_storage"
).split()
_KEPT = (
    "addressable_data addressable_shards committed device_buffer device_buffers format global_shards has_names "
    "is_conj is_contiguous is_deleted is_distributed is_fully_addressable is_fully_replicated is_inference is_neg "
    "is_nested is_pinned is_ready is_shared layout module_load names pin_memory record_stream resize_ resize_as_ "
    "share_memory_ to_padded_tensor traceback align_to align_as rename rename_ refine_names"
).split()
_MADE = "zeros ones full empty".split()

OBJECTS = {
    "device": dict.fromkeys(
        "device_kind id platform type".split(), "x.device.leaf.name, such as torch:cuda:0, where x is"
    ),
    "distribution": {
        **dict.fromkeys("rvs sample rsample".split(), "ad.random, which draws with gradients"),
        **dict.fromkeys(
            "entropy expect kurtosis mean moment skew std stats var variance".split(),
            "ad.trapezoid of what is averaged times the density, over x",
        ),
        "fit": "ad.scipy.minimize, or an optimizer, of the mean of -logpdf(x, ...), as ad.stats.norm.logpdf",
        "freeze": "functools.partial of a method, such as ad.stats.norm.logpdf",
        "icdf": "ppf, such as ad.stats.norm.ppf",
        "interval": "ppf of both ends, such as ad.stats.norm.ppf",
        "log_prob": "logpdf or logpmf, such as ad.stats.norm.logpdf",
        "median": "ppf of 0.5, such as ad.stats.norm.ppf(0.5)",
        "prob": "pdf or pmf, such as ad.stats.norm.pdf",
    },
    "Module": {
        **dict.fromkeys("ipu mtia xpu".split(), "model.to_device(device)"),
        **dict.fromkeys(("in_features", "out_features"), "the shape of a weight of the model"),
        **dict.fromkeys(
            "register_load_state_dict_post_hook register_load_state_dict_pre_hook register_state_dict_post_hook "
            "register_state_dict_pre_hook".split(),
            "a function of model.record()",
        ),
        "bfloat16": "model.map(lambda w: w.astype('bfloat16'))",
        "compile": "ad.compile(f) of a function of the model",
        "type": "model.map(lambda w: w.astype(dtype))",
        "named_children": "the fields of the model, or print(model)",
        "named_modules": "the fields of the model, or print(model)",
        "extra_repr": "print(model), which shows its fields",
        **dict.fromkeys(
            "register_backward_hook register_forward_pre_hook register_full_backward_hook "
            "register_full_backward_pre_hook".split(),
            "model.summary(x), ad.debug.print in __call__, or ad.custom_vjp",
        ),
        **dict.fromkeys(
            "get_extra_state set_extra_state".split(), "model.state(), of fields annotated as ad.nn.Buffer"
        ),
        "set_submodule": "model.at(path).set(module)",
        "register_module": "a field of the class of the model",
        "reset_parameters": "a new model, made as the first one; model.map changes what is there",
        "share_memory": "model.record(), which a process is sent",
        "to_empty": "model.to_device(device)",
        "parameters": "model.named_parameters(), a dictionary by path",
        "named_buffers": "model.state()",
        "buffers": "model.state()",
        "state_dict": "model.record()",
        "load_state_dict": "model.load_record(record)",
        "children": "the fields of the model, or ad.tree.leaves(model)",
        "modules": "the fields of the model, or print(model)",
        "forward": "model(x); a class of your own defines __call__",
        "eval": "model.train(False), or model.valid(), which has no gradients either",
        "requires_grad_": "model = model.require_grad()",
        "zero_grad": "nothing in its place: each loss.backward() returns new gradients",
        "to": "model.to_device(device)",
        "cpu": "model.to_device('numpy')",
        "cuda": "model.to_device('torch:cuda'), or 'cupy', or 'jax'",
        "double": "dtype=ad.float64 for its layers, or model.map(lambda w: w.astype(ad.float64))",
        "float": "model.map(lambda w: w.astype(ad.float32))",
        "half": "model.map(lambda w: w.astype(ad.float16))",
        "get_submodule": "model.at(path).get()",
        "get_parameter": "model.at(path).get()",
        "get_buffer": "model.at(path).get()",
        "register_parameter": "a field of the class of the model, annotated as ad.Tensor",
        "register_buffer": "a field of the class of the model, annotated as ad.nn.Buffer",
        "add_module": "a field of the class of the model",
        "register_forward_hook": "model.summary(x), or ad.debug.print in __call__",
        "append": "ad.nn.Sequential(*model.layers, layer)",
    },
    "parameters": {
        **dict.fromkeys("a input other self tensors x y".split(), "its place"),
        **dict.fromkeys("initial where".split(), "NumPy's function, which takes tensors"),
        "dtype": "x.astype(dtype) for it, or NumPy's function, which takes tensors",
        "kind": "stable, of True or False",
        "requires_grad": "x = x.require_grad(), a leaf that backward gives a gradient for",
        "out": "y = ..., or y[...] = ...: tensors are values",
        "unbiased": "correction=1, or correction=0 for unbiased=False",
    },
    "Optimizer": {
        "zero_grad": "nothing in its place: each loss.backward() returns new gradients",
        **dict.fromkeys("state state_dict".split(), "the state that init and step return"),
        "load_state_dict": "step(model, grads, state) with the state that was saved",
        **dict.fromkeys("param_groups add_param_group".split(), "optimizer.group(where, lr=...), another optimizer"),
    },
    "Settings": {
        **dict.fromkeys("rate learning_rate step_size eta".split(), "lr"),
        **dict.fromkeys("b1 b2 beta beta1 beta2 beta_1 beta_2".split(), "betas, a pair"),
        "epsilon": "eps",
        "params": "init(model) and step(model, grads, state)",
        "maximize": "the gradients of -loss",
        **dict.fromkeys("foreach fused capturable differentiable".split(), "none: it is so in any case"),
    },
    "Tensor": {
        **{
            f"{name}_": "x[...] = v, or x += y and its like: methods do not change tensors, which are values"
            for name in IN_PLACE
        },
        **{name: ours for name, ours in TORCH.items() if not ours.startswith("ad.")},
        **{f"{name}_": f"ad.random.{ours}, and x[...] = v" for name, ours in _DRAWN.items()},
        **{name: f"x.astype(ad.{dtype})" for name, dtype in _CASTS.items()},
        **{name: f"np.{name}(x), which takes tensors" for name in TAKES_TENSORS if name in _METHODS_OF_NUMPYS},
        **dict.fromkeys(_SPARSE, "x itself, which is dense; ad.sparse_jacobian gives matrices of SciPy's"),
        **dict.fromkeys(_QUANTISED, "x itself: there are no quantised tensors"),
        **dict.fromkeys(_WHERE, "x.device, whose name says where it computes, such as autodiff<torch:cuda:0>"),
        **dict.fromkeys(_STORED, "x.numpy(), whose memory NumPy describes"),
        **dict.fromkeys(_KEPT, "x itself: there is no such mark of a tensor"),
        **{f"new_{name}": f"ad.{name}(shape, dtype=x.dtype, device=x.device)" for name in _MADE},
        "matvec": "x @ y",
        "new": "ad.empty(shape, dtype=x.dtype, device=x.device)",
        "new_tensor": "ad.tensor(values, dtype=x.dtype, device=x.device)",
        "new_empty_strided": "ad.empty(shape, dtype=x.dtype, device=x.device)",
        "adjoint": "x.conj().mT",
        "apply_": "ad.vmap(f)(x), or x[...] = v",
        **dict.fromkeys(("map_", "map2_"), "ad.vmap(f)(x, y), or x[...] = v"),
        **dict.fromkeys(("as_strided_", "as_strided_scatter"), TORCH["as_strided"]),
        "as_subclass": "x itself",
        "bernoulli": "ad.random.bernoulli(x)",
        "bfloat16": "x.astype('bfloat16')",
        "chalf": "x.astype(ad.complex64)",
        "symeig": "ad.linalg.eigh(x)",
        "volatile": "x.detach()",
        "cholesky_inverse": "ad.linalg.cholesky_solve(ad.eye(n), x)",
        "grad_dtype": "x.dtype",
        "index": "x[i]",
        "isreal": "np.isreal(x), which takes tensors",
        "is_set_to": "x is y",
        "name": "x.grad_fn.name",
        "newbyteorder": "x.numpy().view, of the values",
        "output_nr": "x.grad_fn",
        "register_post_accumulate_grad_hook": "grads[x] after grads = y.backward()",
        "reinforce": "ad.stop_gradient(reward) * ad.log(p)",
        "resize_as": "x.reshape(y.shape)",
        "retains_grad": "y.backward(wrt=[x])",
        "select": "x.take(i, axis)",
        "sum_to_size": "x.sum(axis, keepdims=True)",
        "tostring": "x.numpy().tobytes, of the values",
        "type_as": "x.astype(y.dtype)",
        "weak_type": "x.dtype",
        "aval": "x.shape and x.dtype",
        "copy_to_host_async": "x.numpy()",
        "delete": "del x",
        "platform": "x.device",
        "requires_grad_": "x = x.require_grad()",
        "detach_": "x = x.detach()",
        "squeeze_": "x = x.squeeze()",
        "uniform_": "ad.random.uniform",
        "normal_": "ad.random.normal",
        "scatter_": "ad.scatter, or x[i] = v",
        "scatter_add_": "ad.scatter with mode 'add'",
        "index_add_": "ad.scatter with mode 'add'",
        **{
            name: f"{room}.{name}(x)"
            for room, names in ROOMS.items()
            for name in names.split()
            if room != "ad.random" and name != "trace"
        },
        **{name: f"ad.{NUMPY_NAMES[name]}(x)" for name in ALIASES},
        **{name: ours for name, ours in TORCH.items() if ours.startswith("ad.")},
        **{name: ours.replace("ad.", "x.") for name, ours in TORCH.items() if ours in ("ad.matmul", "ad.clip")},
        **{name: f"x.numpy().{name}, of the values" for name in _OF_MEMORY},
        "flat": "x.ravel(), and x.put(indices, values) to assign",
        "data": "x.detach(), or x.numpy().data for the memory",
        "view": "x.reshape(shape), or x.astype(dtype)",
        "view_as": "x.reshape(y.shape)",
        "reshape_as": "x.reshape(y.shape)",
        "expand": "x.broadcast_to(shape)",
        "expand_as": "x.broadcast_to(y.shape)",
        "unsqueeze": "x.expand_dims(axis)",
        "permute": "x.permute_dims(axes)",
        "t": "x.T",
        "mH": "x.conj().mT",
        "H": "x.conj().T",
        "chunk": "ad.chunk(x, n)",
        "split": "ad.split(x, n), or ad.split_with_sizes(x, sizes)",
        "unbind": "ad.unstack(x)",
        "tile": "ad.tile(x, n)",
        "gather": "ad.take_along_axis",
        "index_select": "x.take(indices, axis)",
        "masked_fill": "ad.where(mask, value, x)",
        "masked_select": "x[mask]",
        "where": "ad.where(condition, x, y)",
        "topk": "ad.topk(x, k)",
        "add": "x + y",
        "sub": "x - y",
        "mul": "x * y",
        "div": "x / y",
        "neg": "-x",
        "pow": "x ** y",
        "eq": "x == y",
        "sigmoid": "ad.special.expit(x)",
        "dim": "x.ndim",
        "ndimension": "x.ndim",
        "numel": "x.size",
        "nelement": "x.size",
        "element_size": "x.itemsize",
        "float": "x.astype(ad.float32)",
        "double": "x.astype(ad.float64)",
        "half": "x.astype(ad.float16)",
        "int": "x.astype(ad.int32)",
        "long": "x.astype(ad.int64)",
        "bool": "x.astype(ad.bool)",
        "type": "x.astype(dtype)",
        "to": "x.to_device(device) or x.astype(dtype)",
        "cpu": "x.to_device('numpy')",
        "cuda": "x.to_device('torch:cuda'), or 'cupy', or 'jax'",
        "contiguous": "x itself: its order in memory cannot be seen",
        "clone": "x.copy()",
        "requires_grad": "x.require_grad(), and x.is_require_grad() to ask",
        "is_leaf": "x.is_require_grad()",
        "retain_grad": "y.backward(wrt=[x])",
        "zero_grad": "nothing in its place: each y.backward() returns new gradients",
        "register_hook": "ad.custom_vjp",
        "at": "ad.scatter(x, i, v), or x[i] = v",
        "block_until_ready": "x.numpy(), which waits",
        "devices": "x.device",
        "sharding": "x.native().sharding",
        "assign": "x[...] = v, or w.with_value(v) for a leaf",
        "get_shape": "x.shape",
    },
}
# functions of other libraries that run on any array, and assign to parts of one: not to be noticed in any other way
WRITE_TO_VIEWS = {"scipy.signal.oaconvolve": "scipy.signal.fftconvolve, or ad.convolve"}


def scipy_counterpart(name: str) -> str | None:
    """What is here for a function of SciPy's, such as `scipy.linalg.solve`: of the same name, or another one."""
    from adjoint.counterparts.scipy_functions import SCIPY

    if name in SCIPY:
        return SCIPY[name] or None
    _, topic, *path = name.split(".")
    for place in ([topic], ["scipy"] if topic == "optimize" else []):
        found = _ours([*place, *path])
        if found is not None:
            return found
    return _ours(path)


def torch_counterpart(name: str) -> str | None:
    """What is here for a function of PyTorch's, as it names itself: `sin`, `relu`, `linalg_solve`."""
    topic, _, rest = name.partition("_")
    return TORCH.get(name) or _ours([name]) or _ours(["nn", name]) or _ours([topic, rest]) or _ours(["special", name])


def _ours(path: list[str]) -> str | None:
    """`ad.` and the path, if there is such a function."""
    found: Any = sys.modules["adjoint"]
    for name in path:
        found = getattr(found, name, None) if found is not None else None
    return f"ad.{'.'.join(path)}" if callable(found) else None


def counterpart(owner: str, name: str) -> str:
    """What to write for a name that a module, a `Tensor` or a `Module` lacks: the end of a message, or nothing."""
    table = OBJECTS.get(owner)
    if table is None:
        from adjoint.counterparts.modules import MODULES

        table = MODULES.get(owner, {})
    use = table.get(name)
    return f": use {use}" if use else ""


def family(name: str) -> str:
    """The same for a name that no one function stands for: what those that are called so are for."""
    from adjoint.counterparts.modules import FAMILIES

    return next((f": use {words}" for names, words in FAMILIES if re.fullmatch(names, name)), "")
