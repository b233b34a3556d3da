"""The results of an evaluation, whichever host computes them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Generic

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import Checks
from rankeval_spark.config.inference import Comparisons, GapTests
from rankeval_spark.config.loading import locate_in_call, validate_model
from rankeval_spark.config.presets import options_of
from rankeval_spark.config.request import misfits
from rankeval_spark.errors import ConfigError, EnvironmentFaultError, Fault, listed, nearest, shortened, warn_user
from rankeval_spark.hosts.host import Frame, Host
from rankeval_spark.hosts.progress_line import show_progress
from rankeval_spark.measures import MAX_CUTOFF, Measure, MeasureSet, registry
from rankeval_spark.measures.own import name_measure, own_measures
from rankeval_spark.refusals import model_faults, raise_as_call, raise_with_words, refuse_unknown_baseline
from rankeval_spark.report import notebook, trackers
from rankeval_spark.report.explanation import Explanation
from rankeval_spark.report.pairs import ModelComparison, choose_measure, rows_of_pair
from rankeval_spark.report.result_table import ResultTable
from rankeval_spark.result_rows import gap_rows
from rankeval_spark.result_rows.check_rows import (
    ADVICE,
    OF_WEIGHTS,
    SAMPLE_RATIO,
    TARGET_SUMS,
    judge_fact,
    to_check_rows,
)
from rankeval_spark.result_rows.gap_rows import to_gaps
from rankeval_spark.result_rows.group_rows import to_group_table
from rankeval_spark.result_rows.metric_rows import note_partial_means, to_leaderboard
from rankeval_spark.statistics.paired_tests import why_withheld
from rankeval_spark.statistics.unpaired_tests import describe_shared_users
from rankeval_spark.sums import sums
from rankeval_spark.sums.check_counts import to_list_facts
from rankeval_spark.sums.exposures import to_metrics
from rankeval_spark.sums.grouping import sort_by_key
from rankeval_spark.sums.sums import COMPARISONS, GAP_TESTS, LISTS, METRICS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Self

    from rankeval_spark.config.request import Request
    from rankeval_spark.hosts.host import Advance
    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.report.tables import Row
    from rankeval_spark.result_rows.check_rows import CheckCount
    from rankeval_spark.statistics import Correction

_PAIR = "pair"  # a sum of its own: kept rows have those of the evaluation's comparisons
_SMALL = ("leaderboard", "metrics", "comparisons", "group_metrics", "gaps", "checks")
_METRICS_KEY = (C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K)


class Evaluation(Generic[Frame]):
    """The results of :func:`evaluate`, computed when they are used.

    Results of Spark are DataFrames. Small ones (``metrics``, ``comparisons``, ``group_metrics``, ``gaps``, ``checks``,
    ``leaderboard()``) are made by one job at the first use of one of them, and kept. Rows of users and items are
    planned again at each use. Results of this process are tables of :class:`rankeval_spark.ResultTable`, computed once,
    in the order of their keys; :meth:`as_table` gives small results as such on Spark too.
    """

    def __init__(self, host: Host[Frame], asked: Request) -> None:
        self.host = host
        self.request: Request = host.request
        self._asked = asked  # the call, or the config, with what it says of its inputs
        self._n_blocks = 0
        self._pairs: dict[tuple[str, str], list[Row]] = {}  # compared apart from ``comparisons``

    def __repr__(self) -> str:
        """Return what was requested, the leaderboard if it is known, and the results; nothing is computed for it."""
        asked = ", ".join(map(str, self.request.measure_set.measures))
        results = [
            name for name in vars(Evaluation) if isinstance(getattr(Evaluation, name), property | cached_property)
        ]
        named = ", ".join(name for name in results if not name.startswith("_") and name not in ("plot", "notes"))
        board = f"\n{self.as_table()!r}" if "_metrics" in vars(self) else ""
        notes = "".join(f"\nnote: {note}" for note, kind in self._asked.notes.items() if kind != "options")
        others = f"{named}, compare(), gap_tests(), agreement(), hit_ranks(), explain()"
        return f"Evaluation of {asked}{board}\nresults: leaderboard(), {others}{notes}"

    def _repr_html_(self) -> str:
        """Show in a notebook what was requested, and the leaderboard if it is known; nothing is computed for it."""
        return notebook.summary(self.request, self.as_table()._repr_html_() if "_metrics" in vars(self) else None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on measures whose names mean several things elsewhere, and on columns named as in another library."""
        return tuple(self._asked.notes)

    @property
    def plot(self) -> notebook.Plots:
        """Figures of the results: ``plot.leaderboard()``, ``plot.forest()``, ``plot.curves()`` and more.

        They need the extra ``report``. Each is shown without a network, and ``save("figure.png")`` writes it.
        """
        return notebook.Plots(self)

    @property
    @raise_as_call()
    def user_metrics(self) -> Frame:
        """One row per list and cutoff, a column a measure: ``schemas.USER_METRICS`` without the key of its run."""
        with self._progress():
            return self.host.user_metrics

    @property
    @raise_as_call()
    def user_values(self) -> Frame:
        """The same values long: ``model_id, user_id, list_id, measure, k, value``."""
        return self.host.user_values

    @cached_property
    def metrics(self) -> Frame:
        """Means with health counts and intervals: ``schemas.METRICS`` without the key of its run."""
        return self.host.frame(self.as_table("metrics"))

    @cached_property
    def group_metrics(self) -> Frame:
        """Statistics over groups of users or items: ``schemas.GROUP_METRICS`` without the key of its run.

        Rows ``GroupGap(...)``, ``GroupRatio(...)``, ``UserMAD(...)``, ``WorstGroup(...)`` and ``ItemMAD(...)``; none
        without slices and item slices.
        """
        return self.host.frame(self.as_table("group_metrics"))

    @property
    @raise_as_call()
    def ranked_items(self) -> Frame:
        """The lists as they are measured: ``model_id, user_id, list_id, item_id, rank, gain, is_relevant``.

        One row per list and item, after copies and items that policies leave out are gone; the answer to "why does this
        user score 0?". ``gain`` is NULL for an item without a judgement, ``is_relevant`` true from a gain of 1 on.
        """
        with self._progress():
            return self.host.ranked_items

    @cached_property
    @raise_as_call()
    def comparisons(self) -> Frame:
        """Models against a baseline on the same users: ``schemas.COMPARISONS`` without the key of its run.

        Models that serve different users have no difference and no verdict, for the reason ``few_common_lists``, and
        those that answer different judged lists none for ``few_common_judged_lists``; ``population="run"`` gives the
        means of each model's own users. Models of an A/B test, named in ``comparisons={"split": ...}``, are compared
        unpaired.

        Raises
        ------
        ConfigError
            If neither ``baseline=`` nor ``pairs="all"`` was given, or the log has no such baseline.
        """
        return self.host.frame(self.as_table("comparisons"))

    @cached_property
    def gaps(self) -> Frame:
        """Distances between the groups of each slicing: gap with interval, ratio, mean difference, both extremes.

        One row per model, slice, measure and cutoff; small groups and users of unknown segment are left out.
        """
        return self.host.frame(self.as_table("gaps"))

    @cached_property
    @raise_as_call()
    def checks(self) -> Frame:
        """Facts about the inputs: ``schemas.CHECKS`` without the key of its run."""
        return self.host.frame(self.as_table("checks"))

    @raise_as_call()
    def as_table(self, name: str = "leaderboard") -> ResultTable:
        """Return a small result as a ResultTable, on Spark too: it shows itself, and writes Markdown and LaTeX.

        Parameters
        ----------
        name : str
            ``leaderboard``, ``metrics``, ``comparisons``, ``group_metrics``, ``gaps`` or ``checks``.

        Returns
        -------
        ResultTable
            The rows of the result of that name. On Spark they are in this process already, once one is computed.

        Raises
        ------
        ConfigError
            If there is no such result.
        """
        match name:
            case "leaderboard":
                return self._build_leaderboard(self.request.measure_set.measures)
            case "metrics":
                rows = self._metrics
            case "comparisons":
                rows = self._compare()
            case "group_metrics":
                rows = sort_by_key(self._group_metrics, _METRICS_KEY)
            case "gaps":
                rows = sort_by_key(to_gaps(self._metrics, self._group_metrics), (C.MODEL_ID, C.SLICE, C.MEASURE, C.K))
            case "checks":
                facts = [*self.host.input_facts(self._totals), *self._list_facts]
                found = to_check_rows(facts, Checks(), expected=self.request.policies.expected_findings)
                rows = sort_by_key(found, ("input", "check"))
            case _:
                raise ConfigError(
                    Fault("as_table(name=)", repr(name), f"one of: {', '.join(_SMALL)}", nearest(name, _SMALL))
                )
        return ResultTable(rows, name, own=self.request.own)

    def _compare(self) -> pa.Table:
        """Return the rows of ``comparisons``, and warn of pairs that are withheld."""
        if self.request.comparisons is None or not self.request.measure_set.columns:
            fix = "call evaluate(..., baseline='popular')"
            raise ConfigError(Fault("evaluate(baseline=)", "none", "the model that others are compared with", fix))
        refuse_unknown_baseline(self.request, self.host.models)
        rows = self._totals[COMPARISONS]
        _warn_of_withheld(rows)
        _warn_of_split(self._list_facts)
        if self.request.comparisons is not None and self.request.comparisons.covariate is not None:
            warn_user("comparisons.covariate is read by rankeval run alone: these differences are without covariates")
        return sort_by_key(rows, (C.BASELINE_MODEL_ID, *_METRICS_KEY, "test"))

    def to_config(self) -> str:
        """Return what is evaluated as the YAML of a config: a night of it has the same numbers.

        Of frames the config does not know where they are: it names a path of each, which is to be filled in.
        """
        return self._asked.to_yaml()

    def flat_metrics(self, model: str | None = None) -> dict[str, float]:
        """Return the means over all users as numbers by name, which any experiment tracker takes.

        Parameters
        ----------
        model : str, optional
            Only this model, whose numbers then have no prefix.

        Returns
        -------
        dict of str to float
            Such as ``{"als/ndcg_10": 0.31, "als/ndcg_10.low": 0.29, "als/ndcg_10.high": 0.33, "als/n_users": 943.0}``:
            the column of the measure in ``user_metrics``, its cutoff, and the ends of its interval. What is undefined
            is left out.

        Raises
        ------
        ConfigError
            If ``model`` is no model of the evaluation.
        """
        if model is not None and (faults := model_faults({"flat_metrics(model=)": model}, self._models())):
            raise ConfigError(*faults)
        by_model = self._flatten_metrics()
        if model is not None:
            return by_model.get(model, {})
        return {f"{name}/{key}": value for name, numbers in by_model.items() for key, value in numbers.items()}

    def log_to_mlflow(self, *, experiment: str | None = None, tracking_uri: str | None = None) -> dict[str, str]:
        """Log each model as a run of MLflow: its :meth:`flat_metrics`, the policies, the config and all means.

        A call that was logged before is not logged again. Inside ``with mlflow.start_run():`` the runs are nested in
        that one. Where the server cannot be reached, or refuses, a warning says so and nothing is raised.

        Parameters
        ----------
        experiment : str, optional
            Name of the experiment; without it that of the active run, of ``mlflow.set_experiment`` or of the
            environment, else the name of the evaluation, which is ``"notebook"`` for a call.
        tracking_uri : str, optional
            Server or store, such as ``"http://mlflow:5000"``; without it the one that MLflow is set to.

        Returns
        -------
        dict of str to str
            Id of the run of each model; empty if logging failed.

        Raises
        ------
        EnvironmentFaultError
            If the extra ``mlflow`` is not installed.
        """
        trackers.import_mlflow()
        config, table = self.to_config(), self._metrics.drop_columns(["slice_values", "quantiles"])
        rows = io.BytesIO()
        pa.csv.write_csv(table, rows)
        metrics = self._flatten_metrics()
        compared = self.request.comparisons
        try:
            return trackers.log_to_mlflow(
                metrics,
                tags={
                    C.EVALUATION: getattr(self._asked, C.EVALUATION, "notebook"),
                    C.RUN_ID: hashlib.sha256(config.encode() + rows.getvalue()).hexdigest()[:16],
                },
                verdict={},
                params=trackers.list_params(
                    {
                        "preset": self.request.preset,
                        "policies": self.request.policies.model_dump(mode="json"),
                        "comparisons": {"baseline": None if compared is None else compared.baseline},
                    }
                ),
                artifacts={"config.yaml": config, "metrics.csv": rows.getvalue().decode()},
                experiment=experiment,
                tracking_uri=tracking_uri,
            )
        except EnvironmentFaultError as error:
            warn_user(f"nothing was logged: {error.faults[0]}")
            return {}

    def _flatten_metrics(self) -> dict[str, dict[str, float]]:
        rows = self._metrics.filter(pc.field(C.SLICE) == C.ALL_USERS).to_pylist()
        return trackers.flatten_metrics(rows, self.request.measure_set.measures)

    def cached(self) -> Self:
        """Compute the rows of users once for all results that are used afterwards.

        ``with result.cached():`` keeps them until the outermost block ends; without ``with`` they are kept until
        :meth:`release`. In this process results are computed once in any case.
        """
        self.host.keep()
        return self

    def release(self) -> None:
        """Release the rows that :meth:`cached` keeps, if any; results that need them again compute them again."""
        self._n_blocks = 0
        self.host.release()

    def __enter__(self) -> Self:
        """Keep the rows of users until the block ends."""
        self._n_blocks += 1
        return self.cached()

    def __exit__(self, *_: object) -> None:
        """Release them with the outermost block."""
        self._n_blocks -= 1
        if self._n_blocks <= 0:
            self.release()

    @raise_as_call()
    def gap_tests(
        self,
        *,
        measures: Sequence[object] | None = None,
        replicates: int = 1000,
        seed: int = 0,
        correction: Correction = "holm",
    ) -> Frame:
        """Test whether all groups of each slicing have the same mean; their distributions may differ.

        The means of the groups are computed at once, to know which groups there are; on Spark use it inside
        :meth:`cached`. It costs one random number for each user, slicing and replicate. Each partition passes on 24
        bytes for each group, measure, cutoff and replicate: name the measures that matter.

        Parameters
        ----------
        measures : sequence of str or function, optional
            Such as ``["nDCG@10"]``: some of the evaluation's, all means of users where left out.
        replicates : int
            Random draws of the users, 100 to 100000.
        seed : int
            Seed of the draws, which are hashes of it, the user and the replicate: the same on every partitioning.
        correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
            What is done about the number of tests, which are one family.

        Returns
        -------
        Frame
            ``model_id, slice, measure, k, n_groups, gap, p_value, p_adjusted, correction, family_size, replicates,
            reason``. Small groups and users of unknown segment are left out, as in :attr:`gaps`; with fewer than two
            groups gap and p are NULL and the reason is ``few_groups``. p is NULL where a group has fewer than 20 users
            with a value above 0, or only equal values, for the reason ``few_values``, or where squares leave the range
            of a double, ``out_of_range``. ``p_adjusted`` is NULL, for the reason ``replicates``, where so many tests
            with so few replicates could not have found anything.

        Raises
        ------
        ConfigError
            If there are no slices, or an argument is not valid; all faults at once.

        Notes
        -----
        ``p = (1 + #{t* >= t}) / (1 + B)`` of B replicates, t being the greatest difference of two groups over its
        standard error. In each replicate the users of each group are drawn again with Poisson weights. t* is that of
        the distances to the means of the groups. Simulated sizes are in docs/slices.md.
        """
        named = [*map(name_measure, measures)] if isinstance(measures, list | tuple) else measures
        given = {"measures": named, "replicates": replicates, "seed": seed, "correction": correction}
        asked = self._validate_gap_tests(given)
        gaps = gap_rows.find_gaps(self._metrics, asked)
        tests = {GAP_TESTS: sums.GapTests(gap_rows.GapBootstrap.from_request(gaps, self.request, asked.draws))}
        with self._progress() as advance:
            found = self.host.totals(tests, advance=advance)[GAP_TESTS]
        rows = gap_rows.to_gap_test_rows(gaps, found, asked, alpha=1 - self.request.intervals.confidence)
        return self.host.frame(ResultTable(rows, "gap_tests"))

    def _validate_gap_tests(self, given: Mapping[str, Any]) -> GapTests:
        """Validate the arguments of :meth:`gap_tests`, and find its measures; ConfigError with all faults."""
        place, request = locate_in_call("gap_tests"), self.request
        asked = validate_model(GapTests, given, locate=place)
        if request.policies.unit == "list" and not self.host.has_one_list:
            found, expected = "users with several lists, and means over lists", "means over users"
            raise ConfigError(Fault("gap_tests", found, expected, "evaluate with unit='user'"))
        measures = request.measure_set
        testable = [
            str(measure)
            for measure in measures.per_list
            if measure.column in measures.comparable and measure.weight_column is None
        ]
        others = {str(measure) for measure in measures.measures} - {*testable}
        faults = []
        if not request.slices:
            faults.append(Fault("evaluate(slices=)", "none", "segments whose groups are compared"))
        for index, name in enumerate(asked.measures or ()):
            where = place(("measures", index))
            if name in others:
                faults.append(Fault(where, repr(name), "a measure that is a mean over users"))
            elif name not in testable:
                expected = f"a measure of the evaluation: {', '.join(testable)}"
                faults.append(Fault(where, repr(name), expected, nearest(name, testable)))
        if not testable and not asked.measures:
            faults.append(Fault(place(("measures",)), "none", "a measure that is a mean over users"))
        if faults:
            raise ConfigError(*faults)
        return asked.model_copy(update={"measures": tuple(testable) if asked.measures is None else asked.measures})

    @raise_as_call()
    def leaderboard(self, k: int | None = None) -> Frame:
        """Models and their means over all users, best first by the first measure.

        The highest value is first for a measure such as ARP, where neither side is better.

        Parameters
        ----------
        k : int, optional
            Only the measures at this cutoff; all of them where left out.

        Returns
        -------
        Frame
            ``model_id``, ``n_users`` (the most users that one of these means covers) and a column a measure, named as
            the measure, such as ``nDCG@10``.
        """
        measures = [measure for measure in self.request.measure_set.measures if k in (None, measure.k)]
        if not measures:
            cutoffs = ", ".join(map(str, sorted({measure.k for measure in self.request.measure_set.measures})))
            raise ConfigError(Fault("leaderboard(k=)", repr(k), f"a requested cutoff: {cutoffs}"))
        return self.host.frame(self._build_leaderboard(measures))

    @raise_as_call()
    def compare(self, model: str, other: str, *, measure: object = None) -> ModelComparison:
        """Compare two models by one measure, in a paragraph: which is better, how surely, for which users and slices.

        Parameters
        ----------
        model, other : str
            The models; the difference is that of the first from the second.
        measure : str or function, optional
            Such as ``"nDCG@10"``, or a measure of your own; the first primary measure where left out.

        Returns
        -------
        ModelComparison
            It shows itself as text. ``row`` has the numbers over all users, ``table`` those of the slices too. They are
            rows of :attr:`comparisons` where that has the two models, and else computed for this pair alone: p is then
            corrected within the tests of the pair. In this process that takes another pass over the lists, on Spark a
            job.

        Raises
        ------
        ConfigError
            If one is no model of the evaluation, both are the same, or the measure cannot be compared.
        """
        faults = model_faults({"compare(model=)": model, "compare(other=)": other}, self._models())
        if model == other:
            faults.append(Fault("compare(other=)", f"{other!r}, the same model", "another model"))
        if faults:
            raise ConfigError(*faults)
        found = rows_of_pair(self._totals.get(COMPARISONS, sums.Differences.schema.empty_table()), model, other)
        note = ""
        if not found:
            found, note = self._compare_pair(model, other), "p is corrected for the tests of these two models alone."
            if self.request.comparisons is not None:
                note = f"Comparisons of the evaluation do not have this pair: {note}"
        comparable = self.request.measure_set.comparable
        requested = [(each.label, each.k) for each in self.request.measure_set.per_list if each.column in comparable]
        with registry.knowing(self.request.own):
            chosen = choose_measure(found, requested, name_measure(measure))
            rows = [row for row in found if (row[C.MEASURE], row[C.K]) == chosen]
            return ModelComparison(rows, sums.Differences.schema, note, own=self.request.own)

    def _compare_pair(self, model: str, other: str) -> list[Row]:
        """Compute the comparison of two models that the evaluation does not have, and keep it."""
        if (model, other) not in self._pairs:
            asked = self.request.comparisons or Comparisons(baseline=other)
            split = asked.split if other in (asked.split or ()) else None
            named = Comparisons(baseline=other, correction=asked.correction, margin=asked.margin, split=split)
            request = self.request.copy_with(comparisons=named, primary=self.request.primary)
            differences = sums.Differences(request, self.host.job.outputs, self._metrics, model)
            rows = sort_by_key(self.host.totals({_PAIR: differences})[_PAIR], _METRICS_KEY)
            self._pairs[model, other] = rows.to_pylist()
        return self._pairs[model, other]

    @raise_as_call()
    def agreement(self, baseline: str, *, k: int = 10, p: float = 0.9) -> Frame:
        """Agreement of each model's lists with a baseline's: Overlap, Jaccard and RBO, user by user.

        As measures, ``Overlap(model='popular')@10``, they are in all results; here are all users with two lists.

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
        Frame
            ``model_id, user_id`` [, ``list_id``] and in [0, 1] ``overlap`` (common items / k), ``jaccard`` and ``rbo``
            (extrapolated); a row per list of another model whose user got one of the baseline too.

        Raises
        ------
        ConfigError
            If the baseline is no model of the evaluation, or k or p is out of range; all faults at once.
        """
        faults = model_faults({"agreement(baseline=)": baseline}, self._models())
        given: dict[str, object] = {"k": k, "p": p}  # of any type in a call
        if not isinstance(given["k"], Integral) or isinstance(k, bool) or not 1 <= k <= MAX_CUTOFF:
            faults.append(Fault("agreement(k=)", repr(k), f"a whole number from 1 to {MAX_CUTOFF}"))
        if not isinstance(given["p"], Real) or not 0 < p < 1:
            faults.append(Fault("agreement(p=)", repr(p), "a number above 0 and below 1"))
        if faults:
            raise ConfigError(*faults)
        return self.host.agreement(baseline, k=int(k), p=float(p))

    @raise_as_call()
    def hit_ranks(self, model: str, baseline: str) -> Frame:
        """At which rank each of two models had the hits of every user.

        Parameters
        ----------
        model, baseline : str
            The models.

        Returns
        -------
        Frame
            ``user_id, list_id, item_id, gain, baseline_rank, rank``: a row per list and relevant item (a gain of at
            least 1) that at least one of the two recommended. A rank is NULL where that model did not, and the best one
            of several. With attribution, an item may be relevant under one of the two only, or have two gains: it has a
            row with both ranks, and the larger gain. Lists are those of :attr:`ranked_items`, in the population or not.

        Raises
        ------
        ConfigError
            If one is no model of the evaluation, or both are the same.
        """
        faults = model_faults({"hit_ranks(model=)": model, "hit_ranks(baseline=)": baseline}, self._models())
        if model == baseline:
            faults.append(Fault("hit_ranks(baseline=)", f"{baseline!r}, the same model", "another model"))
        if faults:
            raise ConfigError(*faults)
        return self.host.hit_ranks(self.ranked_items, model, baseline)

    @raise_with_words({"evaluate(measures=)": "explain(measure=)"})
    @raise_as_call()
    def explain(
        self, user: object, measure: object, *, model: str | None = None, list_id: str | None = None
    ) -> Explanation:
        """Explain the value of a user's list: what each rank adds, the ideal list, and the sums.

        Only the rows of that user are read again, at one job of Spark; the number is what :attr:`user_metrics` has.

        Parameters
        ----------
        user : str or int
            Id of the user.
        measure : str or function
            Any measure that has values of lists and that the inputs allow, with its cutoff, such as ``"nDCG@10"``: of
            the evaluation or not.
        model : str, optional
            The model whose list it is; needed where there are several.
        list_id : str, optional
            The list, where the user has several of that model.

        Returns
        -------
        Explanation
            Its text shows all; ``value``, ``table`` (a row a rank), ``ideal`` and ``numbers`` are for further use. The
            column ``contribution`` adds up to the value where the measure is a sum over ranks, with
            ``numbers["constant"]`` if there is one; elsewhere ``after`` is the value of the list down to each rank.

        Raises
        ------
        ConfigError
            If there is no such user, measure, model or list, or several lists and none is named.
        InputError
            If the measure needs an input, or a column of one, that the evaluation does not have.

        Examples
        --------
        >>> import pandas as pd
        >>> from rankeval_spark import evaluate
        >>> log = pd.DataFrame({"user_id": 1, "item_id": ["a", "b", "c"], "rank": [1, 2, 3]})
        >>> held_out = pd.DataFrame({"user_id": 1, "item_id": ["b", "c"]})
        >>> evaluate(log, held_out, measures=["nDCG@3"]).explain(1, "nDCG@3")
        nDCG@3 = 0.6934 for user 1
        DCG@k / IDCG@k
        rank  item_id  gain  discount    term  contribution
           1  a                        0.0000        0.0000
           2  b           1    0.6309  0.6309        0.3869
           3  c           1    0.5000  0.5000        0.3066
        sum of terms 1.1309, divided by 1.6309: 0.6934
        R = 2 of 2 judged items are relevant; 3 places down to rank 3, hits: 2
        <BLANKLINE>
        the ideal list, sum of terms 1.6309
        rank  item_id  gain  discount    term
           1  b           1    1.0000  1.0000
           2  c           1    0.6309  0.6309
        """
        # A row of a frame of numbers has whole ids as floats
        models, name = self._models(), f"{user:.0f}" if isinstance(user, float) and user.is_integer() else str(user)
        asked, own = self._find_explained(measure, models)
        faults = [] if model is None else model_faults({"explain(model=)": model}, models)
        if model is None and len(models) > 1:
            faults = [Fault("explain(model=)", "none", f"one of: {', '.join(models)}")]
        if faults:
            raise ConfigError(*faults)
        named = None if list(models) == [C.ONE_MODEL] else tuple(models)
        changes = {"models": named, "measure_set": MeasureSet.of([asked]), "own": own}
        changes |= {"slices": (), "comparisons": None}
        host = self.host.of_users([name], self.request.copy_with(**changes))
        rows = host.totals({sums.TRACES: sums.Traces(asked)})[sums.TRACES]
        if not rows.num_rows:
            similar = self.host.similar_users(name)
            is_there, fix = name in similar, "" if name in similar else nearest(name, similar)
            found = f"{user!r}, without a judgement or an item that counts" if is_there else repr(user)
            raise ConfigError(Fault("explain(user=)", found, "a user of the recommendations or judgements", fix))
        rows = rows.filter(pc.equal(rows[C.MODEL_ID], model or models[0]))
        lists = sorted(pc.unique(rows[C.LIST_ID]).to_pylist())
        if not lists:
            found = f"{model!r}, without a list for the user, who has no judgement"
            raise ConfigError(Fault("explain(model=)", found, "a model that gave the user a list"))
        chosen = lists[0] if list_id is None and len(lists) == 1 else list_id
        if chosen not in lists:
            found = f"none of {len(lists)} lists" if list_id is None else repr(list_id)
            expected = "none: there are no lists by name" if lists == [C.ONE_LIST] else f"one of: {listed('', lists)}"
            raise ConfigError(Fault("explain(list_id=)", found, expected, nearest(list_id or "", lists)))
        rows = rows.filter(pc.equal(rows[C.LIST_ID], chosen))
        items = sorted(set(rows[C.ITEM_ID].drop_null().to_pylist()))
        return Explanation(asked, rows, self.request.policies, self.host.titles(items))

    def _find_explained(self, measure: object, models: Sequence[str]) -> tuple[Measure, tuple[Definition, ...]]:
        """Find the measure of a text or a function, and the own measures that are known where it is computed.

        ConfigError unless lists have values of it, and it goes with the policies and the models.
        """
        place, known = "explain(measure=)", {str(each): each for each in self.request.measure_set.per_list}
        (text,), functions, faults = own_measures([measure], place)
        if faults:
            raise ConfigError(*(replace(fault, where=place) for fault in faults))
        own = (*functions, *self.request.own)
        if (found := known.get(str(text))) is not None:
            return found, own
        with registry.knowing(own):
            asked = Measure.parse(str(text), where=place, defaults=options_of(self.request.preset))
        if str(asked) not in known:
            if not asked.has_user_values:
                expected = f"a measure with values of lists, such as {next(iter(known), 'nDCG@10')}"
                raise ConfigError(Fault(place, repr(text), expected))
            faults = misfits(MeasureSet.of([asked]), self.request.policies, models, self.request.preset)
            if faults:
                raise ConfigError(*(replace(fault, where=place) for fault in faults))
        return known.get(str(asked), asked), own

    def _build_leaderboard(self, measures: Sequence[Measure]) -> ResultTable:
        """Return the leaderboard of some measures, best first by the first, with the comparisons of its models."""
        names = {(measure.label, measure.k): str(measure) for measure in measures}
        rows = to_leaderboard(self._metrics, names, is_lower_better=measures[0].better == "lower")
        notes, compared = note_partial_means(self._metrics, names), self._totals.get(COMPARISONS)
        return ResultTable(rows, "leaderboard", comparisons=compared, own=self.request.own, notes=notes)

    def _progress(self) -> AbstractContextManager[Advance]:
        """Show what is computed within a block, from two seconds on."""
        asked = shortened(", ".join(map(str, self.request.measure_set.measures)))
        return show_progress(
            f"{asked} on Spark" if self.host.is_on_spark else asked, has_rows=not self.host.is_on_spark
        )

    @raise_as_call()
    def _models(self) -> Sequence[str]:
        return self.host.models

    @cached_property
    @raise_as_call()
    def _totals(self) -> dict[str, pa.Table]:
        """All sums, from one pass at the first use."""
        with self._progress() as advance:
            found = self.host.totals(self.host.sums, advance=advance)
        self.host.warn_of_left_out(found)
        return found

    @property
    def _list_facts(self) -> list[CheckCount]:
        return to_list_facts(
            self._totals[LISTS], self.request, self._totals.get(METRICS), self._totals.get(COMPARISONS)
        )

    @cached_property
    @raise_as_call()
    def _metrics(self) -> pa.Table:
        found = sort_by_key(to_metrics(self._totals, self.request), _METRICS_KEY)
        self.host.warn(found, self._totals)
        if self.request.measure_set.weighing:
            _warn_of_weights(self._list_facts)
        return found

    @cached_property
    def _group_metrics(self) -> pa.Table:
        with registry.knowing(self.request.own):
            return to_group_table(self._metrics)


