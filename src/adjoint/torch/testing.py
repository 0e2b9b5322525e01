"""`torch.testing`: `assert_close`, and tensors of chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjoint.torch.dtypes import DTYPES
from adjoint.torch.missing import missing as _missing
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.tensor import Tensor, looked

_TOLERANCES = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}  # relative, absolute
_TOLERANCES |= {"complex64": _TOLERANCES["float32"], "complex128": _TOLERANCES["float64"]}


class _DifferentError(AssertionError):
    """What is different, and in which item."""

    def __init__(self, text: str, place: str = "") -> None:
        super().__init__(f"{text}\n\nThe failure occurred for item {place}" if place else text)
        self.text, self.place = text, place


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: Any = None,
) -> None:  # fmt: skip
    """Raises AssertionError where tensors, arrays, numbers, or sequences and mappings of them are not nearly equal.

    The tolerances are those of the less exact type where none are given.

    >>> import adjoint.torch as torch
    >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(3))
    Traceback (most recent call last):
    AssertionError: The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([3]).
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'atol' if atol is None else 'rtol'}."
        )
    checked = {"dtype": check_dtype, "device": check_device, "layout": check_layout, "stride": check_stride}
    options = {"tolerances": (rtol, atol), "equal_nan": equal_nan, "exact": not allow_subclasses}
    try:
        _compare(actual, expected, "", checked, options)
    except _DifferentError as found:
        text = str(found)
        raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg) from None


