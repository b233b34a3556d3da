"""Files that a command writes where the user says: checked before any work, and written whole or not at all."""

from __future__ import annotations

import os
import shlex
import uuid
from contextlib import suppress
from pathlib import Path

from rankeval_spark import allowed_folders
from rankeval_spark.errors import ConfigError, Fault


def require_file(path: Path, option: str, *, example: str) -> None:
    """Raise ConfigError for a path to which no file can be written, before anything is read."""
    allowed_folders.require_allowed((option, str(path)))
    folder = path.absolute().parent
    if not folder.is_dir():
        quoted = shlex.quote(str(folder))
        raise ConfigError(Fault(option, f"no folder {folder}", "a file in a folder that exists", f"mkdir -p {quoted}"))
    if path.exists() and not path.is_file():
        raise ConfigError(Fault(option, f"{path}, which is no file", "a file", f"{option} {path / example}"))


def write_atomically(text: str, path: Path, option: str) -> None:
    """Write a file whole or not at all: readers see the one before it, or this one; ConfigError if it fails."""
    goal = path.resolve()
    draft = goal.with_name(f".{goal.name}-{uuid.uuid4().hex}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, goal)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(Fault(option, f"{path}: {reason}", "a file that can be written")) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
