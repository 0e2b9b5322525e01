"""Loading: the order of batches, positions, structures of records, sources and files."""

from __future__ import annotations

import collections
import itertools
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors
from adjoint.data import DataLoader, Parquet, Source, split, windows

X, Y = np.arange(22.0).reshape(11, 2), np.arange(11)


def numbers(loader: Any) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


# What workers run stands here, where each of them finds it.


class Noted:
    """A sequence of records that say who read them."""

    def __init__(self, size: int = 40, *, bad: int | None = None, deadly: int | None = None) -> None:
        self.size, self.bad, self.deadly = size, bad, deadly

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, int]:
        if index == self.bad:
            raise OddError("ab")
        if index == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return index, os.getpid()


class OddError(Exception):
    """An error that cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


def noisy(record: Any, rng: np.random.Generator) -> Any:
    return record + rng.normal()


def forever() -> Iterator[int]:
    yield from itertools.count()


class Anew:
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        yield from range(self.size)


class Broken(Anew):
    def __iter__(self) -> Iterator[int]:
        yield from range(self.size)
        raise OSError("the disk is gone")


# --- order ---


def test_batches_of_arrays() -> None:
    loader = DataLoader({"x": X, "y": (Y, X > 3)}, 4)
    batches = list(loader)
    assert [len(batch["x"]) for batch in batches] == [4, 4, 3]
    assert len(loader) == 3
    np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in batches]), X)
    np.testing.assert_array_equal(np.concatenate([batch["y"][1] for batch in batches]), X > 3)
    batches[0]["x"][:] = 100  # a batch is the caller's
    assert X.max() == 21


def doubled(record: Any, rng: np.random.Generator) -> Any:
    record[0][:] *= 2
    return record


def test_a_record_may_be_changed_in_place() -> None:
    loader = DataLoader((X.copy(), Y), 11, transform=doubled)
    for _ in range(2):
        np.testing.assert_array_equal(next(iter(loader))[0], 2 * X)


@pytest.mark.parametrize(
    ("size", "batch", "drop", "sizes"),
    [(6, 3, False, [3, 3]), (7, 3, True, [3, 3]), (2, 5, False, [2]), (1, 1, True, [1]), (5, 5, True, [5])],
)
def test_sizes_of_batches(size: int, batch: int, drop: bool, sizes: list[int]) -> None:
    loader = DataLoader(np.arange(size), batch, drop_last=drop)
    assert [len(rows) for rows in loader] == sizes
    assert len(loader) == len(sizes)


def test_each_epoch_has_all_records_in_an_order_of_its_own() -> None:
    loader = DataLoader(np.arange(100), 8, shuffle=True, seed=5)
    epochs = [np.concatenate(list(loader)) for _ in range(3)]
    assert all(sorted(epoch.tolist()) == list(range(100)) for epoch in epochs)
    orders = [epoch.tolist() for epoch in epochs]
    orders.append(np.concatenate(list(DataLoader(np.arange(100), 8, shuffle=True, seed=6))).tolist())
    assert len({tuple(order) for order in orders}) == 4
    again = DataLoader(np.arange(100), 8, shuffle=True, seed=5)
    assert [np.concatenate(list(again)).tolist() for _ in range(3)] == orders[:3]


def test_orders_are_evenly_random() -> None:
    """Each of the 24 orders of four records comes as often as chance says."""
    loader = DataLoader(np.arange(4), 4, shuffle=True, seed=1)
    orders = [tuple(batch.tolist()) for _ in range(2400) for batch in loader]
    counts = np.array([orders.count(order) for order in itertools.permutations(range(4))])
    assert ((counts - 100) ** 2 / 100).sum() < 49.7  # chi-square of 23 degrees of freedom: one in a thousand


def test_orders_stay_what_they_were() -> None:
    """A position of a file means the same batches in later versions, of NumPy too."""
    assert numbers(DataLoader(np.arange(6), 6, shuffle=True, seed=2**64 - 1)) == [[2, 5, 4, 1, 3, 0]]
    loader = DataLoader(np.zeros(2), 2, seed=4, transform=lambda record, rng: rng.bit_generator.random_raw() >> 1)
    assert numbers(loader) == [[1797543101737930379, 7672741765923264748]]


# --- positions ---


@pytest.mark.parametrize("workers", [0, 2])
def test_a_position_has_the_batches_that_would_have_come(workers: int) -> None:
    make = lambda workers: DataLoader(np.arange(23.0), 5, shuffle=True, seed=3, workers=workers, transform=noisy)
    whole = make(0)
    wanted = [numbers(whole) for _ in range(3)]
    loader = make(workers)
    records = [loader.record()]
    for _ in range(2):
        for _ in loader:
            records.append(loader.record())
    assert [record["batch"] for record in records] == [0, *[1, 2, 3, 4, 5] * 2]
    for record in records[:: 1 if workers == 0 else 4]:
        other = make(workers)
        other.load_record(pickle.loads(pickle.dumps(record)))
        assert other.record() == record
        epoch, batch = record["epoch"], record["batch"]
        assert numbers(other) == wanted[epoch][batch:]
        assert numbers(other) == wanted[epoch + 1]


def test_a_loop_that_is_left_is_continued_by_the_next() -> None:
    loader = DataLoader(np.arange(6), 2)
    assert next(iter(loader)).tolist() == [0, 1]
    assert numbers(loader) == [[2, 3], [4, 5]]
    assert loader.record()["epoch"] == 1
    for _ in range(3):  # left at the last batch: the next loop is the next epoch
        assert [batch.tolist() for batch in itertools.islice(loader, 3)] == [[0, 1], [2, 3], [4, 5]]
    assert (loader.record()["epoch"], loader.record()["batch"]) == (3, 3)
    assert repr(loader) == "DataLoader of 6 records in batches of 2, at epoch 3, batch 3"


def test_a_record_of_other_settings_is_refused() -> None:
    record = DataLoader(np.arange(6), 2).record()
    for other in (DataLoader(np.arange(7), 2), DataLoader(np.arange(6), 3), DataLoader(np.arange(6), 2, seed=1)):
        with pytest.raises(errors.ArgumentError, match="the same settings"):
            other.load_record(record)
    loader = DataLoader(np.arange(6), 2)
    with pytest.raises(errors.ArgumentTypeError, match="expected what record"):
        loader.load_record({"epoch": 1})
    with pytest.raises(errors.ArgumentError, match="an epoch has 3 batches"):
        loader.load_record({**record, "batch": 4})
    with pytest.raises(errors.ArgumentError, match="non-negative"):
        loader.load_record({**record, "epoch": -1})


# --- iterables ---


@pytest.mark.parametrize("workers", [0, 2])
def test_iterables(workers: int) -> None:
    loader = DataLoader(Anew(7), 3, workers=workers)
    for _ in range(2):
        assert numbers(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    assert numbers(DataLoader(Anew(7), 3, workers=workers, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    endless = DataLoader(forever(), 2, workers=workers)
    assert [batch.tolist() for batch in itertools.islice(endless, 3)] == [[0, 1], [2, 3], [4, 5]]
    assert endless.record()["batch"] == 3
    other = DataLoader(forever(), 2, workers=workers)
    other.load_record(endless.record())
    assert next(iter(other)).tolist() == [6, 7]
    with pytest.raises(TypeError, match="has no length"):
        len(loader)
    broken = iter(DataLoader(Broken(5), 2, workers=workers))
    assert [next(broken).tolist(), next(broken).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(OSError, match="the disk is gone"):
        next(broken)


def test_iterables_in_epochs() -> None:
    assert numbers(DataLoader(iter([]), 2)) == []
    loader = DataLoader(iter(range(5)), 2)
    assert next(iter(loader)).tolist() == [0, 1]
    assert numbers(loader) == [[2, 3], [4]]  # an iterator goes on where it was left
    with pytest.raises(errors.ArgumentError, match="used up after one epoch"):
        list(loader)
    anew = DataLoader(Anew(5), 2)
    next(iter(anew))
    assert numbers(anew) == [[2, 3], [4]]
    with pytest.raises(errors.ArgumentError, match="can only be iterated, as Anew, has no other order"):
        DataLoader(Anew(3), 2, shuffle=True)
    one, other = (DataLoader(Anew(9), 2, workers=n, transform=noisy) for n in (0, 2))
    for wanted, found in zip(one, other, strict=True):
        np.testing.assert_array_equal(wanted, found)


# --- records ---


def test_structures_of_records() -> None:
    Pair = collections.namedtuple("Pair", "a b")
    records = [
        {"p": Pair([1.0, 2.0], ad.asarray([i])), "t": "ab"[i], "b": b"\0", "n": None, "f": i > 0} for i in (0, 1)
    ]
    (batch,) = DataLoader(records, 2)
    assert type(batch["p"]) is Pair
    np.testing.assert_array_equal(batch["p"].a, [[1, 2], [1, 2]])
    np.testing.assert_array_equal(batch["p"].b, [[0], [1]])
    assert batch["t"].tolist() == ["a", "b"]
    assert batch["b"].tolist() == [b"\0", b"\0"]
    assert batch["n"] is None
    assert batch["f"].dtype == bool
    (mixed,) = DataLoader([1, 2.5, np.float32(3)], 3)
    assert mixed.tolist() == [1, 2.5, 3]


@pytest.mark.parametrize(
    ("records", "kind", "text"),
    [
        ([np.zeros(3), np.zeros(4)], errors.ShapeError, r"record 0 has \(3,\) and record 1 has \(4,\); crop or pad"),
        ([{"x": [1]}, {"x": [1, 2]}], errors.ShapeError, r"record 1 has \(2,\) at \['x'\]"),
        ([{"x": [[1], [1, 2]]}], errors.ShapeError, r"record 0 has .* at \['x'\], which is no array"),
        ([(1, 2), (1, 2, 3)], errors.ArgumentTypeError, r"differ in structure: record 0 has \(1, 2\) and record 1"),
        ([{"x": 1}, {"y": 1}], errors.ArgumentTypeError, "differ in structure"),
        ([{"x": (1, 2)}, {"x": 3}], errors.ArgumentTypeError, r"record 1 has 3 at \['x'\]"),
        ([1, None], errors.ArgumentTypeError, "record 1 has None, which is no array"),
        ([object()], errors.ArgumentTypeError, "record 0 has <object object at .*>, which is no array"),
        ([1, 2**63], errors.RangeError, "record 1 has 9223372036854775808, which int64 does not hold"),
    ],
)
def test_records_that_make_no_batch(records: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        list(DataLoader(records, 4))


def test_a_tracked_tensor_is_no_record() -> None:
    with pytest.raises(errors.TrackedError):
        list(DataLoader([ad.tensor([1.0]).require_grad()], 1))


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "text"),
    [
        ((np.zeros(0), 2), {}, errors.ArgumentError, "the source is empty"),
        (([], 2), {}, errors.ArgumentError, "the source is empty"),
        ((X, 20), {"drop_last": True}, errors.ArgumentError, "batch_size is 20, the source has 11 records"),
        ((X, 0), {}, errors.ArgumentError, "batch_size is a positive integer"),
        ((X, 2.0), {}, errors.ArgumentTypeError, "batch_size is an integer"),
        ((X, 2), {"workers": -1}, errors.ArgumentError, "workers is a non-negative integer"),
        ((X, 2), {"prefetch": 0}, errors.ArgumentError, "prefetch is a positive integer"),
        ((X, 2), {"prefetch": 101}, errors.ArgumentError, "prefetch is at most 100"),
        ((X, 2), {"seed": 2**64}, errors.ArgumentError, r"seed is below 2\*\*64"),
        ((X, 2), {"shuffle": "yes"}, errors.ArgumentTypeError, "shuffle is True or False"),
        ((X, 2), {"transform": 3}, errors.ArgumentTypeError, "transform is a function"),
        ((X, 2), {"start": "thread"}, errors.ArgumentError, "start is 'fork', 'spawn'"),
        (((X, Y[1:]), 2), {}, errors.ShapeError, r"as many in each; the shapes are \(11, 2\), \(10,\)"),
        (((X, 3), 2), {}, errors.ArgumentTypeError, r"received 3 at \[1\]; a sequence of records is a list"),
        (((), 2), {}, errors.ShapeError, "the shapes are none"),
        (("data.csv", 2), {}, errors.ArgumentTypeError, "read files"),
        ((3, 2), {}, errors.ArgumentTypeError, "has __len__ and __getitem__, or can be iterated; received 3"),
    ],
)
def test_arguments_that_make_no_sense(arguments: Any, options: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        DataLoader(*arguments, **options)


# --- sources ---


def test_sources_of_other_libraries() -> None:
    pandas, torch, pyarrow = peer("pandas"), peer("torch"), peer("pyarrow")
    frame = pandas.DataFrame({"x": X[:, 0], "y": Y})
    for table in (frame, pyarrow.Table.from_pandas(frame)):
        batch = next(iter(DataLoader(table, 3)))
        assert [batch["x"].tolist(), batch["y"].tolist()] == [[0, 2, 4], [0, 1, 2]]
    assert next(iter(DataLoader(frame["y"], 3))).tolist() == [0, 1, 2]
    assert next(iter(DataLoader((ad.asarray(X), [1] * 11), 2)))[0].tolist() == [[0, 1], [2, 3]]
    data = torch.utils.data.TensorDataset(torch.asarray(X), torch.asarray(Y))
    x, y = next(iter(DataLoader(data, 3)))
    assert [type(x), y.tolist()] == [np.ndarray, [0, 1, 2]]


@pytest.mark.slow
def test_hugging_face_datasets() -> None:
    datasets = peer("datasets")
    data = datasets.Dataset.from_dict({"x": X.tolist(), "y": Y.tolist(), "t": [str(y) for y in Y]})
    batches = list(DataLoader(data, 4, shuffle=True, seed=1))
    order = np.concatenate([batch["y"] for batch in batches])
    assert sorted(order) == Y.tolist()
    np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in batches]), X[order])
    assert batches[0]["t"].tolist() == [str(y) for y in batches[0]["y"]]
    stream = data.to_iterable_dataset()
    assert [batch["y"].tolist() for batch in DataLoader(stream, 6)] == [Y[:6].tolist(), Y[6:].tolist()]
    (train, _) = split(data, (8, 3))
    assert len(next(iter(DataLoader(train, 8)))["y"]) == 8


def test_windows() -> None:
    pairs = windows({"a": np.arange(10), "b": X[:10]}, 4, stride=2, horizon=1)
    assert len(pairs) == 3
    (before, after), *_ = DataLoader(pairs, 2)
    assert before["a"].tolist() == [[0, 1, 2, 3], [2, 3, 4, 5]]
    assert after["a"].tolist() == [[4], [6]]
    assert before["b"].shape == (2, 4, 2)
    assert len(windows(Y, 11)) == 1
    assert windows(Y, 11)[0].tolist() == Y.tolist()
    assert pairs[2][1]["a"].tolist() == [8]
    with pytest.raises(errors.ShapeError, match="has 11 times, and a window needs 12"):
        windows(Y, 11, horizon=1)
    with pytest.raises(errors.ShapeError, match="needs 100000000000000000000"):
        windows(Y, 10**20)
    with pytest.raises(errors.ArgumentError, match="stride is a positive integer"):
        windows(Y, 3, stride=0)


def test_split() -> None:
    parts = split((X, Y), (0.5, 0.25, 0.25), seed=3)
    found = [np.concatenate([y for _, y in DataLoader(part, 4)]) for part in parts]
    assert [len(part) for part in found] == [6, 2, 3]
    assert sorted(np.concatenate(found)) == Y.tolist()
    assert sorted(found[0]) != Y[:6].tolist()
    first, last = split(Noted(11), (8, 3), seed=None)
    assert [record[0] for record in last] == [8, 9, 10]
    assert first[7][0] == 7
    inner, _ = split(first, (0.5, 0.5), seed=None)
    assert len(inner) == 4
    for source in ((X, Y), list(zip(X, Y, strict=True)), Noted(11)):  # a slice of a part is a batch
        part, _ = split(source, (8, 3), seed=2)
        for cut in (slice(None), slice(1, 5, 2), slice(-2, None)):
            whole = part[cut]
            for column, found in enumerate(whole):
                np.testing.assert_array_equal(found, [record[column] for record in list(part)[cut]])
    np.testing.assert_array_equal(next(iter(DataLoader(inner, 4)))[0], [0, 1, 2, 3])
    for parts, text in [((0.5, 0.4), "sum to 1"), ((5, 5), "sum to the 11"), ((0.999, 0.001), "none of the 11")]:
        with pytest.raises(errors.ArgumentError, match=text):
            split(Y, parts)
    with pytest.raises(errors.ArgumentTypeError, match="positive numbers"):
        split(Y, (2.0, -1.0))
    with pytest.raises(errors.ArgumentTypeError, match="Anew has none"):
        split(Anew(3), (0.5, 0.5))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ["transform", "batch_transform"])
def test_changes_that_take_other_arguments(name: str, workers: int) -> None:
    change: Any = {name: _of_one}
    with pytest.raises(errors.ArgumentTypeError, match=rf"DataLoader: {name}: a function that is called as {name}\("):
        list(DataLoader(X, 5, workers=workers, **change))


def _of_one(record: Any) -> Any:
    return record


@pytest.mark.parametrize("source", [lambda x: x, lambda x: {"x": x}, lambda x: list(x[None]), lambda x: [[x[1]]]])
def test_masked_arrays_are_refused(source: Any) -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])  # type: ignore[no-untyped-call]
    with pytest.raises(errors.DtypeError, match="their mask would be lost"):
        list(DataLoader(source(masked), 1))


# --- files ---


def test_csv(tmp_path: Path) -> None:
    peer("pyarrow")
    path = tmp_path / "points.csv"
    path.write_text("a;b;c;d\n1;0.5;x;true\n2;;y;false\n")
    table = ad.data.read_csv(path, separator=";")
    assert {name: column.dtype.kind for name, column in table.items()} == {"a": "i", "b": "f", "c": "O", "d": "b"}
    np.testing.assert_array_equal(table["b"], [0.5, np.nan])
    matrix, texts = ad.data.read_csv(path, (["b", "a"], "c"), separator=";")
    np.testing.assert_array_equal(matrix, [[0.5, 1], [np.nan, 2]])
    assert texts.tolist() == ["x", "y"]
    assert list(ad.data.read_csv(path, {"x": "a", "y": ["a"]}, separator=";")) == ["x", "y"]
    table["a"][0] = 3  # arrays of one's own
    for columns, kind, text in [
        ("e", errors.ArgumentError, "no column 'e'; there are 'a', 'b', 'c', 'd'"),
        ([("a",)], errors.ArgumentTypeError, "columns are a name"),
        (3, errors.ArgumentTypeError, "received 3"),
    ]:
        with pytest.raises(kind, match=text):
            ad.data.read_csv(path, columns, separator=";")
    with pytest.raises(errors.FileError, match="nothing.csv"):
        ad.data.read_csv(tmp_path / "nothing.csv")
    with pytest.raises(errors.ArgumentError, match="one character"):
        ad.data.read_csv(path, separator="ab")
    path.write_text("a,b\n1\n")
    with pytest.raises(errors.FileError, match="points.csv"):
        ad.data.read_csv(path)
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(errors.ArgumentError, match="several columns are called 'a'"):
        ad.data.read_csv(path)
    assert ad.data.read_csv(path, "b").tolist() == [2]
    with pytest.raises(errors.FileError, match="read_csv: None"):
        ad.data.read_csv(None)


def test_a_database_whose_name_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError, match="null character"):
        ad.data.read_sqlite(f"{tmp_path}/points.db\0.old", "select 1")


def parquet(path: Path, rows: int = 10, group: int = 4) -> dict[str, Any]:
    peer("pyarrow")
    import pyarrow
    import pyarrow.parquet

    y = np.arange(rows)
    columns = {"x": [[i, i + 0.5] for i in range(rows)], "y": y, "n": [None, *range(1, rows)], "t": list(map(str, y))}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=group)
    return columns


def test_parquet(tmp_path: Path) -> None:
    columns = parquet(tmp_path / "points.parquet")
    table = ad.data.read_parquet(tmp_path / "points.parquet")
    np.testing.assert_array_equal(table["x"], columns["x"])
    assert np.isnan(table["n"][0])
    assert ad.data.read_parquet(tmp_path, ("y", "t"))[1].tolist() == columns["t"]
    with pytest.raises(errors.ArgumentError, match="no column 'z'"):
        ad.data.read_parquet(tmp_path / "points.parquet", "z")
    with pytest.raises(errors.FileError, match="nothing"):
        ad.data.read_parquet(tmp_path / "nothing")
    (tmp_path / "points.txt").write_text("no table")
    with pytest.raises(errors.FileError, match=r"points\.txt"):
        Parquet(tmp_path / "points.txt")


def test_parquet_by_row_groups(tmp_path: Path) -> None:
    columns = parquet(tmp_path / "points.parquet", 23, 7)
    source = Parquet(tmp_path / "points.parquet", ("x", "y"))
    x, y = source.take(np.array([20, 0, 8, 1, 22]))
    assert y.tolist() == [20, 0, 8, 1, 22]
    np.testing.assert_array_equal(x, np.array(columns["x"])[y])
    assert source[9][1] == 9
    reads: list[int] = []
    original = source._read
    source._read = lambda group, indices: reads.append(group) or original(group, indices)  # type: ignore[method-assign]
    loader = DataLoader(source, 3, shuffle=True, seed=1)
    for _ in range(2):
        order = np.concatenate([y for _, y in loader])
        assert sorted(order) == list(range(23))
        assert order.tolist() != sorted(order)
        assert len([1 for one, other in itertools.pairwise(reads) if one != other]) <= 4 * 2
    del source._read  # type: ignore[method-assign]
    part, _ = split(source, (0.5, 0.5))
    for wanted, found in zip(
        DataLoader(part, 3, shuffle=True), DataLoader(part, 3, shuffle=True, workers=2), strict=True
    ):
        np.testing.assert_array_equal(wanted[0], found[0])
    assert len(pickle.dumps(source)) < 2000
    assert pickle.loads(pickle.dumps(source))[5][1] == 5
    with pytest.raises(errors.ArgumentError, match="no column 'z'"):
        Parquet(tmp_path / "points.parquet", "z")


def test_ragged_lists_of_a_table() -> None:
    pyarrow = peer("pyarrow")
    with pytest.raises(errors.ShapeError, match="column 'x' differ in length: row 0 has 1, row 1 2"):
        DataLoader(pyarrow.table({"x": [[1], [1, 2]]}), 2)
    dates = pyarrow.table({"d": np.array(["2020-01-01"], "M8[D]"), "k": pyarrow.array(["u"]).dictionary_encode()})
    batch = next(iter(DataLoader(dates, 1)))
    assert [batch["d"].dtype.kind, batch["k"].tolist()] == ["M", ["u"]]
    flags = pyarrow.table({"f": [True, None], "m": pyarrow.array([1, 2]).cast(pyarrow.decimal128(21, 2))})
    batch = next(iter(DataLoader(flags, 2)))
    np.testing.assert_array_equal(batch["f"], [1, np.nan])
    assert batch["m"].tolist() == [1, 2]


def test_sqlite(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "a base?.db"
    with sqlite3.connect(path) as base:
        base.execute("create table points (x real, y integer, t text, b blob)")
        base.executemany("insert into points values (?, ?, ?, ?)", [(0.5, 1, "a", b"\0"), (1.5, 2, None, b"")])
    base.close()
    table = ad.data.read_sqlite(path, "select * from points")
    assert [table[name].dtype.kind for name in "xytb"] == ["f", "i", "O", "O"]
    x, y = ad.data.read_sqlite(path, "select * from points where y > ?", (["x", "y"], "y"), parameters=[1])
    assert [x.tolist(), y.tolist()] == [[[1.5, 2]], [2]]
    for query in ("select z from points", "delete from points", "select ?"):
        with pytest.raises(errors.ArgumentError, match="read_sqlite"):
            ad.data.read_sqlite(path, query)
    with pytest.raises(errors.FileError, match="unable to open"):
        ad.data.read_sqlite(tmp_path / "nothing.db", "select 1")
    (tmp_path / "text.db").write_text("no base" * 1000)
    with pytest.raises(errors.FileError, match="not a database"):
        ad.data.read_sqlite(tmp_path / "text.db", "select 1 from points")


def test_image_folder(tmp_path: Path) -> None:
    peer("PIL")
    from PIL import Image

    for name, colour, size in [("cat/1.png", (255, 0, 0), (4, 2)), ("dog/in/2.jpg", (0, 0, 255), (5, 5))]:
        (tmp_path / name).parent.mkdir(parents=True)
        Image.new("RGB", size, colour).save(tmp_path / name)
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    folder = ad.data.ImageFolder(tmp_path, size=(3, 6))
    assert folder.classes == ["cat", "dog"]
    images, labels = next(iter(DataLoader(folder, 2)))
    assert (images.shape, images.dtype, labels.tolist()) == ((2, 3, 3, 6), np.float32, [0, 1])
    np.testing.assert_allclose(images[0], np.broadcast_to(np.array([1.0, 0, 0])[:, None, None], (3, 3, 6)))
    plain = ad.data.ImageFolder(tmp_path, mode="L")
    assert plain[0][0].shape == (1, 2, 4)
    with pytest.raises(errors.ShapeError, match="crop or pad"):
        next(iter(DataLoader(plain, 2)))
    (tmp_path / "cat" / "0.png").write_bytes(b"broken")
    with pytest.raises(errors.FileError, match=r"0\.png is no image"):
        ad.data.ImageFolder(tmp_path)[0]
    for path, text in [(tmp_path / "nothing", "is no folder"), (tmp_path / "dog" / "in", "has no folder with images")]:
        with pytest.raises(errors.FileError, match=text):
            ad.data.ImageFolder(path)
    with pytest.raises(errors.ArgumentError, match="a positive integer or a pair"):
        ad.data.ImageFolder(tmp_path, size=0)


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("pyarrow", lambda: ad.data.read_csv("a.csv")),
        ("pyarrow", lambda: ad.data.read_parquet("a.parquet")),
        ("pyarrow", lambda: Parquet("a.parquet")),
        ("PIL", lambda: ad.data.ImageFolder("a")),
    ],
)
def test_a_missing_library_is_named(module: str, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.MissingLibraryError, match=rf"needs {module}; pip install 'adjoint\[data\]'"):
        call()


def test_a_source_may_be_written_by_users() -> None:
    class Squares(Source):
        def __len__(self) -> int:
            return 5

        def take(self, indices: Any) -> Any:
            return {"n": indices, "s": indices**2}

    batch = next(iter(DataLoader(Squares(), 5, transform=lambda record, rng: record["s"])))
    assert batch.tolist() == [0, 1, 4, 9, 16]
