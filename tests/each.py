"""Many cases in one test: all of them are checked, and all that fail are reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any


class Each:
    """Goes on where a case fails, and in the end raises one error that names them all.

    A test that came to no case at all fails too.

    >>> with Each() as each:
    ...     for case in (1, 2, 3):
    ...         with each(case):
    ...             assert case > 0
    """

    def __init__(self) -> None:
        self._count = 0
        self._failed: list[Exception] = []
        self._labels: list[str] = []

    def __enter__(self) -> Each:
        return self

    @contextlib.contextmanager
    def __call__(self, *label: Any) -> Iterator[None]:
        """One case, and what it is called; labels and the values in them are shown by `str`."""
        self._count += 1
        try:
            yield
        except Exception as error:
            self._labels.append(" ".join(map(str, label)))
            error.add_note(f"in the case {self._labels[-1]}")
            self._failed.append(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):  # between two cases: what failed before is worth knowing as well
            self._labels.append("(none: the test itself)")
            self._failed.append(error)
        elif error is not None:
            return
        if self._failed:
            first = [str(failed).strip().partition("\n")[0] for failed in self._failed]
            lines = [
                f"  {label}: {type(failed).__name__}: {said}"
                for label, failed, said in zip(self._labels, self._failed, first, strict=True)
            ]
            raise ExceptionGroup(f"{len(lines)} of {self._count} cases fail\n" + "\n".join(lines), self._failed)
        assert self._count, "there was no case to check"
