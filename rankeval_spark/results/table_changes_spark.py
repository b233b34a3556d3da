"""Changes of the tables of stores that this process does not reach, by Spark.

No text of a user or of a config is pasted into SQL. Delta's Python package is not used: a cluster need not have it, and
through Spark Connect it needs a jar of the server. A location is between backticks, which no results root contains (see
``file_store.normalise``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.results import delta_log, spark_tables
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.table_changes import TableChanges

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.results.row_changes import RowChange

LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""VACUUM lists the files of a table in this many tasks, 10,000 by default, however small the table is."""
ENOUGH_TASKS: Final = "64"
NIGHT: Final = [C.EVALUATION, C.EVALUATION_DATE]


class ChangesOnSpark(TableChanges[NightKey]):
    """Changes of the tables of a root: nights with an affected row are overwritten."""

    @override
    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        rows = self._read(table).where((F.col(C.EVALUATION_DATE) < F.lit(day)) & _is_of(evaluation))
        return [NightKey(*row) for row in rows.select(*NIGHT).distinct().collect()]

    @override
    def delete_nights(self, table: str, nights: Sequence[NightKey]) -> None:
        self._delete(table, _are_of(nights))

    @override
    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        rows = _is_of(evaluation) & (F.col(C.USER_ID) == F.lit(user))  # Delta finds the files by their statistics
        n_rows = self._read(table).where(rows).count()
        if n_rows:
            self._delete(table, rows)
        return n_rows

    @override
    def merge_files(self, table: str) -> tuple[int, int]:
        # It changes no row, so it may come after other commits.
        return self._commit(table, lambda _: spark_tables.merge_files(self.root.spark, self.root.storage, table))

    @override
    def unneeded_files(self, table: str) -> int:
        with self._listing_in_few_tasks():
            return self.root.spark.sql(f"VACUUM {self._identifier(table)} DRY RUN").count()

    @override
    def delete_unneeded(self, table: str) -> None:
        with self._listing_in_few_tasks():
            self.root.spark.sql(f"VACUUM {self._identifier(table)}")

    @override
    def properties(self, table: str) -> dict[str, str]:
        detail = self.root.spark.sql(f"DESCRIBE DETAIL {self._identifier(table)}").select("properties").head()
        return dict(detail["properties"]) if detail else {}

    @override
    def _affected_rows(
        self, table: str, change: RowChange, evaluation: str | None, version: int
    ) -> dict[NightKey, int]:
        def affected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.select(NIGHT).filter(to_arrow(change.affects(batch)))

        rows = self._read(table, version).where(_is_of(evaluation)).select(*dict.fromkeys([*NIGHT, *change.columns]))
        found = rows.mapInArrow(affected, rows.select(*NIGHT).schema).groupBy(*NIGHT).count().collect()
        return {NightKey(evaluation, day): n_rows for evaluation, day, n_rows in found}

    @override
    def _rewrite(self, table: str, parts: Collection[NightKey], change: RowChange, *, after: int) -> None:
        def changed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(change.changed, batches)

        frame, is_of_nights = self._read(table), _are_of(parts)
        self._overwrite(table, is_of_nights, frame.where(is_of_nights).mapInArrow(changed, frame.schema), after=after)

    def _read(self, table: str, version: int | None = None) -> DataFrame:
        return spark_tables.read_table(self.root.spark, self.root.storage, table, version)

    def _identifier(self, table: str) -> str:
        return spark_tables.identifier(self.root.storage, table)

    def _delete(self, table: str, rows: Column) -> None:
        none = self._read(table).limit(0)
        self._commit(table, lambda seen: self._overwrite(table, rows, none, after=seen))
        version = delta_log.latest_version(self.root.storage, table)
        self._require_none(table, self._read(table, version).where(rows).limit(1).count())

    def _overwrite(self, table: str, rows: Column, by: DataFrame, *, after: int) -> None:
        """Overwrite the rows that meet a condition by those of a frame."""
        by.writeTo(self._identifier(table)).options(**spark_tables.only_after(after)).overwrite(rows)

    @contextmanager
    def _listing_in_few_tasks(self) -> Iterator[None]:
        """Spare VACUUM thousands of empty tasks, a minute for each table; the session's setting comes back."""
        settings = self.root.spark.conf
        before = str(settings.get(LISTING_TASKS))
        settings.set(LISTING_TASKS, ENOUGH_TASKS)
        try:
            yield
        finally:
            settings.set(LISTING_TASKS, before)


def _is_of(evaluation: str | None) -> Column:
    return F.lit(True) if evaluation is None else F.col(C.EVALUATION) == F.lit(evaluation)


def _are_of(nights: Iterable[NightKey]) -> Column:
    """Return the condition on partition columns for rows of some nights; short, however many there are."""
    days: dict[str, list[date]] = {}
    for night in nights:
        days.setdefault(night.evaluation, []).append(night.evaluation_date)
    return reduce(
        or_, ((F.col(C.EVALUATION) == F.lit(name)) & F.col(C.EVALUATION_DATE).isin(*own) for name, own in days.items())
    )
