"""From ranked items to the measures of parity in this process: against plain Python, on random lists."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.in_process import parities
from rankeval_spark.in_process.parity_counts import Offer
from rankeval_spark.measures import Measure, needs
from tests.support import naive_exposures, naive_parity
from tests.support.ranked_items import assert_row, by_key, groups_of, ranked_items, table_of, texts

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
USERS = [f"u{number}" for number in range(40)]


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
    found = by_key(rows_of(lists, train, gains, segments=segments, slices=[(), ("country",)]))
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
    ranked = ranked_items({"m": {"ann 1": "a", "ann 2": "b"}})
    ranked = ranked.set_column(1, "user_id", pa.array(["ann", "ann"])).append_column("list_id", pa.array(["1", "2"]))
    judged = dict.fromkeys("abc", 1.0)
    ranked = ranked.set_column(4, "gain", pa.array([1.0, 1.0]))
    offer = replace(
        offer_of([("cat", item) for item in "abc"], {"ann": judged}), popularity_groups=groups("a", "b", "c")
    )
    (row,) = to_rows(ranked, ("PopREO@1",), offer).to_pylist()
    assert (row["n_users"], row["n_lists"]) == (1, 2)
    assert row["value"] == pytest.approx(naive_parity.spread([Fraction(1, 2), Fraction(1, 2), Fraction(0)]), abs=1e-12)


def test_an_item_described_twice_is_refused_where_its_categories_are_read() -> None:
    offer = offer_of([("u1", "i1")], {})
    assert offer.items is not None
    twice = pa.concat_tables([offer.items, offer.items.slice(3, 1)])
    ranked = ranked_items({"m": {"u1": ["i1"]}})
    assert to_rows(ranked, ("PopREO",), replace(offer, items=twice)).num_rows == 1
    with pytest.raises(RefusedError, match="twice in the catalogue; expected each item once"):
        to_rows(ranked, ("BiasDisparity(category='Drama')",), replace(offer, items=twice))


def test_an_empty_table_has_no_rows() -> None:
    rows = rows_of({}, [("u1", "i1")], {"u1": {"i1": 1}})
    assert rows.num_rows == 0
    assert rows.schema == rows_of({"m": {"u1": ["i1"]}}, [], {}).schema


def rows_of(
    lists: Mapping[str, Mapping[str, Sequence[str]]],
    train: Sequence[tuple[str, str]],
    gains: Mapping[str, Mapping[str, float]],
    **options: Any,  # noqa: ANN401 - of to_rows
) -> pa.Table:
    return to_rows(ranked_items(lists, gains), MEASURES, offer_of(train, gains), **options)


def to_rows(ranked: pa.Table, measures: Iterable[str], offer: Offer, **options: Any) -> pa.Table:  # noqa: ANN401 - likewise
    chosen = {
        **{"segments": None, "absent": {}, "slices": [()], "min_slice_size": 5, "confidence": 0.95},
        **options,
    }
    return parities.to_rows(ranked, measures=[Measure.parse(one) for one in measures], offer=offer, **chosen)


def offer_of(train: Sequence[tuple[str, str]], gains: Mapping[str, Mapping[str, float]]) -> Offer:
    judgements = [(user, item, float(gain)) for user, by_item in gains.items() for item, gain in by_item.items()]
    names = pa.schema({"user_id": pa.string(), "item_id": pa.string(), "gain": pa.float64()})
    described = pa.schema({"item_id": pa.string(), "categories": pa.list_(pa.string())})
    by_popularity = popularity(train)
    known = {item for _, item in train}
    return Offer(
        table_of(judgements, names),
        texts("user_id item_id", train),
        groups(*(sorted(items & known) for items in by_popularity)),
        texts("item_id", [(item,) for item in (*CATALOGUE, "i3", None)]),
        table_of([*CATEGORIES.items(), (None, ["Drama"]), (None, None)], described),
    )


def groups(*items: Iterable[str]) -> pa.Table:
    rows = [(item, float(place)) for place, own in enumerate(items) for item in own]
    return table_of(rows, pa.schema({"item_id": pa.string(), needs.ITEM_POPULARITY_GROUP: pa.float64()}))


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

    return value(lists), naive_exposures.error_without_groups(value, list(lists), groups_of(list(lists)))
