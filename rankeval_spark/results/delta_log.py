"""Versions and commits of a Delta table, read from its log files: no Spark job, a few milliseconds."""

from __future__ import annotations

import json
import re
import time
import uuid
from bisect import bisect_left
from contextlib import suppress
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark.errors import ConfigError, Fault, ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rankeval_spark.results.storage import Storage

LOG_FOLDER: Final = "_delta_log"
HINT: Final = "_last_checkpoint"  # file of a log that names the newest checkpoint
_PARQUET: Final = b"PAR1"  # first and last bytes of a Parquet file
_STAGED_COMMITS: Final = "_staged_commits"  # folder that Delta creates with the first commit
_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 3}  # from writer 3, constraints are checked
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\..*parquet")
AS_IT_IS: Final = "/!$&'()+,:;=@~"
"""Characters that the log does not write as %XX in a path, besides letters, digits, ``-``, ``.`` and ``_``."""

NO_OTHER_WRITER: Final = (
    "another writer without the lock, or a store that loses writes: let nothing else write to the root"
)
"""Advice if a commit has no effect."""


class OvertakenError(ResultsError):
    """Raised if another writer made the version of a table that a writer was about to make."""


class LostCommitsError(ConfigError):
    """Raised if commits of a table are gone or empty, as after a power loss: rows would be missing silently."""

    title = "the results are damaged"


def exists(storage: Storage, table: str) -> bool:
    """Return whether the folder ``table`` of the root is a Delta table."""
    try:
        return _newest(storage.known_names(f"{table}/{LOG_FOLDER}")) >= 0
    except NotADirectoryError:  # a file in place of the root
        return False


def is_free(storage: Storage, table: str) -> bool:
    """Return whether a new table may take a folder: nothing is in it, but what its creator left before it died.

    Temporary files of a first commit, for which Delta takes the folder for a table, are removed; not the folder, in
    which another writer may just make one.
    """
    names, drafts = storage.names(table), storage.names(f"{table}/{LOG_FOLDER}")
    if names not in ([], [LOG_FOLDER]) or not all(name.startswith(".") or name == _STAGED_COMMITS for name in drafts):
        return False
    for name in drafts:
        storage.remove(f"{table}/{LOG_FOLDER}/{name}")
    return True


def versions(storage: Storage, table: str) -> list[int]:
    """Return the versions whose commit is still in the log, ascending."""
    return [*_newest_first(storage.known_names(f"{table}/{LOG_FOLDER}"), _COMMIT)][::-1]


def latest_version(storage: Storage, table: str, *, is_fresh: bool = True) -> int:
    """Return the newest version of an existing table; unless ``is_fresh``, the newest that is known in this process."""
    names = storage.names if is_fresh else storage.known_names
    return next(_newest_first(names(f"{table}/{LOG_FOLDER}"), _COMMIT))


def require_whole(storage: Storage, table: str, version: int | None = None, *, published: int = -1) -> None:
    """Raise LostCommitsError if commits of a version, by default the newest, are gone or empty.

    Only those after the last checkpoint are read. The table must have the version ``published``, which readers see.
    """
    names = storage.known_names(f"{table}/{LOG_FOLDER}")
    if _newest(names) < max(published, -1 if version is None else version):
        names = storage.names(f"{table}/{LOG_FOLDER}")
    last = max(_newest(names) if version is None else version, published)
    _require_commits(storage, table, names, last, published=published)


def readable(storage: Storage, table: str, version: int | None = None) -> tuple[int, list[str]] | None:
    """Return a version, by default the newest, and the log files that define it; None without it. See require_whole."""
    folder = f"{table}/{LOG_FOLDER}"
    try:
        names = storage.names(folder) if version is None else storage.known_names(folder)
    except NotADirectoryError:  # a file in place of the root
        return None
    if version is not None and version > _newest(names):
        names = storage.names(folder)
    last = _newest(names) if version is None else version
    if not 0 <= last <= _newest(names):
        return None
    _require_commits(storage, table, names, last, published=-1)
    checkpoint = _last_checkpoint(names, last)  # which says all that its own commit says
    needed = names[bisect_left(names, f"{checkpoint:020d}") :]
    return last, [name for name in needed if name != f"{checkpoint:020d}.json"]


def _require_commits(storage: Storage, table: str, names: Sequence[str], last: int, *, published: int) -> None:
    """Raise LostCommitsError if a commit up to the version ``last`` is gone or empty."""
    first = _last_checkpoint(names, last) + 1
    found = set(takewhile(lambda number: number >= first, _newest_first(names, _COMMIT)))
    for lost in range(first, last + 1):
        with suppress(FileNotFoundError):  # a listing may be late
            if storage.size(_file(table, lost)):
                continue
        what = f"version {lost} of table {table} is {'empty' if lost in found else 'gone'}"
        fix = f"restore {table}/{LOG_FOLDER} from a backup, or publish the nights again to another root"
        if lost == _newest(names) > published:
            fix = f"restore {_file(table, lost)} from a backup, or remove it and run the last date again"
        raise LostCommitsError(
            Fault("results root", f"{storage.address!r} ({what})", "all commits of earlier runs", fix)
        )


