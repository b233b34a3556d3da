"""Order each list: one total order, ties by the declared rule, repeated items by the declared policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.clean import order_column, policy_failure
from rankeval_spark.stages.dropped import drop_seen

N_COPIES = "_n_copies"
"""Times the item stands in the list; 1 where the log is trusted to hold it once."""

IS_TIED = "_is_tied"
"""Whether the score equals that of the rank before."""

IS_LAST = "_is_last"
"""Whether no item of the list stands below: the rank is the length of the list."""

RANK_DIFFERS = "_rank_differs"
"""Number that adds up to 0 over a list whose ranks in the log are 1 to n in any order; NULL where the log agrees."""

IS_CONTRARY = "_is_contrary"
"""Whether the item has a lower score than the one before it, and a better rank in the log."""

_BY_GAIN: Final[Mapping[str, Callable[[Column], Column]]] = {"optimistic": F.desc, "pessimistic": F.asc}
"""Policies for ties that look at the gains."""

_LOGGED, _LOGGED_BEFORE = "_logged", "_logged_before"


def needs_gains(ties: str, *, judged_only: bool) -> bool:
    """Tell whether lists can only be ranked once the gains of their items are known."""
    return judged_only or ties in _BY_GAIN


def to_ranked(  # noqa: PLR0913 - the policies of a list
    recommendations: DataFrame,
    *,
    ties: str,
    duplicates: str,
    rank_gaps: str = "renumber",
    judgements: DataFrame | None = None,
    judged_only: bool = False,
    seen: DataFrame | None = None,
    is_whole: bool = True,
    keep_scores: bool = False,
) -> DataFrame:
    """Rank each list: one row per (model, user, list, item), with its rank and what :mod:`match` must know of it.

    Ranks start at 1, have no gaps, and are given after repeated items were removed. The frame is repartitioned by
    user here and nowhere else: the windows, the join with the judgements and the grouping per list reuse that exchange.
    With ``judgements`` the rows have their ``gain`` too, NULL without a judgement. Where the log has ranks that are
    given anew the rows say how these differ, in :data:`RANK_DIFFERS` and, with scores, :data:`IS_CONTRARY`.

    Parameters
    ----------
    recommendations : DataFrame
        Usable rows of ``schemas.RECOMMENDATIONS``; without a column ``score`` the lists are ordered by ``rank``,
        without a column ``list_id`` every user has one list of a model.
    ties : {"item_asc", "item_desc", "rank", "optimistic", "pessimistic", "error"}
        What orders items of equal score: the item id (integers by value, strings by their bytes), the item id as
        bytes descending (trec_eval), the column ``rank`` and then the item, the gain (descending or ascending; 0
        without a judgement) and then the item, or nothing: a tie fails the job.
    duplicates : {"best", "error", "keep"}
        What happens to an item that stands twice in a list: its best place counts, the job fails, or both count
        (recall above 1 is then possible; for parity with other tools, and for logs known to hold each item once).
    rank_gaps : {"renumber", "keep"}
        Whether items are numbered anew or keep the rank of the log, which orders them then; two items at one rank
        fail the job.
    judgements : DataFrame, optional
        As of ``match.to_judgements``; for policies that :func:`needs_gains` names.
    judged_only : bool
        Whether items without a judgement, or with a negative gain, are left out before the rest is ranked: as of
        trec_eval, a negative one marks an item of the pool that was not judged.
    seen : DataFrame, optional
        Rows of ``schemas.TRAIN``, whose (user, item) are left out before the rest is ranked.
    is_whole : bool
        Whether the rows are all of their lists in the log. Where some were left out, here or before, nothing is said
        about the ranks in the log.
    keep_scores : bool
        Whether the score of each item is kept, for measures that need it; the log then has scores.
    """
    is_whole = is_whole and seen is None and not judged_only
    is_checked = C.RANK in recommendations.columns and rank_gaps == "renumber" and is_whole
    if not is_checked and ties != "rank" and rank_gaps == "renumber" and order_column(recommendations) != C.RANK:
        recommendations = recommendations.drop(C.RANK)
    items = recommendations.repartition(C.USER_ID)
    if seen is not None:
        items = items.transform(drop_seen, train=seen)
    if judgements is not None:
        items = items.transform(with_gains, judgements=judgements)
    if judged_only:
        items = items.where(F.col(C.GAIN) >= 0)  # not so for NULL, which stands for no judgement
    return items.transform(_once_per_list, duplicates=duplicates, ties=ties).transform(
        _with_rank, ties=ties, rank_gaps=rank_gaps, keep_scores=keep_scores, is_checked=is_checked
    )


def with_gains(items: DataFrame, *, judgements: DataFrame) -> DataFrame:
    """Add the gain of each item, and facts of its judgement, NULL without one; n:1 on (user, item)."""
    gains = judgements.select(C.USER_ID, C.ITEM_ID, C.GAIN, *facts_of(judgements))
    return items.join(gains, on=[C.USER_ID, C.ITEM_ID], how="left")


def facts_of(judgements: DataFrame) -> list[str]:
    """Name what judgements hold beside their gains, where a measure reads it: values, bits of item groups."""
    return [name for name in (C.VALUE, C.GROUPS) if name in judgements.columns]


def list_order(items: DataFrame) -> list[str]:
    """Return the key of a list in the order that sorts fastest: most comparisons end at the user.

    A ``list_id`` that is the same everywhere is better left out of the frame: grouped by it, rows are hashed again
    although they come in the order of their lists.
    """
    return [name for name in (C.USER_ID, C.MODEL_ID, C.LIST_ID) if name in items.columns]


def best_first(recommendations: DataFrame, *, ties: str) -> list[Column]:
    """Sort order of a list, best item first; total, so that it never depends on the order of the input."""
    score = order_column(recommendations)
    best = F.desc_nulls_last(score) if score == C.SCORE else F.asc_nulls_last(score)
    by_rank = [F.asc_nulls_last(C.RANK)] if ties == "rank" and score != C.RANK else []
    by_gain = [_BY_GAIN[ties](F.coalesce(C.GAIN, F.lit(0.0)))] if ties in _BY_GAIN else []
    # The bytes of the text, as trec_eval: 'd2' before 'd10'. Spark orders strings by their UTF-8 bytes.
    item = F.desc(F.col(C.ITEM_ID).cast("string")) if ties == "item_desc" else F.asc(C.ITEM_ID)
    # It decides nothing between two items; but whoever reads the ranked rows then reads it, and they share an exchange.
    last = [F.asc_nulls_last(C.RANK)] if C.RANK in recommendations.columns and not by_rank and score != C.RANK else []
    return [best, *by_rank, *by_gain, item, *last]


def _list_window(recommendations: DataFrame, *, ties: str) -> WindowSpec:
    return Window.partitionBy(*list_order(recommendations)).orderBy(*best_first(recommendations, ties=ties))


def _once_per_list(recommendations: DataFrame, *, duplicates: str, ties: str) -> DataFrame:
    """Keep the best row of each (list, item) and count its copies.

    A window, not an aggregate: on 10 million rows the hash aggregate took twice the time of this sort.
    """
    if duplicates == "keep":
        return recommendations.withColumn(N_COPIES, F.lit(1))
    copies = Window.partitionBy(*list_order(recommendations), C.ITEM_ID).orderBy(
        *best_first(recommendations, ties=ties)
    )
    all_copies = copies.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    counted = recommendations.select(
        "*", F.row_number().over(copies).alias("_copy"), F.count("*").over(all_copies).cast("int").alias(N_COPIES)
    )
    is_best = F.col("_copy") == 1
    if duplicates == "error":
        failure = policy_failure("duplicates", "an item stands twice in one list")
        is_best = F.when(F.col(N_COPIES) > 1, failure.cast("boolean")).otherwise(is_best)
    return counted.where(is_best).drop("_copy")


def _with_rank(
    recommendations: DataFrame, *, ties: str, rank_gaps: str, keep_scores: bool, is_checked: bool
) -> DataFrame:
    """Give ranks from 1; mark the items that tie with the one before, and the last: one window, one sort."""
    window = _list_window(recommendations, ties=ties)
    order = order_column(recommendations)
    gain = [name for name in (C.GAIN, C.VALUE, C.GROUPS) if name in recommendations.columns]
    rank = F.row_number().over(window) if rank_gaps == "renumber" else F.col(C.RANK)
    is_tied = _is_tied(F.col("_before") == F.col(order), policy="rank_gaps" if rank_gaps == "keep" else ties)
    faults = _rank_faults(order) if is_checked else []
    logged = {_LOGGED: F.col(C.RANK), _LOGGED_BEFORE: F.lag(C.RANK).over(window)} if faults else {}
    return recommendations.select(
        *(F.col(name) for name in (*list_order(recommendations), C.ITEM_ID, N_COPIES, order, *gain)),
        rank.alias("_rank"),
        F.lag(order).over(window).alias("_before"),
        F.lead(order).over(window).isNull().alias(IS_LAST),  # the order is never NULL: clean saw to that
        *(column.alias(name) for name, column in logged.items()),
    ).select(
        *list_order(recommendations),
        C.ITEM_ID,
        N_COPIES,
        F.col("_rank").alias(C.RANK),
        is_tied.alias(IS_TIED),
        IS_LAST,
        *([C.SCORE] if keep_scores else []),
        *gain,
        *faults,
    )


def _rank_faults(order: str) -> list[Column]:
    """Tell where the ranks of the log are others than those given; an item that has none is left aside.

    Hashes, because a sum of ranks is right by accident, and differences, because a row that agrees then has nothing to
    tell: it need not reach the grouping per list. 32 bits of them, whose sum over a list overflows nothing.
    """
    given, logged = F.col("_rank"), F.col(_LOGGED)
    differs = F.when(logged != given, F.hash(logged).cast("bigint") - F.hash(given).cast("bigint"))
    if order != C.SCORE:
        return [differs.alias(RANK_DIFFERS)]
    is_contrary = (F.col(order) < F.col("_before")) & (logged < F.col(_LOGGED_BEFORE))
    return [differs.alias(RANK_DIFFERS), F.coalesce(is_contrary, F.lit(False)).alias(IS_CONTRARY)]


def _is_tied(has_equal_score: Column, *, policy: str) -> Column:
    failures = {
        "error": policy_failure("ties", "two items of one list have the same score"),
        "rank_gaps": policy_failure("rank_gaps", "two items of one list have the same rank", setting="keep"),
    }
    if policy in failures:
        return F.when(has_equal_score, failures[policy].cast("boolean")).otherwise(F.lit(False))
    return F.coalesce(has_equal_score, F.lit(False))
