"""The configuration of a nightly evaluation: typed, frozen, and valid once it exists."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self, get_args

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
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.columns import MAX_ROWS_PER_USER
from rankeval_spark.config import spark_settings
from rankeval_spark.config.base import (
    Flag,
    Model,
    ModelWithPaths,
    RootText,
    Whole,
    each_once,
    fault_error,
    refuse_faults,
    resolve_path,
    validate_with_faults,
)
from rankeval_spark.config.check_thresholds import Checks
from rankeval_spark.config.gates import Gate, gate_faults
from rankeval_spark.config.inference import absent_model_faults
from rankeval_spark.config.inputs import Inputs
from rankeval_spark.config.policies import lacking_inputs
from rankeval_spark.config.request import Request
from rankeval_spark.config.requested_measures import measures_of, model_faults
from rankeval_spark.config.slicing import band_faults
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.time_zones import UTC

# Reserved names: maintenance and samples of users are recorded under them, such as ``rankeval.maintain``.
_OUR_NAMES = re.compile(r"^rankeval(?:\.|$)|\.sample-[^.]*(?:\.\d*)?$", re.IGNORECASE)

# Version of the defaults of all keys, which `runs` records: raise it when one gets another value or another meaning.
DEFAULTS_VERSION: Final = 1


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]*", text) or text in (".", ".."):
        raise fault_error(Fault("", repr(text), "letters, digits, '_', '.' and '-'"))
    if _OUR_NAMES.search(text):
        expected = "a name of your own: rankeval.* and *.sample-SHARE are reserved"
        raise fault_error(Fault("", repr(text), expected, f"did you mean {_OUR_NAMES.sub('', text) or 'nightly'!r}?"))
    return text


def _check_endpoint(text: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9._-]+(:\d+)?(/[A-Za-z0-9._/-]*)?", text):
        found = "a user or a password in the address" if "@" in text else repr(text)
        raise fault_error(Fault("", found, "an address such as https://s3.example.org:9000, without secrets"))
    return text


def _setting_text(value: Any) -> str:  # noqa: ANN401 - a file can hold anything
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise fault_error(Fault("", f"a {type(value).__name__}", "text, a number, true or false"))
    return str(value)


EvaluationName = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_check_name)]
SettingValue = Annotated[str, PlainValidator(_setting_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]


def _check_gate(gate: Gate, info: ValidationInfo) -> Gate:
    refuse_faults(gate_faults(gate, info.data))
    return gate


_NAME_OF_SCHEMA: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){1,2}")


def _schema_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", text):
        raise fault_error(Fault("", repr(text), "the name of a schema, such as analytics or main.analytics"))
    return text


with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic keeps a deprecated method of this name

    class _ResultsOfSchema(ModelWithPaths):
        schema: Annotated[str, AfterValidator(_schema_name)] | None = None  # type: ignore[assignment]  # the method again
        """Instead of root: a schema of Spark's catalog, as `[catalog.]schema`. A run asks Spark for its location, which
        has to be a folder or in an object store, publishes there, and registers the tables in the schema."""


class ResultsConfig(_ResultsOfSchema):
    """Location and options of the results."""

    root: RootText | None = None
    """Folder of the published tables, relative to the config file."""
    lists: Flag = False
    """Also publish one compact row per list, so that `rankeval score` can compute further measures later."""
    examples: Annotated[Whole, Field(ge=0, le=20)] = 0
    """Users who win most, and as many who lose most, under each model against the baseline, by the first primary
    measure. They are published with the items of their lists in the table `examples`, which the report shows."""
    quarantine: Flag = False
    """Keep unusable rows of the inputs, unchanged, in one table per night below _quarantine under the root. It costs
    another pass over inputs with such rows. The tables contain whatever the inputs contain, personal data too."""
    on_busy: Literal["fail", "wait"] = "fail"
    """Reaction to a lock that another run holds: fail at once, or wait."""
    wait_seconds: Annotated[Whole, Field(ge=0, le=86_400)] = 600
    """Longest wait for the lock, with on_busy: wait."""
    most_rows: Annotated[Whole, Field(ge=1, lt=2**63)] = 1_000_000
    """Largest number of rows of `metrics` and `comparisons`. A night with more is refused before it computes anything,
    because models, slice values, measures and cutoffs multiply, and a slice by user is usually a mistake."""
    one_run_per_root: Flag = False
    """Set to true for a store without conditional writes if the scheduler runs one job at a time on this root."""

    @property
    def location(self) -> str:
        """Absolute path of the results root; ConfigError where only Spark knows it, see :meth:`at`."""
        if self.root is None:
            found = f"the schema {self.schema}, whose location Spark knows"
            raise ConfigError(Fault("results.schema", found, "results.root, the path of the results"))
        return resolve_path(self.root, self._folder)

    def at(self, root: str) -> Self:
        """Return the same at the location of the schema."""
        return self.model_copy(update={"root": root, "schema": None})

    @field_validator("root")
    @classmethod
    def _one_root_for_all_dates(cls, root: str | None) -> str | None:
        if root is not None and "{" in root:
            raise fault_error(Fault("", repr(root), "one folder for all dates", "remove the placeholder"))
        return root

    @model_validator(mode="after")
    def _one_place(self) -> ResultsConfig:
        if self.root is None and self.schema is None:
            fix = "write root: results for a folder next to this file"
            raise fault_error(Fault("", "no 'results.root'", "this key, or schema: a schema of a catalog", fix))
        if self.root is not None and self.schema is not None:
            fix = "remove root: a run finds the location of the schema"
            raise fault_error(Fault(".root", "both root and schema", "one of them", fix))
        if self.root and _NAME_OF_SCHEMA.fullmatch(self.root) and not Path(self.location).exists():
            expected = "a folder, or an address such as s3://bucket/results: was a schema of a catalog meant?"
            fix = f"write ./{self.root} for a folder of this name, or schema: {self.root}"
            raise fault_error(Fault(".root", repr(self.root), expected, fix))
        return self


def _check_reference(text: str) -> str:
    """Refuse a webhook that is not written as ``${env:NAME}``."""
    if not spark_settings.is_reference(text):  # not shown: it may be the address
        raise fault_error(Fault("", "another text", "${env:NAME}", "put the address into that variable"))
    return text


def _check_entry_point(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", text):
        expected = "the name of an entry point: letters, digits, '_', '.' and '-'"
        raise fault_error(Fault("", "another text", expected, "give a webhook as url:"))
    return text


Event = Literal["gate_failed", "night_failed", "checks_warn", "drift"]


class Notification(Model):
    """A receiver of alerts about nights: a webhook, or a function of an installed package.

    Alerts are sent once a night is published, or recorded as failed, and never change the outcome of a run.
    """

    url: Annotated[str, AfterValidator(_check_reference)] | None = None
    """Webhook, written as ${env:NAME}: its address is a secret, which the environment has. It gets a POST of JSON."""
    form: Literal["json", "slack", "teams"] = "json"
    """Body for the webhook: json is the document that `rankeval run --json` prints; slack and teams are messages."""
    call: Annotated[str, AfterValidator(_check_entry_point)] | None = None
    """Instead of url: name of an entry point in the group rankeval_spark.notify, a function of that document."""
    events: Annotated[tuple[Event, ...], Field(min_length=1), each_once("event")] = get_args(Event)
    """Events that are sent. gate_failed: published, but a rule is not met; night_failed: nothing was published, unless
    another run holds the night; checks_warn: a check warns; drift: that of drift does."""

    @model_validator(mode="after")
    def _has_one_receiver(self) -> Notification:
        if (self.url is None) == (self.call is None):
            found = "neither url nor call" if self.url is None else "url and call"
            refuse_faults([Fault("", found, "one of them", "write an entry for each receiver")])
        if self.call is not None and self.form != "json":
            refuse_faults([Fault(".form", f"{self.form} with call", "a form with url only", "remove it")])
        return self


class StoresConfig(Model):
    """Object stores of inputs and results. Credentials are those of the environment or of the platform's identity."""

    endpoint: Annotated[str, StringConstraints(max_length=300), AfterValidator(_check_endpoint)] | None = None
    """Address of a server of your own, such as http://minio:9000. Without this key: that of AWS_ENDPOINT_URL or
    AZURE_STORAGE_ENDPOINT, else that of the cloud."""
    region: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,50}$")] | None = None
    """Region of the buckets of S3, such as eu-central-1. Without this key: that of AWS_REGION."""


