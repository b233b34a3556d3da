"""What is guessed of each table: its columns, its dates, the types of its ids, and which segments it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.first_config.column_guesses import BY_TIMES, Guess, date_column, guessed_columns
from rankeval_spark.apps.first_config.shape_guesses import OF_NESTED, guessed_gains, guessed_nested, nested_values
from rankeval_spark.config.inputs import (
    Gains,
    HeldOutInput,
    InputConfig,
    ItemsInput,
    Nested,
    RecommendationsInput,
    SegmentsInput,
    TrainInput,
    column_and_field,
)
from rankeval_spark.inputs.arrow.arrow_types import is_number, is_text
from rankeval_spark.inputs.input_columns import plain_name

if TYPE_CHECKING:
    from rankeval_spark.apps.first_config.table_samples import TableSample

INPUTS: Final[Mapping[str, type[InputConfig]]] = {
    "recommendations": RecommendationsInput,
    "held_out": HeldOutInput,
    "segments": SegmentsInput,
    "train": TrainInput,
    "items": ItemsInput,
}
"""Inputs in the order of the config."""

_SCHEMAS: Final = {
    "recommendations": schemas.RECOMMENDATIONS,
    "held_out": schemas.HELD_OUT,
    "train": schemas.TRAIN,
    "items": schemas.ITEMS,
}
_IDS: Final = (C.USER_ID, C.ITEM_ID)
_BASELINES: Final = ("popular", "popularity", "mostpopular", "mostpop", "toppop", "pop", "baseline", "random")

MOST_SEGMENTS: Final = 5
MOST_VALUES: Final = 50
"""Values of a segment in the sample; a column of text with more names single users rather than groups."""

_FEW_NUMBERS: Final = 10
"""Numbers in the sample up to which each is a value of its own, not a band."""

_SEPARATORS: Final = ("|", ";", ",")

CUTOFFS: Final = (5, 10, 20)


@dataclass(frozen=True)
class GuessedInput:
    """One input, as it was guessed.

    Attributes
    ----------
    name : str
        As in the config.
    table : TableSample
        What was looked at.
    columns : mapping of str to Guess
        Column of the table by canonical column.
    day : Guess or None
        Column with the evaluation date.
    missing : tuple of str
        Canonical columns that the input needs and that were not found.
    as_text : tuple of str
        Ids that are whole numbers here and text in another input.
    nested : Nested or None
        Arrays of items and scores, where a row is a whole list.
    gains : Gains or None
        How a column of events becomes gains.
    unknown_events : tuple of str
        Events whose gain no word in their name says.
    """

    name: str
    table: TableSample
    columns: Mapping[str, Guess]
    day: Guess | None
    missing: tuple[str, ...]
    as_text: tuple[str, ...] = ()
    nested: Nested | None = None
    gains: Gains | None = None
    unknown_events: tuple[str, ...] = ()

    def column_of(self, canonical: str) -> pa.ChunkedArray | None:
        """Values of a canonical column in the sample."""
        if self.nested is not None and canonical == C.ITEM_ID:
            return nested_values(self.table.rows, self.nested.items)
        guess = self.columns.get(canonical)
        return None if guess is None else self.table.rows[guess.column]

    @property
    def time_column(self) -> str | None:
        """Column with the times of interactions, where filters can compare it with a date."""
        values = self.column_of(C.INTERACTED_AT)
        is_time = values is not None and (pa.types.is_timestamp(values.type) or pa.types.is_date(values.type))
        return self.columns[C.INTERACTED_AT].column if is_time else None

    @property
    def counts_ranks_from_0(self) -> bool:
        """Whether the first rank of the sample is 0."""
        ranks = self.column_of(C.RANK)
        return ranks is not None and pc.min(ranks).as_py() == 0

    @property
    def list_separator(self) -> str | None:
        """What separates categories that are text; None where they are lists, or JSON."""
        values = self.column_of(C.CATEGORIES)
        if values is None or not is_text(values.type):
            return None
        texts = [text for text in values.to_pylist() if text]
        if texts and all(text.startswith("[") for text in texts):
            return None
        return max(_SEPARATORS, key=lambda one: sum(one in text for text in texts))

    @property
    def newest_date(self) -> str | None:
        """Newest date that was seen."""
        if self.day is None:
            return self.table.path_date
        values = self.table.partitions.get(self.day.column) or [
            str(value) for value in pc.unique(self.table.rows[self.day.column]).to_pylist() if value is not None
        ]
        return max(values)

    @property
    def unread(self) -> list[str]:
        """Columns of the table that were taken for nothing."""
        used = {guess.column for guess in (*self.columns.values(), self.day) if guess is not None}
        shapes = [one for one in (self.nested, self.gains) if one is not None]
        paths = [path for shape in shapes for path in shape.renames.values()]
        used |= {column_and_field(path, self.table.rows.column_names)[0] for path in paths}
        return [name for name in self.table.rows.column_names if name not in used]


@dataclass(frozen=True)
class Guesses:
    """Everything that a config is written of.

    Attributes
    ----------
    slices : tuple of str
        Segments with few values, and those of numbers.
    bands : tuple of str
        Those of numbers.
    models : tuple of str
        Models that were seen.
    cutoffs : tuple of int
        Usual ones, up to the longest list of the sample.
    """

    inputs: Mapping[str, GuessedInput]
    slices: tuple[str, ...] = ()
    bands: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    cutoffs: tuple[int, ...] = field(default=CUTOFFS)

    @property
    def baseline(self) -> str | None:
        """Model that others are probably compared with, by its name."""
        plain = {name: "".join(filter(str.isalnum, name.lower())) for name in self.models}
        likely = [name for name in self.models if plain[name] in _BASELINES]
        return min(likely, key=lambda name: _BASELINES.index(plain[name])) if likely and len(self.models) > 1 else None

    @property
    def is_attributed(self) -> bool:
        """Whether lists and interactions both have times, so that an interaction belongs to the lists before it."""
        judged = self.inputs["held_out"].columns
        has_times = C.INTERACTED_AT in judged and C.LIST_ID not in judged  # lists that are named need no times
        return has_times and C.RECOMMENDED_AT in self.inputs["recommendations"].columns

    @property
    def window_column(self) -> str | None:
        """Column of the judgements that filters keep to the days of the window; None where there is none, or no day."""
        held_out = self.inputs["held_out"]
        if not self.is_attributed or self.newest_date is None:
            return None
        return held_out.day.column if held_out.day else held_out.time_column

    @property
    def has_events_of_all_days(self) -> bool:
        """Whether each date has its own lists and reads all events: no column of them can be filtered by date."""
        is_narrowed = self.window_column is not None or self.inputs["held_out"].table.path_date is not None
        return self.is_attributed and self.newest_date is not None and not is_narrowed

    @property
    def day_name(self) -> str:
        """How a column with the day of an event is best called: as that of the recommendations."""
        log = self.inputs["recommendations"]
        return log.day.column if log.day else "day"

    @property
    def newest_date(self) -> str | None:
        """Newest date that the recommendations have."""
        return self.inputs["recommendations"].newest_date


def guessed(tables: Mapping[str, TableSample]) -> Guesses:
    """Guess what tables hold; ``recommendations`` and ``held_out`` are among them."""
    by_name = {name: _guessed_input(name, tables) for name in INPUTS if name in tables}
    by_name["held_out"] = _with_lists_of(by_name["recommendations"], by_name["held_out"])
    inputs = {name: replace(one, as_text=tuple(_ids_as_text(one, by_name))) for name, one in by_name.items()}
    log = inputs["recommendations"]
    plain, numbers = _segments(inputs["segments"]) if "segments" in inputs else ([], [])
    models = tuple(log.table.distinct(log.columns[C.MODEL_ID].column)) if C.MODEL_ID in log.columns else ()
    return Guesses(
        inputs,
        slices=tuple((*plain, *numbers)[:MOST_SEGMENTS]),
        bands=tuple(name for name in (*plain, *numbers)[:MOST_SEGMENTS] if name in numbers),
        models=models,
        cutoffs=_cutoffs(log),
    )


def _guessed_input(name: str, tables: Mapping[str, TableSample]) -> GuessedInput:
    table, log = tables[name], date_column(tables["recommendations"])
    day = log if name == "recommendations" else date_column(table, like=log.column if log else "")
    wanted = _SCHEMAS[name].field_names() if name in _SCHEMAS else [C.USER_ID]
    nested = guessed_nested(table) if name == "recommendations" else None
    of_items = OF_NESTED if nested is not None else ()
    wanted = [one for one in wanted if one not in of_items]
    columns = guessed_columns(table, wanted, taken=[day.column] if day else [])
    needed = [one for one in INPUTS[name].id_columns if one not in of_items]
    if name == "recommendations" and nested is None and C.RANK not in columns:
        needed.append(C.SCORE)
    missing = tuple(one for one in needed if one not in columns)
    if name == "recommendations" and nested is None and _has_list_times(table, columns, day):
        columns[C.LIST_ID] = Guess(columns[C.RECOMMENDED_AT].column, BY_TIMES)
    has_events = name == "held_out" and C.GAIN not in columns
    gains, unknown = (guessed_gains(table) if has_events else None) or (None, ())
    return GuessedInput(name, table, columns, day, missing, (), nested, gains, unknown)


def _with_lists_of(log: GuessedInput, judged: GuessedInput) -> GuessedInput:
    """Take the lists of judgements for those of the log only where both have a column of this name and a value of it.

    A column ``list_id`` is read in any case.
    """
    own, listed = judged.columns.get(C.LIST_ID), log.columns.get(C.LIST_ID)
    if own is None or own.column == C.LIST_ID:
        return judged
    if listed is not None and plain_name(own.column) == plain_name(listed.column):
        values = (set(one.table.distinct(guess.column)) for one, guess in ((judged, own), (log, listed)))
        if set.intersection(*values):
            return judged
    return replace(judged, columns={name: guess for name, guess in judged.columns.items() if name != C.LIST_ID})


def _has_list_times(table: TableSample, columns: Mapping[str, Guess], day: Guess | None) -> bool:
    """Whether a log without ids of lists has several times of a user and day, each of several items: those of lists."""
    if C.LIST_ID in columns or C.RECOMMENDED_AT not in columns or C.USER_ID not in columns:
        return False
    keys = [columns[name].column for name in (C.MODEL_ID, C.USER_ID) if name in columns] + ([day.column] if day else [])
    shown = columns[C.RECOMMENDED_AT].column
    keys = [name for name in dict.fromkeys(keys) if name in table.rows.column_names and name != shown]
    lists = table.rows.group_by([*keys, shown]).aggregate([([], "count_all")])
    return len(lists) > len(lists.group_by(keys).aggregate([])) and len(lists) * 2 <= table.rows.num_rows


def _ids_as_text(one: GuessedInput, inputs: Mapping[str, GuessedInput]) -> Iterator[str]:
    """Name the ids that are numbers in this input and text in another."""
    for name in _IDS:
        texts = {
            other.name for other in inputs.values() if other.column_of(name) is not None and _is_text_id(other, name)
        }
        if texts and one.column_of(name) is not None and one.name not in texts:
            yield name


def _is_text_id(one: GuessedInput, name: str) -> bool:
    values = one.column_of(name)
    return not one.table.has_typed_ids or (values is not None and not pa.types.is_integer(values.type))


def _segments(one: GuessedInput) -> tuple[list[str], list[str]]:
    """Find the columns with few values, and those of numbers with many."""
    plain: list[str] = []
    numbers: list[str] = []
    for name in one.unread:
        values = one.table.rows[name]
        n_values = pc.count_distinct(values).as_py() if not pa.types.is_nested(values.type) else 0
        if not name.isidentifier() or name == C.ALL_USERS or n_values < 2:  # noqa: PLR2004 - one value cuts nothing
            continue
        if is_number(values.type) and n_values > _FEW_NUMBERS:
            numbers.append(name)
        elif n_values <= MOST_VALUES and (is_text(values.type) or is_number(values.type) or _is_flag(values.type)):
            plain.append(name)
    return plain, numbers


def _is_flag(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_dictionary(kind))


def _cutoffs(log: GuessedInput) -> tuple[int, ...]:
    """Choose cutoffs up to the longest list of the sample."""
    if log.nested is not None:
        lists = log.table.rows[column_and_field(log.nested.items, log.table.rows.column_names)[0]]
        return _up_to(pc.max(pc.list_value_length(lists)).as_py() or CUTOFFS[-1])
    keys = [log.columns[name].column for name in (C.MODEL_ID, C.USER_ID, C.LIST_ID) if name in log.columns]
    keys += [log.day.column] if log.day else []
    if not keys or not log.table.rows.num_rows:
        return CUTOFFS
    longest = pc.max(log.table.rows.group_by(keys).aggregate([([], "count_all")])["count_all"]).as_py()
    return _up_to(longest)


def _up_to(longest: int) -> tuple[int, ...]:
    return tuple(k for k in CUTOFFS if k <= longest) or (longest,)
