"""One judgement per (user, item), and what counts of a judgement with several rows."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import columns as C
from rankeval_spark.engine.failures import RefusedError
from tests.support.engine_rows import Row, batch_of, held_out, input_table, judgement_rows, judgements_of, tuples

if TYPE_CHECKING:
    from rankeval_spark.config.policies import HeldOutDuplicates

AT = dt.datetime(2026, 1, 3, tzinfo=dt.UTC)
LATER = AT + dt.timedelta(seconds=1)


def judged(
    columns: str,
    *rows: tuple[Any, ...],
    duplicates: HeldOutDuplicates,
    ids: str = "string",
    groups: Mapping[str, int] | None = None,
) -> list[Row]:
    """Make one judgement per (user, item) of rows written by hand; no two may share the key."""
    batch = batch_of(input_table(held_out(columns, *rows), ids=ids))
    found = judgement_rows(batch, judgements_of(batch, duplicates=duplicates, groups=groups))
    keys = tuples(found, "user_id", "item_id")
    assert len(set(keys)) == len(keys)
    return found


@pytest.mark.parametrize(("policy", "gain"), [("max", 3.0), ("sum", 1.0 + 3.0 + 2.0)])
def test_a_repeated_judgement_has_the_gain_of_the_policy(policy: HeldOutDuplicates, gain: float) -> None:
    rows = [*(("u", "a", each) for each in (1.0, 3.0, 2.0)), ("u", "b", 0.5)]
    found = judged("user_id item_id gain", *rows, duplicates=policy)
    assert tuples(found, "item_id", "gain") == [("a", gain), ("b", 0.5)]


@pytest.mark.parametrize(
    ("gains", "total"),
    [
        ([0.1] * 10, 1.0),  # one by one 0.9999999999999999
        ([1e16, 1.0, -1e16], 1.0),
        ([0.7, 0.2, 0.1], 1.0),
        ([1e308, 1e308, -1e308], 1e308),
        ([1.0, 2.0**-53, 2.0**-106], 1 + 2.0**-52),  # above the middle of two doubles
        ([0.1] * 1000, 100.0),
    ],
)
def test_a_sum_is_rounded_once_in_any_order(gains: list[float], total: float) -> None:
    """Values are added up as gains are."""
    rows = [(order, "a", gain, gain) for order in ("up", "down") for gain in (gains if order == "up" else gains[::-1])]
    found = judged("user_id item_id gain value", *rows, duplicates="sum")
    assert tuples(found, "user_id", "gain", "value") == [("down", total, total), ("up", total, total)]


def test_a_repeated_judgement_fails_where_the_policy_is_error() -> None:
    found = judged("user_id item_id gain", ("u", "a", 1.0), ("v", "a", 2.0), duplicates="error")
    assert tuples(found, "user_id", "gain") == [("u", 1.0), ("v", 2.0)]  # an item judged for two users
    with pytest.raises(RefusedError, match=r"\[rankeval:held_out_duplicates\]"):
        judged("user_id item_id gain", ("u", "a", 1.0), ("u", "a", 1.0), duplicates="error")


def test_the_last_of_several_judgements_can_count() -> None:
    """Of two at one time the larger; one without a time is older than any other."""
    found = judged(
        "user_id item_id gain interacted_at",
        *(("u", "a", 5.0, AT), ("u", "a", 1.0, LATER), ("u", "a", 2.0, LATER), ("u", "a", 9.0, None)),
        *(("u", "b", 3.0, None), ("u", "b", 4.0, None), ("v", "a", 7.0, AT)),
        duplicates="last",
    )
    assert tuples(found, "user_id", "item_id", "gain") == [("u", "a", 2.0), ("u", "b", 4.0), ("v", "a", 7.0)]


@pytest.mark.parametrize("duplicates", ["max", "sum", "last", "error"])
def test_nothing_held_out_makes_no_judgement(duplicates: HeldOutDuplicates) -> None:
    assert judged("user_id item_id gain", duplicates=duplicates) == []


@pytest.mark.parametrize(("policy", "value"), [("max", 40.0), ("sum", 10.0 + 40.0 + 20.0), ("last", 20.0)])
def test_values_follow_the_rule_of_the_gains_each_for_itself(policy: HeldOutDuplicates, value: float) -> None:
    """The newest rows are two: of those the larger gain decides, and of equal gains the larger value."""
    rows = [("u", "a", 3.0, 40.0, AT), ("u", "a", 2.0, 10.0, LATER), ("u", "a", 2.0, 20.0, LATER)]
    found = judged("user_id item_id gain value interacted_at", *rows, duplicates=policy)
    assert [row[C.VALUE] for row in found] == [value]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_finite_number_counts_as_0_and_its_judgement_stays(value: float | None) -> None:
    found = judged("user_id item_id gain value", ("u", "a", 3.0, value), ("u", "b", 1.0, 2.5), duplicates="max")
    assert tuples(found, "item_id", "gain", "value") == [("a", 3.0, 0.0), ("b", 1.0, 2.5)]


@pytest.mark.parametrize("duplicates", ["max", "sum", "last"])
def test_groups_of_an_item_stay_with_its_judgement(duplicates: HeldOutDuplicates) -> None:
    """Bits of groups are the same in all copies."""
    rows = [("u", "a", 1.0, AT), ("u", "b", 2.0, AT), ("u", "a", 4.0, LATER)]
    found = judged("user_id item_id gain interacted_at", *rows, duplicates=duplicates, groups={"a": 5, "b": 2})
    assert tuples(found, "item_id", "groups") == [("a", 5), ("b", 2)]


def test_integer_ids_are_compared_as_integers() -> None:
    found = judged("user_id item_id gain", (7, 70, 1.0), (7, 70, 2.0), (70, 7, 3.0), duplicates="max", ids="bigint")
    assert tuples(found, "user_id", "item_id", "gain") == [(7, 70, 2.0), (70, 7, 3.0)]
