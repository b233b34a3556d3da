"""Whole nights: from a config and tables on disk to published tables."""

from __future__ import annotations

from datetime import date
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pytest

from rankeval_spark import columns as C, evaluate, schemas
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ChecksFailedError
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.arrow_frames import assert_key, by, where
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night import NightResult
    from tests.support.cli import Finished
    from tests.support.nights import Workspace

TABLES: Final = ("lists", "user_metrics", "metrics", "checks")
METRIC_KEY: Final = (C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K)
USER_KEY: Final = (C.MODEL_ID, C.USER_ID, C.LIST_ID, C.K)


def run(spark: SparkSession, workspace: Workspace, day: date = FIRST, *overrides: str) -> NightResult:
    return run_night(spark, load_config(workspace.config, overrides), day)


def results(workspace: Workspace) -> Results[pa.Table]:
    return Results(workspace.root)


def means(frame: pa.Table, model: str) -> dict[tuple[str, int], float]:
    """Means over all users of a model, by measure and cutoff."""
    return by(where(frame, slice="all", model_id=model), C.MEASURE, C.K, value=C.VALUE)


def metric_values(metrics: pa.Table) -> dict[tuple[object, ...], tuple[object, ...]]:
    """Values, counts and intervals by their key, numbers to twelve digits after the point."""
    columns = (C.VALUE, "n_users", "std_error", "ci_low", "ci_high", "is_small")
    return {
        tuple(row[name] for name in METRIC_KEY): tuple(map(rounded, (row[name] for name in columns)))
        for row in metrics.to_pylist()
    }


def rounded(value: object) -> object:
    return round(value, 12) if isinstance(value, float) else value


def rows(
    workspace: Workspace,
    table: str,
    *,
    evaluation: str | None = None,
    day: date | None = None,
    without: str = C.RUN_ID,
) -> list[str]:
    """Rows of a published table in a form that can be compared, whatever their order and run."""
    frame = getattr(results(workspace), table)(evaluation=evaluation, date=day)
    return sorted(map(str, frame.drop_columns(without.split()).to_pylist()))


def newest_run(workspace: Workspace, evaluation: str, day: date = FIRST) -> dict[str, Any]:
    runs = where(results(workspace).runs(evaluation=evaluation, date=day), status="PUBLISHED")
    newest: dict[str, Any] = runs.sort_by("recorded_at").to_pylist(maps_as_pydicts="strict")[-1]
    return newest


# ---- what a night publishes ------------------------------------------------------------------------------------------


def test_published_means_are_those_worked_out_by_hand(published: Workspace) -> None:
    metrics = results(published).metrics(date=FIRST, evaluation="nightly")

    # Four users have a relevant judgement: ann hits at 1, bob at 3, eve never, kim has no list.
    ndcg_of_ann = 3 / (3 + 1 / log2(3))
    assert means(metrics, "als") == pytest.approx(
        {
            ("RR", 1): 1 / 4,
            ("RR", 2): 1 / 4,
            ("Success", 1): 1 / 4,
            ("Success", 2): 1 / 4,
            ("nDCG", 1): 1 / 4,
            ("nDCG", 2): ndcg_of_ann / 4,
        },
        rel=0,
        abs=1e-12,
    )
    # Popularity: ann at 2, bob, eve and kim at 1.
    assert means(metrics, "pop")["RR", 2] == pytest.approx((1 / 2 + 1 + 1 + 1) / 4, rel=0, abs=1e-12)


def test_health_counts_say_who_is_not_in_the_mean(published: Workspace) -> None:
    metrics = results(published).metrics(date=FIRST, evaluation="nightly", slice="all", measure="RR", k=2)

    counts = ("n_users", "n_undefined", "n_missing", "n_zero_relevant", "n_extra_users")
    # Of als: ida's RR is undefined for want of a relevant item; she and kim have no list; zoe has no judgement.
    assert {row[C.MODEL_ID]: tuple(row[name] for name in counts) for row in metrics.to_pylist()} == {
        "als": (4, 1, 2, 1, 1),
        "pop": (4, 1, 1, 1, 0),
    }


