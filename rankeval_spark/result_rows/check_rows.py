"""Rows of ``checks``: counts of the inputs, each share compared with its thresholds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.check_thresholds import SampleRatio, Threshold
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import to_arrow, to_texts
from rankeval_spark.engine.attribution import micros_text
from rankeval_spark.engine.slices import nan_to_null
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.statistics.unpaired_tests import sample_ratio_p

if TYPE_CHECKING:
    from rankeval_spark.config import Checks
    from rankeval_spark.config.check_thresholds import CheckName

RECOMMENDATIONS: Final = "recommendations"
HELD_OUT: Final = "held_out"
SEGMENTS: Final = "segments"
TRAIN: Final = "train"
ITEMS: Final = "items"

# Names of checks, by what they count
ROWS: Final = "rows"  # only the rows of an input; it has no thresholds
EXTRA_COLUMNS: Final = "extra_columns"  # columns that an input has and nothing reads
DUPLICATES: Final = "duplicates"  # rows that repeat another
ZERO_RELEVANT: Final = "zero_relevant"  # judged users without a relevant item
SAMPLED_CANDIDATES: Final = "sampled_candidates"  # lists that do not rank the whole catalogue, as the config says
ALIKE_VALUES: Final = "alike_values"  # values of segments that are written in two ways
VECTOR_LENGTHS: Final = "vector_lengths"  # items whose vector has another length than most, where vectors are read
UNMATCHED_ITEMS: Final = "unmatched_items"  # judgements whose item is in no list
SEEN_IN_TRAIN: Final = "seen_in_train"  # recommended items that the user has in train; a join, so made on demand
UNKNOWN_ITEMS: Final = "unknown_items"  # recommended items that the catalogue does not have
UNKNOWN_ROWS: Final = "unknown_rows"  # recommendations of such items, where these are dropped
OPEN_WINDOWS: Final = "open_windows"  # lists whose window was open when the events were read; of a night
EVENTS_END: Final = "events_end"  # seconds between the newest event and the end of the last list's window
MISSING_USERS: Final = "missing_users"  # judged users without a list, of the model that misses most: its sample key
ABSENT_BASELINE: Final = "absent_baseline"  # the model that others are compared with, where it has no lists
SAMPLE_RATIO: Final = "sample_ratio"  # users that another model was meant to serve, by the split of an A/B test
TARGET_SUMS: Final = "target_sums"  # lists whose scores are no probabilities: they add up to too much, or too little
MEAN_WEIGHT: Final = "mean_weight"  # models whose mean weight of the impressions differs from 1
EFFECTIVE_SAMPLE: Final = "effective_sample"  # users that count for nothing, because others have large weights
ABSENT_USER_VALUES: Final = "absent_user_values"  # own values that measures read and no row has
DRIFT: Final = "drift"  # means outside of the band of the nights before; its input is what was measured
VOLUME: Final = "volume"  # rows of an input, against the nights before
ABSENT_MODELS: Final = "absent_models"  # models of the last night that have no lists
FEWER_USERS: Final = "fewer_users"  # users with a list that a model lost

OF_TIMING: Final[Mapping[CheckName, tuple[str, str]]] = {
    "before_list": ("n_before", "n_interactions"),
    "after_window": ("n_after", "n_interactions"),
    "consumed_before": ("n_consumed", "n_items"),
    "list_times": ("n_times", "n_lists"),
    "untimed_lists": ("n_untimed", "n_lists"),
    "untimed_interactions": ("n_untimed_interactions", "n_all_interactions"),
}
"""Checks of attribution by time, and the fields of :data:`columns.TIMING` that each counts, and of how many."""

OF_RANKS: Final[Mapping[CheckName, str]] = {"rank_gaps": C.HAS_RANK_GAPS, "score_rank_disagree": C.IS_OUT_OF_ORDER}
"""Checks of the ranks of the log, and the flag of a list that each counts."""

OF_NIGHTS: Final = (DRIFT, VOLUME, ABSENT_MODELS, FEWER_USERS)
"""Checks that depend on other published nights, not on the inputs and the config alone."""

NOT_REPEATED: Final = (*OF_NIGHTS, OPEN_WINDOWS)
"""Checks that another run of the same night need not have: they also depend on the time at which it runs."""

ADVICE: Final[Mapping[str, str]] = {
    row_kinds.HELD_OUT_IN_TRAIN: "where users consume items again, this is legitimate, and "
    "checks.held_out_in_train: {} silences it; otherwise set policies.seen_in_train: drop_both, which leaves such "
    "pairs out of lists and judgements",
    TARGET_SUMS: "give as score the probability with which the target policy shows the item",
    MEAN_WEIGHT: "give the propensities of the policy that made the log, and the probabilities of the target policy as "
    "scores",
    SAMPLE_RATIO: "find out why before you read a verdict: users are lost, or sent to another model, after the draw",
    ABSENT_USER_VALUES: "name the value as the column name of user_values has it, or wait until its rows are there",
    EFFECTIVE_SAMPLE: "estimate policies that are nearer to the one that made the log, or use a longer log",
}
"""Fix for a check whose fault the rows alone do not show, by check."""

OF_WEIGHTS: Final[Mapping[str, str]] = {
    TARGET_SUMS: "scores of a list that add up to at most 1 for each impression, and to 1 where rewards are predicted",
    MEAN_WEIGHT: "a mean weight of 1, within its interval",
    EFFECTIVE_SAMPLE: "an effective sample that is not far below the number of users",
}
"""Checks of estimates from impressions, and what they expect."""

_SECOND: Final = 1_000_000  # microseconds of a second

# Errors whatever the thresholds are: either of two rows would be a guess, and there is no angle between such vectors
_NONE_TOLERATED: Final = ((ITEMS, DUPLICATES), (ITEMS, VECTOR_LENGTHS))

_MOST_SHOWN: Final = 3  # values that are alike, and lengths of vectors, that a check names

_BLANKS: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters that Unicode calls white space; ``str.strip`` alone takes four separators of data for blanks too."""

