"""Base of all config models, and types of values: strict numbers, paths, table names, durations."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from rankeval_spark.allowed_folders import FILE_SYSTEMS, RESULT_SCHEMES, scheme_fix, scheme_of
from rankeval_spark.errors import Fault, visible
from rankeval_spark.time_zones import zone_fault

# Keys of the validation context: the folder from which relative paths start; whether published results hold the config
FOLDER_KEY = "folder"
RECORDED_KEY = "recorded"

# Strict: "30" is not a number and `true` is not 1.
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Values = TypeVar("Values", bound=tuple[object, ...])


class Model(BaseModel):
    """Part of the configuration: frozen, without unknown keys, valid once it exists.

    A key without a value means the same as a key that is left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever was written
        if isinstance(values, Mapping):
            return {key: value for key, value in values.items() if value is not None}
        return values


class ModelWithPaths(Model):
    """Part of the configuration whose relative paths start from the folder of the config file."""

    _folder: str = PrivateAttr(default="")

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - signature of pydantic
        """Remember the folder of the config file."""
        if context:
            self._folder = context[FOLDER_KEY]


def fault_error(*faults: Fault) -> PydanticCustomError:
    """Build the error that a validator raises; pydantic collects those of all validators.

    ``where`` of a fault is relative to the validated value, or begins with other keys, as ``/inputs/items.path``.
    """
    return PydanticCustomError("faults", "not valid", {"faults": faults})


def refuse_faults(faults: Sequence[Fault]) -> None:
    """Raise the faults, if there are any."""
    if faults:
        raise fault_error(*faults)


def validate_with_faults(handler: ValidatorFunctionWrapHandler, value: object, faults: Sequence[Fault]) -> Any:  # noqa: ANN401 - any value
    """Validate a value by pydantic's handler; raise its errors together with faults that were found before."""
    try:
        valid = handler(value)
    except ValidationError as error:
        if not faults:
            raise
        found = [InitErrorDetails(type=fault_error(*faults), loc=(), input=None)]
        for details in error.errors(include_url=False):
            copy = PydanticCustomError(details["type"], details["msg"], details.get("ctx"))
            found.append(InitErrorDetails(type=copy, loc=details["loc"], input=details["input"]))
        raise ValidationError.from_exception_data(error.title, found) from None
    refuse_faults(faults)
    return valid


def repeated_faults(values: Sequence[object], what: str) -> list[Fault]:
    """Build one fault for every value that occurs in the list a second time."""
    return [
        Fault(f"[{index}]", f"{what} {value!r} a second time", "each once", "remove one of them")
        for index, value in enumerate(values)
        if value in values[:index]
    ]


def each_once(what: str) -> AfterValidator:
    """Refuse a value that occurs in a list a second time; ``what`` names one of them."""

    def check(values: Values) -> Values:
        refuse_faults(repeated_faults(values, what))
        return values

    return AfterValidator(check)


DATE_PLACEHOLDER: Final = "{date}"
_DATE = re.compile(r"\{date(?:([+-]\d{1,4}))?\}")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_TORN_PLACEHOLDER = re.compile(r"\{\s*date|date\s*\}", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^:/]+://([^/]*)")
# A secret key may hold a slash, which ends the authority early: everything between "://" and an "@" counts.
_PASSWORD = re.compile(r"[^:/]+://[^@]*:[^@]*@")
_QUERY = re.compile(r"\?[^/]*=")
_NAME_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_MAX_NAME_PARTS = 3
# `parquet.events` would be read as a file by Spark, whatever the catalog holds.
_FILE_FORMATS = ("delta", "parquet", "csv", "json", "text", "orc", "avro", "xml", "binaryfile", "image", "libsvm")


def check_placeholders(text: str) -> str:
    """Refuse any placeholder but ``{date}`` and ``{date-7}``, which would never be filled and read nothing."""
    expected = f"only {DATE_PLACEHOLDER}, or days from it such as {{date-1}} and {{date+7}}"
    for placeholder in _PLACEHOLDER.findall(text):
        if not _DATE.fullmatch(placeholder):
            fix = "write whole days without blanks, such as {date-7}" if "date" in placeholder else "correct its name"
            raise fault_error(Fault("", f"placeholder {placeholder}", expected, fix))
    if torn := _TORN_PLACEHOLDER.search(_DATE.sub("", text)):
        raise fault_error(Fault("", f"half a placeholder, {torn[0]}", DATE_PLACEHOLDER, "write both braces"))
    return text


def check_configured_path(text: str, *, is_root: bool = False) -> str:
    """Refuse unknown file systems, secrets in the address and unknown placeholders; ``is_root``: one of results."""
    scheme, allowed = scheme_of(text), RESULT_SCHEMES if is_root else FILE_SYSTEMS
    fix = scheme_fix(scheme, is_root=is_root)
    if fix is not None:
        raise fault_error(Fault("", f"file system {scheme!r}", f"a local path or one of {', '.join(allowed)}", fix))
    match = _AUTHORITY.match(text)
    authority = match[1] if match else ""
    secrets = {
        "a password": _PASSWORD.match(text),
        "a query": _QUERY.search(text),
        "a user": scheme and "@" in authority and not FILE_SYSTEMS[scheme].has_user,
    }
    if scheme and (secret := next((name for name, is_found in secrets.items() if is_found), "")):
        fix = "use spark.settings with ${env:NAME}"
        raise fault_error(Fault("", f"{secret} in the address", "an address without secrets", fix))
    if visible(text) != text:
        raise fault_error(Fault("", visible(text), "a path on one line, without control characters"))
    if scheme == "file" and authority:
        fix = "write file:/// before it, or the path alone"
        raise fault_error(Fault("", f"the host {authority!r}", "a path of this machine", fix))
    return check_placeholders(text)


