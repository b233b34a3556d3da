"""The first Python boundary: compact lists in, every measure at every cutoff out.

The worker converts Arrow to numpy, calls the kernels and converts back; it contains no formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import Lists
from rankeval_spark.measures.expected_ties import over_all_orders
from rankeval_spark.measures.groups import Groups
from rankeval_spark.measures.ties import has_mixed_ties
from rankeval_spark.stages.item_facts import to_item_facts

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet

_COUNTS = {
    C.K: pa.int32(),
    C.N_JUDGED: pa.int32(),
    C.N_RELEVANT: pa.int32(),
    C.N_RECOMMENDED: pa.int32(),
    C.N_HITS: pa.int32(),
    C.HAS_TIES: pa.bool_(),
}
N_LISTED = "_n_listed"
"""Usable rows of the list in the log, repeated items among them."""

RELEVANT = 1.0
"""Gain from which `n_relevant` and `n_hits` count a judgement, whatever the levels of the measures."""

_SPARK_TYPES = {pa.int32(): "int", pa.bool_(): "boolean", pa.float64(): "double"}
_COMPACT = (C.N_RECOMMENDED, C.HIT_RANKS, C.HIT_GAINS, C.JUDGED_GAINS, C.TIED_RANKS)
_PASSED_ON = (*C.LIST_KEY, C.SEGMENTS, C.N_DUPLICATES, N_LISTED)
_PASSED_ON_WHERE_THERE = (*C.OF_RANKS, C.SEEN)


def to_user_metrics(
    lists: DataFrame, *, measures: MeasureSet, zero_relevant: str = "exclude", ties: str = "item_asc"
) -> DataFrame:
    """Score each list: one row per (list, cutoff) with the counts of ``schemas.USER_METRICS`` and a column a measure.

    Parameters
    ----------
    lists : DataFrame
        The compact rows of ``match.to_lists`` with their segments, and with ``hit_scores`` where a measure needs them.
        What only checks look at (:data:`columns.OF_RANKS`, :data:`columns.SEEN`) is passed on.
    measures : MeasureSet
        What is asked for. A column is NULL where its measure is undefined for the user or not asked for at this k;
        with agg='micro' a second one holds the denominators.
    zero_relevant : {"exclude", "error", "zero", "one"}
        Value of a user without a relevant judgement: undefined (with ``error``, the stage of the population fails
        him), that of a list without a hit, mostly 0, or 1. Users outside the population get it too, and lose it there.
    ties : str
        With ``expected`` the measures are means over all orders of tied items, the counts beside them are those of the
        order that the lists are in. Any other policy was decided when they were ranked.
    """
    scores = [C.HIT_SCORES] if C.HIT_SCORES in measures.needs else []
    facts = (*(name for name in C.READ_BY_MEASURES if name in lists.columns), *scores)
    score = _score_udf(
        measures, fill=_fills(measures).get(zero_relevant), has_expected_ties=ties == "expected", facts=facts
    )
    scored = score(*(F.col(name) for name in (*_COMPACT, *facts)))
    names = [*_COUNTS, *measures.stored]
    for_checks = [name for name in _PASSED_ON_WHERE_THERE if name in lists.columns]
    return (
        lists.withColumn(N_LISTED, F.col(C.N_RECOMMENDED) + F.col(C.N_DUPLICATES))
        .select(*_PASSED_ON, *for_checks, F.explode(scored).alias("_scored"))
        .select(*_PASSED_ON, *for_checks, *(F.col(f"_scored.{name}") for name in names))
        .select(*C.LIST_KEY, C.K, C.SEGMENTS, C.N_DUPLICATES, N_LISTED, *for_checks, *names[1:])
    )


def _fills(measures: MeasureSet) -> dict[str, Mapping[str, float]]:
    """Give the value of a user for whom a measure is undefined, by policy and column."""
    return {"zero": measures.without_relevant, "one": measures.at_best}


def _score_udf(
    measures: MeasureSet, *, fill: Mapping[str, float] | None, has_expected_ties: bool, facts: tuple[str, ...]
) -> Callable[..., Column]:
    fields = {**_COUNTS, **dict.fromkeys(measures.stored, pa.float64())}
    struct = ",".join(f"{name}:{_SPARK_TYPES[type_]}" for name, type_ in fields.items())

    def score(
        n_recommended: pa.Array,
        hit_ranks: pa.Array,
        hit_gains: pa.Array,
        judged_gains: pa.Array,
        tied_ranks: pa.Array,
        *more: pa.Array,
    ) -> pa.Array:
        known = dict(zip(facts, more, strict=True))
        lists = _to_lists(n_recommended, hit_ranks, hit_gains, judged_gains, known.get(C.HIT_SCORES))
        lists = _with_facts(lists, known, measures.groups)
        tied_list, tied_rank = _flat(_ragged(tied_ranks))
        values = measures.score(over_all_orders(lists, tied_list, tied_rank) if has_expected_ties else lists)
        if fill is not None:
            values |= {
                name: _filled(
                    values[name], measures.asked_at(name)[None, :] & measures.can_have_value(lists, name), fill[name]
                )
                for name in measures.columns
            }
        for name, weight in measures.weights.items():  # the sums are taken where the value is defined
            values[weight] = np.where(np.isnan(values[name]), np.nan, values[weight])
        counts = _counts(lists, tied_list, tied_rank, measures.ks)
        return _to_rows(counts | {name: _nullable(values[name]) for name in measures.stored}, lists, measures.ks)

    scorer: Callable[..., Column] = F.arrow_udf(  # type: ignore[attr-defined]  # Spark's stubs leave it out
        score, f"array<struct<{struct}>>"
    )
    return scorer


def _to_lists(
    n_recommended: pa.Array,
    hit_ranks: pa.Array,
    hit_gains: pa.Array,
    judged_gains: pa.Array,
    hit_scores: pa.Array | None = None,
) -> Lists:
    hit_offsets, ranks = _ragged(hit_ranks)
    judged_offsets, judged = _ragged(judged_gains)
    gains = hit_gains.values.to_numpy(zero_copy_only=False)
    scores = None if hit_scores is None else _numpy(hit_scores.values)
    return Lists.from_ragged(_numpy(n_recommended), hit_offsets, ranks, gains, judged_offsets, judged, scores)


def _with_facts(lists: Lists, known: Mapping[str, pa.Array], groups: tuple[str, ...]) -> Lists:
    """Add what measures read beside ranks, gains and scores."""
    if not known.keys().isdisjoint(C.FACTS):
        lists = replace(lists, items=to_item_facts(*map(known.get, C.FACTS)))
    flat = {name: _numpy(known[name].flatten()) for name in C.OF_JUDGEMENTS if name in known}
    if C.HIT_VALUES in flat:
        lists = replace(lists, hit_value=flat[C.HIT_VALUES], judged_value=flat[C.JUDGED_VALUES])
    if C.HIT_GROUPS in flat:
        lists = replace(lists, groups=Groups(groups, flat[C.HIT_GROUPS], flat[C.JUDGED_GROUPS]))
    return lists


def _ragged(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    return _numpy(column.offsets), _numpy(column.values)


def _flat(column: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Give the values of a ragged column and the row of each."""
    offsets, values = column
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), values[offsets[0] : offsets[-1]]


