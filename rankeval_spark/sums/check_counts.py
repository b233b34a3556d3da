"""Counts of the checks of lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsInt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import to_arrow, to_codes, to_numpy
from rankeval_spark.engine.attribution import to_micros
from rankeval_spark.engine.checks import first_and_last_key
from rankeval_spark.engine.scorer import count_empty_ranks
from rankeval_spark.measures.required_facts import PREDICTIONS
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import RECOMMENDATIONS, CheckCount
from rankeval_spark.result_rows.metric_rows import find_mean_weight_rows

if TYPE_CHECKING:
    from rankeval_spark.config.check_thresholds import CheckName
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.measures.arrays import BoolVector, IntVector


COUNTS: Final = pa.schema(
    {
        "check": pa.string(),
        C.MODEL_ID: pa.string(),  # where a check looks at each model; else ''
        "count": pa.int64(),
        "total": pa.int64(),
        "first": pa.string(),  # key concerned
        "last": pa.string(),
        "until": pa.int64(),  # end of the last window, in microseconds
        "newest": pa.int64(),  # newest event, in microseconds
    }.items()
)
"""A count of a check in some lists; counts of two parts add up, see :func:`sum_counts`."""

SUM_ROUNDING: Final = 0.01  # by which probabilities that were rounded may miss their sum
N_LISTED: Final = "_n_listed"  # usable rows of the list in the log, copies of items included
OF_MODEL: Final = "lists"  # check of the row of each model: judged users without a list, of all judged users
HAS_LIST: Final = "until"  # column that in such a row is 1 if the model has a list, else 0


def list_check_rows(part: Part) -> pa.Table:
    """Return a row per list with its counts, at the largest cutoff or of the whole list."""
    lists, measures = part.lists, part.outputs.measures
    place = measures.ks.index(measures.last_cutoff)
    n_recommended = to_numpy(lists[C.N_RECOMMENDED])
    has_ties = to_arrow(part.scored.counts[C.HAS_TIES][:, place], is_null=n_recommended == 0)
    n_judged = to_arrow(part.scored.counts[C.N_JUDGED][:, place])
    names = [C.MODEL_ID, C.USER_ID, C.N_RECOMMENDED, C.N_DUPLICATES, *C.FOR_CHECKS]
    columns = {name: lists[name] for name in names if name in lists}
    n_listed = to_arrow((n_recommended - count_empty_ranks(lists) + to_numpy(lists[C.N_DUPLICATES])).astype(np.int32))
    return pa.Table.from_pydict({**columns, C.N_JUDGED: n_judged, C.HAS_TIES: has_ties, N_LISTED: n_listed})


def count_lists(lists: pa.Table, request: Request) -> pa.Table:
    """Count what the checks look for in rows of :func:`list_check_rows`: rows of :data:`COUNTS`."""
    found, none = _ListCounter(lists, request), dict.fromkeys(COUNTS.names)
    rows = [{**none, C.MODEL_ID: "", **row} for row in (*found.count_list_checks(), *found.count_timing_checks())]
    return pa.Table.from_pylist(rows, COUNTS)


def sum_counts(rows: pa.Table) -> pa.Table:
    """Add up the counts of each check and model."""
    how = {"count": "sum", "total": "sum", "first": "min", "last": "max", "until": "max", "newest": "max"}
    found = rows.group_by(["check", C.MODEL_ID]).aggregate(list(how.items()))
    names = ["check", C.MODEL_ID, *how]
    return found.select([*names[:2], *(f"{name}_{op}" for name, op in how.items())]).rename_columns(names).cast(COUNTS)


def to_list_facts(
    rows: pa.Table, request: Request, metrics: pa.Table | None = None, comparisons: pa.Table | None = None
) -> list[CheckCount]:
    """Return the facts of the checks from counts of all lists, from means where measures weigh impressions.

    ``comparisons`` count the users of each model of an A/B test.
    """
    found, policies = sum_counts(rows).to_pylist(), request.policies
    by_check: dict[CheckName, Mapping[str, Any]] = {row["check"]: row for row in found if not row[C.MODEL_ID]}
    models = sorted((row for row in found if row["check"] == OF_MODEL), key=lambda row: row[C.MODEL_ID])
    of_times: list[CheckName] = [*check_rows.OF_TIMING, check_rows.OPEN_WINDOWS, check_rows.EVENTS_END]
    always: list[CheckName] = ["duplicates", "short_lists", "ties", "extra_users", *check_rows.OF_RANKS]
    names = [*always, check_rows.SEEN_IN_TRAIN, *of_times, check_rows.TARGET_SUMS]
    weighs = bool(request.measure_set.weighing)
    if not found:  # no list at all
        if policies.is_attributed:
            always += [name for name in of_times if name != check_rows.OPEN_WINDOWS or request.events_until is not None]
        always += [check_rows.TARGET_SUMS] if weighs else []
        by_check = dict.fromkeys(always, dict.fromkeys(COUNTS.names))
    facts = []
    for name in dict.fromkeys([*names, *by_check]):
        row = by_check.get(name)
        if row is None:
            continue
        if name == check_rows.EVENTS_END:
            facts.append(check_rows.measure_events_end([(row["until"], row["newest"], policies.window)]))
            continue
        keys = list(dict.fromkeys(key for key in (row["first"], row["last"]) if key is not None))
        facts.append(CheckCount(RECOMMENDATIONS, name, row["count"] or 0, row["total"] or 0, keys))
    baseline = None if request.comparisons is None else request.comparisons.baseline
    if baseline is not None:
        is_absent = baseline not in [row[C.MODEL_ID] for row in models if row[HAS_LIST]]
        sample = [baseline] if is_absent else []
        facts.append(CheckCount(RECOMMENDATIONS, check_rows.ABSENT_BASELINE, int(is_absent), 1, sample))
    split = (request.comparisons.split if request.comparisons else None) or {}
    # Each model of an A/B test misses the users of the others.
    counted = (row for row in models if row[C.MODEL_ID] not in split or not row[HAS_LIST])
    missing = ((row[C.MODEL_ID], row["count"], row["total"]) for row in counted)
    facts.append(check_rows.count_missing_users(missing))
    if split and comparisons is not None:
        of_arms = comparisons.filter(pc.field("test") == C.UNPAIRED)
        facts.append(check_rows.count_split(of_arms.to_pylist(), split))
    if not weighs:
        return facts
    weights = [] if metrics is None else find_mean_weight_rows(metrics)
    return [*facts, check_rows.count_mean_weights(weights), check_rows.count_lost_sample(weights)]


@dataclass(frozen=True)
class _ListCounter:
    """One row per list, empty ones of judged users too."""

    table: pa.Table
    request: Request

    def count_list_checks(self) -> Iterator[dict[str, Any]]:
        """Yield a row of :data:`COUNTS` for each check of lists, and one for each model."""
        n_judged, n_recommended, n_copies = map(self._read_integers, (C.N_JUDGED, C.N_RECOMMENDED, C.N_DUPLICATES))
        is_judged, has_list, n_rows = n_judged > 0, n_recommended > 0, self._read_integers(N_LISTED)
        has_ties = is_judged & to_numpy(self.table[C.HAS_TIES], null=0)
        n_lists, k = np.count_nonzero(has_list), self.request.measure_set.last_cutoff
        yield self._check_row(check_rows.DUPLICATES, n_copies > 0, n_rows.sum(), n_copies.sum())
        yield self._check_row("short_lists", has_list & (n_rows - n_copies < k), n_lists)
        yield self._check_row("ties", has_ties, np.count_nonzero(is_judged & has_list))
        yield self._check_row("extra_users", ~is_judged, n_lists)
        if C.SEEN in self.table.column_names and not self.request.policies.drops_seen:
            n_seen, n_items = (self._read_struct_field(C.SEEN, name) for name in ("n_seen", "n_items"))
            yield self._check_row(check_rows.SEEN_IN_TRAIN, n_seen > 0, n_items.sum(), n_seen.sum())
        for check, column in check_rows.OF_RANKS.items():  # of lists that were looked at: none without ranks in the log
            if column not in self.table.column_names:
                yield {"check": check, "count": 0, "total": 0}
                continue
            flags = self.table[column]
            yield self._check_row(check, to_numpy(flags, null=0).astype(np.bool_), len(flags) - flags.null_count)
        if C.SCORE_SUM in self.table.column_names:
            # Lists whose scores cannot be probabilities of showing an item in each of their impressions. Only where
            # rewards are predicted has a list to hold all that its policy shows, so that they add up to 1.
            total, is_target = to_numpy(self.table[C.SCORE_SUM]), is_judged & has_list
            is_wrong = total > n_judged * (1 + SUM_ROUNDING)
            if PREDICTIONS in self.request.measure_set.needs:
                is_wrong |= total < 1 - SUM_ROUNDING
            yield self._check_row(check_rows.TARGET_SUMS, is_target & is_wrong, np.count_nonzero(is_target))
        models = to_codes(self.table[C.MODEL_ID])
        flags = (is_judged & ~has_list, is_judged, has_list)
        of_models = np.stack([np.bincount(models.code[flag], minlength=models.n_values) for flag in flags], axis=1)
        for model, (n_missing, n_users, n_listed) in zip(models.values.to_pylist(), of_models.tolist(), strict=True):
            counts = {"count": n_missing, "total": n_users, HAS_LIST: int(n_listed > 0)}
            yield {"check": OF_MODEL, C.MODEL_ID: model, **counts}

    def count_timing_checks(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each check of times, where interactions are attributed by time."""
        if C.TIMING not in self.table.column_names:
            return
        for check, names in check_rows.OF_TIMING.items():
            n_found, n_of = (self._read_struct_field(C.TIMING, name) for name in names)
            yield self._check_row(check, n_found > 0, n_of.sum(), n_found.sum())
        ends, events = (pc.struct_field(self.table[C.TIMING], name) for name in ("until", "newest"))
        if self.request.events_until is not None:
            until = to_micros(self.request.events_until)
            is_open = to_numpy(ends, null=until) > until
            yield self._check_row(check_rows.OPEN_WINDOWS, is_open, len(ends) - ends.null_count)
        yield {"check": check_rows.EVENTS_END, "until": pc.max(ends).as_py(), "newest": pc.max(events).as_py()}

    def _check_row(
        self, check: CheckName, flag: BoolVector, total: SupportsInt, count: SupportsInt | None = None
    ) -> dict[str, Any]:
        """Count the lists with a flag, or what is given; with the keys of the first and last list with the flag."""
        first, last = first_and_last_key(self.table, (C.MODEL_ID, C.USER_ID), flag)
        n = int(np.count_nonzero(flag) if count is None else count)
        return {"check": check, "count": n, "total": int(total), "first": first, "last": last}

    def _read_struct_field(self, column: str, name: str) -> IntVector:
        return to_numpy(pc.struct_field(self.table[column], name), null=0).astype(np.int64)

    def _read_integers(self, name: str) -> IntVector:
        return to_numpy(self.table[name]).astype(np.int64)
