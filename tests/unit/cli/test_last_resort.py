"""Errors that no command expected: what the machine did is said in words, anything else keeps its own."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest
from py4j.protocol import Py4JNetworkError

from rankeval_spark.errors import EnvironmentFaultError, Fault
from tests.support.cli import rankeval


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Py4JNetworkError("Error while sending or receiving"), "Spark driver: found its JVM gone"),
        (OSError(28, "No space left on device"), "disk: found no room: No space left on device"),
        (EnvironmentFaultError(Fault("java", "none", "17 or 21")), "java: found none; expected 17 or 21"),
        (KeyError("x"), "unexpected KeyError: 'x'"),
    ],
)
def test_what_the_machine_did_is_said_in_words(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def app(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr(sys.modules["rankeval_spark.cli.main"], "app", app)  # the package has a function main
    done = rankeval("show", "results")
    assert (done.code, done.err.count("error: ")) == (1 if isinstance(error, KeyError) else 8, 1)
    assert said in done.message
    assert ("--debug shows the trace" in done.err) is isinstance(error, KeyError)

    traced = rankeval("show", "results", "--debug").err
    assert f"{type(error).__name__}: {error}" in traced
