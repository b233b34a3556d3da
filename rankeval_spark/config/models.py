"""The configuration of a nightly evaluation: typed, frozen, and valid once it exists."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from rankeval_spark import columns as C
from rankeval_spark.config import asked, redaction, together
from rankeval_spark.config.asked import WHOLE_LIST_WORD
from rankeval_spark.config.bands import Band, of_train
from rankeval_spark.config.base import (
    FOLDER_KEY,
    Flag,
    Model,
    Number,
    Whole,
    fault_error,
    refuse_repeated,
    some_models_once,
    with_faults,
)
from rankeval_spark.config.comparisons import Comparisons, ModelName
from rankeval_spark.config.gates import Gate
from rankeval_spark.config.inputs import Inputs
from rankeval_spark.config.intervals import Intervals
from rankeval_spark.config.locations import PathText, resolve_path
from rankeval_spark.config.plain_settings import is_shown
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.presets import PresetName, options_of, rank_gap_faults, with_preset
from rankeval_spark.config.thresholds import Checks
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.limits import LEAST_USERS, MAX_ROWS_PER_USER
from rankeval_spark.measures import MAX_CUTOFF

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet


_OUR_NAMES = re.compile(r"^rankeval(?:\.|$)|\.sample-[^.]*(?:\.\d*)?$", re.IGNORECASE)
"""Names under which maintenance and samples of the users are recorded, as ``rankeval.maintain``."""


def _name(text: str) -> str:
    allowed = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
    if not set(text) <= allowed or text in (".", ".."):
        raise fault_error(Fault("", repr(text), "letters, digits, '_', '.' and '-'"))
    if _OUR_NAMES.search(text):
        expected = "a name of your own: rankeval.* and *.sample-SHARE are reserved"
        raise fault_error(Fault("", repr(text), expected, f"did you mean {_OUR_NAMES.sub('', text) or 'nightly'!r}?"))
    return text


def _cutoff(value: Any) -> int | str:  # noqa: ANN401 - a file can hold anything
    if value == WHOLE_LIST_WORD:
        return WHOLE_LIST_WORD
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_CUTOFF:
        fix = f"write {WHOLE_LIST_WORD} for the whole list" if value == 0 else ""
        raise fault_error(Fault("", repr(value), f"a whole number from 1 to {MAX_CUTOFF} or {WHOLE_LIST_WORD!r}", fix))
    return value


def _measure(text: str, info: ValidationInfo) -> str:
    faults = asked.check(text, defaults=options_of(info.data.get("preset")))
    if faults:
        raise fault_error(*faults)
    return text


def _crossing(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - a file can hold anything
    names = tuple(value) if isinstance(value, list | tuple) else (value,)
    faults = [
        Fault(f"[{index}]" if len(names) > 1 else "", repr(name), expected)
        for index, name in enumerate(names)
        for expected in _segment_name_faults(name, names[:index])
    ]
    if faults or not names:
        raise fault_error(*(faults or [Fault("", "an empty list", "one or more segment names")]))
    return names


def _segment_name_faults(name: Any, earlier: tuple[Any, ...]) -> list[str]:  # noqa: ANN401 - as above
    if not isinstance(name, str) or not name.strip():
        return ["the name of a segment"]
    if C.CROSSING in name or name in (C.ALL_USERS, C.USER_ID):
        return [f"a segment name without {C.CROSSING!r}, other than {C.ALL_USERS!r} and {C.USER_ID!r}"]
    return ["each segment once in a crossing"] if name in earlier else []


def _setting(value: Any) -> str:  # noqa: ANN401 - a file can hold anything
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise fault_error(Fault("", f"a {type(value).__name__}", "text, a number, true or false"))
    return str(value)


def _secret_fault(key: str) -> Fault:
    expected = "a value that the environment holds"
    fix = "write the whole value as ${env:NAME}, or name a Hadoop credential provider"
    if key.startswith("spark.executor."):
        fix = "write @FILE, a file of Java options that only the user of the executors can read"
    return Fault(f".{key}", "a secret in the config", expected, fix)


def _shown_fault(key: str, value: str) -> Fault:
    """Refuse a variable where Spark would show it: what the environment holds is taken for a secret."""
    found = f"{value} in a setting that Spark shows on command lines or in its events"
    fix = f"--set 'spark.settings.{key}=...' takes a value that is no secret from whoever starts the run"
    return Fault(f".{key}", found, "a value that may be seen", fix)


EvaluationName = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_name)]
Cutoff = Annotated[
    int | Literal["all"],
    PlainValidator(_cutoff),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_CUTOFF}, {"const": WHOLE_LIST_WORD}]}),
]
MeasureText = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_measure)]
_NAMES_SCHEMA = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
Slice = Annotated[
    tuple[str, ...], BeforeValidator(_crossing), WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES_SCHEMA]})
]
ItemSlice = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^([^']+|[^\"]+)$")]
RowsPerUser = Annotated[Whole, Field(ge=1, lt=2**63)]
SegmentName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
SettingValue = Annotated[str, PlainValidator(_setting), WithJsonSchema({"type": ["string", "number", "boolean"]})]


def _gate(gate: Gate, info: ValidationInfo) -> Gate:
    faults = together.gate_faults(gate, info.data)
    if faults:
        raise fault_error(*faults)
    return gate


class ResultsConfig(Model):
    """Where the results go."""

    root: PathText
    """Folder of the published tables, relative to the config file."""
    lists: Flag = False
    """Publish the compact row per list too, so that past dates can be scored with a later measure."""
    quarantine: Flag = False
    """Keep rows of the inputs that could not be used, unchanged, in _quarantine under the root, one table a night;
    costs one more pass over the inputs where there are any. They hold what the inputs hold, of users too."""
    on_busy: Literal["fail", "wait"] = "fail"
    """What to do while another run holds the results."""
    wait_seconds: Annotated[Whole, Field(ge=0, le=86_400)] = 600
    """Longest wait for the results, with on_busy: wait."""
    most_rows: Annotated[Whole, Field(ge=1, lt=2**63)] = 1_000_000
    """Rows of `metrics` and `comparisons` above which a night is refused before anything is computed: models, slice
    values, measures and cutoffs multiply, and a slice by user is a mistake more often than not."""
    one_run_per_root: Flag = False
    """The scheduler never runs two jobs on this root at once; for stores on which no lock can be taken, such as s3a."""
    _folder: str = PrivateAttr(default="")

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - signature of pydantic
        """Remember the folder of the config file, from which a relative path starts."""
        if context:
            self._folder = context[FOLDER_KEY]

    @property
    def location(self) -> str:
        """Absolute path of the results root."""
        return resolve_path(self.root, self._folder)

    @field_validator("root")
    @classmethod
    def _one_root_for_all_dates(cls, root: str) -> str:
        if "{" in root:
            raise fault_error(Fault("", repr(root), "one folder for all dates", "remove the placeholder"))
        return root


class SparkConfig(Model):
    """The Spark session; spark-submit's own options win."""

    master: str | None = None
    """Master URL; that of spark-submit, else all local cores, where it is left out."""
    settings: Mapping[str, SettingValue] = {}
    """Spark settings. A secret is written as ${env:NAME} and taken from the environment; one written here itself is
    refused. Settings that shape plans and sizes are stored with their values, the others by name alone."""

    @field_validator("settings")
    @classmethod
    def _keys_are_of_spark(cls, settings: Mapping[str, str]) -> Mapping[str, str]:
        faults = [
            Fault(f".{key}", f"setting {key!r}", "a key that starts with spark.", f"did you mean 'spark.{key}'?")
            for key in settings
            if not key.startswith("spark.")
        ]
        faults += [_secret_fault(key) for key, value in settings.items() if redaction.is_written_out(key, value)]
        shown = [key for key, value in settings.items() if redaction.is_reference(value) and is_shown(key)]
        faults += [_shown_fault(key, settings[key]) for key in shown]
        if faults:
            raise fault_error(*faults)
        return settings

    def resolved_settings(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the settings with ``${env:NAME}`` filled in; never store or show these.

        Raises
        ------
        ConfigError
            If a variable is not set.
        """
        return redaction.fill_environment(self.settings, environment, "spark.settings")


class EvaluationConfig(Model):
    """A nightly evaluation: what is read, what is measured, for which users, and where the results go."""

    evaluation: EvaluationName
    """Name of the evaluation; results of each are stored separately."""
    inputs: Inputs
    """The tables that are read."""
    models: tuple[ModelName, ...] | None = None
    """Models that are expected in the log; those found in it where this is left out."""
    preset: PresetName | None = None
    """Conventions of another tool: its policies, and its options of measures, where this file says nothing else."""
    cutoffs: tuple[Cutoff, ...] = ()
    """Cutoffs for every measure without one of its own; `all` is the whole list, and so is none. A measure is left out
    at those that it cannot have, as P of the whole list."""
    measures: Annotated[tuple[MeasureText, ...], Field(min_length=1)]
    """Measures, such as nDCG, P@5 or AP(denom='min'); `rankeval measures` lists them."""
    policies: Policies = Policies()
    """What is done with ties, duplicates, missing lists and invalid scores."""
    slices: tuple[Slice, ...] = ()
    """Segments to report on, and crossings of them as lists; all users are always reported."""
    bands: Annotated[Mapping[SegmentName, Band], Field(validate_default=True)] = {}
    """Segments of `slices` that are made of numbers: given edges, or quantiles; or of the number of a user's training
    interactions. The edges that came of it are in the table `checks`."""
    item_slices: Annotated[tuple[ItemSlice, ...], Field(validate_default=True)] = ()
    """Groups of items within which every measure that reads judgements is computed too, as R(group='drama'): categories
    of inputs.items; or head, middle and tail, by popularity in inputs.train."""
    min_slice_size: Annotated[Whole, Field(ge=1, lt=2**31)] = LEAST_USERS
    """Slices with fewer users are marked as small, and comparisons of fewer have no p-value."""
    confidence: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    """Nominal coverage of the intervals."""
    max_rows_per_user: RowsPerUser = MAX_ROWS_PER_USER
    """Rows of a user in all inputs together above which the run fails: a robot, or the id of everyone who is not logged
    in. A worker holds all rows of a user at once."""
    intervals: Intervals = Intervals()
    """How the intervals of means are made."""
    comparisons: Comparisons | None = None
    """Which models are compared with which; nothing is compared where this is left out."""
    gates: tuple[Annotated[Gate, AfterValidator(_gate)], ...] = ()
    """Rules that decide whether a model may ship; results are published whatever they say."""
    checks: Checks = Checks()
    """Shares of faulty rows or users at which a run warns or fails."""
    results: ResultsConfig
    """Where the results go."""
    spark: SparkConfig = SparkConfig()
    """The Spark session."""

    @model_validator(mode="before")
    @classmethod
    def _take_policies_of_the_preset(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever was written
        if not isinstance(values, Mapping) or not isinstance(values.get("preset"), str):
            return values
        policies = values.get("policies") or {}
        return (
            {**values, "policies": with_preset(values["preset"], policies)} if isinstance(policies, Mapping) else values
        )

    @field_validator("models")
    @classmethod
    def _models_once(cls, models: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return some_models_once(models, every="leave the key out for those found")

    @field_validator("cutoffs")
    @classmethod
    def _cutoffs_once(cls, cutoffs: tuple[int | str, ...]) -> tuple[int | str, ...]:
        refuse_repeated(cutoffs, "cutoff")
        return cutoffs

    @field_validator("policies")
    @classmethod
    def _policies_fit(cls, policies: Policies, info: ValidationInfo) -> Policies:
        gaps = rank_gap_faults(policies, info.data.get("preset"))
        faults = [replace(fault, where=".rank_gaps") for fault in gaps]
        faults += together.policy_faults(policies, info.data)
        if faults:
            raise fault_error(*faults)
        return policies

    @field_validator("slices")
    @classmethod
    def _slices_once(cls, slices: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        refuse_repeated([C.CROSSING.join(sorted(names)) for names in slices], "slice")
        return slices

    # The validators below look at several keys. Each is attached to the last key that it reads, and reports nothing
    # while another of them is not valid by itself: so faults of all keys are reported at once, and none of them twice.

    @field_validator("measures")
    @classmethod
    def _measures_fit_their_cutoffs(cls, measures: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "cutoffs" in info.data:
            try:
                asked.measure_set(measures, info.data["cutoffs"], defaults=options_of(info.data.get("preset")))
            except ConfigError as error:
                raise fault_error(*error.faults) from None
        return measures

    @field_validator("bands")
    @classmethod
    def _bands_and_slices_have_their_inputs(cls, bands: Mapping[str, Band], info: ValidationInfo) -> Mapping[str, Band]:
        faults = together.segment_faults(bands, info.data)
        if faults:
            raise fault_error(*faults)
        return bands

    @field_validator("item_slices")
    @classmethod
    def _measures_have_what_they_need(cls, item_slices: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        refuse_repeated(item_slices, "item slice")
        faults = together.measure_faults(item_slices, info.data)
        if faults:
            raise fault_error(*faults)
        return item_slices

    @field_validator("comparisons", mode="wrap")
    @classmethod
    def _comparisons_fit(
        cls,
        value: Any,  # noqa: ANN401 - a file can hold anything
        handler: ValidatorFunctionWrapHandler,
        info: ValidationInfo,
    ) -> Comparisons | None:
        faults = together.comparison_faults(value, info.data)
        try:
            comparisons: Comparisons | None = handler(value)
        except ValidationError as error:
            raise with_faults(error, faults) from None
        if faults:
            raise fault_error(*faults)
        return comparisons

    def measure_set(self) -> MeasureSet:
        """Return every measure at every requested cutoff, each once, in order of first mention, then in item slices."""
        whole = asked.measure_set(self.measures, self.cutoffs, defaults=options_of(self.preset))
        return asked.with_item_slices(whole, self.item_slices)

    def segment_names(self) -> tuple[str, ...]:
        """Return the segment columns that are read: those of `inputs.segments.columns`, then those sliced by.

        Those that are made of the training data are not among them.
        """
        declared = self.inputs.segments.columns if self.inputs.segments else {}
        sliced = [name for names in self.slices for name in names]
        made = (C.USER_ID, *of_train(self.bands))
        return tuple(name for name in dict.fromkeys([*declared, *sliced]) if name not in made)

    def public_json(self) -> str:
        """Return the configuration as canonical JSON: every key, sorted, without secrets."""
        values = self.model_dump(mode="json")
        values["spark"]["settings"] = redaction.redact(values["spark"]["settings"])
        return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def config_hash(self) -> str:
        """SHA-256 of :meth:`public_json`; paths enter as they are written, so that no machine enters."""
        return hashlib.sha256(self.public_json().encode()).hexdigest()
