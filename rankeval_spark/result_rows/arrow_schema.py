"""The declared columns of published tables as Arrow types, and columns as Spark reads their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rankeval_spark import columns as C

if TYPE_CHECKING:
    from rankeval_spark.schemas import Schema

ARROW_TYPES: Final = {
    "string": pa.string(),
    "array<string>": pa.list_(pa.string()),
    "array<int>": pa.list_(pa.int32()),
    "array<double>": pa.list_(pa.float64()),
    "array<struct<first:int,last:int>>": pa.list_(pa.struct([("first", pa.int32()), ("last", pa.int32())])),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "date": pa.date32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}

_SPARK_TYPES: Final = {arrow: name for name, arrow in ARROW_TYPES.items()}


def arrow_schema(schema: Schema) -> pa.Schema:
    """Columns of a result from the first one after the run's on."""
    fields = [field for field in schema.fields if field.name not in C.RUN_KEY]
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in fields])


def spark_columns(schema: pa.Schema) -> str:
    """Write the names and types of columns as Spark reads them."""
    return ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in schema)
