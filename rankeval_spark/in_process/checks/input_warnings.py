"""Warnings of inputs that can be evaluated, but are hardly what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.errors import warn_user

if TYPE_CHECKING:
    from rankeval_spark.inputs.arrow.input_tables import Source, Tables

_LAST_DAY: Final = 253_402_214_400_000_000
"""The last day of the year 9999, in microseconds since 1970; Arrow writes no later years."""


def warn_if_nothing_is_measured(metrics: pa.Table, tables: Tables, *, is_attributed: bool) -> None:
    """Warn of inputs that have nothing to do with each other: their means are 0, NaN or not there."""
    rows = metrics.filter((pc.field(C.SLICE) == C.ALL_USERS) & pc.field("n_missing").is_valid())
    n_users, n_missing = (pc.max(rows["n_users"]).as_py() or 0, pc.min(rows["n_missing"]).as_py() or 0)
    if not len(metrics):
        found = "recommendations have no row of a model"
    elif len(rows) and not n_users:
        found = "no user has a relevant judgement (a gain of at least 1)"
        if is_attributed:
            shown = tables.recommendations.table[C.RECOMMENDED_AT]
            done = tables.held_out.table[C.INTERACTED_AT]
            found += f", of lists of {_span(shown)} and interactions of {_span(done)}"
    elif len(rows) and n_missing >= n_users:
        found = "no user of held_out has a list; ids of both tables have to match"
    elif len(rows) and pc.max(pc.abs(rows["value"])).as_py() == 0 and not _share_items(tables):
        found = "no item of held_out is in a list; ids of both tables have to match"
    else:
        return
    warn_user(f"nothing is measured: {found}; see .checks")


def warn_of_merged_lists(log: Source) -> None:
    """Warn of a log without ids of lists in which users were shown lists at several times: they would be one list."""
    if C.LIST_ID in log.given:
        return
    keys = [name for name in (C.MODEL_ID, C.USER_ID) if name in log.table.column_names]
    users = log.table.group_by(keys).aggregate([(C.RECOMMENDED_AT, "min"), (C.RECOMMENDED_AT, "max")])
    is_several = pc.not_equal(users[f"{C.RECOMMENDED_AT}_min"], users[f"{C.RECOMMENDED_AT}_max"])
    n_several = pc.sum(is_several).as_py()
    if not n_several or log.table.group_by([*keys, C.RECOMMENDED_AT]).aggregate([]).num_rows * 2 > log.table.num_rows:
        return  # one time of each list, or times of single items
    warn_user(
        "recommendations have no column 'list_id', so all rows of a user are one list, but "
        f"{n_several:,} of {len(users):,} have several times in recommended_at; name the lists in list_id, "
        "such as by a copy of recommended_at"
    )


def _share_items(tables: Tables) -> bool:
    """Whether an item of the judgements is recommended to anyone."""
    judged = pc.unique(tables.held_out.table[C.ITEM_ID])
    recommended = tables.recommendations.table[C.ITEM_ID]
    return bool(pc.any(pc.is_in(recommended, value_set=judged.cast(recommended.type))).as_py())


def _span(times: pa.ChunkedArray) -> str:
    """Write the first and last of times; a number in the wrong unit shows in its year."""
    ends = pc.min_max(times)
    return " to ".join(dict.fromkeys(_text(ends[name]) for name in ("min", "max")))


def _text(moment: pa.Scalar) -> str:
    if not moment.is_valid:
        return "no time"
    if moment.value > _LAST_DAY:
        return "years after 9999 (numbers are read as seconds)"
    return str(moment.cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.string()).as_py()).removesuffix("Z")
