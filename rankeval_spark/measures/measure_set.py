"""Several measures at several cutoffs, computed together."""

from __future__ import annotations

import math
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval_spark import schemas
from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.errors import ConfigError, Fault, FaultsError
from rankeval_spark.measures.arrays import Ratio, divide_or_zero, nan_unless
from rankeval_spark.measures.item_facts import require_fact
from rankeval_spark.measures.names import Measure, expand_name
from rankeval_spark.measures.own import compute
from rankeval_spark.measures.required_facts import DESCRIBED, LOG, MAX_GROUPS, PROPENSITIES, REQUIRES, USER_VALUES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import BoolMatrix, FloatMatrix
    from rankeval_spark.measures.lists import CutLists, Lists
    from rankeval_spark.measures.options import OptionValue


@cache
def mean_weight() -> Measure:
    """Return the mean weight of the impressions, by which estimates from them are checked."""
    return Measure.of("ImportanceWeight")


class MeasureSet:
    """The measures of a run, from :meth:`of` or :meth:`parse`.

    Labels, columns, cutoffs and scores are those of the measures that have a value for each list; ``exposures`` are
    the others, which are functions of all lists of a slice together.

    >>> requested = MeasureSet.parse(["nDCG@10", "P@5", "AP", "nDCG@5", "ItemCoverage@20"])
    >>> requested.labels, requested.columns, requested.ks
    (('nDCG', 'P', 'AP'), ('ndcg', 'p', 'ap'), (5, 10, 0))
    >>> [str(measure) for measure in requested.exposures]
    ['ItemCoverage@20']
    """

    def __init__(self, measures: tuple[Measure, ...]) -> None:
        """Keep the measures, and list the columns and cutoffs of those that have a value for each list."""
        self.measures = measures
        self.per_list = tuple(measure for measure in measures if measure.has_user_values)
        self.exposures = tuple(measure for measure in measures if not measure.has_user_values)
        # A measure of each column, in order of first mention; at its other cutoffs it has the same options
        self.by_column: Mapping[str, Measure] = {measure.column: measure for measure in self.per_list}
        self.columns = tuple(self.by_column)
        self.labels = tuple(measure.label for measure in self.by_column.values())
        # Cutoffs, ascending; 0 (the whole list) last. Without a measure per list, those at which lists are counted.
        self.ks = tuple(sorted({measure.k for measure in self.per_list or measures}, key=_cutoff_sort_key))
        self.last_cutoff = max((k for k in self.ks if k != WHOLE_LIST), default=WHOLE_LIST)
        requested = {(measure.column, measure.k) for measure in self.per_list}
        self.requested_ks: Mapping[str, tuple[int, ...]] = {
            column: tuple(k for k in self.ks if (column, k) in requested) for column in self.columns
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeasureSet) and self.measures == other.measures

    def __hash__(self) -> int:
        return hash(self.measures)

    @classmethod
    def of(cls, measures: Sequence[Measure]) -> MeasureSet:
        """Return the set of some measures; one that is named twice counts once.

        None at all, or two different ones that would share a column, are a ConfigError.
        """
        distinct = cls(tuple(dict.fromkeys(measures)))
        if not measures:
            raise ConfigError(Fault("measures", "none", "at least one, such as nDCG@10"))
        if len(distinct.groups) > MAX_GROUPS:
            found, fix = f"measures of {len(distinct.groups)} item groups", "evaluate some of them in another run"
            raise ConfigError(Fault("measures", found, f"at most {MAX_GROUPS}", fix))
        owners: dict[str, str] = {name: f"the column {name}" for name in schemas.USER_METRICS.field_names()}
        faults: list[Fault] = []
        for label, column in dict.fromkeys((measure.label, measure.column) for measure in distinct.per_list):
            owner = owners.setdefault(column, label)
            if owner != label:
                faults.append(Fault("measures", f"{label}, whose column {column!r} is that of {owner}", "one of them"))
        if faults:
            raise ConfigError(*faults)
        return distinct

    @classmethod
    def parse(
        cls,
        texts: Sequence[str],
        where: str = "measures",
        *,
        defaults: Mapping[str, Mapping[str, OptionValue]] = MappingProxyType({}),
    ) -> MeasureSet:
        """Read several measures, as :meth:`Measure.parse` does; the faults of all of them are reported at once.

        >>> MeasureSet.parse(["IPrecCurve"]).labels[:2]
        ('IPrec(recall=0)', 'IPrec(recall=0.1)')
        """
        measures: list[Measure] = []
        faults: list[Fault] = []
        for text in texts:
            try:
                measures += [Measure.parse(each, where=where, defaults=defaults) for each in expand_name(text)]
            except FaultsError as error:
                faults += error.faults
        if faults:
            raise ConfigError(*faults)
        return cls.of(measures)

    @cached_property
    def denominator_columns(self) -> Mapping[str, str]:
        """Column of the denominators of each measure that is a ratio of sums over users."""
        columns = ((column, measure.weight_column) for column, measure in self.by_column.items())
        return {column: denominators for column, denominators in columns if denominators}

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Columns of ``user_metrics`` that hold the measures: their values, then the denominators."""
        return (*self.columns, *self.denominator_columns.values())

    @cached_property
    def comparable(self) -> tuple[str, ...]:
        """Columns of measures that publish a mean of the users' values, or a ratio of sums over them."""
        return tuple(column for column, measure in self.by_column.items() if measure.link == "identity")

    @cached_property
    def without_hits(self) -> tuple[float, ...]:
        """Value of a user without a hit, in the order of the columns; 0 where such a user has no value."""
        values = (measure.without_relevant for measure in self.by_column.values())
        return tuple(0.0 if math.isnan(value) else value for value in values)

    @cached_property
    def needs(self) -> frozenset[str]:
        """Facts that the measures need."""
        return frozenset(need for measure in self.per_list for need in measure.needs)

    @cached_property
    def weighing(self) -> frozenset[str]:
        """Columns of the measures that weigh impressions by their propensities."""
        return frozenset(column for column, measure in self.by_column.items() if PROPENSITIES in measure.needs)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Item groups to which measures are restricted, in order of first mention: the bits of the judgements."""
        return tuple(dict.fromkeys(measure.group for measure in self.per_list if measure.group is not None))

    @cached_property
    def other_models(self) -> tuple[str, ...]:
        """Models with whose lists measures compare each list, in order of first mention."""
        models = (measure.other_model for measure in self.per_list)
        return tuple(dict.fromkeys(model for model in models if model is not None))

    @cached_property
    def user_value_names(self) -> tuple[str, ...]:
        """Names of the own values of users that measures read, in order of first mention."""
        reading = (measure for measure in self.per_list if USER_VALUES in measure.needs)
        return tuple(dict.fromkeys(str(measure.options["name"]) for measure in reading))

    def weighted_by_user(self) -> MeasureSet:
        """Return the same measures with the users' weights in the mean of each that has a value for each list."""
        return MeasureSet(tuple(measure.weighted_by_user() for measure in self.measures))

    @cached_property
    def item_depth(self) -> int:
        """Last rank whose item is described to a measure; 0 for the whole list, or if no item is."""
        described = (measure.k for measure in self.per_list if not DESCRIBED.isdisjoint(measure.needs))
        return max(described, key=_cutoff_sort_key, default=WHOLE_LIST)

    def is_requested_at(self, column: str) -> NDArray[np.bool_]:
        """Return, for each of ``ks``, whether the measure of a column is requested there."""
        return np.array([k in self.requested_ks[column] for k in self.ks])

    @cached_property
    def with_mean_weight(self) -> MeasureSet:
        """The set with :func:`mean_weight` as its last measure, where others weigh impressions.

        >>> MeasureSet.parse(["IPS"]).with_mean_weight.labels, MeasureSet.parse(["P@5"]).with_mean_weight.labels
        (('IPS', 'ImportanceWeight'), ('P',))
        """
        return MeasureSet(tuple(dict.fromkeys([*self.measures, mean_weight()]))) if self.weighing else self

    def requiring(self) -> dict[str, list[str]]:
        """Return the labels of the measures that need each value of :data:`required_facts.REQUIRES`.

        >>> MeasureSet.parse(["P@5", "MIUF@5", "MIUF@10"]).requiring()
        {'train': ['MIUF']}
        """
        found: dict[str, list[str]] = {}
        for label, needs in {measure.label: measure.needs for measure in self.measures}.items():
            for requirement in dict.fromkeys(given for need in needs for given in REQUIRES.get(need, ())):
                found.setdefault(requirement, []).append(label)
        return found

    def lacking(self, given: Collection[str]) -> dict[str, list[str]]:
        """Return the inputs that are missing, and the labels of the measures that read each.

        ``given`` says what there is: some of ``train``, ``items`` and ``evaluation_date``.

        >>> requested = MeasureSet.parse(["P@5", "MIUF@5", "ILD@5", "Calibration@5"])
        >>> requested.lacking(["items"])
        {'train': ['MIUF', 'Calibration']}
        """
        found: dict[str, list[str]] = {}
        for requirement, labels in self.requiring().items():
            found.setdefault(requirement.partition(".")[0], []).extend(labels)
        return {name: list(dict.fromkeys(labels)) for name, labels in found.items() if name not in (*given, LOG)}

    @np.errstate(over="ignore", invalid="ignore")  # of sums of gains of 1e308
    def score(self, lists: Lists, *, judged_only: bool = False) -> dict[str, FloatMatrix]:
        """Compute every measure that has a value for each list at every cutoff it is requested at.

        Returns a matrix (n_lists, len(ks)) by column: NaN where the measure is undefined for the list or not requested
        at the cutoff. A denominator, in the column of :attr:`weights`, is NaN where it was not requested, and for a
        user without a weight where users have them. With
        ``judged_only`` unjudged items have left the lists; of a measure with weights, items of weight 0 then leave too.

        >>> requested = MeasureSet.parse(["RR", "P@1", "P@2"])
        >>> requested.score(Lists.of([Ranking([None, 1])]))
        {'rr': array([[nan, nan, 0.5]]), 'p': array([[0. , 0.5, nan]])}
        """
        cuts: dict[Any, CutLists] = {}
        scores: dict[str, FloatMatrix] = {}
        for column, measure in self.by_column.items():
            view = (measure.is_judged_only or (judged_only and measure.is_weighted), measure.group, measure.is_weighted)
            # own measures are slow, or know nothing of other cutoffs
            is_builtin = measure.entry.is_builtin
            ks = self.ks if is_builtin else self.requested_ks[column]
            if (view, ks) not in cuts:
                cuts[view, ks] = restrict_lists(lists, *view).cut(ks)
            cut = cuts[view, ks]
            found = measure.entry.kernel(cut, **measure.kernel_options) if is_builtin else compute(measure, cut)
            values, is_requested = values_of(measure, cut.lists, found), self.is_requested_at(column)
            place = is_requested if is_builtin else slice(None)  # of the requested cutoffs among `ks`
            shape = (lists.n_lists, len(ks))
            if measure.weight_column is not None:
                below = found.denominator if measure.is_micro and isinstance(found, Ratio) else 1.0
                if measure.is_weighted_by_user:
                    below = below * require_fact(lists.user_weight, "has no weights of users")[:, None]
                weights = scores[measure.weight_column] = np.full((lists.n_lists, len(self.ks)), np.nan)
                weights[:, is_requested] = np.broadcast_to(below, shape)[:, place]
            # A copy, because a kernel may return an array that other kernels share.
            scores[column] = np.full((lists.n_lists, len(self.ks)), np.nan)
            scores[column][:, is_requested] = np.broadcast_to(values, shape)[:, place]
        return scores

    def can_have_value(self, lists: Lists, column: str) -> BoolMatrix:
        """Return which lists' users have a judgement that a measure could read: shape (n_lists, 1) or (1, 1).

        Without one in its item group a measure is undefined under any policy; without a group policies decide.
        """
        measure = self.by_column[column]
        if measure.group is None:
            return np.ones((1, 1), dtype=np.bool_)
        return restrict_lists(lists, False, measure.group, measure.is_weighted).has_judgements


