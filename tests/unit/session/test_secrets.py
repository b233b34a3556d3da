"""A secret of the settings reaches the driver, and no command line that other users of the machine can read."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from rankeval_spark import errors
from rankeval_spark.config import spark_settings
from rankeval_spark.errors import ConfigError
from rankeval_spark.spark.session import secrets, settings


@pytest.fixture(autouse=True)
def _nothing_hidden_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_hidden", set())


SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": "hunter2",
    "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net": "hunter2",
    "spark.hadoop.fs.gs.auth.service.account.private.key": "hunter2",
    "spark.ssl.keyPassword": "hunter2",
    "spark.hadoop.fs.s3a.proxy.address": "http://user:hunter2@proxy:3128",
}


def test_secrets_are_not_on_the_command_line_of_the_jvm() -> None:
    with secrets.command_line_settings({**SECRETS, "spark.sql.shuffle.partitions": "8"}) as shown:
        assert shown == {"spark.sql.shuffle.partitions": "8"}


def test_value_from_the_environment_is_a_secret_whatever_its_key() -> None:
    filled = spark_settings.fill_environment(
        {"spark.executorEnv.PLAIN": "${env:A}", "spark.driver.extraJavaOptions": "${env:B}", "spark.x": "plain"},
        {"A": "hunter2-plain", "B": """-Dmode=hunter2-mode -Dquoted="hunter2 \\ 'quoted'" -Xss4m"""},
        "spark.settings",
    )
    with secrets.command_line_settings(filled) as shown:
        assert "hunter2" not in str(shown)
        assert shown.keys() == {"spark.driver.extraJavaOptions", "spark.x"}
        file = Path(shown["spark.driver.extraJavaOptions"].strip('"').removeprefix("@"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        lines = file.read_text(encoding="utf-8").splitlines()
        assert lines == ['"-Dmode=hunter2-mode"', """"-Dquoted=hunter2 \\\\ 'quoted'\"""", '"-Xss4m"']
    assert not file.exists()


def test_java_options_from_the_environment_that_are_none_are_refused_unseen() -> None:
    filled = spark_settings.fill_environment({"spark.driver.extraJavaOptions": "${env:B}"}, {"B": "-Dx='hunter2"}, "x")
    with pytest.raises(ConfigError, match="No closing quotation") as raised, secrets.command_line_settings(filled):
        pass
    assert "hunter2" not in str(raised.value)


def test_spark_hides_what_the_environment_gave_by_name_and_by_value() -> None:
    settings = {
        "spark.hadoop.a.b": "${env:A}",
        "spark.driver.extraJavaOptions": "${env:B}",
        "spark.x": "plain",
        "spark.redaction.regex": "(?i:theirs)",
    }
    filled = spark_settings.fill_environment(settings, {"A": "hunter2+(plain", "B": "-Dmode=warn -Dy=hunter2"}, "x")
    hidden = secrets.add_redaction(filled)
    names, texts = (re.compile(hidden[key]) for key in ("spark.redaction.regex", "spark.redaction.string.regex"))

    for name in (
        "spark.hadoop.a.b",
        "a.b",
        "spark.driver.extraJavaOptions",
        "mode",
        "y",
        "THEIRS",
        "spark.redaction.regex",
    ):
        assert names.search(name), name
    for text in ("x hunter2+(plain y", "is HUNTER2+(PLAIN", "-Dy=hunter2"):
        assert names.search(text), text
        assert texts.search(text), text
    assert not any(
        names.search(text) or texts.search(text) for text in ("spark.x", "plain", "warn", "spark.hadoop.azb")
    )
    assert secrets.add_redaction({"spark.x": "plain"}) == {"spark.x": "plain"}


def test_what_the_jvm_is_started_with_cannot_wait() -> None:
    options = {"spark.driver.extraJavaOptions": "-Dpassword=x", "spark.driver.memory": "1g", "spark.jars": "a.jar"}
    with secrets.command_line_settings(options) as shown:
        assert shown == options


def test_spark_hides_the_same_names_in_its_logs() -> None:
    pattern = settings.job_settings()["spark.redaction.regex"]

    named = [key for key in SECRETS if "proxy" not in key]
    assert [key for key in named if not re.search(pattern, key)] == []


def test_nothing_of_a_local_run_is_open_to_the_network(tmp_path: Path) -> None:
    local = settings.local_settings(tmp_path, cores=2)

    assert local["spark.ui.enabled"] == "false"
    assert local["spark.driver.host"] == local["spark.driver.bindAddress"] == "127.0.0.1"
