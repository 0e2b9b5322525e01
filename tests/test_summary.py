"""The table of what a model does: where calls are counted, and that the model and its random numbers stay."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors


def network() -> Any:
    return ad.nn.Sequential(
        ad.nn.Conv1d(2, 4, 3), ad.nn.BatchNorm(4), ad.nn.Dropout(0.5), ad.nn.Residual(ad.nn.Linear(5, 5)), ad.tanh
    )


def rows_of(summary: Any) -> dict[str, Any]:
    return {row.path: row for row in summary.rows}


def test_rows() -> None:
    rows = rows_of(network().summary((6, 2, 7)))
    assert list(rows) == ["", "layers.0", "layers.1", "layers.2", "layers.3", "layers.3.inside"]
    assert [row.layer for row in rows.values()] == [
        "Sequential", "Conv1d", "BatchNorm", "Dropout", "Residual", "Linear",
    ]  # fmt: skip
    assert [row.parameters for row in rows.values()] == [66, 28, 8, 0, 30, 30]
    assert all(row.shapes == ((6, 4, 5),) and row.called for row in rows.values())
    # a product and a sum per term, and the bias
    assert rows["layers.0"].operations == 6 * 4 * 5 * (2 * 2 * 3 + 1)
    assert rows["layers.3.inside"].operations == 6 * 4 * 5 * (2 * 5 + 1)
    assert rows["layers.3"].operations == rows["layers.3.inside"].operations + 6 * 4 * 5
    parts = sum(rows[f"layers.{k}"].operations for k in range(4))
    assert rows[""].operations == parts + 6 * 4 * 5  # tanh is no module
    assert rows[""].bytes == sum(rows[f"layers.{k}"].bytes for k in range(4)) + 2 * 4 * 6 * 4 * 5


def test_the_whole_is_what_a_profile_says() -> None:
    p = ad.Profiled(ad.Autodiff(ad.NumPy()))
    model = network().to_device(p)
    x = ad.zeros((6, 2, 7), device=p)
    p.reset()
    model(x)
    wanted = p.profile().rows
    found = network().summary((6, 2, 7)).rows[0]
    assert found.operations == sum(row.flops for row in wanted)
    assert found.bytes == sum(row.bytes for row in wanted)


def test_text_and_notebook() -> None:
    summary = ad.nn.Sequential(ad.nn.Linear(1000, 300), ad.nn.LSTM(300, 2)).freeze("layers.0").summary((4, 1000))
    assert str(summary).split("\n") == [
        "layer                                 results  parameters  trained  operations    bytes",
        "---------------------------------------------------------------------------------------",
        "Sequential             (4, 2), (1, 2), (1, 2)     302,732    2,432   2,420,696   1.3 MB",
        "  layers.0: Linear                   (4, 300)     300,300        0   2,401,200   1.2 MB",
        "  layers.1: LSTM       (4, 2), (1, 2), (1, 2)       2,432    2,432      19,496  38.2 kB",
        "    cells.0: LSTMCell              not called       2,432    2,432",
        "302,732 parameters, 2,432 of them trained, 1.2 MB",
    ]
    assert repr(summary) == str(summary)
    page = summary._repr_html_()
    assert page.count("<tr>") == 5
    assert "2,401,200" in page
    odd = type("A<b>", (ad.nn.Linear,), {})(2, 1).summary((1, 2))
    assert "A&lt;b&gt;" in odd._repr_html_()


def test_what_is_made_of_a_module_counts_in_its_place() -> None:
    class Each(ad.nn.Module):
        inside: Any

        def __call__(self, x: Any) -> Any:
            return ad.checkpoint(lambda m, x: ad.vmap(lambda x: m(x))(x))(self.inside, x)

    rows = rows_of(Each(ad.nn.Linear(3, 2)).summary((4, 3)))
    assert rows["inside"].called
    assert rows["inside"].operations > 0
    rows = rows_of(ad.nn.LowRank(ad.nn.Linear(3, 2), 1).summary((4, 3)))
    assert rows["base"].operations == 4 * 2 * (2 * 3 + 1)
    assert rows[""].operations > rows["base"].operations
    assert not rows["factors"].called
    shared = ad.nn.Linear(2, 2)
    rows = rows_of(ad.nn.Sequential(shared, shared).summary((4, 2)))
    assert rows["layers.0"].operations == rows["layers.1"].operations == 4 * 2 * 5


def test_arguments_of_all_sorts() -> None:
    model = ad.nn.Sequential(ad.nn.Embedding(10, 3), ad.nn.Linear(3, 2))
    assert model.summary(np.array([[1, 2, 3]])).rows[0].shapes == ((1, 3, 2),)
    layer = ad.nn.MultiHeadAttention(4, 2)
    x = ad.ones((2, 5, 4)).require_grad()
    assert layer.require_grad().summary(x, ad.ones((2, 3, 4)), is_causal=True).rows[0].shapes == ((2, 5, 4),)
    constant = ad.tensor([1.0, 2.0])
    assert ad.nn.Lambda(lambda x: x * constant).summary((3, 2)).rows[0].operations == 6
    wide = ad.nn.Linear(3, 2, dtype=ad.float64)
    assert wide.summary((4, 3)).rows[0].bytes == 2 * ad.nn.Linear(3, 2).summary((4, 3)).rows[0].bytes


def test_nothing_is_left_behind() -> None:
    model = network().require_grad()
    ad.random.seed(3)
    wanted = model(ad.ones((6, 2, 7))).numpy()
    ad.random.seed(3)
    model.summary((6, 2, 7))
    with pytest.raises(errors.AdjointError):
        model.summary((6, 3, 7))
    np.testing.assert_array_equal(model(ad.ones((6, 2, 7))).numpy(), wanted)
    assert ad.default_device() is ad.Autodiff(ad.NumPy())
    gc.collect()
    assert ad.nn.Conv1d.__subclasses__() == []
