"""Deleting published rows: of nights that are older than they need be kept, and of a user who is to be forgotten.

Everything here happens while the root's publish lock is held.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import journal
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.publishing.failpoints import failpoint
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import delta_log, spark_tables
from rankeval_spark.results.storage.commits import NO_OTHER_WRITER, Root, retried, turn_for_runs

WITHOUT_USERS: Final = (schemas.METRICS.name, "items")
"""Inputs whose checks name other things than users."""

REMOVED: Final = "removed: it named a user who was erased"
_BETWEEN_KEYS: Final = r"[\s;,]+"


def finish_deletions(root: Root, intents: Sequence[Mapping[str, Any]], *, after: datetime) -> datetime:
    """Delete what was announced, and say in one commit of ``runs`` that it is gone; return the time of that.

    Parameters
    ----------
    intents : sequence of mapping
        Rows of ``runs``, one a night; their ``n_rows`` name the tables.
    """
    for table in OF_USERS:
        nights = [NightKey(one[C.EVALUATION], one[C.EVALUATION_DATE]) for one in intents if table in one["n_rows"]]
        if nights:
            delete_rows(root, table, nights_condition(nights))
            failpoint("after_deletion")
    versions = {schema.name: delta_log.latest_version(root.storage, schema.name) for schema in schemas.PUBLISHED}
    done = [{**one, "status": journal.MAINTAINED, "table_versions": versions} for one in intents]
    return journal.record_all(root.spark, root.storage, done, after=after, held=[root.lock])


def nights_condition(nights: Iterable[NightKey]) -> Column:
    """Condition on the partition columns for the rows of some nights; short, however many there are."""
    days: dict[str, list[date]] = {}
    for night in nights:
        days.setdefault(night.evaluation, []).append(night.evaluation_date)
    return reduce(
        or_,
        ((F.col(C.EVALUATION) == F.lit(name)) & F.col(C.EVALUATION_DATE).isin(*own) for name, own in days.items()),
    )


def delete_rows(root: Root, table: str, rows: Column) -> None:
    """Delete rows of a table, and make sure that they are gone.

    The condition reaches Delta as an expression, not as text: it may hold a user id.
    """
    none = spark_tables.read_table(root.spark, root.storage, table).limit(0)
    retried(root, lambda: _overwrite(root, table, rows, none))
    _require_none(root, table, rows)


def forget_checks(root: Root, user: str, rows: Column) -> None:
    """Take a user out of the sample keys of ``checks``."""
    table, named = schemas.CHECKS.name, named_in_checks(user)
    kept = F.filter(F.col("sample_keys"), lambda key: ~names_user(key, user))
    retried(root, lambda: _change(root, table, rows & named, "sample_keys", kept))
    _require_none(root, table, rows & named)


def forget_errors(root: Root, user: str, rows: Column) -> None:
    """Replace the error messages in ``runs`` that name a user: a check that fails gives a few keys as examples."""
    table, named = schemas.RUNS.name, named_in_errors(user)
    with turn_for_runs(root.storage, "maintenance"):
        removed = F.col("error").withField("message", F.lit(REMOVED))
        retried(root, lambda: _change(root, table, rows & named, "error", removed))
        _require_none(root, table, rows & named)


def names_user(text: Column, user: str) -> Column:
    """Whether a user id is in a text between blanks, commas or semicolons, which part keys and their parts."""
    parted = F.concat(F.lit(" "), F.regexp_replace(text, _BETWEEN_KEYS, " "), F.lit(" "))
    return F.contains(parted, F.lit(f" {re.sub(_BETWEEN_KEYS, ' ', user)} "))


def named_in_errors(user: str) -> Column:
    """Condition on ``runs``: the error message of the event names a user."""
    return F.coalesce(names_user(F.col("error.message"), user), F.lit(False))


def named_in_checks(user: str) -> Column:
    """Condition on ``checks``: a sample key of the row names a user."""
    is_of_users = ~F.col("input").isin(*WITHOUT_USERS) & ~F.col("check").startswith("bands.")
    return is_of_users & F.exists("sample_keys", lambda key: names_user(key, user))


def _change(root: Root, table: str, rows: Column, column: str, value: Column) -> None:
    """Give a column of some rows another value: the nights that hold such rows are overwritten in one commit."""
    frame = spark_tables.read_table(root.spark, root.storage, table)
    nights = [NightKey(*row) for row in frame.where(rows).select(C.EVALUATION, C.EVALUATION_DATE).distinct().collect()]
    if nights:
        changed = frame.where(nights_condition(nights)).withColumn(column, F.when(rows, value).otherwise(F.col(column)))
        _overwrite(root, table, nights_condition(nights), changed)


def _overwrite(root: Root, table: str, rows: Column, by: DataFrame) -> None:
    """Let the rows of a frame take the place of some rows: Delta's own calls for this need its Python package."""
    by.writeTo(spark_tables.identifier(root.storage, table)).overwrite(rows)


def _require_none(root: Root, table: str, rows: Column) -> None:
    version = delta_log.latest_version(root.storage, table)
    if not spark_tables.read_table(root.spark, root.storage, table, version).where(rows).isEmpty():
        found = "rows that were just deleted or changed"
        raise ResultsError(Fault(f"table {table}, version {version}", found, "none of them", NO_OTHER_WRITER))
