"""Configuration: typed and frozen. A config object that exists is valid."""

from rankeval_spark.config.cost import Cost, least_cost
from rankeval_spark.config.gates import Gate
from rankeval_spark.config.inference import Comparisons, Intervals
from rankeval_spark.config.inputs import (
    Filter,
    HeldOutInput,
    InputConfig,
    Inputs,
    ItemsInput,
    RecommendationsInput,
    SegmentsInput,
    TrainInput,
)
from rankeval_spark.config.loading import load_config, parse_date, validate
from rankeval_spark.config.locations import check_roots
from rankeval_spark.config.models import EvaluationConfig, ResultsConfig, SparkConfig
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.presets import PRESETS, Preset, PresetName
from rankeval_spark.config.thresholds import Checks, Threshold

__all__ = [
    "PRESETS",
    "Checks",
    "Comparisons",
    "Cost",
    "EvaluationConfig",
    "Filter",
    "Gate",
    "HeldOutInput",
    "InputConfig",
    "Inputs",
    "Intervals",
    "ItemsInput",
    "Policies",
    "Preset",
    "PresetName",
    "RecommendationsInput",
    "ResultsConfig",
    "SegmentsInput",
    "SparkConfig",
    "Threshold",
    "TrainInput",
    "check_roots",
    "least_cost",
    "load_config",
    "parse_date",
    "validate",
]
