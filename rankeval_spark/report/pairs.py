"""Two models by one measure, in a paragraph of plain English."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import ConfigError, Fault, visible
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import defaults
from rankeval_spark.report.figures.forest_plot import DECIDED, forest_row, turn_row
from rankeval_spark.report.layouts import CORRECTIONS, TESTS
from rankeval_spark.report.result_table import ResultTable
from rankeval_spark.statistics.paired_tests import TOO_LITTLE_SUPPORT, why_withheld
from rankeval_spark.statistics.power import POWER, strictest_tail, users_needed
from rankeval_spark.statistics.unpaired_tests import describe_shared_users

if TYPE_CHECKING:
    from rankeval_spark.measures import Definition
    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.tables import Row

WIDTH: Final = 100  # characters of a line in a terminal
MAX_SLICES: Final = 6  # that are named
METHODS: Final = {"exact": "the exact test of all signs", "delta": "the t test of the delta method"}
FAMILIES: Final = {"primary": "primary ", "slices": "slice ", "exploratory": "exploratory "}
SIDES: Final = {"higher": ("better", "worse"), "lower": ("worse", "better"), "neither": ("higher", "lower")}
"""What a value above, and one below, that of the other model is."""


class ModelComparison:
    """Two models by one measure: a paragraph that says which is better, how surely, for whom and where.

    Attributes
    ----------
    text : str
        The paragraph.
    row : dict
        The row of ``comparisons`` over all users, with the second model as the baseline.
    table : ResultTable
        This row and those of the slices.
    """

    def __init__(
        self, rows: Sequence[Row], schema: pa.Schema, note: str = "", *, own: tuple[Definition, ...] = ()
    ) -> None:
        self.row: dict[str, Any] = next(dict(row) for row in rows if row[C.SLICE] == C.ALL_USERS)
        self.table = ResultTable(pa.Table.from_pylist(list(rows), schema), "comparisons", own=own)
        slices = [row for row in rows if row[C.SLICE] != C.ALL_USERS]
        said = [
            *_describe(self.row),
            *(_describe_slices(slices, _places(self.row)) if slices else ()),
            *([note] if note and self.row["p_adjusted"] is not None else ()),
        ]
        self.text = visible(" ".join(said))

    def __repr__(self) -> str:
        return textwrap.fill(self.text, WIDTH, break_on_hyphens=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<p style="max-width:60em">{escape(self.text)}</p>'


def rows_of_pair(comparisons: pa.Table, model: str, other: str) -> list[Row]:
    """Return the deciding rows of two models with the second as the baseline, whichever of them was it."""
    deciding = pc.field("test").isin(C.DECIDING)

    def read(model: str, other: str) -> list[Row]:
        of_pair = (pc.field(C.MODEL_ID) == model) & (pc.field(C.BASELINE_MODEL_ID) == other)
        rows: list[Row] = comparisons.filter(deciding & of_pair).to_pylist()
        return rows

    return read(model, other) or [turn_row(row) for row in read(other, model)]


def choose_measure(rows: Sequence[Row], requested: Sequence[MeasureKey], measure: str | None) -> MeasureKey:
    """Return the measure that is named, else the first primary one, else the first that is compared."""
    of_all = {(row[C.MEASURE], row[C.K]): row.get("family") for row in rows if row[C.SLICE] == C.ALL_USERS}
    known = [key for key in requested if key in of_all]
    if measure is not None:
        return defaults.find_measure(measure, known, where="compare(measure=)")
    primary = [key for key in known if of_all[key] == "primary"]
    if not known:
        raise ConfigError(
            Fault("compare(measure=)", "no measure that can be compared", "a mean over users, or a ratio")
        )
    return (primary or known)[0]


def _describe(row: Row) -> list[str]:
    """Return the sentences about all users."""
    model, other, name = row[C.MODEL_ID], row[C.BASELINE_MODEL_ID], with_cutoff(row[C.MEASURE], row[C.K])
    if withheld := why_withheld(row):
        return [f"{model} and {other} are not compared by {name}: {withheld.removeprefix('withheld: ')}."]
    if row["delta"] is None:
        fix = "; models of an A/B test are named in comparisons.split" if row["reason"] == "no_common_users" else ""
        return [f"{model} and {other} are not compared by {name}: {_reason(row)}{fix}."]
    places, better = _places(row), defaults.better_of(row[C.MEASURE])
    both, relation = f"{model} or {other} is better by {name}", f"{model} and {other} differ in {name}"
    question = f"Whether {relation if better == 'neither' else both} is"
    verdict = {
        "better": f"{model} is better than {other} by {name}",
        "worse": f"{model} is worse than {other} by {name}",
        "different": f"{relation}, of which neither side is better",
        "undecided": f"{question} undecided" if row["delta"] else f"{model} and {other} tie by {name}",
    }.get(row["verdict"], f"{question} not tested, {_reason(row)}")
    lower = ", where lower is better" if better == "lower" else ""
    values = f"{wording.number(row[C.VALUE], places)} against {wording.number(row['baseline_value'], places)}"
    shown = forest_row(row, places)
    level = f"{100 * row['ci_level']:.4g} % interval {shown['interval']}" + f"; {shown['relative']}" * bool(
        shown["relative"]
    )
    tested = "" if row["p_adjusted"] is None else f", {wording.p_in_words(row['p_adjusted'])} by {_test(row)}"
    said = [f"{verdict}{lower}: {values} {_users(row)}, a difference of {shown['text']} ({level}){tested}."]
    if row["reason"] == TOO_LITTLE_SUPPORT:
        said.append("A verdict has too little support: few users decide the value by large weights.")
    return [*said, *_describe_users(row, better), *_describe_power(row), *_describe_family(row, name)]


def _places(row: Row) -> int:
    half = None if row["ci_high"] is None else (row["ci_high"] - row["ci_low"]) / 2
    return wording.decimals([half], [row["delta"]])


def _users(row: Row) -> str:
    if row["test"] != C.UNPAIRED:
        return f"on the same {wording.count(row['n_users'], 'user')}"
    own, others = wording.count(row["n_users"], "user"), wording.count(row["n_baseline_users"], "user")
    return f"over {own} of {row[C.MODEL_ID]} and {others} of {row[C.BASELINE_MODEL_ID]}, who are others"


def _reason(row: Row) -> str:
    return str(row["reason"] or "undefined").replace("_", " ")


def _test(row: Row) -> str:
    """Return test, correction and family."""
    test = METHODS.get(row["method"]) or TESTS[row["test"]]
    correction = CORRECTIONS.get(row["correction"], row["correction"])
    family, n_tests = FAMILIES.get(row.get("family") or "", ""), row["family_size"]
    if row["correction"] == "none":
        return f"{test} with {correction}"
    if n_tests == 1:
        return f"{test}, the only {family}test"
    return f"{test} with {correction} over {n_tests:,} {family}tests"


def _describe_users(row: Row, better: str) -> list[str]:
    """Return for how many users each model is better; of different users, how many have both."""
    if row["test"] == C.UNPAIRED:
        shared = describe_shared_users(row)
        return [f"{shared}."] if shared else []
    if row["n_wins"] is None:
        return []
    above, below = SIDES[better]
    counts = {above: row["n_wins"], below: row["n_losses"]}
    first, second = ("higher", "lower") if better == "neither" else ("better", "worse")
    for_first = f"{first} for {wording.count(counts[first], 'user')}"
    return [f"{row[C.MODEL_ID]} is {for_first}, {second} for {counts[second]:,} and equal for {row['n_ties']:,}."]


def _describe_power(row: Row) -> list[str]:
    """Return the smallest difference that is found and, where nothing is decided, the users that this one takes."""
    if row.get("detectable") is None:
        return []
    least = wording.number(row["detectable"], wording.decimals([row["detectable"]]))
    said = [f"The test finds a difference of {least} or more in {100 * POWER:g} % of samples."]
    if row["verdict"] != "undecided" or not row["delta"]:
        return said
    tail = float(strictest_tail(round(1 - row["ci_level"], 12), row["family_size"], row["correction"]))
    needed = users_needed(row["delta"], row["std_error"] * math.sqrt(row["n_users"]), tail=tail)
    arms = f" of {row[C.MODEL_ID]} at the same split" if row["test"] == C.UNPAIRED else ""
    return [
        *said,
        f"To find one as small as this takes {wording.count(needed, 'user')}{arms}; there are {row['n_users']:,}.",
    ]


def _describe_family(row: Row, name: str) -> list[str]:
    if row.get("family") != "exploratory":
        return []
    return [f"{name} is not in comparisons.primary: what it finds is to be confirmed."]


def _describe_slices(rows: Sequence[Row], places: int) -> list[str]:
    """Return the slices in which the models differ, losses first, and how many others there are."""
    decided = [row for row in rows if row["verdict"] in DECIDED]
    decided.sort(key=lambda row: (row["verdict"] != "worse", -abs(row["delta"])))
    named: dict[str, list[str]] = {}
    for row in decided[:MAX_SLICES]:
        shown = forest_row(row, places)
        named.setdefault(row["verdict"], []).append(f"{shown['slice']} ({shown['text']})")
    counts = Counter(row["verdict"] or "not tested" for row in rows if row not in decided[:MAX_SLICES])
    others = wording.listed(f"{n:,} {verdict}" for verdict, n in counts.items())
    if not decided:
        only = f"The only slice is {others.removeprefix('1 ')}."
        return [f"None of {len(rows):,} slices is decided: {others}." if len(rows) > 1 else only]
    found = ", ".join(f"{verdict} in {wording.listed(names)}" for verdict, names in named.items())
    correction, n_tests = decided[0]["correction"], decided[0]["family_size"]
    corrected = (
        "" if correction == "none" or n_tests == 1 else f", with {CORRECTIONS[correction]} over {n_tests:,} tests"
    )
    return [f"By slice it is {found}{corrected}{f'; others: {others}' if others else ''}."]
