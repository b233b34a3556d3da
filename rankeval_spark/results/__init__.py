"""Published results: Delta tables, the locks around them, the protocol that fills them and the reader.

Write with :class:`ResultsStore`, read with :class:`Results`.
"""

from rankeval_spark.results.facts import InputFact, MeasureFact, RunFacts
from rankeval_spark.results.journal import Event
from rankeval_spark.results.locks import Lock, LockTimes
from rankeval_spark.results.reader import Results, results_at
from rankeval_spark.results.rows import read_events, read_published
from rankeval_spark.results.run import Run
from rankeval_spark.results.staged import Rehearsal, StagedRun
from rankeval_spark.results.store import ResultsStore, can_be_written_here

__all__ = [
    "Event",
    "InputFact",
    "Lock",
    "LockTimes",
    "MeasureFact",
    "Rehearsal",
    "Results",
    "ResultsStore",
    "Run",
    "RunFacts",
    "StagedRun",
    "can_be_written_here",
    "read_events",
    "read_published",
    "results_at",
]
