"""What is done with the awkward cases: who enters the mean, how ties are broken, what a duplicate counts."""

from __future__ import annotations

from typing import Literal

from rankeval_spark.config.base import Model

Population = Literal["truth", "judged", "intersection", "run"]
Ties = Literal["item_asc", "item_desc", "rank", "error"]
Duplicates = Literal["best", "error", "keep"]
HeldOutDuplicates = Literal["max", "sum", "error"]
InvalidScores = Literal["drop", "error"]


class Policies(Model):
    """Policies of an evaluation; published with every definition, because each of them changes numbers."""

    population: Population = "truth"
    """Users in the mean: `truth` = with a relevant judgement (no list scores 0), `judged` = with any judgement,
    `intersection` = with a list and a relevant judgement, `run` = with a list."""
    ties: Ties = "item_asc"
    """Order of equal scores: by item id ascending or descending, by the log's rank, or an error."""
    duplicates: Duplicates = "best"
    """An item twice in one list: keep its best position, fail, or keep both (parity with other tools only)."""
    held_out_duplicates: HeldOutDuplicates = "max"
    """A held-out (user, item) twice: the largest gain, the sum of gains, or fail."""
    invalid_scores: InvalidScores = "drop"
    """Rows with a NULL, NaN or infinite score: drop and count them, or fail."""
