"""Host of a call of ``evaluate``: Spark, where the inputs are its DataFrames, or this process."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.config.inference import MAX_NAME
from rankeval_spark.errors import (
    ConfigError,
    Fault,
    FaultsError,
    InputError,
    kind_of,
    raise_together,
    shortened,
    warn_user,
)
from rankeval_spark.inputs.arrow.reading import table_fault
from rankeval_spark.inputs.input_columns import FramesByModel, columns_by_name, each_frame

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request


def is_on_spark(frames: Mapping[str, object]) -> bool:
    """Return True if the inputs are DataFrames of Spark; raises InputError if some are and others are not."""
    # Those of pyspark 4.2 are streams of Arrow too, so Spark is recognised first; pyspark is not imported for it.
    given = {place: frame for place, frame in each_frame(frames).items() if frame is not None}
    of_spark = [name for name, frame in given.items() if is_of_spark(frame)]
    others = [name for name in given if name not in of_spark]
    if not of_spark or not others:
        return bool(of_spark)
    kinds = {name: "path" if hasattr(type(given[name]), "as_config") else kind_of(given[name]) for name in others}
    found = {name: f"a {kind}, while {of_spark[0]} is a DataFrame of Spark" for name, kind in kinds.items()}
    fix = "spark.createDataFrame or spark.read makes a DataFrame of it, toArrow() a table of those of Spark"
    raise InputError(*(Fault(name, text, "inputs of one kind", fix) for name, text in found.items()))


def open_inputs_of_call(frames: Mapping[str, object], inputs: object, date: object) -> dict[str, object]:
    """Open paths, and the segments where they are a stream, so that their columns are known; all faults at once."""
    if isinstance(log := frames["recommendations"], dict) and not {C.USER_ID, C.ITEM_ID} & log.keys():
        frames = {**frames, "recommendations": _check_models(log)}
    opened, errors = each_frame(frames), list[FaultsError]()
    day = date if isinstance(date, dt.date) else None
    paths = {place: frame for place, frame in opened.items() if isinstance(frame, str | os.PathLike)}
    for place, frame in opened.items():
        name = place.partition("[")[0]
        rows = inputs.get(name) if isinstance(inputs, Mapping) else getattr(inputs, name, None)
        is_in_process = frame is not None and not is_of_spark(frame)
        format_ = rows.get("format") if isinstance(rows, Mapping) else getattr(rows, "format", None)
        try:
            if place in paths:
                from rankeval_spark.inputs.arrow import file_frames  # noqa: PLC0415 - imports deltalake

                opened[place] = file_frames.open_frame(place, paths[place], format_, day)
            elif format_ is not None:
                fix = "leave the format out, or give the path of the files"
                raise ConfigError(Fault(f"{name}.format", f"a format of a {kind_of(frame)}", "a path with it", fix))
            elif paths and is_in_process and (fault := table_fault(place, frame)):
                errors.append(InputError(fault))
            elif name == "segments":
                opened[place] = _open_stream(frame)
        except FaultsError as error:
            errors.append(error)
    raise_together(errors)
    found = {name: opened.pop(name, None) for name in frames}
    if isinstance(by_model := frames["recommendations"], FramesByModel):
        found["recommendations"] = FramesByModel(zip(by_model, opened.values(), strict=True))
    return found


def _check_models(log: Mapping[Any, object]) -> FramesByModel:
    """Return the frames of a mapping by model; refused where it has none, or a key that is no name."""
    faults = [] if log else [Fault("recommendations", "an empty dict", "a frame of each model, by its name")]
    for name in log:
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME:
            found = f"the key {shortened(repr(name))}"
            faults.append(Fault("recommendations", found, f"the name of a model, text of 1 to {MAX_NAME} characters"))
    if faults:
        raise ConfigError(*faults)
    return FramesByModel(log)


def _open_stream(frame: object) -> object:
    """Open an input that is nothing but a stream of Arrow, so that its columns are known before it is read, once."""
    if not hasattr(type(frame), "__arrow_c_stream__") or hasattr(frame, "columns"):
        return frame
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except (pa.ArrowException, TypeError):  # a stream of something that is no table, which is refused with the others
        return frame


def column_names(frame: object) -> list[str]:
    """List the columns of an input, whichever library it is of; none where it is not given."""
    if isinstance(frame, FramesByModel):
        return list(dict.fromkeys([C.MODEL_ID, *(name for one in frame.values() for name in column_names(one))]))
    if isinstance(frame, pa.Table | pa.RecordBatch | pa.RecordBatchReader):  # their `columns` are arrays
        return list(frame.schema.names)
    return [str(name) for name in getattr(frame, "columns", ())]


def warn_of_likely_mistakes(
    request: Request, log: Sequence[str], held_out: Sequence[str], unused_segments: Sequence[str]
) -> None:
    """Warn of names that probably mean something else, from the columns of the log, the judgements and the segments."""
    for note, kind in request.notes.items():
        if kind == "doubtful":
            warn_user(f"evaluate(measures=): {note}; write the measure that is meant, with its options")
    if likely := _find_misnamed(C.MODEL_ID, log):
        warn_user(
            "recommendations have no column 'model_id', so all lists count as those of one model; "
            f"if {likely!r} names the models, rename it to model_id"
        )
    if likely := _find_misnamed(C.GAIN, held_out):
        warn_user(
            f"held_out has no column 'gain', so each of its rows has the gain 1; if {likely!r} holds the gains, "
            f"rename it to gain, or pass inputs={{'held_out': {{'gains': {{'column': {likely!r}, 'edges': [...]}}}}}}"
        )
    names = [name for name in unused_segments if name != C.USER_ID]
    if names:
        warn_user(f"segments= is given and not used; slices={names[:1]!r} makes slices of it")


def _find_misnamed(canonical: str, columns: Sequence[str]) -> str | None:
    """Return the column that is likely meant where the canonical one is not there."""
    return None if canonical in columns else next(iter(columns_by_name(canonical, columns)), None)


def is_of_spark(frame: object) -> bool:
    """Return True if a frame, or the first of several by model, is a DataFrame of Spark; pyspark is not imported."""
    frame = next(iter(frame.values()), None) if isinstance(frame, dict) else frame
    return any(of.__module__.partition(".")[0] == "pyspark" for of in type(frame).__mro__)
