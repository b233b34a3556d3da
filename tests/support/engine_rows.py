"""Rows of users written down by hand for the engine, and what it makes of them read back as plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.config import Policies
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.batch import Batch, to_batch
from rankeval_spark.engine.checks import PartitionTallies
from rankeval_spark.engine.job import Job
from rankeval_spark.engine.matching import Judgements, ListRules, match_log, to_judgements
from rankeval_spark.engine.outputs import ListOutputs, Part
from rankeval_spark.engine.ranked_lists import NO_RANK, RankedLists, rank_lists
from rankeval_spark.engine.slices import PACKED
from rankeval_spark.measures import MeasureSet
from rankeval_spark.sums.check_counts import list_check_rows

if TYPE_CHECKING:
    from rankeval_spark.config.policies import HeldOutDuplicates

Row = dict[str, Any]
"""A row of an input, or of a result, by column."""

BY_SCORE: Final = ListRules(C.SCORE, "item_asc", "best")
BY_RANK: Final = ListRules(C.RANK, "item_asc", "best")

ID_TYPES: Final = {"string": pa.string(), "bigint": pa.int64()}

_TYPES: Final = {
    row_kinds.KIND: pa.int8(),
    C.MODEL_ID: pa.string(),
    C.LIST_ID: pa.string(),
    C.SCORE: pa.float64(),
    C.RANK: pa.int32(),
    C.GAIN: pa.float64(),
    C.VALUE: pa.float64(),
    C.INTERACTED_AT: pa.timestamp("us", tz="UTC"),
    row_kinds.SEGMENT_VALUES: pa.list_(pa.string()),
    row_kinds.SIMILARITY: pa.float64(),
    row_kinds.FACTS: pa.struct([("item_users", pa.float64())]),
    C.PAIRS: pa.list_(pa.struct([("later", pa.int32()), ("earlier", pa.int32()), ("similarity", pa.float64())])),
}
"""Types of the columns of the engine's input; those of the ids are chosen."""

_COMPACT: Final = {
    C.MODEL_ID: (pa.string(), "m"),
    C.USER_ID: (pa.string(), None),
    C.LIST_ID: (pa.string(), ""),
    C.N_RECOMMENDED: (pa.int32(), 0),
    C.N_DUPLICATES: (pa.int32(), 0),
    C.HIT_RANKS: (pa.list_(pa.int32()), ()),
    C.HIT_GAINS: (pa.list_(pa.float64()), ()),
    C.JUDGED_GAINS: (pa.list_(pa.float64()), ()),
    C.TIED_RANKS: (pa.list_(pa.int32()), ()),
    C.SEGMENTS: (pa.map_(pa.string(), pa.string()), ()),
    PACKED: (pa.list_(pa.string()), ()),
}
"""Type and default of the columns of a compact list."""


# ---- input ----------------------------------------------------------------------------------------------------------


def log(columns: str, *given: tuple[Any, ...]) -> list[Row]:
    """Write rows of the log, with the columns named, such as ``"user_id item_id score"``; by default of model 'm'."""
    return [
        {row_kinds.KIND: row_kinds.LOG, C.MODEL_ID: "m", **dict(zip(columns.split(), row, strict=True))}
        for row in given
    ]


def held_out(columns: str, *given: tuple[Any, ...]) -> list[Row]:
    """Write judgements, likewise."""
    return [{row_kinds.KIND: row_kinds.HELD_OUT, **dict(zip(columns.split(), row, strict=True))} for row in given]


def train(*pairs: tuple[Any, Any]) -> list[Row]:
    """Write interactions: (user, item)."""
    return [{row_kinds.KIND: row_kinds.TRAIN, C.USER_ID: user, C.ITEM_ID: item} for user, item in pairs]


def segments(*given: tuple[Any, ...]) -> list[Row]:
    """Write the segment values of users: (user, value, value, ...)."""
    return [
        {row_kinds.KIND: row_kinds.SEGMENTS, C.USER_ID: user, row_kinds.SEGMENT_VALUES: values}
        for user, *values in given
    ]


