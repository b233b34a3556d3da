"""``rankeval user``: the lists of a user, from the inputs that a published night read; all of it without Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from rankeval_spark import Results, columns as C
from tests.support import nights
from tests.support.cli import json_of, rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish two dates, and write the log again afterwards without a row of the first one."""
    made = nights.workspace(tmp_path_factory.mktemp("user") / "workspace")
    done = rankeval("backfill", made.config, "--from", FIRST, "--to", SECOND)
    assert done.code == 0, done.err
    made.write("recommendations", nights.recommendations({SECOND: nights.LISTS[SECOND]}))
    return made


def user(workspace: Workspace, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json_of("user", workspace.root, *arguments)
    return found


def test_lists_are_those_of_the_recorded_versions_with_what_is_relevant(published: Workspace) -> None:
    found = user(published, "bob", "--date", FIRST)

    assert found["judged"] == [{"item_id": "d", "gain": 2.0}]
    items = {
        one["model_id"]: [(item["item_id"], item["rank"], item["is_relevant"]) for item in one["items"]]
        for one in found["lists"]
    }
    assert items == {
        "als": [("b", 1, False), ("a", 2, False), ("d", 3, True)],
        "pop": [("d", 1, True), ("a", 2, False), ("b", 3, False)],
    }


@pytest.mark.parametrize("name", ["ann", "bob", "eve", "kim"])
def test_values_are_those_that_were_published(published: Workspace, name: str) -> None:
    found = user(published, name, "--date", FIRST)

    values = {
        (one["model_id"], row["measure"], row["k"]): row["value"] for one in found["lists"] for row in one["values"]
    }
    assert values == of_published(published, name)


def of_published(workspace: Workspace, name: str) -> dict[tuple[str, str, int], float]:
    table = deltalake.DeltaTable(f"{workspace.root}/user_metrics").to_pyarrow_table().to_pylist()
    columns = {"RR": "rr", "nDCG": "ndcg", "Success": "success"}
    rows = [row for row in table if row[C.USER_ID] == name and row[C.EVALUATION_DATE] == FIRST]
    return {(row[C.MODEL_ID], measure, row[C.K]): row[column] for row in rows for measure, column in columns.items()}


def test_the_newest_night_is_shown_with_what_no_list_has(published: Workspace) -> None:
    done = rankeval("user", published.root, "ann", "--k", 1)

    assert done.code == 0, done.err
    assert "nightly, 2026-01-02, user ann: 1 of 1 judged items are relevant" in done.out
    assert "judged, and in no list down to rank 1: \u2713 b" in done.out
    assert "nDCG@1" in done.out
    assert "nDCG@2" not in done.out


def test_a_user_without_a_row_is_refused(published: Workspace) -> None:
    done = rankeval("user", published.root, "nobody")

    assert done.code == 4
    assert "user: found 'nobody'; expected a user of nightly, 2026-01-02, with a list or a judgement" in done.err


def explain(workspace: Workspace, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json_of("explain", workspace.root, *arguments, "--date", FIRST)
    return found


@pytest.mark.parametrize("name", ["ann", "bob", "eve", "kim"])
def test_explained_values_are_those_that_were_published(published: Workspace, name: str) -> None:
    for (model, measure, k), value in of_published(published, name).items():
        assert explain(published, name, f"{measure}@{k}", "--model", model)["value"] == value


def test_a_published_value_is_explained_rank_by_rank(published: Workspace) -> None:
    found = explain(published, "bob", "nDCG@2", "--model", "pop")
    assert [(row["item_id"], row["contribution"]) for row in found["ranks"]] == [("d", 1), ("a", 0)]
    assert found["numbers"]["divided by"] == 2
    assert [(row["item_id"], row["term"]) for row in found["ideal"]] == [("d", 2)]
    alike = Results(published.root).explain("bob", "nDCG@2", model="pop", date=FIRST)
    assert (alike.table.to_pylist(), alike.numbers) == (found["ranks"], found["numbers"])
    done = rankeval("explain", published.root, "bob", "nDCG@2", "--model", "pop", "--date", FIRST)
    assert "nDCG@2 = 1.0000 for user bob under pop\n" in done.out
    assert "sum of terms 2, divided by 2: 1\n" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bo", "nDCG@2", "--model", "als"), "USER: found 'bo'; .*did you mean 'bob'"),
        (("bob", "nDGC@2", "--model", "als"), "MEASURE: found unknown measure 'nDGC'; .*did you mean 'nDCG'"),
        (("bob", "nDCG@2", "--model", "alz"), "--model: found 'alz'; .*did you mean 'als'"),
        (("bob", "nDCG@2"), "--model: found None; expected one of: als, pop"),
        (("bob", "nDCG@2", "--model", "als", "--list", "x"), "--list: found 'x'"),
    ],
    ids=str,
)
def test_a_wrong_argument_of_explain_is_named_as_it_is_typed(
    published: Workspace, arguments: tuple[str, ...], message: str
) -> None:
    done = rankeval("explain", published.root, *arguments, "--date", FIRST)
    assert done.code == 2
    assert re.search(message, " ".join(done.err.split()))
