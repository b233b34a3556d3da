"""All measures: their definitions and kernels, what follows from the two, and the names with several meanings.

A measure is added in one place: a kernel decorated with its ``Definition``, in a module of a family, and its examples
in the YAML file next to it. Options, names, documentation, command line and the tests' coverage check follow.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_type_hints

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.measures import definition
from rankeval_spark.measures.arrays import Ratio
from rankeval_spark.measures.options import (
    GROUP_OPTION,
    JUDGED_ONLY_OPTION,
    WEIGHTED,
    WEIGHTED_OPTION,
    Option,
    agg_option,
    option_text,
    options_of,
    with_options,
)
from rankeval_spark.measures.required_facts import LIST_NAMES, LOG, REQUIRES, VALUES

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix
    from rankeval_spark.measures.definition import Better, Definition, Kernel, Options
    from rankeval_spark.measures.exposure import Exposure, Rates
    from rankeval_spark.measures.lists import CutLists

Kind: TypeAlias = Literal["list", "exposure", "parity"]
"""What a kernel takes: lists, each of which has a value; or, of all lists of a slice together, the exposure of items or
the rates at which groups of items are recommended, or a category of items is."""

_KINDS: Final[dict[str, Kind]] = {"CutLists": "list", "Exposure": "exposure", "Rates": "parity"}
"""By the type of the first parameter."""

_OF_JUDGEMENTS: Final = {HIT_SCORES, LIST_NAMES, VALUES}  # needs that are no facts of items


@dataclass(frozen=True)
class Entry:
    """A registered measure; made by :meth:`of`."""

    definition: Definition
    kernel: Kernel
    kind: Kind  # what the kernel takes
    # Whether a value is a ratio, whose parts can be summed over users; the measure then has the option ``agg``
    is_ratio: bool
    # The kernel's own options and those that follow from what it is, as they are printed: ``rel`` first, then by name
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
        own, is_ratio = options_of(kernel, hints), hints["return"] is Ratio
        needs = {*with_options(definition.needs, {option.name: option.default for option in own})}
        is_of_judgements = kind == "list" and needs <= _OF_JUDGEMENTS
        takes_group = is_of_judgements if definition.group is None else definition.group
        reads_ranks = takes_group and HIT_SCORES not in needs
        takes_judged_only = reads_ranks if definition.judged_only is None else definition.judged_only
        general = (
            agg_option(definition.aggregation.default, definition.aggregation.not_offered) if is_ratio else None,
            GROUP_OPTION if takes_group else None,
            JUDGED_ONLY_OPTION if takes_judged_only else None,
            WEIGHTED_OPTION if definition.weighted else None,
        )
        in_order = sorted((*own, *filter(None, general)), key=lambda option: (option.name != "rel", option.name))
        return cls(definition, kernel, kind, is_ratio, tuple(in_order))

    @property
    def name(self) -> str:
        """Canonical name."""
        return self.definition.name

    @property
    def family(self) -> str:
        """Part of :mod:`rankeval_spark.measures` that defines the measure, such as ``accuracy``."""
        return self.kernel.__module__.removeprefix(f"{__package__}.").partition(".")[0]

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
        """Interval of the published value; for a measure of all lists together by groups of users."""
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


_TREC_NAME = re.compile(r"(?P<name>.+?)[._](?P<cutoff>\d+(\.\d+)?)")


@dataclass(frozen=True)
class Match:
    """Meaning of a name: a measure, the options that the name fixes, and the number it ends in (trec_eval names)."""

    entry: Entry
    presets: Options = field(default_factory=dict)
    cutoff: str | None = None


KindOfMeanings: TypeAlias = Literal["measures", "options", "doubtful"]


@dataclass(frozen=True)
class SeveralMeanings:
    """A name that tools and papers use for different numbers."""

    names: tuple[str, ...]
    taken: str  # what is computed; empty for names that are not read, because none of the meanings is the usual one
    others: str  # what else is meant, and how it is written here
    options: tuple[str, ...] = ()  # options that say which meaning it is, where one of them is written
    # Whether the meanings are measures or options of one; "doubtful" where many who write the name mean another number,
    # so that `evaluate` warns
    kind: KindOfMeanings = "measures"

    def note(self, name: str) -> str:
        """Write what a name means here, and what others mean by it."""
        return f"{name} is {self.taken}; {self.others}"


SEVERAL_MEANINGS: Final = (
    SeveralMeanings(
        ("MAR", "MeanAverageRecall"),
        "the recall averaged over the ranks of the hits, MAR(kind='hits_R'), as in Evidently",
        "averaged over the cutoffs 1 to k it is MAR(kind='cutoffs'); the MAR@k of recmetrics (mark) is AP@k",
        ("kind",),
        "doubtful",
    ),
    SeveralMeanings(
        ("MRR", "ReciprocalRank"), "RR, 1 / rank of the first hit", "the sum of 1 / rank over all hits is ARHR"
    ),
    SeveralMeanings(
        ("ARHR",),
        "the sum of 1 / rank over all hits",
        "divided by the relevant items it is ARHR(denom='R'); of the first hit alone it is RR",
        ("denom",),
        "options",
    ),
    SeveralMeanings(
        ("HR", "Hit", "HitRate", "HitRatio"),
        "Success, whether a list has a hit, so that the mean is a share of users",
        "the share of all held-out items that are hit is R(agg='micro'), the number of hits NumHits",
    ),
    SeveralMeanings(
        ("AP", "MAP", "map_cut", "AveragePrecision"),
        "the sum of P@i at the hits divided by the number of relevant items R, as in trec_eval",
        "divided by min(R, k) it is AP(denom='min'), by k AP(denom='k'), by the length AP(denom='len'), by the hits "
        "AP(denom='hits'); the mean of P@1 to P@k is MeanP",
        ("denom",),
        "options",
    ),
    SeveralMeanings(
        ("P", "Precision", "Prec"),
        "the hits divided by k",
        "divided by the length of the list it is P(denom='len'), by min(R, k) P(denom='min'), of the whole list SetP",
        ("denom",),
        "options",
    ),
    SeveralMeanings(
        ("R", "Recall"),
        "the hits divided by the number of relevant items R",
        "divided by min(R, k) it is R(denom='min'); whether there is a hit, which some call recall, is Success",
        ("denom",),
        "options",
    ),
    SeveralMeanings(
        ("F1", "F1Score"),
        "the mean of the users' F1",
        "of sums over users it is F1(agg='micro'), of the whole list SetF; F1 of mean P and mean R is no measure here",
        ("agg",),
        "options",
    ),
    SeveralMeanings(
        ("DCG", "nDCG", "ndcg_cut"),
        "with the gains as they are and log2(rank + 1), as in trec_eval",
        "with 2**gain - 1 it is dcg='exp-log2', as Järvelin and Kekäläinen dcg='jk2', with gains of 0 and 1 "
        "gains='binary', and with k relevant items as the ideal ideal='k_ones'",
        ("dcg", "gains", "ideal"),
        "options",
    ),
    SeveralMeanings(
        ("AUC",),
        "of the held-out items that the list holds, user by user",
        "weighted by their number it is GAUC; of relevant items against the first k others of the list, PAUC",
    ),
    SeveralMeanings(
        ("Novelty",),
        "MIUF, by the users who have an item",
        "by interactions it is SelfInfo, with a discount EPC and EFD; the share of items that the user does not have "
        "is NotInTrain, the distance to those that the user has Unexpectedness",
    ),
    SeveralMeanings(
        ("Serendipity",),
        "relevant and unlike the user's items, kind='content'",
        "relevant and above its place among the popular items it is kind='pop', and not among them kind='ge'",
        ("kind",),
        "options",
    ),
    SeveralMeanings(
        ("Personalization",),
        "1 - the share of common items, over all pairs of lists",
        "1 - the cosine, as in recmetrics, is sim='cosine'; divided by the shorter list it is denom='min'",
        ("sim", "denom"),
        "options",
    ),
    SeveralMeanings(
        ("ItemCoverage",), "the number of items that are recommended", "their share of the catalogue is CatalogCoverage"
    ),
    SeveralMeanings(
        ("Gini",), "0 where all items are recommended as often", "Elliot's GiniIndex is 1 - Gini, 1 where they are"
    ),
    SeveralMeanings(
        ("Coverage",),
        "",
        "the share of the catalogue is CatalogCoverage, the number of items ItemCoverage, that of users UserCoverage",
    ),
    SeveralMeanings(
        ("Diversity",),
        "",
        "within a list it is ILD, between the lists of users Personalization, over all lists Entropy and Gini",
    ),
    SeveralMeanings(
        ("Popularity",),
        "",
        "the mean popularity is ARP, the share of the long tail APLT, against the user's own PopLift",
    ),
    SeveralMeanings(
        ("Accuracy",), "", "of classes it is ClassAccuracy, whether there is a hit Success, the share of hits P"
    ),
    SeveralMeanings(("MARK",), "", "the mark of recmetrics is AP@k, averaged recall MAR(kind='cutoffs')@k"),
)
"""Names with several meanings in the field."""


def meanings_of(name: str) -> SeveralMeanings | None:
    """Return the meanings of a name, in any case; None for one with a single meaning.

    >>> meanings_of("mrr").note("MRR")
    'MRR is RR, 1 / rank of the first hit; the sum of 1 / rank over all hits is ARHR'
    """
    return next((one for one in SEVERAL_MEANINGS if name.casefold() in map(str.casefold, one.names)), None)


def discover(family: str) -> None:
    """Import a module, or every module of a package, so that its measures register themselves."""
    path = getattr(import_module(family), "__path__", ())
    for module in sorted(info.name for info in iter_modules(path)):
        import_module(f"{family}.{module}")


def entries(kind: Kind | None = None) -> tuple[Entry, ...]:
    """Return all measures, or those of a kind, by family and then in the order of definition."""
    return tuple(entry for entry in map(get, definition.DEFINED) if kind in (None, entry.kind))


def names() -> tuple[str, ...]:
    """Canonical names of all measures."""
    return tuple(definition.DEFINED)


def get(name: str) -> Entry:
    """Return the measure with a canonical name; KeyError for an unknown one."""
    return _entry_of(*definition.DEFINED[name])


_entry_of = cache(Entry.of)


def all_names() -> tuple[str, ...]:
    """Canonical names and aliases, as they are written in the definitions."""
    return tuple(spelling for entry in entries() for spelling in (entry.name, *entry.definition.aliases))


def find(name: str) -> Match | None:
    """Look a name up, in any case: a canonical name, an alias, or a trec_eval name such as ``ndcg_cut_10``.

    >>> match = registry.find("relative_P_5")
    >>> match.entry.name, dict(match.presets), match.cutoff
    ('P', {'denom': 'min'}, '5')
    """
    known = _match(name)
    trec = None if known else _TREC_NAME.fullmatch(name)
    base = _match(trec["name"]) if trec else None
    return replace(base, cutoff=trec["cutoff"]) if trec and base else known


def _match(name: str) -> Match | None:
    canonical, presets = definition.SPELLINGS.get(name.casefold(), ("", {}))
    return Match(get(canonical), presets) if canonical else None
