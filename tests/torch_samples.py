"""PyTorch's own sample inputs, of its tests, given to `adjoint.torch`: what both libraries do with them.

`python tests/torch_samples.py [name ...]` runs all operations, or those named, and lists what is not the same.
`--write` writes the counts to docs/torch.md.
"""

from __future__ import annotations

import itertools
import re
import sys
import types
import unittest
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import adjoint.torch as ours

DTYPES = ("float64", "float32", "complex128", "int64", "bool")
TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float32": 1e-3, "complex64": 1e-3, "float16": 1e-2}

# what they return depends on a generator, on memory that nobody wrote, or on signs and phases that are free
RANDOM = set(
    """
    bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric log_normal multinomial
    new_empty new_empty_strided nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d
    nn.functional.dropout3d nn.functional.feature_alpha_dropout nn.functional.fractional_max_pool2d
    nn.functional.fractional_max_pool3d nn.functional.rrelu normal pca_lowrank rand_like randint randint_like randn
    randn_like svd_lowrank uniform
    """.split()
)
# whose second result, or only one, is places
TIES = {"argsort", "kthvalue", "mode", "msort", "sort", "topk"}
# what is not the same, and why; docs/torch.md says it to users
_OVERLAP = "places that are named twice: the gradient is that of the last, which is what the result has"
KNOWN = {
    "acosh": "the second derivative of acosh_, which is zero in PyTorch",
    "addbmm": "addbmm_ of a tensor that it would have to make larger",
    "as_strided.partial_views": "memory before that of a view which requires a gradient",
    "as_strided_scatter": "the gradient by the first argument, which PyTorch gives to the places that were written",
    "cov": "weights in single precision, whose sums PyTorch rounds to it",
    "istft": "a window that PyTorch's samples view without recording",
    "linalg.norm": "the second derivative of the norm of nothing, which is nan in PyTorch",
    "linalg.norm.subgradients_at_zero": "second derivatives at zero, which are nan in PyTorch",
    "logcumsumexp": "second derivatives in single precision, of which PyTorch rounds terms that add up to zero",
    "nn.functional.batch_norm": "a batch of no examples without axes",
    "nn.functional.ctc_loss": "the gradient by its log-probabilities, which PyTorch has behind log_softmax alone",
    "nn.functional.fractional_max_pool2d": "windows that are given with _random_samples",
    "nn.functional.max_unpool1d": _OVERLAP,
    "nn.functional.max_unpool2d": _OVERLAP,
    "nn.functional.max_unpool3d": _OVERLAP,
    "special.bessel_j0": "PyTorch's errors of 4e-7 near 5",
    "special.bessel_y1": "PyTorch's errors of 8e-7 near 5",
}
# out of the face's scope (NumPy has no bfloat16), and operations of PyTorch's inside that no program calls
OUTSIDE = (
    *("_", "jiterator_", "sparse.", "to_sparse", "torch.", "native_", "max_pool2d_with_indices", "hash_tensor"),
    "bfloat16",
)


class Refused(Exception):
    """What a library raised for a sample."""


def tables() -> None:
    """Make PyTorch's tables importable."""
    try:
        import expecttest  # noqa: F401
    except ModuleNotFoundError:  # its test classes are not needed, only that there is one to derive from
        sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)  # type: ignore[assignment]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_utils
        from torch.testing._internal.opinfo import core
    for module in (common_utils, core):  # looks for a unittest.TestCase above each sample, by the source of all frames
        module.extract_test_fn = lambda: None


def operations() -> dict[str, Any]:
    """PyTorch's descriptions of operations by name and variant."""
    tables()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from torch.testing._internal.common_methods_invocations import op_db

        # importing it freezes flags that programs of other tests set
        torch.backends.disable_global_flags.__globals__["__allow_nonbracketed_mutation_flag"] = True
    return {info.name + ("." * bool(info.variant_test_name)) + info.variant_test_name: info for info in op_db}


def inside(name: str) -> bool:
    """Whether the face means to have an operation."""
    return not name.startswith(OUTSIDE) or name.startswith("__")


