"""Numbers and names as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rankeval_spark import columns as C
from rankeval_spark.errors import first_fault

UNDEFINED: Final = "undefined"
LEAST_DECIMALS: Final = 2
MOST_DECIMALS: Final = 5
USUAL_DECIMALS: Final = 4
LARGE: Final = 1000
FAILED_IN: Final = "failed in "  # start of the reason of a failed run, before its stage and exit code


def decimals(half_widths: Iterable[float | None], values: Iterable[float | None] = ()) -> int:
    """Return the decimals for a column of numbers: two digits of the narrowest interval, from 2 to 5.

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


def number(value: float | None, places: int = USUAL_DECIMALS) -> str:
    """Format a number; None and NaN are "undefined".

    >>> number(0.28614, 3), number(None), number(73.366, 2), number(1234567.0)
    ('0.286', 'undefined', '73.37', '1,234,567')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    if abs(value) >= LARGE:
        return f"{value:,.0f}"
    return f"{value:.{places}f}"


def signed(value: float | None, places: int = USUAL_DECIMALS) -> str:
    """Format a difference with its sign and a true minus.

    >>> signed(0.0123, 3), signed(-0.5, 1), signed(0.0, 2), signed(None)
    ('+0.012', '−0.5', '0.00', 'undefined')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    text = number(abs(value), places)
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{text}"


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


def interval(low: float | None, high: float | None, places: int = USUAL_DECIMALS, *, has_sign: bool = False) -> str:
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


def slice_name(name: str, value: str) -> str:
    """Return the name of a slice, such as ``country = DE``.

    >>> slice_name("all", ""), slice_name("country*device", "DE*phone"), slice_name("age", "(unknown)")
    ('all users', 'country × device = DE × phone', 'age = (unknown)')
    """
    return "all users" if name == C.ALL_USERS else f"{crossed(name)} = {crossed(value)}"


def crossed(text: str) -> str:
    """Format a crossing of segments, or of their values; a crossing with quotes stays as it is.

    >>> crossed("country*device"), crossed('"a*b"*phone')
    ('country × device', '"a*b"*phone')
    """
    return text if '"' in text else text.replace(C.CROSSING, " × ")


def failure_of(run: Mapping[str, Any]) -> str:
    """Return why a run failed in one line, from its event FAILED: stage and exit code, and the first fault.

    >>> failure_of({"reason": "failed in read, code 4", "error": {"stage": "read", "message": "no row in logs"}})
    'read, code 4: no row in logs'
    """
    error = run["error"] or {}
    where = (run["reason"] or error.get("stage") or "").removeprefix(FAILED_IN)
    said = first_fault(error["message"]) if error.get("message") else ""
    return ": ".join(filter(None, (where, said))) or "no reason was recorded"
