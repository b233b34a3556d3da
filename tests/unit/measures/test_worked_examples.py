"""The worked examples of the measure sheet, small enough to redo by hand."""

from __future__ import annotations

from fractions import Fraction
from math import log2
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rankeval_spark.measures import Ranking, registry
from tests.support.accuracy import is_accuracy
from tests.support.scored import values

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition

LIST_A = Ranking([None, 1, 1])
LIST_B = Ranking([1, 1, None])
EVENTS = Ranking([3, 1, 0, 2, 0])
TWO_IN_TOP_FIVE = Ranking([1, None, None, 1, None], missed=[1, 1])
NOTHING_RELEVANT = Ranking([None, 0], missed=[0])
FIVE_ONES = sum(1 / log2(rank + 1) for rank in range(1, 6))


@pytest.mark.parametrize(
    ("example", "measure", "ranking", "value"),
    [
        (1, "AP", LIST_A, Fraction(1, 2) * (Fraction(1, 2) + Fraction(2, 3))),
        (2, "AP", LIST_B, 1),
        (3, "RR", LIST_A, Fraction(1, 2)),
        (3, "RR", LIST_B, 1),
        (4, "nDCG", LIST_A, (1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3))),
        (5, "nDCG", Ranking([3, 5, 1]), (3 + 5 / log2(3) + 1 / 2) / (5 + 3 / log2(3) + 1 / 2)),
        (6, "nDCG", Ranking([1, 5, 3]), (1 + 5 / log2(3) + 3 / 2) / (5 + 3 / log2(3) + 1 / 2)),
        (7, "DCG@5", EVENTS, 3 + 1 / log2(3) + 2 / log2(5)),
        (7, "nDCG@5", EVENTS, (3 + 1 / log2(3) + 2 / log2(5)) / (3 + 2 / log2(3) + 1 / 2)),
        (8, "DCG(dcg='exp-log2')@5", EVENTS, 7 + 1 / log2(3) + 3 / log2(5)),
        (8, "nDCG(dcg='exp-log2')@5", EVENTS, (7 + 1 / log2(3) + 3 / log2(5)) / (7 + 3 / log2(3) + 1 / 2)),
        (9, "AP@6", Ranking([1, None, None, 1, 1, None]), (1 + Fraction(2, 4) + Fraction(3, 5)) / 3),
        (11, "P@5", TWO_IN_TOP_FIVE, Fraction(2, 5)),
        (11, "R@5", TWO_IN_TOP_FIVE, Fraction(1, 2)),
        (11, "F1@5", TWO_IN_TOP_FIVE, Fraction(4, 9)),
        (13, "ARHR", Ranking([None, 1, None, None, 1]), Fraction(1, 2) + Fraction(1, 5)),
        (14, "ARHR(gains='grade')", Ranking([2, None, None, 3]), 2 + Fraction(3, 4)),
        (19, "P@10", Ranking([1, None, 1]), Fraction(2, 10)),
        *((20, f"IPrec@{tenths / 10}", LIST_A, Fraction(2, 3)) for tenths in range(11)),
        (20, "IPrecAvg", LIST_A, Fraction(2, 3)),
        (20, "IPrecArea", LIST_A, Fraction(2, 3)),
    ],
)
def test_worked_example_of_one_list(example: int, measure: str, ranking: Ranking, value: float) -> None:
    assert values(measure, ranking) == pytest.approx([float(value)], rel=0, abs=1e-12), f"example {example}"


def test_mean_over_lists_a_and_b_is_mrr_and_map() -> None:
    assert np.mean(values("MRR", LIST_A, LIST_B)) == (1 / 2 + 1) / 2
    assert np.mean(values("MAP", LIST_A, LIST_B)) == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2, rel=0, abs=1e-12)


def test_mrr_of_four_users_with_first_hits_at_ranks_3_1_3_and_none() -> None:
    third = Ranking([None, None, 1])
    users = values("MRR", third, Ranking([1]), third, Ranking([None], missed=[1]))
    assert np.mean(users) == pytest.approx((1 / 3 + 1 + 1 / 3 + 0) / 4, rel=0, abs=1e-12)


def test_hit_rate_of_ten_users_seven_of_them_with_a_hit() -> None:
    users = [Ranking([None, 1])] * 7 + [Ranking([None, None], missed=[1])] * 3
    assert np.mean(values("HR@2", *users)) == 7 / 10


ACCURACY = [entry for entry in registry.entries("list") if is_accuracy(entry)]


@pytest.mark.parametrize("entry", ACCURACY, ids=lambda entry: entry.name)
def test_user_without_a_relevant_item_is_undefined_for_every_accuracy_measure(entry: Definition) -> None:
    cutoff = "" if entry.cutoff.need(entry.defaults) == "forbidden" else "@5"
    assert np.isnan(values(f"{entry.name}{cutoff}", NOTHING_RELEVANT)).all()


@pytest.mark.parametrize(
    ("measure", "with_2_relevant", "with_8_relevant"),
    [
        ("P@5", 2 / 5, 2 / 5),
        ("P(denom='len')@5", 2 / 4, 2 / 4),
        ("R@5", 2 / 2, 2 / 8),
        ("R(denom='min')@5", 2 / 2, 2 / 5),
        ("AP@5", (1 + 2 / 3) / 2, (1 + 2 / 3) / 8),
        ("AP(denom='min')@5", (1 + 2 / 3) / 2, (1 + 2 / 3) / 5),
        ("AP(denom='len')@5", (1 + 2 / 3) / 2, (1 + 2 / 3) / 4),
        ("AP(denom='k')@5", (1 + 2 / 3) / 5, (1 + 2 / 3) / 5),
        ("MeanP@5", (1 + 1 / 2 + 2 / 3 + 2 / 4 + 2 / 5) / 5, (1 + 1 / 2 + 2 / 3 + 2 / 4 + 2 / 5) / 5),
        ("AP(denom='hits')@5", (1 + 2 / 3) / 2, (1 + 2 / 3) / 2),
        ("nDCG(gains='binary')@5", (1 + 1 / 2) / (1 + 1 / log2(3)), (1 + 1 / 2) / FIVE_ONES),
        ("nDCG(gains='binary',ideal='k_ones')@5", (1 + 1 / 2) / FIVE_ONES, (1 + 1 / 2) / FIVE_ONES),
    ],
)
def test_hits_at_ranks_1_and_3_of_4_under_every_denominator(
    measure: str, with_2_relevant: float, with_8_relevant: float
) -> None:
    hits = [1, None, 1, None]
    found = values(measure, Ranking(hits), Ranking(hits, missed=[1] * 6))
    assert found == pytest.approx([with_2_relevant, with_8_relevant], rel=0, abs=1e-12)
