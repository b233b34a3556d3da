"""Evaluation of a TREC run against TREC judgements, without Spark: the numbers and the lines of trec_eval.

What is read from the files (:mod:`files`) is matched in numpy (:mod:`matching`); the kernels of ``measures`` give the
values, under trec_eval's names (:mod:`trec_names`) and in its lines (:mod:`report`).
"""

from __future__ import annotations

from rankeval_spark.apps.trec.report import Report, Settings, evaluate_files

__all__ = ["Report", "Settings", "evaluate_files"]
