"""A night from tables of Iceberg, by the settings that a config of a user has; it fetches Iceberg's jar (50 MB)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pytest

from rankeval_spark.spark.version import spark_line
from tests.support import iceberg, nights
from tests.support.cli import rankeval, rankeval_process
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

INPUTS: Final = ("recommendations", "held_out", "segments")
NIGHTLY: Final = ("metrics", "user_metrics", "lists")


def rows(workspace: Workspace, root: str, table: str) -> list[str]:
    """Rows of a table without what names the run, numbers to twelve digits: two hosts add up in two orders."""
    found: list[dict[str, Any]] = (
        deltalake.DeltaTable(str(workspace.folder / root / table)).to_pyarrow_table().to_pylist()
    )
    kept = [{name: value for name, value in row.items() if name != "run_id"} for row in found]
    return sorted(str([round(each, 12) if isinstance(each, float) else each for each in row.values()]) for row in kept)


@pytest.mark.skipif(spark_line() not in iceberg.RUNTIMES, reason="Iceberg publishes no jar for this Spark")
@pytest.mark.skipif(os.environ.get("RANKEVAL_TEST_CONNECT") == "1", reason="jars and catalogs are those of the server")
def test_a_night_from_tables_of_iceberg_is_that_of_the_same_rows_in_parquet(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace", format_="parquet", results__root="from_parquet")
    settings = iceberg.settings_of(spark_line(), tmp_path / "lake")
    iceberg.write_by_day(settings, [made.folder / "inputs" / name for name in INPUTS])
    both_nights = ("backfill", made.config, "--from", FIRST, "--to", SECOND)
    assert rankeval(*both_nights).code == 0

    for name in INPUTS:
        table = f"{iceberg.NAMESPACE}.{name}"
        filters = [{"column": "day", "op": "last", "value": "1d"}]
        made.change(**{f"inputs__{name}": {"format": "table", "table": table, "filters": filters}})
    made.change(spark={"settings": settings}, results__root="from_iceberg")
    done = rankeval_process(*both_nights)
    assert done.code == 0, done.err

    for table in NIGHTLY:
        expected = rows(made, "from_parquet", table)
        assert expected
        assert rows(made, "from_iceberg", table) == expected
