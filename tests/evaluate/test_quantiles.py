"""Quantiles of users in ``metrics``, and shares of users beyond a margin in ``comparisons``, against naive loops."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Final

import numpy as np
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.evaluate.test_means_over_lists import log_of, random_lists
from tests.support.arrow_frames import in_chunks, judgements, table
from tests.support.sections import sections
from tests.support.threads import threads

NOTHING: Final[dict[str, Any]] = {}
SHARES: Final = [0.1, 0.5, 0.9]
MEASURES: Final = ["nDCG@2", "P@3", "R(agg='micro')@3", "Success@1"]


def evaluated(seed: int, *, most: int = 1, n_chunks: int = 1, **asked: Any) -> Any:  # noqa: ANN401 - arguments of any type
    lists, judged = random_lists(seed, most=most)
    country = table(
        "user_id country", *((user, "FR" if place % 3 else "DE") for place, user in enumerate(sorted(judged)))
    )
    given = {"measures": MEASURES, "segments": country, "slices": ["country"], "min_slice_size": 1, **asked}
    return evaluate(in_chunks(log_of(lists), n_chunks), in_chunks(judgements(judged), n_chunks), **sections(**given))


def values_of_users(result: Any) -> dict[tuple[str, str, str, int], dict[str, float]]:  # noqa: ANN401 - as above
    """Means of each user over their lists, by model, country, measure and cutoff."""
    country = {
        (row["model_id"], row["user_id"]): dict(row["segments"])["country"] for row in result.user_metrics.to_pylist()
    }
    of_lists: dict[Any, list[float]] = defaultdict(list)
    for row in result.user_values.to_pylist():
        if row["value"] is not None:
            of_lists[row["model_id"], row["user_id"], row["measure"], row["k"]].append(row["value"])
    found: dict[Any, dict[str, float]] = defaultdict(dict)
    for (model, user, measure, k), values in of_lists.items():
        for slice_value in ("", country[model, user]):
            found[model, slice_value, measure, k][user] = sum(values) / len(values)
    return found


@pytest.mark.parametrize("asked", [{}, {"most": 3}, {"most": 3, "unit": "list"}, {"intervals": "bootstrap"}])
def test_metrics_hold_quantiles_of_the_values_of_users(asked: dict[str, Any]) -> None:
    result = evaluated(1, quantiles=SHARES, **asked)
    wanted = values_of_users(result)
    rows = result.metrics.to_pylist()
    assert len(rows) == 2 * 3 * len(MEASURES)
    for row in rows:
        values = list(wanted[row["model_id"], row["slice_value"], row["measure"], row["k"]].values())
        exact = np.quantile(values, SHARES, method="inverted_cdf")
        names, found = zip(*row["quantiles"], strict=True)
        assert names == ("0.1", "0.5", "0.9")
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)
        assert row["quantile_error"] == 0


def test_quantiles_do_not_depend_on_the_chunks_nor_on_the_threads() -> None:
    tables = []
    for number in (1, 3):
        with threads(number):
            tables.append(evaluated(2, quantiles=SHARES, n_chunks=number).metrics)
    assert tables[0].equals(tables[1])


def test_without_a_request_there_are_none_and_the_rest_is_the_same() -> None:
    without, with_them = (evaluated(3, **asked).metrics for asked in (NOTHING, {"quantiles": [0.5]}))
    columns = ["quantiles", "quantile_error"]
    assert without.drop_columns(columns).equals(with_them.drop_columns(columns))
    assert [without[name].null_count for name in columns] == [len(without)] * 2


def test_quantiles_of_gmap_are_values_of_users_as_its_value_is() -> None:
    result = evaluated(4, measures=["GMAP(floor=0.01)@3", "AP@3"], quantiles=[0.0, 1.0])
    found = {
        (row["model_id"], row["slice_value"], row["measure"]): row["quantiles"] for row in result.metrics.to_pylist()
    }
    low, high = (dict(found["als", "", "GMAP(floor=0.01)"])[name] for name in ("0", "1"))
    assert low == pytest.approx(0.01, rel=1e-12)
    assert high == pytest.approx(dict(found["als", "", "AP"])["1"], rel=1e-12)


def test_measures_of_all_lists_and_users_without_values_have_no_quantile() -> None:
    log = table("user_id item_id score", ("ann", "a", 1.0))
    held_out = table("user_id item_id gain", ("ann", "a", 0.0))
    items = table("item_id", ("a",))
    measures = ["ItemCoverage@1", "R@1"]
    rows = evaluate(log, held_out, measures=measures, items=items, slicing={"quantiles": [0.5]}).metrics.to_pylist()
    assert {row["measure"]: (row["quantiles"], row["quantile_error"]) for row in rows} == {
        "ItemCoverage": (None, None),
        "R": (None, None),
    }


@pytest.mark.parametrize("quantiles", [[1.5], [-0.1], [0.5, 0.5], [math.nan], ["half"]])
def test_shares_that_are_none_are_refused(quantiles: list[Any]) -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(slicing=\)\.quantiles"):
        evaluated(1, quantiles=quantiles)


@pytest.mark.parametrize("most", [1, 3])
def test_comparisons_hold_the_shares_of_users_beyond_a_margin(most: int) -> None:
    margin = 0.35
    result = evaluated(5, most=most, baseline="pop", margin=margin, tests=["t", "sign"])
    users = values_of_users(result)
    rows = result.comparisons.to_pylist()
    assert {row["test"] for row in rows} == {"t", "sign"}
    for row in rows:
        base, own = (users[model, row["slice_value"], row["measure"], row["k"]] for model in ("pop", "als"))
        differences = [own[user] - base[user] for user in own.keys() & base.keys()]
        wins, losses = (sum(sign * each > margin + 1e-12 for each in differences) for sign in (1, -1))
        assert row["n_users"] == len(differences)
        assert (row["margin"], row["win_share"], row["loss_share"]) == (
            margin,
            wins / len(differences),
            losses / len(differences),
        )
    assert any(row["win_share"] * row["n_users"] < row["n_wins"] for row in rows)


def test_a_difference_that_exceeds_the_margin_by_rounding_only_does_not_count() -> None:
    log = table(
        "model_id user_id item_id score",
        *(("pop", "ann", item, -place) for place, item in enumerate("abcxyuvwst")),
        *(("als", "ann", item, -place) for place, item in enumerate("abcdxyuvws")),
    )
    held_out = table("user_id item_id", *(("ann", item) for item in "abcd"))
    asked: dict[str, Any] = {"measures": ["P@10"], "baseline": "pop", "min_slice_size": 1}
    assert 0.4 - 0.3 > 0.1  # the doubles
    (at,) = evaluate(log, held_out, **sections(margin=0.1, **asked)).comparisons.to_pylist()
    (below,) = evaluate(log, held_out, **sections(margin=0.09, **asked)).comparisons.to_pylist()
    assert (at["win_share"], below["win_share"], below["loss_share"]) == (0, 1, 0)


def test_without_a_margin_there_are_no_shares() -> None:
    rows = evaluated(6, baseline="pop").comparisons.to_pylist()
    assert {(row["margin"], row["win_share"], row["loss_share"]) for row in rows} == {(None, None, None)}


@pytest.mark.parametrize("margin", [0, -0.1, math.inf])
def test_a_margin_is_above_0(margin: float) -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(comparisons=\)\.margin"):
        evaluated(1, baseline="pop", margin=margin)
