"""Numbers and names as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rankeval_spark import columns as C
from rankeval_spark.errors import first_fault

UNDEFINED: Final = "undefined"
LEAST_DECIMALS: Final = 2
MOST_DECIMALS: Final = 9
USUAL_DECIMALS: Final = 4
LARGE: Final = 1000
FAILED_IN: Final = "failed in "  # start of the reason of a failed run, before its stage and exit code


def decimals(half_widths: Iterable[float | None], values: Iterable[float | None] = ()) -> int:
    """Return the decimals for a column of numbers: two digits of the narrowest interval, from 2 to 9.

    Without an interval, four digits of the greatest value.

    >>> decimals([0.026, 0.031]), decimals([None], [0.68]), decimals([1.6]), decimals([])
    (3, 4, 2, 4)
    """
    known = [width for width in half_widths if width is not None and width > 0]
    if known:
        wanted = 1 - math.floor(math.log10(min(known)))
    else:
        sizes = [abs(value) for value in values if value]
        wanted = USUAL_DECIMALS - 1 - math.floor(math.log10(max(sizes))) if sizes else USUAL_DECIMALS
    return min(max(wanted, LEAST_DECIMALS), MOST_DECIMALS)


def decimals_apart(places: int, end: float, bound: float) -> int:
    """Return the decimals with which the end of an interval lies on the same side of a bound as it does itself.

    >>> decimals_apart(3, 0.0199, 0.02), decimals_apart(3, 0.01996, 0.02), decimals_apart(3, 0.02, 0.02)
    (4, 5, 3)
    """
    while places < MOST_DECIMALS and (end > bound, end < bound) != (
        (shown := round(end, places)) > bound,
        shown < bound,
    ):
        places += 1
    return places


def number(value: float | None, places: int | None = None) -> str:
    """Format a number; None and NaN are "undefined".

    >>> number(0.28614, 3), number(None), number(73.366, 2), number(1234567.0), number(1234.5678, 3)
    ('0.286', 'undefined', '73.37', '1,234,567', '1,234.568')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    if abs(value) >= LARGE and (places is None or places <= LEAST_DECIMALS):
        return f"{value:,.0f}"
    return f"{value:,.{USUAL_DECIMALS if places is None else places}f}"


def signed(value: float | None, places: int | None = None) -> str:
    """Format a difference with its sign and a true minus; one that rounds to 0 has no sign.

    >>> signed(0.0123, 3), signed(-0.5, 1), signed(-0.001, 2), signed(None)
    ('+0.012', '−0.5', '0.00', 'undefined')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    text = number(abs(value), places)
    sign = "" if not text.strip("0.,") else "+" if value > 0 else "−"
    return f"{sign}{text}"


NO_SUPPORT: Final = "undecided: too little support"  # of a value that few users decide by large weights
UNCERTAIN: Final = "uncertain"  # mark of an interval that cannot be trusted: the column `is_uncertain`


def mean_interval(row: Mapping[str, Any], places: int) -> str:
    """Format the interval of a row of ``metrics``, marked if it is uncertain; "none" without one.

    >>> mean_interval({"ci_low": 0.26, "ci_high": 0.31, "is_uncertain": True}, 2)
    '0.26 to 0.31, uncertain'
    >>> mean_interval({"ci_low": 0.26, "ci_high": 0.31, "has_support": False}, 2)
    '0.26 to 0.31, undecided: too little support'
    """
    found = interval(row["ci_low"], row["ci_high"], places)
    if row.get("has_support") is False:
        return ", ".join(filter(None, (found, NO_SUPPORT)))
    return f"{found}, {UNCERTAIN}" if found and row.get("is_uncertain") else found or "none"


def interval(low: float | None, high: float | None, places: int | None = None, *, has_sign: bool = False) -> str:
    """Format the ends of an interval; empty for None.

    >>> interval(0.26, 0.31, 2), interval(None, None), interval(-0.01, 0.02, 2, has_sign=True)
    ('0.26 to 0.31', '', '−0.01 to +0.02')
    """
    if low is None or high is None:
        return ""
    write = signed if has_sign else number
    return f"{write(low, places)} to {write(high, places)}"


def p_value(p: float | None) -> str:
    """Format a p; "< .001" below a thousandth.

    >>> p_value(0.00001), p_value(0.0312), p_value(0.5), p_value(None)
    ('< .001', '.031', '.50', '')
    """
    if p is None or math.isnan(p):
        return ""
    if p < 1 / LARGE:
        return "< .001"
    return f"{p:.3f}"[1:] if p < 1 / 10 else f"{p:.2f}".removeprefix("0")


def p_in_words(p: float | None) -> str:
    """Format a p in a sentence.

    >>> p_in_words(0.00001), p_in_words(0.0312), p_in_words(None)
    ('p < .001', 'p = .031', 'no p')
    """
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}" if text else "no p"


def percent(share: float | None) -> str:
    """Format a share in percent.

    >>> percent(0.0123), percent(1.0), percent(0.5), percent(None), percent(0.0), percent(0.00001)
    ('1.2 %', '100 %', '50 %', '', '0 %', '< 0.01 %')
    """
    if share is None:
        return ""
    if 0 < share < 1 / 10000:
        return "< 0.01 %"
    return f"{100 * share:.3g} %" if share >= 1 / 10 else f"{100 * share:.2g} %"


def signed_percent(share: float | None) -> str:
    """Format a relative difference with three digits, at most two of them decimals; empty for None.

    >>> signed_percent(0.0123), signed_percent(-0.5), signed_percent(20.0), signed_percent(None)
    ('+1.23 %', '−50.0 %', '+2,000 %', '')
    """
    if share is None:
        return ""
    places = sum(abs(share) < least for least in (0.1, 1))
    return f"{100 * share:+,.{places}f} %".replace("-", "−")


def count(value: int | None, noun: str = "") -> str:
    """Format a count, with its noun in singular or plural.

    >>> count(1, "user"), count(1234, "user"), count(None)
    ('1 user', '1,234 users', '')
    """
    if value is None:
        return ""
    return f"{value:,} {noun}{'' if value == 1 else 's'}" if noun else f"{value:,}"


def listed(names: Iterable[str]) -> str:
    """Join names to a list in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *others, last = list(names) or [""]
    return f"{', '.join(others)} and {last}" if others else last


