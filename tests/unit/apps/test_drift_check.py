"""Means against the band of the nights before, from rows of ``metrics``."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.apps.run_history import to_drift_fact

if TYPE_CHECKING:
    from rankeval_spark.result_rows.check_rows import CheckCount

FIRST = date(2026, 1, 1)


def row(value: float | None, *, measure: str = "nDCG", k: int = 10, day: int = 7, **others: object) -> dict[str, Any]:
    spread = {"std_error": 0.005, "ci_low": 0.29, "ci_high": 0.31, "ci_level": 0.95}
    where = {"model_id": "als", "measure": measure, "k": k, "evaluation_date": FIRST + timedelta(days=day)}
    return {**where, "value": value, **spread, **others}


def checked(tonight: list[dict[str, Any]], past: list[dict[str, Any]], **links: dict[str, str]) -> CheckCount:
    fact = to_drift_fact(tonight, past, **links)
    assert fact is not None
    return fact


def test_a_mean_outside_the_band_of_seven_nights_is_counted_and_named() -> None:
    """Seven equal nights: the band is 0.3 -+ 2 standard errors."""
    past = [row(0.3, day=day) for day in range(7)] + [row(0.5, measure="AP", k=0, day=day) for day in range(6)]
    fact = checked([row(0.25), row(0.1, measure="AP", k=0), row(0.3, k=5)], past)
    assert (fact.input, fact.check, fact.count, fact.total) == ("metrics", "drift", 1, 1)
    assert fact.sample_keys == ["als nDCG@10: 0.25, expected 0.29 to 0.31 by 7 nights"]

    inside = checked([row(0.309)], past)
    assert (inside.count, inside.total, inside.sample_keys) == (0, 1, [])


def test_nights_without_a_value_do_not_count_and_a_mean_without_one_has_not_drifted() -> None:
    past = [row(0.3 if day else None, day=day) for day in range(7)]
    assert to_drift_fact([row(0.1)], past) is None
    past.append(row(0.3, day=8))
    fact = checked(
        [row(None), row(0.1, model_id="popular")], [*past, *(row(0.3, day=day, model_id="popular") for day in range(7))]
    )
    assert (fact.count, fact.total) == (1, 1)


def test_where_no_mean_can_be_held_against_a_band_nothing_is_checked() -> None:
    past = [row(0.3, day=day) for day in range(7)]
    assert to_drift_fact([row(0.1)], []) is None
    assert to_drift_fact([row(0.1)], past[1:]) is None
    assert to_drift_fact([row(None)], past) is None
    assert to_drift_fact([], past) is None


def test_only_the_means_that_are_farthest_outside_are_named() -> None:
    past = [row(0.3, k=k, day=day) for k in range(1, 6) for day in range(7)]
    fact = checked([row(0.3 + k / 10, k=k) for k in range(1, 6)], past)
    assert fact.count == 5
    assert [text.split(":")[0] for text in fact.sample_keys] == ["als nDCG@5", "als nDCG@4", "als nDCG@3"]


def test_standard_error_of_logarithms_is_brought_into_units_of_the_value() -> None:
    """GMAP's is that of logarithms: 1/60 of them is 0.3 / 60 = 0.005 of a value of 0.3."""
    past = [row(0.3, day=day, std_error=1 / 60) for day in range(7)]
    (text,) = checked([row(0.28)], past, links={"nDCG": "log"}).sample_keys
    assert "expected 0.29 to 0.31" in text
    assert checked([row(0.28)], past).count == 0


@pytest.mark.parametrize("values", [(0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.28)])
def test_one_odd_night_does_not_open_the_band(values: tuple[float, ...]) -> None:
    past = [row(value, day=day) for day, value in enumerate((*values, 0.9))]
    assert checked([row(0.45)], past).count == 1


def test_a_mean_as_on_other_weekends_has_not_drifted_and_one_as_on_weekdays_has() -> None:
    """FIRST is a Thursday, so tonight is one too, and Thursdays are the high days."""
    past = [row(0.5 if day % 7 == 0 else 0.3, day=day) for day in range(56)]
    assert checked([row(0.501, day=56)], past).count == 0
    (text,) = checked([row(0.3, day=56)], past).sample_keys
    assert text == "als nDCG@10: 0.3, expected 0.49 to 0.51 by 56 nights and their weekdays"
    assert checked([row(0.5, day=57)], past).count == 1
