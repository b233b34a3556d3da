"""Logs with one row per list made of flat ones, and back by a plain loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rankeval_spark import columns as C

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS: Final = (C.MODEL_ID, C.USER_ID, C.LIST_ID)


def nested(flat: pa.Table) -> pa.Table:
    """Put the rows of each list into arrays ``item_id`` and ``score``, in their order."""
    keys = [name for name in KEYS if name in flat.column_names]
    lists: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in flat.to_pylist():
        lists.setdefault(tuple(row[name] for name in keys), []).append(row)
    columns = {name: pa.array([key[at] for key in lists], flat[name].type) for at, name in enumerate(keys)}
    arrays = {
        name: pa.array([[row[name] for row in rows] for rows in lists.values()], pa.list_(flat[name].type))
        for name in (C.ITEM_ID, C.SCORE)
        if name in flat.column_names
    }
    return pa.table({**columns, **arrays})


def flat_of(lists: pa.Table) -> pa.Table:
    """Write one row per item, with the place in the array as rank; no scores where the arrays differ in length."""
    rows: list[dict[str, Any]] = []
    for one in lists.to_pylist():
        items, scores = one.pop(C.ITEM_ID) or [], one.pop(C.SCORE, None)
        has_scores = scores is not None and len(scores) == len(items)
        for place, item in enumerate(items):
            scored = {C.SCORE: scores[place] if has_scores else None} if C.SCORE in lists.column_names else {}
            rows.append({**one, C.ITEM_ID: item, C.RANK: place + 1, **scored})
    return _table(rows, lists)


def _table(rows: Iterable[dict[str, Any]], lists: pa.Table) -> pa.Table:
    given = [*rows]
    types = {
        name: lists.schema.field(name).type.value_type
        if name in (C.ITEM_ID, C.SCORE)
        else lists.schema.field(name).type
        for name in lists.column_names
    }
    types[C.RANK] = pa.int32()
    return pa.table({name: pa.array([row[name] for row in given], kind) for name, kind in types.items()})


def with_structs(lists: pa.Table, *, item: str = "item_id", score: str = "rating") -> pa.Table:
    """Put both arrays into one of structs, as MLlib's ``recommendForAllUsers`` writes it."""
    values = zip(lists[C.ITEM_ID].to_pylist(), lists[C.SCORE].to_pylist(), strict=True)
    structs = [[{item: one, score: other} for one, other in zip(*pair, strict=True)] for pair in values]
    kinds = [(item, lists.schema.field(C.ITEM_ID).type.value_type), (score, pa.float64())]
    rest = lists.drop_columns([C.ITEM_ID, C.SCORE])
    return rest.append_column("recommendations", pa.array(structs, pa.list_(pa.struct(kinds))))
