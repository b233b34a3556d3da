"""The first Python boundary: compact lists in, every measure at every cutoff out.

The worker converts Arrow to numpy, calls the kernels and converts back; it contains no formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import Lists
from rankeval_spark.measures.expected_ties import over_all_orders
from rankeval_spark.measures.groups import Groups
from rankeval_spark.measures.needs import LIST_NAMES
from rankeval_spark.measures.ties import has_mixed_ties
from rankeval_spark.stages.clean import quoted
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


@dataclass(frozen=True)
class Beside:
    """What is made of each batch of lists beside its rows, in a column of these.

    Attributes
    ----------
    inputs : tuple of str
        Columns of the lists that it is made of beside the scores.
    spark_type : str
        Type of the column, which is called :data:`columns.PARTIALS`.
    make : callable
        Function of the scores and of the inputs: an Arrow array with a cell for each list and cutoff.
    """

    inputs: tuple[str, ...]
    spark_type: str
    make: Callable[[Scored, Mapping[str, pa.Array]], pa.Array]


def to_user_metrics(
    lists: DataFrame,
    *,
    measures: MeasureSet,
    zero_relevant: str = "exclude",
    ties: str = "item_asc",
    beside: Beside | None = None,
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
    beside : Beside, optional
        What else is made of each batch of lists; the rows then have one more column.
    """
    scorer = Scorer.of(lists, measures=measures, zero_relevant=zero_relevant, ties=ties)
    inputs = () if beside is None else beside.inputs
    scored = _score_udf(scorer, beside)(*scorer.expressions, *map(F.col, inputs))
    names = [*_COUNTS, *measures.stored, *([] if beside is None else [C.PARTIALS])]
    for_checks = [name for name in _PASSED_ON_WHERE_THERE if name in lists.columns]
    return (
        lists.withColumn(N_LISTED, F.col(C.N_RECOMMENDED) + F.col(C.N_DUPLICATES))
        .select(*_PASSED_ON, *for_checks, F.explode(scored).alias("_scored"))
        .select(*_PASSED_ON, *for_checks, *(F.col(f"_scored.{name}") for name in names))
        .select(*C.LIST_KEY, C.K, C.SEGMENTS, C.N_DUPLICATES, N_LISTED, *for_checks, *names[1:])
    )


