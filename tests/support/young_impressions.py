"""A night of impressions that were shown a short while ago, as the clock of this machine says."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from tests.support.nights import Workspace

if TYPE_CHECKING:
    from pathlib import Path


def impressions(folder: Path, *ages: dt.timedelta, **changes: Any) -> Workspace:  # noqa: ANN401 - as `change`
    """Make a night of a list a user, each shown so long ago, with an event a minute after it; windows of 2 hours."""
    made, now = Workspace(folder), dt.datetime.now(dt.UTC)
    shown = {f"u{number}": now - age for number, age in enumerate(ages)}
    lists = [
        {"user_id": user, "item_id": item, "score": 1.0, "recommended_at": at}
        for user, at in shown.items()
        for item in "ab"
    ]
    events = [
        {"user_id": user, "item_id": "a", "interacted_at": at + dt.timedelta(minutes=1)} for user, at in shown.items()
    ]
    made.write("recommendations", lists, "parquet")
    made.write("held_out", events, "parquet")
    made.configure(
        {
            "evaluation": "impressions",
            "inputs": {
                name: {"format": "parquet", "path": f"inputs/{name}"} for name in ("recommendations", "held_out")
            },
            "measures": ["R@2"],
            "policies": {"attribution": "last_touch", "attribution_window": "2h"},
            "checks": {"ties": {}},
            "results": {"root": "results"},
        }
    )
    made.change(**changes)
    return made
