"""Every block of code in the pages is run: Python, SQL and commands on published nights, YAML as configs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import polars
import pytest

from rankeval_spark import evaluate
from tests.support import query_night
from tests.support.cli import rankeval
from tests.support.code import ROOT
from tests.support.pages import COMMANDS_NOT_RUN, NOT_RUN, ON_SPARK, SQL_PAGE, Block, blocks

if TYPE_CHECKING:
    from tests.support.nights import Workspace

RULES_NOT_MET = 6


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return query_night.published(tmp_path_factory.mktemp("pages") / "workspace")


def here(page: str) -> list[str]:
    """List the blocks of Python of a page that need no Spark, one after another as a reader runs them."""
    own = [block for block in blocks("python") if block.page == page]
    return [block.text for block in own if not block.begins_as_one_of(ON_SPARK) and not block.begins_as_one_of(NOT_RUN)]


def _of_these_nights(text: str, workspace: Workspace) -> str:
    """Read these nights, whose users have a country, where a page reads the demo's, whose users have a gender."""
    for root in ("/data/results", "demo/results"):
        text = text.replace(root, workspace.root)
    return text.replace("gender", "country")


@pytest.mark.parametrize("page", sorted({block.page for block in blocks("python")} - {"CONTRIBUTING.md", SQL_PAGE}))
def test_python_of_a_page_runs(
    page: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "docs" / "reference")  # whose reader a user has copied
    names: dict[str, Any] = {**query_night.logs(), "root": workspace.root, "polars": polars, "deltalake": deltalake}
    for text in here(page):
        exec(_of_these_nights(text, workspace), names)
    assert here(page) or page == "docs/slices.md"


@pytest.mark.parametrize(
    "block",
    [block for block in blocks("") if block.commands and not block.begins_as_one_of(NOT_RUN)],
    ids=lambda b: b.place,
)
def test_commands_of_a_page_run(
    block: Block, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    inputs = {
        name: str(workspace.folder / "inputs" / table)
        for table, names in {
            "recommendations": ("logs/lists",),
            "held_out": ("logs/held_out", "truth/{date}.csv"),
            "segments": ("users.parquet",),
        }.items()
        for name in names
    }
    roots = dict.fromkeys(("/data/results", "demo/results", "RESULTS"), workspace.root)
    places = {**inputs, **roots, "gender": "country", "42": "ann", "demo/demo.yaml": str(workspace.config)}
    for words in block.commands:
        if words[0] in COMMANDS_NOT_RUN:
            continue
        is_own = words[0] in {"init", "validate"}
        names = places if is_own else {**places, "conf/nightly.yaml": str(workspace.config)}
        done = rankeval(*(names.get(word, word) for word in words))
        assert done.code in {0, RULES_NOT_MET}, (words, done.err)
        assert done.code == 0 or words[0] in {"run", "gate"}, (words, done.err)


def test_the_config_of_a_call_on_the_page_is_the_one_that_is_printed() -> None:
    (call,) = here("docs/operations.md")
    config = next(block.text for block in blocks("yaml") if block.page == "docs/operations.md")
    names: dict[str, Any] = {}
    exec(call, names)
    assert names["result"].to_config() == config


def test_the_fcp_of_surprise_is_made_of_user_metrics() -> None:
    """Ann has one pair, right, and Bob two, one of them right: 1 / (1 + 1)."""
    log = [("ann", "a", 2.0), ("ann", "b", 1.0), ("bob", "a", 3.0), ("bob", "b", 2.0), ("bob", "c", 1.0)]
    gains = [("ann", "a", 2.0), ("ann", "b", 1.0), ("bob", "a", 2.0), ("bob", "b", 1.0), ("bob", "c", 2.0)]
    frames = [
        polars.DataFrame(rows, schema=["user_id", "item_id", last], orient="row")
        for rows, last in ((log, "score"), (gains, "gain"))
    ]
    result = evaluate(*frames, measures=["FCP(agg='micro',ties='discordant')"])
    (block,) = (one for one in blocks("sql") if one.page != SQL_PAGE)
    with duckdb.connect() as connection:
        connection.register("user_metrics", result.user_metrics)
        assert connection.execute(block.text).fetchall() == [("model", 1 / 2)]


@pytest.mark.parametrize("page", ["docs/explain.md", "docs/advise.md"])
def test_what_a_page_shows_is_what_is_printed(capsys: pytest.CaptureFixture[str], page: str) -> None:
    names = dict[str, Any]()
    shown = [block.text for block in blocks("") if block.page == page and not block.commands]
    for text, output in zip(here(page), shown, strict=True):
        exec(text, names)
        assert capsys.readouterr().out == output


def test_every_block_is_run_or_has_a_reason() -> None:
    """YAML is read by tests/meta/test_docs.py."""
    missed = [
        block.place
        for block in blocks()
        if block.language not in {"python", "yaml", "sql"}
        and not block.commands
        and not block.begins_as_one_of(NOT_RUN)
    ]
    assert missed == []
    assert {block.language for block in blocks()} == {"", "ini", "python", "sh", "yaml", "sql"}


def test_every_exception_is_there() -> None:
    """What is run no more, or was rewritten, is not kept as an exception."""
    for page, start in [*ON_SPARK, *NOT_RUN]:
        assert any(block.page == page and block.text.startswith(start) for block in blocks()), (page, start)
