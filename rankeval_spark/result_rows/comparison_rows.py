"""Rows of ``comparisons``: aggregates of differences, merged, tested, adjusted and named."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.inference import OF_ALL_MODELS, family_of
from rankeval_spark.engine import paired_differences
from rankeval_spark.engine.arrays import combine_chunks, encode_rows, to_arrow, to_numpy
from rankeval_spark.engine.paired_differences import (
    ComparisonKey,
    ComparisonRequest,
    DifferenceAggregator,
    models_in_order,
)
from rankeval_spark.engine.slices import nan_to_null, read_doubles, segment_column_names
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.metric_rows import join_slice_values, support_key
from rankeval_spark.statistics import (
    multiple_testing,
    paired_ratios,
    paired_tests,
    rank_tests,
    resampling,
    unpaired_tests,
)
from rankeval_spark.statistics.moments import Moments
from rankeval_spark.statistics.paired_ratios import RatioPairs
from rankeval_spark.statistics.paired_tests import (
    FEW_COMMON_JUDGED_LISTS,
    FEW_COMMON_LISTS,
    OUT_OF_RANGE,
    TOO_LITTLE_SUPPORT,
    Differences,
    ListCounts,
    are_too_few,
)
from rankeval_spark.statistics.power import detectable, strictest_tail
from rankeval_spark.statistics.resampling import ReplicateSums
from rankeval_spark.statistics.unpaired_tests import Arms

if TYPE_CHECKING:
    from rankeval_spark.config.inference import TestName
    from rankeval_spark.config.request import Request
    from rankeval_spark.config.slicing import ReportedSlices
    from rankeval_spark.measures.definition import Better
    from rankeval_spark.result_rows.metric_rows import SupportKey
    from rankeval_spark.statistics import Correction, FewDifferences
    from rankeval_spark.statistics.paired_ratios import RatioComparison
    from rankeval_spark.statistics.paired_tests import Change, Comparison
    from rankeval_spark.statistics.unpaired_tests import ArmComparison


Numbers: TypeAlias = dict[str, np.ndarray]  # by column of the table, shape (n_measures,)

States: TypeAlias = Mapping[str, Sequence[bytes]]  # aggregates of all partitions by kind, in an order of their own

MONTE_CARLO: Final = "monte_carlo"  # method of a p from random draws

_RELATIVE_ENDS: Final = ("relative_ci_low", "relative_ci_high")
_COUNTS: Final = ("n_wins", "n_ties", "n_losses")


@dataclass(frozen=True)
class PairTests:
    """All tests of two models on one slice at one cutoff."""

    states: States
    requested: ComparisonRequest
    reported: ReportedSlices
    wanted: Sequence[int]  # measures requested at the cutoff, among those in the aggregates of differences

    def numbers(self, test: TestName) -> Numbers:
        """Compute the numbers of a test: t tests all measures, the others means."""
        if test == "t":
            few = self.requested.few_differences
            of_all = self._t if few == "exact" else self._numbers_of_t(few)
            return {name: values[list(self.wanted)] for name, values in of_all.items()}
        of_t = {name: values[self._mean_positions] for name, values in self._t.items()}
        # Only t and the bootstrap need squares of differences: other tests can have a p where squares overflow.
        is_possible = (of_t["reason"] == OUT_OF_RANGE) & ~np.isnan(of_t["delta"]) & (test != "bootstrap")
        found = of_t | self._replace_t(test, of_t | {"reason": np.where(is_possible, "", of_t["reason"])})
        found["reason"] = np.where(is_possible & np.isnan(found["p_value"]), OUT_OF_RANGE, found["reason"])
        return found

    def _replace_t(self, test: TestName, of_t: Numbers) -> Numbers:
        """Replace the p of t, and the interval by that of the bootstrap.

        What t has stays for few differences and randomization, and where all are equal. Wilcoxon's p is 1 if all are 0.
        """
        match test:
            case "bootstrap":
                replicates = ReplicateSums(*self._sums(paired_differences.WEIGHTS)[:, None])
                low, high = resampling.percentile_interval(replicates.means[0], self.reported.confidence)
                p = resampling.studentized_p(self._mean_differences.moments.numerator, replicates)[0]
                is_equal = of_t["method"] == "equal"
                method = np.where(is_equal, "equal", MONTE_CARLO)
                keeps = is_equal | np.isnan(of_t["delta"])
                return {
                    "ci_low": np.where(keeps, of_t["ci_low"], low),
                    "ci_high": np.where(keeps, of_t["ci_high"], high),
                    **{name: np.full(len(p), np.nan) for name in _RELATIVE_ENDS},
                    **_p_columns(of_t, np.where(is_equal, of_t["p_value"], p), method),
                }
            case "randomization":
                sums = self._sums(paired_differences.SIGNS)
                differences, least_users = self._mean_differences, self.reported.min_size
                drawn, kind, _ = paired_tests.randomization_test(differences, sums, least_users=least_users)
                return _p_columns(of_t, drawn[0], np.where(kind[0] == "randomization", MONTE_CARLO, kind[0]))
            case "sign":
                p = rank_tests.sign_test_p(of_t["n_wins"], of_t["n_losses"])
                return _p_columns(of_t, p, np.full(len(p), "binomial"))
            case "wilcoxon":
                zeros = self.requested.wilcoxon_zeros
                columns = rank_tests.differences_from_bytes(self.states[paired_differences.VALUES])
                found = [rank_tests.wilcoxon_p(rank_tests.count_magnitudes(values), zeros=zeros) for values in columns]
                p = np.where(self._mean_differences.is_all_zero[0], 1.0, found)
                return _p_columns(of_t, p, np.full(len(found), zeros))
            case "t" | "tukey" | "randomized_tukey":
                message = f"{test} does not take the place of t for one pair"
                raise ValueError(message)
            case _:
                assert_never(test)

    @cached_property
    def _mean_positions(self) -> list[int]:
        """Positions of the wanted measures that are means over users."""
        return [position for position in self.wanted if self.requested.weights[position] is None]

    @cached_property
    def _differences(self) -> Differences:
        """Differences of all measures, merged over all partitions."""
        return reduce(Differences.merge, map(Differences.from_bytes, self.states[paired_differences.DIFFERENCES]))

    @cached_property
    def _mean_differences(self) -> Differences:
        return self._differences.take_columns(self._mean_positions)

    def _sums(self, kind: str) -> np.ndarray:
        """Add up sums of shape (n_parts, n_means, replicates)."""
        parts = (np.frombuffer(state) for state in self.states[kind])
        return reduce(np.add, parts).reshape(-1, len(self._mean_positions), self.requested.replicates)

    @cached_property
    def _t(self) -> Numbers:
        """Numbers of the t test for all measures, exact where few users differ: other tests begin with them."""
        return self._numbers_of_t("exact")

    def _numbers_of_t(self, few: FewDifferences) -> Numbers:
        """Compute the numbers of the t test for all measures, by the delta method where a ratio of sums is no mean."""
        differences, options = self._differences, {"level": self.reported.confidence}
        found = paired_tests.compare_means(differences, least_users=self.reported.min_size, few=few, **options)
        change = paired_tests.relative_change(differences, **options)
        n_with_margin = np.where((found.n > 0) & (self.requested.margin is not None), found.n, np.nan)
        numbers = {
            "n_users": found.n,
            **_estimates(differences.moments.denominator.mean, found, change),
            "p_value": found.p,
            "effect_size": found.effect_size,
            **dict(zip(_COUNTS, (found.n_wins, found.n_ties, found.n_losses), strict=True)),
            "win_share": differences.above / n_with_margin,
            "loss_share": differences.below / n_with_margin,
            "method": found.test.astype(object),
            "reason": _reason_or_no_users(found.n, found.reason),
        }
        of_t = {name: values[0].copy() for name, values in numbers.items()}
        if self.requested.ratio_positions:
            pairs = reduce(RatioPairs.merge, map(RatioPairs.from_bytes, self.states[paired_differences.RATIOS]))
            ratio = paired_ratios.compare_ratios(pairs, least_users=self.reported.min_size, few=few, **options)
            estimates = _estimates(pairs.ratios[1], ratio, ratio.change)
            before = {"reason": _reason_or_no_users(ratio.n, ratio.reason)[0]}
            of_sums = {name: values[0] for name, values in estimates.items()}
            of_sums |= _p_columns(before, ratio.p[0], np.full(len(ratio.p[0]), "delta"))
            of_sums["effect_size"] = np.full(len(ratio.p[0]), np.nan)
            # Where all denominators are equal, the ratio of sums is the mean of the users' ratios, and so is its test.
            is_ratio = ~pairs.has_one_denominator[0]
            ratio_columns = np.array(self.requested.ratio_positions)[is_ratio]
            for name, values in of_sums.items():
                of_t[name][ratio_columns] = values[is_ratio]
        return of_t


def compare_all_models(
    test: TestName,  # one of OF_ALL_MODELS
    states: States,  # none where no user is complete
    requested: ComparisonRequest,
    reported: ReportedSlices,
    *,
    n_models: int,
    n_measures: int,  # means requested at the cutoff
) -> list[Numbers]:
    """Compute the numbers of Tukey's test for every pair of models, in their order, on one slice at one cutoff."""
    shape = (3 * (n_models + 1) + 2, n_measures)
    parts = [np.frombuffer(state).reshape(shape) for state in states.get(paired_differences.CENTRED, ())]
    parts = parts or [np.zeros(shape)]
    # Moments of each model's centred values and, last, of the users' means; squares that can be rounding; sums of |x|.
    cubes = (part[:-2].reshape(3, n_models + 1, n_measures) for part in parts)
    merged = reduce(Moments.merge, (Moments(n.astype(np.int64), mean, m2) for n, mean, m2 in cubes))
    mean: np.ndarray = np.where(merged.n > 0, merged.mean, np.nan)
    n, centred, grand = merged.n[0], mean[:-1], mean[-1]
    rounding = np.sqrt(2 * np.sum([part[-2] for part in parts], axis=0) / np.maximum(n - 1, 1))
    found = multiple_testing.tukey_test(n, centred.T, merged.m2[:-1].T, level=reported.confidence, rounding=rounding)
    p, method = found.p, "studentized_range"
    ends = -found.high, -found.low  # theirs are of the first model minus the second
    if test == "randomized_tukey":
        method, ends = MONTE_CARLO, (np.full(p.shape, np.nan),) * 2
        with np.errstate(over="ignore"):
            totals = np.nan_to_num(centred) * merged.n[:-1]
        drawn = (np.frombuffer(state) for state in states.get(paired_differences.ORDERS, ()))
        nothing = np.zeros(n_models * n_measures * requested.replicates)
        sums = reduce(np.add, drawn, nothing)
        absolute = np.sum([part[-1] for part in parts], axis=0)
        p = multiple_testing.randomised_p(totals, absolute, sums.reshape(n_models, n_measures, requested.replicates))
    names = ["no_common_users", "one_user", "few_users"]
    reasons = np.select([n == 0, n == 1, n < reported.min_size], names, "").astype(object)
    is_beyond = np.isnan(found.residual_variance) & (reasons == "")
    positive = np.where(grand + centred > 0, grand + centred, np.nan)
    return [
        {
            "n_users": n,
            "baseline_value": grand + centred[first],
            C.VALUE: grand + centred[model],
            "delta": -found.delta[:, pair],
            "ci_low": ends[0][:, pair],
            "ci_high": ends[1][:, pair],
            "relative_delta": (centred[model] - centred[first]) / positive[first],
            "effect_size": -found.effect_size[:, pair],
            **_p_columns(
                {"reason": np.where(is_beyond & np.isnan(p[:, pair]), OUT_OF_RANGE, reasons)},
                p[:, pair],
                np.full(len(n), method),
            ),
        }
        for pair, (first, model) in enumerate(combinations(range(n_models), 2))
    ]


