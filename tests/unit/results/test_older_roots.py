"""Roots of an older version: tables that lack columns, and recorded configs with keys that are gone."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import Results, schemas
from rankeval_spark.apps.nightly.night_plan import pinned
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.errors import ConfigError, ResultsError
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import failpoints, tables
from tests.support import nights, query_night
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND
from tests.support.older_roots import LACKING, make_older
from tests.support.query_night import THIRD
from tests.support.readers import READERS, load_delta

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.nights import Workspace

ALL: Final = (schemas.RUNS, *schemas.PUBLISHED)

DROPPED: Final = ("checks.old_check", "gates[0].old_rule", "inputs.held_out.columns.old_column", "old_key")
"""Keys that the recorded configs have: of a section, a list, a mapping and the file."""

MESSAGE: Final = f"ignores: {re.escape(', '.join(DROPPED))}$"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return query_night.published(tmp_path_factory.mktemp("older") / "it's here")


@pytest.fixture
def older(published: Workspace, tmp_path: Path) -> Workspace:
    """Copy the published nights, as if an older version had published them."""
    copy = published.copy(tmp_path / "older")
    make_older(copy.root)
    return copy


def rows(results: Results[pa.Table], table: str, **equal: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - filters
    found = results.runs(**equal) if table == "runs" else results.scan(table, **equal).to_table()
    return sorted(found.to_pylist(maps_as_pydicts="strict"), key=str)


def rewrite_events(workspace: Workspace, change: Callable[[dict[str, Any]], dict[str, str]]) -> None:
    """Write other texts into the events of ``runs``."""
    for path in Path(workspace.root, "runs").rglob("*.parquet"):
        events = pq.read_table(path, partitioning=None)
        changed = [{**event, **change(event)} for event in events.to_pylist()]
        for name in ("config", "config_hash"):
            texts = pa.array([event[name] for event in changed])
            events = events.set_column(events.column_names.index(name), name, texts)
        pq.write_table(events, path)


def nulled(of_now: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    return sorted(({**row, **dict.fromkeys(LACKING[table])} for row in of_now), key=str)


def test_columns_that_a_table_lacks_are_null_and_all_others_as_they_were(
    published: Workspace, older: Workspace
) -> None:
    for schema in ALL:
        found = rows(Results(older.root), schema.name)
        assert found == nulled(rows(Results(published.root), schema.name), schema.name), schema.name
        names = Results(older.root).scan(schema.name).schema.names if schema is not schemas.RUNS else list(found[0])
        assert names[: len(schema.fields)] == schema.field_names()
    assert Results(older.root).metrics(quantile_error=0.0).num_rows == 0
    assert Results(older.root).metrics(k=10, model_id="als").num_rows > 0


def test_commands_read_an_older_root(older: Workspace, tmp_path: Path) -> None:
    for command in (
        ("show", older.root),
        ("show", older.root, "--comparisons"),
        ("show", older.root, "--gaps", "--json"),
        ("runs", older.root, "--json"),
        ("compare", older.root, "--against", "previous"),
        ("compare", older.root, "--against", "previous", "--evaluation", "nightly", "--json"),
        ("report", older.root, "--out", tmp_path / "report.html"),
        ("user", older.root, "bob"),
        ("backfill", older.config, "--from", FIRST, "--to", THIRD, "--missing"),
        ("score", older.root, "--measure", "P@1", "--date", FIRST),
    ):
        done = rankeval(*command)
        assert done.code == 0, (command, done.err)
    assert rankeval("gate", older.root).code == rankeval("gate", older.root, "--json").code == 6  # rules, as before


def test_the_next_night_adds_the_columns_and_earlier_rows_are_null(published: Workspace, older: Workspace) -> None:
    before = {schema.name: rows(Results(older.root), schema.name, date=FIRST) for schema in ALL}
    pinned = Results(older.root)
    pinned.table_versions()

    assert rankeval("run", older.config, "--date", SECOND).code in {0, 6}

    for schema in ALL:
        table, folder = schema.name, f"{older.root}/{schema.name}"
        assert rows(Results(older.root), table, date=FIRST) == before[table]
        assert rows(pinned, table, date=FIRST) == before[table]
        opened = deltalake.DeltaTable(folder)
        assert {field.name for field in opened.schema().fields} >= set(schema.field_names())
        assert opened.protocol().min_reader_version == 1
        assert opened.metadata().description == f"Grain: {schema.grain}. Key: {', '.join(schema.key)}."
        for name, read in READERS.items():
            assert len(read(folder, schema.field_names())) == opened.to_pyarrow_table().num_rows, (table, name)
    of_now = {row["value"] for row in rows(Results(published.root), "metrics", date=SECOND)}
    again = rows(Results(older.root), "metrics", date=SECOND)
    assert {row["value"] for row in again} == of_now
    assert {row["quantile_error"] for row in again} == {0.0, None}  # None of the measure of all lists
    comments = {field.name: field.metadata for field in deltalake.DeltaTable(f"{older.root}/metrics").schema().fields}
    assert comments["quantiles"] == {"comment": schemas.METRICS.field("quantiles").comment}


def test_views_have_the_columns_that_tables_lack(older: Workspace) -> None:
    counts = "SELECT count(*), count(n_lists), count(std_dev) FROM metrics"
    with duckdb.connect() as connection:
        load_delta(connection)
        for name in Results(older.root).register(connection):
            connection.execute(f"SELECT * FROM {name}").fetchall()
        n_rows, *others = connection.execute(counts).fetchall()[0]
        assert (n_rows > 0, others) == (True, [0, 0])
        assert connection.execute("SELECT count(*) FROM quantiles").fetchall() == [(0,)]
        assert connection.execute("SELECT DISTINCT failed_checks FROM runs").fetchall() == [(None,)]

        assert rankeval("run", older.config, "--date", SECOND).code in {0, 6}
        Results(older.root).register(connection)
        (found,) = connection.execute(counts).fetchall()
        assert found[0] > found[1] > 0
    assert rankeval("register", older.root, "--for", "spark").code == 0


def test_maintenance_keeps_an_older_root_readable(older: Workspace) -> None:
    before = rows(Results(older.root), "metrics")
    done = rankeval("maintain", older.root, "--keep-days", 1)
    assert done.code == 0, done.err
    assert rows(Results(older.root), "metrics") == before
    assert rows(Results(older.root), "user_metrics", date=THIRD)
    assert [row["input_columns"] for row in rows(Results(older.root), "runs", date=FIRST)][:3] == [None] * 3


def test_a_night_that_an_older_version_staged_is_rolled_forward(older: Workspace) -> None:
    with failpoints.armed("after_intent"):
        assert rankeval("run", older.config, "--date", SECOND).code != 0
    (staged,) = Path(older.root, "_staging").iterdir()
    make_older(str(staged))
    make_older(older.root)

    assert rankeval("run", older.config, "--date", FIRST).code in {0, 6}

    last = rows(Results(older.root), "runs", date=SECOND, evaluation="nightly")
    assert [row["status"] for row in last if row["run_id"] in staged.name].count("PUBLISHED") == 1
    of_night = rows(Results(older.root), "metrics", date=SECOND)
    assert {row["run_id"] in staged.name for row in of_night} == {True}
    assert {row["std_dev"] for row in of_night} == {None}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"key": "check string"}, r"table checks: found other columns than this version declares \(no check\)"),
        ({"type": "count int"}, r"table checks: found other columns .* \(count int\)"),
        ({"more": "hint string"}, r"table checks: found other columns .* \(hint string\)"),
    ],
)
def test_a_table_that_is_no_older_form_of_the_declared_one_is_refused(change: dict[str, str], found: str) -> None:
    fields = {field["name"]: field for field in columns_json(schemas.CHECKS)["fields"]}
    ((kind, column),) = change.items()
    name, type_ = column.split()
    if kind == "key":
        del fields[name]
    else:
        fields[name] = {"name": name, "type": {"int": "integer"}.get(type_, type_)}
    with pytest.raises(ResultsError, match=found):
        tables.require_declared({"fields": [*fields.values()]}, schemas.CHECKS)


def test_an_upgrade_alone_makes_no_night_look_different(older: Workspace) -> None:
    """The first night is of a version with fewer keys, which hashed all of them; the third has another policy."""

    def with_fewer_keys(event: dict[str, Any]) -> dict[str, Any]:
        if event["evaluation_date"] != FIRST:
            return {}
        config = json.loads(event["config"])
        del config["policies"]["unknown_items"], config["checks"]["drift"]
        config["checks"]["null_gains"] = config["checks"].pop("invalid_gains")  # as it was called
        text = json.dumps(config, sort_keys=True)
        return {"config": text, "config_hash": hashlib.sha256(text.encode()).hexdigest()}

    rewrite_events(older, with_fewer_keys)
    make_older(older.root, {"runs": ["defaults_version"]})
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
    (night,) = published_nights(None, recorded.root, dates=[SECOND])
    with pytest.warns(UserWarning, match=MESSAGE):
        again = pinned(night.row)
    assert again.measure_set.measures == night.measures.measures
    assert (again.gates[0].at_least, "old_column" in again.inputs.held_out.columns) == (0.0, False)


def test_a_recorded_value_that_is_not_valid_is_still_refused(recorded: Workspace) -> None:
    (night,) = published_nights(None, recorded.root, dates=[SECOND])
    config = json.loads(night.row["config"])
    config["policies"]["ties"] = "by_luck"
    with pytest.raises(ConfigError, match="by_luck"):
        pinned({**night.row, "config": json.dumps(config)})


def test_a_key_that_is_gone_makes_no_night_one_of_another_config(
    recorded: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = recorded.copy(tmp_path)
    with pytest.warns(UserWarning, match=MESSAGE):
        kept = rankeval("backfill", copy.config, "--from", FIRST, "--to", SECOND, "--missing")
    assert (kept.code, kept.out.count("published by"), "another config" in kept.out) == (0, 2, False), kept.err
