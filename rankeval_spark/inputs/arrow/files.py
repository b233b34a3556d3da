"""Tables on a disk of this machine that this process reads as Spark does; whatever is not certain is left to Spark."""

from __future__ import annotations

import bz2
import codecs
import datetime as dt
import gzip
import json
import operator
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias
from urllib.parse import unquote

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyarrow import csv, fs

from rankeval_spark import allowed_folders, columns as C
from rankeval_spark.engine.arrays import to_numpy
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.inputs import places, trec_files
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_list, is_text
from rankeval_spark.inputs.arrow.reading import physical_bytes
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_columns import NANOSECONDS, NANOSECONDS_FIX
from rankeval_spark.inputs.input_files import COMMA, JSON_LINES_PROBED, ForSparkError, delta_versions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.config.inputs import InputConfig

MAX_FILES: Final = 1000
"""Parquet files whose footers are read, a second of them."""

_MAX_TEXT: Final = 1 / 32
"""Share of the memory of the machine that files of text may come to, which take several times their size here."""

PATTERN: Final = re.compile(r"[*?{}\[\]\\\x00-\x1f]")
"""Characters that Hadoop takes for a pattern in a path."""

_REFUSED: Final = re.compile(r"[\^|]|%[0-9A-Fa-f]{2}")
"""Characters of a path that deltalake cannot open, or decodes to others."""

_PLAIN: Final = frozenset(
    {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32()}
)
_WIDER: Final = {
    **{pa.uint8(): pa.int16(), pa.uint16(): pa.int32()},
    **{pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)},
}
"""Types in which Spark has columns without a sign."""

NULL: Final = "__HIVE_DEFAULT_PARTITION__"  # value of a folder whose rows have NULL
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_DECIMAL: Final = r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
_OTHER_TYPES: Final = re.compile(  # fractions, numbers with a suffix of Java or in another script, times
    rf"\s*[+-]?({_DECIMAL}[fd]?|0x[0-9a-f.]+p[+-]?\d+[fd]?|nan|infinity)\s*|0000-\d\d-\d\d|{_DAY.pattern} \d\d:.*",
    re.IGNORECASE,
)

ListedFiles: TypeAlias = "tuple[list[Path], pa.Table | None, NDArray[np.intp]]"
"""Files of an input, what the folders of each say of its rows, and the places of those that may be of a date."""


@dataclass(frozen=True)
class FileTable:
    """A table of files as it was found."""

    location: str  # absolute path or address
    format: str  # as in the config
    version: int | None  # version of a Delta table
    dataset: ds.Dataset  # its rows

    @property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

    @cached_property
    def has_rows(self) -> bool:
        """True if the whole table has a row, by the footers of its files up to the first that has one."""
        return any(file.count_rows() > 0 for file in self._files_here())

    def _files_here(self) -> Iterator[ds.Fragment]:
        """Yield the files one after the other, each copied to this machine."""
        for file in self.dataset.get_fragments():
            places.fetch(local_paths([file]))
            yield file

    def head(self, n_rows: int, columns: Sequence[str]) -> pa.Table:
        """Read the first rows, of one file after the other."""
        rows = self.dataset.schema.empty_table().select(list(columns))
        for file in self._files_here():
            scanner = file.scanner(self.dataset.schema, columns=list(columns))
            rows = pa.concat_tables([rows, scanner.head(n_rows - len(rows))])
            if len(rows) >= n_rows:
                break
        return rows

    def count(self, condition: ds.Expression | None, *, elements_of: str | None = None) -> int:
        """Count the rows of the files that may have rows which fulfil a condition, or the elements of a list column.

        An empty list counts as one element. Raises ForSparkError: the files are too many, or one cannot be read.
        """
        if isinstance(self.dataset, ds.InMemoryDataset):
            return int(self.dataset.count_rows(filter=condition))
        files = list(self.dataset.get_fragments(filter=condition))
        if len(files) > MAX_FILES:
            raise ForSparkError(self.location, "very many files")
        total = 0
        try:
            places.fetch(local_paths(files), only_footers=True)
            for file in files:
                footer = file.metadata
                paths = [footer.schema.column(place).path for place in range(footer.num_columns)]
                leaf = next((place for place, path in enumerate(paths) if path.partition(".")[0] == elements_of), None)
                groups = map(footer.row_group, range(footer.num_row_groups))
                total += footer.num_rows if leaf is None else sum(group.column(leaf).num_values for group in groups)
        except (OSError, pa.ArrowException) as error:
            raise ForSparkError(self.location, error) from error
        return total

    def fetch(self, condition: ds.Expression | None) -> None:
        """Copy the files to this machine that may have rows which fulfil a condition, where they are in a store."""
        places.fetch(local_paths(self.dataset.get_fragments(filter=condition)))

    def read(self, columns: Sequence[str], condition: ds.Expression | None) -> pa.Table:
        self.fetch(condition)
        return self.dataset.to_table(columns=list(columns), filter=condition)


