"""Names of measures: ``Name(option=value,...)@k`` read generously and printed canonically.

The grammar is that of ir_measures. Reading accepts any case, spaces, double or no quotes, aliases and trec_eval names;
printing gives ``rel`` first, then the other options by name, and leaves defaults out, except where a name has several
meanings in use. A number after ``@`` is a cutoff, or for some measures an option: ``IPrec@0.1`` is at recall 0.1.
"""

from __future__ import annotations

import hashlib
import math
import re
from contextlib import suppress
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rankeval_spark.columns import HIT_SCORES, WHOLE_LIST
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import group_statistics, registry, search
from rankeval_spark.measures.definition import OF_JUDGEMENTS, normalise_name
from rankeval_spark.measures.options import (
    AGG,
    GROUP,
    JUDGED_ONLY,
    MODEL,
    WEIGHTED,
    OptionValue,
    option_text,
    resolve_for_options,
)
from rankeval_spark.measures.required_facts import USER_WEIGHTS, WEIGHTS, need_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rankeval_spark.measures.definition import Better, Definition, Link
    from rankeval_spark.measures.registry import Match

MAX_CUTOFF: Final = 10_000  # largest cutoff that is read

_CUTOFF_WORDS: Final = ("k", "n", "top_k", "topk", "at", "cutoff", "top_n")  # options of other tools for a cutoff
_AS_DEFINED: Final[Mapping[str, Mapping[str, OptionValue]]] = MappingProxyType({})
_BY_USER: Final = "user_weights"  # recorded of a measure whose mean is weighted by the users' weights; no option
_RECORDED: Final = "runs.measures"  # place of measures that a run recorded, for messages
_GRAMMAR: Final = "Name(option=value,...)@k, such as nDCG@10 or P(rel=2)@5"
_NAME = re.compile(
    r"\s*(?P<name>[^\s()@,]+(?:\s+[^\s()@,]+)*)\s*(?:\((?P<options>.*)\)\s*)?(?:@(?P<cutoff>.*))?", re.DOTALL
)
_OPTION = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>'[^']*'|\"[^\"]*\"|\{[^{}]*\}|[^\s,'\"]+)\s*(?:,|$)")


class UnknownMeasureError(ConfigError):
    """A measure that does not exist is requested."""


