"""The measures of all lists together, which have no value per user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import schemas
from rankeval_spark.engine.planning import exposure_parts
from rankeval_spark.in_process.exposure import item_exposure
from rankeval_spark.in_process.exposure.audience import UserSegments
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.exposure_rows import ParityRows
from rankeval_spark.result_rows.jackknife_rows import JackknifeRows

if TYPE_CHECKING:
    from rankeval_spark.in_process.rows.assembly import Usable


def to_exposures(usable: Usable) -> pa.Table:
    """Make the rows of ``schemas.METRICS``, from the model on, of these measures; none without a measure."""
    request, schema = usable.request, arrow_schema(schemas.METRICS)
    if not request.measures.exposures:
        return schema.empty_table()
    segments = UserSegments(usable.segments, request.absent)
    parity, others, of_train, reads_catalogue, depth = exposure_parts(request)
    by_catalogue = ((others, usable.catalogue if reads_catalogue else None), (of_train, usable.train))
    parts = []
    if others or of_train:
        ranked = usable.ranked_items(depth=depth)
        parts = [
            item_exposure.to_exposure_rows(
                ranked,
                measures=some,
                models=usable.models,
                segments=segments,
                catalogue=of,
                reported=request.reported,
            )
            for some, of in by_catalogue
            if some
        ]
    if parity.measures:
        rows = ParityRows(parity.measures, JackknifeRows(request.reported), usable.models)
        counts = [*usable.parity_counts(parity), *rows.no_lists().to_batches()]
        parts.append(pa.Table.from_batches(rows.finish(counts), schema))
    return pa.concat_tables([schema.empty_table(), *parts])