def _estimates(baseline: np.ndarray, found: Comparison | RatioComparison | ArmComparison, change: Change) -> Numbers:
    """Return both values, their difference and the relative one, and the intervals."""
    return {
        "baseline_value": baseline,
        C.VALUE: baseline + found.delta,
        **{"delta": found.delta, "std_error": found.std_error, "ci_low": found.low, "ci_high": found.high},
        "relative_delta": change.value,
        **dict(zip(_RELATIVE_ENDS, (change.low, change.high), strict=True)),
    }


def _reason_or_no_users(n: np.ndarray, reason: np.ndarray) -> np.ndarray:
    """Replace the reason by ``no_common_users`` where n is 0."""
    return np.where(n == 0, "no_common_users", reason).astype(object)


def _p_columns(before: Mapping[str, np.ndarray], p: np.ndarray, method: np.ndarray) -> Numbers:
    """Return p, its method, and why p is undefined: the reason of t, else "undefined"."""
    p = np.where(before["reason"] == "", p, np.nan)
    reason = np.where((before["reason"] == "") & np.isnan(p), "undefined", before["reason"])
    return {"p_value": p, "method": method.astype(object), "reason": reason}


_SCHEMA: Final = arrow_schema(schemas.COMPARISONS)

_LISTED: Final = ("n_with_baseline", "n_with_model", "n_with_both")
_DERIVED: Final = (
    *("delta", "std_error", "ci_low", "ci_high", "relative_delta", "relative_ci_low", "relative_ci_high", "p_value"),
    *("effect_size", "n_wins", "n_ties", "n_losses", "win_share", "loss_share"),
)
"""Columns that follow from the differences of users."""

