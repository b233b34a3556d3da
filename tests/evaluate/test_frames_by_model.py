"""One frame or path a model: the numbers of one frame of all models, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from rankeval_spark import evaluate, evaluate_config
from rankeval_spark.errors import ConfigError, FaultsError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG: Final = pa.table(
    {
        "model_id": ["pop", "pop", "pop", "als", "als"],
        "user_id": ["u", "v", "v", "u", "v"],
        "item_id": ["7", "7", "9", "8", "9"],
        "score": [3, 3, 2, 5, 7],
    }
)
HELD_OUT: Final = pa.table({"user_id": ["u", "v"], "item_id": ["8", "9"]})
ASKED: Final[dict[str, Any]] = {"measures": ["RR@2", "P@2"], "baseline": "pop"}


def rows_of(model: str) -> pa.Table:
    return LOG.filter(pc.equal(LOG["model_id"], model)).drop_columns("model_id")


FRAMES: Final[dict[str, Callable[[pa.Table], Any]]] = {
    "pandas": pa.Table.to_pandas,
    "polars": pl.from_arrow,
    "arrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
    "doubles": lambda table: table.set_column(2, "score", table["score"].cast(pa.float64())),
}


@pytest.mark.parametrize("first", FRAMES)
@pytest.mark.parametrize("second", FRAMES)
def test_frames_by_model_have_the_numbers_of_one_frame(first: str, second: str) -> None:
    result = evaluate({"pop": FRAMES[first](rows_of("pop")), "als": FRAMES[second](rows_of("als"))}, HELD_OUT, **ASKED)
    whole = evaluate(LOG, HELD_OUT, **ASKED)
    assert result.host.models == ("pop", "als")  # in the order of the keys
    assert result.metrics.to_pylist() == whole.metrics.to_pylist()
    assert result.comparisons.to_pylist() == whole.comparisons.to_pylist()
    assert result.user_metrics.to_pylist() == whole.user_metrics.to_pylist()
    assert result.metrics["value"].to_pylist() == [1 / 2, 1.0, 1 / 4, 1 / 4]


def test_models_choose_among_the_frames_and_one_without_rows_is_warned_of() -> None:
    frames = {"pop": rows_of("pop"), "als": rows_of("als"), "none": rows_of("als").slice(2)}
    assert evaluate(frames, HELD_OUT, measures=["P@2"], models=["als"]).metrics["model_id"].to_pylist() == ["als"]
    with pytest.warns(UserWarning, match="recommendations have no row of 'none'"):
        found = evaluate(frames, HELD_OUT, measures=["P@2"]).metrics.select(["model_id", "value"]).to_pydict()
    assert found == {"model_id": ["als", "none", "pop"], "value": [1 / 2, 0.0, 1 / 4]}


def test_whole_lists_of_models_are_united() -> None:
    als = pa.table({"user_id": ["u", "v"], "item_id": [["8"], ["9"]], "score": [[5], [7]]})
    pop = pa.table({"user_id": ["u", "v"], "item_id": [["7"], ["7", "9"]], "score": [[3], [3, 2]]})
    result = evaluate({"pop": pop, "als": als}, HELD_OUT, **ASKED)
    assert result.metrics.to_pylist() == evaluate(LOG, HELD_OUT, **ASKED).metrics.to_pylist()


def test_paths_by_model_are_those_of_a_config(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.parquet" for name in ("pop", "als")}
    for name, path in paths.items():
        pq.write_table(rows_of(name), path)
    pq.write_table(HELD_OUT, tmp_path / "held_out.parquet")
    result = evaluate(paths, tmp_path / "held_out.parquet", **ASKED)
    config = tmp_path / "night.yaml"
    config.write_text(result.to_config(), encoding="utf-8")
    assert f"paths:\n      pop: {paths['pop']}\n      als: {paths['als']}\n" in result.to_config()
    assert "models" not in result.to_config()
    assert evaluate_config(config, "2026-01-31").comparisons == result.comparisons
    csv.write_csv(rows_of("als"), tmp_path / "als.csv")  # a config has one format for all models
    mixed = evaluate({**paths, "als": tmp_path / "als.csv"}, HELD_OUT, **ASKED)
    assert "paths:\n      pop: data/recommendations/pop\n      als: data/recommendations/als\n" in mixed.to_config()


def test_the_key_of_a_run_of_trec_replaces_its_name(tmp_path: Path) -> None:
    for name in ("pop", "als"):
        lines = (f"{row['user_id']} Q0 {row['item_id']} 1 {row['score']} tag\n" for row in rows_of(name).to_pylist())
        (tmp_path / f"{name}.run").write_text("".join(lines))
    result = evaluate({name: tmp_path / f"{name}.run" for name in ("pop", "als")}, HELD_OUT, **ASKED)
    assert result.metrics.to_pylist() == evaluate(LOG, HELD_OUT, **ASKED).metrics.to_pylist()


ALS: Final = pd.DataFrame({"user_id": ["u"], "item_id": ["8"], "score": [1.0]})


RANKS: Final = ALS.rename(columns={"score": "rank"}).astype({"rank": int})
REFUSED: Final[tuple[tuple[dict[Any, object], str], ...]] = (
    ({}, r"\(recommendations=\): found an empty dict; expected a frame of each model"),
    ({7: ALS}, r"found the key 7; expected the name of a model, text of 1 to 200"),
    ({"": ALS, "a" * 201: ALS}, r"found the key ''; .*\n.*found the key 'aaa"),
    ({"als": None, "pop": 7}, r"\['als'\]: found None; .*\n.*\['pop'\]: found a int; expected a table"),
    ({"a\x1b[2J": ALS.drop(columns="user_id")}, r"\['a\\x1b\[2J'\]: found no column 'user_id'"),
    ({"als": ALS.assign(model_id="als")}, r"a column 'model_id'; .* key names the model; drop it, or"),
    ({"als": ALS, "pop": RANKS}, r"\['pop'\]: found a column 'rank'; .*\['als'\] has none; add it to all"),
    ({"als": ALS, "pop": ALS.assign(user_id=7)}, r"\['pop'\]: found user_id of type int64; .* has str; cast"),
    ({"als": "/no/als.csv", "pop": "/no/pop"}, r"\['als'\]: found no such path at /no/als.csv.*\n.*\['pop'\]"),
    ({"user_id": ["u"], "item_id": ["8"]}, r"\(recommendations=\): found neither a score nor a rank"),
)


@pytest.mark.parametrize(("frames", "told"), REFUSED)
def test_frames_by_model_that_cannot_be_united_are_refused(frames: dict[Any, object], told: str) -> None:
    with pytest.raises(FaultsError, match=told):
        evaluate(frames, HELD_OUT, measures=["RR"])


def test_models_that_no_frame_has_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(models=\)\[1\]: found 'alz'; .* did you mean 'als'"):
        evaluate({"als": ALS}, HELD_OUT, measures=["RR"], models=["als", "alz"])
    with pytest.raises(ConfigError, match=r"evaluate\(baseline=\): found 'alz'; .* did you mean 'als'"):
        evaluate({"als": ALS}, HELD_OUT, measures=["RR"], baseline="alz")
    with pytest.raises(InputError, match=r"evaluate\(held_out=\): found a dict of users whose values differ"):
        evaluate({"als": ALS}, {"als": HELD_OUT}, measures=["RR"])
