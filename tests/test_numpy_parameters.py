"""Every function of NumPy's that takes tensors, with each parameter by its name: as its own, or a typed error.

A call with all of NumPy's defaults written out is the call without them. What is found with values of our own choice is
NumPy's answer, or an error that names the parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors, numpy_protocols
from adjoint.counterparts import NUMPY_NAMES

V = np.array([[0.5, 1.25, 2.0], [3.5, 4.0, 5.25]])
W = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
S = np.array([[2.0, 0.5], [0.25, 1.5]])
CUBE = np.eye(6).reshape(2, 3, 6) + V[..., None] / 9
I = np.array([0, 1, 1])  # indices
LINE = V[0]


def dispatched() -> dict[str, Callable[..., Any]]:
    """NumPy's functions that ask their arguments first, and that tensors answer for."""
    found = {}
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name, f in vars(module).items():
            if name.startswith("_") or not hasattr(f, "_implementation") or f.__name__ in numpy_protocols._CHANGING:
                continue
            ours = NUMPY_NAMES.get(f.__name__, f.__name__)
            if f in numpy_protocols._FUNCTIONS or numpy_protocols._named(f.__module__, ours):
                found[prefix + name] = f
    return found


TAKEN = dispatched()

WITHOUT_A_CALL = {"empty_like"}  # whose values are anything

# whose signature says that they take names, and who do not
BY_PLACE = {"unique_all", "unique_counts", "unique_inverse", "unique_values"}

# what functions are called with, where that is not V alone
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        "allclose append array_equal array_equiv isclose isin intersect1d setdiff1d setxor1d union1d broadcast_arrays "
        "meshgrid kron outer vdot linalg.cross inner may_share_memory shares_memory tensordot linalg.tensordot "
        "linalg.vecdot".split(),
        (V, W),
    ),
    **dict.fromkeys(
        "trace linalg.det linalg.inv linalg.eig linalg.eigvals linalg.slogdet linalg.trace linalg.cond linalg.pinv "
        "linalg.diagonal linalg.svd linalg.svdvals linalg.matrix_rank squeeze".split(),
        (S,),
    ),
    **dict.fromkeys("linalg.cholesky linalg.eigh linalg.eigvalsh".split(), (S @ S.T + np.eye(2),)),
    **dict.fromkeys("linalg.matmul dot linalg.solve".split(), (S, V)),
    **dict.fromkeys("convolve correlate polyadd polydiv polymul polysub linalg.outer".split(), (LINE, W[1])),
    **dict.fromkeys("cumulative_sum cumulative_prod i0 vander poly polyder polyint roots".split(), (LINE,)),
    **dict.fromkeys("concatenate concat stack vstack hstack dstack column_stack block".split(), ([V, W],)),
    **dict.fromkeys("percentile nanpercentile".split(), (V, 30.0)),
    **dict.fromkeys("quantile nanquantile".split(), (V, 0.3)),
    **dict.fromkeys("split array_split hsplit vsplit".split(), (S, 2)),
    **dict.fromkeys("geomspace linspace logspace".split(), (LINE, W[1] + 3)),
    **dict.fromkeys("argpartition partition delete atleast_1d moveaxis swapaxes rollaxis".split(), (V, 1)),
    **dict.fromkeys("pad repeat roll tile".split(), (V, 2)),
    **dict.fromkeys("moveaxis swapaxes".split(), (V, 0, 1)),
    **dict.fromkeys("linalg.tensorinv linalg.tensorsolve".split(), (CUBE, V)),
    "apply_along_axis": (np.sort, 0, V),
    "diag_indices_from": (S,),
    "ix_": (LINE > 0, np.array([0, 1])),
    "astype": (V, np.float32),
    "bincount": (I,),
    "broadcast_to": (V, (2, 2, 3)),
    "can_cast": (V, np.float64),
    "clip": (V, 1.0, 3.0),
    "choose": (I, [LINE, W[0]]),
    "cross": (CUBE[0, :, :3], CUBE[1, :, 1:4]),
    "gradient": (CUBE[0, :, :3],),
    "compress": (np.array([True, False]), V),
    "digitize": (V, LINE),
    "dsplit": (V[..., None] * np.ones(2), 2),
    "einsum": ("ij->j", V),
    "expand_dims": (V, 0),
    "extract": (V > 1, V),
    "full_like": (V, 2.5),
    "insert": (V, 1, 9.0),
    "interp": (V, LINE, W[1]),
    "lexsort": ((LINE, W[0]),),
    "linalg.lstsq": (V.T, LINE),
    "linalg.matrix_power": (S, 3),
    "linalg.multi_dot": ([S, V, V.T],),
    "linalg.tensorinv": (CUBE, 2),
    "piecewise": (V, [V < 2], [1.0, 2.0]),
    "polyfit": (LINE, W[1], 1),
    "polyval": (LINE, V),
    "ravel_multi_index": ((I, I), (2, 3)),
    "reshape": (V, (3, 2)),
    "resize": (V, (3, 3)),
    "searchsorted": (LINE, V),
    "select": ([V > 1], [V]),
    "take": (V, I),
    "take_along_axis": (V, np.array([[0], [1]])),
    "unravel_index": (I, (2, 3)),
    "where": (V > 1, V, W),
}

