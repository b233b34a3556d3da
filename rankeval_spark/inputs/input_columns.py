"""Columns of the inputs: names, defaults, and faults where they do not fit; shared by both hosts.

Names that people give columns are guessed by ``rankeval init``, and suggested in errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.config.presets import keeps_gaps
from rankeval_spark.errors import ChecksFailedError, Fault, InputError, nearest
from rankeval_spark.schemas import Field, Schema

if TYPE_CHECKING:
    from rankeval_spark.config.inputs import Filter
    from rankeval_spark.config.policies import Lists, OwnItem
    from rankeval_spark.config.request import Request

# Extra columns of inputs: a line of csv, json or trec that could not be split into columns, else NULL; whether a cell
# of the row could not be read; and the unchanged row, as JSON or the line of csv or json that could not be split.
CORRUPT: Final = "_corrupt_record"
IS_UNPARSABLE: Final = "is_unparsable"
RAW: Final = "_raw"

LOG: Final = "recommendations"
HELD_OUT: Final = "held_out"
IDS: Final = (C.USER_ID, C.ITEM_ID)
INPUTS: Final = (LOG, HELD_OUT, "segments", "train", "items", "user_values", "user_weights")

DEFAULTS: Final[Mapping[str, str | float | None]] = {
    **{C.MODEL_ID: C.ONE_MODEL, C.LIST_ID: C.ONE_LIST, C.GAIN: 1.0},
    **dict.fromkeys((C.SCORE, C.RANK, C.RECOMMENDED_AT, C.INTERACTED_AT, C.VALUE)),
    **dict.fromkeys((C.PREDICTED_REWARD, C.PROPENSITY, C.WEIGHT)),
    **dict.fromkeys((C.CATEGORIES, C.VECTOR, C.PUBLISHED_AT, C.TITLE)),
}
"""Values of optional columns that a table does not have."""

SAMPLE_BUCKETS: Final = 1_000_000  # users are drawn in millionths
LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, since 1970: a number that is further away is no time, but of another unit."""

NO_ORDER: Final = "neither a score nor a rank"
RANK_FIX: Final = "cast it to a whole number (in pandas by astype({'rank': 'Int64'})), or order the lists by a score"

_RENAME: Final = "rename the column that is it"
_EITHER: Final = _RENAME + " to {0}; a config names it under inputs.{1}.columns.{0}"
"""Fix for a missing column, where a config or a call may be at fault: rename it, or map it."""

NANOSECONDS: Final = "times in nanoseconds, which Spark does not read"  # in Parquet files as pandas writes them
NANOSECONDS_FIX: Final = (
    "pandas writes them in microseconds with "
    "frame.to_parquet(..., coerce_timestamps='us', allow_truncated_timestamps=True)"
)
PARQUET_UUID: Final = "(UUID)"  # of bytes in a schema of Parquet; Spark refuses the type by this name
UUIDS: Final = "UUIDs of Parquet, which Spark Connect does not read"
UUIDS_FIX: Final = "write them as text, or as bytes without this type"
NUMBERS_FIX: Final = "write the values of gains as numbers"

_EXPECTED: Final = {**dict.fromkeys((*IDS, C.LIST_ID), "text or whole numbers"), C.RANK: "whole numbers"}

_USERS: Final = ("user", "customer", "client", "member", "account", "visitor", "profile", "subscriber", "uid")
_ITEMS: Final = (
    *("item", "product", "article", "movie", "track", "song", "video", "book", "content", "document", "doc", "sku"),
    *("asin", "isbn", "offer", "iid"),
)
_TIMES: Final = ("interactedat", "timestamp", "time", "ts", "eventtime", "datetime", "ratedat", "createdat", "date")