class SparkConfig(Model):
    """The Spark session. Options of spark-submit take precedence."""

    master: str | None = None
    """Master URL. Without this key: that of spark-submit, else all local cores."""
    always: Flag = False
    """True: Spark computes every night. False: this process computes a night without a JVM if no master is set. The
    inputs are then Delta tables, Parquet, CSV, JSON or TREC files that fit into a quarter of its memory. They and the
    results are on its disks or in object stores. The numbers are the same."""
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
        """Return the settings with ``${env:NAME}`` replaced: never store or show them. ConfigError without one."""
        return spark_settings.fill_environment(self.settings, environment, "spark.settings")


class EvaluationConfig(Request):
    """A nightly evaluation: a request with its inputs, rules and results."""

    evaluation: EvaluationName
    """Name of the evaluation. Results of different evaluations are separate."""
    inputs: Inputs
    """The tables that are read."""
    gates: tuple[Annotated[Gate, AfterValidator(_check_gate)], ...] = ()
    """Rules that decide whether a model may ship. Results are published in any case."""
    checks: Checks = Checks()
    """Shares of faulty rows or users above which a run warns or fails."""
    results: ResultsConfig
    """Location and options of the results."""
    notify: tuple[Notification, ...] = ()
    """Receivers of alerts: about failed nights, gates, checks that warn, and drift."""
    stores: StoresConfig = StoresConfig()
    """Object stores of inputs and results."""
    spark: Annotated[SparkConfig, Field(validate_default=True)] = SparkConfig()
    """The Spark session."""

    # They are of one night, so no keys of a file, see :func:`request.request_of`.
    own: ClassVar[tuple[()]] = ()  # type: ignore[misc]  # no field here
    evaluation_date: ClassVar[None] = None  # type: ignore[misc]  # no field here
    events_until: ClassVar[None] = None  # type: ignore[misc]  # no field here
    time_zone: ClassVar[str] = UTC  # type: ignore[misc]  # no field here
    max_rows_per_user: ClassVar[int] = MAX_ROWS_PER_USER  # type: ignore[misc]  # no field here
    counts_seen: ClassVar[bool] = False  # type: ignore[misc]  # no field here
    counts_judged_seen: ClassVar[bool] = True  # type: ignore[misc]  # no field here
    weighs_users: ClassVar[bool] = False  # type: ignore[misc]  # no field here
    reads_times: ClassVar[bool] = False  # type: ignore[misc]  # no field here

    @field_validator("spark", mode="wrap")  # no check reads it, see :class:`Request`
    @classmethod
    def _inputs_have_what_is_asked(
        cls,
        value: Any,  # noqa: ANN401 - a file can hold anything
        handler: ValidatorFunctionWrapHandler,
        info: ValidationInfo,
    ) -> SparkConfig:
        inputs, faults = info.data.get("inputs"), list[Fault]()
        if inputs:
            faults += [*_missing_input_faults(info.data, inputs.given), *_input_faults(info.data, inputs)]
        spark: SparkConfig = validate_with_faults(handler, value, faults)
        return spark

    @property
    def expected_models(self) -> tuple[str, ...] | None:
        """Models that must be in the log: `models`, else the keys of its paths; None: those found in it."""
        return self.models if self.models is not None else self.inputs.recommendations.expected_models

    @property
    @override
    def has_user_weights(self) -> bool:
        return self.inputs.user_weights is not None

    def segment_names(self) -> tuple[str, ...]:
        """Return the segment columns to read: those of `inputs.segments.columns`, then other segments of `slices`.

        Segments that are computed from another input are not among them.
        """
        declared = self.inputs.segments.columns if self.inputs.segments else {}
        sliced = [name for names in self.slices for name in names]
        others = (C.USER_ID, *self.slicing.computed)
        return tuple(name for name in dict.fromkeys([*declared, *sliced]) if name not in others)

    def public_json(self, *, without_defaults: bool = False) -> str:
        """Return the configuration as canonical JSON: every key, sorted, without secrets."""
        values = self.model_dump(mode="json", exclude_defaults=without_defaults)
        if settings := values.get("spark", {}).get("settings"):
            values["spark"]["settings"] = spark_settings.redact(settings)
        return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def config_hash(self) -> str:
        """SHA-256 of what differs from its default, with paths as written, so that it is the same on every machine."""
        return self.hash_with_defaults(DEFAULTS_VERSION)

    def hash_with_defaults(self, defaults_version: int) -> str:
        """Return the hash of a config that ran under some version of the defaults; added keys change none."""
        text = f"{defaults_version} {self.public_json(without_defaults=True)}"
        return hashlib.sha256(text.encode()).hexdigest()