@dataclass(frozen=True)
class Scored:
    """What the kernels make of a batch of lists.

    Attributes
    ----------
    values : dict of str to float64, shape (n_lists, n_cutoffs)
        Values of the measures and denominators of those that have them, by column; NaN where undefined or not asked
        for.
    counts : dict of str to int or bool, shape (n_lists, n_cutoffs)
        What stands beside the measures, by column; ``has_ties`` says nothing of a user without a list.
    """

    values: Mapping[str, np.ndarray]
    counts: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Scorer:
    """What a worker needs to score lists, and how it does.

    Attributes
    ----------
    measures : MeasureSet
        What is asked for.
    zero_relevant, ties : str
        Policies, as of :func:`to_user_metrics`.
    facts : tuple of str
        Columns that measures read beside the compact rows.
    """

    measures: MeasureSet
    zero_relevant: str
    ties: str
    facts: tuple[str, ...]

    @classmethod
    def of(cls, lists: DataFrame, *, measures: MeasureSet, zero_relevant: str, ties: str) -> Scorer:
        """Read such of the facts that ``lists`` have as measures need."""
        asked_for = [name for name in (C.HIT_SCORES, LIST_NAMES) if name in measures.needs]
        facts = (*(name for name in C.READ_BY_MEASURES if name in lists.columns), *asked_for)
        return cls(measures, zero_relevant, ties, facts)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that :meth:`score` takes."""
        return (*_COMPACT, *self.facts)

    @property
    def expressions(self) -> list[Column]:
        """The same of compact rows; what a list is called is made of its user and its model."""
        names = F.concat(F.lit("user "), quoted(F.col(C.USER_ID)), F.lit(" under model "), quoted(F.col(C.MODEL_ID)))
        return [names.alias(LIST_NAMES) if name == LIST_NAMES else F.col(name) for name in self.columns]

    def score(self, columns: Mapping[str, pa.Array]) -> Scored:
        """Compute every measure at every cutoff for a batch of compact rows."""
        measures = self.measures
        lists = _to_lists(columns, measures.groups)
        tied_list, tied_rank = _flat(_ragged(columns[C.TIED_RANKS]))
        values = measures.score(over_all_orders(lists, tied_list, tied_rank) if self.ties == "expected" else lists)
        for name, fill in self._fills.items():
            can_be = measures.asked_at(name)[None, :] & measures.can_have_value(lists, name)
            values[name] = _filled(values[name], can_be, fill)
        for name, weight in measures.weights.items():  # the sums are taken where the value is defined
            values[weight] = np.where(np.isnan(values[name]), np.nan, values[weight])
        return Scored(values, _counts(lists, tied_list, tied_rank, measures.ks))

    @property
    def _fills(self) -> Mapping[str, float]:
        """Value of a user for whom a measure is undefined, by column; none where he stays so."""
        return {"zero": self.measures.without_relevant, "one": self.measures.at_best}.get(self.zero_relevant, {})


def _score_udf(scorer: Scorer, beside: Beside | None) -> Callable[..., Column]:
    fields = {**_COUNTS, **dict.fromkeys(scorer.measures.stored, pa.float64())}
    types = {name: _SPARK_TYPES[type_] for name, type_ in fields.items()}
    names, make = scorer.columns, None
    if beside is not None:
        types[C.PARTIALS] = beside.spark_type
        names, make = (*names, *beside.inputs), beside.make
    struct = ",".join(f"{name}:{type_}" for name, type_ in types.items())

    def score(n_recommended: pa.Array, *more: pa.Array) -> pa.Array:
        columns = dict(zip(names, (n_recommended, *more), strict=True))
        scored = scorer.score(columns)
        own = {} if make is None else {C.PARTIALS: make(scored, columns)}
        return _to_rows(scored, scorer.measures, own)

    udf: Callable[..., Column] = F.arrow_udf(  # type: ignore[attr-defined]  # Spark's stubs leave it out
        score, f"array<struct<{struct}>>"
    )
    return udf


def _to_lists(columns: Mapping[str, pa.Array], groups: tuple[str, ...]) -> Lists:
    hit_offsets, ranks = _ragged(columns[C.HIT_RANKS])
    judged_offsets, judged = _ragged(columns[C.JUDGED_GAINS])
    gains = columns[C.HIT_GAINS].values.to_numpy(zero_copy_only=False)
    scores = _numpy(columns[C.HIT_SCORES].values) if C.HIT_SCORES in columns else None
    lengths = _numpy(columns[C.N_RECOMMENDED])
    lists = Lists.from_ragged(lengths, hit_offsets, ranks, gains, judged_offsets, judged, scores)
    return _with_facts(lists, columns, groups)


def _with_facts(lists: Lists, known: Mapping[str, pa.Array], groups: tuple[str, ...]) -> Lists:
    """Add what measures read beside ranks, gains and scores."""
    if not known.keys().isdisjoint(C.FACTS):
        lists = replace(lists, items=to_item_facts(*map(known.get, C.FACTS)))
    flat = {name: _numpy(known[name].flatten()) for name in C.OF_JUDGEMENTS if name in known}
    if C.HIT_VALUES in flat:
        lists = replace(lists, hit_value=flat[C.HIT_VALUES], judged_value=flat[C.JUDGED_VALUES])
    if C.HIT_GROUPS in flat:
        lists = replace(lists, groups=Groups(groups, flat[C.HIT_GROUPS], flat[C.JUDGED_GROUPS]))
    return replace(lists, names=known[LIST_NAMES].to_pylist()) if LIST_NAMES in known else lists


def _ragged(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    return _numpy(column.offsets), _numpy(column.values)


def _flat(column: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Give the values of a ragged column and the row of each."""
    offsets, values = column
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), values[offsets[0] : offsets[-1]]


def _numpy(values: pa.Array) -> np.ndarray:
    array: np.ndarray = values.to_numpy(zero_copy_only=False)
    return array


def _counts(lists: Lists, tied_list: np.ndarray, tied_rank: np.ndarray, ks: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Count, list by list and cutoff by cutoff, what stands beside the measures."""
    cut = lists.cut(ks)
    counts = {
        C.K: np.asarray(ks)[None, :],
        C.N_JUDGED: np.bincount(lists.judged_list, minlength=lists.n_lists)[:, None],
        C.N_RELEVANT: cut.n_relevant(RELEVANT),
        C.N_RECOMMENDED: cut.depth,
        C.N_HITS: cut.hits(RELEVANT),
        C.HAS_TIES: has_mixed_ties(lists, tied_list, tied_rank, ks),
    }
    return {name: np.broadcast_to(count, (lists.n_lists, len(ks))) for name, count in counts.items()}


def _filled(values: np.ndarray, can_be: np.ndarray, fill: float) -> np.ndarray:
    """Give a user for whom the measure is undefined a value, at the cutoffs that are asked for."""
    return np.where(np.isnan(values) & can_be, fill, values)


def _to_rows(scored: Scored, measures: MeasureSet, more: Mapping[str, pa.Array]) -> pa.Array:
    """Make, for each list, an array with a struct per cutoff; NaN, the undefined case of the kernels, turns NULL."""
    counts = {name: scored.counts[name].ravel() for name in _COUNTS}
    values = {name: scored.values[name].ravel() for name in measures.stored}
    has_no_list = counts[C.N_RECOMMENDED] == 0
    columns = {
        **{name: pa.array(count.astype(_COUNTS[name].to_pandas_dtype())) for name, count in counts.items()},
        C.HAS_TIES: pa.array(counts[C.HAS_TIES], mask=has_no_list),
        **{name: pa.array(value, mask=np.isnan(value)) for name, value in values.items()},
        **more,
    }
    rows = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    n_ks = len(measures.ks)
    offsets = np.arange(len(rows) // n_ks + 1, dtype=np.int32) * n_ks
    return pa.ListArray.from_arrays(pa.array(offsets), rows)
