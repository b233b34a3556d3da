"""Gaps of slicings: rows of ``metrics`` and ``group_metrics`` joined into one row per slicing, measure and cutoff."""

from __future__ import annotations

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
    *(*KEY, "n_groups", "n_left_out", "gap", "ci_low", "ci_high", "ci_level"),
    *("ratio", "ratio_ci_low", "ratio_ci_high", "mad"),
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
    groups, statements = (_of_groups(table.select([*night, *READ])) for table in (metrics, group_metrics))
    parts = [_parts_of(label) for label in statements[C.MEASURE].to_pylist()]
    is_stated = np.array([kind in group_statistics.KINDS for kind, _ in parts], dtype=np.bool_)
    place, measures = statements.column_names.index(C.MEASURE), to_texts(measure for _, measure in parts)
    statements = statements.set_column(place, C.MEASURE, measures).filter(to_arrow(is_stated))
    kinds = np.array([kind for kind, _ in parts], dtype=object)[is_stated]
    both = [table.select([*night, *KEY]) for table in (groups, statements)]
    keys = pa.concat_tables(both, promote_options="default")  # columns of one may be declared without NULL
    key, first = _numbered(keys)
    of_group, of_statement = np.split(key, [groups.num_rows])
    found = dict(zip(keys.column_names, pc.take(keys, to_arrow(first)).columns, strict=True))
    compared = is_compared(groups)
    for name, chosen in (("n_groups", compared), ("n_left_out", ~compared)):
        found[name] = to_arrow(np.bincount(of_group[chosen], minlength=len(first)).astype(np.int32))
    for name, (kind, column) in _STATEMENTS.items():
        numbers, is_it = np.full(len(first), np.nan), kinds == kind
        numbers[of_statement[is_it]] = doubles(statements, column)[is_it]
        found[name] = nullable(numbers)
    level = np.full(len(first), np.nan)
    np.fmax.at(level, key, np.concatenate([doubles(table, "ci_level") for table in (groups, statements)]))
    found["ci_level"] = nullable(level)
    for end, sign in (("lowest", 1), ("highest", -1)):
        rows = _first_rows(groups, of_group, np.flatnonzero(compared), n_keys=len(first), sign=sign)
        for column, of in ((C.SLICE_VALUE, "group"), (C.VALUE, "value")):
            found[f"{end}_{of}"] = pc.take(in_one_piece(groups[column]), rows)
    return pa.Table.from_pydict({name: found[name] for name in (*night, *COLUMNS)})


def is_compared(metrics: pa.Table) -> BoolVector:
    """Return for each row of ``metrics`` whether its group is compared: not small, known, and with a value."""
    values = in_one_piece(metrics[C.SLICE_VALUES])
    is_known = np.ones(len(values), dtype=np.bool_)
    is_null = to_numpy(pc.is_null(pc.list_flatten(values)))
    is_known[to_numpy(pc.list_parent_indices(values))[is_null]] = False
    compared: BoolVector = to_numpy(pc.is_valid(metrics[C.VALUE])) & ~to_numpy(metrics["is_small"]) & is_known
    return compared


def _of_groups(table: pa.Table) -> pa.Table:
    """Return the rows about groups of users."""
    return table.filter(to_arrow(~to_numpy(pc.equal(table[C.SLICE], to_texts([C.ALL_USERS])[0]))))


@lru_cache(maxsize=4096)
def _parts_of(label: str) -> tuple[str, str]:
    """Split the name of a statement into kind and measure; both empty where it is none."""
    return group_statistics.parts_of(label) or ("", "")


def _first_rows(groups: pa.Table, key: IntVector, compared: IntVector, *, n_keys: int, sign: int) -> pa.Array:
    """Return the row of each key's first group by its value; of two equal ones, the one whose name comes first."""
    value, name = doubles(groups, C.VALUE), to_codes(groups[C.SLICE_VALUE])
    order = np.lexsort((ascending(name.values)[name.code[compared]], sign * value[compared], key[compared]))
    by_key = compared[order]
    keys, first = np.unique(key[by_key], return_index=True)
    row, is_absent = np.zeros(n_keys, dtype=np.int64), np.ones(n_keys, dtype=np.bool_)
    row[keys], is_absent[keys] = by_key[first], False
    return to_arrow(row, is_null=is_absent)


def _numbered(keys: pa.Table) -> tuple[IntVector, IntVector]:
    """Return the number of each row among the different ones, in the order in which they come, and their first rows."""
    number = np.zeros(keys.num_rows, dtype=np.int64)
    for column in keys.columns:
        codes = to_codes(column)
        number = to_codes(to_arrow(number * max(codes.n_values, 1) + codes.code)).code
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    by_place = np.argsort(first)  # the codes of whole numbers ascend, whatever their places
    return np.argsort(by_place)[number], first[by_place]
