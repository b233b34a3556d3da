"""A night with rules: the verdicts are published, the exit code says that one failed, and they can be judged again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("spark")
def test_results_are_published_whatever_the_rules_say_and_can_be_judged_again(tmp_path: Path) -> None:
    workspace = nights.workspace(
        tmp_path / "gated",
        format_=nights.PARQUET,
        gates=[
            {"measure": "RR@2", "at_least": 0.1, "models": ["als"]},
            {"measure": "RR@2", "at_least": 1.0, "models": ["pop"]},
            {"measure": "RR@2", "least_gain": 0},
            {"measure": "GroupGap(RR)@2", "slice": "country", "at_most": 0.2, "models": ["als"]},
        ],
        slicing__min_slice_size=1,
        comparisons={"baseline": "pop", "tests": ["t", "sign", "bootstrap"], "replicates": 100},
    )
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 6, done.err
    assert "failed" in done.out
    assert "worse than pop (" in " ".join(done.out.split())

    rows = Results(workspace.root).gates(date=FIRST).sort_by("gate").to_pylist()
    assert [(row["model_id"], row["measure"], row["k"], row["verdict"]) for row in rows] == [
        ("als", "RR", 2, "passed"),
        ("pop", "RR", 2, "failed"),
        ("als", "RR", 2, "failed"),
        ("als", "GroupGap(RR)", 2, "failed"),  # AT: ann finds her best item first, bob nothing within 2; DE: nothing
    ]
    assert (rows[3]["slice"], rows[3]["slice_values"], rows[3]["observed"]) == ("country", [], 0.5)
    means = Results(workspace.root).metrics(date=FIRST, slice="all", measure="RR", k=2)
    published = {row["model_id"]: row["value"] for row in means.to_pylist()}
    assert [row["observed"] for row in rows[:2]] == [published["als"], published["pop"]]

    again = rankeval("gate", workspace.root, "--date", FIRST)
    assert again.code == 6, again.err
    compared = Results(workspace.root).comparisons(date=FIRST)
    before = sorted(map(str, compared.drop_columns([C.RUN_ID]).to_pylist()))
    assert rankeval("run", workspace.config, "--date", FIRST).code == 6
    after = Results(workspace.root).comparisons(date=FIRST)
    assert sorted(map(str, after.drop_columns([C.RUN_ID]).to_pylist())) == before != []
    assert set(compared["test"].to_pylist()) == {"t", "sign", "bootstrap"}

    assert rankeval("score", workspace.root, "-m", "P@1", "--date", FIRST).code == 0
    kept = Results(workspace.root).gates(date=FIRST).sort_by("gate").to_pylist()
    assert [row["explanation"] for row in kept] == [row["explanation"] for row in rows]

    other = workspace.change(gates=[{"measure": "RR@2", "at_most": 1.0}])
    assert rankeval("gate", workspace.root, "--config", other).code == 0

    shown = rankeval("show", workspace.root, "--comparisons", "--measure", "RR", "--k", 2)
    assert shown.code == 0, shown.err
    assert "model - pop" in shown.out
    assert "not tested: few differences" in " ".join(shown.out.split())
    assert shown.out.count("RR@2") == 1  # one line, whatever the tests
