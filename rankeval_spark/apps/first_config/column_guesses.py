"""Which column of a table is which column of an input: guessed by name, else by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.apps.first_config.table_samples import is_date
from rankeval_spark.inputs.arrow.arrow_types import is_list, is_number, is_text
from rankeval_spark.inputs.input_columns import GAIN_NAMES, MODEL_NAMES, plain_name

if TYPE_CHECKING:
    from rankeval_spark.apps.first_config.table_samples import TableSample

BY_NAME: Final = "its name"
BY_PART: Final = "a part of its name"
BY_TYPE: Final = "its type: no other column is left"
BY_PARTITION: Final = "the partitions of the table"
BY_VALUES: Final = "its name and values"
BY_TIMES: Final = "times that many items of a user share"

_USERS: Final = ("user", "customer", "client", "member", "account", "visitor", "profile", "subscriber", "uid")
_ITEMS: Final = (
    *("item", "product", "article", "movie", "track", "song", "video", "book", "content", "document", "doc", "sku"),
    *("asin", "isbn", "offer", "iid"),
)
_TIMES: Final = ("interactedat", "timestamp", "time", "ts", "eventtime", "datetime", "ratedat", "createdat", "date")

_NAMES: Final[Mapping[str, Sequence[str]]] = {
    C.MODEL_ID: (*MODEL_NAMES, "variant", "system"),
    C.USER_ID: (*(f"{one}id" for one in _USERS), *_USERS),
    C.LIST_ID: ("listid", "list", "requestid", "impressionid", "slateid", "sessionid"),
    C.ITEM_ID: (*(f"{one}id" for one in _ITEMS), *_ITEMS),
    C.SCORE: ("score", "prediction", "predicted", "pred", "probability", "prob", "similarity", "relevancescore"),
    C.RANK: ("rank", "position", "pos", "ranking"),
    C.GAIN: GAIN_NAMES,
    C.VALUE: ("value", "revenue", "price", "amount"),
    C.PREDICTED_REWARD: ("predictedreward", "estimatedreward", "expectedreward"),
    C.PROPENSITY: ("propensity", "propensityscore", "pscore"),
    C.WEIGHT: ("weight", "inversepropensity"),
    C.INTERACTED_AT: _TIMES,
    C.RECOMMENDED_AT: ("recommendedat", "shownat", "servedat", "impressionat", "impressiontime"),
    C.CATEGORIES: ("categories", "category", "genres", "genre", "tags", "topics"),
    C.VECTOR: ("vector", "embedding", "emb", "features"),
    C.PUBLISHED_AT: ("publishedat", "releasedate", "releasedat", "published", "availablefrom", "createdat"),
}
"""Names by canonical column, the likeliest first; small letters and digits only."""

_PARTS: Final = {C.USER_ID: _USERS, C.ITEM_ID: _ITEMS}
"""Words within a name that say whose id it is."""

_DAYS: Final = ("evaluationdate", "date", "dt", "ds", "day", "rundate", "snapshotdate")
"""Names of a column with the evaluation date."""


def is_id(kind: pa.DataType) -> bool:
    """Whether ids can be of a type."""
    return bool(is_text(kind) or pa.types.is_integer(kind) or pa.types.is_dictionary(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind))


_TYPES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    **dict.fromkeys((C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID), is_id),
    **dict.fromkeys((C.SCORE, C.GAIN, C.VALUE, C.PREDICTED_REWARD, C.PROPENSITY, C.WEIGHT), is_number),
    C.RANK: lambda kind: bool(pa.types.is_integer(kind)),
    **dict.fromkeys((C.INTERACTED_AT, C.RECOMMENDED_AT), _is_time),
    C.CATEGORIES: lambda kind: is_text(kind) or (is_list(kind) and is_text(kind.value_type)),
    C.VECTOR: lambda kind: is_list(kind) and is_number(kind.value_type),
    C.PUBLISHED_AT: lambda kind: bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind)),
}


@dataclass(frozen=True)
class Guess:
    """The column of a table that is taken for a canonical one, and what it was guessed by."""

    column: str
    by: str


def guessed_columns(table: TableSample, wanted: Sequence[str], *, taken: Sequence[str] = ()) -> dict[str, Guess]:
    """Guess the columns of an input.

    Parameters
    ----------
    wanted : sequence of str
        Canonical columns, in the order in which they are looked for.
    taken : sequence of str
        Columns of the table that are something else.

    Returns
    -------
    dict
        By canonical column; those without a likely column are left out.
    """
    kinds = {one.name: one.type for one in table.rows.schema if one.name not in taken}
    found: dict[str, Guess] = {}
    for by, likely in ((BY_NAME, _named), (BY_PART, _named_in_part), (BY_TYPE, _only_one_left)):
        for name in wanted:
            if name in found or (by == BY_TYPE and name == C.SCORE and C.RANK in found):
                continue
            used = {guess.column for guess in found.values()}
            left = {column: kind for column, kind in kinds.items() if column not in used and _TYPES[name](kind)}
            column = likely(name, left)
            if column is not None:
                found[name] = Guess(column, by)
    return {name: found[name] for name in wanted if name in found}


def _named(name: str, columns: Mapping[str, pa.DataType]) -> str | None:
    places = {
        column: _NAMES[name].index(plain_name(column)) for column in columns if plain_name(column) in _NAMES[name]
    }
    return min(places, key=places.__getitem__, default=None)


def _named_in_part(name: str, columns: Mapping[str, pa.DataType]) -> str | None:
    words = _PARTS.get(name, ())
    return next((column for column in columns if any(word in plain_name(column) for word in words)), None)


def _only_one_left(name: str, columns: Mapping[str, pa.DataType]) -> str | None:
    """Take the only column of the type, where the input needs one: ids of users and items, and scores."""
    if name not in (C.USER_ID, C.ITEM_ID, C.SCORE):
        return None
    likely = [column for column, kind in columns.items() if name != C.SCORE or pa.types.is_floating(kind)]
    return likely[0] if len(likely) == 1 else None


def date_column(table: TableSample, *, like: str | None = None) -> Guess | None:
    """Guess which column holds the evaluation date: a partition, or one by name whose values are dates.

    Parameters
    ----------
    like : str, optional
        Only a partition, or a column of this name: in other inputs, a date may be that of an interaction.
    """
    for name, values in table.partitions.items():
        if values and all(map(is_date, values)):
            return Guess(name, BY_PARTITION)
    for column in table.rows.column_names:
        if (column == like or (like is None and plain_name(column) in _DAYS)) and has_dates(table, column):
            return Guess(column, BY_VALUES)
    return None


def has_dates(table: TableSample, column: str) -> bool:
    """Whether a column has values, all of them written as the evaluation date is."""
    values = [value for value in table.rows[column].slice(0, 100).to_pylist() if value is not None]
    return bool(values) and all(map(is_date, values))


def is_item_name(name: str) -> bool:
    """Return True if a name is one of items, or has a word for them in it."""
    return plain_name(name) in _NAMES[C.ITEM_ID] or any(word in plain_name(name) for word in _ITEMS)


def is_score_name(name: str) -> bool:
    """Return True if a name is one of scores; MLlib calls them ratings."""
    return plain_name(name) in (*_NAMES[C.SCORE], "rating")
