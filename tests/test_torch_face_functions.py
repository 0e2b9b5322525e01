"""Every function of `adjoint.torch` against PyTorch: values, types, gradients of first and second order."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_functionals
import torch_functions
import torch_functions_later  # noqa: F401  # further cases
import torch_tutorials
from each import Each
from torch_functions import CASES, different, outcome

import adjoint.torch as ours
from adjoint.torch import later
from adjoint.torch.operators import FUNCTIONS, METHODS

later.load()
DTYPES = {"f": ("float64", "float32"), "c": ("complex128", "complex64"), "i": ("float64",)}
DOUBLE = {"float32": "float64", "complex64": "complex128"}
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4}


def compare(case: Any, dtype: str, seed: int) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted, found = outcome(theirs, case, dtype, seed), outcome(ours, case, dtype, seed)
        differs = different(wanted, found, TOLERANCE[dtype])
        if differs and dtype in DOUBLE:  # PyTorch's own may be further from the truth
            exact = {**outcome(theirs, case, DOUBLE[dtype], seed), "dtypes": wanted["dtypes"]}
            differs = different(exact, found, TOLERANCE[dtype]) and differs
    assert differs is None, differs


@pytest.mark.peers
def test_functions_and_their_derivatives_are_those_of_pytorch() -> None:
    with Each() as each:
        for name, found in [*CASES.items()][::8]:  # the others are slow
            with each(name):
                compare(found[0], DTYPES[found[0][2][0]][0], 1)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("seed", range(3))
def test_all_cases_in_all_types_are_those_of_pytorch(seed: int) -> None:
    with Each() as each:
        for name, found in CASES.items():
            for i, case in enumerate(found):
                for dtype in [dtype for kind in case[2] for dtype in DTYPES[kind]]:
                    with each(f"{name} {i} {dtype}"):
                        compare(case, dtype, seed)


def passes(torch: Any, case: Any, dtype: str) -> dict[str, str]:
    """What a second pass does, and one after a write to each operand and result: "right", "wrong", or the refusal."""
    function, makers, _ = case

    def made() -> tuple[list[Any], list[Any], list[Any]]:
        r = np.random.default_rng(0)
        torch.manual_seed(0)
        leaves, operands = [], []
        for make in makers:
            values = make(r)
            if values.dtype.kind == "f" and dtype.startswith("c"):
                values = values + 1j * make(r)
            x = torch.tensor(values if values.dtype.kind in "iu" else values.astype(dtype))
            leaves += [x.requires_grad_()] if values.dtype.kind in "fc" else []
            operands.append(x.clone())
        out = function(torch, *operands)
        return leaves, operands, [o for o in (out if isinstance(out, (tuple, list)) else (out,)) if o.requires_grad]

    def backward(outs: list[Any]) -> None:
        torch.autograd.backward(outs, [torch.ones_like(o) for o in outs])

    def attempt(write: Any, leaves: list[Any], outs: list[Any], times: int) -> str:
        try:
            write()
            backward(outs)
        except RuntimeError as error:
            for known in ("second time", "modified by an inplace", "leaf", "multiple views", "single memory"):
                if known in str(error):
                    return known
            raise
        same = [
            (x.grad is None and g is None) or np.allclose(_array(x.grad), times * g, rtol=1e-9, equal_nan=True)
            for x, g in zip(leaves, expected, strict=True)
        ]
        return "right" if all(same) else "wrong"

    leaves, operands, outs = made()
    if not outs:
        return {}
    backward(outs)
    expected = [None if x.grad is None else _array(x.grad).copy() for x in leaves]
    found = {"again": attempt(lambda: None, leaves, outs, 2)}
    for kind in ("operand", "result"):
        for i in range(len(operands if kind == "operand" else outs)):
            leaves, operands, outs = made()
            x = (operands if kind == "operand" else outs)[i]
            if x.dtype in (torch.float64, torch.complex128):
                found[f"{kind} {i}"] = attempt(lambda x=x: x.add_(1.0), leaves, outs, 1)  # type: ignore[misc]
    return found


def _array(x: Any) -> Any:
    return x.detach().resolve_conj().numpy(force=True)


# where PyTorch differentiates and the face refuses
_REFUSED_HERE = {
    "as_strided_scatter again", "lp_pool1d result 0", "lp_pool2d result 0", "lp_pool3d result 0", "T result 2",
    *[f"scaled_dot_product_attention {part}" for part in ("operand 0", "operand 1", "operand 3", "result 0")],
}  # fmt: skip


@pytest.mark.peers
def test_a_second_pass_and_one_after_a_write_are_refused_where_pytorch_refuses_them() -> None:
    """Where PyTorch refuses and the face does not, the gradient is right."""
    theirs = pytest.importorskip("torch")
    taken: list[str] = []
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for table in (CASES, torch_functionals.CASES):
            for name, cases in table.items():
                for case in cases:
                    for dtype in [DTYPES[kind][0] for kind in case[2] if kind in "fc"]:
                        with each(name, dtype):
                            wanted, found = passes(theirs, case, dtype), passes(ours, case, dtype)
                            for what, outcome in found.items():
                                label = f"{name} {what}"
                                assert outcome != "wrong", label
                                if outcome == "right" and wanted[what] != "right":
                                    taken.append(label)
                                else:
                                    known = label in _REFUSED_HERE or wanted[what] == "wrong"
                                    assert outcome == wanted[what] or known, (label, wanted[what], outcome)
    assert len(taken) <= 262, taken


# made out of nothing, random, or without values of their own: tested below
CREATION = set(
    """
    Size arange as_tensor asarray bernoulli binomial broadcast_shapes empty empty_like empty_permuted empty_strided
    eye from_dlpack from_numpy frombuffer full full_like initial_seed is_tensor linspace logspace manual_seed
    multinomial normal ones ones_like poisson rand rand_like randint randint_like randn randn_like randperm
    scalar_tensor seed tensor to_dlpack zeros zeros_like
    """.split()
)


def test_every_function_has_a_case() -> None:
    assert set(FUNCTIONS) - set(CASES) - CREATION == set()
    assert set(FUNCTIONS) >= CREATION


def test_every_in_place_method_is_that_of_a_function() -> None:
    rest = {name for name in METHODS if name.endswith("_") and not name.startswith("__") and name[:-1] not in FUNCTIONS}
    assert rest == {
        "copy_", "fill_", "zero_", "index_put_", "normal_", "uniform_", "bernoulli_", "exponential_", "random_",
        "share_memory_", "cauchy_", "geometric_", "log_normal_", "fill_diagonal_", "squeeze_", "swapaxes_", "swapdims_",
        "t_", "transpose_", "unsqueeze_", "as_strided_", "resize_", "resize_as_", "set_",
        "apply_", "map_", "map2_",
    } - {f"{name}_" for name in FUNCTIONS}  # fmt: skip


@pytest.mark.peers
def test_creation_and_printing_are_those_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")

    def shown(t: Any) -> list[str]:
        base = t.tensor([[1, 2], [3, 4]])
        made = [
            t.zeros(2, 3), t.ones((2, 2), dtype=t.int64), t.full((2,), 3), t.full((2,), 1.5), t.eye(3),
            t.full_like(base, 7),
            t.arange(5), t.arange(1, 2, 0.25), t.linspace(0, 1, 5), t.logspace(0, 2, 3), t.tensor(True), t.tensor(3),
            t.tensor([1.5, -2.0]), t.tensor([1 + 2j, -0.5j]), t.zeros(0), t.zeros(2, 0), t.tensor([], dtype=t.int32),
            t.tensor([1.0, float("nan"), float("inf")]), t.tensor([1e-6, 1.0]), t.tensor([1e9, 2.0]), t.tensor(2.5e-7),
            t.tensor([1000.0, 1.0]), t.tensor([10000.0, 1.0]), t.arange(1200.0), t.arange(30000).reshape(100, 300),
            t.arange(24.0).reshape(2, 3, 4), t.ones(3, dtype=t.float64), t.ones(3, dtype=t.float16),
            t.zeros_like(base), t.ones_like(base, dtype=t.float32), t.scalar_tensor(3), base.new_zeros(2),
            base.new_full((2,), 1),
            base.new_tensor([1.5]), base.float(), base.bool(), base.to(t.complex64), t.tensor([[-1.5, 2], [300, 4]]),
            t.arange(40.0) * 0.37, t.ones(2, requires_grad=True), (t.ones(2, requires_grad=True) * 2), -t.zeros(2),
            t.ones(30, 4, requires_grad=True) * 1.25, t.tensor([0.1, 0.2], dtype=t.float64).sum(), t.arange(3) > 1,
            t.tensor([float("nan")]), t.tensor([float("inf"), 0.0]), t.tensor([123456.789, 0.001]),
        ]  # fmt: skip
        return [f"{x}\n{x.dtype} {x.shape} {x.type()}" for x in made]

    for a, b in zip(shown(theirs), shown(ours), strict=True):
        assert a == b


@pytest.mark.peers
def test_operands_meet_in_the_types_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    names = "float16 float32 float64 int8 int16 int32 int64 uint8 bool complex64 complex128".split()

    def types(t: Any) -> list[str]:
        out = []
        for a in names:
            for shape in ((2,), ()):
                x = t.ones(shape, dtype=getattr(t, a))
                out += [str((x * n).dtype) for n in (2, 2.5, True, 1j) if (a, n) != ("float16", 1j)]
                for b in names:
                    if "float16" in (a, b) and "complex" in a + b:  # there is no complex number of half precision
                        continue
                    y = t.ones(2, dtype=getattr(t, b))
                    out += [str((x * y).dtype), str(t.result_type(x, y)), str((x / y).dtype)]
        return out

    assert types(theirs) == types(ours)


def test_what_comes_later_is_where_the_table_says() -> None:
    for module, words in later.TABLE.items():
        declared = {word.lstrip("-.") for word in words.split()}
        known = [*FUNCTIONS.items(), *METHODS.items()]
        own = {name for name, v in known if getattr(v, "__module__", "") == f"adjoint.torch.{module}"}
        assert own <= declared, module
        for word in words.split():
            name = word.lstrip("-.")
            assert (name in FUNCTIONS) is (word[0] != "."), word
            assert (name in METHODS) is hasattr(ours.Tensor, name) is (word[0] != "-"), word


@pytest.mark.peers
def test_complex_views_and_shapes_in_place_are_those_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")

    def seen(t: Any) -> list[Any]:
        z = t.tensor([[1 + 2j, 3 - 1j]], requires_grad=True)
        w = z * 2
        parts = t.view_as_real(w)
        parts[..., 0].mul_(3)
        (w.abs() ** 2).sum().backward()
        x = t.arange(6.0).reshape(3, 2).requires_grad_()
        y = x * 1
        whole = t.view_as_complex(y)
        whole[1] = 2j
        (y * y * y).sum().backward()
        p = t.ones(2, 3) * 2
        p.t_()
        flat = p.is_contiguous(), p.stride(), p._version
        p.add_(t.arange(2.0)).unsqueeze_(0)
        leaf = t.ones(2, 3, requires_grad=True)
        with pytest.raises(RuntimeError, match="a leaf Variable"):
            leaf.t_()
        turned = (leaf * 2).transpose_(0, 1)
        turned.mul_(t.arange(6.0).reshape(3, 2)).sum().backward()
        tensors = z.grad, parts, x.grad, y, p, leaf.grad
        places = parts.stride(), whole.stride(), whole.storage_offset(), flat, p.stride()
        return [[v.tolist() for v in tensors], places]

    assert seen(ours) == seen(theirs)


@pytest.mark.peers
def test_types_and_names_beside_functions_are_those_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    names = "float16 float32 float64 int8 int16 int32 int64 uint8 bool complex64 complex128".split()

    def seen(t: Any) -> list[str]:
        types = [getattr(t, name) for name in names]
        out: list[Any] = [t.can_cast(a, b) for a in types for b in types]
        for name, d in zip(names, types, strict=True):
            for make in (t.iinfo, t.finfo):
                if name != "bool":
                    try:
                        v = make(d)
                        out.append((v, v.bits, v.max, v.min, getattr(v, "eps", 0), getattr(v, "tiny", 0), v.dtype))
                    except TypeError as error:
                        out.append(error)
        state = t.get_rng_state()
        drawn = t.rand(2)
        t.set_rng_state(state)
        x = t.tensor([-1.0, 2.0])
        out += [
            t.equal(drawn, t.rand(2)), t.finfo(), t.get_default_device(), t.FloatTensor([1, 2]),
            t.FloatTensor(2, 1).shape, t.LongTensor([2**40, 1]), t.BoolTensor([1, 0]), t.IntTensor().shape,
            t.HalfTensor(1).dtype, isinstance(x, t.FloatTensor), isinstance(x.long(), t.FloatTensor),
            t.prelu(x, t.tensor([0.5])), t.conv1d(t.ones(1, 1, 3), t.ones(1, 1, 2)), t.relu_(x.clone()),
            t.threshold(x, 0.5, 3.0), x[t.newaxis].shape, t.dropout(x, 0.0, True), t.channels_last,
            x.is_conj(), x.is_pinned(), x.is_shared(), x[:1].is_nonzero(),
        ]  # fmt: skip
        return [str(v) for v in out]

    for a, b in zip(seen(theirs), seen(ours), strict=True):
        assert a == b


def test_what_is_not_there_says_so_by_name() -> None:
    for name, why in {
        "sparse_coo_tensor": "sparse", "export": "compiler", "quantize_per_tensor": "quantized",
        "no_such_name": "docs/torch.md",
    }.items():  # fmt: skip
        with pytest.raises(AttributeError, match=f"'{name}'.*{why}"):
            getattr(ours, name)
    with pytest.raises(RuntimeError, match="No CUDA GPUs"):
        ours.ones(1).cuda()


def test_bfloat16_can_be_named_but_has_no_tensors() -> None:
    x, net = ours.ones(1, 2), ours.nn.Linear(2, 2)
    assert (str(ours.bfloat16), ours.bfloat16.is_floating_point, ours.bfloat16.itemsize) == ("torch.bfloat16", True, 2)
    assert x.dtype != ours.bfloat16
    with ours.autocast("cpu", dtype=ours.bfloat16):
        assert net(x).dtype is ours.float32
    for call in (
        lambda: x.bfloat16(), lambda: x.to(ours.bfloat16), lambda: ours.zeros(2, dtype=ours.bfloat16),
        lambda: ours.tensor([1.0], dtype=ours.bfloat16), lambda: net.to(ours.bfloat16), lambda: net.bfloat16(),
        lambda: ours.nn.Linear(2, 2, dtype=ours.bfloat16), lambda: ours.set_default_dtype(ours.bfloat16),
        lambda: x.sum(dtype=ours.bfloat16), lambda: x.view(ours.bfloat16), lambda: x.type(ours.bfloat16),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="no tensors of torch.bfloat16.*float32"):
            call()
    assert net.weight.dtype is ours.float32


@pytest.mark.peers
def test_safetensors_are_files_that_pytorch_reads_and_writes(tmp_path: Path) -> None:
    theirs = pytest.importorskip("torch")
    library = pytest.importorskip("safetensors.torch")
    from adjoint.torch.safetensors import load_file, load_model, save_file, save_model

    path = tmp_path / "tensors"
    given = {
        "a": ours.ones(2, 3) * 2, "b": ours.arange(3), "c": ours.ones(2, dtype=ours.float16), "d": ours.tensor(True),
        "t": ours.arange(6.0).reshape(2, 3).T, "z": ours.tensor([1 + 2j]),
    }  # fmt: skip
    save_file(given, path, {"key": "value"})
    found = library.load_file(path)
    assert {name: (x.tolist(), str(x.dtype)) for name, x in found.items()} == {
        name: (x.tolist(), str(x.dtype)) for name, x in given.items()
    }
    library.save_file({**found, "h": theirs.tensor([1.5, -2.0], dtype=theirs.bfloat16)}, path)
    back = load_file(path)
    assert all([ours.equal(x, back[name]) and x.dtype is back[name].dtype for name, x in given.items()])
    assert (back["h"].tolist(), back["h"].dtype) == ([1.5, -2.0], ours.float32)

    def twice(t: Any) -> Any:
        net = t.nn.Sequential(t.nn.Linear(2, 2))
        return net.append(net[0])

    net, other = twice(ours), twice(theirs)
    save_model(net, str(path))
    assert set(load_file(path)) == {"0.weight", "0.bias"}
    assert library.load_model(other, path) == (set(), [])
    assert other[1].weight.tolist() == net[1].weight.tolist()
    other[0].bias.data.fill_(7.0)
    library.save_model(other, str(path))
    assert load_model(net, path) == ([], [])
    assert net[1].bias.tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="share memory"):
        save_file({"a": net[0].weight, "b": net[1].weight}, path)
    with pytest.raises(ValueError, match="Key `a`"):
        save_file({"a": 1}, path)  # type: ignore[dict-item]
    with pytest.raises(RuntimeError, match="Missing key"):
        load_model(ours.nn.Linear(2, 3), path)


def test_random_numbers_follow_the_seed() -> None:
    def drawn() -> list[Any]:
        ours.manual_seed(3)
        mean = ours.zeros(2, 2)
        made = [
            ours.rand(3), ours.randn(2, 2), ours.randint(0, 10, (5,)), ours.randperm(6), ours.normal(mean, 1.0),
            ours.bernoulli(ours.full((4,), 0.5)), ours.multinomial(ours.ones(2, 5), 3), ours.rand_like(mean),
            ours.zeros(3).normal_(), ours.zeros(3).uniform_(1, 2), ours.zeros(3).bernoulli_(0.5),
            ours.zeros(3).exponential_(), ours.zeros(3).random_(0, 9), ours.randn_like(mean),
            ours.zeros(3).cauchy_(), ours.zeros(3).geometric_(0.3), ours.zeros(3).log_normal_(),
            ours.randint_like(mean, 9), ours.poisson(mean + 3), ours.binomial(mean + 9, mean + 0.5),
        ]  # fmt: skip
        return [x.tolist() for x in made]

    assert drawn() == drawn()
    for dtype, most in {"bool": 1, "int8": 127, "uint8": 255, "float16": 2048, "float32": 2**24}.items():
        whole = ours.zeros(5000, dtype=getattr(ours, dtype)).random_().double()
        assert whole.min() >= 0
        assert most / 2 < whole.max() <= most
    assert sorted(drawn()[3]) == list(range(6))
    assert all([1 <= v < 2 for v in drawn()[9]])
    ours.manual_seed(0)
    assert abs(ours.randn(10_000).mean().item()) < 0.05
    assert abs(ours.randn(10_000).std().item() - 1) < 0.05


@pytest.mark.peers
@pytest.mark.parametrize("name", torch_tutorials.ALL)
def test_tutorials_print_what_they_print_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_tutorials.printed(name, ours) == torch_tutorials.printed(name, theirs)


def test_memory_is_shared_with_buffers_and_by_dlpack() -> None:
    theirs = pytest.importorskip("torch")

    def seen(t: Any) -> list[Any]:
        raw = bytearray(np.arange(6, dtype=np.float32).tobytes())
        x, part = t.frombuffer(raw, dtype=t.float32), t.frombuffer(raw, dtype=t.int32, count=2, offset=8)
        x[5] = 7
        array = np.ones(3)
        y = t.from_dlpack(array)
        y[1] = 5
        back = np.from_dlpack(y)
        out: list[Any] = [x, part, bytes(raw), array, back, np.shares_memory(back, array), y.__dlpack_device__()[0]]
        out += [t.from_dlpack(t.arange(3)), t.frombuffer(raw, dtype=t.float32, requires_grad=True).requires_grad]
        for call in (
            lambda: t.ones(2, requires_grad=True).__dlpack__(),
            lambda: t.frombuffer(bytearray(0), dtype=t.float32),
            lambda: t.frombuffer(bytearray(9), dtype=t.float32),
            lambda: t.frombuffer(bytearray(8), dtype=t.float32, count=3),
            lambda: t.frombuffer(bytearray(8), dtype=t.float32, offset=8),
            lambda: t.linalg.cholesky_ex(-t.eye(2), check_errors=True),
            lambda: t.linalg.inv_ex(t.zeros(2, 2), check_errors=True),
            lambda: t.linalg.solve_ex(t.zeros(1, 2, 2), t.ones(1, 2, 2), check_errors=True),
            lambda: t.linalg.lu_factor_ex(t.zeros(2, 2), check_errors=True),
            lambda: t.pca_lowrank(t.ones(3, 2), q=3),
        ):
            with pytest.raises((BufferError, ValueError, RuntimeError)) as raised:
                call()
            out.append(str(raised.value).split(",")[0])
        return [str(v) for v in out]

    with Each() as each:
        for i, (a, b) in enumerate(zip(seen(theirs), seen(ours), strict=True)):
            with each(str(i)):
                assert a == b


def test_a_matrix_that_fails_is_told_and_leaves_the_gradients_of_others() -> None:
    x = ours.tensor([[[4.0, 1.0], [1.0, 3.0]], [[-1.0, 0.0], [0.0, 1.0]]], requires_grad=True)
    made, info = ours.linalg.cholesky_ex(x)
    assert info.tolist() == [0, 1]
    assert made[1].isnan().all()
    made[0].sum().backward()
    alone = ours.tensor(x[0].tolist(), requires_grad=True)
    ours.linalg.cholesky(alone).sum().backward()
    assert ours.equal(x.grad, ours.stack([alone.grad, ours.zeros(2, 2)]))


def test_gradients_of_singular_values_from_random_products() -> None:
    r = np.random.default_rng(0)
    for call in (lambda x: ours.svd_lowrank(x, 3)[1], lambda x: ours.pca_lowrank(x, 3, center=False)[1]):
        x = ours.tensor(r.normal(size=(6, 3)), requires_grad=True)
        y = ours.tensor(x.tolist(), dtype=ours.float64, requires_grad=True)
        call(x).pow(3).sum().backward()
        ours.linalg.svdvals(y).pow(3).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-8)


def test_old_names_of_first_values_warn() -> None:
    for name in "uniform normal constant eye dirac xavier_uniform kaiming_normal orthogonal sparse".split():
        x = ours.zeros(4, 4, 3) if name == "dirac" else ours.zeros(4, 4)
        given = {"constant": (2.0,), "sparse": (0.5,)}.get(name, ())
        with pytest.warns(FutureWarning, match=f"nn.init.{name}_"):
            assert getattr(ours.nn.init, name)(x, *given) is x
        assert x.abs().sum() > 0


def test_the_page_counts_what_is_there() -> None:
    page = (Path(__file__).parent.parent / "docs" / "torch.md").read_text()
    assert torch_functions.table() in page, "run python tests/torch_functions.py --write"
    assert [name for name in FUNCTIONS if f"`{name}`" not in page] == ["Size"]


@pytest.mark.peers
def test_what_is_no_tensor_is_named_as_by_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    calls: list[Any] = [
        lambda t: t.amax("x", 0),
        lambda t: t.diagonal(3),
        lambda t: t.imag(2),
        lambda t: t.cumsum([1.0], 0),
        lambda t: t.masked_select(1, 2),
        lambda t: t.isclose(1, 2),
        lambda t: t.nn.functional.linear(1, 2),
        lambda t: t.nn.Linear(2, 2)([1.0, 2.0]),
    ]
    with Each() as each:
        for i, call in enumerate(calls):
            with each(str(i)):
                said = []
                for library in (theirs, ours):
                    with pytest.raises(TypeError) as caught:
                        call(library)
                    said.append(str(caught.value))
                assert said[0] == said[1]


@pytest.mark.peers
def test_wrong_inputs_are_refused_with_the_types_and_words_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")

    def errors(t: Any) -> list[Any]:
        x, whole, one = t.ones(3, 5), t.ones(3, 5, dtype=t.int64), t.tensor(1.0)
        image, kernel = t.ones(1, 1, 4, dtype=t.int64), t.ones(1, 1, 2, dtype=t.int64)
        f, negative = t.nn.functional, -t.ones(5, dtype=t.int64)
        out = []
        for call in (
            lambda: t.pow(2, 3), lambda: t.float_power(2, 3), lambda: t.ldexp(2, whole), lambda: t.clamp_min(2, whole),
            lambda: t.cov(x, fweights=t.ones(5)), lambda: t.cov(x, fweights=negative),
            lambda: t.cov(x, aweights=-t.ones(5)), lambda: t.cov(x, aweights=t.ones(4)), lambda: t.flipud(one),
            lambda: t.fliplr(t.ones(3)), lambda: t.gradient(x, spacing=[0.1], dim=[1, 0]),
            lambda: t.gradient(x, dim=[1, 1]), lambda: t.gradient(x, edge_order=3),
            lambda: whole.masked_fill(whole > 0, 1j), lambda: whole.masked_fill(whole > 0, t.tensor(1j)),
            lambda: f.conv1d(image, kernel, t.ones(1)), lambda: f.conv1d(image.float(), kernel.float(), t.ones(1) * 1j),
            lambda: f.conv1d(image.float(), kernel.float(), groups=0), lambda: f.max_pool1d(t.ones(0, 10), 1),
            lambda: f.max_pool3d(t.ones(0, 1, 2, 10), 1), lambda: t.narrow(x, 0, t.tensor(True), 1),
            lambda: t.narrow(one, 0, 0, 1), lambda: t.roll(one, 0, 0), lambda: t.roll(x, [2, 1], 0),
            lambda: t.rot90(x, dims=[0]), lambda: t.rot90(x[0]), lambda: t.rot90(x, dims=[1, 1]),
            lambda: t.mean(x, [], dtype=t.int64), lambda: t.linalg.cross(t.ones(2, 3), t.ones(3)),
            lambda: t.linalg.cross(x, x), lambda: t.arange(0, float("inf"), 2), lambda: t.linspace(0, 3, -1),
            lambda: t.ones(3).normal_(0, -1), lambda: t.diag_embed(x, dim1=1, dim2=1),
            lambda: t.diag_embed(x, dim1=10), lambda: t.aminmax(x[:0]), lambda: t.amax(x[:0]),
            lambda: f.adaptive_avg_pool2d(x, (2, 2)), lambda: f.adaptive_max_pool3d(x[None, None], []),
            lambda: f.hardtanh(x, 0.5, -0.5), lambda: f.multi_margin_loss(x, whole[:, 0], weight=one),
            lambda: t.hsplit(x, 0), lambda: t.eye(-1), lambda: t.eye(0, -3), lambda: t.unbind(one),
            lambda: t.cat([x, None]), lambda: t.cat(x), lambda: t.fft.fft(one), lambda: t.fft.fftn(one, dim=[0]),
            lambda: t.hstack([]), lambda: t.tril(x[0]), lambda: t.reshape(one, (0, -1)),
            lambda: x.masked_scatter(x, x), lambda: t.multinomial(x, 2, out=x), lambda: -(x > 0),
            lambda: t.take(x, whole, out=t.ones(1, 1).expand(3, 5)), lambda: t.add(x, 1, out=one.expand(3, 5)),
            lambda: t.full((2,), t.tensor(1.0, requires_grad=True)),
        ):  # fmt: skip
            with pytest.raises(Exception) as error:  # noqa: PT011  # of any type: these are compared
                call()
            kind = error.type
            out.append(next(k.__name__ for k in kind.__mro__ if k.__module__ == "builtins"))
        return out

    for i, (a, b) in enumerate(zip(errors(theirs), errors(ours), strict=True)):
        assert a == b, i


def test_places_of_examples_are_drawn_by_their_chances() -> None:
    """In `vmap`, where chances have no values to look at: frequencies, within five of their standard deviations."""
    ours.manual_seed(0)
    chances, count = np.array([[1.0, 0.0, 3.0], [2.0, 2.0, 4.0]]), 20_000
    draw = ours.vmap(lambda p: ours.multinomial(p, count, replacement=True), randomness="different")
    for drawn, p in zip(draw(ours.tensor(chances)).numpy(), chances / chances.sum(1, keepdims=True), strict=True):
        found = np.bincount(drawn, minlength=3) / count
        assert (abs(found - p) <= 5 * np.sqrt(p * (1 - p) / count)).all()
    pairs = ours.vmap(lambda p: ours.multinomial(p, 2), randomness="different")
    drawn = pairs(ours.tensor([[1.0, 2.0, 5.0]] * count)).numpy()
    assert (drawn[:, 0] != drawn[:, 1]).all()
    p = np.array([1.0, 2.0, 5.0]) / 8
    first = np.bincount(drawn[:, 0], minlength=3) / count
    assert (abs(first - p) <= 5 * np.sqrt(p * (1 - p) / count)).all()
    second = np.array([sum([p[i] * p[j] / (1 - p[i]) for i in range(3) if i != j]) for j in range(3)])
    found = np.bincount(drawn[:, 1], minlength=3) / count
    assert (abs(found - second) <= 5 * np.sqrt(second * (1 - second) / count)).all()


def test_complex_numbers_are_drawn_with_two_parts() -> None:
    kind, n = ours.complex128, 4000
    ours.manual_seed(0)
    normal = {
        "randn": ours.randn(n, dtype=kind),
        "randn_like": ours.randn_like(ours.zeros(n, dtype=kind)),
        "normal": ours.normal(0.0, 1.0, (n,), dtype=kind),
        "normal_": ours.zeros(n, dtype=kind).normal_(),
    }
    uniform = {
        "rand": ours.rand(n, dtype=kind),
        "rand_like": ours.rand_like(ours.zeros(n, dtype=kind)),
        "uniform_": ours.zeros(n, dtype=kind).uniform_(),
    }
    with Each() as each:
        for known, mean, spread in ((normal, 0.0, 0.5**0.5), (uniform, 0.5, 12**-0.5)):
            for name, z in known.items():
                with each(name):
                    for part in (z.real, z.imag):
                        assert abs(part.mean().item() - mean) < 0.05
                        assert abs(part.std().item() - spread) < 0.05
                    assert abs((z.real * z.imag).mean().item() - mean**2) < 0.05
    z = ours.func.vmap(lambda _: ours.randn(3, dtype=kind), randomness="different")(ours.ones(4))
    assert z.shape == (4, 3)
    assert bool((z.imag != 0).all())
    moved = ours.zeros(n, dtype=kind).normal_(2.0, 3.0)
    assert abs(moved.imag.mean().item() - 2) < 0.2
    with pytest.raises(RuntimeError, match="check_random_bounds"):
        moved.random_(3)
    assert ours.nn.Linear(5, 5, dtype=ours.complex64).weight.imag.abs().min() > 0
