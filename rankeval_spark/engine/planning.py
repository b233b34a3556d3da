"""From a request to what the engine does with the rows of the users: on Spark and in this process alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.attribution import AttributionRules
from rankeval_spark.engine.checks import held_out_checks, log_checks, unnamed_checks
from rankeval_spark.engine.job import Job
from rankeval_spark.engine.matching import ListRules
from rankeval_spark.engine.outputs import ListOutputs
from rankeval_spark.engine.parity_sums import Parity
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import MeasureSet

SECOND_STEP = frozenset((N.ITEM_FAMILIARITY, N.ITEM_PAIRS))
"""Facts that are made of ranked items: lists are ranked once more for them."""

_OF_ITEM: Final[Mapping[str, tuple[str, ...]]] = {
    N.PROFILE_CATEGORIES: (N.ITEM_CATEGORIES,),
    N.PROFILE_VECTORS: (N.ITEM_VECTORS,),
    N.PROFILE_INTERACTIONS: (N.ITEM_INTERACTIONS,),
    N.PROFILE_UNJUDGED: (N.ITEM_KNOWN,),
    N.JUDGED_CATEGORIES: (N.ITEM_CATEGORIES,),
    N.CATEGORY_GROUP: (N.ITEM_CATEGORIES,),
    N.POPULARITY_GROUP: (N.ITEM_POPULARITY_GROUP,),
    N.GROUP_RELEVANT: (N.ITEM_POPULARITY_GROUP,),
    N.GROUP_AVAILABLE: (N.ITEM_POPULARITY_GROUP, N.ITEM_KNOWN, *N.GROUP_SIZES),
    N.CATEGORY_SHARES: (N.ITEM_CATEGORIES,),
}
"""The facts of items that facts of users and judgements, and the counts of parity, are made of."""

_OF_ALL_LISTS: Final = frozenset({N.GROUP_AVAILABLE, N.CATEGORY_SHARES})

COUNTED_FACTS: Final = frozenset(
    {N.ITEM_INTERACTIONS, N.ITEM_USERS, N.ITEM_TAIL, N.ITEM_LEVEL, N.ITEM_PLACE, N.ITEM_QUANTILE}
    | {N.ITEM_POPULARITY_GROUP}
)
"""Facts of items that follow from counts of the training data."""

CATALOGUE_FACTS: Final = frozenset({N.ITEM_AGE, N.ITEM_CATEGORIES, N.ITEM_VECTORS})
"""Facts of items that the catalogue has."""

_OF_CATALOGUE: Final = {
    row_kinds.LOG: CATALOGUE_FACTS | _OF_ALL_LISTS,
    row_kinds.HELD_OUT: frozenset({N.JUDGED_CATEGORIES, N.CATEGORY_GROUP}),
    row_kinds.TRAIN: frozenset({N.PROFILE_CATEGORIES, N.PROFILE_VECTORS, N.PROFILE_UNJUDGED}) | _OF_ALL_LISTS,
}
"""Needs of measures that are met from the catalogue's facts, by the input whose items they describe."""


def build_outputs(request: Request, *, averages_lists: bool = False, has_judged_lists: bool = False) -> ListOutputs:
    """Return how lists become values and moments."""
    return ListOutputs(
        request.measure_set,
        request.policies,
        tuple(request.every_slice),
        request.draws,
        counts_values=bool(request.slicing.quantiles),
        averages_lists=averages_lists,
        has_judged_lists=has_judged_lists,
    )


def measure_needs(request: Request, *, has_train: bool, of_all_lists: bool = False) -> frozenset[str]:
    """Return the facts that measures and the check of seen items read; measures of all lists with ``of_all_lists``."""
    seen = {N.ITEM_SEEN} if request.counts_seen and has_train else set()
    parity = build_parity(request).measures if of_all_lists else ()
    return request.measure_set.needs | seen | {need for measure in parity for need in measure.needs}


def counted_needs(request: Request, *, has_train: bool) -> frozenset[str]:
    """Return the facts that only checks of the inputs read."""
    is_counted = request.counts_judged_seen or request.policies.seen_in_train == "drop_both"
    return frozenset({N.JUDGED_SEEN} if has_train and is_counted else ())


def item_needs(request: Request, needs: frozenset[str]) -> frozenset[str]:
    """Add the facts of items from which facts of users and judgements are made, and by which rows are left out."""
    known = {N.ITEM_KNOWN} if request.policies.unknown_items == "drop" else set()
    return needs | known | {fact for name in needs for fact in _OF_ITEM.get(name, ())}


def described_inputs(request: Request, needs: frozenset[str]) -> tuple[int, ...]:
    """List the inputs about whose items something is needed that the catalogue knows."""
    filtered = {row_kinds.LOG} if request.policies.unknown_items == "drop" else set()
    return tuple(kind for kind, read in _OF_CATALOGUE.items() if needs & read or kind in filtered)


def reads_train(request: Request, needs: frozenset[str]) -> bool:
    """Return True if workers read what each user has in the training data."""
    profiles = {N.PROFILE_CATEGORIES, N.PROFILE_VECTORS, *N.PROFILE_NUMBERS}
    read = {N.ITEM_SEEN, N.JUDGED_SEEN, N.HISTORY_GROUP, N.GROUP_RELEVANT, *profiles, *_OF_ALL_LISTS}
    return not needs.isdisjoint(read) or request.policies.drops_seen


