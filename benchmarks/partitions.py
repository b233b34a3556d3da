"""What workers do with partitions of users, and how what they add up is merged, without Spark: ``docs/scale.md``.

The rows of a partition are made while a worker reads them, in the order and the batches of an exchange.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workloads import MANY_SLICES, SIX, accuracy
from rankeval_spark import evaluate
from rankeval_spark.engine.row_kinds import HELD_OUT, KIND, LOG, SEGMENT_VALUES, SEGMENTS
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.spark.plans.result_frames import merge_bucket, pack_by_key, read_totals
from rankeval_spark.sums.grouping import N_BUCKETS, n_buckets_of
from rankeval_spark.sums.sums import ListTotals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.sums.sums import Sum

BATCH_ROWS: Final = 10_000
N_TURNS: Final = 3  # of which the shortest counts: others share the machine
MEGABYTE: Final = 1 << 20
TWO_SLICES: Final = ("country", "tier")
N_VALUES: Final = {"country": 20, "tier": 5}
"""Values of these segments; one numbered ``segment_07`` has 2 + 7."""


@dataclass(frozen=True)
class Partition:
    """The rows of some users, and what is asked of them."""

    n_users: int
    list_length: int = 100
    models: int = 1
    items: int = 50_000
    measures: tuple[str, ...] = SIX
    slices: tuple[Any, ...] = TWO_SLICES
    place: int = 0  # of the partition among others; its users are its own

    @property
    def n_rows(self) -> int:
        """Recommendations."""
        return self.n_users * self.list_length * self.models

    @property
    def segments(self) -> list[str]:
        """Names of the segments of the slices."""
        return list(dict.fromkeys(chain(*((one,) if isinstance(one, str) else one for one in self.slices))))

    def work(self) -> ListTotals:
        """Return the work on it, with the sums of a default call and of its checks."""
        few = Partition(10, 5, self.models, self.items, self.measures, self.slices)
        log, judged, values = (pa.Table.from_batches(list(few.batches(kind))) for kind in (LOG, HELD_OUT, SEGMENTS))
        names = self.segments
        by_name = {name: pc.list_element(values[SEGMENT_VALUES], place) for place, name in enumerate(names)}
        called = evaluate(
            log.drop_columns([KIND]),
            judged.drop_columns([KIND]).rename_columns({"score": "gain"}),
            measures=list(self.measures),
            models=[f"model-{model}" for model in range(self.models)] if self.models > 1 else None,
            segments=pa.table({"user_id": values["user_id"], **by_name}) if names else None,
            slices=list(self.slices),
        )
        assert isinstance(called.host, InProcess)
        return ListTotals(called.host.job, {**called.host.sums, **called.host.input_checks.sums})

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, in the columns that a worker gets."""
        kinds = [LOG, HELD_OUT, *([SEGMENTS] if self.slices else [])]
        schema = pa.unify_schemas([next(self.batches(kind)).schema for kind in kinds])
        for batch in chain(*map(self.batches, kinds)):
            known = batch.schema.names
            columns = [batch[f.name] if f.name in known else pa.nulls(batch.num_rows, f.type) for f in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def batches(self, kind: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one kind: an item of each user after another, so that lists are in no place together."""
        random = np.random.default_rng([self.place, kind])
        start, step = (np.random.default_rng([self.place, 9]).integers(0, self.items, self.n_users) for _ in range(2))
        n_each = {LOG: self.list_length * self.models, HELD_OUT: max(1, self.list_length // 5), SEGMENTS: 1}[kind]
        for begin in range(0, self.n_users * n_each, BATCH_ROWS):
            number = np.arange(begin, min(begin + BATCH_ROWS, self.n_users * n_each))
            user, position = number % self.n_users, number // self.n_users
            columns: dict[str, pa.Array | np.ndarray] = {"user_id": self.place * self.n_users + user}
            if kind == SEGMENTS:
                values = [
                    random.integers(0, N_VALUES.get(name) or 2 + int(name[-2:]), len(user)) for name in self.segments
                ]
                texts = pa.array(np.array(values, dtype=np.int32).T.ravel()).cast(pa.string())
                ends = np.arange(len(user) + 1, dtype=np.int32) * len(self.segments)
                columns[SEGMENT_VALUES] = pa.ListArray.from_arrays(pa.array(ends), texts)
            else:
                # every second judgement is on the list
                place = position if kind == LOG else np.where(position % 2, self.list_length + position, position)
                item = (
                    (start[user] + place % self.list_length * (2 * step[user] + 1))
                    if kind == LOG
                    else (start[user] + place * (2 * step[user] + 1))
                )
                columns["item_id"] = (item + 7 * (position // self.list_length)) % self.items
                columns["score"] = random.random(len(user)) if kind == LOG else random.integers(0, 4, len(user)) * 1.0
                if kind == LOG and self.models > 1:
                    model = pa.array((position // self.list_length).astype(np.int32)).cast(pa.string())
                    columns["model_id"] = pc.binary_join_element_wise("model", model, "-")
            columns[KIND] = np.full(len(user), kind, dtype=np.int8)
            yield pa.RecordBatch.from_pydict(columns)

    def packed(self, totals: ListTotals, n_buckets: int = N_BUCKETS) -> Iterator[pa.RecordBatch]:
        """Yield what a worker passes on."""
        for name, rows in totals.add(self.rows()):
            yield from pack_by_key(name, rows, totals.sums, n_buckets)


def costs(n_users: int) -> Iterator[dict[str, Any]]:
    """Yield what a worker of its own takes for a partition, with one thing changed at a time."""
    plain = Partition(n_users)
    for name, case in {
        "plain": plain,
        "half the users": replace(plain, n_users=n_users // 2),
        "lists of 20, as many rows": replace(plain, n_users=5 * n_users, list_length=20),
        "lists of 500, as many rows": replace(plain, n_users=n_users // 5, list_length=500),
        "nDCG@10 alone": replace(plain, measures=("nDCG@10",)),
        "every measure of accuracy at six cutoffs": replace(plain, measures=accuracy()),
        "no slices": replace(plain, slices=()),
        "20 segments and 10 crossings": replace(plain, slices=MANY_SLICES),
        "five models, as many rows": replace(plain, n_users=n_users // 5, models=5),
        "5,000 items": replace(plain, items=5_000),
        "500,000 items": replace(plain, items=500_000),
    }.items():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worker:
            yield {"case": name, "rows": case.n_rows, "users": case.n_users, **worker.submit(cost, case).result()}


def cost(case: Partition) -> dict[str, Any]:
    """Return processor seconds of making the rows and of the work on them, megabytes passed on, and peak memory."""
    totals, making, working = case.work(), list[float](), list[float]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(N_TURNS):
        started = time.process_time()
        for _ in case.rows():
            pass
        made = time.process_time()
        packed = list(case.packed(totals))
        making.append(made - started)
        working.append(time.process_time() - made)
    seconds, found = min(working) - min(making), dict.fromkeys(totals.sums, 0.0)
    for (name, _), own in by_bucket(packed).items():
        found[name] = round(found[name] + megabytes(own), 3)
    return {
        "cpu_seconds": round(seconds, 2),
        "microseconds_a_row": round(seconds / case.n_rows * 1e6, 3),
        "megabytes_passed_on": found,
        "worker_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024, 2),
        "of_it_before": round(before / 1024 / 1024, 2),
    }


def merged(n_partitions: int, each: Partition, *, n_different: int) -> dict[str, Any]:
    """Return what it takes to merge what so many partitions pass on, and to finish it in the driver.

    After ``n_different`` partitions the same ones come again, which takes less time.
    """
    totals, n_buckets = each.work(), n_buckets_of(n_partitions)
    added_up = [list(replace(each, place=place).packed(totals, n_buckets)) for place in range(n_different)]
    found = list(chain(*(added_up[place % n_different] for place in range(n_partitions))))
    passed_on = dict.fromkeys(totals.sums, 0.0)
    for (name, _), own in by_bucket(found).items():
        passed_on[name] = round(passed_on[name] + megabytes(own), 3)
    table, seconds, largest = merge(found, totals.sums, n_buckets)
    started = time.process_time()
    finished = read_totals(table, totals.sums)
    return {
        "partitions": n_partitions,
        "users": n_partitions * each.n_users,
        "slices": len(each.slices),
        "megabytes_passed_on": passed_on,
        "rows_of_metrics": finished["metrics"].num_rows,
        "seconds_merging": round(sum(seconds), 2),
        "seconds_of_the_slowest_bucket": round(max(seconds), 2),
        "megabytes_of_the_largest_bucket": largest,
        "megabytes_collected": megabytes(table.to_batches()),
        "seconds_in_driver": round(time.process_time() - started, 2),
        "gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024, 2),
    }


def merge(
    packed: Iterable[pa.RecordBatch], sums: Mapping[str, Sum], n_buckets: int
) -> tuple[pa.Table, list[float], float]:
    """Merge packed rows as workers do; return what the driver gets, each bucket's seconds, the largest's megabytes."""
    later = {one.into for one in sums.values() if one.into is not None}
    seconds, largest = [], 0.0
    for names in (sums.keys() - later, later):
        done: list[pa.RecordBatch] = []
        for (name, bucket), own in by_bucket(packed).items():
            started = time.process_time()
            rows = pa.Table.from_batches(own)
            done += (merge_bucket(sums, name, bucket, rows, n_buckets) if name in names else rows).to_batches()
            seconds.append(time.process_time() - started)
            largest = max(largest, megabytes(own))
        packed = done
    return pa.Table.from_batches(packed), seconds, largest


def by_bucket(packed: Iterable[pa.RecordBatch]) -> dict[tuple[str, int], list[pa.RecordBatch]]:
    """Collect the packed rows of each sum and bucket, which Spark moves to one worker."""
    found: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    for rows in packed:
        kinds = zip(rows["sum"].to_pylist(), rows["bucket"].to_pylist(), strict=True)
        for place, kind in enumerate(kinds):
            found.setdefault(kind, []).append(rows if rows.num_rows == 1 else rows.slice(place, 1))
    return found


def megabytes(batches: Iterable[pa.RecordBatch]) -> float:
    """Size of packed rows."""
    return round(sum(int(batch.nbytes) for batch in batches) / MEGABYTE, 3)
