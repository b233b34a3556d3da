"""Request of an evaluation: everything that is asked, validated by the same rules in a call and in a config."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from rankeval_spark import columns as C
from rankeval_spark.columns import MAX_ROWS_PER_USER
from rankeval_spark.config import requested_measures as requested
from rankeval_spark.config.base import (
    RECORDED_KEY,
    Model,
    each_once,
    fault_error,
    refuse_faults,
    repeated_faults,
    validate_with_faults,
)
from rankeval_spark.config.check_thresholds import Threshold
from rankeval_spark.config.inference import (
    Comparisons,
    Intervals,
    Models,
    absent_model_faults,
)
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.presets import PresetName, apply_preset, measure_gap_faults, options_of, rank_gap_faults
from rankeval_spark.config.requested_measures import WHOLE_LIST_WORD
from rankeval_spark.config.slicing import ReportedSlices, Slice, Slicing
from rankeval_spark.config.yaml_reader import to_text
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.measures import MAX_CUTOFF, Measure, MeasureSet, registry
from rankeval_spark.measures.names import expand_name, find_biases, find_name_notes
from rankeval_spark.measures.plugins import MODULE, load_plugins
from rankeval_spark.time_zones import UTC

if TYPE_CHECKING:
    from rankeval_spark.config.evaluation_config import EvaluationConfig
    from rankeval_spark.statistics.resampling import Draws


def _check_cutoff(value: Any) -> int | str:  # noqa: ANN401 - a file can hold anything
    if value == WHOLE_LIST_WORD:
        return WHOLE_LIST_WORD
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_CUTOFF:
        fix = f"write {WHOLE_LIST_WORD} for the whole list" if value == 0 else ""
        raise fault_error(Fault("", repr(value), f"a whole number from 1 to {MAX_CUTOFF} or {WHOLE_LIST_WORD!r}", fix))
    return value


def _check_measure(text: str, info: ValidationInfo) -> str:
    try:
        for each in expand_name(text):
            requested.read_measure(each, info.data.get("preset"))
    except ConfigError as error:
        raise fault_error(*requested.measure_faults(error, text)) from None
    return text


def _check_plugin(name: str) -> str:
    if not MODULE.fullmatch(name):
        raise fault_error(Fault("", repr(name), "the name of a module, such as team.measures", "leave .py out"))
    return name


def _load_plugins(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """Import the modules, but not those of a config that was read from published results."""
    if not (info.context or {}).get(RECORDED_KEY):
        try:
            load_plugins(names)
        except ConfigError as error:
            raise fault_error(*error.faults) from None
    return names


PluginName = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_check_plugin)]
Cutoff = Annotated[
    int | Literal["all"],
    PlainValidator(_check_cutoff),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_CUTOFF}, {"const": WHOLE_LIST_WORD}]}),
]
MeasureText = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_check_measure)]


def misfits(
    measures: MeasureSet, policies: Policies | None, models: Collection[str], preset: str | None
) -> list[Fault]:
    """Find measures that do not go with the policies, or with the models where any are named."""
    faults = requested.model_faults(measures, models) if models else []
    if policies:
        faults += [*requested.tie_faults(measures, policies.ties), *requested.judgement_faults(measures, policies)]
        faults += measure_gap_faults(measures, policies, preset)
    return faults


class Request(Model):
    """Everything that is asked of an evaluation, independent of files."""

    own: Annotated[tuple[Any, ...], Field(exclude=True, repr=False)] = ()
    """Definitions of the measures of a call that are functions."""
    plugins: Annotated[tuple[PluginName, ...], each_once("module"), AfterValidator(_load_plugins)] = ()
    """Modules that define measures of your own, such as team.measures. They are imported: plugins are code."""
    models: Models | None = None
    """Models that must be in the log. Without this key: the keys of `inputs.recommendations.paths`, else the models
    found in the log."""
    preset: PresetName | None = None
    """Another tool whose policies and measure options apply wherever this file sets none."""
    cutoffs: Annotated[tuple[Cutoff, ...], each_once("cutoff")] = ()
    """Cutoffs of every measure without one of its own. `all` is the whole list, which is also the default. A measure
    skips cutoffs that it does not support; P, for example, has no value for the whole list."""
    measures: Annotated[tuple[MeasureText, ...], Field(json_schema_extra={"minItems": 1})]
    """Measures, such as nDCG, P@5 or AP(denom='min'). `rankeval measures` lists them."""
    policies: Policies = Policies()
    """Rules for ties, duplicates, missing lists and invalid scores."""
    slices: tuple[Slice, ...] = ()
    """Segments to report on; a list of segments is their crossing. All users are always reported."""
    slicing: Slicing = Slicing()
    """Bands of segments, and the values that are reported for each slice."""
    intervals: Annotated[Intervals, Field(validate_default=True)] = Intervals()
    """Method and confidence of the intervals of means."""
    comparisons: Comparisons | None = None
    """Models to compare, and tests. Without this key, no models are compared."""

    evaluation_date: dt.date | None = None
    """Day at which the age of the items is taken."""
    events_until: dt.datetime | None = None
    """Moment up to which all events are there, with attribution by time."""
    time_zone: str = UTC
    """Zone of all days."""
    max_rows_per_user: int = MAX_ROWS_PER_USER
    """Largest number of rows of one user in all inputs together."""
    counts_seen: bool = False
    """Count recommended items that the user has in the training data, even if no measure needs the count; it
    costs a join."""
    counts_judged_seen: bool = True
    """Count judgements that are in the training data, whose rows move to their users for it."""
    reads_times: bool = False
    """Read all times that the inputs have, whether or not interactions are attributed by them: for a profile."""
    weighs_users: bool = False
    """Weigh users in every mean over them, by the input `user_weights`."""

    @model_validator(mode="before")
    @classmethod
    def _take_policies_of_the_preset(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever was written
        if isinstance(values, Mapping) and isinstance(values.get("preset"), str):
            policies = values.get("policies") or {}
            if isinstance(policies, Policies):
                policies = policies.model_dump(exclude_unset=True)
            if isinstance(policies, Mapping):
                return {**values, "policies": apply_preset(values["preset"], policies)}
        return values

    # Validators read the valid keys before theirs, and skip a check if one of its keys is not valid itself. Faults of
    # keys that do not fit each other are found at a key that no check reads (`intervals` here, `spark` in a config), so
    # that these keys count as valid in later checks. So faults of all keys are reported at once, and none twice.

    @field_validator("measures")
    @classmethod
    def _measures_fit_their_cutoffs(cls, measures: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not measures:
            raise fault_error(Fault("", "an empty list", "at least one, such as nDCG@10"))
        if "cutoffs" in info.data:
            try:
                requested.measure_set(measures, info.data["cutoffs"], info.data.get("preset"))
            except ConfigError as error:
                raise fault_error(*error.faults) from None
        return measures

    @field_validator("slices")
    @classmethod
    def _slices_once(cls, slices: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        refuse_faults(repeated_faults([C.CROSSING.join(sorted(names)) for names in slices], "slice"))
        return slices

    @field_validator("slicing")
    @classmethod
    def _measures_have_item_slices(cls, slicing: Slicing, info: ValidationInfo) -> Slicing:
        try:
            requested.measures_of({**info.data, "slicing": slicing})
        except ConfigError as error:  # the measures themselves are valid, so the fault is in the item slices
            raise fault_error(*(replace(fault, where=".item_slices") for fault in error.faults)) from None
        return slicing

    @field_validator("intervals", mode="wrap")
    @classmethod
    def _measures_and_policies_fit(
        cls,
        value: Any,  # noqa: ANN401 - a file can hold anything
        handler: ValidatorFunctionWrapHandler,
        info: ValidationInfo,
    ) -> Intervals:
        keys, faults = info.data, list[Fault]()
        measures, models, policies = requested.measures_of(keys), keys.get("models"), keys.get("policies")
        if policies:
            faults += rank_gap_faults(policies, keys.get("preset"))
        if measures:
            faults += misfits(measures, policies, models or (), keys.get("preset"))
        intervals: Intervals = validate_with_faults(handler, value, faults)
        return intervals

    @field_validator("comparisons", mode="wrap")
    @classmethod
    def _comparisons_fit(
        cls,
        value: Any,  # noqa: ANN401 - a file can hold anything
        handler: ValidatorFunctionWrapHandler,
        info: ValidationInfo,
    ) -> Comparisons | None:
        faults, models = list[Fault](), info.data.get("models")
        if isinstance(value, Mapping):
            faults += absent_model_faults(value, models) if models else []
            measures = requested.measures_of(info.data)
            if measures and not measures.comparable:
                found = f"{', '.join(map(str, measures.measures))}, none of which can be compared"
                expected = "at least one measure that is a mean or a ratio of sums over users"
                faults.append(Fault("/measures", found, expected))
            elif measures:
                faults += requested.primary_faults(value.get("primary"), measures, info.data["preset"])
        comparisons: Comparisons | None = validate_with_faults(handler, value, faults)
        return comparisons

    @cached_property
    def measure_set(self) -> MeasureSet:
        """Every measure at every requested cutoff, each once, in order of first mention, then in item slices."""
        with registry.knowing(self.own):
            found = requested.measure_set(self.measures, self.cutoffs, self.preset, self.slicing.item_slices)
        return found.weighted_by_user() if self.has_user_weights else found

    @property
    def has_user_weights(self) -> bool:
        """True if users have weights in the means over them."""
        return self.weighs_users

    @cached_property
    def primary(self) -> tuple[Measure, ...]:
        """Primary measures of comparisons: those named, else the first that can be compared, at its first cutoff."""
        named = self.comparisons.primary if self.comparisons else None
        if named is None:
            return next(((each,) for each in self.measure_set.per_list if each.link == "identity"), ())
        with registry.knowing(self.own):
            return tuple(Measure.parse(text, defaults=options_of(self.preset)) for text in named)

    @property
    def notes(self) -> Mapping[str, str]:
        """Notes with their kind: on names with several meanings, and on measures whose interval is around a bias."""
        with registry.knowing(self.own):
            found = [*find_biases(self.measure_set.labels), *self.comparison_notes, *filter(None, [self.weights_note])]
            return {**find_name_notes(self.measures, options_of(self.preset)), **dict.fromkeys(found, "biased")}

    @property
    def weights_note(self) -> str:
        """Note on the means that weights of users change, and on those that they do not; empty without weights."""
        if not self.has_user_weights:
            return ""
        others = ", ".join(dict.fromkeys(measure.label for measure in self.measure_set.exposures))
        unweighted = f"; not {others}, of all lists together" if others else ""
        return f"user_weights: means over users are weighted{unweighted}; quantiles and counts are not"

    @property
    def comparison_notes(self) -> list[str]:
        """Notes on an A/B test that leaves users out by what they did, and on nights without a measure to pool."""
        policies, asked, notes = self.policies, self.comparisons, list[str]()
        if asked and asked.split and (policies.population != "run" or policies.zero_relevant == "exclude"):
            notes.append(
                f"comparisons.split with population {policies.population!r} and zero_relevant "
                f"{policies.zero_relevant!r}: users who did nothing do not count, so a model that moves more users to "
                "act is compared on other users; population 'run' with zero_relevant 'zero' counts everyone whom it "
                "serves"
            )
        if asked and asked.nights > 1 and not self.pooled_measures:
            notes.append("comparisons.nights: only means over users are pooled, and there is none")
        return notes

    @property
    def pooled_measures(self) -> list[Measure]:
        """Measures that can be compared over several nights: means over users."""
        return [each for each in self.measure_set.measures if each.is_mean_of_users and self.policies.unit == "user"]

    @property
    def draws(self) -> Draws | None:
        """Random draws of bootstrap intervals; None: intervals by formula."""
        return self.intervals.draws

    @property
    def segments(self) -> tuple[str, ...]:
        """Segments of the slices, each once, in order of first mention."""
        return tuple(dict.fromkeys(name for crossing in self.slices for name in crossing))

    @property
    def every_slice(self) -> list[tuple[str, ...]]:
        """Segments of each slice; all users first."""
        return [(), *self.slices]

    @property
    def reported(self) -> ReportedSlices:
        """Every slice, with what holds for its rows."""
        return ReportedSlices(
            self.every_slice, self.slicing.min_slice_size, self.intervals.confidence, self.slicing.quantiles
        )

    @property
    def absent(self) -> Mapping[str, str]:
        """Segment values of a user who is absent from the data, where absence has a value."""
        return {name: band.kind.absent for name, band in self.slicing.bands.items() if band.kind.absent is not None}

    def as_request(self, **changes: object) -> Request:
        """Copy the keys of a request, with changes, from a config or a call that has more keys."""
        values = {name: getattr(self, name) for name in Request.model_fields}
        values["weighs_users"] = self.has_user_weights
        return Request.model_construct(**{**values, **changes})

    def to_yaml(self) -> str:
        """Return every key that differs from its default as the YAML of a config."""
        values = self._as_config()
        if self.slices:
            values["slices"] = [names[0] if len(names) == 1 else names for names in values["slices"]]
        first = {name: values[name] for name in ("evaluation", "inputs") if name in values}
        return to_text(first | values)

    def _as_config(self) -> dict[str, Any]:
        """Return the values of :meth:`to_yaml`."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def copy_with(self, **changes: object) -> Self:
        """Copy the request with changes, not validated; ``measure_set`` and ``primary`` replace those of the texts."""
        return self.model_copy(update=changes)


