"""Values are those of ndeval, TREC's own program for novelty and diversity, whose subtopics are our categories."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

import numpy as np
import pyndeval
import pytest

from rankeval_spark.measures import Background, Item, Lists, MeasureSet, Ranking

N_USERS: Final = 500
KS: Final = (1, 2, 3, 5, 10, 20)
"""ndeval takes none above 20."""

PRECISION_KS: Final = (5, 10, 20)
"""Those of P-IA, which has no parameter."""

CATEGORIES: Final = "abcdef"


class User(NamedTuple):
    """A list, best first, and the gains of the judged items."""

    shown: list[str]
    gains: dict[str, int]


def draw_users(draw: random.Random, items: list[str]) -> dict[str, User]:
    """Draw short and long lists, and judgements: gains from -1 to 2, few and many, of items that lists miss too."""
    return {
        f"u{number}": User(
            draw.sample(items, draw.choice([1, 2, 5, 12, 30])),
            {item: draw.choice([-1, 0, 1, 1, 2]) for item in draw.sample(items, draw.choice([1, 3, 8, 25]))},
        )
        for number in range(N_USERS)
    }


def by_ndeval(users: dict[str, User], categories: dict[str, str], *, rel: int, alpha: float) -> dict[str, list[float]]:
    """Values of its ERR-IA and alpha-nDCG, by name and in the order of the users."""
    judged = [
        pyndeval.SubtopicQrel(name, category, item, int(gain >= rel))
        for name, user in users.items()
        for item, gain in user.gains.items()
        for category in categories[item]
    ]
    run = [
        pyndeval.ScoredDoc(name, item, -float(place))
        for name, user in users.items()
        for place, item in enumerate(user.shown)
    ]
    names = [f"{name}@{k}" for name in ("ERR-IA", "alpha-nDCG") for k in KS]
    names += [f"P-IA@{k}" for k in PRECISION_KS]
    found = pyndeval.ndeval(judged, run, measures=names, alpha=alpha)
    return {name: [found.get(user, {}).get(name, 0.0) for user in users] for name in names}


def ranking_of(user: User, categories: dict[str, str]) -> Ranking:
    """Give the items their categories; judged items come as the stage makes them, the highest ids first."""
    judged = [(gain, categories[item]) for item, gain in sorted(user.gains.items(), reverse=True) if categories[item]]
    return Ranking(
        [user.gains.get(item) for item in user.shown],
        [gain for item, gain in user.gains.items() if item not in user.shown],
        items=[Item(categories=tuple(categories[item])) for item in user.shown],
        background=Background(judged=judged),
    )


@pytest.mark.parametrize(("rel", "alpha"), [(1, 0.5), (1, 0.75), (2, 0.5)])
def test_values_are_those_of_ndeval(rel: int, alpha: float) -> None:
    """Where we have none, without a relevant item of a category, it has 0; and see ERR-IA@1 below."""
    draw = random.Random(f"ndeval {rel} {alpha}")
    items = [f"i{number}" for number in range(60)]
    categories = {item: "".join(sorted(draw.sample(CATEGORIES, draw.choice([0, 1, 1, 2, 3])))) for item in items}
    users = draw_users(draw, items)
    theirs = by_ndeval(users, categories, rel=rel, alpha=alpha)
    lists = Lists.of([ranking_of(user, categories) for user in users.values()])
    for our, their in (("ERR_IA", "ERR-IA"), ("alpha_nDCG", "alpha-nDCG")):
        asked = MeasureSet.parse([f"{our}(rel={rel},alpha={alpha})@{k}" for k in KS])
        values = asked.score(lists)[asked.columns[0]]
        assert 0 < np.isnan(values[:, 0]).sum() < N_USERS / 2
        for place, k in enumerate(KS):
            if (our, k) != ("ERR_IA", 1):
                found = np.nan_to_num(values[:, place])
                np.testing.assert_allclose(found, theirs[f"{their}@{k}"], rtol=0, atol=1e-9, err_msg=f"{our}@{k}")
    precision = MeasureSet.parse([f"P_IA(rel={rel})@{k}" for k in PRECISION_KS])
    for place, k in enumerate(PRECISION_KS):
        found = np.nan_to_num(precision.score(lists)[precision.columns[0]][:, place])
        np.testing.assert_allclose(found, theirs[f"P-IA@{k}"], rtol=0, atol=1e-9)


def test_ndeval_forgets_to_divide_at_the_first_rank() -> None:
    """A defect: an item of one of two categories that are wanted is 1/2 of what one rank can give."""
    categories = {"d1": "a", "d2": "b"}
    user = User(["d1"], {"d1": 1, "d2": 1})
    (ours,) = MeasureSet.parse(["ERR_IA@1"]).score(Lists.of([ranking_of(user, categories)]))["err_ia"]
    assert ours == [1 / 2]
    assert by_ndeval({"u": user}, categories, rel=1, alpha=0.5)["ERR-IA@1"] == [1]
