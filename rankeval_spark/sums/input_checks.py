"""Sums that checks of the inputs read: about the log and the judgements from the workers, and the other inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_numpy
from rankeval_spark.engine.checks import (
    ITEM_FIELDS,
    ROWS as N_ROWS,
    PartitionTallies,
    RowChecks,
    Tally,
    add_tallies,
    first_and_last_id,
    refuse_by_check,
)
from rankeval_spark.engine.planning import counted_needs
from rankeval_spark.measures import required_facts as N
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount
from rankeval_spark.sums.sums import ITEMS, Sum

if TYPE_CHECKING:
    from rankeval_spark.config.check_thresholds import CheckName
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.job import Job
    from rankeval_spark.measures.arrays import BoolVector

ROWS: Final = "rows"
VECTORS: Final = "vector_lengths"
SEGMENT_VALUES: Final = "segment_values"
VALUE_NAMES: Final = "value_names"
BANDS: Final = "bands"

TALLIES: Final = pa.schema(
    {
        **{"input": pa.string(), "check": pa.string(), "count": pa.int64(), "total": pa.int64()},
        **{"first": pa.string(), "last": pa.string()},
    }.items()
)
"""Fields of :class:`Tally`."""

N_KNOWN: Final = "n_known"  # rows of the catalogue that have an item


def tallies_to_rows(tallies: Iterable[Tally]) -> pa.RecordBatch:
    """Return tallies as rows of :data:`TALLIES`."""
    return pa.RecordBatch.from_pylist([asdict(tally) for tally in tallies], TALLIES)


def rows_to_tallies(rows: pa.Table) -> dict[tuple[str, CheckName], Tally]:
    """Add up tallies, by input and check."""
    found: dict[tuple[str, CheckName], Tally] = {}
    add_tallies(found, (Tally(**row) for row in rows.to_pylist()))
    return found


@dataclass(frozen=True)
class RowTallies(Sum):
    """Counts by check: unusable rows, repeated judgements, seen items; rows of :data:`TALLIES`."""

    refused: tuple[RowChecks, ...] = ()  # of inputs that are refused where no row can be used
    schema = TALLIES

    def rest(self, tallies: PartitionTallies) -> Iterable[pa.RecordBatch]:
        yield tallies_to_rows(tallies.tallies.values())

    def finish(self, rows: pa.Table) -> pa.Table:
        """Add tallies up; refuse an input that has rows and none that can be used, unless checks judge it."""
        found = rows_to_tallies(rows)
        for of_input in self.refused:
            counts = {check: tally.count for (name, check), tally in found.items() if name == of_input.input}
            by_check: dict[str | None, int] = {
                check.name: counts.get(check.name, 0) for check in of_input.checks if check.drops
            }
            n_usable = counts.get(N_ROWS, 0) - sum(by_check.values())
            refuse_by_check(of_input.input, {**by_check, None: n_usable})
        return pa.Table.from_batches([tallies_to_rows(found.values())])


@dataclass(frozen=True)
class ItemTallies(Sum):
    """Counts of items by where they occur: rows of :data:`TALLIES` that add up."""

    has_items: bool  # whether the catalogue is an input of its own
    has_catalogue: bool  # whether it is known which items there are
    drops_unknown: bool
    schema = TALLIES
    key = (C.ITEM_ID,)

    def rest(self, tallies: PartitionTallies) -> Iterable[pa.RecordBatch]:
        if tallies.items:
            found = pa.concat_tables(pa.Table.from_arrays(list(each), ITEM_FIELDS) for each in tallies.items)
            found = found.append_column(N_KNOWN, to_arrow(np.zeros(found.num_rows, dtype=np.int64)))
            yield from (_sum_by_item(found) if len(tallies.items) > 1 else found).to_batches()

    def finish(self, rows: pa.Table) -> pa.Table:
        items = _sum_by_item(rows)
        ids = combine_chunks(items[C.ITEM_ID])
        n_judged, n_listed, n_known = (to_numpy(items[name]) for name in (*ITEM_FIELDS[1:], N_KNOWN))

        def tally(
            of: str, check: CheckName, counts: np.ndarray, is_concerned: BoolVector, total: int | None = None
        ) -> Tally:
            n_all = int(counts.sum()) if total is None else total
            return Tally(of, check, int(counts[is_concerned].sum()), n_all, *first_and_last_id(ids, is_concerned))

        is_listed = n_listed > 0
        found = [tally("held_out", check_rows.UNMATCHED_ITEMS, n_judged, (n_judged > 0) & ~is_listed)]
        if self.has_catalogue:
            is_unknown = is_listed & (n_known == 0)
            found.append(tally("recommendations", check_rows.UNKNOWN_ITEMS, is_listed.astype(np.int64), is_unknown))
            if self.drops_unknown:
                found.append(tally("recommendations", check_rows.UNKNOWN_ROWS, n_listed, is_unknown))
        if self.has_items:
            copies = np.maximum(n_known - 1, 0)
            found.append(tally("items", check_rows.DUPLICATES, copies, copies > 0, int(n_known.sum())))
        return pa.Table.from_batches([tallies_to_rows(found)])


def _sum_by_item(rows: pa.Table) -> pa.Table:
    """Add up the rows of each item."""
    names = [*ITEM_FIELDS[1:], N_KNOWN]
    found = rows.group_by(C.ITEM_ID, use_threads=False).aggregate([(name, "sum") for name in names])
    return found.select([C.ITEM_ID, *(f"{name}_sum" for name in names)]).rename_columns([C.ITEM_ID, *names])


class VectorLengths(Sum):
    """Items by the length of their vector, with the first of them."""

    schema = pa.schema({"length": pa.int64(), "n_items": pa.int64(), "item": pa.string()}.items())

    def finish(self, rows: pa.Table) -> pa.Table:
        found = rows.group_by("length").aggregate([("n_items", "sum"), ("item", "min")])
        return found.select(["length", "n_items_sum", "item_min"]).rename_columns(self.schema.names).cast(self.schema)


class SegmentValues(Sum):
    """The values of segments that are text, each once."""

    schema = pa.schema({"segment": pa.string(), "value": pa.string()}.items())

    def finish(self, rows: pa.Table) -> pa.Table:
        return rows.group_by(self.schema.names).aggregate([]).select(self.schema.names)


class ValueNames(SegmentValues):
    """The names of own values of users that measures read and rows have, each once."""

    schema = pa.schema({"name": pa.string()}.items())


class BandFacts(Sum):
    """Edges of bands, and how many users have no number: fields of :class:`CheckCount`."""

    schema = pa.schema(
        {
            **{"input": pa.string(), "check": pa.string(), "count": pa.int64(), "total": pa.int64()},
            "sample_keys": pa.list_(pa.string()),
        }.items()
    )


@dataclass(frozen=True)
class InputChecks:
    """Sums that the checks of a request's inputs need, and the facts that are made of them."""

    request: Request
    of_rows: Mapping[str, RowChecks]  # of the inputs that there are, by name, in their order
    has_bands: bool
    is_judged: bool  # whether checks judge the inputs; else one without a usable row is refused

    @property
    def has_vectors(self) -> bool:
        """True if the lengths of vectors are compared."""
        return "items" in self.of_rows and N.VECTOR in self.request.measure_set.requiring()

    @property
    def drops_unknown(self) -> bool:
        """True if items that the catalogue does not have are dropped; `train` is a catalogue only then."""
        return self.request.policies.unknown_items == "drop"

    @property
    def catalogue(self) -> str | None:
        """Input that has all items: the catalogue, or `train` where unknown items are dropped."""
        named = "items" if "items" in self.of_rows else "train" if self.drops_unknown else None
        return named if named in self.of_rows else None

    @property
    def texts(self) -> list[str]:
        """Segments that are text in the table, whose values may be written in two ways."""
        has_table = "segments" in self.of_rows
        return [name for name in self.request.segments if name not in self.request.slicing.bands] if has_table else []

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the own values of users that measures read."""
        return self.request.measure_set.user_value_names if "user_values" in self.of_rows else ()

    @property
    def sums(self) -> dict[str, Sum]:
        """The sums that count the inputs, by name."""
        refused = () if self.is_judged else tuple(self.of_rows[name] for name in ("recommendations", "held_out"))
        items = ItemTallies("items" in self.of_rows, self.catalogue is not None, self.drops_unknown)
        return {
            ROWS: RowTallies(refused),
            ITEMS: items,
            **({VECTORS: VectorLengths()} if self.has_vectors else {}),
            **({SEGMENT_VALUES: SegmentValues()} if self.texts else {}),
            **({VALUE_NAMES: ValueNames()} if self.value_names else {}),
            **({BANDS: BandFacts()} if self.has_bands else {}),
        }

    def facts(self, totals: Mapping[str, pa.Table]) -> list[CheckCount]:
        """Return the facts of the checks from totals of :attr:`sums`, also of inputs without a row."""
        tallies = rows_to_tallies(pa.concat_tables([totals[ROWS], totals[ITEMS]]))
        counted = (tallies.get(key, Tally(*key, 0, 0)) for key in dict.fromkeys([*self._fact_keys(), *tallies]))
        facts = [CheckCount(each.input, each.check, each.count, each.total, each.sample_keys) for each in counted]
        if VECTORS in totals:
            facts.append(check_rows.count_vector_lengths(tuple(row.values()) for row in totals[VECTORS].to_pylist()))
        if BANDS in totals:
            facts += [CheckCount(**row) for row in totals[BANDS].to_pylist()]
        if SEGMENT_VALUES in totals:
            values = (tuple(row.values()) for row in totals[SEGMENT_VALUES].to_pylist())
            facts.append(check_rows.count_alike_values(values))
        if VALUE_NAMES in totals:
            absent = sorted({*self.value_names} - {*totals[VALUE_NAMES]["name"].to_pylist()})
            names = len(self.value_names)
            facts.append(CheckCount("user_values", check_rows.ABSENT_USER_VALUES, len(absent), names, absent))
        return facts

    def _fact_keys(self) -> list[tuple[str, CheckName]]:
        """Return the inputs and checks of the facts from tallies, in their order."""
        of_judgements: list[CheckName] = [check_rows.DUPLICATES, check_rows.ZERO_RELEVANT, check_rows.UNMATCHED_ITEMS]
        if C.LIST_ID in self.of_rows["held_out"].key:
            of_judgements.append(row_kinds.UNMATCHED_LISTS)
        if counted_needs(self.request, has_train="train" in self.of_rows):
            of_judgements.append(row_kinds.HELD_OUT_IN_TRAIN)
        after: dict[str, list[CheckName]] = {"held_out": of_judgements, "items": [check_rows.DUPLICATES]}
        of_rows: dict[str, list[tuple[str, CheckName]]] = {
            key: [(key, name) for name in (N_ROWS, *(check.name for check in rows.checks), *after.get(key, []))]
            for key, rows in self.of_rows.items()
        }
        names = [name for key, checks in of_rows.items() if key != "segments" for name in checks]
        if self.catalogue is not None:
            names.append(("recommendations", check_rows.UNKNOWN_ITEMS))
            names += [("recommendations", check_rows.UNKNOWN_ROWS)] if self.drops_unknown else []
        if self.request.policies.drops_seen and "train" in self.of_rows:
            names.append(("recommendations", check_rows.SEEN_IN_TRAIN))
        return [*names, *(of_rows.get("segments", []) if self.is_judged else [])]


@dataclass(frozen=True)
class InputCounts:
    """The sums of the inputs alone: no list is made."""

    job: Job
    sums: Mapping[str, Sum]

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the partial rows of each sum for the users of a partition."""
        tallies = PartitionTallies(is_enabled=True)
        self.job.count(batches, tallies)
        for name, sum_ in self.sums.items():
            yield from ((name, rows) for rows in sum_.rest(tallies))
