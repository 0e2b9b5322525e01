"""What users do with gradients: leaves, `backward` and `Gradients`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator, over_leaf
from adjoint.decorators.autodiff import Autodiff
from adjoint.dtypes import INEXACT, DType
from adjoint.functions.arguments import as_flag, items
from adjoint.functions.creation import tensor as make
from adjoint.graph.nodes import Key, LeafNode, Node, Var, living_leaf, new_leaf, remember
from adjoint.operands import cast, lower
from adjoint.primitives import Shape
from adjoint.tensor import Tensor, refuse_ended, same, wrap
from adjoint.variables import J

T = TypeVar("T")


class Gradients(Generic[J]):
    """The gradients of one `backward`: a mapping from leaf tensors to tensors of the inner backend.

    Each has the shape and the dtype of its tensor. Under `create_graph=True` they are tensors of the leaves' own
    backend, tracked there like any others. Of a graph that spans devices each gradient is on the device of its leaf.

    `grads[x]`, `x in grads`, `grads.get(x)`, `grads.pop(x)`, `len`, iteration over the leaf tensors,
    `items`, `values`; sums and multiples; `map`. It refers to leaves by number, so that it can be
    pickled, sent to other threads and processes, and used there with pickled leaves.

    >>> import adjoint as ad
    >>> x = ad.tensor([1.0, 2.0]).require_grad()
    >>> grads = (x * x).sum().backward()
    >>> (grads + grads)[x]
    Tensor([4., 8.], dtype=float32, device=numpy)
    """

    __array_ufunc__ = None  # NumPy's numbers on the left of * defer to the gradients
    __slots__ = ("_arrays", "_elsewhere", "_level", "_popped", "_recorded", "_sources")

    def __init__(
        self,
        level: Autodiff[J],
        arrays: dict[Key, Array],
        sources: dict[Key, Any],
        elsewhere: dict[Key, Autodiff[Any]] | None = None,
        recorded: bool = False,
    ) -> None:
        self._level = level
        self._recorded = recorded  # whether these are arrays of the level itself
        self._elsewhere = elsewhere or {}  # the levels of leaves over other leaf backends than the root's
        self._arrays = arrays
        self._sources = sources  # what iteration makes tensors of: leaf nodes, or the tensors asked for
        self._popped: set[Key] = set()

    def _level_of(self, key: Key) -> Autodiff[Any]:
        return self._elsewhere.get(key, self._level) if self._elsewhere else self._level

    def _backend(self, key: Key) -> Backend:
        """The backend of the gradient with this key."""
        level_of = self._level_of(key)
        return level_of if self._recorded else level_of.inner

    def _gradient(self, key: Key) -> Tensor[J]:
        return wrap(self._arrays[key], self._backend(key))

    def _key(self, x: Any) -> Key:
        node = _node(x, "a key of Gradients")
        if node is None or x.device is not self._level_of(node.key):
            where = "" if x.device is self._level else f"; it is on {x.device}, these are gradients of {self._level}"
            raise errors.NoGradientError(
                f"no gradient: the tensor of shape {x.shape} is not a leaf{where}; call require_grad() before using it"
            )
        return node.key

    def __getitem__(self, x: Tensor[Any]) -> Tensor[J]:
        key = self._key(x)
        if key not in self._arrays:
            raise errors.NoGradientError(self._why_missing(x, key))
        return self._gradient(key)

    def _why_missing(self, x: Tensor[Any], key: Key) -> str:
        if key in self._popped:
            return f"no gradient: that of the tensor of shape {x.shape} was popped already"
        if _node(x, "").parents != () and key not in self._sources:  # type: ignore[union-attr]
            return (
                f"no gradient: the tensor of shape {x.shape} is an intermediate result, not a leaf; ask for it with "
                "backward(wrt=[x]). After a step w = w - rate * g it is one too: write w = w.with_value(w.inner() - "
                "rate * g), or (w - rate * g).detach().require_grad()"
            )
        node = _node(x, "")
        kin = [other for other in self._arrays if _origin(self._node_of(other)) == _origin(node)]
        if kin and kin[0] < key:
            return (
                f"no gradient: the tensor of shape {x.shape} is the new leaf that with_value made, and these gradients "
                "are for the old one: look up that, or compute the root with the new one first"
            )
        if kin:
            return (
                f"no gradient: the tensor of shape {x.shape} is the old leaf, of which with_value made the new one "
                "that these gradients are for: look up that, as after w = w.with_value(...)"
            )
        return (
            f"no gradient: the tensor of shape {x.shape} was not reached from the root; ad.why(x, root) tells where "
            "the path is cut"
        )

    def __contains__(self, x: object) -> bool:
        return self._known_key(x) is not None

    def _known_key(self, x: object) -> Key | None:
        """The key of x, if there is a gradient of it."""
        node = getattr(x._array, "node", None) if isinstance(x, Tensor) else None
        if node is None or node.key not in self._arrays or x._device is not self._level_of(node.key):  # type: ignore[attr-defined]
            return None
        return node.key  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._arrays)

    def __iter__(self) -> Iterator[Tensor[Autodiff[J]]]:
        return iter([self._source(key) for key in self._arrays])

    def _source(self, key: Key) -> Tensor[Autodiff[J]]:
        source = self._sources[key] if key in self._sources else living_leaf(key)
        if isinstance(source, Tensor):
            return source
        if source is None:
            raise errors.NoGradientError(
                f"the leaf {key} of these gradients lives in another process; send the leaves along, or use values()"
            )
        return wrap(self._level_of(key).tensor_of(source), self._level_of(key))

    def _node_of(self, key: Key) -> Node | None:
        source = self._sources[key] if key in self._sources else living_leaf(key)
        return _node(source, "") if isinstance(source, Tensor) else source

    def keys(self) -> list[Tensor[Autodiff[J]]]:
        """The leaf tensors, which are no keys of a dict: their == compares elements."""
        return list(self)

    def values(self) -> list[Tensor[J]]:
        """The gradients."""
        return [self._gradient(key) for key in self._arrays]

    def items(self) -> list[tuple[Tensor[Autodiff[J]], Tensor[J]]]:
        """Pairs of leaf tensor and gradient."""
        return list(zip(self, self.values(), strict=True))

    @overload
    def get(self, x: Tensor[Any]) -> Tensor[J] | None: ...
    @overload
    def get(self, x: Tensor[Any], default: T) -> Tensor[J] | T: ...
    def get(self, x: Tensor[Any], default: Any = None) -> Any:
        """The gradient of x, or the default."""
        key = self._known_key(x)
        return default if key is None else self._gradient(key)

    def pop(self, x: Tensor[Any], *default: Any) -> Any:
        """The gradient of x, taken out; the default, or NoGradientError, if there is none."""
        if default and x not in self:
            return default[0]
        gradient = self[x]
        key = self._key(x)
        del self._arrays[key]
        self._popped.add(key)
        return gradient

    def __delitem__(self, x: Tensor[Any]) -> None:
        """Take the gradient of x out. Raises NoGradientError if there is none."""
        self.pop(x)

    def __setitem__(self, x: Tensor[Any], gradient: Any) -> None:
        """Put another gradient in the place of x's, of the same shape and dtype.

        Raises ShapeError, DtypeError or DeviceError where it does not fit x.
        """
        key = self._key(x)
        backend = self._backend(key)
        value = gradient if isinstance(gradient, Tensor) else make(gradient, dtype=x.dtype, device=backend)
        self._arrays[key] = _fitting(value, x.shape, x.dtype, backend, "a gradient")
        self._sources.setdefault(key, same(x))
        self._popped.discard(key)

    def map(self, f: Callable[[Tensor[J]], Tensor[J]]) -> Gradients[J]:
        """The container with `f` applied to each gradient: clipping, say, or a change of sign."""
        arrays = {}
        for key in self._arrays:
            old = self._gradient(key)
            arrays[key] = _fitting(f(old), old.shape, old.dtype, self._backend(key), "map: a gradient")
        return self._with(arrays, self)

    def _with(self, arrays: dict[Key, Array], *parts: Gradients[Any]) -> Gradients[J]:
        sources = {k: v for part in parts for k, v in part._sources.items()}
        elsewhere = {k: v for part in parts for k, v in part._elsewhere.items()}
        made = Gradients(self._level, arrays, sources, elsewhere, any([part._recorded for part in parts]))
        made._popped = {key for part in parts for key in part._popped if key not in arrays}
        return made

    def __add__(self, other: Any) -> Gradients[J]:
        """The sums; a leaf that only one of them knows keeps its gradient. Recorded if one of them is."""
        if not isinstance(other, Gradients):
            return _refuse_array(other, "+")  # type: ignore[no-any-return]
        if other._level is not self._level:
            raise errors.DeviceError(f"gradients of {self._level} and of {other._level} do not add")
        recorded = self._recorded or other._recorded
        arrays = self._lifted(recorded)
        for key, array in other._lifted(recorded).items():
            level_of: Any = other._level_of(key) if recorded else other._level_of(key).inner
            arrays[key] = level_of.add(arrays[key], array) if key in arrays else array
        return self._with(arrays, self, other)

    def _lifted(self, recorded: bool) -> dict[Key, Array]:
        """The arrays, as constants of the levels if those are asked for."""
        if recorded and not self._recorded:
            return {key: self._level_of(key).wrap(array) for key, array in self._arrays.items()}
        return dict(self._arrays)

    def __radd__(self, other: Any) -> Gradients[J]:
        if other.__class__ is int and other == 0:  # for sum(...)
            return self
        return _refuse_array(other, "+")  # type: ignore[no-any-return]

    def __neg__(self) -> Gradients[J]:
        return self.map(lambda g: -g)

    def __sub__(self, other: Any) -> Gradients[J]:
        """The differences; of a leaf that only the other one knows, that one's with the opposite sign."""
        if not isinstance(other, Gradients):
            return _refuse_array(other, "-")  # type: ignore[no-any-return]
        return self + -other

    def __rsub__(self, other: Any) -> Gradients[J]:
        return _refuse_array(other, "-")  # type: ignore[no-any-return]

    def __mul__(self, factor: Any) -> Gradients[J]:
        """Each gradient times a number or a 0-d tensor of the inner backend; dtypes stay."""
        factor = _number(factor)
        return NotImplemented if factor is None else self.map(lambda g: _narrowed(g * factor, g.dtype))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Gradients[J]:
        divisor = _number(divisor)
        return NotImplemented if divisor is None else self.map(lambda g: _narrowed(g / divisor, g.dtype))

    def __repr__(self) -> str:
        shapes = ", ".join(str(tuple(array.shape)) for array in self._arrays.values())
        return f"Gradients({len(self)} of {self._level}: {shapes})"

    def _repr_html_(self) -> str:
        """For notebooks: a row for each leaf."""
        from adjoint.markup import captioned, table  # used by few

        rows = []
        for key in self._arrays:
            g = self._gradient(key)
            known = g.device.leaf.is_concrete(g.device.leaf_array(g._array))
            rows.append([str(g.shape), str(g.dtype), *_sizes(g.device.concrete_values(g._array) if known else None)])
        head = ("shape", "dtype", "root mean square", "largest", "zeros")
        return captioned(f"Gradients: {len(self)} of {self._level}", table(head, rows))

    def __reduce__(self) -> tuple[Any, ...]:
        for source in self._sources.values():
            node = _node(source, "") if isinstance(source, Tensor) else source
            if isinstance(node, LeafNode):
                remember(node)
        gradients = dict(zip(self._arrays, self.values(), strict=True))
        return _load, (self._level, gradients, self._popped, self._elsewhere, self._recorded)


