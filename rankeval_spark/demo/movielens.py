"""MovieLens 100K, read out of a wheel that carries it.

F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context.
ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. Terms of use: see ``docs/demo.md``.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from rankeval_spark.demo.dataset import INTERACTION_COLUMNS, ITEM_COLUMNS, USER_COLUMNS, Dataset
from rankeval_spark.errors import RankevalError

SOURCE_NAME: Final = "MovieLens 100K"

_PACKAGE: Final = "recbole"
_VERSION: Final = "1.2.1"
WHEEL_NAME: Final = f"{_PACKAGE}-{_VERSION}-py3-none-any.whl"
WHEEL_SHA256: Final = "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407"

_MEMBER: Final = "recbole/dataset_example/ml-100k/ml-100k.{}"
_INTERACTIONS: Final = dict(zip(INTERACTION_COLUMNS, ("user_id", "item_id", "rating", "timestamp"), strict=True))
_USERS: Final = dict(zip(USER_COLUMNS, ("user_id", "age", "gender", "occupation"), strict=True))
_ITEMS: Final = dict(zip(ITEM_COLUMNS, ("item_id", "movie_title", "class"), strict=True))

# One retry and a short wait: without a network the demo should go on within seconds.
_PIP_OPTIONS: Final = (
    *("--no-deps", "--require-hashes", "--only-binary=:all:", "--no-input", "--quiet"),
    *("--retries=1", "--timeout=15"),
)
_PIP_SECONDS: Final = 180


class MovieLensUnavailableError(RankevalError):
    """The data set is not in the cache and could not be fetched."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{SOURCE_NAME} is not in the cache and could not be fetched: {reason}")


def load(cache: Path) -> Dataset:
    """Read the data set from the wheel in ``cache``, which is fetched first if it is not there.

    Raises
    ------
    MovieLensUnavailableError
        When there is neither a sound copy nor a way to fetch one.
    """
    return read_wheel(cached_wheel(cache))


def cached_wheel(cache: Path) -> Path:
    """Return the wheel in ``cache``; a missing or damaged one is fetched."""
    wheel = cache / WHEEL_NAME
    if not wheel.is_file() or _sha256(wheel) != WHEEL_SHA256:
        _fetch(wheel)
    return wheel


def read_wheel(wheel: Path) -> Dataset:
    """Read the three tables straight from the zip; no code of the wheel is unpacked or run."""
    with zipfile.ZipFile(wheel) as archive:
        return Dataset(
            source_name=SOURCE_NAME,
            interactions=_table(archive, "inter", _INTERACTIONS, INTERACTION_COLUMNS),
            users=_table(archive, "user", _USERS, USER_COLUMNS),
            items=_table(archive, "item", _ITEMS, ITEM_COLUMNS),
        )


def _table(archive: zipfile.ZipFile, suffix: str, sources: Mapping[str, str], types: Mapping[str, str]) -> pd.DataFrame:
    """Read one atomic file: tab-separated, its header fields written ``name:kind``."""
    with archive.open(_MEMBER.format(suffix)) as member:
        # 'none' is an occupation and may not be read as a missing value.
        frame = pd.read_csv(member, sep="\t", encoding="utf-8", keep_default_na=False)
    frame.columns = frame.columns.str.partition(":").get_level_values(0)
    return frame.loc[:, list(sources.values())].set_axis(list(sources), axis=1).astype(dict(types))


def _fetch(wheel: Path) -> None:
    """Let pip fetch the wheel and check its sum, then move it into place in one step."""
    with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
        requirement = Path(folder, "requirement.txt")
        requirement.write_text(f"{_PACKAGE}=={_VERSION} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
        _pip_download(requirement, Path(folder))
        fetched = Path(folder, WHEEL_NAME)
        if not fetched.is_file():
            raise MovieLensUnavailableError("pip left another file than " + WHEEL_NAME)
        fetched.replace(wheel)


def _pip_download(requirement: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", *_PIP_OPTIONS, "--dest", str(folder), "-r", str(requirement)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MovieLensUnavailableError(str(error)) from error
    if done.returncode != 0:
        raise MovieLensUnavailableError(_last_line(done.stderr) or f"pip ended with code {done.returncode}")


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
