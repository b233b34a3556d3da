"""The synthetic data has the shape of the real one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankeval_spark.demo import dataset
from rankeval_spark.demo.dataset import INTERACTION_COLUMNS, ITEM_COLUMNS, USER_COLUMNS


def test_sizes_are_those_of_movielens() -> None:
    data = dataset.make_dataset()

    assert (len(data.users), len(data.items), len(data.interactions)) == (943, 1_682, 100_000)
    assert data.interactions["user_id"].nunique() == 943
    assert data.interactions["user_id"].value_counts().min() >= 20


def test_columns_and_types_are_those_of_a_dataset() -> None:
    data = dataset.make_dataset(n_users=20, n_items=200, n_interactions=300, n_least=5)

    for frame, columns in (
        (data.interactions, INTERACTION_COLUMNS),
        (data.users, USER_COLUMNS),
        (data.items, ITEM_COLUMNS),
    ):
        assert {str(name): str(type_) for name, type_ in frame.dtypes.items()} == columns


def test_user_rates_an_item_once_from_one_to_five_stars() -> None:
    interactions = dataset.make_dataset().interactions

    assert not interactions.duplicated(["user_id", "item_id"]).any()
    assert set(interactions["rating"]) == {1.0, 2.0, 3.0, 4.0, 5.0}


def test_half_of_the_ratings_share_the_time_of_the_one_before() -> None:
    interactions = dataset.make_dataset().interactions
    pauses = interactions.groupby("user_id")["timestamp"].diff().dropna()

    assert (pauses >= 0).all()
    assert abs((pauses == 0).mean() - 1 / 2) < 0.02


def test_equal_seeds_give_equal_data_and_others_do_not() -> None:
    sizes = {"n_users": 20, "n_items": 200, "n_interactions": 300, "n_least": 5}

    first, again, other = (dataset.make_dataset(**sizes, seed=seed) for seed in (1, 1, 2))

    pd.testing.assert_frame_equal(first.interactions, again.interactions)
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


def test_one_changed_value_changes_the_fingerprint() -> None:
    data = dataset.make_dataset(n_users=20, n_items=200, n_interactions=300, n_least=5)
    before = data.fingerprint()

    data.interactions["rating"] += np.arange(300) == 7

    assert data.fingerprint() != before
