"""What workers counted of the judgements, as facts of the checks."""

from __future__ import annotations

import pytest

from rankeval_spark.engine.batch.row_kinds import OF_USABLE_JUDGEMENTS
from rankeval_spark.engine.checks import Tally
from rankeval_spark.hosts.spark_checks import _of_usable_judgements


def test_checks_of_unusable_judgements_found_nothing_and_others_what_workers_counted() -> None:
    tallies = {name: Tally(name, place, 9, "first", "last") for place, name in enumerate(OF_USABLE_JUDGEMENTS)}
    facts = _of_usable_judgements(["null_keys", "invalid_gains", *OF_USABLE_JUDGEMENTS], tallies, 9)
    assert {fact.check: (fact.count, fact.total) for fact in facts} == {
        "rows": (9, 9),
        "null_keys": (0, 9),
        "invalid_gains": (0, 9),
        "negative_gains": (0, 9),
        "low_gains": (1, 9),
        "invalid_values": (2, 9),
        "invalid_weights": (3, 9),
    }


def test_a_check_that_no_worker_makes_is_no_count_of_0() -> None:
    with pytest.raises(ValueError, match="workers do not count future_gains of the judgements"):
        _of_usable_judgements(["null_keys", "future_gains"], {}, 9)
