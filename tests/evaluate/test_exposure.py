"""From ranked items to the measures of all lists together: against plain Python, on random lists."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from rankeval_spark import evaluate, schemas
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure
from tests.support import naive_exposures, naive_parity
from tests.support.arrow_frames import assert_columns, assert_key, dicts, in_chunks, judgements, shuffled, table
from tests.support.frames import after_run
from tests.support.ranked_items import groups_of
from tests.support.sections import measured

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

CATALOGUE = {f"i{number}" for number in range(40)}
SHOWN = [f"i{number}" for number in range(5, 50)]  # some of the catalogue is never shown, some shown is not in it
COUNTRIES = ("FR", "DE", None)
MEASURES = (
    *("ItemCoverage@1", "ItemCoverage@3", "ItemCoverage", "CatalogCoverage@3", "CatalogCoverage@10"),
    *("Entropy@3", "Entropy(base='e',norm=True)@10", "Entropy", "Gini@3", "Gini(norm='n')@10"),
    *("Gini(items='recommended')@3", "Gini(items='recommended',norm='n')", "Personalization@1", "Personalization@10"),
    *("Personalization(denom='min')@3", "Personalization(denom='min')"),
    *("Personalization(sim='cosine')@3", "Personalization(sim='cosine')@10", "Personalization(sim='cosine')"),
    *("CatalogCoverage(items='train')@3", "CatalogCoverage(items='train')"),
)
CATEGORIES = {
    item: [name for name, step in (("Drama", 3), ("O'Brien", 4), ("Rare", 39)) if int(item[1:]) % step == 0] or None
    for item in CATALOGUE
}
"""Several of an item, which is in each of them; none of many."""
DISPARITIES = (
    *("BiasDisparity(category='Drama')@3", "BiasDisparity(category='Drama')", "BiasDisparity(category='Nothing')@3"),
    *('BiasDisparity(category="O\'Brien")@10', "BiasDisparity(category='Rare')@3"),
)
PARITY = ("PopREO@3", *DISPARITIES, "PopREO(rel=2)@10", "PopREO", "PopRSP@3", "PopRSP")

Lists = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def lists() -> Lists:
    """Draw the items of each list by model and user: 60 users, popular items often, some users without a list."""
    draw = random.Random(7)
    weights = [1 / (place + 1) for place in range(len(SHOWN))]
    users = [f"u{number}" for number in range(60)]
    return {
        model: {
            user: list(dict.fromkeys(draw.choices(SHOWN, weights, k=draw.choice([1, 2, 5, 12]))))
            for user in users
            if draw.random() < 0.9
        }
        for model in ("als", "pop")
    }


def country_of(user: str) -> str | None:
    """Deal the countries out; u59, alone in NO, is a slice of one user."""
    return "NO" if user == "u59" else COUNTRIES[int(user[1:]) % 3]


def train_rows() -> list[tuple[str, str]]:
    """Draw interactions: popular items and equally unpopular ones, repeated pairs, items outside of the catalogue."""
    draw = random.Random(8)
    return [(f"u{draw.randrange(70)}", f"i{min(draw.randrange(45), draw.randrange(45))}") for _ in range(400)]


def judged_by() -> dict[str, dict[str, float]]:
    """Draw judgements of two users out of three, of items of the lists for the most part."""
    draw = random.Random(9)
    items = [*SHOWN, "never"]
    return {f"u{n}": {item: draw.choice([0, 1, 2]) for item in draw.choices(items, k=9)} for n in range(70) if n % 3}


def log_of(lists: Lists) -> pa.Table:
    rows = [
        (model, user, item, float(-place))
        for model, by_user in lists.items()
        for user, items in by_user.items()
        for place, item in enumerate(items)
    ]
    return in_chunks(shuffled(table("model_id user_id item_id score", *rows)), 3)


def items_of() -> pa.Table:
    return table("item_id categories", *sorted(CATEGORIES.items()))


@pytest.mark.parametrize("models", [None, ["pop", "als"]], ids=["models found", "models named"])
def test_values_and_errors_are_those_of_plain_python(lists: Lists, models: list[str] | None) -> None:
    users = [f"u{number}" for number in range(60)]
    segments = table("user_id country", *((user, country_of(user)) for user in users))
    result = measured(
        log_of(lists),
        judgements(judged_by()),
        measures=[*MEASURES, *PARITY],
        train=table("user_id item_id", *train_rows()),
        segments=segments,
        slices=["country"],
        models=models,
        min_slice_size=5,
        items=items_of(),
    ).metrics
    assert_columns(result, after_run(schemas.METRICS))
    assert_key(result, ("model_id", "slice", "slice_values", "measure", "k"))
    found = {(row["model_id"], row["slice_value"], row["measure"], row["k"]): row for row in dicts(result)}
    group = groups_of(users)
    n_compared = 0
    for measure in map(Measure.parse, [*MEASURES, *PARITY]):
        for model, slice_value in ((m, s) for m in lists for s in ("", "FR", "DE", "NO", "(unknown)")):
            in_slice = [user for user in users if slice_value in ("", country_of(user) or "(unknown)")]
            chosen = {user: one for user, one in lists[model].items() if user in in_slice}
            row = found.get((model, slice_value, measure.label, measure.k))
            if any(user in one for one in lists.values() for user in in_slice):
                assert_row(row, measure, chosen, group)
                n_compared += 1
            else:
                assert row is None
    assert len(found) == n_compared > len(MEASURES) * 8


def assert_row(row: Any, measure: Measure, lists: dict[str, list[str]], group: dict[str, int]) -> None:  # noqa: ANN401 - a row or None
    """Compare a row of metrics with the naive value, its jackknife and the interval from both."""
    naive = parity_of if measure.entry.kind == "parity" else exposure_of
    value, error = naive(measure, lists, group)
    n_groups = len({group[user] for user in lists})
    half = stats.t.ppf(0.975, n_groups - 1) * error if n_groups > 1 else np.nan
    ends = np.clip([value - half, value + half], *naive_exposures.bounds_of(measure))
    numbers = [np.nan if row[name] is None else row[name] for name in ("value", "std_error", "ci_low", "ci_high")]
    np.testing.assert_allclose(numbers, [value, error, *ends], rtol=0, atol=1e-12, err_msg=str(measure))
    assert row["ci_method"] == ("none" if np.isnan(error) else "jackknife")
    assert (row["n_users"], row["n_lists"], row["is_small"]) == (len(lists), len(lists), len(lists) < 5)
    nothing = ("n_undefined", "n_missing", "n_zero_relevant", "n_extra_users", "tie_share", "std_dev")
    assert {row[name] for name in nothing} == {None}


def exposure_of(measure: Measure, lists: dict[str, list[str]], group: dict[str, int]) -> tuple[float, float]:
    """Naive value and standard error of a measure of exposure."""
    catalogue = {item for _, item in train_rows()} if measure.options.get("items") == "train" else CATALOGUE
    value = naive_exposures.expected(measure, list(lists.values()), catalogue)
    return value, naive_exposures.jackknife_error(measure, lists, group, catalogue)


def parity_of(measure: Measure, lists: dict[str, list[str]], group: dict[str, int]) -> tuple[float, float]:
    """Naive value and standard error of a measure of parity; what cannot be recommended is no item of PopRSP."""
    gains, owned = judged_by(), set(train_rows())
    groups = naive_parity.groups_by_popularity((item for _, item in train_rows()), {*CATALOGUE, *SHOWN, "never"})
    if measure.name == "PopRSP":
        groups = [items & CATALOGUE for items in groups]
    if measure.name == "BiasDisparity":
        groups = [{item for item, names in CATEGORIES.items() if measure.options["category"] in (names or ())}]

    def value(users: Iterable[str]) -> float:
        known = [
            naive_parity.User(lists[user], gains.get(user, {}), frozenset(item for u, item in owned if u == user))
            for user in users
        ]
        return naive_parity.expected(measure, known, groups)

    return value(lists), naive_parity.error_of(measure, value, list(lists), group)


def test_they_are_next_to_the_means_and_leave_user_metrics_unchanged(lists: Lists) -> None:
    held_out = judgements({user: {"i7": 1, "i5": 2} for user in ("u1", "u2", "u3")})
    alone = evaluate(log_of(lists), held_out, measures=["P@3"])
    both = evaluate(log_of(lists), held_out, measures=["P@3", "ItemCoverage@10"])
    assert both.user_metrics.column_names == alone.user_metrics.column_names
    assert {row["k"] for row in dicts(both.user_metrics)} == {3}
    assert {(row["measure"], row["k"]) for row in dicts(both.user_values)} == {("P", 3)}
    assert {(row["measure"], row["k"]) for row in dicts(both.metrics)} == {("P", 3), ("ItemCoverage", 10)}
    board = {row["model_id"]: row["ItemCoverage@10"] for row in dicts(both.leaderboard())}
    assert board == {model: len({i for one in by.values() for i in one[:10]}) for model, by in lists.items()}


def test_several_lists_of_a_user_count_each_and_he_once() -> None:
    """Lists {a b}, {a c} of ann and {a b} of bob: pairs share 1, 2 and 1 of 2 items."""
    rows = [
        ("ann", "1", "a"),
        ("ann", "1", "b"),
        ("ann", "2", "a"),
        ("ann", "2", "c"),
        ("bob", "1", "a"),
        ("bob", "1", "b"),
    ]
    log = table("user_id list_id item_id score", *((*row, float(-place)) for place, row in enumerate(rows)))
    found = evaluate(
        log,
        judgements({"ann": {"a": 1}}),
        measures=["Personalization@2", "ItemCoverage@1", "PopREO@2"],
        train=table("user_id item_id", ("cat", "a"), ("cat", "b")),
    ).metrics
    rows_found = {row["measure"]: (row["value"], row["n_users"], row["n_lists"]) for row in dicts(found)}
    assert rows_found == {
        "Personalization": (pytest.approx(1 - (1 + 2 + 1) / 3 / 2, abs=1e-12), 2, 3),
        "ItemCoverage": (1, 2, 3),
        "PopREO": (None, 2, 3),
    }


def test_the_training_items_are_the_catalogue_where_there_is_no_other(lists: Lists) -> None:
    train = table("user_id item_id", ("u1", "i5"), ("u2", "i5"), ("u2", "i6"), ("u3", "never"), ("u3", None))
    measures = ["CatalogCoverage", "CatalogCoverage(items='train')"]
    found = evaluate(log_of(lists), judgements({"u1": {"i5": 1}}), measures=measures, train=train)
    rows = {(row["measure"], row["value"]) for row in dicts(found.metrics)}
    assert rows == {(measure, 2 / 3) for measure in measures}


def test_coverage_of_the_training_items_needs_them(lists: Lists) -> None:
    with pytest.raises(ConfigError, match=r"train=.* expected a table with .*, for CatalogCoverage\(items='train'\)"):
        evaluate(
            log_of(lists), judgements({"u1": {"i5": 1}}), measures=["CatalogCoverage(items='train')"], items=items_of()
        )
