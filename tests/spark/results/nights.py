"""Small runs to publish: two models, a few users, two measures at two cutoffs."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from rankeval_spark import ResultTable, columns as C, schemas
from rankeval_spark.config.requested_measures import RecordedDefinition
from rankeval_spark.result_rows.column_types import ARROW_TYPES
from rankeval_spark.results import MeasureRecord, ResultsStore, RunRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from rankeval_spark.results import Run
    from rankeval_spark.schemas import Field, Schema

NIGHTLY = "nightly"
FIRST = date(2026, 1, 1)
SECOND = date(2026, 1, 2)
RR = RecordedDefinition("RR", {"rel": "1"}, {"ties": "item_asc"})
RR_AT = {k: MeasureRecord("RR", k, "rr", RR, 0.0, 1.0) for k in (1, 2)}
AP = RecordedDefinition("AP", {"rel": "1", "denom": "min"}, {"ties": "item_asc"})
AP_AT_2 = MeasureRecord("AP(denom='min')", 2, "ap_denom_min", AP, 0.0, 1.0)
MEASURES = (*RR_AT.values(), AP_AT_2)

# Rank of the only relevant item in the list of each user; None: it was not recommended.
Ranks: TypeAlias = "Mapping[str, int | None]"
Row: TypeAlias = dict[str, object]
RANKS: Ranks = {"ann": 1, "bob": 2, "eve": None}


def facts(run_id: str, day: date = FIRST, evaluation: str = NIGHTLY, **others: object) -> RunRecord:
    given = {"config": '{"a":1}', "config_hash": "c0ffee", "code_version": "0.1.0", "measures": MEASURES, **others}
    return RunRecord(evaluation, day, run_id, **given)  # type: ignore[arg-type]  # passed on as it came


STAGED = (schemas.LISTS, schemas.USER_METRICS, schemas.METRICS, schemas.CHECKS)
"""What a night here has rows for; the tables of comparisons and gates stay empty, as where nothing asks for them."""


def publish(root: str, run: RunRecord, ranks: Ranks = RANKS) -> dict[str, int]:
    """Run one night from its lock to its last row; return the published versions."""
    store = ResultsStore.open(root)
    with store.run_lock(run.evaluation, run.evaluation_date, run.run_id):
        started = store.start(run)
        stage(started, ranks)
        started.audit()
        return started.publish(reason=None if ranks else "no rows for this date")


def rows_of(table: DataFrame | pa.Table | ResultTable, *, without: Sequence[str] = (C.RUN_ID,)) -> list[str]:
    """Rows in a form that can be compared with those of the same reader, whatever their order."""
    if isinstance(table, pa.Table | ResultTable):
        return sorted(map(str, table.drop_columns(list(without)).to_pylist()))
    return sorted(str(row) for row in table.drop(*without).collect())


def stage(run: Run, ranks: Ranks) -> None:
    for schema, rows in (
        (schemas.LISTS, list_rows(ranks)),
        (schemas.USER_METRICS, user_rows(ranks)),
        (schemas.METRICS, metric_rows(ranks)),
        (schemas.CHECKS, check_rows(ranks)),
    ):
        run.stage(schema.name, table(schema, rows))


def table(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    """Rows without the run's own columns, as a stage hands them over; what a row leaves out is nought."""
    fields = _fields(schema)
    columns = {field.name: [row.get(field.name, _nought(field)) for row in rows] for field in fields}
    arrow: list[Any] = [(field.name, ARROW_TYPES[field.type]) for field in fields]
    return pa.table(columns, schema=pa.schema(arrow))


def _fields(schema: Schema) -> tuple[Field, ...]:
    measures = facts("columns").measure_fields() if schema is schemas.USER_METRICS else ()
    return tuple(field for field in (*schema.fields, *measures) if field.name not in C.RUN_KEY)


def _nought(field: Field) -> object:
    if field.nullable:
        return None
    return [] if field.type.startswith("array") else {"string": "", "double": 0.0, "boolean": False}.get(field.type, 0)


def list_rows(ranks: Ranks) -> list[Row]:
    return [
        {
            "model_id": "als",
            "user_id": user,
            "segments": {"country": None},
            "n_recommended": 2,
            "hit_ranks": [rank] if rank else [],
            "hit_gains": [1.0] if rank else [],
            "judged_gains": [1.0],
        }
        for user, rank in ranks.items()
    ]


def user_rows(ranks: Ranks) -> list[Row]:
    return [
        {
            "model_id": "als",
            "user_id": user,
            "k": k,
            "segments": {"country": "AT"},
            "n_judged": 1,
            "n_relevant": 1,
            "n_recommended": k,
            "n_hits": int(reciprocal(rank, k) > 0),
            "rr": reciprocal(rank, k),
            "ap_denom_min": reciprocal(rank, k) if k == AP_AT_2.k else None,
        }
        for user, rank in ranks.items()
        for k in (1, 2)
    ]


def metric_rows(ranks: Ranks) -> list[Row]:
    rows: list[Row] = []
    for measure in MEASURES if ranks else ():
        values = [reciprocal(rank, measure.k) for rank in ranks.values()]
        key = {"model_id": "als", "slice": "all", "measure": measure.measure, "k": measure.k}
        counts = dict.fromkeys(("n_users", "n_lists"), len(values))
        rows.append({**key, "value": sum(values) / len(values), **counts, "ci_method": "t"})
    return rows


def check_rows(ranks: Ranks) -> list[Row]:
    share = 0.0 if ranks else None
    return [{"input": "held_out", "check": "null_keys", "severity": "error", "share": share, "verdict": "ok"}]


def reciprocal(rank: int | None, k: int) -> float:
    return 1 / rank if rank and rank <= k else 0.0
