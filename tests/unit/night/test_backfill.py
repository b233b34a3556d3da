"""Many nights in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import deltalake

from rankeval_spark.results import Results
from tests.support.arrow_frames import where
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS

if TYPE_CHECKING:
    from tests.support.cli import Finished
    from tests.support.nights import Workspace


def test_every_date_of_the_range_is_published(published: Workspace, backfilled: Finished) -> None:
    assert backfilled.code == 0, backfilled.err
    done = where(Results(published.root).runs(evaluation="nightly"), status="PUBLISHED").sort_by("recorded_at")
    assert done["evaluation_date"].to_pylist() == [FIRST, SECOND, WITHOUT_ROWS]


def test_summary_has_a_line_a_date(published: Workspace, backfilled: Finished) -> None:  # noqa: ARG001 - is published
    lines = [line for line in backfilled.out.splitlines() if line.strip().startswith("2026-01-")]

    assert [line.split("│")[1].strip() for line in lines] == ["published", "published", "published empty"]
    assert "no rows for 2026-01-03" in lines[2]


def test_stages_are_logged_with_seconds_and_rows(published: Workspace, backfilled: Finished) -> None:  # noqa: ARG001 - is published
    for stage in ("read", "check", "match", "score", "summarise", "audit", "publish"):
        assert f"nightly 2026-01-01 stage={stage} seconds=" in backfilled.err
    assert "stage=score" in backfilled.err
    assert "rows=20" in backfilled.err


def test_date_that_fails_does_not_stop_the_others(own_copy_of_delta: Workspace) -> None:
    """Each date has a folder of its own, and that of the first is missing."""
    for name in ("recommendations", "held_out", "segments"):
        inputs = own_copy_of_delta.folder / "inputs"
        (inputs / name).rename(inputs / f"{name}-{SECOND}")
    own_copy_of_delta.change(
        inputs__recommendations__path="inputs/recommendations-{date}",
        inputs__held_out__path="inputs/held_out-{date}",
        inputs__segments__path="inputs/segments-{date}",
        evaluation="by-folder",
    )

    filled = rankeval("backfill", own_copy_of_delta.config, "--from", FIRST, "--to", SECOND)

    assert filled.code == 4  # that of the date that failed
    lines = [line for line in filled.out.splitlines() if line.strip().startswith("2026-01-")]
    assert [line.split("│")[1].strip() for line in lines] == ["failed, code 4", "published"]
    summary = " ".join(filled.out.replace("│", " ").split())
    assert "inputs.recommendations: found no such path at" in summary
    runs = deltalake.DeltaTable(f"{own_copy_of_delta.root}/runs").to_pyarrow_table().to_pylist()
    own = sorted((row for row in runs if row["evaluation"] == "by-folder"), key=lambda row: row["recorded_at"])
    assert {row["evaluation_date"]: row["status"] for row in own} == {FIRST: "FAILED", SECOND: "PUBLISHED"}


def test_only_missing_dates_are_run_in_the_order_given(own_copy: Workspace) -> None:
    """A date before those of the root, which has no rows, and the published ones, by a config that changed since."""
    earlier = "2025-12-31"
    asked = ("backfill", own_copy.config, "--missing", "--from", FIRST, "--to", SECOND, "--date", earlier)

    filled = rankeval(*asked, "--set", "slicing.min_slice_size=3")
    again = rankeval(*asked)

    assert (filled.code, again.code) == (0, 0), filled.err
    rows = [
        [cell.strip() for cell in line.split("│")] for line in filled.out.splitlines() if line.strip().startswith("202")
    ]
    assert [row[:2] for row in rows] == [[earlier, "published empty"], [str(FIRST), "kept"], [str(SECOND), "kept"]]
    assert "with another config" in " ".join(filled.out.replace("│", " ").split())
    assert filled.out.splitlines()[-1] == "1 published, 2 kept"
    assert again.out.splitlines()[-1] == "3 kept"
