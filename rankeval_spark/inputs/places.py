"""Places of inputs: files of this machine, or objects in a store, which are copied here first.

A place in a store has a folder here, of the layout below its address. Until it is fetched, a file in it is empty and
has its right length, so that listings, partitions and sizes take one request: that of the list.
"""

from __future__ import annotations

import errno
import re
import shutil
import tempfile
import uuid
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from rankeval_spark.allowed_folders import (
    FILE_SYSTEMS,
    STORE_SETTINGS,
    allow_own,
    local_path,
    require_allowed,
    scheme_of,
)

COMMIT: Final = re.compile(r"(\d{20})\.json")
_LOG: Final = "_delta_log"
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.(?:\d{10}\.(\d{10})\.)?parquet")
_FOLDER_MARKS: Final = "_$folder$"  # end of the name of an object that some tools write for a folder
_FOOTER: Final = 1 << 18  # bytes from the end of a Parquet file that one request asks for


class _Object(NamedTuple):
    key: str
    size: int
    mark: str | None  # ETag of its version


class _Copies:
    """Objects below an address, and those of them that are copied to a folder of this machine."""

    def __init__(self, location: str, *, is_delta: bool) -> None:
        from rankeval_spark.object_stores import open_store  # noqa: PLC0415 - needs the extra `stores`

        self._bucket, self._key = _bucket_and_key(location)
        self._store: Any = open_store(self._bucket, "inputs")
        self._prefix = f"{self._key}/{_LOG}".lstrip("/") if is_delta else self._key
        self._objects: dict[Path, _Object] = {}
        self._whole: set[Path] = set()  # files that are here, whole
        self._footers: set[Path] = set()  # and those whose footer is known
        self.folder = Path(tempfile.mkdtemp(prefix="rankeval-input-"))
        allow_own(str(self.folder))
        weakref.finalize(self, shutil.rmtree, str(self.folder), ignore_errors=True)
        self.location, self.path = location, self.folder / "files"

    def list_objects(self) -> None:
        """List the objects below the address anew; copies of those that changed meanwhile, or are gone, are dropped."""
        from rankeval_spark.object_stores import store_errors  # noqa: PLC0415 - as above

        is_delta = self._prefix != self._key
        with store_errors(self.location):
            listed = [each for batch in self._store.list(prefix=self._prefix or None) for each in batch]
            if not listed and not is_delta and self._key:
                with suppress(FileNotFoundError):  # the address of an object
                    listed = [self._store.head(self._key)]
            is_other = is_delta and not listed  # files, if any, but no table
            level = self._store.list_with_delimiter(prefix=self._key or None) if is_other else {}
            listed = level.get("objects", listed)
        self.path = self.folder / "files"
        if level.get("common_prefixes"):
            self.path.mkdir(exist_ok=True)
        if [each["path"] for each in listed] == [self._key]:
            self.path = self.folder / PurePosixPath(self._key).name
        start = len(f"{self._key}/".lstrip("/"))
        folders = {str(parent) for each in listed for parent in PurePosixPath(each["path"]).parents}
        found = {}
        for each in listed:
            key = each["path"]
            names = PurePosixPath(key[start:]).parts
            is_of_log = is_delta and not is_other
            is_read = _log_version(names[-1]) is not None if is_of_log else not any(map(is_hidden, names))
            if key not in folders and ".." not in names and is_read and not key.endswith(_FOLDER_MARKS):
                found[self.path.joinpath(*names)] = _Object(key, each["size"], each["e_tag"])
        # Of a Delta table only the log is listed: its data files were noted by `expect`.
        data = {file: object_ for file, object_ in self._objects.items() if is_delta and file.parent.name != _LOG}
        for file in self._objects.keys() - data.keys() - found.keys():
            self._forget(file)
        before, self._objects = self._objects, data
        for file, object_ in found.items():
            self._note_object(file, object_, before.get(file))

    def _note_object(self, file: Path, found: _Object, before: _Object | None) -> None:
        """Note an object; of a new or changed one, make an empty file of its length."""
        self._objects[file] = found
        if found != before or not file.exists():
            self._forget(file)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as empty:
                empty.truncate(found.size)

    def _forget(self, file: Path) -> None:
        file.unlink(missing_ok=True)
        self._whole.discard(file)
        self._footers.discard(file)

    def expect(self, sizes: Mapping[str, int]) -> None:
        """Make an empty file of the right length for each file that a Delta log names, by its path below the place."""
        for name, size in sizes.items():
            file = self.path / name
            self._note_object(file, _Object(f"{self._key}/{name}".lstrip("/"), size, None), self._objects.get(file))

    def fetch_log(self, version: int | None) -> None:
        """Copy what defines a version of a Delta table: the newest checkpoint before it, and the commits since."""
        by_version = defaultdict[int, list[Path]](list)
        for file in self._objects:
            if file.parent.name == _LOG and (number := _log_version(file.name)) is not None:
                by_version[number].append(file)
        earlier = {number: files for number, files in by_version.items() if version is None or number <= version}

        def has_checkpoint(files: Iterable[Path]) -> bool:
            n_parts = [int(match[2] or 1) for file in files if (match := _CHECKPOINT.fullmatch(file.name))]
            return bool(n_parts) and len(n_parts) >= n_parts[0]

        first = max((number for number, files in earlier.items() if has_checkpoint(files)), default=-1)
        self.fetch(file for number, files in earlier.items() if number >= first for file in files)

    def fetch(self, files: Iterable[Path], *, only_footers: bool = False) -> None:
        """Copy those files that are of this place, and not here yet."""
        from rankeval_spark.object_stores import REQUESTS_AT_ONCE  # noqa: PLC0415 - as above

        here = self._whole | self._footers if only_footers else self._whole
        if wanted := [file for file in files if file in self._objects and file not in here]:
            with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
                list(pool.map(self._fetch_footer if only_footers else self._fetch, wanted))

    def _request(self, file: Path, start: int = 0) -> Any:  # noqa: ANN401 - an answer of obstore
        """Ask for an object from a byte on, if it is still what was listed."""
        from rankeval_spark.object_stores import REFUSED, store_errors  # noqa: PLC0415 - as above

        key, size, mark = self._objects[file]
        options: dict[str, Any] = {"if_match": mark} if mark else {}
        options |= {"range": (start, size)} if start else {}
        try:
            with store_errors(self._bucket, key):
                return self._store.get(key, options=options)
        except REFUSED as error:
            raise OSError(errno.ESTALE, "written again while it was read", f"{self._bucket}/{key}") from error

    def _fetch(self, file: Path) -> None:
        """Copy an object; its empty file is replaced in one step."""
        draft = file.with_name(f".{uuid.uuid4().hex}")
        try:
            with draft.open("wb") as copy:
                for part in self._request(file):
                    copy.write(part)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
        self._whole.add(file)

    def _fetch_footer(self, file: Path) -> None:
        """Copy the end of a Parquet file to its place in the empty file."""
        size = self._objects[file].size
        if size <= _FOOTER:
            self._fetch(file)
            return
        tail = bytes(self._request(file, size - _FOOTER).bytes())
        length = int.from_bytes(tail[-8:-4], "little") + 8
        if _FOOTER < length < size:
            tail = bytes(self._request(file, size - length).bytes())
        with file.open("r+b") as copy:
            copy.seek(size - len(tail))
            copy.write(tail)
        self._footers.add(file)

    def release(self) -> None:
        """Drop the copies."""
        self._objects, self._whole, self._footers = {}, set(), set()
        shutil.rmtree(self.path, ignore_errors=True)

    @property
    def n_bytes(self) -> int:
        """Bytes of the copies."""
        return sum(self._objects[file].size for file in self._whole)


