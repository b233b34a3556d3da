"""The first Python boundary: compact lists in, every measure at every cutoff out.

The worker converts Arrow to numpy, calls the kernels and converts back; it contains no formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import Lists
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


def to_user_metrics(lists: DataFrame, *, measures: MeasureSet, zero_relevant: str = "exclude") -> DataFrame:
    """Score each list: one row per (list, cutoff) with the counts of ``schemas.USER_METRICS`` and a column a measure.

    Parameters
    ----------
    lists : DataFrame
        The compact rows of ``match.to_lists`` with their segments.
    measures : MeasureSet
        What is asked for. A column is NULL where its measure is undefined for the user or not asked for at this k.
    zero_relevant : {"exclude", "zero"}
        Value of a judged user without a relevant judgement: undefined, or that of a list without a hit, mostly 0.
    """
    facts = tuple(name for name in C.FACTS if name in lists.columns)
    scored = _score_udf(measures, fill_zero=zero_relevant == "zero", facts=facts)(
        *(F.col(name) for name in (*_COMPACT, *facts))
    )
    names = [*_COUNTS, *measures.columns]
    return (
        lists.withColumn(N_LISTED, F.col(C.N_RECOMMENDED) + F.col(C.N_DUPLICATES))
        .select(*_PASSED_ON, F.explode(scored).alias("_scored"))
        .select(*_PASSED_ON, *(F.col(f"_scored.{name}") for name in names))
        .select(*C.LIST_KEY, C.K, C.SEGMENTS, C.N_DUPLICATES, N_LISTED, *names[1:])
    )


def _score_udf(measures: MeasureSet, *, fill_zero: bool, facts: tuple[str, ...]) -> Callable[..., Column]:
    fields = {**_COUNTS, **dict.fromkeys(measures.columns, pa.float64())}
    struct = ",".join(f"{name}:{_SPARK_TYPES[type_]}" for name, type_ in fields.items())

    def score(
        n_recommended: pa.Array,
        hit_ranks: pa.Array,
        hit_gains: pa.Array,
        judged_gains: pa.Array,
        tied_ranks: pa.Array,
        *known: pa.Array,
    ) -> pa.Array:
        lists = _to_lists(n_recommended, hit_ranks, hit_gains, judged_gains)
        if facts:
            lists = replace(lists, items=to_item_facts(*map(dict(zip(facts, known, strict=True)).get, C.FACTS)))
        values = measures.score(lists)
        if fill_zero:
            worst = measures.without_relevant
            values = {
                name: _filled_where_judged(matrix, lists, measures.asked_at(name), worst[name])
                for name, matrix in values.items()
            }
        counts = _counts(lists, _ragged(tied_ranks), measures.ks)
        return _to_rows({**counts, **{name: _nullable(matrix) for name, matrix in values.items()}}, lists, measures.ks)

    scorer: Callable[..., Column] = F.arrow_udf(  # type: ignore[attr-defined]  # Spark's stubs leave it out
        score, f"array<struct<{struct}>>"
    )
    return scorer


def _to_lists(n_recommended: pa.Array, hit_ranks: pa.Array, hit_gains: pa.Array, judged_gains: pa.Array) -> Lists:
    hit_offsets, ranks = _ragged(hit_ranks)
    judged_offsets, judged = _ragged(judged_gains)
    gains = hit_gains.values.to_numpy(zero_copy_only=False)
    return Lists.from_ragged(_numpy(n_recommended), hit_offsets, ranks, gains, judged_offsets, judged)


def _ragged(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    return _numpy(column.offsets), _numpy(column.values)


def _numpy(values: pa.Array) -> np.ndarray:
    array: np.ndarray = values.to_numpy(zero_copy_only=False)
    return array


def _counts(lists: Lists, tied_ranks: tuple[np.ndarray, np.ndarray], ks: tuple[int, ...]) -> dict[str, pa.Array]:
    """Count, list by list and cutoff by cutoff, what stands beside the measures."""
    cut = lists.cut(ks)
    shape = (lists.n_lists, len(ks))
    n_judged = np.bincount(lists.judged_list, minlength=lists.n_lists)[:, None]
    offsets, ranks = tied_ranks
    tied_list = np.repeat(np.arange(lists.n_lists), np.diff(offsets))
    has_ties = has_mixed_ties(lists, tied_list, ranks[offsets[0] : offsets[-1]], ks)
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


def _filled_where_judged(values: np.ndarray, lists: Lists, is_asked: np.ndarray, worst: float) -> np.ndarray:
    """Give a judged user for whom the measure is undefined its worst value, at the cutoffs that are asked for."""
    is_judged = np.bincount(lists.judged_list, minlength=lists.n_lists)[:, None] > 0
    return np.where(np.isnan(values) & is_judged & is_asked[None, :], worst, values)


def _nullable(values: np.ndarray) -> pa.Array:
    """Flatten (list, cutoff) and turn NaN, the undefined case of the kernels, into NULL."""
    flat = values.ravel()
    return pa.array(flat, mask=np.isnan(flat))


def _to_rows(columns: dict[str, pa.Array], lists: Lists, ks: tuple[int, ...]) -> pa.Array:
    """Make, for each list, an array with a struct per cutoff."""
    rows = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    offsets = np.arange(lists.n_lists + 1, dtype=np.int32) * len(ks)
    return pa.ListArray.from_arrays(pa.array(offsets), rows)
