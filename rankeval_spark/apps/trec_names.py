"""Lines that ``-m`` asks for: measures of trec_eval under its names, and ours under theirs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar

from rankeval_spark.errors import ConfigError, Fault, FaultsError, nearest
from rankeval_spark.measures import Measure, MeasureSet, UnknownMeasureError, registry
from rankeval_spark.measures.accuracy.curves import LEVELS
from rankeval_spark.measures.arrays import ratio

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix


Version: TypeAlias = Literal[9, 10]
"""Which trec_eval's numbers are wanted."""

OLD: Final = 9
"""The version before: single precision, another rounding of recall, fewer measures, and silent about missing topics."""


class TopicCounts(NamedTuple):
    """Documents of each topic that are retrieved, relevant, both, and retrieved and judged: float64, (n_topics, 1)."""

    n_retrieved: FloatMatrix
    n_relevant: FloatMatrix
    n_hits: FloatMatrix
    n_judged_retrieved: FloatMatrix


N = TypeVar("N", int, float)

Count: TypeAlias = Callable[[TopicCounts], "FloatMatrix"]
Text: TypeAlias = Literal["runid", "num_q", "relstring"]
Summary: TypeAlias = Literal["mean", "sum", "geometric mean"]


@dataclass(frozen=True)
class Line:
    """One line for each topic and one for all of them."""

    name: str  # as it is printed
    of: Measure | Count | Text  # what it shows: a measure, something counted, or one of the texts that are no measure
    summary: Summary = "mean"  # what the line for all topics shows; of a ``sum``, lines are whole numbers
    n_characters: int = 10  # of ``relstring``: how many ranks it shows

    @property
    def is_for_topics(self) -> bool:
        """Whether topics have the line; a geometric mean is only one of all."""
        return self.summary != "geometric mean" and self.of not in {"runid", "num_q"}

    @property
    def is_for_all(self) -> bool:
        """Whether there is a line for all topics."""
        return self.of != "relstring"


_CUTOFFS: Final = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_MULTIPLES: Final = tuple(fifths / 5 for fifths in range(1, 11))

_WHOLE: Final[Mapping[str, str]] = {
    "map": "AP",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "recip_rank": "RR",
    "infAP": "infAP",
    "11pt_avg": "IPrecAvg(need='{need}')",
    "ndcg": "nDCG",
    "set_P": "SetP",
    "set_relative_P": "SetP(relative=True)",
    "set_recall": "SetR",
}
"""Measures of the whole list that take no parameter: ours of the same value."""

_GEOMETRIC: Final[Mapping[str, str]] = {"gm_map": "AP", "gm_bpref": "Bpref"}
"""Names that report only a geometric mean: the measure that it is a mean of."""

_AT_CUTOFFS: Final[Mapping[str, tuple[str, Sequence[int]]]] = {
    "P": ("P", _CUTOFFS),
    "recall": ("R", _CUTOFFS),
    "ndcg_cut": ("nDCG", _CUTOFFS),
    "map_cut": ("AP", _CUTOFFS),
    "relative_P": ("P(denom='min')", _CUTOFFS),
    "success": ("Success", (1, 5, 10)),
    "unj": ("unj", (5, 10, 20)),
}
"""Measures at cutoffs: ours, and the cutoffs where none are named."""

_AT_NUMBERS: Final[Mapping[str, tuple[str, Sequence[float]]]] = {
    "iprec_at_recall": ("IPrec(need='{need}',recall={number!r})", LEVELS),
    "Rprec_mult": ("Rprec_mult(x={number!r})", _MULTIPLES),
}
"""Measures at numbers: ours, and the numbers where none are named."""

_COUNTED: Final[Mapping[str, tuple[Count, Summary]]] = {
    "num_ret": (lambda n: n.n_retrieved, "sum"),
    "num_rel": (lambda n: n.n_relevant, "sum"),
    "num_rel_ret": (lambda n: n.n_hits, "sum"),
    "num_nonrel_judged_ret": (lambda n: n.n_judged_retrieved - n.n_hits, "sum"),
    "utility": (lambda n: n.n_hits - (n.n_retrieved - n.n_hits), "mean"),
    "set_map": (lambda n: ratio(n.n_hits**2, n.n_retrieved * n.n_relevant), "mean"),
}
"""What follows from counts alone, without a measure of ours."""