def here(name: str, info: Any) -> bool:
    """Whether the face has it."""
    return inside(name) and functions_of(info)[1] is not None


DEVICE = ["cpu"]  # where the face's tensors are


# --- from PyTorch's things to the face's ------------------------------------------------------------------


def translated(value: Any, known: dict[int, Any] | None = None) -> Any:
    """The same value with the face's tensors, types and functions in the place of PyTorch's.

    What is one tensor in several places, which `known` remembers, is one here, too.
    """
    import torch

    known = {} if known is None else known
    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            known[id(value)] = _tensor(value)
        return known[id(value)]
    if value is torch.bfloat16:
        raise NotImplementedError("bfloat16")
    if isinstance(value, torch.dtype):
        return getattr(ours, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return ours.device(DEVICE[0])
    if isinstance(value, (torch.layout, torch.memory_format)):
        return getattr(ours, str(value).removeprefix("torch."), str(value))
    if isinstance(value, torch.Size):
        return ours.Size(value)
    if isinstance(value, (list, tuple)):
        return type(value)([translated(v, known) for v in value])
    if isinstance(value, torch.nn.Module):
        return getattr(ours.nn, type(value).__name__)()
    if isinstance(value, dict):
        return {k: DEVICE[0] if k == "device" else translated(v, known) for k, v in value.items()}
    if isinstance(value, types.FunctionType) and "torch" in value.__globals__:
        return _rebound(value)
    if callable(value) and not isinstance(value, type):
        return _named(value)
    return value


def _tensor(x: Any) -> Any:
    import torch

    if x.layout != torch.strided:
        raise NotImplementedError("sparse")
    found = x.detach().resolve_conj().resolve_neg().numpy()
    if DEVICE[0] == "cpu" and x.numel() < x.untyped_storage().nbytes() // x.element_size() and not x.is_conj():
        memory = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).numpy()  # with what lies around it
        made = ours.from_numpy(memory.copy()).as_strided(x.shape, x.stride(), x.storage_offset())
    else:
        made = ours.from_numpy(np.array(found, order="K")) if 0 not in found.strides else ours.tensor(found.copy())
    return made.to(DEVICE[0]).requires_grad_(x.requires_grad)


def _rebound(function: types.FunctionType) -> Any:
    """A function of PyTorch's tests, with the face under the name torch."""
    if not function.__module__.startswith("torch.testing"):
        return _named(function)
    cells = tuple([types.CellType(translated(c.cell_contents)) for c in function.__closure__ or ()]) or None
    names = {**function.__globals__, "torch": ours}
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _named(function: Any) -> Any:
    name = getattr(function, "__name__", None)
    home = getattr(function, "__module__", None) or ""
    for path in (f"{home}.{name}".removeprefix("torch."), name, f"nn.functional.{name}"):
        found = _at(ours, str(path))
        if found is not None:
            return found
    return function


def _at(root: Any, path: str) -> Any:
    for part in path.split("."):
        try:
            root = getattr(root, part)
        except (AttributeError, NotImplementedError):
            return None
    return root


def functions_of(info: Any) -> tuple[Any, Any]:
    """The operation in PyTorch and in the face; None where the face has none."""
    import torch

    theirs, here = _at(torch, info.name), _at(ours, info.name)
    if (
        theirs is not None
        and isinstance(info.op, types.FunctionType)
        and info.op.__module__.startswith("torch.testing")
    ):
        return info.op, here and _rebound(info.op)
    if theirs is not None:
        return theirs, here
    here = getattr(ours.Tensor, info.name, None)
    if not isinstance(info.op, types.FunctionType) or not info.op.__module__.startswith("torch.testing"):
        return info.op, here
    return info.op, (here or None) and _rebound(info.op)


# --- what a library does with a sample --------------------------------------------------------------------


def leaves(value: Any, tensor: type) -> Iterator[Any]:
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from leaves(v, tensor)
    elif isinstance(value, dict):
        for v in value.values():
            yield from leaves(v, tensor)


