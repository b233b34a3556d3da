"""From usable inputs to scored rows, and from scored rows to the results; plans only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark import columns as C
from rankeval_spark.stages import clean, describe, match, models, population, rank, score, segment, summarise
from rankeval_spark.stages.describe import Knowledge

if TYPE_CHECKING:
    from datetime import date

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
    evaluation_date : date or None
        Day at which the age of items is taken.
    """

    measures: MeasureSet
    policies: Policies
    models: Sequence[str] | None = None
    slices: Sequence[Sequence[str]] = ()
    min_slice_size: int = 30
    confidence: float = 0.95
    evaluation_date: date | None = None

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


def to_lists(  # noqa: PLR0913 - the inputs, and what is asked of them
    recommendations: DataFrame,
    *,
    held_out: DataFrame,
    segments: DataFrame | None,
    request: Request,
    has_one_list: bool = False,
    train: DataFrame | None = None,
    items: DataFrame | None = None,
) -> DataFrame:
    """Rank, match and group: one compact row per list, in the columns of ``schemas.LISTS`` from the list key on.

    Parameters
    ----------
    has_one_list : bool
        Whether it is known that no user has several lists of a model; saves a hash table.
    train, items : DataFrame, optional
        Rows of ``schemas.TRAIN`` and ``schemas.ITEMS``, read only where a measure needs them; the rows then have the
        columns :data:`columns.FACTS` too.
    """
    policies = request.policies
    usable = (
        recommendations.transform(models.keep_models, names=request.models)
        .transform(clean.keep_usable_recommendations, invalid_scores=policies.invalid_scores)
        .transform(models.with_numbers, names=request.models)
        .drop(*([C.LIST_ID] if has_one_list else []))
    )
    judgements = held_out.transform(clean.keep_usable_held_out).transform(
        match.to_judgements, duplicates=policies.held_out_duplicates
    )
    ranked = usable.transform(rank.to_ranked, ties=policies.ties, duplicates=policies.duplicates)
    named = models.to_models(usable, names=request.models)
    lists = _matched(ranked, judgements, named, Knowledge(train, items, request.evaluation_date), request.measures)
    return lists.transform(models.with_names, names=request.models).transform(
        segment.with_segments, segments=segments, names=request.segments
    )


def _matched(
    ranked: DataFrame, judgements: DataFrame, models_: DataFrame, knowledge: Knowledge, measures: MeasureSet
) -> DataFrame:
    """Join ranked items with the judgements and, where a measure needs them, with facts of items and users."""
    needs = measures.needs
    if not describe.is_described(needs):
        return match.to_lists(ranked, judgements=judgements, models=models_)
    n_places = max((k for k in measures.ks if k != C.WHOLE_LIST), default=0)
    return (
        ranked.transform(
            describe.with_item_facts,
            knowledge=knowledge,
            needs=needs,
            depth=measures.item_depth,
            n_places=n_places,
        )
        .transform(
            match.to_lists,
            judgements=judgements,
            models=models_,
            profiles=describe.to_profiles(knowledge, needs=needs),
            pairs=describe.to_pairs(ranked, knowledge=knowledge, needs=needs, depth=measures.item_depth),
        )
        .transform(describe.with_totals, knowledge=knowledge, needs=needs)
    )


def to_scored(lists: DataFrame, *, request: Request) -> DataFrame:
    """Score every list at every cutoff and mark who belongs to the population."""
    who = request.policies.population
    return lists.transform(
        score.to_user_metrics, measures=request.measures, zero_relevant=population.zero_relevant(who)
    ).transform(population.with_population, population=who, measures=request.measures.columns)


def to_frames(scored: DataFrame, *, request: Request, has_one_list: bool) -> Frames:
    """Derive the result frames from the scored rows (a plan, or staging read back).

    Parameters
    ----------
    has_one_list : bool
        Whether it is known that no user has several lists of a model; saves a grouping.
    """
    columns = request.measures.columns
    users = scored if has_one_list else summarise.to_users(scored, measures=columns)
    metrics = summarise.to_metrics(
        users,
        measures=request.measures,
        slices=request.slices,
        min_slice_size=request.min_slice_size,
        confidence=request.confidence,
    )
    return Frames(scored, population.keep_population(scored), metrics)
