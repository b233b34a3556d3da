"""What the training data and the catalogue know of the recommended items, from the tables to the per-user values."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError, RefusedCallError
from tests.support.arrow_frames import by, dicts, in_chunks, judgements, ranking, shuffled, table, where
from tests.support.sections import measured

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

DATE: Final = dt.date(2026, 1, 31)
LENGTHS: Final = (
    r"evaluate\(items=\): found vectors of two lengths, 1 numbers for 'a' and 2 numbers for 'b'; "
    r"expected one length; give each item a vector of one length$"
)
LISTS: Final = {"ann": "b d d z", "bob": "a c", "eve": "c"}
"""d occurs twice in ann's; the second one does not count."""

TRAIN: Final = ("ann a", "ann a", "ann b", "bob a", "bob c", "cid a", "dan a", "dan b", "dan d")
"""a has 5 of 9 interactions and all 4 users, b 2 and 2, c and d 1 and 1. 80 % of 9 are held by a, b and c, not by d."""

ITEMS: Final[tuple[tuple[Any, ...], ...]] = (
    ("a", ["rock"], [2.0, 0.0], dt.date(2026, 1, 31)),
    ("b", ["rock", "jazz"], [0.0, 1.0], dt.date(2026, 1, 21)),
    ("c", ["jazz", "jazz"], [3.0, 4.0], dt.date(2026, 1, 1)),
    ("d", ["folk"], [-1.0, 0.0], dt.date(2025, 12, 31)),
    ("e", [], [1.0, 1.0], None),
)

