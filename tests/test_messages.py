"""What users read when something goes wrong: `messages/*.txt` says which call brings which text.

The whole table comes to every place of this package that makes an error, but for those that are listed here.
"""

from __future__ import annotations

import ast
import re
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import messages
import numpy as np
import pytest
from each import Each

import adjoint as ad
import adjoint.torch as torch
from adjoint import errors

SLOW = {
    "dask",
    "jax",
    "pandas",
    "solvers",
    "tensorboard",
    "torch",
}  # libraries that are slow to import, and programs that are compiled


@pytest.mark.parametrize(
    "topic", [pytest.param(t, marks=pytest.mark.slow if t in SLOW else ()) for t in messages.TOPICS]
)
def test_messages(topic: str) -> None:
    if library := messages.missing(topic):
        pytest.skip(f"{library} is not installed")
    with Each() as each:
        for row in messages.rows(topic):
            with each(f"line {row.line} of {topic}.txt"):
                met(row)


def met(row: messages.Row) -> BaseException:
    error = messages.met(row)
    assert error is not None, "there was no error"
    assert messages.says(row, error), f"{type(error).__name__}: {error}"
    assert len(str(error)) < 600
    return error


def test_numpy_names_our_error_as_the_cause() -> None:
    """NumPy raises an error of its own where it asks a number of a tensor: ours stands above it."""
    place = np.zeros(3)
    with pytest.raises(ValueError, match="setting an array element") as caught:
        place[0] = ad.tensor(1.0).require_grad()
    assert re.match(r"n\[i\] = x: n is an array of NumPy's, .*ad\.zeros", str(caught.value.__cause__))

    def assign(a: ad.Tensor) -> ad.Tensor:
        place[0] = a[0]
        return a

    with pytest.raises(ValueError, match="setting an array element") as caught:
        ad.vmap(assign)(np.ones((2, 3)))
    assert re.match(r"n\[i\] = x: .* differ between the examples of a batch.*ad\.zeros", str(caught.value.__cause__))


