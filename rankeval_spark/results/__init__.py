"""Published results: Delta tables, the locks around them, the protocol that fills them and the reader.

Write with :class:`ResultsStore`, read with :class:`Results`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rankeval_spark.results.journal import Event, event_frame
    from rankeval_spark.results.locks import Lock, LockTimes
    from rankeval_spark.results.published_results import Results, results_at, results_of
    from rankeval_spark.results.results_store import ResultsStore
    from rankeval_spark.results.roots import check_root
    from rankeval_spark.results.run import Rehearsal, Run, StagedRun
    from rankeval_spark.results.run_record import InputRecord, MeasureRecord, RunRecord

__all__ = [
    "Event",
    "InputRecord",
    "Lock",
    "LockTimes",
    "MeasureRecord",
    "Rehearsal",
    "Results",
    "ResultsStore",
    "Run",
    "RunRecord",
    "StagedRun",
    "check_root",
    "event_frame",
    "results_at",
    "results_of",
]

# Loaded at first use: reading needs no Spark, and importing pyspark takes a second.
_HOMES: Final = {
    **dict.fromkeys(("InputRecord", "MeasureRecord", "RunRecord"), "run_record"),
    **dict.fromkeys(("Event", "event_frame"), "journal"),
    **dict.fromkeys(("Lock", "LockTimes"), "locks"),
    **dict.fromkeys(("Results", "results_at", "results_of"), "published_results"),
    **dict.fromkeys(("Rehearsal", "Run", "StagedRun"), "run"),
    "ResultsStore": "results_store",
    "check_root": "roots",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
