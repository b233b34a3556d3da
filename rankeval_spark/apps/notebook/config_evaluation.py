"""The evaluation of a config, in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark.config import check_roots, load_config, parse_date
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import ConfigError, Fault, InputError, raise_together
from rankeval_spark.evaluation import Evaluation
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.inputs.arrow.file_inputs import look_at_inputs, open_inputs, read_tables
from rankeval_spark.inputs.arrow.input_sizes import look_up_sizes
from rankeval_spark.inputs.input_files import ForSparkError

if TYPE_CHECKING:
    import os
    from datetime import date

    from pyspark.sql import SparkSession

    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.request import Request
    from rankeval_spark.hosts.host import Host


def evaluate_config(
    path: str | os.PathLike[str],
    date: str | date,
    *,
    overrides: Sequence[str] = (),
    spark: SparkSession | None = None,
) -> Evaluation:
    """Evaluate what a config asks for on one date; nothing is published.

    Parameters
    ----------
    path : str or path
        The config file.
    date : str or date
        The evaluation date, such as ``"2026-01-31"``.
    overrides : sequence of str
        Changes of its keys, such as ``["cutoffs=[5]"]``, as ``rankeval run --set`` has them.
    spark : SparkSession, optional
        Session that reads and evaluates the inputs; without it, this process does.

    Returns
    -------
    Evaluation
        As of :func:`evaluate`. Gates, thresholds of checks and the results root of the config are not used, and so no
        earlier nights: those of ``comparisons.nights`` and ``comparisons.covariate``.

    Raises
    ------
    ConfigError
        If the config or the date is not valid, or without ``spark`` where only Spark reads an input.
    InputError
        If an input is missing or cannot be read.

    Examples
    --------
    >>> from rankeval_spark import evaluate_config
    >>> evaluate_config("conf/nightly.yaml", "2026-01-31").leaderboard()  # doctest: +SKIP
    """
    config, day = load_config(path, overrides), parse_date(str(date), "evaluate_config(date=)")
    return Evaluation(host_of_config(config, request_of(config, day), day, spark, "evaluate_config"), config)


def host_of_config(
    config: EvaluationConfig, request: Request, day: date, spark: SparkSession | None, function: str
) -> Host:
    """Return the host that computes a request of a config on one date; ``function`` is called, for messages."""
    check_roots(config, day)
    if spark is not None:
        import_module("rankeval_spark.spark.version").require_spark()
        found: Host = import_module("rankeval_spark.hosts.on_spark").of_config(spark, config, request, day)
        return found
    try:
        tables = replace(read_tables(open_inputs(config, request, day), sample_share=1), are_checked=False)
    except ForSparkError as error:
        _refuse_faulty_inputs(config, request, day)
        fix = "pass spark=, a session"
        raise ConfigError(Fault(f"{function}(spark=)", f"None, and {error}", "a session of Spark", fix)) from error
    return InProcess(Usable(tables, request, pa.cpu_count()))


def _refuse_faulty_inputs(config: EvaluationConfig, request: Request, day: date) -> None:
    """Refuse inputs that Spark would refuse too: missing ones, and those without a column that is needed."""
    sizes = [size for name, one in config.inputs.given.items() for size in look_up_sizes(name, one, day)]
    faults = [size.fault for size in sizes if size.fault is not None]
    errors = [InputError(*faults)] if faults else []
    raise_together([*errors, *look_at_inputs(config, request, day)[1]])
