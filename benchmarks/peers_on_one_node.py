"""The same four measures without Spark, from the Parquet files on; each in a process of its own.

Nothing here imports Spark: what a peer holds in memory is its own.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeAlias

Values: TypeAlias = dict[str, float]
Paths: TypeAlias = tuple[Path, Path]
"""Folders of the recommendations and of the judgements."""

Peer: TypeAlias = Callable[[Paths, tuple[int, ...]], Values]

_KILOBYTES_PER_GIGABYTE: Final = 1 << 20


def run_apart(name: str, paths: Paths, small: Paths, cutoffs: tuple[int, ...]) -> tuple[float, float, Values]:
    """Run a peer in a fresh process, first on a small input, so that imports and compilation are not timed.

    Returns
    -------
    seconds, gigabytes, values
        Time by the clock, peak of resident memory, and means by name.
    """
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_timed, (name, paths, small, cutoffs))


def _timed(name: str, paths: Paths, small: Paths, cutoffs: tuple[int, ...]) -> tuple[float, float, Values]:
    peer = ours if name == OURS else PEERS[name]
    peer(small, cutoffs)
    start = time.perf_counter()
    values = peer(paths, cutoffs)
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KILOBYTES_PER_GIGABYTE, values


def ours(paths: Paths, cutoffs: tuple[int, ...]) -> Values:
    """Evaluate with this project, in this process."""
    import pyarrow.parquet as pq  # noqa: PLC0415  (what is timed is loaded when its turn comes)

    from rankeval_spark import evaluate  # noqa: PLC0415  (as above)

    log, held_out = (pq.read_table(str(path)) for path in paths)
    asked = [f"{name}@{k}" for name in ("P", "R", "AP", "nDCG") for k in cutoffs]
    rows = evaluate(log, held_out, measures=asked, policies={"duplicates": "keep"}).metrics.to_pylist()
    return {f"{row['measure']}@{row['k']}": row["value"] for row in rows}


def duckdb(paths: Paths, cutoffs: tuple[int, ...]) -> Values:
    """Write it out in SQL, the fastest way that one node has: four measures, and no more than their means."""
    import duckdb as engine  # noqa: PLC0415  (peers are loaded when their turn comes)

    log, held_out = (f"read_parquet('{path}/*.parquet')" for path in paths)
    per_cutoff = ", ".join(_SQL_OF_A_CUTOFF.format(k=k) for k in cutoffs)
    means = ", ".join(_SQL_OF_MEANS.format(k=k) for k in cutoffs)
    query = _SQL.format(log=log, held_out=held_out, per_cutoff=per_cutoff, means=means, k_max=max(cutoffs))
    result = engine.connect().execute(query)
    row = result.fetchone()
    names = [column[0] for column in result.description or ()]
    return dict(zip(names, row or (), strict=True))


def pytrec_eval(paths: Paths, cutoffs: tuple[int, ...]) -> Values:
    """Use trec_eval's own code through Python dictionaries."""
    import pytrec_eval as trec  # noqa: PLC0415  (as above)

    log, held_out = paths
    run = _by_user(log, "score", float)
    judged = _by_user(held_out, "gain", int)
    ks = ",".join(map(str, cutoffs))
    names = {"P": "P", "recall": "R", "map_cut": "AP", "ndcg_cut": "nDCG"}
    found = trec.RelevanceEvaluator(judged, {f"{name}.{ks}" for name in names}).evaluate(run)
    return {
        f"{ours}@{k}": sum(values[f"{theirs}_{k}"] for values in found.values()) / len(found)
        for theirs, ours in names.items()
        for k in cutoffs
    }


def ranx(paths: Paths, cutoffs: tuple[int, ...]) -> Values:
    """Use ranx on data frames."""
    import ranx as library  # noqa: PLC0415  (as above)

    log, held_out = (_frame(path) for path in paths)
    held_out["gain"] = held_out["gain"].astype(int)
    qrels = library.Qrels.from_df(held_out, q_id_col="user_id", doc_id_col="item_id", score_col="gain")
    run = library.Run.from_df(log, q_id_col="user_id", doc_id_col="item_id", score_col="score")
    names = {"precision": "P", "recall": "R", "map": "AP", "ndcg": "nDCG"}
    found = library.evaluate(qrels, run, [f"{name}@{k}" for name in names for k in cutoffs])
    return {f"{names[name.split('@')[0]]}@{name.split('@')[1]}": float(value) for name, value in found.items()}