# other values than NumPy's defaults, for parameters of a name, and for those of one function
VALUES: dict[str, Any] = {
    "aweights": I + 1, "axis": 0, "axisa": 0, "axisb": 0, "axisc": 0, "bins": 4, "correction": 1, "ddof": 1,
    "decimals": 1, "default": 7.0, "density": True, "device": "cpu", "discont": 3.0, "dtype": np.float32, "dx": 0.5,
    "edge_order": 2, "end": 1, "fweights": I + 1, "indexing": "ij", "initial": 2.0, "interpolation": "lower", "k": 1,
    "left": 8.0, "m": 2, "max": 3.0, "max_work": 10, "mean": 2.0, "method": "nearest", "min": 1.0, "minlength": 5,
    "mode": "clip", "N": 4, "n": 2, "nan": 1.0, "neginf": 1.0, "norm": "ortho", "num": 5, "offset": 1, "order": "F",
    "p": 1, "period": 3.0, "posinf": 1.0, "prepend": 2.0, "append": 2.0, "range": (1.0, 4.0),
    "rcond": 1e-3, "right": 9.0, "rtol": 1e-3, "atol": 1e-3, "s": (2, 2), "shape": (2, 3), "side": "right",
    "sorter": np.array([0, 1, 2]), "start": 1, "stable": True, "to_begin": 1.0, "to_end": [1.0, 2.0], "tol": 1.0,
    "UPLO": "U", "w": np.array([1.0, 2.0, 3.0]), "weights": V, "where": V > 1, "x": LINE, "y": W, "base": 2.0,
    "a_min": 1.0, "a_max": 3.0, "stat_length": 1, "precision": 2, "separator": ",", "kind": "stable", "axis1": 1,
    "axis2": 0, "casting": "unsafe", "return_sign": True, "constant_values": 3.0, "subscripts": "ij", "axes": (1, 0),
}  # fmt: skip
OF_ONE: dict[str, Any] = {
    **dict.fromkeys(("diagonal axis1", "diagonal axis2", "trace axis1", "trace axis2"), None),  # only both together
    **{f"fft.{name} s": None for name in "fftn ifftn rfftn irfftn".split()},  # with axes alone
    "linalg.svd hermitian": None,  # another sign of vectors
    "clip min": None,  # beside a_min
    "clip max": None,
    "bincount weights": LINE,
    "argpartition kind": "introselect", "partition kind": "introselect", "isin kind": "sort", "convolve mode": "same",
    "correlate mode": "same", "squeeze axis": (), "linalg.norm ord": "nuc",
    "linalg.matrix_norm ord": 2, "linalg.vector_norm ord": 1, "linalg.qr mode": "complete", "pad mode": "edge",
    "tensordot axes": 1, "linalg.tensordot axes": 1, "rot90 axes": (1, 0), "linalg.tensorsolve axes": None,
    "polyint k": 2.0, "linalg.cross axis": 1, "cross axis": 1, "linalg.pinv rtol": 0.9, "fft.fftn axes": (1,),
    "sliding_window_view axis": 0, "average weights": W + 3, "unwrap axis": 0,
}  # fmt: skip


def tensors(value: Any) -> Any:
    """Arrays of numbers as tensors, also in lists."""
    if isinstance(value, (list, tuple)):
        return type(value)([tensors(v) for v in value])
    return ad.asarray(value) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def assert_same(ours: Any, theirs: Any, what: str) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), what
        for x, y in zip(ours, theirs, strict=True):
            assert_same(x, y, what)
    elif isinstance(ours, ad.Tensor):
        assert ours.shape == np.shape(theirs), what
        tolerance = 1e-6 if ours.dtype in (ad.float32, ad.complex64) else 1e-12
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance, err_msg=what)
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_array_equal(ours, theirs, err_msg=what)
    else:
        assert type(ours) is type(theirs), what


