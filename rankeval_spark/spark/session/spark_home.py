"""The Spark that Python's package brings, whether one was chosen, and the environment that a local driver starts in."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankeval_spark.spark.session.java import Java

_QUIET_CONF = Path(__file__).parent / "spark_conf"


def find_spark_home(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``SPARK_HOME``, else the folder of the pyspark package without importing it."""
    if home := env.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name="pyspark")
    return Path(spec.origin).parent


def submit_script(env: Mapping[str, str] = os.environ) -> Path:
    """Return the path of ``spark-submit``."""
    return find_spark_home(env) / "bin" / "spark-submit"


def conf_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that Spark reads its defaults from."""
    return Path(env["SPARK_CONF_DIR"]) if env.get("SPARK_CONF_DIR") else find_spark_home(env) / "conf"


def spark_defaults(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Read ``spark-defaults.conf``, the settings of whoever runs this machine; empty without that file or Spark."""
    try:
        file = conf_dir(env) / "spark-defaults.conf"
    except ModuleNotFoundError:
        return {}
    if not file.is_file():
        return {}
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    # A key, then its value after white space or an equals sign, as in every properties file.
    pairs = (re.fullmatch(r"([^#\s=][^\s=]*)\s*[\s=]\s*(.+)", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair}


def quiet_environment(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables for a driver on this machine that says little and listens on the loopback only."""
    quiet = {
        # spark-submit looks for its home with a script that fails on a Python path with a space.
        "SPARK_HOME": str(find_spark_home(env)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    # A user with a conf folder has their own logging and defaults in it.
    if not conf_dir(env).is_dir() and _QUIET_CONF.is_dir():
        quiet["SPARK_CONF_DIR"] = str(_QUIET_CONF)
    return quiet


@contextmanager
def driver_environment(java: Java, *, is_local: bool, env: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Set what the driver's JVM is started with, and put the environment back as it was."""
    variables = {"JAVA_HOME": str(java.home)}
    if is_local:
        # Workers would run the first python3 on the PATH, not the one that has our packages. On a cluster the
        # driver's path means nothing, so there it is the submitter's to say.
        variables |= quiet_environment(env) | {"PYSPARK_PYTHON": sys.executable}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def is_chosen(master: str | None) -> bool:
    """Return True if someone chose a Spark: an active session, a server, ``spark-submit``, or a master."""
    if _has_active_session() or is_under_spark_submit() or os.environ.get("SPARK_REMOTE"):
        return True
    return bool(master or spark_defaults().get("spark.master"))


def is_under_spark_submit() -> bool:
    """Return True if ``spark-submit`` started this process, and with it the driver's JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _has_active_session() -> bool:
    sql = sys.modules.get("pyspark.sql")  # a session is active only where its module was loaded
    return sql is not None and sql.SparkSession.getActiveSession() is not None