def request_of(config: EvaluationConfig, evaluation_date: dt.date) -> Request:
    """Return the request of a config for one date."""
    return config.as_request(
        models=config.expected_models,
        evaluation_date=evaluation_date,
        time_zone=config.inputs.time_zone,
        max_rows_per_user=config.inputs.max_rows_per_user,
        counts_seen=config.checks.seen_in_train != Threshold() and config.policies.seen_in_train == "keep",
        counts_judged_seen=config.checks.held_out_in_train != Threshold(),
    )


def agreement_request(request: Request, *, baseline: str, k: int, p: float) -> tuple[Request, dict[str, Measure]]:
    """Build the request for the agreement of lists with a baseline's, and return its three measures by name.

    All users of the run count, judged or not; ``p`` is the persistence of RBO. Only values per list are read, so slices
    and intervals are left out.
    """
    option = ("model", baseline)
    # built without parsing, because a model may have any name
    measures = {
        "overlap": Measure("Overlap", (option,), k),
        "jaccard": Measure("Jaccard", (option,), k),
        "rbo": Measure("RBO", (option, ("p", p)), k),
    }
    policies = request.policies.model_copy(update={"population": "run", "missing": "exclude"})
    plain = {"policies": policies, "slices": (), "counts_seen": False, "intervals": Intervals()}
    return request.copy_with(measure_set=MeasureSet.of([*measures.values()]), **plain), measures
