"""A first config, guessed from tables: columns, dates, types of ids and segments, each with a comment that says why."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.apps.sampled_tables import ISO_DATE, texts_of
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
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_list, is_number, is_text
from rankeval_spark.inputs.input_columns import (
    columns_by_name,
    columns_by_part,
    input_schemas,
    is_item_name,
    is_score_name,
    plain_name,
)
from rankeval_spark.measures import MeasureSet

if TYPE_CHECKING:
    from rankeval_spark.apps.sampled_tables import TableSample

INPUTS: Final[Mapping[str, type[InputConfig]]] = {  # in the order of the config
    "recommendations": RecommendationsInput,
    "held_out": HeldOutInput,
    "segments": SegmentsInput,
    "train": TrainInput,
    "items": ItemsInput,
}
CUTOFFS: Final = (5, 10, 20)
WINDOW_DAYS: Final = 7  # of the attribution window
MAX_EVENTS: Final = 20  # kinds of events up to which a column of text is taken for one of events
MAX_SEGMENTS: Final = 5
MAX_VALUES: Final = 50  # of a segment in the sample; more texts name single users rather than groups
_FEW_NUMBERS: Final = 10  # in the sample, up to which each is a value of its own, not a band
_COMMENTS_FROM: Final = 44  # column of the comments

_BASELINES: Final = ("popular", "popularity", "mostpopular", "mostpop", "toppop", "pop", "baseline", "random")
_DAYS: Final = ("evaluationdate", "date", "dt", "ds", "day", "rundate", "snapshotdate")  # names of evaluation dates
_EVENTS: Final = (  # names of a column with kinds of events, the likeliest first
    *("event", "eventtype", "eventname", "action", "actiontype", "interaction", "interactiontype", "behavior"),
    *("behaviour", "activity", "type"),
)
_AGAINST: Final = re.compile(
    r"skip|hid(?:e|den)|dis ?like|dismiss|impression|remove|delete|cancel|refund|\bundo|return(?!ing| to | visit)"
    r"|(?:\bun |un)(?:like|follow|subscri|sav|share|favou?rit|bookmark)"
)
"""Words in the name of an event by which a user takes something back or does not want it: gain 0.

