"""Array types that kernels take and return, and the few operations they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatVector: TypeAlias = NDArray[np.float64]  # shape (n_hits,), (n_judged,) or (n_lists,)

FloatMatrix: TypeAlias = NDArray[np.float64]  # shape (n_lists, n_cutoffs), or one that broadcasts to it

BoolVector: TypeAlias = NDArray[np.bool_]
IntVector: TypeAlias = NDArray[np.integer]  # integers of any width, shape (n_lists,), (n_hits,) or (n_judged,)

BoolMatrix: TypeAlias = NDArray[np.bool_]  # shape (n_lists, n_cutoffs), or one that broadcasts to it


def sum_by_list(list_index: IntVector, weights: FloatVector, *, n_lists: int) -> FloatVector:
    """Sum the weights of each list; 0 for a list without any."""
    totals = np.bincount(list_index, weights=weights, minlength=n_lists)
    return totals.astype(np.float64, copy=False)  # numpy counts nothing at all in integers


def max_by_list(list_index: IntVector, values: FloatVector, *, n_lists: int) -> FloatVector:
    """Return the greatest value of each list; 0 for a list without any value above 0."""
    greatest = np.zeros(n_lists)
    np.maximum.at(greatest, list_index, values)
    return greatest


def positions_in_list(list_index: IntVector, *, n_lists: int) -> IntVector:
    """Count the entries of each list from 1, given the list of each entry in ascending order.

    >>> positions_in_list(np.array([0, 0, 2]), n_lists=3)
    array([1, 2, 1])
    """
    counts = np.bincount(list_index, minlength=n_lists)
    return np.arange(1, len(list_index) + 1) - np.repeat(np.cumsum(counts) - counts, counts)


def is_run_start(*keys: FloatVector | IntVector) -> BoolVector:
    """Return True for entries that differ from the one before in any of the keys, shape (n_entries,).

    >>> is_run_start(np.array([0, 0, 0, 2]), np.array([0.5, 0.5, 1.0, 1.0]))
    array([ True, False,  True,  True])
    """
    is_first = np.ones(len(keys[0]), dtype=np.bool_)
    np.not_equal(keys[0][1:], keys[0][:-1], out=is_first[1:])
    for key in keys[1:]:
        is_first[1:] |= key[1:] != key[:-1]
    return is_first


def median_by_list(list_index: IntVector, values: FloatVector, *, n_lists: int) -> FloatVector:
    """Return the median of each list, or the mean of the two in the middle; NaN for a list without any value.

    >>> median_by_list(np.array([0, 0, 2]), np.array([4.0, 1.0, 2.0]), n_lists=3)
    array([2.5, nan, 2. ])
    """
    ordered = values[np.lexsort((values, list_index))]
    counts = np.bincount(list_index, minlength=n_lists)
    has_any = counts > 0
    first, n_values = (np.cumsum(counts) - counts)[has_any], counts[has_any]
    medians = np.full(n_lists, np.nan)
    medians[has_any] = (ordered[first + (n_values - 1) // 2] + ordered[first + n_values // 2]) / 2
    return medians


def prefix_sums(terms: FloatVector) -> FloatVector:
    """Sum the first d terms, for d = 0, 1, ..., all of them."""
    return np.concatenate([[0.0], np.cumsum(terms)])


def expand_ranges(first: IntVector, length: IntVector) -> IntVector:
    """List the places of ranges, one range after another, given where each begins and how long it is.

    >>> expand_ranges(np.array([4, 0, 7]), np.array([2, 0, 1]))
    array([4, 5, 7])
    """
    before = np.cumsum(length) - length
    places: IntVector = np.arange(int(length.sum())) + np.repeat(first - before, length)
    return places


def find_in_lists(owner: IntVector, rank: IntVector, *, among: tuple[IntVector, IntVector]) -> IntVector:
    """Find each (list, rank) among others, which come sorted by list and rank; -1 where it is not there.

    >>> find_in_lists(np.array([0, 1, 1]), np.array([3, 3, 9]), among=(np.array([0, 0, 1]), np.array([1, 3, 9])))
    array([ 1, -1,  2])
    """
    stride = np.int64(max(among[1].max(initial=0), rank.max(initial=0))) + 1
    known, sought = among[0] * stride + among[1], owner * stride + rank
    place = np.searchsorted(known, sought)
    is_there = np.append(known, -1)[place] == sought
    return np.where(is_there, place, -1)


def running_count_by_list(flags: FloatVector, list_index: IntVector, *, n_lists: int) -> FloatVector:
    """Count the flags up to and including each entry of its list; exact, because counts are whole numbers.

    >>> running_count_by_list(np.array([1.0, 0.0, 1.0, 1.0]), np.array([0, 0, 0, 2]), n_lists=3)
    array([1., 1., 2., 1.])
    """
    totals = sum_by_list(list_index, flags, n_lists=n_lists)
    before_list = np.cumsum(totals) - totals
    return np.cumsum(flags) - before_list[list_index]


def product_before(factors: FloatVector, list_index: IntVector) -> FloatVector:
    """Multiply the factors before each entry of its list; 1 for the first.

    Products over 1, 2, 4, ... entries are built from each other, so that the steps grow with the logarithm of the
    longest list. The value of a list never depends on the other lists of the batch; with a running sum of logarithms it
    would.

    >>> product_before(np.array([0.5, 0.25, 0.5, 0.1]), np.array([0, 0, 0, 2]))
    array([1.   , 0.5  , 0.125, 1.   ])
    """
    products = np.ones(len(factors))
    is_same_list = list_index[1:] == list_index[:-1]
    products[1:][is_same_list] = factors[:-1][is_same_list]
    step = 1
    while (is_same_list := list_index[step:] == list_index[:-step]).any():
        earlier = np.where(is_same_list, products[:-step], 1.0)
        products[step:] *= earlier
        step *= 2
    return products


def divide_or_zero(numerator: FloatMatrix, denominator: FloatMatrix) -> FloatMatrix:
    """Divide element by element; 0 where the denominator is 0."""
    quotient = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=quotient, where=denominator != 0)


def divide_or_nan(numerator: FloatMatrix, denominator: FloatMatrix) -> FloatMatrix:
    """Divide element by element; NaN, for undefined, where the denominator is 0.

    >>> divide_or_nan(np.array([[1.0, 2.0]]), np.array([[4.0, 0.0]]))
    array([[0.25,  nan]])
    """
    divided = divide_or_zero(numerator, denominator)
    divided[np.broadcast_to(denominator == 0, divided.shape)] = np.nan
    return divided


def nan_unless(values: FloatMatrix, is_defined: BoolMatrix) -> FloatMatrix:
    """Keep the values where the measure is defined; NaN elsewhere."""
    return np.where(is_defined, values, np.nan)


def scaled_rows(vectors: FloatMatrix) -> FloatMatrix:
    """Scale each row by a power of 2, so that its largest number is below 1 and at least 1/2.

    Directions keep their bits, and no square of a large or small number leaves the range of doubles.

    >>> scaled_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.375, 0.5  ],
           [0.   , 0.   ]])
    """
    _, exponent = np.frexp(np.abs(vectors).max(axis=1, initial=0.0))
    scaled: FloatMatrix = np.ldexp(vectors, -exponent[:, None])
    return scaled


@dataclass(frozen=True, eq=False)
class Ratio:
    """Values that are ratios, by their parts: with ``agg='micro'`` each part is summed over the users.

    >>> Ratio(np.array([[1.0], [0.0]]), np.array([[4.0], [0.0]])).values
    array([[0.25],
           [ nan]])
    """

    # The parts, of shape (n_lists, n_cutoffs) or broadcastable to it. Where the denominator is 0 the ratio is 0.
    numerator: FloatMatrix
    denominator: FloatMatrix
    where: BoolMatrix | None = None  # where the measure is defined, if not where the denominator is above 0
    value: FloatMatrix | None = None  # the value of a list, if that is not the ratio itself

    @property
    def is_defined(self) -> BoolMatrix:
        """True if a list has a value."""
        return self.denominator > 0 if self.where is None else self.where

    @property
    def values(self) -> FloatMatrix:
        """Value of each list at each cutoff; NaN where the measure is undefined."""
        quotients = divide_or_zero(self.numerator, self.denominator) if self.value is None else self.value
        return nan_unless(quotients, self.is_defined)
