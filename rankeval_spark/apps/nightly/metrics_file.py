"""A night as a text file of Prometheus, for the textfile collector of its node exporter."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from rankeval_spark import columns as C

if TYPE_CHECKING:
    from rankeval_spark.apps.nightly.backfill import DateOutcome

Sample: TypeAlias = tuple[str, Mapping[str, str], float | None]
"""Name of a metric without the prefix, labels, and value; None leaves it out."""

PREFIX: Final = "rankeval_night_"
HELP: Final[Mapping[str, str]] = {
    "published": "1 if the night was published, else 0",
    "exit_code": "Exit code of the night",
    "date_timestamp_seconds": "Beginning of the evaluation date in UTC",
    "finished_timestamp_seconds": "When the night ended, published or not",
    "duration_seconds": "How long the night took",
    "stage_duration_seconds": "How long a stage took",
    "rows": "Published rows of a table",
    "check_share": "Faulty rows, lists or users of a check as a share of those checked",
    "checks": "Checks with a verdict",
    "gate_verdicts": "Verdicts of the rules that decide whether a model may ship",
    "users": "Users in a mean",
    "mean": "Measure of a model over all users",
}
"""Metrics of a night; all are gauges."""


def metrics_text(outcome: DateOutcome, evaluation: str) -> str:
    """Return the metrics of a date in the text format, families together; one that failed has few."""
    samples: dict[str, list[str]] = {name: [] for name in HELP}
    for name, labels, value in _list_samples(outcome):
        if value is not None and math.isfinite(value):
            pairs = {C.EVALUATION: evaluation, **labels}.items()
            written = ",".join(f'{key}="{_escape(text)}"' for key, text in pairs)
            samples[name].append(f"{PREFIX}{name}{{{written}}} {value!r}")
    lines = []
    for name, values in samples.items():
        if values:
            lines += [f"# HELP {PREFIX}{name} {HELP[name]}", f"# TYPE {PREFIX}{name} gauge", *values]
    return "".join(f"{line}\n" for line in lines)


def _escape(text: str) -> str:
    r"""Escape a value of a label.

    >>> print(_escape('a "b"\n\\'))
    a \"b\"\n\\
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _list_samples(outcome: DateOutcome) -> Iterator[Sample]:
    """Yield the samples of a date."""
    day, result = outcome.evaluation_date, outcome.result
    yield "published", {}, int(result is not None)
    yield "exit_code", {}, int(outcome.exit_code)
    yield "date_timestamp_seconds", {}, datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    yield "finished_timestamp_seconds", {}, time.time()
    yield "duration_seconds", {}, outcome.seconds
    if result is None:
        return
    for stage, seconds in result.seconds.items():
        yield "stage_duration_seconds", {"stage": stage}, seconds
    for table, n_rows in result.n_rows.items():
        yield "rows", {"table": table}, n_rows
    for row in result.checks:
        yield "check_share", {"input": row["input"], "check": row["check"]}, row["share"]
    for metric, rows in (("checks", result.checks), ("gate_verdicts", result.gates)):
        for verdict, count in sorted(Counter(row["verdict"] for row in rows).items()):
            yield metric, {"verdict": verdict}, count
    for row in result.means:
        labels = {"model": row[C.MODEL_ID], "measure": row[C.MEASURE], "k": str(row[C.K])}
        yield "users", labels, row["n_users"]
        yield "mean", labels, row[C.VALUE]