def _sizes(values: np.ndarray[Any, Any] | None) -> list[str]:
    """How large a gradient is, for a table; nothing is known of what is not computed yet."""
    if values is None or not values.size:
        return ["", "", ""]
    with np.errstate(all="ignore"):
        sizes = np.abs(values).astype(np.float64)
        return [f"{np.sqrt(np.mean(sizes**2)):.4g}", f"{sizes.max():.4g}", f"{np.mean(sizes == 0):.0%}"]


def _load(
    level: Autodiff[Any],
    gradients: dict[Key, Tensor[Any]],
    popped: set[Key],
    elsewhere: dict[Key, Autodiff[Any]],
    recorded: bool = False,
) -> Gradients[Any]:
    arrays = {key: gradient._array for key, gradient in gradients.items()}
    grads = Gradients(level, arrays, {}, elsewhere, recorded)
    grads._popped = set(popped)
    return grads


def _refuse_array(other: Any, operator: str) -> Any:
    """NotImplemented for what is no array; of one the error says which gradient is meant."""
    if not isinstance(other, (Tensor, np.ndarray)):
        return NotImplemented
    kind = "a tensor" if isinstance(other, Tensor) else "an array"
    way = "w * grads[w]" if operator == "*" else f"w.with_value(w.inner() {operator} 0.1 * grads[w])"
    raise errors.ArgumentTypeError(
        f"w {operator} grads: {kind} of shape {other.shape} meets the gradients of all leaves; grads[w] is that of "
        f"one, as in {way}"
    )


