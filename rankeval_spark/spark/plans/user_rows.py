"""From the inputs of an evaluation to the rows that the engine takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.checks import (
    held_out_checks,
    item_checks,
    log_checks,
    segment_checks,
    train_checks,
    user_value_checks,
    user_weight_checks,
)
from rankeval_spark.engine.facts import require_input
from rankeval_spark.engine.planning import (
    SECOND_STEP,
    build_job,
    described_inputs,
    description_depth,
    event_times,
    item_needs,
    judgement_facts,
    log_columns,
    measure_needs,
    reads_optional,
    reads_train,
    train_columns,
)
from rankeval_spark.measures import required_facts as N
from rankeval_spark.spark.plans import item_facts, usable_rows
from rankeval_spark.spark.plans.item_facts import FactFrames
from rankeval_spark.spark.plans.moved_rows import MovedRows, type_name_of, unite_and_exchange

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.checks import RowChecks


_DOUBLE_SCORES: Final = {C.SCORE: ("double",), row_kinds.LISTED_SCORES: ("array<double>", "array<float>")}
"""Types of scores that are doubles, by their column."""


@dataclass(frozen=True)
class InputFrames:
    """Canonical frames of one evaluation date, of the expected models and the sampled users only; None if not given."""

    recommendations: DataFrame
    held_out: DataFrame
    segments: DataFrame | None = None  # numbers in bands; the activity of users, if requested
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
    segment_table: DataFrame | None = None  # the segments as they are given
    unreadable: str | None = None  # column of ``items`` that says where a cell could not be read
    user_values: DataFrame | None = None  # own values of users, with ``model_id`` only where the table has it
    user_weights: DataFrame | None = None

    @property
    def has_judged_lists(self) -> bool:
        return C.LIST_ID in self.held_out.columns

    @property
    def catalogue(self) -> DataFrame | None:
        """A frame whose ``item_id`` are all items: ``items`` or, where there is no such input, ``train``."""
        return self.train if self.items is None else self.items

    @property
    def others(self) -> dict[str, DataFrame]:
        """The inputs that may be left out and are there, as they are given, by name."""
        frames = {"train": self.train, "items": self.items, "segments": self.segment_table}
        frames |= {"user_values": self.user_values, "user_weights": self.user_weights}
        return {name: frame for name, frame in frames.items() if frame is not None}

    def row_checks(self, request: Request) -> dict[str, RowChecks]:
        """Return the checks of the rows of each input that there is, by its name."""
        own_item = request.policies.own_item
        found = [
            log_checks(self.recommendations.columns, own_item=own_item),
            held_out_checks(self.held_out.columns, own_item=own_item),
        ]
        if self.train is not None:
            day, zone = request.evaluation_date, request.time_zone
            found.append(train_checks(self.train.columns, before=day, time_zone=zone))
        if self.items is not None:
            found.append(item_checks(self.items.columns, unreadable=self.unreadable))
        found += [segment_checks()] if self.segment_table is not None else []
        found += [user_value_checks()] if self.user_values is not None else []
        found += [user_weight_checks()] if self.user_weights is not None else []
        return {checks.input: checks for checks in found}


def to_user_rows(
    inputs: InputFrames,
    request: Request,
    *,
    needs: frozenset[str] | None = None,  # facts that are collected; those of measures with a value for each list
    is_aggregated: bool = False,
    is_cached: bool = False,  # whether the results are cached or staged, so that several tables read them
) -> MovedRows:
    """Plan the rows of all users and what the workers do with them.

    `is_aggregated`: whether the results are aggregates, which meet in one place: that no row of the log or of the
    judgements can be used is seen there. For other results the first rows are looked at before the inputs are read.
    """
    needs = measure_needs(request, has_train=inputs.train is not None) if needs is None else needs
    sources = FactFrames(inputs.train, inputs.items, request.evaluation_date, inputs.has_small_catalogue)
    described, of_catalogue = described_inputs(request, needs), item_needs(request, needs)
    of_items = item_facts.to_catalogue_facts(sources, needs=of_catalogue)
    models = model_names(inputs, request)
    # Where items are joined with facts of a large catalogue before they move, each is a row.
    is_joined = of_items is not None and row_kinds.LOG in described
    listed = inputs.recommendations if inputs.lists is None or is_joined else inputs.lists
    log = _log_rows(listed, inputs, request, models)
    when = event_times(request, inputs.held_out.columns)
    judged = inputs.held_out.select(
        *schemas.HELD_OUT.key_in(inputs.held_out.columns), C.GAIN, *judgement_facts(request), *when
    )
    job = build_job(
        request,
        _item_columns(log),
        needs=needs,
        models=models,
        has_lists=not inputs.has_one_list,
        judged_columns=judged.columns,
        are_judged=inputs.are_checked,
    )
    scores = row_kinds.LISTED_SCORES if row_kinds.LISTED_SCORES in log.columns else C.SCORE
    others = {**_segment_and_train_rows(inputs, request, needs), **_user_tables(inputs, request)}
    by_kind = {row_kinds.LOG: log, row_kinds.HELD_OUT: judged, **others}
    if scores in log.columns and type_name_of(log, scores) in _DOUBLE_SCORES[scores]:
        carried = {kind: row_kinds.CARRIED_BY.get(kind, {}) for kind in by_kind if kind != row_kinds.LOG}
        by_kind |= {kind: by_kind[kind].withColumnsRenamed(names) for kind, names in carried.items() if names}
    if of_items is not None:  # facts of a catalogue that is too large for every worker
        names = [name for name in of_items.columns if name != C.ITEM_ID]
        facts = of_items.select(C.ITEM_ID, F.struct(*names).alias(row_kinds.FACTS))
        by_kind |= {kind: by_kind[kind].join(facts, on=[C.ITEM_ID], how="left") for kind in described}
    by_kind |= _cooccurrence_rows(inputs, request, sources, needs)
    counted = _inputs_to_count(inputs, request, needs, is_aggregated=is_aggregated)
    row_counts = usable_rows.to_row_counts(counted) if counted else None
    constants = item_facts.to_constants(sources, needs=of_catalogue, row_counts=row_counts)
    of_judged = by_kind[row_kinds.HELD_OUT].schema  # which always has both ids, of the types of the log
    columns = {name: of_judged[name].dataType for name in (C.USER_ID, C.ITEM_ID)}
    for frame in by_kind.values():
        known = (*columns, row_kinds.KIND)
        columns |= {field.name: field.dataType for field in frame.schema if field.name not in known}
    n_partitions = inputs.cached_partitions if is_cached else None
    moved = unite_and_exchange(by_kind, constants=constants, columns=columns, n_partitions=n_partitions)
    return MovedRows(moved, job, {name: type_name_of(inputs.recommendations, name) for name in (C.USER_ID, C.ITEM_ID)})


def model_names(inputs: InputFrames, request: Request) -> tuple[str, ...]:
    """Return the names of the models: those that are expected, or those that the log names."""
    if request.models is not None:
        return tuple(request.models)
    return inputs.model_names if inputs.has_model_id else (C.ONE_MODEL,)


def _log_rows(log: DataFrame, inputs: InputFrames, request: Request, models: tuple[str, ...]) -> DataFrame:
    """Keep the columns that decide about the lists, with the kind of each row, which may be a list or an item."""
    read = log_columns(_item_columns(log), request, has_lists=not inputs.has_one_list)
    names = [name for name in (*read, *row_kinds.LISTED) if name in log.columns]
    is_unnamed = F.lit(False)
    if len(models) == 1:  # a row that names no model says so by its kind, which costs no column
        is_unnamed = F.col(C.MODEL_ID).isNull()
        names = [name for name in names if name != C.MODEL_ID]
    kind = F.when(is_unnamed, row_kinds.UNNAMED).otherwise(row_kinds.LOG).cast("tinyint").alias(row_kinds.KIND)
    return log.select(kind, *names).withColumnsRenamed(row_kinds.CARRIED_BY[row_kinds.LOG])


def _item_columns(log: DataFrame) -> list[str]:
    """Return the columns that the log has once every item is a row."""
    if row_kinds.LISTED_ITEMS not in log.columns:
        return log.columns
    scores = [C.SCORE] if row_kinds.LISTED_SCORES in log.columns else []
    return [*(name for name in log.columns if name not in row_kinds.LISTED), C.ITEM_ID, *scores, C.RANK]


def _inputs_to_count(
    inputs: InputFrames, request: Request, needs: frozenset[str], *, is_aggregated: bool
) -> list[tuple[DataFrame, RowChecks]]:
    """Collect the inputs whose rows are looked at before they are read, whether one of them can be used."""
    if inputs.are_checked:
        return []
    moved = {} if is_aggregated else {"recommendations": inputs.recommendations, "held_out": inputs.held_out}
    read = {name: one for name, one in inputs.others.items() if reads_optional(request, name, needs)}
    checks = inputs.row_checks(request)
    return [(frame, checks[name]) for name, frame in (moved | read).items()]


def _segment_and_train_rows(inputs: InputFrames, request: Request, needs: frozenset[str]) -> dict[int, DataFrame]:
    """Build the rows of segments and of training data that something reads, by their kind in ``row_kinds``."""
    found: dict[int, DataFrame] = {}
    if inputs.segments is not None and request.segments:
        values = F.array(*(F.col(C.quoted_name(name)).cast("string") for name in request.segments))
        text = F.to_json(F.struct(values.alias(row_kinds.VALUES_IN_TEXT)))
        users = inputs.segments.select(C.USER_ID, text.alias(row_kinds.SEGMENT_VALUES))
        found[row_kinds.SEGMENTS] = users.where(usable_rows.has_keys(C.SEGMENT_KEY))
    if reads_train(request, needs):
        train = require_input(inputs.train)
        rows = train.select(*train_columns(request, train.columns))
        found[row_kinds.TRAIN] = rows.where(usable_rows.has_keys(schemas.TRAIN.key))
    return found


def _user_tables(inputs: InputFrames, request: Request) -> dict[int, DataFrame]:
    """Build the usable rows of own values and of weights of users, such as measures read, by their kind."""
    found, measures = dict[int, DataFrame](), request.measure_set
    if names := measures.user_value_names:
        rows = usable_rows.keep_usable(require_input(inputs.user_values), user_value_checks())
        of_model = [C.MODEL_ID] if C.MODEL_ID in rows.columns else []
        columns = F.col(C.NAME).alias(row_kinds.VALUE_NAME), F.col(C.VALUE).alias(row_kinds.USER_VALUE)
        found[row_kinds.USER_VALUES] = rows.where(F.col(C.NAME).isin(*names)).select(C.USER_ID, *of_model, *columns)
    if N.USER_WEIGHTS in measures.needs:
        rows = usable_rows.keep_usable(require_input(inputs.user_weights), user_weight_checks())
        found[row_kinds.USER_WEIGHTS] = rows.select(C.USER_ID, F.col(C.WEIGHT).alias(row_kinds.USER_VALUE))
    return found


def _cooccurrence_rows(
    inputs: InputFrames, request: Request, sources: FactFrames, needs: frozenset[str]
) -> dict[int, DataFrame]:
    """Rows of co-occurrence, which are made of the ranked items: the log is ranked once more for them."""
    if needs.isdisjoint(SECOND_STEP):
        return {}
    depth, found = description_depth(request.measure_set), {}
    plain, once = request.copy_with(slices=()), replace(inputs, are_checked=True)  # others refuse unusable rows
    lists = to_user_rows(once, plain, needs=frozenset()).to_item_lists(depth=depth)
    if N.ITEM_FAMILIARITY in needs:
        familiarity = item_facts.to_familiarity(lists, sources=sources, depth=depth)
        found[row_kinds.FAMILIARITY] = familiarity.withColumnRenamed(N.ITEM_FAMILIARITY, row_kinds.SIMILARITY)
    if N.ITEM_PAIRS in needs:
        found[row_kinds.PAIRS] = item_facts.to_pairs(lists, sources=sources, depth=depth)
    return found
