"""``evaluate``: recommendations and held-out interactions in, results out, for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankeval_spark.apps.notebook.arguments import validated_call
from rankeval_spark.apps.notebook.hosts import column_names, is_of_spark, is_on_spark, opened, warn_of_likely_mistakes
from rankeval_spark.call_words import in_words_of_a_call
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.evaluation import Evaluation
from rankeval_spark.limits import LEAST_USERS, MAX_ROWS_PER_USER

if TYPE_CHECKING:
    from datetime import date, timedelta


def evaluate(  # noqa: PLR0913 - the public surface: each argument is a decision of the user
    recommendations: object,
    held_out: object,
    *,
    measures: Sequence[str],
    segments: object = None,
    slices: Sequence[str | Sequence[str]] = (),
    bands: Mapping[str, Mapping[str, Any]] | None = None,
    item_slices: Sequence[str] = (),
    models: Sequence[str] | None = None,
    preset: str | None = None,
    population: str | None = None,
    zero_relevant: str | None = None,
    missing: str | None = None,
    ties: str | None = None,
    score_precision: str | None = None,
    rank_gaps: str | None = None,
    ranks_from: int = 1,
    gains: Mapping[str, Any] | None = None,
    nested: Mapping[str, Any] | None = None,
    duplicates: str | None = None,
    judged_only: bool | None = None,
    held_out_duplicates: str | None = None,
    invalid_scores: str | None = None,
    seen_in_train: str | None = None,
    unknown_items: str | None = None,
    own_item: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    lists: str | None = None,
    attribution: str | None = None,
    attribution_window: str | timedelta | None = None,
    consumed_before: str | None = None,
    min_slice_size: int = LEAST_USERS,
    confidence: float = 0.95,
    quantiles: Sequence[float] = (),
    max_rows_per_user: int = MAX_ROWS_PER_USER,
    train: object = None,
    items: object = None,
    evaluation_date: date | None = None,
    time_zone: str = "UTC",
    baseline: str | None = None,
    pairs: str = "baseline",
    margin: float | None = None,
    correction: str = "holm",
    tests: Sequence[str] = ("t",),
    wilcoxon_zeros: str = "wilcox",
    intervals: str = "analytic",
    replicates: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> Evaluation:
    """Evaluate recommendation lists against held-out interactions.

    The inputs are DataFrames of Spark, or tables that Arrow can read: pandas, polars, pyarrow, DuckDB relations. Those
    of Spark are planned: no job starts here, nothing of the session is changed, and each result is a DataFrame,
    computed when used. Others are read once, here, and evaluated in this process, without Spark: each result is a
    ``pyarrow.Table``, computed once, when first used. The numbers are the same.

    Parameters
    ----------
    recommendations : DataFrame or table
        ``user_id``, ``item_id``, ``score`` and/or ``rank`` [, ``model_id``] [, ``list_id``] [, ``recommended_at``]
        [, ``predicted_reward``]. Ids are text or whole numbers, and keep their type in the results; UUIDs become text.
        Where a row is a whole list, ``item_id`` and ``score`` are arrays, or ``recommendations`` is an array of structs
        with ``item_id`` and ``score`` or ``rating``, as MLlib's ``recommendForAllUsers`` writes it; the order of the
        items is their rank.
    held_out : DataFrame or table
        ``user_id``, ``item_id`` [, ``list_id``] [, ``gain``] [, ``interacted_at``] [, ``value``] [, ``weight``]
        [, ``propensity``]; with ``list_id`` a row is a judgement of that list of its user alone; without the column
        ``gain`` each row has gain 1; ``value`` is what it was worth, for measures with ``gains='value'``; ``weight``
        how often it counts, for those with ``weighted=True``.
    measures : sequence of str
        Such as ``["nDCG@10", "AP(denom='min')@10", "P@5"]``; ``rankeval measures`` explains them.
    segments : DataFrame or table, optional
        ``user_id`` and segment columns, one row a user.
    slices : sequence of str or of sequences of str
        Segments, and crossings of segments, to report on next to everyone: ``("country", ("country", "device"))``.
    bands : mapping, optional
        How numbers become segments, by name: ``{"age": {"edges": [18, 25, 40]}, "income": {"quantiles": 4}}``;
        ``{"activity": {"of": "train"}}`` is how many interactions the user has in `train`: none, low, middle or high.
    item_slices : sequence of str
        Groups of items within which every measure that reads judgements is computed too, as ``R(group='drama')``:
        categories of `items`; or ``head``, ``middle`` and ``tail``, by popularity in `train`.
    models : sequence of str, optional
        The models expected; those in the log where left out: one job of Spark, with the first result.
    preset : str, optional
        Conventions of a tool, such as ``trec_eval`` or ``rectools`` (all in ``docs/presets.md``): its policies, and
        its options of measures, where nothing else is said.
    population : {"truth", "judged", "intersection", "intersection_judged", "run"}, optional
        Users in the mean. ``truth``, by default: those with a relevant judgement, and a missing list scores 0.
    zero_relevant : {"exclude", "zero", "one", "error"}, optional
        What a user without a relevant judgement scores; by default as the population says.
    missing : {"zero", "exclude", "error"}, optional
        What a judged user without a list scores; by default as the population says.
    ties : str, optional
        Order of equal scores: ``item_asc`` (the default), ``item_desc``, ``item_desc_bytes``, ``rank``, ``optimistic``,
        ``pessimistic``, ``expected`` or ``error``.
    score_precision : {"double", "single"}, optional
        Precision in which scores are compared; ``double`` by default.
    rank_gaps : {"renumber", "keep"}, optional
        Whether lists are numbered again, as by default, or keep the ranks of the log.
    ranks_from : {1, 0}
        Rank of the first item of a list in the log.
    gains : mapping, optional
        How events in a column of `held_out` become gains, instead of a column ``gain``:
        ``{"column": "event", "values": {"purchase": 3, "view": 1, "skip": 0}}``, or by the edges of a number,
        ``{"column": "rating", "edges": [4]}``. An event without a gain makes its row unusable.
    nested : mapping, optional
        Columns of the items and scores where a row of the log is a whole list and they are not called ``item_id`` and
        ``score``, or are text: ``{"items": "prediction", "separator": " "}``. Judgements with several items a row are
        named by their input: ``{"held_out": {"items": "bought", "separator": " "}}``.
    duplicates : {"best", "error", "keep"}, optional
        An item twice in one list: its best place counts, by default, the job fails, or both count.
    judged_only : bool, optional
        Whether items without a judgement, or with a negative gain, are left out before lists are ranked; not by
        default.
    held_out_duplicates : {"max", "sum", "last", "error"}, optional
        Gain of a judgement that occurs twice; ``max`` by default, ``last`` goes by ``interacted_at``.
    invalid_scores : {"drop", "error"}, optional
        A recommendation with a NULL, NaN or infinite score; ``drop`` by default.
    seen_in_train : {"keep", "drop", "drop_both"}, optional
        Whether recommended items that the user has in `train` stay in the lists, as by default, or are left out before
        lists are ranked; ``drop_both`` leaves such judgements out too.
    unknown_items : {"keep", "drop"}, optional
        Whether to keep recommended items that the catalogue does not have: `items` or, where it is not given, `train`.
    own_item : {"keep", "drop", "drop_both"}, optional
        Where queries are items or documents, so that `user_id` and `item_id` are of one kind: whether the query itself
        stays in its list, as by default, or is left out before lists are ranked; ``drop_both`` leaves it out of the
        judgements too.
    unit : {"user", "list"}, optional
        Whether means are over users, each with the mean of their lists, or over lists with users as clusters; ``user``
        by default. The same where each user has one list.
    order : {"score", "rank"}, optional
        What orders a list where the log has both: the highest score first, as by default, or the rank that was shown.
    lists : {"separate", "pooled"}, optional
        Whether each list of a user is evaluated alone, as by default, or all of a model as one, in which an item counts
        at its best place.
    attribution : {"none", "last_touch", "first_touch", "all"}, optional
        Which list of a model an interaction is a judgement of, by time: every one whatever the times, by default; the
        last or first one in whose window it falls, one with the item before others; or each such list.
    attribution_window : str or datetime.timedelta, optional
        How long after ``recommended_at`` an interaction belongs to a list, such as ``"7d"``, ``"36h"`` or ``"30m"``.
    consumed_before : {"keep", "drop"}, optional
        Whether recommended items that the user interacted with no later than the list was shown stay in it, as by
        default, or are left out before lists are ranked.
    min_slice_size : int
        Slices with fewer users, 30 by default, are marked ``is_small``, and comparisons of fewer have no p-value.
    confidence : float in (0, 1)
        Nominal coverage of the intervals.
    quantiles : sequence of float in [0, 1]
        Shares of the users, such as ``[0.1, 0.5, 0.9]``: ``metrics`` has the quantiles of the users' values, exact up
        to 2,049 distinct values, else within ``quantile_error``.
    max_rows_per_user : int
        Rows of a user in all inputs together above which a job fails, 5,000,000 by default: a worker holds them all at
        once.
    train : DataFrame or table, optional
        ``user_id``, ``item_id`` [, ``interacted_at``]: what the models learnt from, for the measures that need it.
    items : DataFrame or table, optional
        ``item_id`` [, ``categories``: array of text] [, ``vector``: array of numbers] [, ``published_at``: date or
        time]: the catalogue, for the measures that need it.
    evaluation_date : date, optional
        Day at which the age of the items is taken, for the measures that need it.
    time_zone : str
        Zone of all days, such as ``"Asia/Tokyo"``. Times without a zone are read in it: those of pandas or text without
        an offset, ``timestamp_ntz``; others are the moments that they are, whatever the zone of the session is.
    baseline : str, optional
        Model that the others are compared with, in ``comparisons``.
    pairs : {"baseline", "all"}
        Whether each model is compared with the baseline, or every two models are.
    margin : float, optional
        Difference of a user's two values, such as 0.05: ``comparisons`` has the shares of users who win and who lose by
        more.
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        What is done about the number of tests.
    tests : sequence of {"t", "randomization", "bootstrap", "wilcoxon", "sign", "tukey", "randomized_tukey"}
        Tests of ``comparisons``, rows of their own each; t is always one. The last two are for ``pairs="all"``.
    wilcoxon_zeros : {"wilcox", "pratt"}
        Whether the test of Wilcoxon leaves users without a difference out before ranking, or ranks them and then leaves
        their ranks out.
    intervals : {"analytic", "bootstrap"}
        Whether intervals of means are by formula, or percentiles of a Poisson bootstrap over users.
    replicates : int
        Random draws of the bootstrap, the randomization test and the randomized Tukey test, 100 to 100000.
    seed : int
        Seed of these draws, which are hashes of it, the user and the replicate: the same on every partitioning.
    threads : int, optional
        Threads that work at a time, in this process; all cores where left out. The numbers do not depend on it.

    Returns
    -------
    Evaluation
        With ``user_metrics``, ``user_values``, ``ranked_items``, ``metrics``, ``group_metrics``, ``comparisons``,
        ``gaps``, ``checks``, ``leaderboard()``, ``gap_tests()`` and ``agreement()``.

    Raises
    ------
    InvalidCallError
        If an argument is not valid; all faults at once. It is a ConfigError.
    InputError
        If a column is missing or has a type that cannot be used, if inputs of Spark and others are mixed, or if those
        of this process need more memory than the machine has.
    RefusedCallError
        If an id is text in one frame and a number in another. In this process also, where a result is used, if a policy
        of ``error`` meets its case, or no row of an input can be used; a job of Spark fails with the same words.
    EnvironmentFaultError
        If workers on this machine run a Python without numpy or pyarrow.
    """
    arguments = locals()  # all of them, as they are given
    with in_words_of_a_call(arguments, is_on_spark=is_of_spark(recommendations)):
        segments = opened(segments)
        frames = {"recommendations": recommendations, "held_out": held_out}
        frames |= {"segments": segments, "train": train, "items": items}
        call = validated_call(arguments, segments=None if segments is None else column_names(segments))
        request = call.alone()
        judged = column_names(held_out) if gains is None else []
        unused = column_names(segments) if not slices and not bands else []
        warn_of_likely_mistakes(request, column_names(recommendations), judged, unused)
        if not is_on_spark(frames):
            from rankeval_spark.hosts import in_process  # noqa: PLC0415 - one host is loaded

            found = in_process.of_call(
                frames, request, ranks_from=ranks_from, threads=threads, gains=call.gains, nested=call.nested.by_input
            )
            return Evaluation(found)
        if threads is not None:
            fix = "leave it out: the cores of Spark are those of its session"
            raise ConfigError(Fault("evaluate(threads=)", repr(threads), "nothing, where Spark evaluates", fix))
        import_module("rankeval_spark.spark.version").require_spark()
        from rankeval_spark.hosts import on_spark  # noqa: PLC0415 - as above

        return Evaluation(
            on_spark.of_call(frames, request, ranks_from=ranks_from, gains=call.gains, nested=call.nested.by_input)
        )
