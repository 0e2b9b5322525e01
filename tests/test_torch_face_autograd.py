"""`adjoint.torch.autograd` against PyTorch: programs that print the same under both."""

from __future__ import annotations

import gc
import importlib
import io
import pickle
import sys
import threading
import warnings
import weakref
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import torch_areas  # noqa: F401  more programs
import torch_areas_math  # noqa: F401
import torch_areas_nn  # noqa: F401
import torch_areas_optim  # noqa: F401
import torch_arguments  # noqa: F401
import torch_autograd
import torch_backwards  # noqa: F401
import torch_beside_numpy  # noqa: F401
import torch_corners  # noqa: F401
import torch_duals  # noqa: F401
import torch_func  # noqa: F401
import torch_graphs
import torch_habits  # noqa: F401
import torch_indices  # noqa: F401
import torch_levels  # noqa: F401
import torch_nodes  # noqa: F401
import torch_optimizers  # noqa: F401
import torch_outputs  # noqa: F401
import torch_probes  # noqa: F401
import torch_refusals  # noqa: F401
import torch_results  # noqa: F401
import torch_transforms  # noqa: F401
from conftest import joined
from each import Each

import adjoint.torch as ours
from adjoint import errors


@pytest.mark.peers
def test_programs_print_what_they_print_under_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each:
        for name in torch_autograd.PROGRAMS:
            with each(name):
                expected = torch_autograd.printed(name, theirs)
                assert expected
                assert torch_autograd.printed(name, ours) == expected


