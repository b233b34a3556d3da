"""The commands, and the entry point, which turns errors and signals into one message and an exit code.

Modules are imported by the commands that need them, so that ``rankeval measures`` answers at once.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, Literal, NoReturn

import typer

from rankeval_spark import __version__
from rankeval_spark.cli import shared_options as shared
from rankeval_spark.cli.terminal import (
    active_context,
    console,
    keep_libraries_quiet,
    logged_as_json,
    quietly,
    say_error,
    write_out,
)
from rankeval_spark.errors import (
    ConfigError,
    ExitCode,
    Fault,
    RankevalError,
    Stopped,
    exit_code_of,
    first_line,
    note,
    notes_of,
    without_secrets,
)
from rankeval_spark.spark.version import UnsupportedSparkError, require_spark

DEBUG: Final = "--debug"  # this and the next two are read wherever they stand among the arguments
QUIET: Final = "--quiet"
LOG_FORMAT: Final = "--log-format"
ENDING: Final = (signal.SIGINT, signal.SIGTERM)
SECONDS_TO_CANCEL: Final = 10.0  # patience with a driver that may be gone; schedulers give us half a minute


class Ending:
    """Signals to end that reached the command."""

    stopped: Stopped | None = None  # the first one, as it was raised

    def on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what a handler is called with
        """Raise the first signal; a later one is ignored while we clean up, unless Ctrl-C is pressed again."""
        if self.stopped is None:
            self.stopped = Stopped.pending = Stopped(number)
            _cancel_jobs()
            raise self.stopped
        if number == signal.SIGINT:
            raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[Ending]:
    """Convert signals to end into :class:`Stopped` within the block; the handlers before it come back after it.

    A signal that is ignored, as Ctrl-C is by a command in the background, stays ignored. Only the main thread of a
    process can handle signals; elsewhere nothing changes.
    """
    ending = Ending()
    is_main = threading.current_thread() is threading.main_thread()
    handled = [number for number in ENDING if is_main and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ending.on_signal) for number in handled}
    try:
        yield ending
    finally:
        if is_main:
            Stopped.pending = None
        for number, handler in before.items():
            signal.signal(number, handler)


def _cancel_jobs() -> None:
    """Cancel the jobs of Spark in a thread with its own connection, so that FAILED need not wait for them."""
    running = active_context()
    if running is None:
        return

    def cancel() -> None:
        with suppress(Exception):  # it has stopped already, or its JVM is gone
            running.cancelAllJobs()

    thread = threading.Thread(target=cancel, name="cancel jobs", daemon=True)
    thread.start()
    thread.join(SECONDS_TO_CANCEL)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``rankeval``; exit codes as of :class:`ExitCode`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    form, rest = _split_log_format([argument for argument in given if argument not in (DEBUG, QUIET)])
    is_json = form[-1:] == ["json"]
    keep_libraries_quiet()
    with quietly(QUIET in given), logged_as_json(is_json), stoppable() as ending:
        try:
            sys.exit(app([*form, *rest], prog_name="rankeval", standalone_mode=not is_json))
        except (Exception, SystemExit) as error:  # the last resort
            if ending.stopped is not None:  # typer makes a status of Ctrl-C out of it, and a failed clean-up an error
                for line in notes_of(error):
                    note(ending.stopped, line)
                _exit_with(ending.stopped, is_debug=DEBUG in given)
            if isinstance(error, SystemExit):
                raise
            _exit_with(_translate_error(error), is_debug=DEBUG in given)
    sys.exit(ExitCode.DONE)


def _split_log_format(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return ``--log-format`` and its value, which stand before the command, and the other arguments."""
    form, rest, words = list[str](), list[str](), iter(arguments)
    for word in words:
        name, _, value = word.partition("=")
        if name == LOG_FORMAT:
            form = [name, *([value] if value else islice(words, 1))]
        else:
            rest.append(word)
    return form, rest


