"""MovieLens 100K, and wheels that carry data: fetched by pip once, pinned by their sums, and read in place.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from rankeval_spark.demo.dataset import GENRES, INTERACTION_COLUMNS, ITEM_COLUMNS, TITLE, USER_COLUMNS, Dataset
from rankeval_spark.errors import RankevalError

# One retry and a short wait: without a network the demo should go on within seconds.
_PIP_OPTIONS: Final = (
    *("--no-deps", "--require-hashes", "--only-binary=:all:", "--no-input", "--quiet"),
    *("--retries=1", "--timeout=15"),
)
_PIP_SECONDS: Final = 180


class DataUnavailableError(RankevalError):
    """A data set is not in the cache and could not be fetched."""

    def __init__(self, source_name: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{source_name} is not in the cache and could not be fetched: {reason}")


@dataclass(frozen=True)
class Wheel:
    """A wheel of pure Python with a data set in it."""

    source_name: str  # in messages
    package: str  # what pip fetches
    version: str
    sha256: str  # of the file, in hexadecimal digits

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"{self.package}-{self.version}-py3-none-any.whl"

    def cached(self, cache: Path) -> Path:
        """Return the wheel in ``cache``; fetch a missing or damaged one, or raise DataUnavailableError."""
        wheel = cache / self.name
        if not wheel.is_file() or hashlib.sha256(wheel.read_bytes()).hexdigest() != self.sha256:
            self._fetch(wheel)
        return wheel

    def _fetch(self, wheel: Path) -> None:
        """Fetch the wheel with pip, which checks its sum; then move it into place in one step."""
        with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
            requirement = Path(folder, "requirement.txt")
            requirement.write_text(f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n", encoding="utf-8")
            command = [sys.executable, "-m", "pip", "download", *_PIP_OPTIONS, "--dest", folder, "-r", str(requirement)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_SECONDS)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise DataUnavailableError(self.source_name, str(error)) from error
            if done.returncode:
                last_line = next((line.strip() for line in reversed(done.stderr.splitlines()) if line.strip()), "")
                raise DataUnavailableError(self.source_name, last_line or f"pip ended with code {done.returncode}")
            fetched = Path(folder, self.name)
            if not fetched.is_file():
                raise DataUnavailableError(self.source_name, "pip left another file than " + self.name)
            fetched.replace(wheel)


SOURCE_NAME: Final = "MovieLens 100K"

WHEEL: Final = Wheel(
    SOURCE_NAME,
    package="recbole",
    version="1.2.1",
    sha256="9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
)

_MEMBER: Final = "recbole/dataset_example/ml-100k/ml-100k.{}"
_SOURCES: Final = {TITLE: "movie_title", GENRES: "class"}  # fields of the files by the columns that have another name


def load(cache: Path) -> Dataset:
    """Read the data set from the wheel in ``cache``, which is fetched first; DataUnavailableError without either."""
    return read_wheel(WHEEL.cached(cache))


def read_wheel(wheel: Path) -> Dataset:
    """Read the three tables straight from the zip; no code of the wheel is unpacked or run."""
    with zipfile.ZipFile(wheel) as archive:
        return Dataset(
            source_name=SOURCE_NAME,
            interactions=_table(archive, "inter", INTERACTION_COLUMNS),
            users=_table(archive, "user", USER_COLUMNS),
            items=_table(archive, "item", ITEM_COLUMNS),
        )


def _table(archive: zipfile.ZipFile, suffix: str, types: Mapping[str, str]) -> pd.DataFrame:
    """Read one atomic file: tab-separated, its header fields written ``name:kind``."""
    with archive.open(_MEMBER.format(suffix)) as member:
        # 'none' is an occupation and may not be read as a missing value.
        frame = pd.read_csv(member, sep="\t", encoding="utf-8", keep_default_na=False)
    frame.columns = frame.columns.str.partition(":").get_level_values(0)
    fields = [_SOURCES.get(name, name) for name in types]
    return frame.loc[:, fields].set_axis(list(types), axis=1).astype(dict(types))
