"""Gains added up over the ranks, with a discount and relative to the best order there could be."""

from __future__ import annotations

import math
from typing import Final, Literal

from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.needs import VALUES
from rankeval_spark.measures.options import GainMap, Level
from rankeval_spark.measures.registry import Cutoff, Definition, Rule
from rankeval_spark.measures.weighting import Dcg, Gains, Ideal, Unjudged, Weighting

_NO_GAIN = (
    "no judgement with a positive gain; with gains='binary': no relevant one (R = 0); with 'value': no such value"
)
_JARVELIN = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques"
_BURGES = "Burges et al. (2005), Learning to rank using gradient descent"

_REL_IS_BINARY: Final = Rule(
    "rel only with gains='binary'", lambda options: options["rel"] != 1 and options["gains"] != "binary"
)
_ONES_ARE_BINARY: Final = Rule(
    "ideal='k_ones' only with gains='binary'",
    lambda options: options["ideal"] == "k_ones" and options["gains"] != "binary",
)
_VALUES_ARE_NOT_RAISED: Final = Rule(
    "dcg='exp-log2' not with gains='value': 2 to the power of an amount says nothing",
    lambda options: options["dcg"] == "exp-log2" and options["gains"] == "value",
)
_UNJUDGED_IN_IDEAL: Final = Rule(
    "unjudged='mean' and 'median' only with ideal='judged' and 'len'",
    lambda options: options["unjudged"] != "zero" and options["ideal"] not in {"judged", "len"},
)
_NONE_IS_LEFT: Final = Rule(
    "judged_only=True not with unjudged='mean' or 'median': the lists then hold no item without a judgement",
    lambda options: options["judged_only"] is True and options["unjudged"] != "zero",
)
_IDEAL_CUTOFF: Final = Cutoff("optional").but("required", ideal="k_ones").but("required", unjudged="mean")
_NORMALISED_CUTOFF: Final = _IDEAL_CUTOFF.but("required", unjudged="median")
"""An ideal list of ones, or of items without a judgement that are worth something, has no end of its own."""


def _needs(*, gains: Gains, **_: object) -> tuple[str, ...]:
    """Name what the gains are read from, where that is not the gains of the judgements."""
    return (VALUES,) if gains == "value" else ()


def _is_bounded_by_gains(  # every other option leaves the better item the one with the greater gain
    *, gains: Gains, unjudged: Unjudged, group: str | None, ideal: Ideal = "judged", **_: object
) -> bool:
    """Return True if descending gains are the best order of tied items, and ascending gains the worst.

    Where a map gives grade 0 a gain it is not: an item without a judgement has gain 0 too.
    """
    if isinstance(gains, GainMap) and gains.grades[0] == 0:
        return False
    return gains != "value" and unjudged == "zero" and ideal != "retrieved" and group is None


def normalised_gain_parts(  # noqa: PLR0913 - as of the measures
    cut: CutLists,
    *,
    dcg: Dcg | Literal["none"] = "none",
    gains: Gains = "grade",
    ideal: Ideal = "judged",
    rel: Level = 1,
    unjudged: Unjudged = "zero",
) -> tuple[FloatMatrix, FloatMatrix]:
    """Discounted gains of the first k recommendations, and those of the best order."""
    weighting = Weighting(dcg, gains, rel, unjudged)
    return weighting.total(cut), weighting.ideal_total(cut, ideal)


_LIST_A = Ranking([None, 1, 1])
_RISING = Ranking([1, 5, 3])
_EVENTS = Ranking([3, 1, 0, 2, 0])
_NEGATIVE = Ranking([-1, 2])
_TWO_OF_TWO = Ranking([1, None, 1, None])
_TWO_OF_EIGHT = Ranking([1, None, 1, None], missed=[1] * 6)
_REVENUE = Ranking([1, 1, None, 1], values=[20, 5, 0, 9], missed=[1], missed_values=[50])
_RATED = Ranking([4, None, 1])
_RATED_THRICE = Ranking([4, None, 1], missed=[5])
_GROUPED = Ranking([3, 2, None], groups=["head", "tail jazz"], missed=[1], missed_groups=["tail"])
_GAINED = "(1 + 1/log2(4))"
_FIVE_ONES = "(1 + 1/log2(3) + 1/log2(4) + 1/log2(5) + 1/log2(6))"


