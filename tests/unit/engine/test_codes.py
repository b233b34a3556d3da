"""Codes of ids, and the places of values among others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark.engine.codes import places_among, to_codes

INTEGERS = st.integers(-(2**63), 2**63 - 1)
CLOSE_INTEGERS = st.integers(-20, 40)


@given(st.lists(st.none() | INTEGERS | CLOSE_INTEGERS) | st.lists(CLOSE_INTEGERS) | st.lists(st.none() | st.text()))
def test_codes_name_the_id_of_each_row_and_each_id_once(ids: list[int | str | None]) -> None:
    codes = to_codes(pa.array(ids))
    names = codes.values.to_pylist()
    assert [None if code < 0 else names[code] for code in codes.code.tolist()] == ids
    assert sorted(names) == sorted({one for one in ids if one is not None})


@pytest.mark.parametrize("id_type", [pa.int8(), pa.int32(), pa.uint64()])
def test_codes_keep_the_type_of_the_ids(id_type: pa.DataType) -> None:
    codes = to_codes(pa.chunked_array([pa.array([3, 127, 3], id_type), pa.array([0], id_type)]))
    assert codes.values.type == id_type
    assert codes.values.take(pa.array(codes.code)).to_pylist() == [3, 127, 3, 0]


def test_codes_of_the_smallest_and_the_largest_integers() -> None:
    ids = [-(2**63), 2**63 - 1, -(2**63) + 1]
    codes = to_codes(pa.array(ids))
    assert codes.values.take(pa.array(codes.code)).to_pylist() == ids
    close = to_codes(pa.array([2**63 - 1, 2**63 - 2]))
    assert close.values.take(pa.array(close.code)).to_pylist() == [2**63 - 1, 2**63 - 2]


@given(st.lists(INTEGERS | CLOSE_INTEGERS), st.lists(INTEGERS | CLOSE_INTEGERS, unique=True))
def test_places_are_those_of_a_dictionary(values: list[int], known: list[int]) -> None:
    place = {one: at for at, one in enumerate(known)}
    found = places_among(np.array(values, dtype=np.int64), np.array(known, dtype=np.int64))
    assert found.tolist() == [place.get(one, -1) for one in values]
