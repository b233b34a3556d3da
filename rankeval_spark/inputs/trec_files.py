"""The two files of TREC: judgements (qrels) and a run, one row a line, fields between white space.

Files that end in .gz, .bz2 or .zst are unpacked as they are read. Empty lines and lines that begin with # are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc, csv

from rankeval_spark import allowed_folders, columns as C
from rankeval_spark.engine.arrays import to_numpy
from rankeval_spark.errors import Fault, InputError, first_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import FloatVector, IntVector

TrecForm: TypeAlias = Literal["run", "qrels"]

MAX_FAULTS: Final = 5  # lines that are shown of those that cannot be read
FIRST_LINES: Final = 10_000  # lines of a large file that are looked at before all others
MAX_LINE: Final = 1 << 20  # bytes; also what is read at a time

_FORMS: Final[Mapping[TrecForm, str]] = {
    "qrels": "topic iteration document grade",
    "run": "topic Q0 document rank score run",
}
_KINDS: Final[Mapping[TrecForm, str]] = {"qrels": "judgements", "run": "a run"}
FIELDS: Final = {form: len(text.split()) for form, text in _FORMS.items()}
"""Fields of a line; a run may have more."""
WHOLE_NUMBER: Final = r"^[+-]?[0-9]+(\.0*)?$"
NUMBER: Final = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$|^[+-]?inf(inity)?$"
RANK: Final = r"^[0-9]{1,18}$"
"""A rank; a file may have anything in its place, because trec_eval does not read it."""
_MAX_GRADE: Final = 2.0**53  # up to it a double holds every whole number; one of 309 digits would be infinite
_MAX_SHOWN: Final = 40
_NO_DELIMITER: Final = "\x1f"  # a control character that no line holds: each line is one field


class Qrels(NamedTuple):
    """Judgements, a row each."""

    topic: pa.Array  # ids as the file has them, as those of documents
    document: pa.Array
    grade: FloatVector  # whole numbers; a negative one marks a document that was pooled and not judged
    line: IntVector  # line of the file, from 1


class TrecRun(NamedTuple):
    """Retrieved documents, a row each; columns as of :class:`Qrels`."""

    topic: pa.Array
    document: pa.Array
    score: FloatVector  # higher is better
    line: IntVector
    rank: pa.Array  # as the file has it
    names: pa.Array  # of the run, as the file has them

    @property
    def name(self) -> str:
        """The run's name in the last line."""
        return str(self.names[-1].as_py())


class SwappedError(InputError):
    """A file holds a run where judgements are expected, or judgements in place of a run."""


def swapped_fault(where: str, line: str, form: TrecForm, location: str) -> Fault | None:
    """Build the fault of a file whose first line has the other form; None for any other file.

    >>> swapped_fault("inputs.held_out", "q1 Q0 d1 1 0.5 bm25", "qrels", "a.txt").found
    'a run at a.txt'
    >>> swapped_fault("inputs.held_out", "q1 0 d1 1", "qrels", "a.txt")
    """
    fields = line.split()
    other: TrecForm = "run" if form == "qrels" else "qrels"
    is_other = (
        len(fields) >= FIELDS["run"] and re.search(NUMBER, fields[4])
        if other == "run"
        else len(fields) == FIELDS["qrels"] and re.search(WHOLE_NUMBER, fields[3])
    )
    expected = f"{_KINDS[form]}, lines of the form '{_FORMS[form]}'"
    fix = "are the two files swapped?"
    return Fault(where, f"{_KINDS[other]} at {location}", expected, fix) if is_other else None


def read_qrels(path: Path) -> Qrels:
    """Read judgements: topic, iteration (ignored), document, grade; any other or empty file is refused."""
    in_range = f"a whole number from {-_MAX_GRADE:.0f} to {_MAX_GRADE:.0f} as grade"
    for lines, text in _read_in_parts(path, form="qrels"):  # the last part is the whole file
        topic, _, document, written = _split_lines(path, lines, text, form="qrels")
        grade = _to_numbers(path, lines, written, WHOLE_NUMBER, "a whole number as grade")
        _refuse_cells(path, lines, written, np.abs(grade) > _MAX_GRADE, in_range)
        qrels = Qrels(topic, document, grade, lines)
    return qrels


def read_run(path: Path) -> TrecRun:
    """Read a run: topic, Q0 (ignored), document, rank, score, name; any other or empty file is refused."""
    for lines, text in _read_in_parts(path, form="run"):  # the last part is the whole file
        topic, _, document, rank, written, names = _split_lines(path, lines, text, form="run")
        score = _to_numbers(path, lines, written, NUMBER, "a number as score")
        is_written_infinite = to_numpy(pc.match_substring_regex(written, "(?i)inf"))
        is_lost = np.isinf(score) & ~is_written_infinite
        _refuse_cells(path, lines, written, is_lost, "a score that a double can hold, or inf")
        run = TrecRun(topic, document, score, lines, rank, names)
    return run


