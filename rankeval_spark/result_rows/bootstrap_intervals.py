"""From the replicate sums of all partitions to the intervals of a bootstrap, a group at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.aggregation.aggregate_state import (
    COUNTED_VALUES,
    GROUP,
    KEY_FIELDS,
    SPREAD,
    STATE,
    doubles_to_cells,
)
from rankeval_spark.engine.aggregation.bootstrap_sums import STATES, in_full
from rankeval_spark.statistics.resampling.bootstrap import Parts, ratio_sums, spread_of

if TYPE_CHECKING:
    from rankeval_spark.statistics.resampling.replicate_sums import Draws

WITH_SPREAD: Final = pa.schema([*KEY_FIELDS, *((name, pa.binary()) for name in (STATE, COUNTED_VALUES, SPREAD))])


@dataclass(frozen=True)
class BootstrapIntervals:
    """What the workers need to replace the states of a group by the spread of its means."""

    n_measures: int
    draws: Draws
    level: float

    def merge(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Merge the states of one (model, slice, values, k)."""
        moments = group.filter(pc.is_valid(group[STATE])).drop_columns(list(STATES))
        if not moments.num_rows:  # no row for a cutoff that no lists have
            return pa.Table.from_arrays(in_full(moments, WITH_SPREAD), schema=WITH_SPREAD)
        spread = np.hstack(spread_of(self._parts(group), self.level))
        own = {name: pa.array([value.as_py()], value.type) for name, value in zip(GROUP, key, strict=True)}
        parts = (moments, {**own, SPREAD: doubles_to_cells(spread[None])})
        return pa.concat_tables(
            [pa.Table.from_arrays(in_full(part, WITH_SPREAD), schema=WITH_SPREAD) for part in parts]
        )

    def _parts(self, group: pa.Table) -> Parts:
        """Give the sums of each partition, and those of the users who came as they are."""
        shape = (2, self.n_measures, self.draws.replicates)
        sums, users = (group[name].drop_null().to_pylist() for name in STATES)
        parts = [np.frombuffer(state).reshape(shape) for state in sums]
        if users:
            hashes, columns = (np.concatenate(each) for each in zip(*map(self._unpacked, users), strict=True))
            order = np.argsort(hashes)
            above, below = np.split(columns[order], 2, axis=1)
            parts.extend(ratio_sums(above, below, hashes[order], self.draws))
        return np.array(parts).reshape(-1, *shape)

    def _unpacked(self, users: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Unpack what :meth:`Users.each` made: hashes, and a row of numerators and denominators each."""
        width = 2 * self.n_measures
        n_users = len(users) // (8 * (1 + width))
        hashes = np.frombuffer(users, dtype=np.int64, count=n_users)
        return hashes, np.frombuffer(users, offset=hashes.nbytes).reshape(n_users, width)
