"""Paths and table names in a config: which are valid, and what they resolve to."""

from __future__ import annotations

import datetime as dt
import os
import re
from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints

from rankeval_spark.allowed_folders import scheme_of
from rankeval_spark.config.sections.base import fault_error
from rankeval_spark.errors import Fault, nearest, visible

SCHEMES: Final = ("file", "hdfs", "s3a", "abfss", "gs", "dbfs")
"""File systems that a path may name."""

DATE_PLACEHOLDER: Final = "{date}"
_DATE = re.compile(r"\{date(?:([+-]\d{1,4}))?\}")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_TORN_PLACEHOLDER = re.compile(r"\{\s*date|date\s*\}", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^:/]+://([^/]*)")
# A secret key may hold a slash, which ends the authority early: everything between "://" and an "@" counts.
_PASSWORD = re.compile(r"[^:/]+://[^@]*:[^@]*@")
_QUERY = re.compile(r"\?[^/]*=")
_USER_NAMES: Final = ("abfss", "hdfs")  # their part before the "@" is a container or a user, not a secret
_NAME_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_MAX_NAME_PARTS = 3

# `parquet.events` would be read as a file by Spark, whatever the catalog holds.
_FILE_FORMATS = ("delta", "parquet", "csv", "json", "text", "orc", "avro", "xml", "binaryfile", "image", "libsvm")


def check_placeholders(text: str) -> str:
    """Refuse any placeholder but ``{date}`` and ``{date-7}``.

    One that is unknown is never filled, and would silently read nothing.
    """
    expected = f"only {DATE_PLACEHOLDER}, or days from it such as {{date-1}} and {{date+7}}"
    for placeholder in _PLACEHOLDER.findall(text):
        if not _DATE.fullmatch(placeholder):
            fix = "write whole days without blanks, such as {date-7}" if "date" in placeholder else "correct its name"
            raise fault_error(Fault("", f"placeholder {placeholder}", expected, fix))
    if torn := _TORN_PLACEHOLDER.search(_DATE.sub("", text)):
        raise fault_error(Fault("", f"half a placeholder, {torn[0]}", DATE_PLACEHOLDER, "write both braces"))
    return text


def check_configured_path(text: str) -> str:
    """Refuse unknown file systems, secrets in the address and unknown placeholders."""
    scheme = scheme_of(text)
    if scheme not in ("", *SCHEMES):
        fix = "did you mean 's3a'?" if scheme in ("s3", "s3n") else nearest(scheme, SCHEMES)
        raise fault_error(Fault("", f"file system {scheme!r}", f"a local path or one of {', '.join(SCHEMES)}", fix))
    if scheme and (found := _secret_in(text, scheme)):
        raise fault_error(Fault("", found, "an address without secrets", "use spark.settings with ${env:NAME}"))
    if visible(text) != text:
        raise fault_error(Fault("", visible(text), "a path on one line, without control characters"))
    if scheme == "file" and _authority(text):
        found = f"the host {_authority(text)!r}"
        raise fault_error(Fault("", found, "a path of this machine", "write file:/// before it, or the path alone"))
    return check_placeholders(text)


def _secret_in(address: str, scheme: str) -> str:
    """Name the part of an address that may be a secret; empty where there is none."""
    if _PASSWORD.match(address):
        return "a password in the address"
    if _QUERY.search(address):
        return "a query in the address"
    return "a user in the address" if "@" in _authority(address) and scheme not in _USER_NAMES else ""


def _authority(address: str) -> str:
    found = _AUTHORITY.match(address)
    return found.group(1) if found else ""


def check_table_name(text: str) -> str:
    """Accept ``table``, ``schema.table`` or ``catalog.schema.table`` of letters, digits, ``_`` and ``-``."""
    parts = text.split(".")
    if len(parts) > _MAX_NAME_PARTS or not all(_NAME_PART.fullmatch(part) for part in parts):
        raise fault_error(Fault("", repr(text), "a name such as catalog.schema.table", "give files as path:"))
    if len(parts) > 1 and parts[0].casefold() in _FILE_FORMATS:
        raise fault_error(Fault("", repr(text), "a table of a catalog", f"write format: {parts[0]} and path:"))
    return text


PathText = Annotated[str, StringConstraints(min_length=1, max_length=1000), AfterValidator(check_configured_path)]
TableName = Annotated[str, StringConstraints(min_length=1, max_length=300), AfterValidator(check_table_name)]


def resolve_path(path: str, folder: str) -> str:
    """Make a local path absolute, starting from ``folder``; return a path with a scheme unchanged."""
    if scheme_of(path):
        return path
    return os.path.normpath(os.path.join(os.path.abspath(folder), os.path.expanduser(path)))


def fill_date(text: str, date: dt.date) -> str:
    """Replace ``{date}`` by the evaluation date, and ``{date-7}`` by the day a week before, as ``YYYY-MM-DD``.

    Examples
    --------
    >>> fill_date("logs/{date-1}/{date}", dt.date(2026, 3, 1))
    'logs/2026-02-28/2026-03-01'
    """
    return _DATE.sub(lambda found: (date + dt.timedelta(days=int(found[1] or 0))).isoformat(), text)


def date_placeholder(days: int) -> str:
    """Write the day that is so many days after the evaluation date.

    Examples
    --------
    >>> date_placeholder(7), date_placeholder(0), date_placeholder(-1)
    ('{date+7}', '{date}', '{date-1}')
    """
    return f"{{date{days:+d}}}" if days else DATE_PLACEHOLDER
