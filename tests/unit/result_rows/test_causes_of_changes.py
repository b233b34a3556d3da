"""What changed a mean between two nights: users who left, came or stayed, and slices; the parts add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.config.slicing import ReportedSlices
from rankeval_spark.engine.outputs import FACTS
from rankeval_spark.measures import MeasureSet
from rankeval_spark.result_rows.night_change_rows import BY_USERS, NightChanges
from rankeval_spark.sums.published import compare_users

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Unit

MEASURES = MeasureSet.parse(["RR@2"], where="measures")
Lists: TypeAlias = Sequence[tuple[str, str | None, str, float | None]]
"""User, country, list and value of each list."""

Night: TypeAlias = Mapping[str, tuple[str | None, float | None]]
"""Country and value of each user."""


def changed(now: Lists, before: Lists, *, unit: Unit = "user", share: float = 1.0) -> dict[str, dict[str, Any]]:
    """Compare two nights of one model; rows by country, and ``all``."""
    changes = NightChanges.from_unit(MEASURES, ReportedSlices([(), ("country",)], 1, 0.95), unit)

    def night(rows: Lists) -> ds.Dataset:
        users, countries, lists, values = zip(*rows, strict=True) if rows else ((), (), (), ())
        n = len(rows)
        columns = {
            C.MODEL_ID: pa.array(["als"] * n, pa.string()),
            C.USER_ID: pa.array(users, pa.string()),
            C.LIST_ID: pa.array(lists, pa.string()),
            C.K: pa.array([2] * n, pa.int32()),
            **dict.fromkeys(FACTS, pa.array([1] * n, pa.int32())),
            C.HAS_TIES: pa.array([False] * n, pa.bool_()),
            MEASURES.columns[0]: pa.array(values, pa.float64()),
            C.SEGMENTS: pa.array([[("country", value)] for value in countries], pa.map_(pa.string(), pa.string())),
        }
        return ds.dataset(pa.table(columns))

    rows = compare_users(night(now), night(before), changes, share=share).to_pylist()
    return {row["slice_value"] or row["slice"]: row for row in rows}


def total(row: dict[str, Any], names: tuple[str, ...] = BY_USERS) -> float:
    found: float = sum(row[name] for name in names)
    return found


def test_the_example_of_the_docs_is_split_as_there_by_hand() -> None:
    """Ann leaves, Dan comes, Bob stays, and Cem moves from AT to DE."""
    before = [("ann", "AT", "", 0.5), ("bob", "DE", "", 0.0), ("cem", "AT", "", 1.0)]
    now = [("bob", "DE", "", 0.25), ("cem", "DE", "", 0.5), ("dan", "AT", "", 0.75)]
    rows = changed(now, before)
    old, new = Fraction(1, 2), Fraction(1, 2)
    stayed_old, stayed_new = Fraction(1, 2), Fraction(3, 8)
    parts = [rows["all"][name] for name in BY_USERS]
    expected = [stayed_old - old, new - stayed_new, stayed_new - stayed_old]
    assert expected == [0, Fraction(1, 8), Fraction(-1, 8)]
    np.testing.assert_allclose(parts, [float(part) for part in expected], rtol=0, atol=1e-12)
    # AT: 2/3 of the users with 3/4, then 1/3 with 3/4; DE: 1/3 with 0, then 2/3 with 3/8. The level is 1/2.
    mix = {
        "AT": (Fraction(1, 3) - Fraction(2, 3)) * (Fraction(3, 4) - Fraction(1, 2)),
        "DE": (Fraction(2, 3) - Fraction(1, 3)) * (Fraction(3, 16) - Fraction(1, 2)),
    }
    within = {"AT": Fraction(0), "DE": Fraction(1, 2) * Fraction(3, 8)}
    assert sum(mix.values()) + sum(within.values()) == new - old == 0
    for country, row in (("AT", rows["AT"]), ("DE", rows["DE"])):
        found = [row["delta_mix"], row["delta_within"]]
        np.testing.assert_allclose(found, [float(mix[country]), float(within[country])], rtol=0, atol=1e-12)
    assert [rows["DE"][name] for name in ("n_users", "n_earlier_users", "n_common_users")] == [2, 1, 1]
    assert [rows["AT"][name] for name in ("share", "earlier_share")] == [1 / 3, 2 / 3]


def test_means_over_lists_are_split_by_the_lists_of_each_user() -> None:
    before = [("ann", "AT", "1", 1.0), ("ann", "AT", "2", 0.0), ("bob", "DE", "1", 1.0)]
    now = [("bob", "DE", "1", 0.5), ("bob", "DE", "2", 0.0), ("bob", "DE", "3", None), ("dan", "DE", "1", 1.0)]
    rows = changed(now, before, unit="list")
    # 2/3 and 1/2; bob has 1 of 1 list, then 1/2 of 2
    parts = [rows["all"][name] for name in BY_USERS]
    np.testing.assert_allclose(parts, [1 - 2 / 3, 1 / 2 - 1 / 4, 1 / 4 - 1], rtol=0, atol=1e-12)
    assert [rows["AT"][name] for name in ("share", "earlier_share")] == [0, 2 / 3]
    parts = [rows[country][name] for country in ("AT", "DE") for name in ("delta_mix", "delta_within")]
    level = (2 / 3 + 1 / 2) / 2
    expected = [-2 / 3 * (1 / 2 - level), 0, 2 / 3 * (3 / 4 - level), 2 / 3 * (1 / 2 - 1)]
    np.testing.assert_allclose(parts, expected, rtol=0, atol=1e-12)


SCALES = st.sampled_from([1.0, 1e-9, 1e9, 1e150])
users = st.dictionaries(
    st.sampled_from([f"u{number}" for number in range(12)]),
    st.tuples(st.sampled_from(["AT", "DE", "CH", None]), st.none() | st.floats(-1, 1)),
)


@pytest.mark.parametrize("unit", ["user", "list"])
@given(now=users, before=users, scale=SCALES, n_lists=st.integers(1, 2))
def test_parts_add_up_to_the_change_whatever_the_users(
    unit: Unit, now: Night, before: Night, scale: float, n_lists: int
) -> None:
    """Users without a value, of one night only, who moved, of new countries; nights without users; great values."""

    def lists(night: Night, n: int) -> Lists:
        scaled = {user: (country, None if value is None else value * scale) for user, (country, value) in night.items()}
        return [(user, country, str(place), value) for user, (country, value) in scaled.items() for place in range(n)]

    rows = changed(lists(now, n_lists), lists(before, 1), unit=unit)
    everyone = rows.pop("all", None)
    if everyone is None or everyone["delta"] is None:
        assert all(row["delta_mix"] is None and row["delta_within"] is None for row in rows.values())
        return
    for row in (everyone, *(row for row in rows.values() if row["delta"] is not None)):
        if row["n_common_users"]:
            assert abs(total(row) - (row["value"] - row["earlier_value"])) <= 1e-12 * scale
            assert abs(total(row) - row["delta"]) <= 1e-12 * scale
        else:
            assert [row[name] for name in BY_USERS] == [None, None, None]
    by_slice = sum(total(row, ("delta_mix", "delta_within")) for row in rows.values())
    assert abs(by_slice - (everyone["value"] - everyone["earlier_value"])) <= 1e-12 * scale
    for name in ("share", "earlier_share"):
        assert sum(row[name] for row in rows.values()) == pytest.approx(1, rel=0, abs=1e-12)


@given(now=users, before=users)
def test_with_the_nights_exchanged_every_part_changes_its_sign(now: Night, before: Night) -> None:
    one, other = ([(user, country, "", value) for user, (country, value) in night.items()] for night in (now, before))
    forth, back = changed(one, other), changed(other, one)
    assert forth.keys() == back.keys()
    opposite = {**{name: name for name in (*BY_USERS, "delta_mix", "delta_within")}}
    opposite |= {"delta_left": "delta_came", "delta_came": "delta_left"}
    for key, row in forth.items():
        for name, other_name in opposite.items():
            if row[name] is None:
                assert back[key][other_name] is None
            else:
                assert row[name] == pytest.approx(-back[key][other_name], rel=0, abs=1e-12)


def test_a_share_of_the_users_is_the_same_on_both_nights() -> None:
    lists = [(f"u{number}", "AT", "", number / 400) for number in range(400)]
    row = changed(lists, lists, share=0.25)["all"]
    assert 60 < row["n_users"] < 140
    assert row["n_users"] == row["n_earlier_users"] == row["n_common_users"]
