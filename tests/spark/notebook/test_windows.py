"""``windows``, joins and sums of plain Spark, against the engine over hundreds of random logs, row by row."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

import pytest

from rankeval_spark import evaluate, windows
from rankeval_spark.config import Policies
from rankeval_spark.errors import ConfigError, InputError
from tests.support.frames import arrow_of, frame_of
from tests.support.plans import no_spark_jobs, python_nodes
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

N_CASES: Final = 100
"""Small logs of three users each, which are one log with users of their own."""

MODELS: Final = ("als", "it's")
ITEMS: Final = {"string": ("d2", "d10", "Z", "é", "𝄞", "\uffee", "d1"), "bigint": (-5, 2, 9, 10, 11, 3_000_000_000, 0)}
SCORES: Final = (0.0, -0.0, 0.5, 0.5 + 2**-53, -1.5, 1e300)
UNUSABLE: Final = (None, float("nan"), float("-inf"))
GAINS: Final = (-1.0, 0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 2.0, 3.0)
TIMES: Final = (None, *(dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2)))
CUTOFFS: Final = (1, 3, "all")
ASKED: Final = [
    *(f"{name}@{k}" for name in ("P", "R", "RR", "Success", "AP", "nDCG") for k in (1, 3)),
    *("R", "RR", "Success", "AP", "nDCG"),
]
LIST: Final = ("model_id", "user_id", "list_id")
COUNTS: Final = ("n_judged", "n_relevant", "n_recommended", "n_hits")

CASES: Final = [
    pytest.param({}, {}, id="by default"),
    pytest.param(
        {"ties": "item_desc_bytes", "duplicates": "keep", "held_out_duplicates": "sum"},
        {"ids": "bigint"},
        id="both copies count",
    ),
    pytest.param(
        {"ties": "rank", "held_out_duplicates": "last"}, {"lists": ("am", "pm"), "order": "both"}, id="ties by rank"
    ),
    pytest.param(
        {"ties": "optimistic", "judged_only": True, "population": "run", "zero_relevant": "one"},
        {"ids": "bigint", "lists": ("", "am", "pm")},
        id="judged items at their best, all with a list",
    ),
    pytest.param(
        {"ties": "pessimistic", "judged_only": True, "duplicates": "keep", "population": "judged"},
        {},
        id="judged items at their worst, all judged users",
    ),
    pytest.param(
        {"ties": "item_desc", "missing": "exclude"},
        {"ids": "bigint", "order": "both", "lists": ("", "am")},
        id="the larger item first, without users who have no list",
    ),
    pytest.param({"ties": "item_desc", "population": "intersection"}, {"order": "rank"}, id="by rank"),
    pytest.param(
        {"order": "rank", "ties": "pessimistic", "population": "judged", "zero_relevant": "one", "missing": "exclude"},
        {"order": "both"},
        id="by rank, whatever the scores",
    ),
    pytest.param(
        {"rank_gaps": "keep", "population": "run"}, {"ids": "bigint", "order": "unique rank"}, id="ranks with gaps"
    ),
    pytest.param(
        {"score_precision": "single", "population": "intersection_judged", "zero_relevant": "zero"},
        {"order": "both"},
        id="seven digits, users on both sides",
    ),
    pytest.param({"score_precision": "single"}, {"scores": "decimal(38,18)"}, id="decimals in seven digits"),
    pytest.param({}, {"scores": "bigint"}, id="whole numbers"),
]


def random_logs(
    *, ids: str = "string", lists: tuple[str, ...] = ("",), order: str = "score", scores: str = "double"
) -> tuple[pa.Table, pa.Table]:
    """Draw a log and judgements: ties, copies, unusable rows, missing lists, users on one side alone."""
    draw = random.Random(20261123)
    log: list[tuple[Any, ...]] = []
    held_out: list[tuple[Any, ...]] = []
    own_scores = SCORES if scores == "double" else (0, 1, 2, -1, 16_777_216, 16_777_217)
    for number in range(N_CASES * 3):
        user = number if ids == "bigint" else f"ü{number}"
        for model in MODELS:
            for name in lists:
                n_rows = draw.choice((0, 1, 4, 9))
                ranks: list[int | None] = draw.sample(range(1, 15), n_rows)
                if order != "unique rank":
                    ranks = [draw.choice((1, 2, 3, 4 if order == "rank" else None)) for _ in range(n_rows)]
                log += [(model, user, name, draw.choice(ITEMS[ids]), draw.choice(own_scores), rank) for rank in ranks]
        n_judged = draw.choice((0, 1, 3, 6))
        held_out += [(user, draw.choice(ITEMS[ids]), draw.choice(GAINS), draw.choice(TIMES)) for _ in range(n_judged)]
    user, item = 0 if ids == "bigint" else "ü0", ITEMS[ids][0]
    if scores == "double":
        log += [(MODELS[0], user, lists[0], item, score, 1) for score in UNUSABLE if order == "score"]
    log += [(MODELS[0], None, lists[0], item, own_scores[0], 5), (None, user, lists[0], item, own_scores[0], 5)]
    held_out += [(user, item, gain, None) for gain in UNUSABLE] + [(user, None, 1.0, None)]
    types = f"model_id string, user_id {ids}, list_id string, item_id {ids}, score {scores}, rank int"
    columns = {"score": ["score"], "both": ["score", "rank"], "rank": ["rank"], "unique rank": ["score", "rank"]}
    kept = [*(name for name in LIST if name != "list_id" or lists != ("",)), "item_id", *columns[order]]
    return (
        arrow_of(log, types).select(kept),
        arrow_of(held_out, f"user_id {ids}, item_id {ids}, gain double, interacted_at timestamp"),
    )


def by_list(rows: pa.Table, key: Sequence[str], values: Sequence[str]) -> dict[Any, dict[str, Any]]:
    """Return some values of each row by its key, and check that it is one."""
    found = {tuple(row[name] for name in key): {name: row[name] for name in values} for row in rows.to_pylist()}
    assert len(found) == rows.num_rows
    return found


def differing(found: Mapping[Any, Mapping[str, Any]], expected: Mapping[Any, Mapping[str, Any]]) -> dict[Any, Any]:
    """Return the rows with numbers that differ by more than 1e-12; NULL is close to NULL alone."""

    def is_close(one: Any, other: Any) -> bool:  # noqa: ANN401 - numbers and NULL
        return one is other if one is None or other is None else math.isclose(one, other, rel_tol=0, abs_tol=1e-12)

    return {
        key: (found[key], row)
        for key, row in expected.items()
        if not all(is_close(found[key][name], value) for name, value in row.items())
    }


@pytest.mark.parametrize(("policies", "drawn"), CASES)
def test_values_of_users_are_those_of_the_engine(
    spark: SparkSession, policies: dict[str, Any], drawn: dict[str, Any]
) -> None:
    """Counts exactly, measures within 1e-12, NULL where they are NULL; for every list of the population."""
    log, held_out = random_logs(**drawn)
    expected = by_list(
        evaluate(log, held_out, **sections(measures=ASKED, **policies)).user_metrics,
        [*LIST, "k"],
        [*COUNTS, *windows.MEASURES],
    )
    frames = (spark.createDataFrame(log), spark.createDataFrame(held_out))
    rows = windows.user_metrics(*frames, cutoffs=CUTOFFS, **policies).toArrow()
    found = by_list(rows, [*LIST, "k"], [*COUNTS, *windows.MEASURES])
    assert len(expected) > N_CASES * len(MODELS)
    assert found.keys() == expected.keys()
    assert differing(found, expected) == {}


@pytest.mark.parametrize(
    ("policies", "drawn"),
    [CASES[0], pytest.param({"duplicates": "keep", "ties": "rank"}, {"order": "both"}, id="copies"), CASES[8]],
)
def test_ranked_items_are_those_of_the_engine(
    spark: SparkSession, policies: dict[str, Any], drawn: dict[str, Any]
) -> None:
    log, held_out = random_logs(**drawn)
    key = [*LIST, "item_id", "rank"]
    expected = by_list(evaluate(log, held_out, **sections(measures=["nDCG"], **policies)).ranked_items, key, ["gain"])
    frames = (spark.createDataFrame(log), spark.createDataFrame(held_out))
    found = windows.ranked_items(*frames, **policies).toArrow()
    assert by_list(found, key, ["gain"]) == expected
    assert found["is_relevant"].to_pylist() == [(gain or 0) >= 1 for gain in found["gain"].to_pylist()]


def test_every_policy_is_followed_in_a_case_or_refused() -> None:
    """A policy that is added to ``evaluate`` is refused until a case shows that windows follow it."""
    hints = get_type_hints(windows.WindowPolicies)
    assert hints.keys() <= Policies.model_fields.keys()
    of_cases: list[Any] = [case.values[0] for case in CASES]
    shown = {(name, value) for policies in of_cases for name, value in policies.items()}
    defaults = {(name, field.default) for name, field in Policies.model_fields.items()}
    followed = {(name, value) for name, hint in hints.items() for value in get_args(hint) or (False, True)}
    assert followed <= shown | defaults | {("population", "truth")}


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ({"ties": "expected"}, "windows.user_metrics(ties=): found 'expected'; expected one of item_asc"),
        ({"duplicates": "error"}, "windows.user_metrics(duplicates=): found 'error'; expected one of best, keep"),
        ({"unit": "list"}, "windows.user_metrics(unit=): found 'list'; expected 'user'"),
        ({"lists": "pooled"}, "call evaluate(lists='pooled')"),
        ({"rank_gaps": "keep", "judged_only": True}, "expected rank_gaps 'renumber'"),
        ({"seen_in_train": "drop"}, "call evaluate(seen_in_train='drop')"),
        ({"tie": "rank"}, "did you mean 'ties'?"),
        ({"cutoffs": [0]}, "write all for the whole list"),
        ({"cutoffs": 10}, "windows.user_metrics(cutoffs=): found 10; expected a list"),
        ({"models": []}, "windows.user_metrics(models=)"),
    ],
)
def test_what_windows_do_not_follow_is_refused(spark: SparkSession, policies: dict[str, Any], words: str) -> None:
    frames = [spark.createDataFrame(table) for table in random_logs()]
    with pytest.raises(ConfigError) as refused:
        windows.user_metrics(*frames, **{"cutoffs": [10], **policies})
    assert words in str(refused.value)


def test_columns_that_windows_cannot_use_are_refused(spark: SparkSession) -> None:
    log = frame_of(spark, [("u", "a", "", 1.0)], "user_id string, item_id string, list_id string, score double")
    judged = frame_of(spark, [("u", "a", "")], "user_id string, item_id string, list_id string")
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (log, judged, {}, "held_out: found a column 'list_id'; expected judgements of users"),
        (log, judged.drop("list_id"), {"ties": "rank"}, "found no column 'rank'"),
        (log.drop("score"), judged.drop("list_id"), {}, "neither a score nor a rank"),
        (log, [("u", "a")], {}, "windows.ranked_items(held_out=): found a list"),
    ]
    for recommendations, held_out, policies, words in cases:
        with pytest.raises(InputError) as refused:
            windows.ranked_items(recommendations, held_out, **policies)
        assert words in str(refused.value)


def test_no_job_starts_before_an_action_and_no_python_after_it(spark: SparkSession) -> None:
    frames = [spark.createDataFrame(table) for table in random_logs()]
    with no_spark_jobs(spark):
        planned = [
            windows.ranked_items(*frames),
            windows.user_metrics(*frames, cutoffs=[10], held_out_duplicates="sum"),
        ]
    assert [python_nodes(frame) for frame in planned] == [[], []]


def test_users_of_named_models_are_missing_where_the_log_is_empty(spark: SparkSession) -> None:
    types = "model_id string, user_id string, item_id string, score double"
    judged = frame_of(spark, [("u", "a")], "user_id string, item_id string")
    log = frame_of(spark, [("pop", "u", "a", 1.0)], types)
    found = windows.user_metrics(log, judged, cutoffs=[2], models=["als"])
    assert [(row.model_id, row.list_id, row.n_recommended, row.ndcg) for row in found.collect()] == [("als", "", 0, 0)]
