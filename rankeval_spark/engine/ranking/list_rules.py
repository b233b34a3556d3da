"""What the engine does with lists: plain data that travels to the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval_spark import columns as C
from rankeval_spark.limits import MAX_ROWS_PER_USER

if TYPE_CHECKING:
    from rankeval_spark.engine.ranking.attribution import AttributionRules


@dataclass(frozen=True)
class ListRules:
    """How the rows of the log become ranked lists.

    Attributes
    ----------
    order : {"score", "rank"}
        Column that orders the lists: descending scores or ascending ranks.
    ties : str
        What decides between items of equal score: policy ``ties``, see ``docs/policies.md``.
    duplicates : {"best", "keep", "error"}
        What happens to an item with several rows in a list.
    held_out_duplicates : {"max", "sum", "last", "error"}
        The same for several rows of a judgement.
    keeps_gaps : bool
        Whether items keep the rank of the log instead of being numbered from 1: policy ``rank_gaps``.
    judged_only : bool
        Whether items without a judgement leave the lists before ranks are given.
    drops_seen : bool
        Whether items that the user has in the training data leave the lists first: policy ``seen_in_train``.
    checks_ranks : bool
        Whether ranks of the log are compared with those that are given.
    attribution : AttributionRules or None
        How times decide which list an interaction is a judgement of; None: every list of its user.
    max_rows_per_user : int
        Rows of a user in all inputs together above which the job fails.
    """

    order: str
    ties: str
    duplicates: str
    held_out_duplicates: str = "max"
    keeps_gaps: bool = False
    judged_only: bool = False
    drops_seen: bool = False
    checks_ranks: bool = False
    attribution: AttributionRules | None = None
    max_rows_per_user: int = MAX_ROWS_PER_USER

    @property
    def duplicates_of_users(self) -> str:
        """Gain of a judgement of a user that has several rows: where lists have them, no two are refused."""
        is_refused_of_lists = self.attribution is not None and self.held_out_duplicates == "error"
        return "max" if is_refused_of_lists else self.held_out_duplicates

    @property
    def reads_ranks(self) -> bool:
        """Whether the ranks of the log are read."""
        return self.order == C.RANK or self.ties == "rank" or self.keeps_gaps or self.checks_ranks
