"""Bootstrap intervals the whole way: against replicates that are drawn from the users' values in numpy."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np
import pytest

from rankeval_spark import columns as C, evaluate
from rankeval_spark.measures import Measure
from rankeval_spark.statistics import hashed_random, intervals
from tests.support.arrow_frames import dicts, tuples
from tests.support.logs import Logs

LOGS: Final = Logs.make(seed=20260107)
MEANS: Final = ("nDCG@3", "Success@3", "R(agg='micro')@3", "GMAP")
REPLICATES: Final = 200
SEED: Final = 11
LEVEL: Final = 0.9
KEY: Final = (C.MODEL_ID, C.SLICE_VALUE, C.MEASURE)
SPREAD: Final = ("std_error", "ci_low", "ci_high", "ci_method")


def drawn(measure: Measure, users: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Draw the users of a slice, whose rows of ``user_metrics`` are given: the columns SPREAD."""
    own = [row for row in users if row["k"] == measure.k and row[measure.column] is not None]
    below = np.array([row[measure.weight_column] if measure.weight_column else 1.0 for row in own])
    above = np.array([row[measure.column] for row in own]) * below
    hashes = hashed_random.user_hashes([row[C.USER_ID] for row in own])
    weights = hashed_random.poisson_weights(hashes, seed=SEED, replicates=REPLICATES).T.astype(np.float64)
    is_there = weights @ below > 0
    if (~is_there).mean() > 0.05:
        return (None, None, None, "none")
    found = (weights @ above)[is_there] / (weights @ below)[is_there]
    ends = intervals.published(measure.link, np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return (*(pytest.approx(float(each), rel=0, abs=1e-12) for each in (found.std(ddof=1), *ends)), "bootstrap")


@pytest.mark.parametrize(("n_chunks", "of_all_lists"), [(1, ()), (7, ("ItemCoverage@3",))])
def test_intervals_are_those_of_users_drawn_in_numpy(n_chunks: int, of_all_lists: tuple[str, ...]) -> None:
    """Of two models and of slices, one of them unknown; measures of all lists keep the jackknife."""
    inputs = LOGS.tables().in_chunks(n_chunks)
    result = evaluate(
        inputs.recommendations,
        inputs.held_out,
        measures=[*MEANS, *of_all_lists],
        segments=inputs.segments,
        slices=["country"],
        intervals={"confidence": LEVEL, "method": "bootstrap", "replicates": REPLICATES, "seed": SEED},
    )
    found = {row[:3]: row[3:] for row in tuples(result.metrics, *KEY, *SPREAD)}
    users = dicts(result.user_metrics)
    expected: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for model, country in itertools.product(("als", "popular"), ("", "DE", "FR", C.UNKNOWN)):
        own = [row for row in users if row[C.MODEL_ID] == model and country in ("", country_of(row))]
        for text in MEANS:
            measure = Measure.parse(text)
            expected[model, country, measure.label] = drawn(measure, own)
    of_means = {key: values for key, values in found.items() if key[-1] != "ItemCoverage"}
    assert of_means == expected
    assert "bootstrap" in {values[-1] for values in of_means.values()}
    methods = {values[-1] for key, values in found.items() if key not in of_means}
    assert methods == ({"none"} if of_all_lists else set())  # 12 items are too few for an error of coverage


def country_of(row: dict[str, Any]) -> str:
    """Name the country of a user."""
    return dict(row[C.SEGMENTS]).get("country") or C.UNKNOWN
