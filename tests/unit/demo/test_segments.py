"""Segments of the users."""

from __future__ import annotations

import pandas as pd
import pytest

from rankeval_spark.demo import dataset


def users(*ages: int) -> pd.DataFrame:
    """Users 1, 2, ... of these ages."""
    ids = range(1, len(ages) + 1)
    return pd.DataFrame({"user_id": ids, "age": ages, "gender": "F", "occupation": "writer"})


def training(**n_of: int) -> pd.DataFrame:
    """``n`` interactions of each user; users are named u1, u2, ..."""
    return pd.DataFrame({"user_id": [int(user[1:]) for user, n in n_of.items() for _ in range(n)]}, dtype="int64")


@pytest.mark.parametrize(
    ("age", "band"),
    [
        (7, "under 18"),
        (17, "under 18"),
        (18, "18-24"),
        (24, "18-24"),
        (25, "25-34"),
        (54, "45-54"),
        (55, "55 and over"),
    ],
)
def test_age_band_begins_at_its_first_age(age: int, band: str) -> None:
    assert dataset.make_segments(users(age), train=training())["age_band"].to_list() == [band]


@pytest.mark.parametrize(
    ("n_interactions", "tier"),
    [(0, "cold"), (1, "light"), (19, "light"), (20, "medium"), (99, "medium"), (100, "heavy")],
)
def test_activity_tier_counts_training_interactions(n_interactions: int, tier: str) -> None:
    assert dataset.make_segments(users(30), train=training(u1=n_interactions))["activity"].to_list() == [tier]


def test_every_user_has_one_row_with_his_own_values() -> None:
    segmented = dataset.make_segments(users(20, 40, 60), train=training(u3=25))

    assert list(segmented.columns) == ["user_id", *dataset.SEGMENTS]
    assert segmented["user_id"].to_list() == [1, 2, 3]
    assert segmented["activity"].to_list() == ["cold", "cold", "medium"]
