"""Ranked items and six measures by window functions and joins, as DataFrames to join and to query further.

``evaluate`` computes the same numbers in workers of Python. Here Spark's own functions do everything, and the log
crosses the network twice. Nothing runs before the caller's action, and workers need no package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack, get_args, get_type_hints

from pyspark.sql import Column, DataFrame, Window, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config import FrameInputs, Policies, validate_model
from rankeval_spark.config.loading import locate_in_call
from rankeval_spark.config.request import Request
from rankeval_spark.engine.checks import held_out_checks, log_checks
from rankeval_spark.engine.failures import policy_words
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.errors import ConfigError, Fault, InputError, kind_of
from rankeval_spark.hosts import on_spark
from rankeval_spark.spark.plans.usable_rows import keep_usable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankeval_spark.config.loading import Locate
    from rankeval_spark.spark.plans.user_rows import InputFrames

# Columns of the measures, as ``evaluate`` calls them: P, R, RR, Success, AP and nDCG with their defaults.
MEASURES: Final = ("p", "r", "rr", "success", "ap", "ndcg")

_LIST: Final = (C.MODEL_ID, C.USER_ID, C.LIST_ID)
_N_ABOVE: Final = "_n_hits"  # relevant items of the list at ranks up to that of the row


class WindowPolicies(TypedDict, total=False):
    """Policies of ``evaluate`` that the windows follow, with the values that they take; others keep their default."""

    population: Literal["truth", "judged", "intersection", "intersection_judged", "run"]
    zero_relevant: Literal["exclude", "zero", "one"]
    missing: Literal["zero", "exclude"]
    ties: Literal["item_asc", "item_desc", "item_desc_bytes", "rank", "optimistic", "pessimistic"]
    order: Literal["score", "rank"]
    score_precision: Literal["double", "single"]
    rank_gaps: Literal["renumber", "keep"]
    duplicates: Literal["best", "keep"]
    judged_only: bool
    held_out_duplicates: Literal["max", "sum", "last"]


def ranked_items(
    recommendations: DataFrame,
    held_out: DataFrame,
    *,
    models: Sequence[str] | None = None,
    **policies: Unpack[WindowPolicies],
) -> DataFrame:
    """Plan the items of every list with their ranks and gains; no job starts.

    Parameters
    ----------
    recommendations, held_out : DataFrame
        As for ``evaluate``. Rows that it leaves out are left out: those with a NULL id, an invalid score or gain.
    models : sequence of str, optional
        Models of the log that are ranked; all where left out.
    **policies
        As for ``evaluate``; :class:`WindowPolicies` has those that are followed.

    Returns
    -------
    DataFrame
        A row for each list and item: ``model_id``, ``user_id``, ``list_id``, ``item_id``, ``rank``, ``gain`` (NULL
        without a judgement) and ``is_relevant`` (a gain of at least 1), as ``evaluate(...).ranked_items``.

    Raises
    ------
    ConfigError
        If a policy or a value is not valid, or is one that windows do not follow.
    InputError
        If a column is missing or has a type that cannot be used, or judgements name their lists.
    """
    inputs, request = _read_arguments(
        "ranked_items", recommendations, held_out, {"models": models, "policies": policies}
    )
    ranked = _rank_lists(inputs, _reduce_judgements(inputs, request.policies), request.policies)
    return ranked.select(*_LIST, C.ITEM_ID, C.RANK, C.GAIN, _is_relevant().alias("is_relevant"))


def user_metrics(
    recommendations: DataFrame,
    held_out: DataFrame,
    *,
    cutoffs: Sequence[int | Literal["all"]],
    models: Sequence[str] | None = None,
    **policies: Unpack[WindowPolicies],
) -> DataFrame:
    """Plan P, R, RR, Success, AP and nDCG of every list at every cutoff; no job starts.

    Parameters
    ----------
    recommendations, held_out : DataFrame
        As for :func:`ranked_items`.
    cutoffs : sequence of int or "all"
        Cutoffs; ``"all"`` is the whole list, which has ``k`` 0.
    models : sequence of str, optional
        Models that the judged users are expected to have lists of; those of the log where left out.
    **policies
        As for :func:`ranked_items`.

    Returns
    -------
    DataFrame
        A row for each list of the population and cutoff: ``model_id``, ``user_id``, ``list_id``, ``k``, ``n_judged``,
        ``n_relevant``, ``n_recommended``, ``n_hits`` and :data:`MEASURES`, as ``evaluate(...).user_metrics``. A measure
        is NULL where it is undefined: without a relevant judgement, nDCG without a positive gain, P of a whole list.

    Raises
    ------
    ConfigError, InputError
        As :func:`ranked_items`.
    """
    asked = {"measures": ["nDCG"], "cutoffs": cutoffs, "models": models, "policies": policies}
    inputs, request = _read_arguments("user_metrics", recommendations, held_out, asked)
    rules, ks = request.policies, request.measure_set.ks
    judgements = _reduce_judgements(inputs, rules)
    users, lists = _sum_users(judgements, ks), _sum_lists(_rank_lists(inputs, judgements, rules), ks)
    if rules.missing == "zero":
        found = _repeat_for_models(users, inputs, request).join(lists, on=[C.MODEL_ID, C.USER_ID], how="left")
    else:
        found = lists.join(users, on=[C.USER_ID], how="left" if rules.population == "run" else "inner")
    sums = [name for name in (*users.columns, *lists.columns) if name not in _LIST and not name.startswith("first_")]
    rows = F.inline(F.array(*(_values_at(k, rules.zero_relevant) for k in ks)))
    return found.fillna(0, sums).fillna(C.ONE_LIST, [C.LIST_ID]).select(*_LIST, rows)


def _read_arguments(
    function: str, recommendations: DataFrame, held_out: DataFrame, asked: Mapping[str, Any]
) -> tuple[InputFrames, Request]:
    """Read the arguments as a request, and the frames as ``evaluate`` on Spark does; refuse what windows cannot do."""
    place = locate_in_call(f"windows.{function}")
    request = validate_model(
        Request, {"measures": ["nDCG"], **asked}, locate=lambda at: place(at[1:] if at[:1] == ("policies",) else at)
    )
    if policy_faults := [*_policy_faults(request.policies, place)]:
        raise ConfigError(*policy_faults)
    frames = {"recommendations": recommendations, "held_out": held_out}
    fix = "spark.createDataFrame makes one; evaluate() takes those of other libraries"
    faults = [
        Fault(place((name,)), f"a {kind_of(frame)}", "a DataFrame of Spark", fix)
        for name, frame in frames.items()
        if not isinstance(frame, DataFrame)
    ]
    if faults:
        raise InputError(*faults)
    inputs = on_spark.of_call(frames, request, FrameInputs()).given
    if inputs.has_judged_lists:
        fix = "call evaluate(), which compares them with their lists, or drop the column"
        raise InputError(Fault("held_out", "a column 'list_id'", "judgements of users", fix))
    return inputs, request


def _reduce_judgements(inputs: InputFrames, rules: Policies) -> DataFrame:
    """Reduce the judgements to one row for each user and item.

    Sums are the same in any order, because what each addition loses is added at the end (Neumaier, 1974): 0.7, 0.2 and
    0.1 are the gain 1 that is relevant, and not 0.9999999999999999.
    """

    def add(state: Column, number: Column) -> Column:
        total = state["total"] + number
        is_larger = F.abs(state["total"]) >= F.abs(number)
        lost = F.when(is_larger, state["total"] - total + number).otherwise(number - total + state["total"])
        return F.struct(total.alias("total"), (state["lost"] + lost).alias("lost"))

    zero = F.struct(F.lit(0.0).alias("total"), F.lit(0.0).alias("lost"))
    gain = {
        "max": F.max(C.GAIN),
        "sum": F.aggregate(F.collect_list(C.GAIN), zero, add, lambda state: state["total"] + state["lost"]),
        "last": F.max(F.struct(C.INTERACTED_AT, C.GAIN))[C.GAIN],
    }[rules.held_out_duplicates]
    usable = keep_usable(inputs.held_out, held_out_checks(inputs.held_out.columns))
    return usable.groupBy(C.USER_ID, C.ITEM_ID).agg(gain.alias(C.GAIN))


def _rank_lists(inputs: InputFrames, judgements: DataFrame, rules: Policies) -> DataFrame:
    """Rank the lists: a row for each list and item, with its rank, its gain and the hits up to it."""
    log = inputs.recommendations
    items = keep_usable(log, log_checks(log.columns, are_judged=False))
    items = items.join(judgements, on=[C.USER_ID, C.ITEM_ID], how="left")
    if rules.judged_only:
        items = items.where(F.col(C.GAIN) >= 0)
    items = items.repartition(*_LIST)  # one exchange for both windows: the first alone would need another
    best_first = _sort_columns(items, rules)
    if rules.duplicates == "best":
        copy = F.row_number().over(Window.partitionBy(*_LIST, C.ITEM_ID).orderBy(*best_first))
        items = items.withColumn("_copy", copy).where(F.col("_copy") == 1)
    of_list = Window.partitionBy(*_LIST).orderBy(*best_first)
    up_to_row = of_list.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rank = F.row_number().over(of_list)
    if rules.rank_gaps == "keep":
        words = "two items of one list have the same rank".join(policy_words("rank_gaps", setting="keep"))
        is_equal = F.lag(C.RANK).over(of_list) == F.col(C.RANK)
        rank = F.when(is_equal, F.raise_error(F.lit(words)).cast("int")).otherwise(F.col(C.RANK))
    n_above = F.count_if(_is_relevant()).over(up_to_row)
    return items.select(*_LIST, C.ITEM_ID, rank.alias(C.RANK), C.GAIN, n_above.alias(_N_ABOVE))


def _sort_columns(items: DataFrame, rules: Policies) -> list[Column]:
    """Sort by score, or by rank without one; then as ``ties`` says, and at last by what else the log has."""
    ranks, gain = [F.asc_nulls_last(C.RANK)] if C.RANK in items.columns else [], F.coalesce(C.GAIN, F.lit(0.0))
    order = ranks
    if C.SCORE in items.columns:
        is_float = dict(items.dtypes)[C.SCORE] in ("float", "double")
        score = F.col(C.SCORE).cast("float") if rules.score_precision == "single" else F.col(C.SCORE)
        order = [F.desc(score + 0.0 if is_float else score)]  # -0.0 and 0.0 are equal
    breakers: dict[str, list[Column]] = {
        "item_asc": [F.asc(C.ITEM_ID), *ranks],
        "item_desc": [F.desc(C.ITEM_ID), *ranks],
        "item_desc_bytes": [F.desc(F.col(C.ITEM_ID).cast("string")), *ranks],
        "rank": [*ranks, F.asc(C.ITEM_ID)],
        "optimistic": [F.desc(gain), F.asc(C.ITEM_ID), *ranks],
        "pessimistic": [F.asc(gain), F.asc(C.ITEM_ID), *ranks],
    }
    return [*order, *breakers[rules.ties]]


def _is_relevant() -> Column:
    return F.coalesce(F.col(C.GAIN) >= RELEVANT, F.lit(False))


def _is_within(k: int) -> Column:
    return F.lit(True) if k == C.WHOLE_LIST else F.col(C.RANK) <= k


def _sum_discounted(k: int) -> Column:
    """Sum the gains at ranks up to k, each discounted by its rank."""
    gain = F.greatest(F.col(C.GAIN), F.lit(0.0)) / F.log2(F.col(C.RANK) + 1)
    return F.sum(F.when(_is_within(k), gain))


def _sum_users(judgements: DataFrame, ks: Sequence[int]) -> DataFrame:
    """Count the judgements of each user, and discount their gains in the best order up to each cutoff."""
    place = F.row_number().over(Window.partitionBy(C.USER_ID).orderBy(F.desc(C.GAIN)))
    counts = (F.count("*").alias(C.N_JUDGED), F.count_if(_is_relevant()).alias(C.N_RELEVANT))
    ideals = (_sum_discounted(k).alias(f"ideal_{k}") for k in ks)
    return judgements.withColumn(C.RANK, place).groupBy(C.USER_ID).agg(*counts, *ideals)


def _sum_lists(ranked: DataFrame, ks: Sequence[int]) -> DataFrame:
    """Sum up each list: its last rank, and up to each cutoff its hits, the first one, precisions and gains."""
    sums = [F.max(C.RANK).alias("last_rank")]
    for k in ks:
        is_hit = _is_relevant() & _is_within(k)
        sums += [
            F.count_if(is_hit).alias(f"hits_{k}"),
            F.min(F.when(is_hit, F.col(C.RANK))).alias(f"first_{k}"),
            F.sum(F.when(is_hit, F.col(_N_ABOVE) / F.col(C.RANK))).alias(f"precisions_{k}"),
            _sum_discounted(k).alias(f"gains_{k}"),
        ]
    return ranked.groupBy(*_LIST).agg(*sums)


def _policy_faults(policies: Policies, place: Locate) -> Iterator[Fault]:
    """Yield the faults of policies that windows do not follow."""
    taken = get_type_hints(WindowPolicies)
    for name, field in Policies.model_fields.items():
        values = get_args(taken[name]) if name in taken else (field.default,)
        if values and (found := getattr(policies, name)) not in values:
            expected = f"one of {', '.join(values)}" if len(values) > 1 else f"{values[0]!r}, all that windows follow"
            yield Fault(place((name,)), repr(found), expected, f"call evaluate({name}={found!r})")


def _repeat_for_models(users: DataFrame, inputs: InputFrames, request: Request) -> DataFrame:
    """Repeat the users for each model: those that are named, or those of the log, which a subquery finds."""
    if request.models is None and inputs.has_model_id:
        names = inputs.recommendations.where(F.col(C.MODEL_ID).isNotNull()).select(C.MODEL_ID).distinct()
        return users.crossJoin(F.broadcast(names))
    names_given = F.array(*map(F.lit, request.models or (C.ONE_MODEL,)))
    return users.withColumn(C.MODEL_ID, F.explode(names_given))


def _values_at(k: int, zero_relevant: str) -> Column:
    """Return the struct of counts and measures at a cutoff; where one is undefined, NULL or what the policy says."""
    hits, n_relevant, ideal = F.col(f"hits_{k}"), F.col(C.N_RELEVANT), F.col(f"ideal_{k}")
    values = {
        "r": hits / n_relevant,
        "rr": F.coalesce(1 / F.col(f"first_{k}"), F.lit(0.0)),
        "success": (hits > 0).cast("double"),
        "ap": F.col(f"precisions_{k}") / n_relevant,
    }
    if k != C.WHOLE_LIST:
        values["p"] = hits / F.lit(k)
    defined = {name: F.when(n_relevant > 0, value) for name, value in values.items()}
    defined["ndcg"] = F.when(ideal > 0, F.col(f"gains_{k}") / ideal)
    if zero_relevant != "exclude":
        fill = F.lit(1.0 if zero_relevant == "one" else 0.0)
        defined = {name: F.coalesce(value, fill) for name, value in defined.items()}
    n_recommended = F.col("last_rank") if k == C.WHOLE_LIST else F.least("last_rank", F.lit(k))
    counts = {C.N_JUDGED: F.col(C.N_JUDGED), C.N_RELEVANT: n_relevant, C.N_RECOMMENDED: n_recommended, C.N_HITS: hits}
    measures = ((name, defined.get(name, F.lit(None).cast("double"))) for name in MEASURES)
    return F.struct(
        F.lit(k).alias(C.K),
        *(count.cast("int").alias(name) for name, count in counts.items()),
        *(value.alias(name) for name, value in measures),
    )
