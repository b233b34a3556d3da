"""What the named queries of published results choose: a night, a measure, one side of a difference between users."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, InputError, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report.defaults import chosen_evaluations, is_lower_better, named, newest_nights
from rankeval_spark.result_rows.leaderboard import to_leaderboard
from rankeval_spark.results.published_results import as_list

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.config.recorded_definitions import RecordedDefinition
    from rankeval_spark.results.published_results import Values
    from rankeval_spark.results.storage.requested_rows import Filters, Order, Requested

PREVIOUS: Final = "previous"
COUNTS: Final = (C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS)
USERS: Final = (C.USER_ID, C.VALUE, *COUNTS)
OTHER: Final = "other_"
PAIRED: Final = (C.USER_ID, C.VALUE, f"{OTHER}{C.VALUE}", "delta", *(x for n in COUNTS for x in (n, f"{OTHER}{n}")))
HISTORY: Final = (
    C.EVALUATION_DATE,
    C.MODEL_ID,
    C.SLICE,
    C.SLICE_VALUE,
    C.VALUE,
    "ci_low",
    "ci_high",
    "n_users",
    "is_small",
    C.RUN_ID,
    "definition",
)


class ChosenNight(NamedTuple):
    """One evaluation on one date."""

    evaluation: str
    date: date

    @property
    def named(self) -> dict[str, Any]:
        """Arguments of the methods of ``Results``."""
        return self._asdict()

    @property
    def where(self) -> Filters:
        """Conditions that its rows meet."""
        return [(C.EVALUATION, "=", self.evaluation), (C.EVALUATION_DATE, "=", self.date)]


@dataclass(frozen=True)
class UserSide:
    """The values of users under one model on one night, of one measure at one cutoff.

    Attributes
    ----------
    run_id : str
        The run that wrote them.
    measure : tuple of str and int
        Label and cutoff of the measure.
    column : str
        Column of the measure in ``user_metrics``.
    is_lower_better : bool
        Whether lower values are better ones.
    """

    night: ChosenNight
    model_id: str
    run_id: str
    measure: tuple[str, int]
    column: str
    is_lower_better: bool

    @property
    def equal(self) -> dict[str, Any]:
        """Columns of ``user_metrics`` and the values that they must have."""
        return {C.MODEL_ID: self.model_id, C.K: self.measure[1]}

    @property
    def worst_first(self) -> Order:
        """Order of single users: the worst value, then most to find, then the id."""
        return [(C.VALUE, self._worst), (C.N_RELEVANT, "desc"), (C.USER_ID, "asc")]

    @property
    def losses_first(self) -> Order:
        """Order of differences: the greatest loss, then the id; users of one side alone come last."""
        return [("delta", self._worst), (C.USER_ID, "asc")]

    @property
    def _worst(self) -> str:
        return "desc" if self.is_lower_better else "asc"


def choose_night(
    nights: Sequence[tuple[str, date]], evaluation: str | None, day: date | None = None, *, argument: str = "date"
) -> ChosenNight:
    """Choose a night of the one evaluation, or of the one that is named; the newest where no date is given.

    A sample of the users counts as an evaluation only where it is named, or nothing else is there.

    Parameters
    ----------
    nights : sequence of tuple
        Evaluations and dates with means.
    argument : str
        Which argument of the user the date is, for the message.

    Raises
    ------
    ConfigError
        There are several evaluations and none is named, or the named one or the date is not there.
    """
    names = sorted({name for name, _ in nights})
    chosen = chosen_evaluations(names, evaluation)
    if evaluation is None and len(chosen) == 1:
        evaluation = chosen[0]
    if evaluation not in names:
        expected = f"one of: {', '.join(names)}" if names else "a night with means, but there is none"
        raise ConfigError(Fault("evaluation", repr(evaluation), expected, nearest(evaluation or "", names)))
    days = sorted(own for name, own in nights if name == evaluation)
    if day is not None and day not in days:
        raise ConfigError(Fault(argument, str(day), f"a night of {evaluation}: {days[0]} to {days[-1]}"))
    return ChosenNight(evaluation, day or newest_nights(dict.fromkeys(nights, True), evaluation)[evaluation])


def earlier_night(nights: Sequence[tuple[str, date]], night: ChosenNight, against: date | str) -> ChosenNight | None:
    """Choose the night that a night is held against; None where ``against`` names a model.

    Raises
    ------
    InputError
        There is no earlier night.
    """
    if against == PREVIOUS:
        earlier = [day for name, day in nights if name == night.evaluation and day < night.date]
        if not earlier:
            found = f"no night of {night.evaluation} before {night.date}"
            raise InputError(Fault("against='previous'", found, "an earlier one"))
        return ChosenNight(night.evaluation, max(earlier))
    try:
        day = against if isinstance(against, date) else date.fromisoformat(against)
    except ValueError:
        return None
    return choose_night(nights, night.evaluation, day, argument="against")


def user_side(
    measure: str, model_id: str, night: ChosenNight, *, run_id: str, computed: Collection[Requested]
) -> UserSide:
    """Choose the values of users under a model.

    Raises
    ------
    ConfigError
        The night has no such measure with values of users.
    """
    of_users = {(one.measure, one.k): one.column for one in computed if one.column is not None}
    found = named(measure, list(of_users))
    return UserSide(night, model_id, run_id, found, of_users[found], is_lower_better(found[0]))


def require_same_definition(side: UserSide, other: UserSide, definitions: Mapping[str, RecordedDefinition]) -> None:
    """Refuse two nights that computed a measure with other options or policies.

    Parameters
    ----------
    definitions : mapping
        How each run computed it, by the id of the run.
    """
    own, then = definitions[side.run_id], definitions[other.run_id]
    if own != then:
        name, day = with_cutoff(*side.measure), other.night.date
        found = f"{day}, when {name} was computed with {', '.join(then.without(own)) or 'other settings'}"
        expected = f"as on {side.night.date}: {', '.join(own.without(then)) or 'without these'}"
        raise ConfigError(Fault("against", found, expected, "run one of the nights again with the config of the other"))


def require_models(given: Values, models: Collection[str], *, argument: str = C.MODEL_ID) -> None:
    """Refuse the name of a model that has no row."""
    known = sorted(set(models))
    for name in as_list(given):
        if name not in known:
            raise ConfigError(Fault(argument, repr(name), f"one of: {', '.join(known)}", nearest(str(name), known)))


def of_run(computed: Mapping[Requested, Collection[str]], run_ids: Collection[str]) -> list[Requested]:
    """Keep the measures that the runs computed whose rows are there."""
    return [one for one, runs in computed.items() if not set(runs).isdisjoint(run_ids)]


def leaderboard(metrics: pa.Table, computed: Iterable[Requested], k: int | None) -> pa.Table:
    """Put the means of each model into one row, best first.

    Raises
    ------
    ConfigError
        Nothing was computed at the cutoff.
    """
    known = [(one.measure, one.k) for one in computed]
    wanted = [one for one in known if k in (None, one[1])]
    if not wanted:
        cutoffs = ", ".join(map(str, sorted({cutoff for _, cutoff in known})))
        raise ConfigError(Fault("leaderboard(k=)", str(k), f"a cutoff that was computed: {cutoffs}"))
    names = {one: with_cutoff(*one) for one in wanted}
    return to_leaderboard(metrics, names, is_lower_better=is_lower_better(wanted[0][0]))


def require_positive(n: int) -> None:
    """Refuse what is no number of rows."""
    given: object = n
    if isinstance(given, bool) or not isinstance(given, Integral) or n < 1:
        raise ConfigError(Fault("n", repr(n), "a whole number, 1 or more"))
