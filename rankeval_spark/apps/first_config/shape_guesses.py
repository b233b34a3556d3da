"""Shapes of inputs that are not one row per item: arrays of a whole list, and kinds of events that have gains."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.apps.first_config.column_guesses import is_id, is_item_name, is_score_name
from rankeval_spark.config.inputs import Gains, Nested, column_and_field
from rankeval_spark.inputs.arrow.arrow_types import is_list, is_number, is_text
from rankeval_spark.inputs.input_columns import plain_name

if TYPE_CHECKING:
    from rankeval_spark.apps.first_config.table_samples import TableSample

_EVENTS: Final = (
    *("event", "eventtype", "eventname", "action", "actiontype", "interaction", "interactiontype", "behavior"),
    *("behaviour", "activity", "type"),
)
"""Names of a column with kinds of events, the likeliest first."""

_AGAINST: Final = re.compile(
    r"skip|hid(?:e|den)|dis ?like|dismiss|impression|remove|delete|cancel|refund|\bundo|return(?!ing| to | visit)"
    r"|(?:\bun |un)(?:like|follow|subscri|sav|share|favou?rit|bookmark)"
)
"""What says, within the words of the name of an event, that the user takes something back or does not want it: gain 0.

It comes before the other words, because `dislike`, `remove from cart` and `cancel order` have one of those too."""

_GAINS: Final[Sequence[tuple[int, tuple[str, ...]]]] = (
    (3, ("purchase", "buy", "bought", "order", "transaction", "conversion", "checkout", "subscribe")),
    (2, ("cart", "wishlist", "favorite", "favourite", "like", "share", "save", "follow", "download", "bookmark")),
    (0, ("report",)),
    (1, ("view", "click", "watch", "play", "listen", "read", "open", "visit")),
)
"""Gains, and words within the name of an event of that gain. `report` comes late: who downloads a report wants it."""

MOST_EVENTS: Final = 20
"""Kinds of events up to which a column of text is taken for one of events."""

_Kinds = Mapping[str, pa.DataType]


def guessed_nested(table: TableSample) -> Nested | None:
    """Guess which columns hold the lists of a log with a row per list; None where a row is an item."""
    kinds: _Kinds = {one.name: one.type for one in table.rows.schema}
    if any(is_item_name(name) and is_id(kind) for name, kind in kinds.items()):
        return None
    lists = {name: kind.value_type for name, kind in kinds.items() if is_list(kind)}
    for name, kind in lists.items():
        if pa.types.is_struct(kind):
            fields = {f"{name}.{one.name}": one.type for one in kind}
            items = _likeliest(fields, is_id, is_item_name)
            if items is not None:
                return Nested(items=items, scores=_scores(fields, items))
    items = _likeliest(lists, is_id, is_item_name)
    return None if items is None else Nested(items=items, scores=_scores(lists, items))


def _scores(kinds: _Kinds, items: str) -> str | None:
    return _likeliest({name: kind for name, kind in kinds.items() if name != items}, is_number, is_score_name)


def _likeliest(kinds: _Kinds, is_of_type: Callable[[pa.DataType], bool], is_name: Callable[[str], bool]) -> str | None:
    """Choose the first column of a type by its name, be it in the plural; else the only one of the type."""
    likely = [name for name, kind in kinds.items() if is_of_type(kind)]
    named = [
        name for name in likely if is_name(name.rpartition(".")[2]) or is_name(name.rpartition(".")[2].rstrip("s"))
    ]
    return next(iter(named or (likely if len(likely) == 1 else [])), None)


def guessed_gains(table: TableSample) -> tuple[Gains, tuple[str, ...]] | None:
    """Guess which column holds kinds of events, and what each is worth.

    Returns
    -------
    Gains and tuple of str, or None
        The gains, and the kinds of events that no known word is in, which have 1. None without a column of events, or
        where all would be worth the same.
    """
    texts = [one.name for one in table.rows.schema if is_text(one.type) or pa.types.is_dictionary(one.type)]
    named = [name for name in texts if plain_name(name) in _EVENTS]
    if not named:
        return None
    column = min(named, key=lambda name: _EVENTS.index(plain_name(name)))
    kinds = table.distinct(column)
    found = {kind: _gain_of(kind) for kind in kinds}
    if len(kinds) > MOST_EVENTS or len({1 if gain is None else gain for gain in found.values()}) < 2:  # noqa: PLR2004 - a single gain says nothing
        return None
    values = {kind: 1 if gain is None else gain for kind, gain in found.items()}
    best_first = dict(sorted(values.items(), key=lambda one: (-one[1], one[0])))
    return Gains(column=column, values=best_first), tuple(kind for kind, gain in found.items() if gain is None)


def _gain_of(kind: str) -> int | None:
    if _AGAINST.search(_words(kind)):
        return 0
    plain = plain_name(kind)
    return next((gain for gain, words in _GAINS if any(word in plain for word in words)), None)


def _words(name: str) -> str:
    """Write the words of a name apart, in small letters: those of `removeFromCart` and `remove_from_cart` are three."""
    return re.sub("[^a-z0-9]+", " ", re.sub("([a-z0-9])([A-Z])", r"\1 \2", name).lower())


def nested_values(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Give the elements of all lists of a column, or of a field of their structs."""
    name, field = column_and_field(path, table.column_names)
    elements = pc.list_flatten(table[name])
    return elements if field is None else pc.struct_field(elements, field)


OF_NESTED: Final = (C.ITEM_ID, C.SCORE, C.RANK)
"""Columns of an item that arrays have instead."""