def _newest(names: Sequence[str]) -> int:
    """Return the newest version in the names of a log; -1 without one."""
    return next(_newest_first(names, _COMMIT), -1)


def _last_checkpoint(names: Sequence[str], version: int) -> int:
    """Return the version of the newest checkpoint up to a version; -1 without one."""
    return next((number for number in _newest_first(names, _CHECKPOINT) if number <= version), -1)


def _newest_first(names: Sequence[str], kind: re.Pattern[str]) -> Iterator[int]:
    """Yield the versions in sorted file names, newest first, so that the newest of thousands is read at once."""
    return (int(match.group(1)) for match in map(kind.fullmatch, reversed(names)) if match)


def find_commit(storage: Storage, table: str, *, tag: str, after: int) -> int | None:
    """Return the first version after ``after`` whose commit has ``tag`` as user metadata; None without one."""
    for version in count(after + 1):  # few: a log may have thousands of files to list
        try:
            infos = _actions(storage, table, version, "commitInfo")
        except FileNotFoundError:
            return None
        if any(info.get("userMetadata") == tag for info in infos):
            return version
    raise AssertionError  # pragma: no cover - the loop has no end


def reader_version(storage: Storage, table: str, *, after: int) -> int:
    """Return the highest reader protocol of the commits after ``after``; 0 if none changed it."""
    newest_first = _newest_first(storage.known_names(f"{table}/{LOG_FOLDER}"), _COMMIT)
    new = takewhile(lambda version: version > after, newest_first)
    protocols = (protocol for version in new for protocol in _actions(storage, table, version, "protocol"))
    return max((int(protocol["minReaderVersion"]) for protocol in protocols), default=0)


def commit(
    storage: Storage,
    table: str,
    version: int,
    actions: Iterable[Mapping[str, Any]],  # as Delta's log has them
    *,
    tag: str | None = None,  # user metadata of the commit
) -> None:
    """Write a version of a table, whole or not at all, durable on a local disk; OvertakenError if it exists."""
    operation = "WRITE" if version else "CREATE TABLE"
    info: dict[str, Any] = {"timestamp": now_ms(), "operation": operation, "operationParameters": {}}
    info |= {"userMetadata": tag} if tag else {}
    lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
    try:
        storage.put(_file(table, version), "\n".join(lines).encode())
    except FileExistsError as error:
        fault = Fault(f"table {table}", f"a version {version} of another writer", "to be the only one", NO_OTHER_WRITER)
        raise OvertakenError(fault) from error


def create_log(
    storage: Storage,
    table: str,
    *,
    columns: str,  # as `StructType.json()` writes them
    partitions: Sequence[str],
    adds: Iterable[Mapping[str, Any]] = (),  # actions that add its files
    **metadata: Any,  # noqa: ANN401 - values of JSON
) -> None:
    """Write the first commit of a table; ``metadata`` are ``configuration``, ``description`` and others of Delta."""
    described = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": columns,
        "partitionColumns": list(partitions),
        "createdTime": now_ms(),
        "configuration": {},
        **metadata,
    }
    commit(storage, table, 0, [{"protocol": _PROTOCOL}, {"metaData": described}, *adds])


def is_hint_valid(storage: Storage, table: str) -> bool:
    """Return whether the checkpoint that a log names as its newest, which readers trust, is there and whole."""
    folder = f"{table}/{LOG_FOLDER}"
    try:
        hint = json.loads(storage.read(f"{folder}/{HINT}"))
        if hint.get("parts"):  # Spark's, of a log that is too long for one file
            return True
        content = storage.read(f"{folder}/{int(hint['version']):020d}.checkpoint.parquet")
    except FileNotFoundError as error:
        return str(error.filename).endswith(HINT)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return content.startswith(_PARQUET) and content.endswith(_PARQUET)


def repair(storage: Storage, table: str) -> None:
    """Remove a damaged checkpoint, or the name of a missing one, if all commits are there."""
    if is_hint_valid(storage, table) or (present := versions(storage, table)) != list(range(len(present))):
        return
    folder = f"{table}/{LOG_FOLDER}"
    with suppress(ValueError, TypeError, KeyError, FileNotFoundError):
        hint = json.loads(storage.read(f"{folder}/{HINT}"))
        storage.remove(f"{folder}/{int(hint['version']):020d}.checkpoint.parquet")
    storage.remove(f"{folder}/{HINT}")


def now_ms() -> int:
    """Return the time as in the log."""
    return time.time_ns() // 1_000_000


def _file(table: str, version: int) -> str:
    return f"{table}/{LOG_FOLDER}/{version:020d}.json"


def _actions(storage: Storage, table: str, version: int, kind: str) -> list[dict[str, Any]]:
    """Return the actions of one kind in a commit."""
    lines = storage.read(_file(table, version)).splitlines()
    try:
        return [action[kind] for action in map(json.loads, lines) if kind in action]
    except (ValueError, TypeError) as error:
        found, fix = f"a damaged commit, {_file(table, version)}", "restore that file from a backup"
        raise ResultsError(Fault(f"table {table}", found, "a line of JSON for each action", fix)) from error
