"""A profile of the log and the judgements: histograms and bounds, from which ``advise`` concludes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import parent_indices, to_numpy
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.measures.arrays import is_run_start
from rankeval_spark.sums.sums import Sum

if TYPE_CHECKING:
    from rankeval_spark.engine.batch import Batch, CodedRows
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.engine.ranked_lists import RankedLists
    from rankeval_spark.measures.arrays import FloatVector, IntVector

MAX_LENGTH: Final = 1000  # of a list, and relevant items of a user: longer ones are counted as so long
MAX_GAIN: Final = 50  # up to which gains that are whole or half numbers are told apart

LENGTHS: Final = "lengths"  # lists by model and number of items, without the empty ones
RELEVANT_ITEMS: Final = "relevant_items"  # judged users by the number of their relevant items
GAINS: Final = "gains"  # judgements by gain; value NULL: gains of other numbers
GAIN_BOUNDS: Final = "gain_bounds"
MODELS: Final = "models"  # users with a list by the number of models that have one
SCORES: Final = "scores"  # bounds of the scores
N_ITEMS: Final = "n_items"  # most distinct items in the lists of some users together
SHOWN: Final = "shown"  # bounds of the times of lists, judgements and training data, and how many there are
HAPPENED: Final = "happened"
TRAINED: Final = "trained"
BEFORE_LIST: Final = "before_list"  # judgements at or before the first list of their user; NULL: later ones
TRAINED_LATE: Final = "trained_late"  # training rows at or after the first list, or else the first judgement

SCHEMA: Final = pa.schema(
    {
        **{"fact": pa.string(), C.MODEL_ID: pa.string(), "value": pa.float64(), "n": pa.int64()},
        **{"least": pa.float64(), "most": pa.float64()},  # of the numbers that are counted; times in microseconds
    }.items()
)
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Profile(Sum):
    """Counts of the rows of users, by fact and value: rows of :data:`SCHEMA`, whatever the number of users."""

    edge: float | None = None  # gain from which a judgement counts as 1, and below it as 0; None: gains are as they are
    schema = SCHEMA

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        if part.ranked is None:
            return
        rows, batch = [*self._list_rows(part, part.ranked)], part.ranked.batch
        if part.start == 0:  # the parts of a batch share its rows
            rows += [*self._gain_rows(batch), *_log_rows(batch), *_time_rows(batch)]
        yield pa.RecordBatch.from_pylist([{C.MODEL_ID: "", **row} for row in rows], SCHEMA)

    def _list_rows(self, part: Part, ranked: RankedLists) -> Iterator[dict[str, Any]]:
        """Count lists by length, and users by the number of their relevant items."""
        keys, n_lists = ranked.keys, len(part.members.is_evaluated)
        user, model = (codes[part.start : part.start + n_lists] for codes in (keys.user, keys.model))
        length = np.minimum(to_numpy(part.lists[C.N_RECOMMENDED]), MAX_LENGTH).astype(np.float64)
        for place, name in enumerate(ranked.batch.models):
            yield from _count(LENGTHS, length[(model == place) & (length > 0)], name)
        judged = part.lists[C.JUDGED_GAINS]
        is_relevant = to_numpy(judged.flatten()) >= (RELEVANT if self.edge is None else self.edge)
        n_relevant = np.bincount(parent_indices(judged)[is_relevant], minlength=n_lists)
        is_first = is_run_start(user) & (part.scored.counts[C.N_JUDGED][:, 0] > 0)
        yield from _count(RELEVANT_ITEMS, np.minimum(n_relevant[is_first], MAX_LENGTH).astype(np.float64))

    def _gain_rows(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Count judgements by gain."""
        gain = to_numpy(batch.held_out.columns[C.GAIN])
        gain = gain if self.edge is None else (gain >= self.edge).astype(np.float64)
        is_told = (np.abs(gain) <= MAX_GAIN) & (np.mod(2 * gain, 1) == 0)
        yield from _count(GAINS, np.where(is_told, gain, np.nan))
        yield from _bound(GAIN_BOUNDS, gain)

    def finish(self, rows: pa.Table) -> pa.Table:
        how = [("n", "sum"), ("least", "min"), ("most", "max")]
        found = rows.group_by(["fact", C.MODEL_ID, "value"], use_threads=False).aggregate(how)
        return found.select(["fact", C.MODEL_ID, "value", "n_sum", "least_min", "most_max"]).rename_columns(
            SCHEMA.names
        )