def local_paths(files: Iterable[ds.Fragment]) -> list[str]:
    """Return the paths of files on this machine; those of a table in memory have none."""

    def path_of(file: ds.FileFragment) -> str:
        is_below = isinstance(file.filesystem, fs.SubTreeFileSystem)
        return f"{file.filesystem.base_path.rstrip('/')}/{file.path}" if is_below else str(file.path)

    return [path_of(file) for file in files if isinstance(file, ds.FileFragment)]


def open_files(config: InputConfig, date: dt.date) -> FileTable:
    """Open the table of an input for an evaluation date; no row is read, but for those of text.

    Raises ForSparkError: it is in a catalog, elsewhere, not there, or not as plain as such tables mostly are.
    """
    if models := config.configs_by_model():
        tables = {model: open_files(of_model, date) for model, of_model in models.items()}
        return _append_models(tables, config.location(date))
    if config.table is not None:
        raise ForSparkError(config.table, "a table of a catalog")
    location = config.location(date)
    _refuse_outside(location)
    if PATTERN.search(location):
        raise ForSparkError(location, "a pattern")
    try:
        path = places.open_place(location, is_delta=config.format == "delta", version=config.version)
    except OSError as error:
        raise ForSparkError(location, error) from error
    if path is None:
        raise ForSparkError(location, "a place that is not on a disk of this machine or in a store")
    if not path.exists():
        raise ForSparkError(location, "no such file or folder")
    _refuse_outside(*allowed_folders.delta_log_paths(str(path)))
    match config.format:
        case "delta":
            found = _open_delta(config, location, path)
        case "parquet":
            found = FileTable(location, "parquet", None, _open_parquet(config, location, path, date))
        case "csv" | "json" | "trec":
            found = FileTable(location, config.format, None, _read_text(config, location, path, date))
        case other:
            raise ForSparkError(location, f"{other}, which Spark reads")
    _refuse_unusual(found.schema, location)
    return found


def _refuse_outside(*paths: str) -> None:
    """Leave it to Spark to refuse what lies, or leads, outside the folders that the environment allows."""
    if allowed_folders.is_limited():
        try:
            allowed_folders.require_each("inputs", paths)
        except ConfigError as error:
            raise ForSparkError(paths[0], error) from error


def _refuse_unusual(schema: pa.Schema, location: str) -> None:
    """Leave a table to Spark if Arrow and Spark may read the type of a column differently."""
    nanoseconds = [field.name for field in schema if pa.types.is_timestamp(field.type) and field.type.unit == "ns"]
    if nanoseconds:
        names = ", ".join(nanoseconds)
        found = f"{NANOSECONDS}: {names} at {location}"
        faults = [Fault("inputs", found, "microseconds or milliseconds", NANOSECONDS_FIX)]
        raise ForSparkError(location, f"columns {names} timestamp[ns]", faults)
    unusual = [f"{field.name} {field.type}" for field in schema if not _is_usual(field.type)]
    if unusual or len(set(map(str.casefold, schema.names))) < len(schema.names):
        raise ForSparkError(location, f"columns {', '.join(unusual) or 'that differ by case only'}")


