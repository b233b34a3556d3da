"""Columns of the inputs: names, defaults, and faults where they do not fit; shared by Spark and in-process hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.errors import ChecksFailedError, Fault, InputError, nearest
from rankeval_spark.inputs.column_names import likely_column
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
INPUTS: Final = (LOG, HELD_OUT, "segments", "train", "items")

DEFAULTS: Final[Mapping[str, str | float | None]] = {
    **{C.MODEL_ID: C.ONE_MODEL, C.LIST_ID: C.ONE_LIST, C.GAIN: 1.0},
    **dict.fromkeys((C.SCORE, C.RANK, C.RECOMMENDED_AT, C.INTERACTED_AT, C.VALUE)),
    **dict.fromkeys((C.PREDICTED_REWARD, C.PROPENSITY, C.WEIGHT)),
    **dict.fromkeys((C.CATEGORIES, C.VECTOR, C.PUBLISHED_AT)),
}
"""Values of optional columns that a table does not have."""

SAMPLE_BUCKETS: Final = 1_000_000  # users are drawn in millionths
LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999, since 1970: a number that is further away is no time, but of another unit."""

NO_ORDER: Final = "neither a score nor a rank"
RANK_FIX: Final = "cast it to a whole number (in pandas by astype({'rank': 'Int64'})), or order the lists by a score"

_RENAME: Final = "rename the column that is it"
_EITHER: Final = _RENAME + " to {0}; a config names it under inputs.{1}.columns.{0}"
"""How a column becomes a canonical one, where a config or a call may be at fault."""

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


def is_bigint(number: int) -> bool:
    """Whether 64 bits hold a number."""
    return -(2**63) <= number < 2**63


class HasIds(Protocol):
    """An input with known types of its ids."""

    @property
    def name(self) -> str:
        """The input's name."""

    @property
    def id_types(self) -> Mapping[str, str]:
        """Type of each id, ``string`` or ``bigint``, by canonical column."""


class HasColumns(HasIds, Protocol):
    """An input with known columns."""

    @property
    def given(self) -> Collection[str]:
        """Canonical columns that the table has."""

    @property
    def unread(self) -> Sequence[str]:
        """Columns of the table that nothing reads."""


Read = TypeVar("Read", bound=HasIds)


@dataclass(frozen=True)
class GivenInputs(Generic[Read]):
    """The inputs of one evaluation; the last three are None where they are not given."""

    recommendations: Read
    held_out: Read
    segments: Read | None = None
    train: Read | None = None
    items: Read | None = None

    def all(self) -> tuple[Read, ...]:
        """Return the inputs that there are, in the order of the config."""
        every = (self.recommendations, self.held_out, self.segments, self.train, self.items)
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
    segments: tuple[str, ...] = (), *, numbers: Collection[str] = (), lists: Lists = "separate"
) -> dict[str, Schema]:
    """Return the schema of every input by its name.

    `segments`: segments that are read. `numbers`: those that become bands. `lists`: the policy; where lists are pooled,
    no column ``list_id`` is read.
    """
    read = [schemas.RECOMMENDATIONS, schemas.HELD_OUT, schemas.TRAIN, schemas.ITEMS]
    if lists == "pooled":
        read = [replace(one, fields=tuple(field for field in one.fields if field.name != C.LIST_ID)) for one in read]
    return {**{one.name: one for one in read}, "segments": segments_schema(segments, numbers=numbers)}


def read_given(
    frames: Mapping[str, object], request: Request, read: Callable[[str, object, Schema], Read], *, expected: str
) -> dict[str, Read]:
    """Read the inputs of a call, by their names; the faults of all are reported at once.

    `frames`: each input; None where it is not given. `read`: brings an input, by its name, into the columns of a
    schema. `expected`: what an input is, for messages.

    Raises InputError: an input is missing or cannot be read. Raises ChecksFailedError as :func:`check_id_types`.
    """
    names = tuple(name for name in request.segments if name not in request.absent)
    by_name = input_schemas(names, numbers=request.slicing.bands, lists=request.policies.lists)
    faults: list[Fault] = []
    found: dict[str, Read] = {}
    for name, frame in frames.items():
        if frame is None and name in (LOG, HELD_OUT):
            faults.append(Fault(f"evaluate({name}=)", "None", expected))
        elif frame is not None:
            try:
                found[name] = read(name, frame, by_name[name])
            except InputError as error:
                faults.extend(error.faults)
    if faults:
        raise InputError(*faults)
    check_id_types(list(found.values()), own_item=request.policies.own_item, is_call=True)
    return found


