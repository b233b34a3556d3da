"""Configuration: typed and frozen. A config object that exists is valid."""

from rankeval_spark.config.check_thresholds import Checks, Threshold
from rankeval_spark.config.evaluation_config import EvaluationConfig, ResultsConfig, SparkConfig, StoresConfig
from rankeval_spark.config.gates import Gate
from rankeval_spark.config.inference import Comparisons, Intervals
from rankeval_spark.config.inputs import (
    Filter,
    FrameInputs,
    HeldOutInput,
    InputConfig,
    Inputs,
    ItemsInput,
    RecommendationsInput,
    SegmentsInput,
    TrainInput,
    UserValuesInput,
    UserWeightsInput,
)
from rankeval_spark.config.loading import check_roots, load_config, parse_date, validate_model
from rankeval_spark.config.night_size import Cost, counted_cost, least_cost
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.presets import Preset, PresetName, presets
from rankeval_spark.config.slicing import Slicing

__all__ = [
    "Checks",
    "Comparisons",
    "Cost",
    "EvaluationConfig",
    "Filter",
    "FrameInputs",
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
    "Slicing",
    "SparkConfig",
    "StoresConfig",
    "Threshold",
    "TrainInput",
    "UserValuesInput",
    "UserWeightsInput",
    "check_roots",
    "counted_cost",
    "least_cost",
    "load_config",
    "parse_date",
    "presets",
    "validate_model",
]
