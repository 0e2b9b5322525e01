"""What all optimizers share: rules run in blocks, memory that is written over, groups, parameters in several places."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from test_optim import CASES

import adjoint as ad
from adjoint import errors
from adjoint.compiler.native import machine
from adjoint.optim import fused
from adjoint.tensor import wrap

RNG = np.random.default_rng(5)


class Point(ad.nn.Module):
    a: ad.Tensor[Any]
    b: ad.Tensor[Any]


def large(dtype: str = "float32") -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A vector that is no whole number of blocks, and a matrix that is one of each size and a rest."""
    return RNG.normal(size=2 * fused._BLOCK + 17).astype(dtype), RNG.normal(size=(200, 190)).astype(dtype)


def steps(optimizer: Any, model: Any, gradients: list[Any]) -> tuple[Any, Any]:
    """None as gradients are the parameters themselves, as of a sum of squares."""
    state = optimizer.init(model)
    for grads in gradients:
        model, state = optimizer.step(model, {"a": model.a, "b": model.b} if grads is None else grads, state)
    return model, state


def arrays(model: Any, state: Any) -> list[np.ndarray[Any, Any]]:
    slots = [y for slots in state.slots.values() for y in slots.values()]
    return [y.numpy() for y in (model.a, model.b, *slots)]


# --- rules in blocks -------------------------------------------------------------------------------


