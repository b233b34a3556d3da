"""The declared tables: their columns and CHECK constraints, their creation, and rows in their form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import to_numpy, to_texts
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.result_rows.column_types import ARROW_TYPES, columns_json, type_name
from rankeval_spark.results import delta_log

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, FloatVector
    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.run_record import RunRecord
    from rankeval_spark.results.storage import Storage
    from rankeval_spark.schemas import Field, Schema

TABLES: Final = (schemas.RUNS, *schemas.PUBLISHED)
PARTITIONS: Final = [C.EVALUATION, C.EVALUATION_DATE]
"""Columns by which every table but ``runs`` is partitioned: a file of ``runs`` has rows of many nights."""

READER_VERSION: Final = 1  # reader protocol of every table: the one that all readers of Delta understand
RETENTION: Final = "interval 30 days"
PROPERTIES: Final[Mapping[str, str]] = {
    "delta.logRetentionDuration": RETENTION,
    "delta.deletedFileRetentionDuration": RETENTION,
    # Explicit, because defaults of the session or of the platform would raise the reader version.
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
}


def missing_tables(storage: Storage) -> list[Schema]:
    """Return the published tables that the root does not have yet."""
    there = storage.side_by_side(lambda schema: delta_log.exists(storage, schema.name), TABLES)
    return [schema for schema, is_there in zip(TABLES, there, strict=True) if not is_there]


def create_table(storage: Storage, schema: Schema) -> None:
    """Create a published table, empty, under the publish lock; ResultsError if its folder has files without a log."""
    if delta_log.exists(storage, schema.name):
        return
    if not delta_log.is_free(storage, schema.name):
        if delta_log.exists(storage, schema.name):  # whoever had the lock before us just made it
            return
        fix = "restore _delta_log, or move the folder away"
        raise ResultsError(Fault(f"table {schema.name}", "files without a log of Delta", "a Delta table", fix))
    rules = {f"delta.constraints.{name}": str(rule) for name, rule in CONSTRAINTS.get(schema.name, {}).items()}
    with suppress(delta_log.OvertakenError):  # whoever took the lock from us made it
        delta_log.create_log(
            storage,
            schema.name,
            columns=json.dumps(columns_json(schema)),
            partitions=[] if schema is schemas.RUNS else PARTITIONS,
            description=f"Grain: {schema.grain}. Key: {', '.join(schema.key)}.",
            configuration={**PROPERTIES, **rules},
        )
    storage.sync(Path(storage.root, schema.name), Path(storage.root))


def require_reader_version(storage: Storage, table: str, *, after: int = -1) -> None:
    """Raise ResultsError if a commit after version ``after`` made the table unreadable for other readers."""
    found = delta_log.reader_version(storage, table, after=after)
    if found > READER_VERSION:
        fix = "drop the table feature that raised it (deletion vectors, column mapping, v2 checkpoints)"
        raise ResultsError(Fault(f"table {table}", f"reader version {found}", f"reader version {READER_VERSION}", fix))


def require_declared(columns: Json, schema: Schema) -> None:
    """Raise ResultsError if columns of a published table differ from their declaration, by name.

    ``user_metrics`` also has measures.
    """
    found = {field["name"]: type_name(field["type"]) for field in columns["fields"]}
    declared = {field.name: field.type for field in schema.fields}
    undeclared = "double" if schema.name == schemas.USER_METRICS.name else None
    unlike = [f"{name} {type_}" for name, type_ in found.items() if declared.get(name, undeclared) != type_]
    unlike += [f"no {name}" for name in declared if name not in found]
    if unlike:
        others = f"other columns than this version declares ({', '.join(sorted(unlike)[:5])})"
        fix = "use the version of rankeval-spark that wrote the table, or a new results root"
        raise ResultsError(Fault(f"table {schema.name}", others, "declared columns", fix))


def measure_columns(columns: Json) -> list[dict[str, Any]]:
    """Return the measure columns of ``user_metrics``, which are not declared; each may be NULL."""
    declared = set(schemas.USER_METRICS.field_names())
    return [{**field, "nullable": True} for field in columns["fields"] if field["name"] not in declared]


Range: TypeAlias = tuple[str, Callable[["FloatVector"], "BoolVector"]]
"""Allowed values of a number: as SQL, with ``{0}`` for its name, and as a condition; never NaN."""

_NOT_NEGATIVE: Final[Range] = ("{0} >= 0", lambda values: values >= 0)
_SHARE: Final[Range] = ("{0} >= 0 AND {0} <= 1", lambda values: (values >= 0) & (values <= 1))
_SOME_SHARE: Final[Range] = ("{0} > 0 AND {0} <= 1", lambda values: (values > 0) & (values <= 1))
_FINITE: Final[Range] = ("{0} > double('-Infinity') AND {0} < double('Infinity')", np.isfinite)


@dataclass(frozen=True)
class Constraint:
    """Bounds that a row keeps, all of them: a range, its columns, and whether all may be NULL if the first one is."""

    bounds: tuple[tuple[Range, tuple[str, ...], bool], ...]

    def __str__(self) -> str:
        """Return the bounds as SQL; one of several that has an OR is in brackets."""
        texts = []
        for (sql, _), columns, is_optional in self.bounds:
            rules = " AND ".join(map(sql.format, columns))
            if is_optional:
                either = f"{columns[0]} IS NULL OR {f'({rules})' if ' AND ' in rules else rules}"
                rules = either if len(self.bounds) == 1 else f"({either})"
            texts.append(rules)
        return " AND ".join(texts)

    def holds(self, rows: pa.Table) -> BoolVector:
        """Return which rows keep all bounds; NULL is out of a range that is not optional."""
        held = np.ones(rows.num_rows, dtype=np.bool_)
        for (_, has), columns, is_optional in self.bounds:
            kept = reduce(and_, (has(to_numpy(rows[name])) for name in columns))
            held &= kept | to_numpy(rows[columns[0]].is_null()) if is_optional else kept
        return held

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for _, columns, _ in self.bounds for name in columns)


def _counts(*columns: str) -> Constraint:
    return Constraint(((_NOT_NEGATIVE, columns, False),))


def _optional(range_: Range, *columns: str) -> Constraint:
    """Return bounds of columns that may be NULL, each by itself."""
    return Constraint(tuple((range_, (name,), True) for name in columns))


_COUNTS_OF_PAIRS: Final = Constraint(
    ((_NOT_NEGATIVE, ("k", "n_users"), False), (_NOT_NEGATIVE, ("n_wins", "n_ties", "n_losses"), True))
)
CONSTRAINTS: Final[Mapping[str, Mapping[str, Constraint]]] = {
    "runs": {"sample_share": _optional(_SOME_SHARE, "sample_share")},
    "lists": {"counts": _counts("n_recommended", "n_duplicates")},
    "user_metrics": {"counts": _counts("k", "n_judged", "n_relevant", "n_recommended", "n_hits")},
    "metrics": {
        "counts": _counts("k", "n_users"),
        "lists": _optional(_NOT_NEGATIVE, "n_lists"),
        "judged_counts": _optional(_NOT_NEGATIVE, "n_undefined", "n_missing"),
        "tie_share": _optional(_SHARE, "tie_share"),
        "value": _optional(_FINITE, "value"),
        "quantile_error": _optional(_NOT_NEGATIVE, "quantile_error"),
    },
    "group_metrics": {"counts": _counts("k", "n_users", "n_left_out"), "value": _optional(_FINITE, "value")},
    "comparisons": {
        "counts": _COUNTS_OF_PAIRS,
        "lists": _optional(_NOT_NEGATIVE, "n_with_baseline", "n_with_model", "n_with_both"),
        "p": _optional(_SHARE, "p_value", "p_adjusted"),
        "delta": _optional(_FINITE, "delta"),
        "shares": _optional(_SHARE, "win_share", "loss_share"),
    },
    "checks": {"share": _optional(_SHARE, "share")},
}
"""Constraints by table and name. NaN is greater than infinity in Spark, so that an upper bound refuses it there too."""


def conform_rows(rows: pa.Table, fields: Sequence[Field], facts: RunRecord, *, where: str) -> pa.Table:
    """Add the columns of a run, and order all columns; ResultsError for a missing, surplus or mistyped one."""
    given = rows.drop_columns([name for name in C.RUN_KEY if name in rows.column_names])
    found = {field.name: field.type for field in given.schema}
    require_types(found, {field.name: ARROW_TYPES[field.type] for field in fields}, where)
    days = pa.repeat(pa.scalar(facts.evaluation_date, pa.date32()), rows.num_rows)
    names = {C.EVALUATION: facts.evaluation, C.RUN_ID: facts.run_id}
    texts = {name: pa.repeat(to_texts([text])[0], rows.num_rows) for name, text in names.items()}
    columns = {C.EVALUATION_DATE: days, **texts, **{name: given[name] for name in given.column_names}}
    schema = arrow_schema(fields)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def require_types(found: Mapping[str, object], expected: Mapping[str, object], where: str) -> None:
    """Raise ResultsError for columns of unexpected types, except those of the run."""
    faults = [
        Fault(f"{where}, column {name}", str(found.get(name, "none")), str(expected.get(name, "no such column")))
        for name in dict.fromkeys([*expected, *found])
        if name not in C.RUN_KEY and found.get(name) != expected.get(name)
    ]
    if faults:
        raise ResultsError(*faults)


def arrow_schema(fields: Sequence[Field]) -> pa.Schema:
    """Return the Arrow schema of columns, with comments; any may be NULL, which the audit checks."""
    return pa.schema(
        [pa.field(field.name, ARROW_TYPES[field.type], metadata={"comment": field.comment}) for field in fields]
    )
