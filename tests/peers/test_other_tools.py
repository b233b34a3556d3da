"""What ``docs/other-tools.md`` says of RecTools, found out by running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from rectools import metrics, model_selection, visuals

from tests.support import other_tools
from tests.support.other_tools import MEASURES, MISSING, NAN, NOTHING_RELEVANT, REPEATED, TIES, cell

if TYPE_CHECKING:
    from collections.abc import Sequence

RECTOOLS = "RecTools"


def evaluated(measure: Any, reco: Sequence[tuple[str, str, int]], relevant: Sequence[tuple[str, str]]) -> float:  # noqa: ANN401 - of RecTools
    lists = pd.DataFrame(reco, columns=["user_id", "item_id", "rank"])
    return float(measure.calc(lists, pd.DataFrame(relevant, columns=["user_id", "item_id"])))


def test_it_takes_ranks_and_no_scores() -> None:
    scores = pd.DataFrame([("u", "a", 1.0)], columns=["user_id", "item_id", "score"])
    with pytest.raises(KeyError, match="rank"):
        metrics.MRR(1).calc(scores, pd.DataFrame([("u", "a")], columns=["user_id", "item_id"]))
    assert cell(TIES, RECTOOLS) == cell(NAN, RECTOOLS) == "takes ranks"


def test_item_twice_in_a_list() -> None:
    reco = [("u", "a", 1), ("u", "a", 2), ("u", "b", 3)]
    value = evaluated(metrics.Precision(3), reco, [("u", "a"), ("u", "b")])
    assert cell(REPEATED, RECTOOLS) == f"{other_tools.times_counted(value)}; UnrepeatedReco measures it"
    lists = pd.DataFrame(reco, columns=["user_id", "item_id", "rank"])
    assert metrics.UnrepeatedReco(3).calc(lists) == 0  # the share of users without a repeated item


def test_users_on_one_side_only() -> None:
    without_list = evaluated(metrics.MRR(1), [("u", "a", 1)], [("u", "a"), ("v", "a")])
    assert cell(MISSING, RECTOOLS) == other_tools.share_of_two(without_list)
    without_truth = evaluated(metrics.MRR(1), [("u", "a", 1), ("v", "a", 1)], [("u", "a")])
    assert cell(NOTHING_RELEVANT, RECTOOLS) == other_tools.share_of_two(without_truth)


def test_names_of_measures() -> None:
    helpers = ("calc", "Calculator", "Debias", "debias")
    names = [name for name in metrics.__all__ if not any(part in name for part in helpers)]
    assert int(cell(MEASURES, RECTOOLS)) == len(names)


def test_what_it_has_besides() -> None:
    assert {"cross_validate", "TimeRangeSplitter"} <= set(model_selection.__all__)
    assert "MetricsApp" in visuals.__all__