COLUMN_NAMES: Final[Mapping[str, Sequence[str]]] = {
    C.MODEL_ID: ("modelid", "model", "modelname", "algorithm", "algo", "recommender", "variant", "system"),
    C.USER_ID: (*(f"{word}id" for word in _USERS), *_USERS, "queryid", "query", "qid"),
    C.LIST_ID: ("listid", "list", "requestid", "impressionid", "slateid", "sessionid"),
    C.ITEM_ID: (*(f"{word}id" for word in _ITEMS), *_ITEMS, "docno"),
    C.SCORE: ("score", "prediction", "predicted", "pred", "probability", "prob", "similarity", "relevancescore", "est"),
    C.RANK: ("rank", "position", "pos", "ranking"),
    C.GAIN: ("gain", "gains", "rating", "ratings", "relevance", "rel", "grade", "label", "stars"),
    C.VALUE: ("value", "revenue", "price", "amount"),
    C.PREDICTED_REWARD: ("predictedreward", "estimatedreward", "expectedreward"),
    C.PROPENSITY: ("propensity", "propensityscore", "pscore"),
    C.WEIGHT: ("weight", "inversepropensity"),
    C.INTERACTED_AT: _TIMES,
    C.RECOMMENDED_AT: ("recommendedat", "shownat", "servedat", "impressionat", "impressiontime"),
    C.NAME: ("name", "metric", "kpi", "measure", "variable"),
    C.CATEGORIES: ("categories", "category", "genres", "genre", "tags", "topics"),
    C.VECTOR: ("vector", "embedding", "emb", "features"),
    C.PUBLISHED_AT: ("publishedat", "releasedate", "releasedat", "published", "availablefrom", "createdat"),
    C.TITLE: ("title", "itemtitle", "itemname", "productname", "movietitle", "headline", "name"),
}
"""Names by canonical column, the likeliest first; small letters and digits only."""

LIBRARY_COLUMNS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "LensKit": {
        LOG: {"user": C.USER_ID, "item": C.ITEM_ID, "score": C.SCORE},
        HELD_OUT: {"user": C.USER_ID, "item": C.ITEM_ID, "rating": ""},
    },
    "MovieLens": {
        LOG: {"userId": C.USER_ID, "movieId": C.ITEM_ID},
        HELD_OUT: {"userId": C.USER_ID, "movieId": C.ITEM_ID, "rating": "", "timestamp": ""},
    },
    "RePlay": {
        LOG: {"query_id": C.USER_ID, "item_id": C.ITEM_ID, "rating": C.SCORE},
        HELD_OUT: {"query_id": C.USER_ID, "item_id": C.ITEM_ID, "rating": "", "timestamp": ""},
    },
    "RePlay before 0.16": {
        LOG: {"user_idx": C.USER_ID, "item_idx": C.ITEM_ID, "relevance": C.SCORE},
        HELD_OUT: {"user_idx": C.USER_ID, "item_idx": C.ITEM_ID, "relevance": "", "timestamp": ""},
    },
    "Recommenders": {
        LOG: {"userID": C.USER_ID, "itemID": C.ITEM_ID, "prediction": C.SCORE},
        HELD_OUT: {"userID": C.USER_ID, "itemID": C.ITEM_ID, "rating": ""},
    },
    "RecBole": {
        LOG: {"user_id:token": C.USER_ID, "item_id:token": C.ITEM_ID, "score:float": C.SCORE},
        HELD_OUT: {"user_id:token": C.USER_ID, "item_id:token": C.ITEM_ID},
    },
    "Surprise": {LOG: {"uid": C.USER_ID, "iid": C.ITEM_ID, "r_ui": "", "est": C.SCORE}},
    "ranx": {
        LOG: {"q_id": C.USER_ID, "doc_id": C.ITEM_ID, "score": C.SCORE},
        HELD_OUT: {"q_id": C.USER_ID, "doc_id": C.ITEM_ID, "score": C.GAIN},
    },
    "ir_measures": {
        LOG: {"query_id": C.USER_ID, "doc_id": C.ITEM_ID, "score": C.SCORE},
        HELD_OUT: {"query_id": C.USER_ID, "doc_id": C.ITEM_ID, "relevance": C.GAIN},
    },
}
"""Columns of the tables of other libraries with what each of them is; empty for one that is part of the format alone.

Ratings do not become gains: from which rating an item is relevant is for the user to say.
"""

