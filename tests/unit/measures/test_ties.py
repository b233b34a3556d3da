"""Lists whose ties can change a measure are found like a loop over their blocks finds them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from rankeval_spark.measures import Lists, Ranking
from rankeval_spark.measures.ties import has_mixed_ties
from tests.support.rankings import rankings

KS = (1, 2, 4, 0)


@st.composite
def tied(draw: st.DrawFn) -> tuple[Ranking, list[int]]:
    """Draw a list and the ranks whose score equals that of the item before."""
    ranking = draw(rankings())
    return ranking, sorted(draw(st.sets(st.integers(2, len(ranking.gains))))) if len(ranking.gains) > 1 else []


def has_mixed_block(ranking: Ranking, tied_ranks: list[int], k: int) -> bool:
    """Walk down the list, block by block."""
    blocks: dict[int, set[float]] = {}
    start = 0
    for rank, gain in enumerate(ranking.gains, 1):
        start = start if rank in tied_ranks else rank
        blocks.setdefault(start, set()).add(gain or 0.0)
    return any(len(gains) > 1 for start, gains in blocks.items() if k == 0 or start <= k)


@given(lists=st.lists(tied(), max_size=5))
def test_mixed_ties_are_those_of_a_walk_down_the_list(lists: list[tuple[Ranking, list[int]]]) -> None:
    owner = np.repeat(np.arange(len(lists)), [len(ranks) for _, ranks in lists])
    ranks = np.array([rank for _, ranks in lists for rank in ranks], dtype=np.int64)
    found = has_mixed_ties(Lists.of([ranking for ranking, _ in lists]), owner, ranks, KS)
    expected = [[has_mixed_block(ranking, tied_ranks, k) for k in KS] for ranking, tied_ranks in lists]
    np.testing.assert_array_equal(found, np.array(expected, dtype=bool).reshape(len(lists), len(KS)))