def values_of(measure: Measure, lists: Lists, found: FloatMatrix | Ratio) -> FloatMatrix:
    """Return the values of lists from what the kernel of a measure found for them, as the measure views them."""
    values = found.values if isinstance(found, Ratio) else found
    if measure.group is not None and measure.entry.family != "prediction":  # whose ratings may be negative
        values = nan_unless(values, lists.has_judgements)
    if measure.is_micro and isinstance(found, Ratio):
        # The ratio of the parts, which are summed over users; `values` where a part is beyond a double.
        is_known = np.isfinite(found.numerator) & np.isfinite(found.denominator)
        quotients = np.where(is_known, divide_or_zero(found.numerator, found.denominator), values)
        values = nan_unless(quotients, ~np.isnan(values))
    return values


def restrict_lists(lists: Lists, is_judged_only: bool, group: str | None, is_weighted: bool) -> Lists:
    """View a batch as a restricted measure does: items leave the lists by all judgements, not by those of the group."""
    weighted = lists.weighted() if is_weighted else lists
    closed_up = weighted.judged_only() if is_judged_only else weighted
    return closed_up if group is None else closed_up.keep_group(group)


def _cutoff_sort_key(k: int) -> tuple[bool, int]:
    """Sort cutoffs ascending, 0 (the whole list) last."""
    return (k == WHOLE_LIST, k)