_OF_COVARIATES: Final = (
    *("delta", "std_error", "ci_low", "ci_high", "relative_delta", "relative_ci_low", "relative_ci_high", "p_value"),
    *("effect_size", "freedom", "variance_removed"),
)
"""Columns that covariates change."""

_DIRECTIONS: Final[Mapping[Better, int]] = {"higher": 1, "lower": -1, "neither": 0}

Where: TypeAlias = tuple[int, list[str | None], int]  # index and values of a slice, and the cutoff


def build_comparison_rows(
    request: Request,
    *,
    weights: Mapping[str, str] | None = None,  # column of denominators of each ratio; None: those of the measures
    has_judged_lists: bool = False,  # judgements name their list, so models must share lists, not only users
    has_covariates: bool = False,  # rows of users have earlier values too, see :func:`covariate_name`
) -> ComparisonRows:
    """Build the finisher of the comparisons of a request; ValueError if nothing is compared."""
    measures, comparisons = request.measure_set, request.comparisons
    if comparisons is None:
        message = "nothing is compared"
        raise ValueError(message)
    compared = measures.comparable
    labels = dict(zip(measures.columns, measures.labels, strict=True))
    weights = measures.denominator_columns if weights is None else weights
    stored = (*compared, *(weights[column] for column in compared if column in weights))
    requested = ComparisonRequest(
        columns=compared,
        weights=tuple(weights.get(column) for column in compared),
        cutoffs=tuple(frozenset(measures.requested_ks[column]) for column in compared),
        ks=measures.ks,
        tests=comparisons.tests,
        wilcoxon_zeros=comparisons.wilcoxon_zeros,
        few_differences=comparisons.few_differences,
        replicates=comparisons.replicates,
        seed=comparisons.seed,
        baseline=comparisons.baseline,
        all_pairs=comparisons.all_pairs,
        margin=comparisons.margin,
        expected=tuple(request.models or ()),
        arms=frozenset(comparisons.split or ()),
        covariates=tuple(map(covariate_name, stored)) if has_covariates else (),
    )
    return ComparisonRows(
        requested=requested,
        labels=tuple(labels[column] for column in compared),
        direction=np.array([_DIRECTIONS[measures.by_column[column].better] for column in compared]),
        bounds=np.array([measures.by_column[column].bounds for column in compared]).reshape(-1, 2),
        reported=request.reported,
        correction=comparisons.correction,
        primary=frozenset((measure.label, measure.k) for measure in request.primary),
        has_judged_lists=has_judged_lists,
    )