_TEXTS: Final[Mapping[str, Text]] = {"runid": "runid", "num_q": "num_q"}

_OFFICIAL: Final = (
    *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret"),
    *("map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P"),
)
_ALL: Final = (
    *_OFFICIAL,
    *("relstring", "recall", "infAP", "gm_bpref", "Rprec_mult", "utility", "11pt_avg"),
    *("ndcg", "ndcg_cut", "map_cut", "relative_P", "success"),
    *("set_P", "set_relative_P", "set_recall", "set_map", "set_F", "num_nonrel_judged_ret", "unj"),
)
"""Every name, in the order in which trec_eval prints them."""

NICKNAMES: Final[Mapping[str, Sequence[str]]] = {
    "official": _OFFICIAL,
    "set": (*_OFFICIAL[:5], "utility", "set_P", "set_recall", "set_relative_P", "set_map", "set_F"),
    "all_trec": _ALL,
}

_SINCE_10: Final = frozenset({"rbp", "rbp_resid", "unj"})
"""Measures that trec_eval 9 does not have; of all others both versions have the same names."""

_NEED: Final[Mapping[Version, str]] = {9: "v9", 10: "v10"}
"""How recall is rounded, as in IPrec."""

_NOT_OURS: Final[Mapping[str, str]] = {
    "rbp": "it scales grades by those of the topic; ours is -m 'RBP(p=0.9)'",
    "rbp_resid": "it is 0 where every document is judged; ours is -m 'RBPResidual(p=0.9)'",
    "yaap": "it is a function of AP and R; ours is -m map",
    **dict.fromkeys(("binG", "G", "ndcg_rel", "Rndcg"), "ours of graded relevance is -m ndcg or -m 'nERR(max_rel=4)'"),
}
"""Measures of trec_eval that are left out, and what to take instead."""


def requested_lines(texts: Sequence[str], *, level: float, version: Version) -> list[Line]:
    """Read the requested names, each once: trec_eval's in its own order, then ours as they were requested.

    ``texts`` are names of trec_eval with or without parameters (``P``, ``P.5,10``, ``P_5``), its nicknames, or measures
    of ours. From ``level`` a document is relevant; nDCG of trec_eval does not see it, nor a measure of ours that names
    its own ``rel``. Raises ConfigError for all names and parameters that are not known, or not to this version.
    """
    of_trec: dict[str, list[Line]] = {}
    ours: list[Line] = []
    faults: list[Fault] = []
    for text in texts:
        reader = _Reader(text, level, version)
        try:
            for name, parameters in reader.names():
                of_trec.setdefault(name, []).extend(reader.trec(name, parameters))
            ours += reader.ours()
        except FaultsError as error:
            faults += error.faults
    if faults:
        raise ConfigError(*faults)
    in_order = [line for name in _ALL for line in of_trec.get(name, [])]
    return list({line.name: line for line in [*in_order, *ours]}.values())


