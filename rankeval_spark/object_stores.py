"""Object stores by their address, through obstore: S3, Azure and Google, with their errors as those of a disk."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, quote

from rankeval_spark.allowed_folders import STORE_SETTINGS, scheme_of
from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault, hide

try:
    from obstore import exceptions
    from obstore.store import from_url
except ImportError as error:
    raise EnvironmentFaultError(
        Fault("object stores", "no package obstore", "the extra `stores`", "pip install 'rankeval-spark[stores]'")
    ) from error

__all__ = ("REFUSED", "REQUESTS_AT_ONCE", "exceptions", "open_store", "store_errors")

REQUESTS_AT_ONCE: Final = 16
RETRIES: Any = {
    "max_retries": 100,  # of refused connections, which cost nothing: the time is the bound
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=5), "base": 2},
}
"""Limits on repeating a request that finds no store, or a busy one; each try has half a minute at most."""

ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT")  # variables that name a server of one's own
EXPECTED: Final = (
    "s3://bucket/folder, gs://bucket/folder, az://container/folder (with AZURE_STORAGE_ACCOUNT_NAME) "
    "or abfss://container@account.dfs.core.windows.net/folder"
)
NO_BUCKET: Final = "no such bucket or container"
REFUSED: Final = (exceptions.AlreadyExistsError, exceptions.PreconditionError)
"""Errors of a store about a write or read whose condition does not hold."""

_SETTINGS: Final = {
    **dict.fromkeys(("s3", "s3a"), ("endpoint", "region")),
    **dict.fromkeys(("az", "abfss", "abfs"), ("endpoint",)),
}
"""Settings that the stores of a scheme have."""

_EXPIRED: Final = re.compile("ExpiredToken|TokenRefreshRequired|InvalidToken|RequestTimeTooSkewed|AuthenticationFailed")
_DENIED: Final = re.compile(r"status code: 40[13]\b")
_ANSWER: Final = re.compile(r"(status code: \d+[^:<]*):.*?(<Code>\w+</Code>|$).*", re.DOTALL)  # with its body
_CREDENTIAL: Final = re.compile(r"(AWS|AZURE|GOOGLE)_\w*(KEY|KEY_ID|TOKEN|SECRET|SIGNATURE|PASSWORD)")
LEAST_KEY: Final = 16  # characters of the id of a key that is hidden: shorter ones occur in other places
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")


class NoBucketError(OSError):
    """Raised for an address whose bucket or container does not exist."""


def open_store(address: str, where: str) -> Any:  # noqa: ANN401 - one class for each kind of store
    """Return a prefix of a bucket, with the environment's credentials; ConfigError for another address."""
    known = _SETTINGS.get(scheme_of(address), ())
    return cached_store(address, where, tuple((name, STORE_SETTINGS[name]) for name in known if name in STORE_SETTINGS))


@cache
def cached_store(address: str, where: str, settings: tuple[tuple[str, str], ...]) -> Any:  # noqa: ANN401 - as above
    _hide_credentials()
    endpoints = [dict(settings).get("endpoint", ""), *(os.environ.get(name, "") for name in ENDPOINTS)]
    is_plain = any(endpoint.startswith("http://") for endpoint in endpoints)
    options: Any = {"allow_http": True} if is_plain else None
    config: Any = dict(settings) or None
    try:
        return from_url(address, config=config, client_options=options, retry_config=RETRIES)
    except (exceptions.BaseError, ValueError) as error:
        found = f"{address!r} ({str(error).partition(chr(10))[0]})"
        raise ConfigError(Fault(where, found, EXPECTED)) from error


@contextmanager
def store_errors(address: str, path: str = "") -> Iterator[None]:
    """Raise errors of a store as the OSError that a disk would raise; those of conditions stay."""
    where = f"{address}/{path}" if path else address
    try:
        yield
    except REFUSED:
        raise
    except (FileNotFoundError, exceptions.BaseError, OSError) as error:
        text = str(error)
        # The text of a store may repeat the request, with its secrets: no traceback shows it.
        if any(word in text for word in _NO_BUCKET):
            raise NoBucketError(errno.ENODEV, NO_BUCKET, address) from None
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), where) from None
        expired = _EXPIRED.search(text)
        is_denied = isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
        if expired or is_denied or _DENIED.search(text):
            reason = os.strerror(errno.EACCES) + (f" ({expired[0]})" if expired else "")
            raise PermissionError(errno.EACCES, reason, where) from None
        if isinstance(error, OSError) and error.errno is not None:
            raise
        said = _ANSWER.sub(r"\1 \2", text.partition("\n")[0])
        raise OSError(errno.EIO, said, where) from None


def _hide_credentials() -> None:
    """Remember the credentials in the environment, which no message may contain; a token also as an address has it."""
    for name, value in os.environ.items():
        if _CREDENTIAL.fullmatch(name) and (len(value) >= LEAST_KEY or not name.endswith("_ID")):
            signatures = [text for text in parse_qs(value.lstrip("?")).get("sig", ())]
            hide(value, *signatures, *(quote(text, safe="") for text in (value, *signatures)))
