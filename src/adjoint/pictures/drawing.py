"""`ad.draw`: a recorded graph, a compiled function, a profile or a report as a page that is one file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from adjoint import errors
from adjoint import tree as trees
from adjoint.compiler.compiled import Lowered
from adjoint.compiler.graph import Graph
from adjoint.decorators import autodiff
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.observed import Profiled
from adjoint.devices import default_device, use_device
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import called, is_numeric
from adjoint.functions.creation import asarray
from adjoint.functions.gradients import as_autodiff, detach, require_grad
from adjoint.graph import locations
from adjoint.graph.nodes import LeafNode, Node
from adjoint.module.fields import Fields
from adjoint.pictures.boxes import Boxes, of_graph, of_node, of_tensor
from adjoint.pictures.folding import folded
from adjoint.tensor import Tensor
from adjoint.testing import GradsReport


class Drawing:
    """What `ad.draw` makes: notebooks show it, `save` writes it as a page, or as a picture where there is one.

    `page` is the whole page as HTML, with its styles and scripts in it: it needs no network. `svg` is the picture of
    what one sees first.
    """

    page: str
    svg: str

    def __init__(self, page: str, svg: str, about: str) -> None:
        self.page, self.svg = page, svg
        self._about = about

    def __repr__(self) -> str:
        return f"<drawing of {self._about}; save('graph.html') writes it>"

    def _repr_html_(self) -> str:
        import html  # used by few, and its table of entities takes a while

        return (  # a page of its own: neither its styles nor its scripts meet the notebook's
            f'<iframe srcdoc="{html.escape(self.page)}" title="picture" '
            'style="width:100%;height:560px;border:1px solid #8884;border-radius:6px"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, or the picture if the name ends in ".svg".

        Raises FileError where the file cannot be written, ArgumentTypeError for what is no path, ArgumentError for
        other kinds of pictures.
        """
        from adjoint import files  # which brings libraries for files

        name = files.as_path(path, "save")
        if name.suffix not in ("", ".html", ".htm", ".svg"):
            raise errors.ArgumentError(
                f"save: the name of a page ends in .html, and that of a picture in .svg, received {name.name!r}; the "
                "page has a button that saves a PNG"
            )
        files.replace(name, (self.svg if name.suffix == ".svg" else self.page).encode())


def draw(what: Any, /, *args: Any, names: Mapping[str, Any] | None = None) -> Drawing:
    """A picture of how a result was computed, and of the gradients that flow through it, to look into.

    The page shows a box for each recorded primitive: its shape, the bytes that it keeps for `backward`, its line of the
    source, its value and its gradient. Colours are the size of gradients, or the bytes. Loops and repeated layers are
    folded; a click opens them. It goes through forward and backward step by step, finds boxes by name, line or shape,
    and exports SVG and PNG. It is one file without anything from the network. Graphviz places the boxes, which
    pygraphviz brings (`pip install 'adjoint[draw]'`).

    Parameters
    ----------
    what
        A tensor of an Autodiff level: the graph that leads to it, which stays. Lines are known of what was computed
        under `ad.testing.source_locations()`, also where a path is cut. Or a function or a module, which is called with
        `args` and gives a tensor: then lines and all values are known. Or what `ad.compile(f).lower(...)` gives, or its
        `recorded`, the graph before passes. Or an `ad.Profiled` backend: its last calls as a flame graph and on a time
        line; or a report of `ad.testing.grads_report`. These two need no Graphviz.
    args
        Arguments of the function: arrays, tensors, modules, or pytrees of them. Floating and complex ones are leaves.
    names
        Names of leaf tensors, as `model.named_parameters()` gives them; those of a function's arguments are known.

    Raises
    ------
    ArgumentTypeError
        `what` is none of these, or the function gives no tensor; `names` is no mapping to tensors.
    GraphError, FreedGraphError
        The tensor depends on no leaf; an earlier `backward` has freed its graph.
    NoAutodiffError
        The tensor's backend computes without gradients.
    MissingLibraryError
        pygraphviz is not installed.

    Examples
    --------
    >>> import adjoint as ad
    >>> x = ad.tensor([1.0, 2.0]).require_grad()
    >>> ad.draw((x * x).sum(), names={"x": x})
    <drawing of 3 boxes; save('graph.html') writes it>
    >>> ad.draw(lambda x: ad.sin(x).sum(), ad.tensor([1.0, 2.0]))
    <drawing of 3 boxes; save('graph.html') writes it>
    """
    if args and not callable(what):
        raise errors.ArgumentTypeError(
            f"draw: arguments are for a function, received {type(what).__name__} before them"
        )
    if isinstance(what, Profiled):
        from adjoint.pictures import times  # which brings libraries for pages

        page, svg, count = times.of_profile(what)
        return Drawing(page, svg, f"{count} calls")
    if isinstance(what, GradsReport):
        from adjoint.pictures import checks  # which brings libraries for pages

        return Drawing(*checks.of_report(what), f"{len(what.comparisons)} comparisons")
    if isinstance(what, Lowered):
        boxes = of_graph(what.graph)
        if what.kernels:
            boxes.notes.append(f"Kernels of machine code: {'; '.join(map(str.strip, what.kernels))}")
            boxes.notes.append(f"Memory of intermediate results: {what.memory:,} bytes")
        return _drawing(boxes, "Compiled function")
    if isinstance(what, Graph):
        return _drawing(of_graph(what), "Compiled function")
    if isinstance(what, Tensor):
        as_autodiff(what, "draw")
        return _drawing(of_tensor(what, _named(names)), "Recorded graph")
    if not callable(what):
        raise errors.ArgumentTypeError(
            "draw: expected a tensor, a function and its arguments, what ad.compile(f).lower(...) gives, an "
            f"ad.Profiled backend, or a report of ad.testing.grads_report; received {errors.shown(what)}"
        )
    with _values_kept():
        root, found = _run(what, args)
    if not isinstance(root, Tensor):
        raise errors.ArgumentTypeError(f"draw: the function gives a tensor, received {errors.shown(root)}")
    as_autodiff(root, "draw")
    return _drawing(of_tensor(root, {**found, **_named(names)}), getattr(what, "__name__", type(what).__name__))


