"""What a config asks of the pipeline."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from rankeval_spark.config import load_config
from rankeval_spark.config.request import request_of
from rankeval_spark.statistics.resampling import Draws

TEMPLATE = Path(__file__).parents[3] / "rankeval_spark" / "config" / "template.yaml"
DAY = date(2026, 1, 31)


def test_bootstrap_is_drawn_where_it_is_asked_for_and_recorded() -> None:
    assert request_of(load_config(TEMPLATE), DAY).draws is None
    config = load_config(TEMPLATE, ["intervals.method=bootstrap", "intervals.replicates=200", "intervals.seed=7"])
    assert request_of(config, DAY).draws == Draws(replicates=200, seed=7)
    recorded = json.loads(config.public_json())["intervals"]
    assert recorded == {"confidence": 0.95, "method": "bootstrap", "replicates": 200, "seed": 7}
