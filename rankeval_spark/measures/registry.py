"""All measures by their names, and the names with several meanings.

A measure is added in one place: a kernel decorated with its ``Definition``, in a module of a family, and its examples
in the YAML file next to it. Options, names, documentation, command line and the tests' coverage check follow.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from rankeval_spark.measures import definition
from rankeval_spark.measures.definition import normalise_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rankeval_spark.measures.definition import Definition, Kind, Options

PLACEHOLDERS: Final = ("k", "n")  # letters that stand for a cutoff in names of papers and other tools

_WITH_CUTOFF = re.compile(
    r"(?P<name>.+?)(?:(?:[\s._-]*[Aa]t[\s._-]*|[._])(?P<cutoff>\d+(?:\.\d+)?|[kKnN])|At)", re.DOTALL
)


class Match(NamedTuple):
    """Meaning of a name: a measure, the options that the name fixes, and the cutoff it ends in, if it does."""

    entry: Definition
    presets: Options
    cutoff: str | None


class Series(NamedTuple):
    """Meaning of a name that stands for one measure at several values of an option."""

    measure: str
    option: str
    values: tuple[str, ...]


SERIES: Final[Mapping[str, Series]] = dict.fromkeys(
    ("ipreccurve", "interpolatedprecisioncurve", "precisionrecallcurve", "11ptcurve"),
    Series("IPrec", "recall", ("0", *(f"0.{tenth}" for tenth in range(1, 10)), "1")),
)
"""Series by the normalised spellings of their names."""

KindOfMeanings: TypeAlias = Literal["measures", "options", "doubtful", "biased"]


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
        ("MRR", "ReciprocalRank", "MeanReciprocalRank"),
        "RR, 1 / rank of the first hit",
        "the sum of 1 / rank over all hits is ARHR",
    ),
    SeveralMeanings(
        ("ARHR", "AverageReciprocalHitRank", "AverageReciprocalHitRate"),
        "the sum of 1 / rank over all hits",
        "divided by the relevant items it is ARHR(denom='R'), by the hits ARHR(denom='hits'); of the first hit alone "
        "it is RR",
        ("denom",),
        "options",
    ),
    SeveralMeanings(
        ("HR", "Hit", "HitRate", "HitRatio"),
        "Success, whether a list has a hit, so that the mean is a share of users",
        "the share of all held-out items that are hit is R(agg='micro'), the number of hits NumHits",
    ),
    SeveralMeanings(
        ("AP", "MAP", "map_cut", "AveragePrecision", "MeanAveragePrecision"),
        "the sum of P@i at the hits divided by the number of relevant items R, as in trec_eval",
        "divided by min(R, k) it is AP(denom='min'), by k AP(denom='k'), by the length AP(denom='len'), by the hits "
        "AP(denom='hits'), by nothing AP(denom='none'); the mean of P@1 to P@k is MeanP",
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
        "with 2**gain - 1 it is dcg='exp-log2', as Järvelin and Kekäläinen dcg='jk2', with another discount by rank "
        "dcg='ln', 'log10', 'inverse', 'sqrt' or 'geometric', with gains of 0 and 1 "
        "gains='binary', and with k relevant items as the ideal ideal='k_ones'",
        ("dcg", "gains", "ideal"),
        "options",
    ),
    SeveralMeanings(
        ("AUC",),
        "of the held-out items that the list holds, user by user",
        "weighted by their number it is GAUC; of relevant items against the first k others of the list, PAUC; against "
        "all others of the catalogue, judged or not, CatalogAUC",
    ),
    *(
        SeveralMeanings(
            names,
            f"the mean of the users' {names[0]}",
            f"of all pairs at once, as in Surprise and scikit-learn, it is {names[0]}(agg='micro')",
            ("agg",),
            "options",
        )
        for names in (
            ("RMSE", "RootMeanSquaredError", "RootMeanSquareError"),
            ("MSE", "MeanSquaredError", "MeanSquareError"),
            ("MAE", "MeanAbsoluteError"),
        )
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
        ("Unexpectedness",),
        "the distance from the user's items in the training data",
        "the share of a list that another model does not recommend, as in RePlay, is 1 - Overlap",
    ),
    SeveralMeanings(
        ("ShannonEntropy",),
        "Entropy, of the shares that items have of all places, in bits",
        "RecBole divides a sum of natural logarithms by the number of items, Elliot takes the mean over users",
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
    SeveralMeanings(
        ("Hits",), "", "whether there is a hit is Success, the number of hits, as in ranx, NumHits, the share found R"
    ),
)
"""Names with several meanings in the field."""

_ERRORS: Final = "of the errors of predicted ratings there are RMSE, MSE and MAE"
_PERCENTILES: Final = "it needs the place of each held-out item among all items, which lists do not have"
_DIVERSIFIED: Final = "of the measures of ndeval there are alpha_nDCG, ERR_IA, P_IA and SRecall"
_ESTIMATORS: Final = "of the off-policy estimators there are IPS, ClippedIPS, SNIPS and DR"

NOT_OFFERED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("MPR", "mean percentile rank", "mean percentile ranking", "expected percentile rank"), _PERCENTILES
    ),
    **dict.fromkeys(("R2", "R squared", "coefficient of determination", "exp_var", "explained variance"), _ERRORS),
    **dict.fromkeys(("MAPE", "SMAPE", "NMAE", "RMSLE", "mean absolute percentage error"), _ERRORS),
    **dict.fromkeys(("ECE", "expected calibration error"), "Calibration is of the categories of items, not of scores"),
    **dict.fromkeys(("set_map", "SetAP"), "it is SetP times SetR"),
    **dict.fromkeys(("AP_IA", "MAP_IA", "NRBP", "nNRBP", "alpha_DCG"), _DIVERSIFIED),
    **dict.fromkeys(("direct method", "switch DR", "MRDR", "self-normalized doubly robust"), _ESTIMATORS),
}
"""Names of numbers that are looked for and not computed, each with what there is instead."""


def meanings_of(name: str) -> SeveralMeanings | None:
    """Return the meanings of a name, in any spelling, with or without a cutoff; None for one with a single meaning.

    >>> meanings_of("mrr").note("MRR")
    'MRR is RR, 1 / rank of the first hit; the sum of 1 / rank over all hits is ARHR'
    """
    spelling = normalise_name(split_cutoff(name)[0])
    return next((several for several in SEVERAL_MEANINGS if spelling in map(normalise_name, several.names)), None)


def discover(family: str) -> None:
    """Import a module, or every module of a package, so that its measures register themselves."""
    path = getattr(import_module(family), "__path__", ())
    for module in sorted(info.name for info in iter_modules(path)):
        import_module(f"{family}.{module}")


_ASKED: ContextVar[tuple[Definition, ...]] = ContextVar("_ASKED", default=())  # own measures of a call
LOADED: Final[dict[str, Definition]] = {}  # own measures of plugins, by name; the last one of a name counts
RECORDED: Final[dict[tuple[str, tuple[tuple[str, str], ...]], Definition]] = {}
"""Own measures that nights recorded and no plugin has, by name and what was recorded."""


@contextmanager
def knowing(own: Iterable[Definition]) -> Iterator[None]:
    """Know some own measures by their names within the block, before those of plugins."""
    token = _ASKED.set((*own, *_ASKED.get()))
    try:
        yield
    finally:
        _ASKED.reset(token)


def own_measures() -> tuple[Definition, ...]:
    """Own measures that are known: those of :func:`knowing`, then of plugins, then those that nights recorded."""
    return (*_ASKED.get(), *LOADED.values(), *reversed(RECORDED.values()))


def _find_own(name: str) -> Definition | None:
    """Look up an own measure by its name in any spelling; installed packages are asked where no other has it."""
    spelling = normalise_name(name)
    for own in own_measures():
        if normalise_name(own.name) == spelling:
            return own
    import_module("rankeval_spark.measures.plugins").load_installed()
    return next((own for own in LOADED.values() if normalise_name(own.name) == spelling), None)


def entries(kind: Kind | None = None) -> tuple[Definition, ...]:
    """Return the measures of this package, or those of a kind, by family and then in the order of definition."""
    return tuple(entry for entry in definition.DEFINED.values() if kind in (None, entry.kind))


def names() -> tuple[str, ...]:
    """Canonical names of all measures."""
    return tuple(definition.DEFINED)


def get(name: str) -> Definition:
    """Return the measure with a canonical name; KeyError for an unknown one."""
    own = next((own for own in own_measures() if own.name == name), None)
    return definition.DEFINED[name] if name in definition.DEFINED or own is None else own


def all_names() -> tuple[str, ...]:
    """Canonical names and aliases, as they are written in the definitions."""
    return tuple(spelling for entry in entries() for spelling in (entry.name, *entry.aliases))


def split_cutoff(name: str) -> tuple[str, str | None]:
    """Split the cutoff off a name that ends in one, such as ``ndcg_cut_10``, ``recall_at_10`` or ``precisionAtK``.

    >>> split_cutoff("recall_at_10"), split_cutoff("precisionAtK"), split_cutoff("hit_rate")
    (('recall', '10'), ('precision', 'K'), ('hit_rate', None))
    """
    is_whole = normalise_name(name) in definition.SPELLINGS or any(
        normalise_name(own.name) == normalise_name(name) for own in own_measures()
    )
    found = None if is_whole else _WITH_CUTOFF.fullmatch(name)
    return (found["name"], found["cutoff"]) if found else (name, None)


def find(name: str) -> Match | None:
    """Look a name up, in any case and with any of ``_ -`` between its words: that of a measure or an alias.

    The name may end in a cutoff, as :func:`split_cutoff` splits it off.

    >>> match = registry.find("relative_P_5")
    >>> match.entry.name, dict(match.presets), match.cutoff
    ('P', {'denom': 'min'}, '5')
    """
    if builtin := find_builtin(name):
        return builtin
    spelling, cutoff = split_cutoff(name)
    own = _find_own(spelling)
    return None if own is None else Match(own, {}, cutoff)


def find_builtin(name: str) -> Match | None:
    """Look up a name among those of this package alone."""
    spelling, cutoff = split_cutoff(name)
    known = definition.SPELLINGS.get(normalise_name(spelling))
    return known and Match(definition.DEFINED[known[0]], known[1], cutoff)