def test_night_publishes_what_evaluate_gives_for_the_same_tables(published: Workspace) -> None:
    def table(rows: nights.Rows) -> pa.Table:
        return nights.arrow_of(nights.of_date(rows, FIRST))

    here = evaluate(
        table(nights.recommendations()),
        table(nights.held_out()),
        measures=[f"{measure}@{k}" for measure in nights.MEASURES for k in nights.CUTOFFS],
        segments=table(nights.segments()),
        slices=["country"],
        slicing={"min_slice_size": 2},
    )

    there = results(published)
    per_user = there.user_metrics(date=FIRST, evaluation="nightly")
    metrics = there.metrics(date=FIRST, evaluation="nightly")
    for column in ("rr", "ndcg", "success", "n_hits", "n_recommended"):  # bit by bit
        assert by(per_user, *USER_KEY, value=column) == by(here.user_metrics, *USER_KEY, value=column)
    assert metric_values(metrics) == metric_values(here.metrics)


def test_slices_of_the_users_add_up_to_the_whole(published: Workspace) -> None:
    rr = results(published).metrics(date=FIRST, evaluation="nightly", model_id="pop", measure="RR", k=2)

    by_slice = {row[C.SLICE_VALUE]: row for row in rr.to_pylist()}
    whole = by_slice.pop("")
    assert sorted(by_slice) == ["(unknown)", "AT", "DE"]
    assert sum(row["n_users"] for row in by_slice.values()) == whole["n_users"]
    total = sum(row["n_users"] * row[C.VALUE] for row in by_slice.values())
    assert total / whole["n_users"] == pytest.approx(whole[C.VALUE], rel=0, abs=1e-12)


def test_run_records_versions_and_rows_of_its_inputs(published: Workspace) -> None:
    inputs = {one["name"]: one for one in newest_run(published, "nightly")["inputs"]}

    assert {name: (one["format"], one["version"], one["n_rows"]) for name, one in inputs.items()} == {
        "recommendations": ("delta", 0, 24),
        "held_out": ("delta", 0, 7),
        "segments": ("delta", 0, 4),
    }
    assert inputs["held_out"]["location"] == str(published.folder / "inputs" / "held_out")


def test_run_records_the_full_definition_of_every_measure(published: Workspace) -> None:
    run = newest_run(published, "nightly")
    asked = run["measures"]

    assert [(one["measure"], one["k"], one["column"]) for one in asked] == [
        (measure, k, measure.casefold()) for measure in nights.MEASURES for k in nights.CUTOFFS
    ]
    assert [(one["name"], one["options"]["rel"]) for one in asked] == [(one["measure"], "1") for one in asked]
    assert {**run["policies"], "population": "truth", "ties": "item_asc", "duplicates": "best"} == run["policies"]
    assert run["policies"]["invalid_scores"] == "drop"


def test_date_without_rows_is_published_empty_with_its_reason(published: Workspace) -> None:
    there = results(published)

    assert newest_run(published, "nightly", WITHOUT_ROWS)["reason"] == (
        "no rows for 2026-01-03 in recommendations and held_out"
    )
    for table in ("lists", "user_metrics", "metrics"):
        assert where(there.published(table), evaluation_date=WITHOUT_ROWS).num_rows == 0
    assert by(there.checks(date=WITHOUT_ROWS), "input", "check", value="count")["recommendations", "rows"] == 0


def test_sample_of_the_users_and_models_is_an_evaluation_of_its_own(published: Workspace, sampled: Finished) -> None:
    assert sampled.code == 0
    assert "published nightly.sample-0.75 2026-01-01" in sampled.out
    there = results(published)
    whole = by(there.user_metrics(date=FIRST, evaluation="nightly"), *USER_KEY, value="rr")
    sample = by(there.user_metrics(date=FIRST, evaluation="nightly.sample-0.75"), *USER_KEY, value="rr")
    assert set(sample) < set(whole)
    assert sample == {key: whole[key] for key in sample}
    assert {model for model, *_ in sample} == {"als"}  # it was run with models: [als]
    assert newest_run(published, "nightly.sample-0.75")["sample_share"] == 0.75
    assert newest_run(published, "nightly")["sample_share"] == 1


