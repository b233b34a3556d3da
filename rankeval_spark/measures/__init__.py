"""What is computed: measures as values, ragged lists, and vectorised kernels. Only numpy below.

>>> asked = MeasureSet.parse(["nDCG@10", "AP", "HR@1"])
>>> batch = Lists.of([Ranking([None, 1, 1])])
>>> {column: values.round(4).tolist() for column, values in asked.score(batch).items()}
{'ndcg': [[nan, 0.6934, nan]], 'ap': [[nan, nan, 0.5833]], 'success': [[0.0, nan, nan]]}
"""

from __future__ import annotations

from rankeval_spark.measures import families, registry
from rankeval_spark.measures.exposure import Exposure, Shown
from rankeval_spark.measures.golden import Golden
from rankeval_spark.measures.items import Background, Item, ItemFacts
from rankeval_spark.measures.lists import CutLists, Lists, Ranking
from rankeval_spark.measures.measure_set import MeasureSet
from rankeval_spark.measures.names import MAX_CUTOFF, Measure, UnknownMeasureError, with_cutoff
from rankeval_spark.measures.rates import Offered, Preferred, Rates

registry.discover(families.__name__, families.__path__)

__all__ = [
    "MAX_CUTOFF",
    "Background",
    "CutLists",
    "Exposure",
    "Golden",
    "Item",
    "ItemFacts",
    "Lists",
    "Measure",
    "MeasureSet",
    "Offered",
    "Preferred",
    "Ranking",
    "Rates",
    "Shown",
    "UnknownMeasureError",
    "registry",
    "with_cutoff",
]