def _drawing(boxes: Boxes, title: str) -> Drawing:
    from adjoint.pictures import pages  # which brings libraries for pages

    page, svg = pages.of_boxes(boxes, folded(boxes.boxes, boxes.inside), title)
    count = len(boxes.boxes)
    return Drawing(page, svg, f"{count} box{'' if count == 1 else 'es'}")


def of_graph_of(node: Node) -> str | None:
    """What notebooks show of a node: the graph that leads to it; None, which means its `repr`, if none can be drawn."""
    try:
        level: Any = node.level if isinstance(node, LeafNode) else node.vjp.level
        return _drawing(of_node(node, level), repr(node))._repr_html_()
    except errors.AdjointError:  # it was freed, or pygraphviz is not there
        return None


def _named(names: Any) -> dict[Any, str]:
    """The names of leaves, by their keys."""
    if names is None:
        return {}
    if not isinstance(names, Mapping) or not all(isinstance(x, Tensor) for x in names.values()):
        raise errors.ArgumentTypeError(
            f"draw: names is a dictionary of tensors, as model.named_parameters() gives, received {errors.shown(names)}"
        )
    nodes = {str(name): getattr(x._array, "node", None) for name, x in names.items()}
    return {node.key: name for name, node in nodes.items() if node is not None}


# --- a run of a function ---------------------------------------------------------------------------


@contextmanager
def _values_kept() -> Iterator[None]:
    """Lines and values are recorded with every primitive."""
    traced, kept = autodiff.record_locations(True), locations.keep_values(True)
    try:
        yield
    finally:
        autodiff.record_locations(traced)
        locations.keep_values(kept)


def _run(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, dict[Any, str]]:
    """What a function gives for arguments that are leaves, and the names of these."""
    leaves, structure = trees.flatten((f if isinstance(f, Fields) else None, args))
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    place = tensors[0].device if tensors else default_device()
    level: Autodiff[Any] = place if isinstance(place, Autodiff) else Autodiff(place)
    names: dict[Any, str] = {}
    made = []
    for path, x in zip(trees.paths(structure), leaves, strict=True):
        if is_numeric(x) or isinstance(x, (float, complex)):
            x = detach(asarray(x, device=level))
            if x.dtype.kind in INEXACT:
                x = require_grad(x)
                names[x._array.node.key] = _said(f, path)
        made.append(x)
    model, given = trees.unflatten(structure, made)
    for prefix, part in {"": model, **{f"{_said(f, f'[1][{k}]')}.": x for k, x in enumerate(given)}}.items():
        if isinstance(part, Fields):
            names |= {x._array.node.key: prefix + path for path, x in part.named_parameters().items()}
    with use_device(level):
        return called("draw", "f(*args)", model if isinstance(f, Fields) else f, *given), names


def _said(f: Callable[..., Any], path: str) -> str:
    """What one calls a leaf: `[1][0]['w']`, in the first argument of f(layer, x), is `layer['w']`."""
    if path.startswith("[0]"):
        return path[3:].lstrip(".")
    number, _, rest = path[4:].partition("]")
    try:
        known = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # some functions of C have none
        known = []
    plain = [x.name for x in known if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
    several = [x.name for x in known if x.kind is x.VAR_POSITIONAL] or ["argument"]
    k = int(number)
    return (plain[k] if k < len(plain) else f"{several[0]}[{k - len(plain)}]") + rest
