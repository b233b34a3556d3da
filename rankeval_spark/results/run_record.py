"""Facts that are recorded about a run, as plain values for columns of ``runs``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from rankeval_spark.config.requested_measures import RecordedDefinition
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.schemas import Field

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.measures import MeasureSet

_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_MEASURE_COLUMN: Final = re.compile(r"[a-z][a-z0-9_]{0,99}")


@dataclass(frozen=True)
class NightKey:
    """One evaluation on one date: the rows that a run replaces in every table."""

    evaluation: str
    evaluation_date: date

    def __post_init__(self) -> None:
        """Raise ConfigError for an empty name."""
        if not self.evaluation.strip():  # an empty partition value would be read back as NULL
            raise ConfigError(Fault("evaluation", repr(self.evaluation), "a name"))

    @property
    def slug(self) -> str:
        """Name for files: readable, safe in any store, and unique per evaluation and date."""
        readable = re.sub(r"[^a-z0-9]+", "-", self.evaluation.casefold())[:40].strip("-")
        digest = hashlib.sha256(self.evaluation.encode()).hexdigest()[:8]
        return f"{readable}-{digest}-{self.evaluation_date.isoformat()}"

    def __str__(self) -> str:
        return f"{self.evaluation}, {self.evaluation_date.isoformat()}"


@dataclass(frozen=True)
class MeasureRecord:
    """A measure at a cutoff that a run computes."""

    measure: str  # canonical name without its cutoff
    k: int  # cutoff; 0 = whole list
    column: str | None  # its column in `user_metrics`; None for a measure of all lists together, which has none
    definition: RecordedDefinition  # how it is computed
    low: float | None = None  # range that every value must lie in, for the audit; None where there is no bound
    high: float | None = None
    weight: str | None = None  # column of the denominators, for a ratio of sums over users
    link: str = "identity"  # what is averaged, see :mod:`rankeval_spark.statistics.intervals`
    unit: str = "user"  # of what the mean is taken

    def __post_init__(self) -> None:
        """Raise ConfigError for a column that Delta or another reader could not hold."""
        if self.column is not None and not _MEASURE_COLUMN.fullmatch(self.column):
            expected = "lower-case letters, digits and underscores"
            raise ConfigError(Fault(f"measure {self.measure}", f"the column {self.column!r}", expected))


def measure_facts(measures: MeasureSet, policies: Policies) -> tuple[MeasureRecord, ...]:
    """Describe every measure for ``runs`` and for the audit."""
    return tuple(
        MeasureRecord(
            measure.label,
            measure.k,
            measure.column if measure.has_user_values else None,
            RecordedDefinition.from_measure(measure, policies),
            *measure.entry.bounds,
            measure.weight_column,
            measure.link,
            policies.unit,
        )
        for measure in measures.measures
    )


@dataclass(frozen=True)
class InputRecord:
    """An input of a run, as it was read; ``columns`` are those of the whole table with their types, as text."""

    name: str
    location: str
    format: str
    version: int | None = None
    n_rows: int | None = None
    columns: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """Facts that are known when a run starts."""

    evaluation: str
    evaluation_date: date
    run_id: str
    config: str = "{}"
    config_hash: str = ""
    defaults_version: int | None = None
    code_version: str = ""
    sample_share: float = 1.0
    measures: tuple[MeasureRecord, ...] = ()

    def __post_init__(self) -> None:
        """Raise ConfigError for an id that could not be part of a path."""
        if not _RUN_ID.fullmatch(self.run_id):
            raise ConfigError(Fault("run_id", repr(self.run_id), "letters, digits, '_' and '-', at most 100"))

    @property
    def night(self) -> NightKey:
        """The evaluation and the date it is about."""
        return NightKey(self.evaluation, self.evaluation_date)

    @property
    def policies(self) -> Mapping[str, str]:
        """Policies that the measures are computed under; none without measures."""
        return self.measures[0].definition.policies if self.measures else {}

    @property
    def definitions(self) -> dict[tuple[str, int], RecordedDefinition]:
        """Definitions by the measure's name in the tables and cutoff."""
        return {(fact.measure, fact.k): fact.definition for fact in self.measures}

    def measure_fields(self) -> tuple[Field, ...]:
        """Measure columns of ``user_metrics`` in order of first mention, then the denominators."""
        fields: dict[str, Field] = {}
        weights: dict[str, Field] = {}
        for measure in self.measures:
            if measure.column is not None:
                fields.setdefault(measure.column, Field(measure.column, "double", str(measure.definition)))
            if measure.weight is not None:
                weights.setdefault(measure.weight, Field(measure.weight, "double", f"Denominator of {measure.column}"))
        return (*fields.values(), *weights.values())