def test_names_in_messages_are_cut_where_they_are_long() -> None:
    long, many = "x" * 10**6, 10**5000
    calls: list[Any] = [
        lambda: getattr(ad, long), lambda: getattr(ad.nn, long), lambda: getattr(torch, long),
        lambda: getattr(ad.nn.Linear(1, 1), long), lambda: getattr(ad.optim.SGD(lr=0.1), long),
        lambda: ad.sum(ad.ones(3), **{long: 1}), lambda: torch.zeros(1, device=long), lambda: torch.zeros(many),
        lambda: torch.zeros(-many), lambda: torch.manual_seed(many),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises((AttributeError, TypeError, RuntimeError, ValueError)) as caught:
            call()
        assert len(str(caught.value)) < 1000
        assert "Exceeds the limit" not in str(caught.value)  # Python's, of writing a number


def test_no_file_of_our_own_making_is_shown() -> None:
    """Functions made from source are in no file: warnings and tracebacks show one that there is."""
    x = ad.tensor([-1.0, 4.0]).require_grad()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ad.log(x)
    assert [Path(w.filename).name for w in caught] == ["codegen.py"]
    assert "ad.Checked" in Path(caught[0].filename).read_text().splitlines()[caught[0].lineno - 1]
    device = ad.Autodiff(ad.Checked(ad.NumPy()))
    with pytest.raises(errors.NonFiniteError, match=r"called from .*test_messages\.py:\d+: ad\.log") as failed:
        ad.log(ad.tensor([-1.0], device=device).require_grad())
    for frame in traceback.extract_tb(failed.value.__traceback__):
        assert Path(frame.filename).exists()


# --- the table is whole --------------------------------------------------------------------------

# a file or folder, a part of the code that makes the error ("" for all), and why no row comes to it
EXCEPTIONS: list[tuple[str, str, str]] = [
    ("data/workers.py", "WorkerError(f'in worker", "workers that fail; test_data_workers.py starts some"),
    ("data/workers.py", "process.pid", "workers that are killed; test_data_workers.py starts some"),
    ("train/cluster.py", "WorkerError", "clusters that lose workers; test_cluster.py has some"),
    ("train/cluster.py", "cannot be sent to workers", "as above"),
    ("primitives/recurrence.py", "lstm", "the layer says it in its own words"),
    ("primitives/contraction.py", "linear", "the function says it in its own words"),
    ("optim/fused.py", "is not elementwise", "the update is computed as it is written then"),
    ("backends/__init__.py", "in this program", "python -m adjoint.torch; test_torch_face_autograd.py starts it"),
    ("torch/einops.py", "MissingLibraryError", "where einops is installed there is none"),
    ("autograd/scipy/__init__.py", "", "where SciPy is installed there is none; test_face_autograd.py hides it"),
    ("files.py", "may not outlast", "a disk that fails while it writes"),
    ("pot.py", "MissingLibraryError", "where POT is installed there is none"),
    ("autoray.py", "MissingLibraryError", "where autoray is installed there is none; test_autoray.py hides it"),
    ("quimb.py", "MissingLibraryError", "where quimb is installed there is none"),
    ("backends/cupy.py", "GPU", "CuPy and a GPU, or none, are needed"),
    ("backends/dask/tasks.py", "index ", "functions check indices before; this is for programs that call the leaf"),
    ("backends/dask/tasks.py", "OutOfRangeError(f'{self.name}", "as above"),
    ("backends/reference/factors.py", "", "the function says it in its own words"),
    ("decorators/observed.py", "CheckError(_message(primitive, specs, parameters, what))", "a leaf with an error"),
    ("compiler/setting.py", "ADJOINT_COMPILE", "test_compile.py sets it"),
    ("devices.py", "ADJOINT_DEVICE", "read once in a process; test_devices.py starts one"),
    ("dtypes.py", "ADJOINT_DTYPE", "read once in a process; test_default_dtypes.py starts one"),
    ("dtypes.py", "does not fit into memory as an array", "a list that fills the memory"),
    (
        "functions/inspection.py",
        "writes to views",
        "SciPy asks where SCIPY_ARRAY_API is set; test_consumers.py starts one",
    ),
    ("transforms/staged.py", "reverse mode tracks what the loop", "the loop asks what is tracked before it runs"),
    ("compiler/graph.py", "GraphError", "mistakes of the compiler; test_compile_graph.py makes some"),
    ("compiler/native/matrices.py", "SingularError", "the program runs again without machine code, and NumPy's is met"),
    ("compiler/native/calls.py", "while a compiled function ran", "another thread, in the middle of a call"),
    ("compiler/parser.py", "parse: ", "texts of graphs, which tests write; test_compiled.py writes wrong ones"),
    ("compiler/traced.py", "a step ", "the steps run one by one then"),
    ("counters.py", "number of a step", "the steps run one by one then; test_counters.py has some"),
    ("transforms/control.py", "body_fun calls type", "as above"),
    ("compiler/traced.py", "in the thread that called it", "another thread; test_compile.py starts one"),
    ("solvers/linear.py", "SingularError", "the cause of a ConvergenceError or of another SingularError"),
]


def sites() -> Iterator[tuple[str, int, str]]:
    """Where this package makes an error: the file, the line and the code."""
    kinds = set(dir(errors))
    for path in messages.SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if isinstance(node.func.value, ast.Name) and node.func.value.id == "errors" and node.func.attr in kinds:
                    yield str(path.relative_to(messages.SOURCE)), node.lineno, ast.unparse(node)


def excepted(file: str, code: str) -> bool:
    return any(file.startswith(place) and part in code for place, part, _ in EXCEPTIONS)


@pytest.mark.slow
@pytest.mark.peers
def test_the_table_comes_to_every_place_that_makes_an_error() -> None:
    reached: set[tuple[str, int]] = set()
    with messages.recorded():
        for topic in messages.TOPICS:
            if library := messages.missing(topic):
                pytest.skip(f"{library} is not installed")
            for row in messages.rows(topic):
                if (error := messages.met(row)) is not None:
                    reached |= {
                        (str(Path(file).relative_to(messages.SOURCE)), line) for file, line in messages.lines_of(error)
                    }
    left = [(file, line, code) for file, line, code in sites() if (file, line) not in reached]
    unknown = [f"{file}:{line} {code}" for file, line, code in left if not excepted(file, code)]
    assert not unknown, "add rows to tests/messages:\n" + "\n".join(unknown)
    idle = [
        f"{place}: {part}"
        for place, part, _ in EXCEPTIONS
        if not any(f.startswith(place) and part in c for f, _, c in left)
    ]
    assert not idle, "these need no exception: " + "\n".join(idle)