_BOUND: Final = re.compile(r"(<|>=) (-?[0-9][0-9.e+-]*)")
_BAND: Final = re.compile(r"\[(-?[0-9][0-9.e+-]*), (-?[0-9][0-9.e+-]*)\)")
_BOUNDS: Final = {"<": "<", ">=": "≥"}


def slice_name(name: str, value: str) -> str:
    """Return the name of a slice, such as ``country = DE``; bands of numbers as inequalities.

    >>> slice_name("all", ""), slice_name("country*device", "DE*phone"), slice_name("age", "(unknown)")
    ('all users', 'country × device = DE × phone', 'age = (unknown)')
    >>> slice_name("age", ">= 59"), slice_name("age", "[18, 25)"), slice_name("country*age", "DE*< 18")
    ('age ≥ 59', '18 ≤ age < 25', 'country = DE, age < 18')
    """
    if name == C.ALL_USERS:
        return "all users"
    names, values = _parts(name), _parts(value)
    has_band = any(_BOUND.fullmatch(one) or _BAND.fullmatch(one) for one in values)
    if has_band and len(names) == len(values):
        return ", ".join(map(_part_name, names, values))
    return f"{crossed(name)} = {crossed(value)}"


def _part_name(name: str, value: str) -> str:
    """Return the name of a value of one segment."""
    if bound := _BOUND.fullmatch(value):
        return f"{name} {_BOUNDS[bound[1]]} {bound[2]}"
    band = _BAND.fullmatch(value)
    return f"{band[1]} ≤ {name} < {band[2]}" if band else f"{name} = {value}"


def group_name(value: str) -> str:
    """Return the value of a slice where its segment is named elsewhere.

    >>> group_name(">= 59"), group_name("[18, 25)"), group_name("DE*< 18")
    ('≥ 59', '18 to < 25', 'DE × < 18')
    """
    found = []
    for part in _parts(value):
        band, bound = _BAND.fullmatch(part), _BOUND.fullmatch(part)
        found.append(f"{band[1]} to < {band[2]}" if band else f"{_BOUNDS[bound[1]]} {bound[2]}" if bound else part)
    return " × ".join(found)


def _parts(text: str) -> list[str]:
    """Split a crossing of segments, or of their values; a crossing with quotes stays as it is."""
    return [text] if '"' in text else text.split(C.CROSSING)


def crossed(text: str) -> str:
    """Format a crossing of segments, or of their values; a crossing with quotes stays as it is.

    >>> crossed("country*device"), crossed('"a*b"*phone')
    ('country × device', '"a*b"*phone')
    """
    return " × ".join(_parts(text))


def failure_of(run: Mapping[str, Any]) -> str:
    """Return why a run failed in one line, from its event FAILED: stage and exit code, and the first fault.

    >>> failure_of({"reason": "failed in read, code 4", "error": {"stage": "read", "message": "no row in logs"}})
    'read, code 4: no row in logs'
    """
    error = run["error"] or {}
    where = (run["reason"] or error.get("stage") or "").removeprefix(FAILED_IN)
    said = first_fault(error["message"]) if error.get("message") else ""
    return ": ".join(filter(None, (where, said))) or "no reason was recorded"
