"""Match ranked items with judgements: from item rows to one compact row per list."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.clean import is_finite, policy_failure
from rankeval_spark.stages.other_lists import with_other_lists
from rankeval_spark.stages.rank import (
    IS_CONTRARY,
    IS_LAST,
    IS_TIED,
    N_COPIES,
    RANK_DIFFERS,
    facts_of,
    list_order,
    with_gains,
)


def to_judgements(held_out: DataFrame, *, duplicates: str, keep_values: bool = False) -> DataFrame:
    """Make one row per (user, item) with its gain and ``_n_copies``, partitioned by user.

    Bits of item groups (``_groups``) stay where the rows have them.

    Parameters
    ----------
    held_out : DataFrame
        Usable rows of ``schemas.HELD_OUT``.
    duplicates : {"max", "sum", "last", "error"}
        Gain of a pair that stands twice: the largest, the sum, that of the newest ``interacted_at`` (the largest of
        several; a NULL is the oldest), or a failure of the job.
    keep_values : bool
        Whether the values are kept, for measures that need them: put together as the gains are. One that is NULL, NaN
        or infinite counts as 0; the judgement stays, because others do not ask what it is worth.
    """
    when = [C.INTERACTED_AT] if duplicates == "last" else []
    values = [F.when(is_finite(C.VALUE), F.col(C.VALUE)).otherwise(F.lit(0.0)).alias(C.VALUE)] if keep_values else []
    groups = [C.GROUPS] if C.GROUPS in held_out.columns else []
    judgements = (
        held_out.select(C.USER_ID, C.ITEM_ID, C.GAIN, *when, *values, *groups)
        .repartition(C.USER_ID)
        .groupBy(C.USER_ID, C.ITEM_ID)
        .agg(
            _gain(duplicates).alias(C.GAIN),
            *([_value(duplicates).alias(C.VALUE)] if keep_values else []),
            *(F.max(name).alias(name) for name in groups),  # the same in all copies
            F.count("*").cast("int").alias(N_COPIES),
        )
    )
    if duplicates != "error":
        return judgements
    failure = policy_failure("held_out_duplicates", "a (user, item) pair stands twice in the held-out table")
    return judgements.where(F.when(F.col(N_COPIES) > 1, failure.cast("boolean")).otherwise(F.lit(True)))


def _gain(duplicates: str) -> Column:
    if duplicates == "last":
        return F.max(F.struct(C.INTERACTED_AT, C.GAIN))[C.GAIN]
    return _sum(C.GAIN) if duplicates == "sum" else F.max(C.GAIN)


def _value(duplicates: str) -> Column:
    if duplicates == "last":
        return F.max(F.struct(C.INTERACTED_AT, C.GAIN, C.VALUE))[C.VALUE]
    return _sum(C.VALUE) if duplicates == "sum" else F.max(C.VALUE)


def _sum(name: str) -> Column:
    # In ascending order: added up as they come, the same numbers give another last bit on another partitioning.
    return F.aggregate(F.array_sort(F.collect_list(name)), F.lit(0.0), lambda total, number: total + number)


def to_lists(  # noqa: PLR0913 - a frame each
    ranked: DataFrame,
    *,
    judgements: DataFrame,
    models: DataFrame,
    profiles: DataFrame | None = None,
    pairs: DataFrame | None = None,
    others: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Make one compact row per list; a judged user whom a model gave no list gets an empty one, ``list_id`` ''.

    Grain: (model, user, list). Judgements join n:1 on (user, item); users are crossed with the models, then full
    outer joined on (user, model): 1:n, so that neither a user without a list nor a list without a judged user vanishes.
    Ranked items with a column ``score`` give the lists a column ``hit_scores``.
    Values and bits of item groups of the judgements give the lists the columns :data:`columns.OF_JUDGEMENTS`.
    What is wrong with the ranks of the log becomes the columns :data:`columns.OF_RANKS`.
    Facts of items in the ranked rows are collected; profiles join the lists n:1 on the user, pairs 1:1. With ``others``
    each list gets those that these models gave the same user.
    """
    hits = _to_hits(ranked, judgements=judgements)
    if others:
        hits = hits.transform(with_other_lists, models=others)
    if profiles is not None:  # here, where the rows are still partitioned by user
        hits = hits.join(profiles, on=[C.USER_ID], how="left")
    if pairs is not None:
        hits = hits.join(pairs, on=list_order(ranked), how="left")
    list_id = F.coalesce(C.LIST_ID, F.lit(C.ONE_LIST)) if C.LIST_ID in hits.columns else F.lit(C.ONE_LIST)
    return (
        _to_judged_users(judgements)
        .crossJoin(F.broadcast(models))
        .join(hits, on=[C.USER_ID, C.MODEL_ID], how="full")
        .select(
            C.MODEL_ID,
            C.USER_ID,
            list_id.alias(C.LIST_ID),
            F.coalesce(C.N_RECOMMENDED, F.lit(0)).alias(C.N_RECOMMENDED),
            F.coalesce(C.N_DUPLICATES, F.lit(0)).alias(C.N_DUPLICATES),
            _or_empty("_hits.rank", "int").alias(C.HIT_RANKS),
            _or_empty("_hits.gain", "double").alias(C.HIT_GAINS),
            _or_empty(C.JUDGED_GAINS, "double").alias(C.JUDGED_GAINS),
            _or_empty(C.TIED_RANKS, "int").alias(C.TIED_RANKS),
            *([_or_empty("_hits.score", "double").alias(C.HIT_SCORES)] if C.SCORE in ranked.columns else []),
            *(
                _or_empty(name, element).alias(alias)
                for fact in facts_of(judgements)
                for name, element, alias in _OF_FACT[fact]
            ),
            *(name for name in (*C.OF_RANKS, C.ITEM_FACTS, C.PROFILE, C.PAIRS, C.OTHER_LISTS) if name in hits.columns),
        )
    )


