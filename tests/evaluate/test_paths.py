"""Inputs of a call by their paths, in each format, and what is refused of them."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import deltalake
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from rankeval_spark import evaluate, evaluate_config
from rankeval_spark.errors import ConfigError, InputError

ASKED: Final[dict[str, Any]] = {"measures": ["RR@2", "P@2"]}
LOG: Final = pa.table(
    {
        "model_id": ["als", "als", "als", "pop", "pop", "pop"],
        "user_id": ["u", "u", "v", "u", "v", "v"],
        "item_id": ["7", "8", "9", "7", "7", "9"],
        "score": [0.9, 0.8, 0.7, 3.0, 3.0, 2.0],
    }
)
HELD_OUT: Final = pa.table({"user_id": ["u", "v"], "item_id": ["8", "9"]})
RANKS: Final = {("als", "RR"): (1 / 2 + 1) / 2, ("als", "P"): 1 / 2, ("pop", "RR"): 1 / 4, ("pop", "P"): 1 / 4}


def write_json(table: pa.Table, path: Path) -> None:
    table.to_pandas().to_json(path, orient="records", lines=True)


def write_packed(table: pa.Table, path: Path) -> None:
    pack = gzip.compress if path.suffix == ".gz" else bz2.compress
    path.write_bytes(pack(table.to_pandas().to_csv(index=False, sep=";").encode("utf-8-sig")))


def write_folder(table: pa.Table, path: Path) -> None:
    for n in range(2):
        (path / f"shard={n}").mkdir(parents=True)
        pq.write_table(table.take(list(range(n, len(table), 2))), path / f"shard={n}" / "part.snappy.parquet")


def write_tabs(table: pa.Table, path: Path) -> None:
    csv.write_csv(table, path, csv.WriteOptions(delimiter="\t"))


def write_delta(table: pa.Table, path: Path) -> None:
    deltalake.write_deltalake(str(path), table)
    deltalake.write_deltalake(str(path), table, mode="overwrite")  # files of an older version are there too


WRITERS: Final[dict[str, Callable[[pa.Table, Path], object]]] = {
    **{"a.parquet": pq.write_table, "a.csv": csv.write_csv, "a.tsv": write_tabs},
    **{"tabs.csv": write_tabs, "a.csv.gz": write_packed, "a.csv.bz2": write_packed},
    **{"a.jsonl": write_json, "a.NDJSON": write_json, "folder": write_folder, "delta": write_delta},
}


def means(log: object, held_out: object, **given: object) -> dict[tuple[str, str], float]:
    rows = evaluate(log, held_out, **{**ASKED, **given}).metrics.to_pylist()
    return {(row["model_id"], row["measure"]): row["value"] for row in rows}


@pytest.mark.parametrize("name", WRITERS)
def test_paths_have_the_numbers_of_their_frames(name: str, tmp_path: Path) -> None:
    for folder, table in (("log", LOG), ("held_out", HELD_OUT)):
        (tmp_path / folder).mkdir()
        WRITERS[name](table, tmp_path / folder / name)
    log, held_out = tmp_path / "log" / name, tmp_path / "held_out" / name
    assert means(LOG, HELD_OUT) == RANKS
    assert means(log, f"file://{held_out}") == RANKS
    assert means(f"{log}/", HELD_OUT.to_pandas(), segments=held_out, slices=["item_id"], slicing={"min_slice_size": 1})
    result = evaluate(log, held_out, **ASKED)
    config = tmp_path / "night.yaml"
    config.write_text(result.to_config(), encoding="utf-8")
    assert evaluate_config(config, "2026-01-31").metrics == result.metrics


def test_files_of_trec_are_known_by_their_ending_or_by_the_format(tmp_path: Path) -> None:
    run, judged = tmp_path / "als.run", tmp_path / "judged.txt"
    run.write_text("u Q0 7 1 0.9 als\nu Q0 8 2 0.8 als\nv Q0 9 1 0.7 als\n")
    judged.write_text("u 0 8 1\nv 0 9 1\n")
    of_als = {key: value for key, value in RANKS.items() if key[0] == "als"}
    assert means(run, judged, inputs={"held_out": {"format": "trec"}}) == of_als
    judged.rename(judged.with_suffix(".qrels"))
    assert means(str(run), str(judged.with_suffix(".qrels"))) == of_als
    assert means(run.rename(tmp_path / "run.txt"), judged.with_suffix(".qrels"), format="trec") == of_als


def test_a_path_with_the_date_is_that_of_the_evaluation_date(tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "2026-01-31.parquet")
    path = tmp_path / "{date}.parquet"
    for day in (dt.date(2026, 1, 31), "2026-01-31"):
        assert means(path, HELD_OUT, evaluation_date=day) == RANKS
    with pytest.raises(ConfigError, match=r"\(evaluation_date=\): found '31.1.2026'; expected a date as YYYY-MM-DD"):
        means(path, HELD_OUT, evaluation_date="31.1.2026")
    with pytest.raises(ConfigError, match=r"evaluate\(evaluation_date=\): found None; expected the date of /"):
        means(path, HELD_OUT)


def test_all_paths_that_lead_nowhere_are_named_at_once_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "truth").mkdir()
    pq.write_table(LOG, tmp_path / "log.parquet")
    with pytest.raises(InputError) as caught:
        means(tmp_path / "lgo.parquet", tmp_path / "trut")
    assert [fault.where for fault in caught.value.faults] == ["evaluate(recommendations=)", "evaluate(held_out=)"]
    assert [fault.fix for fault in caught.value.faults] == [
        f"{tmp_path} has no 'lgo.parquet', did you mean 'log.parquet'?",
        f"{tmp_path} has no 'trut', did you mean 'truth'?",
    ]


REFUSED: Final[dict[str, tuple[dict[str, str], str]]] = {
    "mixed": ({"a.csv": "", "b.parquet": ""}, r"files of .csv, .parquet at .*'held_out': \{'format': 'csv'\}"),
    "without_ending": ({"a": ""}, "files of no ending at"),
    "of_all_kinds": (
        {f"file.{ending}": "" for ending in "abcdefg"},
        r"files of \.a, \.b, \.c, \.d, \.e and 2 others at",
    ),
    "empty": ({"_SUCCESS": ""}, "no data files at"),
    "damaged.parquet": ({"part.parquet": "no footer"}, r"a file that cannot be read \("),
    "colons.csv": ({"part.csv": "user_id::item_id\nu::8\n"}, r"of one column; .*read it with pandas or polars"),
    "*.csv": (
        {"part.csv": ""},
        r"found a pattern, .*\*\.csv; expected the path of one .*; give the folder",
    ),
    "short.qrels": ({"part.qrels": "u 0 8 1\nu 0\n"}, "line 2: found 2 fields; expected 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_cannot_be_read_are_refused_with_the_remedy(name: str, tmp_path: Path) -> None:
    files, message = REFUSED[name]
    (tmp_path / name).mkdir()
    for file, text in files.items():
        (tmp_path / name / file).write_text(text)
    with pytest.raises(InputError, match=message):
        means(LOG, tmp_path / name)


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("hdfs://server/truth", InputError, r"found hdfs://server/truth: .*a DataFrame of Spark"),
        ("ftp://server/truth", ConfigError, r"evaluate\(held_out=\): found file system 'ftp'"),
        ("s3://key:planted@bucket/truth", ConfigError, "found a password in the address; .*set it in the environment"),
        ("az://box/truth?sig=planted", ConfigError, "found a query in the address; .*set it in the environment"),
    ],
)
def test_addresses_that_cannot_be_read_are_refused_without_their_secrets(
    path: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        means(LOG, path)
    assert "planted" not in str(caught.value)


def test_a_format_belongs_to_a_path_and_has_a_known_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"held_out\.format: found a format of a pandas.DataFrame"):
        means(LOG, pd.DataFrame(), inputs={"held_out": {"format": "csv"}})
    with pytest.raises(ConfigError, match=r"evaluate\(format=\): found 'csvv'; .* did you mean 'csv'"):
        means(LOG, tmp_path, format="csvv")
    with pytest.raises(ConfigError, match=r"evaluate\(format=\): found 'csv' and no path; .* leave it out"):
        means(LOG, HELD_OUT, format="csv")
    with pytest.raises(ConfigError, match=r"evaluate\(inputs=\)\.held_out\.format: found 'excel'"):
        means(LOG, tmp_path, inputs={"held_out": {"format": "excel"}})
    pq.write_table(HELD_OUT, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"no Delta table at .*mean 'format': 'parquet'"):
        means(LOG, tmp_path, inputs={"held_out": {"format": "delta"}})


def test_paths_outside_the_allowed_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(HELD_OUT, tmp_path / "a.parquet")
    monkeypatch.setenv("RANKEVAL_ROOTS", str(tmp_path / "allowed"))
    with pytest.raises(ConfigError, match=r"evaluate\(held_out=\): found .*expected a path below"):
        means(LOG, tmp_path / "a.parquet")
