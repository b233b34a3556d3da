"""Open the table of an input unchanged: Delta at one version, a table or files with types, csv and json as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, functions as F, types as T

from rankeval_spark import allowed_folders, columns as C
from rankeval_spark.errors import Fault, InputError, first_line
from rankeval_spark.inputs import trec_files
from rankeval_spark.inputs.input_columns import CORRUPT, PARQUET_UUID
from rankeval_spark.inputs.input_files import EXPECTED, RFC_4180, checked_header, missing_input
from rankeval_spark.inputs.spark import probes
from rankeval_spark.inputs.spark.read_failures import as_input_error, refuse_special

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrameReader, SparkSession

    from rankeval_spark.config.inputs import InputConfig
    from rankeval_spark.inputs.trec_files import TrecForm


MOST_FILES: Final = 256
"""Files whose footers are read, which takes half a second; a table of years has many more."""

_NARROWER: Final = ("tinyint", "smallint", "int", "bigint")
_READ_AS: Final = {
    *((narrow, wide) for index, narrow in enumerate(_NARROWER) for wide in _NARROWER[index:]),
    *((narrow, "double") for narrow in ("tinyint", "smallint", "int", "float")),
}
"""Types that Spark reads as a wider type."""


@dataclass(frozen=True)
class Table:
    """A table before anything is renamed, cast or filtered."""

    frame: DataFrame  # its rows; csv and json as text, with the column :data:`CORRUPT`
    columns: tuple[str, ...]  # its own columns
    location: str  # absolute path or table name
    version: int | None = None  # pinned version (Delta only)


def open_table(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> Table:
    """Open the table of an input for an evaluation date.

    Raises InputError if it is missing, of another format, or cannot be read. Raises ConfigError if it, or a file that
    it refers to, is outside the folders that the environment allows.
    """
    if models := config.of_models():
        tables = {model: open_table(spark, f"{name}.paths.{model}", one, date) for model, one in models.items()}
        return united_tables(tables, config.location(date), f"inputs.{name}.paths")
    if config.table is not None or not allowed_folders.is_limited():  # a catalog has its own permissions
        return _opened(spark, name, config, date)
    default = probes.default_file_system(spark)
    _check_path(spark, name, config.location(date), config.format)
    table = _opened(spark, name, config, date)
    # the log of a Delta table may name files elsewhere
    allowed_folders.require_each(f"inputs.{name}.path", table.frame.inputFiles(), default=default)
    return table


def united_tables(tables: Mapping[str, Table], location: str, where: str) -> Table:
    """Append the tables of the models to one another, each with its model as a constant.

    Raises InputError: their columns differ.
    """
    named = {model: table.frame.withColumn(C.MODEL_ID, F.lit(model)) for model, table in tables.items()}
    first = next(iter(named))
    columns = {model: _columns_of(frame) for model, frame in named.items()}
    faults = [
        Fault(f"{where}.{model}", f"columns {found}", f"those of {first}: {columns[first]}", "write them alike")
        for model, found in columns.items()
        if found != columns[first]
    ]
    if faults:
        raise InputError(*faults)
    frame = reduce(DataFrame.unionByName, named.values())
    return Table(frame, tuple(column for column in frame.columns if column != CORRUPT), location)


def _columns_of(frame: DataFrame) -> str:
    fields = sorted(frame.schema.fields, key=lambda field: field.name)
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields if field.name != CORRUPT)


def _check_path(spark: SparkSession, name: str, location: str, format_: str) -> None:
    """Refuse an input that is outside the allowed folders, by patterns and links too, before any byte is read."""
    where, default = f"inputs.{name}.path", probes.default_file_system(spark)
    allowed_folders.require_allowed((where, location), default=default)
    if format_ == "delta":  # its log names the files, so they are checked after it is read
        allowed_folders.require_each(where, allowed_folders.delta_log_paths(location), default=default)
        return
    with as_input_error(name, location, "files"):
        files = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(location).inputFiles()
    allowed_folders.require_each(where, files, default=default)


def _opened(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> Table:
    location = config.location(date)
    if not config.table:
        refuse_special(name, location)
    match config.format:
        case "delta":
            return _open_delta(spark, name, config, date)
        case "parquet" | "orc" | "table":
            return _open_typed(spark, name, config, location)
        case "csv":
            return _open_csv(spark, name, location, config.options)
        case "json":
            return _open_json(spark, name, location, config.options)
        case "trec":
            return _open_trec(spark, name, location, config.trec_form)


def _open_delta(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> Table:
    location = config.location(date)
    expected = EXPECTED["delta"] if config.version is None else f"{EXPECTED['delta']} with version {config.version}"
    with as_input_error(name, location, expected):
        version = _delta_version(spark, name, config, date)
        reader = spark.read.format("delta").option("versionAsOf", version)
        frame = reader.table(_quoted(config.table)) if config.table else reader.load(location)
        return Table(frame, tuple(frame.columns), location, version)


def _delta_version(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> int:
    if config.version is not None:
        return config.version
    location, moment = config.location(date), config.moment(date)
    newest = probes.local_delta_version(spark, location) if moment is None and not config.table else None
    if newest is not None:
        return newest
    table = _quoted(location) if config.table else f"delta.{C.quoted_name(location)}"
    version = probes.delta_version(spark, table, moment)
    if version is None:
        found = f"no version as old as {moment} at {location}"
        raise InputError(Fault(f"inputs.{name}.timestamp", found, "a time after the table was created"))
    return version


def _open_typed(spark: SparkSession, name: str, config: InputConfig, location: str) -> Table:
    """Open files whose columns have types, or what a catalog has by this name: a table of any format, or a view."""
    expected = "a table of the catalog" if config.table else EXPECTED[config.format]
    with as_input_error(name, location, expected):
        # Of ORC, the columns of all files: those of one alone would hide what only others have.
        reader = spark.read.option("mergeSchema", True) if config.format == "orc" else spark.read
        try:
            frame = reader.table(_quoted(config.table)) if config.table else reader.format(config.format).load(location)
        except AnalysisException as error:
            files = spark.read.text(location).inputFiles() if PARQUET_UUID in str(error) and not config.table else []
            schema = probes.parquet_schema(spark, min(files)) if files else None
            if schema is None:
                raise
            frame = reader.schema(schema).format(config.format).load(location)
        return Table(frame, tuple(frame.columns), location)


def _open_csv(spark: SparkSession, name: str, location: str, options: Mapping[str, str]) -> Table:
    """Open csv files, whose first line names the columns."""
    with as_input_error(name, location, EXPECTED["csv"]):
        header = probes.csv_header(spark, location, options)
    columns = checked_header(header, name, location, options)
    # enforceSchema=false: Spark compares the header of every file; with true it silently goes by position
    reader = spark.read.format("csv").options(**{**RFC_4180, **options}, header=True, enforceSchema=False)
    return _open_text(reader, name, location, columns)


def _open_json(spark: SparkSession, name: str, location: str, options: Mapping[str, str]) -> Table:
    """Open json lines: one object per line."""
    with as_input_error(name, location, EXPECTED["json"]):
        keys = probes.json_keys(spark, location, options)
    if not keys:
        raise InputError(missing_input(name, location, "json lines, one object per line", "no json object"))
    distinct = {key.casefold(): key for key in reversed(keys)}  # to Spark, 'Item' and 'item' are one column
    return _open_text(spark.read.format("json").options(**options), name, location, tuple(reversed(distinct.values())))


def _open_trec(spark: SparkSession, name: str, location: str, form: TrecForm | None) -> Table:
    """Open files of TREC; a line of another form is kept in :data:`CORRUPT`, with no column."""
    with as_input_error(name, location, EXPECTED["trec"]):
        first = probes.first_trec_line(spark, location)
    swapped = trec_files.swapped_fault(f"inputs.{name}", first, form, location) if form is not None else None
    if swapped is not None:
        raise InputError(swapped)
    with as_input_error(name, location, EXPECTED["trec"]):
        text = spark.read.text(location)
        line = F.regexp_replace("value", r"^\s+|\s+$", "")
        fields = F.split(line, r"\s+")
        columns, is_right = _of_qrels(fields) if form == "qrels" else _of_run(fields)
        others = [
            F.col(C.quoted_name(column)) for column in text.columns if column != "value"
        ]  # of folders of partitions
        kept = [F.when(is_right, column).alias(own) for own, column in columns.items()]
        corrupt = F.when(~is_right, F.col("value")).alias(CORRUPT)
        frame = text.where(~line.rlike("^(#|$)")).select(*kept, *others, corrupt)
        return Table(frame, tuple(column for column in frame.columns if column != CORRUPT), location)


def _of_run(fields: Column) -> tuple[dict[str, Column], Column]:
    """Return the columns of a run, and the condition that a line is one of it."""
    document, rank, score, name = (F.get(fields, place) for place in range(2, 6))
    has_rank = rank.rlike(trec_files.RANK)
    columns = {
        C.MODEL_ID: name,
        C.USER_ID: F.get(fields, 0),
        C.ITEM_ID: document,
        C.SCORE: score.cast("double"),
        C.RANK: F.when(has_rank, rank.cast("bigint")),
    }
    return columns, (F.size(fields) >= trec_files.FIELDS["run"]) & score.rlike(trec_files.NUMBER)


def _of_qrels(fields: Column) -> tuple[dict[str, Column], Column]:
    """Return the columns of judgements, and the condition that a line is one of them."""
    grade = F.get(fields, 3)
    columns = {C.USER_ID: F.get(fields, 0), C.ITEM_ID: F.get(fields, 2), C.GAIN: grade.cast("double")}
    is_grade = grade.rlike(trec_files.WHOLE_NUMBER)
    return columns, (F.size(fields) == trec_files.FIELDS["qrels"]) & is_grade


def _open_text(reader: DataFrameReader, name: str, location: str, columns: Sequence[str]) -> Table:
    schema = T.StructType([T.StructField(column, T.StringType()) for column in (*columns, CORRUPT)])
    with as_input_error(name, location, "readable files"):
        frame = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT).schema(schema).load(location)
        return Table(frame, tuple(column for column in frame.columns if column != CORRUPT), location)


def _quoted(table: str) -> str:
    """Quote each part of a table name."""
    return ".".join(map(C.quoted_name, table.split(".")))


def parquet_faults(spark: SparkSession, table: Table, names: Iterable[str], where: str, date: dt.date) -> list[Fault]:
    """Find columns that some files of a table lack, or have with another type than the table.

    Only the columns ``names`` are checked. If names of files or folders contain the date, only those files are read.
    """
    schemas: dict[str, T.StructType] = {}
    for file in chosen_files(sorted(table.frame.inputFiles()), date):
        try:
            if (schema := probes.parquet_schema(spark, file)) is not None:
                schemas[file] = schema
        except (PySparkException, Py4JError) as error:  # its message may not name the file
            found = f"a file that cannot be read, {_short(file)} ({first_line(str(error))})"
            return [Fault(where, found, "readable data files")]
    types = {field.name.casefold(): field.dataType.simpleString() for field in table.frame.schema.fields}
    return [fault for name in dict.fromkeys(names) for fault in _faults_of(name, types, schemas, where)]


def chosen_files(files: Sequence[str], date: dt.date) -> list[str]:
    """Choose the files to read: the first, whose columns Spark uses, and the last ones of the date, or of all.

    >>> import datetime
    >>> chosen_files(["f/day=2025-12-31/a", "f/day=2026-01-01/a", "f/day=2026-01-02/a"], datetime.date(2026, 1, 1))
    ['f/day=2025-12-31/a', 'f/day=2026-01-01/a']
    """
    of_date = [file for file in files if date.isoformat() in file]
    return list(dict.fromkeys([*files[:1], *(of_date or files)[-MOST_FILES:]]))


def _faults_of(name: str, types: Mapping[str, str], schemas: Mapping[str, T.StructType], where: str) -> list[Fault]:
    """Return the faults of a column, with one file of each kind: usually all files of a day are equal."""
    of_file = {file: _type(schema, name) for file, schema in schemas.items()}
    having = [file for file, found in of_file.items() if found]
    lacking = [file for file, found in of_file.items() if not found]
    fix = "write these files again, or read only the others, with path: or filters:"
    if having and lacking:
        found = f"no column {name!r} in {_short(lacking[0])}, while {_short(having[0])} has it"
        return [Fault(where, found, "the same columns in all files", fix)]
    wanted = types.get(name.casefold(), "")
    other = [file for file in having if of_file[file] != wanted and (of_file[file], wanted) not in _READ_AS]
    if other and wanted:
        found = f"column {name!r} of type {of_file[other[0]]} in {_short(other[0])}, and {wanted} in others"
        return [Fault(where, found, "one type in all files", fix)]
    return []


def _type(schema: T.StructType, name: str) -> str:
    folded = name.casefold()
    return next((field.dataType.simpleString() for field in schema.fields if field.name.casefold() == folded), "")


def _short(file: str) -> str:
    """Return the last folder and the name of a file."""
    return "/".join(unquote(file).split("/")[-2:])
