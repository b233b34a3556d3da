"""The lists of two models side by side: ranks of their hits, and agreement."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.evaluate.test_attribution import tables
from tests.evaluate.test_means_over_lists import log_of, random_lists
from tests.support.arrow_frames import dicts, judgements, table, tuples
from tests.support.attribution_cases import HOUR, Event, Shown, moment, random_logs
from tests.support.sections import measured

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark import Evaluation


# ---- at which rank each of two models had the hits of a user, side by side -----------------------------------------


COLUMNS: Final = ("user_id", "list_id", "item_id", "gain", "baseline_rank", "rank")


def log(**lists: str) -> pa.Table:
    """Give the lists of ann by model, best first."""
    rows = [(model, "ann", item, float(-place)) for model, items in lists.items() for place, item in enumerate(items)]
    return table("model_id user_id item_id score", *rows)


def test_each_hit_of_either_model_has_a_row() -> None:
    held_out = judgements({"ann": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 0.0}, "bob": {"a": 1.0}})
    result = evaluate(log(als="xabe", pop="bcxe", other="d"), held_out, measures=["RR@3"])
    found = result.hit_ranks("als", baseline="pop")
    assert tuple(found.column_names) == COLUMNS
    # d is no hit of the two, e is not relevant, and bob has no list.
    assert tuples(found, *COLUMNS) == [
        ("ann", "", "a", 2.0, None, 2),
        ("ann", "", "b", 1.0, 1, 3),
        ("ann", "", "c", 1.0, 2, None),
    ]


def by_hand(ranked: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Look for each relevant item of a list of als or pop in the lists of both."""
    rows = [row for row in ranked if row["model_id"] in ("als", "pop")]
    wanted: dict[Any, list[float]] = {}
    for row in rows:
        if row["is_relevant"]:
            wanted.setdefault((row["user_id"], row["list_id"], row["item_id"]), []).append(row["gain"])
    return [
        (*key, max(gains), *(_best(rows, model, key) for model in ("pop", "als")))
        for key, gains in sorted(wanted.items())
    ]


def _best(rows: list[dict[str, Any]], model: str, key: tuple[str, ...]) -> int | None:
    own = [row for row in rows if (row["user_id"], row["list_id"], row["item_id"]) == key and row["model_id"] == model]
    return min((row["rank"] for row in own), default=None)


def test_hits_are_those_of_the_ranked_items_list_by_list() -> None:
    lists, judged = random_lists(1, n_users=30)
    result = evaluate(log_of(lists), judgements(judged), measures=["RR@3"])
    assert tuples(result.hit_ranks("als", "pop"), *COLUMNS) == by_hand(result.ranked_items.to_pylist())


@pytest.mark.filterwarnings("ignore:.* rows have no time that can be read")
@pytest.mark.parametrize("claim", ["last_touch", "first_touch", "all"])
def test_hits_of_attributed_lists_have_the_ranks_of_both_models(claim: str) -> None:
    options: dict[str, Any] = {"attribution": claim, "attribution_window": "2h", "held_out_duplicates": "sum"}
    result = measured(*tables(*random_logs(n_users=60)), measures=["R"], **options)
    found = tuples(result.hit_ranks("als", "pop"), *COLUMNS)
    assert found == by_hand(result.ranked_items.to_pylist())
    assert any(None not in row for row in found)


def test_an_item_that_is_judged_in_another_list_of_one_model_was_recommended_by_both() -> None:
    shown = [("als", "1", 1), ("pop", "1", 1), ("pop", "2", 2)]
    lists = [Shown(model, "ann", name, "s", 1.0, moment(hour * HOUR)) for model, name, hour in shown]
    options: dict[str, Any] = {"attribution": "last_touch", "attribution_window": "1d"}
    events = [Event("ann", "s", 1.0, moment(3 * HOUR))]
    found = measured(*tables(lists, events), measures=["R"], **options).hit_ranks("als", "pop")
    assert tuples(found, *COLUMNS) == [("ann", "1", "s", 1.0, 1, 1), ("ann", "2", "s", 1.0, 1, None)]


