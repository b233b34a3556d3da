"""What one run computes: the config, the request that follows from it, the date and the share of users."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from rankeval_spark import __version__
from rankeval_spark.config import check_roots, least_cost
from rankeval_spark.config.evaluation_config import DEFAULTS_VERSION
from rankeval_spark.config.request import request_of
from rankeval_spark.refusals import refuse_unknown_baseline
from rankeval_spark.results import RunRecord
from rankeval_spark.results.run_record import measure_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.request import Request


@dataclass(frozen=True)
class NightPlan:
    """One night to compute: a new one, one that is scored again, or one that is reproduced.

    Attributes
    ----------
    config : EvaluationConfig
        What is read, and where.
    request : Request
        What is computed; it may have measures that the config does not.
    evaluation_date : date
        The day.
    sample_share : float
        Share of the users that are evaluated, in (0, 1].
    recorded_config : str
        Config that is recorded with the run, as JSON without secrets.
    config_hash : str
        Its hash, see :meth:`EvaluationConfig.hash_under`.
    defaults_version : int
        Version of the defaults that it was read under.
    """

    config: EvaluationConfig
    request: Request
    evaluation_date: date
    sample_share: float
    recorded_config: str
    config_hash: str
    defaults_version: int = DEFAULTS_VERSION

    @classmethod
    def of(cls, config: EvaluationConfig, evaluation_date: date, *, sample_share: float = 1.0) -> NightPlan:
        """Plan a new night of a config.

        Raises
        ------
        ConfigError
            A path lies outside the folders that the environment allows, or the night has more rows than it may.
        """
        check_roots(config, evaluation_date)
        least_cost(config).require_at_most(config.results.most_rows)
        request = _with_clock(request_of(config, evaluation_date), config, evaluation_date)
        return cls(config, request, evaluation_date, sample_share, config.public_json(), config.config_hash)

    @property
    def evaluation(self) -> str:
        """Name under which it is published."""
        return evaluation_name(self.config, self.sample_share)

    def run(self, run_id: str) -> RunRecord:
        """Describe a run of it."""
        return RunRecord(
            self.evaluation,
            self.evaluation_date,
            run_id,
            config=self.recorded_config,
            config_hash=self.config_hash,
            defaults_version=self.defaults_version,
            code_version=__version__,
            sample_share=self.sample_share,
            measures=measure_facts(self.request.measures, self.request.policies),
        )


def _with_clock(request: Request, config: EvaluationConfig, evaluation_date: date) -> Request:
    """Add the moment up to which events are complete, where it matters."""
    if not request.policies.is_attributed:
        return request
    until = config.inputs.held_out.complete_until(evaluation_date, datetime.now(UTC))
    return replace(request, events_until=until)


def new_run_id() -> str:
    """Make an id that sorts by time and that no other run has."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def require_baseline(request: Request, models: Sequence[str]) -> None:
    """Refuse a baseline that is none of the models of the log.

    Raises
    ------
    ConfigError
        It may be misspelt; one that ``models`` of the config names may have no list.
    """
    refuse_unknown_baseline(request, models, where="comparisons.baseline")


def empty_reason(day: date, names: Sequence[str]) -> str:
    """Say why there is nothing to measure on a date."""
    return f"no rows for {day.isoformat()} in {' and '.join(names)}"


def evaluation_name(config: EvaluationConfig, sample_share: float) -> str:
    """Name the evaluation; a sample is an evaluation of its own, so that it can never replace the whole."""
    return config.evaluation if sample_share >= 1 else f"{config.evaluation}.sample-{sample_share:g}"
