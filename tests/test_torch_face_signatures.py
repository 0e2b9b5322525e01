"""How the face's functions, methods and classes are called: by PyTorch's places, names and defaults."""

from __future__ import annotations

import re
import warnings

import pytest
import torch_signatures as signatures
from conftest import peer

import adjoint.torch as ours

torch = peer("torch")

# Differences that stay: why, and what "place.name: difference" looks like. What is only taken beside PyTorch's own
# ways harms nobody; what is not taken is PyTorch's own inside, or for devices that are not here.
KNOWN = {
    "a method is the function, with its out=": r"Tensor\.\w+: out= is not",
    "a function takes what others like it do": (
        r"torch\.\w+: (memory_format|generator|layout|out|inplace|return_indices|rounding_mode)= is not"
        r"|Tensor\.\w+: memory_format= is not|(linalg|special)\.\w+: out= is not"
        r"|\w+\.\w*true_divide_?: rounding_mode= is not|fft\.r?fftfreq: requires_grad= is not"
        r"|(torch|nn.functional).avg_pool1d: (divisor_override= is|takes 7)|special.log_softmax: takes 3"
        r"|torch\.(avg_pool1d|(adaptive_)?max_pool\dd|celu|selu|threshold|(\w+_)?dropout): takes . by place, not"
        r"|(torch|Tensor)\.(argsort|sort): takes . by place"
        r"|torch\.(\w*dropout): (p|training) is"
    ),
    "sizes and axes may be given one by one, too": (
        r"torch\.(arange|flip|permute|permute_copy|tile|randint|randint_like|reshape|expand_copy|view_copy): "
        r"(takes any|\w+ is None|\w+ is \(\))|torch.(expand|view)_copy: (size|dtype|implicit)"
    ),
    "low, high and size are looked up by name": r"torch.randint: takes any name",
    "numbers may stand before tensors, as they once did, without a place of their own": (
        r"(torch|Tensor)\.(add|sub|subtract|addbmm|addmv|addr|addcdiv|addcmul|addmm|baddbmm)_?: takes . by place, not"
    ),
    "products of another type are those of GPUs": r"torch\.(mm|bmm|addmm|baddbmm): (no out_dtype=|takes . by place)",
    "PyTorch's stubs have other names or places than PyTorch": (
        r"torch.tensor: takes 1|Tensor.new_tensor: takes 1|Tensor.requires_grad_: |torch.argsort: (takes 3|no out)"
        r"|torch\.(is_storage|is_tensor|typename|set_default_dtype|set_default_tensor_type|set_warn_always|einsum|dtype)"
        r": |torch.gradient: |Tensor.set_: source|Tensor.floor_divide: no out"
    ),
    "None stands for PyTorch's default": (
        r"torch.cdist: compute_mode|nn.(Lazy)?(Batch|Instance)Norm\dd: |nn.Transformer\w*: activation is 'relu'"
        r"|torch.range: end is None"
        r"|utils.data.random_split: generator|distributions.(Distribution|ExponentialFamily): "
        r"|random.fork_rng: device_type|testing.make_tensor: device"
    ),
    "autocast is for one kind of devices": r"(torch|amp)\.autocast: device_type is 'cpu'",
    "settings that do nothing take anything": (
        r"torch\.(set_flush_denormal|set_num_interop_threads|compiled_with_cxx11_abi|init_num_threads"
        r"|is_vulkan_available|clear_autocast_cache|set_autocast_\w+|is_autocast_cpu_enabled|compile): "
    ),
    "functions that only raise": r"(torch|Tensor)\.(eig|lstsq|matrix_rank|solve|symeig): ",
    "PyTorch's inner forms of functions of torch.nn.functional": (
        r"torch.binary_cross_entropy_with_logits: |torch.(group|layer)_norm: (no cudnn|takes)"
        r"|torch.rrelu_?: |nn.functional.rrelu_: |(torch|nn.functional)\.hardshrink: no out|torch.threshold: no out"
        r"|nn.RNNCellBase: |nn.UninitializedBuffer: |Tensor.(hardshrink|prelu): takes any|torch.selu: takes"
    ),
    "what takes storages, names of axes, pickles or older settings": (
        r"Tensor.new: no (storage|other)|torch.full: no names|torch.save: |(torch|Tensor)\.stft: |Tensor.to: "
        r"|nn.Hardtanh: |nn.utils.rnn.PackedSequence: batch_sizes|utils.data.Sampler: |torch.tensordot: "
        r"|torch.result_type: |Tensor.new_empty_strided: |optim.AdamW: decoupled"
    ),
    "blocks are decorators, too": r"(torch|autograd)\.(no_grad|enable_grad): ",
    "nodes are made by the graph alone": r"autograd.graph.(GradientEdge|Node): ",
}


