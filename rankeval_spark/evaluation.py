"""What an evaluation has to offer, whichever host computes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from rankeval_spark.config.gap_tests import gap_test_request
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import MAX_CUTOFF
from rankeval_spark.report import notebook

if TYPE_CHECKING:
    from typing import Self

    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import Measure
    from rankeval_spark.report.notebook import Plots
    from rankeval_spark.statistics.multiple_testing import Correction

Frame = TypeVar("Frame", default=Any)
"""``pyspark.sql.DataFrame`` on Spark, ``pyarrow.Table`` in this process."""


class Evaluation(ABC, Generic[Frame]):
    """The results of :func:`evaluate`, computed when they are used.

    Results of Spark are DataFrames. Small ones (``metrics``, ``comparisons``, ``group_metrics``, ``gaps``, ``checks``,
    ``leaderboard()``) are made by one job at the first use of one of them, and kept. Rows of users and items are
    planned again at each use. Results of this process are Arrow tables, computed once, in the order of their keys.
    """

    request: Request

    def __repr__(self) -> str:
        """Name what was requested and where the results are; nothing is computed for it."""
        asked = ", ".join(map(str, self.request.measures.measures))
        results = [name for name in vars(Evaluation) if isinstance(getattr(Evaluation, name), property)]
        named = ", ".join(name for name in results if not name.startswith("_") and name not in ("plot", "notes"))
        notes = "".join(f"\nnote: {note}" for note, kind in self.request.notes.items() if kind != "options")
        return (
            f"{type(self).__name__} of {asked}\nresults: leaderboard(), {named}, gap_tests(), agreement(), hit_ranks()"
            f"{notes}"
        )

    def _repr_html_(self) -> str:
        """Show in a notebook what was requested, and the leaderboard if it is known; nothing is computed for it."""
        return notebook.summary(self.request, type(self).__name__, self._known_leaderboard())

    @property
    def notes(self) -> tuple[str, ...]:
        """What measures are whose names have several meanings in other tools, such as MRR and HR."""
        return tuple(self.request.notes)

    @property
    def plot(self) -> Plots:
        """Figures of the results: ``plot.leaderboard()``, ``plot.forest()``, ``plot.curves()`` and more.

        They need the extra ``report``; each is a chart of Altair, to be shown, changed or saved.
        """
        from rankeval_spark.report.notebook import Plots  # noqa: PLC0415 - whoever draws nothing does not pay for it

        return Plots(self)

    @property
    @abstractmethod
    def user_metrics(self) -> Frame:
        """One row per list and cutoff, a column a measure: ``schemas.USER_METRICS`` from ``model_id`` on."""

    @property
    @abstractmethod
    def user_values(self) -> Frame:
        """The same values long: ``model_id, user_id, list_id, measure, k, value``."""

    @property
    @abstractmethod
    def metrics(self) -> Frame:
        """Means with health counts and intervals: ``schemas.METRICS`` from ``model_id`` on."""

    @property
    @abstractmethod
    def group_metrics(self) -> Frame:
        """How the groups of each slicing, or of items, compare: ``schemas.GROUP_METRICS`` from ``model_id`` on.

        Rows ``GroupGap(...)``, ``GroupRatio(...)``, ``UserMAD(...)``, ``WorstGroup(...)`` and ``ItemMAD(...)``; none
        without slices and item slices.
        """

    @property
    @abstractmethod
    def ranked_items(self) -> Frame:
        """The lists as they are measured: ``model_id, user_id, list_id, item_id, rank, gain, is_relevant``.

        One row per list and item, after copies and items that policies leave out are gone; the answer to "why does this
        user score 0?". ``gain`` is NULL for an item without a judgement, ``is_relevant`` true from a gain of 1 on.
        """

    @property
    @abstractmethod
    def comparisons(self) -> Frame:
        """Models against a baseline on the same users: ``schemas.COMPARISONS`` from ``baseline_model_id`` on.

        Models that serve different users have no difference and no verdict, for the reason ``few_common_lists``, and
        those that answer different judged lists none for ``few_common_judged_lists``; ``population="run"`` gives the
        means of each model's own users.

        Raises
        ------
        ConfigError
            If neither ``baseline=`` nor ``pairs="all"`` was given, or the baseline is none of the models.
        """

    @property
    @abstractmethod
    def gaps(self) -> Frame:
        """How far the groups of each slicing lie apart: gap with interval, ratio, mean difference, both extremes.

        One row per model, slice, measure and cutoff; small groups and users of unknown segment are left out.
        """

    @property
    @abstractmethod
    def checks(self) -> Frame:
        """What was found in the inputs: ``schemas.CHECKS`` from ``input`` on."""

    def cached(self) -> Self:
        """Compute the rows of users once for all results that are used from now on.

        ``with result.cached():`` keeps them until the outermost block ends; without ``with`` they are kept until
        :meth:`release`. In this process results are computed once in any case.
        """
        return self

    def release(self) -> None:
        """Release the rows that :meth:`cached` keeps, if any; results that need them again compute them again."""

    def __enter__(self) -> Self:
        """Keep the rows of users until the block ends."""
        return self.cached()

    def __exit__(self, *_: object) -> None:
        """Release them with the outermost block."""
        self.release()

    def gap_tests(
        self,
        *,
        measures: Sequence[str] | None = None,
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
        measures : sequence of str, optional
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
        standard error. In each replicate the users of each group are drawn anew with Poisson weights, and t* is that of
        the distances to the means of the groups. Simulated sizes are in docs/slices.md.
        """
        given = {"measures": measures, "replicates": replicates, "seed": seed, "correction": correction}
        return self._gap_tests(gap_test_request(given, self.request, has_one_list=self._has_one_list))

    def leaderboard(self, k: int | None = None) -> Frame:
        """Models and their means over all users, best first by the first measure.

        Of a measure such as ARP, of which neither side is better, the highest value is first.

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
        measures = [one for one in self.request.measures.measures if k in (None, one.k)]
        if not measures:
            cutoffs = ", ".join(map(str, sorted({one.k for one in self.request.measures.measures})))
            raise ConfigError(Fault("leaderboard(k=)", str(k), f"a cutoff that was asked for: {cutoffs}"))
        return self._leaderboard(measures)

    def agreement(self, baseline: str, *, k: int = 10, p: float = 0.9) -> Frame:
        """How much the lists of each model agree with those of a baseline: Overlap, Jaccard and RBO, user by user.

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
        faults = _model_faults({"agreement(baseline=)": baseline}, self._model_names())
        faults += [
            Fault(f"agreement({name}=)", repr(found), expected)
            for name, found, expected, is_right in (
                ("k", k, f"a whole number from 1 to {MAX_CUTOFF}", _is_whole(k) and 1 <= k <= MAX_CUTOFF),
                ("p", p, "a number above 0 and below 1", _is_real(p) and 0 < p < 1),
            )
            if not is_right
        ]
        if faults:
            raise ConfigError(*faults)
        return self._agreement(baseline, k=int(k), p=float(p))

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
        faults = _model_faults({"hit_ranks(model=)": model, "hit_ranks(baseline=)": baseline}, self._model_names())
        if model == baseline:
            faults.append(Fault("hit_ranks(baseline=)", f"{baseline!r}, the same model", "another model"))
        if faults:
            raise ConfigError(*faults)
        return self._hit_ranks(model, baseline)

    def _known_leaderboard(self) -> list[dict[str, Any]] | None:
        """Return the rows of the leaderboard if no job has to run for them."""
        return None

    @property
    @abstractmethod
    def _has_one_list(self) -> bool:
        """Return True if no user has several lists of a model."""

    @abstractmethod
    def _leaderboard(self, measures: Sequence[Measure]) -> Frame: ...

    @abstractmethod
    def _agreement(self, baseline: str, *, k: int, p: float) -> Frame: ...

    @abstractmethod
    def _model_names(self) -> Sequence[str]:
        """Return the models of the evaluation: those named, or those of the log."""

    @abstractmethod
    def _hit_ranks(self, model: str, baseline: str) -> Frame: ...

    @abstractmethod
    def _gap_tests(self, gap_request: GapTestRequest) -> Frame: ...


def no_comparisons() -> ConfigError:
    """Say that no comparison was requested."""
    fix = "call evaluate(..., baseline='popular')"
    return ConfigError(Fault("evaluate(baseline=)", "none", "the model that others are compared with", fix))


def refuse_unknown_baseline(request: Request, models: Sequence[str], *, where: str = "evaluate(baseline=)") -> None:
    """Refuse a baseline that the log does not name; one that is among the expected models may have no list.

    Parameters
    ----------
    models : sequence of str
        Names of the models; an empty log names none, and refuses none.
    where : str
        Argument or key that names the baseline.
    """
    baseline = None if request.comparisons is None else request.comparisons.baseline
    faults = _model_faults({where: baseline}, models) if request.models is None and baseline else []
    if faults:
        raise ConfigError(*faults)


def _is_real(number: object) -> bool:
    return isinstance(number, Real)


def _is_whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _model_faults(wanted: Mapping[str, str], models: Sequence[str]) -> list[Fault]:
    """Find models, by the argument that names each, that an evaluation does not have; an empty log has any."""
    expected = f"a model of the log: {', '.join(models)}"
    return [
        Fault(place, repr(name), expected, nearest(name, models))
        for place, name in wanted.items()
        if models and name not in models
    ]
