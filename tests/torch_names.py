"""PyTorch's modules and names, and programs of those that training scripts use beside the large areas."""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import warnings
from collections.abc import Callable
from typing import Any

# --- modules of PyTorch 2.13 -----------------------------------------------------------------------------

HERE = """
    accelerator accelerator.memory amp amp.autocast_mode amp.grad_scaler autograd autograd.anomaly_mode
    autograd.forward_ad autograd.function autograd.functional autograd.grad_mode autograd.gradcheck autograd.graph
    autograd.variable backends backends.cpu backends.cuda backends.cudnn backends.cusparselt backends.mha
    backends.mkl backends.mkldnn backends.mps backends.nnpack backends.openmp backends.opt_einsum compiler cpu
    cpu.amp cpu.amp.autocast_mode cpu.amp.grad_scaler cuda cuda.amp cuda.amp.autocast_mode cuda.amp.grad_scaler
    cuda.memory cuda.random cuda.streams fft func functional linalg mps mtia mtia.memory multiprocessing nn
    nn.attention nn.common_types nn.functional nn.grad nn.init nn.modules nn.modules.activation nn.modules.adaptive
    nn.modules.batchnorm nn.modules.channelshuffle nn.modules.container nn.modules.conv nn.modules.distance
    nn.modules.dropout nn.modules.flatten nn.modules.fold nn.modules.instancenorm nn.modules.lazy nn.modules.linear
    nn.modules.loss nn.modules.module nn.modules.normalization nn.modules.padding nn.modules.pixelshuffle
    nn.modules.pooling nn.modules.rnn nn.modules.sparse nn.modules.transformer nn.modules.upsampling
    nn.modules.utils nn.parameter nn.utils nn.utils.clip_grad nn.utils.convert_parameters nn.utils.fusion
    nn.utils.init nn.utils.memory_format nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn
    nn.utils.spectral_norm nn.utils.stateless nn.utils.weight_norm optim optim.adadelta optim.adagrad optim.adam
    optim.adamax optim.adamw optim.asgd optim.lbfgs optim.lr_scheduler optim.nadam optim.optimizer optim.radam
    optim.rmsprop optim.rprop optim.sgd optim.swa_utils random serialization signal signal.windows
    signal.windows.windows special testing torch_version types utils utils.checkpoint utils.data
    utils.data.dataloader utils.data.dataset utils.data.distributed utils.data.sampler utils.deterministic
    distributions distributions.bernoulli distributions.beta distributions.binomial distributions.categorical
    distributions.cauchy distributions.chi2 distributions.constraint_registry distributions.constraints
    distributions.continuous_bernoulli distributions.dirichlet distributions.distribution distributions.exp_family
    distributions.exponential distributions.fishersnedecor distributions.gamma distributions.generalized_pareto
    distributions.geometric distributions.gumbel distributions.half_cauchy distributions.half_normal
    distributions.independent distributions.inverse_gamma distributions.kl distributions.kumaraswamy
    distributions.laplace distributions.lkj_cholesky distributions.log_normal distributions.logistic_normal
    distributions.lowrank_multivariate_normal distributions.mixture_same_family distributions.multinomial
    distributions.multivariate_normal distributions.negative_binomial distributions.normal
    distributions.one_hot_categorical distributions.pareto distributions.poisson distributions.relaxed_bernoulli
    distributions.relaxed_categorical distributions.studentT distributions.transformed_distribution
    distributions.transforms distributions.uniform distributions.utils distributions.von_mises
    distributions.weibull distributions.wishart return_types
    overrides distributed futures jit nn.parallel utils.dlpack utils.hooks version xpu xpu.memory xpu.random
"""
REFUSED = """
    accelerator.graphs ao autograd.profiler autograd.profiler_legacy autograd.profiler_util backends.cudnn.rnn
    backends.kleidiai backends.miopen backends.python_native backends.quantized backends.xeon backends.xnnpack
    compiler.config contrib cuda.amp.common cuda.comm cuda.gds cuda.graphs cuda.green_contexts cuda.jiterator
    cuda.nccl cuda.nvtx cuda.profiler cuda.sparse cuda.tunable export fx hub
    library masked monitor mps.event mps.profiler mtia.mtia_graph multiprocessing.pool multiprocessing.queue
    multiprocessing.reductions multiprocessing.spawn nativert nested nn.attention.bias nn.attention.experimental
    nn.attention.flex_attention nn.attention.varlen nn.backends nn.cpp nn.intrinsic nn.modules.linear_cross_entropy
    nn.modules.linear_cross_entropy_options nn.qat nn.quantizable nn.quantized numa onnx
    optim.sparse_adam package profiler quantization quasirandom sparse storage
    utils.backcompat utils.backend_registration utils.benchmark utils.bundled_inputs utils.collect_env
    utils.cpp_backtrace utils.cpp_extension utils.data.backward_compatibility utils.data.datapipes utils.data.graph
    utils.data.graph_settings utils.debug_log utils.file_baton utils.flop_counter utils.hipify utils.jit
    utils.mkldnn utils.mobile_optimizer utils.model_dump utils.model_zoo utils.module_tracker utils.serialization
    utils.show_pickle utils.tensorboard utils.throughput_benchmark utils.viz utils.weak xpu.graphs xpu.streams
"""
LATER: set[str] = set()  # that are here, and no modules of PyTorch's


