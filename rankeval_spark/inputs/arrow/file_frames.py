"""Inputs that a call names by their paths, as frames: files and folders of this machine or of an object store."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from rankeval_spark import columns as C
from rankeval_spark.allowed_folders import require_allowed
from rankeval_spark.config import validate_model
from rankeval_spark.config.base import resolve_path
from rankeval_spark.config.inputs import (
    HeldOutInput,
    InputConfig,
    ItemsInput,
    RecommendationsInput,
    SegmentsInput,
    TrainInput,
    UserValuesInput,
    UserWeightsInput,
)
from rankeval_spark.errors import ConfigError, Fault, InputError, first_line
from rankeval_spark.inputs import places
from rankeval_spark.inputs.arrow.files import PATTERN, files_below, open_files
from rankeval_spark.inputs.arrow.input_sizes import look_up_size
from rankeval_spark.inputs.input_files import NO_FILES, NO_PATH, ForSparkError, find_separator, missing_input_fault

if TYPE_CHECKING:
    from rankeval_spark.inputs.arrow.files import FileTable

_INPUTS: Final[Mapping[str, type[InputConfig]]] = {
    **{"recommendations": RecommendationsInput, "held_out": HeldOutInput, "segments": SegmentsInput},
    **{"train": TrainInput, "items": ItemsInput},
    **{"user_values": UserValuesInput, "user_weights": UserWeightsInput},
}
FORMATS: Final = {
    "delta": "delta",
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("csv", "tsv"), "csv"),
    **dict.fromkeys(("json", "jsonl", "ndjson"), "json"),
    **dict.fromkeys(("run", "qrels", "trec"), "trec"),
}
"""Formats by the ending of a file's name."""
MAX_ENDINGS: Final = 5  # that a message names of those in a folder
_PACKED: Final = (".gz", ".bz2")
_EXPECTED: Final = f"a Delta table, or files that end in one of {', '.join(FORMATS)}"
_FIX: Final = "read it with pandas or polars and give the frame, or give every input as a DataFrame of Spark"
_NO_DATE: Final = dt.date.min  # of a path that has no place for one


@dataclass(frozen=True)
class FileFrame:
    """A table of files as a frame of a call."""

    name: str  # of the argument
    config: InputConfig
    table: FileTable
    shape: tuple[int, int]  # rows and columns

    @property
    def columns(self) -> list[str]:
        return list(self.table.schema.names)

    def select(self, names: Sequence[str]) -> pa.Table:
        """Read some columns; a damaged file is refused."""
        try:
            return self.table.read(names, None)
        except (OSError, pa.ArrowException) as error:
            told = places.show_addresses(first_line(str(error)))
            found = f"a file that cannot be read ({told}) at {self.table.location}"
            raise InputError(Fault(self.name, found, "readable data files")) from error

    def as_config(self) -> dict[str, Any]:
        """Return the keys of a config that say where it is."""
        path, options = resolve_path(self.config.path or "", ""), dict(self.config.options)
        return {"format": self.config.format, "path": path, **({"options": options} if options else {})}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Read all columns."""
        return self.select(self.columns).__arrow_c_stream__(requested_schema)


def open_frame(
    name: str,  # of the argument, or the place in it
    path: str | os.PathLike[str],
    format_: str | None = None,  # by default as the name ends, or those of the files in a folder
    date: dt.date | None = None,  # for the placeholder `{date}`
) -> FileFrame:
    """Open the table at a path; of text all rows are read, of other formats the columns and the number of rows.

    Raises ConfigError: the path or the format is not valid. InputError: there is no table that this process reads.
    """
    text, input_ = os.fspath(path), name.partition("[")[0]
    ending = ending_of(text.rstrip("/"))
    config: InputConfig = validate_model(
        _INPUTS[input_],
        {"format": format_ or FORMATS.get(ending, "delta"), "path": text, "options": _tab_option(ending, format_)},
        locate=lambda place: f"{input_}.format" if place == ("format",) else name,
    )
    if "{date" in text and date is None:
        raise ConfigError(Fault("evaluation_date", "None", f"the date of {text}", f"give it for {name}"))
    location = config.location(date or _NO_DATE)
    require_allowed((name, location))
    if PATTERN.search(location):
        fix = f"give the folder, all of whose files are read: {Path(text).parent}"
        raise InputError(Fault(name, f"a pattern, {text}", "the path of one file or folder", fix))
    if places.is_in_store(location):
        from rankeval_spark import object_stores  # noqa: F401, PLC0415 - says so where the extra `stores` is missing
    if format_ is None and ending not in FORMATS:
        config = _with_format(name, config, location)
    if config.format == "csv" and not config.options and (separator := find_separator(location)):
        config = config.model_copy(update={"options": {"sep": separator}})
    try:
        table = open_files(config, date or _NO_DATE)
        if config.format == "trec" and name != input_:  # the key of the model replaces the name of the run
            table = replace(table, dataset=ds.dataset(table.dataset.to_table().drop_columns(C.MODEL_ID)))
        return FileFrame(name, config, table, (table.count(None), len(table.schema)))
    except ForSparkError as error:
        raise InputError(*_faults(name, config, date or _NO_DATE, error)) from error


def has_format(path: str | os.PathLike[str]) -> bool:
    """Return True for a path whose ending says its format."""
    return ending_of(os.fspath(path).rstrip("/")) in FORMATS


def ending_of(name: str) -> str:
    """Return the ending of a file's name, without that of a packed one; empty without any."""
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return Path(name).suffix.lower().removeprefix(".")


def _tab_option(ending: str, format_: str | None) -> dict[str, str]:
    """Return the option of Spark that separates cells by tabs, for a file of that ending."""
    return {"sep": "\t"} if ending == "tsv" and format_ in (None, "csv") else {}


def _with_format(name: str, config: InputConfig, location: str) -> InputConfig:
    """Find the format of a folder: that of its files, if it is no Delta table."""
    found, path = NO_PATH, None
    try:
        path, is_delta = places.open_any(location)
        if path is None or is_delta:
            return config
    except OSError as error:
        found = error.strerror or first_line(str(error))
    if path is None or not path.exists():
        raise InputError(replace(missing_input_fault(name, location, "a file or a folder", found), where=name))
    endings = {ending_of(file.name) for file in files_below(path)}
    chosen = {(FORMATS.get(ending), tuple(_tab_option(ending, None).items())) for ending in endings}
    if len(chosen) != 1 or None in dict(chosen):
        names = sorted(f".{ending}" if ending else "no ending" for ending in endings)
        more = f" and {len(names) - MAX_ENDINGS} others" if len(names) > MAX_ENDINGS else ""
        shown = f"{', '.join(names[:MAX_ENDINGS])}{more}"
        fix = (
            f"name the format: inputs={{{name.partition('[')[0]!r}: {{'format': 'csv'}}}}, or give a frame"
            if endings
            else ""
        )
        raise InputError(Fault(name, f"{f'files of {shown}' if endings else NO_FILES} at {location}", _EXPECTED, fix))
    ((format_, options),) = chosen
    return config.model_copy(update={"format": format_, "options": dict(options)})


def _faults(name: str, config: InputConfig, date: dt.date, error: ForSparkError) -> list[Fault]:
    """Return why a table is not opened, in the words of a run where it has some."""
    if isinstance(error.__cause__, InputError):  # of lines of text
        return list(error.__cause__.faults)
    if (fault := look_up_size(name, config, date).fault) is not None:
        return [replace(fault, where=name)]
    return [replace(each, where=name) for each in error.faults] or [Fault(name, str(error), _EXPECTED, _FIX)]
