"""Tables on a disk of this machine that this process reads as Spark does; whatever is not certain is left to Spark."""

from __future__ import annotations

import datetime as dt
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyarrow import fs

from rankeval_spark import allowed_folders, columns as C
from rankeval_spark.engine.arrays import to_numpy
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.inputs import trec_files
from rankeval_spark.inputs.arrow import text_files
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_list, is_text
from rankeval_spark.inputs.arrow.reading import physical_bytes
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_files import ForSparkError, delta_versions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.config.inputs import InputConfig

MOST_FILES: Final = 1000
"""Parquet files whose footers are read, a second of them."""

MOST_TEXT: Final = 1 / 32
"""Share of the memory of the machine that files of TREC may come to, whose text takes several times its size here."""

_PATTERN: Final = re.compile(r"[*?{}\[\]\\\x00-\x1f]")
"""What Hadoop takes for a pattern in a path."""

_REFUSED: Final = re.compile(r"[\^|]|%[0-9A-Fa-f]{2}")
"""What deltalake cannot open in a path, or takes for something else."""

_PLAIN: Final = frozenset(
    {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32()}
)
_UNITS: Final = ("us", "ms")
_WIDER: Final = {
    **{pa.uint8(): pa.int16(), pa.uint16(): pa.int32()},
    **{pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)},
}
"""Types in which Spark has columns without a sign."""
_PLACE: Final = "place of a file"

Listed: TypeAlias = "tuple[list[Path], pa.Table | None, NDArray[np.intp]]"
"""Files of an input, what the folders of each say of its rows, and the places of those that may be of a date."""


class NanosecondsError(ForSparkError):
    """Files have times in nanoseconds, so Spark refuses them too; says which columns."""

    def __init__(self, where: str, names: Sequence[str]) -> None:
        super().__init__(where, f"columns {', '.join(names)} timestamp[ns]")
        self.where, self.names = where, tuple(names)


class SwappedFilesError(ForSparkError):
    """A file of TREC is of the other form, so Spark refuses it too; says where it is, and the faults."""

    def __init__(self, where: str, error: trec_files.SwappedError) -> None:
        super().__init__(where, error)
        self.where, self.faults = where, error.faults


@dataclass(frozen=True)
class FileTable:
    """A table of files as it was found."""

    location: str  # absolute path
    format: str  # as in the config
    version: int | None  # version of a Delta table
    dataset: ds.Dataset  # its rows

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return self.dataset.schema

    @cached_property
    def has_rows(self) -> bool:
        """Whether the whole table has a row, by the footers of its files up to the first that has one."""
        return any(file.count_rows() > 0 for file in self.dataset.get_fragments())

    def count(self, condition: ds.Expression | None, *, elements_of: str | None = None) -> int:
        """Count the rows of the files that may have rows which fulfil a condition.

        `elements_of`: column of lists whose elements are counted instead.

        Raises ForSparkError: the files are too many, or one of them cannot be read.
        """
        if isinstance(self.dataset, ds.InMemoryDataset):
            return int(self.dataset.count_rows(filter=condition))
        files = list(self.dataset.get_fragments(filter=condition))
        if len(files) > MOST_FILES:
            raise ForSparkError(self.location, "very many files")
        try:
            if elements_of is None:
                return sum(file.metadata.num_rows for file in files)
            return sum(_n_elements(file.metadata, elements_of) for file in files)
        except (OSError, pa.ArrowException) as error:
            raise ForSparkError(self.location, error) from error

    def read(self, columns: Sequence[str], condition: ds.Expression | None) -> pa.Table:
        """Read some columns of the rows that fulfil a condition."""
        return self.dataset.to_table(columns=list(columns), filter=condition)


def _n_elements(footer: pq.FileMetaData, name: str) -> int:
    """Count the elements of a column of lists, with one for each list that is empty."""
    groups = [footer.row_group(place) for place in range(footer.num_row_groups)]
    leaves = [
        place for place in range(footer.num_columns) if footer.schema.column(place).path.partition(".")[0] == name
    ]
    return sum(group.column(leaves[0]).num_values for group in groups) if leaves else footer.num_rows


