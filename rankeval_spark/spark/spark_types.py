"""The declared schemas as Spark types, built without a session or a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from rankeval_spark.result_rows.column_types import columns_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from rankeval_spark.schemas import Field, Schema


def with_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Add columns to a frame; none is fine, which ``withColumns`` of Spark Connect refuses."""
    return frame.withColumns(dict(columns)) if columns else frame


def struct_type(schema: Schema, extra_fields: Iterable[Field] = ()) -> T.StructType:
    """Columns of ``schema``, then ``extra_fields``, as a Spark schema whose fields carry their comments.

    >>> from rankeval_spark import schemas
    >>> struct_type(schemas.TRAIN).simpleString()
    'struct<user_id:string,item_id:string,interacted_at:timestamp>'
    """
    return T.StructType.fromJson(columns_json(schema, extra_fields))
