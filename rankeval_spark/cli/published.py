"""Commands on a results root: ``gate``, ``runs``, ``report``, ``log``, ``score``, ``maintain`` and ``reproduce``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.markup import escape

from rankeval_spark import __version__, columns as C, schemas
from rankeval_spark.apps import gates, run_history
from rankeval_spark.apps.maintenance import Maintained, MaintenanceOptions, maintain_root
from rankeval_spark.apps.published.comparison import compare_two_best
from rankeval_spark.apps.published.report import report_of
from rankeval_spark.apps.published.rescoring import past_nights, plan_scoring, score_night
from rankeval_spark.apps.published.tracking import log_night
from rankeval_spark.apps.published_runs import (
    PastNight,
    chosen_nights,
    dates_after,
    earlier_nights,
    published_nights,
    read_verdicts,
    require_dates,
    unknown_evaluation,
)
from rankeval_spark.cli import tables
from rankeval_spark.cli.shared_options import require_file, start, write_atomically
from rankeval_spark.cli.show import COLUMNS as MEANS, RowSelection, selected_rows
from rankeval_spark.cli.terminal import console, json_text, progress, say_done, say_note, write_out
from rankeval_spark.config import load_config, parse_date
from rankeval_spark.config.spark_settings import is_reference
from rankeval_spark.errors import REDACTED, ConfigError, ExitCode, Fault, FaultsError, InputError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.measures.plugins import load_plugins
from rankeval_spark.report.page import require_extra
from rankeval_spark.results import journal, results_of
from rankeval_spark.wording import failure_of

if TYPE_CHECKING:
    from rich.table import Table

    from rankeval_spark.apps.published.reproduction import Reproduction
    from rankeval_spark.config import EvaluationConfig

GATE_COLUMNS: Final = (C.EVALUATION, C.EVALUATION_DATE, *tables.GATE_FIELDS)
_ADD_RULES: Final = "add them, or give others by --config"


def gate_command(
    root: str, day: str | None, evaluation: str | None, path: Path | None, *, is_json: bool, is_all: bool
) -> None:
    """Judge a published night by its own rules, or by those of another config, and show the verdicts."""
    given = load_config(path) if path else None
    wanted = parse_date(day, where="--date") if day else None
    rows: list[dict[str, Any]] = []
    without_rules: list[PastNight] = []
    for night in chosen_nights(root, evaluation=evaluation, day=wanted):
        if night.is_empty:
            say_note(f"{night}: nothing to judge, {night.row['reason']}")
            continue
        if wanted is None and (without_means := dates_after(root, night)):
            days = ", ".join(map(str, without_means))
            say_note(f"{night}: judged as the newest night with means; nothing was measured on {days}")
        config = given or night.config
        if not config.gates:
            without_rules.append(night)
            continue
        judged = _judge_night(root, night, config)
        rows += [{C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date, **row} for row in judged]
        if is_json and not tables.is_decided(judged):
            say_note(f"{night}: {tables.gates_sentence(judged)}")
        if not is_json:
            out = console()
            build = partial(tables.gates, title=str(night))
            tables.print_fitted(out, judged, build, is_all=is_all, rank=lambda row: row["verdict"] == "passed")
            said = f"{tables.gates_sentence(judged)} {_name_winner(root, night, config, judged)}".strip()
            out.print(said, markup=False, soft_wrap=True)
    if without_rules and not rows:
        faults = (Fault(str(night), "no rule", "gates in the config", _ADD_RULES) for night in without_rules)
        raise ConfigError(*faults)
    for night in without_rules:
        say_note(f"{night}: not judged, its config has no rule; {_ADD_RULES}")
    if is_json:
        write_out(tables.to_json(rows, GATE_COLUMNS, indent=None))
    raise typer.Exit(ExitCode.GATE_FAILED if gates.failed(rows) else ExitCode.DONE)


def _judge_night(root: str, night: PastNight, config: EvaluationConfig) -> list[dict[str, Any]]:
    """Judge the rules of a config by the published tables of a night; return rows of ``gates``."""
    results, previous, verdicts = results_of(root), None, list[Any]()
    needs_previous, counted = run_history.previous_night_rules(config), run_history.longest_horizon(config) - 1
    earlier = earlier_nights(root, night, at_most=max(1, counted)) if needs_previous or counted else []
    if needs_previous:
        previous = run_history.compare_with_previous(results, config, run_history.NightSide.of(results, night), earlier)
    if counted:
        rows, whole, faults = run_history.read_whole(read_verdicts, root, night.evaluation, earlier)
        verdicts = run_history.alike_rows(rows, night.definitions, whole)
    for fault in (*(previous.damage if previous else ()), *(faults if counted else ())):
        say_note(str(fault))
    return gates.judge_published(config, results, night, previous, verdicts)


def _name_winner(root: str, night: PastNight, config: EvaluationConfig, judged: Sequence[Mapping[str, Any]]) -> str:
    """Return which model of a night may ship, or leads, by its published rows over all users."""
    results = results_of(root)
    where: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation, C.SLICE: C.ALL_USERS}
    means = results.arrow(schemas.METRICS.name, **where).to_pylist()
    pairs = results.arrow(schemas.COMPARISONS.name, **where, test=list(C.DECIDING)).to_pylist()
    baseline = config.comparisons.baseline if config.comparisons else None
    requested = [(measure.label, measure.k) for measure in night.measures.measures]
    compare = partial(compare_two_best, root, night)
    return tables.winner_sentence(judged, means, pairs, requested=requested, baseline=baseline, compare=compare)


RUN_COLUMNS: Final = (
    *(C.EVALUATION, C.EVALUATION_DATE, C.RUN_ID, "status", "started_at", "recorded_at", "seconds", "sample_share"),
    *("code_version", "n_rows", "reason"),
)

_EVENT_COLUMNS: Final = (*C.RUN_KEY, "status", "reason", "sample_share", "code_version", "timings", "n_rows", "error")
"""Without the configs, which are the larger part of the journal."""

_STYLES: Final = {journal.PUBLISHED: "green", journal.FAILED: "red", journal.MAINTAINED: "dim"}


def runs_command(root: str, days: Sequence[str], evaluation: str | None, *, is_json: bool, is_all: bool) -> None:
    """Print a row per run, the newest last."""
    dates = [parse_date(day, where="--date") for day in days]
    wanted: list[tuple[str, Any, Any]] = [] if evaluation is None else [(C.EVALUATION, "=", evaluation)]
    wanted += [(C.EVALUATION_DATE, "in", dates)] if dates else []
    rows = _run_rows(journal.event_frame(root, columns=_EVENT_COLUMNS, where=wanted, is_lenient=True), is_whole=is_json)
    if len({row[C.EVALUATION_DATE] for row in rows}) < max(1, len(set(dates))):
        events = journal.event_frame(root, columns=C.RUN_KEY, is_lenient=True)
        matching = [event for event in events if evaluation in (None, event[C.EVALUATION])]
        if evaluation is not None and not matching:
            raise InputError(unknown_evaluation(root, "run", evaluation, [event[C.EVALUATION] for event in events]))
        if dates:
            require_dates(root, "run", dates, {event[C.EVALUATION_DATE] for event in matching})
        say_note("no run matches")
    if is_json:
        write_out(tables.to_json(rows, RUN_COLUMNS))
    elif rows:
        places = {id(row): place for place, row in enumerate(rows)}
        tables.print_fitted(
            console(),
            rows,
            lambda some: _runs_table(sorted(some, key=lambda row: places[id(row)])),
            is_all=is_all,
            rank=lambda row: -places[id(row)],  # the newest stay
            choose=", and --date and --evaluation choose",
        )


def _run_rows(events: Sequence[Mapping[str, Any]], *, is_whole: bool) -> list[dict[str, Any]]:
    """Return a row per run from its events; the last event has the outcome. ``is_whole``: as of the reasons."""
    by_run: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for event in sorted(events, key=lambda event: event["recorded_at"]):
        by_run.setdefault(tuple(event[name] for name in C.RUN_KEY), []).append(event)
    rows = []
    for first, *_, last in ([of_run[0], *of_run] for of_run in by_run.values()):
        timings, n_rows = dict(last["timings"] or ()), dict(last["n_rows"] or ())
        values = {
            **last,
            "started_at": first["recorded_at"],
            "seconds": sum(timings.values()) if timings else None,
            "n_rows": sum(n_rows.values()) if last["status"] == journal.PUBLISHED else None,
            "reason": (_list_all_faults if is_whole else failure_of)(last) if last["error"] else last["reason"],
        }
        rows.append({name: values[name] for name in RUN_COLUMNS})
    return rows


def _list_all_faults(event: Mapping[str, Any]) -> str:
    """Return why a run failed with all faults, uncut; a table for people has the first of them."""
    message = (event["error"] or {}).get("message") or ""
    faults = [line.strip().removeprefix("- ") for line in message.splitlines() if line.strip().startswith("- ")]
    where, _, first = failure_of(event).partition(": ")
    return ": ".join(filter(None, (where, "; ".join(faults) or message or first)))


def _runs_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Build the table of runs. A run id begins with the time (UTC) at which the run started."""
    has_reason = any(row["reason"] for row in rows)
    table = tables.new_table("evaluation", "date", "run", "status", "seconds", *(["why"] if has_reason else []))
    for row in rows:
        style = _STYLES.get(row["status"], "yellow")
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.1f}"
        why = [escape(" ".join((row["reason"] or "").split()))] if has_reason else []
        names = (escape(row[C.EVALUATION]), str(row[C.EVALUATION_DATE]), escape(row[C.RUN_ID]))
        table.add_row(*names, f"[{style}]{row['status']}[/{style}]", seconds, *why)
    return table


