"""The helper that checks many cases in one test hides none of them."""

from __future__ import annotations

import pytest
from each import Each


def test_every_failing_case_is_named_and_the_others_are_run() -> None:
    seen = []

    def check() -> None:
        with Each() as each:
            for n in range(30):
                with each("number", n):
                    seen.append(n)
                    assert n % 2, "it is even"
                    if n == 7:
                        raise ZeroDivisionError("seven")

    with pytest.raises(ExceptionGroup) as caught:
        check()
    assert seen == list(range(30))
    said = str(caught.value)
    assert said.startswith("16 of 30 cases fail\n")
    assert all(f"  number {n}: AssertionError: it is even\n" in said for n in range(0, 28, 2))
    assert "  number 7: ZeroDivisionError: seven\n" in said
    assert caught.value.exceptions[1].__notes__ == ["in the case number 2"]


def test_cases_that_all_pass_pass() -> None:
    with Each() as each, each("one"):
        assert True


def test_no_case_at_all_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="no case"), Each():
        pass


def test_an_error_between_cases_does_not_hide_those_before() -> None:
    def check() -> None:
        with Each() as each:
            with each("first"):
                raise AssertionError("wrong")
            raise LookupError("no further case")

    with pytest.raises(ExceptionGroup, match="first: AssertionError") as caught:
        check()
    assert [type(error) for error in caught.value.exceptions] == [AssertionError, LookupError]


def test_a_skip_is_a_skip() -> None:
    with pytest.raises(pytest.skip.Exception), Each() as each, each("first"):
        pytest.skip("not here")
