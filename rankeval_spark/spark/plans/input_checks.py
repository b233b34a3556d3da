"""Count what is wrong with the inputs: one aggregate pass each, in plain Spark expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.row_kinds import UNMATCHED_LISTS
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.result_rows.check_rows import (
    ALIKE_VALUES,
    DUPLICATES,
    HELD_OUT,
    ITEMS,
    RECOMMENDATIONS,
    ROWS,
    SEEN_IN_TRAIN,
    SEGMENTS,
    TRAIN,
    UNKNOWN_ITEMS,
    UNKNOWN_ROWS,
    UNMATCHED_ITEMS,
    VECTOR_LENGTHS,
    ZERO_RELEVANT,
)
from rankeval_spark.spark.plans import item_facts, usable_rows
from rankeval_spark.spark.plans.moved_rows import map_in_arrow
from rankeval_spark.spark.plans.usable_rows import has_keys, is_finite_vector
from rankeval_spark.statistics.exact_sums import exact_sums

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    import pyarrow as pa

N_COPIES: Final = "_n_copies"
"""Rows of the held-out table that a judgement has."""


def to_recommendation_facts(recommendations: DataFrame) -> DataFrame:
    """Count rows, NULL keys and rows whose place in the list is unknown; one pass, no shuffle of the rows."""
    rules = usable_rows.flag_recommendations(recommendations)
    return _row_facts(recommendations, RECOMMENDATIONS, rules, key=_key_text(schemas.RECOMMENDATIONS.key))


def to_held_out_facts(held_out: DataFrame) -> DataFrame:
    """Count rows, NULL keys and gains that are no number, below 0, or too low to be relevant; no shuffle of the rows.

    Rows with a column ``value`` or ``weight`` are also looked at for values that are no number, and weights that are
    not above 0.
    """
    key = _key_text(schemas.HELD_OUT.key_in(held_out.columns))
    return _row_facts(held_out, HELD_OUT, usable_rows.flag_held_out(held_out), key=key)


def to_train_facts(train: DataFrame, *, evaluation_date: date | None = None) -> DataFrame:
    """Count rows, NULL keys and interactions of the evaluation date or later; one pass, no shuffle of the rows.

    `evaluation_date`: where it is left out, or the rows have no column ``interacted_at``, nothing is said about it.
    """
    has_days = evaluation_date is not None and C.INTERACTED_AT in train.columns
    rules = usable_rows.flag_train(since=evaluation_date if has_days else None)
    return _row_facts(train, TRAIN, rules, key=_key_text(schemas.TRAIN.key))


def to_segment_facts(segments: DataFrame) -> DataFrame:
    """Count the rows of the segments, and those without a user id."""
    return _row_facts(segments, SEGMENTS, usable_rows.flag_keys(C.SEGMENT_KEY), key=_key_text(C.SEGMENT_KEY))


def to_alike_facts(segments: DataFrame, *, names: Sequence[str]) -> DataFrame:
    """Collect the values of these segments, for the check of those that are alike."""
    each = F.array(
        *(F.struct(F.lit(name).alias("segment"), F.col(C.quoted_name(name)).alias("value")) for name in names)
    )
    values = segments.where(has_keys(C.SEGMENT_KEY)).select(F.inline(each)).where(F.col("value").isNotNull()).distinct()
    return _in_parts(values, SEGMENTS, ALIKE_VALUES)


def to_item_row_facts(items: DataFrame, *, unreadable: str | None = None) -> DataFrame:
    """Count rows, NULL keys, items that occur twice and items with facts that cannot be used.

    `unreadable`: name of the column that is true where a cell of the row could not be read; None where every cell
    could.
    """
    once = items.where(has_keys(schemas.ITEMS.key)).groupBy(C.ITEM_ID).agg(F.count("*").alias("_n_rows"))
    more, item = F.col("_n_rows") - 1, F.col(C.ITEM_ID).cast("string")
    repeated = once.agg(_fact(ITEMS, DUPLICATES, F.sum(more), F.sum("_n_rows"), F.when(more > 0, item)))
    rules = usable_rows.flag_items(unreadable=unreadable)
    return _row_facts(items, ITEMS, rules, key=_key_text(schemas.ITEMS.key)).unionByName(_stacked(repeated))


def to_vector_facts(items: DataFrame) -> DataFrame:
    """Count the items by the length of their vector, for the check that all have one length.

    As in the plan of the lists, a vector some of whose numbers are no numbers is unknown and has no length.
    """
    named = items.where(has_keys(schemas.ITEMS.key)).where(is_finite_vector(F.col(C.VECTOR)))
    first = F.min(F.col(C.ITEM_ID).cast("string"))
    lengths = named.groupBy(F.size(C.VECTOR).alias("length")).agg(F.count("*").alias("n_items"), first.alias("item"))
    return _in_parts(lengths, ITEMS, VECTOR_LENGTHS)


def to_judgement_facts(usable_held_out: DataFrame, *, duplicates: str) -> DataFrame:
    """Count judgements that occur twice and users without a relevant one."""
    policy = "max" if duplicates == "error" else duplicates  # counted here, refused in the plan of the lists
    users = (
        to_judgements(usable_held_out, duplicates=policy)
        .groupBy(C.USER_ID)
        .agg(F.max(C.GAIN).alias("_best"), F.sum(N_COPIES).alias("_n_rows"), F.count("*").alias("_n_pairs"))
    )
    user = F.col(C.USER_ID).cast("string")
    n_copies = F.sum(F.col("_n_rows") - F.col("_n_pairs"))
    repeated, no_relevant = F.col("_n_rows") > F.col("_n_pairs"), F.col("_best") < RELEVANT
    facts = users.agg(
        _fact(HELD_OUT, DUPLICATES, n_copies, F.sum("_n_rows"), F.when(repeated, user)),
        _flagged(HELD_OUT, ZERO_RELEVANT, no_relevant, user),
    )
    return _stacked(facts)


def to_join_facts(usable_held_out: DataFrame, *, usable_recommendations: DataFrame) -> DataFrame:
    """Count judgements whose item is in no list at all: a sign of ids that do not match."""
    listed = _to_listed(usable_recommendations).withColumn("_is_listed", F.lit(True))
    joined = usable_held_out.join(listed, on=[C.ITEM_ID], how="left")
    is_unmatched = F.col("_is_listed").isNull()
    item = F.col(C.ITEM_ID).cast("string")
    facts = joined.agg(_flagged(HELD_OUT, UNMATCHED_ITEMS, is_unmatched, item))
    return _stacked(facts)


def to_unmatched_list_facts(usable_held_out: DataFrame, *, usable_recommendations: DataFrame) -> DataFrame:
    """Count judgements of a list that the log does not have; both frames name lists."""
    key = (C.USER_ID, C.LIST_ID)
    listed = usable_recommendations.select(*key).distinct().withColumn("_is_listed", F.lit(True))
    joined = usable_held_out.join(listed, on=[*key], how="left")
    return _stacked(joined.agg(_flagged(HELD_OUT, UNMATCHED_LISTS, F.col("_is_listed").isNull(), _key_text(key))))


def to_unknown_item_facts(items: DataFrame, *, usable_recommendations: DataFrame) -> DataFrame:
    """Count the different items that are recommended and that the catalogue does not have.

    Different items, not rows: the aggregate that finds them is that of :func:`to_join_facts`, which Spark then makes
    once for both.
    """
    known = items.select(C.ITEM_ID).distinct().withColumn("_is_known", F.lit(True))
    joined = _to_listed(usable_recommendations).join(known, on=[C.ITEM_ID], how="left")
    is_unknown = F.col("_is_known").isNull()
    item = F.col(C.ITEM_ID).cast("string")
    of = RECOMMENDATIONS
    return _stacked(joined.agg(_flagged(of, UNKNOWN_ITEMS, is_unknown, item)))


def to_seen_facts(usable_recommendations: DataFrame, *, train: DataFrame) -> DataFrame:
    """Count the recommendations whose item the user has in the training data, in the whole log."""
    seen = item_facts.to_owned(train).withColumn("_is_seen", F.lit(True))
    rows = usable_recommendations.select(*schemas.RECOMMENDATIONS.key).join(seen, on=[C.USER_ID, C.ITEM_ID], how="left")
    is_seen, key = F.col("_is_seen").isNotNull(), _key_text(schemas.RECOMMENDATIONS.key)
    of = RECOMMENDATIONS
    return _stacked(rows.agg(_flagged(of, SEEN_IN_TRAIN, is_seen, key)))


def to_unknown_row_facts(catalogue: DataFrame, *, usable_recommendations: DataFrame) -> DataFrame:
    """Count the recommendations of items that the catalogue does not have: rows, not different items."""
    listed = usable_recommendations.groupBy(C.ITEM_ID).agg(F.count("*").alias("_n_rows"))
    known = catalogue.select(C.ITEM_ID).distinct().withColumn("_is_known", F.lit(True))
    is_unknown, n_rows = F.col("_is_known").isNull(), F.col("_n_rows")
    item, of = F.col(C.ITEM_ID).cast("string"), RECOMMENDATIONS
    joined = listed.join(known, on=[C.ITEM_ID], how="left")
    n_unknown = F.sum(F.when(is_unknown, n_rows))
    return _stacked(joined.agg(_fact(of, UNKNOWN_ROWS, n_unknown, F.sum(n_rows), F.when(is_unknown, item))))


def _to_listed(usable_recommendations: DataFrame) -> DataFrame:
    return usable_recommendations.select(C.ITEM_ID).distinct()


def union(*facts: DataFrame) -> DataFrame:
    """Append facts to one another."""
    return reduce(DataFrame.unionByName, facts)


def _row_facts(frame: DataFrame, name: str, rules: Mapping[str, Column], *, key: Column) -> DataFrame:
    rows = _struct(name, ROWS, F.count("*"), F.count("*"), _no_keys())
    return _stacked(
        frame.agg(
            rows,
            *(_flagged(name, check, flag, key) for check, flag in rules.items()),
        )
    )


def _in_parts(rows: DataFrame, name: str, check: str) -> DataFrame:
    """Collect a few rows as parts of a fact, see :func:`check_rows.joined_fact`."""
    return _stacked(rows.agg(_parts(rows.columns, name, check)))


def _parts(columns: Sequence[str], name: str, check: str) -> Column:
    parts = F.collect_list(F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}))
    return _struct(name, check, F.lit(0), F.lit(0), parts)


def _flagged(name: str, check: str, flag: Column, key: Column) -> Column:
    """Count the rows with a flag, out of all rows."""
    return _fact(name, check, F.count_if(flag), F.count("*"), F.when(flag, key))


def _fact(name: str, check: str, count: Column, total: Column, concerned: Column) -> Column:
    """Return one struct of FACTS.

    The samples are the first and the last of the keys ``concerned``, NULL in other rows, whatever the partitioning.
    """
    return _struct(name, check, count, total, _samples(F.min(concerned), F.max(concerned)))


def _samples(first: Column, last: Column) -> Column:
    return F.array_compact(F.array_distinct(F.array(first, last)))


def _struct(name: str, check: str, count: Column, total: Column, sample_keys: Column) -> Column:
    return F.struct(
        F.lit(name).alias("input"),
        F.lit(check).alias("check"),
        F.coalesce(count.cast("bigint"), F.lit(0)).alias("count"),
        F.coalesce(total.cast("bigint"), F.lit(0)).alias("total"),
        F.coalesce(sample_keys, _no_keys()).alias("sample_keys"),
    ).alias(check)


def _stacked(facts: DataFrame) -> DataFrame:
    """Turn the structs of one row into rows."""
    return facts.select(F.inline(F.array(*facts.columns)))


def _key_text(keys: tuple[str, ...]) -> Column:
    return F.concat_ws(" ", *(F.coalesce(F.col(key).cast("string"), F.lit("NULL")) for key in keys))


def _no_keys() -> Column:
    return F.array().cast("array<string>")


def to_judgements(held_out: DataFrame, *, duplicates: str) -> DataFrame:
    """Return one row per judgement with its gain and :data:`N_COPIES`.

    `held_out`: usable rows of ``schemas.HELD_OUT``. `duplicates`: gain of a pair that occurs twice: the largest, the
    sum, or that of the newest ``interacted_at`` (the largest of several; a NULL is the oldest).
    """
    key = schemas.HELD_OUT.key_in(held_out.columns)
    when = [C.INTERACTED_AT] if duplicates == "last" else []
    judged = (
        held_out.select(*key, C.GAIN, *when)
        .repartition(C.USER_ID)
        .groupBy(*key)
        .agg(
            _gain(duplicates).alias(C.GAIN),
            F.count("*").cast("int").alias(N_COPIES),
        )
    )
    if duplicates != "sum":
        return judged
    return map_in_arrow(judged, _sum_gains, {**dict(judged.dtypes), C.GAIN: "double"})


def _gain(duplicates: str) -> Column:
    if duplicates == "last":
        return F.max(F.struct(C.INTERACTED_AT, C.GAIN))[C.GAIN]
    return F.collect_list(C.GAIN) if duplicates == "sum" else F.max(C.GAIN)


def _sum_gains(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replace the gains of each row by their sum."""
    for batch in batches:
        gains = batch.column(C.GAIN)
        sums = exact_sums(to_numpy(gains.flatten()), to_numpy(pc.list_value_length(gains)))
        yield batch.set_column(batch.schema.get_field_index(C.GAIN), C.GAIN, to_arrow(sums))
