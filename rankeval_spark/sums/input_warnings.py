"""Warnings about rows that are left out and inputs that hardly meet, from what is counted of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import Checks
from rankeval_spark.engine.checks import CHECKS, ROWS
from rankeval_spark.errors import warn_user
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import judge_fact

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.result_rows.check_rows import CheckCount

LEFT_OUT: Final = {
    **{name: check.warning for name, check in CHECKS.items() if check.warning},
    check_rows.DUPLICATES: "repeat an item of their list; its best place counts (duplicates='best')",
    check_rows.MISSING_USERS: "have no list",
    check_rows.ABSENT_USER_VALUES: "that measures read have no row",
}
"""Texts of the warnings, by check. A check warns above its default threshold."""

_CHOSEN: Final = ("invalid_scores", check_rows.DUPLICATES)
"""Checks with a policy of the same name: there is no warning where the user said what becomes of such rows."""

_COUNTED: Final = {check_rows.MISSING_USERS: "judged users", check_rows.ABSENT_USER_VALUES: "values"}
"""What a check counts, where that is no rows."""

DROPPING: Final = ("judged_only", "seen_in_train", "unknown_items", "consumed_before", "own_item")
"""Policies that take items out of lists."""

_MAX_EXPLAINED: Final = 3  # most measures that a warning explains


def warn_of_left_out(facts: Iterable[CheckCount], request: Request) -> None:
    """Warn of rows that cannot be used and of users without a list, once for each kind, with count and share."""
    policies, silent = request.policies, {(check_rows.HELD_OUT, check_rows.DUPLICATES)}  # judgements may repeat
    if not request.measure_set.columns or policies.population not in ("truth", "judged"):
        silent.add((check_rows.RECOMMENDATIONS, check_rows.MISSING_USERS))  # no mean has these users
    silent |= {(check_rows.RECOMMENDATIONS, name) for name in _CHOSEN if name in policies.model_fields_set}
    for fact in facts:
        is_known = fact.check in LEFT_OUT and (fact.input, fact.check) not in silent
        if not is_known or judge_fact(fact, Checks()).verdict == "ok":
            continue
        is_of_users, of_model = fact.check == check_rows.MISSING_USERS, {*fact.sample_keys} - {C.ONE_MODEL}
        what = _COUNTED.get(fact.check, "rows")
        share, model = (
            f"{100 * fact.count / fact.total:.3g} %",
            f" of {min(of_model)!r}" if is_of_users and of_model else "",
        )
        text = f"{fact.count:,} of {fact.total:,} {what} ({share}) {LEFT_OUT[fact.check]}{model}"
        warn_user(f"{fact.input}: {text}; see .checks")


def warn_if_nothing_is_measured(metrics: pa.Table, facts: Sequence[CheckCount], request: Request) -> None:
    """Warn of inputs that have nothing to do with each other: their means are 0, NaN or not there."""
    if found := next(_find_reasons(metrics, {(fact.input, fact.check): fact for fact in facts}, request), ""):
        warn_user(f"nothing is measured: {found}; see .checks")


def _find_reasons(metrics: pa.Table, facts: dict[tuple[str, str], CheckCount], request: Request) -> Iterator[str]:
    """Yield the reasons why no user has a value, or why all values are 0, by counts of rows and users."""
    if not facts[check_rows.HELD_OUT, ROWS].total:
        yield "held_out has no rows"
    if not facts[check_rows.RECOMMENDATIONS, ROWS].total:
        yield "recommendations have no row"
    rows = metrics.filter((pc.field(C.SLICE) == C.ALL_USERS) & pc.field("n_missing").is_valid())
    if not rows.num_rows:  # measures of all lists together need no judgement
        return
    has_users, is_all_zero = pc.max(rows["n_users"]).as_py() > 0, not pc.max(pc.abs(rows["value"])).as_py()
    if not is_all_zero:
        return
    missing = facts.get((check_rows.RECOMMENDATIONS, check_rows.MISSING_USERS))
    if missing is not None and missing.total and pc.min(rows["n_missing"]).as_py() == missing.total:
        yield no_list_left_text(request) or "no user of held_out has a list; ids of both tables have to match"
    without = facts.get((check_rows.HELD_OUT, check_rows.ZERO_RELEVANT))
    least = least_gain(request)
    if least == 1 and without is not None and without.total and without.count == without.total:
        yield f"no user has a relevant judgement (a gain of at least {least:g})"
    if not has_users:
        yield f"no user has a value{undefined_text(request)}"
    unmatched = facts.get((check_rows.HELD_OUT, check_rows.UNMATCHED_ITEMS))
    if unmatched is not None and unmatched.total and unmatched.count == unmatched.total:
        yield "no item of held_out is in a list; ids of both tables have to match"


def no_list_left_text(request: Request) -> str:
    """Return which policies may have taken all lists of the judged users; empty where none drops items."""
    dropping = [name for name in DROPPING if getattr(request.policies, name) not in (False, "keep")]
    return f"no user of held_out has a list left by {', '.join(dropping)}" if dropping else ""


def undefined_text(request: Request) -> str:
    """Write where the first measures are undefined."""
    undefined = {measure.name: measure.entry.undefined for measure in request.measure_set.per_list}
    reasons = [f"{name} is undefined ({where})" for name, where in [*undefined.items()][:_MAX_EXPLAINED]]
    if request.policies.seen_in_train == "drop_both":
        reasons.append("judgements of items in train are left out by seen_in_train='drop_both'")
    return ": " + ", ".join(reasons)


def least_gain(request: Request) -> float | None:
    """Return the least gain without which no measure has a value; None where one needs no such gain."""
    least = []
    for measure in request.measure_set.per_list:
        rel, is_binary = measure.options.get("rel"), measure.options.get("gains", "binary") == "binary"
        if not isinstance(rel, int | float) or not is_binary or math.isnan(measure.without_relevant):
            return None
        least.append(float(rel))
    return min(least)
