"""Evaluation in this process works where neither pyspark nor Java can be found, from frames of any library."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Final

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.arrow import reading

LOG: Final[dict[str, list[Any]]] = {
    "user_id": ["ann", "ann", "bob", "bob"],
    "item_id": ["a", "b", "a", "c"],
    "score": [0.9, 0.5, 0.8, 0.7],
}
HELD_OUT: Final[dict[str, list[Any]]] = {"user_id": ["ann", "bob", "bob"], "item_id": ["b", "a", "c"]}
LEADER: Final = {"model_id": "model", "n_users": 2, "RR@2": (1 / 2 + 1) / 2, "P@1": 1 / 2}

WITHOUT_SPARK: Final = """
import os, sys
os.environ["PATH"] = ""  # no java either

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "delta", "py4j", "deltalake"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import pandas as pd
from rankeval_spark import Evaluation, evaluate
log = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [7, 8, 7], "score": [0.9, 0.5, 0.8]})
held_out = pd.DataFrame({"user_id": [1, 2], "item_id": [8, 7]})
result = evaluate(log, held_out, measures=["RR@2"], baseline="model")
assert isinstance(result, Evaluation)
for name in ("metrics", "group_metrics", "user_metrics", "user_values", "ranked_items", "checks", "gaps"):
    assert getattr(result, name) is getattr(result, name), name  # computed once, and kept
print(result.leaderboard().to_pylist(), result.comparisons.num_rows)
from rankeval_spark import build_session
"""


def test_neither_pyspark_nor_java_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=False)
    assert done.stdout == "[{'model_id': 'model', 'n_users': 2, 'RR@2': 0.75}] 0\n"
    assert "UnsupportedSparkError" in done.stderr  # only what is about Spark asks for it


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pa.table, lambda rows: duckdb.from_arrow(pa.table(rows))],
    ids=["pandas", "polars", "pyarrow", "duckdb"],
)
def test_frames_of_every_library_give_the_same_leaderboard(make: Any) -> None:  # noqa: ANN401 - makes a frame
    result = evaluate(make(LOG), make(HELD_OUT), measures=["RR@2", "P@1"])
    assert result.leaderboard().to_pylist() == [LEADER]


def test_an_evaluation_says_what_was_asked_for_and_what_it_has() -> None:
    text = repr(evaluate(pa.table(LOG), pa.table(HELD_OUT), measures=["RR@2", "P@1"]))
    assert text == (
        "Evaluation of RR@2, P@1\nresults: leaderboard(), user_metrics, user_values, metrics, group_metrics, "
        "ranked_items, comparisons, gaps, checks, compare(), gap_tests(), agreement(), hit_ranks(), explain()"
    )


def test_libraries_can_be_mixed() -> None:
    result = evaluate(pd.DataFrame(LOG), pl.DataFrame(HELD_OUT), measures=["RR@2", "P@1"])
    assert result.leaderboard().to_pylist() == [LEADER]


def test_a_stream_is_read_once_at_the_call() -> None:
    table = pa.table(LOG)
    reader = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches()))
    result = evaluate(reader, pa.table(HELD_OUT), measures=["RR@2", "P@1"])
    assert result.leaderboard().to_pylist() == [LEADER]
    assert result.user_metrics.num_rows == 4


def test_a_relation_over_a_stream_is_read_once() -> None:
    table = pa.table(LOG)
    relation = duckdb.from_arrow(pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches())))
    result = evaluate(relation, pa.table(HELD_OUT), measures=["RR@2", "P@1"])
    assert result.leaderboard().to_pylist() == [LEADER]


def test_inputs_above_the_memory_of_the_machine_are_refused_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "physical_bytes", lambda: 600.0)
    with pytest.raises(InputError, match=r"7 rows, which need .*; give DataFrames of Spark instead"):
        evaluate(pd.DataFrame(LOG), pd.DataFrame(HELD_OUT), measures=["RR@2"])


def test_too_many_rows_are_refused_even_if_their_number_shows_only_when_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "physical_bytes", lambda: 300.0)
    with pytest.raises(InputError, match=r"4 rows, which need .*; give DataFrames of Spark instead"):
        evaluate(duckdb.from_arrow(pa.table(LOG)), duckdb.from_arrow(pa.table(HELD_OUT)), measures=["RR@2"])


def test_no_row_is_no_mean() -> None:
    nothing = evaluate(pa.table(LOG).slice(0, 0), pa.table(HELD_OUT).slice(0, 0), measures=["RR@2", "ItemCoverage@2"])
    for name in ("user_metrics", "user_values", "ranked_items", "group_metrics", "gaps"):
        assert getattr(nothing, name).num_rows == 0, name
    (row,) = nothing.metrics.to_pylist()  # the one model shows nothing to nobody
    assert (row["measure"], row["value"], row["n_users"]) == ("ItemCoverage", 0.0, 0)
    assert nothing.leaderboard().to_pylist() == [
        {"model_id": "model", "n_users": 0, "RR@2": None, "ItemCoverage@2": 0.0}
    ]


def test_rows_are_refused_by_the_limit_of_the_process_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = reading.BYTES_A_ROW * 1000
    monkeypatch.setattr("resource.getrlimit", lambda _: (limit, limit))
    reading.refuse_rows(1000)
    with pytest.raises(InputError, match="1,001 rows"):
        reading.refuse_rows(1001)
