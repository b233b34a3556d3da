"""A night of an A/B test whose users have earlier values, which are covariates of their comparison."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from scipy import stats

from rankeval_spark import evaluate_config
from rankeval_spark.results import Results
from tests.support import arms
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS

if TYPE_CHECKING:
    from tests.support.nights import Workspace

SPLIT: Final = {"baseline": "a", "split": {"a": 0.5, "b": 0.5}}
THIRD: Final = WITHOUT_ROWS


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = arms.nights_of_a_test(tmp_path_factory.mktemp("covariates"))
    assert rankeval("run", found.config, "--date", FIRST).code == 0
    found.change(comparisons={**SPLIT, "covariate": FIRST.isoformat()})
    done = rankeval("run", found.config, "--date", SECOND)
    assert done.code == 0, done.err
    return found


def by_hand(before: np.ndarray, now: np.ndarray, is_b: np.ndarray) -> tuple[float, float]:
    """Return the adjusted difference and its standard error, by a regression of numpy on history and earlier parts."""
    ratios = [now[is_b == side, 0].sum() / now[is_b == side, 1].sum() for side in (False, True)]
    own = np.where(is_b, ratios[1], ratios[0])
    base = np.where(is_b, now[is_b, 1].mean(), now[~is_b, 1].mean())
    terms = (now[:, 0] - own * now[:, 1]) / base
    known = ~np.isnan(before[:, 0])
    covariates = np.column_stack([known, np.where(known[:, None], before, 0.0)])
    within = covariates - np.where(is_b[:, None], covariates[is_b].mean(axis=0), covariates[~is_b].mean(axis=0))
    theta = np.linalg.lstsq(within, terms, rcond=None)[0]
    rank = np.linalg.matrix_rank(within)
    rest, steps = terms - within @ theta, covariates[is_b].mean(axis=0) - covariates[~is_b].mean(axis=0)
    square = sum(rest[is_b == side].var(ddof=1) / (is_b == side).sum() for side in (False, True))
    n = len(now) - 2
    return ratios[1] - ratios[0] - steps @ theta, float(np.sqrt(square * n / (n - rank)))


def test_differences_are_those_of_a_regression_on_the_earlier_values(workspace: Workspace) -> None:
    results = Results(workspace.root)
    users = {day: results.arrow("user_metrics", date=day).to_pylist() for day in (FIRST, SECOND)}
    rows = {row["measure"]: row for row in results.arrow("comparisons", date=SECOND).to_pylist()}
    for measure, k, column in (("Success", 1, "success"), (arms.MICRO, 10, "p_agg_micro_denom_len")):
        parts: dict[Any, dict[str, tuple[float, float]]] = {}
        for day, of_day in users.items():
            weighed = (
                (row, 1.0 if measure == "Success" else row[f"{column}__weight"]) for row in of_day if row["k"] == k
            )
            parts[day] = {row["user_id"]: (row[column] * weight, weight) for row, weight in weighed}
        names = sorted(parts[SECOND])
        now = np.array([parts[SECOND][name] for name in names])
        before = np.array([parts[FIRST].get(name, (np.nan, np.nan)) for name in names])
        delta, error = by_hand(before, now, np.array([int(name[1:]) % 2 == 1 for name in names]))
        row = rows[measure]
        assert row["delta"] == pytest.approx(delta, rel=0, abs=1e-12)
        half = stats.t.ppf(0.975, row["freedom"]) * error
        assert [row["ci_low"], row["ci_high"]] == pytest.approx([delta - half, delta + half], rel=0, abs=1e-12)
        assert 0.05 < row["variance_removed"] < 0.9
        assert row["value"] == pytest.approx(sum(now[1::2, 0]) / sum(now[1::2, 1]), rel=0, abs=1e-12)


def test_scoring_again_keeps_the_covariates(workspace: Workspace) -> None:
    def compared() -> dict[str, Any]:
        rows = json.loads(rankeval("show", workspace.root, "--comparisons", "--json").out)
        return {row["measure"]: row["delta"] for row in rows}

    before = compared()
    done = rankeval("score", workspace.root, "--date", SECOND, "--measure", "RR@10")
    assert done.code == 0, done.err
    after = compared()
    assert {name: after[name] for name in before} == pytest.approx(before, rel=0, abs=1e-12)


def test_a_comparison_with_another_baseline_says_that_it_is_without_covariates(workspace: Workspace) -> None:
    words = f"without the covariates of {FIRST}, which the published comparisons have"
    said = {model: rankeval("compare", workspace.root, "--against", model, "--date", SECOND) for model in "ab"}
    assert {model: words in " ".join(done.err.split()) for model, done in said.items()} == {"a": False, "b": True}
    back = rankeval("plan", workspace.root, "--against", "previous", "--date", SECOND)
    assert "found 'previous'; expected a model of" in back.err


def test_a_config_evaluated_in_a_notebook_has_no_covariates(workspace: Workspace) -> None:
    result = evaluate_config(workspace.config, SECOND)
    with pytest.warns(UserWarning, match="comparisons.covariate is read by rankeval run alone"):
        rows = result.comparisons
    assert set(rows["test"].to_pylist()) == {"unpaired"}
    assert rows["variance_removed"].null_count == rows.num_rows


@pytest.mark.parametrize(
    ("comparisons", "code", "words"),
    [
        (
            {**SPLIT, "covariate": "2025-12-01"},
            0,
            "covariate: 2025-12-01 has no published night; models are compared without",
        ),
        (
            {**SPLIT, "covariate": SECOND.isoformat()},
            2,
            "covariate: found 2026-01-02, on which a and b had different users already",
        ),
        (
            {**SPLIT, "covariate": "2026-01-03"},
            2,
            "covariate: found 2026-01-03, for the night of 2026-01-03; expected an earl",
        ),
        (
            {"baseline": "a", "covariate": FIRST.isoformat()},
            2,
            "expected the models of an A/B test in split",
        ),
    ],
)
def test_a_covariate_has_to_come_before_the_test(
    workspace: Workspace, comparisons: dict[str, Any], code: int, words: str
) -> None:
    workspace.change(comparisons=comparisons)
    done = rankeval("run", workspace.config, "--date", THIRD)
    assert done.code == code, done.err
    assert words in " ".join((done.out + done.err).split())


def test_a_night_of_the_test_is_refused_though_its_config_did_not_say_so(workspace: Workspace) -> None:
    workspace.change(comparisons={"baseline": "a"})
    assert rankeval("run", workspace.config, "--date", SECOND).code == 0
    workspace.change(comparisons={**SPLIT, "covariate": SECOND.isoformat()})
    done = rankeval("run", workspace.config, "--date", THIRD)
    assert done.code == 2
    assert "2026-01-02, on which a and b had different users already; expected a night before the A/B" in " ".join(
        done.err.split()
    )
