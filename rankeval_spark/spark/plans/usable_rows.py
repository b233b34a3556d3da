"""Usable rows of the inputs: which rows fail a check, how they are dropped, and how they are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.checks import INVALID_ORDER, ZERO_RANK, ZERO_RANK_EXPECTED, ZERO_RANK_FIX
from rankeval_spark.engine.failures import input_words, policy_words
from rankeval_spark.engine.planning import order_column
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.inputs.input_columns import SAMPLE_BUCKETS


def has_keys(keys: tuple[str, ...]) -> Column:
    """Return True if no key column is NULL."""
    return reduce(and_, (F.col(key).isNotNull() for key in keys))


def is_finite(name: str) -> Column:
    """Return True if a number is neither NULL nor NaN nor infinite; never NULL itself."""
    value = F.col(name).cast("double")
    return value.isNotNull() & ~F.isnan(value) & (F.abs(value) != F.lit(float("inf")))


def is_finite_vector(vector: Column) -> Column:
    """Return True if no number of a vector is NULL, NaN or infinite; NULL where there is no vector.

    Without a function for each number, which Spark calls 1 microsecond at a time. An array with NULL contains a value,
    or it is unknown whether it does; and NaN is above infinity.
    """
    has_all = F.coalesce(~F.array_contains(vector, F.lit(float("nan"))), F.lit(False))
    is_within = (F.array_max(vector) < float("inf")) & (F.array_min(vector) > float("-inf"))
    return F.when(vector.isNotNull(), has_all & F.coalesce(is_within, F.lit(True)))


def has_valid_order(recommendations: DataFrame) -> Column:
    """Return True if a row has a place in its list: a finite score, or a rank of at least 1 where there is no score."""
    if order_column(recommendations.columns) == C.SCORE:
        return is_finite(C.SCORE)
    return F.col(C.RANK).isNotNull() & (F.col(C.RANK) >= 1)


def keep_models(recommendations: DataFrame, *, names: Sequence[str] | None) -> DataFrame:
    """Keep the rows of the named models, and those without a model, which are counted; all where none are named."""
    if names is None:
        return recommendations
    return recommendations.where(F.col(C.MODEL_ID).isin(*names) | F.col(C.MODEL_ID).isNull())


def has_zero_rank(recommendations: DataFrame) -> Column:
    """Return True if a row has rank 0 and its list is ordered by rank: the log counts from 0; never NULL itself."""
    if order_column(recommendations.columns) == C.SCORE:
        return F.lit(False)
    return F.coalesce(F.col(C.RANK) == 0, F.lit(False))


def keep_usable_recommendations(recommendations: DataFrame, *, invalid_scores: str) -> DataFrame:
    """Drop rows with a NULL key and, with ``invalid_scores='drop'``, rows whose place in the list is unknown.

    With ``invalid_scores='error'`` such a row fails the job when it runs.
    """
    is_valid = has_valid_order(recommendations)
    if invalid_scores == "error":
        is_valid = _or_fail(is_valid, row_kinds.INVALID_SCORES, INVALID_ORDER)
    return recommendations.where(has_keys(schemas.RECOMMENDATIONS.key)).where(is_valid)


def or_fail_at_invalid_scores(recommendations: DataFrame, *, invalid_scores: str) -> DataFrame:
    """Keep all rows; with ``invalid_scores='error'`` one whose place in its list is unknown fails the job."""
    if invalid_scores != "error":
        return recommendations
    is_fine = ~has_keys(schemas.RECOMMENDATIONS.key) | has_valid_order(recommendations)
    return recommendations.where(_or_fail(is_fine, row_kinds.INVALID_SCORES, INVALID_ORDER))


def keep_known(recommendations: DataFrame, *, catalogue: DataFrame, is_small: bool) -> DataFrame:
    """Keep the rows whose item the catalogue has, however often it occurs there.

    `catalogue`: a frame whose ``item_id`` are all items. `is_small`: whether it is known to fit into the memory of
    every task. It is then sent there, and no row is moved to its item; how another one is joined is left to Spark.
    """
    known = catalogue.select(*schemas.ITEMS.key).where(has_keys(schemas.ITEMS.key))
    return recommendations.join(F.broadcast(known) if is_small else known.distinct(), on=[C.ITEM_ID], how="left_semi")


def with_score_precision(recommendations: DataFrame, *, precision: str) -> DataFrame:
    """Round the scores to single precision on request, so that scores that differ by less than that are ties."""
    if precision == "double" or C.SCORE not in recommendations.columns:
        return recommendations
    return recommendations.withColumn(C.SCORE, F.col(C.SCORE).cast("float").cast("double"))


def user_hash() -> Column:
    """Hash a user's id, as text in UTF-8 whatever its type: the user's draws and group depend on it alone."""
    return F.xxhash64(F.col(C.USER_ID).cast("string"))


def keep_sample(frame: DataFrame, *, share: float) -> DataFrame:
    """Keep the rows of a share of the users, chosen by a hash of the user id: the same users in every input and run."""
    if share >= 1:
        return frame
    bucket = F.pmod(user_hash(), F.lit(SAMPLE_BUCKETS))
    return frame.where(bucket < round(share * SAMPLE_BUCKETS))


def keep_usable_held_out(held_out: DataFrame) -> DataFrame:
    """Drop judgements with a NULL key or a gain that is NULL, NaN or infinite."""
    return held_out.where(has_keys(schemas.HELD_OUT.key_in(held_out.columns))).where(is_finite(C.GAIN))


def input_failure(name: str, what: Column, *, expected: str, fix: str) -> Column:
    """Fail the job, when it runs, because no policy can use an input."""
    before, after = input_words(name, expected=expected, fix=fix)
    return F.raise_error(F.concat(F.lit(before), what, F.lit(after)))


def quoted(key: Column) -> Column:
    """Write a key into a message, on one line."""
    return F.concat(F.lit("'"), F.regexp_replace(key.cast("string"), r"\s", " "), F.lit("'"))


def _or_fail(condition: Column, policy: str, what: str) -> Column:
    """Fail the job, when it runs, because a policy of 'error' met its case."""
    failure = F.raise_error(F.lit(what.join(policy_words(policy))))
    return F.when(condition, True).otherwise(failure.cast("boolean"))


def flag_recommendations(recommendations: DataFrame) -> dict[str, Column]:
    """Return, by check, which rows of the log do not pass it."""
    has_key, is_zero = has_keys(schemas.RECOMMENDATIONS.key), has_zero_rank(recommendations)
    return {
        row_kinds.NULL_KEYS: ~has_key,
        row_kinds.ZERO_RANKS: has_key & is_zero,
        row_kinds.INVALID_SCORES: has_key & ~is_zero & ~has_valid_order(recommendations),
    }


def flag_held_out(held_out: DataFrame) -> dict[str, Column]:
    """Return, by check, which judgements do not pass it."""
    has_key, is_number = has_keys(schemas.HELD_OUT.key_in(held_out.columns)), is_finite(C.GAIN)
    gain = F.col(C.GAIN)
    is_weight = is_finite(C.WEIGHT) & (F.col(C.WEIGHT).cast("double") > 0)
    return {
        row_kinds.NULL_KEYS: ~has_key,
        row_kinds.INVALID_GAINS: has_key & ~is_number,
        row_kinds.NEGATIVE_GAINS: has_key & is_number & (gain < 0),
        row_kinds.LOW_GAINS: has_key & (gain > 0) & (gain < RELEVANT),
        **({row_kinds.INVALID_VALUES: has_key & ~is_finite(C.VALUE)} if C.VALUE in held_out.columns else {}),
        **({row_kinds.INVALID_WEIGHTS: has_key & ~is_weight} if C.WEIGHT in held_out.columns else {}),
    }


def flag_train(*, since: date | None = None) -> dict[str, Column]:
    """Return, by check, which training interactions do not pass it; none may be of the day ``since`` or later."""
    rules = flag_keys(schemas.TRAIN.key)
    if since is not None:
        rules[row_kinds.TRAIN_AFTER_CUT] = has_keys(schemas.TRAIN.key) & _is_since(since)
    return rules


def _is_since(day: date) -> Column:
    """Return True if an interaction is of a day (UTC) or later; as a number, for a literal has the session's zone."""
    midnight = datetime.combine(day, time(), tzinfo=UTC)
    return F.coalesce(F.col(C.INTERACTED_AT) >= F.timestamp_seconds(F.lit(int(midnight.timestamp()))), F.lit(False))


