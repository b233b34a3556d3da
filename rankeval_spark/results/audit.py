"""The audit between staging and publishing: keys, numbers, and agreement between the tables.

Staged rows are read by Arrow in this process, of many users some at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.buckets import hash_users
from rankeval_spark.errors import Fault
from rankeval_spark.results.tables import CONSTRAINTS
from rankeval_spark.statistics import intervals

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.measures.arrays import BoolVector
    from rankeval_spark.results.run_record import MeasureRecord
    from rankeval_spark.results.tables import Constraint
    from rankeval_spark.schemas import Schema

TOLERANCE: Final = 1e-9
"""Largest relative difference between a mean as published and as recomputed: room for the order of summation."""

MAX_EXAMPLES: Final = 3
MAX_ROWS_AT_ONCE: Final = 20_000_000  # rows of users whose keys are compared at once; a key takes some 100 bytes
_COUNT: Final = "count_all"
_KEY: Final = (C.MODEL_ID, C.K)
_MERGED: Final = {"count": "sum", "min": "min", "max": "max", "sum": "sum"}
"""Aggregates of each column of numbers, and how those of several parts are combined."""


class Summary(NamedTuple):
    """Count, lowest, highest, and mean or ratio of sums, over the non-NULL values in a column."""

    n: int = 0
    low: float | None = None
    high: float | None = None
    mean: float | None = None


Summaries: TypeAlias = Mapping[tuple[str, int], Mapping[str, Summary]]  # by model and cutoff, then by column


def failed_checks(checks: pa.Table) -> list[Fault]:
    """Return faults of the checks whose verdict is error."""
    faults = []
    for row in checks.filter(pc.field("verdict") == "error").to_pylist():
        fix = f"for example {', '.join(row['sample_keys'][:3])}" if row["sample_keys"] else ""
        found, expected = f"{row['count']} ({row['share']})", f"a share of at most {row['threshold']}"
        faults.append(Fault(f"input {row['input']}, check {row['check']}", found, expected, fix))
    return faults


def refused_rows(staged: Mapping[str, StagedRows], schemas: Sequence[Schema]) -> list[Fault]:
    """Return faults of staged rows that the published tables would not take."""
    return [fault for schema in schemas if schema.name in staged for fault in staged[schema.name].refused(schema)]


def user_metrics(rows: StagedRows, metrics: pa.Table | None, measures: Sequence[MeasureRecord]) -> list[Fault]:
    """Return faults: values that are not finite or out of range, and means that differ from the per-user rows.

    One pass over ``user_metrics``; a second where a user has several lists, whose value is the mean over them (of means
    over lists, to count the users).
    """
    owners = {measure.column: measure for measure in measures if measure.column is not None}
    if not owners:
        return []
    weights = {column: measure.weight for column, measure in owners.items()}
    lists, faults = rows.summaries(weights), []
    for (model, k), of_columns in lists.items():
        for column, measure in owners.items():
            where, found = f"table user_metrics, model {model}, {measure.measure} at k = {k}", of_columns[column]
            faults += _range_faults(where, found.low, found.high, measure)
    if faults or metrics is None:
        return faults
    users = rows.summaries(weights, over_users=True) if rows.has_several_lists() else lists
    facts = {measure.measure: measure for measure in measures}
    columns = [C.MODEL_ID, C.MEASURE, C.K, C.VALUE, "n_users", C.N_LISTS]
    for row in metrics.filter(pc.field(C.SLICE) == C.ALL_USERS).select(columns).to_pylist():
        fact, key, value = facts.get(row[C.MEASURE]), (row[C.MODEL_ID], row[C.K]), row[C.VALUE]
        if fact is not None and fact.column is None:  # of all lists together
            continue
        column = fact.column if fact is not None and fact.column is not None else ""
        of_lists, of_users = (side.get(key, {}).get(column, Summary()) for side in (lists, users))
        mean = of_lists.mean if fact is not None and fact.unit == "list" else of_users.mean
        if fact is not None and mean is not None:  # as it is published
            mean = float(intervals.to_published(fact.link, np.array(mean)))
        are_alike = mean is value
        if mean is not None and value is not None:
            are_alike = math.isclose(mean, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        counts = (of_users.n, of_lists.n)
        if counts != (row["n_users"], row[C.N_LISTS]) or not are_alike:
            where = f"table metrics, model {row[C.MODEL_ID]}, {row[C.MEASURE]} at k = {row[C.K]}, slice all"
            found_there = f"{row[C.VALUE]} over {_count_text(row['n_users'], row[C.N_LISTS])}"
            faults.append(Fault(where, found_there, f"{mean} over {_count_text(*counts)}, the mean of user_metrics"))
    return faults


def _count_text(n_users: int, n_lists: int | None) -> str:
    """Return the number of users, and of lists if they differ."""
    return f"{n_users} users" if n_lists == n_users else f"{n_users} users with {n_lists} lists"


def exposures(metrics: pa.Table, measures: Sequence[MeasureRecord]) -> list[Fault]:
    """Return faults of measures over all lists: values that are not finite or out of range."""
    owners = {measure.measure: measure for measure in measures if measure.column is None}
    if not owners:
        return []
    key = (C.MODEL_ID, C.MEASURE, C.K)
    own = metrics.filter(pc.field(C.MEASURE).isin(list(owners))).group_by(list(key), use_threads=False)
    found = []
    for row in own.aggregate([(C.VALUE, function) for function in ("min", "max", "sum")]).to_pylist():
        total = row[f"{C.VALUE}_sum"]
        has_nan = total is not None and math.isnan(total)  # which Arrow leaves out of the lowest and the highest
        low, high = (math.nan if has_nan else row[f"{C.VALUE}_{end}"] for end in ("min", "max"))
        where = f"table metrics, model {row[C.MODEL_ID]}, {row[C.MEASURE]} at k = {row[C.K]}"
        found += _range_faults(where, low, high, owners[row[C.MEASURE]])
    return found


def _range_faults(where: str, low: float | None, high: float | None, measure: MeasureRecord) -> list[Fault]:
    """Return the fault if values are not finite or outside their measure's range."""
    least = -math.inf if measure.low is None else measure.low
    most = math.inf if measure.high is None else measure.high
    if low is None or high is None:
        return []
    if math.isfinite(low) and math.isfinite(high) and low >= least - TOLERANCE and high <= most + TOLERANCE:
        return []
    expected = f"finite values from {least:g} to {most:g}, NULL where undefined"
    return [Fault(where, f"values from {low} to {high}", expected)]


