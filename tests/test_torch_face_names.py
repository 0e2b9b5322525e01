"""`adjoint.torch`: modules and names of PyTorch, each of which is there or says why it is not."""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import torch_names
from each import Each

import adjoint.torch as ours
from adjoint import errors


def test_modules_of_pytorch_are_imported_or_refused_by_name() -> None:
    with Each() as each:
        for name in torch_names.HERE.split():
            with each(name):
                module = importlib.import_module(f"adjoint.torch.{name}")
                package, _, last = f"adjoint.torch.{name}".rpartition(".")
                assert isinstance(module, types.ModuleType)
                scope: dict[str, Any] = {}
                exec(f"from {package} import {last} as found\nimport {package}.{last}", scope)
                kept = {"gradcheck", "spectral_norm", "weight_norm"}  # functions, in PyTorch too
                assert (scope["found"] is module) != (last in kept)
        for name in torch_names.REFUSED.split():
            with each(name):
                package, _, last = f"adjoint.torch.{name}".rpartition(".")
                with pytest.raises(errors.OutOfScopeError, match=f"no module '{name}': .+") as raised:
                    importlib.import_module(f"adjoint.torch.{name}")
                assert isinstance(raised.value, ModuleNotFoundError)
                if package.endswith("multiprocessing"):  # Python's own have the name
                    continue
                with pytest.raises(ImportError, match="adjoint.torch has no module '.+': .+"):
                    exec(f"from {package} import {last}")
    with pytest.raises(ModuleNotFoundError, match="No module named 'adjoint.torch.no_such_module'"):
        importlib.import_module("adjoint.torch.no_such_module")


@pytest.mark.peers
def test_the_list_of_modules_is_that_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    found = torch_names.modules_of(theirs)
    listed = set(torch_names.HERE.split()) | set(torch_names.REFUSED.split())
    assert found - listed == set()
    assert {name for name in torch_names.HERE.split() if name not in found} <= torch_names.LATER


@pytest.mark.peers
def test_names_of_pytorch_are_there_or_say_why_they_are_not() -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in torch_names.PLACES.split():
            with each(place):
                found = torch_names.missing(theirs, ours, place)
                assert [name for name, text in found if torch_names.unexplained(text)] == []


def test_pytorchs_modules_are_imported_by_a_script_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import importlib
import torch.backends.cudnn as cudnn
from torch.cuda.amp import autocast, GradScaler
from torch.nn.utils import prune, fusion
import torch.nn.functional as F, torch.random, torch.version, torch.signal.windows
cudnn.benchmark = True
assert torch.backends.cudnn.benchmark and torch.nn.utils.prune is prune and torch.__version__ > (2, 1)
for name in {torch_names.HERE.split()!r}:
    module = importlib.import_module("torch." + name)
    assert module.__name__.startswith("adjoint.torch."), module
for name in {torch_names.REFUSED.split()[::4]!r}:
    try:
        importlib.import_module("torch." + name)
    except ModuleNotFoundError as error:
        assert "adjoint.torch has no module" in str(error), error
    else:
        raise AssertionError(name)
with autocast():
    print(torch.nn.utils.weight_norm(torch.nn.Linear(2, 2)))
