"""Inputs of an evaluation: where each is, how its columns are called, and how its rows are read.

Filters choose rows, events become gains, and a row may be a whole list.
"""

from __future__ import annotations

import datetime as dt
import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.columns import MAX_ROWS_PER_USER
from rankeval_spark.config.base import (
    DAYS_PATTERN,
    MAX_WINDOW_DAYS,
    Grace,
    Model,
    ModelWithPaths,
    Number,
    PathText,
    TableName,
    TimeZone,
    Whole,
    check_placeholders,
    date_placeholder,
    fault_error,
    fill_date,
    microseconds,
    nearest_window,
    parse_days,
    refuse_faults,
    resolve_path,
)
from rankeval_spark.config.inference import ModelName
from rankeval_spark.errors import Fault, nearest
from rankeval_spark.time_zones import UTC, moment_of

ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
FilterOp = Literal["=", "!=", "<", "<=", ">", ">=", "in", "last", "next"]
WINDOWS: Final = ("last", "next")  # operators of a window of days, which an input has as two plain filters
Format = Literal["delta", "parquet", "orc", "csv", "json", "trec", "table"]
IN_CATALOG: Final = ("delta", "parquet", "table")  # formats of a table that is named
IdType = Literal["string", "integer"]
RanksFrom = Annotated[Whole, Field(ge=0, le=1)]
PathsOfModels = Mapping[ModelName, PathText]
MaxRows = Annotated[Whole, Field(ge=1, lt=2**63)]
Separator = Annotated[str, StringConstraints(min_length=1, max_length=10)]
Scalar = str | int | float | bool

# What the operators but ``in`` and windows do with a column, of Spark or of Arrow, and a value.
COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **{"=": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
# Options of Spark's readers that a config may set, by format.
READER_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "csv": (
        *("sep", "quote", "escape", "comment", "encoding", "lineSep", "nullValue", "emptyValue"),
        *("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "multiLine"),
    ),
    "json": ("lineSep", "multiLine"),
}
POSITION: Final = "_position"  # place of an item in its array, from 1, once a list is written as one row per item
_WHERE: Final = ("format", "path", "paths", "table")  # keys that say where a table is


def _check_filter_value(value: Any) -> Scalar | tuple[Scalar, ...]:  # noqa: ANN401 - a file can hold anything
    elements = value if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(element, Scalar) for element in elements):
        raise fault_error(Fault("", repr(value), "text, a number, true, false, or a list of them"))
    checked = tuple(check_placeholders(element) if isinstance(element, str) else element for element in elements)
    return checked if isinstance(value, list | tuple) else checked[0]


_SCALAR_SCHEMA: Final = {"type": ["string", "number", "boolean"]}
FilterValue = Annotated[
    Scalar | tuple[Scalar, ...],
    PlainValidator(_check_filter_value),
    PlainSerializer(lambda value: value),
    WithJsonSchema({"anyOf": [_SCALAR_SCHEMA, {"type": "array", "items": _SCALAR_SCHEMA, "minItems": 1}]}),
]


