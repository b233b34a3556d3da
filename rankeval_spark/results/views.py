"""Views of a results root as SQL, for Spark's catalog or a DuckDB database: plain columns, no versions.

A view reads its table as it is now. A run replaces a night of a table in one commit, so each view has whole nights; two
views that are joined while a run publishes can be of two runs. ``Results`` pins all tables to one commit instead.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.report.defaults import SAMPLE
from rankeval_spark.results.journal import FAILED, PUBLISHED

_LATEST: Final = "latest_"  # begins the names of views of the newest night
_NESTED: Final = ("array", "map", "struct")  # types that no view has
_SAMPLES: Final = "sample_keys"
_OF_MEASURES: Final = "Value of a measure, see run_measures; NULL where it is undefined or was not requested at this k"
_ERROR: Final = {"error_stage": "Stage that failed", "error_message": "What went wrong, in a line"}
_ENDED: Final = ("status", "recorded_at")
_OTHERS: Final[Mapping[str, tuple[str, schemas.Schema, tuple[str, ...], Mapping[str, str]]]] = {
    C.QUANTILES: (
        "one quantile of the users' values of one measure",
        schemas.METRICS,
        (C.MODEL_ID, C.SLICE, "slice_value", C.MEASURE, C.K, "n_users", C.QUANTILE_ERROR),
        {
            "share": "Share of the users, such as 0.5 for the median",
            C.VALUE: "The least value of a user that at least this share do not exceed",
        },
    ),
    "runs": (
        schemas.RUNS.grain,
        schemas.RUNS,
        (*_ENDED, "reason", "sample_share", "code_version", "config", "config_hash", "failed_checks"),
        {**_ERROR, "error_type": "Type of the failure"},
    ),
    "nights": (
        "one night, with the outcome of the run that started last",
        schemas.RUNS,
        (*_ENDED, "reason", "failed_checks"),
        {**_ERROR, "has_results": "True if a run of the night was published"},
    ),
    "run_stages": (
        "one stage of one ended run",
        schemas.RUNS,
        _ENDED,
        {"stage": "Name of the stage", "seconds": "How long it took"},
    ),
    "run_inputs": (
        "one input of one ended run",
        schemas.RUNS,
        _ENDED,
        {
            "input": "Name of the input",
            "location": "Where it was read",
            "format": "Format of its files or table",
            "version": "Delta version; NULL: no Delta table",
            "n_rows": "Rows that were read",
        },
    ),
    "run_measures": (
        "one measure at one cutoff of one ended run",
        schemas.RUNS,
        _ENDED,
        {
            C.MEASURE: schemas.METRICS.field(C.MEASURE).comment,
            C.K: schemas.METRICS.field(C.K).comment,
            "column_name": "Column of user_metrics; NULL: none",
            "name": "Canonical name",
            "options": "Value of every option",
            "policies": "Value of every policy of the run",
            "group_rule": "Which items its item group has; NULL: all items",
        },
    ),
}
"""What a row of each view of other columns is, and these: of a table, and its own."""

_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_NIGHT: Final = "evaluation, evaluation_date"
_RUN: Final = f"{_NIGHT}, run_id"


@dataclass(frozen=True)
class Dialect:
    """Differences between the SQL of DuckDB and of Spark."""

    table: str  # a Delta table at a location, which replaces `{}`
    quote: str  # the character that ends the location; it is doubled inside of it
    without: str  # the word between `*` and the columns that it leaves out
    rows_of: str  # the function that makes a row of each element of an array
    joined: str  # the function that writes an array of texts as one text
    pairs: str  # an array of texts `key=value` of a map of texts, which replaces `{}`
    matching: str  # whether a part of the text `{}` matches the regular expression `{}`
    unread: re.Pattern[str]  # what a location must not hold


DIALECTS: Final = {
    "duckdb": Dialect(
        table="delta_scan('{}')",
        quote="'",
        without="EXCLUDE",
        rows_of="unnest",
        joined="array_to_string",
        pairs="[one.key || '=' || one.value for one in map_entries({})]",
        matching="regexp_matches({}, '{}')",
        unread=re.compile(r"[%\\]"),  # %20 is decoded twice, and \ is taken for /
    ),
    "spark": Dialect(
        table="delta.`{}`",
        quote="`",
        without="EXCEPT",
        rows_of="explode",
        joined="array_join",
        pairs="transform(map_entries({}), one -> one.key || '=' || one.value)",
        matching="{} RLIKE '{}'",
        unread=re.compile("(?!)"),
    ),
}


def statements(
    root: str,  # results root, as the reader of the views finds it
    dialect: str,  # whose SQL it is
    *,
    schema: str | None = None,  # schema that exists, with or without its catalog; the current one where left out
    is_temporary: bool = False,  # whether the views end with the session
    where: str = "dialect",  # what names the dialect, for messages
    user_columns: Collection[str] = (),  # columns of `user_metrics`, whose measures get comments
) -> dict[str, str]:
    """Return the statements that create or replace the views, by name; for DuckDB also those of their comments.

    Raises ConfigError: there is no such dialect, it cannot find the root, or the schema is no plain name.
    """
    if dialect not in DIALECTS:
        raise ConfigError(Fault(where, repr(dialect), f"one of: {', '.join(DIALECTS)}", nearest(dialect, DIALECTS)))
    if found := DIALECTS[dialect].unread.search(root):
        expected = f"a path without {found[0]!r}, which DuckDB reads as another one"
        raise ConfigError(Fault("results root", repr(root), expected, "rename the folder, or make views of Spark"))
    if schema is not None and not _NAME.fullmatch(schema):
        raise ConfigError(Fault("schema", repr(schema), "letters, digits and _, such as analytics or main.analytics"))
    prefix = "" if schema is None else f"{schema}."
    kind = "TEMPORARY VIEW" if is_temporary else "VIEW"
    made = selects(root, DIALECTS[dialect])
    views = {f"{prefix}{name}": select for name, select in made.items()}
    created = {name: f"CREATE OR REPLACE {kind} {name} AS\n{select}" for name, select in views.items()}
    if dialect == "duckdb":
        created = {name: ";\n".join([text, *_comments(name, user_columns)]) for name, text in created.items()}
    return created


def _comments(name: str, user_columns: Collection[str]) -> Iterator[str]:
    """Yield the statements that explain a view and its columns, with or without its schema."""
    view = name.rpartition(".")[2]
    table = view.removeprefix(_LATEST)
    if table in _OTHERS:
        rows, source, names, own = _OTHERS[table]
        of_columns = {each: source.field(each).comment for each in (*C.RUN_KEY, *names)} | dict(own)
    else:
        schema = next(one for one in _SHOWN if one.name == table)
        rows = schema.grain
        of_columns = {each.name: each.comment for each in schema.fields if not each.type.startswith(_NESTED)}
        of_columns |= {"examples": schema.field(_SAMPLES).comment} if _SAMPLES in schema.field_names() else {}
        if schema is schemas.USER_METRICS:
            measures = [each for each in user_columns if each not in schema.field_names()]
            of_columns |= dict.fromkeys(measures, _OF_MEASURES)
    newest = ", of the newest night of each evaluation" if view != table else ""
    texts = {f"VIEW {name}": f"{rows[:1].upper()}{rows[1:]}{newest}"}
    texts |= {f'COLUMN {name}."{each}"': comment for each, comment in of_columns.items()}
    for what, comment in texts.items():
        yield "COMMENT ON {} IS '{}'".format(what, comment.replace("'", "''"))


def selects(root: str, dialect: Dialect) -> dict[str, str]:
    """Return the query of each view, by name."""
    quote = dialect.quote
    tables = {
        schema.name: dialect.table.format(f"{root}/{schema.name}".replace(quote, quote * 2))
        for schema in (schemas.RUNS, *schemas.PUBLISHED)
    }
    runs, metrics = tables[schemas.RUNS.name], tables[schemas.METRICS.name]
    shown = {schema.name: _plain(tables[schema.name], schema, dialect) for schema in _SHOWN}
    shown[C.QUANTILES] = _quantiles(metrics, dialect)
    # The newest night with means of each evaluation, without samples of users.
    is_sample = dialect.matching.format(C.EVALUATION, SAMPLE)
    newest = f"SELECT evaluation, max(evaluation_date) FROM {metrics} WHERE NOT {is_sample} GROUP BY evaluation"
    options, policies = (
        f"{dialect.joined}({dialect.pairs.format(name)}, ', ')" for name in ("each.options", "policies")
    )
    definition = "each.measure, each.k, each.column AS column_name, each.name"
    definition += f",\n  {options} AS options,\n  {policies} AS policies, each.group_rule"
    return {
        **shown,
        **{f"{_LATEST}{name}": f"{select}\nWHERE ({_NIGHT}) IN ({newest})" for name, select in shown.items()},
        "runs": _runs(runs, dialect),
        "nights": _nights(runs, dialect),
        "run_stages": _exploded(runs, "map_entries(timings)", "each.key AS stage, each.value AS seconds", dialect),
        "run_inputs": _exploded(
            runs, "inputs", "each.name AS input, each.location, each.format, each.version, each.n_rows", dialect
        ),
        "run_measures": _exploded(runs, "measures", definition, dialect),
    }


_SHOWN: Final = tuple(schema for schema in schemas.PUBLISHED if schema is not schemas.LISTS)
"""Tables with views; ``lists`` is made of arrays, and is read as it is."""


def _plain(table: str, schema: schemas.Schema, dialect: Dialect) -> str:
    """Leave out the columns of a table that are no numbers, texts and dates."""
    others = [field.name for field in schema.fields if field.type.startswith(_NESTED)]
    columns = f"* {dialect.without} ({', '.join(others)})" if others else "*"
    if _SAMPLES in others:
        columns += f", {dialect.joined}({_SAMPLES}, ', ') AS examples"
    return f"SELECT {columns} FROM {table}"


def _quantiles(metrics: str, dialect: Dialect) -> str:
    """Return SQL with a row per quantile of a row of ``metrics``."""
    key = f"{_RUN}, model_id, slice, slice_value, measure, k, n_users"
    return (
        f"SELECT {key}, CAST(each.key AS double) AS share, each.value AS value, {C.QUANTILE_ERROR}\n"
        f"FROM (SELECT {key}, {C.QUANTILE_ERROR}, {dialect.rows_of}(map_entries({C.QUANTILES})) AS each\n"
        f"  FROM {metrics} WHERE {C.QUANTILES} IS NOT NULL) AS elements"
    )


def _runs(runs: str, dialect: Dialect) -> str:
    """Return SQL for the events of ``runs`` with plain columns."""
    return (
        f"SELECT {_RUN}, status, recorded_at, reason, sample_share, code_version, config, config_hash,\n"
        f"  error.stage AS error_stage, error.type AS error_type, error.message AS error_message,\n"
        f"  {dialect.joined}(failed_checks, '; ') AS failed_checks\nFROM {runs}"
    )


def _nights(runs: str, dialect: Dialect) -> str:
    """Return SQL for the newest ended run of each night, and whether the night has results.

    The newest run is the one that started last: the end of a dead one is recorded when it is found. A run that failed
    and was completed by another one is published.
    """
    by_night = f"PARTITION BY {_NIGHT}"
    last_first = f"started_at DESC, CASE status WHEN '{PUBLISHED}' THEN 0 ELSE 1 END, recorded_at DESC"
    return (
        f"SELECT {_RUN}, status, recorded_at, reason, error_stage, error_message, failed_checks, has_results\n"
        f"FROM (SELECT *,\n"
        f"    row_number() OVER ({by_night}\n      ORDER BY {last_first}) AS place,\n"
        f"    max(CASE WHEN status = '{PUBLISHED}' THEN 1 ELSE 0 END) OVER ({by_night}) = 1 AS has_results\n"
        f"  FROM (SELECT *, min(recorded_at) OVER (PARTITION BY {_RUN}) AS started_at\n"
        f"    FROM ({_runs(runs, dialect)}) AS events) AS timed\n"
        f"  WHERE status IN ('{PUBLISHED}', '{FAILED}')) AS ended\n"
        f"WHERE place = 1"
    )


def _exploded(runs: str, array: str, columns: str, dialect: Dialect) -> str:
    """Return SQL with a row per element of an array of the ended runs."""
    ended = f"FROM {runs} WHERE status IN ('{PUBLISHED}', '{FAILED}')"
    return (
        f"SELECT {_RUN}, status, recorded_at, {columns}\n"
        f"FROM (SELECT {_RUN}, status, recorded_at, policies, {dialect.rows_of}({array}) AS each {ended}) AS elements"
    )
