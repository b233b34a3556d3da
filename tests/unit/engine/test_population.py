"""Who enters the means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rankeval_spark.config import Policies
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.engine.outputs import ListOutputs
from rankeval_spark.engine.scorer import IS_EVALUATED, Members, find_members
from rankeval_spark.measures import MeasureSet
from tests.support.engine_rows import Row, compact_lists, score

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Population

KINDS: dict[str, Row] = {
    "both": {"n_recommended": 2, "hit_ranks": [1], "hit_gains": [1.0], "judged_gains": [1.0]},
    "extra": {"n_recommended": 2},
    "missing": {"judged_gains": [1.0]},
    "zero": {"n_recommended": 2, "hit_ranks": [1], "hit_gains": [0.0], "judged_gains": [0.0]},
}
"""A user of each kind."""

VALUES = {"both": 1 / 2, "extra": 0.0, "missing": 0.0, "zero": 1 / 2}
"""Share of judged items among their first two, a measure that every user has a value of."""


def members(policies: Policies, *users: str) -> Members:
    """Decide about users of these kinds."""
    counts = {
        "both": (1, 1, 1),
        "extra": (0, 0, 1),
        "missing": (1, 1, 0),
        "zero": (1, 0, 1),
        "missing and zero": (1, 0, 0),
    }
    n_judged, n_relevant, n_recommended = np.array([counts[user] for user in users]).T
    return find_members(n_judged, n_relevant, n_recommended, policies=policies)


def scored(policies: Policies, *users: str) -> list[Row]:
    """Score users of these kinds."""
    lists = compact_lists(*({"user_id": user, **KINDS[user]} for user in users))
    return score(ListOutputs(MeasureSet.parse(["Judged@2"]), policies, ((),)), lists)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("truth", {"both", "missing", "zero"}),
        ("judged", {"both", "missing", "zero"}),
        ("intersection", {"both", "zero"}),
        ("intersection_judged", {"both", "zero"}),
        ("run", {"both", "extra", "zero"}),
    ],
)
def test_a_population_has_its_members_and_only_counts_the_others(policy: Population, expected: set[str]) -> None:
    policies = Policies(population=policy)
    found = scored(policies, *KINDS)
    assert [(row["user_id"], row["judged"], row[IS_EVALUATED]) for row in found] == [
        (user, VALUES[user] if user in expected else None, user in expected) for user in KINDS
    ]
    assert members(policies, *KINDS).is_evaluated.tolist() == [user in expected for user in KINDS]


@pytest.mark.parametrize("policy", ["truth", "judged"])
def test_users_without_a_list_can_be_left_out(policy: Population) -> None:
    found = scored(Policies(population=policy, missing="exclude"), *KINDS)
    assert {row["user_id"] for row in found if row[IS_EVALUATED]} == {"both", "zero"}


@pytest.mark.parametrize("population", ["truth", "judged", "intersection", "intersection_judged", "run"])
def test_what_a_user_counts_for_does_not_depend_on_the_population(population: Population) -> None:
    found = members(Policies(population=population), "both", "extra", "missing", "zero", "missing and zero")
    assert found.is_missing.tolist() == [False, False, True, False, True]
    assert found.is_zero_relevant.tolist() == [False, False, False, True, True]
    assert found.is_extra.tolist() == [False, True, False, False, False]
    assert found.has_both.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("policies", "refused"),
    [({"missing": "error"}, "missing"), ({"zero_relevant": "error"}, "zero")],
)
def test_a_case_of_error_fails_and_no_other_does(policies: dict[str, Any], refused: str) -> None:
    under = Policies(population="truth", **policies)
    found = scored(under, *(user for user in KINDS if user != refused))
    assert [(row["user_id"], row["judged"]) for row in found] == [
        (user, None if user == "extra" else VALUES[user]) for user in KINDS if user != refused
    ]
    with pytest.raises(RefusedError, match=rf"\[rankeval:{next(iter(policies))}\]"):
        scored(under, *KINDS)


def test_error_for_users_without_a_relevant_item_looks_at_the_population_only() -> None:
    """Under `intersection` the missing user who has none is no fault."""
    policies = Policies(population="intersection", missing="exclude", zero_relevant="error")
    assert members(policies, "both", "missing and zero").is_evaluated.tolist() == [True, False]
    with pytest.raises(RefusedError, match=r"\[rankeval:zero_relevant\]"):
        members(policies, "both", "zero")
