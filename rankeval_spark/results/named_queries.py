"""Results of earlier runs: their tables, and frequent questions about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.recorded_definitions import recorded_definitions
from rankeval_spark.errors import ConfigError, Fault, InputError, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report.defaults import chosen_evaluations, is_lower_better, named, newest_nights
from rankeval_spark.result_rows.metric_rows import to_leaderboard
from rankeval_spark.results import views
from rankeval_spark.results.journal import PUBLISHED
from rankeval_spark.results.published_results import Day, Frame, PublishedResults, Values, as_day, as_list
from rankeval_spark.results.readers import is_native

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.config.recorded_definitions import RecordedDefinition
    from rankeval_spark.report.notebook import PublishedPlots
    from rankeval_spark.results.local_tables import Filters, Requested
    from rankeval_spark.results.published_results import Values


PREVIOUS: Final = "previous"
COUNTS: Final = (C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS)
USERS: Final = (C.USER_ID, C.VALUE, *COUNTS)
OTHER: Final = "other_"
PAIRED: Final = (C.USER_ID, C.VALUE, f"{OTHER}{C.VALUE}", "delta", *(x for n in COUNTS for x in (n, f"{OTHER}{n}")))
HISTORY: Final = (
    *(C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.VALUE, "ci_low", "ci_high", "n_users", "is_small"),
    *(C.RUN_ID, "definition"),
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
    """The values of users under one model on one night, of one measure at one cutoff."""

    night: ChosenNight
    model_id: str
    run_id: str  # the run that wrote them
    measure: tuple[str, int]  # label and cutoff of the measure
    column: str  # column of the measure in `user_metrics`
    is_lower_better: bool  # whether lower values are better ones

    @property
    def worst(self) -> str:
        """Sort order from the worst value."""
        return "desc" if self.is_lower_better else "asc"


class Results(PublishedResults[Frame]):
    """The results of earlier runs, pinned: another run may publish meanwhile, these rows do not change.

    ``Results(root)`` reads in this process, in which there need not be Spark, and gives Arrow tables; it takes a root
    on a local disk. ``Results(spark, root)`` gives DataFrames, wherever the root is.

    Parameters
    ----------
    spark : SparkSession, optional
        Session with Delta; a Spark Connect session will do.
    root : str
        Local path or URI of the results root.

    Notes
    -----
    The versions are looked up once, when rows are first requested; :meth:`refresh` looks again. ``date``,
    ``evaluation`` and ``equal`` narrow the rows down: each is a value that the column must have, or a list of values of
    which it must have one. Files of other nights are never opened.
    """

    @overload
    def __init__(self: Results[pa.Table], root: str, /) -> None: ...
    @overload
    def __init__(self: Results[pa.Table], *, root: str) -> None: ...
    @overload
    def __init__(self: Results[DataFrame], spark: SparkSession, root: str) -> None: ...
    def __init__(self, spark: SparkSession | str | None = None, root: str | None = None) -> None:
        super().__init__(spark, root)

    @property
    def plot(self) -> PublishedPlots:
        """Figures: ``plot.history()`` over nights, ``plot.leaderboard()`` and ``plot.forest()`` of one.

        They need the extra ``report``; each is a chart of Altair, to be shown, changed or saved.
        """
        from rankeval_spark.report.notebook import PublishedPlots  # noqa: PLC0415 - scipy takes a moment

        return PublishedPlots(self)

    def latest(self, table: str = schemas.METRICS.name, *, evaluation: str | None = None, **equal: Values) -> Frame:
        """Rows of a table on the newest night that has means.

        ``evaluation`` must be given only where there are several, here and below.
        """
        night = choose_night(self.nights(), evaluation)
        return self._frame(table, night.date, night.evaluation, equal)

    def leaderboard(self, k: int | None = None, *, date: Day | None = None, evaluation: str | None = None) -> Frame:
        """Models and their means over all users on one night, best first by the first measure.

        Of a measure such as ARP, of which neither side is better, the highest value is first.

        Parameters
        ----------
        k : int, optional
            Only the measures at this cutoff; all of them where left out.
        date : date or str, optional
            The newest night that has means where left out.

        Returns
        -------
        Frame
            ``model_id``, ``n_users`` (the most users that one of these means covers) and a column a measure, named as
            the measure, such as ``nDCG@10``.
        """
        night = self._choose_night(date, evaluation)
        rows = self.arrow(schemas.METRICS.name, **night.named, slice=C.ALL_USERS)
        known = [(one.measure, one.k) for one in self._computed_by(rows, night)]
        wanted = [one for one in known if k in (None, one[1])]
        if not wanted:
            cutoffs = ", ".join(map(str, sorted({cutoff for _, cutoff in known})))
            raise ConfigError(Fault("leaderboard(k=)", str(k), f"a cutoff that was computed: {cutoffs}"))
        names = {one: with_cutoff(*one) for one in wanted}
        board = to_leaderboard(rows, names, is_lower_better=is_lower_better(wanted[0][0]))
        return self._reader.of_arrow(board)

    def history(self, measure: str, *, evaluation: str | None = None, **equal: Values) -> Frame:
        """Follow a mean over nights, oldest first: of all users where ``slice=`` does not say otherwise.

        Parameters
        ----------
        measure : str
            With its cutoff, such as ``"nDCG@10"``.

        Returns
        -------
        Frame
            ``evaluation_date, model_id, slice, slice_value, value, ci_low, ci_high, n_users, is_small, run_id,
            definition``. ``definition`` has the options and policies of the night: values of nights on which it is
            another one do not compare.

        Raises
        ------
        ConfigError
            There is no such evaluation or measure, or no night has such a model.
        """
        night = choose_night(self.nights(), evaluation)
        computed = self._computed([(C.EVALUATION, "=", night.evaluation)])
        label, k = named(measure, [(one.measure, one.k) for one in computed])
        wanted = {C.SLICE: C.ALL_USERS, **equal, C.MEASURE: label, C.K: k}
        if C.MODEL_ID in equal:
            of_all: dict[str, Values] = {C.SLICE: C.ALL_USERS, C.MEASURE: label, C.K: k}
            means = self._scan(self._small, schemas.METRICS.name, None, night.evaluation, of_all)
            require_models(equal[C.MODEL_ID], self._small.arrow(means, [C.MODEL_ID])[C.MODEL_ID].to_pylist())
        rows = self._frame(schemas.METRICS.name, None, night.evaluation, wanted)
        texts = {run: str(one) for run, one in self._definitions(night.evaluation, (label, k)).items()}
        rows = self._reader.with_texts(rows, "definition", texts, key=C.RUN_ID)
        order = [(name, "asc") for name in (C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUE)]
        return self._reader.ordered(rows, columns=HISTORY, order=order)

    def worst_users(
        self, measure: str, *, model_id: str, n: int = 20, date: Day | None = None, evaluation: str | None = None
    ) -> Frame:
        """Users with the lowest values of a model on one night; among equal ones, those with more relevant items first.

        Parameters
        ----------
        measure : str
            With its cutoff, such as ``"nDCG@10"``; it must have values of single users.
        model_id : str
            Name of the model.
        n : int
            Most users that are returned; users without a value are none of them.

        Returns
        -------
        Frame
            ``user_id, value, n_relevant, n_recommended, n_hits``. The value is the mean over the user's lists;
            ``n_recommended`` and ``n_hits`` are sums over them, up to the cutoff.

        Raises
        ------
        ConfigError
            There is no such night, model or measure, or ``n`` is not positive.
        InputError
            The rows of users of that night were deleted.

        Notes
        -----
        Published tables hold no items. What these users were shown is in the log, and for frames in
        ``evaluate(...).ranked_items``.
        """
        given: object = n
        if isinstance(given, bool) or not isinstance(given, Integral) or n < 1:
            raise ConfigError(Fault("n", repr(n), "a whole number, 1 or more"))
        side = self._side(measure, model_id, self._choose_night(date, evaluation))
        order = [(C.VALUE, side.worst), (C.N_RELEVANT, "desc"), (C.USER_ID, "asc")]
        return self._reader.ordered(self._users(side), columns=USERS, order=order, n=n)

    def user_differences(
        self, measure: str, *, model_id: str, against: Day, date: Day | None = None, evaluation: str | None = None
    ) -> Frame:
        """Differences of a model for each user on one night from another night or model, the greatest loss first.

        Parameters
        ----------
        measure : str
            With its cutoff, such as ``"nDCG@10"``; it must have values of single users.
        model_id : str
            Name of the model.
        against : str or date
            ``"previous"`` for the same model on the night before, a date for it on that night, or another model of the
            same night: as in ``rankeval compare``.

        Returns
        -------
        Frame
            ``user_id, value, other_value, delta`` (``value - other_value``), and of both sides ``n_relevant``,
            ``n_recommended`` and ``n_hits``, as :meth:`worst_users` has them. Users of one side alone come last; their
            ``delta`` is NULL.

        Raises
        ------
        ConfigError
            There is no such night, model or measure, or the other night computed it with other options or policies.
        InputError
            The rows of users of a night were deleted.

        Notes
        -----
        Published tables hold no items. What a user was shown is in your log, which the query
        ``docs/queries/items-of-the-worst-users.sql`` joins, and for frames in ``evaluate(...).ranked_items``.
        """
        night = self._choose_night(date, evaluation)
        side = self._side(measure, model_id, night)
        earlier = earlier_night(self.nights(), night, against)
        if earlier == night or (earlier is None and str(against) == model_id):
            raise ConfigError(Fault("against", repr(str(against)), "another model, or another night"))
        if earlier is None:
            other = self._side(measure, str(against), night, argument="against")
        else:
            other = self._side(measure, model_id, earlier)
            definitions = self._definitions(night.evaluation, side.measure)
            own, then = definitions[side.run_id], definitions[other.run_id]
            if own != then:
                name, others = with_cutoff(*side.measure), ", ".join(then.without(own)) or "other settings"
                found = f"{earlier.date}, when {name} was computed with {others}"
                expected = f"as on {night.date}: {', '.join(own.without(then)) or 'without these'}"
                fix = "run one of the nights again with the config of the other"
                raise ConfigError(Fault("against", found, expected, fix))
        paired = self._reader.paired(self._users(side), self._users(other))
        return self._reader.ordered(paired, columns=PAIRED, order=[("delta", side.worst), (C.USER_ID, "asc")])

    def register(self, connection: Any = None, *, schema: str | None = None) -> list[str]:  # noqa: ANN401 - of DuckDB
        """Create views of the tables for plain SQL: ``metrics``, ``latest_metrics``, ``nights`` and more.

        They hold numbers, texts and dates only, and show the tables as they are when they are read: they are not
        pinned. Register again after a run with a measure that is new, and after an upgrade of rankeval-spark.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection, optional
            Where the views are made; it needs DuckDB's extension ``delta``. Left out where there is a session.
        schema : str, optional
            Schema that exists, such as ``analytics`` or ``main.analytics``. Without it the views of a session end with
            the session; those of DuckDB are in the current schema.

        Returns
        -------
        list of str
            Names of the views, with their schema.

        Raises
        ------
        ConfigError
            There are no results at the root, neither a session nor a connection, or the schema is no plain name.
        """
        columns = columns_of(self)
        if self._session is None and connection is None:
            found, fix = "none", "register(duckdb.connect()), or Results(spark, root).register()"
            raise ConfigError(Fault("register(connection=)", found, "a connection of DuckDB", fix))
        dialect = "spark" if connection is None else "duckdb"
        run = connection.execute if self._session is None else self._session.sql
        is_temporary = connection is None and schema is None
        made = views.statements(self._root, dialect, schema=schema, is_temporary=is_temporary, columns=columns)
        for statement in made.values():
            run(statement)
        return list(made)

    def _choose_night(self, date: Day | None, evaluation: str | None) -> ChosenNight:
        """Return the night of a date, by default the newest one with means."""
        return choose_night(self.nights(), evaluation, None if date is None else as_day(date))

    def _side(self, measure: str, model_id: str, night: ChosenNight, *, argument: str = C.MODEL_ID) -> UserSide:
        """Return the values of users under one model on one night; ``argument`` of the user names the model."""
        rows = self.arrow(schemas.METRICS.name, **night.named, columns=[C.MODEL_ID, C.RUN_ID])
        require_models(model_id, rows[C.MODEL_ID].to_pylist(), argument=argument)
        computed = self._computed_by(rows, night)
        columns = {(one.measure, one.k): one.column for one in computed if one.column is not None}
        found = named(measure, list(columns))
        run_id = rows[C.RUN_ID][0].as_py()
        return UserSide(night, model_id, run_id, found, columns[found], is_lower_better(found[0]))

    def _definitions(self, evaluation: str, measure: tuple[str, int]) -> dict[str, RecordedDefinition]:
        """Read how the published runs of an evaluation computed a measure, by the id of the run."""
        columns = [*C.RUN_KEY, "code_version", "measures", "policies"]
        where = [(C.EVALUATION, "=", evaluation), ("status", "=", PUBLISHED)]
        runs = {event[C.RUN_ID]: recorded_definitions(event) for event in self._events(where=where, columns=columns)}
        return {run: found[measure] for run, found in runs.items() if measure in found}

    def _computed_by(self, rows: pa.Table, night: ChosenNight) -> list[Requested]:
        """Return the measures of the run that wrote the rows of a night."""
        run_ids = rows[C.RUN_ID].to_pylist()
        return [one for one, runs in self._computed(night.where).items() if not set(runs).isdisjoint(run_ids)]

    def _users(self, side: UserSide) -> Frame:
        """Read a row a user: the mean over their lists, and counts."""
        evaluation, day = side.night
        equal: dict[str, Values] = {C.MODEL_ID: side.model_id, C.K: side.measure[1]}
        return self._reader.users(
            self._scan(self._reader, schemas.USER_METRICS.name, day, evaluation, equal), side.column
        )


def results_of(spark: SparkSession | None, root: str) -> Results[Any]:
    """Read a root in this process where it can, and by Spark elsewhere."""
    return Results(root) if spark is None or is_native(root) else Results(spark, root)


def columns_of(results: Results[Any]) -> dict[str, list[str]]:
    """Return the current column names by published table; older tables lack some."""
    return {table: results._small.columns(table) for table in (schemas.RUNS.name, *results.table_versions())}


def results_at(spark: SparkSession, root: str, table_versions: Mapping[str, int]) -> Results[DataFrame]:
    """Read the tables as they were, at the versions that an event of ``runs`` names, while they are retained."""
    results = Results(spark, root)
    results._versions = dict(table_versions)
    return results


def choose_night(
    nights: Sequence[tuple[str, date]], evaluation: str | None, day: date | None = None, *, argument: str = "date"
) -> ChosenNight:
    """Return a night of the only or named evaluation, by default its newest; samples count only if named or alone.

    ``nights`` are those with means; ``argument`` of the user has the date. Raises ConfigError if several evaluations
    exist and none is named, or the named one or the date does not exist.
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
    """Return the night to compare with, None if ``against`` is a model; InputError if there is no earlier night."""
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


def require_models(given: Values, models: Collection[str], *, argument: str = C.MODEL_ID) -> None:
    """Raise ConfigError for a model without a row."""
    known = sorted(set(models))
    for name in as_list(given):
        if name not in known:
            raise ConfigError(Fault(argument, repr(name), f"one of: {', '.join(known)}", nearest(str(name), known)))
