"""Every operator of `adjoint.autograd` on every function of HIPS autograd: the answers are HIPS autograd's.

Functions are called with other shapes, data types and options than where their rules are compared. HIPS autograd's own
answer is wrong for what `not_theirs` says: there differences of values are compared with.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from numpy.testing import assert_allclose
from test_face_autograd_functions import BINARY, CASES, COMPLEX, ELEMENTWISE, OURS, THEIRS, Case, phase

import adjoint.autograd as face

hips = peer("autograd")

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

rng = np.random.default_rng(17)


def array(*shape: int) -> Any:
    """Numbers between 0.4 and 1.6 of either sign."""
    return rng.uniform(0.4, 1.6, shape) * np.where(rng.uniform(size=shape) < 0.5, -1, 1)


def matrices(*shape: int) -> Any:
    return array(*shape) + 4 * np.eye(shape[-1])


# --- more calls of functions: axes, options, and shapes that meet ---------------------------------

MORE: dict[str, Case] = {}


def add(name: str, f: Callable[..., Any], *args: Any) -> None:
    assert name not in MORE
    MORE[name] = (f, args)


def calls(path: str, *given: Any, **options: Any) -> Callable[..., Any]:
    """The function of a package at this path, of arrays and then of these arguments."""
    *modules, last = path.split(".")

    def f(n: Any, *arrays: Any) -> Any:
        place = n.np
        for name in modules:
            place = getattr(place, name)
        return getattr(place, last)(*arrays, *given, **options)

    return f


for _name in "sum mean prod var std max min".split():
    for _axis in (None, 0, -1, (0, 2), (1,), (0, 1, 2), ()):
        for _keep in (False, True):
            add(f"{_name} {_axis} {_keep}", calls(_name, axis=_axis, keepdims=_keep), array(2, 3, 4))
    add(f"{_name} of a number", calls(_name), array())
for _name in ("sum", "prod"):
    add(f"{_name} of nothing", calls(_name, axis=1), array(2, 0))
    add(f"{_name} of no rows", calls(_name, axis=0), array(2, 0))
for _axis in (0, 1, -1):
    add(f"concatenate {_axis}", lambda n, x, y, a=_axis: n.np.concatenate((x, y, x), a), array(2, 2, 2), array(2, 2, 2))
    add(f"stack {_axis}", lambda n, x, y, a=_axis: n.np.stack((x, y, x), a), array(2, 2, 2), array(2, 2, 2))
    add(f"split {_axis}", lambda n, x, a=_axis: n.np.split(x, 2, a)[1], array(4, 2, 2))
    for _name in "cumsum expand_dims sort".split():
        add(f"{_name} {_axis}", calls(_name, _axis), array(5) if _name == "sort" and _axis != 1 else array(2, 3, 4))
    add(f"repeat {_axis}", calls("repeat", 2, _axis), array(2, 3, 4))
    add(f"roll {_axis}", calls("roll", -2, _axis), array(2, 3, 4))
    add(f"diff {_axis}", calls("diff", axis=_axis), array(3, 4, 5))
    add(f"norm {_axis}", calls("linalg.norm", axis=_axis), array(3, 4, 5))
    for _name, _length in itertools.product(("fft", "ifft"), (None, 3, 6)):
        add(f"{_name} {_axis} {_length}", calls(f"fft.{_name}", _length, _axis, norm="ortho"), array(4, 4, 4))
SHAPES = [(), (1,), (3,), (2, 3), (3, 3), (1, 3), (2, 1), (2, 3, 3), (0, 3)]
for _name in "dot matmul inner outer kron add multiply divide power maximum arctan2 hypot logaddexp mod".split():
    for _s, _t in itertools.product(SHAPES, repeat=2):
        add(f"{_name} {_s} {_t}", calls(_name), abs(array(*_s)), array(*_t))
for _equation, _s, _t in (
    ("ij,jk", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("...ij,...jk->...ik", (2, 2, 3), (3, 4)),
    ("ii,i", (3, 3), (3,)), ("ab,ab->", (0, 3), (0, 3)), ("ij,ij->ij", (1, 3), (2, 3)),
    ("i...,...i->...", (3, 2), (2, 3)),
):  # fmt: skip
    add(f"einsum {_equation}", lambda n, x, y, e=_equation: n.np.einsum(e, x, y), array(*_s), array(*_t))
for _s, _t, _axes in (((2, 3), (4,), 0), ((2, 3, 4), (3, 4, 2), 2), ((2, 3, 4), (3, 5), ((-2,), (-2,)))):
    add(f"tensordot {_s} {_t}", calls("tensordot", _axes), array(*_s), array(*_t))
for _s in ((1, 1), (3, 3), (2, 3, 3), (2, 1, 3, 3)):
    for _name in "inv det pinv".split():
        add(f"{_name} {_s}", calls(f"linalg.{_name}"), matrices(*_s))
for _s, _t in (((3, 3), (3,)), ((2, 3, 3), (2, 3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2))):
    add(f"solve {_s} {_t}", calls("linalg.solve"), matrices(*_s), array(*_t))
for _key in (
    slice(None, None, -2), (slice(1), 0), (Ellipsis, 1), (None, 0), np.array([1, 0, 1]), slice(0, 0), (),
    (np.array([0, 1, 1]), slice(None), np.array([0, 0, 3])), (0, np.array([[0, 1], [2, 2]])),
):  # fmt: skip
    add(f"index {_key}", lambda n, x, k=_key: x[k], array(2, 3, 4))
for _power in (3, -2, 0, 1, 2, 2.0):
    add(f"power {_power!r}", lambda n, x, p=_power: x**p, array(3) if _power == -2 else np.array([0.0, 1.0, -2.0]))
for _k in (-1, 0, 2):
    for _name in "trace tril triu rot90".split():
        add(f"{_name} {_k}", calls(_name, _k), array(3, 4))
    add(f"diag {_k}", calls("diag", _k), array(3, 3))


# --- what is called, and with what ----------------------------------------------------------------


def plain(name: str) -> bool:
    """Functions that work element by element, for which any shapes meet."""
    ours = name in (*ELEMENTWISE, *BINARY, "arccosh", "acosh")
    return ours or (
        name.startswith(("special.", "stats.")) and not any(s in name for s in ("rows", "weighted", "multi", "dirich"))
    )


def numbers(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([float(np.asarray(a).flat[0]) for a in args])


def variants(kind: str) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    if kind == "options":
        yield from ((name, f, args) for name, (f, args) in MORE.items())
    for name, (f, args) in CASES.items():
        if kind == "single precision":
            yield name, f, tuple([np.asarray(a, np.complex64 if np.iscomplexobj(a) else np.float32) for a in args])
        if kind == "complex" and name in COMPLEX:
            yield f"{name} complex64", f, tuple([phase(a, 5 + k).astype(np.complex64) for k, a in enumerate(args)])
            if len(args) == 2:
                yield f"{name} complex, real", f, (phase(args[0]), args[1])
                yield f"{name} real, complex", f, (args[0], phase(args[1]))
        if kind == "shapes" and plain(name):
            yield f"{name} of numbers", f, numbers(args)
            yield f"{name} of no axes", f, tuple([np.asarray(x) for x in numbers(args)])
            yield f"{name} of no rows", f, tuple([np.asarray(a)[:0] for a in args])
            if len(args) > 1:
                yield f"{name} across", f, (np.asarray(args[0])[:, :1], *[np.asarray(a)[0] for a in args[1:]])
                yield f"{name} number first", f, (numbers(args)[0], *args[1:])
                yield f"{name} number last", f, (*args[:-1], np.asarray(numbers(args)[-1]))


def like(x: Any, random: np.random.Generator) -> Any:
    out = np.asarray(random.normal(size=np.shape(x)))
    if np.iscomplexobj(x):
        out = out + 1j * random.normal(size=np.shape(x))
    return out.astype(np.asarray(x).dtype)


def operators(package: Any, n: SimpleNamespace, f: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """What each operator gives, by its name and argument, as a function that is not called yet."""
    random = np.random.default_rng(3)

    def fun(*xs: Any) -> Any:
        return f(n, *xs)

    value = f(OURS, *args)
    g, tangents = like(value, random), [like(x, random) for x in args]
    every = tuple(range(len(args)))
    reversed_twice = package.differential_operators.make_jvp_reversemode  # which HIPS autograd has there alone

    def weighed(h: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: n.np.sum(n.np.real(h(*xs) * g))

    found: dict[str, Any] = {
        "value_and_grad": lambda: package.value_and_grad(weighed(fun), every)(*args),
        "make_vjp": lambda: package.make_vjp(fun, every)(*args)[0](g),
        "checkpoint": lambda: package.grad(weighed(package.checkpoint(fun)), every)(*args),
    }
    for k, v in enumerate(tangents):
        found[f"make_jvp {k}"] = lambda k=k, v=v: package.make_jvp(fun, k)(*args)(v)
        found[f"deriv {k}"] = lambda k=k: package.deriv(fun, k)(*args)
        if np.iscomplexobj(value):
            continue
        found[f"make_jvp_reversemode {k}"] = lambda k=k, v=v: reversed_twice(fun, k)(*args)(v)
        found[f"elementwise_grad {k}"] = lambda k=k: package.elementwise_grad(fun, k)(*args)
        found[f"make_ggnvp {k}"] = lambda k=k, v=v: package.make_ggnvp(fun, _half_squares(n), k)(*args)(v)
        if not np.iscomplexobj(v) and v.size:
            found[f"jacobian {k}"] = lambda k=k: package.jacobian(fun, k)(*args)
            found[f"hessian {k}"] = lambda k=k: package.hessian(weighed(fun), k)(*args)
            found[f"hvp {k}"] = lambda k=k, v=v: package.hessian_vector_product(weighed(fun), k)(*args, v)
    return found


def _half_squares(n: Any) -> Callable[[Any], Any]:
    return lambda y: 0.5 * n.np.sum(y**2)


def leaves(x: Any) -> list[Any]:
    return [y for part in x for y in leaves(part)] if isinstance(x, (tuple, list)) else [x]


# --- where HIPS autograd is wrong -----------------------------------------------------------------


def not_theirs(name: str, operator: str) -> bool:
    """Answers of HIPS autograd that differences of values refute, or whose shape is not that of the argument."""
    function, _, rest = name.partition(" ")
    if function == "kron":  # of matrices beside stacks
        return "(2, 3, 3)" in rest[-9:]
    if function == "repeat":
        return rest == "-1"
    if function in ("outer", "solve", "where"):  # sums over axes that meet are left out, tangents are not broadcast
        return "(" in rest or "complex" in rest
    return {
        "linalg.norm": "complex64" in rest and operator.startswith(("make_jvp", "deriv")),  # of a real function complex
        "linalg.eigh": "vectors" in rest and operator.startswith(("make_ggnvp", "make_jvp")),  # drops what is 0 now
    }.get(function, False)


def differences(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """The tangent and the gradient against central differences, in double precision."""
    random = np.random.default_rng(9)
    args = tuple([np.asarray(a, np.complex128 if np.iscomplexobj(a) else np.float64) for a in args])

    def fun(*xs: Any) -> Any:
        return f(OURS, *xs)

    for k, x in enumerate(args):
        v = like(x, random)
        before, after = [[*args[:k], x + s * v, *args[k + 1 :]] for s in (-1e-6, 1e-6)]
        expected = (fun(*after) - fun(*before)) / 2e-6
        value, tangent = face.make_jvp(fun, k)(*args)(v)
        assert_allclose(tangent, expected, rtol=1e-6, atol=1e-6)
        g = like(value, random)
        pulled = face.make_vjp(fun, k)(*args)[0](g)
        assert np.shape(pulled) == np.shape(x)
        assert_allclose(np.sum(np.real(pulled * v)), np.sum(np.real(g * tangent)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", ["options", "single precision", "complex", "shapes"])
def test_answers_are_those_of_hips_autograd(kind: str, part: int) -> None:
    compared = 0
    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, f, args in list(variants(kind))[part::4]:
            with each(name):
                try:
                    value = f(THEIRS, *args)
                except (ValueError, TypeError, IndexError):  # shapes that do not meet
                    with pytest.raises((ValueError, TypeError, IndexError)):
                        f(OURS, *args)
                    continue
                single = any(np.asarray(x).dtype in (np.float32, np.complex64) for x in args)
                tolerance = 2e-3 if single else 1e-7
                if np.asarray(value).dtype.kind not in "fc":
                    continue
                ours, theirs = operators(face, OURS, f, args), operators(hips, THEIRS, f, args)
                doubted = [operator for operator in theirs if not_theirs(name, operator)]
                if doubted:
                    differences(f, args)
                for operator in theirs.keys() - set(doubted):
                    try:
                        expected = leaves(theirs[operator]())
                    except Exception:
                        continue  # what it has no rule for, and what its rules do not foresee
                    found = leaves(ours[operator]())
                    compared += 1
                    for x, y in zip(found, expected, strict=True):
                        assert np.shape(x) == np.shape(y), operator
                        assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=operator)
    assert compared > 100, compared
