"""Published tables of several nights, made in this process: what a report is drawn from, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rankeval_spark import ResultTable, __version__, columns as C, evaluate, schemas
from rankeval_spark.apps.gates import judge_rows
from rankeval_spark.config import Comparisons, EvaluationConfig, Gate
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.measures import MeasureSet
from rankeval_spark.report.tables import ReportTables, empty_table
from tests.support.sections import sections

FIRST_NIGHT: Final = date(2026, 1, 1)
EVALUATION: Final = "nightly"
POLICIES: Final = {"population": "truth", "ties": "item_asc"}
ACCURACY: Final = ("nDCG", "P", "R", "RR")
BEYOND: Final = ("CatalogCoverage", "MIUF", "ARP", "Personalization")
CURVE: Final = tuple(f"IPrec@{level / 10:g}" for level in range(11))
CUTOFFS: Final = (1, 5, 10, 20)

MEASURE_STRUCT: Final = pa.struct(
    [
        *(("measure", pa.string()), ("k", pa.int32()), ("column", pa.string()), ("name", pa.string())),
        *(("options", pa.map_(pa.string(), pa.string())), ("group_rule", pa.string())),
    ]
)
INPUT_STRUCT: Final = pa.struct(
    [
        ("name", pa.string()),
        ("location", pa.string()),
        ("format", pa.string()),
        ("version", pa.int64()),
        ("n_rows", pa.int64()),
    ]
)
ERROR_STRUCT: Final = pa.struct([("stage", pa.string()), ("type", pa.string()), ("message", pa.string())])
RUNS_TYPES: Final = {
    "string": pa.string(),
    "date": pa.date32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "double": pa.float64(),
    "array<string>": pa.list_(pa.string()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
}


@dataclass(frozen=True)
class Plan:
    """What the nights evaluate.

    Attributes
    ----------
    models : mapping of str to float
        How well each model knows the users: 0 recommends what is popular, 1 much of what they like.
    segments : mapping of str to sequence of str or None
        Values of each segment, spread over the users.
    """

    models: Mapping[str, float] = field(default_factory=lambda: {"als": 0.8, "item_knn": 0.55, "popular": 0.1})
    baseline: str | None = "popular"
    segments: Mapping[str, Sequence[str | None]] = field(
        default_factory=lambda: {"country": ("DE", "FR", "IT", None), "device": ("phone", "desktop")}
    )
    slices: tuple[Any, ...] = ("country", "device", ("country", "device"))
    measures: tuple[str, ...] = (
        *(f"{name}@{k}" for name in ACCURACY for k in CUTOFFS),
        *(f"{name}@10" for name in BEYOND),
        *CURVE,
    )
    gates: tuple[Mapping[str, Any], ...] = (
        {"measure": "nDCG@10", "at_least": 0.1},
        {"measure": "nDCG@10", "least_gain": 0.01},
        {"measure": "nDCG@10", "slice": "country", "alpha": 0.05},
    )
    n_users: int = 240
    n_items: int = 150
    n_nights: int = 3
    list_length: int = 30

    @property
    def rules(self) -> EvaluationConfig:
        """The config, as far as rules go by it."""
        compared = Comparisons(**self.comparisons) if self.comparisons else None
        rules = tuple(Gate(**rule) for rule in self.gates)
        return EvaluationConfig.model_construct(gates=rules, comparisons=compared, slicing=Slicing(min_slice_size=20))

    @property
    def comparisons(self) -> dict[str, Any] | None:
        """The section of comparisons, with nDCG@10 as primary where it is measured."""
        primary = {"primary": ["nDCG@10"]} if "nDCG@10" in self.measures else {}
        return {"baseline": self.baseline, **primary} if self.baseline else None


def nights(plan: Plan = Plan()) -> ReportTables:
    """Evaluate every night of a plan, and put the tables together as they are published."""
    return together([night(plan, number) for number in range(plan.n_nights)])


def together(parts: Iterable[ReportTables]) -> ReportTables:
    """Put the rows of several nights together."""
    found = list(parts)
    names = [name for name, value in vars(found[0]).items() if isinstance(value, pa.Table)]
    joined = {
        name: pa.concat_tables([getattr(one, name) for one in found], promote_options="default") for name in names
    }
    return replace(found[-1], **joined)


def night(plan: Plan, number: int = 0, *, seed: int = 7) -> ReportTables:
    """Evaluate one night in this process and name its run."""
    day = FIRST_NIGHT + timedelta(days=number)
    logs = _logs(plan, seed=seed + number)
    given: dict[str, Any] = plan.comparisons or {}
    if plan.slices:
        given |= {"segments": logs["segments"], "slices": plan.slices}
    result = evaluate(
        logs["recommendations"],
        logs["held_out"],
        **sections(measures=plan.measures, train=logs["train"], min_slice_size=20, **given),
    )
    comparisons = result.comparisons if plan.baseline else None
    rows = judge_rows(
        plan.rules,
        metrics=[*result.metrics.to_pylist(), *result.group_metrics.to_pylist()],
        comparisons=[] if comparisons is None else comparisons.to_pylist(),
    )
    run = {C.EVALUATION: EVALUATION, C.EVALUATION_DATE: day, C.RUN_ID: f"run-{number:03}"}
    return ReportTables(
        runs=runs(published(plan, run)),
        metrics=_of_run(result.metrics, run),
        group_metrics=_of_run(result.group_metrics, run),
        comparisons=empty_table(schemas.COMPARISONS) if comparisons is None else _of_run(comparisons, run),
        gates=_of_run(pa.Table.from_pylist(rows, schema=_body(schemas.GATES)), run),
        checks=_of_run(result.checks, run),
        user_metrics=_of_run(result.user_metrics, run),
    )


def published(plan: Plan, run: Mapping[str, Any], **changes: object) -> dict[str, Any]:
    """Write the row of ``runs`` that commits a night."""
    measures = [
        {
            "measure": one.label,
            "k": one.k,
            "column": one.column if one.has_user_values else None,
            "name": one.name,
            "options": one.recorded_options,
            "group_rule": None,
        }
        for one in MeasureSet.parse(plan.measures).measures
    ]
    config = {
        "evaluation": EVALUATION,
        "measures": list(plan.measures),
        "comparisons": plan.comparisons,
        "gates": [gate.model_dump(mode="json") for gate in plan.rules.gates],
    }
    inputs = [
        {"name": name, "location": f"data/{name}", "format": "delta", "version": 12, "n_rows": n_rows}
        for name, n_rows in (("recommendations", 21600), ("held_out", 1200))
    ]
    recorded = datetime.combine(run[C.EVALUATION_DATE], datetime.min.time(), UTC) + timedelta(days=1, hours=3)
    return {
        **run,
        "status": "PUBLISHED",
        "recorded_at": recorded,
        "reason": None,
        "sample_share": 1.0,
        "config": json.dumps(config, sort_keys=True),
        "config_hash": "5f2c" * 16,
        "code_version": __version__,
        "inputs": inputs,
        "input_columns": [("recommendations", "user_id string, item_id string, score double")],
        "measures": measures,
        "policies": list(POLICIES.items()),
        "table_versions": [("metrics", 4), ("user_metrics", 4)],
        "timings": [("read", 2.5), ("score", 11.25), ("publish", 3.0)],
        "n_rows": [("metrics", 1234), ("user_metrics", 56789)],
        "error": None,
        "failed_checks": [],
        **changes,
    }


def failed(number: int, *, message: str = "no row in data/held_out") -> ReportTables:
    """Make a night that was not published."""
    day = FIRST_NIGHT + timedelta(days=number)
    run = {C.EVALUATION: EVALUATION, C.EVALUATION_DATE: day, C.RUN_ID: f"run-{number:03}"}
    error = {"stage": "read", "type": "InputError", "message": message}
    row = published(Plan(), run, status="FAILED", error=error, failed_checks=["held_out, volume"], table_versions=[])
    return ReportTables.without_rows(runs(row))


def runs(*rows: Mapping[str, Any]) -> pa.Table:
    """Make the table of ``runs``."""
    others = {"inputs": pa.list_(INPUT_STRUCT), "measures": pa.list_(MEASURE_STRUCT), "error": ERROR_STRUCT}
    fields = [(one.name, others.get(one.name) or RUNS_TYPES[one.type]) for one in schemas.RUNS.fields]
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(fields))


def _body(schema: schemas.Schema) -> pa.Schema:
    return pa.schema([one for one in empty_table(schema).schema if one.name not in C.RUN_KEY])


def _of_run(table: pa.Table | ResultTable, run: Mapping[str, Any]) -> pa.Table:
    """Put the columns of the run first."""
    table = table.to_arrow() if isinstance(table, ResultTable) else table
    for place, (name, value) in enumerate(run.items()):
        table = table.add_column(place, name, pa.repeat(pa.scalar(value), table.num_rows))
    return table


def _logs(plan: Plan, *, seed: int) -> dict[str, pa.Table]:
    """Draw tastes of users and the popularity of items; a model sees some of the taste, and noise."""
    draw = np.random.default_rng(seed)
    stable = np.random.default_rng(99)
    users, items = plan.n_users, plan.n_items
    popularity = stable.gamma(0.6, 1.0, items) + 0.05
    taste = stable.normal(0, 1, (users, 6)) @ stable.normal(0, 1, (6, items)) / 2 + np.log(popularity)
    liked = taste + draw.gumbel(0, 1, taste.shape)
    user_ids, item_ids = np.array([f"u{n:05}" for n in range(users)]), np.array([f"i{n:04}" for n in range(items)])
    n_liked = draw.integers(1, 12, users)
    best = np.argsort(-liked, axis=1)
    held_out = [
        (user_ids[user], item_ids[item], float(1 + (place < 3)))
        for user in range(users)
        for place, item in enumerate(best[user, : n_liked[user]])
    ]
    length, lists = plan.list_length, []
    for model, insight in plan.models.items():
        noise = draw.normal(0, 0.3 + 0.7 * insight, taste.shape)
        score = insight * taste + (1 - insight) * 0.5 * np.log(popularity) + noise * 0.5
        top = np.argsort(-score, axis=1)[:, :length]
        served = draw.random(users) > 0.02
        for user in np.flatnonzero(served):
            lists += [(model, user_ids[user], item_ids[item], float(score[user, item])) for item in top[user]]
    of_segments = {
        name: [values[int(place)] for place in stable.integers(0, len(values), users)]
        for name, values in plan.segments.items()
    }
    trained = stable.choice(items, 4000, p=popularity / popularity.sum())
    return {
        "recommendations": _table(("model_id", "user_id", "item_id", "score"), lists),
        "held_out": _table(("user_id", "item_id", "gain"), held_out),
        "segments": pa.table({"user_id": user_ids, **{n: pa.array(v, pa.string()) for n, v in of_segments.items()}}),
        "train": pa.table({"user_id": user_ids[stable.integers(0, users, 4000)], "item_id": item_ids[trained]}),
    }


def _table(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.table(dict(zip(names, (list(cell) for cell in zip(*rows, strict=True)), strict=True)))
