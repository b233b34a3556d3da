"""The arguments of ``evaluate``, validated by the rules and in the words of the config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """What is requested, in addition to the policies."""

    measures: tuple[str, ...]
    """Names of measures."""
    preset: PresetName | None = None
    """Conventions of another tool."""
    models: tuple[ModelName, ...] | None = None
    """Models that are expected."""
    slices: tuple[Slice, ...] = ()
    """Segments and crossings of segments."""
    bands: Mapping[str, Band] = {}
    """How numbers become segments."""
    item_slices: tuple[ItemSlice, ...] = ()
    """Groups of items."""
    ranks_from: RanksFrom = 1
    """Rank of the first item of a list in the log."""
    gains: Gains | None = None
    """How events of the judgements become gains."""
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


_NEEDED: Final = {
    "train": "a table with user_id and item_id",
    "items": "a table with item_id and facts of the items",
    "evaluation_date": "a date, such as date(2026, 1, 31)",
}
"""Arguments that only some measures need, for messages."""


@dataclass(frozen=True)
class FactInputs:
    """Arguments that only some measures need."""

    train: object = None
    items: object = None
    evaluation_date: date | None = None


@dataclass(frozen=True)
class Call:
    """The arguments of a call of ``evaluate``, by the rules that they are validated by."""

    general: Mapping[str, Any]  # those of :class:`Arguments`
    policies: Mapping[str, Any]  # those of the policies; None where one is left out
    compared: Mapping[str, Any]  # those of the comparisons
    intervals: Mapping[str, Any]  # those of the intervals
    segments: Sequence[str] | None = None  # columns of the input ``segments``; None where it is not given
    given: FactInputs = field(default_factory=FactInputs)  # the others

    @classmethod
    def of(cls, arguments: Mapping[str, Any], *, segments: Sequence[str] | None) -> Call:
        """Put each argument of ``evaluate`` with those that are validated by the same rules, by their names."""
        written = {**arguments, "bands": arguments["bands"] or {}}
        general, policies, compared = (
            {name: written[name] for name in model.model_fields} for model in (Arguments, Policies, Comparisons)
        )
        intervals = {"method": written["intervals"], "replicates": written["replicates"], "seed": written["seed"]}
        given = FactInputs(written["train"], written["items"], written["evaluation_date"])
        return cls(general, policies, compared, intervals, segments, given)

    @property
    def is_compared(self) -> bool:
        """Whether models are compared: a baseline is named, or all pairs or tests are requested."""
        return any(self.compared[name] not in defaults for name, defaults in _NOTHING_COMPARED.items())


def request_of_call(call: Call) -> Request:
    """Build the request of a call of ``evaluate``.

    Raises ConfigError if all faults of all arguments.
    """
    faults: list[Fault] = []

    def attempt(build: Callable[[], Result]) -> Result | None:
        try:
            return build()
        except ConfigError as error:
            faults.extend(error.faults)
            return None

    general, compared, given = call.general, call.compared, call.given
    day = given.evaluation_date
    if day is not None and type(day) is not date:  # a datetime is one too, and Spark would compare times with it
        faults.append(Fault(_place(("evaluation_date",)), repr(day), "a date, such as date(2026, 1, 31)"))
    arguments, unsound = _sound(general, faults)
    preset = general["preset"] if isinstance(general["preset"], str) else None
    chosen = attempt(lambda: _policies(call.policies, preset))
    # Invalid values are reported even if no comparison is requested.
    of_comparisons = compared if call.is_compared else {**compared, "pairs": "all"}
    valid = attempt(lambda: validate_model(Comparisons, of_comparisons, locate=_place))
    comparisons = valid if call.is_compared else None
    drawn = attempt(lambda: validate_model(Intervals, call.intervals, locate=_place_of_intervals))
    measures = None if "measures" in unsound else attempt(lambda: _measures(arguments, preset))
    if measures:
        faults += _missing(measures, given)
        faults += (replace(fault, where=_place(("measures",))) for fault in model_faults(measures, arguments.models))
    if unsound.isdisjoint(("slices", "bands")):
        faults += _unknown_segments(arguments, call.segments)
        there = [name for name, frame in (("segments", call.segments), ("train", given.train)) if frame is not None]
        found = band_faults(arguments.bands, slices=arguments.slices, given=there)
        faults += (replace(fault, where=_place(("bands",))) for _, fault in found)
    if call.is_compared and measures:
        faults += (replace(fault, where=_place(("measures",))) for fault in comparison_measure_faults(measures))
    if isinstance(compared["baseline"], str) and "models" not in unsound:
        unknown = baseline_faults(compared["baseline"], arguments.models)
        faults += (replace(fault, where=_place(("baseline",))) for fault in unknown)
    if chosen:
        faults += _policy_faults(chosen, measures, given, preset)
    if faults or chosen is None or measures is None or drawn is None:
        raise ConfigError(*dict.fromkeys(faults))  # a fault is reported once even if two checks find it
    return Request(
        measures,
        chosen,
        arguments.models,
        arguments.slices,
        arguments.min_slice_size,
        arguments.confidence,
        given.evaluation_date,
        comparisons,
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


def _policy_faults(
    policies: Policies, measures: MeasureSet | None, given: FactInputs, preset: str | None
) -> list[Fault]:
    """Name what a policy leaves items out by and is not there, and the measures that do not go with a policy."""
    there = [name for name, value in vars(given).items() if value is not None]
    lacking = [
        Fault(
            _place((inputs[0],)),
            "nothing",
            f"{' or '.join(inputs)}, for {name}='drop'",
            f"give it, or set {name} to keep",
        )
        for name, inputs in lacking_inputs(policies, there).items()
    ]
    if measures is None:
        return lacking
    unfit = [*tie_faults(measures, policies.ties), *judgement_faults(measures, policies)]
    unfit += measure_gap_faults(measures, policies, preset)
    return [*lacking, *(replace(fault, where=_place(("measures",))) for fault in unfit)]


def _missing(measures: MeasureSet, given: FactInputs) -> list[Fault]:
    """Name the arguments that are left out although a measure needs them."""
    there = ["recommendations", "held_out", *(name for name, value in vars(given).items() if value is not None)]
    return [
        Fault(
            f"evaluate({name}=)",
            "nothing",
            f"{_NEEDED.get(name, 'it')}, for {', '.join(labels)}",
            "give it, or leave these measures out",
        )
        for name, labels in measures.lacking(there).items()
    ]


def _sound(general: Mapping[str, Any], faults: list[Fault]) -> tuple[Arguments, set[str]]:
    """Read the arguments; give those that are not valid as if they were left out, and name them."""
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


def _place_of_intervals(place: tuple[str | int, ...]) -> str:
    """Write a place in ``Intervals`` as it is written in the call, where the method is ``evaluate(intervals=)``."""
    return _place(("intervals" if place == ("method",) else place[0],))


def _place(place: tuple[str | int, ...]) -> str:
    """Write a place as it is written in the call: ``evaluate(slices=)``, element 0 as ``evaluate(slices=)[0]``."""
    name, *rest = place or ("",)
    return f"evaluate({name}=)" + "".join(f"[{part}]" for part in rest)