def _translate_error(error: Exception) -> Exception:
    """Translate an error that no command expected."""
    if isinstance(error, RankevalError):
        return error
    if hasattr(error, "format_message"):  # of the parser, which prints it itself where the log is text
        found = first_line(error.format_message())
        return ConfigError(Fault("arguments", found, "those that rankeval COMMAND --help lists"))
    from rankeval_spark.apps.error_translation import machine_fault  # noqa: PLC0415 - only where something went wrong

    known: Exception | None = None
    if "pyspark" in sys.modules or isinstance(error, ImportError):
        try:
            require_spark()
        except UnsupportedSparkError as unsupported:
            known = unsupported
    known = known or machine_fault(error)
    if known is not error:
        known.__cause__ = error
    return known


def _exit_with(error: BaseException, *, is_debug: bool) -> NoReturn:
    """Print the error and exit with its code."""
    trace = without_secrets("".join(traceback.format_exception(error))) if is_debug else ""
    is_ours = isinstance(error, RankevalError) or not isinstance(error, Exception)
    say_error(error, trace=trace, hint="" if is_debug or is_ours else f"{DEBUG} shows the trace")
    sys.exit(exit_code_of(error))


app = typer.Typer(
    name="rankeval",
    help="Offline evaluation of recommender systems, in this process or on Spark.",
    epilog="rankeval COMMAND --help has examples of each command.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _command(*examples: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a command; its help ends with examples, a line each."""
    heading = "Examples:" if len(examples) > 1 else "Example:"
    return app.command(cls=shared.OneValueCommand, epilog="\n\n".join((heading, *examples)))


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        console().print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress and no advice; with any command, anywhere")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the trace of an error; with any command, anywhere")
    ] = False,
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(LOG_FORMAT, help="Progress, notes and errors on standard error as text or JSON lines; anywhere"),
    ] = "text",
) -> None:
    """Options common to all commands."""


@_command(
    "rankeval run conf/nightly.yaml --date 2026-01-03",
    "rankeval run conf/nightly.yaml --date 2026-01-03 --set cutoffs=[5] --dry-run",
)
def run(
    config: shared.Config,
    date_: Annotated[str, typer.Option("--date", help="Evaluation date, YYYY-MM-DD")],
    overrides: shared.Overrides = None,
    sample_users: shared.Share = 1.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be read and computed; do not run")
    ] = False,
    metrics_file: shared.MetricsFile = None,
    json_: shared.Json = False,
) -> None:
    """Evaluate one date and publish its results."""
    from rankeval_spark.cli.run import run_command  # noqa: PLC0415 - pyarrow takes a moment

    options: dict[str, Any] = {"sample_share": sample_users, "metrics_file": metrics_file, "is_json": json_}
    run_command(config, date_, overrides or [], is_dry=dry_run, **options)


