"""Changes of the tables of stores that this process does not reach, by Spark.

What Delta offers as SQL text; no text of a user or of a config is pasted into it. Delta's Python package has calls for
some of it. They are not used: a cluster need not have that package, and through Spark Connect they need a jar of the
server. A location is between backticks, which no results root contains (see ``file_store.normalise``); the rest is
declared in this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import delta_log, spark_tables
from rankeval_spark.results.storage.commits import Made, retried
from rankeval_spark.results.table_changes.named_users import (
    BANDS,
    BETWEEN_KEYS,
    REMOVED,
    WITHOUT_USERS,
    require_none,
    with_blanks,
)

if TYPE_CHECKING:
    from rankeval_spark.results.storage.commits import Root

LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""VACUUM lists the files of a table in this many tasks, 10,000 by default, however small the table is."""
ENOUGH_TASKS: Final = "64"


@dataclass(frozen=True)
class ChangesOnSpark:
    """Changes of the tables of a root, see :class:`changes.TableChanges`."""

    root: Root

    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        """Name the nights that have rows."""
        rows = self._read(table).where((F.col(C.EVALUATION_DATE) < F.lit(day)) & _is_of(evaluation))
        return _nights_of(rows)

    def delete_nights(self, table: str, nights: Sequence[NightKey]) -> None:
        """Overwrite the nights by nothing."""
        self._delete(table, _are_of(nights))

    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Delete the rows of the user; the condition reaches Delta as an expression, not as text."""
        rows = _is_of(evaluation) & (F.col(C.USER_ID) == F.lit(user))
        n_rows = self._count(table, rows)
        if n_rows:
            self._delete(table, rows)
        return n_rows

    def forget_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Overwrite the nights that have rows that name the user by rows that do not."""
        column, named, value = _in_checks(user) if table == schemas.CHECKS.name else _in_errors(user)
        rows = _is_of(evaluation) & named
        n_rows = self._count(table, rows)
        if n_rows:
            self._commit(table, lambda seen: self._change(table, rows, column, value, after=seen))
            self._require_none(table, rows)
        return n_rows

    def merge_files(self, table: str) -> tuple[int, int]:
        """Merge small files of each night, of ``runs`` across nights."""
        # It changes no row, so it may come after other commits.
        return self._commit(table, lambda _: spark_tables.merge_files(self.root.spark, self.root.storage, table))

    def unneeded_files(self, table: str) -> int:
        """Count the files that VACUUM would delete."""
        with self._listing_in_few_tasks():
            return self.root.spark.sql(f"VACUUM {self._identifier(table)} DRY RUN").count()

    def delete_unneeded(self, table: str) -> None:
        """Delete them."""
        with self._listing_in_few_tasks():
            self.root.spark.sql(f"VACUUM {self._identifier(table)}")

    def properties(self, table: str) -> dict[str, str]:
        """Return what Delta says of the table, which takes a second."""
        detail = self.root.spark.sql(f"DESCRIBE DETAIL {self._identifier(table)}").select("properties").head()
        return dict(detail["properties"]) if detail else {}

    def _read(self, table: str, version: int | None = None) -> DataFrame:
        return spark_tables.read_table(self.root.spark, self.root.storage, table, version)

    def _identifier(self, table: str) -> str:
        return spark_tables.identifier(self.root.storage, table)

    def _count(self, table: str, rows: Column) -> int:
        return self._read(table).where(rows).count()

    def _delete(self, table: str, rows: Column) -> None:
        none = self._read(table).limit(0)
        self._commit(table, lambda seen: self._overwrite(table, rows, none, after=seen))
        self._require_none(table, rows)

    def _commit(self, table: str, commit: Callable[[int], Made]) -> Made:
        return retried(self.root.storage, table, commit, held=[self.root.lock])

    def _change(self, table: str, rows: Column, column: str, value: Column, *, after: int) -> None:
        """Give a column of some rows another value: the nights that hold such rows are overwritten in one commit."""
        frame = self._read(table)
        is_of_nights = _are_of(_nights_of(frame.where(rows)))
        changed = frame.where(is_of_nights).withColumn(column, F.when(rows, value).otherwise(F.col(column)))
        self._overwrite(table, is_of_nights, changed, after=after)

    def _overwrite(self, table: str, rows: Column, by: DataFrame, *, after: int) -> None:
        """Let the rows of a frame take the place of some rows."""
        by.writeTo(self._identifier(table)).options(**spark_tables.only_after(after)).overwrite(rows)

    def _require_none(self, table: str, rows: Column) -> None:
        self.root.lock.assert_held()
        version = delta_log.latest_version(self.root.storage, table)
        require_none(self.root, table, n_rows=self._read(table, version).where(rows).limit(1).count())

    @contextmanager
    def _listing_in_few_tasks(self) -> Iterator[None]:
        """Spare VACUUM thousands of empty tasks, a minute for each table, and leave the session as it was."""
        settings = self.root.spark.conf
        before = str(settings.get(LISTING_TASKS))
        settings.set(LISTING_TASKS, ENOUGH_TASKS)
        try:
            yield
        finally:
            settings.set(LISTING_TASKS, before)


def _is_of(evaluation: str | None) -> Column:
    return F.lit(True) if evaluation is None else F.col(C.EVALUATION) == F.lit(evaluation)


def _nights_of(rows: DataFrame) -> list[NightKey]:
    return [NightKey(*row) for row in rows.select(C.EVALUATION, C.EVALUATION_DATE).distinct().collect()]


def _are_of(nights: Iterable[NightKey]) -> Column:
    """Condition on the partition columns for the rows of some nights; short, however many there are."""
    days: dict[str, list[date]] = {}
    for night in nights:
        days.setdefault(night.evaluation, []).append(night.evaluation_date)
    return reduce(
        or_,
        ((F.col(C.EVALUATION) == F.lit(name)) & F.col(C.EVALUATION_DATE).isin(*own) for name, own in days.items()),
    )


def _in_checks(user: str) -> tuple[str, Column, Column]:
    """Column of ``checks`` that can name a user, the rows that do, and what takes its place."""
    is_of_users = ~F.col("input").isin(*WITHOUT_USERS) & ~F.col("check").startswith(BANDS)
    named = is_of_users & F.exists("sample_keys", lambda key: _names_user(key, user))
    return "sample_keys", named, F.filter(F.col("sample_keys"), lambda key: ~_names_user(key, user))


def _in_errors(user: str) -> tuple[str, Column, Column]:
    """Likewise of ``runs``: a check that fails gives a few keys as examples."""
    named = F.coalesce(_names_user(F.col("error.message"), user), F.lit(False))
    return "error", named, F.col("error").withField("message", F.lit(REMOVED))


def _names_user(text: Column, user: str) -> Column:
    """Say whether a text names a user, as :func:`named_users.names_user` does."""
    parted = F.concat(F.lit(" "), F.regexp_replace(text, BETWEEN_KEYS, " "), F.lit(" "))
    return F.contains(parted, F.lit(with_blanks(user)))
