"""Whether the Python of local workers has what the engine imports: looked at before a job, not after it failed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.spark.session.builder import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED: Final = ("numpy", "pyarrow")
"""Packages that a worker imports and that Spark does not bring."""

_LOOK: Final = (
    "import importlib.util as util, sys; "
    "print(*(name for name in sys.argv[1:] if util.find_spec(name) is None), sep=', ')"
)


def require_packages(session: SparkSession) -> None:
    """Refuse a session of this machine whose workers run a Python without :data:`NEEDED`.

    A session that was started from an environment which is not activated runs ``python3`` of the PATH. Workers of a
    cluster are not looked at: that would be a job.

    Raises
    ------
    EnvironmentFaultError
        With the setting that fixes it.
    """
    context = getattr(session, "sparkContext", None)  # a session of Spark Connect has none
    if context is None or not is_local(session.conf.get("spark.master", "") or ""):
        return
    executable = str(context.pythonExec)
    missing = _missing(executable)
    if missing:
        raise EnvironmentFaultError(
            Fault(
                where="Python of the workers",
                found=f"{shutil.which(executable) or executable} without {missing}",
                expected="the Python of the driver, or one with the same packages",
                fix=f"set PYSPARK_PYTHON={sys.executable} in the environment before the session starts",
            )
        )


@cache
def _missing(executable: str) -> str:
    """Name the packages that an interpreter lacks; none where it cannot be started, which Spark reports itself."""
    if shutil.which(executable) == sys.executable:
        return ""
    try:
        found = subprocess.run(
            [executable, "-c", _LOOK, *NEEDED], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
