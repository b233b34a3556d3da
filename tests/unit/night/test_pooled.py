"""Nights whose config asks for comparisons over several: what is published of them, and who reads it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from rankeval_spark.results import Results
from tests.support import nights, two_nights
from tests.support.cli import rankeval
from tests.support.two_nights import NOW, THEN, values

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace


@pytest.fixture
def made(tmp_path: Path) -> Workspace:
    """Return a workspace whose first night was run."""
    workspace = two_nights.workspace(tmp_path / "workspace", nights.PARQUET)
    pairs = {"baseline": "pop", "nights": 7}
    rule = {"measure": "RR@2", "models": ["als"], "margin": 0.02}
    workspace.change(comparisons=pairs, gates=[rule], results__lists=True, checks={"drift": {"window_days": 7}})
    assert rankeval("run", workspace.config, "--date", THEN).code == 0
    return workspace


def test_a_night_publishes_the_mean_difference_of_each_user_over_nights(made: Workspace) -> None:
    assert set(Results(made.root).comparisons(date=THEN)["test"].to_pylist()) == {"t"}
    shown = rankeval("show", made.root, "--comparisons", "--nights", 7)
    assert "no comparison over 2 to 7 nights matches; they need comparisons.nights" in " ".join(shown.err.split())

    assert rankeval("run", made.config, "--date", NOW).code == 6
    every = Results(made.root).comparisons(date=NOW).to_pylist()
    (row,) = (row for row in every if row["test"] == "pooled")
    assert {row["nights"] for row in every if row["test"] == "t"} == {1}
    by_user: dict[int, list[float]] = {}
    for day in (THEN, NOW):
        for user, value in values("als", day).items():
            by_user.setdefault(user, []).append(value - values("pop", day)[user])
    means = np.array([np.mean(each) for each in by_user.values()])
    assert (row["model_id"], row["slice"], row["nights"], row["n_users"]) == ("als", "all", 2, 90)
    assert row["delta"] == pytest.approx(means.mean(), rel=0, abs=1e-12)
    assert row["p_value"] == pytest.approx(stats.ttest_1samp(means, 0).pvalue, rel=1e-9, abs=0)
    assert (row["family"], row["family_size"], row["verdict"]) == ("primary", 1, "worse")

    assert rankeval("run", made.config, "--date", NOW).code == 6  # again, as a clean run
    again = Results(made.root).comparisons(date=NOW).to_pylist()
    assert [{**each, "run_id": ""} for each in again] == [{**each, "run_id": ""} for each in every]
    assert (
        "differences of each user over 2 nights until 2026-01-09"
        in rankeval("show", made.root, "--comparisons", "--nights", 7).out
    )
    assert "pooled" not in rankeval("show", made.root, "--comparisons", "--json").out
    assert rankeval("gate", made.root).code == 6
    alone = rankeval("compare", made.root, "--against", "pop", "--json").out
    assert alone.count("model_id") == 2
    assert alone.count("pooled") == 0

    assert rankeval("score", made.root, "-m", "P@1", "--date", NOW).code == 0
    (kept,) = (row for row in Results(made.root).comparisons(date=NOW).to_pylist() if row["test"] == "pooled")
    assert kept["delta"] == row["delta"]


def test_a_night_that_is_not_pooled_says_why(made: Workspace) -> None:
    made.change(policies={"missing": "exclude"})
    done = rankeval("run", made.config, "--date", NOW)
    assert "no measure is defined as on a night before, so none is pooled" in " ".join(done.out.split())
    made.change(policies={})
    cleared = rankeval("maintain", made.root, "--keep-days", 1, "--date", NOW + timedelta(days=1))
    assert cleared.code == 0, cleared.err
    done = rankeval("run", made.config, "--date", NOW)
    assert f"an earlier night is left out: nightly, {THEN}, whose users rankeval maintain" in " ".join(done.out.split())
    assert set(Results(made.root).comparisons(date=NOW)["test"].to_pylist()) == {"t"}
    assert rankeval("show", made.root, "--nights", 7).code == 2


def test_a_call_has_one_night() -> None:
    frame = {"user_id": ["a"], "item_id": ["x"], "score": [1.0]}
    with pytest.raises(ConfigError, match=r"comparisons=\)\.nights: found 7; expected one night"):
        evaluate(frame, frame, measures=["RR"], baseline="pop", comparisons={"nights": 7})
