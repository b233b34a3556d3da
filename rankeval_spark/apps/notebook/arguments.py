"""Validation of the arguments of ``evaluate``, as for a config and in the words of the call."""

from __future__ import annotations

import datetime as dt
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from pydantic import ValidationInfo, field_validator
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.apps.notebook.hosts import column_names
from rankeval_spark.config import Comparisons, FrameInputs, Inputs, validate_model
from rankeval_spark.config.base import fault_error, refuse_faults
from rankeval_spark.config.loading import locate_in_call
from rankeval_spark.config.policies import lacking_inputs
from rankeval_spark.config.request import Request
from rankeval_spark.config.requested_measures import measures_of
from rankeval_spark.config.slicing import band_faults
from rankeval_spark.errors import ConfigError, Fault, InvalidCallError, kind_of, nearest, shortened
from rankeval_spark.inputs.input_columns import INPUTS, FramesByModel
from rankeval_spark.measures import registry
from rankeval_spark.measures.own import name_measure, own_measures
from rankeval_spark.measures.plugins import plugins_of
from rankeval_spark.refusals import SECTION_MODELS, model_faults

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NEEDED: Final = {
    "train": "a table with user_id and item_id",
    "items": "a table with item_id and facts of the items",
    "user_values": "a table with user_id, name and value",
    "user_weights": "a table with user_id and weight",
    "evaluation_date": "a date, such as '2026-01-31' or date(2026, 1, 31)",
}
"""Arguments that only some measures need, for messages."""

_ELSEWHERE: Final = {
    "cutoffs": "write them with the measures: measures=['nDCG@10']",
    "k": "write it with the measures: measures=['nDCG@10']",
    "metrics": "write measures=['nDCG@10']",
    **dict.fromkeys(("test", "truth", "ground_truth", "qrels", "interactions"), "pass it as held_out="),
    **dict.fromkeys(("recs", "recos", "reco", "predictions", "run"), "pass it as recommendations="),
    "threads": "set the threads of Arrow: pyarrow.set_cpu_count(4)",
}


class Call(Request):
    """Request of a call, and how its frames are read."""

    inputs: FrameInputs = FrameInputs()
    """Settings by which each frame is read."""
    given: Mapping[str, tuple[str, ...]]
    """Optional arguments that are given, with the columns of `segments`."""
    files: Mapping[str, Mapping[str, Any]] = {}
    """Keys of a config that say where an input is, of those that are named by paths."""
    input_notes: tuple[str, ...] = ()
    """Notes on frames that have the columns of another library."""

    @property
    @override
    def notes(self) -> Mapping[str, str]:
        return {**super().notes, **dict.fromkeys(self.input_notes, "inputs")}

    @property
    def request(self) -> Request:
        """The request, without the inputs."""
        inputs = self.inputs
        return self.as_request(max_rows_per_user=inputs.max_rows_per_user, time_zone=inputs.time_zone)

    @property
    @override
    def has_user_weights(self) -> bool:
        return "user_weights" in self.given

    @override
    def _as_config(self) -> dict[str, Any]:
        values = super()._as_config()
        rows, given, files = values.pop("inputs", {}), values.pop("given"), values.pop("files", {})
        values.pop("input_notes", None)
        values.pop("evaluation_date", None)  # of a night, it is the date of the run
        names = ("recommendations", "held_out", *(name for name in given if name in Inputs.model_fields))
        places = {name: files.get(name, {"format": "parquet", "path": f"data/{name}"}) for name in names}
        located = {name: {**place, **rows.get(name, {})} for name, place in places.items()}
        if values.get("models") == [*located["recommendations"].get("paths", ())]:
            values.pop("models")  # which the paths name
        most = {name: value for name, value in rows.items() if name not in FrameInputs().frames}
        return {"evaluation": "notebook", "inputs": {**located, **most}, **values, "results": {"root": "results"}}

    @override
    def to_yaml(self) -> str:
        homeless = [one.name for one in self.own if one.kernel.__module__ not in self.plugins]
        if not homeless:
            return super().to_yaml()
        has, them = ("measure", "it") if len(homeless) == 1 else ("measures", "them")
        to_do = f"Move {them} into a module, with the decorator @measure, and add plugins: [name.of.the.module]"
        return f"# Only this process has the {has} {', '.join(homeless)}. {to_do}\n{super().to_yaml()}"

    @field_validator("evaluation_date", mode="before")
    @classmethod
    def _is_a_day(cls, day: object) -> object:
        if type(day) is not dt.date:  # a datetime is one too, and Spark would compare times with it
            raise fault_error(Fault("", repr(day), _NEEDED["evaluation_date"]))
        return day

    @field_validator("given")
    @classmethod
    def _has_what_is_asked(
        cls, given: Mapping[str, tuple[str, ...]], info: ValidationInfo
    ) -> Mapping[str, tuple[str, ...]]:
        refuse_faults([*_missing_faults(info.data, given)])
        return given


