"""A night whose published lists are scored again: what holds on both hosts, and how this process does it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.run_life import RunLife
from rankeval_spark.apps.nightly.staging import stage_results
from rankeval_spark.apps.published.recorded_plan import has_judged_lists
from rankeval_spark.engine.planning import outputs_of
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.results import InputRecord
from rankeval_spark.sums import sums
from rankeval_spark.sums.published import PublishedLists

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.config.request import Request
    from rankeval_spark.results import Results


@dataclass
class RescoredNight(RunLife):
    """A night whose published lists are scored again; what does not follow from its measures stays as it was."""

    night: PastNight
    request: Request
    results: Results

    @override
    def stage(self) -> str:
        """Stage the lists as they were, and everything that follows from them again."""
        self.stage_lists_and_values()
        for table in (schemas.GATES.name, schemas.CHECKS.name):  # what is not staged would have no rows afterwards
            self.recorded.stage(table, self.published(table))
        return f"scored again, after run {self.night.row[C.RUN_ID]}"

    @abstractmethod
    def stage_lists_and_values(self) -> None:
        """Stage lists, rows of users, means and comparisons."""

    @abstractmethod
    def published(self, table: str) -> Any:  # noqa: ANN401 - an Arrow table or a DataFrame, as the host has them
        """Return the rows of the night in a published table, without the columns of its run."""

    @override
    def inputs(self) -> Sequence[InputRecord]:
        columns = self.night.input_columns
        return [InputRecord(**one, columns=columns.get(one["name"])) for one in self.night.row["inputs"]]

    @property
    def of_night(self) -> dict[str, Any]:
        """The night, as readers of results take it."""
        return {"date": self.night.evaluation_date, "evaluation": self.night.evaluation}

    def totals(self, has_one_list: bool) -> tuple[PublishedLists, sums.ListTotals]:
        """Plan what is made of the lists: rows of users, means and comparisons."""
        are_judged = has_judged_lists(self.results, self.night)
        outputs = outputs_of(self.request, averages_lists=not has_one_list, has_judged_lists=are_judged)
        lists = PublishedLists(outputs, tuple(self.request.segments))
        return lists, sums.ListTotals(lists, sums.result_sums(self.request, outputs), tables=(sums.USER_ROWS,))

    def stage_totals(self, found: Mapping[str, pa.Table], published: pa.Table) -> None:
        """Stage what follows from the rows of users; measures of all lists together stay as they were published."""
        schema, labels = arrow_schema(schemas.METRICS), [one.label for one in self.request.measures.exposures]
        stay = published.filter(pc.is_in(published[C.MEASURE], pa.array(labels, pa.string()))).select(schema.names)
        means = [found[sums.METRICS]] if sums.METRICS in found else []
        metrics = pa.concat_tables([stay.cast(schema), *means])
        stage_results(self.recorded, metrics, found.get(sums.COMPARISONS), self.request, steps=self.steps)


class RescoredHere(RescoredNight):
    """Lists that this process reads and scores, some users at a time."""

    @override
    def stage_lists_and_values(self) -> None:
        lists: ds.Dataset = self.results.scan(schemas.LISTS.name, **self.of_night)
        with self.steps.step("match") as step:
            with self.recorded.staged_in_parts(schemas.LISTS.name) as add:
                for batch in lists.to_batches():
                    add(pa.Table.from_batches([batch]).drop_columns(list(C.RUN_KEY)))
            step.n_rows = self.recorded.n_rows[schemas.LISTS.name]
        has_one_list = lists.filter(pc.field(C.LIST_ID) != C.ONE_LIST).count_rows() == 0
        source, totals = self.totals(has_one_list)
        partials = []
        with self.steps.step("score") as step:
            with self.recorded.staged_in_parts(schemas.USER_METRICS.name) as add:
                for name, rows in totals.add(lists.to_batches(columns=source.columns)):
                    if name == sums.USER_ROWS:
                        add(pa.Table.from_batches([rows]))
                    else:
                        partials.append((name, rows))
            step.n_rows = self.recorded.n_rows[schemas.USER_METRICS.name]
        self.stage_totals(sums.finished(totals.sums, partials), self.published(schemas.METRICS.name))

    @override
    def published(self, table: str) -> pa.Table:
        rows: pa.Table = getattr(self.results, table)(**self.of_night)
        return rows.drop_columns(list(C.RUN_KEY))
