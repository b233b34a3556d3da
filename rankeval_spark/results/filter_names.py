"""Names in filters of published rows: measures as people write them, and names that no row has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, listed, nearest
from rankeval_spark.measures import Measure, group_statistics

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

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
        fix = _on(nights) or ("" if column == C.K else nearest(str(value), known))
        fault = Fault(place, found, f"{expected}: {listed(str(value), known) or 'nothing is published'}", fix)
        (elsewhere if nights else unknown).append(fault)
    return unknown, elsewhere


def _on(nights: Collection[date]) -> str:
    """Return the nights that have a name."""
    if not nights:
        return ""
    first, last = min(nights), max(nights)
    return f"it has rows on {first}" if first == last else f"it has rows on {len(nights)} nights, {first} to {last}"
