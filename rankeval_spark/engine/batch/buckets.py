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
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.failures import quoted, refuse_input
from rankeval_spark.limits import MAX_ROWS_PER_USER
from rankeval_spark.statistics.hashed_random import GOLDEN, hashes_of_bytes, mixed

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.codes import UintVector
    from rankeval_spark.measures.arrays import IntVector
    from rankeval_spark.statistics.hashed_random import Hashes


N_GROUPS: Final = 20  # groups of users that the jackknife leaves out in turn
GROUP: Final = "_group"  # column of the group of the jackknife that a user belongs to


def jackknife_groups(users: pa.Array) -> IntVector:
    """Return the group of the jackknife of each user, by a hash of their id: int64, shape (n_users,)."""
    return hashes_of(users) % N_GROUPS


def hashes_of(users: pa.Array | pa.ChunkedArray) -> Hashes:
    """Hash each user's id as text in UTF-8 whatever its type, as ``xxhash64(cast(user_id AS string))`` in Spark.

    ``users``: texts or whole numbers, without NULL. The result is int64, shape (n_users,).
    """
    texts = in_one_piece(users).cast(pa.string())
    _, ends, data = texts.buffers()
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    places = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return hashes_of_bytes(text, places.astype(np.int64))


BUDGET: Final = 256 << 20
"""Bytes of Arrow rows that are held at once; a worker needs some six times as much at its peak."""

N_BUCKETS: Final = 32  # buckets of a partition above the budget; a bucket that is still too large is cut again

MOST_LEVELS: Final = 6
"""Times that a bucket is cut again: what is then above the budget is the rows of a few users, and is not cut."""

FOLDERS_OF_SPARK: Final = "SPARK_LOCAL_DIRS"
"""Variable in which Spark gives its workers the folders for what they write, separated by commas."""

_ROWS_AT_ONCE: Final = 65_536


def in_buckets(
    batches: Iterable[pa.RecordBatch], *, most_rows: int = MAX_ROWS_PER_USER, budget: int = BUDGET, level: int = 0
) -> Iterator[pa.Table]:
    """Yield tables of all rows of some users each; nothing where there is no row.

    ``batches``: rows with ``user_id``. ``most_rows``: rows that a user may have. ``budget``: bytes that are held at
    once. ``level``: how often these rows were cut before: each time by another hash. Raises RefusedError if a user has
    more rows than ``most_rows``, with their id.
    """
    held: list[pa.RecordBatch] = []
    n_bytes, n_rows, next_check, rest, may_split = 0, 0, most_rows, iter(batches), level < MOST_LEVELS
    for batch in rest:
        if batch.num_rows:
            held.append(batch)
            n_bytes += batch.nbytes
            n_rows += batch.num_rows
        if n_bytes > budget and may_split:
            may_split = not (level and _is_mostly_one_user(held))
            if may_split:
                yield from _cut(chain(held, rest), most_rows, budget, level)
                return
        if n_rows > next_check:
            _refuse_many_rows(held, most_rows)
            next_check = 2 * n_rows
    if n_rows > most_rows:
        _refuse_many_rows(held, most_rows)
    if held:
        yield pa.Table.from_batches(held)


def _is_mostly_one_user(batches: Sequence[pa.RecordBatch]) -> bool:
    """Return True if most rows are of one user: cut again, they would only be written again."""
    _, n_rows = _rows_by_user(batches)
    return 2 * int(n_rows.max()) > int(n_rows.sum())


def _refuse_many_rows(batches: Sequence[pa.RecordBatch], most_rows: int) -> None:
    """Refuse a user with more rows than that."""
    users, n_rows = _rows_by_user(batches)
    most = int(n_rows.argmax())
    if n_rows[most] > most_rows:
        user = quoted(users[most].as_py())
        refuse_input(
            "max_rows_per_user",
            f"user {user} with {n_rows[most]} rows or more in all inputs together",
            expected=f"at most {most_rows}",
            fix="leave this user out, as a robot or a default id, or raise max_rows_per_user",
        )


