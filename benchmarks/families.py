"""What the families of measures cost, each beside a floor of its own: its inputs joined in the plainest way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window, functions as F

from benchmarks.timing import Contender
from benchmarks.workloads import CUTOFFS, FLOOR, WHOLE, Workloads, measure_set
from rankeval_spark.measures import MeasureSet, registry

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH: Final = 20
"""Cutoff of the families beyond accuracy."""

EVERY_ACCURACY: Final = "every measure of accuracy"
EVERY_MEAN: Final = "every measure of accuracy, means alone"
WITH_ILD: Final = f"the whole evaluation with ILD@{DEPTH} beside it"

_NOT_ACCURACY: Final = frozenset({"data_quality", "rating", "rank_agreement", "roc_area", "user_coverage"})
"""Families without a judgement in their formulas, and those of scores, which stand on lines of their own."""

_SPELLED: Final = {"RBP": "RBP(max_rel=3,p=0.8)"}
"""Measures that must know the greatest gain there is."""


@dataclass(frozen=True)
class Family:
    """Measures that read the same inputs.

    Attributes
    ----------
    name : str
        As the table shows it.
    measures : tuple of str
        Names without cutoffs; those that take none stand in `uncut`.
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

    def measure_set(self) -> MeasureSet:
        """Return the measures at their cutoff."""
        return MeasureSet.parse([*(f"{name}@{DEPTH}" for name in self.measures), *self.uncut], where="benchmarks")


@dataclass(frozen=True)
class Families:
    """The contenders of ``--parts families``, over the tables of the other ones."""

    workloads: Workloads

    def contenders(self) -> list[Contender]:
        """Return each family after its floor."""
        load = self.workloads
        pairs = [(Contender(one.floor_name, one.floor), self._timed(one)) for one in self._families()]
        return [
            Contender(FLOOR, load.floor),
            Contender(EVERY_ACCURACY, lambda: load.whole(load.asking(accuracy_set()))),
            Contender(EVERY_MEAN, lambda: load.means(load.asking(accuracy_set()))),
            Contender(WHOLE, load.whole),
            Contender(WITH_ILD, lambda: load.whole(load.asking(with_ild()))),
            *(contender for pair in pairs for contender in pair),
        ]

    def floors(self) -> dict[str, str]:
        """Return the floor of each line that has one of its own."""
        return {one.name: one.floor_name for one in self._families()}

    def _timed(self, family: Family) -> Contender:
        load = self.workloads
        return Contender(family.name, lambda: load.whole(load.asking(family.measure_set())))

    def _families(self) -> list[Family]:
        return [
            Family("predicted ratings", (), self._rated, ("RMSE", "MAE", "LogLoss", "FCP", "KendallTau", "Spearman")),
            Family("popularity and novelty", ("ARP", "MIUF", "SelfInfo", "EPC", "EFD", "APLT", "ACLT"), self._counted),
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
        return _sum(self.workloads.log.join(self._read("held_out"), on=["user_id", "item_id"]), error * error)

    def _counted(self) -> object:
        """Join the items of the lists with how often they were interacted with."""
        counts = self._read("train").groupBy("item_id").agg(F.count("*").alias("n"))
        return _sum(self._ranked.join(counts, on=["item_id"], how="left"), F.col("n"))

    def _shown(self) -> object:
        """Count the lists that each item stands in."""
        return _sum(self._ranked.groupBy("item_id").agg(F.count("*").alias("n")), F.col("n"))

    def _described(self, fact: Column) -> object:
        """Join the items of the lists with what the catalogue says of them, and gather it by list."""
        joined = self._ranked.join(self._read("items"), on=["item_id"], how="left")
        return _sum(joined.groupBy("user_id").agg(F.sum(fact).alias("n")), F.col("n"))

    def _paired(self) -> object:
        """Count the users whom two items have in common, for all pairs that occur."""
        once = self._read("train").distinct()
        other = once.withColumnRenamed("item_id", "other_id")
        pairs = once.join(other, on=["user_id"]).where(F.col("item_id") < F.col("other_id"))
        return _sum(pairs.groupBy("item_id", "other_id").agg(F.count("*").alias("n")), F.col("n"))

    def _profiled_by_category(self) -> object:
        """Count the categories of each user's list and of what he has in the training data."""
        both = self._ranked.select("user_id", "item_id").unionByName(self._read("train"))
        labels = both.join(self._read("items"), on=["item_id"]).select("user_id", F.explode("categories").alias("c"))
        return _sum(labels.groupBy("user_id", "c").agg(F.count("*").alias("n")), F.col("n"))

    def _profiled_by_vector(self) -> object:
        """Add up one feature of each user's list and of what he has in the training data."""
        both = self._ranked.select("user_id", "item_id").unionByName(self._read("train"))
        joined = both.join(self._read("items"), on=["item_id"])
        return _sum(joined.groupBy("user_id").agg(F.sum(F.col("vector")[0]).alias("n")), F.col("n"))

    def _seen(self) -> object:
        """Count the items of the lists that their users have in the training data."""
        return self._ranked.join(self._read("train").distinct(), on=["user_id", "item_id"], how="left_semi").count()

    @cached_property
    def _ranked(self) -> DataFrame:
        best_first = Window.partitionBy("model_id", "user_id").orderBy(F.desc("score"), F.asc("item_id"))
        ranked = self.workloads.log.repartition("user_id").withColumn("rank", F.row_number().over(best_first))
        return ranked.where(F.col("rank") <= DEPTH)

    def _read(self, name: str) -> DataFrame:
        return self.workloads.spark.read.parquet(str(getattr(self.workloads.tables, name)))


def accuracy_set() -> MeasureSet:
    """Ask for every measure of relevance with its default options, at each cutoff where it takes one."""
    chosen = [
        entry
        for entry in registry.entries("list")
        if entry.family not in _NOT_ACCURACY
        and not (entry.definition.needs or entry.definition.needs_with(**entry.defaults))
    ]
    cut, uncut = (
        tuple(
            _SPELLED.get(entry.name, entry.name)
            for entry in chosen
            if (entry.definition.cutoff.need(entry.defaults) == "forbidden") is wanted
        )
        for wanted in (False, True)
    )
    return MeasureSet.of([*measure_set(cut, CUTOFFS).measures, *MeasureSet.parse(list(uncut)).measures])


def with_ild() -> MeasureSet:
    """Ask for what the whole evaluation asks for, and ILD by vectors."""
    return MeasureSet.of([*measure_set().measures, *MeasureSet.parse([f"ILD@{DEPTH}"]).measures])


def _sum(frame: DataFrame, value: Column) -> object:
    return frame.agg(F.sum(value)).collect()
