"""Precision and recall, and their averages over hits and cutoffs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.accuracy.cumulated_gain import relevance_levels
from rankeval_spark.measures.arrays import BoolMatrix, FloatMatrix, Ratio, divide_or_zero, nan_unless, prefix_sums
from rankeval_spark.measures.definition import NO_RELEVANT, Cutoff, Definition, OptionRule, only_with
from rankeval_spark.measures.lists import CutLists, memoised
from rankeval_spark.measures.options import Above, GainMap, Level, NotOffered, RecallWeight
from rankeval_spark.measures.required_facts import VALUES


@Definition(
    name="P",
    words="precision at k, share of hits, fraction of relevant recommendations, positive predictive value",
    aliases={"Precision": {}, "Prec": {}, "relative_P": {"denom": "min"}},
    formula="h_k / k",
    source="trec_eval P and relative_P; denom='len' as LensKit and Evidently",
    cutoff=Cutoff("required").but("optional", denom="len"),
    has_mean_over_ties=True,
)
def precision(
    cut: CutLists,
    *,
    denom: Annotated[
        Literal["k", "len", "min"],
        "Divisor of the hits: k; the items at ranks 1..k; the most hits possible, min(k, R).",
    ] = "k",
    rel: Level = 1,
) -> Ratio:
    """Share of the first k recommendations that are relevant.

    h_k are the relevant items at ranks 1..k; 0 without a list.

    >>> batch = Lists.of([Ranking([1, None, 1, None])])
    >>> precision(batch.cut([1, 5])).values, precision(batch.cut([1, 5]), denom="min").values
    (array([[1. , 0.4]]), array([[1., 1.]]))
    """
    n_relevant = cut.n_relevant(rel)
    possible = {"k": cut.k, "len": cut.n_items, "min": np.minimum(cut.k, n_relevant)}[denom]
    return Ratio(cut.hits(rel), possible, where=n_relevant > 0)


_RECALLS: Final = {
    **{"Recall": {}, "RecallCap": {"denom": "min"}, "CalibratedRecall": {"denom": "min"}},
    **{"RepeatRecall": {"group": "repeat"}, "ExploreRecall": {"group": "explore"}},
}


@Definition(
    name="R",
    words="recall at k, sensitivity, true positive rate, share of relevant items found",
    aliases=_RECALLS,
    formula="h_k / R",
    undefined=f"{NO_RELEVANT}; with gains='value': none with a positive value",
    source="trec_eval recall; denom='min' as LensKit and BEIR's recall_cap; group='repeat' and 'explore' as "
    "Li et al. (2023), A next basket recommendation reality check",
    rules=(
        OptionRule(
            "gains='value' only with denom='R'", lambda options: options["gains"] == "value" and options["denom"] != "R"
        ),
        only_with("weighted", None, "denom", "R"),
    ),
    needs=lambda gains, **_: (VALUES,) if gains == "value" else (),
    has_mean_over_ties=True,
    is_bounded_by_gains=lambda gains, group, **_: gains != "value" and group is None,
    weighted=True,
)
def recall(
    cut: CutLists,
    *,
    denom: Annotated[
        Literal["R", "min"],
        "Divisor of the hits: the relevant items R; those that k places can hold, min(R, k).",
    ] = "R",
    gains: Annotated[
        Literal["binary", "value"],
        "Worth of a relevant item: 1; the value that the held-out table has next to its gain, 0 if negative.",
    ] = "binary",
    rel: Level = 1,
) -> Ratio:
    """Share of the relevant items that are among the first k recommendations.

    >>> batch = Lists.of([Ranking([1, None, 1, None], missed=[1] * 6)])
    >>> recall(batch.cut([1, 5])).values, recall(batch.cut([1, 5]), denom="min").values
    (array([[0.125, 0.25 ]]), array([[1. , 0.4]]))
    """
    if gains == "value":
        lists = cut.lists
        of_hits, of_judged = (np.maximum(values, 0.0) for values in lists.values)
        of_hits, of_judged = of_hits * (lists.hit_gain >= rel), of_judged * (lists.judged_gain >= rel)
        found, possible, share = cut.sum_hits(of_hits), lists.sum_judged(of_judged), None
        if not np.isfinite(possible).all():
            smaller = cut.sum_hits(np.ldexp(of_hits, -512)), lists.sum_judged(np.ldexp(of_judged, -512))
            share = np.where(np.isfinite(possible), divide_or_zero(found, possible), divide_or_zero(*smaller))
        return Ratio(found, possible, value=share)
    n_relevant = cut.n_relevant(rel)
    return Ratio(cut.hits(rel), n_relevant if denom == "R" else np.minimum(n_relevant, cut.k))


@Definition(
    name="F",
    words="F-measure, F1 score, F-beta score, F-score, harmonic mean of precision and recall, Dice coefficient",
    aliases={
        **{name: {"beta": 1.0} for name in ("F1", "F1Score")},
        **{name: {} for name in ("FMeasure", "FBeta", "FScore", "F1Beta")},
        **{"F2": {"beta": 2.0}, "F0.5": {"beta": 0.5}},
    },
    formula="(1 + b^2) P R / (b^2 P + R), b = beta; 0 where P = R = 0",
    source="van Rijsbergen (1979), Information Retrieval, chapter 7",
    cutoff=Cutoff("required"),
    printed_as={"F1": {"beta": 1.0}},
    has_mean_over_ties=True,
)
def f_measure(cut: CutLists, *, beta: RecallWeight = 1, rel: Level = 1) -> Ratio:
    """Weighted harmonic mean of precision and recall at k.

    ``(1 + b^2) h_k / (b^2 R + k)`` needs no case for P = R = 0. P = 2/5 and R = 1/2 make F1 = 4/9.

    >>> f_measure(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([5])).values
    array([[0.44444444]])
    """
    n_relevant = cut.n_relevant(rel)
    return Ratio((1 + beta**2) * cut.hits(rel), beta**2 * n_relevant + cut.k, where=n_relevant > 0)


@Definition(
    name="NumHits",
    words="number of hits, hit count, hits, true positives, relevant retrieved",
    aliases={"num_rel_ret": {}, "NumRelRet": {}, "NumberOfHits": {}},
    formula="h_k",
    bounds=(0, math.inf),
    source="ranx hits; trec_eval num_rel_ret",
    has_mean_over_ties=True,
    weighted=True,
)
def num_hits(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Count of relevant items among the first k recommendations.

    Whole numbers from 0 to min(k, R).

    >>> num_hits(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([1, 2, 5]))
    array([[0., 1., 2.]])
    """
    return nan_unless(cut.hits(rel), cut.n_relevant(rel) > 0)