SCORE_NAMES: Final = (*COLUMN_NAMES[C.SCORE], "rating", "relevance")
"""Names of scores in a log, where MLlib has ratings."""

RATING_NAMES: Final = ("rating", "ratings", "stars")
"""Names of gains that mostly say how much an item was liked, so that low ones are no relevance."""

_PARTS: Final = {C.USER_ID: _USERS, C.ITEM_ID: _ITEMS}
"""Words within a name that say whose id it is."""


def plain_name(name: str) -> str:
    """Keep the letters and digits of a name, in small letters."""
    return re.sub("[^a-z0-9]", "", name.lower())


def columns_by_name(canonical: str, columns: Iterable[str], names: Sequence[str] = ()) -> list[str]:
    """List the columns that are called like a canonical one, the likeliest first; ``names`` replace the usual ones.

    >>> columns_by_name("item_id", ["movieId", "item", "rating"]), columns_by_name("user_id", ["User-ID"])
    (['movieId', 'item'], ['User-ID'])
    """
    likeliest = names or COLUMN_NAMES[canonical]
    return sorted(
        (column for column in columns if plain_name(column) in likeliest),
        key=lambda column: likeliest.index(plain_name(column)),
    )


def columns_by_part(canonical: str, columns: Iterable[str]) -> list[str]:
    """List the columns in whose name a word says whose id they are.

    >>> columns_by_part("item_id", ["rated_movie", "who"])
    ['rated_movie']
    """
    return [column for column in columns if any(word in plain_name(column) for word in _PARTS.get(canonical, ()))]


def likely_column(canonical: str, columns: Sequence[str]) -> str | None:
    """Return the column that is likely a canonical one by its name; None if none is."""
    found = [
        *(columns_by_name(canonical, columns) if canonical in COLUMN_NAMES else ()),
        *(columns_by_name(C.SCORE, columns, SCORE_NAMES) if canonical == C.SCORE else ()),
        *columns_by_part(canonical, columns),
    ]
    return next(iter(found), None)


def find_library(input_: str, columns: Collection[str]) -> tuple[str, dict[str, str]] | None:
    """Return the one library whose columns a table has, and its names by canonical column; None for canonical tables.

    >>> find_library("recommendations", ["user", "item", "score", "rank"])
    ('LensKit', {'user_id': 'user', 'item_id': 'item'})
    """
    needed = {*IDS, *({C.SCORE, C.RANK} & {*columns} or {C.SCORE} if input_ == LOG else ())}
    formats = {
        library: of_library.get(LOG if input_ == LOG else HELD_OUT) for library, of_library in LIBRARY_COLUMNS.items()
    }
    fitting = [(library, names) for library, names in formats.items() if names and names.keys() <= {*columns}]
    if needed <= {*columns} or len(fitting) != 1 or input_ not in (LOG, HELD_OUT, "train"):
        return None
    library, names = fitting[0]
    is_train = input_ == "train"
    return library, {own: name for name, own in names.items() if own not in ("", name, C.GAIN if is_train else "")}


def is_item_name(name: str) -> bool:
    """Return True if a name is one of items, or has a word for them in it."""
    return bool(columns_by_name(C.ITEM_ID, [name]) or columns_by_part(C.ITEM_ID, [name]))


def is_score_name(name: str) -> bool:
    """Return True if a name is one of scores; MLlib calls them ratings."""
    return plain_name(name) in SCORE_NAMES


def is_bigint(number: int) -> bool:
    """Return True if 64 bits hold a number."""
    return -(2**63) <= number < 2**63


class HasColumns(Protocol):
    """An input whose columns are known."""

    @property
    def name(self) -> str: ...
    @property
    def id_types(self) -> Mapping[str, str]: ...  # ``string`` or ``bigint``, by canonical column
    @property
    def given(self) -> Collection[str]: ...  # canonical columns that the table has
    @property
    def unread(self) -> Sequence[str]: ...  # columns of the table that nothing reads


Read = TypeVar("Read", bound=HasColumns)


