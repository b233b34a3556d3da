"""Scoring published lists of past dates with a measure that was not asked for then."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.published.rescoring import past_nights, score_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import InputError
from rankeval_spark.measures import MeasureSet, group_statistics
from rankeval_spark.results import Results
from tests.support.arrow_frames import by, where
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

KEY = (C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K)


def test_measure_of_today_is_added_to_a_past_date(own_copy: Workspace) -> None:
    before = Results(own_copy.root)
    old = by(before.metrics(date=FIRST, evaluation="nightly"), *KEY, value=C.VALUE)
    others = by(before.metrics(evaluation="nightly", date=[SECOND, WITHOUT_ROWS]), *KEY, value=C.VALUE)

    scored = rankeval(
        "score", own_copy.root, "--measures", "DCG@3", "-m", "RR@1", "--date", FIRST, "--evaluation", "nightly"
    )

    assert scored.code == 0, scored.err
    assert "DCG@3" in scored.out
    after = Results(own_copy.root)
    new = by(after.metrics(date=FIRST, evaluation="nightly"), *KEY, value=C.VALUE)
    assert {key: new[key] for key in old} == old
    added = {key[3:] for key in new.keys() - old.keys()}
    assert added == {("DCG", 3)}
    groups = after.group_metrics(date=FIRST, evaluation="nightly", k=3)
    assert set(groups[C.MEASURE].to_pylist()) == {
        group_statistics.name_of(kind, "DCG") for kind in group_statistics.KINDS
    }
    # als at 3: ann's items are worth 3 and 1 at ranks 1 and 3, bob's is worth 2 at rank 3, eve and kim have none.
    dcg = (3 + 1 / log2(4)) + 2 / log2(4)
    assert new["als", "all", "", "DCG", 3] == pytest.approx(dcg / 4, rel=0, abs=1e-12)
    assert by(after.metrics(evaluation="nightly", date=[SECOND, WITHOUT_ROWS]), *KEY, value=C.VALUE) == others

    (night,) = past_nights(own_copy.root, evaluation="nightly", dates=[FIRST])
    assert tuple(map(str, night.measures.measures)) == (
        "RR@1",
        "RR@2",
        "nDCG@1",
        "nDCG@2",
        "Success@1",
        "Success@2",
        "DCG@3",
    )
    assert night.row["reason"].startswith("scored again, after run ")
    assert [one["n_rows"] for one in night.row["inputs"]] == [24, 7, 4]
    segments = by(
        after.user_metrics(date=FIRST, evaluation="nightly", k=3, model_id="als"), "user_id", value="segments"
    )
    assert segments["ann"] == [("country", "AT")]


def test_scored_night_keeps_its_quantiles_and_shares(spark: SparkSession, own_copy: Workspace) -> None:
    own_copy.change(
        slicing__quantiles=[0.5, 1], comparisons={"baseline": "pop", "margin": 0.1}, results__root="with_quantiles"
    )
    config = load_config(own_copy.config, ())
    run_night(spark, config, FIRST)
    results = Results(config.results.location)
    before = results.metrics(date=FIRST, evaluation="nightly"), results.comparisons(date=FIRST, evaluation="nightly")
    (night,) = past_nights(config.results.location, evaluation="nightly", dates=[FIRST])
    score_night(config.results.location, night, MeasureSet.parse(["DCG@3"]))

    results = Results(config.results.location)
    metrics, compared = (
        by(rows, *(name for name in KEY if name in rows.column_names), value=column)
        for rows, column in (
            (results.metrics(date=FIRST, evaluation="nightly"), "quantiles"),
            (results.comparisons(date=FIRST, evaluation="nightly"), "loss_share"),
        )
    )
    for found, old, column in ((metrics, before[0], "quantiles"), (compared, before[1], "loss_share")):
        wanted = by(old, *KEY, value=column)
        assert {key: found[key] for key in wanted} == wanted
        # In the slice of unknown country the models serve different users.
        assert None not in [value for key, value in wanted.items() if key[2] != "(unknown)"]
    # als at 3: ann's items are worth 3 and 1 at ranks 1 and 3, bob's is worth 2 at rank 3, eve and kim have none.
    assert metrics["als", "all", "", "DCG", 3] == [("0.5", 0.0), ("1", 3 + 1 / log2(4))]
    assert compared["als", "all", "", "DCG", 3] is not None


def test_past_nights_are_the_published_ones_oldest_first(published: Workspace) -> None:
    found = past_nights(published.root, evaluation="nightly")

    assert list(map(str, found)) == ["nightly, 2026-01-01", "nightly, 2026-01-02", "nightly, 2026-01-03"]
    assert [night.is_empty for night in found] == [False, False, True]
    assert found[0].config.evaluation == "nightly"


def test_night_without_lists_is_named_before_anything_is_scored(published: Workspace) -> None:
    refused = rankeval("score", published.root, "-m", "DCG@3")

    assert refused.code == 4
    refused.assert_readable()
    assert "nightly.sample-0.75, 2026-01-01: found no published lists" in refused.message
    assert "set results.lists: true" in refused.message
    assert refused.err.count("  - ") == 1


def test_night_without_rows_has_nothing_to_score(published: Workspace) -> None:
    scored = rankeval("score", published.root, "-m", "DCG@3", "--date", WITHOUT_ROWS)

    assert scored.code == 0
    assert scored.out == (
        "nightly, 2026-01-03: nothing to score, no rows for 2026-01-03 in recommendations and held_out\n"
    )


def test_date_that_was_never_published_is_refused_with_those_that_were(published: Workspace) -> None:
    refused = rankeval("score", published.root, "-m", "DCG@3", "--date", "2025-12-31")

    assert refused.code == 4
    refused.assert_readable()
    assert "no published run of 2025-12-31" in refused.message
    assert "2026-01-01, 2026-01-02, 2026-01-03" in refused.message


def test_misspelt_measure_is_refused_before_anything_is_read() -> None:
    refused = rankeval("score", "/nowhere", "-m", "nDGC@3")

    assert refused.code == 2
    refused.assert_readable()
    assert "did you mean 'nDCG" in refused.message


def test_failed_scoring_leaves_the_night_as_it_was(own_copy: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    (night,) = past_nights(own_copy.root, evaluation="nightly", dates=[FIRST])
    versions = Results(own_copy.root).table_versions()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("rankeval_spark.apps.published.rescoring.stage_results", fail)
    with pytest.raises(RuntimeError):
        score_night(own_copy.root, night, MeasureSet.parse(["DCG@3"]))

    runs = Results(own_copy.root).runs()
    assert runs["status"].to_pylist().count("FAILED") == 1
    assert Results(own_copy.root).table_versions() == versions
    with pytest.raises(InputError):
        past_nights(own_copy.root, evaluation="another")


def test_what_is_scored_is_what_is_published_when_its_turn_comes(own_copy: Workspace) -> None:
    """A backfill has run the night again, with other measures, while earlier nights were scored."""
    (night,) = past_nights(own_copy.root, evaluation="nightly", dates=[FIRST])
    own_copy.change(measures=["RR", "AP"])
    assert rankeval("run", own_copy.config, "--date", FIRST).code == 0

    score_night(own_copy.root, night, MeasureSet.parse(["DCG@2"]))

    runs = where(Results(own_copy.root).runs(date=FIRST, evaluation="nightly"), status="PUBLISHED")
    rerun, scored = (row["measures"] for row in runs.sort_by("recorded_at").to_pylist()[-2:])
    assert {row["measure"] for row in scored} == {row["measure"] for row in rerun} | {"DCG"} == {"RR", "AP", "DCG"}
    metrics = Results(own_copy.root).metrics(date=FIRST, evaluation="nightly", slice="all")
    assert set(metrics["measure"].to_pylist()) == {"RR", "AP", "DCG"}
