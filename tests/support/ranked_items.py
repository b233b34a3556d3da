"""Ranked items written down list by list, as ``Job.ranked_items`` makes them, and rows of all lists together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import stats

from rankeval_spark.engine.buckets import N_GROUPS, hash_users
from tests.support import naive_exposures

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure

Lists = Mapping[str, Mapping[str, Sequence[str]]]
"""Items by model and user."""


def ranked_items(
    lists: Lists, gains: Mapping[str, Mapping[str, float]] | None = None, *, first_rank: int = 1
) -> pa.Table:
    """Make the rows of lists; a list without items has none."""
    rows = [
        (model, user, item, rank, (gains or {}).get(user, {}).get(item))
        for model, by_user in lists.items()
        for user, items in by_user.items()
        for rank, item in enumerate(items, first_rank)
    ]
    return table_of(rows, RANKED_ITEMS)


RANKED_ITEMS = pa.schema(
    {
        **dict.fromkeys(("model_id", "user_id", "item_id"), pa.string()),
        "rank": pa.int32(),
        "gain": pa.float64(),
    }
)


def table_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Make a table of rows."""
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def texts(columns: str, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Make a table of text columns."""
    return table_of(rows, pa.schema(dict.fromkeys(columns.split(), pa.string())))


def groups_of(users: Sequence[str]) -> dict[str, int]:
    """Group of the jackknife of each user."""
    return dict(zip(users, (hash_users(pa.array(users, pa.string())) % N_GROUPS).tolist(), strict=True))


def by_key(rows: pa.Table) -> dict[tuple[str, str, str, int], dict[str, Any]]:
    """Find rows by model, value of the slice, measure and cutoff."""
    found = {(row["model_id"], row["slice_value"], row["measure"], row["k"]): row for row in rows.to_pylist()}
    assert len(found) == rows.num_rows
    return found


def assert_row(row: Mapping[str, Any], measure: Measure, value: float, error: float, users: Sequence[str]) -> None:
    """Compare a row with the value and the standard error that plain Python finds, one list a user."""
    n_groups = len(set(groups_of(users).values()))
    half = stats.t.ppf(0.975, n_groups - 1) * error if n_groups > 1 else np.nan
    ends = np.clip([value - half, value + half], *naive_exposures.bounds_of(measure))
    numbers = [np.nan if row[name] is None else row[name] for name in ("value", "std_error", "ci_low", "ci_high")]
    np.testing.assert_allclose(numbers, [value, error, *ends], rtol=0, atol=1e-12, err_msg=str(measure))
    assert row["ci_method"] == ("none" if np.isnan(error) else "jackknife")
    assert (row["n_users"], row["n_lists"], row["is_small"]) == (len(users), len(users), len(users) < 5)


def exposure_of(measure: Measure, lists: Mapping[str, Sequence[str]], catalogue: set[str]) -> tuple[float, float]:
    """Naive value and standard error of a measure of exposure."""
    value = naive_exposures.expected(measure, list(lists.values()), catalogue)
    return value, naive_exposures.jackknife_error(measure, lists, groups_of(list(lists)), catalogue)
