"""Replicate sums of a bootstrap, for every slice; partial, to be merged.

Only where a bootstrap is requested. The weights of a user are drawn from a hash of the id, once for all models, slices
and cutoffs that are summarised together. They add up in one matrix product per block of users
(:func:`rankeval_spark.statistics.bootstrap.ratio_sums`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import COUNTED_VALUES, GROUP, KEY_FIELDS, STATE
from rankeval_spark.engine.aggregation.slices import USER_HASH, Key, groups_of, positions_of
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.statistics.bootstrap import Parts, ratio_sums
from rankeval_spark.statistics.moments import membership_of
from rankeval_spark.statistics.replicate_sums import Draws, SliceGroups

STATES: Final = ("drawn_sums", "drawn_users")
"""What the users of a group amount to in each replicate, for all measures: sums of numerators and denominators (2,
n_measures, n_replicates); or, where they are few, a row each of hash, numerators and denominators."""

WITH_STATES: Final = pa.schema([*KEY_FIELDS, *((name, pa.binary()) for name in (STATE, COUNTED_VALUES, *STATES))])
"""Rows of ``aggregate_state.PARTIAL`` and of states, which have no moments."""

HELD_BYTES: Final = 1 << 27
"""Sums that a worker holds before it passes them on: 128 MB, enough for 80 groups of 16 measures at 6 cutoffs."""

MAX_GROWTH: Final = 4
"""How many times larger sums may be than the values that they replace: users are passed on as they are where there are
fewer than replicates / MAX_GROWTH."""

States: TypeAlias = dict[str, pa.Array]
"""Rows of GROUP and STATES, column by column."""

_Slot: TypeAlias = tuple[int, Key]
"""Index of the slice, and the group in it, whatever its cutoff."""


@dataclass
class Resampler:
    """Replicate sums of one partition.

    In addition to the rows it is given, a worker holds HELD_BYTES, three times while they are added up and passed on.
    This does not depend on the number of slices, groups, measures and replicates. What a partition passes on is at most
    MAX_GROWTH times its values for each slice, and for a group at most one state each time that HELD_BYTES are full.
    """

    draws: Draws
    slices: Sequence[tuple[str, ...]]
    ks: tuple[int, ...]
    _held: dict[_Slot, Parts] = field(default_factory=dict)

    def add(self, table: pa.Table, numerators: np.ndarray, denominators: np.ndarray) -> Iterator[States]:
        """Take in rows of (model, user, k); passes on what is not held.

        Parameters
        ----------
        numerators, denominators : float64, shape (n_rows, n_measures)
            NaN where undefined; the denominator of a mean is 1.
        """
        if np.isnan(numerators).all():
            return
        users = Users.of(table, numerators, denominators, self.ks)
        large: list[_Slot] = []
        groups: list[np.ndarray] = []
        for index, names in enumerate(self.slices):
            keys, group = groups_of(users.first_rows, names, self.ks)
            is_few = np.bincount(group, minlength=len(keys)) * MAX_GROWTH < self.draws.replicates
            few = [(place, key) for place, key in enumerate(keys) if is_few[place]]
            if few:
                yield _batch((index, key, k, None, state) for key, k, state in users.each(few, group, self.ks))
            slots = [(index, key) for place, key in enumerate(keys) if not is_few[place]]
            if large and (len(large) + len(slots)) * self._bytes(users) > HELD_BYTES:
                yield from self._draw(users, large, groups)
                large, groups = [], []
            if slots:
                places = np.where(is_few, -1, np.cumsum(~is_few) - 1 + len(large))
                groups.append(places[group])
                large += slots
        yield from self._draw(users, large, groups)

    def rest(self) -> Iterator[States]:
        """Pass on what is held, a group at a time."""
        for (index, key), sums in self._held.items():
            by_k = np.split(sums, len(self.ks), axis=1)
            yield _batch((index, key, k, part.tobytes(), None) for k, part in zip(self.ks, by_k, strict=True))
        self._held = {}

    def _draw(self, users: Users, slots: list[_Slot], groups: list[np.ndarray]) -> Iterator[States]:
        if not slots:
            return
        drawn = SliceGroups(np.array(groups), len(slots))
        sums = ratio_sums(users.numerators, users.denominators, users.hashes, self.draws, drawn)
        for slot, added in zip(slots, sums, strict=True):
            self._held[slot] = self._held[slot] + added if slot in self._held else added.copy()
        if len(self._held) * self._bytes(users) > HELD_BYTES:
            yield from self.rest()

    def _bytes(self, users: Users) -> int:
        """Size of the sums of one group."""
        return 2 * 8 * int(users.numerators.shape[1]) * self.draws.replicates


@dataclass(frozen=True)
class Users:
    """Users of models, each with all cutoffs, in the order of their hashes; only those who have a value.

    Attributes
    ----------
    numerators, denominators : float64, shape (n_users, n_ks * n_measures)
        0 where undefined.
    first_rows : pa.Table
        A row of each, for its model and segments; all at one cutoff.
    """

    hashes: np.ndarray
    numerators: np.ndarray
    denominators: np.ndarray
    first_rows: pa.Table

    @classmethod
    def of(cls, table: pa.Table, numerators: np.ndarray, denominators: np.ndarray, ks: tuple[int, ...]) -> Users:
        """Put the cutoffs of each user of a model side by side; numerators are NaN where undefined."""
        is_defined = ~np.isnan(numerators)
        has_value = is_defined.any(axis=1)
        kept = table.filter(to_arrow(has_value))
        models = kept[C.MODEL_ID].combine_chunks().dictionary_encode()
        users, user = np.unique(to_numpy(kept[USER_HASH]), return_inverse=True)
        row_of = user * len(models.dictionary) + to_numpy(models.indices)
        found, first, row_of = np.unique(row_of, return_index=True, return_inverse=True)
        to_cells = membership_of(row_of * len(ks) + positions_of(kept, ks), len(found) * len(ks))
        above, below = (
            (to_cells @ np.where(is_defined, values, 0.0)[has_value]).reshape(len(found), -1)
            for values in (numerators, denominators)
        )
        one_k = to_arrow(np.full(len(found), ks[0], dtype=np.int32))
        first_rows = pc.take(kept, to_arrow(first))
        first_rows = first_rows.set_column(first_rows.schema.get_field_index(C.K), C.K, one_k)
        return cls(users[user[first]], above, below, first_rows)

    def each(
        self, few: list[tuple[int, Key]], group: np.ndarray, ks: tuple[int, ...]
    ) -> Iterator[tuple[Key, int, bytes]]:
        """Give the users of some groups as they are, cutoff by cutoff."""
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], [[place, place + 1] for place, _ in few])
        above, below = (np.split(values, len(ks), axis=1) for values in (self.numerators, self.denominators))
        for (_, key), (start, end) in zip(few, ends.tolist(), strict=True):
            own = order[start:end]
            for position, k in enumerate(ks):
                columns = np.hstack([above[position][own], below[position][own]])
                yield key, k, self.hashes[own].tobytes() + columns.tobytes()


def _batch(states: Iterable[tuple[int, Key, int, bytes | None, bytes | None]]) -> States:
    """Make rows of GROUP and STATES."""
    rows = [(model, index, list(values), k, sums, users) for index, (model, values, _), k, sums, users in states]
    columns = zip((*GROUP, *STATES), _TYPES, zip(*rows, strict=True), strict=True)
    return {name: pa.array(values, kind) for name, kind, values in columns}


_TYPES: Final = (*(field.type for field in KEY_FIELDS), pa.binary(), pa.binary())


def with_states(columns: States | pa.RecordBatch) -> pa.RecordBatch:
    """Make rows of WITH_STATES: add the column of moments to states, or the other way round."""
    return pa.RecordBatch.from_arrays(in_full(columns, WITH_STATES), schema=WITH_STATES)


def in_full(
    columns: Mapping[str, pa.Array] | pa.RecordBatch | pa.Table, schema: pa.Schema
) -> list[pa.Array | pa.ChunkedArray]:
    """Put columns into the order of a schema; those that are missing are NULL."""
    names = list(columns) if isinstance(columns, Mapping) else columns.schema.names
    given = {name: columns[name] for name in names}
    n_rows = len(given[names[0]])
    return [given[field.name] if field.name in given else pa.nulls(n_rows, field.type) for field in schema]