def _numpy(values: pa.Array) -> np.ndarray:
    array: np.ndarray = values.to_numpy(zero_copy_only=False)
    return array


def _counts(lists: Lists, tied_list: np.ndarray, tied_rank: np.ndarray, ks: tuple[int, ...]) -> dict[str, pa.Array]:
    """Count, list by list and cutoff by cutoff, what stands beside the measures."""
    cut = lists.cut(ks)
    shape = (lists.n_lists, len(ks))
    n_judged = np.bincount(lists.judged_list, minlength=lists.n_lists)[:, None]
    has_ties = has_mixed_ties(lists, tied_list, tied_rank, ks)
    no_list = np.broadcast_to(lists.n_recommended[:, None] == 0, shape)
    return {
        C.K: _int32(np.asarray(ks)[None, :], shape),
        C.N_JUDGED: _int32(n_judged, shape),
        C.N_RELEVANT: _int32(cut.n_relevant(RELEVANT), shape),
        C.N_RECOMMENDED: _int32(cut.depth, shape),
        C.N_HITS: _int32(cut.hits(RELEVANT), shape),
        C.HAS_TIES: pa.array(has_ties.ravel(), mask=no_list.ravel()),
    }


def _int32(counts: np.ndarray, shape: tuple[int, int]) -> pa.Array:
    return pa.array(np.broadcast_to(counts, shape).astype(np.int32).ravel())


def _filled(values: np.ndarray, can_be: np.ndarray, fill: float) -> np.ndarray:
    """Give a user for whom the measure is undefined a value, at the cutoffs that are asked for."""
    return np.where(np.isnan(values) & can_be, fill, values)


def _nullable(values: np.ndarray) -> pa.Array:
    """Flatten (list, cutoff) and turn NaN, the undefined case of the kernels, into NULL."""
    flat = values.ravel()
    return pa.array(flat, mask=np.isnan(flat))


def _to_rows(columns: dict[str, pa.Array], lists: Lists, ks: tuple[int, ...]) -> pa.Array:
    """Make, for each list, an array with a struct per cutoff."""
    rows = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    offsets = np.arange(lists.n_lists + 1, dtype=np.int32) * len(ks)
    return pa.ListArray.from_arrays(pa.array(offsets), rows)
