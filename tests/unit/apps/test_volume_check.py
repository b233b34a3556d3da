"""Rows, models and users of a night against those of the nights before, from what was published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from rankeval_spark.apps import run_history
from rankeval_spark.apps.published_runs import PastNight
from rankeval_spark.config import Policies
from rankeval_spark.results import RunRecord

FIRST = date(2026, 1, 1)
LOG = {"format": "delta", "path": "log", "filters": [{"column": "day", "op": "=", "value": "{date}"}]}


def config(**changes: Any) -> str:  # noqa: ANN401 - any values of a config
    policies = Policies().model_dump()
    return json.dumps({"inputs": {"recommendations": LOG}, "models": None, "policies": policies, **changes})


def night(day: int, n_rows: int | None, **changes: Any) -> PastNight:  # noqa: ANN401 - as above
    inputs = [{"name": "recommendations", "version": day, "n_rows": n_rows}]
    return PastNight(dict(evaluation_date=FIRST + timedelta(days=day), config=config(**changes), inputs=inputs))


def facts(**changes: Any) -> RunRecord:  # noqa: ANN401 - as above
    return RunRecord("nightly", FIRST + timedelta(days=9), "run", config=config(**changes))


def volumes(n_rows: int, *nights: PastNight, **changes: Any) -> list[tuple[int, int, list[str]]]:  # noqa: ANN401 - as above
    """Count, total and samples; the input has rows tonight, and so has one that no night before had."""
    rows = run_history.to_volume_facts({"recommendations": n_rows, "train": 5}, facts(**changes), nights)
    assert all((row.input, row.check) == ("recommendations", "volume") for row in rows)
    return [(row.count, row.total, list(row.sample_keys)) for row in rows]


@pytest.mark.parametrize(
    ("n_rows", "count", "total"),
    [(50, 50, 100), (200, 100, 200), (0, 100, 100)],  # of the median of 90, 100 and 1000
)
def test_rows_are_held_against_the_median_of_the_nights_before_both_ways(n_rows: int, count: int, total: int) -> None:
    words = [f"{n_rows:,} rows, 100 by the median of 3 nights"]
    assert volumes(n_rows, night(1, 90), night(2, 1000), night(3, 100)) == [(count, total, words)]


def test_as_many_rows_as_ever_are_no_case_and_two_nights_say_nothing() -> None:
    nights = [night(day, 100) for day in range(3)]
    assert volumes(100, *nights) == [(0, 100, [])]
    assert volumes(100, *nights[:2]) == []
    assert volumes(100, *nights[:2], night(4, None)) == []  # rows that were not counted


def test_only_nights_that_read_the_input_alike_are_compared() -> None:
    pin_config = {"recommendations": {**LOG, "version": 7, "timestamp": None}}
    other = {"recommendations": {**LOG, "path": "another"}}
    alike = [night(1, 100, inputs=pin_config), night(2, 100, cutoffs=[5]), night(3, 100)]
    unlike = [night(4, 1, inputs=other), night(5, 1, models=["als"]), night(6, 1, inputs=other)]
    assert volumes(100, *alike, *unlike) == [(0, 100, [])]
    assert volumes(1, *unlike, night(7, 1, models=["als"]), night(8, 1, models=["als"]), models=["als"]) == [(0, 1, [])]
    found = run_history.last_alike(facts(models=["als"]), [*alike, *unlike[:2], unlike[2]])
    assert found is unlike[1]  # other models, but read from the same rows
    assert run_history.last_alike(facts(), [unlike[0]]) is None


def mean(model: str, n: int, *, n_missing: int | None = 0, n_extra: int = 0, n_undefined: int = 0) -> dict[str, Any]:
    counts = {"n_users": n, "n_missing": n_missing, "n_extra_users": n_extra, "n_undefined": n_undefined}
    return {"model_id": model, **counts}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, 10 + 2 - 3 + 1),  # judged users, undefined ones among them, without the missing, and one more
        ({"missing": "exclude"}, 10 + 2 + 1),
        ({"population": "intersection"}, 10 + 2 + 1),
        ({"population": "run"}, 10 + 2),  # everyone with a list is in the mean already
    ],
)
def test_users_with_a_list_follow_from_the_counts_next_to_the_means(policies: dict[str, str], expected: int) -> None:
    rows = [mean("als", 10, n_missing=3, n_extra=1, n_undefined=2), mean("als", 99, n_missing=None)]
    recorded = {"policies": Policies(**policies).model_dump()}  # type: ignore[arg-type] # pydantic takes the text
    assert run_history.users_with_list(rows, recorded) == {"als": expected}


def of_models(
    tonight: Sequence[Mapping[str, Any]],
    before: Sequence[Mapping[str, Any]],
    **changes: Any,  # noqa: ANN401 - as above
) -> dict[str, tuple[int, int, list[str]]]:
    rows = run_history.to_model_facts(facts(**changes), tonight, before, night(8, 1))
    assert {row.input for row in rows} <= {"recommendations"}
    return {row.check: (row.count, row.total, list(row.sample_keys)) for row in rows}


def test_models_without_a_list_tonight_are_absent_whether_they_are_named_or_not() -> None:
    before = [mean(model, 10) for model in ("als", "knn", "pop", "top", "vae")]
    tonight = [mean("als", 10), mean("knn", 10, n_missing=10), mean("new", 10)]
    found = of_models(tonight, before)
    assert found["absent_models"] == (4, 5, ["knn", "pop", "top"])
    assert found["fewer_users"] == (0, 10, [])
    named = of_models(tonight, before, models=["als", "knn", "new"])
    assert named["absent_models"] == (1, 2, ["knn"])  # the others were taken out on purpose
    assert of_models(tonight, [mean("als", 0)]) == {}


def test_the_model_that_lost_most_of_its_users_is_named() -> None:
    before = [mean("als", 1000), mean("pop", 10), mean("vae", 4)]
    found = of_models([mean("als", 900), mean("pop", 4), mean("vae", 8)], before)
    assert found["fewer_users"] == (10 - 4, 10, ["pop: 4 users with a list, 10 on 2026-01-09"])
    assert found["absent_models"] == (0, 3, [])
    assert of_models([mean("new", 1)], before)["fewer_users"] == (0, 0, [])