def reads_optional(request: Request, name: str, needs: frozenset[str]) -> bool:
    """Return True if an input that may be left out is read, to say of it which of its rows can be used."""
    policies = request.policies
    read = {
        "segments": not {*request.segments}.issubset(request.slicing.computed),
        "train": N.ITEM_SEEN in needs or policies.drops_seen,
        "items": policies.unknown_items == "drop",
        "user_values": False,
        "user_weights": False,
    }
    return read[name] or name in {required.partition(".")[0] for required in request.measure_set.requiring()}


def is_described(needs: frozenset[str]) -> bool:
    """Return True if any of the needs is one that the facts of recommended items, their users or pairs meet."""
    return not needs.isdisjoint(N.DESCRIBED)


def build_parity(request: Request) -> Parity:
    """Return what the workers count for measures of parity."""
    measures = (measure for measure in request.measure_set.exposures if measure.entry.kind == "parity")
    return Parity(tuple(measures), tuple(map(tuple, request.every_slice)))


def description_depth(measures: MeasureSet) -> int:
    """Return the last rank whose items are described, 0 for whole lists; that of the checks where no measure reads."""
    return measures.item_depth if is_described(measures.needs) else measures.last_cutoff


def order_column(columns: Collection[str]) -> str:
    """Return the column that orders the lists: the score, or the rank where the log has no score."""
    return C.SCORE if C.SCORE in columns else C.RANK


def build_list_rules(request: Request, columns: Collection[str]) -> ListRules:
    """Return how rows of a log with these columns become lists; ranks are checked unless rows were left out."""
    policies, attribution = request.policies, None
    if policies.is_attributed:
        attribution = AttributionRules(policies.attribution, policies.window, policies.consumed_before == "drop")
    dropping = (policies.unknown_items, policies.seen_in_train, policies.own_item, policies.consumed_before)
    keeps_all_rows = {*dropping} == {"keep"} and not policies.judged_only and policies.lists == "separate"
    return ListRules(
        order_column(columns),
        policies.ties,
        policies.duplicates,
        policies.held_out_duplicates,
        keeps_gaps=policies.rank_gaps == "keep" and C.RANK in columns,
        judged_only=policies.judged_only,
        drops_seen=policies.drops_seen,
        drops_judged_seen=policies.seen_in_train == "drop_both",
        checks_ranks=C.RANK in columns and policies.rank_gaps == "renumber" and keeps_all_rows,
        attribution=attribution,
        max_rows_per_user=request.max_rows_per_user,
    )


def log_columns(columns: Collection[str], request: Request, *, has_lists: bool) -> list[str]:
    """Return the columns of the log that lists and measures read; ``columns`` are those that it has."""
    order, found = order_column(columns), [C.USER_ID, C.ITEM_ID, C.MODEL_ID, order_column(columns)]
    if C.RANK in columns and order != C.RANK and build_list_rules(request, columns).reads_ranks:
        found.append(C.RANK)
    if has_lists:
        found.append(C.LIST_ID)
    if N.PREDICTIONS in request.measure_set.needs and C.PREDICTED_REWARD in columns:
        found.append(C.PREDICTED_REWARD)
    has_times = request.policies.is_attributed or (request.reads_times and C.RECOMMENDED_AT in columns)
    return [*found, C.RECOMMENDED_AT] if has_times else found


def judgement_facts(request: Request) -> list[str]:
    """Return the columns of the judgements, other than their gains, that measures read."""
    read = {C.VALUE: N.VALUES, C.PROPENSITY: N.PROPENSITIES, C.WEIGHT: N.WEIGHTS}
    return [column for column, need in read.items() if need in request.measure_set.needs]


def event_times(request: Request, columns: Collection[str]) -> list[str]:
    """Return the column of the times of judgements, where workers read when they happened."""
    is_needed = request.policies.held_out_duplicates == "last" or request.policies.is_attributed
    return [C.INTERACTED_AT] if is_needed or (request.reads_times and C.INTERACTED_AT in columns) else []


def train_columns(request: Request, columns: Collection[str]) -> list[str]:
    """Return the columns of the training data that move to the users."""
    return [C.USER_ID, C.ITEM_ID, *(name for name in (C.INTERACTED_AT,) if request.reads_times and name in columns)]


def build_job(
    request: Request,
    columns: Collection[str],  # columns of the log that reach the engine; those of one model do not name it
    *,
    needs: frozenset[str],
    models: Sequence[str],  # the models expected, or those of the log
    has_lists: bool,
    judged_columns: Collection[str] = (),  # columns of the judgements; with ``list_id`` they belong to lists
    are_judged: bool = True,  # whether checks judge a rank of 0; where they do not, it is refused
) -> Job:
    """Build the job that the workers do."""
    policies = request.policies
    return Job(
        build_list_rules(request, columns),
        build_outputs(request, averages_lists=has_lists, has_judged_lists=C.LIST_ID in judged_columns),
        models=tuple(models),
        segments=tuple(request.segments),
        absent=dict(request.absent),
        needs=needs,
        depth=description_depth(request.measure_set),
        has_lists=has_lists,
        described=described_inputs(request, needs),
        checks={
            row_kinds.LOG: log_checks(
                columns,
                invalid_scores=policies.invalid_scores,
                own_item=policies.own_item,
                are_judged=are_judged,
                model=(*models, C.ONE_MODEL)[0],
            ),
            row_kinds.UNNAMED: unnamed_checks(columns),
            row_kinds.HELD_OUT: held_out_checks(judged_columns, own_item=policies.own_item),
        },
        rounds_scores=policies.score_precision == "single" and order_column(columns) == C.SCORE,
        drops_unknown=policies.unknown_items == "drop",
    )
