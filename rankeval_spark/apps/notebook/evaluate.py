"""``evaluate``: recommendations and held-out interactions in, results out, for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankeval_spark.apps.notebook.arguments import name_misplaced_arguments, validate_call
from rankeval_spark.apps.notebook.hosts import (
    column_names,
    is_of_spark,
    is_on_spark,
    open_inputs_of_call,
    read_library_columns,
    warn_of_likely_mistakes,
)
from rankeval_spark.config import parse_date
from rankeval_spark.evaluation import Evaluation
from rankeval_spark.hosts.progress_line import show_progress
from rankeval_spark.inputs.input_columns import INPUTS
from rankeval_spark.refusals import raise_in_call_words

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.apps.notebook.arguments import Call
    from rankeval_spark.config import Comparisons, FrameInputs, Intervals, Policies, Slicing
    from rankeval_spark.config.request import Request
    from rankeval_spark.hosts.host import Host

    Section = Mapping[str, Any]  # keys and values of a section of the config


@name_misplaced_arguments
def evaluate(  # noqa: PLR0913 - the public surface: each argument is a decision of the user
    recommendations: object,
    held_out: object,
    *,
    measures: Sequence[str | Callable[..., Any]],
    baseline: str | None = None,
    models: Sequence[str] | None = None,
    segments: object = None,
    slices: Sequence[str | Sequence[str]] = (),
    train: object = None,
    items: object = None,
    user_values: object = None,
    user_weights: object = None,
    evaluation_date: str | date | None = None,
    format: str | None = None,
    preset: str | None = None,
    policies: Policies | Section | None = None,
    inputs: FrameInputs | Section | None = None,
    slicing: Slicing | Section | None = None,
    intervals: Intervals | Section | None = None,
    comparisons: Comparisons | Section | None = None,
) -> Evaluation:
    """Evaluate recommendation lists against held-out interactions.

    The inputs are DataFrames of Spark, or tables that Arrow can read: pandas, polars, pyarrow, DuckDB relations. Those
    of Spark are planned: no job starts here, nothing of the session is changed, and each result is a DataFrame,
    computed when used. Others are read once, here, and evaluated in this process, without Spark: each result is a
    :class:`ResultTable`, a light frame over Arrow, computed once, when first used. The numbers are the same.

    A dict of recommendations has one frame or path a model: ``{"als": frame, "knn": "knn.parquet"}``.

    The path of a table is read in this process too: of Parquet, CSV, JSON lines and TREC, files or a folder, and of
    Delta, on this machine or in an object store, such as ``"s3://bucket/log.parquet"``. The ending names the format.
    So are lazy frames, lists of rows, and dictionaries of users: ``{user: {item: score}}`` or ``{user: [item, ...]}``.

    Parameters
    ----------
    recommendations : DataFrame, table or path, or dict of them by model
        ``user_id``, ``item_id``, ``score`` and/or ``rank`` [, ``model_id``] [, ``list_id``] [, ``recommended_at``]
        [, ``predicted_reward``]. Ids are text or whole numbers, and keep their type in the results; UUIDs become text.
        Where a row is a whole list, ``item_id`` and ``score`` are arrays, or ``recommendations`` is an array of structs
        with ``item_id`` and ``score`` or ``rating``, as MLlib's ``recommendForAllUsers`` writes it; the order of the
        items is their rank.
    held_out : DataFrame, table or path
        ``user_id``, ``item_id`` [, ``list_id``] [, ``gain``] [, ``interacted_at``] [, ``value``] [, ``weight``]
        [, ``propensity``]; with ``list_id`` a row is a judgement of that list of its user alone; without the column
        ``gain`` each row has gain 1; ``value`` is what it was worth, for measures with ``gains='value'``; ``weight``
        how often it counts, for those with ``weighted=True``.
    measures : sequence of str or callable
        Such as ``["nDCG@10", "AP(denom='min')@10", "P@5"]``; ``rankeval measures`` explains them. Functions are
        measures too, see :func:`rankeval_spark.measure`: ``[my_measure, "my_measure@10", decorated @ 10]``.
    baseline : str, optional
        Model that the others are compared with, in ``comparisons``.
    models : sequence of str, optional
        The models expected; those in the log where left out: one job of Spark, with the first result. Frames by model
        name them.
    segments : DataFrame, table or path, optional
        ``user_id`` and segment columns, one row a user.
    slices : sequence of str or of sequences of str
        Segments, and crossings of segments, to report on next to everyone: ``("country", ("country", "device"))``.
    train : DataFrame, table or path, optional
        ``user_id``, ``item_id`` [, ``interacted_at``]: what the models learnt from, for the measures that need it.
    items : DataFrame, table or path, optional
        ``item_id`` [, ``categories``: array of text] [, ``vector``: array of numbers] [, ``published_at``: date or
        time]: the catalogue, for the measures that need it.
    user_values : DataFrame, table or path, optional
        ``user_id``, ``name``, ``value`` [, ``model_id``]: revenue, retention, a survey; ``measures`` name each value:
        ``"UserValue(name='revenue')"``. A user without a row of that name is not in its mean.
    user_weights : DataFrame, table or path, optional
        ``user_id``, ``weight``: every mean over users becomes the sum of weight times value over the sum of weights. A
        user without a weight above 0 is not in it.
    evaluation_date : str or date, optional
        Day, such as ``"2026-01-31"``, at which the age of the items is taken, for the measures that need it, and
        ``{date}`` in paths.
    format : {"delta", "parquet", "csv", "json", "trec"}, optional
        Format of the paths whose ending does not say it, such as ``"trec"`` for ``run.txt`` and ``qrels.txt``.
    preset : str, optional
        Conventions of a tool, such as ``trec_eval`` or ``rectools`` (all in ``docs/presets.md``): its policies, and
        its options of measures, where nothing else is said.
    policies : Policies or mapping, optional
        Rules for users in the mean, ties, duplicates, missing lists and invalid rows: ``{"ties": "expected"}``. All of
        them, with their defaults: :class:`rankeval_spark.Policies`.
    inputs : FrameInputs or mapping, optional
        How the frames are read, by frame: names of columns, types of ids, ranks from 0, gains of events, lists in one
        cell, and the format of a path whose ending does not say it: ``{"recommendations": {"columns": {"item_id":
        "movieId"}}, "held_out": {"gains": {"column": "rating", "edges": [4]}}}``. See
        :class:`rankeval_spark.FrameInputs`.
    slicing : Slicing or mapping, optional
        Segments made of numbers, groups of items, quantiles, and the size of small slices: ``{"bands": {"age":
        {"edges": [18, 25, 40]}}, "item_slices": ["drama"]}``. See :class:`rankeval_spark.Slicing`.
    intervals : Intervals or mapping, optional
        Confidence of all intervals, by default 0.95, and whether those of means are by formula or bootstrap. See
        :class:`rankeval_spark.Intervals`.
    comparisons : Comparisons or mapping, optional
        Pairs, tests, primary measures, correction and margin: ``{"primary": ["nDCG@10"]}`` with a baseline, or
        ``{"pairs": "all"}``. See :class:`rankeval_spark.Comparisons`.

    Returns
    -------
    Evaluation
        With ``user_metrics``, ``user_values``, ``ranked_items``, ``metrics``, ``group_metrics``, ``comparisons``,
        ``gaps``, ``checks``, ``leaderboard()``, ``gap_tests()``, ``agreement()`` and ``explain()``.

    Raises
    ------
    InvalidCallError
        If an argument is not valid; all faults at once. It is a ConfigError.
    InputError
        If a path leads nowhere, a column is missing or has a type that cannot be used, if inputs of Spark and others
        are mixed, or if those of this process need more memory than the machine has.
    RefusedCallError
        If an id is text in one frame and a number in another. In this process also, where a result is used, if a policy
        of ``error`` meets its case, or no row of an input can be used; a job of Spark fails with the same words.
    MeasureError
        Where a result is used in this process, if a function among the measures fails for a list, or returns what it
        must not; a job of Spark fails with the same words.
    EnvironmentFaultError
        If workers on this machine run a Python without numpy or pyarrow.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankeval_spark import evaluate
    >>> log = pd.DataFrame(
    ...     {"model_id": ["als"] * 2 + ["popular"] * 2, "user_id": 1, "item_id": [7, 8, 9, 7], "rank": [1, 2, 1, 2]}
    ... )
    >>> held_out = pd.DataFrame({"user_id": [1], "item_id": [7]})
    >>> result = evaluate(log, held_out, measures=["RR@2", "P@2"], policies={"missing": "zero"})
    >>> result.leaderboard().to_pandas()
      model_id  n_users  RR@2  P@2
    0      als        1   1.0  0.5
    1  popular        1   0.5  0.5
    """
    arguments = locals()  # all of them, as they are given
    with raise_in_call_words(is_on_spark=is_of_spark(recommendations)):
        call, frames = open_call(arguments)
        return Evaluation(host_of(call, frames, call.request), call)


def open_call(arguments: dict[str, Any]) -> tuple[Call, Mapping[str, object]]:
    """Open the inputs of a call and validate its arguments; warn of names that probably mean something else."""
    day, inputs = arguments["evaluation_date"], arguments["inputs"]
    if isinstance(day, str):
        arguments["evaluation_date"] = day = parse_date(day, "evaluation_date")
    given = {name: arguments[name] for name in INPUTS}
    frames = open_inputs_of_call(given, inputs, day, arguments["format"])
    read, notes = read_library_columns(frames, inputs)
    call = validate_call({**arguments, "inputs": read, "input_notes": notes}, frames)
    columns = {name: column_names(frame) for name, frame in frames.items()}
    log = [*columns["recommendations"], *call.inputs.recommendations.columns]
    judged = [] if call.inputs.held_out.gains else [*columns["held_out"], *call.inputs.held_out.columns]
    unused = columns["segments"] if not call.slices and not call.slicing.bands else []
    warn_of_likely_mistakes(call.request, log, judged, unused)
    return call, frames


def host_of(call: Call, frames: Mapping[str, object], request: Request) -> Host:
    """Return the host that computes a request of the frames of a call."""
    if is_spark := is_on_spark(frames):
        import_module("rankeval_spark.spark.version").require_spark()
    host = import_module(f"rankeval_spark.hosts.{'on_spark' if is_spark else 'in_process'}")
    with show_progress("reading the inputs", has_rows=not is_spark):
        found: Host = host.of_call(frames, request, call.inputs)
    return found
