"""Arguments that nobody should pass, to functions, methods and classes of a library that is spelled as PyTorch is.

What a call is made of is looked up by the names of parameters, so that there is one for everything that is public.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch_signatures as signatures
from hostile.values import Pretending, deep

# --- valid arguments ------------------------------------------------------------------------------------------

# what stands behind a parameter of this name; t is the library
BY_NAME: dict[str, str] = {
    "dim dim0 axis0 start_dim source offset storage_offset diagonal low start k_ mode_ p_ q_ lower": "0",
    "dim1 axis1 destination dim2 end_dim n k m num_samples chunks step steps size_ N shifts length row col index_ "
    "num_classes group groups num_features num_channels in_channels out_channels in_features out_features high "
    "decimals norm_type num_embeddings embedding_dim upscale_factor downscale_factor kernel_size stride "
    "split_size bins r split_size_or_sections indices_or_sections sections repeats fill_value value a b end max "
    "max_val M window_length n_fft d_model nhead num_heads embed_dim input_size hidden_size output_size "
    "step_size_ epochs seed batch_size num_parameters init p lr max_norm clip_value ind degree num s": "1",
    "min min_val threshold lambd alpha beta eps exponent weight_ q rtol atol momentum rcond tol prob": "0.5",
    "dims": "(0, 1)",
    "size shape sizes stride_": "(3, 3)",
    "split_sizes": "(1, 2)",
    "normalized_shape": "(3,)",
    "tensors matrices": "[M(), M()]",
    "mask condition": "M() > 0",
    "index indices src_index": "t.tensor([[0, 1], [1, 0]])",
    "equation": "'ij,jk->ik'",
    "reduce": "'sum'",
    "mode": "'reflect'",
    "dtype": "t.float64",
    "device": "'cpu'",
    "callable function func f": "lambda *args: args[0]",
    "module layer": "t.nn.Linear(3, 2)",
    "name": "'weight'",
    "params parameters": "[M().requires_grad_()]",
    "optimizer": "t.optim.SGD([M().requires_grad_()], 0.1, momentum=0.5)",
    "vec vec1 vec2 tensor_ tau boundaries sorted_sequence mat_ window": "V()",
    "pivots LU_pivots": "t.tensor([1, 2, 3], dtype=t.int32)",
    "padding": "1",
    "pad": "(1, 1)",
    "data obj": "[1.0, 2.0]",
    "ndarray": "A()",
    "requires_grad": "False",
    "generator": "None",
    "reduction": "'mean'",
    "schedulers": "[]",
    "milestones": "[1]",
    "dataset data_source": "[1, 2, 3]",
    "lengths": "[1, 2]",
    "lr_lambda": "lambda epoch: 0.5",
    "upper": "True",
}
VALUES = {name.strip("_"): text for names, text in BY_NAME.items() for name in names.split()}
# where the names mean something else: by place and name, arguments
SPECIAL = """
Tensor.index_put_ (t.tensor([0]),), t.ones(3).double()
torch.select M(), 0, 1
torch.select_scatter M(), V(), 0, 1
torch.gather M(), 0, t.tensor([[0, 1]])
torch.index_select M(), 0, t.tensor([0, 1])
torch.index_fill M(), 0, t.tensor([0, 1]), 1.0
torch.index_add M(), 0, t.tensor([0]), M()[:1]
torch.index_copy M(), 0, t.tensor([0]), M()[:1]
torch.index_put M(), (t.tensor([0]),), V()
torch.index_reduce M(), 0, t.tensor([0]), M()[:1], 'prod'
torch.scatter M(), 0, t.tensor([[0, 1]]), M()
torch.scatter_add M(), 0, t.tensor([[0, 1]]), M()
torch.scatter_reduce M(), 0, t.tensor([[0, 1]]), M(), 'sum'
torch.take M(), t.tensor([0, 1])
torch.take_along_dim M(), t.tensor([[0, 1, 0]]), 0
torch.put M(), t.tensor([0]), V()[:1]
torch.masked_scatter M(), M() > 0, M()
torch.as_strided M(), (2, 2), (1, 1), 0
torch.unravel_index t.tensor([1, 2]), (3, 3)
torch.bincount t.tensor([1, 2])
torch.gcd I(), I()
torch.lcm I(), I()
torch.bitwise_and I(), I()
torch.bitwise_or I(), I()
torch.bitwise_xor I(), I()
torch.bitwise_not I()
torch.bitwise_left_shift I(), I()
torch.bitwise_right_shift I(), I()
torch.vdot V(), V()
torch.dot V(), V()
torch.mv M(), V()
torch.bmm M()[None], M()[None]
torch.baddbmm M()[None], M()[None], M()[None]
torch.addbmm M(), M()[None], M()[None]
torch.einsum 'ij,jk->ik', M(), M()
torch.tensordot M(), M(), 1
torch.cross M(), M(), 0
torch.polygamma 1, M()
torch.complex M(), M()
torch.polar M(), M()
torch.view_as_complex t.ones(3, 2)
torch.view_as_real t.ones(3, 2) + 0j
torch.imag M() + 0j
torch.searchsorted V(), M()
torch.bucketize M(), V()
torch.cdist M(), M()
torch.quantile M(), 0.5, 0
torch.nanquantile M(), 0.5, 0
torch.multinomial M().abs(), 1
torch.bernoulli M().abs() / 9
torch.binomial M().abs(), M().abs() / 9
torch.poisson M().abs()
torch.normal 0.0, 1.0, (2, 3)
torch.randint 0, 5, (2, 3)
torch.stft t.ones(32).double(), 8, return_complex=True
torch.istft t.ones(5, 7) + 0j, 8
torch.unflatten M(), 1, (3, 1)
torch.flatten M(), 0, 1
torch.narrow M(), 0, 0, 2
torch.from_numpy A()
torch.frombuffer bytearray(8), dtype=t.float32
torch.renorm M(), 2, 0, 1.0
torch.movedim M(), 0, 1
torch.cov M()
torch.lu_solve V()[:, None], M(), t.tensor([1, 2, 3], dtype=t.int32)
torch.lu_unpack M(), t.tensor([1, 2, 3], dtype=t.int32)
torch.block_diag M(), M()
torch.cartesian_prod V(), V()
torch.combinations V(), 2
torch.meshgrid V(), V()
torch.broadcast_tensors M(), V()
torch.broadcast_shapes (3, 1), (1, 3)
torch.result_type M(), 1
torch.can_cast t.float32, t.float64
torch.promote_types t.float32, t.float64
torch.clamp M(), 0.0, 1.0
torch.where M() > 0, M(), 0.0
torch.vmap lambda x: x
torch.arange 3
torch.empty 2, 3
torch.ones 2, 3
torch.zeros 2, 3
torch.rand 2, 3
torch.randn 2, 3
torch.empty_permuted (2, 3), (0, 1)
torch.chain_matmul M(), M()
torch.clip M(), 0.0, 1.0
torch.diagonal_scatter M(), V()
torch.as_strided_copy M(), (2, 2), (1, 1), 0
torch.as_strided_scatter M(), M()[:2, :2], (2, 2), (3, 1)
torch.expand_copy M(), (3, 3)
torch.permute_copy M(), (1, 0)
torch.select_copy M(), 0, 1
torch.unfold_copy M(), 0, 2, 1
torch.view_copy M(), (9,)
torch.view_as_real_copy M() + 0j
torch.view_as_complex_copy t.ones(3, 2)
torch.randint_like M(), 3
torch.vander V()
torch.dsplit t.ones(2, 2, 2), 1
torch.is_nonzero t.tensor(1.0)
torch.nonzero_static M(), size=2
Tensor.item t.tensor(1.0)
Tensor.is_nonzero t.tensor(1.0)
Tensor.normal_ M(), 0.0, 1.0
Tensor.polygamma M(), 1
Tensor.polygamma_ M(), 1
Tensor.where M(), M() > 0, M()
Tensor.resize M(), 9
Tensor.resize_as M(), M()
Tensor.register_post_accumulate_grad_hook M().requires_grad_(), lambda x: None
nn.GRU 3, 2
nn.LSTM 3, 2
nn.RNN 3, 2
nn.RNNBase 'LSTM', 3, 2
nn.GroupNorm 1, 3
nn.Bilinear 1, 2, 3
nn.Sequential t.nn.Linear(3, 2)
nn.Module
nn.Softmax2d
nn.AdaptiveLogSoftmaxWithLoss 3, 5, [2, 3]
nn.FractionalMaxPool2d 2, 1
nn.FractionalMaxPool3d 2, 1
nn.TransformerEncoder t.nn.TransformerEncoderLayer(4, 2, 4), 1
nn.TransformerDecoder t.nn.TransformerDecoderLayer(4, 2, 4), 1
nn.init.calculate_gain 'relu'
nn.init.constant_ M(), 1.0
nn.init.dirac_ t.ones(2, 2, 2)
nn.init.eye_ M()
nn.init.kaiming_normal_ M()
nn.init.kaiming_uniform_ M()
nn.init.orthogonal_ M()
nn.init.sparse_ M(), 0.5
nn.init.xavier_normal_ M()
nn.init.xavier_uniform_ M()
nn.utils.skip_init t.nn.Linear, 3, 2
nn.utils.vector_to_parameters V().repeat(3), [M().requires_grad_()]
nn.utils.rnn.pack_padded_sequence M(), [2, 1]
nn.utils.rnn.pad_packed_sequence t.nn.utils.rnn.pack_sequence([V()])
nn.utils.rnn.unpack_sequence t.nn.utils.rnn.pack_sequence([V()])
nn.utils.rnn.unpad_sequence M(), [1, 2, 3]
optim.Optimizer [M().requires_grad_()], {}
optim.lr_scheduler.ChainedScheduler [t.optim.lr_scheduler.StepLR(t.optim.SGD([M().requires_grad_()], 0.1), 1)]
optim.lr_scheduler.CosineAnnealingWarmRestarts t.optim.SGD([M().requires_grad_()], 0.1), 2
optim.lr_scheduler.CyclicLR t.optim.SGD([M().requires_grad_()], 0.1, momentum=0.5), 0.1, 0.2
optim.lr_scheduler.OneCycleLR t.optim.SGD([M().requires_grad_()], 0.1, momentum=0.5), 0.1, 5
utils.data.BatchSampler [1, 2, 3], 2, False
utils.data.DistributedSampler [1, 2, 3], 2, 0
utils.data.TensorDataset M(), V()
utils.data.WeightedRandomSampler [0.5, 0.5], 2
autograd.functional.hessian lambda x: (x * x).sum(), M()
autograd.functional.hvp lambda x: (x * x).sum(), M(), M()
autograd.functional.jvp lambda x: x * x, M(), M()
autograd.functional.vhp lambda x: (x * x).sum(), M(), M()
autograd.functional.vjp lambda x: x * x, M(), M()
func.jvp lambda x: x * x, (M(),), (M(),)
func.vjp lambda x: x * x, M()
func.linearize lambda x: x * x, M()
linalg.lstsq M(), M()
torch.cond True, lambda: 1, lambda: 2, ()
linalg.multi_dot [M(), M()]
linalg.lu_solve M(), t.tensor([1, 2, 3], dtype=t.int32), M()
linalg.solve_triangular M(), M(), upper=True
linalg.tensorsolve M(), V()
linalg.tensorinv t.eye(4).reshape(2, 2, 2, 2), 2
linalg.householder_product M(), V()
linalg.cross M(), M()
linalg.vander V()
fft.fftfreq 4
special.polygamma 1, M()
special.multigammaln M().abs() + 2, 2
Tensor.view M(), 9
Tensor.reshape M(), 9
Tensor.expand M(), 3, 3
Tensor.repeat M(), 2, 1
Tensor.permute M(), 1, 0
Tensor.unfold M(), 0, 2, 1
Tensor.map_ M(), M(), lambda a, b: a
Tensor.map2_ M(), M(), M(), lambda a, b, c: a
Tensor.apply_ M(), lambda a: a
Tensor.to M(), t.float32
Tensor.type M(), t.float32
Tensor.as_subclass M(), t.Tensor
Tensor.register_hook M().requires_grad_(), lambda g: g
Tensor.backward (M().requires_grad_() * 2).sum()
Tensor.retain_grad M().requires_grad_() * 2
Tensor.__getitem__ M(), 0
Tensor.__setitem__ M(), 0, 1.0
nn.functional.conv1d t.ones(1, 2, 5), t.ones(3, 2, 2)
nn.functional.conv2d t.ones(1, 2, 5, 5), t.ones(3, 2, 2, 2)
nn.functional.conv3d t.ones(1, 2, 4, 4, 4), t.ones(3, 2, 2, 2, 2)
nn.functional.conv_transpose1d t.ones(1, 2, 5), t.ones(2, 3, 2)
nn.functional.conv_transpose2d t.ones(1, 2, 5, 5), t.ones(2, 3, 2, 2)
nn.functional.conv_transpose3d t.ones(1, 2, 4, 4, 4), t.ones(2, 3, 2, 2, 2)
nn.functional.embedding t.tensor([0, 1]), M()
nn.functional.embedding_bag t.tensor([[0, 1]]), M()
nn.functional.cross_entropy M(), t.tensor([0, 1, 2])
nn.functional.nll_loss M(), t.tensor([0, 1, 2])
nn.functional.multi_margin_loss M(), t.tensor([0, 1, 2])
nn.functional.multilabel_margin_loss M(), t.tensor([[0, 1, -1]] * 3)
nn.functional.binary_cross_entropy M().abs() / 9, M().abs() / 9
nn.functional.ctc_loss t.ones(4, 1, 3).log_softmax(2), t.tensor([[1, 2]]), t.tensor([4]), t.tensor([2])
nn.functional.linear M(), M(), V()
nn.functional.bilinear M(), M(), t.ones(2, 3, 3).double()
nn.functional.one_hot t.tensor([0, 1]), 3
nn.functional.batch_norm M(), V(), V()
nn.functional.layer_norm M(), (3,)
nn.functional.rms_norm M(), (3,)
nn.functional.group_norm t.ones(2, 4, 3), 2
nn.functional.instance_norm t.ones(2, 4, 3)
nn.functional.interpolate t.ones(1, 1, 4, 4), 2
nn.functional.upsample t.ones(1, 1, 4, 4), 2
nn.functional.upsample_nearest t.ones(1, 1, 4, 4), 2
nn.functional.upsample_bilinear t.ones(1, 1, 4, 4), 2
nn.functional.grid_sample t.ones(1, 1, 4, 4), t.zeros(1, 2, 2, 2)
nn.functional.affine_grid t.ones(1, 2, 3), (1, 1, 2, 2)
nn.functional.fold t.ones(1, 4, 4), (3, 3), 2
nn.functional.unfold t.ones(1, 1, 4, 4), 2
nn.functional.pixel_shuffle t.ones(1, 4, 2, 2), 2
nn.functional.pixel_unshuffle t.ones(1, 1, 4, 4), 2
nn.functional.channel_shuffle t.ones(1, 4, 2), 2
nn.functional.pad M(), (1, 1)
nn.functional.glu t.ones(2, 4)
nn.functional.prelu M(), V()
nn.functional.local_response_norm t.ones(1, 4, 3), 2
nn.functional.max_unpool1d t.ones(1, 1, 2), t.tensor([[[0, 2]]]), 2
nn.functional.max_unpool2d t.ones(1, 1, 1, 1), t.tensor([[[[0]]]]), 2
nn.functional.max_unpool3d t.ones(1, 1, 1, 1, 1), t.tensor([[[[[0]]]]]), 2
nn.functional.scaled_dot_product_attention M()[None], M()[None], M()[None]
nn.functional.threshold M(), 0.5, 1.0
nn.functional.hinge_embedding_loss M(), M().sign()
nn.functional.cosine_embedding_loss M(), M(), V().sign()
nn.functional.gaussian_nll_loss M(), M(), M().abs()
nn.functional.pdist M()
"""
for _n in (1, 2, 3):
    _image = f"t.ones(1, 2{', 4' * _n})"
    for _name in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool", "lp_pool", "fractional_max_pool"):
        _more = "2, 2" if _name == "lp_pool" else f"2, {(1,) * _n}" if _name.startswith("fract") else "2"
        SPECIAL += f"nn.functional.{_name}{_n}d {_image}, {_more}\n"
    SPECIAL += f"nn.functional.dropout{_n}d {_image}, 0.5\n"
GIVEN = dict([(line + " ").split(" ", 1) for line in SPECIAL.strip().splitlines()])

# functions that touch the world, wait, or change the process for good
LEFT_OUT = set(
    """
    torch.save torch.load torch.set_default_dtype torch.set_default_tensor_type torch.set_default_device torch.seed
    torch.manual_seed torch.set_rng_state torch.set_grad_enabled torch.set_printoptions torch.set_num_threads
    torch.set_num_interop_threads torch.set_warn_always torch.use_deterministic_algorithms torch.set_anomaly_enabled
    torch.set_deterministic_debug_mode torch.set_flush_denormal torch.set_float32_matmul_precision torch.compile
    random.manual_seed random.seed random.set_rng_state random.fork_rng torch.fork_rng torch.set_autocast_enabled
    torch.set_autocast_dtype torch.set_autocast_cache_enabled torch.set_autocast_cpu_enabled torch.inference_mode
    torch.set_autocast_cpu_dtype torch.while_loop torch.get_default_device torch.set_autocast_gpu_dtype
    torch.autocast_increment_nesting torch.autocast_decrement_nesting torch.clear_autocast_cache
    utils.data.DataLoader utils.data.get_worker_info Tensor.__reduce_ex__ Tensor.share_memory_
    """.split()
)
# what the face's modules have for themselves
INSIDE = {"nn.init.drawing", "nn.utils.rnn.padded", "nn.utils.rnn.repacked", "linalg.permutations"}
PLACES = (
    "torch Tensor nn nn.functional nn.init nn.utils nn.utils.rnn optim optim.lr_scheduler utils.data "
    "autograd.functional func linalg fft special signal.windows"
).split()


def scope(t: Any) -> dict[str, Any]:
    """The names in arguments."""
    matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]
    return {
        "t": t,
        "M": lambda: t.tensor(matrix, dtype=t.float64),
        "V": lambda: t.tensor([0.5, 1.0, 2.0], dtype=t.float64),
        "I": lambda: t.tensor([[1, 2], [3, 4]]),
        "A": lambda: np.array([1.0, 2.0]),
    }


# --- hostile arguments ----------------------------------------------------------------------------------------


def _itself(kind: Any = list) -> Any:
    found: Any = [1.0]
    found.append(found)
    return found


HOSTILE: dict[str, Callable[[Any], Any]] = {
    **{
        repr(value): lambda t, value=value: value
        for value in (
            None,
            True,
            False,
            0,
            -1,
            1,
            3,
            100,
            2**31,
            2**62,
            2**63,
            2**70,
            -(2**70),
            0.0,
            0.5,
            -2.5,
            1e300,
            float("nan"),
            float("inf"),
            1j,
            "",
            "a",
            "sum",
            "cpu",
            b"a",
            (),
            [],
            {},
            set(),
            (0,),
            (-1,),
            (-1, 2),
            (0, 0),
            (1.5, 2),
            (None, 1),
            ("a", "b"),
            (2**40, 2**40),
            (2**62, 0),
            (2**70, 2),
            (True, False),
            (float("nan"),),
            (1,) * 70,
            [None],
            [[1.0, "a"]],
            [[1, 2], [3]],
            {"a": 1.0},
            ...,
            NotImplemented,
            int,
            slice(None),
            range(3),
        )
    },
    "object()": lambda t: object(),
    "[object()]": lambda t: [object()],
    "itself": lambda t: _itself(),
    "2,000 lists": lambda t: deep(),
    "Pretending()": lambda t: Pretending(),
    "class": lambda t: Pretending,
    "generator": lambda t: (x for x in (1, 2)),
    "lambda": lambda t: lambda *args: None,
    "int64(3)": lambda t: np.int64(3),
    "float32(0.5)": lambda t: np.float32(0.5),
    "bool_(True)": lambda t: np.bool_(True),
    "array": lambda t: np.array([1.0, 2.0]),
    "array of text": lambda t: np.array(["a", "b"]),
    "array of objects": lambda t: np.array([object(), 1.0], dtype=object),
    "array(2)": lambda t: np.array(2),
    "dtype": lambda t: t.float32,
    "int8": lambda t: t.int8,
    "complex64": lambda t: t.complex64,
    "device": lambda t: t.device("cpu"),
    "Size": lambda t: t.Size([3, 3]),
    "tensor": lambda t: t.tensor([1.0, 2.0]),
    "0-d": lambda t: t.tensor(1.0),
    "an integer": lambda t: t.tensor(1),
    "a truth": lambda t: t.tensor(True),
    "nan tensor": lambda t: t.tensor(float("nan")),
    "integers": lambda t: t.tensor([[1, 0, 2]]),
    "truths": lambda t: t.tensor([True, False, True]),
    "complex": lambda t: t.tensor([1j, 2.0, 0.5]),
    "halves": lambda t: t.ones(3, 3, dtype=t.float16),
    "bytes": lambda t: t.tensor([1, 2, 3], dtype=t.uint8),
    "nothing": lambda t: t.zeros(0),
    "no rows": lambda t: t.zeros(0, 3),
    "no columns": lambda t: t.zeros(3, 0),
    "cube": lambda t: t.ones(2, 3, 3),
    "64 axes": lambda t: t.ones((1,) * 30),
    "large integers": lambda t: t.tensor([2**62, -(2**63)]),
    "tracked": lambda t: t.tensor([1.0, 2.0, 3.0], requires_grad=True),
    "tracked result": lambda t: t.tensor([1.0, 2.0, 3.0], requires_grad=True) * 2,
    "expanded": lambda t: t.ones(1).expand(3, 3),
    "transposed": lambda t: t.arange(9.0).reshape(3, 3).T,
    "tensors": lambda t: [t.ones(2), t.ones(2)],
    "tensors of two sizes": lambda t: [t.ones(2), t.ones(3)],
    "tensors and numbers": lambda t: [t.tensor(1.0), 2],
    "parameter": lambda t: t.nn.Parameter(t.ones(3)),
    "module": lambda t: t.nn.Linear(3, 3),
}


# --- calls ----------------------------------------------------------------------------------------------------


class Call:
    """A public function of the face with arguments, some of which are replaced."""

    def __init__(self, place: str, name: str, ours: Any) -> None:
        self.place, self.name = place, name
        self.function = f"{place}.{name}"
        key = next((k for k in (self.function, f"{self.function}_") if k in GIVEN), None)
        if key is None and place in ("Tensor", "torch"):
            known = name.removesuffix("_")
            key = next((k for k in (f"torch.{known}", f"Tensor.{known}", f"nn.functional.{name}") if k in GIVEN), None)
        self.named: list[str] = []
        try:
            parameters = list(
                signatures.effective(getattr(signatures.at(ours, place), name), False).parameters.values()
            )
        except (TypeError, ValueError):
            parameters = []
        if key is not None:
            self.source = GIVEN[key]
            self.count = len(self.arguments(ours, {})[0])
        else:
            needed = [
                p
                for p in parameters
                if p.default is inspect.Parameter.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            ]
            if not needed and parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
                needed = parameters[:1]
            self.source = ", ".join([VALUES.get(p.name, "M()") for p in needed])
            self.count = len(needed)
            more = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is inspect.Parameter.empty]
            self.source += "".join([f", {p.name}={VALUES.get(p.name, 'M()')}" for p in more])
        self.named = [
            p.name
            for i, p in enumerate(parameters)
            if p.kind is p.KEYWORD_ONLY or (p.kind is p.POSITIONAL_OR_KEYWORD and i >= self.count)
        ]

    def arguments(self, t: Any, changed: dict[int | str, str]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, made anew for a library."""
        args, options = eval(f"(lambda *args, **options: (list(args), options))({self.source})", scope(t))
        for where, label in changed.items():
            if isinstance(where, int):
                args[where] = HOSTILE[label](t)
            else:
                options[where] = HOSTILE[label](t)
        return args, options

    def places(self) -> list[int | str]:
        """What can be replaced: of a method not the tensor itself."""
        return [*range(1 if self.place == "Tensor" else 0, self.count), *self.named]

    def run(self, t: Any, args: list[Any], options: dict[str, Any]) -> Any:
        owner = signatures.at(t, self.place)
        if self.place == "Tensor" and args and isinstance(args[0], t.Tensor):
            return getattr(args[0], self.name)(*args[1:], **options)
        return getattr(owner, self.name)(*args, **options)


