"""Values are those of ir_measures: of its own Python code, of trec_eval 9 as it calls it, and of gdeval where Perl is.

Where it differs from our definitions or from itself is in the notes of its preset, with an example here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Final

import ir_measures
import numpy as np
import pytest

from rankeval_spark.config.presets import options_of
from rankeval_spark.measures import Lists, MeasureSet, Ranking
from tests.support import oracles
from tests.support.trec import Judgements, Runs, random_topics

if TYPE_CHECKING:
    from ir_measures.measures import Measure

N_TOPICS: Final = 500
KS: Final = (1, 3, 5, 10, 20)

BINARY: Final = ("P", "R", "Success", "AP")
BY_TREC_EVAL: Final[Mapping[str, str]] = {
    **{f"{name}(rel={rel})@{k}": f"{name}(rel={rel})@{k}" for name in BINARY for rel in (1, 2) for k in KS},
    **{f"{name}(rel={rel})": f"{name}(rel={rel})" for name in ("AP", "RR", "Rprec", "SetP") for rel in (1, 2)},
    **{f"{name}(rel={rel})": f"{name}(rel={rel})" for name in ("Bpref", "infAP", "SetR", "SetF") for rel in (1, 2)},
    **{f"IPrec@{level}": f"IPrec@{level}" for level in (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)},
    **{f"nDCG@{k}": f"nDCG@{k}" for k in KS},
    "nDCG": "nDCG",
    "nDCG(gains={1:2,2:3,3:10})": "nDCG(gains={1:2,2:3,3:10})",
    "nDCG(gains={1:0,2:1,3:5})@5": "nDCG(gains={1:0,2:1,3:5})@5",
    "NumHits": "NumRet(rel=1)",
    "NumHits(rel=2)": "NumRet(rel=2)",
    "SetF(beta=2)": "SetF(beta=4.0)",
}
"""Our name to theirs; ours are completed by the preset."""

Ids = Callable[[str], str]
Rank = Callable[[Mapping[str, float], Mapping[str, int]], Ranking]
IDS: Final[Mapping[str, Ids]] = {
    "unicode": lambda item: item,
    "integers": lambda item: ("00" if item[0] == "D" else "") + str(int(item.lstrip("dD-é日")) + 1),
}
"""Ids of the documents: as they are drawn, and such as 7 and 007, which are two."""


def topics(seed: int, ids: Ids = IDS["unicode"], *, n_topics: int = N_TOPICS) -> tuple[Runs, Judgements]:
    """Draw topics with ties, gains from -1 to 3, short, long and missing lists, R = 0 and R > k, and extra lists."""
    run, judgements = random_topics(seed, n_topics=n_topics)
    return (
        {topic: {ids(item): score for item, score in items.items()} for topic, items in run.items()},
        {topic: {ids(item): grade for item, grade in items.items()} for topic, items in judgements.items()},
    )


def single(run: Runs) -> Runs:
    """Round the scores as trec_eval 9 does."""
    return {topic: {item: float(np.float32(score)) for item, score in items.items()} for topic, items in run.items()}


def ascending(run: Mapping[str, float], judged: Mapping[str, int]) -> Ranking:
    """Rank ties in the order of the ids, as our own default and the Python code of ir_measures do."""
    order = sorted(run, key=lambda item: (-run[item], item))
    return Ranking([judged.get(item) for item in order], [gain for item, gain in judged.items() if item not in run])


def lists_of(run: Runs, judgements: Judgements, rank: Rank = oracles.ranking_of) -> Lists:
    """Join with the judgements; a topic that the run does not have has an empty list."""
    return Lists.of([rank(run.get(topic, {}), judged) for topic, judged in judgements.items()])


def by_ir_measures(names: Iterable[str], run: Runs, judgements: Judgements) -> dict[str, dict[str, float]]:
    """Values by name and topic; measures with other gains in calls of their own.

    In one call, nDCG may take the gains of another measure: `test_its_ndcg_may_take_the_gains_of_another_measure`.
    """
    asked = {ir_measures.parse_measure(name): name for name in names}
    values: dict[str, dict[str, float]] = {name: {} for name in asked.values()}
    by_gains: dict[str, list[Measure]] = {}
    for measure in asked:
        by_gains.setdefault(str(measure.params.get("gains")), []).append(measure)
    for measures in by_gains.values():
        for metric in ir_measures.iter_calc(measures, judgements, run):
            values[asked[metric.measure]][metric.query_id] = metric.value
    return values


def ours(name: str, lists: Lists) -> np.ndarray:
    """Values with the preset, those that are undefined as its population has them."""
    asked = MeasureSet.parse([name], defaults=options_of("ir_measures"))
    return np.nan_to_num(asked.score(lists)[asked.columns[0]][:, 0], nan=asked.measures[0].without_relevant)


def assert_same(
    names: Mapping[str, str], run: Runs, judgements: Judgements, lists: Lists, *, atol: float = 1e-9
) -> None:
    """Compare topic by topic."""
    theirs = by_ir_measures(names.values(), run, judgements)
    for our, their in names.items():
        expected = [theirs[their][topic] for topic in judgements]
        np.testing.assert_allclose(ours(our, lists), expected, rtol=0, atol=atol, err_msg=our)


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("seed", [51, 52])
def test_values_are_those_of_ir_measures_by_trec_eval(seed: int, ids: str) -> None:
    run, judgements = topics(seed, IDS[ids])
    assert judgements.keys() - run.keys()
    assert run.keys() - judgements.keys()
    lists = lists_of(single(run), judgements)
    assert_same(BY_TREC_EVAL, run, judgements, lists)


def test_judged_only_leaves_the_others_out_of_the_lists() -> None:
    run, judgements = topics(53)
    judged = {
        topic: {item: score for item, score in items.items() if judgements.get(topic, {}).get(item, -1) >= 0}
        for topic, items in single(run).items()
    }
    names = {name: f"{name.partition('@')[0]}(judged_only=True)@5" for name in ("P@5", "AP@5", "nDCG@5", "Success@5")}
    assert_same(names, run, judgements, lists_of(judged, judgements))


WITH_JUDGED_ONLY: Final = (
    *(f"{name}(judged_only=True)@{k}" for name in (*BINARY, "nDCG") for k in KS),
    *(f"{name}(rel=2,judged_only=True)@5" for name in BINARY),
    *(f"{name}(judged_only=True)" for name in ("AP", "RR", "nDCG", "Rprec", "SetP", "SetF")),
    *(f"IPrec(recall={level},judged_only=True)" for level in (0.1, 0.5)),
    "nDCG(gains={1:2,2:3,3:10},judged_only=True)@5",
)


@pytest.mark.parametrize("seed", [57, 58])
def test_option_judged_only_is_theirs(seed: int) -> None:
    """Where no document is left they divide 0 by 0 in some, which is 0 here."""
    run, judgements = topics(seed)
    lists = lists_of(single(run), judgements)
    theirs = by_ir_measures(WITH_JUDGED_ONLY, run, judgements)
    for name in WITH_JUDGED_ONLY:
        expected = np.nan_to_num([theirs[name][topic] for topic in judgements])
        np.testing.assert_allclose(ours(name, lists), expected, rtol=0, atol=1e-9, err_msg=name)


def test_values_are_those_of_its_own_code() -> None:
    """Two providers in Python, which take ties by ascending ids. Its Judged counts a negative gain, ours does not."""
    run, judgements = topics(54)
    lists = lists_of(run, judgements, ascending)
    reciprocal, judged = [f"RR(rel={rel})@{k}" for rel in (1, 2) for k in KS], [f"Judged@{k}" for k in KS]
    assert_same(dict(zip(reciprocal, reciprocal, strict=True)), run, judgements, lists)
    not_negative = {
        topic: {item: gain for item, gain in gains.items() if gain >= 0} for topic, gains in judgements.items()
    }
    assert all(not_negative.values())
    assert not_negative != judgements
    assert_same(dict(zip(judged, judged, strict=True)), run, not_negative, lists)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
def test_values_are_those_of_gdeval_to_its_five_decimals() -> None:
    run, judgements = topics(55, IDS["integers"])
    places = {topic: str(place) for place, topic in enumerate(sorted({*run, *judgements}), 1)}
    run = {places[topic]: items for topic, items in run.items()}
    judgements = {places[topic]: items for topic, items in judgements.items()}
    lists = lists_of(run, judgements)
    names = [f"{name}@{k}" for name in ("nDCG(dcg='exp-log2')", "ERR") for k in (5, 20)]
    assert_same(dict(zip(names, names, strict=True)), run, judgements, lists, atol=5.1e-6)


def test_mean_is_over_all_judged_users() -> None:
    """As the population `judged`: without a list 0, without a relevant item 0, and extra users do not count."""
    run, judgements = topics(56)
    names = ["P@5", "AP", "nDCG@10", "RR"]
    lists = lists_of(single(run), judgements)
    theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in names], judgements, run)
    for measure, value in theirs.items():
        assert fmean(ours(str(measure), lists)) == pytest.approx(value, rel=0, abs=1e-12)


def test_beta_of_its_set_f_is_the_square_of_ours() -> None:
    """A defect: 4 is handed to trec_eval as it is, which takes it for the square. P = 1/2 and R = 1 show it."""
    run, judgements = {"u": {"a": 2.0, "b": 1.0}}, {"u": {"a": 1}}
    theirs = by_ir_measures(["SetF(beta=4.0)"], run, judgements)["SetF(beta=4.0)"]["u"]
    precision, recall = 1 / 2, 1

    def f(squared_beta: float) -> float:
        return (1 + squared_beta) * precision * recall / (squared_beta * precision + recall)

    assert theirs == pytest.approx(f(4), rel=0, abs=1e-9)
    assert ours("SetF(beta=4)", Lists.of([Ranking([1, None])])) == pytest.approx([f(16)], rel=0, abs=1e-12)


def test_its_ndcg_may_take_the_gains_of_another_measure() -> None:
    """A defect: nDCG without gains is computed together with the measure that comes first, and with its gains.

    The measures of a call are a set, so which one comes first changes from process to process. Its provider for
    trec_eval takes a sequence, which shows both orders.
    """
    run, judgements = {"u": {"a": 2.0, "b": 1.0}}, {"u": {"a": 1, "b": 3}}
    plain, with_gains = (ir_measures.parse_measure(name) for name in ("nDCG@1", "nDCG(gains={1:2,3:10})@1"))

    def of_plain(*measures: Measure) -> float:
        rows = ir_measures.pytrec_eval.evaluator(measures, judgements).iter_calc(run)
        return next(row.value for row in rows if row.measure == plain)

    assert of_plain(plain, with_gains) == pytest.approx(1 / 3)
    assert of_plain(with_gains, plain) == pytest.approx(2 / 10)


def test_it_breaks_a_tie_one_way_or_the_other_by_the_measure() -> None:
    """A defect: its RR is trec_eval's, by descending ids, and its RR@2 that of MS MARCO, by ascending ids."""
    values = by_ir_measures(["RR", "RR@2"], {"u": {"a": 1.0, "b": 1.0}}, {"u": {"a": 1}})
    assert values == {"RR": {"u": 1 / 2}, "RR@2": {"u": 1.0}}
