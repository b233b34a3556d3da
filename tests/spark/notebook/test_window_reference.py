"""``evaluate`` against plain Spark: windows, joins and sums over hundreds of random logs, row by row."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from tests.support.frames import by, frame_of
from tests.support.window_reference import COUNTS, LIST, MEASURES, Rules, to_user_metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

N_CASES: Final = 300
"""Small logs of three users each, which are one log with users of their own."""

MODELS: Final = ("als", "it's")
ITEMS: Final = {"string": ("d2", "d10", "Z", "é", "𝄞", "\uffee", "d1"), "bigint": (-5, 2, 9, 10, 11, 3_000_000_000, 0)}
SCORES: Final = (0.0, -0.0, 0.5, 0.5 + 2**-53, -1.5, 1e300)
GAINS: Final = (-1.0, 0.0, 0.1, 0.2, 0.3, 1.0, 2.0, 3.0)
TIMES: Final = (None, *(dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2)))
KS: Final = (1, 3, 0)
ASKED: Final = [
    *(f"{name}@{k}" for name in ("P", "R", "RR", "Success", "AP", "nDCG") for k in (1, 3)),
    *("R", "RR", "Success", "AP", "nDCG"),
]

CASES: Final = [
    pytest.param(Rules(), {}, id="by default"),
    pytest.param(Rules("item_desc_bytes", "keep", "sum"), {"ids": "bigint"}, id="both copies count"),
    pytest.param(Rules("rank", held_out_duplicates="last"), {"lists": ("am", "pm")}, id="ties by rank"),
    pytest.param(
        Rules("optimistic", judged_only=True), {"ids": "bigint", "lists": ("", "am", "pm")}, id="judged items, the best"
    ),
    pytest.param(Rules("pessimistic", "keep", "sum", judged_only=True), {}, id="judged items, the worst"),
    pytest.param(Rules("item_desc"), {"ids": "bigint"}, id="the larger item first"),
    pytest.param(Rules("item_desc"), {"order": "rank"}, id="by rank"),
    pytest.param(Rules(rank_gaps="keep"), {"ids": "bigint", "is_rank_unique": True}, id="ranks with gaps"),
]


def random_logs(
    spark: SparkSession,
    *,
    ids: str = "string",
    lists: tuple[str, ...] = ("",),
    order: str = "score",
    is_rank_unique: bool = False,
) -> tuple[DataFrame, DataFrame]:
    """Draw a log and judgements: ties, copies, lists that are missing, users on one side alone."""
    draw = random.Random(20261123)
    log: list[tuple[Any, ...]] = []
    held_out: list[tuple[Any, ...]] = []
    for number in range(N_CASES * 3):
        user = number if ids == "bigint" else f"ü{number}"
        for model in MODELS:
            for name in lists:
                n_rows = draw.choice((0, 1, 4, 9))
                ranks: list[int | None] = draw.sample(range(1, 15), n_rows)
                if not is_rank_unique:
                    ranks = [draw.choice((1, 2, 3, None if order == "score" else 4)) for _ in range(n_rows)]
                log += [(model, user, name, draw.choice(ITEMS[ids]), draw.choice(SCORES), rank) for rank in ranks]
        n_judged = draw.choice((0, 1, 3, 6))
        held_out += [(user, draw.choice(ITEMS[ids]), draw.choice(GAINS), draw.choice(TIMES)) for _ in range(n_judged)]
    types = f"model_id string, user_id {ids}, list_id string, item_id {ids}, score double, rank int"
    kept = [*LIST, "item_id", *(["score"] if order == "score" else []), "rank"]
    return (
        frame_of(spark, log, types).select(kept),
        frame_of(spark, held_out, f"user_id {ids}, item_id {ids}, gain double, interacted_at timestamp"),
    )


def values(frame: DataFrame) -> dict[Any, dict[str, Any]]:
    """Read counts and measures by list and cutoff."""
    return {key: row.asDict() for key, row in by(_packed(frame), *LIST, "k", value="row").items()}


def _packed(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(*LIST, "k", f"struct({', '.join((*COUNTS, *MEASURES))}) AS row")


def is_close(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Compare numbers within 1e-12; NULL is close to NULL alone."""
    pairs = [(found[name], value) for name, value in expected.items()]
    return all(
        one is other if one is None or other is None else math.isclose(one, other, rel_tol=0, abs_tol=1e-12)
        for one, other in pairs
    )


@pytest.mark.parametrize(("rules", "options"), CASES)
def test_rows_of_users_are_those_of_windows_and_joins(
    spark: SparkSession, rules: Rules, options: dict[str, Any]
) -> None:
    """Counts exactly, measures within 1e-12, NULL where they are NULL; for every list of every judged user."""
    log, held_out = random_logs(spark, **options)
    has_lists = "lists" in options

    result = evaluate(log if has_lists else log.drop("list_id"), held_out, measures=ASKED, **asdict(rules))
    found = values(result.user_metrics)
    expected = values(to_user_metrics(log, held_out, rules=rules, models=MODELS, ks=KS))

    assert len(expected) > N_CASES * len(MODELS) * len(KS)
    assert found.keys() == expected.keys()
    assert {key: (found[key], row) for key, row in expected.items() if not is_close(found[key], row)} == {}
