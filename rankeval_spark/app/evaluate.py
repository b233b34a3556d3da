"""``evaluate``: two DataFrames in, result frames out, for a notebook."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C, pipeline, schemas
from rankeval_spark.app.arguments import Given, request_of
from rankeval_spark.app.gap_tests import gap_tests
from rankeval_spark.app.inputs import exposures_of, inputs_of, list_facts, or_failing_at_zero_rank, row_facts
from rankeval_spark.config import Checks
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.limits import MAX_ROWS_PER_USER
from rankeval_spark.measures import MAX_CUTOFF
from rankeval_spark.session.local_workers import demand_packages
from rankeval_spark.sources import Source, Sources, check_id_types, from_frame, segments_schema
from rankeval_spark.stages import check, gaps, long
from rankeval_spark.statistics.paired import LEAST_USERS

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import Measure, MeasureSet
    from rankeval_spark.pipeline import Frames, Inputs
    from rankeval_spark.schemas import Schema
    from rankeval_spark.stages.long import Asked


def evaluate(  # noqa: PLR0913 - the public surface: each argument is a decision of the user
    recommendations: DataFrame,
    held_out: DataFrame,
    *,
    measures: Sequence[str],
    segments: DataFrame | None = None,
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
    duplicates: str | None = None,
    judged_only: bool | None = None,
    held_out_duplicates: str | None = None,
    invalid_scores: str | None = None,
    seen_in_train: str | None = None,
    unknown_items: str | None = None,
    unit: str | None = None,
    min_slice_size: int = LEAST_USERS,
    confidence: float = 0.95,
    max_rows_per_user: int = MAX_ROWS_PER_USER,
    train: DataFrame | None = None,
    items: DataFrame | None = None,
    evaluation_date: date | None = None,
    baseline: str | None = None,
    pairs: str = "baseline",
    correction: str = "holm",
    tests: Sequence[str] = ("t",),
    wilcoxon_zeros: str = "wilcox",
    intervals: str = "analytic",
    replicates: int = 1000,
    seed: int = 0,
) -> Evaluation:
    """Evaluate recommendation lists against held-out interactions.

    No Spark job starts here and nothing of the session is changed: each result is a DataFrame, computed when used.

    Parameters
    ----------
    recommendations : DataFrame
        ``user_id``, ``item_id``, ``score`` and/or ``rank`` [, ``model_id``] [, ``list_id``]. Ids are strings or
        integers and keep their type in the results.
    held_out : DataFrame
        ``user_id``, ``item_id`` [, ``gain``] [, ``interacted_at``] [, ``value``]; without the column ``gain`` each row
        has gain 1; ``value`` is what it was worth, for measures with ``gains='value'``.
    measures : sequence of str
        Such as ``["nDCG@10", "AP(denom='min')@10", "P@5"]``; ``rankeval measures`` explains them.
    segments : DataFrame, optional
        ``user_id`` and segment columns, one row a user.
    slices : sequence of str or of sequences of str
        Segments, and crossings of segments, to report on beside everyone: ``("country", ("country", "device"))``.
    bands : mapping, optional
        How numbers become segments, by name: ``{"age": {"edges": [18, 25, 40]}, "income": {"quantiles": 4}}``;
        ``{"activity": {"of": "train"}}`` is how many interactions the user has in `train`: none, low, middle or high.
    item_slices : sequence of str
        Groups of items within which every measure that reads judgements is computed too, as ``R(group='drama')``:
        categories of `items`; or ``head``, ``middle`` and ``tail``, by popularity in `train`.
    models : sequence of str, optional
        The models expected; those in the log where left out (one lazy distinct).
    preset : str, optional
        Conventions of a tool, such as ``trec_eval`` or ``rectools`` (all in ``docs/presets.md``): its policies, and
        its options of measures, where nothing else is said.
    population : {"truth", "judged", "intersection", "intersection_judged", "run"}, optional
        Users in the mean. ``truth``, by default: those with a relevant judgement, and a missing list scores 0.
    zero_relevant : {"exclude", "zero", "one", "error"}, optional
        What a user without a relevant judgement scores; by default as the population says.
    missing : {"zero", "exclude", "error"}, optional
        What a judged user without a list scores; by default as the population says.
    ties : {"item_asc", "item_desc", "rank", "optimistic", "pessimistic", "expected", "error"}, optional
        Order of equal scores; ``item_asc`` by default.
    score_precision : {"double", "single"}, optional
        Precision in which scores are compared; ``double`` by default.
    rank_gaps : {"renumber", "keep"}, optional
        Whether lists are numbered anew, as by default, or keep the ranks of the log.
    ranks_from : {1, 0}
        Rank of the first item of a list in the log.
    duplicates : {"best", "error", "keep"}, optional
        An item twice in one list: its best place counts, by default, the job fails, or both count.
    judged_only : bool, optional
        Whether items without a judgement, or with a negative gain, are left out before lists are ranked; not by
        default.
    held_out_duplicates : {"max", "sum", "last", "error"}, optional
        Gain of a judgement that stands twice; ``max`` by default, ``last`` goes by ``interacted_at``.
    invalid_scores : {"drop", "error"}, optional
        A recommendation with a NULL, NaN or infinite score; ``drop`` by default.
    seen_in_train : {"keep", "drop"}, optional
        Whether recommended items that the user has in `train` stay in the lists, as by default, or are left out before
        lists are ranked.
    unknown_items : {"keep", "drop"}, optional
        The same of recommended items that the catalogue does not have: `items` or, where it is not given, `train`.
    unit : {"user", "list"}, optional
        Whether means are over users, each with the mean of his lists, or over lists with users as clusters; ``user`` by
        default. The same where each user has one list.
    min_slice_size : int
        Slices with fewer users, 30 by default, are marked ``is_small``, and comparisons of fewer have no p-value.
    confidence : float in (0, 1)
        Nominal coverage of the intervals.
    max_rows_per_user : int
        Rows of a user in all inputs together above which a job fails, 5,000,000 by default: a worker holds them all at
        once.
    train : DataFrame, optional
        ``user_id``, ``item_id`` [, ``interacted_at``]: what the models learnt from, for the measures that need it.
    items : DataFrame, optional
        ``item_id`` [, ``categories``: array of text] [, ``vector``: array of numbers] [, ``published_at``: date or
        time]: the catalogue, for the measures that need it.
    evaluation_date : date, optional
        Day at which the age of the items is taken, for the measures that need it.
    baseline : str, optional
        Model that the others are compared with, in ``comparisons``.
    pairs : {"baseline", "all"}
        Whether each model is compared with the baseline, or every two models are.
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

    Returns
    -------
    Evaluation
        With ``user_metrics``, ``user_values``, ``ranked_items``, ``metrics``, ``group_metrics``, ``comparisons``,
        ``gaps``, ``checks``, ``leaderboard()``, ``gap_tests()`` and ``agreement()``.

    Raises
    ------
    ConfigError
        If an argument is not valid; all faults at once.
    InputError
        If a column is missing or has a type that cannot be used.
    ChecksFailedError
        If an id is text in one frame and a number in another.
    EnvironmentFaultError
        If workers on this machine run a Python without numpy or pyarrow.
    """
    policies = {
        "population": population,
        "zero_relevant": zero_relevant,
        "missing": missing,
        "ties": ties,
        "score_precision": score_precision,
        "rank_gaps": rank_gaps,
        "duplicates": duplicates,
        "judged_only": judged_only,
        "held_out_duplicates": held_out_duplicates,
        "invalid_scores": invalid_scores,
        "seen_in_train": seen_in_train,
        "unknown_items": unknown_items,
        "unit": unit,
    }
    asked_for = {
        "measures": measures,
        "preset": preset,
        "models": models,
        "slices": slices,
        "bands": bands or {},
        "item_slices": item_slices,
        "ranks_from": ranks_from,
        "min_slice_size": min_slice_size,
        "confidence": confidence,
        "max_rows_per_user": max_rows_per_user,
    }
    compared = {
        "baseline": baseline,
        "pairs": pairs,
        "tests": tests,
        "wilcoxon_zeros": wilcoxon_zeros,
        "replicates": replicates,
        "seed": seed,
        "correction": correction,
    }
    drawn = {"method": intervals, "replicates": replicates, "seed": seed}
    request = request_of(asked_for, policies, compared, drawn, segments, Given(train, items, evaluation_date))
    names = tuple(name for name in request.segments if name not in request.absent)
    sources = _sources(
        recommendations,
        held_out,
        segments,
        names,
        numbers=request.bands,
        train=train,
        items=items,
        ranks_from=ranks_from,
    )
    demand_packages(recommendations.sparkSession)
    return Evaluation(inputs_of(or_failing_at_zero_rank(sources, request), request, are_checked=False), request)


@dataclass(frozen=True)
class Evaluation:
    """The results of :func:`evaluate`, as frames that are computed when used."""

    inputs: Inputs
    request: Request
    _scored: DataFrame | None = field(default=None, repr=False)

    @property
    def user_metrics(self) -> DataFrame:
        """One row per list and cutoff, a column a measure: ``schemas.USER_METRICS`` from ``model_id`` on."""
        return self._frames.user_metrics

    @property
    def user_values(self) -> DataFrame:
        """The same values long: ``model_id, user_id, list_id, measure, k, value``."""
        return long.to_user_values(self.user_metrics, asked=asked(self.request.measures))

    @property
    def metrics(self) -> DataFrame:
        """Means with health counts and intervals: ``schemas.METRICS`` from ``model_id`` on."""
        if self._needs_no_rows:
            return pipeline.to_metrics(
                self.inputs,
                request=self.request,
                exposures=exposures_of(self.inputs, self.request),
            )
        return self._frames.metrics

    @property
    def group_metrics(self) -> DataFrame:
        """How the groups of each slicing, or of items, compare: ``schemas.GROUP_METRICS`` from ``model_id`` on.

        Rows ``GroupGap(...)``, ``GroupRatio(...)``, ``UserMAD(...)``, ``WorstGroup(...)`` and ``ItemMAD(...)``; none
        without slices and item slices.
        """
        return pipeline.to_group_metrics(self.metrics, request=self.request)

    @property
    def ranked_items(self) -> DataFrame:
        """The lists as they are measured: ``model_id, user_id, list_id, item_id, rank, gain, is_relevant``.

        One row per list and item, after copies and items that policies leave out are gone; the answer to "why does this
        user score 0?". ``gain`` is NULL for an item without a judgement, ``is_relevant`` true from a gain of 1 on.
        """
        return pipeline.to_ranked_items(self.inputs, request=self.request)

    @property
    def comparisons(self) -> DataFrame:
        """Models against a baseline on the same users: ``schemas.COMPARISONS`` from ``baseline_model_id`` on.

        Raises
        ------
        ConfigError
            If neither ``baseline=`` nor ``pairs="all"`` was asked for.
        """
        alone = self._needs_no_rows
        found = pipeline.to_comparisons(self.inputs, request=self.request) if alone else self._frames.comparisons
        if found is None:
            fix = "call evaluate(..., baseline='popular')"
            raise ConfigError(Fault("evaluate(baseline=)", "none", "the model that others are compared with", fix))
        return found

    @property
    def gaps(self) -> DataFrame:
        """How far the groups of each slicing lie apart: gap with interval, ratio, mean difference, both extremes.

        One row per model, slice, measure and cutoff; small groups and users of unknown segment are left out.
        """
        metrics = self.metrics
        return gaps.to_gaps(metrics, pipeline.to_group_metrics(metrics, request=self.request))

    def gap_tests(
        self,
        *,
        measures: Sequence[str] | None = None,
        replicates: int = 1000,
        seed: int = 0,
        correction: str = "holm",
    ) -> DataFrame:
        """Test whether the groups of each slicing lie further apart than random groups of the same sizes would.

        The means of the groups are computed at once, to know which groups there are; use it inside :meth:`cached`. It
        costs a number a user, slicing and replicate, and hands on 16 bytes a group, measure, cutoff and replicate of
        each partition: name the measures that matter.

        Parameters
        ----------
        measures : sequence of str, optional
            Such as ``["nDCG@10"]``: some of the evaluation's, all means of users where left out.
        replicates : int
            Random draws of all labels, 100 to 100000.
        seed : int
            Seed of the draws, which are hashes of it, the user and the replicate: the same on every partitioning.
        correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
            What is done about the number of tests, which are one family.

        Returns
        -------
        DataFrame
            ``model_id, slice, measure, k, n_groups, gap, p_value, p_adjusted, correction, family_size, replicates,
            reason``. Small groups and users of unknown segment are left out, as in :attr:`gaps`; with fewer than two
            groups gap and p are NULL and the reason is ``few_groups``. ``p_adjusted`` is NULL, for the reason
            ``replicates``, where so many tests with so few replicates could not have found anything.

        Raises
        ------
        ConfigError
            If there are no slices, or an argument is not valid; all faults at once.

        Notes
        -----
        ``p = (1 + #{gap* >= gap}) / (1 + B)`` of B replicates, in each of which every user draws a group with the
        groups' shares of the users: a permutation of labels but for the binomial spread of the sizes.
        """
        asked_for = {"measures": measures, "replicates": replicates, "seed": seed, "correction": correction}
        return gap_tests(self._frames, request=self.request, has_one_list=self.inputs.has_one_list, asked=asked_for)

    @property
    def checks(self) -> DataFrame:
        """What was found in the inputs: ``schemas.CHECKS`` from ``input`` on."""
        of_rows = row_facts(self.inputs, self.request)
        facts = check.union(*of_rows, list_facts(self._frames.scored, self.request))
        return check.with_verdicts(facts, checks=Checks())

    def leaderboard(self, k: int | None = None) -> DataFrame:
        """Models and their means over all users, best first by the first measure.

        Parameters
        ----------
        k : int, optional
            Only the measures at this cutoff; all of them where left out.

        Returns
        -------
        DataFrame
            ``model_id``, ``n_users`` and a column a measure, named as the measure, such as ``nDCG@10``.
        """
        wanted = [one for one in self.request.measures.measures if k in (None, one.k)]
        if not wanted:
            cutoffs = ", ".join(map(str, sorted({one.k for one in self.request.measures.measures})))
            raise ConfigError(Fault("leaderboard(k=)", str(k), f"a cutoff that was asked for: {cutoffs}"))
        means = self.metrics.where(F.col(C.SLICE) == C.ALL_USERS).groupBy(C.MODEL_ID)
        direction = F.asc_nulls_last if wanted[0].entry.definition.better == "lower" else F.desc
        best_first = [direction(_quoted(str(wanted[0]))), F.asc(C.MODEL_ID)]
        return means.agg(F.max("n_users").alias("n_users"), *map(_mean_of, wanted)).orderBy(*best_first)

    def agreement(self, baseline: str, *, k: int = 10, p: float = 0.9) -> DataFrame:
        """How much the lists of each model agree with those of a baseline: Overlap, Jaccard and RBO, user by user.

        As measures, ``Overlap(model='popular')@10``, they stand in all results; here is everyone with two lists.

        Parameters
        ----------
        baseline : str
            The model that the others are compared with.
        k : int
            Rank at which the lists are cut.
        p : float in (0, 1)
            Persistence of rank-biased overlap.

        Returns
        -------
        DataFrame
            ``model_id, user_id`` [, ``list_id``] and in [0, 1] ``overlap`` (common items / k), ``jaccard`` and ``rbo``
            (extrapolated); a row per list of another model whose user got one of the baseline too.

        Raises
        ------
        ConfigError
            If the baseline is none of the models that were named, or k or p is out of range; all faults at once.
        """
        models = self.request.models
        faults = [
            Fault(f"agreement({name}=)", repr(found), expected)
            for name, found, expected, is_right in (
                ("baseline", baseline, f"one of {', '.join(models or ())}", models is None or baseline in models),
                ("k", k, f"a whole number from 1 to {MAX_CUTOFF}", isinstance(k, int) and 1 <= k <= MAX_CUTOFF),
                ("p", p, "a number above 0 and below 1", 0 < p < 1),
            )
            if not is_right
        ]
        if faults:
            raise ConfigError(*faults)
        return pipeline.to_agreement(self.inputs, request=self.request, baseline=baseline, k=k, p=p)

    @contextmanager
    def cached(self) -> Iterator[Evaluation]:
        """Compute the scored rows once for all results that are used inside the block."""
        if self._scored is not None:  # inside of another block
            yield self
            return
        scored = pipeline.to_scored(self.inputs, request=self.request)
        scored.persist(StorageLevel.MEMORY_AND_DISK)  # read by each result of the block
        try:
            yield replace(self, _scored=scored)
        finally:
            scored.unpersist()

    @property
    def _needs_no_rows(self) -> bool:
        """Whether aggregates are made where lists are scored; rows that are kept are read instead."""
        return self._scored is None and pipeline.can_be_summarised(self.inputs, self.request)

    @cached_property
    def _frames(self) -> Frames:
        kept = self._scored
        return pipeline.Frames(
            pipeline.to_scored(self.inputs, request=self.request) if kept is None else kept,
            request=self.request,
            has_one_list=self.inputs.has_one_list,
            exposures=exposures_of(self.inputs, self.request),
        )


def asked(measures: MeasureSet) -> list[Asked]:
    """Name what was asked for of each list: label, column and cutoff of every measure."""
    return [(one.label, one.column, one.k) for one in measures.per_list]


def _mean_of(measure: Measure) -> Any:  # noqa: ANN401 - Column has two classes, classic and Connect
    is_measure = (F.col(C.MEASURE) == measure.label) & (F.col(C.K) == measure.k)
    return F.max(F.when(is_measure, F.col(C.VALUE))).alias(str(measure))


def _kind_of(value: object) -> str:
    """Name a type by its library, as in ``pandas.DataFrame``."""
    library = type(value).__module__.partition(".")[0]
    return type(value).__name__ if library == "builtins" else f"{library}.{type(value).__name__}"


def _sources(  # noqa: PLR0913 - a frame each
    recommendations: DataFrame,
    held_out: DataFrame,
    segments: DataFrame | None,
    names: tuple[str, ...],
    *,
    numbers: Collection[str],
    train: DataFrame | None,
    items: DataFrame | None,
    ranks_from: int,
) -> Sources:
    """Bring the frames into canonical columns; what is wrong with all of them is reported at once."""
    faults: list[Fault] = []

    def attempt(name: str, frame: object, schema: Schema, *, is_needed: bool = False) -> Source | None:
        if frame is not None and not isinstance(frame, DataFrame):
            fix = "spark.createDataFrame makes one of a pandas DataFrame, spark.read of files"
            faults.append(Fault(f"evaluate({name}=)", f"a {_kind_of(frame)}", "a DataFrame of Spark", fix))
            return None
        if frame is None:
            if is_needed:
                faults.append(Fault(f"evaluate({name}=)", "None", "a DataFrame of Spark"))
            return None
        try:
            return from_frame(name, frame, schema, ranks_from=ranks_from)
        except InputError as error:
            faults.extend(error.faults)
            return None

    log = attempt("recommendations", recommendations, schemas.RECOMMENDATIONS, is_needed=True)
    judged = attempt("held_out", held_out, schemas.HELD_OUT, is_needed=True)
    users = attempt("segments", segments, segments_schema(names, numbers=numbers))
    trained = attempt("train", train, schemas.TRAIN)
    catalogue = attempt("items", items, schemas.ITEMS)
    if log is None or judged is None or faults:
        raise InputError(*faults)
    sources = Sources(log, judged, users, trained, catalogue)
    check_id_types(sources.all())
    return sources


def _quoted(name: str) -> str:
    return f"`{name}`"
