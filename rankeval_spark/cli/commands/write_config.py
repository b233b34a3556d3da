"""``rankeval init``: the first config, with every key or of the tables of the user."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rankeval_spark.cli.display.terminal import console, is_quiet, say_done
from rankeval_spark.config import load_config, template
from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rich.table import Table

    from rankeval_spark.apps.first_config.guessed_inputs import GuessedInput, Guesses


def init_command(config: Path, tables: Mapping[str, str], results: str | None) -> None:
    """Write a config of tables; where none is given, the template."""
    if not tables:
        if results is not None:
            raise ConfigError(Fault("--results", "no tables", "--recommendations and --held-out with it"))
        schema = template.write_config(config, template.template_text(template.TEMPLATE))
        say_done(f"wrote {config}, which has every key, and {schema} for your editor")
        say_done(f"keep what you need, then: rankeval validate {shlex.quote(str(config))}")
        return
    _of_tables(config, tables, results or str(config.parent / "results"))


def _of_tables(config: Path, tables: Mapping[str, str], results: str) -> None:
    from rankeval_spark.apps.first_config.config_text import config_text  # noqa: PLC0415 - pyarrow takes a moment
    from rankeval_spark.apps.first_config.guessed_inputs import guessed  # noqa: PLC0415 - as above
    from rankeval_spark.apps.first_config.table_samples import look_at  # noqa: PLC0415 - as above

    missing = [_option(name) for name in ("recommendations", "held_out") if name not in tables]
    if missing:
        raise ConfigError(Fault(" and ".join(missing), "none", "the lists and what users did, both"))
    samples = {name: look_at(_option(name), path, splits_days=name != "train") for name, path in tables.items()}
    guesses = guessed(samples)
    if guesses.is_attributed and samples["held_out"].path != tables["held_out"]:  # events of the days of a window
        samples["held_out"] = look_at(_option("held_out"), tables["held_out"], splits_days=False)
        guesses = guessed(samples)
    schema = template.write_config(config, config_text(guesses, config, results=results))
    try:
        load_config(config)
    except ConfigError:  # no half a result: what cannot be written as a config is reported
        config.unlink()
        raise
    if not is_quiet():
        _show(guesses)
        for name, sample in samples.items():
            if sample.path != tables[name]:
                say_done(f"{name}: a folder of days, read as {sample.path}")
    say_done(f"wrote {config}, and {schema} for your editor")
    date = f" --date {guesses.newest_date}" if guesses.newest_date else ""
    say_done(f"check the guesses in it, then: rankeval validate {shlex.quote(str(config))}{date}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _show(guesses: Guesses) -> None:
    console().print(_guesses_table(guesses))
    for one in guesses.inputs.values():
        _show_input(one)
    if guesses.slices:
        say_done(f"slices, guessed by the number of their values: {', '.join(guesses.slices)}")
    if guesses.is_attributed:
        say_done("attribution: last_touch, because both tables have times; the window of 7 days is yours to choose")
    if guesses.has_events_of_all_days:
        say_done("held_out: not filtered by day; add a column with the day of events, see NOT FILTERED in the config")
    if guesses.baseline:
        say_done(f"baseline, guessed by its name: {guesses.baseline}")


def _show_input(one: GuessedInput) -> None:
    for name in one.missing:
        say_done(f"not found: {one.name}.{name}; write its column into the config")
    if one.nested is not None:
        paths = " and ".join(path for path in (one.nested.items, one.nested.scores) if path)
        say_done(f"{one.name}: a row is a whole list, guessed by the types: {paths}")
    if one.gains is not None:
        gains = ", ".join(f"{event} {gain:g}" for event, gain in one.gains.values.items())
        say_done(f"{one.name}: gains of {one.gains.column}, guessed by the names of the events: {gains}")
    if one.as_text:
        say_done(f"{one.name}: {' and '.join(one.as_text)} read as text, as in another input")
    if one.name != "segments" and one.unread:
        say_done(f"{one.name}: not read: {', '.join(one.unread)}")


def _guesses_table(guesses: Guesses) -> Table:
    from rich.markup import escape  # noqa: PLC0415 - where nothing is shown, it is not needed

    from rankeval_spark.cli.display.tables import headed  # noqa: PLC0415 - as above

    table = headed("input", "format", "meaning", "column", "guessed by")
    for one in guesses.inputs.values():
        found = {**one.columns, **({"evaluation date": one.day} if one.day else {})}
        for place, (name, guess) in enumerate(found.items()):
            first = (one.name, one.table.format) if place == 0 else ("", "")
            table.add_row(*first, name, escape(guess.column), guess.by)
    return table
