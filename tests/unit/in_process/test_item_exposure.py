"""From lists to the measures of exposure in this process: against plain Python, on random lists."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark.config import FrameInputs, Policies, Slicing
from rankeval_spark.config.request import Request
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.hosts.in_process import InProcess, of_call
from rankeval_spark.measures import Measure, MeasureSet
from rankeval_spark.result_rows.histograms import count_keys, sum_by_key, sum_over_pairs
from rankeval_spark.sums import grouping
from rankeval_spark.sums.exposures import CatalogueItems, exposure_sums, group_by_catalogue, to_metrics
from rankeval_spark.sums.sums import ListTotals
from tests.support.ranked_items import Lists, assert_row, by_key, exposure_of, ranked_items, texts

MEASURES = (
    *("ItemCoverage@1", "ItemCoverage@3", "ItemCoverage", "CatalogCoverage@3", "CatalogCoverage@10"),
    *("Entropy@3", "Entropy(base='e',norm=True)@10", "Entropy", "Gini@3", "Gini(norm='n')@10"),
    *("Gini(items='recommended')@3", "Gini(items='recommended',norm='n')", "Personalization@1", "Personalization@10"),
    *("Personalization(denom='min')@3", "Personalization(denom='min')"),
    *("Personalization(sim='cosine')@3", "Personalization(sim='cosine')@10", "Personalization(sim='cosine')"),
)
ITEMS = [f"i{number}" for number in range(12)]
CATALOGUE = {*ITEMS[3:], "never", "hardly"}
USERS = [f"u{number}" for number in range(30)]

LISTS = st.fixed_dictionaries(
    {
        model: st.dictionaries(st.sampled_from(USERS), st.lists(st.sampled_from(ITEMS), min_size=1, unique=True))
        for model in ("als", "pop")
    }
)


ITEMS_OF_CATALOGUE = texts("item_id", [(item,) for item in (*CATALOGUE, "never", None)])


def rows_of(
    ranked: pa.Table,
    measures: tuple[str, ...] = MEASURES,
    *,
    models: tuple[str, ...] = (),
    segments: pa.Table | None = None,
    absent: Mapping[str, str] = MappingProxyType({}),
    catalogue: pa.Table | None = ITEMS_OF_CATALOGUE,
    **asked: Any,  # noqa: ANN401 - of a request
) -> pa.Table:
    """Compute the measures of lists whose ranks are kept; nobody is judged.

    ``models``: those that have rows whether they have a list or not.
    """
    host = host_of(ranked, measures, models=models, segments=segments, absent=absent, catalogue=catalogue, **asked)
    return to_metrics(host.totals(exposure_sums(host.request, models)), host.request)


def host_of(
    ranked: pa.Table,
    measures: tuple[str, ...] = MEASURES,
    *,
    models: tuple[str, ...],
    segments: pa.Table | None,
    absent: Mapping[str, str],
    catalogue: pa.Table | None,
    **asked: Any,  # noqa: ANN401 - of a request
) -> InProcess:
    asked |= {"policies": Policies(rank_gaps="keep"), "models": models or None, "slicing": Slicing(min_slice_size=5)}
    request = Request(measures=("P@1",)).copy_with(measure_set=MeasureSet.parse(measures), **asked)
    log = ranked.drop_columns("gain")
    judged = pa.Table.from_pylist([], pa.schema([log.schema.field(name) for name in ("user_id", "item_id")]))
    given = {"recommendations": log, "held_out": judged, "segments": segments, "items": catalogue, "train": None}
    host = of_call(given, request, FrameInputs())
    users = host.usable.user_rows
    vars(host.usable)["user_rows"] = replace(users, job=replace(users.job, absent=absent))
    return host


def country_of(user: str) -> str | None:
    """Deal the countries out; every third user has no row of segments, u1 an unknown country."""
    number = int(user[1:])
    return None if number == 1 or number % 3 == 0 else ("FR", "DE")[number % 2]


def tier_of(user: str) -> str:
    return "none" if int(user[1:]) % 3 == 0 else ("gold", "new")[int(user[1:]) % 4 // 2]


@settings(max_examples=25, deadline=None)
@given(LISTS, st.sampled_from([1 << 20, 0]))
def test_values_and_errors_are_those_of_plain_python(lists: Lists, small: int) -> None:
    segments = texts("user_id country tier", [(u, country_of(u), tier_of(u)) for u in USERS if int(u[1:]) % 3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankeval_spark.result_rows.histograms._SMALL", small)
        rows = rows_of(
            ranked_items(lists),
            segments=segments,
            absent={"tier": "none"},
            slices=[("country",), ("tier", "country")],
        )
    found = by_key(rows)
    n_compared = 0
    for measure in map(Measure.parse, MEASURES):
        for model, by_user in lists.items():
            for slice_value, own in slices_of(by_user).items():
                users = list(own)
                assert_row(
                    found[model, slice_value, measure.label, measure.k],
                    measure,
                    *exposure_of(measure, own, CATALOGUE),
                    users,
                )
                n_compared += 1
    assert len(found) == n_compared


def slices_of(by_user: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - items by user
    slices: dict[str, dict[str, Any]] = {}
    for user, items in by_user.items():
        country = country_of(user) or "(unknown)"
        for value in ("", country, f"{tier_of(user)}*{country}"):
            slices.setdefault(value, {})[user] = items
    return slices


def test_several_lists_of_a_user_count_each_and_the_user_once() -> None:
    """Lists {a b}, {a c} of ann and {a b} of bob: pairs share 1, 2 and 1 of 2 items."""
    ranked = ranked_items({"m": {"ann 1": "ab", "ann 2": "ac", "bob 1": "ab"}})
    split = [cell.split() for cell in ranked["user_id"].to_pylist()]
    ranked = ranked.set_column(1, "user_id", pa.array([user for user, _ in split]))
    ranked = ranked.append_column("list_id", pa.array([number for _, number in split]))
    names = ("Personalization@2", "Personalization(denom='min')@2", "ItemCoverage@1")
    found = by_key(rows_of(ranked, names, catalogue=None))
    rows = {label: (row["value"], row["n_users"], row["n_lists"]) for (*_, label, _), row in found.items()}
    share = pytest.approx(1 - (1 + 2 + 1) / 3 / 2, abs=1e-12)
    personal = Measure.parse(names[1]).label
    assert rows == {"Personalization": (share, 2, 3), personal: (share, 2, 3), "ItemCoverage": (1, 2, 3)}


def test_rows_do_not_depend_on_their_order_or_on_chunks() -> None:
    ranked = ranked_items({"m": {user: ITEMS[: 1 + place % 7] for place, user in enumerate(USERS)}})
    order = np.random.default_rng(3).permutation(ranked.num_rows)
    halves = pa.concat_tables([ranked.take(pa.array(order[:20])), ranked.take(pa.array(order[20:]))])
    rows, shuffled = (
        rows_of(one).sort_by([("measure", "ascending"), ("k", "ascending")]).to_pylist() for one in (ranked, halves)
    )
    assert len(rows) == len(MEASURES)
    for row, other in zip(rows, shuffled, strict=True):
        assert {
            name: pytest.approx(cell, abs=1e-12) if isinstance(cell, float) else cell for name, cell in row.items()
        } == other


def test_lists_that_keep_their_ranks_count_where_they_have_an_item() -> None:
    ranked = ranked_items({"m": {"ann": "ab"}}, first_rank=4)
    found = by_key(rows_of(ranked, ("ItemCoverage@3", "ItemCoverage@4", "ItemCoverage")))
    assert {(k, row["value"], row["n_users"]) for (*_, k), row in found.items()} == {(4, 1, 1), (0, 2, 1)}


def test_an_empty_table_has_no_rows() -> None:
    segments = texts("user_id country", [("u1", "FR")])
    rows = rows_of(ranked_items({}), slices=[("country",)], segments=segments)
    assert rows.num_rows == 0
    assert rows.schema == rows_of(ranked_items({"m": {"u1": "a"}})).schema


def test_a_model_without_a_list_has_a_row_of_all_users_at_each_cutoff() -> None:
    """Of "gone" nothing is left, and of "m" nothing down to rank 3."""
    segments = texts("user_id country", [("u1", "FR")])
    for ranked, kept in ((ranked_items({"m": {"u1": "ab"}}, first_rank=4), 1), (ranked_items({}), 0)):
        names = ("ItemCoverage@3", "ItemCoverage@4", "CatalogCoverage@4", "Gini@4", "Entropy@4", "Personalization@4")
        rows = rows_of(ranked, names, models=("gone", "m"), slices=[("country",)], segments=segments)
        of_all = {key: row for key, row in by_key(rows).items() if key[1] == ""}
        found = {(key[0], key[-1]): row["n_users"] for key, row in of_all.items()}
        assert found == {("gone", 3): 0, ("gone", 4): 0, ("m", 3): 0, ("m", 4): kept}
        values = {key[2]: row["value"] for key, row in of_all.items() if key[0] == "gone" and key[-1] == 4}
        assert values == {
            **{"ItemCoverage": 0.0, "CatalogCoverage": 0.0},
            **dict.fromkeys(("Gini", "Entropy", "Personalization")),
        }
        in_slice = {key: row for key, row in by_key(rows).items() if key[1] != "" and key[2] == "ItemCoverage"}
        assert {(key[0], key[-1]): (row["n_users"], row["value"]) for key, row in in_slice.items()} == (
            {("gone", 3): (0, 0), ("gone", 4): (0, 0), ("m", 3): (0, 0), ("m", 4): (1, 1)} if kept else {}
        )
        assert {key[1] for key in by_key(rows)} == ({"", "FR"} if kept else {""})


def test_a_user_with_two_rows_of_segments_is_refused_if_there_is_a_list() -> None:
    segments = texts("user_id country", [("u1", "FR"), ("u2", "FR"), ("u2", "DE"), (None, "DE"), (None, "DE")])
    options: dict[str, Any] = {"slices": [("country",)], "segments": segments}
    assert rows_of(ranked_items({"m": {"u1": "a"}}), **options).num_rows == 2 * len(MEASURES)
    with pytest.raises(RefusedError, match="user 'u2' occurs twice in the segment table; expected each user once"):
        rows_of(ranked_items({"m": {"u1": "a", "u2": "a"}}), **options)


def test_ids_may_be_whole_numbers() -> None:
    ranked = ranked_items({"m": {"1": "23", "2": "4"}})
    numbers = pa.table(
        {
            name: ranked[name].cast(pa.int64()) if name in ("user_id", "item_id") else ranked[name]
            for name in ranked.column_names
        }
    )
    catalogue = pa.table({"item_id": pa.array([2, 5, 5, None], pa.int64())})
    found = by_key(rows_of(numbers, ("CatalogCoverage", "ItemCoverage"), catalogue=catalogue))
    assert [row["value"] for row in found.values()] == [1 / 2, 3]


@given(st.lists(st.integers(0, 9)), st.sampled_from([1 << 20, 0]))
def test_keys_are_counted_and_weights_added_up(keys: list[int], small: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankeval_spark.result_rows.histograms._SMALL", small)
        found, count = count_keys(np.array(keys, dtype=np.int64), n_keys=1000)
        same, (sums,) = sum_by_key(
            np.array(keys, dtype=np.int64), [np.arange(len(keys), dtype=np.float64) - np.float64(1)], n_keys=1000
        )
    expected = sorted(set(keys))
    assert found.tolist() == same.tolist() == expected
    assert count.tolist() == [keys.count(key) for key in expected]
    assert sums.tolist() == [sum(place - 1 for place, one in enumerate(keys) if one == key) for key in expected]


@given(st.lists(st.dictionaries(st.integers(1, 40), st.integers(0, 3), min_size=1)))
def test_pairs_of_lists_are_summed(holders: list[dict[int, int]]) -> None:
    rows = [(place, length, lists[length]) for place, lists in enumerate(holders) for length in sorted(lists)]
    found = sum_over_pairs(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)
    for lists, shared, cosine in zip(holders, *found, strict=True):
        lengths = [length for length, times in lists.items() for _ in range(times)]
        pairs = [(a, b) for i, a in enumerate(lengths) for j, b in enumerate(lengths) if i != j]
        assert shared == pytest.approx(sum(1 / min(pair) for pair in pairs), rel=1e-12)
        assert cosine == pytest.approx(sum(1 / np.sqrt(a * b) for a, b in pairs), rel=1e-12)


def test_buckets_of_items_may_be_merged_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Spark: what workers counted meets by item, in any order, and the histograms by slice."""
    monkeypatch.setattr("rankeval_spark.in_process.assembly.FEW_ROWS", 0)
    monkeypatch.setattr("rankeval_spark.in_process.assembly.ROWS_OF_A_BUCKET", 40)
    draw = random.Random(5)
    lists = {model: {user: draw.sample(ITEMS, draw.randint(1, 9)) for user in USERS} for model in ("als", "pop")}
    options: dict[str, Any] = {
        "models": ("als", "gone", "pop"),
        "segments": texts("user_id country tier", [(user, country_of(user), tier_of(user)) for user in USERS]),
        "absent": {},
        "catalogue": ITEMS_OF_CATALOGUE,
        "slices": [("country",), ("tier", "country")],
    }
    host = host_of(ranked_items(lists), **options)
    sums = exposure_sums(host.request, options["models"])
    assert len(host.usable.user_rows.buckets) > 3
    partials = host.usable.user_rows.run(lambda job: ListTotals(job, sums).add)
    for readers in group_by_catalogue(sums).values():
        partials += CatalogueItems(readers).add(ITEMS_OF_CATALOGUE.to_batches())
    draw.shuffle(partials)

    histograms = [
        (sums[name].into, rows)
        for name, rows in by_bucket(sums, [one for one in partials if sums[one[0]].into])
        for rows in sums[name].finish(rows).to_batches()
    ]
    direct = [one for one in partials if not sums[one[0]].into]
    found = pa.concat_tables([sums[name].finish(rows) for name, rows in by_bucket(sums, [*direct, *histograms])])
    expected = by_key(rows_of(ranked_items(lists), **options))
    assert {key: pytest.approx(row, abs=1e-12) for key, row in numbers_of(expected).items()} == numbers_of(
        by_key(found)
    )


def by_bucket(sums: Mapping[str, Any], partials: Sequence[tuple[Any, pa.RecordBatch]]) -> list[tuple[str, pa.Table]]:
    """Pack partial rows, and unpack those of each sum and bucket together."""
    cells: dict[tuple[str, int], list[pa.Scalar]] = {}
    for name, rows in partials:
        for bucket, own in grouping.split_by_key_bucket(rows, sums[name].key):
            cells.setdefault((name, bucket), []).append(grouping.pack(name, bucket, own)["rows"][0])
    return [(name, grouping.unpack(own)) for (name, _), own in cells.items()]


def numbers_of(rows: Mapping[Any, Mapping[str, Any]]) -> dict[Any, dict[str, Any]]:
    names = ("value", "n_users", "n_lists", "std_error", "ci_low", "ci_high")
    return {key: {name: row[name] for name in names} for key, row in rows.items()}
