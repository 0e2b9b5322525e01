"""The optimizers that go parameter by parameter: PyTorch's settings and states around the rules of `adjoint.optim`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.graph.nodes import var_of
from adjoint.optim.fused import Job, updated
from adjoint.tensor import wrap
from adjoint.torch import devices
from adjoint.torch.calls import call
from adjoint.torch.dtypes import default_float
from adjoint.torch.kinds import Halves, Whole
from adjoint.torch.optim.optimizer import Optimizer
from adjoint.torch.signatures import TableSignature
from adjoint.torch.state import grad_mode
from adjoint.torch.tensor import INNER, Tensor, constant, leaf_of, next_number, values
from adjoint.torch.writes import leave_if_alone, store

# what each setting is called in an error
_NAMES = {"lr": "learning rate", "eps": "epsilon value"}


def _check(settings: dict[str, Any]) -> None:
    """PyTorch's errors for settings out of range."""
    for name, value in settings.items():
        if name == "betas":
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        elif name == "etas":
            if not 0.0 < value[0] < 1.0 < value[1]:
                raise ValueError(f"Invalid eta values: {value[0]}, {value[1]}")
        elif name == "rho":
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"Invalid rho value: {value}")
        elif name in _LOWEST and not value >= 0:
            raise ValueError(f"Invalid {_NAMES.get(name, name + ' value')}: {value}")


_LOWEST = {"lr", "eps", "weight_decay", "momentum", "alpha", "lr_decay", "momentum_decay", "initial_accumulator_value"}


def _check_ways(settings: dict[str, Any]) -> None:
    """PyTorch's errors for tensors as settings, and for ways of a step, which are one way here."""
    lr, betas, foreach = settings["lr"], settings.get("betas", ()), settings.get("foreach")
    plain = foreach and not settings.get("capturable")
    if isinstance(lr, Tensor):
        if plain:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if len({isinstance(beta, Tensor) for beta in betas}) == 2:
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if plain:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
    if settings.get("fused") and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if "beta2_decay" in settings:
        _check_factored(settings)


def _check_factored(settings: dict[str, Any]) -> None:
    """Those of Adafactor, in its words."""
    first, second = settings["eps"]
    for what, value, least in (
        ("Learning rate", settings["lr"], 0), ("epsilon1", 0 if first is None else first, 0), ("epsilon2", second, 0),
        ("Clipping threshold d", settings["d"], 1), ("weight_decay", settings["weight_decay"], 0),
    ):  # fmt: skip
        if not value >= least:
            raise ValueError(f"{what} should be >= {least} but is: {value}")
    if not settings["beta2_decay"] <= 0:
        raise ValueError(f"beta2_decay should be <= 0 but is: {settings['beta2_decay']}")


def _apart(params: list[Any]) -> list[list[Any]]:
    """Parameters whose steps are computed together: of several on one memory each sees what the one before wrote."""
    memories = [p._rare.memory for p in params if p._rare is not None and p._rare.memory is not None]
    return [params] if len(set(map(id, memories))) == len(memories) else [[p] for p in params]


