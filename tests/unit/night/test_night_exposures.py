"""A night with measures of all lists together: published to Delta, shown, scored again; refused without its inputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import schemas
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

ASKED = ["RR@2", "ItemCoverage@1", "CatalogCoverage@2", "Personalization@2"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a workspace with a catalogue of the items a to h."""
    made = nights.workspace(tmp_path / "workspace", format_=nights.PARQUET, measures=ASKED, cutoffs=[])
    made.write("items", [{"item_id": item} for item in "abcdefgh"], nights.PARQUET)
    made.change(inputs__items={"format": nights.PARQUET, "path": "inputs/items"})
    return made


def test_they_are_published_shown_and_kept_when_the_night_is_scored_again(
    spark: SparkSession, workspace: Workspace
) -> None:
    result = run_night(spark, load_config(workspace.config, ()), FIRST)

    published = Results(workspace.root)
    values = everyone_of(published)
    # als: ann a b c, bob b a d, eve c d a, zoe a b c, who has no judgement; pop: b a c, d a b, e a b, b a c.
    assert values["als", "ItemCoverage", 1] == (3, 4)
    assert values["pop", "ItemCoverage", 1] == (3, 4)
    assert values["als", "CatalogCoverage", 2] == (4 / 8, 4)
    assert values["als", "Personalization", 2] == (pytest.approx(1 - (2 + 0 + 2 + 0 + 2 + 0) / 6 / 2, abs=1e-12), 4)
    assert values["als", "RR", 2] == ((1 + 0 + 0 + 0) / 4, 4)
    assert result.n_rows["metrics"] == published.metrics().num_rows
    assert set(published.user_metrics().column_names) == {*schemas.USER_METRICS.field_names(), "rr"}
    assert set(published.user_values()["measure"].to_pylist()) == {"RR"}

    shown = rankeval("show", workspace.root, "--measure", "ItemCoverage", "--slice", "any", "--json")
    assert shown.code == 0, shown.err
    countries = {(row["model_id"], row["slice_value"]): row["value"] for row in json.loads(shown.out)}
    assert countries["als", "AT"] == len({"a", "b"})
    assert countries["als", "DE"] == 1

    scored = rankeval("score", workspace.root, "--measures", "P@1")
    assert scored.code == 0, scored.err
    after = everyone_of(published.refresh())
    assert {key: after[key] for key in values} == values
    assert {measure for _, measure, _ in after.keys() - values.keys()} == {"P"}

    refused = rankeval("score", workspace.root, "--measures", "ItemCoverage@2")
    assert refused.code == 2
    refused.assert_readable()
    assert "found ItemCoverage@2; expected measures that the published lists are enough for" in refused.message


def everyone_of(published: Results) -> dict[tuple[str, str, int], Any]:
    """Values and users of the slice of everyone, by model, measure and cutoff."""
    rows = published.metrics(slice="all").to_pylist()
    return {(row["model_id"], row["measure"], row["k"]): (row["value"], row["n_users"]) for row in rows}


def test_a_measure_without_its_catalogue_is_refused_before_anything_is_read(workspace: Workspace) -> None:
    workspace.change(inputs__items=None)

    refused = rankeval("validate", workspace.config)

    assert refused.code == 2
    refused.assert_readable()
    assert "found CatalogCoverage, but no catalogue; expected inputs.items, or inputs.train" in refused.message
