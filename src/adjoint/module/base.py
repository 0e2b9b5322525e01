"""Modules: classes whose fields are parameters, other modules and settings. They are values, as tensors are.

>>> import adjoint as ad
>>> class Line(ad.nn.Module):
...     slope: ad.Tensor
...     offset: ad.Tensor
...
...     def __call__(self, x):
...         return self.slope * x + self.offset
>>> line = Line(ad.tensor(2.0), ad.tensor(1.0))
>>> line(3.0).item()
7.0
>>> ad.grad(lambda line: line(3.0) ** 2)(line).slope.item()
42.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from adjoint import errors
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import leaf_of
from adjoint.files import Record, read, write
from adjoint.functions.arguments import as_flag, check_callable, is_array, is_value
from adjoint.functions.conversion import compute
from adjoint.functions.creation import asarray
from adjoint.module.fields import (
    Buffer,
    Fields,
    Leaf,
    closed,
    constant_of,
    each_module,
    fits,
    is_setting,
    joined,
    leaves_of,
    mapped,
    mapped_once,
    once_each,
    opened,
    rebuilt,
    role_of,
    with_arrays,
)
from adjoint.module.summary import Summary, summary_of
from adjoint.tensor import Tensor

__all__ = ["Buffer", "Loaded", "Module"]

M = TypeVar("M", bound="Module")


class Module(Fields):
    """A model or a part of one: a class with annotated fields, a pytree, and a value.

    Tensors in fields, and in tuples and dictionaries of fields, are parameters; those of fields that are annotated as
    `ad.nn.Buffer` are buffers; NumPy arrays and integer tensors are constants; other modules are parts; everything else
    is a setting. `__init__` takes the fields in order, as a dataclass's does, unless the class defines its own, or
    keeps that of its base, as in `class Mine(ad.nn.Linear, init=False)`. Nothing can be assigned afterwards: `at`,
    `map` and their like give another module.

    A transform such as `ad.grad` takes a module as an argument, differentiates by its parameters, and gives a module of
    gradients in which everything else is None. `model(x, key=3)` draws by this seed what it draws, such as what dropout
    drops.

    Raises
    ------
    ArgumentError
        A field is given no value, or has the name of a method; a name that is no field is assigned.
    ArgumentTypeError
        A field has an array of another library, which would not be trained.
    FrozenModuleError
        A field is assigned when the module is made.

    Examples
    --------
    >>> import adjoint as ad
    >>> class Scale(ad.nn.Module):
    ...     factor: ad.Tensor
    ...     power: int = 2
    ...
    ...     def __call__(self, x):
    ...         return self.factor * x**self.power
    >>> scale = Scale(ad.tensor(3.0))
    >>> scale(ad.tensor(2.0)).item(), scale.at("factor").set(ad.tensor(1.0))(ad.tensor(2.0)).item()
    (12.0, 4.0)
    """

    def __repr__(self) -> str:
        return "\n".join(_lines(self, type(self).__name__))

    def _repr_html_(self) -> str:
        """For notebooks: what `repr` says, and a table of the parameters to open."""
        from adjoint.markup import folded, table, text  # used by few

        known = self.named_parameters()
        rows = [(name, str(x.shape), str(x.dtype), f"{x.size:,}") for name, x in known.items()]
        about = f"{len(known)} parameters, {self.num_params():,} numbers"
        return f"<div>{text(repr(self))}{folded(about, table(('parameter', 'shape', 'dtype', 'numbers'), rows))}</div>"

    # --- what is in it ---

    @property
    def training(self) -> bool:
        """Whether it is to be trained: dropout drops then, and batch normalisation takes the batch's statistics."""
        return self._training

    def named_parameters(self) -> dict[str, Tensor[Any]]:
        """The parameters by their paths, such as `layers.0.weight`; also those that are frozen.

        A tensor that is in several places is one parameter, with the first path.

        >>> import adjoint as ad
        >>> sorted(ad.nn.Linear(3, 2).named_parameters())
        ['bias', 'weight']
        """
        return {leaf.path: leaf.value for leaf in once_each(leaves_of(self)) if leaf.kind in ("parameter", "frozen")}

    def num_params(self) -> int:
        """How many numbers its parameters have.

        >>> import adjoint as ad
        >>> ad.nn.Linear(3, 2).num_params()
        8
        """
        return sum(x.size for x in self.named_parameters().values())

    def summary(self, *args: Any, **kwargs: Any) -> Summary:
        """A table of the modules in it: the shapes of what they give, and their parameters, operations and bytes.

        The model is called with the arguments once, without gradients, and what it draws moves no other sequence. A
        shape, a tuple of sizes, stands for zeros of that shape where it is the only argument. Operations and bytes are
        those of `ad.Profiled`; functions between modules count in what calls them.

        >>> import adjoint as ad
        >>> model = ad.nn.Sequential(ad.nn.Linear(3, 8), ad.nn.relu, ad.nn.Linear(8, 1))
        >>> print(model.summary((10, 3)))
        layer               results  parameters  operations   bytes
        -----------------------------------------------------------
        Sequential          (10, 1)          41         810  1.6 kB
          layers.0: Linear  (10, 8)          32         560   568 B
          layers.2: Linear  (10, 1)           9         170   396 B
        41 parameters, 41 of them trained, 164 B
        """
        return summary_of(self, args, kwargs)

    # --- other modules, made of this one ---

    def map(self, f: Callable[..., Any], *others: Any) -> Self:
        """The module with f of each parameter in its place.

        `others` are modules of the same shape, such as gradients: f gets what they have there, too. Where one has None,
        the parameter stays as it is. Raises ArgumentTypeError where one is no module.

        >>> import adjoint as ad
        >>> ad.nn.Linear(3, 2).map(lambda x: x * 0).weight.sum().item()
        0.0
        >>> layer = ad.nn.Linear(1, 1).at("weight").set(ad.ones((1, 1)))
        >>> slopes = ad.grad(lambda layer: layer(ad.ones((1, 1))).sum())(layer)
        >>> round(layer.map(lambda w, g: w - 0.1 * g, slopes).weight.item(), 4)
        0.9
        """
        check_callable("Module.map", f)
        if not others:
            return mapped_once(self, lambda leaf: f(leaf.value) if leaf.kind in ("parameter", "frozen") else leaf.value)
        beside = [_by_path(other) for other in others]

        def image(leaf: Leaf) -> Any:
            if leaf.kind not in ("parameter", "frozen") or not all(leaf.path in values for values in beside):
                return leaf.value
            return f(leaf.value, *[values[leaf.path] for values in beside])

        return mapped(self, image)

    def require_grad(self) -> Self:
        """The module with leaves for parameters, of which `backward` gives gradients; not for frozen ones.

        A tensor that is in several places of the module is one leaf, as weights that two layers share.

        >>> import adjoint as ad
        >>> layer = ad.nn.Linear(1, 1).require_grad()
        >>> layer(ad.tensor([[2.0]])).sum().backward()[layer.weight].item()
        2.0
        """
        return mapped_once(self, lambda leaf: leaf.value.require_grad() if leaf.kind == "parameter" else leaf.value)

    def to_device(self, device: Any) -> Self:
        """The module with all its arrays on a device, tracked as they are."""
        return mapped_once(
            self, lambda leaf: leaf.value.to_device(device) if isinstance(leaf.value, Tensor) else leaf.value
        )

    def fork(self, device: Any) -> Self:
        """A copy on a device that shares no leaf with this one: its parameters are fresh leaves there."""

        def moved(leaf: Leaf) -> Any:
            if not isinstance(leaf.value, Tensor):
                return leaf.value
            x = leaf.value.detach().to_device(device)
            return x.require_grad() if leaf.kind == "parameter" else x

        return mapped_once(self, moved)

    def valid(self) -> Self:
        """The module as it is used: without gradients, on the backend below the autodiff, and not training."""

        def below(leaf: Leaf) -> Any:
            x = leaf.value
            return x.inner() if isinstance(x, Tensor) and isinstance(x.device, Autodiff) else x

        return _set_training(mapped_once(self, below), False)

    def train(self, training: bool = True) -> Self:
        """The module with `training` set in all its parts."""
        return _set_training(self, as_flag(training, "Module.train", "training"))

    def freeze(self, *where: str | Callable[[str, Any], bool]) -> Self:
        """The module with parameters frozen: no gradients are taken by them, and no optimizer changes them.

        `where` are paths of parameters or parts, patterns of these such as `*.bias`, or functions of path and value;
        all parameters if none is given. Leaves of `require_grad` become constants. Raises ArgumentError where one fits
        nothing.

        >>> import adjoint as ad
        >>> layer = ad.nn.Linear(1, 1).freeze("weight")
        >>> print(ad.grad(lambda layer: layer(ad.ones((1, 1))).sum())(layer).weight)
        None
        """
        found = chosen(self, where, "freeze")
        values = {path: constant_of(x) for path, x in self.named_parameters().items() if path in found}
        return _marked(
            with_arrays(self, values), found | {leaf.path for leaf in leaves_of(self) if leaf.kind == "frozen"}
        )

    def unfreeze(self, *where: str | Callable[[str, Any], bool]) -> Self:
        """The module with parameters that are trained again; `where` as in `freeze`.

        In a model of leaves they are leaves again.
        """
        found = chosen(self, where, "unfreeze")
        free = _marked(self, {leaf.path for leaf in leaves_of(self) if leaf.kind == "frozen"} - found)
        return free.require_grad() if any(x.is_require_grad() for x in self.named_parameters().values()) else free

    def at(self, path: str) -> Place[Self]:
        """A place in the module: `at("layers.0.weight").set(value)` is a module with another value there.

        In the place of a tensor, arrays and numbers become tensors on its device. Raises ArgumentError where there is
        nothing of that name, ArgumentTypeError for what is no tensor's value.

        >>> import adjoint as ad
        >>> layer = ad.nn.Linear(2, 1)
        >>> layer.at("bias").set(ad.ones(1)).bias.item(), layer.at("bias").apply(lambda b: b + 5).bias.item() > 4
        (1.0, True)
        """
        return Place(self, path)

    # --- records ---

    def record(self) -> Record:
        """The values of parameters and buffers as NumPy arrays, by their paths.

        >>> import adjoint as ad
        >>> {path: x.shape for path, x in ad.nn.Linear(3, 2).record().items()}
        {'weight': (2, 3), 'bias': (2,)}
        """
        values: Any = compute({path: x.detach() for path, x in _kept(self).items()})
        return values  # type: ignore[no-any-return]

    def load_record(
        self, record: Mapping[str, Any], *, strict: bool = True, rename: Callable[[str], str | None] | None = None
    ) -> Any:
        """The module with the values of a record; with `strict=False` a pair of it and of what did not meet.

        `rename` gives the path for a name of the record, or None to leave it out: so come weights of other libraries.

        Raises
        ------
        ArgumentError
            Paths of the module are missing in the record, or the record has more.
        ShapeError, DtypeError
            A value does not fit its place.

        Examples
        --------
        >>> import adjoint as ad
        >>> import numpy as np
        >>> layer = ad.nn.Linear(2, 1, bias=False).load_record({"weight": np.ones((1, 2), "float32")})
        >>> layer.weight.tolist()
        [[1.0, 1.0]]
        >>> layer, loaded = layer.load_record({"gain": np.ones(1)}, strict=False)
        >>> loaded
        Loaded(missing=('weight',), unexpected=('gain',))
        """
        return _with_record(self, record, strict, rename, "load_record")

    def save(self, path: Any) -> None:
        """Write parameters and buffers to a file of safetensors. It appears whole, or what was there stays.

        Raises MissingLibraryError without the library, FileError where it cannot be written.
        """
        write(path, self.record(), {"format": "adjoint", "class": type(self).__name__})

    def load(self, path: Any, *, strict: bool = True, rename: Callable[[str], str | None] | None = None) -> Any:
        """The module with the values of a file of safetensors, ours or PyTorch's; the rest is as in `load_record`.

        Raises FileError for a file that is none of these, or is not whole.
        """
        return _with_record(self, read(path), strict, rename, str(path))

    # --- buffers ---

    def state(self) -> Self:
        """The buffers: a module with None in the place of everything else."""
        return mapped(self, lambda leaf: leaf.value if leaf.kind == "buffer" else None)

    def with_state(self, state: Self) -> Self:
        """The module with the buffers of a state. Raises ArgumentError where one is missing, ShapeError for others."""
        found = {leaf.path: leaf.value for leaf in leaves_of(state)}
        buffers = {leaf.path: leaf.value for leaf in leaves_of(self) if leaf.kind == "buffer"}
        if missing := [path for path in buffers if path not in found]:
            raise errors.ArgumentError(
                f"with_state: the state has nothing at {', '.join(missing)}; state() of a module like this one has all"
            )
        for path, x in buffers.items():
            if found[path].shape != x.shape:
                raise errors.ShapeError(
                    f"with_state: {path} has shape {found[path].shape} in the state, and {x.shape} in the module"
                )
        return mapped(self, lambda leaf: found[leaf.path] if leaf.kind == "buffer" else leaf.value)

    def apply(self, x: Any, state: Any, *, key: int | None = None) -> tuple[Any, Any]:
        """`self(x)` and the next state. A class whose parts have buffers defines it, and hands each part its own."""
        path = next((leaf.path for leaf in leaves_of(self) if leaf.kind == "buffer"), None)
        if path is not None:
            name = type(self).__name__
            raise errors.ArgumentError(
                f"{name}.apply: there is a buffer at {path}; define apply(self, x, state) in {name}, which "
                "gives the result and state.at(...).set(...) with what the part's own apply gave"
            )
        return self(x), state


