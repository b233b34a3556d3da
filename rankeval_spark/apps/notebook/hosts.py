"""Host of a call of ``evaluate``: Spark, where the inputs are its DataFrames, or this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault, InputError, kind_of, warn_user
from rankeval_spark.inputs.input_columns import columns_by_name

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request


def is_on_spark(frames: Mapping[str, object]) -> bool:
    """Return True if the inputs are DataFrames of Spark; raises InputError if some are and others are not."""
    # Those of pyspark 4.2 are streams of Arrow too, so Spark is recognised first; pyspark is not imported for it.
    given = {name: frame for name, frame in frames.items() if frame is not None}
    of_spark = [name for name, frame in given.items() if is_of_spark(frame)]
    others = [name for name in given if name not in of_spark]
    if not of_spark or not others:
        return bool(of_spark)
    found = {name: f"a {kind_of(given[name])}, while {of_spark[0]} is a DataFrame of Spark" for name in others}
    fix = "spark.createDataFrame makes a DataFrame of it, toArrow() a table of those of Spark"
    raise InputError(*(Fault(f"evaluate({name}=)", text, "inputs of one kind", fix) for name, text in found.items()))


def opened(frame: object) -> object:
    """Open an input that is nothing but a stream of Arrow, so that its columns are known before it is read, once."""
    if not hasattr(type(frame), "__arrow_c_stream__") or hasattr(frame, "columns"):
        return frame
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except (pa.ArrowException, TypeError):  # a stream of something that is no table, which is refused with the others
        return frame


def column_names(frame: object) -> list[str]:
    """List the columns of an input, whichever library it is of; none where it is not given."""
    if isinstance(frame, pa.Table | pa.RecordBatch | pa.RecordBatchReader):  # their `columns` are arrays
        return list(frame.schema.names)
    return [str(name) for name in getattr(frame, "columns", ())]


def warn_of_likely_mistakes(
    request: Request, log: Sequence[str], held_out: Sequence[str], unused_segments: Sequence[str]
) -> None:
    """Warn of names that probably mean something else, from the columns of the log, the judgements and the segments.

    The lists of all models would be those of one, each judgement would have the gain 1, and a measure would not be that
    of a tool which many use.
    """
    for note, kind in request.notes.items():
        if kind == "doubtful":
            warn_user(f"evaluate(measures=): {note}; write the measure that is meant, with its options")
    if likely := _misnamed(C.MODEL_ID, log):
        warn_user(
            "recommendations have no column 'model_id', so all lists count as those of one model; "
            f"if {likely!r} names the models, rename it to model_id"
        )
    if likely := _misnamed(C.GAIN, held_out):
        warn_user(
            f"held_out has no column 'gain', so each of its rows has the gain 1; if {likely!r} holds the gains, "
            f"rename it to gain, or pass inputs={{'held_out': {{'gains': {{'column': {likely!r}, 'edges': [...]}}}}}}"
        )
    names = [name for name in unused_segments if name != C.USER_ID]
    if names:
        warn_user(f"segments= is given and not used; slices={names[:1]!r} makes slices of it")


def _misnamed(canonical: str, columns: Sequence[str]) -> str | None:
    """Return the column that is likely meant where the canonical one is not there."""
    return None if canonical in columns else next(iter(columns_by_name(canonical, columns)), None)


def is_of_spark(frame: object) -> bool:
    """Return True if a frame is a DataFrame of Spark; pyspark is not imported for it."""
    return any(of.__module__.partition(".")[0] == "pyspark" for of in type(frame).__mro__)
