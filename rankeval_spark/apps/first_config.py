"""A first config, guessed from tables: columns, dates, types of ids and segments, each with a comment that says why."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.allowed_folders import scheme_of
from rankeval_spark.apps.advice import ITEM_MEASURES, WINDOW_DAYS, Advised, Data
from rankeval_spark.apps.notebook.advise import look_at, to_profile
from rankeval_spark.apps.sampled_tables import ISO_DATE, MAX_USERS, SAMPLE_ROWS, distinct_texts
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
    UserValuesInput,
    UserWeightsInput,
    column_and_field,
)
from rankeval_spark.config.json_schema import SCHEMA
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import raise_together
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_list, is_number, is_text
from rankeval_spark.inputs.arrow.file_inputs import look_at_inputs, read_tables
from rankeval_spark.inputs.input_columns import (
    RATING_NAMES,
    columns_by_name,
    columns_by_part,
    input_schemas,
    is_item_name,
    is_score_name,
    plain_name,
    required_columns,
)
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.result_rows import check_rows

if TYPE_CHECKING:
    from rankeval_spark.apps.sampled_tables import TableSample
    from rankeval_spark.config import EvaluationConfig

INPUTS: Final[Mapping[str, type[InputConfig]]] = {  # in the order of the config
    "recommendations": RecommendationsInput,
    "held_out": HeldOutInput,
    "segments": SegmentsInput,
    "train": TrainInput,
    "items": ItemsInput,
    "user_values": UserValuesInput,
    "user_weights": UserWeightsInput,
}
MAX_EVENTS: Final = 20  # kinds of events up to which a column of text is taken for one of events
MAX_ROWS: Final = 2_000_000  # of all tables, above which those of some users are looked at
_COMMENT_COLUMN: Final = 43  # characters before a comment
_OF_ALL_USERS: Final = (check_rows.MISSING_USERS, "extra_users", check_rows.UNMATCHED_ITEMS)
"""Checks that say nothing of some users, who are chosen among those with a list."""
_OF_SAMPLES: Final = ("models", "segments", "value_names")
"""Facts that the samples of the tables show as well."""

_DATE_NAMES: Final = ("evaluationdate", "date", "dt", "ds", "day", "rundate", "snapshotdate")
_EVENT_NAMES: Final = (  # of a column with kinds of events, the likeliest first
    *("event", "eventtype", "eventname", "action", "actiontype", "interaction", "interactiontype", "behavior"),
    *("behaviour", "activity", "type"),
)
_TAKES_BACK: Final = re.compile(
    r"skip|hid(?:e|den)|dis ?like|dismiss|impression|remove|delete|cancel|refund|\bundo|return(?!ing| to | visit)"
    r"|(?:\bun |un)(?:like|follow|subscri|sav|share|favou?rit|bookmark)"
)
"""Words in the name of an event by which a user takes something back or does not want it: gain 0.

