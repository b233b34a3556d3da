"""Secrets: taken from the environment when a session is built, and left out of everything that is stored or shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

REDACTED: Final = "(hidden)"
_ENVIRONMENT_VALUE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_CREDENTIAL = re.compile(
    r"secret|password|passwd|passphrase|token|credential|access[._-]?key|account[._-]?key|api[._-]?key|sas[._-]",
    re.IGNORECASE,
)


def is_credential(key: str) -> bool:
    """Tell whether a key looks as if its value were a secret; rather once too often than too rarely."""
    return _CREDENTIAL.search(key) is not None


def redact(settings: Mapping[str, str]) -> dict[str, str]:
    """Hide the values that are secrets: by their key, or because they assign one, as in ``-Dpassword=x``.

    A reference to the environment stays, it names a variable and not its value.
    """
    return {key: REDACTED if _is_secret(key, value) else value for key, value in settings.items()}


def _is_secret(key: str, value: str) -> bool:
    if _ENVIRONMENT_VALUE.fullmatch(value):
        return False
    return is_credential(key) or ("=" in value and is_credential(value))


def fill_environment(settings: Mapping[str, str], environment: Mapping[str, str], where: str) -> dict[str, str]:
    """Replace values that read ``${env:NAME}`` by that variable, and report all that are not set."""
    filled, faults = {}, []
    for key, value in settings.items():
        reference = _ENVIRONMENT_VALUE.fullmatch(value)
        if reference and reference[1] not in environment:
            found = f"{value}, but the environment has no {reference[1]}"
            faults.append(Fault(f"{where}.{key}", found, "a variable that is set", f"export {reference[1]}=..."))
        filled[key] = environment.get(reference[1], "") if reference else value
    if faults:
        raise ConfigError(*faults)
    return filled
