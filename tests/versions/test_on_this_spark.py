"""What a user does, on small data with numbers worked out by hand; ``make test-versions`` runs it on each Spark."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pytest

from rankeval_spark import Results, evaluate, register_functions, windows
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.nights import Workspace

LISTS: Final = {
    "als": {"ann": "a b", "bob": "b a", "eve": "c"},
    "pop": {"ann": "b a", "bob": "a b", "eve": "a"},
}
COUNTRIES: Final = {"ann": "AT", "bob": "AT", "eve": "DE"}
"""Everybody's relevant item is a."""

VALUES: Final[dict[tuple[str, str, str], dict[str, float]]] = {
    ("als", "all", ""): {"P": 1 / 3, "RR": (1 + 1 / 2 + 0) / 3, "nDCG": (1 + 1 / log2(3) + 0) / 3},
    ("als", "country", "AT"): {"P": 1 / 2, "RR": (1 + 1 / 2) / 2, "nDCG": (1 + 1 / log2(3)) / 2},
    ("als", "country", "DE"): {"P": 0, "RR": 0, "nDCG": 0},
    ("pop", "all", ""): {"P": 2 / 3, "RR": (1 / 2 + 1 + 1) / 3, "nDCG": (1 / log2(3) + 1 + 1) / 3},
    ("pop", "country", "AT"): {"P": 1 / 2, "RR": (1 / 2 + 1) / 2, "nDCG": (1 / log2(3) + 1) / 2},
    ("pop", "country", "DE"): {"P": 1, "RR": 1, "nDCG": 1},
}
KEY: Final = ("model_id", "slice", "slice_value", "measure")
NIGHTLY: Final = ("metrics", "user_metrics", "comparisons", "lists", "checks", "group_metrics")


def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Make the log, the judgements and the segments."""
    log = [
        (model, user, item, -float(place))
        for model, users in LISTS.items()
        for user, items in users.items()
        for place, item in enumerate(items.split())
    ]
    return (
        spark.createDataFrame(log, "model_id string, user_id string, item_id string, score double"),
        spark.createDataFrame([(user, "a") for user in COUNTRIES], "user_id string, item_id string"),
        spark.createDataFrame([*COUNTRIES.items()], "user_id string, country string"),
    )


def rows(workspace: Workspace, table: str, day: date | None = None) -> list[dict[str, Any]]:
    """Rows of a published table as other readers see them."""
    only = [("evaluation_date", "=", day)] if day else None
    found: list[dict[str, Any]] = (
        deltalake.DeltaTable(f"{workspace.root}/{table}").to_pyarrow_table(filters=only).to_pylist()
    )
    return found


def rounded(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows without what names the run, sorted, numbers to twelve digits."""
    kept = [
        {
            name: round(value, 12) if isinstance(value, float) else value
            for name, value in row.items()
            if name != "run_id"
        }
        for row in rows
    ]
    return sorted(map(str, kept))


def comparable(workspace: Workspace, table: str) -> list[str]:
    """Rows of a table as :func:`rounded` has them."""
    return rounded(rows(workspace, table))


def means(workspace: Workspace, day: date, model: str) -> dict[tuple[str, int], float]:
    return {
        (row["measure"], row["k"]): row["value"]
        for row in rows(workspace, "metrics", day)
        if (row["model_id"], row["slice"]) == (model, "all")
    }


def n_runs(workspace: Workspace, statuses: Sequence[str]) -> int:
    return sum(row["status"] in statuses for row in rows(workspace, "runs"))


def test_values_of_evaluate_are_those_worked_out_by_hand(spark: SparkSession) -> None:
    log, held_out, segments = frames(spark)
    result = evaluate(
        *(log, held_out),
        measures=["P@1", "RR@2", "nDCG@2"],
        segments=segments,
        slices=["country"],
        slicing={"min_slice_size": 1},
    )

    found = {tuple(row[name] for name in KEY): row["value"] for row in result.metrics.collect()}

    expected = {(*key, measure): value for key, values in VALUES.items() for measure, value in values.items()}
    assert found == pytest.approx(expected, rel=0, abs=1e-12)
    assert result.leaderboard().count() > 0


