"""What a night selects: the catalogue and the history of the date; and lists that rank a sample of candidates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ChecksFailedError
from rankeval_spark.spark.session import on_demand
from tests.support import nights
from tests.support.nights import FIRST, SECOND, no_session

if TYPE_CHECKING:
    from pathlib import Path


def test_only_what_could_be_recommended_on_the_day_is_in_the_lists(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path)
    sold_out = {FIRST: "b", SECOND: "d"}
    items = [{"day": str(day), "item_id": item} for day, gone in sold_out.items() for item in "abcde" if item != gone]
    made.write("items", items, "parquet")
    by_day = [{"column": "day", "op": "=", "value": "{date}"}]
    made.change(
        inputs__items={"format": "parquet", "path": "inputs/items", "filters": by_day},
        policies={"unknown_items": "drop"},
        slices=[],
    )
    for day in sold_out:
        run_night(on_demand(no_session), load_config(made.config), day)
    lists = {(row[C.EVALUATION_DATE], row["user_id"]): row for row in made.rows("lists") if row["model_id"] == "als"}
    # The first day ann has the list a b c and b is not sold; the second day bob has d b a, and d is not.
    assert (lists[FIRST, "ann"]["n_recommended"], lists[FIRST, "ann"]["hit_ranks"]) == (2, [1, 2])
    assert (lists[SECOND, "bob"]["n_recommended"], lists[SECOND, "bob"]["hit_ranks"]) == (2, [2])
    dropped = {row[C.EVALUATION_DATE]: row["count"] for row in made.rows("checks") if row["check"] == "unknown_rows"}
    assert dropped == {
        day: sum(items.split().count(sold_out[day]) for lists in nights.LISTS[day].values() for items in lists.values())
        for day in sold_out
    }


def test_cold_users_are_those_with_little_history_before_the_date(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path)
    days = {"ann": ["2025-12-30", "2026-01-01", "2026-01-01"], "bob": ["2025-12-30", "2025-12-31"]}
    made.write(
        "train", [{"day": day, "user_id": user, "item_id": "x"} for user, own in days.items() for day in own], "parquet"
    )
    before = [{"column": "day", "op": "<", "value": "{date}"}]
    made.change(
        inputs__train={"format": "parquet", "path": "inputs/train", "filters": before},
        slicing__bands={"history": {"of": "train", "edges": [2], "labels": ["cold", "warm"]}},
        slices=["history"],
        measures=["RR@2"],
    )
    for day in (FIRST, SECOND):
        run_night(on_demand(no_session), load_config(made.config), day)
    users = {
        (row[C.EVALUATION_DATE], row["user_id"]): dict(row["segments"])["history"] for row in made.rows("user_metrics")
    }
    assert {user: users[FIRST, user] for user in ("ann", "bob", "eve")} == {"ann": "cold", "bob": "warm", "eve": "none"}
    assert {user: users[SECOND, user] for user in ("ann", "bob")} == {"ann": "warm", "bob": "warm"}


def test_a_night_over_a_window_of_days_is_that_of_two_plain_filters(tmp_path: Path) -> None:
    window = [{"column": "day", "op": "last", "value": "2d"}]
    plain = [{"column": "day", "op": ">=", "value": "{date-1}"}, {"column": "day", "op": "<", "value": "{date+1}"}]
    made = {}
    for name, filters in (("window", window), ("plain", plain)):
        made[name] = nights.workspace(tmp_path / name, inputs__held_out__filters=filters)
        result = run_night(on_demand(no_session), load_config(made[name].config), SECOND)
        assert not result.reason
    gains = {row["user_id"]: row["judged_gains"] for row in made["window"].rows("lists") if row["model_id"] == "als"}
    # Of ann, a and c were judged on the first day and b on the second one; of bob d on both days, best with 2, and a.
    assert (gains["ann"], gains["bob"]) == ([3, 1, 1], [2, 2])
    recorded = [json.loads(one.rows("runs")[0]["config"])["inputs"]["held_out"] for one in made.values()]
    assert recorded[0] == recorded[1]
    assert [each["op"] for each in recorded[0]["filters"]] == [">=", "<"]


def test_nights_of_sampled_candidates_warn_and_say_so_in_their_checks(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path, inputs__recommendations__sampled_candidates=1000)
    result = run_night(on_demand(no_session), load_config(made.config), FIRST)
    assert any("lists rank 1,000 sampled candidates" in warning for warning in result.warnings)
    (row,) = (row for row in made.rows("checks") if row["check"] == "sampled_candidates")
    assert (row["input"], row["count"], row["share"], row["verdict"]) == ("recommendations", 1, 1.0, "warn")
    with pytest.raises(ChecksFailedError, match="sampled_candidates"):
        run_night(on_demand(no_session), load_config(made.config, ("checks.sampled_candidates={error: 0}",)), SECOND)


def test_other_nights_have_no_such_check(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path)
    run_night(on_demand(no_session), load_config(made.config), FIRST)
    assert all(row["check"] != "sampled_candidates" for row in made.rows("checks"))
