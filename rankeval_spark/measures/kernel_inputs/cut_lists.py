"""A batch of lists at several cutoffs: the sums that kernels are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark.measures.arrays import sum_by_list
from rankeval_spark.measures.kernel_inputs.memo import Remembers

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, IntVector
    from rankeval_spark.measures.kernel_inputs.item_facts import Shared
    from rankeval_spark.measures.kernel_inputs.lists import Lists


@dataclass(frozen=True, eq=False)
class CutLists(Remembers):
    """A batch of lists seen at several cutoffs; sums have shape (n_lists, n_cutoffs), and 0 where there is no term."""

    lists: Lists  # the batch
    # Shape (1, n_cutoffs): cutoffs, ascending. The whole list is the cutoff infinity, so no kernel treats it
    # separately: ``min(k, n)`` and ``min(k, R)`` come out right.
    k: FloatMatrix

    @cached_property
    def depth(self) -> FloatMatrix:
        """Places of the list at ranks <= k: min(k, n), float64, shape (n_lists, n_cutoffs); some may be empty."""
        return np.minimum(self.k, self.n_recommended)

    @cached_property
    def n_items(self) -> FloatMatrix:
        """Recommended items at ranks <= k: m, float64, shape (n_lists, n_cutoffs).

        m is min(k, n) where no rank above the last is empty; what is a mean of items is divided by m, never by
        :attr:`depth` or k.

        Examples
        --------
        One item, at rank 2:

        >>> from rankeval_spark.measures import Lists, Ranking
        >>> cut = Lists.of([Ranking([None, 1], empty=[1])]).cut([1, 2, 3])
        >>> cut.n_items, cut.depth
        (array([[0., 1., 1.]]), array([[1., 2., 2.]]))
        """
        return self.depth - self.sum_empty(lambda places: places)

    def sum_empty(self, up_to: Callable[[FloatVector], FloatVector]) -> FloatMatrix:
        """Sum the weights of the empty ranks up to every cutoff; ``up_to`` sums those of all ranks from 1 to each."""
        total = np.zeros((self.lists.n_lists, self.k.size))
        if self.lists.empty is not None:
            owner, first, last = self.lists.empty
            for column, k in enumerate(self.k[0]):
                weights = up_to(np.minimum(last, k)) - up_to(np.minimum(first - 1.0, k))
                total[:, column] = sum_by_list(owner, weights, n_lists=self.lists.n_lists)
        return total

    @cached_property
    def n_recommended(self) -> FloatMatrix:
        """Length of each list: float64, shape (n_lists, 1)."""
        return self.lists.n_recommended[:, None].astype(np.float64)

    def n_relevant(self, rel: float) -> FloatMatrix:
        """Relevant judgements R: float64, shape (n_lists, 1)."""
        return self.lists.relevance(rel).n_relevant

    def hits(self, rel: float) -> FloatMatrix:
        """Relevant items at ranks <= k: h_k, float64, shape (n_lists, n_cutoffs)."""
        return self.once(("hits", rel), lambda: self.sum_hits(self.lists.relevance(rel).is_relevant))

    def sum_hits(self, weights: FloatVector, *, at: FloatVector | None = None) -> FloatMatrix:
        """Sum what each hit adds to its list, shape (n_hits,), up to every cutoff: by its rank, or by ``at`` instead.

        Examples
        --------
        Hits at ranks 1 and 3, each worth its rank:

        >>> from rankeval_spark.measures import Lists, Ranking
        >>> batch = Lists.of([Ranking([1, None, 1])])
        >>> batch.cut([2, 3]).sum_hits(batch.hit_rank)
        array([[1., 4.]])
        """
        cells = self._hit_cell if at is None else self._cells(self.lists.hit_list, at)
        return self._sum_cells(cells, self.lists.weighed(weights))

    def sum_items(self, weights: FloatVector, *, of: IntVector | slice = slice(None)) -> FloatMatrix:
        """Sum what recommended items, judged or not, add to their lists up to every cutoff.

        The weights are those of all items, or of the items at the positions ``of``.
        """
        facts = self.lists.known_items
        cells = self.once("items", lambda: self._cells(facts.item_list, facts.item_rank))
        return self._sum_cells(cells[of], weights)

    def sum_shared(self, shared: Shared, weights: FloatVector) -> FloatMatrix:
        """Sum what items that two lists share add, shape (n_shared,), up to every cutoff at which both hold them."""
        return self._sum_cells(self._cells(shared.owner, shared.depth), weights)

    def n_items_of_other(self, shared: Shared) -> FloatMatrix:
        """Items of the other lists at ranks <= k: float64, shape (n_lists, n_cutoffs)."""
        return self._sum_cells(self._cells(shared.other_owner, shared.other_rank), np.ones(len(shared.other_rank)))

    def sum_ideal(self, weights: FloatVector) -> FloatMatrix:
        """Sum what each judgement adds, shape (n_judged,), up to every cutoff, in the ideal order (gain descending)."""
        return self._sum_cells(self._judged_cell, weights)

    @cached_property
    def _hit_cell(self) -> IntVector:
        return self._cells(self.lists.hit_list, self.lists.hit_rank)

    @cached_property
    def _judged_cell(self) -> IntVector:
        return self._cells(self.lists.judged_list, self.lists.ideal_rank)

    def _cells(self, owner: IntVector, rank: IntVector | FloatVector) -> IntVector:
        """Return the (list, first cutoff that reaches the rank) of each item as one number.

        The bucket after the last cutoff takes the ranks that no cutoff reaches.
        """
        return owner * (self.k.size + 1) + np.searchsorted(self.k[0], rank)

    def _sum_cells(self, cells: IntVector, weights: FloatVector) -> FloatMatrix:
        """One count over (list, bucket) and one running sum, whatever the number of cutoffs."""
        shape = (self.lists.n_lists, self.k.size + 1)
        in_bucket = sum_by_list(cells, weights, n_lists=shape[0] * shape[1]).reshape(shape)
        return np.cumsum(in_bucket[:, :-1], axis=1)
