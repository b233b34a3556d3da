"""Rows of ``comparisons``: aggregates of differences, merged, tested, adjusted and named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.inference import OF_ALL_MODELS
from rankeval_spark.engine import comparison_state
from rankeval_spark.engine.aggregation.slices import doubles, nullable, segment_columns
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import row_codes
from rankeval_spark.engine.comparison_state import ComparisonKey
from rankeval_spark.engine.paired_differences import ComparisonRequest, DifferenceAggregator, models_in_order
from rankeval_spark.result_rows.column_types import arrow_schema, spark_columns
from rankeval_spark.result_rows.metric_rows import readable
from rankeval_spark.result_rows.significance import MONTE_CARLO, ModelTests, PairTests
from rankeval_spark.statistics import multiple_testing
from rankeval_spark.statistics.paired_tests import FEW_COMMON_JUDGED_LISTS, FEW_COMMON_LISTS, Listed, are_too_few

if TYPE_CHECKING:
    from rankeval_spark.config.inference import TestName
    from rankeval_spark.config.request import ReportedSlices, Request
    from rankeval_spark.measures.definition import Better
    from rankeval_spark.result_rows.significance import Numbers
    from rankeval_spark.statistics.multiple_testing import Correction

_SCHEMA: Final = arrow_schema(schemas.COMPARISONS)

ROW_TYPE: Final = spark_columns(_SCHEMA)  # columns of the rows that are made here, as Spark reads them

_LISTED: Final = ("n_with_baseline", "n_with_model", "n_with_both")
_DERIVED: Final = (
    *("delta", "ci_low", "ci_high", "relative_delta", "relative_ci_low", "relative_ci_high", "p_value"),
    *("effect_size", "n_wins", "n_ties", "n_losses", "win_share", "loss_share"),
)
"""Columns that follow from the differences of users."""

_DIRECTIONS: Final[Mapping[Better, int]] = {"higher": 1, "lower": -1, "neither": 0}

Where: TypeAlias = tuple[int, list[str | None], int]  # index and values of a slice, and the cutoff


def comparison_finisher(
    request: Request,
    *,
    weights: Mapping[str, str] | None = None,  # column of the denominators of each measure that is a ratio of sums
    has_judged_lists: bool = False,  # judgements name their list, so models must share lists, not only users
) -> ComparisonRows:
    """Build the finisher of the comparisons of a request; ValueError if nothing is compared.

    Small slices have no p; a verdict is given where the adjusted p is at most one minus the confidence. Expected models
    have rows without users too. The denominators are those of the measures where `weights` are left out.
    """
    measures, comparisons = request.measures, request.comparisons
    if comparisons is None:
        message = "nothing is compared"
        raise ValueError(message)
    compared = measures.comparable
    labels = dict(zip(measures.columns, measures.labels, strict=True))
    weights = measures.weights if weights is None else weights
    requested = ComparisonRequest(
        columns=compared,
        weights=tuple(weights.get(column) for column in compared),
        cutoffs=tuple(frozenset(measures.requested_ks[column]) for column in compared),
        ks=measures.ks,
        tests=comparisons.tests,
        wilcoxon_zeros=comparisons.wilcoxon_zeros,
        replicates=comparisons.replicates,
        seed=comparisons.seed,
        baseline=comparisons.baseline,
        all_pairs=comparisons.all_pairs,
        margin=comparisons.margin,
        expected=tuple(request.models or ()),
    )
    return ComparisonRows(
        requested=requested,
        labels=tuple(labels[column] for column in compared),
        direction=np.array([_DIRECTIONS[measures.by_column[column].better] for column in compared]),
        bounds=np.array([measures.by_column[column].bounds for column in compared]).reshape(-1, 2),
        reported=request.reported,
        correction=comparisons.correction,
        has_judged_lists=has_judged_lists,
    )


@dataclass(frozen=True)
class ComparisonRows:
    """Merges and tests the differences of a group on a worker, and adjusts the rows of all groups."""

    requested: ComparisonRequest
    labels: tuple[str, ...]  # of each measure that is compared
    direction: np.ndarray  # (n_measures,), 1 where higher is better, -1 where lower is, 0 where neither is
    bounds: np.ndarray  # (n_measures, 2), least and greatest value of each measure
    reported: ReportedSlices
    correction: Correction
    has_judged_lists: bool = False  # lists are counted, not users, to know what two models share

    @property
    def aggregator(self) -> DifferenceAggregator:
        """Aggregator of the values of users, whose states :meth:`finish` reads."""
        owner = (C.USER_ID, C.LIST_ID) if self.has_judged_lists else (C.USER_ID,)
        return DifferenceAggregator(self.requested, tuple(segment_columns(self.reported.segments)), owner)

    def unjudged(self, metrics: pa.Table) -> Iterator[pa.RecordBatch]:
        """Build aggregates of the users whom published rows leave out: only their number is known, from ``metrics``.

        As many of them as can have are taken to have lists of both of two models, so that no pair is withheld for them.
        """
        names, found = self.reported.names, dict[tuple[int, tuple[str | None, ...]], dict[str, int]]()
        for row in metrics.filter(pc.field("n_extra_users") > 0).to_pylist():
            if row[C.SLICE] in names:
                group = names.index(row[C.SLICE]), tuple(row[C.SLICE_VALUES])
                found.setdefault(group, {})[row[C.MODEL_ID]] = row["n_extra_users"]
        partials = []
        for (index, values), of_models in found.items():
            models = self.requested.with_models(of_models)
            counts = np.array([of_models.get(name, 0) for name in models], dtype=np.float64)
            firsts = counts if self.requested.all_pairs else counts[:1]
            listed = np.concatenate([counts[None], np.minimum.outer(firsts, counts)])
            key = ComparisonKey(None, None, index, values, comparison_state.NO_CUTOFF, models)
            state = np.stack([listed, np.zeros_like(listed)]).tobytes()
            kinds = [comparison_state.LISTED, *([comparison_state.LISTED_USERS] if self.has_judged_lists else [])]
            partials += [(key, kind, state) for kind in kinds]
        yield from comparison_state.to_batches(partials)

    @property
    def _reason(self) -> str:
        return FEW_COMMON_JUDGED_LISTS if self.has_judged_lists else FEW_COMMON_LISTS

    def finish(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Merge the aggregates of one (baseline, model, slice, values, k) and test its measures.

        Those of all models at once come without baseline and model.
        """
        first, model, index, slice_values, k = (one.as_py() for one in key)
        where = (index, slice_values, k)
        if k == comparison_state.NO_CUTOFF:
            return self._listed(where, group)
        rows = self._of_models(where, group) if model is None else self._of_pair((first, model), where, group)
        return pa.concat_tables([_SCHEMA.empty_table(), *rows])

    def _of_pair(self, pair: tuple[str, str], where: Where, group: pa.Table) -> Iterator[pa.Table]:
        wanted, means = self.requested.at(where[2]), self.requested.means_at(where[2])
        tests = PairTests(states_of(group), self.requested, self.reported, wanted)
        for test in self.requested.tests:
            measures = wanted if test == "t" else means
            if test not in OF_ALL_MODELS and measures:
                yield self._rows(pair, where, test, measures, tests.numbers(test))

    def _of_models(self, where: Where, group: pa.Table) -> Iterator[pa.Table]:
        means = self.requested.means_at(where[2])
        found = {tuple(models) for models in group["models"].to_pylist()}
        models = models_in_order({name for names in found for name in names}, self.requested.baseline)
        # A chunk of users without one of the models has no user with values under all of them.
        is_own = pa.array([tuple(names) == models for names in group["models"].to_pylist()])
        states = states_of(group.filter(is_own))
        tests = ModelTests(states, self.requested, self.reported, len(models), len(means))
        for test in (one for one in self.requested.tests if one in OF_ALL_MODELS and len(models) > 1):
            for pair, numbers in zip(combinations(models, 2), tests.numbers(test), strict=True):
                yield self._rows(pair, where, test, means, numbers)

    def _listed(self, where: Where, group: pa.Table) -> pa.Table:
        """Build a row of each pair with the numbers of users with lists; :meth:`adjust` removes it."""
        parts = [tuple(names) for names in group["models"].to_pylist()]
        models = models_in_order({name for names in parts for name in names}, self.requested.baseline)
        pairs = [(a, b) for a, b in combinations(range(len(models)), 2) if self.requested.all_pairs or a == 0]
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        found: dict[str, list[Listed]] = {}
        for kind in comparison_state.LISTED, comparison_state.LISTED_USERS:
            of_each, of_both = np.zeros((2, len(models))), np.zeros((2, len(models), len(models)))
            states = zip(parts, group["kind"].to_pylist(), group["state"].to_pylist(), strict=True)
            for names, state in ((names, state) for names, own, state in states if own == kind):
                counts = np.frombuffer(state).reshape(2, -1, len(names))
                places = np.array([models.index(name) for name in names])
                of_each[:, places] += counts[:, 0]
                of_both[np.ix_(np.arange(2), places[: counts.shape[1] - 1], places)] += counts[:, 1:]
            found[kind] = [
                Listed(each[first], each[second], both[first, second])
                for each, both in zip(of_each, of_both, strict=True)
            ]
        everyone, evaluated = found[comparison_state.LISTED]
        users = found[comparison_state.LISTED_USERS][0] if self.has_judged_lists else everyone
        is_kept = ~are_too_few(everyone, evaluated)
        slice_values = pa.array([where[1]] * len(pairs), pa.list_(pa.string()))
        columns = {
            C.BASELINE_MODEL_ID: pa.array([models[place] for place in first], pa.string()),
            C.MODEL_ID: pa.array([models[place] for place in second], pa.string()),
            C.SLICE: pa.array([self.reported.names[where[0]]] * len(pairs), pa.string()),
            C.SLICE_VALUE: readable(slice_values),
            "test": pa.array([comparison_state.LISTED] * len(pairs), pa.string()),
            "reason": pa.array([self._reason] * len(pairs), pa.string(), mask=is_kept),
            **{name: pa.array(counts.astype(np.int64)) for name, counts in zip(_LISTED, users, strict=True)},
        }
        return _table(columns, len(pairs))

    def _rows(
        self, pair: tuple[str, str], where: Where, test: TestName, measures: Sequence[int], found: Numbers
    ) -> pa.Table:
        index, slice_values, k = where
        n_rows = len(measures)
        names = pa.array([slice_values] * n_rows, pa.list_(pa.string()))
        is_drawn = found["method"] == MONTE_CARLO
        constants: dict[str, Any] = {
            C.BASELINE_MODEL_ID: pair[0],
            C.MODEL_ID: pair[1],
            C.SLICE: self.reported.names[index],
            C.K: k,
            "test": test,
            "ci_level": self.reported.confidence,
            "correction": self.correction,
            "family_size": 0,
            "margin": self.requested.margin if test not in OF_ALL_MODELS else None,
        }
        columns = {name: pa.array([value] * n_rows, _SCHEMA.field(name).type) for name, value in constants.items()}
        columns |= {
            C.SLICE_VALUE: readable(names),
            C.SLICE_VALUES: names,
            C.MEASURE: pa.array([self.labels[position] for position in measures], pa.string()),
            "replicates": pa.array(np.full(n_rows, self.requested.replicates, dtype=np.int32), mask=~is_drawn),
            "seed": pa.array(np.full(n_rows, self.requested.seed, dtype=np.int64), mask=~is_drawn),
            "is_small": pa.array(found["n_users"] < self.reported.min_size),
            **{name: _nullable(values) for name, values in in_range(found, self.bounds[list(measures)]).items()},
        }
        return _table(columns, n_rows)

    def adjust(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Adjust the p-values of all rows of the run, a family a test, and add the verdicts."""
        rows = _withheld(pa.Table.from_batches(list(batches), _SCHEMA), self._reason)
        if not rows.num_rows:
            return
        alpha = 1 - self.reported.confidence
        tests = np.array(rows["test"].to_pylist())
        found = multiple_testing.adjust(
            doubles(rows, "p_value"),
            np.unique(tests, return_inverse=True)[1],
            correction=self.correction,
            alpha=alpha,
            replicates=doubles(rows, "replicates"),
        )
        reason = np.where(found.reason == "", rows["reason"].to_numpy(), found.reason)
        adjusted = {
            "p_adjusted": nullable(found.p),
            "family_size": pa.array(found.family_size),
            "reason": pa.array(reason, pa.string()),
            "verdict": self._verdicts(rows, np.where(tests == "t", found.p, np.nan)),
        }
        columns = {name: adjusted.get(name, rows[name]) for name in rows.column_names}
        yield from _table(columns, rows.num_rows).to_batches()

    def _verdicts(self, rows: pa.Table, p: np.ndarray) -> pa.Array:
        direction = dict(zip(self.labels, self.direction.tolist(), strict=True))
        towards = np.array([direction[label] for label in rows[C.MEASURE].to_pylist()])
        with_side = np.where(doubles(rows, "delta") * towards > 0, "better", "worse")
        shown = np.where(towards == 0, "different", with_side)
        verdict = np.where(p <= 1 - self.reported.confidence, shown, "undecided")
        return pa.array(verdict.astype(object), pa.string(), mask=np.isnan(p))


def in_range(found: Numbers, bounds: np.ndarray) -> Numbers:
    """Cut intervals of differences off where no two values of a measure, in `bounds`, can differ as much.

    Nor can a measure without values below 0 lose more than all, see ``relative_ci_low``.
    """
    width = np.maximum(bounds[:, 1] - bounds[:, 0], np.abs(np.nan_to_num(found["delta"])))
    cut = {"ci_low": np.maximum(found["ci_low"], -width), "ci_high": np.minimum(found["ci_high"], width)}
    least = np.where(bounds[:, 0] >= 0, -1.0, -np.inf)
    cut |= {name: np.maximum(found[name], least) for name in ("relative_ci_low",) if name in found}
    return {**found, **cut}


def states_of(group: pa.Table) -> Mapping[str, Sequence[bytes]]:
    """Sort aggregates by kind, in an order of their own, so that equal partitions give equal bits as they arrive."""
    states: dict[str, list[bytes]] = {}
    for kind, state in zip(group["kind"].to_pylist(), group["state"].to_pylist(), strict=True):
        states.setdefault(kind, []).append(state)
    return {kind: sorted(own) for kind, own in states.items()}


def _withheld(rows: pa.Table, reason: str) -> pa.Table:
    """Add the numbers of users with lists of each model; NULL what too few users with both would decide."""
    code = row_codes(rows, (C.BASELINE_MODEL_ID, C.MODEL_ID, C.SLICE, C.SLICE_VALUE))
    place = np.unique(code, return_inverse=True)[1]
    is_count = to_numpy(pc.equal(rows["test"], comparison_state.LISTED))
    counts = np.zeros((len(_LISTED), place.max(initial=-1) + 1), dtype=np.int64)
    counts[:, place[is_count]] = [to_numpy(rows[name])[is_count] for name in _LISTED]
    shares_too_few = is_count & to_numpy(pc.is_valid(rows["reason"]))
    are_too_few_at = np.zeros(counts.shape[1], dtype=np.bool_)
    are_too_few_at[place[shares_too_few]] = True
    # A slice in which one of the two has no list is withheld if the two serve different users elsewhere.
    pair = np.unique(row_codes(rows, (C.BASELINE_MODEL_ID, C.MODEL_ID)), return_inverse=True)[1]
    are_apart = np.zeros(pair.max(initial=-1) + 1, dtype=np.bool_)
    are_apart[pair[shares_too_few & to_numpy(pc.equal(rows[C.SLICE], C.ALL_USERS))]] = True
    counts, found = counts[:, place[~is_count]], rows.filter(to_arrow(~is_count))
    is_withheld = are_too_few_at[place[~is_count]] | ((counts[:2].min(axis=0) == 0) & are_apart[pair[~is_count]])
    is_withheld &= to_numpy(found["n_users"], null=0) > 0
    columns = {name: found[name] for name in found.column_names} | dict(
        zip(_LISTED, map(to_arrow, counts), strict=True)
    )
    for name in _DERIVED:
        columns[name] = pc.if_else(to_arrow(is_withheld), pa.scalar(None, _SCHEMA.field(name).type), columns[name])
    columns["reason"] = pc.if_else(to_arrow(is_withheld), reason, columns["reason"])
    return _table(columns, found.num_rows)


def _nullable(values: np.ndarray) -> pa.Array:
    """Convert NaN and empty text to NULL."""
    if values.dtype == object:
        return pa.array(values, pa.string(), mask=values == "")
    return nullable(values) if values.dtype.kind == "f" else pa.array(values)


def _table(columns: dict[str, Any], n_rows: int) -> pa.Table:
    """Build a table in the declared order; columns that are not known yet are NULL."""
    arrays = [columns.get(field.name, pa.nulls(n_rows, field.type)) for field in _SCHEMA]
    return pa.Table.from_arrays([in_one_piece(array) for array in arrays], schema=_SCHEMA)
