"""Other tools: what they call their measures, and which of ours has the same number.

They are in ``other_tools.yaml``, whose head says how they are written. Nothing that computes a measure loads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

from rankeval_spark.errors import ConfigError, Fault, listed, nearest
from rankeval_spark.measures import registry
from rankeval_spark.measures.definition import normalise_name

Tool: TypeAlias = Mapping[str, Any]
"""A tool as the file has it. Each of its metrics is a map, and has the policies of the tool together with its own."""

_MIN_PART: Final = 3  # letters of a part of a name by which it is found
COMPLEMENT: Final = "1 - "  # before a measure whose complement a tool has


@cache
def read_tools() -> Mapping[str, Tool]:
    """Read the file: tools by their names.

    >>> read_tools()["torchmetrics"]["metrics"]["RetrievalMRR(top_k=k)"]
    {'held': 'run', 'policies': {'population': 'judged'}, 'ours': 'RR@k'}
    """
    import yaml  # noqa: PLC0415 - what computes a measure does not need it

    text = resources.files("rankeval_spark.measures").joinpath("other_tools.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # both read plain data, the first one five times as quick
    tools: dict[str, dict[str, Any]] = loader(text).get_single_data()
    for tool in tools.values():
        for name, written in tool["metrics"].items():
            metric = dict(written) if isinstance(written, dict) else {"ours": written}
            policies = {**tool.get("policies", {}), **metric.pop("policies", {})}
            tool["metrics"][name] = {"held": tool["held"], "policies": policies, **metric}
    return tools


def find_tool(name: str) -> str:
    """Return the name of a tool in any spelling; ConfigError for an unknown one.

    >>> find_tool("scikit-learn"), find_tool("TFR")
    ('sklearn', 'tf_ranking')
    """
    known = {other: tool for tool, facts in read_tools().items() for other in (tool, *facts.get("names", ()))}
    found = {normalise_name(other): tool for other, tool in known.items()}.get(normalise_name(name))
    if found is None:
        expected = f"one of {', '.join(read_tools())}"
        raise ConfigError(Fault("rankeval measures --from", repr(name), expected, nearest(name, known)))
    return found


def find_metrics(tool: str, name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the metrics that a tool calls so: exactly, with other parameters or in part; ConfigError without any.

    >>> list(find_metrics("xgboost", "ndcg@5-")), list(find_metrics("torchmetrics", "retrievalmap"))
    (['ndcg@k-'], ['RetrievalMAP', 'RetrievalMAP(top_k=k)'])
    >>> list(find_metrics("lightfm", "auc")), list(find_metrics("implicit", "MAP@5"))
    (['auc_score'], ['mean_average_precision_at_k'])
    """
    metrics = read_tools()[tool]["metrics"]
    exact = {each: metric for each, metric in metrics.items() if _spell(each) == _spell(name)}
    alike = {each: metric for each, metric in metrics.items() if _stem(each) == _stem(name)}
    found: Mapping[str, Mapping[str, Any]] = exact if exact and _spell(name) != _stem(name) else alike
    if not found and len(_stem(name)) >= _MIN_PART:
        found = {each: metric for each, metric in metrics.items() if _stem(name) in _stem(each)}
    if not found and (meant := registry.find_builtin(_bare(name))):
        of_tool = metrics.items()
        found = {each: metric for each, metric in of_tool if canonical(metric.get("ours", "")) == meant.entry.name}
    if not found:
        fix = nearest(name, [*metrics, *map(_bare, metrics)])
        raise ConfigError(Fault(f"rankeval measures --from {tool}", repr(name), f"one of {listed(name, metrics)}", fix))
    return found


def find_in_tools(name: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield tool, name and metric of each tool that has the name, in any spelling, with any parameters."""
    for tool, facts in read_tools().items():
        for metric, found in facts["metrics"].items():
            if _stem(metric) == _stem(name):
                yield tool, metric, found


def names_of(measure: str) -> Mapping[str, list[str]]:
    """Return what tools call a measure: by our name with options, the tools each with its name.

    >>> names_of("GMAP")
    {'GMAP': ['trec_eval gm_map']}
    """
    found: dict[str, list[str]] = {}
    for tool, facts in read_tools().items():
        for name, metric in facts["metrics"].items():
            ours = metric.get("ours", "")
            if re.match(r"\w+", ours.removeprefix(COMPLEMENT)) and canonical(ours) == measure:
                found.setdefault(ours, []).append(f"{tool} {name}")
    return found


def canonical(ours: str) -> str:
    """Return the name of a measure without its options and cutoff.

    >>> canonical("1 - AUC(ties='zero')"), canonical("nDCG@k")
    ('AUC', 'nDCG')
    """
    return re.split(r"[(@]", ours.removeprefix(COMPLEMENT))[0]


def find_cutoff(name: str) -> int | None:
    """Return the cutoff that is written in a tool's name of a measure; None without one.

    >>> [find_cutoff(name) for name in ("map@5", "RetrievalMAP(top_k=3)", "map_cut.20", "dcg_score(log_base=10)")]
    [5, 3, 20, None]
    """
    found = re.search(r"(?:@|_|\.|\b(?:top_)?k=|\btop=)([1-9]\d*)\b", name)
    return int(found[1]) if found else None


def in_words(metric: Mapping[str, Any]) -> str:
    """Return our measure with the note, or why there is none."""
    if "why_not" in metric:
        return f"not offered: {metric['why_not']}"
    return "; ".join(filter(None, (metric["ours"], metric.get("note"))))


def _bare(name: str) -> str:
    """Return a name without parameters and cutoff; the suffix of XGBoost stays."""
    return re.split(r"[(@:]|\.(?=\d)", name)[0].strip() + ("-" if name.endswith("-") else "")


def _stem(name: str) -> str:
    """Return a name in one spelling, without parameters and cutoff."""
    bare = _bare(name)
    letters = re.sub(r"(?<=[a-z])(?:at)?k$", "", normalise_name(bare.rstrip("-"))) or normalise_name(bare)
    return letters.removesuffix("metric") + bare[len(bare.rstrip("-")) :]


def _spell(name: str) -> str:
    """Return a name in one spelling, with its parameters; numbers are cutoffs."""
    return re.sub(r"\d+", "k", re.sub(r"[\s\"']", "", name.casefold()))