@_command("rankeval backfill nightly.yaml --from 2026-01-01 --to 2026-01-31 --missing")
def backfill(  # noqa: PLR0913, PLR0917 - an option each
    config: shared.Config,
    first: Annotated[str | None, typer.Option("--from", help="First evaluation date")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last evaluation date")] = None,
    date_: Annotated[
        list[str] | None, typer.Option("--date", help="This date, before those of the range; may be repeated")
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Only dates that were not published yet")] = False,
    overrides: shared.Overrides = None,
    sample_users: shared.Share = 1.0,
    metrics_file: shared.MetricsFile = None,
    json_: shared.Json = False,
) -> None:
    """Evaluate several dates, in any order; one that fails does not stop the others."""
    from rankeval_spark.cli.run import backfill_command  # noqa: PLC0415 - pyarrow takes a moment

    changes, days = overrides or [], date_ or []
    options: dict[str, Any] = {"sample_share": sample_users, "metrics_file": metrics_file, "is_json": json_}
    backfill_command(config, changes, first, last, days, only_missing=missing, **options)


@_command(
    "rankeval init conf/nightly.yaml", "rankeval init nightly.yaml --recommendations logs --held-out truth/{date}.csv"
)
def init(  # noqa: PLR0913, PLR0917 - an input each
    config: Annotated[Path, typer.Argument(help="YAML file to write", metavar="CONFIG")],
    recommendations: Annotated[str | None, typer.Option(help="Your lists", metavar="PATH")] = None,
    held_out: Annotated[str | None, typer.Option(help="What users did afterwards", metavar="PATH")] = None,
    segments: Annotated[str | None, typer.Option(help="Properties of users", metavar="PATH")] = None,
    train: Annotated[str | None, typer.Option(help="Training data of the models", metavar="PATH")] = None,
    items: Annotated[str | None, typer.Option(help="The catalogue", metavar="PATH")] = None,
    user_values: Annotated[str | None, typer.Option(help="Own values of users: revenue", metavar="PATH")] = None,
    user_weights: Annotated[str | None, typer.Option(help="Weights of users in the means", metavar="PATH")] = None,
    results: Annotated[
        str | None, typer.Option(help="Results root; by default 'results' next to the config", metavar="PATH")
    ] = None,
) -> None:
    """Write a config: of your tables, or with every key to be filled in.

    The columns of tables are guessed by name and type; the file says so of each. Paths may have {date}.
    """
    from rankeval_spark.cli.configs import init_command  # noqa: PLC0415 - pydantic takes a moment

    tables = {
        "recommendations": recommendations,
        "held_out": held_out,
        "segments": segments,
        "train": train,
        "items": items,
        "user_values": user_values,
        "user_weights": user_weights,
    }
    init_command(config, {name: path for name, path in tables.items() if path is not None}, results)


@_command("rankeval advise conf/nightly.yaml --date 2026-01-03", "rankeval advise conf/nightly.yaml --as yaml")
def advise(
    config: shared.Config,
    date_: Annotated[str | None, typer.Option("--date", help="Evaluation date, for inputs that have one")] = None,
    overrides: shared.Overrides = None,
    as_: Annotated[
        Literal["text", "yaml", "python", "markdown"],
        typer.Option("--as", help="Print text, the config with the advice, the call of evaluate, or Markdown"),
    ] = "text",
    json_: shared.Json = False,
) -> None:
    """Look at the data of a config: advise measures, cutoffs, policies and slices, with reasons."""
    from rankeval_spark.cli.configs import advise_command  # noqa: PLC0415 - pydantic takes a moment

    advise_command(config, overrides or [], date_, as_, is_json=json_)


@_command("rankeval validate conf/nightly.yaml", "rankeval validate conf/nightly.yaml --date 2026-01-03")
def validate(
    config: shared.Config,
    date_: Annotated[
        str | None, typer.Option("--date", help="Also look what a run of this date reads, and where it runs")
    ] = None,
    overrides: shared.Overrides = None,
    json_: shared.Json = False,
) -> None:
    """Report all faults of the config, and what a night costs; nothing is run."""
    from rankeval_spark.cli.configs import validate_command  # noqa: PLC0415 - pydantic takes a moment

    validate_command(config, overrides or [], date_, is_json=json_)


@_command("rankeval show /data/results", "rankeval show /data/results --slice country --measure nDCG --k 10 --json")
def show(  # noqa: PLR0913, PLR0917 - a filter each
    results: shared.Root,
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    model: shared.Models = None,
    measures: shared.OnlyMeasures = None,
    slice_: shared.Slices = None,
    k: shared.Cutoffs = None,
    json_: shared.Json = False,
    csv_: shared.Csv = False,
    all_: shared.All = False,
    gaps: Annotated[bool, typer.Option("--gaps", help="How far the groups of each slice lie apart")] = False,
    comparisons: Annotated[bool, typer.Option("--comparisons", help="Models against their baseline")] = False,
    nights: Annotated[int, typer.Option(min=1, help="Comparisons over at most as many nights")] = 1,
) -> None:
    """Show published metrics."""
    from rankeval_spark.cli import show as shown  # noqa: PLC0415 - pyarrow takes a moment

    slices = slice_ or ([shown.ANY_SLICE] if gaps else [])
    wanted = shown.RowSelection(date_, evaluation, model or [], measures or [], slices, k or [], nights)
    format_ = shared.chosen_format(is_csv=csv_, is_json=json_)
    shown.show_command(results, wanted, format_, gaps=gaps, comparisons=comparisons, is_all=all_)


@_command(
    "rankeval compare /data/results --against previous", "rankeval compare /data/results --against popular --slice any"
)
def compare(  # noqa: PLR0913, PLR0917 - a filter each
    results: shared.Root,
    against: Annotated[
        str, typer.Option("--against", help="previous: the night published before; a date; or a model of the night")
    ],
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    model: shared.Models = None,
    measures: shared.OnlyMeasures = None,
    slice_: shared.Slices = None,
    k: shared.Cutoffs = None,
    json_: shared.Json = False,
    csv_: shared.Csv = False,
    all_: shared.All = False,
) -> None:
    """Compare a published night with an earlier one, or its models with one of them; no input is read."""
    from rankeval_spark.cli.show import RowSelection, compare_command  # noqa: PLC0415 - pyarrow takes a moment

    wanted = RowSelection(date_, evaluation, model or [], measures or [], slice_ or [], k or [])
    compare_command(results, against, wanted, shared.chosen_format(is_csv=csv_, is_json=json_), is_all=all_)


@_command("rankeval plan /data/results", "rankeval plan /data/results --measure nDCG@10 --gain 0.01")
def plan(  # noqa: PLR0913, PLR0917 - an option each
    results: shared.Root,
    measures: shared.OnlyMeasures = None,
    gain: Annotated[float | None, typer.Option("--gain", help="Difference that is to be found, such as 0.01")] = None,
    relative: Annotated[bool, typer.Option("--relative", help="The gain is a share of the baseline's value")] = False,
    model: shared.Models = None,
    against: Annotated[str | None, typer.Option("--against", help="Baseline; by default that of the config")] = None,
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    k: shared.Cutoffs = None,
    power: Annotated[float, typer.Option("--power", help="Probability of finding the gain")] = 0.8,
    json_: shared.Json = False,
    all_: shared.All = False,
) -> None:
    """Show how large a difference each measure would find, or how many users and nights a gain takes."""
    from rankeval_spark.apps.published.planning import Aim  # noqa: PLC0415 - pyarrow takes a moment
    from rankeval_spark.cli.plan import plan_command  # noqa: PLC0415 - as above
    from rankeval_spark.cli.show import RowSelection  # noqa: PLC0415 - as above

    wanted = RowSelection(date_, evaluation, model or [], measures or [], (), k or [])
    plan_command(results, wanted, Aim(gain, relative, power), baseline=against, is_json=json_, is_all=all_)


@_command("rankeval user /data/results u42", "rankeval user /data/results u42 --date 2026-01-03 --k 20 --json")
def user(
    results: shared.Root,
    user_id: Annotated[str, typer.Argument(help="Id of the user", metavar="USER")],
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    k: Annotated[int, typer.Option("--k", help="Items of each list, and cutoff of the measures", min=1)] = 10,
    json_: shared.Json = False,
) -> None:
    """Show the lists of one user next to each other: the inputs of the night are read again."""
    from rankeval_spark.cli.show import RowSelection, user_command  # noqa: PLC0415 - pyarrow takes a moment

    user_command(results, user_id, RowSelection(date_, evaluation, ks=[k]), is_json=json_)


@_command(
    "rankeval explain /data/results u42 nDCG@10 --model als",
    "rankeval explain /data/results u42 AP@10 --model als --date 2026-01-03 --json",
)
def explain(
    results: shared.Root,
    user_id: Annotated[str, typer.Argument(help="Id of the user", metavar="USER")],
    measure: Annotated[
        str, typer.Argument(help="Measure of lists, of the night or not, with its cutoff", metavar="MEASURE")
    ],
    model: Annotated[str | None, typer.Option(help="Model whose list it is, where there are several")] = None,
    list_id: Annotated[str | None, typer.Option("--list", help="List, where the user has several")] = None,
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    json_: shared.Json = False,
) -> None:
    """Show how the value of a user comes about, rank by rank: the inputs of the night are read again."""
    from rankeval_spark.cli.show import RowSelection, explain_command  # noqa: PLC0415 - pyarrow takes a moment

    selection = RowSelection(date_, evaluation, [] if model is None else [model])
    explain_command(results, user_id, measure, selection, list_id, is_json=json_)


@_command("rankeval gate /data/results", "rankeval gate /data/results --date 2026-01-03 --config conf/stricter.yaml")
def gate(
    results: shared.Root,
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Take the rules of this config, not those the night ran with")
    ] = None,
    json_: shared.Json = False,
    all_: shared.All = False,
) -> None:
    """Check published results against the rules; exit code 6 where one is not met."""
    from rankeval_spark.cli.published import gate_command  # noqa: PLC0415 - pyarrow takes a moment

    gate_command(results, date_, evaluation, config, is_json=json_, is_all=all_)


@_command("rankeval report /data/results --out report.html --date 2026-01-03")
def report(
    results: shared.Root,
    out: Annotated[Path, typer.Option("--out", help="HTML file to write", metavar="FILE")],
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    baseline: Annotated[
        str | None, typer.Option(help="Draw the comparisons with this model; that of the config by default")
    ] = None,
    no_users: Annotated[
        bool, typer.Option("--no-users", help="Leave out the ids of users, and texts that can have one")
    ] = False,
    json_: shared.Json = False,
) -> None:
    """Write the report of a night: one HTML file with figures and tables, which needs no network."""
    from rankeval_spark.cli.published import report_command  # noqa: PLC0415 - pyarrow takes a moment

    report_command(results, out, date_, evaluation, baseline, is_json=json_, hides_users=no_users)


@_command(
    "rankeval log /data/results", "rankeval log /data/results --date 2026-01-03 --tracking-uri http://mlflow:5000"
)
def log(
    results: shared.Root,
    date_: shared.Night = None,
    evaluation: shared.EvaluationName = None,
    tracking_uri: Annotated[
        str | None, typer.Option(help="Server or store of MLflow; by default MLFLOW_TRACKING_URI", metavar="URI")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="Experiment of MLflow; by default the name of the evaluation", metavar="NAME")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave out the report of the night")] = False,
    json_: shared.Json = False,
) -> None:
    """Log a published night to MLflow: a run for each model; what is there already is not logged again."""
    from rankeval_spark.cli.published import log_command  # noqa: PLC0415 - pyarrow takes a moment

    log_command(
        results, date_, evaluation, tracking_uri=tracking_uri, experiment=experiment, no_report=no_report, is_json=json_
    )


@_command("rankeval runs /data/results", "rankeval runs /data/results --date 2026-01-03 --json")
def runs(
    results: shared.Root,
    date_: shared.Nights = None,
    evaluation: shared.EvaluationName = None,
    json_: shared.Json = False,
    all_: shared.All = False,
) -> None:
    """List the runs of a results root: their ids, what became of them, and why."""
    from rankeval_spark.cli.published import runs_command  # noqa: PLC0415 - pyarrow takes a moment

    runs_command(results, date_ or [], evaluation, is_json=json_, is_all=all_)


@_command("rankeval register /data/results --for duckdb")
def register(
    results: shared.Root,
    dialect: Annotated[str | None, typer.Option("--for", help="Whose SQL: duckdb or spark")] = None,
    schema: Annotated[str | None, typer.Option(help="Schema of the views; the current one by default")] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Make external tables in Spark's catalog instead; needs no --for")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="With --tables: take the section spark of this config")
    ] = None,
) -> None:
    """Print the SQL that makes views of the results in a catalog; nothing is run. With --tables, make tables there."""
    if tables or dialect is None:
        from rankeval_spark.cli.published import register_tables_command  # noqa: PLC0415 - imports pyspark

        if dialect is not None or not tables:
            found = "neither of them" if dialect is None else "both"
            raise ConfigError(Fault("--for and --tables", found, "one of them", "write --for duckdb to print views"))
        register_tables_command(results, schema, config)
        return
    from rankeval_spark.results import Results  # noqa: PLC0415 - pyarrow takes a moment
    from rankeval_spark.results.published_results import view_statements  # noqa: PLC0415 - as above

    made = view_statements(Results(results), dialect, schema=schema, where="--for")
    write_out("".join(f"{statement};\n\n" for statement in made.values()))


