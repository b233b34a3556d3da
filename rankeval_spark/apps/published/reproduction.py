"""Run a published night again from what was recorded of it, and compare; nothing is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark import allowed_folders, columns as C
from rankeval_spark.apps.nightly.night import rehearse_night
from rankeval_spark.apps.nightly.night_plan import new_run_id
from rankeval_spark.apps.published.recorded_plan import pinned, plan_again
from rankeval_spark.apps.published.table_comparison import RecordedRun, TableComparison, compare_tables, left_out
from rankeval_spark.apps.published_runs import PastNight
from rankeval_spark.errors import ConfigError, Fault, InputError, nearest
from rankeval_spark.results import Event, Rehearsal, event_frame
from rankeval_spark.spark.session.builder import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.progress import Progress


@dataclass(frozen=True)
class InputVersions:
    """An input then and now; its version is None where the format has none, so that whatever is there now was read."""

    name: str
    format: str
    version: int | None
    n_rows: tuple[int | None, int | None]
    columns: tuple[str | None, str | None]

    @property
    def is_changed(self) -> bool:
        """Whether what was read is certainly not what the run read; unknown numbers say nothing."""
        return any(None not in pair and pair[0] != pair[1] for pair in (self.n_rows, self.columns))


@dataclass(frozen=True)
class Reproduction:
    """What came of running a night again."""

    run: RecordedRun
    inputs: tuple[InputVersions, ...]
    tables: tuple[TableComparison, ...]
    left_out: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether every table came out again."""
        return all(table.is_equal for table in self.tables)


def find_run(spark: SparkSession | None, root: str, run_id: str) -> RecordedRun:
    """Look a published run up.

    Raises
    ------
    InputError
        If there is no such run, or it was not published.
    """
    events = event_frame(spark, root, columns=(*C.RUN_KEY, "status"), is_lenient=True)
    own = [row for row in events if row[C.RUN_ID] == run_id]
    published = [row for row in events if row["status"] == "PUBLISHED"]
    if not any(row["status"] == "PUBLISHED" for row in own):
        raise InputError(_unknown(root, run_id, own, published))
    of_run = [(C.RUN_ID, "=", run_id), ("status", "=", "PUBLISHED")]
    night = PastNight(event_frame(spark, root, where=of_run, is_lenient=True)[0])
    newest = [row for row in published if _night_of(row) == _night_of(night.row)][-1]
    return RecordedRun(night, None if newest[C.RUN_ID] == run_id else newest[C.RUN_ID])


def _unknown(root: str, run_id: str, own: Sequence[Event], published: Sequence[Event]) -> Fault:
    if own:
        found = f"run {run_id!r}, which ended as {own[-1]['status']}"
        return Fault(f"results {root}", found, "a run that was published")
    ids = [row[C.RUN_ID] for row in published]
    hint = nearest(run_id, ids) or (f"the newest is {ids[-1]!r}" if ids else "")
    return Fault(f"results {root}", f"no run {run_id!r}", "the run_id of a published run", hint)


def _night_of(row: Event) -> tuple[object, object]:
    return row[C.EVALUATION], row[C.EVALUATION_DATE]


def reproduce_run(
    spark: SparkSession, root: str, run: RecordedRun, *, scratch: str | None = None, progress: Progress | None = None
) -> Reproduction:
    """Compute a published run again from its recorded config, at the recorded versions of its inputs, and compare.

    Parameters
    ----------
    scratch : str, optional
        Folder for what is computed, removed at the end; one of this machine where the executors are on it too.

    Raises
    ------
    InputError
        If an input, or its version, or the rows of a superseded run are gone.
    ChecksFailedError
        If an input that has no versions now fails a check.
    ConfigError
        If executors are on other machines and there is no ``scratch``.
    """
    night = run.night
    plan = plan_again(night, pinned(night.row), night.measures)
    with _folder(spark, scratch) as folder:
        rehearsal = Rehearsal(spark, folder, plan.run(new_run_id()))
        try:
            rehearse_night(spark, plan, rehearsal, progress=progress)
            return Reproduction(
                run, _inputs(night, rehearsal), compare_tables(spark, root, run, rehearsal), left_out(run)
            )
        finally:
            rehearsal.discard()


@contextmanager
def _folder(spark: SparkSession, scratch: str | None) -> Iterator[str]:
    """Give the folder that is computed into; one that is made here goes afterwards."""
    if scratch is not None:
        yield scratch
        return
    master = spark.conf.get("spark.master", "") or ""
    if not is_local(master):
        found = f"none, with executors on other machines ({master})"
        raise ConfigError(Fault("--scratch", found, "a folder that all executors can write to and read"))
    with allowed_folders.temporary_folder() as folder:
        yield folder


def _inputs(night: PastNight, rehearsal: Rehearsal) -> tuple[InputVersions, ...]:
    then = {one["name"]: one for one in night.row["inputs"]}
    return tuple(
        InputVersions(
            now.name,
            now.format,
            now.version,
            (then[now.name]["n_rows"], now.n_rows),
            (night.input_columns.get(now.name), now.columns),
        )
        for now in rehearsal.inputs
    )
