"""What the checks count in scored lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, SupportsInt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import to_codes
from rankeval_spark.engine.outputs import N_LISTED
from rankeval_spark.engine.ranking.attribution import micros_of
from rankeval_spark.in_process.checks import sample_keys
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import RECOMMENDATIONS, CheckCount

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures.arrays import BoolVector, IntVector

_COUNTS: Final = (C.N_JUDGED, C.N_RECOMMENDED, C.N_DUPLICATES, N_LISTED, C.HAS_TIES)


def list_facts(rows: pa.Table, request: Request) -> Iterator[CheckCount]:
    """Count repeated items, short lists, ties that matter, ranks that cannot be, and users on one side only.

    With a baseline also whether it has no list at all, and with the column :data:`columns.SEEN` the recommended items
    that their users have in the training data; not where these were dropped, which the rows of the log show.

    Parameters
    ----------
    rows : pa.Table
        Of every list, outside the population too, as of :func:`counted_rows`.
    """
    lists = _Lists(rows)
    yield from lists.of_rows(request.measures.last_cutoff)
    yield from (lists.of_ranks(check, column) for check, column in check_rows.OF_RANKS.items())
    if C.SEEN in rows.column_names and request.policies.seen_in_train != "drop":
        yield lists.of_seen()
    if C.TIMING in rows.column_names:
        yield from (lists.of_timing(check, *names) for check, names in check_rows.OF_TIMING.items())
        if request.events_until is not None:
            yield lists.of_open_windows(micros_of(request.events_until))
        yield lists.of_events_end(request.policies.window)
    if request.comparisons is not None and request.comparisons.baseline is not None:
        yield lists.of_baseline(request.comparisons.baseline)
    yield lists.of_missing_users()


def counted_rows(scored: pa.Table, request: Request) -> pa.Table:
    """Take what is counted of scored rows: some columns of those at the largest cutoff, or of whole lists."""
    k = request.measures.last_cutoff
    names = (C.MODEL_ID, C.USER_ID, *_COUNTS, *C.FOR_CHECKS)
    is_at = to_numpy(scored[C.K]) == k
    lists = scored.select([name for name in names if name in scored.column_names])
    return lists if is_at.all() else lists.filter(to_arrow(is_at))


@dataclass(frozen=True)
class _Lists:
    """One row per list, empty ones of judged users too."""

    table: pa.Table

    def of_rows(self, k: int) -> Iterator[CheckCount]:
        is_judged, has_list = self._is_judged, self._has_list
        n_listed, n_copies = self._numbers(N_LISTED), self._numbers(C.N_DUPLICATES)
        has_ties = is_judged & to_numpy(self.table[C.HAS_TIES], null=0)
        n_lists = int(np.count_nonzero(has_list))
        yield self._fact(check_rows.DUPLICATES, n_copies.sum(), n_listed.sum(), n_copies > 0)
        yield self._flagged("short_lists", n_lists, has_list & (n_listed - n_copies < k))
        yield self._flagged("ties", int(np.count_nonzero(is_judged & has_list)), has_ties)
        yield self._flagged("extra_users", n_lists, ~is_judged)

    def of_ranks(self, check: str, column: str) -> CheckCount:
        """Count the lists with a flag among those that were looked at: none where the log has no ranks."""
        if column not in self.table.column_names:
            return CheckCount(RECOMMENDATIONS, check, 0, 0)
        flags = self.table[column]
        return self._flagged(check, len(flags) - flags.null_count, to_numpy(flags, null=0))

    def of_seen(self) -> CheckCount:
        n_seen, n_items = (self._field(C.SEEN, name) for name in ("n_seen", "n_items"))
        return self._fact(check_rows.SEEN_IN_TRAIN, n_seen.sum(), n_items.sum(), n_seen > 0)

    def of_timing(self, check: str, count: str, total: str) -> CheckCount:
        n_found, n_of = (self._field(C.TIMING, name) for name in (count, total))
        return self._fact(check, n_found.sum(), n_of.sum(), n_found > 0)

    def of_open_windows(self, until: int) -> CheckCount:
        """Count the lists whose window ends after a moment."""
        ends = pc.struct_field(self.table[C.TIMING], "until")
        return self._flagged(check_rows.OPEN_WINDOWS, len(ends) - ends.null_count, to_numpy(ends, null=until) > until)

    def of_events_end(self, window: int) -> CheckCount:
        last, newest = (pc.max(pc.struct_field(self.table[C.TIMING], name)).as_py() for name in ("until", "newest"))
        return check_rows.events_end([(last, newest, window)])

    def _field(self, column: str, name: str) -> IntVector:
        return to_numpy(pc.struct_field(self.table[column], name), null=0).astype(np.int64)

    def of_baseline(self, baseline: str) -> CheckCount:
        """Count the baseline if it has no list: a model that is misspelt looks like one that is not there yet."""
        models = to_codes(self.table[C.MODEL_ID])
        listed = pc.take(models.values, to_arrow(np.unique(models.code[self._has_list])))
        is_absent = baseline not in listed.to_pylist()
        return CheckCount(
            RECOMMENDATIONS, check_rows.ABSENT_BASELINE, int(is_absent), 1, [baseline] if is_absent else []
        )

    def of_missing_users(self) -> CheckCount:
        """Count the judged users of each model, and those of them without a list."""
        models, is_judged = to_codes(self.table[C.MODEL_ID]), self._is_judged
        n_judged, n_missing = (
            np.bincount(models.code[one], minlength=models.n_values) for one in (is_judged, is_judged & ~self._has_list)
        )
        found = zip(models.values.to_pylist(), n_missing.tolist(), n_judged.tolist(), strict=True)
        return check_rows.missing_users(found)

    def _flagged(self, check: str, total: int, flag: BoolVector) -> CheckCount:
        return self._fact(check, np.count_nonzero(flag), total, flag)

    def _fact(self, check: str, count: SupportsInt, total: SupportsInt, flag: BoolVector) -> CheckCount:
        samples = sample_keys.sample_row_keys(self.table, (C.MODEL_ID, C.USER_ID), flag)
        return CheckCount(RECOMMENDATIONS, check, int(count), int(total), samples)

    @property
    def _is_judged(self) -> BoolVector:
        return self._numbers(C.N_JUDGED) > 0

    @property
    def _has_list(self) -> BoolVector:
        return self._numbers(C.N_RECOMMENDED) > 0

    def _numbers(self, name: str) -> IntVector:
        return to_numpy(self.table[name]).astype(np.int64)
