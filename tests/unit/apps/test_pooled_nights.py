"""Models compared over several nights: each user's mean difference, against pandas, and the size of its test."""

from __future__ import annotations

from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from rankeval_spark.config import Comparisons
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.engine.planning import build_outputs
from rankeval_spark.sums.published import PooledDifferences, UserTotals, sum_users

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

COLUMNS = {"nDCG": "ndcg", "RR": "rr"}
NUMBERS = ("n_users", "baseline_value", "value", "delta", "p_value")


def night(values: pd.DataFrame, **facts: np.ndarray) -> ds.Dataset:
    """Return rows of ``user_metrics`` with `values`: model_id, user_id, k and the columns of measures."""
    counts = {name: np.ones(len(values), np.int32) for name in ("n_judged", "n_relevant", "n_recommended")}
    rows = values.assign(list_id="", has_ties=False, **{**counts, **facts})
    table = pa.Table.from_pandas(rows.astype({"k": np.int32}), preserve_index=False)
    return ds.dataset(table.cast(pa.schema([field.remove_metadata() for field in table.schema])))


def pooled(
    nights: Sequence[ds.Dataset],
    *,
    cutoffs: Sequence[int] = (5,),
    without: Mapping[int, set[str]] = MappingProxyType({}),
    **comparisons: Any,  # noqa: ANN401 - keys of comparisons
) -> pd.DataFrame:
    request = Request(
        measures=tuple(f"{name}@{k}" for name in COLUMNS for k in cutoffs),
        comparisons=Comparisons(**{"baseline": "a", **comparisons}),
        slicing=Slicing(min_slice_size=2),
    )
    differences = PooledDifferences(request, build_outputs(request, averages_lists=True))
    totals = UserTotals(request.measure_set, {"comparisons": differences}, n_nights=len(nights))
    found: pd.DataFrame = sum_users(nights, totals, without=without)["comparisons"].to_pandas()
    return found


def naive(nights: Sequence[pd.DataFrame], models: Collection[str]) -> dict[tuple[Any, ...], tuple[float, ...]]:
    """Compute the numbers of each pair, measure and cutoff with pandas."""
    every = pd.concat([rows.assign(night=place) for place, rows in enumerate(nights)])
    found: dict[tuple[Any, ...], tuple[float, ...]] = {}
    for (first, second), (label, column), k in (
        (pair, measure, k)
        for pair in combinations(sorted(models), 2)
        for measure in COLUMNS.items()
        for k in sorted(every["k"].unique())
    ):
        wide = every[every["k"] == k].pivot_table(index=["user_id", "night"], columns="model_id", values=column)
        both = wide.reindex(columns=[first, second]).dropna().groupby("user_id").mean()
        delta = both[second] - both[first]
        delta[np.isclose(delta, 0, atol=1e-15)] = 0.0
        p = np.nan
        if (delta != 0).sum() > 20:
            p = stats.ttest_1samp(delta, 0).pvalue
        found[first, second, label, k] = (len(both), both[first].mean(), both[second].mean(), delta.mean(), p)
    return found


@given(st.integers(0, 2**31), st.integers(1, 4), st.sampled_from([0.5, 0.9]), st.sampled_from(["baseline", "all"]))
@settings(max_examples=12, deadline=None)
def test_a_pooled_row_is_the_mean_of_each_users_mean_difference(
    seed: int, n_nights: int, there: float, pairs: str
) -> None:
    random = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product([["a", "b", "c"], [f"u{user}" for user in range(50)], [5, 10]])
    frames = []
    for _ in range(n_nights):
        values = pd.DataFrame(random.integers(0, 5, (len(index), 2)) / 4, index, list(COLUMNS.values()))
        values = values.mask(random.random(values.shape) < 0.2)[random.random(len(index)) < there]
        frames.append(values.rename_axis(["model_id", "user_id", "k"]).reset_index())
    found = pooled([night(frame) for frame in frames], cutoffs=(5, 10), pairs=pairs)
    assert set(found["test"]) == {"pooled"}
    keys = list(zip(found["baseline_model_id"], found["model_id"], found["measure"], found["k"], strict=True))
    expected = {key: row for key, row in naive(frames, "abc").items() if pairs == "all" or key[0] == "a"}
    assert sorted(keys) == sorted(expected)
    for key, row in zip(keys, found[list(NUMBERS)].itertuples(index=False), strict=True):
        known = ~np.isnan(expected[key])  # an exact p is not of t
        assert np.array(row, float)[known] == pytest.approx(np.array(expected[key])[known], rel=0, abs=1e-12)


def test_a_night_without_a_column_and_a_user_of_one_night_count_as_far_as_they_go() -> None:
    """RR of the second night is defined otherwise, nDCG of the third is absent: u0 has 1, u1 1/2, u2 only a night."""
    users = pd.DataFrame({"user_id": ["u0", "u1", "u0", "u1"], "model_id": [*"aabb"], "k": 5})
    first = users.assign(ndcg=[0.0, 0, 1, 1], rr=[0.0, 0, 1, 1])
    second = users.assign(ndcg=[0.0, 0, 1, 0], rr=[0.0, 0, 1, 0])
    third = pd.DataFrame({"user_id": "u2", "model_id": [*"ab"], "k": 5, "rr": [0.0, 1.0]})
    found = pooled([night(first), night(second), night(third)], without={1: {"rr"}})
    rows = {row["measure"]: row for row in found.to_dict("records")}
    assert [rows["nDCG"][name] for name in ("n_users", "delta")] == [2, (1 + 1 / 2) / 2]
    assert [rows["RR"][name] for name in ("n_users", "delta")] == [3, 1.0]
    assert [rows["nDCG"][f"n_with_{whom}"] for whom in ("baseline", "model", "both")] == [5, 5, 5]


def test_models_that_never_serve_a_user_on_the_same_night_are_withheld() -> None:
    """Both serve every user, in turn."""
    users = [f"u{user}" for user in range(40)]
    rows = pd.DataFrame({"user_id": users * 2, "model_id": ["a"] * 40 + ["b"] * 40, "k": 5, "ndcg": 0.5, "rr": 0.5})
    turns = [night(rows, n_recommended=(rows["model_id"] == served).to_numpy(np.int32)) for served in "ab"]
    assert set(pooled(turns)["reason"]) == {"few_common_lists"}
    assert set(pooled([night(rows)] * 2)["reason"]) == {None}


@pytest.mark.parametrize("back", [1.0, 0.5])
def test_of_equal_models_few_differ_however_alike_nights_are(back: float) -> None:
    """250 models, 50 users, 7 nights, a correlation of .9: five in a hundred, with a standard error of 1.4."""
    random, n_models, n_users = np.random.default_rng(11), 250, 50
    names = [f"m{model:03}" for model in range(n_models)]
    common, frames = random.standard_normal((n_models, n_users)), []
    for _ in range(7):
        values = np.sqrt(0.9) * common + np.sqrt(0.1) * random.standard_normal((n_models, n_users))
        values = np.vstack([np.zeros(n_users), values])
        is_there = random.random(n_users) < back
        index = pd.MultiIndex.from_product([["a", *names], [f"u{user}" for user in range(n_users)]])
        rows = pd.DataFrame({"ndcg": values.ravel()}, index).rename_axis(["model_id", "user_id"]).reset_index()
        frames.append(night(rows[np.tile(is_there, n_models + 1)].assign(k=5, rr=0.0)))
    found = pooled(frames)
    of_ndcg = found[found["measure"] == "nDCG"]
    assert len(of_ndcg) == n_models
    assert 0.01 <= (of_ndcg["p_value"] <= 0.05).mean() <= 0.09
