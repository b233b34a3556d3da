"""The config and the dates of a command, read together so that all of their faults are reported at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from rankeval_spark.config import load_config, parse_date
from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rankeval_spark.config import EvaluationConfig


def config_and_dates(
    path: Path, overrides: Sequence[str], dates: Sequence[tuple[str, str]]
) -> tuple[EvaluationConfig, list[date]]:
    """Read a config and dates, each with the option that has it.

    Raises
    ------
    ConfigError
        All faults of the config and the dates.
    """
    faults: list[Fault] = []
    read: list[date] = []
    for where, text in dates:
        try:
            read.append(parse_date(text, where=where))
        except ConfigError as error:
            faults += error.faults
    try:
        config = load_config(path, overrides)
    except ConfigError as error:
        raise ConfigError(*faults, *error.faults) from None
    if faults:
        raise ConfigError(*faults)
    return config, read
