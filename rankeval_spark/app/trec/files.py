"""The two files of TREC: judgements (qrels) and a run, one row a line, fields between white space.

Files that end in .gz, .bz2 or .zst are unpacked as they are read. Empty lines and lines that begin with # are skipped.
Arrow and numpy share memory by DLPack, here and in :mod:`matching`: ``to_numpy``, ``pa.array`` and scalars import
pandas, which takes as long as all the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc, csv

from rankeval_spark.errors import Fault, InputError, first_line

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import FloatVector, IntVector

MOST_FAULTS: Final = 5
"""Lines that are shown of those that cannot be read."""

_WHOLE_NUMBER: Final = r"^[+-]?[0-9]+(\.0*)?$"
_NUMBER: Final = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$|^[+-]?inf(inity)?$"
_NO_DELIMITER: Final = "\x1f"
"""A control character that no line holds: each line is one field."""


class Qrels(NamedTuple):
    """Judgements, a row each.

    Attributes
    ----------
    topic, document : pyarrow string array
        Ids as they stand in the file.
    grade : float64
        Whole numbers; a negative one marks a document that was pooled and not judged.
    line : int
        Line of the file, from 1.
    """

    topic: pa.Array
    document: pa.Array
    grade: FloatVector
    line: IntVector


class Run(NamedTuple):
    """Retrieved documents, a row each; :class:`Qrels` says what the columns hold.

    Attributes
    ----------
    score : float64
        Higher is better; the rank in the file counts for nothing.
    name : str
        Name of the run in the last line.
    """

    topic: pa.Array
    document: pa.Array
    score: FloatVector
    line: IntVector
    name: str


def read_qrels(path: Path) -> Qrels:
    """Read judgements: topic, iteration (ignored), document, grade.

    Raises
    ------
    InputError
        There is no such file, it is empty, or a line is not of that form.
    """
    lines, fields = _rows(path, form="topic iteration document grade", may_have_more=False)
    grade = _numbers(path, lines, fields[3], _WHOLE_NUMBER, "a whole number as grade")
    return Qrels(fields[0], fields[2], grade, lines)


def read_run(path: Path) -> Run:
    """Read a run: topic, Q0 (ignored), document, rank (ignored), score, name of the run; what follows is ignored.

    Raises
    ------
    InputError
        There is no such file, it is empty, or a line is not of that form.
    """
    lines, fields = _rows(path, form="topic Q0 document rank score run", may_have_more=True)
    score = _numbers(path, lines, fields[4], _NUMBER, "a number as score")
    return Run(fields[0], fields[2], score, lines, fields[5][-1].as_py())


def numbers(column: pa.Array) -> NDArray[Any]:
    """View a column of numbers without nulls as numpy."""
    return np.from_dlpack(column)


def flags(column: pa.Array) -> NDArray[np.bool_]:
    """Copy a column of truth values without nulls to numpy."""
    return numbers(column.cast(pa.int8())).astype(np.bool_)


def _rows(path: Path, *, form: str, may_have_more: bool) -> tuple[IntVector, list[pa.Array]]:
    """Split the lines that hold something: their numbers, and a column for each field of ``form``."""
    text = pc.ascii_trim_whitespace(_lines(path))
    has_content = pc.match_substring_regex(text, "^[^#]")
    lines = np.flatnonzero(flags(has_content)) + 1
    if not lines.size:
        raise InputError(Fault(str(path), "no line with content", f"lines of the form '{form}'"))
    fields = pc.ascii_split_whitespace(text.filter(has_content))
    n_fields = numbers(pc.list_value_length(fields))
    n_expected = len(form.split())
    is_wrong = (n_fields < n_expected) if may_have_more else (n_fields != n_expected)
    found = [f"{n} fields" for n in n_fields[is_wrong][:MOST_FAULTS].tolist()]
    _refuse(path, lines[is_wrong], found, f"{n_expected}: '{form}'")
    return lines, [pc.list_slice(fields, place, place + 1).flatten() for place in range(n_expected)]


def _lines(path: Path) -> pa.Array:
    """Read the lines of a file; the n-th value is line n."""
    if not path.is_file():
        raise InputError(Fault(str(path), "no such file", "a file of TREC's judgements or of a run"))
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=["line"]),
            parse_options=csv.ParseOptions(delimiter=_NO_DELIMITER, quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(column_types={"line": pa.large_string()}),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(Fault(str(path), first_line(str(error)), "UTF-8 text, a row each line")) from error
    return table.column("line").combine_chunks()


def _numbers(path: Path, lines: IntVector, text: pa.Array, pattern: str, expected: str) -> FloatVector:
    """Read a column of numbers."""
    is_wrong = pc.invert(pc.match_substring_regex(text, pattern))
    wrong = text.filter(is_wrong)[:MOST_FAULTS].to_pylist()
    _refuse(path, lines[flags(is_wrong)], list(map(repr, wrong)), expected)
    return numbers(pc.cast(text, pa.float64()))


def _refuse(path: Path, lines: IntVector, found: list[str], expected: str) -> None:
    """Tell of the first lines that are not as expected, if there are any."""
    if not lines.size:
        return
    n_more = lines.size - len(found)
    faults = [Fault(f"{path}, line {line}", what, expected) for line, what in zip(lines.tolist(), found, strict=False)]
    if n_more:
        faults.append(Fault(str(path), f"{n_more:,} more such lines", "none"))
    raise InputError(*faults)