class Measure:
    """A measure with all its options and its cutoff, and what follows from them.

    It is equal to another one that computes the same number. :meth:`parse` reads one from text, :meth:`of` builds one
    in code; :attr:`entry` has what holds with any options.

    >>> measure = Measure.parse('precision( denom = "min", REL = 2.0 ) @ 5')
    >>> str(measure), measure.label, measure.column, measure.k
    ("P(rel=2,denom='min')@5", "P(rel=2,denom='min')", 'p_rel_2_denom_min', 5)
    >>> Measure.parse("ndcg_cut_10") == Measure.of("nDCG", k=10)
    True
    >>> measure = Measure.parse("P(agg='micro')@5")
    >>> measure.definition, measure.recorded_options, measure.weight_column
    ("P(rel=1,agg='micro',denom='k')", {'rel': '1', 'agg': 'micro', 'denom': 'k'}, 'p_agg_micro__weight')
    >>> Measure.parse("R(group='Комедия')@10").column
    'r_group_ec4d73fa'
    """

    def __init__(
        self,
        name: str,
        options: Iterable[tuple[str, OptionValue]],
        k: int = WHOLE_LIST,
        entry: Definition | None = None,  # by default what the registry knows by the name
    ) -> None:
        self.name = name  # canonical, such as ``"P"``
        entry = entry or registry.get(name)
        self._own = None if entry.is_builtin else entry  # so that it goes with the measure to workers
        self.options: Mapping[str, OptionValue] = dict(options)  # value of every option, ``rel`` first, then by name
        self.k = k  # cutoff; 0 means the whole list
        defaults = entry.defaults

        group, other_model = self.options.get(GROUP), self.options.get(MODEL)
        self.group = group if isinstance(group, str) else None  # item group whose judgements alone count
        self.other_model = other_model if isinstance(other_model, str) else None  # whose lists each list is compared to
        # Whether unjudged items leave the list before it is cut, whatever the policy of the run
        self.is_judged_only = self.options.get(JUDGED_ONLY) is True
        self.is_weighted = self.options.get(WEIGHTED) is True  # judgements count as often as their weights say
        self.is_micro = self.options.get(AGG) == "micro"  # the aggregate is a ratio of sums over users
        self.is_weighted_by_user = False  # whether users have weights in the mean, see :meth:`weighted_by_user`
        unseen = (AGG, GROUP, JUDGED_ONLY, WEIGHTED)
        self.kernel_options = {option: value for option, value in self.options.items() if option not in unseen}

        fixed = (name for name, preset in entry.printed_as.items() if preset.items() <= self.options.items())
        shown = {
            option: value
            for option, value in self.options.items()
            if value != defaults[option] or option in entry.always_printed
        }
        self.label = _format_call(next(fixed, name), shown)  # value of column ``measure``: no cutoff, defaults left out
        self.definition = _format_call(name, self.options)  # with every option that has a value, without the cutoff
        # Column in ``user_metrics``: the label as a lower-case slug, with a hash of it for letters of other alphabets
        self.column = re.sub(r"[^a-z0-9]+", "_", self.label.casefold()).strip("_")
        if any(letter.isalnum() and not letter.isascii() for letter in self.label):
            self.column += f"_{hashlib.sha256(self.label.encode()).hexdigest()[:8]}"
        # Column of the denominators; None unless they are summed
        self.weight_column = f"{self.column}__weight" if self.is_micro else None

        self.link: Link = entry.micro_link if self.is_micro else entry.link  # function of the value that is averaged
        self.is_proportion = entry.interval == "wilson"  # a list has 0 or 1, so that the mean is a share of users
        self.has_user_values = entry.kind == "list"  # every list has a value, and the measure a column
        self.is_mean_of_users = self.has_user_values and not self.is_micro and self.link == "identity"
        self.better: Better = resolve_for_options(entry.better, self.options)
        self.needs_catalogue = resolve_for_options(entry.needs_catalogue, self.options)
        self.has_mean_over_ties = resolve_for_options(entry.has_mean_over_ties, self.options)
        # Whether the order of tied items by gain bounds the value, or does not change it. Not so with weights: of two
        # items the one with the smaller gain may be worth more.
        self.is_bounded_by_gains = not self.is_weighted and resolve_for_options(entry.is_bounded_by_gains, self.options)
        own_needs = resolve_for_options(entry.needs, self.options)
        of_group = () if self.group is None else (need_of(self.group),)
        self.needs = (*own_needs, *((WEIGHTS,) if self.is_weighted else ()), *of_group)  # beyond ranks and gains

        # Value of a user without a defined value where a population counts that user, and of the same user where they
        # count as served perfectly; NaN where no population gives a value
        (least, greatest), (low, high) = entry.published_bounds, entry.bounds
        if entry.without_relevant is not None:
            self.without_relevant = resolve_for_options(entry.without_relevant, self.options)
        else:
            self.without_relevant = 0.0 if OF_JUDGEMENTS - {HIT_SCORES} >= {*own_needs} else math.nan
        best = max(0.0, low) if self.better == "lower" else min(1.0, high)
        self.at_best = math.nan if math.isnan(self.without_relevant) else best
        # Least and greatest published value; the least of GMAP and LogAP is their floor
        if low == -math.inf and high == 0:
            least = math.exp(self.without_relevant) if self.link == "log" else self.without_relevant
        self.bounds = least, min(greatest, resolve_for_options(entry.at_most, self.options))

    @classmethod
    def parse(
        cls, text: str, where: str = "measures", *, defaults: Mapping[str, Mapping[str, OptionValue]] = _AS_DEFINED
    ) -> Measure:
        """Read a measure; ``defaults`` are options by canonical name, in place of the measure's own defaults.

        An unknown name is an :class:`UnknownMeasureError`, which suggests the nearest known one. A text that does not
        follow the grammar, wrong options and a wrong cutoff are a ConfigError with all such faults at once, at
        ``where``.
        """
        shape = _NAME.fullmatch(text)
        if shape is None:
            raise ConfigError(Fault(where, repr(text), _GRAMMAR))
        match = _find_measure(shape["name"], where)
        reader = _Reader(f"{where}, {text.strip()}", match, defaults.get(match.entry.name, {}))
        after_at = [number.strip() for number in (match.cutoff, shape["cutoff"]) if number is not None]
        if len(after_at) > 1 and after_at[0].casefold() in registry.PLACEHOLDERS:  # such as map_at_k@10
            after_at = after_at[1:]
        return reader.build_measure(reader.split_options(shape["options"] or ""), after_at)

    @classmethod
    def of(cls, name: str, /, *, k: int = WHOLE_LIST, **options: OptionValue | Mapping[float, float]) -> Measure:
        """Return the measure of a name and option values; checked like one that is read.

        >>> str(Measure.of("P", k=5, rel=2)), str(Measure.of("nDCG", gains={1: 1, 2: 3}))
        ('P(rel=2)@5', 'nDCG(gains={1:1,2:3})')
        """
        return cls.parse(with_cutoff(_format_call(name, options), k), where="Measure.of")

    @classmethod
    def recorded(cls, name: str, options: Mapping[str, str], k: int, entry: Definition | None = None) -> Measure:
        """Return the measure of what is recorded of it: its name, its ``recorded_options``, cutoff and own definition.

        UnknownMeasureError or ConfigError as :meth:`parse`, at ``runs.measures``: another version recorded it.

        >>> str(Measure.recorded("P", {"rel": "2", "denom": "k"}, 5))
        'P(rel=2)@5'
        """
        match = registry.Match(entry, {}, None) if entry else _find_measure(name, _RECORDED)
        by_user = _BY_USER in options
        options = {option: value for option, value in options.items() if option != _BY_USER}
        texts = {option.name for option in match.entry.options if option.takes_text}
        pairs = [(option, option_text(value) if option in texts else value) for option, value in options.items()]
        reader = _Reader(f"{_RECORDED}, {name}", match, {})
        measure = reader.build_measure(pairs, [] if k == WHOLE_LIST else [str(k)])
        return measure.weighted_by_user() if by_user else measure

    @property
    def entry(self) -> Definition:
        """Definition of the measure, whatever its options are; of measures of this package never pickled."""
        return self._own or registry.get(self.name)

    @property
    def recorded_options(self) -> Mapping[str, str]:
        """Every option that has a value, as text without quotes."""
        given = {option: value for option, value in self.options.items() if value is not None}
        given |= {_BY_USER: True} if self.is_weighted_by_user else {}
        return {option: value if isinstance(value, str) else option_text(value) for option, value in given.items()}

    def at(self, k: int) -> Measure:
        """Return the same measure with another cutoff; 0 = whole list.

        >>> str(Measure.parse("AP").at(10))
        'AP@10'
        """
        faults = _cutoff_faults(self.entry, self.options, k, where=f"{self.label} at cutoff {k}")
        if faults:
            raise ConfigError(*faults)
        changed = copy(self)
        changed.k = k
        return changed

    def weighted_by_user(self) -> Measure:
        """Return the same measure with the users' weights in its mean, which becomes a ratio of sums; names stay.

        >>> weighted = Measure.parse("P@5").weighted_by_user()
        >>> str(weighted), weighted.weight_column, weighted.is_mean_of_users
        ('P@5', 'p__weight', False)
        """
        changed = copy(self)
        if self.has_user_values:
            changed.is_weighted_by_user, changed.is_mean_of_users = True, False
            changed.weight_column, changed.needs = f"{self.column}__weight", (*self.needs, USER_WEIGHTS)
        return changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and (self.name, self.options, self.k) == (other.name, other.options, other.k)

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.options.items()), self.k))

    def __str__(self) -> str:
        return with_cutoff(self.label, self.k)

    def __repr__(self) -> str:
        return f"Measure.parse({str(self)!r})"


