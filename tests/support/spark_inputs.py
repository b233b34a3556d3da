"""Inputs as Spark reads them, by the keys of a config, and their rows as plain Python."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark.config import (
    HeldOutInput,
    InputConfig,
    ItemsInput,
    RecommendationsInput,
    SegmentsInput,
    TrainInput,
    validate_model,
)
from rankeval_spark.inputs.spark.reading import Source, read_input

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.schemas import Schema

DATE: Final = dt.date(2026, 1, 2)
MODELS: Final[Mapping[str, type[InputConfig]]] = {
    **{"recommendations": RecommendationsInput, "held_out": HeldOutInput, "segments": SegmentsInput},
    **{"train": TrainInput, "items": ItemsInput},
}


def read(spark: SparkSession, schema: Schema, *, date: dt.date = DATE, **config: Any) -> Source:  # noqa: ANN401 - keys of the config
    return read_input(spark, schema.name, validate_model(MODELS[schema.name], config), schema, date)


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Collect columns of a frame, sorted."""
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=repr)


def write_lines(path: Path, *lines: str) -> str:
    """Write a file and return its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)
