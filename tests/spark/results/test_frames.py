"""Declared schemas as Spark types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import schemas
from rankeval_spark.results.spark_tables import struct_type
from rankeval_spark.schemas import Field

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
