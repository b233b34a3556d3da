"""Sources of figures and pages: result frames from any library as Arrow, and their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault, kind_of
from rankeval_spark.result_rows.column_types import ARROW_TYPES

if TYPE_CHECKING:
    from rankeval_spark.report.explanation import Explanation
    from rankeval_spark.schemas import Schema

Row: TypeAlias = Mapping[str, Any]
NO_EARLIER_NIGHT: Final = "The first night: there is none before it to compare with."
NO_EXAMPLES: Final = (
    "No examples: set `results.examples: 5` in the config and run the night again, to keep five users who win and five "
    "who lose most under each model, with their items."
)


@dataclass(frozen=True)
class ReportTables:
    """Published tables, each with the columns of :mod:`rankeval_spark.schemas`."""

    runs: pa.Table  # every event of the evaluation
    metrics: pa.Table  # rows of the night that is reported; of other nights those of all users are enough
    group_metrics: pa.Table  # rows of the night that is reported; others are ignored
    comparisons: pa.Table
    gates: pa.Table  # rows of every night: bounds are drawn in the history
    checks: pa.Table
    user_metrics: pa.Table  # rows of single users of that night, all or a sample; none where they were deleted
    user_share: float = 1.0  # share of the users that `user_metrics` holds
    night_changes: pa.Table = field(
        default_factory=pa.schema([]).empty_table
    )  # `Results.what_changed` of the headline measure
    no_changes: str = NO_EARLIER_NIGHT  # why there are none
    best_pair: Sequence[Row] = ()  # the two best models, as a row of `comparisons`, where that table lacks it
    examples: pa.Table = field(default_factory=lambda: empty_table(schemas.EXAMPLES))  # rows of that night
    no_examples: str = NO_EXAMPLES  # why there are none
    explained: Sequence[Explanation] = ()  # lists of the examples, by the number in their column `explained`

    @classmethod
    def without_rows(cls, runs: pa.Table) -> ReportTables:
        """Build tables without rows, for runs that published nothing."""
        names = (schemas.METRICS, schemas.GROUP_METRICS, schemas.COMPARISONS, schemas.GATES, schemas.CHECKS)
        return cls(runs, *map(empty_table, (*names, schemas.USER_METRICS)))


def empty_table(schema: Schema) -> pa.Table:
    """Return a published table without rows."""
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in schema.fields]).empty_table()


def to_arrow(frame: object, *, what: str = "frame") -> pa.Table:
    """Read a result frame of Spark, pandas, polars, DuckDB or Arrow; ConfigError for anything else."""
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
        return found.cast(pa.schema([(field.name, _to_usual_type(field.type)) for field in found.schema]))
    expected = "a frame of Spark, pandas, polars, DuckDB or Arrow"
    raise ConfigError(Fault(what, f"a {kind_of(frame)}", expected, "pass a result such as evaluate(...).metrics"))


def _to_usual_type(kind: pa.DataType) -> pa.DataType:
    """Return the usual form of a type: Arrow cannot filter the text types of polars."""
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_to_usual_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_to_usual_type(kind.key_type), _to_usual_type(kind.item_type))
    return kind


def select_for_figure(frame: Any, columns: Sequence[str], *, ks: Collection[int]) -> Any:  # noqa: ANN401 - a frame of any library
    """Select columns and some cutoffs from a Spark DataFrame; return other frames as they are."""
    if not callable(getattr(frame, "toArrow", None)):
        return frame
    there = [name for name in columns if name in frame.columns]
    return frame.where(frame[C.K].isin(*ks)).select(*there)


def keep(table: pa.Table, **wanted: object) -> pa.Table:
    """Keep rows by the value of columns, or by one of several values; None keeps every row."""
    for name, value in wanted.items():
        if value is not None:
            several = [*value] if isinstance(value, Collection) and not isinstance(value, str) else [value]
            table = table.filter(pc.is_in(table[name], value_set=pa.array(several, table[name].type)))
    return table


def rows_of(table: pa.Table, columns: Sequence[str] = (), **wanted: object) -> list[dict[str, Any]]:
    """Return the wanted rows as dictionaries, with the named columns that exist."""
    shown = [name for name in columns or table.column_names if name in table.column_names]
    found = keep(table.select(list({*shown, *wanted})), **wanted).select(shown)  # the others are not copied
    rows: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="lossy")
    return rows


def distinct(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """Return the distinct combinations of some columns, sorted."""
    if not table.num_rows:
        return []
    found = table.select(list(names)).group_by(list(names)).aggregate([])
    return sorted(zip(*(found[name].to_pylist() for name in names), strict=True))


def all_users_rows(table: pa.Table) -> pa.Table:
    """Keep the rows over all users."""
    return keep(table, **{C.SLICE: C.ALL_USERS})