def key_of(schema: Schema) -> list[str]:
    """Return the key of a table within one run."""
    return [name for name in schema.key if name not in C.RUN_KEY]


def key_text(row: Mapping[str, Any]) -> str:
    """Return the key of a row for a message."""
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def rules_of(schema: Schema) -> list[Constraint]:
    """Return the constraints of a table on columns that it has."""
    names = schema.field_names()
    return [rule for rule in CONSTRAINTS.get(schema.name, {}).values() if set(rule.columns) <= set(names)]


def plain_columns(schema: Schema) -> list[str]:
    """Return columns that must not be NULL, except arrays and maps, which would have to be read for that."""
    plain = (field for field in schema.fields if not field.nullable and "<" not in field.type)
    return [field.name for field in plain if field.name not in C.RUN_KEY]


class StagedRows:
    """Rows of a table in memory, or in Parquet files of this machine, which are read one after another.

    What compares rows of many parts is done for some users at a time, so that memory does not grow with their number.
    """

    def __init__(self, parts: Sequence[pa.Table | Path]) -> None:
        self.parts = parts  # each user's rows may lie in several of them

    def refused(self, schema: Schema) -> list[Fault]:
        """Return repeated keys, and rows that break a constraint: after its intent, a publish could not end."""
        names = [*key_of(schema), *plain_columns(schema), *(name for rule in rules_of(schema) for name in rule.columns)]
        repeated, faults = list[str](), list[Fault]()
        for parts in self._some_users(list(dict.fromkeys(names))):
            keys = []
            for rows in parts:
                key = rows.select(key_of(schema))  # with lists as distinct texts: Arrow does not group by lists
                lists = [field.name for field in key.schema if pa.types.is_list(field.type)]
                columns = {name: _list_texts(key[name]) if name in lists else key[name] for name in key.column_names}
                keys.append(pa.Table.from_pydict(columns))
                faults += [] if faults else _broken(rows, schema)
            if keys:
                grouped = pa.concat_tables(keys).group_by(key_of(schema)).aggregate([([], _COUNT)])
                doubles = grouped.filter(pc.field(_COUNT) > 1).drop_columns(_COUNT)
                repeated += map(key_text, doubles.slice(0, MAX_EXAMPLES).to_pylist())
        found = f"several rows for {'; '.join(repeated[:MAX_EXAMPLES])}"
        return faults + ([Fault(f"table {schema.name}", found, "one row a key")] if repeated else [])

    def has_several_lists(self) -> bool:
        """Return whether a list has a name."""
        return any(pc.any(pc.not_equal(rows[C.LIST_ID], C.ONE_LIST)).as_py() for rows in self._read([C.LIST_ID]))

    def summaries(self, weights: Mapping[str, str | None], *, over_users: bool = False) -> Summaries:
        """Summarise columns by model and cutoff, with ``over_users`` after averaging the lists of each user.

        ``weights`` maps each column to that of its denominators, if its mean is a ratio of sums.
        """
        names = [*_KEY, *_numbers(weights)]
        parts: Iterable[pa.Table] = self._read(names)
        if over_users:
            parts = (_over_lists(pa.concat_tables(own), weights) for own in self._some_users([*names, C.USER_ID]))
        sums = []
        for rows in parts:
            found = _with_products(rows, weights)
            how = [(name, function) for name in found.column_names if name not in _KEY for function in _MERGED]
            sums.append(found.group_by(list(_KEY)).aggregate(how))
        if not sums:
            return {}
        merged = pa.concat_tables(sums)
        how = [(name, _MERGED[name.rpartition("_")[2]]) for name in merged.column_names if name not in _KEY]
        total = merged.group_by(list(_KEY)).aggregate(how)
        columns = {name: total[name] for name in _KEY} | {name: total[f"{name}_{way}"] for name, way in how}
        return {
            (row[C.MODEL_ID], row[C.K]): {name: _summary(row, name, weight) for name, weight in weights.items()}
            for row in pa.Table.from_pydict(columns).to_pylist()
        }

    def _read(self, names: Sequence[str]) -> Iterator[pa.Table]:
        for part in self.parts:
            yield part.select(names) if isinstance(part, pa.Table) else pq.read_table(part, columns=list(names))

    def _some_users(self, names: Sequence[str]) -> Iterator[Iterator[pa.Table]]:
        """Yield the parts with all rows of some users, by a hash; all rows at once where they are few."""
        sizes = (part if isinstance(part, pa.Table) else pq.read_metadata(part) for part in self.parts)
        n_groups = 1 + sum(part.num_rows for part in sizes) // MAX_ROWS_AT_ONCE
        if n_groups == 1 or C.USER_ID not in names:
            yield self._read(names)
            return
        for group in range(n_groups):
            yield (rows.filter(to_arrow(hash_users(rows[C.USER_ID]) % n_groups == group)) for rows in self._read(names))


