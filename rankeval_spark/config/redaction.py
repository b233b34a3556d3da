"""Secrets: taken from the environment when a session is built, and left out of everything that is stored or shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rankeval_spark.config.plain_settings import is_plain
from rankeval_spark.errors import REDACTED, SHORTEST_SECRET, ConfigError, Fault, has_password, hide

if TYPE_CHECKING:
    from collections.abc import Mapping

CREDENTIAL_NAME: Final = (
    r"secret|password|passwd|passphrase|passcode|token|credential|bearer|signature|pwd|(?<!by)(?<!com)pass(?![a-z])|"
    r"(?:access|account|api|private|encryption|shared|session|signing|master)[._-]?key|sas[._-]|"
    r"(?<![a-z])(?:pat|pin)(?![a-z])|(?:key|store|card)pin|(?<![a-z])auth(?:orization)?$"
)
"""What is in the name of a setting that holds a secret; Spark gets it too, for its own logs and pages."""

CREDENTIAL_VALUE: Final = (
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[opsur]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}|\bxox[abeprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,200}\.[\w-]{10}|-----BEGIN [A-Z ]*PRIVATE KEY|\bAIza[\w-]{35}|\bdapi[0-9a-f]{32}"
    r"|\b[rs]k_live_\w{16,}"
    r"|(?i:(?:^|authorization\W{1,4})\s*(?:basic|bearer|digest|negotiate) +[\w+/=.~-]{4,}(?:[\"'\s]|$))"
)
"""What a secret looks like whatever it is called: keys of clouds and code hosts, tokens, headers of HTTP."""

_ENVIRONMENT_VALUE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_CREDENTIAL = re.compile(CREDENTIAL_NAME, re.IGNORECASE)
_SHAPE = re.compile(CREDENTIAL_VALUE)
# A name begins where no name is before: from every letter of a long one would take its length in squares.
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(?:([\w.-]+)["']?\s*[=:]\s*["']?([^\s;&,"'}]+)|--?([\w.-]+)\s+["']?([^\s;&,"'}-][^\s;&,"'}]*))"""
)
# Keys of which the name speaks of secrets and the value says where they are, or how they are got.
_NO_SECRET = re.compile(r"(provider|providers|provider\.path|file|path|dir|class|type|regex|enabled|impl|ref)$", re.I)
_SECRET_ITSELF = re.compile(r"(?:secret|password|passwd|passphrase|passcode|pass|pwd|pin|pat|token)$", re.IGNORECASE)
_SWITCH = re.compile(r"true|false|", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9.]{0,6}")


class Filled(str):
    """A value that the environment gave: a secret, whatever its key is called and whatever it looks like."""

    __slots__ = ()


def is_credential(key: str) -> bool:
    """Return True if a key looks as if its value were a secret; errs on the side of True."""
    return _CREDENTIAL.search(key) is not None


def has_secret(text: str) -> bool:
    """Return True if a text looks like a secret, assigns one, as ``-Dpassword=x``, or is an address with a password."""
    if has_password(text) or _SHAPE.search(text) or ("=" in text and is_credential(text)):
        return True
    return any(_is_literal(name, assigned) for name, assigned in assignments(text))


def redact(settings: Mapping[str, str]) -> dict[str, str]:
    """Keep the values that shape plans and sizes, and hide all others: those are stored by their name alone.

    A reference to the environment stays, it names a variable and not its value.
    """
    return {key: value if _is_storable(key, value) else REDACTED for key, value in settings.items()}


def _is_storable(key: str, value: str) -> bool:
    return _ENVIRONMENT_VALUE.fullmatch(value) is not None or (is_plain(key, value) and not is_secret(key, value))


def is_reference(value: str) -> bool:
    """Return True if a value is to be taken from the environment."""
    return _ENVIRONMENT_VALUE.fullmatch(value) is not None


def is_secret(key: str, value: str) -> bool:
    """Return True if a setting is to be hidden."""
    if isinstance(value, Filled):
        return True
    return not is_reference(value) and (is_credential(key) or has_secret(value))


def is_written_out(key: str, value: str) -> bool:
    """Return True if a setting holds the secret itself, which a config refuses.

    Narrower than :func:`is_secret`: what a key says of secrets may be where they are, as in
    ``hadoop.security.credential.provider.path``.
    """
    if has_password(value) or _SHAPE.search(value):
        return True
    return any(_is_literal(name, text) for name, text in [(key, value), *assignments(value)])


def assignments(text: str) -> list[tuple[str, str]]:
    """List what a text assigns: ``-Da=b``, ``a=b;c=d``, ``--a b``, ``{"a": "b"}``."""
    return [(found[0] or found[2], found[1] or found[3]) for found in _ASSIGNED.findall(text)]


def _is_literal(name: str, text: str) -> bool:
    if not is_credential(name) or _NO_SECRET.search(name):
        return False
    is_harmless = _SWITCH.fullmatch(text) or (_NUMBER.fullmatch(text) and not _SECRET_ITSELF.search(name))
    return not (is_harmless or is_reference(text) or text == REDACTED)


def fill_environment(settings: Mapping[str, str], environment: Mapping[str, str], where: str) -> dict[str, str]:
    """Replace values that read ``${env:NAME}`` by that variable, and report all that are not set.

    What came of it is :class:`Filled`, and is hidden in every message of this process.
    """
    filled, faults = {}, []
    for key, value in settings.items():
        reference = _ENVIRONMENT_VALUE.fullmatch(value)
        if reference is None:
            filled[key] = value
            continue
        if reference[1] not in environment:
            found = f"{value}, but the environment has no {reference[1]}"
            faults.append(Fault(f"{where}.{key}", found, "a variable that is set", f"export {reference[1]}=..."))
        filled[key] = Filled(environment.get(reference[1], ""))
        hide(filled[key], *(text for _, text in assignments(filled[key]) if len(text) >= SHORTEST_SECRET))
    if faults:
        raise ConfigError(*faults)
    return filled
