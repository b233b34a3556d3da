"""Arithmetic of the naive references: floats in tests; fractions, or 60 digits, where reference values are made."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.oracles.plain import Number

DIGITS = decimal.Context(prec=60)
_MODE = {"is_exact": False}


@contextmanager
def exact() -> Iterator[None]:
    """Let the functions below return fractions: an irrational number is its first 60 digits."""
    _MODE["is_exact"] = True
    try:
        yield
    finally:
        _MODE["is_exact"] = False


def total(values: Iterable[Number]) -> Number:
    """Return the sum, without rounding between its parts; what has more than 200 digits is irrational and cut."""
    if not _MODE["is_exact"]:
        return math.fsum(values)
    found = Fraction(0)
    for value in values:
        found += Fraction(value)
        if found.denominator.bit_length() > 700:
            found = Fraction(_decimal(found))
    return found


def log(value: Number, base: float = math.e) -> Number:
    """Return the logarithm, exact where it is a whole number."""
    if not _MODE["is_exact"]:
        return {2: math.log2, 10: math.log10, math.e: math.log}[base](value)
    return _log(value, base)


@cache
def _log(value: Number, base: float) -> Fraction:
    found = _decimal(value).ln(DIGITS)
    if base != math.e:
        found = DIGITS.divide(found, Decimal(base).ln(DIGITS))
    nearest = round(found)
    return Fraction(nearest) if base != math.e and Fraction(base) ** nearest == value else Fraction(found)


def exp(value: Number) -> Number:
    """Return the exponential."""
    return Fraction(DIGITS.exp(_decimal(value))) if _MODE["is_exact"] else math.exp(value)


def log2(value: Number) -> Number:
    """Return the logarithm to base 2."""
    return log(value, 2)


def sqrt(value: Number) -> Number:
    """Return the square root, exact where it is a fraction."""
    if not _MODE["is_exact"]:
        return math.sqrt(value)
    of = Fraction(value)
    roots = math.isqrt(of.numerator), math.isqrt(of.denominator)
    is_square = roots[0] ** 2 == of.numerator and roots[1] ** 2 == of.denominator
    return Fraction(*roots) if is_square else Fraction(DIGITS.sqrt(_decimal(of)))


def power(base: int, exponent: Number) -> Number:
    """Return a power of a whole number, exact where the exponent is whole."""
    if not _MODE["is_exact"] or Fraction(exponent).denominator == 1:
        return base**exponent
    return Fraction(DIGITS.power(Decimal(base), _decimal(exponent)))


def norm(*values: Number) -> Number:
    """Return the root of the sum of squares."""
    return sqrt(total(value**2 for value in values)) if _MODE["is_exact"] else math.hypot(*values)


def _decimal(value: Number) -> Decimal:
    of = Fraction(value)
    return DIGITS.divide(Decimal(of.numerator), Decimal(of.denominator))
