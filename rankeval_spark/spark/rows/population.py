"""Conditions on scored rows: who has judgements, who has a list, who is in the population."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.outputs import N_LISTED
from rankeval_spark.engine.scoring.population import IS_EVALUATED


def has_judgements() -> Column:
    """Return True if the user is in the held-out table."""
    return F.col(C.N_JUDGED) > 0


def has_list() -> Column:
    """Return True if the model gave the user a list."""
    return F.col(C.N_RECOMMENDED) > 0


def keep_population(scored: DataFrame) -> DataFrame:
    """Keep the rows of the population, in the columns of ``schemas.USER_METRICS`` from the list key on."""
    return scored.where(F.col(IS_EVALUATED)).drop(IS_EVALUATED, C.N_DUPLICATES, N_LISTED, *C.FOR_CHECKS, C.PARTIALS)
