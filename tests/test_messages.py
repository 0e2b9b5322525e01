"""What users read when something goes wrong: the whole text, in one place.

Each message says what was asked, what was received, and the way out. Rows of other tables (shapes, dtypes, axes and
indices in `test_errors.py`, transforms in `test_transform_errors.py`, single arguments in `test_arguments.py`) say
their telling parts there; a slow test counts which of all messages these tables come to.
"""

from __future__ import annotations

import ast
import functools
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_arguments
import test_errors
import test_transform_errors
from conftest import peer

import adjoint as ad
from adjoint import errors

ROOT = Path(ad.__file__).parent
V = np.array([1.0, 2.0, 3.0])


def leaf(values: Any = V) -> Any:
    return ad.tensor(values, dtype=ad.float64).require_grad()


def assigned(place: Any, value: Any) -> None:
    n = np.zeros(3)
    n[place] = value


def stepped() -> Any:
    """A step that makes no leaf, and a look-up as if it did."""
    w = leaf()
    w = w - 0.1 * (w * w).sum().backward()[w]
    return (w * w).sum().backward()[w]


def stepped_twice() -> Any:
    v = w = leaf()
    for _ in range(2):
        grads = (w * w).sum().backward()
        w = w - 0.1 * grads[v]
    return (w * w).sum().backward()


def replaced(times: int, back: bool) -> Any:
    old = new = leaf()
    for _ in range(times):
        new = new.with_value(new.inner() + 1)
    grads = ((old if not back else new) ** 2).sum().backward()
    return grads[new if not back else old]


def with_rule(read: Callable[[Any], Any]) -> Any:
    @ad.custom_vjp
    def wave(x: Any) -> Any:
        return ad.sin(x)

    wave.defvjp(lambda x: (ad.sin(x), x), lambda x, g: (g * np.cos(read(x)),))
    return wave


def scipy(path: str, *args: Any) -> Any:
    """A call of a function of SciPy's on arguments that may be tensors."""
    module, _, name = path.rpartition(".")
    return getattr(pytest.importorskip(f"scipy.{module}"), name)(*args)


AWAY = leaf()  # what functions close over
STRONG = "autodiff[strong_zero]<numpy>"
SILENTLY = "would take a tracked tensor of shape (3,) out of its graph silently"
ELSEWHERE = "computes with NumPy's numbers, and would take a tracked tensor of shape"

