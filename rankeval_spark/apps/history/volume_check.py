"""Is there as much as there used to be: rows of the inputs, models, and users with a list.

Read from a few published rows: the journal has the rows of every input, the means have counts of users.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import LEAST_COUNTED
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.apps.history.drift_check import Numbers
    from rankeval_spark.apps.history.published_runs import PastNight
    from rankeval_spark.results import RunRecord

MOST_SHOWN: Final = 3
"""Models that a check names."""

_NOT_ROWS: Final = ("version", "timestamp", "ranks_from", "late_data_grace", "sampled_candidates")
"""Keys of an input that do not say which table, and which of its rows, are read."""


def to_volume_facts(counts: Mapping[str, int], facts: RunRecord, nights: Sequence[PastNight]) -> list[CheckCount]:
    """Hold the rows of each input against their median on the nights before.

    Parameters
    ----------
    counts : mapping
        Rows of each input tonight.
    nights : sequence of PastNight
        Published nights before it; only those count whose config reads the input alike, pinned versions aside, and of
        the log the same models. A sample is an evaluation of its own, and a date without rows is none of them.

    Returns
    -------
    list of CheckCount
        A fact for each input that enough nights have rows of: ``count`` of the ``total`` rows, of the night with more,
        are the difference.
    """
    asked = json.loads(facts.config)
    past = {
        name: [night.n_input_rows[name] for night in nights if _is_alike(asked, night, name, with_models=True)]
        for name in counts
    }
    return [_volume(name, n, past[name]) for name, n in counts.items() if len(past[name]) >= LEAST_COUNTED]


def _volume(name: str, n_rows: int, past: Sequence[int]) -> CheckCount:
    usual = round(median(past))
    off = abs(n_rows - usual)
    words = f"{n_rows:,} rows, {usual:,} by the median of {len(past)} nights"
    return CheckCount(name, check_rows.VOLUME, off, max(n_rows, usual), [words] if off else [])


def last_alike(facts: RunRecord, nights: Sequence[PastNight]) -> PastNight | None:
    """Return the newest night whose config reads the log alike, whichever models it asks for."""
    asked = json.loads(facts.config)
    alike = (night for night in reversed(nights) if _is_alike(asked, night, check_rows.RECOMMENDATIONS))
    return next(alike, None)


def to_model_facts(
    facts: RunRecord, tonight: Sequence[Numbers], before: Sequence[Numbers], last: PastNight
) -> list[CheckCount]:
    """Count the models that had lists on the last night and have none, and the users that the others lost.

    A model that tonight's config does not name any more was taken out on purpose.

    Parameters
    ----------
    tonight, before : sequence of mapping
        Rows of ``metrics`` of everyone.
    last : PastNight
        The night that ``before`` is of.
    """
    asked = json.loads(facts.config)
    wanted = asked.get("models")
    then = {
        model: n
        for model, n in users_with_list(before, last.recorded_config).items()
        if n and (wanted is None or model in wanted)
    }
    if not then:
        return []
    now = users_with_list(tonight, asked)
    absent = sorted(model for model in then if not now.get(model))
    gone = CheckCount(check_rows.RECOMMENDATIONS, check_rows.ABSENT_MODELS, len(absent), len(then), absent[:MOST_SHOWN])
    return [gone, _fewer({model: (then[model], now[model]) for model in then if now.get(model)}, last.evaluation_date)]


def _fewer(users: Mapping[str, tuple[int, int]], last: date) -> CheckCount:
    """Name the model that lost most, by its share: another model must not hide it."""
    lost = {model: max(0, then - now) for model, (then, now) in users.items()}
    worst = max(users, key=lambda model: (lost[model] / users[model][0], model), default="")
    then, now = users.get(worst, (0, 0))
    words = f"{worst}: {now:,} users with a list, {then:,} on {last}"
    return CheckCount(
        check_rows.RECOMMENDATIONS, check_rows.FEWER_USERS, lost.get(worst, 0), then, [words] if lost.get(worst) else []
    )


def users_with_list(rows: Sequence[Numbers], config: Mapping[str, Any]) -> dict[str, int]:
    """Count the users with a list of each model, from the counts next to its means; no model without a mean.

    The population of a mean holds judged users without a list (``n_missing``) or not, as the policies say, and never
    those without a judgement (``n_extra_users``), but where it is everyone with a list.
    """
    policies = config.get("policies", {})
    population, missing = policies.get("population", "truth"), policies.get("missing", "zero")
    has_missing = population in {"truth", "judged"} and missing == "zero"
    return {
        row[C.MODEL_ID]: row["n_users"]
        + row["n_undefined"]
        + (0 if population == "run" else row["n_extra_users"])
        - (row["n_missing"] if has_missing else 0)
        for row in rows
        # NULL of a measure of all lists together and of groups of items, and in results of an older version
        if None not in (row["n_undefined"], row["n_missing"], row["n_extra_users"])
    }


def _is_alike(asked: Mapping[str, Any], night: PastNight, name: str, *, with_models: bool = False) -> bool:
    if name not in night.n_input_rows:
        return False
    then = night.completed_config
    is_narrowed_alike = not with_models or name != check_rows.RECOMMENDATIONS or _models(asked) == _models(then)
    return is_narrowed_alike and _reading(asked, name) == _reading(then, name)


def _models(config: Mapping[str, Any]) -> list[str] | None:
    named = config.get("models")
    return None if named is None else sorted(named)


def _reading(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Take from a config which rows of an input are read; keys without a value are left out."""
    section = config["inputs"].get(name) or {}
    return {key: value for key, value in section.items() if value and key not in _NOT_ROWS}
