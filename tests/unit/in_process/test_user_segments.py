"""Numbers of users of Arrow tables become a few values, as on Spark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.config import validate_model
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import Band, Slicing
from rankeval_spark.engine import row_kinds
from rankeval_spark.errors import InputError
from rankeval_spark.in_process.user_segments import to_segment_rows, to_segments
from rankeval_spark.inputs.input_columns import refuse_missing
from rankeval_spark.result_rows.bands import find_edges, number_text, round_numbers
from tests.support.arrow_sources import source

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES: Final = {
    "age": {"edges": [18, 25, 40]},
    "income": {"quantiles": 4},
    "score": {"edges": [0.5], "labels": ["low", "high"]},
    "nobody": {"quantiles": 2},
}


def requested(rules: dict[str, Any]) -> Request:
    return Request(
        measures=("P@1",), slicing=Slicing(bands={name: validate_model(Band, rules[name]) for name in rules})
    )


def edge_texts(n_bands: int = 4, **columns: Sequence[float]) -> dict[str, list[str]]:
    rule = validate_model(Band, {"quantiles": n_bands})
    return {
        name: list(map(number_text, find_edges(np.array(values, dtype=np.float64), rule).tolist()))
        for name, values in columns.items()
    }


def test_a_band_holds_its_edge_and_what_is_no_number_has_no_band() -> None:
    """Of incomes 1234567, 10, 20, 30, 0.012345 (rounded to 1235000 and 0.0123) the quartiles are 10, 20 and 30."""
    users = pa.table(
        {
            C.USER_ID: list("abcde"),
            "age": pa.array([17.9, 18.0, 40.0, math.nan, None]),
            "income": pa.array([1_234_567.0, 10.0, 20.0, 30.0, 0.012345]),
            "score": pa.array([0.5, 0.4, -1.0, math.inf, None]),
            "nobody": pa.nulls(5, pa.float64()),
            "plain": ["x", None, "y", "x", "y"],
        }
    )
    banded, facts = to_segments({"segments": users}, requested(RULES))
    assert banded is not None
    assert banded.to_pydict() == {
        C.USER_ID: list("abcde"),
        "age": ["< 18", "[18, 25)", ">= 40", None, None],
        "income": [">= 30", "[10, 20)", "[20, 30)", ">= 30", "< 10"],
        "score": ["high", "low", "low", "high", None],
        "nobody": [None] * 5,
        "plain": ["x", None, "y", "x", "y"],
    }
    assert [tuple(vars(fact).values()) for fact in facts] == [
        ("segments", "bands.age", 2, 5, ["18", "25", "40"]),
        ("segments", "bands.income", 0, 5, ["10", "20", "30"]),
        ("segments", "bands.score", 1, 5, ["0.5"]),
        ("segments", "bands.nobody", 5, 5, []),
    ]


def test_numbers_close_together_far_from_0_are_distinct() -> None:
    steps = range(80)
    found = edge_texts(
        year=[2015 + step % 10 for step in steps],
        year_or_0=[2015 + step % 10 if step else 0 for step in steps],
        time=[1_700_000_000 + 86_400 * step for step in steps],
        time_us=[1_700_000_000_000_000 + step for step in steps],
        below_0=[-1_000_000 - step for step in steps],
        fraction=[1e-7 + 1e-12 * step for step in steps],
    )
    assert found == {
        "year": ["2017", "2019.5", "2022"],
        "year_or_0": ["2017", "2020", "2022"],
        "time": ["1701707000", "1703413000", "1705120000"],
        "time_us": ["1.7000000000000198E15", "1.7000000000000395E15", "1.7000000000000592E15"],
        "below_0": ["-1000059.25", "-1000039.5", "-1000019.75"],
        "fraction": ["1.0001975E-7", "1.000395E-7", "1.0005925E-7"],
    }
    assert edge_texts(3, x=[0.00012344 * 10**power for power in (0, 3, 9, 16)]) == {"x": ["0.123", "123000"]}


def test_few_distinct_numbers_and_extreme_ones_have_edges_too() -> None:
    found = edge_texts(
        2,
        same=[2015] * 4,
        zero=[0.0, -0.0] * 2,
        two=[0, 0, 1, 1],
        widest=[-1e308, -1e308, 1e308, 1e308],
        least=[5e-324, 1e-323, 1e-323, 1e-322],
        infinite=[-math.inf, 2015, 2016, math.inf],
        undefined=[math.nan, 2015, 2015, 2015],
    )
    assert found == {
        "same": ["2015"],
        "zero": ["0"],
        "two": ["0.5"],
        "widest": ["0"],
        "least": ["0"],
        "infinite": ["2015.5"],
        "undefined": ["2015"],
    }


def test_edges_are_the_quantiles_of_the_numbers_within_a_step() -> None:
    random = np.random.default_rng(20)
    columns = {
        "normal": random.normal(0, 1, 500),
        "shifted": random.normal(-1e6, 1, 500),
        "time": random.integers(1_700_000_000, 1_700_086_400, 500).astype(float),
        "tiny": 1e-9 + 1e-12 * random.random(500),
        "skewed": np.floor(10 ** random.uniform(0, 6, 500)),
    }
    found = edge_texts(7, **{name: values.tolist() for name, values in columns.items()})
    for name, values in columns.items():
        step = 10.0 ** (math.floor(math.log10(np.ptp(values))) - 3)
        expected = np.quantile(values, np.arange(1, 7) / 7)
        np.testing.assert_allclose([float(edge) for edge in found[name]], expected, rtol=0, atol=1.01 * step)


def test_quantiles_are_taken_of_ten_thousand_numbers_however_many_users_there_are() -> None:
    """Of a million users; 0 to 1 is 10,000 steps, and four powers of ten below 0.1 have 900 numbers each."""
    near_0 = np.arange(1_000_000) / 1_000_000
    assert len(np.unique(round_numbers(near_0 + 1_700_000_000, 1.0))) <= 10_001
    assert len(np.unique(round_numbers(near_0, 1.0))) <= 10_001 + 4 * 900


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (-0.0, "0"),
        (9007199254740991.0, "9007199254740991"),
        (9007199254740992.0, "9.007199254740992E15"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-0.1, "-0.1"),
        (9999999.5, "9999999.5"),
        (10000000.5, "1.00000005E7"),
        (1e17, "1.0E17"),
        (-1e-5, "-1.0E-5"),
        (12345678.25, "1.234567825E7"),
        (5e-324, "4.9E-324"),
    ],
)
def test_numbers_are_written_as_java_does(number: float, written: str) -> None:
    assert number_text(number) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_text_is_the_number(number: float) -> None:
    assert float(number_text(number)) == number


def test_rounding_keeps_the_finer_of_the_digits() -> None:
    numbers = np.array([1234.5, 0.012345, -0.5, 1000.0, 0.0, 2.5])
    assert round_numbers(numbers, 1.0).tolist() == [1234.5, 0.0123, -0.5, 1000.0, 0.0, 2.5]
    assert round_numbers(numbers, 1000.0).tolist() == [1235.0, 0.0123, -0.5, 1000.0, 0.0, 2.5]
    assert round_numbers(numbers, 0.0).tolist() == numbers.tolist()


def test_everyone_of_either_table_has_an_activity() -> None:
    """Ann has 1 interaction, bob 2 and cat 9; dan is in the segment table only."""
    users = [user for user, n in (("ann", 1), ("bob", 2), ("cat", 9)) for _ in range(n)]
    train = pa.table({C.USER_ID: [*users, None], C.ITEM_ID: ["i"] * 13})
    segments = pa.table({C.USER_ID: ["dan", "ann", None], "age": pa.array([70.0, 33.0, None])})
    request = requested({"age": {"edges": [40]}, "activity": {"of": "train"}})
    found, facts = to_segments({"segments": segments, "train": train}, request)
    assert found is not None
    assert found.to_pydict() == {
        C.USER_ID: ["dan", "ann", None, "bob", "cat"],
        "age": [">= 40", "< 40", None, None, None],
        "activity": ["none", "low", "none", "middle", "high"],
    }
    assert [tuple(vars(fact).values()) for fact in facts] == [
        ("segments", "bands.age", 1, 3, ["40"]),
        ("train", "bands.activity", 0, 3, ["1.667", "4.333"]),
    ]
    alone, _ = to_segments({"train": train}, requested({"activity": {"of": "train"}}))
    assert alone is not None
    assert alone.to_pydict() == {C.USER_ID: ["ann", "bob", "cat"], "activity": ["low", "middle", "high"]}


def test_segments_of_one_table_share_its_users_with_each_their_bands() -> None:
    train = pa.table({C.USER_ID: ["ann", "bob", "bob", None], C.ITEM_ID: ["i", "i", "j", "i"]})
    segments = pa.table({C.USER_ID: ["dan", "bob"], "country": ["DE", None]})
    rules = {"often": {"of": "train", "edges": [2]}, "tier": {"of": "train", "labels": ["a", "b", "c"]}}
    found, facts = to_segments({"segments": segments, "train": train}, requested(rules))
    assert found is not None
    assert found.to_pydict() == {
        C.USER_ID: ["dan", "bob", "ann"],
        "country": ["DE", None, None],
        "often": ["none", ">= 2", "< 2"],
        "tier": ["none", "c", "a"],
    }
    assert [(fact.check, fact.count, fact.total) for fact in facts] == [("bands.often", 0, 2), ("bands.tier", 0, 2)]


def test_a_column_that_a_kind_of_segment_reads_is_required() -> None:
    log = source("recommendations", "model_id user_id item_id score", ("m", "ann", "a", 1.0))
    held_out, train = source("held_out", "user_id item_id", ("ann", "a")), source("train", "item_id", ("a",))
    expected = "train: found no column 'user_id'; expected the column, for the bands of 'activity'"
    with pytest.raises(InputError, match=expected):
        refuse_missing([log, held_out, train], requested({"activity": {"of": "train"}}))


def test_rows_of_the_engine_hold_the_values_in_the_order_of_the_names() -> None:
    segments = pa.table({C.USER_ID: ["a", "b"], "x": ["1", None], "y": ["2", "3"], "z": ["4", "5"]})
    found = to_segment_rows(segments, ("z", "x"))
    assert found.to_pydict() == {C.USER_ID: ["a", "b"], row_kinds.SEGMENT_VALUES: [["4", "1"], ["5", None]]}
    assert found.schema.field(row_kinds.SEGMENT_VALUES).type == pa.list_(pa.string())
    assert len(to_segment_rows(segments.slice(0, 0), ("z", "x"))) == 0