# what the user did; the type of the error; its text, or parts of it in their order with ... between
MESSAGES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # --- tensors and NumPy's arrays ---
    "n[:] = w": (lambda: assigned(slice(None), leaf()), errors.TrackedError,
        (f"n[i] = x: n is an array of NumPy's, and {SILENTLY}; make n a tensor, as by ad.zeros, and assign to that, or "
        "join a list of tensors by ad.stack; x.detach() leaves the graph")),
    "np.array([w, w])": (lambda: np.array([leaf(), leaf()]), errors.TrackedError,
        (f"conversion to a NumPy array {SILENTLY}; write x.detach() to leave it, and to compute on ad.stack, which "
        "makes one tensor of several, or functions of adjoint")),
    "math.sin(w)": (lambda: __import__("math").sin(leaf(1.0)), errors.TrackedError,
        (".item() reads the value of a tracked tensor; float(x) would take it out of its graph silently. To compute "
        "on: ad.stack makes one array of tensors, and ad.sin is to tensors what math.sin is to numbers")),
    "np.sin(w, out=n)": (lambda: np.sin(leaf(), out=np.zeros(3)), errors.ArgumentTypeError,
        ("np.sin of a tensor: out= is not supported; tensors are values: write y = ..., or y[...] = ... to give an "
        "object a new value")),
    "n += w": (lambda: np.add(n := np.zeros(3), leaf(), out=n), errors.ArgumentTypeError,
        ("np.add of a tensor: out= is an array of NumPy's, which takes no tensor in place; write u = u + x for u += x, "
        "and u is a tensor")),
    "np.spacing(w)": (lambda: np.spacing(leaf()), errors.ArgumentTypeError,
        ("np.spacing does not take tensors: use ad.nextafter; np.spacing(x.numpy()) computes with the values, "
        "without gradients")),
    "a tracked tensor on a device without gradients": (lambda: ad.full(2, leaf(1.0), device="numpy"),
        errors.TrackedError, ("to_device: the tensor is tracked on autodiff<numpy>, and numpy does not continue its "
        "chain; detach() makes it a constant, inner() takes off one level")),
    # --- SciPy's functions ---
    "scipy.special.struve(1, w)": (lambda: scipy("special.struve", 1, leaf()), errors.ArgumentTypeError,
        ("scipy.special.struve does not take tensors: adjoint has no function of this name, and ad.primitive makes one "
        "of it and of its derivative; scipy.special.struve(x.numpy()) computes with the values, without gradients")),
    "scipy.special.softmax(w)": (lambda: scipy("special.softmax", leaf()), errors.TrackedError,
        (f"scipy.special.softmax {ELSEWHERE} (3,) out of its graph silently; for tensors there is ad.special.softmax; "
        "x.detach() leaves the graph")),
    "scipy.linalg.solve(A, w)": (lambda: scipy("linalg.solve", np.eye(3), leaf()), errors.TrackedError,
        f"scipy.linalg.solve {ELSEWHERE}...ad.linalg.solve; x.detach()"),
    "scipy.linalg.cholesky(A)": (lambda: scipy("linalg.cholesky", leaf(np.eye(3))), errors.TrackedError,
        f"scipy.linalg.cholesky {ELSEWHERE}...ad.linalg.cholesky; x.detach()"),
    "scipy.stats.norm.logpdf(w)": (lambda: pytest.importorskip("scipy.stats").norm.logpdf(leaf()), errors.TrackedError,
        f"scipy.stats.norm.logpdf {ELSEWHERE}...x.detach()"),
    "scipy.integrate.solve_ivp": (lambda: scipy("integrate.solve_ivp", lambda t, y: -y * leaf(), (0, 1), np.ones(3)),
        errors.TrackedError, f"scipy.integrate.solve_ivp {ELSEWHERE}...for tensors there is ad.odeint; x.detach()"),
    "scipy.integrate.quad": (lambda: scipy("integrate.quad", lambda x: leaf(1.0) * x, 0, 1), errors.TrackedError,
        f"scipy.integrate.quad {ELSEWHERE} ()...ad.trapezoid, or a sum over the nodes of a quadrature rule"),
    "scipy.interpolate.CubicSpline": (lambda: scipy("interpolate.CubicSpline", np.arange(3), leaf()),
        errors.TrackedError,
        f"scipy.interpolate.CubicSpline {ELSEWHERE}...ad.external gives a function of NumPy arrays its derivatives"),
    "scipy.optimize.fsolve": (lambda: scipy("optimize.fsolve", lambda x: x, leaf()), errors.TrackedError,
        f"scipy.optimize.fsolve {ELSEWHERE}...ad.implicit.root, which has derivatives"),
    "ad.scipy.minimize over a tracked closure": (
        lambda: ad.scipy.minimize(lambda x: ((x - AWAY) ** 2).sum(), np.ones(3)), errors.TrackedError,
        ("ad.scipy: a function closes over a leaf of shape (3,) that require_grad tracks, and SciPy's search leaves "
        "the graph; use w.detach() there, or see ad.implicit for solutions with derivatives")),
    # --- PyTorch's functions ---
    "torch.sin(w)": (lambda: peer("torch").sin(leaf()), errors.ArgumentTypeError,
        ("PyTorch's sin takes PyTorch's own tensors: ad.sin is for tensors of adjoint, and "
        "x.to_device('torch').native() is the array of one there, which leaves the graph")),
    "torch.nn.functional.relu(w)": (lambda: peer("torch").nn.functional.relu(leaf()), errors.ArgumentTypeError,
        "PyTorch's relu...ad.nn.relu is for tensors"),
    "torch.linalg.solve(A, w)": (lambda: peer("torch").linalg.solve(leaf(np.eye(3)), leaf()), errors.ArgumentTypeError,
        "PyTorch's linalg_solve...ad.linalg.solve is for tensors"),
    "a torch tensor times w": (lambda: peer("torch").ones(3) * leaf(), errors.DeviceError,
        ("multiply: an array on torch:cpu meets a tensor on autodiff<numpy>; move the tensor with "
        "to_device('torch:cpu'), or take the array over with ad.asarray(array, device='autodiff<numpy>')")),
    # --- tensors that do not meet ---
    "levels of different chains": (
        lambda: leaf() + ad.ones(3, dtype=ad.float64, device=STRONG), errors.DeviceError,
        ("the float64 leaf of shape (3,), which require_grad tracks, on autodiff<numpy> and the float64 tensor of "
        "shape (3,) on autodiff[strong_zero]<numpy> do not meet: neither backend is in the other's chain; go down to a "
        "common one with inner(), or take x.detach()")),
    "libraries": (lambda: leaf() * ad.ones(3, device="reference"), errors.DeviceError,
        ("the float64 leaf of shape (3,), which require_grad tracks, on autodiff<numpy> and the float64 tensor of "
        "shape (3,) on reference do not meet: they compute with different libraries; move one with "
        "to_device('reference')")),
    "a closure of another chain": (
        lambda: ad.grad(lambda x: (x * AWAY).sum())(ad.ones(3, device=STRONG).require_grad()),
        errors.DeviceError,
        ("the float64 tensor of shape (3,) of a transform's function on "
        "...and the float64 leaf of shape (3,), which require_grad tracks, on autodiff<numpy> do not meet: the "
        "transform was not built on autodiff<numpy>; make all that is tracked arguments of its function, on one "
        "device, or take w.detach() of what is constant")),
    # --- gradients ---
    "w = w - rate * g, and its gradient": (stepped, errors.NoGradientError,
        ("no gradient: the tensor of shape (3,) is an intermediate result, not a leaf; ask for it with "
        "backward(wrt=[x]). After a step w = w - rate * g it is one too: write w = w.with_value(w.inner() - rate * g), "
        "or (w - rate * g).detach().require_grad()")),
    "w = w - rate * g, twice": (stepped_twice, errors.FreedGraphError,
        ("backward: the graph through 'subtract' was used up by an earlier backward, which frees it; call that one "
        "with retain_graph=True, or compute the root again. After a step w = w - rate * g write "
        "(w - rate * g).detach().require_grad(), a new leaf")),
    "w -= rate * g": (lambda: leaf().__isub__(1.0), errors.GraphError,
        ("augmented assignment on a leaf tensor of shape (3,): the graph answers for its value; w.with_value(v) gives "
        "a new leaf, w.detach() a constant that can be assigned to")),
    "the new leaf": (lambda: replaced(1, back=False), errors.NoGradientError,
        ("no gradient: the tensor of shape (3,) is the new leaf that with_value made, and these gradients are for the "
        "old one: look up that, or compute the root with the new one first")),
    "the new leaf, after steps": (lambda: replaced(3, back=False),
        errors.NoGradientError, "the new leaf that with_value"),
    "the old leaf": (lambda: replaced(1, back=True), errors.NoGradientError,
        ("no gradient: the tensor of shape (3,) is the old leaf, of which with_value made the new one that these "
        "gradients are for: look up that, as after w = w.with_value(...)")),
    "the old leaf, after steps": (lambda: replaced(3, back=True), errors.NoGradientError, "is the old leaf, of which"),
    "a leaf that was not used": (lambda: (leaf() * 2).sum().backward()[leaf()], errors.NoGradientError,
        ("no gradient: the tensor of shape (3,) was not reached from the root; ad.why(x, root) tells where the path is "
        "cut")),
    "a constant": (lambda: (leaf() * 2).sum().backward()[ad.ones(3)], errors.NoGradientError,
        "no gradient: the tensor of shape (3,) is not a leaf; call require_grad() before using it"),
    "an array as key": (lambda: (leaf() * 2).sum().backward()[V], errors.NoGradientError,
        "a key of Gradients is a tensor, received ndarray"),
    "backward of what has no leaf": (lambda: ad.ones(3).backward(), errors.GraphError,
        ("backward: the tensor of shape (3,) depends on no leaf; call require_grad() on what it is computed from, and "
        "ad.why(leaf, x) tells where a path is cut")),
    "w - grads": (lambda: leaf() - (leaf() * 2).sum().backward(), errors.ArgumentTypeError,
        ("w - grads: a tensor of shape (3,) meets the gradients of all leaves; grads[w] is that of one, as in "
        "w.with_value(w.inner() - 0.1 * grads[w])")),
    # --- transforms ---
    "ad.grad(f)(None)": (lambda: ad.grad(lambda x: x)(None), errors.ArgumentError,
        "grad: there is nothing to differentiate by: argument 0 is None"),
    "ad.grad(f)()": (lambda: ad.grad(lambda x: x)(), errors.ArgumentError,
        "grad: argnums is 0, but the call has 0 positional arguments"),
    "ad.grad(f)(3)": (lambda: ad.grad(lambda x: x * x)(3), errors.DtypeError,
        "grad: argument 0 is int 3, not an array of real or complex floating dtype; write it as 3.0"),
    "ad.grad of a vector": (lambda: ad.grad(lambda x: x)(V), errors.ShapeError,
        ("grad: the function gives a result of shape (3,); gradients are of one scalar, so sum it, or take ad.jacobian "
        "or ad.vjp")),
    "x.item() in ad.grad": (lambda: ad.grad(lambda x: x * x.item())(2.0), errors.TrackedError,
        ("item(): a transform that is running differentiates what comes of this tensor of shape (), and its value "
        "would lose the derivative silently; ad.stop_gradient(x).item() is the value on purpose, and "
        "ad.debug.print shows it")),
    "if x > 0 in ad.vmap": (lambda: ad.vmap(lambda x: x if x > 0 else -x)(V), errors.TrackedError,
        ("the value of a batched tensor of shape () was asked for, which differs between examples; inside vmap write "
        "ad.where for a choice, or return the tensor")),
    "a tensor kept from inside": (
        lambda: (kept := [], ad.grad(lambda x: (kept.append(x), x.sum())[1])(V), kept[0] + 1), errors.EndedError,
        ("add: a tensor of a transform's level (autodiff<numpy>) was used after the transform had returned; return it "
        "from the function instead of keeping it: results may be trees, and has_aux=True is for what stands beside "
        "them")),
    "a rule that reads values": (
        lambda: ad.hessian(lambda x: with_rule(lambda r: r.numpy())(x).sum())(V), errors.TrackedError,
        ("custom_vjp(wave): its backward rule meets what a transform follows: write it with functions of adjoint, or "
        "take ad.external, whose rules get NumPy arrays. numpy(): a transform that is running differentiates")),
    "a rule that reads values, in a batch": (
        lambda: ad.vmap(ad.grad(lambda x: with_rule(lambda r: r.numpy())(x)))(V), errors.TrackedError,
        "custom_vjp(wave): its backward rule...numpy(): ad.vmap runs its function once for all examples"),
    # --- names ---
    "ad.cat": (lambda: ad.cat, AttributeError, "ad.concat"),
    "x.unsqueeze": (lambda: leaf().unsqueeze(0), AttributeError, "x.expand_dims(axis)"),
    "x in a dictionary": (lambda: {leaf(): 1},
        errors.ArgumentTypeError, "unhashable type: 'Tensor'...id(x)...grads[x]"),
    "polygamma of a tracked order": (lambda: ad.special.polygamma(leaf(1.0), 2.0), errors.TrackedError,
        "polygamma: orders are whole numbers, between which there is no derivative; pass n.detach()"),
    # --- Checked ---
    "a new nan under ad.Checked": (lambda: ad.log(ad.tensor([-1.0], device=ad.Checked(ad.NumPy()))),
        errors.NonFiniteError,
        ("forward: log(float32 (1,)) gave nan at (0,), and no operand has nan; keep operands where it is finite, with "
        "ad.where or ad.clip, or pass finite=False\n  called from ...test_messages.py...")),
}  # fmt: skip


