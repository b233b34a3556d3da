"""A night whose measures read the training interactions and the catalogue."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.arrow_frames import by, tuples, where
from tests.support.cli import rankeval
from tests.support.frames import after_run
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

TAIL: Final = "Success(group='tail')"
TRAIN: Final = ("ann d 2025-12-31T23:59:59", "bob c 2025-12-01", "kim a 2025-12-02", "eve a 2026-01-01T00:00:00")
ITEMS: Final = {"a": date(2025, 12, 31), "b": date(2025, 12, 2), "c": date(2026, 1, 1), "d": date(2025, 1, 1)}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Make a workspace with both inputs, which asks for measures that read them."""
    made = nights.workspace(
        tmp_path / "workspace", format_=nights.PARQUET, measures=["MIUF", "Freshness", "RR", TAIL], slices=["tier"]
    )
    made.write(
        "train",
        [dict(zip(("user_id", "item_id", "interacted_at"), row.split(), strict=True)) for row in TRAIN],
        nights.PARQUET,
    )
    made.write("items", [{"item_id": item, "released": day} for item, day in ITEMS.items()], nights.PARQUET)
    made.change(
        inputs__train={"format": nights.PARQUET, "path": "inputs/train"},
        inputs__items={"format": nights.PARQUET, "path": "inputs/items", "columns": {"published_at": "released"}},
        slicing__bands={"tier": {"of": "train", "edges": [2], "labels": ["new", "known"]}},
        slicing__item_slices=["head", "tail"],
        checks__seen_in_train={"warn": 0},
        slicing__min_slice_size=1,
    )
    return made


@pytest.mark.usefixtures("spark")
def test_night_publishes_measures_of_items_and_keeps_their_facts_to_itself(workspace: Workspace) -> None:
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 0, done.err
    results = Results(workspace.root)
    of_als = results.user_metrics(date=FIRST, evaluation="nightly", model_id="als", k=2)
    # 2 of 4 users have a, one each c and d; b, which none has, counts as if one had it.
    assert by(of_als, "user_id", value="miuf") == {
        "ann": pytest.approx((1 + 2) / 2, rel=0, abs=1e-12),
        "bob": pytest.approx((2 + 1) / 2, rel=0, abs=1e-12),
        "eve": pytest.approx((2 + 2) / 2, rel=0, abs=1e-12),
        "kim": None,
        "ida": None,
    }
    assert by(of_als, "user_id", value="freshness") == {
        "ann": (1 + 30) / 2,
        "bob": (30 + 1) / 2,
        "eve": (0 + 365) / 2,
        "kim": None,
        "ida": None,
    }
    # b and e, which nobody has, are held out for eve and kim alone; of pop's lists, hers holds both.
    tail = "success_group_tail"
    assert by(of_als, "user_id", value=tail) == {"ann": None, "bob": None, "eve": 0, "kim": 0, "ida": None}
    of_pop = results.user_metrics(date=FIRST, evaluation="nightly", model_id="pop", k=2)
    assert by(of_pop, "user_id", value=tail)["eve"] == 1
    means = results.metrics(date=FIRST, evaluation="nightly", model_id="als", k=2, measure="MIUF")
    assert by(means, C.SLICE_VALUE, value="n_users") == {"": 3, "new": 3, "none": 0}
    of_ranks = results.metrics(date=FIRST, evaluation="nightly", model_id="als", k=2, slice="all")
    values = by(of_ranks, C.MEASURE, value=C.VALUE)
    apart = abs(values["RR(group='head')"] - values["RR(group='tail')"])
    of_groups = results.group_metrics(date=FIRST, evaluation="nightly", model_id="als", k=2, slice="all")
    assert by(of_groups, C.MEASURE, value=C.VALUE)["ItemMAD(RR)"] == pytest.approx(apart, rel=0, abs=1e-12)
    published = results.lists(date=FIRST, evaluation="nightly").drop_columns(list(C.RUN_KEY))
    assert published.column_names == [field.name for field in after_run(schemas.LISTS)]

    checks = results.checks(date=FIRST, evaluation="nightly")
    counts = by(checks, "input", "check", value="count")
    assert {key: counts[key] for key in counts if key[0] in {"train", "items"}} == {
        **{("train", "rows"): 4, ("train", "null_keys"): 0, ("items", "rows"): 4, ("items", "null_keys"): 0},
        **{("items", "duplicates"): 0, ("items", "invalid_facts"): 0, ("train", "bands.tier"): 0},
        **{("train", "extra_columns"): 0, ("items", "extra_columns"): 0},
        ("train", "train_after_cut"): 1,  # eve's a
    }
    assert counts["recommendations", "unknown_items"] == 1  # e
    seen = tuples(where(checks, check="seen_in_train"), "input", "count", "share", "verdict", "sample_keys")
    # Of the first two items of eight lists, the a's that popularity shows to eve and kim.
    assert seen == [("recommendations", 2, 2 / 16, "warn", ["pop eve", "pop kim"])]

    again = rankeval("score", workspace.root, "-m", "DCG@3")
    assert again.code == 4
    assert f"nightly, 2026-01-01: found MIUF, {TAIL}, " in again.message
    assert "which need train, items.published_at, evaluation_date" in again.message
    assert "run the date again with them" in again.message


