"""Values of measures from the columns of compact lists, and the population: who enters the means.

Arrow is turned into numpy here, the kernels are called, and their values are turned back; there is no formula here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import owners_of, to_numpy
from rankeval_spark.engine.failures import refuse
from rankeval_spark.engine.scoring.item_facts_from_arrow import to_item_facts
from rankeval_spark.measures import Lists
from rankeval_spark.measures.lists import Empty, RaggedGains, RaggedHits
from rankeval_spark.measures.required_facts import LIST_NAMES, Groups
from rankeval_spark.measures.ties import has_mixed_ties, over_all_orders

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.config import Policies
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.measures.arrays import BoolVector, IntVector


IS_EVALUATED: Final = "_is_evaluated"  # whether a scored row belongs to the population; the others are only counted


class Members(NamedTuple):
    """Flags of each list; all of shape (n_lists,)."""

    is_evaluated: BoolVector  # whether the user belongs to the population; the others are only counted
    is_missing: BoolVector  # whether a judged user has no list
    is_zero_relevant: BoolVector  # whether a judged user has no relevant judgement
    is_extra: BoolVector  # whether the user has no judgement
    has_both: BoolVector  # whether the user has judgements and a list


def members_of(n_judged: IntVector, n_relevant: IntVector, n_recommended: IntVector, *, policies: Policies) -> Members:
    """Decide about each list.

    ``truth`` and ``judged`` take every user of the held-out table (they differ in what a user without a relevant
    judgement scores) unless ``missing`` leaves out those without a list; ``intersection`` and ``intersection_judged``
    take those who also got a list, ``run`` all who got one.
    """
    is_judged, has_list = n_judged > 0, n_recommended > 0
    has_both, is_missing = is_judged & has_list, is_judged & ~has_list
    is_zero_relevant = is_judged & (n_relevant == 0)
    belongs = {"intersection": has_both, "intersection_judged": has_both, "run": has_list}.get(
        policies.population, is_judged
    )
    if policies.missing == "exclude":
        belongs = belongs & has_list
    if policies.missing == "error" and np.any(is_missing):
        refuse("missing", "a judged user has no list")
    if policies.zero_relevant == "error" and np.any(belongs & is_zero_relevant):
        refuse("zero_relevant", "a user has no judgement with a gain of 1 or more")
    return Members(belongs, is_missing, is_zero_relevant, ~is_judged, has_both)


COUNTED: Final = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS, C.HAS_TIES)
"""Counts of each list at each cutoff, the last one true or false."""

RELEVANT: Final = 1.0
"""Gain from which `n_relevant` and `n_hits` count a judgement, whatever the levels of the measures."""

COMPACT: Final = (C.N_RECOMMENDED, C.HIT_RANKS, C.HIT_GAINS, C.JUDGED_GAINS, C.TIED_RANKS)
"""Columns of compact lists that every measure set reads."""

_FIELDS: Final[Mapping[str, str]] = {
    **{C.HIT_VALUES: "hit_value", C.JUDGED_VALUES: "judged_value"},
    **{C.HIT_WEIGHTS: "hit_weight", C.JUDGED_WEIGHTS: "judged_weight"},
    **{C.HIT_PROPENSITIES: "hit_propensity", C.HIT_PREDICTIONS: "hit_prediction"},
}
"""Fields of a batch that columns of lists become."""


@dataclass(frozen=True)
class Scored:
    """Values and counts of a batch of lists."""

    # (n_lists, n_cutoffs) values of the measures and denominators of those that have them, by column; NaN where
    # undefined or not requested
    values: Mapping[str, np.ndarray]
    # (n_lists, n_cutoffs) counts by column; ``has_ties`` means nothing for a user without a list
    counts: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Scorer:
    """Scoring of compact lists."""

    measures: MeasureSet
    # policies: what a user scores where a measure is undefined, and whether values are means over all orders of tied
    # items (``expected``)
    zero_relevant: str
    ties: str
    judged_only: bool = False  # policy: whether unjudged items have left the lists

    def score(self, columns: Mapping[str, pa.Array]) -> Scored:
        """Compute every measure at every cutoff for a batch of compact lists.

        ``columns``: :data:`COMPACT`, and such of :data:`columns.READ_BY_MEASURES`, ``hit_scores`` and names of the
        lists as measures need.
        """
        measures = self.measures
        lists = _to_lists(columns, measures.groups)
        tied_list, tied_rank = owners_of(columns[C.TIED_RANKS]), to_numpy(columns[C.TIED_RANKS].flatten())
        spread = over_all_orders(lists, tied_list, tied_rank) if self.ties == "expected" else lists
        values = measures.score(spread, judged_only=self.judged_only)
        for name, fill in self._fills.items():
            can_be = measures.is_requested_at(name)[None, :] & measures.can_have_value(lists, name)
            values[name] = filled(values[name], can_be, fill)
        for name, weight in measures.weights.items():  # the sums are taken where the value is defined
            values[weight] = np.where(np.isnan(values[name]), np.nan, values[weight])
        return Scored(values, _counts(lists, tied_list, tied_rank, measures.ks))

    @property
    def _fills(self) -> Mapping[str, float]:
        """Value where a measure is undefined, by column; none where it stays undefined."""
        return {"zero": self.measures.without_relevant, "one": self.measures.at_best}.get(self.zero_relevant, {})


def filled(values: np.ndarray, can_be: np.ndarray, fill: float) -> np.ndarray:
    """Fill in a value where the measure is undefined, at the cutoffs that are requested."""
    return np.where(np.isnan(values) & can_be, fill, values)


def _to_lists(columns: Mapping[str, pa.Array], groups: tuple[str, ...]) -> Lists:
    hit_offsets, ranks = _ragged(columns[C.HIT_RANKS])
    judged_offsets, judged = _ragged(columns[C.JUDGED_GAINS])
    gains = to_numpy(columns[C.HIT_GAINS].values)
    scores = to_numpy(columns[C.HIT_SCORES].values) if C.HIT_SCORES in columns else None
    lengths = to_numpy(columns[C.N_RECOMMENDED])
    hits = RaggedHits(hit_offsets, ranks, gains, scores)
    lists = Lists.from_ragged(lengths, hits, RaggedGains(judged_offsets, judged))
    if C.EMPTY_RANKS in columns:
        lists = replace(lists, empty=_to_empty(columns[C.EMPTY_RANKS]))
    return _with_facts(lists, columns, groups)


def _to_empty(runs: pa.Array) -> Empty:
    return Empty(owners_of(runs), *map(to_numpy, runs.flatten().flatten()))


def n_empty(columns: Mapping[str, pa.Array]) -> np.ndarray:
    """Count the ranks of each list without an item: int64, shape (n_lists,)."""
    n_lists = len(columns[C.N_RECOMMENDED])
    if C.EMPTY_RANKS not in columns:
        return np.zeros(n_lists, dtype=np.int64)
    owner, first, last = _to_empty(columns[C.EMPTY_RANKS])
    return np.bincount(owner, weights=last - first + 1, minlength=n_lists).astype(np.int64)


def _with_facts(lists: Lists, known: Mapping[str, pa.Array], groups: tuple[str, ...]) -> Lists:
    """Add what measures read in addition to ranks, gains and scores."""
    if not known.keys().isdisjoint(C.FACTS):
        lists = replace(lists, items=to_item_facts(*map(known.get, C.FACTS)))
    flat = {name: to_numpy(known[name].flatten()) for name in C.OF_JUDGEMENTS if name in known}
    fields: dict[str, Any] = {field: flat[name] for name, field in _FIELDS.items() if name in flat}
    lists = replace(lists, **fields)
    if C.PREDICTED_VALUE in known:
        lists = replace(lists, predicted_value=to_numpy(known[C.PREDICTED_VALUE]))
    if C.HIT_GROUPS in flat:
        lists = replace(lists, groups=Groups(groups, flat[C.HIT_GROUPS], flat[C.JUDGED_GROUPS]))
    return replace(lists, names=known[LIST_NAMES].to_pylist()) if LIST_NAMES in known else lists


def _ragged(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    return to_numpy(column.offsets), to_numpy(column.values)


def _counts(lists: Lists, tied_list: np.ndarray, tied_rank: np.ndarray, ks: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Count, list by list and cutoff by cutoff, judgements, items and hits."""
    cut = lists.cut(ks)
    counts = {
        C.N_JUDGED: np.bincount(lists.judged_list, minlength=lists.n_lists)[:, None],
        C.N_RELEVANT: cut.n_relevant(RELEVANT),
        C.N_RECOMMENDED: cut.depth,
        C.N_HITS: cut.hits(RELEVANT),
        C.HAS_TIES: has_mixed_ties(lists, tied_list, tied_rank, ks),
    }
    return {name: np.broadcast_to(count, (lists.n_lists, len(ks))) for name, count in counts.items()}
