"""The configuration of a nightly evaluation: typed, frozen, and valid once it exists."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from rankeval_spark import columns as C
from rankeval_spark.config import cross_checks, spark_settings
from rankeval_spark.config.base import (
    Flag,
    Model,
    ModelWithPaths,
    Number,
    PathText,
    Whole,
    each_once,
    fault_error,
    refuse_faults,
    repeated_faults,
    resolve_path,
    some_models_once,
    with_faults,
)
from rankeval_spark.config.check_thresholds import Checks
from rankeval_spark.config.cross_checks import WHOLE_LIST_WORD
from rankeval_spark.config.gates import Gate
from rankeval_spark.config.inference import Band, Comparisons, Intervals, ModelName, Quantiles, segments_from_train
from rankeval_spark.config.inputs import Inputs
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.presets import PresetName, options_of, rank_gap_faults, with_preset
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.limits import LEAST_USERS, MAX_ROWS_PER_USER
from rankeval_spark.measures import MAX_CUTOFF

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet

_OUR_NAMES = re.compile(r"^rankeval(?:\.|$)|\.sample-[^.]*(?:\.\d*)?$", re.IGNORECASE)
"""Reserved names: maintenance and samples of users are recorded under them, such as ``rankeval.maintain``."""

DEFAULTS_VERSION: Final = 1
"""Version of the defaults of all keys: raise it when one gets another value, or the same value another meaning.

A run that leaves the key out then counts as one of another config; `runs` records the version.
"""


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
    refuse_faults(cross_checks.check(text, defaults=options_of(info.data.get("preset"))))
    return text


def _crossing(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - a file can hold anything
    names = tuple(value) if isinstance(value, list | tuple) else (value,)
    faults = [
        Fault(f"[{index}]" if len(names) > 1 else "", repr(name), expected)
        for index, name in enumerate(names)
        for expected in _segment_name_faults(name, names[:index])
    ]
    refuse_faults(faults if names else [Fault("", "an empty list", "one or more segment names")])
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
    refuse_faults(cross_checks.gate_faults(gate, info.data))
    return gate


class ResultsConfig(ModelWithPaths):
    """Location and options of the results."""

    root: PathText
    """Folder of the published tables, relative to the config file."""
    lists: Flag = False
    """Also publish one compact row per list, so that `rankeval score` can compute further measures later."""
    quarantine: Flag = False
    """Keep unusable rows of the inputs, unchanged, in one table per night below _quarantine under the root. It costs
    another pass over inputs with such rows. The tables contain whatever the inputs contain, personal data too."""
    on_busy: Literal["fail", "wait"] = "fail"
    """What to do while another run holds the lock: fail at once, or wait."""
    wait_seconds: Annotated[Whole, Field(ge=0, le=86_400)] = 600
    """Longest wait for the lock, with on_busy: wait."""
    most_rows: Annotated[Whole, Field(ge=1, lt=2**63)] = 1_000_000
    """Largest number of rows of `metrics` and `comparisons`. A night with more is refused before it computes anything,
    because models, slice values, measures and cutoffs multiply, and a slice by user is usually a mistake."""
    one_run_per_root: Flag = False
    """Set to true for a store without locks, such as s3a, if the scheduler runs one job at a time on this root."""

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
    """The Spark session. Options of spark-submit take precedence."""

    master: str | None = None
    """Master URL. Without this key: that of spark-submit, else all local cores."""
    always: Flag = False
    """True: Spark computes every night. False: this process computes a night without a JVM if no master is set, the
    inputs are local Delta tables, Parquet, CSV, JSON or TREC files that fit into a quarter of its memory, and the
    results are local. The numbers are the same."""
    settings: Mapping[str, SettingValue] = {}
    """Spark settings. Write a secret as ${env:NAME} to take it from the environment; a literal secret is refused.
    Results record harmless settings (plans, sizes) with their values, and only the names of all others."""

    @field_validator("settings")
    @classmethod
    def _keys_are_of_spark(cls, settings: Mapping[str, str]) -> Mapping[str, str]:
        faults = [
            Fault(f".{key}", f"setting {key!r}", "a key that starts with spark.", f"did you mean 'spark.{key}'?")
            for key in settings
            if not key.startswith("spark.")
        ]
        for key, value in settings.items():
            if spark_settings.is_written_out(key, value):
                fix = "write the whole value as ${env:NAME}, or name a Hadoop credential provider"
                if key.startswith("spark.executor."):
                    fix = "write @FILE, a file of Java options that only the user of the executors can read"
                faults.append(Fault(f".{key}", "a secret in the config", "a value from the environment", fix))
        for key, value in settings.items():  # every value of the environment counts as a secret
            if spark_settings.is_reference(value) and spark_settings.is_shown(key):
                found = f"{value} in a setting that Spark shows on command lines or in its event log"
                fix = f"if it is no secret, pass it with --set 'spark.settings.{key}=...'"
                faults.append(Fault(f".{key}", found, "a value that is not secret", fix))
        refuse_faults(faults)
        return settings

    def resolved_settings(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the settings with ``${env:NAME}`` replaced; never store or show these.

        ConfigError where a variable is not set.
        """
        return spark_settings.fill_environment(self.settings, environment, "spark.settings")


