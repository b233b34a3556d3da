"""Ranking, matching and the core measures in plain Spark, with windows and joins: a slow reference for the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window, functions as F

if TYPE_CHECKING:
    from collections.abc import Sequence

LIST: Final = ["model_id", "user_id", "list_id"]
MEASURES: Final = ("p", "r", "rr", "success", "ap", "ndcg")
COUNTS: Final = ("n_judged", "n_relevant", "n_recommended", "n_hits")


@dataclass(frozen=True)
class Rules:
    """The policies that the reference knows, by the names and values of ``evaluate``."""

    ties: str = "item_asc"
    duplicates: str = "best"
    held_out_duplicates: str = "max"
    rank_gaps: str = "renumber"
    judged_only: bool = False


def to_user_metrics(
    log: DataFrame, held_out: DataFrame, *, rules: Rules, models: Sequence[str], ks: Sequence[int]
) -> DataFrame:
    """Score the lists of every judged user at every cutoff, 0 being the whole list: key, k, counts and measures.

    Parameters
    ----------
    log : DataFrame
        ``model_id``, ``user_id``, ``list_id``, ``item_id`` and ``score`` or ``rank``, or both.
    held_out : DataFrame
        ``user_id``, ``item_id``, ``gain``, ``interacted_at``.
    """
    judgements = to_judgements(held_out, duplicates=rules.held_out_duplicates)
    ranked = to_ranked(log, judgements, rules=rules)
    cutoffs = F.explode(F.array(*map(F.lit, ks))).alias("k")
    named = F.explode(F.array(*map(F.lit, models))).alias("model_id")
    users = judgements.groupBy("user_id").agg(F.count("*").alias("n_judged"), _n_relevant().alias("n_relevant"))
    lengths = ranked.groupBy(*LIST).agg(F.max("place").alias("n"))
    lists = users.select("*", named).join(lengths, on=["user_id", "model_id"], how="left")
    lists = lists.withColumn("list_id", F.coalesce("list_id", F.lit(""))).fillna(0, "n").select("*", cutoffs)
    scored = lists.join(_of_hits(ranked, cutoffs), on=[*LIST, "k"], how="left")
    scored = scored.join(_ideal(judgements, cutoffs), on=["user_id", "k"], how="left").fillna(0)
    return scored.select(*LIST, "k", *_counts(), *_measures())


def to_judgements(held_out: DataFrame, *, duplicates: str) -> DataFrame:
    """Make one row per (user, item); the gains have one decimal, so that a sum of decimals is exact."""
    gain = {
        "max": F.max("gain"),
        "sum": F.sum(F.col("gain").cast("decimal(18,1)")).cast("double"),
        "last": F.max(F.struct("interacted_at", "gain"))["gain"],
    }[duplicates]
    return held_out.groupBy("user_id", "item_id").agg(gain.alias("gain"))


def to_ranked(log: DataFrame, judgements: DataFrame, *, rules: Rules) -> DataFrame:
    """Rank the lists: one row per list and item with its place and its gain, NULL without a judgement."""
    items = log.join(judgements, on=["user_id", "item_id"], how="left")
    if rules.judged_only:
        items = items.where(F.col("gain") >= 0)
    if rules.duplicates == "best":
        copies = Window.partitionBy(*LIST, "item_id").orderBy(*_best_first(items, rules))
        items = items.withColumn("copy", F.row_number().over(copies)).where("copy = 1")
    place = F.row_number().over(Window.partitionBy(*LIST).orderBy(*_best_first(items, rules)))
    return items.withColumn("place", F.col("rank") if rules.rank_gaps == "keep" else place)


def _best_first(items: DataFrame, rules: Rules) -> list[Column]:
    """Sort by score, or rank; then by what the policy says."""
    by_score = "score" in items.columns and rules.rank_gaps != "keep"
    score = F.desc(F.col("score") + 0.0) if by_score else F.asc("rank")
    gain, rank = F.coalesce("gain", F.lit(0.0)), [F.asc_nulls_last("rank")] if "rank" in items.columns else []
    breakers = {
        "item_asc": [F.asc("item_id"), *rank],
        "item_desc": [F.desc("item_id"), *rank],
        "item_desc_bytes": [F.desc(F.col("item_id").cast("string")), *rank],
        "rank": [*rank, F.asc("item_id")],
        "optimistic": [F.desc(gain), F.asc("item_id"), *rank],
        "pessimistic": [F.asc(gain), F.asc("item_id"), *rank],
    }
    return [score, *breakers[rules.ties]]


def _n_relevant() -> Column:
    return F.count_if(F.col("gain") >= 1)


def _is_within() -> Column:
    return (F.col("k") == 0) | (F.col("place") <= F.col("k"))


def _discounted() -> Column:
    return F.sum(F.greatest("gain", F.lit(0.0)) / F.log2(F.col("place") + 1))


def _of_hits(ranked: DataFrame, cutoffs: Column) -> DataFrame:
    """Sum up the judged items of each list at each cutoff: hits, the first of them, precisions, discounted gains."""
    above = Window.partitionBy(*LIST).orderBy("place").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_hit = F.coalesce(F.col("gain") >= 1, F.lit(False))
    hits = ranked.withColumn("h", F.count_if(is_hit).over(above)).where("gain IS NOT NULL")
    return (
        hits.select("*", cutoffs)
        .where(_is_within())
        .groupBy(*LIST, "k")
        .agg(
            _n_relevant().alias("n_hits"),
            F.min(F.when(is_hit, F.col("place"))).alias("first"),
            F.sum(F.when(is_hit, F.col("h") / F.col("place"))).alias("precisions"),
            _discounted().alias("dcg"),
        )
    )


def _ideal(judgements: DataFrame, cutoffs: Column) -> DataFrame:
    """Discount the gains of each user in their best order, at each cutoff."""
    best = Window.partitionBy("user_id").orderBy(F.desc("gain"))
    placed = judgements.withColumn("place", F.row_number().over(best)).select("*", cutoffs)
    return placed.where(_is_within()).groupBy("user_id", "k").agg(_discounted().alias("ideal"))


def _counts() -> list[Column]:
    n_recommended = F.when(F.col("k") == 0, F.col("n")).otherwise(F.least("n", "k"))
    return [F.col("n_judged"), F.col("n_relevant"), n_recommended.alias("n_recommended"), F.col("n_hits")]


def _measures() -> list[Column]:
    """Divide; NULL where the measure is undefined, and for the precision of a whole list."""
    has_hit, is_defined = F.col("n_hits") > 0, F.col("n_relevant") > 0
    values = {
        "p": F.when(F.col("k") > 0, F.col("n_hits") / F.col("k")),
        "r": F.col("n_hits") / F.col("n_relevant"),
        "rr": F.when(has_hit, 1 / F.col("first")).otherwise(F.lit(0.0)),
        "success": has_hit.cast("double"),
        "ap": F.col("precisions") / F.col("n_relevant"),
    }
    ndcg = F.when(F.col("ideal") > 0, F.col("dcg") / F.col("ideal")).alias("ndcg")
    return [*(F.when(is_defined, value).alias(name) for name, value in values.items()), ndcg]
