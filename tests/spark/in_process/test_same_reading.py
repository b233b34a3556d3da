"""What only reads says the same of a root that this process reads and of one that only Spark can read."""

from __future__ import annotations

import shutil
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from rankeval_spark.apps.published.comparison import ComparisonSelection, compare_models, compare_nights
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.config import load_config
from rankeval_spark.results.readers import is_native
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.published import Root

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.published import Frames

THEN, NOW = date(2026, 1, 1), date(2026, 1, 2)
ITEMS: Final = "abcdefgh"
N_USERS: Final = 60
MEASURES: Final = ("nDCG", "AP", "P(agg='micro')", "RR(rel=2)")


def frames_of(seed: int) -> Frames:
    """Make lists of random items, one or two of a user; some users are there on one of the nights only."""
    rng = np.random.default_rng(seed)
    lists, judged, segments = [], [], []
    for user in range(seed, N_USERS + seed):
        name = f"ü{user}"
        for model in ("als", "pop", "knn"):
            for number in range(rng.integers(0, 3)):
                for score, item in enumerate(rng.permutation(list(ITEMS))[:5]):
                    lists.append(
                        {"model_id": model, "user_id": name, "list_id": f"l{number}", "item_id": item, "score": -score}
                    )
        judged += [
            {"user_id": name, "item_id": item, "gain": float(rng.integers(0, 4))}
            for item in rng.permutation(list(ITEMS))[:3]
        ]
        if user % 7:
            country = [None, "AT", "DE"][rng.integers(0, 3)]
            segments.append({"user_id": name, "country": country, "device": "tv" if user % 2 else "web"})
    rows = {"recommendations": lists, "held_out": judged, "segments": segments}
    return {name: nights.arrow_of(each) for name, each in rows.items()}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Publish two nights, and copy the root to a place whose name the library for Delta cannot open."""
    folder: Path = tmp_path_factory.mktemp("reading")
    made = nights.workspace(
        folder / "workspace",
        measures=list(MEASURES),
        cutoffs=[1, 3],
        slices=["country", ["country", "device"]],
        slicing__min_slice_size=5,
        policies={"unit": "list"},
        comparisons={"baseline": "pop", "tests": ["t", "sign"]},
        gates=[{"measure": "nDCG@3", "margin": 0.5, "against": "previous", "slice": "country"}],
    )
    root = Root(made.root, load_config(made.config))
    root.publish(THEN, frames_of(1), run_id="then")
    root.publish(NOW, frames_of(5), run_id="now")
    odd = shutil.copytree(made.root, folder / "results [x]")
    assert (is_native(made.root), is_native(str(odd))) == (True, False)
    return made.root, str(odd)


def assert_same_rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    key = ("model_id", "slice", "slice_values", "measure", "k")
    found, expected = (sorted(rows, key=lambda row: [str(row[name]) for name in key]) for rows in (found, expected))
    assert [row.keys() for row in found] == [row.keys() for row in expected]
    for one, other in zip(found, expected, strict=True):
        numbers = [name for name, value in other.items() if isinstance(value, float)]
        assert {name: one[name] for name in one if name not in numbers} == {
            name: other[name] for name in other if name not in numbers
        }
        np.testing.assert_allclose(
            [one[name] for name in numbers], [other[name] for name in numbers], rtol=0, atol=1e-12
        )


@pytest.mark.parametrize(
    "wanted",
    [
        ComparisonSelection(slices=None),
        ComparisonSelection(models=["als", "knn"], measures=["nDCG"], ks=[3], slices=["country"]),
    ],
)
def test_nights_and_models_are_compared_alike(
    spark: SparkSession, roots: tuple[str, str], wanted: ComparisonSelection
) -> None:
    found = {}
    for root, session in zip(roots, (None, spark), strict=True):
        then, now = published_nights(session, root)
        found[root] = (
            compare_nights(session, root, now, then, wanted),
            compare_models(session, root, now, "knn", wanted),
        )
    for here, there in zip(*found.values(), strict=True):
        assert here.rows
        assert here.notes == there.notes
        assert_same_rows(here.rows, there.rows)


@pytest.mark.parametrize(
    "command",
    [
        *(("show", "--slice", "any"), ("show", "--gaps"), ("show", "--comparisons", "--slice", "any")),
        *(("show", "--measure", "GroupGap(nDCG)", "--slice", "country"), ("compare", "--against", "pop")),
    ],
)
def test_tables_are_shown_alike(spark: SparkSession, roots: tuple[str, str], command: tuple[str, ...]) -> None:  # noqa: ARG001 - is active
    name, *options = command
    here, there = (rankeval(name, root, *options, "--json") for root in roots)
    assert here.code == 0, here.err
    assert len(here.out) > len("[]\n")
    assert (here.out, here.err) == (there.out, there.err)


def test_nights_are_judged_alike(spark: SparkSession, roots: tuple[str, str]) -> None:  # noqa: ARG001 - is active
    here, there = (rankeval("gate", root, "--date", NOW) for root in roots)
    assert "country = AT" in here.out
    assert (here.code, here.out, here.err) == (there.code, there.out, there.err)
