"""Small frames written down row by row, and frames read back as plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F, types as T
from pyspark.sql.pandas.types import to_arrow_schema

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.scorer import IS_EVALUATED
from rankeval_spark.sums.check_counts import N_LISTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.schemas import Field

_TYPES: Final = {
    C.SCORE: "double",
    C.GAIN: "double",
    C.VALUE: "double",
    C.PROPENSITY: "double",
    C.WEIGHT: "double",
    C.PREDICTED_REWARD: "double",
    **dict.fromkeys((C.INTERACTED_AT, C.RECOMMENDED_AT), "timestamp"),
    C.RANK: "int",
    C.K: "int",
    C.N_RECOMMENDED: "int",
    C.N_DUPLICATES: "int",
    C.N_JUDGED: "int",
    C.N_RELEVANT: "int",
    C.N_HITS: "int",
    C.HAS_TIES: "boolean",
    C.HIT_RANKS: "array<int>",
    C.HIT_GAINS: "array<double>",
    C.JUDGED_GAINS: "array<double>",
    C.TIED_RANKS: "array<int>",
    C.HIT_SCORES: "array<double>",
    C.EMPTY_RANKS: "array<struct<first:int,last:int>>",
    C.HAS_RANK_GAPS: "boolean",
    C.IS_OUT_OF_ORDER: "boolean",
    C.SEGMENTS: "map<string,string>",
    N_LISTED: "int",
    IS_EVALUATED: "boolean",
    "p": "double",
    "success": "double",
}
"""Types of the columns that are not text."""

_DEFAULTS: Final = {
    **{C.MODEL_ID: "m", C.LIST_ID: "", C.GAIN: 1.0},
    **dict.fromkeys((C.INTERACTED_AT, C.VALUE, C.PROPENSITY, C.WEIGHT)),
}

_LIST_DEFAULTS: Final[dict[str, Any]] = {
    **{name: _DEFAULTS[name] for name in (C.MODEL_ID, C.LIST_ID)},
    C.N_RECOMMENDED: 0,
    C.N_DUPLICATES: 0,
    **{name: () for name in (C.HIT_RANKS, C.HIT_GAINS, C.JUDGED_GAINS, C.TIED_RANKS)},
    C.SEGMENTS: {},
    **dict.fromkeys(C.OF_RANKS),
}
_SCORED_DEFAULTS: Final[dict[str, Any]] = {
    **_LIST_DEFAULTS,
    **dict.fromkeys((C.K, C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED, N_LISTED), 1),
    C.N_HITS: 0,
    C.HAS_TIES: False,
    IS_EVALUATED: True,
}
_SCORED: Final = (
    *(*C.LIST_KEY, C.K, C.SEGMENTS, C.N_DUPLICATES, N_LISTED),
    *(C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS, C.HAS_TIES),
)

RECOMMENDATION_COLUMNS: Final = schemas.RECOMMENDATIONS.field_names()


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
    given = columns.split()
    kept = [name for name in RECOMMENDATION_COLUMNS if name in given or name in _DEFAULTS]
    return table(spark, columns, *rows, ids=ids).select(*(_column(name, given) for name in kept))


def held_out(spark: SparkSession, columns: str, *rows: tuple[Any, ...], ids: str = "string") -> DataFrame:
    """Make rows of ``schemas.HELD_OUT``; gain 1 by default, at no known time, of no known value or list."""
    given = columns.split()
    names = [name for name in schemas.HELD_OUT.field_names() if name != C.LIST_ID or name in given]
    return table(spark, columns, *rows, ids=ids).select(*(_column(name, given) for name in names))


def compact_lists(spark: SparkSession, *rows: Mapping[str, Any], segments: bool = True) -> DataFrame:
    """Make compact rows as of ``match.to_lists``, with segments; what is not named is 0 or empty."""
    names = [field.name for field in schemas.LISTS.fields if field.name not in C.RUN_KEY]
    kept = [name for name in names if segments or name != C.SEGMENTS]
    return _filled(spark, kept, rows, _LIST_DEFAULTS)


def scored_rows(spark: SparkSession, *rows: Mapping[str, Any], measures: Sequence[str] = ("p",)) -> DataFrame:
    """Make rows as of ``scorer.with_population``; by default of judged users with a list of one item, at k = 1."""
    return _filled(spark, [*_SCORED, *measures, IS_EVALUATED], rows, _SCORED_DEFAULTS)


def ranking(spark: SparkSession, lists: Mapping[str, str], **constants: str) -> DataFrame:
    """Make a log of lists, best item first: ``{"ann": "a b c"}``; scores are 100, 99, ..."""
    rows = [(user, item, 100.0 - place) for user, items in lists.items() for place, item in enumerate(items.split())]
    log = table(spark, "user_id item_id score", *rows)
    return log.select("*", *(F.lit(value).alias(name) for name, value in constants.items()))


def judgements(spark: SparkSession, gains: Mapping[str, Mapping[str, float]]) -> DataFrame:
    """Make a held-out table: ``{"ann": {"a": 1, "b": 2}}``."""
    rows = [(user, item, float(gain)) for user, items in gains.items() for item, gain in items.items()]
    return table(spark, "user_id item_id gain", *rows)


def tuples(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Read some columns back, sorted; NULL comes first."""
    rows = [tuple(row) for row in frame.select(*columns).collect()]
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def by(frame: DataFrame, *keys: str, value: str) -> dict[Any, Any]:
    """Read one column back by the key of its row, and check that the key is one."""
    rows = frame.select(*keys, value).collect()
    found = {(row[0] if len(keys) == 1 else tuple(row)[:-1]): row[-1] for row in rows}
    assert len(found) == len(rows), f"{keys} is no key: {len(rows)} rows, {len(found)} keys"
    return found


def assert_columns(frame: DataFrame, expected: Iterable[Field | tuple[str, str]]) -> None:
    """Compare names, types and order of the columns with the declared ones."""
    declared = [each if isinstance(each, tuple) else (each.name, each.type) for each in expected]
    assert frame.dtypes == declared


def assert_key(frame: DataFrame, key: Sequence[str]) -> None:
    """Check that no two rows share the key and that it is never NULL."""
    rows = [tuple(row) for row in frame.select(*key).collect()]
    hashable = [tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in rows]
    assert len(set(hashable)) == len(rows)
    assert all(value is not None for row in rows for value in row)


def after_run(schema: schemas.Schema) -> list[Field]:
    """Return the columns of a published table without those of the run, as ``evaluate`` gives them."""
    return [field for field in schema.fields if field.name not in C.RUN_KEY]


def _filled(
    spark: SparkSession, names: Sequence[str], rows: Sequence[Mapping[str, Any]], defaults: Mapping[str, Any]
) -> DataFrame:
    unknown = {name for row in rows for name in row} - set(names)
    assert not unknown, f"no such columns: {unknown}"
    filled = ({**defaults, **row} for row in rows)
    return table(spark, " ".join(names), *(tuple(row.get(name) for name in names) for row in filled))


def _column(name: str, given: Sequence[str]) -> Any:  # noqa: ANN401 - Column has two classes, classic and Connect
    return F.col(name) if name in given else F.lit(_DEFAULTS[name]).cast(_TYPES.get(name, "string")).alias(name)
