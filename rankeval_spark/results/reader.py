"""Reading published results: always whole runs, at the versions that the newest commit of ``runs`` names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import reduce
from operator import and_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.results import tables
from rankeval_spark.results.journal import COMMITS, PUBLISHED
from rankeval_spark.results.storage import normalise

Value = str | int | date | None


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
            newest = commits.select("table_versions").head()
            if newest is None:
                raise self._nothing_published()
            self._versions = dict(newest["table_versions"])
        return self._versions

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
            frame = reader.load(f"{self._root}/{table}")
            return frame.select(*frame.schema.fieldNames())  # resolves now: a missing table is an error here
        except AnalysisException as error:
            raise ConfigError(
                Fault("results root", f"{self._root!r} (no table {table})", "the results of an earlier run")
            ) from error

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


def _date(given: date | str | None) -> date | None:
    if not isinstance(given, str):
        return given
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise ConfigError(Fault("date", repr(given), "YYYY-MM-DD")) from None


def _measures_of(wide: DataFrame) -> list[str]:
    return tables.measure_columns(wide.schema)
