"""Logs with one row per list: which columns hold the items, and faults where they do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import Nested
from rankeval_spark.errors import Fault, InputError

Array = TypeVar("Array")

RECOMMENDATIONS: Final = "recommendations"
"""Column of structs that ``recommendForAllUsers`` of MLlib writes."""

SCORE_FIELDS: Final = (C.SCORE, "rating")
"""Fields of such a struct that are its score; MLlib's is ``rating``."""

EXPECTED: Final = "an array, a field of an array of structs, or text with a JSON array"


def recognised(
    where: str, types: Mapping[str, str], fields: Mapping[str, Sequence[str]], *, ranks_from: int
) -> Nested | None:
    """Recognise a frame whose rows are whole lists, by the types of its columns; None where rows are items.

    `where`: name of the input, for messages. `types`: type of each column, as Spark names it. `fields`: fields of each
    column that is an array; none where its elements are no structs. `ranks_from`: rank of the first item of a list, as
    the caller gives it; arrays have no ranks, so only 1 is accepted.

    Raises InputError: the items are structs without an item, or there are ranks in addition to the order of the arrays.
    """
    if C.ITEM_ID in types:
        found = Nested(items=C.ITEM_ID, scores=C.SCORE if C.SCORE in types else None) if C.ITEM_ID in fields else None
    elif RECOMMENDATIONS in fields:
        found = _of_structs(where, types[RECOMMENDATIONS], fields[RECOMMENDATIONS])
    else:
        found = None
    if found is not None and (C.RANK in types or ranks_from != 1):
        given = "a column 'rank'" if C.RANK in types else f"ranks_from={ranks_from}"
        expected = "no ranks, because the order of the items in their array is the rank"
        raise InputError(Fault(where, f"arrays of items and {given}", expected, "leave it out"))
    return found


def _of_structs(where: str, type_: str, fields: Collection[str]) -> Nested:
    score = next((name for name in SCORE_FIELDS if name in fields), None)
    if C.ITEM_ID not in fields:
        expected = f"structs with the field {C.ITEM_ID} [, {C.SCORE} or rating]"
        fix = 'name the fields so, or give arrays as columns item_id and score: select("recommendations.movieId")'
        raise InputError(Fault(where, f"column {RECOMMENDATIONS!r} of type {type_}", expected, fix))
    return Nested(
        items=f"{RECOMMENDATIONS}.{C.ITEM_ID}", scores=None if score is None else f"{RECOMMENDATIONS}.{score}"
    )


def arrays_by_column(nested: Nested, read: Callable[[str, str], Array]) -> dict[str, Array]:
    """Read the arrays of a log with one row per list, by the canonical column of their elements.

    `read`: finds an array, given ``column`` or ``column.field`` and the key that names it.

    Raises InputError: columns that are missing or hold no arrays; all of them.
    """
    faults: list[Fault] = []
    found: dict[str, Array] = {}
    for name, place in nested.places.items():
        if name in nested.renames:
            try:
                found[name] = read(nested.renames[name], place)
            except InputError as error:
                faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    return found


def array_fault(where: str, place: str, path: str, type_: str) -> Fault:
    """Build the fault of a column that is neither an array nor text."""
    return Fault(f"{where}.{place}", f"{path!r} of type {type_}", EXPECTED)
