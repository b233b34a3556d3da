"""A registered measure: its definition, its kernel, and what follows from the two."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_type_hints

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.measures.arrays import Ratio
from rankeval_spark.measures.options import Option, of_parameters, option_text, options_in_order, with_options
from rankeval_spark.measures.required_facts import LIST_NAMES, LOG, REQUIRES, VALUES
from rankeval_spark.measures.shared_options import (
    GROUP_OPTION,
    JUDGED_ONLY_OPTION,
    WEIGHTED,
    WEIGHTED_OPTION,
    agg_option,
)

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix
    from rankeval_spark.measures.definition import Better, Definition, Kernel, Options
    from rankeval_spark.measures.kernel_inputs.exposure import Exposure
    from rankeval_spark.measures.kernel_inputs.lists import CutLists
    from rankeval_spark.measures.kernel_inputs.rates import Rates

Kind: TypeAlias = Literal["list", "exposure", "parity"]
"""What a kernel takes: lists, each of which has a value; or, of all lists of a slice together, the exposure of items or
the rates at which groups of items are recommended, or a category of items is."""

_KINDS: Final[dict[str, Kind]] = {"CutLists": "list", "Exposure": "exposure", "Rates": "parity"}
"""By the type of the first parameter."""

_OF_JUDGEMENTS: Final = {HIT_SCORES, LIST_NAMES, VALUES}
"""Needs that are no facts of items."""


@dataclass(frozen=True)
class Entry:
    """A registered measure; made by :meth:`of`."""

    # What was registered
    definition: Definition
    kernel: Kernel
    kind: Kind  # what the kernel takes
    # Whether a value is a ratio, whose parts can be summed over users; the measure then has the option ``agg``
    is_ratio: bool
    # The kernel's own options and those that follow, in the order in which they are printed
    options: tuple[Option, ...]

    @classmethod
    def of(cls, definition: Definition, kernel: Kernel) -> Entry:
        """Derive kind and options from the annotations of a kernel.

        ValueError where a user without a value would have 0, and 0 may be the best value.
        """
        hints = get_type_hints(kernel, include_extras=True)
        kind = _KINDS[next(iter(hints.values())).__name__]
        if kind == "list" and definition.better != "higher" and definition.aggregation.without_relevant is None:
            message = (
                f"{definition.name}: found better={definition.better!r} and no value of a user without one; expected "
                "aggregation=Aggregation(without_relevant=...), or NEVER_FILLED for none"
            )
            raise ValueError(message)
        own = of_parameters(kernel, hints)
        entry = cls(definition, kernel, kind, hints["return"] is Ratio, own)
        return cls(definition, kernel, kind, entry.is_ratio, options_in_order((*own, *entry._general_options())))

    def _general_options(self) -> list[Option]:
        """Options that follow from what the measure is."""
        restrictions, needs = self.definition.restrictions, {*self.needs(self.defaults)}
        is_of_judgements = self.kind == "list" and needs <= _OF_JUDGEMENTS
        takes_group = is_of_judgements if restrictions.group is None else restrictions.group
        reads_ranks = takes_group and HIT_SCORES not in needs
        takes_judged_only = reads_ranks if restrictions.judged_only is None else restrictions.judged_only
        aggregation = self.definition.aggregation
        agg = agg_option(aggregation.default, aggregation.not_offered)
        offered = (
            *((agg, self.is_ratio), (GROUP_OPTION, takes_group), (JUDGED_ONLY_OPTION, takes_judged_only)),
            (WEIGHTED_OPTION, restrictions.weighted),
        )
        return [option for option, is_offered in offered if is_offered]

    @property
    def name(self) -> str:
        """Canonical name."""
        return self.definition.name

    @property
    def family(self) -> str:
        """Folder of the module that defines the measure, such as ``accuracy``."""
        return self.kernel.__module__.split(".")[-2]

    @property
    def doc(self) -> str:
        """Docstring of the kernel."""
        return inspect.getdoc(self.kernel) or ""

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.doc.partition("\n")[0]

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest published value with any options: of GMAP not the logarithms that its users have."""
        low, high = self.definition.bounds
        return (math.exp(low), math.exp(high)) if self.definition.aggregation.link == "log" else (low, high)

    @property
    def range(self) -> str:
        """Range of the published values, such as ``[0, 1]`` or ``[0, inf)``."""
        low, high = self.bounds
        return f"{'(' if math.isinf(low) else '['}{low:g}, {high:g}{')' if math.isinf(high) else ']'}"

    @property
    def defaults(self) -> Options:
        """Value of every option where it is left out."""
        return {option.name: option.default for option in self.options}

    @property
    def interval(self) -> Literal["t", "wilson", "jackknife"]:
        """Interval of the published value: of the mean, or of whole user groups for a measure of all lists together."""
        return self.definition.aggregation.interval if self.kind == "list" else "jackknife"

    def values(self, inputs: CutLists | Exposure | Rates, options: Options) -> FloatMatrix:
        """Compute the values; of a measure that is a ratio, the ratios."""
        found = self.kernel(inputs, **options)
        return found.values if isinstance(found, Ratio) else found

    def needs(self, options: Options) -> tuple[str, ...]:
        """Return the facts of :mod:`required_facts` that the kernel reads with a full set of options."""
        return with_options(self.definition.needs, options)

    def needs_catalogue(self, options: Options) -> bool:
        """Return whether all items must be known, recommended or not."""
        return with_options(self.definition.needs_catalogue, options)

    def better(self, options: Options) -> Better:
        """Return which value is the better one, if either is, with a full set of options."""
        return with_options(self.definition.better, options)

    @property
    def better_in_words(self) -> str:
        """Which value is the better one, if either is, and whether options change that.

        Examples
        --------
        >>> from rankeval_spark.measures import registry
        >>> [registry.find(name).entry.better_in_words for name in ("nDCG", "ARP", "Freshness")]
        ['higher', 'neither', 'lower (other options may differ)']
        """
        found = self.better(self.defaults)
        return f"{found} (other options may differ)" if callable(self.definition.better) else found

    def takes_expected_ties(self, options: Options) -> bool:
        """Return True if the measure, with a full set of options, has a mean over all orders of tied items."""
        return with_options(self.definition.ties.has_mean, options)

    def is_bounded_by_gains(self, options: Options) -> bool:
        """Return True if the order of tied items by gain bounds the measure, or does not change it."""
        is_weighted = options.get(WEIGHTED) is True  # of two items the one with the smaller gain may be worth more
        return not is_weighted and with_options(self.definition.ties.bounded_by_gains, options)

    def without_relevant(self, options: Options) -> float:
        """Return the value of a user without a defined value where a population counts that user."""
        value = self.definition.aggregation.without_relevant
        if value is None:
            needs = {*self.needs(options)}
            return 0.0 if needs <= _OF_JUDGEMENTS - {HIT_SCORES} else math.nan
        return with_options(value, options)

    def at_best(self, options: Options) -> float:
        """Return the value of the same user where they count as served perfectly, if the measure can have it."""
        low, high = self.definition.bounds
        return max(0.0, low) if self.better(options) == "lower" else min(1.0, high)

    @property
    def requires(self) -> str:
        """What the measure needs in addition to recommendations and judgements; empty where nothing.

        Examples
        --------
        >>> from rankeval_spark.measures import registry
        >>> registry.get("ILD").requires
        "items.vector; items.categories with sim='jaccard'; train with sim='cooccurrence'"
        >>> registry.get("P").requires
        ''
        """
        usual = self._requirements(self.defaults)
        has_catalogue = self.kind == "list" and self.needs_catalogue(self.defaults)
        parts = [", ".join(usual), *(["items or train"] if has_catalogue else [])]
        for option in self.options:
            for choice in option.choices:
                more = [one for one in self._requirements({**self.defaults, option.name: choice}) if one not in usual]
                parts += [f"{', '.join(more)} with {option.name}={option_text(choice)}"] if more else []
        return "; ".join(part for part in parts if part)

    def _requirements(self, options: Options) -> list[str]:
        needs = self.needs(options)
        return list(dict.fromkeys(one for need in needs for one in REQUIRES.get(need, ()) if one != LOG))

    def option(self, name: str) -> Option | None:
        """Return the option called ``name``, in any case."""
        return next((option for option in self.options if option.name.casefold() == name.casefold()), None)
