"""What a rerun reads, and when it counts as the same; no session is started."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.apps.nightly.night_plan import pin_config
from rankeval_spark.apps.published.reproduction import InputVersions, TableComparison, require_published
from rankeval_spark.config import EvaluationConfig, validate_model
from rankeval_spark.errors import ConfigError, InputError
from tests.support import nights

if TYPE_CHECKING:
    from pathlib import Path

DAY = date(2026, 1, 1)


def test_rerun_reads_the_recorded_places_at_the_recorded_versions(tmp_path: Path) -> None:
    values = nights.config_of("recommendations", "held_out", "segments")
    values["inputs"]["recommendations"]["timestamp"] = "2026-01-02"
    values["inputs"]["held_out"] |= {"format": "parquet", "path": "inputs/held_out-{date}"}
    values["inputs"]["segments"] = {"format": "delta", "table": "users.segments"}
    written = validate_model(EvaluationConfig, values, folder=str(tmp_path)).public_json()
    recorded = [
        dict(name="recommendations", location="/data/log", version=3),
        dict(name="held_out", location="/data/held_out-2026-01-01", version=None),
        dict(name="segments", location="users.segments", version=0),
    ]

    inputs = pin_config(dict(config=written, inputs=recorded)).inputs

    assert inputs.segments is not None
    assert [one.location(DAY) for one in (inputs.recommendations, inputs.held_out, inputs.segments)] == [
        "/data/log",
        "/data/held_out-2026-01-01",
        "users.segments",
    ]
    assert [one.version for one in (inputs.recommendations, inputs.held_out, inputs.segments)] == [3, None, 0]
    assert inputs.recommendations.moment(DAY) is None


def test_rerun_of_a_log_with_a_place_for_each_model_reads_the_recorded_ones(tmp_path: Path) -> None:
    values = nights.config_of("recommendations", "held_out")
    values["inputs"]["recommendations"] = {"format": "delta", "paths": {"als": "lists/als", "a, b": "lists/b-{date}"}}
    written = validate_model(EvaluationConfig, values, folder=str(tmp_path))
    location = written.inputs.recommendations.location(DAY)
    recorded = [dict(name="recommendations", location=location, version=None)]

    log = pin_config(dict(config=written.public_json(), inputs=recorded)).inputs.recommendations

    assert log.paths == {"als": f"{tmp_path}/lists/als", "a, b": f"{tmp_path}/lists/b-2026-01-01"}
    assert log.location(DAY) == location


def test_recorded_place_is_held_to_the_rules_of_a_config(tmp_path: Path) -> None:
    values = nights.config_of("recommendations", "held_out")
    written = validate_model(EvaluationConfig, values, folder=str(tmp_path)).public_json()
    elsewhere = dict(name="held_out", location="ftp://example/held_out", version=1)

    with pytest.raises(ConfigError, match="file system 'ftp'"):
        pin_config(dict(config=written, inputs=[elsewhere]))


@pytest.mark.parametrize(
    ("n_rows", "columns", "is_changed"),
    [
        ((7, 7), ("a int", "a int"), False),
        ((7, 8), ("a int", "a int"), True),
        ((7, 7), ("a int", "a string"), True),
        ((None, None), (None, "a int"), False),
    ],
)
def test_input_has_changed_where_two_known_facts_differ(
    n_rows: tuple[int | None, int | None], columns: tuple[str | None, str | None], is_changed: bool
) -> None:
    assert InputVersions("held_out", "parquet", None, n_rows, columns).is_changed is is_changed


@pytest.mark.parametrize(
    ("published", "missing", "extra", "differing", "rounded", "is_equal"),
    [
        (4, 0, 0, 0, 0, True),
        (4, 0, 0, 0, 2, True),
        (4, 0, 0, 1, 0, False),
        (4, 1, 0, 0, 0, False),
        (4, 0, 1, 0, 0, False),
        (3, 0, 1, 0, 0, True),  # a row of the four was removed since, and came out again
        (3, 0, 0, 0, 0, False),  # it was removed, and did not
    ],
)
def test_table_is_equal_where_all_rows_that_are_left_came_out_again(
    published: int, missing: int, extra: int, differing: int, rounded: int, is_equal: bool
) -> None:
    assert TableComparison("metrics", 4, published, missing, extra, differing, rounded).is_equal is is_equal


@pytest.mark.parametrize(
    ("run_id", "told"),
    [
        ("20260101T000000-aa", "did you mean '20260101T000000-ab'?"),
        ("nothing-like-it", "the newest is '20260101T000000-ab'"),
        ("x", "run 'x', which ended as FAILED; expected a run that was published"),
    ],
)
def test_unknown_run_is_refused_with_the_nearest_and_a_failed_one_with_its_end(run_id: str, told: str) -> None:
    events = [("20260101T000000-ab", "PUBLISHED"), ("x", "RUNNING"), ("x", "FAILED")]
    rows = [dict(run_id=own, status=status) for own, status in events]

    with pytest.raises(InputError) as refused:
        require_published("/root", run_id, rows)

    assert str(refused.value).endswith(told)
