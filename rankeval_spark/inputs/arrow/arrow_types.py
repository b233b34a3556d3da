"""Types of Arrow: which of them are text or numbers, what Spark calls them, and columns in their plain types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

_SPARK_NAMES: Final = {
    **{pa.null(): "void", pa.bool_(): "boolean", pa.date32(): "date", pa.date64(): "date"},
    **{pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"},
    **{pa.float16(): "float", pa.float32(): "float", pa.float64(): "double"},
}
_LISTS: Final = (pa.ListType, pa.LargeListType, pa.ListViewType, pa.LargeListViewType, pa.FixedSizeListType)


def is_text(kind: pa.DataType) -> bool:
    """Return True for a type of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return True for a type of lists: with 32 or 64 bits, as views, or of a fixed size."""
    return isinstance(kind, _LISTS)


def is_binary(kind: pa.DataType) -> bool:
    """Return True for a type of bytes, of a fixed length too."""
    is_fixed = pa.types.is_fixed_size_binary(kind)
    return bool(is_fixed or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def is_nested(kind: pa.DataType) -> bool:
    """Return True for a type whose values have no text and no number: lists, maps, structs, bytes, opaque types."""
    return bool(pa.types.is_nested(kind) or is_binary(kind) or isinstance(kind, pa.OpaqueType))


def is_number(kind: pa.DataType) -> bool:
    """Return True for a type of numbers, truth values aside."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def spark_name(kind: pa.DataType) -> str:  # noqa: PLR0911 - a kind of type each
    """Return the name that Spark has for a type, as in ``array<double>``; what Spark does not have keeps its name.

    >>> spark_name(pa.large_list(pa.string_view())), spark_name(pa.timestamp("ns"))
    ('array<string>', 'timestamp_ntz')
    """
    if is_text(kind):
        return "string"
    if is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if pa.types.is_dictionary(kind):
        return spark_name(kind.value_type)
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in kind)}>"
    if isinstance(kind, pa.OpaqueType):
        return str(kind.type_name)
    if isinstance(kind, pa.BaseExtensionType):
        return spark_name(kind.storage_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return "binary" if is_binary(kind) else _SPARK_NAMES.get(kind, str(kind))


def to_plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write out how a column is stored: dictionaries, runs, extensions and other kinds of text.

    A column that is plain is returned as it is. Text is ``string``, which shares the bytes of ``large_string``.

    >>> to_plain(pa.chunked_array([pa.array(["a", None, "a"]).dictionary_encode()])).to_pylist()
    ['a', None, 'a']
    """

    def by_chunk(change: Callable[[pa.Array], pa.Array], type_: pa.DataType) -> pa.ChunkedArray:
        return to_plain(pa.chunked_array([change(chunk) for chunk in column.chunks], type_))

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.OpaqueType):
        return by_chunk(lambda chunk: chunk.storage, kind.storage_type)
    if pa.types.is_dictionary(kind):
        # A cast of the whole does not know dictionaries of string_view, which those of polars are.
        value = pa.string() if is_text(kind.value_type) else kind.value_type
        return by_chunk(lambda chunk: pc.take(chunk.dictionary.cast(value), chunk.indices), value)
    if pa.types.is_run_end_encoded(kind):
        return by_chunk(pc.run_end_decode, kind.value_type)
    return column.cast(pa.string()) if is_text(kind) and kind != pa.string() else column
