"""``rankeval compare``: a published night against an earlier one, or its models against one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.apps.published.comparison import ComparisonSelection, compare_models, compare_nights
from rankeval_spark.apps.published_runs import PastNight, earlier_nights, published_nights
from rankeval_spark.cli import tables
from rankeval_spark.cli.shared_options import session_for
from rankeval_spark.cli.show import ANY_SLICE, COMPARISON_COLUMNS, RowSelection, chosen_night
from rankeval_spark.cli.terminal import console, say_note, write_out
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


def compare_command(root: str, against: str, selection: RowSelection, format_: str) -> None:
    """Print the differences between two nights, or between a night's models and one of them."""
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
    names: dict[str, Any] = {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date}
    if before is None:
        names[tables.OTHER_TESTS] = {}
    else:
        names["earlier_date"] = before.evaluation_date
    rows = [{**names, **row} for row in sorted(found.rows, key=_place)]
    if format_ in tables.WRITERS:
        columns = COMPARISON_COLUMNS if before is None else NIGHT_COLUMNS
        write_out(tables.WRITERS[format_](rows, columns))
    elif rows:
        title, out = str(night), console()
        if before is not None:
            title += f" against {before.evaluation_date}, unpaired: the nights share only some of their users"
        out.print(tables.comparisons(rows, title, width=out.width))


def _other(spark: SparkSession | None, root: str, night: PastNight, against: str) -> PastNight | None:
    """Return the night to compare with; None if ``against`` is a model."""
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


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    order = (C.SLICE, C.SLICE_VALUE, C.MODEL_ID, C.MEASURE, C.K)
    return (row[C.SLICE] != C.ALL_USERS, *(row[name] for name in order))
