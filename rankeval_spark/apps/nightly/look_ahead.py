"""A night before it runs: what it would read, where, and all that it would be refused for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rankeval_spark.apps.nightly.night_plan import empty_reason
from rankeval_spark.apps.run_history import require_no_means
from rankeval_spark.config import check_roots, least_cost
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import ConfigError, InputError, errors_of, raise_together
from rankeval_spark.inputs.arrow.file_inputs import TEXT_FORMATS, look_at_inputs, open_inputs
from rankeval_spark.inputs.arrow.input_sizes import InputSize, look_up_sizes
from rankeval_spark.inputs.input_files import ForSparkError, no_row_fault
from rankeval_spark.refusals import refuse_unknown_baseline
from rankeval_spark.result_rows import check_rows
from rankeval_spark.results import check_root
from rankeval_spark.results.results_store import refuse_busy_night
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.spark.session.machine_checks import require_startable
from rankeval_spark.spark.session.settings import is_chosen

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.inputs import InputConfig
    from rankeval_spark.inputs.arrow.file_inputs import FileInput


class LookAhead:
    """A night before it runs: ``sizes`` of inputs, ``errors``, and the ``reason`` why nothing would be measured.

    No row is read before :meth:`look_at_rows`.
    """

    def __init__(self, config: EvaluationConfig, day: date) -> None:
        self._config, self._day, self._request = config, day, request_of(config, day)
        self.sizes: list[InputSize] = []
        self.reason: str | None = None
        self.why_spark: str | None = None

        def measure(name: str, source: InputConfig) -> None:
            self.sizes += look_up_sizes(name, source, day)

        # What a config is refused for whatever its inputs hold: its size, and places that cannot be used.
        results = config.results
        check_size = partial(least_cost(config).require_at_most, results.most_rows)
        self.errors = errors_of(check_size, partial(check_roots, config, day))
        places = [fault.where for error in self.errors for fault in error.faults]
        if "results.root" not in places and results.root is not None:
            self.errors += errors_of(partial(check_root, results.location))
        for name, source in config.inputs.given.items():  # those outside the allowed folders are not looked at
            if not any(place.startswith(f"inputs.{name}.") for place in places):
                self.errors += errors_of(partial(measure, name, source))
        faults = [size.fault for size in self.sizes if size.fault is not None]
        self.errors += [InputError(*faults)] if faults else []
        self._opened, errors = look_at_inputs(config, self._request, day)
        self.errors += errors
        n_rows = {text.name: text.table.count(None) for text in self._opened if text.config.format in TEXT_FORMATS}
        for place, size in enumerate(self.sizes):  # text was read to be opened, so that its rows are known
            if size.name in n_rows:
                self.sizes[place] = replace(size, n_rows=n_rows[size.name], remark=None)

    def look_at_rows(self) -> LookAhead:
        """Find also what only rows show: inputs without one, or a baseline that is no model."""
        self.errors += errors_of(self._find_empty_inputs)
        compared = self._request.comparisons
        if compared is not None and compared.baseline is not None and self._request.models is None:
            for log in (input_ for input_ in self._opened if input_.name == check_rows.RECOMMENDATIONS):
                self.errors += errors_of(partial(self._require_baseline, log))
        return self

    def look_at_host(self) -> LookAhead:
        """Find also why the night could not be computed now: no Spark where it needs one, or another run of it."""
        config = self._config
        if self.errors:
            return self
        if config.results.on_busy == "fail" and config.results.root is not None:
            night = NightKey(config.evaluation, self._day)
            self.errors += errors_of(partial(refuse_busy_night, config.results.location, night))
        self.why_spark = wants_spark(config)
        if self.why_spark is None:
            try:
                open_inputs(config, self._request, self._day)
            except ForSparkError as error:
                self.why_spark = str(error)
        if self.why_spark is not None:
            self.errors += errors_of(partial(require_startable, config.spark.resolved_settings(), why=self.why_spark))
        return self

    def require(self) -> None:
        """Refuse the night for all of its faults at once."""
        raise_together(self.errors)

    def _require_baseline(self, log: FileInput) -> None:
        refuse_unknown_baseline(self._request, log.models(), where="comparisons.baseline")

    def _find_empty_inputs(self) -> None:
        """Find the inputs without a row, of the date or at all."""
        empty = []
        for input_ in self._opened:
            with suppress(ForSparkError):  # of very many files
                empty += [input_] if input_.count() == 0 else []
        if wholly := [input_ for input_ in empty if not input_.table.has_rows]:
            raise InputError(*(no_row_fault(input_.name, input_.location) for input_ in wholly))
        names = [input_.name for input_ in empty if input_.name in (check_rows.RECOMMENDATIONS, check_rows.HELD_OUT)]
        if names:
            self.reason = empty_reason(self._day, names)
            with suppress(ConfigError):  # no results yet, or at a schema; what is wrong with a root is among the errors
                root = self._config.results.location
                require_no_means(root, NightKey(self._config.evaluation, self._day), self.reason)


def wants_spark(config: EvaluationConfig) -> str | None:
    """Return why Spark computes every night of a config; None where that depends on the inputs."""
    if config.spark.always:
        return "spark.always is true"
    if config.results.schema is not None:
        return "results.schema is of Spark's catalog"
    if is_chosen(config.spark.master):
        return "a Spark was chosen, by spark.master, spark-submit, SPARK_REMOTE or an active session"
    return None