def read_table(path: Path, form: TrecForm) -> pa.Table:
    """Read a run or judgements into canonical columns, in the order in which Spark reads them too."""
    if form == "qrels":
        qrels = read_qrels(path)
        return pa.Table.from_pydict({C.USER_ID: qrels.topic, C.ITEM_ID: qrels.document, C.GAIN: qrels.grade})
    run = read_run(path)
    is_rank = pc.match_substring_regex(run.rank, RANK)
    rank = pc.cast(pc.if_else(is_rank, run.rank, pa.scalar(None, run.rank.type)), pa.int64())
    columns = {C.MODEL_ID: run.names, C.USER_ID: run.topic, C.ITEM_ID: run.document, C.SCORE: run.score, C.RANK: rank}
    return pa.Table.from_pydict(columns)


def _read_in_parts(path: Path, *, form: TrecForm) -> Iterator[tuple[IntVector, pa.Array]]:
    """Yield the lines with content and their numbers: first those that show the kind of a large file, then all."""
    text = pc.ascii_trim_whitespace(_read_lines(path))
    has_content = pc.match_substring_regex(text, "^[^#]")
    lines = np.flatnonzero(to_numpy(has_content)) + 1
    if not lines.size:
        raise InputError(Fault(str(path), "no line with content", f"lines of the form '{_FORMS[form]}'"))
    text = text.filter(has_content)
    swapped = swapped_fault(f"{path}, line {lines[0]}", text[0].as_py(), form, path.name)
    if swapped is not None:
        raise SwappedError(swapped)
    if lines.size > FIRST_LINES:
        yield lines[:FIRST_LINES], text[:FIRST_LINES]
    yield lines, text


def _read_lines(path: Path) -> pa.Array:
    """Read the lines of a file; the n-th value is line n."""
    allowed_folders.require_allowed(("rankeval trec", str(path)))
    if not path.is_file():
        found = "a folder, a pipe or a device" if path.exists() else "no such file"
        raise InputError(Fault(str(path), found, "a file of TREC's judgements or of a run"))
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=["line"], block_size=MAX_LINE),
            parse_options=csv.ParseOptions(delimiter=_NO_DELIMITER, quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(column_types={"line": pa.large_string()}),
        )
    except (pa.ArrowInvalid, OSError) as error:
        found = first_line(str(error))
        if "straddl" in str(error):
            found = f"a line of more than {MAX_LINE >> 20} MB, as in a file of another kind"
        elif "CSV parse error" in str(error):
            found = "characters that no text has, as in a file of another kind"
        raise InputError(Fault(str(path), found, "UTF-8 text, a row each line")) from error
    return table.column("line").combine_chunks()


def _split_lines(path: Path, lines: IntVector, text: pa.Array, *, form: TrecForm) -> list[pa.Array]:
    """Split lines: a column for each field; a line of a run may have more."""
    fields = pc.ascii_split_whitespace(text)
    n_fields, n_expected = to_numpy(pc.list_value_length(fields)), FIELDS[form]
    is_wrong = (n_fields < n_expected) if form == "run" else (n_fields != n_expected)
    found = [f"{n} fields" for n in n_fields[is_wrong][:MAX_FAULTS].tolist()]
    _refuse_lines(path, lines, is_wrong, found, f"{n_expected}: '{_FORMS[form]}'")
    return [pc.list_slice(fields, place, place + 1).flatten() for place in range(n_expected)]


def _to_numbers(path: Path, lines: IntVector, text: pa.Array, pattern: str, expected: str) -> FloatVector:
    """Convert a field of the lines to numbers; text that does not match a pattern is refused."""
    _refuse_cells(path, lines, text, ~to_numpy(pc.match_substring_regex(text, pattern)), expected)
    return to_numpy(pc.cast(text, pa.float64()))


def _refuse_cells(path: Path, lines: IntVector, text: pa.Array, is_wrong: NDArray[np.bool_], expected: str) -> None:
    """Refuse some cells of a column, if there are any, and show the first of them."""
    found = []
    for place in np.flatnonzero(is_wrong)[:MAX_FAULTS].tolist():
        cell = text[place].as_py()
        more = f"... ({len(cell)} characters)" if len(cell) > _MAX_SHOWN else ""
        found.append(f"{cell[:_MAX_SHOWN]!r}{more}")
    _refuse_lines(path, lines, is_wrong, found, expected)


def _refuse_lines(path: Path, lines: IntVector, is_wrong: NDArray[np.bool_], found: list[str], expected: str) -> None:
    """Refuse a file for its first lines that are not as expected, if there are any."""
    wrong = lines[is_wrong].tolist()
    faults = [Fault(f"{path}, line {line}", what, expected) for line, what in zip(wrong, found, strict=False)]
    if len(wrong) > len(found):
        among = f" among the first {lines.size:,}" if lines.size == FIRST_LINES else ""
        faults.append(Fault(str(path), f"{len(wrong) - len(found):,} more such lines{among}", "none"))
    if faults:
        raise InputError(*faults)
