"""A published night that is run again from what was recorded of it, and compared; nothing is published."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import __version__, allowed_folders, columns as C, schemas
from rankeval_spark.apps.nightly.night import rehearse_night
from rankeval_spark.apps.nightly.night_plan import new_run_id, pin_config, plan_again
from rankeval_spark.apps.published_runs import PastNight
from rankeval_spark.errors import ConfigError, Fault, FaultsError, InputError, nearest
from rankeval_spark.inputs.spark.opening import explain
from rankeval_spark.measures.plugins import load_plugins
from rankeval_spark.result_rows import check_rows
from rankeval_spark.results import Rehearsal, Results, event_frame, results_at
from rankeval_spark.results.spark_reader import read_table
from rankeval_spark.spark.plans import table_diff
from rankeval_spark.spark.session.settings import is_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.apps.progress import Progress
    from rankeval_spark.results import Event
    from rankeval_spark.schemas import Schema

MAX_EXAMPLES: Final = 3

CARRIED: Final = (schemas.GATES.name, schemas.CHECKS.name)
"""Tables that ``rankeval score`` takes over from the run before as they are."""


@dataclass(frozen=True)
class RecordedRun:
    """A run that was published, with what became of its rows."""

    night: PastNight  # its PUBLISHED event
    successor: str | None  # run that published the same night later, and replaced its rows

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.night.row[C.RUN_ID])

    @property
    def is_foreign(self) -> bool:
        """True if another version of this package wrote its rows."""
        return bool(self.night.row["code_version"] != __version__)

    @property
    def previous_rules(self) -> list[int]:
        """Numbers of the gates that look at nights before."""
        rules = enumerate(self.night.config.gates, 1)
        return [number for number, gate in rules if gate.needs_previous or gate.sequential]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Texts on what is not compared, because it depends on more than the inputs and the config of the run."""
        newer = "columns without a value in its rows, which its version may not have known"
        of_version = (newer,) if self.is_foreign else ()
        if self.night.was_scored_again:
            return (f"{' and '.join(CARRIED)}, which `rankeval score` took over from the run before", *of_version)
        rules = ", ".join(map(str, self.previous_rules))
        of_gates = [f"rules {rules} of gates, which look at nights before"] if rules else []
        of_checks = f"the checks {', '.join(check_rows.NOT_REPEATED)}, which look at the nights before or at the clock"
        asked = self.night.config.comparisons
        pooled = f"comparisons of the test {C.POOLED}, which look at the nights before"
        of_pooled = [pooled] if asked is not None and asked.nights > 1 else []
        return (of_checks, *of_gates, *of_pooled, *of_version)


@dataclass(frozen=True)
class InputVersions:
    """An input then and now; without a version, whatever is there now was read."""

    name: str
    format: str
    version: int | None
    n_rows: tuple[int | None, int | None]
    columns: tuple[str | None, str | None]

    @property
    def is_changed(self) -> bool:
        """True if what was read is certainly not what the run read; unknown numbers say nothing."""
        return any(None not in pair and pair[0] != pair[1] for pair in (self.n_rows, self.columns))


@dataclass(frozen=True)
class TableComparison:
    """A table of the run and the same table made again."""

    table: str
    n_recorded: int  # rows that the run published
    n_published: int  # those of them that are still there
    n_missing: int  # this and the next three as `table_diff.difference_counts` counts them
    n_extra: int
    n_differing: int
    n_rounded: int
    columns: tuple[tuple[str, int, float | None], ...] = ()  # that differ, in how many rows, by how much at most
    examples: tuple[str, ...] = ()  # keys of a few rows that are not the same

    @property
    def n_gone(self) -> int:
        """Rows that the run published and that are no longer there: retention, or the erasure of a user."""
        return max(0, self.n_recorded - self.n_published)

    @property
    def is_equal(self) -> bool:
        """True if all rows that are still there came out again, and no other; rounding aside."""
        return not self.n_missing and not self.n_differing and self.n_extra == self.n_gone


@dataclass(frozen=True)
class Reproduction:
    """Comparison of a night with its rerun."""

    run: RecordedRun
    inputs: tuple[InputVersions, ...]
    tables: tuple[TableComparison, ...]

    @property
    def is_equal(self) -> bool:
        """True if every table came out again."""
        return all(table.is_equal for table in self.tables)


def find_run(root: str, run_id: str) -> RecordedRun:
    """Return a published run; raises InputError if there is no such run, or it was not published."""
    events = event_frame(root, columns=(*C.RUN_KEY, "status"), is_lenient=True)
    require_published(root, run_id, events)
    of_run = [(C.RUN_ID, "=", run_id), ("status", "=", "PUBLISHED")]
    night = PastNight(event_frame(root, where=of_run, is_lenient=True)[0])
    of_night = (night.evaluation, night.evaluation_date, "PUBLISHED")
    same = [row[C.RUN_ID] for row in events if (row[C.EVALUATION], row[C.EVALUATION_DATE], row["status"]) == of_night]
    return RecordedRun(night, None if same[-1] == run_id else same[-1])


def require_published(root: str, run_id: str, events: Sequence[Event]) -> None:
    """Raise InputError, with the nearest id, where no event says that a run was published."""
    outcomes = [row["status"] for row in events if row[C.RUN_ID] == run_id]
    if "PUBLISHED" in outcomes:
        return
    if outcomes:
        found = f"run {run_id!r}, which ended as {outcomes[-1]}"
        raise InputError(Fault(f"results root {root}", found, "a run that was published"))
    ids = [row[C.RUN_ID] for row in events if row["status"] == "PUBLISHED"]
    hint = nearest(run_id, ids) or (f"the newest is {ids[-1]!r}" if ids else "")
    raise InputError(Fault(f"results root {root}", f"no run {run_id!r}", "the run_id of a published run", hint))