_NAMES: Final = arrow_schema(schemas.CHECKS).names


@dataclass(frozen=True)
class CheckCount:
    """Number of rows of an input that a check finds; ``input`` and ``check`` as in ``schemas.CHECKS``."""

    input: str
    check: str  # a :data:`CheckName`, or that of a band
    count: int
    total: int  # rows, users or lists that were looked at
    sample_keys: Sequence[str] = ()  # a few of the keys concerned

    @property
    def share(self) -> float | None:
        """Number that thresholds are compared with; None without a total."""
        return self.count / self.total if self.total > 0 else None


@dataclass(frozen=True)
class Distance(CheckCount):
    """Number of cases that are far from what is expected, and how far the farthest of them is, as a share."""

    farthest: float | None = None

    @property
    def share(self) -> float | None:
        """The greatest distance."""
        return self.farthest


@dataclass(frozen=True)
class SplitCount(CheckCount):
    """Number of users whom another model was meant to serve; no fault where chance explains it."""

    p: float = 1.0  # of the split, if it is as planned


def count_split(rows: Sequence[Mapping[str, Any]], split: Mapping[str, float]) -> SplitCount:
    """Compare the users of each model of an A/B test with its share, of all users and in each slice.

    ``rows`` are those of the test ``unpaired`` in ``comparisons``. The count is that of all users unless, by the
    default ``alpha``, these are split as planned, and a slice has a smaller p, times the number of slices.
    """
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        counts = found.setdefault((row[C.SLICE], row[C.SLICE_VALUE]), {})
        counts |= {row[C.BASELINE_MODEL_ID]: row["n_with_baseline"], row[C.MODEL_ID]: row["n_with_model"]}
    cases = []
    for (name, value), counts in found.items():
        users, of_slice = [counts.get(model, 0) for model in split], name != C.ALL_USERS
        p = sample_ratio_p(users, [*split.values()])
        p = min(1.0, p * (len(found) - 1)) if of_slice else p
        n_off = sum(max(0.0, n - share * sum(users)) for n, share in zip(users, split.values(), strict=True))
        of_models = ", ".join(f"{model} {n:,} ({split[model]:.4g})" for model, n in zip(split, users, strict=True))
        where = f"{name} = {value}: " if of_slice else ""
        fact = SplitCount(RECOMMENDATIONS, SAMPLE_RATIO, round(n_off), sum(users), (), p)
        is_first = not of_slice and p < SampleRatio().alpha
        cases.append((not is_first, p, fact, f"{where}{of_models}, p = {p:.2g}"))
    if not cases:
        return SplitCount(RECOMMENDATIONS, SAMPLE_RATIO, 0, 0)
    cases.sort(key=lambda case: case[:2])
    worst = cases[0][2]
    return replace(worst, sample_keys=[text for *_, text in cases[:_MOST_SHOWN]] if worst.count else [])


