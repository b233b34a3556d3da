"""A first config, guessed from tables: columns, dates, types of ids and segments, each with a comment that says why."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.apps.sampled_tables import (
    BY_TIMES,
    OF_NESTED,
    Guess,
    date_column,
    guessed_columns,
    guessed_gains,
    guessed_nested,
    has_dates,
    nested_values,
    texts_of,
)
from rankeval_spark.config.base import DATE_PLACEHOLDER
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
from rankeval_spark.config.json_schema import SCHEMA
from rankeval_spark.inputs.arrow.arrow_types import is_number, is_text
from rankeval_spark.inputs.column_names import plain_name
from rankeval_spark.inputs.input_columns import input_schemas
from rankeval_spark.measures import MeasureSet

if TYPE_CHECKING:
    from rankeval_spark.apps.sampled_tables import TableSample

INPUTS: Final[Mapping[str, type[InputConfig]]] = {
    "recommendations": RecommendationsInput,
    "held_out": HeldOutInput,
    "segments": SegmentsInput,
    "train": TrainInput,
    "items": ItemsInput,
}
"""Inputs in the order of the config."""

_SCHEMAS: Final = input_schemas()
_IDS: Final = (C.USER_ID, C.ITEM_ID)
_BASELINES: Final = ("popular", "popularity", "mostpopular", "mostpop", "toppop", "pop", "baseline", "random")

MOST_SEGMENTS: Final = 5
MAX_VALUES: Final = 50  # of a segment in the sample; more texts name single users rather than groups
_FEW_NUMBERS: Final = 10  # in the sample, up to which each is a value of its own, not a band
_OF_SEGMENTS: Final = (is_text, is_number, pa.types.is_boolean, pa.types.is_dictionary)  # types of their columns
_SEPARATORS: Final = ("|", ";", ",")
_OF_FACTS: Final = {
    "ItemCoverage": "coverage: the share of the items that are recommended",
    "MIUF": "novelty: few users have the items in the training data",
    "ARP": "popularity of the items in the training data",
    "ILD(sim='jaccard')": "diversity of a list by the categories",
    "ILD": "diversity of a list by the vectors",
    "Calibration": "distance of the categories from those of the user's history",
    "Freshness": "age of the items",
}
"""Measures of items, with what they say, the most asked for first."""

CUTOFFS: Final = (5, 10, 20)
WINDOW_DAYS: Final = 7  # of the attribution window
_COMMENTS_FROM: Final = 44  # column of the comments
_PLAIN: Final = re.compile(r"(\.\./|/)?[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS: Final = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}  # which YAML does not take for text


@dataclass(frozen=True)
class GuessedInput:
    """One input, as it was guessed."""

    name: str  # as in the config
    table: TableSample  # what was looked at
    columns: Mapping[str, Guess]  # column of the table by canonical column
    day: Guess | None  # column with the evaluation date
    missing: tuple[str, ...]  # canonical columns that the input needs and that were not found
    as_text: tuple[str, ...] = ()  # ids that are whole numbers here and text in another input
    nested: Nested | None = None  # arrays of items and scores, where a row is a whole list
    gains: Gains | None = None  # how a column of events becomes gains
    unknown_events: tuple[str, ...] = ()  # events whose gain no word in their name says

    def column_of(self, canonical: str) -> pa.ChunkedArray | None:
        """Values of a canonical column in the sample."""
        if self.nested is not None and canonical == C.ITEM_ID:
            return nested_values(self.table.rows, self.nested.items)
        guess = self.columns.get(canonical)
        return None if guess is None else self.table.rows[guess.column]

    @property
    def list_separator(self) -> str | None:
        """Separator of categories that are text; None where they are lists, or JSON."""
        values = self.column_of(C.CATEGORIES)
        if values is None or not is_text(values.type):
            return None
        texts = [text for text in values.to_pylist() if text]
        if texts and all(text.startswith("[") for text in texts):
            return None
        return max(_SEPARATORS, key=lambda separator: sum(separator in text for text in texts))

    @property
    def newest_date(self) -> str | None:
        """Newest date that was seen."""
        if self.day is None:
            return self.table.path_date
        return max(self.table.partitions.get(self.day.column) or texts_of(self.table.rows[self.day.column]))

    @property
    def unread(self) -> list[str]:
        """Columns of the table that were taken for nothing."""
        used = {guess.column for guess in (*self.columns.values(), self.day) if guess is not None}
        shapes = [shape for shape in (self.nested, self.gains) if shape is not None]
        names = self.table.rows.column_names
        used |= {column_and_field(path, names)[0] for shape in shapes for path in shape.renames.values()}
        return [name for name in names if name not in used]


@dataclass(frozen=True)
class Guesses:
    """Guesses about all inputs, of which a config is written."""

    inputs: Mapping[str, GuessedInput]
    slices: tuple[str, ...] = ()  # segments with few values, and those of numbers
    bands: tuple[str, ...] = ()  # those of numbers
    models: tuple[str, ...] = ()  # models that were seen
    cutoffs: tuple[int, ...] = CUTOFFS  # usual ones, up to the longest list of the sample

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
        if held_out.day:
            return held_out.day.column
        times = held_out.column_of(C.INTERACTED_AT)
        is_time = times is not None and (pa.types.is_timestamp(times.type) or pa.types.is_date(times.type))
        return held_out.columns[C.INTERACTED_AT].column if is_time else None

    @property
    def has_events_of_all_days(self) -> bool:
        """Whether each date has its own lists and reads all events: no column of them can be filtered by date."""
        is_narrowed = self.window_column is not None or self.inputs["held_out"].table.path_date is not None
        return self.is_attributed and self.newest_date is not None and not is_narrowed

    @property
    def newest_date(self) -> str | None:
        """Newest date that the recommendations have."""
        return self.inputs["recommendations"].newest_date


def guessed(tables: Mapping[str, TableSample]) -> Guesses:
    """Guess what tables hold; ``recommendations`` and ``held_out`` are among them."""
    by_name = {name: _guessed_input(name, tables) for name in INPUTS if name in tables}
    by_name["held_out"] = _with_lists_of(by_name["recommendations"], by_name["held_out"])
    inputs = {name: replace(each, as_text=tuple(_ids_as_text(each, by_name))) for name, each in by_name.items()}
    log = inputs["recommendations"]
    plain, numbers = _segments(inputs["segments"]) if "segments" in inputs else ([], [])
    slices = tuple((*plain, *numbers)[:MOST_SEGMENTS])
    bands = tuple(name for name in slices if name in numbers)
    models = tuple(log.table.distinct(log.columns[C.MODEL_ID].column)) if C.MODEL_ID in log.columns else ()
    return Guesses(inputs, slices, bands, models, _cutoffs(log))


def _measures_of_facts(inputs: Mapping[str, GuessedInput], k: int) -> list[tuple[str, str]]:
    """List the measures of coverage, novelty, diversity and age that the tables have all columns for, with why."""
    given = {name for name in ("train", "items") if name in inputs}
    if not given:
        return []
    given |= {f"{name}.{column}" for name in given for column in inputs[name].columns}
    given |= {"evaluation_date"} if inputs["recommendations"].newest_date else set()
    return [
        (measure, why)
        for measure, why in _OF_FACTS.items()
        if set(MeasureSet.parse([f"{measure}@{k}"]).requiring()) <= given
    ]


def _guessed_input(name: str, tables: Mapping[str, TableSample]) -> GuessedInput:
    table, log = tables[name], date_column(tables["recommendations"])
    day = log if name == "recommendations" else date_column(table, like=log.column if log else "")
    nested = guessed_nested(table) if name == "recommendations" else None
    of_items = OF_NESTED if nested is not None else ()
    wanted = [column for column in _SCHEMAS[name].field_names() if column not in of_items]
    columns = guessed_columns(table, wanted, taken=[day.column] if day else [])
    needed = [column for column in INPUTS[name].id_columns if column not in of_items]
    if name == "recommendations" and nested is None and C.RANK not in columns:
        needed.append(C.SCORE)
    missing = tuple(column for column in needed if column not in columns)
    if name == "recommendations" and nested is None and _has_list_times(table, columns, day):
        columns[C.LIST_ID] = Guess(columns[C.RECOMMENDED_AT].column, BY_TIMES)
    has_events = name == "held_out" and C.GAIN not in columns
    gains, unknown = (guessed_gains(table) if has_events else None) or (None, ())
    return GuessedInput(name, table, columns, day, missing, (), nested, gains, unknown)


def _with_lists_of(log: GuessedInput, judged: GuessedInput) -> GuessedInput:
    """Use the lists of judgements for those of the log only where both have a column of this name and a value of it.

    A column ``list_id`` is read in any case.
    """
    own, listed = judged.columns.get(C.LIST_ID), log.columns.get(C.LIST_ID)
    if own is None or own.column == C.LIST_ID:
        return judged
    if listed is not None and plain_name(own.column) == plain_name(listed.column):
        values = (set(given.table.distinct(guess.column)) for given, guess in ((judged, own), (log, listed)))
        if set.intersection(*values):
            return judged
    return replace(judged, columns={name: guess for name, guess in judged.columns.items() if name != C.LIST_ID})


def _has_list_times(table: TableSample, columns: Mapping[str, Guess], day: Guess | None) -> bool:
    """Return True if a log without ids of lists has several times of a user and day, each with several items."""
    if C.LIST_ID in columns or C.RECOMMENDED_AT not in columns or C.USER_ID not in columns:
        return False
    keys = [columns[name].column for name in (C.MODEL_ID, C.USER_ID) if name in columns] + ([day.column] if day else [])
    shown = columns[C.RECOMMENDED_AT].column
    keys = [name for name in dict.fromkeys(keys) if name in table.rows.column_names and name != shown]
    rows = table.of_some_users([*keys, shown], columns[C.USER_ID].column)
    lists = rows.group_by([*keys, shown]).aggregate([([], "count_all")])
    return len(lists) > len(lists.group_by(keys).aggregate([])) and len(lists) * 2 <= rows.num_rows


def _ids_as_text(one: GuessedInput, inputs: Mapping[str, GuessedInput]) -> Iterator[str]:
    """Yield the ids that are numbers in this input and text in another."""
    for name in _IDS:
        is_text_id = {
            other.name: other.table.format not in {"delta", "parquet"}
            or not (pa.types.is_integer(values.type) or pa.types.is_decimal(values.type))
            for other in inputs.values()
            if (values := other.column_of(name)) is not None
        }
        if any(is_text_id.values()) and not is_text_id.get(one.name, True):
            yield name


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
        elif n_values <= MAX_VALUES and any(is_kind(values.type) for is_kind in _OF_SEGMENTS):
            plain.append(name)
    return plain, numbers


def _cutoffs(log: GuessedInput) -> tuple[int, ...]:
    """Choose cutoffs up to the longest list of some users, whose rows may be anywhere in the table."""
    if log.nested is not None:
        rows = log.table.rows
        lists = rows[column_and_field(log.nested.items, rows.column_names)[0]]
        longest = pc.max(pc.list_value_length(lists)).as_py() or CUTOFFS[-1]
    else:
        keys = [log.columns[name].column for name in (C.MODEL_ID, C.USER_ID, C.LIST_ID) if name in log.columns]
        keys = list(dict.fromkeys([*keys, *([log.day.column] if log.day else [])]))
        user = log.columns.get(C.USER_ID)
        rows = log.table.rows if user is None else log.table.of_some_users(keys, user.column)
        if not keys or not rows.num_rows:
            return CUTOFFS
        longest = pc.max(rows.group_by(keys).aggregate([([], "count_all")])["count_all"]).as_py()
    return tuple(k for k in CUTOFFS if k <= longest) or (longest,)


def config_text(guesses: Guesses, config: Path, *, results: str) -> str:
    """Write a config for a file, from whose folder its paths start."""
    return "".join(f"{line}\n" for line in _lines(guesses, config, results))


def _lines(guesses: Guesses, config: Path, results: str) -> Iterator[str]:
    yield f"# yaml-language-server: $schema=./{SCHEMA}"
    yield "#"
    yield "# Written by rankeval init, which looked at the tables: check what it guessed. Paths start from this folder."
    yield "# Every key there is, with its meaning: rankeval init OTHER.yaml, without tables."
    yield f"evaluation: {_text(re.sub('[^A-Za-z0-9_.-]', '_', config.stem).lstrip('._-') or 'nightly')}"
    yield ""
    yield "inputs:"
    for given in guesses.inputs.values():
        window = guesses.window_column if given.name == "held_out" else None
        yield from _input_lines(given, config, window=window)
        if given.name == "held_out" and guesses.has_events_of_all_days:
            yield from _unfiltered_lines(guesses)
    yield ""
    yield from _model_lines(guesses)
    if guesses.is_attributed:
        yield ""
        yield _with_comment("policies:", "both tables have times: an event counts for the last list before it")
        yield "  attribution: last_touch"
        yield _with_comment(f"  attribution_window: {WINDOW_DAYS}d", "a night runs once this window is over")
    yield ""
    of_facts = _measures_of_facts(guesses.inputs, guesses.cutoffs[-1])
    yield (
        "measures:" if of_facts else "measures: [nDCG, AP, R, RR, Success]        # rankeval measures lists the others"
    )
    if of_facts:
        yield from (f"  - {name}" for name in ("nDCG", "AP", "R", "RR", "Success"))
        yield from (_with_comment(f"  - {_text(name)}", why) for name, why in of_facts)
    yield f"cutoffs: [{', '.join(map(str, guesses.cutoffs))}]"
    yield from _slice_lines(guesses)
    yield ""
    if of_facts:
        yield from _gate_lines(guesses)
        yield ""
    yield "results:"
    yield f"  root: {_path(results, config)}"
    yield "  lists: true" + " " * (_COMMENTS_FROM - 13) + "# so that rankeval score can add measures later"


def _gate_lines(guesses: Guesses) -> Iterator[str]:
    """Write rules: one about the night before, which holds on the first night, and others to be chosen."""
    measure = f"nDCG@{guesses.cutoffs[-1]}"
    yield _with_comment("gates:", "rules for shipping a model: exit code 6 where one is not met")
    rule = f"  - {{measure: {measure}, against: previous, margin: 0.02}}"
    yield _with_comment(rule, "at most so much below the night before: yours to choose")
    if guesses.baseline is not None:
        yield _with_comment(f"  # - {{measure: {measure}, least_gain: 0}}", "better than the baseline")
    bound = f"  # - {{measure: ItemCoverage@{guesses.cutoffs[-1]}, at_least: 0.1}}"
    yield _with_comment(bound, "of the items are recommended to someone")


def _input_lines(one: GuessedInput, config: Path, *, window: str | None) -> Iterator[str]:
    table = one.table
    yield f"  {one.name}:"
    yield f"    format: {table.format}"
    yield f"    path: {_path(table.path, config)}"
    yield "    columns:"
    for name, guess in one.columns.items():
        yield _with_comment(f"      {name}: {_text(guess.column)}", f"guessed by {guess.by}")
    for name in one.missing:
        yield _with_comment(f"      {name}: {name}", f"NOT FOUND, write one of: {', '.join(one.unread) or 'none left'}")
    yield from _shape_lines(one)
    if one.as_text:
        types = ", ".join(f"{name}: string" for name in one.as_text)
        yield _with_comment(f"    types: {{{types}}}", "numbers here, text in another input")
    if window is not None:
        yield _with_comment("    filters:", "the days of the attribution window")
        yield from (f"      - {condition}" for condition in _window_conditions(window, of_days=one.day is not None))
    elif one.day is not None:
        condition = f'{{column: {_text(one.day.column)}, op: "=", value: "{DATE_PLACEHOLDER}"}}'
        yield f"    filters: [{condition}]  # guessed by {one.day.by}"
    ranks = one.column_of(C.RANK)
    if ranks is not None and pc.min(ranks).as_py() == 0:
        yield _with_comment("    ranks_from: 0", "the first rank of the sample is 0")
    if one.list_separator is not None:
        yield _with_comment(f"    list_separator: {json.dumps(one.list_separator)}", "guessed by the categories")
    if table.separator not in ("", ","):
        yield f"    options: {{sep: {json.dumps(table.separator)}}}"
    others = [f"{name}, with dates" if has_dates(table, name) else name for name in one.unread]
    if others and one.name != "segments":
        yield f"    # not read: {_one_line(', '.join(others))}"


def _window_conditions(column: str, *, of_days: bool) -> Iterator[str]:
    """Write the two conditions for the days of the window, on a column of days or of times."""
    # The window of the last list ends on the last day, so times end at the midnight after it.
    op, days = ("<=", WINDOW_DAYS) if of_days else ("<", WINDOW_DAYS + 1)
    yield f'{{column: {_text(column)}, op: ">=", value: "{DATE_PLACEHOLDER}"}}'
    yield f'{{column: {_text(column)}, op: "{op}", value: "{{date+{days}}}"}}'


def _unfiltered_lines(guesses: Guesses) -> Iterator[str]:
    """Yield comments that no column of the judgements can be filtered by the day, and what to add."""
    log = guesses.inputs["recommendations"]
    day = log.day.column if log.day else "day"  # best called as that of the recommendations
    times = _one_line(guesses.inputs["held_out"].columns[C.INTERACTED_AT].column)
    yield f"    # NOT FILTERED: {times} cannot be compared with a date, so each date reads the events of all days,"
    yield "    # and users with events and no list of that date score 0. Add a column with the day of the event to the"
    yield "    # table, and these filters:"
    yield "    # filters:"
    yield from (f"    #   - {_one_line(condition)}" for condition in _window_conditions(day, of_days=True))


def _shape_lines(one: GuessedInput) -> Iterator[str]:
    """Write the arrays of a list, and the gains of events."""
    if one.nested is not None:
        yield _with_comment("    nested:", "a row is a whole list, guessed by the types")
        yield f"      items: {_text(one.nested.items)}"
        if one.nested.scores is not None:
            yield f"      scores: {_text(one.nested.scores)}"
    if one.gains is not None:
        yield _with_comment("    gains:", "guessed by the names of the events: what is each worth?")
        yield f"      column: {_text(one.gains.column)}"
        gains = ", ".join(f"{_text(event)}: {gain:g}" for event, gain in one.gains.values.items())
        line, unknown = f"      values: {{{gains}}}", ", ".join(one.unknown_events)
        yield _with_comment(line, f"unknown, so 1: {unknown}") if unknown else line


def _model_lines(guesses: Guesses) -> Iterator[str]:
    if C.MODEL_ID not in guesses.inputs["recommendations"].columns:
        yield "# The log has no column of models: all of its lists are those of one, 'model'."
        return
    shown = ", ".join(_text(name) for name in guesses.models[:10])
    yield f"# models: [{_one_line(shown)}]  # seen; without this key, those in the log"
    if guesses.baseline is None:
        baseline = _one_line(_text(next(iter(guesses.models), "popular")))
        yield "# comparisons:"
        yield _with_comment(f"#   baseline: {baseline}", "the model that others are compared with")
    else:
        yield "comparisons:"
        yield _with_comment(f"  baseline: {_text(guesses.baseline)}", "guessed by its name")


def _slice_lines(guesses: Guesses) -> Iterator[str]:
    if "segments" not in guesses.inputs:
        return
    left = [name for name in guesses.inputs["segments"].unread if name not in guesses.slices]
    yield ""
    if guesses.slices:
        yield f"slices: [{', '.join(map(_text, guesses.slices))}]  # guessed by the number of their values"
    if left:
        yield f"# other columns of segments: {_one_line(', '.join(left))}"
    if guesses.bands:
        yield "slicing:"
        yield "  bands:"
        for name in guesses.bands:
            yield _with_comment(f"    {_text(name)}: {{quantiles: 4}}", "numbers: bands of alike size")


def _with_comment(text: str, comment: str) -> str:
    return f"{text:<{_COMMENTS_FROM - 1}} # {_one_line(comment)}"


def _one_line(text: str) -> str:
    """Keep a name with line ends within its comment."""
    return text if text.isprintable() else json.dumps(text)


def _path(path: str, config: Path) -> str:
    """Write a path so that it starts from the folder of the config."""
    expanded = os.path.expanduser(path)
    return _text(expanded if os.path.isabs(expanded) else os.path.relpath(expanded, config.parent))


def _text(text: str) -> str:
    """Write text for YAML: plain where it is nothing else, else in quotes."""
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=not text.isprintable())
