"""What the catalogue says of its items: age, categories and vectors."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import ascending, in_id_order, to_codes
from rankeval_spark.engine.batch.joins import taken_or_null
from rankeval_spark.engine.failures import quoted, refuse_input
from rankeval_spark.engine.scoring.list_columns import lengths_of, list_column, owners_of
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector

ONCE_EXPECTED: Final = "each item once"
ONCE_FIX: Final = "keep one row an item in the catalogue"

ONE_LENGTH_EXPECTED: Final = "one length"
ONE_LENGTH_FIX: Final = "give each item a vector of one length"

_EPOCH: Final = date(1970, 1, 1).toordinal()


def to_catalogue(items: pa.Table, *, needs: Iterable[str], evaluation_date: date | None = None) -> pa.Table:
    """Make one row per item of the catalogue: ``item_id`` and the facts needed, by name; NULL where unknown.

    Parameters
    ----------
    items : pa.Table
        Rows of ``schemas.ITEMS`` with an ``item_id``, and the columns that the facts are taken from.
    needs : iterable of str
        Of ``item_age`` (double), ``item_categories`` (list of string, each once, in order) and ``item_vectors`` (list
        of double, NULL where a number is not finite).
    evaluation_date : date, optional
        Day at which the age is taken; without it no age is known.

    Raises
    ------
    RefusedError
        An item has two rows, or two items have vectors of different lengths: there is no angle between them.
    """
    ids = in_one_piece(items[C.ITEM_ID])
    _refuse_repeated(ids)
    facts = {
        N.ITEM_AGE: lambda: _ages(in_one_piece(items[C.PUBLISHED_AT]), evaluation_date),
        N.ITEM_CATEGORIES: lambda: _categories(in_one_piece(items[C.CATEGORIES])),
        N.ITEM_VECTORS: lambda: _vectors(in_one_piece(items[C.VECTOR])),
    }
    found = {name: facts[name]() for name in sorted(needs)}
    if N.ITEM_VECTORS in found:
        _refuse_two_lengths(ids, found[N.ITEM_VECTORS])
    return pa.Table.from_pydict({C.ITEM_ID: ids, **found})


def _refuse_repeated(ids: pa.Array) -> None:
    codes = to_codes(ids)
    if codes.n_values == len(ids):
        return
    repeated = codes.values.filter(to_arrow(np.bincount(codes.code) > 1))
    what = f"item {quoted(_in_order(repeated, 0))} twice in the catalogue"
    refuse_input("items", what, expected=ONCE_EXPECTED, fix=ONCE_FIX)


def _ages(published_at: pa.Array, evaluation_date: date | None) -> pa.Array:
    if evaluation_date is None:
        return pa.nulls(len(published_at), pa.float64())
    days = to_numpy(published_at.cast(pa.int32()), null=0)
    age = (evaluation_date.toordinal() - _EPOCH - days.astype(np.int64)).astype(np.float64)
    return to_arrow(age, is_null=_is_null(published_at))


def _categories(lists: pa.Array) -> pa.Array:
    """Keep each category of an item once, in the order of their names; NULL ones are none."""
    values = lists.flatten()
    is_known = ~_is_null(values)
    owner = owners_of(lists)[is_known]
    names = in_id_order(to_codes(values.filter(to_arrow(is_known))))
    n_names = max(names.n_values, 1)
    owner, name = np.divmod(np.unique(owner * n_names + names.code), n_names)
    lengths = np.bincount(owner, minlength=len(lists))
    return list_column(lengths, pc.take(names.values, to_arrow(name)), is_null=_is_null(lists))


def _vectors(lists: pa.Array) -> pa.Array:
    owner = owners_of(lists)
    is_finite = np.isfinite(to_numpy(lists.flatten()))
    n_others = np.bincount(owner[~is_finite], minlength=len(lists))
    return taken_or_null(lists, np.where(n_others > 0, -1, np.arange(len(lists)))) if n_others.any() else lists


def _refuse_two_lengths(ids: pa.Array, vectors: pa.Array) -> None:
    known = np.flatnonzero(~_is_null(vectors))
    lengths = lengths_of(vectors)[known]
    if not len(known) or lengths.min() == lengths.max():
        return
    ids = pc.take(ids, to_arrow(known))
    shortest = _in_order(ids.filter(to_arrow(lengths == lengths.min())), 0)
    longest = _in_order(ids.filter(to_arrow(lengths == lengths.max())), -1)
    shown = f"{lengths.min()} numbers for {quoted(shortest)} and {lengths.max()} numbers for {quoted(longest)}"
    refuse_input("items", f"vectors of two lengths, {shown}", expected=ONE_LENGTH_EXPECTED, fix=ONE_LENGTH_FIX)


def _in_order(ids: pa.Array, place: int) -> object:
    """Give the id at a place in the order of the ids."""
    return ids[int(np.argsort(ascending(ids))[place])].as_py()


def _is_null(values: pa.Array) -> BoolVector:
    return to_numpy(pc.is_null(values))