class Filter(Model):
    """Condition on a column of the table. Rows with NULL in the column never meet it."""

    column: ColumnName
    """Name of the column in the table."""
    op: FilterOp
    """Comparison operator; `in` takes a list. `last` and `next` take a number of days: those up to and including the
    evaluation date, and those after it."""
    value: FilterValue
    """Value to compare with, converted to the type of the column; `{date}` is the evaluation date, `{date-1}` the day
    before, and where the column has times, the moment at which that day begins in `time_zone`. A number is compared
    with the numeric value of a text column. With `last` and `next`, 1d to 3660d."""

    _place: int = PrivateAttr(default=0)

    @property
    def place(self) -> int:
        """Place among the filters of its input in the config, from 0; the two filters of a window share one."""
        return self._place

    @model_validator(mode="after")
    def _fits_its_op(self) -> Filter:
        if self.op in WINDOWS:
            try:
                parse_days(self.value)
            except ValueError:
                expected = f"whole days from 1d to {MAX_WINDOW_DAYS}d with op {self.op!r}"
                raise fault_error(Fault(".value", repr(self.value), expected, nearest_window(self.value))) from None
        elif isinstance(self.value, tuple) != (self.op == "in"):
            expected = "a list of values" if self.op == "in" else "a single value"
            fix = "" if self.op == "in" else "use op: in for a list"
            raise fault_error(Fault(".value", repr(self.value), f"{expected} with op {self.op!r}", fix))
        elif self.value == ():
            raise fault_error(Fault(".value", "an empty list", "at least one value"))
        return self

    def expand_window(self, place: int) -> tuple[Filter, ...]:
        """Return the filter, or the two that a window of days is short for, with its place among all filters."""
        changes: list[dict[str, object]] = [{}]
        if self.op in WINDOWS:
            days = parse_days(self.value)
            first, last = (1 - days, 0) if self.op == "last" else (1, days)
            # To before the day after the last one, so that they hold for times too.
            changes = [
                {"op": ">=", "value": date_placeholder(first)},
                {"op": "<", "value": date_placeholder(last + 1)},
            ]
        filters = tuple(self.model_copy(update=change) for change in changes)
        for filter_ in filters:
            filter_._place = place
        return filters

    def values(self, date: dt.date) -> tuple[Scalar, ...]:
        """Return the values to compare with, with the date filled in; one value unless the operator is ``in``."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(fill_date(value, date) if isinstance(value, str) else value for value in values)

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core_schema: Any,  # noqa: ANN401 - private type of pydantic
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        """Add how days are written, for checks in editors."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        of_window = {"properties": {"op": {"enum": list(WINDOWS)}}, "required": ["op"]}
        days = {"properties": {"value": {"type": "string", "pattern": f"^{DAYS_PATTERN}$"}}}
        schema.update({"if": of_window, "then": days})
        return schema


def _with_text_keys(values: Any) -> Any:  # noqa: ANN401 - a file can hold anything
    """Write keys as text: YAML makes numbers of ratings, and truth values of true and false."""
    if not isinstance(values, Mapping):
        return values
    return {str(key).lower() if isinstance(key, bool) else str(key): value for key, value in values.items()}


_GAINS_SCHEMA: Final = {"type": "object", "additionalProperties": {"type": "number"}}


class Gains(Model):
    """Gains from a column of events, ratings or seconds: by the gain of each value, or by edges."""

    column: ColumnName
    """Name of the column in the table."""
    values: Annotated[Mapping[str, Number], BeforeValidator(_with_text_keys), WithJsonSchema(_GAINS_SCHEMA)] = {}
    """Gain of each value, such as {purchase: 3, cart: 2, view: 1, skip: 0}. Rows with another value have no gain, which
    the check `invalid_gains` counts."""
    edges: tuple[Number, ...] = ()
    """Ascending numbers; the gain is how many of them the number in the column reaches. [4] is a threshold; seconds by
    [10, 30, 60] have the gains 0 to 3."""

    @model_validator(mode="after")
    def _values_or_edges(self) -> Gains:
        if bool(self.values) == bool(self.edges):
            found = "both values and edges" if self.values else "neither values nor edges"
            raise fault_error(Fault("", found, "one of them", "write values: {purchase: 3, view: 1} or edges: [4]"))
        if any(low >= high for low, high in pairwise(self.edges)):
            raise fault_error(Fault(".edges", str(list(self.edges)), "ascending numbers, each once"))
        return self

    @property
    def renames(self) -> Mapping[str, str]:
        """The column by its canonical name."""
        return {C.GAIN: self.column}

    @property
    def places(self) -> Mapping[str, str]:
        """Key that names it, below its input."""
        return {C.GAIN: "gains.column"}

    def number_values(self) -> dict[float, float] | None:
        """Return the gain of each value as a number; None where a value is no number."""
        try:
            return {float(value): gain for value, gain in self.values.items()}
        except ValueError:
            return None


