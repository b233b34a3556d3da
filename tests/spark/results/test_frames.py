"""Declared schemas as Spark types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import schemas
from rankeval_spark.schemas import Field
from rankeval_spark.spark.spark_types import data_type, struct_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = (schemas.RECOMMENDATIONS, schemas.HELD_OUT, schemas.RUNS, *schemas.PUBLISHED)


@pytest.mark.parametrize("schema", DECLARED, ids=lambda schema: schema.name)
def test_a_declared_type_is_read_as_spark_reads_it(spark: SparkSession, schema: schemas.Schema) -> None:
    parsed = struct_type(schema)
    text = ", ".join(f"`{field.name}` {field.type}" for field in schema.fields)
    assert spark.version  # Spark's own parser needs a session
    assert parsed.simpleString() == type(parsed).fromDDL(text).simpleString()
    assert [field.nullable for field in parsed] == [field.nullable for field in schema.fields]


def test_extra_fields_follow_with_their_comments() -> None:
    last = struct_type(schemas.HELD_OUT, [Field("rr", "double", "RR(rel=1)")]).fields[-1]
    assert (last.name, last.metadata) == ("rr", {"comment": "RR(rel=1)"})


@pytest.mark.parametrize("text", ["", "decimal", "array<string", "map<string>", "string>", "struct<a>", "a;b"])
def test_an_unknown_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot read the type"):
        data_type(text)
