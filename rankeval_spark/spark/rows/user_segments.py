"""Give every list the segment values of its user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, Window, functions as F

from rankeval_spark import columns as C
from rankeval_spark.spark.rows.usable_rows import input_failure, quoted

NO_SEGMENTS = "map<string,string>"
ALL_UNKNOWN: Mapping[str, str] = MappingProxyType({})


def with_segments(
    lists: DataFrame,
    *,
    segments: DataFrame | None,
    names: Sequence[str],
    absent: Mapping[str, str] = ALL_UNKNOWN,
) -> DataFrame:
    """Add the map ``segments``: name to value of each segment column, NULL where the value or the user is unknown.

    The join is n:1 on ``user_id``. A user with a list and two rows in ``segments`` fails the job:
    either row would be a guess.
    ``absent`` has the values of a user without a row, by segment, where the lack of a row has a meaning.
    """
    if segments is None or not names:
        return lists.withColumn(C.SEGMENTS, F.create_map().cast(NO_SEGMENTS))
    values = F.create_map(*(part for name in names for part in (F.lit(name), F.col(quoted_name(name)).cast("string"))))
    # A user without a row gets the same map with NULL values, so that "unknown" is a slice value as any other.
    unknown = F.create_map(*(part for name in names for part in (F.lit(name), F.lit(absent.get(name)).cast("string"))))
    known = segments.where(F.col(C.USER_ID).isNotNull()).select(C.USER_ID, values.alias("_values"))
    # Numbered in the order that a join sorts them in, too; to aggregate the maps, Spark would sort them twice.
    number = F.row_number().over(Window.partitionBy(C.USER_ID).orderBy(C.USER_ID))
    return (
        lists.join(known.withColumn("_number", number), on=[C.USER_ID], how="left")
        .where(_is_first())  # here, so that a user without a list fails in no join, rather than in some
        .withColumn(C.SEGMENTS, F.coalesce("_values", unknown))
        .drop("_values", "_number")
    )


def _is_first() -> Column:
    what = F.concat(F.lit("user "), quoted(F.col(C.USER_ID)), F.lit(" stands twice in the segment table"))
    failure = input_failure("segments", what, expected="each user once", fix="keep one row a user in the segment table")
    return F.when(F.col("_number") > 1, failure.cast("boolean")).otherwise(F.lit(True))


def quoted_name(name: str) -> str:
    """Write the name of a column so that Spark takes its dots for letters."""
    return "`" + name.replace("`", "``") + "`"
