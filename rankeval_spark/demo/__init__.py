"""Recommendation logs to try the evaluation on: MovieLens 100K, or synthetic data, and three models."""

from rankeval_spark.demo.workspace import DemoLogs, DemoSettings, prepare

__all__ = ["DemoLogs", "DemoSettings", "prepare"]
