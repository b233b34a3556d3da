"""From ranked items to the measures of parity in this process: against plain Python, on random lists."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark import evaluate
from rankeval_spark.errors import RefusedCallError
from rankeval_spark.measures import Measure
from tests.support import naive_parity
from tests.support.ranked_items import assert_row, by_key, groups_of, ranked_items, table_of, texts
from tests.support.sections import sections

MEASURES = (
    *("PopREO@3", "PopREO(rel=2)@10", "PopREO", "PopRSP@3", "PopRSP"),
    *("BiasDisparity(category='Drama')@3", "BiasDisparity(category='Drama')", "BiasDisparity(category='Nothing')@3"),
    *('BiasDisparity(category="O\'Brien")@10', "BiasDisparity(category='Rare')@3"),
)
CATALOGUE = {f"i{number}" for number in range(20)}
SHOWN = [f"i{number}" for number in range(4, 24)]
CATEGORIES = {
    item: [name for name, step in (("Drama", 3), ("O'Brien", 4), ("Rare", 19)) if int(item[1:]) % step == 0] or None
    for item in sorted(CATALOGUE)
}
ITEMS = table_of(
    [*CATEGORIES.items(), (None, ["Drama"]), (None, None)],
    pa.schema({"item_id": pa.string(), "categories": pa.list_(pa.string())}),
)
USERS = [f"u{number}" for number in range(40)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 20))
def test_values_and_errors_are_those_of_plain_python(seed: int) -> None:
    draw = random.Random(seed)
    lists = {
        model: {user: draw.sample(SHOWN, draw.choice([1, 2, 5, 12])) for user in USERS if draw.random() < 0.9}
        for model in ("als", "pop")
    }
    train = [(f"u{draw.randrange(50)}", f"i{min(draw.randrange(22), draw.randrange(22))}") for _ in range(200)]
    gains = {
        f"u{number}": {item: draw.choice([0, 1, 2]) for item in draw.choices([*SHOWN, "never"], k=9)}
        for number in range(50)
        if number % 3
    }
    segments = texts("user_id country", [(user, country_of(user)) for user in USERS])
    found = by_key(rows_of(lists, train, gains, segments=segments, slices=["country"]))
    n_compared = 0
    for measure in map(Measure.parse, MEASURES):
        for model, by_user in lists.items():
            for value in ("", "FR", "DE", "(unknown)"):
                own = {user: items for user, items in by_user.items() if value in ("", country_of(user) or "(unknown)")}
                row = found[model, value, measure.label, measure.k]
                assert_row(row, measure, *parity_of(measure, own, train, gains), list(own))
                n_compared += 1
    assert len(found) == n_compared


def test_possible_items_count_for_each_list_of_a_user() -> None:
    """Of a, b and c, one of each group of popularity, {a} and {b} are found in two lists, c in none."""
    log = texts("user_id list_id item_id", [("ann", "1", "a"), ("ann", "2", "b")])
    log = log.append_column("rank", pa.array([1, 1]))
    train = [("cat", item) for item in "a" * 8 + "b" * 4 + "c" * 3]  # a and b hold 80 % of them
    judged = texts("user_id item_id", [("ann", item) for item in "abc"])
    found = evaluate(
        log, judged, measures=["PopREO@1"], train=texts("user_id item_id", train), slicing={"min_slice_size": 5}
    )
    (row,) = found.metrics.to_pylist()
    assert (row["n_users"], row["n_lists"]) == (1, 2)
    assert row["value"] == pytest.approx(naive_parity.spread([Fraction(1, 2), Fraction(1, 2), Fraction(0)]), abs=1e-12)


def test_an_item_described_twice_is_refused_where_its_categories_are_read() -> None:
    items = pa.concat_tables([ITEMS, ITEMS.slice(3, 1)])
    lists, train = {"m": {"u1": ["i1"]}}, [("u1", "i1")]
    assert rows_of(lists, train, {}, measures=["PopREO", "PopRSP"], items=items).num_rows == 2
    with pytest.raises(RefusedCallError, match="twice in the catalogue; expected each item once"):
        rows_of(lists, train, {}, measures=["BiasDisparity(category='Drama')"], items=items)


def test_an_empty_table_has_no_rows() -> None:
    rows = rows_of({}, [("u1", "i1")], {"u1": {"i1": 1}})
    assert rows.num_rows == 0
    assert rows.schema == rows_of({"m": {"u1": ["i1"]}}, [], {}).schema


def rows_of(
    lists: Mapping[str, Mapping[str, Sequence[str]]],
    train: Sequence[tuple[str, str]],
    gains: Mapping[str, Mapping[str, float]],
    **options: Any,  # noqa: ANN401 - of evaluate
) -> pa.Table:
    log = ranked_items(lists).select(["model_id", "user_id", "item_id", "rank"])
    judged = [(user, item, float(gain)) for user, by_item in gains.items() for item, gain in by_item.items()]
    columns = {"user_id": pa.string(), "item_id": pa.string(), "gain": pa.float64()}
    chosen: dict[str, Any] = {"measures": MEASURES, "items": ITEMS, "min_slice_size": 5, **options}
    held_out = table_of(judged, pa.schema(columns))
    return evaluate(log, held_out, **sections(train=texts("user_id item_id", train), **chosen)).metrics


def popularity(train: Iterable[tuple[str, str]]) -> list[set[str]]:
    return naive_parity.groups_by_popularity((item for _, item in train), {*CATALOGUE, *SHOWN, "never"})


def country_of(user: str) -> str | None:
    return ("FR", "DE", None)[int(user[1:]) % 3]


def parity_of(
    measure: Measure,
    lists: Mapping[str, Sequence[str]],
    train: Sequence[tuple[str, str]],
    gains: Mapping[str, Mapping[str, float]],
) -> tuple[float, float]:
    """Naive value and standard error; what cannot be recommended is no item of PopRSP."""
    by_group = popularity(train)
    if measure.name == "PopRSP":
        by_group = [items & CATALOGUE for items in by_group]
    if measure.name == "BiasDisparity":
        by_group = [{item for item, names in CATEGORIES.items() if measure.options["category"] in (names or ())}]

    def value(users: Iterable[str]) -> float:
        known = [
            naive_parity.User(lists[user], gains.get(user, {}), frozenset(item for one, item in train if one == user))
            for user in users
        ]
        return naive_parity.expected(measure, known, by_group)

    return value(lists), naive_parity.error_of(measure, value, list(lists), groups_of(list(lists)))
