"""The note by which logs are known again."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from rankeval_spark.demo import workspace
from rankeval_spark.demo.models import AlsSettings
from rankeval_spark.demo.workspace import DemoSettings


@pytest.fixture
def written(tmp_path: Path) -> workspace.DemoLogs:
    """Make logs whose tables are there, as far as a glance at the folders tells."""
    for name in workspace.TABLES:
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    return workspace.DemoLogs(
        folder=tmp_path,
        source_name="synthetic",
        was_reused=False,
        dates=(dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
        n_users=3,
        n_items=5,
        n_interactions=7,
        n_recommendations=11,
        n_held_out=13,
    )


def test_remembered_logs_are_found_again(written: workspace.DemoLogs) -> None:
    workspace.remember_logs(written, "abc")

    assert workspace.read_kept(written.folder, "abc") == replace(written, was_reused=True)
    assert [path.name for path in written.folder.iterdir() if path.is_file()] == ["manifest.json"]


def test_logs_of_another_fingerprint_are_not_reused(written: workspace.DemoLogs) -> None:
    workspace.remember_logs(written, "abc")

    assert workspace.read_kept(written.folder, "abd") is None


def test_logs_that_were_being_rewritten_are_not_reused(written: workspace.DemoLogs) -> None:
    workspace.remember_logs(written, "abc")
    workspace.forget_logs(written.folder)

    assert workspace.read_kept(written.folder, "abc") is None


def test_logs_without_their_tables_are_not_reused(written: workspace.DemoLogs) -> None:
    workspace.remember_logs(written, "abc")
    (written.table(workspace.SEGMENTS) / "_delta_log").rmdir()

    assert workspace.read_kept(written.folder, "abc") is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"fingerprint": "abc", "logs": {"dates": ["soon"]}}'])
def test_note_that_cannot_be_read_is_no_note(written: workspace.DemoLogs, content: str) -> None:
    (written.folder / "manifest.json").write_text(content, encoding="utf-8")

    assert workspace.read_kept(written.folder, "abc") is None


def test_synthetic_logs_say_that_their_figures_mean_nothing(written: workspace.DemoLogs) -> None:
    assert len(written.caveats) == 3
    assert "synthetic" in written.caveats[0]
    assert replace(written, source_name="MovieLens 100K").caveats == workspace.CAVEATS


def test_settings_differ_by_every_value() -> None:
    settings = DemoSettings()

    assert settings.to_json() == DemoSettings().to_json()
    assert settings.to_json() != replace(settings, window=5).to_json()
    assert settings.to_json() != replace(settings, als=AlsSettings(seed=8)).to_json()
