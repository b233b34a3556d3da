"""``rankeval runs``: what became of each run of a results root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape

from rankeval_spark import columns as C
from rankeval_spark.apps.history.published_runs import require_dates, unknown_evaluation
from rankeval_spark.cli.display import tables
from rankeval_spark.cli.display.terminal import console, say_note, write_out
from rankeval_spark.cli.sessions import session_for
from rankeval_spark.config import parse_date
from rankeval_spark.errors import InputError
from rankeval_spark.report.wording import failure_of
from rankeval_spark.results import journal

if TYPE_CHECKING:
    from datetime import date

    from rich.table import Table

COLUMNS: Final = (
    *(C.EVALUATION, C.EVALUATION_DATE, C.RUN_ID, "status", "started_at", "recorded_at", "seconds", "sample_share"),
    *("code_version", "n_rows", "reason"),
)

_READ: Final = (*C.RUN_KEY, "status", "reason", "sample_share", "code_version", "timings", "n_rows", "error")
"""Of the journal: without the configs, which are its larger part."""

_STYLES: Final = {journal.PUBLISHED: "green", journal.FAILED: "red", journal.MAINTAINED: "dim"}


def runs_command(root: str, days: Sequence[str], evaluation: str | None, *, is_json: bool) -> None:
    """Print a row a run, the newest last."""
    dates = [parse_date(day, where="--date") for day in days]
    wanted: list[tuple[str, Any, Any]] = [] if evaluation is None else [(C.EVALUATION, "=", evaluation)]
    wanted += [(C.EVALUATION_DATE, "in", dates)] if dates else []
    session = session_for(root, "runs")
    rows = _rows(journal.event_frame(session, root, columns=_READ, where=wanted))
    if len({row[C.EVALUATION_DATE] for row in rows}) < max(1, len(set(dates))):
        _refuse_unknown(journal.event_frame(session, root, columns=C.RUN_KEY), root, dates, evaluation)
        say_note("no run matches")
    if is_json:
        write_out(tables.to_json(rows, COLUMNS))
    elif rows:
        console().print(_table(rows))


def _refuse_unknown(
    events: Sequence[Mapping[str, Any]], root: str, dates: Sequence[date], evaluation: str | None
) -> None:
    """Refuse an evaluation or a date without a run, as commands do that read the results of one."""
    own = [event for event in events if evaluation in (None, event[C.EVALUATION])]
    if evaluation is not None and not own:
        raise InputError(unknown_evaluation(root, "run", evaluation, [event[C.EVALUATION] for event in events]))
    if dates:
        require_dates(root, "run", dates, {event[C.EVALUATION_DATE] for event in own})


def _rows(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make a row of the events of each run: the last one says what became of it."""
    by_run: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for event in sorted(events, key=lambda one: one["recorded_at"]):
        by_run.setdefault(tuple(event[name] for name in C.RUN_KEY), []).append(event)
    return [_row(own[0], own[-1]) for own in by_run.values()]


def _row(first: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    timings, n_rows = dict(last["timings"] or ()), dict(last["n_rows"] or ())
    values = {
        "started_at": first["recorded_at"],
        "seconds": sum(timings.values()) if timings else None,
        "n_rows": sum(n_rows.values()) if last["status"] == journal.PUBLISHED else None,
        "reason": failure_of(last) if last["error"] else last["reason"],
    }
    return {name: values[name] if name in values else last[name] for name in COLUMNS}


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out the rows; a run id begins with the time (UTC) at which the run started."""
    has_reason = any(row["reason"] for row in rows)
    table = tables.headed("evaluation", "date", "run", "status", "seconds", *(["why"] if has_reason else []))
    for row in rows:
        style = _STYLES.get(row["status"], "yellow")
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.1f}"
        why = [escape(" ".join((row["reason"] or "").split()))] if has_reason else []
        names = (escape(row[C.EVALUATION]), str(row[C.EVALUATION_DATE]), escape(row[C.RUN_ID]))
        table.add_row(*names, f"[{style}]{row['status']}[/{style}]", seconds, *why)
    return table
