"""A p for the gap between groups: more than lots would make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from rankeval_spark.statistics.resampling import hashed_random
from tests.support.arrow_frames import dicts, in_chunks, judgements, ranking, table

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark import Evaluation

REPLICATES: Final = 200
COUNTRIES: Final = ("AT", "AT", "DE", "FR", "FR", None)
USERS: Final = {f"u{index:02d}": COUNTRIES[index % len(COUNTRIES)] for index in range(60)} | {"one": "IT"}
"""IT has a user, and of ten users the country is not known."""


def first_rank(index: int) -> int:
    """Users of DE find their item at rank 1 more often."""
    return 1 if index % 4 == 0 or (index % 6 == 2 and index < 40) else 2


def evaluation(n_chunks: int = 1, threads: int | None = None) -> Evaluation:
    lists = {user: "hit b" if first_rank(index) == 1 else "b hit" for index, user in enumerate(USERS)}
    return evaluate(
        in_chunks(ranking(lists), n_chunks),
        in_chunks(judgements({user: {"hit": 1} for user in lists}), n_chunks),
        measures=["RR@2", "P@1", "P@2", "ItemCoverage@2"],
        segments=table("user_id country", *USERS.items()),
        slices=["country"],
        min_slice_size=5,
        threads=threads,
    )


def rows_of(tests: pa.Table) -> dict[tuple[str, int], Any]:
    return {(row["measure"], row["k"]): row for row in dicts(tests)}


def naive_p(values: dict[str, float]) -> float:
    """Draw labels user by user, and compare means in pure Python."""
    kept = {user: (USERS[user], value) for user, value in values.items() if USERS[user] not in {None, "IT"}}
    sizes = {name: sum(own == name for own, _ in kept.values()) for name in ("AT", "DE", "FR")}
    ends = np.cumsum([n / len(kept) for n in sizes.values()])[:-1]

    def gap(labels: dict[str, str]) -> float:
        groups: dict[str, list[float]] = {}
        for user, label in labels.items():
            groups.setdefault(label, []).append(kept[user][1])
        means = [sum(group) / len(group) for group in groups.values()]
        return max(means) - min(means)

    drawn = {
        user: hashed_random.uniforms(hashed_random.user_hashes([user]), seed=3, replicates=REPLICATES)[0] / 2**32
        for user in kept
    }
    observed = gap({user: str(own) for user, (own, _) in kept.items()})
    as_large = sum(
        gap({user: list(sizes)[int(np.searchsorted(ends, drawn[user][b], side="right"))] for user in kept})
        >= observed * (1 - 1e-10)
        for b in range(REPLICATES)
    )
    return (1 + as_large) / (1 + REPLICATES)


def test_p_is_the_share_of_random_groups_that_lie_as_far_apart() -> None:
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
    other = rows_of(evaluation(n_chunks=7, threads=3).gap_tests(measures=["RR@2"], replicates=REPLICATES, seed=3))
    assert list(one) == [("RR", 2)]
    assert one == other


def test_without_two_groups_there_is_no_p() -> None:
    users = ["a", "b"]
    result = evaluate(
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


@pytest.mark.parametrize(("n_last", "reason"), [(1, "few_users"), (4, "few_users"), (5, "")])
def test_groups_of_so_few_users_that_random_ones_are_empty_have_no_p(n_last: int, reason: str) -> None:
    users = {f"u{number}": "IT" if number < n_last else ("AT", "DE")[number % 2] for number in range(40)}
    result = evaluate(
        ranking({user: "hit b" if int(user[1:]) % 3 else "b hit" for user in users}),
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