def _missing_faults(keys: Mapping[str, Any], given: Mapping[str, tuple[str, ...]]) -> Iterator[Fault]:
    """Find inputs and columns of segments that the valid arguments need and lack."""
    if measures := measures_of(keys):
        for name, labels in measures.lacking(["recommendations", "held_out", *given]).items():
            expected = f"{_NEEDED.get(name, 'it')}, for {', '.join(labels)}"
            yield Fault(f"/{name}", "nothing", expected, "give it, or leave these measures out")
    if "slices" in keys and "slicing" in keys:
        slicing = keys["slicing"]
        segments = [name for name in given.get("segments", ()) if name != C.USER_ID]
        columns = (
            f"a column of segments: {', '.join(segments)}"
            if segments
            else "segments=, a table with the users' segments"
        )
        for name in dict.fromkeys(name for crossing in keys["slices"] for name in crossing):
            if name not in (*segments, *slicing.computed):
                yield Fault("/slices", repr(name), columns, nearest(name, segments))
        for fault in band_faults(slicing.bands, slices=keys["slices"], given=given):
            yield replace(fault, where="/slicing.bands")
    for name, inputs in lacking_inputs(keys["policies"], given).items() if "policies" in keys else ():
        expected = f"{' or '.join(inputs)}, for {name}={getattr(keys['policies'], name)!r}"
        yield Fault(f"/{inputs[0]}", "nothing", expected, f"give it, or set {name} to keep")


def validate_call(arguments: Mapping[str, Any], frames: Mapping[str, object]) -> Call:
    """Validate the arguments of ``evaluate`` by name, with its opened inputs; ConfigError with all faults at once."""
    refused = {name: value for name, value in arguments.items() if name not in INPUTS and column_names(value)}
    if refused:  # before values are compared, which for a table gives no truth value
        fix = "name the argument of each table: evaluate(recommendations, held_out, measures=[...], train=...)"
        expected = "a value, because this argument takes no table"
        raise ConfigError(*(Fault(f"evaluate({one}=)", f"a {kind_of(v)}", expected, fix) for one, v in refused.items()))
    segments = frames["segments"]
    baseline, given = arguments["baseline"], {name: () for name in _NEEDED if arguments.get(name) is not None}
    compared, faults = _merge_baseline(baseline, arguments["comparisons"])
    if isinstance(compared, Mapping) and isinstance(primary := compared.get("primary"), list | tuple):
        compared = {**compared, "primary": [*map(name_measure, primary)]}
    by_model = frames.get("recommendations")
    models = tuple(by_model) if isinstance(by_model, FramesByModel) else None
    if models and isinstance(named := arguments["models"], list | tuple):
        faults += model_faults({f"models[{n}]": name for n, name in enumerate(named)}, models)
    measures, own, of_functions = own_measures(arguments["measures"])
    faults += of_functions
    values = {
        **{name: arguments[name] for name in Call.model_fields if name in arguments},
        **{"measures": measures, "own": own, "plugins": plugins_of(own)},
        **({"models": models} if models and arguments["models"] is None else {}),
        "comparisons": compared,
        "given": given if segments is None else {"segments": column_names(segments), **given},
        "files": {name: place for name, frame in frames.items() if (place := _place_in_config(frame))},
    }

    def locate(place: tuple[str | int, ...]) -> str:
        return _ARGUMENT(("baseline",) if baseline is not None and place == ("comparisons", "baseline") else place)

    try:
        with registry.knowing(own):
            call = validate_model(Call, values, locate=locate)
    except ConfigError as error:
        listed = measures if isinstance(measures, list | tuple) else ()
        texts = {locate(("measures", index)): str(text).strip() for index, text in enumerate(listed)}
        found = (_move_measure(fault, texts.get(fault.where, "")) for fault in error.faults)
        raise ConfigError(*faults, *found) from None
    if faults:
        raise ConfigError(*faults)
    return call


