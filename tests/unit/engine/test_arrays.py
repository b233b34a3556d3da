"""Arrays from numpy to Arrow and back are what pyarrow makes of them itself, without pandas; codes of ids."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark.engine.arrays import combine_chunks, rare_index_in, to_arrow, to_codes, to_numpy, to_texts
from tests.support.code import ROOT
from tests.support.engine_rows import held_out, input_table, job, log, segments

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

VALUES: Final[dict[pa.DataType, st.SearchStrategy[Any]]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
}
TYPES: Final = list(VALUES)


@st.composite
def columns(draw: st.DrawFn, *, has_null: bool) -> pa.Array:
    """Draw a column that begins anywhere in its buffers."""
    kind = draw(st.sampled_from(TYPES))
    values = draw(st.lists(st.none() | VALUES[kind] if has_null else VALUES[kind], max_size=40))
    start = draw(st.integers(0, len(values)))
    return pa.array(values, kind).slice(start, draw(st.integers(0, len(values) - start)))


def expected_of(column: pa.Array) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


@given(columns(has_null=False))
def test_a_column_without_null_becomes_what_pyarrow_makes_of_it(column: pa.Array) -> None:
    found, expected = to_numpy(column), expected_of(column)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@given(columns(has_null=True))
def test_null_becomes_nan(column: pa.Array) -> None:
    expected = expected_of(column).astype(np.float64) if column.null_count else expected_of(column)
    np.testing.assert_array_equal(to_numpy(column), expected, strict=True)


@given(columns(has_null=True), st.sampled_from([0, 1]))
def test_null_becomes_the_value_given_for_it_and_the_type_stays(column: pa.Array, null: int) -> None:
    fill = pa.scalar(null).cast(column.type)
    np.testing.assert_array_equal(to_numpy(column, null=null), expected_of(column.fill_null(fill)), strict=True)


@given(columns(has_null=True), st.data())
def test_a_column_in_pieces_becomes_one_array(column: pa.Array, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(column)))
    pieces = pa.chunked_array([column[:cut], column[cut:]], column.type)
    assert combine_chunks(pieces).equals(pa.array(column.to_pylist(), column.type)) or has_nan(column)
    np.testing.assert_array_equal(to_numpy(pieces), to_numpy(column), strict=True)


def has_nan(column: pa.Array) -> bool:
    """Return True if a number is NaN, which equals nothing."""
    return any(value != value for value in column.to_pylist())  # noqa: PLR0124 - True of NaN alone


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_column_without_pieces_becomes_an_empty_array(kind: pa.DataType) -> None:
    found = to_numpy(pa.chunked_array([], kind))
    np.testing.assert_array_equal(found, np.zeros(0, kind.to_pandas_dtype()), strict=True)


@given(columns(has_null=False), st.integers(1, 3), st.data())
def test_an_array_becomes_what_pyarrow_makes_of_it(column: pa.Array, step: int, data: st.DataObject) -> None:
    values = expected_of(column)[::step]
    is_null = data.draw(st.none() | st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    mask = None if is_null is None else np.array(is_null, dtype=np.bool_)
    found, expected = to_arrow(values, is_null=mask), pa.array(values, mask=mask)
    found.validate(full=True)
    assert found.type == expected.type
    assert found.null_count == expected.null_count
    np.testing.assert_array_equal(expected_of(found), expected_of(expected))


@given(columns(has_null=False))
def test_an_array_is_the_same_after_both_ways(column: pa.Array) -> None:
    found = to_numpy(to_arrow(to_numpy(column)))
    assert found.tobytes() == expected_of(column).tobytes()


def test_numbers_are_not_copied() -> None:
    values = np.arange(5)
    assert np.shares_memory(to_numpy(to_arrow(values)[1:]), values)


@given(st.lists(st.none() | st.text()))
def test_texts_become_what_pyarrow_makes_of_them(values: list[str | None]) -> None:
    found = to_texts(values)
    found.validate(full=True)
    assert found.equals(pa.array(values, pa.string()))


TABLE: Final = input_table(
    log("user_id item_id score", ("u", "a", 0.5), ("u", "b", 0.25), ("u", "b", 0.25), ("v", "a", 1.0)),
    held_out("user_id item_id gain", ("u", "b", 1.0), ("w", "a", 2.0)),
    segments(("u", "DE"), ("v", None)),
)


@pytest.mark.parametrize("call", ["user_rows(rows)", "ranked_items(rows)"])
def test_a_job_imports_no_pandas(call: str, tmp_path: Path) -> None:
    """In a process of its own, because imports are remembered."""
    names = ["nDCG@2", "P@1", "AP", "R(agg='micro')@5", "AUC"]
    work = job(measures=names, slices=[["country"]], absent={"country": "?"})
    (tmp_path / "job").write_bytes(pickle.dumps(work))
    with pa.ipc.new_stream(str(tmp_path / "rows"), TABLE.schema) as stream:
        stream.write_table(TABLE, max_chunksize=3)
    program = f"""
import pickle, sys
import pyarrow as pa
work = pickle.load(open("job", "rb"))
rows = list(pa.ipc.open_stream("rows"))
print(sum(batch.num_rows for batch in work.{call}) > 0, "pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["True", "False"]


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
    found = rare_index_in(np.array(values, dtype=np.int64), np.array(known, dtype=np.int64))
    assert found.tolist() == [place.get(one, -1) for one in values]
