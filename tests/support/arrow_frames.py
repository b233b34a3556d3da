"""Small Arrow tables written down row by row, and tables read back as plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.scorer import IS_EVALUATED
from rankeval_spark.inputs.arrow.arrow_types import spark_name
from rankeval_spark.sums.check_counts import N_LISTED

if TYPE_CHECKING:
    from rankeval_spark.schemas import Field

_TYPES: Final = {
    C.SCORE: pa.float64(),
    C.GAIN: pa.float64(),
    C.VALUE: pa.float64(),
    C.RANK: pa.int32(),
    C.INTERACTED_AT: pa.timestamp("us", "UTC"),
    C.PUBLISHED_AT: pa.date32(),
    C.CATEGORIES: pa.list_(pa.string()),
    C.VECTOR: pa.list_(pa.float64()),
}
"""Types of the columns that are not text."""

_SCORED: Final[Mapping[str, tuple[pa.DataType, Any]]] = {
    **{C.MODEL_ID: (pa.string(), "m"), C.USER_ID: (pa.string(), None), C.LIST_ID: (pa.string(), "")},
    **{C.K: (pa.int32(), 1), C.SEGMENTS: (pa.map_(pa.string(), pa.string()), {}), C.N_DUPLICATES: (pa.int32(), 0)},
    **dict.fromkeys((N_LISTED, C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED), (pa.int32(), 1)),
    **{C.N_HITS: (pa.int32(), 0), C.HAS_TIES: (pa.bool_(), False)},
}
"""Type and default of the columns of scored rows."""

_IDS: Final = {"string": pa.string(), "bigint": pa.int64()}


def table(columns: str, *rows: tuple[Any, ...], ids: str = "string") -> pa.Table:
    """Make a table of the columns named, such as ``"user_id item_id"``; ``ids`` is the type of users and items."""
    types = {**_TYPES, **dict.fromkeys((C.USER_ID, C.ITEM_ID), _IDS[ids])}
    names = columns.split()
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array(cell, types.get(name, pa.string())) for name, cell in zip(names, cells, strict=True)]
    return pa.Table.from_arrays(arrays, names)


def scored_rows(*rows: Mapping[str, Any], measures: Sequence[str] = ("p",)) -> pa.Table:
    """Make scored rows; by default of judged users with a list of one item, at k = 1."""
    columns = {**_SCORED, **dict.fromkeys(measures, (pa.float64(), None)), IS_EVALUATED: (pa.bool_(), True)}
    unknown = {name for row in rows for name in row} - columns.keys()
    assert not unknown, f"no such columns: {unknown}"
    arrays = [pa.array([row.get(name, default) for row in rows], type_) for name, (type_, default) in columns.items()]
    return pa.Table.from_arrays(arrays, list(columns))


def ranking(lists: Mapping[str, str], **constants: str) -> pa.Table:
    """Make a log of lists, best item first: ``{"ann": "a b c"}``; scores are 100, 99, ..."""
    rows = [(user, item, 100.0 - place) for user, items in lists.items() for place, item in enumerate(items.split())]
    log = table("user_id item_id score", *rows)
    for name, value in constants.items():
        log = log.append_column(name, pa.repeat(value, log.num_rows))
    return log


def judgements(gains: Mapping[str, Mapping[str, float]]) -> pa.Table:
    """Make a held-out table: ``{"ann": {"a": 1, "b": 2}}``."""
    rows = [(user, item, float(gain)) for user, items in gains.items() for item, gain in items.items()]
    return table("user_id item_id gain", *rows)


def dicts(frame: pa.Table) -> list[dict[str, Any]]:
    """Read all rows back."""
    rows: list[dict[str, Any]] = frame.to_pylist()
    return rows


def tuples(frame: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """Read some columns back, sorted; NULL comes first."""
    rows = [tuple(row[name] for name in columns) for row in dicts(frame)]
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def by(frame: pa.Table, *keys: str, value: str) -> dict[Any, Any]:
    """Read one column back by the key of its row, and check that the key is one."""
    rows = dicts(frame)
    found = {(row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys)): row[value] for row in rows}
    assert len(found) == len(rows), f"{keys} is no key: {len(rows)} rows, {len(found)} keys"
    return found


def where(frame: pa.Table, **cells: Any) -> pa.Table:  # noqa: ANN401 - a cell of any type
    """Keep the rows whose cells are these: ``where(metrics, measure="RR", k=0)``."""
    return frame.filter(reduce(and_, (pc.field(name) == value for name, value in cells.items())))


def shuffled(frame: pa.Table, seed: int = 0) -> pa.Table:
    """Put the rows into another order."""
    places = list(range(frame.num_rows))
    random.Random(seed).shuffle(places)
    return frame.take(places)


def in_chunks(frame: pa.Table, n_chunks: int) -> pa.Table:
    """Cut a table into some chunks of rows; some are empty where there are more than rows."""
    ends = [frame.num_rows * chunk // n_chunks for chunk in range(n_chunks + 1)]
    return pa.concat_tables([frame.slice(start, end - start) for start, end in pairwise(ends)])


def assert_key(frame: pa.Table, key: Sequence[str]) -> None:
    """Check that no two rows share the key and that it is never NULL."""
    rows = [tuple(map(_hashable, (row[name] for name in key))) for row in dicts(frame)]
    assert len(set(rows)) == len(rows)
    assert all(value is not None for row in rows for value in row)


def _hashable(value: Any) -> Any:  # noqa: ANN401 - a cell of any type
    return tuple(value) if isinstance(value, list) else value


def assert_columns(frame: pa.Table, expected: Iterable[Field | tuple[str, str]]) -> None:
    """Compare names, types and order of the columns with the declared ones, which are named as on Spark."""
    declared = [each if isinstance(each, tuple) else (each.name, each.type) for each in expected]
    assert [(field.name, _spark_type(field.type)) for field in frame.schema] == declared


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    return spark_name(kind)
