"""Who enters the means: the population policy, applied to the scored rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.clean import policy_failure
from rankeval_spark.stages.score import N_LISTED

IS_EVALUATED: Final = "_is_evaluated"
"""Whether a scored row belongs to the population; the others are only counted."""


def has_judgements() -> Column:
    """Tell whether the user stands in the held-out table."""
    return F.col(C.N_JUDGED) > 0


def has_list() -> Column:
    """Tell whether the model gave the user a list."""
    return F.col(C.N_RECOMMENDED) > 0


def is_evaluated(population: str, missing: str = "zero", zero_relevant: str = "exclude") -> Column:
    """Tell whether a scored row belongs to the population; fail the job at a case whose policy is ``error``.

    ``truth`` and ``judged`` take every user of the held-out table (they differ in what a user without a relevant
    judgement scores, see ``score.to_user_metrics``) unless ``missing`` leaves out those without a list;
    ``intersection`` and ``intersection_judged`` those who also got one, ``run`` everyone who got one.
    """
    has_both = has_judgements() & has_list()
    belongs = {
        "truth": has_judgements(),
        "judged": has_judgements(),
        "intersection": has_both,
        "intersection_judged": has_both,
        "run": has_list(),
    }[population]
    if missing == "exclude":
        belongs &= has_list()
    if missing == "error":
        belongs = _unless(has_judgements() & ~has_list(), "missing", "a judged user has no list", belongs)
    if zero_relevant == "error":
        is_zero = belongs & has_judgements() & (F.col(C.N_RELEVANT) == 0)
        belongs = _unless(is_zero, "zero_relevant", "a user has no judgement with a gain of 1 or more", belongs)
    return belongs


def _unless(is_refused: Column, policy: str, what: str, value: Column) -> Column:
    return F.when(is_refused, policy_failure(policy, what).cast("boolean")).otherwise(value)


def with_population(
    scored: DataFrame,
    *,
    population: str,
    measures: Sequence[str],
    missing: str = "zero",
    zero_relevant: str = "exclude",
) -> DataFrame:
    """Mark the rows of the population and make the measures of all others NULL; rows are neither added nor lost."""
    belongs = is_evaluated(population, missing, zero_relevant)
    kept = [name for name in scored.columns if name not in measures]
    return scored.select(
        *kept,
        *(F.when(belongs, F.col(name)).alias(name) for name in measures),
        belongs.alias(IS_EVALUATED),
    )


def keep_population(scored: DataFrame) -> DataFrame:
    """Keep the rows of the population, in the columns of ``schemas.USER_METRICS`` from the list key on."""
    return scored.where(F.col(IS_EVALUATED)).drop(
        IS_EVALUATED, C.N_DUPLICATES, N_LISTED, *C.OF_RANKS, C.SEEN, C.PARTIALS
    )
