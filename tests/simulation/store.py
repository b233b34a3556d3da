"""An object store in memory whose requests take virtual time, and go wrong as the world decides.

It has the methods of a store of obstore that :mod:`rankeval_spark.results.object_storage` calls. As obstore does, it
repeats what was refused or not answered; so a write whose answer was lost is refused because of its own object.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

from tests.simulation.world import AWAITED, START, Driver, KilledError, World

Answer = TypeVar("Answer")
MAX_REPEATS: Final = 4


class Stored(NamedTuple):
    """An object, and when the store got it."""

    content: bytes
    e_tag: str
    at: float


class Watcher(Protocol):
    """Whoever looks at each change of the store before it is done, and after it."""

    def before(self, driver: Driver, key: str, content: bytes | None) -> None: ...

    def after(self, driver: Driver, key: str) -> None: ...

    def looked_at(self, driver: Driver, key: str) -> None: ...

    def is_publishing(self, driver: Driver) -> bool: ...


class Found(NamedTuple):
    """An answer to a request for an object."""

    stored: Stored

    @property
    def meta(self) -> Mapping[str, Any]:
        return {"e_tag": self.stored.e_tag, "size": len(self.stored.content)}

    def bytes(self) -> bytes:
        return self.stored.content

    def __iter__(self) -> Iterator[Any]:
        yield self.stored.content


class SimulatedStore:
    """The store as one driver reaches it; all share the objects."""

    def __init__(self, world: World, driver: Driver, objects: dict[str, Stored], watcher: Watcher) -> None:
        self._world, self._driver, self._objects, self._watcher = world, driver, objects, watcher

    def put(self, path: str, file: bytes | Path, mode: Any = None) -> Mapping[str, Any]:  # noqa: ANN401 - as obstore
        content = file if isinstance(file, bytes) else file.read_bytes()
        if isinstance(file, Path):  # Delta logs the time of a file
            os.utime(file, (self._seconds(), self._seconds()))

        def write() -> Mapping[str, Any]:
            known = self._objects.get(path)
            if mode == "create" and known:
                raise AlreadyExistsError(path)
            if isinstance(mode, Mapping) and (known is None or known.e_tag != mode["e_tag"]):
                raise PreconditionError(path)
            return {"e_tag": self._set(path, content).e_tag, "version": None}

        try:
            return self._request(f"put {path} {_kind(mode)}", write)
        except GenericError:
            if path.startswith("_locks/"):
                self._driver.given_up.add(path)
            raise

    def copy(self, source: str, target: str) -> None:
        self._request(f"copy {source} {target}", lambda: self._set(target, self._get(source).content))

    def get(self, path: str) -> Found:
        def read() -> Found:
            self._watcher.looked_at(self._driver, path)
            return Found(self._get(path))

        return self._request(f"get {path}", read)

    def head(self, path: str) -> Mapping[str, Any]:
        return self._request(f"head {path}", lambda: _meta(path, self._get(path)))

    def list(self, prefix: str | None = None, offset: str | None = None) -> Sequence[Sequence[Mapping[str, Any]]]:
        return self._request(f"list {prefix}", lambda: [[_meta(*item) for item in self._below(prefix, offset or "")]])

    def list_with_delimiter(self, prefix: str | None = None) -> Mapping[str, Any]:
        def look() -> Mapping[str, Any]:
            start = f"{prefix}/" if prefix else ""
            rest = {key.removeprefix(start) for key, _ in self._below(prefix, "")}
            folders = {start + name.partition("/")[0] for name in rest if "/" in name}
            return {
                "objects": [{"path": start + name} for name in rest if "/" not in name],
                "common_prefixes": sorted(folders),
            }

        return self._request(f"list {prefix} flat", look)

    def delete(self, paths: Sequence[str]) -> None:
        for path in self._world.random.sample(list(paths), len(paths)):  # so that a death leaves any part of them
            self._request(f"delete {path}", partial(self._drop, path))

    def _below(self, prefix: str | None, offset: str) -> Iterable[tuple[str, Stored]]:
        start = f"{prefix}/" if prefix else ""
        return sorted((key, one) for key, one in self._objects.items() if key.startswith(start) and key > offset)

    def _get(self, path: str) -> Stored:
        if path not in self._objects:
            raise FileNotFoundError(path)
        return self._objects[path]

    def _set(self, path: str, content: bytes) -> Stored:
        self._watcher.before(self._driver, path, content)
        stored = Stored(content, hashlib.md5(content, usedforsecurity=False).hexdigest(), self._world.now)
        self._objects[path] = stored
        self._watcher.after(self._driver, path)
        return stored

    def _drop(self, path: str) -> None:
        self._watcher.before(self._driver, path, None)
        if self._objects.pop(path, None):
            self._watcher.after(self._driver, path)

    def _seconds(self) -> float:
        return START.timestamp() + self._world.now

    def _request(self, what: str, effect: Callable[[], Answer]) -> Answer:
        """Send a request, as often as a client does; GenericError if it gives up."""
        if self._driver.is_dead:
            raise KilledError
        world, driver = self._world, self._driver
        incident = ""
        for kind in (*_kinds(what), *["held"] * self._watcher.is_publishing(driver)):
            driver.n_requests[kind] += 1
            incident = driver.incidents.get((kind, driver.n_requests[kind]), incident)
        for _ in range(MAX_REPEATS):
            fault = self._fault()
            world.sleep(self._latency())
            if world.now < world.away_until:
                fault = "refused"
            if incident == "swept" or (incident and world.random.random() < 0.5):
                if incident == "dies":
                    self._die(what, effect)
                self._meet(incident, f"before {what}")
                incident = ""
                world.sleep(0.01)
            if fault == "refused":
                world.say(f"{driver.name} {what}: refused")
            elif fault == "late":
                world.later(self._latency() * 100, lambda: self._tried(f"{what}: late", effect))
            else:
                answer, error = self._tried(what, effect)
                self._meet(incident, f"after {what}")
                incident = ""
                world.sleep(self._latency())
                if fault != "lost":
                    if error:
                        raise error
                    return cast("Answer", answer)
                world.say(f"{driver.name} {what}: answer lost")
            driver.disturb()
            if world.random.random() < 0.2:
                break
            world.sleep(world.random.uniform(1, 25))
            driver.disturb()
        world.say(f"{driver.name} {what}: given up")
        raise GenericError(what)

    def _tried(self, what: str, effect: Callable[[], Any]) -> tuple[Any, Exception | None]:
        answer, error = None, None
        try:
            answer = effect()
        except (OSError, AlreadyExistsError, PreconditionError) as raised:
            error = raised
        self._world.say(f"{self._driver.name} {what}" + (f": {type(error).__name__}" if error else ""))
        return answer, error

    def _fault(self) -> str:
        faults, drawn = self._world.faults, self._world.random.random()
        for kind in ("refused", "lost", "late"):
            drawn -= getattr(faults, kind)
            if drawn < 0:
                return kind
        return ""

    def _latency(self) -> float:
        random, faults = self._world.random, self._world.faults
        if faults.slow and random.random() < faults.slow:
            seconds = random.choice((random.uniform(0.5, 20), random.uniform(20, 400)))
            self._driver.disturb(seconds)
            return seconds
        return random.uniform(0.005, 0.05)

    def _die(self, what: str, effect: Callable[[], Any]) -> None:
        """End the driver; what it was sending may arrive all the same."""
        self._world.say(f"{self._driver.name} dies before {what}")
        self._driver.is_dead = True
        if self._world.random.random() < 0.5:
            self._world.later(self._world.random.uniform(0, 60), lambda: self._tried(f"{what}: after death", effect))
        raise KilledError

    def _sweep(self) -> None:
        """Delete all that is staged, as a rule of a bucket may."""
        self._world.say("what is staged is swept away")
        for driver in self._world.drivers:
            driver.was_disturbed = True
        for key in [key for key in self._objects if key.startswith("_staging/")]:
            self._drop(key)

    def _meet(self, incident: str, what: str) -> None:
        world, driver = self._world, self._driver
        if incident == "dies":
            world.say(f"{driver.name} dies {what}")
            driver.is_dead = True
            raise KilledError
        if incident in ("suspended", "swept"):
            awaits = world.random.choice(AWAITED)
            world.suspend(driver, 1_200 if awaits else world.random.uniform(10, 900), awaits)
            until = f"{driver.suspended_until:.0f}" + (f" or {awaits}" if awaits else "")
            world.say(f"{driver.name} stands still until {until} {what}")
            if incident == "swept":
                world.later(world.random.uniform(0, 300), self._sweep)
        elif incident == "jumps":
            driver.skew += world.random.uniform(-600, 600)
            world.say(f"the clock of {driver.name} is off by {driver.skew:.0f}")
        elif incident == "away":
            world.away_until = world.now + world.random.uniform(5, 180)
            world.say(f"the store is away until {world.away_until:.0f}")


def _kinds(what: str) -> Iterator[str]:
    """Yield the kinds of a request, see :data:`world.KINDS`."""
    yield "request"
    if what.startswith("put ") and ("_locks/" in what or "_delta_log/" in what):
        yield "change"
        if "_delta_log/" in what and not what.startswith("put _"):
            yield "commit"


def _kind(mode: object) -> str:
    return "over" if mode is None else "new" if mode == "create" else "if unchanged"


def _meta(path: str, stored: Stored) -> Mapping[str, Any]:
    at = START + timedelta(seconds=stored.at)
    return {"path": path, "size": len(stored.content), "last_modified": at, "e_tag": stored.e_tag}
