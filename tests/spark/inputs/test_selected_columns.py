"""Which tables Spark selects as they are, and which are read by workers; decided by types, without a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import types as T

from rankeval_spark import schemas
from rankeval_spark.config.inputs import FrameInputs, Gains
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.arrow.canonical import Reading
from rankeval_spark.inputs.input_columns import CORRUPT, IS_UNPARSABLE, segments_schema
from rankeval_spark.inputs.spark.canonical_columns import Canonical, arrow_schema, plan_reading

if TYPE_CHECKING:
    from rankeval_spark.schemas import Schema

TYPES: Final = {
    **{"string": T.StringType(), "varchar": T.VarcharType(3), "boolean": T.BooleanType(), "void": T.NullType()},
    **{"short": T.ShortType(), "int": T.IntegerType(), "long": T.LongType(), "float": T.FloatType()},
    **{"double": T.DoubleType(), "whole": T.DecimalType(10, 0), "decimal": T.DecimalType(10, 2)},
    **{"date": T.DateType(), "timestamp": T.TimestampType(), "ntz": T.TimestampNTZType()},
    **{"texts": T.ArrayType(T.StringType()), "doubles": T.ArrayType(T.DoubleType())},
    **{"map": T.MapType(T.StringType(), T.IntegerType()), "days": T.DayTimeIntervalType(0, 0)},
}
LOG: Final = "user_id:string item_id:int"
GAINS: Final = Gains.model_validate({"column": "gain", "values": {1: 2}})


def canonical(schema: Schema, columns: str, **given: Any) -> Canonical:  # noqa: ANN401 - options of a call
    named = (each.split(":") for each in columns.split())
    table = T.StructType([T.StructField(name, TYPES[type_]) for name, type_ in named])
    rows = type(FrameInputs().frames[schema.name])(**given)
    return plan_reading(table, Reading.from_frame(schema.name, schema, arrow_schema(table), rows))


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        (schemas.RECOMMENDATIONS, f"{LOG} score:double model_id:varchar recommended_at:timestamp"),
        (schemas.RECOMMENDATIONS, f"{LOG} score:decimal rank:long list_id:long"),
        (schemas.RECOMMENDATIONS, f"{LOG} rank:short score:void"),
        (schemas.HELD_OUT, f"{LOG} gain:int value:float interacted_at:void"),
        (segments_schema(("age", "country"), numbers=("age",)), "user_id:long age:short country:int"),
        (schemas.ITEMS, "item_id:string published_at:date"),
    ],
)
def test_table_of_the_right_types_is_selected_by_spark(schema: Schema, columns: str) -> None:
    found = canonical(schema, columns)
    assert not found.is_read
    assert (IS_UNPARSABLE in found.given) == ("rank:long" in columns)


@pytest.mark.parametrize(
    ("schema", "columns", "given"),
    [
        (schemas.RECOMMENDATIONS, f"{LOG} score:string", {}),
        (schemas.RECOMMENDATIONS, f"{LOG} rank:int", {"ranks_from": 0}),
        (schemas.RECOMMENDATIONS, f"{LOG} score:double recommended_at:ntz", {}),
        (schemas.RECOMMENDATIONS, f"{LOG} score:double list_id:timestamp", {}),
        (schemas.RECOMMENDATIONS, f"{LOG} score:double {CORRUPT}:string", {}),
        (schemas.RECOMMENDATIONS, "user_id:string item_id:texts score:doubles", {}),
        (schemas.HELD_OUT, "user_id:whole item_id:int", {}),
        (schemas.HELD_OUT, f"{LOG} gain:decimal", {}),
        (schemas.HELD_OUT, f"{LOG} gain:boolean", {}),
        (schemas.HELD_OUT, f"{LOG} gain:int", {"gains": GAINS}),
        (schemas.TRAIN, f"{LOG} interacted_at:long", {}),
        (schemas.ITEMS, "item_id:string categories:texts", {}),
        (segments_schema(("age",)), "user_id:long age:double", {}),
    ],
)
def test_table_with_a_column_that_has_to_be_read_goes_to_workers(
    schema: Schema, columns: str, given: dict[str, Any]
) -> None:
    found = canonical(schema, columns, **given)
    assert found.is_read
    assert IS_UNPARSABLE in found.given


def test_types_that_cannot_be_read_are_named_as_spark_names_them() -> None:
    with pytest.raises(InputError) as raised:
        canonical(schemas.HELD_OUT, "user_id:double item_id:int gain:map value:days list_id:float")
    assert [(fault.found, fault.fix) for fault in raised.value.faults] == [
        ("column 'user_id' of type double for user_id", "cast it to text or to whole numbers"),
        ("column 'list_id' of type float for list_id", "cast it to text or to whole numbers"),
        ("column 'gain' of type map<string,int> for gain", ""),
        ("column 'value' of type interval day for value", ""),
    ]
