"""From the rows of ``metrics`` of a slicing to how far its groups lie apart: what they say of it, side by side."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import of_groups

NIGHT: Final = (C.EVALUATION, C.EVALUATION_DATE)
KEY: Final = (C.MODEL_ID, C.SLICE, C.MEASURE, C.K)
COLUMNS: Final = (
    *KEY,
    *(
        "n_groups",
        "n_left_out",
        "gap",
        "ci_low",
        "ci_high",
        "ci_level",
        "ratio",
        "ratio_ci_low",
        "ratio_ci_high",
        "mad",
    ),
    *("lowest_group", "lowest_value", "highest_group", "highest_value"),
)

_KIND: Final = "_kind"


def to_gaps(metrics: DataFrame, group_metrics: DataFrame) -> DataFrame:
    """Put what is known of each slicing into one row per (model, slice, measure, k), in the order of ``COLUMNS``.

    The evaluation and its date come first where the rows have them, and are kept apart.

    Groups that are small, whose measure is undefined, or for whose users a segment is unknown are left out and
    counted in ``n_left_out``. ``gap`` is the greatest value less the least, ``ratio`` the least over the greatest with
    its own interval, ``mad`` the mean absolute difference of all pairs (Elliot's UserMAD); NULL below two groups. These
    are rows of ``group_metrics`` already; the groups at both ends are found here.

    Parameters
    ----------
    metrics : DataFrame
        Rows of ``schemas.METRICS``.
    group_metrics : DataFrame
        Rows of ``schemas.GROUP_METRICS`` made of them.
    """
    night = [name for name in NIGHT if name in metrics.columns]
    kind, measure = (F.regexp_extract(C.MEASURE, of_groups.PATTERN, place) for place in (1, 2))
    is_group = F.col(_KIND) == ""
    counts = is_group & is_compared()
    both = [*night, *KEY, C.SLICE_VALUE, C.SLICE_VALUES, C.VALUE, "is_small", "ci_low", "ci_high", "ci_level"]
    return (
        metrics.select(*both)
        .unionByName(group_metrics.select(*both))
        .withColumn(_KIND, kind)
        .where((F.col(C.SLICE) != C.ALL_USERS) & F.col(_KIND).isin("", *of_groups.KINDS))
        .withColumn(C.MEASURE, F.when(is_group, F.col(C.MEASURE)).otherwise(measure))
        .groupBy(*night, *KEY)
        .agg(
            F.count_if(counts).cast("int").alias("n_groups"),
            F.count_if(is_group & ~counts).cast("int").alias("n_left_out"),
            _said(of_groups.GROUP_GAP, C.VALUE).alias("gap"),
            _said(of_groups.GROUP_GAP, "ci_low").alias("ci_low"),
            _said(of_groups.GROUP_GAP, "ci_high").alias("ci_high"),
            F.max("ci_level").alias("ci_level"),
            _said(of_groups.GROUP_RATIO, C.VALUE).alias("ratio"),
            _said(of_groups.GROUP_RATIO, "ci_low").alias("ratio_ci_low"),
            _said(of_groups.GROUP_RATIO, "ci_high").alias("ratio_ci_high"),
            _said(of_groups.USER_MAD, C.VALUE).alias("mad"),
            *_extreme("lowest", F.col(C.VALUE), counts),
            *_extreme("highest", -F.col(C.VALUE), counts),
        )
    )


def is_compared() -> Column:
    """Say whether a group is one of those that are held against each other: not small, known, and with a value."""
    is_known = ~F.exists(C.SLICE_VALUES, lambda value: value.isNull())
    return F.col(C.VALUE).isNotNull() & ~F.col("is_small") & is_known


def _said(kind: str, name: str) -> Column:
    """Take a number from the one row of that kind."""
    return F.max(F.when(F.col(_KIND) == kind, F.col(name)))


def _extreme(end: str, order: Column, counts: Column) -> list[Column]:
    """Name the first group in that order and its value; of two that are equal, the one whose name comes first."""
    first = F.when(counts, F.struct(order.alias("order"), F.col(C.SLICE_VALUE), F.col(C.VALUE)))
    return [F.min(first)[name].alias(f"{end}_{of}") for name, of in ((C.SLICE_VALUE, "group"), (C.VALUE, "value"))]
