"""``evaluate().gap_tests``: what is tested is decided here, from the means of the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from rankeval_spark import columns as C, pipeline
from rankeval_spark.config import validate
from rankeval_spark.config.base import Model
from rankeval_spark.config.intervals import Replicates, Seed
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.result_rows import gap_significance
from rankeval_spark.stages.gaps import is_compared
from rankeval_spark.statistics.multiplicity import Correction
from rankeval_spark.statistics.resampled import Draws

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import Measure
    from rankeval_spark.pipeline import Frames


class GapTests(Model):
    """What is asked of the tests."""

    measures: tuple[str, ...] | None = None
    """Names with their cutoff, among those of the evaluation; None: all of them that can be tested."""
    replicates: Replicates = 1000
    """Random draws."""
    seed: Seed = 0
    """Seed of the draws."""
    correction: Correction = "holm"
    """What is done about the number of tests."""


def gap_tests(frames: Frames, *, request: Request, has_one_list: bool, asked: Mapping[str, Any]) -> DataFrame:
    """Look up which groups there are, and plan a test of each gap between them."""
    wanted = validate(GapTests, asked, locate=_place)
    if request.policies.unit == "list" and not has_one_list:
        found, expected = "users with several lists, and means over lists", "means over users"
        raise ConfigError(Fault("gap_tests", found, expected, "evaluate with unit='user'"))
    tested = _tested(wanted, request)
    labels, asked_for = {one.label for one in tested}, {(one.label, one.k) for one in tested}
    of_groups = frames.metrics.where((F.col(C.SLICE) != C.ALL_USERS) & F.col(C.MEASURE).isin(*labels))
    names = (C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K, C.VALUE, "n_users")
    rows = of_groups.select(*names, is_compared().alias("is_compared")).collect()  # as many as metrics has of these
    gaps = gap_significance.gaps_of([row.asDict() for row in rows if (row[C.MEASURE], row[C.K]) in asked_for])
    return pipeline.to_gap_tests(
        frames.scored,
        frames.scored.sparkSession.createDataFrame(gap_significance.rows_of(gaps), gap_significance.TESTED),
        gaps=gaps,
        request=request,
        has_one_list=has_one_list,
        draws=Draws(wanted.replicates, wanted.seed),
        correction=wanted.correction,
    )


def _tested(wanted: GapTests, request: Request) -> list[Measure]:
    """Find the measures that are tested: plain means of users."""
    measures = request.measures
    means = [one for one in measures.per_list if one.column in measures.comparable and one.weight_column is None]
    known = {str(one): one for one in means}
    others = {str(one) for one in measures.measures} - known.keys()
    faults = []
    if not request.slices:
        faults.append(Fault("evaluate(slices=)", "none", "segments whose groups are compared"))
    for index, name in enumerate(wanted.measures or ()):
        where = _place(("measures", index))
        if name in others:
            faults.append(Fault(where, repr(name), "a measure whose value is the mean of the users'"))
        elif name not in known:
            expected = f"a measure of the evaluation: {', '.join(known)}"
            faults.append(Fault(where, repr(name), expected, nearest(name, list(known))))
    if not known and not wanted.measures:
        faults.append(Fault(_place(("measures",)), "none", "a measure whose value is the mean of the users'"))
    if faults:
        raise ConfigError(*faults)
    return means if wanted.measures is None else [known[name] for name in dict.fromkeys(wanted.measures)]


def _place(place: tuple[str | int, ...]) -> str:
    name, *rest = place or ("",)
    return f"gap_tests({name}=)" + "".join(f"[{part}]" for part in rest)
