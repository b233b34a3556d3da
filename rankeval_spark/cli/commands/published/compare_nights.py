"""``rankeval compare``: a published night against an earlier one, or its models against one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.apps.history.published_runs import PastNight, chosen_nights, earlier_nights, published_nights
from rankeval_spark.apps.published.comparison import ComparisonSelection, compare_models, compare_nights
from rankeval_spark.cli.commands.published.show_results import ANY_SLICE, COMPARISON_COLUMNS, RowSelection
from rankeval_spark.cli.display import tables
from rankeval_spark.cli.display.terminal import console, say_note, write_out
from rankeval_spark.cli.sessions import session_for
from rankeval_spark.config import parse_date
from rankeval_spark.errors import ConfigError, Fault, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREVIOUS: Final = "previous"

NIGHT_COLUMNS: Final = (
    *(C.EVALUATION, C.EVALUATION_DATE, "earlier_date", C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K),
    *("n_users", "n_earlier_users", "n_common_users", C.VALUE, "earlier_value", "delta", "ci_low", "ci_high"),
    *("ci_level", "relative_delta", "relative_ci_low", "relative_ci_high", "test", "p_value", "p_adjusted"),
    *("correction", "family_size", "reason", "is_small", "verdict"),
)

_ORDER: Final = (C.SLICE, C.SLICE_VALUE, C.MODEL_ID, C.MEASURE, C.K)


def compare_command(root: str, against: str, selection: RowSelection, format_: str) -> None:
    """Print how a night differs from another one, or its models from one of them."""
    asked = ComparisonSelection(
        selection.models,
        selection.names,
        selection.ks,
        None if ANY_SLICE in selection.slices else list(selection.slices) or [C.ALL_USERS],
    )
    spark = session_for(root, "compare")
    night = chosen_night(spark, root, selection)
    before = _other(spark, root, night, against)
    if before is None:
        found = compare_models(spark, root, night, against, asked)
    else:
        found = compare_nights(spark, root, night, before, asked)
    for text in [*found.notes, *([] if found.rows else ["nothing to compare: no row matches"])]:
        say_note(text)  # on standard error, so that CSV and JSON stay what they are
    rows = [{**_names(night, before), **row} for row in sorted(found.rows, key=_place)]
    if format_ in tables.WRITERS:
        columns = COMPARISON_COLUMNS if before is None else NIGHT_COLUMNS
        write_out(tables.WRITERS[format_](rows, columns))
    elif rows:
        out = console()
        out.print(tables.comparisons(rows, _title(night, before), width=out.width))


def chosen_night(spark: SparkSession | None, root: str, selection: RowSelection) -> PastNight:
    """Find the night that is meant: of the date, else the newest one."""
    nights = chosen_nights(spark, root, evaluation=selection.evaluation, day=selection.day)
    if len(nights) > 1:
        names = ", ".join(night.evaluation for night in nights)
        found = "several evaluations" + (f" with results of {selection.day}" if selection.day else "")
        raise ConfigError(Fault("--evaluation", found, f"one of: {names}", "name one"))
    return nights[0]


def _other(spark: SparkSession | None, root: str, night: PastNight, against: str) -> PastNight | None:
    """Find the night to compare with; None where a model is meant."""
    if against == PREVIOUS:
        earlier = earlier_nights(spark, root, night, at_most=1)
        if not earlier:
            found, fix = f"no published night before {night}", "name a date or a model with --against"
            raise InputError(Fault("--against previous", found, "an earlier night with results", fix))
        return earlier[0]
    if not re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", against):
        return None
    day = parse_date(against, where="--against")
    if day == night.evaluation_date:
        raise ConfigError(Fault("--against", f"{day}, the night itself", "another night, or a model"))
    return published_nights(spark, root, evaluation=night.evaluation, dates=[day])[0]


def _names(night: PastNight, before: PastNight | None) -> dict[str, Any]:
    names: dict[str, Any] = {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date}
    return {**names, tables.OTHER_TESTS: {}} if before is None else {**names, "earlier_date": before.evaluation_date}


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row[C.SLICE] != C.ALL_USERS, *(row[name] for name in _ORDER))


def _title(night: PastNight, before: PastNight | None) -> str:
    if before is None:
        return str(night)
    return f"{night} against {before.evaluation_date}, unpaired: the nights share only some of their users"
