"""Columns of ids in the types that tables have, with the ids that they are."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

UUIDS: Final = ("00000000-0000-0000-0000-00000000000a", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
BYTES: Final = [UUID(text).bytes for text in UUIDS]

READ: Final[Mapping[str, tuple[pa.Array, list[Any]]]] = {
    "decimals without a fraction": (
        pa.array([Decimal(7), Decimal(-(2**63)), None], pa.decimal128(38, 0)),
        [7, -(2**63), None],
    ),
    "decimals that are whole": (
        pa.array([Decimal("7.00"), Decimal("-8.00"), None], pa.decimal128(10, 2)),
        [7, -8, None],
    ),
    "unsigned": (pa.array([7, 2**63 - 1, None], pa.uint64()), [7, 2**63 - 1, None]),
    "unsigned 32": (pa.array([7, 2**32 - 1, None], pa.uint32()), [7, 2**32 - 1, None]),
    "UUIDs": (pa.array([*BYTES, None], pa.uuid()), [*UUIDS, None]),
    "16 bytes": (pa.array([*BYTES, None], pa.binary(16)), [*UUIDS, None]),
    "bytes": (pa.array([*BYTES, None], pa.binary()), [*UUIDS, None]),
}
"""Columns that are read as they are, in every format of files that has their type, and their ids."""

REFUSED: Final[Mapping[str, tuple[pa.Array, str, str]]] = {
    "beyond 64 bits": (
        pa.array([Decimal(7), Decimal(2**63)], pa.decimal128(38, 0)),
        "decimal(38,0) (9223372036854775808 needs more than 64 bits)",
        "write {0}.types: {{user_id: string}}, and for the other inputs too",
    ),
    "fraction": (
        pa.array([Decimal("7.00"), Decimal("7.50")], pa.decimal128(10, 2)),
        "decimal(10,2) (7.50 is no whole number)",
        "write {0}.types: {{user_id: string}}, and for the other inputs too",
    ),
    "other bytes": (
        pa.array([b"ann", BYTES[0]]),
        "binary",
        "bytes are read as UUIDs, where all have 16 of them: write other ids as text",
    ),
}
"""Columns that are refused by a value: type as it is named, and the fix, where the place goes."""

AS_TEXT: Final[Mapping[str, tuple[pa.Array, list[Any]]]] = {
    "beyond 64 bits": (pa.array([Decimal(2**63), Decimal(7)], pa.decimal128(38, 0)), [str(2**63), "7"]),
    "decimals": (
        pa.array([Decimal("7.00"), Decimal("0.00"), Decimal("7.50")], pa.decimal128(10, 2)),
        ["7", "0", "7.50"],
    ),
    "floats": (pa.array([7.0, float("nan"), 1e15, 7.5]), ["7", None, str(10**15), "7.5"]),
}
"""Columns whose ids the config reads with ``types: {user_id: string}``, and the text of these."""
