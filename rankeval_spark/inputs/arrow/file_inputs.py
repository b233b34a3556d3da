"""The inputs of a config, where all of them are tables that this process reads as Spark does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from rankeval_spark.engine.buckets import hashes_of
from rankeval_spark.errors import Fault, FaultsError, InputError, errors_of, first_line
from rankeval_spark.inputs.arrow import files
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_text, spark_name
from rankeval_spark.inputs.arrow.canonical import Reading, arrays_of
from rankeval_spark.inputs.arrow.files import FileTable, NanosecondsError, SwappedFilesError
from rankeval_spark.inputs.arrow.reading import BYTES_A_ROW, Source, Tables, physical_bytes, source_of
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_columns import (
    NANOSECONDS,
    NANOSECONDS_FIX,
    SAMPLE_BUCKETS,
    HasIds,
    check_id_types,
    filter_faults,
    input_schemas,
    missing_faults,
    refuse_missing,
)
from rankeval_spark.inputs.input_files import ForSparkError, checked_header, header_here

if TYPE_CHECKING:
    import datetime as dt

    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.inputs import InputConfig
    from rankeval_spark.config.request import Request
    from rankeval_spark.schemas import Schema

MOST_MEMORY: Final = 1 / 4
"""Share of the memory of the machine that the rows of a night may need here."""

BYTES_A_TEXT: Final = 60
"""Memory of a text id of a row, in addition to that of a number."""

TEXT_FORMATS: Final = ("csv", "json", "trec")
"""Formats whose ids are text."""

FIRST_TEXTS: Final = 1000
"""Texts of lists that are looked at before a night, to tell JSON from text with a separator."""

_ALL: Final = "inputs"

_HASH_OF_NULL: Final = 42
"""The seed: what Spark's hash makes of NULL."""


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
        """Absolute path."""
        return self.table.location

    @property
    def format(self) -> str:
        """As in the config."""
        return self.table.format

    @property
    def version(self) -> int | None:
        """Version of a Delta table."""
        return self.table.version

    @property
    def table_columns(self) -> str:
        """Columns of the table with their types as Spark names them, such as ``user_id string, day date``."""
        return ", ".join(f"{field.name} {spark_name(field.type)}" for field in self.table.schema)

    @property
    def n_columns(self) -> int:
        """Number of columns of the table."""
        return len(self.table.schema)

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that nothing reads."""
        filtered = {each.column for each in self.config.filters}
        known = {*self._read_columns, *filtered}
        return tuple(name for name in self.table.schema.names if name not in known)

    @property
    def bytes_a_row(self) -> int:
        """Memory that a row takes."""
        kinds = [self._empty.schema.field(own).type for own in self._present.values()]
        n_texts = sum(is_text(kind) or is_binary(kind) for kind in kinds)
        return BYTES_A_ROW + n_texts * BYTES_A_TEXT

    def read(self) -> Source:
        """Read the rows that the filters keep into canonical columns.

        Raises InputError: a file is damaged, or gone meanwhile.
        """
        with self._damage_reported():
            rows = self._reading.to_items(self.table.read(self._read_columns, self.condition))
        return self._source(rows)

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            found = f"a file that cannot be read ({first_line(str(error))}) at {self.location}"
            raise InputError(Fault(f"inputs.{self.name}", found, "readable data files")) from error

    def without_rows(self) -> Source:
        """Return the input without a row, which shows whether the columns can be read.

        Raises InputError: a column has a type that cannot be read as the canonical one. Raises ForSparkError: a column
        is missing, or would be cast in a way that only Spark has.
        """
        if self._reading.column_faults(self._empty.column_names):
            raise ForSparkError(self.location, "columns are missing")
        return replace(self._source(self._empty), unread=self.unread)

    def count(self) -> int:
        """Count the rows that the filters keep; of the columns, those of the filters are read.

        Raises InputError: a file is damaged, or gone meanwhile. Raises ForSparkError: the files are too many.
        """
        n_rows = self.n_rows
        if self._nested is not None and n_rows:
            return self._count_items()
        if n_rows == 0 or self.condition is None:
            return n_rows
        with self._damage_reported():
            return int(self.table.dataset.count_rows(filter=self.condition))

    def models(self) -> tuple[str, ...]:
        """Return the models of the rows that the filters keep.

        Raises InputError: a file is damaged, or gone meanwhile.
        """
        own = self._present.get(C.MODEL_ID)
        if own is None:
            return (C.ONE_MODEL,)
        with self._damage_reported():
            names = pc.unique(self.table.read([own], self.condition)[own]).to_pylist()
        return tuple(sorted(str(name) for name in names if name is not None))

    @property
    def n_rows(self) -> int:
        """Rows that are read at most: items, where a row of the table is a list."""
        lists = None if self._nested is None else column_and_field(self._nested.items, self.table.schema.names)[0]
        if lists is not None and self._nested is not None and self._nested.separator and self._is_text(lists):
            return self._count_items()
        return self.table.count(self.condition, elements_of=lists)

    def _count_items(self) -> int:
        """Count the items of the lists that the filters keep."""
        if self._nested is None:
            raise ValueError
        own = column_and_field(self._nested.items, self.table.schema.names)[0]
        items = NestedItems(items=self._nested.items, separator=self._nested.separator)
        with self._damage_reported():
            lists = arrays_of(self.table.read([own], self.condition), items, self._reading.where)
        return int(lengths_of(lists[C.ITEM_ID]).sum())

    @property
    def _nested(self) -> NestedItems | None:
        return self.config.several_items

    def _is_text(self, name: str) -> bool:
        return name in self.table.schema.names and is_text(self.table.schema.field(name).type)

    @cached_property
    def _empty(self) -> pa.Table:
        """The table without a row, with one row per item where its rows are lists."""
        if self._nested is not None:
            own = {column_and_field(path, self.table.schema.names)[0] for path in self._nested.arrays.values()}
            of_text = [name for name in own if self._is_text(name)] if self._nested.separator is None else []
            if of_text:
                first = self.table.dataset.head(FIRST_TEXTS, columns=sorted(own & {*self.table.schema.names}))
                arrays_of(first, self._nested, self._reading.where)
                raise ForSparkError(self.location, "JSON, which Spark takes apart")
        return self._reading.to_items(self.table.schema.empty_table())

    @cached_property
    def _reading(self) -> Reading:
        return Reading.from_rows(f"inputs.{self.name}", self.schema, self.config, self.config.time_zone)

    def _source(self, rows: pa.Table) -> Source:
        return source_of(self.name, self._reading.cells(rows), self.schema, rows.num_rows)

    def column_faults(self) -> list[Fault]:
        """Find columns that the config names and the table does not have, with the words of a run."""
        return [
            *self._reading.column_faults(self._empty.column_names),
            *filter_faults(self.config.filters, self.table.schema.names, self._reading.where),
        ]

    @property
    def _present(self) -> dict[str, str]:
        return {name: own for name, own in self._reading.names.items() if own in self._empty.column_names}

    @property
    def _read_columns(self) -> list[str]:
        """Columns of the table that are read."""
        known = self.table.schema.names
        names = self.config.columns_read(self.schema.field_names(), known)
        return [name for name in dict.fromkeys(names) if name in known]


def open_inputs(config: EvaluationConfig, request: Request, date: dt.date) -> tuple[FileInput, ...]:
    """Open every input of a config; no row is read.

    Raises ForSparkError: Spark reads them: one of them is not a plain table on this machine, something is wrong with
    one, which Spark reports, or all together are too large for this process.
    """
    found = tuple(_opened(config, name, date) for name in config.inputs.given)
    _refuse_what_spark_refuses(found, request)
    _refuse_many_rows(found)
    return found


@dataclass(frozen=True)
class OpenedInputs:
    """Inputs of a night as this process sees them before it runs."""

    opened: tuple[FileInput, ...]  # those that it opens and that have no fault
    errors: tuple[FaultsError, ...]  # what is wrong with them, as a run would say it


def look_at_inputs(config: EvaluationConfig, request: Request, date: dt.date) -> OpenedInputs:
    """Open those inputs of a night that this process can, and find all that is wrong with them; no row is read.

    What only Spark opens is left to a run; of CSV and JSON the types of the ids are known.
    """
    opened, errors, ids = list[FileInput](), list[FaultsError](), list[HasIds]()
    sources: dict[str, Source] = {}
    for name, given in config.inputs.given.items():
        try:
            one = _looked_at(config, name, date)
            sources[name] = one.without_rows()
            opened.append(one)
            ids.append(sources[name])
        except InputError as error:
            errors.append(error)
        except ForSparkError:
            ids += [_TextIds(name, given)] if given.format in TEXT_FORMATS else []
            errors += errors_of(partial(_require_header, config, name, date)) if given.format == "csv" else []
    check_ids = partial(check_id_types, ids, own_item=request.policies.own_item)
    errors += errors_of(check_ids, partial(_refuse_missing_of_all, config, request, sources))
    return OpenedInputs(tuple(opened), tuple(errors))


def _looked_at(config: EvaluationConfig, name: str, date: dt.date) -> FileInput:
    """Open an input whose columns are those that the config names.

    Raises InputError: it lacks some, or no host reads its times.
    """
    given: InputConfig = getattr(config.inputs, name)
    try:
        table = files.open_files(given, date)
    except NanosecondsError as error:
        found = f"{NANOSECONDS}: {', '.join(error.names)} at {error.where}"
        fault = Fault(f"inputs.{name}", found, "microseconds or milliseconds", NANOSECONDS_FIX)
        raise InputError(fault) from error
    except SwappedFilesError as error:
        raise InputError(*(replace(fault, where=f"inputs.{name}") for fault in error.faults)) from error
    schema = _schema_of(config, name)
    faults = FileInput(name, given, table, schema, None).column_faults()
    if faults:
        raise InputError(*faults)
    return FileInput(
        name, given, table, schema, RowFilter(given.filters, date, time_zone=given.time_zone).arrow(table.schema)
    )


def _require_header(config: EvaluationConfig, name: str, date: dt.date) -> None:
    """Refuse csv files that only Spark reads and whose header lacks columns."""
    given: InputConfig = getattr(config.inputs, name)
    if given.path is None or given.several_items is not None:
        return
    location = given.location(date)
    header = header_here(location, given.options)
    if header is None:
        return
    known = checked_header(header, name, location, given.options)
    where, schema = f"inputs.{name}", _schema_of(config, name)
    names = {one: given.renames.get(one, one) for one in schema.field_names()}
    faults = missing_faults(known, names, given.renames, where, given.places)
    faults += filter_faults(given.filters, known, where)
    if faults:
        raise InputError(*faults)


def _refuse_missing_of_all(config: EvaluationConfig, request: Request, sources: Mapping[str, Source]) -> None:
    """Refuse what the request needs and the inputs lack, where all of them could be opened."""
    if all(name in sources for name in config.inputs.given):
        refuse_missing([*sources.values()], request)


@dataclass(frozen=True)
class _TextIds:
    """An input of text, whose ids are text unless the config says otherwise."""

    name: str
    config: InputConfig

    @property
    def id_types(self) -> Mapping[str, str]:
        forced = self.config.types
        return {name: "bigint" if forced.get(name) == "integer" else "string" for name in self.config.id_columns}


def open_input(config: EvaluationConfig, name: str, date: dt.date) -> FileInput:
    """Open one input that a config gives; no row is read.

    Raises ForSparkError as :func:`open_inputs`, for this input alone.
    """
    found = _opened(config, name, date)
    _refuse_many_rows([found])
    return found


def _opened(config: EvaluationConfig, name: str, date: dt.date) -> FileInput:
    given: InputConfig = getattr(config.inputs, name)
    table = files.open_files(given, date)
    condition = RowFilter(given.filters, date, time_zone=given.time_zone).arrow(table.schema)
    return FileInput(name, given, table, _schema_of(config, name), condition)


def _schema_of(config: EvaluationConfig, name: str) -> Schema:
    return input_schemas(config.segment_names(), numbers=config.slicing.bands, lists=config.policies.lists)[name]


def _refuse_many_rows(inputs: Sequence[FileInput]) -> None:
    n_rows = [one.n_rows for one in inputs]
    n_bytes = sum(count * one.bytes_a_row for count, one in zip(n_rows, inputs, strict=True))
    if n_bytes > physical_bytes() * MOST_MEMORY:
        raise ForSparkError(_ALL, f"{sum(n_rows):,} rows, which are many for one process")


def _refuse_what_spark_refuses(inputs: Sequence[FileInput], request: Request) -> None:
    try:
        sources = [one.without_rows() for one in inputs]
        check_id_types(sources, own_item=request.policies.own_item)
        refuse_missing(sources, request)
    except FaultsError as error:
        raise ForSparkError(_ALL, error) from error


def read_tables(inputs: Sequence[FileInput], *, sample_share: float) -> Tables:
    """Read the inputs, of the log and the judgements a share of the users: the same that Spark draws."""
    sources = {one.name: one.read() for one in inputs}
    for name in ("recommendations", "held_out"):
        sources[name] = _sampled(sources[name], share=sample_share)
    return Tables(**sources, are_checked=True)


def _sampled(source: Source, *, share: float) -> Source:
    if share >= 1:
        return source
    users = source.table[C.USER_ID]
    named = users.drop_null()
    hashes = np.full(len(users), _HASH_OF_NULL, dtype=np.int64)
    hashes[to_numpy(users.is_valid())] = hashes_of(named)
    is_drawn = hashes % SAMPLE_BUCKETS < round(share * SAMPLE_BUCKETS)
    return Source(source.name, source.table.filter(to_arrow(is_drawn)), source.given, source.id_types)