def modules_of(torch: Any) -> set[str]:
    """The public modules of PyTorch, without those in packages that are refused as a whole, or stood for."""
    refused, found = {*REFUSED.split(), "distributed", "jit", "nn.parallel"}, set()

    def walk(package: Any) -> None:
        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            name = info.name.removeprefix("torch.")
            if name.rpartition(".")[2].startswith("_"):
                continue
            found.add(name)
            if info.ispkg and name not in refused and not any([name.startswith(f"{r}.") for r in refused]):
                walk(importlib.import_module(info.name))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        walk(torch)
    return found


# --- names -----------------------------------------------------------------------------------------------

PLACES = """
    torch Tensor nn nn.functional nn.init nn.parameter nn.modules nn.attention nn.grad nn.utils nn.utils.rnn
    nn.utils.parametrize nn.utils.parametrizations nn.utils.stateless nn.utils.prune nn.utils.fusion optim
    optim.lr_scheduler optim.swa_utils utils utils.data utils.checkpoint utils.hooks utils.dlpack autograd
    autograd.functional autograd.forward_ad autograd.graph autograd.function func functional linalg fft special
    random amp cuda cuda.amp cpu cpu.amp backends backends.cuda backends.mps accelerator mps xpu mtia compiler types
    version testing signal.windows multiprocessing
"""
_FOREIGN = {"typing", "typing_extensions", "collections", "collections.abc", "functools", "enum", "dataclasses"}
_FOREIGN |= {
    "contextlib",
    "abc",
    "copy",
    "itertools",
    "warnings",
    "weakref",
    "_weakref",
    "ctypes",
    "types",
    "re",
    "math",
}
# PyTorch's helpers, which no program calls
_HELPERS = {"PackedSequence_", "assert_int_or_pair", "bind", "common_args", "common_notes", "factory_common_args"}
_HELPERS |= {"factory_kwargs", "inf", "multi_dim_common", "NestedIOFunction", "reproducibility_notes", "tf32_notes"}


def _at(root: Any, path: str) -> Any:
    for part in [] if path == "torch" else path.split("."):
        try:
            root = getattr(root, part)
        except AttributeError:
            root = importlib.import_module(f"{root.__name__}.{part}")
    return root