def test_night_without_lists_publishes_everything_else(published: Workspace) -> None:
    there = results(published)

    assert there.lists(date=FIRST, evaluation="nightly.sample-0.75").num_rows == 0
    assert there.metrics(date=FIRST, evaluation="nightly.sample-0.75").num_rows > 0
    assert there.lists(date=FIRST, evaluation="nightly").num_rows > 0


# ---- reruns ----------------------------------------------------------------------------------------------------------


def test_rerun_leaves_one_row_a_key_and_the_same_values(spark: SparkSession, own_copy: Workspace) -> None:
    before = {table: rows(own_copy, table) for table in TABLES}

    again = run(spark, own_copy)

    # The other dates and the sample are among these rows: they have not changed either.
    assert {table: rows(own_copy, table) for table in TABLES} == before
    for schema in (schema for schema in schemas.PUBLISHED if schema.name in TABLES):
        table = results(own_copy).published(schema.name)
        assert_key(table, schema.key)
        assert set(where(table, evaluation="nightly", evaluation_date=FIRST)[C.RUN_ID].to_pylist()) == {again.run_id}


def test_rerun_after_an_input_changed_leaves_nothing_of_the_run_before(
    spark: SparkSession, own_copy_of_delta: Workspace
) -> None:
    before = rows(own_copy_of_delta, "user_metrics", day=SECOND)
    log = [row for row in nights.recommendations() if row["model_id"] != "pop" and row["user_id"] != "eve"]
    judgements = [row for row in nights.held_out() if row["user_id"] != "eve"]
    own_copy_of_delta.write("recommendations", log)
    own_copy_of_delta.write("held_out", judgements)

    run(spark, own_copy_of_delta)

    there = results(own_copy_of_delta)
    per_user = by(there.user_metrics(date=FIRST, evaluation="nightly"), *USER_KEY, value="rr")
    assert {key[:2] for key in per_user} == {("als", user) for user in ("ann", "bob", "kim", "ida")}
    metrics = there.metrics(date=FIRST, evaluation="nightly")
    assert set(metrics[C.MODEL_ID].to_pylist()) == {"als"}
    assert set(metrics[C.SLICE_VALUE].to_pylist()) == {"", "AT", "(unknown)"}
    assert means(metrics, "als")["RR", 1] == pytest.approx(1 / 3, rel=0, abs=1e-12)
    inputs = newest_run(own_copy_of_delta, "nightly")["inputs"]
    assert [one["version"] for one in inputs] == [1, 1, 0]
    assert rows(own_copy_of_delta, "user_metrics", day=SECOND) == before


# ---- inputs of all kinds ---------------------------------------------------------------------------------------------

NAMES: Final = {
    "recommendations": {"model_id": "algorithm", "user_id": "customer", "item_id": "sku", "score": "points"},
    "held_out": {"user_id": "buyer", "item_id": "article", "gain": "stars"},
    "segments": {"user_id": "member", "country": "home"},
}
"""Canonical column: its name in the tables of a user, each of which has names of its own."""


def write_renamed(workspace: Workspace, format_: str) -> None:
    """Write the inputs under other column names, and the config that knows them."""
    inputs = {
        "recommendations": nights.recommendations(),
        "held_out": nights.held_out(),
        "segments": nights.segments(),
    }
    config = nights.config_of(*inputs, format_=format_)
    for name, table in inputs.items():
        workspace.write(f"{name}_{format_}", nights.renamed(table, NAMES[name]), format_)
        config["inputs"][name].update(path=f"inputs/{name}_{format_}", columns=NAMES[name])
    config["results"]["lists"] = False
    workspace.configure({**config, "evaluation": format_})


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_other_formats_with_other_column_names_give_the_same_numbers(
    spark: SparkSession, own_copy: Workspace, format_: str
) -> None:
    write_renamed(own_copy, format_)

    run(spark, own_copy)

    for table in ("user_metrics", "metrics"):
        columns = f"{C.EVALUATION} {C.RUN_ID}"
        found = rows(own_copy, table, evaluation=format_, without=columns)
        assert found == rows(own_copy, table, evaluation="nightly", day=FIRST, without=columns)
    assert results(own_copy).lists(evaluation=format_).num_rows == 0


