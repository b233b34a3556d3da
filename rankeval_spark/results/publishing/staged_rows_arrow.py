"""Queries that the audit runs on staged rows, with Arrow: for tables that this process reads, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.errors import Fault
from rankeval_spark.results.publishing.staged_rows import Key, StagedRows, Summaries, Summary, key_of, plain_columns
from rankeval_spark.results.storage.constraints import CONSTRAINTS

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector
    from rankeval_spark.schemas import Schema

MOST_EXAMPLES: Final = 3
_COUNT: Final = "count_all"


@dataclass(frozen=True)
class RowsInProcess(StagedRows):
    """Rows of a table in memory, or in Parquet files of this machine, which are read one after another.

    Attributes
    ----------
    parts : sequence of pa.Table or Path
        Each user's rows may lie in several of them.
    """

    parts: Sequence[pa.Table | Path]

    def refused(self, schema: Schema) -> list[Fault]:
        """Find keys that occur more than once, and rows that break a constraint."""
        rules = CONSTRAINTS.get(schema.name, {}).values()
        names = [*key_of(schema), *plain_columns(schema), *(name for rule in rules for name in rule.columns)]
        keys, broken = list[pa.Table](), list[Fault]()
        for rows in self._read(list(dict.fromkeys(names))):
            keys.append(_as_keys(rows.select(key_of(schema))))
            broken += [] if broken else _broken(rows, schema)
        return [*broken, *_repeated(pa.concat_tables(keys), schema)] if keys else broken

    def has_several_lists(self) -> bool:
        """Look for one that has a name."""
        return any(pc.any(pc.not_equal(rows[C.LIST_ID], C.ONE_LIST)).as_py() for rows in self._read([C.LIST_ID]))

    def summaries(self, weights: Mapping[str, str | None], *, over_users: bool = False) -> Summaries:
        """Add the parts up; where users are averaged, all of them are read at once."""
        names = [C.MODEL_ID, C.K, *([C.USER_ID] if over_users else []), *_values(weights)]
        parts: Iterable[pa.Table] = self._read(names)
        if over_users:
            parts = [_over_lists(pa.concat_tables(parts), weights)]
        found: dict[Key, dict[str, _Sums]] = {}
        for rows in parts:
            for key, sums in _sums(rows, weights):
                known = found.setdefault(key, {})
                found[key] = {name: known[name].plus(one) if name in known else one for name, one in sums.items()}
        return {key: {name: one.summary() for name, one in sums.items()} for key, sums in found.items()}

    def _read(self, names: Sequence[str]) -> Iterator[pa.Table]:
        for part in self.parts:
            yield part.select(names) if isinstance(part, pa.Table) else pq.read_table(part, columns=list(names))


# ---- keys and constraints --------------------------------------------------------------------------------------------


def _broken(rows: pa.Table, schema: Schema) -> list[Fault]:
    """Name a row that breaks a constraint of its table, and the constraint."""
    conditions: dict[str, BoolVector] = {
        f"{name} IS NOT NULL": to_numpy(rows[name].is_valid()) for name in plain_columns(schema)
    }
    conditions |= {str(rule): rule.holds(rows) for rule in CONSTRAINTS.get(schema.name, {}).values()}
    for rule, holds in conditions.items():
        if not holds.all():
            (row,) = rows.select(key_of(schema)).slice(int(np.argmin(holds)), 1).to_pylist()
            return [Fault(f"table {schema.name}", _written(row), f"rows with {rule}")]
    return []


def _repeated(keys: pa.Table, schema: Schema) -> list[Fault]:
    counted = keys.group_by(keys.column_names).aggregate([([], _COUNT)])
    repeated = counted.filter(pc.field(_COUNT) > 1).drop_columns(_COUNT)
    if not repeated.num_rows:
        return []
    found = "; ".join(_written(row) for row in repeated.slice(0, MOST_EXAMPLES).to_pylist())
    return [Fault(f"table {schema.name}", f"several rows for {found}", "one row a key")]


def _written(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def _as_keys(rows: pa.Table) -> pa.Table:
    """Write lists as text, different ones differently: Arrow does not group by lists."""
    return pa.Table.from_pydict(
        {
            name: _list_texts(rows[name]) if pa.types.is_list(rows.schema.field(name).type) else rows[name]
            for name in rows.column_names
        }
    )


def _list_texts(lists: pa.ChunkedArray) -> pa.Array:
    """Write each element with its length before it, so that no two lists have the same text."""
    whole = in_one_piece(lists)
    elements = pc.list_flatten(whole)
    lengths = pc.binary_length(elements).cast(pa.string())
    colon, no_element = to_texts([":", "-"])
    texts = pc.coalesce(pc.binary_join_element_wise(lengths, elements, colon), no_element)
    ends = np.concatenate(([0], np.cumsum(to_numpy(pc.list_value_length(whole), null=0)))).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(to_arrow(ends), texts), to_texts([""])[0])


# ---- sums ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sums:
    """What is added up of one column: its values, and the denominators of their mean."""

    n: int
    low: float
    high: float
    total: float
    by: float

    def plus(self, other: _Sums) -> _Sums:
        """Add what another part has."""
        low, high = float(np.minimum(self.low, other.low)), float(np.maximum(self.high, other.high))
        return _Sums(self.n + other.n, low, high, self.total + other.total, self.by + other.by)

    def summary(self) -> Summary:
        """Say what comes of it."""
        return Summary(self.n, self.low, self.high, self.total / self.by if self.by else None) if self.n else Summary()


def _sums(rows: pa.Table, weights: Mapping[str, str | None]) -> Iterator[tuple[Key, dict[str, _Sums]]]:
    """Add up the rows of each model and cutoff, by column."""
    if not rows.num_rows:
        return
    keys, group = _groups(rows, (C.MODEL_ID, C.K))
    order = np.argsort(group, kind="stable")
    columns = {name: to_numpy(rows[name]) for name in _values(weights)}
    is_there = {name: to_numpy(rows[name].is_valid()) for name in columns}
    for (model, k), own in zip(keys, np.split(order, np.flatnonzero(np.diff(group[order])) + 1), strict=True):
        values = {name: column[own] for name, column in columns.items()}
        there = {name: column[own] for name, column in is_there.items()}
        yield (model, k), {column: _sum(column, weight, values, there) for column, weight in weights.items()}


def _sum(column: str, weight: str | None, values: Mapping[str, FloatVector], there: Mapping[str, BoolVector]) -> _Sums:
    own = values[column][there[column]]
    low, high = (float(own.min()), float(own.max())) if len(own) else (np.inf, -np.inf)
    if weight is None:
        return _Sums(len(own), low, high, float(own.sum()), float(len(own)))
    products = (values[column] * values[weight])[there[column] & there[weight]]
    return _Sums(len(own), low, high, float(products.sum()), float(values[weight][there[weight]].sum()))


def _over_lists(rows: pa.Table, weights: Mapping[str, str | None]) -> pa.Table:
    """Average the lists of each user: one row per (model, user, k)."""
    _, group = _groups(rows, (C.MODEL_ID, C.K, C.USER_ID))
    first = np.unique(group, return_index=True)[1]
    averaged = {name: pc.take(rows[name], to_arrow(first)) for name in (C.MODEL_ID, C.K)}
    n_groups = len(first)

    def mean(values: FloatVector, there: BoolVector) -> FloatVector:
        total = np.bincount(group[there], weights=values[there], minlength=n_groups)
        with np.errstate(invalid="ignore"):
            return total / np.bincount(group[there], minlength=n_groups)

    columns = {name: to_numpy(rows[name]).astype(np.float64, copy=False) for name in _values(weights)}
    there = {name: to_numpy(rows[name].is_valid()) for name in columns}
    for column, weight in weights.items():
        plain = mean(columns[column], there[column])
        if weight is None:
            averaged[column] = _nullable(plain)
            continue
        by = mean(columns[weight], there[weight])
        both = there[column] & there[weight]
        # Sums, not means of the products: a list may have one of both only.
        top = np.bincount(group[both], weights=(columns[column] * columns[weight])[both], minlength=n_groups)
        bottom = np.bincount(group[there[weight]], weights=columns[weight][there[weight]], minlength=n_groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(bottom != 0, top / bottom, plain)
        averaged[column], averaged[weight] = _nullable(ratio), _nullable(by)
    return pa.Table.from_pydict(averaged)


def _groups(rows: pa.Table, names: Sequence[str]) -> tuple[list[tuple[Any, ...]], IntVector]:
    """Give each different key of some rows a number; return the keys, and the number of each row."""
    coded = [in_one_piece(rows[name]).dictionary_encode() for name in names]
    codes = [to_numpy(each.indices).astype(np.int64) for each in coded]
    together = codes[0]
    for code, each in zip(codes[1:], coded[1:], strict=True):
        together = together * len(each.dictionary) + code
    distinct, first, group = np.unique(together, return_index=True, return_inverse=True)
    columns = (pc.take(each.dictionary, pc.take(each.indices, to_arrow(first))).to_pylist() for each in coded)
    return list(zip(*columns, strict=True)) if len(distinct) else [], group


def _values(weights: Mapping[str, str | None]) -> list[str]:
    """Name the columns of numbers: values, then denominators, each once."""
    return list(dict.fromkeys([*weights, *(weight for weight in weights.values() if weight is not None)]))


def _nullable(values: FloatVector) -> pa.Array:
    """Write NaN, which means that there is no value, as NULL; a NaN among the values was refused before."""
    return to_arrow(values, is_null=np.isnan(values))
