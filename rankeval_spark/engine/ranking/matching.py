"""The lists that there are, and the judgement that each row of the log meets.

By user and item, or by list and item where judgements belong to lists. A model has an empty list for each judged user
or list that it has none for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch.codes import in_id_order, starts_of_runs, to_codes
from rankeval_spark.engine.ranking.attribution import AttributionRules, attribute
from rankeval_spark.engine.ranking.judgements import gains_of
from rankeval_spark.limits import MAX_ROWS_PER_USER

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import Batch, CodedRows, Owners
    from rankeval_spark.engine.ranking.judgements import Judgements
    from rankeval_spark.measures.arrays import BoolVector, IntVector


@dataclass(frozen=True)
class ListRules:
    """Rules by which the rows of the log become ranked lists."""

    order: str  # {"score", "rank"} column that orders the lists: descending scores or ascending ranks
    ties: str  # what decides between items of equal score: policy ``ties``, see ``docs/policies.md``
    duplicates: str  # {"best", "keep", "error"} what happens to an item with several rows in a list
    held_out_duplicates: str = "max"  # {"max", "sum", "last", "error"} the same for several rows of a judgement
    # whether items keep the rank of the log instead of being numbered from 1: policy ``rank_gaps``
    keeps_gaps: bool = False
    judged_only: bool = False  # whether items without a judgement leave the lists before ranks are given
    # whether items that the user has in the training data leave the lists first: policy ``seen_in_train``
    drops_seen: bool = False
    checks_ranks: bool = False  # whether ranks of the log are compared with those that are given
    # how times decide which list an interaction is a judgement of; None: every list of its user
    attribution: AttributionRules | None = None
    max_rows_per_user: int = MAX_ROWS_PER_USER  # rows of a user in all inputs together above which the job fails

    @property
    def duplicates_of_users(self) -> str:
        """Gain of a judgement of a user that has several rows: where lists have them, no two are refused."""
        is_refused_of_lists = self.attribution is not None and self.held_out_duplicates == "error"
        return "max" if is_refused_of_lists else self.held_out_duplicates

    @property
    def reads_ranks(self) -> bool:
        """Whether the ranks of the log are read."""
        return self.order == C.RANK or self.ties == "rank" or self.keeps_gaps or self.checks_ranks


@dataclass(frozen=True)
class ListKeys:
    """The lists of a batch, sorted by user and model; all arrays of shape (n_lists,)."""

    user: IntVector  # codes of the user and of the model
    model: IntVector
    list_id: pa.Array  # ``list_id`` of each list; :data:`columns.ONE_LIST` for that of a user without one
    owner: IntVector  # whose judgements each is compared with, see :attr:`Batch.log_owner`

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return len(self.user)

    def list_of(self, batch: Batch, table: CodedRows) -> tuple[IntVector, IntVector]:
        """Find the list of each row of a table with ``model_id`` and, where users have several lists, ``list_id``.

        Returns ``list_code``, ``row``: the list of each row that has one, and the position of the row.
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
        """Find the lists where a user can have several of a model.

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
        """Find the lists where judgements name lists: a model has every judged list, be it empty."""
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


@dataclass(frozen=True)
class MatchedLog:
    """The rows of the log that enter lists, with their judgements."""

    batch: Batch  # the rows; those that policies leave out are gone
    keys: ListKeys
    list_code: IntVector  # (n_log_rows,) list of each row
    judgement: IntVector  # (n_log_rows,) position of its judgement; -1 without one
    # the judgements of all owners: users, lists that judgements name, or all lists where `timing` is there
    judgements: Judgements
    # (n_lists,) what the times say of each list, see :data:`attribution.TIMING_FIELDS`; only with attribution
    timing: pa.StructArray | None = None

    @property
    def owner(self) -> IntVector:
        """Owner of the judgements that each list is compared with: int64, shape (n_lists,)."""
        return self.keys.owner if self.timing is None else np.arange(self.keys.n_lists)


def match_log(
    batch: Batch,
    judgements: Judgements,
    *,
    rules: ListRules,
    judge: Callable[[CodedRows], Judgements] | None = None,
) -> MatchedLog:
    """Match the log with the judgements.

    Seen items leave the lists first, then those without a judgement where the policy says so. Times attribute
    interactions to the lists as they were shown, so that seen items leave afterwards there.

    ``judgements``: of the users, or of the lists that they name. ``judge``: makes judgements of interactions that were
    attributed to lists; needed where the rules attribute.
    """
    is_seen = is_in_train(batch, batch.log.user, batch.log.item) if rules.drops_seen else None
    if rules.attribution is not None and judge is not None:
        return _match_in_time(batch, judgements, rules.attribution, judge, is_seen)
    if is_seen is not None:
        batch = batch.with_log(~is_seen)
    judgement = gains_of(batch.log_owner * batch.n_items + batch.log.item, judgements)
    if rules.judged_only:
        is_judged = np.append(judgements.gain, -1.0)[judgement] >= 0  # a negative gain: of the pool, and not judged
        batch, judgement = batch.with_log(is_judged), judgement[is_judged]
    keys, list_code = ListKeys.of(batch, judgements)
    return MatchedLog(batch, keys, list_code, judgement, judgements)


def is_in_train(batch: Batch, user: IntVector, item: IntVector) -> BoolVector:
    """Return True for each (user, item) that the training data have."""
    seen = to_arrow(batch.train.user * batch.n_items + batch.train.item)
    return to_numpy(pc.is_in(to_arrow(user * batch.n_items + item), value_set=seen))


def _match_in_time(
    batch: Batch,
    judgements: Judgements,
    rules: AttributionRules,
    judge: Callable[[CodedRows], Judgements],
    is_seen: BoolVector | None,
) -> MatchedLog:
    """Attribute interactions to the lists as they were shown; then leave out what policies drop."""
    keys, list_code = ListKeys.of(batch, judgements)
    attributed = attribute(batch, keys, list_code, rules)
    of_lists, is_judged = judge(attributed.held_out), attributed.is_judged
    is_kept = np.ones(len(list_code), dtype=np.bool_)
    if is_seen is not None:
        is_kept &= ~is_seen
    if rules.drops_consumed:
        is_kept &= ~attributed.is_consumed
    if not is_kept.all():
        batch, list_code, is_judged = batch.with_log(is_kept), list_code[is_kept], is_judged[is_kept]
    judgement = np.full(len(list_code), -1)
    row = np.flatnonzero(is_judged)
    judgement[row] = gains_of(list_code[row] * batch.n_items + batch.log.item[row], of_lists)
    return MatchedLog(batch, keys, list_code, judgement, of_lists, attributed.timing)
