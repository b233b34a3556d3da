"""What a night comes to: the rows that it publishes, which models, slice values, measures and cutoffs multiply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark.columns import CROSSING
from rankeval_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.models import EvaluationConfig


@dataclass(frozen=True)
class Cost:
    """Rows of ``metrics`` and ``comparisons`` of a night.

    Attributes
    ----------
    n_values : int
        Measures, each at each of its cutoffs.
    n_models : int
        Models; at least one where they are not counted yet.
    slice_values : mapping
        Values of each slice but all users, by its name; at least one where they are not counted yet.
    n_tests : int
        Tests of each pair of models; 0 without comparisons.
    compares_all : bool
        Whether every two models are compared, not each with the baseline.
    is_counted : bool
        Whether models and values were counted in the data.
    """

    n_values: int
    n_models: int
    slice_values: Mapping[str, int]
    n_tests: int = 0
    compares_all: bool = False
    is_counted: bool = False

    @property
    def n_metrics(self) -> int:
        """Rows of ``metrics``: of all users and each slice value."""
        return self.n_models * (1 + sum(self.slice_values.values())) * self.n_values

    @property
    def n_comparisons(self) -> int:
        """Rows of ``comparisons``."""
        pairs = math.comb(self.n_models, 2) if self.compares_all else self.n_models - 1
        return self.n_tests * pairs * (1 + sum(self.slice_values.values())) * self.n_values

    @property
    def n_rows(self) -> int:
        """Rows of both."""
        return self.n_metrics + self.n_comparisons

    def __str__(self) -> str:
        """Say how the rows come about."""
        slices = 1 + sum(self.slice_values.values())
        of_pairs = f" and {self.n_comparisons:,} of comparisons" if self.n_tests else ""
        about = "about" if self.is_counted else "at least"
        of_models, of_slices = _number(self.n_models, "model"), _number(slices, "slice value")
        return (
            f"{about} {self.n_metrics:,} rows of metrics{of_pairs} a night: "
            f"{self.n_values:,} measures at cutoffs x {of_models} x {of_slices}"
        )

    def require_at_most(self, n_rows: int) -> None:
        """Refuse a night that comes to more rows.

        Raises
        ------
        ConfigError
            With what multiplies them most.
        """
        if self.n_rows <= n_rows:
            return
        largest = max(self.slice_values, key=self.slice_values.__getitem__, default="")
        n_largest = self.slice_values.get(largest, 0)
        if n_largest > max(self.n_models, self.n_values):
            fix = f"leave out the slice {largest}, which has {n_largest:,} values"
        elif self.n_values > self.n_models:
            fix = f"ask for fewer of the {self.n_values:,} measures at cutoffs"
        else:
            fix = f"name fewer models than the {self.n_models:,}"
        raise ConfigError(
            Fault("results.most_rows", str(self), f"at most {n_rows:,}", f"{fix}, or raise results.most_rows")
        )


def least_cost(config: EvaluationConfig) -> Cost:
    """Return the least that a night comes to, before any data are read."""
    compared = config.comparisons
    return Cost(
        len(config.measure_set().measures),
        len(config.models or ("",)),
        {CROSSING.join(names): 1 for names in config.slices},
        0 if compared is None else len(compared.tests),
        compared is not None and compared.pairs == "all",
    )


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
