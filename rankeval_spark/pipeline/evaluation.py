"""From usable inputs to scored rows, and from scored rows to the results; plans only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.bands import NO_INTERACTION, of_train
from rankeval_spark.measures import Measure, MeasureSet
from rankeval_spark.measures.needs import ITEM_SEEN, TRAINED_ITEMS, VALUES
from rankeval_spark.stages import (
    clean,
    compare,
    describe,
    dropped,
    exposure,
    fairness,
    groups,
    lots,
    match,
    models,
    parity,
    population,
    rank,
    score,
    scored_moments,
    segment,
    summarise,
)
from rankeval_spark.stages.describe import Knowledge

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.config import Comparisons, Policies
    from rankeval_spark.config.bands import Band
    from rankeval_spark.stages.lots import Gap
    from rankeval_spark.statistics.multiplicity import Correction
    from rankeval_spark.statistics.resampled import Draws


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
    comparisons : Comparisons or None
        Which models are compared with which; None: none.
    draws : Draws or None
        Of the bootstrap that makes the intervals of means; None: they are made by formula.
    bands : mapping
        How segments are made of numbers, by name.
    counts_seen : bool
        Whether items that the user has in the training data are counted though no measure asks for it; costs a join.
    """

    measures: MeasureSet
    policies: Policies
    models: Sequence[str] | None = None
    slices: Sequence[Sequence[str]] = ()
    min_slice_size: int = 30
    confidence: float = 0.95
    evaluation_date: date | None = None
    comparisons: Comparisons | None = None
    draws: Draws | None = None
    bands: Mapping[str, Band] = field(default_factory=dict)
    counts_seen: bool = False

    @property
    def segments(self) -> tuple[str, ...]:
        """Names of the segments that the slices use, each once, in order of first mention."""
        return tuple(dict.fromkeys(name for one in self.slices for name in one))

    @property
    def absent(self) -> Mapping[str, str]:
        """Values of a user of whom nothing is known, by segment, where that is a value."""
        return dict.fromkeys(of_train(self.bands), NO_INTERACTION)


@dataclass(frozen=True)
class Frames:
    """The results as plans.

    Attributes
    ----------
    scored : DataFrame
        Every list at every cutoff, with the rows outside the population that are only counted.
    user_metrics, metrics : DataFrame
        As ``schemas.USER_METRICS`` and ``schemas.METRICS`` from the first column after the run's on.
    comparisons : DataFrame or None
        As ``schemas.COMPARISONS``, likewise; None where nothing is compared.
    """

    scored: DataFrame
    user_metrics: DataFrame
    metrics: DataFrame
    comparisons: DataFrame | None = None


def to_lists(  # noqa: PLR0913 - the inputs, and what is asked of them
    recommendations: DataFrame,
    *,
    held_out: DataFrame,
    segments: DataFrame | None,
    request: Request,
    has_one_list: bool = False,
    train: DataFrame | None = None,
    items: DataFrame | None = None,
    has_small_catalogue: bool = False,
) -> DataFrame:
    """Rank, match and group: one compact row per list, in the columns of ``schemas.LISTS`` from the list key on.

    ``hit_scores`` is there only where a measure needs it; so are the columns :data:`columns.OF_JUDGEMENTS`. The columns
    :data:`columns.OF_RANKS` are there where the log has ranks, :data:`columns.SEEN` where it is known.

    Parameters
    ----------
    has_one_list : bool
        Whether it is known that no user has several lists of a model; saves a hash table.
    train, items : DataFrame, optional
        Rows of ``schemas.TRAIN`` and ``schemas.ITEMS``, read only where a measure needs them, and the rows then have
        the columns :data:`columns.FACTS` too, or where a policy leaves items out by them.
    has_small_catalogue : bool
        Whether it is known that ``items`` fit into the memory of every task; saves moving the ranked rows.
    """
    usable = _usable(recommendations, request=request, has_one_list=has_one_list)
    knowledge = Knowledge(train, items, request.evaluation_date, has_small_catalogue)
    judgements = _judgements(held_out, request, knowledge)
    ranked = _ranked(usable, request, judgements, knowledge)
    named = models.to_models(usable, names=request.models)
    lists = _matched(ranked, judgements, named, knowledge, request)
    return lists.transform(models.with_names, names=request.models).transform(
        segment.with_segments, segments=segments, names=request.segments, absent=request.absent
    )


