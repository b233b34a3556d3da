"""Keep the rows that can be used: keys that are not NULL, scores and gains that are finite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.checks import INVALID_ORDER
from rankeval_spark.engine.failures import input_words, policy_words
from rankeval_spark.engine.planning import order_column

SAMPLE_BUCKETS = 1_000_000


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

    Parameters
    ----------
    catalogue : DataFrame
        A frame whose ``item_id`` are all items.
    is_small : bool
        Whether it is known to fit into the memory of every task. It is then sent there, and no row is moved to its
        item; how another one is joined is left to Spark.
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
