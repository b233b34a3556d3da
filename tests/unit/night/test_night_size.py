"""A run says what it comes to before it computes anything, and ends there where that is too much."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.support import nights
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

N_USERS = 2_000


def n_rows(workspace: Workspace, table: str) -> int:
    only = [("evaluation", "=", "nightly"), ("evaluation_date", "=", FIRST)]
    return int(deltalake.DeltaTable(f"{workspace.root}/{table}").to_pyarrow_table(filters=only).num_rows)


def test_what_is_said_first_is_what_is_published(published: Workspace, backfilled: Finished) -> None:
    said, _, later = backfilled.err.partition("stage=read")

    assert "about 48 rows of metrics a night: 6 measures at cutoffs x 2 models x 4 slice values" in said
    assert "stage=check" in later
    assert n_rows(published, "metrics") == 48


def test_a_dry_run_says_it_too_and_refuses_it(own_copy: Workspace) -> None:
    done = rankeval("run", own_copy.config, "--date", FIRST, "--dry-run")
    assert "cost: about 48 rows of metrics a night" in done.out

    refused = rankeval("run", own_copy.config, "--date", FIRST, "--dry-run", "--set", "results.most_rows=47")
    assert (refused.code, "expected at most 47" in refused.message) == (2, True)


def test_too_much_is_refused_before_anything_is_computed(own_copy: Workspace) -> None:
    before = deltalake.DeltaTable(f"{own_copy.root}/metrics").version()

    done = rankeval("run", own_copy.config, "--date", FIRST, "--set", "results.most_rows=47")

    assert done.code == 2
    done.assert_readable()
    assert "results.most_rows: found about 48 rows of metrics a night: 6 measures at cutoffs x 2 models" in done.message
    assert "expected at most 47; request fewer than 6 measures at cutoffs, or raise results.most_rows" in done.message
    assert "stage=check" not in done.err
    assert deltalake.DeltaTable(f"{own_copy.root}/metrics").version() == before


@pytest.fixture
def by_user(tmp_path: Path, spark: SparkSession) -> Workspace:  # noqa: ARG001 - is active
    """Give a workspace whose one segment tells every user apart."""
    users = [f"u{number}" for number in range(N_USERS)]
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET)
    workspace.write("recommendations", nights.recommendations({FIRST: {"als": dict.fromkeys(users, "a b")}}))
    workspace.write("held_out", nights.held_out({FIRST: {user: {"a": 1.0} for user in users}}))
    rows = [{"day": FIRST.isoformat(), "user_id": user, "country": user} for user in users]
    workspace.write("segments", rows)
    return workspace


def test_a_slice_of_two_thousand_values_is_named_if_too_much_and_else_finishes(
    by_user: Workspace,
) -> None:
    refused = rankeval("run", by_user.config, "--date", FIRST, "--set", "results.most_rows=10000")

    assert refused.code == 2
    values = re.search(r"leave out the slice country, which has ([\d,]+) values", refused.message)
    assert values is not None
    assert abs(int(values[1].replace(",", "")) / N_USERS - 1) < 0.1

    done = rankeval("run", by_user.config, "--date", FIRST)
    assert done.code == 0, done.err
    assert n_rows(by_user, "metrics") == 6 * (1 + N_USERS)
