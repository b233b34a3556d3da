"""Random numbers that are functions of (seed, user, replicate): the same on any partitioning, for all models.

A user's id is hashed once (XXH64, as in Spark). The hash starts one stream of 64-bit words (SplitMix64) per purpose.
Replicates take their bits from the words: 16 bits for a weight, 1 bit for a sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.int64]  # hash of each user's id, shape (n_users,), signed as in Spark
Words: TypeAlias = NDArray[np.uint64]
Purpose: TypeAlias = Literal["weights", "signs", "permutations"]

SPARK_SEED: Final = 42  # seed of Spark's `xxhash64(column)`
_PRIMES: Final = tuple(
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # increment of SplitMix64: 2^64 divided by the golden ratio, odd
_PURPOSES: Final[dict[Purpose, int]] = {"weights": 1, "signs": 2, "permutations": 3}
_MAX_PURPOSES: Final = 8
_LEVELS: Final = 1 << 16
_POISSON: Final[NDArray[np.uint8]] = np.searchsorted(
    np.cumsum([math.exp(-1) / math.factorial(count) for count in range(12)]), (np.arange(_LEVELS) + 0.5) / _LEVELS
).astype(np.uint8)  # Poisson(1) at each of the levels


def hash_ids(ids: Sequence[str], seed: int = SPARK_SEED) -> Hashes:
    """Return XXH64 of each id as UTF-8, equal to Spark's ``xxhash64(user_id)`` (Collet, specification 0.1.1).

    >>> hash_ids(["", "7", "007"]).tolist()
    [-7444071767201028348, -7434725489921472031, 4253822561066836160]
    """
    encoded = [text.encode() for text in ids]
    ends = np.cumsum([0, *map(len, encoded)])
    return hash_bytes(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends, seed)


def hash_bytes(
    text: NDArray[np.uint8],  # (n_bytes,), all ids as UTF-8, one after another
    ends: NDArray[np.integer],  # (n_users + 1,), offset of each id, and the end of the last one
    seed: int = SPARK_SEED,
) -> Hashes:
    """Return XXH64 of concatenated ids."""
    starts, lengths = ends[:-1], np.diff(ends)
    hashes = np.empty(len(lengths), dtype=np.uint64)
    for length in np.unique(lengths).tolist():
        same_length = np.flatnonzero(lengths == length)
        hashes[same_length] = _xxh64(text[starts[same_length][:, None] + np.arange(length)], seed)
    return hashes.view(np.int64)


def random_words(hashes: Hashes, *, seed: int, purpose: Purpose, n_words: int, part: int = 0) -> Words:
    """Return the first words of each user's stream: uint64, shape (n_users, n_words).

    Streams of different purposes are independent; ``part`` numbers several streams of one purpose. SplitMix64 (Steele,
    Lea & Flood 2014): word i is ``mix(state + (i + 1) golden)``, with the state ``mix(hash xor mix(seed + (8 part +
    purpose) golden))``.
    """
    stream = seed + (_MAX_PURPOSES * part + _PURPOSES[purpose]) * int(GOLDEN)
    key = mix_in_place(np.array([stream % (1 << 64)], dtype=np.uint64))
    state = mix_in_place(hashes.astype(np.int64).view(np.uint64) ^ key)
    counter = np.arange(1, n_words + 1, dtype=np.uint64) * GOLDEN
    return mix_in_place(state[:, None] + counter)


def poisson_weights(hashes: Hashes, *, seed: int, replicates: int) -> NDArray[np.uint8]:
    """Return how often each user is drawn in each replicate, from 0 to 8, shape (n_users, replicates).

    The inverse distribution function of Poisson(1) at ``(u + 1/2) / 2^16``, u being 16 bits of the stream.
    Probabilities are off by less than 2^-16; the mean is exactly 1, the variance 1 - 3e-5.

    >>> poisson_weights(hash_ids(["ann", "bob"]), seed=0, replicates=5)
    array([[0, 1, 1, 0, 3],
           [1, 1, 2, 1, 2]], dtype=uint8)
    """
    stream = random_words(hashes, seed=seed, purpose="weights", n_words=-(-replicates // 4))
    weights: NDArray[np.uint8] = _POISSON[_view_words_as(stream, "<u2")[:, :replicates]]
    return weights


def random_signs(hashes: Hashes, *, seed: int, replicates: int) -> NDArray[np.int8]:
    """Return the sign of each user in each replicate: -1 or 1 with equal probability, shape (n_users, replicates).

    >>> random_signs(hash_ids(["ann", "bob"]), seed=0, replicates=5)
    array([[ 1,  1, -1,  1, -1],
           [-1, -1,  1,  1, -1]], dtype=int8)
    """
    stream = random_words(hashes, seed=seed, purpose="signs", n_words=-(-replicates // 64))
    bits = np.unpackbits(_view_words_as(stream, "u1"), axis=1, bitorder="little", count=replicates)
    return (bits.view(np.int8) << 1) - 1


def random_orders(hashes: Hashes, *, seed: int, replicates: int, n_systems: int) -> NDArray[np.uint8]:
    """Return a random order of the systems for each user and replicate: (n_systems, n_users, replicates).

    It says which system is at each place: the systems in the order of their 32 random bits. Equal bits (a chance of
    2^-32) keep the order of the systems.

    >>> random_orders(hash_ids(["ann"]), seed=0, replicates=4, n_systems=3)[:, 0]
    array([[1, 1, 2, 0],
           [2, 2, 1, 2],
           [0, 0, 0, 1]], dtype=uint8)
    """
    n_words = -(-replicates // 2)
    keys = []  # of each system: (n_users, replicates)
    for system in range(n_systems):
        stream = random_words(hashes, seed=seed, purpose="permutations", n_words=n_words, part=system)
        keys.append(_view_words_as(stream, "<u4")[:, :replicates])
    places = np.zeros((n_systems, len(hashes), replicates), dtype=np.uint8)
    for first in range(n_systems):
        for other in range(first + 1, n_systems):
            is_after = keys[first] > keys[other]
            places[first] += is_after
            places[other] += ~is_after
    return places


def mix_in_place(state: Words) -> Words:
    """Scramble 64 bits: Stafford's variant 13 of the finaliser of MurmurHash3, as SplitMix64 uses it. In place."""
    shifted = state >> np.uint64(30)
    state ^= shifted
    state *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(state, np.uint64(27), out=shifted)
    state ^= shifted
    state *= np.uint64(0x94D049BB133111EB)
    np.right_shift(state, np.uint64(31), out=shifted)
    state ^= shifted
    return state


