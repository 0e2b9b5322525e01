"""How functions, methods and classes of PyTorch may be called, and whether those of the face may be, too."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from collections.abc import Iterator
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from adjoint.torch.arguments import OTHER_NAMES

PLACES = (
    "torch Tensor nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations "
    "nn.utils.prune optim optim.lr_scheduler optim.swa_utils utils.data utils.checkpoint autograd autograd.functional "
    "autograd.forward_ad autograd.graph func linalg fft special random amp signal.windows testing distributions"
).split()
UNKNOWN = object()  # a default that is not written out


def at(root: Any, path: str) -> Any:
    """What a library has in a place."""
    for part in [] if path == "torch" else path.split("."):
        root = getattr(root, part, None) or importlib.import_module(f"{root.__name__}.{part}")
    return root


# --- of PyTorch: what its stubs, its schemas and Python say -----------------------------------------------------


@functools.cache
def _stubs(torch: Any, name: str, of: str | None = None) -> dict[str, list[Signature]]:
    """The signatures of functions, or of methods of a class, in a file of stubs."""
    path = Path(torch.__file__).parent / name
    body: list[Any] = ast.parse(path.read_text()).body
    if of is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == of)
    found: dict[str, list[Signature]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(_written(node.args))
    return found


def _written(args: ast.arguments) -> Signature:
    def default(node: Any) -> Any:
        try:
            found = ast.literal_eval(node)
        except ValueError:
            return UNKNOWN
        return UNKNOWN if found is ... else found

    known: list[Parameter] = []
    places = [*args.posonlyargs, *args.args]
    without = len(places) - len(args.defaults)
    for i, arg in enumerate(places):
        kind = Parameter.POSITIONAL_ONLY if i < len(args.posonlyargs) else Parameter.POSITIONAL_OR_KEYWORD
        given = Parameter.empty if i < without else default(args.defaults[i - without])
        known.append(Parameter(arg.arg, kind, default=given))
    if args.vararg is not None:
        known.append(Parameter(args.vararg.arg, Parameter.VAR_POSITIONAL))
    for arg, node in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        given = Parameter.empty if node is None else default(node)
        known.append(Parameter(arg.arg, Parameter.KEYWORD_ONLY, default=given))
    if args.kwarg is not None:
        known.append(Parameter(args.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(known)


_OTHER_OVERLOADS = ("out", "names", "dimname", "output", "grad_input")


def _schemas(torch: Any, name: str) -> list[Signature]:
    found, written = [], False
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        written |= schema.overload_name.endswith("out")
        if schema.overload_name.endswith(_OTHER_OVERLOADS) or any([arg.is_out for arg in schema.arguments]):
            continue
        known = []
        for arg in schema.arguments:
            kind = Parameter.KEYWORD_ONLY if arg.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD
            named = "input" if arg.name == "self" else arg.name
            given = arg.default_value if arg.has_default_value() else Parameter.empty
            if arg.name in ("out", "dtype", "layout", "device", "pin_memory") and given is Parameter.empty:
                given = None
            if any([p.default is not Parameter.empty for p in known]) and given is Parameter.empty:
                given = UNKNOWN if kind is Parameter.POSITIONAL_OR_KEYWORD else given
            known.append(Parameter(named, kind, default=given))
        found.append(Signature(known))
    out = Parameter("out", Parameter.KEYWORD_ONLY, default=None)
    return [Signature([*way.parameters.values(), out]) for way in found] if written else found


def signatures(torch: Any, place: str, name: str) -> list[Signature]:
    """The ways in which a function of PyTorch may be called."""
    value = getattr(at(torch, place), name)
    if inspect.isclass(value):
        try:
            return [_signature(value)]
        except (TypeError, ValueError):
            return []
    if place == "Tensor":
        known = _stubs(torch, "_C/__init__.pyi", "TensorBase").get(name, [])
        if not inspect.isfunction(value) and known:
            return known
    try:
        return [_signature(value)]
    except (TypeError, ValueError):
        pass
    for file in ("_C/_VariableFunctions.pyi", "_C/__init__.pyi", "_C/_nn.pyi", "nn/functional.pyi"):
        if place in ("torch", "nn.functional") and (known := _stubs(torch, file).get(name)):
            return known
    prefix = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}.get(place, "")
    return _schemas(torch, value.__name__ if prefix and value.__name__.startswith(prefix) else prefix + name)


def _signature(value: Any) -> Signature:
    return inspect.signature(value)


# --- of both ----------------------------------------------------------------------------------------------------


def pairs(torch: Any, ours: Any) -> Iterator[tuple[str, str]]:
    """The place and the name of what both have, and can be called."""
    for place in PLACES:
        there, here = at(torch, place), at(ours, place)
        named = set(getattr(there, "__all__", ()))
        for name in sorted({n for n in dir(there) if not n.startswith("_")} | named):
            value = getattr(there, name, None)
            if not callable(value) or type(value).__module__ == "typing":
                continue
            module = getattr(value, "__module__", None) or "torch"
            if name not in named and (not module.startswith("torch") or name.endswith("Storage")):
                continue
            if inspect.ismodule(value) or not hasattr_quietly(here, name):
                continue
            yield place, name


def hasattr_quietly(value: Any, name: str) -> bool:
    try:
        getattr(value, name)
    except Exception:
        return False
    return True


_PLACES = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMES = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def effective(function: Any, method: bool = False) -> Signature:
    """What a function takes: a wrapper adds the keywords that it names itself."""
    added: dict[str, Parameter] = {}
    step = function
    while "__signature__" not in vars(step) and hasattr(step, "__wrapped__"):
        own = inspect.signature(step, follow_wrapped=False).parameters.values()
        added.update({p.name: p for p in own if p.kind is Parameter.KEYWORD_ONLY})
        step = step.__wrapped__
    known = list(inspect.signature(step).parameters.values())
    if getattr(function, "__name__", "").endswith("_"):  # which writes to the tensor itself
        known = [p for p in known if p.name != "out"]
    if known and known[0].name == "self" and not method:  # torch.relu_ is a method, of which `input` is the tensor
        known[0] = known[0].replace(name="input")
    if inspect.isclass(function) or not added:
        return Signature(known)
    last = [known.pop()] if known and known[-1].kind is Parameter.VAR_KEYWORD else []
    known += [p for name, p in added.items() if name not in {k.name for k in known}]
    return Signature([*known, *last])


def _named(name: str, known: dict[str, Any]) -> str:
    """The name that the face's function has for an argument."""
    own = OTHER_NAMES.get(name, name)
    return own if name not in known and own in known else name


