"""Users who win or lose most under a model, with their lists: a few of each partition, then a few of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import ABSENT, combine_chunks, encode_rows, take_or_null, to_arrow, to_numpy
from rankeval_spark.engine.paired_differences import models_in_order
from rankeval_spark.engine.slices import USER_HASH, read_doubles
from rankeval_spark.measures.arrays import expand_ranges
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.sums.grouping import apply_by_key
from rankeval_spark.sums.sums import Sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.measures import Measure
    from rankeval_spark.measures.arrays import FloatVector, IntVector

EXAMPLES: Final = schemas.EXAMPLES.name
WIN: Final = "win"
LOSS: Final = "loss"
WHOLE_DEPTH: Final = 10  # items of a list that are kept where the measure has no cutoff
MAX_LISTS: Final = 3  # lists of a user and model that are kept, the first by their ids


@dataclass(frozen=True)
class Examples(Sum):
    """Rows of ``schemas.EXAMPLES`` without the key of their run and titles: those with the greatest differences.

    Of equal differences the user with the lower hash is taken, so that the partitioning does not matter.
    """

    measure: Measure
    baseline: str | None  # None: each model with each, the first by name as the baseline
    n_users: int  # of each side
    schema = arrow_schema(schemas.EXAMPLES)
    key = (C.BASELINE_MODEL_ID, C.MODEL_ID)

    @classmethod
    def of(cls, request: Request, n_users: int) -> dict[str, Sum]:
        """Return the sum of a night by its name; none where no users are asked for, or nothing is compared."""
        if not n_users or request.comparisons is None or not request.primary:
            return {}
        asked = request.comparisons
        return {EXAMPLES: cls(request.primary[0], None if asked.all_pairs else asked.baseline, n_users)}

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        users = part.users.filter(pc.equal(part.users[C.K], self.measure.k))
        names, ids = (combine_chunks(users[name]).dictionary_encode() for name in (C.MODEL_ID, C.USER_ID))
        model, user = (to_numpy(column.indices) for column in (names, ids))
        values = np.full((len(names.dictionary), len(ids.dictionary)), np.nan)
        values[model, user] = read_doubles(users, self.measure.column)
        hashes, n_relevant = np.zeros((2, len(ids.dictionary)), dtype=np.int64)
        hashes[user], n_relevant[user] = to_numpy(users[USER_HASH]), to_numpy(users[C.N_RELEVANT])
        place = {str(name): index for index, name in enumerate(names.dictionary.to_pylist())}
        for first, other in combinations(models_in_order(place, self.baseline), 2):
            if self.baseline not in (None, first):
                break
            baseline_value, value = values[place[first]], values[place[other]]
            delta = value - baseline_value
            gain = -delta if self.measure.better == "lower" else delta
            for side, size in ((WIN, gain), (LOSS, -gain)):
                chosen = _find_greatest(size, hashes, self.n_users)
                found = _items_of(part, pc.take(ids.dictionary, to_arrow(chosen)), (first, other), self.measure.k)
                at = chosen[to_numpy(found.pop("at"))]
                constants = {C.BASELINE_MODEL_ID: first, C.MODEL_ID: other, "side": side}
                constants |= {C.MEASURE: self.measure.label}
                numbers = {C.VALUE: value, "baseline_value": baseline_value, "delta": delta}
                columns = {
                    **{name: pa.repeat(text, len(at)) for name, text in constants.items()},
                    C.K: to_arrow(np.full(len(at), self.measure.k, dtype=np.int32)),
                    **{name: to_arrow(each[at]) for name, each in numbers.items()},
                    C.N_RELEVANT: to_arrow(n_relevant[at].astype(np.int32)),
                    C.USER_ID: pc.take(ids.dictionary, to_arrow(at)).cast(pa.string()),
                    **found,
                    "place": to_arrow(np.zeros(len(at), dtype=np.int32)),
                    C.TITLE: pa.nulls(len(at), pa.string()),
                    USER_HASH: to_arrow(hashes[at]),
                }
                if len(at):
                    yield pa.RecordBatch.from_pydict({name: columns[name] for name in (*self.schema.names, USER_HASH)})

    def finish(self, rows: pa.Table) -> pa.Table:
        return apply_by_key(rows, self.key, lambda _, of_pair: self._merge(of_pair), self.schema)

    def _merge(self, rows: pa.Table) -> pa.Table:
        """Keep the rows of the first users of each side, and number these."""
        _, first, example = np.unique(encode_rows(rows, ("side", C.USER_ID)), return_index=True, return_inverse=True)
        users = pc.take(rows.select(["side", "delta", USER_HASH, C.USER_ID]), to_arrow(first)).to_pylist()
        order = sorted(
            range(len(users)),
            key=lambda at: (-abs(users[at]["delta"]), users[at][USER_HASH], users[at][C.USER_ID]),
        )
        places, n_of_side = np.zeros(len(users), dtype=np.int32), dict.fromkeys((WIN, LOSS), 0)
        for at in order:
            n_of_side[users[at]["side"]] += 1
            places[at] = n_of_side[users[at]["side"]]
        place = places[example]
        numbered = rows.set_column(rows.schema.get_field_index("place"), "place", to_arrow(place))
        kept = numbered.filter(to_arrow(place <= self.n_users)).select(self.schema.names)
        names = ("side", "place", "listed_by", C.LIST_ID, C.RANK, C.ITEM_ID)
        return kept.sort_by([(name, "ascending") for name in names]).cast(self.schema)


def _find_greatest(size: FloatVector, hashes: IntVector, n: int) -> IntVector:
    """Return the places of the n greatest sizes above 0, the greatest first; of equal ones the lowest hash is first."""
    found = np.flatnonzero(size > 0)
    if len(found) > n:
        found = found[size[found] >= np.partition(size[found], -n)[-n]]
    order: IntVector = np.lexsort((hashes[found], -size[found]))
    return found[order[:n]]


def _items_of(part: Part, users: pa.Array, models: tuple[str, str], k: int) -> dict[str, pa.Array]:
    """Return the first items of the lists of some users: columns of :class:`Examples`, and the place of the user.

    A list without items has one row of rank 0.
    """
    ranked = part.ranked
    if ranked is None:  # published lists hold no items
        message = "examples are made of a log"
        raise TypeError(message)
    at = to_numpy(pc.index_in(part.lists[C.USER_ID], value_set=users), null=ABSENT)
    is_of_models = to_numpy(pc.is_in(part.lists[C.MODEL_ID], value_set=pa.array(models)))
    places = np.flatnonzero((at >= 0) & is_of_models)
    keys = {name: pc.take(part.lists[name], to_arrow(places)).cast(pa.string()) for name in (C.MODEL_ID, C.LIST_ID)}
    owners = list(zip(at[places].tolist(), *(column.to_pylist() for column in keys.values()), strict=True))
    n_lists, kept = dict[tuple[int, str], int](), list[int]()
    for place in sorted(range(len(places)), key=owners.__getitem__):
        owner = owners[place][:2]
        n_lists[owner] = n_lists.get(owner, 0) + 1
        kept += [place] if n_lists[owner] <= MAX_LISTS else []
    entries = np.array(kept, dtype=np.int64)
    code = part.start + places[entries]
    entry, position = np.repeat(entries, ranked.length[code]), expand_ranges(ranked.start[code], ranked.length[code])
    rank = ranked.rank_at(position)
    is_shown = rank <= (k or WHOLE_DEPTH)
    entry, row, rank = entry[is_shown], ranked.row[position[is_shown]], rank[is_shown]
    without = np.setdiff1d(entries, entry)
    none = np.full(len(without), ABSENT)
    entry, rank = np.append(entry, without), np.append(rank, 0 * none)
    gain = np.append(ranked.judgements.gain, np.nan)[np.append(ranked.judgement[row], none)]
    return {
        "at": to_arrow(at[places[entry]]),
        "listed_by": pc.take(keys[C.MODEL_ID], to_arrow(entry)),
        C.LIST_ID: pc.take(keys[C.LIST_ID], to_arrow(entry)),
        C.RANK: to_arrow(rank.astype(np.int32)),
        C.ITEM_ID: take_or_null(ranked.batch.items, np.append(ranked.batch.log.item[row], none)).cast(pa.string()),
        C.GAIN: to_arrow(gain, is_null=~(gain >= 0)),
    }


def to_titles(named: pa.Table) -> dict[str, str]:
    """Return the titles of rows of a catalogue by item; the first by the alphabet where an item has several rows."""
    rows = zip(named[C.ITEM_ID].to_pylist(), named[C.TITLE].to_pylist(), strict=True)
    return dict(sorted((row for row in rows if row[1] is not None), reverse=True))


def with_titles(examples: pa.Table, titles: Mapping[str, str]) -> pa.Table:
    """Add the titles of items, by their ids as text."""
    found = [titles.get(item) for item in examples[C.ITEM_ID].to_pylist()]
    column = pa.array(found, pa.string())
    return examples.set_column(examples.schema.get_field_index(C.TITLE), C.TITLE, column)
