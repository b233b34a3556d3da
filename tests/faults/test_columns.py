"""Measures that come and go from night to night: the columns of ``user_metrics`` grow, and a kill lies in between."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import deltalake
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results
from tests.spark.results.nights import rows_of
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND
from tests.support.processes import SETTINGS, held_at, rankeval_command, started
from tests.support.readers import READERS

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

pytestmark = pytest.mark.faults

BEFORE: Final = {"RR", "nDCG", "Success"}
EXTENDED: Final = {*BEFORE, "AP", "P(agg='micro')"}
NARROWED: Final = {"RR"}
OF_USERS: Final = schemas.USER_METRICS.name


def test_measures_are_added_and_left_out_on_successive_nights(
    spark: SparkSession, own_copy: Workspace, tmp_path: Path
) -> None:
    root = own_copy.root
    early = Results(root, spark)
    of_early = {table: rows_of(early.published(table), without=()) for table in (OF_USERS, schemas.METRICS.name)}
    columns = set(early.user_metrics().columns)

    own_copy.change(measures=sorted(EXTENDED), spark={"master": "local[2]", "settings": SETTINGS})
    command = rankeval_command("run", own_copy.config, "--date", FIRST)
    with started(command, tmp_path / "run", held_at(f"after_{OF_USERS}")) as running:
        running.wait_until_it_says(f"failpoint after_{OF_USERS} holds")
        running.kill()
    assert columns_of(root) == {*columns, "ap", "p_agg_micro", "p_agg_micro__weight"}
    for late in (early, Results(root, spark)):  # nothing of it is published
        assert {table: rows_of(late.published(table), without=()) for table in of_early} == of_early
        assert set(late.user_metrics().columns) == columns

    own_copy.change(measures=sorted(NARROWED))
    narrowed = rankeval("run", own_copy.config, "--date", SECOND)  # rolls the other night forward
    assert narrowed.code == 0, narrowed.err
    assert measured(spark, root) == {FIRST: EXTENDED, SECOND: NARROWED}
    assert filled(root, FIRST) >= {"rr", "ndcg", "success", "ap", "p_agg_micro"}
    assert filled(root, SECOND) & {"rr", "ndcg", "success", "ap", "p_agg_micro"} == {"rr"}

    own_copy.change(measures=["RR", "R"])
    again = rankeval("run", own_copy.config, "--date", FIRST)
    assert again.code == 0, again.err
    assert measured(spark, root) == {FIRST: {"RR", "R"}, SECOND: NARROWED}
    assert filled(root, FIRST) & {"rr", "r", "ndcg", "ap"} == {"rr", "r"}
    for name, read in READERS.items():
        keys = read(f"{root}/{OF_USERS}", schemas.USER_METRICS.key)
        assert len(set(map(str, keys))) == len(keys), name
    assert {table: rows_of(early.published(table), without=()) for table in of_early} == of_early
    assert list(Path(root, "_staging").iterdir()) == []


def measured(spark: SparkSession, root: str) -> dict[date, set[str]]:
    """Measures of the users of each date, as `Results` tells them, and of the means: they have to be the same."""
    results = Results(root, spark)
    found: list[dict[date, set[str]]] = []
    for frame in (results.user_values(evaluation="nightly"), results.metrics(evaluation="nightly", slice=C.ALL_USERS)):
        by_date: dict[date, set[str]] = {}
        for row in frame.select(C.EVALUATION_DATE, C.MEASURE).distinct().collect():
            by_date.setdefault(row[C.EVALUATION_DATE], set()).add(row[C.MEASURE])
        found.append(by_date)
    assert found[0] == found[1]
    return found[0]


def columns_of(root: str) -> set[str]:
    return {field.name for field in deltalake.DeltaTable(f"{root}/{OF_USERS}").schema().fields}


def filled(root: str, day: date) -> set[str]:
    """Columns that hold a value for some user of a date, as anybody reads them."""
    only = [(C.EVALUATION, "=", "nightly"), (C.EVALUATION_DATE, "=", day)]
    table = deltalake.DeltaTable(f"{root}/{OF_USERS}").to_pyarrow_table(filters=only)
    return {name for name in table.column_names if table[name].null_count < table.num_rows}
