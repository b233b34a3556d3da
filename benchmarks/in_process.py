"""The default call without Spark, from Parquet files on, next to DuckDB's SQL by hand for the same means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from benchmarks.timing import Contender
from benchmarks.workloads import CUTOFFS, SIX
from rankeval_spark import evaluate

if TYPE_CHECKING:
    from benchmarks.data import Tables

HERE: Final = "evaluate(...).metrics in this process, all defaults, from Parquet"
BY_HAND: Final = "floor of this process: the same 36 means by DuckDB, SQL by hand"


def contenders(tables: Tables) -> list[Contender]:
    """Return both, the floor first."""
    return [Contender(BY_HAND, lambda: by_hand(tables)), Contender(HERE, lambda: here(tables))]


def here(tables: Tables) -> dict[str, float]:
    """Read the files with pyarrow and evaluate them."""
    log, held_out = (pq.read_table(str(path)) for path in (tables.recommendations, tables.held_out))
    rows = evaluate(log, held_out, measures=list(SIX)).metrics.to_pylist()
    return {f"{row['measure']}@{row['k']}": row["value"] for row in rows}


def by_hand(tables: Tables) -> dict[str, float]:
    """Write it out in SQL for a log of one model: means, and nothing else."""
    import duckdb  # noqa: PLC0415 - a dependency of this line only

    log, held_out = (f"read_parquet('{path}/*.parquet')" for path in (tables.recommendations, tables.held_out))
    of_users = ", ".join(_OF_USER.format(k=k) for k in CUTOFFS)
    means = ", ".join(_MEANS.format(k=k) for k in CUTOFFS)
    found = duckdb.connect().execute(_SQL.format(log=log, held_out=held_out, of_users=of_users, means=means, most=100))
    row = found.fetchone() or ()
    return dict(zip((column[0] for column in found.description or ()), row, strict=True))


_OF_USER: Final = """
    count(*) FILTER (gain >= 1 AND rank <= {k}) AS hits_{k},
    sum(precision) FILTER (gain >= 1 AND rank <= {k}) AS ap_{k},
    sum(gain / log2(rank + 1)) FILTER (rank <= {k}) AS dcg_{k},
    sum(gain / log2(ideal_rank + 1)) FILTER (ideal_rank <= {k}) AS idcg_{k}"""

_MEANS: Final = """
    avg(hits_{k} / {k}.0) AS "P@{k}",
    avg(hits_{k} / n_relevant) AS "R@{k}",
    avg(CASE WHEN hits_{k} > 0 THEN 1.0 ELSE 0.0 END) AS "Success@{k}",
    avg(CASE WHEN hits_{k} > 0 THEN 1.0 / first_hit ELSE 0.0 END) AS "RR@{k}",
    avg(coalesce(ap_{k}, 0) / n_relevant) AS "AP@{k}",
    avg(coalesce(dcg_{k}, 0) / idcg_{k}) AS "nDCG@{k}\""""

_SQL: Final = """
WITH once AS (
    SELECT user_id, item_id, max(score) AS score FROM {log} GROUP BY ALL
), ranked AS (
    SELECT user_id, item_id, row_number() OVER (PARTITION BY user_id ORDER BY score DESC, item_id) AS rank
    FROM once QUALIFY rank <= {most}
), judged AS (
    SELECT user_id, item_id, gain, row_number() OVER (PARTITION BY user_id ORDER BY gain DESC) AS ideal_rank
    FROM {held_out}
), matched AS (
    SELECT judged.*, rank,
        count(*) FILTER (gain >= 1) OVER (PARTITION BY user_id ORDER BY rank NULLS LAST) / rank AS precision
    FROM judged LEFT JOIN ranked USING (user_id, item_id)
), per_user AS (
    SELECT user_id, count(*) FILTER (gain >= 1) AS n_relevant, min(rank) FILTER (gain >= 1) AS first_hit, {of_users}
    FROM matched GROUP BY user_id
)
SELECT {means} FROM per_user WHERE n_relevant > 0
"""
