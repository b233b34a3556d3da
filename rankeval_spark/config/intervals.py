"""How the intervals of means are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from rankeval_spark.config.base import Model, Whole

if TYPE_CHECKING:
    from rankeval_spark.statistics.replicates import Draws

Replicates = Annotated[Whole, Field(ge=100, le=100_000)]
Seed = Annotated[Whole, Field(ge=0, lt=2**63)]


class Intervals(Model):
    """Intervals of means and micro averages; `confidence` is their level."""

    method: Literal["analytic", "bootstrap"] = "analytic"
    """By formula (Student's t, Wilson's for shares of users, the delta method for micro averages), or percentiles of a
    Poisson bootstrap over users. Measures of all lists together have those of the jackknife either way."""
    replicates: Replicates = 1000
    """Replicates of the bootstrap."""
    seed: Seed = 0
    """Seed of the bootstrap: the same seed, user and replicate always have the same weight."""

    @property
    def draws(self) -> Draws | None:
        """The draws of the bootstrap; None where none is requested."""
        if self.method != "bootstrap":
            return None
        from rankeval_spark.statistics.replicates import Draws  # noqa: PLC0415 - scipy takes a moment

        return Draws(self.replicates, self.seed)
