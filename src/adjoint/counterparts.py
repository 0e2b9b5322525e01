"""Names of NumPy, SciPy, PyTorch and JAX that are called otherwise, or elsewhere, here: for the errors that say so."""

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

_TORCH = {
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
}
# functions that NumPy or PyTorch has at the top, or for "ad" as methods, and we in a room
_ROOMS = {
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
_ALIASES = "absolute amax amin arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_not fix true_divide".split()
# parameters of PyTorch's, by those of ours that they may be
PARAMETERS = {
    **dict.fromkeys("dim dims".split(), ("axis", "axes")),
    **{f"dim{n}": (f"axis{n}",) for n in (1, 2)},
    **dict.fromkeys("keepdim keep_dims".split(), ("keepdims",)),
    "ddof": ("correction",),
    "interpolation": ("method",),
}
_CUT = "x.detach() for a constant in the graph, ad.stop_gradient(x) in a transform's function"
_LEAF = "ad.tensor(values).require_grad(), a leaf that backward gives a gradient for"
_OF_MEMORY = "base byteswap ctypes dump dumps flags getfield setfield setflags strides tobytes tofile".split()

_FIRST_VALUES = (
    "constant kaiming_normal kaiming_uniform normal ones orthogonal uniform xavier_normal xavier_uniform zeros"
).split()
_SCHEDULES = {
    "ChainedScheduler": "lambda step: first(step) * second(step)",
    "ConstantLR": "ad.optim.joined([ad.optim.constant(0.03), ad.optim.constant(0.1)], [5])",
    "CosineAnnealingLR": "ad.optim.cosine",
    "CosineAnnealingWarmRestarts": "ad.optim.cosine with restarts=True",
    "CyclicLR": "lambda step: low + (high - low) * (1 - abs(step / steps % 2 - 1))",
    "ExponentialLR": "ad.optim.exponential",
    "LambdaLR": "any function of the step",
    "LinearLR": "ad.optim.linear",
    "MultiStepLR": "ad.optim.stairs with a list of steps",
    "MultiplicativeLR": "any function of the step",
    "OneCycleLR": "ad.optim.one_cycle",
    "PolynomialLR": "ad.optim.polynomial",
    "SequentialLR": "ad.optim.joined",
    "StepLR": "ad.optim.stairs",
}

_CHOICES = "ad.exp(-ad.log1p(n) - ad.special.betaln(n - k + 1, k + 1))"
_WINDOWS = (
    "barthann blackmanharris bohman boxcar chebwin dpss flattop general_cosine general_gaussian general_hamming "
    "kaiser_bessel_derived lanczos parzen taylor triang tukey"
).split()
COUNTERPARTS = {
    "adjoint": {
        **{name: f"ad.{ours}" for name, ours in NUMPY_NAMES.items()},
        **{name: f"np.{name}, which takes tensors" for name in TAKES_TENSORS},
        **_TORCH,
        "array": "ad.tensor(values), which copies, or ad.asarray(values)",
        "cumprod": "ad.cumulative_prod, or np.cumprod, which takes tensors",
        "cumsum": "ad.cumulative_sum, or np.cumsum, which takes tensors",
        "transpose": "ad.permute_dims, x.transpose(), or x.T of a matrix",
        "copy": "x.copy()",
        "put": "x.put(indices, values), or x[...] = v",
        "ix_": "x[i[:, None], j]",
        "identity": "ad.eye",
        **dict.fromkeys("asanyarray ascontiguousarray asfortranarray".split(), "ad.asarray"),
        **dict.fromkeys("copyto fill_diagonal place putmask".split(), "x[i] = v, or ad.where"),
        "hanning": "ad.fft.hann",
        **{f"{name}_window": f"ad.fft.{name}" for name in "bartlett blackman hamming hann kaiser".split()},
        "in1d": "ad.isin",
        "alltrue": "ad.all",
        "sometrue": "ad.any",
        "product": "ad.prod",
        "cumproduct": "ad.cumulative_prod",
        "cumtrapz": "ad.cumulative_trapezoid",
        "asscalar": "x.item()",
        "matrix": "ad.tensor(values), whose @ is the product of matrices",
        **dict.fromkeys(("mgrid", "ogrid"), "ad.meshgrid, or ad.indices"),
        **dict.fromkeys(("longdouble", "float128"), "ad.float64, or ad.Reference(digits) for more digits"),
        **dict.fromkeys(("defvjp", "defjvp"), "ad.custom_vjp, ad.custom_jvp, or ad.primitive"),
        "elementwise_grad": "ad.vmap(ad.grad(f))",
        "promote_types": "ad.result_type",
        "row_stack": "ad.vstack",
        "vectorize": "ad.vmap",
        "chain_matmul": "np.linalg.multi_dot, which takes tensors",
        "clone": "x.copy()",
        "detach": "x.detach()",
        "fill": "x.fill(value)",
        "flatten": "ad.ravel, or x.reshape(x.shape[0], -1) where the first axis stays",
        "range": "ad.arange",
        "t": "x.T",
        "bool_": "ad.bool",
        "float_": "ad.float64",
        "double": "ad.float64",
        "half": "ad.float16",
        "float": "ad.float32",
        "int": "ad.int64",
        "long": "ad.int64",
        "Size": "a tuple, which x.shape is",
        "ndarray": "ad.Tensor",
        "Array": "ad.Tensor",
        "numpy": "ad itself, which has these names, or NumPy's functions, which take tensors",
        "r_": "ad.concat",
        "c_": "ad.stack with axis=1",
        "distributions": "ad.stats for densities and quantiles, ad.random for numbers",
        "rand": "ad.random.uniform",
        "randn": "ad.random.normal",
        "randint": "ad.random.integers",
        "randperm": "ad.random.permutation",
        "manual_seed": "ad.random.seed",
        "PRNGKey": "ad.random.seed",
        "from_numpy": "ad.asarray",
        "as_tensor": "ad.asarray",
        "no_grad": _CUT,
        "set_grad_enabled": _CUT,
        "inference_mode": _CUT,
        "stop_grad": _CUT,
        "enable_grad": _LEAF,
        "Variable": _LEAF,
        "Parameter": _LEAF,
        "autograd": "y.backward(), and ad.grad of a function; docs/autograd.md is for programs of HIPS autograd",
        "backward": "y.backward(), which gives the gradients",
        "GradientTape": "y.backward(), or ad.grad of a function",
        "func": "ad itself: ad.grad, ad.vmap, ad.jvp and their like",
        "functional": "ad.nn",
        "jacfwd": "ad.jacobian with mode='forward'",
        "jacrev": "ad.jacobian with mode='reverse'",
        "jit": "ad.compile(f), or jax.jit where tensors are on ad.JAX()",
        "remat": "ad.checkpoint",
        "custom_gradient": "ad.custom_vjp",
        "device_get": "x.numpy()",
        "pmap": "jax.pmap on tensors of ad.JAX()",
        "lax": "ad.cond, ad.scan, ad.while_loop",
        "tree_map": "ad.tree.map",
        "tree_util": "ad.tree",
        "pure_callback": "ad.external",
        "cuda": "ad.Torch('cuda'), ad.JAX() or ad.CuPy(), as device=",
        "synchronize": "x.numpy(), which waits",
        "block_until_ready": "x.numpy(), which waits",
        "solve_ivp": "ad.odeint, with method='Radau' where it is stiff, and ad.odeint_event for its events",
        "ode": "ad.odeint",
        "fsolve": "ad.implicit.root, or ad.scipy.root for the value alone",
        "custom_root": "ad.implicit.root, which takes solver= and linear_solver=",
        "minimize": "ad.scipy.minimize, or ad.implicit.minimize where the minimum is differentiated",
        "curve_fit": "ad.scipy.curve_fit",
        "least_squares": "ad.scipy.least_squares",
        "is_tensor": "isinstance(x, ad.Tensor)",
        "save": "model.save(path) of a module, ad.train.save(path, tree), or np.save(file, x.numpy())",
        "load": "model.load(path) of a module, ad.train.load(path, like), or ad.asarray(np.load(file))",
    },
    "adjoint.linalg": {
        "bmm": "ad.matmul",
        "cho_factor": "ad.linalg.cholesky",
        "cho_solve": "ad.linalg.cholesky_solve(b, factor)",
        "cholesky_ex": "ad.linalg.cholesky",
        "eigvals_banded": "ad.linalg.eigvalsh",
        "expm_frechet": "ad.jvp of ad.linalg.expm",
        "fractional_matrix_power": "ad.linalg.expm(p * ad.linalg.logm(x))",
        "inv_ex": "ad.linalg.inv",
        "matrix_exp": "ad.linalg.expm",
        "pca_lowrank": "ad.linalg.svd_lowrank(x - x.mean(axis=0), rank)",
        "solve_continuous_lyapunov": "ad.linalg.solve_sylvester(a, a.conj().T, q)",
        "solve_lyapunov": "ad.linalg.solve_sylvester(a, a.conj().T, q)",
        "solve_toeplitz": "ad.linalg.solve(ad.linalg.toeplitz(c, r), b)",
        "tensorinv": "np.linalg.tensorinv, which takes tensors",
        "tensorsolve": "np.linalg.tensorsolve, which takes tensors",
    },
    "adjoint.fft": {
        **{f"{name}_window": f"ad.fft.{name}" for name in "bartlett blackman hamming hann kaiser".split()},
        **{name: f"scipy.signal.windows.{name}, and ad.asarray of it" for name in _WINDOWS},
    },
    "adjoint.special": {
        "bdtr": "ad.stats.binom.cdf(k, n, p)",
        "bdtrc": "ad.stats.binom.sf(k, n, p)",
        "bernoulli": "-n * ad.special.zeta(1 - n), for the n-th number",
        "binom": _CHOICES,
        "btdtr": "ad.special.betainc(a, b, x)",
        "btdtri": "ad.special.betaincinv(a, b, p)",
        "comb": _CHOICES,
        "cosm1": "-2 * ad.sin(x / 2) ** 2",
        "exp10": "10.0**x",
        "factorial": "ad.special.gamma(n + 1), or ad.special.gammaln(n + 1) of it as a logarithm",
        "fdtr": "ad.stats.f.cdf(x, dfn, dfd)",
        "fdtrc": "ad.stats.f.sf(x, dfn, dfd)",
        "fdtri": "ad.stats.f.ppf(p, dfn, dfd)",
        "gammasgn": "ad.sign(ad.special.rgamma(x))",
        "gdtr": "ad.stats.gamma.cdf(x, b, scale=1 / a)",
        "gdtrc": "ad.stats.gamma.sf(x, b, scale=1 / a)",
        "huber": "ad.nn.huber_loss(x, ad.zeros(x.shape), delta=delta, reduction='none')",
        **{f"{name}e": f"ad.special.{name}, which it is for real numbers" for name in ("jv", "yv")},
        **{f"{name}p": f"ad.grad or ad.jvp of ad.special.{name}" for name in ("jv", "yv", "iv", "kv")},
        "nbdtr": "ad.stats.nbinom.cdf(k, n, p)",
        "nbdtrc": "ad.stats.nbinom.sf(k, n, p)",
        "ndtri_exp": "ad.special.ndtri(ad.exp(x))",
        "pdtr": "ad.stats.poisson.cdf(k, mu)",
        "pdtrc": "ad.stats.poisson.sf(k, mu)",
        "poch": "ad.exp(ad.special.gammaln(x + m) - ad.special.gammaln(x))",
        "pseudo_huber": "delta**2 * (ad.sqrt(1 + (x / delta) ** 2) - 1)",
        **{
            f"spherical_{kind}n": f"ad.sqrt(ad.pi / 2 / x) * ad.special.{kind}v(n + 0.5, x)"
            for kind in ("j", "y", "i", "k")
        },
    },
    "adjoint.stats": {
        "cosine": "ad.log1p(ad.cos(x)) - ad.log(2 * ad.pi), of its density",
        "entropy": "ad.special.entr(p).sum(), or ad.special.rel_entr(p, q).sum()",
        "gaussian_kde": "ad.special.logsumexp of ad.stats.norm.logpdf(x[:, None], data, width)",
        "gibrat": "ad.stats.lognorm.logpdf(x, 1.0)",
        "gmean": "ad.exp(ad.log(x).mean())",
        "hmean": "1 / (1 / x).mean()",
        "pearsonr": "ad.corrcoef",
        "zscore": "(x - x.mean()) / x.std()",
    },
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
    "adjoint.nn": {
        "functional": "ad.nn itself, which has these functions",
        "tanh": "ad.tanh",
        "BatchNorm1d": "ad.nn.BatchNorm, for any number of axes",
        "BatchNorm2d": "ad.nn.BatchNorm, for any number of axes",
        "BatchNorm3d": "ad.nn.BatchNorm, for any number of axes",
        "InstanceNorm1d": "ad.nn.InstanceNorm, for any number of axes",
        "InstanceNorm2d": "ad.nn.InstanceNorm, for any number of axes",
        "InstanceNorm3d": "ad.nn.InstanceNorm, for any number of axes",
        "MultiheadAttention": "ad.nn.MultiHeadAttention",
        "ModuleList": "a tuple of modules in a field of an ad.nn.Module",
        "ModuleDict": "a dictionary of modules in a field of an ad.nn.Module",
        "ParameterList": "a tuple of tensors in a field of an ad.nn.Module",
        "ParameterDict": "a dictionary of tensors in a field of an ad.nn.Module",
        **{
            f"{kind}Pad{n}d": "ad.nn.Pad"
            for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
            for n in (1, 2, 3)
        },
        **{
            f"Lazy{kind}": f"ad.nn.{kind}, which is told the sizes"
            for kind in ("Linear", *(f"Conv{of}{n}d" for of in ("", "Transpose") for n in (1, 2, 3)))
        },
        **{
            f"Lazy{kind}Norm{n}d": f"ad.nn.{kind}Norm, which is told the size"
            for kind in ("Batch", "Instance")
            for n in (1, 2, 3)
        },
        "Container": "ad.nn.Module",
        "CrossMapLRN2d": "ad.nn.LocalResponseNorm",
        "DataParallel": "model.fork(device) for each part of a batch",
        "LinearCrossEntropyLoss": "ad.nn.CrossEntropyLoss after an ad.nn.Linear",
        "linear_cross_entropy": "ad.nn.cross_entropy(ad.nn.linear(x, weight), target)",
        "upsample": "ad.nn.interpolate",
        "upsample_nearest": "ad.nn.interpolate",
        "upsample_bilinear": 'ad.nn.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)',
        "multi_head_attention_forward": "ad.nn.MultiHeadAttention, or ad.nn.scaled_dot_product_attention",
        "NLLLoss2d": "ad.nn.NLLLoss, for any number of axes",
        "RNNBase": "ad.nn.RNN, ad.nn.LSTM or ad.nn.GRU",
        "RNNCellBase": "ad.nn.RNNCell, ad.nn.LSTMCell or ad.nn.GRUCell",
        "Softmax2d": "ad.nn.Softmax(-3)",
        "SyncBatchNorm": "ad.nn.BatchNorm",
        "Upsample": "ad.nn.Interpolate",
        "UpsamplingNearest2d": "ad.nn.Interpolate",
        "UpsamplingBilinear2d": 'ad.nn.Interpolate(scale_factor=2, mode="bilinear", align_corners=True)',
        "Parameter": "a tensor in a field of an ad.nn.Module",
    },
    "adjoint.nn.init": {
        **{f"{name}_": f"ad.nn.init.{name}(shape), which gives a tensor" for name in _FIRST_VALUES},
        "trunc_normal_": "ad.nn.init.truncated_normal(shape), which gives a tensor",
        "eye_": "ad.eye",
        "eye": "ad.eye",
        "dirac_": "ad.eye, reshaped to the weight of a convolution, with zeros beside the middle",
        "sparse_": "ad.nn.init.normal times ad.random.bernoulli",
        "calculate_gain": "nonlinearity= of ad.nn.init.kaiming_normal, or gain=",
        "he_normal": "ad.nn.init.kaiming_normal",
        "he_uniform": "ad.nn.init.kaiming_uniform",
        "glorot_normal": "ad.nn.init.xavier_normal",
        "glorot_uniform": "ad.nn.init.xavier_uniform",
    },
    "adjoint.optim": {
        **{name: f"{ours}, as lr= of an optimizer" for name, ours in _SCHEDULES.items()},
        "ReduceLROnPlateau": "ad.optim.Plateau, and its rate as lr= of step",
        "lr_scheduler": "a function of the step as lr= of an optimizer, such as ad.optim.cosine(0.1, 1000)",
        "swa_utils": "ad.optim.EMA, ad.optim.SWA and ad.optim.batch_statistics",
        "SparseAdam": "ad.optim.Adam: gradients are dense",
        "chain": "accumulate= and clip= of ad.train.Learner, or methods of ad.optim.GradientsParams",
        "apply_updates": "optimizer.step(model, grads, state)",
        "clip_grad_norm_": "ad.optim.GradientsParams.from_grads(grads, model).clip_by_global_norm(limit)",
    },
    "Module": {
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
            for name in "add sub mul div pow neg abs exp log sqrt zero fill copy clamp clip round relu sigmoid".split()
        },
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
            for room, names in _ROOMS.items()
            for name in names.split()
            if room != "ad.random" and name != "trace"
        },
        **{name: f"ad.{NUMPY_NAMES[name]}(x)" for name in _ALIASES},
        **{name: ours for name, ours in _TORCH.items() if ours.startswith("ad.")},
        **{name: ours.replace("ad.", "x.") for name, ours in _TORCH.items() if ours in ("ad.matmul", "ad.clip")},
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

_ROOT = "ad.implicit.root, which has derivatives"
SCIPY = {
    "scipy.integrate.solve_ivp": "ad.odeint",
    "scipy.integrate.odeint": "ad.odeint",
    "scipy.integrate.ode": "ad.odeint",
    "scipy.integrate.quad": "ad.trapezoid, or a sum over the nodes of a quadrature rule",
    "scipy.integrate.simpson": "ad.trapezoid",
    "scipy.integrate.cumulative_simpson": "ad.cumulative_trapezoid",
    "scipy.interpolate.interp1d": "ad.interp",
    "scipy.linalg.cho_factor": "ad.linalg.cholesky",
    "scipy.linalg.cho_solve": "ad.linalg.cholesky_solve",
    "scipy.optimize.minimize": "ad.scipy.minimize, or ad.implicit.minimize, whose result has derivatives",
    "scipy.optimize.root": f"ad.scipy.root, or {_ROOT}",
    "scipy.optimize.fixed_point": "ad.implicit.fixed_point",
    **{
        f"scipy.optimize.{name}": _ROOT
        for name in "bisect brenth brentq fsolve newton ridder root_scalar toms748".split()
    },
    "scipy.signal.fftconvolve": "ad.convolve",
    "scipy.signal.oaconvolve": "ad.convolve",
    "scipy.spatial.distance.cdist": "ad.cdist",
}
# functions of other libraries that run on any array, and assign to parts of one: not to be noticed in any other way
WRITE_TO_VIEWS = {"scipy.signal.oaconvolve": "scipy.signal.fftconvolve, or ad.convolve"}


def scipy_counterpart(name: str) -> str | None:
    """What is here for a function of SciPy's, such as `scipy.linalg.solve`: of the same name, or another one."""
    if name in SCIPY:
        return SCIPY[name]
    _, topic, *path = name.split(".")
    for place in ([topic], ["scipy"] if topic == "optimize" else []):
        found = _ours([*place, *path])
        if found is not None:
            return found
    return _ours(path)


def torch_counterpart(name: str) -> str | None:
    """What is here for a function of PyTorch's, as it names itself: `sin`, `relu`, `linalg_solve`."""
    topic, _, rest = name.partition("_")
    return _TORCH.get(name) or _ours([name]) or _ours(["nn", name]) or _ours([topic, rest]) or _ours(["special", name])


def _ours(path: list[str]) -> str | None:
    """`ad.` and the path, if there is such a function."""
    found: Any = sys.modules["adjoint"]
    for name in path:
        found = getattr(found, name, None) if found is not None else None
    return f"ad.{'.'.join(path)}" if callable(found) else None


def counterpart(owner: str, name: str) -> str:
    """What to write for a name that a module, a `Tensor` or a `Module` lacks: the end of a message, or nothing."""
    use = COUNTERPARTS.get(owner, {}).get(name)
    return f": use {use}" if use else ""
