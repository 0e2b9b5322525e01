"""What a model does, layer by layer: shapes, parameters, operations and bytes of one run."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from adjoint import tree as trees
from adjoint.decorators.observed import Profiled
from adjoint.devices import default_device, use_device
from adjoint.functions.arguments import is_array, is_integer, is_numeric
from adjoint.functions.creation import asarray, zeros
from adjoint.module.fields import Fields, Leaf, each_module, joined, leaves_of, mapped_once, once_each, opened, rebuilt
from adjoint.random_keys import seeded
from adjoint.tensor import Tensor


class Row(NamedTuple):
    """A module: its path and class, the shapes of its results, and what is in it and its parts.

    `parameters` is how many numbers they have, `trained` those that are not frozen, `operations` an estimate of the
    floating-point operations of the run, `bytes` those of all arrays that went in and out of its primitives. Parts may
    be used without being `called`.
    """

    path: str
    layer: str
    called: bool
    shapes: tuple[tuple[int, ...], ...]
    parameters: int
    trained: int
    operations: int
    bytes: int


class Summary:
    """What `Module.summary` found: `rows`, one for each module, of which the first is the whole model.

    `str()` of it is a table, and notebooks show one. What is in a part counts in the whole as well.
    """

    def __init__(self, rows: Sequence[Row], size: int) -> None:
        self.rows: list[Row] = list(rows)
        self.size: int = size

    @property
    def trained(self) -> int:
        """How many numbers of the whole model are trained."""
        return self.rows[0].trained

    def __str__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join([name.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip() for name, *others in table
        ]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([*lines, self._foot()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = []
        for tag, (name, *others) in zip(["th", *["td"] * len(self.rows)], self._table(), strict=True):
            cells = [
                f'<{tag} style="text-align:left;white-space:pre;padding:2px 12px 2px 0">{html.escape(name)}</{tag}>'
            ]
            cells += [
                f'<{tag} style="text-align:right;padding:2px 0 2px 12px">{html.escape(text)}</{tag}>' for text in others
            ]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table>{''.join(lines)}</table><div>{html.escape(self._foot())}</div>"

    def _table(self) -> list[tuple[str, ...]]:
        """The texts of all lines; a module stands below the one that it is in, by its path there."""
        some = self.trained < self.rows[0].parameters  # else that column would be the same again
        lines: list[tuple[str, ...]] = [
            ("layer", "results", "parameters", *(["trained"] if some else []), "operations", "bytes")
        ]
        within: list[str] = []  # the paths of the modules around
        for row in self.rows:
            while within and not (row.path.startswith(f"{within[-1]}.") or not within[-1]):
                within.pop()
            name = row.path[len(within[-1]) :].lstrip(".") + ": " if within else ""
            name = "  " * len(within) + name + row.layer
            within.append(row.path)
            shapes = ", ".join(map(str, row.shapes)) if row.called else "not called"
            spent = (f"{row.operations:,}", _bytes(row.bytes)) if row.called else ("", "")
            lines.append((name, shapes, f"{row.parameters:,}", *([f"{row.trained:,}"] if some else []), *spent))
        return lines

    def _foot(self) -> str:
        return f"{self.rows[0].parameters:,} parameters, {self.trained:,} of them trained, {_bytes(self.size)}"


def _bytes(size: int) -> str:
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= one:
            return f"{size / one:.1f} {unit}"
    return f"{size} B"


# --- the run -------------------------------------------------------------------------------------


class _Found:
    """What is known so far of a module."""

    def __init__(self, layer: str, parameters: list[Leaf]) -> None:
        self.layer, self.parameters = layer, _numbers(parameters)
        self.trained = _numbers([leaf for leaf in parameters if leaf.kind == "parameter"])
        self.shapes: tuple[tuple[int, ...], ...] = ()
        self.operations = self.bytes = 0
        self.called = self.running = False


def summary_of(model: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Summary:
    """The summary of model(*args, **kwargs); a tuple of sizes in the place of one argument is zeros of that shape."""
    everything = _parameters(leaves_of(model))  # a part does not know what is frozen around it
    parameters = once_each(everything)
    tensors = [leaf.value for leaf in (*parameters, *leaves_of(model)) if isinstance(leaf.value, Tensor)]
    place: Profiled[Any] = Profiled(tensors[0].device if tensors else default_device())
    known = {path: once_each([x for x in everything if _is_in(x.path, path)]) for path in _paths(model)}
    found: dict[str, _Found] = {}

    def watched(part: Any, children: list[Any], path: str) -> Any:
        found[path] = _Found(type(part).__name__, known[path])
        return rebuilt(_watched(type(part), found[path], place), children, part._frozen, part._training)

    def moved(x: Any) -> Any:
        if isinstance(x, Tensor):
            return x.detach().to_device(place)
        return asarray(x, device=place) if is_numeric(x) else x

    if len(args) == 1 and isinstance(args[0], tuple) and args[0] and all(map(is_integer, args[0])):
        args = [zeros(args[0], dtype=parameters[0].value.dtype if parameters else None)]
    with use_device(place), seeded(0):
        given = trees.map(moved, (tuple(args), kwargs))
        there = mapped_once(model, lambda leaf: moved(leaf.value) if isinstance(leaf.value, Tensor) else leaf.value)
        each_module(there, watched)(*given[0], **given[1])
    size = sum(leaf.value.size * leaf.value.dtype.itemsize for leaf in parameters)
    return Summary([_row(path, found[path]) for path in known], size)


def _parameters(leaves: Sequence[Leaf]) -> list[Leaf]:
    return [leaf for leaf in leaves if leaf.kind in ("parameter", "frozen")]


def _is_in(path: str, module: str) -> bool:
    return not module or path.startswith(f"{module}.")


def _numbers(leaves: Sequence[Leaf]) -> int:
    return sum(leaf.value.size for leaf in leaves)


def _row(path: str, x: _Found) -> Row:
    return Row(path, x.layer, x.called, x.shapes, x.parameters, x.trained, x.operations, x.bytes)


def _paths(tree: Any, prefix: str = "") -> Iterator[str]:
    """The paths of all modules, each before its parts."""
    if isinstance(tree, Fields):
        yield prefix
    children, names, _ = opened(tree)
    for name, child in zip(names, children, strict=True):
        yield from _paths(child, joined(prefix, name))


def _watched(cls: type, mine: _Found, place: Profiled[Any]) -> type:
    """A class of the same modules, which are one place in the model: its calls say what they took.

    So what is made of such a module, by a transform or otherwise, is at that place too.
    """
    methods = {name: _counting(getattr(cls, name), mine, place) for name in ("__call__", "apply") if hasattr(cls, name)}
    return type(cls)(cls.__name__, (cls,), {"__doc__": cls.__doc__, **methods})


def _counting(f: Callable[..., Any], mine: _Found, place: Profiled[Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        if mine.running:  # `apply` that calls, or a class's method that calls its base's
            return f(*args, **kwargs)
        before, mine.running = _counted(place), True
        try:
            out = f(*args, **kwargs)
        finally:
            mine.running = False
        after = _counted(place)
        mine.called, mine.shapes = True, tuple(tuple(x.shape) for x in trees.flatten(out)[0] if is_array(x))
        mine.operations += after[0] - before[0]
        mine.bytes += after[1] - before[1]
        return out

    return run


def _counted(place: Profiled[Any]) -> tuple[int, int]:
    """The operations and bytes so far."""
    rows = place.profile().rows
    return sum(row.flops for row in rows), sum(row.bytes for row in rows)
