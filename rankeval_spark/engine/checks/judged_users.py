"""What the checks ask about the judgements of each user."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.engine.scoring.scorer import RELEVANT

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


class JudgedUsers(NamedTuple):
    """Users by their judgements; all arrays of shape (n_users,).

    Attributes
    ----------
    is_judged : bool
        Whether the user has a judgement.
    is_repeated : bool
        Whether a judgement of the user has several rows.
    has_none_relevant : bool
        Whether the user has judgements, and none of them is relevant.
    """

    is_judged: BoolVector
    is_repeated: BoolVector
    has_none_relevant: BoolVector


def judged_users(user: IntVector, owner: IntVector, gain: FloatVector, *, n_users: int) -> JudgedUsers:
    """Look at the judgements of each user.

    Parameters
    ----------
    user : int64, shape (n_rows,)
        User of each row of the judgements.
    owner, gain : int64 and float64, shape (n_judgements,)
        User and gain of each judgement, one per user and item.
    n_users : int
        Users that codes count.
    """
    n_rows, n_pairs = (np.bincount(each, minlength=n_users) for each in (user, owner))
    best = np.full(n_users, -np.inf)
    np.maximum.at(best, owner, gain)
    return JudgedUsers(n_pairs > 0, n_rows > n_pairs, (n_pairs > 0) & (best < RELEVANT))