_Settings = tuple[tuple[str, str], ...]
_places: dict[tuple[str, bool, _Settings], _Copies] = {}  # with the copies of this process


def open_place(location: str, *, is_delta: bool = False, version: int | None = None) -> Path | None:
    """Return the path of an input on this machine, which does not exist if it is not there; None if only Spark has it.

    Of a Delta table in a store, the log of a version is copied, by default of the newest. Raises OSError if the store
    does not answer, or refuses.
    """
    if (path := local_path(location)) is not None:
        return path
    if not is_in_store(location) or find_spec("obstore") is None:
        return None
    require_allowed(("inputs", location))
    location = location.rstrip("/")
    key = location, is_delta, _store_settings()
    place = _places[key] if key in _places else _places.setdefault(key, _Copies(location, is_delta=is_delta))
    place.list_objects()
    if is_delta:
        place.fetch_log(version)
    return place.path


def open_any(location: str) -> tuple[Path | None, bool]:
    """Return a path as :func:`open_place`, and whether the log of a Delta table is there."""
    path = open_place(location, is_delta=True)
    is_delta = path is not None and (path / _LOG).is_dir()
    return path if is_delta else open_place(location), is_delta


def fetch(files: Iterable[str | Path], *, only_footers: bool = False) -> None:
    """Copy files of places in stores to this machine, or the footers of Parquet files, unless they are here."""
    if _places:
        wanted = list(dict.fromkeys(map(Path, files)))
        for place in _places.values():
            place.fetch(wanted, only_footers=only_footers)