@_command("rankeval score /data/results --measure RR@20 --date 2026-01-03")
def score(
    results: shared.Root,
    measures: Annotated[
        list[str],
        typer.Option(
            *shared.MEASURE_OPTION, help="Measure to add; may be repeated", autocompletion=shared.measures_that_begin
        ),
    ],
    date_: shared.Nights = None,
    evaluation: shared.EvaluationName = None,
    json_: shared.Json = False,
) -> None:
    """Score published lists, by default of all dates, with more measures; nights need results.lists: true for this."""
    from rankeval_spark.cli.published import score_command  # noqa: PLC0415 - pyarrow takes a moment

    score_command(results, measures, date_ or [], evaluation, is_json=json_)


@_command("rankeval reproduce /data/results --run-id 20260103T041500-1a2b3c4d")
def reproduce(
    results: shared.Root,
    run_id: Annotated[str, typer.Option("--run-id", help="Published run: run_id of any published row")],
    config: Annotated[
        Path | None, typer.Option("--config", help="Take the section spark of this config: secrets are not recorded")
    ] = None,
    scratch: Annotated[
        str | None, typer.Option("--scratch", help="Folder to compute in; needed where executors are elsewhere")
    ] = None,
    json_: shared.Json = False,
) -> None:
    """Run a published run again, at the versions it read, and compare; exit code 7 where the results differ."""
    from rankeval_spark.cli.published import reproduce_command  # noqa: PLC0415 - imports pyspark

    reproduce_command(results, run_id, config, scratch, is_json=json_)


