"""Why a driver does not start: what Java and Spark say in their ways becomes one message."""

from __future__ import annotations

import os

import pytest

from rankeval_spark.errors import ConfigError, EnvironmentFaultError, FaultsError
from rankeval_spark.spark.session.builder import _JvmOutput, startup_error

UNREACHABLE = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
"""
UNRESOLVED = """:: problems summary ::
:::: WARNINGS
\t\tmodule not found: no.such#thing;1
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: no.such#thing;1: not found]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:563)
"""
NO_NUMBER = """Invalid maximum heap size: -Xmxabc
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
TOO_SMALL = "Error occurred during initialization of VM\nToo small maximum heap\n"
NO_ROOM = "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n# Native\n"
OF_EXECUTOR = 'Exception in thread "main" org.apache.spark.SparkException: Executor memory must be a positive number\n'


@pytest.mark.parametrize(
    ("said", "chosen", "kind", "message"),
    [
        (
            UNREACHABLE,
            {"spark.jars": "http://127.0.0.1:9/x.jar", "spark.sql.x": "1"},
            EnvironmentFaultError,
            "spark.settings, spark.jars: found a driver that does not start: ConnectException: Connection refused; "
            "expected a driver on this machine; correct or remove spark.jars; run 'rankeval doctor'",
        ),
        (
            UNRESOLVED,
            {"spark.jars.packages": "no.such:thing:1"},
            EnvironmentFaultError,
            "spark.settings, spark.jars.packages: found a driver that does not start: RuntimeException: "
            "[unresolved dependency: no.such#thing;1: not found]; expected",
        ),
        (
            NO_NUMBER,
            {"spark.driver.memory": "abc", "spark.jars": "/a.jar"},
            ConfigError,
            "spark.settings, spark.driver.memory: found a driver that does not start: Invalid maximum heap size: "
            "-Xmxabc; expected a value that Spark and Java take; correct or remove spark.driver.memory",
        ),
        (TOO_SMALL, {"spark.driver.memory": "1m"}, ConfigError, "spark.driver.memory: found a driver that does"),
        (NO_ROOM, {"spark.driver.memory": "900g"}, EnvironmentFaultError, "start: There is insufficient memory for"),
        (OF_EXECUTOR, {"spark.executor.memory": "0"}, ConfigError, "spark.settings, spark.executor.memory: found"),
        ("", {}, EnvironmentFaultError, "Spark driver: found a driver that does not start: no message; expected"),
    ],
)
def test_it_names_the_setting(said: str, chosen: dict[str, str], kind: type[FaultsError], message: str) -> None:
    error = startup_error(said, chosen)

    assert type(error) is kind
    assert message in str(error)
    assert not [line for line in str(error).splitlines() if "\tat " in line]


def test_what_java_says_of_the_modules_of_spark_is_not_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    output = _JvmOutput()
    os.write(output.pipe, UNREACHABLE.encode())
    os.close(output.pipe)
    assert output.text() == UNREACHABLE

    output.pass_on()

    assert capfd.readouterr().err == UNREACHABLE.partition("\n")[2]
