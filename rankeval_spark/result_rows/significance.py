"""Numbers of each test from merged aggregates; :mod:`comparison_rows` builds rows of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from rankeval_spark import columns as C
from rankeval_spark.engine import comparison_state
from rankeval_spark.statistics import bootstrap, paired_ratios, paired_tests, rank_tests, tukey
from rankeval_spark.statistics.bootstrap import ReplicateSums
from rankeval_spark.statistics.moments import Moments
from rankeval_spark.statistics.paired_ratios import RatioPairs
from rankeval_spark.statistics.paired_tests import OUT_OF_RANGE, Differences

if TYPE_CHECKING:
    from rankeval_spark.config.inference import TestName
    from rankeval_spark.config.request import ReportedSlices
    from rankeval_spark.engine.paired_differences import ComparisonRequest
    from rankeval_spark.statistics.paired_ratios import RatioComparison
    from rankeval_spark.statistics.paired_tests import Change, Comparison

Numbers: TypeAlias = dict[str, np.ndarray]  # by column of the table, shape (n_measures,)

States: TypeAlias = Mapping[str, Sequence[bytes]]
"""Aggregates of all partitions by their kind, in an order of their own."""

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
        """Compute the numbers of a test: for t of all measures, for the others of the means."""
        if test == "t":
            return {name: values[list(self.wanted)] for name, values in self._t.items()}
        of_t = {name: values[self._means] for name, values in self._t.items()}
        # Only t and the bootstrap need squares of differences.
        has_sums = (of_t["reason"] == OUT_OF_RANGE) & ~np.isnan(of_t["delta"]) & (test != "bootstrap")
        found = of_t | _TESTS[test](self, of_t | {"reason": np.where(has_sums, "", of_t["reason"])})
        found["reason"] = np.where(has_sums & np.isnan(found["p_value"]), OUT_OF_RANGE, found["reason"])
        return found

    def by_bootstrap(self, of_t: Numbers) -> Numbers:
        """Replace interval and p of t by those of the bootstrap; where all differences are equal they stay."""
        replicates = ReplicateSums(*self._sums(comparison_state.WEIGHTS)[:, None])
        low, high = bootstrap.percentile_interval(replicates.means[0], self.reported.confidence)
        p = bootstrap.studentized_p(self._of_means.moments.numerator, replicates)[0]
        keeps = (of_t["method"] == "equal") | np.isnan(of_t["delta"])
        is_equal = of_t["method"] == "equal"
        return {
            "ci_low": np.where(keeps, of_t["ci_low"], low),
            "ci_high": np.where(keeps, of_t["ci_high"], high),
            **{name: np.full(len(p), np.nan) for name in _RELATIVE_ENDS},
            **_tested(of_t, np.where(is_equal, of_t["p_value"], p), np.where(is_equal, "equal", MONTE_CARLO)),
        }

    def by_randomization(self, of_t: Numbers) -> Numbers:
        """Replace the p of t by that of random signs; for few differences the p of all signs stays."""
        sums = self._sums(comparison_state.SIGNS)
        p, test, _ = paired_tests.randomized(self._of_means, sums, least_users=self.reported.min_size)
        return _tested(of_t, p[0], np.where(test[0] == "randomization", MONTE_CARLO, test[0]))

    def by_wilcoxon(self, of_t: Numbers) -> Numbers:
        """Replace the p of t by that of Wilcoxon's signed ranks; without any difference it is 1."""
        zeros = self.requested.wilcoxon_zeros
        columns = rank_tests.magnitudes_from_bytes(self.states[comparison_state.VALUES])
        found = [rank_tests.wilcoxon(rank_tests.magnitudes(values), zeros=zeros).p for values in columns]
        return _tested(of_t, np.where(self._of_means.is_all_zero[0], 1.0, found), np.full(len(found), zeros))

    def by_sign(self, of_t: Numbers) -> Numbers:
        """Replace the p of t by that of the sign test."""
        p = rank_tests.sign_test(of_t["n_wins"], of_t["n_losses"])
        return _tested(of_t, p, np.full(len(p), "binomial"))

    @cached_property
    def _means(self) -> list[int]:
        return [position for position in self.wanted if self.requested.weights[position] is None]

    @cached_property
    def _differences(self) -> Differences:
        return reduce(Differences.merge, map(Differences.from_bytes, self.states[comparison_state.DIFFERENCES]))

    @cached_property
    def _of_means(self) -> Differences:
        return self._differences.columns(self._means)

    def _sums(self, kind: str) -> np.ndarray:
        """Add up sums of shape (n_parts, n_means, replicates)."""
        parts = (np.frombuffer(state) for state in self.states[kind])
        return reduce(np.add, parts).reshape(-1, len(self._means), self.requested.replicates)

    @cached_property
    def _t(self) -> Numbers:
        """Numbers of the t test of all measures."""
        differences = self._differences
        found = paired_tests.compare_means(
            differences, level=self.reported.confidence, least_users=self.reported.min_size
        )
        change = paired_tests.relative_change(differences, level=self.reported.confidence)
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
            "reason": _reason(found.n, found.reason),
        }
        of_t = {name: values[0].copy() for name, values in numbers.items()}
        if self.requested.of_sums:
            pairs = reduce(RatioPairs.merge, map(RatioPairs.from_bytes, self.states[comparison_state.RATIOS]))
            # Where all denominators are equal, the ratio of sums is the mean of the users' ratios, and so is its test.
            is_ratio = ~pairs.has_one_denominator[0]
            own = np.array(self.requested.of_sums)
            of_sums = self._by_delta_method(pairs)
            for name, values in of_sums.items():
                of_t[name][own[is_ratio]] = values[is_ratio]
        return of_t

    def _by_delta_method(self, pairs: RatioPairs) -> Numbers:
        """Compute the numbers of ratios of sums where they differ from those of the users' own ratios."""
        found = paired_ratios.compare_ratios(pairs, level=self.reported.confidence, least_users=self.reported.min_size)
        estimates = _estimates(pairs.baseline_ratio, found, found.change)
        numbers = {**estimates, "effect_size": np.full(found.n.shape, np.nan)}
        method = np.full(len(self.requested.of_sums), "delta", dtype=object)
        before = {"reason": _reason(found.n, found.reason)[0]}
        return {name: values[0] for name, values in numbers.items()} | _tested(before, found.p[0], method)


