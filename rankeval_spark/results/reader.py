"""Reading published results: always whole runs, at the versions that the newest commit of ``runs`` names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import reduce
from operator import and_
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession, functions as F

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.results import tables
from rankeval_spark.results.journal import COMMITS, MAINTAINED, MAINTAINING, PUBLISHED
from rankeval_spark.results.storage import inside, normalise

Value = str | int | date | None
Deleted = dict[tuple[str, date], frozenset[str]]
"""Names of tables by evaluation and date."""

OF_USERS: Final = ("lists", "user_metrics")
"""Tables that grow with the users: ``rankeval maintain --keep-days`` deletes their old nights."""

DELETED: Final = "deleted by rankeval maintain --keep-days"
FIX: Final = "its metrics, comparisons, gates and checks are kept; run the date again to have its users back"


class Results:
    """The results of earlier runs, pinned: another run may publish meanwhile, these frames do not change.

    Parameters
    ----------
    spark : SparkSession
        Session with Delta; a Spark Connect session will do.
    root : str
        Local path or URI of the results root.

    Notes
    -----
    The versions are looked up once, when the first frame is asked for; :meth:`refresh` looks again.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = normalise(root)
        self._versions: Mapping[str, int] | None = None
        self._pinned_at = 0

    def refresh(self) -> Results:
        """Look up anew which versions are published; return self."""
        self._versions = None
        return self

    def runs(self, *, date: date | str | None = None, evaluation: str | None = None) -> DataFrame:
        """Every event of every run, those of failed and running ones included."""
        return _where(self._read("runs", None), {C.EVALUATION: evaluation, C.EVALUATION_DATE: _date(date)})

    def lists(self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value) -> DataFrame:
        """One row a list: ranks and gains of its hits; ``equal`` are columns and the value they must have."""
        return self._table("lists", date, evaluation, equal)

    def user_metrics(
        self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value
    ) -> DataFrame:
        """One row a list and cutoff, a column a measure; NULL where undefined *or* not asked for."""
        return self._table("user_metrics", date, evaluation, equal)

    def metrics(self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value) -> DataFrame:
        """One row a model, slice, measure and cutoff."""
        return self._table("metrics", date, evaluation, equal)

    def group_metrics(
        self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value
    ) -> DataFrame:
        """One row a model, slice and statistic of its groups; none without slices and item slices."""
        return self._table("group_metrics", date, evaluation, equal)

    def comparisons(
        self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value
    ) -> DataFrame:
        """One row a model against a baseline, by slice, measure and cutoff; none where nothing was compared."""
        return self._table("comparisons", date, evaluation, equal)

    def gates(self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value) -> DataFrame:
        """One row a rule for a model on a slice, with the verdict in a sentence; none where there is no rule."""
        return self._table("gates", date, evaluation, equal)

    def checks(self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value) -> DataFrame:
        """One row a check of an input."""
        return self._table("checks", date, evaluation, equal)

    def user_values(
        self, *, date: date | str | None = None, evaluation: str | None = None, **equal: Value
    ) -> DataFrame:
        """Long view of :meth:`user_metrics`: a row a list, measure and cutoff that its run was asked for.

        ``value`` is NULL only where the measure is undefined.
        """
        of_values = {name: equal.pop(name) for name in (C.MEASURE,) if name in equal}
        wide = self._table("user_metrics", date, evaluation, equal)
        measured = [F.struct(F.lit(name).alias("_column"), F.col(name).alias(C.VALUE)) for name in _measures_of(wide)]
        if not measured:
            raise self._nothing_published()
        long = wide.select(*C.RUN_KEY, *C.LIST_KEY, C.K, F.inline(F.array(*measured)))
        asked = F.broadcast(self._asked().withColumnRenamed("column", "_column"))
        values = long.join(asked, on=[C.RUN_ID, C.K, "_column"], how="inner")
        return _where(values, of_values).select(*C.RUN_KEY, *C.LIST_KEY, C.MEASURE, C.K, C.VALUE)

    def published(self, table: str) -> DataFrame:
        """Whole published table, by name."""
        return self._table(table, None, None, {})

    def table_versions(self) -> Mapping[str, int]:
        """Delta version of every table as last published."""
        if self._versions is None:
            commits = self.runs().where(F.col("status").isin(*COMMITS)).orderBy(F.desc("recorded_at"))
            newest = commits.select("table_versions", F.unix_micros("recorded_at").alias("_micros")).head()
            if newest is None:
                raise self._nothing_published()
            self._versions, self._pinned_at = dict(newest["table_versions"]), newest["_micros"]
        return self._versions

    def deleted(self, *, date: date | str | None = None, evaluation: str | None = None) -> Deleted:
        """Nights whose rows of single users were deleted by ``rankeval maintain --keep-days``, with the tables.

        As of the versions that are read: a night that was run again since is not among them.
        """
        self.table_versions()
        statuses = (PUBLISHED, MAINTAINING, MAINTAINED)
        events = self.runs(date=date, evaluation=evaluation).where(F.col("status").isin(*statuses))
        micros = F.unix_micros("recorded_at")
        slim = events.where(micros <= self._pinned_at).select(
            *C.RUN_KEY, "status", F.map_keys("n_rows").alias("tables"), micros.alias("_micros")
        )
        return _deleted(sorted(slim.collect(), key=lambda event: event["_micros"]))

    def _asked(self) -> DataFrame:
        """List what each published run was asked for: ``run_id, measure, k, column``."""
        published = self.runs().where(F.col("status") == PUBLISHED).select(C.RUN_ID, F.inline("measures"))
        return published.select(C.RUN_ID, C.MEASURE, C.K, "column").distinct()

    def _table(
        self, table: str, date: date | str | None, evaluation: str | None, equal: Mapping[str, Value]
    ) -> DataFrame:
        versions = self.table_versions()
        if table not in versions:
            raise self._nothing_published()
        if date is not None and table in OF_USERS:
            self._require_kept(table, date, evaluation)
        frame = self._read(table, versions[table])
        unknown = sorted(set(equal) - set(frame.columns))
        if unknown:
            raise ConfigError(Fault(f"filter of {table}", ", ".join(unknown), f"columns: {', '.join(frame.columns)}"))
        return _where(frame, {C.EVALUATION: evaluation, C.EVALUATION_DATE: _date(date), **equal})

    def _read(self, table: str, version: int | None) -> DataFrame:
        reader = self._spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        try:
            frame = reader.load(inside(self._root, table))
            tables.refuse_outside(frame, table)
            return frame.select(*frame.schema.fieldNames())  # resolves now: a missing table is an error here
        except AnalysisException as error:
            raise ConfigError(
                Fault("results root", f"{self._root!r} (no table {table})", "the results of an earlier run")
            ) from error
        except Py4JJavaError as error:
            if "DATA_SOURCE_NOT_FOUND" not in str(error):
                raise
            fix = "make it by rankeval_spark.build_session(), which adds the jars and settings"
            raise ConfigError(Fault("Results(spark=)", "a session without Delta", "one with it", fix)) from None

    def _require_kept(self, table: str, date: date | str, evaluation: str | None) -> None:
        """Refuse a night whose rows were deleted: none of them is not the same as none at all."""
        gone = [night for night, names in self.deleted(date=date, evaluation=evaluation).items() if table in names]
        if gone:
            raise InputError(
                *(Fault(f"{name}, {day}", f"no {table}: {DELETED}", f"its {table}", FIX) for name, day in gone)
            )

    def _nothing_published(self) -> InputError:
        return InputError(Fault(f"results {self._root}", "no published run", "at least one", "run an evaluation first"))


