"""Bring the tables of an older version up to what this version declares, where that loses nothing.

A column that is declared and not there is added at its place, NULL in old rows; CHECK constraints and table properties
are declared again. Anything else that differs is refused, before the first table is touched. Everything here happens
while the root's publish lock is held; every step is a commit of its own, so that a migration that was killed is
finished by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsError, first_line
from rankeval_spark.results.storage import statements, tables
from rankeval_spark.spark.spark_types import data_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import types as T

    from rankeval_spark.results.storage.commits import Root
    from rankeval_spark.schemas import Field, Schema

_CONSTRAINT: Final = "delta.constraints."


@dataclass(frozen=True)
class Plan:
    """What one table lacks.

    Attributes
    ----------
    columns : sequence of (Field, str or None)
        Declared columns that it does not have, each with the column that it follows.
    constraints, properties : mapping
        Those that it does not have, or has otherwise; of the properties only those that are not set at all.
    """

    schema: Schema
    columns: Sequence[tuple[Field, str | None]]
    constraints: Mapping[str, str]
    properties: Mapping[str, str]

    def __str__(self) -> str:
        """Write what changes."""
        added = [f"column {field.name}" for field, _ in self.columns]
        added += [f"constraint {name}" for name in self.constraints]
        return f"{self.schema.name}: {', '.join([*added, *self.properties])}"

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.columns or self.constraints or self.properties)


def plan_all(root: Root) -> list[Plan]:
    """Find out what the tables lack; :class:`ResultsError` names every difference that cannot be made good."""
    plans, faults = [], []
    for schema in tables.TABLES:
        found = tables.read_table(root.spark, root.storage, schema.name).schema
        differences = unlike(found, schema)
        faults += differences
        if not differences:
            plans.append(Plan(schema, lacking_columns(found, schema), *_lacking_rules(root, schema)))
    if faults:
        raise ResultsError(*faults)
    return [plan for plan in plans if plan]


def carry_out(root: Root, plan: Plan) -> None:
    """Change one table."""
    spark, storage, table = root.spark, root.storage, plan.schema.name
    for field, after in plan.columns:
        root.lock.assert_held()
        statements.add_column(spark, storage, table, field, after=after)
    for key, value in plan.properties.items():
        root.lock.assert_held()
        statements.set_property(spark, storage, table, key, value)
    for name, rule in plan.constraints.items():
        root.lock.assert_held()
        try:
            statements.add_constraint(spark, storage, table, name, rule)
        except PySparkException as error:
            where = f"table {table}, constraint {name}"
            raise ResultsError(Fault(where, first_line(str(error)), f"rows with {rule}")) from error


def lacking_columns(found: T.StructType, schema: Schema) -> list[tuple[Field, str | None]]:
    """Columns that a table lacks, each with the declared column before it."""
    befores = [None, *schema.field_names()]
    present = set(found.fieldNames())
    return [(field, before) for field, before in zip(schema.fields, befores, strict=False) if field.name not in present]


def unlike(found: T.StructType, schema: Schema) -> list[Fault]:
    """Differences that are no lack: other types, columns of a newer version, another order, a key that is not there."""
    declared = {field.name: data_type(field.type).simpleString() for field in schema.fields}
    types = {field.name: field.dataType.simpleString() for field in found.fields}
    faults = [
        Fault(f"table {schema.name}, column {name}", type_, declared[name], "no migration changes types")
        for name, type_ in types.items()
        if name in declared and type_ != declared[name]
    ]
    faults += [
        Fault(f"table {schema.name}, column {name}", type_, "no such column", "use the version that wrote the table")
        for name, type_ in types.items()
        if name not in declared and not (schema is schemas.USER_METRICS and type_ == "double")
    ]
    faults += [
        Fault(f"table {schema.name}, column {name}", "none", declared[name], "a key cannot be added to rows there are")
        for name in schema.key
        if name not in types
    ]
    common = [name for name in declared if name in types]
    if not faults and found.fieldNames()[: len(common)] != common:
        faults.append(Fault(f"table {schema.name}", "its columns in another order", ", ".join(common)))
    return faults


def _lacking_rules(root: Root, schema: Schema) -> tuple[dict[str, str], dict[str, str]]:
    present = statements.properties_of(root.spark, root.storage, schema.name)
    rules = tables.CONSTRAINTS.get(schema.name, {})
    constraints = {
        name: rule for name, rule in rules.items() if _bare(present.get(f"{_CONSTRAINT}{name}", "")) != _bare(rule)
    }
    return constraints, {key: value for key, value in tables.PROPERTIES.items() if key not in present}


def _bare(rule: str) -> str:
    """Leave the blanks out: Delta writes them anew between the words of a constraint that is added."""
    return "".join(rule.split())
