"""Defaults of figures: the newest night, the measure shown first, and the order of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, listed, nearest
from rankeval_spark.measures import Measure, with_cutoff
from rankeval_spark.measures.names import measure_of, split_group
from rankeval_spark.report.tables import distinct, keep, to_arrow

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.measures.definition import Better

MeasureKey: TypeAlias = tuple[str, int]  # label and cutoff of a measure
USUAL_CUTOFF: Final = 10
USUAL_FIRST: Final = ("nDCG", "AP", "R", "RR", "Success", "P")
"""Measures to show first if the order of the request is not known."""

QUESTIONS: Final[Mapping[str, frozenset[str]]] = {
    "hits": frozenset(
        [
            "P",
            "R",
            "F",
            "NumHits",
            "Rprec",
            "Rprec_mult",
            "SetP",
            "SetR",
            "SetF",
            "MAR",
            "MeanP",
            "CG",
            "nCG",
            "RecallCeiling",
        ]
    ),
    "hit rate": frozenset({"Success"}),
    "first hit": frozenset({"RR", "FirstHit"}),
    "judged share": frozenset({"Judged", "unj", "PredictedShare"}),
    "diversity": frozenset(["ILD", "ILS", "SRecall", "Calibration", "alpha_nDCG", "ERR_IA", "Personalization"]),
    "novelty": frozenset(
        ["MIUF", "SelfInfo", "EPC", "EFD", "Unexpectedness", "Serendipity", "Freshness", "NotInTrain"]
    ),
    "popularity": frozenset(["ARP", "APLT", "ACLT", "PopLift", "MeanPopRank", "PopREO", "PopRSP", "BiasDisparity"]),
    "agreement": frozenset({"Overlap", "Jaccard", "RBO"}),
}
"""Questions that measures answer; those of no other set answer that of their family."""

OF_FAMILIES: Final = {
    "accuracy": "ranking quality",
    "prediction": "predicted scores",
    "off_policy": "estimated reward",
    "beyond_accuracy": "diversity",
    "system": "coverage",
}
QUESTION_ORDER: Final = (
    *("ranking quality", "estimated reward", "predicted scores", "hit rate", "first hit", "hits", "coverage"),
    *("novelty", "diversity", "popularity", "agreement", "judged share"),
)
"""Order of figures, of which there is one a question."""

CURVE: Final = "IPrec"
SAMPLE: Final = "[.]sample-[0-9][0-9.e-]*$"
"""End of the name of a sample of the users, as a regular expression of Python, DuckDB and Spark."""

BEYOND_ACCURACY: Final = frozenset({"beyond_accuracy", "system"})
"""Families that describe lists, not how well they meet the held-out interactions."""


def newest_nights(has_means: Mapping[tuple[str, date], bool], evaluation: str | None = None) -> dict[str, date]:
    """Return the newest night with means by evaluation, or the newest one if none has means.

    ``has_means`` maps published evaluations and dates to whether anything was measured. Without ``evaluation``,
    samples of the users are left out, unless there are only samples.
    """
    names = set(chosen_evaluations((name for name, _ in has_means), evaluation))
    oldest_first = sorted(has_means, key=lambda night: (has_means[night], night[1]))
    return {name: day for name, day in oldest_first if name in names}


def chosen_evaluations(names: Iterable[str], evaluation: str | None = None) -> list[str]:
    """Return the named evaluation, else all that are no samples, else all samples.

    >>> chosen_evaluations(["nightly", "nightly.sample-0.01"]), chosen_evaluations(["nightly.sample-0.01"])
    (['nightly'], ['nightly.sample-0.01'])
    """
    every = sorted(set(names))
    if evaluation is not None:
        return [name for name in every if name == evaluation]
    return [name for name in every if not re.search(SAMPLE, name)] or every


def read_frame(frame: object, needed: Sequence[str], *, what: str, is_of_several_nights: bool = False) -> pa.Table:
    """Read a result frame of any library with the needed columns, of several nights the newest; ConfigError else.

    ConfigError too for rows of several evaluations. Frames of ``evaluate`` have neither evaluation nor night.
    """
    table = to_arrow(frame, what=what)
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        fix = f"pass {what} of evaluate(...) or of Results, or a frame with its columns"
        raise ConfigError(Fault(what, f"a frame without {', '.join(missing)}", f"the columns of {what}", fix))
    if is_of_several_nights:
        return table
    if C.EVALUATION in table.column_names:
        names = [name for (name,) in distinct(table, C.EVALUATION)]
        if len(names) > 1:
            fix = f"filter it, such as Results(...).metrics(evaluation={names[0]!r})"
            raise ConfigError(Fault(what, f"rows of {len(names)} evaluations", "those of one", fix))
    if C.EVALUATION_DATE in table.column_names and table.num_rows:
        return keep(table, **{C.EVALUATION_DATE: pc.max(table[C.EVALUATION_DATE]).as_py()})
    return table


def measures_of(table: pa.Table) -> list[MeasureKey]:
    """List the measures of a frame at their cutoffs, sorted by name."""
    return [(str(label), int(k)) for label, k in distinct(table, C.MEASURE, C.K)]


def find_measure(text: str, measures: Sequence[MeasureKey], *, where: str = "measure") -> MeasureKey:
    """Find a measure by its name with the cutoff, such as ``nDCG@10``; ConfigError if it is not known."""
    written = {with_cutoff(*key): key for key in measures}
    if text in written:
        return written[text]
    with suppress(ConfigError):
        measure = Measure.parse(text, where=where)
        if (measure.label, measure.k) in measures:
            return measure.label, measure.k
    read = measure_of(text)
    label = read.label if read is not None else text.rpartition("@")[0] or text
    near = [with_cutoff(label, k) for k in sorted(k for name, k in measures if name == label)]
    expected = f"one of: {listed(text, near or [*written])}" if written else "a measure, but the night has none"
    raise ConfigError(Fault(where, repr(text), expected, nearest(text, near or written)))


def headline_measure(computed: Sequence[MeasureKey], requested: Sequence[MeasureKey] = ()) -> MeasureKey | None:
    """Return the measure to show first: of the first label that was requested, the cutoff nearest to 10.

    >>> headline_measure([("P", 5), ("nDCG", 5), ("nDCG", 20)]), headline_measure([("P", 5), ("nDCG", 5)], [("P", 5)])
    (('nDCG', 5), ('P', 5))
    """
    rank = {label: place for place, label in enumerate(USUAL_FIRST)}
    usual = sorted(computed, key=lambda key: (rank.get(key[0], len(rank)), key))
    candidates = [key for key in (requested or usual) if key in computed]
    of_accuracy = (  # about the held-out interactions
        key for key in candidates if family_of(key[0]) not in BEYOND_ACCURACY and parent_of(key[0]) is None
    )
    first = next(of_accuracy, candidates[0] if candidates else None)
    return None if first is None else _choose_cutoff(first[0], candidates)


def headlines(
    computed: Sequence[MeasureKey], requested: Sequence[MeasureKey], *, first: MeasureKey, at_most: int
) -> list[MeasureKey]:
    """Return one cutoff of each requested measure, that of the first if it has it; no parts with their own figures."""
    labels = dict.fromkeys([first[0], *(label for label, _ in requested if parent_of(label) is None)])
    chosen = []
    for label in labels:
        cutoffs = [key for key in computed if key[0] == label]
        if cutoffs:
            chosen.append((label, first[1]) if (label, first[1]) in cutoffs else _choose_cutoff(label, cutoffs))
    return chosen[:at_most]


def question_of(label: str) -> str:
    """Return the question that a measure answers; the label where users or a later version define it.

    >>> [question_of(label) for label in ("nDCG(gains='binary')", "Success", "RR", "CatalogCoverage", "MIUF")]
    ['ranking quality', 'hit rate', 'first hit', 'coverage', 'novelty']
    """
    measure = measure_of(label)
    if measure is None or not measure.entry.is_builtin or measure.entry.family == "user_values":
        return label
    of_name = (question for question, names in QUESTIONS.items() if measure.name in names)
    return next(of_name, OF_FAMILIES.get(measure.entry.family, measure.entry.family))


def one_per_question(
    computed: Sequence[MeasureKey], requested: Sequence[MeasureKey], *, first: MeasureKey, at_most: int
) -> list[MeasureKey]:
    """Return the measure shown first, then the first requested measure of each other question."""
    chosen: dict[str, MeasureKey] = {}
    for measure in headlines(computed, requested, first=first, at_most=len(computed)):
        chosen.setdefault(question_of(measure[0]), measure)
    places = {question: place for place, question in enumerate(QUESTION_ORDER)}
    _, *others = sorted(chosen, key=lambda name: (chosen[name] != first, places.get(name, len(places))))
    return [first, *(chosen[name] for name in others)][:at_most]


def parent_of(label: str) -> str | None:
    """Return the curve or the measure over all items that a measure is a part of; None if it is no part."""
    measure = measure_of(label)
    if measure is None:
        return None
    if measure.name == CURVE:
        return CURVE
    whole = split_group(label)
    return None if whole is None else whole[0]


def family_of(label: str) -> str | None:
    """Return the family of a measure; None if this version does not know it."""
    measure = measure_of(label)
    return None if measure is None else measure.entry.family


def better_of(label: str) -> Better:
    """Return the better direction, if any; ``higher`` for a measure that this version does not know."""
    measure = measure_of(label)
    return "higher" if measure is None else measure.better


def is_lower_better(label: str) -> bool:
    """Return whether the lower value is the better one."""
    return better_of(label) == "lower"


def order_in_words(label: str) -> str:
    """Return the order of models by a measure, in words."""
    return "highest first" if better_of(label) == "neither" else "best first"


def best_first(values: Mapping[str, float | None], *, is_lower: bool) -> list[str]:
    """Order models by their value, best first; those without one come last."""

    def place(name: str) -> tuple[bool, float, str]:
        value = values[name]
        return (value is None, 0.0 if value is None else value if is_lower else -value, name)

    return sorted(values, key=place)


def _choose_cutoff(label: str, measures: Sequence[MeasureKey]) -> MeasureKey:
    """Choose the cutoff of a measure that is nearest to 10, the whole list last."""
    cutoffs = [k for name, k in measures if name == label]
    return label, min(cutoffs, key=lambda k: (k == C.WHOLE_LIST, abs(k - USUAL_CUTOFF), k))