class NestedItems(Model):
    """Column of the items, where a row of the table holds several."""

    items: ColumnName
    """Column of the ids: an array, text with a JSON array or a separator, or `column.field` for a field of an array of
    structs."""
    separator: Separator | None = None
    """Separator of the elements where a cell is text, such as " " or "|". Blanks around elements and empty elements do
    not count. Without this key, such text is a JSON array."""

    @property
    def arrays(self) -> Mapping[str, str]:
        """Columns with several values a row, by the canonical name of a value."""
        return {C.ITEM_ID: self.items}

    @property
    def renames(self) -> Mapping[str, str]:
        """The columns of an item by their canonical names."""
        return self.arrays

    @property
    def places(self) -> Mapping[str, str]:
        """Key that names each of them, below its input."""
        return {C.ITEM_ID: "nested.items", C.SCORE: "nested.scores", C.GAIN: "nested.gains"}

    def has_item_values(self, name: str, columns: Collection[str]) -> bool:
        """Return True if a column of the table has the items, scores or gains of a list, or their canonical name.

        ``columns`` are all columns of the table.
        """
        arrays = {column_and_field(path, columns)[0] for path in self.arrays.values()}
        return name in {*arrays, *self.arrays, C.ITEM_ID, C.SCORE, C.RANK}


class Nested(NestedItems):
    """Columns of items and scores, best item first, where a row of the table is a whole list."""

    scores: ColumnName | None = None
    """Column of the scores, of the same forms. Without it, the order of the items is their rank."""

    @property
    @override
    def arrays(self) -> Mapping[str, str]:
        return {C.ITEM_ID: self.items, **({C.SCORE: self.scores} if self.scores else {})}

    @property
    @override
    def renames(self) -> Mapping[str, str]:
        return {**self.arrays, C.RANK: POSITION}


class NestedJudgements(NestedItems):
    """Columns of items and gains, where a row of the table holds several judgements of a user."""

    gains: ColumnName | None = None
    """Column of the gains, of the same forms, one for each item. Without it, all items of a row have its `gain`."""

    @property
    @override
    def arrays(self) -> Mapping[str, str]:
        return {C.ITEM_ID: self.items, **({C.GAIN: self.gains} if self.gains else {})}


def column_and_field(path: str, columns: Collection[str]) -> tuple[str, str | None]:
    """Split ``column.field`` at its last dot; a name that the table has is a column.

    >>> column_and_field("recommendations.movieId", ["user", "recommendations"])
    ('recommendations', 'movieId')
    >>> column_and_field("items", ["user", "items"]), column_and_field("a.b", ["a.b"])
    (('items', None), ('a.b', None))
    """
    head, dot, field = path.rpartition(".")
    return (path, None) if path in columns or not dot else (head, field)


def _check_timestamp(text: str) -> str:
    check_placeholders(text)
    try:
        parse_moment(fill_date(text, dt.date(2000, 1, 1)))
    except ValueError:
        expected = "a time such as 2026-01-31 06:00:00 (in time_zone) or 2026-01-31T06:00:00+02:00"
        raise fault_error(Fault("", repr(text), expected)) from None
    return text


def parse_time(text: str) -> dt.datetime:
    """Parse an ISO time, with or without an offset; raise ValueError for other text."""
    return dt.datetime.fromisoformat(re.sub("z$", "Z", text))  # only the capital letter is known


def parse_moment(text: str, time_zone: str = UTC) -> dt.datetime:
    """Parse an ISO time, in the time zone without an offset; raise ValueError for other text."""
    time = parse_time(text)
    return time if time.tzinfo else moment_of(time, time_zone)


def _option_text(value: Any) -> str:  # noqa: ANN401 - a file can hold anything
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        raise fault_error(Fault("", repr(value), "text, true or false", "put it in quotes"))
    return value


OptionValue = Annotated[str, PlainValidator(_option_text), WithJsonSchema({"type": ["string", "boolean"]})]