def test_comparison_is_on_the_same_users(spark: SparkSession) -> None:
    log, held_out, _ = frames(spark)
    result = evaluate(log, held_out, measures=["P@1", "RR@2"], baseline="pop", slicing={"min_slice_size": 1})

    found = {row["measure"]: (row["delta"], row["n_users"]) for row in result.comparisons.collect()}

    assert {name: n_users for name, (_, n_users) in found.items()} == {"P": 3, "RR": 3}
    deltas = {name: delta for name, (delta, _) in found.items()}
    assert deltas == pytest.approx({"P": (1 - 1 - 1) / 3, "RR": (1 / 2 - 1 / 2 - 1) / 3}, rel=0, abs=1e-12)


def test_measures_of_items_and_of_all_lists(spark: SparkSession) -> None:
    log, held_out, _ = frames(spark)
    train = spark.createDataFrame([("ann", "b"), ("bob", "b"), ("eve", "c")], "user_id string, item_id string")
    result = evaluate(log, held_out, measures=["ItemCoverage@1", "ARP@1"], train=train)

    found = {(row["model_id"], row["measure"]): row["value"] for row in result.metrics.collect()}

    # First items: als a, b, c; pop b, a, a. In train b has two users, c one, a none.
    expected = {("als", "ItemCoverage"): 3, ("pop", "ItemCoverage"): 2, ("als", "ARP"): 1, ("pop", "ARP"): 2 / 3}
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


def test_results_of_every_kind_are_those_of_this_process(spark: SparkSession) -> None:
    def own(items: list[str], ranks: list[int]) -> float:
        return len(items) + sum(ranks) / 7

    measures = ["P@1", "nDCG@2", "ItemCoverage@1", own]  # a function travels to the workers
    asked: dict[str, Any] = {"measures": measures, "slices": ["country"], "baseline": "pop"}
    on_spark = frames(spark)
    here = tuple(frame.toArrow() for frame in on_spark)
    found, expected = (
        evaluate(*given[:2], segments=given[2], train=given[1], slicing={"min_slice_size": 1}, **asked)
        for given in (on_spark, here)
    )
    for name in ("group_metrics", "ranked_items", "user_metrics", "comparisons", "checks", "metrics"):
        rows = getattr(found, name).toArrow().to_pylist()
        assert rounded(rows) == rounded(getattr(expected, name).to_pylist()) != [], name
    assert found.flat_metrics() == pytest.approx(expected.flat_metrics(), rel=0, abs=1e-12)


def test_night_is_published_with_the_values_worked_out_by_hand(published: Workspace) -> None:
    # Four users have a relevant judgement: of als, ann hits at 1, bob at 3, eve never, kim has no list.
    als = means(published, FIRST, "als")
    assert {als["RR", 1], als["RR", 2], als["Success", 2]} == {1 / 4}
    assert als["nDCG", 2] == pytest.approx(3 / (3 + 1 / log2(3)) / 4, rel=0, abs=1e-12)
    assert means(published, FIRST, "pop")["RR", 2] == pytest.approx((1 / 2 + 1 + 1 + 1) / 4, rel=0, abs=1e-12)
    assert n_runs(published, ["PUBLISHED"]) == 2


def test_night_publishes_its_comparisons(published: Workspace) -> None:
    (rr,) = (
        row
        for row in rows(published, "comparisons", FIRST)
        if (row["slice"], row["measure"], row["k"]) == ("all", "RR", 2)
    )
    assert (rr["model_id"], rr["n_users"]) == ("als", 4)
    assert rr["delta"] == pytest.approx(1 / 4 - (1 / 2 + 1 + 1 + 1) / 4, rel=0, abs=1e-12)


def test_rerun_gives_the_same_tables(published: Workspace) -> None:
    before = {table: comparable(published, table) for table in NIGHTLY}

    done = rankeval("run", published.config, "--date", FIRST)

    assert done.code == 0, done.err
    assert {table: comparable(published, table) for table in NIGHTLY} == before
    assert n_runs(published, ["PUBLISHED"]) == 3


