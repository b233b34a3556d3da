"""Frames of a call that are no stream of Arrow themselves, as ones that are: lazy ones, dictionaries, lists of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Number
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import interchange

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import to_arrow
from rankeval_spark.errors import Fault, InputError, first_line, kind_of
from rankeval_spark.inputs.input_columns import HELD_OUT, IDS, LOG

_VALUES: Final = {LOG: C.SCORE, HELD_OUT: C.GAIN}
"""Column of the numbers in a dictionary of users, by input."""
_FIELDS: Final = {
    LOG: (*IDS, C.SCORE),
    HELD_OUT: (*IDS, C.GAIN, C.INTERACTED_AT),
    "train": (*IDS, "rating", C.INTERACTED_AT),
}
"""Columns of rows that are tuples, by input."""
_OF_RANKING: Final = {"ranx": "to_dict", "lenskit": "to_df"}
"""Method that makes a frame of the lists of a library, by library."""
_LISTS: Final = (list, tuple, np.ndarray)
_SHAPES: Final = "{user: {item: number}}, {user: [item, ...]} or {user: [(item, number), ...]}"

_LAZY: Final[tuple[tuple[tuple[str, ...], Callable[[Any], Any], Callable[[Any, Sequence[str]], Any]], ...]] = (
    # polars, narwhals
    (
        ("collect_schema",),
        lambda frame: frame.collect_schema().names(),
        lambda frame, names: frame.select(names).collect(),
    ),
    # data sets of pyarrow and lance
    (("scanner", "to_table"), lambda frame: frame.schema.names, lambda frame, names: frame.to_table(columns=[*names])),
    # Hugging Face, whose rows have an order of their own
    (
        ("column_names", "select_columns", "__len__"),
        lambda frame: frame.column_names,
        lambda frame, names: frame.select_columns([*names]).with_format("arrow")[:],
    ),
    # vaex
    (
        ("get_column_names", "to_arrow_table"),
        lambda frame: frame.get_column_names(),
        lambda frame, names: frame[[*names]].to_arrow_table(),
    ),
    # the dataframe interchange protocol, such as modin
    (
        ("__dataframe__",),
        lambda frame: frame.__dataframe__().column_names(),
        lambda frame, names: interchange.from_dataframe(frame.__dataframe__().select_columns_by_name([*names])),
    ),
    # dask
    (("compute", "columns"), lambda frame: frame.columns, lambda frame, names: frame[[*names]].compute()),
)
"""Frames that do not stream: the methods that they have, their columns, and some of these as a stream."""


@dataclass(frozen=True)
class LazyFrame:
    """A frame whose columns are known, and whose rows are read when some of them are chosen."""

    given: Any  # the frame of the other library
    columns: list[str]
    select: Callable[[Sequence[str]], Any]  # columns of the frame, as a stream of Arrow

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Read all columns."""
        return self.select(self.columns).__arrow_c_stream__(requested_schema)


def is_plain_dict(frame: object) -> bool:
    """Return True for a dict of Python; False for other classes of it, such as the splits of a data set."""
    return isinstance(frame, dict) and type(frame).__module__ in ("builtins", "collections")


def is_dict_of_users(name: str, frame: object) -> bool:
    """Return True for an input that is a dictionary of its users; False for one of columns, or of frames by model."""
    if not is_plain_dict(frame) or {*IDS} & frame.keys():  # type: ignore[attr-defined]  # a dict has keys
        return False
    first = _first_of(frame.values())  # type: ignore[attr-defined]  # and values
    inner = _first_of(first.values() if isinstance(first, dict) else first if _is_list(first) else ())
    if isinstance(first, dict):
        return isinstance(inner, Number)
    is_row = isinstance(inner, dict) or (isinstance(inner, tuple) and len(inner) != 2)  # noqa: PLR2004 - item, number
    return name != LOG or (_is_list(first) and not is_row)


