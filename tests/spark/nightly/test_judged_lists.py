"""Pooled nights whose column of lists only Spark reads."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli import rankeval
from tests.support.nights import FIRST
from tests.unit.night.test_judged_lists import means, published_night

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("policies", [{}, {"attribution": "all", "attribution_window": "1d"}])
def test_pooled_nights_read_no_list_whatever_the_column_holds(tmp_path: Path, policies: dict[str, Any]) -> None:
    """The log has no such column, and a judgement of another type."""
    published = published_night(tmp_path)
    published.change(policies={"lists": "pooled", **policies}, inputs__recommendations__columns={"list_id": "none"})
    seen = {"user_id": "ann", "visit": 1.5, "day": FIRST, "interacted_at": dt.datetime(2026, 1, 1, 1)}
    published.write("held_out", [{**seen, "item_id": "b"}, {**seen, "item_id": "c", "visit": None}])
    shown = {"user_id": "ann", "day": FIRST, "recommended_at": dt.datetime(2026, 1, 1), "model_id": "als"}
    published.write("recommendations", [{**shown, "item_id": item, "score": 1.0} for item in "bc"])
    assert rankeval("validate", published.config, "--date", FIRST).code == 0
    done = rankeval("run", published.config, "--date", FIRST)
    assert done.code == 0, done.err
    assert means(published) == {("als", "RR"): 1.0, ("als", "R"): 1.0}