def open_files(config: InputConfig, date: dt.date) -> FileTable:
    """Open the table of an input for an evaluation date; no row is read, but for the text of TREC.

    Raises ForSparkError: it is in a catalog, elsewhere or of text; or it is not there, or not as plain as such tables
    mostly are, so that Spark says what is wrong with it, or reads it all the same.
    """
    if models := config.of_models():
        return _united({model: open_files(one, date) for model, one in models.items()}, config.location(date))
    if config.table is not None:
        raise ForSparkError(config.table, "a table of a catalog")
    location = config.location(date)
    if not location.startswith("/") or _PATTERN.search(location):
        raise ForSparkError(location, "several places, or one that is not on a disk of this machine")
    if not Path(location).exists():
        raise ForSparkError(location, "no such file or folder")
    _refuse_outside(location, *allowed_folders.delta_log_paths(location))
    match config.format:
        case "delta":
            found = _delta(config, location)
        case "parquet":
            found = FileTable(location, "parquet", None, _parquet(config, location, date))
        case "csv" | "json" | "trec":
            found = FileTable(location, config.format, None, _text(config, location, date))
        case other:
            raise ForSparkError(location, f"{other}, which Spark reads")
    _refuse_unusual(found.schema, location)
    return found


def _delta(config: InputConfig, location: str) -> FileTable:
    """Open the newest version, or the pinned one; what is wrong with a version that is gone, Spark says."""
    if config.timestamp is not None or _REFUSED.search(location):
        raise ForSparkError(location, "the version of a time, or a path that only Spark opens")
    versions = delta_versions(Path(location))
    if not versions:
        raise ForSparkError(location, "no commit of Delta")
    try:
        version = max(versions) if config.version is None else config.version
        table = deltalake.DeltaTable(location, version=version)
        if table.protocol().min_reader_version > 1:
            raise ForSparkError(location, "column mapping, deletion vectors or another feature of readers")
        here = fs.SubTreeFileSystem(location, fs.LocalFileSystem())
        dataset = table.to_pyarrow_dataset(filesystem=here)
        if any(file.startswith("/") or "://" in file for file in dataset.files):
            raise ForSparkError(location, "files of another table")
        _refuse_outside(*(f"{location}/{file}" for file in dataset.files))
        if config.version is not None and not all(Path(location, file).is_file() for file in dataset.files):
            raise ForSparkError(location, f"version {version}, files of which are gone")
        return FileTable(location, "delta", table.version(), dataset)
    except (DeltaError, OSError, pa.ArrowException, ValueError) as error:
        raise ForSparkError(location, error) from error


def list_files(config: InputConfig, location: str, date: dt.date) -> Listed:
    """List an input's files, what their folders say, and the places of those that may have rows of the date.

    Raises ForSparkError: there is none, or only Spark surely reads its folders or filters.
    """
    path = Path(location)
    files = files_below(path)
    if not files:
        raise ForSparkError(location, "no file")
    folders = folder_columns(path, files)
    kept = np.arange(len(files))
    if folders is not None:
        of_folders = [each for each in config.filters if each.column in folders.column_names]
        condition = RowFilter(of_folders, date, time_zone=config.time_zone).arrow(folders.schema)
        if condition is not None:
            kept = to_numpy(folders.append_column(_PLACE, [kept]).filter(condition)[_PLACE])
    return files, folders, kept


def _few_files(config: InputConfig, location: str, date: dt.date) -> Listed:
    """List the files of an input as :func:`list_files`, where few and allowed ones are of the date."""
    files, folders, kept = list_files(config, location, date)
    if len(kept) > MOST_FILES:
        raise ForSparkError(location, "very many files")
    _refuse_outside(*(str(files[place]) for place in kept))
    return files, folders, kept


