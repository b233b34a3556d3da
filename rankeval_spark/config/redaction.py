"""Secrets: taken from the environment when a session is built, and left out of everything that is stored or shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import REDACTED, ConfigError, Fault, has_password, hide

if TYPE_CHECKING:
    from collections.abc import Mapping

CREDENTIAL_NAME: Final = (
    r"secret|password|passwd|passphrase|passcode|storepass|token|credential|bearer|signature|"
    r"(?:access|account|api|private|encryption|shared)[._-]?key|sas[._-]"
)
"""What is in the name of a setting that holds a secret; Spark gets it too, for its own logs and pages."""

_ENVIRONMENT_VALUE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_CREDENTIAL = re.compile(CREDENTIAL_NAME, re.IGNORECASE)
_ASSIGNED = re.compile(r"([\w.-]+)=(\S+)")
# Keys of which the name speaks of secrets and the value says where they are, or how they are got.
_NO_SECRET = re.compile(r"(provider|providers|provider\.path|file|path|dir|class|type|regex|enabled|impl|ref)$", re.I)
_PLAIN_VALUE = re.compile(r"true|false|[0-9.]{0,6}", re.IGNORECASE)


def is_credential(key: str) -> bool:
    """Tell whether a key looks as if its value were a secret; rather once too often than too rarely."""
    return _CREDENTIAL.search(key) is not None


def has_secret(text: str) -> bool:
    """Tell whether a text assigns a secret, as in ``-Dpassword=x``, or is an address with a password."""
    return has_password(text) or ("=" in text and is_credential(text))


def redact(settings: Mapping[str, str]) -> dict[str, str]:
    """Hide the values that are secrets: by their key, or because they assign one, as in ``-Dpassword=x``.

    A reference to the environment stays, it names a variable and not its value.
    """
    return {key: REDACTED if is_secret(key, value) else value for key, value in settings.items()}


def is_secret(key: str, value: str) -> bool:
    """Tell whether a setting is to be hidden."""
    return not _ENVIRONMENT_VALUE.fullmatch(value) and (is_credential(key) or has_secret(value))


def is_written_out(key: str, value: str) -> bool:
    """Tell whether a setting holds a secret that stands there itself, for a config to refuse.

    Narrower than :func:`is_secret`: what a key says of secrets may be where they are, as in
    ``hadoop.security.credential.provider.path``.
    """
    return has_password(value) or any(
        _is_literal(name, text) for name, text in [(key, value), *_ASSIGNED.findall(value)]
    )


def _is_literal(name: str, text: str) -> bool:
    is_named = is_credential(name) and not _NO_SECRET.search(name)
    return is_named and not any((_ENVIRONMENT_VALUE.fullmatch(text), text == REDACTED, _PLAIN_VALUE.fullmatch(text)))


def fill_environment(settings: Mapping[str, str], environment: Mapping[str, str], where: str) -> dict[str, str]:
    """Replace values that read ``${env:NAME}`` by that variable, and report all that are not set."""
    filled, faults = {}, []
    for key, value in settings.items():
        reference = _ENVIRONMENT_VALUE.fullmatch(value)
        if reference and reference[1] not in environment:
            found = f"{value}, but the environment has no {reference[1]}"
            faults.append(Fault(f"{where}.{key}", found, "a variable that is set", f"export {reference[1]}=..."))
        filled[key] = environment.get(reference[1], "") if reference else value
        if reference:
            hide(filled[key])
    if faults:
        raise ConfigError(*faults)
    return filled