def report_command(
    root: str,
    out: Path,
    day: str | None,
    evaluation: str | None,
    baseline: str | None,
    *,
    is_json: bool,
    hides_users: bool = False,
) -> None:
    """Write the report of a night. A missing library or folder is refused before anything is read."""
    wanted = parse_date(day, where="--date") if day else None
    require_extra()
    require_file(out, "--out", example="report.html")
    text = report_of(root, evaluation=evaluation, day=wanted, baseline=baseline, hides_users=hides_users)
    write_atomically(text, out, "--out")
    if is_json:
        write_out(json_text({"path": out, "n_bytes": out.stat().st_size}))
        return
    size = out.stat().st_size / 1e6
    console().print(f"wrote {out}, {size:.1f} MB: open it in a browser", markup=False, soft_wrap=True)


def log_command(
    root: str,
    day: str | None,
    evaluation: str | None,
    *,
    tracking_uri: str | None,
    experiment: str | None,
    no_report: bool,
    is_json: bool,
) -> None:
    """Log the night of a date, or the newest of each evaluation, to MLflow; name the runs."""
    wanted = parse_date(day, where="--date") if day else None
    rows = []
    for night in chosen_nights(root, evaluation=evaluation, day=wanted):
        found = log_night(root, night, experiment=experiment, tracking_uri=tracking_uri, has_report=not no_report)
        for model, run in found.items():
            rows.append({C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date, C.MODEL_ID: model})
            rows[-1]["mlflow_run_id"] = run
        if not found:
            say_note(f"{night}: nothing to log, {night.row['reason']}")
    if is_json:
        write_out(tables.to_json(rows, (C.EVALUATION, C.EVALUATION_DATE, C.MODEL_ID, "mlflow_run_id"), indent=None))
        return
    for row in rows:
        text = f"{row[C.EVALUATION]} {row[C.EVALUATION_DATE]}: {row[C.MODEL_ID]} is run {row['mlflow_run_id']}"
        console().print(text, markup=False, soft_wrap=True)


