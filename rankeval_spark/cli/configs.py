"""``rankeval init`` and ``validate``: the first config, and the faults and the cost of one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark.cli.shared_options import config_and_dates, start
from rankeval_spark.cli.terminal import console, is_quiet, json_text, say_done, write_out
from rankeval_spark.config import EvaluationConfig, check_roots, json_schema, least_cost, load_config
from rankeval_spark.config.base import DATE_PLACEHOLDER
from rankeval_spark.config.check_thresholds import OPEN_FIX, OVER
from rankeval_spark.errors import (
    ConfigError,
    Fault,
    FaultsError,
    InputError,
    OpenWindowsError,
    RankevalError,
    errors_of,
    first_line,
    raise_together,
)

if TYPE_CHECKING:
    from rankeval_spark.apps.advice import Advised
    from rankeval_spark.apps.first_config import Guesses
    from rankeval_spark.config import Gate
    from rankeval_spark.inputs.arrow.input_sizes import InputSize

ANY_DAY: Final = date(2000, 1, 1)
"""Date for the paths of a config without ``--date``: the folders above them are mostly the same on every day."""


def validate_command(path: Path, overrides: Sequence[str], day: str | None, *, is_json: bool) -> None:
    """Print the faults of a config, the least rows of a night and, for a date, its inputs and host."""
    config, days = config_and_dates(path, overrides, [("--date", day)] if day else [])
    measures, cost = config.measure_set.measures, least_cost(config)
    facts: dict[str, Any] = {
        "config": str(path),
        "evaluation": config.evaluation,
        "n_measures": len({measure.label for measure in measures}),
        "n_cutoffs": len({measure.k for measure in measures}),
        "n_slices": len(config.slices),
        "least_metrics": cost.n_metrics,
        "least_comparisons": cost.n_comparisons,
        "most_rows": config.results.most_rows,
        "primary": [str(measure) for measure in config.primary if config.comparisons],
        "ab_test": _describe_comparisons(config),
        "primary_is_named": bool(config.comparisons and config.comparisons.primary),
        "gates": [{"rule": str(gate), "meaning": _meaning_of(gate, config)} for gate in config.gates],
        "rules_alone": [n for n, gate in enumerate(config.gates, 1) if gate.is_comparison and not gate.sequential],
    }
    errors: list[FaultsError] = []
    sizes: Sequence[InputSize] = ()
    windows = None
    if not days:
        size = partial(cost.require_at_most, config.results.most_rows)
        raise_together(errors_of(size, partial(check_roots, config, ANY_DAY)))
    else:
        from rankeval_spark.apps.nightly.look_ahead import LookAhead  # noqa: PLC0415 - pyarrow takes a moment

        ahead = LookAhead(config, days[0]).look_at_rows().look_at_host()
        errors, sizes = [*ahead.errors], ahead.sizes
        if not errors:
            try:
                windows = _find_last_window(config, days[0])
            except InputError as error:  # rows of a damaged file
                errors.append(error)
        facts |= {
            "evaluation_date": days[0].isoformat(),
            "host": None if errors else "process" if ahead.why_spark is None else "spark",
            "why_spark": ahead.why_spark,
            "reason": ahead.reason,
            "inputs": [{name: value for name, value in asdict(size).items() if name != "fault"} for size in sizes],
            "windows": windows,
        }
    if is_json:
        write_out(json_text(facts))
    elif not is_quiet():
        _print_facts(facts, str(cost), sizes)
    raise_together(errors)
    if windows and windows["is_open"] and config.checks.open_windows.error == 0:
        found = f"a list whose attribution window ends {windows['last_window_ends_at']}"
        expected = f"an end before {windows['events_until']}: {OVER}"
        raise OpenWindowsError(Fault("inputs.recommendations", found, expected, OPEN_FIX))


def _meaning_of(gate: Gate, config: EvaluationConfig) -> str:
    """Return the meaning of a rule, and whether `comparisons` takes its measure as exploratory."""
    measure = gate.parse_measure(config.preset)
    is_primary = (measure.label, measure.k) in {(each.label, each.k) for each in config.primary}
    return gate.meaning + ("" if is_primary or not gate.needs_baseline else f"; {measure} is not primary")


def _find_last_window(config: EvaluationConfig, day: date) -> dict[str, Any] | None:
    """Find the end of the last list's attribution window; None without one, or if only Spark reads the log."""
    from rankeval_spark.engine.attribution import to_micros  # noqa: PLC0415 - pyarrow takes a moment
    from rankeval_spark.in_process.assembly import last_shown, moment_text  # noqa: PLC0415 - as above
    from rankeval_spark.inputs.input_files import ForSparkError  # noqa: PLC0415 - as above

    if not config.policies.is_attributed:
        return None
    try:
        shown = last_shown(config, day)
    except ForSparkError:
        return None
    if shown is None:
        return None
    until = config.inputs.held_out.complete_until(day, datetime.now(UTC))
    end = shown + config.policies.window  # in microseconds: no datetime is after the year 9999
    return {
        "last_shown_at": moment_text(shown),
        "last_window_ends_at": moment_text(end),
        "events_until": until.isoformat(),
        "is_open": end > to_micros(until),
    }


