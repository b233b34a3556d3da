"""From what was counted in the inputs to rows of ``checks``: each share is compared with its thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import to_arrow, to_texts

if TYPE_CHECKING:
    from rankeval_spark.config import Checks

RECOMMENDATIONS: Final = "recommendations"
HELD_OUT: Final = "held_out"
SEGMENTS: Final = "segments"
TRAIN: Final = "train"
ITEMS: Final = "items"

ROWS: Final = "rows"
"""The check that only counts the rows of an input."""

DUPLICATES: Final = "duplicates"
VECTOR_LENGTHS: Final = "vector_lengths"
UNMATCHED_ITEMS: Final = "unmatched_items"
SEEN_IN_TRAIN: Final = "seen_in_train"
UNKNOWN_ROWS: Final = "unknown_rows"
MISSING_USERS: Final = "missing_users"
"""Judged users without a list, of the model that misses most; its one sample key is that model."""

ABSENT_BASELINE: Final = "absent_baseline"

EXTRA_COLUMNS: Final = "extra_columns"
"""Columns that an input has and nothing reads."""

ZERO_RANKS: Final = "zero_ranks"
UNUSABLE: Final = ("null_keys", ZERO_RANKS, "invalid_scores", "null_gains")
"""Checks of rows that are left out of the evaluation; a row fails one of them at most."""

REFUSALS: Final = (*UNUSABLE, "null_values", "invalid_facts")
"""Checks of rows that are kept for whoever fixes the input: they cannot be used, or not all that they say."""

DRIFT: Final = "drift"
"""The check that means stay in the band of the nights before; its input is what was measured."""

VOLUME: Final = "volume"
"""The check that an input has as many rows as on the nights before."""

ABSENT_MODELS: Final = "absent_models"
"""The check that every model of the last night has lists again."""

FEWER_USERS: Final = "fewer_users"
"""The check that no model lost many of its users with a list."""

OF_NIGHTS: Final = (DRIFT, VOLUME, ABSENT_MODELS, FEWER_USERS)
"""Checks that depend on other published nights, not on the inputs and the config alone."""

_NONE_TOLERATED: Final = ((ITEMS, DUPLICATES), (ITEMS, VECTOR_LENGTHS))
"""Faults of the catalogue that are errors whatever the thresholds are."""

_NAMES: Final = tuple(name for name in schemas.CHECKS.field_names() if name not in C.RUN_KEY)


@dataclass(frozen=True)
class Fact:
    """What was counted of an input.

    Attributes
    ----------
    input, check : str
        As in ``schemas.CHECKS``.
    count, total : int
        How often it happened, and the rows (or users, or lists) that were looked at.
    sample_keys : sequence of str
        A few of the keys concerned.
    """

    input: str
    check: str
    count: int
    total: int
    sample_keys: Sequence[str] = ()


FACTS: Final = tuple(field.name for field in fields(Fact))
"""Columns of a fact."""


class Verdict(NamedTuple):
    """How a fact compares with the thresholds of its check; columns of ``schemas.CHECKS``."""

    severity: str
    share: float | None
    threshold: float | None
    verdict: str


def to_rows(facts: Sequence[Fact], checks: Checks) -> pa.Table:
    """Make rows of ``schemas.CHECKS`` from ``input`` on, in the order of the facts.

    Examples
    --------
    >>> from rankeval_spark.config import Checks
    >>> to_rows([Fact("held_out", "null_keys", 1, 4, ["NULL a"])], Checks()).to_pylist()[0]["verdict"]
    'warn'
    """
    verdicts = [verdict_of(fact, checks) for fact in facts]
    ends = np.cumsum([0, *(len(fact.sample_keys) for fact in facts)], dtype=np.int32)
    keys = to_texts(key for fact in facts for key in fact.sample_keys)
    columns = {
        "input": to_texts(fact.input for fact in facts),
        "check": to_texts(fact.check for fact in facts),
        "severity": to_texts(one.severity for one in verdicts),
        "count": to_arrow(np.array([fact.count for fact in facts], dtype=np.int64)),
        "share": _doubles(one.share for one in verdicts),
        "threshold": _doubles(one.threshold for one in verdicts),
        "verdict": to_texts(one.verdict for one in verdicts),
        "sample_keys": pa.ListArray.from_arrays(to_arrow(ends), keys),
    }
    return pa.Table.from_pydict({name: columns[name] for name in _NAMES})


def verdict_of(fact: Fact, checks: Checks) -> Verdict:
    """Compare the share of a fact with its thresholds; without a total there is no share, and nothing is wrong."""
    warn, error = _limits(fact, checks)
    share = fact.count / fact.total if fact.total > 0 else None
    severity = "error" if error is not None else "warn" if warn is not None else "info"
    verdict = "error" if _is_above(share, error) else "warn" if _is_above(share, warn) else "ok"
    threshold = error if verdict == "error" or warn is None else warn
    return Verdict(severity, None if fact.check == ROWS else share, threshold, verdict)


def _limits(fact: Fact, checks: Checks) -> tuple[float | None, float | None]:
    if fact.check not in type(checks).model_fields:
        warn = error = None
    else:
        warn, error = (getattr(checks.threshold(fact.check), name) for name in ("warn", "error"))
    return warn, 0.0 if (fact.input, fact.check) in _NONE_TOLERATED else error


def _is_above(share: float | None, limit: float | None) -> bool:
    return share is not None and limit is not None and share > limit


def _doubles(numbers: Iterable[float | None]) -> pa.Array:
    cells = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
    return to_arrow(cells, is_null=np.isnan(cells))
