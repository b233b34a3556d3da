"""Whether two tables, of two hosts or made in two ways, are the same."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa


def plain(type_: pa.DataType) -> pa.DataType:
    """Leave out of a type whether it can be NULL, and what its elements are called."""
    if pa.types.is_list(type_):
        return pa.list_(plain(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(plain(type_.key_type), plain(type_.item_type))
    return type_


def assert_same(on_spark: pa.Table, here: pa.Table, *, tolerance: float) -> None:
    """Assert that two tables have the same columns and rows, in any order."""
    assert [(field.name, plain(field.type)) for field in here.schema] == [
        (field.name, plain(field.type)) for field in on_spark.schema
    ]
    wanted, found = (sorted(table.to_pylist(), key=_key) for table in (on_spark, here))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        for name, value in other.items():
            assert is_same(one[name], value, tolerance), (name, one, other)


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in row.values() if not isinstance(value, float))


def is_same(one: Any, other: Any, tolerance: float) -> bool:  # noqa: ANN401 - a cell of any type
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other, [tolerance] * len(one)))
    if isinstance(one, float) and isinstance(other, float) and tolerance:
        return math.isclose(one, other, rel_tol=0, abs_tol=tolerance * max(1.0, abs(other)))
    return bool(one == other)
