"""PyTorch's own sample modules and settings of optimizers, of its tests, under both libraries.

`python tests/torch_module_samples.py [name ...]` runs all, or those named, and lists what is not the same.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch_samples import Refused, array, different, leaves, outcome, tables, translated

import adjoint.torch as ours

RANDOM = set(
    """
    AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout FractionalMaxPool2d FractionalMaxPool3d RReLU
    """.split()
)
# what is not the same, and why; docs/torch.md says it to users
KNOWN = {
    "ASGD": "the rate of a step is that of the step, in PyTorch of the one before",
    "CTCLoss": "the gradient by its log-probabilities, which PyTorch has behind log_softmax alone",
    "FractionalMaxPool2d": "windows that are drawn, which PyTorch's samples keep in a buffer",
    "FractionalMaxPool3d": "windows that are drawn, which PyTorch's samples keep in a buffer",
    "Muon": "bfloat16, which PyTorch computes in",
}


def module_infos() -> dict[str, Any]:
    """PyTorch's descriptions of modules by the names of their classes."""
    tables()
    from torch.testing._internal.common_modules import module_db

    return {info.module_cls.__name__: info for info in module_db}


def _module_samples(info: Any, training: bool) -> Iterator[tuple[Any, Any]]:
    import torch

    torch.manual_seed(0)
    found = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
    for sample in found:
        if sample.forward_input is not None:
            yield sample.constructor_input, sample.forward_input


def _built(module: Any, t: Any, name: str) -> Any:
    """The layer in double precision; a NotImplementedError or AttributeError is a module that is not there."""
    args, kwargs = module
    return getattr(t.nn, name)(*args, **kwargs).to(t.float64)


def compare_module(name: str, info: Any, limit: int | None = None) -> tuple[int, list[str]]:
    """How many samples were run, and what is not the same."""
    import torch

    if not hasattr(ours.nn, name):
        return 0, [f"{name}: not there"]
    count, wrong = 0, []
    for training in (True, False):
        for i, (made, given) in enumerate(itertools.islice(_module_samples(info, training), limit)):
            if any([isinstance(value, torch.nn.Module) for value in made.args]):
                continue  # a layer of PyTorch's: tests/torch_layers.py has modules of modules
            count += 1
            try:
                differs = _one_module(torch, name, made, given, training, info.supports_gradgrad)
            except Refused as error:
                differs = str(error)
            if differs is not None:
                wrong.append(
                    f"{name} sample {i} {'training' if training else 'eval'} {made.args} {made.kwargs}: {differs}"
                )
    return count, wrong


def _one_module(torch: Any, name: str, made: Any, given: Any, training: bool, second: bool) -> str | None:
    theirs = _built((made.args, made.kwargs), torch, name).train(training)
    try:
        here = _built((translated(made.args), translated(made.kwargs)), ours, name).train(training)
    except Exception as error:
        raise Refused(f"construction raises {type(error).__name__}: {error}") from error
    args, kwargs = translated([tuple(given.args), given.kwargs])
    if name.startswith("Lazy"):  # the first call makes the state
        theirs(*given.args, **given.kwargs)
        here(*args, **kwargs)
    if list(theirs.state_dict()) != list(here.state_dict()):
        return f"state: PyTorch {list(theirs.state_dict())}, here {list(here.state_dict())}"
    here.load_state_dict(translated(dict(theirs.state_dict())))
    if repr(theirs) != repr(here):
        return f"text: PyTorch {theirs!r}, here {here!r}"
    results = []
    for t, module, a, k in ((torch, theirs, given.args, given.kwargs), (ours, here, args, kwargs)):
        inputs = [*leaves((a, k), t.Tensor), *module.parameters()]
        try:
            results.append(outcome(t, lambda module=module, a=a, k=k: module(*a, **k), inputs, lambda out: out, False))
        except Refused:
            if t is torch:
                return None  # what PyTorch refuses in its own samples is a limit of its kernels
            raise
    differs = different(results[0], results[1], name in RANDOM and training, False)
    if differs is not None:
        return differs
    for key, value in theirs.state_dict().items():
        if not np.allclose(array(value), array(here.state_dict()[key]), rtol=1e-9, atol=1e-12):
            return f"buffer {key} after the call"
    return None


# --- optimizers -----------------------------------------------------------------------------------------


def optimizer_infos() -> dict[str, Any]:
    tables()
    from torch.testing._internal.common_optimizers import optim_db

    return {info.optim_cls.__name__: info for info in optim_db}


def compare_optimizer(name: str, info: Any) -> tuple[int, list[str]]:
    import torch

    if not hasattr(ours.optim, name):
        return 0, [f"{name}: not there"]
    count, wrong = 0, []
    for sample in info.optim_inputs_func(device="cpu"):
        count += 1
        expected = _stepped(torch, name, sample.kwargs)
        try:
            got = _stepped(ours, name, translated(sample.kwargs))
        except Exception as error:
            wrong.append(f"{name} {sample.kwargs}: raises {type(error).__name__}: {error}")
            continue
        if not all([np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(expected, got, strict=True)]):
            wrong.append(f"{name} {sample.kwargs}: {_error(expected, got)}")
    return count, wrong


def _error(one: Any, other: Any) -> float:
    return float(max([np.max(np.abs(a - b)) for a, b in zip(one, other, strict=True)]))


def _stepped(t: Any, name: str, kwargs: Any) -> list[Any]:
    """Parameters after each of six steps on a quartic of two of them."""
    r = np.random.default_rng(0)
    weight, bias = (t.nn.Parameter(t.from_numpy(r.standard_normal(shape))) for shape in ((3, 2), (2,)))
    x = t.from_numpy(r.standard_normal((5, 3)))
    optimizer = getattr(t.optim, name)([weight] if name == "Muon" else [weight, bias], **kwargs)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x @ weight + bias) ** 4).mean()
        loss.backward()
        return loss

    found = []
    for _ in range(6):
        optimizer.step(closure)
        found += [array(weight).copy(), array(bias).copy()]
    return found


if __name__ == "__main__":
    names = [n for n in sys.argv[1:] if not n.startswith("--")]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for infos, compare in ((module_infos(), compare_module), (optimizer_infos(), compare_optimizer)):
        same = 0
        for name, info in infos.items():
            if names and name not in names:
                continue
            _, wrong = compare(name, info)
            same += not wrong
            for line in wrong[:6]:
                print(" ".join(line.split())[:400], flush=True)
        print(f"{same} of {len(infos)}", flush=True)
