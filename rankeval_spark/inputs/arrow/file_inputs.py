"""The inputs of a config, where all of them are tables that this process reads as Spark does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import NestedItems, column_and_field
from rankeval_spark.engine.arrays import lengths_of, to_arrow, to_numpy
from rankeval_spark.engine.buckets import hash_users
from rankeval_spark.errors import Fault, FaultsError, InputError, errors_of, first_line
from rankeval_spark.inputs import places
from rankeval_spark.inputs.arrow import files
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_text, spark_name
from rankeval_spark.inputs.arrow.canonical import Reading, item_arrays
from rankeval_spark.inputs.arrow.reading import (
    BYTES_A_ROW,
    MAX_MEMORY,
    Source,
    Tables,
    build_source,
    physical_bytes,
)
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_columns import (
    HELD_OUT,
    LOG,
    SAMPLE_BUCKETS,
    check_id_types,
    filter_faults,
    input_schemas,
    refuse_missing,
)
from rankeval_spark.inputs.input_files import ForSparkError, check_header, read_local_header

if TYPE_CHECKING:
    import datetime as dt

    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.inputs import InputConfig
    from rankeval_spark.config.request import Request
    from rankeval_spark.inputs.arrow.files import FileTable
    from rankeval_spark.schemas import Schema

_BYTES_A_TEXT: Final = 60  # memory of a text id of a row, in addition to that of a number
_FIRST_TEXTS: Final = 1000  # texts of lists that are looked at before a night: JSON, or text with a separator
_ALL: Final = "inputs"
_HASH_OF_NULL: Final = 42  # the seed: what Spark's hash makes of NULL

TEXT_FORMATS: Final = ("csv", "json", "trec")
"""Formats whose ids are text."""


@dataclass(frozen=True)
class FileInput:
    """One input that is read here, see :class:`apps.nightly.night_host.ReadInput`."""

    name: str
    config: InputConfig
    table: FileTable
    schema: Schema
    condition: pc.Expression | None

    @property
    def location(self) -> str:
        return self.table.location

    @property
    def format(self) -> str:
        return self.table.format

    @property
    def version(self) -> int | None:
        return self.table.version

    @property
    def table_columns(self) -> str:
        """Columns of the table with their types as Spark names them, such as ``user_id string, day date``."""
        return ", ".join(f"{field.name} {spark_name(field.type)}" for field in self.table.schema)

    @property
    def n_columns(self) -> int:
        return len(self.table.schema)

    @property
    def _read_columns(self) -> list[str]:
        """Columns of the table that are read."""
        names = self.config.columns_read(self.schema.field_names(), self.table.schema.names)
        return [name for name in dict.fromkeys(names) if name in self.table.schema.names]

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns of the table that neither the input nor its filters read."""
        read = {*self._read_columns, *(filter_.column for filter_ in self.config.filters)}
        return tuple(name for name in self.table.schema.names if name not in read)

    @cached_property
    def _reading(self) -> Reading:
        return Reading.from_rows(f"inputs.{self.name}", self.schema, self.config, self.config.time_zone)

    @cached_property
    def _empty_table(self) -> pa.Table:
        """The table without rows, in columns of one row per item; ForSparkError if lists are JSON text."""
        nested, schema = self.config.nested_items, self.table.schema
        if nested is not None and nested.separator is None:
            arrays = {column_and_field(path, schema.names)[0] for path in nested.arrays.values()} & {*schema.names}
            if any(is_text(schema.field(name).type) for name in arrays):
                first = self.table.head(_FIRST_TEXTS, sorted(arrays))
                item_arrays(first, nested, self._reading.where)  # refuses text that is no JSON, as a run does
                raise ForSparkError(self.location, "JSON, which Spark takes apart")
        return self._reading.to_items(schema.empty_table())

    @property
    def _names_in_table(self) -> dict[str, str]:
        """Name in the table of each canonical column that it has."""
        names = self._reading.names
        return {name: column for name, column in names.items() if column in self._empty_table.column_names}

    def column_faults(self) -> list[Fault]:
        """Find columns that the config names and the table does not have, with the words of a run."""
        return [
            *self._reading.column_faults(self._empty_table.column_names),
            *filter_faults(self.config.filters, self.table.schema.names, self._reading.where),
        ]

    def _to_source(self, rows: pa.Table) -> Source:
        return build_source(self.name, self._reading.read_columns(rows), self.schema, rows.num_rows)

    def without_rows(self) -> Source:
        """Return the input without a row, which shows whether the columns can be read, here or at all."""
        if self._reading.column_faults(self._empty_table.column_names):
            raise ForSparkError(self.location, "columns are missing")
        return replace(self._to_source(self._empty_table), unread=self.unread)

    @contextmanager
    def _report_damage(self) -> Iterator[None]:
        """Raise InputError where files cannot be read."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            told = places.show_addresses(first_line(str(error)))
            found = f"a file that cannot be read ({told}) at {self.location}"
            raise InputError(Fault(f"inputs.{self.name}", found, "readable data files")) from error

    def read(self) -> Source:
        """Read the rows that the filters keep into canonical columns; a damaged or missing file is refused."""
        with self._report_damage():
            rows = self._reading.to_items(self.table.read(self._read_columns, self.condition))
        return self._to_source(rows)

    def first_users(self, n_rows: int, n_users: int) -> pa.Array:
        """Return users of the first rows that the filters keep, as text."""
        column = self._names_in_table[C.USER_ID]
        with self._report_damage():
            self.table.fetch(self.condition)
            rows = self.table.dataset.head(n_rows, columns=[column], filter=self.condition)
        return pc.unique(rows[column].cast(pa.string()).drop_null())[:n_users]

    def of_users(self, users: pa.Array) -> FileInput:
        """Return the input with the rows of some users alone; all of it where it has none."""
        column = self._names_in_table.get(C.USER_ID)
        if column is None:
            return self
        chosen = pc.field(column).cast(pa.string()).isin(users)
        return replace(self, condition=chosen if self.condition is None else self.condition & chosen)

    def models(self) -> tuple[str, ...]:
        """Read the models of the rows that the filters keep."""
        column = self._names_in_table.get(C.MODEL_ID)
        if column is None:
            return (C.ONE_MODEL,)
        with self._report_damage():
            names = pc.unique(self.table.read([column], self.condition)[column]).to_pylist()
        return tuple(sorted(str(name) for name in names if name is not None))

    @property
    def n_rows(self) -> int:
        """Rows that are read at most: items, where a row of the table is a list."""
        nested, schema = self.config.nested_items, self.table.schema
        if nested is None:
            return self.table.count(self.condition)
        lists = column_and_field(nested.items, schema.names)[0]
        if nested.separator and lists in schema.names and is_text(schema.field(lists).type):
            return self._count_items(nested)
        return self.table.count(self.condition, elements_of=lists)

    @property
    def n_bytes(self) -> int:
        """Memory that the rows need here, roughly."""
        kinds = [self._empty_table.schema.field(column).type for column in self._names_in_table.values()]
        n_texts = sum(is_text(kind) or is_binary(kind) for kind in kinds)
        return self.n_rows * (BYTES_A_ROW + n_texts * _BYTES_A_TEXT)

    def count(self) -> int:
        """Count the rows that the filters keep; of the columns, those of the filters are read."""
        n_rows = self.n_rows
        if self.config.nested_items is not None and n_rows:
            return self._count_items(self.config.nested_items)
        if n_rows == 0 or self.condition is None:
            return n_rows
        with self._report_damage():
            self.table.fetch(self.condition)
            return int(self.table.dataset.count_rows(filter=self.condition))

    def _count_items(self, nested: NestedItems) -> int:
        """Count the items of the lists that the filters keep."""
        column = column_and_field(nested.items, self.table.schema.names)[0]
        without_scores = NestedItems(items=nested.items, separator=nested.separator)
        with self._report_damage():
            rows = self.table.read([column], self.condition)
            lists = item_arrays(rows, without_scores, self._reading.where)
        return int(lengths_of(lists[C.ITEM_ID]).sum())


def open_inputs(config: EvaluationConfig, request: Request, date: dt.date) -> tuple[FileInput, ...]:
    """Open every input of a config; no row is read.

    Raises ForSparkError: one is no plain table on this machine or has a fault, which Spark reports, or all together are
    too large for this process.
    """
    inputs = tuple(_open(config, name, date) for name in config.inputs.given)
    try:
        sources = [input_.without_rows() for input_ in inputs]
        check_id_types({source.name: source.id_types for source in sources}, own_item=request.policies.own_item)
        refuse_missing(sources, request)
    except FaultsError as error:
        raise ForSparkError(_ALL, error) from error
    _refuse_many_rows(inputs)
    return inputs


def open_input(config: EvaluationConfig, name: str, date: dt.date) -> FileInput:
    """Open one input that a config gives, as :func:`open_inputs`."""
    input_ = _open(config, name, date)
    _refuse_many_rows([input_])
    return input_


def _open(config: EvaluationConfig, name: str, date: dt.date, *, is_refused: bool = False) -> FileInput:
    """Open an input; `is_refused`: whether columns that it lacks raise InputError, in the words of a run."""
    settings: InputConfig = getattr(config.inputs, name)
    input_ = FileInput(name, settings, files.open_files(settings, date), _canonical_schema(config, name), None)
    if is_refused and (faults := input_.column_faults()):
        raise InputError(*faults)
    condition = RowFilter(settings.filters, date, time_zone=settings.time_zone).arrow_condition(input_.table.schema)
    return replace(input_, condition=condition)


def _canonical_schema(config: EvaluationConfig, name: str) -> Schema:
    return input_schemas(config.segment_names(), numbers=config.slicing.bands, lists=config.policies.lists)[name]


def _refuse_many_rows(inputs: Sequence[FileInput]) -> None:
    if sum(input_.n_bytes for input_ in inputs) > physical_bytes() * MAX_MEMORY:
        n_rows = sum(input_.n_rows for input_ in inputs)
        raise ForSparkError(_ALL, f"{n_rows:,} rows, which are many for one process")


def look_at_inputs(
    config: EvaluationConfig, request: Request, date: dt.date
) -> tuple[list[FileInput], list[FaultsError]]:
    """Open the inputs of a night that this process can and that have no fault, and find all faults; no row is read.

    What only Spark opens is left to a run; of CSV and JSON the types of the ids are known.
    """
    opened, errors, sources = list[FileInput](), list[FaultsError](), list[Source]()
    id_types = {}
    for name, given in config.inputs.given.items():
        try:
            input_ = _open(config, name, date, is_refused=True)
            source = input_.without_rows()
            id_types[name] = source.id_types
            opened.append(input_)
            sources.append(source)
        except InputError as error:
            errors.append(error)
        except ForSparkError as error:
            if error.faults:
                errors.append(InputError(*(replace(fault, where=f"inputs.{name}") for fault in error.faults)))
                continue
            if given.format in TEXT_FORMATS:
                whole = [column for column in given.id_columns if given.types.get(column) == "integer"]
                id_types[name] = {column: "bigint" if column in whole else "string" for column in given.id_columns}
            if given.format == "csv":
                errors += errors_of(partial(_require_header, config, name, date))
    checks = [partial(check_id_types, id_types, own_item=request.policies.own_item)]
    if len(sources) == len(config.inputs.given):
        checks.append(partial(refuse_missing, sources, request))
    return opened, [*errors, *errors_of(*checks)]


def _require_header(config: EvaluationConfig, name: str, date: dt.date) -> None:
    """Refuse csv files that only Spark reads and whose header lacks columns."""
    given: InputConfig = getattr(config.inputs, name)
    if given.path is None or given.nested_items is not None:
        return
    location = given.location(date)
    header = read_local_header(location, given.options)
    if header is None:
        return
    columns = check_header(header, name, location, given.options)
    reading = Reading.from_rows(f"inputs.{name}", _canonical_schema(config, name), given)
    if faults := [*reading.column_faults(columns), *filter_faults(given.filters, columns, reading.where)]:
        raise InputError(*faults)


def read_tables(inputs: Sequence[FileInput], *, sample_share: float) -> Tables:
    """Read the inputs; of those that are of users alone a share of the users: the same that Spark draws."""
    sources = {input_.name: input_.read() for input_ in inputs}
    drawn = {LOG, HELD_OUT, "user_values", "user_weights"} if sample_share < 1 else set[str]()
    for name in drawn & sources.keys():
        source = sources[name]
        users = source.table[C.USER_ID]
        hashes = np.full(len(users), _HASH_OF_NULL, dtype=np.int64)
        hashes[to_numpy(users.is_valid())] = hash_users(users.drop_null())
        is_drawn = hashes % SAMPLE_BUCKETS < round(sample_share * SAMPLE_BUCKETS)
        sources[name] = Source(name, source.table.filter(to_arrow(is_drawn)), source.given, source.id_types)
    return Tables(**sources, are_checked=True)
