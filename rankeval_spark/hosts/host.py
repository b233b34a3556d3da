"""The interface of both hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias

from typing_extensions import TypeVar

from rankeval_spark.sums.check_counts import to_list_facts
from rankeval_spark.sums.exposures import exposure_sums
from rankeval_spark.sums.input_warnings import warn_of_left_out
from rankeval_spark.sums.sums import ITEMS, LISTS, NO_WRITERS, ListCounts, result_sums

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.job import Job
    from rankeval_spark.report.result_table import ResultTable
    from rankeval_spark.result_rows.check_rows import CheckCount
    from rankeval_spark.sums.input_checks import InputChecks
    from rankeval_spark.sums.sums import Sum, Writer

    Advance: TypeAlias = Callable[[int, int], None]  # what hears how many rows of all are done, from any thread

NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?$"  # text of a number, of a segment

Frame = TypeVar("Frame", default=Any)  # ``pyspark.sql.DataFrame`` on Spark, ``ResultTable`` in this process


class Host(ABC, Generic[Frame]):
    """The inputs of a request, and what is computed of them where they are."""

    request: Request
    is_on_spark = False

    def __repr__(self) -> str:
        """Return what evaluates: this process, or Spark."""
        return "Spark" if self.is_on_spark else "this process"

    @property
    @abstractmethod
    def models(self) -> Sequence[str]:
        """Names of the models that are expected or, where none are, that the log has."""

    @property
    @abstractmethod
    def has_one_list(self) -> bool:
        """True if no user has several lists of a model."""

    @property
    @abstractmethod
    def given_columns(self) -> Mapping[str, Collection[str]]:
        """Canonical columns that each input has, by its name."""

    @abstractmethod
    def describe_users(self) -> tuple[dict[str, tuple[int, bool]], list[str]]:
        """Return how many values each segment has and whether all are numbers, and the names of own values.

        On Spark by a job each; the counts of values are estimates there.
        """

    @abstractmethod
    def for_request(self, request: Request) -> Host[Frame]:
        """Return a host of the same inputs for another request, which reads no other columns; nothing is refused."""

    @property
    @abstractmethod
    def job(self) -> Job:
        """The work on the rows of whole users."""

    @property
    @abstractmethod
    def input_checks(self) -> InputChecks:
        """The checks of the inputs."""

    @property
    @abstractmethod
    def counts_inputs(self) -> bool:
        """True if the inputs are counted in the same pass as the lists; else only when the checks are read."""

    @cached_property
    def sums(self) -> Mapping[str, Sum]:
        """The sums that all small results are made of."""
        of_inputs = self.input_checks.sums if self.counts_inputs else {}
        of_results = {**result_sums(self.request, self.job.outputs), **exposure_sums(self.request, self.models)}
        return {**of_results, LISTS: ListCounts(self.request), **of_inputs}

    @abstractmethod
    def totals(
        self, sums: Mapping[str, Sum], writers: Mapping[str, Writer] = NO_WRITERS, advance: Advance | None = None
    ) -> dict[str, pa.Table]:
        """Compute sums of all lists, and write rows of tables, in one pass over the users.

        ``writers``: take the rows of ``sums.USER_ROWS`` and ``sums.LIST_ROWS``, with ids as text. ``advance``: hears
        how many rows of all are done, where the host knows.
        """

    @abstractmethod
    def input_totals(self) -> dict[str, pa.Table]:
        """Compute the sums of :attr:`input_checks` alone; no list is made."""

    def input_facts(self, totals: Mapping[str, pa.Table]) -> list[CheckCount]:
        """Return what the checks ask about the inputs: from ``totals`` if they have it, or by a pass of its own."""
        return self.input_checks.facts(totals if ITEMS in totals else self.input_totals())

    @property
    @abstractmethod
    def user_metrics(self) -> Frame:
        """The rows of ``schemas.USER_METRICS``, whose columns begin with the model."""

    @property
    @abstractmethod
    def user_values(self) -> Frame:
        """The same values long: ``model_id, user_id, list_id, measure, k, value``."""

    @property
    @abstractmethod
    def ranked_items(self) -> Frame:
        """A row per list and item: key, rank, gain (NULL without a judgement), ``is_relevant``."""

    @property
    @abstractmethod
    def judged(self) -> Frame:
        """The judgements: user, list where they name it, item and gain."""

    @abstractmethod
    def titles(self, items: Sequence[str]) -> dict[str, str]:
        """Look up the titles of some items in the catalogue, by their ids as text; on Spark by a job of its own."""

    @abstractmethod
    def of_users(self, users: Sequence[str], request: Request) -> Host[Frame]:
        """Return a host of the rows of some users, by their ids as text, for another request.

        The training data and the catalogue are those of all users; rows that cannot be used are left out in silence.
        Raises InputError if the request needs an input, or a column of one, that is not there.
        """

    @abstractmethod
    def similar_users(self, user: str) -> Sequence[str]:
        """Return ids of users that a wrong id may have been meant for, as text; on Spark by a job."""

    @abstractmethod
    def hit_ranks(self, ranked: Frame, model: str, baseline: str) -> Frame:
        """Return the ranks of the items that are relevant under either of two models, side by side.

        A rank is NULL where a model did not recommend the item, and the best of several. Judgements may differ between
        the models where times attribute them: the gain is the larger one.
        """

    @abstractmethod
    def agreement(self, baseline: str, *, k: int, p: float) -> Frame:
        """Compare the first k items of each list with the baseline's list for that user, if any."""

    @abstractmethod
    def frame(self, table: ResultTable) -> Frame:
        """Return a small table as the host hands results out."""

    def keep(self) -> None:
        """Keep the rows of users, for several results."""

    def release(self) -> None:
        """Release what :meth:`keep` keeps."""

    def warn_of_left_out(self, totals: Mapping[str, pa.Table]) -> None:
        """Warn of rows that cannot be used or repeat others, and of users without a list, by sums that count them."""
        of_inputs = self.input_facts(totals) if self.counts_inputs else ()  # else the call itself warned of these
        warn_of_left_out([*of_inputs, *to_list_facts(totals[LISTS], self.request)], self.request)

    @abstractmethod
    def warn(self, metrics: pa.Table, totals: Mapping[str, pa.Table]) -> None:
        """Warn of inputs that can be evaluated, but are hardly what was meant; ``totals`` are all sums."""
