"""The values of some users under all models side by side, and the groups of users that the slices make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import USER_HASH, groups_of, in_chunks, matrix, positions_of, unpacked
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy, to_texts

LEAST_BYTES: Final = 1 << 25
"""Values that are aggregated in one go: 32 MB, because each chunk sends one aggregate per pair, slice and cutoff."""


class ListValues(NamedTuple):
    """Values of lists of a (model, user) each; those of a user follow one another.

    Attributes
    ----------
    table : pa.Table
        Model and user of each list, the hash of the user, and segments as they travel.
    values : float64, shape (n_lists, n_ks, n_columns)
        NaN where undefined.
    """

    table: pa.Table
    values: np.ndarray


class ComparedModels(NamedTuple):
    """The model that others are compared with, and models that are expected to have rows, whether they have or not."""

    baseline: str | None
    expected: tuple[str, ...]

    def with_those(self, found: Iterable[str]) -> tuple[str, ...]:
        """Add models that have rows, and order all."""
        known = (self.baseline,) if self.baseline is not None else ()
        return models_in_order({*known, *self.expected, *found}, self.baseline)


@dataclass(frozen=True, eq=False)
class Cube:
    """Values of a chunk of users.

    Attributes
    ----------
    models : tuple of str
        In the order in which they are compared, see :func:`models_in_order`; the baseline and expected models are there
        without rows too.
    values : float64, shape (n_models, n_ks, n_users, n_columns)
        NaN where undefined, and where the user is not of the population under the model.
    is_there : bool, shape (n_models, n_users)
        Whether the user is.
    users : pyarrow.Table
        A row for each user, with segments as they travel.
    """

    models: tuple[str, ...]
    values: np.ndarray
    is_there: np.ndarray
    users: pa.Table

    @classmethod
    def of_rows(cls, table: pa.Table, columns: Sequence[str], ks: Sequence[int], models: ComparedModels) -> Cube:
        """Lay out rows of a (model, user, k) each; no key occurs twice."""
        values = matrix(table, columns)
        return cls._laid_out(table, values, positions_of(table, tuple(ks)), len(ks), models)

    @classmethod
    def of_lists(cls, lists: ListValues, models: ComparedModels) -> Cube:
        """Lay out lists of a (model, user) each, with all of their cutoffs; no key occurs twice."""
        return cls._laid_out(lists.table, lists.values, slice(None), lists.values.shape[1], models)

    @classmethod
    def _laid_out(
        cls, table: pa.Table, values: np.ndarray, place: np.ndarray | slice, n_ks: int, named: ComparedModels
    ) -> Cube:
        """Put the values of each row where its model, the places of its cutoffs and its user are."""
        encoded = table[C.USER_ID].combine_chunks().dictionary_encode()
        user, n_users = to_numpy(encoded.indices), len(encoded.dictionary)
        models = named.with_those(pc.unique(table[C.MODEL_ID]).to_pylist())
        model = to_numpy(pc.index_in(table[C.MODEL_ID], value_set=to_texts(models)))
        cells = np.full((len(models), n_ks, n_users, values.shape[-1]), np.nan)
        cells[model, place, user] = values
        is_there = np.zeros((len(models), n_users), dtype=np.bool_)
        is_there[model, user] = True
        return cls(models, cells, is_there, pc.take(table, to_arrow(np.unique(user, return_index=True)[1])))

    @property
    def hashes(self) -> np.ndarray:
        """Hash of each user's id."""
        return to_numpy(self.users[USER_HASH])

    def pairs(self, *, all_pairs: bool) -> list[tuple[int, int]]:
        """List the positions of the models that are compared, the one that is compared with first."""
        return [(one, other) for one, other in combinations(range(len(self.models)), 2) if all_pairs or one == 0]


@dataclass(frozen=True, eq=False)
class Slicing:
    """One slice: the values that occur, and the group of each user among them."""

    index: int
    values: list[tuple[str | None, ...]]
    group: np.ndarray

    def has_any(self, is_one: np.ndarray) -> np.ndarray:
        """Return which groups have a user who is one."""
        counts: np.ndarray = np.bincount(self.group[is_one], minlength=len(self.values))
        return counts > 0


def models_in_order(models: Iterable[str], baseline: str | None) -> tuple[str, ...]:
    """Order models by name, the baseline before all others; of each two the earlier one is compared with."""
    return tuple(sorted(models, key=lambda name: (name != baseline, name)))


def slicings_of(users: pa.Table, slices: Sequence[tuple[str, ...]]) -> list[Slicing]:
    """Find the groups of users of each slice."""
    users, n_users = unpacked(users), users.num_rows
    plain = pa.Table.from_pydict(
        {
            **{name: users[name] for names in slices for name in names},
            C.MODEL_ID: to_texts([""] * n_users),  # users are grouped, not rows of a model and cutoff
            C.K: to_arrow(np.zeros(n_users, dtype=np.int32)),
        }
    )
    found = [groups_of(plain, names, (0,)) for names in slices]
    return [Slicing(index, [key[1] for key in keys], group) for index, (keys, group) in enumerate(found)]


def gathered(parts: Iterable[ListValues]) -> Iterator[ListValues]:
    """Join lists to chunks of about LEAST_BYTES of values that cut no user's lists in two."""
    held: list[ListValues] = []
    for part in parts:
        held.append(part)
        if sum(one.values.nbytes for one in held) >= LEAST_BYTES:
            whole = _joined(held)
            n_before_last = _n_before_last(whole.table[C.USER_ID])
            if n_before_last:
                yield ListValues(whole.table.slice(0, n_before_last), whole.values[:n_before_last])
            held = [ListValues(whole.table.slice(n_before_last), whole.values[n_before_last:])]
    if any(len(one.values) for one in held):
        yield _joined(held)


def _joined(parts: Sequence[ListValues]) -> ListValues:
    return ListValues(pa.concat_tables([one.table for one in parts]), np.concatenate([one.values for one in parts]))


def _n_before_last(ids: pa.ChunkedArray) -> int:
    """Count the rows before those of the last user."""
    return len(ids) - int(pc.sum(pc.equal(ids, ids[-1])).as_py())


def whole_users(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches, sorted by user, to chunks that cut no user's rows in two."""
    held: pa.Table | None = None
    for chunk in in_chunks(batches):
        table = chunk if held is None else pa.concat_tables([held, chunk])
        n_before_last = _n_before_last(table[C.USER_ID])
        if n_before_last:
            yield table.slice(0, n_before_last)
        held = table.slice(n_before_last)
    if held is not None:
        yield held
