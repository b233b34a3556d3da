"""How large a difference a published night would find, and the users and nights that a difference takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.published.comparison import ComparisonSelection, compare_models
from rankeval_spark.apps.published_runs import earlier_nights
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.measures import Measure, MeasureSet
from rankeval_spark.results import results_of
from rankeval_spark.statistics.power import POWER, detectable, nights_needed, strictest_tail, users_needed

if TYPE_CHECKING:
    from rankeval_spark.apps.published_runs import PastNight

Row: TypeAlias = dict[str, Any]

MOST_USERS: Final = 100_000
"""Users who are enough for the correlation of two nights: its standard error is at most .004."""

COLUMNS: Final = (
    *(C.EVALUATION, C.EVALUATION_DATE, C.BASELINE_MODEL_ID, C.MODEL_ID, C.MEASURE, C.K, "test", "n_users"),
    *("baseline_value", "std_error", "std_dev", "alpha", "n_tests", "power", "detectable", "detectable_share"),
    *(
        "detectable_std_devs",
        "gain",
        "n_users_needed",
        "earlier_date",
        "night_correlation",
        "n_nights_needed",
        "reason",
    ),
)


@dataclass(frozen=True)
class Aim:
    """The difference that is to be found, and how surely."""

    gain: float | None = None  # None: any; the plan then says what would be found
    is_relative: bool = False  # whether it is a share of the baseline's value
    power: float = POWER

    def __post_init__(self) -> None:
        """Refuse numbers that no plan has."""
        faults = []
        if self.gain is not None and not (math.isfinite(self.gain) and self.gain > 0):
            faults.append(Fault("--gain", f"{self.gain:g}", "a difference above 0, such as 0.01", "leave out its sign"))
        if self.gain is None and self.is_relative:
            faults.append(Fault("--relative", "no --gain", "a gain that is a share, such as --gain 0.02"))
        if not 0.5 <= self.power < 1:  # noqa: PLR2004 - below, a coin finds more
            faults.append(Fault("--power", f"{self.power:g}", "a probability from 0.5 to below 1, such as 0.8"))
        if faults:
            raise ConfigError(*faults)


def plan(
    root: str, night: PastNight, selection: ComparisonSelection, aim: Aim, *, baseline: str | None = None
) -> list[Row]:
    """Return a row of :data:`COLUMNS` for each model and measure on all users, the most sensitive measure first.

    All are planned as primary measures: two-sided at 1 - confidence, corrected for the primary tests of the night. With
    a gain and no measures, only the primary measures have rows.
    """
    config = night.config
    baseline = baseline or (config.comparisons.baseline if config.comparisons else None)
    if baseline is None:
        raise ConfigError(Fault("--against", f"no baseline in the config of {night}", "a model", "name it"))
    primary = tuple(map(str, config.primary))
    asked = selection.measures or (primary if aim.gain is not None and not selection.ks else ())
    widened = replace(selection, measures=(*asked, *primary) if asked else (), ks=())
    rows = compare_models(root, night, baseline, widened).rows
    n_tests = max((row["family_size"] or 0 for row in rows if row["family"] == "primary"), default=0)
    n_tests = (
        1 if any(row["correction"] == "none" for row in rows) else n_tests or len({row[C.MODEL_ID] for row in rows})
    )
    kept = {(measure.label, measure.k) for measure in replace(selection, measures=asked).measures_of(night)}
    rows = [row for row in rows if (row[C.MEASURE], row[C.K]) in kept]
    spread = _users_spread(root, night, baseline)
    found = [_plan_row(row, aim, n_tests, spread.get((row[C.MEASURE], row[C.K]))) for row in rows]
    if aim.gain is not None and any(row["n_users_needed"] for row in found):
        _add_nights(root, night, found)
    names = {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date}
    ordered = sorted(found, key=lambda row: (row["detectable_std_devs"] is None, row["detectable_std_devs"] or 0.0))
    return [{**dict.fromkeys(COLUMNS), **names, **row} for row in ordered]


def _users_spread(root: str, night: PastNight, model: str) -> Mapping[tuple[str, int], float | None]:
    """Read the standard deviation of the users of a model, by measure and cutoff."""
    wanted: dict[str, Any] = {C.MODEL_ID: model, C.SLICE: C.ALL_USERS, "columns": [C.MEASURE, C.K, "std_dev"]}
    metrics = results_of(root).arrow(
        schemas.METRICS.name, date=night.evaluation_date, evaluation=night.evaluation, **wanted
    )
    return {(row[C.MEASURE], row[C.K]): row["std_dev"] for row in metrics.to_pylist()}


def _plan_row(row: Mapping[str, Any], aim: Aim, n_tests: int, std_dev: float | None) -> Row:
    """Plan one comparison; without a difference that a t test can find, only its reason."""
    pair = (C.BASELINE_MODEL_ID, C.MODEL_ID, C.MEASURE, C.K)
    kept = (*pair, "test", "n_users", "baseline_value", "std_error", "reason", "method")
    alpha = round(1 - row["ci_level"], 12)
    planned = {name: row[name] for name in kept} | {
        "std_dev": std_dev,
        "alpha": alpha,
        "n_tests": n_tests,
        "power": aim.power,
        **dict.fromkeys(("detectable", "detectable_share", "detectable_std_devs", "gain", "n_users_needed")),
    }
    if not row["std_error"]:
        return planned | {"reason": row["reason"] or "no_spread"}
    freedom, tail = row["freedom"] or row["n_users"] - 1, float(strictest_tail(alpha, n_tests, row["correction"]))
    least: float | None = float(detectable(row["std_error"], freedom, tail=tail, power=aim.power))
    if row["detectable"] is None:  # an exact test, or none, whose power is not known
        planned["reason"], least = row["reason"] or "few_differences", None
    base = row["baseline_value"] if row["baseline_value"] and row["baseline_value"] > 0 else None
    planned |= {
        "detectable": least,
        "detectable_share": least / base if base and least else None,
        "detectable_std_devs": least / std_dev if std_dev and least else None,
    }
    if aim.gain is None or (aim.is_relative and base is None):
        return planned | ({} if aim.gain is None else {"reason": "baseline_not_above_0"})
    gain = aim.gain * base if aim.is_relative and base else aim.gain
    needed = users_needed(gain, row["std_error"] * math.sqrt(row["n_users"]), tail=tail, power=aim.power)
    return planned | {"gain": gain, "n_users_needed": needed}


def _add_nights(root: str, night: PastNight, rows: Sequence[Row]) -> None:
    """Add how alike the differences of two nights are, and the nights that a gain takes; means over users alone."""
    means = {(measure.label, measure.k): measure for measure in night.measures.measures if measure.is_mean_of_users}
    wanted = [row for row in rows if row["method"] == "t" and (row[C.MEASURE], row[C.K]) in means and row["gain"]]
    before = earlier_nights(root, night, at_most=1)
    if not wanted or not before:
        return
    then = before[-1].definitions
    alike = {key for key, definition in night.definitions.items() if then.get(key) == definition}
    wanted = [row for row in wanted if (row[C.MEASURE], row[C.K]) in alike]
    measures = list(dict.fromkeys(means[row[C.MEASURE], row[C.K]] for row in wanted))
    pairs = tuple(dict.fromkeys((row[C.BASELINE_MODEL_ID], row[C.MODEL_ID]) for row in wanted))
    share = MOST_USERS / max(row["n_users"] for row in rows)
    found = night_correlations(root, (night, before[-1]), measures, pairs, share=share) if wanted else {}
    for row in wanted:
        correlation = found.get(tuple(row[name] for name in (C.BASELINE_MODEL_ID, C.MODEL_ID, C.MEASURE, C.K)))
        if correlation is not None:
            n_nights = nights_needed(row["n_users"], row["n_users_needed"], correlation)
            row |= {
                "earlier_date": before[-1].evaluation_date,
                "night_correlation": correlation,
                "n_nights_needed": int(n_nights) if math.isfinite(n_nights) else None,
            }


def night_correlations(
    root: str,
    nights: tuple[PastNight, PastNight],
    measures: Sequence[Measure],
    pairs: tuple[tuple[str, str], ...],
    *,
    share: float = 1.0,  # of the users, the same on both nights
) -> dict[tuple[Any, ...], float]:
    """Return the correlation of the mean differences of two nights, by baseline, model, measure and cutoff.

    ``sum_common (x - mean x)(y - mean y) / (n_x n_y se_x se_y)``: that of the users' differences, times the share of
    users who are there on both nights.
    """
    from rankeval_spark.sums.published import NIGHT_PAIRS, NightPairs, UserTotals, sum_users  # noqa: PLC0415 - imports the engine

    results, models = results_of(root), sorted({name for pair in pairs for name in pair})
    users = [
        results.scan(
            schemas.USER_METRICS.name,
            date=night.evaluation_date,
            evaluation=night.evaluation,
            **{C.MODEL_ID: models},
        )
        for night in nights
    ]
    asked = MeasureSet.of(measures)
    totals = UserTotals(asked, {NIGHT_PAIRS: NightPairs(asked, pairs)}, n_nights=2)
    found = {}
    for row in sum_users(users, totals, share=share)[NIGHT_PAIRS].to_pylist():
        (n, x, xx), (n_then, y, yy) = (
            [row[name] for name in names] for names in (("n", "x", "xx"), ("n_then", "y", "yy"))
        )
        if min(n, n_then) < 2:  # noqa: PLR2004 - no spread
            continue
        common = row["xy"] - (x * row["y_both"] / n) - (y * row["x_both"] / n_then) + row["n_both"] * x * y / n / n_then
        squares = [(xx - x * x / n) / (n - 1) / n, (yy - y * y / n_then) / (n_then - 1) / n_then]
        if min(squares) > 0:
            key = tuple(row[name] for name in NightPairs.key)
            found[key] = common / (n * n_then) / math.sqrt(squares[0] * squares[1])
    return found
