"""The arguments of ``evaluate``, validated as the request of a config is, in the words of the call."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationInfo, field_validator

from rankeval_spark import columns as C
from rankeval_spark.apps.notebook.hosts import column_names
from rankeval_spark.config import Comparisons, Intervals, Policies, validate_model
from rankeval_spark.config.base import Model, fault_error, refuse_faults
from rankeval_spark.config.inference import band_faults, segments_from_train
from rankeval_spark.config.inputs import Gains, Nested, NestedItems, RanksFrom
from rankeval_spark.config.loading import argument_of
from rankeval_spark.config.policies import lacking_inputs
from rankeval_spark.config.request import Request
from rankeval_spark.config.requested_measures import measures_of
from rankeval_spark.errors import ConfigError, Fault, kind_of, nearest
from rankeval_spark.inputs.input_columns import INPUTS

_NOTHING_COMPARED: Final = {"baseline": (None,), "pairs": ("baseline",), "tests": (("t",), ["t"])}
"""The arguments of comparisons where none is requested."""

_NEEDED: Final = {
    "train": "a table with user_id and item_id",
    "items": "a table with item_id and facts of the items",
    "evaluation_date": "a date, such as date(2026, 1, 31)",
}
"""Arguments that only some measures need, for messages."""


class NestedInputs(Model):
    """Inputs of which a row has several items; the keys of ``recommendations`` may stand alone."""

    recommendations: Nested | None = None
    """Columns of the items and scores of a list of the log."""
    held_out: NestedItems | None = None
    """Column of the items of the judgements."""

    @property
    def by_input(self) -> dict[str, NestedItems]:
        """Those that are given, by the name of their input."""
        return {name: given for name, given in self if given is not None}


class Call(Request):
    """Request of a call, and the rest of its arguments that a config has among its inputs."""

    ranks_from: RanksFrom = 1
    """Rank of the first item of a list in the log."""
    gains: Gains | None = None
    """Rules by which events of the judgements become gains."""
    nested: NestedInputs = NestedInputs()
    """Columns of the items and scores of a list, by input."""
    not_compared: Comparisons | None = None
    """Arguments of comparisons where none is requested: they are checked and not used."""
    given: Mapping[str, tuple[str, ...]]
    """Optional arguments that are given, with the columns of `segments`."""

    @field_validator("nested", mode="before")
    @classmethod
    def _is_of_the_log(cls, given: object) -> object:
        if given is None:
            return NestedInputs()
        is_by_input = not isinstance(given, Mapping) or not given.keys() - NestedInputs.model_fields
        return given if is_by_input else {"recommendations": given}

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
    """Find what the valid arguments ask for and is not given: inputs, and columns of segments."""
    if measures := measures_of(keys):
        for name, labels in measures.lacking(["recommendations", "held_out", *given]).items():
            expected = f"{_NEEDED.get(name, 'it')}, for {', '.join(labels)}"
            yield Fault(f"/{name}", "nothing", expected, "give it, or leave these measures out")
    if "slices" in keys and "bands" in keys:
        known = [name for name in given.get("segments", ()) if name != C.USER_ID]
        columns = (
            f"a column of segments: {', '.join(known)}" if known else "segments=, a table with the users' segments"
        )
        for name in dict.fromkeys(name for one in keys["slices"] for name in one):
            if name not in (*known, *segments_from_train(keys["bands"])):
                yield Fault("/slices", repr(name), columns, nearest(name, known))
        for fault in band_faults(keys["bands"], slices=keys["slices"], given=given):
            yield replace(fault, where="/bands")
    for name, inputs in lacking_inputs(keys["policies"], given).items() if "policies" in keys else ():
        expected = f"{' or '.join(inputs)}, for {name}={getattr(keys['policies'], name)!r}"
        yield Fault(f"/{inputs[0]}", "nothing", expected, f"give it, or set {name} to keep")


def validated_call(arguments: Mapping[str, Any], *, segments: Sequence[str] | None) -> Call:
    """Validate the arguments of ``evaluate`` by name; ConfigError with all faults of all of them.

    ``segments`` are columns of that input.
    """
    refused = {name: value for name, value in arguments.items() if name not in INPUTS and column_names(value)}
    if refused:  # before values are compared, which for a table is no truth value
        fix = "name the argument of each table: evaluate(recommendations, held_out, measures=[...], train=...)"
        expected = "a value, because it is none of the tables"
        raise ConfigError(*(Fault(f"evaluate({one}=)", f"a {kind_of(v)}", expected, fix) for one, v in refused.items()))
    general, policies, compared, intervals = (
        {name: arguments[name] for name in model.model_fields if name in arguments}
        for model in (Call, Policies, Comparisons, Intervals)
    )
    is_compared = any(compared[name] not in defaults for name, defaults in _NOTHING_COMPARED.items())
    given = {name: () for name in _NEEDED if arguments.get(name) is not None}
    values = {
        **general,
        "policies": policies,
        "intervals": {**intervals, "method": arguments.get("intervals")},
        "comparisons": compared if is_compared else None,
        "not_compared": None if is_compared else {**compared, "pairs": "all"},
        "given": given if segments is None else {"segments": segments, **given},
    }
    try:
        return validate_model(Call, values, locate=_place)
    except ConfigError as error:
        measures = arguments["measures"] if isinstance(arguments["measures"], list | tuple) else ()
        texts = {_place(("measures", index)): str(text).strip() for index, text in enumerate(measures)}
        raise ConfigError(*(_in_words_of_a_call(fault, texts.get(fault.where, "")) for fault in error.faults)) from None


def _in_words_of_a_call(fault: Fault, text: str) -> Fault:
    """Write the text of a measure behind its place instead of behind what was found, because a call has no lines."""
    if not fault.found.endswith(f" in {text!r}"):
        return fault
    found = fault.found.removesuffix(f" in {text!r}")
    return Fault(f"{fault.where}, {text}", found, fault.expected, fault.fix)


def _place(place: tuple[str | int, ...]) -> str:
    """Write a place as it is written in the call, where policies, intervals and comparisons are arguments too."""
    if place == ("intervals", "method"):
        place = place[:1]
    elif place[:1] in (("policies",), ("comparisons",), ("not_compared",), ("intervals",)):
        place = place[1:]
    return argument_of("evaluate")(place)
