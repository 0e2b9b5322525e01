"""Tensors have what NumPy's arrays have: the same methods with the same results, or an error that names ours."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each

import adjoint as ad
from adjoint import counterparts, errors, numpy_protocols
from adjoint.counterparts import NUMPY_NAMES, OBJECTS, TAKES_TENSORS
from adjoint.counterparts.modules import MODULES
from adjoint.counterparts.scipy_functions import SCIPY

COUNTERPARTS = {**MODULES, **OBJECTS}

V = np.array([[0.5, 1.25, -2.0], [3.5, -4.0, 5.25]])
C = np.arange(24.0).reshape(2, 3, 4)[:, ::-1] * np.array([1.0, -1.0, 0.5, 2.0]) + 0.1
Z = V + 1j * V[::-1]
K = np.array([[2, 0, 1], [1, 2, 0]])

# by the method: calls on an array, each with the array that it is of
DIFFERENTIABLE: dict[str, list[tuple[Any, Callable[[Any], Any]]]] = {
    "ravel": [(C, lambda x: x.ravel()), (C, lambda x: x.ravel("F")), (C, lambda x: x.ravel(order="K"))],
    "flatten": [(C, lambda x: x.flatten()), (C, lambda x: x.flatten("F"))],
    "copy": [(V, lambda x: x.copy()), (V, lambda x: x.copy(order="F"))],
    "dot": [
        (V, lambda x: x.dot(V.T)),
        (V[0], lambda x: x.dot(V[1])),
        (V, lambda x: x.dot(2.0)),
        (C, lambda x: x.dot(C[0].T)),
    ],
    "transpose": [
        (C, lambda x: x.transpose()),
        (C, lambda x: x.transpose(None)),
        (C, lambda x: x.transpose(1, 2, 0)),
        (C, lambda x: x.transpose((2, 0, -2))),
        (V[0], lambda x: x.transpose()),
        (V[0], lambda x: x.transpose(0)),
    ],
    "conj": [(Z, lambda x: x.conj()), (V, lambda x: x.conj())],
    "conjugate": [(Z, lambda x: x.conjugate()), (V, lambda x: x.conjugate())],
    "cumsum": [
        (C, lambda x: x.cumsum()),
        (C, lambda x: x.cumsum(1)),
        (V, lambda x: x.cumsum(axis=-1, dtype=np.float64)),
    ],
    "cumprod": [(V, lambda x: x.cumprod()), (V, lambda x: x.cumprod(0)), (V, lambda x: x.cumprod(axis=1))],
    "trace": [
        (V, lambda x: x.trace()),
        (V, lambda x: x.trace(1)),
        (C, lambda x: x.trace(-1, 2, 0)),
        (C, lambda x: x.trace(axis1=1, axis2=2, dtype=np.float64)),
    ],
    "diagonal": [(V, lambda x: x.diagonal()), (C, lambda x: x.diagonal(1, 0, 2)), (C, lambda x: x.diagonal(offset=-1))],
    "repeat": [
        (V, lambda x: x.repeat(2)),
        (V, lambda x: x.repeat(3, 1)),
        (V, lambda x: x.repeat([1, 0, 2], axis=1)),
        (V, lambda x: x.repeat([2], axis=0)),
    ],
    "swapaxes": [(C, lambda x: x.swapaxes(0, 2)), (C, lambda x: x.swapaxes(-1, 1))],
    "compress": [
        (V, lambda x: x.compress([False, True], axis=0)),
        (V, lambda x: x.compress([True, False, True], 1)),
        (V, lambda x: x.compress([False, True, True])),
        (V, lambda x: x.compress(condition=(V > 0).ravel())),
    ],
    "take": [
        (V, lambda x: x.take([5, 0, -1])),
        (V, lambda x: x.take([2, 0], 1)),
        (V, lambda x: x.take([[0, 1]], axis=0)),
        (V, lambda x: x.take(4)),
        (V, lambda x: x.take([7, -9], mode="wrap")),
        (V, lambda x: x.take([7, -9], 1, mode="clip")),
    ],
    "reshape": [
        (C, lambda x: x.reshape(4, 6)),
        (C, lambda x: x.reshape(-1)),
        (C, lambda x: x.reshape((6, -1))),
        (C, lambda x: x.reshape(4, -1, order="F")),
        (C, lambda x: x.reshape([2, 12], order="A", copy=True)),
    ],
    "round": [
        (V, lambda x: (x * 1.2345).round(1)),
        (V, lambda x: (x * 12.345).round(decimals=-1)),
        (V, lambda x: x.round()),
    ],
    "T": [(V, lambda x: x.T), (V[0], lambda x: x.T), (V[0, 0], lambda x: x.T)],
    "__divmod__": [(V, lambda x: divmod(x, 0.7)[1]), (V, lambda x: divmod(x, V[::-1])[1])],
    "__rdivmod__": [(V, lambda x: divmod(0.7, x)[1]), (V, lambda x: divmod(V[::-1], x)[1])],
}
CONSTANT: dict[str, list[tuple[Any, Callable[[Any], Any]]]] = {
    "nonzero": [(K, lambda x: x.nonzero()[0]), (V, lambda x: (x > 0).nonzero()[1])],
    "argsort": [
        (V, lambda x: x.argsort()),
        (V, lambda x: x.argsort(0)),
        (V, lambda x: x.argsort(axis=None)),
        (K, lambda x: x.argsort(-1, stable=True)),
    ],
    "argpartition": [
        (V, lambda x: x[0].argpartition(1)[1]),
        (V, lambda x: x.argpartition(1, 0)),
        (V, lambda x: x.argpartition(5, axis=None)[5]),
    ],
    "searchsorted": [
        (np.sort(V[1]), lambda x: x.searchsorted([3.5, 0.0])),
        (np.sort(V[1]), lambda x: x.searchsorted(3.5, "right")),
        (V[1], lambda x: x.searchsorted(4.0, side="left", sorter=[1, 0, 2])),
    ],
    "choose": [
        (K, lambda x: x.choose([V, 2 * V, 3 * V])),
        (K + 1, lambda x: x.choose([V, 2 * V, 3 * V], mode="wrap")),
        (K - 1, lambda x: x.choose([V, -V, 3 * V], mode="clip")),
    ],
    "nbytes": [(V, lambda x: x.nbytes), (K.astype(np.int16), lambda x: x.nbytes)],
    "itemsize": [(V, lambda x: x.itemsize), (Z, lambda x: x.itemsize)],
    "round": [(K * 7, lambda x: x.round(-1)), (K, lambda x: x.round(3))],
    "__divmod__": [(K, lambda x: divmod(x, 2)[0]), (K + 1, lambda x: divmod(7, x)[1])],
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_methods_are_numpys_and_have_gradients(name: str) -> None:
    for values, f in DIFFERENTIABLE[name]:
        expected = f(values)
        for device in ("numpy", "autodiff<numpy>"):
            out = f(ad.tensor(values, device=device).require_grad())
            assert out.device.name == device
            assert out.is_tracked() is (device != "numpy")
            assert (out.shape, out.dtype) == (np.shape(expected), np.asarray(expected).dtype)
            np.testing.assert_allclose(out.numpy(), expected, rtol=1e-13, atol=1e-14)
        ad.testing.check_grads(f, (np.asarray(values + 0.03),), order=2)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_methods_of_each_example(name: str) -> None:
    for values, f in DIFFERENTIABLE[name]:
        batch = np.stack([values, 2 * values, values + 0.3])
        np.testing.assert_allclose(ad.vmap(f)(batch), [f(each) for each in batch], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", CONSTANT)
def test_methods_without_gradients_are_numpys(name: str) -> None:
    for values, f in CONSTANT[name]:
        ours, theirs = f(ad.tensor(values)), f(values)
        assert isinstance(ours, ad.Tensor) is isinstance(theirs, (np.ndarray, np.generic))
        np.testing.assert_array_equal(ours.numpy() if isinstance(ours, ad.Tensor) else ours, theirs)


def test_methods_on_other_devices() -> None:
    """The other operands come to the device of the tensor."""
    with Each() as each:
        for name, calls in (DIFFERENTIABLE | CONSTANT).items():
            for values, f in calls:
                with each(name):
                    out = f(ad.tensor(values, device="reference"))
                    out, on = (out.numpy(), out.device.name) if isinstance(out, ad.Tensor) else (out, "reference")
                    assert on == "reference"
                    np.testing.assert_allclose(out, f(values), rtol=1e-13, atol=1e-14)
        for name, changes in ASSIGNING.items():
            for change in changes:
                with each(name):
                    expected, x = V.copy(), ad.tensor(V, device="reference")
                    change(expected)
                    change(x)
                    np.testing.assert_array_equal(x.numpy(), expected)


def test_choices_have_gradients() -> None:
    ad.testing.check_grads(lambda a, b: ad.asarray(K % 2).choose([a, b]), (V, V[0]), order=1)


def test_round_of_python_stays_a_tensor() -> None:
    x = ad.tensor([1.26, -0.449], dtype=ad.float64)
    assert round(x).tolist() == [1.0, 0.0]
    assert round(x, 1).tolist() == [1.3, -0.4]
    assert ad.round(x, 2).tolist() == [1.26, -0.45]
    with pytest.raises(errors.ArgumentTypeError, match="round: decimals"):
        ad.round(x, 1.5)  # type: ignore[arg-type]


def test_a_copy_may_be_assigned_to() -> None:
    w = ad.tensor([1.0, 2.0]).require_grad()
    for copied in (w.copy(), np.copy(w), w.flatten()):
        copied[0] = 5.0
        assert (copied.tolist(), w.tolist()) == ([5.0, 2.0], [1.0, 2.0])
        assert (copied * copied).sum().backward()[w].tolist() == [0.0, 4.0]


ASSIGNING: dict[str, list[Callable[[Any], Any]]] = {
    "fill": [lambda x: x.fill(3), lambda x: x.fill(-1.5)],
    "put": [
        lambda x: x.put([0, -1], [1.0, 2.0]),
        lambda x: x.put(4, 0.1),
        lambda x: x.put([[1], [2]], [0.1, 0.7]),
        lambda x: x.put(np.array([1, 2]), np.array([3, 4])),
        lambda x: x.put([[3, 1], [2, 2]], V[0]),
        lambda x: x.put([0, 1, 2, 3, 4], [1.0, 2.0]),
        lambda x: x.put([0], [7.0, 8.0]),
        lambda x: x.put([], 1.0),
        lambda x: x.put([7, -8], [1.0, 2.0], mode="wrap"),
        lambda x: x.put([7, -8], [1, 2], "clip"),
        lambda x: x.put(np.array([2, 3]), []),
    ],
}


@pytest.mark.parametrize("name", ASSIGNING)
def test_what_assigns_is_numpys(name: str) -> None:
    for change in ASSIGNING[name]:
        expected, x = V.copy(), ad.tensor(V)
        assert change(expected) is change(x) is None
        assert (x.shape, x.dtype) == (V.shape, V.dtype)
        np.testing.assert_array_equal(x.numpy(), expected)


def test_assignments_are_differentiable_and_spare_leaves() -> None:
    def put(x: Any, v: Any) -> Any:
        y = x * 2.0
        y.put([1, -1], v * v)
        return y

    ad.testing.check_grads(put, (V, V[1, :2]), order=2)

    def fill(x: Any) -> Any:
        y = x * 1.0
        y.fill(x[0, 0] ** 2)
        return y

    ad.testing.check_grads(fill, (V,), order=2)
    batch = np.stack([V, V + 1.0])
    puts = [put(ad.tensor(each), ad.tensor(V[1, :2])).numpy() for each in batch]
    np.testing.assert_array_equal(ad.vmap(put, in_axes=(0, None))(batch, V[1, :2]), puts)
    w = ad.tensor(V).require_grad()
    for change in (lambda: w.fill(0.0), lambda: w.put([0], 1.0)):
        with pytest.raises(errors.GraphError, match="leaf"):
            change()
    with pytest.raises(errors.OutOfRangeError, match="6"):
        ad.tensor(V).put([6], 1.0)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda x: x.sort(), "ad.sort(x)"),
        (lambda x: x.sort(axis=0), "ad.sort(x)"),
        (lambda x: x.partition(1), "ad.partition(x, k)"),
        (lambda x: x.resize((3, 2)), "ad.resize"),
    ],
)
def test_what_numpy_does_in_place_says_what_to_write(call: Any, part: str) -> None:
    for x in (ad.tensor(V), ad.tensor(V).require_grad()):
        with pytest.raises(errors.ArgumentTypeError) as caught:
            call(x)
        assert part in str(caught.value)


def test_every_name_of_an_array_is_here_or_says_what_is() -> None:
    x = ad.tensor(V)
    for name in dir(np.ndarray):
        if name.startswith("_") or hasattr(ad.Tensor, name):
            continue
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': .*(x\.|x\[|ad\.|np\.)"):
            getattr(x, name)


def test_T_of_more_axes_names_what_reverses_them() -> None:
    with pytest.raises(errors.ShapeError, match=r"mT .*ad\.permute_dims\(x, \(2, 1, 0\)\)"):
        _ = ad.tensor(C).T


# --- names of other libraries --------------------------------------------------------------------

OWNERS: dict[str, Any] = {
    "adjoint": ad,
    "adjoint.fft": ad.fft,
    "adjoint.linalg": ad.linalg,
    "adjoint.special": ad.special,
    "adjoint.stats": ad.stats,
    "distribution": ad.stats.norm,
    "device": ad.tensor(V).device,
    "adjoint.random": ad.random,
    "adjoint.tree": ad.tree,
    "adjoint.data": ad.data,
    "adjoint.debug": ad.debug,
    "adjoint.testing": ad.testing,
    "adjoint.implicit": ad.implicit,
    "adjoint.scipy": ad.scipy,
    "adjoint.nn": ad.nn,
    "adjoint.nn.init": ad.nn.init,
    "adjoint.optim": ad.optim,
    "Tensor": ad.tensor(V),
    "Module": ad.nn.Sequential(),
    "Optimizer": ad.optim.Adam(lr=1e-3),
}


def exists(text: str) -> bool:
    """Whether all names of ours, of tensors' and of NumPy's that a hint writes are there."""
    found = [(ad, name) for name in re.findall(r"\bad\.([a-zA-Z_0-9.]*[a-zA-Z_0-9])", text)]
    found += [(ad.Tensor, name.partition(".")[0]) for name in re.findall(r"\b[xy]\.([a-zA-Z_0-9.]*[a-zA-Z_0-9])", text)]
    found += [(np, name) for name in re.findall(r"\bnp\.([a-zA-Z_0-9.]*[a-zA-Z_0-9])", text)]
    found += [(OWNERS["Module"], name) for name in re.findall(r"\bmodel\.([a-zA-Z_0-9]*)", text)]
    found += [(OWNERS["Optimizer"], name) for name in re.findall(r"\boptimizer\.([a-zA-Z_0-9]*)", text)]
    found += [(OWNERS["Tensor"], name) for name in re.findall(r"\bloss\.([a-zA-Z_0-9]*)", text)]
    return all(
        hasattr(functools.reduce(getattr, name.split(".")[:-1], owner), name.split(".")[-1]) for owner, name in found
    )


@pytest.mark.parametrize("owner", sorted(COUNTERPARTS.keys() - {"Settings", "parameters"}))  # which are arguments
def test_names_of_other_libraries_say_what_is_here(owner: str) -> None:
    thing = OWNERS[owner]
    for name, use in COUNTERPARTS[owner].items():
        if owner == "adjoint" and f"adjoint.{name}" in sys.modules:  # a face that another test has imported
            continue
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}: use {use}")) as caught:
            getattr(thing, name)
        assert caught.value.name == name
        assert caught.value.obj is thing
        assert exists(use), (name, use)
        assert re.search(r"\b(ad|x|y|np|jax|w|model|step|loss|optimizer)\b", use), (name, use)


def test_names_that_a_class_lacks_say_what_is_here() -> None:
    for kind, name, use in [
        (ad.nn.Module, "cuda", "model.to_device("),
        (ad.nn.Linear, "state_dict", "model.record()"),
        (ad.optim.SGD, "zero_grad", "nothing in its place"),
        (ad.Tensor, "unsqueeze", "x.expand_dims"),
    ]:
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}: use {use}")) as caught:
            getattr(kind, name)
        assert caught.value.obj is kind
        with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
            kind.nothing


SAME_NAME = {"bernoulli", "indices", "select", "values"}  # of a method, for something else


@pytest.mark.slow  # PyTorch's import
def test_functions_that_are_in_a_room_here_say_so() -> None:
    """NumPy and PyTorch have some at the top, and PyTorch many as methods; some of those mean something else."""
    torch = peer("torch")
    rooms = [ad.linalg, ad.special, ad.nn, ad.fft, ad.random]
    found = 0
    for theirs, owner, here in ((np, ad, rooms), (torch, ad, rooms), (torch.Tensor, ad.tensor(V), [ad, *rooms])):
        for name in {*dir(theirs)} & {name for room in here for name in room.__all__} - SAME_NAME:
            ours = [getattr(room, name) for room in here if name in room.__all__]
            if hasattr(owner, name) or not inspect.isfunction(ours[0]):
                continue
            with pytest.raises(AttributeError, match=": use ") as caught:
                getattr(owner, name)
            assert exists(str(caught.value).partition(": use ")[2])
            found += 1
    assert found > 200


def unexplained(thing: Any, names: Iterable[str]) -> list[str]:
    """Names that a thing lacks, and says nothing about."""
    found = []
    for name in names:
        try:
            getattr(thing, name)
        except AttributeError as error:
            if not re.search(r": use |: it is now |docs/functions\.md", str(error)):
                found.append(name)
        except errors.ShapeError:  # mT of a vector
            continue
    return found


def public(thing: Any) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def test_no_name_of_numpys_is_missing_without_a_word() -> None:
    assert unexplained(ad, public(np)) == []
    assert unexplained(ad.tensor(V), public(np.ndarray)) == []
    for room, theirs in ((ad.linalg, np.linalg), (ad.fft, np.fft), (ad.random, np.random), (ad.testing, np.testing)):
        assert unexplained(room, public(theirs)) == []


@pytest.mark.parametrize(
    ("room", "name", "use"),
    [
        (ad, "clamp_", "ad.clip; functions change"),
        (ad, "erf_", "ad.special.erf; functions"),
        (ad, "squeeze_copy", "ad.squeeze; functions"),
        (ad.nn, "threshold_", "ad.nn.threshold; functions"),
        (ad, "view_as_real", "ad.stack([x.real, x.imag], axis=-1)"),
        (ad, "local_response_norm", "ad.nn.local_response_norm"),
        (ad, "sparse_coo_tensor", "ad.sparse_jacobian for"),
        (ad, "quantize_per_tensor", "x.astype(dtype)"),
        (ad, "float8_e4m3fn", "ad.int8, ad.uint8 or ad.float16"),
        (ad, "NamedSharding", "ad.train.data_parallel"),
        (ad, "all_gather", "ad.train.data_parallel"),
        (ad.linalg, "LinAlgError", "ad.errors.SingularError"),
        (ad.nn, "log1mexp", "ad.log(-ad.expm1(-x))"),
    ],
)
def test_families_of_names_say_what_there_is(room: Any, name: str, use: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}: use {use}")):
        getattr(room, name)


def test_words_for_jaxs_functions_compute_them() -> None:
    jax = peer("jax")
    x = np.array([-2.0, -0.5, 0.25, 1.0, 3.0], np.float32)
    for name, at in (("sparse_plus", x), ("sparse_sigmoid", x), ("log1mexp", np.abs(x))):
        ours = eval(MODULES["adjoint.nn"][name], {"ad": ad, "x": ad.asarray(at)})
        np.testing.assert_allclose(ours.numpy(), getattr(jax.nn, name)(at), rtol=1e-5)


@pytest.mark.slow  # imports
def test_no_name_of_pytorchs_or_jaxs_is_missing_without_a_word() -> None:
    torch, jax = peer("torch"), peer("jax")
    for thing, theirs in (
        (ad, torch), (ad.linalg, torch.linalg), (ad.fft, torch.fft), (ad.special, torch.special), (ad.nn, torch.nn),
        (ad.nn, torch.nn.functional), (ad.nn.init, torch.nn.init), (ad.optim, torch.optim),
        (ad.stats, torch.distributions), (ad.data, torch.utils.data), (ad, jax), (ad, jax.numpy), (ad, jax.lax),
        (ad.nn, jax.nn), (ad.random, jax.random), (ad.tree, jax.tree_util), (ad.debug, jax.debug),
        (ad.tensor(V), torch.Tensor), (ad.tensor(V), jax.numpy.zeros(1)),
    ):  # fmt: skip
        assert unexplained(thing, public(theirs)) == []


@pytest.mark.slow  # imports
@pytest.mark.parametrize("room", "linalg fft special stats scipy implicit".split())
def test_no_name_of_scipys_is_missing_without_a_word(room: str) -> None:
    peer("scipy")
    theirs = importlib.import_module(f"scipy.{'optimize' if room in ('scipy', 'implicit') else room}")
    assert unexplained(getattr(ad, room), public(theirs)) == []


def test_counterparts_of_scipys_are_the_functions_of_their_name() -> None:
    public = {name for room in (ad, ad.linalg, ad.special) for name in room.__all__}
    others = {f"scipy.{name}" for name in "fftpack.diff interpolate.insert optimize.fmin signal.square".split()}
    others |= {"scipy.ndimage.maximum", "scipy.ndimage.minimum"}  # of one array
    for name, use in SCIPY.items():
        last = name.rpartition(".")[2]
        method = name.count(".") > 2 and name.split(".")[2].endswith(("_array", "_matrix"))
        assert last not in public or name in others or method or re.search(rf"ad\.(\w+\.)?{last}\b", use), (name, use)
        assert exists(use), (name, use)
    assert counterparts.scipy_counterpart("scipy.linalg.lu_solve") == "ad.linalg.lu_solve"
    assert counterparts.scipy_counterpart("scipy.interpolate.insert") is None  # of knots: ours is of elements


def test_names_that_are_not_there_are_not_listed() -> None:
    x = ad.tensor(V)
    assert {"sum", "shape", "T"} <= set(dir(x))
    assert set(dir(x)).isdisjoint(COUNTERPARTS["Tensor"])
    assert not any(hasattr(x, name) or hasattr(ad.Tensor, name) for name in COUNTERPARTS["Tensor"])


@pytest.mark.parametrize("name", ["nothing", "_nothing_", "__array_interface__", "_repr_png_"])
def test_other_names_are_missing_as_ever(name: str) -> None:
    x = ad.tensor(V)
    with pytest.raises(AttributeError, match=f"^'Tensor' object has no attribute '{name}'$"):
        getattr(x, name)
    assert not hasattr(x, name)


@pytest.mark.parametrize("name", NUMPY_NAMES)
def test_second_names_of_numpys_are_of_one_function(name: str) -> None:
    theirs, ours = getattr(np, name), getattr(ad, NUMPY_NAMES[name])
    args = [np.array([[3, 1], [2, 5]]), np.array([[2, 1], [1, 2]])]
    x = args[0] / 10 + 1 if name == "arccosh" else args[0] / 10 if name.startswith("arc") else args[0]
    if name == "concatenate":
        assert ours([ad.tensor(x), x]).tolist() == theirs([x, x]).tolist()
    else:
        count = 2 if name in ("arctan2", "left_shift", "right_shift", "mod", "power", "true_divide") else 1
        given = [x, args[1]][:count]
        np.testing.assert_allclose(ours(*[ad.tensor(v) for v in given]).numpy(), theirs(*given), rtol=1e-6)


def test_numpys_functions_that_hints_name_take_tensors() -> None:
    for name in TAKES_TENSORS:
        f = getattr(np, name)
        known = f in numpy_protocols._FUNCTIONS or name in numpy_protocols._UFUNCS
        assert known, name


@pytest.mark.parametrize("name", ["cuda", "gpu", "cuda:0", "mps", "cpu", "tpu"])
def test_names_of_devices_of_other_libraries_say_which_library(name: str) -> None:
    with pytest.raises(errors.DeviceError) as caught:
        ad.zeros(2, device=name)
    for part in (repr(name), "torch:cuda" if name != "cpu" else "numpy", "jax"):
        assert part in str(caught.value)
