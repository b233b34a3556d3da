"""Rows that explain a value: the items of its list with what each adds, the ideal list, and the numbers in between."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.scorer import COUNTED, RELEVANT, read_lists, spread_lists
from rankeval_spark.measures.measure_set import restrict_lists
from rankeval_spark.measures.traces import trace_value, with_places

if TYPE_CHECKING:
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.engine.ranked_lists import RankedLists
    from rankeval_spark.measures import Lists, Measure
    from rankeval_spark.measures.traces import Trace

LIST: Final = "list"  # what a row is of: a rank of the list
IDEAL: Final = "ideal"  # a rank of the ideal list
NUMBER: Final = "number"  # a number on the way to the value, by its name
PART: Final = "part"

# Numbers beside those of :class:`Trace`: the value in `user_metrics`, NULL where the list has none, and why it may be
# another one than the kernel's
KERNEL_VALUE: Final = "value of the formula"
IS_EVALUATED: Final = "is evaluated"
IS_SUM: Final = "is a sum"  # 1 where contributions of the ranks add up to the value, or to the ratio

OF_RANK: Final = ("gain", "worth", "discount", "term", "contribution", "after")
"""Numbers of a rank: the gain of its item and its worth, the discount of the rank, both multiplied, what this makes of
the value, and the value of the list down to this rank."""

SCHEMA: Final = pa.schema(
    {
        **{name: pa.string() for name in (C.MODEL_ID, C.USER_ID, C.LIST_ID, PART, "name")},
        **{C.RANK: pa.int32(), C.ITEM_ID: pa.string()},
        **dict.fromkeys(OF_RANK, pa.float64()),
        C.VALUE: pa.float64(),
    }.items()
)


def to_trace_rows(part: Part, place: int, measure: Measure) -> pa.RecordBatch:
    """Trace the value of the list at a place of a part: rows of :data:`SCHEMA`."""
    policies = part.outputs.policies
    # Groups are bits of the judgements, in the order of all measures
    columns = {name: column.slice(place, 1) for name, column in part.lists.items()}
    lists, tied_list, tied_rank = read_lists(columns, part.outputs.computed.groups)
    spread = spread_lists(with_places(lists), tied_list, tied_rank, ties=policies.ties)
    trace = trace_value(measure, spread, judged_only=policies.judged_only)
    keys = {name: str(columns[name][0].as_py()) for name in C.LIST_KEY}
    items, judged = ({}, []) if part.ranked is None else _items_of(part.ranked, part.start + place)
    gains = dict(zip(lists.hit_rank.tolist(), lists.hit_gain.tolist(), strict=True))
    depth = int(part.scored.counts[C.N_RECOMMENDED][place, part.outputs.computed.ks.index(measure.k)])
    found = [*_rows_of_list(trace, items, gains, depth), *_rows_of_ideal(trace, judged)]
    found += _rows_of_numbers(part, place, measure, lists)
    numbers = {**trace.numbers, KERNEL_VALUE: trace.value, IS_SUM: float("contribution" in trace.by_rank)}
    found += [{PART: NUMBER, "name": name, C.VALUE: _or_none(number)} for name, number in numbers.items()]
    return pa.RecordBatch.from_pylist([{**keys, **row} for row in found], SCHEMA)


def _items_of(ranked: RankedLists, code: int) -> tuple[dict[int, str], list[str]]:
    """Return the items of a list by rank, and the judged items that it is compared with, the greatest gain first."""
    names, log = ranked.batch.items, ranked.batch.log
    places = np.arange(ranked.start[code], ranked.start[code] + ranked.length[code])
    ranks, codes = ranked.rank_at(places).tolist(), log.item[ranked.row[places]].tolist()
    judgements = ranked.judgements.sort_by_gain()
    of_list = judgements.pair[judgements.owner == ranked.owner[code]] % ranked.batch.n_items
    listed = {rank: str(names[item].as_py()) for rank, item in zip(ranks, codes, strict=True)}
    return listed, [str(names[item].as_py()) for item in of_list.tolist()]


def _rows_of_list(trace: Trace, items: dict[int, str], gains: dict[int, float], depth: int) -> Iterator[dict[str, Any]]:
    """Yield a row a rank, down to the cutoff or to the last rank that counts."""
    n_ranks = max(map(len, trace.by_rank.values()), default=depth)
    for rank in range(1, n_ranks + 1):
        numbers = {name: _or_none(values[rank - 1]) for name, values in trace.by_rank.items()}
        row = {PART: LIST, C.RANK: rank, C.ITEM_ID: items.get(rank), C.GAIN: gains.get(rank), **numbers}
        yield row | {"discount": _discount(numbers)}


def _rows_of_ideal(trace: Trace, judged: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row a rank of the ideal list."""
    for row in range(len(trace.ideal.get(C.RANK, ()))):
        numbers = {name: _or_none(values[row]) for name, values in trace.ideal.items()}
        place = numbers.pop("place", None)
        rank = int(trace.ideal[C.RANK][row])
        item = judged[int(place)] if judged and place is not None else None
        yield {**numbers, PART: IDEAL, C.RANK: rank, C.ITEM_ID: item, "discount": _discount(numbers)}


def _rows_of_numbers(part: Part, place: int, measure: Measure, lists: Lists) -> Iterator[dict[str, Any]]:
    """Yield the value of ``user_metrics``, whether the list is in the population, and what the measure counts in it."""
    at = part.outputs.computed.ks.index(measure.k)
    is_evaluated = bool(part.members.is_evaluated[place])
    value = float(part.scored.values[measure.column][place, at]) if is_evaluated else math.nan
    counts = {name: float(part.scored.counts[name][place, at]) for name in COUNTED}
    rel = cast("float | None", measure.options.get("rel"))
    view = restrict_lists(lists, measure.is_judged_only, measure.group, is_weighted=False)
    cut, level = view.cut([measure.k]), RELEVANT if rel is None else rel
    of_measure = {C.N_JUDGED: view.n_judged, C.N_RELEVANT: cut.n_relevant(level), C.N_HITS: cut.hits(level)}
    counts |= {name: float(count[0, 0]) for name, count in of_measure.items()}
    for name, number in {C.VALUE: value, IS_EVALUATED: float(is_evaluated), **counts}.items():
        yield {PART: NUMBER, "name": name, C.VALUE: _or_none(number)}


def _discount(numbers: dict[str, float | None]) -> float | None:
    """Return what the worth was multiplied with; None where it is unknown."""
    worth, term = numbers.get("worth"), numbers.get("term")
    return term / worth if worth and term is not None else None


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else float(number)