def pattern(text: str) -> str:
    return ".*".join(re.escape(part) for part in text.split("..."))


@pytest.mark.parametrize("done", MESSAGES)
def test_messages(done: str) -> None:
    call, kind, text = MESSAGES[done]
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind or kind is AttributeError
    message = str(caught.value)
    assert re.search(pattern(text), message, re.DOTALL), message
    assert len(message) < 600


def test_numpy_names_our_error_as_the_cause() -> None:
    """NumPy raises an error of its own where it asks a number of a tensor: ours stands above it."""
    with pytest.raises(ValueError, match="setting an array element") as caught:
        assigned(0, leaf(1.0))
    assert re.match(r"n\[i\] = x: n is an array of NumPy's, .*ad\.zeros", str(caught.value.__cause__))


def test_no_file_of_our_own_making_is_shown() -> None:
    """Functions made from source are in no file: warnings and tracebacks show one that there is."""
    x = leaf([-1.0, 4.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ad.log(x)
    assert [Path(w.filename).name for w in caught] == ["codegen.py"]
    assert "ad.Checked" in Path(caught[0].filename).read_text().splitlines()[caught[0].lineno - 1]
    device = ad.Autodiff(ad.Checked(ad.NumPy()))
    with pytest.raises(errors.NonFiniteError, match=r"called from .*test_messages\.py:\d+: ad\.log") as failed:
        ad.log(ad.tensor([-1.0], device=device).require_grad())
    for frame in traceback.extract_tb(failed.value.__traceback__):
        assert Path(frame.filename).exists()


# --- which messages a table comes to -------------------------------------------------------------


def rows() -> Iterator[Callable[[], Any]]:
    """Everything that goes wrong in a table of the tests."""
    yield from (call for call, _, _ in MESSAGES.values())
    yield from (row[0] for row in test_errors.ROWS.values())
    yield from (call for table in test_transform_errors.TABLES.values() for call, _, _ in table.values())
    yield from (functools.partial(check, *given) for check, given, _, _ in test_arguments.REFUSED)


def raised_at(call: Callable[[], Any]) -> set[tuple[str, int]]:
    """The lines of this package that an error, and what caused it, went through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except (Exception, pytest.skip.Exception) as error:
            lines = set()
            for found in (error, error.__cause__, error.__context__):
                if found is not None:
                    trace = traceback.walk_tb(found.__traceback__)
                    lines |= {(frame.f_code.co_filename, line) for frame, line in trace}
            return lines
    return set()


def sites() -> dict[tuple[str, int], ast.Raise]:
    """Where this package raises an error that has a text, by file and line."""
    found = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None and "errors." in ast.unparse(node.exc):
                found[str(path), node.lineno] = node
    return found


@pytest.mark.slow
def test_the_tables_come_to_as_many_messages_as_they_did() -> None:
    """Of all raise statements with a typed error, by lines; tests of single functions come to many others."""
    reached: set[tuple[str, int]] = set()
    for call in rows():
        reached |= raised_at(call)
    known = sites()
    left = sorted(f"{Path(file).relative_to(ROOT)}:{line}" for file, line in known.keys() - reached)
    assert len(known) - len(left) >= 180, left
