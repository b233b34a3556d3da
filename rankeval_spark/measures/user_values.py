"""Own values of users, which no list explains: revenue, retention, the answer of a survey."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import Text
from rankeval_spark.measures.required_facts import USER_VALUES


@Definition(
    name="UserValue",
    words="own value, custom metric, business metric, KPI, revenue, retention, survey, engagement, ARPU",
    formula="the user's value of that name",
    source="the input user_values",
    bounds=(-math.inf, math.inf),
    undefined="the user has no row of that name",
    cutoff=Cutoff("forbidden"),
    needs=(USER_VALUES,),
    better=lambda better, **_: better,
    without_relevant=math.nan,
    has_mean_over_ties=True,
    is_bounded_by_gains=True,
    group=False,
    judged_only=False,
)
def user_value(
    cut: CutLists,
    *,
    name: Annotated[
        str, Text("a name in user_values"), "Which value, as the column `name` of `user_values` writes it."
    ],
    better: Annotated[  # noqa: ARG001 - the definition reads it
        Literal["higher", "lower", "neither"], "Which value is the better one."
    ] = "higher",
) -> FloatMatrix:
    """Own value of a user, such as revenue: the mean over the users of a model or of a slice.

    Judgements and lists do not change it. Ann spent 12.5, and nothing is known of Bob:

    >>> batch = Lists.of([Ranking([1], user_values=[("revenue", 12.5)]), Ranking([1])])
    >>> user_value(batch.cut([0]), name="revenue")
    array([[12.5],
           [ nan]])
    """
    unknown = np.full(cut.lists.n_lists, math.nan)
    return np.broadcast_to(cut.lists.known_user_values.get(name, unknown)[:, None], cut.depth.shape)