class EvaluationConfig(Model):
    """A nightly evaluation: its inputs, measures, users and results."""

    evaluation: EvaluationName
    """Name of the evaluation. Results of different evaluations are separate."""
    inputs: Inputs
    """The tables that are read."""
    models: tuple[ModelName, ...] | None = None
    """Models that must be in the log. Without this key: the keys of `inputs.recommendations.paths`, else the models
    found in the log."""
    preset: PresetName | None = None
    """Another tool whose policies and measure options apply wherever this file sets none."""
    cutoffs: Annotated[tuple[Cutoff, ...], each_once("cutoff")] = ()
    """Cutoffs of every measure without one of its own. `all` is the whole list, which is also the default. A measure
    skips cutoffs that it does not support; P, for example, has no value for the whole list."""
    measures: Annotated[tuple[MeasureText, ...], Field(min_length=1)]
    """Measures, such as nDCG, P@5 or AP(denom='min'). `rankeval measures` lists them."""
    policies: Policies = Policies()
    """Rules for ties, duplicates, missing lists and invalid scores."""
    slices: tuple[Slice, ...] = ()
    """Segments to report on; a list of segments is their crossing. All users are always reported."""
    bands: Annotated[Mapping[SegmentName, Band], Field(validate_default=True)] = {}
    """Segments of `slices` made of numbers, by edges or quantiles, or of the number of a user's training interactions.
    The table `checks` reports the edges."""
    item_slices: Annotated[tuple[ItemSlice, ...], Field(validate_default=True)] = ()
    """Groups of items. Every measure that reads judgements is also computed within each group, as R(group='drama').
    Groups are categories of inputs.items, or head, middle and tail by popularity in inputs.train."""
    min_slice_size: Annotated[Whole, Field(ge=1, lt=2**31)] = LEAST_USERS
    """Number of users below which a slice is marked as small and a comparison has no p-value."""
    confidence: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    """Nominal coverage of the intervals."""
    quantiles: Quantiles = ()
    """Shares of the users, such as 0.5 for the median: `metrics` has the quantiles of the users' values. They are exact
    up to 2,049 distinct values of a slice and measure, else within `quantile_error`."""
    max_rows_per_user: RowsPerUser = MAX_ROWS_PER_USER
    """Largest number of rows of one user in all inputs together; with more, the run fails. A worker holds all rows of a
    user at once. Such a user is often a robot, or the shared id of users who are not logged in."""
    intervals: Intervals = Intervals()
    """How intervals of means are computed."""
    comparisons: Comparisons | None = None
    """Which models are compared. Without this key, none are."""
    gates: tuple[Annotated[Gate, AfterValidator(_gate)], ...] = ()
    """Rules that decide whether a model may ship. Results are published in any case."""
    checks: Checks = Checks()
    """Shares of faulty rows or users above which a run warns or fails."""
    results: ResultsConfig
    """Location and options of the results."""
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

    @field_validator("policies")
    @classmethod
    def _policies_fit(cls, policies: Policies, info: ValidationInfo) -> Policies:
        gaps = rank_gap_faults(policies, info.data.get("preset"))
        faults = [replace(fault, where=".rank_gaps") for fault in gaps]
        refuse_faults([*faults, *cross_checks.policy_faults(policies, info.data)])
        return policies

    @field_validator("slices")
    @classmethod
    def _slices_once(cls, slices: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        refuse_faults(repeated_faults([C.CROSSING.join(sorted(names)) for names in slices], "slice"))
        return slices

    # The validators below read several keys. Each is attached to the last key that it reads, and skips its check if
    # another key is not valid itself. So faults of all keys are reported at once, and none twice.

    @field_validator("measures")
    @classmethod
    def _measures_fit_their_cutoffs(cls, measures: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "cutoffs" in info.data:
            try:
                cross_checks.measure_set(measures, info.data["cutoffs"], defaults=options_of(info.data.get("preset")))
            except ConfigError as error:
                raise fault_error(*error.faults) from None
        return measures

    @field_validator("bands")
    @classmethod
    def _bands_and_slices_have_their_inputs(cls, bands: Mapping[str, Band], info: ValidationInfo) -> Mapping[str, Band]:
        refuse_faults(cross_checks.segment_faults(bands, info.data))
        return bands

    @field_validator("item_slices")
    @classmethod
    def _measures_have_what_they_need(cls, item_slices: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        refuse_faults(repeated_faults(item_slices, "item slice") or cross_checks.measure_faults(item_slices, info.data))
        return item_slices

    @field_validator("comparisons", mode="wrap")
    @classmethod
    def _comparisons_fit(
        cls,
        value: Any,  # noqa: ANN401 - a file can hold anything
        handler: ValidatorFunctionWrapHandler,
        info: ValidationInfo,
    ) -> Comparisons | None:
        faults = cross_checks.comparison_faults(value, info.data)
        try:
            comparisons: Comparisons | None = handler(value)
        except ValidationError as error:
            raise with_faults(error, faults) from None
        refuse_faults(faults)
        return comparisons

    @property
    def expected_models(self) -> tuple[str, ...] | None:
        """Models that must be in the log: `models`, else the keys of its paths; None: those found in it."""
        return self.models if self.models is not None else self.inputs.recommendations.expected_models

    def measure_set(self) -> MeasureSet:
        """Return every measure at every requested cutoff, each once, in order of first mention, then in item slices."""
        return cross_checks.requested_measures(dict(self))

    def segment_names(self) -> tuple[str, ...]:
        """Return the segment columns to read: those of `inputs.segments.columns`, then other segments of `slices`.

        Segments made of the training data are not among them.
        """
        declared = self.inputs.segments.columns if self.inputs.segments else {}
        sliced = [name for names in self.slices for name in names]
        made = (C.USER_ID, *segments_from_train(self.bands))
        return tuple(name for name in dict.fromkeys([*declared, *sliced]) if name not in made)

    def public_json(self) -> str:
        """Return the configuration as canonical JSON: every key, sorted, without secrets."""
        return self._to_json(without_defaults=False)

    @property
    def config_hash(self) -> str:
        """SHA-256 of what differs from its default, with paths as written, so that it is the same on every machine."""
        return self.hash_under(DEFAULTS_VERSION)

    def hash_under(self, defaults_version: int) -> str:
        """Return the hash of a config that ran under some version of the defaults.

        A key that a later version of this package adds changes no hash.
        """
        text = f"{defaults_version} {self._to_json(without_defaults=True)}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _to_json(self, *, without_defaults: bool) -> str:
        values = self.model_dump(mode="json", exclude_defaults=without_defaults)
        if settings := values.get("spark", {}).get("settings"):
            values["spark"]["settings"] = spark_settings.redact(settings)
        return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
