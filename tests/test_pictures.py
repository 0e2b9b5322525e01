"""`ad.draw`: what boxes tell is what the graph has, folding loses none, and pages work in a browser."""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import shutil
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as ad
from adjoint import errors
from adjoint.pictures import boxes, drawing, folding, svg, times
from adjoint.pictures.boxes import Box, Boxes
from adjoint.pictures.folding import Group

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def graphviz() -> None:
    """Skips where Graphviz is missing, but in CI fails."""
    if not os.environ.get("CI"):
        pytest.importorskip("pygraphviz", reason="needs pygraphviz: pip install 'adjoint[draw]'")


def by_name(found: Boxes) -> dict[str, Box]:
    """The boxes by what they are called, which are unique in small graphs."""
    return {box.label or box.name: box for box in found.boxes}


def of_function(f: Any, *args: Any) -> dict[str, Box]:
    """The boxes that `ad.draw(f, *args)` shows."""
    with drawing._values_kept():
        root, names = drawing._run(f, args)
    return by_name(boxes.of_tensor(root, names))


# --- what boxes tell ---


def test_boxes_of_a_graph() -> None:
    """Leaves stand before what reads them; gradients are those of backward; what is kept counts once."""
    x = ad.tensor([1.0, 2.0, 3.0], dtype=ad.float64).require_grad()
    w = ad.tensor(2.0, dtype=ad.float64).require_grad()
    y = x * w
    loss = (ad.sin(y) + y).sum()
    found = boxes.of_tensor(loss, {x._array.node.key: "x", w._array.node.key: "w"})
    assert [(box.label or box.name, box.kind) for box in found.boxes][2:] == [
        ("multiply", "node"), ("sin", "node"), ("add", "node"), ("sum", "node"),
    ]  # fmt: skip
    named = by_name(found)
    names = [box.label or box.name for box in found.boxes]
    reads = {name: sorted(names[k] for k in box.parents) for name, box in named.items()}
    assert reads == {
        "x": [], "w": [], "multiply": ["w", "x"], "sin": ["multiply"], "add": ["multiply", "sin"], "sum": ["add"],
    }  # fmt: skip
    grads = loss.backward(retain_graph=True, wrt=[x, w, y])
    for name, tensor in {"x": x, "w": w, "multiply": y}.items():
        size = np.sqrt(np.mean(grads[tensor].numpy() ** 2))
        assert named[name].size == pytest.approx(size, rel=1e-14)
    assert (named["w"].value, named["w"].shape, named["w"].dtype) == ("2", (), "float64")
    assert named["multiply"].value == "[2, 4, 6]"  # which sin keeps
    assert named["sum"].value is None  # nobody keeps it
    assert sorted(named["multiply"].keeps) == ["x", "y"]
    assert (named["multiply"].bytes, named["sin"].bytes, found.kept) == (32, 24, 56)
    assert loss.backward()[w].item() == pytest.approx(float(np.sum((np.cos(y.numpy()) + 1) * x.numpy())))


def test_an_array_that_two_keep_counts_where_it_is_kept_first() -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    found = boxes.of_tensor((ad.sin(x) * ad.cos(x)).sum(), {})
    assert found.kept == sum(box.bytes for box in found.boxes) == 3 * 8


def test_a_function_has_lines_values_and_names() -> None:
    def f(x: Any, layers: Any, *more: Any) -> Any:
        h = ad.exp(x * layers["w"])
        return h.sum() + more[0]

    named = of_function(f, np.array([0.0, 1.0]), {"w": 2.0}, np.array(1.0))
    assert {name for name, box in named.items() if box.kind == "leaf"} == {"x", "layers['w']", "more[0]"}
    assert [named[name].value for name in ("multiply", "exp", "sum", "add")] == [
        "[0, 2]", "[1, 7.3891]", "8.3891", "9.3891",
    ]  # fmt: skip
    assert named["exp"].line is not None
    assert named["exp"].line.file == __file__
    assert str(named["exp"].line).endswith('h = ad.exp(x * layers["w"])')
    assert boxes.of_tensor((ad.ones(2).require_grad() * 2).sum(), {}).boxes[-1].line is None  # it is off again


