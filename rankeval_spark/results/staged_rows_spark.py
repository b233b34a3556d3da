"""Queries of the audit on staged rows, computed by Spark for stores that this process does not reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault
from rankeval_spark.results.staged_rows import StagedRows, Summaries, Summary, key_of, plain_columns, rules_of

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
        table, key = f"table {schema.name}", key_of(schema)
        hashed = F.xxhash64(*key).alias("_hash")
        counts = self.frame.select(hashed, _broken(schema)).groupBy("_hash")
        counted = counts.agg(F.count("*").alias("_count"), F.max("_broken").alias("_broken"))
        suspects = counted.where((F.col("_count") > 1) | F.col("_broken").isNotNull()).take(MAX_SUSPECTS)
        faults = []
        for row in [row for row in suspects if row["_broken"] is not None][:1]:
            example = self.frame.where(hashed == row["_hash"]).select(*key).head()
            faults.append(Fault(table, _written(example) if example else "a row", f"rows with {row['_broken']}"))
        repeated = [row["_hash"] for row in suspects if row["_count"] > 1]
        if repeated:
            rows = self.frame.where(hashed.isin(*repeated)).groupBy(*key).agg(F.count("*").alias("_count"))
            doubles = rows.where(F.col("_count") > 1).select(*key).take(3)
            found = "; ".join(map(_written, doubles))
            faults += [Fault(table, f"several rows for {found}", "one row a key")] if doubles else []
        return faults

    def has_several_lists(self) -> bool:
        """Return whether a list has a name."""
        return not self.frame.where(F.col(C.LIST_ID) != F.lit(C.ONE_LIST)).isEmpty()

    def summaries(self, weights: Mapping[str, str | None], *, over_users: bool = False) -> Summaries:
        """Aggregate the columns in one job."""
        frame = self.frame
        if over_users:  # a ratio of sums over the lists of the user, if it has a denominator
            values = (F.coalesce(_mean(name, weight), F.avg(name)).alias(name) for name, weight in weights.items())
            averages = (F.avg(weight).alias(weight) for weight in weights.values() if weight is not None)
            frame = frame.groupBy(C.MODEL_ID, C.K, C.USER_ID).agg(*values, *averages)
        fields = (
            F.struct(F.count(name), F.min(name), F.max(name), _mean(name, weight)).alias(name)
            for name, weight in weights.items()
        )
        rows = frame.groupBy(C.MODEL_ID, C.K).agg(*fields).collect()
        return {(row[C.MODEL_ID], row[C.K]): {name: Summary(*row[name]) for name in weights} for row in rows}


def _broken(schema: Schema) -> Column:
    """Return the first constraint that a row breaks, NULL if none."""
    rules = {f"{name} IS NOT NULL": F.col(name).isNotNull() for name in plain_columns(schema)}
    rules |= {str(rule): F.expr(str(rule)) for rule in rules_of(schema)}
    whens = (F.when(~F.coalesce(holds, F.lit(False)), F.lit(rule)) for rule, holds in rules.items())
    return F.coalesce(F.lit(None).cast("string"), *whens).alias("_broken")


def _mean(column: str, weight: str | None) -> Column:
    if weight is None:
        return F.avg(column)
    return F.try_divide(F.sum(F.col(column) * F.col(weight)), F.sum(weight))


def _written(row: Row) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in row.asDict().items())
