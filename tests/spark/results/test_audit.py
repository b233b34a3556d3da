"""What the audit finds in staged tables before they are published."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.requested_measures import RecordedDefinition
from rankeval_spark.errors import ChecksFailedError
from rankeval_spark.results import MeasureRecord, Results, ResultsStore, audit
from rankeval_spark.results.audit import StagedRows
from tests.spark.results import nights

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankeval_spark.errors import Fault

Look: TypeAlias = "Callable[[list[nights.Row]], list[Fault]]"


TABLES = {schema.name: schema for schema in (schemas.USER_METRICS, schemas.METRICS)}


everywhere = pytest.mark.parametrize("audited", ["at once", "in parts", "some users at a time"], indirect=True)


@pytest.fixture
def audited(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[pa.Table], StagedRows]:
    """Give the audit rows: at once, in parts that split users, and so that memory is for one row at a time."""
    if request.param == "some users at a time":
        monkeypatch.setattr(audit, "MAX_ROWS_AT_ONCE", 1)

    def rows_of(rows: pa.Table) -> StagedRows:
        if request.param == "at once":
            return StagedRows([rows])
        return StagedRows([rows.slice(start, 1) for start in range(rows.num_rows)])

    return rows_of


@pytest.fixture
def look(audited: Callable[[pa.Table], StagedRows]) -> Look:
    """Audit user rows against the metrics of the standard night."""

    def found(rows: list[nights.Row]) -> list[Fault]:
        user_metrics = nights.table(schemas.USER_METRICS, rows)
        metrics = nights.table(schemas.METRICS, nights.metric_rows(nights.RANKS))
        return audit.user_metrics(audited(user_metrics), metrics, nights.MEASURES)

    return found


@everywhere
def test_a_sound_night_passes(look: Look) -> None:
    assert look(nights.user_rows(nights.RANKS)) == []


@everywhere
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 1 + 1e-6, -1e-6])
def test_a_value_out_of_range_is_found(look: Look, value: float) -> None:
    rows = nights.user_rows(nights.RANKS)
    rows[0]["rr"] = value
    faults = look(rows)
    assert [fault.where for fault in faults] == ["table user_metrics, model als, RR at k = 1"]


@everywhere
def test_faults_of_several_rows_are_found_wherever_they_are_looked_for(look: Look) -> None:
    rows = nights.user_rows(nights.RANKS)
    assert look(rows) == []
    for place, value in enumerate((float("nan"), float("-inf"), 1 + 1e-6)):
        rows[2 * place]["rr"] = value
    rows[1]["ap_denom_min"] = -1e-6
    assert [fault.where for fault in look(rows)] == [
        "table user_metrics, model als, RR at k = 1",
        "table user_metrics, model als, AP(denom='min') at k = 2",
    ]


@everywhere
def test_a_mean_that_the_users_do_not_have_is_found(look: Look) -> None:
    faults = look(nights.user_rows({**nights.RANKS, "eve": 2}))
    assert "table metrics, model als, RR at k = 2, slice all" in [fault.where for fault in faults]


@everywhere
def test_a_missing_user_is_found(look: Look) -> None:
    assert look(nights.user_rows({"ann": 1, "bob": 2}))


@everywhere
@pytest.mark.parametrize("n_lists", [3, 2, None])
def test_a_user_with_several_lists_counts_once_with_their_mean(
    audited: Callable[[pa.Table], StagedRows], n_lists: int | None
) -> None:
    rows = [
        {**row, "list_id": list_id, "rr": value}
        for row in nights.user_rows({"ann": 1})
        if row["k"] == 1
        for list_id, value in (("morning", 1.0), ("evening", 0.0))
    ]
    metrics = [
        {**row, "value": (1 / 2 + 0) / 2, "n_users": 2, "n_lists": n_lists}
        for row in nights.metric_rows({"ann": 1, "bob": None})
        if (row["measure"], row["k"]) == ("RR", 1)
    ]
    rows += [row for row in nights.user_rows({"bob": None}) if row["k"] == 1]
    faults = audit.user_metrics(
        audited(nights.table(schemas.USER_METRICS, rows)),
        nights.table(schemas.METRICS, metrics),
        nights.MEASURES,
    )
    found = {3: [], 2: ["0.25 over 2 users"], None: ["0.25 over 2 users with None lists"]}[n_lists]
    assert [fault.found for fault in faults] == found
    assert all(fault.expected == "0.25 over 2 users with 3 lists, the mean of user_metrics" for fault in faults)


@everywhere
@pytest.mark.parametrize(
    ("unit", "mean", "ratio"), [("user", 5 / 8, (2 + 2 / 4) / (2 + 13 / 4)), ("list", 2 / 5, (2 + 2) / (2 + 13))]
)
def test_means_over_lists_are_recomputed_from_all_lists(
    audited: Callable[[pa.Table], StagedRows], unit: str, mean: float, ratio: float
) -> None:
    """Lists 1 of ann, of 2 of 2 items; 1, 0, 0, 0 of bob, 2 of 4, 0 of 3, 0 of 3, 0 of 3 items."""
    lists = [("ann", "1", 1.0, 2 / 2, 2.0)]
    lists += [("bob", f"{name}", float(name == 0), (1 / 2, 0.0)[name > 0], (4.0, 3.0)[name > 0]) for name in range(4)]
    names = ("model_id", "k", "user_id", "list_id", "rr", "p", "p__weight")
    frame = pa.Table.from_pylist([dict(zip(names, ("als", 5, *one), strict=True)) for one in lists])
    key = {"model_id": "als", "slice": "all", "k": 5, "n_users": 2, "n_lists": 5, "ci_method": "t"}
    published = [{**key, "measure": "RR", "value": mean}, {**key, "measure": "P", "value": ratio}]
    measures = [
        MeasureRecord("RR", 5, "rr", RecordedDefinition("RR", {}), 0.0, 1.0, unit=unit),
        MeasureRecord("P", 5, "p", RecordedDefinition("P", {}), 0.0, 1.0, weight="p__weight", unit=unit),
    ]
    metrics = nights.table(schemas.METRICS, published)
    assert audit.user_metrics(audited(frame), metrics, measures) == []
    swapped = [replace(one, unit={"user": "list", "list": "user"}[unit]) for one in measures]
    faults = audit.user_metrics(audited(frame), metrics, swapped)
    assert [fault.where for fault in faults] == [
        f"table metrics, model als, {name} at k = 5, slice all" for name in ("RR", "P")
    ]


@everywhere
@pytest.mark.parametrize(("ratio", "mean", "wrong"), [(1 / 2, 1 / 4, []), (3 / 4, log(1 / 4), ["P", "GMAP"])])
def test_a_ratio_of_sums_and_a_mean_of_logarithms_are_recomputed_as_published(
    audited: Callable[[pa.Table], StagedRows], ratio: float, mean: float, wrong: list[str]
) -> None:
    """Ann hits 2 of 2 and 0 of 4, on average 1 of 3; Bob 1 of 1: (1 + 1) / (3 + 1)."""
    lists = [("ann", "am", 1.0, 2.0, 1 / 2), ("ann", "pm", 0.0, 4.0, 1 / 2), ("bob", "", 1.0, 1.0, 1 / 8)]
    rows = [("als", 5, user, name, value, weight, log(ap)) for user, name, value, weight, ap in lists]
    names = ("model_id", "k", "user_id", "list_id", "p", "p__weight", "gmap")
    frame = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    key = {"model_id": "als", "slice": "all", "k": 5, "n_users": 2, "n_lists": 3, "ci_method": "t"}
    published = [{**key, "measure": "P", "value": ratio}, {**key, "measure": "GMAP", "value": mean}]
    measures = [
        MeasureRecord("P", 5, "p", RecordedDefinition("P", {}), 0.0, 1.0, weight="p__weight"),
        MeasureRecord("GMAP", 5, "gmap", RecordedDefinition("GMAP", {}), None, 0.0, link="log"),
    ]
    metrics = nights.table(schemas.METRICS, published)
    faults = audit.user_metrics(audited(frame), metrics, measures)
    assert [fault.where for fault in faults] == [
        f"table metrics, model als, {name} at k = 5, slice all" for name in wrong
    ]


@everywhere
def test_a_key_that_occurs_twice_is_named(audited: Callable[[pa.Table], StagedRows]) -> None:
    rows = nights.user_rows(nights.RANKS)
    frames = {
        "user_metrics": audited(nights.table(schemas.USER_METRICS, [*rows, rows[0]])),
        "metrics": audited(nights.table(schemas.METRICS, nights.metric_rows(nights.RANKS))),
    }
    faults = audit.refused_rows(frames, [schemas.USER_METRICS, schemas.METRICS])
    assert [fault.where for fault in faults] == ["table user_metrics"]
    assert "user_id='ann', list_id='', k=1" in faults[0].found


@everywhere
@pytest.mark.parametrize(
    ("table", "column", "value", "rule"),
    [
        ("metrics", "value", float("inf"), "value < double('Infinity')"),
        ("metrics", "tie_share", 1.5, "tie_share <= 1"),
        ("user_metrics", "n_hits", -1, "n_hits >= 0"),
        ("user_metrics", "n_judged", None, "n_judged IS NOT NULL"),
    ],
)
def test_a_row_that_its_table_would_refuse_is_named(
    audited: Callable[[pa.Table], StagedRows],
    table: str,
    column: str,
    value: float | None,
    rule: str,
) -> None:
    rows = {"user_metrics": nights.user_rows(nights.RANKS), "metrics": nights.metric_rows(nights.RANKS)}
    rows[table] = [{**row, column: value} if row[C.K] == 2 else row for row in rows[table]]
    frames = {name: nights.table(TABLES[name], rows[name]) for name in rows}
    faults = audit.refused_rows({name: audited(frames[name]) for name in rows}, [TABLES[name] for name in rows])
    assert [fault.where for fault in faults] == [f"table {table}"]
    assert "model_id='als'" in faults[0].found
    assert rule in faults[0].expected


def test_a_failed_check_stops_the_run_before_it_publishes(root: str) -> None:
    store = ResultsStore.open(root)
    failed = [{**row, "verdict": "error", "count": 5} for row in nights.check_rows(nights.RANKS)]
    with store.run_lock(nights.NIGHTLY, nights.FIRST, "bad"):
        run = store.start(nights.facts("bad"))
        run.stage("checks", nights.table(schemas.CHECKS, failed))
        with pytest.raises(ChecksFailedError, match="input held_out, check null_keys: found 5") as stopped:
            run.audit()
    assert stopped.value.exit_code == 3
    assert Results(root).checks(verdict="error").num_rows == 0


@pytest.mark.parametrize(("value", "n_faults"), [(0.5, 0), (None, 0), (1.1, 1), (float("nan"), 1)])
def test_a_measure_of_all_lists_out_of_range_is_found(value: float | None, n_faults: int) -> None:
    coverage = MeasureRecord("CatalogCoverage", 2, None, RecordedDefinition("CatalogCoverage", {}), 0.0, 1.0)
    row = {**nights.metric_rows(nights.RANKS)[0], "measure": "CatalogCoverage", "k": 2, "value": value}
    metrics = nights.table(schemas.METRICS, [*nights.metric_rows(nights.RANKS), row])

    faults = audit.exposures(metrics, [*nights.MEASURES, coverage])

    assert [fault.where for fault in faults] == ["table metrics, model als, CatalogCoverage at k = 2"] * n_faults
    user_metrics = StagedRows([nights.table(schemas.USER_METRICS, nights.user_rows(nights.RANKS))])
    assert audit.user_metrics(user_metrics, metrics, [*nights.MEASURES, coverage]) == []
