"""The host on Spark: plans of DataFrames, and jobs that make sums of them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import StorageLevel, cloudpickle
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.facts import require_input
from rankeval_spark.engine.planning import counted_needs, judgement_facts, measure_needs
from rankeval_spark.errors import Fault, InputError, kind_of, warn_user
from rankeval_spark.hosts.host import NUMBER, Host
from rankeval_spark.inputs.input_columns import IS_UNPARSABLE, read_inputs, refuse_missing
from rankeval_spark.inputs.spark.probes import cached_partitions, estimated_bytes
from rankeval_spark.inputs.spark.reading import Source, Sources, from_frame, read_all, unite_models
from rankeval_spark.refusals import raise_as_call
from rankeval_spark.result_rows import check_rows
from rankeval_spark.spark.plans import bands, result_frames, usable_rows, user_rows
from rankeval_spark.spark.plans.user_rows import InputFrames
from rankeval_spark.spark.session.builder import require_packages
from rankeval_spark.spark.session.machine_checks import require_packages_of_cluster
from rankeval_spark.sums.check_counts import to_list_facts
from rankeval_spark.sums.examples import to_titles
from rankeval_spark.sums.exposures import TRAIN
from rankeval_spark.sums.grouping import n_buckets_of
from rankeval_spark.sums.input_checks import ROWS, InputChecks, InputCounts
from rankeval_spark.sums.input_warnings import warn_if_nothing_is_measured
from rankeval_spark.sums.sums import ITEMS, LISTS, NO_WRITERS, USER_ROWS, Files, ListTotals

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql import SparkSession

    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.inputs import FrameInputs
    from rankeval_spark.config.request import Request
    from rankeval_spark.config.slicing import Band
    from rankeval_spark.engine.job import Job
    from rankeval_spark.hosts.host import Advance
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.report.result_table import ResultTable
    from rankeval_spark.schemas import Schema
    from rankeval_spark.spark.plans.moved_rows import MovedRows
    from rankeval_spark.sums.sums import Sum, Writer


SMALL_CATALOGUE: Final = 32 << 20
"""Bytes up to which the catalogue is sent to every task: some 100,000 items with 32 numbers each."""

MAX_TYPOS: Final = 2  # letters in which an id may differ from the one that was meant
MAX_SIMILAR: Final = 20  # such ids that are read


def of_call(
    frames: Mapping[str, object],  # the inputs by their names; None where one is not given
    request: Request,
    inputs: FrameInputs,  # how each of them is read
) -> OnSpark:
    """Plan the inputs of a call of ``evaluate``; no Spark job starts."""
    expected = "a DataFrame of Spark"

    def read(name: str, frame: object, schema: Schema) -> Source:
        if not isinstance(frame, DataFrame):
            fix = "spark.createDataFrame makes one of a pandas DataFrame, spark.read of files"
            raise InputError(Fault(name, f"a {kind_of(frame)}", expected, fix))
        return from_frame(name, frame, schema, getattr(inputs, schema.name), request.time_zone)

    with raise_as_call():
        sources = Sources(**read_inputs(frames, request, read, unite_models, expected=expected))
    if sources.user_values and not request.measure_set.user_value_names:
        warn_user("user_values= is given and not used; measures=[\"UserValue(name='revenue')\"] reads a value")
    require_packages(sources.recommendations.frame.sparkSession)
    return OnSpark(sources, request, are_checked=False)


def of_config(spark: SparkSession, config: EvaluationConfig, request: Request, date: dt.date) -> OnSpark:
    """Plan the inputs of a config on one date."""
    return OnSpark(read_all(spark, config, date), request, are_checked=False)


class OnSpark(Host[DataFrame]):
    """Canonical frames; rows of users and items are plans, sums are made by jobs."""

    is_on_spark = True

    def __init__(
        self, sources: Sources, request: Request, *, sample_share: float = 1.0, are_checked: bool = True
    ) -> None:
        self.given = inputs_of(sources, request, sample_share=sample_share, are_checked=are_checked)
        self.request = request
        self._sources, self._sample_share = sources, sample_share
        _send_own_code(request.measure_set)
        self._kept: list[DataFrame] = []  # packed rows, while they are kept

    @cached_property
    def inputs(self) -> InputFrames:
        """The inputs with the names of the models: one job with the first result, none where they are expected."""
        require_packages_of_cluster(self.given.recommendations.sparkSession)
        return with_model_names(self.given, self.request)

    @property
    def models(self) -> Sequence[str]:
        return user_rows.model_names(self.inputs, self.request)

    @property
    def has_one_list(self) -> bool:
        return self.given.has_one_list

    @property
    def given_columns(self) -> Mapping[str, Collection[str]]:
        return {source.name: source.given for source in self._sources.all()}

    def describe_users(self) -> tuple[dict[str, tuple[int, bool]], list[str]]:
        frame, values, found = self.given.segment_table, self.given.user_values, dict[str, tuple[int, bool]]()
        names = [] if frame is None else [name for name in frame.columns if name != C.USER_ID]
        if frame is not None and names:
            texts = [F.col(C.quoted_name(name)).cast("string") for name in names]
            counts = [*map(F.approx_count_distinct, texts), *(F.bool_and(text.rlike(NUMBER)) for text in texts)]
            (row,) = frame.agg(*counts).collect()
            found = {name: (row[n], bool(row[len(names) + n])) for n, name in enumerate(names)}
        if values is None:
            return found, []
        own = values.select(C.NAME).dropna().distinct().sort(C.NAME).limit(MAX_SIMILAR).collect()
        return found, [row[0] for row in own]

    def for_request(self, request: Request) -> OnSpark:
        return OnSpark(self._sources, request, sample_share=self._sample_share)

    @property
    def job(self) -> Job:
        return self._rows.job

    @property
    def counts_inputs(self) -> bool:
        return True

    @cached_property
    def input_checks(self) -> InputChecks:
        given, row_checks = self.given, self.given.row_checks(self.request)
        return InputChecks(self.request, row_checks, bool(given.band_facts), given.are_checked)

    def totals(
        self,
        sums: Mapping[str, Sum],
        writers: Mapping[str, Writer] = NO_WRITERS,
        advance: Advance | None = None,  # noqa: ARG002 - jobs have their own progress
    ) -> dict[str, pa.Table]:
        is_kept = bool(self._kept) and not writers and sums.keys() <= self.sums.keys()
        rows = self._moved(is_cached=True) if writers else self._rows  # so that few rows are added up in one order
        packed = self._kept[0] if is_kept else self._packed(rows, sums, writers=writers)
        found = self._merged(packed, {**sums, **dict.fromkeys(writers, Files())})
        for name, writer in writers.items():
            writer.adopt(found.pop(name))
        return found

    def input_totals(self) -> dict[str, pa.Table]:
        plain, needs = self.request.copy_with(slices=()), self._counted_needs
        rows = user_rows.to_user_rows(self.inputs, plain, needs=needs, is_aggregated=True)
        sums = self.input_checks.sums
        counts = InputCounts(rows.job, sums)
        return self._merged(result_frames.to_packed(rows.frame, counts, n_buckets=self._n_buckets), sums)

    @cached_property
    def _rows(self) -> MovedRows:
        """The rows of all users on their way to the sums."""
        return self._moved(is_cached=False)

    @property
    def _counted_needs(self) -> frozenset[str]:
        return counted_needs(self.request, has_train=self.given.train is not None)

    def _moved(self, *, is_cached: bool) -> MovedRows:
        """Plan the exchange that brings all rows of a user together."""
        needs = (
            measure_needs(self.request, has_train=self.given.train is not None, of_all_lists=True) | self._counted_needs
        )
        return user_rows.to_user_rows(self.inputs, self.request, needs=needs, is_aggregated=True, is_cached=is_cached)

    def _packed(
        self,
        rows: MovedRows,
        sums: Mapping[str, Sum],
        *,
        keeps_users: bool = False,
        writers: Mapping[str, Writer] = NO_WRITERS,
    ) -> DataFrame:
        """Plan the one pass over the users: partial rows of sums, and user rows or tables to be written."""

        def items_of(catalogue: str) -> DataFrame:
            if catalogue == TRAIN or self.given.items is None:
                train = require_input(self.given.train)
                return train.where(usable_rows.has_keys(schemas.TRAIN.key)).select(C.ITEM_ID)
            return self.given.items.select(C.ITEM_ID)

        tables = (USER_ROWS,) if keeps_users else tuple(writers)
        totals = ListTotals(rows.job, sums, tables, has_text_ids=bool(writers))
        packed = result_frames.to_packed(rows.frame, totals, writers, self._n_buckets)
        return result_frames.with_catalogues(packed, sums, items_of, self._n_buckets)

    def _merged(self, packed: DataFrame, sums: Mapping[str, Sum]) -> dict[str, pa.Table]:
        """Merge what workers added up, and what is counted of the other inputs."""
        n_buckets = self._n_buckets
        if ITEMS in sums:
            others = result_frames.pack_input_partials(self.inputs, self.input_checks, n_buckets)
            packed = packed if others is None else packed.unionByName(others)
        return result_frames.to_totals(packed, sums, n_buckets)

    @cached_property
    def _n_buckets(self) -> int:
        """Buckets in which partial rows meet: one number, since rows that are kept were packed by it."""
        usual = self.given.recommendations.sparkSession.conf.get("spark.sql.shuffle.partitions") or ""
        return n_buckets_of(int(usual) if usual.isdecimal() else 0)

    @property
    def user_metrics(self) -> DataFrame:
        if self._kept:
            return result_frames.to_rows(self._kept[0], USER_ROWS, self._rows.user_types, counts=self.sums[ROWS])
        return user_rows.to_user_rows(self.inputs, self.request).to_user_rows()

    @property
    def user_values(self) -> DataFrame:
        requested = [(measure.label, measure.column, measure.k) for measure in self.request.measure_set.per_list]
        return result_frames.to_user_values(self.user_metrics, requested=requested)

    @property
    def ranked_items(self) -> DataFrame:
        return result_frames.to_ranked_items(self.inputs, request=self.request)

    @property
    def judged(self) -> DataFrame:
        held_out = self.given.held_out
        return held_out.select(*schemas.HELD_OUT.key_in(held_out.columns), C.GAIN)

    def titles(self, items: Sequence[str]) -> dict[str, str]:
        frame = self.given.items
        if frame is None or C.TITLE not in frame.columns or not items:
            return {}
        named = frame.select(F.col(C.ITEM_ID).cast("string"), C.TITLE)
        return to_titles(named.where(F.col(C.ITEM_ID).isin(*items)).toArrow())

    def of_users(self, users: Sequence[str], request: Request) -> OnSpark:
        def keep_users(frame: DataFrame) -> DataFrame:
            """Compare ids in their own type, so that files are skipped which do not have them."""
            is_text = dict(frame.dtypes)[C.USER_ID] == "string"
            wanted = users if is_text else [int(user) for user in users if user.removeprefix("-").isdecimal()]
            return frame.where(F.col(C.USER_ID).isin(*wanted))

        def keep(source: Source) -> Source:
            lists = None if source.lists is None else keep_users(source.lists)
            return replace(source, frame=keep_users(source.frame), lists=lists)

        log, held_out = keep(self._sources.recommendations), keep(self._sources.held_out)
        kept = replace(self._sources, recommendations=log, held_out=held_out)
        return OnSpark(kept, request, sample_share=self._sample_share)

    def similar_users(self, user: str) -> Sequence[str]:
        log = self.given.recommendations if self.given.lists is None else self.given.lists
        ids = (frame.select(F.col(C.USER_ID).cast("string")) for frame in (log, self.given.held_out))
        near = reduce(DataFrame.union, ids).distinct().where(F.levenshtein(C.USER_ID, F.lit(user)) <= MAX_TYPOS)
        return [str(row[0]) for row in near.sort(C.USER_ID).limit(MAX_SIMILAR).collect()]

    def hit_ranks(self, ranked: DataFrame, model: str, baseline: str) -> DataFrame:
        return result_frames.to_hit_ranks(ranked, model, baseline)

    def agreement(self, baseline: str, *, k: int, p: float) -> DataFrame:
        return result_frames.to_agreement(self.inputs, request=self.request, baseline=baseline, k=k, p=p)

    def warn(self, metrics: pa.Table, totals: Mapping[str, pa.Table]) -> None:
        facts = [*self.input_facts(totals), *to_list_facts(totals[LISTS], self.request)]
        warn_if_nothing_is_measured(metrics, facts, self.request)

    def frame(self, table: ResultTable) -> DataFrame:
        found = table.to_arrow()
        # Spark loses rows next to an empty chunk, and refuses a table without chunks.
        empty = pa.RecordBatch.from_pylist([], schema=found.schema)
        rows = found.combine_chunks() if found.num_rows else pa.Table.from_batches([empty])
        return self.given.recommendations.sparkSession.createDataFrame(rows)

    def keep(self) -> None:
        if not self._kept:  # what does not fit into memory goes to disk
            packed = self._packed(self._moved(is_cached=True), self.sums, keeps_users=True)
            self._kept.append(packed.persist(StorageLevel.MEMORY_AND_DISK))

    def release(self) -> None:
        for packed in self._kept:
            packed.unpersist()
        self._kept.clear()


def _send_own_code(measures: MeasureSet) -> None:
    """Have functions of modules that are files of the user travel to the workers, which import installed packages."""
    for name in {one.entry.kernel.__module__ for one in measures.measures if not one.entry.is_builtin} - {"__main__"}:
        module, file = sys.modules.get(name), getattr(sys.modules.get(name), "__file__", None) or ""
        if module is not None and file and not any(part in _INSTALLED for part in Path(file).parts):
            top = sys.modules.get(name.partition(".")[0], module)
            cloudpickle.register_pickle_by_value(top)  # type: ignore[no-untyped-call]  # it has no types


_INSTALLED: Final = ("site-packages", "dist-packages")


def inputs_of(
    sources: Sources, request: Request, *, sample_share: float = 1.0, are_checked: bool = True
) -> InputFrames:
    """Return what the stages need of the sources; ``are_checked`` is that of :class:`InputFrames`.

    Raises InputError if a policy or the expected models need a column that the log does not have, or a measure an input
    or a column of one; all faults at once.
    """
    refuse_missing(sources.all(), request)
    log, held_out, train, items = sources.recommendations, sources.held_out, sources.train, sources.items

    def sampled(frame: DataFrame) -> DataFrame:
        return usable_rows.keep_sample(frame, share=sample_share)

    # Columns that decide nothing are dropped, so that the order of a list is known from its columns: those that the
    # table does not have, and the scores where ranks order the lists.
    ignores_scores = request.policies.ignores_scores and C.RANK in log.given
    unordered = [C.SCORE] if ignores_scores or C.SCORE not in log.given else []
    unordered += [C.RANK] if C.RANK not in log.given else []
    lists = log.lists
    if lists is not None:
        lists = lists.drop(row_kinds.LISTED_SCORES) if ignores_scores else lists
        lists = sampled(usable_rows.keep_models(lists, names=request.models))
    # Values, propensities and weights that no measure reads, and lists that judgements do not name.
    unread = {C.VALUE, C.PROPENSITY, C.WEIGHT} - {*judgement_facts(request)}
    unread |= set() if C.LIST_ID in held_out.given else {C.LIST_ID}
    trained = None if train is None else train.frame
    if (
        train is not None and C.INTERACTED_AT not in train.given
    ):  # so that nothing is said about times that are not there
        trained = train.frame.drop(C.INTERACTED_AT)
    segments, numbers = sources.segments.frame if sources.segments else None, _numbers_of(sources, request)
    banded = {name: bands.with_bands(frame, bands=rules) for name, frame, rules in numbers}
    of_users = [frame for frame in (banded.pop(check_rows.SEGMENTS, segments), *banded.values()) if frame is not None]
    values = sources.user_values
    unnamed = () if values is None or C.MODEL_ID in values.given else (C.MODEL_ID,)
    return InputFrames(
        sampled(usable_rows.keep_models(log.frame.drop(*unordered), names=request.models)),
        sampled(held_out.frame.drop(*unread)),
        reduce(partial(bands.join_segments, absent=request.absent), of_users) if of_users else None,
        C.LIST_ID not in log.given,
        # All of it, whatever the sample: the popularity of an item does not depend on who is evaluated.
        trained,
        items.frame if items else None,
        items is not None and estimated_bytes(items) <= SMALL_CATALOGUE,
        tuple(bands.to_facts(frame, bands=rules, name=name) for name, frame, rules in numbers),
        C.MODEL_ID in log.given,
        are_checked,
        cached_partitions(log, held_out),
        lists=lists,
        segment_table=segments,
        unreadable=IS_UNPARSABLE if items and IS_UNPARSABLE in items.frame.columns else None,
        user_values=None if values is None else sampled(values.frame.drop(*unnamed)),
        user_weights=None if sources.user_weights is None else sampled(sources.user_weights.frame),
    )


def _numbers_of(sources: Sources, request: Request) -> list[tuple[str, DataFrame, dict[str, Band]]]:
    """List the inputs whose numbers become segments: name, users with their numbers, and the bands."""
    found = []
    for source in sources.all():
        if rules := request.slicing.bands_from(source.name):
            is_computed = source.name != check_rows.SEGMENTS
            frame = bands.to_numbers(source.frame, bands=rules) if is_computed else source.frame
            found.append((source.name, frame, rules))
    return found


def with_model_names(inputs: InputFrames, request: Request) -> InputFrames:
    """Add the names of the models of the log, where none are expected: one job that reads one column.

    A model none of whose rows can be used is one of them: it has no list, and all of its users are missing.
    """
    if request.models is not None or not inputs.has_model_id:
        return inputs
    log = inputs.recommendations if inputs.lists is None else inputs.lists
    names = log.select(C.MODEL_ID).where(F.col(C.MODEL_ID).isNotNull()).distinct().collect()  # few
    return replace(inputs, model_names=tuple(sorted(row[0] for row in names)))
