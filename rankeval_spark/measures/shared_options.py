"""Options that measures of several families share, each documented once."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

from rankeval_spark.measures.item_groups import BY_POPULARITY
from rankeval_spark.measures.options import Above, Below, Meaning, NotOffered, Option, Text

Level: TypeAlias = Annotated[float, Above(0), Meaning("Gain from which on an item is relevant.")]
"""``rel``. Above 0, because an item without a judgement has gain 0."""

GreatestGain: TypeAlias = Annotated[
    float, Above(0), Meaning("Greatest gain there can be; a judgement with a gain above it is an error.")
]
"""``max_rel``. It never comes from the data: all values would change with one new grade."""

Persistence: TypeAlias = Annotated[
    float,
    Above(0),
    Below(1),
    Meaning("Probability that a user goes on to the next item; the expected depth is 1 / (1 - p)."),
]
"""``p``."""

RecallWeight: TypeAlias = Annotated[float, Above(0), Meaning("How many times more recall counts than precision.")]
"""``beta``."""

Unknown: TypeAlias = Annotated[
    Literal["null", "drop"],
    Meaning(
        "What an item does of which nothing is known (no vector, categories, users or day of publication): the list "
        "has no value; of the first k items the others count alone, as a list of their own."
    ),
]

Category: TypeAlias = Annotated[
    str,
    Text("a category of items"),
    Meaning(
        "Category of items, in the case in which the catalogue writes it. An item of several categories belongs to "
        "each of them as a whole; one without categories, or that the catalogue does not have, to none."
    ),
]

OtherModel: TypeAlias = Annotated[
    str,
    Text("a model of the same run"),
    Meaning("The other model, as `model_id` names it. Its own lists have no value."),
]

MODEL: Final = "model"
"""The option of a measure that looks at the lists of another model in addition to those it is computed of."""

Agg: TypeAlias = Literal["macro", "micro"]

AGG: Final = "agg"
"""The option of every measure that is a ratio; kernels do not see it."""

GROUP: Final = "group"
"""The option of every measure that reads judgements and no facts of items; kernels see lists with fewer judgements."""

JUDGED_ONLY: Final = "judged_only"
"""The option of every such measure in which unjudged items take places; kernels see shorter lists."""


WEIGHTED: Final = "weighted"
"""The option of every measure that adds up relevant items; kernels see lists whose judgements have weights."""


def agg_option(default: Agg, not_offered: tuple[NotOffered, ...] = ()) -> Option:
    """Make the option ``agg`` of a measure."""
    meaning = "How users are combined: the mean of their values, or the ratio of sums over them."
    return Option(AGG, default, choices=get_args(Agg), not_offered=not_offered, meaning=meaning)


GROUP_OPTION: Final = Option(
    GROUP,
    None,
    choices=BY_POPULARITY,
    takes_text="a category of items",
    meaning="Judgements of one item group only: other items keep their ranks and count as unjudged; undefined for a "
    "user without a judgement of the group. head, middle and tail hold 20, 60 and 20 % of the interactions in train.",
)

JUDGED_ONLY_OPTION: Final = Option(
    JUDGED_ONLY,
    None,
    is_switch=True,
    not_offered=(NotOffered("False", "leave it out"),),
    meaning="Items without a judgement, or with a negative gain, leave the list before it is cut, and the rest closes "
    "up: the policy judged_only for one measure. Left out, the policy of the run says what counts.",
)

WEIGHTED_OPTION: Final = Option(
    WEIGHTED,
    None,
    is_switch=True,
    not_offered=(NotOffered("False", "leave it out"),),
    meaning="A judgement counts as often as the column `weight` of the held-out table says, such as 1 over the "
    "probability with which it was observed; a weight that is no number above 0 takes the judgement out, as if its "
    "row were not there. Left out, "
    "every judgement counts once.",
)
