"""Where a night would be computed, this process or Spark, without computing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.config.request import request_of
from rankeval_spark.inputs.arrow.file_inputs import open_inputs
from rankeval_spark.inputs.arrow.files import ForSparkError
from rankeval_spark.results import can_write_in_process
from rankeval_spark.spark.session.chosen_spark import is_chosen

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.config import EvaluationConfig


def wants_spark(config: EvaluationConfig) -> str | None:
    """Say why Spark computes every night of a config; None where that depends on the inputs."""
    if config.spark.always:
        return "spark.always is true"
    if is_chosen(config.spark.master):
        return "a Spark was chosen, by spark.master, spark-submit, SPARK_REMOTE or an active session"
    return None


def needs_spark(config: EvaluationConfig, day: date) -> str | None:
    """Say why Spark computes a night; None where this process does. No row is read."""
    if reason := wants_spark(config):
        return reason
    if not can_write_in_process(config.results.location):
        return f"only Spark writes to results.root {config.results.location}"
    try:
        open_inputs(config, request_of(config, day), day)
    except ForSparkError as error:
        return str(error)
    return None
