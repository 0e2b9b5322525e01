"""`torch.autograd.forward_ad`: dual numbers, on a level of tangents over the face's own."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from adjoint.decorators.tangent import Dual, Tangent
from adjoint.tensor import wrap
from adjoint.torch.devices import where_of_leaf
from adjoint.torch.lifted import inner_of, lifted, wrap_of
from adjoint.torch.missing import missing as _missing
from adjoint.torch.state import duals, modes
from adjoint.torch.tensor import LEVEL, Tensor, give_array, is_lifted, level_of, meeting, of


class _Duals:
    """The level of tangents that is open, and the tensors on it."""

    def __init__(self) -> None:
        self.level: Any = Tangent.fresh(LEVEL)  # and the same over the levels of other devices
        self.made: list[Any] = []  # weakly
        self.given: list[Any] = []  # the nodes of tangents

    def on(self, level: Any) -> Any:
        """The level of tangents over that of a device."""
        return self.level.over(level)

    def has(self, device: Any) -> bool:
        """Whether a backend is the level of tangents of a device."""
        if device is self.level:
            return True
        where = where_of_leaf(device.leaf)
        return where is not None and device is self.on(where.level)


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open the level of forward mode, of which there is one; gives its number, 0."""
    duals.change(_opened())
    return 0


def _opened() -> _Duals:
    if modes.duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    return _Duals()


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: tangents are forgotten."""
    if modes.duals is None or level not in (None, 0, -1):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    closed = modes.duals
    duals.change(None)
    living = [x for reference in closed.made if (x := reference()) is not None and is_lifted(x)]
    arrays = [(x, wrap_of(inner_of(x)).value) for x in living if closed.has(inner_of(x).device)]
    for x, array in arrays:
        give_array(x, array, alone=True)


class dual_level:
    """A block with a level of forward mode.

    >>> import adjoint.torch as torch
    >>> import adjoint.torch.autograd.forward_ad as forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
    ...     forward_ad.unpack_dual(x**3).tangent
    tensor(12.)
    """

    def __enter__(self) -> int:
        duals.enter(self, _opened())
        return 0

    def __exit__(self, *_: object) -> None:
        exit_dual_level()
        duals.leave(self)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with a tangent, of the same shape and type."""
    if modes.duals is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if x._dtype.kind not in "fc":
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
        if x.is_inference() and not modes.inference:
            raise RuntimeError(f"Expected {name} to not be inference tensor; make_dual takes a clone() of it.")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tensor._dtype is not tangent._dtype:
        raise RuntimeError(
            f"Expected tangent to have the dtype of the primal, {tensor.dtype}, but got {tangent.dtype}; convert it"
        )
    if unpack_dual(tensor).tangent is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    primal = unpack_dual(tensor).primal
    if unpack_dual(tangent).tangent is not None:
        raise RuntimeError(
            "the tangent has a forward gradient at the same level, and tangents of tangents are not there"
        )
    if is_lifted(primal) or is_lifted(tangent):
        raise NotImplementedError(
            "adjoint.torch: make_dual is not there inside of vmap, grad and their like; write torch.func.jvp"
        )
    meeting((primal, tangent))
    modes.duals.given.append(tangent._array.node)
    made = lifted(wrap(Dual(primal._array, tangent._array), modes.duals.on(level_of(primal)), tensor._dtype))
    made._rare.tangent = tangent  # which unpack_dual gives back as long as it is the same
    return made


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a tensor and its tangent on the open level, None where it has none."""
    if modes.duals is None or not is_lifted(tensor) or not modes.duals.has(inner_of(tensor).device):
        return UnpackedDualTensor(tensor, None)
    dual, given = wrap_of(inner_of(tensor)), tensor._rare.tangent
    if dual.tangent is None or (given is not None and given._array is dual.tangent):
        return UnpackedDualTensor(of(dual.value), None if dual.tangent is None else given)
    return UnpackedDualTensor(of(dual.value), of(dual.tangent))


def __getattr__(name: str) -> NoReturn:
    raise _missing(name, "adjoint.torch.autograd.forward_ad")
