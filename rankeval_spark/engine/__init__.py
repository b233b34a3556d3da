"""The evaluation of whole users: rows as Arrow in, lists, values and aggregates as Arrow out.

Everything about a user meets here once: the lists of all models, the judgements, the training items, the segments. The
steps are functions over flat arrays, in the order of the data: :mod:`row_kinds` has the columns that travel,
:mod:`checks` drops and counts rows, :mod:`batch` encodes the rest; :mod:`matching` keeps one judgement per (user, item)
and finds it for each row; :mod:`ranked_lists` orders the lists and makes compact rows of them; :mod:`scorer` computes
the measures, :mod:`aggregates` the sums by slice, :mod:`paired_differences` the differences of models. :mod:`planning`
makes a :class:`job.Job` of a request, which does all this in a worker. Nothing here imports pyspark.
"""