def _number(factor: Any) -> Any:
    """What gradients are scaled by: a 0-d tensor, or a number, also NumPy's; None for anything else but arrays."""
    if isinstance(factor, (Tensor, np.ndarray)) and factor.ndim:
        _refuse_array(factor, "*")
    if isinstance(factor, (np.ndarray, np.generic)):
        return factor.item()
    return factor if isinstance(factor, (int, float, complex, Tensor)) else None


def _narrowed(value: Tensor[Any], dtype: DType) -> Tensor[Any]:
    if value.dtype.kind == "c" and dtype.kind != "c":
        raise errors.DtypeError(f"gradients of {dtype} cannot be scaled by a complex number")
    return cast(value, dtype)


def _node(x: Any, what: str) -> Node | None:
    if not isinstance(x, Tensor):
        way = "; grads[w] is the gradient of the leaf w, and grads.items() are all leaves with theirs"
        if isinstance(x, str):
            way = "; ad.optim.GradientsParams.from_grads(grads, model)[path] is that of a parameter of a module"
        elif isinstance(x, np.ndarray):
            way = "; grads[w] is the gradient of the leaf w, as w = ad.asarray(array).require_grad() made one"
        raise errors.NoGradientError(f"{what} is a tensor, received {type(x).__name__}{way}")
    return getattr(x._array, "node", None)


