"""Declared columns as JSON."""

from __future__ import annotations

import json

import deltalake
import pytest

from rankeval_spark import schemas
from rankeval_spark.result_rows.column_types import columns_json, type_json, type_name


@pytest.mark.parametrize("schema", [schemas.RUNS, *schemas.PUBLISHED], ids=lambda schema: schema.name)
def test_delta_reads_the_declared_columns(schema: schemas.Schema) -> None:
    read = deltalake.Schema.from_json(json.dumps(columns_json(schema)))

    names = [(field["name"], type_name(field["type"])) for field in json.loads(read.to_json())["fields"]]
    assert names == [(field.name, field.type) for field in schema.fields]
    assert [field.nullable for field in read.fields] == [field.nullable for field in schema.fields]
    assert [field.metadata["comment"] for field in read.fields] == [field.comment for field in schema.fields]


def test_a_type_that_is_declared_nowhere_keeps_its_name() -> None:
    assert type_name("decimal(10,2)") == "decimal(10,2)"


@pytest.mark.parametrize("text", ["", "decimal", "array<string", "map<string>", "string>", "struct<a>", "a;b"])
def test_an_unknown_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot read the type"):
        type_json(text)
