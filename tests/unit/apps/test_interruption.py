"""A wish to stop is found behind the error that came in its place."""

from __future__ import annotations

import signal

import pytest

from rankeval_spark.errors import Stopped, interruption


def stopped_while_reading() -> None:
    """End as pyspark does where a signal comes while it reads an answer."""
    try:
        raise Stopped(signal.SIGTERM)
    finally:
        message = "the job was cancelled"
        raise RuntimeError(message)


def test_the_signal_behind_an_error_is_found() -> None:
    with pytest.raises(RuntimeError) as raised:
        stopped_while_reading()
    assert str(interruption(raised.value)) == "stopped by SIGTERM"


def test_a_mere_error_has_none() -> None:
    assert interruption(ValueError("x")) is None
    assert interruption(KeyboardInterrupt()) is not None
