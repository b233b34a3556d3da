"""Measures as functions of SQL, over the published lists of a night and over arrays; and the page about them."""

from __future__ import annotations

import random
from math import log2
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from rankeval_spark import Results, evaluate, register_functions
from rankeval_spark.errors import ConfigError
from tests.support import nights, query_night
from tests.support.nights import FIRST
from tests.support.pages import SQL_PAGE, blocks
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: Final = {
    "ndcg": "ndcg",
    "dcg": "dcg",
    "precision": "p",
    "recall": "r",
    "reciprocal_rank": "rr",
    "average_precision": "ap",
    "hit_rate": "success",
}
"""Columns of ``user_metrics`` by the functions that compute them."""

MEASURES: Final = ("nDCG", "DCG", "P", "R", "RR", "AP", "Success")
CUTOFFS: Final = (1, 2, 5, 10)
LISTS: Final = "hit_ranks, hit_gains, judged_gains"


@pytest.fixture(scope="module")
def logs() -> tuple[nights.Rows, nights.Rows]:
    """Draw the log and the judgements of a night: missing lists, negative gains, nothing relevant."""
    draw, day = random.Random(20261127), FIRST.isoformat()
    items, users = "abcdefghijkl", [f"u{number}" for number in range(80)]
    log = [
        {"day": day, "model_id": model, "user_id": user, "item_id": item, "score": draw.choice((0.0, 1.0, 2.0, 3.0))}
        for model in ("als", "pop")
        for user in users
        for item in draw.sample(items, draw.choice((0, 1, 5, 12)))
    ]
    judged = [
        {"day": day, "user_id": user, "item_id": item, "gain": draw.choice((-1.0, 0.0, 0.5, 1.0, 2.0, 3.0))}
        for user in users
        for item in draw.sample(items, draw.choice((0, 1, 2, 6)))
    ]
    return log, judged


