"""What a worker makes of rows does not depend on how Spark cuts them into batches, empty ones among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings, strategies as st

from rankeval_spark import columns as C
from rankeval_spark.config.slicing import ReportedSlices
from rankeval_spark.engine.buckets import GROUP
from rankeval_spark.engine.scorer import Scored, score_lists
from rankeval_spark.measures import Background, Item, Measure, MeasureSet, Ranking, registry
from rankeval_spark.measures.worked_examples import examples_of
from rankeval_spark.result_rows import group_rows, metric_rows
from rankeval_spark.result_rows.exposure_rows import ENTRIES, ExposureRows, ParityRows
from tests.support.compact import to_columns
from tests.support.rankings import OTHER_MODEL, rankings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REFUSING: Final = ("missing='error'", "gains={")
"""Options that refuse some lists; what they refuse does not depend on batches either."""


def every_measure() -> MeasureSet:
    """Every measure of the worked examples that has a value a list, at two cutoffs where it takes one."""
    found: list[Measure] = []
    for entry in registry.entries("list"):
        for example in examples_of(entry):
            text = example.measure.replace("model='popular'", f"model='{OTHER_MODEL}'")
            text = text.replace("model='random'", f"model='{OTHER_MODEL}'").replace("max_rel=1", "max_rel=3")
            if not any(option in text for option in REFUSING):
                found.append(Measure.parse(text))
    return MeasureSet.of(list(dict.fromkeys(found)))


MEASURES: Final = every_measure()


def bits(parts: Sequence[Scored]) -> dict[str, bytes]:
    """Put the values and counts of some batches together; NaN has many bits, and is one value."""
    names = [("values", name) for name in parts[0].values] + [("counts", name) for name in parts[0].counts]
    found = {}
    for kind, name in names:
        together = np.concatenate([getattr(part, kind)[name] for part in parts])
        found[f"{kind} {name}"] = (np.where(np.isnan(together), np.nan, together) + 0.0).tobytes()
    return found


def cut(batch: pa.RecordBatch, size: int, *, is_copied: bool) -> Iterator[pa.RecordBatch]:
    """Cut rows into batches of a size, an empty one before, between and after them."""
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, 0)
        part = batch.slice(start, size)
        yield part.take(pa.array(range(part.num_rows), pa.int64())) if is_copied else part
    yield batch.slice(batch.num_rows, 0)


def scored(batch: pa.RecordBatch, measures: MeasureSet = MEASURES, ties: str = "item_asc") -> Scored:
    """Score a batch as the worker does."""
    columns = {name: batch[name] for name in batch.schema.names}
    return score_lists(columns, measures, zero_relevant="exclude", ties=ties)


UNKNOWN: Final = Ranking([1, None, 1], items=(Item(), Item(), Item()))
"""A list without known facts."""

NO_VECTOR: Final = Ranking(
    [None, 1], items=(Item(2, 2, categories=("a",)), Item(1, 1)), background=Background(9, 5, 1, 4, 2, catalogue=9)
)
KNOWN: Final = Ranking(
    [1, None, 1],
    items=(Item(vector=(1, 0, 2)), Item(vector=(0, 1, 1)), Item()),
    background=Background(9, 5, 1, 4, 2, (("a", 1, 1),), (0.5, 0.5, 0), catalogue=9),
)
GAPPED: Final = KNOWN._replace(gains=[None, None, 1], empty=[2])
NONE: Final = Ranking([], missed=[1])


@pytest.mark.parametrize("ties", ["item_asc", "expected"])
@settings(max_examples=6, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(lists=st.lists(rankings(grades=(-1.0, 0.0, 0.5, 1.0)), max_size=5))
def test_scores_have_the_same_bits_in_batches_of_every_size(lists: list[Ranking], ties: str) -> None:
    takes_all = [one for one in MEASURES.measures if ties != "expected" or one.entry.has_mean_over_ties]
    measures = MeasureSet.of(takes_all)
    rows = [*lists, NONE, UNKNOWN, NO_VECTOR, KNOWN, *([GAPPED] if ties != "expected" else [])]
    batch = to_columns(rows, groups=measures.groups, models=measures.other_models)
    whole = bits([scored(batch, measures, ties)])

    for size in range(1, batch.num_rows + 1):
        parts = [scored(part, measures, ties) for part in cut(batch, size, is_copied=bool(size % 2))]
        different = {name for name, value in bits(parts).items() if value != whole[name]}
        assert different == set(), size


@pytest.mark.parametrize(
    "lists", [[], [NONE], [NONE, NONE], [UNKNOWN], [NO_VECTOR], [UNKNOWN, NONE], [KNOWN], [GAPPED]], ids=repr
)
def test_batch_of_nothing_is_scored(lists: list[Ranking]) -> None:
    batch = to_columns(lists, groups=MEASURES.groups, models=MEASURES.other_models)
    assert all(len(each) == len(lists) for each in scored(batch).values.values())


MAY_BE_NULL: Final = (C.EMPTY_RANKS, C.ITEM_FACTS, C.PROFILE, C.PAIRS, C.OTHER_LISTS)


@pytest.mark.parametrize("column", MAY_BE_NULL)
def test_column_that_is_null_in_a_whole_batch_is_read(column: str) -> None:
    schema = to_columns([], groups=MEASURES.groups, models=MEASURES.other_models).schema
    rows = [KNOWN, NO_VECTOR, NONE]
    batch = to_columns(rows, groups=MEASURES.groups, models=MEASURES.other_models)
    field = schema.get_field_index(column)
    nulls = batch.set_column(field, column, pa.nulls(len(rows), schema.field(column).type))
    together, apart = (bits([scored(one) for one in cut(nulls, size, is_copied=True)]) for size in (3, 1))
    assert together == apart


SLICE_FIELDS: Final = {
    C.MODEL_ID: pa.string(),
    "slice_index": pa.int32(),
    C.SLICE_VALUES: pa.list_(pa.string()),
    C.K: pa.int32(),
}
REPORTED: Final = ReportedSlices([()], 1, 0.95)
RATES: Final = pa.schema(
    {
        **SLICE_FIELDS,
        **{GROUP: pa.int32(), "n_users": pa.int64(), C.N_LISTS: pa.int64(), "_sums": pa.list_(pa.float64())},
    }
)


@pytest.mark.parametrize("kind", ["exposure", "parity"])
def test_batch_without_a_slice_has_no_row(kind: Literal["exposure", "parity"]) -> None:
    names = [example.measure for entry in registry.entries(kind) for example in examples_of(entry)]
    measures = tuple(dict.fromkeys(map(Measure.parse, names)))
    finisher = ExposureRows(measures, REPORTED) if kind == "exposure" else ParityRows(measures, REPORTED)
    nothing = pa.RecordBatch.from_pylist([], schema=ENTRIES if kind == "exposure" else RATES)
    assert sum(one.num_rows for one in finisher.finish(iter([nothing]))) == 0


def test_rows_of_metrics_may_come_in_empty_batches() -> None:
    nothing = pa.RecordBatch.from_pylist([], schema=metric_rows.SCHEMA)
    assert group_rows.to_group_table(pa.Table.from_batches([nothing, nothing])).num_rows == 0
    assert group_rows.to_group_table(metric_rows.SCHEMA.empty_table()).num_rows == 0