def flag_items(*, unreadable: str | None = None) -> dict[str, Column]:
    """Return, by check, which rows of the catalogue do not pass it; parameter of ``input_checks.to_item_row_facts``."""
    has_key = has_keys(schemas.ITEMS.key)
    is_lost = F.lit(False) if unreadable is None else F.coalesce(unreadable, F.lit(False))
    is_invalid = is_lost | ~F.coalesce(is_finite_vector(F.col(C.VECTOR)), F.lit(True))
    return {row_kinds.NULL_KEYS: ~has_key, row_kinds.INVALID_FACTS: has_key & is_invalid}


def flag_keys(keys: tuple[str, ...]) -> dict[str, Column]:
    """Return, as a check, which rows have a NULL key."""
    return {row_kinds.NULL_KEYS: ~has_keys(keys)}


def to_refused(frame: DataFrame, name: str, rules: Mapping[str, Column], *, row: str) -> DataFrame:
    """Return one row per (row, check that it does not pass): ``input``, ``check``, ``row``.

    Of the checks :data:`row_kinds.REFUSALS`.

    `row`: column that holds the row unchanged from the table.
    """
    refused = [F.when(flag, F.lit(check)) for check, flag in rules.items() if check in row_kinds.REFUSALS]
    return frame.select(
        F.lit(name).alias("input"),
        F.explode(F.array_compact(F.array(*refused))).alias("check"),
        F.col(row).alias("row"),
    )