def _is_usual(kind: pa.DataType) -> bool:
    """Return True for a type that Arrow and Spark read alike."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if is_list(kind):
        element = kind.value_type
        parts = [field.type for field in element] if pa.types.is_struct(element) else [element]
        return all(_is_usual(part) and not is_list(part) for part in parts)
    is_time = pa.types.is_timestamp(kind) and kind.unit in ("us", "ms")
    return bool(kind in _PLAIN or is_text(kind) or is_time or pa.types.is_decimal128(kind) or is_binary(kind))


def _append_models(tables: Mapping[str, FileTable], location: str) -> FileTable:
    """Append the tables of the models to one another, each with its model as a constant."""
    first = next(iter(tables.values()))
    names_models = any(C.MODEL_ID in map(str.casefold, table.schema.names) for table in tables.values())
    if names_models and first.format != "trec":
        raise ForSparkError(location, f"a column {C.MODEL_ID}, although the paths name the models")
    if any(not table.schema.equals(first.schema) for table in tables.values()):
        raise ForSparkError(location, "tables of different columns")
    if isinstance(first.dataset, ds.InMemoryDataset):
        united = []
        for model, table in tables.items():
            rows = table.dataset.to_table()
            names, place = pa.repeat(pa.scalar(model), rows.num_rows), rows.schema.get_field_index(C.MODEL_ID)
            rows = rows if place < 0 else rows.remove_column(place)
            united.append(rows.add_column(rows.num_columns if place < 0 else place, C.MODEL_ID, names))
        return FileTable(location, first.format, None, ds.dataset(pa.concat_tables(united)))
    fragments = []
    for model, table in tables.items():
        of_model = pc.field(C.MODEL_ID) == model
        for file in table.dataset.get_fragments():
            partition = file.partition_expression
            # A file without partitions has the expression `true`, which has no columns to fill.
            both = of_model if partition.equals(pc.scalar(True)) else partition & of_model
            fragments.append(
                file.format.make_fragment(file.path, filesystem=file.filesystem, partition_expression=both)
            )
    schema = first.schema.append(pa.field(C.MODEL_ID, pa.string()))
    return FileTable(location, first.format, None, ds.FileSystemDataset(fragments, schema, ds.ParquetFileFormat()))


def _open_delta(config: InputConfig, location: str, path: Path) -> FileTable:
    """Open the newest version, or the pinned one; a version that is gone is left to Spark, which reports it."""
    if config.timestamp is not None or _REFUSED.search(str(path)):
        raise ForSparkError(location, "the version of a time, or a path that only Spark opens")
    versions = delta_versions(path)
    if not versions:
        raise ForSparkError(location, "no commit of Delta")
    try:
        version = max(versions) if config.version is None else config.version
        table = deltalake.DeltaTable(str(path), version=version)
        if table.protocol().min_reader_version > 1:
            raise ForSparkError(location, "column mapping, deletion vectors or another feature of readers")
        dataset = table.to_pyarrow_dataset(filesystem=fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()))
        if any(file.startswith("/") or "://" in file for file in dataset.files):
            raise ForSparkError(location, "files of another table")
        expect_files(table, location, path)
        _refuse_outside(*(f"{path}/{file}" for file in dataset.files))
        if config.version is not None and not all(Path(path, file).is_file() for file in dataset.files):
            raise ForSparkError(location, f"version {version}, whose files are gone")
        return FileTable(location, "delta", table.version(), dataset)
    except (DeltaError, OSError, pa.ArrowException, ValueError) as error:
        raise ForSparkError(location, error) from error


def expect_files(table: deltalake.DeltaTable, location: str, path: Path) -> None:
    """Note the files of a Delta table in a store, whose log is copied to a path."""
    if places.is_in_store(location):
        actions = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
        places.expect(path, {unquote(each["path"]): each["size_bytes"] for each in actions})


def _open_parquet(config: InputConfig, location: str, path: Path, date: dt.date) -> ds.Dataset:
    """Open Parquet files, in partition folders too; the footers of the date's files are read."""
    files, folders, kept = _list_few_files(config, path, date)
    try:
        places.fetch([files[0], *(files[place] for place in kept)], only_footers=True)
        schema = _read_schema(files[0])
        for place in kept:
            other = _read_schema(files[place])
            if any(field.name not in other.names or other.field(field.name).type != field.type for field in schema):
                raise ForSparkError(location, f"files of different columns, such as {files[place].name}")
        _refuse_shared_names(schema.names, folders, location)
        return parquet_dataset(files, folders, schema)
    except (OSError, pa.ArrowException) as error:
        raise ForSparkError(location, error) from error