def count_alike_values(parts: Iterable[tuple[str, str]]) -> CheckCount:
    """Count the distinct values of segments that differ from another one by case or blanks only."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, value in parts:
        alike.setdefault((name, value.strip(_BLANKS).lower()), []).append(value)
    texts, count = [], 0
    for (name, _), values in alike.items():
        if len(values) > 1:
            count += len(values)
            texts.append(f"{name}: " + ", ".join(f"'{value}'" for value in sorted(values)[:_MOST_SHOWN]))
    shown = list(dict.fromkeys((min(texts), max(texts)))) if texts else []
    return CheckCount(SEGMENTS, ALIKE_VALUES, count, sum(map(len, alike.values())), shown)


def count_vector_lengths(parts: Iterable[tuple[int, int, str]]) -> CheckCount:
    """Count the vectors whose length is not the commonest; a part is a length, its number of items and first item."""
    commonest = sorted(parts, key=lambda part: (-part[1], part[0]))
    n_vectors = [n for _, n, _ in commonest]
    shown = [f"{item}: {length} {'number' if length == 1 else 'numbers'}" for length, _, item in commonest]
    n_others = sum(n_vectors[1:])
    return CheckCount(ITEMS, VECTOR_LENGTHS, n_others, sum(n_vectors), shown[:_MOST_SHOWN] if n_others else [])


def count_missing_users(parts: Iterable[tuple[str, int, int]]) -> CheckCount:
    """Count the judged users without a list for the model that misses most: another model must not hide it.

    A part is a model, its judged users without a list, and its judged users.
    """
    # The name too, so that of two models that miss as many it is always the same.
    worst = max(parts, key=lambda part: (part[1] / part[2] if part[2] else -1.0, part[0]), default=("", 0, 0))
    model, n_missing, n_judged = worst
    return CheckCount(RECOMMENDATIONS, MISSING_USERS, n_missing, n_judged, [model] if n_missing else [])


def measure_events_end(parts: Iterable[tuple[int | None, int | None, int]]) -> CheckCount:
    """Count the seconds of the last list's window that lie after the newest interaction.

    A part is the end of a model's last window, the newest interaction, and the length of a window, in microseconds.
    """
    ends, newest, lengths = ([*column] for column in zip(*parts, strict=True)) if (parts := [*parts]) else ([], [], [])
    last = max((end for end in ends if end is not None), default=None)
    if last is None:
        return CheckCount(RECOMMENDATIONS, EVENTS_END, 0, 0)
    event = max((moment for moment in newest if moment is not None), default=last - lengths[0])
    window = lengths[0] // _SECOND
    missed = min(-(min(0, event - last) // _SECOND), window)  # a part of a second counts as one
    words = f"the last window ends {micros_text(last)}, the newest event is of {micros_text(event)}"
    return CheckCount(RECOMMENDATIONS, EVENTS_END, missed, window, [words] if missed else [])


def count_mean_weights(rows: Sequence[Mapping[str, Any]]) -> Distance:
    """Count the models whose mean weight of the impressions is not 1; the share is the distance of the farthest.

    A row is the mean weight of a model, as ``metrics`` has it. Its distance is that of the nearest end of its interval,
    1 - smaller / larger: 0 where the interval contains 1. Without an interval it is 0 too, unless many weights are all
    the same.

    >>> row = {"model_id": "dice", "value": 0.5, "ci_low": 0.4, "ci_high": 0.625, "n_users": 90, "std_error": 0.05}
    >>> count_mean_weights([{**row, "ci_level": 0.95}]).share
    0.375
    """
    found = []
    for row in (row for row in rows if row[C.VALUE] is not None):
        low, high = ends = row["ci_low"], row["ci_high"]
        text = f"{row[C.MODEL_ID]}: the mean weight is {row[C.VALUE]:.4g}"
        text += "" if low is None else f" ({low:.4g} to {high:.4g})"
        if None in ends:
            are_equal = row["std_error"] == 0 and 2.0 ** (1 - row["n_users"]) <= 1 - row["ci_level"]
            low = high = row[C.VALUE] if are_equal else 1
        nearest = min(max(1.0, low), high)
        found.append((1 - min(nearest, 1.0) / max(nearest, 1.0), row[C.MODEL_ID], text))
    far = sorted(found, key=lambda case: (-case[0], case[1]))
    n_far, texts = sum(distance > 0 for distance, *_ in far), [text for *_, text in far[:_MOST_SHOWN]]
    return Distance(RECOMMENDATIONS, MEAN_WEIGHT, n_far, len(far), texts, far[0][0] if far else None)


def count_lost_sample(rows: Sequence[Mapping[str, Any]]) -> CheckCount:
    """Count the users that the effective sample of a model lacks, for the model that lacks most of them."""
    known = [row for row in rows if row["n_users"]]
    if not known:
        return CheckCount(RECOMMENDATIONS, EFFECTIVE_SAMPLE, 0, 0)
    worst = min(known, key=lambda row: (row["n_effective"] / row["n_users"], row[C.MODEL_ID]))
    n_users, n_effective = worst["n_users"], round(worst["n_effective"])
    words = f"{worst[C.MODEL_ID]}: {n_users:,} users say as much as {n_effective:,} of the target policy itself"
    return CheckCount(RECOMMENDATIONS, EFFECTIVE_SAMPLE, n_users - n_effective, n_users, [words])


class CheckVerdict(NamedTuple):
    """A fact compared with the thresholds of its check; columns of ``schemas.CHECKS``."""

    severity: str
    share: float | None
    threshold: float | None
    verdict: str


def to_check_rows(
    facts: Sequence[CheckCount], checks: Checks, *, expected: Collection[tuple[str, str]] = ()
) -> pa.Table:
    """Build the columns of ``schemas.CHECKS`` from ``input``, a row for each fact, in their order.

    ``expected``: inputs and checks whose findings are no faults, so that they are only counted.

    >>> from rankeval_spark.config import Checks
    >>> to_check_rows([CheckCount("held_out", "null_keys", 1, 4, ["NULL a"])], Checks()).to_pylist()[0]["verdict"]
    'warn'
    """
    verdicts = [judge_fact(fact, None if (fact.input, fact.check) in expected else checks) for fact in facts]
    ends = np.cumsum([0, *(len(fact.sample_keys) for fact in facts)], dtype=np.int32)
    keys = to_texts(key for fact in facts for key in fact.sample_keys)
    columns = {
        "input": to_texts(fact.input for fact in facts),
        "check": to_texts(fact.check for fact in facts),
        "severity": to_texts(verdict.severity for verdict in verdicts),
        "count": to_arrow(np.array([fact.count for fact in facts], dtype=np.int64)),
        "share": nan_to_null(np.array([verdict.share for verdict in verdicts], dtype=np.float64)),
        "threshold": nan_to_null(np.array([verdict.threshold for verdict in verdicts], dtype=np.float64)),
        "verdict": to_texts(verdict.verdict for verdict in verdicts),
        "sample_keys": pa.ListArray.from_arrays(to_arrow(ends), keys),
    }
    return pa.Table.from_pydict({name: columns[name] for name in _NAMES})


def judge_fact(fact: CheckCount, checks: Checks | None) -> CheckVerdict:
    """Compare the share of a fact with its thresholds, if any; without a total there is no share, and no fault."""
    limits = Threshold() if checks is None else checks.threshold(fact.check)
    warn, error = limits.warn, limits.error
    if (fact.input, fact.check) in _NONE_TOLERATED:
        error = 0.0
    share = fact.share
    severity = "error" if error is not None else "warn" if warn is not None else "info"
    verdict = "ok"
    if share is not None:
        by_name = {"error": error, "warn": warn}
        if isinstance(fact, SplitCount) and isinstance(limits, SampleRatio) and fact.p >= limits.alpha:
            by_name = {}
        verdict = next((name for name, limit in by_name.items() if limit is not None and share > limit), "ok")
    threshold = error if verdict == "error" or warn is None else warn
    return CheckVerdict(severity, None if fact.check == ROWS else share, threshold, verdict)
