"""One judgement per (user, item), or per (list, item) where judgements belong to lists."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_numpy
from rankeval_spark.engine.batch.codes import ascending, places_among, starts_of_runs, to_codes
from rankeval_spark.engine.failures import refuse, refuse_input
from rankeval_spark.statistics.exact_sums import exact_sums

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import CodedRows
    from rankeval_spark.measures.arrays import FloatVector, IntVector


@dataclass(frozen=True)
class Judgements:
    """The judgements of a batch, in the order of (owner, item code).

    The owner is a user; a list of a user where judgements name lists; a list of a model where interactions are
    attributed to lists.
    """

    pair: IntVector  # (n_judged,) ``owner * n_items + item``, ascending, each once
    owner: IntVector  # (n_judged,) code of the owner
    gain: FloatVector  # (n_judged,)
    value: FloatVector | None = None  # (n_judged,) value, where a measure reads it
    groups: IntVector | None = None  # (n_judged,) bits of the item's groups, where a measure reads them
    # (n_judged,) probability with which the item was shown, where a measure reads it; NaN where it is NULL
    propensity: FloatVector | None = None
    # (n_judged,) weight, where a measure reads it; 0 where it is no finite number above 0
    weight: FloatVector | None = None

    @property
    def facts(self) -> list[np.ndarray]:
        """Facts of each judgement in addition to its gain."""
        return [fact for fact in (self.value, self.groups, self.weight) if fact is not None]

    def descending(self) -> Judgements:
        """Sort by owner and gain, the largest gain first; then by value, groups and weight, likewise."""
        order = np.lexsort((*(-fact for fact in reversed(self.facts)), -self.gain, self.owner))
        return self.at(order)

    def at(self, places: IntVector) -> Judgements:
        """Select judgements by their positions."""
        known: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        taken = {name: numbers[places] for name, numbers in known.items() if numbers is not None}
        return Judgements(**taken)


def to_judgements(
    held_out: CodedRows, *, n_items: int, duplicates: str, item_groups: IntVector | None = None
) -> Judgements:
    """Build one judgement per (owner, item).

    ``held_out``: usable rows of the held-out table; ``user`` is the owner. ``duplicates`` {"max", "sum", "last",
    "error"}: gain of a pair with several rows: the largest, their sum, rounded once (an infinite one is refused), that
    of the newest ``interacted_at`` (of several the largest; NULL is the oldest), or an error. Values follow the same
    rule. Of the weight there has to be one for a pair. ``item_groups`` (n_items,): bits of the groups of each item,
    where a measure reads them.
    """
    pair = held_out.user * n_items + held_out.item
    order = np.argsort(pair)
    rows = _rows(held_out, pair, item_groups).at(order)
    is_first = starts_of_runs(rows.pair)
    if is_first.all():
        return rows
    if rows.propensity is not None:
        fix = "give every impression a user of its own, such as the id of the request"
        refuse_input(
            "held_out", "a user has two impressions of an item", expected="one, because propensities are read", fix=fix
        )
    if duplicates == "error":
        refuse("held_out_duplicates", "a (user, item) pair occurs twice in the held-out table")
    if rows.weight is not None and (rows.weight[1:] != rows.weight[:-1])[~is_first[1:]].any():
        expected = "one for each user and item, because measures with weighted=True are computed"
        fix = "give all rows of a user and an item the weight of that item"
        refuse_input("held_out", "a user has two weights for an item", expected=expected, fix=fix)
    pair_code = np.cumsum(is_first) - 1
    last = np.append(np.flatnonzero(is_first)[1:], len(order)) - 1
    if duplicates == "sum":
        lengths = np.diff(last, prepend=-1)
        gains = _finite_sums("gains", rows.gain, lengths)
        values = None if rows.value is None else _finite_sums("values", rows.value, lengths)
        return replace(rows.at(last), gain=gains, value=values)
    if duplicates == "last":
        times = _times(held_out)[order]
        gain = rows.at(np.lexsort((rows.gain, times, pair_code)))
        value = gain if rows.value is None else rows.at(np.lexsort((rows.value, rows.gain, times, pair_code)))
    else:
        gain = rows.at(np.lexsort((rows.gain, pair_code)))
        value = gain if rows.value is None else rows.at(np.lexsort((rows.value, pair_code)))
    best = gain.at(last)
    return replace(best, value=None if value.value is None else value.value[last])


def _finite_sums(what: str, numbers: FloatVector, lengths: IntVector) -> FloatVector:
    sums = exact_sums(numbers, lengths)
    if not np.isfinite(sums).all():
        fix = f"correct the {what} of the held-out table"
        refuse_input("held_out", f"the {what} of a user and an item add up to infinity", expected="a number", fix=fix)
    return sums


def _rows(held_out: CodedRows, pair: IntVector, item_groups: IntVector | None) -> Judgements:
    columns = held_out.columns
    gain = np.zeros(0) if not len(pair) else to_numpy(columns[C.GAIN])
    value = None
    if C.VALUE in columns:  # the judgement stays, because other measures do not read its value
        found = to_numpy(columns[C.VALUE])
        value = np.where(np.isfinite(found), found, 0.0)
    groups = None if item_groups is None else item_groups[held_out.item]
    propensity = to_numpy(columns[C.PROPENSITY], null=np.nan) if C.PROPENSITY in columns else None
    weight = usable_weights(columns[C.WEIGHT]) if C.WEIGHT in columns else None
    return Judgements(pair, held_out.user, gain.astype(np.float64, copy=False), value, groups, propensity, weight)


def usable_weights(column: pa.Array | pa.ChunkedArray) -> FloatVector:
    """Return the weights of judgements, 0 where one is NULL, NaN, infinite or not above 0.

    >>> usable_weights(pa.array([2.0, -1.0, None, float("inf")]))
    array([2., 0., 0., 0.])
    """
    found = to_numpy(column, null=np.nan).astype(np.float64, copy=False)
    return np.where(np.isfinite(found) & (found > 0), found, 0.0)


def _times(held_out: CodedRows) -> IntVector:
    """Places of the times in their order, NULL first."""
    codes = to_codes(held_out.columns[C.INTERACTED_AT].cast(pa.int64()))
    places = np.append(ascending(codes.values) + 1, 0) if codes.n_values else np.zeros(1, dtype=np.int64)
    return places[codes.code]  # the code of NULL is -1: the last


def gains_of(pair: IntVector, judgements: Judgements) -> IntVector:
    """Find the judgement of each (owner, item): its position, -1 where there is none."""
    return places_among(pair, judgements.pair)
