"""What holds in the store after each of its changes, read from the objects themselves by code of its own.

A reader follows the newest commit of ``runs`` to a version of each table. There, each night has the rows of one run: of
the last one that was published for it, all of them, in each table.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow.parquet as pq

from tests.simulation.world import COMMITTED, LOOKED_AT, TAKEN

if TYPE_CHECKING:
    from tests.simulation.store import Stored
    from tests.simulation.world import Driver, World

TABLES: Final = ("lists", "metrics")
LEAST_SILENCE: Final = 40.0  # seconds of a holder before another may take its lock
LONG_SILENCE: Final = 290.0  # after five minutes of it another may take a lock without a look at its age
BETWEEN_BEATS: Final = 60.0  # for at least that long no fault hindered a holder that is silent without a reason
_COMMIT: Final = re.compile(r"(\w+)/_delta_log/(\d{20})\.json")
_RUNS: Final = ("run_id", "status", "evaluation_date", "recorded_at", "n_rows", "table_versions")

Night = str  # its date; all schedules have one evaluation


class Seen(NamedTuple):
    """What readers see."""

    events: list[dict[str, Any]]
    versions: dict[str, int]


class Invariants:
    """Looks at each change of the objects."""

    def __init__(self, world: World, objects: dict[str, Stored]) -> None:
        self._world, self._objects = world, objects
        self._logs: dict[str, dict[int, list[dict[str, Any]]]] = {}  # actions of all commits, by table and version
        self._committers: dict[str, list[str]] = {}  # tokens of publish locks, in the order of their commits
        self._tokens: dict[str, str] = {}  # of the publish lock that each driver took last
        self._publishes = ""  # name of the driver that holds the publish lock
        self._seen = Seen([], {})
        for key in sorted(objects):
            self._read_commit(key)
        if "runs" in self._logs:
            self._look()

    def before(self, driver: Driver, key: str, content: bytes | None) -> None:
        """Check a change that is about to be done."""
        known = self._objects.get(key)
        if known is None or content == known.content:
            return
        if _COMMIT.fullmatch(key) and content is not None:
            self._world.require(False, f"{driver.name} overwrites the commit {key}")
        if key.startswith("_locks/") and "/probe-" not in key:
            self._check_holders(driver, key, known, content)

    def after(self, driver: Driver, key: str) -> None:
        """Check what readers find after a change."""
        if key == "_locks/publish":
            holder = json.loads(self._objects[key].content)
            self._publishes = "" if holder["released_at"] else driver.name
            if not holder["released_at"]:
                self._tokens[driver.name] = holder["token"]
        if key not in self._objects:
            if self._seen.versions and not key.startswith("_"):
                self._look()
        elif found := self._read_commit(key):
            self._check_committer(driver, found)
            for other in self._world.drivers:
                if other is not driver and found in TABLES:
                    self._world.happened(COMMITTED, other)
            if found == "runs":
                self._look()

    def looked_at(self, driver: Driver, key: str) -> None:
        """Wake the holder of a lock now and then when another one looks at it, mostly when that may soon take it."""
        if not key.startswith("_locks/") or key not in self._objects or not self._world.is_awaited(LOOKED_AT):
            return
        silence = self._world.now - self._objects[key].at
        holder = self._holder(json.loads(self._objects[key].content))
        if holder and holder is not driver and self._world.random.random() < (0.3 if silence > LONG_SILENCE else 0.01):
            self._world.happened(LOOKED_AT, holder)

    def is_publishing(self, driver: Driver) -> bool:
        """Return whether a driver holds the publish lock."""
        return self._publishes == driver.name

    def _holder(self, lock: dict[str, Any]) -> Driver | None:
        return next((each for each in self._world.drivers if each.process.pid == lock["process"]["pid"]), None)

    def _check_holders(self, driver: Driver, key: str, known: Stored, content: bytes | None) -> None:
        """Check that a lock is written by its holder, or by another one that had a reason to take it."""
        old, new = json.loads(known.content), json.loads(content or b'{"token": "", "released_at": ""}')
        if old["token"] == new["token"] or old["released_at"]:
            return
        holder = self._holder(old)
        silence = self._world.now - known.at
        self._world.require(not new["released_at"], f"{driver.name} releases {key} of {old['owner']}")
        if holder in (None, driver) or holder.is_dead or holder.is_done:
            return
        has_reason = key in holder.given_up or holder.is_hindered(self._world.now - BETWEEN_BEATS)
        is_silent = silence >= LEAST_SILENCE and has_reason
        self._world.require(is_silent, f"{driver.name} takes {key} of {old['owner']}, silent for {silence:.1f} seconds")
        self._world.happened(TAKEN, holder)

    def _check_committer(self, driver: Driver, table: str) -> None:
        """Check that nobody commits to a table after the next holder of the publish lock did."""
        if table not in TABLES or (token := self._tokens.get(driver.name)) is None:
            return
        order = self._committers.setdefault(table, [])
        if not order or order[-1] != token:
            self._world.require(token not in order, f"{driver.name} commits to {table} after another holder")
            order.append(token)

    def _read_commit(self, key: str) -> str:
        """Read a commit of a published table; return the table, empty for anything else."""
        match = _COMMIT.fullmatch(key)
        if not match:
            return ""
        table, version = match[1], int(match[2])
        lines = self._objects[key].content.splitlines()
        self._logs.setdefault(table, {})[version] = [json.loads(line) for line in lines]
        return table

    def files(self, table: str, version: int) -> set[str]:
        """Return the files of a version of a table."""
        active: set[str] = set()
        log = self._logs.get(table, {})
        for number in range(version + 1):
            if number not in log:
                self._world.require(False, f"version {number} of {table} does not exist, {version} is published")
            for action in log.get(number, ()):
                if "add" in action:
                    active.add(f"{table}/{unquote(action['add']['path'])}")
                elif "remove" in action:
                    active.discard(f"{table}/{unquote(action['remove']['path'])}")
        return active

    def _rows(self, table: str, version: int) -> list[dict[str, Any]]:
        """Return the runs and dates of the rows of a version."""
        rows = []
        for file in sorted(self.files(table, version)):
            if stored := self._objects.get(file):
                day = re.search(r"evaluation_date=([\d-]+)", file)
                found = _read(stored.content, table == "runs")
                rows += [{**row, "evaluation_date": day[1]} for row in found] if day else found
            else:
                self._world.require(False, f"{file} is gone, version {version} of {table} has it")
        return rows

    def _look(self) -> None:
        """Check what a reader sees now."""
        events = sorted(self._rows("runs", max(self._logs["runs"])), key=lambda event: str(event["recorded_at"]))
        counts = Counter((event["run_id"], event["status"], str(event["evaluation_date"])) for event in events)
        before = {(event["run_id"], event["status"], str(event["evaluation_date"])) for event in self._seen.events}
        self._world.require(before <= counts.keys(), f"events are lost: {before - counts.keys()}")
        # A run that seemed dead, and was recorded so, may wake up and say itself that it failed.
        twice = [event for event, n in counts.items() if n > 1 and event[1] != "FAILED"]
        self._world.require(not twice, f"events are there twice: {twice}")
        commits = [event for event in events if event["status"] in ("PUBLISHED", "MAINTAINED")]
        versions = dict(commits[-1]["table_versions"]) if commits else {}
        for table, version in self._seen.versions.items():
            self._world.require(versions.get(table, -1) >= version, f"readers go back to an earlier version of {table}")
        self._seen = Seen(events, versions)
        for table in TABLES if commits else ():
            self.check_table(table, versions[table])

    def check_table(self, table: str, version: int) -> None:
        """Check that each night has the rows of the run that was published last, all of them."""
        found: dict[Night, Counter[str]] = {}
        for row in self._rows(table, version):
            found.setdefault(row["evaluation_date"], Counter())[row["run_id"]] += 1
        for night, (run_id, n_rows, may_lack) in self._expected(table).items():
            own = dict(found.pop(night, {}))
            is_whole = own == {run_id: n_rows} or any(own == {run_id: n_rows - n} or not own for n in may_lack)
            self._world.require(is_whole, f"{table} at {version}, {night}: {own}, not {n_rows} rows of {run_id}")
        self._world.require(not found, f"{table} at {version} has nights that nobody published: {found}")

    def _expected(self, table: str) -> dict[Night, tuple[str, int, list[int]]]:
        """Return the run of each night, its rows, and how many of them may be gone because that was asked for."""
        nights: dict[Night, tuple[str, int, list[int]]] = {}
        for event in self._seen.events:
            night = str(event["evaluation_date"])
            if event["status"] == "PUBLISHED":
                nights[night] = event["run_id"], dict(event["n_rows"]).get(table, 0), []
            elif night in nights and event["status"] == "MAINTAINING" and table == "lists":
                nights[night] = *nights[night][:2], [nights[night][1]]
        return nights

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events in ``runs``."""
        return self._seen.events

    def published(self) -> dict[Night, str]:
        """Return the run that readers see of each night."""
        return {night: run_id for night, (run_id, *_) in self._expected("metrics").items()}

    def newest(self, table: str) -> int:
        """Return the newest version of a table, published or not."""
        return max(self._logs.get(table, [-1]))


@lru_cache(maxsize=1000)
def _read(content: bytes, is_of_runs: bool) -> list[dict[str, Any]]:
    with pq.ParquetFile(io.BytesIO(content)) as file:
        rows = file.read(columns=[*(_RUNS if is_of_runs else ("run_id",))], use_threads=False)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found