def score_command(
    root: str, measures: Sequence[str], dates: Sequence[str], evaluation: str | None, *, is_json: bool
) -> None:
    """Add measures to published dates, unless they are there already, and show their means."""
    days = [parse_date(text, where="--date") for text in dates]
    past = list[PastNight]()
    with suppress(FaultsError):  # which are reported after those of the measures
        past = published_nights(root, evaluation=evaluation, dates=days)
    load_plugins(dict.fromkeys(name for night in past for name in night.config.plugins), where="plugins")
    asked = MeasureSet.parse(measures, where="--measure")
    nights = past_nights(root, evaluation=evaluation, dates=days, needs=asked.needs)
    for night in nights:  # faults of any night are reported before the first is scored
        if not night.is_empty:
            plan_scoring(night, asked)
    out, found = console(), list[dict[str, Any]]()
    for night in nights:
        name, day = night.evaluation, night.evaluation_date
        say = say_note if is_json else partial(out.print, markup=False, soft_wrap=True)
        if night.is_empty:
            say(f"{night}: nothing to score, {night.row['reason']}")
            continue
        if set(asked.measures) <= set(night.measures.measures):
            say(f"{night}: published already, nothing to score")
        else:
            with progress(f"{name} {day}") as listener:
                score_night(root, night, asked, progress=listener)
        rows = selected_rows(results_of(root), RowSelection(str(day), name, measures=asked.labels, ks=asked.ks))
        found += rows
        if not is_json:
            out.print(tables.leaderboard(rows, f"{name}, {day}", width=out.width))
    if is_json:
        write_out(tables.to_json(found, MEANS))


