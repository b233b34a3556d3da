"""Rows, bytes and partitions of inputs, from Delta logs and Parquet footers; no row is read."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyarrow import fs

from rankeval_spark.allowed_folders import delta_log_paths, require_each
from rankeval_spark.errors import first_line
from rankeval_spark.inputs import places
from rankeval_spark.inputs.arrow.files import MAX_FILES, files_below, list_files, parquet_dataset
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_files import (
    EXPECTED,
    NO_DELTA,
    NO_FILES,
    NO_PATH,
    NO_VERSION,
    ForSparkError,
    missing_input_fault,
)

if TYPE_CHECKING:
    import datetime as dt

    from rankeval_spark.config.inputs import InputConfig
    from rankeval_spark.errors import Fault


_FEATURE: Final = re.compile("Unsupported|catalog")
"""Words in deltalake's error on a table that Spark may still read."""


@dataclass(frozen=True)
class InputSize:
    """Size of one input on one date; None where only reading it would tell."""

    name: str
    location: str
    format: str
    version: int | None = None
    n_files: int | None = None  # files that may hold rows of the date, by partition values and statistics
    n_partitions: int | None = None  # partitions that these files are in; None for a table without partitions
    n_rows: int | None = None  # rows of these files: at least as many as the filters keep
    n_bytes: int | None = None  # size of these files
    remark: str | None = None  # what is not known, and why
    is_missing: bool = False  # whether there is nothing at the path
    fault: Fault | None = None  # why a run would end: nothing is there, or what is there cannot be opened


_File: TypeAlias = tuple[int, int | None, tuple[str, ...]]
"""Bytes and rows of a file, and the values of its partition or the folders above it, such as ``day=2026-01-01``."""


def look_up_sizes(name: str, config: InputConfig, date: dt.date) -> list[InputSize]:
    """Look up how large an input is on a date: one size, or one of each model, with the key of its path."""
    models = {f"{name}.paths.{model}": of_model for model, of_model in config.configs_by_model().items()}
    return [look_up_size(key, of_path, date) for key, of_path in (models or {name: config}).items()]


def look_up_size(name: str, config: InputConfig, date: dt.date) -> InputSize:
    """Look up how large an input, with its name in the config, is on a date."""
    location = config.location(date)
    unknown = InputSize(name, location, config.format)
    if config.table is not None:
        return replace(unknown, remark="a table of a catalog, which only Spark opens")
    path, found = None, NO_PATH
    try:
        path = places.open_place(location, is_delta=config.format == "delta", version=config.version)
    except OSError as error:
        found = error.strerror or first_line(str(error))
    is_pattern = path is not None and not path.exists() and any(character in location for character in "*?{[")
    if is_pattern or (path is None and found == NO_PATH):
        what = "a pattern" if is_pattern else "on another file system"
        return replace(unknown, remark=f"{what}, which only Spark opens")
    if path is None or not path.exists():
        fault = missing_input_fault(name, location, EXPECTED[config.format], found)
        remark = "nothing at this path" if found == NO_PATH else f"cannot be opened: {found}"
        return replace(unknown, remark=remark, is_missing=found == NO_PATH, fault=fault)
    try:
        return _measure_files(unknown, config, path, date)
    except (DeltaError, OSError, pa.ArrowException, ValueError, ForSparkError) as error:
        told = places.show_addresses(first_line(str(error)))
        if isinstance(error, ForSparkError) or (isinstance(error, DeltaError) and _FEATURE.search(told)):
            return replace(unknown, remark=f"{told}, so only Spark opens it")
        # In the words of a run, where it has some.
        expected, found = EXPECTED[config.format], f"a file that cannot be read ({told})"
        if config.format != "delta":
            found = found if files_below(path) else NO_FILES
        elif not deltalake.DeltaTable.is_deltatable(str(path)):
            found = NO_DELTA
        elif config.version is not None:
            expected, found = f"{expected} with version {config.version}", NO_VERSION
        else:
            found = f"a table that cannot be read ({told})"
        fault = missing_input_fault(name, location, expected, found)
        return replace(unknown, remark=f"cannot be opened: {told}", fault=fault)