@pytest.mark.parametrize("name", sorted(TAKEN.keys() - WITHOUT_A_CALL))
def test_every_parameter_of_numpys_is_taken_or_refused_by_name(name: str) -> None:
    f, args = TAKEN[name], ARGUMENTS.get(name, (V,))
    given, parameters = tensors(args), inspect.signature(f).parameters
    wanted = f(*args)
    assert_same(f(*given), wanted, name)
    named = [p.name for p in parameters.values()][: len(args)]
    if all(parameters[each].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in named):
        if name not in BY_PLACE:
            assert_same(f(**dict(zip(named, given, strict=False))), wanted, f"{name} by names")
    options = {
        p.name: p.default
        for p in list(parameters.values())
        if p.default is not p.empty and p.name not in named and p.kind is not p.POSITIONAL_ONLY
    }
    assert_same(f(*given, **options), wanted, f"{name} with all defaults")
    for option, default in options.items():
        assert_same(f(*given, **{option: default}), wanted, f"{name} with {option}={default}")
        if option == "out":
            with pytest.raises(errors.ArgumentTypeError, match=r"out= is not supported; tensors are values"):
                f(*given, out=np.zeros(()))
            continue
        other = not default if isinstance(default, bool) else VALUES.get(option)
        value = OF_ONE.get(f"{name} {option}", other)
        if value is None:
            continue
        error = refusal(lambda: f(*given, **{option: value}))  # noqa: B023
        if error is None:
            assert_same(f(*given, **{option: value}), f(*args, **{option: value}), f"{name} with {option}={value}")
        else:
            assert option in error, f"{name} {option}: {error}"


def refusal(call: Callable[[], Any]) -> str | None:
    """The text of the typed error, if there is one."""
    try:
        call()
    except errors.AdjointError as error:
        return str(error)
    return None


def in_numpys_order(ours: list[inspect.Parameter], theirs: list[inspect.Parameter]) -> str | None:
    """Why a call by position that NumPy takes means something else here, or is refused though the parameter exists."""
    if any(p.kind is p.VAR_POSITIONAL for p in ours):
        return None
    by_place = [p for p in ours if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {p.name for p in ours}
    operands = sum(p.default is p.empty for p in by_place)
    for place, p in enumerate(theirs):
        if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) or p.name == "device":
            return None  # the leaf's own
        if place < len(by_place):
            if place >= operands and by_place[place].name != p.name and p.name in named:
                return f"{by_place[place].name} stands where NumPy has {p.name}"
        elif p.name in named:
            return f"{p.name} is taken by keyword only"
        else:
            return None
    return None


@pytest.mark.parametrize(
    ("ours", "theirs"), [(ad, np), (ad.fft, np.fft), (ad.linalg, np.linalg)], ids=lambda m: m.__name__
)
def test_parameters_stand_in_numpys_order(ours: Any, theirs: Any) -> None:
    names = [name for name in dir(ours) if callable(getattr(theirs, name, None))]
    complaints, compared = {}, 0
    for name in names:
        try:
            signatures = [inspect.signature(getattr(module, name)) for module in (ours, theirs)]
        except (TypeError, ValueError):  # NumPy's dtypes have none
            continue
        compared += 1
        why = in_numpys_order(*[list(s.parameters.values()) for s in signatures])
        if why is not None:
            complaints[name] = why
    assert compared >= {ad: 150, ad.fft: 15, ad.linalg: 15}[ours]
    assert complaints == {}


def test_the_comparison_of_orders_sees_differences() -> None:
    def f(x: Any, axis: Any = None, *, n: int = 1) -> None: ...
    def g(a: Any, n: int = 1, axis: Any = None) -> None: ...
    def h(a: Any, axis: Any = None, n: int = 1) -> None: ...

    ours, other, more = ([*inspect.signature(one).parameters.values()] for one in (f, g, h))
    assert in_numpys_order(ours, other) == "axis stands where NumPy has n"
    assert in_numpys_order(ours, more) == "n is taken by keyword only"
    assert in_numpys_order(more, more) is None
