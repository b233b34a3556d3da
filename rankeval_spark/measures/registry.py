"""Every measure there is: filled by the decorated kernels of the family modules, read by everything else.

A measure is added in one place, a module of ``measures/families``: a kernel decorated with its :class:`Definition`.
Modules are found by themselves; options, names, documentation, command line and the tests' coverage check follow.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar, get_args

from rankeval_spark.measures import options as measure_options
from rankeval_spark.measures.arrays import FloatMatrix
from rankeval_spark.measures.groups import BY_POPULARITY
from rankeval_spark.measures.needs import LOG, REQUIRES
from rankeval_spark.measures.options import NotOffered, Option, OptionValue

if TYPE_CHECKING:
    from rankeval_spark.measures.golden import Golden

Kernel: TypeAlias = Callable[..., FloatMatrix]
"""``kernel(cut, *, option=default, ...)``: lists cut at several cutoffs in, values (n_lists, n_cutoffs) out.

Of kind ``exposure`` and ``parity``: the exposures, or the rates, of several groups of lists in, values (n_groups,) out.
"""

Parts: TypeAlias = Callable[..., tuple[FloatMatrix, FloatMatrix]]
"""``parts(cut, *, option=default, ...)``: numerator and denominator of each value, for a measure that is a ratio."""

K = TypeVar("K", bound=Kernel)

Agg: TypeAlias = Literal["macro", "micro"]
"""How users are put together: the mean of their values, or the sum of their numerators by that of denominators."""

Link: TypeAlias = Literal["identity", "log", "square"]
"""Function of the value that is averaged; what is published is the inverse of the mean."""

Need: TypeAlias = Literal["required", "optional", "forbidden"]
"""Whether a measure takes a cutoff."""

Kind: TypeAlias = Literal["list", "exposure", "parity"]
"""What a kernel takes: lists, each of which has a value; or, of all lists of a slice together, the exposure of items or
the rates at which groups of items are recommended, or a category of items is."""

Options: TypeAlias = Mapping[str, OptionValue]

AGG: Final = "agg"
"""The option of every measure with parts; kernels do not see it."""

AGG_MEANING: Final = "How users are put together: the mean of their values, or the ratio of sums over them."

GROUP: Final = "group"
"""The option of every measure that reads judgements; kernels do not see it, but lists with fewer judgements."""

GROUP_MEANING: Final = (
    "Judgements of one item group only: other items keep their ranks and count as unjudged; undefined for a user\n"
    "without a judgement of the group. head, middle and tail hold 20, 60 and 20 % of the interactions in train."
)

JUDGED_ONLY: Final = "judged_only"
"""The option of every measure that unjudged items take places in; kernels do not see it, but shorter lists."""

JUDGED_ONLY_MEANING: Final = (
    "Items without a judgement, or with a negative gain, leave the list before it is cut, and the rest closes up: the\n"
    "policy judged_only for one measure. Left out, the policy of the run says what counts."
)

MODEL: Final = "model"
"""The option of a measure that looks at the lists of another model in addition to those it is computed of."""

_JUDGED_ONLY: Final = Option(JUDGED_ONLY, None, is_switch=True, not_offered=(NotOffered("False", "leave it out"),))

_NO_OPTIONS: Final[Options] = MappingProxyType({})


@dataclass(frozen=True)
class Cutoff:
    """Whether a measure takes a cutoff, and for which options that changes.

    Examples
    --------
    >>> rule = Cutoff("required").but("optional", denom="len")
    >>> rule.need({"denom": "k"}), rule.need({"denom": "len"}), str(rule)
    ('required', 'optional', "required (optional with denom='len')")
    """

    default: Need
    exceptions: tuple[tuple[Need, str, OptionValue], ...] = ()

    def but(self, need: Need, **option: OptionValue) -> Cutoff:
        """Return the rule with an exception for one value of an option."""
        return replace(self, exceptions=(*self.exceptions, *((need, name, value) for name, value in option.items())))

    def need(self, options: Options) -> Need:
        """Return the rule for a full set of options."""
        hits = (need for need, name, value in self.exceptions if options.get(name) == value)
        return next(hits, self.default)

    def __str__(self) -> str:
        """Return the rule in words."""
        exceptions = (f"{need} with {name}={measure_options.show(value)}" for need, name, value in self.exceptions)
        ending = ", ".join(exceptions)
        return f"{self.default} ({ending})" if ending else self.default


@dataclass(frozen=True)
class Rule:
    """A combination of options that has no meaning.

    Parameters
    ----------
    text
        What holds instead, as the user reads it.
    is_broken
        Whether a full set of options breaks the rule.
    """

    text: str
    is_broken: Callable[[Options], bool]


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What is known of a measure in addition to its kernel; used as the decorator that registers the kernel.

    Parameters
    ----------
    name
        Canonical name.
    formula
        Formula with the default options, in the notation of the glossary.
    bounds
        Least and greatest value with any options.
    undefined
        When the value is undefined (NaN from the kernel, NULL in tables).
    source
        Paper or tool whose definition this is.
    goldens
        Worked examples; at least one.
    aliases
        Other names that are read, each with the options it implies.
    cutoff
        Whether a cutoff is required, optional or forbidden.
    rules
        Combinations of options that are refused.
    interval
        Interval of the mean: ``t``, or ``wilson`` for a mean of zeros and ones; ``jackknife`` of whole user groups for
        a measure of another kind than ``list``, which is no mean.
    kind
        What the kernel takes.
    needs_catalogue
        Function of the options: whether all items must be known, recommended or not.
    printed_as
        Name printed where every option that it fixes has its default, if that is not ``name``.
    always_printed
        Options that a name shows even where they have their default, because tools disagree about it.
    after_at
        Option that a number after ``@`` sets, where that is not a cutoff.
    without_relevant
        Function of the options: value of a user without a defined value where a population counts that user; 0,
        as for a list without a hit, or what the measure gives there instead.
    needs
        Facts of the lists beyond ranks and gains that the kernel reads with any options, such as
        :data:`columns.HIT_SCORES`; they are collected only where a requested measure needs them.
    takes_expected_ties
        Whether the kernel gives the mean over all orders of tied items for lists of
        :func:`~rankeval_spark.measures.expected_ties.over_all_orders`; or a function of the options that returns this.
    bounded_by_gains
        True if tied items in the order of their gains give the best and the worst value that any order of them can
        give: one with descending gains, the other with ascending ones. Also True if gains have no part in the value. Or
        a function of the options that returns this. Not so with ``group``, whose items the gains of others are weighed
        against, but where no order matters.
    parts
        Numerator and denominator of each value, for a measure that is a ratio; it then has the option ``agg``.
    agg
        Default of that option.
    agg_not_offered
        Other ways to put users together that are looked for and not there.
    link
        What of the kernel's values the published number is made of: ``log`` where they are logarithms.
    micro_link
        The same of the ratio of the parts: ``square`` where it is the square of the value.
    better
        Whether the higher or the lower value is the better one.
    needs_with
        Function of the options: such facts that the kernel reads with these options only.
    takes_group
        Whether the measure has the option ``group``: its kernel reads judgements, and nothing of other items.
    takes_judged_only
        Whether such a measure has the option ``judged_only`` too: items without a judgement count in it, as places
        that they take, and it is not they that it is about.
    """

    name: str
    formula: str
    bounds: tuple[float, float]
    undefined: str
    source: str
    goldens: tuple[Golden, ...]
    aliases: Mapping[str, Options] = field(default_factory=dict)
    cutoff: Cutoff = Cutoff("optional")
    rules: tuple[Rule, ...] = ()
    interval: Literal["t", "wilson", "jackknife"] = "t"
    kind: Kind = "list"
    needs_catalogue: Callable[..., bool] = lambda **_: False
    printed_as: Mapping[str, Options] = field(default_factory=dict)
    always_printed: tuple[str, ...] = ()
    after_at: str = ""
    without_relevant: Callable[..., float] = lambda **_: 0.0
    needs: tuple[str, ...] = ()
    takes_expected_ties: bool | Callable[..., bool] = False
    bounded_by_gains: bool | Callable[..., bool] = lambda group=None, **_: group is None
    parts: Parts | None = None
    agg: Agg = "macro"
    agg_not_offered: tuple[NotOffered, ...] = ()
    link: Link = "identity"
    micro_link: Link = "identity"
    better: Literal["higher", "lower"] = "higher"
    needs_with: Callable[..., tuple[str, ...]] = lambda **_: ()
    takes_group: bool = True
    takes_judged_only: bool = True

    def __call__(self, kernel: K) -> K:
        """Register ``kernel`` under this definition and return it as it is."""
        own = measure_options.of_kernel(kernel)
        agg = Option(AGG, self.agg, choices=get_args(Agg), not_offered=self.agg_not_offered)
        more = [] if self.parts is None else [agg]
        if self.kind == "list" and self.takes_group:
            more.append(Option(GROUP, None, choices=BY_POPULARITY, takes_text="a category of items"))
            more += [_JUDGED_ONLY] if self.takes_judged_only else []
        _register(Entry(self, kernel, measure_options.in_order((*own, *more))))
        return kernel


