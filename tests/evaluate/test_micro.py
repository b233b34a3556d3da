"""Ratios of sums over users, and the geometric mean: the whole way, against numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import duckdb
import numpy as np
import pytest
from scipy import stats

from rankeval_spark import columns as C, evaluate
from rankeval_spark.measures import Lists, Measure, MeasureSet
from tests.support.arrow_frames import by, table, tuples
from tests.support.ratings import list_of, random_ratings, tables
from tests.support.sections import measured
from tests.support.skewed import hall

if TYPE_CHECKING:
    import pyarrow as pa

MICRO: Final = (
    *("P(agg='micro')@3", "R(agg='micro')@3", "RMSE(agg='micro')", "FCP(agg='micro')", "GAUC(rel=3)"),
    *(
        "nDCG(agg='micro')@3",
        "nCG(agg='micro',ideal='len')@3",
        "AP(rel=3,agg='micro')",
        "AP(agg='micro',denom='hits')@3",
    ),
    *("ARHR(agg='micro',denom='ideal')", "MAR(agg='micro',kind='hits_min')@3", "SetF(agg='micro')"),
    *("Bpref(rel=3,agg='micro')", "nDCG(agg='micro',judged_only=True)@3"),
)
LEVEL: Final = 0.95
DELTA: Final = ("value", "n_users", "std_error", "ci_low", "ci_high", "ci_method")


def published(measure: Measure, mean: float) -> float:
    """Undo what was averaged."""
    return {"identity": lambda: mean, "log": lambda: math.exp(mean), "square": lambda: math.sqrt(max(mean, 0))}[
        measure.link
    ]()


def pooled(measure: Measure, parts: list[tuple[float, float]]) -> tuple[Any, ...]:
    """Ratio of sums with its interval, from the numerator and the denominator of each user: the columns DELTA."""
    numerators, denominators = map(np.array, zip(*parts, strict=True))
    n, ratio = len(parts), numerators.sum() / denominators.sum()
    residuals = numerators - ratio * denominators
    error = math.sqrt(n / (n - 1) * (residuals**2).sum()) / denominators.sum()
    ends = hall(numerators, denominators, level=LEVEL, bounds=measure.bounds)
    return (
        pytest.approx(published(measure, ratio), rel=0, abs=1e-12),
        n,
        pytest.approx(error, rel=1e-9),
        *(pytest.approx(published(measure, end), rel=0, abs=1e-12) for end in ends),
        "delta",
    )


def parts_of(measure: Measure, users: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Numerator and denominator of each user for whom the measure is defined, by the kernels, one user at a time."""
    asked = MeasureSet.of([measure])
    found = {}
    for user, ranking in users.items():
        scores = asked.score(Lists.of([ranking]))
        value, weight = (float(scores[name][0, 0]) for name in asked.stored)
        if not math.isnan(value):
            found[user] = (value * weight, weight)
    return found


@pytest.mark.parametrize("n_chunks", [1, 5])
def test_ratios_and_intervals_are_those_of_sums_over_users_in_every_slice(n_chunks: int) -> None:
    predicted, rated = random_ratings(seed=11)
    countries = {user: ("AT", "DE")[index % 2] for index, user in enumerate(sorted(rated))}
    result = measured(
        *tables(predicted, rated, n_chunks=n_chunks),
        measures=[*MICRO, "P@3"],
        segments=table("user_id country", *countries.items()),
        slices=["country"],
        confidence=LEVEL,
    )
    rows = tuples(result.metrics, C.MEASURE, C.SLICE_VALUE, *DELTA)
    found = {row[:2]: row[2:] for row in rows}
    lists = {user: list_of(predicted.get(user, {}), of_user) for user, of_user in rated.items()}
    for text in MICRO:
        measure = Measure.parse(text)
        parts = parts_of(measure, lists)
        for country in ("", "AT", "DE"):
            of_slice = [part for user, part in parts.items() if country in ("", countries[user])]
            assert found[measure.label, country] == pooled(measure, of_slice), (text, country)
    assert found["P", ""][-1] == "hall"


def hits(lists: dict[tuple[str, str], str]) -> pa.Table:
    """Make a log of several lists a user, best item first."""
    rows = [
        (user, name, item, 10.0 - place) for (user, name), items in lists.items() for place, item in enumerate(items)
    ]
    return table("user_id list_id item_id score", *rows)


