"""Give every list the segment values of its user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.clean import policy_failure, quoted

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

    The join is n:1 on ``user_id``. A user who stands twice in ``segments`` fails the job: either row would be a guess.
    ``absent`` has the values of a user without a row, by segment, where that says something of him.
    """
    if segments is None or not names:
        return lists.withColumn(C.SEGMENTS, F.create_map().cast(NO_SEGMENTS))
    values = F.create_map(*(part for name in names for part in (F.lit(name), F.col(_quoted(name)).cast("string"))))
    # A user without a row gets the same map with NULL values, so that "unknown" is a slice value as any other.
    unknown = F.create_map(*(part for name in names for part in (F.lit(name), F.lit(absent.get(name)).cast("string"))))
    per_user = segments.select(C.USER_ID, F.struct(values.alias("values")).alias("_row")).where(
        F.col(C.USER_ID).isNotNull()
    )
    # Arrays, because a map cannot be aggregated by max; `first` of a single row is that row.
    once = per_user.groupBy(C.USER_ID).agg(F.first("_row").alias("_row"), F.count("*").alias("_n_rows"))
    return (
        lists.join(once, on=[C.USER_ID], how="left")
        .withColumn(C.SEGMENTS, F.coalesce(_once("_row.values"), unknown))
        .drop("_row", "_n_rows")
    )


def _once(name: str) -> Column:
    what = F.concat(F.lit("user "), quoted(F.col(C.USER_ID)), F.lit(" stands twice in the segment table"))
    failure = policy_failure("segments", what).cast(NO_SEGMENTS)
    return F.when(F.col("_n_rows") > 1, failure).otherwise(F.col(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
