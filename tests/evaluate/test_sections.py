"""Settings of a call are the sections of a config: objects or mappings, written as YAML and read from it again."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from rankeval_spark import Comparisons, FrameInputs, Intervals, Policies, Slicing, evaluate, evaluate_config
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError, InputError, InvalidCallError
from tests.support.sections import measured

if TYPE_CHECKING:
    from rankeval_spark.evaluation import Evaluation

DAY = dt.date(2026, 1, 31)
LOG = pa.table(
    {
        "model_id": ["als", "als", "als", "pop", "pop", "pop"],
        "userId": ["u", "u", "v", "u", "v", "v"],
        "movieId": [7, 8, 9, 7, 7, 9],
        "place": [0, 1, 0, 0, 0, 1],
    }
)
RATED = pa.table({"user_id": ["u", "v", "v"], "item_id": ["7", "9", "7"], "stars": [5, 3, 4]})
COLUMNS = {"user_id": "userId", "item_id": "movieId", "rank": "place"}
INPUTS: dict[str, Any] = {
    "recommendations": {"columns": COLUMNS, "ranks_from": 0, "types": {"item_id": "string"}},
    "held_out": {"gains": {"column": "stars", "edges": [4]}},
}
ASKED: dict[str, Any] = {"measures": ["RR@2", "P@1"], "baseline": "pop", "inputs": INPUTS}


def tables(result: Evaluation) -> list[pa.Table]:
    return [result.metrics, result.user_metrics, result.comparisons, result.checks]


def test_frames_are_read_by_the_names_types_ranks_and_gains_of_their_section() -> None:
    """u has 7 first under both; v's item of 4 stars is 7, which als does not show and pop has first."""
    result = evaluate(LOG, RATED, **ASKED)
    means = {(row["model_id"], row["measure"]): row["value"] for row in result.metrics.to_pylist()}
    assert means == {("als", "RR"): 1 / 2, ("als", "P"): 1 / 2, ("pop", "RR"): 2 / 2, ("pop", "P"): 2 / 2}
    frames = evaluate(LOG.to_pandas(), RATED.to_pandas(), **ASKED)
    assert tables(frames) == tables(result)


def test_objects_and_mappings_of_a_section_are_the_same() -> None:
    objects = {
        "policies": Policies(population="judged", ties="item_desc"),
        "slicing": Slicing(min_slice_size=1, quantiles=(0.5,)),
        "intervals": Intervals(confidence=0.9),
        "comparisons": Comparisons(baseline="pop", margin=0.1),
        "inputs": FrameInputs.model_validate(INPUTS),
    }
    mappings = {
        "policies": {"population": "judged", "ties": "item_desc"},
        "slicing": {"min_slice_size": 1, "quantiles": [0.5]},
        "intervals": {"confidence": 0.9},
        "comparisons": {"baseline": "pop", "margin": 0.1},
        "inputs": INPUTS,
    }
    by_objects, by_mappings = (evaluate(LOG, RATED, measures=["RR@2"], **given) for given in (objects, mappings))
    assert tables(by_objects) == tables(by_mappings)
    assert by_objects.request == by_mappings.request


def test_what_an_object_leaves_open_is_left_to_the_preset() -> None:
    """The population of the preset comes with its own handling of users, whether policies are an object or not."""
    for policies in (Policies(ties="item_asc"), {"ties": "item_asc"}):
        asked = evaluate(LOG, RATED, **ASKED, preset="trec_eval", policies=policies).request.policies
        assert (asked.population, asked.zero_relevant, asked.ties) == ("judged", "zero", "item_asc")


