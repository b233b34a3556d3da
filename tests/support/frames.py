"""Small frames written down row by row, and frames read back as plain Python; as ``arrow_frames``, on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F, types as T
from pyspark.sql.pandas.types import to_arrow_schema

from rankeval_spark import columns as C, schemas
from tests.support import arrow_frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.schemas import Field

_TYPES: Final = {
    **dict.fromkeys((C.SCORE, C.GAIN, C.VALUE, C.PROPENSITY, C.WEIGHT, C.PREDICTED_REWARD), "double"),
    **dict.fromkeys((C.INTERACTED_AT, C.RECOMMENDED_AT), "timestamp"),
    **dict.fromkeys((C.RANK, C.K), "int"),
}
"""Types of the columns that are not text."""

_DEFAULTS: Final = {
    **{C.MODEL_ID: "m", C.LIST_ID: "", C.GAIN: 1.0},
    **dict.fromkeys((C.INTERACTED_AT, C.VALUE, C.PROPENSITY, C.WEIGHT)),
}


def table(spark: SparkSession, columns: str, *rows: tuple[Any, ...], ids: str = "string") -> DataFrame:
    """Make a frame of the columns named, such as ``"user_id item_id"``; ``ids`` is the type of users and items."""
    types = {**_TYPES, C.USER_ID: ids, C.ITEM_ID: ids}
    return frame_of(spark, rows, ", ".join(f"{name} {types.get(name, 'string')}" for name in columns.split()))


def frame_of(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: str) -> DataFrame:
    """Make a frame of rows, as ``createDataFrame`` does, by way of Arrow.

    Each scan of rows of Python takes a Python worker for each partition: evaluating a few rows took twice the time.
    """
    return spark.createDataFrame(arrow_of(rows, schema), schema)


def arrow_of(rows: Iterable[tuple[Any, ...]], schema: str) -> pa.Table:
    """Make a table of rows, with the types of Spark that are named."""
    fields = T.StructType.fromDDL(schema)
    assert isinstance(fields, T.StructType)
    types = to_arrow_schema(fields, timezone="UTC")
    cells = [*zip(*rows, strict=True)] or [()] * len(types)
    columns = [pa.array(map(_to_cell(field.type), cell), field.type) for field, cell in zip(types, cells, strict=True)]
    return pa.Table.from_arrays(columns, schema=types)


def _to_cell(type_: pa.DataType) -> Callable[[Any], Any]:
    """Return what makes of a value of Python what Arrow takes: text of anything, and fields of a row by their names."""
    if pa.types.is_string(type_):
        return lambda cell: cell if cell is None else str(cell)
    if not (pa.types.is_list(type_) and pa.types.is_struct(type_.value_type)):
        return lambda cell: cell
    names = [field.name for field in type_.value_type]
    return lambda cell: None if cell is None else [dict(zip(names, one, strict=True)) for one in cell]


def recommendations(spark: SparkSession, columns: str, *rows: tuple[Any, ...], ids: str = "string") -> DataFrame:
    """Make rows of ``schemas.RECOMMENDATIONS``, with the order that is named; by default of model 'm' and list ''."""
    names = schemas.RECOMMENDATIONS.field_names()
    return _filled(
        table(spark, columns, *rows, ids=ids), [name for name in names if name in (*columns.split(), *_DEFAULTS)]
    )


def held_out(spark: SparkSession, columns: str, *rows: tuple[Any, ...], ids: str = "string") -> DataFrame:
    """Make rows of ``schemas.HELD_OUT``; gain 1 by default, at no known time, of no known value or list."""
    given = columns.split()
    names = [name for name in schemas.HELD_OUT.field_names() if name != C.LIST_ID or name in given]
    return _filled(table(spark, columns, *rows, ids=ids), names)


def _filled(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Select columns, those that are missing with their defaults."""
    defaults = {name: F.lit(_DEFAULTS[name]).cast(_TYPES.get(name, "string")) for name in {*names} - {*frame.columns}}
    return frame.withColumns(defaults).select(*names)


def ranking(spark: SparkSession, lists: Mapping[str, str], **constants: str) -> DataFrame:
    """Make a log of lists, best item first: ``{"ann": "a b c"}``; scores are 100, 99, ..."""
    return spark.createDataFrame(arrow_frames.ranking(lists, **constants))


def judgements(spark: SparkSession, gains: Mapping[str, Mapping[str, float]]) -> DataFrame:
    """Make a held-out table: ``{"ann": {"a": 1, "b": 2}}``."""
    return spark.createDataFrame(arrow_frames.judgements(gains))


def tuples(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Read some columns back, sorted; NULL comes first."""
    return arrow_frames.tuples(frame.select(*columns).toArrow(), *columns)


def by(frame: DataFrame, *keys: str, value: str) -> dict[Any, Any]:
    """Read one column back by the key of its row, and check that the key is one."""
    return arrow_frames.by(frame.select(*keys, value).toArrow(), *keys, value=value)


def assert_columns(frame: DataFrame, expected: Iterable[Field | tuple[str, str]]) -> None:
    """Compare names, types and order of the columns with the declared ones."""
    declared = [each if isinstance(each, tuple) else (each.name, each.type) for each in expected]
    assert frame.dtypes == declared


def assert_key(frame: DataFrame, key: Sequence[str]) -> None:
    """Check that no two rows share the key and that it is never NULL."""
    arrow_frames.assert_key(frame.select(*key).toArrow(), key)


def after_run(schema: schemas.Schema) -> list[Field]:
    """Return the columns of a published table without those of the run, as ``evaluate`` gives them."""
    return [field for field in schema.fields if field.name not in C.RUN_KEY]