def test_a_model_is_drawn_by_the_paths_of_its_parameters() -> None:
    model = ad.nn.Sequential(ad.nn.Linear(2, 3), ad.nn.Linear(3, 1))
    named = of_function(model, ad.ones((4, 2)))
    paths = {*model.named_parameters(), *[name for name in named if named[name].kind == "leaf"]}
    assert paths == {
        *model.named_parameters(),
        next(iter(paths - {*model.named_parameters()})),
    }  # the input, and no more


def test_where_a_path_is_cut() -> None:
    named = of_function(lambda x: (x * x.detach().round()).sum(), np.array([1.2, 2.6]))
    assert [name for name, box in named.items() if box.kind == "cut"] == ["detach", "round"]
    assert named["round"].value == "[1, 3]"
    assert (named["detach"].shape, named["detach"].gradient) == ((2,), None)
    with ad.testing.source_locations():
        x = ad.tensor([1.0]).require_grad()
        found = boxes.of_tensor((x.detach() * 2).sum(), {})
    assert [box.kind for box in found.boxes] == ["leaf", "cut", "cut", "cut"]
    assert "no gradient" in found.notes[0]


def test_several_results_are_one_box() -> None:
    x = ad.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=ad.float64).require_grad()
    values, vectors = ad.linalg.eigh(x)
    found = boxes.of_tensor((values * values).sum() + vectors.sum(), {})
    (box,) = [box for box in found.boxes if box.name == "eigh"]
    assert box.parents == [0]
    np.testing.assert_allclose(json.loads(str(box.gradient)), 2 * values.numpy(), rtol=1e-4)


@pytest.mark.parametrize(
    "device",
    [
        "autodiff<autodiff<numpy>>",
        "autodiff[checkpointing=balanced]<numpy>",
        "autodiff<reference>",
        "autodiff<checked<numpy>>",
    ],
)
def test_any_level_can_be_drawn(device: str) -> None:
    """Gradients are the same, whatever a level decorates and keeps."""
    x = ad.tensor([1.0, 2.0], device=device, dtype=ad.float64).require_grad()
    found = by_name(boxes.of_tensor((ad.exp(ad.sin(x)) * x).sum(), {}))
    values = np.array([1.0, 2.0])
    by_x = np.exp(np.sin(values)) * (1 + values * np.cos(values))
    assert found["leaf"].size == pytest.approx(np.sqrt(np.mean(by_x**2)))
    assert found["leaf"].gradient == boxes.text_of(by_x)