def differences(theirs: list[Signature], ours: Signature, method: bool) -> list[str]:
    """What the face takes otherwise: places, names, defaults. Of several ways to call one is enough for a place."""
    found = []
    mine = list(ours.parameters.values())
    if method and mine and mine[0].kind in _PLACES:
        mine = mine[1:]
    any_place = any([p.kind is Parameter.VAR_POSITIONAL and p.name != "older" for p in mine])
    any_name = any([p.kind is Parameter.VAR_KEYWORD for p in mine])
    by_place = [p for p in mine if p.kind in _PLACES]
    by_name = {p.name: p for p in mine if p.kind in _NAMES}
    ways = [list(signature.parameters.values())[method:] for signature in theirs]
    ways = [[p.replace(name=_named(p.name, by_name)) for p in way] for way in ways]
    open_place = any([p.kind is Parameter.VAR_POSITIONAL for way in ways for p in way])
    open_name = any([p.kind is Parameter.VAR_KEYWORD for way in ways for p in way])
    placed = [[p for p in way if p.kind in _PLACES] for way in ways]
    most = max([len(way) for way in placed])
    if most > len(by_place) and not any_place:
        found.append(f"takes {len(by_place)} by place, not {most}")
    if (any_place and not open_place) or (len(by_place) > most and not open_place):
        found.append(f"takes {'any number' if any_place else len(by_place)} by place, not {most}")
    for i, p in enumerate(by_place[:most]):
        names = [way[i].name for way in placed if i < len(way) and way[i].kind is not Parameter.POSITIONAL_ONLY]
        if names and p.name not in names:
            found.append(f"at {i} {p.name}, not {' or '.join(dict.fromkeys(names))}")
    named: dict[str, list[Any]] = {}
    for way in ways:
        for p in way:
            if p.kind in _NAMES:
                named.setdefault(p.name, []).append(p.default)
    for name, defaults in named.items():
        known = by_name.get(name)
        if known is None:
            found += [] if any_name else [f"no {name}="]
        elif (
            len(defaults) == len(ways)
            and UNKNOWN not in defaults
            and not any([same(default, known.default) for default in defaults])
        ):
            needed = known.default is Parameter.empty
            found.append(f"{name} {'is needed' if needed else f'is {known.default!r}'}, not {defaults}")
    if any_name and not open_name:
        found.append("takes any name")
    if not open_name:
        found += [f"{name}= is not PyTorch's" for name in by_name if name not in named]
    return list(dict.fromkeys(found))


_NOTHING = ("None", "False", "()")


def same(a: Any, b: Any) -> bool:
    if a is b or str(a) == "torch.strided" or (str(a) in _NOTHING and str(b) in _NOTHING):
        return True
    if type(a).__module__.startswith(("torch", "adjoint")) or callable(a):
        return str(a).rpartition(".")[2] == str(b).rpartition(".")[2] or getattr(a, "__name__", 0) == getattr(
            b, "__name__", 1
        )
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return list(a) == list(b)
    return bool(a == b)


def has_signature(function: Any) -> bool:
    """Whether Python knows what it takes."""
    try:
        effective(function)
    except (TypeError, ValueError):
        return False
    return True
