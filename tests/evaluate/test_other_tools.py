"""What ``docs/other-tools.md`` says of awkward inputs: of this project, ranx, ir_measures and pytrec_eval.

MLlib is in ``tests/spark/notebook``, RecTools in ``tests/peers``, recommenders and RePlay in ``tests/peers_timed``, and
so is ranx where it matters that it is compiled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
import ranx
from ir_measures import RR, P, Qrel, ScoredDoc

from rankeval_spark import evaluate
from rankeval_spark.errors import RefusedCallError
from rankeval_spark.measures import registry
from tests.support import other_tools
from tests.support.arrow_frames import dicts, table
from tests.support.other_tools import MEASURES, MISSING, NAN, NOTHING_RELEVANT, REPEATED, TIES, cell
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ir_measures.measures import Measure

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
    found = evaluate(
        table("user_id item_id score", *log),
        table("user_id item_id gain", *held_out),
        **sections(measures=[measure], **options),
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
    assert int(cell(MEASURES, OURS)) == len(registry.names())
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
