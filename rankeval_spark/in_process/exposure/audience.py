"""Who has lists: their groups of the jackknife, and the slices that their segments put them into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import key_columns
from rankeval_spark.engine.aggregation.slices import encoded, groups_of, segment_columns
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch.codes import to_codes
from rankeval_spark.engine.batch.joins import places_in
from rankeval_spark.engine.batch.user_hashes import N_GROUPS, jackknife_groups
from rankeval_spark.engine.failures import quoted, refuse_input
from rankeval_spark.result_rows.counting import run_lengths
from rankeval_spark.result_rows.jackknife_rows import SLICE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankeval_spark.engine.aggregation.slices import Key
    from rankeval_spark.measures.arrays import BoolVector, IntVector


@dataclass(frozen=True)
class Audience:
    """The users of the lists under each model: pair ``model * n_users + user``, whether it has a list or not.

    Attributes
    ----------
    models, users : pa.Array
        Distinct ids, models as text.
    pair : int64, shape (n_rows,)
        Pair of each ranked item.
    """

    models: pa.Array
    users: pa.Array
    pair: IntVector

    @property
    def n_pairs(self) -> int:
        """Pairs of a model and a user."""
        return len(self.models) * len(self.users)

    @cached_property
    def group(self) -> IntVector:
        """Group of the jackknife of each user, by a hash of their id: int64, shape (n_users,)."""
        return jackknife_groups(self.users)


def to_audience(ranked: pa.Table) -> Audience:
    """Encode the models and the users of ranked items, which come in runs."""
    ids = [in_one_piece(ranked[name]) for name in (C.MODEL_ID, C.USER_ID)]
    starts = np.flatnonzero(_changes(ids[0]) | _changes(ids[1]))
    models, users = (to_codes(pc.take(one, to_arrow(starts))) for one in ids)
    pair = models.code * users.n_values + users.code
    rows = np.repeat(pair, run_lengths(starts, n_rows=ranked.num_rows))
    return Audience(models.values.cast(pa.string()), users.values, rows)


def _changes(ids: pa.Array) -> BoolVector:
    """Mark the rows whose id differs from that of the row before, or either is NULL: bool, shape (n_rows,).

    Ids of users and models come in runs: to compare neighbours takes a fiftieth of the time of encoding every row.
    """
    is_change = np.ones(len(ids), dtype=np.bool_)
    if len(ids):
        is_change[1:] = to_numpy(pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)), null=1)
    return is_change


@dataclass(frozen=True)
class UserSlice:
    """One way to divide the users, with a cell for each model and each combination of segment values.

    Attributes
    ----------
    index : int
        Which of the requested slices.
    cell : int64, shape (n_pairs,)
        Cell of each pair.
    group : int64, shape (n_pairs,)
        Group of the jackknife of the user of each pair.
    keys : list of Key
        Model and segment values of each cell.
    """

    index: int
    cell: IntVector
    group: IntVector
    keys: list[Key]

    @property
    def n_cells(self) -> int:
        """Cells, those without a user among them."""
        return len(self.keys)

    @property
    def bucket(self) -> IntVector:
        """Cell and group of each pair, ``cell * N_GROUPS + group``: int64, shape (n_pairs,)."""
        return self.cell * N_GROUPS + self.group

    def key_columns(self) -> dict[str, pa.Array]:
        """Make the columns ``model_id``, ``slice_index`` and ``slice_values`` of the cells."""
        return dict(zip(SLICE, key_columns(self.index, self.keys), strict=False))


@dataclass(frozen=True)
class UserSegments:
    """What is known of the users.

    Attributes
    ----------
    table : pa.Table or None
        ``user_id`` and a text column for each segment.
    absent : mapping
        Values of a user without a row, by segment, where the absence is a value.
    """

    table: pa.Table | None
    absent: Mapping[str, str]


def to_slices(audience: Audience, segments: UserSegments, *, slices: Sequence[Sequence[str]]) -> list[UserSlice]:
    """Divide the users by each of the slices.

    Parameters
    ----------
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone.

    Raises
    ------
    RefusedError
        If a user with a list has two rows of segments: either would be a guess.
    """
    by, n_users, n_models = segment_columns(slices), len(audience.users), len(audience.models)
    names = dict(zip(chain.from_iterable(by), chain.from_iterable(slices), strict=True))
    values = _values(audience.users, segments, names=tuple(names.values()))
    model, user = np.divmod(np.arange(n_models * n_users), max(n_users, 1))
    columns = {C.MODEL_ID: pc.take(audience.models, to_arrow(model))}
    columns |= {column: pc.take(values[name], to_arrow(user)) for column, name in names.items()}
    columns[C.K] = to_arrow(np.zeros(len(user), dtype=np.int32))
    table, group = encoded(pa.Table.from_pydict(columns), [C.MODEL_ID, *names]), np.tile(audience.group, n_models)
    found = (groups_of(table, one, (0,)) for one in by)
    return [UserSlice(index, cell, group, keys) for index, (keys, cell) in enumerate(found)]


def _values(users: pa.Array, segments: UserSegments, *, names: Sequence[str]) -> dict[str, pa.Array]:
    """Give each user the values of their segments, NULL where unknown."""
    known = segments.table
    if known is None or not names:
        return {name: pa.nulls(len(users), pa.string()) for name in names}
    user = places_in(known[C.USER_ID], users)
    has_list = user >= 0
    _refuse_repeated(user[has_list], users)
    row = np.full(len(users), known.num_rows)
    row[user[has_list]] = np.flatnonzero(has_list)
    return {
        name: pc.take(
            pa.concat_arrays([in_one_piece(known[name]).cast(pa.string()), to_texts([segments.absent.get(name)])]),
            to_arrow(row),
        )
        for name in names
    }


def _refuse_repeated(user: IntVector, users: pa.Array) -> None:
    repeated = np.flatnonzero(np.bincount(user, minlength=len(users)) > 1)
    if len(repeated):
        what = f"user {quoted(users[int(repeated[0])].as_py())} occurs twice in the segment table"
        refuse_input("segments", what, expected="each user once", fix="keep one row a user in the segment table")
