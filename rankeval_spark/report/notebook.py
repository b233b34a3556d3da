"""What a notebook shows of an evaluation: what was requested, the leaderboard if it is known, and how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.report import wording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.request import Request

MOST_MODELS: Final = 20
MOST_MEASURES: Final = 12
_CELL: Final = "padding:3px 12px;text-align:{side}"


def summary(request: Request, name: str, leaderboard: Sequence[Mapping[str, Any]] | None) -> str:
    """Write it as HTML; names are text, whatever they hold.

    Parameters
    ----------
    name : str
        Of the class.
    leaderboard : sequence of mapping, optional
        Rows of ``leaderboard()``; None where they are not computed yet.
    """
    facts = {
        "measures": ", ".join(_some(list(map(str, request.measures.measures)))),
        "slices": ", ".join("*".join(one) for one in request.slices),
        "baseline": "" if request.comparisons is None else request.comparisons.baseline or "all pairs",
        "models": ", ".join(_some(list(request.models or ()))),
        "users": f"population {request.policies.population}, ties {request.policies.ties}",
    }
    lines = "".join(
        f'<tr><td style="{_CELL.format(side="left")};opacity:.7">{what}</td>'
        f'<td style="{_CELL.format(side="left")}">{escape(said)}</td></tr>'
        for what, said in facts.items()
        if said
    )
    board = _NOT_YET if leaderboard is None else _board(leaderboard)
    onward = " · ".join(f"<code>.{one}</code>" for one in _onward(request))
    return f"<div><b>{escape(name)}</b><table>{lines}</table>{board}<div>Go on with {onward}</div></div>"


_NOT_YET: Final = (
    '<div style="opacity:.8;margin:6px 0">Nothing is computed for this summary; <code>.leaderboard()</code> computes '
    "the means.</div>"
)


def _onward(request: Request) -> list[str]:
    """Name the results that this request has."""
    of_pairs = [] if request.comparisons is None else ["comparisons", "plot.forest()"]
    return ["leaderboard()", "metrics", "user_metrics", "checks", "plot.leaderboard()", *of_pairs]


def _some(names: Sequence[str]) -> list[str]:
    shown = list(names[:MOST_MEASURES])
    return shown if len(names) <= MOST_MEASURES else [*shown, f"and {len(names) - MOST_MEASURES} more"]


def _board(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay out models by measures, the best first."""
    names = [name for name in (rows[0] if rows else {}) if name not in (C.MODEL_ID, "n_users")]
    measures = names[:MOST_MEASURES]
    head = _row("th", ["model", *measures, "users"])
    cells = (
        [str(row[C.MODEL_ID]), *(wording.number(row[name]) for name in measures), wording.count(row["n_users"])]
        for row in rows[:MOST_MODELS]
    )
    body = "".join(_row("td", each) for each in cells)
    left = [
        *([f"{len(rows) - MOST_MODELS} more models"] if len(rows) > MOST_MODELS else []),
        *([f"{len(names) - len(measures)} more measures"] if len(names) > len(measures) else []),
    ]
    note = f'<div style="opacity:.7">{" and ".join(left)} in <code>.leaderboard()</code></div>' if left else ""
    return f'<table style="margin:8px 0"><thead>{head}</thead><tbody>{body}</tbody></table>{note}'


def _row(tag: str, texts: Sequence[str]) -> str:
    cells = (
        f'<{tag} style="{_CELL.format(side="right" if place else "left")}">{escape(text)}</{tag}>'
        for place, text in enumerate(texts)
    )
    return f"<tr>{''.join(cells)}</tr>"