def reproduce_run(
    spark: SparkSession, root: str, run: RecordedRun, *, scratch: str | None = None, progress: Progress | None = None
) -> Reproduction:
    """Compute a published run again from its recorded config, at the recorded versions of its inputs, and compare.

    What is computed is in the folder ``scratch`` until the end; by default on this machine, if the executors are too.
    Raises InputError if an input, or its version, or the rows of a superseded run are gone; ChecksFailedError if an
    input that has no versions now fails a check; ConfigError if executors are on other machines and there is no
    ``scratch``.
    """
    night = run.night
    config = pin_config(night.row)
    load_plugins(config.plugins, where="plugins")
    plan = plan_again(night, config, night.measures)
    with ExitStack() as stack:
        if scratch is None:
            master = spark.conf.get("spark.master", "") or ""
            if not is_local(master):
                found = f"none, with executors on other machines ({master})"
                raise ConfigError(Fault("--scratch", found, "a folder that all executors can write to and read"))
            scratch = stack.enter_context(allowed_folders.temporary_folder())
        rehearsal = Rehearsal(scratch, plan.run(new_run_id()))
        stack.callback(rehearsal.remove)
        rehearse_night(spark, plan, rehearsal, root=root, progress=progress)
        then, columns = {fact["name"]: fact["n_rows"] for fact in night.row["inputs"]}, night.input_columns
        inputs = []
        for read in rehearsal.inputs:
            n_rows, names = (then[read.name], read.n_rows), (columns.get(read.name), read.columns)
            inputs.append(InputVersions(read.name, read.format, read.version, n_rows, names))
        return Reproduction(run, tuple(inputs), _compare_tables(spark, root, run, rehearsal))


def _compare_tables(
    spark: SparkSession, root: str, run: RecordedRun, rehearsal: Rehearsal
) -> tuple[TableComparison, ...]:
    """Compare every table that the run or its rerun has.

    A superseded run is read at the versions that it published; InputError if these are no longer retained.
    """
    replaced, recorded = run.successor is not None, run.night.row["n_rows"]
    results = results_at(spark, root, run.night.row["table_versions"]) if replaced else Results(root, spark)
    names = {*recorded, *rehearsal.n_rows} - set(CARRIED if run.night.was_scored_again else ())

    def staged_rows(table: str) -> DataFrame | None:
        return read_table(spark, rehearsal.root, table) if table in rehearsal.n_rows else None

    try:
        rows = {
            schema.name: _differences(results, run, schema, staged_rows(schema.name))
            for schema in schemas.PUBLISHED
            if schema.name in names
        }
        counts = {row["table"]: row.asDict() for row in table_diff.difference_counts(rows).collect()}
        compared = []
        for schema in (each for each in schemas.PUBLISHED if each.name in rows):
            counted = counts[schema.name]
            # Of these some rows are left out, and none is ever removed: all that are there were published.
            is_partial = schema.name in (*CARRIED, schemas.COMPARISONS.name)
            n_recorded = counted["n_published"] if is_partial else recorded.get(schema.name, 0)
            found = TableComparison(n_recorded=n_recorded, **counted)
            if not found.is_equal or found.n_rounded:
                columns = table_diff.differences_by_column(rows[schema.name]).collect()
                found = replace(
                    found, columns=tuple((row["column"], row["n_rows"], row["distance"]) for row in columns)
                )
            if not found.is_equal:
                examples = table_diff.difference_examples(rows[schema.name], key=schema.key).take(MAX_EXAMPLES)
                found = replace(found, examples=tuple(row["example"] for row in examples))
            compared.append(found)
        return tuple(compared)
    except Exception as error:
        if not replaced or not (isinstance(error, FaultsError) or explain(error, {})):
            raise
        gone = f"run {run.run_id}, whose rows run {run.successor} replaced, and versions that are no longer retained"
        fix = "reproduce the newer run"
        raise InputError(Fault(f"results root {root}", gone, "the rows that the run published", fix)) from error


def _differences(results: Results, run: RecordedRun, schema: Schema, again: DataFrame | None) -> DataFrame:
    """Compare the published rows of a table with those made again, without what cannot be repeated."""
    of_run = {C.EVALUATION: run.night.evaluation, C.EVALUATION_DATE: run.night.evaluation_date, C.RUN_ID: run.run_id}
    published = results.published(schema.name)
    for column, value in of_run.items():
        published = published.where(F.col(column) == F.lit(value))
    if run.is_foreign:  # another version may not have known columns in which no row has a value
        names = [field.name for field in schema.fields if field.nullable]
        counts = published.agg(*(F.count(name).alias(name) for name in names)).collect()[0]
        published = published.drop(*(name for name in names if not counts[name]))
    pair = [published, published.limit(0) if again is None else again]
    if schema is schemas.CHECKS:
        pair = [frame.where(~F.col("check").isin(*check_rows.NOT_REPEATED)) for frame in pair]
    if schema is schemas.COMPARISONS:
        pair = [frame.where(F.col("test") != C.POOLED) for frame in pair]
    if schema is schemas.GATES:
        pair = [frame.where(~F.col("gate").isin(*run.previous_rules)) for frame in pair]
    return table_diff.to_differences(*pair, key=schema.key)
