"""The inputs of an evaluation: where each is, and how its columns are called."""

from __future__ import annotations

import datetime as dt
import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.config.sections.base import Model, ModelWithPaths, Whole, fault_error, refuse_faults
from rankeval_spark.config.sections.durations import Grace, microseconds
from rankeval_spark.config.sections.inference import ModelName
from rankeval_spark.config.sections.input_shapes import ColumnName, Filter, Gains, Nested, column_and_field
from rankeval_spark.config.sections.locations import PathText, TableName, check_placeholders, fill_date, resolve_path
from rankeval_spark.errors import Fault, nearest

Format = Literal["delta", "parquet", "orc", "csv", "json", "trec", "table"]
IN_CATALOG: Final = ("delta", "parquet", "table")
"""Formats of a table that is named."""

COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **{"=": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
"""What the operators but ``in`` do with a column, of Spark or of Arrow, and a value."""

IdType = Literal["string", "integer"]
RanksFrom = Annotated[Whole, Field(ge=0, le=1)]
PathsOfModels = Mapping[ModelName, PathText]

READER_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "csv": (
        *("sep", "quote", "escape", "comment", "encoding", "lineSep", "nullValue", "emptyValue"),
        *("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "multiLine"),
    ),
    "json": ("lineSep", "multiLine"),
}
"""Options of Spark's readers that a config may set, by format."""


def _timestamp(text: str) -> str:
    check_placeholders(text)
    try:
        parse_moment(fill_date(text, dt.date(2000, 1, 1)))
    except ValueError:
        expected = "a time such as 2026-01-31 06:00:00 (UTC) or 2026-01-31T06:00:00+02:00"
        raise fault_error(Fault("", repr(text), expected)) from None
    return text


def parse_moment(text: str) -> dt.datetime:
    """Parse an ISO time, in UTC without an offset; raise ValueError for other text."""
    moment = dt.datetime.fromisoformat(re.sub("z$", "Z", text))  # only the capital letter is known
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _option(value: Any) -> str:  # noqa: ANN401 - a file can hold anything
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        raise fault_error(Fault("", repr(value), "text, true or false", "put it in quotes"))
    return value


OptionValue = Annotated[str, PlainValidator(_option), WithJsonSchema({"type": ["string", "boolean"]})]


class InputConfig(ModelWithPaths):
    """Where one input is, and how its columns are called there."""

    canonical_columns: ClassVar[tuple[str, ...]] = ()
    id_columns: ClassVar[tuple[str, ...]] = (C.USER_ID, C.ITEM_ID)
    allows_other_columns: ClassVar[bool] = False
    trec_form: ClassVar[Literal["run", "qrels"] | None] = None

    format: Format
    """Format of the files or the table. `table` is a table or view of the catalog in any format that Spark reads. Of
    trec, the recommendations are a run, and held_out the judgements (qrels)."""
    path: PathText | None = None
    """Folder or file, relative to the config file. `{date}` is the evaluation date, `{date-1}` the day before."""
    table: TableName | None = None
    """Name in the catalog instead of a path, as [catalog.][schema.]table; with the formats delta, parquet and table."""
    columns: Mapping[str, ColumnName] = {}
    """Names of columns in the table, by canonical name; only needed where the two differ."""
    types: Mapping[str, IdType] = {}
    """Types to which ids are cast, such as user_id: string. Without a cast, ids of csv and json are text."""
    filters: tuple[Filter, ...] = ()
    """Conditions; rows must meet all of them."""
    version: Annotated[Whole, Field(ge=0, lt=2**63)] | None = None
    """Version of a Delta table. Without version and timestamp, the newest version is read."""
    timestamp: Annotated[str, AfterValidator(_timestamp)] | None = None
    """Time whose newest version of a Delta table is read; UTC unless it has an offset."""
    options: Mapping[str, OptionValue] = {}
    """Options of Spark's csv or json reader."""

    @field_validator("columns")
    @classmethod
    def _columns_are_known(cls, columns: Mapping[str, str]) -> Mapping[str, str]:
        if not cls.allows_other_columns:
            refuse_unknown(columns, cls.canonical_columns)
        return columns

    @field_validator("filters")
    @classmethod
    def _windows_become_plain(cls, filters: tuple[Filter, ...]) -> tuple[Filter, ...]:
        return tuple(plain for place, each in enumerate(filters) for plain in each.plain(place))

    @field_validator("types")
    @classmethod
    def _types_are_of_ids(cls, types: Mapping[str, str]) -> Mapping[str, str]:
        refuse_unknown(types, cls.id_columns)
        return types

    @field_validator("options")
    @classmethod
    def _options_are_of_the_format(cls, options: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
        known = READER_OPTIONS.get(info.data.get("format", ""), ())
        if options and not known and "format" in info.data:
            found = f"reader options with format {info.data['format']}"
            raise fault_error(Fault("", found, "none", "remove them"))
        if "format" in info.data:
            refuse_unknown(options, known)
        return options

    @model_validator(mode="after")
    def _fits_its_format(self) -> InputConfig:
        refuse_faults([*self._place_faults(), *self._delta_faults()])
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

    def _delta_faults(self) -> list[Fault]:
        given = [name for name in ("version", "timestamp") if getattr(self, name) is not None]
        if given and self.format != "delta":
            return [Fault(f".{given[0]}", f"{given[0]} with format {self.format}", "format: delta", "remove it")]
        if len(given) > 1:
            return [Fault("", "both version and timestamp", "one of them", "remove one")]
        return []

    @property
    def shape(self) -> Gains | Nested | None:
        """What its rows hold in place of canonical columns; None where each column is in `columns`."""
        return None

    @property
    def renames(self) -> Mapping[str, str]:
        """Names in the table by canonical name, where the config gives one."""
        return self.columns if self.shape is None else {**self.columns, **self.shape.renames}

    @property
    def places(self) -> Mapping[str, str]:
        """Key that names a column, by canonical name, where it is not `columns`."""
        return {} if self.shape is None else self.shape.places

    def columns_read(self, names: Iterable[str], columns: Collection[str]) -> list[str]:
        """Name the columns of the table that are read, those that it does not have too.

        Parameters
        ----------
        names : iterable of str
            Canonical columns.
        columns : collection of str
            All columns of the table.
        """
        paths = [self.renames.get(name, name) for name in names]
        return [column_and_field(path, columns)[0] for path in paths] if isinstance(self.shape, Nested) else paths

    def of_models(self) -> Mapping[str, InputConfig]:
        """Return where the rows of each model are, where they are in several places; empty where they are in one."""
        return {}

    def locations(self, date: dt.date) -> Mapping[str, str]:
        """Return the absolute paths that are read for an evaluation date, by their keys; none of a catalog."""
        if models := self.of_models():
            return {f"paths.{model}": one.location(date) for model, one in models.items()}
        return {} if self.path is None else {"path": self.location(date)}

    def location(self, date: dt.date) -> str:
        """Return the absolute path for an evaluation date, or the name of the table; a JSON object of several paths."""
        if models := self.of_models():
            return json.dumps({model: one.location(date) for model, one in models.items()}, ensure_ascii=False)
        if self.table is not None:
            return self.table
        return resolve_path(fill_date(self.path or "", date), self._folder)

    def moment(self, date: dt.date) -> dt.datetime | None:
        """Return the time whose version of a Delta table is read; None without one."""
        return None if self.timestamp is None else parse_moment(fill_date(self.timestamp, date))

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core_schema: Any,  # noqa: ANN401 - private type of pydantic
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        """Add the keys of `columns`, `types` and `options`, for completion in editors."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        known = {"types": cls.id_columns, "options": dict.fromkeys(sum(READER_OPTIONS.values(), ()))}
        if not cls.allows_other_columns:
            known["columns"] = cls.canonical_columns
        for name, keys in known.items():
            schema["properties"][name]["propertyNames"] = {"enum": list(keys)}
        return schema


class RecommendationsInput(InputConfig):
    """The recommendation log: one row per recommended item, with score, rank or both, or one row per list."""

    canonical_columns = (
        *(C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID, C.SCORE, C.RANK),
        *(C.PREDICTED_REWARD, C.RECOMMENDED_AT),
    )
    trec_form = "run"

    paths: PathsOfModels | None = None
    """Instead of path, where the rows of each model are in a place of their own: paths by model, such as
    {als: lists/als, popular: lists/popular}. All have the same format and columns. The models are expected as if
    `models` named them, unless a filter on model_id chooses among them."""
    ranks_from: RanksFrom = 1
    """Rank of the first item of a list in the table: 1 or 0."""
    sampled_candidates: Annotated[Whole, Field(ge=1)] | None = None
    """Number of candidates that each list ranks, where these are a sample of the catalogue, such as 100 for a relevant
    item and 99 that were drawn. The check `sampled_candidates` then says that values hold for such lists only."""
    nested: Nested | None = None
    """Columns of the items and scores of a list, where a row of the table is a whole list."""

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
    def of_models(self) -> Mapping[str, InputConfig]:
        return {
            model: self.model_copy(update={"path": path, "paths": None}) for model, path in (self.paths or {}).items()
        }

    @model_validator(mode="after")
    def _one_form(self) -> RecommendationsInput:
        named = [f"columns.{name}" for name in (C.ITEM_ID, C.SCORE, C.RANK) if name in self.columns]
        named += ["ranks_from"] if self.ranks_from != 1 else []
        if self.nested is not None and named:
            found = f"both nested and {', '.join(named)}"
            fix = "nested names the items and scores, and their order is the rank: remove the other keys"
            raise fault_error(Fault("", found, "one of them", fix))
        return self

    @property
    @override
    def shape(self) -> Nested | None:
        return self.nested


class HeldOutInput(InputConfig):
    """The held-out interactions: one row per (user, item) or (user, list, item), with an optional gain (default 1)."""

    canonical_columns = (C.USER_ID, C.LIST_ID, C.ITEM_ID, C.GAIN, C.INTERACTED_AT, C.VALUE, C.PROPENSITY, C.WEIGHT)
    trec_form = "qrels"

    gains: Gains | None = None
    """How events, ratings or seconds become gains, instead of a column with gains."""
    late_data_grace: Grace | None = None
    """How late events come in, such as 6h; without it, at once. With `policies.attribution`, a night has to wait that
    long after the window of its last list: see the check `open_windows`. The clock is that of the run, also with
    `version`; with `timestamp`, that time counts."""

    @model_validator(mode="after")
    def _one_source_of_gains(self) -> HeldOutInput:
        if self.gains is not None and C.GAIN in self.columns:
            found = "both gains and columns.gain"
            raise fault_error(Fault("", found, "one of them", "remove columns.gain: gains.column names the column"))
        return self

    def complete_until(self, date: dt.date, now: dt.datetime) -> dt.datetime:
        """Return the moment up to which all events are there: the grace before now, or before the version that is read.

        Parameters
        ----------
        now : datetime
            When the table is read; a Delta table can be read as it was at an earlier time.
        """
        moment = self.moment(date)
        grace = dt.timedelta(microseconds=microseconds(self.late_data_grace or "0s"))
        return (now if moment is None else min(now, moment)) - grace

    @property
    @override
    def shape(self) -> Gains | None:
        return self.gains


class SegmentsInput(InputConfig):
    """The segments: one row per user, one column per segment in addition to user_id."""

    canonical_columns = (C.USER_ID,)
    id_columns = (C.USER_ID,)
    allows_other_columns = True


class TrainInput(InputConfig):
    """The training interactions: one row each, with an optional time."""

    canonical_columns = (C.USER_ID, C.ITEM_ID, C.INTERACTED_AT)


class ItemsInput(InputConfig):
    """The catalogue: one row per item, with its categories, vector and date, all optional."""

    canonical_columns = (C.ITEM_ID, C.CATEGORIES, C.VECTOR, C.PUBLISHED_AT)
    id_columns = (C.ITEM_ID,)

    list_separator: Annotated[str, StringConstraints(min_length=1, max_length=10)] | None = None
    """Separator of the elements where categories or vectors are text. Without this key, such text is a JSON array."""


class Inputs(Model):
    """The tables that an evaluation reads."""

    recommendations: RecommendationsInput
    """The recommendation log."""
    held_out: HeldOutInput
    """What the users did afterwards: the judgements."""
    segments: SegmentsInput | None = None
    """Properties of users, which `slices` and `bands` name."""
    train: TrainInput | None = None
    """Training data of the models, for measures such as popularity and novelty."""
    items: ItemsInput | None = None
    """The catalogue, for measures of categories, vectors or the age of items."""


def refuse_unknown(given: Mapping[str, object], known: tuple[str, ...]) -> None:
    """Raise one fault for every unknown key."""
    refuse_faults(
        [
            Fault(f".{name}", f"unknown key {name!r}", f"one of {', '.join(known)}", nearest(name, known))
            for name in given
            if name not in known
        ]
    )
