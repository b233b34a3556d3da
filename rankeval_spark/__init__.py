"""Offline evaluation of recommender systems on Spark.

>>> from rankeval_spark import evaluate, Results, recommended_settings  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rankeval_spark.app.evaluate import Evaluation, evaluate
    from rankeval_spark.results import Results
    from rankeval_spark.session import build_session, recommended_settings

__version__: Final = "0.1.0"

__all__ = ["Evaluation", "Results", "__version__", "build_session", "evaluate", "recommended_settings"]

# Loaded at first use: measures and configs are used without Spark, and importing pyspark takes a second.
_HOMES: Final = {
    "Evaluation": "rankeval_spark.app.evaluate",
    "Results": "rankeval_spark.results",
    "build_session": "rankeval_spark.session",
    "evaluate": "rankeval_spark.app.evaluate",
    "recommended_settings": "rankeval_spark.session",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute of any kind
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
