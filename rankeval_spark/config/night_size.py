"""Number of rows that a night publishes: models, slice values, measures and cutoffs multiply."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rankeval_spark.columns import CROSSING
from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.evaluation_config import EvaluationConfig


@dataclass(frozen=True)
class Cost:
    """Rows of ``metrics`` and ``comparisons`` of a night."""

    n_values: int  # measures, each at each of its cutoffs
    n_models: int  # before they are counted, at least one
    slice_values: Mapping[str, int]  # values of each slice except ``all``; before they are counted, at least one
    n_tests: int = 0  # per pair of models; 0 without comparisons
    compares_all: bool = False  # whether every two models are compared, instead of each with the baseline
    is_counted: bool = False  # whether models and slice values were counted in the data

    @property
    def n_slices(self) -> int:
        """Slice values, all users included."""
        return 1 + sum(self.slice_values.values())

    @property
    def n_metrics(self) -> int:
        """Rows of ``metrics``."""
        return self.n_models * self.n_slices * self.n_values

    @property
    def n_comparisons(self) -> int:
        """Rows of ``comparisons``."""
        pairs = math.comb(self.n_models, 2) if self.compares_all else self.n_models - 1
        return self.n_tests * pairs * self.n_slices * self.n_values

    def __str__(self) -> str:
        """Format the row count and its factors."""
        comparisons = f" and {self.n_comparisons:,} of comparisons" if self.n_tests else ""
        models = f"{self.n_models:,} model{'' if self.n_models == 1 else 's'}"
        slices = f"{self.n_slices:,} slice value{'' if self.n_slices == 1 else 's'}"
        return (
            f"{'about' if self.is_counted else 'at least'} {self.n_metrics:,} rows of metrics{comparisons} a night: "
            f"{self.n_values:,} measures at cutoffs x {models} x {slices}"
        )

    def require_at_most(self, n_rows: int) -> None:
        """Raise ConfigError for a night with more rows, with the largest factor."""
        if self.n_metrics + self.n_comparisons <= n_rows:
            return
        largest = max(self.slice_values, key=self.slice_values.__getitem__, default="")
        n_largest = self.slice_values.get(largest, 0)
        if n_largest > max(self.n_models, self.n_values):
            fix = f"leave out the slice {largest}, which has {n_largest:,} values"
        elif self.n_values > self.n_models:
            fix = f"request fewer than {self.n_values:,} measures at cutoffs"
        else:
            fix = f"name fewer than {self.n_models:,} models"
        fix += ", or raise results.most_rows"
        raise ConfigError(Fault("results.most_rows", str(self), f"at most {n_rows:,}", fix))


def least_cost(config: EvaluationConfig) -> Cost:
    """Return the least number of rows of a night, before any data are read."""
    compared = config.comparisons
    return Cost(
        len(config.measure_set.measures),
        len(config.expected_models or ("",)),
        {CROSSING.join(names): 1 for names in config.slices},
        0 if compared is None else len(compared.tests),
        compared is not None and compared.all_pairs,
    )


def counted_cost(config: EvaluationConfig, *, n_models: int, slice_values: Mapping[str, int]) -> Cost:
    """Return about how many rows a night has, once its data are counted.

    Models of the log count where the config expects none. ``slice_values`` is the number of values of each slice except
    ``all``; one without a value counts as one.
    """
    least = least_cost(config)
    return replace(
        least,
        n_models=least.n_models if config.expected_models else max(1, n_models),
        slice_values={name: max(1, count) for name, count in slice_values.items()},
        is_counted=True,
    )
