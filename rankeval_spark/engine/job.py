"""The work on the rows of whole users, from Arrow to Arrow."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch import Batch, expand_lists, split_constants, to_batch
from rankeval_spark.engine.buckets import split_by_user
from rankeval_spark.engine.checks import PartitionTallies, refuse_unusable
from rankeval_spark.engine.features import item_group_bits, to_features, to_profiles, with_history
from rankeval_spark.engine.matching import Judgements, is_in_train, match_log, to_judgements
from rankeval_spark.engine.outputs import score_in_parts
from rankeval_spark.engine.ranked_lists import ITEMS, RankedLists, rank_lists, to_compact_lists, to_item_lists
from rankeval_spark.engine.slices import to_segment_columns
from rankeval_spark.engine.user_values import to_user_columns
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.engine.checks import RowChecks
    from rankeval_spark.engine.matching import ListKeys, ListRules
    from rankeval_spark.engine.outputs import ListOutputs, Part
    from rankeval_spark.engine.ranked_lists import CompactLists


@dataclass(frozen=True)
class Job:
    """The computation of an evaluation; plain data that travels to the workers."""

    rules: ListRules  # how rows of the log become ranked lists
    outputs: ListOutputs  # how lists become values and moments
    models: tuple[str, ...]  # the models expected; None: those in the log
    segments: tuple[str, ...] = ()  # names of the segments, in the order of their values
    # segment values of a user without a row of segments, where the absence is a value
    absent: Mapping[str, str] = field(default_factory=dict)
    # facts beyond ranks and gains that measures or checks read, see :mod:`measures.required_facts`
    needs: frozenset[str] = frozenset()
    depth: int = 0  # last rank whose items are described; 0 for whole lists
    has_lists: bool = False  # whether users can have several lists of a model
    # inputs whose rows have the facts of their items, where the catalogue is too large to be among the constants
    described: tuple[int, ...] = ()
    # what is the same for all users, an array of one cell each, by its column; where it is known before the rows
    constants: Mapping[str, pa.Array] = field(default_factory=dict)
    checks: Mapping[int, RowChecks] = field(default_factory=dict)  # of the rows of the log and of the judgements
    rounds_scores: bool = False  # whether scores that are equal in single precision are ties
    drops_unknown: bool = False  # whether recommendations of items that the catalogue does not have are left out

    def parts(self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies) -> Iterator[Part]:
        """Rank, match and score the lists of whole users, some at a time; ``tallies`` counts rows and judgements."""
        measures = self.outputs.measures
        for batch, judgements, ranked in self._rank_batches(batches, tallies):
            lists = to_compact_lists(ranked, rules=self.rules, needs=measures.needs)
            keys = _key_columns(batch, ranked.keys)
            others = {
                **keys,
                **to_segment_columns(batch, ranked.keys, names=self.segments, absent=self.absent),
                **to_user_columns(batch, ranked.keys, measures),
                **to_features(
                    ranked,
                    needs=self.needs,
                    depth=self.depth,
                    other_models=measures.other_models,
                    profiles=to_profiles(batch, judgements, needs=self.needs),
                ),
            }
            columns_of = partial(_slice_lists, others, lists)
            yield from score_in_parts(self.outputs, lists.n_judged, ranked.keys.user, columns_of, ranked)

    def user_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per list of the population and cutoff: ``schemas.USER_METRICS`` without the key of its run."""
        return (part.user_rows for part in self.parts(batches, PartitionTallies()))

    def ranked_items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per list and item: key, item, rank, gain (NULL without a judgement)."""
        for batch, _, ranked in self._rank_batches(batches, PartitionTallies()):
            places, keys = ranked.places_down_to(self.depth), _key_columns(batch, ranked.keys)
            list_code, row = to_arrow(ranked.list_code[places]), ranked.row[places]
            if not self.has_lists:
                del keys[C.LIST_ID]
            judgement = ranked.judgement[row]
            gain = np.append(ranked.judgements.gain, np.nan)[judgement]
            columns = {
                **{name: pc.take(column, list_code) for name, column in keys.items()},
                C.ITEM_ID: pc.take(batch.items, to_arrow(ranked.batch.log.item[row])),
                C.RANK: to_arrow(ranked.rank_at(places).astype(np.int32)),
                C.GAIN: to_arrow(gain, is_null=judgement < 0),
            }
            yield pa.RecordBatch.from_pydict(columns)

    def item_lists(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per list that has items: its key and :data:`ranked_lists.ITEMS`."""
        for batch, _, ranked in self._rank_batches(batches, PartitionTallies()):
            listed = to_arrow(ranked.listed)
            keys = {name: pc.take(column, listed) for name, column in _key_columns(batch, ranked.keys).items()}
            yield pa.RecordBatch.from_pydict({**keys, ITEMS: to_item_lists(ranked, depth=self.depth)})

    def count(self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies) -> None:
        """Count rows and judgements, and refuse nothing that only lists cannot be made of."""
        checks = {kind: of_input.without_score_refusals() for kind, of_input in self.checks.items()}
        counting = replace(self, checks=checks)
        duplicates = self.rules.duplicates_of_users
        duplicates = "max" if duplicates == "error" else duplicates
        for batch in counting._usable_batches(batches, tallies, most_rows=sys.maxsize):
            judged = to_judgements(batch.judged, n_items=batch.n_items, duplicates=duplicates)
            tallies.add(batch, judged, counts_seen=self.rules.drops_seen)

    def _rank_batches(
        self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies
    ) -> Iterator[tuple[Batch, Judgements, RankedLists]]:
        """Yield some whole users at a time: their rows, the judgements of users, and the ranked lists."""
        rules, groups = self.rules, None
        for batch in self._usable_batches(batches, tallies, most_rows=rules.max_rows_per_user):
            if not self.needs.isdisjoint((N.POPULARITY_GROUP, N.CATEGORY_GROUP)):
                groups = item_group_bits(batch.known_items, self.outputs.measures.groups, n_items=batch.n_items)
            judge = partial(to_judgements, n_items=batch.n_items, item_groups=groups)
            judgements = judge(batch.judged, duplicates=rules.duplicates_of_users)
            tallies.add(batch, judgements, counts_seen=rules.drops_seen)
            listed = batch
            if self.rounds_scores:
                single = batch.log.columns[C.SCORE].cast(pa.float32(), safe=False).cast(pa.float64())
                listed = replace(batch, log=replace(batch.log, columns={**batch.log.columns, C.SCORE: single}))
            if self.drops_unknown:
                is_known = to_numpy(batch.known_items[N.ITEM_KNOWN], null=0.0) > 0
                listed = listed.keep_log_rows(is_known[batch.log.item])
            of_lists = partial(judge, duplicates=rules.held_out_duplicates)
            matched = match_log(listed, judgements, rules=rules, judge=of_lists)
            yield listed, judgements, rank_lists(matched, rules=rules)

    def _usable_batches(
        self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies, *, most_rows: int
    ) -> Iterator[Batch]:
        """Yield the usable rows of whole users, some at a time; without judgements that a policy drops as seen."""
        found, rest = split_constants(batches)
        constants = {**self.constants, **found}
        if row_kinds.COUNTS in constants:
            refuse_unusable(constants[row_kinds.COUNTS])
        usable = tallies.usable(expand_lists(rest, has_ranks=self.rules.reads_ranks), self.checks)
        for table in split_by_user(usable, most_rows=most_rows):
            batch = to_batch(
                table,
                models=self.models,
                constants=constants,
                described=self.described,
                has_judged_lists=self.outputs.has_judged_lists,
            )
            if N.JUDGED_SEEN in self.needs:
                tallies.add_judged_seen(batch)
            if self.rules.drops_judged_seen:
                batch = batch.keep_held_out_rows(~is_in_train(batch, batch.held_out.user, batch.held_out.item))
            yield with_history(batch, self.outputs.measures.groups) if N.HISTORY_GROUP in self.needs else batch


def _key_columns(batch: Batch, keys: ListKeys) -> dict[str, pa.Array]:
    """Build model, user and list id of each list."""
    models = to_texts(batch.models)
    return {
        C.MODEL_ID: pc.take(models, to_arrow(keys.model)),
        C.USER_ID: pc.take(batch.users, to_arrow(keys.user)),
        C.LIST_ID: keys.list_id.dictionary_decode(),
    }


def _slice_lists(others: Mapping[str, pa.Array], lists: CompactLists, start: int, n_lists: int) -> dict[str, pa.Array]:
    """Return all columns of ``n_lists`` lists, from the one at ``start``."""
    return {**{name: column.slice(start, n_lists) for name, column in others.items()}, **lists.part(start, n_lists)}
