"""Statistics over users: moments, intervals, resampling and tests. Only numpy and scipy.

Conventions of all modules
--------------------------
values
    float64, shape (n_users, n_columns): one row per user, one column per measure at a cutoff; NaN where undefined.
    Undefined values are left out.
group, n_groups
    int, shape (n_rows,): the group of each row, from 0 to ``n_groups - 1``.
hashes
    int64, shape (n_users,): the hash of each user's id, see :mod:`hashed_random`.
level
    Nominal coverage of an interval, in (0, 1).
least_users
    Number of users below which there is no p-value.
results
    NaN where undefined. Arrays keep the shape of their arguments unless the docstring gives another.
merge, to_bytes, from_bytes
    Aggregates of disjoint sets of users merge. ``to_bytes`` writes one text of bytes per group, so that another process
    can merge them; ``from_bytes`` reads one group. Whole numbers are exact as doubles.
"""
