"""Open the table of an input unchanged: Delta at one version, a table or files with types, csv and json as text.

What cannot be opened, or be read later, is explained in one sentence; ``--debug`` shows Java's message.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, functions as F, types as T

from rankeval_spark import allowed_folders, columns as C
from rankeval_spark.allowed_folders import local_path, spark_address
from rankeval_spark.errors import CONDITION, Fault, InputError, first_line
from rankeval_spark.inputs import input_files, trec_files
from rankeval_spark.inputs.input_columns import CORRUPT, NANOSECONDS, PARQUET_UUID, UUIDS
from rankeval_spark.inputs.input_files import EXPECTED, RFC_4180, check_header, missing_input_fault
from rankeval_spark.inputs.spark import probes
from rankeval_spark.jar_faults import describe_linkage_error

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrameReader, SparkSession

    from rankeval_spark.config.inputs import InputConfig
    from rankeval_spark.inputs.trec_files import TrecForm

MAX_FILES: Final = 256
"""Files whose footers are read, which takes half a second; a table of years has many more."""

_NARROWER: Final = ("tinyint", "smallint", "int", "bigint")
_READ_AS: Final = {
    *((narrow, wide) for index, narrow in enumerate(_NARROWER) for wide in _NARROWER[index:]),
    *((narrow, "double") for narrow in ("tinyint", "smallint", "int", "float")),
}
"""Types that Spark reads as a wider type."""

_FOUND: Final = {
    "PATH_NOT_FOUND": input_files.NO_PATH,
    "DELTA_PATH_DOES_NOT_EXIST": input_files.NO_PATH,
    "TABLE_OR_VIEW_NOT_FOUND": "no such table",
    "SCHEMA_NOT_FOUND": "no such schema",
    "UNABLE_TO_INFER_SCHEMA": input_files.NO_FILES,
    "DELTA_MISSING_DELTA_TABLE": input_files.NO_DELTA,
    "DELTA_TABLE_NOT_FOUND": input_files.NO_DELTA,
    "DELTA_TABLE_ONLY_OPERATION": input_files.NO_DELTA,
    "DELTA_SCHEMA_NOT_SET": input_files.NO_DELTA,
    "DELTA_VERSION_NOT_FOUND": input_files.NO_VERSION,
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION": "a version older than the table keeps",
    "DELTA_LOG_FILE_NOT_FOUND": "a version older than the table keeps",
    "DELTA_VERSIONS_NOT_CONTIGUOUS": "a version older than the table keeps",
    "CATALOG_NOT_FOUND": "no such catalog",
    "FAILED_READ_FILE": "files of another format, or damaged ones",
}
_READ_FAILURES: Final = ("FAILED_READ_FILE", "MALFORMED_", "CANNOT_READ_", "DELTA_FILE_NOT_FOUND")
_FILE_GONE: Final = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_FILE_NOT_FOUND")
"""A file of the table's log that does not exist, usually because VACUUM removed it from an old version."""

_HEADER_DIFFERS: Final = "CSV header does not conform"
_CSV_FILE: Final = re.compile(r"CSV file: (\S+)")