def _view_words_as(stream: Words, kind: str) -> np.ndarray:
    """Cut words into smaller integers, low bits first on any machine."""
    return np.ascontiguousarray(stream, dtype="<u8").view(kind)


def _xxh64(text: NDArray[np.uint8], seed: int) -> Words:
    """Hash rows of bytes of one length."""
    n, length = text.shape
    one, two, three, four, five = _PRIMES
    acc = np.full(n, seed % (1 << 64), dtype=np.uint64)
    done = length // 32 * 32
    if done:  # stripes of 32 bytes go to four accumulators
        accs = [acc + one + two, acc + two, acc.copy(), acc - one]
        for position, lane in enumerate(np.ascontiguousarray(text[:, :done]).view("<u8").T):
            accs[position % 4] = _round(accs[position % 4], lane)
        merged = sum(
            (_rotate_left(each, bits) for each, bits in zip(accs, (1, 7, 12, 18), strict=True)), np.zeros_like(acc)
        )
        for each in accs:
            merged = (merged ^ _round(np.zeros_like(each), each)) * one + four
        acc = merged
    else:
        acc += five
    acc += np.uint64(length)
    eights = np.ascontiguousarray(text[:, done : done + (length - done) // 8 * 8]).view("<u8")
    for lane in eights.T:
        acc = _rotate_left(acc ^ _round(np.zeros_like(acc), lane), 27) * one + four
    done += eights.shape[1] * 8
    if length - done >= 4:  # noqa: PLR2004 - four bytes left
        half = np.ascontiguousarray(text[:, done : done + 4]).view("<u4")[:, 0].astype(np.uint64)
        acc = _rotate_left(acc ^ (half * one), 23) * two + three
        done += 4
    for byte in text[:, done:].T:
        acc = _rotate_left(acc ^ (byte.astype(np.uint64) * five), 11) * one
    for bits, prime in ((33, two), (29, three)):
        acc = (acc ^ (acc >> np.uint64(bits))) * prime
    return acc ^ (acc >> np.uint64(32))


def _round(acc: Words, lane: Words) -> Words:
    """Mix 8 bytes into an accumulator: the round of XXH64."""
    return _rotate_left(acc + lane * _PRIMES[1], 31) * _PRIMES[0]


def _rotate_left(value: Words, bits: int) -> Words:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))
