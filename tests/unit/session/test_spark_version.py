"""A pyspark that this package does not work with is named, whatever is imported or run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import __version__
from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.report.figures import charts
from rankeval_spark.spark import version
from rankeval_spark.spark.version import UnsupportedSparkError, require_spark
from tests.support.cli import JAVA_WORDS, PROJECT

OLD = '__version__ = "3.5.5"\n'
BROKEN = 'raise TypeError("code() argument 13 must be str, not int")\n'
ABSENT = """raise ModuleNotFoundError("No module named 'pyspark'")\n"""
PARTLY = '__version__ = "4.2.0"\nSparkConf = SparkContext = None\n'


def python(folder: Path, pyspark: str, *arguments: str, errors: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python where another pyspark is found first."""
    package = folder / "first" / "pyspark"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(pyspark)
    (package / "errors.py").write_text(errors)
    path = os.pathsep.join([str(package.parent), str(PROJECT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_pyspark_of_the_tests_is_fit() -> None:
    require_spark()


def test_an_import_shows_the_version_that_was_found(tmp_path: Path) -> None:
    done = python(tmp_path, OLD, "-c", "from rankeval_spark import build_session")

    last = done.stderr.strip().splitlines()[-1]
    assert f"pyspark: found 3.5.5 in {tmp_path / 'first' / 'pyspark'}; expected 4.0 to 4.2" in last
    assert "pip install 'pyspark>=" in last
    assert "cannot import name" not in done.stderr


def test_frames_of_a_spark_that_is_too_old_show_its_version(tmp_path: Path) -> None:
    program = """
        from rankeval_spark import evaluate
        frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe", "columns": ["user_id", "item_id"]})()
        evaluate(frame, frame, measures=["nDCG@10"])
    """
    done = python(tmp_path, OLD, "-c", textwrap.dedent(program))

    assert "pyspark: found 3.5.5 in " in done.stderr.strip().splitlines()[-1]


def test_an_import_shows_why_pyspark_cannot_be_imported(tmp_path: Path) -> None:
    done = python(tmp_path, BROKEN, "-c", "from rankeval_spark import build_session")

    assert "pyspark: found none that can be imported (code() argument 13 must be str, not int)" in done.stderr
    assert "cannot import name" not in done.stderr


def test_without_pyspark_the_extra_is_named_and_the_rest_works(tmp_path: Path) -> None:
    program = """
        import rankeval_spark
        from rankeval_spark.config import load_config
        from rankeval_spark.measures import registry
        print(rankeval_spark.__version__, rankeval_spark.evaluate.__name__, rankeval_spark.Results.__name__)
        rankeval_spark.build_session
    """
    done = python(tmp_path, ABSENT, "-c", textwrap.dedent(program))

    assert done.stdout.split() == [__version__, "evaluate", "Results"]
    assert "pip install 'pyspark>=" in done.stderr.strip().splitlines()[-1]


def test_without_pyspark_measures_are_explained_and_configs_are_checked(tmp_path: Path) -> None:
    explained = python(tmp_path, ABSENT, "-m", "rankeval_spark", "measures", "nDCG")
    assert explained.returncode == 0, explained.stderr

    config = str(PROJECT / "rankeval_spark" / "demo" / "demo.yaml")
    checked = python(tmp_path, ABSENT, "-m", "rankeval_spark", "validate", config)
    assert checked.returncode == 0, checked.stderr


def test_a_failure_within_an_import_is_not_hidden(tmp_path: Path) -> None:
    """Python takes an AttributeError for a name that is not there, and says nothing of its cause."""
    errors = """raise AttributeError("module 'numpy' has no attribute 'float_'")"""
    done = python(tmp_path, PARTLY, "-c", "from rankeval_spark import build_session", errors=errors)

    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(".session.builder cannot be imported: module 'numpy' has no attribute 'float_'")
    assert "cannot import name" not in done.stderr


@pytest.mark.parametrize("pyspark", [OLD, ABSENT])
def test_doctor_reports_pyspark_among_the_other_checks(tmp_path: Path, pyspark: str) -> None:
    done = python(tmp_path, pyspark, "-m", "rankeval_spark", "doctor")

    assert (done.returncode, done.stderr) == (8, "")
    assert {"Python of the driver", "pyarrow", "cache folder", "free disk"} <= {
        line[7:30].strip() for line in done.stdout.splitlines() if line.startswith("ok")
    }
    assert [line[7:30].strip() for line in done.stdout.splitlines() if line.startswith("FAULT")] == ["pyspark"]
    assert "fit for nights without Spark" in done.stdout


def test_a_command_ends_with_one_message(tmp_path: Path) -> None:
    done = python(tmp_path, OLD, "-m", "rankeval_spark", "reproduce", "results", "--run-id", "one")

    assert done.returncode == 8
    assert done.stderr.count("error: ") == 1
    assert "pyspark: found 3.5.5 in " in done.stderr
    assert not [word for word in JAVA_WORDS if word in done.stderr]


def test_it_is_an_error_of_the_environment_and_of_the_import() -> None:
    assert issubclass(UnsupportedSparkError, EnvironmentFaultError)
    assert issubclass(UnsupportedSparkError, ImportError)


def test_without_pyspark_nights_run_and_their_results_are_read(tmp_path: Path) -> None:
    config = one_night(tmp_path)
    night = (str(config), "--date", "2026-01-01")

    done = python(tmp_path, ABSENT, "-m", "rankeval_spark", "run", *night)
    assert done.returncode == 0, done.stderr
    assert "published x 2026-01-01" in done.stdout

    shown = python(tmp_path, ABSENT, "-m", "rankeval_spark", "show", str(tmp_path / "out"))
    assert shown.returncode == 0, shown.stderr

    options = ("--keep-days", "1", "--erase-user", "u", "--vacuum")
    kept = python(tmp_path, ABSENT, "-m", "rankeval_spark", "maintain", str(tmp_path / "out"), *options)
    assert kept.returncode == 0, kept.stderr
    assert "one user erased, rows:" in kept.stdout
    assert "nDCG@10 │ 0.6309" in shown.stdout


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("spark.always=true", ""),
        ("inputs.held_out.format=orc", "truth.parquet: orc, which Spark reads"),
    ],
)
def test_without_pyspark_a_night_that_takes_spark_says_why(tmp_path: Path, change: str, why: str) -> None:
    options = (str(one_night(tmp_path)), "--date", "2026-01-01", "--set", change)

    checked, done = (
        python(tmp_path, ABSENT, "-m", "rankeval_spark", command, *options) for command in ("validate", "run")
    )

    assert checked.returncode == done.returncode == 8
    assert checked.stderr.splitlines()[:2] == done.stderr.splitlines()[:2]
    assert done.stderr.count("error: ") == 1
    assert "pip install 'pyspark>=" in done.stderr
    assert why in done.stderr


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("inputs.held_out.path=absent.parquet", "absent.parquet"),
        ("inputs.held_out.columns.item_id=sku", "sku"),
        ("inputs.held_out.filters=[{column: day, op: '=', value: 1}]", "day"),
    ],
)
def test_without_pyspark_a_fault_of_an_input_is_named_and_recorded(tmp_path: Path, change: str, found: str) -> None:
    night = (str(one_night(tmp_path)), "--date", "2026-01-01", "--set", change)
    checked, done = (
        python(tmp_path, ABSENT, "-m", "rankeval_spark", command, *night) for command in ("validate", "run")
    )

    assert done.returncode == checked.returncode == 4
    assert "pip install" not in done.stderr
    assert found in done.stderr
    assert next(line for line in checked.stderr.splitlines() if found in line) in done.stderr
    shown = python(tmp_path, ABSENT, "-m", "rankeval_spark", "runs", str(tmp_path / "out"), "--json")
    assert [one["status"] for one in json.loads(shown.stdout)] == ["FAILED"]


@pytest.mark.parametrize(("extra", "install"), [("spark", version.INSTALL), ("report", charts.INSTALL)])
def test_messages_install_what_the_extras_are(extra: str, install: str) -> None:
    requirements = ", ".join(f'"{one}"' for one in re.findall("'(.+?)'", install))

    assert f"{extra} = [{requirements}]\n" in (PROJECT / "pyproject.toml").read_text()


def one_night(folder: Path) -> Path:
    """Write the config and the inputs of a night: one list, with its relevant item second."""
    pq.write_table(
        pa.table({"user_id": ["u", "u"], "item_id": ["a", "b"], "score": [2.0, 1.0]}), folder / "log.parquet"
    )
    pq.write_table(pa.table({"user_id": ["u"], "item_id": ["b"]}), folder / "truth.parquet")
    config = folder / "night.yaml"
    config.write_text(
        textwrap.dedent("""
        evaluation: x
        inputs:
          recommendations: {path: log.parquet, format: parquet}
          held_out: {path: truth.parquet, format: parquet}
        measures: ["nDCG@10"]
        results: {root: out}
        """)
    )
    return config
