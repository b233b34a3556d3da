"""A results root of an earlier build, which recorded definitions as text: what was found, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest

from tests.support import nights, query_night
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from pathlib import Path

INPUT_FAULT = 4


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Publish two nights, then write ``runs`` as it was before it had the column of policies."""
    rule = {"measure": "nDCG@2", "margin": 0.5, "against": "previous"}
    folder = tmp_path_factory.mktemp("earlier")
    workspace = nights.workspace(folder, measures=["nDCG"], cutoffs=[2], slicing__min_slice_size=1, gates=[rule])
    for day in (FIRST, SECOND):
        query_night.run(workspace, day)
    runs = f"{workspace.root}/runs"
    rows = deltalake.DeltaTable(runs).to_pyarrow_table()
    measures = [
        one and [{"measure": each["measure"], "k": each["k"], "definition": "nDCG"} for each in one]
        for one in rows["measures"].to_pylist()
    ]
    earlier = rows.drop_columns(["policies", "measures"]).append_column("measures", pa.array(measures))
    deltalake.write_deltalake(runs, earlier, mode="overwrite", schema_mode="overwrite")
    return workspace.root


@pytest.mark.parametrize("command", ["gate", "report", "compare"])
def test_definitions_of_an_earlier_build_are_named_with_the_way_out(command: str, root: str, tmp_path: Path) -> None:
    more = {"report": ["--out", str(tmp_path / "night.html")], "compare": ["--against", "previous"], "gate": []}
    refused = rankeval(command, root, *more[command])
    assert refused.code == INPUT_FAULT
    refused.assert_readable()
    assert "found definitions as rankeval-spark" in refused.message
    assert "set results.root to a new folder and run the dates again" in refused.message
    assert " of 2026-01-0" in refused.message


def test_what_needs_no_definition_is_still_shown(root: str) -> None:
    shown = rankeval("show", root)
    assert shown.code == 0
    assert "nDCG@2" in shown.out