def calls(ours: Any, torch: Any = None) -> Iterator[Call]:
    """A call of everything that is public."""
    for place in PLACES:
        owner = signatures.at(ours, place)
        for name in sorted(public(owner, place)):
            missing = torch is not None and not signatures.hasattr_quietly(signatures.at(torch, place), name)
            if missing or f"{place}.{name}" in LEFT_OUT:
                continue
            yield Call(place, name, ours)


def public(owner: Any, place: str) -> set[str]:
    names = {n for n in dir(owner) if not n.startswith("_")}
    if place == "torch":
        from adjoint.torch import later

        names |= {*later.names()}
    if place == "Tensor":
        names |= {"__getitem__", "__setitem__"}
    found = set()
    for name in names:
        value = getattr(owner, name, None)
        if not callable(value) or inspect.ismodule(value) or name.endswith("Tensor"):
            continue
        module = getattr(value, "__module__", None) or ""
        if place not in ("torch", "Tensor") and not module.startswith(f"adjoint.torch.{place.partition('.')[0]}"):
            if place != "signal.windows" and name not in getattr(owner, "FUNCTIONS_HERE", ()):
                continue
        if (inspect.isclass(value) and place == "torch") or f"{place}.{name}" in INSIDE:
            continue
        found.add(name)
    return found


def chosen(call: Call, choose: random.Random, singles: int, pairs: int) -> Iterator[dict[int | str, str]]:
    """What is replaced: some single arguments, and some pairs."""
    places, labels = call.places(), list(HOSTILE)
    for place in places:
        for label in choose.sample(labels, singles):
            yield {place: label}
    for _ in range(pairs if len(places) > 1 else 0):
        yield dict(zip(choose.sample(places, 2), choose.choices(labels, k=2), strict=True))


def looked(t: Any, values: Any) -> Any:
    """What a refused call must leave as it was: values, versions and flags of tensors."""
    found = []
    for value in values:
        if isinstance(value, t.Tensor):
            found.append((value._version, value.requires_grad, tuple(value.shape), str(value.dtype),
                          value.detach().numpy().copy().tobytes(), value.grad_fn is None))  # fmt: skip
        elif type(value) in (list, tuple) and value and isinstance(value[0], t.Tensor):
            found.append(looked(t, value))
    return found