class Ruled(Optimizer):
    """An optimizer of a row of the table below."""

    _core = ""  # adjoint's
    _settings: dict[str, Any] = {}
    _slots: dict[str, str] = {}  # PyTorch's names of what adjoint's rule remembers
    _counts = True  # whether the state has the number of steps
    _by_place = 0  # how many settings may be given without their names
    __signature__ = TableSignature("params")

    def __init__(self, params: Any, *args: Any, **given: Any) -> None:
        names = [*self._settings]
        if unknown := [name for name in given if name not in names]:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{unknown[0]}'")
        if len(args) > self._by_place or not given.keys() <= set(names[len(args) :]):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes params and {', '.join(names)}; received {args} and {given}"
            )
        settings = {**self._settings, **dict(zip(names, args, strict=False)), **given}
        _check_ways(settings)
        _check({k: v for k, v in settings.items() if not (k == "eps" and isinstance(v, tuple))})
        if settings.get("nesterov") and (settings["momentum"] <= 0 or settings["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if settings.get("differentiable") and settings.get("fused"):
            raise RuntimeError("`fused` does not support `differentiable`")
        super().__init__(params, settings)

    def _step(self) -> None:
        recorded = bool(self.defaults.get("differentiable"))
        if recorded:
            for group in self.param_groups:  # before anything is changed
                self._check_recorded(group)
        with grad_mode(recorded):
            for group in self.param_groups:
                if recorded:
                    for p in group["params"]:
                        self._change_recorded(group, p)
                else:
                    for params in _apart(group["params"]):
                        self._change(group, params)

    def _check_recorded(self, group: dict[str, Any]) -> None:
        """Raise NotImplementedError for what a differentiable step has no derivative of."""
        if any([p.grad is not None and p.is_complex() for p in group["params"]]):
            raise NotImplementedError("adjoint.torch: there is no differentiable=True for complex parameters")
        for name, value in group.items():
            if name == "params" or (name == "lr" and self._core not in ("ASGD", "Rprop")):  # which keep it as a number
                continue
            for x in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(x, Tensor) and x.requires_grad:
                    raise NotImplementedError(f"adjoint.torch: a step of {self._core} has no derivative by {name}")

    def _change_recorded(self, group: dict[str, Any], p: Any) -> None:
        """A step that is differentiable by the parameter, its gradient, the state and a rate that is a tensor."""
        grad = p.grad
        if grad is None:
            return
        core, decay = self._rule(group)
        state = self.state[p] if self._counts or group["momentum"] else {}
        before = self._begun(core, _inner(values(p)), state, p._dtype) if self._counts or group["momentum"] else 0
        names = [name for name, known in self._slots.items() if known in state]
        lr = self._rate(state, group["lr"])

        def step(x: Any, g: Any, lr: Any, *slots: Any) -> Any:
            g = -g if group.get("maximize", False) else g
            x = x * (1 - lr * decay) if decay else x
            x, known = core.update(x, g, dict(zip(names, slots, strict=True)), step=before + 1, lr=lr)
            return x, *[known[name] for name in names]

        # a clone, because the steps before saved what is written to
        value, *slots = call(step, None, p.clone(), grad, lr, *[state[self._slots[name]] for name in names])
        p.copy_(value)
        state.update(zip([self._slots[name] for name in names], slots, strict=True))
        if self._counts:
            _keep(state, "step", np.asarray(before + 1, default_float()))
        self._note(state, group, before + 1, float(group["lr"]))

    def _change(self, group: dict[str, Any], params: list[Any]) -> None:
        core, decay = self._rule(group)
        rate = group["lr"]
        lr = rate.item() if rate.__class__ is not float and isinstance(rate, Tensor) else rate
        turned = group.get("maximize", False)
        keeps = self._counts or group["momentum"]  # whether something is remembered
        captured = group.get("capturable", False)
        jobs: dict[tuple[int, Any], list[tuple[Any, Any, Job]]] = {}
        for p in params:
            rare = p._rare
            if rare is None or rare.grad is None:
                continue
            if captured and p.is_cpu:
                raise AssertionError(
                    "If capturable=True, params and state_steps must be on supported devices, which main memory is not"
                )
            grad = rare.grad
            if rare.memory is not None:
                leave_if_alone(p)
            state = self.state[p] if keeps else {}
            x, g = _inner(values(p)), _inner(values(grad))
            g = -g if turned else g
            if decay:
                x = x * (1 - lr * decay)
            before = self._begun(core, x, state, p._dtype) if keeps else 0
            job = Job(x, g, self._remembered(state) if keeps else {})
            jobs.setdefault((before, self._rate(state, lr)), []).append((p, state, job))
        for (before, now), rows in jobs.items():
            update = functools.partial(core.update, step=before + 1, lr=now)
            done = updated(update, [job for *_, job in rows])
            if devices.in_use:
                done = ad.persist(done)  # on Dask a step would be part of all that follows
            for (p, state, _), (value, slots) in zip(rows, done, strict=True):
                store(p, var_of(_outer(value, p._dtype), None), next_number())
                for name, slot in slots.items():
                    _keep(state, self._slots[name], _outer(slot, p._dtype))
                if self._counts:
                    _keep(state, "step", np.asarray(before + 1, default_float()))
                self._note(state, group, before + 1, lr)

    def _rule(self, group: dict[str, Any]) -> tuple[Any, float]:
        """adjoint's optimizer with the settings of a group, and the decay that comes before it."""
        kind, decay = self._core, 0.0
        settings = {name: group[name] for name in _fields(kind) if name in group and name != "lr"}
        if group.get("decoupled_weight_decay"):
            if kind == "Adam":
                kind = "AdamW"
            else:
                decay, settings["weight_decay"] = group["weight_decay"], 0.0
        if "betas" in settings:
            settings["betas"] = tuple([float(beta) for beta in settings["betas"]])
        key = tuple([tuple(v) if v.__class__ is list else v for v in settings.values()])
        return _core(kind, tuple(settings), key, group["lr"] if kind == "Rprop" else None), decay

    def _begun(self, core: Any, x: Any, state: dict[str, Any], dtype: Any) -> int:
        """How many steps there were; before the first one what is remembered is made."""
        if self._counts:
            if state:
                return int(state["step"].item())
            state["step"] = constant(np.asarray(0.0, default_float()))
        elif not core.momentum:
            return 0
        elif state:
            return 1
        begun = core.begin(x)
        for name, known in self._slots.items():
            if name in begun:
                state[known] = constant(_outer(begun[name], dtype))
        return 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Settings and counts of steps may be those of an earlier version of PyTorch."""
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in self._settings.items():
                group.setdefault(name, default)
        for known in self.state.values():
            if isinstance(known.get("step"), (int, float)):
                known["step"] = constant(np.asarray(known["step"], default_float()))

    def _remembered(self, state: dict[str, Any]) -> dict[str, Any]:
        return {name: _inner(values(state[known])) for name, known in self._slots.items() if known in state}

    def _rate(self, state: dict[str, Any], lr: float) -> float:
        """What a step is to be multiplied by."""
        return lr

    def _note(self, state: dict[str, Any], group: dict[str, Any], step: int, lr: float) -> None:
        """What else PyTorch keeps."""


def _keep(state: dict[str, Any], name: str, value: Any) -> None:
    """Another value for a tensor of the state, which stays the same object."""
    store(state[name], var_of(value, None), next_number())


def _inner(value: Any) -> Any:
    """An array as a tensor of adjoint's; of complex numbers the parts are along a last axis, as rules want them."""
    if value.__class__ is np.ndarray and value.dtype.kind == "f":
        return wrap(value, INNER, value.dtype)
    leaf = leaf_of(value)
    dtype = leaf.dtype_of(value)
    if dtype.kind == "c":
        dtype = np.dtype(f"f{dtype.itemsize // 2}")
        here = isinstance(value, np.ndarray)
        value = np.ascontiguousarray(value)[..., None].view(dtype) if here else Halves().read(leaf, value)
    return wrap(value, leaf, dtype)


def _outer(x: Any, dtype: Any) -> Any:
    """The array of a rule's result."""
    value = x._array
    if dtype.kind == "c" and value.ndim:
        if isinstance(value, np.ndarray):
            return np.ascontiguousarray(value).view(dtype)[..., 0]
        return Whole(dtype).read(leaf_of(value), value)
    return value


class _Summing(Ruled):
    """Has its state before the first step, as in PyTorch."""

    def __init__(self, params: Any, *args: Any, **given: Any) -> None:
        super().__init__(params, *args, **given)
        for group in self.param_groups:
            for p in group["params"]:
                self._begun(self._rule(group)[0], _inner(values(p)), self.state[p], p._dtype)


class _Averaging(Ruled):
    """Keeps the rate and the share of the next step, as PyTorch does: another `lr` counts a step later."""

    def _rule(self, group: dict[str, Any]) -> tuple[Any, float]:
        return super()._rule({**group, "alpha": 0.0})  # the rate that is kept has fallen

    def _rate(self, state: dict[str, Any], lr: float) -> float:
        return float(state["eta"].item()) if "eta" in state else lr

    def _note(self, state: dict[str, Any], group: dict[str, Any], step: int, lr: float) -> None:
        rate = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        for name, value in (("eta", rate), ("mu", 1 / max(1, step - group["t0"]))):
            state[name] = constant(np.asarray(value, default_float()))


@functools.cache
def _fields(kind: str) -> tuple[str, ...]:
    return tuple([name for name in getattr(ad.optim, kind).__dataclass_fields__ if name not in ("groups", "donate")])


@functools.lru_cache(256)
def _core(kind: str, names: tuple[str, ...], settings: tuple[Any, ...], lr: Any) -> Any:
    rate = {} if lr is None else {"lr": float(lr)}
    return getattr(ad.optim, kind)(**dict(zip(names, settings, strict=True)), **rate)


# --- the table ----------------------------------------------------------------------------------------------

# what all have, and changes nothing here but `maximize`; what is behind the star is given by name alone
_ANY = "maximize=False differentiable=False"
_MOST = f"{_ANY} capturable=False"
_EACH = f"* foreach=None {_MOST}"
_SPEED = "momentum=0 dampening=0 weight_decay=0 nesterov=False"
_ADAM = "lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0"
_MOMENTS = "mean=exp_avg square=exp_avg_sq"

# name | settings | what adjoint's rule remembers, and PyTorch's names of it
_TABLE = f"""
SGD       | lr=1e-3 {_SPEED} * foreach=None {_ANY} fused=None                     | velocity=momentum_buffer
Adam      | {_ADAM} amsgrad=False {_EACH} fused=None decoupled_weight_decay=False | {_MOMENTS} largest=max_exp_avg_sq
Adamax    | {_ADAM} foreach=None * {_MOST}                                        | mean=exp_avg largest=exp_inf
NAdam     | {_ADAM} momentum_decay=4e-3 decoupled_weight_decay=False {_EACH}      | product=mu_product {_MOMENTS}
RAdam     | {_ADAM} decoupled_weight_decay=False {_EACH}                          | {_MOMENTS}
Adadelta  | lr=1.0 rho=0.9 eps=1e-6 weight_decay=0 foreach=None * {_MOST}         | square=square_avg steps=acc_delta
ASGD      | lr=1e-2 lambd=1e-4 alpha=0.75 t0=1e6 weight_decay=0 foreach=None {_MOST} | average=ax
Rprop     | lr=1e-2 etas=(0.5,1.2) step_sizes=(1e-6,50) {_EACH}                   | gradient=prev size=step_size
"""
_ROOT = "lr=1e-2 alpha=0.99 eps=1e-8 weight_decay=0 momentum=0 centered=False"
_SUM = "lr=1e-2 lr_decay=0 weight_decay=0 initial_accumulator_value=0 eps=1e-10"
_FACTORS = "lr=1e-2 beta2_decay=-0.8 eps=(None,1e-3) d=1.0 weight_decay=0.0 * foreach=None maximize=False"
_TABLE += f"""
RMSprop   | {_ROOT} capturable=False foreach=None {_ANY} | square=square_avg velocity=momentum_buffer mean=grad_avg
Adagrad   | {_SUM} foreach=None * {_ANY} fused=None | sum=sum
Adafactor | {_FACTORS} | square=variance rows=row_var columns=col_var
"""

ALL: dict[str, Any] = {}
_MORE = {"ASGD": _Averaging, "Adagrad": _Summing}


def _declare(row: str) -> None:
    name, settings, slots = [cell.strip() for cell in row.split("|")]
    words = settings.split()
    defaults = {key: eval(value) for key, _, value in [word.partition("=") for word in words if word != "*"]}
    count = words.index("*") if "*" in words else len(words)
    members = {
        "_core": name, "_settings": defaults, "_slots": dict([word.split("=") for word in slots.split()]),
        "_by_place": count, "_counts": name != "SGD", "__module__": "adjoint.torch.optim",
        "__doc__": f"`ad.optim.{name}` under PyTorch's settings and states.",
    }  # fmt: skip
    ALL[name] = type(name, (_MORE.get(name, Ruled),), members)


for _row in filter(None, _TABLE.splitlines()):
    _declare(_row)
ALL["NAdam"]._settings["lr"] = ALL["Adamax"]._settings["lr"] = 2e-3


ALL["AdamW"] = type("AdamW", (ALL["Adam"],), {
    "_settings": {**ALL["Adam"]._settings, "weight_decay": 1e-2, "decoupled_weight_decay": True},
    "__module__": "adjoint.torch.optim", "__doc__": "`ad.optim.AdamW` under PyTorch's settings and states.",
})  # fmt: skip
