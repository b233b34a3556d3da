"""Inputs of an evaluation in this process, from tables of pandas, polars, pyarrow and DuckDB.

Whatever speaks Arrow's C stream is read into canonical columns, if it fits into memory.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.inputs import FrameInputs, LogRows, column_and_field
from rankeval_spark.engine.arrays import lengths_of, to_arrow
from rankeval_spark.errors import Fault, InputError, first_line, kind_of
from rankeval_spark.inputs.arrow.canonical import RECOMMENDATIONS, Reading, item_arrays
from rankeval_spark.inputs.arrow.other_frames import LazyFrame
from rankeval_spark.inputs.input_columns import (
    IDS,
    LOG,
    NO_ORDER,
    GivenInputs,
    column_fault,
    each_frame,
    missing_faults,
    required_columns,
)
from rankeval_spark.time_zones import UTC

if TYPE_CHECKING:
    from rankeval_spark.config.inputs import InputRows
    from rankeval_spark.inputs.arrow.cells import Cells
    from rankeval_spark.schemas import Schema

_STREAM: Final = "__arrow_c_stream__"
_EXPECTED: Final = "a table that Arrow can read: pandas, polars, pyarrow or DuckDB"
_ID_TYPES: Final = {pa.string(): "string", pa.int64(): "bigint"}

BYTES_A_ROW: Final = 100
"""Memory of a row of an input with integer ids at the peak, its Arrow table included; measured with ten million."""

MAX_MEMORY: Final = 1 / 4  # share of the memory of the machine that the rows of a night may need here

_SIZED: Final = ("pandas", "polars", "pyarrow", "rankeval_spark")
"""Libraries whose tables know their rows; a relation of DuckDB runs its query to count them, and ends its streams."""


@dataclass(frozen=True)
class Source:
    """One input in its canonical columns."""

    name: str  # one of ``input_columns.INPUTS``
    # Canonical columns that the table has, in the order of the schema; of judgements always ``gain``, 1 where the table
    # has none. Ids are string or int64, ``model_id`` and ``list_id`` string; ``score`` double, int64 or decimal;
    # ``rank`` int32, ``gain`` and ``value`` double; ``interacted_at`` timestamp in microseconds UTC, ``published_at``
    # date32, ``categories`` a list of string, ``vector`` a list of double; segments string, those that become bands
    # double. Cells that cannot be read are NULL.
    table: pa.Table
    given: frozenset[str]  # canonical columns that the table had
    id_types: Mapping[str, str]  # type of each id, ``string`` or ``bigint``, by canonical column
    unreadable: pa.BooleanArray | None = None  # whether a cell of the row could not be read; None where every one could
    unread: tuple[str, ...] = ()  # columns of the table that nothing reads, where they are known


@dataclass(frozen=True)
class Tables(GivenInputs[Source]):
    """The inputs of one evaluation: all rows, those that cannot be used too."""

    # Whether checks judge the rows that cannot be used. Where they do not, an input without any other is refused, and
    # so is a log whose ranks count from 0.
    are_checked: bool = False

    @property
    def has_one_list(self) -> bool:
        return "list_id" not in self.recommendations.given


def refuse_large(frames: Mapping[str, object]) -> None:
    """Refuse inputs that need more memory than the machine has; rows that are unknown before reading do not count."""
    shapes = [getattr(frame, "shape", ()) for frame in each_frame(frames).values() if _library_name(frame) in _SIZED]
    n_rows = [shape[0] for shape in shapes if isinstance(shape, tuple) and shape]
    refuse_rows(sum(n for n in n_rows if isinstance(n, int)))


def refuse_rows(n_rows: int) -> None:
    """Refuse rows that need more memory than the machine has."""
    needed, memory = n_rows * BYTES_A_ROW, physical_bytes()
    if needed > memory:
        found = f"{n_rows:,} rows, which need some {needed / 1e9:.0f} GB"
        expected = f"what fits into the {memory / 1e9:.0f} GB of this machine"
        raise InputError(Fault("recommendations", found, expected, "give DataFrames of Spark instead"))


def physical_bytes() -> float:
    """Return the memory of the machine, or the lower limit of this process (``ulimit -v``); infinite if unknown."""
    try:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        there = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        return there if limit == resource.RLIM_INFINITY else min(there, float(limit))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _library_name(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def unite_models(sources: Mapping[str, Source]) -> Source:
    """Append the logs of models to one another, each row with the name of its model."""
    rows = [
        source.table.append_column(C.MODEL_ID, pa.repeat(pa.scalar(model), source.table.num_rows))
        for model, source in sources.items()
    ]
    table = pa.concat_tables(rows, promote_options="permissive")
    first, unread = next(iter(sources.values())), (name for source in sources.values() for name in source.unread)
    return Source(LOG, table, first.given | {C.MODEL_ID}, first.id_types, unread=tuple(dict.fromkeys(unread)))


def is_table(frame: object) -> bool:
    """Return True for a table that this process can read; False for a DataFrame of Spark, which streams too."""
    return hasattr(type(frame), _STREAM) and _library_name(frame) != "pyspark"


def table_fault(name: str, frame: object) -> Fault | None:
    """Return the fault of an argument that is not a table of this process; None for one that is."""
    ways = ("to_table", "to_reader", "arrow", "to_pandas")  # of scanners of pyarrow, a connection of duckdb, others
    if is_table(frame):
        return None
    if _library_name(frame) == "pyspark":
        fix = "give every input as a DataFrame of Spark, or call toArrow() on this one"
    elif isinstance(frame, dict) and _library_name(frame) not in ("builtins", "collections"):
        fix = f"give one of its parts: {', '.join(map(str, frame))}"
    elif method := next((way for way in ways if hasattr(frame, way)), None):
        fix = f"call {method}() on it"
    else:
        fix = "pandas.DataFrame or pyarrow.table makes one of rows or columns"
    return Fault(name, f"a {kind_of(frame)}", _EXPECTED, fix)


def to_source(
    name: str,  # of the argument, for messages
    frame: object,  # any with Arrow's ``__arrow_c_stream__``; columns that are not of the schema are left out
    schema: Schema,
    rows: InputRows | None = None,  # how its rows are read, by default by canonical names
    time_zone: str = UTC,  # of days, and of times without one
) -> Source:
    """Read a table into the canonical columns of a schema; its stream is read once. All faults are raised at once."""
    if fault := table_fault(name, frame):
        raise InputError(fault)
    rows = rows or getattr(FrameInputs(), schema.name)
    table, faults, unread = _read_chosen_columns(name, frame, schema, rows)
    reading = Reading.from_frame(name, schema, table.schema, rows, time_zone)
    if reading.nested is not None:
        faults = [fault for fault in faults if fault.found != NO_ORDER]  # the order of the items in their array is one
        _refuse_unpaired_gains(table, reading, name)
        table = reading.to_items(table)
        refuse_rows(table.num_rows)
    elif RECOMMENDATIONS in table.column_names:
        faults.append(column_fault(name, C.ITEM_ID, table.column_names))
    reading = replace(reading, is_of_pandas=_library_name(frame) == "pandas")
    return replace(build_source(name, reading.read_columns(table, faults), schema, table.num_rows), unread=unread)


def _refuse_unpaired_gains(table: pa.Table, reading: Reading, name: str) -> None:
    """Raise InputError where a row of judgements has another number of gains than of items, with the first such row."""
    arrays = {} if reading.nested is None else item_arrays(table, reading.nested, reading.where)
    if C.GAIN not in arrays:
        return
    n_items, n_gains = (lengths_of(arrays[column]) for column in (C.ITEM_ID, C.GAIN))
    if len(uneven := np.flatnonzero(n_items != n_gains)):
        found = f"{n_items[uneven[0]]} items and {n_gains[uneven[0]]} gains in row {uneven[0]}"
        found += f", and {len(uneven) - 1} more such rows" if len(uneven) > 1 else ""
        fix = "make both arrays as long, or leave the gains out where all are 1"
        raise InputError(Fault(name, found, "a gain for each item", fix))


def build_source(name: str, cells: Mapping[str, Cells], schema: Schema, n_rows: int) -> Source:
    """Build an input of its canonical columns; judgements without gains get gain 1."""
    columns = {field: column.values for field, column in cells.items()}
    if schema.name == schemas.HELD_OUT.name and C.GAIN not in columns:
        columns[C.GAIN] = pa.chunked_array([to_arrow(np.ones(n_rows))])
    marks = [column.unreadable for column in cells.values() if column.unreadable is not None]
    return Source(
        name,
        pa.Table.from_pydict({field: columns[field] for field in schema.field_names() if field in columns}),
        given=frozenset(cells),
        id_types={field: _ID_TYPES[columns[field].type] for field in IDS if field in columns},
        unreadable=reduce(pc.or_, marks) if marks else None,
    )


def _read_chosen_columns(
    name: str,
    frame: Any,  # noqa: ANN401 - of any library
    schema: Schema,
    rows: InputRows,
) -> tuple[pa.Table, list[Fault], tuple[str, ...]]:
    """Read those columns of a schema that a table has; return them, faults of their names, and the other columns."""
    project = _PROJECTIONS.get(_library_name(frame)) if hasattr(frame, "columns") else None
    try:
        reader = None if project else pa.RecordBatchReader.from_stream(frame)
        columns = [*map(str, frame.columns if reader is None else reader.schema.names)]
        in_index = getattr(getattr(frame, "index", None), "names", ())
        faults, chosen = _choose_columns(name, columns, schema, rows, in_index)
        lacks_arrays = any(".nested." in fault.where for fault in faults)
        if not chosen or lacks_arrays:
            raise InputError(*faults)
        if project:
            reader = pa.RecordBatchReader.from_stream(project(frame, chosen))
        return _read_stream(reader, chosen), faults, tuple(column for column in columns if column not in chosen)
    except (pa.ArrowException, TypeError, ValueError) as error:
        given = frame.given if isinstance(frame, LazyFrame) else frame
        found = f"a {kind_of(given)} that Arrow cannot read ({first_line(' '.join(map(str, error.args)))})"
        fix = "give each column values of one type"
        raise InputError(Fault(name, found, _EXPECTED, fix)) from error


def _choose_columns(
    name: str,
    columns: Sequence[str],
    schema: Schema,
    rows: InputRows,
    index_names: Collection[object],  # of the levels of an index, which is no column
) -> tuple[list[Fault], list[str]]:
    """Return the faults of a table's columns, and those of the schema's columns that it has once."""
    names = {field: rows.renames.get(field, field) for field in schema.field_names()}
    arrays: dict[str, str] = {}
    if rows.nested_items is not None:
        nested = rows.nested_items
        arrays = {
            f"{name}.{nested.places[field]}": column_and_field(path, columns)[0]
            for field, path in nested.arrays.items()
        }
        names = {field: own for field, own in names.items() if field not in (*nested.arrays, C.SCORE, C.RANK)}
    wanted, assumed = [*dict.fromkeys([*names.values(), *arrays.values()])], [*columns]
    is_plain = isinstance(rows, LogRows) and rows.nested_items is None
    if is_plain and names[C.ITEM_ID] not in columns and RECOMMENDATIONS in columns:
        wanted.append(RECOMMENDATIONS)
        assumed.append(names[C.ITEM_ID])  # whether it has them, its type says
    faults = missing_faults(assumed, names, rows.renames, name, rows.places, required=required_columns(schema))
    faults += [column_fault(key, own, columns) for key, own in arrays.items() if own not in columns]
    in_index = {f"no column {level!r}" for level in index_names}
    fix = "call reset_index() on the frame: its index is no column"
    faults = [replace(fault, fix=fix) if fault.found.partition(" among ")[0] in in_index else fault for fault in faults]
    twice = [column for column in wanted if columns.count(column) > 1]
    faults += [
        Fault(name, f"column {column!r} more than once", "each column once", "rename or remove one of them")
        for column in twice
    ]
    return faults, [column for column in wanted if columns.count(column) == 1]


def _read_stream(reader: pa.RecordBatchReader, names: list[str]) -> pa.Table:
    """Read a stream to its end, or until it has more rows than this machine can hold."""
    schema = pa.schema([reader.schema.field(name) for name in names])
    batches: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in reader:
        batches.append(batch.select(names))
        n_rows += batch.num_rows
        refuse_rows(n_rows)
    return pa.Table.from_batches(batches, schema)


def _select_from_pandas(frame: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 - without an import of pandas
    is_chosen = [str(label) in names for label in frame.columns]
    chosen = frame.copy(deep=False) if all(is_chosen) else frame.loc[:, is_chosen]
    chosen.index = range(len(chosen))  # pandas would hand over any other index as one more column
    return chosen


def _select_from_duckdb(relation: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 - without an import of duckdb
    return relation.project(", ".join('"' + name.replace('"', '""') + '"' for name in names))


_PROJECTIONS: Final[Mapping[str, Callable[[Any, Sequence[str]], Any]]] = {
    "pandas": _select_from_pandas,
    **dict.fromkeys(("polars", "rankeval_spark"), lambda frame, names: frame.select(names)),
    "duckdb": _select_from_duckdb,
    "_duckdb": _select_from_duckdb,
}
"""Functions that select columns of a frame before Arrow converts it, by library."""