def open_table(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> tuple[DataFrame, int | None]:
    """Open the table of an input for an evaluation date, and return it with the version of a Delta table.

    Columns of csv and json are text, and :data:`CORRUPT` is one of them. Files outside the allowed folders are refused.
    """
    if models := config.configs_by_model():
        tables = {model: open_table(spark, f"{name}.paths.{model}", own, date)[0] for model, own in models.items()}
        return append_models(tables, f"inputs.{name}.paths"), None
    if config.table is not None or not allowed_folders.is_limited():  # a catalog has its own permissions
        return _open_by_format(spark, name, config, date)
    default = probes.default_file_system(spark)
    _check_path(spark, name, spark_address(config.location(date)), config.format)
    frame, version = _open_by_format(spark, name, config, date)
    # the log of a Delta table may name files elsewhere
    allowed_folders.require_each(f"inputs.{name}.path", frame.inputFiles(), default=default)
    return frame, version


def append_models(tables: Mapping[str, DataFrame], where: str) -> DataFrame:
    """Append the tables of the models to one another, each with its model as a constant; other columns are refused."""
    named = {model: table.withColumn(C.MODEL_ID, F.lit(model)) for model, table in tables.items()}
    first, columns = next(iter(named)), dict[str, str]()
    for model, of_model in named.items():
        fields = sorted(of_model.schema.fields, key=lambda field: field.name)
        shown = (f"{field.name} {field.dataType.simpleString()}" for field in fields if field.name != CORRUPT)
        columns[model] = ", ".join(shown)
    faults = [
        Fault(f"{where}.{model}", f"columns {found}", f"those of {first}: {columns[first]}", "write them alike")
        for model, found in columns.items()
        if found != columns[first]
    ]
    if faults:
        raise InputError(*faults)
    return reduce(DataFrame.unionByName, named.values())


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


def _open_by_format(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> tuple[DataFrame, int | None]:
    """Open an input by its format, and return its version if it is a Delta table."""
    location = spark_address(config.location(date))
    path = None if config.table else local_path(location)
    for place in () if path is None else (path, *(path.iterdir() if path.is_dir() else ())):
        if place.exists() and not place.is_file() and not place.is_dir():  # Spark might read it for ever
            fix = "write its content to a file first"
            raise InputError(Fault(f"inputs.{name}", f"a pipe or a device: {place}", "a folder or file", fix))
    match config.format:
        case "delta":
            return _open_delta(spark, name, config, date)
        case "parquet" | "orc" | "table":
            return _open_typed(spark, name, config, location), None
        case "csv":
            with as_input_error(name, location, EXPECTED["csv"]):
                header = probes.csv_header(spark, location, config.options)
            columns = check_header(header, name, location, config.options)
            # enforceSchema=false: Spark compares the header of every file; with true it silently goes by position
            options = {**RFC_4180, **config.options}
            reader = spark.read.format("csv").options(**options, header=True, enforceSchema=False)
            return _open_text(reader, name, location, columns), None
        case "json":
            with as_input_error(name, location, EXPECTED["json"]):
                keys = probes.json_keys(spark, location, config.options)
            if not keys:
                expected = "json lines, one object per line"
                raise InputError(missing_input_fault(name, location, expected, "no json object"))
            distinct = {key.casefold(): key for key in reversed(keys)}  # to Spark, 'Item' and 'item' are one column
            reader = spark.read.format("json").options(**config.options)
            return _open_text(reader, name, location, tuple(reversed(distinct.values()))), None
        case "trec":
            return _open_trec(spark, name, location, config.trec_form), None


def _open_delta(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> tuple[DataFrame, int]:
    location, moment, version = spark_address(config.location(date)), config.moment(date), config.version
    expected = EXPECTED["delta"] if version is None else f"{EXPECTED['delta']} with version {version}"
    with as_input_error(name, location, expected):
        if version is None and moment is None and not config.table:
            version = probes.local_delta_version(spark, location)
        if version is None:
            table = _quote_table(location) if config.table else f"delta.{C.quoted_name(location)}"
            version = probes.delta_version(spark, table, moment)
        if version is None:
            found = f"no version as old as {moment} at {location}"
            raise InputError(Fault(f"inputs.{name}.timestamp", found, "a time after the table was created"))
        reader = spark.read.format("delta").option("versionAsOf", version)
        return reader.table(_quote_table(config.table)) if config.table else reader.load(location), version


def _open_typed(spark: SparkSession, name: str, config: InputConfig, location: str) -> DataFrame:
    """Open files whose columns have types, or what a catalog has by this name: a table of any format, or a view."""
    expected = "a table of the catalog" if config.table else EXPECTED[config.format]
    with as_input_error(name, location, expected):
        # Of ORC, the columns of all files: those of one alone would hide what only others have.
        reader = spark.read.option("mergeSchema", True) if config.format == "orc" else spark.read
        try:
            return (
                reader.table(_quote_table(config.table))
                if config.table
                else reader.format(config.format).load(location)
            )
        except AnalysisException as error:
            files = spark.read.text(location).inputFiles() if PARQUET_UUID in str(error) and not config.table else []
            schema = probes.parquet_schema(spark, min(files)) if files else None
            if schema is None:
                raise
            return reader.schema(schema).format(config.format).load(location)


def _open_trec(spark: SparkSession, name: str, location: str, form: TrecForm | None) -> DataFrame:
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
        topic, _, document, fourth, fifth, run = (F.get(fields, place) for place in range(6))
        if form == "qrels":
            columns = {C.USER_ID: topic, C.ITEM_ID: document, C.GAIN: fourth.cast("double")}
            is_right = (F.size(fields) == trec_files.FIELDS["qrels"]) & fourth.rlike(trec_files.WHOLE_NUMBER)
        else:
            rank = F.when(fourth.rlike(trec_files.RANK), fourth.cast("bigint"))
            columns = {C.MODEL_ID: run, C.USER_ID: topic, C.ITEM_ID: document, C.SCORE: fifth.cast("double")}
            columns[C.RANK] = rank
            is_right = (F.size(fields) >= trec_files.FIELDS["run"]) & fifth.rlike(trec_files.NUMBER)
        of_folders = [F.col(C.quoted_name(column)) for column in text.columns if column != "value"]
        kept = [F.when(is_right, column).alias(name) for name, column in columns.items()]
        corrupt = F.when(~is_right, F.col("value")).alias(CORRUPT)
        return text.where(~line.rlike("^(#|$)")).select(*kept, *of_folders, corrupt)


def _open_text(reader: DataFrameReader, name: str, location: str, columns: Sequence[str]) -> DataFrame:
    """Read csv or json with all columns as text, and lines that cannot be split in :data:`CORRUPT`."""
    schema = T.StructType([T.StructField(column, T.StringType()) for column in (*columns, CORRUPT)])
    with as_input_error(name, location, "readable files"):
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
        return reader.schema(schema).load(location)


def _quote_table(table: str) -> str:
    return ".".join(map(C.quoted_name, table.split(".")))


def parquet_faults(
    spark: SparkSession, table: DataFrame, names: Iterable[str], where: str, date: dt.date
) -> list[Fault]:
    """Find columns, of ``names``, that some files of the date lack, or have with another type than the table."""

    def types_by_name(schema: T.StructType) -> dict[str, str]:
        return {field.name.casefold(): field.dataType.simpleString() for field in reversed(schema.fields)}

    def short_name(file: str) -> str:  # the last folder and the name
        return "/".join(unquote(file).split("/")[-2:])

    by_file: dict[str, dict[str, str]] = {}
    for file in chosen_files(sorted(table.inputFiles()), date):
        try:
            if (schema := probes.parquet_schema(spark, file)) is not None:
                by_file[file] = types_by_name(schema)
        except (PySparkException, Py4JError) as error:  # its message may not name the file
            found = f"a file that cannot be read, {short_name(file)} ({first_line(str(error))})"
            return [Fault(where, found, "readable data files")]
    table_types, faults = types_by_name(table.schema), []
    fix = "write these files again, or read only the others, with path: or filters:"
    for name in dict.fromkeys(names):  # with one file of each kind: usually all files of a day are equal
        key = name.casefold()
        lacking = next((file for file, types in by_file.items() if key not in types), None)
        having = {file: types[key] for file, types in by_file.items() if key in types}  # type of the column
        wanted = table_types.get(key)
        other = next((file for file, type_ in having.items() if not _can_read_as(type_, wanted)), None)
        if having and lacking is not None:
            found = f"no column {name!r} in {short_name(lacking)}, while {short_name(next(iter(having)))} has it"
            faults.append(Fault(where, found, "the same columns in all files", fix))
        elif other is not None:
            found = f"column {name!r} of type {having[other]} in {short_name(other)}, and {wanted} in others"
            faults.append(Fault(where, found, "one type in all files", fix))
    return faults


def _can_read_as(type_: str, wanted: str | None) -> bool:
    """Return whether Spark reads a column of a file in the type of the table, any where that is None."""
    return wanted is None or type_ == wanted or (type_, wanted) in _READ_AS


def chosen_files(files: Sequence[str], date: dt.date) -> list[str]:
    """Choose the files to read: the first, whose columns Spark uses, and the last ones of the date, or of all.

    >>> import datetime
    >>> chosen_files(["f/day=2025-12-31/a", "f/day=2026-01-01/a", "f/day=2026-01-02/a"], datetime.date(2026, 1, 1))
    ['f/day=2025-12-31/a', 'f/day=2026-01-01/a']
    """
    of_date = [file for file in files if date.isoformat() in file]
    return list(dict.fromkeys([*files[:1], *(of_date or files)[-MAX_FILES:]]))


@contextmanager
def as_input_error(name: str, location: str, expected: str) -> Iterator[None]:
    """Convert what Spark raises while it opens an input into an :class:`InputError`, which says what was expected."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if describe_linkage_error(
            str(error)
        ):  # which is no fault of the input: `apps.error_translation` says what it is one of
            raise
        text = str(error)
        if "ClassNotFoundException" in text and "FileSystem" in text:
            found = "a file system for which Spark has no jar"
        elif "(TIMESTAMP(NANOS" in text:
            found = NANOSECONDS
        elif PARQUET_UUID in text:
            found = UUIDS
        else:
            known = _FOUND.get(next(iter(_error_conditions(error)), "").partition(".")[0])
            found = known or f"a failure ({first_line(text)})"
        raise InputError(missing_input_fault(name, location, expected, found)) from error


def explain(error: BaseException, locations: dict[str, str]) -> InputError | None:
    """Return the InputError behind the failure of a running job, by the ``locations`` of inputs; else None."""
    text = str(error)
    # any condition in the text, because the cause follows the condition of the failed job
    if not any(name.startswith(_READ_FAILURES) for name in _error_conditions(error)) and _HEADER_DIFFERS not in text:
        return None
    concerned = [name for name, location in locations.items() if (path := local_path(location)) and str(path) in text]
    where = f"inputs.{concerned[0]}" if len(concerned) == 1 else "inputs"
    if _HEADER_DIFFERS in text:
        file = _CSV_FILE.search(text)
        found = f"csv files with different headers{f', among them {unquote(file[1])}' if file else ''}"
        return InputError(Fault(where, found, "the same header in all files of an input"))
    if any(name.startswith(_FILE_GONE) for name in _error_conditions(error)):
        fix = "VACUUM removes the files of old versions: read a later one, or raise delta.deletedFileRetentionDuration"
        return InputError(Fault(where, "a missing data file", "every file of the version that is read", fix))
    return InputError(Fault(where, f"a file that cannot be read ({first_line(text)})", "readable data files"))


def _error_conditions(error: BaseException) -> list[str]:
    """Return Spark's error conditions; an exception of Java has them in its text."""
    given = error.getCondition() if isinstance(error, PySparkException) else None
    return [*([given] if given else []), *CONDITION.findall(str(error))]