def parquet_dataset(files: Sequence[Path], folders: pa.Table | None, schema: pa.Schema) -> ds.Dataset:
    """Open Parquet files of a schema, with what their folders say as columns more."""
    if folders is None:
        return ds.dataset([str(file) for file in files], schema=schema, format="parquet")
    format_, here = ds.ParquetFileFormat(), fs.LocalFileSystem()
    fragments = [
        format_.make_fragment(str(file), filesystem=here, partition_expression=said)
        for file, said in zip(files, partition_expressions(folders), strict=True)
    ]
    return ds.FileSystemDataset(fragments, pa.schema([*schema, *folders.schema]), format_, filesystem=here)


def _parquet(config: InputConfig, location: str, date: dt.date) -> ds.Dataset:
    """Open Parquet files, in partition folders too; the footers of the date's files are read."""
    files, folders, kept = _few_files(config, location, date)
    try:
        schema = _schema_of(files[0])
        for place in kept:
            own = _schema_of(files[place])
            if any(field.name not in own.names or own.field(field.name).type != field.type for field in schema):
                raise ForSparkError(location, f"files of different columns, such as {files[place].name}")
        _refuse_clash(schema.names, folders, location)
        return parquet_dataset(files, folders, schema)
    except (OSError, pa.ArrowException) as error:
        raise ForSparkError(location, error) from error


def _text(config: InputConfig, location: str, date: dt.date) -> ds.Dataset:
    """Read files of text, which are small; rows of another form are left to Spark, which counts them.

    Of folders of partitions, those of the date are read, or else one file, which has the columns.
    """
    files, folders, kept = _few_files(config, location, date)
    chosen, form = [files[place] for place in kept] or files[:1], config.trec_form or "run"
    if sum(file.stat().st_size for file in chosen) > physical_bytes() * MOST_TEXT:
        raise ForSparkError(location, "very much text")
    try:
        match config.format:
            case "csv":
                tables = text_files.read_csv(chosen, config.options)
            case "json":
                tables = text_files.read_json_lines(chosen, config.options)
            case _:
                tables = [trec_files.read_table(file, form) for file in chosen]
    except trec_files.SwappedError as error:
        raise SwappedFilesError(location, error) from error
    except (InputError, ValueError, OSError, EOFError, zlib.error, RecursionError, pa.ArrowException) as error:
        raise ForSparkError(location, error) from error  # UTF-8, JSON, gzip
    _refuse_clash(tables[0].column_names, folders, location)
    if folders is not None:
        places = kept if len(kept) else [0]
        tables = [with_folder_columns(rows, folders, place) for rows, place in zip(tables, places, strict=True)]
    return ds.dataset(pa.concat_tables(tables))


def _refuse_clash(names: Sequence[str], folders: pa.Table | None, location: str) -> None:
    """Leave a table to Spark in which a column is one of files and of folders."""
    if folders is None:
        return
    if twice := {*map(str.casefold, names)}.intersection(map(str.casefold, folders.column_names)):
        raise ForSparkError(location, f"column {min(twice)} both in files and as the name of their folders")


def _united(tables: Mapping[str, FileTable], location: str) -> FileTable:
    """Append the tables of the models to one another, each with its model as a constant."""
    first = next(iter(tables.values()))
    names_models = any(C.MODEL_ID in map(str.casefold, table.schema.names) for table in tables.values())
    if names_models and first.format != "trec":
        raise ForSparkError(location, f"a column {C.MODEL_ID}, in place of which the model is a constant")
    if any(not table.schema.equals(first.schema) for table in tables.values()):
        raise ForSparkError(location, "tables of different columns")
    if isinstance(first.dataset, ds.InMemoryDataset):
        models = [_of_model(table.dataset.to_table(), model) for model, table in tables.items()]
        return FileTable(location, first.format, None, ds.dataset(pa.concat_tables(models)))
    schema = first.schema.append(pa.field(C.MODEL_ID, pa.string()))
    fragments = [file for model, table in tables.items() for file in _files_of_model(table.dataset, model)]
    return FileTable(location, first.format, None, ds.FileSystemDataset(fragments, schema, ds.ParquetFileFormat()))


