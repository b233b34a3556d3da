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
from rankeval_spark.engine.batch import Batch, to_batch, with_items, without_constants
from rankeval_spark.engine.buckets import in_buckets
from rankeval_spark.engine.checks import PartitionTallies, refuse_unusable
from rankeval_spark.engine.features import bits_of_items, to_features, to_profiles
from rankeval_spark.engine.matching import Judgements, is_in_train, match_log, to_judgements
from rankeval_spark.engine.outputs import joined, list_names, parts_of_users
from rankeval_spark.engine.ranked_lists import ITEMS, RankedLists, to_item_lists, to_lists, to_ranked
from rankeval_spark.engine.slices import to_segment_columns
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.engine.checks import RowChecks
    from rankeval_spark.engine.matching import ListKeys, ListRules
    from rankeval_spark.engine.outputs import ListOutputs, Part


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
        outputs, measures = self.outputs, self.outputs.measures
        keeps = {
            name: need in measures.needs
            for name, need in (
                ("keeps_scores", C.HIT_SCORES),
                ("keeps_predictions", N.PREDICTIONS),
                ("sums_scores", N.PROPENSITIES),
            )
        }
        for batch, judgements, ranked in self._ranked(batches, tallies):
            lists = to_lists(ranked, rules=self.rules, **keeps)
            keys = _key_columns(batch, ranked.keys)
            segments = to_segment_columns(batch, ranked.keys, names=self.segments, absent=self.absent)
            profiles = to_profiles(batch, judgements, needs=self.needs)
            features = to_features(
                ranked, needs=self.needs, depth=self.depth, other_models=measures.other_models, profiles=profiles
            )
            others = {**keys, **segments, **features}
            if N.LIST_NAMES in measures.needs:
                others[N.LIST_NAMES] = list_names(keys[C.USER_ID], keys[C.MODEL_ID])
            for cuts in parts_of_users(lists.n_judged, ranked.keys.user):
                columns = (
                    {**{name: column.slice(*cut) for name, column in others.items()}, **lists.part(*cut)}
                    for cut in cuts
                )
                yield joined([outputs.part(cut) for cut in columns], ranked, cuts[0][0])

    def user_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per list of the population and cutoff: ``schemas.USER_METRICS`` without the key of its run."""
        return (part.user_rows for part in self.parts(batches, PartitionTallies()))

    def ranked_items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per list and item: key, item, rank, gain (NULL without a judgement)."""
        for batch, _, ranked in self._ranked(batches, PartitionTallies()):
            places = np.arange(len(ranked.row))
            if self.depth:
                places = places[ranked.rank_at(places) <= self.depth]
            list_code, row, keys = ranked.list_code[places], ranked.row[places], _key_columns(batch, ranked.keys)
            if not self.has_lists:
                del keys[C.LIST_ID]
            judgement = ranked.matched.judgement[row]
            gain = np.append(ranked.judgements.gain, np.nan)[judgement]
            columns = {
                **{name: pc.take(column, to_arrow(list_code)) for name, column in keys.items()},
                C.ITEM_ID: pc.take(batch.items, to_arrow(ranked.batch.log.item[row])),
                C.RANK: to_arrow(ranked.rank_at(places).astype(np.int32)),
                C.GAIN: to_arrow(gain, is_null=judgement < 0),
            }
            yield pa.RecordBatch.from_pydict(columns)

    def item_lists(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per list that has items: its key and :data:`compact_lists.ITEMS`."""
        for batch, _, ranked in self._ranked(batches, PartitionTallies()):
            listed = to_arrow(ranked.listed)
            keys = {name: pc.take(column, listed) for name, column in _key_columns(batch, ranked.keys).items()}
            yield pa.RecordBatch.from_pydict({**keys, ITEMS: to_item_lists(ranked, depth=self.depth)})

    def count(self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies) -> None:
        """Count rows and judgements, and refuse nothing that only lists cannot be made of."""
        counting = replace(self, checks={kind: of_input.counting() for kind, of_input in self.checks.items()})
        duplicates = self.rules.duplicates_of_users
        for batch in counting._batches(batches, tallies, most_rows=sys.maxsize):
            left = self._left_to_judge(batch, tallies)
            judged = to_judgements(
                left.judged, n_items=left.n_items, duplicates="max" if duplicates == "error" else duplicates
            )
            tallies.add(left, judged, counts_seen=self.rules.drops_seen)

    def _ranked(
        self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies
    ) -> Iterator[tuple[Batch, Judgements, RankedLists]]:
        rules = self.rules
        for given in self._batches(batches, tallies, most_rows=rules.max_rows_per_user):
            batch, groups = self._left_to_judge(given, tallies), None
            if not self.needs.isdisjoint((N.POPULARITY_GROUP, N.CATEGORY_GROUP)):
                groups = bits_of_items(batch.known_items, self.outputs.measures.groups, n_items=batch.n_items)
            judge = partial(to_judgements, n_items=batch.n_items, item_groups=groups)
            judgements = judge(batch.judged, duplicates=rules.duplicates_of_users)
            tallies.add(batch, judgements, counts_seen=rules.drops_seen)
            listed = batch
            if self.rounds_scores:
                single = batch.log.columns[C.SCORE].cast(pa.float32(), safe=False).cast(pa.float64())
                listed = replace(batch, log=replace(batch.log, columns={**batch.log.columns, C.SCORE: single}))
            if self.drops_unknown:
                is_known = to_numpy(batch.known_items[N.ITEM_KNOWN], null=0.0) > 0
                listed = listed.with_log(is_known[batch.log.item])
            of_lists = partial(judge, duplicates=rules.held_out_duplicates)
            matched = match_log(listed, judgements, rules=rules, judge=of_lists)
            yield listed, judgements, to_ranked(matched, rules=rules)

    def _left_to_judge(self, batch: Batch, tallies: PartitionTallies) -> Batch:
        """Drop the judgements of items that their users have in the training data, where the policy says so."""
        if N.JUDGED_SEEN in self.needs:
            tallies.add_judged_seen(batch)
        if not self.rules.drops_judged_seen:
            return batch
        return batch.with_held_out(~is_in_train(batch, batch.held_out.user, batch.held_out.item))

    def _batches(
        self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies, *, most_rows: int
    ) -> Iterator[Batch]:
        """Yield the usable rows of whole users, some at a time."""
        found, rest = without_constants(batches)
        constants = {**self.constants, **found}
        if row_kinds.COUNTS in constants:
            refuse_unusable(constants[row_kinds.COUNTS])
        usable = tallies.usable(with_items(rest, has_ranks=self.rules.reads_ranks), self.checks)
        for table in in_buckets(usable, most_rows=most_rows):
            yield to_batch(
                table,
                models=self.models,
                constants=constants,
                described=self.described,
                has_judged_lists=self.outputs.has_judged_lists,
            )


def _key_columns(batch: Batch, keys: ListKeys) -> dict[str, pa.Array]:
    models = to_texts(batch.models)
    return {
        C.MODEL_ID: pc.take(models, to_arrow(keys.model)),
        C.USER_ID: pc.take(batch.users, to_arrow(keys.user)),
        C.LIST_ID: keys.list_id.dictionary_decode(),
    }
