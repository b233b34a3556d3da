"""Reading published results: always whole runs, at the versions that the newest commit of ``runs`` names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.results import journal
from rankeval_spark.results.file_store import normalise
from rankeval_spark.results.journal import COMMITS, MAINTAINED, MAINTAINING, PUBLISHED
from rankeval_spark.results.local_tables import DamagedResultsError, Requested, to_rows
from rankeval_spark.results.readers import reader_of, require_whole, spark_reader
from rankeval_spark.spark.version import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.journal import Event
    from rankeval_spark.results.local_tables import Filters
    from rankeval_spark.results.readers import Reader

Frame = TypeVar("Frame", default=Any)  # `pyarrow.Table` without Spark, `pyspark.sql.DataFrame` with it
Value: TypeAlias = str | int | float | date | None
Values: TypeAlias = Value | Sequence[Value]  # allowed values of a column: one, or several; None for any
Day: TypeAlias = date | str
Days: TypeAlias = Day | Sequence[Day] | None
Names: TypeAlias = str | Sequence[str] | None
Deleted = dict[tuple[str, date], frozenset[str]]  # names of tables by evaluation and date

OF_USERS: Final = ("lists", "user_metrics")
"""Tables that grow with the users: ``rankeval maintain --keep-days`` deletes their old nights."""

DELETED: Final = "deleted by rankeval maintain --keep-days"
FIX: Final = "its metrics, comparisons, gates and checks are kept; run the date again to have its users back"


class PublishedResults(Generic[Frame]):
    """Reads the published tables of a root, pinned; see ``Results``.

    Parameters
    ----------
    spark : SparkSession or None
        Where DataFrames are wanted; else the root itself is accepted here.
    root : str or None
        Local path or URI of the results root.
    """

    def __init__(self, spark: SparkSession | str | None, root: str | None) -> None:
        session, location = (None, spark) if isinstance(spark, str) else (spark, root)
        self._session = session
        if location is None:
            raise ConfigError(Fault("Results(root=)", "none", "the results root of earlier runs"))
        self._root = normalise(location)
        self._small: Reader[Any, Any] = reader_of(session, self._root)
        self._reader: Reader[Any, Frame] = self._small
        if session is not None:
            require_spark()
            self._reader = spark_reader(session, self._root)
        self._versions: Mapping[str, int] | None = None
        self._history = pa.table({})

    def refresh(self) -> Self:
        """Look up again which versions are published; return self."""
        self._versions = None
        return self

    def runs(self, *, date: Days = None, evaluation: Names = None) -> Frame:
        """Every event of every run, those of failed and running ones included.

        Events of damaged files are left out, and a warning names the files with their nights.
        """
        where = _night(date, evaluation)
        try:
            self._small.scan(schemas.RUNS.name, where=where)
        except DamagedResultsError:  # found on a local disk, whoever reads it; Spark cannot leave out a file
            return self._reader.of_arrow(self._small.arrow(self._small.readable_events(where)))
        return self._reader.frame(self._reader.scan(schemas.RUNS.name, where=where))

    def lists(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a list: ranks and gains of its hits; ``equal`` are columns and the value they must have."""
        return self._frame("lists", date, evaluation, equal)

    def user_metrics(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a list and cutoff, a column a measure; NULL where undefined *or* not requested."""
        return self._frame("user_metrics", date, evaluation, equal)

    def metrics(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a model, slice, measure and cutoff; of all nights without ``date``.

        ``equal`` are columns and their values: the cutoff of nDCG@10 is ``k=10``, and what no row has finds none.
        """
        return self._frame("metrics", date, evaluation, equal)

    def group_metrics(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a model, slice and statistic of its groups; none without slices and item slices."""
        return self._frame("group_metrics", date, evaluation, equal)

    def comparisons(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a model against a baseline, by slice, measure and cutoff; none where nothing was compared."""
        return self._frame("comparisons", date, evaluation, equal)

    def gates(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a rule for a model on a slice, with the verdict in a sentence; none where there is no rule.

        Of all nights without ``date``.
        """
        return self._frame("gates", date, evaluation, equal)

    def checks(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a check of an input."""
        return self._frame("checks", date, evaluation, equal)

    def user_values(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """Long view of :meth:`user_metrics`: a row a list, measure and cutoff that its run computed.

        ``value`` is NULL only where the measure is undefined. Of all nights without ``date``.
        """
        labels = equal.pop(C.MEASURE, None)
        wide = self._scan(self._reader, "user_metrics", date, evaluation, equal)
        if set(wide.schema.names) <= set(schemas.USER_METRICS.field_names()):
            raise self._nothing_published()
        requested = {
            one: runs
            for one, runs in self._computed(_night(date, evaluation)).items()
            if one.column is not None and (labels is None or one.measure in as_list(labels))
        }
        return self._reader.user_values(wide, requested, [*C.RUN_KEY, *C.LIST_KEY, C.K])

    def published(self, table: str) -> Frame:
        """Whole published table, by name."""
        return self._frame(table, None, None, {})

    def scan(self, table: str, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Any:  # noqa: ANN401 - a dataset of Arrow, whose classes have no types, or a DataFrame
        """Rows of a table that are not read yet, for more of them than fit into memory.

        Returns
        -------
        pyarrow.dataset.Dataset or DataFrame
            DuckDB, Polars and pandas take the dataset; ``to_batches()`` reads it piece by piece.
        """
        return self._scan(self._reader, table, date, evaluation, equal)

    def arrow(
        self,
        table: str,
        *,
        date: Days = None,
        evaluation: Names = None,
        columns: Sequence[str] | None = None,
        **equal: Values,
    ) -> pa.Table:
        """Rows of a small table as Arrow, with a session too; all columns where none is named."""
        return self._small.arrow(self._scan(self._small, table, date, evaluation, equal), columns)

    def nights(self, table: str = schemas.METRICS.name) -> list[tuple[str, date]]:
        """Return the evaluations and dates that a table has rows of, oldest first, without reading a row."""
        found = self._small.nights(table, version=self._version_of(table))
        return sorted(found, key=lambda night: (night[1], night[0]))

    def table_versions(self) -> Mapping[str, int]:
        """Delta version of every table as last published."""
        if self._versions is None:
            is_known = ("status", "in", (PUBLISHED, MAINTAINING, MAINTAINED))
            columns = [*C.RUN_KEY, "status", "n_rows", "table_versions"]
            events = journal.event_table(self._small, columns=columns, where=[is_known], is_lenient=True)
            commits = events.filter(pc.field("status").isin(COMMITS))
            if not commits.num_rows:
                raise self._nothing_published()
            versions = journal.last_versions(commits)
            require_whole(self._session, self._root, versions)
            self._versions = versions
            self._history = events.filter(pc.field("recorded_at") <= commits["recorded_at"][-1])
        return self._versions

    def deleted(self, *, date: Days = None, evaluation: Names = None) -> Deleted:
        """Nights whose rows of single users were deleted by ``rankeval maintain --keep-days``, with the tables.

        As of the versions that are read: a night that was run again since is not among them.
        """
        self.table_versions()
        history = self._history
        if not pc.any(pc.equal(history["status"], MAINTAINED)).as_py():
            return {}
        events = to_rows(history.select([*C.RUN_KEY, "status", "n_rows"]))
        for name, how, value in _night(date, evaluation):
            events = [event for event in events if event[name] in (value if how == "in" else (value,))]
        return _deleted(events)

    def _computed(self, where: Filters) -> dict[Requested, set[str]]:
        """Return the measures of published runs in the order requested, with their runs."""
        published = [*where, ("status", "=", PUBLISHED)]
        found: dict[Requested, set[str]] = {}
        for event in self._events(where=published, columns=[C.RUN_ID, "measures"]):
            for one in event["measures"] or ():
                of = Requested(one[C.MEASURE], one[C.K], one["column"])
                found.setdefault(of, set()).add(event[C.RUN_ID])
        return found

    def _events(self, *, where: Filters, columns: Sequence[str]) -> Sequence[Event]:
        return to_rows(journal.event_table(self._small, columns=columns, where=where, is_lenient=True))

    def _frame(self, table: str, date: Days, evaluation: Names, equal: Mapping[str, Values]) -> Frame:
        return self._reader.frame(self._scan(self._reader, table, date, evaluation, equal))

    def _scan(
        self, reader: Reader[Any, Any], table: str, date: Days, evaluation: Names, equal: Mapping[str, Values]
    ) -> Any:  # noqa: ANN401 - as `scan`
        version = self._version_of(table)
        if date is not None and table in OF_USERS:  # a deleted night is not the same as one without rows
            deleted = self.deleted(date=date, evaluation=evaluation)
            if gone := [night for night, names in deleted.items() if table in names]:
                found, expected = f"no {table}: {DELETED}", f"its {table}"
                raise InputError(*(Fault(f"{name}, {day}", found, expected, FIX) for name, day in gone))
        return reader.scan(table, version=version, where=[*_night(date, evaluation), *_conditions(equal)])

    def _version_of(self, table: str) -> int:
        versions = self.table_versions()
        if table not in versions:
            raise self._nothing_published()
        return versions[table]

    def _nothing_published(self) -> InputError:
        return InputError(Fault(f"results {self._root}", "no published run", "at least one", "run an evaluation first"))


def _night(date: Days, evaluation: Names) -> Filters:
    return _conditions({C.EVALUATION: evaluation, C.EVALUATION_DATE: date})


def _conditions(equal: Mapping[str, Values]) -> Filters:
    """Return conditions on columns that must be equal to values; dates may be texts."""
    conditions: list[tuple[str, str, Any]] = []
    for name, value in equal.items():
        if value is not None:
            read = [as_day(one) if name == C.EVALUATION_DATE else one for one in as_list(value)]
            conditions.append((name, "in", read) if _are_several(value) else (name, "=", read[0]))
    return conditions


def _are_several(value: Values) -> TypeGuard[Sequence[Value]]:
    return isinstance(value, Collection) and not isinstance(value, str)


def as_list(values: Values) -> list[Any]:
    """Return several values, or one, as a list."""
    return list(values) if _are_several(values) else [values]


def _deleted(events: Iterable[Event]) -> Deleted:
    """Return the deleted tables by night, from events in the order of time: a publish brings all tables back."""
    found: Deleted = {}
    announced: set[str] = set()
    for event in events:
        night = (event[C.EVALUATION], event[C.EVALUATION_DATE])
        if event["status"] == MAINTAINING:
            announced.add(event[C.RUN_ID])
        elif event["status"] == PUBLISHED:
            found.pop(night, None)
        elif event[C.RUN_ID] in announced:  # any other MAINTAINED row is about the versions of tables only
            found[night] = found.get(night, frozenset()) | frozenset(event["n_rows"])
    return found


def as_day(given: object) -> date:
    """Parse an evaluation date, which may be a text or a time."""
    if isinstance(given, date):
        return given.date() if isinstance(given, datetime) else given
    try:
        return date.fromisoformat(given)  # type: ignore[arg-type]  # what is no text is refused
    except (TypeError, ValueError):
        raise ConfigError(Fault("date", repr(given), "YYYY-MM-DD")) from None
