"""Roots of an older version: tables that lack columns are read, and get the columns with the next night."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import Results, schemas
from rankeval_spark.errors import ResultsError
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import failpoints, tables
from tests.support import query_night
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND
from tests.support.older_roots import LACKING, make_older
from tests.support.query_night import THIRD
from tests.support.readers import READERS, load_delta

if TYPE_CHECKING:
    from tests.support.nights import Workspace

ALL: Final = (schemas.RUNS, *schemas.PUBLISHED)


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
    for path in Path(older.root, "runs").rglob("*.parquet"):
        events = pq.read_table(path, partitioning=None)
        texts, hashes = events["config"].to_pylist(), events["config_hash"].to_pylist()
        for place, day in enumerate(events["evaluation_date"].to_pylist()):
            if day == FIRST:
                config = json.loads(texts[place])
                del config["policies"]["unknown_items"], config["checks"]["drift"]
                config["checks"]["null_gains"] = config["checks"].pop("invalid_gains")  # as it was called
                texts[place] = json.dumps(config, sort_keys=True)
                hashes[place] = hashlib.sha256(texts[place].encode()).hexdigest()
        for name, values in (("config", texts), ("config_hash", hashes)):
            events = events.set_column(events.column_names.index(name), name, pa.array(values))
        pq.write_table(events, path)
    make_older(older.root, {"runs": ["defaults_version"]})
    older.change(policies={})

    kept = rankeval("backfill", older.config, "--from", FIRST, "--to", THIRD, "--missing")
    assert [line.count("with another config") for line in kept.out.splitlines() if "published by" in line] == [0, 0, 1]

    compared = rankeval("compare", older.root, "--against", FIRST, "--date", SECOND)
    assert (compared.code, "different configs" in compared.err) == (0, False), compared.err
    compared = rankeval("compare", older.root, "--against", SECOND, "--date", THIRD)
    assert (compared.code, "different configs" in compared.err) == (0, True), compared.err