@dataclass(frozen=True)
class _Reader:
    """Reads one ``-m``."""

    text: str
    level: float
    version: Version

    @property
    def where(self) -> str:
        return f"-m {self.text}"

    def names(self) -> list[tuple[str, str]]:
        """Find the names of trec_eval that are meant, each with its parameters; none for a measure of ours."""
        name, _, parameters = self.text.partition(".")
        missing = _SINCE_10 if self.version == OLD else frozenset()
        if self.text in NICKNAMES:
            return [(each, "") for each in NICKNAMES[self.text] if each not in missing]
        printed = re.fullmatch(r"(?P<name>\w+?)_(?P<number>[0-9.]+)", self.text)
        if printed and printed["name"] in {*_AT_CUTOFFS, *_AT_NUMBERS}:
            name, parameters = printed["name"], printed["number"]
        if name in missing:
            fix = "leave --trec-eval 9 out, or take a measure of ours (rankeval measures)"
            raise ConfigError(Fault(self.where, f"{name}, which is new in trec_eval 10", "one of trec_eval 9", fix))
        if name in _NOT_OURS:
            raise ConfigError(Fault(self.where, "a measure that is not computed", "one of ours", _NOT_OURS[name]))
        return [(name, parameters)] if name in _ALL else []

    def ours(self) -> list[Line]:
        """Read a measure of ours."""
        if self.names():
            return []
        try:
            measure = Measure.parse(self.text, where=self.where)
        except UnknownMeasureError as error:
            known = [*_ALL, *NICKNAMES, *registry.all_names()]
            expected = f"one of trec_eval's ({', '.join([*_ALL, *NICKNAMES])}) or of ours (rankeval measures)"
            fix = nearest(re.split("[.(@]", self.text)[0], known)
            raise ConfigError(replace(error.faults[0], expected=expected, fix=fix)) from None
        self._refuse_what_topics_lack(measure)
        names_its_level = re.search(r"\brel\s*=", self.text, re.IGNORECASE)
        measure = measure if names_its_level else self._at_level(measure)
        return [Line(str(measure), measure)]

    def _refuse_what_topics_lack(self, measure: Measure) -> None:
        """Refuse a measure whose number is no mean over topics, or that reads more than the two files."""
        found = expected = ""
        requires = MeasureSet.of([measure]).requiring()
        if requires:
            found, expected = f"a measure of {', '.join(requires)}", "one of a run and its judgements"
        elif measure.needs_catalogue and measure.has_user_values:
            found, expected = "a measure of a catalogue", "one of a run and its judgements"
        elif not measure.has_user_values:
            found, expected = "a measure of all lists together", "one with a value a topic"
        elif measure.is_micro or measure.link != "identity":
            found, expected = f"{measure}, which is no mean over topics", "one that is"
        if found:
            raise ConfigError(Fault(self.where, found, expected, "rankeval run, or evaluate(), has it"))

    def trec(self, name: str, parameters: str) -> Iterator[Line]:
        """Yield the lines of a measure of trec_eval."""
        if name in _AT_CUTOFFS:
            form, cutoffs = _AT_CUTOFFS[name]
            for k in self._numbers(parameters, int) or cutoffs:
                yield Line(f"{name}_{k}", self._measure(f"{form}@{k}"))
        elif name in _AT_NUMBERS:
            form, numbers = _AT_NUMBERS[name]
            for number in self._numbers(parameters, float) or numbers:
                yield Line(f"{name}_{number:3.2f}", self._measure(form.format(number=number, need=_NEED[self.version])))
        elif name == "set_F":
            weight = next(iter(self._numbers(parameters, float)), 1.0)
            if not 0 < weight < math.inf:
                raise ConfigError(Fault(self.where, f"set_F.{parameters}", "a weight above 0"))
            ours = self._measure(f"SetF(beta={math.sqrt(weight)!r})")  # their weight is the square of ours
            yield Line(f"{name}_{parameters}" if parameters else name, ours)
        elif name == "relstring":
            n_characters = next(iter(self._numbers(parameters, int)), Line.n_characters)
            yield Line(f"{name}_{parameters}" if parameters else name, "relstring", n_characters=n_characters)
        elif parameters:
            fix = f"-m 'nDCG(gains={{{parameters.replace('=', ':')}}})'" if name == "ndcg" else f"-m {name}"
            raise ConfigError(Fault(self.where, f"parameters {parameters!r}", f"none for {name}", fix))
        else:
            yield self._plain(name)

    def _plain(self, name: str) -> Line:
        """Build the line of a name that takes no parameters."""
        if name in _WHOLE:
            return Line(name, self._measure(_WHOLE[name].format(need=_NEED[self.version])))
        if name in _GEOMETRIC:
            return Line(name, self._measure(_GEOMETRIC[name]), "geometric mean")
        return Line(name, *(_COUNTED[name] if name in _COUNTED else (_TEXTS[name],)))

    def _measure(self, ours: str) -> Measure:
        return self._at_level(Measure.parse(ours, where=self.where))

    def _at_level(self, measure: Measure) -> Measure:
        """Set the relevance level where a measure has one."""
        if measure.entry.defaults.get("rel") is None:
            return measure
        try:
            return Measure.of(measure.name, k=measure.k, **{**measure.options, "rel": self.level})
        except ConfigError:
            return measure  # of graded gains, which have no level

    def _numbers(self, parameters: str, kind: Callable[[str], N]) -> list[N]:
        """Read numbers between commas, ascending."""
        try:
            return sorted({kind(part) for part in parameters.split(",")}) if parameters else []
        except ValueError:
            expected = "whole numbers between commas" if kind is int else "numbers between commas"
            raise ConfigError(Fault(self.where, f"parameters {parameters!r}", expected)) from None
