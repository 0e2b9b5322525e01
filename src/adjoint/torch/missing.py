"""What is not there says so, as a name and as a module, and what is elsewhere in PyTorch is found there, too."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from adjoint import errors

_COMPILER = "there is no compiler of PyTorch's programs; ad.compile compiles functions of ad.Tensor"
_KERNELS = "kernels are those of NumPy, or of the library that a device is of"
_INSIDE = "it is PyTorch's own inside"
# why | names, and paths of modules, which stand for what is in them, too; * is anything. The first that fits counts.
_OUT_OF_SCOPE = {
    "there are no sparse tensors; Adam takes the gradients of tables, which are dense": "SparseAdam optim.sparse_adam",
    "there are no sparse tensors": (
        "*sparse* hspmm hsmm dsmm smm spmm saddmm sspaddmm coalesce is_coalesced to_dense dense_dim indices values "
        "*indices_copy values_copy c*_indices row_indices"
    ),
    "there are no quantized tensors": (
        "*quant* fbgemm_* qscheme choose_qparams_optimized q_* qint* quint* QInt* QUInt* per_channel_* per_tensor_* "
        "int_repr ao nn.intrinsic nn.qat float4*"
    ),
    "there are no tensors of this type": "int? uint? uint16 uint32 uint64 bit bits* float8* chalf complex32",
    "there are no nested tensors": "*nested* jagged to_padded_tensor NestedIOFunction",
    "there are no masked tensors; torch.where and masked_fill are there": "masked *MaskedTensor masked_tensor",
    "ad.Profiled says where time goes": (
        "*profiler* *Profiler* kineto_available nvtx utils.benchmark *flop_counter Benchmark* ThroughputBenchmark "
        "utils.throughput_benchmark"
    ),
    "there are no graphs of kernels; ad.compile compiles functions": (
        "*Graph graph graphs *_graph graph_pool_handle make_graphed_callables region_activation_memory_budget"
    ),
    _COMPILER: (
        "*jit* *JIT* *Script* *export* fx onnx _dynamo _inductor nativert compiler.config sym_* Sym* *nnapi* "
        "import_ir_module* parse_* merge_type_* unify_type_list Code Block Node Value Use Argument* AliasDb AnyType "
        "*Type CallStack Capsule Compil* CompleteArgumentSpec ConcreteModule* ErrorReport ExecutionPlan FileCheck "
        "GraphExecutorState Gradient IODescriptor InferredType Static* Tracing* TensorType LockingLogger NoopLogger "
        "LoggerBase is_autocast_* AggregationType AVG SUM FatalError load_compiled_function *_artifacts *guard* "
        "nested_compile_region substitute_in_graph wrap_numpy utils.bundled_inputs utils.mobile_optimizer"
    ),
    "a program is one process; ad.train.Learner trains on several devices": (
        "*distributed* Distributed* DataParallel SyncBatchNorm nn.parallel futures Future monitor numa *nccl* "
        "fork wait cuda.comm"
    ),
    "it is in Python's multiprocessing, whose names are here": "multiprocessing.*",
    "NumPy has no such type; float32 has all its values": "bfloat16 BFloat16*",
    "values are NumPy's arrays, which x.numpy() gives": "*storage* *Storage* *data_ptr is_set_to from_file",
    "nothing is downloaded; torch.load reads files": "hub utils.model_zoo",
    "take tensorboardX, whose SummaryWriter is called in the same way": "utils.tensorboard",
    "IterableDataset and DataLoader are there": (
        "utils.data.datapipes *DataPipe DataChunk *_datapipe *_datapipes_* argument_validation runtime_validation* "
        "non_deterministic utils.data.graph* utils.data.backward_compatibility"
    ),
    "nn.functional.scaled_dot_product_attention is there": "nn.attention.* *_flash_* SDPAParams WARN_FOR_*",
    "there are no dispatch modes; autograd.Function has rules of your own": (
        "library *torch_function* *TorchFunction* Dispatch* ExcludeDispatchKeyGuard OperatorInfo Tag "
        "FunctionSchema custom_function_call TorchDispatchMode"
    ),
    "__torch_function__ gets the function itself, and no list of them is kept": (
        "get_ignored_functions get_overridable_functions get_testing_overrides resolve_name"
    ),
    "scipy.stats.qmc has such sequences": "quasirandom",
    "there are no packages of programs": "package",
    "it was removed from PyTorch": "nn.backends",
    "adjoint has no such function": (
        "geqrf ormqr lobpcg segment_reduce histogramdd airy_ai *_polynomial_* spherical_bessel_j0 ldl_* "
        "embedding_renorm_ swap_tensors swap_in_optimizer_params_and_state module_load"
    ),
    "a policy asks for PyTorch's operators, torch.ops; checkpoint() of some parts keeps all that the others save": (
        "create_selective_checkpoint_contexts CheckpointPolicy SelectiveCheckpointContext SAC_IGNORED_OPS"
    ),
    "nn.LocalResponseNorm is there": "CrossMapLRN2d",
    "the cross entropy of nn.functional.linear is there": "LinearCross* linear_cross_entropy nn.modules.linear_cross*",
    "einops.rearrange takes these tensors after import adjoint.torch.einops": "rearrange",
    "nn.MultiheadAttention is there": "multi_head_attention_forward",
    "nn and nn.functional have it, with other arguments": (
        "adaptive_max_pool1d affine_grid_generator alpha_dropout_ batch_norm constant_pad_nd conv_tbc convolution "
        "cosine_embedding_loss ctc_loss dropout_ embedding embedding_bag feature_*dropout* grid_sampler* gru* lstm* "
        "hinge_embedding_loss instance_norm kl_div margin_ranking_loss max_pool1d_with_indices poisson_nll_loss rnn_* "
        "triplet_margin_loss norm_except_dim frobenius_norm nuclear_norm NLLLoss2d Container"
    ),
    _KERNELS: (
        "backends.* cudnn_* miopen_* mkldnn_* native_* *vulkan* has_* cuda.* xpu.* mps.* mtia.* accelerator.* cpu.* "
        "to_mkldnn utils.mkldnn is_xla is_ipu is_mps is_xpu is_mtia is_maia xpu ipu mtia hash_tensor batch_norm_* "
        "slice_inverse cublas* cuBLAS* cuFFT* scaled_mm grouped_mm scaled_grouped_mm set_flush_denormal record_stream"
    ),
    _INSIDE: (
        "_* nn.cpp contrib ArgumentSpec AcceleratorError BufferDict ModuleDict ParameterDict PRIVATE_OPS classproperty "
        "PyTorchFile* get_file_path legacy_contiguous_format prepare_multiprocessing_environment *_ipu_* *_xla_* "
        "thread_safe_generator GRID_SAMPLE_* UninitializedTensorMixin DefaultDeviceType check_backward_validity "
        "detach_variable BackwardHook warn_if_has_hooks enforce_grad_layout_policy py_sym_types "
        "set_override_stale* set_warn_on_accumulate* storage_type CacheInfo Process* SpawnContext init_reductions "
        "start_processes index dim_order assert_allclose headeronly cpp csrc "
        "DeepCopyMemoTable *SerializationStorageContext utils.backcompat "
        "utils.backend_registration utils.collect_env utils.cpp_* utils.file_baton utils.hipify utils.debug_log "
        "utils.module_tracker utils.serialization utils.show_pickle utils.viz utils.weak utils.model_dump "
        "cmake_prefix_path *_privateuse1_backend get_cpp_backtrace set_module"
    ),
}


@functools.cache
def _patterns() -> list[tuple[Any, str]]:
    """For each reason, what the names look like."""
    return [
        (
            re.compile("|".join([re.escape(word).replace(r"\*", ".*").replace(r"\?", ".") for word in words.split()])),
            why,
        )
        for why, words in _OUT_OF_SCOPE.items()
    ]


@functools.lru_cache(maxsize=1000)
def why_not(path: str) -> str | None:
    """Why a name is not there, which is given with the modules that it is in; None where there is no reason."""
    parts = path.split(".")
    if parts[-1].startswith("__"):  # Python's own, such as __path__, for which every import from a module asks
        return None
    names = {".".join(parts[:end]) for end in range(1, len(parts) + 1)} | {parts[-1]}
    return next((why for pattern, why in _patterns() if any([pattern.fullmatch(name) for name in names])), None)


def missing(name: str, of: str = "adjoint.torch") -> AttributeError:
    """The error for a name that PyTorch has and the face has not."""
    why = why_not(f"{of}.{name}".removeprefix("adjoint.torch."))
    hint = f": {why}" if why else "; docs/torch.md lists what is there"
    return AttributeError(f"{of} has no {errors.shown(name)}{hint}")


class _Absent:
    """In the place of a function or a module of PyTorch's that is not there: it may be named, and not called."""

    def __init__(self, module: str, name: str) -> None:
        self._error = missing(name, module)
        self._names = stand_ins(f"{module}.{name}", "*")

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(str(self._error))

    def __getattr__(self, name: str) -> Any:
        return self._names(name)