@Definition(
    name="Rprec",
    words="R-precision, precision at R, break-even point",
    aliases={"RPrecision": {}, "R-Precision": {}},
    formula="h_R / R; with a cutoff h_min(R, k) / min(R, k)",
    source="trec_eval Rprec",
    has_mean_over_ties=True,
)
def r_precision(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Precision at rank R, the number of relevant items.

    >>> r_precision(Lists.of([Ranking([1, None, None, 1, 1, None])]).cut([2, 0])).values
    array([[0.5       , 0.33333333]])
    """
    return _precision_at(cut, cut.n_relevant(rel), rel)


@Definition(
    name="Rprec_mult",
    words="R-precision at a multiple of R",
    aliases={"RPrecisionMultiple": {}},
    formula="h_c / c with c = int(x R + 0.9)",
    source="trec_eval Rprec_mult",
    cutoff=Cutoff("forbidden"),
    always_printed=("x",),
    after_at="x",
    has_mean_over_ties=True,
)
def r_precision_at_multiple(
    cut: CutLists,
    *,
    rel: Level = 1,
    x: Annotated[
        float,
        Above(0),
        "The multiple; always printed. `Rprec_mult@0.2` and trec_eval's `Rprec_mult_0.20` are read as x = 0.2.",
    ] = 1,
) -> Ratio:
    """Precision at a multiple of R, the number of relevant items.

    0 where c = 0.

    >>> r_precision_at_multiple(Lists.of([Ranking([1, None, None, 1, 1, None])]).cut([0]), x=2).values
    array([[0.5]])
    """
    return _precision_at(cut, np.floor(x * cut.n_relevant(rel) + 0.9), rel)


def _precision_at(cut: CutLists, depth: FloatMatrix, rel: float) -> Ratio:
    """Precision at a rank of each list's own, ``depth`` of shape (n_lists, 1), or at k where that is less."""
    lists, n_relevant = cut.lists, cut.n_relevant(rel)
    is_within = lists.hit_rank <= depth[lists.hit_list, 0]
    hits = cut.sum_hits(lists.relevance(rel).is_relevant * is_within)
    return Ratio(hits, np.minimum(depth, cut.k), where=n_relevant > 0)


@Definition(
    name="SetP",
    words="precision of the whole list, set precision",
    aliases={"set_P": {}, "SetPrecision": {}, "set_relative_P": {"relative": True}},
    formula="h_n / n",
    source="trec_eval set_P and set_relative_P; ir_measures SetP",
    cutoff=Cutoff("forbidden"),
    is_bounded_by_gains=True,
)
def set_precision(
    cut: CutLists,
    *,
    rel: Level = 1,
    relative: Annotated[bool, "Whether hits are divided by how many there can be, min(n, R), instead of by n."] = False,
) -> Ratio:
    """Share of all recommended items that are relevant.

    n is the number of items of the list; 0 without one.

    >>> set_precision(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0])).values
    array([[0.4]])
    """
    whole = precision(cut, denom="len", rel=rel)
    if not relative:
        return whole
    return Ratio(whole.numerator, np.minimum(whole.denominator, cut.n_relevant(rel)), where=whole.is_defined)


@Definition(
    name="SetR",
    words="recall of the whole list, set recall",
    aliases={"set_recall": {}, "set_R": {}, "SetRecall": {}},
    formula="h_n / R",
    source="trec_eval set_recall",
    cutoff=Cutoff("forbidden"),
    is_bounded_by_gains=True,
    judged_only=False,
    weighted=True,
)
def set_recall(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Share of the relevant items that are recommended at all.

    n is the length of the list.

    >>> set_recall(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0])).values
    array([[0.5]])
    """
    return recall(cut, rel=rel)


@Definition(
    name="SetF",
    words="F-measure of the whole list, set F-measure",
    aliases={"set_F": {}},
    formula="(1 + b^2) P R / (b^2 P + R) with P = SetP, R = SetR, b = beta; 0 where P = R = 0",
    source="trec_eval set_F, whose parameter is beta squared",
    cutoff=Cutoff("forbidden"),
    is_bounded_by_gains=True,
)
def set_f_measure(cut: CutLists, *, beta: RecallWeight = 1, rel: Level = 1) -> Ratio:
    """Weighted harmonic mean of precision and recall of the whole list.

    ``(1 + b^2) h_n / (b^2 R + n)``; 0 without a hit.

    >>> set_f_measure(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0])).values
    array([[0.44444444]])
    """
    n_relevant = cut.n_relevant(rel)
    return Ratio((1 + beta**2) * cut.hits(rel), beta**2 * n_relevant + cut.n_items, where=n_relevant > 0)


_UNDEFINED: Final = "no relevant judgement (R = 0); a catalogue of fewer items than k and those that were missed"


def _confusion(cut: CutLists, rel: float) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix, FloatMatrix, BoolMatrix]:
    """Count true and false positives, false and true negatives in the catalogue, shape (n_lists, n_cutoffs).

    The last is where they are defined: there are relevant items, and the catalogue holds those recommended and missed.
    """
    hits = cut.hits(rel)
    missed = cut.n_relevant(rel) - hits
    places = np.where(np.isfinite(cut.k), cut.k, 0.0)  # the whole list, which has no k, is never requested
    n_catalogue = cut.lists.known_items.totals[N.CATALOGUE_ITEMS][:, None]
    others = n_catalogue - places - missed
    return hits, places - hits, missed, others, (cut.n_relevant(rel) > 0) & (others >= 0)


@Definition(
    name="ClassAccuracy",
    words="classification accuracy, accuracy of classes, accuracy",
    formula="(TP + TN) / |T|, TP = h_k, TN = |T| - k - (R - h_k)",
    undefined=_UNDEFINED,
    source="RecTools Accuracy",
    cutoff=Cutoff("required"),
    needs=(N.CATALOGUE_ITEMS,),
    needs_catalogue=True,
)
def class_accuracy(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Share of the catalogue that the first k places classify rightly; its use is not advised.

    >>> batch = Lists.of([Ranking([1, None, None], missed=[1], background=Background(catalogue=10))])
    >>> class_accuracy(batch.cut([1, 3]))
    array([[0.9, 0.7]])
    """
    tp, fp, fn, tn, is_defined = _confusion(cut, rel)
    return nan_unless(divide_or_zero(tp + tn, tp + fp + fn + tn), is_defined)


