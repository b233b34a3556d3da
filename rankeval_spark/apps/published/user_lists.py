"""Lists of a few users of a published night, read again: published tables hold no items."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night_plan import pin_config, plan_again
from rankeval_spark.apps.published_runs import PastNight, read_means
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.evaluation import Evaluation
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.inputs.arrow.file_inputs import open_inputs, read_tables
from rankeval_spark.inputs.arrow.input_sizes import look_up_sizes
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.measures.plugins import load_plugins
from rankeval_spark.report.tables import to_arrow
from rankeval_spark.spark.version import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.hosts.host import Host
    from rankeval_spark.report.explanation import Explanation
    from rankeval_spark.results import Event


@dataclass(frozen=True)
class UserLists:
    """Tables of some users of a night."""

    ranked: pa.Table  # model_id, user_id, list_id, item_id, rank, gain (NULL: not judged), is_relevant; the whole lists
    judged: pa.Table  # user_id, item_id, gain, and list_id where judgements name their list
    values: pa.Table  # model_id, user_id, list_id, measure, k, value
    titles: Mapping[str, str]  # of items in these tables, by id as text, where the catalogue has titles


def user_lists(spark: SparkSession, root: str, night: PastNight, users: Sequence[str]) -> UserLists:
    """Evaluate a few users of a published night again, with its measures and policies.

    ``users`` are ids as published tables have them: whole numbers as text. Raises InputError as :func:`open_night`, or
    if no row of the night is of one of the users.
    """
    host = open_night(spark, root, night)
    of_users = host.of_users(users, host.request)
    ranked, judged, values = map(to_arrow, (of_users.ranked_items, of_users.judged, of_users.user_values))
    ids = (table[C.USER_ID].cast(pa.string()).to_pylist() for table in (ranked, judged))
    there = set(chain.from_iterable(ids))
    expected = f"a user of {night}, with a list or a judgement"
    faults = [Fault("user", repr(user), expected) for user in users if user not in there]
    if faults:
        raise InputError(*faults)
    items = {item for table in (ranked, judged) for item in table[C.ITEM_ID].cast(pa.string()).to_pylist()}
    return UserLists(ranked, judged, values, of_users.titles(sorted(items)))


def explain_published(
    spark: SparkSession | None, root: str, run: Event, user: object, measure: object, **which: str | None
) -> Explanation:
    """Explain a value of the night of a run, see :meth:`Evaluation.explain`; InputError as :func:`open_night`."""
    host = open_night(spark, root, PastNight(run))
    return Evaluation(host, host.request).explain(user, measure, **which)


def open_night(spark: SparkSession | None, root: str, night: PastNight) -> Host[Any]:
    """Open the inputs of a published night at the versions that it read, with its measures and policies.

    A ``spark`` of ``spark.session.on_demand`` starts only where this process cannot read the inputs. Raises InputError
    if an input or its version is gone, or Spark alone can read them and there is no session; ConfigError if the code of
    own measures is gone.
    """
    config = pin_config(night.row)
    load_plugins(config.plugins, where="plugins")
    plan = plan_again(night, config, night.measures)
    # With the models that it published, one without a list for the users among them.
    names = {row[C.MODEL_ID] for row in read_means(root, night.evaluation, [night])} - {C.ONE_MODEL}
    request = plan.request.copy_with(comparisons=None, models=tuple(sorted(names)) or plan.request.models)
    try:
        inputs = open_inputs(plan.config, request, plan.evaluation_date)
    except ForSparkError as reason:
        sizes = [look_up_sizes(name, one, plan.evaluation_date) for name, one in plan.config.inputs.given.items()]
        if missing := [size.fault for size in chain.from_iterable(sizes) if size.fault is not None]:
            raise InputError(*missing) from reason
        if spark is None:
            fix = "give a session: Results(root, spark)"
            raise InputError(Fault(f"inputs of {night}", str(reason), "what this process reads", fix)) from reason
        require_spark(str(reason))
        from rankeval_spark.hosts.on_spark import OnSpark  # noqa: PLC0415 - pyspark is an extra
        from rankeval_spark.inputs.spark.reading import read_all  # noqa: PLC0415 - as above

        sources = read_all(spark, plan.config, plan.evaluation_date)
        return OnSpark(sources, request, sample_share=plan.sample_share)
    tables = read_tables(inputs, sample_share=plan.sample_share)
    return InProcess(Usable(tables, request, os.cpu_count() or 1))