@dataclass(frozen=True)
class GivenInputs(Generic[Read]):
    """The inputs of one evaluation; all but the first two are None if not given."""

    recommendations: Read
    held_out: Read
    segments: Read | None = None
    train: Read | None = None
    items: Read | None = None
    user_values: Read | None = None
    user_weights: Read | None = None

    def all(self) -> tuple[Read, ...]:
        """Return the inputs that there are, in the order of the config."""
        every = (getattr(self, name) for name in INPUTS)
        return tuple(source for source in every if source)


def segments_schema(names: tuple[str, ...], *, numbers: Collection[str] = ()) -> Schema:
    """Return the schema of the segments input: ``user_id``, and one column of text or numbers per segment."""
    user = Field(C.USER_ID, "string", "User", nullable=False)
    segments = (
        Field(name, "double" if name in numbers else "string", f"Segment {name} of the user; NULL is unknown")
        for name in names
    )
    return Schema("segments", "one user", (C.USER_ID,), (user, *segments))


def input_schemas(
    segments: tuple[str, ...] = (),  # segments that are read
    *,
    numbers: Collection[str] = (),  # those that become bands
    lists: Lists = "separate",  # the policy; where lists are pooled, no column ``list_id`` is read
) -> dict[str, Schema]:
    """Return the schema of every input by its name."""
    read = [schemas.RECOMMENDATIONS, schemas.HELD_OUT, schemas.TRAIN, schemas.ITEMS]
    read += [schemas.USER_VALUES, schemas.USER_WEIGHTS]
    if lists == "pooled":
        read = [
            replace(schema, fields=tuple(field for field in schema.fields if field.name != C.LIST_ID))
            for schema in read
        ]
    return {**{schema.name: schema for schema in read}, "segments": segments_schema(segments, numbers=numbers)}


class FramesByModel(dict[str, Any]):
    """Frames of a call, by the model whose lists each of them has."""


def each_frame(frames: Mapping[str, object]) -> dict[str, object]:
    """Return every frame of a call by its place, such as ``recommendations['als']`` where a model has its own."""
    return {
        place: frame
        for name, given in frames.items()
        for place, frame in (
            {f"{name}[{model!r}]": one for model, one in given.items()}
            if isinstance(given, FramesByModel)
            else {name: given}
        ).items()
    }


def read_inputs(
    frames: Mapping[str, object],  # each input; None where it is not given
    request: Request,
    read: Callable[[str, object, Schema], Read],
    unite: Callable[[Mapping[str, Read]], Read],  # of the frames of each model, into one of all
    *,
    expected: str,  # what an input is, for messages
) -> dict[str, Read]:
    """Read the inputs of a call by their names, each into the columns of its schema; all faults are raised at once."""
    names = tuple(name for name in request.segments if name not in request.slicing.computed)
    by_name = input_schemas(names, numbers=request.slicing.bands, lists=request.policies.lists)
    faults: list[Fault] = []
    read_frames: dict[str, Read] = {}
    for place, frame in each_frame(frames).items():
        if frame is None and place not in INPUTS[2:]:
            faults.append(Fault(place, "None", expected))
        elif frame is not None:
            try:
                read_frames[place] = read(place, frame, by_name[place.partition("[")[0]])
            except InputError as error:
                faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    if isinstance(by_model := frames[LOG], FramesByModel):
        of_models = {f"{LOG}[{model!r}]": model for model in by_model}
        _refuse_different({place: read_frames[place] for place in of_models})
        read_frames[LOG] = unite({model: read_frames.pop(place) for place, model in of_models.items()})
    inputs = {name: read_frames[name] for name in frames if name in read_frames}
    types = {name: source.id_types for name, source in inputs.items()}
    check_id_types(types, own_item=request.policies.own_item, is_call=True)
    return inputs


