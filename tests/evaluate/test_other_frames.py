"""Frames that are no table of Arrow: lazy ones, dictionaries, rows, and columns named as in other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import deltalake
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import ranx

from rankeval_spark import evaluate, evaluate_config
from rankeval_spark.errors import FaultsError, InputError
from rankeval_spark.inputs.arrow.other_frames import open_other

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rankeval_spark import Evaluation

pytestmark = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")

LOG: Final = pa.table({"user_id": ["u", "u", "v"], "item_id": ["7", "8", "9"], "score": [3, 2, 1], "extra": [0, 0, 0]})
HELD_OUT: Final = pa.table({"user_id": ["u", "v"], "item_id": ["8", "9"], "gain": [2.0, 1.0]})
RR: Final = (1 / 2 + 1) / 2


def written(table: pa.Table, path: Path) -> deltalake.DeltaTable:
    deltalake.write_deltalake(str(path), table)
    return deltalake.DeltaTable(str(path))


LAZY: Final[dict[str, Callable[[pa.Table, Path], Any]]] = {
    "polars": lambda table, _: pl.LazyFrame(table),
    "arrow": lambda table, _: ds.dataset(table),
    "delta": written,
    "interchange": lambda table, _: table.to_pandas().__dataframe__(),  # which is no pandas.DataFrame
}


@pytest.mark.parametrize("kind", LAZY)
def test_a_lazy_frame_is_read_in_the_columns_that_are_needed(kind: str, tmp_path: Path) -> None:
    log, held_out = LAZY[kind](LOG, tmp_path / "log"), LAZY[kind](HELD_OUT, tmp_path / "held_out")
    opened: Any = open_other("recommendations", log)
    assert opened.columns == LOG.column_names
    assert pa.table(opened.select(["item_id", "user_id"])).column_names in (
        ["item_id", "user_id"],
        ["user_id", "item_id"],
    )
    assert values(evaluate(log, held_out, measures=["RR"], train=log)) == [RR]
    assert values(evaluate({"a": log, "b": LOG.drop_columns("extra")}, held_out, measures=["RR"])) == [RR, RR]


def values(result: Evaluation) -> list[float]:
    found: list[float] = result.metrics["value"].to_pylist()
    return found


LOGS: Final[dict[str, Any]] = {
    "scores": {"u": {"7": 3.0, "8": 2.0}, "v": {"9": 1.0}},
    "lists": {"u": ["7", "8"], "none": [], "v": ("9",)},
    "arrays": {"u": np.array(["7", "8"]), "v": np.array(["9"])},
    "pairs": {"u": [("7", 3.0), ("8", 2.0)], "v": [("9", 1.0)]},
    "tuples": [("u", "7", 3), ("u", "8", 2), ("v", "9", 1)],
    "rows": LOG.to_pylist(),
    "columns": LOG.to_pydict(),
    "ranx": ranx.Run({"u": {"7": 3.0, "8": 2.0}, "v": {"9": 1.0}}),
}
TRUTHS: Final[dict[str, Any]] = {
    "gains": {"u": {"8": 2}, "v": {"9": 1, "7": 0}},
    "lists": {"u": ["8"], "v": ["9"]},
    "sets": {"u": {"8"}, "v": frozenset({"9"})},
    "pairs": [("u", "8"), ("v", "9")],
    "ranx": ranx.Qrels({"u": {"8": 2}, "v": {"9": 1}}),
}


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("truth", TRUTHS)
def test_dictionaries_and_rows_are_lists_and_judgements(log: str, truth: str) -> None:
    assert values(evaluate(LOGS[log], TRUTHS[truth], measures=["RR"])) == [RR]
    by_model = evaluate({"a": LOGS[log], "b": LOGS[log]}, TRUTHS[truth], measures=["RR"], models=["b"])
    assert by_model.metrics.select(["model_id", "value"]).to_pylist() == [{"model_id": "b", "value": RR}]


def test_numbers_of_a_dictionary_are_scores_or_gains_and_order_of_a_list_its_ranks() -> None:
    run = {1: {10: 0.5, 11: 0.75}, 2: {10: 1}}

    def opened(name: str, frame: object) -> pa.Table:
        return pa.table(open_other(name, frame))

    assert opened("recommendations", run) == pa.table(
        {"user_id": [1, 1, 2], "item_id": [10, 11, 10], "score": [0.5, 0.75, 1]}
    )
    assert opened("held_out", run)["gain"].to_pylist() == [0.5, 0.75, 1]
    assert opened("train", run).column_names == ["user_id", "item_id"]
    lists = {"u": ["b", "a"], "w": [], "v": ["c", "d", "e"]}
    assert opened("recommendations['als']", lists)["rank"].to_pylist() == [1, 2, 1, 2, 3]
    assert opened("held_out", [("u", "a", 2, "2026-01-31")]).column_names == [
        *("user_id", "item_id", "gain", "interacted_at"),
    ]


@pytest.mark.parametrize(
    ("log", "held_out", "told"),
    [
        ({"u": {"7", "8"}}, HELD_OUT, r"\(recommendations=\): found a dict of users whose values differ, or"),
        ({"u": ["7", ("8", 1)]}, HELD_OUT, "found a dict of users whose values differ"),
        ({"u": {"7": 1.0}, "v": None}, HELD_OUT, "found a dict of users whose values differ"),
        ({"u": ["7", 8]}, HELD_OUT, "found a dict that Arrow cannot read .* write all ids as text"),
        ({"u": {"7": 1.0}, 2: {"7": 1.0}}, HELD_OUT, "found a dict that Arrow cannot read"),
        ([("u", "7"), ("u", "8", 1)], HELD_OUT, r"found rows of 2 and 3 values; expected \(user_id, item_id, score\)"),
        ([("u", "7")], HELD_OUT, "found neither a score nor a rank"),
        (LOG, {"u": {"8": "much"}}, r"evaluate\(held_out=\)"),
        (LOG, [7], r"\(held_out=\): found a list; expected a table"),
        (ds.dataset(LOG).scanner(), HELD_OUT, r"found a pyarrow\.Scanner; .* call to_table\(\) on it"),
    ],
)
def test_dictionaries_and_rows_that_cannot_be_read_are_refused(log: object, held_out: object, told: str) -> None:
    with pytest.raises(FaultsError, match=told):
        evaluate(log, held_out, measures=["RR"])


USER_ITEM_SCORE: Final = pd.DataFrame(
    {"user": ["u", "u", "v"], "item": ["7", "8", "9"], "score": [3, 2, 1], "rank": [1, 2, 1]}
)


def named(*names: str) -> pd.DataFrame:
    return USER_ITEM_SCORE[["user", "item", "score"]].set_axis([*names], axis="columns")


def judged(*names: str) -> pd.DataFrame:
    rows = pd.DataFrame({"user": ["u", "v"], "item": ["8", "9"], "third": [2.0, 1.0], "fourth": [0, 0]})
    return rows.iloc[:, : len(names)].set_axis([*names], axis="columns")


LIBRARIES: Final = {
    "LensKit": (USER_ITEM_SCORE, judged("user", "item", "rating")),
    "MovieLens": (
        USER_ITEM_SCORE[["user", "item", "rank"]].set_axis(["userId", "movieId", "rank"], axis="columns"),
        judged("userId", "movieId", "rating", "timestamp"),
    ),
    "RePlay": (named("query_id", "item_id", "rating"), judged("query_id", "item_id", "rating", "timestamp")),
    "RePlay before 0.16": (
        named("user_idx", "item_idx", "relevance"),
        judged("user_idx", "item_idx", "relevance", "timestamp"),
    ),
    "Recommenders": (named("userID", "itemID", "prediction"), judged("userID", "itemID", "rating")),
    "RecBole": (named("user_id:token", "item_id:token", "score:float"), judged("user_id:token", "item_id:token")),
    "Surprise": (named("uid", "iid", "est").assign(r_ui=1.0), judged("user_id", "item_id")),
    "ranx": (named("q_id", "doc_id", "score"), judged("q_id", "doc_id", "score")),
    "ir_measures": (named("query_id", "doc_id", "score"), judged("query_id", "doc_id", "relevance")),
}


@pytest.mark.filterwarnings("ignore:held_out has no column 'gain'")
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_columns_of_another_library_are_read_with_a_note(library: str, tmp_path: Path) -> None:
    log, truth = LIBRARIES[library]
    result = evaluate(log, truth, measures=["RR"], train=truth)
    assert values(result) == [RR]
    assert f"recommendations have the columns of {library}: " in result.notes[0]
    assert f"note: {result.notes[0]}" in repr(result)
    of_truth = [note for note in result.notes if note.startswith("held_out")]
    assert (f"held_out have the columns of {library}" in "".join(of_truth)) == (library != "Surprise")
    # Only a column that holds gains by its format is one: of ratings, a user says from which one on.
    has_gains = library in ("ranx", "ir_measures")
    assert evaluate(log, truth, measures=["RR(rel=2)"]).metrics["value"].to_pylist() == [1 / 2 if has_gains else None]
    text = result.to_config()
    for name, frame in (("recommendations", log), ("held_out", truth), ("train", truth)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        text = text.replace(f"path: data/{name}", f"path: {tmp_path}/{name}.parquet")
    config = tmp_path / "night.yaml"
    config.write_text(text, encoding="utf-8")
    assert evaluate_config(config, "2026-01-31").metrics == result.metrics


def test_columns_that_are_of_no_library_as_a_whole_are_refused_with_the_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'user'"):
        evaluate(USER_ITEM_SCORE.drop(columns="score"), HELD_OUT, measures=["RR"])
    with pytest.raises(InputError, match="did you mean 'user'"):
        evaluate({"a": USER_ITEM_SCORE, "b": LOG}, HELD_OUT, measures=["RR"])
    renamed: Any = {"recommendations": {"columns": {"user_id": "user"}}}
    with pytest.raises(InputError, match="no column 'item_id'"):
        evaluate(USER_ITEM_SCORE, HELD_OUT, measures=["RR"], inputs=renamed)
    own = LOG.append_column("user", LOG["user_id"]).append_column("item", LOG["item_id"])
    assert evaluate(own, HELD_OUT, measures=["RR"]).notes == ()