def test_number_ids_and_several_lists_a_user(spark: SparkSession, own_copy: Workspace) -> None:
    """Every list of a user scores by itself; his value is their mean, whatever the type of the ids."""
    morning = [{**row, "list_id": "morning"} for row in nights.recommendations()]
    # A second list for ann alone, whose best item stands second there.
    evening = [
        {**row, "list_id": "evening", "score": {"a": 1.0, "b": 2.0}[row["item_id"]]}
        for row in nights.recommendations()
        if row["user_id"] == "ann" and row["item_id"] in ("a", "b")
    ]
    own_copy.write("recommendations", nights.with_number_ids([*morning, *evening]))
    own_copy.write("held_out", nights.with_number_ids(nights.held_out()))
    own_copy.write("segments", nights.with_number_ids(nights.segments()))

    run(spark, own_copy)

    there = results(own_copy)
    per_list = by(
        there.user_metrics(date=FIRST, evaluation="nightly", model_id="als", k=2), "user_id", "list_id", value="rr"
    )
    ann, bob, eve, ida, kim = ("100", "101", "102", "103", "104")
    assert per_list[ann, "morning"] == 1
    assert per_list[ann, "evening"] == 1 / 2
    assert {user for user, _ in per_list} == {ann, bob, eve, ida, kim}
    metrics = there.metrics(date=FIRST, evaluation="nightly")
    assert means(metrics, "als")["RR", 2] == pytest.approx(((1 + 1 / 2) / 2 + 0 + 0 + 0) / 4, rel=0, abs=1e-12)
    whole = where(metrics, model_id="als", slice="all", measure="RR", k=2).to_pylist()
    assert [(row["n_users"], row["n_lists"]) for row in whole] == [(4, 1 + 4)]


# ---- what stops a night ----------------------------------------------------------------------------------------------


def with_tie(table: nights.Rows) -> nights.Rows:
    return [{**row, "score": 1.0} if row["user_id"] == "ann" else row for row in table]


def with_nan(table: nights.Rows) -> nights.Rows:
    return [{**table[0], "score": float("nan")}, *table[1:]]


def with_repeat(table: nights.Rows) -> nights.Rows:
    return [*table, table[0]]


POLICIES: Final = {
    "ties": ("recommendations", with_tie, "two items of one list have the same score"),
    "duplicates": ("recommendations", with_repeat, "item 'a' occurs twice in a list of user 'ann'"),
    "held_out_duplicates": ("held_out", with_repeat, "a (user, item) "),
    "invalid_scores": ("recommendations", with_nan, "a recommendation with a NULL, NaN or infinite score or rank"),
    "segments": ("segments", with_repeat, "user 'ann' occurs twice in the segment table"),
}
"""Policy: the input that breaks it, how, and what the message says was found."""


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_of_error_stops_the_night(spark: SparkSession, own_copy: Workspace, policy: str) -> None:
    name, broken, found = POLICIES[policy]
    own_copy.write(name, broken(getattr(nights, name)()))
    overrides = [] if policy == "segments" else [f"policies.{policy}=error"]
    before = published_versions(own_copy)

    with pytest.raises(ChecksFailedError) as error:
        run(spark, own_copy, FIRST, *overrides)

    (fault,) = error.value.faults
    assert fault.where == ("inputs.segments" if policy == "segments" else f"policies.{policy}")
    assert fault.found.startswith(found)
    assert fault.fix
    assert published_versions(own_copy) == before
    failed = where(results(own_copy).runs(), status="FAILED").to_pylist()
    assert [list(row["failed_checks"]) for row in failed] == [[fault.where]]


def test_model_that_the_log_does_not_have_fails_a_check(spark: SparkSession, own_copy: Workspace) -> None:
    own_copy.change(models=["als", "ghost"])
    before = published_versions(own_copy)

    with pytest.raises(ChecksFailedError) as error:
        run(spark, own_copy)

    (fault,) = error.value.faults
    assert fault.where == "recommendations, missing_users"
    assert fault.found == "no list of ghost for any of 5 judged users; the log of this date has als, pop"
    assert "checks.missing_users.error" in fault.fix
    assert published_versions(own_copy) == before


def published_versions(workspace: Workspace) -> dict[str, int]:
    """Delta versions of the tables that a failed run must not touch."""
    return {table: deltalake.DeltaTable(str(Path(workspace.root) / table)).version() for table in TABLES}
