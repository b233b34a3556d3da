"""Files of a results root: folders of this machine, on which object stores are mirrored, and how a root is opened."""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rankeval_spark import allowed_folders

if TYPE_CHECKING:
    import deltalake

Made = TypeVar("Made")
Item = TypeVar("Item")
Mark: TypeAlias = Any  # what a store tells versions of a register apart by: a number, or an ETag


class Storage:
    """A folder, of this machine or mounted, that holds a results root; paths are relative to it, with ``/``."""

    has_locks = True  # whether of several contenders only one creates a file
    merge_every = 100  # commits to `runs` after which its small files are merged: each adds one, readers open them all
    checkpoint_every = 100  # commits after which a checkpoint spares readers those before it
    trusts_locks_for = 0.0  # seconds for which a lock that was held is taken to be held still
    is_mirror = False  # whether the files are copies of those of an object store

    def __init__(self, root: str) -> None:
        self.root = root

    @property
    def address(self) -> str:
        """Return the root as users name it."""
        return self.root

    def prove_locks(self, *, one_run_per_root: bool) -> None:
        """Raise ConfigError unless the store grants a conditional write to one of several writers, as a disk does."""

    def require_writable(self) -> None:
        """Raise PermissionError if the folder, or the one that it would be made in, or a folder or log in it is not."""
        folder = self._path("")
        there = next(existing for existing in (folder, *folder.parents) if existing.exists())
        below = (*folder.glob("*/"), *folder.glob("*/_delta_log/")) if there == folder else ()
        for place in (there, *below):
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))

    def _path(self, path: str) -> Path:
        return Path(inside(self.root, path))

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; empty where there is no such folder."""
        try:
            return sorted(os.listdir(self._path(path)))
        except FileNotFoundError:
            return []

    def known_names(self, path: str) -> list[str]:
        """Return the names in a folder to which files are only added, without a request if some are known."""
        return self.names(path)

    def read(self, path: str) -> bytes:
        """Return the content of a file; FileNotFoundError if it does not exist."""
        return self._path(path).read_bytes()

    def create(self, path: str, content: bytes) -> bool:
        """Write a new file and its folders, whole or not at all; False if it exists."""
        try:
            _create(self._path(path), content, is_synced=False)
        except FileExistsError:
            return False
        return True

    def put(self, path: str, content: bytes) -> None:
        """Write a new file, which a power loss does not take; FileExistsError if it exists."""
        target = self._path(path)
        _create(target, content, is_synced=True)
        sync(target.parent)

    def age(self, path: str) -> float:
        """Return the seconds since a file was last written, by our clock; FileNotFoundError if it does not exist."""
        return max(0.0, time.time() - self._path(path).stat().st_mtime)

    def size(self, path: str) -> int:
        """Return the bytes of a file; FileNotFoundError if it does not exist."""
        return self._path(path).stat().st_size

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all it holds, if it exists."""
        target = self._path(path)
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def forget(self, paths: Iterable[str]) -> None:
        """Remove files that nothing needs any more."""
        for path in paths:
            self.remove(path)

    def fetch(self, paths: Iterable[str]) -> None:
        """Bring files to this machine, unless they are here."""

    def sync(self, *paths: Path) -> None:
        """Wait until files, or the names in folders, are where a power loss does not take them."""
        sync(*paths)

    def listed(self, folder: str) -> AbstractContextManager[None]:  # noqa: ARG002 - the folder is for a store
        """Return a block in which all files below a folder are seen on this machine, with their ages."""
        return nullcontext()

    def trim_log(self, opened: deltalake.DeltaTable, log: str) -> None:  # noqa: ARG002 - the path is for a store
        """Remove files of a log that no version within its retention needs; a checkpoint was just made."""
        opened.cleanup_metadata()

    def side_by_side(self, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """Return the results of some work, one after the other, or at once where each waits for a store."""
        return list(map(work, items))

    def load(self, path: str) -> tuple[bytes, Mark] | None:
        """Return the content of a register and the mark of its version; None if it was never written.

        Here a register is a folder of files with rising numbers; the highest counts.
        """
        while number := max(self._numbers(path), default=0):
            with suppress(FileNotFoundError):  # a higher number exists by now
                return self.read(_numbered(path, number)), number
        return None

    def swap(self, path: str, content: bytes, mark: Mark | None) -> Mark | None:
        """Write a register if its version still has a mark, None if there is no version; return the new mark.

        None is returned where another writer was first. Two writers never write the same content.
        """
        number = (mark or 0) + 1
        if not self.create(_numbered(path, number), content):
            return None
        if (found := self._numbers(path)) and max(found) != number:  # the look was too long ago: others were here
            self.remove(_numbered(path, number))
            return None
        for lower in found:
            if lower < number:
                self.remove(_numbered(path, lower))
        return number

    def age_of(self, path: str, mark: Mark) -> float:
        """Return the seconds since a version of a register was written, by clocks that may differ; 0 if it is gone."""
        try:
            return self.age(_numbered(path, mark))
        except FileNotFoundError:
            return 0.0

    def _numbers(self, path: str) -> list[int]:
        return [int(name) for name in self.names(path) if name.isdecimal()]


def _numbered(path: str, number: int) -> str:
    return f"{path}/{number:08d}"


def _create(target: Path, content: bytes, *, is_synced: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _draft_of(target, content, is_synced=is_synced) as draft:
        try:
            os.link(draft, target)
        except FileExistsError:
            raise
        except OSError:  # a mounted file system without links
            _write_new(target, content, is_synced=is_synced)


@contextmanager
def _draft_of(target: Path, content: bytes, *, is_synced: bool) -> Iterator[Path]:
    """Write a draft next to a file, under a name that no reader uses; it is removed after the block."""
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    _write_new(draft, content, is_synced=is_synced)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _write_new(path: Path, content: bytes, *, is_synced: bool) -> None:
    """Write a new file, or none on an error."""
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise


def sync(*paths: Path) -> None:
    """Wait until files, or the names in folders, are on the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some mounted file systems sync no folders
                raise
        finally:
            os.close(descriptor)


def inside(root: str, path: str) -> str:
    """Return an address below a root; ConfigError if it lies, or a link leads, outside the allowed folders."""
    location = f"{root}/{path}" if path else root
    allowed_folders.require_allowed(("results root", location))
    return location
