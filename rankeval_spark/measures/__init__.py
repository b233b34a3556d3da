"""Measures as values, ragged lists, and vectorised kernels. Only numpy below.

>>> requested = MeasureSet.parse(["nDCG@10", "AP", "HR@1"])
>>> batch = Lists.of([Ranking([None, 1, 1])])
>>> {column: values.round(4).tolist() for column, values in requested.score(batch).items()}
{'ndcg': [[nan, 0.6934, nan]], 'ap': [[nan, nan, 0.5833]], 'success': [[0.0, nan, nan]]}
"""

from __future__ import annotations

from rankeval_spark.measures import registry
from rankeval_spark.measures.arrays import FloatMatrix, Ratio
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.example_lists import Background, Item, Ranking
from rankeval_spark.measures.exposure import Exposure, Offered, Preferred, Rates, Shown
from rankeval_spark.measures.item_facts import ItemFacts
from rankeval_spark.measures.lists import CutLists, Lists
from rankeval_spark.measures.measure_set import MeasureSet
from rankeval_spark.measures.names import MAX_CUTOFF, Measure, UnknownMeasureError, with_cutoff
from rankeval_spark.measures.own import OwnMeasure, measure

# The order of messages and of docs/measures; within a family that of the modules' names
for family in (
    "accuracy.precision_recall",
    "accuracy",
    "prediction",
    "beyond_accuracy",
    "off_policy",
    "user_values",
    "system",
):
    registry.discover(f"{__name__}.{family}")

__all__ = [
    "MAX_CUTOFF",
    "Background",
    "CutLists",
    "Cutoff",
    "Definition",
    "Exposure",
    "FloatMatrix",
    "Item",
    "ItemFacts",
    "Lists",
    "Measure",
    "MeasureSet",
    "Offered",
    "OwnMeasure",
    "Preferred",
    "Ranking",
    "Rates",
    "Ratio",
    "Shown",
    "UnknownMeasureError",
    "measure",
    "registry",
    "with_cutoff",
]
