"""Rows of ``metrics`` for measures over all lists together, with a jackknife over groups of users.

A value is computed with everyone and without each of ``N_GROUPS`` groups of users in turn, from which the jackknife
takes its spread. For measures of exposure it overstates the variance: a statistic of independent users is a sum of
effects of one user, of pairs of users, and so on, and the jackknife counts the variance of the pairs twice (Efron &
Stein 1981, The jackknife estimate of variance). Where many items are in one or two lists, pairs matter: an item that
two lists hold is lost only if both are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregates import GROUP, KEY_FIELDS, index_keys, key_columns
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.buckets import GROUP as GROUP_OF_USERS, N_GROUPS, hash_users
from rankeval_spark.engine.parity_sums import SUMS, is_disparity
from rankeval_spark.engine.slices import nan_to_null
from rankeval_spark.measures import Rates
from rankeval_spark.measures.required_facts import BY_POPULARITY
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.result_rows.histograms import COUNTS, EVERYONE, Entries, to_exposures
from rankeval_spark.result_rows.metric_rows import metric_batch
from rankeval_spark.statistics import intervals

if TYPE_CHECKING:
    from rankeval_spark.config.slicing import ReportedSlices
    from rankeval_spark.engine.slices import Key
    from rankeval_spark.measures import Exposure, Measure
    from rankeval_spark.measures.arrays import FloatVector, IntVector


SLICE: Final = (C.MODEL_ID, "slice_index", C.SLICE_VALUES)  # key of a slice of a model

LEAST_ERROR: Final = 1e-12  # error, relative to its value, up to which it is rounding

MIN_SINGLES: Final = 20  # items in one list below which a coverage has no error: they say how many chance adds

LEAST_FIRST: Final = 1e-9  # V1 as a share of `sum x f(x)^2` up to which it is rounding: all items weigh the same
MIN_SHARE: Final = 0.4  # share of single lists below which a coverage has no error: the series below does not settle
SlicesOfUsers: TypeAlias = Iterable[tuple[int, tuple[str | None, ...]]]  # index and values of each slice

ALL_USERS: Final[SlicesOfUsers] = ((0, ()),)


def find_slices(rows: pa.Table) -> SlicesOfUsers:
    """List the slices that occur in rows with ``slice_index`` and ``slice_values``."""
    first, _ = index_keys(rows, SLICE[1:])
    found = pc.take(rows.select(SLICE[1:]), to_arrow(first)).to_pydict()
    return list(zip(found["slice_index"], map(tuple, found[C.SLICE_VALUES]), strict=True))


def to_metric_batch(
    reported: ReportedSlices,
    measure: Measure,
    keys: pa.RecordBatch,  # columns `model_id`, `slice_index` and `slice_values`, a row a slice
    values: np.ndarray,  # (n_rows, 1 + N_GROUPS), of each slice with everyone, then without each group
    users: np.ndarray,  # (n_rows, N_GROUPS), users with a list, by group of the jackknife
    n_lists: np.ndarray,  # (n_rows,), lists of all users
    shrinkage: np.ndarray | float = 1.0,  # (n_rows,), factor of the variance; NaN where there is no error
) -> pa.RecordBatch:
    """Build rows of ``schemas.METRICS`` without the columns of the run."""
    confidence = reported.confidence
    everyone = values[:, :1]
    without = everyone + np.sqrt(shrinkage)[..., None] * (values[:, 1:] - everyone)
    spread = intervals.jackknife(values[:, 0], without, users, confidence, measure.bounds)
    # An error of 0 says that no group of users differs from another, not that the value is certain.
    is_rounding = spread.std_error <= LEAST_ERROR * np.maximum(np.abs(values[:, 0]), 1.0)
    spread = intervals.Spread(*(np.where(is_rounding, np.nan, each) for each in spread))
    n_users, n = users.sum(axis=1), keys.num_rows
    method = np.where(np.isnan(spread.low), "none", "jackknife")
    columns = {
        **metric_rows.null_columns(n),  # what is counted or computed by user
        **metric_rows.slice_columns(keys, reported.names),
        C.MEASURE: pa.array([measure.label] * n, pa.string()),
        C.K: pa.array(np.full(n, measure.k, dtype=np.int32)),
        C.VALUE: nan_to_null(values[:, 0]),
        "n_users": pa.array(n_users),
        C.N_LISTS: pa.array(n_lists),
        "is_small": pa.array(n_users < reported.min_size),
        "std_error": nan_to_null(spread.std_error),
        "ci_low": nan_to_null(spread.low),
        "ci_high": nan_to_null(spread.high),
        "ci_level": pa.array(np.full(n, confidence)),
        "ci_method": pa.array(method.tolist(), pa.string()),
    }
    return metric_batch(columns)


Steps: TypeAlias = tuple["FloatVector", "FloatVector", "FloatVector"]
"""Items that count; change of the measure if an item is in one list fewer, in any unit; change of that change if it is
in another list fewer. All of shape (n_entries,)."""


def variance_shrinkage(measure: Measure, exposure: Exposure, values: FloatVector) -> FloatVector:
    """Return V1 / (V1 + V2), in (0, 1], by which the variance of the jackknife is multiplied; shape (n_groups,).

    NaN where V1 is 0: no item counts, or no list changes the measure more than another, such as lists that are all
    equal or share no item. NaN for a coverage with fewer than MIN_SINGLES items in exactly one list or below MIN_SHARE.

    If items are shown independently of each other, an item in x lists adds ``x f(x)^2`` to V1 and
    ``x (x - 1) / 2 s(x)^2`` to V2, f and s being the first and second differences. V1 is less by what the fixed number
    of places takes, ``(sum x f)^2 / sum x``. These are the first terms of a series with alternating signs,
    ``V1 - V2 + V3 - ...``, for which ``V1^2 / (V1 + V2)`` stands. For coverage the series is the expected number of
    new items in as many further lists (Good & Toulmin 1956).
    """
    n_items, to_first, to_second = _STEPS[measure.name](exposure, measure.options, values)
    weight = n_items * exposure.times
    n_places = exposure.sum(weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = exposure.sum(weight * to_first**2)
        first = squares - exposure.sum(weight * to_first) ** 2 / n_places
        first = np.where(first > LEAST_FIRST * squares, first, np.nan)
        second = exposure.sum(weight * (exposure.times - 1) / 2 * to_second**2)
        share: FloatVector = first / (first + second)
    if measure.name in {"ItemCoverage", "CatalogCoverage"}:
        n_singles = exposure.sum(n_items * (exposure.times == 1))
        share[(n_singles < MIN_SINGLES) | (share < MIN_SHARE)] = np.nan
    return share


def _coverage_steps(n_items: FloatVector, times: FloatVector) -> Steps:
    """Return the steps of the number of items: an item in one list is lost with it, one in two with both."""
    return n_items, (times == 1).astype(np.float64), -(times == 2).astype(np.float64)  # noqa: PLR2004 - two lists


def _entropy_steps(exposure: Exposure, options: Mapping[str, Any], _: FloatVector) -> Steps:
    """Return the steps of the sum of x log x."""
    fewer = (exposure.times - n for n in range(3))  # x log x of an item in x lists, in one fewer, in two fewer
    now, before, earlier = (times * np.log(np.maximum(times, 1.0)) for times in fewer)
    n_items = exposure.n_catalogued if options["norm"] else exposure.n_items
    return n_items, now - before, now - 2 * before + earlier


def _gini_steps(exposure: Exposure, options: Mapping[str, Any], values: FloatVector) -> Steps:
    """Return the steps of the sum of |x - y| over other items; those that are never shown are in the catalogue."""
    times, group, is_of_catalogue = exposure.times, exposure.group, options["items"] == "catalogue"
    n_items = exposure.n_catalogued if is_of_catalogue else exposure.n_items
    shown = exposure.sum(n_items)
    n = exposure.catalogue_size if is_of_catalogue else shown
    below = exposure.running_sum(n_items) - n_items + (n - shown)[group]
    first = 2 * below - n[group] + 1
    is_next = np.append(np.zeros(1, dtype=np.bool_), (np.diff(times) == 1) & (np.diff(group) == 0))[: len(times)]
    second = 2 * np.where(is_next, np.roll(n_items, 1), 0.0)
    if not is_of_catalogue:  # an item that leaves its last list leaves the items too
        last = (exposure.sum(n_items * times) * (1 - values) - n)[group]
        second = np.where(times == 2, first - (last - 1), second)  # noqa: PLR2004 - two lists
        first = np.where(times == 1, last, first)
    return n_items, first, second


_STEPS: Final[dict[str, Callable[[Exposure, Mapping[str, Any], FloatVector], Steps]]] = {
    "ItemCoverage": lambda exposure, _, __: _coverage_steps(exposure.n_items, exposure.times),
    "CatalogCoverage": lambda exposure, _, __: _coverage_steps(exposure.n_catalogued, exposure.times),
    "Entropy": _entropy_steps,
    "Gini": _gini_steps,
    # of how many pairs of lists hold an item, whatever their lengths
    "Personalization": lambda exposure, _, __: (
        exposure.n_items,
        2 * (exposure.times - 1),
        np.full(len(exposure.times), 2.0),
    ),
}
"""By the name of the measure; every measure of exposure has its own."""


SLICE_BUCKET: Final = "_slice_bucket"  # column of the bucket of a slice and its values, whichever the model
N_SLICE_BUCKETS: Final = 16
OF_CATALOGUE: Final = -1  # ``slice_index`` of an entry that counts items of the catalogue for a bucket of slices

ENTRIES: Final = pa.schema(
    [
        *(*KEY_FIELDS, (SLICE_BUCKET, pa.int32()), ("without", pa.int64()), ("times", pa.int64())),
        *((name, pa.float64()) for name in COUNTS),
    ]
)
"""Columns of entries of histograms: of a model, slice, slice values and cutoff."""

ENTRIES_AT_ONCE: Final = 1_000_000  # entries of histograms that are finished in one go; each is copied up to 21 times


def hash_slices(slices: Iterable[tuple[int, tuple[str | None, ...]]]) -> IntVector:
    """Return the bucket of each slice, of its index and values: int32, shape (n_slices,)."""
    return (hash_users(to_texts(map(repr, slices))) % N_SLICE_BUCKETS).astype(np.int32)


def entry_keys(index: int, cells: Sequence[Key]) -> dict[str, pa.Array]:
    """Build the columns of :data:`ENTRIES` that tell the model and the slice of each cell."""
    buckets = hash_slices((index, values) for _, values, _ in cells)
    return {**dict(zip(SLICE, key_columns(index, cells), strict=False)), SLICE_BUCKET: to_arrow(buckets)}


def to_entry_rows(entries: Entries, keys: Mapping[str, pa.Array], *, k: int) -> pa.RecordBatch:
    """Build rows of :data:`ENTRIES`; ``keys`` are the columns of :func:`entry_keys`."""
    cell = to_arrow(entries.cell)
    columns = {name: pc.take(column, cell) for name, column in keys.items()}
    columns[C.K] = to_arrow(np.full(len(cell), k, dtype=np.int32))
    columns |= {name: to_arrow(getattr(entries, name)) for name in ("without", "times", *COUNTS)}
    return pa.RecordBatch.from_pydict({name: columns[name] for name in ENTRIES.names})


def catalogue_entries(n_items: int) -> pa.RecordBatch:
    """Build the entries for items of the catalogue, once for each bucket of slices."""
    bucket = np.arange(N_SLICE_BUCKETS)
    keys = entry_keys(OF_CATALOGUE, [("", (), C.WHOLE_LIST)] * N_SLICE_BUCKETS)
    keys[SLICE_BUCKET] = to_arrow(bucket.astype(np.int32))
    nothing, everyone = np.zeros(N_SLICE_BUCKETS), np.full(N_SLICE_BUCKETS, EVERYONE)
    counts = dict.fromkeys(COUNTS, nothing) | {"n_catalogued": nothing + n_items}
    return to_entry_rows(Entries(bucket, everyone, bucket, **counts), keys, k=C.WHOLE_LIST)


@dataclass(frozen=True)
class ExposureRows:
    """Rows of ``metrics`` from histograms, computed on the workers."""

    measures: tuple[Measure, ...]
    reported: ReportedSlices
    models: tuple[str, ...] = ()

    def rows_without_lists(self, slices: SlicesOfUsers = ALL_USERS) -> pa.Table:
        """Build entries that add no item and no list: a model without any list has its rows too."""
        ks = dict.fromkeys(measure.k for measure in self.measures)
        cells = [(index, (model, values, k)) for index, values in slices for k in ks for model in self.models]
        keys = [key for _, key in cells]
        nothing = to_arrow(np.zeros(len(keys)))
        columns = dict(zip(GROUP, key_columns(0, keys), strict=True))
        columns["slice_index"] = pa.array([index for index, _ in cells], pa.int32())
        columns[SLICE_BUCKET] = to_arrow(hash_slices((index, values) for index, (_, values, _) in cells))
        columns["without"] = to_arrow(np.full(len(keys), EVERYONE, dtype=np.int64))
        columns["times"] = to_arrow(np.ones(len(keys), dtype=np.int64))  # of an item, if there were one
        return pa.Table.from_pydict({**columns, **dict.fromkeys(COUNTS, nothing)}).select(ENTRIES.names)

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Build the rows of each measure from all entries in some buckets of slices, for every model."""
        table = pa.Table.from_batches(batches, ENTRIES)
        bucket, n_catalogued = (to_numpy(table[name]) for name in (SLICE_BUCKET, "n_catalogued"))
        of_catalogue = to_numpy(table["slice_index"]) == OF_CATALOGUE
        # Every bucket of slices has the whole catalogue.
        size = np.bincount(bucket[of_catalogue], weights=n_catalogued[of_catalogue]).max(initial=0)
        table = table.filter(to_arrow(~of_catalogue))
        everyone = ALL_USERS if hash_slices(ALL_USERS)[0] in bucket else ()
        table = pa.concat_tables([table, self.rows_without_lists(dict.fromkeys([*find_slices(table), *everyone]))])
        for k in dict.fromkeys(measure.k for measure in self.measures):
            measures = [measure for measure in self.measures if measure.k == k]
            for keys, entries, row in _split_by_slice(table.filter(pc.equal(table[C.K], k))):
                exposure, of_everyone, n_users, n_lists = to_exposures(keys, entries, row, size)
                for measure in measures:
                    values = measure.entry.values(exposure, measure.options).reshape(-1, N_GROUPS + 1)
                    shrinkage = variance_shrinkage(measure, of_everyone, values[:, 0])
                    yield to_metric_batch(self.reported, measure, keys, values, n_users, n_lists, shrinkage)