def _refuse_different(sources: Mapping[str, HasColumns]) -> None:
    """Refuse frames of models that name models themselves, or whose columns or types of ids differ, by their places."""
    faults, (first, expected) = list[Fault](), next(iter(sources.items()))
    for place, source in sources.items():
        if C.MODEL_ID in source.given:
            fix = "drop it, or give one frame with the rows of all models"
            faults.append(Fault(place, "a column 'model_id'", "none, because the key names the model", fix))
        for name, type_ in source.id_types.items():
            if type_ != expected.id_types[name]:
                wanted = f"one type for all models; {first} has {expected.id_types[name]}"
                faults.append(
                    Fault(place, f"{name} of type {type_}", wanted, f"cast {name} of one to that of the other")
                )
        for name in sorted(({*source.given} ^ {*expected.given}) - {C.MODEL_ID, IS_UNPARSABLE}):
            has_it = name in source.given
            found, of_first = (
                f"{'a' if has_it else 'no'} column {name!r}",
                f"{first} has {'none' if has_it else 'one'}",
            )
            fix = f"add it to all models, or drop it from {place if has_it else first}"
            faults.append(Fault(place, found, f"the same columns for all models; {of_first}", fix))
    if faults:
        raise InputError(*faults)


def column_fault(where: str, name: str, columns: Sequence[str], wanted_for: str = "", *, fix: str = "") -> Fault:
    """Build the fault of a column that the table does not have; ``fix`` is that where no name is near."""
    found = f"no column {name!r}{f' (for {wanted_for})' if wanted_for and wanted_for != name else ''}"
    found += f" among {', '.join(columns)}" if columns else " (the table has none)"
    is_sliced = where.rpartition(".")[2] == "segments" and name != C.USER_ID
    expected = "this column, which slices name" if is_sliced else "this column"
    return Fault(where, found, expected, nearest(name, columns) or fix)


def filter_faults(filters: Sequence[Filter], columns: Sequence[str], where: str) -> list[Fault]:
    """Find columns of filters that the table does not have, each place of the config once."""
    missing = {filter_.place: filter_.column for filter_ in filters if filter_.column not in columns}
    return [column_fault(f"{where}.filters[{place}].column", name, columns) for place, name in missing.items()]


def type_fault(where: str, field: Field, name: str, found: str, fix: str = "") -> Fault:
    """Build the fault of a column whose type cannot be cast."""
    expected = _EXPECTED.get(field.name, f"a type that can be read as {field.type}")
    return Fault(where, f"column {name!r} of type {found} for {field.name}", expected, fix)


def required_columns(schema: Schema) -> list[str]:
    """List the columns of a schema that are never NULL and have no value of their own where a table lacks them."""
    return [field.name for field in schema.fields if not field.nullable and DEFAULTS.get(field.name) is None]


def missing_faults(
    columns: Sequence[str],  # of the table
    names: Mapping[str, str],  # name in the table of every canonical column
    renames: Mapping[str, str],  # those that the config names; the table must have them
    where: str,
    places: Mapping[str, str] = MappingProxyType({}),  # key that names a column, where it is not ``columns``
    *,
    required: Collection[str] = (),  # those without a default in this input, though another one has it
) -> list[Fault]:
    """Find required columns that a table does not have."""
    is_config = where.startswith("inputs.")
    others = [column for column in columns if column not in names.values()]

    def suggest_column(name: str) -> str:
        likely = likely_column(name, others)
        way = f"write {where}.columns.{name}: {likely}" if is_config else f"rename it to {name}"
        return "" if likely is None else f"did you mean {likely!r}? {way}"

    faults = []
    for name, column in names.items():
        if column not in columns and name in renames:
            key = places.get(name, f"columns.{name}")
            faults.append(column_fault(f"{where}.{key}", column, columns, name))
        elif column not in columns and (name not in DEFAULTS or name in required):
            fix = f"name it under {where}.columns.{name}" if is_config else f"rename the column that is it to {name}"
            fault = column_fault(where, column, columns, name, fix=fix)
            faults.append(replace(fault, fix=suggest_column(name) or fault.fix))
    if {C.SCORE, C.RANK} <= set(names) and not faults and not {names[C.SCORE], names[C.RANK]} & set(columns):
        hints = [suggest_column(name) for name in (C.SCORE, C.RANK)]
        hints += [nearest(names[name], columns) for name in (C.SCORE, C.RANK)]
        way = f"name one under {where}.columns" if is_config else "rename the column that is one"
        fix = next(filter(None, hints), f"{way}; the table has {', '.join(columns)}")
        faults.append(Fault(where, NO_ORDER, "at least one of the two columns", fix))
    return faults