@Definition(
    name="CG",
    formula="sum_{i<=k} g_i",
    bounds=(0, math.inf),
    undefined=_NO_GAIN,
    source=_JARVELIN,
    rules=(_REL_IS_BINARY, _NONE_IS_LEFT),
    takes_expected_ties=True,
    needs_with=_needs,
    bounded_by_gains=_is_bounded_by_gains,
    goldens=(
        Golden("CG@2", (_EVENTS,), ("3 + 1",), note="purchase = 3, cart = 2, view = 1"),
        Golden("CG", (_NEGATIVE,), ("2",), note="a negative gain counts as 0"),
        Golden("CG(gains='binary')", (_EVENTS,), ("3",), note="each relevant item counts 1"),
        Golden("CG(gains={1:1,2:5,3:50})@2", (_EVENTS,), ("50 + 1",), note="what a view, a cart, a purchase is worth"),
        Golden("CG(gains='value')@2", (_REVENUE,), ("20 + 5",), note="what was paid; the gains are 1"),
        Golden("CG(unjudged='mean')@3", (_RATED,), ("4 + 5/2 + 1",), note="the user's mean is (4 + 1) / 2"),
        Golden("CG(unjudged='median')@3", (_RATED_THRICE,), ("4 + 4 + 1",), note="the middle one of 5, 4, 1"),
        Golden("CG(group='tail')@3", (_GROUPED,), ("2",), note="the head item of gain 3 counts as unjudged"),
    ),
)
def cumulated_gain(
    cut: CutLists, *, gains: Gains = "grade", rel: Level = 1, unjudged: Unjudged = "zero"
) -> FloatMatrix:
    """Sum of the gains of the first k recommendations.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    gains : {"grade", "binary", "value"} or GainMap
        Gain of an item: its own, 0 where that is negative; 1 where it is relevant; the value that the held-out table
        has next to the gain, 0 where that is negative; what the map gives its grade. A grade above 0 that the map does
        not hold is an error; 0 may have a gain, which judged items then have and others have not.
    rel : float
        Gain from which on an item is relevant; only with ``gains='binary'``.
    unjudged : {"zero", "mean", "median"}
        Gain of an item without a judgement: 0; the mean or the median of the gains of the user's judged items.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In units of gain, at least 0; NaN where the user has no judgement with a positive gain.

    Notes
    -----
    ``sum_{i<=k} g_i``; items without a judgement have gain 0, unless ``unjudged`` says otherwise.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> cumulated_gain(Lists.of([Ranking([3, 1, 0, 2, 0])]).cut([1, 2, 0]))
    array([[3., 4., 6.]])
    """
    weighting = Weighting("none", gains, rel, unjudged)
    return where_defined(weighting.total(cut), weighting.has_gain(cut))