class Place(Generic[M]):
    """A place in a module, of which `at` makes another module."""

    def __init__(self, module: M, path: str) -> None:
        if not isinstance(path, str):
            raise errors.ArgumentTypeError(
                f"at: a place is a path such as 'layers.0.weight', received {errors.shown(path)}"
            )
        self._module, self._path = module, path
        self.get()

    def get(self) -> Any:
        """What is there."""
        found: Any = self._module
        for key in self._path.split("."):
            try:
                found = _child(found, key)
            except KeyError:
                names = opened(found)[1]
                what = f"nothing at {errors.shown(self._path)}: there is no {errors.shown(key)}"
                raise errors.ArgumentError(
                    f"at: {type(self._module).__name__} has {what} in {type(found).__name__}, which has "
                    f"{errors.shown(', '.join(names)) if names else 'no parts'}"
                ) from None
        return found

    def set(self, value: Any) -> M:
        """The module with a value there."""
        before = self.get()
        if isinstance(before, Tensor) and not (value is None or isinstance(value, (Tensor, Fields))):
            value = self._tensor(value, before)
        return _with(self._module, self._path.split("."), value)  # type: ignore[no-any-return]

    def _tensor(self, value: Any, before: Tensor[Any]) -> Tensor[Any]:
        """What is to be a parameter or buffer as a tensor, which an array would not be; numbers have its dtype."""
        if not is_value(value):
            closed(value)  # has its own error for arrays of other libraries
            raise errors.ArgumentTypeError(
                f"at: a tensor stands at {self._path}, and a tensor, an array or a number may take its place, received "
                f"{errors.shown(value)}"
            )
        return asarray(value, dtype=None if is_array(value) else before.dtype, device=before.device, copy=True)

    def apply(self, f: Callable[[Any], Any]) -> M:
        """The module with f of what is there."""
        check_callable("apply", f)
        return self.set(f(self.get()))