def stand_ins(module: str, names: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of which programs import these names, and use them in several processes; * is any.

    What has a name in capitals is a class, for annotations and `isinstance`, of which nothing is one.
    """
    there = frozenset(names.split())

    def stand_in(name: str) -> Any:
        if name.startswith("_") or not ("*" in there or name in there):
            raise missing(name, module)
        absent = _Absent(module, name)
        if not name[0].isupper():
            return absent
        refuse = lambda _, *args, **options: absent()
        return type(name, (), {"__new__": refuse, "__class_getitem__": lambda _, item: object, "__module__": module})

    return stand_in


class _Refusals:
    """Asked for a module when no other finder has it: one of PyTorch's that is out of scope says so.

    The error's name is PyTorch's. `from adjoint.torch import sparse` would replace the text of one with its own name.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        name = fullname.removeprefix("adjoint.torch.")
        if name != fullname and (why := why_not(name)) is not None:
            said = f"adjoint.torch has no module {errors.shown(name)}: {why}"
            raise errors.OutOfScopeError(said, name=f"torch.{name}")


def room(path: str, names: Any, of: Any = None, *, package: bool = False) -> ModuleType:
    """A module without a file: of names and values, or of names that it looks up in another module when asked.

    A package says of a module that it has not why.
    """
    module = ModuleType(path, "Names of adjoint.torch, where PyTorch has them.")
    module.__spec__ = ModuleSpec(path, None, is_package=package)
    if package:
        module.__path__ = []
    looked_up = frozenset() if of is None else frozenset(names)

    def asked(name: str) -> Any:
        if name in looked_up:
            return getattr(of, name)
        raise missing(name, path)

    vars(module).update({} if of is not None else names, __getattr__=asked, __all__=[*names])
    sys.modules[path] = module
    return module


def rooms(package: str, names: Mapping[str, Iterable[str]], found: Mapping[str, Any]) -> None:
    """Modules of a package where PyTorch has some of its names: `from torch.optim.sgd import SGD` finds it, too."""
    for name, members in names.items():
        made = room(f"{package}.{name}", {member: found[member] for member in members})
        setattr(sys.modules[package], name, made)


def refuse_modules() -> None:
    """From now on imports of PyTorch's modules that are not there say why."""
    if not any([type(finder) is _Refusals for finder in sys.meta_path]):
        sys.meta_path.append(_Refusals())
