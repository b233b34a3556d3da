"""How much the lists of each model agree with those of one of them, user by user."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C

COLUMNS: Final = ("overlap", "jaccard", "rbo")


def to_agreement(ranked: DataFrame, *, baseline: Column, k: int, p: float) -> DataFrame:
    """Compare the first k items: one row per list of another model whose user got a list of the baseline too.

    Parameters
    ----------
    ranked : DataFrame
        Rows of ``rank.to_ranked``.
    baseline : Column
        The model that the others are compared with, as ``ranked`` names it.
    k : int
        Rank at which the lists are cut.
    p : float in (0, 1)
        Persistence of rank-biased overlap: the expected depth is 1 / (1 - p).

    Returns
    -------
    DataFrame
        The key of the list, then ``overlap``, ``jaccard`` and ``rbo``, all in [0, 1].

    Notes
    -----
    With S and L the lists at ranks 1..k, s <= l their lengths and X_d the items that stand in both at ranks 1..d:
    ``overlap = X_l / k``, ``jaccard = |S and L| / |S or L|``, and rbo is extrapolated, equation 32 of Webber, Moffat &
    Zobel (2010), A similarity measure for indefinite rankings: ``(1-p)/p (sum_{d=1..l} X_d p^d / d + sum_{d=s+1..l} X_s
    (d-s) p^d / (s d)) + ((X_l - X_s) / l + X_s / s) p^l``. An item that both hold adds its part of the first sum from
    the greater of its two ranks on, so that nothing is computed depth by depth.
    """
    key: list[str] = [name for name in (C.USER_ID, C.LIST_ID) if name in ranked.columns]
    top = ranked.where(F.col(C.RANK) <= k).select(*key, C.MODEL_ID, C.ITEM_ID, C.RANK)
    reference = top.where(F.col(C.MODEL_ID) == baseline).drop(C.MODEL_ID).withColumnRenamed(C.RANK, "_rank")
    lengths = reference.groupBy(*key).agg(F.count("*").cast("int").alias("_n_reference"))
    depth = F.when(F.col("_rank").isNotNull(), F.greatest(C.RANK, "_rank"))
    compared = (
        top.where(F.col(C.MODEL_ID) != baseline)
        .join(reference, on=[*key, C.ITEM_ID], how="left")
        .groupBy(C.MODEL_ID, *key)
        .agg(F.count("*").cast("int").alias("_n"), F.array_sort(F.collect_list(depth)).alias("_depths"))
        .join(lengths, on=key, how="inner")
    )
    n_common, n, n_reference = F.size("_depths"), F.col("_n"), F.col("_n_reference")
    return compared.select(
        C.MODEL_ID,
        *key,
        (n_common / F.lit(k)).alias("overlap"),
        (n_common / (n + n_reference - n_common)).alias("jaccard"),
        _rbo(F.least(n, n_reference), F.greatest(n, n_reference), n_common, k=k, p=p).alias("rbo"),
    )


def _rbo(short: Column, long: Column, n_common: Column, *, k: int, p: float) -> Column:
    """Rank-biased overlap, extrapolated; running sums of p^d and of p^d / d are looked up in arrays."""
    powers = _looked_up([0.0, *accumulate(p**d for d in range(1, k + 1))])
    shares = _looked_up([0.0, *accumulate(p**d / d for d in range(1, k + 1))])
    in_short = F.size(F.filter(F.col("_depths"), lambda depth: depth <= short))
    agreed = F.aggregate("_depths", F.lit(0.0), lambda total, depth: total + shares(long) - shares(depth - 1))
    unseen = in_short * ((powers(long) - powers(short)) / short - (shares(long) - shares(short)))
    beyond = ((n_common - in_short) / long + in_short / short) * F.pow(F.lit(p), long)
    return F.lit((1 - p) / p) * (agreed + unseen) + beyond


def _looked_up(numbers: list[float]) -> Callable[[Column], Column]:
    """Look a number up by its position, from 0."""
    array = F.array(*map(F.lit, numbers))
    return lambda position: F.element_at(array, position + 1)
