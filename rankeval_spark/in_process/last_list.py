"""The time of the last list of a date, by the log alone, for the check ``open_windows``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.request import request_of
from rankeval_spark.engine.checks import log_checks
from rankeval_spark.in_process.assembly import keep_known_items, keep_requested_rows
from rankeval_spark.inputs.arrow.file_inputs import open_input

if TYPE_CHECKING:
    import datetime as dt

    from rankeval_spark.config import EvaluationConfig


def last_shown(config: EvaluationConfig, date: dt.date) -> int | None:
    """Read when the last usable list of a run was shown, in microseconds since 1970; None without a time.

    Raises ForSparkError if Spark reads the log; InputError if a file is damaged, or the type of a column unreadable.
    """
    request = request_of(config, date)
    requested = keep_requested_rows(open_input(config, "recommendations", date).read().table, request)
    log = log_checks(requested.column_names, own_item=request.policies.own_item).usable(requested)
    if request.policies.unknown_items != "keep":
        catalogue = open_input(config, "train" if config.inputs.items is None else "items", date).read()
        log = keep_known_items(log, catalogue.table)
    if C.RECOMMENDED_AT not in log.column_names:
        return None
    keys = [name for name in C.LIST_KEY if name in log.column_names]
    shown = log.group_by(keys).aggregate([(C.RECOMMENDED_AT, "min")])[f"{C.RECOMMENDED_AT}_min"]
    found: int | None = pc.max(shown.cast(pa.int64())).as_py()
    return found


def moment_text(micros: int) -> str:
    """Write a time in UTC, also one after the year 9999.

    >>> moment_text(1), moment_text(253_402_300_800_000_000)
    ('1970-01-01T00:00:00.000001+00:00', '10000-01-01T00:00:00+00:00')
    """
    return f"{np.datetime64(micros, 'us')}".removesuffix(".000000") + "+00:00"
