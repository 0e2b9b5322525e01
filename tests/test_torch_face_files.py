"""`adjoint.torch`: files of PyTorch's that hold more than plain tensors, and files of before 1.6."""

from __future__ import annotations

import collections
import contextlib
import io
import pickle
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjoint.torch as ours

KINDS = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool complex64 complex128".split()


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


class OwnOfOurs(ours.Tensor):
    pass


def _saved(torch: Any, value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(value, file, **options)
    return file.getvalue()


def _shared(torch: Any) -> Any:
    x = torch.arange(4.0)
    return {"x": x, "rest": x[1:], "square": x.view(2, 2), "other": torch.arange(3)}


@pytest.mark.peers
@pytest.mark.parametrize("zipped", [True, False])
def test_pytorchs_files_of_both_forms_are_read(zipped: bool) -> None:
    theirs = pytest.importorskip("torch")
    form = {"_use_new_zipfile_serialization": zipped}
    for kind in KINDS:
        x = theirs.tensor([0, 1, 3]).to(getattr(theirs, kind))
        for there in (None, "cpu", "reference", lambda storage, location: storage, {"cpu": "reference"}):
            found = ours.load(io.BytesIO(_saved(theirs, x, **form)), map_location=there)
            assert found.tolist() == x.tolist()
            assert (found.device.type == "reference") == (there in ("reference", {"cpu": "reference"}))
        if kind != "bfloat16":
            assert found.dtype is getattr(ours, kind)
            assert theirs.equal(theirs.load(io.BytesIO(_saved(ours, found.cpu()))), x)
    found = ours.load(io.BytesIO(_saved(theirs, _shared(theirs), **form)))
    found["x"][1] = 9.0
    assert found["rest"].tolist() == [9.0, 2.0, 3.0]
    assert found["square"].tolist() == [[0.0, 9.0], [2.0, 3.0]]


@pytest.mark.peers
def test_attributes_of_tensors_and_buffers_are_kept_both_ways() -> None:
    theirs = pytest.importorskip("torch")
    for torch, other in ((theirs, ours), (ours, theirs)):
        weight, noted = torch.nn.Parameter(torch.ones(2)), torch.ones(2)
        weight.extra, noted.note = 3, ["a", torch.zeros(1)]
        buffer = torch.nn.Buffer(torch.ones(2), persistent=False)
        w, x, b = other.load(io.BytesIO(_saved(torch, [weight, noted, buffer])))
        assert (type(w), w.extra, w.requires_grad) == (other.nn.Parameter, 3, True)
        assert (x.note[0], x.note[1].tolist()) == ("a", [0.0])
        assert isinstance(b, other.nn.Buffer)
        assert b.persistent is False


@pytest.mark.peers
def test_classes_are_read_where_users_allow_them() -> None:
    theirs = pytest.importorskip("torch")
    files = {
        torch: _saved(torch, {"p": Point(torch.ones(2)), "d": collections.defaultdict(list)})
        for torch in (theirs, ours)
    }
    for content in files.values():
        with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed(?s:.*)Unsupported global: GLOBAL "):
            ours.load(io.BytesIO(content))
        with ours.serialization.safe_globals([Point, list]):
            found = ours.load(io.BytesIO(content))
            assert ours.serialization.get_safe_globals() == [Point, list]
        assert isinstance(found["p"], Point)
        assert found["p"].x.tolist() == [1.0, 1.0]
        assert found["d"] == collections.defaultdict(list)
    ours.serialization.add_safe_globals([(collections.deque, f"{__name__}.Point"), list])
    with pytest.raises(pickle.UnpicklingError, match="damaged"):  # another class by that name
        ours.load(io.BytesIO(files[ours]))
    ours.serialization.clear_safe_globals()
    assert ours.serialization.get_safe_globals() == []
    for wrong, error in (([(Point, 3)], ValueError), ([3], TypeError)):
        with pytest.raises(error, match="safe_globals|Expected tuple"):
            ours.serialization.add_safe_globals(wrong)


@pytest.mark.peers
def test_numbers_of_numpy_are_read_where_users_ask_for_more_than_weights() -> None:
    theirs = pytest.importorskip("torch")
    values = {
        "a": np.float64(0.5),
        "b": np.int64(-7),
        "c": np.float32(1.25),
        "d": np.bool_(True),
        "e": np.complex64(2j),
    }
    for torch in (theirs, ours):
        content = _saved(torch, values)
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
            ours.load(io.BytesIO(content))
        found = ours.load(io.BytesIO(content), weights_only=False)
        assert [(type(v), v) for v in found.values()] == [(type(v), v) for v in values.values()]
        for wrong in (np.ones(2), np.dtype("f8"), np.datetime64("2020-01-01"), np.str_("a")):
            with pytest.raises(pickle.UnpicklingError):
                ours.load(io.BytesIO(_saved(torch, {"a": wrong})), weights_only=False)


def test_a_subclass_is_saved_as_what_it_is() -> None:
    x = OwnOfOurs([1.0, 2.0])
    x.label = "a"
    content = _saved(ours, x)
    with pytest.raises(pickle.UnpicklingError, match="OwnOfOurs"):
        ours.load(io.BytesIO(content))
    with ours.serialization.safe_globals([OwnOfOurs]):
        found = ours.load(io.BytesIO(content))
    assert (type(found), found.tolist(), found.label) == (OwnOfOurs, [1.0, 2.0], "a")


@pytest.mark.peers
def test_what_is_no_value_here_is_refused(tmp_path: Path) -> None:
    theirs = pytest.importorskip("torch")
    for value in (collections.OrderedDict, [theirs.storage.TypedStorage(4, _internal=True)], {"a": (theirs.Tensor,)}):
        with pytest.raises(pickle.UnpicklingError, match="One of the file's values is a "):
            ours.load(io.BytesIO(_saved(theirs, value)))
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        ours.load(io.BytesIO(_saved(theirs, 3)), mmap=True)
    theirs.save(theirs.ones(2), tmp_path / "x.pt")
    assert ours.load(tmp_path / "x.pt", mmap=True).tolist() == [1.0, 1.0]


@pytest.mark.peers
def test_damaged_files_raise_errors_of_their_own() -> None:
    theirs = pytest.importorskip("torch")
    draw = random.Random(0)
    whole = [_saved(theirs, _shared(theirs), _use_new_zipfile_serialization=zipped) for zipped in (True, False)]
    whole.append(_saved(theirs, [theirs.nn.Buffer(theirs.ones(2)), theirs.nn.Parameter(theirs.ones(2))]))
    for content in whole:
        for end in range(1, len(content) - 1, len(content) // 40):
            with pytest.raises(pickle.UnpicklingError):
                ours.load(io.BytesIO(content[:end]))
        for _ in range(100):
            damaged = bytearray(content)
            for _ in range(3):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            with contextlib.suppress(pickle.UnpicklingError):  # what is changed may be a number
                ours.load(io.BytesIO(bytes(damaged)))


def test_of_two_objects_in_a_file_none_is_taken_for_the_other() -> None:
    file = io.BytesIO()
    ours.save(1, file)
    ours.save(2, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="failed reading zip archive.* write one object to a file"):
        ours.load(file)
