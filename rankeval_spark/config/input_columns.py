"""What both hosts know of the columns of an input: names, defaults, and the faults of those that do not fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from rankeval_spark import columns as C
from rankeval_spark.errors import ChecksFailedError, Fault, nearest
from rankeval_spark.schemas import Field, Schema

IDS: Final = (C.USER_ID, C.ITEM_ID)

DEFAULTS: Final[Mapping[str, str | float | None]] = {
    **{C.MODEL_ID: C.ONE_MODEL, C.LIST_ID: C.ONE_LIST, C.GAIN: 1.0},
    **dict.fromkeys((C.SCORE, C.RANK, C.INTERACTED_AT, C.VALUE, C.CATEGORIES, C.VECTOR, C.PUBLISHED_AT)),
}
"""Value of a column that the table need not have."""

MAX_BIGINT_DIGITS: Final = 18
"""Digits of a decimal that fits a bigint whatever they are."""

RANK_FIX: Final = "cast it to a whole number, or order the lists by a score"

_EXPECTED: Final = {**dict.fromkeys(IDS, "text or whole numbers"), C.RANK: "whole numbers"}


class HasIds(Protocol):
    """An input of which the types of its ids are known."""

    @property
    def name(self) -> str:
        """Name of the input."""

    @property
    def id_types(self) -> Mapping[str, str]:
        """Type of each id, ``string`` or ``bigint``, by canonical column."""


def segments_schema(names: tuple[str, ...], *, numbers: Collection[str] = ()) -> Schema:
    """Return the schema of the segments input: ``user_id`` and a text column for each segment, or one of numbers."""
    user = Field(C.USER_ID, "string", "User", nullable=False)
    segments = (
        Field(name, "double" if name in numbers else "string", f"Segment {name} of the user; NULL is unknown")
        for name in names
    )
    return Schema("segments", "one user", (C.USER_ID,), (user, *segments))


def kind_of(value: object) -> str:
    """Name a type by its library, as in ``pandas.DataFrame``."""
    library = type(value).__module__.partition(".")[0].removeprefix("_")
    return type(value).__name__ if library == "builtins" else f"{library}.{type(value).__name__}"


def column_fault(where: str, name: str, known: Sequence[str], wanted_for: str = "") -> Fault:
    """Build the fault of a column that the table does not have."""
    found = f"no column {name!r}{f' (for {wanted_for})' if wanted_for and wanted_for != name else ''}"
    return Fault(where, found, f"one of {', '.join(known) or '(the table has no columns)'}", nearest(name, known))


def type_fault(where: str, field: Field, name: str, found: str, fix: str = "") -> Fault:
    """Build the fault of a column whose type cannot be cast."""
    expected = _EXPECTED.get(field.name, f"a type that can be read as {field.type}")
    return Fault(where, f"column {name!r} of type {found} for {field.name}", expected, fix)


def missing_faults(
    known: Sequence[str], names: Mapping[str, str], renames: Mapping[str, str], where: str
) -> list[Fault]:
    """Find columns that a table needs and does not have.

    Parameters
    ----------
    known : sequence of str
        Columns of the table.
    names : mapping
        Canonical name: name in the table, of every column of the schema.
    renames : mapping
        Those of them that the config names, which the table must have.
    where : str
        Name of the input, for messages.
    """
    faults = [
        column_fault(f"{where}.columns.{name}" if name in renames else where, names[name], known, name)
        for name in names
        if names[name] not in known and (name not in DEFAULTS or name in renames)
    ]
    if {C.SCORE, C.RANK} <= set(names) and not faults and not {names[C.SCORE], names[C.RANK]} & set(known):
        hints = (nearest(names[name], known) for name in (C.SCORE, C.RANK))
        rename = f"name one under {where}.columns" if where.startswith("inputs.") else "rename the column that is one"
        fix = next(filter(None, hints), f"{rename}; the table has {', '.join(known)}")
        faults.append(Fault(where, "neither a score nor a rank", "at least one of the two columns", fix))
    return faults


def check_id_types(sources: Sequence[HasIds], *, is_call: bool = False) -> None:
    """Refuse inputs whose ids are text in one and numbers in another: '007' and 7 would match, or not, by accident.

    Parameters
    ----------
    is_call : bool
        Whether the inputs are arguments of ``evaluate``, and not of a config.

    Raises
    ------
    ChecksFailedError
        One fault for each id that has two types.
    """
    faults = [fault for name in IDS for fault in _id_faults(name, sources, is_call=is_call)]
    if faults:
        raise ChecksFailedError(*faults)


def _id_faults(name: str, sources: Sequence[HasIds], *, is_call: bool) -> list[Fault]:
    first, *others = [source for source in sources if name in source.id_types]
    return [
        Fault(
            _place(other, is_call=is_call),
            f"{name} of type {other.id_types[name]}, while {_place(first, is_call=is_call)} has {first.id_types[name]}",
            "one type for an id",
            _id_fix(name, first, other, is_call=is_call),
        )
        for other in others
        if other.id_types[name] != first.id_types[name]
    ]


def _place(source: HasIds, *, is_call: bool) -> str:
    return f"evaluate({source.name}=)" if is_call else f"inputs.{source.name}"


def _id_fix(name: str, first: HasIds, other: HasIds, *, is_call: bool) -> str:
    number, text = (first, other) if first.id_types[name] == "bigint" else (other, first)
    if is_call:
        return f"cast {name} of {number.name} to text, or that of {text.name} to whole numbers if 007 is to be 7"
    return (
        f"write inputs.{number.name}.types: {{{name}: string}}, "
        f"or inputs.{text.name}.types: {{{name}: integer}} if 007 is to be 7"
    )