def _to_judged_users(judgements: DataFrame) -> DataFrame:
    """Group the judgements: one row per user with all his gains, descending."""
    # The aggregate reads the item too: a projection without it could not reuse the exchange of the row join.
    users, facts = judgements.groupBy(C.USER_ID), facts_of(judgements)
    if not facts:
        return users.agg(F.sort_array(F.collect_list(C.GAIN), asc=False).alias(C.JUDGED_GAINS))
    judged = users.agg(F.sort_array(F.collect_list(F.struct(C.GAIN, *facts)), asc=False).alias("_judged"))
    alias = {C.GAIN: C.JUDGED_GAINS, C.VALUE: C.JUDGED_VALUES, C.GROUPS: C.JUDGED_GROUPS}
    return judged.select(C.USER_ID, *(F.col(f"_judged.{name}").alias(alias[name]) for name in (C.GAIN, *facts)))


def _to_hits(ranked: DataFrame, *, judgements: DataFrame) -> DataFrame:
    """Group the ranked items: one row per list with the ranks and gains of its judged items.

    Most items have nothing to tell and are dropped before the grouping, which is not compiled and takes them one by
    one; the last of a list stays for its length, and all whose facts a measure reads or whose ranks the log has wrong.
    """
    facts = [C.ITEM_FACTS] if C.ITEM_FACTS in ranked.columns else []
    tells = F.col(C.GAIN).isNotNull() | F.col(IS_TIED) | (F.col(N_COPIES) > 1) | F.col(IS_LAST)
    if RANK_DIFFERS in ranked.columns:
        tells |= F.col(RANK_DIFFERS).isNotNull()
    if IS_CONTRARY in ranked.columns:
        tells |= F.col(IS_CONTRARY)
    of_hits = [C.RANK, C.GAIN, *([C.SCORE] if C.SCORE in ranked.columns else []), *facts_of(judgements)]
    hit = F.when(F.col(C.GAIN).isNotNull(), F.struct(*of_hits))
    tied_rank = F.when(F.col(IS_TIED), F.col(C.RANK))
    judged = ranked if C.GAIN in ranked.columns else ranked.transform(with_gains, judgements=judgements)
    return (
        judged.where(reduce(or_, (F.col(fact).isNotNull() for fact in facts), tells))
        .groupBy(*list_order(ranked))
        .agg(
            F.max(C.RANK).alias(C.N_RECOMMENDED),
            F.sum(F.col(N_COPIES) - 1).cast("int").alias(C.N_DUPLICATES),
            F.array_sort(F.collect_list(hit)).alias("_hits"),
            F.array_sort(F.collect_list(tied_rank)).alias(C.TIED_RANKS),
            *(F.array_sort(F.collect_list(fact)).alias(fact) for fact in facts),
            *_of_ranks(ranked),
        )
    )


def _of_ranks(ranked: DataFrame) -> list[Column]:
    """Say of each list what is wrong with its ranks in the log; a gap that a repeated item left is none."""
    n_repeated, differs = F.sum(F.col(N_COPIES) - 1), F.coalesce(F.sum(RANK_DIFFERS), F.lit(0))
    columns = {
        RANK_DIFFERS: ((differs != 0) & (n_repeated == 0)).alias(C.HAS_RANK_GAPS),
        IS_CONTRARY: F.bool_or(IS_CONTRARY).alias(C.IS_OUT_OF_ORDER),
    }
    return [column for name, column in columns.items() if name in ranked.columns]


_OF_FACT: Final = {
    C.VALUE: ((f"_hits.{C.VALUE}", "double", C.HIT_VALUES), (C.JUDGED_VALUES, "double", C.JUDGED_VALUES)),
    C.GROUPS: ((f"_hits.{C.GROUPS}", "bigint", C.HIT_GROUPS), (C.JUDGED_GROUPS, "bigint", C.JUDGED_GROUPS)),
}
"""Where each fact of judgements stands before lists and users are joined, its type and its column after that."""


def _or_empty(name: str, element: str) -> Column:
    return F.coalesce(F.col(name), F.array().cast(f"array<{element}>"))