def _count(fact: str, values: np.ndarray, model: str = "") -> Iterator[dict[str, Any]]:
    """Count the values of a fact; NaN counts as NULL."""
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    rows = [*zip(found.tolist(), counts.tolist(), strict=True)]
    n_others = int(np.count_nonzero(np.isnan(values)))
    rows += [(None, n_others)] if n_others else []
    yield from ({"fact": fact, C.MODEL_ID: model, "value": value, "n": n} for value, n in rows)


def _bound(fact: str, values: np.ndarray) -> Iterator[dict[str, Any]]:
    """Count the values of a fact, with the least and the greatest; none without a value."""
    if len(values):
        yield {"fact": fact, "n": len(values), "least": float(values.min()), "most": float(values.max())}


def _log_rows(batch: Batch) -> Iterator[dict[str, Any]]:
    """Count users by the number of their models; bounds of scores, and the distinct items."""
    n_models = max(len(batch.models), 1)
    user = np.unique(batch.log.user * n_models + batch.model) // n_models
    yield from _count(MODELS, np.bincount(user, minlength=batch.n_users)[np.unique(user)].astype(np.float64))
    if C.SCORE in batch.log.columns:
        score = to_numpy(batch.log.columns[C.SCORE].cast(pa.float64(), safe=False), null=np.nan)
        yield from _bound(SCORES, score[np.isfinite(score)])
    yield {"fact": N_ITEMS, "n": 1, "most": float(np.count_nonzero(np.bincount(batch.log.item)))}


def _time_rows(batch: Batch) -> Iterator[dict[str, Any]]:
    """Bounds of all times; judgements and training rows by whether they come before the lists of their user."""
    inputs: Mapping[str, tuple[CodedRows, str]] = {
        SHOWN: (batch.log, C.RECOMMENDED_AT),
        HAPPENED: (batch.held_out, C.INTERACTED_AT),
        TRAINED: (batch.train, C.INTERACTED_AT),
    }
    times = {fact: _read_times(*given) for fact, given in inputs.items()}
    for fact, (_, time) in times.items():
        yield from _bound(fact, time)
    first = {fact: _first_time(*times[fact], batch.n_users) for fact in (SHOWN, HAPPENED)}
    user, time = times[HAPPENED]
    shown = first[SHOWN][user]
    yield from _count(BEFORE_LIST, np.where(time <= shown, 1.0, np.nan)[shown != _NEVER])
    user, time = times[TRAINED]
    begin = np.where(first[SHOWN] != _NEVER, first[SHOWN], first[HAPPENED])[user]
    yield from _count(TRAINED_LATE, np.where(time >= begin, 1.0, np.nan)[begin != _NEVER])


def _read_times(rows: CodedRows, column: str) -> tuple[IntVector, IntVector]:
    """Return users and times, in microseconds, of the rows that have one."""
    times = rows.columns.get(column)
    if times is None or not len(rows):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    zone = times.type.tz if pa.types.is_timestamp(times.type) else None
    is_known = to_numpy(times.is_valid())
    return rows.user[is_known], to_numpy(times.drop_null().cast(pa.timestamp("us", zone)).cast(pa.int64()))


def _first_time(user: IntVector, time: IntVector, n_users: int) -> IntVector:
    """Return the first time of each user; :data:`_NEVER` without one."""
    first = np.full(n_users, _NEVER)
    np.minimum.at(first, user, time)
    return first


def histogram(rows: pa.Table, fact: str, model: str | None = None) -> dict[float | None, int]:
    """Return the counts of a fact by value, of one model or of all."""
    found = dict[float | None, int]()
    for row in rows.to_pylist():
        if row["fact"] == fact and (model is None or row[C.MODEL_ID] == model):
            found[row["value"]] = found.get(row["value"], 0) + row["n"]
    return found


def quantile(counts: Mapping[float | None, int], level: float) -> float:
    """Return the least value that at least a share ``level`` of what is counted does not exceed; NaN without any.

    >>> quantile({1.0: 3, 5.0: 1}, 0.5), quantile({1.0: 3, 5.0: 1}, 0.9)
    (1.0, 5.0)
    """
    values: FloatVector = np.array(sorted(value for value in counts if value is not None))
    if not len(values):
        return float("nan")
    below = np.cumsum([counts[value] for value in values.tolist()])
    return float(values[np.searchsorted(below, level * below[-1])])