def _compare(a: Any, b: Any, place: str, checked: dict[str, bool], options: dict[str, Any]) -> None:
    """Raises _DifferentError, or TypeError for what cannot be compared."""
    if isinstance(b, Mapping) and isinstance(a, Mapping):
        gone, more = [key for key in b if key not in a], [key for key in a if key not in b]
        if gone or more:
            lines = ["The keys of the mappings do not match:"]
            lines += [f"Missing keys in the actual mapping: {sorted(gone)}"] if gone else []
            lines += [f"Additional keys in the actual mapping: {sorted(more)}"] if more else []
            raise _DifferentError("\n".join(lines), place)
        for key in a:
            _compare(a[key], b[key], f"{place}[{key!r}]", checked, options)
    elif isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
        if len(a) != len(b):
            raise _DifferentError(f"The length of the sequences mismatch: {len(a)} != {len(b)}", place)
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            _compare(x, y, f"{place}[{i}]", checked, options)
    elif a is None or b is None:
        if a is not b:
            raise _DifferentError(f"None mismatch: {a} is not {b}", place)
    elif isinstance(a, bool) and isinstance(b, bool):
        if a is not b:
            raise _DifferentError(f"Booleans mismatch: {a} is not {b}", place)
    elif (isinstance(a, Tensor) and isinstance(b, Tensor)) or (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        if options["exact"] and type(a) is not type(b):
            raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.")
        x, y = (v if isinstance(v, Tensor) else FUNCTIONS["as_tensor"](v) for v in (a, b))
        _compare_tensors(x, y, place, checked, options)
    elif isinstance(a, (int, float, complex)) and isinstance(b, (int, float, complex)):
        types = ["int64" if isinstance(v, int) else "float64" if isinstance(v, float) else "complex128" for v in (a, b)]
        values = [np.asarray(v, t) for v, t in zip((a, b), types, strict=True)]
        _compare_values(values[0], values[1], _tolerances(options["tolerances"], types), place, options["equal_nan"])
    else:
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.")


def _compare_tensors(x: Any, y: Any, place: str, checked: dict[str, bool], options: dict[str, Any]) -> None:
    def told(name: str, one: Any, other: Any) -> _DifferentError:
        return _DifferentError(f"The values for attribute '{name}' do not match: {one} != {other}.", place)

    if x.shape != y.shape:
        raise told("shape", x.shape, y.shape)
    for name in ("layout", "device", "dtype"):
        if checked[name] and getattr(x, name) != getattr(y, name):
            raise told(name, getattr(x, name), getattr(y, name))
    if checked["stride"] and x.stride() != y.stride():
        raise told("stride()", x.stride(), y.stride())
    names = [str(v.dtype).removeprefix("torch.") for v in (x, y)]
    values = [np.asarray(looked(v.detach().cpu())) for v in (x, y)]
    _compare_values(values[0], values[1], _tolerances(options["tolerances"], names), place, options["equal_nan"])


def _tolerances(given: Any, types: list[str]) -> Any:
    if given[0] is not None:
        return given
    found = [_TOLERANCES.get(name, (0.0, 0.0)) for name in types]
    return max([t[0] for t in found]), max([t[1] for t in found])


def _compare_values(x: Any, y: Any, tolerances: Any, place: str, equal_nan: bool) -> None:
    rtol, atol = tolerances
    if x.dtype != y.dtype:
        x, y = (v.astype(np.promote_types(x.dtype, y.dtype)) for v in (x, y))
    near = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan) if rtol or atol else x == y
    if equal_nan and not (rtol or atol):
        near = near | ((x != x) & (y != y))
    if np.all(near):
        return
    kind = "equal" if not (rtol or atol) else "close"
    limits = [f" (up to {limit} allowed)" if rtol or atol else "" for limit in (atol, rtol)]
    with np.errstate(all="ignore"):
        whole = x.dtype.kind in "bui"
        wide = [v.astype(np.int64) if whole else v for v in (x, y)]
        apart = np.abs(wide[0] - wide[1])
        apart = np.where(near, np.zeros_like(apart), apart)
        relative = np.where(near, 0.0, apart / np.abs(wide[1])).astype(np.float32 if whole else apart.dtype)
    if not x.ndim:
        relative = abs(x.item() - y.item()) / abs(y.item()) if y.item() else relative
        raise _DifferentError(
            f"Scalars are not {kind}!\n\nExpected {y.item()} but got {x.item()}.\n"
            f"Absolute difference: {abs(x.item() - y.item())}{limits[0]}\n"
            f"Relative difference: {float(relative)}{limits[1]}",
            place,
        )
    lines = [
        f"Tensor-likes are not {kind}!\n",
        f"Mismatched elements: {(~near).sum()} / {near.size} ({(~near).sum() / near.size:.1%})",
    ]
    for word, values, limit in (("absolute", apart, limits[0]), ("relative", relative, limits[1])):
        worst = np.unravel_index(int(np.argmax(values)), values.shape)
        index = tuple([int(i) for i in worst])
        lines.append(f"Greatest {word} difference: {values[worst].item()} at index {index}{limit}")
    raise _DifferentError("\n".join(lines), place)


def make_tensor(
    *shape: Any, dtype: Any, device: Any = None, low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """A tensor of chance between two bounds: by default -9 and 9, for integers up to 10, for bool 0 and 2.

    >>> import adjoint.torch as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.int64, device="cpu", low=0, high=5).shape
    torch.Size([2, 3])
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    whole, boolean = not (dtype.is_floating_point or dtype.is_complex), dtype == DTYPES["bool"]
    first, last = (0, 2) if boolean else (0 if dtype == DTYPES["uint8"] else -9, 10 if whole else 9)
    low, high = first if low is None else low, last if high is None else high
    if low >= high:
        raise ValueError(f"make_tensor: `low` must be less than `high`, but got {low} >= {high}")
    if whole:
        made = FUNCTIONS["randint"](int(low), int(high), size, device=device).to(dtype)
    else:
        parts = [FUNCTIONS["rand"](size, dtype=DTYPES["float64"], device=device) * (high - low) + low for _ in "ri"]
        made = (FUNCTIONS["complex"](*parts) if dtype.is_complex else parts[0]).to(dtype)
    if exclude_zero:
        made[made == 0] = 1
    if noncontiguous and made.numel() > 1:
        made = FUNCTIONS["repeat_interleave"](made, 2, -1)[..., ::2]
    return made.requires_grad_(requires_grad)


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
