"""Attribution by time through ``evaluate``, against every list looked at for every event; and time zones."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.support import attribution_cases as cases
from tests.support.arrow_frames import judgements, ranking, table, tuples, where
from tests.support.attribution_cases import HOUR, WINDOW, Event, Shown, moment
from tests.support.sections import measured

if TYPE_CHECKING:
    from collections.abc import Iterable


# ---- attribution by time through ``evaluate``, against every list looked at for every event ------------------------


pytestmark = pytest.mark.filterwarnings("ignore:.* rows have no time that can be read")
CLAIMS: Final = ("last_touch", "first_touch", "all")
LOG_TYPES: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("model_id", "user_id", "list_id", "item_id")),
        ("score", pa.float64()),
        ("recommended_at", pa.timestamp("us", "UTC")),
    ]
)
EVENT_TYPES: Final = pa.schema(
    [
        ("user_id", pa.string()),
        ("item_id", pa.string()),
        ("gain", pa.float64()),
        ("interacted_at", pa.timestamp("us", "UTC")),
    ]
)


def tables(log: list[Shown], events: list[Event]) -> tuple[pa.Table, pa.Table]:
    """Make the inputs of ``evaluate``."""
    return (
        pa.Table.from_pylist([row._asdict() for row in log], LOG_TYPES),
        pa.Table.from_pylist([row._asdict() for row in events], EVENT_TYPES),
    )


def rows(log: list[Shown], events: list[Event], **policies: Any) -> dict[tuple[Any, ...], dict[str, Any]]:  # noqa: ANN401 - arguments of evaluate
    """Evaluate the whole lists; the counts of each by its key."""
    options = {"attribution_window": "2h", "population": "judged", "models": ["als", "pop"], **policies}
    found = measured(*tables(log, events), measures=["R", "nDCG"], **options)
    return {(row["model_id"], row["user_id"], row["list_id"]): row for row in found.user_metrics.to_pylist()}


def train_of(pairs: Iterable[tuple[str, str]]) -> pa.Table:
    """Make training data of users and items."""
    return pa.Table.from_pylist([{"user_id": user, "item_id": item} for user, item in sorted(set(pairs))])


def one_list(*times: int, shown: int = HOUR) -> tuple[list[Shown], list[Event]]:
    """Make a list of one user with the items a and b, and interactions with a at some times."""
    log = [Shown("als", "u", "x", item, -float(rank), moment(shown)) for rank, item in enumerate("ab")]
    return log, [Event("u", "a", 1.0, moment(time)) for time in times]


@pytest.mark.parametrize("claim", CLAIMS)
def test_random_logs_are_attributed_as_by_hand(claim: str) -> None:
    log, events = cases.random_logs(n_users=400)
    expected = cases.judgements(log, events, claim=claim)
    found = rows(log, events, attribution=claim)
    listed: dict[tuple[str, str, str], set[str]] = {}
    for row in log:
        listed.setdefault(row[:3], set()).add(row.item_id)
    counts = {
        key: (len(gains), sum(gain >= 1 for gain in gains.values()), len(gains.keys() & listed.get(key, set())))
        for key, gains in expected.items()
    }
    assert len(counts) > 500
    assert {key: (row["n_judged"], row["n_relevant"]) for key, row in found.items()} == {
        key: count[:2] for key, count in counts.items()
    }
    for key, gains in expected.items():
        n_hits = sum(item in listed.get(key, ()) and gain >= 1 for item, gain in gains.items())
        n_relevant = counts[key][1]
        assert found[key]["r"] == pytest.approx(n_hits / n_relevant if n_relevant else 0)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(
    ("after", "is_judged"),
    [(-1, False), (0, False), (1, True), (WINDOW - 1, True), (WINDOW, True), (WINDOW + 1, False)],
)
def test_both_ends_are_exact_to_the_microsecond(claim: str, after: int, *, is_judged: bool) -> None:
    found = rows(*one_list(HOUR + after), attribution=claim)
    assert (("als", "u", "x") in found) is is_judged


def test_an_interaction_belongs_to_the_last_earlier_list_that_had_its_item() -> None:
    log, events = one_list(2 * HOUR)
    log += [Shown("als", "u", "y", "c", 1.0, moment(HOUR + 1))]
    assert rows(log, events, attribution="last_touch").keys() == {("als", "u", "x"), ("pop", "u", "")}


def test_without_attribution_times_decide_nothing() -> None:
    log, events = one_list(-HOUR)
    table, held_out = tables(log, events)
    found = evaluate(table, held_out, measures=["R"]).user_metrics.to_pylist()
    assert [row["r"] for row in found] == [1.0]


def test_items_consumed_before_leave_the_list_where_the_policy_says_so() -> None:
    log, events = one_list(HOUR, HOUR + 1)  # one at the time of the list, one after it
    kept, dropped = (
        rows(log, events, attribution="all", consumed_before=policy)["als", "u", "x"] for policy in ("keep", "drop")
    )
    assert (kept["n_recommended"], kept["r"]) == (2, 1.0)
    assert (dropped["n_recommended"], dropped["r"]) == (1, 0.0)


def test_a_list_whose_items_were_all_consumed_counts_as_no_list() -> None:
    log, events = one_list(0, 2 * HOUR)
    events += [Event("u", "b", 1.0, moment(0))]
    options: dict[str, Any] = {"attribution": "all", "consumed_before": "drop", "models": ["als"]}
    scored = {key: (row["n_recommended"], row["r"]) for key, row in rows(log, events, **options).items()}
    assert scored == {("als", "u", "x"): (0, 0.0)}
    assert rows(log, events, missing="exclude", **options) == {}


@pytest.mark.parametrize("claim", CLAIMS)
def test_seen_items_leave_the_lists_after_interactions_are_attributed(claim: str) -> None:
    log, events = cases.random_logs(n_users=200)
    seen = {(row.user_id, row.item_id) for row in log if row.item_id in "ab"}
    keep = rows(log, events, attribution=claim)
    drop = rows(log, events, attribution=claim, seen_in_train="drop", train=train_of(seen))
    names = ("n_judged", "n_relevant")
    assert {key: [row[name] for name in names] for key, row in drop.items()} == {
        key: [row[name] for name in names] for key, row in keep.items()
    }
    left = {(row[:3], row.item_id) for row in log if row[1:4:2] not in seen}
    hits = Counter(
        key
        for key, gains in cases.judgements(log, events, claim=claim).items()
        for item, gain in gains.items()
        if gain >= 1 and (key, item) in left
    )
    assert {key: row["n_hits"] for key, row in drop.items() if row["n_hits"]} == hits
    assert any(row["n_recommended"] == 0 for key, row in drop.items() if key[2])


def test_a_list_of_seen_items_only_is_judged_by_no_event_outside_its_window() -> None:
    log, events = one_list(-HOUR, 20 * HOUR)  # one before the list, one after its window
    train = train_of((row.user_id, row.item_id) for row in log)
    for policy in ("keep", "drop"):
        found = rows(log, events, attribution="last_touch", models=["als"], seen_in_train=policy, train=train)
        assert found == {}


def test_a_list_of_seen_items_only_keeps_its_events() -> None:
    log, events = one_list(2 * HOUR)
    log += [Shown("als", "u", "y", "c", 1.0, moment(HOUR + 1))]
    options: dict[str, Any] = {"attribution": "last_touch", "models": ["als"], "population": "truth"}
    found = rows(log, events, seen_in_train="drop", train=train_of([("u", "a"), ("u", "b")]), **options)
    assert {key[2]: (row["n_recommended"], row["n_judged"], row["r"]) for key, row in found.items()} == {
        "x": (0, 1, 0.0)
    }
    assert (
        rows(log, events, seen_in_train="drop", train=train_of([("u", "a"), ("u", "b")]), missing="exclude", **options)
        == {}
    )


def test_checks_count_what_is_too_early_and_too_late_and_consumed_and_shown_twice() -> None:
    log, events = one_list(HOUR, HOUR + 1, HOUR + WINDOW + 1)
    log[1] = log[1]._replace(recommended_at=moment(HOUR + 5))
    inputs = tables(log, events)
    checks = measured(*inputs, measures=["R"], attribution="all", attribution_window="2h").checks.to_pylist()
    found = {row["check"]: (row["count"], row["share"], row["verdict"]) for row in checks}
    assert found["before_list"] == (1, 1 / 3, "ok")
    assert found["after_window"] == (1, 1 / 3, "ok")
    assert found["consumed_before"] == (1, 1 / 2, "ok")
    assert found["list_times"] == (1, 1.0, "warn")


def test_rows_without_a_time_are_counted_and_warned_of() -> None:
    log, events = one_list(HOUR + 1, HOUR + 2)
    log += [Shown("als", "v", "y", "a", 1.0, None), Shown("als", "u", "x", "c", -9.0, None)]
    inputs = tables(log, [*events, events[0]._replace(interacted_at=None), Event("v", "a", 1.0, moment(2 * HOUR))])
    said = "held_out: 1 of 4 rows have no time that can be read in 'interacted_at' and are left out"
    with pytest.warns(UserWarning, match=said), pytest.warns(UserWarning, match="recommendations: 2 of 4 rows"):
        result = measured(*inputs, measures=["R"], attribution="all", attribution_window="2h")
    found = {row["check"]: (row["count"], row["share"], row["verdict"]) for row in result.checks.to_pylist()}
    assert found["untimed_lists"] == (1, 1 / 2, "warn")
    assert found["untimed_interactions"] == (1, 1 / 4, "warn")
    assert [row["user_id"] for row in result.user_metrics.to_pylist()] == ["u"]


@pytest.mark.parametrize("last", ["9999-12-31", "20000-01-01", "294246-12-31"])
def test_a_time_far_from_now_is_counted_like_any_other(last: str) -> None:
    log = pa.table({"user_id": ["u"], "item_id": ["a"], "score": [1.0], "recommended_at": [last]})
    held_out = pa.table({"user_id": ["u"], "item_id": ["a"], "interacted_at": ["2026-01-31"]})
    checks = measured(log, held_out, measures=["R"], attribution="all", attribution_window="36500d").checks.to_pylist()
    found = {row["check"]: row["count"] for row in checks}
    assert (found["before_list"], found["untimed_lists"]) == (1, 0)


def test_the_same_pair_twice_is_refused_only_within_a_list() -> None:
    log, events = one_list(2 * HOUR)
    log += [row._replace(list_id="y", recommended_at=moment(5 * HOUR)) for row in log]
    events += [events[0]._replace(interacted_at=moment(6 * HOUR))]
    options: dict[str, Any] = {"attribution": "all", "held_out_duplicates": "error", "models": ["als"]}
    assert {key[2]: row["n_judged"] for key, row in rows(log, events, **options).items()} == {"x": 1, "y": 1}
    both = [events[0], events[0]._replace(interacted_at=moment(2 * HOUR + 1))]
    with pytest.raises(Exception, match="held_out_duplicates"):
        rows(log, both, **options)


def test_intervals_count_users_and_not_lists() -> None:
    log, events = cases.random_logs(n_users=60)
    options: dict[str, Any] = {"attribution": "all", "attribution_window": "2h"}
    found = measured(*tables(log, events), measures=["R"], **options)
    users = {(row["model_id"], row["user_id"]) for row in found.user_metrics.to_pylist() if row["r"] is not None}
    means = {row["model_id"]: row["n_users"] for row in found.metrics.to_pylist()}
    assert means == {model: sum(one == model for one, _ in users) for model in means}


def test_pooled_lists_are_one_list_of_the_best_places() -> None:
    log = [Shown("als", "u", name, item, score, None) for name, item, score in (("x", "a", 1), ("y", "b", 3))]
    log += [Shown("als", "u", "y", "a", 2.0, None)]
    inputs = tables(log, [Event("u", "a", 1.0, None)])
    for lists, expected in (("separate", {"x": 1.0, "y": 0.5}), ("pooled", {"": 0.5})):
        found = measured(*inputs, measures=["RR"], lists=lists).user_metrics.to_pylist()
        assert {row["list_id"]: row["rr"] for row in found} == expected


def test_the_shown_rank_wins_over_the_score_where_it_orders() -> None:
    log = pa.table({"user_id": ["u", "u"], "item_id": ["a", "b"], "score": [9.0, 1.0], "rank": [7, 3]})
    truth = pa.table({"user_id": ["u"], "item_id": ["b"]})
    for order, expected in (("score", 1 / 2), ("rank", 1.0)):
        assert measured(log, truth, measures=["RR"], order=order).metrics["value"].to_pylist() == [expected]


def test_a_window_may_be_a_timedelta() -> None:
    given = one_list(HOUR, 2 * HOUR, 4 * HOUR)
    expected = rows(*given, attribution="all")
    for length in (dt.timedelta(hours=2), pd.Timedelta("2h")):
        assert rows(*given, attribution="all", attribution_window=length) == expected
    assert rows(*given, attribution="all", attribution_window=dt.timedelta(minutes=1)) != expected


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"attribution": "all"}, "no window with attribution='all'.*such as 7d"),
        ({"attribution": "all", "attribution_window": "0d"}, r"attribution_window: found '0d'"),
        ({"attribution": "all", "attribution_window": "-1d"}, r"attribution_window: found '-1d'"),
        ({"attribution": "all", "attribution_window": "7 days"}, "'7 days'.*units s, m, h, d"),
        ({"attribution": "all", "attribution_window": dt.timedelta(0)}, "'0d'.*units s, m, h, d"),
        ({"attribution": "all", "attribution_window": dt.timedelta(seconds=0.5)}, "'0.5s'.*units s, m, h, d"),
        ({"attribution_window": "7d"}, "'7d' with attribution='none'.*last_touch"),
        ({"consumed_before": "drop"}, "'drop' with attribution='none'"),
        ({"attribution": "all", "attribution_window": "7d", "judged_only": True}, "True with attribution='all'"),
        ({"attribution": "newest", "attribution_window": "7d"}, "'newest'"),
    ],
)
def test_what_contradicts_is_refused(policies: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        measured(*tables(*one_list(0)), measures=["R"], **policies)


def test_inputs_without_times_are_refused() -> None:
    log, held_out = tables(*one_list(0))
    options: dict[str, Any] = {"measures": ["R"], "attribution": "all", "attribution_window": "1d"}
    with pytest.raises(InputError, match=r"recommendations=\): found no column 'recommended_at'"):
        measured(log.drop_columns("recommended_at"), held_out, **options)
    with pytest.raises(InputError, match=r"held_out=\): found no column 'interacted_at'"):
        measured(log, held_out.drop_columns("interacted_at"), **options)
    with pytest.raises(InputError, match=r"no column 'rank'.*pass policies={'order': 'score'}"):
        measured(log, held_out, measures=["R"], order="rank")


def test_times_of_any_unit_and_zone_are_the_same_moment() -> None:
    log, held_out = tables(*one_list(HOUR + 1_000_000))
    east = log["recommended_at"].cast(pa.timestamp("ms", "Asia/Tokyo"))
    other = log.set_column(log.schema.get_field_index("recommended_at"), "recommended_at", east)
    options: dict[str, Any] = {"measures": ["R"], "attribution": "all", "attribution_window": "1s"}
    for each in (log, other):
        assert measured(each, held_out, **options).metrics["value"].to_pylist() == [1.0]
    assert dt.timedelta(microseconds=WINDOW) == dt.timedelta(hours=2)


# ---- days of a time zone: of times without a zone, of the evaluation date, and of the items ------------------------


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
        checks = measured(log(), held_out, measures=["R"], time_zone=zone, **asked).checks
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
    result = measured(ranking({"ann": "a"}), judgements({"ann": {"a": 1}}), measures=["Freshness@1"], **asked)
    assert tuples(result.metrics, "value") == [(days,)]


def test_day_without_a_time_is_a_day_in_every_zone() -> None:
    for published in (dt.date(2026, 1, 29), "2026-01-29", "2026-01-29 23:30", dt.datetime(2026, 1, 29, 23, 30)):
        items = pa.table({"item_id": ["a"], "published_at": [published]})
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            asked: dict[str, Any] = {"items": items, "evaluation_date": dt.date(2026, 1, 31), "time_zone": zone}
            result = measured(ranking({"ann": "a"}), judgements({"ann": {"a": 1}}), measures=["Freshness@1"], **asked)
            assert tuples(result.metrics, "value") == [(2,)]


def test_newest_judgement_is_that_of_the_last_moment() -> None:
    """One table has both: 20:30 of New York's clocks is later than midnight in Greenwich."""
    gains = table("user_id item_id gain", ("ann", "a", 3.0), ("ann", "a", 1.0))
    held_out = gains.append_column("interacted_at", [["2026-01-31T00:00Z", "2026-01-30 20:30"]])
    for zone, newest in (("UTC", 3.0), ("America/New_York", 1.0)):
        asked: dict[str, Any] = {"held_out_duplicates": "last", "time_zone": zone}
        result = measured(ranking({"ann": "a"}), held_out, measures=["CG@1"], **asked)
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
