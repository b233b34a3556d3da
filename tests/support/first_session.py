"""What somebody does after an install, without Spark and without an extra; `tests/meta/test_distribution.py` runs it.

mypy checks its types strictly, as it would those of a user's own file.
"""

from __future__ import annotations

import sys

import pandas as pd

from rankeval_spark import Evaluation, Policies, Results, evaluate

LOG = pd.DataFrame(
    [("als", "ann", "tea", 0.9), ("als", "ann", "jam", 0.8), ("popular", "ann", "jam", 0.8)],
    columns=["model_id", "user_id", "item_id", "score"],
)
HELD_OUT = pd.DataFrame([("ann", "jam")], columns=["user_id", "item_id"])


def best_model(results: Results) -> str:
    """Return the first model of the newest night."""
    (first, *_) = results.refresh().leaderboard(k=10).to_pylist()
    return str(first["model_id"])


def compare(policies: Policies) -> Evaluation:
    """Evaluate two models."""
    return evaluate(LOG, HELD_OUT, measures=["RR", "nDCG@10"], baseline="popular", policies=policies)


def main() -> None:
    """Print where the package is, after an evaluation."""
    result = compare(Policies(ties="expected"))
    with result.cached() as kept:
        values = {row["model_id"]: row["RR"] for row in kept.leaderboard().to_pylist()}
    if values != {"als": 1 / 2, "popular": 1.0}:
        raise SystemExit(str(values))
    print("RR" in result.to_config(), {"pyspark", "py4j", "altair", "mlflow"} & set(sys.modules))
    print(sys.modules["rankeval_spark"].__file__)


if __name__ == "__main__":
    main()
