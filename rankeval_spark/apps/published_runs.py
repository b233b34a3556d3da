"""The nights that were published: what each computed, and which of them came before another."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.loading import read_recorded, recorded_values
from rankeval_spark.config.requested_measures import RecordedDefinition, recall_own, recorded_definitions
from rankeval_spark.errors import ConfigError, Fault, FaultsError, InputError, nearest, nearest_days
from rankeval_spark.measures import MeasureSet
from rankeval_spark.report.defaults import chosen_evaluations, newest_nights
from rankeval_spark.results import Event, event_frame, results_of
from rankeval_spark.results.delta_log import LostCommitsError
from rankeval_spark.results.journal import event_table
from rankeval_spark.results.readers import arrow_reader, require_whole
from rankeval_spark.results.roots import storage_at
from rankeval_spark.results.table_scans import DamagedResultsError, to_rows

if TYPE_CHECKING:
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.results import RunRecord
    from rankeval_spark.results.run_record import NightKey

Definitions: TypeAlias = Mapping[tuple[str, int], RecordedDefinition]
"""Definitions of measures, by name in the tables and cutoff."""

_PUBLISHED: Final = ("status", "=", "PUBLISHED")


@dataclass(frozen=True)
class PastNight:
    """A published night, with the config it ran with and what it computed."""

    row: Event  # its newest commit in ``runs``

    def __post_init__(self) -> None:
        recall_own(self.row)

    @property
    def config(self) -> EvaluationConfig:
        """The config it ran with."""
        return _read_config(self.row["config"], os.getcwd())

    @property
    def recorded_config(self) -> dict[str, Any]:
        """The config it ran with, as it was recorded."""
        return recorded_values(self.row["config"])

    @property
    def completed_config(self) -> dict[str, Any]:
        """The config it ran with, with all keys of this version; as it was recorded where that is valid no more."""
        try:
            return dict(json.loads(self.config.public_json()))
        except ConfigError:
            return self.recorded_config

    @property
    def defaults_version(self) -> int:
        """Version of the defaults that the config was read under."""
        return int(self.row["defaults_version"] or 1)

    @property
    def config_hash(self) -> str:
        """Hash of its config by the rule of this version; the recorded one where that config is valid no more."""
        try:
            return self.config.hash_with_defaults(self.defaults_version)
        except ConfigError:
            return str(self.row["config_hash"])

    @property
    def n_input_rows(self) -> dict[str, int]:
        """Rows that were read of each input."""
        return {fact["name"]: fact["n_rows"] for fact in self.row["inputs"] if fact["n_rows"] is not None}

    @property
    def read(self) -> tuple[str, str, dict[str, int | None]]:
        """Hash of its config, and versions of the code and its inputs."""
        versions = {fact["name"]: fact["version"] for fact in self.row["inputs"]}
        return self.config_hash, self.row["code_version"], versions

    @property
    def was_scored_again(self) -> bool:
        """True if its measures are more than its config asks for."""
        return set(self.config.measure_set.measures) != set(self.measures.measures)

    @property
    def measures(self) -> MeasureSet:
        return MeasureSet.of([definition.measure(k) for (_, k), definition in self.definitions.items()])

    @property
    def is_empty(self) -> bool:
        """True if there was nothing to measure on its date; ``row["reason"]`` has the cause."""
        return not _has_means(self.row)

    @property
    def has_lists(self) -> bool:
        return schemas.LISTS.name in self.row["n_rows"]

    @property
    def input_columns(self) -> Mapping[str, str]:
        """Columns and types that each input had, by its name, such as ``user_id string, day date``."""
        return dict(self.row["input_columns"] or {})

    @property
    def definitions(self) -> Definitions:
        """Recorded definition of each measure, by name in the tables and cutoff."""
        return recorded_definitions(self.row)

    @property
    def evaluation(self) -> str:
        return str(self.row[C.EVALUATION])

    @property
    def evaluation_date(self) -> date:
        day: date = self.row[C.EVALUATION_DATE]
        return day

    @property
    def sample_share(self) -> float:
        return float(self.row["sample_share"])

    def __str__(self) -> str:
        return f"{self.row[C.EVALUATION]}, {self.row[C.EVALUATION_DATE]}"


def published_nights(
    root: str,
    *,
    evaluation: str | None = None,
    dates: Sequence[date] = (),  # only these; all where none is named
) -> list[PastNight]:
    """List the published nights, oldest first; raises InputError if none was published, or one of the dates was not."""
    rows = _find_newest_runs(root, evaluation)
    require_dates(root, "published run", dates, {row[C.EVALUATION_DATE] for row in rows})
    return _load_nights(root, [row for row in rows if not dates or row[C.EVALUATION_DATE] in dates])


def chosen_nights(root: str, *, evaluation: str | None = None, day: date | None = None) -> list[PastNight]:
    """Choose the night of a date, or the newest one of each evaluation; InputError as :func:`published_nights`."""
    if day is not None:
        nights = published_nights(root, evaluation=evaluation, dates=[day])
        names = chosen_evaluations((night.evaluation for night in nights), evaluation)
        return [night for night in nights if night.evaluation in names]
    rows = {(row[C.EVALUATION], row[C.EVALUATION_DATE]): row for row in _find_newest_runs(root, evaluation)}
    newest = newest_nights({night: _has_means(row) for night, row in rows.items()}, evaluation)
    return _load_nights(root, [rows[night] for night in sorted(newest.items())])


def dates_after(root: str, night: PastNight) -> list[date]:
    """List the published dates of the same evaluation after a night."""
    days = (row[C.EVALUATION_DATE] for row in _find_newest_runs(root, night.evaluation))
    return [day for day in days if day > night.evaluation_date]


def _find_newest_runs(
    root: str,
    evaluation: str | None,
    *,
    also: Sequence[str] = (),
    is_lenient: bool = True,
) -> list[Event]:
    """Find the newest published run of each night, by date.

    Of the columns of ``runs`` they have their keys, what says whether they have means, and those named in ``also``.
    """
    of_one = [] if evaluation is None else [(C.EVALUATION, "=", evaluation)]
    columns = (*C.RUN_KEY, "n_rows", "table_versions", *also)
    events = event_frame(root, columns=columns, where=[_PUBLISHED, *of_one], is_lenient=is_lenient)
    newest = {(event[C.EVALUATION_DATE], event[C.EVALUATION]): event for event in events}
    if not newest:
        named = (C.EVALUATION,)
        others = event_frame(root, columns=named, where=[_PUBLISHED], is_lenient=is_lenient) if of_one else []
        raise InputError(unknown_evaluation(root, "published run", evaluation, [row[C.EVALUATION] for row in others]))
    require_whole(storage_at(root), dict(events[-1]["table_versions"]))
    return [newest[night] for night in sorted(newest)]


def unknown_evaluation(root: str, what: str, evaluation: str | None, there: Collection[str]) -> Fault:
    """Build the fault of an evaluation that the results lack; ``what`` names what is missing."""
    if evaluation is None or not there:
        return Fault(f"results root {root}", f"no {what}", "at least one", "run an evaluation first")
    names = sorted(set(there))
    expected = f"one of the evaluations: {', '.join(names)}"
    return Fault(f"results root {root}", f"no {what} of {evaluation}", expected, nearest(evaluation, names))


def require_dates(root: str, what: str, dates: Collection[date], there: Collection[date]) -> None:
    """Refuse the dates that the results lack, with the days that are nearest to the first."""
    missing = sorted(set(dates) - set(there))
    if missing:
        expected = f"one of the dates: {', '.join(map(str, sorted(there)))}"
        found = f"no {what} of {', '.join(map(str, missing))}"
        raise InputError(Fault(f"results root {root}", found, expected, nearest_days(missing[0], there)))


def _load_nights(root: str, events: Sequence[Event]) -> list[PastNight]:
    """Read the full records of some published runs by their keys; the config alone is 10 KB."""
    days, runs = (sorted({event[name] for event in events}) for name in (C.EVALUATION_DATE, C.RUN_ID))
    where = [_PUBLISHED, (C.EVALUATION_DATE, "in", days), (C.RUN_ID, "in", runs)]
    rows = event_frame(root, where=where, is_lenient=True)  # those that are known are readable
    by_key = {tuple(row[name] for name in C.RUN_KEY): row for row in rows}
    return [PastNight(by_key[tuple(event[name] for name in C.RUN_KEY)]) for event in events]


@lru_cache(maxsize=64)
def _read_config(recorded: str, folder: str) -> EvaluationConfig:
    """Read a config as it was recorded; many nights have the same, and it takes 3 ms."""
    return read_recorded(recorded_values(recorded), folder=folder)


def published_dates(config: EvaluationConfig, evaluation: str) -> dict[date, str]:
    """Describe the run of every published date of an evaluation; none where there is no root yet.

    Published is published: a date that ran with another config, or found no rows, is among them, and its text says so.
    """
    columns = ("config", "config_hash", "defaults_version", "reason")
    try:
        events = _find_newest_runs(config.results.location, evaluation, also=columns, is_lenient=False)
    except (DamagedResultsError, LostCommitsError):
        raise
    except FaultsError:  # no root, or nothing of this evaluation in it; if more is wrong, the first run says so
        return {}
    # A config takes a millisecond to read, and thousands of nights have few of them.
    is_same: dict[tuple[str, int], bool] = {}
    standing = {}
    for night in map(PastNight, events):
        recorded = night.row["config"], night.defaults_version
        if recorded not in is_same:
            is_same[recorded] = night.config_hash == config.config_hash
        parts = [f"published by run {night.row[C.RUN_ID]}"]
        parts += [] if is_same[recorded] else ["with another config"]
        parts += [night.row["reason"]] if night.is_empty and night.row["reason"] else []
        standing[night.evaluation_date] = ", ".join(parts)
    return standing


def earlier_nights(
    root: str, night: RunRecord | PastNight, *, at_most: int, is_lenient: bool = True
) -> list[PastNight]:
    """List the newest nights before one with its evaluation and share of users; oldest first.

    Dates on which there was nothing to measure are left out. ``is_lenient`` as in
    :func:`rankeval_spark.results.journal.event_table`.
    """
    published = [(C.EVALUATION, "=", night.evaluation), _PUBLISHED]
    narrow = (*C.RUN_KEY, "n_rows", "sample_share")
    events = event_table(arrow_reader(root), columns=narrow, where=published, is_lenient=is_lenient)
    place = {day: row for row, day in enumerate(events[C.EVALUATION_DATE].to_pylist())}  # of the newest of each date
    days = [day for day in sorted(place) if day < night.evaluation_date]
    newest = events.take(pa.array([place[day] for day in days], pa.int64()))
    is_like = pc.and_(_have_means(newest), pc.equal(newest["sample_share"], night.sample_share))
    alike = newest.select(C.RUN_KEY).filter(is_like)
    return _load_nights(root, alike[-at_most:].to_pylist()) if alike.num_rows else []


def _has_means(event: Event) -> bool:
    return schemas.METRICS.name in (event["n_rows"] or {})


def _have_means(events: pa.Table) -> pa.ChunkedArray:
    """Return which events published means."""
    return pc.is_valid(pc.map_lookup(events["n_rows"], schemas.METRICS.name, "first"))


def run_with_means(root: str, night: NightKey) -> str | None:
    """Return the run that published a night, if it measured anything; None where it did not, or none was published."""
    of_night = [(C.EVALUATION, "=", night.evaluation), (C.EVALUATION_DATE, "=", night.evaluation_date), _PUBLISHED]
    last = event_table(arrow_reader(root), columns=(C.RUN_ID, "n_rows"), where=of_night)[-1:]
    runs: list[str] = last.filter(_have_means(last))[C.RUN_ID].to_pylist()
    return runs[0] if runs else None


def read_means(root: str, evaluation: str, nights: Sequence[PastNight]) -> list[dict[str, Any]]:
    """Read the rows of ``metrics`` over all users of some published nights: a few hundred a night.

    Raises DamagedResultsError if rows of some of these nights are missing or damaged.
    """
    return _read_nights(root, schemas.METRICS.name, evaluation, nights, slice=C.ALL_USERS)


def read_verdicts(root: str, evaluation: str, nights: Sequence[PastNight]) -> list[dict[str, Any]]:
    """Read the rows of ``gates`` of some published nights, as :func:`read_means` reads means."""
    return _read_nights(root, schemas.GATES.name, evaluation, nights)


def _read_nights(
    root: str, table: str, evaluation: str, nights: Sequence[PastNight], **equal: str
) -> list[dict[str, Any]]:
    dates = [night.evaluation_date for night in nights if table in night.row["n_rows"]]
    if not dates:
        return []
    return to_rows(results_of(root).arrow(table, date=dates, evaluation=evaluation, **equal))