def check_table_name(text: str) -> str:
    """Accept ``table``, ``schema.table`` or ``catalog.schema.table`` of letters, digits, ``_`` and ``-``."""
    parts = text.split(".")
    if len(parts) > _MAX_NAME_PARTS or not all(_NAME_PART.fullmatch(part) for part in parts):
        raise fault_error(Fault("", repr(text), "a name such as catalog.schema.table", "give files as path:"))
    if len(parts) > 1 and parts[0].casefold() in _FILE_FORMATS:
        raise fault_error(Fault("", repr(text), "a table of a catalog", f"write format: {parts[0]} and path:"))
    return text


_Address = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
PathText = Annotated[_Address, AfterValidator(check_configured_path)]
RootText = Annotated[_Address, AfterValidator(partial(check_configured_path, is_root=True))]
TableName = Annotated[str, StringConstraints(min_length=1, max_length=300), AfterValidator(check_table_name)]


def resolve_path(path: str, folder: str) -> str:
    """Return a local path as an absolute one, starting from ``folder``; a path with a scheme unchanged."""
    if scheme_of(path):
        return path
    return os.path.normpath(os.path.join(os.path.abspath(folder), os.path.expanduser(path)))


def fill_date(text: str, date: dt.date) -> str:
    """Replace ``{date}`` by the evaluation date, and ``{date-7}`` by the day a week before, as ``YYYY-MM-DD``.

    >>> fill_date("logs/{date-1}/{date}", dt.date(2026, 3, 1))
    'logs/2026-02-28/2026-03-01'
    """
    return _DATE.sub(lambda found: (date + dt.timedelta(days=int(found[1] or 0))).isoformat(), text)


def date_placeholder(days: int) -> str:
    """Write the placeholder of the day ``days`` after the evaluation date.

    >>> date_placeholder(7), date_placeholder(0), date_placeholder(-1)
    ('{date+7}', '{date}', '{date-1}')
    """
    return f"{{date{days:+d}}}" if days else DATE_PLACEHOLDER


def check_time_zone(name: str) -> str:
    """Refuse a name that is no time zone."""
    if fault := zone_fault(name):
        raise fault_error(fault)
    return name


TimeZone = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(check_time_zone)]

_MICROSECONDS: Final[Mapping[str, int]] = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_MAX_DURATION_DAYS: Final = 36_500


def microseconds(text: str) -> int:
    """Return a length of time such as ``7d`` in microseconds; raise ValueError for other text.

    >>> microseconds("36h")
    129600000000
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _MICROSECONDS or not (number.isascii() and number.isdigit()):
        raise ValueError(text)
    return int(number) * _MICROSECONDS[unit]


def format_duration(length: object) -> object:
    """Write a timedelta as a config does; return anything else as it is.

    >>> format_duration(timedelta(days=7)), format_duration(timedelta(hours=36)), format_duration("90s")
    ('7d', '36h', '90s')
    """
    if not isinstance(length, timedelta):
        return length
    micros = length // timedelta(microseconds=1)
    unit = next((unit for unit in "dhms" if not micros % _MICROSECONDS[unit]), None)
    return f"{length.total_seconds()}s" if unit is None else f"{micros // _MICROSECONDS[unit]}{unit}"


def check_duration(
    text: str,
    *,
    least: int,  # microseconds
) -> str:
    """Refuse text that is no length of time, or of a shorter one; return it."""
    try:
        length = microseconds(text)
    except ValueError:
        length = -1
    if not least <= length <= _MAX_DURATION_DAYS * _MICROSECONDS["d"]:
        number = "a whole number above 0" if least else "a whole number"
        expected = f"{number} and one of the units s, m, h, d, such as 7d; {_MAX_DURATION_DAYS}d at most"
        raise fault_error(Fault("", repr(text), expected))
    return text


Grace = Annotated[str, StringConstraints(min_length=1, max_length=20), AfterValidator(partial(check_duration, least=0))]

MAX_WINDOW_DAYS: Final = 3660  # the longest window of whole days: ten years
DAYS_PATTERN: Final = "[1-9][0-9]{0,3}d"  # how a number of days is written; some of these are above the most

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
# Days of the units that people may write; ``m`` is left out, which is minutes for some and months for others.
_DAYS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("", "d", "day", "days"), 1),
    **dict.fromkeys(("h", "hour", "hours"), 1 / 24),
    **dict.fromkeys(("w", "week", "weeks"), 7),
    **dict.fromkeys(("month", "months"), 30),
    **dict.fromkeys(("y", "year", "years"), 365),
}


def parse_days(value: object) -> int:
    """Return the number of days of a window such as ``7d``, 1 to 3660; raise ValueError for anything else.

    >>> parse_days("7d")
    7
    """
    if not isinstance(value, str) or not re.fullmatch(DAYS_PATTERN, value) or int(value[:-1]) > MAX_WINDOW_DAYS:
        raise ValueError(value)
    return int(value[:-1])


def nearest_window(value: object) -> str:
    """Return how to write the window of whole days that a value may mean.

    >>> nearest_window(7), nearest_window("2 weeks"), nearest_window("36h"), nearest_window("0d")
    ('write 7d', 'write 14d', 'write 2d', 'write 1d')
    >>> nearest_window("5000d"), nearest_window("a week")
    ('write 3660d', 'write the number of days, such as 7d')
    """
    found = _LENGTH.search(str(value).lower())
    if found is None or found[2] not in _DAYS:
        return "write the number of days, such as 7d"
    days = min(float(found[1]) * _DAYS[found[2]], MAX_WINDOW_DAYS)
    return f"write {max(1, math.ceil(days))}d"