def _measure_files(unknown: InputSize, config: InputConfig, path: Path, date: dt.date) -> InputSize:
    """Count the files, partitions, rows and bytes of an input that is there."""
    version, remark, where = None, None, f"inputs.{unknown.name}.path"
    if config.format == "delta":  # its log names its files; they are not opened
        require_each(where, delta_log_paths(str(path)))
        version, files = _list_delta_files(config, path, date)
    else:
        require_each(where, map(str, files_below(path)))
        if not files_below(path):
            raise FileNotFoundError(NO_FILES)
        if config.format == "parquet":
            files = _list_parquet_files(config, path, date)
            remark = f"more than {MAX_FILES:,} files, whose footers are not read" if len(files) > MAX_FILES else None
        else:
            listed, _, kept = list_files(config, path, date)
            files = [(listed[place].stat().st_size, None, _folder_names(listed[place], path)) for place in kept]
            remark = f"rows of {config.format} are known only when they are read"
    n_rows = [n for _, n, _ in files if n is not None]
    return replace(
        unknown,
        version=version,
        n_files=len(files),
        n_partitions=len({partition for *_, partition in files if partition}) or None,
        n_rows=sum(n_rows) if len(n_rows) == len(files) else None,
        n_bytes=sum(n_bytes for n_bytes, *_ in files),
        remark=remark,
    )


def _list_delta_files(config: InputConfig, path: Path, date: dt.date) -> tuple[int, list[_File]]:
    """Return the version of a Delta table and its files that may hold rows of the date, by the log alone.

    ``path`` is on this machine: of a table in a store, the copy of its log. ForSparkError for a version by time in a
    store, where the copy's commits have other times.
    """
    table = deltalake.DeltaTable(str(path), version=config.version)
    moment = config.moment(date)
    if moment is not None and places.is_in_store(config.location(date)):
        raise ForSparkError(config.location(date), "the version of a time")
    if moment is not None:
        table.load_as_version(moment)
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all().to_pylist()
    names = [f"partition.{name}" for name in table.metadata().partition_columns]
    kept = None
    with suppress(ForSparkError, DeltaError, pa.ArrowException, ValueError):  # only Spark can say what filters leave
        dataset = table.to_pyarrow_dataset(filesystem=fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()))
        condition = RowFilter(config.filters, date, time_zone=config.time_zone).arrow_condition(dataset.schema)
        kept = {unquote(fragment.path) for fragment in dataset.get_fragments(filter=condition)}
    return table.version(), [
        (row["size_bytes"], row["num_records"], tuple(str(row[name]) for name in names))
        for row in actions
        if kept is None or unquote(row["path"]) in kept
    ]


def _list_parquet_files(config: InputConfig, path: Path, date: dt.date) -> list[_File]:
    """List the files that may hold rows of the date, by folders of partitions and footers."""
    files, folders, kept = list_files(config, path, date)
    places.fetch([files[0], *(files[place] for place in kept[:MAX_FILES])], only_footers=True)
    dataset = parquet_dataset(files, folders, pq.read_schema(files[0]).remove_metadata())
    condition = None
    with suppress(ForSparkError):  # of a filter that only Spark understands: all files
        condition = RowFilter(config.filters, date, time_zone=config.time_zone).arrow_condition(dataset.schema)
    fragments = list(dataset.get_fragments(filter=condition))
    is_counted = len(fragments) <= MAX_FILES
    found: list[_File] = []
    for fragment in fragments:
        if not is_counted or condition is None or fragment.subset(condition, schema=dataset.schema).row_groups:
            n_rows = fragment.metadata.num_rows if is_counted else None
            found.append((os.stat(fragment.path).st_size, n_rows, _folder_names(Path(fragment.path), path)))
    return found


def _folder_names(file: Path, path: Path) -> tuple[str, ...]:
    return () if file == path else file.relative_to(path).parts[:-1]