def _read_schema(file: Path) -> pa.Schema:
    """Read the columns of a Parquet file in the types of Spark, to which Arrow casts them without loss."""

    def to_spark_type(kind: pa.DataType) -> pa.DataType:
        if isinstance(kind, pa.ListType) and not pa.types.is_nested(kind.value_type):
            return pa.list_(kind.value_field.with_type(to_spark_type(kind.value_type)))
        is_uuid = isinstance(kind, pa.UuidType) or pa.types.is_fixed_size_binary(kind)
        return pa.binary() if is_uuid else _WIDER.get(kind, kind)

    footer = pq.read_metadata(file)
    if any(footer.schema.column(place).physical_type == "INT96" for place in range(footer.num_columns)):
        raise ForSparkError(str(file), "times of the old kind, whose zone depends on the writer")
    fields = [field.with_nullable(True).remove_metadata() for field in footer.schema.to_arrow_schema()]
    return pa.schema([field.with_type(to_spark_type(field.type)) for field in fields])


def parquet_dataset(files: Sequence[Path], folders: pa.Table | None, schema: pa.Schema) -> ds.Dataset:
    """Open Parquet files of a schema, with columns from their folders' names (``folders``: a row a file)."""
    if folders is None:
        return ds.dataset([str(file) for file in files], schema=schema, format="parquet")
    format_, here = ds.ParquetFileFormat(), fs.LocalFileSystem()
    fragments = [
        format_.make_fragment(str(file), filesystem=here, partition_expression=said)
        for file, said in zip(files, partition_expressions(folders), strict=True)
    ]
    return ds.FileSystemDataset(fragments, pa.schema([*schema, *folders.schema]), format_, filesystem=here)


def list_files(config: InputConfig, path: Path, date: dt.date) -> ListedFiles:
    """List an input's files, the columns that their folders give, and which files may have rows of the date."""
    files = files_below(path)
    if not files:
        raise ForSparkError(str(path), "no file")
    folders, kept = folder_columns(path, files), np.arange(len(files))
    if folders is not None:
        of_folders = [each for each in config.filters if each.column in folders.column_names]
        condition = RowFilter(of_folders, date, time_zone=config.time_zone).arrow_condition(folders.schema)
        if condition is not None:
            place = "place of a file"
            kept = to_numpy(folders.append_column(place, [kept]).filter(condition)[place])
    return files, folders, kept


def _list_few_files(config: InputConfig, path: Path, date: dt.date) -> ListedFiles:
    """List the files of an input as :func:`list_files`, where few and allowed ones are of the date."""
    files, folders, kept = list_files(config, path, date)
    if len(kept) > MAX_FILES:
        raise ForSparkError(str(path), "very many files")
    _refuse_outside(*(str(files[place]) for place in kept))
    return files, folders, kept


def _refuse_shared_names(names: Sequence[str], folders: pa.Table | None, location: str) -> None:
    """Leave a table to Spark in which a column is one of files and of folders."""
    of_folders = () if folders is None else folders.column_names
    if twice := {*map(str.casefold, names)}.intersection(map(str.casefold, of_folders)):
        raise ForSparkError(location, f"column {min(twice)} both in files and as the name of their folders")


def files_below(path: Path) -> list[Path]:
    """List the files below a folder in the order of their paths, without hidden ones; a file is its own."""

    if path.is_file():
        return [path]
    found = []
    for folder, folders, names in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if not places.is_hidden(name)]
        found += [Path(folder, name) for name in names if not places.is_hidden(name)]
    return sorted(found, key=str)


