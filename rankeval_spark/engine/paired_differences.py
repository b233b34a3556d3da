"""Differences of models by pair, slice and cutoff: aggregates of users' values, which merge.

There is no formula here. Rows of ``comparisons`` are made of the aggregates later, in ``result_rows``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import encode_rows, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.scorer import IS_EVALUATED
from rankeval_spark.engine.slices import USER_HASH, cutoff_positions, find_groups, read_matrix, rechunk, unpack_segments
from rankeval_spark.statistics import moments, multiple_testing, paired_ratios, paired_tests, rank_tests, resampling
from rankeval_spark.statistics.moments import membership_matrix
from rankeval_spark.statistics.paired_tests import PairedValues
from rankeval_spark.statistics.resampling import Draws, SliceGroups, iterate_groups
from rankeval_spark.statistics.unpaired_tests import Arms

if TYPE_CHECKING:
    from rankeval_spark.config.inference import TestName
    from rankeval_spark.statistics import FewDifferences, Zeros


GROUP: Final = (C.BASELINE_MODEL_ID, C.MODEL_ID, "slice_index", C.SLICE_VALUES, C.K)
PARTIAL: Final = pa.schema(
    [
        *zip(GROUP, (pa.string(), pa.string(), pa.int32(), pa.list_(pa.string()), pa.int32()), strict=True),
        ("models", pa.list_(pa.string())),  # of an aggregate of all models at once, without baseline and model
        ("kind", pa.string()),
        ("state", pa.binary()),
    ]
)
"""Rows of aggregates of one kind each."""

DIFFERENCES: Final = "differences"
RATIOS: Final = "ratios"
VALUES: Final = "values"
SIGNS: Final = "signs"
WEIGHTS: Final = "weights"
CENTRED: Final = "centred"
ORDERS: Final = "orders"
ARMS: Final = "arms"  # of two models that serve different users: of their means, in place of the differences
ARM_RATIOS: Final = "arm_ratios"  # the same of ratios of sums
LISTED: Final = "listed"
"""Users with a list of each model, then those with one of both of two: all users, then those that are evaluated. For
all models at once, and no cutoff."""

LISTED_USERS: Final = "listed_users"  # the same of all users, where lists that judgements name are counted too
NO_CUTOFF: Final = -1  # cutoff of what is the same at all of them
MAX_HELD: Final = 1 << 28  # bytes of sums above which they are handed on, to be merged elsewhere
MAX_SUMMED: Final = 1 << 26
"""Bytes of sums of replicates that are made in one go, or those of one pair and group of users where these are more:
with more pairs and groups than fit, they take turns."""

_BATCH: Final = 1 << 24  # bytes of states above which a batch is closed
_ARRAYS_A_COLUMN: Final = 6  # of the bootstrap: weights, sums and squares, and a copy of each


class ComparisonKey(NamedTuple):
    """The models, slice and cutoff that an aggregate is about."""

    baseline: str | None
    model: str | None
    slice_index: int
    slice_values: tuple[str | None, ...]
    k: int
    models: tuple[str, ...] | None = None


Partial: TypeAlias = tuple[ComparisonKey, str, bytes]  # what it is about, its kind, and the aggregate


@dataclass
class ReplicateBuffer:
    """Sums of replicates, added up over the chunks of a part while they fit."""

    _sums: dict[tuple[ComparisonKey, str], np.ndarray] = field(default_factory=dict)
    _n_bytes: int = 0

    def add(self, key: ComparisonKey, kind: str, sums: np.ndarray) -> Iterator[Partial]:
        """Add to the sums held; yield all of them where they have become too large."""
        before = self._sums.get((key, kind))
        if before is None:
            self._sums[key, kind] = sums.copy()
            self._n_bytes += sums.nbytes
        else:
            before += sums
        if self._n_bytes > MAX_HELD:
            yield from self.release()

    def release(self) -> Iterator[Partial]:
        """Yield the sums held and start again from none."""
        held, self._sums, self._n_bytes = self._sums, {}, 0
        yield from ((key, kind, sums.tobytes()) for (key, kind), sums in held.items())


def partials_to_batches(partials: Iterable[Partial]) -> Iterator[pa.RecordBatch]:
    """Convert aggregates to rows of :data:`PARTIAL`."""
    batch: list[Partial] = []
    n_bytes = 0
    for partial in partials:
        batch.append(partial)
        n_bytes += len(partial[2])
        if n_bytes > _BATCH:
            yield _partials_to_batch(batch)
            batch, n_bytes = [], 0
    if batch:
        yield _partials_to_batch(batch)


def _partials_to_batch(partials: list[Partial]) -> pa.RecordBatch:
    """Convert aggregates to one batch of :data:`PARTIAL`."""
    rows = [(*key[:3], list(key.slice_values), *key[4:], kind, state) for key, kind, state in partials]
    arrays = map(pa.array, zip(*rows, strict=True), PARTIAL.types)
    return pa.RecordBatch.from_arrays(list(arrays), schema=PARTIAL)


@dataclass(frozen=True)
class ComparisonRequest:
    """Models, measures and tests of a comparison."""

    columns: tuple[str, ...]  # column of each measure that is compared
    weights: tuple[str | None, ...]  # column of its denominators, where it is a ratio of sums
    cutoffs: tuple[frozenset[int], ...]  # cutoffs at which it was requested
    ks: tuple[int, ...]  # the cutoffs that occur
    tests: tuple[TestName, ...]  # tests that are made
    wilcoxon_zeros: Zeros  # {"wilcox", "pratt"} what Wilcoxon's test does with users without a difference
    few_differences: FewDifferences  # what the test `t` is where few users differ
    replicates: int
    seed: int
    baseline: str | None
    all_pairs: bool
    # difference of a user's two values above which the user is counted as one who wins or loses by more
    margin: float | None = None
    expected: tuple[str, ...] = ()  # names of all models where they are known before; empty: those that have rows
    arms: frozenset[str] = frozenset()  # models that serve different users, of which no two are paired
    covariates: tuple[str, ...] = ()  # columns of earlier values of ``columns``, then of ``weights``; only of arms

    def with_models(self, found: Iterable[str]) -> tuple[str, ...]:
        """Return models that have rows, the baseline and those that are expected, in their order."""
        known = (self.baseline,) if self.baseline is not None else ()
        return models_in_order({*known, *self.expected, *self.arms, *found}, self.baseline)

    @property
    def max_columns_at_once(self) -> int:
        """Columns of sums of replicates that fit at a time."""
        return MAX_SUMMED // (8 * self.replicates)

    @property
    def draws(self) -> Draws:
        return Draws(self.replicates, self.seed)

    @property
    def ratio_positions(self) -> list[int]:
        """Positions of the measures that are ratios of sums."""
        return [position for position, weight in enumerate(self.weights) if weight is not None]

    @property
    def mean_positions(self) -> list[int]:
        """Positions of the measures that are means over users."""
        return [position for position, weight in enumerate(self.weights) if weight is None]

    @property
    def stored(self) -> tuple[str, ...]:
        """Columns of ``user_metrics`` that are read: those of the measures, then those of denominators."""
        return (*self.columns, *(weight for weight in self.weights if weight is not None), *self.covariates)

    def at(self, k: int) -> list[int]:
        """Positions of the measures requested at a cutoff."""
        return [position for position, ks in enumerate(self.cutoffs) if k in ks]

    def mean_positions_at(self, k: int) -> list[int]:
        """Positions of those that are means over users: only they have other tests than t."""
        return [position for position in self.at(k) if self.weights[position] is None]

    @cached_property
    def slots(self) -> tuple[np.ndarray, np.ndarray]:
        """Place of the cutoff and position of the measure for every requested mean."""
        places = [(place, position) for place, k in enumerate(self.ks) for position in self.mean_positions_at(k)]
        place, position = np.array(places, dtype=np.int64).reshape(-1, 2).T
        return place, position

    def has_any(self, *tests: TestName) -> bool:
        """Return True if one of these tests is made, and there is a mean to test."""
        return not set(tests).isdisjoint(self.tests) and self.slots[0].size > 0


def models_in_order(models: Iterable[str], baseline: str | None) -> tuple[str, ...]:
    """Order models by name, the baseline before all others; of each two the earlier one is compared with."""
    return tuple(sorted(models, key=lambda name: (name != baseline, name)))


@dataclass(frozen=True, eq=False)
class Slicing:
    """One slice: the values that occur, and the group of each user among them."""

    index: int  # place of the slice among all
    values: list[tuple[str | None, ...]]  # of each group
    group: np.ndarray  # (n_users,) int, place of the user's values

    def has_any(self, is_counted: np.ndarray) -> np.ndarray:
        """Return which groups have a user with the flag, (n_users,): bool (n_groups,)."""
        counts: np.ndarray = np.bincount(self.group[is_counted], minlength=len(self.values))
        return counts > 0


def find_slicings(users: pa.Table, slices: Sequence[tuple[str, ...]]) -> list[Slicing]:
    """Find the groups of users of each slice."""
    users = unpack_segments(users)
    columns = {name: users[name] for names in slices for name in names}
    # Users are grouped, not rows of a model and cutoff.
    plain = pa.Table.from_pydict({C.MODEL_ID: to_texts([""] * users.num_rows), **columns})
    found = [find_groups(plain, names) for names in slices]
    return [Slicing(index, [key[1] for key in keys], group) for index, (keys, group) in enumerate(found)]


def rechunk_by_user(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches, sorted by user, to chunks that cut no user's rows in two."""
    held: pa.Table | None = None
    for chunk in rechunk(batches):
        table = chunk if held is None else pa.concat_tables([held, chunk])
        user = table[C.USER_ID]
        n_before_last = len(user) - int(pc.sum(pc.equal(user, user[-1])).as_py())
        if n_before_last:
            yield table.slice(0, n_before_last)
        held = table.slice(n_before_last)
    if held is not None:
        yield held


