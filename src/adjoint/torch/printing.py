"""Tensors as text, as PyTorch prints them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.backend import Decorator
from adjoint.decorators.batched import Batched
from adjoint.tensor import wrap
from adjoint.torch import overriding
from adjoint.torch.autograd.forward_ad import unpack_dual
from adjoint.torch.dtypes import default_complex, default_float
from adjoint.torch.lifted import inner_of, to_face, wrap_of
from adjoint.torch.tensor import Tensor, adopt, is_lifted, looked

_DEFAULTS: dict[str, Any] = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_PROFILES: dict[str, dict[str, Any]] = {"short": {"precision": 2, "edgeitems": 2}, "full": {"threshold": math.inf}}
_options: dict[str, Any] = dict(_DEFAULTS)


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Say how tensors are printed from now on."""
    if profile is not None:
        _options.update(_DEFAULTS)
        _options.update(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


class _Formatter:
    """How the numbers of one tensor are written: all with the same width."""

    def __init__(self, array: Any) -> None:
        flat = array.ravel()
        self.floating = array.dtype.kind == "f"
        self.integral = True
        self.scientific = False
        self.width = 1
        if not self.floating:
            self.width = max([len(str(v)) for v in flat.tolist()], default=1)
            return
        flat = flat.astype(np.float64)
        usual = flat[np.isfinite(flat) & (flat != 0)]  # what widths are reckoned from
        if not usual.size:
            return
        sizes = np.abs(usual)
        largest, smallest = sizes.max(), sizes.min()
        self.integral = bool((sizes == np.ceil(sizes)).all())
        self.scientific = bool(largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4)
        if _options["sci_mode"] is not None:
            self.scientific = _options["sci_mode"]
        self.width = max([1, *[len(self.number(v)) for v in usual.tolist()]])

    def number(self, value: Any) -> str:
        if not self.floating:
            return str(value)
        precision = _options["precision"]
        if self.scientific:
            return f"{value:.{precision}e}"
        if self.integral:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{precision}f}"

    def __call__(self, value: Any) -> str:
        return self.number(value).rjust(self.width)


def _complex_text(parts: Any) -> Any:
    real, imag = parts

    def text(value: complex) -> str:
        second = imag.number(value.imag).strip()
        sign = "" if second[0] == "-" else "+"
        return f"{real(value.real)}{sign}{second}j".rjust(real.width + imag.width + 1)

    return text


def _line(array: Any, indent: int, text: Any, width: int, cut: bool) -> str:
    per_line = max(1, (_options["linewidth"] - indent) // (width + 2))
    edge = _options["edgeitems"]
    items = array.tolist()
    if cut and len(items) > 2 * edge:
        shown = [text(v) for v in items[:edge]] + [" ..."] + [text(v) for v in items[-edge:]]
    else:
        shown = [text(v) for v in items]
    lines = [shown[i : i + per_line] for i in range(0, len(shown), per_line)]
    return "[" + ("," + "\n" + " " * (indent + 1)).join([", ".join(line) for line in lines]) + "]"


def _block(array: Any, indent: int, text: Any, width: int, cut: bool) -> Any:
    if array.ndim == 0:
        return text(array.item())
    if array.ndim == 1:
        return _line(array, indent, text, width, cut)
    edge = _options["edgeitems"]
    if cut and len(array) > 2 * edge:
        rows = [_block(array[i], indent + 1, text, width, cut) for i in range(edge)]
        rows.append("...")
        rows += [_block(array[i], indent + 1, text, width, cut) for i in range(len(array) - edge, len(array))]
    else:
        rows = [_block(row, indent + 1, text, width, cut) for row in array]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _edges(array: Any) -> Any:
    """What is shown of an array that is cut."""
    edge = _options["edgeitems"]
    for axis, n in enumerate(array.shape):
        if n > 2 * edge:
            array = np.take(array, [*range(edge), *range(n - edge, n)], axis)
    return array


def _values_text(array: Any, indent: int) -> Any:
    cut = array.size > _options["threshold"]
    shown = _edges(array) if cut else array
    if array.dtype.kind == "c":
        parts = _Formatter(shown.real), _Formatter(shown.imag)
        text, width = _complex_text(parts), parts[0].width + parts[1].width + 1
    else:
        text = _Formatter(shown)
        width = text.width
    return _block(array, indent, text, width, cut)


def text(x: Tensor, name: str | None = None) -> str:
    """What `print(x)` shows, with the name of its class where that has one of its own."""
    if is_lifted(x):
        primal, tangent = unpack_dual(x)
        if primal is x:
            return _of_levels(inner_of(x))
        return text(primal) if tangent is None else _with_suffixes(text(primal)[:-1], [f"tangent={text(tangent)}"])
    array = np.asarray(looked(x))
    name = type(x).__name__ if overriding.overrides(type(x)) else name or "tensor"
    prefix = f"{name}("
    indent = len(prefix)
    suffixes = []
    if not x.is_cpu:
        suffixes.append(f"device='{x.device}'")
    usual = (default_float(), default_complex(), np.dtype("int64"), np.dtype(bool))
    if array.size == 0:
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        if array.dtype != default_float():
            suffixes.append(f"dtype={x.dtype}")
        body = "[]"
    else:
        if array.dtype not in usual:
            suffixes.append(f"dtype={x.dtype}")
        body = _values_text(array, indent)
    try:
        made_by = x.grad_fn
        if made_by is not None:
            suffixes.append(f"grad_fn=<{type(made_by).__name__}>")
        elif x.requires_grad:
            suffixes.append("requires_grad=True")
    except RuntimeError:  # a view that may not be used any more
        suffixes.append("grad_fn=<Invalid>")
    return _with_suffixes(prefix + body, suffixes)


def _of_levels(inner: Any) -> str:
    """A tensor inside of function transforms: what each level, the innermost first, keeps a value of."""
    level, array = inner.device, wrap_of(inner)
    below = to_face(wrap(level.unwrap(array), level.inner, None))
    if isinstance(level, Batched) and not array.batched:
        return text(below)
    number, outer = 0, level.inner  # all but the face's own
    while isinstance(outer, Decorator):
        number, outer = number + 1, outer.inner
    name, axis = ("BatchedTensor", "bdim=0, ") if isinstance(level, Batched) else ("GradTrackingTensor", "")
    shown = text(below).replace("\n", "\n    ")
    return f"{name}(lvl={number}, {axis}value=\n    {shown}\n)"


def _with_suffixes(out: str, suffixes: list[str]) -> str:
    """The text of a tensor as far as its values, and what is said of it, on lines of their own where need be."""
    indent = len("tensor(")
    last = len(out) - out.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > _options["linewidth"]:
            out += ",\n" + " " * indent + suffix
            last = indent + len(suffix)
        else:
            out += ", " + suffix
            last += len(suffix) + 2
    return out + ")"


@adopt
class _Printed:
    def __repr__(self: Any) -> str:
        return text(self)
