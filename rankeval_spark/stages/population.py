"""Who enters the means: the population policy, applied to the scored rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.score import N_LISTED

IS_EVALUATED: Final = "_is_evaluated"
"""Whether a scored row belongs to the population; the others are only counted."""


def has_judgements() -> Column:
    """Tell whether the user stands in the held-out table."""
    return F.col(C.N_JUDGED) > 0


def has_list() -> Column:
    """Tell whether the model gave the user a list."""
    return F.col(C.N_RECOMMENDED) > 0


def is_evaluated(population: str) -> Column:
    """Tell whether a scored row belongs to the population.

    ``truth`` and ``judged`` take every user of the held-out table (they differ in what a user without a relevant
    judgement scores: undefined or 0), ``intersection`` those who also got a list, ``run`` everyone who got a list.
    """
    return {
        "truth": has_judgements(),
        "judged": has_judgements(),
        "intersection": has_judgements() & has_list(),
        "run": has_list(),
    }[population]


def zero_relevant(population: str) -> str:
    """Name what a user without a relevant judgement scores under a population: ``exclude`` or ``zero``."""
    return "zero" if population == "judged" else "exclude"


def with_population(scored: DataFrame, *, population: str, measures: Sequence[str]) -> DataFrame:
    """Mark the rows of the population and make the measures of all others NULL; rows are neither added nor lost."""
    belongs = is_evaluated(population)
    kept = [name for name in scored.columns if name not in measures]
    return scored.select(
        *kept,
        *(F.when(belongs, F.col(name)).alias(name) for name in measures),
        belongs.alias(IS_EVALUATED),
    )


def keep_population(scored: DataFrame) -> DataFrame:
    """Keep the rows of the population, in the columns of ``schemas.USER_METRICS`` from the list key on."""
    return scored.where(F.col(IS_EVALUATED)).drop(IS_EVALUATED, C.N_DUPLICATES, N_LISTED)
