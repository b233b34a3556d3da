"""What is wrong with single rows of the inputs: conditions that the checks count, and the rows that fulfil them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.scoring.scorer import RELEVANT
from rankeval_spark.spark.rows.usable_rows import (
    has_keys,
    has_valid_order,
    has_zero_rank,
    is_finite,
    is_finite_vector,
)


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
    """Make one row per (row, check that it does not pass): ``input``, ``check``, ``row``.

    Of the checks :data:`row_kinds.REFUSALS`.

    Parameters
    ----------
    row : str
        Column that holds the row unchanged from the table.
    """
    refused = [F.when(flag, F.lit(check)) for check, flag in rules.items() if check in row_kinds.REFUSALS]
    return frame.select(
        F.lit(name).alias("input"),
        F.explode(F.array_compact(F.array(*refused))).alias("check"),
        F.col(row).alias("row"),
    )