They come before the other words, because `dislike`, `remove from cart` and `cancel order` have one of those too."""
_GAINS: Final = (
    (3, ("purchase", "buy", "bought", "order", "transaction", "conversion", "checkout", "subscribe")),
    (2, ("cart", "wishlist", "favorite", "favourite", "like", "share", "save", "follow", "download", "bookmark")),
    (0, ("report",)),
    (1, ("view", "click", "watch", "play", "listen", "read", "open", "visit")),
)
"""Gains, and words in the name of an event of that gain. `report` comes late: who downloads a report wants it."""
_OF_FACTS: Final = {
    "ItemCoverage": "coverage: the share of the items that are recommended",
    "MIUF": "novelty: few users have the items in the training data",
    "ARP": "popularity of the items in the training data",
    "ILD(sim='jaccard')": "diversity of a list by the categories",
    "ILD": "diversity of a list by the vectors",
    "Calibration": "distance of the categories from those of the user's history",
    "Freshness": "age of the items",
}
"""Measures of items, with what they say, the most wanted first."""


def is_id(kind: pa.DataType) -> bool:
    """Return True if ids can be of a type."""
    is_whole = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    return bool(is_text(kind) or is_whole or pa.types.is_dictionary(kind) or is_binary(kind))


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


_TYPES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    **dict.fromkeys((C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID), is_id),
    **dict.fromkeys((C.SCORE, C.GAIN, C.VALUE, C.PREDICTED_REWARD, C.PROPENSITY, C.WEIGHT), is_number),
    C.RANK: lambda kind: bool(pa.types.is_integer(kind)),
    **dict.fromkeys((C.INTERACTED_AT, C.RECOMMENDED_AT), lambda kind: _is_day(kind) or bool(pa.types.is_integer(kind))),
    C.CATEGORIES: lambda kind: is_text(kind) or (is_list(kind) and is_text(kind.value_type)),
    C.VECTOR: lambda kind: is_list(kind) and is_number(kind.value_type),
    C.PUBLISHED_AT: _is_day,
}


class Guess(NamedTuple):
    """The column of a table that is taken for a canonical one."""

    column: str
    by: str  # why


@dataclass
class GuessedInput:
    """One input, as it was guessed."""

    name: str  # as in the config
    table: TableSample  # what was looked at
    columns: dict[str, Guess]  # column of the table by canonical column
    day: Guess | None  # column with the evaluation date
    missing: tuple[str, ...]  # canonical columns that the input needs and that were not found
    nested: Nested | None  # arrays of items and scores, where a row is a whole list
    gains: Gains | None  # how a column of events becomes gains
    unknown_events: tuple[str, ...]  # events whose gain no word in their name says
    as_text: tuple[str, ...] = ()  # ids that are whole numbers here and text in another input

    def values_of(self, canonical: str) -> pa.ChunkedArray | None:
        """Return the sampled values of a canonical column; nested items are flattened."""
        rows = self.table.rows
        if self.nested is not None and canonical == C.ITEM_ID:
            name, field = column_and_field(self.nested.items, rows.column_names)
            elements = pc.list_flatten(rows[name])
            return elements if field is None else pc.struct_field(elements, field)
        return rows[self.columns[canonical].column] if canonical in self.columns else None

    @property
    def newest_date(self) -> str | None:
        """Newest date that was seen."""
        if self.day is None:
            return self.table.path_date
        return max(self.table.partitions.get(self.day.column) or texts_of(self.table.rows[self.day.column]))

    @property
    def unread(self) -> list[str]:
        """Columns of the table that no guess uses."""
        names = self.table.rows.column_names
        paths = [path for shape in (self.nested, self.gains) if shape for path in shape.renames.values()]
        used = {column_and_field(path, names)[0] for path in paths}
        used |= {guess.column for guess in (*self.columns.values(), self.day) if guess is not None}
        return [name for name in names if name not in used]


@dataclass(frozen=True)
class Guesses:
    """Guesses about all inputs, from which a config is written."""

    inputs: Mapping[str, GuessedInput]
    slices: list[str]  # segments with few values, and those of numbers
    bands: list[str]  # those of numbers
    models: list[str]  # that were seen
    baseline: str | None  # model that others are probably compared with, by its name
    cutoffs: tuple[int, ...]  # usual ones, up to the longest list of the sample
    newest_date: str | None  # of the recommendations
    is_attributed: bool  # lists and interactions have times, so that an interaction belongs to the list before it
    window_column: str | None  # column of the judgements that filters keep to the days of the window
    has_events_of_all_days: bool  # each date has its own lists and reads all events: no column of them is filtered


def guess_config(tables: Mapping[str, TableSample]) -> Guesses:
    """Guess what tables hold; ``recommendations`` and ``held_out`` are among them."""
    inputs = {name: _guess_input(name, tables) for name in INPUTS if name in tables}
    log, judged = inputs["recommendations"], inputs["held_out"]
    _keep_list_id_if_shared(log, judged)
    for name in (C.USER_ID, C.ITEM_ID):
        kinds = {key: values.type for key, each in inputs.items() if (values := each.values_of(name)) is not None}
        numbers = [
            key
            for key, kind in kinds.items()
            if inputs[key].table.format in {"delta", "parquet"}
            and (pa.types.is_integer(kind) or pa.types.is_decimal(kind))
        ]
        if len(numbers) < len(kinds):
            for key in numbers:
                inputs[key].as_text += (name,)
    plain, numeric = _guess_segments(inputs["segments"]) if "segments" in inputs else ([], [])
    slices = [*plain, *numeric][:MAX_SEGMENTS]
    models = log.table.distinct(log.columns[C.MODEL_ID].column) if C.MODEL_ID in log.columns else []
    names = {name: "".join(filter(str.isalnum, name.lower())) for name in models}
    likely = sorted((name for name in models if names[name] in _BASELINES), key=lambda n: _BASELINES.index(names[n]))
    # Lists that are named need no times.
    has_times = C.INTERACTED_AT in judged.columns and C.LIST_ID not in judged.columns
    is_attributed = has_times and C.RECOMMENDED_AT in log.columns
    is_of_days = is_attributed and log.newest_date is not None
    time = Guess("", "") if not is_of_days else judged.day or judged.columns[C.INTERACTED_AT]
    is_filtered = is_of_days and (judged.day is not None or _is_day(judged.table.rows[time.column].type))
    return Guesses(
        inputs,
        slices,
        bands=[name for name in slices if name in numeric],
        models=models,
        baseline=likely[0] if likely and len(models) > 1 else None,
        cutoffs=_guess_cutoffs(log),
        newest_date=log.newest_date,
        is_attributed=is_attributed,
        window_column=time.column if is_filtered else None,
        has_events_of_all_days=is_of_days and not is_filtered and judged.table.path_date is None,
    )


def _guess_input(name: str, tables: Mapping[str, TableSample]) -> GuessedInput:
    table, of_log = tables[name], _guess_day(tables["recommendations"])
    is_log = name == "recommendations"
    day = of_log if is_log else _guess_day(table, like=of_log.column if of_log else "")
    nested = _guess_nested(table) if is_log else None
    in_arrays = () if nested is None else (C.ITEM_ID, C.SCORE, C.RANK)
    wanted = [column for column in input_schemas()[name].field_names() if column not in in_arrays]
    columns = _guess_columns(table, wanted, "" if day is None else day.column)
    needed = [column for column in INPUTS[name].id_columns if column not in in_arrays]
    needed += [C.SCORE] if is_log and nested is None and C.RANK not in columns else []
    missing = tuple(column for column in needed if column not in columns)
    if is_log and nested is None and _has_list_times(table, columns, day):
        columns[C.LIST_ID] = Guess(columns[C.RECOMMENDED_AT].column, "times that many items of a user share")
    gains, unknown = _guess_gains(table) if name == "held_out" and C.GAIN not in columns else (None, ())
    return GuessedInput(name, table, columns, day, missing, nested, gains, unknown)


def _guess_columns(table: TableSample, wanted: list[str], day: str) -> dict[str, Guess]:
    """Guess the columns of an input, by canonical column; those without a likely column are left out."""
    kinds = {column.name: column.type for column in table.rows.schema if column.name != day}
    found: dict[str, Guess] = {}
    for by in ("its name", "a part of its name", "its type: no other column is left"):
        for name in (each for each in wanted if each not in found):
            used = {guess.column for guess in found.values()}
            likely = [column for column, kind in kinds.items() if column not in used and _TYPES[name](kind)]
            if by == "its name":
                likely = columns_by_name(name, likely)
            elif by == "a part of its name":
                likely = columns_by_part(name, likely)
            else:  # only ids, and scores without ranks, are needed: the only column of their type
                if name == C.SCORE:
                    likely = [
                        column for column in likely if pa.types.is_floating(kinds[column]) and C.RANK not in found
                    ]
                likely = likely if name in (C.USER_ID, C.ITEM_ID, C.SCORE) and len(likely) == 1 else []
            if likely:
                found[name] = Guess(likely[0], by)
    return {name: found[name] for name in wanted if name in found}


def _guess_day(table: TableSample, *, like: str | None = None) -> Guess | None:
    """Guess which column holds the evaluation date: a partition, or one by name whose values are dates.

    With ``like``, only a partition or a column of this name: in other inputs, a date may be that of an interaction.
    """
    for name, values in table.partitions.items():
        if values and all(map(ISO_DATE.fullmatch, values)):
            return Guess(name, "the partitions of the table")
    for column in table.rows.column_names:
        if (column == like or (like is None and plain_name(column) in _DAYS)) and _has_dates(table, column):
            return Guess(column, "its name and values")
    return None


def _has_dates(table: TableSample, column: str) -> bool:
    """Return True if a column has values, all of them written as the evaluation date is."""
    values = [str(value) for value in table.rows[column].slice(0, 100).to_pylist() if value is not None]
    return bool(values) and all(map(ISO_DATE.fullmatch, values))


def _guess_nested(table: TableSample) -> Nested | None:
    """Guess which columns hold the lists of a log with a row per list; None where a row is an item."""

    def likeliest(is_type: Callable[[pa.DataType], bool], is_name: Callable[[str], bool]) -> str | None:
        """Choose the first column of a type by its name, singular or plural; else the only one of the type."""
        likely = [name for name, kind in place.items() if is_type(kind)]
        fields = {name: name.rpartition(".")[2] for name in likely}
        named = [name for name in likely if is_name(fields[name]) or is_name(fields[name].rstrip("s"))]
        return next(iter(named or (likely if len(likely) == 1 else [])), None)

    kinds = {column.name: column.type for column in table.rows.schema}
    if any(is_item_name(name) and is_id(kind) for name, kind in kinds.items()):
        return None
    lists = {name: kind.value_type for name, kind in kinds.items() if is_list(kind)}
    structs = [(name, kind) for name, kind in lists.items() if pa.types.is_struct(kind)]
    for place in [*({f"{name}.{member.name}": member.type for member in kind} for name, kind in structs), lists]:
        items = likeliest(is_id, is_item_name)
        if items is not None:
            del place[items]
            return Nested(items=items, scores=likeliest(is_number, is_score_name))
    return None


def _guess_gains(table: TableSample) -> tuple[Gains | None, tuple[str, ...]]:
    """Guess the gains of a column of events, and list the events that no known word is in, whose gain is 1.

    None without a column of events, or where all would be worth the same.
    """
    texts = [column.name for column in table.rows.schema if is_text(column.type) or pa.types.is_dictionary(column.type)]
    named = [name for name in texts if plain_name(name) in _EVENTS]
    if not named:
        return None, ()
    column = min(named, key=lambda name: _EVENTS.index(plain_name(name)))
    gains: dict[str, int] = {}
    unknown = []
    for event in table.distinct(column):
        apart = re.sub("([a-z0-9])([A-Z])", r"\1 \2", event)  # `removeFromCart` as `remove_from_cart`
        words = [gain for gain, known in _GAINS if any(word in plain_name(event) for word in known)]
        if _AGAINST.search(re.sub("[^a-z0-9]+", " ", apart.lower())):
            words = [0]
        unknown += [] if words else [event]
        gains[event] = words[0] if words else 1
    if len(gains) > MAX_EVENTS or len(set(gains.values())) < 2:  # noqa: PLR2004 - a single gain says nothing
        return None, ()
    best_first = dict(sorted(gains.items(), key=lambda pair: (-pair[1], pair[0])))
    return Gains(column=column, values=best_first), tuple(unknown)


def _keep_list_id_if_shared(log: GuessedInput, judged: GuessedInput) -> None:
    """Drop the lists of judgements unless they share a column name and a value with the lists of the log.

    A column ``list_id`` is read in any case.
    """
    own, listed = judged.columns.get(C.LIST_ID), log.columns.get(C.LIST_ID)
    if own is None or own.column == C.LIST_ID:
        return
    is_shared = False
    if listed is not None and plain_name(own.column) == plain_name(listed.column):
        is_shared = bool({*judged.table.distinct(own.column)} & {*log.table.distinct(listed.column)})
    if not is_shared:
        del judged.columns[C.LIST_ID]


def _has_list_times(table: TableSample, columns: Mapping[str, Guess], day: Guess | None) -> bool:
    """Return True if a log without ids of lists has several times of a user and day, each with several items."""
    if C.LIST_ID in columns or C.RECOMMENDED_AT not in columns or C.USER_ID not in columns:
        return False
    keys = [columns[name].column for name in (C.MODEL_ID, C.USER_ID) if name in columns] + ([day.column] if day else [])
    shown = columns[C.RECOMMENDED_AT].column
    keys = [name for name in dict.fromkeys(keys) if name != shown]
    rows = table.of_some_users([*keys, shown], columns[C.USER_ID].column)
    lists = rows.group_by([*keys, shown]).aggregate([([], "count_all")])
    return len(lists) > len(lists.group_by(keys).aggregate([])) and len(lists) * 2 <= rows.num_rows


def _guess_segments(segments: GuessedInput) -> tuple[list[str], list[str]]:
    """Find the columns with few values, and those of numbers with many."""
    plain: list[str] = []
    numeric: list[str] = []
    for name in segments.unread:
        values = segments.table.rows[name]
        kind = values.type
        n_values = pc.count_distinct(values).as_py() if not pa.types.is_nested(kind) else 0
        if not name.isidentifier() or name == C.ALL_USERS or n_values < 2:  # noqa: PLR2004 - one value cuts nothing
            continue
        is_of_groups = is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind)
        if is_number(kind) and n_values > _FEW_NUMBERS:
            numeric.append(name)
        elif n_values <= MAX_VALUES and is_of_groups:
            plain.append(name)
    return plain, numeric


def _guess_cutoffs(log: GuessedInput) -> tuple[int, ...]:
    """Choose cutoffs up to the longest list of some users, whose rows may be anywhere in the table."""
    rows = log.table.rows
    if log.nested is not None:
        lists = rows[column_and_field(log.nested.items, rows.column_names)[0]]
        longest = pc.max(pc.list_value_length(lists)).as_py() or CUTOFFS[-1]
    else:
        keys = [log.columns[name].column for name in (C.MODEL_ID, C.USER_ID, C.LIST_ID) if name in log.columns]
        keys = list(dict.fromkeys([*keys, *([log.day.column] if log.day else [])]))
        if C.USER_ID in log.columns:
            rows = log.table.of_some_users(keys, log.columns[C.USER_ID].column)
        if not keys or not rows.num_rows:
            return CUTOFFS
        longest = pc.max(rows.group_by(keys).aggregate([([], "count_all")])["count_all"]).as_py()
    return tuple(k for k in CUTOFFS if k <= longest) or (longest,)


def config_text(guesses: Guesses, config: Path, *, results: str) -> str:
    """Write a config for a file, from whose folder its paths start."""
    lines = [
        f"# yaml-language-server: $schema=./{SCHEMA}",
        "#",
        "# Written by rankeval init, which looked at the tables: check what it guessed. Paths start from this folder.",
        "# Every key there is, with its meaning: rankeval init OTHER.yaml, without tables.",
        f"evaluation: {_text(re.sub('[^A-Za-z0-9_.-]', '_', config.stem).lstrip('._-') or 'nightly')}",
        *("", "inputs:"),
        *(line for each in guesses.inputs.values() for line in _input_lines(each, guesses, config)),
        *("", *_model_lines(guesses)),
    ]
    if guesses.is_attributed:
        lines += ["", _commented("policies:", "both tables have times: an event counts for the last list before it")]
        lines += ["  attribution: last_touch"]
        lines += [_commented(f"  attribution_window: {WINDOW_DAYS}d", "a night runs once this window is over")]
    usual = ("nDCG", "AP", "R", "RR", "Success")
    k = guesses.cutoffs[-1]
    given = {name for name in ("train", "items") if name in guesses.inputs}
    given |= {f"{name}.{column}" for name in given for column in guesses.inputs[name].columns}
    given |= {"evaluation_date"} if guesses.newest_date else set()
    of_facts = [
        _commented(f"  - {_text(name)}", why)
        for name, why in _OF_FACTS.items()
        if {"train", "items"} & given and set(MeasureSet.parse([f"{name}@{k}"]).requiring()) <= given
    ]
    measures = ["measures:", *(f"  - {name}" for name in usual), *of_facts]
    if not of_facts:
        measures = [f"measures: [{', '.join(usual)}]        # rankeval measures lists the others"]
    lines += ["", *measures, f"cutoffs: [{', '.join(map(str, guesses.cutoffs))}]", *_slice_lines(guesses), ""]
    if of_facts:  # a rule about the night before, which holds on the first night, and others to be chosen
        rule = f"  - {{measure: nDCG@{k}, against: previous, margin: 0.02}}"
        bound = f"  # - {{measure: ItemCoverage@{k}, at_least: 0.1}}"
        lines += [_commented("gates:", "rules for shipping a model: exit code 6 where one is not met")]
        lines += [_commented(rule, "at most so much below the night before: yours to choose")]
        if guesses.baseline is not None:
            lines += [_commented(f"  # - {{measure: nDCG@{k}, least_gain: 0}}", "better than the baseline")]
        lines += [_commented(bound, "of the items are recommended to someone"), ""]
    lines += ["results:", f"  root: {_path(results, config)}"]
    lines += [_commented("  lists: true", "so that rankeval score can add measures later")]
    return "".join(f"{line}\n" for line in lines)


def _input_lines(each: GuessedInput, guesses: Guesses, config: Path) -> Iterator[str]:
    table, unread = each.table, each.unread
    yield from (f"  {each.name}:", f"    format: {table.format}", f"    path: {_path(table.path, config)}")
    yield "    columns:"
    for name, guess in each.columns.items():
        yield _commented(f"      {name}: {_text(guess.column)}", f"guessed by {guess.by}")
    for name in each.missing:
        yield _commented(f"      {name}: {name}", f"NOT FOUND, write one of: {', '.join(unread) or 'none left'}")
    if each.nested is not None:
        yield _commented("    nested:", "a row is a whole list, guessed by the types")
        yield f"      items: {_text(each.nested.items)}"
        yield from () if each.nested.scores is None else (f"      scores: {_text(each.nested.scores)}",)
    if each.gains is not None:
        yield _commented("    gains:", "guessed by the names of the events: what is each worth?")
        yield f"      column: {_text(each.gains.column)}"
        gains = ", ".join(f"{_text(event)}: {gain:g}" for event, gain in each.gains.values.items())
        line, unknown = f"      values: {{{gains}}}", ", ".join(each.unknown_events)
        yield _commented(line, f"unknown, so 1: {unknown}") if unknown else line
    if each.as_text:
        types = ", ".join(f"{name}: string" for name in each.as_text)
        yield _commented(f"    types: {{{types}}}", "numbers here, text in another input")
    if each.name == "held_out" and guesses.window_column is not None:
        yield _commented("    filters:", "the days of the attribution window")
        conditions = _window_conditions(guesses.window_column, of_days=each.day is not None)
        yield from (f"      - {condition}" for condition in conditions)
    elif each.day is not None:
        condition = f'{{column: {_text(each.day.column)}, op: "=", value: "{DATE_PLACEHOLDER}"}}'
        yield f"    filters: [{condition}]  # guessed by {each.day.by}"
    yield from _form_lines(each)
    others = [f"{name}, with dates" if _has_dates(table, name) else name for name in unread]
    if others and each.name != "segments":
        yield f"    # not read: {_one_line(', '.join(others))}"
    if each.name == "held_out" and guesses.has_events_of_all_days:
        log = guesses.inputs["recommendations"]
        day = log.day.column if log.day else "day"  # best called as that of the recommendations
        times = _one_line(each.columns[C.INTERACTED_AT].column)
        yield f"    # NOT FILTERED: {times} cannot be compared with a date, so each date reads the events of all days,"
        advice = (
            "# and users with events and no list of that date score 0. Add a column with the day of the event to the"
        )
        yield from (f"    {line}" for line in (advice, "# table, and these filters:", "# filters:"))
        yield from (f"    #   - {_one_line(condition)}" for condition in _window_conditions(day, of_days=True))


def _form_lines(each: GuessedInput) -> Iterator[str]:
    """Yield how ranks, categories and cells are written, where that is not as usual."""
    ranks, categories = each.values_of(C.RANK), each.values_of(C.CATEGORIES)
    if ranks is not None and pc.min(ranks).as_py() == 0:
        yield _commented("    ranks_from: 0", "the first rank of the sample is 0")
    if categories is not None and is_text(categories.type):  # else they are lists
        texts = [text for text in categories.to_pylist() if text]
        if not texts or not all(text.startswith("[") for text in texts):  # as those of JSON
            separator = max("|;,", key=lambda sign: sum(sign in text for text in texts))
            yield _commented(f"    list_separator: {json.dumps(separator)}", "guessed by the categories")
    if each.table.separator not in ("", ","):
        yield f"    options: {{sep: {json.dumps(each.table.separator)}}}"


def _window_conditions(column: str, *, of_days: bool) -> Iterator[str]:
    """Yield the two conditions for the days of the window, on a column of days or times."""
    # The window of the last list ends on the last day, so times end at the midnight after it.
    op, days = ("<=", WINDOW_DAYS) if of_days else ("<", WINDOW_DAYS + 1)
    yield f'{{column: {_text(column)}, op: ">=", value: "{DATE_PLACEHOLDER}"}}'
    yield f'{{column: {_text(column)}, op: "{op}", value: "{{date+{days}}}"}}'


def _model_lines(guesses: Guesses) -> Iterator[str]:
    if C.MODEL_ID not in guesses.inputs["recommendations"].columns:
        yield "# The log has no column of models: all of its lists are those of one, 'model'."
        return
    shown = _one_line(", ".join(map(_text, guesses.models[:10])))
    yield f"# models: [{shown}]  # seen; without this key, those in the log"
    if guesses.baseline is None:
        baseline = _one_line(_text(next(iter(guesses.models), "popular")))
        yield "# comparisons:"
        yield _commented(f"#   baseline: {baseline}", "the model that others are compared with")
    else:
        yield "comparisons:"
        yield _commented(f"  baseline: {_text(guesses.baseline)}", "guessed by its name")


def _slice_lines(guesses: Guesses) -> Iterator[str]:
    if "segments" not in guesses.inputs:
        return
    yield ""
    if guesses.slices:
        yield f"slices: [{', '.join(map(_text, guesses.slices))}]  # guessed by the number of their values"
    left = [name for name in guesses.inputs["segments"].unread if name not in guesses.slices]
    if left:
        yield f"# other columns of segments: {_one_line(', '.join(left))}"
    if guesses.bands:
        yield from ("slicing:", "  bands:")
        for name in guesses.bands:
            yield _commented(f"    {_text(name)}: {{quantiles: 4}}", "numbers: bands of alike size")


def _commented(text: str, comment: str) -> str:
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
    is_word = text.lower() in {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
    if re.fullmatch(r"(\.\./|/)?[A-Za-z_][A-Za-z0-9_./-]*", text) and not is_word:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