def test_gains_that_differ_between_models_are_one_row_of_the_larger() -> None:
    shown = [("als", "1", 1), ("pop", "1", 1), ("pop", "2", 3)]
    lists = [Shown(model, "ann", name, "s", 1.0, moment(hour * HOUR)) for model, name, hour in shown]
    options: dict[str, Any] = {"attribution": "last_touch", "attribution_window": "1d", "held_out_duplicates": "sum"}
    events = [Event("ann", "s", 1.0, moment(hour * HOUR)) for hour in (2, 4)]
    found = measured(*tables(lists, events), measures=["R"], **options).hit_ranks("als", "pop")
    assert tuples(found, *COLUMNS) == [("ann", "1", "s", 2.0, 1, 1), ("ann", "2", "s", 1.0, 1, None)]


def test_the_best_of_several_copies_counts() -> None:
    result = measured(log(als="aab", pop="ba"), judgements({"ann": {"a": 1.0}}), measures=["RR@3"], duplicates="keep")
    assert tuples(result.hit_ranks("als", "pop"), *COLUMNS) == [("ann", "", "a", 1.0, 2, 1)]


def test_ids_keep_their_type_and_no_hit_is_no_row() -> None:
    numbers = table("model_id user_id item_id score", ("als", 1, 7, 1.0), ("pop", 1, 8, 1.0), ids="bigint")
    found = evaluate(numbers, table("user_id item_id", (1, 9), ids="bigint"), measures=["RR@3"]).hit_ranks("als", "pop")
    assert found.num_rows == 0
    assert [str(found.schema.field(name).type) for name in ("user_id", "item_id", "rank")] == [
        "int64",
        "int64",
        "int32",
    ]


def test_other_models_are_refused_with_the_nearest_name() -> None:
    result = evaluate(log(als="a", pop="b"), judgements({"ann": {"a": 1.0}}), measures=["RR@3"])
    with pytest.raises(ConfigError) as raised:
        result.hit_ranks("alz", "popp")
    assert [fault.where for fault in raised.value.faults] == ["hit_ranks(model=)", "hit_ranks(baseline=)"]
    assert "did you mean 'als'" in str(raised.value)
    with pytest.raises(ConfigError, match="the same model"):
        result.hit_ranks("als", "als")


# ---- agreement of each model's lists with a baseline's, against the formulas depth by depth ------------------------


K, P = 6, 0.8


def of_lists(lists: dict[str, dict[str, list[str]]], models: list[str] | None = None) -> Evaluation:
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
    found = of_lists(lists, models).agreement("base", k=K, p=P)
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
    rows = {row["user_id"]: tuple(row.values())[2:] for row in dicts(of_lists(lists).agreement("base", k=2))}
    assert rows["u1"] == pytest.approx((1, 1, 1), rel=0, abs=1e-12)
    assert rows["u2"] == (0, 0, 0)


@pytest.mark.parametrize(("k", "p"), [(True, "half"), (2.5, None)])
def test_a_cutoff_and_a_persistence_that_are_no_numbers_are_refused(k: Any, p: Any) -> None:  # noqa: ANN401 - what users pass
    with pytest.raises(ConfigError) as refused:
        of_lists({"base": {"u1": ["a"]}}, ["base"]).agreement("base", k=k, p=p)
    assert [fault.where for fault in refused.value.faults] == ["agreement(k=)", "agreement(p=)"]


def test_numbers_of_numpy_are_numbers() -> None:
    found = of_lists({"base": {"u1": ["a"]}, "new": {"u1": ["a"]}})
    k: Any = np.int64(2)
    assert found.agreement("base", k=k, p=np.float64(0.9)) == found.agreement("base", k=2)


def test_what_cannot_be_compared_is_refused_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        of_lists({"base": {"u1": ["a"]}}, ["base"]).agreement("ghost", k=0, p=1.0)
    assert [fault.where for fault in refused.value.faults] == ["agreement(baseline=)", "agreement(k=)", "agreement(p=)"]
