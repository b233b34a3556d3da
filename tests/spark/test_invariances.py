"""What must not matter on the whole way through Spark: the order and the partitions of rows, who is who, the clock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import functions as F

from rankeval_spark import evaluate
from tests.support.frames import by
from tests.support.logs import USERS, Logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark import Evaluation

LOGS: Final = Logs.make(seed=20261121)
AT_3: Final = (
    *("P", "P(denom='len')", "R", "F1", "Success", "RR", "AP", "AP(denom='min')", "ARHR", "MAR(kind='cutoffs')"),
    *("MeanP", "FirstHit", "NumHits", "CG", "nCG", "DCG", "nDCG", "nDCG(dcg='exp-log2')", "ERR", "nERR", "PAUC", "PAP"),
    *("RBP(rel=1)", "RBPResidual", "Judged", "unj", "RecallCeiling", "LogAP", "Rprec"),
)
WHOLE: Final = (
    *("AP", "nDCG(ideal='retrieved')", "RR", "Rprec_mult(x=2)", "IPrec@0.5", "IPrecAvg", "IPrecArea", "Bpref", "infAP"),
    *("SetP", "SetR", "SetF"),
)
MEASURES: Final = (*(f"{name}@3" for name in AT_3), *WHOLE)
COLUMNS: Final = (
    "value",
    "std_dev",
    "std_error",
    "ci_low",
    "ci_high",
    "n_users",
    "n_undefined",
    "n_missing",
    "tie_share",
)

Numbers = dict[Any, Any]


def evaluated(spark: SparkSession, logs: Logs, *, n_partitions: int = 2, seed: int | None = None) -> Evaluation:
    """Evaluate with every measure, for everyone and by country."""
    frames = logs.frames(spark, seed=seed).repartition(n_partitions)
    return evaluate(
        frames.recommendations, frames.held_out, measures=MEASURES, segments=frames.segments, slices=["country"]
    )


def of_users(result: Evaluation) -> Numbers:
    """Value by model, measure, cutoff and user."""
    return by(result.user_values, "model_id", "measure", "k", "user_id", value="value")


def of_all(result: Evaluation) -> Numbers:
    """Columns of ``metrics`` by model, country, measure and cutoff; the country of everyone is 'all'."""
    country = F.when(F.col("slice") == "all", "all").otherwise(
        F.coalesce(F.get("slice_values", F.lit(0)), F.lit("unknown"))
    )
    rows = result.metrics.select("model_id", country.alias("country"), "measure", "k", F.struct(*COLUMNS).alias("row"))
    return {key: row.asDict() for key, row in by(rows, "model_id", "country", "measure", "k", value="row").items()}


def renamed(logs: Logs) -> tuple[Logs, dict[str, str]]:
    """Give the users each other's names; return the old name of each new one."""
    new = {user: user * 7 % USERS for user in range(USERS)}
    assert len(set(new.values())) == USERS
    changed = Logs(
        recommendations=[(model, new[user], item, score) for model, user, item, score in logs.recommendations],
        held_out=[(new[user], item, gain) for user, item, gain in logs.held_out],
        segments=[(new[user], country, tier) for user, country, tier in logs.segments],
    )
    return changed, {f"{number:03}": f"{user:03}" for user, number in new.items()}


@pytest.fixture(scope="module")
def expected(_shared_session: SparkSession) -> tuple[Numbers, Numbers]:
    """Values of users and means of the logs as they come."""
    with evaluated(_shared_session, LOGS).cached() as result:
        return of_users(result), of_all(result)


def assert_close(found: Numbers, wanted: Numbers) -> None:
    """Compare rows within 1e-12; nothing but None equals None."""
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        assert numbers_of(found[key]) == pytest.approx(numbers_of(row), rel=0, abs=1e-12), key


def numbers_of(row: dict[str, Any]) -> dict[str, float]:
    """Leave out what is NULL, which has no distance from anything."""
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ("n_partitions", "is_adaptive", "time_zone"),
    [(1, False, "Pacific/Honolulu"), (64, True, "Asia/Kolkata")],
)
def test_order_partitions_names_adaptive_plans_and_time_zones_change_nothing(
    spark: SparkSession,
    expected: tuple[Numbers, Numbers],
    n_partitions: int,
    is_adaptive: bool,
    time_zone: str,
) -> None:
    """Values of users bit for bit, means within 1e-12."""
    spark.conf.set("spark.sql.adaptive.enabled", str(is_adaptive).lower())
    spark.conf.set("spark.sql.shuffle.partitions", str(n_partitions))
    spark.conf.set("spark.sql.session.timeZone", time_zone)
    logs, old_name = renamed(LOGS)

    with evaluated(spark, logs, n_partitions=n_partitions, seed=n_partitions).cached() as result:
        values = {(*key, old_name[user]): value for (*key, user), value in of_users(result).items()}
        assert values == expected[0]
        assert_close(of_all(result), expected[1])


def test_user_without_judgements_changes_no_mean_and_a_missing_one_divides_it_by_one_more(
    spark: SparkSession, expected: tuple[Numbers, Numbers]
) -> None:
    extra, missing = USERS, USERS + 1
    more = replace(
        LOGS,
        recommendations=[*LOGS.recommendations, *(("als", extra, item, 0.5) for item in range(5))],
        held_out=[*LOGS.held_out, (missing, 0, 3.0)],
    )

    found = of_all(evaluated(spark, more))

    for (model, country, measure, k), row in expected[1].items():
        after = found[model, country, measure, k]
        is_his = country in {"all", "unknown"}
        assert after["n_users"] == row["n_users"] + is_his, measure
        if not measure.startswith(("LogAP", "RBPResidual")):  # which are not 0 without a list
            mean = row["value"] * row["n_users"] / after["n_users"]
            assert after["value"] == pytest.approx(mean, rel=0, abs=1e-12), (model, country, measure, k)
