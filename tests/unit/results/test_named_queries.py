"""Questions that many ask of published nights, answered in this process, and handed to other libraries."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest

from rankeval_spark import Results
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError, InputError
from tests.support import nights
from tests.support.nights import FIRST, SECOND
from tests.support.published import Root, frames_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

# On the first date ann, bob, eve and kim have something relevant. Their first hits:
# als: ann 1, bob none by rank 2, eve none by rank 2, kim has no list. pop: ann 2, bob 1, eve 1, kim 1.


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Publish both dates of the small workspace."""
    workspace = nights.workspace(
        tmp_path_factory.mktemp("named") / "workspace", measures=["RR", "RMSE", "Personalization"]
    )
    root = Root(workspace.root, load_config(workspace.config))
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"run-{day}")
    return root


@pytest.fixture(scope="module")
def results(root: Root) -> Results[pa.Table]:
    return Results(root.root)


def test_the_latest_rows_are_those_of_the_newest_night(results: Results[pa.Table]) -> None:
    rows = results.latest(slice="all", measure="RR", k=2)
    assert {(row["evaluation_date"], row["model_id"]) for row in rows.to_pylist()} == {(SECOND, "als"), (SECOND, "pop")}
    assert set(results.latest("checks")["evaluation_date"].to_pylist()) == {SECOND}


def test_the_leaderboard_has_a_row_a_model_best_first(results: Results[pa.Table]) -> None:
    board = results.leaderboard(2, date=FIRST)
    assert board.column_names == ["model_id", "n_users", "RR@2", "Personalization@2"]
    assert [(row["model_id"], row["RR@2"]) for row in board.to_pylist()] == [
        ("pop", (1 / 2 + 1 + 1 + 1) / 4),
        ("als", (1 + 0 + 0 + 0) / 4),
    ]
    newest = {row["model_id"]: row["RR@1"] for row in results.leaderboard().to_pylist()}
    assert newest == {"als": (0 + 1) / 2, "pop": (0 + 1) / 2}


def test_a_history_goes_over_all_nights_oldest_first(results: Results[pa.Table]) -> None:
    rows = results.history("RR@2", model_id="als").to_pylist()
    assert [(row["evaluation_date"], row["value"], row["n_users"]) for row in rows] == [
        (FIRST, 1 / 4, 4),
        (SECOND, (1 / 2 + 1) / 2, 2),
    ]
    of_slices = results.history("RR@2", slice="country", slice_value="AT").to_pylist()
    assert {(row["model_id"], row["slice"], row["slice_value"]) for row in of_slices} == {
        ("als", "country", "AT"),
        ("pop", "country", "AT"),
    }


def test_the_worst_users_are_those_with_the_least_and_then_with_most_to_find(results: Results[pa.Table]) -> None:
    worst = results.worst_users("RR@2", model_id="als", n=3, date=FIRST).to_pylist()
    assert [(row["user_id"], row["value"], row["n_relevant"]) for row in worst] == [
        ("eve", 0.0, 2),
        ("bob", 0.0, 1),
        ("kim", 0.0, 1),
    ]
    assert {row["user_id"]: row["n_recommended"] for row in worst} == {"eve": 2, "bob": 2, "kim": 0}


def test_of_an_error_the_greatest_is_the_worst(results: Results[pa.Table]) -> None:
    """Only ann, bob and eve have a judged item in their list; others have no value and are left out."""
    worst = results.worst_users("RMSE", model_id="als", date=FIRST).to_pylist()
    # Scores are 10, 9, 8. ann: a 10 of 3, c 8 of 1; bob: d 8 of 2; eve: none of b, e.
    assert {row["user_id"]: row["value"] for row in worst} == {"ann": 7.0, "bob": 6.0}
    assert [row["user_id"] for row in worst] == ["ann", "bob"]


def test_a_model_is_held_against_another_user_by_user(results: Results[pa.Table]) -> None:
    rows = results.user_differences("RR@2", model_id="als", against="pop", date=FIRST).to_pylist()
    by_user = {row["user_id"]: (row["value"], row["other_value"], row["delta"]) for row in rows}
    assert by_user == {
        "ann": (1.0, 1 / 2, 1 / 2),
        "bob": (0.0, 1.0, -1.0),
        "eve": (0.0, 1.0, -1.0),
        "kim": (0.0, 1.0, -1.0),
        "ida": (None, None, None),
    }
    assert [row["user_id"] for row in rows][:4] == ["bob", "eve", "kim", "ann"]


@pytest.mark.parametrize("against", ["previous", "2026-01-01", FIRST])
def test_a_night_is_held_against_an_earlier_one_user_by_user(results: Results[pa.Table], against: date | str) -> None:
    rows = results.user_differences("RR@2", model_id="als", against=against).to_pylist()
    found = {row["user_id"]: (row["value"], row["other_value"], row["delta"]) for row in rows}
    assert found["ann"] == (1 / 2, 1.0, -1 / 2)
    assert found["bob"] == (1.0, 0.0, 1.0)
    assert found["kim"] == (None, 0.0, None)
    assert [row["user_id"] for row in rows][:2] == ["ann", "bob"]