def expand_name(text: str) -> list[str]:
    """Return the measures that a text names: several where its name stands for a series of them.

    >>> expand_name("IPrecCurve(need='v9')")[1:3], len(expand_name("IPrecCurve")), expand_name("P@5")
    (["IPrec(need='v9',recall=0.1)", "IPrec(need='v9',recall=0.2)"], 11, ['P@5'])
    """
    shape = _NAME.fullmatch(text)
    series = registry.SERIES.get(normalise_name(shape["name"])) if shape else None
    if shape is None or series is None:
        return [text]
    given = f"{shape['options']}," if (shape["options"] or "").strip() else ""
    end = "" if shape["cutoff"] is None else f"@{shape['cutoff']}"
    return [f"{series.measure}({given}{series.option}={value}){end}" for value in series.values]


def with_cutoff(label: str, k: int) -> str:
    """Write a measure with its cutoff, if it has one.

    >>> with_cutoff("nDCG", 10), with_cutoff("AP", 0)
    ('nDCG@10', 'AP')
    """
    return label if k == WHOLE_LIST else f"{label}@{k}"


def measure_of(label: str) -> Measure | None:
    """Read the measure of a label; None where this version does not know it.

    >>> str(measure_of("P")), measure_of("Unheard")
    ('P@1', None)
    """
    for text in (label, f"{label}@1"):  # P has no meaning without a cutoff
        with suppress(ConfigError):
            return Measure.parse(text)
    return None


