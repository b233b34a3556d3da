"""A clock of their own for processes that a test starts: it can be set while they run, in Python and in the JVM."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("clock.c")
COMPILER: Final = shutil.which("cc") or shutil.which("gcc")


@dataclass(frozen=True)
class Clock:
    """A clock that is off by what was set last; files are dated by the machine's own."""

    folder: Path

    @classmethod
    def of(cls, folder: Path) -> Clock:
        """Make a clock that is right."""
        folder.mkdir(parents=True, exist_ok=True)
        clock = cls(folder)
        (folder / "offset").write_bytes(bytes(8))
        command = [str(COMPILER), "-shared", "-fPIC", "-o", str(folder / "clock.so"), str(SOURCE)]
        subprocess.run(command, check=True)
        return clock

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process that goes by this clock, and of all that it starts."""
        return {"LD_PRELOAD": str(self.folder / "clock.so"), "CLOCK_OFFSET": str(self.folder / "offset")}

    def set(self, by: timedelta) -> None:
        """Set it: every process that goes by it sees that at once."""
        with (self.folder / "offset").open("r+b") as file:
            file.write(struct.pack("q", int(by.total_seconds())))