def input_table(*inputs: Iterable[Row], ids: str = "string", also: Sequence[str] = ()) -> pa.Table:
    """Combine rows into the engine's input.

    Parameters
    ----------
    *inputs
        Rows of :func:`log` and the others, in the order in which the engine gets them.
    ids : {"string", "bigint"}
        Type of users and items.
    also : sequence of str
        Columns that the table has though no row has a value: those that rows of other users have.
    """
    every = [row for one in inputs for row in one]
    types = {**_TYPES, C.USER_ID: ID_TYPES[ids], C.ITEM_ID: ID_TYPES[ids]}
    names = dict.fromkeys(
        (row_kinds.KIND, C.USER_ID, C.ITEM_ID, C.MODEL_ID, *(name for row in every for name in row), *also)
    )
    columns = {name: pa.array([row.get(name) for row in every], types[name]) for name in names}
    return pa.table(columns)


def compact_lists(*given: Row) -> dict[str, pa.Array]:
    """Write compact lists; what is not named is 0 or empty."""
    unknown = {name for row in given for name in row} - set(_COMPACT)
    assert not unknown, f"no such columns: {unknown}"
    return {
        name: pa.array([row.get(name, default) for row in given], type_)
        for name, (type_, default) in _COMPACT.items()
        if name != PACKED or any(PACKED in row for row in given)
    }


# ---- what is done with it -------------------------------------------------------------------------------------------


def batch_of(table: pa.Table, *, models: Sequence[str] | None = None) -> Batch:
    """Encode a table; the models are those of its log where none are named."""
    return to_batch(table, models=models_in(table) if models is None else models)


def models_in(table: pa.Table) -> tuple[str, ...]:
    """Name the models that the log has, sorted; 'm' where it has no rows."""
    found = table[C.MODEL_ID].to_pylist() if C.MODEL_ID in table.column_names else []
    return tuple(sorted({name for name in found if name is not None})) or ("m",)


def judgements_of(
    batch: Batch, *, duplicates: HeldOutDuplicates = "max", groups: Mapping[str, int] | None = None
) -> Judgements:
    """Make one judgement per (user, item), with the bits of the groups of each item where these are given."""
    bits = None if groups is None else np.array([groups.get(item, 0) for item in batch.items.to_pylist()])
    return to_judgements(batch.held_out, n_items=batch.n_items, duplicates=duplicates, item_groups=bits)


def known_items(facts: Mapping[str, pa.DataType], *items: tuple[Any, ...], ids: str = "string") -> dict[str, pa.Array]:
    """Write the constants of a job that say what is known of items: (item, fact, fact, ...)."""
    kind = pa.struct({C.ITEM_ID: ID_TYPES[ids], **facts})
    cells = [dict(zip((C.ITEM_ID, *facts), item, strict=True)) for item in items]
    return {row_kinds.ITEMS: pa.array([cells], pa.list_(kind))}


def ranked_of(table: pa.Table, rules: ListRules) -> RankedLists:
    """Rank the lists of a table."""
    batch = batch_of(table)
    matched = match_log(batch, judgements_of(batch, duplicates=rules.held_out_duplicates), rules=rules)
    return rank_lists(matched, rules=rules)


def job(
    rules: ListRules = BY_SCORE,
    *,
    measures: Sequence[str] = ("P@5",),
    policies: Policies | None = None,
    slices: Sequence[Sequence[str]] = (),
    **options: Any,  # noqa: ANN401 - fields of the job
) -> Job:
    """Describe a job; its models are 'm' where none are named, and its facts those that the measures read."""
    asked = MeasureSet.parse(measures)
    segment_names = tuple(dict.fromkeys(name for one in slices for name in one))
    scoring = ListOutputs(asked, policies or Policies.model_validate({"ties": rules.ties}), ((), *map(tuple, slices)))
    made = Job(rules, scoring, ("m",), segments=segment_names, needs=asked.needs)
    return replace(made, **options)


# ---- read back ------------------------------------------------------------------------------------------------------


