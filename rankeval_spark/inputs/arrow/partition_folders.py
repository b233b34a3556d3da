"""Files below a folder, and the columns that Spark makes of folders such as ``day=2026-01-01/country=AT``."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rankeval_spark.inputs.input_files import ForSparkError

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
