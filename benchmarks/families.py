"""What the families of measures cost, each next to a floor of its own: its inputs joined in the plainest way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window, functions as F

from benchmarks.timing import Contender
from benchmarks.workloads import DAY, DEPTH, POPULARITY, Workloads, n_rows

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Family:
    """Measures that read the same inputs.

    Attributes
    ----------
    name : str
        As the table shows it.
    measures : tuple of str
        Names without cutoffs; those that take none are in `uncut`.
    floor : callable
        The plain query whose time the measures are compared with.
    uncut : tuple of str
        Measures of the whole list.
    """

    name: str
    measures: tuple[str, ...]
    floor: Callable[[], object]
    uncut: tuple[str, ...] = ()

    @property
    def floor_name(self) -> str:
        """Name of the floor in the table."""
        return f"floor of {self.name}"

    @property
    def asked(self) -> list[str]:
        """Measures at their cutoff."""
        return [*(f"{name}@{DEPTH}" for name in self.measures), *self.uncut]


@dataclass(frozen=True)
class Families:
    """The contenders of ``--parts families``, over the tables of the other ones."""

    workloads: Workloads

    def contenders(self) -> list[Contender]:
        """Return each family after its floor."""
        pairs = [(Contender(one.floor_name, one.floor), self._timed(one)) for one in self._families()]
        return [contender for pair in pairs for contender in pair]

    def floors(self) -> dict[str, str]:
        """Return the floor of each line that has one of its own."""
        return {one.name: one.floor_name for one in self._families()}

    def _timed(self, family: Family) -> Contender:
        load = self.workloads

        def evaluate_family() -> int:
            given = {"train": load.read("train"), "items": load.read("items"), "evaluation_date": DAY}
            return n_rows(load.evaluated(family.asked, **given).metrics)

        return Contender(family.name, evaluate_family)

    def _families(self) -> list[Family]:
        return [
            Family("predicted ratings", (), self._rated, ("RMSE", "MAE", "LogLoss", "FCP", "KendallTau", "Spearman")),
            Family("popularity and novelty", tuple(one.partition("@")[0] for one in POPULARITY), self._counted),
            Family("coverage", ("ItemCoverage", "CatalogCoverage", "Entropy", "Gini", "Personalization"), self._shown),
            Family("diversity by vectors", ("ILD", "ILS"), lambda: self._described(F.col("vector")[0])),
            Family("diversity by categories", ("ILD(sim='jaccard')",), lambda: self._described(F.size("categories"))),
            Family("diversity by co-occurrence", ("ILD(sim='cooccurrence')",), self._paired),
            Family("freshness", ("Freshness",), lambda: self._described(F.unix_date("published_at"))),
            Family("calibration", ("Calibration", "SRecall"), self._profiled_by_category),
            Family("serendipity", ("Unexpectedness", "Serendipity(kind='content')"), self._profiled_by_vector),
            Family("data quality", ("SufficientReco", "NotInTrain"), self._seen),
        ]

    def _rated(self) -> object:
        """Join every judgement with the score that the log has for it."""
        error = F.col("score") - F.col("gain")
        return _sum(self.workloads.log.join(self.workloads.read("held_out"), on=["user_id", "item_id"]), error * error)

    def _counted(self) -> object:
        """Join the items of the lists with how often they were interacted with."""
        counts = self.workloads.read("train").groupBy("item_id").agg(F.count("*").alias("n"))
        return _sum(self._ranked.join(counts, on=["item_id"], how="left"), F.col("n"))

    def _shown(self) -> object:
        """Count the lists that each item is in."""
        return _sum(self._ranked.groupBy("item_id").agg(F.count("*").alias("n")), F.col("n"))

    def _described(self, fact: Column) -> object:
        """Join the items of the lists with their facts in the catalogue, and gather these by list."""
        joined = self._ranked.join(self.workloads.read("items"), on=["item_id"], how="left")
        return _sum(joined.groupBy("user_id").agg(F.sum(fact).alias("n")), F.col("n"))

    def _paired(self) -> object:
        """Count the users that two items have in common, for all pairs that occur."""
        once = self.workloads.read("train").distinct()
        other = once.withColumnRenamed("item_id", "other_id")
        pairs = once.join(other, on=["user_id"]).where(F.col("item_id") < F.col("other_id"))
        return _sum(pairs.groupBy("item_id", "other_id").agg(F.count("*").alias("n")), F.col("n"))

    def _profiled_by_category(self) -> object:
        """Count the categories of each user's list and of what they have in the training data."""
        both = self._ranked.select("user_id", "item_id").unionByName(self.workloads.read("train"))
        labels = both.join(self.workloads.read("items"), on=["item_id"]).select(
            "user_id", F.explode("categories").alias("c")
        )
        return _sum(labels.groupBy("user_id", "c").agg(F.count("*").alias("n")), F.col("n"))

    def _profiled_by_vector(self) -> object:
        """Add up one feature of each user's list and of what they have in the training data."""
        both = self._ranked.select("user_id", "item_id").unionByName(self.workloads.read("train"))
        joined = both.join(self.workloads.read("items"), on=["item_id"])
        return _sum(joined.groupBy("user_id").agg(F.sum(F.col("vector")[0]).alias("n")), F.col("n"))

    def _seen(self) -> object:
        """Count the items of the lists that their users have in the training data."""
        return self._ranked.join(
            self.workloads.read("train").distinct(), on=["user_id", "item_id"], how="left_semi"
        ).count()

    @cached_property
    def _ranked(self) -> DataFrame:
        best_first = Window.partitionBy("model_id", "user_id").orderBy(F.desc("score"), F.asc("item_id"))
        ranked = self.workloads.log.repartition("user_id").withColumn("rank", F.row_number().over(best_first))
        return ranked.where(F.col("rank") <= DEPTH)


def _sum(frame: DataFrame, value: Column) -> object:
    return frame.agg(F.sum(value)).collect()
