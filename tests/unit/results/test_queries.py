"""Every query of ``docs/queries`` answers its question of published nights, by DuckDB."""

from __future__ import annotations

import random
import re
from contextlib import contextmanager
from math import log2
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from rankeval_spark import Results, evaluate
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from rankeval_spark.results import failpoints, journal, views
from rankeval_spark.results.run_record import RunRecord
from tests.support import nights, query_night
from tests.support.cli import rankeval
from tests.support.code import ROOT
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS
from tests.support.published import Root, frames_of
from tests.support.query_night import FAILED, QUERIES, THIRD
from tests.support.readers import load_delta

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return query_night.published(tmp_path_factory.mktemp("queries") / "it's here")


@pytest.fixture(scope="module")
def database(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the views and, as own tables, the logs of the newest night."""
    with views_of(workspace.root) as connection:
        for name, rows in query_night.logs().items():
            connection.register(name, rows)
        yield connection


@contextmanager
def views_of(root: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the views of a root."""
    with duckdb.connect() as connection:
        load_delta(connection)
        Results(root).register(connection)
        yield connection


def answers(database: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    found = database.execute(QUERIES[query])
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def of(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


IDEAL_BOB: Final = 2 + 1 / log2(3)
"""DCG of the best list for bob on the newest night, who has a gain of 2 and one of 1; als has the 1 first."""
BOB_ALS: Final = (1 + 2 / log2(4)) / IDEAL_BOB
BOB_POP: Final = (2 + 1 / log2(3)) / IDEAL_BOB
ANN_ALS: Final = 1 / log2(3)
ANN_POP: Final = 1 / log2(4)


def exactly(*values: float) -> Any:  # noqa: ANN401 - what pytest compares with
    return pytest.approx(list(values), rel=0, abs=1e-12)


LOSS: Final = (ANN_ALS + BOB_ALS - ANN_POP - BOB_POP) / 2
ALS, POP = ("als", 2), ("popular", 2)

ANSWERS: Final[dict[str, tuple[str, list[tuple[Any, ...]]]]] = {
    "latest-leaderboard": (
        "evaluation_date model_id n_users value",  # of the newest night, best first
        [(THIRD, *POP, (ANN_POP + BOB_POP) / 2), (THIRD, *ALS, (ANN_ALS + BOB_ALS) / 2)],
    ),
    "measure-by-segment": (
        "slice_value model_id n_users value",
        [("AT", *POP, (ANN_POP + BOB_POP) / 2), ("AT", *ALS, (ANN_ALS + BOB_ALS) / 2)],
    ),
    "slices-where-the-candidate-loses": (
        "model_id baseline_model_id slice slice_value delta",
        [("als", "popular", "all", "", LOSS), ("als", "popular", "country", "AT", LOSS)],
    ),
    "worst-users": ("user_id n_relevant n_hits value", [("ann", 1, 1, ANN_ALS), ("bob", 2, 2, BOB_ALS)]),
    "users-who-lose-most": ("user_id delta", [("bob", BOB_ALS - BOB_POP)]),
    "items-of-the-worst-users": (
        "user_id item_id gain",
        [
            *(("ann", "a", None), ("ann", "b", 1.0), ("ann", "c", None)),
            *(("bob", "d", 1.0), ("bob", "b", None), ("bob", "a", 2.0)),
        ],
    ),
    # Of 10 places two users share 3 items under popular, and {a, b} under als.
    "coverage-against-accuracy": ("model_id personalization", [("popular", 1 - 3 / 10), ("als", 1 - 2 / 10)]),
    "gaps-between-groups": ("model_id slice", [("als", "country"), ("popular", "country")]),
    "rules-of-the-newest-night": (
        "model_id verdict has_explanation",
        [("als", "failed", True), ("als", "passed", True), ("popular", "passed", True)],  # those not met come first
    ),
}


@pytest.mark.parametrize("query", ANSWERS)
def test_a_query_answers_its_question(database: duckdb.DuckDBPyConnection, query: str) -> None:
    columns, expected = ANSWERS[query]
    rows = [{**row, "has_explanation": bool(row.get("explanation"))} for row in answers(database, query)]
    found = of(rows, *columns.split())
    assert len(found) == len(expected)
    for row, values in zip(found, expected, strict=True):
        assert row == tuple(
            pytest.approx(value, rel=0, abs=1e-12) if isinstance(value, float) else value for value in values
        )


def test_the_history_has_the_change_from_night_to_night(database: duckdb.DuckDBPyConnection) -> None:
    rows = answers(database, "history-of-a-measure")
    assert of(rows, "model_id", "evaluation_date") == [
        *(("als", FIRST), ("als", SECOND), ("als", THIRD)),
        *(("popular", FIRST), ("popular", SECOND), ("popular", THIRD)),
    ]
    assert rows[0]["change"] is None
    assert rows[1]["change"] == rows[1]["value"] - rows[0]["value"]
    assert rows[2]["change"] == 0


def test_the_shares_count_users_and_the_mean_does_not_hide_them(database: duckdb.DuckDBPyConnection) -> None:
    (row,) = answers(database, "share-of-users-who-gain-and-lose")
    differences = [ANN_ALS - ANN_POP, BOB_ALS - BOB_POP]
    assert (row["model_id"], row["n_users"]) == ("als", 2)
    assert float(row["share_gains"]) == sum(one > 0.05 for one in differences) / 2
    assert float(row["share_loses"]) == sum(one < -0.05 for one in differences) / 2
    assert row["mean_difference"] == pytest.approx(sum(differences) / 2, rel=0, abs=1e-12)


def test_quantiles_lie_between_the_values_of_the_users(database: duckdb.DuckDBPyConnection) -> None:
    rows = answers(database, "distribution-of-users")
    assert of(rows, "model_id", "n_users") == [("als", 2), ("popular", 2)]
    for row, (low, high) in zip(rows, (sorted((ANN_ALS, BOB_ALS)), sorted((ANN_POP, BOB_POP))), strict=True):
        found = [row[name] for name in ("low_tenth", "low_quarter", "median", "high_quarter", "high_tenth")]
        assert found == exactly(*(low + share * (high - low) for share in (0.1, 0.25, 0.5, 0.75, 0.9)))
        assert row["mean"] == pytest.approx((low + high) / 2, rel=0, abs=1e-12)


def test_the_ranks_of_hits_are_those_of_an_evaluation(database: duckdb.DuckDBPyConnection) -> None:
    logs = query_night.logs()
    result = evaluate(logs["recommendations"], logs["held_out"], measures=["nDCG@10"])
    expected = result.hit_ranks("als", "popular").drop_columns(["list_id"]).to_pylist()
    assert answers(database, "ranks-of-hits") == expected
    assert expected


def test_the_best_rank_of_a_repeated_item_counts_with_its_largest_gain() -> None:
    log = [(model, "ann", item, -place) for model in ("als", "popular") for place, item in enumerate("aba")]
    own = {
        "recommendations": pd.DataFrame(log, columns=["model_id", "user_id", "item_id", "score"]),
        "held_out": pd.DataFrame({"user_id": "ann", "item_id": ["a", "a", "b"], "gain": [1.0, 2.0, 1.0]}),
    }
    with duckdb.connect() as connection:
        for name, rows in own.items():
            connection.register(name, rows)
        found = answers(connection, "ranks-of-hits")
    result = evaluate(own["recommendations"], own["held_out"], measures=["nDCG@10"], policies={"duplicates": "keep"})
    assert found == result.hit_ranks("als", "popular").drop_columns(["list_id"]).to_pylist()
    assert of(found, "item_id", "gain", "baseline_rank", "rank") == [("a", 2.0, 1, 1), ("b", 1.0, 2, 2)]


def test_the_measures_of_a_log_are_those_of_evaluate() -> None:
    """Of random logs: copies, ties, negative gains, users without a list, without a relevant item or a judgement."""
    draw, users = random.Random(20261127), range(150)
    log = [
        {
            "model_id": model,
            "user_id": user,
            "item_id": draw.choice("abcdefghijklmno"),
            "score": draw.choice((0.0, 1.0, 2.0)),
        }
        for model in ("als", "popular")
        for user in users
        for _ in range(draw.choice((0, 1, 6, 25)))
    ]
    judged = [
        {"user_id": user, "item_id": draw.choice("abcdefghijklmno"), "gain": draw.choice((-1.0, 0.0, 0.5, 1.0, 3.0))}
        for user in users
        for _ in range(draw.choice((0, 1, 3, 14)))
    ]
    names = ("p", "r", "rr", "ap", "ndcg")
    own = {"recommendations": pa.Table.from_pylist(log), "held_out": pa.Table.from_pylist(judged)}
    result = evaluate(*own.values(), measures=["P@10", "R@10", "RR@10", "AP@10", "nDCG@10"])
    with duckdb.connect() as database:
        for name, rows in own.items():
            database.register(name, rows)
        found = answers(database, "measures-of-a-log")
    expected = [row for row in result.user_metrics.to_pylist() if row["n_relevant"]]
    assert of(found, "model_id", "user_id") == of(expected, "model_id", "user_id")
    assert [row[name] for row in found for name in names] == exactly(*(row[name] for row in expected for name in names))
    assert len(found) > 150


def test_quantiles_are_values_of_users(database: duckdb.DuckDBPyConnection) -> None:
    rows = [row for row in answers(database, "quantiles-of-users") if row["slice"] == "all"]
    wanted = {
        name: sorted(values) for name, values in {"als": (ANN_ALS, BOB_ALS), "popular": (ANN_POP, BOB_POP)}.items()
    }
    assert of(rows, "model_id", "share") == [(name, share) for name in wanted for share in (0.1, 0.5, 0.9)]
    assert [row["value"] for row in rows] == exactly(
        *(value for low, high in wanted.values() for value in (low, low, high))
    )
    assert {row["quantile_error"] for row in rows} == {0}


def test_comparisons_have_the_shares_beyond_the_margin_of_the_config(database: duckdb.DuckDBPyConnection) -> None:
    (row,) = answers(database, "share-of-users-who-gain-and-lose")
    found = database.execute(
        "SELECT margin, win_share, loss_share FROM latest_comparisons "
        "WHERE slice = 'all' AND measure = 'nDCG' AND k = 10"
    ).fetchall()
    assert found == [(0.05, float(row["share_gains"]), float(row["share_loses"]))]


def test_the_night_that_failed_says_where_and_why(database: duckdb.DuckDBPyConnection) -> None:
    (row,) = answers(database, "nights-that-failed")
    assert (row["evaluation_date"], row["error_stage"], row["failed_checks"], row["has_results"]) == (
        *(FAILED, "check", "held_out, null_keys", False),
    )
    assert "held_out, null_keys: found 1" in row["error_message"]


def test_a_run_that_started_earlier_is_not_the_newest_of_its_night(tmp_path: Path) -> None:
    """A dead run is found after the next one published; another one is completed after it failed."""
    made = nights.workspace(tmp_path / "workspace")
    root = Root(made.root, load_config(made.config))
    dead, completed = (RunRecord("nightly", day, f"older-{day}") for day in (FIRST, SECOND))
    error = {"stage": "unknown", "type": "Died", "message": "ended without a word"}
    root.record(journal.run_event(dead, journal.RUNNING))
    root.publish(FIRST, frames_of(FIRST), run_id="newer")
    root.record(journal.run_event(dead, journal.FAILED, error=error))
    for status in (journal.RUNNING, journal.PUBLISHED, journal.FAILED):
        root.record(journal.run_event(completed, status, error=error if status == journal.FAILED else None))

    with views_of(made.root) as connection:
        found = connection.execute(
            "SELECT run_id, status, has_results FROM nights ORDER BY evaluation_date, status"
        ).fetchall()
    assert found == [("newer", "PUBLISHED", True), (f"older-{SECOND}", "PUBLISHED", True)]


def test_views_of_the_newest_night_have_means_and_no_sample(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")
    config = load_config(made.config)
    root = Root(made.root, config)
    root.publish(FIRST, frames_of(FIRST), run_id="first")
    root.publish_nothing(WITHOUT_ROWS, run_id="nothing", reason="no rows")
    Root(made.root, config, sample_share=0.5).publish(SECOND, frames_of(SECOND), run_id="sample")

    with views_of(made.root) as connection:
        for table in ("metrics", "checks"):
            newest = connection.execute(f"SELECT DISTINCT evaluation, evaluation_date FROM latest_{table}").fetchall()
            assert newest == [("nightly", FIRST)]
        names = connection.execute("SELECT DISTINCT evaluation FROM metrics ORDER BY evaluation").fetchall()
    assert names == [("nightly",), ("nightly.sample-0.5",)]


def test_the_checks_that_warn_have_their_share_and_examples(database: duckdb.DuckDBPyConnection) -> None:
    rows = answers(database, "checks-that-warn")
    assert rows
    assert {row["verdict"] for row in rows} == {"warn"}
    assert {row["evaluation_date"] for row in rows} == {THIRD}


def test_the_cost_has_seconds_and_rows(database: duckdb.DuckDBPyConnection) -> None:
    rows = answers(database, "cost-of-a-night")
    assert of(rows, "evaluation_date", "n_rows") == [
        (THIRD, 12 + 3 + 4),
        (SECOND, 12 + 3 + 4),
        (FIRST, 24 + 7 + 4),
    ]
    assert all(0 < row["slowest_seconds"] <= row["seconds"] for row in rows)


def test_the_cost_has_a_row_for_each_run_of_a_night(tmp_path: Path) -> None:
    """One that failed after its intent, and was completed by the next run, is one run too."""
    made = nights.workspace(tmp_path / "workspace")
    query_night.run(made, FIRST)
    with failpoints.armed("before_marker"), pytest.raises(failpoints.FailpointError):
        query_night.run(made, FIRST)
    query_night.run(made, SECOND)

    with views_of(made.root) as connection:
        rows = answers(connection, "cost-of-a-night")
        in_order = connection.execute(
            "SELECT run_id FROM runs WHERE status = 'RUNNING' ORDER BY recorded_at"
        ).fetchall()
    first, again, second = (run_id for (run_id,) in in_order)
    assert of(rows, "evaluation_date", "n_rows")[1:] == [(FIRST, 24 + 7 + 4)] * 2
    assert rows[0]["run_id"] == second
    assert {row["run_id"] for row in rows[1:]} == {first, again}


def test_a_definition_that_changed_is_shown_with_the_one_before(database: duckdb.DuckDBPyConnection) -> None:
    rows = answers(database, "when-a-definition-changed")
    assert {(row["evaluation_date"], row["measure"]) for row in rows} >= {(THIRD, "nDCG"), (THIRD, "RR")}
    assert all("ties=item_desc" in row["definition"] for row in rows)
    assert all("ties=item_asc" in row["definition_before"] for row in rows)


def test_every_query_has_a_test_and_begins_with_its_question() -> None:
    source = (ROOT / "tests/unit/results/test_queries.py").read_text(encoding="utf-8")
    assert {*ANSWERS, *re.findall(r'answers\(database, "([\w-]+)"\)', source)} == set(QUERIES)
    for name, text in QUERIES.items():
        assert re.match(r"-- [A-Z][^\n]*\?\n--\n", text), name


def test_simple_queries_need_no_array_no_map_and_no_version() -> None:
    for name, text in QUERIES.items():
        assert not re.search(r"slice_values|segments|versionAsOf|delta_scan|map_|unnest", text), name


def test_no_view_has_an_array_or_a_map(database: duckdb.DuckDBPyConnection) -> None:
    columns = database.execute("SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal")
    nested = [row for row in columns.fetchall() if "[" in row[2] or row[2].startswith(("MAP", "STRUCT"))]
    assert nested == []


def test_views_of_duckdb_explain_themselves_and_their_columns(workspace: Workspace) -> None:
    columns = "FROM duckdb_columns() WHERE NOT internal"
    told = (
        f"SELECT comment {columns} AND table_name = 'latest_user_metrics' AND column_name IN ('k', 'ndcg') ORDER BY 1"
    )
    with views_of(workspace.root) as database:
        found = database.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall()
        silent = database.execute(f"SELECT table_name, column_name {columns} AND comment IS NULL").fetchall()
        texts = [text for (text,) in database.execute(told).fetchall()]
    assert len(found) > 15
    assert [name for name, comment in found if not comment] == silent == []
    assert texts == [
        "Cutoff; 0 = whole list",
        "Value of a measure, see run_measures; NULL where it is undefined or was not requested at this k",
    ]


def test_the_command_prints_the_statements(workspace: Workspace) -> None:
    done = rankeval("register", workspace.root, "--for", "duckdb", "--schema", "evaluations")
    assert (done.code, done.err) == (0, "")
    with duckdb.connect() as connection:
        load_delta(connection)
        connection.execute("CREATE SCHEMA evaluations")
        connection.execute(done.out)
        assert connection.execute("SELECT count(*) FROM evaluations.nights").fetchall() == [(4,)]


@pytest.mark.parametrize("name", ["a%20b", "100%", "a\\b"])
def test_a_root_that_duckdb_takes_for_another_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"results root: found .*; expected a path without .*, which DuckDB reads as"):
        views.statements(f"/data/{name}", "duckdb")
    assert f"/data/{name}/metrics" in views.statements(f"/data/{name}", "spark")["metrics"]
    done = rankeval("register", f"/data/{name}", "--for", "duckdb")
    assert (done.code, done.out) == (2, "")


def test_what_cannot_be_registered_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match=r"schema: found 'a; DROP'"):
        views.statements(workspace.root, "spark", schema="a; DROP")
    with pytest.raises(ConfigError, match="dialect: found 'trino'"):
        views.statements(workspace.root, "trino")
    with pytest.raises(ConfigError, match=r"register\(connection=\): found none"):
        Results(workspace.root).register()
    assert rankeval("register", workspace.root, "--for", "trino").code == 2
    assert rankeval("register", str(workspace.folder / "nothing"), "--for", "duckdb").code == 2
