"""Lists of a few users of a published night, read again: published tables hold no items."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.night_plan import pin_config, plan_again
from rankeval_spark.apps.published_runs import read_means
from rankeval_spark.engine.arrays import to_texts
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.inputs.arrow.file_inputs import open_inputs, read_tables
from rankeval_spark.inputs.arrow.input_sizes import look_up_sizes
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.spark.version import require_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.inputs.arrow.reading import Source


@dataclass(frozen=True)
class UserLists:
    """Tables of some users of a night."""

    ranked: pa.Table  # model_id, user_id, list_id, item_id, rank, gain (NULL: not judged), is_relevant; the whole lists
    judged: pa.Table  # user_id, item_id, gain, and list_id where judgements name their list
    values: pa.Table  # model_id, user_id, list_id, measure, k, value
    titles: Mapping[str, str]  # of items in these tables, by id as text, where the catalogue has titles


def user_lists(spark: SparkSession, root: str, night: PastNight, users: Sequence[str]) -> UserLists:
    """Evaluate a few users of a published night again, with its measures and policies.

    A ``spark`` of ``spark.session.on_demand`` starts only where this process cannot read the inputs.
    ``users`` are ids as published tables have them: whole numbers as text. Raises InputError if an input or its version
    is gone, or no row of the night is of one of the users.
    """
    plan = plan_again(night, pin_config(night.row), night.measures)
    # With the models that it published, one without a list for the users among them.
    names = {row[C.MODEL_ID] for row in read_means(root, night.evaluation, [night])} - {C.ONE_MODEL}
    models = tuple(sorted(names)) or plan.request.models
    plan = replace(plan, request=plan.request.copy_with(comparisons=None, models=models))
    try:
        inputs = open_inputs(plan.config, plan.request, plan.evaluation_date)
    except ForSparkError as reason:
        sizes = [look_up_sizes(name, one, plan.evaluation_date) for name, one in plan.config.inputs.given.items()]
        if missing := [size.fault for size in chain.from_iterable(sizes) if size.fault is not None]:
            raise InputError(*missing) from reason
        require_spark(str(reason))
        found = _user_lists_on_spark(spark, plan, users)
    else:
        tables = read_tables(inputs, sample_share=plan.sample_share)
        log, held_out = (_keep_users(source, users) for source in (tables.recommendations, tables.held_out))
        of_users = replace(tables, recommendations=log, held_out=held_out)
        usable = Usable(of_users, plan.request, os.cpu_count() or 1)
        host = InProcess(usable)
        judged = usable.held_out.select([*schemas.HELD_OUT.key_in(usable.held_out.column_names), C.GAIN])
        ranked, values = host.ranked_items.to_arrow(), host.user_values.to_arrow()
        found = UserLists(ranked, judged, values, host.titles(_items_in(ranked, judged)))
    ids = (table[C.USER_ID].cast(pa.string()).to_pylist() for table in (found.ranked, found.judged))
    there = set(chain.from_iterable(ids))
    expected = f"a user of {night}, with a list or a judgement"
    faults = [Fault("user", repr(user), expected) for user in users if user not in there]
    if faults:
        raise InputError(*faults)
    return found


def _keep_users(source: Source, users: Sequence[str]) -> Source:
    """Keep the rows of some users."""
    ids = source.table[C.USER_ID].cast(pa.string())
    return replace(source, table=source.table.filter(pc.is_in(ids, value_set=to_texts(users))), unreadable=None)


def _user_lists_on_spark(spark: SparkSession, plan: NightPlan, users: Sequence[str]) -> UserLists:
    """Evaluate the users on Spark, at the versions of the plan."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - pyspark is an extra

    from rankeval_spark.hosts.on_spark import OnSpark, inputs_of  # noqa: PLC0415 - as above
    from rankeval_spark.inputs.spark.reading import read_all  # noqa: PLC0415 - as above

    def of_users(frame: DataFrame) -> DataFrame:
        return frame.where(F.col(C.USER_ID).cast("string").isin(*users))

    inputs = inputs_of(read_all(spark, plan.config, plan.evaluation_date), plan.request, sample_share=plan.sample_share)
    lists = None if inputs.lists is None else of_users(inputs.lists)
    log, held_out = of_users(inputs.recommendations), of_users(inputs.held_out)
    given = replace(inputs, recommendations=log, held_out=held_out, lists=lists)
    host = OnSpark(given, plan.request)
    judged = given.held_out.select(*schemas.HELD_OUT.key_in(given.held_out.columns), C.GAIN)
    ranked, of_user = host.ranked_items.toArrow(), judged.toArrow()
    return UserLists(ranked, of_user, host.user_values.toArrow(), host.titles(_items_in(ranked, of_user)))


def _items_in(*rows: pa.Table) -> list[str]:
    """Return the ids of the items in some tables, as text."""
    return sorted({item for table in rows for item in table[C.ITEM_ID].cast(pa.string()).to_pylist()})
