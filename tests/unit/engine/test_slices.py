"""Groups of rows by model, segments and cutoff."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.engine import slices

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
        keys, group = slices.groups_of(table, names, KS)

    own = [
        (model, tuple({"country": country, "device": device}[name] for name in names), k)
        for model, k, country, device in rows
    ]
    assert [keys[place] for place in group.tolist()] == own
    assert sorted(map(repr, keys)) == sorted(map(repr, set(own)))


@given(rows=st.lists(st.lists(st.sampled_from([None, "", "DE", "FR"]), min_size=3, max_size=3), min_size=1))
def test_segments_that_travel_as_one_array_are_columns_of_their_own_values_again(rows: list[list[str | None]]) -> None:
    table = pa.table({"k": pa.array(range(len(rows))), "_packed": pa.array(rows, pa.list_(pa.string()))})
    plain = slices.unpacked(table, packed="_packed", prefix="_earlier")

    assert plain.column_names == ["k", "_earlier_segment_0", "_earlier_segment_1", "_earlier_segment_2"]
    for index, name in enumerate(plain.column_names[1:]):
        own = [row[index] for row in rows]
        assert plain[name].to_pylist() == own
        assert set(plain[name].combine_chunks().dictionary.to_pylist()) == set(own)
    assert slices.unpacked(plain, packed="_packed") is plain
