"""Where files that are fetched or made once are kept between runs."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rankeval_spark.errors import EnvironmentFaultError, Fault

VARIABLE = "RANKEVAL_CACHE"


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder, made if missing; refused where none can be written to.

    ``RANKEVAL_CACHE`` and no other where it is set, else ``rankeval-spark`` in ``XDG_CACHE_HOME``, else in
    ``~/.cache``, else in the folder for temporary files (a user without a writable home, as in many containers). In
    that last one any user may make a folder of any name, and Java runs what is in it, so it has to be private.
    """
    if named := env.get(VARIABLE):
        candidates = [Path(named).expanduser().absolute()]
    else:
        homes = [Path(xdg)] if (xdg := env.get("XDG_CACHE_HOME")) else []
        homes += [Path(home) / ".cache"] if (home := env.get("HOME")) else []
        candidates = [home / "rankeval-spark" for home in homes if home.is_absolute()]
    for candidate in candidates:
        if _is_writable(candidate):
            return candidate
    found = f"no writable folder among {', '.join(map(str, candidates))}"
    expected = "a folder that this user may write to"
    if not named:
        # The user id keeps two users of one machine out of each other's temporary cache.
        temporary = Path(tempfile.gettempdir()) / f"rankeval-spark-{os.getuid()}"
        with suppress(OSError):
            temporary.mkdir(mode=stat.S_IRWXU)
        reason = _why_not_private(temporary)
        if reason is None and _is_writable(temporary):
            return temporary
        found = f"{temporary}, which is {reason or 'not writable'}"
        expected = "a folder of this user with mode 0700, as the home of the user has no writable one"
    raise EnvironmentFaultError(Fault("cache folder", found, expected, f"set {VARIABLE} to one"))


def _why_not_private(path: Path) -> str | None:
    """Return why other users may have written to a folder, in words; None if only this user can."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"not usable: {error.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return f"a link to {os.readlink(path)}"
    if found.st_uid != os.getuid():
        return f"owned by user {found.st_uid}"
    if not stat.S_ISDIR(found.st_mode):
        return "no folder"
    mode = stat.S_IMODE(found.st_mode)
    return None if mode == stat.S_IRWXU else f"of mode {mode:04o}"


def _is_writable(folder: Path) -> bool:
    """Create the folder if it is missing; return True if a file can be created in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
