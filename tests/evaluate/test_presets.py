"""Each preset against the tool whose numbers it is to meet, the whole way.

That of Spark's own metrics is in ``tests/spark``.

Presets of tools that do not fit into one environment with Spark are tested in ``tests/peers`` and
``tests/peers_torch``.
"""

from __future__ import annotations

import random
from statistics import fmean
from typing import Any, Final

import pytest
import pytrec_eval

from rankeval_spark import evaluate
from tests.evaluate.test_oracles import Nested, assert_close, evaluated, values_of
from tests.support.arrow_frames import by, table, where

KS: Final = (1, 3, 10)
TREC: Final = {
    **{f"P@{k}": f"P_{k}" for k in KS},
    **{f"R@{k}": f"recall_{k}" for k in KS},
    **{f"AP@{k}": f"map_cut_{k}" for k in KS},
    **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in KS},
    **{f"Success@{k}": f"success_{k}" for k in KS},
    **{"AP": "map", "nDCG": "ndcg", "RR": "recip_rank", "Rprec": "Rprec", "Bpref": "bpref", "LogAP": "gm_map"},
    **{"SetP": "set_P", "SetR": "set_recall", "SetF": "set_F", "relative_P@3": "relative_P_3"},
}
INTERPOLATED: Final = {f"IPrec@{level}": f"iprec_at_recall_{level:.2f}" for level in (0.0, 0.1, 0.5, 1.0)}
ITEMS: Final = [*(f"d{number}" for number in range(25)), "é", "日本", "007", "7"]


def random_data(seed: int, *, with_ties: bool, n_users: int = 80) -> tuple[Nested, Nested]:
    """Draw lists of 1 to 15 items and judgements of grades -1 to 3; some users stand on one side only.

    Scores are few or hardly differ where there are ties to be; some users have nothing relevant.
    """
    draw = random.Random(seed)
    users = [f"{draw.choice(['u', 'ü', '0'])}{number}" for number in range(n_users)]

    def scores(n: int) -> list[float]:
        if with_ties:
            return [draw.randint(-4, 4) / 8 + 0.1 + draw.choice([0, 0, 1e-9, 1e-10]) for _ in range(n)]
        return [float(score) for score in draw.sample(range(1000), n)]

    lists = {user: draw.sample(ITEMS, draw.randint(1, 15)) for user in users if draw.random() < 0.85}
    run = {user: dict(zip(items, scores(len(items)), strict=True)) for user, items in lists.items()}
    qrel = {
        user: {item: draw.choice([-1, 0, 0, 1, 1, 2, 3]) for item in draw.sample(ITEMS, draw.randint(1, 12))}
        for user in users
        if draw.random() < 0.9
    }
    return run, qrel


def relevant(gains: dict[str, Any]) -> set[str]:
    """Items with a gain of 1 or more."""
    return {item for item, gain in gains.items() if gain >= 1}


def best_first(items: dict[str, Any]) -> list[str]:
    """Order a list without ties."""
    return sorted(items, key=lambda item: -items[item])


@pytest.mark.parametrize(("preset", "seed"), [("trec_eval", 1), ("ir_measures", 2)])
def test_trec_eval(preset: str, seed: int) -> None:
    """pytrec_eval is trec_eval 9, which ir_measures calls; version 10 differs in interpolated precision only."""
    run, qrel = random_data(seed, with_ties=True)
    names = {**TREC, **(INTERPOLATED if preset == "ir_measures" else {})}
    result = evaluated(run, qrel, measures=list(names), preset=preset)
    found = values_of(result)
    theirs = pytrec_eval.RelevanceEvaluator(qrel, {"iprec_at_recall", *names.values()}).evaluate(run)
    missing = set(qrel) - set(run)
    assert missing
    for (ours, their), measure in zip(names.items(), result.request.measure_set.measures, strict=True):
        worst = measure.without_relevant
        expected = {**dict.fromkeys(missing, worst), **{user: values[their] for user, values in theirs.items()}}
        assert_close(found[str(measure)], expected, ours, atol=1e-9)


