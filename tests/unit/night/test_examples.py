"""Users who win and lose most: who they are, what is kept of them, who sees them, and how they go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import Results
from rankeval_spark.engine import outputs
from rankeval_spark.errors import InputError
from tests.support import example_night as made
from tests.support.cli import rankeval
from tests.support.example_night import DAY, HOSTILE
from tests.support.html import parsed

if TYPE_CHECKING:
    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish the night, and the day after it."""
    workspace = made.workspace(tmp_path_factory.mktemp("examples") / "workspace")
    found = rankeval("run", workspace.config, "--date", DAY)
    assert found.code == 0, found.err
    return workspace


def rows_of(root: str) -> list[dict[str, Any]]:
    rows = Results(root).examples(date=DAY).drop_columns(["run_id"]).to_pylist()
    return sorted(rows, key=lambda row: (row["model_id"], row["side"], row["place"], row["listed_by"], row["rank"]))


def test_users_with_the_greatest_differences_are_kept_with_their_lists(done: Workspace) -> None:
    rows = rows_of(done.root)
    users = {(row["model_id"], row["side"], row["place"]): row["user_id"] for row in rows}
    assert users == {
        (model, side, place): user
        for model in ("als", "knn")
        for side in ("win", "loss")
        for place, user in enumerate(made.chosen(model, side, 3), 1)
    }
    lists: dict[tuple[str, str, str], list[tuple[int, str | None, float | None]]] = {}
    for row in rows:
        key = row["model_id"], row["user_id"], row["listed_by"]
        lists.setdefault(key, []).append((row["rank"], row["item_id"], row["gain"]))
        assert row["title"] == made.TITLES.get(row["item_id"], f"Title of {row['item_id']}" if row["item_id"] else None)
        values = [made.value(model, row["user_id"]) for model in (row["model_id"], "pop")]
        assert [row["value"], row["baseline_value"], row["delta"]] == pytest.approx([*values, values[0] - values[1]])
        assert (row["measure"], row["k"], row["baseline_model_id"], row["n_relevant"]) == ("P", 3, "pop", 2)
    assert len(lists) == 2 * 2 * 3 * 2
    for (_, user, model), items in lists.items():
        own = made.lists()[model].get(user, [])[:3]
        marked = [(rank, item, 1.0 if item in made.hits()[user] else None) for rank, item in enumerate(own, 1)]
        if not own:
            assert items == [(0, None, None)]
        else:
            assert items == marked


def test_parts_of_single_users_choose_the_same(
    done: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "LISTS_AT_ONCE", 1)
    again = done.copy(tmp_path)
    assert rankeval("run", again.config, "--date", DAY).code == 0  # a rerun replaces the rows
    assert rows_of(again.root) == rows_of(done.root)


def test_the_report_shows_both_lists_and_hides_users_on_request(done: Workspace, tmp_path: Path) -> None:
    pages = {}
    for options in ((), ("--no-users",)):
        assert rankeval("report", done.root, "--out", tmp_path / "page.html", *options).code == 0
        pages[options] = (tmp_path / "page.html").read_text(encoding="utf-8")
    html, hidden = pages.values()
    assert HOSTILE not in html
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; \\u202e&lt;b&gt;" in html
    section = parsed(html).one("section", id="examples")
    first = section.all("table")[0]
    (user,) = made.chosen("als", "win", 1)
    assert first.one("caption").words.startswith(f"{user} wins +")
    assert [cell.words for cell in first.one("thead").all("th")] == ["rank", "als", "pop"]
    assert "✓ " in first.words
    hits = [cell.words for cell in first.one("tbody").all("td") if "✓" in cell.words]
    assert all(words.endswith("(+0.333)") for words in hits)  # one in three items of P@3
    assert "A number in brackets is what the item adds to the value." in section.words
    assert f"{'x' * 79}…" in html
    explained = next(table for table in section.all("table") if "rank by rank" in table.one("caption").words)
    n_hits = len(made.hits()[user] & {*made.lists()["als"][user][:3]})
    value = f"{n_hits / 3:.4f}" if n_hits < 3 else "1"
    assert f"als, P@3 rank by rank: sum of terms {n_hits}, divided by 3: {value}; R = 2 of " in explained.words
    assert [cell.words for cell in explained.one("thead").all("th")][:3] == ["rank", "item_id", "title"]
    assert [cell.words for cell in explained.one("tbody").all("td")].count("0.3333") == n_hits
    users = {row["user_id"] for row in rows_of(done.root)}
    texts = parsed(hidden).one("main").words
    assert not users & set(texts.replace(":", " ").split())
    assert "user 1 wins +" in parsed(hidden).one("section", id="examples").words