def maintain_command(root: str, options: MaintenanceOptions, *, one_run_per_root: bool, is_json: bool) -> None:
    """Maintain the root as the options say and print a line per step."""
    with progress("maintain") as listener:
        done = maintain_root(root, options, one_run_per_root=one_run_per_root, progress=listener)
    if is_json:
        write_out(json_text(asdict(done)))
        return
    out = console()
    for line in maintenance_lines(done, options):
        out.print(line, markup=False, soft_wrap=True)


def maintenance_lines(done: Maintained, options: MaintenanceOptions) -> Iterator[str]:
    """Yield what was done, in sentences."""
    for file in done.given_up:
        yield f"runs: events of {file} given up; dates that are no longer published have to be run again"
    if done.staging:
        kept = f"; {len(done.staging.kept)} of live runs kept" if done.staging.kept else ""
        yield f"staging: {len(done.staging.removed)} removed{kept}"
    if done.deleted:
        nights = done.deleted.nights
        days = f" ({nights[0]} to {nights[-1]})" if nights else ""
        before = f" before {done.deleted.before}" if done.deleted.before else ""
        yield f"lists, user_metrics and examples of dates{before} deleted: {len(nights)} nights{days}"
    if options.erase_user is not None and not any(done.erased.values()):
        yield f"no row of this user was found in {', '.join(done.erased)}: is the id right?"
    elif options.erase_user is not None:
        rows = ", ".join(f"{table} {n:,}" for table, n in done.erased.items())
        yield f"one user erased, rows: {rows}; means are as they were"
        yield (
            "older versions of the tables hold the user until their retention is over (30 days, unless you changed it) "
            "and rankeval maintain --vacuum has run; rows that still come with an input are published again"
        )
    merged = {table: files for table, files in done.compacted.items() if files.n_before}
    shown = ", ".join(f"{table} {files.n_before} -> {files.n_after}" for table, files in merged.items())
    yield f"small files merged: {shown or 'none'}"
    shown = ", ".join(f"{table} {n:,}" for table, n in done.unneeded.items() if n)
    rest = "" if not shown or options.vacuum else "; --vacuum deletes them"
    deleted = ", deleted" if shown and options.vacuum else ""
    yield f"files that no version within the retention needs{deleted}: {shown or 'none'}{rest}"


MAX_COLUMNS: Final = 5


def register_tables_command(root: str, schema: str | None, path: Path | None) -> None:
    """Make external tables of a results root in a schema of Spark's catalog, and say which are new."""
    from rankeval_spark.results import catalog  # noqa: PLC0415 - imports pyspark

    given = load_config(path).spark if path else None
    options = {"master": given.master, "settings": given.resolved_settings()} if given else {}
    results_of(root).table_versions()  # before Spark starts: there are results
    spark = start("rankeval register", **options)
    for name, is_new in catalog.register_tables(spark, root, schema, "--schema").items():
        say_done(f"{name}: {'made' if is_new else 'there already'}")
    if catalog.is_in_memory(spark, schema):
        say_note("the catalog of this session is in memory: its tables end with it; --config names another catalog")


def reproduce_command(root: str, run_id: str, path: Path | None, scratch: str | None, *, is_json: bool) -> None:
    """Run a published run again, show the comparison, and exit with 7 if the results differ."""
    from rankeval_spark.apps.published import reproduction  # noqa: PLC0415 - imports pyspark

    given = load_config(path).spark if path else None
    options = {"master": given.master, "settings": given.resolved_settings()} if given else {}
    run = reproduction.find_run(root, run_id)
    spark = start("rankeval reproduce", **options)
    if given is None:  # the recorded settings that a running session still accepts; secrets were never recorded
        for key, value in run.night.config.spark.settings.items():
            if value != REDACTED and not is_reference(value) and spark.conf.isModifiable(key):
                spark.conf.set(key, value)
    with progress(f"{run.night.evaluation} {run.night.evaluation_date} again") as listener:
        found = reproduction.reproduce_run(spark, root, run, scratch=scratch, progress=listener)
    if is_json:
        write_out(json_text(_reproduction_document(found)))
    else:
        _show_reproduction(found)
    raise typer.Exit(ExitCode.DONE if found.is_equal else ExitCode.DIFFERENT)


