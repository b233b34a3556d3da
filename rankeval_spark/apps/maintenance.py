"""Maintenance of a results root in steps; each can be killed and run again, also during runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from rankeval_spark import __version__
from rankeval_spark.apps.progress import Progress, Steps
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results import ResultsStore
from rankeval_spark.results.maintenance import ALL, Compacted, DeletedNights, Staged

MAX_DAYS: Final = 36_500
"""Days that can be kept: a century before any evaluation date is a day of the calendar."""


@dataclass(frozen=True)
class MaintenanceOptions:
    """Requests in addition to the removal of staging and the merging of small files."""

    keep_days: int | None = None  # delete rows of single users that are older than this
    newest: date | None = None  # the date to count from; the newest published one by default
    erase_user: str | None = None  # erase this user
    evaluation: str | None = None  # delete and erase in this evaluation only
    vacuum: bool = False  # delete the files that no version needs, rather than count them

    def __post_init__(self) -> None:
        """Refuse what would silently do something else than was meant."""
        faults = []
        if self.keep_days is not None and not 1 <= self.keep_days <= MAX_DAYS:
            faults.append(Fault("--keep-days", str(self.keep_days), f"a number of days from 1 to {MAX_DAYS}"))
        if self.newest is not None and self.keep_days is None:
            faults.append(Fault("--date", str(self.newest), "--keep-days with it", "it is the date to count from"))
        if self.evaluation is not None and self.keep_days is None and self.erase_user is None:
            faults.append(Fault("--evaluation", repr(self.evaluation), "--keep-days or --erase-user with it"))
        if self.erase_user is not None and not self.erase_user.strip():
            faults.append(Fault("--erase-user", repr(self.erase_user), "the id of a user"))
        if faults:
            raise ConfigError(*faults)


@dataclass
class Maintained:
    """Results of the steps that ran."""

    staging: Staged | None = None  # folders that were removed, and those of live runs
    given_up: Sequence[str] = ()  # damaged files that are no part of ``runs`` any more
    deleted: DeletedNights | None = None  # nights whose rows of single users are gone
    erased: Mapping[str, int] = field(default_factory=dict)  # rows of each table that named the user
    compacted: dict[str, Compacted] = field(default_factory=dict)  # files that were merged, by table
    # files that no version needs any more, by table: counted, or deleted with ``vacuum``
    unneeded: dict[str, int] = field(default_factory=dict)


def maintain_root(
    root: str,
    options: MaintenanceOptions,
    *,
    one_run_per_root: bool = False,
    progress: Progress | None = None,
) -> Maintained:
    """Remove staging, delete and erase what was requested, merge small files, and count or delete unneeded ones.

    Refuses a folder that is no results root, tables that keep files for less time than readers need, or with other
    columns than this version declares, and a publish that takes longer than ten minutes.
    """
    steps, done = Steps(progress or Progress()), Maintained()
    store = ResultsStore.open(root, create=False, one_run_per_root=one_run_per_root)
    work = store.maintenance(code_version=__version__)
    with steps.step("staging"):
        done.given_up = work.give_up_events()
        done.staging = work.remove_staging()
    if options.keep_days is not None:
        with steps.step("keep days"):
            done.deleted = work.keep_days(options.keep_days, newest=options.newest, evaluation=options.evaluation)
    if options.erase_user is not None:
        with steps.step("erase"):
            done.erased = work.erase_user(options.erase_user, evaluation=options.evaluation)
    with steps.step("compact"):
        done.compacted = {table: work.compact(table) for table in ALL}
    with steps.step("vacuum"):
        done.unneeded = {table: work.vacuum(table, deletes=options.vacuum) for table in ALL}
    return done
