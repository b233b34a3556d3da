"""Functions for SQL over published lists: ``SELECT ndcg(hit_ranks, hit_gains, judged_gains, 10) FROM lists``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.pandas.functions import pandas_udf

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import parent_indices, to_numpy
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.measures import Lists, Measure, MeasureSet

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql._typing import UserDefinedFunctionLike

    from rankeval_spark.measures.arrays import FloatVector, IntVector

FUNCTIONS: Final = {
    "ndcg": "nDCG",
    "dcg": "DCG",
    "precision": "P",
    "recall": "R",
    "reciprocal_rank": "RR",
    "average_precision": "AP",
    "hit_rate": "Success",
}
"""Names of the functions in SQL, and the measures that they compute."""

_OF_GAINS: Final = ("nDCG", "DCG")
_MAX_CUTOFFS: Final = 64  # distinct cutoffs of a batch that are computed at once


def register_functions(
    spark: SparkSession, *, prefix: str = "", rel: float = 1, dcg: str = "log2"
) -> dict[str, Callable[..., Column]]:
    """Register ``ndcg``, ``dcg``, ``precision``, ``recall``, ``reciprocal_rank``, ``average_precision``, ``hit_rate``.

    Each takes ``(hit_ranks, hit_gains, judged_gains, k)``: three columns of the table ``lists``, and a cutoff of at
    least 1. It returns the measure at k as a double, as ``user_metrics`` has it: NULL where it is undefined. An array
    that is NULL is empty. The kernels of ``evaluate`` compute whole batches, in workers that have this package.

    A function of the session that has the same name is replaced; none that is built into Spark has.

    Parameters
    ----------
    spark : SparkSession
        Session, also one of Spark Connect; the functions last as long as it does.
    prefix : str
        Start of each name, such as ``rankeval_`` for ``rankeval_ndcg``.
    rel : float
        Gain from which an item is relevant; ``ndcg`` and ``dcg`` read the gains themselves.
    dcg : str
        Gain and discount of ``ndcg`` and ``dcg``, as the option of nDCG; not "geometric", which has a further option.

    Returns
    -------
    dict of str to function
        The functions by their names, for columns of DataFrames.

    Raises
    ------
    ConfigError
        If an argument is not valid.
    """
    if not re.fullmatch(r"([A-Za-z_]\w*)?", str(prefix), re.ASCII):
        expected = "letters, digits and underscores, such as rankeval_"
        raise ConfigError(Fault("register_functions(prefix=)", repr(prefix), expected))
    found = {}
    for name, measure in FUNCTIONS.items():
        option = f"dcg={dcg!r}" if measure in _OF_GAINS else f"rel={rel!r}"
        parsed = Measure.parse(f"{measure}({option})@1", where="register_functions")
        found[f"{prefix}{name}"] = _build_function(f"{prefix}{name}", parsed)
    return {name: spark.udf.register(name, function) for name, function in found.items()}


def _build_function(name: str, measure: Measure) -> UserDefinedFunctionLike:
    """Return the Pandas UDF of a measure."""

    def compute(hit_ranks: pd.Series, hit_gains: pd.Series, judged_gains: pd.Series, k: pd.Series) -> pd.Series:
        lists = _to_lists(name, {C.HIT_RANKS: hit_ranks, C.HIT_GAINS: hit_gains, C.JUDGED_GAINS: judged_gains})
        return pd.Series(_values_at(measure, lists, _to_cutoffs(name, k)))

    compute.__name__ = compute.__qualname__ = name  # for messages of Spark and of Python
    # pyspark's stubs know no function whose kind follows from its hints
    function: UserDefinedFunctionLike = pandas_udf(compute, "double")  # type: ignore[call-overload]  # as above
    return function


def _to_lists(name: str, columns: Mapping[str, pd.Series]) -> Lists:
    """Build the batch that kernels read; hits and judgements of a list can be in any order."""
    (hit_list, rank), (gain_list, hit_gain), (judged_list, judged_gain) = (
        _flatten(f"{name}({column})", arrays) for column, arrays in columns.items()
    )
    if not np.array_equal(hit_list, gain_list):
        fix = "take both columns from the same row of lists"
        _refuse(name, "hit_ranks and hit_gains of different lengths", "a gain for each rank", fix)
    if not (rank == np.floor(rank)).all() or rank.min(initial=1) < 1:
        _refuse(f"{name}({C.HIT_RANKS})", "a rank that is not 1, 2, 3, ...", "ranks from 1", "")
    by_rank, best_first = np.lexsort((rank, hit_list)), np.lexsort((-judged_gain, judged_list))
    hit_rank = rank[by_rank].astype(np.int64)  # (hits,)
    n_recommended = np.zeros(len(columns[C.HIT_RANKS]), dtype=np.int64)  # (lists,)
    n_recommended[hit_list] = hit_rank  # the last hit; no measure here reads how long a list is after it
    hits = hit_list, hit_rank, hit_gain[by_rank]
    return Lists(n_recommended, *hits, judged_list=judged_list, judged_gain=judged_gain[best_first])


def _flatten(place: str, arrays: pd.Series) -> tuple[IntVector, FloatVector]:
    """Return the list of each number, and the numbers; NULL has none."""
    try:
        column = pa.Array.from_pandas(arrays).cast(pa.list_(pa.float64()))
    except pa.ArrowException:
        _refuse(place, "something else than arrays of numbers", "that column of the table lists", "")
    numbers = to_numpy(column.flatten(), null=np.nan)
    if not np.isfinite(numbers).all():
        _refuse(place, "NULL, NaN or infinity in an array", "numbers", "")
    return parent_indices(column), numbers


def _to_cutoffs(name: str, k: pd.Series) -> IntVector:
    """Return the cutoff of each list."""
    numbers = pd.to_numeric(k, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    is_bad = ~((numbers >= 1) & (numbers == np.floor(numbers)) & np.isfinite(numbers))
    if is_bad.any():
        found = k.iloc[int(np.argmax(is_bad))]
        fix = "for the whole list, write a k that no list is longer than"
        _refuse(f"{name}(k)", "NULL" if pd.isna(found) else f"{found}", "a whole number of at least 1", fix)
    return numbers.astype(np.int64)


def _values_at(measure: Measure, lists: Lists, k: IntVector) -> FloatVector:
    """Compute the measure of each list at its cutoff, shape (n_lists,); NaN where it is undefined."""
    values = np.full(lists.n_lists, np.nan)
    cutoffs, place = np.unique(k, return_inverse=True)
    for start in range(0, len(cutoffs), _MAX_CUTOFFS):
        at_once = MeasureSet(
            tuple(
                Measure(measure.name, measure.options.items(), int(cutoff))
                for cutoff in cutoffs[start : start + _MAX_CUTOFFS]
            )
        )
        scored = at_once.score(lists)[measure.column]  # (n_lists, cutoffs at once)
        rows = np.flatnonzero((place >= start) & (place < start + scored.shape[1]))
        values[rows] = scored[rows, place[rows] - start]
    return values


def _refuse(where: str, found: str, expected: str, fix: str) -> NoReturn:
    raise InputError(Fault(where, found, expected, fix))