# --- records -------------------------------------------------------------------------------------


class Loaded(NamedTuple):
    """What did not meet: paths of the module that a record has nothing for, and names of a record without a place."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


def _kept(module: Module) -> dict[str, Tensor[Any]]:
    """What a record has of a module."""
    return {leaf.path: leaf.value for leaf in leaves_of(module) if leaf.kind != "constant"}


def _with_record(
    module: Module, record: Mapping[str, Any], strict: bool, rename: Callable[[str], str | None] | None, where: str
) -> Any:
    if not isinstance(record, Mapping):
        raise errors.ArgumentTypeError(f"{where}: a record maps paths to arrays, received {errors.shown(record)}")
    if rename is not None:
        check_callable(where, rename, "rename")
    named: dict[str, Any] = {}
    for name, value in record.items():
        path = name if rename is None else rename(name)
        if path in named:
            raise errors.ArgumentError(f"{where}: two entries of the record are renamed to {path}")
        if path is not None:
            leaf = None if is_array(value) else leaf_of(value)
            named[path] = value if leaf is None else leaf.to_numpy(leaf.from_native(value))
    places = _kept(module)
    first: dict[int, str] = {}  # the path of a tensor that is in several places
    for path, x in places.items():
        first.setdefault(id(x), path)
    for path, x in places.items():
        other = first[id(x)]
        if path in named and other in named and not np.array_equal(named[path], named[other], equal_nan=True):
            raise errors.ArgumentError(f"{where}: {other} and {path} are one tensor, and have two values in the record")
        if path in named:
            named.setdefault(other, named[path])
    loaded = Loaded(
        tuple(p for p, x in places.items() if first[id(x)] not in named), tuple(p for p in named if p not in places)
    )
    if strict and any(loaded):
        parts = [f"{what}: {errors.shown(', '.join(names))}" for what, names in loaded._asdict().items() if names]
        raise errors.ArgumentError(
            f"{where}: the record and the module do not have the same paths; {'; '.join(parts)}. With strict=False the "
            "others are loaded"
        )
    values = {path: in_place(named[path], places[path], f"{where}: {path}") for path in first.values() if path in named}
    made = with_arrays(module, values)
    return made if strict else (made, loaded)


def in_place(value: Any, like: Tensor[Any], what: str) -> Tensor[Any]:
    """A value of a record in the place of a tensor: on its device, a leaf if it is one."""
    found = np.asarray(value)
    if found.shape != like.shape:
        raise errors.ShapeError(f"{what} has shape {found.shape} in the record, and {like.shape} in the module")
    if found.dtype != like.dtype:
        raise errors.DtypeError(
            f"{what} is {found.dtype} in the record, and {like.dtype} in the module; make the module in that dtype, or "
            "change the record"
        )
    made = asarray(found, device=like.device, copy=True)
    return made.require_grad() if like.is_require_grad() else made


# --- parts ---------------------------------------------------------------------------------------


def _set_training(tree: M, training: bool) -> M:
    return each_module(tree, lambda part, children, _: rebuilt(type(part), children, part._frozen, training))  # type: ignore[no-any-return]


def _marked(module: M, frozen: set[str]) -> M:
    """The module with the parameters at these paths frozen, and no others. Raises ArgumentError within a field."""

    def mark(part: Any, children: list[Any], prefix: str) -> Any:
        names = set()
        for name in part._fields:
            path = joined(prefix, name)
            inside = [leaf.path for leaf in _own_leaves(vars(part)[name], path)]
            chosen = [p for p in inside if p in frozen]
            if chosen and chosen != inside:
                raise errors.ArgumentError(
                    f"freeze: the field {path} is frozen as a whole, or not at all; that leaves out "
                    f"{next(p for p in inside if p not in frozen)}"
                )
            names |= {name} if chosen else set()
        return rebuilt(type(part), children, frozenset(names), part._training)

    return each_module(module, mark)  # type: ignore[no-any-return]


def check_state(module: Module, state: Any) -> None:
    """Raises ArgumentTypeError for what is no state of a module."""
    if not isinstance(state, Module) or not isinstance(module, type(state)):
        raise errors.ArgumentTypeError(
            f"{type(module).__name__}.apply: the state is what state() of this module gave, or its part of one; "
            f"received {type(state).__name__ if isinstance(state, Module) else errors.shown(state)}"
        )


def _by_path(other: Any) -> dict[str, Any]:
    if not isinstance(other, Module):
        raise errors.ArgumentTypeError(f"Module.map: expected another module, received {errors.shown(other)}")
    return {leaf.path: leaf.value for leaf in leaves_of(other)}


def _own_leaves(tree: Any, path: str) -> Iterator[Leaf]:
    """The arrays in a field that belong to no module in it."""
    if is_array(tree):
        yield from leaves_of(tree, path)
    elif not isinstance(tree, Module):
        children, names, _ = opened(tree)
        for name, child in zip(names, children, strict=True):
            yield from _own_leaves(child, joined(path, name))


def chosen(module: Module, where: tuple[Any, ...], name: str) -> set[str]:
    """The paths of the parameters that paths, patterns or functions choose; all for none of these.

    Of a tensor that is in several places all are chosen, or none.
    """
    leaves = [leaf for leaf in leaves_of(module) if leaf.kind in ("parameter", "frozen")]
    shared: set[int] = set()
    for choice in where or ("*",):
        if not callable(choice) and not isinstance(choice, str):
            raise errors.ArgumentTypeError(
                f"{name}: a path, a pattern or a function of path and value says which parameters, received "
                f"{errors.shown(choice)}"
            )
        fitting = {id(leaf.value) for leaf in leaves if fits(choice, leaf)}
        if not fitting and where and not callable(choice):
            known = ", ".join([leaf.path for leaf in leaves])
            raise errors.ArgumentError(
                f"{name}: nothing fits {errors.shown(choice)}; parameters are {errors.shown(known)}"
            )
        shared |= fitting
    return {leaf.path for leaf in leaves if id(leaf.value) in shared}


def _child(parent: Any, key: str) -> Any:
    """The part of a module or container with a name. Raises KeyError where there is none."""
    children, names, _ = opened(parent)
    return dict(zip(names, children, strict=True))[key]


def _with(parent: Any, keys: list[str], value: Any) -> Any:
    """The parent with a value at the end of a path, which exists."""
    if not keys:
        return closed(value)
    children, names, build = opened(parent)
    return build([_with(x, keys[1:], value) if name == keys[0] else x for x, name in zip(children, names, strict=True)])


def _lines(tree: Any, label: str, kind: str = "") -> Iterator[str]:
    """The lines of a module's text: what it has, with shapes and counts. `kind` is what its arrays are in the whole."""
    children, names, _ = opened(tree)
    if is_array(tree):
        yield f"{label}: {tree.dtype}{list(tree.shape)}"
        return
    parts = list(zip(names, children, strict=True))
    if isinstance(tree, Module):
        settings = [f"{name}={_short(x)}" for name, x in parts if x is not None and is_setting(x)]
        own = once_each([leaf for leaf in leaves_of(tree, "", kind) if leaf.kind == "parameter"])
        count, trained = tree.num_params(), sum(leaf.value.size for leaf in own)
        some = "" if trained == count else f", {trained:,} of them trained"
        yield f"{label}({', '.join(settings)})  # {count:,} parameters{some}"
        parts = [(name, x) for name, x in parts if not is_setting(x)]
    else:
        yield f"{label}:"
    for name, x in parts:
        if is_setting(x):
            yield f"  {name}: {_short(x)}"
        else:
            head = f"{name}: {type(x).__name__}" if isinstance(x, Module) else name
            role = role_of(tree, name, kind) if isinstance(tree, Module) else kind
            yield from (f"  {line}" for line in _lines(x, head, role))


def _short(x: Any) -> str:
    return getattr(x, "__name__", None) or errors.shown(x)
