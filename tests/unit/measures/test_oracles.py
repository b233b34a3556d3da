"""Values are those of trec_eval, and of ranx where the definitions agree."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import pytrec_eval

from rankeval_spark.measures import Lists, Measure, MeasureSet
from tests.support import oracles

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankeval_spark.measures import Ranking

Runs = dict[str, dict[str, float]]
Judgements = dict[str, dict[str, int]]

KS = (1, 2, 3, 5, 10, 20)
N_USERS = 300
AT_CUTOFFS = ("P", "recall", "map_cut", "ndcg_cut", "success", "relative_P")
WHOLE = (
    "map",
    "gm_map",
    "ndcg",
    "recip_rank",
    "Rprec",
    "num_rel_ret",
    "set_P",
    "set_recall",
    "set_F",
    "11pt_avg",
    "bpref",
    "infAP",
)
MULTIPLES = "Rprec_mult.0.05,0.2,0.3,0.5,0.7,1,1.4,2"
RECALL_LEVELS = "iprec_at_recall.0,0.1,0.15,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1"
SCORES = [step / 8 for step in range(12)]
"""Exact in float32, since trec_eval keeps scores so; few enough to tie often."""

ITEM_IDS: dict[str, Callable[[int], str]] = {
    "strings": lambda number: f"d{number}",
    "integers": str,
    "unicode": lambda number: f"é{number}" if number % 2 else f"z{number}",
}


def random_data(seed: int, item_id: Callable[[int], str]) -> tuple[Runs, Judgements]:
    """Draw logs with ties, short lists, graded and negative gains, R > k, and users without a relevant item."""
    draw = random.Random(seed)
    runs: Runs = {}
    judgements: Judgements = {}
    for user in (f"u{number}" for number in range(N_USERS)):
        recommended = draw.sample(range(60), draw.choice([1, 2, 5, 12, 30]))
        judged = draw.sample(range(60), draw.choice([1, 3, 8, 25]))
        runs[user] = {item_id(item): draw.choice(SCORES) for item in recommended}
        # With negative judgements alone trec_eval reads memory that is not its own, and may never end.
        grades = [draw.choice([0, 0, 1, 1, 2, 3]), *(draw.choice([-1, 0, 0, 1, 1, 2, 3]) for _ in judged[1:])]
        judgements[user] = {item_id(item): grade for item, grade in zip(judged, grades, strict=True)}
    return runs, judgements


def trec_values(runs: Runs, judgements: Judgements, level: int) -> dict[str, list[float]]:
    """Ask trec_eval, by measure in the order of the users."""
    cutoffs = ",".join(map(str, KS))
    asked = {*(f"{name}.{cutoffs}" for name in AT_CUTOFFS), *WHOLE, MULTIPLES, RECALL_LEVELS}
    by_user = pytrec_eval.RelevanceEvaluator(judgements, asked, relevance_level=level).evaluate(runs)
    names = next(iter(by_user.values()))
    return {name: [by_user[user][name] for user in runs] for name in names}


def lists_of(runs: Runs, judgements: Judgements) -> list[Ranking]:
    """Rank as trec_eval does and join with the judgements."""
    return [oracles.ranking_of(run, judgements[user]) for user, run in runs.items()]


@pytest.mark.parametrize("ids", ITEM_IDS)
@pytest.mark.parametrize("level", [1, 2])
def test_values_are_those_of_trec_eval(ids: str, level: int) -> None:
    runs, judgements = random_data(seed=level, item_id=ITEM_IDS[ids])
    trec = trec_values(runs, judgements, level)
    batch = Lists.of(lists_of(runs, judgements))
    for name, expected in trec.items():
        measure = as_in_trec(Measure.parse(name), level)
        asked = MeasureSet.of([measure])
        values = asked.score(batch)[measure.column][:, 0]
        # Where the measure is undefined, trec_eval gives the value of a list without a hit.
        filled = np.nan_to_num(values, nan=measure.without_relevant)
        np.testing.assert_allclose(filled, expected, rtol=0, atol=1e-9, err_msg=name)
        undefined = [oracles.expected(measure, one) for one in lists_of(runs, judgements)]
        np.testing.assert_array_equal(np.isnan(values), np.isnan(undefined))


@pytest.mark.parametrize(
    ("options", "gains"),
    [
        ("gains={1:2,2:3,3:10}", {1: 2, 2: 3, 3: 10}),
        ("dcg='exp-log2'", {1: 1, 2: 3, 3: 7}),
        ("rel=2,gains='binary'", {1: 0, 2: 1, 3: 1}),
    ],
)
def test_ndcg_with_other_gains_is_that_of_trec_eval_with_other_judgements(options: str, gains: dict[int, int]) -> None:
    runs, judgements = random_data(seed=4, item_id=ITEM_IDS["strings"])
    replaced = {
        user: {item: gains.get(gain, 0) for item, gain in judged.items()} for user, judged in judgements.items()
    }
    trec = trec_values(runs, replaced, level=1)
    batch = Lists.of(lists_of(runs, judgements))
    for name, expected in {"": trec["ndcg"], **{f"@{k}": trec[f"ndcg_cut_{k}"] for k in KS}}.items():
        asked = MeasureSet.parse([f"nDCG({options}){name}"])
        values = asked.score(batch)[asked.columns[0]][:, 0]
        np.testing.assert_allclose(np.nan_to_num(values), expected, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("level", [1, 2])
def test_first_hit_is_at_the_rank_that_reciprocal_rank_gives(level: int) -> None:
    runs, judgements = random_data(seed=level + 10, item_id=ITEM_IDS["strings"])
    reciprocal = np.array(trec_values(runs, judgements, level)["recip_rank"])
    measure = Measure.of("FirstHit", k=3, rel=level)
    values = MeasureSet.of([measure]).score(Lists.of(lists_of(runs, judgements)))[measure.column][:, 0]
    np.testing.assert_array_equal(np.nan_to_num(values), np.isclose(reciprocal, 1 / 3))


def as_in_trec(measure: Measure, level: int) -> Measure:
    """Set the relevance level, which trec_eval's nDCG ignores, and the rounding of recall of its version 9."""
    theirs: dict[str, Any] = {} if measure.name == "nDCG" else {"rel": float(level)}
    theirs |= {"need": "v9"} if "need" in measure.options else {}
    return Measure.of(measure.name, k=measure.k, **{**measure.options, **theirs})


