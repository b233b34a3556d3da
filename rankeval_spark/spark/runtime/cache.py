"""Where files that are fetched or made once are kept between runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rankeval_spark.errors import EnvironmentFaultError, Fault

VARIABLE = "RANKEVAL_CACHE"


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder, made if missing.

    ``RANKEVAL_CACHE``, else ``rankeval-spark`` in ``XDG_CACHE_HOME``, else in ``~/.cache``, else in the folder for
    temporary files (a user without a writable home, as in many containers).

    Raises
    ------
    EnvironmentFaultError
        When no candidate can be written to, or the one that ``RANKEVAL_CACHE`` names cannot: a folder that was named is
        not silently replaced by another.
    """
    candidates = _candidates(env)
    for candidate in candidates:
        if _is_writable(candidate):
            return candidate
    raise EnvironmentFaultError(
        Fault(
            where="cache folder",
            found=f"no writable folder among {', '.join(map(str, candidates))}",
            expected="a folder that this user may write to",
            fix=f"set {VARIABLE} to one",
        )
    )


def _candidates(env: Mapping[str, str]) -> list[Path]:
    """List the folders to try, best first."""
    if named := env.get(VARIABLE):
        return [Path(named).expanduser().absolute()]
    homes = [Path(xdg)] if (xdg := env.get("XDG_CACHE_HOME")) else []
    if home := env.get("HOME"):
        homes.append(Path(home) / ".cache")
    # The user id keeps two users of one machine out of each other's temporary cache.
    temporary = Path(tempfile.gettempdir()) / f"rankeval-spark-{os.getuid()}"
    return [*(home / "rankeval-spark" for home in homes if home.is_absolute()), temporary]


def _is_writable(folder: Path) -> bool:
    """Make the folder if it is missing; return True if a file can be created in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