@dataclass(frozen=True)
class DifferenceAggregator:
    """Aggregation of the differences of models, in the workers."""

    requested: ComparisonRequest
    slices: tuple[tuple[str, ...], ...]
    owner: tuple[str, ...] = (C.USER_ID,)  # what has lists that are counted: users, or lists that judgements name

    def aggregate_rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Aggregate Arrow's rows of (model, user, k), sorted by user: rows of :data:`PARTIAL`."""
        requested, ks = self.requested, self.requested.ks
        chunks = (
            self._to_chunk(table, read_matrix(table, requested.stored), cutoff_positions(table, ks))
            for table in rechunk_by_user(batches)
        )
        yield from partials_to_batches(self._partials(chunks))

    def aggregate_lists(
        self,
        lists: pa.Table,  # model and user of each list, the hash of the user, and segments as they travel
        values: np.ndarray,  # float64 (n_lists, n_ks, n_columns) of ``requested.stored``; NaN where undefined
    ) -> Iterator[pa.RecordBatch]:
        """Aggregate lists, all those of some users: rows of :data:`PARTIAL`."""
        if lists.num_rows:
            yield from partials_to_batches(self._partials([self._to_chunk(lists, values, slice(None))]))

    def count_lists(self, lists: pa.Table) -> Iterator[pa.RecordBatch]:
        """Count owners with a list under each model, and under both models in a pair: rows of :data:`PARTIAL`.

        ``lists``: model and owner of each list with an item, IS_EVALUATED, and segments as they travel; judged or not.
        """
        if not lists.num_rows:
            return
        kinds = {LISTED: self.owner}
        if self.owner != (C.USER_ID,):
            kinds[LISTED_USERS] = (C.USER_ID,)
        counts = (self._count_owners(lists, by, kind) for kind, by in kinds.items())
        yield from partials_to_batches(chain.from_iterable(counts))

    def _count_owners(self, lists: pa.Table, by: tuple[str, ...], kind: str) -> Iterator[Partial]:
        _, first, owner = np.unique(encode_rows(lists, by), return_index=True, return_inverse=True)
        names = self.requested.with_models(pc.unique(lists[C.MODEL_ID]).to_pylist())
        model = to_numpy(pc.index_in(lists[C.MODEL_ID], value_set=to_texts(names)))
        has_list = np.zeros((2, len(names), len(first)), dtype=np.bool_)
        has_list[0, model, owner] = True
        is_evaluated = to_numpy(lists[IS_EVALUATED])
        has_list[1, model[is_evaluated], owner[is_evaluated]] = True
        for slicing in find_slicings(pc.take(lists, to_arrow(first)), self.slices):
            groups = membership_matrix(slicing.group, len(slicing.values))
            parts = []  # (groups, models) each: owners with a list of each model, then with one of another model too
            for listed in has_list:
                compared = listed if self.requested.all_pairs else listed[:1]
                for flags in (listed, *(other & listed for other in compared)):  # one by one, for there may be many
                    parts.append(groups @ flags.T.astype(np.float64))
            for values, of_group in zip(slicing.values, np.stack(parts, axis=1), strict=True):
                key = ComparisonKey(None, None, slicing.index, values, NO_CUTOFF, names)
                yield key, kind, of_group.tobytes()

    def _to_chunk(
        self,
        table: pa.Table,  # rows of a model and user; no model, user and cutoff occurs twice
        values: np.ndarray,  # float64 (n_rows, n_columns), or (n_rows, n_ks, n_columns) with all cutoffs in a row
        place: np.ndarray | slice,  # (n_rows,) place of the row's cutoff, or a slice of all
    ) -> _Chunk:
        """Place the values of each row by its model, its cutoffs and its user."""
        requested, encoded = self.requested, table[C.USER_ID].combine_chunks().dictionary_encode()
        user, n_users = to_numpy(encoded.indices), len(encoded.dictionary)
        models = requested.with_models(pc.unique(table[C.MODEL_ID]).to_pylist())
        model = to_numpy(pc.index_in(table[C.MODEL_ID], value_set=to_texts(models)))
        cells = np.full((len(models), len(requested.ks), n_users, values.shape[-1]), np.nan)
        cells[model, place, user] = values
        is_there = np.zeros((len(models), n_users), dtype=np.bool_)
        is_there[model, user] = True
        has_list = np.zeros((len(models), n_users), dtype=np.bool_)
        if requested.arms:
            is_listed = to_numpy(table[C.N_RECOMMENDED]) > 0
            has_list[model[is_listed], user[is_listed]] = True
        users = pc.take(table, to_arrow(np.unique(user, return_index=True)[1]))
        hashes, slicings = to_numpy(users[USER_HASH]), find_slicings(users, self.slices)
        return _Chunk(requested, models, cells, is_there, has_list, hashes, slicings)

    def _partials(self, chunks: Iterable[_Chunk]) -> Iterator[Partial]:
        """Yield sums of replicates added up over all chunks, all else chunk by chunk."""
        requested, held = self.requested, ReplicateBuffer()
        for chunk in chunks:
            yield from chunk.aggregate_arms()
            if requested.covariates:
                continue
            yield from chunk.aggregate_pairs()
            if requested.has_any("wilcoxon"):
                yield from chunk.differences()
            if requested.has_any("bootstrap", "randomization"):
                yield from chunk.add_replicate_sums(held)
            if requested.has_any("tukey", "randomized_tukey"):
                yield from chunk.aggregate_all_models(held)
        yield from held.release()


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some users, all of their values and all of their slices."""

    requested: ComparisonRequest
    # in the order in which they are compared, see :func:`models_in_order`; the baseline and expected models are there
    # without rows too
    models: tuple[str, ...]
    # float64 (n_models, n_ks, n_users, n_columns) NaN where undefined, and where the user is not of the population
    # under the model
    values: np.ndarray
    is_there: np.ndarray  # bool (n_models, n_users) whether the user is
    has_list: np.ndarray  # bool (n_models, n_users) whether the user has a list; known where models are arms
    hashes: np.ndarray  # of each user's id
    slicings: list[Slicing]

    @cached_property
    def _every_pair(self) -> list[tuple[int, int]]:
        positions, all_pairs = range(len(self.models)), self.requested.all_pairs
        return [(first, other) for first, other in combinations(positions, 2) if all_pairs or first == 0]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Positions of models that are compared on the same users, the one that is compared with first."""
        return [pair for pair in self._every_pair if not self._are_arms(pair)]

    def _are_arms(self, pair: tuple[int, int]) -> bool:
        return self.requested.arms.issuperset(self.models[place] for place in pair)

    def _parts_of_arm(self, place: int) -> dict[str, np.ndarray]:
        """Return the parts of the users of a model by kind, (users at all cutoffs, measures, parts).

        A value, or numerator and denominator; then covariates: whether the user has an earlier value, and this value or
        both of its parts, 0 without one. NaN where the model does not serve the user.
        """
        requested, n = self.requested, len(self.requested.columns)
        served = np.where(self.has_list[place][None, :, None], self.values[place], np.nan)
        served = served.reshape(-1, served.shape[-1])
        means, ratios = requested.mean_positions, requested.ratio_positions
        now, earlier = served[:, : n + len(ratios)], served[:, n + len(ratios) :]

        def split(values: np.ndarray) -> dict[str, list[np.ndarray]]:
            below = values[:, n:]
            return {ARMS: [values[:, means]], ARM_RATIOS: [values[:, ratios] * below, below]}

        parts = split(now)
        for kind, of_kind in split(earlier).items() if requested.covariates else ():
            is_known = ~np.isnan(of_kind[0])
            parts[kind] += [is_known.astype(np.float64), *(np.where(is_known, each, 0.0) for each in of_kind)]
        return {kind: np.stack(of_kind, axis=-1) for kind, of_kind in parts.items()}

    def aggregate_arms(self) -> Iterator[Partial]:
        """Aggregate the values of models that serve different users; only users with a list of a model count."""
        n_ks = len(self.requested.ks)
        for pair in filter(self._are_arms, self._every_pair):
            sides = [self._parts_of_arm(place) for place in reversed(pair)]
            for slicing in self.slicings:
                n_groups = len(slicing.values)
                group = (np.arange(n_ks)[:, None] * n_groups + slicing.group).ravel()
                states = {
                    kind: Arms.by_group(model, sides[1][kind], group, n_ks * n_groups).to_bytes()
                    for kind, model in sides[0].items()
                    if model.shape[1]
                }
                is_there: np.ndarray = self.is_there[pair[0]] | self.is_there[pair[1]]
                is_shown = slicing.has_any(is_there) | bool(self.requested.expected)
                for shown in np.flatnonzero(is_shown).tolist():
                    key = self._comparison_key(pair, slicing, shown)
                    for place, k in enumerate(self.requested.ks):
                        for kind, of_groups in states.items():
                            yield key._replace(k=k), kind, of_groups[place * n_groups + shown]

    def aggregate_pairs(self) -> Iterator[Partial]:
        """Aggregate the differences, and the parts of ratios of sums."""
        n, of_sums, n_ks = len(self.requested.columns), self.requested.ratio_positions, len(self.requested.ks)
        for pair in self.pairs:
            first, values = (self.values[each].reshape(-1, len(self.requested.stored)) for each in pair)
            pairs = PairedValues.from_values(values[:, :n], first[:, :n], margin=self.requested.margin)
            model, baseline = ((each[:, of_sums] * each[:, n:], each[:, n:]) for each in (values, first))
            for slicing in self.slicings:
                n_groups = len(slicing.values)
                group = (np.arange(n_ks)[:, None] * n_groups + slicing.group).ravel()
                states = {DIFFERENCES: paired_tests.differences_by_group(pairs, group, n_ks * n_groups).to_bytes()}
                if of_sums:
                    found = paired_ratios.ratio_pairs_by_group(model, baseline, group, n_ks * n_groups)
                    states[RATIOS] = found.to_bytes()
                for shown in np.flatnonzero(self._has_rows(pair, slicing)).tolist():
                    key = self._comparison_key(pair, slicing, shown)
                    for place, k in enumerate(self.requested.ks):
                        for kind, of_groups in states.items():
                            yield key._replace(k=k), kind, of_groups[place * n_groups + shown]

    def differences(self) -> Iterator[Partial]:
        """Yield the differences themselves, which ranks cannot do without."""
        for pair in self.pairs:
            difference = paired_tests.subtract(self.values[pair[1]], self.values[pair[0]])
            for slicing in self.slicings:
                is_shown = self._has_rows(pair, slicing)
                for group, users in iterate_groups(slicing.group):
                    key = self._comparison_key(pair, slicing, group)
                    for place, k in enumerate(self.requested.ks):
                        columns = self.requested.mean_positions_at(k)
                        if is_shown[group] and columns:
                            user_differences = difference[place][users][:, columns]
                            yield key._replace(k=k), VALUES, rank_tests.differences_to_bytes(user_differences)

    def add_replicate_sums(self, held: ReplicateBuffer) -> Iterator[Partial]:
        """Add up the differences with random weights and signs."""
        requested, (place, position) = self.requested, self.requested.slots
        values = self.values[:, place, :, position]  # slots, models, users
        n_of_pair = len(place) * _ARRAYS_A_COLUMN
        at_once = max(1, requested.max_columns_at_once // n_of_pair)
        for start in range(0, len(self.pairs), at_once):
            pairs = self.pairs[start : start + at_once]
            shown = {pair: [self._has_rows(pair, slicing) for slicing in self.slicings] for pair in pairs}
            difference = np.concatenate(
                [paired_tests.subtract(values[:, model], values[:, first]) for first, model in pairs]
            ).T
            for block, meaning in self._group_blocks(len(pairs) * n_of_pair):
                groups, sums = SliceGroups(block, len(meaning)), {}  # (n_groups, n_parts, n_columns, replicates)
                if "bootstrap" in requested.tests:
                    found = resampling.weighted_sums(difference, self.hashes, requested.draws, groups)
                    sums[WEIGHTS] = np.stack([found.weights, found.sums, found.squares], axis=1)
                if "randomization" in requested.tests:
                    signs = paired_tests.sign_sums(difference, self.hashes, requested.draws, groups)
                    sums[SIGNS] = signs[:, None]
                for row, (index, group) in enumerate(meaning):
                    sums_by_pair = {kind: np.split(each[row], len(pairs), axis=1) for kind, each in sums.items()}
                    for pair_index, pair in enumerate(pairs):
                        if shown[pair][index][group]:
                            key = self._comparison_key(pair, self.slicings[index], group)
                            for kind, pair_sums in sums_by_pair.items():
                                yield from self._buffer_by_cutoff(held, key, kind, pair_sums[pair_index])

    def aggregate_all_models(self, held: ReplicateBuffer) -> Iterator[Partial]:
        """Aggregate all models at once: those with users in the group, on the users that have values under all."""
        present = [np.stack([slicing.has_any(users) for users in self.is_there]) for slicing in self.slicings]
        for pattern in np.unique(np.concatenate(present, axis=1), axis=1).T:
            has_pattern = [(has_model == pattern[:, None]).all(axis=0) for has_model in present]
            yield from self._aggregate_models(np.flatnonzero(pattern), has_pattern, held)

    def _aggregate_models(
        self, models: np.ndarray, is_aggregated: Sequence[np.ndarray], held: ReplicateBuffer
    ) -> Iterator[Partial]:
        """Aggregate some models over the groups that have them, by slice, and no others."""
        place, position = self.requested.slots
        names = tuple(self.models[model] for model in models)
        values = self.values[models][:, place, :, position].transpose(2, 1, 0)  # users, models, slots
        centred = multiple_testing.centre_by_user(values)
        rounding = multiple_testing.squared_rounding(values, centred)
        with_means = np.concatenate([centred, multiple_testing.user_means(values)], axis=1).reshape(len(values), -1)
        for slicing, is_group in zip(self.slicings, is_aggregated, strict=True):
            users = np.flatnonzero(is_group[slicing.group])
            group, n_groups = slicing.group[users], len(slicing.values)
            found = moments.moments_by_group(with_means[users], group, n_groups)
            sums = membership_matrix(group, n_groups)
            with np.errstate(over="ignore"):
                absolute = sums @ np.nan_to_num(np.abs(centred[users])).sum(axis=1)
            parts = np.concatenate([found.n, found.mean, found.m2, sums @ rounding[users], absolute], axis=1)
            states = parts.reshape(n_groups, -1, len(place))
            for group_index in np.flatnonzero(is_group).tolist():
                key = ComparisonKey(None, None, slicing.index, slicing.values[group_index], 0, names)
                for cutoff_key, state in self._split_by_cutoff(key, states[group_index]):
                    yield cutoff_key, CENTRED, state.tobytes()
        if "randomized_tukey" not in self.requested.tests:
            return
        for block, meaning in self._group_blocks(centred[0].size):  # users whose models are in random order
            groups = SliceGroups(block, len(meaning))
            permuted = multiple_testing.permuted_sums(centred, self.hashes, self.requested.draws, groups)
            for local, (index, group_index) in enumerate(meaning):
                if is_aggregated[index][group_index]:
                    key = ComparisonKey(None, None, index, self.slicings[index].values[group_index], 0, names)
                    yield from self._buffer_by_cutoff(held, key, ORDERS, permuted[local])

    def _buffer_by_cutoff(
        self, held: ReplicateBuffer, key: ComparisonKey, kind: str, sums: np.ndarray
    ) -> Iterator[Partial]:
        for cutoff_key, cutoff_sums in self._split_by_cutoff(key, sums):
            yield from held.add(cutoff_key, kind, cutoff_sums)

    def _split_by_cutoff(self, key: ComparisonKey, parts: np.ndarray) -> Iterator[tuple[ComparisonKey, np.ndarray]]:
        """Split parts of shape (n_parts, n_slots, ...) by cutoff."""
        for place, k in enumerate(self.requested.ks):
            is_own = self.requested.slots[0] == place
            if is_own.any():
                yield key._replace(k=k), parts[:, is_own]

    def _comparison_key(self, pair: tuple[int, int], slicing: Slicing, group: int) -> ComparisonKey:
        first, model = (self.models[each] for each in pair)
        return ComparisonKey(first, model, slicing.index, slicing.values[group], 0)

    def _has_rows(self, pair: tuple[int, int], slicing: Slicing) -> np.ndarray:
        """Return which groups have rows: all if models are expected, so that all parts have rows of the same groups.

        Else those with users of the model and, for a pair without the baseline, of both models.
        """
        if self.requested.expected:
            return np.ones(len(slicing.values), dtype=np.bool_)
        first, model = pair
        is_of_baseline = self.models[first] == self.requested.baseline
        return slicing.has_any(self.is_there[model] & (self.is_there[first] | is_of_baseline))

    def _group_blocks(self, n_columns: int) -> Iterator[tuple[np.ndarray, list[tuple[int, int]]]]:
        """Yield as many groups of users at a time as fit: each user's code by slice, and (slice, group) of each code.

        Codes count from 0 in each block; a user who is in no group of the block has -1.
        """
        meaning = [(slicing.index, group) for slicing in self.slicings for group in range(len(slicing.values))]
        starts = np.cumsum([0, *(len(slicing.values) for slicing in self.slicings[:-1])])
        codes = np.stack([slicing.group + start for slicing, start in zip(self.slicings, starts, strict=True)])
        size = max(1, self.requested.max_columns_at_once // n_columns)
        for start in range(0, len(meaning), size):
            block = meaning[start : start + size]
            is_own = (codes >= start) & (codes < start + len(block))
            yield np.where(is_own, codes - start, -1)[is_own.any(axis=1)], block
