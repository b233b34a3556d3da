"""Other people's readers of our tables: each returns the rows of a few columns, sorted."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import duckdb
import duckdb_extension_delta
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Rows = list[tuple[object, ...]]


def read_with_duckdb(table: str, columns: Sequence[str]) -> Rows:
    """Read a table with DuckDB and its delta extension."""
    quoted = ", ".join(f'"{column}"' for column in columns)  # one is called check, which is a word of SQL
    return sorted_rows(_duckdb().execute(f"SELECT {quoted} FROM delta_scan(?)", [table]).fetchall())


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """Load the extension from its wheel: without network or home folder, but in a third of a second of CPU."""
    connection = duckdb.connect()
    load_delta(connection)
    atexit.register(connection.close)  # its threads must have ended when the interpreter does
    return connection


def load_delta(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the extension ``delta`` from its wheel."""
    extension = next(Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
    connection.load_extension(str(extension))


def read_with_polars(table: str, columns: Sequence[str]) -> Rows:
    """Read a table with Polars."""
    return sorted_rows(pl.read_delta(table, columns=list(columns)).select(columns).rows())


def read_with_deltalake(table: str, columns: Sequence[str]) -> Rows:
    """Read a table with delta-rs, through Arrow."""
    frame = deltalake.DeltaTable(table).to_pyarrow_table(columns=list(columns))
    return sorted_rows([tuple(row[column] for column in columns) for row in frame.to_pylist()])


def sorted_rows(rows: Sequence[tuple[object, ...]]) -> Rows:
    """Sort rows that may hold NULL."""
    return sorted(rows, key=str)


READERS: dict[str, Callable[[str, Sequence[str]], Rows]] = {
    "duckdb": read_with_duckdb,
    "polars": read_with_polars,
    "deltalake": read_with_deltalake,
}
