"""Published nights that every query and page of ``docs`` has an answer for: three good ones, and one that failed."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ChecksFailedError
from rankeval_spark.spark.session import on_demand
from tests.support import nights
from tests.support.code import ROOT
from tests.support.nights import FIRST, SECOND, no_session

if TYPE_CHECKING:
    import pyarrow as pa

    from tests.support.nights import Rows, Workspace

QUERIES: Final = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/queries").glob("*.sql"))}

THIRD: Final = date(2026, 1, 3)
"""The newest night that is published; its rows are those of the second one."""
FAILED: Final = date(2026, 1, 4)
"""A night of which a check does not let anything be published."""

MEASURES: Final = ("nDCG", "AP", "R", "RR", "Personalization")
RULES: Final = ({"measure": "nDCG@10", "least_gain": 0.01}, {"measure": "nDCG@10", "at_least": 0.1})


def published(folder: Path) -> Workspace:
    """Run four nights without a JVM; from the third one on ties are ranked otherwise."""
    workspace = nights.workspace(
        folder,
        measures=list(MEASURES),
        cutoffs=[2, 5, 10],
        slicing__min_slice_size=1,
        slicing__quantiles=[0.1, 0.5, 0.9],
        comparisons={"baseline": "popular", "margin": 0.05},
        gates=list(RULES),
    )
    workspace.write("recommendations", recommendations())
    workspace.write("held_out", held_out())
    workspace.write("segments", _with_third(nights.segments()))
    run(workspace, FIRST)
    run(workspace, SECOND)
    workspace.change(policies={"ties": "item_desc"})
    run(workspace, THIRD)
    with pytest.raises(ChecksFailedError):
        run(workspace, FAILED, "checks.null_keys.error=0")
    return workspace


def run(workspace: Workspace, day: date, *overrides: str) -> None:
    """Run a night in this process."""
    run_night(on_demand(no_session), load_config(workspace.config, overrides), day)


def recommendations() -> Rows:
    """Return the log of all nights, whose baseline is called as in the demo."""
    names = {"als": "als", "pop": "popular"}
    rows = [{**row, "model_id": names[row["model_id"]]} for row in _with_third(nights.recommendations())]
    failed = {"day": FAILED.isoformat(), "user_id": "ann", "item_id": "a", "score": 1.0}
    return [*rows, *({**failed, "model_id": name} for name in names.values())]


def held_out() -> Rows:
    """Return the judgements of all nights; one of the last night has no user."""
    failed = [{"day": FAILED.isoformat(), "user_id": user, "item_id": "a", "gain": 1.0} for user in (None, "ann")]
    return [*_with_third(nights.held_out()), *failed]


def logs() -> dict[str, pa.Table]:
    """Give the user's own tables of the newest published night."""
    rows = {"recommendations": recommendations(), "held_out": held_out(), "users": _with_third(nights.segments())}
    return {name: nights.arrow_of(nights.of_date(own, THIRD)) for name, own in rows.items()}


def _with_third(rows: Rows) -> Rows:
    """Repeat the rows of the second date on the third."""
    second, third = SECOND.isoformat(), THIRD.isoformat()
    return [*rows, *({**row, "day": third} for row in rows if row["day"] == second)]