def judgement_rows(batch: Batch, judgements: Judgements) -> list[Row]:
    """Read judgements back: user, item, gain and, where they have one, value and groups."""
    users, items = batch.users.to_pylist(), batch.items.to_pylist()
    named = ((C.GAIN, judgements.gain), (C.VALUE, judgements.value), ("groups", judgements.groups))
    facts = {name: numbers.tolist() for name, numbers in named if numbers is not None}
    return [
        {C.USER_ID: users[user], C.ITEM_ID: items[pair % batch.n_items]}
        | {name: numbers[place] for name, numbers in facts.items()}
        for place, (user, pair) in enumerate(zip(judgements.owner.tolist(), judgements.pair.tolist(), strict=True))
    ]


def ranked_rows(ranked: RankedLists, *, gains: Judgements | None = None) -> list[Row]:
    """Read ranked items back: their list, the rank, copies, whether they tie and are the last of their list."""
    batch, keys = ranked.batch, ranked.keys
    users, items, list_ids = batch.users.to_pylist(), batch.items.to_pylist(), keys.list_id.to_pylist()
    scores = batch.log.columns[C.SCORE].to_pylist() if C.SCORE in batch.log.columns else None
    tied = set(ranked.tied.tolist())
    ranks = ranked.rank_at(np.arange(len(ranked.row))).tolist()
    found = []
    for place, (row, one) in enumerate(zip(ranked.row.tolist(), ranked.list_code.tolist(), strict=True)):
        logged = None if ranked.log_rank is None else int(ranked.log_rank[row])
        judgement = int(ranked.judgement[row])
        found.append(
            {
                C.MODEL_ID: batch.models[int(keys.model[one])],
                C.USER_ID: users[int(keys.user[one])],
                C.LIST_ID: list_ids[one],
                C.ITEM_ID: items[int(batch.log.item[row])],
                C.RANK: ranks[place],
                C.SCORE: None if scores is None else scores[row],
                C.GAIN: None if gains is None or judgement < 0 else float(gains.gain[judgement]),
                "logged": None if logged == NO_RANK else logged,
                "n_copies": int(ranked.n_copies[row]),
                "is_tied": place in tied,
                "is_last": place + 1 == int((ranked.start + ranked.length)[one]),
            }
        )
    return found


def compact_lists_of(work: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield compact lists."""
    for part in work.parts(batches, PartitionTallies()):
        yield pa.RecordBatch.from_pydict({name: column for name, column in part.lists.items() if name != PACKED})


def scores_of(work: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row per list and cutoff, with what the checks look at."""
    return (rows_of(part) for part in work.parts(batches, PartitionTallies()))


def rows_of(part: Part) -> pa.RecordBatch:
    """Return scored rows with what the checks look at in their lists."""
    found, lists = part.rows, list_check_rows(part)
    repeated = pa.array(np.repeat(np.arange(lists.num_rows), len(part.outputs.measures.ks)))
    for name in lists.column_names:
        if name not in found.schema.names:
            found = found.append_column(name, lists[name].combine_chunks().take(repeated))
    return found


def list_rows(work: Job, table: pa.Table) -> list[Row]:
    """Make the compact rows of a table, in the order of the engine."""
    return read(compact_lists_of(work, table.to_batches()))


def scored_rows(work: Job, table: pa.Table) -> list[Row]:
    """Make the scored rows of a table, in the order of the engine."""
    return read(scores_of(work, table.to_batches()))


def moment_rows(work: Job, batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Make the partial moments of a partition."""
    return read(rows for part in work.parts(batches, PartitionTallies()) for rows in work.outputs.moments(part))


def score(scoring: ListOutputs, lists: Mapping[str, pa.Array]) -> list[Row]:
    """Score compact lists."""
    return read([rows_of(scoring.score_part(lists))])


def read(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Read batches back, row by row; maps as dictionaries."""
    found: list[Row] = []
    for batch in batches:
        found += batch.to_pylist()
    for row in found:
        if C.SEGMENTS in row:
            row[C.SEGMENTS] = dict(row[C.SEGMENTS])
    return found


def tuples(found: Iterable[Row], *columns: str) -> list[tuple[Any, ...]]:
    """Take some columns, sorted; None comes first."""
    taken = [tuple(row[name] for name in columns) for row in found]
    return sorted(taken, key=lambda row: [(value is not None, value) for value in row])