def test_within_a_transform() -> None:
    """Where there are examples, there is no one value to show; and drawing leaves the graph as it is."""
    seen: list[Boxes] = []

    def f(x: Any) -> Any:
        y = ad.sin(x).sum()
        seen.append(boxes.of_tensor(y, {}))
        return y

    x = np.array([[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_allclose(ad.vmap(ad.grad(f))(x), np.cos(x))
    np.testing.assert_allclose(ad.grad(f)(x[0]), np.cos(x[0]))
    assert [[box.name for box in one.boxes] for one in seen] == [["leaf", "sin", "sum"]] * 2
    assert seen[1].boxes[0].gradient == "[1, 0.5403]"


def test_a_backward_that_fails_is_said() -> None:
    x = ad.tensor([0.0], device=ad.Autodiff(ad.Checked(ad.NumPy()))).require_grad()
    found = boxes.of_tensor(ad.sqrt(x).sum(), {})
    assert [box.gradient for box in found.boxes] == [None] * 3
    assert "no gradients: backward through 'sqrt'" in found.notes[0]


def test_numbers_as_text() -> None:
    assert boxes.text_of(np.array([[1.0, 2.5], [1e-9, np.nan]])) == "[[1, 2.5], [1e-09, nan]]"
    assert boxes.text_of(np.arange(13)) == "13 numbers from 0 to 12, mean 6"
    assert boxes.text_of(np.ones(20, complex)) == "20 numbers"
    assert boxes.text_of(np.array(True)) == "True"


def test_a_compiled_function() -> None:
    lowered = ad.compile(ad.value_and_grad(lambda x: (ad.sin(x) * x).sum())).lower(np.ones(3))
    found = boxes.of_graph(lowered.graph)
    assert len(found.boxes) == len(lowered.graph.inputs) + len(lowered.graph.equations)
    assert {box.kind for box in found.boxes} == {"input", "node", "backward"}
    (sin,) = [box for box in found.boxes if box.name == "sin"]
    assert (sin.shape, sin.dtype, sin.parents) == ((3,), "float64", [0])
    assert all(parent < box.number for box in found.boxes for parent in box.parents)
    before = boxes.of_graph(lowered.recorded)
    assert len(before.boxes) > len(found.boxes)
    for graph, drawn in ((lowered, found), (lowered.recorded, before)):
        assert repr(ad.draw(graph)).startswith(f"<drawing of {len(drawn.boxes)} boxes;")


def test_loops_and_choices_of_compiled_functions_open() -> None:
    graphviz()

    def f(x: Any) -> Any:
        step = lambda i, c: ad.fori_loop(0, 3, lambda j, d: ad.sin(d) * x, c) + 1
        y = ad.fori_loop(0, 5, step, x)
        z = ad.while_loop(lambda c: c.sum() < 9, lambda c: c * c + 1, y)
        return ad.cond(z.sum() > 0, lambda: ad.exp(z), lambda: z).sum()

    lowered = ad.compile(f).lower(np.ones(3))
    found = boxes.of_graph(lowered.graph)
    assert len(found.boxes) == len(lowered.graph.inputs) + lowered.graph.size()
    assert all(parent < box.number for box in found.boxes for parent in box.parents)
    names = [x.name for x in found.inside]
    assert names == ["loop of 5 steps", "loop of 3 steps", "loop", "goes on", "step", "choice of 2", "branch 1"]
    top = folding.folded(found.boxes, found.inside)
    opened = lambda group: {part.name: opened(part) for part in group.parts if isinstance(part, Group)}
    assert opened(top) == {
        "loop of 5 steps": {"loop of 3 steps": {}},
        "loop": {"goes on": {}, "step": {}},
        "choice of 2": {"branch 1": {}},
    }
    page = ad.draw(lowered).page
    assert page.count('<script type="text/plain" id="view') == 8
    assert "loop of 3 steps" in page
    if lowered.kernels:
        assert "Kernels of machine code: " in page
        assert f"Memory of intermediate results: {lowered.memory:,} bytes" in page


def test_what_has_no_gradients_is_coloured_by_kinds() -> None:
    step = ad.compile(ad.grad(lambda x: ad.sin(x).sum())).lower(np.ones(3))
    assert svg.Colours(boxes.of_graph(step.graph).boxes).names == ["kind"]
    page = ad.draw(step).page
    assert 'fill="#ffe3c2"' in page  # a box that was recorded in backward
    assert '"colours":["kind"]' in page
    assert '"colours":["gradient","bytes","kind"]' in small().page


# --- folding ---


def made_of(names: str) -> list[Box]:
    """A chain of boxes, a letter each."""
    return [Box(k, "node", name, (), [k - 1] if k else []) for k, name in enumerate(names)]


def all_boxes(part: Any) -> Iterator[Box]:
    if isinstance(part, Box):
        yield part
    else:
        for inner in part.parts:
            yield from all_boxes(inner)


def all_groups(group: Group) -> Iterator[Group]:
    yield group
    for part in group.parts:
        if isinstance(part, Group):
            yield from all_groups(part)


@given(
    st.lists(st.tuples(st.text("abcd", min_size=1, max_size=30), st.integers(1, 60)), min_size=1, max_size=8).filter(
        lambda parts: sum(len(text) * times for text, times in parts) < 3000
    )
)
def test_a_folded_graph_has_every_box_once_and_in_order(parts: list[tuple[str, int]]) -> None:
    chain = made_of("".join(text * times for text, times in parts))
    top = folding.folded(chain)
    assert list(all_boxes(top)) == chain
    groups = list(all_groups(top))
    assert len({group.number for group in groups}) == len(groups)
    for group in groups:
        assert 0 < len(group.parts) <= folding.MOST
        assert [box.number for box in all_boxes(group)] == list(range(group.first, group.last))


def test_layers_are_folded_and_loops_within_them() -> None:
    layer = "a" + "bcde" * 5 + "f"
    top = folding.folded(made_of("xy" + layer * 9 + "z"))
    assert [part.name if isinstance(part, Box) else part.times for part in top.parts] == ["x", "y", 9, "z"]
    layers = top.parts[2]
    assert isinstance(layers, Group)
    for turn in layers.parts:
        assert isinstance(turn, Group)
        assert [part.name if isinstance(part, Box) else part.times for part in turn.parts] == ["a", 5, "f"]
    assert [len(folding.folded(made_of("ab" * k)).parts) for k in (20, 21)] == [40, 1]  # small graphs are as they are


def test_the_longest_repetition_is_found() -> None:
    """As by looking at all of them."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        ids = np.tile(rng.integers(0, 3, rng.integers(1, 8)), rng.integers(1, 6))
        ids = np.concatenate([rng.integers(0, 3, rng.integers(0, 9)), ids, rng.integers(0, 3, rng.integers(0, 9))])
        text, best = "".join(map(str, ids)), 0
        for start, period in itertools.product(range(len(text)), range(1, len(text) // 2 + 1)):
            times = len(re.match(f"(?:{text[start : start + period]})*", text[start:])[0]) // period  # type: ignore[index]
            best = max(best, times * period if times > 1 else 0)
        found = folding._longest(ids)
        if found is None:
            assert best < folding._LEAST
        else:
            start, period, times = found
            assert period * times == best
            assert all((ids[start : start + period] == ids[start + k * period :][:period]).all() for k in range(times))


def test_ten_thousand_boxes_open_as_few() -> None:
    """Of layers that are alike, and of a program without any repetition."""
    x = h = ad.tensor(0.5).require_grad()
    for _ in range(2500):
        h = ad.sin(h * x) + ad.cos(h)
    found = boxes.of_tensor(h, {})
    assert len(found.boxes) > 10_000
    assert len(folding.folded(found.boxes).parts) <= 4
    names = np.random.default_rng(0).integers(0, 30, 10_000)
    top = folding.folded(made_of("".join(chr(97 + k) for k in names)))
    assert max(len(group.parts) for group in all_groups(top)) <= 300


def test_gradients_that_vanish_do_not_take_the_colours_from_others() -> None:
    """The scale ends where a gradient is as good as zero beside the largest one."""
    y = ad.tensor(1.0, dtype=ad.float64).require_grad()
    for factor in (1e-100, 0.5, 0.001):
        y = y * factor
    found = boxes.of_tensor(y, {}).boxes
    assert [box.size for box in found] == pytest.approx([5e-104, 5e-4, 1e-3, 1.0], rel=1e-9, abs=0)
    colours = svg.Colours(found)
    assert colours.sizes == (1e-12, 1.0)
    pale, dark = (colours.of([box])["gradient"] for box in (found[0], found[-1]))
    assert pale == svg._scaled(1.0, (1.0, 2.0)) != dark
    assert colours.of([found[1]])["gradient"] not in (pale, dark)


# --- pages ---


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def small() -> drawing.Drawing:
    graphviz()
    return ad.draw(lambda w, x: (ad.sin(w * x) + w).sum(), np.array(0.5), np.array([1.0, 2.0, 3.0]))


def large() -> drawing.Drawing:
    graphviz()

    def f(ws: Any, x: Any) -> Any:
        for w in ws:
            x = ad.tanh(x @ w) + 0.1 * x.detach()
        return (x * x).mean()

    return ad.draw(f, [np.eye(3)] * 30, np.ones((2, 3)))


def test_a_page_is_one_file_and_has_every_box() -> None:
    drawn = large()
    page, data = drawn.page, data_of(drawn.page)
    assert not re.findall(r"(?:src|href)=|@import|url\(|fetch\(|https?://(?!www\.w3\.org/2000/svg)", page)
    views = dict(re.findall(r'<script type="text/plain" id="view(\d+)">(.*?)</script>', page))
    assert {int(k) for k in views} == {int(k) for k in data["groups"]}
    shown = {k: re.findall(r'<g class="card (?!port)[^>]*data-box="(\d+)"', svg) for k, svg in views.items()}
    assert sorted(int(box) for found in shown.values() for box in found) == list(range(len(data["boxes"])))
    for view, found in shown.items():
        assert {data["boxes"][int(box)]["view"] for box in found} <= {int(view)}
    opened = [int(k) for svg in views.values() for k in re.findall(r'data-opens="(\d+)"', svg)]
    assert sorted([*opened, data["top"]]) == sorted(int(k) for k in views)
    assert f"<drawing of {len(data['boxes'])} boxes" in repr(drawn)


def test_the_picture_is_svg_that_stands_alone() -> None:
    import xml.etree.ElementTree as ET

    root = ET.fromstring(small().svg)
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"w", "x", "multiply", "sin", "add", "sum"} <= set(texts)
    arrows = [node for node in root.iter("{http://www.w3.org/2000/svg}path") if node.get("fill") == "none"]
    assert len(arrows) == 6


def test_text_of_users_is_no_markup(tmp_path: Path) -> None:
    graphviz()
    x = ad.tensor([1.0]).require_grad()
    drawn = ad.draw(x * 2, names={"<script>alert(1)</script>": x})
    assert "<script>alert" not in drawn.page
    assert "&lt;script&gt;alert" in drawn.svg
    drawn.save(tmp_path / "a.html")
    drawn.save(tmp_path / "a.svg")
    with pytest.raises(errors.ArgumentError, match=r"ends in \.html, and that of a picture in \.svg, received 'a.png'"):
        drawn.save(tmp_path / "a.png")
    assert (tmp_path / "a.html").read_text() == drawn.page
    assert (tmp_path / "a.svg").read_text() == drawn.svg
    assert html.unescape(re.search(r'srcdoc="(.*?)"', drawn._repr_html_(), re.DOTALL)[1]) == drawn.page  # type: ignore[index]


def test_a_node_shows_its_graph_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    graphviz()
    x = ad.tensor([1.0, 2.0]).require_grad()
    loss = (x * x).sum()
    node = loss.grad_fn
    assert node is not None
    shown = node._repr_html_()
    assert shown is not None
    assert "multiply" in shown
    loss.backward()
    assert node._repr_html_() is None  # it is freed: `repr` is what a notebook takes then


def test_what_cannot_be_drawn() -> None:
    x = ad.tensor([1.0]).require_grad()
    used = (x * x).sum()
    used.backward()
    with pytest.raises(errors.FreedGraphError):
        ad.draw(used)
    with pytest.raises(errors.GraphError, match="source_locations"):
        ad.draw(ad.ones(2))


# --- profiles ---


def profiled(stacks: bool) -> ad.Profiled[ad.NumPy]:
    p = ad.Profiled(ad.NumPy(), stacks=stacks)
    x = ad.ones((4, 4), device=ad.Autodiff(p)).require_grad()

    def step() -> None:
        ad.tanh(x @ x).sum().backward()

    p.reset()
    for _ in range(3):
        step()
    return p


@pytest.mark.parametrize("stacks", [False, True])
def test_a_flame_graph_has_all_time(stacks: bool) -> None:
    p = profiled(stacks)
    top = times.tree(p.calls())
    rows = p.profile().rows
    assert (top.calls, top.bytes, top.flops) == tuple(
        sum(getattr(row, name) for row in rows) for name in ("calls", "bytes", "flops")
    )
    assert top.time == pytest.approx(1e9 * sum(row.seconds for row in rows))
    pending = [top]
    while pending:
        frame = pending.pop()
        if frame.inside:
            assert frame.time == sum(inner.time for inner in frame.inside.values())
            pending += frame.inside.values()
    drawn = ad.draw(p)
    assert f"{top.calls} calls" in repr(drawn)
    assert len(data_of(drawn.page)["calls"]) == top.calls
    assert ("step (test_pictures.py:" in drawn.svg) is stacks
    assert ("matmul in backward" in drawn.svg) is True


def test_nothing_was_counted() -> None:
    assert ">all<" in ad.draw(ad.Profiled(ad.NumPy())).svg


def test_stacks_are_part_of_a_name() -> None:
    p = ad.Profiled(ad.NumPy(), 3, stacks=True)
    assert p.name == "profiled[number=3,stacks]<numpy>"
    assert ad.device(p.name) is p


# --- what notebooks show ---


def test_notebooks_show_gradients_modules_and_histories() -> None:
    x = ad.tensor([3.0, -4.0, 0.0, 0.0]).require_grad()
    shown = (x * x).sum().backward()._repr_html_()
    assert re.findall(r"<td>(.*?)</td>", shown) == ["(4,)", "float32", "5", "8", "50%"]
    model = ad.nn.Linear(3, 2)
    shown = model._repr_html_()
    assert html.escape(repr(model)) in shown
    assert "2 parameters, 8 numbers" in shown
    assert re.findall(r"<td>(.*?)</td>", shown)[:3] == ["weight", str(model.weight.shape), "float32"]
    history = ad.train.History()
    history.rows += [{"epoch": 1, "step": 5, "loss": 2.0}, {"epoch": 2, "step": 9, "loss": 1.0, "a<b": 0.5}]
    for step in range(10):
        history.add_step(step, 2.0 / (step + 1))
    shown = history._repr_html_()
    assert shown.count("<svg") == 2
    assert "<th>a&lt;b</th>" in shown
    assert re.findall(r"<td>(.*?)</td>", shown) == ["1", "5", "2", "", "2", "9", "1", "0.5"]
    assert ad.train.History()._repr_html_().startswith("<div>")


@pytest.mark.slow
def test_a_notebook_runs_and_shows_them() -> None:
    graphviz()
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install 'adjoint[docs]'")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install 'adjoint[docs]'")
    train = (
        "learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1))\n"
        "learner.fit([(ad.ones((4, 2)), ad.ones((4, 1)))], epochs=2)[1]"
    )
    cells = [
        "import adjoint as ad\nx = ad.tensor([1.0, 2.0]).require_grad()\nx",
        "ad.draw((x * x).sum())",
        "(x * x).sum().grad_fn",
        "(x * x).sum().backward()",
        "ad.nn.Linear(2, 1)",
        train,
        "ad.draw(lambda x: sum(ad.sin(x * k) for k in range(30)), 1.0)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=120).execute()
    shown = [[out.data["text/html"] for out in cell.outputs if "data" in out][-1] for cell in book.cells]
    for text, said in zip(
        shown, ("Tensor: float32", "3 boxes", "multiply", "Gradients: 1", "Linear", "<svg", " x cell:1"), strict=True
    ):
        assert said in html.unescape(text)


# --- with Matplotlib ---


@pytest.fixture
def figures() -> Iterator[Any]:
    """Matplotlib without a screen."""
    matplotlib = pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install 'adjoint[draw]'")
    matplotlib.use("agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


@pytest.mark.slow
def test_entries_of_a_matrix(figures: Any) -> None:
    """Dense and sparse, of any library, at the right places and of the right size."""
    f = lambda x: x[1:] * x[:-1] * np.array([1.0, 10.0, 0.0])
    x = np.array([1.0, 2.0, 3.0, 4.0])
    dense = ad.jacobian(f)(x)
    wanted = np.where(dense == 0, np.nan, np.log10(np.abs(np.where(dense == 0, 1, dense))))
    sparse = pytest.importorskip("scipy.sparse").csr_array(dense)
    for matrix in (dense, ad.tensor(dense).require_grad(), sparse, 1j * dense):
        axes = ad.plot.spy(matrix)
        assert axes.get_title() == "3 x 4, 4 nonzero"
        np.testing.assert_allclose(np.asarray(axes.images[0].get_array().filled(np.nan)), wanted, rtol=1e-6)
    figure, own = figures.subplots()
    assert ad.plot.spy(np.array([[np.nan, 1.0], [0.0, 2.0]]), ax=own) is own
    figure.canvas.draw()
    np.testing.assert_allclose(own.images[0].get_array().filled(-1), [[np.log10(2), 0], [-1, np.log10(2)]])
    large = ad.plot.spy(np.eye(1000))
    np.testing.assert_array_equal(large.lines[0].get_xydata(), np.repeat(np.arange(1000.0), 2).reshape(-1, 2))
    assert ad.plot.spy(np.zeros((2, 3))).get_title() == "2 x 3, 0 nonzero"


@pytest.mark.slow
def test_curves_of_a_history(figures: Any) -> None:
    history = ad.train.History()
    history.rows += [{"epoch": k, "step": 50 * k, "loss": 1.0 / k, "valid_loss": 2.0 / k} for k in (1, 2)]
    for step in range(1, 101):
        history.add_step(step, 1.0 / step)
    figure = ad.plot.history(history)
    figure.canvas.draw()
    (axes,) = figure.axes
    single, mean, valid = axes.lines
    np.testing.assert_allclose(single.get_xydata(), [[k, 1 / k] for k in range(1, 101)])
    assert len(mean.get_xdata()) <= 60
    np.testing.assert_allclose(valid.get_xydata(), [[50, 2.0], [100, 1.0]])
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training", "validation"]
    history.rows[-1] |= {"accuracy": 0.5, "valid_accuracy": 0.25, "f1": 0.5, "auc": 0.5}
    assert [axes.get_title() for axes in ad.plot.history(history).axes] == ["loss", "accuracy", "f1", "auc"]


@pytest.mark.slow
def test_a_confusion_matrix(figures: Any) -> None:
    axes = ad.plot.confusion(ad.tensor([[3.0, 1.0], [0.0, 0.0]]), labels=["a", "b"])
    np.testing.assert_allclose(axes.images[0].get_array(), [[0.75, 0.25], [0, 0]])
    assert [text.get_text() for text in axes.texts] == ["3", "1", "0", "0"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    assert len(ad.plot.confusion(np.eye(40)).texts) == 0


# --- in a browser ---

STEPS = """<script>{
const result = [], find = (text, list) => [...list].find(one => one.textContent.startsWith(text));
const card = name => find(name, document.querySelectorAll("#canvas .card"));
const fact = name => find(name, document.querySelectorAll("dt"))?.nextSibling.textContent;
const click = at => at.dispatchEvent(new MouseEvent("click", {bubbles: true}));
const say = (...what) => result.push(what.join("|"));
const end = () => {
  const made = document.createElement("pre");
  made.id = "result";
  made.textContent = result.join("\\n");
  document.body.append(made);
};
let later = false;
try { SCRIPT } catch (error) { say("error", error); }
if (!later) end();
}</script></body>"""


def browser(page: str, script: str, folder: Path) -> list[str]:
    """What a script says that runs behind the page's own; nothing may stand in the console."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    path = folder / "page.html"
    path.write_text(page.replace("</body>", STEPS.replace("SCRIPT", script)))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
               f"--user-data-dir={folder}/user", "--window-size=1200,800", "--virtual-time-budget=60000",
               "--dump-dom"]  # fmt: skip
    done = processes.run([CHROMIUM, *options, f"file://{path}"])
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    (found,) = re.findall(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    return html.unescape(found).splitlines()


@pytest.mark.slow
def test_a_page_of_a_compiled_function_goes_through_its_equations(tmp_path: Path) -> None:
    script = """
      say([...at("colour").options].map(o => o.value)); say(at("said").textContent);
      at("next").click(); say(at("said").textContent);
    """
    page = ad.draw(ad.compile(lambda x: ad.sin(x) * 2).lower(np.ones(3))).page
    assert browser(page, script, tmp_path) == ["kind", "3 steps", "1 of 3"]


@pytest.mark.slow
def test_a_page_goes_through_forward_and_backward(tmp_path: Path) -> None:
    script = """
      click(card("sin")); say(fact("value"), fact("gradient"), fact("keeps"));
      at("first").click(); say(at("said").textContent);
      for (let k = 0; k < 3; k++) at("next").click();
      say(at("said").textContent, facts.querySelector("h2").textContent, fact("value"), fact("gradient"));
      say([...document.querySelectorAll(".later text:first-of-type")].map(t => t.textContent).join());
      at("last").click(); say(at("said").textContent, fact("gradient"), fact("gathered from"));
      window.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"})); say(at("said").textContent);
      at("find").value = "mult"; at("find").oninput(); say(facts.querySelector("h2").textContent);
      facts.querySelector("li button").click(); say(facts.querySelector("h2").textContent);
      at("colour").value = "kind"; at("colour").onchange(); say(card("x").querySelector(".face").getAttribute("fill"));
      at("colour").value = "gradient"; at("colour").onchange();
      say(new DOMParser().parseFromString(picture()[0], "image/svg+xml").querySelectorAll(".face").length);
      later = true; png(blob => { say(blob.type, blob.size > 5000); end(); });
    """
    gradient = np.cos(0.5 * np.array([1.0, 2.0, 3.0]))
    by_w = boxes.text_of(np.asarray((gradient * [1, 2, 3]).sum() + 3))
    said = browser(small().page, script, tmp_path)
    assert said[0].split("|")[1:] == ["[1, 1, 1]", "x, 24 B"]
    assert said[1] == "6 forward, 6 backward"
    assert said[2] == "forward 3 of 6|multiply|[0.5, 1, 1.5]|"
    assert said[3] == "sin,add,sum"
    assert said[4].startswith("backward 6 of 6|")
    assert by_w in said[4] or boxes.text_of(gradient * 0.5) in said[4]
    assert said[5:] == ["backward 5 of 6", "1 found", "multiply", "#c9ecd0", "6", "image/png|true"]


@pytest.mark.slow
def test_a_page_opens_groups(tmp_path: Path) -> None:
    script = """
      say(document.querySelectorAll("#canvas .card").length, at("path").hidden);
      const group = document.querySelector("#canvas .group"); say(group.textContent.split(" x ")[0]);
      click(group); say(at("path").textContent.includes("\u203a"), document.querySelectorAll("#canvas .group").length);
      click(document.querySelector("#canvas .group")); say(!!card("tanh"), !!document.querySelector("#canvas .port"));
      window.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
      say(document.querySelectorAll("#canvas .group").length);
      at("path").querySelector("button").click(); say(view === data.top);
      at("find").value = "ws[17]"; at("find").oninput(); facts.querySelector("li button").click();
      say(view === data.top, !!find("ws[17]", canvas.querySelectorAll(".chosen")), fact("its size"));
    """
    drawn = large()
    said = browser(drawn.page, script, tmp_path)
    assert said[0] == f"{drawn.svg.count('<g class=')}|true"
    assert drawn.svg.count('<g class="card group"') == 1
    turns, data = said[1], data_of(drawn.page)
    (size,) = [box["size"] for box in data["boxes"] if box.get("label") == "ws[17]"]
    assert int(turns) >= 29
    assert said[2:] == [f"true|{turns}", "true|true", turns, "true", f"false|true|{size}"]


@pytest.mark.slow
def test_the_page_of_a_profile(tmp_path: Path) -> None:
    script = """
      const wide = bar => Number(bar.querySelector("rect").getAttribute("width"));
      const [one] = bars.filter(bar => wide(bar) < 900).sort((a, b) => wide(b) - wide(a)), before = wide(one);
      click(one); say(wide(one) > 990, one.querySelector("text").textContent[0] === one.dataset.name[0]);
      click(bars[0]); say(Math.abs(wide(one) - before) < 0.1);
      const pen = sheet.getContext("2d"), dots = pen.getImageData(0, 0, sheet.width, sheet.height).data;
      say(dots.some(x => x > 0), data.calls.length);
    """
    p = profiled(True)
    assert browser(ad.draw(p).page, script, tmp_path) == [
        "true|true",
        "true",
        f"true|{len(p.calls())}",
    ]


def test_every_part_has_its_file() -> None:
    """The files that pages are made of are in the package."""
    folder = Path(str(drawing.__file__)).parent
    assert {path.suffix for path in folder.iterdir() if path.is_file()} == {".py", ".css", ".js", ".html"}
    assert isinstance(drawing, types.ModuleType)
