"""The demo's saved logs, and the fingerprint by which a later demo reuses them."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rankeval_spark.demo.dataset import Dataset

RECOMMENDATIONS: Final = "recommendations"
HELD_OUT: Final = "held_out"
SEGMENTS: Final = "segments"
TABLES: Final = (RECOMMENDATIONS, HELD_OUT, SEGMENTS)

CAVEATS: Final = (
    "The cut is rolled along each user's own sequence, so the dates are stand-ins and other users' later"
    " interactions are in the training data.",
    "The models' settings were chosen on these same rows, which flatters them.",
)
"""To be shown wherever figures of the demo are."""

_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class DemoLogs:
    """The logs of a demo and how much is in them.

    Attributes
    ----------
    folder : Path
        Holds a Delta table for each of :data:`TABLES`.
    source_name : str
        'MovieLens 100K' or 'synthetic'.
    was_reused : bool
        The logs are those of an earlier demo.
    dates : tuple of date
        Evaluation dates, ascending.
    n_users, n_items, n_interactions : int
        Size of the data set.
    n_recommendations, n_held_out : int
        Rows of the tables over all dates.
    """

    folder: Path
    source_name: str
    was_reused: bool
    dates: tuple[dt.date, ...]
    n_users: int
    n_items: int
    n_interactions: int
    n_recommendations: int
    n_held_out: int

    @classmethod
    def of(cls, folder: Path, data: Dataset, *, dates: tuple[dt.date, ...], n_rows: Mapping[str, int]) -> DemoLogs:
        """Describe logs that were just written from ``data``."""
        return cls(
            folder=folder,
            source_name=data.source_name,
            was_reused=False,
            dates=dates,
            n_users=len(data.users),
            n_items=len(data.items),
            n_interactions=len(data.interactions),
            n_recommendations=n_rows[RECOMMENDATIONS],
            n_held_out=n_rows[HELD_OUT],
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to bear in mind about the figures."""
        made_up = () if self.source_name != "synthetic" else ("The data is synthetic: its figures mean nothing.",)
        return (*made_up, *CAVEATS)

    def table(self, name: str) -> Path:
        """Return the folder of one of :data:`TABLES`."""
        return self.folder / name

    def summary(self) -> str:
        """Say in a few words how much there is."""
        return (
            f"{self.n_recommendations:,} recommendations and {self.n_held_out:,} held-out interactions"
            f" over {len(self.dates)} dates"
        )


def read_kept(folder: Path, fingerprint: str) -> DemoLogs | None:
    """Return the logs in ``folder`` if they are whole and of this fingerprint."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        logs = _from_json(folder, manifest["logs"])
    except (OSError, ValueError, KeyError, TypeError):  # none, or not one that `remember` wrote
        return None
    has_tables = all((logs.table(name) / "_delta_log").is_dir() for name in TABLES)
    return logs if has_tables and manifest.get("fingerprint") == fingerprint else None


def forget(folder: Path) -> None:
    """Drop the note before the tables change, so that half-written logs are never taken for whole ones."""
    (folder / _MANIFEST).unlink(missing_ok=True)


def remember(logs: DemoLogs, fingerprint: str) -> None:
    """Write the note, last and in one step."""
    content = {"fingerprint": fingerprint, "logs": _to_json(logs)}
    draft = logs.folder / f".{_MANIFEST}.{os.getpid()}"
    draft.write_text(json.dumps(content, indent=2), encoding="utf-8")
    draft.replace(logs.folder / _MANIFEST)


def _to_json(logs: DemoLogs) -> dict[str, Any]:
    # Where the folder is and whether it was reused is up to the reader.
    fields = {name: value for name, value in asdict(logs).items() if name not in ("folder", "was_reused")}
    return {**fields, "dates": [str(date) for date in logs.dates]}


def _from_json(folder: Path, fields: dict[str, Any]) -> DemoLogs:
    dates = tuple(dt.date.fromisoformat(date) for date in fields["dates"])
    return DemoLogs(**{**fields, "folder": folder, "was_reused": True, "dates": dates})
