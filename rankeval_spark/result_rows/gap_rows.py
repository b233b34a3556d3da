"""Gaps of slicings: rows of ``metrics`` and ``group_metrics`` joined into one row per slicing, measure and cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import doubles, nullable
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch.codes import ascending, to_codes
from rankeval_spark.measures import group_statistics

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, IntVector

NIGHT: Final = (C.EVALUATION, C.EVALUATION_DATE)  # columns that published rows have in addition

KEY: Final = (C.MODEL_ID, C.SLICE, C.MEASURE, C.K)

READ: Final = (*KEY, C.SLICE_VALUE, C.SLICE_VALUES, C.VALUE, "is_small", "ci_low", "ci_high", "ci_level")
"""Columns that are read of both tables, those of :data:`NIGHT` where there are any."""

_STATEMENTS: Final = {
    "gap": (group_statistics.GROUP_GAP, C.VALUE),
    "ci_low": (group_statistics.GROUP_GAP, "ci_low"),
    "ci_high": (group_statistics.GROUP_GAP, "ci_high"),
    "ratio": (group_statistics.GROUP_RATIO, C.VALUE),
    "ratio_ci_low": (group_statistics.GROUP_RATIO, "ci_low"),
    "ratio_ci_high": (group_statistics.GROUP_RATIO, "ci_high"),
    "mad": (group_statistics.USER_MAD, C.VALUE),
}
"""Numbers that ``group_metrics`` has already: kind of the row and column, by the column that they get."""

COLUMNS: Final = (
    *KEY,
    *(
        "n_groups",
        "n_left_out",
        "gap",
        "ci_low",
        "ci_high",
        "ci_level",
        "ratio",
        "ratio_ci_low",
        "ratio_ci_high",
        "mad",
    ),
    *("lowest_group", "lowest_value", "highest_group", "highest_value"),
)
"""Columns of the rows that are made here, after those of :data:`NIGHT`."""


def to_gaps(metrics: pa.Table, group_metrics: pa.Table) -> pa.Table:
    """Join rows of ``schemas.METRICS`` and ``schemas.GROUP_METRICS`` into a row per (model, slice, measure, k).

    They have :data:`COLUMNS`, in the order in which the measures of the slicings come first. Evaluation and date
    come before these where the rows have them, whose rows stay separate. Groups that are small, whose measure is
    undefined, or for whose users a segment is unknown are left out and counted in ``n_left_out``. ``gap`` is the
    greatest value less the least, ``ratio`` the least over the greatest with its own interval, ``mad`` the mean
    absolute difference of all pairs (Elliot's UserMAD); NULL below two groups. These are rows of ``group_metrics``
    already; the groups at both ends are found here.
    """
    night = [name for name in NIGHT if name in metrics.column_names]
    names = [*night, *READ]
    groups = _Rows.of(metrics.select(names))
    statements = _Rows.of(group_metrics.select(names), are_statements=True)
    both = [one.table.select([*night, *KEY]) for one in (groups, statements)]
    keys = pa.concat_tables(both, promote_options="default")  # columns of one may be declared without NULL
    key, first = _numbered(keys)
    n_groups = groups.table.num_rows
    gaps = _Gaps(len(first), groups, key[:n_groups], statements, key[n_groups:])
    found = {**_columns(pc.take(keys, to_arrow(first))), **gaps.columns()}
    return pa.Table.from_pydict({name: found[name] for name in (*night, *COLUMNS)})


def is_compared(metrics: pa.Table) -> BoolVector:
    """Return for each row of ``metrics`` whether its group is compared: not small, known, and with a value."""
    values = in_one_piece(metrics[C.SLICE_VALUES])
    is_known = np.ones(len(values), dtype=np.bool_)
    is_null = to_numpy(pc.is_null(pc.list_flatten(values)))
    is_known[to_numpy(pc.list_parent_indices(values))[is_null]] = False
    compared: BoolVector = to_numpy(pc.is_valid(metrics[C.VALUE])) & ~to_numpy(metrics["is_small"]) & is_known
    return compared


@dataclass(frozen=True)
class _Rows:
    """Rows of one of the tables about groups of users."""

    table: pa.Table  # columns :data:`READ`; ``measure`` is the one that a statement is about
    kind: Sequence[str]  # what each row states, of :data:`group_statistics.KINDS`; empty for a group

    @classmethod
    def of(cls, table: pa.Table, *, are_statements: bool = False) -> _Rows:
        is_of_groups = ~to_numpy(pc.equal(table[C.SLICE], to_texts([C.ALL_USERS])[0]))
        rows = table.filter(to_arrow(is_of_groups))
        if not are_statements:
            return cls(rows, [""] * rows.num_rows)
        parts = [_parts_of(label) for label in rows[C.MEASURE].to_pylist()]
        is_stated = np.array([kind in group_statistics.KINDS for kind, _ in parts], dtype=np.bool_)
        named = rows.set_column(rows.column_names.index(C.MEASURE), C.MEASURE, to_texts(label for _, label in parts))
        return cls(named.filter(to_arrow(is_stated)), [kind for kind, _ in parts if kind in group_statistics.KINDS])


@lru_cache(maxsize=4096)
def _parts_of(label: str) -> tuple[str, str]:
    """Split the name of a statement into kind and measure; both empty where it is none."""
    return group_statistics.parts_of(label) or ("", "")


@dataclass(frozen=True)
class _Gaps:
    """Rows about groups, and statements, by the position of their key."""

    n: int  # number of keys
    groups: _Rows
    of_group: IntVector  # (n_rows,), key of each of their rows
    statements: _Rows
    of_statement: IntVector  # (n_rows,)

    def columns(self) -> dict[str, pa.Array]:
        """Build the columns after the key."""
        compared = is_compared(self.groups.table)
        counts = {"n_groups": compared, "n_left_out": ~compared}
        return {
            **{name: self._count(each) for name, each in counts.items()},
            **{name: self._stated(kind, of) for name, (kind, of) in _STATEMENTS.items()},
            "ci_level": self._level(),
            **self._extreme("lowest", np.flatnonzero(compared), sign=1),
            **self._extreme("highest", np.flatnonzero(compared), sign=-1),
        }

    def _count(self, chosen: BoolVector) -> pa.Array:
        return to_arrow(np.bincount(self.of_group[chosen], minlength=self.n).astype(np.int32))

    def _stated(self, kind: str, name: str) -> pa.Array:
        """Return a number of the one row of that kind."""
        is_it = np.array([one == kind for one in self.statements.kind], dtype=np.bool_)
        found = np.full(self.n, np.nan)
        found[self.of_statement[is_it]] = doubles(self.statements.table, name)[is_it]
        return nullable(found)

    def _level(self) -> pa.Array:
        level = np.full(self.n, np.nan)
        for key, rows in ((self.of_group, self.groups), (self.of_statement, self.statements)):
            np.fmax.at(level, key, doubles(rows.table, "ci_level"))
        return nullable(level)

    def _extreme(self, end: str, compared: IntVector, *, sign: int) -> dict[str, pa.Array]:
        """Return the group with the first value, and the value; of two equal ones, the one whose name comes first."""
        value, name = doubles(self.groups.table, C.VALUE), to_codes(self.groups.table[C.SLICE_VALUE])
        order = np.lexsort(
            (ascending(name.values)[name.code[compared]], sign * value[compared], self.of_group[compared])
        )
        by_key = compared[order]
        keys, first = np.unique(self.of_group[by_key], return_index=True)
        row, is_absent = np.zeros(self.n, dtype=np.int64), np.ones(self.n, dtype=np.bool_)
        row[keys], is_absent[keys] = by_key[first], False
        rows = to_arrow(row, is_null=is_absent)
        found = ((C.SLICE_VALUE, "group"), (C.VALUE, "value"))
        return {f"{end}_{of}": pc.take(in_one_piece(self.groups.table[each]), rows) for each, of in found}


def _numbered(keys: pa.Table) -> tuple[IntVector, IntVector]:
    """Return the number of each row among the different ones, in the order in which they come, and their first rows."""
    number = np.zeros(keys.num_rows, dtype=np.int64)
    for column in keys.columns:
        codes = to_codes(column)
        number = to_codes(to_arrow(number * max(codes.n_values, 1) + codes.code)).code
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    by_place = np.argsort(first)  # the codes of whole numbers ascend, whatever their places
    return np.argsort(by_place)[number], first[by_place]


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))
