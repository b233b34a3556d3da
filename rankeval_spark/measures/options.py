"""Options of a measure: read off the keyword-only parameters of its kernel."""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

OptionValue: TypeAlias = str | float | bool
"""Value of an option; equal to, and printed as, its default where it is left out."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class Above:
    """Lower bound of a numeric option, itself excluded; part of its annotation."""

    bound: float


@dataclass(frozen=True)
class Between:
    """Least and greatest value of a numeric option, both allowed; part of its annotation."""

    low: float
    high: float


Level: TypeAlias = Annotated[float, Above(0)]
"""Gain from which on a judgement is relevant. Above 0, because an item without a judgement has gain 0."""


@dataclass(frozen=True)
class Option:
    """One option: a choice, a number or a truth value.

    Parameters
    ----------
    name
        Name of the keyword-only parameter.
    default
        Its value where the option is left out.
    choices
        The strings it may be; empty for a number or a truth value.
    above
        Bound that a number must exceed.
    between
        Least and greatest number; both are allowed.
    """

    name: str
    default: OptionValue
    choices: tuple[str, ...] = ()
    above: float = -math.inf
    between: Between = Between(-math.inf, math.inf)

    @classmethod
    def of_parameter(cls, parameter: inspect.Parameter, annotation: Any) -> Option:  # noqa: ANN401 - any type form
        """Derive the option from a parameter: ``Literal`` gives choices, ``Annotated`` its bounds."""
        if get_origin(annotation) is Literal:
            return cls(parameter.name, parameter.default, choices=get_args(annotation))
        if annotation is bool:
            return cls(parameter.name, parameter.default)
        bounds = {type(extra): extra for extra in get_args(annotation)[1:]}
        above, between = bounds.get(Above, Above(cls.above)), bounds.get(Between, cls.between)
        return cls(parameter.name, float(parameter.default), above=above.bound, between=between)

    @property
    def expected(self) -> str:
        """What values the option takes, in words.

        Examples
        --------
        >>> Option("denom", "k", choices=("k", "len")).expected, Option("rel", 1.0, above=0).expected
        ("'k' or 'len'", 'a number above 0')
        >>> Option("recall", 0.1, between=Between(0, 1)).expected
        'a number from 0 to 1'
        """
        if self.choices:
            return " or ".join(repr(choice) for choice in self.choices)
        if isinstance(self.default, bool):
            return "True or False"
        if self.between != Option.between:
            return f"a number from {self.between.low:g} to {self.between.high:g}"
        return "a number" if self.above == -math.inf else f"a number above {self.above:g}"

    def read(self, text: str) -> OptionValue | None:
        """Read a value; None where the text is not one.

        Examples
        --------
        >>> Option("denom", "k", choices=("k", "len")).read('"LEN"'), Option("rel", 1.0, above=0).read("0")
        ('len', None)
        """
        if self.choices or isinstance(self.default, bool):
            known: tuple[OptionValue, ...] = self.choices or (True, False)
            return next((value for value in known if str(value).casefold() == _unquoted(text).casefold()), None)
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
        is_allowed = self.above < number < math.inf and self.between.low <= number <= self.between.high
        return number if is_allowed else None


def of_kernel(kernel: Callable[..., Any]) -> tuple[Option, ...]:
    """Return the options of a kernel, in the order in which they are printed: ``rel`` first, then alphabetical."""
    hints = get_type_hints(kernel, include_extras=True)
    parameters = inspect.signature(kernel).parameters.values()
    keyword_only = [one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    options = (Option.of_parameter(one, hints[one.name]) for one in keyword_only)
    return tuple(sorted(options, key=lambda option: (option.name != "rel", option.name)))


def show(value: OptionValue) -> str:
    """Print a value as it stands in a canonical name: single quotes, whole numbers without a decimal point.

    Examples
    --------
    >>> show("k"), show(2.0), show(0.5), show(True)
    ("'k'", '2', '0.5', 'True')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_INTEGERS:
        return str(int(value))
    return repr(value)


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text
