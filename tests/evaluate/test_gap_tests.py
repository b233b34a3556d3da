"""A p for the gap between groups: whether their means may be equal."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from rankeval_spark.statistics import hashed_random
from tests.support.arrow_frames import dicts, in_chunks, judgements, ranking, table
from tests.support.sections import measured
from tests.support.threads import threads

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark import Evaluation

REPLICATES: Final = 200
COUNTRIES: Final = ("AT", "AT", "DE", "FR", "FR", None)
USERS: Final = {f"u{index:03d}": COUNTRIES[index % len(COUNTRIES)] for index in range(360)} | {"one": "IT"}
"""IT has a user, and of 60 users the country is not known."""


def first_rank(index: int) -> int:
    """Users of DE find their item at rank 1 more often."""
    return 1 if index % 5 == 0 or (index % 6 == 2 and index < 84) else 2


def evaluation(n_chunks: int = 1) -> Evaluation:
    lists = {user: "hit b" if first_rank(index) == 1 else "b hit" for index, user in enumerate(USERS)}
    return measured(
        in_chunks(ranking(lists), n_chunks),
        in_chunks(judgements({user: {"hit": 1} for user in lists}), n_chunks),
        measures=["RR@2", "P@1", "P@2", "ItemCoverage@2"],
        segments=table("user_id country", *USERS.items()),
        slices=["country"],
        min_slice_size=5,
    )


def rows_of(tests: pa.Table) -> dict[tuple[str, int], Any]:
    return {(row["measure"], row["k"]): row for row in dicts(tests)}


def naive_p(values: dict[str, float]) -> float:
    """Draw the users of each group as often as their weights say, and compare means in pure Python."""
    hashes = hashed_random.hash_ids([*values])
    drawn = hashed_random.poisson_weights(hashes, seed=3, replicates=REPLICATES).tolist()
    groups: dict[str, list[tuple[float, list[int]]]] = {"AT": [], "DE": [], "FR": []}
    for (user, value), weights in zip(values.items(), drawn, strict=True):
        if USERS[user] in groups:
            groups[str(USERS[user])].append((value, weights))

    def greatest_t(samples: list[list[float]], centres: list[float]) -> float:
        means = [statistics.fmean(one) for one in samples]
        errors = [statistics.variance(one) / len(one) for one in samples]
        away = [mean - centre for mean, centre in zip(means, centres, strict=True)]
        pairs = [(abs(away[g] - away[h]), errors[g] + errors[h]) for g, h in itertools.combinations(range(3), 2)]
        return max(distance / math.sqrt(variance) for distance, variance in pairs)

    own = [[value for value, _ in users] for users in groups.values()]
    observed = greatest_t(own, [0.0] * len(own))
    centres = [statistics.fmean(one) for one in own]
    replicates = [
        [[value for value, weights in users for _ in range(weights[b])] for users in groups.values()]
        for b in range(REPLICATES)
    ]
    n_extreme = sum(greatest_t(one, centres) >= observed for one in replicates)
    return (1 + n_extreme) / (1 + REPLICATES)


def test_p_is_the_share_of_replicates_that_lie_as_far_from_the_means() -> None:
    result = evaluation()
    found = rows_of(result.gap_tests(replicates=REPLICATES, seed=3))
    gaps = rows_of(result.gaps)
    ranks = {user: first_rank(index) for index, user in enumerate(USERS)}
    expected = {
        ("RR", 2): naive_p({user: 1 / rank for user, rank in ranks.items()}),
        ("P", 1): naive_p({user: float(rank == 1) for user, rank in ranks.items()}),
        ("P", 2): 1.0,
    }
    assert {key: row["p_value"] for key, row in found.items()} == expected
    assert 1 / 201 < expected["RR", 2] < 0.05
    assert {key: (row["gap"], row["n_groups"]) for key, row in found.items()} == {
        key: (pytest.approx(gaps[key]["gap"], abs=1e-12), 3) for key in expected
    }
    assert {row["family_size"] for row in found.values()} == {3}
    assert found["RR", 2]["p_adjusted"] == pytest.approx(3 * min(expected.values()), abs=1e-12)


def test_chunks_and_threads_change_nothing_and_measures_may_be_picked() -> None:
    one = rows_of(evaluation().gap_tests(measures=["RR@2"], replicates=REPLICATES, seed=3))
    with threads(3):
        split = evaluation(n_chunks=7)
    other = rows_of(split.gap_tests(measures=["RR@2"], replicates=REPLICATES, seed=3))
    assert list(one) == [("RR", 2)]
    assert one == other


def test_without_two_groups_there_is_no_p() -> None:
    users = ["a", "b"]
    result = measured(
        ranking(dict.fromkeys(users, "hit")),
        judgements({user: {"hit": 1} for user in users}),
        measures=["P@1"],
        segments=table("user_id country", ("a", "AT"), ("b", None)),
        slices=["country"],
        min_slice_size=1,
    )
    (row,) = dicts(result.gap_tests(replicates=100))
    assert (row["n_groups"], row["gap"], row["p_value"], row["p_adjusted"]) == (1, None, None, None)
    assert row["reason"] == "few_groups"


@pytest.mark.parametrize(
    ("n_last", "ranks", "reason"),
    [
        (19, (1, 2, 2), "few_values"),
        (20, (1, 2, 2), ""),
        (30, (1, None, 2), ""),
        (29, (1, None, 2), "few_values"),
        (30, (2, 2, 2), "few_values"),
    ],
)
def test_groups_with_fewer_than_20_users_above_0_or_of_equal_users_have_no_p(
    n_last: int, ranks: tuple[int | None, ...], reason: str
) -> None:
    """Of IT one user in three finds nothing where a rank is None."""
    users = {f"u{number}": "IT" if number < n_last else ("AT", "DE")[number % 2] for number in range(150)}
    lists = {}
    for number, (user, country) in enumerate(users.items()):
        rank = ranks[number % 3] if country == "IT" else 1 + number % 3 // 2
        lists[user] = {1: "hit b", 2: "b hit", None: "b c"}[rank]
    result = measured(
        ranking(lists),
        judgements({user: {"hit": 1} for user in users}),
        measures=["RR@2"],
        segments=table("user_id country", *users.items()),
        slices=["country"],
        min_slice_size=1,
    )
    (row,) = dicts(result.gap_tests(replicates=100))
    assert (row["n_groups"], row["gap"] is None, row["reason"]) == (3, False, reason)
    assert (row["p_value"] is None, row["family_size"]) == (bool(reason), 0 if reason else 1)


def test_what_cannot_be_tested_is_said_before_anything_runs() -> None:
    result = evaluation()
    with pytest.raises(ConfigError) as refused:
        result.gap_tests(measures=["RR@3", "ItemCoverage@2"])
    message = str(refused.value)
    assert "gap_tests(measures=)[0]" in message
    assert "did you mean 'RR@2'?" in message
    assert "'ItemCoverage@2'" in message
    with pytest.raises(ConfigError, match=r"gap_tests\(replicates=\)"):
        result.gap_tests(replicates=5)
    without = evaluate(ranking({"a": "hit"}), judgements({"a": {"hit": 1}}), measures=["P@1"])
    with pytest.raises(ConfigError, match=r"evaluate\(slices=\)"):
        without.gap_tests()
