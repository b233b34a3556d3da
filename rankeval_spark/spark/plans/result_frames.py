"""Frames of results, from usable inputs; plans only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.request import agreement_request
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.spark.plans.user_rows import to_user_rows

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.spark.plans.user_rows import InputFrames

RequestedValue: TypeAlias = tuple[str, str, int]
"""Label, column in ``user_metrics`` and cutoff of a measure."""


def to_user_metrics(inputs: InputFrames, *, request: Request) -> DataFrame:
    """Score every list of the population at every cutoff: ``schemas.USER_METRICS`` from the model on."""
    return to_user_rows(inputs, request).to_user_rows()


def to_ranked_items(inputs: InputFrames, *, request: Request) -> DataFrame:
    """Rank the items of every list: model, user, list, item, rank, gain and whether the item is relevant.

    A row per item that is left in a list, in the population or not. ``gain`` is NULL without a judgement;
    ``is_relevant`` is true from a gain of 1 on.
    """
    plain = request.changed(slices=())
    ranked = to_user_rows(inputs, plain, needs=frozenset()).to_ranked_items()
    list_id = F.col(C.LIST_ID) if C.LIST_ID in ranked.columns else F.lit(C.ONE_LIST)
    return ranked.select(
        *(C.MODEL_ID, C.USER_ID, list_id.alias(C.LIST_ID), C.ITEM_ID, C.RANK, C.GAIN),
        (F.coalesce(C.GAIN, F.lit(0.0)) >= RELEVANT).alias("is_relevant"),
    )


def to_hit_ranks(ranked: DataFrame, model: str, baseline: str) -> DataFrame:
    """Join the ranks of the items that are relevant under either of two models side by side.

    A rank is NULL where a model did not recommend the item, and the best of several. Judgements may differ between the
    models where times attribute them: the gain is the larger one.

    `ranked`: rows of :func:`to_ranked_items`.
    """
    sides = {C.BASELINE_RANK: baseline, C.RANK: model}
    ranks = (F.min(F.when(F.col(C.MODEL_ID) == name, F.col(C.RANK))).alias(side) for side, name in sides.items())
    items = ranked.where(F.col(C.MODEL_ID).isin(model, baseline)).groupBy(C.USER_ID, C.LIST_ID, C.ITEM_ID)
    found = items.agg(F.max(C.GAIN).alias(C.GAIN), *ranks)
    return found.where(F.col(C.GAIN) >= RELEVANT)


def to_agreement(inputs: InputFrames, *, request: Request, baseline: str, k: int, p: float) -> DataFrame:
    """Compare the first k items of each list with those of the baseline: ``overlap``, ``jaccard`` and ``rbo``.

    One row per list of another model whose user got one of the baseline too, in the population or not.
    """
    asked, measures = agreement_request(request, baseline=baseline, k=k, p=p)
    scored = to_user_rows(inputs, asked).to_user_rows()
    has_lists = not inputs.has_one_list
    return scored.where(F.col(measures["overlap"].column).isNotNull()).select(
        *(C.MODEL_ID, C.USER_ID, *([C.LIST_ID] if has_lists else [])),
        *(F.col(measure.column).alias(name) for name, measure in measures.items()),
    )


def to_user_values(user_metrics: DataFrame, *, requested: Iterable[RequestedValue]) -> DataFrame:
    """Return one row per requested (list, measure, k); ``value`` is NULL where it is undefined."""
    before = [name for name in user_metrics.columns if name in C.RUN_KEY]
    values = F.array(*(_value(*one) for one in requested))
    return (
        user_metrics.select(*before, *C.LIST_KEY, C.K, F.explode(values).alias("_value"))
        .where(F.col(C.K) == F.col("_value.k"))
        .select(
            *before, *C.LIST_KEY, F.col("_value.measure").alias(C.MEASURE), C.K, F.col("_value.value").alias(C.VALUE)
        )
    )


def _value(label: str, column: str, k: int) -> Column:
    return F.struct(F.lit(label).alias(C.MEASURE), F.lit(k).alias(C.K), F.col(column).alias(C.VALUE))
