"""An experiment on a few topics: ``min_slice_size`` alone says whether it has p-values."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import evaluate
from tests.support.arrow_frames import dicts, table
from tests.support.textbook import X, Z

if TYPE_CHECKING:
    import pyarrow as pa

PLACES = 10


def log() -> tuple[pa.Table, pa.Table]:
    """Make lists of ten items, first the relevant ones: P@10 of a topic is its number in the textbook, in tenths."""
    rows = [
        (model, f"topic{topic}", f"{'hit' if place < hits else 'miss'}{place}", float(-place))
        for model, values in (("x", X), ("z", Z))
        for topic, hits in enumerate(values)
        for place in range(PLACES)
    ]
    judged = [(f"topic{topic}", f"hit{place}", 1.0) for topic in range(len(X)) for place in range(PLACES)]
    return table("model_id user_id item_id score", *rows), table("user_id item_id gain", *judged)


def exact_p() -> float:
    """Share of all signs of the differences whose sum lies as far from 0 as that of the table, or further."""
    sums = Counter({0: 1})
    for difference in (x - z for x, z in zip(X, Z, strict=True)):
        step: Counter[int] = Counter()
        for total, ways in sums.items():
            step[total + difference] += ways
            step[total - difference] += ways
        sums = step
    observed = abs(sum(X) - sum(Z))
    extreme = sum(ways for total, ways in sums.items() if abs(total) >= observed)
    return extreme / float(2 ** len(X))


@pytest.mark.parametrize(("least", "reason"), [(2, None), (20, None), (21, "few_users"), (30, "few_users")])
def test_twenty_topics_have_a_p_where_min_slice_size_lets_them(least: int, reason: str | None) -> None:
    recommendations, held_out = log()
    result = evaluate(recommendations, held_out, measures=["P@10"], baseline="z", slicing={"min_slice_size": least})
    (row,) = dicts(result.comparisons)
    assert (row["n_users"], row["is_small"], row["reason"]) == (20, reason is not None, reason)
    assert row["delta"] == pytest.approx((sum(X) - sum(Z)) / (PLACES * len(X)), rel=0, abs=1e-12)
    assert row["p_value"] == (None if reason else pytest.approx(exact_p(), rel=1e-9))
