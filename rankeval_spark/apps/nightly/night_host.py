"""What reads the inputs of a night and computes it, so that the steps of a night are the same wherever that is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.config import Cost
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

    @abstractmethod
    def read(self) -> Cost:
        """Open the inputs; return what multiplies the rows of the night."""

    @abstractmethod
    def size_of(self, name: str) -> tuple[int, int]:
        """Count the rows of an input that are read, and the files that hold them."""

    @abstractmethod
    def stage_users(self, run: StagedRun, steps: Steps) -> None:
        """Stage the rows of users and, where they are published, the lists."""

    @abstractmethod
    def input_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the inputs, whether :meth:`stage_users` succeeded or not."""

    @abstractmethod
    def list_facts(self) -> list[CheckCount]:
        """Count what the checks ask of the lists."""

    @property
    @abstractmethod
    def metrics(self) -> pa.Table:
        """As ``schemas.METRICS`` from the first column after the run's on."""

    @property
    @abstractmethod
    def comparisons(self) -> pa.Table | None:
        """As ``schemas.COMPARISONS``, likewise; None where nothing is compared."""

    @abstractmethod
    def refused_rows(self) -> DataFrame:
        """Plan the rows of the inputs that cannot be used, as :func:`quarantine.to_refused_rows` does."""

    @abstractmethod
    def has_no_row(self, name: str) -> bool:
        """Whether the table of an input has no row at all, of any date."""

    @property
    @abstractmethod
    def model_names(self) -> Sequence[str]:
        """Names of the models that are expected or, where none are, that the log has; after :meth:`read`."""

    @abstractmethod
    def models(self, *, at_most: int) -> list[str | None]:
        """Name the first models of the log."""