@pytest.fixture(scope="module")
def root(logs: tuple[nights.Rows, nights.Rows], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Publish the night, and give its root."""
    workspace = nights.workspace(tmp_path_factory.mktemp("lists") / "night", measures=MEASURES, cutoffs=CUTOFFS)
    for name, rows in zip(("recommendations", "held_out"), logs, strict=True):
        workspace.write(name, rows)
    query_night.run(workspace, FIRST)
    return workspace.root


def one(spark: SparkSession, expression: str) -> Any:  # noqa: ANN401 - a number or NULL
    """Return the value of an expression, in which ``ones`` is an array."""
    return spark.sql(f"SELECT {expression} FROM (SELECT array(1, 1) AS ones)").collect()[0][0]


def test_values_over_lists_are_those_of_user_metrics(spark: SparkSession, root: str) -> None:
    """To the bit at the cutoffs of the night: the same kernels. Users without a judgement have no value."""
    results = Results(root, spark)
    results.lists().createOrReplaceTempView("lists")
    with no_spark_jobs(spark):
        register_functions(spark)
    calls = ", ".join(f"{name}({LISTS}, k) AS {column}" for name, column in COLUMNS.items())
    cutoffs = ", ".join(f"({k})" for k in CUTOFFS)
    rows = spark.sql(f"SELECT model_id, user_id, k, {calls} FROM lists CROSS JOIN (VALUES {cutoffs}) AS at(k)")
    found = {row[:3]: row[3:] for row in rows.collect()}
    expected = {row[:3]: row[3:] for row in results.user_metrics().select(rows.columns).collect()}
    assert {key: found.pop(key) for key in expected} == expected
    assert set(found.values()) == {(None,) * len(COLUMNS)}
    assert len(expected) > 50 * 2 * len(CUTOFFS)
    assert 0 < sum(row[0] is None for row in expected.values()) < len(expected) / 2


def test_means_over_lists_are_those_of_the_night(spark: SparkSession, root: str) -> None:
    results = Results(root, spark)
    results.lists().createOrReplaceTempView("lists")
    register_functions(spark)
    found = spark.sql(f"SELECT model_id, avg(ndcg({LISTS}, 10)) FROM lists GROUP BY model_id").collect()
    means = results.metrics(measure="nDCG", k=10, slice="all").select("model_id", "value").collect()
    assert {row[0]: row[1] for row in found} == pytest.approx({row[0]: row[1] for row in means}, rel=0, abs=1e-12)


OF_ARRAYS: Final = [
    ("ndcg(array(1, 3), array(1.0, 2.0), array(2.0, 1.0), 3)", (1 + 2 / log2(4)) / (2 + 1 / log2(3))),
    ("ndcg(array(3, 1), array(2, 1), array(1, 2), 3)", (1 + 2 / log2(4)) / (2 + 1 / log2(3))),
    ("dcg(array(1, 3), array(1D, 2D), array(2D, 1D), 2)", 1.0),
    ("precision(array(1, 3), array(1F, 1F), array(1F, 1F), 2)", 1 / 2),
    ("recall(array(1, 3), array(1, 1), array(1, 1, 1), 3)", 2 / 3),
    ("recall(array(1, 3), array(1, 1), array(1, 1, 1), 1000000000)", 2 / 3),
    ("reciprocal_rank(array(2, 3), array(0, 1), array(1, 0), 3)", 1 / 3),
    (
        "average_precision(k => 3, hit_gains => ones, hit_ranks => array(3, 1), judged_gains => ones)",
        (1 + 2 / 3) / 2,
    ),
    ("hit_rate(array(2), array(1), array(1), 1)", 0.0),
    ("hit_rate(array(), array(), array(1), 10)", 0.0),
    ("hit_rate(NULL, NULL, array(1), 10)", 0.0),
    ("recall(array(1), array(0), array(0), 10)", None),
    ("ndcg(array(), array(), array(), 10)", None),
    ("ndcg(array(1), array(1), NULL, 10)", None),
    ("dcg(array(1), array(-1), array(-1), 10)", None),
    ("ndcg(array(1), array(2), array(2, 2), 5L)", 1 / (1 + 1 / log2(3))),
]


def test_of_arrays_written_down(spark: SparkSession) -> None:
    register_functions(spark)
    found = one(spark, f"array({', '.join(expression for expression, _ in OF_ARRAYS)})")
    for (expression, expected), value in zip(OF_ARRAYS, found, strict=True):
        assert value is None if expected is None else value == pytest.approx(expected, rel=0, abs=1e-12), expression


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("array(1), array(1), array(1), 0", "ndcg(k): found 0; expected a whole number of at least 1"),
        ("array(1), array(1), array(1), -5", "ndcg(k): found -5"),
        ("array(1), array(1), array(1), NULL", "ndcg(k): found NULL"),
        ("array(1), array(1), array(1), 2.5", "ndcg(k): found 2.5"),
        ("array(1), array(1), array(1), 'ten'", "ndcg(k): found ten"),
        ("array(1, 2), array(1), array(1), 5", "hit_ranks and hit_gains of different lengths"),
        ("array(1), NULL, array(1), 5", "hit_ranks and hit_gains of different lengths"),
        ("array(0), array(1), array(1), 5", "ndcg(hit_ranks): found a rank that is not 1, 2, 3"),
        ("array(1), array(1), array(1, NULL), 5", "ndcg(judged_gains): found NULL, NaN or infinity"),
        ("array(1), array('NaN'::double), array(1), 5", "ndcg(hit_gains): found NULL, NaN or infinity"),
        ("'1', '1', '1', 5", "ndcg(hit_ranks): found something else than arrays of numbers"),
        ("array(1), array(1), 5", "ndcg() missing 1 required positional argument: 'k'"),
    ],
)
def test_what_has_no_meaning_is_refused(spark: SparkSession, arguments: str, words: str) -> None:
    register_functions(spark)
    with pytest.raises(PySparkException) as refused:
        one(spark, f"ndcg({arguments})")
    assert words in str(refused.value)


def test_cutoffs_may_differ_from_row_to_row(spark: SparkSession) -> None:
    register_functions(spark)
    found = spark.sql("SELECT id, precision(array(1), array(1), array(1), id) FROM range(1, 200)").collect()
    assert [row[1] for row in found] == pytest.approx([1 / row[0] for row in found], rel=0, abs=1e-12)


def test_prefix_and_options_make_other_functions(spark: SparkSession) -> None:
    register_functions(spark)
    found = register_functions(spark, prefix="exp4_", rel=4, dcg="exp-log2")
    assert list(found) == [f"exp4_{name}" for name in COLUMNS]
    arrays = "array(1, 2), array(2, 4), array(4, 2)"
    assert one(spark, f"exp4_ndcg({arrays}, 2)") == pytest.approx((3 + 15 / log2(3)) / (15 + 3 / log2(3)), abs=1e-12)
    assert (one(spark, f"precision({arrays}, 2)"), one(spark, f"exp4_precision({arrays}, 2)")) == (1, 1 / 2)
    frame = spark.sql("SELECT array(1, 2) AS ranks, array(2, 4) AS gains, 2 AS k")
    assert frame.select(found["exp4_hit_rate"]("ranks", "gains", "gains", "k")).collect()[0][0] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prefix": "my-"}, "register_functions(prefix=): found 'my-'"),
        ({"prefix": "1_"}, "letters, digits and underscores"),
        ({"dcg": "log"}, "register_functions"),
        ({"rel": "high"}, "register_functions"),
    ],
)
def test_options_that_do_not_exist_are_refused(spark: SparkSession, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        register_functions(spark, **arguments)
    assert words in str(refused.value)


def test_no_name_is_one_that_spark_has(spark: SparkSession) -> None:
    built_in = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert built_in.isdisjoint(COLUMNS)


def test_blocks_of_the_page_give_the_values_of_the_night(
    spark: SparkSession, root: str, logs: tuple[nights.Rows, nights.Rows]
) -> None:
    """From top to bottom, as a reader runs them, on the logs of the night and on its lists."""
    tables = [nights.arrow_of(nights.of_date(rows, FIRST)) for rows in logs]
    frames = {
        "recommendations": tables[0],
        "held_out": tables[1],
        "segments": pa.table({"user_id": ["u1"], "country": ["AT"]}),
    }
    names: dict[str, Any] = {name: spark.createDataFrame(table) for name, table in frames.items()}
    names |= {"spark": spark, "root": root}
    answers = []
    for block in (one for one in blocks() if one.page == SQL_PAGE):
        if block.language == "python":
            exec(block.text, names)
        else:
            answers.append(values(spark.sql(block.text).toArrow()))
    by_functions, by_arrays = answers
    by_windows = values(names["users"].where("k = 10").toArrow())
    expected = values(Results(root).user_metrics(k=10))
    assert len(expected) > 100
    for key, row in expected.items():
        for name in ("p", "r", "rr", "ap", "ndcg"):
            close = None if row[name] is None else pytest.approx(row[name], rel=0, abs=1e-12)
            assert (by_arrays[key][name], by_windows[key][name]) == (close, close), (key, name)
            assert name != "ndcg" or by_functions[key][name] == close, key
    ranked = evaluate(*tables, measures=["nDCG"]).ranked_items.to_pylist()
    assert names["missed"].count() == sum(row["is_relevant"] and row["rank"] > 10 for row in ranked) > 0
    assert [row["n_users"] for row in names["by_country"].collect()] == [1, 1]


def values(rows: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows by model and user."""
    return {(row["model_id"], row["user_id"]): row for row in rows.to_pylist()}