def or_fail_at_zero_rank(recommendations: DataFrame, *, has_zero_rank: Column) -> DataFrame:
    """Fail the job at a rank of 0 that orders a list, see :func:`usable_rows.has_zero_rank`; else nothing changes."""
    failure = input_failure(
        row_kinds.NAMES[row_kinds.LOG], F.lit(ZERO_RANK), expected=ZERO_RANK_EXPECTED, fix=ZERO_RANK_FIX
    )
    return recommendations.where(F.when(has_zero_rank, failure.cast("boolean")).otherwise(True))


def with_kind(frame: DataFrame, *, kind: int, rules: Mapping[str, Column]) -> DataFrame:
    """Write a number for each row into :data:`row_kinds.KIND`: ``kind``, or the check that makes it unusable.

    Unusable rows are counted by the workers. Each gets a random user id, so that they spread over partitions.

    `rules`: conditions that rows do not pass, by check; those of :data:`row_kinds.UNUSABLE_KINDS` are looked at.
    """
    number = F.lit(kind)
    for place, (of, check) in enumerate(row_kinds.UNUSABLE_KINDS):
        if of == kind and check in rules:
            number = F.when(rules[check], F.lit(row_kinds.FIRST_UNUSABLE + place)).otherwise(number)
    spread_user = F.xxhash64(*frame.columns).cast(frame.schema[C.USER_ID].dataType)
    return frame.withColumn(row_kinds.KIND, number.cast("tinyint")).withColumn(
        C.USER_ID, F.when(F.col(row_kinds.KIND) < row_kinds.FIRST_UNUSABLE, F.col(C.USER_ID)).otherwise(spread_user)
    )


def to_row_counts(inputs: Mapping[str, tuple[DataFrame, Mapping[str, Column]]]) -> DataFrame:
    """Look whether inputs have a row that can be used: one row, :data:`row_kinds.COUNTS`.

    An input is read up to its first usable row. Why rows are unusable is counted in the first
    :data:`row_kinds.MOST_COUNTED` alone, because to count all would cost as much as to move them.

    `inputs`: frame and conditions that rows do not pass, by name of the input.
    """
    parts = (
        part.select(F.lit(name).alias("input"), _failed(rules).alias("check"))
        for name, (frame, rules) in inputs.items()
        for part in (frame.where(_failed(rules).isNull()).limit(1), _first_unusable(frame, rules))
    )
    counts = reduce(DataFrame.union, parts).groupBy("input", "check").agg(F.count("*").alias("count"))
    return counts.agg(F.collect_list(F.struct("input", "check", "count")).alias(row_kinds.COUNTS))


def _first_unusable(frame: DataFrame, rules: Mapping[str, Column]) -> DataFrame:
    return frame.limit(row_kinds.MOST_COUNTED).where(_failed(rules).isNotNull())


def _failed(rules: Mapping[str, Column]) -> Column:
    """Return the check that makes a row unusable; NULL for one that can be used."""
    flagged = [F.when(flag, F.lit(check)) for check, flag in rules.items() if check in row_kinds.UNUSABLE]
    return F.coalesce(*flagged)