EXPECTED: Final[dict[str, dict[str, float | None]]] = {
    "ARP@2": {"ann": (2 + 1) / 2, "bob": (5 + 1) / 2, "eve": 1},
    "ARP(norm='C')@2": {"ann": (2 + 1) / 2 / 9, "bob": (5 + 1) / 2 / 9, "eve": 1 / 9},
    "ARP(norm='max')@3": {"ann": (2 + 1 + 0) / 3 / 5, "bob": 6 / 2 / 5, "eve": 1 / 5},
    "MIUF@3": {"ann": (1 + 2 + 2) / 3, "bob": (0 + 2) / 2, "eve": 2},
    "SelfInfo@1": {"ann": math.log2(9 / 2), "bob": math.log2(9 / 5), "eve": math.log2(9)},
    "EPC(relevance='off')@1": {"ann": 1 - 2 / 4, "bob": 0, "eve": 1 - 1 / 4},
    "EPC@2": {
        "ann": (1 - 1 / 4) / math.log2(3) / (1 + 1 / math.log2(3)),
        "bob": (1 - 1 / 4) / math.log2(3) / (1 + 1 / math.log2(3)),
        "eve": 0,
    },
    "EFD(relevance='off')@1": {"ann": math.log2(9 / 2), "bob": math.log2(9 / 5), "eve": math.log2(9)},
    "APLT@3": {"ann": 2 / 3, "bob": 0, "eve": 0},
    "ACLT@3": {"ann": 2, "bob": 0, "eve": 0},
    # Items that a user has: ann's a and b, bob's a and c; eve is not in the training data.
    "PopLift@2": {"ann": (3 / 2 - 7 / 2) / (7 / 2), "bob": 0, "eve": None},
    # By users 4, 2, 1, 1: quantiles 4/4, 3/4 and 1.5/4 for c and d.
    "MeanPopRank@2": {"ann": (3 / 4 + 3 / 8) / 2, "bob": (1 + 3 / 8) / 2, "eve": 3 / 8},
    "UnrepeatedReco@2": {"ann": 2 / 3, "bob": 1, "eve": 1},
    "NotInTrain@2": {"ann": 1 / 2, "bob": 0, "eve": 1},
    "SufficientReco@2": {"ann": 1, "bob": 1, "eve": 0},
    "Freshness@2": {"ann": (10 + 31) / 2, "bob": (0 + 30) / 2, "eve": 30},
    "Freshness@3": {"ann": None, "bob": 15, "eve": 30},
    "Freshness(stat='share',unknown='drop')@3": {"ann": 1 / 2, "bob": 1 / 2, "eve": 0},
    "ILD@2": {"ann": 1, "bob": 1 - 3 / 5, "eve": None},
    "ILS@3": {"ann": None, "bob": 3 / 5, "eve": None},
    "ILD(sim='jaccard')@2": {"ann": 1, "bob": 1, "eve": None},
    # a and c have bob in common, of 4 users and 1; b and d have dan, of 2 and 1.
    "ILD(sim='cooccurrence')@2": {"ann": 1 - 1 / math.sqrt(2), "bob": 1 - 1 / math.sqrt(4), "eve": None},
    "ILS(sim='cooccurrence',unknown='drop')@3": {"ann": 1 / math.sqrt(2), "bob": 1 / 2, "eve": None},
    "ILD(discount='log2',sim='cooccurrence',unknown='drop')@3": {
        "ann": 1 - 1 / math.sqrt(2),
        "bob": 1 - 1 / 2,
        "eve": None,
    },
    # Of b and d, d is relevant to ann, and a pair takes two.
    "ILD(rel=1)@2": {"ann": 0, "bob": 0, "eve": None},
    "alpha_nDCG@2": {"ann": 1 / math.log2(3), "bob": 1 / math.log2(3), "eve": None},
    "ERR_IA@2": {"ann": (1 / 2) / (1 + 1 / 2 / 2), "bob": (1 / 2) / (1 + 1 / 2 / 2), "eve": None},
    "SRecall@2": {"ann": 2 / 2, "bob": 2 / 2, "eve": None},
    "SRecall(of='all')@2": {"ann": 3 / 3, "bob": 2 / 3, "eve": 1 / 3},
    # The catalogue has 5 items; c and d are third by their interactions.
    "Serendipity(kind='pop')@3": {
        "ann": ((5 + 1 - 2) / 5 - (5 + 1 - 3) / 5) / 3,
        "bob": ((5 + 1 - 2) / 5 - (5 + 1 - 3) / 5) / 2,
        "eve": 0,
    },
    "Serendipity(kind='ge')@2": {"ann": 1 / 2, "bob": 1 / 2, "eve": 0},
    "Serendipity(kind='ge')@3": {"ann": 1 / 3, "bob": 0, "eve": 0},
    # ann's items point to x and y, half of each; bob's to x and to (3, 4) / 5: a and c are at a cosine of 8/10.
    "Unexpectedness@2": {"ann": (1 / 2 + 3 / 2) / 2, "bob": (2 / 10 + 2 / 10) / 2, "eve": None},
    # To a and b, b is at (2 / sqrt(8) + 1) / 2 and d at (1 / sqrt(4) + 1 / sqrt(2)) / 2; to a and c, a and c at 3/4.
    "Unexpectedness(sim='cooccurrence')@2": {
        "ann": 1 - ((1 / math.sqrt(2) + 1) / 2 + (1 / 2 + 1 / math.sqrt(2)) / 2) / 2,
        "bob": 1 - 3 / 4,
        "eve": None,
    },
    "Unexpectedness(sim='cooccurrence')@3": {"ann": None, "bob": 1 - 3 / 4, "eve": None},
    "Serendipity(sim='cooccurrence',unknown='drop')@3": {
        "ann": (1 - (1 / 2 + 1 / math.sqrt(2)) / 2) / 2,
        "bob": (1 - 3 / 4) / 2,
        "eve": None,
    },
    "Serendipity@2": {"ann": 3 / 2 / 2, "bob": 2 / 10 / 2, "eve": None},
    # ann has a and b: 3/4 rock, 1/4 jazz; bob a and c: half and half.
    "Calibration(distance='JS')@2": {
        "ann": sum(
            x * math.log2(x / y) / 2
            for x, y in ((3 / 4, 1 / 2), (1 / 4, 1 / 4), (1 / 4, 1 / 2), (1 / 4, 1 / 4), (1 / 2, 1 / 4))
        ),
        "bob": 0,
        "eve": None,
    },
}