def _broken(rows: pa.Table, schema: Schema) -> list[Fault]:
    """Return the fault of a row that breaks a constraint, if any."""
    conditions: dict[str, BoolVector] = {
        f"{name} IS NOT NULL": to_numpy(rows[name].is_valid()) for name in plain_columns(schema)
    }
    conditions |= {str(rule): rule.holds(rows) for rule in rules_of(schema)}
    for rule, holds in conditions.items():
        if not holds.all():
            (row,) = rows.select(key_of(schema)).slice(int(np.argmin(holds)), 1).to_pylist()
            return [Fault(f"table {schema.name}", key_text(row), f"rows with {rule}")]
    return []


def _list_texts(lists: pa.ChunkedArray) -> pa.Array:
    """Encode each element with its length before it, so that no two lists have the same text."""
    whole = combine_chunks(lists)
    elements = pc.list_flatten(whole)
    lengths = pc.binary_length(elements).cast(pa.string())
    colon, no_element = to_texts([":", "-"])
    texts = pc.coalesce(pc.binary_join_element_wise(lengths, elements, colon), no_element)
    ends = np.concatenate(([0], np.cumsum(to_numpy(pc.list_value_length(whole), null=0)))).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(to_arrow(ends), texts), to_texts([""])[0])


def _numbers(weights: Mapping[str, str | None]) -> list[str]:
    """Return the columns of numbers: values, then denominators, each once."""
    return list(dict.fromkeys([*weights, *filter(None, weights.values())]))


def _with_products(rows: pa.Table, weights: Mapping[str, str | None]) -> pa.Table:
    """Add products of values and denominators, named ``x*``."""
    products = {f"{name}*": pc.multiply(rows[name], rows[weight]) for name, weight in weights.items() if weight}
    return pa.Table.from_pydict({**{name: rows[name] for name in rows.column_names}, **products})


def _summary(row: Mapping[str, Any], column: str, weight: str | None) -> Summary:
    """Summarise a column from Arrow's merged aggregates: number, lowest, highest and mean, weighted by ``weight``."""
    n, low, high, total = (row[f"{column}_{function}"] for function in _MERGED)
    if not n:
        return Summary()
    if math.isnan(total):  # Arrow leaves NaN out of the lowest and the highest
        low = high = total
    top, by = (total, n) if weight is None else (row[f"{column}*_sum"] or 0.0, row[f"{weight}_sum"])
    return Summary(n, low, high, top / by if by else None)


def _over_lists(rows: pa.Table, weights: Mapping[str, str | None]) -> pa.Table:
    """Average the lists of each user: one row per (model, user, k)."""
    ratios = {column: weight for column, weight in weights.items() if weight is not None}
    terms = dict.fromkeys([*(f"{column}*" for column in ratios), *ratios.values()], "sum")
    how = [*((name, "mean") for name in _numbers(weights)), *terms.items()]
    found = _with_products(rows, weights).group_by([*_KEY, C.USER_ID]).aggregate(how)
    averaged = {**{name: found[name] for name in _KEY}, **{name: found[f"{name}_mean"] for name in _numbers(weights)}}
    for column, weight in ratios.items():
        # Sums, not means of the products: a list may have one of both only.
        top, bottom = (to_numpy(found[f"{name}_sum"], null=0) for name in (f"{column}*", weight))
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(bottom != 0, top / bottom, to_numpy(averaged[column]))
        averaged[column] = to_arrow(ratio, is_null=np.isnan(ratio))  # a NaN among the values was refused before
    return pa.Table.from_pydict(averaged)
