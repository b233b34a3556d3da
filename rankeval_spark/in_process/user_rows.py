"""The rows of all users, cut into buckets of whole users, and the threads that work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow
from rankeval_spark.engine.batch.buckets import MOST_LEVELS, bucket_of

if TYPE_CHECKING:
    from rankeval_spark.engine.job import Job


_Given = TypeVar("_Given")
_Found = TypeVar("_Found")

Work: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[_Found]]
"""What a worker does with the rows of some users."""

ROWS_OF_A_BUCKET: Final = 250_000  # rows of all inputs that are worked on at once by a thread: some 200 MB at its peak

FEW_ROWS: Final = 100_000  # up to so many rows there is one bucket

MOST_BUCKETS: Final = 65_536

_ROWS_OF_A_PART: Final = 1 << 20
_LEVEL: Final = MOST_LEVELS + 1  # a bucket may be cut again by the engine, by other hashes than this


@dataclass(frozen=True)
class UserRows:
    """Rows of :mod:`engine.batch.row_kinds` by bucket, and what is computed of them."""

    # all rows of some users each, in parts that may lack columns of one another
    buckets: tuple[tuple[pa.Table, ...], ...]
    job: Job
    n_threads: int  # buckets that are worked on at a time

    def run(self, work: Callable[[Job], Work[_Found]]) -> list[_Found]:
        """Work on every bucket; what comes of them is in their order, whichever thread is the first.

        ``user_rows.run(lambda job: job.list_rows)``
        """
        on_bucket = work(self.job)

        def found_of(bucket: tuple[pa.Table, ...]) -> list[_Found]:
            return list(on_bucket(pa.concat_tables(bucket, promote_options="default").to_batches()))

        found = run_in_threads(found_of, self.buckets, self.n_threads)
        return list(chain.from_iterable(found))

    @property
    def n_rows(self) -> int:
        """Number of rows of all inputs."""
        return sum(part.num_rows for bucket in self.buckets for part in bucket)


def to_user_rows(inputs: Mapping[int, pa.Table], job: Job, *, n_threads: int) -> UserRows:
    """Unite the inputs and cut them into buckets of whole users.

    The number of buckets depends on the number of rows alone, so that sums over users do not depend on the threads.

    ``inputs``: tables by their number in :mod:`engine.batch.row_kinds`; each with ``user_id`` and the columns that the
    engine reads.
    """
    n_rows = sum(table.num_rows for table in inputs.values())
    n_buckets = 1 if n_rows <= FEW_ROWS else min(MOST_BUCKETS, -(-n_rows // ROWS_OF_A_BUCKET))
    parts = [(kind, part) for kind, table in inputs.items() for part in in_parts(table)]
    cut = run_in_threads(lambda part: _cut(*part, n_buckets), parts, n_threads)
    return UserRows(tuple(zip(*cut, strict=True)), job, n_threads)


def in_parts(table: pa.Table) -> Iterator[pa.Table]:
    """Cut a table into parts for threads: one without a row where it has none, for its columns."""
    for start in range(0, max(1, table.num_rows), _ROWS_OF_A_PART):
        yield table.slice(start, _ROWS_OF_A_PART)


def run_in_threads(work: Callable[[_Given], _Found], parts: Iterable[_Given], n_threads: int) -> list[_Found]:
    """Run the work on every part, several at a time; numpy and pyarrow release the interpreter's lock."""
    given = list(parts)
    if n_threads == 1 or len(given) < 2:  # noqa: PLR2004 - a thread more than parts has nothing to do
        return [work(part) for part in given]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, given))


def _cut(kind: int, table: pa.Table, n_buckets: int) -> list[pa.Table]:
    """Cut a part of an input by the bucket of its users."""
    numbers = to_arrow(np.full(table.num_rows, kind, dtype=np.int8))
    if n_buckets == 1:
        return [table.append_column(row_kinds.KIND, numbers)]
    bucket = bucket_of(in_one_piece(table[C.USER_ID]), level=_LEVEL, n_buckets=n_buckets).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")  # by radix, which 16 bits are sorted with
    ordered = pc.take(table, to_arrow(order)).append_column(row_kinds.KIND, numbers)
    ends = np.append(0, np.cumsum(np.bincount(bucket, minlength=n_buckets))).tolist()
    return [ordered.slice(start, end - start) for start, end in pairwise(ends)]
