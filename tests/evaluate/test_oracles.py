"""The whole way against trec_eval, and against ranx where its definitions are the same."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
import pytrec_eval

from rankeval_spark import evaluate
from tests.support.arrow_frames import shuffled, table, tuples
from tests.support.sections import sections

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

Nested = dict[str, dict[str, Any]]

KS: Final = (1, 3, 10)
TREC: Final = {
    **{f"P@{k}": f"P_{k}" for k in KS},
    **{f"R@{k}": f"recall_{k}" for k in KS},
    **{f"AP@{k}": f"map_cut_{k}" for k in KS},
    **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in KS},
    **{f"Success@{k}": f"success_{k}" for k in KS},
    **{"AP": "map", "nDCG": "ndcg", "RR": "recip_rank", "Rprec": "Rprec"},
}
"""Our names and those of trec_eval."""

RANX: Final = {"P@3": "precision@3", "R@3": "recall@3", "AP": "map", "nDCG@10": "ndcg@10", "RR": "mrr"}


def random_logs(seed: int, items: list[str], n_users: int = 60) -> tuple[Nested, Nested]:
    """Draw runs and judgements: scores of few values, lists of 1 to 15 items, grades 0 to 3, users without a list."""
    draw = random.Random(seed)
    users = [draw.choice(["u", "ü", "用户", "0"]) + str(number) for number in range(n_users)]
    run = {
        user: {item: draw.randint(-8, 8) / 8 for item in draw.sample(items, draw.randint(1, 15))}
        for user in users
        if draw.random() < 0.85
    }
    qrel = {
        user: {item: draw.choice([0, 0, 1, 1, 2, 3]) for item in draw.sample(items, draw.randint(1, 12))}
        for user in users
        if draw.random() < 0.9
    }
    return run, qrel


def evaluated(run: Nested, qrel: Nested, **options: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
    """Evaluate dictionaries as trec_eval takes them."""
    scores = [(user, item, score) for user, items in run.items() for item, score in items.items()]
    gains = [(user, item, float(gain)) for user, items in qrel.items() for item, gain in items.items()]
    return evaluate(
        shuffled(table("user_id item_id score", *scores)),
        table("user_id item_id gain", *gains),
        **sections(**options),
    )


def values_of(result: Evaluation) -> Nested:
    """Value of each user by measure."""
    found: Nested = defaultdict(dict)
    for measure, k, user, value in tuples(result.user_values, "measure", "k", "user_id", "value"):
        found[f"{measure}@{k}" if k else measure][user] = value
    return found


def assert_close(found: dict[str, float], expected: dict[str, float], what: str, atol: float) -> None:
    """Compare the values of the same users."""
    assert found.keys() == expected.keys(), what
    users = sorted(expected)
    np.testing.assert_allclose(
        [found[user] for user in users], [expected[user] for user in users], rtol=0, atol=atol, err_msg=what
    )


@pytest.mark.parametrize(
    ("seed", "items"),
    [
        pytest.param(1, [f"d{number}" for number in range(25)], id="d2 stands above d10"),
        pytest.param(2, [f"{number}" for number in range(25)], id="digits"),
        pytest.param(
            3, [*"abcÄéß", *(f"日{n}" for n in range(10)), "𝄞", "\uffee", "Z", "_", "0", "00"], id="any letters"
        ),
    ],
)
def test_per_user_values_are_those_of_trec_eval(seed: int, items: list[str]) -> None:
    """Ties by the bytes of the item descending; every judged user counts, as with its option -c."""
    run, qrel = random_logs(seed, items)
    result = evaluated(run, qrel, measures=list(TREC), ties="item_desc_bytes", population="judged")
    found = values_of(result)
    trec = pytrec_eval.RelevanceEvaluator(qrel, set(TREC.values())).evaluate(run)
    missing = dict.fromkeys(set(qrel) - set(run), 0.0)
    assert missing
    for ours, theirs in TREC.items():
        expected = {**missing, **{user: values[theirs] for user, values in trec.items()}}
        assert_close(found[ours], expected, ours, atol=1e-9)


@pytest.mark.parametrize("seed", [4])
def test_means_are_those_of_trec_eval(seed: int) -> None:
    run, qrel = random_logs(seed, [f"d{number}" for number in range(25)])
    result = evaluated(run, qrel, measures=list(TREC), ties="item_desc_bytes", population="judged")
    trec = pytrec_eval.RelevanceEvaluator(qrel, set(TREC.values())).evaluate(run)
    rows = tuples(result.metrics, "measure", "k", "value", "n_users", "n_missing", "n_extra_users")
    counts = (len(qrel), len(set(qrel) - set(run)), len(set(run) - set(qrel)))
    assert {row[3:] for row in rows} == {counts}
    for measure, k, value, *_ in rows:
        theirs = TREC[f"{measure}@{k}" if k else measure]
        mean = sum(values[theirs] for values in trec.values()) / len(qrel)
        assert value == pytest.approx(mean, rel=0, abs=1e-9), measure


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # numba and ir_datasets warn of their own matters
def test_values_without_ties_are_those_of_ranx() -> None:
    """Where the definitions agree: binary relevance, no ties, every user on both sides and with a relevant item."""
    import ranx  # noqa: PLC0415 - compiles for seconds when it is imported

    draw = random.Random(5)
    items = [f"d{number}" for number in range(25)]
    users = [f"u{number}" for number in range(20)]
    scores = [number / 8 for number in range(1000)]
    run = {user: dict(zip(draw.sample(items, 12), draw.sample(scores, 12), strict=True)) for user in users}
    qrel = {user: dict.fromkeys(draw.sample(items, draw.randint(1, 8)), 1) for user in users}
    found = values_of(evaluated(run, qrel, measures=list(RANX)))
    theirs = ranx.evaluate(ranx.Qrels(qrel), ranx.Run(run), list(RANX.values()), return_mean=False)
    for ours, name in RANX.items():
        assert_close(found[ours], dict(zip(sorted(users), map(float, theirs[name]), strict=True)), ours, atol=1e-9)
