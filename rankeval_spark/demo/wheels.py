"""Wheels that carry data: fetched by pip once, pinned by their sums, and read in place."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
    """A wheel of pure Python with a data set in it.

    Attributes
    ----------
    source_name : str
        Name of the data in messages.
    package, version : str
        What pip fetches.
    sha256 : str
        Sum of the file, in hexadecimal digits.
    """

    source_name: str
    package: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"{self.package}-{self.version}-py3-none-any.whl"

    def cached(self, cache: Path) -> Path:
        """Return the wheel in ``cache``; a missing or damaged one is fetched.

        Raises
        ------
        DataUnavailableError
            When there is neither a sound copy nor a way to fetch one.
        """
        wheel = cache / self.name
        if not wheel.is_file() or _sha256(wheel) != self.sha256:
            self._fetch(wheel)
        return wheel

    def _fetch(self, wheel: Path) -> None:
        """Let pip fetch the wheel and check its sum, then move it into place in one step."""
        with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
            requirement = Path(folder, "requirement.txt")
            requirement.write_text(f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n", encoding="utf-8")
            if reason := _pip_download(requirement, Path(folder)):
                raise DataUnavailableError(self.source_name, reason)
            fetched = Path(folder, self.name)
            if not fetched.is_file():
                raise DataUnavailableError(self.source_name, "pip left another file than " + self.name)
            fetched.replace(wheel)


def _pip_download(requirement: Path, folder: Path) -> str:
    """Download what a file of requirements names; return why that failed, or nothing."""
    command = [sys.executable, "-m", "pip", "download", *_PIP_OPTIONS, "--dest", str(folder), "-r", str(requirement)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else _last_line(done.stderr) or f"pip ended with code {done.returncode}"


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