def array(x: Any) -> np.ndarray[Any, Any]:
    return np.array(x.detach().resolve_conj().resolve_neg().numpy(force=True))


def _drawn(name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    r = np.random.default_rng(zlib.crc32(f"{name} {shape}".encode()))
    made = r.standard_normal(shape) + (1j * r.standard_normal(shape) if "complex" in dtype else 0)
    return np.asarray(made).astype(dtype)


def _like(t: Any, x: Any, name: str) -> Any:
    return t.from_numpy(_drawn(name, tuple(x.shape), str(x.dtype).removeprefix("torch."))).to(x.device)


def outcome(t: Any, call: Callable[[], Any], inputs: list[Any], processed: Any, second: bool) -> dict[str, Any]:
    """What came out: types, values, gradients, gradients of those."""
    try:
        made = call()
        out = [*leaves(made, t.Tensor)]
    except Exception as error:
        raise Refused(
            f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        ) from error
    found: dict[str, Any] = {
        "types": [str(x.dtype) for x in out],
        "shapes": [tuple(x.shape) for x in out],
        "devices": {str(x.device) for x in out},
        "requires_grad": [bool(x.requires_grad) for x in out],
        "values": [array(x) for x in out] or [np.asarray(made)] if not isinstance(made, (str, type(None))) else [],
    }
    kept = [*leaves(processed(made), t.Tensor)]
    found["processed"] = [array(x) for x in kept]
    tracked = [x for x in inputs if x.requires_grad]
    kept = [x for x in kept if x.requires_grad]
    if not kept or not tracked:
        return found
    try:
        weights = [_like(t, x, f"w{i}").requires_grad_(second) for i, x in enumerate(kept)]
        first = t.autograd.grad(kept, tracked, weights, create_graph=second, allow_unused=True)
    except Exception as error:
        found["first"] = f"{type(error).__name__}: {error}"
        return found
    found["first"] = [None if g is None else array(g) for g in first]
    pairs = [(g, _like(t, g, f"v{i}")) for i, g in enumerate(first) if g is not None and g.requires_grad]
    if second and pairs:
        try:
            again = t.autograd.grad(
                [g for g, _ in pairs], [*tracked, *weights], [v for _, v in pairs], allow_unused=True
            )
        except Exception as error:
            found["second"] = f"{type(error).__name__}: {error}"
            return found
        found["second"] = [None if g is None else array(g) for g in again]
    return found


def different(one: dict[str, Any], other: dict[str, Any], free: bool, ties: bool) -> str | None:
    """What differs, or None; a gradient that is not there is zero. Of ties any place is right."""
    for what in ("types", "shapes", "requires_grad"):
        if one[what] != other[what]:
            return f"{what}: PyTorch {one[what]}, here {other[what]}"
    for what in () if free else ("processed", "first", "second"):
        a, b = one.get(what), other.get(what)
        if isinstance(a, str):
            continue  # PyTorch has no such derivative
        if isinstance(b, str):
            return f"{what}: {b}"
        count = len(a or b or ())
        for i, (x, y) in enumerate(zip(a or [None] * count, b or [None] * count, strict=True)):
            shape = next((g.shape for g in (x, y) if g is not None), ())
            x, y = (np.zeros(shape) if g is None else g for g in (x, y))
            if ties and (i == 1 or count == 1):
                continue
            if x.shape != y.shape or not close(x, y):
                return f"{what} {i}: PyTorch {_short(x)}, here {_short(y)}"
    return None


def close(x: Any, y: Any) -> bool:
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    rtol = TOLERANCE[x.dtype.name]
    if x.dtype.kind == "c":  # which part of an infinity is a nan is free
        finite = np.isfinite(x) & np.isfinite(y)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return False
        x, y = x[finite], y[finite]
    size = np.max(np.abs(x[np.isfinite(x)]), initial=1.0)
    return bool(np.allclose(x, y, rtol=rtol, atol=rtol * size, equal_nan=True))


def _short(x: Any) -> str:
    return " ".join(np.array2string(x, threshold=12, precision=6).split())[:300]


def variants(name: str, info: Any) -> dict[str, tuple[Any, Any]]:
    """The function, and its method and its in-place method where PyTorch has them."""
    import torch

    found = {"function": functions_of(info)}
    if info.method_variant is not None and _at(torch, info.name) is not None:
        method = getattr(info.method_variant, "__name__", info.name)
        if hasattr(torch.Tensor, method):
            found["method"] = getattr(torch.Tensor, method), getattr(ours.Tensor, method, None)
    if info.inplace_variant is not None:
        method = getattr(info.inplace_variant, "__name__", info.name + "_")
        if hasattr(torch.Tensor, method):
            found["in place"] = getattr(torch.Tensor, method), getattr(ours.Tensor, method, None)
    return found


def _runs(function: Any, sample: Any, in_place: bool, wrapper: Any) -> Callable[[], Any]:
    """The call; what is of symmetric or triangular matrices is so of all, which leaves no gradient free."""

    def call() -> Any:
        if in_place:
            return function(sample.input.clone(), *sample.args, **sample.kwargs)
        return wrapper(function, sample.input, *sample.args, **sample.kwargs)

    return call


class Sample:
    def __init__(self, input: Any, args: Any, kwargs: Any, processed: Any) -> None:
        self.input, self.args, self.kwargs, self.processed = input, args, kwargs, processed


def samples(info: Any, dtype: str, limit: int | None) -> Iterator[tuple[Sample, Sample]]:
    """Samples for PyTorch and, translated, for the face."""
    import torch

    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    found = info.sample_inputs("cpu", kind, requires_grad=dtype in DTYPES[:3] and info.supports_autograd)
    if limit is not None:  # spread, as neighbours are much alike
        found = [*itertools.islice(found, 40)]
        found = [found[i] for i in sorted({round((k + 0.9) * (len(found) - 1) / limit) for k in range(limit)})]
    for sample in found:
        processed = sample.output_process_fn_grad
        theirs = Sample(sample.input, sample.args, sample.kwargs, processed)
        try:
            here = Sample(*translated([sample.input, sample.args, sample.kwargs]), translated(processed))
        except (NotImplementedError, AttributeError):
            continue
        yield theirs, here


def compared(name: str, info: Any, limit: int | None = None, dtypes: tuple[str, ...] = DTYPES) -> tuple[int, list[str]]:
    """How many samples were run, and what is not the same."""
    import torch

    count, wrong = 0, []
    found = {variant: pair for variant, pair in variants(name, info).items() if pair[0] is not None}
    missing = [variant for variant, (_, here) in found.items() if here is None]
    for dtype in dtypes:
        if not info.supports_dtype(getattr(torch, dtype), "cpu"):
            continue
        for i, (one, other) in enumerate(samples(info, dtype, limit)):
            for variant, (theirs, here) in found.items():
                if here is None:
                    continue
                in_place = variant == "in place"
                if in_place and not isinstance(one.input, torch.Tensor):
                    continue
                if limit and variant != "function" and i % 3:
                    continue
                small = (
                    info.supports_gradgrad
                    and sum(x.numel() for x in leaves((one.input, one.args, one.kwargs), torch.Tensor)) <= 200
                )
                count += 1
                try:
                    expected = outcome(
                        torch,
                        _runs(theirs, one, in_place, info.gradcheck_wrapper),
                        [*leaves((one.input, one.args, one.kwargs), torch.Tensor)],
                        one.processed,
                        small,
                    )
                except Refused as error:
                    expected = str(error)
                try:
                    got = outcome(
                        ours,
                        _runs(here, other, in_place, _rebound(info.gradcheck_wrapper)),
                        [*leaves((other.input, other.args, other.kwargs), ours.Tensor)],
                        other.processed,
                        small,
                    )
                except Refused as error:
                    got = str(error)
                if isinstance(got, str) or isinstance(expected, str):
                    if isinstance(expected, str):
                        continue  # what PyTorch refuses in its own samples is a limit of its kernels
                    differs = f"raises {got}"
                else:
                    free = info.name in RANDOM or bool(one.kwargs.get("dropout_p"))
                    differs = different(expected, got, free, info.name in TIES and dtype in ("int64", "bool"))
                    if differs is None and not got["devices"] <= set(DEVICE):
                        differs = f"results are on {got['devices']}"
                if differs is not None:
                    wrong.append(f"{name} {variant} {dtype} sample {i} ({_call(other)}): {differs}")
    return count, [f"{name}: no {variant}" for variant in missing] + wrong


def _call(sample: Sample) -> str:
    def text(v: Any) -> str:
        if isinstance(v, ours.Tensor):
            return f"{str(v.dtype)[6:]}{list(v.shape)}"
        if isinstance(v, (list, tuple)):
            return f"[{', '.join([text(x) for x in v])}]"
        return repr(v)

    return ", ".join(
        [text(sample.input), *[text(a) for a in sample.args], *[f"{k}={text(v)}" for k, v in sample.kwargs.items()]]
    )[:200]


def count() -> tuple[int, int, int, list[str]]:
    """All operations on all samples: how many there are, are not missing, agree on all; and all that differs."""
    total = there = same = 0
    found = []
    for name, info in operations().items():
        if not inside(name) or (names and not {name, info.name} & names):
            continue
        _, wrong = compared(name, info)
        total += 1
        there += f"{name}: no function" not in wrong
        same += not wrong
        found += wrong
        if wrong:
            print(
                f"{name}: {len(wrong)} differ, {KNOWN.get(name, '')}",
                *wrong[: 50 if names else 3],
                sep="\n    ",
                flush=True,
            )
    return total, there, same, found


# --- what PyTorch refuses ---------------------------------------------------------------------------------


def refused(name: str, info: Any) -> tuple[int, int, int, list[str]]:
    """Inputs that PyTorch refuses: how many there are, get the same type of error, and its key phrase; what differs."""
    count = same_type = same = 0
    differs = []
    for wrong in info.error_inputs("cpu"):
        sample = wrong.sample_input
        try:
            args, more, options = translated([sample.input, sample.args, sample.kwargs])
        except (NotImplementedError, AttributeError, TypeError, ValueError):  # what no tensor here can be
            continue
        count += 1
        try:
            functions_of(info)[1](args, *more, **options)
            error: Exception | None = None
        except Exception as raised:
            error = raised
        right = isinstance(error, wrong.error_type)
        same_type += right
        if right and re.search(wrong.error_regex, str(error)):
            same += 1
        else:
            said = "nothing" if error is None else f"{type(error).__name__}: {error}"
            differs.append(f"{name}: {said[:120]}, PyTorch {wrong.error_type.__name__}: {wrong.error_regex[:120]}")
    return count, same_type, same, differs


def all_refused() -> tuple[int, int, int, list[str]]:
    """The same of all operations."""
    total = same_type = same = 0
    differs: list[str] = []
    for name, info in operations().items():
        if here(name, info) and info.error_inputs_func is not None:
            found = refused(name, info)
            total, same_type, same = total + found[0], same_type + found[1], same + found[2]
            differs += found[3]
    return total, same_type, same, differs


if __name__ == "__main__":
    from pathlib import Path

    names = {name for name in sys.argv[1:] if not name.startswith("--")}
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    total, there, same, found = count()
    line = f"{same} of the {there} operations that are here, of {total} in scope"
    print(line)
    if "--write" in sys.argv:
        page = Path(__file__).parent.parent / "docs" / "torch.md"
        new = re.sub(r"\d+ of the \d+ operations that\s+are here, of \d+ in scope", line, page.read_text())
        line = "Of {} inputs that these tests expect to be refused {} raise the same type of error here, {} with its"
        new = re.sub(line.replace("{}", r"\d+").replace(" ", r"\s+"), line.format(*all_refused()[:3]), new)
        page.write_text(new)
