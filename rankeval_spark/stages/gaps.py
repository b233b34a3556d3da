"""From the rows of ``metrics`` of a slicing to how far its groups lie apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import of_groups
from rankeval_spark.stages.jackknifed import N_GROUPS
from rankeval_spark.statistics import links
from rankeval_spark.statistics.gaps import gap_of, ratio_interval

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

_TEXT: Final = (C.EVALUATION, C.MODEL_ID, C.SLICE, C.MEASURE, "lowest_group", "highest_group")
_WHOLE: Final = (C.K, "n_groups", "n_left_out")
_RANGES: Final = ("gap", "ci_low", "ci_high", "ratio", "ratio_ci_low", "ratio_ci_high", "mad")


def to_gaps(metrics: DataFrame) -> DataFrame:
    """Compare the groups of each slicing: one row per (model, slice, measure, k), in the order of ``COLUMNS``.

    The evaluation and its date come first where the rows have them, and are kept apart.

    Groups that are small, whose measure is undefined, or for whose users a segment is unknown are left out and
    counted in ``n_left_out``. ``gap`` is the greatest value less the least, ``ratio`` the least over the greatest with
    its own interval, ``mad`` the mean absolute difference of all pairs (Elliot's UserMAD); NULL below two groups.

    Parameters
    ----------
    metrics : DataFrame
        Rows of ``schemas.METRICS``.
    """
    night = [name for name in NIGHT if name in metrics.columns]
    is_known = ~F.exists(C.SLICE_VALUES, lambda value: value.isNull())
    counts = F.col(C.VALUE).isNotNull() & ~F.col("is_small") & is_known
    freedom = F.when(F.col("ci_method") == "jackknife", N_GROUPS - 1).otherwise(F.col("n_users") - 1).cast("double")
    group = F.struct(C.SLICE_VALUE, C.VALUE, "std_error", freedom.alias("freedom"))
    of_one_group = (F.col(C.SLICE) != C.ALL_USERS) & ~F.col(C.MEASURE).rlike(of_groups.PATTERN)
    return (
        metrics.where(of_one_group)
        .groupBy(*night, *KEY)
        .agg(
            F.array_sort(F.collect_list(F.when(counts, group))).alias("_groups"),
            F.count_if(~counts).alias("n_left_out"),
            F.max("ci_level").alias("ci_level"),
        )
        .mapInArrow(_comparer((*night, *COLUMNS)), ", ".join(f"{name} {_type(name)}" for name in (*night, *COLUMNS)))
    )


def _type(name: str) -> str:
    if name == C.EVALUATION_DATE:
        return "date"
    return "string" if name in _TEXT else "int" if name in _WHOLE else "double"


_ARROW_TYPES: Final = {"string": pa.string(), "int": pa.int32(), "double": pa.float64(), "date": pa.date32()}


def _comparer(names: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [_row(row) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pydict(
                {name: pa.array([row[name] for row in rows], _ARROW_TYPES[_type(name)]) for name in names}
            )

    return compare


def _row(row: dict[str, object]) -> dict[str, object]:
    groups = row.pop("_groups")
    if not isinstance(groups, list):
        message = "the groups of a row are a list"
        raise TypeError(message)
    values, errors, freedom = (
        np.array([np.nan if one[name] is None else one[name] for one in groups], dtype=np.float64)
        for name in (C.VALUE, "std_error", "freedom")
    )
    measure = of_groups.measure_of(str(row[C.MEASURE]))
    errors = links.std_error(measure.link if measure else "identity", values, errors)
    estimates = (values, errors, freedom, float(str(row["ci_level"])))
    is_share = measure is not None and measure.is_proportion
    found, bounds = gap_of(*estimates, is_share=is_share), ratio_interval(*estimates, is_share=is_share)
    numbers = dict(zip(_RANGES, (found.gap, found.low, found.high, found.ratio, *bounds, found.mad), strict=True))
    extremes = {"lowest": values.argmin, "highest": values.argmax} if groups else {}
    named = {end: groups[int(place())] for end, place in extremes.items()}
    return {
        **row,
        "n_groups": len(groups),
        **{name: None if np.isnan(number) else float(number) for name, number in numbers.items()},
        **{f"{end}_group": named[end][C.SLICE_VALUE] if named else None for end in ("lowest", "highest")},
        **{f"{end}_value": named[end][C.VALUE] if named else None for end in ("lowest", "highest")},
    }
