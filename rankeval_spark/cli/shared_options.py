"""Arguments, options, sessions and written files that several commands share."""

from __future__ import annotations

import os
import re
import shlex
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand
from typing_extensions import override

from rankeval_spark import allowed_folders
from rankeval_spark.cli.terminal import waiting
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.spark.version import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.config import EvaluationConfig

MEASURE_OPTION: Final = ("--measure", "--measures", "-m")
"""Names of the option for measures, the same in every command; each takes one measure and may be repeated."""

MIN_SHARE: Final = 1e-6  # users are drawn in millionths


def measures_that_begin(incomplete: str) -> list[str]:
    """Return the measures that begin with the typed text, for shell completion."""
    from rankeval_spark.measures import registry  # noqa: PLC0415 - numpy takes a moment

    return [entry.name for entry in registry.entries() if entry.name.startswith(incomplete)]


def share_of_users(text: str | float) -> float:
    """Parse ``--sample-users``; ConfigError if it is no share."""
    with suppress(ValueError):
        share = float(text)
        if MIN_SHARE <= share <= 1:
            return share
    expected, fix = "a share of the users above 0 and up to 1, not their number", "5 % of them are 0.05"
    raise ConfigError(Fault("--sample-users", str(text), expected, fix))


def cutoff(text: str) -> int:
    """Parse one ``--k``; ConfigError if it is no cutoff."""
    if re.fullmatch(r"\d{1,9}", text, re.ASCII):
        return int(text)
    fix = "repeat --k for several" if "," in text or " " in text else ""
    raise ConfigError(Fault("--k", text, "a whole number such as 10, or 0 for the whole list", fix))


Config = Annotated[Path, typer.Argument(help="YAML file of the evaluation", metavar="CONFIG")]
Root = Annotated[str, typer.Argument(help="Results root: the folder of the published tables", metavar="RESULTS")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key of the config: a.b=c; may be repeated", metavar="KEY=VALUE"),
]
Share = Annotated[
    float,
    typer.Option(
        "--sample-users",
        help="Evaluate this share of the users, such as 0.05, chosen by a hash",
        parser=share_of_users,
        metavar="SHARE",
    ),
]
Night = Annotated[str | None, typer.Option("--date", help="Evaluation date; by default the newest with means")]
Nights = Annotated[
    list[str] | None, typer.Option("--date", help="Only this date; may be repeated; all dates by default")
]
EvaluationName = Annotated[str | None, typer.Option("--evaluation", help="Name of the evaluation")]
Models = Annotated[list[str] | None, typer.Option("--model", help="Only this model; may be repeated")]
OnlyMeasures = Annotated[
    list[str] | None,
    typer.Option(
        *MEASURE_OPTION,
        help="Only this measure, such as nDCG or nDCG@10; may be repeated",
        autocompletion=measures_that_begin,
    ),
]
Slices = Annotated[list[str] | None, typer.Option("--slice", help="A slice such as country; 'any' for all")]
Cutoffs = Annotated[
    list[int] | None,
    typer.Option(
        "--k", help="Only this cutoff; 0 is the whole list; may be repeated", parser=cutoff, metavar="INTEGER"
    ),
]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs")]
MetricsFile = Annotated[
    Path | None,
    typer.Option("--metrics-file", help="Write metrics of the night as text of Prometheus", metavar="FILE"),
]
All = Annotated[bool, typer.Option("--all", help="Show all rows, not only the first screen")]


def config_and_dates(
    path: Path, overrides: Sequence[str], dates: Sequence[tuple[str, str]]
) -> tuple[EvaluationConfig, list[date]]:
    """Read a config and dates, each with the option that has it; ConfigError with the faults of all."""
    from rankeval_spark.config import load_config, parse_date  # noqa: PLC0415 - pydantic takes a moment

    faults: list[Fault] = []
    read: list[date] = []
    for where, text in dates:
        try:
            read.append(parse_date(text, where=where))
        except ConfigError as error:
            faults += error.faults
    try:
        config = load_config(path, overrides)
    except ConfigError as error:
        raise ConfigError(*faults, *error.faults) from None
    if faults:
        raise ConfigError(*faults)
    return config, read


def chosen_format(*, is_csv: bool, is_json: bool) -> str:
    """Return the format of ``--csv`` and ``--json``; ConfigError for both."""
    if is_csv and is_json:
        raise ConfigError(Fault("--json and --csv", "both", "one of them"))
    return "json" if is_json else "csv" if is_csv else "table"


class OneValueCommand(TyperCommand):
    """A command that refuses to be given an option of one value twice: the parser would silently keep the last."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count the options before they are parsed."""
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        counts: dict[Any, int] = Counter(given)  # by option of the parser below typer, which has several versions
        for option, count in counts.items():
            takes_one_value = option.param_type_name == "option" and not (option.multiple or option.is_flag)
            if count > 1 and takes_one_value:
                name = option.opts[0]
                times = "twice" if count == 2 else f"{count} times"  # noqa: PLR2004 - its own word
                is_day = (ctx.info_name, name) == ("run", "--date")
                instead = "use rankeval backfill for several dates" if is_day else "it takes one value"
                ctx.fail(f"{name} was given {times}; {instead}")
        return super().parse_args(ctx, args)


def start(name: str, **options: Any) -> SparkSession:  # noqa: ANN401 - those of `build_session`
    """Start a session and show that it starts."""
    with waiting("starting Spark"):
        return new_session(name, **options)


def new_session(name: str, **options: Any) -> SparkSession:  # noqa: ANN401 - those of `build_session`
    """Start a session; UnsupportedSparkError without pyspark, or with one that this package does not support."""
    require_spark()
    from rankeval_spark.spark.session import build_session  # noqa: PLC0415 - imports pyspark

    return build_session(name, **options)


def require_file(path: Path, option: str, *, example: str) -> None:
    """Raise ConfigError for a path to which no file can be written, before anything is read."""
    allowed_folders.require_allowed((option, str(path)))
    folder = path.absolute().parent
    if not folder.is_dir():
        quoted = shlex.quote(str(folder))
        raise ConfigError(Fault(option, f"no folder {folder}", "a file in a folder that exists", f"mkdir -p {quoted}"))
    if path.exists() and not path.is_file():
        raise ConfigError(Fault(option, f"{path}, which is no file", "a file", f"{option} {path / example}"))


def write_atomically(text: str, path: Path, option: str) -> None:
    """Write a file whole or not at all: readers see the one before it, or this one; ConfigError if it fails."""
    goal = path.resolve()
    draft = goal.with_name(f".{goal.name}-{uuid.uuid4().hex}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, goal)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(Fault(option, f"{path}: {reason}", "a file that can be written")) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