@_command("rankeval maintain /data/results --keep-days 90 --vacuum")
def maintain(
    results: shared.Root,
    keep_days: Annotated[
        int | None,
        typer.Option(
            "--keep-days",
            help="Delete lists, user_metrics and quarantined rows more than N days before the newest night",
            metavar="N",
        ),
    ] = None,
    date_: Annotated[str | None, typer.Option("--date", help="Count from this date, not the newest one")] = None,
    erase_user: Annotated[
        str | None,
        typer.Option(
            "--erase-user",
            help="Remove a user from current rows; older versions keep them until the retention ends and --vacuum runs",
            metavar="USER",
        ),
    ] = None,
    evaluation: Annotated[str | None, typer.Option(help="Delete and erase in this evaluation only")] = None,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Delete the files that no version needs; else they are counted")
    ] = False,
    one_run_per_root: Annotated[
        bool, typer.Option("--one-run-per-root", help="No run uses the root meanwhile; stores without locks need this")
    ] = False,
    json_: shared.Json = False,
) -> None:
    """Remove leftovers, merge small files, and what the options say; safe during runs where the store has locks."""
    from rankeval_spark.apps.maintenance import MaintenanceOptions  # noqa: PLC0415 - pyarrow takes a moment
    from rankeval_spark.cli.published import maintain_command  # noqa: PLC0415 - as above
    from rankeval_spark.config import parse_date  # noqa: PLC0415 - as above

    newest = parse_date(date_, where="--date") if date_ else None
    wanted = MaintenanceOptions(keep_days, newest, erase_user, evaluation, vacuum)
    maintain_command(results, wanted, one_run_per_root=one_run_per_root, is_json=json_)