def folder_columns(path: Path, files: Sequence[Path]) -> pa.Table | None:
    """Return the values that the folders of files give their rows, a row a file; None without such folders.

    Types are those that Spark infers: int, bigint, date, or string where values are of several types.
    """
    folders = [() if file == path else file.relative_to(path).parts[:-1] for file in files]
    if not any(folders):
        return None
    pairs = [[part.partition("=")[::2] for part in parts] for parts in folders]  # name and value, by file
    names = [_unescape(name) for name, _ in pairs[0]]
    for file, of_file in zip(files, pairs, strict=True):
        if [_unescape(name) for name, _ in of_file] != names or not all(name and value for name, value in of_file):
            odd = (
                f"folders of partitions that are not all of the same columns, such as that of {file.relative_to(path)}"
            )
            raise ForSparkError(str(path), odd)
    if len(set(map(str.casefold, names))) < len(names):
        raise ForSparkError(str(path), f"folders of one column twice, such as {'/'.join(folders[0])}")
    columns = zip(*([value for _, value in of_file] for of_file in pairs), strict=True)
    return pa.Table.from_pydict(
        {name: _to_inferred_type(path, name, values) for name, values in zip(names, columns, strict=True)}
    )


def _to_inferred_type(path: Path, name: str, values: Sequence[str]) -> pa.Array:
    """Convert the values of one column of folders to the type that Spark infers for them."""

    def is_day(value: str) -> bool:
        try:
            return bool(_DAY.fullmatch(value) and dt.date.fromisoformat(value))
        except ValueError:
            return False

    given = {value for value in values if value != NULL}
    if not given or any(_OTHER_TYPES.fullmatch(_unescape(value)) and not _WHOLE.fullmatch(value) for value in given):
        shown = min(given, default=NULL)
        raise ForSparkError(str(path), f"folders of a type that Spark infers, such as {name}={shown}")
    read: Callable[[str], object] = _unescape
    kind = pa.string()
    if all(map(_WHOLE.fullmatch, given)):
        least, most = min(map(int, given)), max(map(int, given))
        fitting = [kind for kind, end in ((pa.int32(), 2**31), (pa.int64(), 2**63)) if -end <= least and most < end]
        if not fitting:
            largest = max(least, most, key=abs)
            raise ForSparkError(str(path), f"folders of numbers beyond 64 bits, such as {name}={largest}")
        kind, read = fitting[0], int
    elif all(map(is_day, given)):
        kind, read = pa.date32(), dt.date.fromisoformat
    return pa.array([None if value == NULL else read(value) for value in values], kind)


def _unescape(text: str) -> str:
    """Decode ``%3A`` as Spark does, a character a code."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def partition_expressions(folders: pa.Table) -> list[ds.Expression]:
    """Return for each file, a row each, the condition that holds for all of its rows by the names of its folders."""
    expressions = []
    for values in folders.to_pylist():
        conditions = [
            pc.field(name).is_null()
            if value is None
            else pc.field(name) == pa.scalar(value, folders.schema.field(name).type)
            for name, value in values.items()
        ]
        expressions.append(reduce(operator.and_, conditions))
    return expressions


def with_folder_columns(rows: pa.Table, folders: pa.Table, place: int) -> pa.Table:
    """Append the columns that the folders of one file give its rows; `place` is the file's row in `folders`."""
    for field in folders.schema:
        rows = rows.append_column(field, pa.repeat(folders[field.name][place], rows.num_rows))
    return rows