def find_name_notes(
    texts: Iterable[str], defaults: Mapping[str, Mapping[str, OptionValue]] = _AS_DEFINED
) -> Mapping[str, registry.KindOfMeanings]:
    """Return notes on names with several meanings, where no option and no preset decides, and the kind of each.

    >>> find_name_notes(["MRR", "AP(denom='min')@5"])
    {'MRR is RR, 1 / rank of the first hit; the sum of 1 / rank over all hits is ARHR': 'measures'}
    """
    notes: dict[str, registry.KindOfMeanings] = {}
    for shape in filter(None, map(_NAME.fullmatch, texts)):
        several, match = registry.meanings_of(shape["name"]), registry.find(shape["name"])
        if several is None or match is None:
            continue
        written = {pair["name"].casefold() for pair in _OPTION.finditer(shape["options"] or "")}
        if {*written, *defaults.get(match.entry.name, {})}.isdisjoint(several.options):
            notes[several.note(shape["name"])] = several.kind
    return notes


def find_biases(labels: Iterable[str]) -> list[str]:
    """Return the measures whose interval is not around the quantity that they estimate, with what it is around.

    >>> find_biases(["P", "ClippedIPS(limit=2)", "ClippedIPS(limit=5)"])
    ["ClippedIPS: the interval is around the mean with cut weights, a biased value, not around the target's reward"]
    """
    known = filter(None, map(measure_of, labels))
    return list(dict.fromkeys(f"{measure.name}: {measure.entry.bias}" for measure in known if measure.entry.bias))


def split_group(label: str) -> tuple[str, str] | None:
    """Split a label into that without its group of items, and the group; None without one.

    >>> split_group("nDCG(gains='binary',group='drama')"), split_group("nDCG")
    (("nDCG(gains='binary')", 'drama'), None)
    """
    measure = measure_of(label)
    if measure is None or measure.group is None:
        return None
    options = {name: value for name, value in measure.options.items() if name != GROUP}
    return Measure.of(measure.name, k=measure.k, **options).label, measure.group


