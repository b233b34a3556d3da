"""Published results: Delta tables, the locks around them, the protocol that fills them and the reader.

Write with :class:`ResultsStore`, read with :class:`Results`.
"""

from rankeval_spark.results.facts import InputFact, MeasureFact, RunFacts
from rankeval_spark.results.locks import Lock, LockTimes
from rankeval_spark.results.reader import Results, results_at
from rankeval_spark.results.run import Run
from rankeval_spark.results.staged import Rehearsal, StagedRun
from rankeval_spark.results.store import ResultsStore

__all__ = [
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
    "results_at",
]