@pytest.fixture(params=["calls", pytest.param("machine code", marks=pytest.mark.slow)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How programs run: as calls of NumPy, or as machine code, which must have run."""
    if request.param == "machine code":
        peer("llvmlite")
        monkeypatch.setenv("ADJOINT_COMPILE", "")
    return str(request.param)


@pytest.mark.parametrize(("device", "dtype"), [("numpy", "float32"), ("autodiff<numpy>", "float64")])
def test_blocks_give_what_the_rule_gives(device: str, dtype: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[str] = set()
    watch(monkeypatch, lambda: ran.add(name))
    with Each() as each:
        for name, settings in [*CASES, ("Lion", {"weight_decay": 0.1})]:
            with each(f"{name} {settings}"):
                a, b = large(dtype)
                model = Point(ad.asarray(a, device=device), ad.asarray(b, device=device))
                gradients: list[Any] = [
                    {"a": ad.asarray(g, device=device), "b": ad.asarray(np.asfortranarray(h), device=device)}
                    for g, h in (large(dtype) for _ in range(3))
                ]
                gradients.insert(1, None)
                optimizer = getattr(ad.optim, name)(**settings)
                found = arrays(*steps(optimizer, model, gradients))
                over = arrays(*steps(dataclasses.replace(optimizer, donate=True), model, gradients))
                with monkeypatch.context() as patch:
                    patch.setattr(fused, "_MANY", 10**9)
                    wanted = arrays(*steps(optimizer, model, gradients))
                for x, y, z in zip(found, over, wanted, strict=True):
                    np.testing.assert_array_equal(x, z)
                    np.testing.assert_array_equal(y, z)
    assert ran == (set() if way == "calls" else {name for name, _ in CASES} - {"NAdam"} | {"Lion"})


def test_small_arrays_are_gathered_in_blocks(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a large one all sizes, also none, and of a gradient in columns, have what the rule gives by itself."""
    shapes = [(), (0,), (3,), (300, 300), (40, 41), (1,), (2047,), (2048,), (17, 30), (900,), (900,), (900,), (4099,)]
    ran: set[str] = set()
    watch(monkeypatch, lambda: ran.add(name))
    for name in ("Adam", "Lion", "Adadelta"):
        optimizer, found = getattr(ad.optim, name)(lr=0.01), {}
        values = [ad.asarray(RNG.normal(size=shape), device="numpy") for shape in shapes]
        gradients = [
            [ad.asarray(np.array(RNG.normal(size=s), order="F"), device="numpy") for s in shapes] for _ in range(3)
        ]
        for how, many, donate in (("alone", 10**9, False), ("gathered", fused._MANY, False), ("over", 0, True)):
            with monkeypatch.context() as patch:
                patch.setattr(fused, "_MANY", many)
                rule, model = dataclasses.replace(optimizer, donate=donate), values
                state = rule.init(model)
                for grads in gradients:
                    model, state = rule.step(model, grads, state)
            found[how] = [*model, *[y for slots in state.slots.values() for y in slots.values()]]
        for x, y, z in zip(found["alone"], found["gathered"], found["over"], strict=True):
            np.testing.assert_array_equal(x.numpy(), y.numpy())
            np.testing.assert_array_equal(x.numpy(), z.numpy())
    assert ran == (set() if way == "calls" else {"Adam", "Lion", "Adadelta"})


def test_a_program_stays_while_numbers_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a rate does; of parameters of primitives one is made for each, as equal ones are not always the same."""
    made: list[int] = []
    begin = fused._Program.__init__
    monkeypatch.setattr(fused._Program, "__init__", lambda self, *args: made.append(1) or begin(self, *args))
    monkeypatch.setattr(fused, "_program", functools.lru_cache(fused._Program))
    a, b = large()
    model, optimizer = Point(ad.asarray(a), ad.asarray(b)), ad.optim.Adam(lr=lambda step: 0.1 / (step + 1))
    steps(optimizer, model, [None] * 3)
    assert len(made) == 1
    steps(Strange(kind="slope"), model, [None] * 2)
    assert len(made) == 3


def watch(monkeypatch: pytest.MonkeyPatch, ran: Any) -> None:
    """Have a function called with each run of machine code that has written its results."""
    made = fused.flat.loop

    def loop(*args: Any) -> Any:
        found = made(*args)
        return found and (lambda arrays: found(arrays) and (ran(), True)[1])

    monkeypatch.setattr(fused.flat, "loop", loop)
    monkeypatch.setattr(fused, "_program", fused._Program)  # not one that was made before


def test_machine_code_runs_where_arrays_are_as_it_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot read, NumPy does, with the same result; as where there is none."""
    peer("llvmlite")
    ran: list[int] = []
    watch(monkeypatch, lambda: ran.append(1))
    a, b = large()
    model, g = Point(ad.asarray(a), ad.asarray(b)), RNG.normal(size=a.size).astype("float32")
    unaligned = np.frombuffer(b" " + g.tobytes(), np.float32, offset=1)
    found = {}
    for way in ("replay", ""):
        monkeypatch.setenv("ADJOINT_COMPILE", way)
        for name, gradient in (("aligned", g), ("unaligned", unaligned)):
            ran.clear()
            found[way, name] = arrays(*steps(ad.optim.Adam(), model, [{"a": wrap(gradient, ad.NumPy())}] * 2)), len(ran)
    large_loop, small_loop = fused._LOOPS
    loops = a.size // large_loop + a.size % large_loop // small_loop
    assert [count for _, count in found.values()] == [
        0,
        0,
        2 * (loops + 1),
        2,
    ]  # and the rest
    for values, _ in found.values():
        for x, y in zip(values, found["replay", "aligned"][0], strict=True):
            np.testing.assert_array_equal(x, y)
    ran.clear()
    monkeypatch.setattr(machine, "llvm", lambda: None)  # as where llvmlite is not installed: nobody is warned
    steps(ad.optim.Adam(), model, [{"a": wrap(g, ad.NumPy())}])
    assert not ran


def test_programs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but NAdam's, which remembers a single number, run in blocks."""
    ran: list[str] = []
    run = fused._Program.run
    monkeypatch.setattr(fused._Program, "run", lambda self, *args: ran.append(name) or run(self, *args))
    names = [*dict.fromkeys([name for name, _ in CASES]), "Lion"]
    for name in names:
        a, b = large()
        model = Point(ad.asarray(a), ad.asarray(b))
        steps(getattr(ad.optim, name)(), model, [{"a": model.a}])
    assert ran == [name for name in names if name != "NAdam"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Strange(ad.optim.Optimizer):
    """A rule with everything that blocks could get wrong."""

    kind: str = "norm"

    def begin(self, x: Any) -> Any:
        return {"old": ad.zeros_like(x), "same": ad.ones_like(x)}

    def update(self, x: Any, g: Any, slots: Any, step: Any, lr: Any) -> Any:
        old, same = slots["old"], slots["same"]
        if self.kind == "norm":
            return x - lr * g / ad.sqrt((g * g).sum()), slots
        if self.kind == "shape":
            return x - lr * g / x.ndim, {"old": g, "same": same}
        if self.kind == "where":  # of a condition, which is of another dtype
            return ad.where(g > 0, x - lr, x + 0.0 * old), {"old": ad.where(old < g, g, old), "same": same}
        if self.kind == "exchanged":  # what is written is read again
            return old + g, {"old": x, "same": old}
        if self.kind == "slope":
            return x - ad.nn.leaky_relu(g, 0.1 * step), slots
        if self.kind == "twice":
            y = x - lr * g
            return y, {"old": y, "same": same + y}
        return x - lr * ad.clip(g, -0.5, 0.5) ** 3, {"old": abs(g), "same": ad.exp(-same)}


def test_rules_of_all_kinds(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: dict[str, None] = {}
    watch(monkeypatch, lambda: ran.update({kind: None}))
    for kind in ("norm", "shape", "where", "exchanged", "slope", "twice", "functions"):
        a, b = large("float64")
        model = Point(ad.asarray(a), ad.asarray(b))
        gradients = [dict(zip("ab", map(ad.asarray, large("float64")), strict=True)) for _ in range(3)]
        found = arrays(*steps(Strange(kind=kind), model, gradients))
        over = arrays(*steps(Strange(kind=kind, donate=True), model, gradients))
        with monkeypatch.context() as patch:
            patch.setattr(fused, "_MANY", 10**9)
            wanted = arrays(*steps(Strange(kind=kind), model, gradients))
        for x, y, z in zip(found, over, wanted, strict=True):
            np.testing.assert_array_equal(x, z, kind)
            np.testing.assert_array_equal(y, z, kind)
    assert [*ran] == ([] if way == "calls" else ["where", "exchanged", "twice"])  # exp has other bits


def test_errors_of_a_rule_are_its_own() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Wrong(ad.optim.Optimizer):
        def update(self, x: Any, g: Any, slots: Any, step: Any, lr: Any) -> Any:
            raise ValueError("of the rule")

    a, b = large()
    model = Point(ad.asarray(a), ad.asarray(b))
    with pytest.raises(ValueError, match="of the rule"):
        steps(Wrong(), model, [{"a": model.a}])


def test_donated_memory() -> None:
    a, b = large()
    kept = a.copy(), b.copy()
    model = Point(ad.asarray(a), ad.asarray(b))
    optimizer = ad.optim.Adam(donate=True)
    first, state = steps(optimizer, model, [{"a": model.a, "b": model.b}])
    again = pickle.loads(pickle.dumps((first, state)))
    average = ad.optim.EMA().init(first)
    kept_model, values = copy.deepcopy(first), first.a.numpy().copy()
    second, _ = optimizer.step(first, {"a": model.a, "b": model.b}, state)
    np.testing.assert_array_equal(a, kept[0])  # a user's arrays stay
    np.testing.assert_array_equal(b, kept[1])
    assert np.shares_memory(first.a.numpy(), second.a.numpy())
    np.testing.assert_array_equal(average.values["a"].numpy(), values)
    np.testing.assert_array_equal(kept_model.a.numpy(), values)
    third, _ = optimizer.step(again[0], {"a": model.a, "b": model.b}, again[1])
    np.testing.assert_array_equal(third.b.numpy(), second.b.numpy())
    plain, state = steps(ad.optim.Adam(), model, [{"a": model.a}] * 2)
    later, _ = ad.optim.Adam().step(plain, {"a": model.a}, state)
    assert not np.shares_memory(plain.a.numpy(), later.a.numpy())


# --- groups ----------------------------------------------------------------------------------------


def network() -> Any:
    ad.random.seed(1)
    layer = lambda *sizes: ad.nn.Linear(*sizes, dtype=ad.float64)
    return ad.nn.Sequential(layer(3, 4), ad.tanh, layer(4, 2))


X, Y = RNG.normal(size=(16, 3)), RNG.normal(size=(16, 2))


def loss(model: Any) -> Any:
    return ((model(ad.asarray(X)) - ad.asarray(Y)) ** 2).mean()


def trained(optimizer: Any, model: Any, count: int = 5, **options: Any) -> dict[str, Any]:
    state = optimizer.init(model)
    for _ in range(count):
        model, state = optimizer.step(model, loss(model).backward(), state, **options)
        state = pickle.loads(pickle.dumps(state))
    return {path: x.numpy() for path, x in model.named_parameters().items()}


def torch_twin(torch: Any) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    with torch.no_grad():
        for p, x in zip(net.parameters(), network().named_parameters().values(), strict=True):
            p.copy_(torch.from_numpy(x.numpy().copy()))
    return net


@pytest.mark.peers
def test_groups_are_pytorchs() -> None:
    torch = peer("torch")
    net = torch_twin(torch)
    theirs = torch.optim.AdamW(
        [
            {"params": [net[0].weight], "lr": 0.01, "betas": (0.5, 0.6)},
            {"params": [net[0].bias, net[2].bias], "weight_decay": 0.0},
            {"params": [net[2].weight]},
        ],
        lr=0.1,
    )
    for _ in range(5):
        theirs.zero_grad()
        ((net(torch.from_numpy(X)) - torch.from_numpy(Y)) ** 2).mean().backward()
        theirs.step()
    optimizer = ad.optim.AdamW(lr=0.1).group("*.bias", weight_decay=0.0)
    optimizer = optimizer.group(lambda path, x: path == "layers.0.weight", lr=0.01, betas=(0.5, 0.6))
    found = trained(optimizer, network().require_grad())
    for p, x in zip(net.parameters(), found.values(), strict=True):
        np.testing.assert_allclose(x, p.detach().numpy(), rtol=1e-10)


def test_groups_have_rates_and_rules_of_their_own() -> None:
    model = network().require_grad()
    plain, slow = trained(ad.optim.SGD(lr=0.1), model), trained(ad.optim.SGD(lr=0.02), model)
    fixed = ad.optim.SGD(lr=0.1).group("layers", lr=lambda step: 0.02)
    for path, x in trained(fixed, model, lr=0.3).items():  # a rate of its own stays
        np.testing.assert_array_equal(x, slow[path])
    same = ad.optim.SGD(lr=0.7).group("layers.2", momentum=0.0)
    for path, x in trained(same, model, lr=0.1).items():  # and that of the step is all others'
        np.testing.assert_array_equal(x, plain[path])
    other = ad.optim.Adam(lr=0.5).group("*", use=ad.optim.SGD(lr=0.3), lr=0.1)
    for path, x in trained(other, model).items():
        np.testing.assert_array_equal(x, plain[path])
    state = ad.optim.SGD().group("layers.0", use=ad.optim.Adam()).init(model)
    assert [list(slots) for slots in state.slots.values()] == [["mean", "square"]] * 2 + [[]] * 2


def test_averages_of_groups_are_those_of_their_rules() -> None:
    """As of models that have the parameters of one rule alone, and of what has no average, the value."""
    model = network().require_grad()

    def ended(optimizer: Any, averaged: bool = True) -> Any:
        found, state = model, optimizer.init(model)
        for k in range(4):
            grads = {path: (k + 1) * w.detach() for path, w in model.named_parameters().items()}
            found, state = optimizer.step(found, grads, state)
        return optimizer.averaged(found, state) if averaged else found

    kind = ad.optim.ScheduleFreeSGD
    slow, fast, plain = ended(kind(lr=0.1)), ended(kind(lr=0.1, b1=0.5)), ended(ad.optim.SGD(lr=0.1), False)
    found = ended(kind(lr=0.1).group("*.bias", b1=0.5).group("layers.2.weight", use=ad.optim.SGD(lr=0.1)))
    for path, x in found.named_parameters().items():
        of = fast if path.endswith("bias") else plain if path == "layers.2.weight" else slow
        np.testing.assert_array_equal(x.numpy(), of.at(path).get().numpy())
    assert not np.array_equal(slow.layers[0].bias.numpy(), fast.layers[0].bias.numpy())


def test_a_group_may_donate_alone() -> None:
    a, b = large()
    model = Point(ad.asarray(a), ad.asarray(b))
    optimizer = ad.optim.Adam().group("a", donate=True)
    first, state = steps(optimizer, model, [{"a": model.a, "b": model.b}])
    second, _ = optimizer.step(first, {"a": model.a, "b": model.b}, state)
    assert np.shares_memory(first.a.numpy(), second.a.numpy())
    assert not np.shares_memory(first.b.numpy(), second.b.numpy())


def test_wrong_groups() -> None:
    optimizer = ad.optim.SGD()
    with pytest.raises(errors.ArgumentError, match="group: use has groups of its own; give them to the optimizer"):
        optimizer.group("layers", use=ad.optim.Adam().group("*.bias", lr=0.1))
    with pytest.raises(errors.ArgumentError, match="group: ASGD has an average to evaluate, and SGD gives none; make"):
        optimizer.group("layers", use=ad.optim.ASGD())
    with pytest.raises(errors.ArgumentError, match=r"group: SGD has no setting beta; there are dampening, donate, lr"):
        optimizer.group("bias", beta=1)
    with pytest.raises(errors.ArgumentTypeError, match="group: a path, a pattern or a function .* received None"):
        optimizer.group(weight_decay=1)
    with pytest.raises(errors.ArgumentTypeError, match="group: use is an optimizer .* received 3"):
        optimizer.group("bias", use=3)
    with pytest.raises(errors.ArgumentError, match=r"group: nothing fits 'gain'; parameters are 'layers\.0\.weight"):
        optimizer.group("*.bias", "gain", lr=1).init(network())


# --- tensors in several places -----------------------------------------------------------------------


class Tied(ad.nn.Module):
    """Words to next words, with one matrix before and after."""

    embedding: ad.nn.Embedding
    hidden: ad.nn.Linear
    output: ad.nn.Linear

    def __call__(self, words: Any) -> Any:
        return self.output(ad.tanh(self.hidden(self.embedding(words))))


def tied() -> Tied:
    ad.random.seed(2)
    f64 = {"dtype": ad.float64}
    model = Tied(ad.nn.Embedding(7, 4, **f64), ad.nn.Linear(4, 4, **f64), ad.nn.Linear(4, 7, **f64))
    return model.at("output.weight").set(model.embedding.weight)


WORDS, NEXT = RNG.integers(0, 7, 20), RNG.integers(0, 7, 20)


def word_loss(model: Tied) -> Any:
    return ad.nn.cross_entropy(model(ad.asarray(WORDS)), ad.asarray(NEXT))


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["backward", "grad", "by path", "container"])
def test_shared_weights_are_trained_as_in_pytorch(kind: str) -> None:
    torch = peer("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.hidden = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 4)
            self.output = torch.nn.Linear(4, 7)
            self.output.weight = self.embedding.weight

        def forward(self, words: Any) -> Any:
            return self.output(torch.tanh(self.hidden(self.embedding(words))))

    net, model = Net().double(), tied()
    with torch.no_grad():
        for path, p in net.named_parameters():
            p.copy_(torch.from_numpy(model.at(path).get().numpy().copy()))
    assert [path for path, _ in net.named_parameters()] == list(model.named_parameters())
    theirs = torch.optim.Adam(net.parameters(), lr=0.05)
    optimizer = ad.optim.Adam(lr=0.05)
    model = model.require_grad() if kind in ("backward", "container") else model
    state = optimizer.init(model)
    assert list(state.slots) == list(model.named_parameters())
    for _ in range(10):
        theirs.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.from_numpy(WORDS)), torch.from_numpy(NEXT)).backward()
        theirs.step()
        grads: Any = word_loss(model).backward() if kind in ("backward", "container") else ad.grad(word_loss)(model)
        if kind == "by path":
            grads = grads.named_parameters()
        if kind == "container":
            grads = ad.optim.GradientsParams.from_grads(grads, model)
        model, state = optimizer.step(model, grads, state)
        assert model.output.weight is model.embedding.weight
    for path, p in net.named_parameters():
        np.testing.assert_allclose(model.at(path).get().numpy(), p.detach().numpy(), rtol=1e-9)


def test_shared_tensors_stay_shared() -> None:
    model = tied()
    whole = model.num_params()
    assert whole == 28 + 20 + 7
    for made in (
        model.require_grad(),
        model.fork("autodiff<numpy>"),
        model.to_device("numpy"),
        model.require_grad().valid(),
        model.map(lambda x: x * 2),
        model.load_record(model.record()),
        pickle.loads(pickle.dumps(model.require_grad())),
    ):
        assert made.embedding.weight is made.output.weight
        assert made.num_params() == whole
    frozen = model.freeze("output.weight")
    assert ad.grad(word_loss)(frozen).embedding.weight is None
    assert list(ad.optim.SGD().init(frozen).slots) == ["hidden.weight", "hidden.bias", "output.bias"]


def test_records_of_shared_tensors() -> None:
    model = tied()
    record = model.record()
    once = {path: x for path, x in record.items() if path != "embedding.weight"}  # as other libraries write it
    np.testing.assert_array_equal(model.load_record(once).embedding.weight.numpy(), record["output.weight"])
    with pytest.raises(
        errors.ArgumentError, match=r"embedding\.weight and output\.weight are one tensor, and have two"
    ):
        model.load_record({**record, "output.weight": record["output.weight"] + 1})