class _Reader:
    """Reader of the options and the cutoff of one measure, which collects all their faults."""

    def __init__(self, where: str, match: Match, defaults: Mapping[str, OptionValue]) -> None:
        self.where = where
        self.match = match
        self.entry = match.entry
        self.defaults = defaults
        self.faults: list[Fault] = []

    def build_measure(self, pairs: list[tuple[str, str]], after_at: list[str]) -> Measure:
        """Return the measure with the options, and the cutoff or option of what follows ``@``."""
        entry, presets, behind = self.entry, self.match.presets, after_at
        if entry.after_at:
            pairs += [(entry.after_at, text) for text in after_at]
            after_at = []
        given: dict[str, OptionValue] = {}
        for name, value_text in pairs:
            option = entry.option(name)
            value = option.read(value_text) if option else None
            if option is None:
                self._refuse_unknown(name, value_text)
            elif option.name in given or option.name in presets:
                fix = f"leave '@{value_text}' out" if name == entry.after_at and value_text in behind else ""
                self._refuse(f"option {option.name!r} twice", "each option once", fix)
            elif value is None:
                expected = f"{option.name} as {option.expected}"
                self._refuse(f"{option.name}={value_text}", expected, option.why_not(value_text))
            else:
                given[option.name] = value
        k = self._read_cutoff(after_at)
        options = {**entry.defaults, **self.defaults, **presets, **given}
        if not self.faults:
            for option in entry.options:
                if option.is_required and options[option.name] is None:
                    fix = f"write {entry.name}({option.name}='...')"
                    self._refuse(f"no option {option.name!r}", f"{option.name} as {option.expected}", fix)
            for rule in entry.rules:
                if rule.is_broken(options):
                    self._refuse("this combination", rule.text)
            self.faults += _cutoff_faults(entry, options, k, where=self.where)
        if self.faults:
            raise ConfigError(*self.faults)
        return Measure(entry.name, options.items(), k, entry)

    def split_options(self, text: str) -> list[tuple[str, str]]:
        """Split a text into names and values of options."""
        pairs: list[tuple[str, str]] = []
        rest = text
        while rest.strip():
            pair = _OPTION.match(rest)
            if pair is None:
                given = rest.strip()
                fix = f"write {self._at(given)}" if given.isdecimal() else ""
                self._refuse(repr(given), "option=value", fix)
                break
            pairs.append((pair["name"], pair["value"]))
            rest = rest[pair.end() :]
        return pairs

    def _read_cutoff(self, texts: list[str]) -> int:
        """Read the only text as a cutoff; 0, the whole list, without a text."""
        if not texts:
            return WHOLE_LIST
        text, is_number = texts[0], re.fullmatch("[0-9]+", texts[0]) is not None
        if len(texts) > 1:
            self._refuse("two cutoffs", "one")
        elif not is_number or not 1 <= int(text) <= MAX_CUTOFF:
            fix, several = "", text.strip("[]")
            if text and not text.strip("0"):
                fix = "leave '@0' out for the whole list"
            elif text.casefold() in registry.PLACEHOLDERS:
                fix = f"write the number, such as {self._at('10')}"
            elif re.fullmatch(r"[0-9]+\.0+", text):
                fix = f"write {self._at(text.partition('.')[0])}"
            elif re.fullmatch(r"[0-9]+(, *[0-9]+)+", several):
                fix = f"write a measure for each: {', '.join(self._at(k.strip()) for k in several.split(','))}"
            elif "," in text:
                fix = "name one measure at a time"
            self._refuse(f"cutoff {text!r}", f"a whole number from 1 to {MAX_CUTOFF}", fix)
        return int(text) if is_number else WHOLE_LIST

    def _refuse_unknown(self, name: str, value: str) -> None:
        """Add a fault for an option that the measure does not have, with why and the nearest fix."""
        found = f"option {name!r}"
        if name == AGG:
            ratios = ", ".join(sorted(entry.name for entry in registry.entries() if entry.is_ratio))
            why = ""
            if self.entry.kind != "list":
                why = f": {self.entry.name} is of all lists together, and no mean over users"
            elif self.entry.option(GROUP):  # measures other than those of accuracy may have one that is never summed
                why = f": {self.entry.name} has no denominator to sum, so its micro average is its mean"
            self._refuse(found, f"a measure that is a ratio of sums: {ratios}", f"leave it out{why}")
        elif name == GROUP:
            self._refuse(found, f"a measure that reads judgements, as {self.entry.name} does not")
        elif name.casefold() == JUDGED_ONLY:
            expected = f"a measure that items without a judgement take places in, as they do not in {self.entry.name}"
            self._refuse(found, expected, f"leave it out; the policy {JUDGED_ONLY} holds for all measures of a run")
        elif name.casefold() == WEIGHTED:
            weighted = ", ".join(entry.name for entry in registry.entries() if entry.weighted)
            expected = f"a measure to which each relevant item adds a term of its own: {weighted}"
            self._refuse(found, expected, "take one of these, or leave it out")
        else:
            known = [option.name for option in self.entry.options]
            is_cutoff = name.casefold() in _CUTOFF_WORDS and self.entry.cutoff.default != "forbidden"
            fix = f"write the cutoff behind @: {self._at(value)}" if is_cutoff else nearest(name, known)
            self._refuse(f"unknown option {name!r}", f"one of {', '.join(known)}", fix)

    def _at(self, cutoff: str) -> str:
        """Write the measure, with the options that its name fixes, at a cutoff."""
        return f"{_format_call(self.entry.name, self.match.presets)}@{cutoff}"

    def _refuse(self, found: str, expected: str, fix: str = "") -> None:
        self.faults.append(Fault(self.where, found, expected, fix))


