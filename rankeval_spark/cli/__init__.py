"""The command line: arguments in, exit codes and readable text out."""

from __future__ import annotations

from rankeval_spark.cli.main import main

__all__ = ["main"]
