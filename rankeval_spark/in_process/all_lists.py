"""The measures of all lists together, which have no value per user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rankeval_spark import columns as C, schemas
from rankeval_spark.in_process import exposures, parities
from rankeval_spark.in_process.parity_counts import Offer
from rankeval_spark.in_process.popularity import to_popularity_groups
from rankeval_spark.measures.needs import TRAINED_ITEMS
from rankeval_spark.result_rows.arrow_schema import arrow_schema

if TYPE_CHECKING:
    from rankeval_spark.in_process.assembly import Usable


def to_exposures(usable: Usable) -> pa.Table:
    """Make the rows of ``schemas.METRICS``, from the model on, of these measures; none without a measure."""
    request, schema = usable.request, arrow_schema(schemas.METRICS)
    requested = request.measures.exposures
    if not requested:
        return schema.empty_table()
    cutoffs = [one.k for one in requested]
    ranked = usable.ranked_items(depth=0 if C.WHOLE_LIST in cutoffs else max(cutoffs))
    options: dict[str, Any] = {
        "segments": usable.segments,
        "absent": request.absent,
        "slices": request.every_slice,
        "min_slice_size": request.min_slice_size,
        "confidence": request.confidence,
    }
    shown, offered = ([one for one in requested if one.entry.kind == kind] for kind in ("exposure", "parity"))
    of_train = [one for one in shown if TRAINED_ITEMS in one.needs]
    others = [one for one in shown if TRAINED_ITEMS not in one.needs]
    catalogue = usable.catalogue if any(one.needs_catalogue for one in requested) else None
    by_catalogue = ((others, catalogue), (of_train, usable.train))  # a histogram knows the items of one catalogue
    parts = [exposures.to_rows(ranked, measures=some, catalogue=of, **options) for some, of in by_catalogue if some]
    if offered and usable.train is not None:
        of_catalogue = catalogue if any(one.needs_catalogue for one in offered) else None
        offer = Offer(usable.judgements, usable.train, to_popularity_groups(usable.train), of_catalogue, usable.items)
        parts.append(parities.to_rows(ranked, measures=offered, offer=offer, **options))
    return pa.concat_tables([schema.empty_table(), *parts])