def missing(torch: Any, ours: Any, place: str) -> list[tuple[str, str]]:
    """PyTorch's public names of a place that are not here, and what is said of each."""
    there, here = _at(torch, place), ours.ones(2, 2, dtype=ours.cfloat) if place == "Tensor" else _at(ours, place)
    named = set(getattr(there, "__all__", ()))
    out = []
    for name in sorted({n for n in dir(there) if not n.startswith("_")} | named):
        value = getattr(there, name, None)
        if name not in named:
            foreign = getattr(value, "__module__", None) in _FOREIGN or isinstance(value, type(contextlib))
            if foreign or value is None or type(value).__module__ in _FOREIGN or isinstance(value, (str, int)):
                continue
            elsewhere = getattr(value, "__module__", None)
            if place != "torch" and place != "Tensor" and elsewhere and not elsewhere.startswith(f"torch.{place}"):
                continue
        if name in _HELPERS:
            continue
        try:
            getattr(here, name)
        except Exception as error:
            out.append((name, f"{type(error).__name__}: {error}"))
    return out


def unexplained(text: str) -> bool:
    """Whether the error for a name says no reason."""
    return not text.startswith("AttributeError: ") or "docs/torch.md lists" in text or ": " not in text[17:]


# --- programs --------------------------------------------------------------------------------------------

ALL: dict[str, Callable[[Any, Any], None]] = {}