@Definition(
    name="MCC",
    words="Matthews correlation coefficient, phi coefficient",
    aliases={"MatthewsCorrelation": {}},
    formula="(TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN)); 0 where the root is 0",
    bounds=(-1, 1),
    undefined=_UNDEFINED,
    source="Matthews (1975); RecTools MCC",
    cutoff=Cutoff("required"),
    needs=(N.CATALOGUE_ITEMS,),
    needs_catalogue=True,
)
def matthews_correlation(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Correlation of being among the first k with being relevant, over the whole catalogue; its use is not advised.

    >>> batch = Lists.of([Ranking([1, None, None], missed=[1], background=Background(catalogue=10))])
    >>> matthews_correlation(batch.cut([3])).round(4)
    array([[0.2182]])
    """
    tp, fp, fn, tn, is_defined = _confusion(cut, rel)
    root = np.sqrt(np.where(is_defined, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn), 0.0))
    return nan_unless(divide_or_zero(tp * tn - fp * fn, root), is_defined)


Floor: TypeAlias = Annotated[
    float, Above(0, below=1), "Least average precision that is distinguished, because the logarithm of 0 is infinite."
]


HitDivisor: TypeAlias = Annotated[
    Literal["R", "min", "k", "len", "hits", "none"],
    "Divisor of the sum: the relevant items R; min(R, k); k; min(R, k, n); the hits h_k; none.",
]

NO_MICRO_SUM: Final = OptionRule(
    "agg='micro' not with denom='none': without a denominator the micro average is the mean",
    lambda options: options["agg"] == "micro" and options["denom"] == "none",
)


Levels: TypeAlias = Annotated[
    Literal["binary"] | GainMap,
    NotOffered("grade", "say what each grade is worth: gains={1:1,2:2}"),
    "From which grade an item is relevant: `rel`; each grade of the map, the sums weighted by the gain that it adds. A "
    "grade above 0 that the map does not hold is an error.",
]

_AP_RULES: Final = (
    NO_MICRO_SUM,
    only_with("weighted", None, "denom", "R", "hits", "none"),
    only_with("weighted", None, "gains", "binary"),
    only_with("rel", 1, "gains", "binary"),
)


def sum_of_levels(levels: Sequence[tuple[float, float]], value: Callable[[float], FloatMatrix]) -> FloatMatrix:
    """Sum what holds at each level of relevance, times its weight."""
    (first, weight), *others = levels
    total = value(first) if weight == 1 else weight * value(first)
    for level, weight in others:
        total = total + weight * value(level)
    return total


def divisor_of_hits(cut: CutLists, denom: str, rel: float) -> FloatMatrix:
    """Return what a sum over hits is divided by, one of :data:`HitDivisor`: (n_lists, n_cutoffs), or broadcastable."""
    n_relevant = cut.n_relevant(rel)
    match denom:
        case "none":
            return np.ones((1, 1))
        case "hits":
            return cut.hits(rel)
        case "k":
            return cut.k
    return {"R": n_relevant, "min": np.minimum(n_relevant, cut.k), "len": np.minimum(n_relevant, cut.n_items)}[denom]


@Definition(
    name="AP",
    words="average precision, mean average precision, area under the precision-recall curve, PR AUC, sum of "
    "precisions, graded average precision, GAP",
    aliases={
        **{name: {} for name in ("MAP", "map_cut", "AveragePrecision", "MeanAveragePrecision")},
        **{name: {"denom": "min"} for name in ("apk", "mapk", "MeanAveragePrecisionAt", "MeanAveragePrecisionAtK")},
        "SumOfPrecisions": {"denom": "none"},
    },
    formula="(1 / R) sum_{i<=k} r_i h_i / i",
    bounds=(0, math.inf),
    at_most=lambda denom, **_: math.inf if denom == "none" else 1.0,
    source="trec_eval map and map_cut; weighted=True as TensorFlow Ranking; denominators after Tamm et al. (2021), "
    "Quality metrics in recommender systems: do we calculate metrics consistently?; a map of gains: Robertson, "
    "Kanoulas & Yilmaz (2010), Extending average precision to graded relevance judgments",
    cutoff=Cutoff("optional").but("required", denom="k"),
    rules=_AP_RULES,
    has_mean_over_ties=lambda denom, **_: denom != "hits",
    is_bounded_by_gains=lambda denom, group, **_: denom != "hits" and group is None,
    weighted=True,
)
def average_precision(
    cut: CutLists,
    *,
    denom: HitDivisor = "R",
    gains: Levels = "binary",
    rel: Level = 1,
) -> Ratio:
    """Precision at the rank of each hit, summed and divided by the hits that could have been; its mean is MAP.

    ``denom`` may take the place of R; 0 without a hit. Hits at ranks 2 and 3 with R = 2 are (1/2 + 2/3) / 2.

    >>> average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).values
    array([[0.25      , 0.58333333]])
    """
    levels = relevance_levels(gains, rel, cut.lists)
    total = sum_of_levels(levels, partial(_sum_precisions, cut))
    n_relevant = sum_of_levels(levels, cut.n_relevant)
    divisor = np.ones((1, 1)) if denom == "none" else sum_of_levels(levels, partial(divisor_of_hits, cut, denom))
    return Ratio(total, divisor, where=n_relevant > 0)


@memoised
def _sum_precisions(cut: CutLists, rel: float) -> FloatMatrix:
    """Sum the precisions at the ranks of the relevant items up to every cutoff."""
    relevance = cut.lists.relevance(rel)
    return cut.sum_hits(relevance.is_relevant * relevance.n_above / cut.lists.hit_rank)


@Definition(
    name="LogAP",
    words="logarithm of average precision",
    formula="ln max(AP@k, floor)",
    bounds=(-math.inf, 0),
    source="trec_eval gm_map before its mean is raised; Robertson (2006), On GMAP and other transformations",
    without_relevant=lambda floor, **_: math.log(floor),
)
def log_average_precision(cut: CutLists, *, floor: Floor = 1e-5, rel: Level = 1) -> FloatMatrix:
    """Logarithm of average precision; the exponential of its mean is GMAP, the geometric mean.

    From ln(floor), also without a list, to 0. AP is 1/4 and 7/12 here:

    >>> log_average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).round(4)
    array([[-1.3863, -0.539 ]])
    """
    precision = average_precision(cut, rel=rel)
    return nan_unless(np.log(np.maximum(precision.values, floor)), precision.is_defined)


@Definition(
    name="GMAP",
    words="geometric mean average precision",
    aliases={"gm_map": {}, "GeometricMAP": {}, "GeometricMeanAveragePrecision": {}},
    formula="exp(mean over users of ln max(AP@k, floor))",
    bounds=(-math.inf, 0),
    source="trec_eval gm_map; Robertson (2006), On GMAP and other transformations",
    link="log",
    without_relevant=lambda floor, **_: math.log(floor),
)
def geometric_average_precision(cut: CutLists, *, floor: Floor = 1e-5, rel: Level = 1) -> FloatMatrix:
    """Geometric mean of the users' average precision; the value of a user is its logarithm.

    Users have logarithms, from ln(floor) to 0.

    >>> geometric_average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).round(4)
    array([[-1.3863, -0.539 ]])
    """
    return log_average_precision(cut, floor=floor, rel=rel)


@Definition(
    name="MAR",
    words="mean average recall, average recall",
    aliases={"MeanAverageRecall": {}},
    formula="sum_{i<=k} r_i R@i / R; kind='hits_min': sum_{i<=k} r_i R@i / min(R, k); "
    "kind='cutoffs': (1 / k) sum_{j=1..k} R@j",
    source="kind='hits_R' as Evidently, 'hits_min' as WarpRec, 'cutoffs' as Elliot",
    cutoff=Cutoff("optional").but("required", kind="cutoffs"),
    rules=(only_with("weighted", None, "kind", "cutoffs"),),
    always_printed=("kind",),
    has_mean_over_ties=True,
    weighted=True,
)
def mean_average_recall(
    cut: CutLists,
    *,
    kind: Annotated[
        Literal["hits_R", "hits_min", "cutoffs"],
        "What is averaged: recall at the rank of each hit, divided by the relevant items R or by min(R, k); recall "
        "at each of the cutoffs 1..k. Three unrelated numbers carry the name, so the kind is always printed.",
    ] = "hits_R",
    rel: Level = 1,
) -> Ratio:
    """Recall averaged over the ranks of the hits, or over the cutoffs up to k.

    A hit at rank i counts for the cutoffs i..k; 0 without a hit.

    >>> cut = Lists.of([Ranking([1, None, 1, None])]).cut([1, 2, 3])
    >>> mean_average_recall(cut).values, mean_average_recall(cut, kind="cutoffs").values
    (array([[0.25, 0.25, 0.75]]), array([[0.5 , 0.5 , 0.66666667]]))
    """
    relevance, n_relevant = cut.lists.relevance(rel), cut.n_relevant(rel)
    if kind == "cutoffs":
        n_missed_cutoffs = cut.sum_hits(relevance.is_relevant * (cut.lists.hit_rank - 1))
        return Ratio(cut.hits(rel) - n_missed_cutoffs / cut.k, n_relevant)
    hits_at_hits = cut.sum_hits(relevance.is_relevant * relevance.n_above)
    divisor = n_relevant if kind == "hits_R" else np.minimum(n_relevant, cut.k)
    return Ratio(divide_or_zero(hits_at_hits, n_relevant), divisor)


@Definition(
    name="MeanP",
    words="mean precision, precision averaged over cutoffs",
    aliases={"MeanPrecision": {}},
    formula="(1 / k) sum_{j=1..k} h_j / j",
    source="what Elliot calls MAP",
    cutoff=Cutoff("required"),
    has_mean_over_ties=True,
)
def mean_precision(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Precision averaged over the cutoffs 1..k.

    A hit at rank i adds ``1/i + ... + 1/k``, a difference of two harmonic numbers.

    >>> mean_precision(Lists.of([Ranking([1, None, 1, None])]).cut([1, 2, 3]))
    array([[1. , 0.75 , 0.72222222]])
    """
    relevance = cut.lists.relevance(rel)
    k_max = int(cut.k[np.isfinite(cut.k)].max(initial=0))
    harmonic = prefix_sums(1 / np.arange(1, k_max + 1))  # 1 + 1/2 + ... + 1/i for i = 0..k
    at_cutoff = harmonic[np.minimum(cut.k, k_max).astype(np.int64)]
    above_hit = harmonic[np.minimum(cut.lists.hit_rank - 1, k_max)]
    total = cut.hits(rel) * at_cutoff - cut.sum_hits(relevance.is_relevant * above_hit)
    return nan_unless(total / cut.k, relevance.n_relevant > 0)