def check_id_types(
    id_types: Mapping[str, Mapping[str, str]],  # ``string`` or ``bigint`` of each id, by input
    *,
    own_item: OwnItem = "keep",  # the policy, which compares items with users
    is_call: bool = False,  # whether inputs are arguments of ``evaluate``, not of a config, which has ``integer``
) -> None:
    """Refuse ids that are text in one input and numbers in another, because '007' and 7 may or may not match."""

    def shown_input(name: str) -> str:
        return f"evaluate({name}=)" if is_call else f"inputs.{name}"

    def shown_type(type_: str) -> str:
        return "integer" if type_ == "bigint" and not is_call else type_

    faults = []
    of_log = id_types.get(LOG, {})
    if own_item != "keep" and of_log and of_log[C.USER_ID] != of_log[C.ITEM_ID]:
        found = f"user_id of type {shown_type(of_log[C.USER_ID])} and item_id of type {shown_type(of_log[C.ITEM_ID])}"
        number = C.USER_ID if of_log[C.USER_ID] == "bigint" else C.ITEM_ID
        fix = f"write types: {{{number}: string}} for each input with {number}"
        fix = f"cast {number} of all inputs to text" if is_call else fix
        faults.append(Fault(shown_input(LOG), found, f"one type, because own_item={own_item!r} compares them", fix))
    for name in IDS:
        with_id = [(input_, types[name]) for input_, types in id_types.items() if name in types]
        for other, type_ in with_id:
            first, first_type = with_id[0]
            if type_ == first_type:
                continue
            number, text = (first, other) if first_type == "bigint" else (other, first)
            fix = f"write inputs.{number}.types: {{{name}: string}}, or "
            fix += f"inputs.{text}.types: {{{name}: integer}} if 007 is to be 7"
            if is_call:
                types = {text: {"types": {name: "integer"}}}
                fix = f"cast {name} of {number} to text, or pass inputs={types!r} if 007 is to be 7"
            found = f"{name} of type {shown_type(type_)}, while {shown_input(first)} has {shown_type(first_type)}"
            faults.append(Fault(shown_input(other), found, "one type for an id", fix))
    if faults:
        raise ChecksFailedError(*faults)


def refuse_missing(sources: Sequence[HasColumns], request: Request) -> None:
    """Refuse inputs that lack a column or a table that the request needs, all at once."""
    given = {source.name: source.given for source in sources}
    unread = {source.name: source.unread for source in sources}
    faults = [*_policy_faults(given, request), *_measure_faults(given, request), *_segment_faults(given, request)]
    for place, fault in enumerate(faults):  # a column that nothing reads may be the missing one
        missing = fault.found.removeprefix("no column ").strip("'")
        likely = likely_column(missing, unread.get(fault.where, ())) if missing != fault.found else None
        if likely is not None:
            is_rename = fault.fix.startswith(_RENAME)
            way = f"{fault.fix.removeprefix(_RENAME)}" if is_rename else f" to {missing}, or {fault.fix}"
            faults[place] = replace(fault, fix=f"did you mean {likely!r}? rename it{way}")
    if faults:
        raise InputError(*faults)


