"""Both hosts withhold the same comparisons of models that serve other users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.evaluate.test_shared_users import COUNTS, DERIVED, evaluated, log_of, of_sessions, of_unjudged
from tests.support import arms
from tests.support.hosts import assert_same

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from rankeval_spark import Evaluation


@pytest.mark.parametrize("has_several_lists", [False, True])
def test_hosts_withhold_the_same_comparisons(spark: SparkSession, has_several_lists: bool) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    log = log_of(arms.lists(range(11)), "1" if has_several_lists else "")
    log = log if has_several_lists else log.drop_columns(["list_id"])
    there = evaluated(log=log, to_frame=spark.createDataFrame)
    with pytest.warns(UserWarning, match="withheld: 11 of the 111 users"):
        here = evaluated(log=log).comparisons
    with pytest.warns(UserWarning, match="withheld: 11 of the 111 users"):
        assert_same(there.comparisons.toArrow(), here, tolerance=1e-12)
    rows = {(row["slice_value"], row["measure"]): row for row in here.to_pylist()}
    assert tuple(rows["", "RR"][name] for name in COUNTS) == (900, 111, 11)
    assert [rows["", "RR"][name] for name in DERIVED] == [None] * len(DERIVED)
    if not has_several_lists:
        again = evaluated(log=log, to_frame=spark.createDataFrame)
        with again.cached() as kept, pytest.warns(UserWarning, match="withheld"):
            assert_same(kept.comparisons.toArrow(), here, tolerance=1e-12)


@pytest.mark.parametrize("has_several_lists", [False, True])
def test_hosts_compare_the_models_of_an_ab_test_alike(spark: SparkSession, has_several_lists: bool) -> None:
    """Click-through and conversion; eleven users have both models."""
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    log = log_of(arms.lists(range(11)), "1" if has_several_lists else "")
    log = log if has_several_lists else log.drop_columns(["list_id"])
    asked: dict[str, Any] = {"comparisons": {"baseline": "A", "split": {"A": 0.9, "B": 0.1}}, "baseline": None}
    asked |= {"population": "run", "zero_relevant": "zero", "measures": [f"{arms.MICRO}@2", "Success@2"]}
    here, there = evaluated(log=log, **asked), evaluated(log=log, to_frame=spark.createDataFrame, **asked)
    with pytest.warns(UserWarning, match="11 users have lists of both|sample_ratio"):
        rows = here.comparisons
    with pytest.warns(UserWarning, match="11 users have lists of both|sample_ratio"):
        assert_same(there.comparisons.toArrow(), rows, tolerance=1e-12)
    assert set(rows["test"].to_pylist()) == {"unpaired"}
    found, expected = (
        [row for row in checks.to_pylist() if row["check"] == "sample_ratio"]
        for checks in (there.checks.toArrow(), here.checks)
    )
    assert found == expected


@pytest.mark.parametrize("makes", [lambda **asked: of_unjudged((0,), **asked), lambda **asked: of_sessions(0, **asked)])
def test_hosts_withhold_what_shares_no_judged_user_or_list(
    spark: SparkSession, makes: Callable[..., Evaluation]
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    with pytest.warns(UserWarning, match="withheld: "):
        here = makes().comparisons
    assert here["verdict"].null_count == here.num_rows == 1
    with pytest.warns(UserWarning, match="withheld: "):
        assert_same(makes(to_frame=spark.createDataFrame).comparisons.toArrow(), here, tolerance=1e-12)
