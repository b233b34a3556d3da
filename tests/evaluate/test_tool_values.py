"""What other tools call their measures, against values of the tools themselves and of their own tests."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from rankeval_spark import evaluate, measure_lists
from rankeval_spark.cli.measures import HELD, snippets
from rankeval_spark.config import Policies, presets
from rankeval_spark.config.presets import options_of
from rankeval_spark.measures import Measure
from rankeval_spark.measures.other_tools import COMPLEMENT, find_metrics, find_tool, names_of, read_tools
from rankeval_spark.measures.worked_examples import evaluate_expression
from tests.support.arrow_frames import table, where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CONTENT: Final = yaml.safe_load(Path(__file__).with_name("tool_values.yaml").read_text(encoding="utf-8"))
TOOLS: Final = read_tools()
ROUNDED: Final = {"opensearch": 0.005, "rre": 0.011}  # tools that round their values, and by how much
ATOL: Final = 1e-6  # most of the others compute in single precision


def tables(name: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the rows of the log and of what is held out; of dense01 the gains are 0 and 1."""
    log: list[tuple[Any, ...]] = []
    held_out: list[tuple[Any, ...]] = []
    for user, text in CONTENT["inputs"][name.removesuffix("01")].items():
        items, _, held = text.partition("|")
        for item, score, *gain in map(str.split, filter(str.strip, items.split(","))):
            log.append((user, item, float(score)))
            held_out += [(user, item, float(bool(int(g))) if name.endswith("01") else float(g)) for g in gain]
        held_out += [(user, item, 1.0) for item in held.split()]
    return log, held_out


def asked(tool: str, metric: str, k: int) -> dict[str, Any]:
    """Read what the snippet for a metric says, at a cutoff."""
    in_yaml, _ = snippets(tool, TOOLS[tool]["metrics"][metric])
    found: dict[str, Any] = yaml.safe_load(in_yaml.replace("@10", f"@{k}"))
    return found


def as_theirs(tool: str, metric: str, value: float) -> float:
    return 1 - value if TOOLS[tool]["metrics"][metric]["ours"].startswith(COMPLEMENT) else value


@pytest.mark.parametrize("tool", CONTENT["values"])
def test_numbers_of_a_tool_come_out_as_the_snippet_says(tool: str) -> None:
    """Metrics with one preset and the same policies are evaluated together."""
    together = defaultdict[tuple[str, str], list[tuple[str, str, float]]](list)
    for metric, expected in CONTENT["values"][tool].items():
        settings = asked(tool, metric, 3)
        (measure,) = settings.pop("measures")
        for name, value in expected.items():
            together[name, json.dumps(settings)].append((metric, measure, value))
    train = [(user, item) for user, items in CONTENT["train"].items() for item in items.split()]
    other = [
        (user, item, -place) for user, items in CONTENT["other"].items() for place, item in enumerate(items.split())
    ]
    items = [(item, list(map(float, vector)), kinds.split()) for item, (vector, kinds) in CONTENT["items"].items()]
    for (name, written), rows in together.items():
        log, held_out = tables(name)
        result = evaluate(
            {
                "m": table("user_id item_id score", *log),
                "other": table("user_id item_id score", *other),
            },
            table("user_id item_id gain", *held_out),
            train=table("user_id item_id", *train),
            items=table("item_id vector categories", *items),
            measures=list(dict.fromkeys(measure for _, measure, _ in rows)),
            **json.loads(written),
        )
        found = {(row["measure"], row["k"]): row["value"] for row in where(result.metrics, model_id="m").to_pylist()}
        measures = {text: Measure.parse(text, defaults=options_of(result.request.preset)) for _, text, _ in rows}
        for metric, text, value in rows:
            ours = as_theirs(tool, metric, found[measures[text].label, measures[text].k])
            assert ours == pytest.approx(value, rel=0, abs=ATOL), (metric, name)


@pytest.mark.parametrize("tool", CONTENT["published"])
def test_numbers_of_the_tests_of_a_tool_come_out_too(tool: str) -> None:
    for metric, (lists, k, mean) in CONTENT["published"][tool].items():
        found = measure_lists({str(place): one for place, one in enumerate(lists)}, **asked(tool, metric, k))
        *_, value = found.to_pylist()[-1].values()
        expected = float(evaluate_expression(mean))
        assert as_theirs(tool, metric, value) == pytest.approx(expected, rel=0, abs=ROUNDED.get(tool, ATOL)), metric


def metrics() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for tool, facts in TOOLS.items():
        for name, metric in facts["metrics"].items():
            yield tool, name, metric


def test_every_metric_that_was_compared_has_its_value_here() -> None:
    wanted = {(tool, name) for tool, name, one in metrics() if one["held"] in ("run", "published") and "ours" in one}
    compared = [*CONTENT["values"].items(), *CONTENT["published"].items()]
    assert wanted == {(tool, name) for tool, found in compared for name in found}


def test_every_metric_has_a_measure_that_exists_or_a_reason() -> None:
    for tool, name, metric in metrics():
        assert metric.keys() <= {"held", "policies", "ours", "note", "why_not"}, (tool, name)
        assert ("ours" in metric) != ("why_not" in metric), (tool, name)
        assert metric["held"] in HELD
        Policies(**metric["policies"])
        if "ours" in metric:
            written = metric["ours"].removeprefix(COMPLEMENT).replace("@k", "@10")
            in_yaml, in_python = snippets(tool, metric)
            read = yaml.safe_load(in_yaml)
            preset = presets()[tool] if "preset" in read else None
            (text,) = read["measures"]
            assert Measure.parse(text, defaults=preset.options if preset else {}) == Measure.parse(written), (
                tool,
                name,
            )
            assert {**(preset.policies if preset else {}), **read.get("policies", {})} == metric["policies"]
            assert text in in_python


def test_tools_and_their_metrics_are_found_in_any_spelling() -> None:
    assert [find_tool(name) for name in ("Scikit-Learn", "TFR", "TorchMetrics")] == [
        "sklearn",
        "tf_ranking",
        "torchmetrics",
    ]
    assert list(find_metrics("xgboost", "NDCG@5-")) == ["ndcg@k-"]
    assert list(find_metrics("trec_eval", "ndcg_cut_10")) == ["ndcg_cut_k"]
    assert list(find_metrics("catalyst", "NDCG")) == ["ndcg", "ndcg(gain_function='linear_rank')"]
    assert names_of("Gini")["1 - Gini@k"] == ["elliot Gini", "elliot GiniIndex"]
