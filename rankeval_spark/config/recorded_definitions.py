"""Definitions of measures as ``runs`` records them: values of two nights compare where they are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rankeval_spark import columns as C
from rankeval_spark.config.policies import Policies
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.measures import Measure
from rankeval_spark.measures.required_facts import rule_of


@dataclass(frozen=True)
class RecordedDefinition:
    """Definition of a measure, as a run computed it."""

    name: str  # canonical, without options
    options: Mapping[str, str]  # every option that has a value, as text
    policies: Mapping[str, str] = field(default_factory=dict)  # every policy of the run, as text
    group_rule: str | None = None  # which items belong to the item group; None for all items

    @classmethod
    def of(cls, measure: Measure, policies: Policies) -> RecordedDefinition:
        """Describe a measure under the policies of a run."""
        values = {name: str(value) for name, value in policies.model_dump().items()}
        rule = None if measure.group is None else rule_of(measure.group)
        return cls(measure.name, measure.recorded_options, values, rule)

    def measure(self, k: int) -> Measure:
        """Return the measure at a cutoff; an :class:`UnknownMeasureError` if this version does not know it."""
        return Measure.recorded(self.name, self.options, k)

    def without(self, other: RecordedDefinition) -> list[str]:
        """List the name, options, policies and rule that another definition does not have."""
        own = [self.name] if self.name != other.name else []
        own += [f"{name}={value}" for name, value in self.options.items() if other.options.get(name) != value]
        own += [f"{name}={value}" for name, value in self.policies.items() if other.policies.get(name) != value]
        return own + ([f"group: {self.group_rule}"] if self.group_rule and self.group_rule != other.group_rule else [])

    def __str__(self) -> str:
        """Write it for people: ``P(rel=1, agg=macro, denom=k); population=truth, ties=item_asc``."""
        options, policies = (
            ", ".join(f"{name}={value}" for name, value in values.items()) for values in (self.options, self.policies)
        )
        group = f"group: {self.group_rule}" if self.group_rule else ""
        return "; ".join(filter(None, (f"{self.name}({options})" if options else self.name, policies, group)))


def recorded_definitions(run: Mapping[str, Any]) -> dict[tuple[str, int], RecordedDefinition]:
    """Read the definitions in a row of ``runs``, by the measure's name in the tables and the cutoff.

    A policy that came with a later version counts as its default.

    InputError where an earlier build published the run and recorded definitions as text.
    """
    recorded = run.get("measures") or ()
    if "policies" not in run or any(not {"name", "options", "group_rule"} <= one.keys() for one in recorded):
        where = f"results, run {run.get(C.RUN_ID)} of {run.get(C.EVALUATION_DATE)}"
        found = f"definitions as rankeval-spark {run.get('code_version')} recorded them at that time"
        fix = "set results.root to a new folder and run the dates again"
        raise InputError(Fault(where, found, "the columns policies and measures of this version", fix))
    later = {name: str(value) for name, value in Policies().model_dump().items()}
    policies = {**later, **dict(run["policies"])} if run["policies"] else {}
    return {
        (one["measure"], one["k"]): RecordedDefinition(
            one["name"], dict(one["options"] or {}), policies, one["group_rule"]
        )
        for one in recorded
    }