def _matched(
    ranked: DataFrame, judgements: DataFrame, models_: DataFrame, knowledge: Knowledge, request: Request
) -> DataFrame:
    """Join ranked items with the judgements and, where a measure needs them, with facts of items and users."""
    measures = request.measures
    needs = measures.needs | ({ITEM_SEEN} if request.counts_seen and knowledge.train is not None else set())
    if not describe.is_described(needs):
        lists = match.to_lists(ranked, judgements=judgements, models=models_)
        return lists.transform(describe.with_totals, knowledge=knowledge, needs=needs)
    n_places = max((k for k in measures.ks if k != C.WHOLE_LIST), default=0)
    has_measures = describe.is_described(measures.needs)
    depth = measures.item_depth if has_measures else n_places
    lists = (
        ranked.transform(
            describe.with_item_facts,
            knowledge=knowledge,
            needs=needs,
            depth=depth,
            n_places=n_places,
        )
        .transform(
            match.to_lists,
            judgements=judgements,
            models=models_,
            profiles=describe.to_profiles(knowledge, needs=needs, judgements=judgements),
            pairs=describe.to_pairs(ranked, knowledge=knowledge, needs=needs, depth=depth),
            others={name: models.reference(name, names=request.models) for name in measures.other_models},
        )
        .transform(describe.with_totals, knowledge=knowledge, needs=needs)
    )
    return lists.transform(describe.with_seen, keep_items=has_measures) if ITEM_SEEN in needs else lists


def to_exposures(  # noqa: PLR0913 - one input each
    recommendations: DataFrame,
    *,
    held_out: DataFrame,
    segments: DataFrame | None,
    catalogue: DataFrame | None,
    request: Request,
    has_one_list: bool = False,
    train: DataFrame | None = None,
    items: DataFrame | None = None,
    has_small_catalogue: bool = False,
) -> DataFrame | None:
    """Compute the measures of all lists together: rows of ``schemas.METRICS`` from the model on; None without any.

    In one query with the lists, both read the same exchange of the recommendations.

    Parameters
    ----------
    catalogue : DataFrame or None
        A frame whose ``item_id`` are all items; None where no measure needs it.
    train, items : DataFrame, optional
        Rows of ``schemas.TRAIN`` and ``schemas.ITEMS``; there where a measure or a policy needs them.
    has_small_catalogue : bool
        As of :func:`to_lists`.
    """
    asked = request.measures.exposures
    if not asked:
        return None
    judgements = _judgements(held_out, request)
    usable = _usable(recommendations, request=request, has_one_list=has_one_list)
    ranked = _ranked(usable, request, judgements, Knowledge(train, items, has_small_catalogue=has_small_catalogue))
    options: dict[str, Any] = {
        "segments": segments,
        "models": request.models,
        "absent": request.absent,
        "slices": summarise.every_slice(request.slices),
        "min_slice_size": request.min_slice_size,
        "confidence": request.confidence,
    }
    shown, offered = ([one for one in asked if one.entry.definition.kind == kind] for kind in ("exposure", "parity"))
    of_train = [one for one in shown if TRAINED_ITEMS in one.needs]
    others = [one for one in shown if TRAINED_ITEMS not in one.needs]
    by_catalogue = ((others, catalogue), (of_train, train))  # a histogram knows the items of one catalogue
    frames = [exposure.to_rows(ranked, measures=some, catalogue=of, **options) for some, of in by_catalogue if some]
    if offered and train is not None:
        of_catalogue = catalogue if any(one.needs_catalogue for one in offered) else None
        offer = parity.Offer(judgements, train, of_catalogue, items)
        frames.append(parity.to_rows(ranked, measures=offered, offer=offer, **options))
    return reduce(DataFrame.unionByName, frames)


