"""A night whose published lists are scored again: what holds on both hosts, and how this process does it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.run_life import RunLife
from rankeval_spark.apps.nightly.staging import stage_results
from rankeval_spark.apps.published.recorded_plan import has_judged_lists
from rankeval_spark.in_process.published_lists import PublishedLists
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.results import InputRecord

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.apps.history.published_runs import PastNight
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

    @property
    def exposures(self) -> list[str]:
        """Labels of the measures of all lists together, whose values stay."""
        return [one.label for one in self.request.measures.exposures]


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
        metrics, schema = self.published(schemas.METRICS.name), arrow_schema(schemas.METRICS)
        of_all_lists = metrics.filter(pc.is_in(metrics[C.MEASURE], pa.array(self.exposures, pa.string())))
        exposures = of_all_lists.select(schema.names).cast(schema)
        has_one_list = lists.filter(pc.field(C.LIST_ID) != C.ONE_LIST).count_rows() == 0
        are_judged = has_judged_lists(self.results, self.night)
        tables = PublishedLists(lists, self.request, has_one_list, exposures, has_judged_lists=are_judged)
        with self.steps.step("score") as step:
            with self.recorded.staged_in_parts(schemas.USER_METRICS.name) as add:
                for rows in tables.user_rows():
                    add(rows)
            step.n_rows = self.recorded.n_rows[schemas.USER_METRICS.name]
        stage_results(self.recorded, tables, self.request, steps=self.steps)

    @override
    def published(self, table: str) -> pa.Table:
        rows: pa.Table = getattr(self.results, table)(**self.of_night)
        return rows.drop_columns(list(C.RUN_KEY))
