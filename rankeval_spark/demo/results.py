"""The demo's results: made again where an earlier version declared other tables."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING, Final

from rankeval_spark import schemas

if TYPE_CHECKING:
    from pathlib import Path

_NOTE: Final = "results.tables"


def forget_results_of_other_tables(workspace: Path, root: Path) -> bool:
    """Remove the demo's own results if other tables are declared now; return True if they were removed.

    Results elsewhere than directly below ``workspace`` are never removed.
    """
    if root.absolute().parent != workspace.absolute():
        return False
    note = workspace / _NOTE
    declared = hashlib.sha256(repr(schemas.PUBLISHED).encode()).hexdigest()
    is_other = root.exists() and not (note.exists() and note.read_text(encoding="utf-8") == declared)
    if is_other:
        shutil.rmtree(root)
    note.write_text(declared, encoding="utf-8")
    return is_other
