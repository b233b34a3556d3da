"""Average precision on a logarithmic scale, where the users with the worst lists count most."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, where_defined
from rankeval_spark.measures.families.average_precision import average_precision
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Above, Below, Level
from rankeval_spark.measures.registry import Definition

_GOOD, _POOR, _NONE = Ranking([1, None]), Ranking([None] * 9 + [1]), Ranking([None, None], missed=[1])


@Definition(
    name="LogAP",
    formula="ln max(AP@k, floor)",
    bounds=(-math.inf, 0),
    undefined="no relevant judgement (R = 0)",
    source="trec_eval gm_map before its mean is raised; Robertson (2006), On GMAP and other transformations",
    without_relevant=lambda *, floor, **_: math.log(floor),
    goldens=(
        Golden("LogAP", (_GOOD, _POOR, _NONE), ("0", "ln(1/10)", "ln(1/100000)"), mean="(ln(1/10) - 5 * ln(10)) / 3"),
        Golden("LogAP(floor=0.01)", (_POOR, _NONE), ("ln(1/10)", "ln(1/100)"), note="a user without a hit counts less"),
        Golden("LogAP@6", (Ranking([1, None, None, 1, 1, None]),), ("ln((1 + 2/4 + 3/5) / 3)",), note="as AP@6"),
        Golden("LogAP(rel=2)@2", (Ranking([1, 2]),), ("ln(1/2)",), note="relevant from gain 2 on"),
        Golden("LogAP", (Ranking([0, None], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def log_average_precision(
    cut: CutLists, *, floor: Annotated[float, Above(0), Below(1)] = 1e-5, rel: Level = 1
) -> FloatMatrix:
    """Logarithm of average precision; the exponential of its mean is GMAP, the geometric mean.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    floor : float
        Least average precision that is distinguished, because the logarithm of 0 is infinite.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        From ln(floor), also without a list, to 0; NaN where the user has no relevant judgement.

    Notes
    -----
    ``ln max(AP@k, floor)``, AP with denominator R. A user who goes from 0.01 to 0.02 counts as much as one who goes
    from 0.4 to 0.8. The floor decides what a user without a hit costs; means with different ones do not compare.

    Examples
    --------
    AP is 1/4 and 7/12:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> log_average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).round(4)
    array([[-1.3863, -0.539 ]])
    """
    precision = average_precision(cut, rel=rel)
    return where_defined(np.log(np.maximum(precision, floor)), cut.n_relevant(rel) > 0)


@Definition(
    name="GMAP",
    formula="exp(mean over users of ln max(AP@k, floor))",
    bounds=(-math.inf, 0),
    undefined="no relevant judgement (R = 0)",
    source="trec_eval gm_map; Robertson (2006), On GMAP and other transformations",
    aliases={"gm_map": {}, "GeometricMAP": {}},
    without_relevant=lambda *, floor, **_: math.log(floor),
    link="log",
    goldens=(
        Golden("GMAP", (_GOOD, _POOR, _NONE), ("0", "ln(1/10)", "ln(1/100000)"), mean="(1 * 1/10 * 1/100000) ** (1/3)"),
        Golden("GMAP(floor=0.01)", (_POOR, _NONE), ("ln(1/10)", "ln(1/100)"), mean="(1/10 * 1/100) ** (1/2)"),
        Golden("GMAP", (Ranking([0, None], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def geometric_average_precision(
    cut: CutLists, *, floor: Annotated[float, Above(0), Below(1)] = 1e-5, rel: Level = 1
) -> FloatMatrix:
    """Geometric mean of the users' average precision; the value of a user is its logarithm.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    floor : float
        Least average precision that is distinguished, because one user with 0 would make the mean 0.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        Logarithms, from ln(floor), also without a list, to 0; NaN where the user has no relevant judgement.

    Notes
    -----
    ``exp(mean ln max(AP@k, floor))``, AP with denominator R. In ``metrics`` the value is the geometric mean, from floor
    to 1, and the ends of its interval are those of the mean logarithm, raised; ``std_dev`` and ``std_error`` are those
    of the logarithms, and so is the range above. LogAP is the same with the mean left as it is.

    Examples
    --------
    AP is 1/4 and 7/12:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> geometric_average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).round(4)
    array([[-1.3863, -0.539 ]])
    """
    return log_average_precision(cut, floor=floor, rel=rel)
