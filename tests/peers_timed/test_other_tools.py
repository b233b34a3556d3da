"""What ``docs/other-tools.md`` says of recommenders, RePlay and the order of ranx, found out by running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pandas as pd
import polars as pl
import pytest
import ranx
import replay.metrics
from recommenders.evaluation import python_evaluation
from replay.metrics import MRR, ConfidenceInterval, OfflineMetrics, Precision

from tests.support import other_tools
from tests.support.other_tools import MEASURES, MISSING, NAN, NOTHING_RELEVANT, REPEATED, TIES, cell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Rows: TypeAlias = "list[tuple[str, str, float]]"
"""User, item, and score or gain."""

DUPLICATES: Final = [("u", "a", 3.0), ("u", "a", 2.0), ("u", "b", 1.0)]
BOTH: Final = [("u", "a", 1.0), ("u", "b", 1.0)]
OF_ONE: Final = [("u", "a", 1.0)]
OF_TWO: Final = [("u", "a", 1.0), ("v", "a", 1.0)]

RECOMMENDERS: Final = (
    *("rmse", "mae", "rsquared", "exp_var", "auc", "logloss"),
    *("precision_at_k", "recall_at_k", "r_precision_at_k", "ndcg_at_k", "map", "map_at_k"),
    *("catalog_coverage", "distributional_coverage", "diversity", "novelty", "serendipity"),
)

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["user", "item", "rating"])


def of_recommenders(measure: str, log: Rows, relevant: Rows, *, k: int) -> float:
    columns = {"col_user": "user", "col_item": "item", "col_rating": "rating", "col_prediction": "rating"}
    compute = getattr(python_evaluation, measure)
    return float(compute(frame(relevant), frame(log), k=k, relevancy_method="top_k", **columns))


def of_replay(measure: Any, log: Rows, relevant: Rows, convert: Callable[[pd.DataFrame], Any] = pd.DataFrame) -> float:  # noqa: ANN401 - of RePlay, a frame of any library
    offline = OfflineMetrics([measure], query_column="user", item_column="item", rating_column="rating")
    (value,) = offline(convert(frame(log)), convert(frame(relevant)[["user", "item"]])).values()
    return float(value)


def reciprocal_rank(tool: str, log: Rows, relevant: str) -> float:
    """AP of one relevant item is the reciprocal of its rank, which recommenders has no measure of."""
    judged = [("u", relevant, 1.0)]
    if tool == "ranx":
        run = ranx.Run.from_df(frame(log), q_id_col="user", doc_id_col="item", score_col="rating")
        return float(ranx.evaluate(ranx.Qrels({"u": {relevant: 1}}), run, "mrr"))
    if tool == "recommenders":
        return of_recommenders("map_at_k", log, judged, k=len(log))
    return of_replay(MRR(len(log)), log, judged, pl.from_pandas if tool == "polars" else pd.DataFrame)


@pytest.mark.parametrize("tool", ["recommenders", "RePlay", "ranx"])
def test_order_of_equal_scores(tool: str) -> None:
    def of(relevant: str, items: Sequence[str]) -> float:
        return reciprocal_rank(tool, [("u", item, 1.0) for item in items], relevant)

    assert cell(TIES, tool) == other_tools.order_of_ties(of)


def test_item_twice_in_a_list() -> None:
    twice = other_tools.times_counted(of_recommenders("precision_at_k", DUPLICATES, BOTH, k=3))
    recall = of_recommenders("recall_at_k", DUPLICATES, BOTH, k=3)
    assert cell(REPEATED, "recommenders") == f"{twice}; recall up to {recall:g}"
    with pytest.warns(Warning, match="contain duplicated users and items"):
        once = other_tools.times_counted(of_replay(Precision(3), DUPLICATES, BOTH))
    assert cell(REPEATED, "RePlay") == f"{once}, with a warning"


def test_users_on_one_side_only() -> None:
    for row, log, relevant in ((MISSING, OF_ONE, OF_TWO), (NOTHING_RELEVANT, OF_TWO, OF_ONE)):
        of_first = of_recommenders("precision_at_k", log, relevant, k=1)
        assert cell(row, "recommenders") == other_tools.share_of_two(of_first)
        assert cell(row, "RePlay") == other_tools.share_of_two(of_replay(MRR(1), log, relevant))


def place_of_nan(tool: str) -> str:
    def of(relevant: str, scores: Mapping[str, float]) -> float:
        return reciprocal_rank(tool, [("u", item, score) for item, score in scores.items()], relevant)

    return other_tools.place_of_nan(of)


def test_score_that_is_nan() -> None:
    for tool in ("recommenders", "ranx"):
        assert cell(NAN, tool) == place_of_nan(tool)
    assert cell(NAN, "RePlay") == f"{place_of_nan('RePlay')} with pandas, {place_of_nan('polars')} with polars"


def test_names_of_measures() -> None:
    assert all(callable(getattr(python_evaluation, name)) for name in RECOMMENDERS)
    assert int(cell(MEASURES, "recommenders")) == len(RECOMMENDERS)
    classes = [one for one in vars(replay.metrics).values() if isinstance(one, type)]
    measures = [one for one in classes if issubclass(one, replay.metrics.Metric) and one is not replay.metrics.Metric]
    assert int(cell(MEASURES, "RePlay")) == len(measures)


def test_replay_has_an_interval_of_means() -> None:
    half_width = of_replay(Precision(1, mode=ConfidenceInterval(0.95)), OF_TWO, OF_TWO)
    assert half_width == 0
    mixed = of_replay(Precision(1, mode=ConfidenceInterval(0.95)), [("u", "a", 1.0), ("v", "b", 1.0)], OF_TWO)
    assert mixed == pytest.approx(1.96 * (1 / 2) ** 0.5 / 2**0.5, rel=0, abs=1e-3)


def test_fusion_of_ranx_has_as_many_methods_as_the_page_says() -> None:
    methods = [name for name in ranx.fusion.__all__ if not name.endswith("_train")]
    assert cell("fusion of runs", "ranx") == f"{len(methods)} methods"