They come before the other words, because `dislike`, `remove from cart` and `cancel order` have one of those too."""
_WORDS_OF_GAIN: Final = (
    (3, ("purchase", "buy", "bought", "order", "transaction", "conversion", "checkout", "subscribe")),
    (2, ("cart", "wishlist", "favorite", "favourite", "like", "share", "save", "follow", "download", "bookmark")),
    (0, ("report",)),
    (1, ("view", "click", "watch", "play", "listen", "read", "open", "visit")),
)
"""Gains, and words in the name of an event of that gain. `report` comes late: who downloads a report wants it."""


def _is_id(kind: pa.DataType) -> bool:
    """Return True if ids can be of a type."""
    return bool(is_text(kind) or _is_whole(kind) or pa.types.is_dictionary(kind) or is_binary(kind))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


_TYPES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    **dict.fromkeys((C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID), _is_id),
    **dict.fromkeys((C.SCORE, C.GAIN, C.VALUE, C.PREDICTED_REWARD, C.PROPENSITY, C.WEIGHT), is_number),
    C.RANK: lambda kind: bool(pa.types.is_integer(kind)),
    **dict.fromkeys((C.INTERACTED_AT, C.RECOMMENDED_AT), lambda kind: _is_day(kind) or bool(pa.types.is_integer(kind))),
    C.CATEGORIES: lambda kind: is_text(kind) or (is_list(kind) and is_text(kind.value_type)),
    C.VECTOR: lambda kind: is_list(kind) and is_number(kind.value_type),
    C.PUBLISHED_AT: _is_day,
    **dict.fromkeys((C.TITLE, C.NAME), is_text),
}


class Guess(NamedTuple):
    """The column of a table that is taken for a canonical one."""

    column: str
    by: str  # why


@dataclass
class GuessedInput:
    """One input, as it was guessed."""

    name: str  # as in the config
    table: TableSample
    columns: dict[str, Guess]  # by canonical column
    day: Guess | None  # column with the evaluation date
    missing: tuple[str, ...]  # canonical columns that the input needs and that were not found
    nested: Nested | None  # arrays of items and scores, where a row is a whole list
    gains: Gains | None  # how a column of events becomes gains
    unknown_events: tuple[str, ...]  # events whose gain no word in their name says
    as_text: tuple[str, ...] = ()  # ids that are whole numbers here and text in another input

    def sampled_values(self, canonical: str) -> pa.ChunkedArray | None:
        """Return the sampled values of a canonical column; nested items are flattened."""
        rows = self.table.rows
        if self.nested is not None and canonical == C.ITEM_ID:
            name, field = column_and_field(self.nested.items, rows.column_names)
            elements = pc.list_flatten(rows[name])
            return elements if field is None else pc.struct_field(elements, field)
        return rows[self.columns[canonical].column] if canonical in self.columns else None

    @property
    def newest_date(self) -> str | None:
        if self.day is None:
            return self.table.path_date
        return max(self.table.partitions.get(self.day.column) or distinct_texts(self.table.rows[self.day.column]))

    @property
    def unread(self) -> list[str]:
        """Columns of the table that no guess uses."""
        names = self.table.rows.column_names
        paths = [path for shape in (self.nested, self.gains) if shape for path in shape.renames.values()]
        used = {column_and_field(path, names)[0] for path in paths}
        used |= {guess.column for guess in (*self.columns.values(), self.day) if guess is not None}
        return [name for name in names if name not in used]

    def list_keys(self, *names: str) -> list[str]:
        """Return the columns of the table that are guessed for canonical columns, and that of the evaluation date."""
        guesses = [*(self.columns.get(name) for name in names), self.day]
        return list(dict.fromkeys(guess.column for guess in guesses if guess is not None))


@dataclass(frozen=True)
class Guesses:
    """Guesses about all inputs, from which a config is written."""

    inputs: Mapping[str, GuessedInput]
    data: Data  # what the columns, the models and the segments say
    window_column: str | None  # column of the judgements that filters keep to the days of the window
    has_events_of_all_days: bool  # each date has its own lists and reads all events: no column of them is filtered

    @property
    def newest_date(self) -> str | None:
        return self.inputs["recommendations"].newest_date

    def look_at_rows(self, config: EvaluationConfig) -> list[Advised]:
        """Advise on the rows of the newest date, of some users where there are many.

        Raises RankevalError, ForSparkError or an error of Arrow where they cannot be read as the config says.
        """
        day = date.fromisoformat(self.newest_date or "2000-01-01")
        request = to_profile(request_of(config, day), config.segment_names())
        if large := [one.table.path for one in self.inputs.values() if one.table.is_large_text]:
            raise ForSparkError(large[0], "much text")
        opened, errors = look_at_inputs(config, request, day)
        raise_together(errors)
        if len(opened) < len(self.inputs):
            unread = ", ".join({*self.inputs} - {one.name for one in opened})
            raise ForSparkError(unread, "a table that only Spark reads")
        samples = {name: one.table for name, one in self.inputs.items()}
        opened = [replace(one, table=samples[one.name].table) if samples[one.name].is_part else one for one in opened]
        is_whole = sum(one.n_rows for one in opened) <= MAX_ROWS
        if not is_whole:
            users = next(one for one in opened if one.name == "recommendations").first_users(SAMPLE_ROWS, MAX_USERS)
            opened = [one.of_users(users) for one in opened]
        host = InProcess(Usable(read_tables(opened, sample_share=1), request, pa.cpu_count()))

        def adapt(data: Data) -> Data:
            counts = {key: fact for key, fact in data.counts.items() if is_whole or key[1] not in _OF_ALL_USERS}
            return replace(data, counts=counts, **{name: getattr(self.data, name) for name in _OF_SAMPLES})

        return look_at(host, gain_column=self.data.gain_column, has_date=self.data.has_date, adapt=adapt)


def guess_config(tables: Mapping[str, TableSample]) -> Guesses:
    """Guess what tables hold; ``recommendations`` and ``held_out`` are among them."""
    inputs = {name: _guess_input(name, tables) for name in INPUTS if name in tables}
    log, judged = inputs["recommendations"], inputs["held_out"]
    if not _shares_lists(log, judged):
        judged.columns.pop(C.LIST_ID, None)
    for name in (C.USER_ID, C.ITEM_ID):
        kinds = {key: values.type for key, each in inputs.items() if (values := each.sampled_values(name)) is not None}
        numbers = [
            key for key, kind in kinds.items() if inputs[key].table.format in {"delta", "parquet"} and _is_whole(kind)
        ]
        if len(numbers) < len(kinds):
            for key in numbers:
                inputs[key].as_text += (name,)
    values = inputs.get("user_values")
    has_names = values is not None and C.NAME in values.columns
    data = Data(
        columns={name: frozenset(one.columns) for name, one in inputs.items()},
        models=log.table.distinct(log.columns[C.MODEL_ID].column) if C.MODEL_ID in log.columns else (),
        segments=_count_segments(inputs["segments"]) if "segments" in inputs else {},
        value_names=values.table.distinct(values.columns[C.NAME].column) if values is not None and has_names else (),
        gain_column=judged.columns[C.GAIN].column if C.GAIN in judged.columns else "",
        has_date=log.newest_date is not None,
    )
    window_column, has_events_of_all_days = None, False
    if data.has_times_of_both and data.has_date:
        time = judged.day or judged.columns[C.INTERACTED_AT]
        if judged.day is not None or _is_day(judged.table.rows[time.column].type):
            window_column = time.column
        else:
            has_events_of_all_days = judged.table.path_date is None
    return Guesses(inputs, data, window_column, has_events_of_all_days)


def _guess_input(name: str, tables: Mapping[str, TableSample]) -> GuessedInput:
    """Guess the columns, the date and the shape of one input."""
    table, day = tables[name], _guess_date_column(tables["recommendations"])
    is_log = name == "recommendations"
    if not is_log:
        day = _guess_date_column(table, like=day.column if day else "")
    nested = _guess_nested(table) if is_log else None
    in_arrays = () if nested is None else (C.ITEM_ID, C.SCORE, C.RANK)
    wanted = [column for column in input_schemas()[name].field_names() if column not in in_arrays]
    columns = _guess_columns(table, wanted, "" if day is None else day.column)
    needed = [column for column in required_columns(input_schemas()[name]) if column not in in_arrays]
    needed += [C.SCORE] if is_log and nested is None and C.RANK not in columns else []
    missing = tuple(column for column in needed if column not in columns)
    gains, unknown = _guess_gains(table) if name == "held_out" and C.GAIN not in columns else (None, ())
    guessed = GuessedInput(name, table, columns, day, missing, nested, gains, unknown)
    if is_log and nested is None and _has_list_times(guessed):
        columns[C.LIST_ID] = Guess(columns[C.RECOMMENDED_AT].column, "times that many items of a user share")
    return guessed


def _guess_columns(table: TableSample, wanted: list[str], day: str) -> dict[str, Guess]:
    """Guess the columns of an input, by canonical column; those without a likely column are left out."""
    kinds = {column.name: column.type for column in table.rows.schema if column.name != day}
    guesses: dict[str, Guess] = {}

    def only_column(name: str, columns: Collection[str]) -> list[str]:
        if name == C.SCORE:  # whole numbers may be anything, and ranks order the lists without a score
            columns = [column for column in columns if pa.types.is_floating(kinds[column]) and C.RANK not in guesses]
        is_needed = name in (C.USER_ID, C.ITEM_ID, C.SCORE)
        return list(columns) if is_needed and len(columns) == 1 else []

    for by, find in (
        ("its name", columns_by_name),
        ("a part of its name", columns_by_part),
        ("its type: no other column is left", only_column),
    ):
        for name in wanted:
            used = {guess.column for guess in guesses.values()}
            fitting = [column for column, kind in kinds.items() if column not in used and _TYPES[name](kind)]
            if name not in guesses and (likely := find(name, fitting)):
                guesses[name] = Guess(likely[0], by)
    return {name: guesses[name] for name in wanted if name in guesses}


def _guess_date_column(table: TableSample, *, like: str | None = None) -> Guess | None:
    """Guess which column holds the evaluation date: a partition, or one by name whose values are dates.

    With ``like``, only a partition or a column of this name: in other inputs, a date may be that of an interaction.
    """
    for name, values in table.partitions.items():
        if values and all(map(ISO_DATE.fullmatch, values)):
            return Guess(name, "the partitions of the table")
    for column in table.rows.column_names:
        if (column == like or (like is None and plain_name(column) in _DATE_NAMES)) and _has_dates(table, column):
            return Guess(column, "its name and values")
    return None


def _has_dates(table: TableSample, column: str) -> bool:
    """Return True if a column has values, all of them written as the evaluation date is."""
    values = [str(value) for value in table.rows[column].slice(0, 100).to_pylist() if value is not None]
    return bool(values) and all(map(ISO_DATE.fullmatch, values))


def _guess_nested(table: TableSample) -> Nested | None:
    """Guess which columns hold the lists of a log with a row per list; None where a row is an item."""
    kinds = {column.name: column.type for column in table.rows.schema}
    if any(is_item_name(name) and _is_id(kind) for name, kind in kinds.items()):
        return None
    elements = {name: kind.value_type for name, kind in kinds.items() if is_list(kind)}
    structs = [
        {f"{name}.{field.name}": field.type for field in kind}
        for name, kind in elements.items()
        if pa.types.is_struct(kind)
    ]
    for arrays in (*structs, elements):
        items = _likeliest_array(arrays, _is_id, is_item_name)
        if items is not None:
            others = {path: kind for path, kind in arrays.items() if path != items}
            return Nested(items=items, scores=_likeliest_array(others, is_number, is_score_name))
    return None


def _likeliest_array(
    arrays: Mapping[str, pa.DataType],  # type of the elements, by path such as ``recommendations.item_id``
    is_type: Callable[[pa.DataType], bool],
    is_name: Callable[[str], bool],
) -> str | None:
    """Return the first array of a type with a fitting name, singular or plural; else the only one of the type."""
    fitting = [path for path, kind in arrays.items() if is_type(kind)]
    for path in fitting:
        name = path.rpartition(".")[2]
        if is_name(name) or is_name(name.rstrip("s")):
            return path
    return fitting[0] if len(fitting) == 1 else None


def _guess_gains(table: TableSample) -> tuple[Gains | None, tuple[str, ...]]:
    """Guess the gains of a column of events, and list the events that no known word is in, whose gain is 1.

    None without a column of events, or where all would be worth the same.
    """
    texts = [column.name for column in table.rows.schema if is_text(column.type) or pa.types.is_dictionary(column.type)]
    columns = [name for name in texts if plain_name(name) in _EVENT_NAMES]
    if not columns:
        return None, ()
    column = min(columns, key=lambda name: _EVENT_NAMES.index(plain_name(name)))
    guessed = {event: _guess_gain(event) for event in table.distinct(column)}
    gains = {event: 1 if gain is None else gain for event, gain in guessed.items()}
    if len(gains) > MAX_EVENTS or len(set(gains.values())) < 2:  # noqa: PLR2004 - a single gain says nothing
        return None, ()
    best_first = dict(sorted(gains.items(), key=lambda pair: (-pair[1], pair[0])))
    return Gains(column=column, values=best_first), tuple(event for event, gain in guessed.items() if gain is None)


def _guess_gain(event: str) -> int | None:
    """Guess the gain of an event by the words in its name; None without a known one."""
    words = re.sub("([a-z0-9])([A-Z])", r"\1 \2", event)  # `removeFromCart` as `remove_from_cart`
    if _TAKES_BACK.search(re.sub("[^a-z0-9]+", " ", words.lower())):
        return 0
    return next((gain for gain, known in _WORDS_OF_GAIN if any(word in plain_name(event) for word in known)), None)


def _shares_lists(log: GuessedInput, judged: GuessedInput) -> bool:
    """Return True if the lists of judgements have the column name of the log's and a value in common with them.

    A column ``list_id`` is read in any case.
    """
    judged_lists, lists = judged.columns.get(C.LIST_ID), log.columns.get(C.LIST_ID)
    if judged_lists is None or judged_lists.column == C.LIST_ID:
        return True
    if lists is None or plain_name(judged_lists.column) != plain_name(lists.column):
        return False
    return not {*judged.table.distinct(judged_lists.column)}.isdisjoint(log.table.distinct(lists.column))


def _has_list_times(log: GuessedInput) -> bool:
    """Return True if a log without ids of lists has several times of a user and day, each with several items."""
    if C.LIST_ID in log.columns or C.RECOMMENDED_AT not in log.columns or C.USER_ID not in log.columns:
        return False
    time = log.columns[C.RECOMMENDED_AT].column
    keys = [name for name in log.list_keys(C.MODEL_ID, C.USER_ID) if name != time]
    rows = log.table.read_users([*keys, time], log.columns[C.USER_ID].column)
    lists = rows.group_by([*keys, time]).aggregate([([], "count_all")])
    return len(lists) > len(lists.group_by(keys).aggregate([])) and len(lists) * 2 <= rows.num_rows


def _count_segments(segments: GuessedInput) -> dict[str, tuple[int, bool]]:
    """Count the values of the columns that can be segments, and say whether they are numbers."""
    found = {}
    for name in segments.unread:
        values = segments.table.rows[name]
        kind = values.type
        if is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind):
            found[name] = (pc.count_distinct(values).as_py(), bool(is_number(kind)))
    return found


def config_text(guesses: Guesses, rows: Sequence[Advised], config: Path, *, results: str) -> str:
    """Write a config with the advice on its tables, for a file from whose folder its paths start."""
    lines = [
        f"# yaml-language-server: $schema=./{SCHEMA}",
        "#",
        "# Written by rankeval init, which looked at the tables: check what it guessed. Paths start from this folder.",
        "# Every key there is, with its meaning: rankeval init OTHER.yaml, without tables.",
        f"evaluation: {_quoted(re.sub('[^A-Za-z0-9_.-]', '_', config.stem).lstrip('._-') or 'nightly')}",
        *("", "inputs:"),
        *(line for each in guesses.inputs.values() for line in _input_lines(each, guesses, rows, config)),
        *("", *_model_lines(guesses, rows)),
    ]
    if policies := [row for row in rows if row.kind == "policy"]:
        lines += ["", "policies:"]
        lines += [_commented(f"  {row.key.partition('.')[2]}: {row.value}", row.reason) for row in policies]
    lines += ["", _commented("measures:", "rankeval measures lists the others")]
    lines += [_commented(f"  - {_quoted(row.value)}", row.reason) for row in rows if row.kind == "measure"]
    cutoffs = [row for row in rows if row.kind == "cutoff"]
    reached = f"cutoffs: [{', '.join(str(row.value) for row in cutoffs)}]"
    lines += [_commented(reached, cutoffs[-1].reason), *_slice_lines(guesses, rows), "", *_gate_lines(guesses, rows)]
    lines += ["results:", f"  root: {_relative_path(results, config)}"]
    lines += [_commented("  lists: true", "so that rankeval score can add measures later")]
    return "".join(f"{line}\n" for line in lines)


def _gate_lines(guesses: Guesses, rows: Sequence[Advised]) -> list[str]:
    """Return an example of gates, where measures of items are among the advised ones.

    Weighted means are not compared with those of the night before.
    """
    names, k = {row.value for row in rows if row.kind == "measure"}, cutoffs_of(rows)[-1]
    has_more = bool(names & {*ITEM_MEASURES}) or any(name.startswith("UserValue") for name in names)
    if "user_weights" in guesses.inputs or not has_more:
        return []
    # A rule about the night before, which holds on the first night, and others to be chosen.
    gain = _commented(f"  # - {{measure: nDCG@{k}, least_gain: 0}}", "better than the baseline")
    return [
        _commented("gates:", "rules for shipping a model: exit code 6 where one is not met"),
        _commented(
            f"  - {{measure: nDCG@{k}, against: previous, margin: 0.02}}",
            "at most so much below the night before: yours to choose",
        ),
        *([gain] if any(row.key == "comparisons.baseline" for row in rows) else []),
        _commented(f"  # - {{measure: ItemCoverage@{k}, at_least: 0.1}}", "of the items are recommended to someone"),
        "",
    ]


def cutoffs_of(rows: Iterable[Advised]) -> list[int]:
    """Return the advised cutoffs."""
    return [row.value for row in rows if row.kind == "cutoff"]


def _input_lines(guessed: GuessedInput, guesses: Guesses, rows: Sequence[Advised], config: Path) -> Iterator[str]:
    """Yield the section of one input."""
    table, unread = guessed.table, guessed.unread
    advised = {row.key.rpartition(".")[2]: row for row in rows if row.key.startswith(f"inputs.{guessed.name}.")}
    yield from (f"  {guessed.name}:", f"    format: {table.format}", f"    path: {_relative_path(table.path, config)}")
    yield "    columns:"
    for name, guess in guessed.columns.items():
        if name == C.GAIN and "gains" in advised:
            continue
        yield _commented(f"      {name}: {_quoted(guess.column)}", f"guessed by {guess.by}")
        if name == C.GAIN and plain_name(guess.column) in RATING_NAMES:
            yield f"      # A rating of 1 or more is relevant. From 4 on: gains: {{column: {guess.column}, edges: [4]}}"
            yield "      # in place of the line above, as a key next to columns."
    for name in guessed.missing:
        yield _commented(f"      {name}: {name}", f"NOT FOUND, write one of: {', '.join(unread) or 'none left'}")
    if guessed.nested is not None:
        yield _commented("    nested:", "a row is a whole list, guessed by the types")
        yield f"      items: {_quoted(guessed.nested.items)}"
        if guessed.nested.scores is not None:
            yield f"      scores: {_quoted(guessed.nested.scores)}"
    yield from _gain_lines(guessed, advised.get("gains"), advised.get("sampled_candidates"))
    if guessed.as_text:
        types = ", ".join(f"{name}: string" for name in guessed.as_text)
        yield _commented(f"    types: {{{types}}}", "numbers here, text in another input")
    if guessed.name == "held_out" and guesses.window_column is not None:
        yield _commented("    filters:", "the days of the attribution window")
        conditions = _window_conditions(guesses.window_column, of_days=guessed.day is not None)
        yield from (f"      - {condition}" for condition in conditions)
    elif guessed.day is not None:
        condition = f'{{column: {_quoted(guessed.day.column)}, op: "=", value: "{DATE_PLACEHOLDER}"}}'
        yield f"    filters: [{condition}]  # guessed by {guessed.day.by}"
    yield from _notation_lines(guessed)
    others = [f"{name}, with dates" if _has_dates(table, name) else name for name in unread]
    if others and guessed.name != "segments":
        yield f"    # not read: {_one_line(', '.join(others))}"
    if guessed.name == "held_out" and guesses.has_events_of_all_days:
        yield from _unfiltered_lines(guessed.columns[C.INTERACTED_AT].column, guesses)


def _gain_lines(guessed: GuessedInput, advised: Advised | None, candidates: Advised | None) -> Iterator[str]:
    """Yield how events become gains, by the words in their names, or numbers, as is advised; and drawn candidates."""
    if guessed.gains is not None:
        yield _commented("    gains:", "guessed by the names of the events: what is each worth?")
        yield f"      column: {_quoted(guessed.gains.column)}"
        gains = ", ".join(f"{_quoted(event)}: {gain:g}" for event, gain in guessed.gains.values.items())
        line, unknown = f"      values: {{{gains}}}", ", ".join(guessed.unknown_events)
        yield _commented(line, f"unknown, so 1: {unknown}") if unknown else line
    if advised is not None:
        yield _commented("    gains:", advised.reason)
        yield from (f"      column: {_quoted(advised.value['column'])}", f"      edges: {advised.value['edges']}")
    if candidates is not None:
        yield _commented(f"    sampled_candidates: {candidates.value}", candidates.reason)


def _unfiltered_lines(time: str, guesses: Guesses) -> Iterator[str]:
    """Yield the comment that says which filters are missing, and the column to add for them."""
    shown = _one_line(time)
    yield f"    # NOT FILTERED: {shown} cannot be compared with a date, so each date reads the events of all days,"
    yield "    # and users with events and no list of that date score 0. Add a column with the day of the event to the"
    yield from ("    # table, and these filters:", "    # filters:")
    day = guesses.inputs["recommendations"].day
    for condition in _window_conditions(day.column if day else "day", of_days=True):
        yield f"    #   - {_one_line(condition)}"


def _notation_lines(guessed: GuessedInput) -> Iterator[str]:
    """Yield how ranks, categories and cells are written, where that is not as usual."""
    ranks, categories = guessed.sampled_values(C.RANK), guessed.sampled_values(C.CATEGORIES)
    if ranks is not None and pc.min(ranks).as_py() == 0:
        yield _commented("    ranks_from: 0", "the first rank of the sample is 0")
    if categories is not None and is_text(categories.type):  # else they are lists
        texts = [text for text in categories.to_pylist() if text]
        if not texts or not all(text.startswith("[") for text in texts):  # as those of JSON
            separator = max("|;,", key=lambda sign: sum(sign in text for text in texts))
            yield _commented(f"    list_separator: {json.dumps(separator)}", "guessed by the categories")
    if guessed.table.separator not in ("", ","):
        yield f"    options: {{sep: {json.dumps(guessed.table.separator)}}}"


def _window_conditions(column: str, *, of_days: bool) -> Iterator[str]:
    """Yield the two conditions for the days of the window, on a column of days or times."""
    # The window of the last list ends on the last day, so times end at the midnight after it.
    op, days = ("<=", WINDOW_DAYS) if of_days else ("<", WINDOW_DAYS + 1)
    yield f'{{column: {_quoted(column)}, op: ">=", value: "{DATE_PLACEHOLDER}"}}'
    yield f'{{column: {_quoted(column)}, op: "{op}", value: "{{date+{days}}}"}}'


def _model_lines(guesses: Guesses, rows: Sequence[Advised]) -> Iterator[str]:
    """Yield the models as a comment, and what is compared."""
    if C.MODEL_ID not in guesses.inputs["recommendations"].columns:
        yield "# The log has no column of models: all of its lists are those of one, 'model'."
        return
    models = _one_line(", ".join(map(_quoted, guesses.data.models[:10])))
    yield f"# models: [{models}]  # seen; without this key, those in the log"
    compared = {row.key.partition(".")[2]: row for row in rows if row.kind == "comparison"}
    primary = compared.pop("primary", None)
    if not compared:
        baseline = _one_line(_quoted(next(iter(guesses.data.models), "popular")))
        yield "# comparisons:"
        yield _commented(f"#   baseline: {baseline}", "the model that others are compared with")
    else:
        yield "comparisons:"
    for name, row in compared.items():
        value = row.value if isinstance(row.value, str) else ""
        shares = ", ".join(f"{_quoted(model)}: {share}" for model, share in ({} if value else row.value).items())
        yield _commented(f"  {name}: {_quoted(value) if value else f'{{{shares}}}'}", row.reason)
    first = f"nDCG@{cutoffs_of(rows)[-1]}" if primary is None else primary.value[0]
    yield _commented(f"  # primary: [{first}]", "what decides; by default the first")


def _slice_lines(guesses: Guesses, rows: Sequence[Advised]) -> Iterator[str]:
    """Yield the slices and bands, and the other columns of segments as a comment."""
    if "segments" not in guesses.inputs:
        return
    yield ""
    slices = [row for row in rows if row.key == "slices"]
    if slices:
        yield "slices:"
        yield from (_commented(f"  - {_quoted(row.value)}", row.reason) for row in slices)
    left = [name for name in guesses.inputs["segments"].unread if name not in [row.value for row in slices]]
    if left:
        yield f"# other columns of segments: {_one_line(', '.join(left))}"
    bands = [row for row in rows if row.key.startswith("slicing.bands.")]
    if bands:
        yield from ("slicing:", "  bands:")
    for row in bands:
        name = _quoted(row.key.removeprefix("slicing.bands."))
        yield _commented(f"    {name}: {{quantiles: {row.value['quantiles']}}}", row.reason)


def _commented(text: str, comment: str) -> str:
    return f"{text:<{_COMMENT_COLUMN}} # {_one_line(comment)}"


def _one_line(text: str) -> str:
    """Keep a name with line ends within its comment."""
    return text if text.isprintable() else json.dumps(text)


def _relative_path(path: str, config: Path) -> str:
    """Write a path so that it starts from the folder of the config."""
    expanded = os.path.expanduser(path)
    return _quoted(expanded if scheme_of(path) or os.path.isabs(expanded) else os.path.relpath(expanded, config.parent))


def _quoted(text: str) -> str:
    """Quote text for YAML, unless it is read as text without quotes too."""
    is_word = text.lower() in {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
    if re.fullmatch(r"(\.\./|/)?[A-Za-z_][A-Za-z0-9_./-]*", text) and not is_word:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