def _fitting(value: Any, shape: Shape, dtype: DType, inner: Backend, what: str) -> Array:
    """The array of a gradient, if it has the shape and dtype of its leaf."""
    array = _inner_array(value, inner, what)
    if value.shape != shape:
        raise errors.ShapeError(f"{what} of shape {value.shape} does not fit the leaf of shape {shape}")
    if value.dtype is not dtype:
        raise errors.DtypeError(f"{what} of {value.dtype} does not fit the leaf of {dtype}; use astype")
    return array


def _inner_array(value: Any, inner: Backend, what: str) -> Array:
    """The array on this backend: lifted from below, or a constant of the levels above."""
    if not isinstance(value, Tensor):
        raise errors.DeviceError(f"{what} is a tensor of {inner}, received {type(value).__name__}")
    found = lower(value._array, value.device, inner)
    if found is None:
        way = "inner()" if value.device.leaf is inner.leaf else f"to_device({inner.name!r})"
        raise errors.DeviceError(
            f"{what} is a tensor of {inner} or a constant, received one on {value.device}; take its {way}"
        )
    return inner.lift(*found)


def as_autodiff(x: Tensor[Any], what: str) -> Autodiff[Any]:
    level = x._device
    if not isinstance(level, Autodiff):
        raise errors.NoAutodiffError(
            f"{what}: {level} computes without gradients; make the tensor with device='autodiff<{level}>', or lift it "
            "with ad.from_inner(x)"
        )
    return level


# --- leaves and constants: they do nothing where there is no autodiff ----------------------------


def require_grad(x: Tensor[Any], /) -> Tensor[Any]:
    """A leaf tensor with this value, which `backward` gives a gradient for.

    Does nothing on a backend without autodiff, and to a leaf. Raises DtypeError for integers and
    booleans, GraphError for an intermediate result.

    >>> import adjoint as ad
    >>> ad.tensor([1.0]).require_grad().is_require_grad()
    True
    """
    refuse_ended(x, "require_grad")
    level = x.device
    if not isinstance(level, Autodiff):
        return x
    if x.dtype.kind not in INEXACT:
        raise errors.DtypeError(
            f"require_grad: {x.dtype} has no derivatives, its values cannot change a little; use astype(ad.float32)"
        )
    node = x._array.node
    if node is not None:
        if node.parents == ():
            return x
        raise errors.GraphError(
            f"require_grad: the tensor is the result of {node.name!r}, not a leaf; ask for its gradient with "
            "backward(wrt=[x]), or start a new graph with x.detach().require_grad()"
        )
    return wrap(new_leaf(x._array.value, level), level)


def set_require_grad(x: Tensor[Any], require: bool, /) -> Tensor[Any]:
    """`require_grad()` for True; for False a constant of the outermost level with the same value."""
    if as_flag(require, "set_require_grad", "require"):
        return require_grad(x)
    refuse_ended(x, "set_require_grad")
    level = x.device
    return wrap(level.constant(x._array), level) if isinstance(level, Autodiff) else same(x)


def is_require_grad(x: Tensor[Any], /) -> bool:
    """Whether it is a leaf, which `backward` gives a gradient for."""
    node = getattr(x._array, "node", None)
    return isinstance(node, LeafNode)