def to_agreement(  # noqa: PLR0913 - the inputs, and what is compared
    recommendations: DataFrame,
    *,
    held_out: DataFrame,
    request: Request,
    baseline: str,
    k: int,
    p: float,
    has_one_list: bool = False,
    train: DataFrame | None = None,
    items: DataFrame | None = None,
    has_small_catalogue: bool = False,
) -> DataFrame:
    """Compare the first k items of each list with those of the baseline: ``overlap``, ``jaccard`` and ``rbo``.

    One row per list of another model whose user got one of the baseline too, whoever is in the population.
    ``train``, ``items`` and ``has_small_catalogue`` as of :func:`to_lists`, for the policies that leave items out.
    """
    beside = ("model", baseline)
    # Made without reading a name: a model may be called what stands in none.
    measures = {
        "overlap": Measure("Overlap", (beside,), k),
        "jaccard": Measure("Jaccard", (beside,), k),
        "rbo": Measure("RBO", (beside, ("p", p)), k),
    }
    asked = replace(request, measures=MeasureSet.of([*measures.values()]), slices=(), counts_seen=False)
    lists = to_lists(
        recommendations,
        held_out=held_out,
        segments=None,
        request=asked,
        has_one_list=has_one_list,
        train=train,
        items=items,
        has_small_catalogue=has_small_catalogue,
    )
    scored = score.to_user_metrics(lists, measures=asked.measures)
    has_lists = C.LIST_ID in recommendations.columns and not has_one_list
    return scored.where(F.col(measures["overlap"].column).isNotNull()).select(
        *(C.MODEL_ID, C.USER_ID, *([C.LIST_ID] if has_lists else [])),
        *(F.col(measure.column).alias(name) for name, measure in measures.items()),
    )


def _usable(recommendations: DataFrame, *, request: Request, has_one_list: bool) -> DataFrame:
    return (
        recommendations.transform(models.keep_models, names=request.models)
        .transform(clean.keep_usable_recommendations, invalid_scores=request.policies.invalid_scores)
        .transform(clean.with_score_precision, precision=request.policies.score_precision)
        .transform(models.with_numbers, names=request.models)
        .drop(*([C.LIST_ID] if has_one_list else []))
    )


def _judgements(held_out: DataFrame, request: Request, knowledge: Knowledge | None = None) -> DataFrame:
    """Make one row per judgement; ``knowledge`` where what measures read beside its gain is needed too."""
    measures, usable = request.measures, held_out.transform(clean.keep_usable_held_out)
    if knowledge is not None:
        usable = usable.transform(groups.with_groups, knowledge=knowledge, groups=measures.groups)
    return usable.transform(
        match.to_judgements,
        duplicates=request.policies.held_out_duplicates,
        keep_values=knowledge is not None and VALUES in measures.needs,
    )


def _ranked(usable: DataFrame, request: Request, judgements: DataFrame, knowledge: Knowledge) -> DataFrame:
    """Rank what the policies leave of the lists.

    Items that nobody knows go first, before the rows are moved to their users; those that a user has seen go once both
    are with the user.
    """
    policies = request.policies
    drops_unknown = policies.unknown_items == "drop"
    if drops_unknown:
        is_small = knowledge.has_small_catalogue and knowledge.items is not None
        usable = usable.transform(dropped.keep_known, catalogue=knowledge.catalogue, is_small=is_small)
    return rank.to_ranked(
        usable,
        ties=policies.ties,
        duplicates=policies.duplicates,
        rank_gaps=policies.rank_gaps,
        judgements=judgements if rank.needs_gains(policies.ties, judged_only=policies.judged_only) else None,
        judged_only=policies.judged_only,
        seen=describe.given(knowledge.train) if policies.seen_in_train == "drop" else None,
        is_whole=not drops_unknown,
        keep_scores=C.HIT_SCORES in request.measures.needs,
    )


def to_scored(lists: DataFrame, *, request: Request, has_one_list: bool = False) -> DataFrame:
    """Score every list at every cutoff and mark who belongs to the population.

    Parameters
    ----------
    has_one_list : bool
        Whether it is known that no user has several lists of a model, and means are wanted too: where that is possible,
        the moments that they are made of then stand beside the rows.
    """
    policies, measures = request.policies, request.measures
    beside = None
    if _can_be_summarised(request, has_one_list=has_one_list):
        slices = summarise.every_slice(request.slices)
        beside = scored_moments.beside_rows(measures, slices)
        lists = scored_moments.with_inputs(lists, slices=slices, policies=policies)
    return lists.transform(
        score.to_user_metrics,
        measures=measures,
        zero_relevant=policies.zero_relevant,
        ties=policies.ties,
        beside=beside,
    ).transform(
        population.with_population,
        population=policies.population,
        measures=measures.stored,
        missing=policies.missing,
        zero_relevant=policies.zero_relevant,
    )


def _can_be_summarised(request: Request, *, has_one_list: bool) -> bool:
    """Tell whether a batch of lists has moments of its own: not where lists of a user are averaged, or users drawn."""
    return has_one_list and request.draws is None and bool(request.measures.columns)


