"""What is done with the awkward cases: who enters the mean, how ties are broken, what a duplicate counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

from pydantic import model_validator

from rankeval_spark.config.base import Flag, Model, fault_error
from rankeval_spark.errors import Fault

Population = Literal["truth", "judged", "intersection", "intersection_judged", "run"]
ZeroRelevant = Literal["exclude", "zero", "one", "error"]
Missing = Literal["zero", "exclude", "error"]
Ties = Literal["item_asc", "item_desc", "rank", "optimistic", "pessimistic", "expected", "error"]
ScorePrecision = Literal["double", "single"]
RankGaps = Literal["renumber", "keep"]
Duplicates = Literal["best", "error", "keep"]
HeldOutDuplicates = Literal["max", "sum", "last", "error"]
InvalidScores = Literal["drop", "error"]
SeenInTrain = Literal["keep", "drop"]
UnknownItems = Literal["keep", "drop"]
Unit = Literal["user", "list"]


class Handling(NamedTuple):
    """What a population may do with users without a relevant judgement and with users without a list.

    The first of each is what it does where nothing is said.
    """

    zero_relevant: tuple[ZeroRelevant, ...]
    missing: tuple[Missing, ...]


HANDLINGS: Final[Mapping[Population, Handling]] = {
    "truth": Handling(("exclude", "error"), ("zero", "exclude", "error")),
    "judged": Handling(("zero", "one", "error"), ("zero", "exclude", "error")),
    "intersection": Handling(("exclude", "error"), ("exclude", "error")),
    "intersection_judged": Handling(("zero", "one", "error"), ("exclude", "error")),
    "run": Handling(("exclude", "zero", "one", "error"), ("exclude", "error")),
}
"""The combinations that have a meaning; all others contradict the population's own definition."""

DROPS_BY: Final[Mapping[str, tuple[str, ...]]] = {"seen_in_train": ("train",), "unknown_items": ("items", "train")}
"""Policies that leave recommended items out, and the inputs that say which: the first of them that there is."""


class Policies(Model):
    """Policies of an evaluation; published with every definition, because each of them changes numbers."""

    population: Population = "truth"
    """Users in the mean: `truth` = with a relevant judgement (no list scores 0); `judged` = with any judgement;
    `intersection` = with a list and a relevant judgement; `intersection_judged` = with a list and any judgement;
    `run` = with a list."""
    zero_relevant: ZeroRelevant = "exclude"
    """A user of the population without a relevant judgement: undefined and counted, the measure's worst value (mostly
    0), 1, or an error. Where it is left out, the population says: zero for judged and intersection_judged, else
    exclude."""
    missing: Missing = "zero"
    """A judged user without a list: scores 0, is left out of the mean, or is an error. Where it is left out, the
    population says: zero for truth and judged, else exclude."""
    ties: Ties = "item_asc"
    """Order of equal scores: by item id ascending or descending; by the log's rank; the best or the worst order for
    the measures (gain descending or ascending, then item), for measures that grow with the gain at each rank; the mean
    over all orders, for measures that have one in closed form; or an error."""
    score_precision: ScorePrecision = "double"
    """Precision in which scores are compared; `single`, as trec_eval up to version 9, makes ties of scores that
    hardly differ."""
    rank_gaps: RankGaps = "renumber"
    """Whether ranks are assigned again, 1, 2, 3, or those of the log are kept with their gaps. Kept ranks order a list;
    the scores of the log then do not."""
    duplicates: Duplicates = "best"
    """An item twice in one list: keep its best position, fail, or keep both (parity with other tools only)."""
    judged_only: Flag = False
    """Leave items without a judgement, or with a negative gain, out of the lists before they are ranked, as trec_eval
    -J."""
    held_out_duplicates: HeldOutDuplicates = "max"
    """A held-out (user, item) twice: the largest gain, the sum of gains, the gain of the last by interacted_at (of
    several at that time the largest), or fail."""
    invalid_scores: InvalidScores = "drop"
    """Rows with a NULL, NaN or infinite score: drop and count them, or fail."""
    seen_in_train: SeenInTrain = "keep"
    """Recommended items that the user has in `train`: keep them, or leave them out before lists are ranked."""
    unknown_items: UnknownItems = "keep"
    """Recommended items that the catalogue does not have, which is the input `items` or, where there is none, the items
    of `train`: keep them, or leave them out before lists are ranked."""
    unit: Unit = "user"
    """What is averaged where users have several lists: users, each with the mean of their lists, or lists, so that a
    user with more of them weighs more. The unit of intervals and tests is the user either way."""

    @model_validator(mode="before")
    @classmethod
    def _complete_by_population(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever was written
        """Write down what the population implies, so that it is published with the rest."""
        if not isinstance(values, Mapping):
            return values
        population = values.get("population") or cls.model_fields["population"].default
        if population not in get_args(Population):
            return values  # reported by its own validator
        handling = HANDLINGS[population]
        implied = {"zero_relevant": handling.zero_relevant[0], "missing": handling.missing[0]}
        return {**values, **{name: value for name, value in implied.items() if values.get(name) is None}}

    @model_validator(mode="after")
    def _fits_the_population(self) -> Policies:
        handling = HANDLINGS[self.population]._asdict()
        faults = [
            Fault(
                f".{name}", f"{name} {found!r} with population {self.population!r}", _one_of(allowed), _fix(name, found)
            )
            for name, allowed in handling.items()
            if (found := getattr(self, name)) not in allowed
        ]
        if faults:
            raise fault_error(*faults)
        return self


def lacking_inputs(policies: Policies, given: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Name the policies that leave items out by an input that is not there, and the inputs of which one would do.

    Examples
    --------
    >>> lacking_inputs(Policies(seen_in_train="drop", unknown_items="drop"), ["items"])
    {'seen_in_train': ('train',)}
    """
    return {
        name: inputs
        for name, inputs in DROPS_BY.items()
        if getattr(policies, name) == "drop" and not set(inputs) & set(given)
    }


def _one_of(allowed: tuple[str, ...]) -> str:
    return f"one of {', '.join(allowed)}"


def _fix(name: str, value: str) -> str:
    """Name the populations that allow the value."""
    populations = [population for population, handling in HANDLINGS.items() if value in getattr(handling, name)]
    return f"it goes with population {' or '.join(populations)}"
