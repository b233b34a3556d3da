"""Host of a call of ``evaluate``: Spark, where the inputs are its DataFrames, or this process."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.config.inference import MAX_NAME
from rankeval_spark.config.inputs import FrameInputs
from rankeval_spark.errors import (
    ConfigError,
    Fault,
    FaultsError,
    InputError,
    kind_of,
    nearest,
    raise_together,
    shortened,
    warn_user,
)
from rankeval_spark.inputs.arrow.other_frames import is_dict_of_users, is_plain_dict, open_other
from rankeval_spark.inputs.arrow.reading import table_fault
from rankeval_spark.inputs.input_columns import FramesByModel, columns_by_name, each_frame, find_library

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request

FORMATS_OF_PATHS: Final = ("delta", "parquet", "csv", "json", "trec")


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


def open_inputs_of_call(
    frames: Mapping[str, Any],  # by argument
    inputs: object,  # how each is read, not validated yet
    date: object,  # for the placeholder `{date}` in paths
    format_: str | None = None,  # of paths whose ending says none
) -> dict[str, object]:
    """Open paths, and frames of other kinds, so that their columns are known; all faults at once."""
    log = frames["recommendations"]
    if is_plain_dict(log) and not {C.USER_ID, C.ITEM_ID} & log.keys() and not is_dict_of_users("recommendations", log):
        log = _check_models(log)
    opened, errors = each_frame({**frames, "recommendations": log}), list[FaultsError]()
    has_paths = any(isinstance(frame, str | os.PathLike) for frame in opened.values())
    if format_ is not None and (format_ not in FORMATS_OF_PATHS or not has_paths):
        fix = nearest(str(format_), FORMATS_OF_PATHS) if has_paths else "leave it out"
        found = repr(format_) if has_paths else f"{format_!r} and no path"
        errors.append(ConfigError(Fault("evaluate(format=)", found, f"one of {', '.join(FORMATS_OF_PATHS)}", fix)))
        format_ = None
    for place, frame in opened.items():
        name = place.partition("[")[0]
        rows = inputs.get(name) if isinstance(inputs, Mapping) else getattr(inputs, name, None)
        own_format = rows.get("format") if isinstance(rows, Mapping) else getattr(rows, "format", None)
        try:
            opened[place] = _open_frame(place, frame, own_format, format_, date if isinstance(date, dt.date) else None)
            is_looked_at = has_paths and frame is not None and not is_of_spark(frame)  # so that all faults come at once
            if is_looked_at and (fault := table_fault(place, opened[place])):
                errors.append(InputError(fault))
        except FaultsError as error:
            errors.append(error)
    raise_together(errors)
    by_name: dict[str, object] = {name: opened.pop(name, None) for name in frames}
    if isinstance(log, FramesByModel):
        by_name["recommendations"] = FramesByModel(zip(log, opened.values(), strict=True))
    return by_name


def _open_frame(
    place: str,
    frame: Any,  # noqa: ANN401 - of any library
    own_format: str | None,  # of this path
    format_: str | None,  # of all whose ending says none
    day: dt.date | None,
) -> object:
    """Open a path, or a frame of another kind; what cannot be opened is returned unchanged."""
    if isinstance(frame, str | os.PathLike):
        from rankeval_spark.inputs.arrow import file_frames  # noqa: PLC0415 - imports deltalake

        is_named = own_format is not None or file_frames.has_format(frame)
        return file_frames.open_frame(place, frame, own_format if is_named else format_, day)
    if own_format is not None:
        where, fix = f"{place.partition('[')[0]}.format", "leave the format out, or give the path of the files"
        raise ConfigError(Fault(where, f"a format of a {kind_of(frame)}", "a path with it", fix))
    if frame is None:
        return None
    if is_of_spark(frame):
        return frame.to_spark() if hasattr(type(frame), "to_spark") else frame  # of pandas on Spark
    opened = open_other(place, frame)
    return _open_stream(opened) if place == "segments" else opened


def read_library_columns(frames: Mapping[str, object], inputs: object) -> tuple[object, list[str]]:
    """Return ``inputs`` with the names of columns in frames of other libraries, and a note on each of these frames.

    Where the call names columns of a frame itself, they are as it says.
    """
    given = inputs.model_dump(exclude_unset=True) if isinstance(inputs, FrameInputs) else inputs
    if not isinstance(given, Mapping | None):
        return inputs, []
    found, notes = dict(given or {}), []
    for name, frame in frames.items():
        rows = found.get(name) or {}
        columns = set(column_names(frame))
        if isinstance(frame, FramesByModel):
            columns.intersection_update(*map(column_names, frame.values()))
        if (
            isinstance(rows, Mapping)
            and not {"columns", "nested"} & rows.keys()
            and (fitting := find_library(name, columns))
        ):
            library, renames = fitting
            found[name] = {**rows, "columns": renames}
            words = ", ".join(f"{own} is {canonical}" for canonical, own in renames.items())
            notes.append(f"{name} have the columns of {library}: {words}")
    return (found, notes) if notes else (inputs, [])


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
