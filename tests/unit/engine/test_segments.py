"""Segment values of a user, where "unknown" is a value as any other, and groups of rows by them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.engine import slices
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.engine.slices import PACKED
from tests.support.engine_rows import (
    Row,
    compact_lists_of,
    held_out,
    input_table,
    job,
    list_rows,
    log,
    moment_rows,
    segments,
    tuples,
)


def lists_of(*users: str) -> list[Row]:
    """One list a user."""
    return log("user_id item_id score", *((user, "a", 0.5) for user in users))


def values_of(
    lists: list[Row],
    users: list[Row],
    *names: str,
    **options: Any,  # noqa: ANN401 - fields of the job
) -> dict[str, Any]:
    """Segments by user, of one list each."""
    found = list_rows(job(slices=[names] if names else (), **options), input_table(lists, users))
    assert len({row["user_id"] for row in found}) == len(found)
    return {row["user_id"]: row["segments"] for row in found}


def test_every_list_gets_the_values_of_its_user() -> None:
    users = segments(("ann", "FR", "tv"), ("bob", None, "tv"), ("zoe", "DE", "pc"))
    assert values_of(lists_of("ann", "bob", "cat"), users, "country", "device") == {
        "ann": {"country": "FR", "device": "tv"},
        "bob": {"country": None, "device": "tv"},
        "cat": {"country": None, "device": None},
    }


def test_the_map_has_the_type_of_the_published_table() -> None:
    table = input_table(lists_of("ann"), segments(("ann", "FR")))
    (batch,) = compact_lists_of(job(slices=[("country",)]), table.to_batches())
    assert batch.schema.field(C.SEGMENTS).type == pa.map_(pa.string(), pa.string())
    assert PACKED not in batch.schema.names


def test_every_list_of_a_user_gets_the_same_values() -> None:
    lists = log("user_id list_id item_id score", *(("ann", name, "x", 0.5) for name in "ab"))
    table = input_table(lists, segments(("ann", "gold")))
    found = list_rows(job(slices=[("tier",)]), table)
    assert [(row["list_id"], row["segments"]["tier"]) for row in found] == [("a", "gold"), ("b", "gold")]


def test_a_judged_user_without_a_list_has_segments_too() -> None:
    table = input_table(held_out("user_id item_id gain", ("ann", "a", 1.0)), segments(("ann", "FR")))
    (row,) = list_rows(job(slices=[("country",)]), table)
    assert (row["n_recommended"], row["segments"]) == (0, {"country": "FR"})


def test_without_segments_the_map_is_empty() -> None:
    assert values_of(lists_of("ann"), []) == {"ann": {}}


def test_without_rows_of_segments_every_value_is_unknown() -> None:
    """There may be a segment table all of whose users are elsewhere."""
    assert values_of(lists_of("ann"), [], "country") == {"ann": {"country": None}}


def test_an_absence_that_is_a_value_is_that_of_users_without_a_row_only() -> None:
    users = segments(("ann", None, "low"), ("bob", "FR", None))
    found = values_of(lists_of("ann", "bob", "cat"), users, "country", "activity", absent={"activity": "none"})
    assert found == {
        "ann": {"country": None, "activity": "low"},
        "bob": {"country": "FR", "activity": None},
        "cat": {"country": None, "activity": "none"},
    }


@pytest.mark.parametrize("countries", [("FR", "DE"), ("FR", "FR")], ids=["other values", "the same values"])
def test_a_user_twice_among_the_segments_fails(countries: tuple[str, str]) -> None:
    users = segments(*(("ann", country) for country in countries))
    with pytest.raises(RefusedError, match=r"\[rankeval:segments\] user 'ann' occurs twice"):
        values_of(lists_of("ann"), users, "country")


def test_a_user_twice_fails_where_they_have_a_list_and_nowhere_else() -> None:
    users = segments(("bob", "FR"), ("zoe", "DE"), ("zoe", "FR"), ("zoe", "IT"), ("ann", "IT"))
    assert values_of(lists_of("ann", "bob"), users, "country") == {"ann": {"country": "IT"}, "bob": {"country": "FR"}}

    with pytest.raises(RefusedError, match=r"\[rankeval:segments\] user 'zoe' occurs twice"):
        values_of(lists_of("ann", "zoe"), users, "country")


@pytest.mark.parametrize("name", ["age band", "a.b", "back`tick", "größe"])
def test_a_segment_may_have_any_name(name: str) -> None:
    assert values_of(lists_of("ann"), segments(("ann", "1")), name) == {"ann": {name: "1"}}


def test_no_list_has_no_segments() -> None:
    assert values_of([], segments(("ann", "FR")), "country") == {}


def test_slices_count_each_user_with_the_values_of_their_segments() -> None:
    """Of three users one is unknown; the moments of the slices by country are those of the three values."""
    users = segments(("ann", "FR"), ("bob", "DE"))
    judgements = held_out("user_id item_id gain", *((user, "a", 1.0) for user in ("ann", "bob", "cat")))
    table = input_table(lists_of("ann", "bob"), judgements, users)
    found = moment_rows(job(measures=["P@1"], slices=[("country",)]), table.to_batches())
    assert len(found) == len([("all",), *(("country", value) for value in ("FR", "DE", None))])
    assert tuples(found, "model_id", "k") == [("m", 1)] * 4


KS = (10, 1, 5)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from(KS),
        st.sampled_from([None, "DE", "FR"]),
        st.sampled_from([None, "phone"]),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("names", [(), ("country",), ("device", "country")])
@pytest.mark.parametrize("at_once", [slices.ROWS_AT_ONCE, 0], ids=["marked", "sorted"])
@given(rows=ROWS)
def test_rows_of_a_group_share_model_values_and_cutoff(
    at_once: int, names: tuple[str, ...], rows: list[tuple[str, int, str | None, str | None]]
) -> None:
    models, ks, countries, devices = zip(*rows, strict=True)
    columns = {"country": pa.array(countries, pa.string()), "device": pa.array(devices, pa.string())}
    table = pa.table({C.MODEL_ID: pa.array(models), C.K: pa.array(ks, pa.int32()), **columns})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "ROWS_AT_ONCE", at_once)
        keys, group = slices.find_groups(table, names, KS)

    own = [
        (model, tuple({"country": country, "device": device}[name] for name in names), k)
        for model, k, country, device in rows
    ]
    assert [keys[place] for place in group.tolist()] == own
    assert sorted(map(repr, keys)) == sorted(map(repr, set(own)))


@given(rows=st.lists(st.lists(st.sampled_from([None, "", "DE", "FR"]), min_size=3, max_size=3), min_size=1))
def test_segments_that_travel_as_one_array_are_columns_of_their_own_values_again(rows: list[list[str | None]]) -> None:
    table = pa.table({"k": pa.array(range(len(rows))), "_packed": pa.array(rows, pa.list_(pa.string()))})
    plain = slices.unpack_segments(table, packed="_packed", prefix="_earlier")

    assert plain.column_names == ["k", "_earlier_segment_0", "_earlier_segment_1", "_earlier_segment_2"]
    for index, name in enumerate(plain.column_names[1:]):
        own = [row[index] for row in rows]
        assert plain[name].to_pylist() == own
        assert set(plain[name].combine_chunks().dictionary.to_pylist()) == set(own)
    assert slices.unpack_segments(plain, packed="_packed") is plain
