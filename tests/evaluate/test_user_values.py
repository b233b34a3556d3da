"""Own values of users as a measure, worked out by hand: who counts, models, slices, comparisons and refusals."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError, RefusedCallError

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

REVENUE = "UserValue(name='revenue')"
LOG = pa.table(
    {
        "model_id": ["a", "a", "a", "b", "b"],
        "user_id": ["ann", "bob", "cem", "ann", "bob"],
        "item_id": ["x", "x", "y", "y", "x"],
        "score": [0.5] * 5,
    }
)
JUDGED = pa.table({"user_id": ["ann", "bob", "dan"], "item_id": ["x", "z", "z"]})


def values(rows: list[tuple[Any, ...]], *, has_models: bool = False) -> pa.Table:
    """Write rows of user, name and value, and of the model where rows have it."""
    names = ["user_id", "name", "value", *(["model_id"] if has_models else [])]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return pa.table({**columns, "value": pa.array(columns["value"], pa.float64())})


def evaluated(user_values: pa.Table, *measures: str, **asked: Any) -> Evaluation:  # noqa: ANN401 - arguments
    return evaluate(LOG, JUDGED, measures=list(measures) or [REVENUE], user_values=user_values, **asked)


def means(result: Evaluation, measure: str = REVENUE) -> dict[str, tuple[float | None, int, int]]:
    """Value, users and users without a value of each model."""
    rows = [row for row in result.metrics.to_pylist() if row["measure"] == measure and row["slice"] == "all"]
    return {row["model_id"]: (row["value"], row["n_users"], row["n_undefined"]) for row in rows}


SPENT = values([("ann", "revenue", 10.0), ("bob", "revenue", -1.0), ("cem", "revenue", 4.0), ("ann", "visits", 3.0)])


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({"population": "truth"}, {"a": (4.5, 2, 1), "b": (4.5, 2, 1)}),  # ann, bob and dan, who has no value
        ({"population": "run"}, {"a": (13 / 3, 3, 0), "b": (4.5, 2, 0)}),  # those with a list, cem among them
        ({"population": "judged", "zero_relevant": "zero"}, {"a": (4.5, 2, 1), "b": (4.5, 2, 1)}),
    ],
)
def test_users_of_the_population_with_a_row_are_in_the_mean(
    policies: dict[str, str], expected: dict[str, tuple[float, int, int]]
) -> None:
    assert means(evaluated(SPENT, policies=policies)) == expected


def test_a_value_of_the_model_comes_before_one_of_every_model() -> None:
    rows = [("ann", "revenue", 10.0, None), ("ann", "revenue", 2.0, "b"), ("bob", "revenue", 1.0, "a")]
    found = evaluated(values([*rows, ("bob", "revenue", 7.0, "c")], has_models=True))
    assert means(found) == {"a": (5.5, 2, 1), "b": (2.0, 1, 2)}


def test_values_are_the_same_next_to_scores_of_any_type() -> None:
    """Next to doubles they travel in the column of the scores, next to others in one of their own."""
    wanted = means(evaluated(SPENT))
    for scores in (pa.array([5] * 5), pa.array([None] * 5, pa.float64()).fill_null(0.25).cast(pa.decimal128(5, 2))):
        log = LOG.set_column(3, "score", scores)
        assert means(evaluate(log, JUDGED, measures=[REVENUE], user_values=SPENT)) == wanted
    ranked = LOG.set_column(3, "rank", pa.array([1] * 5))
    assert means(evaluate(ranked, JUDGED, measures=[REVENUE], user_values=SPENT)) == wanted


def test_several_lists_of_a_user_have_the_value_of_the_user() -> None:
    log = pa.table({"user_id": ["ann", "ann", "bob"], "list_id": ["1", "2", "1"], "item_id": ["x", "y", "x"]})
    log = log.append_column("score", pa.array([1.0] * 3))
    result = evaluate(log, JUDGED, measures=[REVENUE, "RR"], user_values=SPENT, policies={"population": "run"})
    assert means(result) == {"model": (4.5, 2, 0)}


def test_slices_interval_leaderboard_and_rows_of_users_follow() -> None:
    draw = np.random.default_rng(5)
    users = list(range(60))
    log = pa.table({"user_id": users, "item_id": ["x"] * 60, "score": [1.0] * 60})
    spent = draw.normal(0, 100, 60).tolist()
    result = evaluate(
        log,
        log.select(["user_id", "item_id"]),
        measures=[REVENUE, "RR"],
        user_values=pa.table({"user_id": users, "name": ["revenue"] * 60, "value": spent}),
        segments=pa.table({"user_id": users, "half": ["even", "odd"] * 30}),
        slices=["half"],
    )
    rows = {row["slice_value"]: row for row in result.metrics.to_pylist() if row["measure"] == REVENUE}
    for name, own in {"": spent, "even": spent[::2], "odd": spent[1::2]}.items():
        assert math.isclose(rows[name]["value"], fmean(own), rel_tol=0, abs_tol=1e-12)
        assert math.isclose(rows[name]["std_error"], stdev(own) / math.sqrt(len(own)), rel_tol=1e-12)
        assert rows[name]["ci_low"] < rows[name]["value"] < rows[name]["ci_high"]
    assert result.leaderboard().to_pylist()[0][REVENUE] == rows[""]["value"]
    of_users = {row["user_id"]: row["uservalue_name_revenue"] for row in result.user_metrics.to_pylist()}
    assert of_users == dict(zip(users, spent, strict=True))


@pytest.mark.parametrize(("better", "verdict"), [("higher", "better"), ("lower", "worse"), ("neither", "different")])
def test_an_ab_test_of_revenue_is_that_of_welch(better: str, verdict: str) -> None:
    draw = np.random.default_rng(7)
    spent = {"control": draw.gamma(2, 5, 80), "treatment": draw.gamma(2, 8, 120)}
    users = [f"{model}{place}" for model, own in spent.items() for place in range(len(own))]
    log = pa.table(
        {
            "model_id": ["control"] * 80 + ["treatment"] * 120,
            "user_id": users,
            "item_id": ["x"] * 200,
            "score": [1.0] * 200,
        }
    )
    result = evaluate(
        log,
        JUDGED,
        measures=[f"UserValue(better='{better}',name='revenue')"],
        user_values=pa.table({"user_id": users, "name": ["revenue"] * 200, "value": np.concatenate([*spent.values()])}),
        policies={"population": "run", "zero_relevant": "zero"},
        comparisons={"baseline": "control", "split": {"control": 0.4, "treatment": 0.6}},
    )
    (row,) = result.comparisons.to_pylist()
    wanted = stats.ttest_ind(spent["treatment"], spent["control"], equal_var=False)
    assert math.isclose(row["p_value"], wanted.pvalue, rel_tol=1e-9)
    assert math.isclose(row["delta"], spent["treatment"].mean() - spent["control"].mean(), abs_tol=1e-12)
    assert (row["test"], row["method"], row["verdict"]) == ("unpaired", "welch", verdict)


def test_faulty_rows_are_left_out_with_a_warning_and_counted() -> None:
    rows = [("ann", "revenue", 3.0), ("bob", "revenue", math.nan), (None, "revenue", 1.0), ("cem", None, 2.0)]
    with pytest.warns(UserWarning, match="user_values: ") as warned:
        result = evaluated(values([*rows, ("eve", "revenue", 5.0), ("ann", "visits", math.inf)]))
    assert sorted(str(each.message).partition(";")[0] for each in warned) == [
        "user_values: 1 of 6 rows (16.7 %) are left out: an id is NULL",
        "user_values: 3 of 6 rows (50 %) are left out: the value is NULL, NaN or infinite, or has no name",
    ]
    assert means(result) == {"a": (3.0, 1, 2), "b": (3.0, 1, 2)}
    found = [row for row in result.checks.to_pylist() if row["input"] == "user_values"]
    assert {row["check"]: (row["count"], row["sample_keys"]) for row in found} == {
        "rows": (6, []),
        "null_keys": (1, ["NULL revenue"]),
        "invalid_user_values": (3, ["ann visits", "cem NULL"]),
        "unmatched_users": (1, ["eve"]),
        "absent_user_values": (0, []),
    }


def test_two_rows_of_a_user_name_and_model_are_refused() -> None:
    result = evaluated(values([("ann", "revenue", 3.0), ("bob", "revenue", 1.0), ("bob", "revenue", 1.0)]))
    with pytest.raises(RefusedCallError, match=r"user 'bob' has a value of one name and model twice.*add up, average"):
        result.metrics  # noqa: B018 - it is computed when it is used
    twice = values([("bob", "visits", 1.0), ("bob", "visits", 2.0), ("ann", "revenue", 3.0)])
    assert means(evaluated(twice)) == {"a": (3.0, 1, 2), "b": (3.0, 1, 2)}  # which nothing reads


def test_a_name_that_no_row_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        InputError,
        match=r"evaluate\(user_values=\): found no row named 'revenu'; expected a name that rows have: revenue, visits",
    ):
        evaluated(SPENT, "UserValue(name='revenu')")


def test_values_that_no_measure_reads_are_said_with_their_names() -> None:
    with pytest.warns(UserWarning, match=r"UserValue\(name='revenue'\).*reads one of: revenue, visits"):
        evaluated(SPENT, "RR")


@pytest.mark.parametrize(
    ("user_values", "found"),
    [
        (None, "user_values=.*found None; expected a table with user_id, name and value, for UserValue"),
        (SPENT.drop_columns(["value"]), "no column 'value'"),
        (SPENT.rename_columns({"name": "kpi"}), "no column 'name'.*did you mean 'kpi'"),
        (SPENT.append_column("user", SPENT["user_id"]).drop_columns(["user_id"]), "no column 'user_id'"),
    ],
)
def test_a_table_or_column_that_is_missing_is_named(user_values: pa.Table | None, found: str) -> None:
    with pytest.raises((ConfigError, InputError), match=f"(?s){found}"):
        evaluate(LOG, JUDGED, measures=[REVENUE], user_values=user_values)


def test_values_of_models_need_a_log_that_names_its_models() -> None:
    rows = values([("ann", "revenue", 1.0, "a")], has_models=True)
    with pytest.raises(InputError, match=r"no column 'model_id'.*rows of user_values name their model"):
        evaluate(LOG.drop_columns(["model_id"]), JUDGED, measures=[REVENUE], user_values=rows)


def test_columns_of_other_names_and_the_config_of_the_call() -> None:
    renamed = SPENT.rename_columns({"name": "kpi", "value": "amount"})
    inputs = {"user_values": {"columns": {"name": "kpi", "value": "amount"}}}
    result = evaluate(LOG, JUDGED, measures=[REVENUE], user_values=renamed, inputs=inputs)
    assert means(result) == {"a": (4.5, 2, 1), "b": (4.5, 2, 1)}
    assert "user_values:\n    format: parquet\n    path: data/user_values" in result.to_config()
