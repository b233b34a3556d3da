"""Measures of all lists together as sums: how many lists show each item, and counts for groups of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.planning import exposure_parts
from rankeval_spark.measures.measure_set import mean_weight
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.exposure_rows import ENTRIES, SLICE, SLICE_BUCKET, ExposureRows, ParityRows
from rankeval_spark.sums.item_counts import ItemCounter
from rankeval_spark.sums.sums import METRICS, Sum

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.aggregation.parity_sums import Parity
    from rankeval_spark.engine.outputs import Part

EXPOSURES: Final = "exposures"
EXPOSURES_OF_TRAIN: Final = "exposures_of_train"
PARITIES: Final = "parities"

CATALOGUE: Final = "items"  # items that a sum knows: of the input of this name or, without it, of ``train``
TRAIN: Final = "train"


class _OfAllLists(Sum):
    """Rows of ``metrics``, in the columns of ``schemas.METRICS`` from the model on."""

    rows: ExposureRows | ParityRows
    schema = arrow_schema(schemas.METRICS)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Merge the partial rows of some slices, and make a row of each measure."""
        return pa.Table.from_batches(self.rows.finish(rows.to_batches()), self.schema)

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002 - as the others
        """Add the rows of all users where no model has a list."""
        has_all = pc.any(pc.equal(rows[C.SLICE], C.ALL_USERS)).as_py()
        return rows if has_all else pa.concat_tables([rows, self.finish(self.rows.no_lists())])


@dataclass(frozen=True)
class Exposures(_OfAllLists):
    """Measures of how often each item is shown, from histograms of the items and numbers of lists."""

    rows: ExposureRows
    counter: ItemCounter
    key: ClassVar[tuple[str, ...]] = (SLICE_BUCKET,)

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return the numbers of lists and users of every slice; items are those of :class:`ShownItems`."""
        return self.counter.count_lists(part)


@dataclass(frozen=True)
class ShownItems(Sum):
    """Items by how many lists show them: made of all lists that show an item, partial rows of :class:`Exposures`."""

    counter: ItemCounter
    catalogue: str | None  # CATALOGUE or TRAIN, whose items are known; None where no measure reads them
    into: str | None = EXPOSURES
    schema = ENTRIES
    key: ClassVar[tuple[str, ...]] = (C.ITEM_ID,)

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return how many lists of some users show each item."""
        return self.counter.count_items(part)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Make histograms of some items."""
        found = self.counter.to_entries(rows, has_catalogue=self.catalogue is not None)
        return pa.Table.from_batches(found, self.schema)


@dataclass(frozen=True)
class Parities(_OfAllLists):
    """Measures of parity, from counts for groups of popularity or categories."""

    rows: ParityRows
    parity: Parity
    key: ClassVar[tuple[str, ...]] = SLICE[1:]  # all models of a slice meet

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return the counts of the users with a list."""
        return self.parity.add_up(part)


@dataclass(frozen=True)
class CatalogueItems:
    """Partial rows of the items of a catalogue; see ``sums.Addition``."""

    sums: Mapping[str, ShownItems]  # those that read it

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the items of a partition."""
        parts = [batch[C.ITEM_ID].unique() for batch in batches if batch.num_rows]
        if parts:
            items = pa.chunked_array(parts).unique().drop_null()
            yield from ((name, one.counter.known(items)) for name, one in self.sums.items())


def exposure_sums(request: Request, models: Sequence[str]) -> dict[str, Sum]:
    """Return the sums of the measures of all lists together; ``models`` are all that are expected."""
    names = tuple(models)
    parity, others, of_train, reads_catalogue = exposure_parts(request)
    found: dict[str, Sum] = {}
    catalogues = ((EXPOSURES, others, CATALOGUE if reads_catalogue else None), (EXPOSURES_OF_TRAIN, of_train, TRAIN))
    for name, measures, catalogue in catalogues:
        if measures:
            counter = ItemCounter.of(measures, request.every_slice)
            found[f"items_of_{name}"] = ShownItems(counter, catalogue, name)
            found[name] = Exposures(ExposureRows(measures, request.reported, names), counter)
    if parity.measures:
        found[PARITIES] = Parities(ParityRows(parity.measures, request.reported, names), parity)
    return found


def readers_of_catalogues(sums: Mapping[str, Sum]) -> dict[str, dict[str, ShownItems]]:
    """Group the sums that read which items there are by their catalogue, CATALOGUE or TRAIN."""
    found: dict[str, dict[str, ShownItems]] = {}
    for name, one in sums.items():
        if isinstance(one, ShownItems) and one.catalogue is not None:
            found.setdefault(one.catalogue, {})[name] = one
    return found


def to_metrics(totals: Mapping[str, pa.Table], request: Request) -> pa.Table:
    """Return the rows of ``metrics`` of all sums; not of what only checks read."""
    names = (METRICS, EXPOSURES, EXPOSURES_OF_TRAIN, PARITIES)
    found = pa.concat_tables([totals[name] for name in names if name in totals])
    if request.measure_set.with_mean_weight == request.measure_set:
        return found
    return found.filter(pc.not_equal(found[C.MEASURE], mean_weight().label))