def results_at(spark: SparkSession, root: str, table_versions: Mapping[str, int]) -> Results:
    """Read the tables as they were, at the versions that an event of ``runs`` names, while they are retained."""
    results = Results(spark, root)
    results._versions = dict(table_versions)
    return results


def _where(frame: DataFrame, equal: Mapping[str, Value]) -> DataFrame:
    conditions: list[Column] = [F.col(name) == F.lit(value) for name, value in equal.items() if value is not None]
    return frame.where(reduce(and_, conditions)) if conditions else frame


def _deleted(events: Iterable[Row]) -> Deleted:
    """Follow events in the order of time: a deletion takes tables of a night away, a publish brings all of them."""
    found: Deleted = {}
    announced: set[str] = set()
    for event in events:
        night = (event[C.EVALUATION], event[C.EVALUATION_DATE])
        if event["status"] == MAINTAINING:
            announced.add(event[C.RUN_ID])
        elif event["status"] == PUBLISHED:
            found.pop(night, None)
        elif event[C.RUN_ID] in announced:  # any other MAINTAINED row is about the versions of tables only
            found[night] = found.get(night, frozenset()) | frozenset(event["tables"])
    return found


def _date(given: date | str | None) -> date | None:
    if not isinstance(given, str):
        return given
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise ConfigError(Fault("date", repr(given), "YYYY-MM-DD")) from None


def _measures_of(wide: DataFrame) -> list[str]:
    return tables.measure_columns(wide.schema)
