"""Which numbers of other tools are which of the reference values.

``python benchmarks/reference_tools.py`` asks the tools that the Python that runs it can import, keeps what they say
in ``docs/reference/tools.json`` and writes the table of ``docs/reference-values.md`` from it. It needs no package of
ours.
A tool gets each list of the panel without equal scores, and its judgements; a measure of predictions gets the scores of
the list. A function is the first case that gives the same number for every list, as far as both have one, else for
those whose gains are 0 and 1. Where a case has no number, the table shows what the tool puts there.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGE = FOLDER.with_name("reference-values.md")
sys.path.insert(0, str(FOLDER))
import reader  # noqa: E402 - the file that a user copies

PANEL = max(reader.cases("AP"), key=lambda case: len(case["inputs"]))
FEW, MANY = 2, 4  # different numbers of all lists, and of those with gains 0 and 1, that do not agree by chance
START, END = "<!-- made by benchmarks/reference_tools.py -->", "<!-- end -->"
Asked = Callable[[dict[str, float], dict[str, float]], float]


def pytrec_eval(names: str) -> Iterator[tuple[str, Asked]]:
    import pytrec_eval as tool

    for name in names.split():
        yield (
            name,
            lambda run, qrels, name=name: next(
                iter(
                    tool.RelevanceEvaluator({"1": whole(qrels)}, {name.replace(":", ".", 1)})
                    .evaluate({"1": as_floats(run)})["1"]
                    .values()
                )
            ),
        )


def ir_measures(names: str) -> Iterator[tuple[str, Asked]]:
    import ir_measures as tool

    for name in names.split():
        measure = tool.parse_measure(name)
        yield (
            name,
            lambda run, qrels, measure=measure: next(
                one.value for one in tool.iter_calc([measure], {"1": whole(qrels)}, {"1": as_floats(run)})
            ),
        )


def ranx(names: str) -> Iterator[tuple[str, Asked]]:
    import ranx as tool

    for name in names.split():
        yield (
            name,
            lambda run, qrels, name=name: float(
                tool.evaluate(tool.Qrels({"1": whole(qrels)}), tool.Run({"1": as_floats(run)}), name)
            ),
        )


def sklearn(names: str) -> Iterator[tuple[str, Asked]]:
    from sklearn import metrics

    def listed(run: dict[str, float], qrels: dict[str, float]) -> tuple[list[float], list[float]]:
        return [max(qrels.get(item, 0), 0) for item in run], [*run.values()]

    for name in names.split():
        function, _, k = name.partition("@")
        if function in ("ndcg_score", "dcg_score"):
            yield (
                name,
                lambda run, qrels, f=function, k=k: getattr(metrics, f)(
                    *([side] for side in listed(run, qrels)), k=int(k) if k else None
                ),
            )
        elif function == "average_precision_score":
            yield (
                name,
                lambda run, qrels: metrics.average_precision_score(
                    [gain >= 1 for gain in listed(run, qrels)[0]], listed(run, qrels)[1]
                ),
            )
        else:
            yield (
                name,
                lambda run, qrels, f=function: getattr(metrics, f)(
                    *zip(
                        *[
                            (gain >= 1 if "auc" in f else gain, run[item])
                            for item, gain in qrels.items()
                            if item in run
                        ],
                        strict=True,
                    )
                ),
            )


def torchmetrics(names: str) -> Iterator[tuple[str, Asked]]:
    from torchmetrics.functional import retrieval as tool

    tensor, double = sys.modules["torch"].tensor, sys.modules["torch"].float64  # which it has imported

    for name in names.split():
        function, _, k = name.partition("@")
        top = {"top_k": int(k)} if k else {}
        yield (
            name,
            lambda run, qrels, f=function, top=top: float(
                getattr(tool, f"retrieval_{f}")(
                    tensor([*run.values()], dtype=double),
                    tensor([max(qrels.get(item, 0), 0) if "dcg" in f else qrels.get(item, 0) >= 1 for item in run]),
                    **top,
                )
            ),
        )


def recommenders(names: str) -> Iterator[tuple[str, Asked]]:
    import pandas as pd
    from recommenders.evaluation import python_evaluation as tool

    def frames(run: dict[str, float], qrels: dict[str, float]) -> list[Any]:
        true = [("1", item, gain) for item, gain in qrels.items() if gain >= 1]
        return [
            pd.DataFrame(rows, columns=["userID", "itemID", name])
            for name, rows in (("rating", true), ("prediction", [("1", item, score) for item, score in run.items()]))
        ]

    for name in names.split():
        function, _, k = name.partition("@")
        yield (
            name,
            lambda run, qrels, f=function, k=k: getattr(tool, f)(*frames(run, qrels), **({"k": int(k)} if k else {})),
        )


def rectools(names: str) -> Iterator[tuple[str, Asked]]:
    import pandas as pd
    from rectools import metrics

    for name in names.split():
        function, _, k = name.partition("@")
        call, _, options = function.partition("(")
        given = dict(part.split("=") for part in options.rstrip(")").split(",") if part)

        def ask(
            run: dict[str, float], qrels: dict[str, float], call: str = call, k: str = k, given: Any = given
        ) -> float:
            options = {name: value == "True" if value in ("True", "False") else value for name, value in given.items()}
            reco = pd.DataFrame(
                [("1", item, place) for place, item in enumerate(run, 1)], columns=["user_id", "item_id", "rank"]
            )
            truth = pd.DataFrame(
                [("1", item) for item, gain in qrels.items() if gain >= 1], columns=["user_id", "item_id"]
            )
            return float(getattr(metrics, call)(k=int(k), **options).calc_per_user(reco, truth).iloc[0])

        yield name, ask


def lenskit(names: str) -> Iterator[tuple[str, Asked]]:
    from lenskit import metrics
    from lenskit.data import ItemList

    for name in names.split():
        function, _, k = name.partition("@")
        call, _, options = function.partition("(")
        given = {
            key: float(value) for key, value in (part.split("=") for part in options.rstrip(")").split(",") if part)
        }

        def ask(
            run: dict[str, float], qrels: dict[str, float], call: str = call, k: str = k, given: Any = given
        ) -> float:
            items = ItemList(item_ids=[*run], scores=[*run.values()], ordered=True)
            test = ItemList(item_ids=[item for item, gain in qrels.items() if gain >= 1])
            metric = getattr(metrics, call)(*([int(k)] if k else []), **given)
            return float(metric.measure_list(items, test))

        yield name, ask


def cornac(names: str) -> Iterator[tuple[str, Asked]]:
    import numpy as np
    from cornac import metrics

    for name in names.split():
        function, _, k = name.partition("@")

        def ask(run: dict[str, float], qrels: dict[str, float], function: str = function, k: str = k) -> float:
            names = {item: place for place, item in enumerate([*run, *(item for item in qrels if item not in run)])}
            positive = np.array([names[item] for item, gain in qrels.items() if gain >= 1])
            return float(
                getattr(metrics, function)(**({"k": int(k)} if k else {})).compute(
                    gt_pos=positive,
                    pd_rank=np.arange(len(run)),
                    pd_scores=np.array([*run.values()]),
                    item_indices=np.arange(len(run)),
                    gt_neg=np.array([place for item, place in names.items() if qrels.get(item, 0) < 1]),
                )
            )

        yield name, ask


def surprise(names: str) -> Iterator[tuple[str, Asked]]:
    from surprise import accuracy
    from surprise.prediction_algorithms.predictions import Prediction

    for name in names.split():
        yield (
            name,
            lambda run, qrels, f=name: getattr(accuracy, f)(
                [Prediction("1", item, gain, run[item], {}) for item, gain in qrels.items() if item in run],
                verbose=False,
            ),
        )


TOOLS: dict[str, tuple[Callable[[str], Iterator[tuple[str, Asked]]], str, str]] = {
    "pytrec_eval": (
        pytrec_eval,
        "pytrec-eval-terrier",
        "map map_cut.3 P.3 recall.3 ndcg ndcg_cut.3 recip_rank Rprec bpref infAP 11pt_avg set_P set_recall set_F "
        "success.3 num_rel_ret iprec_at_recall.0.7 relative_P.3 utility set_relative_P set_map gm_map",
    ),
    "ir_measures": (
        ir_measures,
        "ir-measures",
        "AP AP@3 P@3 R@3 nDCG nDCG@3 nDCG(dcg='exp-log2')@3 RR RR@3 Rprec Bpref infAP SetP SetR SetF Success@3 "
        "Judged@3 IPrec@0.7 NumRelRet RBP(rel=1,p=0.8) RBP(rel=1,p=0.8)@3 ERR@3 Compat(p=0.8)",
    ),
    "ranx": (
        ranx,
        "ranx",
        "map map@3 precision@3 recall@3 f1@3 r-precision mrr mrr@3 dcg@3 dcg_burges@3 ndcg ndcg@3 ndcg_burges@3 hits@3 "
        "hit_rate@3 bpref rbp.80",
    ),
    "scikit-learn": (
        sklearn,
        "scikit-learn",
        "ndcg_score ndcg_score@3 dcg_score dcg_score@3 average_precision_score roc_auc_score mean_squared_error "
        "mean_absolute_error root_mean_squared_error",
    ),
    "torchmetrics": (
        torchmetrics,
        "torchmetrics",
        "average_precision average_precision@3 precision@3 recall@3 hit_rate@3 reciprocal_rank reciprocal_rank@3 "
        "normalized_dcg normalized_dcg@3 r_precision fall_out@3 auroc",
    ),
    "recommenders": (
        recommenders,
        "recommenders",
        "map@3 map_at_k@3 ndcg_at_k@3 precision_at_k@3 recall_at_k@3 r_precision_at_k@3",
    ),
    "RecTools": (
        rectools,
        "rectools",
        "Precision@3 Precision(r_precision=True)@3 Recall@3 MAP@3 MAP(divide_by_k=True)@3 NDCG@3 "
        "NDCG(divide_by_achievable=True)@3 MRR@3 HitRate@3 F1Beta@3 PAP@3 PartialAUC@3",
    ),
    "LensKit": (
        lenskit,
        "lenskit",
        "Precision@3 Recall@3 NDCG NDCG@3 DCG@3 RecipRank RecipRank@3 Hit@3 RBP(patience=0.8)",
    ),
    "Cornac": (cornac, "cornac", "Precision@3 Recall@3 FMeasure@3 NDCG@3 NDCG NCRR@3 NCRR MRR HitRatio@3 AUC MAP"),
    "Surprise": (surprise, "scikit-surprise", "rmse mse mae fcp"),
}
"""Adapter of each tool, the package that has its version, and the functions that are asked; ``@3`` is a cutoff."""


def whole(qrels: dict[str, float]) -> dict[str, int]:
    """Return judgements as whole numbers; ValueError of a half."""
    if any(gain != int(gain) for gain in qrels.values()):
        message = "not a whole number"
        raise ValueError(message)
    return {item: int(gain) for item, gain in qrels.items()}


def as_floats(run: dict[str, float]) -> dict[str, float]:
    """Return scores as floats, which some tools ask for."""
    return {item: float(score) for item, score in run.items()}


OF_PREDICTIONS = ("error", "rmse", "mse", "mae", "fcp", "auc_score")
"""Parts of the names of functions that take the scores for predictions."""


def numbers_of(name: str, ask: Asked) -> dict[str, float]:
    """Ask a tool for the value of each list of the panel; those for which it raises an error are left out."""
    takes_scores = any(part in name for part in OF_PREDICTIONS)
    found: dict[str, float] = {}
    for given_name, given in zip(PANEL["input_names"], PANEL["inputs"], strict=True):
        run = reader.run(given if takes_scores else {**given, "scores": None})
        with contextlib.suppress(Exception):  # a tool may raise anything
            found[given_name] = float(ask(run, reader.qrels(given)))
    return found


def same_as(found: dict[str, float], n_least: int) -> tuple[list[str], str]:
    """Return the cases with the same numbers and the fewest options, and what the tool has where these have none.

    Five decimals are enough; half of the numbers have to be compared, and so many of them to be different.
    """
    matches: list[tuple[int, str, str]] = []
    n_numbers = sum(not math.isnan(one) for one in found.values())
    for case in reader.cases():
        if any(case["options"].get(option) for option in ("group", "judged_only", "weighted")):
            continue
        values = dict(zip(case["input_names"], case["values"], strict=True))
        pairs = [(one, values[name]) for name, one in found.items() if name in values]
        known = [(one, value) for one, value in pairs if value is not None and not math.isnan(one)]
        n_known = len({value for _, value in known})
        is_same = all(math.isclose(one, value, rel_tol=1e-6, abs_tol=6e-6) for one, value in known)
        if is_same and len(known) > n_numbers / 2 and n_known >= n_least:
            instead = ", ".join(sorted({f"{one:g}" for one, value in pairs if value is None}))
            matches.append((len(known), case["measure"], instead))
    best = [match for match in matches if match[0] == max(matches)[0]]
    names = dict.fromkeys(name for _, name, _ in best)
    shortest = min(map(len, names), default=0)
    return [name for name in names if len(name) <= shortest + 2][:2], best[0][2] if best else ""


def is_binary(given: dict[str, Any]) -> bool:
    """Whether the gains of a list are 0 and 1."""
    return {*reader.qrels(given).values()} <= {0, 1}


def table(tools: dict[str, Any]) -> str:
    """Write what is kept of all tools as Markdown."""
    lines = ["| tool | function | here | without a value here |", "|---|---|---|---|"]
    for tool, kept in sorted(tools.items(), key=lambda pair: pair[0].lower()):
        for function, one in kept["functions"].items():
            here = ", ".join(f"`{name}`" for name in one["same"]) or "-"
            of = " (gains 0 and 1)" if one["is_of_binary_gains"] else ""
            lines.append(f"| {tool} {kept['version']} | `{function}` | {here}{of} | {one['instead'] or '-'} |")
    return "\n".join(lines)


def main() -> None:
    """Ask the tools that are here, keep what they say and write the table."""
    warnings.simplefilter("ignore")
    path = FOLDER / "tools.json"
    of_binary_gains = {name for name, one in zip(PANEL["input_names"], PANEL["inputs"], strict=True) if is_binary(one)}
    tools = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for tool, (adapter, package, names) in TOOLS.items():
        try:
            asked = list(adapter(names))
        except ImportError as error:
            print(f"{tool}: {error}", file=sys.stderr)
            continue
        functions = {}
        for name, ask in asked:
            found = numbers_of(name, ask)
            same, instead = same_as(found, FEW)
            binary = {} if same else {one: value for one, value in found.items() if one in of_binary_gains}
            same, instead = (same, instead) if same else same_as(binary, MANY)
            if not found:
                print(tool, name, "gives no number", file=sys.stderr)
                continue
            functions[name] = {"same": same, "instead": instead, "is_of_binary_gains": bool(binary and same)}
            print(tool, name, *functions[name].values(), "" if same else found)
        tools[tool] = {"version": importlib.metadata.version(package), "functions": functions}
    path.write_text(json.dumps(tools, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    PAGE.write_text(f"{before}{START}\n\n{table(tools)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