def is_tracked(x: Tensor[Any], /) -> bool:
    """Whether some level records what is done with it: a leaf, or computed from one."""
    return bool(x.device.tracked(x._array))


def with_value(x: Tensor[Any], value: Any, /) -> Tensor[Any]:
    """A new leaf with another value of the same shape and dtype, as an optimiser's step makes it.

    `value` is a tensor of the inner backend, or anything with values. On a backend without autodiff it is
    simply the value there. Raises ShapeError, DtypeError or DeviceError where it does not fit.

    >>> import adjoint as ad
    >>> w = ad.tensor([1.0]).require_grad()
    >>> w.with_value(w.inner() * 0.5)
    Tensor([0.5], dtype=float32, device=autodiff<numpy>, leaf)
    """
    level = x.device
    base: Backend = level.inner if isinstance(level, Autodiff) else level
    fits = value.__class__ is Tensor and value._device is base and value._dtype is x._dtype
    if fits and value._array.shape == x._array.shape:  # the usual step, without detours
        return _replacing(x, value._array, level) if isinstance(level, Autodiff) else same(value)
    if isinstance(value, Tensor) and value.device is level:
        value = value.detach().inner() if isinstance(level, Autodiff) else value
    new = value if isinstance(value, Tensor) else make(value, dtype=x.dtype, device=base)
    if new.shape != x.shape:
        raise errors.ShapeError(f"with_value: the leaf has shape {x.shape} and the value {new.shape}")
    if new.dtype is not x.dtype:
        raise errors.DtypeError(f"with_value: the leaf is {x.dtype} and the value {new.dtype}; use astype")
    array = _inner_array(new, base, "with_value: the value")
    return _replacing(x, array, level) if isinstance(level, Autodiff) else wrap(array, base)


def _replacing(x: Tensor[Any], array: Array, level: Autodiff[Any]) -> Tensor[Any]:
    """A leaf that knows which one it was made of, for errors."""
    leaf = new_leaf(array, level)
    if isinstance(x._array.node, LeafNode):
        leaf.node.origin = _origin(x._array.node)  # type: ignore[union-attr]
    return wrap(leaf, level, x._dtype)


def _origin(node: Any) -> Key:
    """The first leaf of those that `with_value` made one of the other."""
    return getattr(node, "origin", None) or node.key  # type: ignore[no-any-return]


def detach(x: Tensor[Any], /) -> Tensor[Any]:
    """A constant with the same value, for every level: no gradient flows through it."""
    refuse_ended(x, "detach")
    return wrap(x.device.detach(x._array), x.device)


def inner(x: Tensor[Any], /) -> Tensor[Any]:
    """The tensor without its outermost Autodiff level, tracked as before by the inner ones.

    Raises NoAutodiffError on a backend without autodiff.
    """
    level = as_autodiff(x, "inner")
    return wrap(level.unwrap(x._array), level.inner, x._dtype)


# --- going back ---


