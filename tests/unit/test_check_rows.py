"""Rows of ``checks``: each share against its thresholds, and facts that come in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.config import Checks, Policies, Threshold
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def test_a_share_is_judged_by_its_thresholds() -> None:
    facts = [
        CheckCount("recommendations", "duplicates", 10, 100, ["a"]),
        CheckCount("recommendations", "null_keys", 60, 100, ["b"]),
        CheckCount("recommendations", "short_lists", 50, 100),
        CheckCount("recommendations", "extra_users", 99, 100),
        CheckCount("recommendations", "ties", 0, 0),
        CheckCount("recommendations", "rows", 100, 100),
    ]
    checks = Checks(
        duplicates=Threshold(warn=0.05, error=0.5),
        null_keys=Threshold(error=0.5),
        short_lists=Threshold(warn=0.5),
        extra_users=Threshold(),
        ties=Threshold(warn=0.1),
    )
    rows = check_rows.to_check_rows(facts, checks).to_pylist()
    assert [tuple(row[n] for n in ("check", "severity", "share", "threshold", "verdict")) for row in rows] == [
        ("duplicates", "error", 10 / 100, 0.05, "warn"),
        ("null_keys", "error", 60 / 100, 0.5, "error"),
        ("short_lists", "warn", 50 / 100, 0.5, "ok"),  # at the threshold is not above it
        ("extra_users", "info", 99 / 100, None, "ok"),
        ("ties", "warn", None, 0.1, "ok"),
        ("rows", "info", None, None, "ok"),
    ]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, {"held_out": "error", "recommendations": "error", "items": "error"}),
        ({"held_out_duplicates": "sum"}, {"held_out": "ok", "recommendations": "error", "items": "error"}),
        ({"held_out_duplicates": "last"}, {"held_out": "ok", "recommendations": "error", "items": "error"}),
        (
            {"attribution": "all", "attribution_window": "1d"},
            {"held_out": "ok", "recommendations": "error", "items": "error"},
        ),
        ({"lists": "pooled"}, {"held_out": "error", "recommendations": "ok", "items": "error"}),
    ],
)
def test_repeated_rows_are_only_counted_where_policies_read_them(
    policies: dict[str, Any], expected: dict[str, str]
) -> None:
    facts = [CheckCount(name, "duplicates", 6, 9) for name in ("held_out", "recommendations", "items")]
    facts.append(CheckCount("held_out", "null_keys", 6, 9))
    findings = Policies(**policies).expected_findings
    rows = check_rows.to_check_rows(facts, Checks(), expected=findings).to_pylist()
    assert {row["input"]: row["verdict"] for row in rows[:3]} == expected
    assert {row["share"] for row in rows} == {6 / 9}
    assert rows[3]["verdict"] == "error"
    assert {row["threshold"] for row in rows if row["verdict"] == "ok"} <= {None}


@pytest.mark.parametrize(("policy", "verdict"), [("keep", "warn"), ("drop", "warn"), ("drop_both", "ok")])
def test_judgements_in_train_are_no_fault_where_they_are_left_out(policy: Any, verdict: str) -> None:  # noqa: ANN401 - of a policy
    facts, findings = (
        [CheckCount("held_out", "held_out_in_train", 2, 3)],
        Policies(seen_in_train=policy).expected_findings,
    )
    (row,) = check_rows.to_check_rows(facts, Checks(), expected=findings).to_pylist()
    assert (row["count"], row["share"], row["verdict"]) == (2, 2 / 3, verdict)


@pytest.mark.parametrize("order", [1, -1])
def test_facts_that_come_in_parts_are_put_together_whatever_their_order(order: int) -> None:
    models = [(name, 2, 2) for name in "xyz"]
    lengths = [(length, n, f"i{length}") for length, n in ((1, 1), (2, 3), (0, 1))]
    values = [("c", value) for value in ("DE", " de", "FR", "Fr", "AT")]

    def whole(make: Callable[..., CheckCount], parts: Sequence[tuple[object, ...]]) -> tuple[int, int, list[str]]:
        fact = make(parts[::order])
        return fact.count, fact.total, [*fact.sample_keys]

    assert whole(check_rows.count_missing_users, models) == (2, 2, ["z"])
    assert whole(check_rows.count_vector_lengths, lengths) == (2, 5, ["i2: 2 numbers", "i0: 0 numbers", "i1: 1 number"])
    assert whole(check_rows.count_alike_values, values) == (4, 5, ["c: ' de', 'DE'", "c: 'FR', 'Fr'"])
    for make in (check_rows.count_missing_users, check_rows.count_vector_lengths, check_rows.count_alike_values):
        assert whole(make, []) == (0, 0, [])


def test_a_check_that_the_list_of_checks_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="duplicate_rows"):
        check_rows.to_check_rows([CheckCount("held_out", "duplicate_rows", 1, 2)], Checks())
    plain = [CheckCount("held_out", name, 1, 2) for name in ("rows", "bands.age")]
    assert [row["threshold"] for row in check_rows.to_check_rows(plain, Checks()).to_pylist()] == [None, None]