def _place_in_config(frame: Any) -> dict[str, Any]:  # noqa: ANN401 - of any library
    """Return the keys of a config that say where a frame of files is; of frames by model, a place of each of them."""
    if not isinstance(frame, FramesByModel):
        return dict(frame.as_config()) if hasattr(type(frame), "as_config") else {}
    places = [_place_in_config(one) for one in frame.values()]
    paths = [place.pop("path", None) for place in places]
    if None in paths or any(place != places[0] for place in places):  # a config has one format for all models
        names = (name if re.fullmatch(r"\w[\w.-]*", name) else f"model_{n}" for n, name in enumerate(frame, 1))
        places, paths = [{"format": "parquet"}], [f"data/recommendations/{name}" for name in names]
    return {**places[0], "paths": dict(zip(frame, paths, strict=True))}


_ARGUMENT: Final = locate_in_call("evaluate")


def _merge_baseline(baseline: object, comparisons: object) -> tuple[object, list[Fault]]:
    """Return the section of comparisons with the argument ``baseline``, and what is wrong where it names another."""
    if isinstance(comparisons, Comparisons):
        comparisons = comparisons.model_dump(exclude_unset=True)
    faults = []
    if isinstance(comparisons, Mapping) and comparisons.get("nights", 1) != 1:
        fix = "leave it out; rankeval run reads the nights that it published before"
        faults.append(Fault("evaluate(comparisons=).nights", repr(comparisons["nights"]), "one night", fix))
    if isinstance(comparisons, Mapping) and comparisons.get("covariate") is not None:
        fix = "leave it out; rankeval run reads the users that it published before"
        found = repr(str(comparisons["covariate"]))
        faults.append(Fault("evaluate(comparisons=).covariate", found, "no earlier night in a call", fix))
    if baseline is None or not isinstance(comparisons, Mapping | None):
        return comparisons, faults
    named = (comparisons or {}).get("baseline")
    if named not in (None, baseline):
        found, fix = f"{baseline!r}, while comparisons have the baseline {named!r}", "leave one of them out"
        faults.append(Fault("evaluate(baseline=)", found, "one baseline", fix))
    return {**(comparisons or {}), "baseline": baseline}, faults


def _move_measure(fault: Fault, text: str) -> Fault:
    """Write the text of a measure behind its place instead of behind what was found, because a call has no lines."""
    if not fault.found.endswith(f" in {text!r}"):
        return fault
    found = fault.found.removesuffix(f" in {text!r}")
    return Fault(f"{fault.where}, {text}", found, fault.expected, fault.fix)


def name_misplaced_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise InvalidCallError, with the place where it belongs, for an argument that a function does not have."""
    parameters = list(inspect.signature(function).parameters)

    @wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        unknown = [name for name in kwargs if name not in parameters]
        if unknown:
            called = function.__name__
            raise InvalidCallError(*(_misplaced_fault(called, name, kwargs[name], parameters) for name in unknown))
        return function(*args, **kwargs)

    return checked


def _misplaced_fault(called: str, name: str, value: object, parameters: Sequence[str]) -> Fault:
    """Build the fault of an unknown argument, with the places of the call that have such a key."""
    text = shortened(repr(value))
    places = [
        f"{section}={{{name!r}: {text}}}"
        for section, model in SECTION_MODELS.items()
        if name in model.model_fields and section in parameters
    ]
    places += [
        f"inputs={{{frame!r}: {{{name!r}: {text}}}}}"
        for frame, rows in FrameInputs().frames.items()
        if name in type(rows).model_fields
    ]
    places += [f"inputs={{{name!r}: {text}}}"] if name in FrameInputs.model_fields else []
    sections = (key for name, model in SECTION_MODELS.items() if name in parameters for key in model.model_fields)
    fix = _ELSEWHERE.get(name) or (
        f"write {' or '.join(places)}" if places else nearest(name, [*parameters, *sections])
    )
    expected = f"an argument of {called}" if fix else f"one of {', '.join(parameters)}"
    return Fault(f"{called}({name}=)", "an unknown argument", expected, fix)
