"""Offline evaluation of recommender systems, on Spark and in this process.

>>> from rankeval_spark import evaluate, Results  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rankeval_spark import windows
    from rankeval_spark.apps.notebook.advise import advise
    from rankeval_spark.apps.notebook.attributed_interactions import attributed_interactions
    from rankeval_spark.apps.notebook.config_evaluation import evaluate_config
    from rankeval_spark.apps.notebook.evaluate import evaluate
    from rankeval_spark.apps.notebook.measure_lists import measure_lists
    from rankeval_spark.apps.notebook.reconcile import reconcile
    from rankeval_spark.config import Comparisons, FrameInputs, Intervals, Policies, Slicing
    from rankeval_spark.evaluation import Evaluation
    from rankeval_spark.measures import measure
    from rankeval_spark.report.result_table import ResultTable
    from rankeval_spark.results import Results
    from rankeval_spark.spark.list_functions import register_functions
    from rankeval_spark.spark.session import build_session

__version__: Final = "0.1.0"

__all__ = [
    "Comparisons",
    "Evaluation",
    "FrameInputs",
    "Intervals",
    "Policies",
    "ResultTable",
    "Results",
    "Slicing",
    "__version__",
    "advise",
    "attributed_interactions",
    "build_session",
    "evaluate",
    "evaluate_config",
    "measure",
    "measure_lists",
    "reconcile",
    "register_functions",
    "windows",
]

# Loaded at first use: measures and configs are used without Spark, and importing pyspark takes a second.
_HOMES: Final = {
    **dict.fromkeys(("Comparisons", "FrameInputs", "Intervals", "Policies", "Slicing"), "rankeval_spark.config"),
    "Evaluation": "rankeval_spark.evaluation",
    "ResultTable": "rankeval_spark.report.result_table",
    "Results": "rankeval_spark.results",
    "advise": "rankeval_spark.apps.notebook.advise",
    "attributed_interactions": "rankeval_spark.apps.notebook.attributed_interactions",
    "build_session": "rankeval_spark.spark.session.builder",
    "measure": "rankeval_spark.measures",
    "evaluate": "rankeval_spark.apps.notebook.evaluate",
    "measure_lists": "rankeval_spark.apps.notebook.measure_lists",
    "reconcile": "rankeval_spark.apps.notebook.reconcile",
    "register_functions": "rankeval_spark.spark.list_functions",
    "windows": "rankeval_spark.windows",
    "evaluate_config": "rankeval_spark.apps.notebook.config_evaluation",
}
_ON_SPARK: Final = ("attributed_interactions", "build_session", "register_functions", "windows")


def __dir__() -> list[str]:
    """Return the public names that this environment has: what completion offers, without the modules below."""
    return [name for name in __all__ if name not in _ON_SPARK or find_spec("pyspark") is not None]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute of any kind
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    if name in _ON_SPARK:
        import_module("rankeval_spark.spark.version").require_spark()
    try:
        home = import_module(_HOMES[name])
    except AttributeError as error:  # `from rankeval_spark import ...` would say no more than that it failed
        message = f"{_HOMES[name]} cannot be imported: {error}"
        raise ImportError(message) from error
    return home if name == "windows" else getattr(home, name)
