"""Score compact lists that are a table already, such as those of a published night."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.scoring.scorer import COMPACT
from rankeval_spark.measures.required_facts import LIST_NAMES
from rankeval_spark.spark.rows.moved_rows import map_in_arrow, scored_types, type_of
from rankeval_spark.spark.rows.slice_columns import segments_of
from rankeval_spark.spark.rows.usable_rows import quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.engine.outputs import ListOutputs


def to_scored(lists: DataFrame, *, outputs: ListOutputs, has_partials: bool) -> DataFrame:
    """Make one row per list and cutoff, as ``MovedRows.to_scored`` does.

    Parameters
    ----------
    lists : DataFrame
        Rows of ``schemas.LISTS`` from the list key on, with ``hit_scores`` where a measure needs them.
    outputs : ListOutputs
        Measures, policies and slices.
    has_partials : bool
        Whether the first row of each batch has the partial moments of its lists.
    """
    needs = outputs.measures.needs
    for_checks: list[str] = [name for name in C.FOR_CHECKS if name in lists.columns]
    columns = [*C.LIST_KEY, C.SEGMENTS, C.N_DUPLICATES, *COMPACT, *for_checks]
    columns += [name for name in (C.EMPTY_RANKS,) if name in lists.columns]
    columns += [C.HIT_SCORES] if C.HIT_SCORES in needs else []
    list_name = F.concat(F.lit("user "), quoted(F.col(C.USER_ID)), F.lit(" under model "), quoted(F.col(C.MODEL_ID)))
    packed, _ = segments_of(outputs.slices)
    inputs = lists.select(*columns, *packed, *([list_name.alias(LIST_NAMES)] if LIST_NAMES in needs else []))

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = {name: batch[name] for name in batch.schema.names}
            yield outputs.to_scored_rows(outputs.part(arrays), has_partials=has_partials)

    types = scored_types(outputs.measures.stored, for_checks=for_checks, user=type_of(lists, C.USER_ID))
    if not has_partials:
        del types[C.PARTIALS]
    return map_in_arrow(inputs, score, types)
