"""Count what is wrong with the inputs: one aggregate pass each, in plain Spark expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.results import N_LISTED
from rankeval_spark.engine.scoring import RELEVANT
from rankeval_spark.result_rows import check_rows
from rankeval_spark.stages import describe, flags
from rankeval_spark.stages.clean import (
    HELD_OUT_KEYS,
    ITEM_KEYS,
    RECOMMENDATION_KEYS,
    SEGMENT_KEYS,
    TRAIN_KEYS,
    has_keys,
    is_finite_vector,
)
from rankeval_spark.stages.judgements import N_COPIES, to_judgements
from rankeval_spark.stages.population import has_judgements, has_list
from rankeval_spark.stages.segment import quoted_name

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.config import Checks

RECOMMENDATIONS: Final = check_rows.RECOMMENDATIONS
HELD_OUT: Final = check_rows.HELD_OUT
SEGMENTS: Final = check_rows.SEGMENTS
TRAIN: Final = check_rows.TRAIN
ITEMS: Final = check_rows.ITEMS

ROWS: Final = check_rows.ROWS
"""The check that only counts the rows of an input; it has no thresholds."""

EXTRA_COLUMNS: Final = check_rows.EXTRA_COLUMNS
"""The check of columns that an input has and nothing reads."""

DUPLICATES: Final = check_rows.DUPLICATES
"""The check of rows that repeat another; in the catalogue none is tolerated, because either would be a guess."""

VECTOR_LENGTHS: Final = check_rows.VECTOR_LENGTHS
"""The check of items whose vector has another length than most, where a measure reads vectors; none is tolerated, for
there is no angle between them."""

UNMATCHED_ITEMS: Final = check_rows.UNMATCHED_ITEMS
"""The check of the join: judgements whose item is in no list."""

SEEN_IN_TRAIN: Final = check_rows.SEEN_IN_TRAIN
"""The check of recommended items that the user has in the training data; it costs a join, so it is made on demand."""

UNKNOWN_ROWS: Final = check_rows.UNKNOWN_ROWS
"""The check of recommendations of items that the catalogue does not have, made where these are dropped."""

MISSING_USERS: Final = check_rows.MISSING_USERS
"""The check of judged users without a list, of the model that misses most; its one sample key is that model."""

ABSENT_BASELINE: Final = check_rows.ABSENT_BASELINE
"""The check that the model that others are compared with has lists."""

OF_NIGHTS: Final = check_rows.OF_NIGHTS
"""Checks that depend on other published nights, not on the inputs and the config alone."""

_MOST_ALIKE: Final = 3
"""Values that are alike and that the check of them names."""

_MOST_LENGTHS: Final = 3
"""Lengths of vectors that the check of them names."""

FACTS: Final = check_rows.FACTS

FACT_TYPES: Final = "input string, check string, count bigint, total bigint, sample_keys array<string>"
"""Columns of facts, as Spark writes their types."""


def to_recommendation_facts(recommendations: DataFrame) -> DataFrame:
    """Count rows, NULL keys and rows whose place in the list is unknown; one pass, no shuffle of the rows."""
    rules = flags.of_recommendations(recommendations)
    return _row_facts(recommendations, RECOMMENDATIONS, rules, key=_key_text(RECOMMENDATION_KEYS))


def to_held_out_facts(held_out: DataFrame) -> DataFrame:
    """Count rows, NULL keys and gains that are no number, below 0, or too low to be relevant; no shuffle of the rows.

    Rows with a column ``value`` are also looked at for values that are no number.
    """
    return _row_facts(held_out, HELD_OUT, flags.of_held_out(held_out), key=_key_text(HELD_OUT_KEYS))


def to_train_facts(train: DataFrame, *, evaluation_date: date | None = None) -> DataFrame:
    """Count rows, NULL keys and interactions of the evaluation date or later; one pass, no shuffle of the rows.

    Parameters
    ----------
    evaluation_date : date, optional
        Where it is left out, or the rows have no column ``interacted_at``, nothing is said about it.
    """
    has_days = evaluation_date is not None and C.INTERACTED_AT in train.columns
    rules = flags.of_train(since=evaluation_date if has_days else None)
    return _row_facts(train, TRAIN, rules, key=_key_text(TRAIN_KEYS))


def to_segment_facts(segments: DataFrame) -> DataFrame:
    """Count the rows of the segments, and those without a user id."""
    return _row_facts(segments, SEGMENTS, flags.of_keys(SEGMENT_KEYS), key=_key_text(SEGMENT_KEYS))


def to_alike_facts(segments: DataFrame, *, names: Sequence[str]) -> DataFrame:
    """Count the values of these segments that differ from another one of it by case or surrounding blanks only."""
    each = F.array(
        *(F.struct(F.lit(name).alias("_segment"), F.col(quoted_name(name)).alias("_value")) for name in names)
    )
    values = segments.where(has_keys(SEGMENT_KEYS)).select(F.inline(each)).where(F.col("_value").isNotNull()).distinct()
    folded = F.lower(F.regexp_replace("_value", r"(?U)^\s+|\s+$", ""))
    groups = values.groupBy("_segment", folded).agg(F.array_sort(F.collect_list("_value")).alias("_values"))
    n_values, is_alike = F.size("_values"), F.size("_values") > 1
    shown = F.transform(F.slice("_values", 1, _MOST_ALIKE), lambda value: F.concat(F.lit("'"), value, F.lit("'")))
    text = F.concat("_segment", F.lit(": "), F.array_join(shown, ", "))
    n_alike = F.sum(F.when(is_alike, n_values))
    return _stacked(groups.agg(_fact(SEGMENTS, "alike_values", n_alike, F.sum(n_values), is_alike, text)))


def to_item_facts(items: DataFrame, *, unreadable: str | None = None) -> DataFrame:
    """Count rows, NULL keys, items that occur twice and items with facts that cannot be used.

    Parameters
    ----------
    unreadable : str, optional
        Name of the column that is true where a cell of the row could not be read; None where every cell could.
    """
    once = items.where(has_keys(ITEM_KEYS)).groupBy(C.ITEM_ID).agg(F.count("*").alias("_n_rows"))
    more, item = F.col("_n_rows") - 1, F.col(C.ITEM_ID).cast("string")
    repeated = once.agg(_fact(ITEMS, DUPLICATES, F.sum(more), F.sum("_n_rows"), more > 0, item))
    rules = flags.of_items(unreadable=unreadable)
    return _row_facts(items, ITEMS, rules, key=_key_text(ITEM_KEYS)).unionByName(_stacked(repeated))


def to_vector_facts(items: DataFrame) -> DataFrame:
    """Count the items whose vector has another length than most, and name one item of each of the commonest lengths.

    As in the plan of the lists, a vector some of whose numbers are no numbers is unknown and has no length.
    """
    named = items.where(has_keys(ITEM_KEYS)).where(is_finite_vector(F.col(C.VECTOR)))
    lengths = named.groupBy(F.size(C.VECTOR).alias("_length")).agg(
        F.count("*").alias("_n_items"), F.min(F.col(C.ITEM_ID).cast("string")).alias("_item")
    )
    most_first = F.array_sort(F.collect_list(F.struct(-F.col("_n_items"), "_length", "_item")))
    shown = F.transform(F.slice(most_first, 1, _MOST_LENGTHS), lambda one: _length_text(one["_item"], one["_length"]))
    n_others = F.sum("_n_items") - F.max("_n_items")
    keys = F.when(F.count("*") > 1, shown)
    return _stacked(lengths.agg(_struct(ITEMS, VECTOR_LENGTHS, n_others, F.sum("_n_items"), keys)))


def _length_text(item: Column, length: Column) -> Column:
    return F.concat(item, F.lit(": "), length, F.when(length == 1, " number").otherwise(" numbers"))


def to_judgement_facts(usable_held_out: DataFrame, *, duplicates: str) -> DataFrame:
    """Count judgements that occur twice and users without a relevant one."""
    policy = "max" if duplicates == "error" else duplicates  # counted here, refused in the plan of the lists
    users = (
        to_judgements(usable_held_out, duplicates=policy)
        .groupBy(C.USER_ID)
        .agg(F.max(C.GAIN).alias("_best"), F.sum(N_COPIES).alias("_n_rows"), F.count("*").alias("_n_pairs"))
    )
    user = F.col(C.USER_ID).cast("string")
    repeated, no_relevant = F.col("_n_rows") > F.col("_n_pairs"), F.col("_best") < RELEVANT
    facts = users.agg(
        _fact(HELD_OUT, DUPLICATES, F.sum(F.col("_n_rows") - F.col("_n_pairs")), F.sum("_n_rows"), repeated, user),
        _fact(HELD_OUT, "zero_relevant", F.count_if(no_relevant), F.count("*"), no_relevant, user),
    )
    return _stacked(facts)


def to_join_facts(usable_held_out: DataFrame, *, usable_recommendations: DataFrame) -> DataFrame:
    """Count judgements whose item is in no list at all: a sign of ids that do not match."""
    listed = _to_listed(usable_recommendations).withColumn("_is_listed", F.lit(True))
    joined = usable_held_out.join(listed, on=[C.ITEM_ID], how="left")
    is_unmatched = F.col("_is_listed").isNull()
    item = F.col(C.ITEM_ID).cast("string")
    facts = joined.agg(_fact(HELD_OUT, UNMATCHED_ITEMS, F.count_if(is_unmatched), F.count("*"), is_unmatched, item))
    return _stacked(facts)


def to_unmatched_facts(used: DataFrame) -> DataFrame:
    """Make the fact of :func:`to_join_facts` of items and how they are used, as the engine counts it.

    Parameters
    ----------
    used : DataFrame
        ``item_id``, ``n_judged`` (judgements of it) and ``is_listed``; an item may have several rows.
    """
    items = used.groupBy(C.ITEM_ID).agg(F.sum("n_judged").alias("_n"), F.bool_or("is_listed").alias("_is_listed"))
    is_unmatched = ~F.col("_is_listed")
    n_unmatched = F.sum(F.when(is_unmatched, F.col("_n")))
    item = F.col(C.ITEM_ID).cast("string")
    return _stacked(items.agg(_fact(HELD_OUT, UNMATCHED_ITEMS, n_unmatched, F.sum("_n"), is_unmatched, item)))


def to_catalogue_facts(items: DataFrame, *, usable_recommendations: DataFrame) -> DataFrame:
    """Count the different items that are recommended and that the catalogue does not have.

    Different items, not rows: the aggregate that finds them is that of :func:`to_join_facts`, which Spark then makes
    once for both.
    """
    known = items.select(C.ITEM_ID).distinct().withColumn("_is_known", F.lit(True))
    joined = _to_listed(usable_recommendations).join(known, on=[C.ITEM_ID], how="left")
    is_unknown = F.col("_is_known").isNull()
    item = F.col(C.ITEM_ID).cast("string")
    of = RECOMMENDATIONS
    return _stacked(joined.agg(_fact(of, "unknown_items", F.count_if(is_unknown), F.count("*"), is_unknown, item)))


def to_seen_facts(usable_recommendations: DataFrame, *, train: DataFrame) -> DataFrame:
    """Count the recommendations whose item the user has in the training data, in the whole log."""
    seen = describe.to_owned(train).withColumn("_is_seen", F.lit(True))
    rows = usable_recommendations.select(*RECOMMENDATION_KEYS).join(seen, on=[C.USER_ID, C.ITEM_ID], how="left")
    is_seen, key = F.col("_is_seen").isNotNull(), _key_text(RECOMMENDATION_KEYS)
    of = RECOMMENDATIONS
    return _stacked(rows.agg(_fact(of, SEEN_IN_TRAIN, F.count_if(is_seen), F.count("*"), is_seen, key)))


def to_unknown_row_facts(catalogue: DataFrame, *, usable_recommendations: DataFrame) -> DataFrame:
    """Count the recommendations of items that the catalogue does not have: rows, not different items."""
    listed = usable_recommendations.groupBy(C.ITEM_ID).agg(F.count("*").alias("_n_rows"))
    known = catalogue.select(C.ITEM_ID).distinct().withColumn("_is_known", F.lit(True))
    is_unknown, n_rows = F.col("_is_known").isNull(), F.col("_n_rows")
    item, of = F.col(C.ITEM_ID).cast("string"), RECOMMENDATIONS
    joined = listed.join(known, on=[C.ITEM_ID], how="left")
    n_unknown = F.sum(F.when(is_unknown, n_rows))
    return _stacked(joined.agg(_fact(of, UNKNOWN_ROWS, n_unknown, F.sum(n_rows), is_unknown, item)))


def _to_listed(usable_recommendations: DataFrame) -> DataFrame:
    return usable_recommendations.select(C.ITEM_ID).distinct()


def to_list_facts(scored: DataFrame, *, k: int, baseline: str | None = None) -> DataFrame:
    """Count repeated items, short lists, ties that matter, ranks that cannot be, and users on one side only.

    With a baseline also whether it has no list at all, and with the column :data:`columns.SEEN` the recommended items
    that their users have in the training data.

    Parameters
    ----------
    scored : DataFrame
        Every scored row, outside the population too.
    k : int
        The largest cutoff; 0 where there is none, and then no list is short.
    baseline : str, optional
        Model that others are compared with.
    """
    lists = scored.where(F.col(C.K) == k)
    user = F.concat_ws(" ", C.MODEL_ID, F.col(C.USER_ID).cast("string"))
    is_short = has_list() & (F.col(N_LISTED) - F.col(C.N_DUPLICATES) < k)  # items, where a list keeps empty ranks
    has_ties = has_judgements() & F.col(C.HAS_TIES)
    is_extra, is_missing = ~has_judgements(), has_judgements() & ~has_list()
    repeats, n_lists = F.col(C.N_DUPLICATES) > 0, F.count_if(has_list())
    of = RECOMMENDATIONS
    facts = lists.agg(
        _fact(of, DUPLICATES, F.sum(C.N_DUPLICATES), F.sum(N_LISTED), repeats, user),
        _fact(of, "short_lists", F.count_if(is_short), n_lists, is_short, user),
        _fact(of, "ties", F.count_if(has_ties), F.count_if(has_judgements() & has_list()), has_ties, user),
        _fact(of, "extra_users", F.count_if(is_extra), n_lists, is_extra, user),
        *(_rank_fact(lists, check, name, user) for check, name in _RANK_CHECKS.items()),
        *([_seen_fact(user)] if C.SEEN in lists.columns else []),
        *([] if baseline is None else [_baseline_fact(baseline)]),
    )
    return _stacked(facts).unionByName(_missing_users(lists, is_missing))


_RANK_CHECKS: Final = {"rank_gaps": C.HAS_RANK_GAPS, "score_rank_disagree": C.IS_OUT_OF_ORDER}


def _rank_fact(lists: DataFrame, check: str, name: str, user: Column) -> Column:
    """Count the lists with a flag among those that were looked at: none where the log has no ranks."""
    flag = F.col(name) if name in lists.columns else F.lit(None).cast("boolean")
    return _fact(RECOMMENDATIONS, check, F.count_if(flag), F.count(flag), flag, user)


def _seen_fact(user: Column) -> Column:
    n_seen, n_items = F.col(f"{C.SEEN}.n_seen"), F.col(f"{C.SEEN}.n_items")
    return _fact(RECOMMENDATIONS, SEEN_IN_TRAIN, F.sum(n_seen), F.sum(n_items), n_seen > 0, user)


def _baseline_fact(baseline: str) -> Column:
    """Count the baseline if it has no list: a model that is misspelt looks like one that is not there yet."""
    is_absent = F.count_if(has_list() & (F.col(C.MODEL_ID) == baseline)) == 0
    key = F.when(is_absent, F.array(F.lit(baseline)))
    return _struct(RECOMMENDATIONS, ABSENT_BASELINE, is_absent.cast("int"), F.lit(1), key)


def with_verdicts(facts: DataFrame, *, checks: Checks) -> DataFrame:
    """Compare each share with its thresholds: rows of ``schemas.CHECKS`` from ``input`` on."""
    limits = {name: checks.threshold(name) for name in type(checks).model_fields}
    warn = _by_check({name: limit.warn for name, limit in limits.items()})
    is_ambiguous = (F.col("input") == ITEMS) & F.col("check").isin(DUPLICATES, VECTOR_LENGTHS)
    error = F.when(is_ambiguous, 0.0).otherwise(_by_check({name: limit.error for name, limit in limits.items()}))
    share = F.when(F.col("total") > 0, F.col("count") / F.col("total"))
    severity = F.when(error.isNotNull(), "error").when(warn.isNotNull(), "warn").otherwise("info")
    verdict = F.when(share > error, "error").when(share > warn, "warn").otherwise("ok")
    return facts.select(
        "input",
        "check",
        severity.alias("severity"),
        F.col("count"),
        F.when(F.col("check") != ROWS, share).alias("share"),
        F.when(verdict == "error", error).otherwise(F.coalesce(warn, error)).alias("threshold"),
        verdict.alias("verdict"),
        "sample_keys",
    )


def union(*facts: DataFrame) -> DataFrame:
    """Put facts below one another."""
    return reduce(DataFrame.unionByName, facts)


def _row_facts(frame: DataFrame, name: str, rules: Mapping[str, Column], *, key: Column) -> DataFrame:
    rows = _fact(name, ROWS, F.count("*"), F.count("*"), F.lit(False), key)
    return _stacked(
        frame.agg(
            rows, *(_fact(name, check, F.count_if(flag), F.count("*"), flag, key) for check, flag in rules.items())
        )
    )


def _missing_users(lists: DataFrame, is_missing: Column) -> DataFrame:
    """Count the judged users without a list for the model that misses most: another model must not hide it."""
    per_model = lists.groupBy(C.MODEL_ID).agg(
        F.count_if(is_missing).alias("_n_missing"), F.count_if(has_judgements()).alias("_n_judged")
    )
    share = F.col("_n_missing") / F.nullif(F.col("_n_judged"), F.lit(0))
    order = F.struct(share, C.MODEL_ID)  # the name too, so that of two models that miss as many it is always the same
    worst = per_model.agg(F.max_by(F.struct(C.MODEL_ID, "_n_missing", "_n_judged"), order).alias("_worst"))
    return worst.select(
        F.lit(RECOMMENDATIONS).alias("input"),
        F.lit(MISSING_USERS).alias("check"),
        F.coalesce("_worst._n_missing", F.lit(0)).alias("count"),
        F.coalesce("_worst._n_judged", F.lit(0)).alias("total"),
        F.when(F.col("_worst._n_missing") > 0, F.array(f"_worst.{C.MODEL_ID}"))
        .otherwise(_no_keys())
        .alias("sample_keys"),
    )


def _fact(  # noqa: PLR0913, PLR0917 - the parts of one fact, in the order of FACTS
    name: str, check: str, count: Column, total: Column, flag: Column, key: Column
) -> Column:
    """Make one struct of FACTS; the samples are the first and the last key concerned, whatever the partitioning."""
    concerned = F.when(flag, key)
    samples = F.array_compact(F.array_distinct(F.array(F.min(concerned), F.max(concerned))))
    return _struct(name, check, count, total, samples)


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


def _by_check(values: Mapping[str, float | None]) -> Column:
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return F.lit(None).cast("double")
    pairs = (part for name, value in known.items() for part in (F.lit(name), F.lit(float(value))))
    return F.create_map(*pairs)[F.col("check")]
