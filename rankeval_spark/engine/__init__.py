"""The evaluation of whole users: rows as Arrow in, lists, values and aggregates as Arrow out.

Everything about a user meets here once: the lists of all models, the judgements, the training items, the segments. The
steps are functions over flat arrays, in the order of the data: :mod:`batch` encodes the rows; :mod:`judgements` keeps
one per (user, item); :mod:`ranking` orders the lists; :mod:`lists` makes the compact lists; :mod:`scoring` computes the
measures, :mod:`aggregation` the sums by slice, :mod:`differing` the differences of models.
Nothing here imports pyspark.
"""
