"""The inputs of one evaluation, as one bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark import columns as C

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class InputFrames:
    """Canonical frames of one evaluation date, of the expected models and the sampled users only.

    Attributes
    ----------
    recommendations, held_out, segments, train, items : DataFrame
        Rows of the schemas of these names; the last three are None where they are not given.
    has_one_list : bool
        Whether the log has no ``list_id``: no user has several lists of a model.
    has_model_id : bool
        Whether the log names its models; without names it has one.
    has_small_catalogue : bool
        Whether ``items`` are known to fit into the memory of every task.
    band_facts : tuple of DataFrame
        What the checks count of numbers that became segments.
    are_checked : bool
        Whether checks look at the inputs before anything is evaluated. Where they do not, the workers refuse an input
        that has rows and none that can be used.
    cached_partitions : int or None
        Partitions that the rows go into where what is made of them is kept; as Spark decides where it is None.
    model_names : tuple of str
        Names of the models that have usable rows in the log, where they were looked up because none are expected.
    lists : DataFrame or None
        The log with one row per list, where it is one, see :attr:`inputs.spark.Source.lists`. The exchange moves it in
        place of `recommendations`.
    """

    recommendations: DataFrame
    held_out: DataFrame
    segments: DataFrame | None = None
    has_one_list: bool = False
    train: DataFrame | None = None
    items: DataFrame | None = None
    has_small_catalogue: bool = False
    band_facts: tuple[DataFrame, ...] = ()
    has_model_id: bool = True
    are_checked: bool = True
    cached_partitions: int | None = None
    model_names: tuple[str, ...] = ()
    lists: DataFrame | None = None

    @property
    def has_judged_lists(self) -> bool:
        """Whether judgements belong to the lists that they name."""
        return C.LIST_ID in self.held_out.columns

    @property
    def catalogue(self) -> DataFrame | None:
        """A frame whose ``item_id`` are all items: ``items`` or, where there is no such input, ``train``."""
        return self.train if self.items is None else self.items