@dataclass(frozen=True)
class Entry:
    """A registered measure: definition, kernel and the options derived from the kernel's parameters."""

    definition: Definition
    kernel: Kernel
    options: tuple[Option, ...]

    @property
    def name(self) -> str:
        """Canonical name."""
        return self.definition.name

    @property
    def family(self) -> str:
        """Name of the module that defines the measure."""
        return self.kernel.__module__.rpartition(".")[2]

    @property
    def doc(self) -> str:
        """Docstring of the kernel."""
        return inspect.getdoc(self.kernel) or ""

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.doc.partition("\n")[0]

    @property
    def range(self) -> str:
        """Range of the values, such as ``[0, 1]`` or ``[0, inf)``."""
        low, high = self.definition.bounds
        return f"{'(' if math.isinf(low) else '['}{low:g}, {high:g}{')' if math.isinf(high) else ']'}"

    @property
    def defaults(self) -> Options:
        """Value of every option where it is left out."""
        return {option.name: option.default for option in self.options}

    def takes_expected_ties(self, options: Options) -> bool:
        """Return True if the measure, with a full set of options, has a mean over all orders of tied items."""
        takes = self.definition.takes_expected_ties
        return takes(**options) if callable(takes) else takes

    def is_bounded_by_gains(self, options: Options) -> bool:
        """Return True if the order of tied items by gain bounds the measure, or does not change it."""
        is_bounded = self.definition.bounded_by_gains
        return is_bounded(**options) if callable(is_bounded) else is_bounded

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
        has_catalogue = self.definition.kind == "list" and self.definition.needs_catalogue(**self.defaults)
        parts = [", ".join(usual), *(["items or train"] if has_catalogue else [])]
        for option in self.options:
            for choice in option.choices:
                more = [one for one in self._requirements({**self.defaults, option.name: choice}) if one not in usual]
                parts += [f"{', '.join(more)} with {option.name}={measure_options.show(choice)}"] if more else []
        return "; ".join(part for part in parts if part)

    def _requirements(self, options: Options) -> list[str]:
        needs = (*self.definition.needs, *self.definition.needs_with(**options))
        return list(dict.fromkeys(one for need in needs for one in REQUIRES.get(need, ()) if one != LOG))

    def option(self, name: str) -> Option | None:
        """Return the option called ``name``, in any case."""
        return next((option for option in self.options if option.name.casefold() == name.casefold()), None)


