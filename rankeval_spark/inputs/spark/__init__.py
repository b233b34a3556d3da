"""Inputs: the only place where tables are read. The result has canonical columns."""

from rankeval_spark.inputs.input_columns import IS_UNPARSABLE, RAW
from rankeval_spark.inputs.spark.opening import explain
from rankeval_spark.inputs.spark.probes import cached_partitions, estimated_bytes, is_wholly_empty
from rankeval_spark.inputs.spark.reading import Source, Sources, from_frame, read_all, read_input

__all__ = [
    "IS_UNPARSABLE",
    "RAW",
    "Source",
    "Sources",
    "cached_partitions",
    "estimated_bytes",
    "explain",
    "from_frame",
    "is_wholly_empty",
    "read_all",
    "read_input",
]