def against(results: Results[pa.Table], other: date | str) -> pa.Table:
    return results.user_differences("RR@2", model_id="als", against=other, date=FIRST)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (lambda r: r.leaderboard(7), "leaderboard(k=): found 7; expected a cutoff that was computed: 0, 1, 2"),
        (
            lambda r: r.leaderboard(date="2026-02-01"),
            "leaderboard(date=): found 2026-02-01; expected a night of nightly: 2026-01-01",
        ),
        (lambda r: r.latest(evaluation="nightyl"), "latest(evaluation=): found 'nightyl'; expected one of: nightly"),
        (lambda r: r.history("MRR@3"), "history(measure=): found 'MRR@3'; expected one of: RR@1, RR@2"),
        (lambda r: r.history("RR@2", model_id="asl"), "history(model_id=): found 'asl'; expected one of: als, pop"),
        (
            lambda r: r.history("RR@2", model_id=["als", "knn"]),
            "history(model_id=): found 'knn'; expected one of: als, pop",
        ),
        (
            lambda r: r.worst_users("RR@2", model_id="asl"),
            "worst_users(model_id=): found 'asl'; expected one of: als, pop",
        ),
        (lambda r: r.worst_users("Personalization@2", model_id="als"), "expected one of: RR@1, RR@2, RMSE"),
        (
            lambda r: r.worst_users("RR@2", model_id="als", n=0),
            "worst_users(n=): found 0; expected a whole number, 1 or more",
        ),
        (lambda r: r.worst_users("RR@2", model_id="als", n=2.5), "worst_users(n=): found 2.5; expected a whole number"),
        (lambda r: against(r, "knn"), "user_differences(against=): found 'knn'; expected one of: als, pop"),
        (
            lambda r: against(r, "2026-02-01"),
            "user_differences(against=): found 2026-02-01; expected a night of nightly:",
        ),
        (
            lambda r: against(r, "als"),
            "user_differences(against=): found 'als'; expected another model, or another night",
        ),
        (
            lambda r: against(r, FIRST),
            "user_differences(against=): found '2026-01-01'; expected another model, or another night",
        ),
    ],
)
def test_what_is_not_there_is_named(results: Results[pa.Table], asked: Any, found: str) -> None:  # noqa: ANN401 - a call of a method
    with pytest.raises(ConfigError) as refused:
        asked(results)
    assert found in str(refused.value)


def test_the_first_night_has_none_before_it(results: Results[pa.Table]) -> None:
    with pytest.raises(InputError, match="no night of nightly before 2026-01-01"):
        results.user_differences("RR@2", model_id="als", against="previous", date=FIRST)


def changed(folder: Path, day: date = SECOND, **changes: Any) -> Results[pa.Table]:  # noqa: ANN401 - of a config
    """Publish the first date, then a date with another config."""
    workspace = nights.workspace(folder / "workspace", measures=["RR"])
    root = Root(workspace.root, load_config(workspace.config))
    root.publish(FIRST, frames_of(FIRST), run_id="one")
    workspace.change(**changes)
    root.publish(day, frames_of(day), run_id="other", config=load_config(workspace.config))
    return Results(root.root)


def test_of_several_evaluations_one_must_be_named(tmp_path: Path) -> None:
    results = changed(tmp_path, evaluation="weekly")
    with pytest.raises(ConfigError, match="expected one of: nightly, weekly"):
        results.leaderboard()
    assert set(results.latest(evaluation="nightly")["evaluation_date"].to_pylist()) == {FIRST}


def test_nights_of_other_policies_are_told_apart(tmp_path: Path) -> None:
    results = changed(tmp_path, policies={"population": "judged"})
    rows = results.history("RR@2", model_id="als").to_pylist()
    words = [row["definition"].partition("population=")[2].partition(",")[0] for row in rows]
    assert (words, rows[0]["definition"][:3]) == (["truth", "judged"], "RR(")
    with pytest.raises(ConfigError) as refused:
        results.user_differences("RR@2", model_id="als", against="previous")
    (fault,) = refused.value.faults
    assert (fault.where, fault.found, fault.expected) == (
        "user_differences(against=)",
        f"{FIRST}, when RR@2 was computed with population=truth, zero_relevant=exclude",
        f"as on {SECOND}: population=judged, zero_relevant=zero",
    )
    assert results.user_differences("RR@2", model_id="als", against="pop").num_rows


def test_a_night_that_ran_again_with_other_measures_has_those_alone(tmp_path: Path) -> None:
    results = changed(tmp_path, FIRST, measures=["P"])
    assert results.leaderboard().column_names == ["model_id", "n_users", "P@1", "P@2"]
    with pytest.raises(ConfigError, match="found 'RR@2'"):
        results.worst_users("RR@2", model_id="als")


def test_pandas_polars_and_duckdb_take_the_tables_as_they_are(results: Results[pa.Table]) -> None:
    board = results.leaderboard(2, date=FIRST)
    expected = board["RR@2"].to_pylist()
    assert board.to_pandas()["RR@2"].tolist() == expected
    assert pl.DataFrame(board)["RR@2"].to_list() == expected
    with duckdb.connect() as connection:
        assert connection.from_arrow(board).project('"RR@2"').fetchall() == [(value,) for value in expected]
        users = results.scan("user_metrics", date=FIRST, k=2)
        (n_users,) = connection.from_arrow(users).aggregate("count(DISTINCT user_id)").fetchall()
    assert n_users == (len({"ann", "bob", "eve", "kim", "ida"}),)
    assert pl.scan_pyarrow_dataset(users).select(pl.len()).collect().item() == users.count_rows()