@pytest.mark.parametrize(
    ("argument", "value", "fix"),
    [
        ("ties", "rank", "write policies={'ties': 'rank'}"),
        ("bands", {"age": {"edges": [3]}}, "write slicing={'bands': {'age': {'edges': [3]}}}"),
        ("confidence", 0.9, "write intervals={'confidence': 0.9}"),
        ("tests", ["t"], "write comparisons={'tests': ['t']}"),
        ("seed", 1, "write intervals={'seed': 1} or comparisons={'seed': 1}"),
        ("ranks_from", 0, "write inputs={'recommendations': {'ranks_from': 0}}"),
        ("gains", None, "write inputs={'held_out': {'gains': None}}"),
        ("time_zone", "Asia/Tokyo", "write inputs={'time_zone': 'Asia/Tokyo'}"),
        ("cutoffs", [5], "write them with the measures: measures=['nDCG@10']"),
        ("threads", 2, "set the threads of Arrow: pyarrow.set_cpu_count(4)"),
        ("metrics", ["RR"], "write measures=['nDCG@10']"),
        ("qrels", None, "pass it as held_out="),
        ("recos", None, "pass it as recommendations="),
        ("basline", "pop", "did you mean 'baseline'?"),
        ("tiess", "rank", "did you mean 'ties'?"),
    ],
)
def test_an_argument_that_belongs_elsewhere_is_told_where(argument: str, value: object, fix: str) -> None:
    given: dict[str, Any] = {argument: value}
    with pytest.raises(InvalidCallError) as raised:
        evaluate(LOG, RATED, measures=["RR"], **given)
    (fault,) = raised.value.faults
    assert (fault.where, fault.found, fault.fix) == (f"evaluate({argument}=)", "an unknown argument", fix)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policies": {"tie": "rank"}}, r"evaluate\(policies=\)\.tie: found unknown key 'tie'.*did you mean 'ties'"),
        ({"slicing": {"bands": {"age": {}}}}, r"evaluate\(slicing=\)\.bands\.age: found neither edges nor quantiles"),
        ({"inputs": {"held_out": {"gain": 1}}}, r"evaluate\(inputs=\)\.held_out\.gain: .*did you mean 'gains'"),
        (
            {"inputs": {"log": {}}},
            r"evaluate\(inputs=\)\.log: found unknown key 'log'; expected one of recommendations",
        ),
        (
            {"baseline": "als", "comparisons": {"baseline": "pop"}},
            r"evaluate\(baseline=\): found 'als', while comparisons have the baseline='pop'",
        ),
        ({"comparisons": {"margin": 0.1}}, r"evaluate\(comparisons=\)\.baseline: found None; expected the model"),
        ({"policies": "expected"}, r"evaluate\(policies=\): found 'expected'; expected a dict"),
    ],
    ids=str,
)
def test_a_section_that_makes_no_sense_is_named_by_its_place(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(LOG, RATED, measures=["RR"], **given)


def test_a_column_of_a_section_that_the_frame_lacks_is_named() -> None:
    inputs = {**INPUTS, "recommendations": {"columns": {"item_id": "movie"}}}
    with pytest.raises(InputError, match=r"columns\.item_id: found no column 'movie' .*did you mean 'movieId'"):
        evaluate(LOG, RATED, measures=["RR"], inputs=inputs)


# ---- as a config, and back -----------------------------------------------------------------------------------------


def written(result: Evaluation, folder: Path, **frames: pa.Table) -> Path:
    """Write the config of a call, and its tables where the config has them."""
    (folder / "data").mkdir(exist_ok=True)
    for name, frame in frames.items():
        pq.write_table(frame, folder / "data" / name)
    config = folder / "night.yaml"
    config.write_text(result.to_config(), encoding="utf-8")
    return config


def test_a_call_is_written_as_a_config_of_the_same_numbers(tmp_path: Path) -> None:
    segments = pa.table({"user_id": ["u", "v"], "age": [20.0, 40.0]})
    result = measured(
        LOG,
        RATED,
        measures=["RR@2", "nDCG(gains='binary')@2"],
        segments=segments,
        slices=["age"],
        preset="kaggle",
        missing="zero",
        inputs=INPUTS,
        bands={"age": {"edges": [30]}},
        min_slice_size=1,
        confidence=0.9,
        comparisons={"pairs": "all", "correction": "none"},
    )
    config = written(result, tmp_path, recommendations=LOG, held_out=RATED, segments=segments)
    again = evaluate_config(config, DAY)
    assert [again.metrics, again.user_metrics, again.comparisons] == [
        *(result.metrics, result.user_metrics, result.comparisons)
    ]
    assert load_config(config).slicing.bands["age"].edges == (30,)
    assert yaml.safe_load(again.to_config())["intervals"] == {"confidence": 0.9}


def test_a_config_says_nothing_that_the_call_left_open(tmp_path: Path) -> None:
    log = pd.DataFrame({"user_id": ["u"], "item_id": ["a"], "score": [1.0]})
    result = evaluate(log, log[["user_id", "item_id"]], measures=["RR"], evaluation_date=DAY)
    assert yaml.safe_load(result.to_config()) == {
        "evaluation": "notebook",
        "inputs": {name: {"format": "parquet", "path": f"data/{name}"} for name in ("recommendations", "held_out")},
        "measures": ["RR"],
        "results": {"root": "results"},
    }
    assert load_config(written(result, tmp_path)).measures == ("RR",)


def test_a_config_is_evaluated_with_changes_and_faults_are_those_of_a_run(tmp_path: Path) -> None:
    result = evaluate(LOG, RATED, **ASKED)
    config = written(result, tmp_path, recommendations=LOG, held_out=RATED)
    (value,) = (
        evaluate_config(config, "2026-01-31", overrides=["measures=[P@1]", "models=[als]", "comparisons="])
        .metrics["value"]
        .to_pylist()
    )
    assert value == 1 / 2
    with pytest.raises(ConfigError, match=r"evaluate_config\(date=\): found '2026-1-31'"):
        evaluate_config(config, "2026-1-31")
    with pytest.raises(InputError, match="recommendations"):
        evaluate_config(config, DAY, overrides=["inputs.recommendations.path=nowhere"])
    with pytest.raises(ConfigError, match=r"evaluate_config\(spark=\).*pass spark=, a session"):
        evaluate_config(config, DAY, overrides=["inputs.recommendations={format: table, table: log}"])


@pytest.mark.parametrize(
    "name", ["5e3", "-1E9", "no", "010", "0x1F", "2026-01-31", "null", "~", "1_000", "a: b", "#c", "é"]
)
def test_a_name_that_yaml_may_take_for_something_else_is_text_in_the_config(name: str, tmp_path: Path) -> None:
    log = pd.DataFrame({"model_id": [name], "user_id": ["u"], "item_id": ["a"], "score": [1.0]})
    result = evaluate(log, log[["user_id", "item_id"]], measures=["RR"], models=[name])
    assert load_config(written(result, tmp_path)).models == (name,)
