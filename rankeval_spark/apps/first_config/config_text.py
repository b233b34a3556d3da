"""The text of a guessed config: every guess has a comment that says what it was guessed by."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark import columns as C
from rankeval_spark.apps.first_config.column_guesses import has_dates
from rankeval_spark.config.base import DATE_PLACEHOLDER
from rankeval_spark.config.json_schema import SCHEMA

if TYPE_CHECKING:
    from rankeval_spark.apps.first_config.guessed_inputs import GuessedInput, Guesses

_PLAIN: Final = re.compile(r"(\.\./|/)?[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS: Final = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""What YAML takes for something else than text."""

WINDOW_DAYS: Final = 7
"""Days of the attribution window."""

_COMMENTS_FROM: Final = 44
"""Column of the comments."""


def config_text(guesses: Guesses, config: Path, *, results: str) -> str:
    """Write a config.

    Parameters
    ----------
    config : Path
        File that it is for: paths start from its folder.
    results : str
        Results root, as the user gave it.
    """
    return "\n".join(_lines(guesses, config, results)) + "\n"


def _lines(guesses: Guesses, config: Path, results: str) -> Iterator[str]:
    yield f"# yaml-language-server: $schema=./{SCHEMA}"
    yield "#"
    yield "# Written by rankeval init, which looked at the tables: check what it guessed. Paths start from this folder."
    yield "# Every key there is, with its meaning: rankeval init OTHER.yaml, without tables."
    yield f"evaluation: {_text(re.sub('[^A-Za-z0-9_.-]', '_', config.stem).lstrip('._-') or 'nightly')}"
    yield ""
    yield "inputs:"
    for one in guesses.inputs.values():
        window = guesses.window_column if one.name == "held_out" else None
        yield from _input_lines(one, config, window=window)
        if one.name == "held_out" and guesses.has_events_of_all_days:
            yield from _unfiltered_lines(guesses)
    yield ""
    yield from _model_lines(guesses)
    if guesses.is_attributed:
        yield ""
        yield _with_comment("policies:", "both tables have times: an event counts for the last list before it")
        yield "  attribution: last_touch"
        yield _with_comment(f"  attribution_window: {WINDOW_DAYS}d", "a night runs once this window is over")
    yield ""
    yield "measures: [nDCG, AP, R, RR, Success]        # rankeval measures lists the others"
    yield f"cutoffs: [{', '.join(map(str, guesses.cutoffs))}]"
    yield from _slice_lines(guesses)
    yield ""
    yield "results:"
    yield f"  root: {_path(results, config)}"
    yield "  lists: true" + " " * (_COMMENTS_FROM - 13) + "# so that rankeval score can add measures later"


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
    yield from _filter_lines(one, window)
    if one.counts_ranks_from_0:
        yield _with_comment("    ranks_from: 0", "the first rank of the sample is 0")
    if one.list_separator is not None:
        yield _with_comment(f"    list_separator: {json.dumps(one.list_separator)}", "guessed by the categories")
    if table.separator not in ("", ","):
        yield f"    options: {{sep: {json.dumps(table.separator)}}}"
    others = [f"{name}, with dates" if has_dates(table, name) else name for name in one.unread]
    if others and one.name != "segments":
        yield f"    # not read: {_one_line(', '.join(others))}"


def _filter_lines(one: GuessedInput, window: str | None) -> Iterator[str]:
    """Write the filters: the days of the attribution window, or the evaluation date."""
    if window is not None:
        yield _with_comment("    filters:", "the days of the attribution window")
        yield from (f"      - {condition}" for condition in _window_conditions(window, of_days=one.day is not None))
    elif one.day is not None:
        condition = f'{{column: {_text(one.day.column)}, op: "=", value: "{DATE_PLACEHOLDER}"}}'
        yield f"    filters: [{condition}]  # guessed by {one.day.by}"


def _window_conditions(column: str, *, of_days: bool) -> Iterator[str]:
    """Write the two conditions for the days of the window, on a column of days or of times."""
    # The window of the last list ends on the last day, so times end at the midnight after it.
    op, days = ("<=", WINDOW_DAYS) if of_days else ("<", WINDOW_DAYS + 1)
    yield f'{{column: {_text(column)}, op: ">=", value: "{DATE_PLACEHOLDER}"}}'
    yield f'{{column: {_text(column)}, op: "{op}", value: "{{date+{days}}}"}}'


def _unfiltered_lines(guesses: Guesses) -> Iterator[str]:
    """Say that no column of the judgements can be filtered by the day, and what to add."""
    day, times = guesses.day_name, _one_line(guesses.inputs["held_out"].columns[C.INTERACTED_AT].column)
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
        unknown = ", ".join(one.unknown_events)
        comment = f"unknown, so 1: {unknown}" if unknown else ""
        line = f"      values: {{{gains}}}"
        yield _with_comment(line, comment) if comment else line


def _model_lines(guesses: Guesses) -> Iterator[str]:
    if C.MODEL_ID not in guesses.inputs["recommendations"].columns:
        yield "# The log has no column of models: all of its lists are those of one, 'model'."
        return
    shown = ", ".join(_text(name) for name in guesses.models[:10])
    yield f"# models: [{_one_line(shown)}]  # seen; without this key, those in the log"
    baseline = guesses.baseline or next(iter(guesses.models), "popular")
    if guesses.baseline is None:
        yield "# comparisons:"
        yield _with_comment(f"#   baseline: {_one_line(_text(baseline))}", "the model that others are compared with")
    else:
        yield "comparisons:"
        yield _with_comment(f"  baseline: {_text(baseline)}", "guessed by its name")


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
        yield "bands:"
        yield from (
            _with_comment(f"  {_text(name)}: {{quantiles: 4}}", "numbers: bands of alike size")
            for name in guesses.bands
        )


def _with_comment(text: str, comment: str) -> str:
    return f"{text:<{_COMMENTS_FROM - 1}} # {_one_line(comment)}"


def _one_line(text: str) -> str:
    """Keep a name with line ends within its comment."""
    return text if text.isprintable() else json.dumps(text)


def _path(path: str, config: Path) -> str:
    """Write a path so that it starts from the folder of the config."""
    expanded = os.path.expanduser(path)
    is_absolute = os.path.isabs(expanded)
    return _text(expanded if is_absolute else os.path.relpath(expanded, config.parent))


def _text(text: str) -> str:
    """Write text for YAML: plain where it is nothing else, else in quotes."""
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=not text.isprintable())