def expect(path: Path, sizes: Mapping[str, int]) -> None:
    """Note the file sizes that a table's log names; `path` is where its copy is."""
    for place in _places.values():
        if place.path == path:
            place.expect(sizes)


def is_in_store(location: str) -> bool:
    """Return True if a location is in an object store."""
    system = FILE_SYSTEMS.get(scheme_of(location))
    return system is not None and system.is_object_store


def path_here(location: str) -> Path | None:
    """Return the path of a location, or of its copy, on this machine; None if it has none."""
    keys = {(location.rstrip("/"), is_delta, _store_settings()) for is_delta in (True, False)}
    copies = (place.path for key, place in _places.items() if key in keys)
    return local_path(location) or next((path for path in copies if path.exists()), None)


def show_addresses(text: str) -> str:
    """Return a message with a store's address in place of the folder with its copies."""
    for place in _places.values():
        text = text.replace(str(place.path), place.location).replace(str(place.folder), place.location)
    return text


def release_copies(*, above: float) -> None:
    """Drop all copies if they are more bytes than ``above``; nothing that was opened before is read afterwards."""
    if sum(place.n_bytes for place in _places.values()) > above:
        for place in _places.values():
            place.release()


def names_in(location: str) -> list[str]:
    """List the names in a folder; OSError if it cannot be listed, nothing if a store does not have it."""
    if (path := local_path(location)) is not None:
        return sorted(entry.name for entry in path.iterdir())
    from rankeval_spark.object_stores import open_store, store_errors  # noqa: PLC0415 - as above

    bucket, key = _bucket_and_key(location)
    with store_errors(location):
        found = open_store(bucket, "inputs").list_with_delimiter(prefix=key or None)
    keys = [*(each["path"] for each in found["objects"]), *found["common_prefixes"]]
    return sorted(PurePosixPath(each).name for each in keys)


def nearest_level(location: str) -> tuple[str, str, list[str]] | None:
    """Return the lowest folder of a location that exists, the name that it lacks, and the names that it has."""
    if (path := local_path(location)) is not None:
        if path.exists():
            return None
        folder = next(parent for parent in path.parents if parent.is_dir())
        return str(folder), path.relative_to(folder).parts[0], sorted(entry.name for entry in folder.iterdir())
    if not is_in_store(location) or find_spec("obstore") is None:
        return None
    bucket, key = _bucket_and_key(location)
    parts = key.split("/") if key else []
    with suppress(OSError):
        for n in reversed(range(len(parts))):
            above = "/".join([bucket, *parts[:n]])
            if names := names_in(above):
                return None if parts[n] in names else (above, parts[n], names)
    return None


def _store_settings() -> _Settings:
    """Return the endpoint and region that stores are opened with: two of them may have a bucket of one name."""
    return tuple(sorted(STORE_SETTINGS.items()))


def is_hidden(name: str) -> bool:
    """Return True for a name that readers of files and folders pass over."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


@cache
def _log_version(name: str) -> int | None:
    """Return the version of a commit or checkpoint; None for another file of a log."""
    match = COMMIT.fullmatch(name) or _CHECKPOINT.fullmatch(name)
    return int(match[1]) if match else None


def _bucket_and_key(location: str) -> tuple[str, str]:
    """Split an address into ``s3://bucket`` and the key below it."""
    scheme, _, rest = location.partition("://")
    authority, _, key = rest.partition("/")
    return f"{scheme}://{authority}", key.strip("/")
