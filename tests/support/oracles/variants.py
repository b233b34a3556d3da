"""What is tried of each measure: its options, at each cutoff."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure, registry
from rankeval_spark.measures.options import GROUP, MODEL, GainMap
from tests.support.rankings import GRADES, OTHER_MODEL

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.measures.options import Option

NUMBERS: Mapping[str, Sequence[float]] = {"levels": (11, 2, 7), "recall": (0, 0.1, 0.7, 1), "x": (0.1, 0.2, 1, 2)}
"""Values tried of numeric options, where more than the default and another are."""

OTHER_NUMBERS = {"alpha": 0.25, "p": 0.5, "max_rel": 3.0, "floor": 0.1}
"""A second value of each numeric option for which 2 would not do."""

OTHER_MAP = GainMap(((0.5, 0.0), (1.0, 1.0), (2.0, 1.5), (3.0, 4.0)))
"""A gain for each grade that the strategies draw."""

TEXT = "Drama"
"""A text for options that cannot be left out."""

GROUPS = frozenset({"tail"})
"""Item groups tried; lists drawn by the strategies have items of it."""

DISCOUNTS = ("ln", "exp-ln", "log10", "exp-log10", "exp-jk2", "jk10", "exp-jk10", "exp-inverse", "sqrt", "exp-sqrt")

ANYWHERE: Mapping[str, int] = {
    **{"tail": 1, "True": 2, "micro": 3, "none": 2, "1.5": 2, "mean": 2, "median": 2, "value": 2},
    **dict.fromkeys((*DISCOUNTS, "exp-none"), 1),
    **dict.fromkeys(("geometric", "exp-geometric"), 3),
}
"""Values of options that are tried only where so many options, they among them, are not at their defaults."""


def variants(entry: Definition, ks: Sequence[int]) -> Iterator[Measure]:
    """Every valid combination of a measure's options (a few values of each number) at each cutoff.

    :data:`ANYWHERE` says what is tried with few others.
    """
    values = [_values(option) for option in entry.options]
    names = [option.name for option in entry.options]
    for chosen, k in itertools.product(filter(partial(_is_tried, entry), itertools.product(*values)), ks):
        try:
            yield Measure.of(entry.name, k=k, **dict(zip(names, chosen, strict=True)))
        except ConfigError:
            continue  # a combination without meaning; test_names.py says which those are


def _is_tried(entry: Definition, chosen: Sequence[Any]) -> bool:
    """Leave out most combinations of what goes with everything, and would multiply their number."""
    others = [value for option, value in zip(entry.options, chosen, strict=True) if value != option.default]
    return len(others) <= min((ANYWHERE.get(str(value), len(others)) for value in others), default=0)


def _values(option: Option) -> Sequence[Any]:
    """All choices, or the numbers to try: the default and another value where no others are named."""
    if option.name == GROUP:
        return (None, *sorted(GROUPS))
    if option.name == MODEL:
        return (OTHER_MODEL,)
    if option.is_required:
        return (TEXT,)
    if option.is_switch or isinstance(option.default, bool):
        return (option.default, True)
    if option.choices:
        return (*option.choices, *([OTHER_MAP] if option.takes_map else []), *([1.5] if option.takes_number else []))
    return NUMBERS.get(option.name, (option.default, OTHER_NUMBERS.get(option.name, 2.0)))


def takes_every_list(measure: Measure) -> bool:
    """Whether no gain that the strategies draw is an error, nor an item that they leave out."""
    if measure.options.get("missing") == "error":
        return False
    max_rel = measure.options.get("max_rel", math.inf)
    return measure.options.get("rel") is not None or (isinstance(max_rel, float) and max_rel >= max(GRADES))


@cache
def all_variants(ks: tuple[int, ...]) -> tuple[Measure, ...]:
    """Every valid combination of every measure that has a value for each list."""
    return tuple(measure for entry in registry.entries("list") for measure in variants(entry, ks))
