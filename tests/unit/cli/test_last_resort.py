"""Errors that no command expected are put into words; faults of several checks are reported at once."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest
from py4j.protocol import Py4JNetworkError

from rankeval_spark.errors import (
    ChecksFailedError,
    ConfigError,
    EnvironmentFaultError,
    Fault,
    InputError,
    errors_of,
    raise_together,
)
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


def test_faults_of_several_errors_are_one_error() -> None:
    first, second, third = (Fault(name, "this", "that") for name in ("a", "b", "c"))

    def fail(error: Exception) -> None:
        raise error

    errors = errors_of(
        lambda: fail(ChecksFailedError(first)),
        lambda: None,
        lambda: fail(InputError(second)),
        lambda: fail(ConfigError(third, first)),
    )

    with pytest.raises(ConfigError) as caught:
        raise_together(errors)
    assert caught.value.faults == (first, second, third)
    raise_together(())