@Definition(
    name="nCG",
    formula="CG@k / (CG@k of the ideal order)",
    bounds=(0, 1),
    undefined=_NO_GAIN,
    source=_JARVELIN,
    cutoff=_NORMALISED_CUTOFF,
    rules=(_REL_IS_BINARY, _ONES_ARE_BINARY, _UNJUDGED_IN_IDEAL, _NONE_IS_LEFT),
    parts=normalised_gain_parts,
    needs_with=_needs,
    takes_expected_ties=lambda ideal, **_: ideal != "retrieved",
    bounded_by_gains=_is_bounded_by_gains,
    goldens=(
        Golden("nCG@2", (_RISING,), ("(1 + 5) / (5 + 3)",)),
        Golden("nCG", (_RISING,), ("1",), note="without a cutoff the order has no effect"),
        Golden("nCG(gains={1:0,3:1,5:10})@2", (_RISING,), ("10 / (10 + 1)",)),
        Golden("nCG(agg='micro')@2", (_RISING, _EVENTS), ("6 / (5 + 3)", "4 / (3 + 2)"), mean="(6 + 4) / (8 + 5)"),
        Golden("nCG(judged_only=True)@2", (Ranking([1, None, 5, 3]),), ("(1 + 5) / (5 + 3)",)),
    ),
)
def normalised_cumulated_gain(
    cut: CutLists,
    *,
    gains: Gains = "grade",
    ideal: Ideal = "judged",
    rel: Level = 1,
    unjudged: Unjudged = "zero",
) -> FloatMatrix:
    """Sum of the gains of the first k recommendations, relative to the best k there could be.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    gains : {"grade", "binary", "value"} or GainMap
        Gain of an item: its own, 0 where that is negative; 1 where it is relevant; the value that the held-out table
        has next to the gain, 0 where that is negative; what the map gives its grade. A grade above 0 that the map does
        not hold is an error; 0 may have a gain, which judged items then have and others have not.
    ideal : {"judged", "k_ones", "retrieved", "len"}
        The best order: of all judgements; k relevant items; the list's own first k items sorted; the judgements, as
        many as the list is long.
    rel : float
        Gain from which on an item is relevant; only with ``gains='binary'``.
    unjudged : {"zero", "mean", "median"}
        Gain of an item without a judgement: 0; the mean or the median of the gains of the user's judged items.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no judgement with a positive gain.

    Notes
    -----
    ``CG@k / ICG@k``; with ``agg='micro'`` the gains of all users by the best they could have had.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> normalised_cumulated_gain(Lists.of([Ranking([1, 5, 3])]).cut([1, 2]))
    array([[0.2 , 0.75]])
    """
    return _normalised(cut, Weighting("none", gains, rel, unjudged), ideal)


