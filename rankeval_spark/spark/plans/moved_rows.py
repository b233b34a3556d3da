"""All rows of a user in one place: the inputs that have users are united and moved to their users, once.

What the engine makes of them comes back as frames. Facts that every user needs (names of the models, facts of items,
totals) are a frame of one row: a scalar subquery, whose value is in the first row of each partition alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F, types as T

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.ranked_lists import ITEMS

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.engine.job import Job

_ROW_NUMBER_BITS: Final = 33
"""Lower bits of ``monotonically_increasing_id``, which count the rows of a partition from 0."""


@dataclass(frozen=True)
class MovedRows:
    """Rows of all users, each user's in one partition, and what is made of them."""

    frame: DataFrame  # rows of :mod:`engine.row_kinds`
    job: Job  # what the workers do
    id_types: Mapping[str, str]  # Spark type of ``user_id`` and ``item_id``

    @property
    def user_types(self) -> dict[str, str]:
        return user_types(self.job.outputs.measures.stored, user=self.id_types[C.USER_ID])

    def to_user_rows(self) -> DataFrame:
        """Return one row per list of the population and cutoff: ``schemas.USER_METRICS``, starting with the model."""
        return map_in_arrow(self.frame, self.job.user_rows, self.user_types)

    def to_ranked_items(self) -> DataFrame:
        """Return one row per list and item: key, rank and gain; ``list_id`` where users can have several."""
        item = {C.ITEM_ID: self.id_types[C.ITEM_ID], C.RANK: "int", C.GAIN: "double"}
        return map_in_arrow(self.frame, replace(self.job, depth=0).ranked_items, {**self._types_of_list_key(), **item})

    def to_item_lists(self, *, depth: int) -> DataFrame:
        """Return one row per list that has items, see :meth:`Job.item_lists`; a depth of 0 keeps whole lists."""
        item = f"array<struct<`{C.ITEM_ID}`: {self.id_types[C.ITEM_ID]}, `{C.RANK}`: int>>"
        types = {**self._types_of_list_key(), ITEMS: item}
        return map_in_arrow(self.frame, replace(self.job, depth=depth).item_lists, types)

    def _types_of_list_key(self) -> dict[str, str]:
        list_id = {C.LIST_ID: "string"} if self.job.has_lists else {}
        return {C.MODEL_ID: "string", C.USER_ID: self.id_types[C.USER_ID], **list_id}


def unite_and_exchange(
    inputs: Mapping[int, DataFrame],  # by their number in :mod:`engine.row_kinds`; all have ``user_id``
    *,
    constants: DataFrame | None,  # one row with what is the same for all users
    columns: Mapping[str, T.DataType],
    n_partitions: int | None = None,  # that the rows go into; as Spark decides where it is None
) -> DataFrame:
    """Unite the inputs and move every row to its user; only the first row of a partition has the constants."""
    united = append_with_kinds(inputs, columns=columns)
    # Rows without a user, which workers only count, spread over all partitions.
    plain = [name for name, type_ in columns.items() if not isinstance(type_, T.ArrayType | T.MapType | T.StructType)]
    others = F.xxhash64(*(name for name in plain if name != C.USER_ID)).cast(columns[C.USER_ID])
    place = F.coalesce(F.col(C.USER_ID), others)
    exchanged = united.repartition(place) if n_partitions is None else united.repartition(n_partitions, place)
    if constants is None:
        return exchanged
    is_first = F.monotonically_increasing_id().bitwiseAND((1 << _ROW_NUMBER_BITS) - 1) == 0
    found = constants.select(F.struct(*constants.columns)).scalar()
    in_first = (
        F.when(is_first, found[field.name]).otherwise(empty_value(field.dataType)).alias(field.name)
        for field in constants.schema
    )
    return exchanged.select("*", *in_first)


def append_with_kinds(inputs: Mapping[int, DataFrame], *, columns: Mapping[str, T.DataType]) -> DataFrame:
    """Append frames, each row with its :data:`row_kinds.KIND`; a missing column is an :func:`empty_value`."""
    conformed = []
    for kind, frame in inputs.items():
        number = (
            row_kinds.KIND if row_kinds.KIND in frame.columns else F.lit(kind).cast("tinyint").alias(row_kinds.KIND)
        )
        selected = (
            F.col(name) if name in frame.columns else empty_value(type_).alias(name) for name, type_ in columns.items()
        )
        conformed.append(frame.select(number, *selected))
    return reduce(DataFrame.unionByName, conformed)


def empty_value(type_: T.DataType) -> Column:
    """Build the cheapest value of a type: NULL, but an empty array or map, and a struct of such values.

    Spark asks Arrow for the size of a batch after every row, and Arrow walks over all NULL arrays of the batch each
    time: 9 microseconds a row. Empty arrays cost nothing.
    """
    if isinstance(type_, T.ArrayType):
        return F.array().cast(type_)
    if isinstance(type_, T.MapType):
        return F.create_map().cast(type_)
    if isinstance(type_, T.StructType):
        return F.struct(*(empty_value(field.dataType).alias(field.name) for field in type_.fields))
    return F.lit(None).cast(type_)


def map_in_arrow(
    frame: DataFrame, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], types: Mapping[str, str]
) -> DataFrame:
    """Return what workers make of each partition, with columns in the order of ``types``, by which Spark reads them."""
    names = list(types)

    def in_order(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (batch.select(names) for batch in work(batches))

    return frame.mapInArrow(in_order, ", ".join(f"`{name}` {type_}" for name, type_ in types.items()))


def user_types(measures: Sequence[str], *, user: str = "string") -> dict[str, str]:
    types = {field.name: field.type for field in schemas.USER_METRICS.fields if field.name not in C.RUN_KEY}
    return {**types, C.USER_ID: user, **dict.fromkeys(measures, "double")}


def type_name_of(frame: DataFrame, name: str) -> str:
    return frame.schema[name].dataType.simpleString()
