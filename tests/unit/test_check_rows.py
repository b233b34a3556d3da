"""Rows of ``checks``: each share against its thresholds, and facts that come in parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from rankeval_spark.config import Checks, Threshold
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount


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


@pytest.mark.parametrize("order", [1, -1])
def test_facts_that_come_in_parts_are_put_together_whatever_their_order(order: int) -> None:
    models = [{"model_id": name, "n_missing": 2, "n_judged": 2} for name in "xyz"]
    lengths = [{"length": length, "n_items": n, "item": f"i{length}"} for length, n in ((1, 1), (2, 3), (0, 1))]
    values = [{"segment": "c", "value": value} for value in ("DE", " de", "FR", "Fr", "AT")]

    def whole(check: str, parts: Sequence[Mapping[str, object]]) -> tuple[int, int, list[str]]:
        fact = check_rows.joined_fact(CheckCount("", check, 0, 0, [json.dumps(part) for part in parts[::order]]))
        return fact.count, fact.total, [*fact.sample_keys]

    assert whole(check_rows.MISSING_USERS, models) == (2, 2, ["z"])
    assert whole(check_rows.VECTOR_LENGTHS, lengths) == (2, 5, ["i2: 2 numbers", "i0: 0 numbers", "i1: 1 number"])
    assert whole(check_rows.ALIKE_VALUES, values) == (4, 5, ["c: ' de', 'DE'", "c: 'FR', 'Fr'"])
    for check in (check_rows.MISSING_USERS, check_rows.VECTOR_LENGTHS, check_rows.ALIKE_VALUES):
        assert whole(check, []) == (0, 0, [])