@Definition(
    name="DCG",
    formula="sum_{i<=k} g_i / log2(i + 1)",
    bounds=(0, math.inf),
    undefined=_NO_GAIN,
    source=f"{_BURGES}; dcg='jk2': {_JARVELIN}; dcg='ln': scikit-learn dcg_score with log_base=e",
    rules=(_REL_IS_BINARY, _VALUES_ARE_NOT_RAISED, _NONE_IS_LEFT),
    needs_with=_needs,
    takes_expected_ties=True,
    bounded_by_gains=_is_bounded_by_gains,
    goldens=(
        Golden("DCG@5", (_EVENTS,), ("3 + 1/log2(3) + 2/log2(5)",), note="purchase = 3, cart = 2, view = 1"),
        Golden("DCG(dcg='exp-log2')@5", (_EVENTS,), ("7 + 1/log2(3) + 3/log2(5)",), note="gain 2**g - 1"),
        Golden("DCG(dcg='jk2')@5", (_EVENTS,), ("3 + 1 + 2/log2(4)",), note="ranks 1 and 2 weigh the same"),
        Golden("DCG(dcg='ln')@5", (_EVENTS,), ("3/ln(2) + 1/ln(3) + 2/ln(5)",), note="1 / ln(2) times that of log2"),
        Golden("DCG(dcg='inverse')@5", (_EVENTS,), ("3 + 1/2 + 2/4",)),
        Golden("DCG(gains='binary')@5", (_EVENTS,), ("1 + 1/log2(3) + 1/log2(5)",)),
        Golden("DCG(rel=2,gains='binary')@5", (_EVENTS,), ("1 + 1/log2(5)",), note="relevant from gain 2 on"),
        Golden("DCG(gains={1:1,2:5,3:50})@5", (_EVENTS,), ("50 + 1/log2(3) + 5/log2(5)",), note="a gain a grade"),
        Golden(
            "DCG(dcg='exp-log2',gains={1:0,2:1,3:2})@5",
            (_EVENTS,),
            ("3 + 1/log2(5)",),
            note="2**gain - 1, of the gain in the map",
        ),
        Golden("DCG", (_NEGATIVE,), ("2/log2(3)",), note="a negative gain counts as 0"),
    ),
)
def discounted_cumulated_gain(
    cut: CutLists, *, dcg: Dcg = "log2", gains: Gains = "grade", rel: Level = 1, unjudged: Unjudged = "zero"
) -> FloatMatrix:
    """Sum of the gains of the first k recommendations, each discounted by its rank.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    dcg : {"log2", "exp-log2", "jk2", "ln", "inverse"}
        What an item of gain g at rank i adds: g / log2(i + 1); (2**g - 1) / log2(i + 1); g / log2(max(i, 2));
        g / ln(i + 1); g / i. A gain above 1000 is an error where it is an exponent.
    gains : {"grade", "binary", "value"} or GainMap
        Gain of an item: its own, 0 where that is negative; 1 where it is relevant; the value that the held-out table
        has next to the gain, 0 where that is negative; what the map gives its grade. A grade above 0 that the map does
        not hold is an error; 0 may have a gain, which judged items then have and others have not.
    rel : float
        Gain from which on an item is relevant; only with ``gains='binary'``.
    unjudged : {"zero", "mean", "median"}
        Gain of an item without a judgement: 0; the mean or the median of the gains of the user's judged items.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In units of gain, at least 0; NaN where the user has no judgement with a positive gain.

    Notes
    -----
    ``sum_{i<=k} G(g_i) D(i)``. The discount 1 / log2(i + 1) is that of trec_eval and of Burges et al. (2005);
    Järvelin & Kekäläinen (2002) leave ranks below the base of the logarithm undiscounted (``jk2``). With the natural
    logarithm (``ln``) each value is 1 / ln(2) = 1.4427 times that of ``log2``.

    Examples
    --------
    Gains 3 and 1 at ranks 1 and 3: 3 / log2(2) + 1 / log2(4).

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> discounted_cumulated_gain(Lists.of([Ranking([3, None, 1])]).cut([1, 3]))
    array([[3. , 3.5]])
    """
    weighting = Weighting(dcg, gains, rel, unjudged)
    return where_defined(weighting.total(cut), weighting.has_gain(cut))


