"""Inputs: the only place where tables are read. The result has canonical columns."""

from rankeval_spark.config.input_columns import check_id_types, segments_schema
from rankeval_spark.sources.failures import explain
from rankeval_spark.sources.probes import estimated_bytes, is_wholly_empty, kept_partitions
from rankeval_spark.sources.reading import from_frame, read, read_all
from rankeval_spark.sources.source import IS_UNPARSABLE, RAW, Source, Sources

__all__ = [
    "IS_UNPARSABLE",
    "RAW",
    "Source",
    "Sources",
    "check_id_types",
    "estimated_bytes",
    "explain",
    "from_frame",
    "is_wholly_empty",
    "kept_partitions",
    "read",
    "read_all",
    "segments_schema",
]
