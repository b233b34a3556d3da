"""Which judgement each row of the log meets: by user and item, or by list and item where judgements belong to lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.ranking.attribution import AttributionRules, attribute
from rankeval_spark.engine.ranking.judgements import gains_of
from rankeval_spark.engine.ranking.list_keys import ListKeys

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.engine.batch.batch import Batch, CodedRows
    from rankeval_spark.engine.ranking.judgements import Judgements
    from rankeval_spark.engine.ranking.list_rules import ListRules
    from rankeval_spark.measures.arrays import BoolVector, IntVector


@dataclass(frozen=True)
class MatchedLog:
    """The rows of the log that enter lists, with their judgements.

    Attributes
    ----------
    batch : Batch
        The rows; those that policies leave out are gone.
    keys : ListKeys
        The lists.
    list_code : int64, shape (n_log_rows,)
        List of each row.
    judgement : int64, shape (n_log_rows,)
        Position of its judgement; -1 without one.
    judgements : Judgements
        The judgements of all owners: users, lists that judgements name, or all lists where `timing` is there.
    timing : pa.StructArray, length n_lists, optional
        What the times say of each list, see :data:`attribution.TIMING_FIELDS`; only with attribution.
    """

    batch: Batch
    keys: ListKeys
    list_code: IntVector
    judgement: IntVector
    judgements: Judgements
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

    Parameters
    ----------
    judgements : Judgements
        Of the users, or of the lists that they name.
    judge : callable, optional
        Makes judgements of interactions that were attributed to lists; needed where the rules attribute.
    """
    is_seen = is_in_train(batch, batch.log.user, batch.log.item) if rules.drops_seen else None
    if rules.attribution is not None and judge is not None:
        return _match_in_time(batch, judgements, rules.attribution, judge, is_seen)
    if is_seen is not None:
        batch = batch.with_log(~is_seen)
    judgement = gains_of(batch.log_owner * batch.n_items + batch.log.item, judgements)
    if rules.judged_only:
        is_judged = _is_judged(judgement, judgements)
        batch, judgement = batch.with_log(is_judged), judgement[is_judged]
    keys, list_code = ListKeys.of(batch, judgements)
    return MatchedLog(batch, keys, list_code, judgement, judgements)


def is_in_train(batch: Batch, user: IntVector, item: IntVector) -> BoolVector:
    """Return True for each (user, item) that the training data have."""
    seen = to_arrow(batch.train.user * batch.n_items + batch.train.item)
    return to_numpy(pc.is_in(to_arrow(user * batch.n_items + item), value_set=seen))


def _is_judged(judgement: IntVector, judgements: Judgements) -> BoolVector:
    """Return True for each item with a judgement; a negative gain marks an item of the pool that was not judged."""
    gain = np.append(judgements.gain, -1.0)
    kept: BoolVector = gain[judgement] >= 0
    return kept


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
