"""Own values and weights of users, in columns of their lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import ABSENT, index_in, take_or_null, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.failures import quote_key, refuse_input
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.engine.batch import Batch, CodedRows
    from rankeval_spark.engine.matching import ListKeys
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.measures.arrays import IntVector


def to_user_columns(batch: Batch, keys: ListKeys, measures: MeasureSet) -> dict[str, pa.Array]:
    """Build such of :data:`columns.OF_USERS` as measures read, a cell for each list: NULL where its user has none.

    A value of the list's model comes before one of every model. Refused: a user with two rows of one value, or two
    weights.
    """
    found, names = dict[str, pa.Array](), measures.user_value_names
    if names:
        code, n_models = _value_codes(batch, names), len(batch.models) + 1
        own, of_all = (keys.user * n_models + model for model in (keys.model + 1, 0))
        cells = []
        for place in range(len(names)):
            own_row, row = (index_in(to_arrow(key * len(names) + place), to_arrow(code)) for key in (own, of_all))
            cells.append(_numbers_at(batch.user_values, np.where(own_row == ABSENT, row, own_row)))
        found[C.USER_VALUES] = pa.StructArray.from_arrays(cells, names=list(names))
    if N.USER_WEIGHTS in measures.needs:
        of_user = batch.user_weights.user
        _refuse_repeated(batch, of_user, of_user, N.USER_WEIGHTS, "a weight")
        found[C.USER_WEIGHT] = _numbers_at(batch.user_weights, index_in(to_arrow(keys.user), to_arrow(of_user)))
    return found


def _value_codes(batch: Batch, names: tuple[str, ...]) -> IntVector:
    """Return a number for user, model and name of each row of values; :data:`ABSENT` for a model that is not there."""
    rows = batch.user_values
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    model: IntVector = np.zeros(len(rows), dtype=np.int64)  # of a row of every model
    if C.MODEL_ID in rows.columns:
        is_of_one = to_numpy(pc.is_valid(rows.columns[C.MODEL_ID]))
        named = index_in(rows.columns[C.MODEL_ID], to_texts(batch.models))
        model = np.where(is_of_one, np.where(named == ABSENT, ABSENT, named + 1), 0)
    name = index_in(rows.columns[row_kinds.VALUE_NAME], to_texts(names))
    code = (rows.user * (len(batch.models) + 1) + model) * len(names) + name
    is_read = (model != ABSENT) & (name != ABSENT)
    _refuse_repeated(batch, code[is_read], rows.user[is_read], N.USER_VALUES, "a value of one name and model")
    return np.where(is_read, code, ABSENT)


def _refuse_repeated(batch: Batch, code: IntVector, user: IntVector, name: str, what: str) -> None:
    """Refuse a second row with the same code: which one counts, or their sum, is the user's to say."""
    order = np.argsort(code, kind="stable")
    repeated = order[1:][np.diff(code[order]) == 0]
    if len(repeated):
        found = f"user {quote_key(batch.users[int(user[repeated].min())].as_py())} has {what} twice"
        refuse_input(name, found, expected="one row for each", fix="add up, average or drop the rows first")


def _numbers_at(rows: CodedRows, place: IntVector) -> pa.Array:
    """Return the numbers of some rows; NULL where a place is :data:`ABSENT`."""
    return take_or_null(rows.columns.get(row_kinds.USER_VALUE, pa.nulls(0, pa.float64())), place)
