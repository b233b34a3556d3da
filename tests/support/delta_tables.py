"""Delta tables of tests: made of rows, with a file a night, as the package writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval_spark.results import data_files, table_scans
from rankeval_spark.results.data_files import FileWriter
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.tables import PARTITIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.results.storage import Storage


def write_new(storage: Storage, table: str, rows: pa.Table) -> None:
    """Create a table with rows, in one commit."""
    data_files.create_table(storage, table, rows.schema, write_by_night(storage, table, rows))


def write_by_night(storage: Storage, table: str, rows: pa.Table, *, run_id: str = "") -> list[dict[str, Any]]:
    """Write a file a night, which no version names; return the add actions."""
    adds = []
    for values in rows.select(PARTITIONS).group_by(PARTITIONS).aggregate([]).to_pylist():
        night = NightKey(*(values[name] for name in PARTITIONS))
        writer = FileWriter(storage, table, night, run_id)
        writer.make_folder()
        writer.add(rows.filter(table_scans.is_of((night.evaluation, night.evaluation_date))))
        adds += writer.finish()
    return adds
