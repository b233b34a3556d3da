"""The measures of all lists together, which have no value per user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.planning import parity_of
from rankeval_spark.in_process.exposure import item_exposure
from rankeval_spark.in_process.exposure.audience import UserSegments
from rankeval_spark.measures.required_facts import TRAINED_ITEMS
from rankeval_spark.result_rows.arrow_schema import arrow_schema
from rankeval_spark.result_rows.exposure.jackknife_rows import JackknifeRows
from rankeval_spark.result_rows.exposure.parity_rows import ParityRows

if TYPE_CHECKING:
    from rankeval_spark.in_process.rows.assembly import Usable


def to_exposures(usable: Usable) -> pa.Table:
    """Make the rows of ``schemas.METRICS``, from the model on, of these measures; none without a measure."""
    request, schema = usable.request, arrow_schema(schemas.METRICS)
    requested = request.measures.exposures
    if not requested:
        return schema.empty_table()
    segments = UserSegments(usable.segments, request.absent)
    parity = parity_of(request)
    shown = [one for one in requested if one not in parity.measures]
    of_train = [one for one in shown if TRAINED_ITEMS in one.needs]
    others = [one for one in shown if TRAINED_ITEMS not in one.needs]
    catalogue = usable.catalogue if any(one.needs_catalogue for one in shown) else None
    by_catalogue = ((others, catalogue), (of_train, usable.train))  # a histogram knows the items of one catalogue
    parts = []
    if shown:
        cutoffs = [one.k for one in shown]
        ranked = usable.ranked_items(depth=0 if C.WHOLE_LIST in cutoffs else max(cutoffs))
        parts = [
            item_exposure.to_exposure_rows(
                ranked, measures=some, segments=segments, catalogue=of, reported=request.reported
            )
            for some, of in by_catalogue
            if some
        ]
    if parity.measures:
        rows = ParityRows(parity.measures, JackknifeRows(request.reported)).finish(usable.parity_counts(parity))
        parts.append(pa.Table.from_batches(rows, schema))
    return pa.concat_tables([schema.empty_table(), *parts])
