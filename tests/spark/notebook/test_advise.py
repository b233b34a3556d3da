"""``advise`` on Spark: the advice of this process, from aggregates."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rankeval_spark import advise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_advice_on_spark_is_that_of_this_process(spark: SparkSession) -> None:
    n_users, shown = 40, dt.datetime(2026, 1, 10)
    rows = [
        (model, user, (user + n) % 17, n + 1) for model in ("als", "pop") for user in range(n_users) for n in range(6)
    ]
    log = pa.table(
        {name: [row[n] for row in rows] for n, name in enumerate(("model_id", "user_id", "item_id", "rank"))}
    )
    tables = {
        "recommendations": log.append_column("recommended_at", [pa.array([shown] * len(rows))]),
        "held_out": pa.table(
            {
                "user_id": [user for user in range(n_users) for _ in range(2)],
                "item_id": [(user + 9 * n) % 17 for user in range(n_users) for n in range(2)],
                "gain": [1.0, 3.0] * n_users,
                "interacted_at": [shown + dt.timedelta(days=n) for n in range(-1, 2 * n_users - 1)],
            }
        ),
        "segments": pa.table({"user_id": range(n_users), "country": ["AT", "DE"] * 20, "age": [*range(n_users)]}),
        "train": pa.table({"user_id": range(n_users), "item_id": [(user + 3) % 17 for user in range(n_users)]}),
    }

    here = advise(**tables)
    frames: dict[str, Any] = {name: spark.createDataFrame(table) for name, table in tables.items()}
    there = advise(**frames, models=["als", "pop"])

    assert {"policies.attribution", "small slices", "recommended again"} <= {row["key"] for row in here}
    assert there.to_pylist() == here.to_pylist()
