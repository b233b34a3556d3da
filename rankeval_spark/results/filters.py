"""Filters of published rows: nights, measures as people write them, conditions, and names that no row has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, InputError, listed, nearest, nearest_days, warn_user
from rankeval_spark.measures import Measure, group_statistics
from rankeval_spark.report.defaults import chosen_evaluations, newest_nights
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.table_scans import AT

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.results.table_scans import Filters

Value: TypeAlias = str | int | float | date | None
Values: TypeAlias = Value | Sequence[Value]  # allowed values of a column: one, or several; None for any
Day: TypeAlias = date | str
Days: TypeAlias = Day | Sequence[Day] | None
Names: TypeAlias = str | Sequence[str] | None
PREVIOUS: Final = "previous"

NAMES: Final = (
    *(C.MODEL_ID, C.BASELINE_MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, C.RUN_ID),
    *("input", "check", "test"),
)
"""Columns whose values are names; a value of one that no published row has is a slip."""

_UNDER: Final = {C.SLICE_VALUE: C.SLICE, C.K: C.MEASURE}
"""Names that belong to a name of another column."""


def read_measure(text: str, *, where: str = C.MEASURE) -> tuple[str, int | None]:
    """Read a measure, or ``GroupGap(...)`` of one: its label in the tables, and its cutoff, None where none is written.

    >>> read_measure("ndcg@10"), read_measure("AP"), read_measure("GroupGap(P@5)")
    (('nDCG', 10), ('AP', None), ('GroupGap(P)', 5))
    """
    parts = group_statistics.at_cutoff(text)
    if parts is not None:
        label, k = read_measure(parts[1], where=where)
        return group_statistics.name_of(parts[0], label), k
    try:
        measure = Measure.parse(text, where=where)
    except ConfigError as error:
        try:  # P has no meaning without a cutoff
            return Measure.parse(f"{text}@1").label, None
        except ConfigError:
            raise error from None
    return measure.label, measure.k or None


def cutoffs_of(texts: Sequence[str], known: Collection[str] = (), *, where: str = C.MEASURE) -> dict[str, list[int]]:
    """Return the cutoffs that were written, by the label of the measure; an empty list stands for all cutoffs.

    ``known``: labels that are taken as they are, such as measures of your own that this process does not have.

    >>> cutoffs_of(["nDCG@5", "nDCG@10", "AP"])
    {'nDCG': [5, 10], 'AP': []}
    """
    found: dict[str, list[int]] = {}
    named = [(text, None) if text in known else read_measure(text, where=where) for text in texts]
    for label, k in named:
        found.setdefault(label, [])
        if k is not None and (label, None) not in named:
            found[label].append(k)
    return found


def absent_names(
    rows: pa.Table,  # the names of all rows with their nights, each once
    asked: Mapping[str, Sequence[Any]],  # names by column
    cutoffs: Mapping[str, Sequence[int]],  # of `cutoffs_of`; their labels are the names of the measures in `asked`
    days: Collection[date],  # the nights that are read
    *,
    where: Callable[[str], str] = str,  # of a column
    shown: Callable[[Any], str] = repr,
) -> tuple[list[Fault], list[Fault]]:
    """Return a fault for each name that no row of any night has, and one for each that only other nights have."""
    unknown, elsewhere = list[Fault](), list[Fault]()
    named = [
        (column, value, asked.get(_UNDER.get(column, ""), ()), where(column), shown(value), "one of")
        for column, values in asked.items()
        for value in values
    ]
    named += [
        (C.K, k, [label], where(C.MEASURE), shown(f"{label}@{k}"), f"{label} at one of")
        for label, ks in cutoffs.items()
        for k in ks
    ]
    for column, value, above, place, found, expected in named:
        columns = [C.EVALUATION_DATE, column, *([_UNDER[column]] if above else [])]
        every = rows.select(columns).group_by(columns).aggregate([]).select(columns).to_pylist()
        own = [row for row in every if not above or row[_UNDER[column]] in above]
        here = {row[column] for row in own if row[C.EVALUATION_DATE] in days}
        if value in here or (above and not own):  # the name that it belongs to is unknown itself
            continue
        known = [str(name) for name in sorted((here or {row[column] for row in own}) - {None, ""})]
        nights = {row[C.EVALUATION_DATE] for row in own if row[column] == value}
        fix = "" if column == C.K else nearest(str(value), known)
        if nights:
            first, last = min(nights), max(nights)
            several = f"{len(nights)} nights, {first} to {last}"
            fix = f"it has rows on {first if first == last else several}"
        fault = Fault(place, found, f"{expected}: {listed(str(value), known) or 'nothing is published'}", fix)
        (elsewhere if nights else unknown).append(fault)
    return unknown, elsewhere


def choose_night(
    nights: Sequence[tuple[str, date]], evaluation: str | None, day: date | None = None, *, argument: str = "date"
) -> NightKey:
    """Return a night of the only or named evaluation, by default its newest; samples count only if named or alone.

    ``nights`` are those with means; ``argument`` of the user has the date. Raises ConfigError if several evaluations
    exist and none is named, or the named one or the date does not exist.
    """
    names = sorted({name for name, _ in nights})
    chosen = chosen_evaluations(names, evaluation)
    if evaluation is None and len(chosen) == 1:
        evaluation = chosen[0]
    if evaluation not in names:
        expected = f"one of: {', '.join(names)}" if names else "a night with means, but no night is published"
        raise ConfigError(Fault("evaluation", repr(evaluation), expected, nearest(evaluation or "", names)))
    days = sorted(own for name, own in nights if name == evaluation)
    if day is not None and day not in days:
        raise ConfigError(Fault(argument, str(day), f"a night of {evaluation}: {days[0]} to {days[-1]}"))
    return NightKey(evaluation, day or newest_nights(dict.fromkeys(nights, True), evaluation)[evaluation])


def earlier_night(nights: Sequence[tuple[str, date]], night: NightKey, against: date | str) -> NightKey | None:
    """Return the night to compare with, None if ``against`` is a model; InputError if there is no earlier night."""
    if against == PREVIOUS:
        earlier = [day for name, day in nights if name == night.evaluation and day < night.evaluation_date]
        if not earlier:
            found = f"no night of {night.evaluation} before {night.evaluation_date}"
            raise InputError(Fault("against='previous'", found, "an earlier one"))
        return NightKey(night.evaluation, max(earlier))
    try:
        day = against if isinstance(against, date) else date.fromisoformat(against)
    except ValueError:
        return None
    return choose_night(nights, night.evaluation, day, argument="against")


def nights_in(events: pa.Table) -> set[tuple[str, date]]:
    """Return the nights of events."""
    return set(zip(*(events[name].to_pylist() for name in (C.EVALUATION, C.EVALUATION_DATE)), strict=True))


def require_nights(nights: Collection[tuple[str, date]], day: Days, evaluation: Names) -> None:
    """Raise ConfigError for an evaluation or dates without results; warn if only some of the dates have none."""
    names = sorted({name for name, _ in nights})
    for name in as_list(evaluation) if evaluation is not None else ():
        if name not in names:
            raise ConfigError(Fault("evaluation", repr(name), f"one of: {listed(name, names)}", nearest(name, names)))
    known = sorted({own for name, own in nights if evaluation is None or name in as_list(evaluation)})
    given = [as_day(value) for value in as_list(day)] if day is not None else []
    missing = [value for value in given if value not in known]
    if missing and len(missing) == len(given):
        expected = f"a night of {', '.join(as_list(evaluation or names))}: {known[0]} to {known[-1]}"
        raise ConfigError(Fault("date", str(missing[0]), expected, nearest_days(missing[0], known)))
    if missing:
        warn_user(f"date: nothing is published of {', '.join(map(str, missing))}")


def require_models(given: Values, models: Collection[str], *, argument: str = C.MODEL_ID) -> None:
    """Raise ConfigError for a model without a row."""
    known = sorted(set(models))
    for name in as_list(given):
        if name not in known:
            expected = f"one of: {listed(str(name), known)}"
            raise ConfigError(Fault(argument, repr(name), expected, nearest(str(name), known)))


def of_nights(date: Days, evaluation: Names) -> Filters:
    return conditions_of({C.EVALUATION: evaluation, C.EVALUATION_DATE: date})


def conditions_of(equal: Mapping[str, Values], cutoffs: Mapping[str, Sequence[int]] = MappingProxyType({})) -> Filters:
    """Return conditions on columns that must be equal to values; dates may be texts, and measures have ``cutoffs``."""
    conditions: list[tuple[str, str, Any]] = []
    for name, value in equal.items():
        if name == C.MEASURE and value is not None:
            conditions.append((name, AT, dict(cutoffs)) if any(cutoffs.values()) else (name, "in", [*cutoffs]))
        elif value is not None:
            read = [as_day(each) if name == C.EVALUATION_DATE else each for each in as_list(value)]
            conditions.append((name, "in", read) if _are_several(value) else (name, "=", read[0]))
    return conditions


def _are_several(value: Values) -> TypeGuard[Sequence[Value]]:
    return isinstance(value, Collection) and not isinstance(value, str)


def as_list(values: Values) -> list[Any]:
    """Return several values, or one, as a list."""
    return list(values) if _are_several(values) else [values]


def as_day(given: object) -> date:
    """Parse an evaluation date, which may be a text or a time."""
    if isinstance(given, date):
        return given.date() if isinstance(given, datetime) else given
    try:
        return date.fromisoformat(given)  # type: ignore[arg-type]  # what is no text is refused
    except (TypeError, ValueError):
        raise ConfigError(Fault("date", repr(given), "YYYY-MM-DD")) from None