def test_results_are_read_at_the_versions_last_published(spark: SparkSession, published: Workspace) -> None:
    found = Results(published.root, spark).metrics(date=SECOND, slice="all", measure="RR", k=2, model_id="als")

    # ann's item is at 2, bob's best at 1.
    assert [row["value"] for row in found.collect()] == pytest.approx([(1 / 2 + 1) / 2], rel=0, abs=1e-12)


def test_functions_of_sql_give_the_values_of_published_users(spark: SparkSession, published: Workspace) -> None:
    results = Results(published.root, spark)
    register_functions(spark)
    results.lists(date=FIRST).createOrReplaceTempView("lists_of_night")
    arrays = "hit_ranks, hit_gains, judged_gains"
    asked = f"ndcg({arrays}, 2), reciprocal_rank({arrays}, k => 2), hit_rate({arrays}, 2)"
    found = {row[:2]: row[2:] for row in spark.sql(f"SELECT model_id, user_id, {asked} FROM lists_of_night").collect()}
    users = results.user_metrics(date=FIRST, k=2).select("model_id", "user_id", "ndcg", "rr", "success").collect()
    assert {row[:2]: found[row[:2]] for row in users} == {row[:2]: row[2:] for row in users}
    assert found["als", "ann"] == (pytest.approx(3 / (3 + 1 / log2(3)), rel=0, abs=1e-12), 1, 1)
    assert found["als", "ida"] == (None, None, None)


def test_windows_give_the_values_of_evaluate(spark: SparkSession) -> None:
    log, held_out, _ = frames(spark)
    found = windows.user_metrics(log, held_out, cutoffs=[1, 2]).where("k = 2").collect()
    expected = evaluate(log, held_out, measures=["AP@1", "AP@2"]).user_metrics.where("k = 2").collect()
    assert sorted((row.model_id, row.user_id, row.ap) for row in found) == sorted(
        (row.model_id, row.user_id, row.ap) for row in expected
    )


def test_shown_and_compared_on_the_command_line(published: Workspace) -> None:
    shown = rankeval("show", published.root, "--date", FIRST, "--measure", "RR", "--k", "2", "--csv")
    assert shown.code == 0, shown.err
    assert "0.875" in shown.out

    compared = rankeval("compare", published.root, "--against", "previous", "-m", "RR", "--k", "2", "--csv")
    assert compared.code == 0, compared.err
    assert "als" in compared.out


def test_score_adds_a_measure_to_a_past_night(published: Workspace) -> None:
    before = means(published, FIRST, "als")

    done = rankeval("score", published.root, "--measures", "DCG@3", "--date", FIRST)

    assert done.code == 0, done.err
    after = means(published, FIRST, "als")
    # ann's items are worth 3 and 1 at ranks 1 and 3, bob's is worth 2 at rank 3, eve and kim have none.
    assert after.pop(("DCG", 3)) == pytest.approx(((3 + 1 / log2(4)) + 2 / log2(4)) / 4, rel=0, abs=1e-12)
    assert after == before


def test_maintain_deletes_erases_and_cleans(published: Workspace) -> None:
    before = comparable(published, "metrics")

    asked = ("--keep-days", "1", "--date", "2026-01-03", "--erase-user", "ann", "--vacuum")
    done = rankeval("maintain", published.root, *asked)

    assert done.code == 0, done.err
    assert "deleted: 1 nights" in done.out
    assert {(row["evaluation_date"], row["user_id"]) for row in rows(published, "user_metrics")} == {(SECOND, "bob")}
    assert {row["user_id"] for row in rows(published, "lists")} == {"bob"}
    assert comparable(published, "metrics") == before
    assert n_runs(published, ["MAINTAINED"]) > 0


def test_an_input_that_is_no_delta_table_is_named(published: Workspace) -> None:
    published.change(inputs__held_out__path="inputs/heldout")

    done = rankeval("run", published.config, "--date", FIRST)

    assert done.code == 4
    assert "inputs.held_out: found no such path at" in done.message
    done.assert_readable()