def column_fault(where: str, name: str, known: Sequence[str], wanted_for: str = "", *, fix: str = "") -> Fault:
    """Build the fault of a column that the table does not have; ``fix`` is that where no name is near."""
    found = f"no column {name!r}{f' (for {wanted_for})' if wanted_for and wanted_for != name else ''}"
    found += f" among {', '.join(known)}" if known else " (the table has none)"
    is_sliced = where.rpartition(".")[2] == "segments" and name != C.USER_ID
    expected = "this column, which slices name" if is_sliced else "this column"
    return Fault(where, found, expected, nearest(name, known) or fix)


def filter_faults(filters: Sequence[Filter], known: Sequence[str], where: str) -> list[Fault]:
    """Find columns of filters that the table does not have, each place of the config once."""
    missing = {each.place: each.column for each in filters if each.column not in known}
    return [column_fault(f"{where}.filters[{place}].column", name, known) for place, name in missing.items()]


def type_fault(where: str, field: Field, name: str, found: str, fix: str = "") -> Fault:
    """Build the fault of a column whose type cannot be cast."""
    expected = _EXPECTED.get(field.name, f"a type that can be read as {field.type}")
    return Fault(where, f"column {name!r} of type {found} for {field.name}", expected, fix)


def missing_faults(
    known: Sequence[str],
    names: Mapping[str, str],
    renames: Mapping[str, str],
    where: str,
    places: Mapping[str, str] = MappingProxyType({}),
) -> list[Fault]:
    """Find required columns that a table with the columns `known` does not have.

    `names`: name in the table of every canonical column. `renames`: those that the config names; the table must have
    them. `where`: name of the input, for messages. `places`: key below the input that names a column, where it is not
    ``columns``.
    """
    others = [one for one in known if one not in names.values()]
    faults = []
    for name, own in names.items():
        if own not in known and name in renames:
            key = places.get(name, f"columns.{name}")
            faults.append(column_fault(f"{where}.{key}", own, known, name))
        elif own not in known and name not in DEFAULTS:
            fault = column_fault(where, own, known, name, fix=_rename_fix(where, name))
            fix = _likely_fix(where, name, others)
            faults.append(replace(fault, fix=fix) if fix else fault)
    if {C.SCORE, C.RANK} <= set(names) and not faults and not {names[C.SCORE], names[C.RANK]} & set(known):
        hints = [_likely_fix(where, name, others) for name in (C.SCORE, C.RANK)]
        hints += [nearest(names[name], known) for name in (C.SCORE, C.RANK)]
        fix = next(filter(None, hints), f"{_rename_fix(where)}; the table has {', '.join(known)}")
        faults.append(Fault(where, NO_ORDER, "at least one of the two columns", fix))
    return faults


def _rename_fix(where: str, name: str = "") -> str:
    """Return how a column of a table becomes a canonical one: by a config, or in a call of ``evaluate``."""
    if where.startswith("inputs."):
        return f"name it under {where}.columns.{name}" if name else f"name one under {where}.columns"
    return f"rename the column that is it to {name}" if name else "rename the column that is one"


def _likely_fix(where: str, name: str, columns: Sequence[str]) -> str:
    """Return how the column that is likely a canonical one becomes it; empty if none is likely."""
    likely = likely_column(name, columns)
    way = f"write {where}.columns.{name}: {likely}" if where.startswith("inputs.") else f"rename it to {name}"
    return "" if likely is None else f"did you mean {likely!r}? {way}"


def check_id_types(sources: Sequence[HasIds], *, own_item: OwnItem = "keep", is_call: bool = False) -> None:
    """Refuse ids that are text in one input and numbers in another, because '007' and 7 may or may not match.

    `own_item`: the policy, which compares items with users. `is_call`: whether the inputs are arguments of
    ``evaluate``, and not of a config, where whole numbers are called as in ``types``.

    Raises ChecksFailedError, with a fault for each input whose id has another type than in the first.
    """
    whole = "bigint" if is_call else "integer"
    faults = [] if own_item == "keep" else [*_own_item_faults(sources, own_item, is_call=is_call)]
    for name in IDS:
        having = [source for source in sources if name in source.id_types]
        for first, other in zip(having[:1] * len(having), having, strict=True):
            if (type_ := other.id_types[name]) != (first_type := first.id_types[name]):
                place, first_place = (
                    f"evaluate({one.name}=)" if is_call else f"inputs.{one.name}" for one in (other, first)
                )
                named, first_named = (whole if one == "bigint" else one for one in (type_, first_type))
                found = f"{name} of type {named}, while {first_place} has {first_named}"
                faults.append(Fault(place, found, "one type for an id", _id_fix(name, first, other, is_call=is_call)))
    if faults:
        raise ChecksFailedError(*faults)


