"""``rankeval report``: a published night as one file for a browser."""

from __future__ import annotations

from pathlib import Path

from rankeval_spark.apps.published.report import report_of, require_file, write_atomically
from rankeval_spark.cli.display.terminal import console
from rankeval_spark.cli.sessions import session_for
from rankeval_spark.config import parse_date
from rankeval_spark.report.page import require_extra


def report_command(root: str, out: Path, day: str | None, evaluation: str | None, baseline: str | None) -> None:
    """Write the report of a night and say where it is; what cannot work is refused before anything is read."""
    wanted = parse_date(day, where="--date") if day else None
    require_extra()
    require_file(out)
    text = report_of(session_for(root, "report"), root, evaluation=evaluation, day=wanted, baseline=baseline)
    write_atomically(text, out)
    size = out.stat().st_size / 1e6
    console().print(f"wrote {out}, {size:.1f} MB: open it in a browser", markup=False, soft_wrap=True)
