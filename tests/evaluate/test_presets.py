"""Presets and other tools: the same numbers, and where they differ."""

from __future__ import annotations

import random
import re
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
import ranx
from ir_measures import RR, P, Qrel, ScoredDoc

from rankeval_spark import evaluate
from rankeval_spark.config.presets import presets
from rankeval_spark.errors import RefusedCallError
from rankeval_spark.measures import registry
from tests.evaluate.test_oracles import Nested, assert_close, evaluated, values_of
from tests.support import other_tools
from tests.support.arrow_frames import by, dicts, table, where
from tests.support.other_tools import MEASURES, MISSING, NAN, NOTHING_RELEVANT, REPEATED, TIES, cell
from tests.support.sections import measured, sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ir_measures.measures import Measure


# ---- each preset against the tool whose numbers it is to meet, the whole way ---------------------------------------


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


@pytest.mark.parametrize("preset", presets())
def test_each_preset_takes_scores_or_ranks_or_both(preset: str) -> None:
    """Without ties, a tool has one number, whichever way the order is written; users stand on one side only too."""
    run, qrel = random_data(7, with_ties=False)
    rows = [
        (user, item, items[item], rank) for user, items in run.items() for rank, item in enumerate(best_first(items), 1)
    ]
    held_out = table(
        "user_id item_id gain", *((user, i, float(g)) for user, own in qrel.items() for i, g in own.items())
    )
    both = table("user_id item_id score rank", *rows)
    asked: dict[str, Any] = {"measures": ["nDCG@3", "AP@3", "P@3", "R@3", "RR", "Success@1"], "preset": preset}
    found = evaluate(both, held_out, **asked).metrics.to_pylist()
    assert set(run) - set(qrel)
    assert all(0 < row["value"] < 1 for row in found)
    for without in ("score", "rank"):
        assert evaluate(both.drop_columns(without), held_out, **asked).metrics.to_pylist() == found


def test_rectools_orders_scores_without_ranks_by_their_size() -> None:
    """Ranks are made of scores there before anything is measured, so that scores of a log without ranks order it."""
    log = table("user_id item_id score", ("u", "x", 9.0), ("u", "b", 1.0), ("u", "a", 1.0), ("v", "a", 1.0))
    held_out = table("user_id item_id", ("u", "a"), ("u", "b"), ("w", "a"))
    result = evaluate(log, held_out, measures=["RR", "P@2", "nDCG@3"], preset="rectools")
    worst = {"w": 0.0}
    assert values_of(result) == {
        "RR": {"u": 1 / 2, **worst},
        "P@2": {"u": 1 / 2, **worst},
        "nDCG(gains='binary',ideal='k_ones')@3": {
            "u": pytest.approx((1 / np.log2(3) + 1 / 2) / (1 + 1 / np.log2(3) + 1 / 2), rel=0, abs=1e-12),
            **worst,
        },
    }


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


# ---- what ``docs/other-tools.md`` says of awkward inputs: of this project, ranx, ir_measures and pytrec_eval -------


Rows: TypeAlias = "list[tuple[str, str, float]]"
"""User, item, and score or gain."""

OURS: Final = "this project"
DUPLICATES: Final = [("u", "a", 3.0), ("u", "a", 2.0), ("u", "b", 1.0)]
BOTH: Final = [("u", "a", 1.0), ("u", "b", 1.0)]
OF_TWO: Final = [("u", "a", 1.0), ("v", "a", 1.0)]
NOTHING: Final = [("u", "a", 1.0), ("v", "a", 0.0)]

RANX: Final = (
    *("hits", "hit_rate", "precision", "recall", "f1", "r-precision", "mrr", "map"),
    *("dcg", "dcg_burges", "ndcg", "ndcg_burges", "bpref", "rbp.50"),
)
"""Every name that ``ranx.evaluate`` takes."""

pytestmark = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")


def ours(measure: str, log: Rows, held_out: Rows, **options: Any) -> float:  # noqa: ANN401 - of evaluate
    found = measured(
        table("user_id item_id score", *log), table("user_id item_id gain", *held_out), measures=[measure], **options
    )
    (row,) = dicts(found.metrics)
    return float(row["value"])