def _read_text(config: InputConfig, location: str, path: Path, date: dt.date) -> ds.Dataset:
    """Read files of text: those of the date, or else one for its columns; other rows than ours are left to Spark."""
    files, folders, kept = _list_few_files(config, path, date)
    chosen, form = [files[place] for place in kept] or files[:1], config.trec_form or "run"
    if sum(file.stat().st_size for file in chosen) > physical_bytes() * _MAX_TEXT:
        raise ForSparkError(location, "very much text")
    try:
        places.fetch(chosen)
        match config.format:
            case "csv":
                tables = _read_csv(chosen, config.options)
            case "json":
                tables = _read_json_lines(chosen, config.options)
            case "trec":
                tables = [trec_files.read_table(file, form) for file in chosen]
            case other:
                raise ForSparkError(location, f"{other}, which Spark reads")
    except trec_files.SwappedError as error:
        raise ForSparkError(location, error, error.faults) from error
    except (InputError, ValueError, OSError, EOFError, zlib.error, RecursionError, pa.ArrowException) as error:
        raise ForSparkError(location, error) from error  # UTF-8, JSON, gzip
    _refuse_shared_names(tables[0].column_names, folders, location)
    if folders is not None:
        of_tables = kept if len(kept) else [0]
        tables = [with_folder_columns(rows, folders, place) for rows, place in zip(tables, of_tables, strict=True)]
    return ds.dataset(pa.concat_tables(tables))


def _refuse_text(found: str) -> NoReturn:
    raise ValueError(found)


_UNPACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}


def _read_bytes(file: Path) -> bytes:
    return _UNPACK.get(file.suffix, bytes)(file.read_bytes())


def _read_csv(files: Sequence[Path], options: Mapping[str, str]) -> list[pa.Table]:
    """Return the columns of each of some CSV files (RFC 4180), as text; an empty field is NULL, in quotes too."""
    separator = options.get("sep", COMMA)
    if not options.keys() <= {"sep"} or len(separator) != 1:
        _refuse_text(f"options {', '.join(sorted(options))}")
    tables = []
    for file in files:
        text = _read_bytes(file).removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")  # also in quotes, as Spark does
        # A field that goes on after its closing quote, which Spark and Arrow read otherwise. A few right texts look
        # like it, such as one that holds a separator, two quotes and more; they are left to Spark.
        end = re.escape(separator.encode())
        if b'"' in text and re.search(rb'(?:^|[%b\n])"[^"]*(?:""[^"]*)*"(?![%b\n"]|\Z)' % (end, end), text):
            _refuse_text("text behind the closing quote of a field")
        parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
        with csv.open_csv(pa.BufferReader(text), parse_options=parse) as first:
            types = dict.fromkeys(first.schema.names, pa.string())
        convert = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
        tables.append(csv.read_csv(pa.BufferReader(text), parse_options=parse, convert_options=convert))
    if any(table.schema != tables[0].schema for table in tables) or tables[0].num_columns == 1:
        _refuse_text("headers that differ, or of one column")
    return tables


def _read_json_lines(files: Sequence[Path], options: Mapping[str, str]) -> list[pa.Table]:
    """Read files of JSON lines, each an object of plain values; the columns are the keys of all first lines."""
    if options:
        _refuse_text(f"options {', '.join(sorted(options))}")
    rows_of_files = []
    for file in files:
        lines = _read_bytes(file).decode("utf-8").split("\n")
        rows_of_files.append([_parse_object(line) for line in lines if line.strip()])
    first = islice(chain.from_iterable(rows_of_files), JSON_LINES_PROBED)
    names = list(dict.fromkeys(name for row in first for name in row))
    if not names:
        _refuse_text("no object")
    return [
        pa.Table.from_pydict({name: pa.array([row.get(name) for row in rows], pa.string()) for name in names})
        for rows in rows_of_files
    ]


def _parse_object(line: str) -> dict[str, str | None]:
    """Read an object of JSON whose values are text as Spark writes it; other values raise ValueError."""

    def require_exact(number: str) -> str:
        return number if repr(float(number)) == number else _refuse_text(f"the number {number}")

    def to_text(value: Any) -> str | None:  # noqa: ANN401 - any value of JSON
        if isinstance(value, bool):
            return "true" if value else "false"
        if not (value is None or isinstance(value, str)):
            _refuse_text("a value that is an object or an array")
        return value

    found = json.loads(
        line, parse_float=require_exact, parse_int=str, parse_constant=lambda name: _refuse_text(f"the value {name}")
    )
    if not isinstance(found, dict):
        _refuse_text("a line that is no object")
    return {name: to_text(value) for name, value in found.items()}
