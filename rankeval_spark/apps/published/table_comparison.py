"""The tables of a published run compared with those of its rerun."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import __version__, columns as C, schemas
from rankeval_spark.errors import Fault, FaultsError, InputError
from rankeval_spark.inputs.spark import explain
from rankeval_spark.result_rows import check_rows
from rankeval_spark.results import Rehearsal, Results, results_at
from rankeval_spark.spark.plans import table_diff

if TYPE_CHECKING:
    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.schemas import Schema

MOST_EXAMPLES: Final = 3

CARRIED: Final = (schemas.GATES.name, schemas.CHECKS.name)
"""Tables that ``rankeval score`` takes over from the run before as they are."""


@dataclass(frozen=True)
class RecordedRun:
    """A run that was published, with what became of its rows.

    Attributes
    ----------
    night : PastNight
        Its PUBLISHED event.
    successor : str or None
        Run that published the same night later, and replaced its rows.
    """

    night: PastNight
    successor: str | None

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.night.row[C.RUN_ID])

    @property
    def is_foreign(self) -> bool:
        """Whether another version of this package wrote its rows."""
        return bool(self.night.row["code_version"] != __version__)


@dataclass(frozen=True)
class TableComparison:
    """A table of the run and the same table made again.

    Attributes
    ----------
    n_recorded, n_published : int
        Rows that the run published, and those of them that are still there.
    n_missing, n_extra, n_differing, n_rounded : int
        As :func:`rankeval_spark.spark.plans.table_diff.difference_counts` counts them.
    columns : tuple of (str, int, float or None)
        Columns that differ, in how many rows, and by how much at most.
    examples : tuple of str
        Keys of a few rows that are not the same.
    """

    table: str
    n_recorded: int
    n_published: int
    n_missing: int
    n_extra: int
    n_differing: int
    n_rounded: int
    columns: tuple[tuple[str, int, float | None], ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def n_gone(self) -> int:
        """Rows that the run published and that are no longer there: retention, or the erasure of a user."""
        return max(0, self.n_recorded - self.n_published)

    @property
    def is_equal(self) -> bool:
        """Whether all rows that are still there came out again, and no other; rounding aside."""
        return not self.n_missing and not self.n_differing and self.n_extra == self.n_gone


def left_out(run: RecordedRun) -> tuple[str, ...]:
    """Say what is not compared: what depends on more than the inputs and the config of the run."""
    of_version = ["columns without a value in its rows, which its version may not have known"] if run.is_foreign else []
    if run.night.was_scored_again:
        return (f"{' and '.join(CARRIED)}, which `rankeval score` took over from the run before", *of_version)
    rules = ", ".join(map(str, _previous_rules(run.night)))
    of_gates = [f"rules {rules} of gates, which look at the night before"] if rules else []
    of_checks = f"the checks {', '.join(check_rows.NOT_REPEATED)}, which look at the nights before or at the clock"
    return (of_checks, *of_gates, *of_version)


def compare_tables(
    spark: SparkSession, root: str, run: RecordedRun, rehearsal: Rehearsal
) -> tuple[TableComparison, ...]:
    """Compare every table that the run or its rerun has.

    The rows of a run that was superseded are read at the versions that it published, while these are retained.

    Raises
    ------
    InputError
        If they no longer are.
    """
    replaced = run.successor is not None
    results = results_at(spark, root, run.night.row["table_versions"]) if replaced else Results(spark, root)
    try:
        return _tables(results, run, rehearsal)
    except Exception as error:
        if not replaced or not (isinstance(error, FaultsError) or explain(error, {})):
            raise
        found = f"run {run.run_id}, whose rows run {run.successor} replaced, and versions that are no longer retained"
        fix = "reproduce the newer run"
        raise InputError(Fault(f"results {root}", found, "the rows that the run published", fix)) from error


def _tables(results: Results, run: RecordedRun, rehearsal: Rehearsal) -> tuple[TableComparison, ...]:
    recorded = run.night.row["n_rows"]
    carried = CARRIED if run.night.was_scored_again else ()
    made = [
        schema
        for schema in schemas.PUBLISHED
        if schema.name in {*recorded, *rehearsal.n_rows} and schema.name not in carried
    ]
    rows = {schema.name: _rows(results, run, rehearsal, schema) for schema in made}
    counts = {row["table"]: row.asDict() for row in table_diff.difference_counts(rows).collect()}
    return tuple(_compared(rows[one.name], one, counts[one.name], recorded.get(one.name, 0)) for one in made)


def _rows(results: Results, run: RecordedRun, rehearsal: Rehearsal, schema: Schema) -> DataFrame:
    of_run = {C.EVALUATION: run.night.evaluation, C.EVALUATION_DATE: run.night.evaluation_date, C.RUN_ID: run.run_id}
    published = results.published(schema.name)
    for column, value in of_run.items():
        published = published.where(F.col(column) == F.lit(value))
    if run.is_foreign:
        published = _without_unknown_columns(published, schema)
    staged = rehearsal.staged(schema.name)
    pair = [published, published.limit(0) if staged is None else staged]
    if schema is schemas.CHECKS:
        pair = [frame.where(~F.col("check").isin(*check_rows.NOT_REPEATED)) for frame in pair]
    if schema is schemas.GATES:
        pair = [frame.where(~F.col("gate").isin(*_previous_rules(run.night))) for frame in pair]
    return table_diff.to_differences(*pair, key=schema.key)


def _without_unknown_columns(published: DataFrame, schema: Schema) -> DataFrame:
    """Leave out columns in which no row has a value: another version may not have known them."""
    names = [field.name for field in schema.fields if field.nullable]
    counts = published.agg(*(F.count(name).alias(name) for name in names)).collect()[0]
    return published.drop(*(name for name in names if not counts[name]))


def _previous_rules(night: PastNight) -> list[int]:
    return [number for number, gate in enumerate(night.config.gates, 1) if gate.needs_previous]


def _compared(rows: DataFrame, schema: Schema, counts: dict[str, Any], n_recorded: int) -> TableComparison:
    # Of checks and gates some rows are left out, and none is ever removed: all that are there were published.
    recorded = counts["n_published"] if schema.name in CARRIED else n_recorded
    found = TableComparison(n_recorded=recorded, **counts)
    if found.is_equal and not found.n_rounded:
        return found
    columns = table_diff.differences_by_column(rows).collect()
    examples = [] if found.is_equal else table_diff.difference_examples(rows, key=schema.key).take(MOST_EXAMPLES)
    return replace(
        found,
        columns=tuple((row["column"], row["n_rows"], row["distance"]) for row in columns),
        examples=tuple(row["example"] for row in examples),
    )