def test_a_function_leaves_nothing_for_the_garbage_collector() -> None:
    class Double(ours.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = x * 2
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    gc.disable()
    try:
        x = ours.ones(3, requires_grad=True)
        y = Double.apply(x)
        node = weakref.ref(y._array.node)
        y.sum().backward()
        del y
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.peers
def test_einops_takes_tensors_and_gradients_go_through() -> None:
    theirs, einops = pytest.importorskip("torch"), pytest.importorskip("einops")
    import adjoint.torch.einops  # noqa: F401

    def results(t: Any) -> list[Any]:
        x = t.arange(24.0, dtype=t.float64).reshape(2, 3, 4).div(10).requires_grad_()
        made = [
            einops.rearrange(x, "a b (c d) -> (a c) b d", c=2), einops.rearrange([x, x * 2], "n a b c -> a n (b c)"),
            einops.repeat(x, "a b c -> a (b k) c n", k=2, n=3), einops.einsum(x, x, "a b c, a d c -> b d"),
            einops.pack([x, x[0]], "* c")[0],
            *[einops.reduce(x, "a b c -> b", how) for how in ("sum", "mean", "max", "min", "prod")],
            einops.reduce(x, "a (b k) c -> a b ()", "mean", k=3),
        ]  # fmt: skip
        return [(m.tolist(), t.autograd.grad((m * m).sum(), x)[0].tolist()) for m in made]

    for (value, gradient), (expected, its) in zip(results(ours), results(theirs), strict=True):
        np.testing.assert_allclose(value, expected, 1e-12)
        np.testing.assert_allclose(gradient, its, 1e-10)


def compared(seeds: range) -> float:
    """The part of random programs that do the same under PyTorch; the others differ in one known thing."""
    theirs = pytest.importorskip("torch")
    same = 0
    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            with each(seed):
                differs = torch_graphs.difference(torch_graphs.program(theirs, seed), torch_graphs.program(ours, seed))
                same += differs is None
                assert differs in (None, torch_graphs.ORDER), differs
    return same / len(seeds)


@pytest.mark.peers
def test_random_programs_of_functions_hooks_and_duals_do_what_they_do_under_pytorch() -> None:
    assert compared(range(12)) > 0.9


@pytest.mark.slow
@pytest.mark.peers
def test_hundreds_of_random_programs_of_functions_hooks_and_duals() -> None:
    assert compared(range(100, 900)) > 0.95


# --- files ------------------------------------------------------------------------------------------------


def contents(t: Any) -> dict[str, Any]:
    """Tensors of all types and strides, and containers, which a file has."""
    x = t.arange(6.0).reshape(2, 3)
    typed = {str(kind): t.tensor([1, 0, 1]).to(kind) for kind in (t.int8, t.uint8, t.int16, t.int32, t.int64, t.bool)}
    return {
        "x": x, "t": x.t(), "part": x[1, 1:], "strided": t.arange(10.0)[::3], "tracked": t.ones(2, requires_grad=True),
        "complex": t.tensor([1 + 2j]), "number": t.tensor(3), "empty": t.zeros(0, 3), "half": t.ones(2).half(),
        "double": t.ones(2, dtype=t.float64), **typed, "dtype": t.float32, "size": x.shape, "device": x.device,
        "list": [1, "a", None, True, 2.5, 3j], "ordered": OrderedDict(k=(1, b"bytes")), "set": {1, 2},
    }  # fmt: skip


def described(x: Any) -> Any:
    if hasattr(x, "stride"):
        return str(x), str(x.dtype), tuple(x.shape), x.stride(), x.storage_offset(), x.requires_grad
    return str(x)


@pytest.mark.peers
def test_files_are_read_by_pytorch_and_pytorchs_here(tmp_path: Path) -> None:
    theirs = pytest.importorskip("torch")
    wanted = {name: described(x) for name, x in contents(theirs).items()}
    ours.save(contents(ours), tmp_path / "ours.pt")
    theirs.save(contents(theirs), tmp_path / "theirs.pt")
    for options in ({"weights_only": True}, {"weights_only": False}, {"mmap": True, "weights_only": True}):
        found = theirs.load(tmp_path / "ours.pt", **options)
        assert {name: described(x) for name, x in found.items()} == wanted
        found["x"][1, 1] = 100.0
        assert found["t"][1, 1] == 100.0
        assert found["part"][0] == 100.0
    found = ours.load(tmp_path / "theirs.pt")
    assert {name: described(x) for name, x in found.items()} == wanted
    found["x"][1, 1] = 100.0
    assert found["t"][1, 1].item() == 100.0
    assert found["part"][0].item() == 100.0
    with (tmp_path / "theirs.pt").open("rb") as file:
        assert set(ours.load(io.BytesIO(file.read()))) == set(wanted)
    model = theirs.nn.Sequential(theirs.nn.Linear(2, 3), theirs.nn.BatchNorm1d(3))
    theirs.save(model.state_dict(), tmp_path / "state.pt")
    state = ours.load(tmp_path / "state.pt", map_location="cpu")
    assert {name: x.tolist() for name, x in state.items()} == {n: x.tolist() for n, x in model.state_dict().items()}
    mine = ours.nn.Sequential(ours.nn.Linear(2, 3), ours.nn.BatchNorm1d(3))
    mine.load_state_dict(state)
    optimizer = ours.optim.Adam(mine.parameters())
    mine(ours.ones(4, 2)).pow(2).sum().backward()
    optimizer.step()
    ours.save({"model": mine.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, tmp_path / "all.pt")
    back = theirs.load(tmp_path / "all.pt")
    model.load_state_dict(back["model"])
    theirs.optim.Adam(model.parameters()).load_state_dict(back["optimizer"])
    assert model[0].weight.tolist() == mine[0].weight.tolist()
    ours.save(mine[0].weight, tmp_path / "weight.pt")
    assert isinstance(theirs.load(tmp_path / "weight.pt"), theirs.nn.Parameter)
    assert isinstance(ours.load(tmp_path / "weight.pt"), ours.nn.Parameter)
    theirs.save(model, tmp_path / "model.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL torch\.nn\.modules\.container\.Sequential"):
        ours.load(tmp_path / "model.pt")


def through(writes: Any, reads: Any, x: Any) -> Any:
    file = io.BytesIO()
    writes.save(x, file)
    file.seek(0)
    return reads.load(file)


@pytest.mark.peers
def test_files_of_conjugates_and_of_views_of_other_types_keep_their_values() -> None:
    theirs = pytest.importorskip("torch")

    def made(t: Any) -> list[Any]:
        z, x = t.tensor([[1 + 2j, 3 - 1j]]), t.tensor([1.0, 2.0, -3.0, 4.0])
        parts = [z.real, z.imag, t.view_as_real(z), x.view(t.int32), x.view(t.int16), t.view_as_complex(x.view(2, 2))]
        return [*parts, z.conj(), z.mH, z.conj().imag, z.conj().mH, x._neg_view() if t is theirs else x.neg()]

    with Each() as each:
        for i, (a, b) in enumerate(zip(made(theirs), made(ours), strict=True)):
            with each(str(i)):
                for found in (through(theirs, ours, a), through(ours, ours, b), through(ours, theirs, b)):
                    assert str(found.dtype) == str(a.dtype)
                    np.testing.assert_array_equal(found.resolve_conj().numpy(), a.resolve_conj().resolve_neg().numpy())


def test_threads_add_to_one_gradient() -> None:
    before, rounds = sys.getswitchinterval(), 400
    w = ours.ones(3, requires_grad=True)

    def work() -> None:
        for _ in range(rounds):
            (w * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(6)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            joined(thread)
    finally:
        sys.setswitchinterval(before)
    assert w.grad.tolist() == [6 * rounds * 2.0] * 3


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> Any:
            return eval, ("__import__('builtins').open('/nowhere')",)

    ours.save({"x": Runs()}, tmp_path / "x.pt")
    with pytest.raises(errors.FileError, match="Weights only load failed"):
        ours.load(tmp_path / "x.pt")
    for code in (
        b"\x80\x02ctorch\nfloat32\nN}X\x04\x00\x00\x00nameK\x01s\x86b.",  # changes what others use
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nN}X\x04\x00\x00\x00makeK\x01s\x86b.",
        b"\x80\x02cos\nsystem\nX\x01\x00\x00\x00a\x85R.",
        b"\x80\x02K\x01Q.",
        b"nonsense",
        b"",
    ):
        with zipfile.ZipFile(tmp_path / "bad.pt", "w") as file:
            file.writestr("a/data.pkl", code)
        with pytest.raises(pickle.UnpicklingError):
            ours.load(tmp_path / "bad.pt")
    assert str(ours.float32) == "torch.float32"
    (tmp_path / "none.pt").write_bytes(b"abc")
    with pytest.raises(pickle.UnpicklingError, match="no file of PyTorch's"):
        ours.load(tmp_path / "none.pt")
    with pytest.raises(FileNotFoundError):
        ours.load(tmp_path / "missing.pt")


def test_damaged_files_raise_one_type_of_error(tmp_path: Path) -> None:
    file = io.BytesIO()
    x = ours.arange(6.0).reshape(2, 3)
    ours.save({"a": x, "b": [x[0], 3, "s", 2.5, None], "c": (ours.ones(2, dtype=ours.int8), x.shape)}, file)
    whole = file.getvalue()
    damaged = [whole[:n] for n in range(0, len(whole), 5)]
    chosen = np.random.default_rng(0)
    for at in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[at] = chosen.integers(256)
        damaged.append(bytes(changed))
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for at in range(0, len(parts["archive/data.pkl"]), 2):
        changed = bytearray(parts["archive/data.pkl"])
        changed[at] = chosen.integers(256)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, bytes(changed) if name.endswith(".pkl") else content)
        damaged.append(file.getvalue())
    for code in (
        b"\x80\x02Nr\xff\xff\xff\x7f.",  # a place that takes more memory than there is
        b"\x80\x02c__builtin__\nbytearray\n\x8a\x05\xff\xff\xff\xff\x7f\x85R.",
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a/data.pkl", code)
        damaged.append(file.getvalue())
    seen = 0
    with Each() as each:
        for number, content in enumerate(damaged):
            with each(number):
                try:
                    ours.load(io.BytesIO(content))
                except pickle.UnpicklingError:
                    seen += 1
                except RuntimeError as error:
                    assert "Attempting to deserialize object on the device" in str(error)  # noqa: PT017
    assert seen > 400

    def moved(storage: Any, location: str) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # which is the caller's own
        ours.load(io.BytesIO(whole), map_location=moved)
    load_file = importlib.import_module("adjoint.torch.safetensors").load_file
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "missing.safetensors")


@pytest.mark.peers
def test_bfloat16_of_a_file_is_float32() -> None:
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save({"w": torch.tensor([1.5, -2.0, 3e38], dtype=torch.bfloat16), "kind": torch.bfloat16}, file)
    found = ours.load(io.BytesIO(file.getvalue()))
    assert found["w"].tolist() == torch.tensor([1.5, -2.0, 3e38], dtype=torch.bfloat16).tolist()
    assert found["w"].dtype is ours.float32
    assert found["kind"] is ours.bfloat16


# --- programs of PyTorch ------------------------------------------------------------------------------------


def test_a_script_runs_with_the_face_as_its_torch(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys
import torch
import torch.autograd.forward_ad as fwAD
from torch.func import vmap
from torch.utils.checkpoint import checkpoint
import adjoint as ad
import adjoint.torch

assert adjoint.torch is torch is sys.modules["torch"], torch
assert sys.argv[1:] == ["a", "--b"], sys.argv
assert __name__ == "__main__"
x = torch.ones(2, requires_grad=True)
checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
assert isinstance(x, torch.Tensor)
assert ad.grad(lambda v: v * v)(2.0) == 4.0
try:
    ad.Torch()
except ad.errors.DeviceError as error:
    assert "torch is adjoint.torch in this program" in str(error)
try:
    import torch.export
except ModuleNotFoundError:
    print("done")
"""
    )
    command = [sys.executable, "-m", "adjoint.torch", str(script), "a", "--b"]
    done = processes.run(command, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    text = "import torch, sys; print(torch.__name__, sys.argv[1:], __name__)"
    given = processes.run([sys.executable, "-m", "adjoint.torch", "-c", text, "a"], check=False)
    assert given.stdout == "adjoint.torch ['a'] __main__\n", given.stderr
    nothing = processes.run([sys.executable, "-m", "adjoint.torch"], check=False)
    assert nothing.returncode == 2
    assert "usage" in nothing.stdout
    missing = processes.run([sys.executable, "-m", "adjoint.torch", "no.py"], check=False)
    assert (missing.returncode, missing.stderr) == (2, "python -m adjoint.torch: there is no file 'no.py'\n")


@pytest.mark.peers
@pytest.mark.parametrize("name", ["t_", "squeeze_", "unsqueeze_"])
def test_a_leaf_of_another_shape_is_lost_to_graphs_that_saved_it(name: str) -> None:
    for t in (ours, pytest.importorskip("torch")):
        w = t.ones(1, 3, requires_grad=True)
        y = (w * w).sum()
        with t.no_grad():
            getattr(w, name)(*([0] if name == "unsqueeze_" else []))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_gradients_of_dual_numbers_are_refused_where_they_would_be_wrong() -> None:
    import adjoint.torch.autograd.forward_ad as forward_ad

    x = ours.tensor([0.3, 0.7], dtype=ours.float64, requires_grad=True)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, x * 2)
        with pytest.raises(NotImplementedError, match=r"tangent that make_dual got .*Pass tangent\.detach\(\)"):
            ours.autograd.grad(d.sin().sum(), d)
    with forward_ad.dual_level():
        y = x * x
        y.register_hook(lambda g: g * 2)
        d = forward_ad.make_dual(y, ours.ones(2, dtype=ours.float64))
        with pytest.raises(NotImplementedError, match=r"have hooks, .* write torch\.func\.jvp"):
            ours.autograd.grad(d.sin().sum(), d)


@pytest.mark.parametrize("name", ["t_", "unsqueeze_", "data", "set_"])
def test_a_leaf_of_another_shape_has_no_gradient_from_older_graphs(name: str) -> None:
    w = ours.ones(3, 3, requires_grad=True)
    b = ours.ones(3, requires_grad=True)
    y = (w + b).sum()
    with ours.no_grad():
        if name == "data":
            w.data = ours.ones(5)
        elif name == "set_":
            w.set_(ours.ones(5))
        else:
            getattr(w, name)(*([0] if name == "unsqueeze_" else []))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        ours.autograd.grad(y, w, retain_graph=True, allow_unused=True)
    assert w.grad is None
    assert ours.autograd.grad(y, b)[0].tolist() == [3.0, 3.0, 3.0]  # the other one has its own
    (w * 2).sum().backward()
    assert w.grad.shape == w.shape
    assert w.grad.unique().tolist() == [2.0]


def test_a_result_of_another_shape_is_no_place_for_gradients() -> None:
    x = ours.ones(3, requires_grad=True) * 1
    x.data = ours.ones(5)
    with pytest.raises(RuntimeError, match=r"invalid gradient.*got \[5\] but expected shape compatible with \[3\]"):
        (x * 2).sum().backward()


def test_hooks_of_a_leaf_stay_where_it_gets_another_shape() -> None:
    w = ours.ones(3, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(tuple(g.shape)))
    with ours.no_grad():
        w.unsqueeze_(0)
    (w * 2).sum().backward()
    assert seen == [(1, 3)]


@pytest.mark.peers
@pytest.mark.parametrize("name", ["mul_", "div_", "pow_"])
def test_what_was_read_without_history_is_overwritten_by_the_product(name: str) -> None:
    for t in (ours, pytest.importorskip("torch")):
        q = t.tensor([2.0, 3.0, 4.0], requires_grad=True) * 1
        part = q[1:]
        getattr(part, name)(q[0].detach())  # a view that nobody had looked at
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            q.sum().backward()


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # PyTorch's, of itself
@pytest.mark.parametrize("write", [lambda t: t.mul_(3), lambda t: t.add_(1) * 3, lambda t: (t[:1].zero_(), t * 3)[1]])
def test_a_jvp_that_writes_to_its_tangent_is_refused_in_transforms(write: Any) -> None:
    for t in (ours, pytest.importorskip("torch")):

        class Triple(t.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(x: Any) -> Any:
                return x * 3

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

            @staticmethod
            def jvp(ctx: Any, tangent: Any) -> Any:
                return write(tangent)

        x = t.ones(2)
        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            t.func.jvp(Triple.apply, (x,), (x,))
        with t.autograd.forward_ad.dual_level():  # the tangent is one's own there
            Triple.apply(t.autograd.forward_ad.make_dual(x, x.clone()))