def _describe_comparisons(config: EvaluationConfig) -> list[str]:
    """Describe the A/B test of a config, and what its comparisons leave out; empty without either."""
    split = config.comparisons.split if config.comparisons else None
    shares = ", ".join(f"{share:g} of the users to {model}" for model, share in (split or {}).items())
    lines = [f"A/B test: {shares}; these models are compared unpaired"] if split else []
    return lines + [f"note: {note}" for note in config.comparison_notes]


def _print_facts(facts: Mapping[str, Any], cost: str, inputs: Sequence[InputSize]) -> None:
    """Print what `validate` found: the cost of a night and, for a date, its inputs and its host."""
    shown = ", ".join(f"{name}: {facts[f'n_{name}']}" for name in ("measures", "cutoffs", "slices"))
    has_faults = facts.get("host", "") is None
    verdict = "" if has_faults else "valid; "
    say_done(f"{facts['config']}: {verdict}evaluation {facts['evaluation']}; {shown}")
    say_done(f"cost: {cost}; a run counts first, and ends above {facts['most_rows']:,}")
    if facts["primary"]:
        default = "" if facts["primary_is_named"] else " (the first, for comparisons.primary names none)"
        say_done(f"primary: {', '.join(facts['primary'])}{default}; all else that is compared is exploratory")
    of_rules = [f"rule {number}, {gate['rule']}: {gate['meaning']}" for number, gate in enumerate(facts["gates"], 1)]
    for line in (*facts["ab_test"], *of_rules):
        say_done(line)
    if facts["rules_alone"]:
        rules = f"{'rule' if len(facts['rules_alone']) == 1 else 'rules'} {', '.join(map(str, facts['rules_alone']))}"
        err = "asked on 30 nights, a test at 0.05 stops an equal model in up to 79 % of months"
        say_done(f"error of a single night: {rules}; {err}, unless it is sequential: true (docs/gates.md)")
    if not inputs:
        return
    from rich.markup import escape  # noqa: PLC0415 - only with a date

    from rankeval_spark.cli.tables import new_table  # noqa: PLC0415 - as above

    title = f"a run of {facts['evaluation_date']} reads"
    headings = ("input", "format", "version", "files", "partitions", "rows", "size")
    table = new_table(*headings, title=title, caption=["rows and size of the files that may hold rows of the date"])
    for column in table.columns[2:]:
        column.justify = "right"
    for size in inputs:
        counts = (size.version, size.n_files, size.n_partitions, size.n_rows)
        numbers = ("-" if count is None else f"{count:,}" for count in counts)
        table.add_row(escape(size.name), size.format, *numbers, _format_size(size.n_bytes))
    console().print(table)
    for size in inputs:
        remark = size.remark or ("no file may hold rows of this date" if size.n_files == 0 else None)
        if remark and not size.fault:
            say_done(f"inputs.{size.name}: {remark}")
    if facts["windows"]:
        is_over = "is not over yet" if facts["windows"]["is_open"] else "is over"
        say_done(f"the window of the last list ends {facts['windows']['last_window_ends_at']} and {is_over}")
    if facts["reason"]:
        say_done(f"nothing would be measured: {facts['reason']}")
    if not has_faults:
        why = facts["why_spark"]
        say_done("would run in this process, without Spark" if why is None else f"would run on Spark: {why}")


def _format_size(n_bytes: int | None) -> str:
    """Format a size with one to three digits before the point."""
    if n_bytes is None:
        return "-"
    size = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:  # noqa: PLR2004 - of units of a thousand each
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def advise_command(path: Path, overrides: Sequence[str], day: str | None, form: str, *, is_json: bool) -> None:
    """Print advice on the inputs of a config: as text, or as a config, a call, Markdown or JSON."""
    config, days = config_and_dates(path, overrides, [("--date", day)] if day else [])
    if not days and DATE_PLACEHOLDER in config.public_json():
        raise ConfigError(Fault("--date", "none", f"the evaluation date, because the inputs have {DATE_PLACEHOLDER}"))
    from rankeval_spark.apps.nightly.look_ahead import wants_spark  # noqa: PLC0415 - pyarrow takes a moment
    from rankeval_spark.apps.notebook.advise import advise_config  # noqa: PLC0415 - as above

    options: dict[str, Any] = {"master": config.spark.master, "settings": config.spark.resolved_settings()}
    session = partial(start, f"rankeval advise {config.evaluation}", **options)
    found = advise_config(config, (days or [ANY_DAY])[0], start=session, on_spark=wants_spark(config) is not None)
    if is_json:
        write_out(json_text({"config": str(path), "advice": list(found), "settings": found.settings}))
    elif form == "text":
        write_out(f"{found}\n\nas a config: rankeval advise {shlex.quote(str(path))} --as yaml\n")
    else:
        write_out({"yaml": found.to_yaml, "python": found.to_python, "markdown": found.to_markdown}[form]())


