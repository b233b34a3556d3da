"""The life of a run: its tables are staged, audited and published; what goes wrong is recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rankeval_spark.apps.error_translation import translated
from rankeval_spark.errors import ChecksFailedError, interruption

if TYPE_CHECKING:
    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.results import InputRecord, StagedRun


@dataclass
class RunLife(ABC):
    """A run from its first staged table to its last row in ``runs``.

    Attributes
    ----------
    recorded : StagedRun
        Where its tables are staged, and who records what becomes of it.
    steps : Steps
        What it is at, and how long each step took.
    reason : str or None
        What is recorded of a run that succeeded: why nothing was measured, or which run was scored again.
    """

    recorded: StagedRun
    steps: Steps
    reason: str | None = field(default=None, init=False)

    @abstractmethod
    def stage(self) -> str | None:
        """Stage the tables; return the reason."""

    @abstractmethod
    def inputs(self) -> Sequence[InputRecord]:
        """Return what is recorded of the inputs."""

    def compute(self) -> None:
        """Stage the tables and audit them."""
        with self._failures_recorded():
            self.reason = self.stage()
            with self.steps.step("audit"):
                self.recorded.audit()

    def publish_staged(self) -> None:
        """Publish what was staged."""
        with self._failures_recorded(), self.steps.step("publish"):
            self.recorded.publish(inputs=self.inputs(), timings=self.steps.seconds, reason=self.reason)

    def record_failure(self, cause: BaseException) -> None:
        """Record what it ends with, and at which step; nothing is published."""
        checks = [fault.where for fault in cause.faults] if isinstance(cause, ChecksFailedError) else ()
        self.recorded.fail(
            self.steps.current,
            cause,
            failed_checks=checks,
            inputs=self.inputs(),
            timings=self.steps.seconds,
        )

    @contextmanager
    def _failures_recorded(self) -> Iterator[None]:
        """Record what goes wrong within the block, with its stage, and raise it as the error that a user can act on."""
        try:
            yield
        except KeyboardInterrupt as stopped:
            self.record_failure(stopped)
            raise
        except Exception as error:
            cause = interruption(error) or translated(error, {one.name: one.location for one in self.inputs()})
            self.record_failure(cause)
            raise cause from error