def test_ids_in_checks_and_errors_are_hidden_too(done: Workspace, tmp_path: Path) -> None:
    again = done.copy(tmp_path)
    again.write("held_out", [*(dict(row) for row in _held_out_with_a_double())])
    assert rankeval("run", again.config, "--date", DAY).code == 0
    for options, is_there in (((), True), (("--no-users",), False)):
        assert rankeval("report", again.root, "--out", tmp_path / "page.html", *options).code == 0
        section = parsed((tmp_path / "page.html").read_text(encoding="utf-8")).one("section", id="checks")
        assert ("stranger" in section.words) == is_there


def _held_out_with_a_double() -> list[dict[str, Any]]:
    rows = [
        {"day": DAY.isoformat(), "user_id": user, "item_id": item, "gain": 1.0}
        for user, items in made.hits().items()
        for item in sorted(items)
    ]
    return [*rows, *({**rows[0], "user_id": "stranger"} for _ in range(2))]


def test_titles_are_shown_for_one_user(done: Workspace) -> None:
    user = made.chosen("als", "win", 1)[0]
    told = rankeval("user", done.root, user)
    assert told.code == 0, told.err
    assert "i4 Title of i4" in told.out
    document = json.loads(rankeval("user", done.root, user, "--json").out)
    items = [item for each in document["lists"] for item in each["items"]]
    assert {item["item_id"]: item["title"] for item in items}.items() >= {"i4": "Title of i4"}.items()


def test_deletions_and_erasures_take_examples_with_them(done: Workspace, tmp_path: Path) -> None:
    root = str(shutil.copytree(done.root, tmp_path / "results"))
    user = made.chosen("als", "win", 1)[0]
    erased = rankeval("maintain", root, "--erase-user", user)
    assert erased.code == 0, erased.err
    left = {row["user_id"] for row in rows_of(root)}
    assert left == {row["user_id"] for row in rows_of(done.root)} - {user}
    gone = rankeval("maintain", root, "--keep-days", "1", "--date", "2026-04-01")
    assert gone.code == 0, gone.err
    with pytest.raises(InputError, match="no examples: deleted by rankeval maintain"):
        Results(root).examples(date=DAY)
    assert rankeval("report", root, "--out", tmp_path / "page.html").code == 0
    assert "No examples: deleted by rankeval maintain" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_scoring_again_keeps_the_examples(done: Workspace, tmp_path: Path) -> None:
    root = str(shutil.copytree(done.root, tmp_path / "results"))
    assert rankeval("score", root, "--measure", "RR@3").code == 0
    assert rows_of(root) == rows_of(done.root)


def test_examples_are_off_by_default_and_need_a_comparison(done: Workspace, tmp_path: Path) -> None:
    again = done.copy(tmp_path)
    again.change(results__examples=0)
    assert rankeval("run", again.config, "--date", DAY).code == 0
    assert rows_of(again.root) == []
    assert rankeval("report", again.root, "--out", tmp_path / "page.html").code == 0
    assert "results.examples: 5" in (tmp_path / "page.html").read_text(encoding="utf-8")
    again.change(results__examples=5, comparisons=None)
    refused = rankeval("validate", again.config)
    assert refused.code == 2
    assert "results.examples (line 29): found 5, and no comparisons" in refused.message
    arms = {"pop": 0.5, "als": 0.5}
    again.change(models=[*arms], comparisons={"baseline": "pop", "split": arms})
    refused = rankeval("validate", again.config)
    assert "found 5, while comparisons.split has every model; expected users with two models" in refused.message
