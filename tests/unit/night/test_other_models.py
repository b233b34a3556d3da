"""Agreement of two models in a night: published per slice and cutoff, compared, judged, and not scored afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import columns as C
from rankeval_spark.results import Results
from tests.support import arrow_frames, nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def night(tmp_path: Path) -> nights.Workspace:
    """Make a night that measures how far the models are from `pop`, compares them and has a rule."""
    made = nights.workspace(tmp_path / "workspace", format_=nights.PARQUET, models=["als", "pop"])
    made.change(
        measures=["RR", "Overlap(model='pop')", "RBO(model='pop')"],
        comparisons={"baseline": "pop"},
        gates=[
            {"measure": "Overlap(model='pop')@2", "at_most": 0.5},
            {"measure": "RBO(model='pop')@2", "slice": "country", "models": ["als"], "at_least": 0.1},
        ],
        slicing__min_slice_size=1,
    )
    return made


def test_night_publishes_them_per_slice_and_cutoff_with_intervals_and_judges_them(night: nights.Workspace) -> None:
    done = rankeval("run", night.config, "--date", FIRST)
    results = Results(night.root)
    here: dict[str, Any] = {"date": FIRST, "evaluation": "nightly"}

    # als gives ann a b, bob b a and eve c d; pop b a, d a and e a.
    of_users = results.user_metrics(**here, model_id="als", k=2)
    assert arrow_frames.by(of_users, "user_id", value="overlap_model_pop") == {
        **{"ann": 1, "bob": 1 / 2, "eve": 0, "kim": None, "ida": None},
    }
    means = results.metrics(**here, model_id="als", measure="Overlap(model='pop')")
    values = arrow_frames.by(means, C.SLICE, C.SLICE_VALUE, C.K, value=C.VALUE)
    assert (values["all", "", 1], values["all", "", 2]) == (0, pytest.approx(1 / 2, rel=0, abs=1e-12))
    assert (values["country", "AT", 2], values["country", "DE", 2]) == (pytest.approx(3 / 4, rel=0, abs=1e-12), 0)
    (row,) = arrow_frames.where(means, slice="all", k=2).to_pylist()
    assert row["n_users"] == 3
    assert row["ci_low"] < 1 / 2 < row["ci_high"]

    gaps = results.group_metrics(**here, model_id="als", k=2, measure="GroupGap(Overlap(model='pop'))")
    assert gaps[C.VALUE].to_pylist() == [pytest.approx(3 / 4, rel=0, abs=1e-12)]
    compared = results.comparisons(**here, measure="Overlap(model='pop')", k=2, slice="all")
    assert compared["model_id"].to_pylist() == ["als"]

    assert done.code == 6, done.err
    verdicts = arrow_frames.by(results.gates(**here), C.MODEL_ID, C.MEASURE, C.SLICE_VALUE, value="verdict")
    overlap, rbo = "Overlap(model='pop')", "RBO(model='pop',p=0.9)"
    assert verdicts["als", overlap, ""] == "passed"
    assert ("pop", overlap, "") not in verdicts
    assert (verdicts["als", rbo, "AT"], verdicts["als", rbo, "DE"]) == ("passed", "failed")

    refused = rankeval("score", night.root, "-m", "Jaccard(model='pop')@2", "--date", FIRST, "--evaluation", "nightly")
    assert refused.code == 4
    assert "Jaccard(model='pop'), which need the rows of the log; expected measures of the publi" in refused.message