def test_everything_is_called_as_in_pytorch() -> None:
    allowed = {why: re.compile(pattern) for why, pattern in KNOWN.items()}
    used, wrong, count = set(), [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, name in signatures.pairs(torch, ours):
            theirs = signatures.signatures(torch, place, name)
            function = getattr(signatures.at(ours, place), name)
            if not theirs or not signatures.has_signature(function):
                continue
            count += 1
            method = place == "Tensor"
            for found in signatures.differences(theirs, signatures.effective(function, method), method):
                line = f"{place}.{name}: {found}"
                known = [why for why, pattern in allowed.items() if pattern.match(line)]
                used.update(known)
                wrong += [] if known else [line]
    assert not wrong, "\n".join(wrong)
    assert used == set(KNOWN)
    assert count > 1700


CALLS = """
    torch.sum(a=x, axis=1, keepdims=True)
    torch.add(input=x, other=x, alpha=2)
    torch.atan2(x1=x, x2=x)
    torch.sin(x=x)
    torch.exp(a=x, out=x.clone())
    torch.absolute(x1=x)
    torch.add(x1=x, x2=x, alpha=2)
    torch.sub(a=x, other=0.5)
    torch.mul(x=x, x2=2)
    torch.true_divide(x, x2=2 * x)
    torch.eq(x1=x, x2=x)
    torch.lt(x=x, other=0.5)
    x.mul(x2=x)
    x.clone().mul_(x2=x)
    x.clone().lt_(x2=2 * x)
    x.clone().add_(x2=x, alpha=2)
    torch.addmm(x, mat1=x, mat2=x, beta=0.5)
    torch.addmv(x[0], mat=x, vec=x[0])
    torch.addr(x, vec1=x[0], vec2=x[1])
    torch.baddbmm(x[None], batch1=x[None], batch2=x[None])
    torch.mm(x, mat2=x)
    torch.mv(x, vec=x[0])
    torch.dot(x[0], tensor=x[1])
    torch.lerp(x, end=x, weight=0.5)
    torch.addcmul(x, tensor1=x, tensor2=x, value=2)
    torch.heaviside(x, values=x)
    torch.pow(self=2, exponent=x)
    torch.max(x, other=2 * x)
    torch.hsplit(x, sections=2)
    torch.hsplit(x, indices=(1,))
    torch.tensor_split(x, tensor_indices_or_sections=torch.tensor([1]))
    torch.isin(element=1.0, test_elements=x)
    torch.searchsorted(x[0], input=x[0])
    torch.swapaxes(x, axis0=0, axis1=1)
    torch.dropout(x, p=0.0, train=True)
    torch.norm(x, 2, None, False, None)
    torch.asarray(obj=[1.0, 2.0], dtype=torch.float64, requires_grad=True)
    torch.asarray(x, copy=True)
    torch.asarray(x.requires_grad_()) is x
    torch.asarray(x.requires_grad_(), copy=True).requires_grad
    torch.asarray(2 * x.requires_grad_(), requires_grad=False).requires_grad
    torch.asarray(2 * x.requires_grad_(), requires_grad=True, copy=True).is_leaf
    torch.scalar_tensor(s=3)
    torch.select_scatter(x, src=x[0], dim=0, index=1)
    torch.linalg.matrix_rank(x, 1e-3, True)
    torch.linalg.pinv(x, 1e-3)
    torch.linalg.cholesky(input=x)
    torch.linalg.lstsq(input=x, b=x).solution.round(decimals=4).abs()
    torch.linalg.vector_norm(x=x)
    torch.linalg.tensorsolve(input=x, other=x[0])
    torch.hamming_window(5, True, 0.5, beta=0.5)
    torch.relu_(input=x.clone())
    torch.roll(x, shifts=1, dims=(0,))
    torch.gradient(x, spacing=None)
    torch.meshgrid(x[0], x[1], indexing="xy")
    x.view(size=(4,))
    x.view(dtype=torch.int32)
    x.reshape(shape=(4,))
    x.expand(size=(1, 2, 2))
    x.sum_to_size(size=(1, 2))
    x.clone().resize_(1, 2)
    x.clone().uniform_(**{"from": 1.0, "to": 1.0})
    x.clone().random_(**{"from": 3, "to": 4})
    x.clone().copy_(other=2 * x)
    x.clone().map_(other=x, callable=lambda a, b: a * b)
    x.new(size=(2, 0))
    torch.optim.SGD([x], 0.1, 0.9, 0, 0, True).defaults["nesterov"]
    torch.optim.RMSprop([x], 0.1, 0.9, 1e-8, 0, 0, True, False, None, True).defaults["maximize"]
    torch.nn.GaussianNLLLoss(full=True).full
"""


@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_names_of_arguments(call: str) -> None:
    found = []
    for library in (torch, ours):
        x = library.tensor([[4.0, 1.0], [1.0, 3.0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(str(eval(call, {"torch": library, "x": x})))
    assert found[1] == found[0]


REFUSED = """
    torch.mm(x, other=x)
    torch.dot(x[0], other=x[1])
    torch.hsplit(x, 2, sections=2)
    torch.sum(x, foo=1)
    torch.sum(x, 0, dim=0)
    torch.zero_(3)
    torch.relu_(3)
    x.copy_(src=x)
    torch.linalg.cholesky(A=x)
    torch.optim.SGD([x], 0.1, 0.9, 0, 0, True, None)
    torch.optim.Adam([x], 0.1, (0.9, 0.9), 1e-8, 0, False, None)
    torch.nn.GaussianNLLLoss(True)
    torch.nn.ZeroPad2d()
    torch.nn.ConstantPad1d(1)
    torch.argsort(x, 0, False, True)
    torch.linalg.det(x, x)
    torch.fmax(x)
    torch.addcmul(x, x)
"""


@pytest.mark.parametrize("call", [line.strip() for line in REFUSED.strip().splitlines()])
def test_names_that_there_are_not(call: str) -> None:
    for library in (torch, ours):
        x = library.tensor([[4.0, 1.0], [1.0, 3.0]])
        with pytest.raises(TypeError):
            eval(call, {"torch": library, "x": x})


# what PyTorch refuses, or reads: types of errors and values must agree
ALIKE = """
    torch.is_nonzero(torch.tensor(0.0)), torch.is_nonzero(torch.tensor(2))
    torch.nn.functional.elu(x, alpha=torch.tensor(1.0))
    torch.nn.functional.threshold(x, torch.tensor(2), 0.5)
    torch.nn.functional.huber_loss(x, -x, delta=torch.tensor(0.5))
    torch.nn.functional.poisson_nll_loss(x, x[0])
    torch.tril(x, diagonal=torch.tensor(-1))
    torch.ones(torch.tensor(2), 3)
    torch.ones(torch.Size([2]) + (3,))
    torch.add(x, 1, alpha=torch.tensor(2.0))
    x.uniform_(2.0, 1.0)
    x.exponential_(0.0)
    x.cauchy_(0.0, -1.0)
    x.geometric_(1.5)
    x.log_normal_(0.0, -1.0)
    x.random_(3, 1)
    x.random_(0)
    torch.zeros(3, dtype=torch.int8).random_(0, 300)
    torch.zeros(3, dtype=torch.uint8).random_(-1, 3)
    torch.tensor([7]) // 0
    torch.tensor([7, 7]) % torch.tensor([1, 0])
    torch.fmod(torch.tensor([7]), 0)
    torch.div(7, torch.tensor([0]), rounding_mode="trunc")
    torch.div(torch.tensor([True]), torch.tensor([True]), rounding_mode="trunc")
    torch.div(torch.tensor([16777217, 2**53 + 1, -7, 7]), torch.tensor([1, 1, 2, -2]), rounding_mode="trunc")
    torch.div(torch.tensor([7, -7], dtype=torch.int8), 2, rounding_mode="trunc")
    torch.div(7, -2, rounding_mode="trunc")
    x.bernoulli_(2.0)
    torch.addmm(x, x, x.double())
    torch.bmm(torch.ones(2, 2, 3), torch.ones(1, 3, 2))
    torch.index_select(x, 0, torch.tensor([[0]]))
    torch.meshgrid(x[0], x, indexing="ij")
    torch.block_diag(x[None])
    torch.randperm(-1)
    torch.addmm(x, x[:1], x), torch.addmm(x, x[:1], x, beta=0)
    torch.addmm(x[0], x, x), torch.addmm(x[:1], x, x), torch.addmm(x[0, 0], x, x)
    torch.addmv(x[0], x[:1], x[0])
    torch.addr(x[None], x[0], x[1])
    torch.baddbmm(x[None], x[None, :1], x[None])
    torch.addbmm(x[None], x[None], x[None])
    x[0].addmv_(x[:1], x[0])
    torch.addmv(x[0], x[0], x[0])
    torch.outer(x, x[0])
    torch.lerp(x, x.double(), 0.5)
    torch.lerp(x, 1.0, 0.5)
    torch.inner(x, x.long())
    torch.vdot(x[0], x[0].double())
    torch.isclose(x, x.long())
    torch.allclose(x, x, rtol=-1.0)
    torch.meshgrid(x[0], x[0].long(), indexing="ij")
    torch.linalg.solve(x, x.double())
    torch.linalg.vecdot(x, x.long())
    torch.ones(1.5), torch.ones((2, "a"))
    torch.ones([True])
    torch.zeros(2**70)
    torch.zeros(2**40, 2**40)
    torch.zeros(2**62)
    torch.sum(x, 2**70)
    torch.sum(x, "a")
    torch.sum(x, 0, torch.ones(2))
    torch.mul(x, x, out="a")
    torch.sort(x, out=3)
    torch.sort(x, out=(x,))
    torch.masked_fill(x, 3, 1.0)
    torch.heaviside(x, 3)
    torch.cov([1.0, 2.0])
    torch.resolve_conj(3)
    torch.addmm(x, x, x, beta="a")
    torch.add(x, x, alpha=torch.tensor(1.0, requires_grad=True))
    torch.rsub(x, x, alpha=torch.tensor(1.0, requires_grad=True))
    torch.addmm(x, x, x, beta=torch.tensor(1.0, requires_grad=True))
    torch.addcmul(x, x, x, value=torch.tensor(1.0, requires_grad=True))
    torch.addcdiv(x, x, x, value=torch.tensor(2.0))
    torch.arange(0.0, torch.tensor(3.0, requires_grad=True))
    torch.scalar_tensor(torch.tensor(3.0, requires_grad=True))
    torch.nn.functional.dropout(x, p=torch.tensor(0.5, requires_grad=True))
    torch.nn.functional.poisson_nll_loss(x, x, eps=torch.tensor(0.5, requires_grad=True))
    torch.nn.functional.embedding(torch.tensor([0]), x, max_norm=torch.tensor(0.5, requires_grad=True))
    torch.bernoulli(x / 4, p=torch.tensor(0.5, requires_grad=True))
    torch.bucketize(x, x[0], right=torch.tensor(1.0, requires_grad=True))
    torch.nn.functional.conv1d(x[None], x[None], padding="same", stride=2)
    torch.sum(x, 0, keepdim=1)
    torch.select(x, torch.tensor(1), 0)
    torch.select(x, torch.tensor(1.0), 0)
    torch.zeros(2, layout=3)
    torch.zeros(2, pin_memory=3)
    torch.zeros(2, generator=None, memory_format=3)
    torch.zeros(2, size=(2,))
    x.new_zeros()
    x.sin(out=x)
    torch.hann_window(2.5)
    torch.max(x, 0, other=x)
    torch.index_copy(x, 0, torch.tensor([0.0]), x[:1])
    torch.index_copy(x, 0, torch.tensor([0]), x)
    torch.index_copy(x, 0, torch.tensor([0]), x[:1].double())
    torch.index_copy(x, 0, torch.tensor([[0]]), x[:1])
    torch.histc(x, bins=0)
    torch.histc(x * float("nan"))
    torch.histc(x.long())
    torch.histc(x + 0j)
    torch.tensor_split(x, 0)
    torch.tensor_split(x, -1)
    torch.tensor_split(x, 2.5)
    torch.tensor_split(x, torch.tensor([[1]]))
    torch.tensor_split(x, torch.tensor(1.0))
    torch.tensor_split(x[0, 0], 2)
    torch.poisson(-x)
    torch.poisson(x.long())
    torch.poisson(x + 0j)
    torch.poisson(x * float("nan"))
    torch.randint(0, (2,))
    torch.randint(3, 1, (2,))
    torch.randint("a", (2,))
    torch.randint(3, 2)
    torch.randint(2.5, (2,))
    torch.randint(300, (2,), dtype=torch.int8)
    torch.randint((2,))
    torch.randint()
    torch.randint(0, 3, (2,), foo=1)
    torch.argmax(x, out=torch.zeros(()))
    torch.sort(x, out=(torch.zeros(2, 2), torch.zeros(2, 2)))
    torch.max(x, 0, out=(torch.zeros(2), torch.zeros(2)))
    torch.nonzero(x, out=torch.zeros(4, 2))
    torch.searchsorted(x[0], x, out=torch.zeros(2, 2))
    torch.msort(x, out=torch.zeros(2, 2).double())
    torch.autograd.set_multithreading_enabled(False)(lambda: 3)()
    torch.nn.functional.elu(x, alpha=torch.tensor(1.0, requires_grad=True))
    torch.nn.LeakyReLU(torch.tensor(1.0, requires_grad=True))(x)
    torch.func.grad(lambda a: torch.add(x, x, alpha=a).sum())(torch.tensor(1.0))
    torch.func.grad(lambda a: torch.nn.functional.elu(-x, a).sum())(torch.tensor(1.0))
    torch.vmap(lambda a: torch.nn.functional.elu(-x, a))(torch.ones(2))
    torch.vmap(lambda a: torch.sub(x, x, alpha=a))(torch.ones(2))
    torch.func.jvp(lambda a: torch.sub(x, x, alpha=a), (torch.tensor(1.0),), (torch.tensor(1.0),))
    torch.func.jvp(lambda a: torch.nn.functional.elu(-x, a), (torch.tensor(1.0),), (torch.tensor(1.0),))
    torch.nn.functional.max_pool1d(x[None], "a")
    torch.nn.functional.max_pool1d(x[None], 2, stride=(1.5,))
    torch.nn.functional.conv1d(x[None], x[None], bias=3)
    torch.nn.functional.l1_loss(x, x, reduction="a")
    torch.nn.functional.layer_norm(x, (2,), weight=[1.0, 2.0])
    torch.nn.RNNBase("a", 2, 3)
    torch.from_dlpack(x.requires_grad_())
    x["a"]
    x[{}]
    x[1.0]
    x[2**70]
    x.__setitem__(0, [1.0])
    x.__setitem__(0, "a")
    x.is_cuda
    torch.abs(None)
    torch.div(x, 2, rounding_mode=3)
"""


@pytest.mark.parametrize("call", [line.strip() for line in ALIKE.strip().splitlines()])
def test_what_is_taken_and_refused(call: str) -> None:
    found = []
    for library in (torch, ours):
        x = library.tensor([[4.0, 1.0], [1.0, 3.0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(str(eval(call, {"torch": library, "x": x})))
            except Exception as error:
                found.append(type(error).__name__)
    assert found[1] == found[0]
