"""Queries of the audit on staged rows, computed by Spark for stores that this process does not reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault
from rankeval_spark.results.staged_rows import (
    StagedRows,
    Summaries,
    Summary,
    key_of,
    plain_columns,
    rules_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, Row

    from rankeval_spark.schemas import Schema

MAX_SUSPECTS: Final = 100


@dataclass(frozen=True)
class RowsOnSpark(StagedRows):
    """Rows of a frame."""

    frame: DataFrame

    def refused(self, schema: Schema) -> list[Fault]:
        """Count hashes of keys: eight bytes per row are moved, and keys only if two hashes agree."""
        counts = self.frame.select(_hash(schema), _broken(schema)).groupBy("_hash")
        counted = counts.agg(F.count("*").alias("_count"), F.max("_broken").alias("_broken"))
        suspects = counted.where((F.col("_count") > 1) | F.col("_broken").isNotNull()).take(MAX_SUSPECTS)
        broken = [row for row in suspects if row["_broken"] is not None]
        repeated = [row["_hash"] for row in suspects if row["_count"] > 1]
        return [*self._broken_among(schema, broken), *(self._duplicates_among(schema, repeated) if repeated else [])]

    def has_several_lists(self) -> bool:
        """Return whether a list has a name."""
        return not self.frame.where(F.col(C.LIST_ID) != F.lit(C.ONE_LIST)).isEmpty()

    def summaries(self, weights: Mapping[str, str | None], *, over_users: bool = False) -> Summaries:
        """Aggregate them in one job."""
        frame = self.frame
        if over_users:
            frame = frame.groupBy(C.MODEL_ID, C.K, C.USER_ID).agg(*_over_lists(weights))
        summaries = (_summary(*of_column).alias(of_column[0]) for of_column in weights.items())
        rows = frame.groupBy(C.MODEL_ID, C.K).agg(*summaries).collect()
        return {(row[C.MODEL_ID], row[C.K]): {name: Summary(*row[name]) for name in weights} for row in rows}

    def _broken_among(self, schema: Schema, suspects: Sequence[Row]) -> list[Fault]:
        if not suspects:
            return []
        example = self.frame.where(_hash(schema) == suspects[0]["_hash"]).select(*key_of(schema)).head()
        where = ", ".join(f"{name}={example[name]!r}" for name in key_of(schema)) if example else "a row"
        return [Fault(f"table {schema.name}", where, f"rows with {suspects[0]['_broken']}")]

    def _duplicates_among(self, schema: Schema, suspects: Sequence[int]) -> list[Fault]:
        own = self.frame.where(_hash(schema).isin(*suspects)).groupBy(*key_of(schema)).agg(F.count("*").alias("_count"))
        doubles = own.where(F.col("_count") > 1).take(3)
        found = "; ".join(", ".join(f"{name}={row[name]!r}" for name in key_of(schema)) for row in doubles)
        return [Fault(f"table {schema.name}", f"several rows for {found}", "one row a key")] if doubles else []


def _broken(schema: Schema) -> Column:
    """Return the first constraint that a row breaks, NULL if none."""
    rules = {f"{name} IS NOT NULL": F.col(name).isNotNull() for name in plain_columns(schema)}
    rules |= {str(rule): F.expr(str(rule)) for rule in rules_of(schema)}
    whens = (F.when(~F.coalesce(holds, F.lit(False)), F.lit(rule)) for rule, holds in rules.items())
    return F.coalesce(F.lit(None).cast("string"), *whens).alias("_broken")


def _hash(schema: Schema) -> Column:
    return F.xxhash64(*key_of(schema)).alias("_hash")


def _summary(column: str, weight: str | None) -> Column:
    """Return the fields of :class:`Summary`."""
    return F.struct(F.count(column), F.min(column), F.max(column), _mean(column, weight))


def _mean(column: str, weight: str | None) -> Column:
    if weight is None:
        return F.avg(column)
    return F.try_divide(F.sum(F.col(column) * F.col(weight)), F.sum(weight))


def _over_lists(weights: Mapping[str, str | None]) -> list[Column]:
    """Average the lists of a user: numerators and denominators, where these are summed."""
    values = (F.coalesce(_mean(column, weight), F.avg(column)).alias(column) for column, weight in weights.items())
    return [*values, *(F.avg(weight).alias(weight) for weight in weights.values() if weight is not None)]
