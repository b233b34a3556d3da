"""Errors that stop a worker; ``apps.error_translation`` parses their texts in Spark's report."""

from __future__ import annotations

import re
from typing import NoReturn


class RefusedError(ValueError):
    """A policy or an input that does not allow a case met it."""


def refuse(policy: str, what: str, *, setting: str = "error") -> NoReturn:
    """Stop because a policy refuses a case."""
    message = f"[rankeval:{policy}] {what}, and the policy {policy} is '{setting}'"
    raise RefusedError(message)


def refuse_input(name: str, what: str, *, expected: str, fix: str) -> NoReturn:
    """Stop because an input cannot be used under any policy."""
    message = f"[rankeval:{name}] {what}; expected {expected}; fix: {fix}."
    raise RefusedError(message)


def quoted(key: object) -> str:
    """Write a key into a message, on one line."""
    return "'" + re.sub(r"\s", " ", str(key)) + "'"
