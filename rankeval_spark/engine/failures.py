"""Errors that stop a worker, and their texts, which :mod:`rankeval_spark.refusals` finds in Spark's report again."""

from __future__ import annotations

import re
from typing import Final, NoReturn

POLICY_REFUSED: Final = re.compile(r"\[rankeval:(?P<policy>\w+)\] (?P<what>[^\n]+?), and the policy")
"""The text of :func:`policy_words`."""

INPUT_REFUSED: Final = re.compile(
    r"\[rankeval:(?P<input>\w+)\] (?P<found>[^\n]+?); expected (?P<expected>[^\n]+?); fix: (?P<fix>[^\n.]+)\."
)
"""The text of :func:`input_words`."""


class RefusedError(ValueError):
    """A policy or an input that does not allow a case met it."""


def policy_words(policy: str, *, setting: str = "error") -> tuple[str, str]:
    """Return what stands before and after the case that a policy refuses."""
    return f"[rankeval:{policy}] ", f", and the policy {policy} is '{setting}'"


def input_words(name: str, *, expected: str, fix: str) -> tuple[str, str]:
    """Return what stands before and after the reason for which an input cannot be used."""
    return f"[rankeval:{name}] ", f"; expected {expected}; fix: {fix}."


def refuse(policy: str, what: str, *, setting: str = "error") -> NoReturn:
    """Stop because a policy refuses a case."""
    raise RefusedError(what.join(policy_words(policy, setting=setting)))


def refuse_input(name: str, what: str, *, expected: str, fix: str) -> NoReturn:
    """Stop because an input cannot be used under any policy."""
    raise RefusedError(what.join(input_words(name, expected=expected, fix=fix)))


def quote_key(key: object) -> str:
    """Write a key into a message, on one line."""
    return "'" + re.sub(r"\s", " ", str(key)) + "'"