def _missing_input_faults(
    keys: Mapping[str, Any],  # values of the valid keys of a config
    given: Collection[str],  # names of its inputs
) -> Iterator[Fault]:
    """Find measures, slices, bands and policies whose input the config does not give."""
    if measures := measures_of(keys):
        for name, labels in measures.lacking(["evaluation_date", *given]).items():
            found = f"{', '.join(labels)}, but no inputs.{name}"
            yield Fault("/measures", found, "the input", f"add inputs.{name}")
        needing = dict.fromkeys(measure.label for measure in measures.measures if measure.needs_catalogue)
        if needing and not {"items", "train"} & {*given}:
            found = f"{', '.join(needing)}, but no catalogue"
            yield Fault("/measures", found, "inputs.items, or inputs.train", "add inputs.items")
    if "slices" in keys and "slicing" in keys:
        names = [name for crossing in keys["slices"] for name in crossing]
        if "segments" not in given and not {*names} <= {*keys["slicing"].computed}:
            fix = "add inputs.segments"
            if "activity" in names:
                fix += ", or slicing.bands: {activity: {of: train}} for the activity in the training data"
            yield Fault("/slices", "slices, but no inputs.segments", "an input with the users' segments", fix)
        yield from band_faults(keys["slicing"].bands, slices=keys["slices"], given=given)
    for name, inputs in lacking_inputs(keys["policies"], given).items() if "policies" in keys else ():
        missing = " or ".join(f"inputs.{wanted}" for wanted in inputs)
        found = f"{name} {getattr(keys['policies'], name)!r}, but no {missing}"
        fix = f"add inputs.{inputs[0]}, or set {name} to keep"
        yield Fault(f"/policies.{name}", found, "the input that says which items to drop", fix)


