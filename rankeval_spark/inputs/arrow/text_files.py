"""CSV files and JSON lines as columns of text, as Spark reads them; what is not certain is left to Spark."""

from __future__ import annotations

import codecs
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

from rankeval_spark.inputs.input_files import COMMA

JSON_LINES_PROBED: Final = 1000
"""Lines of JSON whose keys are the columns; a key in none of them is a missing column, not a column of NULL."""


def read_csv(files: Sequence[Path], options: Mapping[str, str]) -> list[pa.Table]:
    """Return the columns of each of some CSV files (RFC 4180) that begin with the same header.

    An empty field is NULL, in quotes too. New lines may stand in quotes.

    Raises ValueError: an option other than ``sep``, a byte order mark, headers that differ or have one name only, or a
    row with more or fewer fields than its header, or a field that goes on after its closing quote.
    """
    separator = options.get("sep", COMMA)
    if not options.keys() <= {"sep"} or len(separator) != 1:
        message = f"options {', '.join(sorted(options))}"
        raise ValueError(message)
    tables = [_read_csv(file, separator) for file in files]
    if any(table.schema != tables[0].schema for table in tables) or tables[0].num_columns == 1:
        message = "headers that differ, or of one column"
        raise ValueError(message)
    return tables


def _read_csv(file: Path, separator: str) -> pa.Table:
    text = _bytes_of(file).replace(b"\r\n", b"\n")  # also in quotes, as Spark does
    if text.startswith(codecs.BOM_UTF8):
        message = "a byte order mark"
        raise ValueError(message)
    if _has_text_after_quotes(text, separator):
        message = "text behind the closing quote of a field"
        raise ValueError(message)
    parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    with csv.open_csv(pa.BufferReader(text), parse_options=parse) as first:
        names = first.schema.names
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
    )
    return csv.read_csv(pa.BufferReader(text), parse_options=parse, convert_options=convert)


def _has_text_after_quotes(text: bytes, separator: str) -> bool:
    r"""Return True if a field goes on after its closing quote, which Spark and Arrow read otherwise.

    A few right texts look like it, such as one that holds a separator, two quotes and more; they are left to Spark.

    >>> _has_text_after_quotes(b'a,"b"c\n', ","), _has_text_after_quotes(b'a,"b ""c"" d"\n', ",")
    (True, False)
    """
    end = re.escape(separator.encode())
    field = rb'(?:^|[%b\n])"[^"]*(?:""[^"]*)*"(?![%b\n"]|\Z)' % (end, end)
    return b'"' in text and re.search(field, text) is not None


def _bytes_of(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def read_json_lines(files: Sequence[Path], options: Mapping[str, str]) -> list[pa.Table]:
    """Read each file of JSON lines; the columns are the keys of the first lines of all files, each an object.

    Raises ValueError: an option, a line that is no object, or a value that is an object, an array or a number that is
    not written as it is read.
    """
    if options:
        message = f"options {', '.join(sorted(options))}"
        raise ValueError(message)
    of_files = [
        [_object(line) for line in _bytes_of(file).decode("utf-8").split("\n") if line.strip()] for file in files
    ]
    first = islice(chain.from_iterable(of_files), JSON_LINES_PROBED)
    names = list(dict.fromkeys(name for row in first for name in row))
    if not names:
        message = "no object"
        raise ValueError(message)
    return [
        pa.Table.from_pydict({name: pa.array([row.get(name) for row in rows], pa.string()) for name in names})
        for rows in of_files
    ]


def _object(line: str) -> dict[str, str | None]:
    found = json.loads(line, parse_float=_exact, parse_int=str, parse_constant=_no_number)
    if not isinstance(found, dict):
        message = "a line that is no object"
        raise ValueError(message)  # noqa: TRY004 - of a file
    return {name: _text(value) for name, value in found.items()}


def _text(value: Any) -> str | None:  # noqa: ANN401 - any value of JSON
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    message = "a value that is an object or an array"
    raise ValueError(message)


def _exact(number: str) -> str:
    if repr(float(number)) != number:
        message = f"the number {number}"
        raise ValueError(message)
    return number


def _no_number(name: str) -> str:
    message = f"the value {name}"
    raise ValueError(message)
