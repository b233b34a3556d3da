"""Partial rows of the sums that checks read of the inputs that workers do not see with the lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.checks import NotFiniteVector, ends_of_ids, meets
from rankeval_spark.engine.codes import to_codes
from rankeval_spark.sums.input_checks import (
    BANDS,
    N_KNOWN,
    ROWS,
    SEGMENT_VALUES,
    VECTORS,
    BandFacts,
    SegmentValues,
    VectorLengths,
    tally_rows,
)
from rankeval_spark.sums.sums import ITEMS

if TYPE_CHECKING:
    from rankeval_spark.in_process.assembly import Usable
    from rankeval_spark.sums.input_checks import InputChecks


def other_inputs(usable: Usable, asked: InputChecks) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield partial rows with the names of their sums."""
    tables = usable.tables
    for name in ("train", "items", *(["segments"] if asked.is_judged else [])):
        if name in asked.of_rows:
            checks, table = asked.of_rows[name], usable.given(name)
            yield ROWS, tally_rows(checks.tallies(table, checks.flags(table)))
    if asked.has_bands:
        facts = [asdict(one) for one in usable.segments_and_facts[1]]
        yield BANDS, pa.RecordBatch.from_pylist(facts, BandFacts.schema)
    if asked.catalogue is not None and usable.catalogue is not None:
        yield ITEMS, known_items(usable.catalogue)
    if asked.has_vectors and usable.items is not None:
        yield VECTORS, vector_lengths(usable.items)
    if asked.texts and tables.segments is not None:
        yield SEGMENT_VALUES, segment_values(asked.of_rows["segments"].usable(tables.segments.table), asked.texts)


def known_items(catalogue: pa.Table) -> pa.RecordBatch:
    """Count the rows of each item of a catalogue: ``item_id``, ``n_judged, n_listed`` of 0, and ``n_known``."""
    codes = to_codes(catalogue[C.ITEM_ID])
    n_rows, none = np.bincount(codes.code, minlength=codes.n_values), np.zeros(codes.n_values, dtype=np.int64)
    cells = [codes.values, to_arrow(none), to_arrow(none), to_arrow(n_rows)]
    return pa.RecordBatch.from_arrays(cells, [C.ITEM_ID, "n_judged", "n_listed", N_KNOWN])


def vector_lengths(items: pa.Table) -> pa.RecordBatch:
    """Count the items by the length of their vector; one some of whose numbers are no numbers has none."""
    vectors = in_one_piece(items[C.VECTOR])
    has_vector = to_numpy(pc.is_valid(vectors)) & ~meets(items, NotFiniteVector(C.VECTOR))
    length = to_numpy(pc.list_value_length(vectors), null=0)[has_vector]
    ids = in_one_piece(items[C.ITEM_ID]).filter(to_arrow(has_vector))
    lengths, n_items = (each.tolist() for each in np.unique(length, return_counts=True))
    first = [ends_of_ids(ids, length == each)[0] for each in lengths]
    return pa.RecordBatch.from_pydict(
        dict(zip(VectorLengths.schema.names, (lengths, n_items, first), strict=True)), VectorLengths.schema
    )


def segment_values(segments: pa.Table, names: Sequence[str]) -> pa.RecordBatch:
    """Collect the values of these segments: ``segment, value``, each once."""
    rows = [(name, value) for name in names for value in pc.unique(segments[name]).drop_null().to_pylist()]
    return pa.RecordBatch.from_pylist(
        [dict(zip(SegmentValues.schema.names, row, strict=True)) for row in rows], SegmentValues.schema
    )
