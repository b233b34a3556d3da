"""Which lists there are: those of the log, and an empty one for each judged user or list that a model has none for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch.codes import in_id_order, starts_of_runs, to_codes

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import Batch, CodedRows
    from rankeval_spark.engine.batch.owners import Owners
    from rankeval_spark.engine.ranking.judgements import Judgements
    from rankeval_spark.measures.arrays import IntVector


@dataclass(frozen=True)
class ListKeys:
    """The lists of a batch, sorted by user and model; all arrays of shape (n_lists,).

    Attributes
    ----------
    user, model : int64
        Codes of the user and of the model.
    list_id : pa.Array
        ``list_id`` of each list; :data:`columns.ONE_LIST` for that of a user without one.
    owner : int64
        Whose judgements each is compared with, see :attr:`Batch.log_owner`.
    """

    user: IntVector
    model: IntVector
    list_id: pa.Array
    owner: IntVector

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return len(self.user)

    def list_of(self, batch: Batch, table: CodedRows) -> tuple[IntVector, IntVector]:
        """Find the list of each row of a table with ``model_id`` and, where users have several lists, ``list_id``.

        Returns
        -------
        list_code, row : int64
            The list of each row that has one, and the position of the row.
        """
        if not len(table):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        model = np.zeros(len(table), dtype=np.int64)
        if C.MODEL_ID in table.columns:
            named = pc.index_in(table.columns[C.MODEL_ID], value_set=to_texts(batch.models))
            model = to_numpy(named, null=-1)
        ids = table.columns.get(C.LIST_ID)
        names = self.list_id.dictionary
        own = np.zeros(len(table), dtype=np.int64)
        if ids is not None:
            own = to_numpy(pc.index_in(ids.cast(names.type), value_set=names), null=-1)
        n_names, n_models = len(names), max(len(batch.models), 1)
        keys = to_arrow((self.user * n_models + self.model) * n_names + to_numpy(self.list_id.indices))
        wanted = to_arrow((table.user * n_models + model) * n_names + own)
        found = to_numpy(pc.index_in(wanted, value_set=keys), null=-1)
        has_list = (found >= 0) & (model >= 0) & (own >= 0)
        return found[has_list], np.flatnonzero(has_list)

    @classmethod
    def of(cls, batch: Batch, judgements: Judgements) -> tuple[ListKeys, IntVector]:
        """Find the lists, and that of each row of the log."""
        n_models, n_slots = len(batch.models), batch.n_users * len(batch.models)
        slot = batch.log.user * n_models + batch.model
        if batch.owners is not None:
            return cls._of_owners(batch, slot, judgements, batch.owners)
        is_listed = np.zeros(n_slots, dtype=np.bool_)
        is_listed[slot] = True
        is_judged = np.zeros(batch.n_users, dtype=np.bool_)
        is_judged[judgements.owner] = True
        if C.LIST_ID in batch.log.columns:
            return cls._of_several(batch, slot, np.flatnonzero(np.repeat(is_judged, n_models) & ~is_listed))
        slots = np.flatnonzero(is_listed | np.repeat(is_judged, n_models))
        place = np.cumsum(is_listed | np.repeat(is_judged, n_models)) - 1
        one = to_texts([C.ONE_LIST])
        ids = pa.DictionaryArray.from_arrays(to_arrow(np.zeros(len(slots), dtype=np.int32)), one)
        user, model = np.divmod(slots, max(n_models, 1))
        return cls(user, model, ids, user), place[slot]

    @classmethod
    def _of_several(cls, batch: Batch, slot: IntVector, empty: IntVector) -> tuple[ListKeys, IntVector]:
        """Do the same where a user can have several lists of a model.

        Lists of a user are in the order of their ids: so sums over them do not depend on the order of the rows.
        """
        own = in_id_order(to_codes(batch.log.columns[C.LIST_ID]))
        names = pa.concat_arrays([own.values, to_texts([C.ONE_LIST]).cast(own.values.type)])
        no_name = np.full(len(empty), len(names) - 1)
        slots, code, place = _distinct(np.append(slot, empty), np.append(own.code, no_name), n_codes=len(names))
        user, model = np.divmod(slots, max(len(batch.models), 1))
        ids = pa.DictionaryArray.from_arrays(to_arrow(code.astype(np.int32)), names)
        return cls(user, model, ids, user), place[: len(slot)]

    @classmethod
    def _of_owners(
        cls, batch: Batch, slot: IntVector, judgements: Judgements, owners: Owners
    ) -> tuple[ListKeys, IntVector]:
        """Do the same where judgements name lists: a model has every judged list, be it empty."""
        n_models = len(batch.models)
        judged = judgements.owner[starts_of_runs(judgements.owner)]
        of_models = (owners.user[judged][:, None] * n_models + np.arange(n_models)).ravel()
        slots, owner, place = _distinct(
            np.append(slot, of_models), np.append(owners.log, np.repeat(judged, n_models)), n_codes=len(owners.user)
        )
        user, model = np.divmod(slots, max(n_models, 1))
        ids = pa.DictionaryArray.from_arrays(to_arrow(owners.name[owner].astype(np.int32)), owners.names)
        return cls(user, model, ids, owner), place[: len(slot)]


def _distinct(slot: IntVector, code: IntVector, *, n_codes: int) -> tuple[IntVector, IntVector, IntVector]:
    """Find the distinct pairs of a slot and a code, in their order, and the place of each pair among them."""
    pair = slot * n_codes + code
    in_order = np.sort(pair)
    distinct = in_order[starts_of_runs(in_order)]
    found = to_codes(to_arrow(pair))
    place = np.searchsorted(distinct, to_numpy(found.values))[found.code]
    slots, codes = np.divmod(distinct, max(n_codes, 1))
    return slots, codes, place
