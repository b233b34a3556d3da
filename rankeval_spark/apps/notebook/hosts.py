"""Which host evaluates: Spark, where the inputs are its DataFrames, or this process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault, InputError, kind_of, warn_user
from rankeval_spark.inputs.input_columns import GAIN_NAMES, MODEL_NAMES


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


def warn_without_model_column(names: Sequence[str]) -> None:
    """Warn of a log whose column of models has another name: the lists of all models would be those of one."""
    likely = [name for name in names if re.sub("[^a-z0-9]", "", name.lower()) in MODEL_NAMES]
    if C.MODEL_ID not in names and likely:
        warn_user(
            "recommendations have no column 'model_id', so all lists count as those of one model; "
            f"if {likely[0]!r} names the models, rename it to model_id"
        )


def warn_of_ignored_columns(held_out: Sequence[str], unused: Sequence[str] | None, *, has_gains: bool) -> None:
    """Warn of columns that are hardly given to be ignored: gains of another name, and segments without slices.

    Parameters
    ----------
    held_out : sequence of str
        Columns of the judgements.
    unused : sequence of str or None
        Columns of the segments, where no slice is requested.
    has_gains : bool
        Whether events become gains, so that another column is read.
    """
    likely = [name for name in held_out if re.sub("[^a-z0-9]", "", name.lower()) in GAIN_NAMES]
    if C.GAIN not in held_out and not has_gains and likely:
        warn_user(
            f"held_out has no column 'gain', so each of its rows has the gain 1; if {likely[0]!r} holds the gains, "
            f"rename it to gain, or pass gains={{'column': {likely[0]!r}, 'edges': [...]}}"
        )
    names = [name for name in unused or () if name != C.USER_ID]
    if names:
        warn_user(f"segments= is given and not used; slices={names[:1]!r} makes slices of it")


def is_of_spark(frame: object) -> bool:
    """Return True if a frame is a DataFrame of Spark; pyspark is not imported for it."""
    return any(of.__module__.partition(".")[0] == "pyspark" for of in type(frame).__mro__)