def replay_on_polars(paths: Paths, cutoffs: tuple[int, ...]) -> Values:
    """Use RePlay's OfflineMetrics on polars frames."""
    import polars as pl  # noqa: PLC0415  (as above)
    from replay.metrics import MAP, NDCG, OfflineMetrics, Precision, Recall  # noqa: PLC0415  (as above)

    log, held_out = (pl.read_parquet(path / "*.parquet") for path in paths)
    measures = [metric(list(cutoffs)) for metric in (Precision, Recall, MAP, NDCG)]
    offline = OfflineMetrics(measures, query_column="user_id", rating_column="score")
    relevant = held_out.filter(pl.col("gain") >= 1).select("user_id", "item_id")
    found = offline(log.select("user_id", "item_id", "score"), relevant)
    names = {"Precision": "P", "Recall": "R", "MAP": "AP", "NDCG": "nDCG"}
    return {f"{names[name.split('@')[0]]}@{name.split('@')[1]}": value for name, value in found.items()}


OURS: Final = "rankeval-spark in this process"

PEERS: Final[Mapping[str, Peer]] = {
    "DuckDB, SQL by hand": duckdb,
    "RePlay OfflineMetrics on polars": replay_on_polars,
    "pytrec_eval": pytrec_eval,
    "ranx": ranx,
}

_SQL_OF_A_CUTOFF: Final = """
    count(*) FILTER (gain >= 1 AND rank <= {k}) AS hits_{k},
    sum(precision) FILTER (gain >= 1 AND rank <= {k}) AS ap_{k},
    sum(gain / log2(rank + 1)) FILTER (rank <= {k}) AS dcg_{k},
    sum(gain / log2(ideal_rank + 1)) FILTER (ideal_rank <= {k}) AS idcg_{k}"""

_SQL_OF_MEANS: Final = """
    avg(hits_{k} / {k}.0) AS "P@{k}",
    avg(hits_{k} / n_relevant) AS "R@{k}",
    avg(coalesce(ap_{k}, 0) / n_relevant) AS "AP@{k}",
    avg(coalesce(dcg_{k}, 0) / idcg_{k}) AS "nDCG@{k}\""""

_SQL: Final = """
WITH ranked AS (
    SELECT user_id, item_id, row_number() OVER (PARTITION BY user_id ORDER BY score DESC, item_id) AS rank
    FROM {log} QUALIFY rank <= {k_max}
), judged AS (
    SELECT user_id, item_id, gain, row_number() OVER (PARTITION BY user_id ORDER BY gain DESC) AS ideal_rank
    FROM {held_out}
), matched AS (
    SELECT judged.*, rank,
        count(*) FILTER (gain >= 1) OVER (PARTITION BY user_id ORDER BY rank NULLS LAST) / rank AS precision
    FROM judged LEFT JOIN ranked USING (user_id, item_id)
), per_user AS (
    SELECT user_id, count(*) FILTER (gain >= 1) AS n_relevant, {per_cutoff}
    FROM matched GROUP BY user_id
)
SELECT {means} FROM per_user WHERE n_relevant > 0
"""


def _frame(path: Path) -> Any:  # noqa: ANN401 - a pandas frame, which not every peer needs
    """Read a table with its ids as text."""
    import pandas as pd  # noqa: PLC0415  (as above)

    return pd.read_parquet(path).astype({"user_id": str, "item_id": str})


def _by_user(path: Path, column: str, type_: type) -> dict[str, dict[str, Any]]:
    """Make the dictionary of dictionaries that pytrec_eval takes: user, item, value."""
    frame = _frame(path)
    frame[column] = frame[column].astype(type_)
    return {
        user: dict(zip(rows["item_id"].tolist(), rows[column].tolist(), strict=True))
        for user, rows in frame.groupby("user_id", sort=False)
    }