_TESTS: Final[Mapping[TestName, Callable[[PairTests, Numbers], Numbers]]] = {
    "bootstrap": PairTests.by_bootstrap,
    "randomization": PairTests.by_randomization,
    "wilcoxon": PairTests.by_wilcoxon,
    "sign": PairTests.by_sign,
}


@dataclass(frozen=True)
class ModelTests:
    """Tukey's tests of all pairs of some models on one slice at one cutoff."""

    states: States  # none where no user is complete
    requested: ComparisonRequest
    reported: ReportedSlices
    n_models: int
    n_measures: int  # means requested at the cutoff

    def numbers(self, test: TestName) -> list[Numbers]:
        """Compute the numbers of a test for every pair of models, in their order."""
        moments, n = self._moments, self._moments.n[0]
        rounding = np.sqrt(2 * np.sum([part[-2] for part in self._parts], axis=0) / np.maximum(n - 1, 1))
        found = tukey.compare_all(
            n, moments.mean[:-1].T, moments.m2[:-1].T, level=self.reported.confidence, rounding=rounding
        )
        at_random = test == "randomized_tukey"
        p = self._randomized() if at_random else found.p
        is_beyond = np.isnan(found.residual_variance) & (self._reasons == "")
        centred, grand = self._moments.mean[:-1], self._moments.mean[-1]
        positive = np.where(grand + centred > 0, grand + centred, np.nan)
        pairs = combinations(range(self.n_models), 2)
        return [
            {
                "n_users": n,
                "baseline_value": grand + centred[first],
                C.VALUE: grand + centred[model],
                "delta": -found.delta[:, pair],  # theirs are of the first model minus the second
                "ci_low": np.full(len(n), np.nan) if at_random else -found.high[:, pair],
                "ci_high": np.full(len(n), np.nan) if at_random else -found.low[:, pair],
                "relative_delta": (centred[model] - centred[first]) / positive[first],
                "effect_size": -found.effect_size[:, pair],
                **_tested(
                    {"reason": np.where(is_beyond & np.isnan(p[:, pair]), OUT_OF_RANGE, self._reasons)},
                    p[:, pair],
                    np.full(len(n), MONTE_CARLO if at_random else "studentized_range"),
                ),
            }
            for pair, (first, model) in enumerate(pairs)
        ]

    @cached_property
    def _parts(self) -> list[np.ndarray]:
        """Aggregates of each partition: for ``_moments``, squares that can be rounding, sums of ``|x|``."""
        states = (
            np.frombuffer(state).reshape(-1, self.n_measures) for state in self.states.get(comparison_state.CENTRED, ())
        )
        empty = np.zeros((3 * (self.n_models + 1) + 2, self.n_measures))
        return [*states] or [empty]

    @cached_property
    def _moments(self) -> Moments:
        """Moments of each model's centred values and, last, of the users' means: shape (n_models + 1, n_measures)."""
        parts = (part[:-2].reshape(3, -1, self.n_measures) for part in self._parts)
        found = reduce(Moments.merge, (Moments(n.astype(np.int64), mean, m2) for n, mean, m2 in parts))
        return Moments(found.n, np.where(found.n > 0, found.mean, np.nan), found.m2)

    def _randomized(self) -> np.ndarray:
        n_models, found = self.n_models, self._moments
        with np.errstate(over="ignore"):
            totals = np.nan_to_num(found.mean[:-1]) * found.n[:-1]
        absolute = np.sum([part[-1] for part in self._parts], axis=0)
        nothing = np.zeros(n_models * self.n_measures * self.requested.replicates)
        sums = reduce(np.add, (np.frombuffer(state) for state in self.states.get(comparison_state.ORDERS, ())), nothing)
        return tukey.randomised_p(totals, absolute, sums.reshape(n_models, self.n_measures, self.requested.replicates))

    @property
    def _reasons(self) -> np.ndarray:
        n = self._moments.n[0]
        names = ["no_common_users", "one_user", "few_users"]
        return np.select([n == 0, n == 1, n < self.reported.min_size], names, "").astype(object)


def _estimates(baseline: np.ndarray, found: Comparison | RatioComparison, change: Change) -> Numbers:
    """Return both values, their difference and the relative one, and the intervals."""
    return {
        "baseline_value": baseline,
        C.VALUE: baseline + found.delta,
        **{"delta": found.delta, "ci_low": found.low, "ci_high": found.high, "relative_delta": change.value},
        **dict(zip(_RELATIVE_ENDS, (change.low, change.high), strict=True)),
    }


def _reason(n: np.ndarray, reason: np.ndarray) -> np.ndarray:
    return np.where(n == 0, "no_common_users", reason).astype(object)


def _tested(before: Mapping[str, np.ndarray], p: np.ndarray, method: np.ndarray) -> Numbers:
    """Return p, its method and why there is none: the reason of t, or that it is not defined."""
    p = np.where(before["reason"] == "", p, np.nan)
    reason = np.where((before["reason"] == "") & np.isnan(p), "undefined", before["reason"])
    return {"p_value": p, "method": method.astype(object), "reason": reason}