"""
    )
    done = processes.run([sys.executable, "-m", "adjoint.torch", str(script)], check=False)
    assert done.stdout == "Linear(in_features=2, out_features=2, bias=True)\n", done.stderr


@pytest.mark.peers
@pytest.mark.parametrize("name", torch_names.ALL)
def test_programs_print_what_they_print_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_names.printed(name, ours) == torch_names.printed(name, theirs)


def test_states_of_random_numbers_are_tensors_of_bytes() -> None:
    generator = ours.Generator().manual_seed(5)
    generator.source.integers(0, 5, dtype=np.uint32)  # leaves half a number for later
    state = generator.get_state()
    assert (state.dtype, state.shape) == (ours.uint8, (48,))
    other = ours.Generator().set_state(state.clone())
    assert other.initial_seed() == 5
    for draw in (ours.rand, ours.randn):
        assert draw(4, generator=generator).tolist() == draw(4, generator=other).tolist()
    copy = generator.clone_state()
    assert ours.randperm(9, generator=copy).tolist() == ours.randperm(9, generator=generator).tolist()
    ours.manual_seed(-1)
    assert ours.initial_seed() == 2**64 - 1
    with ours.random.fork_rng():
        first = ours.rand(3)
    assert ours.equal(first, ours.rand(3))
    with pytest.raises(TypeError, match="ByteTensor"):
        generator.set_state(ours.ones(48))
    with pytest.raises(RuntimeError, match="of size 48 but found .* 3"):
        generator.set_state(ours.ones(3, dtype=ours.uint8))


def test_devices_that_are_not_here_say_so() -> None:
    if ours.cuda.is_available():
        pytest.skip("there is a GPU")
    assert ours.cuda.device_count() == ours.cuda.memory_allocated() == ours.cuda.max_memory_reserved() == 0
    assert ours.accelerator.current_accelerator() is None
    assert ours.cuda.get_rng_state_all() == []
    ours.cuda.synchronize(), ours.cuda.empty_cache(), ours.cuda.manual_seed_all(3), ours.mps.empty_cache()
    for call in (ours.cuda.Stream, ours.cuda.Event, ours.cuda.get_device_name, ours.cuda.current_device):
        with pytest.raises(RuntimeError, match="No CUDA GPUs"):
            call()
    assert ours.get_device_module("cpu") is ours.cpu
    assert ours.get_device_module().is_available()


@pytest.mark.peers
def test_layers_of_einops_are_modules_of_the_face() -> None:
    theirs = pytest.importorskip("torch")
    layers = pytest.importorskip("einops.layers.torch")
    here = importlib.import_module("adjoint.torch.einops")

    def seen(t: Any, kinds: Any) -> list[Any]:
        x = t.arange(24.0, dtype=t.float64).reshape(2, 3, 4).requires_grad_()
        mix = kinds.EinMix("b c d -> b d e", weight_shape="c e", bias_shape="e", c=3, e=2).double()
        with t.no_grad():
            for p in mix.parameters():
                p.copy_(t.linspace(-1, 1, p.numel(), dtype=t.float64).reshape(p.shape))
        net = t.nn.Sequential(kinds.Rearrange("b (c1 c) d -> b c d c1", c1=3), kinds.Reduce("b c d e -> b d", "mean"))
        (net(x).pow(2).sum() + mix(x).pow(2).sum()).backward()
        return [str(net), net(x).tolist(), mix(x).tolist(), x.grad.tolist(), [n for n, _ in mix.named_parameters()]]

    wanted, found = seen(theirs, layers), seen(ours, here)
    assert found[0] == wanted[0]
    assert found[4] == wanted[4]
    for a, b in zip(found[1:4], wanted[1:4], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)


def test_programs_may_ask_for_what_is_out_of_scope() -> None:
    with pytest.warns(UserWarning, match=r"torch.jit.script leaves what it is given"):
        assert ours.jit.script(abs) is abs
    assert ours.jit.ignore(abs) is ours.jit.ignore(drop=True)(abs) is ours.jit.unused(abs) is abs
    assert not any([ours.jit.is_scripting(), ours.distributed.is_available(), ours.distributed.is_initialized()])
    assert not isinstance(ours.nn.Linear(1, 1), ours.jit.ScriptModule)
    assert ours.futures.Future[ours.Tensor] is object
    for call in (ours.futures.Future, ours.jit.ScriptModule, ours.distributed.TCPStore):
        with pytest.raises(NotImplementedError, match="has no .*: (there is no|a program is one)"):
            call()
    for call in (ours.jit.trace, ours.distributed.all_reduce, ours.futures.collect_all, ours.distributed.nn.all_gather):
        with pytest.raises(NotImplementedError, match="has no '.*': (there is no|a program is one)"):
            call()
    with pytest.raises(AttributeError, match="has no '_private'"):
        ours.distributed._private
    for module in (ours.distributed, ours.futures, ours.jit, ours.nn.parallel):  # pytest asks modules for such names
        with pytest.raises(AttributeError, match="has no 'setup_module'"):
            module.setup_module
