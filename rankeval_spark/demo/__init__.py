"""Recommendation logs to try the evaluation on: MovieLens 100K, or synthetic data, and three models."""

from rankeval_spark.demo.logs import DemoLogs
from rankeval_spark.demo.settings import TRAINING, DemoSettings
from rankeval_spark.demo.workspace import prepare

__all__ = ["TRAINING", "DemoLogs", "DemoSettings", "prepare"]