def of_ir_measures(measure: Measure, log: Rows, held_out: Rows) -> float:
    run, qrels = [ScoredDoc(*row) for row in log], [Qrel(user, item, int(gain)) for user, item, gain in held_out]
    return float(ir_measures.calc_aggregate([measure], qrels, run)[measure])


def of_pytrec_eval(measure: str, log: Rows, held_out: Rows) -> float:
    qrels, run = nested(held_out), nested(log)
    judged = {user: {item: int(gain) for item, gain in gains.items()} for user, gains in qrels.items()}
    found = pytrec_eval.RelevanceEvaluator(judged, {measure}).evaluate(run)
    return float(np.mean([values[measure] for values in found.values()]))


def of_ranx(measure: str, log: Rows, held_out: Rows, **options: Any) -> float:  # noqa: ANN401 - of ranx
    qrels = ranx.Qrels({user: {i: int(gain) for i, gain in own.items()} for user, own in nested(held_out).items()})
    run = ranx.Run.from_df(pd.DataFrame(log, columns=["q_id", "doc_id", "score"]))
    return float(ranx.evaluate(qrels, run, measure, **sections(**options)))


def nested(rows: Rows) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for user, item, value in rows:
        found.setdefault(user, {})[item] = value
    return found


RECIPROCAL_RANKS: Final[Mapping[str, Any]] = {
    OURS: lambda log, held_out: ours("RR", log, held_out),
    "ir_measures": lambda log, held_out: of_ir_measures(RR, log, held_out),
    "pytrec_eval": lambda log, held_out: of_pytrec_eval("recip_rank", log, held_out),
    "ranx": lambda log, held_out: of_ranx("mrr", log, held_out),
}


@pytest.mark.parametrize("tool", [OURS, "ir_measures", "pytrec_eval"])  # compiled, ranx sorts otherwise than here
def test_order_of_equal_scores(tool: str) -> None:
    def reciprocal_rank(relevant: str, items: Sequence[str]) -> float:
        value: float = RECIPROCAL_RANKS[tool]([("u", item, 1.0) for item in items], [("u", relevant, 1.0)])
        return value

    assert cell(TIES, tool).partition(";")[0] == other_tools.order_of_ties(reciprocal_rank)


def test_ir_measures_orders_equal_scores_otherwise_for_its_own_measures() -> None:
    log = [("u", "a", 1.0), ("u", "b", 1.0)]
    assert of_ir_measures(RR, log, [("u", "a", 1.0)]) == 1 / 2
    assert of_ir_measures(RR @ 2, log, [("u", "a", 1.0)]) == 1
    assert cell(TIES, "ir_measures").endswith("RR@k: lower id first")


def test_item_twice_in_a_list() -> None:
    assert cell(REPEATED, OURS).partition(";")[0] == other_tools.times_counted(ours("P@3", DUPLICATES, BOTH))
    assert cell(REPEATED, "ranx") == other_tools.times_counted(of_ranx("precision@3", DUPLICATES, BOTH))
    assert cell(REPEATED, "ir_measures") == other_tools.times_counted(of_ir_measures(P @ 3, DUPLICATES, BOTH))
    assert cell(REPEATED, "pytrec_eval") == "a dictionary cannot hold it"
    with pytest.raises(RefusedCallError, match=r"found item .* occurs twice in a list of user "):
        ours("P@3", DUPLICATES, BOTH, duplicates="error")


def test_the_last_score_of_a_repeated_item_counts_in_ranx_and_ir_measures() -> None:
    """The better one comes last or first; b lies between. The page says so below the table."""
    for scores, place_of_b in (((1.0, 3.0), 2), ((3.0, 1.0), 1)):
        log = [("u", "a", scores[0]), ("u", "a", scores[1]), ("u", "b", 2.0)]
        assert of_ir_measures(RR, log, [("u", "b", 1.0)]) == 1 / place_of_b
        assert of_ranx("mrr", log, [("u", "b", 1.0)]) == 1 / place_of_b
        assert ours("RR", log, [("u", "b", 1.0)]) == 1 / 2


