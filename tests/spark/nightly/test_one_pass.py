"""A night reads its log once: what the checks say of it is counted while it is evaluated."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.progress import Progress
from rankeval_spark.config import load_config
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import ChecksFailedError
from rankeval_spark.hosts.on_spark import OnSpark
from rankeval_spark.inputs.arrow.file_inputs import open_inputs, read_tables
from rankeval_spark.inputs.spark.reading import read_all
from rankeval_spark.results import Results
from rankeval_spark.spark.plans import user_rows
from tests.support import arrow_frames, nights
from tests.support.frames import tuples
from tests.support.input_checks import to_facts
from tests.support.nights import FIRST
from tests.support.plans import counted_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JUDGED = [
    {"user_id": "ann", "item_id": "a", "gain": 0.5, "day": FIRST.isoformat()},
    {"user_id": "bob", "item_id": "c", "gain": -1.0, "day": FIRST.isoformat()},
    {"user_id": "new", "item_id": "unseen", "gain": 0.0, "day": FIRST.isoformat()},
]
NO_GAIN = {"user_id": "bob", "item_id": "x", "gain": float("nan"), "day": FIRST.isoformat()}
NAMED = "models=[als, pop]"
DIRTY = [
    {"user_id": None, "item_id": "a", "score": 1.0, "model_id": "als", "day": FIRST.isoformat()},
    {"user_id": "ann", "item_id": "q", "score": float("nan"), "model_id": "als", "day": FIRST.isoformat()},
    {"user_id": "ann", "item_id": None, "score": 1.0, "model_id": None, "day": FIRST.isoformat()},
    {"user_id": "new", "item_id": "v", "score": 1.0, "model_id": "pop", "day": FIRST.isoformat()},
]


class Remover(Progress):
    """Removes a folder when a stage has ended."""

    def __init__(self, folder: Path, stage: str) -> None:
        self.folder, self.stage = folder, stage

    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:  # noqa: ARG002 - as Progress has it
        """Remove it where this is the stage."""
        if stage == self.stage:
            shutil.rmtree(self.folder)


@pytest.mark.parametrize(("lists", "stage"), [("false", "score"), ("true", "match")])
def test_the_log_is_not_read_once_it_is_evaluated(spark: SparkSession, tmp_path: Path, lists: str, stage: str) -> None:
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET)
    config = load_config(workspace.config, (NAMED, f"results.lists={lists}"))
    whole = run_night(spark, config, FIRST)
    checks = arrow_frames.tuples(Results(workspace.root).checks(), "input", "check", "count", "share", "sample_keys")

    again = run_night(spark, config, FIRST, progress=Remover(workspace.folder / "inputs" / "recommendations", stage))

    assert again.n_rows == whole.n_rows
    after = Results(workspace.root).checks()
    assert arrow_frames.tuples(after, "input", "check", "count", "share", "sample_keys") == checks


@pytest.mark.parametrize("models", [NAMED, "models=null"], ids=["named", "looked up"])
def test_bytes_of_the_log_are_read_once(spark: SparkSession, tmp_path: Path, models: str) -> None:
    """A second scan of its scores and items would read as many again."""
    draw = random.Random(7)
    rows = [
        {"model_id": model, "user_id": f"u{user}", "item_id": f"i{item}", "score": draw.random()}
        for model in ("als", "pop")
        for user in range(100)
        for item in draw.sample(range(5_000), 400)
    ]
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET)
    workspace.write("log", rows, "parquet")
    workspace.change(inputs__recommendations={"format": "parquet", "path": "inputs/log"}, results__lists=False)
    size = (workspace.folder / "inputs" / "log" / "part-0.parquet").stat().st_size
    unchecked = ("checks.missing_users={}", "checks.unmatched_items={}")
    with counted_bytes(spark) as n_bytes:
        run_night(spark, load_config(workspace.config, (models, *unchecked)), FIRST)
        assert size / 2 < n_bytes() < 1.5 * size


def test_model_without_a_usable_row_has_missing_users(spark: SparkSession, tmp_path: Path) -> None:
    """A model that the log names does not vanish from the results because nothing of it can be used."""
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET)
    day = {"day": FIRST.isoformat()}
    ghosts = [{**day, "model_id": "ghost", "user_id": user, "item_id": "a", "score": float("nan")} for user in "ab"]
    workspace.write("recommendations", [*nights.recommendations(), *ghosts])
    with pytest.raises(ChecksFailedError, match="missing_users: found no list of ghost for any of"):
        run_night(spark, load_config(workspace.config, ("checks.invalid_scores={}",)), FIRST)
    for lists in ("true", "false"):
        unchecked = ("checks.invalid_scores={}", "checks.missing_users={}")
        config = load_config(workspace.config, (f"results.lists={lists}", *unchecked))
        run_night(spark, config, FIRST)
        results = Results(workspace.root)
        for table in (results.metrics(), results.user_metrics()):
            assert set(table[C.MODEL_ID].to_pylist()) == {"als", "ghost", "pop"}
        of_ghost = results.metrics(slice="all", model_id="ghost", measure="nDCG").to_pylist()
        assert of_ghost
        assert all(row["value"] == 0 and row["n_missing"] >= row["n_users"] > 0 for row in of_ghost)


@pytest.mark.parametrize(
    ("log", "judged"), [([], []), ([], JUDGED), (DIRTY, [*JUDGED, NO_GAIN])], ids=["clean", "odd", "unusable"]
)
def test_what_is_seen_of_the_inputs_is_what_reading_them_says(
    spark: SparkSession, tmp_path: Path, log: nights.Rows, judged: nights.Rows
) -> None:
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET)
    workspace.write("recommendations", [*nights.recommendations(), *log])
    workspace.write("held_out", [*nights.held_out(), *judged])
    config = load_config(workspace.config)
    request = request_of(config, FIRST)
    host = OnSpark(read_all(spark, config, FIRST), request)
    host.keep()
    of_pass, of_inputs = host.input_facts(host.totals(host.sums)), host.input_facts({})
    assert of_pass == of_inputs
    found = {(one.input, one.check): (one.count, one.total) for one in of_pass}
    tables = read_tables(open_inputs(config, request, FIRST), sample_share=1.0)
    assert found == {(one.input, one.check): (one.count, one.total) for one in to_facts(tables, request)}
    names = [
        *(name for name in schemas.USER_METRICS.key if name not in C.RUN_KEY),
        C.N_JUDGED,
        *request.measure_set.stored,
    ]
    plain = user_rows.to_user_rows(host.inputs, request).to_user_rows()
    assert tuples(host.user_metrics, *names) == tuples(plain, *names)
    host.release()
