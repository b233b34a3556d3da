"""Which host evaluates: Spark, where the inputs are its DataFrames, or this process."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rankeval_spark.errors import Fault, InputError, kind_of


def is_on_spark(frames: Mapping[str, object]) -> bool:
    """Return True if the inputs are DataFrames of Spark.

    Raises
    ------
    InputError
        If some are and others are not.
    """
    # Those of pyspark 4.2 are streams of Arrow too, so Spark is recognised first; pyspark is not imported for it.
    given = {name: frame for name, frame in frames.items() if frame is not None}
    of_spark = [name for name, frame in given.items() if is_of_spark(frame)]
    others = [name for name in given if name not in of_spark]
    if not of_spark or not others:
        return bool(of_spark)
    first = of_spark[0]
    raise InputError(
        *(
            Fault(
                f"evaluate({name}=)",
                f"a {kind_of(given[name])}, while {first} is a DataFrame of Spark",
                "inputs of one kind",
                "spark.createDataFrame makes a DataFrame of it, toArrow() a table of those of Spark",
            )
            for name in others
        )
    )


def opened(frame: object) -> object:
    """Open an input that is nothing but a stream of Arrow, so that its columns are known before it is read, once."""
    if not hasattr(type(frame), "__arrow_c_stream__") or hasattr(frame, "columns"):
        return frame
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except (pa.ArrowException, TypeError):  # a stream of something that is no table, which is refused with the others
        return frame


def column_names(frame: object) -> list[str] | None:
    """Name the columns of an input, whichever library it is of; None where it is not given."""
    if frame is None:
        return None
    if isinstance(frame, pa.Table | pa.RecordBatch | pa.RecordBatchReader):  # their `columns` are arrays
        return list(frame.schema.names)
    return [str(name) for name in getattr(frame, "columns", ())]


def is_of_spark(frame: object) -> bool:
    """Return True if a frame is a DataFrame of Spark; pyspark is not imported for it."""
    return any(of.__module__.partition(".")[0] == "pyspark" for of in type(frame).__mro__)