@_command(
    "rankeval measures",
    "rankeval measures nDCG",
    "rankeval measures --search coverage",
    "rankeval measures --presets trec_eval",
    "rankeval measures --from torchmetrics RetrievalMAP",
)
def measures(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Measure to explain, preset with --presets, or the tool's measure with --from",
            autocompletion=shared.measures_that_begin,
        ),
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", help="Only measures whose names or text have these words", metavar="WORDS")
    ] = None,
    presets: Annotated[bool, typer.Option("--presets", help="The conventions of other tools instead")] = False,
    tool: Annotated[
        str | None,
        typer.Option("--from", help="What another tool calls its measures, and how to get them", metavar="TOOL"),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="With formula, options and source; of one measure all worked examples")
    ] = False,
    plugin: Annotated[
        list[str] | None, typer.Option("--plugin", help="Module with measures of your own; may be repeated")
    ] = None,
    json_: shared.Json = False,
) -> None:
    """List the measures, or explain one; with --presets and --from the conventions and names of other tools."""
    from rankeval_spark.cli import measures as shown  # noqa: PLC0415 - numpy takes a moment

    if tool is not None:
        shown.tools_command(tool, name, is_json=json_)
    elif presets:
        shown.presets_command(name, is_json=json_)
    else:
        shown.measures_command(name, words=search, plugins=plugin or (), is_all=all_, is_json=json_)


