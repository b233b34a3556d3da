"""Lists written down by hand, for examples and tests: the list, its items, and what lies behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple


class Item(NamedTuple):
    """One recommended item written down by hand; what is left out is unknown, or 0 in the training data."""

    # c(i) and U(i)
    interactions: float = 0
    users: float = 0
    is_tail: bool = True  # whether it belongs to the long tail
    # Dense rank and place by popularity, see :mod:`rankeval_spark.measures.required_facts`
    level: float = math.inf
    place: float = math.inf
    is_seen: bool = False  # whether its user has it in the training data
    age: float = math.nan  # days since publication
    categories: Sequence[str] = ()  # its categories, each once
    vector: Sequence[float] | None = None  # its features; None where unknown
    # Popularity by users, similarity to what the user has, and times that the log has it in the list, see there too
    quantile: float = 0
    familiarity: float = math.nan
    copies: float = 1

    def __str__(self) -> str:
        """Write what is known: ``{users 2, age 3}``."""
        known = (
            f"{name} {_shown(value)}" for name, value in self._asdict().items() if not _is_same(value, _UNKNOWN[name])
        )
        return "{" + ", ".join(known) + "}"


_UNKNOWN: Mapping[str, object] = Item._field_defaults


def _is_same(value: object, default: object) -> bool:
    """Compare, NaN being the same as NaN."""
    return value is default or value == default


class Background(NamedTuple):
    """What lies behind one list written down by hand: totals of the training data, and the profile of the user."""

    # The totals
    interactions: float = 0
    most_interactions: float = 0
    least_interactions: float = 0
    users: float = 0
    categories: float = 0
    # Categories of the items that the user has in the training data: (category, how many an item has that is in it,
    # how many such items)
    profile: Sequence[tuple[str, int, int]] = ()
    profile_vector: Sequence[float] | None = None  # mean of the unit vectors of those items; None where none has one
    # Similar items of the list: (rank, lower rank, cosine of their co-occurrence)
    pairs: Sequence[tuple[int, int, float]] = ()
    # Mean interactions of the distinct items that the user has in the training data; 0 where they have none
    profile_interactions: float = 0
    judged: Sequence[tuple[float, Sequence[str]]] = ()  # gain and categories of each judged item that has any
    catalogue: float = 0  # items of the catalogue
    # Lists that other models gave the user: (model, at each of its places the rank of that item in this list, or None
    # where this list does not have it)
    others: Sequence[tuple[str, Sequence[int | None]]] = ()

    def __str__(self) -> str:
        """Write what is known."""
        defaults: Mapping[str, object] = self._field_defaults
        known = (f"{name} {_shown(value)}" for name, value in self._asdict().items() if value != defaults[name])
        return ", ".join(known)


NOTHING_KNOWN = Background()


class Ranking(NamedTuple):
    """One list written down by hand, for examples and tests."""

    # Gain of the item at rank 1, 2, ...; ``None`` for an item without a judgement. Empty: the model gave no list.
    gains: Sequence[float | None]
    missed: Sequence[float] = ()  # gains of the judged items that the list does not hold
    # Score of the item at rank 1, 2, ..., descending; where it is left out 1, (n - 1) / n, ..., 1 / n
    scores: Sequence[float] = ()
    items: Sequence[Item] = ()  # what is known of the item at rank 1, 2, ...; nothing of those that are left out
    background: Background = NOTHING_KNOWN  # what is known of the training data and of the user
    # Value of the item at each rank, and of the judged items that the list does not hold; where they are left out the
    # gains
    values: Sequence[float] = ()
    missed_values: Sequence[float] = ()
    # Groups of the same items, separated by blanks; none of those that are left out
    groups: Sequence[str] = ()
    missed_groups: Sequence[str] = ()
    # Ranks at which the list has no item, though it has one further down; their gain is ``None``
    empty: Sequence[int] = ()
    # Propensity of the judged item at each rank; 1 where they are left out
    propensities: Sequence[float] = ()
    # Weight of the judged item at each rank, and of those that the list does not hold; 1 where they are left out
    weights: Sequence[float] = ()
    missed_weights: Sequence[float] = ()
    # Predicted reward of the item at each rank, judged or not; 0 where they are left out
    predictions: Sequence[float] = ()

    @property
    def predicted_value(self) -> float:
        """Sum over the items of score times predicted reward."""
        pairs = zip(self.score_at, self.predictions, strict=False)
        return math.fsum(score * prediction for score, prediction in pairs)

    @property
    def score_at(self) -> Sequence[float]:
        """Score at each rank."""
        return self.scores or [rank / len(self.gains) for rank in range(len(self.gains), 0, -1)]

    @property
    def hits(self) -> list[Judgement]:
        """The judged items that the list holds, by rank."""
        values = self.values or [gain or 0 for gain in self.gains]
        groups = [*self.groups, *[""] * len(self.gains)]
        propensities, weights = (each or [1.0] * len(self.gains) for each in (self.propensities, self.weights))
        predictions = self.predictions or [0.0] * len(self.gains)
        facts = zip(count(1), self.score_at, propensities, weights, predictions, strict=False)
        places = zip(self.gains, values, groups, facts, strict=False)
        return [Judgement(gain, value, own, *known) for gain, value, own, known in places if gain is not None]

    @property
    def missing(self) -> list[Judgement]:
        """The judged items that the list does not hold."""
        groups = [*self.missed_groups, *[""] * len(self.missed)]
        weights = self.missed_weights or [1.0] * len(self.missed)
        judged = zip(self.missed, self.missed_values or self.missed, groups, weights, strict=False)
        return [Judgement(gain, value, own, weight=weight) for gain, value, own, weight in judged]

    def __str__(self) -> str:
        """Write the gain at each rank, - where there is no judgement, what the list misses, and what else is known."""
        parts = [" ".join("-" if gain is None else f"{gain:g}" for gain in self.gains) or "(no list)"]
        shown = (
            *("missed", "scores", "values", "missed_values"),
            *("propensities", "predictions", "weights", "missed_weights"),
        )
        numbers = [*((name.replace("_", " "), getattr(self, name)) for name in shown), ("empty ranks", self.empty)]
        groups = (("groups", self.groups), ("missed groups", self.missed_groups))
        parts += [f"({name} {' '.join(f'{value:g}' for value in values)})" for name, values in numbers if values]
        parts += [f"({name} {', '.join(one or '-' for one in names)})" for name, names in groups if names]
        parts += [f"(items {' '.join(map(str, self.items))})"] if self.items else []
        parts += [f"({self.background})"] if str(self.background) else []
        return " ".join(parts)


class Judgement(NamedTuple):
    """One judged item written down by hand; rank and score are 0 where the list does not hold it."""

    gain: float
    value: float
    groups: str
    rank: int = 0
    score: float = 0
    propensity: float = 1
    weight: float = 1
    prediction: float = 0


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_shown, value)) + ")"
    return str(value)