def _rows_by_user(batches: Sequence[pa.RecordBatch]) -> tuple[pa.Array, np.ndarray]:
    """Count the rows of each user."""
    counts = pc.value_counts(pa.chunked_array([batch[C.USER_ID] for batch in batches]))
    return counts.field("values"), to_numpy(counts.field("counts"))


def _cut(batches: Iterator[pa.RecordBatch], most_rows: int, budget: int, level: int) -> Iterator[pa.Table]:
    """Write rows to a file for each bucket, then take the buckets one after another."""
    with TemporaryDirectory(prefix="rankeval-", dir=_folder()) as folder:
        paths = [Path(folder) / str(bucket) for bucket in range(N_BUCKETS)]
        first = next(batches)
        with ExitStack() as opened:
            writers = [
                opened.enter_context(pa.ipc.new_stream(opened.enter_context(pa.OSFile(str(path), "wb")), first.schema))
                for path in paths
            ]
            for batch in chain([first], batches):
                _write(batch, writers, level)
        for path in paths:
            with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
                yield from in_buckets(reader, most_rows=most_rows, budget=budget, level=level + 1)
            path.unlink()


def _folder() -> str | None:
    """Return the folder of Spark's worker for what it writes; None where there is none, for that of the system."""
    folders = os.environ.get(FOLDERS_OF_SPARK, "").split(",")
    return next((name for name in folders if name and Path(name).is_dir()), None)


def _write(batch: pa.RecordBatch, writers: list[pa.RecordBatchStreamWriter], level: int) -> None:
    for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
        part = batch.slice(start, _ROWS_AT_ONCE)
        bucket = bucket_of(part[C.USER_ID], level=level)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(N_BUCKETS + 1))
        rows = pc.take(part, to_arrow(order))
        for place in np.flatnonzero(np.diff(ends)).tolist():
            writers[place].write_batch(rows.slice(ends[place], ends[place + 1] - ends[place]))


def bucket_of(users: pa.Array, *, level: int, n_buckets: int = N_BUCKETS) -> np.ndarray:
    """Bucket of each user, by a hash of the id alone: int64, shape (n_rows,), from 0 to ``n_buckets - 1``.

    Buckets of two levels have nothing to do with each other.
    """
    whole = in_one_piece(users)
    is_number = pa.types.is_integer(whole.type)
    hashed = to_numpy(whole).astype(np.int64).view(np.uint64) if is_number else _of_texts(whole)
    hashed = mixed(hashed + np.uint64((level + 1) * int(GOLDEN) % (1 << 64)))  # a step of SplitMix64 for each level
    hashed >>= np.uint64(32)
    hashed *= np.uint64(n_buckets)  # scaled instead of divided, which takes several times as long
    hashed >>= np.uint64(32)
    return hashed.view(np.int64)


def _of_texts(texts: pa.Array) -> UintVector:
    """Hash texts: a polynomial of their bytes."""
    texts = texts.cast(pa.string())
    lengths = to_numpy(pc.binary_length(texts)).astype(np.int64)
    total = int(lengths.sum())
    start = texts.buffers()[1]
    first = np.frombuffer(start, dtype=np.int32)[texts.offset] if start is not None else 0
    data = texts.buffers()[2]
    letters = np.frombuffer(data, dtype=np.uint8)[first : first + total] if data is not None else np.zeros(0, np.uint8)
    ends = np.cumsum(lengths)
    place = np.arange(total) - np.repeat(ends - lengths, lengths)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)) + 1, GOLDEN))
    terms = np.zeros(total + 1, dtype=np.uint64)
    np.cumsum((letters.astype(np.uint64) + np.uint64(1)) * powers[place], out=terms[1:])
    hashed: UintVector = terms[ends] - terms[ends - lengths]
    return hashed
