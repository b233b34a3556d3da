"""Names that people give the columns of inputs: guessed by ``rankeval init``, and suggested in errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rankeval_spark import columns as C

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
    C.CATEGORIES: ("categories", "category", "genres", "genre", "tags", "topics"),
    C.VECTOR: ("vector", "embedding", "emb", "features"),
    C.PUBLISHED_AT: ("publishedat", "releasedate", "releasedat", "published", "availablefrom", "createdat"),
}
"""Names by canonical column, the likeliest first; small letters and digits only."""

SCORE_NAMES: Final = (*COLUMN_NAMES[C.SCORE], "rating", "relevance")
"""Names of scores in a log, where MLlib has ratings."""

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
    known = names or COLUMN_NAMES[canonical]
    return sorted(
        (column for column in columns if plain_name(column) in known),
        key=lambda column: known.index(plain_name(column)),
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


def is_item_name(name: str) -> bool:
    """Return True if a name is one of items, or has a word for them in it."""
    return bool(columns_by_name(C.ITEM_ID, [name]) or columns_by_part(C.ITEM_ID, [name]))


def is_score_name(name: str) -> bool:
    """Return True if a name is one of scores; MLlib calls them ratings."""
    return plain_name(name) in SCORE_NAMES
