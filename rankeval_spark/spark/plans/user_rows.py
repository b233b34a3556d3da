"""From the inputs of an evaluation to the rows that the engine takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, functions as F, types as T

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.planning import (
    SECOND_STEP,
    depth_of,
    described_inputs,
    item_needs,
    job_of,
    judgement_facts,
    log_columns,
    needs_of,
    reads_event_times,
    reads_optional,
    reads_train,
)
from rankeval_spark.measures import required_facts as N
from rankeval_spark.spark.plans import cooccurrence, item_facts, usable_rows
from rankeval_spark.spark.plans.item_facts import FactFrames
from rankeval_spark.spark.plans.moved_rows import MovedRows, type_of, unite

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request


@dataclass(frozen=True)
class InputFrames:
    """Canonical frames of one evaluation date, of the expected models and the sampled users only.

    `recommendations, held_out, segments, train, items`: rows of the schemas of these names; the last three are None
    where they are not given.
    """

    recommendations: DataFrame
    held_out: DataFrame
    segments: DataFrame | None = None
    has_one_list: bool = False  # whether the log has no ``list_id``: no user has several lists of a model
    train: DataFrame | None = None
    items: DataFrame | None = None
    has_small_catalogue: bool = False  # whether ``items`` are known to fit into the memory of every task
    band_facts: tuple[DataFrame, ...] = ()  # what the checks count of numbers that became segments
    has_model_id: bool = True  # whether the log names its models; without names it has one
    # Whether checks look at the inputs before anything is evaluated. Where they do not, the workers refuse an input
    # that has rows and none that can be used.
    are_checked: bool = True
    # Partitions that the rows go into where what is made of them is kept; as Spark decides where it is None
    cached_partitions: int | None = None
    # Names of the models that have usable rows in the log, where they were looked up because none are expected
    model_names: tuple[str, ...] = ()
    # The log with one row per list, where it is one, see :attr:`inputs.spark.Source.lists`. The exchange moves it in
    # place of `recommendations`.
    lists: DataFrame | None = None

    @property
    def has_judged_lists(self) -> bool:
        """Whether judgements belong to the lists that they name."""
        return C.LIST_ID in self.held_out.columns

    @property
    def catalogue(self) -> DataFrame | None:
        """A frame whose ``item_id`` are all items: ``items`` or, where there is no such input, ``train``."""
        return self.train if self.items is None else self.items


def to_user_rows(
    inputs: InputFrames,
    request: Request,
    *,
    needs: frozenset[str] | None = None,
    is_aggregated: bool = False,
    is_cached: bool = False,
    counts_rows: bool = False,
) -> MovedRows:
    """Plan the rows of all users and what the workers do with them.

    `needs`: facts that are collected; those that measures with a value for each list read where left out.
    `is_aggregated`: whether the results are aggregates, which meet in one place: unusable rows are counted there. For
    other results the first of them are counted before the inputs are read. `is_cached`: whether the results are cached
    or staged, so that several tables read them. `counts_rows`: whether unusable rows reach the workers, who count them,
    although checks look at the inputs.
    """
    needs = needs_of(request, has_train=inputs.train is not None) if needs is None else needs
    sources = _sources(inputs, request)
    marks_unusable = (counts_rows or not inputs.are_checked) and can_mark_unusable(request)
    lists = _lists_to_move(inputs, request, needs)
    if lists is not None:
        log = _list_rows(lists, inputs, request, marks_unusable=marks_unusable)
    else:
        usable = _marked_log(inputs, request) if marks_unusable else _usable_log(inputs, request)
        log = _log_rows(usable, inputs, request)
    names = model_names(inputs, request)
    if len(names) == 1:
        log = log.drop(C.MODEL_ID)
    log = log.withColumnRenamed(C.RECOMMENDED_AT, C.INTERACTED_AT)  # one column carries all times
    judged = _held_out_rows(inputs, request, marks_unusable=counts_rows or not inputs.are_checked)
    if _has_double_scores(log):  # one column less for every row to carry
        judged = judged.withColumnRenamed(C.GAIN, C.SCORE)
    by_kind = {row_kinds.LOG: log, row_kinds.HELD_OUT: judged}
    by_kind |= _segment_and_train_rows(inputs, request, needs)
    by_kind = _with_facts(by_kind, sources, needs) | _cooccurrence_rows(inputs, request, sources, needs)
    counted = _counted_first(inputs, request, needs, is_aggregated=is_aggregated)
    job = job_of(
        request,
        _columns_of_items(log),
        needs=needs,
        models=names,
        has_lists=not inputs.has_one_list,
        has_judged_lists=inputs.has_judged_lists,
    )
    constants = item_facts.to_constants(
        sources,
        needs=item_needs(needs),
        row_counts=usable_rows.to_row_counts(counted) if counted else None,
    )
    return MovedRows(
        unite(
            by_kind,
            constants=constants,
            columns=_columns(by_kind),
            n_partitions=inputs.cached_partitions if is_cached else None,
        ),
        job,
        {name: type_of(inputs.recommendations, name) for name in (C.USER_ID, C.ITEM_ID)},
    )


def _sources(inputs: InputFrames, request: Request) -> FactFrames:
    return FactFrames(inputs.train, inputs.items, request.evaluation_date, inputs.has_small_catalogue)


def model_names(inputs: InputFrames, request: Request) -> tuple[str, ...]:
    """Return the names of the models: those that are expected, or those that the log names."""
    if request.models is not None:
        return tuple(request.models)
    return inputs.model_names if inputs.has_model_id else (C.ONE_MODEL,)


def _lists_to_move(inputs: InputFrames, request: Request, needs: frozenset[str]) -> DataFrame | None:
    """Return the log with one row per list; None where it has none, or where its items are joined before they move."""
    of_items = item_facts.to_catalogue_facts(_sources(inputs, request), needs=item_needs(needs))
    is_joined = of_items is not None and row_kinds.LOG in described_inputs(needs)
    return None if is_joined or request.policies.unknown_items == "drop" else inputs.lists


def _list_rows(lists: DataFrame, inputs: InputFrames, request: Request, *, marks_unusable: bool) -> DataFrame:
    """Keep the lists with their keys, in the columns that decide about them; the engine looks at their items."""
    policies = request.policies
    has_keys = usable_rows.has_keys(C.LIST_KEY)
    if marks_unusable:
        lists = lists.transform(usable_rows.with_kind, kind=row_kinds.LOG, rules={row_kinds.NULL_KEYS: ~has_keys})
    else:
        lists = lists.where(has_keys)
    if policies.score_precision == "single" and row_kinds.LISTED_SCORES in lists.columns:
        single = F.col(row_kinds.LISTED_SCORES).cast("array<float>")
        lists = lists.withColumn(row_kinds.LISTED_SCORES, single)
    columns = log_columns(_columns_of_items(lists), request, has_lists=not inputs.has_one_list)
    of_list = [name for name in columns if name not in (C.ITEM_ID, C.SCORE, C.RANK)]
    return lists.select(*of_list, *(name for name in (*row_kinds.LISTED, row_kinds.KIND) if name in lists.columns))


def _columns_of_items(log: DataFrame) -> list[str]:
    """Return the columns that the log has once every item is a row."""
    if row_kinds.LISTED_ITEMS not in log.columns:
        return log.columns
    scores = [C.SCORE] if row_kinds.LISTED_SCORES in log.columns else []
    return [*(name for name in log.columns if name not in row_kinds.LISTED), C.ITEM_ID, *scores, C.RANK]


def _has_double_scores(log: DataFrame) -> bool:
    if row_kinds.LISTED_SCORES in log.columns:
        return type_of(log, row_kinds.LISTED_SCORES) in ("array<double>", "array<float>")
    return C.SCORE in log.columns and type_of(log, C.SCORE) == "double"


def _usable_log(inputs: InputFrames, request: Request) -> DataFrame:
    """Keep the rows that can be placed in a list."""
    policies = request.policies
    log = inputs.recommendations.transform(
        usable_rows.keep_usable_recommendations, invalid_scores=policies.invalid_scores
    )
    return log.transform(usable_rows.with_score_precision, precision=policies.score_precision)


def can_mark_unusable(request: Request) -> bool:
    """Return True if unusable rows can travel with the others: their items need not be known."""
    return request.policies.unknown_items == "keep"


def _marked_log(inputs: InputFrames, request: Request) -> DataFrame:
    """Mark the rows of the log that cannot be used."""
    policies = request.policies
    log = inputs.recommendations.transform(
        usable_rows.or_fail_at_invalid_scores, invalid_scores=policies.invalid_scores
    )
    log = log.transform(usable_rows.with_kind, kind=row_kinds.LOG, rules=usable_rows.flag_recommendations(log))
    return log.transform(usable_rows.with_score_precision, precision=policies.score_precision)


def _counted_first(
    inputs: InputFrames, request: Request, needs: frozenset[str], *, is_aggregated: bool
) -> dict[str, tuple[DataFrame, Mapping[str, Column]]]:
    """Collect the inputs whose unusable rows are counted before they are read, with the checks of their rows."""
    if inputs.are_checked:
        return {}
    log, held_out, segments = inputs.recommendations, inputs.held_out, inputs.segments
    found: dict[str, tuple[DataFrame, Mapping[str, Column]]] = {}
    if not is_aggregated or not can_mark_unusable(request):
        found[row_kinds.NAMES[row_kinds.LOG]] = (log, usable_rows.flag_recommendations(log))
    if not is_aggregated:
        found[row_kinds.NAMES[row_kinds.HELD_OUT]] = (held_out, usable_rows.flag_held_out(held_out))
        if segments is not None and reads_optional(request, "segments", needs):
            found[row_kinds.NAMES[row_kinds.SEGMENTS]] = (segments, usable_rows.flag_keys(C.SEGMENT_KEY))
    if inputs.train is not None and reads_optional(request, "train", needs):
        found["train"] = (inputs.train, usable_rows.flag_train())
    if inputs.items is not None and reads_optional(request, "items", needs):
        found["items"] = (inputs.items, usable_rows.flag_keys(schemas.ITEMS.key))
    return found


def _log_rows(log: DataFrame, inputs: InputFrames, request: Request) -> DataFrame:
    """Keep the rows that enter lists, in the columns that decide about them."""
    if request.policies.unknown_items == "drop":
        is_small = inputs.has_small_catalogue and inputs.items is not None
        log = log.transform(usable_rows.keep_known, catalogue=_sources(inputs, request).catalogue, is_small=is_small)
    names = log_columns(log.columns, request, has_lists=not inputs.has_one_list)
    return log.select(*names, *([row_kinds.KIND] if row_kinds.KIND in log.columns else []))


def _with_facts(by_kind: dict[int, DataFrame], sources: FactFrames, needs: frozenset[str]) -> dict[int, DataFrame]:
    """Let the facts of a catalogue that is too large for every worker travel with the rows of its items."""
    of_items = item_facts.to_catalogue_facts(sources, needs=item_needs(needs))
    if of_items is None:
        return by_kind
    names = [name for name in of_items.columns if name != C.ITEM_ID]
    facts = of_items.select(C.ITEM_ID, F.struct(*names).alias(row_kinds.FACTS))
    described = {kind: by_kind[kind].join(facts, on=[C.ITEM_ID], how="left") for kind in described_inputs(needs)}
    return by_kind | described


def _held_out_rows(inputs: InputFrames, request: Request, *, marks_unusable: bool) -> DataFrame:
    judged = inputs.held_out
    if marks_unusable:
        judged = judged.transform(
            usable_rows.with_kind, kind=row_kinds.HELD_OUT, rules=usable_rows.flag_held_out(judged)
        )
    else:
        judged = judged.transform(usable_rows.keep_usable_held_out)
    when = [C.INTERACTED_AT] if reads_event_times(request) else []
    kind = [row_kinds.KIND] if marks_unusable else []
    key = schemas.HELD_OUT.key_in(judged.columns)
    return judged.select(*key, C.GAIN, *judgement_facts(request), *when, *kind)


def _segment_and_train_rows(inputs: InputFrames, request: Request, needs: frozenset[str]) -> dict[int, DataFrame]:
    """Rows of segments and training data, each only where something reads it."""
    found: dict[int, DataFrame] = {}
    if inputs.segments is not None and request.segments:
        values = F.array(*(F.col(C.quoted_name(name)).cast("string") for name in request.segments))
        text = F.to_json(F.struct(values.alias(row_kinds.VALUES_IN_TEXT)))
        users = inputs.segments.select(C.USER_ID, text.alias(row_kinds.SEGMENT_VALUES))
        if inputs.are_checked:
            found[row_kinds.SEGMENTS] = users.where(usable_rows.has_keys(C.SEGMENT_KEY))
        else:
            rules = usable_rows.flag_keys(C.SEGMENT_KEY)
            found[row_kinds.SEGMENTS] = users.transform(usable_rows.with_kind, kind=row_kinds.SEGMENTS, rules=rules)
    if reads_train(request, needs):
        train = item_facts.require_input(inputs.train)
        found[row_kinds.TRAIN] = train.select(*schemas.TRAIN.key).where(usable_rows.has_keys(schemas.TRAIN.key))
    return found


def _cooccurrence_rows(
    inputs: InputFrames, request: Request, sources: FactFrames, needs: frozenset[str]
) -> dict[int, DataFrame]:
    """Rows of co-occurrence, which are made of the ranked items: the log is ranked once more for them."""
    if needs.isdisjoint(SECOND_STEP):
        return {}
    depth, found = depth_of(request.measure_set), {}
    plain = request.changed(slices=())
    once = replace(inputs, are_checked=True)  # unusable rows are counted elsewhere
    lists = to_user_rows(once, plain, needs=frozenset()).to_item_lists(depth=depth)
    if N.ITEM_FAMILIARITY in needs:
        familiarity = cooccurrence.to_familiarity(lists, sources=sources, depth=depth)
        found[row_kinds.FAMILIARITY] = familiarity.withColumnRenamed(N.ITEM_FAMILIARITY, row_kinds.SIMILARITY)
    if N.ITEM_PAIRS in needs:
        found[row_kinds.PAIRS] = cooccurrence.to_pairs(lists, sources=sources, depth=depth)
    return found


def _columns(by_kind: dict[int, DataFrame]) -> dict[str, T.DataType]:
    """Collect the columns of all inputs with their types."""
    judged = by_kind[row_kinds.HELD_OUT].schema  # which always has both, of the types of the log
    found = {name: judged[name].dataType for name in (C.USER_ID, C.ITEM_ID)}
    for frame in by_kind.values():
        found |= {field.name: field.dataType for field in frame.schema if field.name not in (*found, row_kinds.KIND)}
    return found
