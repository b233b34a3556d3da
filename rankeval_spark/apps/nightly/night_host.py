"""What reads the inputs of a night and computes it, so that the steps of a night are the same wherever that is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from rankeval_spark.sums.check_counts import list_facts
from rankeval_spark.sums.sums import COMPARISONS, LISTS, METRICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.config import Cost
    from rankeval_spark.config.request import Request
    from rankeval_spark.hosts.host import Host
    from rankeval_spark.result_rows.check_rows import CheckCount
    from rankeval_spark.results import StagedRun


class ReadInput(Protocol):
    """What is known of an input that was read."""

    @property
    def name(self) -> str:
        """As in the config."""

    @property
    def location(self) -> str:
        """Absolute path or table name."""

    @property
    def format(self) -> str:
        """As in the config."""

    @property
    def version(self) -> int | None:
        """Version of a Delta table."""

    @property
    def table_columns(self) -> str:
        """Columns of the table with their types, as Spark names them."""

    @property
    def n_columns(self) -> int:
        """How many columns the table has."""

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that nothing reads."""


class NightHost(AbstractContextManager["NightHost"], ABC):
    """One night of one config: its inputs, and the tables that come of them; used within a ``with`` block.

    Attributes
    ----------
    inputs : sequence of ReadInput
        Those that were read, in the order of the config; none before :meth:`read`.
    """

    inputs: Sequence[ReadInput] = ()
    has_users: bool = False  # whether the rows of users were staged

    def __init__(self, request: Request) -> None:
        self.request = request

    @cached_property
    @abstractmethod
    def host(self) -> Host[Any]:
        """The rows of the night, and what is computed of them; after :meth:`read`."""

    @abstractmethod
    def read(self) -> Cost:
        """Open the inputs; return what multiplies the rows of the night."""

    @abstractmethod
    def size_of(self, name: str) -> tuple[int, int]:
        """Count the rows of an input that are read, and the files that hold them."""

    @abstractmethod
    def stage_users(self, run: StagedRun, steps: Steps) -> None:
        """Stage the rows of users and, where they are published, the lists."""

    def input_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the inputs, whether :meth:`stage_users` succeeded or not."""
        return self.host.input_facts(self.totals if self.has_users else {})

    def list_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the lists."""
        return list_facts(self.totals[LISTS], self.request)

    @cached_property
    def totals(self) -> Mapping[str, pa.Table]:
        """The sums of all lists."""
        if not self.has_users:
            message = "the rows of users are staged first"
            raise RuntimeError(message)
        return self.host.totals(self.host.sums)

    @cached_property
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS`` from the first column after the run's on."""
        means = [self.totals[METRICS]] if METRICS in self.totals else []
        return pa.concat_tables([*means, self.host.exposures()])

    @property
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS``, likewise; None where nothing is compared."""
        return self.totals.get(COMPARISONS)

    @abstractmethod
    def refused_rows(self) -> DataFrame:
        """Plan the rows of the inputs that cannot be used, as :func:`quarantine.to_refused_rows` does."""

    @abstractmethod
    def has_no_row(self, name: str) -> bool:
        """Whether the table of an input has no row at all, of any date."""

    @abstractmethod
    def models(self, *, at_most: int) -> list[str | None]:
        """Name the first models of the log."""
