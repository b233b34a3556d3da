"""Object stores as results roots: S3, Azure and Google through obstore, with a folder of this machine as their mirror.

Files never change once a version names them. So this process reads its own copy of each, in a temporary folder: what
deltalake and pyarrow do with a table, they do there. Only new files, commits and locks go to the store.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import allowed_folders
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.object_stores import REFUSED, REQUESTS_AT_ONCE, exceptions, open_store, store_errors
from rankeval_spark.results.delta_log import HINT, LOG_FOLDER
from rankeval_spark.results.locks import LOCKS_FOLDER
from rankeval_spark.results.storage import Item, Made, Mark, Storage

if TYPE_CHECKING:
    import deltalake

KEPT_LOG: Final = timedelta(days=30)  # how long the files of a log are kept after a newer checkpoint


class ObjectStorage(Storage):
    """A prefix of a bucket or container; its credentials are those of the environment or of the platform."""

    checkpoint_every = 1  # a checkpoint is one request more for a writer, and one alone for each reader
    merge_every = 4
    requests_at_once = REQUESTS_AT_ONCE
    trusts_locks_for = 5.0  # another holder's commits are refused in any case
    is_mirror = True

    def __init__(self, address: str, store: Any = None) -> None:  # noqa: ANN401 - any store of obstore
        self._address = address
        allowed_folders.require_allowed(("results root", address))
        self._store: Any = store or open_store(address, "results root")
        self._is_proved = False
        super().__init__(tempfile.mkdtemp(prefix="rankeval-store-"))
        allowed_folders.allow_own(self.root)
        weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)
        self._logs: dict[str, dict[str, int]] = {}  # sizes of the files of each log, as far as they are known

    def __reduce__(self) -> tuple[Callable[..., ObjectStorage], tuple[str, dict[str, str]]]:
        """Return what a worker opens the same prefix by, with the credentials of its own environment."""
        return _opened_by_worker, (self._address, dict(allowed_folders.STORE_SETTINGS))

    @property
    def address(self) -> str:
        return self._address

    def prove_locks(self, *, one_run_per_root: bool) -> None:
        if self._is_proved:
            return
        # A second create, and a change from a version that is no longer there, must both be refused.
        path, refused = f"{LOCKS_FOLDER}/probe-{uuid.uuid4().hex}", ""
        try:
            first = self.swap(path, b"1", None)
            refused = "" if self._refuses(path, "create") else "that an object exists"
            self.swap(path, b"3", first)
            refused = refused if self._refuses(path, first) else "that an object was changed meanwhile"
        except (exceptions.NotSupportedError, NotImplementedError, OSError) as error:
            # `swap` raises OSError while it handles the store's own error, which is its context.
            if not isinstance(error.__context__ or error, exceptions.NotSupportedError | NotImplementedError):
                raise
            refused = "conditions"
        with suppress(FileNotFoundError):
            self.forget([path])
        self.has_locks, self._is_proved = not refused, True
        if refused and not one_run_per_root:
            found = f"{self._address!r}, a store that ignores the condition of a write ({refused})"
            fix = "or let the scheduler allow one run per root and say so: results.one_run_per_root"
            raise ConfigError(Fault("results root", found, "a store with conditional writes, to take a lock on", fix))

    def _refuses(self, path: str, mode: Any) -> bool:  # noqa: ANN401 - as obstore takes it
        """Return whether the store refuses a write because of its condition."""
        try:
            with self._errors(path):
                self._store.put(path, b"2", mode=mode)
        except (*REFUSED, FileNotFoundError):
            return True
        return False

    def names(self, path: str) -> list[str]:
        with self._errors(path):
            if not path.endswith(f"/{LOG_FOLDER}"):
                found = self._store.list_with_delimiter(prefix=path or None)
                keys = [*(entry["path"] for entry in found["objects"]), *found["common_prefixes"]]
                return sorted(key.rstrip("/").rpartition("/")[2] for key in keys)
        # A listing may be late. What comes after the newest commit is asked for by its name, which is never late.
        known = self._logs.setdefault(path, {})
        is_new = not known
        if is_new:
            self._list(path, "")
        if not (is_new and known) and self._has_next(path):
            self._list(path, max(known))
            while self._has_next(path):
                pass
        return sorted(known)

    def _has_next(self, log: str) -> bool:
        """Return whether a log has the commit after the newest that is known, which it then is."""
        numbers = (int(number) for name in self._logs[log] if (number := name[:20]).isdecimal())
        newest = max(numbers, default=-1)
        try:
            self.size(f"{log}/{newest + 1:020d}.json")
        except FileNotFoundError:
            return False
        return True

    def _list(self, log: str, after: str) -> None:
        """Learn the names of a log after one of them, and their sizes."""
        with self._errors(log):
            batches = self._store.list(prefix=log, offset=f"{log}/{after}" if after else None)
            self._logs[log] |= {entry["path"].rpartition("/")[2]: entry["size"] for batch in batches for entry in batch}

    def known_names(self, path: str) -> list[str]:
        return sorted(self._logs.get(path, ())) or self.names(path)

    def read(self, path: str) -> bytes:
        if _is_of_log(path):
            self.fetch([path])
            return super().read(path)
        with self._errors(path):
            return bytes(self._store.get(path).bytes())

    def create(self, path: str, content: bytes) -> bool:
        return self.swap(path, content, None) is not None

    def put(self, path: str, content: bytes) -> None:
        if not self.create(path, content):
            self.size(path)  # so that its name is known
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{self._address}/{path}")
        if _is_of_log(path):
            target = self._path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            self._know(path, len(content))

    def load(self, path: str) -> tuple[bytes, Mark] | None:
        try:
            with self._errors(path):
                found = self._store.get(path)
                return bytes(found.bytes()), _mark_of(found.meta)
        except FileNotFoundError:
            return None

    def swap(self, path: str, content: bytes, mark: Mark | None) -> Mark | None:
        try:
            with self._errors(path):
                return _mark_of(self._store.put(path, content, mode="create" if mark is None else mark))
        except (*REFUSED, OSError) as error:
            # Where an answer was lost, obstore asks again, and is refused because of its own object.
            found = self.load(path)
            if found and found[0] == content:
                return found[1]
            if isinstance(error, (*REFUSED, FileNotFoundError)):
                return None
            raise

    def age_of(self, path: str, mark: Mark) -> float:  # noqa: ARG002 - an object has one version
        try:
            return self.age(path)
        except FileNotFoundError:
            return 0.0

    def age(self, path: str) -> float:
        with self._errors(path):
            return max(0.0, time.time() - float(self._store.head(path)["last_modified"].timestamp()))

    def size(self, path: str) -> int:
        folder, _, name = path.rpartition("/")
        if (known := self._logs.get(folder, {}).get(name)) is not None:
            return known
        with self._errors(path):
            size = int(self._store.head(path)["size"])
        self._know(path, size)
        return size

    def require_writable(self) -> None:
        """Do nothing: rights are those of each request."""

    def remove(self, path: str) -> None:
        with self._errors(path):
            batches = self._store.list(prefix=path)
            keys = [entry["path"] for batch in batches for entry in batch]
            self._delete([key for key in keys if key.startswith(f"{path}/")] or [path])
        self._logs = {folder: names for folder, names in self._logs.items() if not folder.startswith(f"{path}/")}
        super().remove(path)

    def forget(self, paths: Iterable[str]) -> None:
        if gone := list(paths):
            with self._errors(gone[0]):
                self._delete(gone)
            for path in gone:
                self._logs.get(path.rpartition("/")[0], {}).pop(path.rpartition("/")[2], None)
                self._path(path).unlink(missing_ok=True)

    def _delete(self, paths: Sequence[str]) -> None:
        """Delete objects, those that are gone already too: S3 passes over them, and Azure stops at the first."""
        try:
            self._store.delete(paths)
        except FileNotFoundError:
            for path in paths:
                with suppress(FileNotFoundError):
                    self._store.delete(path)

    @contextmanager
    def listed(self, folder: str) -> Iterator[None]:
        """Show all files of the store below a folder in the mirror, with their ages; those that it lacks are empty."""
        with self._errors(folder):
            entries = [entry for batch in self._store.list(prefix=folder) for entry in batch]
        shown = []
        try:
            for entry in entries:
                if _is_of_log(entry["path"]):
                    continue
                file, written_at = self._path(entry["path"]), entry["last_modified"].timestamp()
                if not file.exists():
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.touch()
                    shown.append(file)
                os.utime(file, (written_at, written_at))
            yield
        finally:
            for file in shown:
                file.unlink(missing_ok=True)

    def trim_log(self, opened: deltalake.DeltaTable, log: str) -> None:
        """Remove files before a checkpoint that is old itself, now and then: their ages are to be listed."""
        if (opened.version() + 1) % Storage.checkpoint_every:
            return
        with self._errors(log):
            entries = [entry for batch in self._store.list(prefix=log) for entry in batch]
        before = time.time() - KEPT_LOG.total_seconds()
        old = [entry["path"] for entry in entries if entry["last_modified"].timestamp() < before]
        newest = max((path for path in old if ".checkpoint." in path), default="")
        self.forget(path for path in old if path < newest.partition(".checkpoint.")[0])

    def side_by_side(self, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        given = list(items)
        if self.requests_at_once == 1 or len(given) < 2:  # noqa: PLR2004 - several
            return list(map(work, given))
        with ThreadPoolExecutor(self.requests_at_once) as pool:
            return list(pool.map(work, given))

    def fetch(self, paths: Iterable[str]) -> None:
        """Copy files into the mirror, unless it has them; a file that the store lacks is skipped."""
        self.side_by_side(self._fetch, [path for path in paths if not self._path(path).exists()])

    def _fetch(self, path: str) -> None:
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with self._errors(path), draft.open("wb") as file:
                for part in self._store.get(path):
                    file.write(part)
            draft.replace(target)
        except FileNotFoundError:
            draft.unlink(missing_ok=True)

    def sync(self, *paths: Path) -> None:
        """Write files of the mirror to the store, a large one in parts; checkpoints are found by their names alone."""
        for file in (path for path in paths if path.is_file() and path.name != HINT):
            key = str(file.relative_to(self.root))
            with self._errors(key):
                self._store.put(key, file)
            self._know(key, file.stat().st_size)

    def _know(self, path: str, size: int) -> None:
        folder, _, name = path.rpartition("/")
        if folder.endswith(f"/{LOG_FOLDER}"):
            self._logs.setdefault(folder, {})[name] = size

    def _errors(self, path: str) -> AbstractContextManager[None]:
        return store_errors(self._address, path)


def _opened_by_worker(address: str, settings: Mapping[str, str]) -> ObjectStorage:
    allowed_folders.STORE_SETTINGS.update(settings)
    return open_objects(address)


def open_objects(address: str) -> ObjectStorage:
    """Return the store at an address, one a process for an endpoint and region: its mirror keeps what was read."""
    return _storage_at(address, tuple(sorted(allowed_folders.STORE_SETTINGS.items())))


@cache
def _storage_at(address: str, settings: tuple[tuple[str, str], ...]) -> ObjectStorage:  # noqa: ARG001 - part of the key
    return ObjectStorage(address)


def _is_of_log(path: str) -> bool:
    return f"/{LOG_FOLDER}/" in path and not path.endswith(HINT)


def _mark_of(found: Mapping[str, Any]) -> dict[str, str]:
    """Return what the store tells versions of an object apart by."""
    return {name: found[name] for name in ("e_tag", "version") if found.get(name)}
