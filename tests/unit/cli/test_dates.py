"""The dates of a backfill, and its exit code."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.apps.nightly.backfill import DateOutcome, backfill_dates, dates_between, exit_code, list_dates
from rankeval_spark.apps.nightly.night import NightResult
from rankeval_spark.errors import ChecksFailedError, ConfigError, DriverLostError, Fault, InputError
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from pathlib import Path

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


def test_named_dates_come_first_in_their_order_and_each_date_once() -> None:
    assert list_dates(FIRST, THIRD, [THIRD, date(2023, 1, 1)]) == [THIRD, date(2023, 1, 1), FIRST, SECOND]
    assert list_dates(None, None, [SECOND, FIRST, SECOND]) == [SECOND, FIRST]


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (None, None, "found no date; expected --from and --to, or --date"),
        (FIRST, None, "found --from alone; expected both ends"),
        (None, FIRST, "found --to alone; expected both ends"),
    ],
)
def test_backfill_without_dates_or_with_half_a_range_is_refused(
    first: date | None, last: date | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        list_dates(first, last, [] if first is last else [SECOND])


def test_date_that_is_kept_is_not_run() -> None:
    seen: list[date] = []
    done = NightResult("nightly", SECOND, "run", {}, {})

    def run(day: date) -> NightResult:
        seen.append(day)
        return done

    outcomes = list(backfill_dates([SECOND, FIRST], run, kept={FIRST: "published by run r1"}))

    assert seen == [SECOND]
    assert [(one.result, one.kept, one.exit_code) for one in outcomes] == [
        (done, None, 0),
        (None, "published by run r1", 0),
    ]


def test_date_that_was_not_published_outweighs_an_earlier_gate() -> None:
    blocked = DateOutcome(FIRST, result=NightResult("nightly", FIRST, "run", {}, {}, gates=({"verdict": "failed"},)))
    missing = DateOutcome(SECOND, error=InputError(Fault("inputs.held_out", "nothing", "rows")))

    assert exit_code([blocked, missing]) == 4
    assert exit_code([blocked, DateOutcome(THIRD)]) == 6


def test_date_that_fails_does_not_stop_the_others() -> None:
    seen = []

    def fail_twice(day: date) -> None:
        seen.append(day)
        if day == FIRST:
            raise ChecksFailedError(Fault("held_out, null_keys", "1", "0"))
        if day == SECOND:
            raise InputError(Fault("inputs.held_out", "nothing", "rows"))

    outcomes = list(backfill_dates([FIRST, SECOND, THIRD], fail_twice))  # type: ignore[arg-type]  # results are passed on as they are

    assert seen == [FIRST, SECOND, THIRD]
    assert [one.exit_code for one in outcomes] == [3, 4, 0]
    assert exit_code(outcomes) == 3
    assert exit_code(outcomes[2:]) == 0


def test_failure_that_is_not_ours_has_exit_code_1() -> None:
    assert DateOutcome(FIRST, error=RuntimeError("?")).exit_code == 1


def test_no_other_date_is_tried_once_the_driver_is_gone() -> None:
    def lose(_day: date) -> None:
        raise DriverLostError(Fault("Spark driver", "its JVM gone", "one that answers"))

    outcomes = list(backfill_dates([FIRST, SECOND], lose))  # type: ignore[arg-type]  # as above

    assert [(one.evaluation_date, one.exit_code) for one in outcomes] == [(FIRST, 8)]


def test_wrong_dates_are_reported_with_the_faults_of_the_config(tmp_path: Path) -> None:
    path = tmp_path / "nightly.yaml"
    path.write_text("evaluation: nightly\nmeasures: [nDGC@10]\n", encoding="utf-8")
    done = rankeval("backfill", path, "--date", "2026-13-01", "--date", "2026-02-30")
    assert done.code == 2
    for fault in ("'2026-13-01'", "'2026-02-30'", "unknown measure 'nDGC'", "no 'inputs'"):
        assert fault in done.message