def _of_model(rows: pa.Table, model: str) -> pa.Table:
    names = pa.array([model], pa.string()).take(pa.array(np.zeros(rows.num_rows, dtype=np.int64)))
    if C.MODEL_ID not in rows.column_names:
        return rows.append_column(C.MODEL_ID, names)
    return rows.set_column(rows.column_names.index(C.MODEL_ID), C.MODEL_ID, names)


def _files_of_model(dataset: ds.Dataset, model: str) -> Iterator[ds.Fragment]:
    """Yield the files of a table, with its model as the value of one partition more."""
    of_model = pc.field(C.MODEL_ID) == model
    for file in dataset.get_fragments():
        known = file.partition_expression
        # A file without partitions has the expression `true`, which has no columns to fill.
        whole = of_model if known.equals(pc.scalar(True)) else known & of_model
        yield file.format.make_fragment(file.path, filesystem=file.filesystem, partition_expression=whole)


def _refuse_outside(*paths: str) -> None:
    """Leave it to Spark to refuse what lies, or leads, outside the folders that the environment allows."""
    if allowed_folders.is_limited():
        try:
            allowed_folders.require_each("inputs", paths)
        except ConfigError as error:
            raise ForSparkError(paths[0], error) from error


def _schema_of(file: Path) -> pa.Schema:
    footer = pq.read_metadata(file)
    columns = (footer.schema.column(place) for place in range(footer.num_columns))
    if any(column.physical_type == "INT96" for column in columns):
        raise ForSparkError(str(file), "times of the old kind, whose zone depends on the writer")
    fields = [field.with_nullable(True).remove_metadata() for field in footer.schema.to_arrow_schema()]
    return pa.schema([field.with_type(_type_on_spark(field.type)) for field in fields])


def _type_on_spark(kind: pa.DataType) -> pa.DataType:
    """Return the type in which Spark has a column of Parquet, to which Arrow casts it without loss."""
    if isinstance(kind, pa.ListType) and not pa.types.is_nested(kind.value_type):
        return pa.list_(kind.value_field.with_type(_type_on_spark(kind.value_type)))
    is_uuid = isinstance(kind, pa.UuidType) or pa.types.is_fixed_size_binary(kind)
    return pa.binary() if is_uuid else _WIDER.get(kind, kind)


def _refuse_unusual(schema: pa.Schema, location: str) -> None:
    """Leave a table to Spark of which a column has a type that Arrow and Spark may read differently."""
    nanoseconds = [field.name for field in schema if pa.types.is_timestamp(field.type) and field.type.unit == "ns"]
    if nanoseconds:
        raise NanosecondsError(location, nanoseconds)
    unusual = [f"{field.name} {field.type}" for field in schema if not _is_usual(field.type)]
    if unusual or len(set(map(str.casefold, schema.names))) < len(schema.names):
        raise ForSparkError(location, f"columns {', '.join(unusual) or 'that differ by case only'}")