class InputRows(Model):
    """Keys that say how rows of an input are read, from a file, a table or a frame of a call."""

    canonical_columns: ClassVar[tuple[str, ...]] = ()
    id_columns: ClassVar[tuple[str, ...]] = (C.USER_ID, C.ITEM_ID)
    allows_other_columns: ClassVar[bool] = False

    format: Format | None = None
    """Format of the files; a call needs it only for a path whose ending does not say it."""
    columns: Mapping[str, ColumnName] = {}
    """Names of columns in the table, by canonical name; only needed where the two differ."""
    types: Mapping[str, IdType] = {}
    """Types to which ids are cast, such as user_id: string. Without a cast, ids of csv and json are text, decimals
    without a fraction are numbers, and UUIDs are text."""

    @field_validator("columns", "types")
    @classmethod
    def _names_are_known(cls, given: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        if info.field_name == "types" or not cls.allows_other_columns:
            refuse_unknown_keys(given, cls.id_columns if info.field_name == "types" else cls.canonical_columns)
        return given

    @property
    def nested_items(self) -> NestedItems | None:
        """Columns of the items, where a row of the table has several; None where it has one."""
        return None

    @property
    def shapes(self) -> tuple[Gains | NestedItems, ...]:
        """Canonical columns that its rows have in another form; none where each column is in `columns`."""
        return () if self.nested_items is None else (self.nested_items,)

    @property
    def renames(self) -> Mapping[str, str]:
        """Names in the table by canonical name, where one is given."""
        return {**self.columns, **{name: column for shape in self.shapes for name, column in shape.renames.items()}}

    @property
    def places(self) -> Mapping[str, str]:
        """Key that names a column, by canonical name, where it is not `columns`."""
        return {name: key for shape in self.shapes for name, key in shape.places.items()}

    def columns_read(self, names: Iterable[str], columns: Collection[str]) -> list[str]:
        """Return the columns of the table that are read for canonical ``names``, those that it does not have too.

        ``columns`` are all columns of the table.
        """
        paths = [self.renames.get(name, name) for name in names]
        return paths if self.nested_items is None else [column_and_field(path, columns)[0] for path in paths]


def refuse_unknown_keys(given: Collection[str], known: Collection[str]) -> None:
    """Refuse keys that are not known, each with the nearest one."""
    expected = f"one of {', '.join(known)}"
    unknown = [name for name in given if name not in known]
    refuse_faults([Fault(f".{name}", f"unknown key {name!r}", expected, nearest(name, known)) for name in unknown])


class LogRows(InputRows):
    """Rows of the recommendation log: one per recommended item, or one per list."""

    canonical_columns = (
        *(C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID, C.SCORE, C.RANK),
        *(C.PREDICTED_REWARD, C.RECOMMENDED_AT),
    )

    ranks_from: RanksFrom = 1
    """Rank of the first item of a list in the table: 1 or 0."""
    nested: Nested | None = None
    """Columns of the items and scores of a list, where a row of the table is a whole list."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        named = [f"columns.{name}" for name in (C.ITEM_ID, C.SCORE, C.RANK) if name in self.columns]
        named += ["ranks_from"] if self.ranks_from != 1 else []
        if self.nested is not None and named:
            found = f"both nested and {', '.join(named)}"
            fix = "nested names the items and scores, and their order is the rank: remove the other keys"
            raise fault_error(Fault("", found, "one of them", fix))
        return self

    @property
    @override
    def nested_items(self) -> Nested | None:
        return self.nested


class JudgementRows(InputRows):
    """Rows of the held-out interactions: one per (user, item) or (user, list, item)."""

    canonical_columns = (C.USER_ID, C.LIST_ID, C.ITEM_ID, C.GAIN, C.INTERACTED_AT, C.VALUE, C.PROPENSITY, C.WEIGHT)

    gains: Gains | None = None
    """Conversion of events, ratings or seconds to gains, instead of a column with gains."""
    nested: NestedJudgements | None = None
    """Columns of the items and gains, where a row of the table holds several judgements of a user, all of its time."""

    @model_validator(mode="after")
    def _one_source_of_gains(self) -> Self:
        if self.gains is not None and C.GAIN in self.columns:
            found = "both gains and columns.gain"
            raise fault_error(Fault("", found, "one of them", "remove columns.gain: gains.column names the column"))
        if self.nested is not None and (self.gains is not None or C.ITEM_ID in self.columns):
            found = f"both nested and {'gains' if self.gains is not None else f'columns.{C.ITEM_ID}'}"
            raise fault_error(Fault("", found, "one of them", "nested.items names the column of the items"))
        if self.nested is not None and self.nested.gains is not None and C.GAIN in self.columns:
            found = "both nested.gains and columns.gain"
            raise fault_error(
                Fault("", found, "one of them", "remove columns.gain, or nested.gains for one gain a row")
            )
        return self

    @property
    @override
    def nested_items(self) -> NestedJudgements | None:
        return self.nested

    @property
    @override
    def shapes(self) -> tuple[Gains | NestedItems, ...]:
        return tuple(shape for shape in (self.nested, self.gains) if shape is not None)


class SegmentRows(InputRows):
    """Rows of the segments: one per user, with a column per segment in addition to user_id."""

    canonical_columns = (C.USER_ID,)
    id_columns = (C.USER_ID,)
    allows_other_columns = True


class TrainRows(InputRows):
    """Rows of the training interactions: one each, with an optional time."""

    canonical_columns = (C.USER_ID, C.ITEM_ID, C.INTERACTED_AT)


class ItemRows(InputRows):
    """Rows of the catalogue: one per item, with its categories, vector, date and title, all optional."""

    canonical_columns = (C.ITEM_ID, C.CATEGORIES, C.VECTOR, C.PUBLISHED_AT, C.TITLE)
    id_columns = (C.ITEM_ID,)

    list_separator: Separator | None = None
    """Separator of the elements where categories or vectors are text. Without this key, such text is a JSON array."""


class UserValueRows(InputRows):
    """Rows of own values of users: one for each user, name and, where values differ by model, model."""

    canonical_columns = (C.USER_ID, C.MODEL_ID, C.NAME, C.VALUE)
    id_columns = (C.USER_ID,)


class UserWeightRows(InputRows):
    """Rows of the users' weights in the means: one per user."""

    canonical_columns = (C.USER_ID, C.WEIGHT)
    id_columns = (C.USER_ID,)


class FrameInputs(Model):
    """Keys that say how frames of a call are read, as a config has them for its inputs."""

    recommendations: LogRows = LogRows()
    held_out: JudgementRows = JudgementRows()
    segments: SegmentRows = SegmentRows()
    train: TrainRows = TrainRows()
    items: ItemRows = ItemRows()
    user_values: UserValueRows = UserValueRows()
    user_weights: UserWeightRows = UserWeightRows()
    max_rows_per_user: MaxRows = MAX_ROWS_PER_USER
    time_zone: TimeZone = UTC

    @property
    def frames(self) -> dict[str, InputRows]:
        """Rows of each frame, by its name."""
        return {name: rows for name, rows in self if isinstance(rows, InputRows)}


class InputConfig(InputRows, ModelWithPaths):
    """Location of one input, and how its rows are read."""

    trec_form: ClassVar[Literal["run", "qrels"] | None] = None

    format: Format
    """Format of the files or the table. `table` is a table or view of the catalog in any format that Spark reads. Of
    trec, the recommendations are a run, and held_out the judgements (qrels)."""
    path: PathText | None = None
    """Folder or file, relative to the config file. `{date}` is the evaluation date, `{date-1}` the day before."""
    table: TableName | None = None
    """Name in the catalog, as `[catalog.][schema.]table`, instead of a path; with formats delta, parquet and table."""
    filters: tuple[Filter, ...] = ()
    """Conditions; rows must meet all of them."""
    version: Annotated[Whole, Field(ge=0, lt=2**63)] | None = None
    """Version of a Delta table. Without version and timestamp, the newest version is read."""
    timestamp: Annotated[str, AfterValidator(_check_timestamp)] | None = None
    """Time whose newest version of a Delta table is read; in `time_zone` unless it has an offset."""
    options: Mapping[str, OptionValue] = {}
    """Options of Spark's csv or json reader."""

    _time_zone: str = PrivateAttr(default=UTC)

    @property
    def time_zone(self) -> str:
        """Zone of days, and of times that name none."""
        return self._time_zone

    def set_time_zone(self, time_zone: str) -> None:
        """Set the zone of the evaluation that reads the input."""
        self._time_zone = time_zone

    @field_validator("filters")
    @classmethod
    def _windows_become_plain(cls, filters: tuple[Filter, ...]) -> tuple[Filter, ...]:
        return tuple(plain for place, filter_ in enumerate(filters) for plain in filter_.expand_window(place))

    @field_validator("options")
    @classmethod
    def _options_are_of_the_reader(cls, given: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        if format_ := info.data.get("format"):
            known = READER_OPTIONS.get(format_, ())
            if given and not known:
                raise fault_error(Fault("", f"reader options with format {format_}", "none", "remove them"))
            refuse_unknown_keys(given, known)
        return given

    @model_validator(mode="after")
    def _fits_its_format(self) -> InputConfig:
        faults = self._place_faults()
        given = [name for name in ("version", "timestamp") if getattr(self, name) is not None]
        if given and self.format != "delta":
            faults.append(Fault(f".{given[0]}", f"{given[0]} with format {self.format}", "format: delta", "remove it"))
        elif len(given) > 1:
            faults.append(Fault("", "both version and timestamp", "one of them", "remove one"))
        refuse_faults(faults)
        return self

    def _place_faults(self) -> list[Fault]:
        if self.format == "trec" and self.trec_form is None:
            return [Fault(".format", "format trec", "another format", "only a run and its judgements are TREC files")]
        if (self.path is None) == (self.table is None):
            found = "neither path nor table" if self.path is None else "both path and table"
            return [Fault("", found, "one of them", "give the path of the files, or the name of a catalog table")]
        if self.table is None and self.format == "table":
            return [Fault(".path", "a path with format table", "the name of a table or view", "use table:")]
        if self.table is not None and self.format not in IN_CATALOG:
            fix = "write format: table, or use path:"
            return [Fault(".table", f"a catalog table of format {self.format}", ", ".join(IN_CATALOG), fix)]
        return []

    def configs_by_model(self) -> Mapping[str, InputConfig]:
        """Return a config for the path of each model; empty where all models are in one place."""
        return {}

    def locations(self, date: dt.date) -> Mapping[str, str]:
        """Return the absolute paths that are read for an evaluation date, by their keys; none of a catalog."""
        if models := self.configs_by_model():
            return {f"paths.{model}": one.location(date) for model, one in models.items()}
        return {} if self.path is None else {"path": self.location(date)}

    def location(self, date: dt.date) -> str:
        """Return the absolute path for an evaluation date, or the name of the table; a JSON object of several paths."""
        if models := self.configs_by_model():
            return json.dumps({model: one.location(date) for model, one in models.items()}, ensure_ascii=False)
        if self.table is not None:
            return self.table
        return resolve_path(fill_date(self.path or "", date), self._folder)

    def moment(self, date: dt.date) -> dt.datetime | None:
        """Return the time whose version of a Delta table is read; None without one."""
        return None if self.timestamp is None else parse_moment(fill_date(self.timestamp, date), self.time_zone)

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core_schema: Any,  # noqa: ANN401 - private type of pydantic
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        """Add the keys of `columns`, `types` and `options`, for editors; where the table is comes first."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        keys = schema["properties"]
        schema["properties"] = {name: keys[name] for name in _WHERE if name in keys} | keys
        known = {"types": cls.id_columns, "options": dict.fromkeys(sum(READER_OPTIONS.values(), ()))}
        if not cls.allows_other_columns:
            known["columns"] = cls.canonical_columns
        for name, keys in known.items():
            schema["properties"][name]["propertyNames"] = {"enum": list(keys)}
        return schema


class RecommendationsInput(InputConfig, LogRows):
    """The recommendation log: one row per recommended item, with score, rank or both, or one row per list."""

    trec_form = "run"

    paths: PathsOfModels | None = None
    """Instead of path, where the rows of each model are in a place of their own: paths by model, such as
    {als: lists/als, popular: lists/popular}. All have the same format and columns. The models are expected as if
    `models` named them, unless a filter on model_id chooses among them."""
    sampled_candidates: Annotated[Whole, Field(ge=1)] | None = None
    """Number of candidates that each list ranks, where these are a sample of the catalogue, such as 100 for a relevant
    item and 99 that were drawn. The check `sampled_candidates` then says that values hold for such lists only."""

    @property
    def expected_models(self) -> tuple[str, ...] | None:
        """Models that must have rows: the keys of `paths`; None without them, or where a filter chooses among them."""
        is_narrowed = any(each.column.casefold() == C.MODEL_ID for each in self.filters)
        return tuple(self.paths) if self.paths and not is_narrowed else None

    @override
    def _place_faults(self) -> list[Fault]:
        given = [name for name in ("path", "table", "version") if getattr(self, name) is not None]
        given += [f"columns.{C.MODEL_ID}"] if C.MODEL_ID in self.columns else []
        if self.paths == {}:
            return [Fault(".paths", "no path", "a path of each model")]
        if self.paths and given:
            fix = "the keys of paths name the models, and each place is read as it is: remove the other keys"
            return [Fault("", f"both paths and {', '.join(given)}", "one of them", fix)]
        if self.paths and self.format == "table":
            fix = "make a view that unites them, with the name of each model as a constant"
            return [Fault(".paths", "paths with format table", "the name of a table or view", fix)]
        return [] if self.paths else super()._place_faults()

    @override
    def configs_by_model(self) -> Mapping[str, InputConfig]:
        return {
            model: self.model_copy(update={"path": path, "paths": None}) for model, path in (self.paths or {}).items()
        }


class HeldOutInput(InputConfig, JudgementRows):
    """The held-out interactions: one row per (user, item) or (user, list, item), with an optional gain (default 1)."""

    trec_form = "qrels"

    late_data_grace: Grace | None = None
    """Longest delay of events, such as 6h; without it, none. With `policies.attribution`, a night has to wait that
    long after the window of its last list: see the check `open_windows`. The clock is that of the run, also with
    `version`; with `timestamp`, that time counts."""

    def complete_until(self, date: dt.date, now: dt.datetime) -> dt.datetime:
        """Return the moment up to which all events are there: the grace before now, or before the version that is read.

        The table is read ``now``; a Delta table can be read as it was at an earlier time.
        """
        moment = self.moment(date)
        grace = dt.timedelta(microseconds=microseconds(self.late_data_grace or "0s"))
        return (now if moment is None else min(now, moment)) - grace


class SegmentsInput(InputConfig, SegmentRows):
    """The segments: one row per user, one column per segment in addition to user_id."""


class TrainInput(InputConfig, TrainRows):
    """The training interactions: one row each, with an optional time."""


class ItemsInput(InputConfig, ItemRows):
    """The catalogue: one row per item, with its categories, vector, date and title, all optional."""


class UserValuesInput(InputConfig, UserValueRows):
    """Own values of users: one row for each user, name and, where values differ by model, model."""


class UserWeightsInput(InputConfig, UserWeightRows):
    """The users' weights in the means: one row per user."""


class Inputs(Model):
    """The tables that an evaluation reads."""

    recommendations: RecommendationsInput
    """The recommendation log."""
    held_out: HeldOutInput
    """The judgements: interactions of the users after the recommendations."""
    segments: SegmentsInput | None = None
    """Properties of users, which `slices` and `bands` name."""
    train: TrainInput | None = None
    """Training data of the models, for measures such as popularity and novelty."""
    items: ItemsInput | None = None
    """The catalogue, for measures of categories, vectors or the age of items."""
    user_values: UserValuesInput | None = None
    """Own values of users, such as revenue, that the measure UserValue reads."""
    user_weights: UserWeightsInput | None = None
    """Weights of users: every mean over users becomes the sum of weight times value over the sum of weights."""
    max_rows_per_user: MaxRows = MAX_ROWS_PER_USER
    """Largest number of rows of one user in all inputs together; with more, the run fails. A worker holds all rows of a
    user at once. Such a user is often a robot, or the shared id of users who are not logged in."""
    time_zone: TimeZone = UTC
    """Zone of all days, such as Asia/Tokyo: of the evaluation date, of `{date}` and windows in filters, and of the days
    of times. Times of the inputs without a zone are read in it; others are the moments that they are."""

    @model_validator(mode="after")
    def _tables_have_its_days(self) -> Self:
        for given in self.given.values():
            given.set_time_zone(self.time_zone)
        return self

    @property
    def given(self) -> dict[str, InputConfig]:
        """The tables that there are, by their names."""
        return {name: one for name, one in self if isinstance(one, InputConfig)}