def _input_faults(keys: Mapping[str, Any], inputs: Inputs) -> Iterator[Fault]:
    """Find settings of inputs that do not fit the other valid keys of a config."""
    policies, compared, models = keys.get("policies"), keys.get("comparisons"), inputs.recommendations.paths
    grace = inputs.held_out.late_data_grace
    if policies and grace is not None and not policies.is_attributed:
        found, fix = f"{grace!r} with attribution 'none'", "set policies.attribution, or remove it"
        yield Fault("/inputs/held_out/late_data_grace", found, "a way of attribution", fix)
    results = keys.get("results")
    if results and results.examples and "comparisons" in keys and compared is None:
        found, fix = f"{results.examples}, and no comparisons", "add comparisons: {baseline: ...}, or remove it"
        yield Fault("/results/examples", found, "a model against which users win or lose", fix)
    of_all = keys.get("models") or models or ()
    if results and results.examples and compared and of_all and {*of_all} <= {*(compared.split or ())}:
        found = f"{results.examples}, while comparisons.split has every model"
        yield Fault("/results/examples", found, "users with two models, of whom one wins", "remove it")
    names_lists = C.LIST_ID in inputs.held_out.columns
    if policies and names_lists and policies.is_attributed and policies.lists != "pooled":
        found = "a list of each judgement, and policies.attribution, which finds lists by time"
        yield Fault("/inputs/held_out/columns/list_id", found, "one of the two", "remove one of them")
    if models and "models" in keys and keys["models"] is None:  # the paths name the models
        if measures := measures_of(keys):
            yield from model_faults(measures, [*models])
        if compared:
            yield from absent_model_faults(dict(compared), [*models])