def _own_item_faults(sources: Sequence[HasIds], own_item: OwnItem, *, is_call: bool) -> Iterator[Fault]:
    """Find users and items of different types in the log, where a policy compares them."""
    for one in sources:
        types = one.id_types
        if one.name == LOG and types[C.USER_ID] != types[C.ITEM_ID]:
            place = f"evaluate({LOG}=)" if is_call else f"inputs.{LOG}"
            found = f"user_id of type {types[C.USER_ID]} and item_id of type {types[C.ITEM_ID]}"
            found = found if is_call else found.replace("bigint", "integer")
            number = C.USER_ID if types[C.USER_ID] == "bigint" else C.ITEM_ID
            fix = f"write types: {{{number}: string}} for each input with {number}"
            fix = f"cast {number} of all inputs to text" if is_call else fix
            yield Fault(place, found, f"one type, because own_item={own_item!r} compares them", fix)


def _id_fix(name: str, first: HasIds, other: HasIds, *, is_call: bool) -> str:
    number, text = (first, other) if first.id_types[name] == "bigint" else (other, first)
    if is_call:
        return f"cast {name} of {number.name} to text, or that of {text.name} to whole numbers if 007 is to be 7"
    to_number = f"inputs.{text.name}.types: {{{name}: integer}} if 007 is to be 7"
    return f"write inputs.{number.name}.types: {{{name}: string}}, or {to_number}"


def refuse_missing(sources: Sequence[HasColumns], request: Request) -> None:
    """Refuse inputs that lack a column or a table that the request needs, all at once."""
    given = {source.name: source.given for source in sources}
    faults = [*_policy_faults(given, request), *_score_faults(given, request), *_catalogue_faults(given, request)]
    for requirement, labels in request.measure_set.requiring().items():
        name, _, column = requirement.partition(".")
        if column and column not in given.get(name, ()):
            fix = _EITHER.format(column, name)
            faults.append(Fault(name, f"no column {column!r}", f"the column, for {', '.join(labels)}", fix))
    if faults:
        unread = {source.name: source.unread for source in sources}
        raise InputError(*(_with_likely_column(fault, unread.get(fault.where, ())) for fault in faults))


def _with_likely_column(fault: Fault, unread: Sequence[str]) -> Fault:
    """Return the fault with a column that nothing reads and that is likely the missing one."""
    missing = fault.found.removeprefix("no column ").strip("'")
    likely = likely_column(missing, unread) if missing != fault.found else None
    if likely is None:
        return fault
    is_rename = fault.fix.startswith(_RENAME)
    way = f"rename it{fault.fix.removeprefix(_RENAME)}" if is_rename else f"rename it to {missing}, or {fault.fix}"
    return replace(fault, fix=f"did you mean {likely!r}? {way}")


def _policy_faults(given: Mapping[str, Collection[str]], request: Request) -> Iterator[Fault]:
    log, policies = given[LOG], request.policies
    for policy, reads_ranks, fix in (
        ("ties", tie_rule(policies.ties).reads_ranks, "set ties to item_asc"),
        ("rank_gaps", policies.rank_gaps == "keep", "set rank_gaps to renumber"),
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
    if C.MODEL_ID not in log and request.models not in (None, (C.ONE_MODEL,)):
        fix = "leave the models out; a log without this column has one model"
        yield Fault(LOG, "no column 'model_id'", "this column, because models are named", fix)


def attributed_lists_fault(attribution: str) -> Fault:
    """Build the fault of judgements that name their list and are to be attributed by time."""
    found = f"a column 'list_id' and attribution {attribution!r}, which finds lists by time"
    return Fault(HELD_OUT, found, "one of them", "leave the column out, or set attribution to none")


def _score_faults(given: Mapping[str, Collection[str]], request: Request) -> Iterator[Fault]:
    labels = [str(one) for one in request.measure_set.measures if C.HIT_SCORES in one.needs]
    policies = request.policies
    ignoring = policies.ignoring_scores
    if labels and ignoring is not None:
        found = f"{getattr(policies, ignoring)!r}, which ignores the scores"
        default = type(policies).model_fields[ignoring].default
        fix = f"set {ignoring} to {default}, or leave these measures out"
        yield Fault(ignoring, found, f"scores for {labels[0]}", fix)
    elif labels and C.SCORE not in given[LOG]:
        fix = "add the scores to the log, or leave these measures out"
        yield Fault(LOG, "no column 'score'", f"scores, because {', '.join(labels)} read them", fix)


def _catalogue_faults(given: Mapping[str, Collection[str]], request: Request) -> Iterator[Fault]:
    needing = ", ".join(str(measure) for measure in request.measure_set.measures if measure.needs_catalogue)
    if needing and "items" not in given and "train" not in given:
        yield Fault("measures", f"{needing} without a catalogue", "the input items, or train", "add the input items")
