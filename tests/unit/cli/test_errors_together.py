"""Faults of several checks are reported at once: each once, with the lowest exit code."""

from __future__ import annotations

import pytest

from rankeval_spark.errors import ChecksFailedError, ConfigError, Fault, InputError, errors_of, raise_together


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
