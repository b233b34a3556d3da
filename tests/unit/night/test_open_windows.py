"""Nights with attribution whose last windows are not over yet: refused, or published as what they are."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import HeldOutInput, Policies, load_config
from rankeval_spark.config.request import Request
from rankeval_spark.engine.attribution import TIMING_FIELDS, to_micros
from rankeval_spark.errors import ConfigError, OpenWindowsError, exit_code_of
from rankeval_spark.result_rows.check_rows import EVENTS_END, CheckCount, measure_events_end
from rankeval_spark.spark.session import on_demand
from rankeval_spark.sums.check_counts import count_lists, to_list_facts
from tests.support import attribution_cases as cases
from tests.support.attribution_cases import HOUR, WINDOW, moment
from tests.support.cli import rankeval
from tests.support.nights import FIRST, no_session
from tests.support.young_impressions import impressions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

MICROSECOND: Final = dt.timedelta(microseconds=1)
NOW: Final = dt.datetime(2026, 2, 8, 6, 0, tzinfo=dt.UTC)


def hours(*numbers: float) -> list[dt.timedelta]:
    return [dt.timedelta(hours=number) for number in numbers]


def of_windows(*events_until: dt.datetime) -> list[tuple[int, int, list[str]]]:
    """Count open windows at moments, of lists whose windows end at one and at three, and of one without a time."""
    ends = [cases.MIDNIGHT + dt.timedelta(hours=hour) for hour in (1, 3)]
    timing = [{"until": to_micros(end), "newest": None} for end in ends] + [{"until": None, "newest": None}]
    counts = {name: [1, 1, 1] for name in ("n_judged", "n_recommended", "n_duplicates", "_n_listed")}
    no_counts = dict.fromkeys(TIMING_FIELDS, 0)
    table = pa.table(
        {
            "model_id": ["m", "m", "m"],
            "user_id": ["ann", "bob", "eve"],
            **counts,
            "has_ties": [False, False, False],
            "_timing": [{**no_counts, **one} for one in timing],
        }
    )
    policies = Policies(attribution="all", attribution_window="2h")
    found = []
    for until in events_until:
        request = Request(measures=("R@1",), policies=policies, events_until=until)
        (fact,) = (one for one in to_list_facts(count_lists(table, request), request) if one.check == "open_windows")
        found.append((fact.count, fact.total, [*fact.sample_keys]))
    return found


def test_a_window_is_over_from_its_last_microsecond_on() -> None:
    end = moment(WINDOW + HOUR)
    assert of_windows(end - MICROSECOND, end, end + MICROSECOND) == [(1, 2, ["m bob"]), (0, 2, []), (0, 2, [])]
    assert of_windows(moment(HOUR) - MICROSECOND) == [(2, 2, ["m ann", "m bob"])]


@pytest.mark.parametrize(
    ("settings", "until"),
    [
        ({}, NOW),
        ({"late_data_grace": "0s"}, NOW),
        ({"late_data_grace": "6h"}, NOW - dt.timedelta(hours=6)),
        ({"timestamp": "{date+1} 02:00:00"}, dt.datetime(2026, 1, 2, 2, tzinfo=dt.UTC)),
        ({"timestamp": "{date+1} 02:00:00", "late_data_grace": "2h"}, dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
        ({"timestamp": "{date+300}"}, NOW),
        ({"version": 3}, NOW),
    ],
)
def test_events_are_complete_until_the_grace_before_they_are_read(settings: dict[str, Any], until: dt.datetime) -> None:
    given = HeldOutInput(format="delta", path="events", **settings)
    assert given.complete_until(FIRST, NOW) == until


def test_a_night_whose_windows_are_over_is_published(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(2.5, 4))
    run_night(on_demand(no_session), load_config(made.config), FIRST)
    assert {row["check"]: (row["count"], row["verdict"]) for row in made.rows("checks")}["open_windows"] == (0, "ok")


def test_a_night_with_an_open_window_ends_with_code_4_and_says_until_when(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(1.5, 4, 5, 6))
    with pytest.raises(OpenWindowsError, match=r"recommendations, open_windows: found 1 lists \(25.00%\)") as failed:
        run_night(on_demand(no_session), load_config(made.config), FIRST)
    assert exit_code_of(failed.value) == 4
    assert "the last window ends" in str(failed.value)
    assert "checks.open_windows={warn: 0}" in str(failed.value)
    (run,) = (row for row in made.rows("runs") if row["status"] == "FAILED")
    assert run["failed_checks"] == ["recommendations, open_windows"]


def test_late_data_keeps_a_window_open(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(2.5))
    made.change(inputs__held_out__late_data_grace="1h")
    with pytest.raises(OpenWindowsError):
        run_night(on_demand(no_session), load_config(made.config), FIRST)
    made.change(inputs__held_out__late_data_grace="10m")
    run_night(on_demand(no_session), load_config(made.config), FIRST)


def test_a_partial_run_says_in_its_checks_that_it_is_one(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(1.5, 4))
    config = load_config(made.config, ("checks.open_windows={warn: 0}",))
    result = run_night(on_demand(no_session), config, FIRST)
    assert any("open_windows: 1 (50.00%)" in warning for warning in result.warnings)
    (row,) = (row for row in made.rows("checks") if row["check"] == "open_windows")
    assert (row["count"], row["share"], row["verdict"], row["sample_keys"]) == (1, 1 / 2, "warn", ["model u0"])


def test_another_check_that_fails_too_decides_the_code(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(1.5))
    made.change(checks__before_list={"error": 0}, checks__short_lists={"error": 0}, cutoffs=[5], measures=["R"])
    done = rankeval("run", made.config, "--date", FIRST)
    assert done.code == 3
    assert "open_windows" in done.message
    assert "short_lists" in done.message


def test_a_backfill_goes_on_after_a_night_with_open_windows(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(1.5))
    done = rankeval("backfill", made.config, "--from", FIRST, "--to", FIRST + dt.timedelta(days=1))
    assert done.code == 4
    assert done.err.count("failed, code 4") + done.out.count("failed, code 4") == 2


def test_validate_reads_the_times_and_says_whether_the_last_window_is_over(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(1.5, 4))
    done = rankeval("validate", made.config, "--date", FIRST, "--json")
    found = json.loads(done.out)["windows"]
    assert done.code == 4
    assert found["is_open"] is True
    ends, shown = (dt.datetime.fromisoformat(found[name]) for name in ("last_window_ends_at", "last_shown_at"))
    assert ends - shown == dt.timedelta(hours=2)
    assert "a list whose attribution window ends" in done.message
    partial = rankeval("validate", made.config, "--date", FIRST, "--set", "checks.open_windows={warn: 0}")
    assert (partial.code, "is not over yet" in partial.out) == (0, True)
    assert rankeval("validate", made.config).code == 0
    over = impressions(tmp_path / "over", *hours(2.5, 4))
    assert "and is over" in rankeval("validate", over.config, "--date", FIRST).out


def log_of(made: Workspace, *rows: dict[str, Any]) -> None:
    """Write a log in place of that of the workspace."""
    made.write("recommendations", [{"score": 1.0, **row} for row in rows], "parquet")


def row(shown: dt.datetime, *, item: str | None = "a", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - cells of any type
    return {"user_id": "u0", "item_id": item, "recommended_at": shown, **more}


def ends_of(made: Workspace, *overrides: str) -> tuple[int, int]:
    """Run and validate a night, and return both exit codes."""
    changes = [part for one in overrides for part in ("--set", one)]
    validated = rankeval("validate", made.config, "--date", FIRST, *changes)
    ran = rankeval("run", made.config, "--date", FIRST, *changes)
    return validated.code, ran.code


@pytest.mark.parametrize(
    ("fields", "other", "codes"),
    [
        pytest.param([{}, {}], (), (0, 0), id="two times of a list"),
        pytest.param([{"list_id": "1"}, {"list_id": "2"}], (), (4, 4), id="two lists"),
        pytest.param([{"list_id": "1"}, {"list_id": "2"}], ("policies.lists=pooled",), (0, 0), id="pooled"),
        pytest.param([{"model_id": "als"}, {"model_id": "pop"}], (), (4, 4), id="two models"),
        pytest.param([{"model_id": "als"}, {"model_id": "pop"}], ("models=[als]",), (0, 0), id="one is expected"),
        pytest.param([{}, {"user_id": "u1"}], (), (4, 4), id="two users"),
        pytest.param([{}, {"user_id": "u1", "item": None}], ("checks.null_keys={}",), (0, 0), id="no item"),
        pytest.param([{}, {"user_id": "u1", "score": None}], ("checks.invalid_scores={}",), (0, 0), id="no score"),
        pytest.param([{}, {"user_id": "u1", "item": "b"}], (), (4, 4), id="another item"),
        pytest.param(
            [{}, {"user_id": "u1", "item": "b"}],
            ("policies.unknown_items=drop", "inputs.items={format: parquet, path: inputs/items}"),
            (0, 0),
            id="an unknown item",
        ),
    ],
)
def test_validate_looks_at_the_lists_that_a_run_takes(
    tmp_path: Path, fields: list[dict[str, Any]], other: tuple[str, ...], codes: tuple[int, int]
) -> None:
    """The window of the first row is over, and that of the second is not."""
    made, now = impressions(tmp_path, *hours(4)), dt.datetime.now(dt.UTC)
    made.write("items", [{"item_id": "a"}], "parquet")
    made.change(checks={"ties": {}, "short_lists": {}, "list_times": {}, "duplicates": {}, "unknown_items": {}})
    log_of(made, *(row(now - age, **one) for age, one in zip(hours(4, 1), fields, strict=True)))
    assert ends_of(made, *other) == codes


def test_a_damaged_log_is_said_by_validate_too(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(4))
    path = tmp_path / "inputs" / "recommendations"
    (file,) = [path] if path.is_file() else path.glob("*.parquet")
    whole = bytearray(file.read_bytes())
    whole[4:100] = bytes(96)  # the footer stays readable
    file.write_bytes(whole)
    done = rankeval("validate", made.config, "--date", FIRST)
    assert done.code == 4
    assert "inputs.recommendations: found a file that cannot be read" in done.message
    done.assert_readable()


def test_a_window_that_ends_after_the_last_year_is_open(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(4), policies__attribution_window="7d")
    log_of(made, row(dt.datetime(9999, 12, 31, tzinfo=dt.UTC)))
    done = rankeval("validate", made.config, "--date", FIRST)
    assert done.code == 4
    assert "window ends 10000-01-07T00:00:00+00:00" in done.message
    assert rankeval("run", made.config, "--date", FIRST).code == 4


def test_grace_without_attribution_is_refused(tmp_path: Path) -> None:
    made = impressions(tmp_path, *hours(4))
    made.change(policies={}, inputs__held_out__late_data_grace="6h")
    with pytest.raises(ConfigError, match=r"late_data_grace.*found '6h' with attribution 'none'"):
        load_config(made.config)
    made.change(inputs__held_out__late_data_grace="6 hours")
    with pytest.raises(ConfigError, match=r"late_data_grace.*'6 hours'.*units s, m, h, d"):
        load_config(made.config)


SECONDS: Final = WINDOW // 1_000_000


@pytest.mark.parametrize(
    ("parts", "count", "total"),
    [
        ([(10 * HOUR, 10 * HOUR, WINDOW)], 0, SECONDS),
        ([(10 * HOUR, 12 * HOUR, WINDOW)], 0, SECONDS),
        ([(10 * HOUR, 10 * HOUR - 1, WINDOW)], 1, SECONDS),
        ([(10 * HOUR, 10 * HOUR - 1_000_000, WINDOW)], 1, SECONDS),
        ([(10 * HOUR, 10 * HOUR - 1_000_001, WINDOW)], 2, SECONDS),
        ([(10 * HOUR, 9 * HOUR, WINDOW), (9 * HOUR, 9 * HOUR + 5_000_000, WINDOW)], 3600 - 5, SECONDS),
        ([(10 * HOUR, HOUR, WINDOW)], SECONDS, SECONDS),
        ([(10 * HOUR, None, WINDOW)], SECONDS, SECONDS),
        ([(None, 5, WINDOW), (10 * HOUR, None, WINDOW)], SECONDS, SECONDS),
        ([(None, None, WINDOW)], 0, 0),
        ([], 0, 0),
    ],
)
def test_events_end_is_the_part_of_the_last_window_after_the_newest_event(
    parts: list[tuple[int | None, int | None, int]], count: int, total: int
) -> None:
    fact = measure_events_end(parts)
    assert (fact.check, fact.count, fact.total) == (EVENTS_END, count, total)
    assert bool(fact.sample_keys) is bool(count)


def test_events_end_names_both_moments() -> None:
    fact = measure_events_end([(1_770_000_000_000_000, 1_769_999_000_000_000, 2_000_000_000)])
    expected = "the last window ends 2026-02-02 02:40:00, the newest event is of 2026-02-02 02:23:20"
    assert fact == CheckCount("recommendations", "events_end", 1000, 2000, [expected])
