"""Add the columns of a run to Arrow rows, and check their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_texts
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.result_rows.arrow_schema import ARROW_TYPES

if TYPE_CHECKING:
    from rankeval_spark.results.run_record import RunRecord
    from rankeval_spark.schemas import Field


def conform_rows(rows: pa.Table, fields: Sequence[Field], facts: RunRecord, *, where: str) -> pa.Table:
    """Add the columns of a run, and bring all into their order; a missing, surplus or mistyped one is an error.

    The columns take their comments along.
    """
    given = rows.drop_columns([name for name in C.RUN_KEY if name in rows.column_names])
    found = {field.name: field.type for field in given.schema}
    require_types(found, {field.name: ARROW_TYPES[field.type] for field in fields}, where)
    columns = {**_of_run(facts, rows.num_rows), **{name: given[name] for name in given.column_names}}
    schema = declared(fields)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def require_types(found: Mapping[str, object], expected: Mapping[str, object], where: str) -> None:
    """Refuse columns whose types are not the expected ones; those of the run are added."""
    faults = [
        Fault(f"{where}, column {name}", str(found.get(name, "none")), str(expected.get(name, "no such column")))
        for name in dict.fromkeys([*expected, *found])
        if name not in C.RUN_KEY and found.get(name) != expected.get(name)
    ]
    if faults:
        raise ResultsError(*faults)


def declared(fields: Sequence[Field]) -> pa.Schema:
    """Return columns as Arrow's, with their comments; any may be NULL, which the audit looks at."""
    return pa.schema(
        [pa.field(field.name, ARROW_TYPES[field.type], metadata={"comment": field.comment}) for field in fields]
    )


def _of_run(facts: RunRecord, n_rows: int) -> dict[str, pa.Array]:
    days = pa.repeat(pa.scalar(facts.evaluation_date, pa.date32()), n_rows)
    texts = {C.EVALUATION: facts.evaluation, C.RUN_ID: facts.run_id}
    return {C.EVALUATION_DATE: days, **{name: pa.repeat(to_texts([text])[0], n_rows) for name, text in texts.items()}}
