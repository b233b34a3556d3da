"""A measure as it is defined: facts, kernel and options in one object, which is also the decorator of the kernel.

Most measures need three fields: name, formula and source. The others say where a measure differs from the usual one: a
mean over users of a value from 0 to 1 that depends on judgements and ranks alone, and is undefined for R = 0.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.measures.arrays import FloatMatrix, Ratio
from rankeval_spark.measures.options import (
    AGG,
    GROUP_OPTION,
    JUDGED_ONLY_OPTION,
    WEIGHTED_OPTION,
    Agg,
    OfOptions,
    Option,
    OptionValue,
    option_text,
    read_options,
    resolve_for_options,
)
from rankeval_spark.measures.required_facts import LOG, REQUIRES, VALUES

if TYPE_CHECKING:
    from rankeval_spark.measures.exposure import Exposure, Rates
    from rankeval_spark.measures.lists import CutLists
    from rankeval_spark.measures.options import NotOffered

# ``kernel(inputs, *, option=default, ...)`` returns values of shape (n_lists, n_cutoffs), or their two parts where they
# are ratios; of all lists together, where the inputs are exposures or rates of groups of lists, of shape (n_groups,)
Kernel: TypeAlias = Callable[..., FloatMatrix | Ratio]
K = TypeVar("K", bound=Kernel)

Link: TypeAlias = Literal["identity", "log", "square"]  # function of the value that is averaged
CutoffNeed: TypeAlias = Literal["required", "optional", "forbidden"]  # whether a measure takes a cutoff
# Which value is the better one; of what only describes lists, such as their popularity, neither is
Better: TypeAlias = Literal["higher", "lower", "neither"]
Options: TypeAlias = Mapping[str, OptionValue]

# What a kernel takes: lists, each of which has a value; or, of all lists of a slice together, the exposure of items or
# the rates at which groups of items are recommended, or a category of items is
Kind: TypeAlias = Literal["list", "exposure", "parity"]
_KINDS: Final[Mapping[str, Kind]] = {"CutLists": "list", "Exposure": "exposure", "Rates": "parity"}  # by parameter type

OF_JUDGEMENTS: Final = {HIT_SCORES, VALUES}  # needs that are no facts of items


@dataclass(frozen=True)
class Cutoff:
    """Rule for the cutoff of a measure, with exceptions for some options.

    >>> rule = Cutoff("required").but("optional", denom="len")
    >>> rule.need({"denom": "k"}), rule.need({"denom": "len"}), str(rule)
    ('required', 'optional', "required (optional with denom='len')")
    """

    default: CutoffNeed
    exceptions: tuple[tuple[CutoffNeed, str, OptionValue | type[float]], ...] = ()

    def but(self, need: CutoffNeed, **option: OptionValue | type[float]) -> Cutoff:
        """Return the rule with an exception for one value of an option, or for any number."""
        return replace(self, exceptions=(*self.exceptions, *((need, *pair) for pair in option.items())))

    def need(self, options: Options) -> CutoffNeed:
        """Return the rule for a full set of options."""
        given = ((need, options.get(name), value) for need, name, value in self.exceptions)
        hits = (
            need for need, found, value in given if (isinstance(found, float) if value is float else found == value)
        )
        return next(hits, self.default)

    def __str__(self) -> str:
        exceptions = ", ".join(
            f"{need} with {name}={'number' if isinstance(value, type) else option_text(value)}"
            for need, name, value in self.exceptions
        )
        return f"{self.default} ({exceptions})" if exceptions else self.default


@dataclass(frozen=True)
class OptionRule:
    """A combination of options that has no meaning."""

    text: str  # what holds instead, as the user reads it
    is_broken: Callable[[Options], bool]  # whether a full set of options breaks the rule


def only_with(option: str, default: OptionValue, other: str, *values: str) -> OptionRule:
    """Refuse an option that has no effect, unless another option has one of some values; a switch has default None.

    >>> rule = only_with("days", 30, "stat", "share")
    >>> rule.text, rule.is_broken({"days": 10, "stat": "mean"}), rule.is_broken({"days": 10, "stat": "share"})
    ("days only with stat='share'", True, False)
    >>> only_with("weighted", None, "denom", "R", "ideal").text
    "weighted=True only with denom='R' and 'ideal'"
    """
    written, allowed = option if default is not None else f"{option}=True", " and ".join(map(option_text, values))
    return OptionRule(
        f"{written} only with {other}={allowed}",
        lambda options: options[option] != default and options[other] not in values,
    )


NO_RELEVANT: Final = "no relevant judgement (R = 0)"  # where nearly every measure of binary relevance is undefined


@dataclass(kw_only=True, eq=False)
class Definition:
    """A measure: what is written of it, its kernel, and what follows from the kernel's annotations."""

    name: str  # canonical name
    formula: str  # formula with the default options, in the notation of ``docs/measures/index.md``
    source: str  # paper or tool whose definition this is
    bias: str = ""  # what the interval is around, where that is not the quantity that is estimated
    undefined: str = NO_RELEVANT  # when the value is undefined (NaN from the kernel, NULL in tables)
    bounds: tuple[float, float] = (0, 1)  # least and greatest value of a list, or of all lists, with any options
    at_most: OfOptions[float] = math.inf  # greatest value with some options, where that is less
    # Full names and words of textbooks and other tools, separated by commas, by which search finds the measure
    words: str = ""
    # Other names that are read, each with the options it implies
    aliases: Mapping[str, Options] = field(default_factory=dict)
    cutoff: Cutoff = Cutoff("optional")  # whether a cutoff is required, optional or forbidden
    rules: tuple[OptionRule, ...] = ()  # combinations of options that are refused
    # Facts that the kernel reads beyond ranks and gains, such as :data:`columns.HIT_SCORES`; see :mod:`required_facts`.
    # They are collected only where a requested measure needs them.
    needs: OfOptions[tuple[str, ...]] = ()
    needs_catalogue: OfOptions[bool] = False  # whether all items must be known, recommended or not
    better: OfOptions[Better] = "higher"  # which value is the better one, if either is
    # How the values of users become one number, where that is not simply their mean
    default_agg: Agg = "macro"  # default of the option ``agg``, which every measure that is a ratio has
    agg_not_offered: tuple[NotOffered, ...] = ()  # other ways to combine users that are looked for and not there
    link: Link = "identity"  # what is averaged: ``log`` where the values of users are logarithms
    micro_link: Link = "identity"  # the same for the ratio of sums: ``square`` where it is the square of the value
    # Interval of the published value: ``wilson`` for a mean of zeros and ones; always ``jackknife``, by groups of
    # users, for a measure of all lists together
    interval: Literal["t", "wilson", "jackknife"] = "t"
    # Value of a user without a defined value where a population counts that user; NaN for none. Left out: 0, as for a
    # list without a hit; none where the measure describes items or compares scores. Needed where ``better`` is not
    # ``higher``, because 0 is the best value of most such measures.
    without_relevant: OfOptions[float] | None = None
    # Whether the kernel gives the mean over all orders of tied items for lists of
    # :func:`~rankeval_spark.measures.ties.spread_ties`
    has_mean_over_ties: OfOptions[bool] = False
    # Whether tied items in descending and in ascending order of their gains give the best and the worst value that any
    # order can give, or no order of tied items changes the value. Not so with ``group``, because the gains of items of
    # other groups do not count, unless no order of tied items matters.
    is_bounded_by_gains: OfOptions[bool] = lambda group=None, **_: group is None
    # How the measure is printed and read, where that differs from ``Name(option=value)@k``: the name printed where
    # every option that it fixes has its default, if that is not the canonical one; options that a name shows even where
    # they have their default, because tools disagree about it; the option that a number after ``@`` sets, not a cutoff
    printed_as: Mapping[str, Options] = field(default_factory=dict)
    always_printed: tuple[str, ...] = ()
    after_at: str = ""
    # Whether judgements of one item group may count alone; left out, where no fact of items is read
    group: bool | None = None
    # Whether unjudged items may leave the lists first; left out, where ``group`` is possible and no score is read
    judged_only: bool | None = None
    weighted: bool = False  # whether judgements may have weights: only where each relevant item adds a term of its own
    version: str = ""  # of an own measure, as the runs of a night record it
    is_builtin: bool = field(init=False, default=False)  # whether it is a measure of this package
    # Facts that follow from the function that is decorated
    kernel: Kernel = field(init=False)
    kind: Kind = field(init=False)  # input of the kernel
    is_ratio: bool = field(init=False)  # whether a value has parts that can be summed over users: option ``agg``
    family: str = field(init=False)  # part of :mod:`rankeval_spark.measures` that defines it, such as ``accuracy``
    doc: str = field(init=False)
    summary: str = field(init=False)  # first line of the docstring
    # Least and greatest published value with any options: of GMAP not the logarithms that its users have
    published_bounds: tuple[float, float] = field(init=False)
    range: str = field(init=False)  # the same as ``[0, 1]`` or ``[0, inf)``

    def __call__(self, kernel: K) -> K:
        """Define the measure of ``kernel`` and return that, documented; ValueError where its definition is refused.

        That is so where another measure of this package has one of the names, and where a user without a value would
        have 0, which may be the best value. A kernel of another package has its definition as an attribute.
        """
        hints = inspect.get_annotations(kernel).values()
        annotations = [str(getattr(hint, "__name__", hint)).rpartition(".")[2] for hint in hints]
        self.is_builtin = (kernel.__module__ or "").startswith(f"{__package__}.")
        family = kernel.__module__.removeprefix(f"{__package__}.").partition(".")[0] if self.is_builtin else "own"
        is_ratio = bool(annotations) and annotations[-1] == "Ratio"
        kind = _KINDS.get(annotations[0]) if annotations else None
        if kind is None:
            message = f"{self.name}: found a first parameter without a type; expected one of {', '.join(_KINDS)}"
            raise ValueError(message)
        self.describe(kernel, kind, is_ratio=is_ratio, doc=kernel.__doc__ or "", family=family)
        if self.is_builtin:
            self.register()
        else:
            kernel.definition = self  # type: ignore[attr-defined]  # by which it is found again
        kernel.__doc__ = self.doc
        return kernel

    def describe(self, kernel: Kernel, kind: Kind, *, is_ratio: bool, doc: str, family: str) -> None:
        """Set the facts that follow from the kernel; ValueError where a user without a value needs one."""
        self.kernel, self.kind, self.is_ratio, self.family = kernel, kind, is_ratio, family
        if kind != "list":
            self.interval = "jackknife"
        elif self.better != "higher" and self.without_relevant is None:
            message = (
                f"{self.name}: found better={self.better!r} and no value of a user without one; expected "
                "without_relevant=..., NaN for none"
            )
            raise ValueError(message)
        low, high = self.bounds
        low, high = self.published_bounds = (math.exp(low), math.exp(high)) if self.link == "log" else (low, high)
        usual = min(high, self.at_most(**self.defaults)) if callable(self.at_most) else high
        self.range = f"{'(' if math.isinf(low) else '['}{low:g}, {usual:g}{')' if math.isinf(usual) else ']'}"
        self.range += f", to {high:g} with other options" if usual < high else ""
        self.summary, _, rest = inspect.cleandoc(doc).partition("\n")
        undefined = "never undefined" if self.undefined == "never" else f"NaN: {self.undefined}"
        self.doc = f"{self.summary}\n\n``{self.formula}``: in {self.range}; {undefined}.\n{rest}"

    def register(self) -> None:
        """Make the measure known by its names to the whole process; ValueError where another one has one of them."""
        spellings: Mapping[str, Options] = {self.name: {}, **self.aliases, **self.printed_as}
        for spelling, presets in spellings.items():
            owner, _ = SPELLINGS.get(normalise_name(spelling), (self.name, presets))
            if owner != self.name:
                message = f"{spelling!r} is already a name of {owner}; {self.name} cannot have it too"
                raise ValueError(message)
            SPELLINGS[normalise_name(spelling)] = self.name, presets
        DEFINED[self.name] = self

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Options of the kernel and those that follow from what it is, as they are printed: ``rel`` first, by name."""
        known = getattr(self.kernel, "options", None)  # of a function of one list, which has read them
        if known is None:
            known = read_options(self.kernel, get_type_hints(self.kernel, include_extras=True))
        kernel_options: tuple[Option, ...] = known
        needs = {*resolve_for_options(self.needs, {option.name: option.default for option in kernel_options})}
        is_of_judgements = self.kind == "list" and needs <= OF_JUDGEMENTS
        takes_group = is_of_judgements if self.group is None else self.group
        reads_ranks = takes_group and HIT_SCORES not in needs
        takes_judged_only = reads_ranks if self.judged_only is None else self.judged_only
        meaning = "Combination of users: the mean of their values, or the ratio of sums over them."
        agg = Option(AGG, self.default_agg, get_args(Agg), not_offered=self.agg_not_offered, meaning=meaning)
        general = (
            agg if self.is_ratio else None,
            GROUP_OPTION if takes_group else None,
            JUDGED_ONLY_OPTION if takes_judged_only else None,
            WEIGHTED_OPTION if self.weighted else None,
        )
        options = (*kernel_options, *filter(None, general))
        return tuple(sorted(options, key=lambda option: (option.name != "rel", option.name)))

    def option(self, name: str) -> Option | None:
        """Return the option called ``name``, in any case."""
        return next((option for option in self.options if option.name.casefold() == name.casefold()), None)

    @cached_property
    def defaults(self) -> Options:
        """Value of every option where it is left out."""
        return {option.name: option.default for option in self.options}

    def values(self, inputs: CutLists | Exposure | Rates, options: Options) -> FloatMatrix:
        """Compute the values; of a measure that is a ratio, the ratios."""
        found = self.kernel(inputs, **options)
        return found.values if isinstance(found, Ratio) else found

    @property
    def better_in_words(self) -> str:
        """The better side in words, with a note where options change it.

        >>> [registry.get(name).better_in_words for name in ("nDCG", "ARP", "Freshness")]
        ['higher', 'neither', 'lower (other options may differ)']
        """
        found = resolve_for_options(self.better, self.defaults)
        return f"{found} (other options may differ)" if callable(self.better) else found

    @property
    def requires(self) -> str:
        """Inputs that the measure needs in addition to recommendations and judgements; empty for none.

        >>> registry.get("ILD").requires
        "items.vector; items.categories with sim='jaccard'; train with sim='cooccurrence'"
        >>> registry.get("P").requires
        ''
        """

        def required(options: Options) -> list[str]:
            needs = resolve_for_options(self.needs, options)
            return list(dict.fromkeys(given for need in needs for given in REQUIRES.get(need, ()) if given != LOG))

        usual = required(self.defaults)
        has_catalogue = self.kind == "list" and resolve_for_options(self.needs_catalogue, self.defaults)
        parts = [", ".join(usual), *(["items or train"] if has_catalogue else [])]
        for option in self.options:
            for choice in option.choices:
                additional = [given for given in required({**self.defaults, option.name: choice}) if given not in usual]
                parts += [f"{', '.join(additional)} with {option.name}={option_text(choice)}"] if additional else []
        return "; ".join(part for part in parts if part)


DEFINED: Final[dict[str, Definition]] = {}  # every measure, by its canonical name

SPELLINGS: Final[dict[str, tuple[str, Options]]] = {}  # name and options of every :func:`normalise_name` spelling


def normalise_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case.

    >>> normalise_name("hit_rate"), normalise_name("Hit-Rate"), normalise_name("HitRate")
    ('hitrate', 'hitrate', 'hitrate')
    """
    return re.sub(r"[\W_]+", "", name.casefold())
