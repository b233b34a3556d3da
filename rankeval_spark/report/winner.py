"""The model that may ship: which one, and how sure it is that no other is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, wording
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults
from rankeval_spark.report.figures.forest_plot import pair_row
from rankeval_spark.report.figures.means import ranked_rows
from rankeval_spark.report.tables import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.tables import Row

PASSED: Final = "passed"
FAILING: Final = frozenset({"failed", "no_match", "missing_slice"})
"""Verdicts that keep a model from shipping."""
UNMET: Final = FAILING | {"undecided"}
"""Verdicts of rules that are not met: exit code 6. The others pass, or leave the decision to people."""
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Winner:
    """The best model that meets every rule, or the best one of all where none does."""

    model: str = ""  # empty without means
    text: str = ""  # why, and the comparison with the next best one
    may_ship: bool = False  # it meets every rule, and no rule blocks the night

    def __str__(self) -> str:
        """Return one sentence or two for a terminal."""
        return f"{self.model} may ship. {self.text}" if self.may_ship else self.text


NO_WINNER: Final = Winner()


def winner_of(
    gates: Sequence[Row],
    means: Sequence[Row],  # rows of ``metrics`` over all users
    pairs: Sequence[Row],  # rows of ``comparisons`` over all users, and further ones of the same kind
    *,
    first: MeasureKey | None,  # the measure that decides
    baseline: str | None,
) -> Winner:
    """Return the model to ship and why: the best of those that meet every rule, against the next best one."""
    board = [] if first is None else ranked_rows([row for row in means if _key(row) == first], first)
    names, unmet, passing = _candidates(gates, board, baseline)
    may_ship = bool(passing) and not unmet
    if first is None or not names:
        return NO_WINNER
    measure = with_cutoff(*first)
    others = f" {wording.listed(passing[1:])} may ship too." if passing[1:] else ""
    if unmet and passing:
        others = (
            f" {wording.listed(passing)} meet{'' if passing[1:] else 's'} every rule: name the candidate in `models`."
        )
    if defaults.better_of(first[0]) == "neither":
        text = f"Neither side of {measure} is better, so it names no best model.{others}"
        return Winner(passing[0] if may_ship else "", text, may_ship)
    best, rival = _two_best(names, passing)
    if rival is None:
        return Winner(best, f"No other model has a value of {measure}.{others}", may_ship)
    value = next(row["text"] for row in board if row["model"] == best)
    compared = _compare(pairs, first, best, rival)
    if names[0] == best:
        n_models = NUMBERS[len(names)] if len(names) < len(NUMBERS) else str(len(names))
        text = f"{'It' if may_ship else best} is the best of {n_models} models by {measure}, {value}: {compared}."
    else:
        role = "the baseline" if rival == baseline else "which does not meet every rule"
        text = f"{rival}, {role}, has the best {measure}. {best} has {value}: {compared}."
    return Winner(best, text + others, may_ship)


def two_best(
    gates: Sequence[Row], means: Sequence[Row], first: MeasureKey, baseline: str | None
) -> tuple[str, str] | None:
    """Return the model that :func:`winner_of` names and the one that it is compared with; None without two."""
    board = ranked_rows([row for row in means if _key(row) == first], first)
    names, _, passing = _candidates(gates, board, baseline)
    best, rival = _two_best(names, passing) if names else ("", None)
    return None if rival is None else (best, rival)


def _candidates(
    gates: Sequence[Row], board: Sequence[Row], baseline: str | None
) -> tuple[list[str], set[str], list[str]]:
    """Return the models with a value, best first, those that a rule stops, and those that meet every rule."""
    names = [row["model"] for row in board if row["value"] is not None and row["has_support"]]
    unmet, passed = ({row[C.MODEL_ID] for row in gates if row["verdict"] in kind} for kind in (UNMET, {PASSED}))
    return names, unmet, [name for name in names if name in passed - unmet - {baseline}] if "" not in unmet else []


def _two_best(names: Sequence[str], passing: Sequence[str]) -> tuple[str, str | None]:
    """Return the best model that meets every rule, or of all, and the best other one."""
    best = (passing or names)[0]
    return best, next((name for name in names if name != best), None)


def _compare(pairs: Sequence[Row], measure: MeasureKey, model: str, other: str) -> str:
    """Write the difference between two models with its interval and verdict, or that they were not compared."""
    row = pair_row(pairs, measure, model, other)
    if row is None:
        return f"not compared with {other}, which `rankeval compare --against {other}` does"
    if row["withheld"]:
        return f"not compared with {other}, {row['withheld']}"
    if row["delta"] is None:
        return f"no user has a value of both it and {other}"
    outcome = row["said"] if row["p_adjusted"] is None else f"{row['outcome']}, {wording.p_in_words(row['p_adjusted'])}"
    if row["delta"] == 0:
        outcome = "a tie"
    if row["outcome"] == "undecided" and row["detectable"] is not None:
        least = wording.number(row["detectable"], wording.decimals([row["detectable"]]))
        outcome += f"; {least} or more would be detected in 80 % of samples"
    return f"{row['text']} against {other} ({row['interval']}), {outcome}"


def _key(row: Row) -> MeasureKey:
    return row[C.MEASURE], row[C.K]


def all_users_pairs(comparisons: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of ``comparisons`` over all users that verdicts follow from."""
    if C.SLICE not in comparisons.column_names:
        return []
    return rows_of(comparisons, test=C.DECIDING, slice=C.ALL_USERS)


def deciding_measure(
    known: Sequence[MeasureKey],
    requested: Sequence[MeasureKey],
    gates: Sequence[Row],
    pairs: Sequence[Row],
) -> MeasureKey | None:
    """Return the measure that decides: primary, of the first gate if that is, or the first requested; None without."""
    if not known:
        return None
    of_gates = [_key(row) for row in sorted(gates, key=lambda row: row["gate"])]
    judged = next((key for key in of_gates if key in known), None)
    primary = {_key(row) for row in pairs if row.get("family") == "primary"}
    decides = judged if judged in primary else next((key for key in requested if key in primary), judged)
    return decides or defaults.headline_measure(known, requested)