def _is_usual(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if is_list(kind):
        element = kind.value_type
        parts = [field.type for field in element] if pa.types.is_struct(element) else [element]
        return all(_is_usual(part) and not is_list(part) for part in parts)
    is_time = pa.types.is_timestamp(kind) and kind.unit in _UNITS
    return bool(kind in _PLAIN or is_text(kind) or is_time or pa.types.is_decimal128(kind) or is_binary(kind))


NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""Value of a folder whose rows have NULL."""

_INT: Final = pa.int32(), -(2**31), 2**31 - 1
_LONG: Final = pa.int64(), -(2**63), 2**63 - 1

_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_DECIMAL: Final = r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
_OTHER_TYPES: Final = re.compile(  # fractions, numbers with a suffix of Java or in another script, times
    rf"\s*[+-]?({_DECIMAL}[fd]?|0x[0-9a-f.]+p[+-]?\d+[fd]?|nan|infinity)\s*|0000-\d\d-\d\d|{_DAY.pattern} \d\d:.*",
    re.IGNORECASE,
)


def files_below(path: Path) -> list[Path]:
    """List the files below a folder in the order of their paths, without hidden ones; a file is its own."""
    if path.is_file():
        return [path]
    found = []
    for folder, folders, names in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        found += [Path(folder, name) for name in names if not _is_hidden(name)]
    return sorted(found, key=str)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def folder_columns(path: Path, files: Sequence[Path]) -> pa.Table | None:
    """Return the values that the folders of files give their rows, a row a file; None without such folders.

    Types are those that Spark infers: int, bigint, date, or string where values are of several types.

    Raises ForSparkError: the folders differ in their columns, or have values of other types.
    """
    folders = [() if file == path else file.relative_to(path).parts[:-1] for file in files]
    if not any(folders):
        return None
    pairs = [[part.partition("=") for part in parts] for parts in folders]
    names = [_unescaped(name) for name, _, _ in pairs[0]]
    for file, each in zip(files, pairs, strict=True):
        if [_unescaped(name) for name, _, _ in each] != names or not all(name and value for name, _, value in each):
            odd = file.relative_to(path)
            raise ForSparkError(
                str(path), f"folders of partitions that are not all of the same columns, such as that of {odd}"
            )
    if len(set(map(str.casefold, names))) < len(names):
        raise ForSparkError(str(path), f"folders of one column twice, such as {'/'.join(folders[0])}")
    columns = zip(*([value for _, _, value in each] for each in pairs), strict=True)
    return pa.Table.from_pydict({name: _typed(path, name, values) for name, values in zip(names, columns, strict=True)})


def _typed(path: Path, name: str, values: Sequence[str]) -> pa.Array:
    """Convert the values of one column of folders to the type that Spark infers for them."""
    given = {value for value in values if value != NULL}
    if not given or any(_OTHER_TYPES.fullmatch(_unescaped(value)) and not _WHOLE.fullmatch(value) for value in given):
        shown = min(given, default=NULL)
        raise ForSparkError(str(path), f"folders of a type that Spark infers, such as {name}={shown}")
    read: Callable[[str], object] = _unescaped
    kind = pa.string()
    if all(map(_WHOLE.fullmatch, given)):
        kind, read = _whole_type(path, name, [int(value) for value in given]), int
    elif all(map(_is_day, given)):
        kind, read = pa.date32(), dt.date.fromisoformat
    return pa.array([None if value == NULL else read(value) for value in values], kind)


def _whole_type(path: Path, name: str, values: Sequence[int]) -> pa.DataType:
    for kind, least, most in (_INT, _LONG):
        if least <= min(values) and max(values) <= most:
            return kind
    raise ForSparkError(str(path), f"folders of numbers beyond 64 bits, such as {name}={max(values, key=abs)}")


def _is_day(value: str) -> bool:
    try:
        return bool(_DAY.fullmatch(value) and dt.date.fromisoformat(value))
    except ValueError:
        return False


def _unescaped(text: str) -> str:
    """Decode ``%3A`` as Spark does, a character a code."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def partition_expressions(folders: pa.Table) -> list[ds.Expression]:
    """Return what the folder of each file says of its rows, for a dataset."""
    columns = [
        [
            pc.field(field.name).is_null() if value is None else pc.field(field.name) == pa.scalar(value, field.type)
            for value in folders[field.name].to_pylist()
        ]
        for field in folders.schema
    ]
    return [reduce(lambda one, other: one & other, of_file) for of_file in zip(*columns, strict=True)]


def with_folder_columns(rows: pa.Table, folders: pa.Table, place: int) -> pa.Table:
    """Append what the folder of one file says of its rows."""
    for field in folders.schema:
        rows = rows.append_column(field, pa.repeat(folders[field.name][place], rows.num_rows))
    return rows