@Definition(
    name="nDCG",
    formula="DCG@k / IDCG@k",
    bounds=(0, 1),
    undefined=_NO_GAIN,
    source=f"trec_eval ndcg and ndcg_cut; {_JARVELIN}; {_BURGES}",
    aliases={"ndcg_cut": {}},
    cutoff=_NORMALISED_CUTOFF,
    rules=(_REL_IS_BINARY, _ONES_ARE_BINARY, _VALUES_ARE_NOT_RAISED, _UNJUDGED_IN_IDEAL, _NONE_IS_LEFT),
    parts=normalised_gain_parts,
    needs_with=_needs,
    takes_expected_ties=lambda ideal, **_: ideal != "retrieved",
    bounded_by_gains=_is_bounded_by_gains,
    goldens=(
        Golden("nDCG", (_LIST_A,), ("(1/log2(3) + 1/log2(4)) / (1 + 1/log2(3))",), note="hits at ranks 2 and 3"),
        Golden("nDCG", (Ranking([3, 5, 1]),), ("(3 + 5/log2(3) + 1/2) / (5 + 3/log2(3) + 1/2)",)),
        Golden("nDCG", (_RISING,), ("(1 + 5/log2(3) + 3/2) / (5 + 3/log2(3) + 1/2)",)),
        Golden("nDCG@5", (_EVENTS,), ("(3 + 1/log2(3) + 2/log2(5)) / (3 + 2/log2(3) + 1/2)",)),
        Golden("nDCG(dcg='exp-log2')@5", (_EVENTS,), ("(7 + 1/log2(3) + 3/log2(5)) / (7 + 3/log2(3) + 1/2)",)),
        Golden("nDCG(dcg='jk2')@5", (_EVENTS,), ("(3 + 1 + 2/log2(4)) / (3 + 2 + 1/log2(3))",)),
        Golden(
            "nDCG(dcg='ln')@5",
            (_EVENTS,),
            ("(3/ln(2) + 1/ln(3) + 2/ln(5)) / (3/ln(2) + 2/ln(3) + 1/ln(4))",),
            note="the same as with log2: the base cancels",
        ),
        Golden("nDCG(dcg='inverse')@5", (_EVENTS,), ("(3 + 1/2 + 2/4) / (3 + 2/2 + 1/3)",)),
        Golden(
            "nDCG(gains={1:1,2:5,3:50})@5",
            (_EVENTS,),
            ("(50 + 1/log2(3) + 5/log2(5)) / (50 + 5/log2(3) + 1/2)",),
            note="a gain a grade",
        ),
        Golden(
            "nDCG(gains={0:1,1:4})@3",
            (Ranking([None, 0, 1], missed=[-1, 0]),),
            ("(1/log2(3) + 4/2) / (4 + 1/log2(3) + 1/2)",),
            note="items judged 0 count, those without a judgement or with a negative one do not",
        ),
        Golden(
            "nDCG(gains='binary')@5",
            (_TWO_OF_TWO, _TWO_OF_EIGHT),
            (f"{_GAINED} / (1 + 1/log2(3))", f"{_GAINED} / {_FIVE_ONES}"),
            note="R = 2 and R = 8",
        ),
        Golden(
            "nDCG(gains='binary',ideal='k_ones')@5",
            (_TWO_OF_TWO, _TWO_OF_EIGHT),
            (f"{_GAINED} / {_FIVE_ONES}",) * 2,
            note="blind to R: with R < k nobody reaches 1",
        ),
        Golden(
            "nDCG(ideal='retrieved')@3",
            (Ranking([1, None, 2, 3], missed=[3]),),
            ("(1 + 2/2) / (2 + 1/log2(3))",),
            note="the list's own first 3 items, sorted",
        ),
        Golden(
            "nDCG(ideal='len')@3",
            (Ranking([None, 2], missed=[3, 1]),),
            ("2/log2(3) / (3 + 2/log2(3))",),
            note="a list of 2 is compared with the best 2",
        ),
        Golden(
            "nDCG(gains='value')@2",
            (_REVENUE, Ranking([1], values=[0], missed=[1], missed_values=[-3])),
            ("(20 + 5/log2(3)) / (50 + 20/log2(3))", UNDEFINED),
            note="the dearest item was missed; nothing of worth, whatever the gains",
        ),
        Golden(
            "nDCG(unjudged='mean')@3",
            (_RATED,),
            ("(4 + 5/2 / log2(3) + 1/2) / (4 + 5/2 / log2(3) + 5/2 / 2)",),
            note="in the best list unjudged items of gain 5/2 stand before the one of 1",
        ),
        Golden(
            "nDCG(unjudged='median')@3",
            (_RATED_THRICE,),
            ("(4 + 4/log2(3) + 1/2) / (5 + 4/log2(3) + 4/2)",),
            note="the item of gain 5 was missed",
        ),
        Golden(
            "nDCG(ideal='len',unjudged='mean')@9",
            (_RATED,),
            ("(4 + 5/2 / log2(3) + 1/2) / (4 + 5/2 / log2(3) + 5/2 / 2)",),
        ),
        Golden(
            "nDCG(group='tail')@3",
            (_GROUPED, Ranking([3], missed=[1], groups=["head"])),
            ("2/log2(3) / (2 + 1/log2(3))", UNDEFINED),
            note="of the tail, gain 2 at rank 2 and a missed 1; no judgement of the tail",
        ),
        Golden("nDCG(group='jazz')@3", (_GROUPED,), ("2/log2(3) / 2",), note="a category"),
        Golden(
            "nDCG(agg='micro',gains='binary')@5",
            (_TWO_OF_TWO, _TWO_OF_EIGHT),
            (f"{_GAINED} / (1 + 1/log2(3))", f"{_GAINED} / {_FIVE_ONES}"),
            mean=f"2 * {_GAINED} / (1 + 1/log2(3) + {_FIVE_ONES})",
            note="the gains of all users, of the best they could have had",
        ),
        Golden(
            "nDCG(judged_only=True)@2",
            (Ranking([None, 2, None, 0, 3], missed=[1]), Ranking([None], missed=[1])),
            ("2 / (3 + 2/log2(3))", "0"),
            note="the judged items alone are 2 0 3, of which two count; no item is left",
        ),
        Golden(
            "nDCG(group='tail',judged_only=True)@2",
            (_GROUPED,),
            ("2/log2(3) / (2 + 1/log2(3))",),
            note="judged items of other groups keep their places",
        ),
        Golden("nDCG@5", (Ranking([None, 0], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def normalised_discounted_cumulated_gain(  # noqa: PLR0913 - each option is a dispute of the field
    cut: CutLists,
    *,
    dcg: Dcg = "log2",
    gains: Gains = "grade",
    ideal: Ideal = "judged",
    rel: Level = 1,
    unjudged: Unjudged = "zero",
) -> FloatMatrix:
    """Discounted cumulated gain relative to that of the best order there could be.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    dcg : {"log2", "exp-log2", "jk2", "ln", "inverse"}
        What an item of gain g at rank i adds: g / log2(i + 1); (2**g - 1) / log2(i + 1); g / log2(max(i, 2));
        g / ln(i + 1); g / i. A gain above 1000 is an error where it is an exponent.
    gains : {"grade", "binary", "value"} or GainMap
        Gain of an item: its own, 0 where that is negative; 1 where it is relevant; the value that the held-out table
        has next to the gain, 0 where that is negative; what the map gives its grade. A grade above 0 that the map does
        not hold is an error; 0 may have a gain, which judged items then have and others have not.
    ideal : {"judged", "k_ones", "retrieved", "len"}
        The best order: of all judgements; k relevant items; the list's own first k items sorted; the judgements, as
        many as the list is long.
    rel : float
        Gain from which on an item is relevant; only with ``gains='binary'``.
    unjudged : {"zero", "mean", "median"}
        Gain of an item without a judgement: 0; the mean or the median of the gains of the user's judged items.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no judgement with a positive gain.

    Notes
    -----
    ``DCG@k / IDCG@k``, IDCG from all judgements of the user, best first, cut at k. ``k_ones`` (RecTools) keeps users
    with R < k below 1; ``retrieved`` (Evidently) and ``len`` inflate the value of lists that miss relevant items. The
    base of the logarithm cancels: ``dcg='ln'`` has the values of ``log2``. With ``agg='micro'`` the DCG of all users is
    divided by their IDCG, so that users with more relevant items, or more valuable ones, count for more.

    With ``unjudged='mean'`` or ``'median'`` the ideal may place any number of items without a judgement, so that
    judged ones that are worth less than these are never in it; only for dense rating data, where an item without a
    judgement is no sign of dislike. Gains are averaged before they are raised.

    Examples
    --------
    Hits at ranks 2 and 3: (1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3)).

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> normalised_discounted_cumulated_gain(Lists.of([Ranking([None, 1, 1])]).cut([1, 3])).round(4)
    array([[0.    , 0.6934]])
    """
    return _normalised(cut, Weighting(dcg, gains, rel, unjudged), ideal)


def _normalised(cut: CutLists, weighting: Weighting, ideal: Ideal) -> FloatMatrix:
    """Divide by the ideal; 0 where a list without any gain is compared with itself."""
    return where_defined(ratio(weighting.total(cut), weighting.ideal_total(cut, ideal)), weighting.has_gain(cut))
