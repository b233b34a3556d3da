"""Results of an earlier version of the tables do not stop the demo."""

from __future__ import annotations

from pathlib import Path

from rankeval_spark.demo.results import forget_results_of_other_tables


def results_of(workspace: Path) -> Path:
    root = workspace / "results"
    (root / "metrics").mkdir(parents=True)
    return root


def test_results_without_a_note_are_made_anew_and_those_with_one_kept(tmp_path: Path) -> None:
    root = results_of(tmp_path)
    assert forget_results_of_other_tables(tmp_path, root)
    assert not root.exists()
    results_of(tmp_path)
    assert not forget_results_of_other_tables(tmp_path, root)
    assert root.exists()


def test_results_of_other_tables_are_made_anew(tmp_path: Path) -> None:
    root = results_of(tmp_path)
    (tmp_path / "results.tables").write_text("another", encoding="utf-8")
    assert forget_results_of_other_tables(tmp_path, root)
    assert not root.exists()


def test_results_elsewhere_are_not_touched(tmp_path: Path) -> None:
    root = results_of(tmp_path / "elsewhere")
    assert not forget_results_of_other_tables(tmp_path, root)
    assert root.exists()