def test_lists_of_a_user_are_averaged_before_users_are_summed() -> None:
    """Ann hits 2 of 2 and 0 of 4 items, on average 1 of 3; Bob 1 of 1. The ratio is (1 + 1) / (3 + 1)."""
    log = hits({("ann", "am"): "ab", ("ann", "pm"): "wxyz", ("bob", "am"): "a"})
    held_out = table("user_id item_id gain", *((user, item, 1.0) for user in ("ann", "bob") for item in "ab"))
    result = evaluate(log, held_out, measures=["P(agg='micro',denom='len')@5", "P(denom='len')@5"])
    rows = by(result.metrics, C.MEASURE, value="value")
    assert rows["P(agg='micro',denom='len')"] == pytest.approx((1 + 1) / (3 + 1), rel=0, abs=1e-12)
    assert rows["P(denom='len')"] == pytest.approx((1 / 2 + 1) / 2, rel=0, abs=1e-12)


def test_user_without_relevant_item_adds_the_places_of_their_list_if_counted() -> None:
    log = hits({("ann", ""): "ab", ("bob", ""): "ab"})
    held_out = table("user_id item_id gain", ("ann", "a", 1.0), ("bob", "a", 0.0))
    asked = ["P(agg='micro')@2", "R(agg='micro')@2"]
    of_truth = evaluate(log, held_out, measures=asked).metrics
    of_judged = measured(log, held_out, measures=asked, population="judged").metrics
    assert tuples(of_truth, "measure", "value", "n_users") == [("P(agg='micro')", 1 / 2, 1), ("R(agg='micro')", 1.0, 1)]
    assert tuples(of_judged, "measure", "value", "n_users") == [
        ("P(agg='micro')", 1 / 4, 2),
        ("R(agg='micro')", 1.0, 2),
    ]


