"""The evaluation of whole users: rows as Arrow in, lists, values and aggregates as Arrow out.

Everything about a user meets here once: the lists of all models, the judgements, the training items, the segments. The
steps are functions over flat arrays, in the order of the data: :mod:`batch` encodes the rows; :mod:`matching` keeps one
judgement per (user, item) and finds it for each row; :mod:`ranked_lists` orders the lists; :mod:`compact_lists` makes
compact lists; :mod:`scorer` computes the measures, :mod:`partial_aggregates` the sums by slice,
:mod:`paired_differences` the differences of models.
Nothing here imports pyspark.
"""
