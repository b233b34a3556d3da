"""Agreement of each model's lists with a baseline's, against the formulas depth by depth."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.support.arrow_frames import dicts, judgements, table

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

K, P = 6, 0.8


def evaluation_of(lists: dict[str, dict[str, list[str]]], models: list[str] | None = None) -> Evaluation:
    rows = [
        (model, user, item, float(-place))
        for model, by_user in lists.items()
        for user, items in by_user.items()
        for place, item in enumerate(items)
    ]
    log = table("model_id user_id item_id score", *rows)
    return evaluate(log, judgements({"u0": {"a": 1}}), measures=["P@1"], models=models)


def rbo(one: list[str], other: list[str], p: float) -> float:
    """Equation 32 of Webber et al., term by term."""
    short, long = sorted((one, other), key=len)
    s, n = len(short), len(long)

    def common(depth: int) -> int:
        return len(set(short[:depth]) & set(long[:depth]))

    seen = sum(common(d) / d * p**d for d in range(1, n + 1))
    unseen = sum(common(s) * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return (1 - p) / p * (seen + unseen) + ((common(n) - common(s)) / n + common(s) / s) * p**n


@pytest.mark.parametrize("models", [None, ["new", "base", "other"]], ids=["models found", "models named"])
def test_values_are_those_of_the_formulas(models: list[str] | None) -> None:
    draw = random.Random(11)
    lists = {
        model: {
            f"u{user}": draw.sample("abcdefghij", draw.choice([1, 3, 6, 9]))
            for user in range(30)
            if draw.random() < 0.8
        }
        for model in ("base", "new", "other")
    }
    found = evaluation_of(lists, models).agreement("base", k=K, p=P)
    assert found.column_names == ["model_id", "user_id", "overlap", "jaccard", "rbo"]

    expected = {}
    for model in ("new", "other"):
        for user in lists[model].keys() & lists["base"].keys():
            one, other = lists[model][user][:K], lists["base"][user][:K]
            common = len(set(one) & set(other))
            expected[model, user] = (common / K, common / len({*one, *other}), rbo(one, other, P))
    rows = {(row["model_id"], row["user_id"]): tuple(row.values())[2:] for row in dicts(found)}
    assert rows.keys() == expected.keys()
    for key, values in expected.items():
        assert rows[key] == pytest.approx(values, rel=0, abs=1e-12), key


def test_the_same_lists_agree_wholly_and_lists_without_a_common_item_not_at_all() -> None:
    lists = {"base": {"u1": ["a", "b"], "u2": ["a", "b"]}, "new": {"u1": ["a", "b"], "u2": ["c", "d"]}}
    rows = {row["user_id"]: tuple(row.values())[2:] for row in dicts(evaluation_of(lists).agreement("base", k=2))}
    assert rows["u1"] == pytest.approx((1, 1, 1), rel=0, abs=1e-12)
    assert rows["u2"] == (0, 0, 0)


@pytest.mark.parametrize(("k", "p"), [(True, "half"), (2.5, None)])
def test_a_cutoff_and_a_persistence_that_are_no_numbers_are_refused(k: Any, p: Any) -> None:  # noqa: ANN401 - what users pass
    with pytest.raises(ConfigError) as refused:
        evaluation_of({"base": {"u1": ["a"]}}, ["base"]).agreement("base", k=k, p=p)
    assert [fault.where for fault in refused.value.faults] == ["agreement(k=)", "agreement(p=)"]


def test_numbers_of_numpy_are_numbers() -> None:
    found = evaluation_of({"base": {"u1": ["a"]}, "new": {"u1": ["a"]}})
    k: Any = np.int64(2)
    assert found.agreement("base", k=k, p=np.float64(0.9)) == found.agreement("base", k=2)


def test_what_cannot_be_compared_is_refused_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        evaluation_of({"base": {"u1": ["a"]}}, ["base"]).agreement("ghost", k=0, p=1.0)
    assert [fault.where for fault in refused.value.faults] == [
        "agreement(baseline=)",
        "agreement(k=)",
        "agreement(p=)",
    ]