def program(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """It prints the same under both libraries."""
    ALL[function.__name__] = function
    return function


def printed(name: str, torch: Any) -> list[str]:
    """The lines that a program prints under a library."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        ALL[name](torch, print)
    return out.getvalue().replace("adjoint.torch.tensor.", "torch.").replace("adjoint.torch.", "torch.").splitlines()


def refused(show: Any, call: Callable[[], Any], length: int = 60) -> None:
    """Show the type of the error that a call raises, and the beginning of its text."""
    try:
        show("not refused", call())
    except Exception as error:
        show(type(error).__name__, str(error)[:length])


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{name}")


def _numbers(torch: Any, *shape: int) -> Any:
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=torch.float64) * 1.7 + 0.3).reshape(shape)


def _layer(torch: Any, layer: Any) -> Any:
    layer = layer.double()
    with torch.no_grad():
        for x in layer.parameters():
            x.copy_(_numbers(torch, *x.shape))
    return layer


@program
def pruned_layers(torch: Any, show: Any) -> None:
    prune, nn = _module(torch, "nn.utils.prune"), torch.nn
    for how in (
        lambda m: prune.l1_unstructured(m, "weight", 4),
        lambda m: prune.l1_unstructured(m, "weight", 0.5, importance_scores=-m.weight.abs()),
        lambda m: prune.ln_structured(m, "weight", 0.5, 2, 0),
        lambda m: prune.ln_structured(m, "weight", 1, float("inf"), -1),
        lambda m: prune.ln_structured(prune.l1_unstructured(m, "weight", 3), "weight", 1, 1, 1),
        lambda m: prune.l1_unstructured(prune.ln_structured(m, "weight", 1, 1, 1), "weight", 0.5),
        lambda m: prune.custom_from_mask(m, "bias", torch.tensor([1, 0, 1, 0])),
        lambda m: prune.identity(m, "weight"),
        lambda m: prune.l1_unstructured(m, "weight", 0),
    ):
        m = how(_layer(torch, nn.Linear(3, 4)))
        show(m.weight, m.bias, [n for n, _ in m.named_parameters()], [n for n, _ in m.named_buffers()])
        show(prune.is_pruned(m), list(m.state_dict()), m)
        m(_numbers(torch, 2, 3)).pow(2).sum().backward()
        show([(n, x.grad) for n, x in m.named_parameters()])
        torch.optim.SGD(m.parameters(), lr=0.1).step()
        show(m(_numbers(torch, 2, 3)))
        for name in ("weight", "bias"):
            if hasattr(m, f"{name}_orig"):
                show(prune.remove(m, name), getattr(m, name))
        show(prune.is_pruned(m), len(m._forward_pre_hooks), [n for n, _ in m.named_parameters()])
    net = nn.Sequential(_layer(torch, nn.Conv2d(1, 2, 2)), _layer(torch, nn.Linear(3, 2)))
    pairs = [(net[0], "weight"), (net[1], "weight"), (net[1], "bias")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.4)
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=3)
    show(net[0].weight, net[1].weight, net[1].bias, prune.is_pruned(net))
    for how in (prune.RandomUnstructured(3), prune.RandomStructured(2, 0), prune.RandomStructured(0.5)):
        t = how.prune(torch.ones(4, 4))
        show(int((t == 0).sum()))
    show(prune.L1Unstructured(2).prune(torch.tensor([3.0, -1, 2]), importance_scores=torch.tensor([1.0, 5, 6])))
    m = nn.Linear(3, 2)
    for call in (
        lambda: prune.l1_unstructured(m, "weight", -1), lambda: prune.l1_unstructured(m, "weight", 1.5),
        lambda: prune.l1_unstructured(m, "weight", 7), lambda: prune.l1_unstructured(m, "weight", "x"),
        lambda: prune.ln_structured(m, "bias", 1, 2, 0), lambda: prune.ln_structured(m, "weight", 1, 2, 5),
        lambda: prune.remove(m, "weight"), lambda: prune.l1_unstructured(m, "nope", 1),
        lambda: prune.global_unstructured(3, prune.L1Unstructured, amount=1),
        lambda: prune.global_unstructured([(m, "weight")], prune.L1Unstructured, importance_scores=3, amount=1),
        lambda: prune.PruningContainer().add_pruning_method(3),
    ):  # fmt: skip
        refused(show, call)
    show(sorted([n for n, _ in m.named_parameters()]), prune.is_pruned(m))


@program
def fused_layers(torch: Any, show: Any) -> None:
    nn, fusion = torch.nn, _module(torch, "nn.utils.fusion")

    def norm(kind: Any, size: int, **options: Any) -> Any:
        made = _layer(torch, kind(size, **options))
        made.running_mean, made.running_var = _numbers(torch, size), _numbers(torch, size).abs() + 0.5
        return made.eval()

    for layer, bn, transpose, x in (
        (nn.Conv2d(2, 3, 2), norm(nn.BatchNorm2d, 3), False, (2, 2, 4, 4)),
        (nn.Conv1d(2, 3, 2, bias=False), norm(nn.BatchNorm1d, 3, affine=False), False, (2, 2, 4)),
        (nn.ConvTranspose2d(2, 3, 2), norm(nn.BatchNorm2d, 3), True, (2, 2, 3, 3)),
    ):
        layer = _layer(torch, layer).eval()
        made = fusion.fuse_conv_bn_eval(layer, bn, transpose)
        show(made, made.weight, made.bias, torch.allclose(made(_numbers(torch, *x)), bn(layer(_numbers(torch, *x)))))
    layer, bn = _layer(torch, nn.Linear(2, 3)).eval(), norm(nn.BatchNorm1d, 3)
    made = nn.utils.fuse_linear_bn_eval(layer, bn)
    show(made.weight, made.bias, torch.allclose(made(_numbers(torch, 4, 2)), bn(layer(_numbers(torch, 4, 2)))))
    refused(show, lambda: fusion.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1)))


@program
def parametrizations_that_move(torch: Any, show: Any) -> None:
    nn, parametrize = torch.nn, _module(torch, "nn.utils.parametrize")
    for given in (nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.orthogonal):
        one = given(_layer(torch, nn.Linear(2, 2)))
        other = parametrize.transfer_parametrizations_and_params(one, _layer(torch, nn.Linear(2, 2)))
        show(torch.allclose(one.weight, other.weight), sorted(other.state_dict()))
        show(parametrize.type_before_parametrizations(other).__name__)
    show(parametrize.transfer_parametrizations_and_params(nn.Linear(1, 1), nn.Linear(1, 1)))
    show(nn.utils.skip_init(nn.Linear, 2, 3))
    refused(show, lambda: nn.utils.skip_init(dict))


@program
def parts_that_may_be_written_to(torch: Any, show: Any) -> None:
    x = _numbers(torch, 5, 2)
    show(torch.unsafe_split(x, 2), x.unsafe_chunk(2, 0), torch.unsafe_split_with_sizes(x, [1, 4]))
    show(torch.split_with_sizes(x, [2, 3]), x.split_with_sizes([1, 1], dim=1))
    y = x.clone().requires_grad_()
    parts = torch.unsafe_split(y * 1, 3)
    parts[0].mul_(2)
    parts[0].sum().backward()
    show(parts[0].detach())
    show(torch.empty_strided((2, 3), (1, 2)).stride(), torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride())
    show(x.new_empty_strided((2, 2), (1, 2)).dtype, torch.empty_strided((0, 2), (5, 1)).shape)
    show(torch.nonzero_static(torch.tensor([[1, 0], [2, 3]]), size=2), torch.tensor([0, 4]).nonzero_static(size=3))
    show(x.prelu(torch.tensor([0.25], dtype=torch.float64)), x.hardshrink(0.5), x.resize(2, 5).shape)
    show(torch.ones(3).apply_(lambda v: v + 1), torch.ones(2).map_(torch.tensor([2.0, 3]), lambda a, b: a + b))
    for name in ("symeig", "eig", "solve", "lstsq", "matrix_rank"):
        refused(show, lambda name=name: getattr(torch, name)(torch.eye(2), torch.eye(2)), 66)
    a = _numbers(torch, 3, 3) + 2 * torch.eye(3, dtype=torch.float64)
    for upper, transpose, unit in ((True, False, False), (False, True, False), (True, True, True)):
        show(torch.triangular_solve(x[:3], a, upper, transpose, unit).solution)


@program
def products_by_numbers_of_axes(torch: Any, show: Any) -> None:
    a, b = _numbers(torch, 2, 3), _numbers(torch, 3, 4)
    show(torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), torch.einsum(a, [0, 1], b, [1, 2]))
    show(torch.einsum(a, [..., 30], [..., 30]), torch.einsum(a, [1, 0]), torch.einsum(a, [0, 27], [27]))
    a = a.requires_grad_()
    torch.einsum(a, [0, 1], b, [1, 2], []).backward()
    show(a.grad)
    refused(show, lambda: torch.einsum(a, [0, 52]), 1)


@program
def settings_and_types(torch: Any, show: Any) -> None:
    x, amp = torch.ones(2), torch.amp
    show(
        torch.typename(x), torch.typename(x.long()), torch.typename(3), torch.typename("x"), torch.typename(torch.int8)
    )
    show(torch.strided, x.layout is torch.strided, isinstance(x.layout, torch.layout), torch.sparse_coo)
    show(torch.channels_last, isinstance(torch.preserve_format, torch.memory_format), x.layout == torch.sparse_coo)
    torch.set_default_tensor_type(torch.DoubleTensor)
    show(torch.ones(1).dtype)
    torch.set_default_tensor_type("torch.FloatTensor")
    show(torch.ones(1).dtype)
    refused(show, lambda: torch.set_default_tensor_type(torch.IntTensor))
    for precision in ("high", "highest"):
        torch.set_float32_matmul_precision(precision)
        show(torch.get_float32_matmul_precision())
    for mode in ("warn", 2, 0):
        torch.set_deterministic_debug_mode(mode)
        show(torch.get_deterministic_debug_mode(), torch.are_deterministic_algorithms_enabled())
        show(torch.is_deterministic_algorithms_warn_only_enabled())
    torch.use_deterministic_algorithms(True)
    show(torch.are_deterministic_algorithms_enabled())
    torch.use_deterministic_algorithms(False)
    show(torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cpu"))
    show(torch.is_signed(x), torch.is_conj(x), torch.is_neg(x), torch.get_device(x), torch.is_same_size(x, x))
    show(torch.is_storage(x), torch.is_distributed(x), torch.numel(x), torch.is_floating_point(x), x.is_mps, x.name)
    refused(show, lambda: torch.is_complex(3))

    class Cube(torch.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3 * ctx.saved_tensors[0] ** 2

    y = torch.full((2,), 2.0, dtype=torch.float64, requires_grad=True)
    Cube.apply(y).sum().backward()
    show(y.grad)
    show(torch.cond(x.sum() > 1, torch.sin, torch.cos, (x,)))
    show(torch.compiler.is_compiling(), torch.backends.mkldnn.__name__ != "", torch.get_device_module("cpu").__name__)

    class Own(torch.Tensor):
        pass

    z = x.as_subclass(Own)
    show(isinstance(z, Own), z.add_(1) is z, x)
    refused(show, lambda: x.as_subclass(int))


@program
def windows(torch: Any, show: Any) -> None:
    made = _module(torch, "signal.windows")
    for name, options in (
        ("bartlett", {}), ("blackman", {}), ("cosine", {}), ("hann", {}), ("nuttall", {}),
        ("exponential", {"tau": 3.0}),
        ("gaussian", {"std": 2.0}), ("general_cosine", {"a": [0.5, 0.3, 0.2]}), ("general_hamming", {"alpha": 0.6}),
        ("hamming", {}), ("kaiser", {"beta": 8.0}),
    ):  # fmt: skip
        for length in (0, 1, 6, 7):
            for sym in (True, False):
                x = getattr(made, name)(length, sym=sym, dtype=torch.float64, **options)
                show(name, x.shape, x.dtype, (x + 1e-9).mul(1e6).round().tolist())
        show(getattr(made, name)(3, **options).dtype)
        refused(show, lambda name=name, options=options: getattr(made, name)(-1, **options), 0)
    refused(show, lambda: made.gaussian(4, std=-1.0))
    show(made.exponential(4, center=0, sym=False, tau=2.0))


@program
def comparisons_with_a_tolerance(torch: Any, show: Any) -> None:
    import numpy as np

    t, close = torch.tensor, torch.testing.assert_close
    for a, b, options in (
        (t([1.0, 2, 3]), t([1.0, 2, 3.5]), {}), (t([1, 2]), t([1.0, 2]), {}), (t([1.0, 2]), t([1.0, 2, 3]), {}),
        ([t(1.0), t(2.0)], [t(1.0), t(3.0)], {}), ({"a": t(1.0)}, {"b": t(1.0)}, {}), (1.0, 2.0, {}), (3, 4, {}),
        ("x", "x", {}), (None, 1, {}), ([1, 2], [1], {}), (t([1.0, float("nan")]), t([1.0, float("nan")]), {}),
        (t([1.0]), t([1.001]), {"rtol": 1e-5}), (t([[1, 2], [3, 4]]), t([[1, 2], [9, 4]]), {}),
        (t([1.0]), t([2.0]), {"msg": "hello"}), (t([1.0]), t([2.0]), {"msg": lambda m: "X" + m}),
        (t([True]), t([False]), {}), (t([1.0]), [1.0], {}), (t([1.0]), t([2.0]), {"rtol": 0, "atol": 0}),
        (np.ones(2), torch.ones(2), {}), (np.ones(2), np.zeros(2), {}), ({"a": [t(1.0)]}, {"a": [t(2.0)]}, {}),
        (t([1 + 1j]), t([1 + 2j]), {}), (True, False, {}),
    ):  # fmt: skip
        refused(show, lambda a=a, b=b, options=options: close(a, b, **options), 500)
    close(t([1.0, float("nan")]), t([1.0 + 1e-7, float("nan")]), equal_nan=True)
    close(t([1, 2]), t([1.0, 2]), check_dtype=False)
    close({"a": (1, t(2.0))}, {"a": [1, t(2.0)]})
    x = torch.testing.make_tensor(3, 4, dtype=torch.int64, device="cpu", low=2, high=4)
    show(x.dtype, x.shape, bool(((x >= 2) & (x < 4)).all()))
    show(torch.testing.make_tensor((2, 3), dtype=torch.complex64, device="cpu", requires_grad=True).requires_grad)


@program
def parts_of_data_for_processes(torch: Any, show: Any) -> None:
    Sampler = _module(torch, "utils.data.distributed").DistributedSampler
    for count, of, drop in ((5, 2, False), (5, 2, True), (1, 3, False), (1, 3, True), (6, 3, False), (7, 4, True)):
        for rank in range(of):
            sampler = Sampler(range(count), of, rank, shuffle=False, drop_last=drop)
            show(list(sampler), len(sampler), sampler.total_size)
    one = Sampler(range(8), num_replicas=1, rank=0)
    first = list(one)
    one.set_epoch(1)
    show(sorted(first), first == list(one), sorted(one))
    show([len(batch) for batch in torch.utils.data.DataLoader(range(8), batch_size=3, sampler=one)])
    refused(show, lambda: Sampler(range(3), 2, 2, shuffle=False))


@program
def gradients_of_convolutions_by_name(torch: Any, show: Any) -> None:
    grad, F = _module(torch, "nn.grad"), torch.nn.functional
    x, w = _numbers(torch, 2, 2, 5, 4), _numbers(torch, 4, 1, 2, 2)
    g = _numbers(torch, *F.conv2d(x, w, stride=2, padding=1, groups=2).shape)
    show(grad.conv2d_input(x.shape, w, g, stride=2, padding=1, groups=2))
    show(grad.conv2d_weight(x, w.shape, g, 2, 1, 1, 2))
    x, w = _numbers(torch, 1, 2, 6), _numbers(torch, 3, 2, 2)
    show(
        grad.conv1d_input(x.shape, w, _numbers(torch, 1, 3, 5)),
        grad.conv1d_weight(x, w.shape, _numbers(torch, 1, 3, 5)),
    )


@program
def states_that_lose_a_prefix(torch: Any, show: Any) -> None:
    utils = _module(torch, "nn.modules.utils")
    state = torch.nn.Sequential(torch.nn.Linear(1, 1)).state_dict(prefix="module.")
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    show(list(state), utils._pair(2), utils._triple([1, 2, 3]))
    show(_module(torch, "nn.utils.rnn").invert_permutation(torch.tensor([2, 0, 1])))
    x = _numbers(torch, 1, 1, 2, 2)
    show(torch.nn.functional.upsample_nearest(x, scale_factor=2), torch.nn.functional.upsample_bilinear(x, size=(3, 3)))


@program
def versions(torch: Any, show: Any) -> None:
    version = _module(torch, "torch_version").TorchVersion("2.10.1+cpu")
    show(version > "2.9", version >= (2, 10), version < (3,), version == "2.10.1+cpu", version != "2.10.1", version)
    show(torch.__version__ >= (2, 1), isinstance(torch.__version__, str), torch.version.cuda)


@program
def arguments_by_name(torch: Any, show: Any) -> None:
    L, F, x = torch.linalg, torch.nn.functional, torch.ones(2)
    a = torch.tensor([[1.0, 2], [3, 5]])
    show(L.norm(input=a, dtype=torch.float64), L.matrix_norm(input=a, ord=1, dtype=torch.float64))
    show(L.vector_norm(x=x, dtype=torch.float64), L.vector_norm(x, dtype=None), L.svd(a, driver=None).S.shape)
    for dtype in (torch.int64, torch.float16, torch.complex64):
        refused(show, lambda dtype=dtype: L.vector_norm(x, dtype=dtype), 40)
    refused(show, lambda: L.svd(a, driver="gesvd"), 40)
    show(torch.fft.fftfreq(4, layout=torch.strided), F.threshold_(a.clone(), threshold=2.5, value=0.0))
