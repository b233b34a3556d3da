"""Random numbers that hang on seed, user and replicate only, and are as random as they claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import permutations as orders
from typing import Final

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankeval_spark.statistics import hashed_random

IDS = ["", "7", "007", "ann", "bob", "a" * 8, "x" * 13, "y" * 32, "z" * 47, "é" * 40, "user-0001234", "q" * 100]

# Computed with xxhash 4.1.0: xxh64_intdigest of the UTF-8 bytes.
XXH64_OF_SEED_0 = [
    17241709254077376921, 1750302349509622455, 12798768719542941796, 811139115053772478, 10558559838520660027,
    15368021700082495731, 9791133760841429436, 7267155159012462182, 12813977767785888516, 12820742761395656601,
    3421047914549314523, 11099154462466335815,
]  # fmt: skip  # a number a line would be a page
XXH64_OF_SEED_42 = [
    -7444071767201028348, -7434725489921472031, 4253822561066836160, 7160020621161744715, 5911172816241722635,
    -7609816716355800781, 5073585057201757881, 5202031258905353636, -2472866159983041249, -2287857623996275449,
    8332063006114517921, -7243449934361715218,
]  # fmt: skip  # a number a line would be a page

DRAWS: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "weights": hashed_random.poisson_weights,
    "signs": hashed_random.random_signs,
    "permutations": lambda hashes, *, seed, replicates: hashed_random.random_orders(
        hashes, seed=seed, replicates=replicates, n_systems=3
    )[1],
}

USERS = hashed_random.hash_ids([f"user {number}" for number in range(20_000)])


def test_hashes_are_those_of_xxh64() -> None:
    assert hashed_random.hash_ids(IDS, 0).view(np.uint64).tolist() == XXH64_OF_SEED_0
    assert hashed_random.hash_ids(IDS).tolist() == XXH64_OF_SEED_42
    assert hashed_random.hash_ids([]).shape == (0,)


def test_a_word_is_that_of_splitmix64() -> None:
    """One step at a time, in whole numbers of Python."""
    mask, golden = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def mix(state: int) -> int:
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & mask
        return state ^ (state >> 31)

    state = mix((-5 & mask) ^ mix((123 + 2 * golden) & mask))
    expected = [mix((state + step * golden) & mask) for step in (1, 2, 3)]
    assert hashed_random.random_words(np.array([-5]), seed=123, purpose="signs", n_words=3)[0].tolist() == expected


@pytest.mark.parametrize("name", sorted(DRAWS))
@given(cut=st.integers(0, 20), replicates=st.integers(1, 200), order=st.randoms(use_true_random=False))
def test_draws_hang_on_the_user_and_the_replicate_only(name: str, cut: int, replicates: int, order: object) -> None:
    """Not on the users beside him, nor on how many replicates there are."""
    draw, users = DRAWS[name], USERS[:20]
    whole = draw(users, seed=7, replicates=200)
    np.testing.assert_array_equal(draw(users, seed=7, replicates=replicates), whole[:, :replicates])
    parts = [draw(users[part], seed=7, replicates=200) for part in (slice(cut), slice(cut, None))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    shuffled = list(range(20))
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    np.testing.assert_array_equal(draw(users[shuffled], seed=7, replicates=200), whole[shuffled])


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_seeds_give_other_draws(name: str) -> None:
    one, other = (DRAWS[name](USERS[:100], seed=seed, replicates=100) for seed in (1, 2))
    assert (one != other).mean() > 0.4


def test_weights_are_poisson_with_mean_1() -> None:
    weights = hashed_random.poisson_weights(USERS, seed=3, replicates=100)
    counts = np.bincount(weights.ravel(), minlength=9)
    expected = np.array([math.exp(-1) / math.factorial(count) for count in range(8)])
    expected = np.append(expected, 1 - expected.sum()) * weights.size
    assert stats.chisquare(counts, expected).pvalue > 0.001
    assert abs(weights.mean() - 1) < 4 / math.sqrt(weights.size)


def test_weights_of_users_and_of_replicates_are_uncorrelated() -> None:
    weights = hashed_random.poisson_weights(USERS[:2000], seed=3, replicates=200).astype(np.float64)
    for matrix, n in ((weights.T, 2000), (weights[:200], 200)):
        correlations = np.asarray(np.corrcoef(matrix))
        found = correlations[np.triu_indices(len(matrix), 1)] * math.sqrt(n)
        assert abs(found.std() - 1) < 0.03
        assert abs(found.mean()) < 0.05


def test_signs_are_fair_and_independent_of_the_weights() -> None:
    signs = hashed_random.random_signs(USERS, seed=3, replicates=64).astype(np.float64)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 4 / math.sqrt(signs.size)
    weights = hashed_random.poisson_weights(USERS, seed=3, replicates=64)
    assert abs((signs * (weights - 1.0)).mean()) < 4 / math.sqrt(signs.size)


def test_every_order_of_systems_is_equally_likely() -> None:
    drawn = hashed_random.random_orders(USERS[:5000], seed=3, replicates=12, n_systems=3).reshape(3, -1)
    counts = [int((drawn == np.array(order)[:, None]).all(axis=0).sum()) for order in orders(range(3))]
    assert sum(counts) == drawn.shape[1]  # each is an order
    assert stats.chisquare(counts).pvalue > 0.001
