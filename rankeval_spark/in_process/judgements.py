"""One judgement per user and item, where measures read judgements by themselves."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import judgements
from rankeval_spark.engine.arrays import in_one_piece, to_arrow
from rankeval_spark.engine.batch import Table
from rankeval_spark.engine.codes import to_codes


def to_judgements(held_out: pa.Table, *, duplicates: str) -> pa.Table:
    """Make one row per (user, item): ``user_id``, ``item_id`` and ``gain``.

    Parameters
    ----------
    held_out : pa.Table
        Usable rows of ``schemas.HELD_OUT``.
    duplicates : {"max", "sum", "last", "error"}
        Gain of a pair with several rows, see :func:`engine.judgements.to_judgements`.
    """
    users, items = to_codes(held_out[C.USER_ID]), to_codes(held_out[C.ITEM_ID])
    names = [name for name in (C.GAIN, C.INTERACTED_AT) if name in held_out.column_names]
    table = Table(users.code, items.code, {name: in_one_piece(held_out[name]) for name in names})
    n_items = max(items.n_values, 1)
    once = judgements.to_judgements(table, n_items=n_items, duplicates=duplicates)
    columns = {
        C.USER_ID: pc.take(users.values, to_arrow(once.user)),
        C.ITEM_ID: pc.take(items.values, to_arrow(once.pair % n_items)),
        C.GAIN: to_arrow(once.gain),
    }
    return pa.Table.from_pydict(columns)
