"""Policies: users in the mean, order of ties, treatment of duplicates and invalid rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, get_args

from pydantic import AfterValidator, BeforeValidator, ModelWrapValidatorHandler, StringConstraints, model_validator

from rankeval_spark.config.base import Flag, Model, check_duration, format_duration, microseconds, refuse_faults
from rankeval_spark.errors import Fault, require_same

Population = Literal["truth", "judged", "intersection", "intersection_judged", "run"]
ZeroRelevant = Literal["exclude", "zero", "one", "error"]
Missing = Literal["zero", "exclude", "error"]
Ties = Literal["item_asc", "item_desc", "item_desc_bytes", "rank", "optimistic", "pessimistic", "expected", "error"]
Unit = Literal["user", "list"]
Lists = Literal["separate", "pooled"]
Attribution = Literal["none", "last_touch", "first_touch", "all"]
Duplicates = Literal["best", "error", "keep"]
HeldOutDuplicates = Literal["max", "sum", "last", "error"]
OwnItem = Literal["keep", "drop", "drop_both"]

TieKey = Literal["item", "item_desc", "item_bytes_desc", "rank", "gain", "gain_desc"]  # smaller is better, or larger


class TieRule(NamedTuple):
    """The rule between items of equal score under a policy of ties, and what follows for the values."""

    by: tuple[TieKey, ...]  # what is compared, the first criterion first
    # the value is that of this order; or its best or worst one; or the mean over all orders; or ties are refused
    value: Literal["order", "bound", "mean", "refused"] = "order"

    @property
    def reads_ranks(self) -> bool:
        """True if ranks of the log decide; elsewhere they only settle what is left, where the log has them."""
        return self.by[0] == "rank"


_BY_ITEM: Final = ("item", "rank")  # the rank last: without it, two copies would be in the order of the input
# Every policy of ties: whoever orders, reads or scores asks here, by :func:`tie_rule`.
TIES: Final[Mapping[str, TieRule]] = {
    "item_asc": TieRule(_BY_ITEM),
    "item_desc": TieRule(("item_desc", "rank")),
    "item_desc_bytes": TieRule(("item_bytes_desc", "rank")),
    "rank": TieRule(("rank", "item")),
    "optimistic": TieRule(("gain_desc", *_BY_ITEM), "bound"),
    "pessimistic": TieRule(("gain", *_BY_ITEM), "bound"),
    "expected": TieRule(_BY_ITEM, "mean"),
    "error": TieRule(_BY_ITEM, "refused"),
}
require_same("TIES", TIES, get_args(Ties))

Window = Annotated[
    str,
    BeforeValidator(format_duration),
    StringConstraints(min_length=1, max_length=20),
    AfterValidator(lambda text: text if text == "none" else check_duration(text, least=1)),
]


def tie_rule(ties: str) -> TieRule:
    """Return what a policy of ties does; ValueError for an unknown name."""
    if ties not in TIES:
        message = f"no order of ties {ties!r}"
        raise ValueError(message)
    return TIES[ties]


class Handling(NamedTuple):
    """Allowed treatments of users without a relevant judgement and without a list; the first is the default."""

    zero_relevant: tuple[ZeroRelevant, ...]
    missing: tuple[Missing, ...]


# Treatments by population; all others contradict its definition.
HANDLINGS: Final[Mapping[Population, Handling]] = {
    "truth": Handling(("exclude", "error"), ("zero", "exclude", "error")),
    "judged": Handling(("zero", "one", "error"), ("zero", "exclude", "error")),
    "intersection": Handling(("exclude", "error"), ("exclude", "error")),
    "intersection_judged": Handling(("zero", "one", "error"), ("exclude", "error")),
    "run": Handling(("exclude", "zero", "one", "error"), ("exclude", "error")),
}

# Policies that drop recommended items, and the inputs that say which; the first input that exists is used.
DROPS_BY: Final[Mapping[str, tuple[str, ...]]] = {"seen_in_train": ("train",), "unknown_items": ("items", "train")}


class Policies(Model):
    """Policies of an evaluation. Each can change numbers, so they are published with every definition."""

    population: Population = "truth"
    """Users in the mean. `truth`: with a relevant judgement (without a list they score 0). `judged`: with any
    judgement. `intersection`: with a list and a relevant judgement. `intersection_judged`: with a list and any
    judgement. `run`: with a list."""
    zero_relevant: ZeroRelevant = "exclude"
    """Value of a user of the population without a relevant judgement. `exclude`: undefined and counted. `zero`: the
    measure's worst value, usually 0. `one`: 1. `error`: the run fails. The default is zero for judged and
    intersection_judged, else exclude."""
    missing: Missing = "zero"
    """Value of a judged user without a list: 0 (`zero`), not in the mean (`exclude`), or the run fails (`error`). The
    default is zero for truth and judged, else exclude."""
    ties: Ties = "item_asc"
    """Order of equal scores. `item_asc`, `item_desc`: by item id, whole numbers by value and text by its bytes.
    `item_desc_bytes`: by the bytes of the id as text, descending, as in trec_eval. `rank`: by the rank in the log.
    `optimistic`, `pessimistic`: best and worst order (by gain, then item), for measures that grow with the gain at each
    rank. `expected`: mean over all orders, for measures with a closed form. `error`: the run fails."""
    order: Literal["score", "rank"] = "score"
    """Column that orders a list where the log has both. `score`: the highest score first. `rank`: the rank that the log
    shows, such as a position on a page; scores are ignored, and ranks become 1, 2, 3."""
    score_precision: Literal["double", "single"] = "double"
    """Precision in which scores are compared. `single`, as in trec_eval up to version 9, makes ties of scores that
    differ only beyond seven digits."""
    rank_gaps: Literal["renumber", "keep"] = "renumber"
    """Gaps in the ranks of the log. `renumber`: ranks become 1, 2, 3. `keep`: ranks keep their gaps and order the list,
    and scores are ignored; a preset that sets it leaves a log without ranks in the order of its scores."""
    duplicates: Duplicates = "best"
    """An item twice in one list. `best`: keep its best position. `error`: the run fails. `keep`: keep both, only to
    reproduce other tools."""
    judged_only: Flag = False
    """Remove items without a judgement, or with a negative gain, from the lists before ranking, as trec_eval -J."""
    held_out_duplicates: HeldOutDuplicates = "max"
    """A held-out (user, item) twice. `max`: largest gain. `sum`: sum of gains. `last`: gain of the newest by
    interacted_at (the largest of several at that time). `error`: the run fails."""
    invalid_scores: Literal["drop", "error"] = "drop"
    """Rows with a NULL, NaN or infinite score. `drop`: remove and count them. `error`: the run fails."""
    seen_in_train: Literal["keep", "drop", "drop_both"] = "keep"
    """Recommended items that the user has in `train`: keep them, or drop them before ranking. `drop_both` drops such
    judgements too, so that recall is over new items; with `drop` a held-out item of `train` is a miss."""
    unknown_items: Literal["keep", "drop"] = "keep"
    """Recommended items that are not in the catalogue: keep them, or drop them before ranking. The catalogue is the
    input `items`, or without it the items of `train`."""
    own_item: OwnItem = "keep"
    """The query's own item, where queries are items or documents: `item_id` is the same as `user_id`. `drop`: taken out
    of the lists before ranking, as BEIR's `ignore_identical_ids`. `drop_both`: out of the judgements too, so that
    recall does not miss it."""
    unit: Unit = "user"
    """Unit of the mean if users have several lists. `user`: users, each with the mean of their lists. `list`: lists,
    so that a user with more lists has more weight. Intervals and tests always treat users as the unit."""

    lists: Lists = "separate"
    """Lists of a user under a model. `separate`: each is evaluated alone. `pooled`: all of them are one list, ordered
    by their scores or ranks, in which an item counts at its best place; `list_id` is ignored."""
    attribution: Attribution = "none"
    """Lists that an interaction is a judgement for, by time: see `attribution_window`. `none`: every list of the user,
    whatever the times. `all`: each list in whose window it falls. `last_touch`, `first_touch`: one list of each model,
    the last or the first with the item in it or, if none has it, the last or first of all of them."""
    attribution_window: Window = "none"
    """Time after a list was shown (`recommended_at`) in which interactions (`interacted_at`) belong to it, such as 7d,
    36h or 30m: later than the list, and later by the window at most. Needed with `attribution`."""
    consumed_before: Literal["keep", "drop"] = "keep"
    """Recommended items that the user interacted with no later than the list was shown, by the times of `attribution`:
    keep them, or drop them before ranking. They are counted either way. A list that loses all of its items counts as no
    list: `missing: exclude` takes it out of the mean, and its user too where they have no other list."""

    @property
    def ignoring_scores(self) -> str | None:
        """Policy by which ranks order the lists, whatever the scores are; None where scores count."""
        if self.rank_gaps == "keep":
            return "rank_gaps"
        return "order" if self.order == "rank" else None

    @property
    def ignores_scores(self) -> bool:
        """True if the ranks of the log order the lists, whatever the scores are."""
        return self.ignoring_scores is not None

    @property
    def expected_findings(self) -> frozenset[tuple[str, str]]:
        """Inputs and checks whose findings are counted and no fault, because the policies say what they mean."""
        expected = {
            ("held_out", "duplicates"): self.held_out_duplicates in ("sum", "last") or self.is_attributed,
            ("recommendations", "duplicates"): self.lists == "pooled",
            ("held_out", "held_out_in_train"): self.seen_in_train == "drop_both",
        }
        return frozenset(finding for finding, is_expected in expected.items() if is_expected)

    @property
    def drops_seen(self) -> bool:
        """True if recommended items that the user has in the training data leave the lists."""
        return self.seen_in_train != "keep"

    @property
    def is_attributed(self) -> bool:
        """True if times decide which list an interaction is a judgement of."""
        return self.attribution != "none"

    @property
    def window(self) -> int:
        """Attribution window in microseconds; 0 without attribution."""
        return 0 if self.attribution_window == "none" else microseconds(self.attribution_window)

    @model_validator(mode="wrap")
    @classmethod
    def _complete_by_population(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - pydantic hands over whatever was written
        """Set the defaults of the population, so that they are published too; they do not count as set by the user."""
        population = values.get("population") if isinstance(values, Mapping) else None
        population = "truth" if population is None else population
        if not isinstance(values, Mapping) or not isinstance(population, str) or population not in HANDLINGS:
            return handler(values)  # reported by its own validator
        handling = HANDLINGS[population]  # type: ignore[index]  # it is one of them
        implied = {"zero_relevant": handling.zero_relevant[0], "missing": handling.missing[0]}
        missing = {name: value for name, value in implied.items() if values.get(name) is None}
        policies = handler({**values, **missing})
        policies.model_fields_set.difference_update(missing)
        return policies

    @model_validator(mode="after")
    def _attributes_by_a_window(self) -> Policies:
        if self.is_attributed and self.attribution_window == "none":
            found = f"no window with attribution {self.attribution!r}"
            refuse_faults([Fault(".attribution_window", found, "a time such as 7d or 36h", "set attribution_window")])
        if self.is_attributed and self.judged_only:
            fix = "leave one of the two out"
            refuse_faults([Fault(".judged_only", f"true with attribution {self.attribution!r}", "false", fix)])
        defaults = {name: type(self).model_fields[name].default for name in ("attribution_window", "consumed_before")}
        unread = [name for name, default in defaults.items() if getattr(self, name) != default]
        if unread and not self.is_attributed:
            found = f"{getattr(self, unread[0])!r} with attribution 'none'"
            fix = "set attribution to last_touch, first_touch or all"
            refuse_faults([Fault(f".{unread[0]}", found, "a way of attribution", fix)])
        return self

    @model_validator(mode="after")
    def _fits_the_population(self) -> Policies:
        faults = []
        for name, allowed in HANDLINGS[self.population]._asdict().items():
            if (value := getattr(self, name)) not in allowed:
                others = [other for other, handling in HANDLINGS.items() if value in getattr(handling, name)]
                found = f"{name} {value!r} with population {self.population!r}"
                fix = f"use population {' or '.join(others)}"
                faults.append(Fault(f".{name}", found, f"one of {', '.join(allowed)}", fix))
        refuse_faults(faults)
        return self


def lacking_inputs(policies: Policies, given: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the policies that drop items by a missing input, with the inputs that can serve.

    >>> lacking_inputs(Policies(seen_in_train="drop", unknown_items="drop"), ["items"])
    {'seen_in_train': ('train',)}
    """
    return {
        name: inputs
        for name, inputs in DROPS_BY.items()
        if getattr(policies, name) != "keep" and not set(inputs) & set(given)
    }
