"""Hosts of a night: what reads its inputs and computes it, this process or Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.config import Cost, counted_cost
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.inputs.arrow.file_inputs import read_tables
from rankeval_spark.inputs.arrow.reading import MAX_MEMORY, physical_bytes
from rankeval_spark.inputs.places import release_copies
from rankeval_spark.sums import sums
from rankeval_spark.sums.check_counts import to_list_facts
from rankeval_spark.sums.examples import EXAMPLES, Examples, with_titles
from rankeval_spark.sums.exposures import to_metrics

if TYPE_CHECKING:
    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.hosts.host import Host
    from rankeval_spark.inputs.arrow.file_inputs import FileInput
    from rankeval_spark.inputs.arrow.reading import Tables
    from rankeval_spark.inputs.spark.reading import Source
    from rankeval_spark.result_rows.check_rows import CheckCount
    from rankeval_spark.results import StagedRun
    from rankeval_spark.sums.sums import Writer

    ReadInput: TypeAlias = FileInput | Source
    """An input that was read."""


class NightHost(AbstractContextManager["NightHost"], ABC):
    """One night of one config: its inputs, and the tables that come of them; used within a ``with`` block."""

    inputs: Sequence[ReadInput] = ()  # those that were read, in the order of the config; none before :meth:`read`
    has_users: bool = False  # whether the rows of users were staged

    def __init__(self, plan: NightPlan) -> None:
        self.request = plan.request
        self.tables = (sums.USER_ROWS, *([sums.LIST_ROWS] if plan.config.results.lists else []))  # with rows of users
        self._plan = plan

    @cached_property
    @abstractmethod
    def host(self) -> Host[Any]:
        """The rows of the night, and what is computed of them; after :meth:`read`."""

    @abstractmethod
    def read(self) -> Cost:
        """Open the inputs, and count their models and slice values, by which the tables of the night grow."""

    @abstractmethod
    def look_up_size(self, name: str) -> tuple[int, int]:
        """Count the rows of an input that are read, and the files that hold them."""

    def stage_users(self, run: StagedRun, steps: Steps) -> None:
        """Stage the rows of users and, where they are published, the lists."""
        has_lists = schemas.LISTS.name in self.tables
        with steps.step("match" if has_lists else "score") as step:
            with ExitStack() as staging:
                writers = {table: staging.enter_context(run.staged_in_parts(table)) for table in self.tables}
                self.totals = self.host.totals(self._sums, writers, steps.listener.advance)
            step.n_rows = run.n_rows[self.tables[-1]]
        if has_lists:  # staged by the same pass; this step only tells the listener how many rows there are
            with steps.step("score") as step:
                step.n_rows = run.n_rows[schemas.USER_METRICS.name]
        self.has_users = True

    def input_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the inputs, whether :meth:`stage_users` succeeded or not."""
        return self.host.input_facts(self.totals if self.has_users else {})

    def list_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the lists."""
        lists, metrics, comparisons = map(self.totals.get, (sums.LISTS, sums.METRICS, sums.COMPARISONS))
        return to_list_facts(lists, self.request, metrics, comparisons)

    @cached_property
    def totals(self) -> Mapping[str, pa.Table]:
        """The small tables over all lists, by the name of their sum; set by :meth:`stage_users` where it makes both."""
        if not self.has_users:
            message = "the rows of users are staged first"
            raise RuntimeError(message)
        return self.host.totals(self._sums)

    @property
    def _sums(self) -> Mapping[str, sums.Sum]:
        return {**self.host.sums, **Examples.of(self.request, self._plan.config.results.examples)}

    @cached_property
    def metrics(self) -> pa.Table:
        """Rows of ``schemas.METRICS``, without the columns of the run."""
        return to_metrics(self.totals, self.request)

    @property
    def comparisons(self) -> pa.Table | None:
        """Rows of ``schemas.COMPARISONS``, without the columns of the run; None where nothing is compared."""
        return self.totals.get(sums.COMPARISONS)

    @property
    def examples(self) -> pa.Table | None:
        """Rows of ``schemas.EXAMPLES``, without the columns of the run; None where none were asked for."""
        found = self.totals.get(EXAMPLES)
        if found is None:
            return None
        return with_titles(found, self.host.titles(pc.unique(found[C.ITEM_ID]).drop_null().to_pylist()))

    @abstractmethod
    def write_refused(self, table: Writer) -> None:
        """Write the rows of the inputs that cannot be used."""

    @abstractmethod
    def has_no_row(self, name: str) -> bool:
        """True if the table of an input has no row at all, of any date."""

    @abstractmethod
    def models(self, *, at_most: int) -> list[str | None]:
        """List the first models of the log."""


class ProcessHost(NightHost):
    """Arrow tables, computed once."""

    def __init__(
        self, plan: NightPlan, inputs: Sequence[FileInput], on_spark: Callable[[NightPlan], NightHost]
    ) -> None:
        """Compute a night of open inputs; ``on_spark`` returns its host on Spark, which writes unusable rows."""
        super().__init__(plan)
        self._on_spark = on_spark
        self._opened = inputs

    def __exit__(self, *_: object) -> None:
        """Release the rows: the process may live on."""
        for name in ("_tables", "host", "totals"):
            self.__dict__.pop(name, None)
        release_copies(above=physical_bytes() * MAX_MEMORY)

    @override
    def read(self) -> Cost:
        """Return the cost from the inputs, which are open already: their models and slices are counted."""
        self.inputs = self._opened
        n_models = len(self.host.models)
        return counted_cost(self._plan.config, n_models=n_models, slice_values=self._slice_values)

    @override
    def look_up_size(self, name: str) -> tuple[int, int]:
        source = next(source for source in self._opened if source.name == name)
        return source.count(), sum(1 for _ in source.table.dataset.get_fragments(source.condition))

    @override
    def write_refused(self, table: Writer) -> None:
        inputs = {  # at the versions that were read here
            source.name: source.config.model_copy(update={"version": source.version})
            for source in self._opened
            if source.version is not None
        }
        config = self._plan.config
        read = config.model_copy(update={"inputs": config.inputs.model_copy(update=inputs)})
        self._on_spark(replace(self._plan, config=read)).write_refused(table)

    @override
    def has_no_row(self, name: str) -> bool:
        return not next(source for source in self._opened if source.name == name).table.has_rows

    @override
    def models(self, *, at_most: int) -> list[str | None]:
        log = self._tables.recommendations.table
        if C.MODEL_ID not in log.column_names:
            return [C.ONE_MODEL] if log.num_rows else []
        names = pc.unique(log[C.MODEL_ID]).to_pylist()
        return sorted(names, key=lambda name: (name is not None, name or ""))[:at_most]

    @cached_property
    def _tables(self) -> Tables:
        return read_tables(self._opened, sample_share=self._plan.sample_share)

    @cached_property
    @override
    def host(self) -> InProcess:
        return InProcess(Usable(self._tables, self.request, pa.cpu_count()))

    @property
    def _slice_values(self) -> dict[str, int]:
        """Count the values of each slice, NULL among them: users that are not in the table may add one more."""
        segments = self.host.usable.segments
        if segments is None:
            return {}
        return {
            C.CROSSING.join(names): segments.group_by(list(names)).aggregate([]).num_rows
            for names in self._plan.config.slices
        }