def _find_measure(name: str, where: str) -> Match:
    """Look a name up; UnknownMeasureError with the way to a number of several groups or the nearest name."""
    if match := registry.find(name):
        return match
    if other := group_statistics.find_statistic(name):
        found, expected = f"{other.name!r}, which is not requested as a measure", "a measure of the lists of a model"
        raise UnknownMeasureError(Fault(where, found, expected, f"leave it out: {other.way}"))
    if series := registry.SERIES.get(normalise_name(name)):
        found, fix = f"{name!r}, which stands for {len(series.values)} measures", f"write {series.measure}@0.1"
        raise UnknownMeasureError(Fault(where, found, "one of them, or the name in a list of measures", fix))
    if several := registry.meanings_of(name):
        found, expected = f"{name!r}, which has several meanings", "a name of one of them"
        raise UnknownMeasureError(Fault(where, found, expected, several.others))
    expected = f"one of the {len(registry.names())} that 'rankeval measures' lists"
    own = [own.name for own in registry.own_measures()]
    near = nearest(name, [*own, *registry.all_names()])
    if near and near == nearest(name, own):
        raise UnknownMeasureError(Fault(where, f"unknown measure {name!r}", expected, near))
    if instead := search.find_replacement(name):
        raise UnknownMeasureError(Fault(where, f"{name!r}, which is not computed", expected, instead))
    raise UnknownMeasureError(Fault(where, f"unknown measure {name!r}", expected, search.suggest_fix(name)))


def _cutoff_faults(entry: Definition, options: Mapping[str, OptionValue], k: int, *, where: str) -> list[Fault]:
    """Check a cutoff against its range and against the measure's own rule."""
    need = entry.cutoff.need(options)
    if not 0 <= k <= MAX_CUTOFF:
        return [Fault(where, f"cutoff {k}", f"a whole number from 1 to {MAX_CUTOFF}")]
    if need == "required" and k == WHOLE_LIST:
        return [Fault(where, "no cutoff", f"one; for {entry.name} it is {entry.cutoff}", "append '@10'")]
    if need == "forbidden" and k != WHOLE_LIST:
        return [Fault(where, f"cutoff {k}", f"{entry.name} without one, because it has no meaning there")]
    return []


def _format_call(name: str, options: Mapping[str, OptionValue | Mapping[float, float]]) -> str:
    """Write ``Name(option=value,...)``; an option that is None is left out."""
    inside = ",".join(f"{option}={option_text(value)}" for option, value in options.items() if value is not None)
    return f"{name}({inside})" if inside else name
