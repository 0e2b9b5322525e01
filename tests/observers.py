"""What tests of `Checked` and `Profiled` share: leaves, chains with observers in them, counts, and a wrong rule."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import adjoint as ad
from adjoint.backend import LeafBackend
from adjoint.rules import Elementwise

LEAVES: dict[str, Callable[[], LeafBackend]] = {"numpy": ad.NumPy, "reference": ad.Reference}
if importlib.util.find_spec("array_api_strict"):
    import array_api_strict

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array_api_strict.set_array_api_strict_flags(api_version="2024.12")
    LEAVES["array_api_strict"] = lambda: ad.ArrayAPI(array_api_strict)

CHAINS: dict[str, Callable[[Any], Any]] = {
    "checked": ad.Checked,
    "profiled": ad.Profiled,
    "profiled checked": lambda B: ad.Profiled(ad.Checked(B)),
    "checked profiled": lambda B: ad.Checked(ad.Profiled(B)),
    "checked autodiff": lambda B: ad.Checked(ad.Autodiff(B)),
    "profiled autodiff": lambda B: ad.Profiled(ad.Autodiff(B)),
    "checked tangent": lambda B: ad.Checked(ad.Tangent(B)),
    "profiled tangent": lambda B: ad.Profiled(ad.Tangent(B)),
    "checked batched": lambda B: ad.Checked(ad.Batched(B)),
    "profiled batched": lambda B: ad.Profiled(ad.Batched(B)),
    "autodiff checked": lambda B: ad.Autodiff(ad.Checked(B)),
    "autodiff profiled": lambda B: ad.Autodiff(ad.Profiled(B)),
    "autodiff checked autodiff profiled": lambda B: ad.Autodiff(ad.Checked(ad.Autodiff(ad.Profiled(B)))),
    "checked taylor": lambda B: ad.Checked(ad.Taylor(B)),
    "profiled dependence": lambda B: ad.Profiled(ad.Dependence(B)),
    "tangent checked": lambda B: ad.Tangent(ad.Checked(B)),
    "batched profiled": lambda B: ad.Batched(ad.Profiled(B)),
}


class WrongRule(ad.Autodiff[Any]):
    """An Autodiff level with another rule for exp."""

    def __init__(self, inner: Any, rule: Any) -> None:
        super().__init__(inner)
        self.rule = rule

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.rule)

    def _lift(self, primitive: Any, run: Any, record: Any) -> Any:
        return super()._lift(primitive, run, Elementwise(x=self.rule) if primitive.name == "exp" else record)


def counts(p: Any) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {(row.primitive, row.phase): (row.calls, row.bytes, row.flops) for row in p.profile().rows}