def _warn_of_withheld(comparisons: pa.Table) -> None:
    """Warn of models that are not compared because they serve other users, and of users of both arms of an A/B test."""
    why = {
        (row[C.MODEL_ID], row[C.BASELINE_MODEL_ID]): f"is {text}"
        if (text := why_withheld(row))
        else f"is unpaired: {shared}"
        for row in comparisons.filter(pc.field(C.SLICE) == C.ALL_USERS).to_pylist()
        if (shared := describe_shared_users(row)) or why_withheld(row)
    }
    for (model, baseline), text in why.items():
        warn_user(f"the comparison of {model!r} with {baseline!r} {text}")


def _warn_of_split(facts: Sequence[CheckCount]) -> None:
    """Warn of an A/B test whose models do not have the shares of users that they are meant to have."""
    for fact in facts:
        if fact.check == SAMPLE_RATIO and judge_fact(fact, Checks()).verdict != "ok":
            words = "; ".join(fact.sample_keys)
            warn_user(f"{fact.check}: {fact.count:,} users too many ({words}); {ADVICE[fact.check]}")


def _warn_of_weights(facts: Sequence[CheckCount]) -> None:
    """Warn of estimates from impressions that do not say what they seem to."""
    for fact in facts:
        if fact.check in OF_WEIGHTS and judge_fact(fact, Checks()).verdict != "ok":
            expected, fix = OF_WEIGHTS[fact.check], ADVICE[fact.check]
            found = f"{fact.count:,} of {fact.total:,}, such as " if fact.check == TARGET_SUMS else ""
            warn_user(f"{fact.check}: {found}{'; '.join(fact.sample_keys)}; expected {expected}; {fix}")