def init_command(config: Path, tables: Mapping[str, str], results: str | None) -> None:
    """Write a config of tables, or the template if none is given."""
    if not tables:
        if results is not None:
            raise ConfigError(Fault("--results", "no tables", "--recommendations and --held-out with it"))
        schema = json_schema.write_config(config, json_schema.template_text(json_schema.TEMPLATE))
        say_done(f"wrote {config}, which has every key, and {schema} for your editor")
        say_done(f"keep what you need, then: rankeval validate {shlex.quote(str(config))}")
        return
    import pyarrow as pa  # noqa: PLC0415 - takes a moment

    from rankeval_spark.apps.advice import advise_on  # noqa: PLC0415 - as above
    from rankeval_spark.apps.first_config import config_text, guess_config  # noqa: PLC0415 - as above
    from rankeval_spark.apps.sampled_tables import sample_table  # noqa: PLC0415 - as above
    from rankeval_spark.inputs.input_files import ForSparkError  # noqa: PLC0415 - as above

    options = {name: f"--{name.replace('_', '-')}" for name in ("recommendations", "held_out", *tables)}
    if missing := [options[name] for name in ("recommendations", "held_out") if name not in tables]:
        raise ConfigError(Fault(" and ".join(missing), "none", "the lists and what users did, both"))
    samples = {name: sample_table(options[name], path, splits_days=name != "train") for name, path in tables.items()}
    guesses = guess_config(samples)
    is_attributed = guesses.data.has_times_of_both
    if is_attributed and samples["held_out"].path != tables["held_out"]:  # events of the days of a window
        samples["held_out"] = sample_table(options["held_out"], tables["held_out"], splits_days=False)
        guesses = guess_config(samples)
    write, unseen = partial(config_text, guesses, config=config, results=results or str(config.parent / "results")), ""
    rows = advise_on(guesses.data)
    schema = json_schema.write_config(config, write(rows))
    try:
        try:
            rows = guesses.look_at_rows(load_config(config))
        except (ForSparkError, OSError, pa.ArrowException, RankevalError) as error:
            unseen = str(error.faults[0]) if isinstance(error, FaultsError) else first_line(str(error))
        config.write_text(write(rows), encoding="utf-8")
        load_config(config)
    except BaseException:  # no half a result: what cannot be written as a config is reported
        config.unlink()
        raise
    if not is_quiet():
        _print_guesses(guesses, rows)
        if unseen:
            say_done(f"rows were not looked at, so measures and cutoffs are the usual ones: {unseen}")
        for name, sample in samples.items():
            if sample.path != tables[name]:
                say_done(f"{name}: a folder of days, read as {sample.path}")
    say_done(f"wrote {config}, and {schema} for your editor")
    day = f" --date {guesses.newest_date}" if guesses.newest_date else ""
    say_done(f"check the guesses in it, then: rankeval validate {shlex.quote(str(config))}{day}")


def _print_guesses(guesses: Guesses, rows: Sequence[Advised]) -> None:
    """Print a table of the guessed columns, and a line for each other guess."""
    from rich.markup import escape  # noqa: PLC0415 - without output it is not needed

    from rankeval_spark.cli.tables import new_table  # noqa: PLC0415 - as above

    table, lines = new_table("input", "format", "meaning", "column", "guessed by"), list[str]()
    for name, guessed in guesses.inputs.items():
        found = {**guessed.columns, **({"evaluation date": guessed.day} if guessed.day else {})}
        for place, (meaning, guess) in enumerate(found.items()):
            first = (name, guessed.table.format) if place == 0 else ("", "")
            table.add_row(*first, meaning, escape(guess.column), guess.by)
        lines += [f"not found: {name}.{column}; write its column into the config" for column in guessed.missing]
        if guessed.nested is not None:
            paths = " and ".join(filter(None, (guessed.nested.items, guessed.nested.scores)))
            lines.append(f"{name}: a row is a whole list, guessed by the types: {paths}")
        if guessed.gains is not None:
            gains = ", ".join(f"{event} {gain:g}" for event, gain in guessed.gains.values.items())
            lines.append(f"{name}: gains of {guessed.gains.column}, guessed by the names of the events: {gains}")
        if guessed.as_text:
            lines.append(f"{name}: {' and '.join(guessed.as_text)} read as text, as in another input")
        if name != "segments" and guessed.unread:
            lines.append(f"{name}: not read: {', '.join(guessed.unread)}")
    slices = [row.value for row in rows if row.key == "slices"]
    if slices:
        lines.append(f"slices, guessed by the number of their values: {', '.join(slices)}")
    if guesses.data.has_times_of_both:
        lines.append("attribution: last_touch, because both tables have times; the window of 7 days is yours to choose")
    if guesses.has_events_of_all_days:
        lines.append(
            "held_out: not filtered by day; add a column with the day of events, see NOT FILTERED in the config"
        )
    lines += [f"baseline, guessed by its name: {row.value}" for row in rows if row.key == "comparisons.baseline"]
    lines += [f"look at first, {row.key}: {row.reason}" for row in rows if row.kind == "warning"]
    console().print(table)
    for line in lines:
        say_done(line)
