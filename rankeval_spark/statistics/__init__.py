"""Statistics over users: moments, intervals, resampling and tests. Only numpy and scipy.

Conventions of all modules:

- ``values``: float64, (n_users, n_columns), a row per user, a column per measure at a cutoff; NaN where undefined.
  Undefined values are left out.
- ``group``, ``n_groups``: int, (n_rows,), the group of each row, from 0 to ``n_groups - 1``.
- ``hashes``: int64, (n_users,), the hash of each user's id, see :mod:`hashed_random`.
- ``level``: nominal coverage of an interval, in (0, 1). ``least_users``: users below which there is no p-value.
- Results are NaN where undefined. Arrays keep the shape of their arguments unless the docstring gives another.
- Aggregates of disjoint sets of users merge. ``to_bytes`` writes one text of bytes per group, so that another process
  can merge them; ``from_bytes`` reads one group. Whole numbers are exact as doubles.
"""

from typing import Literal, TypeAlias

Correction: TypeAlias = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]
FewDifferences: TypeAlias = Literal["exact", "t"]  # the t test of at most 20 differences: all signs, or t all the same
Zeros: TypeAlias = Literal["wilcox", "pratt"]  # what Wilcoxon's test does with users without a difference
