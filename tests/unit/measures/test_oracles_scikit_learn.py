"""Values are those of scikit-learn, list by list; where it means something else, an example shows what."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pytest
from sklearn import config_context, metrics

from rankeval_spark.measures import Lists, MeasureSet, Ranking, registry
from rankeval_spark.measures.arrays import Ratio
from rankeval_spark.measures.ties import spread_ties

N_LISTS: Final = 200
"""Lists of a test, others for each cutoff: thousands in all."""

KS: Final = (1, 3, 5, 10)
GRADES: Final = (0.0, 0.0, 0.5, 1.0, 2.0, 3.0)
SCORES: Final = tuple(step / 8 for step in range(9))

Oracle = Callable[[Sequence[float], Sequence[float]], float]


@pytest.fixture(autouse=True, scope="module")
def _unchecked() -> Iterator[None]:
    """Spare scikit-learn the checks of its arguments, which take longer than the rest."""
    with config_context(skip_parameter_validation=True, assume_finite=True):
        yield


class Scored(NamedTuple):
    """One list, best score first: a score and a gain for each item, all of which are judged."""

    scores: list[float]
    gains: list[float]

    @property
    def ranking(self) -> Ranking:
        """Build the list for our kernels."""
        return Ranking(self.gains, scores=self.scores)

    @property
    def relevant(self) -> list[int]:
        """1 where an item is relevant, else 0."""
        return [int(gain >= 1) for gain in self.gains]

    @property
    def untied(self) -> list[float]:
        """Other scores that put the items in the same order, without ties."""
        return [-float(rank) for rank in range(len(self.scores))]


def random_lists(seed: int, grades: Sequence[float] = GRADES) -> list[Scored]:
    """Draw lists of 2 to 30 items, since one alone is refused, with ties, graded and fractional gains, and R > k."""
    draw = random.Random(seed)
    lists = []
    for _ in range(N_LISTS):
        n_items, share = draw.randint(2, 30), draw.choice([0, 0.2, 1])
        gains = [draw.choice(grades) if draw.random() < share else 0.0 for _ in range(n_items)]
        lists.append(Scored(sorted(draw.choices(SCORES, k=n_items), reverse=True), gains))
    return lists


def ours(name: str, lists: Lists) -> np.ndarray:
    """Values of one measure."""
    asked = MeasureSet.parse([name])
    return asked.score(lists)[asked.columns[0]][:, 0]


def batch(lists: Sequence[Scored]) -> Lists:
    """Put lists into the order of their scores, ties as they stand."""
    return Lists.of([one.ranking for one in lists])


def over_all_tied(lists: Sequence[Scored]) -> Lists:
    """Put lists together as the policy `expected` does."""
    ties = [
        (place, rank)
        for place, one in enumerate(lists)
        for rank in range(2, len(one.scores) + 1)
        if one.scores[rank - 1] == one.scores[rank - 2]
    ]
    owner, rank = np.array(ties, dtype=np.int64).T
    return spread_ties(batch(lists), owner, rank)


def assert_same(name: str, found: np.ndarray, expected: Sequence[float]) -> None:
    """Compare; what is undefined for us is 0 or NaN for scikit-learn."""
    np.testing.assert_allclose(np.nan_to_num(found), np.nan_to_num(expected), rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("k", [*KS, None])
def test_cumulated_gain_is_that_of_scikit_learn(k: int | None) -> None:
    """Its ideal order is that of the items it is given, here all that are judged."""
    lists, cutoff = random_lists(k or 0), f"@{k}" if k else ""
    for name, score in (("nDCG", metrics.ndcg_score), ("DCG", metrics.dcg_score)):
        expected = [score([one.gains], [one.untied], k=k) for one in lists]
        assert_same(name, ours(f"{name}{cutoff}", batch(lists)), expected)


@pytest.mark.parametrize(("name", "base"), [("DCG(dcg='ln')", math.e), ("DCG(dcg='log10')", 10)])
@pytest.mark.parametrize("k", [*KS, None])
def test_other_logarithms_in_the_discount_are_those_of_scikit_learn(k: int | None, name: str, base: float) -> None:
    lists, cutoff = random_lists(50 + (k or 0)), f"@{k}" if k else ""
    expected = [metrics.dcg_score([one.gains], [one.untied], k=k, log_base=base) for one in lists]
    assert_same(name, ours(f"{name}{cutoff}", batch(lists)), expected)


@pytest.mark.parametrize("k", [*KS, None])
def test_mean_over_the_orders_of_ties_is_that_of_scikit_learn(k: int | None) -> None:
    """As the policy `ties: expected`: it means over ties wherever it is not told to leave them."""
    lists, cutoff = random_lists(100 + (k or 0)), f"@{k}" if k else ""
    for name, score in (("nDCG", metrics.ndcg_score), ("DCG", metrics.dcg_score)):
        expected = [score([one.gains], [one.scores], k=k) for one in lists]
        assert_same(name, ours(f"{name}{cutoff}", over_all_tied(lists)), expected)


def test_ideal_of_what_was_retrieved_is_that_of_scikit_learn() -> None:
    """Without the missed items, which it does not know of, it is the option ideal='retrieved' of the whole list."""
    lists = random_lists(3)
    missing = Lists.of([one.ranking._replace(missed=[3.0, 1.0]) for one in lists])
    expected = [metrics.ndcg_score([one.gains], [one.untied]) for one in lists]
    assert_same("nDCG", ours("nDCG(ideal='retrieved')", missing), expected)
    padded = [metrics.ndcg_score([[*one.gains, 3.0, 1.0]], [[*one.untied, -98.0, -99.0]], k=2) for one in lists]
    assert_same("nDCG", ours("nDCG@2", missing), padded)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("RMSE", metrics.root_mean_squared_error),
        ("MSE", metrics.mean_squared_error),
        ("MAE", metrics.mean_absolute_error),
    ],
)
def test_error_of_ratings_is_that_of_scikit_learn(name: str, oracle: Oracle) -> None:
    lists = random_lists(4, grades=(-2.5, 0.5, 1.0, 5.0))
    assert_same(name, ours(name, batch(lists)), [oracle(one.gains, one.scores) for one in lists])


def test_areas_precision_and_loss_are_those_of_scikit_learn() -> None:
    """Only lists with both kinds of items have an area, there and here."""
    lists = [one for one in random_lists(5) if 0 < sum(one.relevant) < len(one.relevant)]
    assert len(lists) > N_LISTS / 3
    oracles: dict[str, Callable[[Scored], float]] = {
        "AUC": lambda one: metrics.roc_auc_score(one.relevant, one.scores),
        "AP": lambda one: metrics.average_precision_score(one.relevant, one.untied),
        "HitRank(stat='last')": lambda one: metrics.coverage_error([one.relevant], [one.untied]),
        "LogLoss": lambda one: metrics.log_loss(one.relevant, [min(max(p, 0.01), 0.99) for p in one.scores]),
    }
    clipped = [one._replace(scores=[min(max(p, 0.01), 0.99) for p in one.scores]) for one in lists]
    for name, oracle in oracles.items():
        of = batch(clipped if name == "LogLoss" else lists)
        assert_same(name, ours(name, of), [oracle(one) for one in lists])


def test_loss_of_all_pairs_is_that_of_scikit_learn() -> None:
    lists = random_lists(6)
    pairs = [pair for one in lists for pair in zip(one.scores, one.gains, strict=True)]
    scores, gains = zip(*pairs, strict=True)
    errors = registry.get("RMSE").kernel(batch(lists).cut([0]))
    assert isinstance(errors, Ratio)
    total, n = errors.numerator.sum(), errors.denominator.sum()
    assert math.sqrt(total / n) == pytest.approx(metrics.root_mean_squared_error(gains, scores), rel=0, abs=1e-12)


def test_average_precision_takes_a_block_of_ties_as_one_rank() -> None:
    """A defect for rankings: no order of the two gives 1/2, and their mean is 3/4. The worst is what it takes."""
    tied = Scored([1.0, 1.0, 1.0], [1.0, 0.0, 0.0])
    assert metrics.average_precision_score(tied.relevant, tied.scores) == pytest.approx(1 / 3, rel=0, abs=1e-12)
    found = ours("AP", over_all_tied([tied]))
    assert found == pytest.approx([(1 + 1 / 2 + 1 / 3) / 3], rel=0, abs=1e-12)
    two = Scored([1.0, 1.0, 1.0], [1.0, 1.0, 0.0])
    assert metrics.average_precision_score(two.relevant, two.scores) == pytest.approx(2 / 3, rel=0, abs=1e-12)


def test_cumulated_gain_subtracts_negative_gains_and_its_ratio_refuses_them() -> None:
    """Here a negative gain is none, as in trec_eval."""
    one = Scored([2.0, 1.0], [-1.0, 1.0])
    assert metrics.dcg_score([one.gains], [one.scores]) == pytest.approx(-1 + 1 / math.log2(3), rel=0, abs=1e-12)
    assert ours("DCG", batch([one])) == pytest.approx([1 / math.log2(3)], rel=0, abs=1e-12)
    with pytest.raises(ValueError, match="negative y_true"):
        metrics.ndcg_score([one.gains], [one.scores])


def test_loss_that_is_sure_and_wrong_is_greater_there() -> None:
    """It takes 2.2e-16 for the smallest probability, the step of a double; here, as in older releases, it is 1e-15."""
    sure = Scored([1.0, 0.0], [0.0, 1.0])
    assert metrics.log_loss(sure.relevant, sure.scores) == pytest.approx(-math.log(2.0**-52), rel=0, abs=1e-9)
    assert ours("LogLoss", batch([sure])) == pytest.approx([15 * math.log(10)], rel=0, abs=1e-9)


def test_list_of_one_item_is_refused_there_and_has_a_value_here() -> None:
    with pytest.raises(ValueError, match="more than 1"):
        metrics.ndcg_score([[1.0]], [[1.0]])
    assert ours("nDCG", batch([Scored([1.0], [1.0])])).tolist() == [1.0]