@_command(
    "rankeval reconcile log.parquet truth.parquet -m nDCG@10 --theirs 0.28",
    "rankeval reconcile log.csv truth.csv -m AP --ours 0.31 --theirs 0.2813",
)
def reconcile(  # noqa: PLR0913, PLR0917 - the arguments of the function of this name
    log: Annotated[str, typer.Argument(help="Recommendations: file or folder", metavar="LOG")],
    held_out: Annotated[str, typer.Argument(help="Judgements: file or folder", metavar="HELD_OUT")],
    measure: Annotated[
        str,
        typer.Option(
            *shared.MEASURE_OPTION,
            help="Measure of both numbers, with its cutoff",
            autocompletion=shared.measures_that_begin,
        ),
    ],
    theirs: Annotated[str, typer.Option(help="The other number; its digits say how exact it is")],
    ours: Annotated[str | None, typer.Option(help="Our number; by default it is computed")] = None,
    model: Annotated[str | None, typer.Option(help="Model whose lists they are of, where there are several")] = None,
    train: Annotated[str | None, typer.Option(help="Training data, for policies and options that read them")] = None,
    items: Annotated[str | None, typer.Option(help="Catalogue, for policies and options that read it")] = None,
    format_: Annotated[str | None, typer.Option("--format", help="Format of files whose ending says none")] = None,
    preset: Annotated[str | None, typer.Option(help="Conventions of a tool to start from")] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", help="Policy to start from, such as ties=expected; may be repeated"),
    ] = None,
    switches: Annotated[int, typer.Option(min=1, max=4, help="Most switches of a combination")] = 4,
    all_: Annotated[bool, typer.Option("--all", help="Show all combinations, not only ten")] = False,
    as_: Annotated[
        Literal["text", "markdown"], typer.Option("--as", help="Print text, or a table of Markdown")
    ] = "text",
    csv: shared.Csv = False,
    json_: shared.Json = False,
) -> None:
    """Find the policies and options that turn one number for these lists into another."""
    from rankeval_spark.cli.reconcile import reconcile_command  # noqa: PLC0415 - numpy takes a moment

    given: dict[str, Any] = {
        "ours": ours,
        "theirs": theirs,
        "model": model,
        "train": train,
        "items": items,
        "format": format_,
    }
    given |= {"preset": preset, "switches": switches, "most": None if all_ else 10}
    shown = shared.chosen_format(is_csv=csv, is_json=json_) if csv or json_ else as_
    reconcile_command(log, held_out, measure, policies=policy or (), format_=shown, **given)


