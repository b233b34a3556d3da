"""Recorded configs with keys that this version does not have."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark.apps.nightly.night_plan import pin_config
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.errors import ConfigError
from tests.support import nights, query_night
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND
from tests.support.query_night import THIRD

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.nights import Workspace

DROPPED: Final = ("checks.old_check", "gates[0].old_rule", "inputs.held_out.columns.old_column", "old_key")
"""Keys that the recorded configs have: of a section, a list, a mapping and the file."""

MESSAGE: Final = f"ignores: {re.escape(', '.join(DROPPED))}$"


def rewrite_events(workspace: Workspace, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Write other values into the events of ``runs``."""
    for path in Path(workspace.root, "runs").rglob("*.parquet"):
        events = pq.read_table(path, partitioning=None)
        changed = [{**event, **change(event)} for event in events.to_pylist()]
        for name in ("config", "config_hash", "defaults_version"):
            values = pa.array([event[name] for event in changed], events[name].type)
            events = events.set_column(events.column_names.index(name), name, values)
        pq.write_table(events, path)


def test_an_upgrade_alone_makes_no_night_look_different(tmp_path: Path) -> None:
    """The first night is of a version with fewer keys, which hashed all of them; the third has another policy."""

    def with_fewer_keys(event: dict[str, Any]) -> dict[str, Any]:
        if event["evaluation_date"] != FIRST:
            return {}
        config = json.loads(event["config"])
        del config["policies"]["unknown_items"], config["checks"]["drift"]
        config["checks"]["null_gains"] = config["checks"].pop("invalid_gains")  # as it was called
        text = json.dumps(config, sort_keys=True)
        return {"config": text, "config_hash": hashlib.sha256(text.encode()).hexdigest()}

    older = query_night.published(tmp_path / "it's here")
    rewrite_events(older, lambda event: {"defaults_version": None, **with_fewer_keys(event)})
    older.change(policies={})

    kept = rankeval("backfill", older.config, "--from", FIRST, "--to", THIRD, "--missing")
    assert [line.count("with another config") for line in kept.out.splitlines() if "published by" in line] == [0, 0, 1]

    compared = rankeval("compare", older.root, "--against", FIRST, "--date", SECOND)
    assert (compared.code, "different configs" in compared.err) == (0, False), compared.err
    compared = rankeval("compare", older.root, "--against", SECOND, "--date", THIRD)
    assert (compared.code, "different configs" in compared.err) == (0, True), compared.err


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish two nights, then write into ``runs`` what a version with other keys recorded."""
    rule = {"measure": "nDCG@2", "at_least": 0.0}
    workspace = nights.workspace(tmp_path_factory.mktemp("recorded"), gates=[rule], results__lists=True)
    for day in (FIRST, SECOND):
        query_night.run(workspace, day)
    rewrite_events(workspace, lambda event: {"config": json.dumps(with_dropped_keys(json.loads(event["config"])))})
    return workspace


def with_dropped_keys(config: dict[str, Any]) -> dict[str, Any]:
    config["old_key"] = {"any": ["value"]}
    config["checks"]["old_check"] = {"warn": 0.5}
    config["gates"][0]["old_rule"] = True
    config["inputs"]["held_out"]["columns"]["old_column"] = "x"
    return config


@pytest.mark.parametrize(
    "command", ["gate", "compare --against previous", "score --measure AP@2"], ids=lambda command: command.split()[0]
)
def test_a_night_with_keys_that_are_gone_is_read_with_one_warning(
    command: str, recorded: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a config is kept by its text and frecorded: each command reads it itself
    name, *options = command.split()
    with pytest.warns(UserWarning, match=MESSAGE) as warned:
        done = rankeval(name, recorded.copy(tmp_path).root, *options)
    assert done.code == 0, done.err
    assert len({str(warning.message) for warning in warned}) == 1


def test_the_plan_of_a_night_with_keys_that_are_gone_is_what_it_was(recorded: Workspace) -> None:
    (night,) = published_nights(recorded.root, dates=[SECOND])
    with pytest.warns(UserWarning, match=MESSAGE):
        again = pin_config(night.row)
    assert again.measure_set.measures == night.measures.measures
    assert (again.gates[0].at_least, "old_column" in again.inputs.held_out.columns) == (0.0, False)


def test_a_recorded_value_that_is_not_valid_is_still_refused(recorded: Workspace) -> None:
    (night,) = published_nights(recorded.root, dates=[SECOND])
    config = json.loads(night.row["config"])
    config["policies"]["ties"] = "by_luck"
    with pytest.raises(ConfigError, match="by_luck"):
        pin_config({**night.row, "config": json.dumps(config)})


def test_a_key_that_is_gone_makes_no_night_one_of_another_config(
    recorded: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = recorded.copy(tmp_path)
    with pytest.warns(UserWarning, match=MESSAGE):
        kept = rankeval("backfill", copy.config, "--from", FIRST, "--to", SECOND, "--missing")
    assert (kept.code, kept.out.count("published by"), "another config" in kept.out) == (0, 2, False), kept.err
