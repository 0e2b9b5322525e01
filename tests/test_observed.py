"""Under `Checked` and `Profiled` everything is computed as it is without them."""

from __future__ import annotations

import linecache
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import same
from observers import CHAINS, LEAVES

import adjoint as ad
from adjoint import errors

ROOT = Path(__file__).resolve().parent.parent


def model(x: Any) -> Any:
    """Something of most kinds: products, reductions, moves, reads, writes, several results, constants."""
    y = ad.tanh(x @ x.mT) + ad.ones(2, dtype=ad.float64, device=x.device)
    y[0] = x[1, :2] * 2.0
    largest, _ = ad.topk(y, 1)
    return (ad.where(y > 0, y, 1.0) * largest).sum() + ad.linalg.det(y)


@ad.custom_vjp
def twice(x: Any) -> Any:
    """sin(2 x), with half the derivative that it has."""
    return ad.sin(x * 2)


twice.defvjp(lambda x: (twice(x), x), lambda x, g: (g * ad.cos(x * 2),))

POINT = np.array([[0.3, -0.5, 0.2], [0.7, 0.1, -0.4]])
USES: dict[str, Callable[[Any], Any]] = {
    "values": model,
    "grad": ad.grad(model),
    "jvp": lambda x: ad.jvp(model, (x,), (x,))[1],
    "hessian": ad.hessian(model),
    "checkpoint": ad.grad(ad.checkpoint(model)),
    "custom_vjp": lambda x: ad.grad(lambda t: ad.vmap(twice)(t).sum() + twice(t).sum())(x),
    "scan": ad.grad(lambda x: ad.scan(lambda c, row: (ad.sin(c + row), c), x[0] * 0, x)[0].sum()),
    "jet": lambda x: ad.jet(model, (x,), ((x, x * 0.5),))[1][1],
    "vmap": lambda x: ad.vmap(lambda scale: model(x * scale))(x[0]),
    "grad of vmap": ad.grad(lambda x: ad.vmap(lambda scale: model(x * scale))(x[0]).sum()),
    "vmap of grad": lambda x: ad.vmap(lambda scale: ad.grad(model)(x * scale))(x[0]),
}


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("use", USES)
def test_any_nesting_computes_what_the_leaf_does(leaf: str, use: str) -> None:
    B = LEAVES[leaf]()
    expected = USES[use](ad.asarray(POINT, device=B)).numpy()
    for name, chain in CHAINS.items():
        device = chain(B)
        out = USES[use](ad.asarray(POINT, device=device))
        assert out.device is device, name
        same(out, expected)


@pytest.mark.parametrize("observer", [ad.Checked, ad.Profiled])
def test_what_is_tracked_below_stays_tracked(observer: Any) -> None:
    """The gradient of a function of a gradient, through an observer between two levels."""
    level = ad.Autodiff(ad.NumPy())
    x = ad.asarray(POINT, device=level).require_grad()
    slope = (ad.grad(model)(x.to_device(observer(level))) ** 2).sum()
    assert slope.is_tracked()
    expected = ad.grad(lambda t: (ad.grad(model)(t) ** 2).sum())(POINT)
    ((_, found),) = level.backward(slope._array).values()  # an observer's arrays are those of its inner backend
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "call",
    {
        "grad": lambda x: ad.grad(lambda x: ad.sqrt(x).sum())(x),
        "jvp": lambda x: ad.jvp(ad.sqrt, (x,), (np.ones(2),)),
        "vmap": lambda x: ad.vmap(ad.log)(x),
        "hessian": lambda x: ad.hessian(lambda x: ad.sqrt(x).sum())(x),
        "scan": lambda x: ad.scan(lambda c, x: (c + ad.log(x), None), 0.0, x),
    }.values(),
)
def test_observers_of_the_default_device_see_transforms_of_numpy_arrays(call: Any) -> None:
    profiled = ad.Profiled(ad.NumPy())
    with ad.use_device(ad.Autodiff(profiled)), np.errstate(all="ignore"):
        call(np.array([1.0, 0.0]))
    assert profiled.profile().rows
    with ad.use_device(ad.Autodiff(ad.Checked(ad.NumPy()))):
        assert isinstance(ad.grad(lambda x: ad.sqrt(x).sum())(np.array([4.0, 1.0])), np.ndarray)
        with pytest.raises((ad.errors.NonFiniteError, ad.errors.BackwardError), match="gave (-?inf|nan) at"):
            call(np.array([1.0, 0.0]))


@pytest.mark.parametrize("observer", [ad.Checked, ad.Profiled])
def test_a_level_can_be_observed_inside_a_transform(observer: Any) -> None:
    def f(x: Any) -> Any:
        return model(x.to_device(observer(x.device)))

    stack = np.stack([POINT, 2 * POINT])
    np.testing.assert_array_equal(ad.vmap(f)(stack), ad.vmap(model)(stack))
    np.testing.assert_array_equal(ad.grad(f)(POINT), ad.grad(model)(POINT))


@pytest.mark.parametrize("observer", [ad.Checked, ad.Profiled])
def test_arrays_are_those_of_the_inner_backend(observer: Any) -> None:
    device = observer(ad.NumPy())
    x = ad.asarray(POINT, device=device)
    assert type(x.exp()._array) is np.ndarray
    assert x.exp().device is (x + ad.asarray(POINT, device=ad.NumPy())).device is device
    with pytest.raises(errors.DeviceError, match="decorates a backend"):
        observer("numpy")


@pytest.mark.parametrize(
    "device",
    [ad.Checked(ad.NumPy()), ad.Checked(ad.NumPy(), shapes=False, finite=False), ad.Profiled(ad.NumPy()),
     ad.device("profiled<numpy>"), ad.Profiled(ad.Checked(ad.Reference()), number=7)],
    ids=str,
)  # fmt: skip
def test_they_are_values_with_names(device: Any) -> None:
    assert ad.device(device.name) is device
    assert pickle.loads(pickle.dumps(device)) is device
    assert type(device)(*device.configuration()) is device
    assert device.over(device.inner) is device


# --- the page ---


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/debugging.md").read_text(), re.DOTALL)


def test_the_page_shows_what_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each block of Python is a file; the text that follows is the error it ends with, or what it prints."""
    monkeypatch.chdir(tmp_path)
    for source, shown in zip(blocks("py"), blocks("text"), strict=True):
        linecache.cache["train.py"] = (len(source), None, source.splitlines(keepends=True), "train.py")
        printed: list[str] = []
        try:
            exec(compile(source, "train.py", "exec"), {"print": lambda x, to=printed: to.append(str(x))})
        except errors.AdjointError as error:
            printed.append(f"adjoint.errors.{type(error).__name__}: {error}")
        # times differ from run to run, and with them the order of lines
        found, said = [re.sub(r"\d+\.\d+", "0", text).splitlines() for text in ("\n".join(printed), shown)]
        assert sorted(map(str.split, found)) == sorted(map(str.split, said))
    del linecache.cache["train.py"]
