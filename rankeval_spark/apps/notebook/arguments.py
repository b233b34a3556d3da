"""The arguments of ``evaluate``, validated by the rules and in the words of the config."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, ValidationError, field_validator

from rankeval_spark import columns as C
from rankeval_spark.config import Comparisons, Intervals, Policies, validate_model
from rankeval_spark.config.base import Model, Number, Whole, refuse_faults, repeated_faults, some_models_once
from rankeval_spark.config.cross_checks import judgement_faults, model_faults, tie_faults, with_item_slices
from rankeval_spark.config.evaluation_config import ItemSlice, RowsPerUser, Slice
from rankeval_spark.config.inference import (
    Band,
    ModelName,
    Quantiles,
    band_faults,
    baseline_faults,
    comparison_measure_faults,
    segments_from_train,
)
from rankeval_spark.config.inputs import Gains, RanksFrom
from rankeval_spark.config.loading import validation_faults
from rankeval_spark.config.policies import lacking_inputs
from rankeval_spark.config.presets import (
    PresetName,
    measure_gap_faults,
    options_of,
    rank_gap_faults,
    with_preset,
)
from rankeval_spark.config.request import Request
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.limits import LEAST_USERS, MAX_ROWS_PER_USER
from rankeval_spark.measures import MeasureSet
from rankeval_spark.measures.names import notes_on

Result = TypeVar("Result")


class Arguments(Model):
    """Arguments of a call, in addition to the policies."""

    measures: tuple[str, ...]
    """Names of measures."""
    preset: PresetName | None = None
    """Conventions of another tool."""
    models: tuple[ModelName, ...] | None = None
    """Models that are expected."""
    slices: tuple[Slice, ...] = ()
    """Segments and crossings of segments."""
    bands: Mapping[str, Band] = {}
    """Rules by which numbers become segments."""
    item_slices: tuple[ItemSlice, ...] = ()
    """Groups of items."""
    ranks_from: RanksFrom = 1
    """Rank of the first item of a list in the log."""
    gains: Gains | None = None
    """Rules by which events of the judgements become gains."""
    min_slice_size: Annotated[Whole, Field(ge=1)] = LEAST_USERS
    """Slices with fewer users are small, and comparisons of fewer have no p-value."""
    confidence: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    """Nominal coverage of the intervals."""
    quantiles: Quantiles = ()
    """Shares of the users up to whose values quantiles are reported."""
    max_rows_per_user: RowsPerUser = MAX_ROWS_PER_USER
    """Rows of a user in all inputs together above which a job fails."""

    @field_validator("models")
    @classmethod
    def _models_once(cls, models: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return some_models_once(models, every="None for those in the log")

    @field_validator("slices")
    @classmethod
    def _slices_once(cls, slices: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        refuse_faults(repeated_faults([C.CROSSING.join(sorted(names)) for names in slices], "slice"))
        return slices


_NOTHING_COMPARED: Final = {"baseline": (None,), "pairs": ("baseline",), "tests": (("t",), ["t"])}
"""The arguments of comparisons where none is requested."""

_OF_INTERVALS: Final = {"method": "intervals", "replicates": "replicates", "seed": "seed"}
"""Argument of each key of the intervals."""

_NEEDED: Final = {
    "train": "a table with user_id and item_id",
    "items": "a table with item_id and facts of the items",
    "evaluation_date": "a date, such as date(2026, 1, 31)",
}
"""Arguments that only some measures need, for messages."""


def request_of_call(given: Mapping[str, Any], *, segments: Sequence[str] | None) -> Request:
    """Build the request of a call of ``evaluate`` from its arguments by name.

    ``segments`` are columns of that input. Raises ConfigError with all faults of all arguments.
    """
    faults: list[Fault] = []

    def attempt(build: Callable[[], Result]) -> Result | None:
        try:
            return build()
        except ConfigError as error:
            faults.extend(error.faults)
            return None

    def add(name: str, found: Iterable[Fault]) -> None:
        faults.extend(replace(fault, where=_place((name,))) for fault in found)

    general, policies, compared = (
        {name: given[name] for name in model.model_fields if name in given}
        for model in (Arguments, Policies, Comparisons)
    )
    general |= {"bands": general.get("bands") or {}}
    drawing = {name: given[of] for name, of in _OF_INTERVALS.items() if of in given}
    is_compared = any(compared[name] not in defaults for name, defaults in _NOTHING_COMPARED.items())
    day, there = given.get("evaluation_date"), [name for name in _NEEDED if given.get(name) is not None]
    if day is not None and type(day) is not date:  # a datetime is one too, and Spark would compare times with it
        faults.append(Fault(_place(("evaluation_date",)), repr(day), _NEEDED["evaluation_date"]))
    arguments, unsound = _sound(general, faults)
    preset = general["preset"] if isinstance(general["preset"], str) else None
    chosen = attempt(lambda: _policies(policies, preset))
    # Invalid values are reported even if no comparison is requested.
    of_comparisons = compared if is_compared else {**compared, "pairs": "all"}
    comparisons = attempt(lambda: validate_model(Comparisons, of_comparisons, locate=_place))
    drawn = attempt(lambda: validate_model(Intervals, drawing, locate=lambda at: _place((_OF_INTERVALS[str(at[0])],))))
    measures = None if "measures" in unsound else attempt(lambda: _measures(arguments, preset))
    if measures:
        faults += _missing(measures, there)
        add("measures", model_faults(measures, arguments.models))
    if unsound.isdisjoint(("slices", "bands")):
        faults += _unknown_segments(arguments, segments)
        inputs = [*(["segments"] if segments is not None else []), *there]
        add("bands", (fault for _, fault in band_faults(arguments.bands, slices=arguments.slices, given=inputs)))
    add("measures", comparison_measure_faults(measures) if is_compared and measures else ())
    if isinstance(compared["baseline"], str) and "models" not in unsound:
        add("baseline", baseline_faults(compared["baseline"], arguments.models))
    faults += _lacking(chosen, there) if chosen else ()
    if chosen and measures:
        unfit = [*tie_faults(measures, chosen.ties), *judgement_faults(measures, chosen)]
        add("measures", [*unfit, *measure_gap_faults(measures, chosen, preset)])
    if faults or chosen is None or measures is None or drawn is None:
        raise ConfigError(*dict.fromkeys(faults))  # a fault is reported once even if two checks find it
    return Request(
        measures,
        chosen,
        arguments.models,
        arguments.slices,
        arguments.min_slice_size,
        arguments.confidence,
        day,
        comparisons if is_compared else None,
        draws=drawn.draws,
        bands=arguments.bands,
        max_rows_per_user=arguments.max_rows_per_user,
        quantiles=arguments.quantiles,
        notes=notes_on(arguments.measures, options_of(preset)),
    )


def _policies(written: Mapping[str, Any], preset: str | None) -> Policies:
    chosen = validate_model(Policies, with_preset(preset, written), locate=_place)
    faults = rank_gap_faults(chosen, preset)
    if faults:
        raise ConfigError(*(replace(fault, where=_place(("rank_gaps",))) for fault in faults))
    return chosen


def _lacking(policies: Policies, there: Sequence[str]) -> list[Fault]:
    """Find the arguments that are left out although a policy leaves items out by them."""
    return [
        Fault(
            _place((names[0],)),
            "nothing",
            f"{' or '.join(names)}, for {name}='drop'",
            f"give it, or set {name} to keep",
        )
        for name, names in lacking_inputs(policies, there).items()
    ]


def _missing(measures: MeasureSet, there: Sequence[str]) -> list[Fault]:
    """Find the arguments that are left out although a measure needs them."""
    lacking = measures.lacking(["recommendations", "held_out", *there])
    expected = {name: f"{_NEEDED.get(name, 'it')}, for {', '.join(labels)}" for name, labels in lacking.items()}
    fix = "give it, or leave these measures out"
    return [Fault(f"evaluate({name}=)", "nothing", text, fix) for name, text in expected.items()]


def _sound(general: Mapping[str, Any], faults: list[Fault]) -> tuple[Arguments, set[str]]:
    """Read the arguments, those that are not valid as if they were left out; also return the names of these."""
    try:
        return Arguments.model_validate(general), set()
    except ValidationError as error:
        faults += validation_faults(error, Arguments, _place)
        unsound = {str(details["loc"][0]) for details in error.errors(include_url=False)}
    sound = {name: value for name, value in general.items() if name not in unsound}
    return Arguments.model_validate({"measures": (), **sound}), unsound


def _measures(arguments: Arguments, preset: str | None) -> MeasureSet:
    whole = MeasureSet.parse(arguments.measures, where="evaluate(measures=)", defaults=options_of(preset))
    try:
        return with_item_slices(whole, arguments.item_slices)
    except ConfigError as error:
        raise ConfigError(*(replace(fault, where=_place(("item_slices",))) for fault in error.faults)) from None


def _unknown_segments(arguments: Arguments, segments: Sequence[str] | None) -> list[Fault]:
    known = [name for name in segments or () if name != C.USER_ID]
    expected = f"a column of segments: {', '.join(known)}" if known else "segments=, a table with the users' segments"
    names = dict.fromkeys(
        name for one in arguments.slices for name in one if name not in segments_from_train(arguments.bands)
    )
    return [
        Fault("evaluate(slices=)", repr(name), expected, nearest(name, known)) for name in names if name not in known
    ]


def _place(place: tuple[str | int, ...]) -> str:
    """Write a place as it is written in the call: ``evaluate(slices=)``, element 0 as ``evaluate(slices=)[0]``."""
    name, *rest = place or ("",)
    return f"evaluate({name}=)" + "".join(f"[{part}]" for part in rest)
