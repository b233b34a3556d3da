"""CHECK constraints of the published tables: as SQL, which Delta keeps, and as conditions on rows that are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.engine.batch.arrays import to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.measures.arrays import BoolVector, FloatVector


class Range(NamedTuple):
    """Values that a number may have: as SQL, with ``{0}`` for its name, and as a condition; NaN is none of them."""

    sql: str
    has: Callable[[FloatVector], BoolVector]


_NOT_NEGATIVE: Final = Range("{0} >= 0", lambda values: values >= 0)
_SHARE: Final = Range("{0} >= 0 AND {0} <= 1", lambda values: (values >= 0) & (values <= 1))
_SOME_SHARE: Final = Range("{0} > 0 AND {0} <= 1", lambda values: (values > 0) & (values <= 1))
_FINITE: Final = Range("{0} > double('-Infinity') AND {0} < double('Infinity')", np.isfinite)


@dataclass(frozen=True)
class Bound:
    """The range of some columns.

    Attributes
    ----------
    columns : tuple of str
        Each of them is in the range.
    is_optional : bool
        Whether a row whose first column is NULL may lack all of them; otherwise NULL is out of range.
    """

    columns: tuple[str, ...]
    range: Range
    is_optional: bool = False

    def text(self, *, is_alone: bool) -> str:
        """Write the bound; in brackets where it is one of several and has an OR."""
        rules = " AND ".join(map(self.range.sql.format, self.columns))
        if not self.is_optional:
            return rules
        text = f"{self.columns[0]} IS NULL OR {f'({rules})' if ' AND ' in rules else rules}"
        return text if is_alone else f"({text})"

    def holds(self, rows: pa.Table) -> BoolVector:
        """Say of each row whether it keeps the bound."""
        kept: BoolVector = reduce(and_, (self.range.has(to_numpy(rows[name])) for name in self.columns))
        return kept | to_numpy(rows[self.columns[0]].is_null()) if self.is_optional else kept


@dataclass(frozen=True)
class Constraint:
    """Bounds that a row keeps, all of them."""

    bounds: tuple[Bound, ...]

    def __str__(self) -> str:
        """Write them as SQL."""
        return " AND ".join(bound.text(is_alone=len(self.bounds) == 1) for bound in self.bounds)

    def holds(self, rows: pa.Table) -> BoolVector:
        """Say of each row whether it keeps them."""
        kept: BoolVector = reduce(and_, (bound.holds(rows) for bound in self.bounds))
        return kept

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are looked at."""
        return tuple(name for bound in self.bounds for name in bound.columns)


def _counts(*columns: str) -> Constraint:
    return Constraint((Bound(columns, _NOT_NEGATIVE),))


def _of_optional(range_: Range, *columns: str) -> Constraint:
    """Bound columns that may be NULL, each for itself."""
    return Constraint(tuple(Bound((name,), range_, is_optional=True) for name in columns))


_TRIPLE: Final = Bound(("n_wins", "n_ties", "n_losses"), _NOT_NEGATIVE, is_optional=True)

CONSTRAINTS: Final[Mapping[str, Mapping[str, Constraint]]] = {
    "runs": {"sample_share": _of_optional(_SOME_SHARE, "sample_share")},
    "lists": {"counts": _counts("n_recommended", "n_duplicates")},
    "user_metrics": {"counts": _counts("k", "n_judged", "n_relevant", "n_recommended", "n_hits")},
    "metrics": {
        "counts": _counts("k", "n_users"),
        "lists": _of_optional(_NOT_NEGATIVE, "n_lists"),
        "judged_counts": _of_optional(_NOT_NEGATIVE, "n_undefined", "n_missing"),
        "tie_share": _of_optional(_SHARE, "tie_share"),
        "value": _of_optional(_FINITE, "value"),
        "quantile_error": _of_optional(_NOT_NEGATIVE, "quantile_error"),
    },
    "group_metrics": {
        "counts": _counts("k", "n_users", "n_left_out"),
        "value": _of_optional(_FINITE, "value"),
    },
    "comparisons": {
        "counts": Constraint((Bound(("k", "n_users"), _NOT_NEGATIVE), _TRIPLE)),
        "lists": _of_optional(_NOT_NEGATIVE, "n_with_baseline", "n_with_model", "n_with_both"),
        "p": _of_optional(_SHARE, "p_value", "p_adjusted"),
        "delta": _of_optional(_FINITE, "delta"),
        "shares": _of_optional(_SHARE, "win_share", "loss_share"),
    },
    "checks": {"share": _of_optional(_SHARE, "share")},
}
"""Constraints by table and name. NaN is greater than infinity in Spark, so that an upper bound refuses it there too."""
