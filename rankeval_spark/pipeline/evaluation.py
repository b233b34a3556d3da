"""From usable inputs to scored rows, and from scored rows to the results; plans only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages import agreement, clean, exposure, match, models, population, rank, score, segment, summarise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.config import Policies
    from rankeval_spark.measures import MeasureSet


@dataclass(frozen=True)
class Request:
    """What is asked of an evaluation.

    Attributes
    ----------
    measures : MeasureSet
        Measures and cutoffs.
    policies : Policies
        What happens in the awkward cases.
    models : sequence of str or None
        The models expected; None: those in the log.
    slices : sequence of sequences of str
        Segments and crossings to report on, beside everyone.
    min_slice_size : int
        Slices with fewer users are marked as small.
    confidence : float
        Nominal coverage of the intervals, in (0, 1).
    """

    measures: MeasureSet
    policies: Policies
    models: Sequence[str] | None = None
    slices: Sequence[Sequence[str]] = ()
    min_slice_size: int = 30
    confidence: float = 0.95

    @property
    def segments(self) -> tuple[str, ...]:
        """Names of the segments that the slices use, each once, in order of first mention."""
        return tuple(dict.fromkeys(name for one in self.slices for name in one))


@dataclass(frozen=True)
class Frames:
    """The results as plans.

    Attributes
    ----------
    scored : DataFrame
        Every list at every cutoff, with the rows outside the population that are only counted.
    user_metrics, metrics : DataFrame
        As ``schemas.USER_METRICS`` and ``schemas.METRICS`` from the first column after the run's on.
    """

    scored: DataFrame
    user_metrics: DataFrame
    metrics: DataFrame


def to_lists(
    recommendations: DataFrame,
    *,
    held_out: DataFrame,
    segments: DataFrame | None,
    request: Request,
    has_one_list: bool = False,
) -> DataFrame:
    """Rank, match and group: one compact row per list, in the columns of ``schemas.LISTS`` from the list key on.

    Parameters
    ----------
    has_one_list : bool
        Whether it is known that no user has several lists of a model; saves a hash table.
    """
    usable = _usable(recommendations, request=request, has_one_list=has_one_list)
    judgements = held_out.transform(clean.keep_usable_held_out).transform(
        match.to_judgements, duplicates=request.policies.held_out_duplicates
    )
    return (
        _ranked(usable, request)
        .transform(match.to_lists, judgements=judgements, models=models.to_models(usable, names=request.models))
        .transform(models.with_names, names=request.models)
        .transform(segment.with_segments, segments=segments, names=request.segments)
    )


def to_exposures(
    recommendations: DataFrame,
    *,
    segments: DataFrame | None,
    catalogue: DataFrame | None,
    request: Request,
    has_one_list: bool = False,
) -> DataFrame | None:
    """Compute the measures of all lists together: rows of ``schemas.METRICS`` from the model on; None without any.

    In one query with the lists, both read the same exchange of the recommendations.

    Parameters
    ----------
    catalogue : DataFrame or None
        A frame whose ``item_id`` are all items; None where no measure needs it.
    """
    if not request.measures.exposures:
        return None
    ranked = _ranked(_usable(recommendations, request=request, has_one_list=has_one_list), request)
    return exposure.to_rows(
        ranked,
        measures=request.measures.exposures,
        segments=segments,
        catalogue=catalogue,
        models=request.models,
        slices=summarise.every_slice(request.slices),
        min_slice_size=request.min_slice_size,
        confidence=request.confidence,
    )


def to_agreement(  # noqa: PLR0913 - the inputs, and what is compared
    recommendations: DataFrame, *, request: Request, baseline: str, k: int, p: float, has_one_list: bool = False
) -> DataFrame:
    """Compare the lists of each model with those of the baseline: a row per list, as :mod:`agreement` makes them."""
    named = request.models
    model = F.lit(baseline) if named is None else F.lit(list(named).index(baseline) + 1)
    ranked = _ranked(_usable(recommendations, request=request, has_one_list=has_one_list), request)
    return agreement.to_agreement(ranked, baseline=model, k=k, p=p).transform(models.with_names, names=named)


def _usable(recommendations: DataFrame, *, request: Request, has_one_list: bool) -> DataFrame:
    return (
        recommendations.transform(models.keep_models, names=request.models)
        .transform(clean.keep_usable_recommendations, invalid_scores=request.policies.invalid_scores)
        .transform(models.with_numbers, names=request.models)
        .drop(*([C.LIST_ID] if has_one_list else []))
    )


def _ranked(usable: DataFrame, request: Request) -> DataFrame:
    return rank.to_ranked(usable, ties=request.policies.ties, duplicates=request.policies.duplicates)


def to_scored(lists: DataFrame, *, request: Request) -> DataFrame:
    """Score every list at every cutoff and mark who belongs to the population."""
    who = request.policies.population
    return lists.transform(
        score.to_user_metrics, measures=request.measures, zero_relevant=population.zero_relevant(who)
    ).transform(population.with_population, population=who, measures=request.measures.columns)


def to_frames(scored: DataFrame, *, request: Request, has_one_list: bool, exposures: DataFrame | None = None) -> Frames:
    """Derive the result frames from the scored rows (a plan, or staging read back).

    Parameters
    ----------
    has_one_list : bool
        Whether it is known that no user has several lists of a model; saves a grouping.
    exposures : DataFrame, optional
        The rows of :func:`to_exposures`, which stand in ``metrics`` beside the means.
    """
    columns = request.measures.columns
    user_metrics = population.keep_population(scored)
    if exposures is not None and not columns:
        return Frames(scored, user_metrics, exposures)
    users = scored if has_one_list else summarise.to_users(scored, measures=columns)
    metrics = summarise.to_metrics(
        users,
        measures=request.measures,
        slices=request.slices,
        min_slice_size=request.min_slice_size,
        confidence=request.confidence,
    )
    return Frames(scored, user_metrics, metrics if exposures is None else metrics.unionByName(exposures))