def _split_by_slice(entries: pa.Table) -> Iterator[tuple[pa.RecordBatch, pa.Table, np.ndarray]]:
    """Yield parts of whole slices, about ENTRIES_AT_ONCE entries: keys of slices, entries, and each entry's slice."""
    first, row = index_keys(entries, SLICE)
    order = np.argsort(row, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(row)))
    start, names = 0, (*SLICE, C.K)
    while start < len(first):
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + ENTRIES_AT_ONCE, side="right")) - 1)
        chosen = order[ends[start] : ends[end]]
        keys = {name: pc.take(combine_chunks(entries[name]), to_arrow(first[start:end])) for name in names}
        yield pa.RecordBatch.from_pydict(keys), pc.take(entries, to_arrow(chosen)), row[chosen] - start
        start = end


@dataclass(frozen=True)
class ParityRows:
    """Rows of ``metrics`` from sums by group of users, computed on the workers."""

    measures: tuple[Measure, ...]
    reported: ReportedSlices
    models: tuple[str, ...] = ()

    def rows_without_lists(self, slices: SlicesOfUsers = ALL_USERS) -> pa.Table:
        """Build sums of no list: a model without any list has its rows too."""
        cells = [(index, (model, values, C.WHOLE_LIST)) for index, values in slices for model in self.models]
        keys = dict(zip(SLICE, key_columns(0, [key for _, key in cells]), strict=False))
        keys["slice_index"] = pa.array([index for index, _ in cells], pa.int32())
        sums = [[0.0] * sum(map(_count_sums, self.measures))] * len(cells)
        counts = dict.fromkeys(("n_users", C.N_LISTS), pa.array([0] * len(cells), pa.int64()))
        group = pa.array([0] * len(cells), pa.int32())
        return pa.Table.from_pydict(
            {**keys, GROUP_OF_USERS: group, **counts, SUMS: pa.array(sums, pa.list_(pa.float64()))}
        )

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Build the rows of each measure from all rows of ``Parity.add_up`` in the slices, for every model."""
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        table = pa.Table.from_batches(given)
        absent = self.rows_without_lists(find_slices(table)).select(table.column_names).cast(table.schema)
        table = pa.concat_tables([table, absent])
        first, row = index_keys(table, SLICE)
        columns = {name: pc.take(combine_chunks(table[name]), to_arrow(first)) for name in SLICE}
        keys = pa.RecordBatch.from_pydict(columns)
        place = row * N_GROUPS + to_numpy(table[GROUP_OF_USERS])
        n_users, n_lists = (_sum_by_group(to_numpy(table[name]), place, len(first)) for name in ("n_users", C.N_LISTS))
        sums = _sum_by_group(to_numpy(combine_chunks(table[SUMS]).flatten()).reshape(len(place), -1), place, len(first))
        everyone = sums.sum(axis=1, keepdims=True)
        without = np.concatenate([everyone, everyone - sums], axis=1)
        ends = np.cumsum([_count_sums(measure) for measure in self.measures])
        for measure, measure_sums in zip(self.measures, np.split(without, ends[:-1], axis=2), strict=True):
            taken, possible = np.split(measure_sums.reshape(-1, measure_sums.shape[2]), 2, axis=1)
            values = measure.entry.values(Rates(taken, possible), measure.options).reshape(-1, 1 + N_GROUPS)
            shrinkage: np.ndarray | float = 1.0
            if not is_disparity(measure):  # near 0 the error of a spread of rates is no deviation, as of a root
                level = self.reported.confidence
                spread = intervals.jackknife(values[:, 0], values[:, 1:], n_users, level, (0.0, np.inf))
                shrinkage = np.where(spread.low > 0, 1.0, np.nan)
            yield to_metric_batch(self.reported, measure, keys, values, n_users, n_lists.sum(axis=1), shrinkage)


def _count_sums(measure: Measure) -> int:
    """Return how many sums a measure has: taken and possible, for a category and all items or for each group."""
    return 4 if is_disparity(measure) else 2 * len(BY_POPULARITY)


def _sum_by_group(values: np.ndarray, place: np.ndarray, n_rows: int) -> np.ndarray:
    """Add values up by row and group of users: shape (n_rows, N_GROUPS, ...)."""
    found = np.zeros((n_rows * N_GROUPS, *values.shape[1:]), dtype=values.dtype)
    np.add.at(found, place, values)
    return found.reshape(n_rows, N_GROUPS, *values.shape[1:])