def backward(
    x: Tensor[Any],
    cotangent: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool | None = None,
    wrt: Tensor[Any] | Sequence[Tensor[Any]] | None = None,
) -> Gradients[Any]:
    """The gradients of this tensor with respect to the leaves it was computed from.

    Parameters
    ----------
    cotangent
        What to pull back, of the tensor's shape: a tensor of the backend that the gradients are on, a constant, or
        anything else that `ad.asarray` takes. Ones if None: of a scalar that is the gradient, else that of the sum.
    retain_graph
        Keep the graph for another `backward`; otherwise it is freed as it is used. None means what `create_graph` says.
    create_graph
        Record how the gradients are computed: they are tensors of this one's own backend, and can be differentiated
        again, to any order. Otherwise they are constants, on the inner backend. None means True inside of a transform's
        function, which differentiates what is computed there, and else False.
    wrt
        The tensor or tensors to answer for, intermediate results among them; all leaves if None.

    Raises
    ------
    GraphError
        The tensor is a constant, the graph was freed, or a pullback failed (BackwardError).
    ShapeError, DtypeError, DeviceError
        A cotangent of the wrong shape, dtype or backend.
    ArgumentTypeError
        Something else than tensors in `wrt`, or than True, False and None for the graph.
    NoAutodiffError
        The backend computes without gradients.

    Examples
    --------
    >>> import adjoint as ad
    >>> x = ad.tensor([1.0, 2.0, 3.0, 4.0]).require_grad()
    >>> (x * 2).sum().backward()[x]
    Tensor([2., 2., 2., 2.], dtype=float32, device=numpy)
    >>> slope = (x**3).sum().backward(create_graph=True)[x]
    >>> slope.sum().backward()[x]
    Tensor([ 6., 12., 18., 24.], dtype=float32, device=numpy)
    """
    level = as_autodiff(x, "backward")
    recorded = _choice(create_graph, "create_graph", _of_transform(level))
    retained = _choice(retain_graph, "retain_graph", recorded)
    backend: Backend = level if recorded else level.inner
    array: Var = x._array
    refuse_ended(x, "backward")
    if array.node is None:
        raise errors.GraphError(
            f"backward: the tensor of shape {x.shape} depends on no leaf; call require_grad() on what it is computed "
            "from, and ad.why(leaf, x) tells where a path is cut"
        )
    start = None
    if cotangent is not None:
        if isinstance(cotangent, complex) and x.dtype.kind != "c":
            raise errors.DtypeError(f"backward: the root is {x.dtype}, the cotangent is complex; take its .real")
        given = cotangent if isinstance(cotangent, Tensor) else make(cotangent, dtype=x.dtype, device=backend)
        if given.shape != x.shape:
            raise errors.ShapeError(f"backward: the root has shape {x.shape}, the cotangent {given.shape}")
        if given.dtype.kind == "c" and x.dtype.kind != "c":
            raise errors.DtypeError(f"backward: the root is {x.dtype}, the cotangent is complex; take its .real")
        start = _inner_array(cast(given, x.dtype), backend, "backward: the cotangent")
    sources: dict[Key, Any] = {}
    nodes: list[Node] | None = None
    if wrt is not None:
        nodes = []
        several = [wrt] if isinstance(wrt, Tensor) else items(wrt)
        if several is None:
            raise errors.ArgumentTypeError(f"backward: wrt is a tensor or several, received {errors.shown(wrt)}")
        for tensor in several:
            if not isinstance(tensor, Tensor):
                raise errors.ArgumentTypeError(f"backward: an entry of wrt is no tensor but {errors.shown(tensor)}")
            node = _node(tensor, "")
            if node is None or over_leaf(tensor.device, level.leaf) is not level:
                raise errors.GraphError(
                    f"backward: a tensor of shape {tensor.shape} in wrt is not tracked on {level}; call require_grad()"
                )
            nodes.append(node)
            sources[node.key] = same(tensor)  # the object may be assigned to
    answers = level.backward(array, start, retain_graph=retained, wrt=nodes, on=backend)
    arrays = {}
    elsewhere: dict[Key, Autodiff[Any]] = {}
    for key, (node, g) in answers.items():
        arrays[key] = g
        level_of = sources[key].device if key in sources else node.level  # type: ignore[attr-defined]
        sources.setdefault(key, node)
        if level_of is not level and level_of is not None:
            elsewhere[key] = level_of
    return Gradients(level, arrays, sources, elsewhere, recorded)


def _choice(given: Any, what: str, default: bool) -> bool:
    if given is not None and not isinstance(given, (bool, np.bool_)):
        raise errors.ArgumentTypeError(f"backward: {what} is True, False or None, received {errors.shown(given)}")
    return default if given is None else bool(given)


def _of_transform(level: Decorator[Any]) -> bool:
    """Whether a transform made the level, or the one that it views."""
    while level.aliases is not None:
        level = level.aliases
    return level.is_fresh


def grad(x: Tensor[Any], grads: Gradients[Any], /) -> Tensor[Any] | None:
    """The gradient of x in a container, or None if there is none."""
    as_autodiff(x, "grad")
    return _container(grads, "grad").get(x)


def grad_remove(x: Tensor[Any], grads: Gradients[Any], /) -> Tensor[Any] | None:
    """The gradient of x, taken out of the container, or None if there is none."""
    as_autodiff(x, "grad_remove")
    return _container(grads, "grad_remove").pop(x, None)  # type: ignore[no-any-return]


def grad_replace(x: Tensor[Any], grads: Gradients[Any], g: Any, /) -> None:
    """Put another gradient for x into a container. Errors as `grads[x] = g`."""
    as_autodiff(x, "grad_replace")
    _container(grads, "grad_replace")[x] = g


def _container(grads: Any, name: str) -> Gradients[Any]:
    if not isinstance(grads, Gradients):
        raise errors.ArgumentTypeError(
            f"{name}: expected the gradients that backward gives, received {errors.shown(grads)}"
        )
    return grads
