"""Values of measures for lists written down by hand, and their comparison."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankeval_spark.measures.arrays import FloatVector

K = TypeVar("K")

KS: Final = (1, 2, 3, 5, 8)  # cutoffs of a curve


@cache
def parsed(*names: str) -> MeasureSet:
    """Measures by their names; read once, because reading costs more than scoring a list."""
    return MeasureSet.parse(names)


def by_measure(measures: MeasureSet, lists: Lists) -> dict[Measure, FloatVector]:
    """Score a batch: the values of each measure, list by list."""
    scores = measures.score(lists)
    return {each: scores[each.column][:, measures.ks.index(each.k)] for each in measures.measures}


def values(name: str, *rankings: Ranking) -> FloatVector:
    """Value of one measure for each of some lists."""
    (found,) = by_measure(parsed(name), Lists.of(rankings)).values()
    return found


def curve(name: str, ranking: Ranking) -> FloatVector:
    """Value of a measure at each of ``KS``."""
    asked = parsed(*(f"{name}@{k}" for k in KS))
    found: FloatVector = asked.score(Lists.of([ranking]))[asked.columns[0]][0]
    return found


def assert_equal(left: ArrayLike, right: ArrayLike) -> None:
    """Compare values, undefined ones too."""
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=0, atol=1e-12)


def assert_all_equal(
    found: Mapping[K, ArrayLike], expected: Mapping[K, ArrayLike], *, rtol: float = 0, atol: float = 1e-12
) -> None:
    """Compare many values by their names in one step; the first that differ are named."""
    pairs = [np.broadcast_arrays(found[name], np.asarray(each, dtype=float)) for name, each in expected.items()]
    if not pairs:
        return
    left, right = (np.concatenate([np.ravel(pair[side]) for pair in pairs]) for side in (0, 1))
    is_same = (left == right) | (np.isnan(left) & np.isnan(right))
    if rtol or atol:
        with np.errstate(invalid="ignore"):  # of infinite values, which are equal above
            is_same |= np.abs(left - right) <= atol + rtol * np.abs(right)
    if not is_same.all():
        for name, each in expected.items():
            np.testing.assert_allclose(
                np.asarray(found[name]), np.asarray(each), rtol=rtol, atol=atol, err_msg=str(name)
            )
