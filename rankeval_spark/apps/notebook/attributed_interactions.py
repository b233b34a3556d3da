"""Attribution of interactions to lists by window functions, as a frame to look at and to query.

``evaluate(attribution=...)`` attributes by the same rules while it evaluates; this is the plain way, which shows every
pair of interaction and list.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.notebook.hosts import is_of_spark
from rankeval_spark.config import Policies, validate_model
from rankeval_spark.config.loading import locate_in_call
from rankeval_spark.engine.checks import held_out_checks, log_checks
from rankeval_spark.errors import ConfigError, Fault, InputError, kind_of
from rankeval_spark.inputs.input_columns import attributed_lists_fault
from rankeval_spark.inputs.spark.reading import from_frame
from rankeval_spark.refusals import raise_in_call_words
from rankeval_spark.spark.plans import usable_rows
from rankeval_spark.time_zones import zone_fault

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from rankeval_spark.schemas import Schema

_SHOWN: Final = "_shown"
_TIME: Final = "_time"
_LIST: Final = "_list"
_place = locate_in_call("attributed_interactions")
_HAS_ITEM: Final = "is_recommended"
_ORDERS: Final = (C.SCORE, C.RANK)


def attributed_interactions(
    recommendations: DataFrame,
    held_out: DataFrame,
    *,
    attribution: str,
    attribution_window: str | timedelta,
    time_zone: str = "UTC",
) -> DataFrame:
    """Plan which list each interaction is a judgement of; no job starts.

    Parameters
    ----------
    recommendations : DataFrame
        As for ``evaluate``, with ``recommended_at``. A list was shown at the earliest time of its rows that have one.
    held_out : DataFrame
        As for ``evaluate``, with ``interacted_at``.
    attribution : {"last_touch", "first_touch", "all"}
        As for ``evaluate``. Of lists that were shown at the same time, the first is that of the smallest ``list_id``.
    attribution_window : str or datetime.timedelta
        As for ``evaluate``: an interaction belongs to a list if ``shown < interacted_at <= shown + window``.
    time_zone : str
        As for ``evaluate``: the zone of times without one.

    Returns
    -------
    DataFrame
        A row for each interaction and list that has it as a judgement: ``model_id``, ``user_id``, ``list_id``,
        ``item_id``, ``recommended_at`` (of the list), ``interacted_at``, ``gain``, and whether the item
        ``is_recommended`` in the list. Interactions of users without any list of a model are not among them, nor are
        rows that ``evaluate`` leaves out: those with a NULL id, an invalid gain, or an invalid score (rank, where ranks
        order the lists).

    Raises
    ------
    ConfigError
        If an argument is not valid.
    InputError
        If a column is missing or has a type that cannot be used.
    """
    given = {"attribution": attribution, "attribution_window": attribution_window}
    flat, name = dict.fromkeys(given, ""), attributed_interactions.__name__
    with raise_in_call_words(is_on_spark=True, function=name, sections=flat):
        if attribution == "none":
            raise ConfigError(Fault(_place(("attribution",)), "'none'", "last_touch, first_touch or all"))
        policies = validate_model(Policies, given, locate=_place)
        for each, frame in (("recommendations", recommendations), ("held_out", held_out)):
            if not is_of_spark(frame):
                fix = "spark.createDataFrame makes one"
                raise InputError(Fault(_place((each,)), f"a {kind_of(frame)}", "a DataFrame of Spark", fix))
        if fault := zone_fault(time_zone):
            raise ConfigError(replace(fault, where=_place(("time_zone",))))
        log = _to_canonical(recommendations, schemas.RECOMMENDATIONS, C.RECOMMENDED_AT, time_zone)
        log = usable_rows.keep_usable(log, log_checks(log.columns, are_judged=False))
        if C.LIST_ID in held_out.columns:
            raise InputError(attributed_lists_fault(attribution))
        judged = _to_canonical(held_out, schemas.HELD_OUT, C.INTERACTED_AT, time_zone)
        judged = usable_rows.keep_usable(judged, held_out_checks(schemas.HELD_OUT.key))
        # A row for each list and item, at the earliest time of the list; lists without any time leave.
        of_list = Window.partitionBy(C.MODEL_ID, C.USER_ID, C.LIST_ID)
        shown = log.withColumn(_TIME, F.min(_TIME).over(of_list)).where(F.col(_TIME).isNotNull())
        listed = F.struct(F.col(_TIME).alias(_SHOWN), F.col(C.LIST_ID))
        exposures = shown.select(C.MODEL_ID, C.USER_ID, C.ITEM_ID, _TIME, listed.alias(_LIST)).distinct()
        # The interactions that have a time, for every model with a list of their user.
        models = log.select(C.MODEL_ID, C.USER_ID).distinct()
        events = models.join(judged.where(F.col(_TIME).isNotNull()), on=[C.USER_ID], how="inner")
        events = events.select(C.MODEL_ID, C.USER_ID, C.ITEM_ID, _TIME, C.GAIN)
        rows = exposures.unionByName(events, allowMissingColumns=True)
    return _find_lists(rows, policies).select(
        C.MODEL_ID,
        C.USER_ID,
        F.col(_LIST)[C.LIST_ID].alias(C.LIST_ID),
        C.ITEM_ID,
        F.timestamp_micros(F.col(_LIST)[_SHOWN]).alias(C.RECOMMENDED_AT),
        F.timestamp_micros(_TIME).alias(C.INTERACTED_AT),
        C.GAIN,
        _HAS_ITEM,
    )


def _to_canonical(frame: DataFrame, schema: Schema, time: str, time_zone: str) -> DataFrame:
    """Return the canonical columns, of score and rank those that the table has, and the time in microseconds."""
    found = from_frame(schema.name, frame, schema, time_zone=time_zone)
    if time not in found.given:
        expected = "times, because they attribute interactions"
        raise InputError(Fault(schema.name, f"no column {time!r}", expected, f"rename the column that is {time}"))
    lacking = (name for name in _ORDERS if name not in found.given)
    return found.frame.drop(*lacking).withColumn(_TIME, F.unix_micros(time))


def _find_lists(rows: DataFrame, policies: Policies) -> DataFrame:
    """Find the lists shown within the window before each interaction.

    ``rows`` are exposures, with a struct of time and list id, and interactions, with a gain. A list shown at the very
    moment of the interaction is left out. ``all`` keeps every list; otherwise the last or first one that has the item
    or, where none has it, the last or first of all.
    """
    pick = {"last_touch": F.max, "first_touch": F.min, "all": F.collect_set}[policies.attribution]

    def lists_before(*keys: str) -> Column:
        return pick(_LIST).over(Window.partitionBy(*keys).orderBy(_TIME).rangeBetween(-policies.window, -1))

    claims = rows.select(
        "*",
        lists_before(C.MODEL_ID, C.USER_ID, C.ITEM_ID).alias("_with_item"),
        lists_before(C.MODEL_ID, C.USER_ID).alias("_of_any"),
    ).where(F.col(C.GAIN).isNotNull())
    if policies.attribution == "all":
        every = claims.drop(_LIST).select("*", F.explode("_of_any").alias(_LIST))
        return every.withColumn(_HAS_ITEM, F.array_contains("_with_item", F.col(_LIST)))
    found = claims.withColumn(_LIST, F.coalesce("_with_item", "_of_any"))
    return found.withColumn(_HAS_ITEM, F.col("_with_item").isNotNull()).where(F.col(_LIST).isNotNull())
