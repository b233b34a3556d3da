"""Random users for the tools that are compared with in an environment of their own, without Spark."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark.config.presets import options_of
from rankeval_spark.measures import Lists, MeasureSet, Ranking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

N_ITEMS: Final = 40


@dataclass(frozen=True)
class User:
    """A user with a list, best item first, and the grades of their judgements, at least one of them 1 or more."""

    name: int
    items: list[int]
    grades: dict[int, int]

    @property
    def relevant(self) -> list[int]:
        """Items with grade 1 or more."""
        return [item for item, grade in self.grades.items() if grade >= 1]

    def ranking(self) -> Ranking:
        """Write the user down as the kernels' builder expects."""
        missed = [grade for item, grade in self.grades.items() if item not in self.items]
        return Ranking([self.grades.get(item) for item in self.items], missed)


def random_users(seed: int, *, n_users: int = 1000, lengths: tuple[int, int] = (1, 15)) -> list[User]:
    """Draw users: short and long lists, few and many relevant items, none of them retrieved now and then."""
    draw = random.Random(seed)
    users = []
    for name in range(n_users):
        judged = draw.sample(range(N_ITEMS), draw.randint(1, 14))
        grades = {item: draw.choice([0, 1, 1, 2, 3]) for item in judged} | {judged[0]: draw.randint(1, 3)}
        users.append(User(name, draw.sample(range(N_ITEMS), draw.randint(*lengths)), grades))
    return users


def apply_preset(preset: str, names: Sequence[str], users: Sequence[User]) -> list[NDArray[np.float64]]:
    """Compute measures as a preset has them: for each name the values of the users."""
    asked = MeasureSet.parse(names, defaults=options_of(preset))
    scores = asked.score(Lists.of([user.ranking() for user in users]))
    return [scores[measure.column][:, asked.ks.index(measure.k)] for measure in asked.measures]


def assert_equal(preset: str, theirs: Mapping[str, Sequence[float]], users: Sequence[User]) -> None:
    """Compare the values of a tool, by our names, with those of its preset."""
    for name, ours in zip(theirs, apply_preset(preset, list(theirs), users), strict=True):
        np.testing.assert_allclose(ours, np.asarray(theirs[name], dtype=float), rtol=0, atol=1e-9, err_msg=name)
