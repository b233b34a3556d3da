"""The plan of a published night, from what was recorded of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankeval_spark import schemas
from rankeval_spark.apps.nightly.night_plan import NightPlan
from rankeval_spark.config.loading import read_recorded, recorded_values
from rankeval_spark.config.request import request_of
from rankeval_spark.engine.batch.row_kinds import UNMATCHED_LISTS

if TYPE_CHECKING:
    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.results import Event, Results


def plan_again(night: PastNight, config: EvaluationConfig, measures: MeasureSet) -> NightPlan:
    """Plan a published night once more.

    Parameters
    ----------
    config : EvaluationConfig
        Its config; it may read the inputs elsewhere than the recorded one, which is recorded again.
    measures : MeasureSet
        What is computed: ``rankeval score`` may have added measures to those of the config.
    """
    request = replace(request_of(config, night.evaluation_date), measures=measures)
    recorded = night.row["config"], night.row["config_hash"], night.defaults_version
    return NightPlan(config, request, night.evaluation_date, night.sample_share, *recorded)


def has_judged_lists(results: Results, night: PastNight) -> bool:
    """Return True if the judgements of a night named their list: only then are those without a list counted."""
    of_night: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation}
    return bool(results.arrow(schemas.CHECKS.name, check=UNMATCHED_LISTS, **of_night).num_rows)


def pinned(recorded: Event) -> EvaluationConfig:
    """Let the config of a run read what the run read: the places it found, at the versions it found.

    All of it is validated: a table of results is no better than any other file.
    """
    values = recorded_values(recorded["config"])
    for fact in recorded["inputs"]:
        values["inputs"][fact["name"]] |= _pinned(values["inputs"][fact["name"]], fact)
    return read_recorded(values)


def _pinned(given: Mapping[str, object], fact: Mapping[str, Any]) -> dict[str, object]:
    # The recorded path is absolute: the folder of the config file, from which a relative one starts, is not recorded.
    key, place = ("paths", json.loads(fact["location"])) if given.get("paths") else ("path", fact["location"])
    found = {} if given.get("table") else {key: place}
    version = {} if fact["version"] is None else {"version": fact["version"], "timestamp": None}
    return {**found, **version}