def statement_of_surprise() -> tuple[str, pa.Table, float]:
    """Give the statement of the docs, values of users to run it on, and what it is to find.

    Means over the users that have such a pair at all, as its dictionaries hold no others.
    """
    page = Path(__file__).parents[2] / "docs" / "presets.md"
    (statement,) = re.findall(r"^```sql\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    predicted, rated = random_ratings(seed=5)
    result = evaluate(*tables(predicted, rated), measures=["FCP(agg='micro',ties='discordant')"])
    concordant, discordant = {}, {}
    for user, own in predicted.items():
        pairs = list(
            itertools.permutations([(own[item], gain) for item, gain in rated.get(user, {}).items() if item in own], 2)
        )
        concordant[user] = sum(one > other and gain > least for (one, gain), (other, least) in pairs)
        discordant[user] = sum(one >= other and gain < least for (one, gain), (other, least) in pairs)
    assert 0 in discordant.values(), "users whom the two means do not share"
    right, wrong = (fmean(n for n in counts.values() if n) for counts in (concordant, discordant))
    return statement, result.user_metrics.to_arrow(), right / (right + wrong)


def test_surprise_is_computed_from_the_counts_of_users_as_the_docs_say() -> None:
    statement, of_users, expected = statement_of_surprise()
    with duckdb.connect() as database:
        database.register("user_metrics", of_users.drop_columns("segments"))
        ((_, found),) = database.sql(statement).fetchall()
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


def test_ratio_and_interval_are_empty_without_a_user_with_a_value() -> None:
    held_out = table("user_id item_id gain", ("ann", "z", 1.0), ("bob", "z", 1.0))
    result = evaluate(hits({("ann", ""): "ab"}), held_out, measures=["RMSE(agg='micro')", "GMAP", "R@1"])
    rows = {row[0]: row[1:] for row in tuples(result.metrics, "measure", *DELTA)}
    assert rows["RMSE(agg='micro')"] == (None, 0, None, None, None, "none")
    assert rows["GMAP"][:2] == (pytest.approx(1e-5, rel=1e-12), 2)


def test_geometric_mean_is_published_with_the_raised_interval_of_the_logarithms() -> None:
    """AP is 1, 1/2 and 0, which counts 0.01."""
    log = hits({("ann", ""): "a", ("bob", ""): "xa", ("cat", ""): "x"})
    held_out = table("user_id item_id gain", *((user, "a", 1.0) for user in ("ann", "bob", "cat")))
    asked = ["GMAP(floor=0.01)", "LogAP(floor=0.01)"]
    rows = {row[0]: row[1:] for row in tuples(evaluate(log, held_out, measures=asked).metrics, "measure", *DELTA)}
    value, n, error, low, high, method = rows["GMAP(floor=0.01)"]
    of_log = rows["LogAP(floor=0.01)"]
    assert (n, method, error) == (3, "hall", of_log[2])
    assert value == pytest.approx((1 * 1 / 2 * 1 / 100) ** (1 / 3), rel=1e-12)
    ends = hall([math.log(1), math.log(1 / 2), math.log(1 / 100)], level=LEVEL, bounds=(math.log(1 / 100), 0))
    assert of_log[3:5] == tuple(pytest.approx(end, rel=0, abs=1e-12) for end in ends)
    assert (low, high) == tuple(pytest.approx(math.exp(end), rel=0, abs=1e-12) for end in ends)


TESTED: Final = ("delta", "ci_low", "ci_high", "p_value", "effect_size", "n_wins", "n_losses", "method", "reason")


def compared(base: list[str], new: list[str], *measures: str) -> dict[str, tuple[Any, ...]]:
    """Compare two models whose users have lists of the items a to z; a and b are relevant."""
    models = {"base": base, "new": new}
    rows = [
        (model, f"u{user}", item, -float(place))
        for model, lists in models.items()
        for user, items in enumerate(lists)
        for place, item in enumerate(items)
    ]
    held_out = table("user_id item_id gain", *((f"u{user}", item, 1.0) for user in range(len(base)) for item in "ab"))
    log = table("model_id user_id item_id score", *rows)
    found = evaluate(log, held_out, measures=measures, baseline="base").comparisons
    return {row[0]: row[1:] for row in tuples(found, C.MEASURE, *TESTED)}


def test_users_with_lists_of_other_lengths_differ_although_their_ratios_agree() -> None:
    """20 users have 1 of 2 and 2 of 4, one has 1 of 2 and 1 of 4, 19 have no difference."""
    found = compared(["ax"] * 40, ["axby"] * 20 + ["ax"] * 19 + ["axyz"], "P(agg='micro',denom='len')@5")
    delta, *_, p, _, n_wins, n_losses, method, reason = found["P(agg='micro',denom='len')"]
    a, b, c, d = (np.repeat(each, (20, 19, 1)) for each in ((2, 1, 1), (4, 2, 4), (1, 1, 1), (2, 2, 2)))
    ratio, below = a.sum() / b.sum(), c.sum() / d.sum()
    terms = (a - ratio * b) / b.mean() - (c - below * d) / d.mean()
    t = (ratio - below) / (terms.std(ddof=1) / math.sqrt(40))
    assert (method, reason, n_wins, n_losses) == ("delta", None, 0, 1)
    assert delta == pytest.approx(ratio - below, rel=0, abs=1e-12)
    assert p == pytest.approx(2 * stats.t.sf(abs(t), 39), rel=1e-9)


@pytest.mark.parametrize(("n_longer", "reason"), [(5, "few_differences"), (6, None)])
def test_few_users_with_other_lists_give_no_p_of_a_ratio_of_sums(n_longer: int, reason: str | None) -> None:
    found = compared(["ax"] * 40, ["axyz"] * n_longer + ["ax"] * (40 - n_longer), "P(agg='micro',denom='len')@5")
    *_, p, _, _, _, method, why = found["P(agg='micro',denom='len')"]
    assert (p is None, method, why) == (reason is not None, "delta", reason)


@pytest.mark.parametrize("n_better", [0, 5, 8, 30])
def test_ratio_of_equal_denominators_is_compared_like_the_mean(n_better: int) -> None:
    measures = ("P@5", "P(agg='micro')@5", "R@5", "R(agg='micro')@5")
    found = compared(["xy"] * 40, ["ax"] * n_better + ["xy"] * (40 - n_better), *measures)
    for name in ("P", "R"):
        for of_ratio, of_mean in zip(found[f"{name}(agg='micro')"], found[name], strict=True):
            same = pytest.approx(of_mean, rel=1e-12, abs=1e-15) if isinstance(of_mean, float) else of_mean
            assert of_ratio == same
