"""One run of a night: its plan, its results from user rows, and the record of a failure."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from rankeval_spark import __version__, schemas
from rankeval_spark.apps.error_translation import translate_error
from rankeval_spark.config import check_roots, least_cost
from rankeval_spark.config.evaluation_config import DEFAULTS_VERSION
from rankeval_spark.config.loading import read_recorded, recorded_values
from rankeval_spark.config.request import request_of
from rankeval_spark.engine.row_kinds import UNMATCHED_LISTS
from rankeval_spark.errors import ChecksFailedError, ConfigError, Fault, interruption
from rankeval_spark.result_rows.group_rows import has_groups, to_group_table
from rankeval_spark.results import RunRecord
from rankeval_spark.results.run_record import measure_facts

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.results import Event, InputRecord, Results, StagedRun


@dataclass(frozen=True)
class NightPlan:
    """One night to compute: a new one, one that is scored again, or one that is reproduced."""

    config: EvaluationConfig
    request: Request  # what is computed; it may have measures that the config does not
    evaluation_date: date
    sample_share: float  # share of the users that are evaluated, in (0, 1]
    recorded_config: str  # config that is recorded with the run, as JSON without secrets
    config_hash: str  # its hash, see :meth:`EvaluationConfig.hash_with_defaults`
    defaults_version: int = DEFAULTS_VERSION  # version of the defaults that it was read under

    @classmethod
    def of(cls, config: EvaluationConfig, evaluation_date: date, *, sample_share: float = 1.0) -> NightPlan:
        """Plan a new night; ConfigError for a path outside the allowed folders, or a night of too many rows."""
        check_roots(config, evaluation_date)
        least_cost(config).require_at_most(config.results.most_rows)
        request = request_of(config, evaluation_date)
        _refuse_late_covariate(request)
        if request.policies.is_attributed:  # the moment up to which events are complete matters
            until = config.inputs.held_out.complete_until(evaluation_date, datetime.now(UTC))
            request = request.copy_with(events_until=until)
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
            measures=measure_facts(self.request.measure_set, self.request.policies),
        )


def _refuse_late_covariate(request: Request) -> None:
    """Refuse a covariate of the night itself or a later one: what the test changed removes its own effect."""
    day = request.comparisons.covariate if request.comparisons else None
    if day is not None and request.evaluation_date is not None and day >= request.evaluation_date:
        found, fix = f"{day}, for the night of {request.evaluation_date}", "name the last night before the A/B test"
        raise ConfigError(Fault("comparisons.covariate", found, "an earlier night", fix))


def new_run_id() -> str:
    """Return an id that sorts by time and that no other run has."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def empty_reason(day: date, names: Sequence[str]) -> str:
    """Return why there is nothing to measure on a date."""
    return f"no rows for {day.isoformat()} in {' and '.join(names)}"


def evaluation_name(config: EvaluationConfig, sample_share: float) -> str:
    """Return the name of the evaluation; a sample has its own, so that it can never replace the whole."""
    return config.evaluation if sample_share >= 1 else f"{config.evaluation}.sample-{sample_share:g}"


def plan_again(night: PastNight, config: EvaluationConfig, measures: MeasureSet) -> NightPlan:
    """Plan a published night once more, of other places or ``measures``, with the recorded config recorded again."""
    request = request_of(config, night.evaluation_date).copy_with(measure_set=measures)
    recorded = night.row["config"], night.row["config_hash"], night.defaults_version
    return NightPlan(config, request, night.evaluation_date, night.sample_share, *recorded)


def has_judged_lists(results: Results, night: PastNight) -> bool:
    """Return True if judgements of a night named lists, which the check ``unmatched_lists`` shows by its presence."""
    of_night: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation}
    return bool(results.arrow(schemas.CHECKS.name, check=UNMATCHED_LISTS, **of_night).num_rows)


def pin_config(recorded: Event) -> EvaluationConfig:
    """Return the config of a run, validated, so that it reads the places that the run found, at their versions."""
    values = recorded_values(recorded["config"])
    for fact in recorded["inputs"]:
        given = values["inputs"][fact["name"]]
        # The recorded path is absolute: the folder of the config file, from which a relative one starts, is not known.
        if given.get("paths"):
            given["paths"] = json.loads(fact["location"])
        elif not given.get("table"):
            given["path"] = fact["location"]
        if fact["version"] is not None:
            given |= {"version": fact["version"], "timestamp": None}
    return read_recorded(values)


def stage_results(
    run: StagedRun, metrics: pa.Table, comparisons: pa.Table | None, request: Request, *, steps: Steps
) -> None:
    """Stage what follows from the rows of users: means, statistics of groups and comparisons."""
    with steps.step("summarise") as step:
        run.stage(schemas.METRICS.name, metrics)
        step.n_rows = run.n_rows[schemas.METRICS.name]
        if has_groups(request):
            run.stage(schemas.GROUP_METRICS.name, to_group_table(metrics))
    if comparisons is None:
        return
    with steps.step("compare") as step:
        run.stage(schemas.COMPARISONS.name, comparisons)
        step.n_rows = run.n_rows[schemas.COMPARISONS.name]


def record_failure(recorded: StagedRun, steps: Steps, inputs: Sequence[InputRecord], cause: BaseException) -> None:
    """Record the error that a run ends with, and at which step; nothing is published."""
    checks = [fault.where for fault in cause.faults] if isinstance(cause, ChecksFailedError) else ()
    recorded.fail(steps.current, cause, failed_checks=checks, inputs=inputs, timings=steps.seconds)


@contextmanager
def record_failures(recorded: StagedRun, steps: Steps, inputs: Callable[[], Sequence[InputRecord]]) -> Iterator[None]:
    """Record an error within the block, with its step, and raise it as the error that a user can act on."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        record_failure(recorded, steps, inputs(), stopped)
        raise
    except Exception as error:
        read = inputs()
        cause = interruption(error) or translate_error(error, {each.name: each.location for each in read})
        record_failure(recorded, steps, read, cause)
        raise cause from error
