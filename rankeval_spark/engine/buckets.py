"""Hashes of users, and tables of whole users that fit into memory.

A partition below the budget is one table. A larger one is written to disk as Arrow, cut by a hash of the user, and read
back a bucket at a time. So memory does not depend on how partitions were cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.columns import MAX_ROWS_PER_USER
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_numpy
from rankeval_spark.engine.failures import quote_key, refuse_input
from rankeval_spark.statistics.hashed_random import GOLDEN, hash_bytes, mix_in_place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import IntVector
    from rankeval_spark.statistics.hashed_random import Hashes


N_GROUPS: Final = 20  # groups of users that the jackknife leaves out in turn
GROUP: Final = "_group"  # column of the group of the jackknife that a user belongs to


def jackknife_groups(users: pa.Array) -> IntVector:
    """Return each user's group of the jackknife, by a hash of the id: int64, shape (n_users,)."""
    return hash_users(users) % N_GROUPS


def hash_users(users: pa.Array | pa.ChunkedArray) -> Hashes:
    """Hash ids, texts or whole numbers, as ``xxhash64(cast(user_id AS string))`` in Spark: int64, shape (n_users,)."""
    texts = combine_chunks(users).cast(pa.string())
    _, ends, data = texts.buffers()
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    places = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return hash_bytes(text, places.astype(np.int64))


def is_drawn(users: pa.Array, share: float) -> NDArray[np.bool_]:
    """Return which users a share below 1 draws: those with the lowest hashes, as ``--sample-users`` draws them."""
    return hash_users(users) < np.int64(int(share * 2**64) - 2**63)


BUDGET: Final = 256 << 20  # bytes of Arrow rows that are held at once; a worker needs four times as much at its peak
N_BUCKETS: Final = 32  # buckets of a partition above the budget; a bucket that is still too large is cut again
MAX_LEVELS: Final = 6  # times that a bucket is cut again; one that is still too large has the rows of a few users
FOLDERS_OF_SPARK: Final = "SPARK_LOCAL_DIRS"  # variable of the folders that Spark's workers write to, by commas
_ROWS_AT_ONCE: Final = 65_536


def split_by_user(
    batches: Iterable[pa.RecordBatch], *, most_rows: int = MAX_ROWS_PER_USER, budget: int = BUDGET, level: int = 0
) -> Iterator[pa.Table]:
    """Yield tables of all rows of some users each; refused where a user has more than ``most_rows``.

    ``budget``: bytes that are held at once. ``level``: how often these rows were cut before.
    """
    held: list[pa.RecordBatch] = []
    n_bytes, n_rows, next_check, rest, may_split = 0, 0, most_rows, iter(batches), level < MAX_LEVELS
    for batch in rest:
        if batch.num_rows:
            held.append(batch)
            n_bytes += batch.nbytes
            n_rows += batch.num_rows
        if n_bytes > budget and may_split:
            if level:  # rows that are mostly of one user would only be written again
                _, of_users = _rows_by_user(held)
                may_split = 2 * int(of_users.max()) <= n_rows
            if may_split:
                yield from _split_on_disk(chain(held, rest), most_rows, budget, level)
                return
        if n_rows > next_check:
            _refuse_many_rows(held, most_rows)
            next_check = 2 * n_rows
    if n_rows > most_rows:
        _refuse_many_rows(held, most_rows)
    if held:
        yield pa.Table.from_batches(held)


def _refuse_many_rows(batches: Sequence[pa.RecordBatch], most_rows: int) -> None:
    """Refuse a user with more rows than that."""
    users, n_rows = _rows_by_user(batches)
    most = int(n_rows.argmax())
    if n_rows[most] > most_rows:
        found = f"user {quote_key(users[most].as_py())} with {n_rows[most]} rows or more in all inputs together"
        fix = "leave this user out, as a robot or a default id, or raise max_rows_per_user"
        refuse_input("max_rows_per_user", found, expected=f"at most {most_rows}", fix=fix)


def _rows_by_user(batches: Sequence[pa.RecordBatch]) -> tuple[pa.Array, np.ndarray]:
    """Count the rows of each user."""
    counts = pc.value_counts(pa.chunked_array([batch[C.USER_ID] for batch in batches]))
    return counts.field("values"), to_numpy(counts.field("counts"))


def _split_on_disk(batches: Iterator[pa.RecordBatch], most_rows: int, budget: int, level: int) -> Iterator[pa.Table]:
    """Write rows to a file for each bucket, then take the buckets one after another."""
    of_spark = os.environ.get(FOLDERS_OF_SPARK, "").split(",")
    parent = next((name for name in of_spark if name and Path(name).is_dir()), None)  # None: the system's
    with TemporaryDirectory(prefix="rankeval-", dir=parent) as folder:
        paths = [Path(folder) / str(bucket) for bucket in range(N_BUCKETS)]
        first = next(batches)
        with ExitStack() as opened:
            writers = [
                opened.enter_context(pa.ipc.new_stream(opened.enter_context(pa.OSFile(str(path), "wb")), first.schema))
                for path in paths
            ]
            for batch in chain([first], batches):
                _write_buckets(batch, writers, level)
        for path in paths:
            with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
                yield from split_by_user(reader, most_rows=most_rows, budget=budget, level=level + 1)
            path.unlink()


def _write_buckets(batch: pa.RecordBatch, writers: list[pa.RecordBatchStreamWriter], level: int) -> None:
    """Write each row to the writer of its user's bucket."""
    for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
        part = batch.slice(start, _ROWS_AT_ONCE)
        bucket = hash_to_buckets(part[C.USER_ID], level=level)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(N_BUCKETS + 1))
        rows = pc.take(part, to_arrow(order))
        for place in np.flatnonzero(np.diff(ends)).tolist():
            writers[place].write_batch(rows.slice(ends[place], ends[place + 1] - ends[place]))


def hash_to_buckets(users: pa.Array, *, level: int, n_buckets: int = N_BUCKETS) -> np.ndarray:
    """Bucket of each user, from 0, by a hash of id and level: int64, shape (n_rows,)."""
    whole = combine_chunks(users)
    ids = to_numpy(whole).astype(np.int64) if pa.types.is_integer(whole.type) else hash_users(whole)
    step = np.uint64((level + 1) * int(GOLDEN) % (1 << 64))  # a step of SplitMix64 for each level
    hashed = mix_in_place(ids.view(np.uint64) + step)
    hashed >>= np.uint64(32)
    hashed *= np.uint64(n_buckets)  # scaled instead of divided, which takes several times as long
    hashed >>= np.uint64(32)
    return hashed.view(np.int64)