def inputs() -> dict[str, pa.Table]:
    """Make the inputs."""
    return {
        "recommendations": ranking(LISTS),
        "held_out": judgements({"ann": {"d": 1}, "bob": {"c": 2}, "eve": {"x": 1}, "gus": {"a": 1}}),
        "train": table("user_id item_id", *(tuple(row.split()) for row in TRAIN)),
        "items": table("item_id categories vector published_at", *ITEMS),
    }


def evaluated(**options: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
    """Evaluate the lists with all measures that look at items."""
    given = {**inputs(), "measures": list(EXPECTED), "evaluation_date": DATE, **options}
    return measured(given.pop("recommendations"), given.pop("held_out"), **given)


def values_of(result: Evaluation) -> dict[str, dict[str, float | None]]:
    """Value of each user by measure."""
    found: dict[str, dict[str, float | None]] = {}
    for row in dicts(result.user_values):
        found.setdefault(f"{row['measure']}@{row['k']}", {})[row["user_id"]] = row["value"]
    return found


def test_values_are_those_of_the_definitions() -> None:
    found = values_of(evaluated())
    for measure, expected in EXPECTED.items():
        wanted = {"gus": None, **expected}  # a judged user without a list has no value
        assert {user for user, value in found[measure].items() if value is None} == {
            user for user, value in wanted.items() if value is None
        }, measure
        defined = {user: value for user, value in wanted.items() if value is not None}
        assert {user: found[measure][user] for user in defined} == pytest.approx(defined, rel=0, abs=1e-12), measure


def test_users_without_a_list_are_counted_and_not_in_the_mean() -> None:
    result = evaluated(measures=["MIUF@3", "Freshness@3", "PopLift@2"], population="judged")
    rows = {row["measure"]: row for row in dicts(result.metrics)}
    assert rows["MIUF"]["value"] == pytest.approx((5 / 3 + 1 + 2) / 3, rel=0, abs=1e-12)
    assert [rows[name]["n_users"] for name in ("MIUF", "Freshness")] == [3, 2]
    assert [rows[name]["n_undefined"] for name in ("MIUF", "Freshness")] == [1, 2]
    # eve is not in the training data, gus has no list: the means are over ann and bob.
    assert (rows["PopLift"]["n_users"], rows["PopLift"]["n_undefined"], rows["PopLift"]["ci_method"]) == (2, 2, "delta")
    assert rows["PopLift"]["value"] == pytest.approx((3 / 2 + 3) / (7 / 2 + 3) - 1, rel=0, abs=1e-12)


def test_rows_and_chunks_in_any_order_give_the_same_bits() -> None:
    plain = values_of(evaluated())
    in_any_order = {name: in_chunks(shuffled(frame, 7), 5) for name, frame in inputs().items()}
    assert values_of(evaluated(**in_any_order)) == plain


def test_repeated_item_fails_with_a_readable_message() -> None:
    items = inputs()["items"]
    twice = pa.concat_tables([items, where(items, item_id="a")])
    result = evaluated(measures=["ILD@2"], items=twice)
    with pytest.raises(RefusedCallError, match=r"evaluate\(items=\): found item 'a' twice in the catalogue"):
        _ = result.user_metrics


def test_vectors_of_different_lengths_fail_with_a_readable_message() -> None:
    result = evaluated(measures=["ILD@2"], items=table("item_id vector", ("a", [1.0]), ("b", [1.0, 2.0])))
    with pytest.raises(RefusedCallError, match=LENGTHS):
        _ = result.user_metrics


def test_inputs_that_a_measure_lacks_are_named_before_anything_is_computed() -> None:
    measures = ["MIUF@2", "Calibration@2", "Freshness@2"]
    with pytest.raises(ConfigError) as raised:
        evaluated(measures=measures, train=None, items=None, evaluation_date=None)
    assert [str(fault) for fault in raised.value.faults] == [
        f"evaluate({name}=): found None; expected {what}, for {measures}; give it, or leave these measures out"
        for name, what, measures in (
            ("train", "a table with user_id and item_id", "MIUF, Calibration"),
            ("items", "a table with item_id and facts of the items", "Calibration, Freshness"),
            ("evaluation_date", "a date, such as '2026-01-31' or date(2026, 1, 31)", "Freshness"),
        )
    ]


def test_column_that_a_measure_lacks_is_named_before_anything_is_computed() -> None:
    items = inputs()["items"].drop_columns(["vector", "published_at"])
    with pytest.raises(InputError) as raised:
        evaluated(measures=["ILD@2", "Freshness@2", "ILD(sim='jaccard')@2"], items=items)
    assert [fault.found for fault in raised.value.faults] == ["no column 'vector'", "no column 'published_at'"]


@pytest.mark.parametrize("length", [1.0, 1e200, 1e-200, 2.0**-1070, 2.0**1023])
def test_the_length_of_vectors_does_not_matter(length: float) -> None:
    """Cosines: a, b 0; a, c and b, c 1 / sqrt(2). The user has b alone."""
    vectors = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [1.0, 1.0]}
    result = evaluate(
        table("user_id item_id score", ("u", "a", 3.0), ("u", "b", 2.0), ("u", "c", 1.0)),
        judgements({"u": {"a": 1}}),
        measures=["ILD@3", "ILS@3", "ILD(discount='log2')@2", "Unexpectedness@3", "Serendipity@1"],
        items=table("item_id vector", *((item, [one * length for one in vector]) for item, vector in vectors.items())),
        train=table("user_id item_id", ("u", "b")),
    )
    with warnings.catch_warnings(action="error"):
        found = by(result.metrics, "measure", value="value")
    similarity = 2 / math.sqrt(2) / 3
    expected = {
        **{"ILD": 1 - similarity, "ILS": similarity, "ILD(discount='log2')": 1.0},
        **{"Unexpectedness": 1 - (0 + 1 + 1 / math.sqrt(2)) / 3, "Serendipity": 1.0},
    }
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("vectors", [(None, None), (None, [1.0, 0.0]), ([1.0, 0.0], [0.0, 2.0])], ids=str)
def test_some_items_or_all_may_be_without_vectors(vectors: tuple[Any, Any]) -> None:
    result = evaluate(
        ranking({"ann": "a b", "bob": "x y"}),
        judgements({"ann": {"a": 1}, "bob": {"x": 1}}),
        measures=["ILD@2", "ILD(unknown='drop')@2", "ILS(sim='hamming',unknown='drop')@2", "Unexpectedness@2"],
        train=table("user_id item_id", ("ann", "a"), ("bob", "y")),
        items=table("item_id vector", *zip("ab", vectors, strict=True)),
    )
    found = values_of(result)
    assert found["ILD@2"] == {"ann": None if None in vectors else 1, "bob": None}
    assert found["Unexpectedness@2"] == {"ann": None if None in vectors else 1 / 2, "bob": None}


@pytest.mark.parametrize("shown", ["a x b c", "x a b c", "a b x c", "x a y b z c"])
@pytest.mark.parametrize("sim", ["vector", "jaccard", "hamming"])
def test_unknown_items_leave_no_gap_where_places_count(shown: str, sim: str) -> None:
    catalogue = table(
        "item_id vector categories", ("a", [1.0, 0.0], ["p", "q"]), ("b", [0.0, 1.0], ["q"]), ("c", [1.0, 1.0], ["r"])
    )
    names = [f"ILD({rel}discount='log2',sim='{sim}',unknown='drop')" for rel in ("", "rel=1,")]

    def values(shown: str) -> list[float]:
        held_out = judgements({"u": {"a": 1, "c": 1}})
        found: list[float] = (
            evaluate(ranking({"u": shown}), held_out, measures=names, items=catalogue).metrics["value"].to_pylist()
        )
        return found

    assert values(shown) == values("a b c")
