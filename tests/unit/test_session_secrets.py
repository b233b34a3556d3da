"""A secret of the settings reaches the driver, and no command line that other users of the machine can read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rankeval_spark.session import builder, settings

if TYPE_CHECKING:
    from pathlib import Path

SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": "hunter2",
    "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net": "hunter2",
    "spark.hadoop.fs.gs.auth.service.account.private.key": "hunter2",
    "spark.ssl.keyPassword": "hunter2",
    "spark.hadoop.fs.s3a.proxy.address": "http://user:hunter2@proxy:3128",
}


def test_secrets_are_not_on_the_command_line_of_the_jvm() -> None:
    shown = builder._shown({**SECRETS, "spark.sql.shuffle.partitions": "8"})

    assert "hunter2" not in str(shown)
    assert shown["spark.sql.shuffle.partitions"] == "8"
    assert "spark.sql.extensions" in shown


def test_what_the_jvm_is_started_with_cannot_wait() -> None:
    options = {"spark.driver.extraJavaOptions": "-Dpassword=x", "spark.driver.memory": "1g", "spark.jars": "a.jar"}

    assert options.items() <= builder._shown(options).items()


def test_spark_hides_the_same_names_in_its_logs() -> None:
    pattern = settings.job_settings()["spark.redaction.regex"]

    named = [key for key in SECRETS if "proxy" not in key]
    assert [key for key in named if not re.search(pattern, key)] == []


def test_nothing_of_a_local_run_is_open_to_the_network(tmp_path: Path) -> None:
    local = settings.local_settings(tmp_path, cores=2)

    assert local["spark.ui.enabled"] == "false"
    assert local["spark.driver.host"] == local["spark.driver.bindAddress"] == "127.0.0.1"