@pytest.mark.parametrize("preset", ["trec_eval", "ir_measures"])
def test_trec_eval_orders_ties_of_whole_numbers_by_their_digits(preset: str) -> None:
    """trec_eval knows text alone: "9" is above "10"."""
    run = {"1": dict.fromkeys(("9", "10", "2"), 0.5), "2": {"100": 1.0, "20": 1.0, "3": 2.0}}
    qrel = {"1": {"10": 1, "2": 2}, "2": {"100": 1}}
    rows = [(int(user), int(item), score) for user, items in run.items() for item, score in items.items()]
    gains = [(int(user), int(item), float(gain)) for user, items in qrel.items() for item, gain in items.items()]
    names = {"RR": "recip_rank", "AP": "map", "nDCG": "ndcg"}
    result = evaluate(
        table("user_id item_id score", *rows, ids="bigint"),
        table("user_id item_id gain", *gains, ids="bigint"),
        measures=list(names),
        preset=preset,
    )
    theirs = pytrec_eval.RelevanceEvaluator(qrel, set(names.values())).evaluate(run)
    for ours, their in names.items():
        found = by(where(result.user_values, measure=ours), "user_id", value="value")
        expected = {user: values[their] for user, values in theirs.items()}
        assert_close({str(user): value for user, value in found.items()}, expected, ours, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # numba and ir_datasets warn of their own matters
def test_ranx() -> None:
    """Without ties, for which ranx has no order of its own; grade -1 is left out, which it does not know."""
    import ranx  # noqa: PLC0415 - compiles for seconds when it is imported

    run, qrel = random_data(3, with_ties=False)
    qrel = {user: {item: max(gain, 0) for item, gain in gains.items()} for user, gains in qrel.items()}
    names = {
        **{"P@3": "precision@3", "R@3": "recall@3", "F1@3": "f1@3", "AP": "map", "AP@5": "map@5", "RR": "mrr"},
        **{"RR@3": "mrr@3", "nDCG@10": "ndcg@10", "nDCG": "ndcg", "nDCG(dcg='exp-log2')@10": "ndcg_burges@10"},
        **{"Success@3": "hit_rate@3", "NumHits@3": "hits@3", "Rprec": "r-precision"},
    }
    result = evaluated(run, qrel, measures=list(names), preset="ranx")
    found = values_of(result)
    comparable = ranx.Run({user: items for user, items in run.items() if user in qrel})
    theirs = ranx.evaluate(ranx.Qrels(qrel), comparable, list(names.values()), return_mean=False, make_comparable=True)
    for measure, name in zip(result.request.measure_set.measures, names.values(), strict=True):
        expected = dict(zip(sorted(qrel), map(float, theirs[name]), strict=True))
        assert_close(found[str(measure)], expected, name, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as above
def test_rbp_of_ranx_adds_grades_as_they_are() -> None:
    """A defect: three perfect items of grade 3 make more than 1. With grades 0 and 1 the numbers are the same."""
    import ranx  # noqa: PLC0415 - as above

    items = {item: float(score) for item, score in zip("abc", (3, 2, 1), strict=True)}
    run = {user: items for user in ("graded", "binary")}
    qrel = {"graded": dict.fromkeys("abc", 3), "binary": {"a": 1, "c": 1}}
    theirs = ranx.evaluate(ranx.Qrels(qrel), ranx.Run(run), "rbp.80", return_mean=False)
    graded, binary = 0.2 * (1 + 0.8 + 0.8**2), 0.2 * (1 + 0.8**2)
    assert dict(zip(sorted(qrel), map(float, theirs), strict=True)) == pytest.approx(
        {"graded": 3 * graded, "binary": binary}, rel=0, abs=1e-9
    )
    found = values_of(evaluated(run, qrel, measures=["RBP"], preset="ranx"))
    assert found == {"RBP(rel=1,p=0.8)": pytest.approx({"graded": graded, "binary": binary}, rel=0, abs=1e-9)}


def apk(actual: set[str], predicted: list[str], k: int) -> float:
    """Average precision by the formula of ml_metrics, whose setup no current pip can run: 0 without an actual item."""
    hits = [place for place, item in enumerate(predicted[:k], 1) if item in actual]
    return sum(number / place for number, place in enumerate(hits, 1)) / min(len(actual), k) if actual else 0.0


def test_kaggle() -> None:
    run, qrel = random_data(5, with_ties=False)
    expected = fmean(apk(relevant(gains), best_first(run.get(user, {})), 5) for user, gains in qrel.items())
    metrics = evaluated(run, qrel, measures=["AP@5"], preset="kaggle").metrics
    assert by(metrics, "measure", "k", value="value") == pytest.approx(
        {("AP(denom='min')", 5): expected}, rel=0, abs=1e-9
    )


def test_rectools_counts_an_item_by_the_rank_of_the_log() -> None:
    """A gap in the ranks stays: the second item stands at rank 4, whatever its score says."""
    log = table("user_id item_id rank score", ("u", "x", 1, 0.1), ("u", "a", 4, 0.9))
    held_out = table("user_id item_id", ("u", "a"))
    result = evaluate(log, held_out, measures=["RR", "P@3", "P@4"], preset="rectools")
    assert values_of(result) == {"RR": {"u": 1 / 4}, "P@3": {"u": 0.0}, "P@4": {"u": 1 / 4}}


@pytest.mark.parametrize(
    ("preset", "population"),
    [
        ("elliot", ["both", "none_relevant"]),
        ("lenskit", ["both", "extra", "none_relevant"]),
        ("recbole", ["both", "missing", "none_relevant"]),
    ],
)
def test_each_preset_has_the_population_of_its_tool(preset: str, population: list[str]) -> None:
    """LensKit averages over the lists it is given, and a value that is not defined counts 0."""
    run = {user: {"a": 1.0} for user in ("both", "extra", "none_relevant")}
    qrel = {"both": {"a": 1}, "missing": {"a": 1}, "none_relevant": {"a": 0}}
    result = evaluated(run, qrel, measures=["RR"], preset=preset)
    assert sorted(by(result.user_metrics, "user_id", value="rr")) == population
    found = {user: value for user, value in values_of(result)["RR"].items() if value is not None}
    zero = {"elliot": [], "lenskit": ["extra", "none_relevant"], "recbole": ["missing"]}[preset]
    assert found == {"both": 1.0, **dict.fromkeys(zero, 0.0)}
