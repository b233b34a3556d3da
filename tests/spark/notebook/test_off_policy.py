"""Off-policy measures, and weights of judgements, on Spark give what they give in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from tests.evaluate.test_off_policy import MEASURES, inputs, with_predictions
from tests.support.impressions import rare_rows
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WEIGHTED: Final = ["R(weighted=True)", "R(agg='micro',weighted=True)", "nDCG(weighted=True)"]


def of_policies() -> tuple[pa.Table, pa.Table]:
    """Draw impressions, and a target policy with predicted rewards."""
    log, held_out = inputs(200)
    return with_predictions(log), held_out


def of_weights() -> tuple[pa.Table, pa.Table]:
    """Draw judgements with weights, some of which cannot be used."""
    log, held_out = inputs(200)
    weights = np.where(np.arange(200) % 10 == 0, -1, 1 / held_out["propensity"].to_numpy())
    return log, held_out.append_column("weight", pa.array(weights))


@pytest.mark.parametrize(
    ("here", "options"),
    [
        (of_policies(), {"measures": [*MEASURES, "DR"], "population": "judged"}),
        (of_weights(), {"measures": WEIGHTED}),
    ],
    ids=["off-policy", "weights"],
)
def test_estimates_and_intervals_are_those_of_this_process(
    spark: SparkSession, here: tuple[pa.Table, pa.Table], options: dict[str, Any]
) -> None:
    there = [spark.createDataFrame(table.to_pandas()) for table in here]
    wanted, found = (
        {row["measure"]: row for row in result.to_pylist()}
        for result in (
            evaluate(*here, **sections(**options)).metrics,
            evaluate(*there, **sections(**options)).metrics.toArrow(),
        )
    )
    assert found.keys() == wanted.keys() == {*options["measures"]}
    for name, row in wanted.items():
        for column in ("value", "ci_low", "ci_high", "n_users"):
            assert found[name][column] == pytest.approx(row[column], rel=1e-12), (name, column)


def test_what_weights_say_is_warned_of_with_the_first_result(spark: SparkSession) -> None:
    here = [pa.Table.from_pylist(rows) for rows in rare_rows()]
    there = [spark.createDataFrame(table.to_pandas()) for table in here]
    options: dict[str, Any] = {"measures": ["IPS"], "population": "judged"}
    result = evaluate(*there, **sections(**options))
    with pytest.warns(UserWarning, match="effective_sample: rare: 1,000 users say as much as 5 of the target policy"):
        _ = result.metrics
    wanted, found = (
        {row["check"]: row for row in rows if row["check"] in ("mean_weight", "effective_sample", "target_sums")}
        for rows in (evaluate(*here, **sections(**options)).checks.to_pylist(), result.checks.toArrow().to_pylist())
    )
    assert found == wanted
    assert len(found) == 3


def test_a_propensity_above_1_is_a_readable_fault(spark: SparkSession) -> None:
    log, held_out = (table.to_pandas() for table in inputs(20))
    held_out["item_id"], held_out["propensity"] = 0, 1.5
    result = evaluate(
        spark.createDataFrame(log), spark.createDataFrame(held_out), measures=["IPS"], policies={"population": "judged"}
    )
    with pytest.raises(Exception, match=r"a propensity of 1\.5 for an impression"):
        result.metrics.collect()
