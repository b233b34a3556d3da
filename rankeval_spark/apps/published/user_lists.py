"""A published night again for a few users: what each model listed for them, and what the measures make of it.

Published tables hold no items. The inputs that the night read are read again, at their recorded versions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.published.recorded_plan import pinned, plan_again
from rankeval_spark.apps.published_runs import means_of
from rankeval_spark.engine.batch.arrays import to_texts
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.inputs.arrow.file_inputs import open_inputs, read_tables
from rankeval_spark.inputs.arrow.files import ForSparkError
from rankeval_spark.spark.version import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.inputs.arrow.input_tables import Source


@dataclass(frozen=True)
class UserLists:
    """What a night shows of some users.

    Attributes
    ----------
    ranked : pa.Table
        A row per model, user, list and item, by rank: ``model_id``, ``user_id``, ``list_id``, ``item_id``, ``rank``,
        ``gain`` (NULL where the item is not judged) and ``is_relevant``. The whole lists.
    judged : pa.Table
        Judgements of the users: ``user_id``, ``item_id``, ``gain``, and ``list_id`` where judgements name their list.
    values : pa.Table
        Values of the measures of the night: ``model_id``, ``user_id``, ``list_id``, ``measure``, ``k``, ``value``.
    """

    ranked: pa.Table
    judged: pa.Table
    values: pa.Table


def user_lists(spark: SparkSession, root: str, night: PastNight, users: Sequence[str]) -> UserLists:
    """Evaluate a few users of a published night again, with its measures and policies.

    Parameters
    ----------
    spark : SparkSession
        One of ``spark.session`` starts only where this process cannot read the root or the inputs.
    users : sequence of str
        Ids as published tables have them: whole numbers as text.

    Raises
    ------
    InputError
        An input or its version is gone, or no row of the night is of one of the users.
    """
    plan = _plan(spark, root, night)
    try:
        inputs = open_inputs(plan.config, plan.request, plan.evaluation_date)
    except ForSparkError as reason:
        require_spark(str(reason))
        from rankeval_spark.apps.published import nights_on_spark  # noqa: PLC0415 - imports pyspark

        found = UserLists(*nights_on_spark.user_lists(spark, plan, users))
    else:
        tables = read_tables(inputs, sample_share=plan.sample_share)
        log, held_out = (_of_users(one, users) for one in (tables.recommendations, tables.held_out))
        found = _found(
            Usable(replace(tables, recommendations=log, held_out=held_out), plan.request, os.cpu_count() or 1)
        )
    _require_rows(found, night, users)
    return found


def _plan(spark: SparkSession, root: str, night: PastNight) -> NightPlan:
    """Plan the night with the models that it published, one without a list for the users among them."""
    plan = plan_again(night, pinned(night.row), night.measures)
    names = {row[C.MODEL_ID] for row in means_of(spark, root, night.evaluation, [night])} - {C.ONE_MODEL}
    request = replace(plan.request, comparisons=None, models=tuple(sorted(names)) or plan.request.models)
    return replace(plan, request=request)


def _of_users(source: Source, users: Sequence[str]) -> Source:
    ids = source.table[C.USER_ID].cast(pa.string())
    return replace(source, table=source.table.filter(pc.is_in(ids, value_set=to_texts(users))), unreadable=None)


def _found(usable: Usable) -> UserLists:
    host = InProcess(usable)
    judged = usable.held_out.select([*schemas.HELD_OUT.key_in(usable.held_out.column_names), C.GAIN])
    return UserLists(host.ranked_items(), judged, host.user_values())


def _require_rows(found: UserLists, night: PastNight, users: Sequence[str]) -> None:
    """Refuse a user without a list and without a judgement."""
    ids = (table[C.USER_ID].cast(pa.string()).to_pylist() for table in (found.ranked, found.judged))
    there = set(chain.from_iterable(ids))
    expected = f"a user of {night}, with a list or a judgement"
    faults = [Fault("user", repr(user), expected) for user in users if user not in there]
    if faults:
        raise InputError(*faults)
