"""Nights that are published without Spark: evaluated in this process, committed as a run commits them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps import gates
from rankeval_spark.apps.nightly.night_plan import evaluation_name
from rankeval_spark.config import FrameInputs
from rankeval_spark.config.evaluation_config import DEFAULTS_VERSION
from rankeval_spark.config.request import request_of
from rankeval_spark.evaluation import Evaluation
from rankeval_spark.hosts import in_process
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import delta_log, journal, tables
from rankeval_spark.results.result_tables import ResultTables
from rankeval_spark.results.run_record import RunRecord, measure_facts
from rankeval_spark.results.storage import Storage
from tests.support import nights
from tests.support.delta_tables import write_by_night

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from rankeval_spark.config import EvaluationConfig

Frames = dict[str, pa.Table]


def frames_of(day: date, *names: str) -> Frames:
    """Give some inputs of the small workspace of a date; all three where none is named."""
    rows = {
        "recommendations": nights.recommendations(),
        "held_out": nights.held_out(),
        "segments": nights.segments(),
    }
    return {name: nights.arrow_of(nights.of_date(rows[name], day)) for name in names or rows}


class Root:
    """A results root of a test, on a local disk."""

    def __init__(self, root: str, config: EvaluationConfig, *, sample_share: float = 1.0) -> None:
        self.root = root
        self._sample_share = sample_share
        self._config = config
        self._storage = Storage(root)
        self._tables = ResultTables(self._storage)
        for schema in tables.missing_tables(self._storage):
            tables.create_table(self._storage, schema)

    def publish(
        self,
        day: date,
        frames: Frames,
        *,
        run_id: str,
        config: EvaluationConfig | None = None,
        until: str | None = None,
    ) -> dict[str, int]:
        """Publish a night; or die before the table ``until`` is written, or before the commit where it is ``runs``.

        Returns
        -------
        dict
            Version of each table.
        """
        config = config or self._config
        facts = _facts(config, day, run_id, self._sample_share)
        found = _tables(config, day, frames)
        n_rows = {name: rows.num_rows for name, rows in found.items()}
        event = journal.run_event(facts, journal.PUBLISHING, n_rows=n_rows)
        self.record(event)
        versions: dict[str, int] = {}
        for schema in schemas.PUBLISHED:
            if schema.name == until:
                return versions
            if schema.name in found:
                self._replace(schema.name, facts, found[schema.name])
            versions[schema.name] = delta_log.latest_version(self._storage, schema.name)
        if until != schemas.RUNS.name:
            self.record({**event, "status": journal.PUBLISHED, "table_versions": versions})
        return versions

    def publish_nothing(self, day: date, *, run_id: str, reason: str) -> None:
        """Publish a night on which there was nothing to measure."""
        versions = {schema.name: delta_log.latest_version(self._storage, schema.name) for schema in schemas.PUBLISHED}
        facts = _facts(self._config, day, run_id)
        self.record(journal.run_event(facts, journal.PUBLISHED, reason=reason, table_versions=versions))

    def record(self, event: journal.Event) -> None:
        """Append an event, a second later than the one before."""
        version = delta_log.latest_version(self._storage, schemas.RUNS.name)
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=version)
        self._tables.append_events([{**event, "recorded_at": at}], tag=event["run_id"], after=version)

    def _replace(self, table: str, facts: RunRecord, rows: pa.Table) -> None:
        if table == schemas.USER_METRICS.name:
            columns = columns_json(schemas.USER_METRICS, facts.measure_fields())
            measured = tables.measure_columns(columns)
            self._tables.add_columns(table, measured)
        declared = pa.schema(deltalake.DeltaTable(f"{self.root}/{table}").schema().to_arrow())
        written = write_by_night(self._storage, table, _conformed(rows, declared, facts), run_id=facts.run_id)
        self._tables.replace_night(table, facts.night, facts.run_id, written)


def _facts(config: EvaluationConfig, day: date, run_id: str, sample_share: float = 1.0) -> RunRecord:
    return RunRecord(
        evaluation_name(config, sample_share),
        day,
        run_id,
        config=config.public_json(),
        config_hash=config.config_hash,
        defaults_version=DEFAULTS_VERSION,
        code_version="test",
        sample_share=sample_share,
        measures=measure_facts(config.measure_set, config.policies),
    )


def _tables(config: EvaluationConfig, day: date, frames: Frames) -> dict[str, pa.Table]:
    """Compute what a run publishes, but for the lists, which have no in-process form."""
    names = ("recommendations", "held_out", "segments", "train", "items")
    given: Mapping[str, Any] = {name: frames.get(name) for name in names}
    result = Evaluation(in_process.of_call(given, request_of(config, day), FrameInputs()), config)
    found = {
        schemas.USER_METRICS.name: result.user_metrics,
        schemas.METRICS.name: result.metrics,
        schemas.GROUP_METRICS.name: result.group_metrics,
        schemas.CHECKS.name: result.checks,
    }
    if config.comparisons is not None:
        found[schemas.COMPARISONS.name] = result.comparisons
    if config.gates:
        means = [*found["metrics"].to_pylist(), *found["group_metrics"].to_pylist()]
        pairs = found[schemas.COMPARISONS.name].to_pylist() if config.comparisons else []
        of_t = [row for row in pairs if row["test"] == "t"]
        judged = gates.judge_rows(config, metrics=means, comparisons=of_t)
        found[schemas.GATES.name] = pa.Table.from_pylist(judged)
    return {name: rows for name, rows in found.items() if rows.num_rows}


def _conformed(rows: pa.Table, declared: pa.Schema, facts: RunRecord) -> pa.Table:
    """Add the columns of the run, and of the table what the rows do not have as NULL."""
    run = {C.EVALUATION: facts.evaluation, C.EVALUATION_DATE: facts.evaluation_date, C.RUN_ID: facts.run_id}
    columns = [
        pa.array([run[field.name]] * rows.num_rows, field.type)
        if field.name in run
        else rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in declared
    ]
    return pa.Table.from_arrays(columns, schema=declared)