@_command("rankeval trec qrels.txt run.txt -q -m ndcg_cut.10 -m map")
def trec(  # noqa: PLR0913, PLR0917 - the options of trec_eval
    qrels: Annotated[Path, typer.Argument(help="Judgements: topic, iteration, document, grade", metavar="QRELS")],
    run: Annotated[Path, typer.Argument(help="Run: topic, Q0, document, rank, score, name", metavar="RUN")],
    measures: Annotated[
        list[str] | None,
        typer.Option(
            *shared.MEASURE_OPTION, help="Such as map, P.5,10, ndcg_cut, all_trec, or one of ours; repeatable"
        ),
    ] = None,
    per_topic: Annotated[bool, typer.Option("-q", help="Print the lines of each topic too")] = False,
    is_complete: Annotated[bool, typer.Option("-c", help="Count topics that the run does not have as 0")] = False,
    level: Annotated[int, typer.Option("-l", min=1, help="Lowest grade of a relevant document")] = 1,
    max_documents: Annotated[int | None, typer.Option("-M", min=1, help="Documents of a topic that count")] = None,
    judged_only: Annotated[bool, typer.Option("-J", help="Take documents without a judgement out first")] = False,
    own_item: Annotated[
        Literal["keep", "drop", "drop_both"],
        typer.Option("--own-item", help="A document that is its topic: keep it, drop it of the run, or of both files"),
    ] = "keep",
    no_summary: Annotated[bool, typer.Option("-n", help="Print no lines for all topics")] = False,
    version: Annotated[int, typer.Option("--trec-eval", min=9, max=10, help="Whose numbers: those of 9 or of 10")] = 10,
    json_: shared.Json = False,
) -> None:
    """Evaluate a TREC run against TREC judgements, without Spark, and print what trec_eval prints."""
    from rankeval_spark.apps.trec_report import Settings, evaluate_files  # noqa: PLC0415 - pyarrow takes a moment

    settings = Settings(
        measures=measures or ["official"],
        level=level,
        max_documents=max_documents,
        own_item=own_item,
        judged_only=judged_only,
        is_complete=is_complete,
        per_topic=per_topic,
        has_summary=not no_summary,
        version=9 if version == 9 else 10,  # noqa: PLR2004 - the name of a version
    )
    lines = evaluate_files(qrels, run, settings).text()
    if json_:
        from rankeval_spark.cli.tables import trec_json  # noqa: PLC0415 - as above

        write_out(trec_json(lines))
        return
    for line in lines:
        write_out(f"{line}\n")  # typer ends the command quietly if the reader of the output has ended


@_command("rankeval doctor --root /data/results")
def doctor(
    root: Annotated[str | None, typer.Option("--root", help="Results root to test for writing")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Start no session, which takes most of the time")] = False,
    json_: shared.Json = False,
) -> None:
    """Check Java, jars, Python, time zone and disk, and say how to fix each fault; nothing is changed."""
    from rankeval_spark.cli.doctor import doctor_command  # noqa: PLC0415 - only this command

    raise typer.Exit(doctor_command(root, is_quick=quick, is_json=json_))


@_command("rankeval demo", "rankeval demo --workspace /data/demo")
def demo(
    workspace: Annotated[Path, typer.Option(help="Folder of the demo's config, logs, results and report")] = Path(
        "demo"
    ),
) -> None:
    """Train three recommenders on MovieLens 100K, evaluate three nights and show the result."""
    from rankeval_spark.cli.demo import demo_command  # noqa: PLC0415 - imports pyspark

    demo_command(workspace)
