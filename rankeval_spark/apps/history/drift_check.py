"""Did a mean leave the band of its own recent past: a check of what was measured, by a few published rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from rankeval_spark import columns as C, schemas
from rankeval_spark.limits import LEAST_NIGHTS
from rankeval_spark.measures import with_cutoff
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount
from rankeval_spark.statistics import intervals
from rankeval_spark.statistics.night_differences import DriftBand, band_of, has_drifted

if TYPE_CHECKING:
    from rankeval_spark.apps.history.published_runs import PastNight
    from rankeval_spark.results import RunRecord

Numbers: TypeAlias = Mapping[str, Any]
"""A row of ``metrics``."""

MOST_SHOWN: Final = 3
"""Means that a check names, those that are farthest outside first."""


def to_fact(
    facts: RunRecord, tonight: Sequence[Numbers], earlier: Sequence[Numbers], recent: Sequence[PastNight]
) -> CheckCount | None:
    """Hold the means of a night over all users against those of the nights before; None where none can be.

    Parameters
    ----------
    tonight, earlier : sequence of mapping
        Rows of ``metrics`` of everyone; those of nights that are not recent are left aside.
    recent : sequence of PastNight
        Published nights before it that make the band.

    Returns
    -------
    CheckCount or None
        A fact as :mod:`rankeval_spark.spark.checks.input_checks` makes them.
    """
    if len(recent) < LEAST_NIGHTS:
        return None
    definitions = facts.definitions
    defined_then = {night.evaluation_date: night.definitions for night in recent}
    rows = [
        row
        for row in earlier
        if defined_then.get(row[C.EVALUATION_DATE], {}).get((row[C.MEASURE], row[C.K]))
        == definitions.get((row[C.MEASURE], row[C.K]))
    ]
    return fact_of(tonight, rows, links={one.measure: one.link for one in facts.measures})


def fact_of(
    tonight: Sequence[Numbers], earlier: Sequence[Numbers], *, links: Mapping[str, str] = MappingProxyType({})
) -> CheckCount | None:
    """Count the means that left their band; None where no mean has a value and a band, so that nothing is checked.

    Parameters
    ----------
    tonight, earlier : sequence of mapping
        Rows of ``metrics`` of everyone, those of the earlier nights of any number of dates.
    links : mapping, optional
        What is averaged, by measure: the ``std_error`` of GMAP is that of logarithms. The identity where left out.

    Returns
    -------
    CheckCount or None
        ``count`` of the ``total`` means that have a value and a band; ``sample_keys`` name a few of them.
    """
    keys = [_key(row) for row in tonight]
    days = sorted({row[C.EVALUATION_DATE] for row in earlier})
    places = {key: index for index, key in enumerate(keys)}, {day: index for index, day in enumerate(days)}
    past, errors = np.full((2, len(keys), len(days)), np.nan)
    for row in earlier:
        if _key(row) in places[0]:
            place = places[0][_key(row)], places[1][row[C.EVALUATION_DATE]]
            past[place], errors[place] = _number(row[C.VALUE]), _std_error(row, links)
    values, band = np.array([_number(row[C.VALUE]) for row in tonight]), band_of(past, errors)
    total = int((~np.isnan(values) & ~np.isnan(band.low)).sum())
    if total == 0:
        return None
    return CheckCount(
        input=schemas.METRICS.name,
        check=check_rows.DRIFT,
        count=int(has_drifted(values, band).sum()),
        total=total,
        sample_keys=[_in_words(keys[place], values[place], band, place) for place in _farthest(values, band)],
    )


def _key(row: Numbers) -> tuple[str, str, int]:
    return row[C.MODEL_ID], row[C.MEASURE], row[C.K]


def _std_error(row: Numbers, links: Mapping[str, str]) -> float:
    values, errors = (np.array([_number(row[name])]) for name in (C.VALUE, "std_error"))
    return float(intervals.published_error(links.get(row[C.MEASURE], "identity"), values, errors)[0])


def _farthest(values: np.ndarray, band: DriftBand) -> list[int]:
    """Name the places of a few values outside, the farthest in units of the band first."""
    outside = np.flatnonzero(has_drifted(values, band))
    off = np.abs(values - band.centre)[outside] / np.maximum((band.high - band.low)[outside], np.finfo(float).tiny)
    chosen: list[int] = outside[np.argsort(-off, kind="stable")][:MOST_SHOWN].tolist()
    return chosen


def _in_words(key: tuple[str, str, int], value: float, band: DriftBand, place: int) -> str:
    model, measure, k = key
    nights, expected = int(band.n_nights[place]), f"{band.low[place]:.4g} to {band.high[place]:.4g}"
    return f"{model} {with_cutoff(measure, k)}: {value:.4g}, expected {expected} by {nights} nights"


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
