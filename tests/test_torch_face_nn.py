"""`adjoint.torch.nn` beside PyTorch's: layers, functions, modules, first values."""

from __future__ import annotations

import inspect
import io
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch_functionals
import torch_layers
import torch_models
import torch_modules
from each import Each
from torch_functionals import CASES
from torch_functions import different, outcome

import adjoint.torch as ours


def _state(theirs: Any, text: str) -> dict[str, Any]:
    """Values for a layer's parameters and buffers, which both libraries get."""
    layer = eval(text, {"torch": theirs, **vars(theirs.nn)}).double()
    r = np.random.default_rng(len(text))
    found = {}
    for name, x in layer.state_dict().items():
        value = x.numpy().copy()
        if name.endswith("running_var"):
            value = np.abs(r.standard_normal(value.shape)) + 0.5
        elif (value.dtype.kind == "f" and not name.endswith("weight")) or value.ndim == 1:
            value = r.standard_normal(value.shape)
        found[name] = value
    return found


def compare_layer(theirs: Any, text: str, spec: str, training: bool, seed: int = 0) -> None:
    given = torch_layers.arrays(spec, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = _state(theirs, text)
        wanted = torch_layers.run(theirs, text, spec, given, state, training)
        found = torch_layers.run(ours, text, spec, given, state, training)
    assert found["text"] == wanted["text"]
    assert found["names"] == wanted["names"]
    assert found["start"] == wanted["start"]
    for part in ("values", "gradients"):
        assert len(found[part]) == len(wanted[part]), part
        for a, b in zip(found[part], wanted[part], strict=True):
            assert (a is None) == (b is None), part
            if a is not None:
                # PyTorch's hardsigmoid divides by 6 in single precision
                tolerance = 1e-7 if text == "Hardsigmoid()" else 1e-9
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10, err_msg=part)
                assert a.dtype == b.dtype
    for name, value in wanted["state"].items():
        np.testing.assert_allclose(found["state"][name], value, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.peers
def test_layers_are_those_of_pytorch_in_text_names_values_gradients_and_state() -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each:
        for text, spec in torch_layers.ROWS[::8]:  # the others are slow
            with each(text.strip()):
                compare_layer(theirs, text.strip(), spec, True)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("training", [True, False])
def test_all_layers_are_those_of_pytorch(training: bool) -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each:
        for text, spec in torch_layers.ROWS:
            with each(text.strip()):
                compare_layer(theirs, text.strip(), spec, training, int(training))


def test_every_layer_has_a_case() -> None:
    named = {text.strip().partition("(")[0] for text, _ in torch_layers.ROWS}
    lazy = {name for name in ours.nn.LAYERS if name.startswith("Lazy")}  # in a program of torch_modules
    drawn = {"FractionalMaxPool2d", "FractionalMaxPool3d"}  # tested below
    assert set(ours.nn.LAYERS) - named - lazy - drawn == {"RNNBase", "RNNCellBase"}


@pytest.mark.peers
@pytest.mark.parametrize("name", torch_modules.ALL)
def test_programs_of_modules_print_what_they_print_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_modules.printed(name, ours) == torch_modules.printed(name, theirs)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("name", torch_models.ALL)
def test_models_of_examples_train_as_they_do_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_models.printed(name, ours) == torch_models.printed(name, theirs)


def test_models_of_examples_run_without_pytorch() -> None:
    for name in ("mlp", "gpt"):
        assert len(torch_models.printed(name, ours)) > 4


def compare_function(name: str, seed: int) -> None:
    theirs = pytest.importorskip("torch")
    for i, found in enumerate(CASES[name]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            orders = 2
            try:
                wanted = outcome(theirs, found, "float64", seed)
            except (RuntimeError, NotImplementedError) as error:
                if "derivative for" not in str(error) and "not differentiable" not in str(error):
                    raise
                orders = 1  # PyTorch has no second derivative
                wanted = outcome(theirs, found, "float64", seed, orders)
            here = outcome(ours, found, "float64", seed, orders)
        differs = different(wanted, here, 1e-7 if name == "hardsigmoid" else 1e-9)
        assert differs is None, f"{i}: {differs}"


@pytest.mark.peers
def test_functions_and_their_derivatives_are_those_of_pytorch() -> None:
    with Each() as each:
        for name in [*CASES][::4]:  # the others are slow
            with each(name):
                compare_function(name, 1)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("seed", [0, 1])
def test_all_functions_and_their_derivatives_are_those_of_pytorch(seed: int) -> None:
    with Each() as each:
        for name in CASES:
            with each(name):
                compare_function(name, seed)


def test_every_function_has_a_case() -> None:
    assert set(ours.nn.functional.ALL) == torch_functionals.names()


def test_dropped_and_drawn_values_follow_the_seed_and_keep_means() -> None:
    F = ours.nn.functional
    x = ours.ones(100, 50)
    for name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
        ours.manual_seed(4)
        first = getattr(F, name)(x, 0.3, True)
        ours.manual_seed(4)
        assert ours.equal(first, getattr(F, name)(x, 0.3, True))
        assert not ours.equal(first, getattr(F, name)(x, 0.3, True))
    assert abs(F.dropout(x, 0.3).mean().item() - 1) < 0.05
    assert F.dropout2d(x.reshape(10, 10, 5, 10), 0.5).sum((2, 3)).unique().tolist() == [0.0, 100.0]
    soft = F.gumbel_softmax(ours.zeros(1000, 4), tau=0.5)
    np.testing.assert_allclose(soft.sum(1).numpy(), 1, rtol=1e-5)
    hard = F.gumbel_softmax(ours.zeros(2000, 4), hard=True)
    np.testing.assert_allclose(hard.mean(0).numpy(), 0.25, atol=0.05)
    slopes = F.rrelu(-x, 0.1, 0.3, training=True).neg()
    assert 0.1 <= slopes.min().item() < slopes.max().item() <= 0.3
    net = ours.nn.LSTM(2, 3, num_layers=2, dropout=0.5)
    sequence = ours.ones(4, 1, 2)
    assert not ours.equal(net(sequence)[0], net(sequence)[0])
    net.eval()
    assert ours.equal(net(sequence)[0], net(sequence)[0])


def test_fractional_pools_draw_their_windows() -> None:
    x = ours.arange(2.0 * 9 * 9).reshape(1, 2, 9, 9).requires_grad_()
    ours.manual_seed(0)
    pool = ours.nn.FractionalMaxPool2d(2, output_size=(3, 4), return_indices=True)
    out, places = pool(x)
    assert out.shape == places.shape == (1, 2, 3, 4)
    assert ours.equal(out, x.flatten(2).gather(2, places.flatten(2)).reshape(out.shape))
    assert len({tuple(pool(x)[1].flatten().tolist()) for _ in range(9)}) > 1
    out.sum().backward()
    taken = ours.zeros(2, 81).scatter_add(1, places.reshape(2, -1), ours.ones(2, 12))
    assert ours.equal(x.grad.reshape(2, 81), taken)
    assert ours.nn.FractionalMaxPool3d(2, output_ratio=0.5)(ours.ones(1, 6, 8, 9)).shape == (1, 3, 4, 4)
    F = ours.nn.functional
    assert len(F.fractional_max_pool2d_with_indices(x, 2, output_ratio=(0.5, 0.5))) == 2
    for options in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        with pytest.raises(ValueError, match="output"):
            ours.nn.FractionalMaxPool2d(2, **options)
    with pytest.raises(NotImplementedError, match="manual_seed"):
        F.fractional_max_pool2d(x, 2, 3, _random_samples=ours.ones(1, 2, 2))


@pytest.mark.peers
def test_rows_of_a_table_are_shortened_in_place() -> None:
    theirs = pytest.importorskip("torch")

    def run(torch: Any) -> Any:
        table = torch.nn.Embedding(4, 2, max_norm=1.0)
        with torch.no_grad():
            table.weight.copy_(torch.arange(8.0).reshape(4, 2))
        out = table(torch.tensor([1, 3, 1]))
        out.sum().backward()
        return [x.detach().numpy() for x in (out, table.weight, table.weight.grad)]

    for a, b in zip(run(ours), run(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


REFUSED = """
nn.Linear(3, 2)(torch.ones(4, 5))
nn.Linear(3, 2)(torch.ones(4, 3).double())
nn.Conv2d(3, 2, 3)(torch.ones(1, 4, 5, 5))
nn.Conv2d(3, 2, 3)(torch.ones(4, 5))
nn.Conv2d(3, 2, 3, groups=2)
nn.Conv2d(4, 2, 3, padding_mode='x')
nn.Conv2d(1, 1, 2, padding='same', stride=2)
nn.BatchNorm2d(3)(torch.ones(2, 3))
nn.BatchNorm1d(3)(torch.ones(1, 3))
nn.GroupNorm(2, 3)
nn.LayerNorm(3)(torch.ones(2, 4))
nn.Dropout(1.5)
nn.Embedding(3, 2)(torch.tensor([3]))
nn.Embedding(3, 2)(torch.tensor([1.0]))
nn.Embedding(3, 2, padding_idx=5)
nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([1, 3]))
nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([1]))
nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([1.0, 2.0]))
F.mse_loss(torch.ones(2), torch.ones(2), reduction='x')
F.binary_cross_entropy(torch.ones(2) * 2, torch.ones(2))
F.binary_cross_entropy(torch.ones(2), torch.ones(3))
F.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(3))
nn.LSTM(3, 4)(torch.ones(2, 2, 5))
nn.LSTM(3, 4)(torch.ones(2))
nn.LSTM(3, 4)(torch.ones(2, 2, 3), (torch.ones(1, 3, 4), torch.ones(1, 3, 4)))
nn.RNN(3, 4, nonlinearity='x')
nn.GRUCell(3, 4)(torch.ones(2, 4))
nn.MultiheadAttention(5, 2)
nn.MultiheadAttention(4, 2)(torch.ones(2, 1, 3), torch.ones(2, 1, 3), torch.ones(2, 1, 3))
nn.Softmax2d()(torch.ones(2, 3))
F.glu(torch.ones(3))
F.pad(torch.ones(3), (1,))
F.pad(torch.ones(3), (1, 1, 1, 1))
F.interpolate(torch.ones(1, 1, 3))
F.interpolate(torch.ones(1, 1, 3), size=4, mode='nearest', align_corners=True)
F.one_hot(torch.tensor([1.0]))
F.one_hot(torch.tensor([3]), 2)
nn.Module()(1)
nn.Module().x
nn.Parameter(torch.tensor([1]))
nn.Linear(1, 1).register_parameter('a.b', None)
nn.Linear(1, 1).register_parameter('', None)
nn.Linear(1, 1).register_parameter('x', torch.ones(1))
nn.Linear(1, 1).register_buffer('weight', torch.ones(1))
nn.Linear(1, 1).register_buffer('w', 3)
nn.Sequential(3)
nn.Linear(1, 1).load_state_dict(3)
nn.Sequential(nn.ReLU())[1]
nn.Linear(1, 1).train(1)
nn.Linear(1, 1).get_submodule('x')
nn.PReLU(3)(torch.ones(2, 4))
F.softmax(torch.ones(2, 3), 5)
F.triplet_margin_loss(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2), margin=-1)
nn.LSTM(3, 4, dropout=2)
nn.Unflatten(1, (2, 2))(torch.ones(2, 3))
F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 2, 2, 2), mode='x')
nn.ConvTranspose2d(1, 1, 3, padding_mode='reflect')
nn.AdaptiveLogSoftmaxWithLoss(8, 10, [])
object.__new__(nn.Linear).__setattr__('a', nn.ReLU())
nn.MSELoss(foo=1)
""".strip().splitlines()


@pytest.mark.peers
def test_refusals_are_those_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")

    def refused(torch: Any, source: str) -> tuple[str, set[str]]:
        try:
            eval(source, {"torch": torch, "nn": torch.nn, "F": torch.nn.functional})
        except Exception as error:
            return type(error).__name__, set(re.findall(r"[a-z_]{4,}", str(error).split("\n")[0].lower()))
        return "", set()

    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in REFUSED:
            with each(source):
                (kind, said), (wanted, words) = refused(ours, source), refused(theirs, source)
                assert kind == wanted
                assert kind
                assert len(said & words) >= 0.6 * len(words), said  # the phrase, if not every word


@pytest.mark.peers
def test_states_go_through_files_and_models_through_function_transforms() -> None:
    theirs = pytest.importorskip("torch")
    state = {}

    def run(torch: Any) -> list[Any]:
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
        if not state:
            state.update({name: x.numpy() for name, x in model.state_dict().items()})
        model.load_state_dict({name: torch.tensor(x) for name, x in state.items()})
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "epoch": 3}, file)
        file.seek(0)
        known = theirs.load(file, weights_only=True)  # what either library wrote
        assert known["epoch"] == 3
        found = [known["model"]["0.weight"].numpy()]
        parameters = {name: x.detach() for name, x in model.named_parameters()}
        x, y = torch.tensor(np.arange(6.0).reshape(2, 3) / 5), torch.tensor([0, 1])

        def loss(parameters: Any, x: Any, y: Any) -> Any:
            out = torch.func.functional_call(model, parameters, (x.unsqueeze(0),))
            return torch.nn.functional.cross_entropy(out, y.unsqueeze(0))

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
        found += [each[name].numpy() for name in parameters]
        hidden = torch.nn.LSTM(3, 2).double()
        with torch.no_grad():
            for p in hidden.parameters():
                p.fill_(0.3)
        jacobian = torch.func.jacrev(lambda x: hidden(x)[0])(x)
        return [*found, jacobian.detach().numpy()]

    for a, b in zip(run(theirs), run(ours), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-12)


DRAWING = [
    name
    for name, f in sorted(vars(ours.nn.init).items())
    if name.endswith("_") and not name.startswith("_") and "generator" in inspect.signature(f).parameters
]


@pytest.mark.parametrize("name", DRAWING)
def test_generators_give_the_numbers_of_initial_weights(name: str) -> None:
    function = getattr(ours.nn.init, name)
    settings = {"sparsity": 0.5} if name == "sparse_" else {}
    drawn = ours.get_rng_state().tolist()
    made = []
    for seed in (1, 1, 2):
        weight = ours.zeros(4, 4)
        function(weight, **settings, generator=ours.Generator().manual_seed(seed))
        made.append(weight.tolist())
    assert made[0] == made[1] != made[2]
    assert ours.get_rng_state().tolist() == drawn