def open_other(name: str, frame: Any) -> object:  # noqa: ANN401 - of any library
    """Return a frame of another kind as one that streams Arrow; unchanged where it is none that is known."""
    if hasattr(type(frame), "__arrow_c_stream__"):
        return frame
    if hasattr(frame, method := _OF_RANKING.get(type(frame).__module__.partition(".")[0], "")):
        return open_other(name, getattr(frame, method)())
    if not (is_plain_dict(frame) or isinstance(frame, list | tuple)):
        return _open_lazy(frame)
    input_ = name.partition("[")[0]
    try:
        if isinstance(frame, dict):
            return _from_users(name, frame) if is_dict_of_users(input_, frame) else _from_columns(frame)
        return _from_rows(name, frame) if input_ in _FIELDS and _first_of(frame) is not None else frame
    except (pa.ArrowException, TypeError, ValueError) as error:
        found = f"a {kind_of(frame)} that Arrow cannot read ({first_line(str(error))})"
        raise InputError(Fault(name, found, "ids of one type each, and numbers", "write all ids as text")) from error


def _open_lazy(frame: Any) -> object:  # noqa: ANN401 - of any library
    """Return a lazy frame, or one of the interchange protocol, with its columns; another one unchanged."""
    if isinstance(frame, dict):  # splits of a data set
        return frame
    if hasattr(frame, "to_pyarrow_dataset"):  # a table of deltalake
        frame = frame.to_pyarrow_dataset()
    for methods, columns, select in _LAZY:
        if all(hasattr(frame, method) for method in methods):
            return LazyFrame(frame, [*map(str, columns(frame))], partial(select, frame))
    return frame


def _first_of(values: Iterable[Any]) -> Any:  # noqa: ANN401 - any value
    """Return the first value that is neither None nor empty; None without one."""
    return next(
        (value for value in values if not (value is None or (hasattr(value, "__len__") and not len(value)))), None
    )


def _is_list(value: object) -> bool:
    return isinstance(value, (*_LISTS, set, frozenset))


def _from_columns(given: Mapping[str, Any]) -> object:
    """Read a dictionary of columns; returned unchanged where its values are none."""
    return pa.table(dict(given)) if all(isinstance(values, (*_LISTS, pa.Array)) for values in given.values()) else given


def _from_rows(name: str, rows: Sequence[Any]) -> object:
    """Read rows that are dictionaries, or tuples in the order of the columns; others are returned unchanged."""
    names = _FIELDS[name.partition("[")[0]]
    if all(isinstance(row, dict) for row in rows):
        return pa.Table.from_pylist([*rows])
    if not all(isinstance(row, list | tuple) for row in rows):
        return rows
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1 or not 2 <= lengths[0] <= len(names):  # noqa: PLR2004 - user and item
        found = f"rows of {' and '.join(map(str, lengths))} values"
        raise InputError(Fault(name, found, f"({', '.join(names)}), the last ones optional", "name them: dictionaries"))
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=False)))


def _from_users(name: str, users: Mapping[Any, Any]) -> pa.Table:
    """Read the items of each user: numbers by item, or items in their order, or pairs of item and number."""
    input_ = name.partition("[")[0]
    lists = [[*each.items()] if isinstance(each, dict) else each for each in users.values()]
    elements = [element for each in lists if _is_list(each) for element in each]
    has_pairs = bool(elements) and isinstance(elements[0], tuple)
    has_order = input_ != LOG or not any(isinstance(each, set | frozenset) for each in lists)
    sizes = {len(element) if isinstance(element, tuple) else 0 for element in elements}
    if not (has_order and sizes <= {2 * has_pairs} and all(map(_is_list, lists))):
        raise InputError(Fault(name, "a dict of users whose values differ, or have no order", _SHAPES))
    lengths = np.array([len(each) for each in lists], dtype=np.int64)
    columns = {C.USER_ID: pc.take(pa.array([*users]), to_arrow(np.repeat(np.arange(len(lengths)), lengths)))}
    columns[C.ITEM_ID] = pa.array([element[0] for element in elements] if has_pairs else elements)
    if has_pairs and input_ in _VALUES:
        columns[_VALUES[input_]] = pa.array([element[1] for element in elements])
    elif input_ == LOG:
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)  # (rows,) row with which the list of each begins
        columns[C.RANK] = to_arrow(np.arange(lengths.sum()) - first + 1)
    return pa.Table.from_pydict(columns)