def covariate_name(column: str) -> str:
    """Return the name of the column of a user's earlier value."""
    return f"_before_{column}"


@dataclass(frozen=True)
class ComparisonRows:
    """Merges and tests the differences of a group on a worker, and adjusts the rows of all groups."""

    requested: ComparisonRequest
    labels: tuple[str, ...]  # of each measure that is compared
    direction: np.ndarray  # (n_measures,), 1 where higher is better, -1 where lower is, 0 where neither is
    bounds: np.ndarray  # (n_measures, 2), least and greatest value of each measure
    reported: ReportedSlices
    correction: Correction
    primary: frozenset[tuple[str, int]]  # measures with their cutoffs whose tests are families of their own
    has_judged_lists: bool = False  # lists are counted, not users, to know what two models share

    @property
    def aggregator(self) -> DifferenceAggregator:
        """Aggregator of the values of users, whose states :meth:`finish` reads."""
        owner = (C.USER_ID, C.LIST_ID) if self.has_judged_lists else (C.USER_ID,)
        return DifferenceAggregator(self.requested, tuple(segment_column_names(self.reported.segments)), owner)

    def unjudged_partials(self, metrics: pa.Table) -> Iterator[pa.RecordBatch]:
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
            key = ComparisonKey(None, None, index, values, paired_differences.NO_CUTOFF, models)
            state = np.stack([listed, np.zeros_like(listed)]).tobytes()
            kinds = [paired_differences.LISTED, *([paired_differences.LISTED_USERS] if self.has_judged_lists else [])]
            partials += [(key, kind, state) for kind in kinds]
        yield from paired_differences.partials_to_batches(partials)

    @property
    def _reason(self) -> str:
        return FEW_COMMON_JUDGED_LISTS if self.has_judged_lists else FEW_COMMON_LISTS

    def finish(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Merge the aggregates of one (baseline, model, slice, values, k), or of all models, and test the measures."""
        first, model, index, slice_values, k = (cell.as_py() for cell in key)
        where = (index, slice_values, k)
        if k == paired_differences.NO_CUTOFF:
            return self._count_rows(where, group)
        wanted, means, rows = self.requested.at(k), self.requested.mean_positions_at(k), [_SCHEMA.empty_table()]
        if model is not None and self.requested.arms.issuperset((first, model)):
            numbers = self._compare_arms(group_states(group), wanted)
            return self._test_rows((first, model), where, C.UNPAIRED, wanted, numbers)
        if model is not None:
            tests = PairTests(group_states(group), self.requested, self.reported, wanted)
            for test in self.requested.tests:
                measures = wanted if test == "t" else means
                if test not in OF_ALL_MODELS and measures:
                    rows.append(self._test_rows((first, model), where, test, measures, tests.numbers(test)))
            return pa.concat_tables(rows)
        names = [tuple(names_of_part) for names_of_part in group["models"].to_pylist()]
        models = models_in_order({name for names_of_part in names for name in names_of_part}, self.requested.baseline)
        # A chunk of users without one of the models has no user with values under all of them.
        states = group_states(group.filter(pa.array([names_of_part == models for names_of_part in names])))
        sizes = {"n_models": len(models), "n_measures": len(means)}
        for test in (name for name in self.requested.tests if name in OF_ALL_MODELS and len(models) > 1):
            found = compare_all_models(test, states, self.requested, self.reported, **sizes)
            for pair, numbers in zip(combinations(models, 2), found, strict=True):
                rows.append(self._test_rows(pair, where, test, means, numbers))
        return pa.concat_tables(rows)

    def _compare_arms(self, states: States, wanted: Sequence[int]) -> Numbers:
        """Compute the numbers of the unpaired test; means by Welch's, ratios of sums by the delta method."""
        requested, found = self.requested, dict[str, np.ndarray]()
        kinds = (
            (paired_differences.ARMS, requested.mean_positions, 1, "welch"),
            (paired_differences.ARM_RATIOS, requested.ratio_positions, 2, "delta"),
        )
        for kind, positions, n_outcomes, method in kinds:
            if not positions:
                continue
            n_parts = 2 * n_outcomes + 1 if requested.covariates else n_outcomes
            arms = reduce(Arms.merge, (Arms.from_bytes(state, n_parts) for state in states[kind]))
            level, least = self.reported.confidence, self.reported.min_size
            compared = unpaired_tests.compare_arms(arms, n_outcomes=n_outcomes, level=level, least_users=least)
            numbers = {
                "n_users": compared.n,
                "n_baseline_users": compared.n_baseline,
                **_estimates(compared.baseline, compared, compared.change),
                C.VALUE: compared.value,
                "freedom": compared.freedom,
                "variance_removed": compared.variance_removed,
                "p_value": compared.p,
                "effect_size": compared.effect_size,
                "method": np.full(compared.p.shape, method, dtype=object),
                "reason": compared.reason.astype(object),
            }
            for name, values in numbers.items():
                column = found.setdefault(name, np.empty(len(requested.columns), dtype=values.dtype))
                column[positions] = values[0]
        return {name: values[list(wanted)] for name, values in found.items()}

    def _count_rows(self, where: Where, group: pa.Table) -> pa.Table:
        """Build a row of each pair with the numbers of users with lists; :meth:`adjust` removes it."""
        parts = [tuple(names) for names in group["models"].to_pylist()]
        models = models_in_order({name for names in parts for name in names}, self.requested.baseline)
        pairs = [(a, b) for a, b in combinations(range(len(models)), 2) if self.requested.all_pairs or a == 0]
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        found: dict[str, list[ListCounts]] = {}
        for kind in paired_differences.LISTED, paired_differences.LISTED_USERS:
            # For everyone, then for evaluated users: with a list of each model, and with one of both of two
            of_each, of_both = np.zeros((2, len(models))), np.zeros((2, len(models), len(models)))
            states = zip(parts, group["kind"].to_pylist(), group["state"].to_pylist(), strict=True)
            for names, state in ((names, state) for names, kind_of_state, state in states if kind_of_state == kind):
                counts = np.frombuffer(state).reshape(2, -1, len(names))
                places = np.array([models.index(name) for name in names])  # partitions may lack some models
                of_each[:, places] += counts[:, 0]
                of_both[np.ix_(np.arange(2), places[: counts.shape[1] - 1], places)] += counts[:, 1:]
            found[kind] = [
                ListCounts(each[first], each[second], both[first, second])
                for each, both in zip(of_each, of_both, strict=True)
            ]
        everyone, evaluated = found[paired_differences.LISTED]
        users = found[paired_differences.LISTED_USERS][0] if self.has_judged_lists else everyone
        is_kept = ~are_too_few(everyone, evaluated)
        slice_values = pa.array([where[1]] * len(pairs), pa.list_(pa.string()))
        columns = {
            C.BASELINE_MODEL_ID: pa.array([models[place] for place in first], pa.string()),
            C.MODEL_ID: pa.array([models[place] for place in second], pa.string()),
            C.SLICE: pa.array([self.reported.names[where[0]]] * len(pairs), pa.string()),
            C.SLICE_VALUE: join_slice_values(slice_values),
            "test": pa.array([paired_differences.LISTED] * len(pairs), pa.string()),
            "reason": pa.array([self._reason] * len(pairs), pa.string(), mask=is_kept),
            **{name: pa.array(counts.astype(np.int64)) for name, counts in zip(_LISTED, users, strict=True)},
        }
        return _table(columns, len(pairs))

    def _test_rows(
        self, pair: tuple[str, str], where: Where, test: str, measures: Sequence[int], found: Numbers
    ) -> pa.Table:
        """Build the rows of one test of a pair, one for each measure."""
        index, slice_values, k = where
        n_rows = len(measures)
        names = pa.array([slice_values] * n_rows, pa.list_(pa.string()))
        is_drawn, n_others = found["method"] == MONTE_CARLO, found.get("n_baseline_users", found["n_users"])
        constants: dict[str, Any] = {
            C.BASELINE_MODEL_ID: pair[0],
            C.MODEL_ID: pair[1],
            C.SLICE: self.reported.names[index],
            C.K: k,
            "test": test,
            "ci_level": self.reported.confidence,
            "correction": self.correction,
            "family_size": 0,
            "nights": 1,
            "margin": self.requested.margin if test not in OF_ALL_MODELS else None,
        }
        columns = {name: pa.array([value] * n_rows, _SCHEMA.field(name).type) for name, value in constants.items()}
        columns |= {
            C.SLICE_VALUE: join_slice_values(names),
            C.SLICE_VALUES: names,
            C.MEASURE: pa.array([self.labels[position] for position in measures], pa.string()),
            "replicates": pa.array(np.full(n_rows, self.requested.replicates, dtype=np.int32), mask=~is_drawn),
            "seed": pa.array(np.full(n_rows, self.requested.seed, dtype=np.int64), mask=~is_drawn),
            "is_small": pa.array(np.minimum(found["n_users"], n_others) < self.reported.min_size),
            **{
                name: _nullable(values) for name, values in clip_differences(found, self.bounds[list(measures)]).items()
            },
        }
        return _table(columns, n_rows)

    def adjust(
        self, batches: Iterator[pa.RecordBatch], unsupported: Collection[SupportKey] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Adjust the p-values by family and test, and add the verdicts; ``unsupported`` values stay undecided."""
        rows = _withhold_few_common(pa.Table.from_batches(list(batches), _SCHEMA), self._reason)
        rows = _drop_unsupported_p(rows, unsupported) if unsupported else rows
        if rows.num_rows:
            yield from self._with_verdicts(rows).to_batches()

    def with_covariates(self, rows: pa.Table, adjusted: pa.Table) -> pa.Table:
        """Replace what :meth:`finish` found of arms by what it found with covariates, and adjust the p-values again."""
        key = (C.BASELINE_MODEL_ID, C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, "test")
        both = pa.concat_tables([adjusted, rows])
        _, first, code = np.unique(encode_rows(both, key), return_index=True, return_inverse=True)
        found = to_arrow(first[code[adjusted.num_rows :]])
        columns = {name: rows[name] for name in rows.column_names}
        is_tested = pc.and_(pc.is_valid(rows["p_value"]), pc.is_valid(pc.take(both["p_value"], found)))
        for name in _OF_COVARIATES:
            columns[name] = pc.if_else(is_tested, pc.take(both[name], found), rows[name])
        return self._with_verdicts(_table(columns, rows.num_rows)) if rows.num_rows else rows

    def _with_verdicts(self, rows: pa.Table) -> pa.Table:
        """Adjust the p-values by family and test, and add the verdicts."""
        alpha = 1 - self.reported.confidence
        tests = np.array(rows["test"].to_pylist())
        labels, ks, slices = (rows[name].to_pylist() for name in (C.MEASURE, C.K, C.SLICE))
        cells = zip(labels, ks, slices, strict=True)
        families = np.array([family_of(label, k, slice_, self.primary) for label, k, slice_ in cells])
        kinds = np.where(np.isin(tests, C.DECIDING), C.DECIDING[0], tests)  # a pair of models has one of the deciding
        found = multiple_testing.adjust(
            read_doubles(rows, "p_value"),
            np.unique(np.char.add(families, kinds), return_inverse=True)[1],
            correction=self.correction,
            alpha=alpha,
            replicates=read_doubles(rows, "replicates"),
        )
        reason = np.where(found.reason == "", rows["reason"].to_numpy(), found.reason)
        # The t test decides, or the unpaired one; "undecided" too for too little support, which leaves no p.
        direction = dict(zip(self.labels, self.direction.tolist(), strict=True))
        towards = np.array([direction[label] for label in labels])
        side = np.where(read_doubles(rows, "delta") * towards > 0, "better", "worse")
        side = np.where(towards == 0, "different", side)
        lacks_support = to_numpy(pc.equal(rows["reason"], TOO_LITTLE_SUPPORT), null=0).astype(np.bool_)
        has_none = ~np.isin(tests, C.DECIDING) | (np.isnan(found.p) & ~lacks_support)
        verdict = np.where(found.p <= alpha, side, "undecided").astype(object)
        freedom = read_doubles(rows, "freedom")
        freedom = np.where(np.isnan(freedom), read_doubles(rows, "n_users") - 1, freedom)
        tail = strictest_tail(alpha, found.family_size, self.correction)
        least = detectable(read_doubles(rows, "std_error"), freedom, tail=tail)
        methods = np.array(rows["method"].to_pylist(), dtype=object)
        has_power = np.isin(tests, C.DECIDING) & ~np.isin(methods, ["exact", "equal"]) & ~np.isnan(found.p)
        adjusted = {
            "p_adjusted": nan_to_null(found.p),
            "family": pa.array(families, pa.string()),
            "family_size": pa.array(found.family_size),
            "detectable": nan_to_null(np.where(has_power, least, np.nan)),
            "reason": pa.array(reason, pa.string()),
            "verdict": pa.array(verdict, pa.string(), mask=has_none),
        }
        columns = {name: adjusted.get(name, rows[name]) for name in rows.column_names}
        return _table(columns, rows.num_rows)


def clip_differences(found: Numbers, bounds: np.ndarray) -> Numbers:
    """Cut intervals of differences off where no two values of a measure, in `bounds`, can differ as much.

    Nor can a measure without values below 0 lose more than all, see ``relative_ci_low``.
    """
    width = np.maximum(bounds[:, 1] - bounds[:, 0], np.abs(np.nan_to_num(found["delta"])))
    cut = {"ci_low": np.maximum(found["ci_low"], -width), "ci_high": np.minimum(found["ci_high"], width)}
    least = np.where(bounds[:, 0] >= 0, -1.0, -np.inf)
    cut |= {name: np.maximum(found[name], least) for name in ("relative_ci_low",) if name in found}
    return {**found, **cut}


def group_states(group: pa.Table) -> Mapping[str, Sequence[bytes]]:
    """Group aggregates by kind and sort them, so that bits do not depend on the order in which partitions arrive."""
    states: dict[str, list[bytes]] = {}
    for kind, state in zip(group["kind"].to_pylist(), group["state"].to_pylist(), strict=True):
        states.setdefault(kind, []).append(state)
    return {kind: sorted(states_of_kind) for kind, states_of_kind in states.items()}


def _withhold_few_common(rows: pa.Table, reason: str) -> pa.Table:
    """Add the numbers of users with lists of each model; NULL what too few users with both would decide."""
    code = encode_rows(rows, (C.BASELINE_MODEL_ID, C.MODEL_ID, C.SLICE, C.SLICE_VALUE))
    place = np.unique(code, return_inverse=True)[1]
    is_count = to_numpy(pc.equal(rows["test"], paired_differences.LISTED))
    counts = np.zeros((len(_LISTED), place.max(initial=-1) + 1), dtype=np.int64)
    counts[:, place[is_count]] = [to_numpy(rows[name])[is_count] for name in _LISTED]
    shares_too_few = is_count & to_numpy(pc.is_valid(rows["reason"]))
    are_too_few_at = np.zeros(counts.shape[1], dtype=np.bool_)
    are_too_few_at[place[shares_too_few]] = True
    # A slice in which one of the two has no list is withheld if the two serve different users elsewhere.
    pair = np.unique(encode_rows(rows, (C.BASELINE_MODEL_ID, C.MODEL_ID)), return_inverse=True)[1]
    are_apart = np.zeros(pair.max(initial=-1) + 1, dtype=np.bool_)
    are_apart[pair[shares_too_few & to_numpy(pc.equal(rows[C.SLICE], C.ALL_USERS))]] = True
    counts, found = counts[:, place[~is_count]], rows.filter(to_arrow(~is_count))
    is_withheld = are_too_few_at[place[~is_count]] | ((counts[:2].min(axis=0) == 0) & are_apart[pair[~is_count]])
    is_withheld &= (to_numpy(found["n_users"], null=0) > 0) & ~to_numpy(pc.equal(found["test"], C.UNPAIRED))
    columns = {name: found[name] for name in found.column_names} | dict(
        zip(_LISTED, map(to_arrow, counts), strict=True)
    )
    for name in _DERIVED:
        columns[name] = pc.if_else(to_arrow(is_withheld), pa.scalar(None, _SCHEMA.field(name).type), columns[name])
    columns["reason"] = pc.if_else(to_arrow(is_withheld), reason, columns["reason"])
    return _table(columns, found.num_rows)


def _drop_unsupported_p(rows: pa.Table, unsupported: Collection[SupportKey]) -> pa.Table:
    """Remove the p of rows in which a model has too little support; the difference and its interval stay."""
    keys = rows.select([C.BASELINE_MODEL_ID, C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K]).to_pylist()
    lacks = [
        any(support_key(row, column) in unsupported for column in (C.BASELINE_MODEL_ID, C.MODEL_ID)) for row in keys
    ]
    is_untested = pc.and_(pc.is_valid(rows["p_value"]), pa.array(lacks, pa.bool_()))
    for name, value in (("p_value", None), ("reason", TOO_LITTLE_SUPPORT)):
        column = pc.if_else(is_untested, pa.scalar(value, _SCHEMA.field(name).type), rows[name])
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _nullable(values: np.ndarray) -> pa.Array:
    """Convert NaN and empty text to NULL."""
    if values.dtype == object:
        return pa.array(values, pa.string(), mask=values == "")
    return nan_to_null(values) if values.dtype.kind == "f" else pa.array(values)


def _table(columns: dict[str, Any], n_rows: int) -> pa.Table:
    """Build a table in the declared order; columns that are not known yet are NULL."""
    arrays = [columns.get(field.name, pa.nulls(n_rows, field.type)) for field in _SCHEMA]
    return pa.Table.from_arrays([combine_chunks(array) for array in arrays], schema=_SCHEMA)