def test_published_lists_do_not_know_their_items(published: Workspace) -> None:
    refused = rankeval("score", published.root, "-m", "APLT@2", "--date", FIRST, "--evaluation", "nightly")
    assert refused.code == 4
    assert "nightly, 2026-01-01: found APLT, which need train; expected measures of the published" in refused.message


@pytest.mark.usefixtures("spark")
def test_night_leaves_out_seen_items_and_unknown_items(workspace: Workspace) -> None:
    """Als shows eve an a, and pop shows her and kim one; pop's list for eve begins with e, which the items lack."""
    workspace.change(policies__seen_in_train="drop", policies__unknown_items="drop", measures=["RR", "NotInTrain"])
    workspace.change(slicing__bands={}, slices=[], slicing__item_slices=[], checks__unknown_rows={"warn": 0.5})
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 0, done.err
    results = Results(workspace.root)
    lists = results.lists(date=FIRST, evaluation="nightly")
    lengths = by(lists, C.MODEL_ID, C.USER_ID, value=C.N_RECOMMENDED)
    assert {key: n for key, n in lengths.items() if n not in {0, 3}} == {
        ("als", "eve"): 2,
        ("pop", "eve"): 1,
        ("pop", "kim"): 2,
    }
    ranks = by(lists, C.MODEL_ID, C.USER_ID, value=C.HIT_RANKS)
    assert (ranks["pop", "eve"], ranks["pop", "kim"]) == ([1], [1])  # b closes up to the first place
    unseen = results.user_values(date=FIRST, evaluation="nightly", measure="NotInTrain")
    assert set(unseen["value"].to_pylist()) - {None} == {1.0}
    checks = results.checks(date=FIRST, evaluation="nightly", input="recommendations").drop_columns(["severity"])
    found = {row["check"]: tuple(row.values())[-5:] for row in checks.to_pylist()}
    assert found["seen_in_train"] == (3, 3 / 24, 0.0, "warn", ["als eve  a", "pop kim  a"])
    assert found["unknown_rows"] == (1, 1 / 24, 0.5, "ok", ["e"])
    assert found["unknown_items"][:2] == (1, 1 / 5)
    (run,) = where(results.runs(date=FIRST, evaluation="nightly"), status="PUBLISHED").to_pylist()
    policies = dict(run["policies"])
    assert (policies["seen_in_train"], policies["unknown_items"]) == ("drop", "drop")


@pytest.mark.usefixtures("spark")
def test_vectors_of_several_lengths_fail_their_check_before_anything_is_scored(workspace: Workspace) -> None:
    lengths = {"a": 2, "b": 2, "c": 3, "d": 2}
    rows = [{"item_id": item, "released": day, "vector": [1.0] * lengths[item]} for item, day in ITEMS.items()]
    workspace.write("items", rows)
    workspace.change(measures=["RR", "ILD"], slicing__bands={}, slices=[], slicing__item_slices=[])
    workspace.change(policies__seen_in_train="drop", checks__seen_in_train={"error": 0})
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 3
    done.assert_readable()
    assert "items, vector_lengths: found 1 (25.00%), for example a: 2 numbers; c: 3 numbers; expected" in done.message
    assert "give each item a vector of one length" in done.message
    assert "recommendations, seen_in_train: found 3 (12.50%), for example als eve a; pop kim a" in done.message
    (run,) = where(Results(workspace.root).runs(date=FIRST), status="FAILED").to_pylist()
    assert run["error"]["stage"] == "check"

    workspace.change(measures=["RR"], checks__seen_in_train={})  # nobody reads the vectors then
    assert rankeval("run", workspace.config, "--date", FIRST).code == 0


def test_repeated_item_in_the_catalogue_fails_the_night_with_a_readable_message(workspace: Workspace) -> None:
    workspace.write("items", [{"item_id": "a", "released": FIRST}, {"item_id": "a", "released": FIRST}])
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 3
    done.assert_readable()
    assert "items, duplicates: found 1 (50.00%), for example a; expected each item once" in done.message
    assert "keep one row an item in the catalogue" in done.message
