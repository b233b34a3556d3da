"""Published lists that keep the ranks of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.arrow_frames import by, tuples
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("spark")
def test_published_lists_hold_their_empty_ranks(tmp_path: Path) -> None:
    """A night that is scored again gives the numbers that it would have had."""
    made = nights.workspace(
        tmp_path,
        format_=nights.PARQUET,
        measures=["P@5"],
        policies={"rank_gaps": "keep"},
        cutoffs=[],
        slices=[],
        checks={"short_lists": {}},
    )
    log = [
        {"day": FIRST.isoformat(), "model_id": "als", "user_id": user, "item_id": item, "rank": rank}
        for user, items in {"ann": {"a": 2, "x": 5, "y": 6}, "bob": {"b": 1}}.items()
        for item, rank in items.items()
    ]
    made.write("recommendations", log)
    judged = [("ann", "a"), ("bob", "b")]
    held_out = [{"day": FIRST.isoformat(), "user_id": user, "item_id": item, "gain": 1.0} for user, item in judged]
    made.write("held_out", held_out)
    assert rankeval("run", made.config, "--date", FIRST).code == 0
    asked = ["P(denom='len')@5", "SufficientReco(kind='share')@5", "unj@5", "UserCoverage(min_items=2)@4"]

    done = rankeval("score", made.root, *(part for name in asked for part in ("-m", name)))

    assert done.code == 0, done.err
    results = Results(made.root)
    runs = by(results.lists(date=FIRST), C.USER_ID, value=C.EMPTY_RANKS)
    assert {user: [tuple(one.values()) for one in of_user] for user, of_user in runs.items()} == {
        "ann": [(1, 1), (3, 4)],
        "bob": [],
    }
    metrics = by(results.metrics(date=FIRST), C.MEASURE, value=C.VALUE)
    assert {name: metrics[name.rpartition("@")[0]] for name in asked} == {
        "P(denom='len')@5": (1 / 2 + 1) / 2,
        "SufficientReco(kind='share')@5": (2 / 5 + 1 / 5) / 2,
        "unj@5": (1 / 5 + 0) / 2,
        "UserCoverage(min_items=2)@4": 0,
    }
    assert tuples(results.checks(date=FIRST, check="short_lists"), "count", "share") == [(2, 1.0)]