def _policy_faults(given: Mapping[str, Collection[str]], request: Request) -> Iterator[Fault]:
    """Find columns that policies read and that the inputs lack."""
    log, policies = given[LOG], request.policies
    for policy, reads_ranks, fix in (
        ("ties", tie_rule(policies.ties).reads_ranks, "set ties to item_asc"),
        ("rank_gaps", policies.rank_gaps == "keep" and not keeps_gaps(request.preset), "set rank_gaps to renumber"),
        ("order", policies.order == "rank", "set order to score"),
    ):
        if reads_ranks and C.RANK not in log:
            expected = f"ranks, because {policy}={getattr(policies, policy)!r} reads them"
            yield Fault(LOG, "no column 'rank'", expected, fix)
    if policies.held_out_duplicates == "last" and C.INTERACTED_AT not in given[HELD_OUT]:
        expected = "times, because held_out_duplicates='last' reads them"
        yield Fault(HELD_OUT, "no column 'interacted_at'", expected, "set held_out_duplicates to max")
    of_times = ((LOG, C.RECOMMENDED_AT), (HELD_OUT, C.INTERACTED_AT)) if policies.is_attributed else ()
    for name, column in of_times:
        if column not in given[name]:
            expected = "times, because the policy attribution reads them"
            yield Fault(name, f"no column {column!r}", expected, _EITHER.format(column, name))
    if C.LIST_ID in given[HELD_OUT] and policies.is_attributed:
        yield attributed_lists_fault(policies.attribution)
    elif C.LIST_ID in given[HELD_OUT] and C.LIST_ID not in log:
        fix = f"{_EITHER.format(C.LIST_ID, LOG)}; or leave the column of held_out out"
        yield Fault(LOG, "no column 'list_id'", "this column, because rows of held_out name their list", fix)
    if C.MODEL_ID not in log and C.MODEL_ID in given.get("user_values", ()):
        fix = f"{_EITHER.format(C.MODEL_ID, LOG)}; or leave the column of user_values out"
        yield Fault(LOG, "no column 'model_id'", "this column, because rows of user_values name their model", fix)
    if C.MODEL_ID not in log and request.models not in (None, (C.ONE_MODEL,)):
        fix = "leave the models out; a log without this column has one model"
        yield Fault(LOG, "no column 'model_id'", "this column, because models are named", fix)


def attributed_lists_fault(attribution: str) -> Fault:
    """Build the fault of judgements that name their list and are to be attributed by time."""
    found = f"a column 'list_id' and attribution {attribution!r}, which finds lists by time"
    return Fault(HELD_OUT, found, "one of them", "leave the column out, or set attribution to none")


def _measure_faults(given: Mapping[str, Collection[str]], request: Request) -> Iterator[Fault]:
    """Find columns that measures read and that the inputs lack, and scores that a policy ignores."""
    measures, policies = request.measure_set.measures, request.policies
    of_scores = [str(measure) for measure in measures if C.HIT_SCORES in measure.needs]
    ignoring = policies.ignoring_scores if C.RANK in given[LOG] else None
    if of_scores and ignoring is not None:
        found = f"{getattr(policies, ignoring)!r}, which ignores the scores"
        default = type(policies).model_fields[ignoring].default
        fix = f"set {ignoring} to {default}, or leave these measures out"
        yield Fault(ignoring, found, f"scores for {of_scores[0]}", fix)
    elif of_scores and C.SCORE not in given[LOG]:
        fix = "add the scores to the log, or leave these measures out"
        yield Fault(LOG, "no column 'score'", f"scores, because {', '.join(of_scores)} read them", fix)
    of_catalogue = ", ".join(str(measure) for measure in measures if measure.needs_catalogue)
    if of_catalogue and "items" not in given and "train" not in given:
        found = f"{of_catalogue} without a catalogue"
        yield Fault("measures", found, "the input items, or train", "add the input items")
    dated = ["evaluation_date"] if request.evaluation_date else []
    for name, labels in request.measure_set.lacking([*given, *dated]).items():
        yield Fault(name, "nothing", f"this input, for {', '.join(labels)}", "give it, or leave these measures out")
    for requirement, labels in request.measure_set.requiring().items():
        name, _, column = requirement.partition(".")
        if column and column not in given.get(name, [column]):
            fix = _EITHER.format(column, name)
            yield Fault(name, f"no column {column!r}", f"the column, for {', '.join(labels)}", fix)


def _segment_faults(given: Mapping[str, Collection[str]], request: Request) -> Iterator[Fault]:
    """Find columns that the bands of segments read and that the inputs lack."""
    for segment, band in request.slicing.bands.items():
        name = band.kind.input
        for column in band.kind.columns:
            if column not in given.get(name, band.kind.columns):
                fix = _EITHER.format(column, name)
                yield Fault(name, f"no column {column!r}", f"the column, for the bands of {segment!r}", fix)
