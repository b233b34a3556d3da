"""Which host evaluates: Spark, where the inputs are its DataFrames, or this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault, InputError, kind_of, warn_user
from rankeval_spark.inputs.input_columns import GAIN_NAMES, MODEL_NAMES, plain_name

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request


def is_on_spark(frames: Mapping[str, object]) -> bool:
    """Return True if the inputs are DataFrames of Spark.

    Raises InputError if some are and others are not.
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


def warn_without_model_column(log: Sequence[str]) -> None:
    """Warn of a log whose column of models has another name: the lists of all models would be those of one."""
    if likely := _misnamed(C.MODEL_ID, MODEL_NAMES, log):
        warn_user(
            "recommendations have no column 'model_id', so all lists count as those of one model; "
            f"if {likely!r} names the models, rename it to model_id"
        )


def warn_of_doubtful_names(request: Request) -> None:
    """Warn of a measure that has the name of another one in a tool that many use."""
    for note, kind in request.notes.items():
        if kind == "doubtful":
            warn_user(f"evaluate(measures=): {note}; write the measure that is meant, with its options")


def warn_without_gain_column(held_out: Sequence[str]) -> None:
    """Warn of judgements whose column of gains has another name: each of them would have the gain 1."""
    if likely := _misnamed(C.GAIN, GAIN_NAMES, held_out):
        warn_user(
            f"held_out has no column 'gain', so each of its rows has the gain 1; if {likely!r} holds the gains, "
            f"rename it to gain, or pass gains={{'column': {likely!r}, 'edges': [...]}}"
        )


def _misnamed(canonical: str, names: Sequence[str], columns: Sequence[str]) -> str | None:
    """Find the column that is likely meant where the canonical one is not there."""
    likely = (column for column in columns if plain_name(column) in names)
    return None if canonical in columns else next(likely, None)


def warn_of_unused_segments(columns: Sequence[str]) -> None:
    """Warn of segments of which no slice is requested."""
    names = [name for name in columns if name != C.USER_ID]
    if names:
        warn_user(f"segments= is given and not used; slices={names[:1]!r} makes slices of it")


def is_of_spark(frame: object) -> bool:
    """Return True if a frame is a DataFrame of Spark; pyspark is not imported for it."""
    return any(of.__module__.partition(".")[0] == "pyspark" for of in type(frame).__mro__)
