"""Who has lists: their groups of the jackknife, and the slices that their segments put them into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch.codes import to_codes
from rankeval_spark.engine.batch.user_hashes import N_GROUPS, jackknife_groups
from rankeval_spark.engine.failures import quoted, refuse_input
from rankeval_spark.in_process.facts.joins import places_in
from rankeval_spark.result_rows.counting import counted, lengths_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    rows = np.repeat(pair, lengths_of(starts, n_rows=ranked.num_rows))
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
class Slice:
    """One way to divide the users, with a cell for each model and each combination of segment values.

    Attributes
    ----------
    index : int
        Which of the requested slices.
    cell : int64, shape (n_pairs,)
        ``model * n_values + value`` of each pair.
    group : int64, shape (n_pairs,)
        Group of the jackknife of the user of each pair.
    models : pa.Array
        Models.
    values : pa.ListArray
        Segment values of each combination.
    """

    index: int
    cell: IntVector
    group: IntVector
    models: pa.Array
    values: pa.ListArray

    @property
    def n_cells(self) -> int:
        """Cells, those without a user among them."""
        return len(self.models) * len(self.values)

    @property
    def bucket(self) -> IntVector:
        """Cell and group of each pair, ``cell * N_GROUPS + group``: int64, shape (n_pairs,)."""
        return self.cell * N_GROUPS + self.group

    def key_columns(self, cells: IntVector) -> dict[str, pa.Array]:
        """Make the columns ``model_id``, ``slice_index`` and ``slice_values`` of some cells."""
        model, value = np.divmod(cells, max(len(self.values), 1))
        return {
            C.MODEL_ID: pc.take(self.models, to_arrow(model)),
            "slice_index": to_arrow(np.full(len(cells), self.index, dtype=np.int32)),
            C.SLICE_VALUES: pc.take(self.values, to_arrow(value)),
        }


def to_slices(
    audience: Audience, *, segments: pa.Table | None, absent: Mapping[str, str], slices: Sequence[Sequence[str]]
) -> list[Slice]:
    """Divide the users by each of the slices.

    Parameters
    ----------
    segments : pa.Table or None
        ``user_id`` and a text column for each segment.
    absent : mapping
        Values of a user without a row, by segment, where the absence is a value.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone.

    Raises
    ------
    RefusedError
        If a user with a list has two rows of segments: either would be a guess.
    """
    names = dict.fromkeys(name for one in slices for name in one)
    values = _values(audience.users, segments, names=tuple(names), absent=absent)
    return [_slice(index, [values[name] for name in one], audience) for index, one in enumerate(slices)]


def _values(
    users: pa.Array, segments: pa.Table | None, *, names: Sequence[str], absent: Mapping[str, str]
) -> dict[str, pa.Array]:
    """Give each user the values of their segments, NULL where unknown."""
    if segments is None or not names:
        return {name: pa.nulls(len(users), pa.string()) for name in names}
    user = places_in(segments[C.USER_ID], users)
    has_list = user >= 0
    _refuse_repeated(user[has_list], users)
    row = np.full(len(users), segments.num_rows)
    row[user[has_list]] = np.flatnonzero(has_list)
    return {
        name: pc.take(
            pa.concat_arrays([in_one_piece(segments[name]).cast(pa.string()), to_texts([absent.get(name)])]),
            to_arrow(row),
        )
        for name in names
    }


def _refuse_repeated(user: IntVector, users: pa.Array) -> None:
    repeated = np.flatnonzero(np.bincount(user, minlength=len(users)) > 1)
    if len(repeated):
        what = f"user {quoted(users[int(repeated[0])].as_py())} stands twice in the segment table"
        refuse_input("segments", what, expected="each user once", fix="keep one row a user in the segment table")


def _slice(index: int, values: Sequence[pa.Array], audience: Audience) -> Slice:
    code, combinations = _combined(values, n_users=len(audience.users))
    n_models = len(audience.models)
    cell = np.arange(n_models)[:, None] * len(combinations) + code
    return Slice(index, cell.ravel(), np.tile(audience.group, n_models), audience.models, combinations)


def _combined(values: Sequence[pa.Array], *, n_users: int) -> tuple[IntVector, pa.ListArray]:
    """Find the combinations of values that users have: the place of that of each user, and all of them."""
    code: IntVector = np.zeros(n_users, dtype=np.int64)
    found: IntVector = np.zeros(1, dtype=np.int64)
    parts: list[pa.Array] = []
    for one in values:
        encoded = one.dictionary_encode(null_encoding="encode")
        n_values = len(encoded.dictionary)
        both = code * n_values + to_numpy(encoded.indices)
        found, _ = counted(both, n_keys=max(len(found), 1) * n_values)
        code = np.searchsorted(found, both)
        of_part = np.divmod(found, max(n_values, 1))
        parts = [pc.take(part, to_arrow(of_part[0])) for part in parts]
        parts.append(pc.take(encoded.dictionary, to_arrow(of_part[1])))
    return code, _lists_of(parts, n_lists=len(found))


def _lists_of(parts: Sequence[pa.Array], *, n_lists: int) -> pa.ListArray:
    """Make a list of the first, second, ... value of each part."""
    offsets = to_arrow(np.arange(n_lists + 1, dtype=np.int32) * len(parts))
    if not parts:
        return pa.ListArray.from_arrays(offsets, pa.nulls(0, pa.string()))
    order = np.arange(n_lists * len(parts)).reshape(len(parts), n_lists).T.ravel()
    return pa.ListArray.from_arrays(offsets, pc.take(pa.concat_arrays(parts), to_arrow(order)))