def _reproduction_document(found: Reproduction) -> dict[str, Any]:
    run = found.run
    return {
        C.EVALUATION: run.night.evaluation,
        C.EVALUATION_DATE: run.night.evaluation_date,
        C.RUN_ID: run.run_id,
        "is_equal": found.is_equal,
        "successor": run.successor,
        "inputs": [{**asdict(compared), "is_changed": compared.is_changed} for compared in found.inputs],
        "tables": [{**asdict(compared), "is_equal": compared.is_equal} for compared in found.tables],
        "left_out": run.left_out,
    }


def _show_reproduction(found: Reproduction) -> None:
    """Print the run, a table of its inputs, a table of the compared results, and the conclusions."""
    run, out = found.run, console()
    published_at = run.night.row["recorded_at"].astimezone(UTC)  # collected in the zone of this machine
    lines = [f"run {run.run_id} of {run.night}, published {published_at:%Y-%m-%d %H:%M:%S} UTC"]
    if run.successor:
        lines += [f"run {run.successor} replaced its rows since; they are read at the versions that it published"]
    if run.is_foreign:
        lines += [f"it ran with rankeval-spark {run.night.row['code_version']}; this is {__version__}"]
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
    inputs = tables.new_table("input", "format", "version", "rows then", "rows now", "read again")
    for read in found.inputs:
        has_version = read.version is not None
        parts = ["the version that the run read" if has_version else "has no versions: what is there now"]
        if None not in read.n_rows and read.n_rows[0] != read.n_rows[1]:
            parts.append("other rows than then")
        before, after = (set((text or "").split(", ")) for text in read.columns)
        if None not in read.columns and before != after:
            parts.append(f"other columns: {', '.join(sorted(before ^ after))}")
        then, now = ("-" if n is None else f"{n:,}" for n in read.n_rows)
        version = str(read.version) if has_version else "-"
        inputs.add_row(read.name, read.format, version, then, now, escape("; ".join(parts)))
    out.print(inputs)
    compared = tables.new_table("table", "rows then", "outcome", "missing", "extra", "differing", "rounded")
    for table in found.tables:
        outcome, style = ("equal", "green") if table.is_equal else ("different", "red")
        numbers = (f"{n:,}" for n in (table.n_missing, table.n_extra, table.n_differing, table.n_rounded))
        compared.add_row(table.table, f"{table.n_recorded:,}", f"[{style}]{outcome}[/{style}]", *numbers)
    out.print(compared)
    for line in _conclusions(found):
        out.print(line, markup=False, soft_wrap=True)


def _conclusions(found: Reproduction) -> Iterator[str]:
    """Yield sentences on what differs, for example where, and what was not compared."""
    for table in found.tables:
        if table.n_gone:
            yield f"{table.table}: {table.n_gone:,} rows of the run are no longer there, and were not compared"
        for column, n_rows, distance in table.columns[:MAX_COLUMNS]:
            by = "" if distance is None else f", by at most {distance:.3g}"
            yield f"{table.table}: {column} differs in {n_rows:,} rows{by}"
        if len(table.columns) > MAX_COLUMNS:
            yield f"{table.table}: and {len(table.columns) - MAX_COLUMNS} more columns"
        yield from (f"{table.table}: for example {example}" for example in table.examples)
    yield from (f"not compared: {what}" for what in found.run.left_out)
    if found.is_equal:
        yield "equal, but for the rounding of sums" if any(table.n_rounded for table in found.tables) else "equal"
        return
    names = ", ".join(table.table for table in found.tables if not table.is_equal)
    compared = found.run.night.config.comparisons
    if "comparisons" in names and compared is not None and compared.covariate is not None:
        yield f"covariates are those that {compared.covariate} has now: it may have run again, or lost users since"
    changed = ", ".join(read.name for read in found.inputs if read.is_changed)
    yield f"different: {names}" + (f"; other inputs than then: {changed}" if changed else "")
