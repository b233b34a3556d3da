"""The rolled cut, on sequences short enough to count."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest

from rankeval_spark.demo import dataset

DATES = (dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3))


def sequences(**items_of: list[int]) -> pd.DataFrame:
    """One interaction a second with each item in turn; users are named u1, u2, ..."""
    rows = [
        (int(user[1:]), item, 4.0, 1_000 + place)
        for user, items in items_of.items()
        for place, item in enumerate(items)
    ]
    return pd.DataFrame(rows, columns=["user_id", "item_id", "rating", "timestamp"])


def items(frame: pd.DataFrame, user: int) -> list[int]:
    """Return the items of one user, in order."""
    return frame.loc[frame["user_id"] == user, "item_id"].to_list()


def test_each_date_holds_out_the_next_window_of_every_user() -> None:
    cuts = dataset.rolling_cuts(sequences(u1=[9, 8, 7, 6, 5, 4, 3, 2]), dates=DATES, window=2)

    assert [cut.date for cut in cuts] == list(DATES)
    assert [items(cut.train, 1) for cut in cuts] == [[9, 8], [9, 8, 7, 6], [9, 8, 7, 6, 5, 4]]
    assert [items(cut.held_out, 1) for cut in cuts] == [[7, 6], [5, 4], [3, 2]]


def test_short_user_comes_in_late_and_starts_without_a_past() -> None:
    cuts = dataset.rolling_cuts(sequences(u1=[1, 2, 3], u2=list(range(10, 20))), dates=DATES, window=2)

    assert [items(cut.train, 1) for cut in cuts] == [[], [], [1]]
    assert [items(cut.held_out, 1) for cut in cuts] == [[], [1], [2, 3]]


def test_equal_times_are_ordered_by_item_id_as_a_number() -> None:
    interactions = sequences(u1=[10, 9, 100, 2]).assign(timestamp=5)

    (cut,) = dataset.rolling_cuts(interactions, dates=DATES[:1], window=2)

    assert items(cut.train, 1) == [2, 9]
    assert items(cut.held_out, 1) == [10, 100]


def test_order_of_the_rows_does_not_matter() -> None:
    interactions = sequences(u1=[4, 3, 2, 1], u2=[1, 2, 3, 4, 5])

    cuts = dataset.rolling_cuts(interactions, dates=DATES, window=1)
    shuffled = dataset.rolling_cuts(interactions.sample(frac=1, random_state=3), dates=DATES, window=1)

    for cut, other in zip(cuts, shuffled, strict=True):
        pd.testing.assert_frame_equal(cut.train, other.train)
        pd.testing.assert_frame_equal(cut.held_out, other.held_out)


@pytest.mark.parametrize(("rating", "gain"), [(1.0, 0.0), (3.0, 0.0), (4.0, 1.0), (5.0, 2.0)])
def test_gain_is_what_the_rating_has_above_three(rating: float, gain: float) -> None:
    held_out = dataset.with_gain(sequences(u1=[1]).assign(rating=rating))

    assert held_out["gain"].to_list() == [gain]