@dataclass(frozen=True)
class Match:
    """What a name means: a measure, the options the name fixes and the number it ends in (trec_eval names)."""

    entry: Entry
    presets: Options = field(default_factory=dict)
    cutoff: str | None = None


_ENTRIES: Final[dict[str, Entry]] = {}
_NAMES: Final[dict[str, Match]] = {}
_TREC_NAME = re.compile(r"(?P<name>.+?)[._](?P<cutoff>\d+(\.\d+)?)")


def discover(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that its measures register themselves."""
    for module in sorted(info.name for info in iter_modules(path)):
        import_module(f"{package}.{module}")


def entries(kind: Kind | None = None) -> tuple[Entry, ...]:
    """All measures, or those of a kind, in the order of their families and, within one, of their definition."""
    return tuple(entry for entry in _ENTRIES.values() if kind in (None, entry.definition.kind))


def names() -> tuple[str, ...]:
    """Canonical names of all measures."""
    return tuple(_ENTRIES)


def get(name: str) -> Entry:
    """Return the measure with the canonical name ``name``; KeyError where there is none."""
    return _ENTRIES[name]


def all_names() -> tuple[str, ...]:
    """Canonical names and aliases, as they are written in the definitions."""
    return tuple(spelling for entry in entries() for spelling in (entry.name, *entry.definition.aliases))


def find(name: str) -> Match | None:
    """Look a name up, in any case: a canonical name, an alias, or a trec_eval name such as ``ndcg_cut_10``.

    Examples
    --------
    >>> from rankeval_spark.measures import registry
    >>> match = registry.find("relative_P_5")
    >>> match.entry.name, dict(match.presets), match.cutoff
    ('P', {'denom': 'min'}, '5')
    """
    known = _NAMES.get(name.casefold())
    if known is not None:
        return known
    trec = _TREC_NAME.fullmatch(name)
    base = _NAMES.get(trec["name"].casefold()) if trec else None
    return replace(base, cutoff=trec["cutoff"]) if trec and base else None


def _register(entry: Entry) -> None:
    spellings: dict[str, Options] = {entry.name: _NO_OPTIONS, **entry.definition.aliases, **entry.definition.printed_as}
    for spelling, presets in spellings.items():
        taken = _NAMES.get(spelling.casefold())
        if taken is not None and taken.entry.name != entry.name:
            message = f"{spelling!r} is already a name of {taken.entry.name}; {entry.name} cannot have it too"
            raise ValueError(message)
        _NAMES[spelling.casefold()] = Match(entry, presets)
    _ENTRIES[entry.name] = entry