def to_frames(
    scored: DataFrame,
    *,
    request: Request,
    has_one_list: bool,
    exposures: DataFrame | None = None,
    lists: DataFrame | None = None,
) -> Frames:
    """Derive the result frames from the scored rows (a plan, or staging read back).

    Parameters
    ----------
    has_one_list : bool
        Whether it is known that no user has several lists of a model; saves a grouping.
    exposures : DataFrame, optional
        The rows of :func:`to_exposures`, which stand in ``metrics`` beside the means.
    lists : DataFrame, optional
        The rows of :func:`to_lists` that the scored rows are a plan of. ``metrics`` are then made of these where that
        is possible: a list is scored and summarised in one worker, and the rows between are made by nobody.
    """
    asked = request.measures
    user_metrics = population.keep_population(scored)
    if exposures is not None and not asked.columns:
        return Frames(scored, user_metrics, _with_group_rows(exposures, request))
    users = _users(scored, request, has_one_list=has_one_list)
    metrics = _means(users, lists, request, has_one_list=has_one_list)
    every = metrics if exposures is None else metrics.unionByName(exposures)
    return Frames(
        scored, user_metrics, _with_group_rows(every, request), _comparisons(users, request, has_one_list=has_one_list)
    )


def _means(users: DataFrame, lists: DataFrame | None, request: Request, *, has_one_list: bool) -> DataFrame:
    """Make the rows of ``metrics`` that are means over users, by the shortest way there is."""
    options: dict[str, Any] = {
        "measures": request.measures,
        "slices": request.slices,
        "min_slice_size": request.min_slice_size,
        "confidence": request.confidence,
    }
    if lists is not None and _can_be_summarised(request, has_one_list=has_one_list):
        every = summarise.every_slice(request.slices)
        partials = scored_moments.to_partials(lists, measures=request.measures, slices=every, policies=request.policies)
        return summarise.to_metrics_of_partials(partials, **options)
    if C.PARTIALS in users.columns:
        return summarise.to_metrics_of_partials(scored_moments.of_rows(users), **options)
    weights = _denominators(request, has_one_list=has_one_list)
    return summarise.to_metrics(users, weights=weights, draws=request.draws, **options)


def to_gap_tests(  # noqa: PLR0913 - what is tested, and how
    scored: DataFrame,
    tested: DataFrame,
    *,
    gaps: Sequence[Gap],
    request: Request,
    has_one_list: bool,
    draws: Draws,
    correction: Correction,
) -> DataFrame:
    """Test gaps between groups of users, as :func:`lots.to_gap_tests` does; all are of slices of the request."""
    measures = request.measures
    return lots.to_gap_tests(
        _users(scored, request, has_one_list=has_one_list),
        tested,
        gaps=gaps,
        columns=dict(zip(measures.labels, measures.columns, strict=True)),
        slices=request.slices,
        ks=measures.ks,
        draws=draws,
        correction=correction,
        alpha=1 - request.confidence,
    )


def _users(scored: DataFrame, request: Request, *, has_one_list: bool) -> DataFrame:
    """One row per (model, user, k)."""
    if has_one_list:
        return scored
    asked = request.measures
    return summarise.to_users(scored, measures=asked.columns, weights=asked.weights, unit=request.policies.unit)


def _denominators(request: Request, *, has_one_list: bool) -> Mapping[str, str]:
    """Column of the denominators of each measure that is a ratio of sums; a mean over single lists is one of users."""
    return summarise.denominators(request.measures, unit="user" if has_one_list else request.policies.unit)


def _with_group_rows(metrics: DataFrame, request: Request) -> DataFrame:
    """Say of each slicing how far its groups lie apart, and of groups of items; nothing where there are none."""
    is_grouped = request.slices or len(request.measures.groups) > 1
    n_slices = len(summarise.every_slice(request.slices))
    n_slicings = None if request.models is None else n_slices * len(request.models)
    return metrics.transform(fairness.with_group_rows, n_slicings=n_slicings) if is_grouped else metrics


def _comparisons(users: DataFrame, request: Request, *, has_one_list: bool) -> DataFrame | None:
    asked = request.comparisons
    if asked is None:
        return None
    return compare.to_comparisons(
        users,
        measures=request.measures,
        weights=_denominators(request, has_one_list=has_one_list),
        slices=summarise.every_slice(request.slices),
        comparisons=asked,
        min_slice_size=request.min_slice_size,
        confidence=request.confidence,
    )
