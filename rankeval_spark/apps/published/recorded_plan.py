"""The plan of a published night, from what was recorded of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rankeval_spark.apps.nightly.night_plan import NightPlan
from rankeval_spark.config.request import request_of

if TYPE_CHECKING:
    from rankeval_spark.apps.history.published_runs import PastNight
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.measures import MeasureSet


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
    recorded = night.row["config"], night.row["config_hash"]
    return NightPlan(config, request, night.evaluation_date, night.sample_share, *recorded)