RANX_NAMES = {
    "P@{k}": "precision@{k}",
    "R@{k}": "recall@{k}",
    "F1@{k}": "f1@{k}",
    "NumHits@{k}": "hits@{k}",
    "Success@{k}": "hit_rate@{k}",
    "RR@{k}": "mrr@{k}",
    "AP@{k}": "map@{k}",
    "DCG@{k}": "dcg@{k}",
    "nDCG@{k}": "ndcg@{k}",
    "DCG(dcg='exp-log2')@{k}": "dcg_burges@{k}",
    "nDCG(dcg='exp-log2')@{k}": "ndcg_burges@{k}",
}
RANX_WHOLE = {"Rprec": "r-precision", "RBP(max_rel=3,p=0.9)": "rbp.9", "RBP(max_rel=3,p=0.85)": "rbp.85"}
RANX_SCALE = {"RBP": 3}
"""What ranx's value is divided by: it adds up grades as they are, not as shares of the greatest, which is 3 here."""


@pytest.mark.slow  # importing ranx takes seconds
def test_values_are_those_of_ranx_where_definitions_agree() -> None:
    ranx = pytest.importorskip("ranx")
    runs, judgements = random_data(seed=3, item_id=ITEM_IDS["strings"])
    # Untied, because ranx leaves ties in the order of its input; not negative, because it does not clip gains.
    runs = {user: untied(run) for user, run in list(runs.items())[:40]}
    relevant = {user: {item: max(gain, 0) for item, gain in judgements[user].items()} for user in runs}
    names = {ours.format(k=k): theirs.format(k=k) for ours, theirs in RANX_NAMES.items() for k in (1, 3, 10)}
    found = ranx.evaluate(
        ranx.Qrels(relevant), ranx.Run(runs), [*names.values(), *RANX_WHOLE.values()], return_mean=False
    )
    batch = Lists.of(lists_of(runs, relevant))
    for ours, theirs in {**names, **RANX_WHOLE}.items():
        measure = Measure.parse(ours)
        values = MeasureSet.of([measure]).score(batch)[measure.column][:, 0]
        by_user = dict(zip(sorted(runs), found[theirs], strict=True))
        expected = [by_user[user] / RANX_SCALE.get(measure.name, 1) for user in runs]
        is_defined = ~np.isnan(values)
        np.testing.assert_allclose(values[is_defined], np.array(expected)[is_defined], rtol=0, atol=1e-9, err_msg=ours)


def untied(run: dict[str, float]) -> dict[str, float]:
    """Keep trec_eval's order and make every score different."""
    return {item: -float(rank) for rank, item in enumerate(oracles.trec_order(run))}
