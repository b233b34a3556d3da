"""Whose the judgements are: lists of users, where the judgements name their list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rankeval_spark.engine.batch.codes import in_id_order, to_codes

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import IntVector


@dataclass(frozen=True)
class Owners:
    """The lists of users that the log or the judgements name, whichever model made them.

    Attributes
    ----------
    user : int64, shape (n_owners,)
        User of each, ascending.
    name : int64, shape (n_owners,)
        Place of its ``list_id`` in `names`.
    names : pa.Array
        Distinct values of ``list_id``, in their order.
    log, held_out : int64, shape (n_rows,)
        Owner of each row of the two inputs.
    """

    user: IntVector
    name: IntVector
    names: pa.Array
    log: IntVector
    held_out: IntVector

    @classmethod
    def of(cls, log: tuple[IntVector, pa.Array], held_out: tuple[IntVector, pa.Array]) -> Owners:
        """Find the owners of two inputs, of each its users and the texts of its ``list_id``."""
        names = in_id_order(to_codes(pa.chunked_array([held_out[1], log[1]])))
        n_names = max(names.n_values, 1)
        keys, owner = np.unique(np.concatenate([held_out[0], log[0]]) * n_names + names.code, return_inverse=True)
        user, name = np.divmod(keys, n_names)
        return cls(user, name, names.values, owner[len(held_out[0]) :], owner[: len(held_out[0])])

    def with_log(self, places: IntVector) -> Owners:
        """Keep only some rows of the log."""
        return replace(self, log=self.log[places])