def test_judged_user_without_a_list() -> None:
    log = [("u", "a", 1.0)]
    assert cell(MISSING, OURS).partition(";")[0] == other_tools.share_of_two(ours("RR", log, OF_TWO))
    assert cell(MISSING, "ir_measures") == other_tools.share_of_two(of_ir_measures(RR, log, OF_TWO))
    assert cell(MISSING, "pytrec_eval") == other_tools.share_of_two(of_pytrec_eval("recip_rank", log, OF_TWO))
    with pytest.raises(AssertionError, match="query ids do not match"):
        of_ranx("mrr", log, OF_TWO)
    comparable = other_tools.share_of_two(of_ranx("mrr", log, OF_TWO, make_comparable=True))
    assert cell(MISSING, "ranx") == f"refused; {comparable} with make_comparable"


@pytest.mark.parametrize("tool", list(RECIPROCAL_RANKS))
def test_user_with_nothing_relevant(tool: str) -> None:
    said = cell(NOTHING_RELEVANT, tool).partition(";")[0]
    assert said == other_tools.share_of_two(RECIPROCAL_RANKS[tool](OF_TWO, NOTHING))


@pytest.mark.parametrize("tool", [OURS, "ir_measures", "pytrec_eval"])
def test_score_that_is_nan(tool: str) -> None:
    def reciprocal_rank(relevant: str, scores: Mapping[str, float]) -> float:
        log = [("u", item, score) for item, score in scores.items()]
        value: float = RECIPROCAL_RANKS[tool](log, [("u", relevant, 1.0)])
        return value

    assert cell(NAN, tool).partition(",")[0] == other_tools.place_of_nan(reciprocal_rank)


def test_nan_is_counted_here() -> None:
    log = table("user_id item_id score", *(("u", item, score) for item, score in other_tools.SCORES.items()))
    checks = dicts(evaluate(log, table("user_id item_id", ("u", "a")), measures=["RR"]).checks)
    (counted,) = [row for row in checks if (row["input"], row["check"]) == ("recommendations", "invalid_scores")]
    assert (counted["count"], counted["share"]) == (1, 1 / 3)
    assert cell(NAN, OURS) == "left out, and counted in `checks`"


def test_times_are_those_of_the_benchmarks() -> None:
    text = " ".join((other_tools.PAGE.parents[1] / "benchmarks" / "README.md").read_text(encoding="utf-8").split())
    (sentence,) = re.findall(r"Other libraries at 10 million rows[^:]*: .*? times\.", text)
    for tool in ("MLlib", "recommenders", "RePlay on Spark", "RePlay on polars", "DuckDB's SQL by hand"):
        times = cell(tool, "times as long")
        assert re.search(rf"{tool} (takes )?{re.escape(times)}\b", sentence), (tool, times, sentence)


def test_names_of_measures() -> None:
    assert int(cell(MEASURES, OURS)) == len(registry.names()), "write the number of measures in docs/other-tools.md"
    assert int(cell(MEASURES, "ir_measures")) == len(set(map(str, ir_measures.measures.registry.values())))
    judged = [("u", "a", 1.0), ("u", "b", 0.0)]
    assert all(of_ranx(name, BOTH, judged) >= 0 for name in RANX)
    assert int(cell(MEASURES, "ranx")) == len(RANX)
    with pytest.raises(ValueError, match="not supported"):
        of_ranx("err", OF_TWO, OF_TWO)


def test_what_ranx_has_besides() -> None:
    """Paired tests without a correction over measures, fusion of runs, a table for a paper."""
    qrels = ranx.Qrels({f"u{number}": {"a": 1} for number in range(9)})
    runs = [
        ranx.Run({f"u{number}": {"a": 1.0, "b": 0.5 + number % step} for number in range(9)}, name=name)
        for step, name in ((3, "m"), (2, "n"))
    ]
    for test in ("student", "fisher", "tukey"):
        report = ranx.compare(qrels, runs, ["mrr"], stat_test=test)
        assert report.to_latex()
    assert ranx.fuse(runs, method="rrf").keys() == runs[0].keys()
