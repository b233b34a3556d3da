"""What a figure or a page is drawn from: result frames of any library as Arrow, and rows of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault, kind_of

if TYPE_CHECKING:
    from rankeval_spark.schemas import Schema

Row: TypeAlias = Mapping[str, Any]

PAIRED: Final = "t"
"""The test whose rows verdicts and gates read."""


@dataclass(frozen=True)
class ReportTables:
    """Published tables, each with the columns of :mod:`rankeval_spark.schemas`.

    Attributes
    ----------
    runs : pyarrow.Table
        Every event of the evaluation.
    metrics : pyarrow.Table
        Rows of the night that is reported; of other nights those of all users are enough.
    gates : pyarrow.Table
        Rows of every night: bounds are drawn in the history.
    group_metrics, comparisons, checks : pyarrow.Table
        Rows of the night that is reported; others are ignored.
    user_metrics : pyarrow.Table
        Rows of single users of that night, all or a sample; none where they were deleted.
    user_share : float
        Share of the users that ``user_metrics`` holds.
    """

    runs: pa.Table
    metrics: pa.Table
    group_metrics: pa.Table
    comparisons: pa.Table
    gates: pa.Table
    checks: pa.Table
    user_metrics: pa.Table
    user_share: float = 1.0

    @classmethod
    def of_runs(cls, runs: pa.Table) -> ReportTables:
        """Make tables without rows for runs of which none published anything."""
        names = (schemas.METRICS, schemas.GROUP_METRICS, schemas.COMPARISONS, schemas.GATES, schemas.CHECKS)
        return cls(runs, *map(empty_table, (*names, schemas.USER_METRICS)))


_TYPES: Final = {
    "string": pa.string(),
    "date": pa.date32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
}


def empty_table(schema: Schema) -> pa.Table:
    """Make a published table without rows."""
    return pa.schema([(field.name, _TYPES[field.type]) for field in schema.fields]).empty_table()


def to_arrow(frame: object, *, what: str = "frame") -> pa.Table:
    """Read a result frame of Spark, pandas, polars, DuckDB or Arrow.

    Raises
    ------
    ConfigError
        If it is none of these.
    """
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    # DataFrames of Spark are streams of Arrow only since 4.2.
    to_arrow_table = getattr(frame, "toArrow", None)
    if callable(to_arrow_table):
        table: pa.Table = to_arrow_table()
        return table
    if hasattr(frame, "__arrow_c_stream__"):
        found = pa.RecordBatchReader.from_stream(frame).read_all()
        return found.cast(pa.schema([(field.name, _usual(field.type)) for field in found.schema]))
    expected = "a frame of Spark, pandas, polars, DuckDB or Arrow"
    raise ConfigError(Fault(what, f"a {kind_of(frame)}", expected, "pass a result such as evaluate(...).metrics"))


def _usual(kind: pa.DataType) -> pa.DataType:
    """Give the usual form of a type: Arrow cannot filter texts as polars keeps them."""
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_usual(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_usual(kind.key_type), _usual(kind.item_type))
    return kind


def pruned(frame: Any, columns: Sequence[str], *, k: int) -> Any:  # noqa: ANN401 - a frame of any library
    """Leave only some columns, and the rows of one cutoff, of a DataFrame of Spark; other frames are here already."""
    if not callable(getattr(frame, "toArrow", None)):
        return frame
    there = [name for name in columns if name in frame.columns]
    return frame.where(frame[C.K] == k).select(*there)


def keep(table: pa.Table, **wanted: object) -> pa.Table:
    """Keep the rows whose columns have the wanted value, or one of several; None keeps every row."""
    for name, value in wanted.items():
        if value is None:
            continue
        column = table[name]
        if isinstance(value, Collection) and not isinstance(value, str):
            found = pc.is_in(column, value_set=pa.array(list(value), column.type))
        else:
            found = pc.equal(column, pa.scalar(value, column.type))
        table = table.filter(found)
    return table


def rows_of(table: pa.Table, columns: Sequence[str] = (), **wanted: object) -> list[dict[str, Any]]:
    """Read the wanted rows as dictionaries, with the columns that are named and there."""
    found = keep(table, **wanted)
    if columns:
        found = found.select([name for name in columns if name in found.column_names])
    rows: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="lossy")
    return rows


def distinct(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """List the different values of some columns together, sorted."""
    if not table.num_rows:
        return []
    found = table.select(list(names)).group_by(list(names)).aggregate([])
    return sorted(zip(*(found[name].to_pylist() for name in names), strict=True))


def demand_columns(table: pa.Table, needed: Sequence[str], *, what: str) -> None:
    """Refuse a frame that has not the columns of the result it is taken for."""
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        fix = f"pass {what} of evaluate(...) or of Results, or a frame with its columns"
        found = f"a frame without {', '.join(missing)}"
        raise ConfigError(Fault(what, found, f"the columns of {what}", fix))


def all_users_rows(table: pa.Table) -> pa.Table:
    """Keep the rows over all users."""
    return keep(table, **{C.SLICE: C.ALL_USERS})
