"""Days of a time zone: of times without a zone, of the evaluation date, and of the items."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.support.arrow_frames import judgements, ranking, table, tuples, where
from tests.support.sections import sections

SHOWN: Final = dt.datetime(2026, 1, 31, 0, 0, tzinfo=dt.UTC)
"""In Tokyo it is nine, in New York seven on the day before."""


def log() -> pa.Table:
    """Show ann one item."""
    return table("user_id item_id score", ("ann", "a", 1.0)).append_column("recommended_at", [[SHOWN]])


@pytest.mark.parametrize(
    ("clicked", "relevant_in"),
    [
        pytest.param("2026-01-31 05:00", {"UTC"}, id="text"),
        pytest.param(dt.datetime(2026, 1, 31, 10, 0), {"Asia/Tokyo"}, id="time without a zone"),
        pytest.param(pd.Timestamp("2026-01-30 20:00"), {"America/New_York"}, id="pandas"),
        pytest.param(dt.date(2026, 2, 1), {"UTC", "Asia/Tokyo", "America/New_York"}, id="day"),
        pytest.param("2026-01-31T05:00Z", {"UTC", "Asia/Tokyo", "America/New_York"}, id="text with a zone"),
        pytest.param("2026-01-31 14:00 Asia/Tokyo", {"UTC", "Asia/Tokyo", "America/New_York"}, id="text with its zone"),
        pytest.param(SHOWN + dt.timedelta(hours=5), {"UTC", "Asia/Tokyo", "America/New_York"}, id="moment"),
        pytest.param(1_769_835_600, {"UTC", "Asia/Tokyo", "America/New_York"}, id="seconds since 1970"),
    ],
)
def test_times_without_a_zone_are_read_in_the_zone_of_the_call(clicked: object, relevant_in: set[str]) -> None:
    """Events belong to the list for eight hours, those of a day without a time for two days."""
    held_out = pd.DataFrame({"user_id": ["ann"], "item_id": ["a"], "interacted_at": [clicked]})
    window = "48h" if type(clicked) is dt.date else "8h"
    asked: dict[str, Any] = {"attribution": "all", "attribution_window": window, "population": "judged"}
    found = set()
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        checks = evaluate(log(), held_out, **sections(measures=["R"], time_zone=zone, **asked)).checks
        outside = [where(checks, check=name)["count"].to_pylist() for name in ("before_list", "after_window")]
        found |= {zone} if outside == [[0], [0]] else set()
    assert found == relevant_in


@pytest.mark.parametrize(
    ("zone", "late"),
    [
        ("UTC", ["b", "d"]),  # from midnight on
        ("Asia/Tokyo", ["b", "c", "d"]),  # from 15:00 of the day before
        ("America/Sao_Paulo", ["b", "d"]),  # 03:00, because clocks skip midnight, and the first hour
        ("America/New_York", ["b"]),  # 04:00
    ],
)
def test_training_data_end_where_the_day_begins_in_the_zone(zone: str, late: list[str]) -> None:
    times = ["2018-11-03 23:59:59", "2018-11-04 00:30:00", "2018-11-03T15:00:00Z", "2018-11-04T03:00:00Z"]
    train = table("user_id item_id", *(("ann", item) for item in "abcd")).append_column("interacted_at", [times])
    found = evaluate(
        ranking({"ann": "x"}),
        judgements({"ann": {"x": 1}}),
        measures=["NotInTrain@1"],
        train=train,
        evaluation_date=dt.date(2018, 11, 4),
        inputs={"time_zone": zone},
    )
    (row,) = where(found.checks, check="train_after_cut").to_pylist()
    assert (row["count"], row["sample_keys"]) == (len(late), [f"ann {late[0]}", f"ann {late[-1]}"][: len(late)])


@pytest.mark.parametrize(("zone", "days"), [("UTC", 2), ("Asia/Tokyo", 1), ("America/New_York", 2)])
@pytest.mark.parametrize(
    "published",
    [
        pytest.param(dt.datetime(2026, 1, 29, 20, tzinfo=dt.UTC), id="moment"),
        pytest.param("2026-01-29T20:00Z", id="text with a zone"),
    ],
)
def test_age_of_an_item_counts_from_its_day_in_the_zone(published: object, zone: str, days: int) -> None:
    """At 20:00 in Greenwich it is five on the next day in Tokyo."""
    items = pa.table({"item_id": ["a"], "published_at": [published]})
    asked: dict[str, Any] = {"items": items, "evaluation_date": dt.date(2026, 1, 31), "time_zone": zone}
    result = evaluate(
        ranking({"ann": "a"}), judgements({"ann": {"a": 1}}), **sections(measures=["Freshness@1"], **asked)
    )
    assert tuples(result.metrics, "value") == [(days,)]


def test_day_without_a_time_is_a_day_in_every_zone() -> None:
    for published in (dt.date(2026, 1, 29), "2026-01-29", "2026-01-29 23:30", dt.datetime(2026, 1, 29, 23, 30)):
        items = pa.table({"item_id": ["a"], "published_at": [published]})
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            asked: dict[str, Any] = {"items": items, "evaluation_date": dt.date(2026, 1, 31), "time_zone": zone}
            result = evaluate(
                ranking({"ann": "a"}), judgements({"ann": {"a": 1}}), **sections(measures=["Freshness@1"], **asked)
            )
            assert tuples(result.metrics, "value") == [(2,)]


def test_newest_judgement_is_that_of_the_last_moment() -> None:
    """One table has both: 20:30 of New York's clocks is later than midnight in Greenwich."""
    gains = table("user_id item_id gain", ("ann", "a", 3.0), ("ann", "a", 1.0))
    held_out = gains.append_column("interacted_at", [["2026-01-31T00:00Z", "2026-01-30 20:30"]])
    for zone, newest in (("UTC", 3.0), ("America/New_York", 1.0)):
        asked: dict[str, Any] = {"held_out_duplicates": "last", "time_zone": zone}
        result = evaluate(ranking({"ann": "a"}), held_out, **sections(measures=["CG@1"], **asked))
        assert tuples(result.metrics, "value") == [(newest,)]


def test_name_that_is_no_zone_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as raised:
        evaluate(log(), log(), measures=["RR"], inputs={"time_zone": "Tokyo"})
    (fault,) = raised.value.faults
    assert (fault.where, fault.found, fault.fix) == (
        "evaluate(inputs=).time_zone",
        "'Tokyo'",
        "did you mean 'Asia/Tokyo'?",
    )
