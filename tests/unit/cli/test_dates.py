"""The dates of a backfill, and its exit code."""

from __future__ import annotations

from datetime import date

import pytest

from rankeval_spark.app.backfill import Outcome, backfill, dates_between, exit_code
from rankeval_spark.errors import ChecksFailedError, ConfigError, Fault, InputError

FIRST, SECOND, THIRD = date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)


def test_both_ends_belong_to_the_range() -> None:
    assert dates_between(FIRST, THIRD) == [FIRST, SECOND, THIRD]
    assert dates_between(FIRST, FIRST) == [FIRST]


def test_range_that_runs_backwards_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError, match=r"did you mean --from 2024-02-28 --to 2024-03-01\?"):
        dates_between(THIRD, FIRST)


def test_range_of_more_than_ten_years_is_taken_for_a_typing_error() -> None:
    with pytest.raises(ConfigError, match="found 2024-02-28 to 2042-02-28; expected 1 to 3,660 days"):
        dates_between(FIRST, date(2042, 2, 28))


def test_date_that_fails_does_not_stop_the_others() -> None:
    seen = []

    def fail_twice(day: date) -> None:
        seen.append(day)
        if day == FIRST:
            raise ChecksFailedError(Fault("held_out, null_keys", "1", "0"))
        if day == SECOND:
            raise InputError(Fault("inputs.held_out", "nothing", "rows"))

    outcomes = list(backfill([FIRST, SECOND, THIRD], fail_twice))  # type: ignore[arg-type]  # results are passed on as they are

    assert seen == [FIRST, SECOND, THIRD]
    assert [one.exit_code for one in outcomes] == [3, 4, 0]
    assert exit_code(outcomes) == 3
    assert exit_code(outcomes[2:]) == 0


def test_failure_that_is_not_ours_has_exit_code_1() -> None:
    assert Outcome(FIRST, error=RuntimeError("?")).exit_code == 1
