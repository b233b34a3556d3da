"""Results of earlier runs: always whole runs, at the versions that the newest commit of ``runs`` names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from importlib import import_module
from numbers import Integral
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Generic, Self, cast, overload

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.loading import read_recorded, recorded_values
from rankeval_spark.config.requested_measures import recall_own, recorded_definitions
from rankeval_spark.config.slicing import ReportedSlices
from rankeval_spark.errors import (
    ConfigError,
    Fault,
    InputError,
    InvalidCallError,
    first_fault,
    in_words_of_calls,
    listed,
    nearest,
    visible,
    warn_user,
)
from rankeval_spark.measures import MeasureSet, group_statistics, with_cutoff
from rankeval_spark.report.defaults import find_measure, is_lower_better
from rankeval_spark.report.result_table import ResultTable
from rankeval_spark.result_rows.metric_rows import note_partial_means, to_leaderboard
from rankeval_spark.result_rows.night_change_rows import (
    BY_GROUPS,
    BY_USERS,
    COUNTS as USER_COUNTS,
    SHARES,
    NightChanges,
    count_inputs,
)
from rankeval_spark.results import journal, views
from rankeval_spark.results.filters import (
    NAMES,
    Day,
    Days,
    Names,
    Values,
    absent_names,
    as_day,
    as_list,
    choose_night,
    conditions_of,
    cutoffs_of,
    earlier_night,
    nights_in,
    of_nights,
    require_models,
    require_nights,
)
from rankeval_spark.results.journal import COMMITS, MAINTAINED, MAINTAINING, PUBLISHED
from rankeval_spark.results.readers import ArrowReader, require_whole
from rankeval_spark.results.roots import normalise, storage_at
from rankeval_spark.results.table_scans import DamagedResultsError, Requested, to_rows
from rankeval_spark.spark.version import require_spark
from rankeval_spark.wording import count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.config.requested_measures import RecordedDefinition
    from rankeval_spark.report.explanation import Explanation
    from rankeval_spark.report.notebook import PublishedPlots
    from rankeval_spark.report.pairs import ModelComparison
    from rankeval_spark.results.journal import Event
    from rankeval_spark.results.readers import Reader
    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.results.table_scans import Filters

Frame = TypeVar("Frame", default=Any)  # `ResultTable` without Spark, `pyspark.sql.DataFrame` with it
Deleted = dict[tuple[str, date], frozenset[str]]  # names of tables by evaluation and date

OF_USERS: Final = ("lists", "user_metrics", "examples")
"""Tables that name users: ``rankeval maintain --keep-days`` deletes their old nights."""

DELETED: Final = "deleted by rankeval maintain --keep-days"
FIX: Final = "its metrics, comparisons, gates and checks are kept; run the date again to have its users back"
CHANGE_COLUMNS: Final = (
    *(C.EVALUATION_DATE, "earlier_date", C.MODEL_ID, C.SLICE, C.SLICE_VALUE, C.MEASURE, C.K, *USER_COUNTS),
    *(C.VALUE, "earlier_value", "delta", "ci_low", "ci_high", *BY_USERS, *BY_GROUPS, *SHARES, "is_small"),
)
MAX_NAMES: Final = 8  # of models, and of measures, in one line
COUNTS: Final = (C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS)


@dataclass(frozen=True)
class UserSide:
    """The values of users under one model on one night, of one measure at one cutoff."""

    night: NightKey
    model_id: str
    run_id: str  # the run that wrote them
    measure: tuple[str, int]  # label and cutoff of the measure
    column: str  # column of the measure in `user_metrics`
    worst: str  # sort order from the worst value


@in_words_of_calls
class Results(Generic[Frame]):
    """The results of earlier runs, pinned: another run may publish meanwhile, these rows do not change.

    ``Results(root)`` reads in this process, in which there need not be Spark, and gives tables of
    :class:`rankeval_spark.ResultTable`.
    ``Results(root, spark)`` gives DataFrames of a root that the session reaches, too.

    Parameters
    ----------
    root : str or PathLike
        Local path or URI of the results root.
    spark : SparkSession, optional
        Session with Delta; a Spark Connect session will do.

    Notes
    -----
    The versions are looked up once, when rows are first requested; :meth:`refresh` looks again. ``date``,
    ``evaluation`` and ``equal`` narrow the rows down: each is a value that the column must have, or a list of values of
    which it must have one. Files of other nights are never opened. A measure may have its cutoff, as in
    ``measure="nDCG@10"``.

    A name that no published row has (of a model, a slice and its value, a measure, a cutoff, a run) raises ConfigError
    with the nearest one. So does a date or an evaluation that is not published. A name that only other nights
    have finds no row, and a warning says on which nights there are some. For this the names are read first.
    """

    _is_of_user = True  # this package reads plain Arrow, also rows that need not be there, and says what is missing

    @overload
    def __init__(self: Results[ResultTable], root: str | PathLike[str]) -> None: ...
    @overload
    def __init__(self: Results[DataFrame], root: str | PathLike[str], spark: SparkSession) -> None: ...
    def __init__(self, root: object, spark: SparkSession | None = None) -> None:
        if not isinstance(root, str | PathLike):
            expected = (
                "the results root of earlier runs, as Results('/data/results') or Results('/data/results', spark)"
            )
            raise InvalidCallError(
                Fault("Results(root=)", "none" if root is None else f"a {type(root).__name__}", expected)
            )
        self._session = spark
        self._root = normalise(fspath(root))
        self._storage = storage_at(self._root)
        self._small = ArrowReader(self._storage)
        reader: Reader[Any, Any] = self._small
        if spark is not None:
            require_spark()
            from rankeval_spark.results.spark_reader import SparkReader  # noqa: PLC0415 - imports pyspark

            reader = SparkReader(spark, self._root)
        self._reader: Reader[Any, Frame] = reader
        self._versions: Mapping[str, int] | None = None
        self._history = pa.table({})

    def __repr__(self) -> str:
        """Return the nights, models and measures; the newest night is read for it, without Spark."""
        return "\n".join([f"Results of {self._root}", *self._describe()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<div>{escape(line)}</div>" for line in self._describe())
        return f"<div><b>Results</b> of {escape(self._root)}{lines}</div>"

    def _describe(self) -> list[str]:
        """Return a line an evaluation: its nights, and models and measures of the newest; or why there are none."""
        try:
            lines, newest = list[str](), dict[str, list[date]]()
            for name, day in self.nights():
                newest.setdefault(name, []).append(day)
            for name, days in newest.items():
                where = of_nights(days[-1], name)
                means = self._small.scan(
                    schemas.METRICS.name, version=self._version_of(schemas.METRICS.name), where=where
                )
                models = sorted({*self._small.arrow(means, [C.MODEL_ID])[C.MODEL_ID].to_pylist()})
                measures = list(dict.fromkeys(with_cutoff(fact.measure, fact.k) for fact in self._computed(where)))
                nights = f"{days[0]} to {days[-1]}, {len(days):,} nights" if len(days) > 1 else str(days[0])
                said = [
                    f"{count(len(some), what)}: {_first(some)}"
                    for what, some in (("model", models), ("measure", measures))
                ]
                lines.append(visible(f"{name}: {nights}; {'; '.join(said)}"))
        except (InputError, ConfigError, DamagedResultsError) as error:
            return [first_fault(str(error))]
        return lines or ["no night has means"]

    def refresh(self) -> Self:
        """Look up again which versions are published; return self."""
        self._versions = None
        return self

    def runs(self, *, date: Days = None, evaluation: Names = None) -> Frame:
        """Every event of every run, those of failed and running ones included.

        Events of damaged files are left out, and a warning names the files with their nights.
        """
        where = of_nights(date, evaluation)
        if where and self._is_of_user:
            events = journal.event_table(self._small, columns=C.RUN_KEY, is_lenient=True)
            require_nights(nights_in(events), date, evaluation)
        try:
            self._small.scan(schemas.RUNS.name, where=where)
        except DamagedResultsError:  # found on a local disk, whoever reads it; Spark cannot leave out a file
            events = self._small.arrow(self._small.readable_events(where))
            return self._show(self._reader.from_arrow(events), schemas.RUNS.name)
        return self._show(self._reader.frame(self._reader.scan(schemas.RUNS.name, where=where)), schemas.RUNS.name)

    def lists(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a list: ranks and gains of its hits; ``equal`` are columns and the value they must have."""
        return self._frame("lists", date, evaluation, equal)

    def user_metrics(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a list and cutoff, a column a measure; NULL where undefined *or* not requested."""
        return self._frame("user_metrics", date, evaluation, equal)

    def metrics(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a model, slice, measure and cutoff; of all nights without ``date``.

        ``equal`` are columns and their values, such as ``measure="nDCG@10"``, ``slice="country"``.
        """
        return self._frame("metrics", date, evaluation, equal)

    def group_metrics(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a model, slice and statistic of its groups; none without slices and item slices."""
        return self._frame("group_metrics", date, evaluation, equal)

    def comparisons(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a model against a baseline, by slice, measure, cutoff and test; none where nothing was compared.

        ``test="t"`` are the paired rows, ``"unpaired"`` those of an A/B test, ``"pooled"`` those over several nights.
        """
        return self._frame("comparisons", date, evaluation, equal)

    def gates(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a rule for a model on a slice, with the verdict in a sentence; none where there is no rule.

        Of all nights without ``date``.
        """
        return self._frame("gates", date, evaluation, equal)

    def checks(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row a check of an input."""
        return self._frame("checks", date, evaluation, equal)

    def examples(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """One row an item of a list of the users who win or lose most; none without ``results.examples``."""
        return self._frame("examples", date, evaluation, equal)

    def user_values(self, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Frame:
        """Long view of :meth:`user_metrics`: a row a list, measure and cutoff that its run computed.

        ``value`` is NULL only where the measure is undefined. Of all nights without ``date``.
        """
        cutoffs = self._cutoffs(equal)
        if self._is_of_user and cutoffs:
            self._require_names("user_metrics", date, evaluation, equal)
        equal.pop(C.MEASURE, None)
        wide = self._scan(self._reader, "user_metrics", date, evaluation, equal)
        if set(wide.schema.names) <= set(schemas.USER_METRICS.field_names()):
            raise self._nothing_published()
        requested = {
            asked: runs
            for asked, runs in self._computed(of_nights(date, evaluation)).items()
            if asked.column is not None
            and (not cutoffs or (asked.measure in cutoffs and asked.k in (cutoffs[asked.measure] or [asked.k])))
        }
        values = self._reader.user_values(wide, requested, [*C.RUN_KEY, *C.LIST_KEY, C.K])
        return self._show(values, "user_values")

    def published(self, table: str) -> Frame:
        """Whole published table, by name."""
        return self._frame(table, None, None, {})

    def scan(self, table: str, *, date: Days = None, evaluation: Names = None, **equal: Values) -> Any:  # noqa: ANN401 - a dataset of Arrow, whose classes have no types, or a DataFrame
        """Rows of a table that are not read yet, for more of them than fit into memory.

        Returns
        -------
        pyarrow.dataset.Dataset or DataFrame
            DuckDB, Polars and pandas take the dataset; ``to_batches()`` reads it piece by piece.
        """
        return self._scan(self._reader, table, date, evaluation, equal)

    def arrow(
        self,
        table: str,
        *,
        date: Days = None,
        evaluation: Names = None,
        columns: Sequence[str] | None = None,
        **equal: Values,
    ) -> pa.Table:
        """Rows of a small table as Arrow, with a session too; all columns where none is named."""
        return self._small.arrow(self._scan(self._small, table, date, evaluation, equal), columns)

    def nights(self, table: str = schemas.METRICS.name) -> list[tuple[str, date]]:
        """Return the evaluations and dates that a table has rows of, oldest first, without reading a row."""
        found = self._small.nights(table, version=self._version_of(table))
        return sorted(found, key=lambda night: (night[1], night[0]))

    def table_versions(self) -> Mapping[str, int]:
        """Delta version of every table as last published."""
        if self._versions is None:
            is_known = ("status", "in", (PUBLISHED, MAINTAINING, MAINTAINED))
            columns = [*C.RUN_KEY, "status", "n_rows", "table_versions"]
            events = journal.event_table(self._small, columns=columns, where=[is_known], is_lenient=True)
            commits = events.filter(pc.field("status").isin(COMMITS))
            if not commits.num_rows:
                raise self._nothing_published()
            versions = journal.last_versions(commits)
            require_whole(self._storage, versions, is_opened_here=self._session is None)
            self._versions = versions
            self._history = events.filter(pc.field("recorded_at") <= commits["recorded_at"][-1])
            names = (self._history[name].to_pylist() for name in (C.EVALUATION, "status", C.RUN_ID))
            newest = {name: run for name, status, run in zip(*names, strict=True) if status == PUBLISHED}
            for event in self._published_events([(C.RUN_ID, "in", [*newest.values()])], (C.RUN_ID, "measures")):
                recall_own(event)
        return self._versions

    def deleted(self, *, date: Days = None, evaluation: Names = None) -> Deleted:
        """Nights whose rows of single users were deleted by ``rankeval maintain --keep-days``, with the tables.

        As of the versions that are read: a night that was run again since is not among them.
        """
        self.table_versions()
        history = self._history
        if not pc.any(pc.equal(history["status"], MAINTAINED)).as_py():
            return {}
        events = to_rows(history.select([*C.RUN_KEY, "status", "n_rows"]))
        for name, how, value in of_nights(date, evaluation):
            events = [event for event in events if event[name] in (value if how == "in" else (value,))]
        return _deleted(events)

    def _computed(self, where: Filters) -> dict[Requested, set[str]]:
        """Return the measures of published runs in the order requested, with their runs."""
        found: dict[Requested, set[str]] = {}
        for event in self._published_events(where, (C.RUN_ID, "measures")):
            for fact in event["measures"] or ():
                of = Requested(fact[C.MEASURE], fact[C.K], fact["column"])
                found.setdefault(of, set()).add(event[C.RUN_ID])
        return found

    def _published_events(self, where: Filters, columns: Sequence[str]) -> Sequence[Event]:
        published = [*where, ("status", "=", PUBLISHED)]
        return to_rows(journal.event_table(self._small, columns=columns, where=published, is_lenient=True))

    def _frame(self, table: str, date: Days, evaluation: Names, equal: Mapping[str, Values]) -> Frame:
        return self._show(self._reader.frame(self._scan(self._reader, table, date, evaluation, equal)), table)

    def _show(
        self,
        frame: Frame,
        name: str,
        comparisons: pa.Table | None = None,
        *,
        is_ordered: bool = False,
        notes: Sequence[str] = (),
    ) -> Frame:
        """Return a frame as it is handed out: a ResultTable to users without a session."""
        if not self._is_of_user or not isinstance(frame, pa.Table):
            return frame
        shown: Any = ResultTable(frame, name, comparisons=comparisons, is_ordered=is_ordered, notes=notes)
        return cast("Frame", shown)

    def _scan(
        self, reader: Reader[Any, Any], table: str, date: Days, evaluation: Names, equal: Mapping[str, Values]
    ) -> Any:  # noqa: ANN401 - as `scan`
        version = self._version_of(table)
        if self._is_of_user:
            self._require_names(table, date, evaluation, equal)
        if date is not None and table in OF_USERS:  # a deleted night is not the same as one without rows
            deleted = self.deleted(date=date, evaluation=evaluation)
            if gone := [night for night, names in deleted.items() if table in names]:
                found, expected = f"no {table}: {DELETED}", f"its {table}"
                raise InputError(*(Fault(f"{name}, {day}", found, expected, FIX) for name, day in gone))
        where = [*of_nights(date, evaluation), *conditions_of(equal, self._cutoffs(equal))]
        return reader.scan(table, version=version, where=where)

    def _cutoffs(self, equal: Mapping[str, Values]) -> dict[str, list[int]]:
        """Return the measures of a filter with the cutoffs that are written; no cutoff stands for all."""
        texts = [] if equal.get(C.MEASURE) is None else as_list(equal[C.MEASURE])
        try:
            return cutoffs_of(texts)
        except ConfigError:  # a measure of your own, which this process does not have
            if not self._is_of_user:
                return cutoffs_of(texts, known=texts)
            labels = {fact.measure for fact in self._computed(())}
            named = {group_statistics.name_of(kind.name, label) for kind in group_statistics.ALL for label in labels}
            return cutoffs_of(texts, known=labels | named)

    def _require_names(self, table: str, date: Days, evaluation: Names, equal: Mapping[str, Values]) -> None:
        """Refuse names that no published row has, and warn of those that only other nights have."""
        night = of_nights(date, evaluation)
        if night and table != schemas.RUNS.name:
            self.table_versions()
            published = self._history.filter(pc.field("status") == PUBLISHED)
            require_nights({*nights_in(published), *self.nights(schemas.METRICS.name)}, date, evaluation)
        source = schemas.METRICS.name if table in OF_USERS else table
        columns = {schema.name: schema.field_names() for schema in schemas.PUBLISHED}.get(source, ())
        given = {name: as_list(value) for name, value in equal.items() if value is not None}
        asked = {name: values for name, values in given.items() if name in NAMES and name in columns}
        if not asked:
            return
        cutoffs = self._cutoffs(equal)
        if cutoffs:
            asked[C.MEASURE] = [*cutoffs]
        names = [*dict.fromkeys([*asked, *([C.K] if any(cutoffs.values()) else [])])]
        version = self._version_of(source)
        where = [*night, *conditions_of({name: equal[name] for name in asked}, cutoffs)]
        rows = self._small.arrow(self._small.scan(source, version=version, where=where), names)
        pairs = {(label, k) for label, ks in cutoffs.items() for k in ks}
        if pairs:
            found = rows.group_by([C.MEASURE, C.K]).aggregate([])
            pairs -= set(zip(*(found[name].to_pylist() for name in (C.MEASURE, C.K)), strict=True))
        if not pairs and all(set(values) <= {*pc.unique(rows[name]).to_pylist()} for name, values in asked.items()):
            return
        of_evaluation = self._small.scan(source, version=version, where=of_nights(None, evaluation))
        every = self._small.arrow(of_evaluation, [C.EVALUATION_DATE, *names])
        days = {as_day(day) for day in as_list(date)} if date is not None else {*every[C.EVALUATION_DATE].to_pylist()}
        unknown, elsewhere = absent_names(every, asked, cutoffs, days)
        if unknown:
            raise ConfigError(*unknown)
        for fault in elsewhere:
            warn_user(str(fault))
        if not rows.num_rows and not elsewhere:
            together = ", ".join(f"{name}={equal[name]!r}" for name in asked)
            warn_user(f"{table}: no row has {together} together")

    def _version_of(self, table: str) -> int:
        versions = self.table_versions()
        if table in versions:
            return versions[table]
        known = [schema.name for schema in (*schemas.PUBLISHED, schemas.RUNS)]
        if table not in known:
            raise ConfigError(Fault("table", repr(table), f"one of: {listed(table, known)}", nearest(table, known)))
        raise self._nothing_published()

    def _nothing_published(self) -> InputError:
        return InputError(
            Fault(f"results root {self._root}", "no published run", "at least one", "run an evaluation first")
        )

    @property
    def plot(self) -> PublishedPlots:
        """Figures: ``plot.history()`` over nights; ``leaderboard()``, ``forest()`` and ``pr_curve()`` of one.

        They need the extra ``report``. Each is shown without a network, and ``save("figure.png")`` writes it.
        """
        from rankeval_spark.report.notebook import PublishedPlots  # noqa: PLC0415 - scipy takes a moment

        return PublishedPlots(self)

    def latest(self, table: str = schemas.METRICS.name, *, evaluation: str | None = None, **equal: Values) -> Frame:
        """Rows of a table on the newest night that has means.

        ``evaluation`` must be given only where there are several, here and below.
        """
        night = choose_night(self.nights(), evaluation)
        return self._frame(table, night.evaluation_date, night.evaluation, equal)

    def leaderboard(self, k: int | None = None, *, date: Day | None = None, evaluation: str | None = None) -> Frame:
        """Models and their means over all users on one night, best first by the first measure.

        The highest value is first for a measure such as ARP, where neither side is better.

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
        rows = self.arrow(
            schemas.METRICS.name, date=night.evaluation_date, evaluation=night.evaluation, slice=C.ALL_USERS
        )
        known = [(fact.measure, fact.k) for fact in self._computed_by(rows, night)]
        wanted = [pair for pair in known if k in (None, pair[1])]
        if not wanted:
            cutoffs = ", ".join(map(str, sorted({cutoff for _, cutoff in known})))
            raise ConfigError(Fault("leaderboard(k=)", str(k), f"a cutoff that was computed: {cutoffs}"))
        names = {pair: with_cutoff(*pair) for pair in wanted}
        board = to_leaderboard(rows, names, is_lower_better=is_lower_better(wanted[0][0]))
        notes, pairs = note_partial_means(rows, names), self._pairs_of_all(night)
        return self._show(self._reader.from_arrow(board), "leaderboard", pairs, notes=notes)

    def _pairs_of_all(self, night: NightKey) -> pa.Table | None:
        """Read the comparisons of a night over all users, which mark a leaderboard; None where it is not shown."""
        version = self.table_versions().get(schemas.COMPARISONS.name)
        if version is None or self._session is not None:
            return None
        where = [*of_nights(night.evaluation_date, night.evaluation), (C.SLICE, "=", C.ALL_USERS)]
        return self._small.arrow(self._small.scan(schemas.COMPARISONS.name, version=version, where=where))

    def compare(
        self,
        model: str,
        other: str,
        *,
        measure: str | None = None,
        date: Day | None = None,
        evaluation: str | None = None,
    ) -> ModelComparison:
        """Say in a paragraph how two models of one night differ, from the published comparisons.

        Parameters
        ----------
        model, other : str
            The models; the difference is that of the first from the second.
        measure : str, optional
            Such as ``"nDCG@10"``; the first primary measure where left out.
        date : date or str, optional
            The newest night that has means where left out.

        Returns
        -------
        ModelComparison
            As of :meth:`rankeval_spark.Evaluation.compare`.

        Raises
        ------
        ConfigError
            There is no such night or measure, or the night did not compare the two, as ``rankeval compare`` does.
        """
        from rankeval_spark.report import pairs  # noqa: PLC0415 - scipy takes a moment

        night = self._choose_night(date, evaluation)
        where = of_nights(night.evaluation_date, night.evaluation)
        version = self._version_of(schemas.COMPARISONS.name)
        rows = self._small.arrow(self._small.scan(schemas.COMPARISONS.name, version=version, where=where))
        found = pairs.rows_of_pair(rows, model, other)
        if not found:
            compared = rows.group_by([C.MODEL_ID, C.BASELINE_MODEL_ID]).aggregate([]).to_pylist()
            there = sorted(f"{pair[C.MODEL_ID]} and {pair[C.BASELINE_MODEL_ID]}" for pair in compared)
            expected = f"models that {night} compared: {', '.join(there) or 'none'}"
            fix = f"run `rankeval compare --against {other}`"
            raise ConfigError(Fault("compare(model=, other=)", f"{model!r} and {other!r}", expected, fix))
        requested = [(fact.measure, fact.k) for fact in self._computed(where)]
        chosen = pairs.choose_measure(found, requested, measure)
        of_measure = [row for row in found if (row[C.MEASURE], row[C.K]) == chosen]
        return pairs.ModelComparison(of_measure, rows.schema)

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
        label, k = find_measure(measure, [(fact.measure, fact.k) for fact in computed])
        wanted = {C.SLICE: C.ALL_USERS, **equal, C.MEASURE: label, C.K: k}
        if C.MODEL_ID in equal:
            of_all: dict[str, Values] = {C.SLICE: C.ALL_USERS, C.MEASURE: label, C.K: k}
            means = self._scan(self._small, schemas.METRICS.name, None, night.evaluation, of_all)
            require_models(equal[C.MODEL_ID], self._small.arrow(means, [C.MODEL_ID])[C.MODEL_ID].to_pylist())
        rows = self._frame(schemas.METRICS.name, None, night.evaluation, wanted)
        texts = {run: str(definition) for run, definition in self._definitions(night.evaluation, (label, k)).items()}
        rows = self._reader.with_texts(rows, "definition", texts, key=C.RUN_ID)
        key, numbers = (C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUE), (C.VALUE, "ci_low", "ci_high")
        columns = (*key, *numbers, "n_users", "is_small", C.RUN_ID, "definition")
        ordered = self._reader.ordered(rows, columns=columns, order=[(name, "asc") for name in key])
        return self._show(ordered, "history", is_ordered=True)

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
            Most users that are returned; users without a value are left out.

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
        Published tables hold no items: what users were shown is in the log, and in ``evaluate(...).ranked_items``.
        """
        given: object = n
        if isinstance(given, bool) or not isinstance(given, Integral) or n < 1:
            raise ConfigError(Fault("n", repr(n), "a whole number, 1 or more"))
        side = self._side(measure, model_id, self._choose_night(date, evaluation))
        order = [(C.VALUE, side.worst), (C.N_RELEVANT, "desc"), (C.USER_ID, "asc")]
        users = self._reader.ordered(self._users(side), columns=(C.USER_ID, C.VALUE, *COUNTS), order=order, n=n)
        return self._show(users, "worst_users")

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
        Published tables hold no items; ``docs/queries/items-of-the-worst-users.sql`` joins the log for them.
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
            _require_one_definition(side.measure, (night, own), (earlier, then))
        paired = self._reader.paired(self._users(side), self._users(other))
        counts = (name for count in COUNTS for name in (count, f"other_{count}"))
        columns = (C.USER_ID, C.VALUE, f"other_{C.VALUE}", "delta", *counts)
        order = [("delta", side.worst), (C.USER_ID, "asc")]
        return self._show(self._reader.ordered(paired, columns=columns, order=order), "user_differences")

    def what_changed(
        self,
        measure: str,
        *,
        against: Day = "previous",
        date: Day | None = None,
        evaluation: str | None = None,
        user_share: float = 1.0,
    ) -> Frame:
        """Split what changed a mean since an earlier night by users who left, came or stayed, and by slices.

        Parameters
        ----------
        measure : str
            With its cutoff, such as ``"nDCG@10"``; its value must be a mean over users or lists.
        against : str or date
            ``"previous"`` for the night before, or the date of a night.
        user_share : float
            Share of the users that are read, the same on both nights; their means are not those in ``metrics``.

        Returns
        -------
        Frame
            A row a model and slice value, with ``slice`` ``all`` for everyone: ``value``, ``earlier_value`` and
            ``delta``, users of each night and of both, and the parts of ``delta``. ``delta_left + delta_came +
            delta_same`` is the ``delta`` of the row; ``delta_mix + delta_within``, summed over the values of a slice,
            that of everyone. ``share`` is that of the slice value in the users, and ``n_log_rows`` with its neighbours
            are the rows of the inputs. ``docs/comparisons.md`` has the formulas.

        Raises
        ------
        ConfigError
            There is no such night or measure, the measure is no mean, or the nights define it otherwise.
        InputError
            There is no earlier night, its users were deleted, or it measured another share of the users.
        """
        night = self._choose_night(date, evaluation)
        earlier = earlier_night(self.nights(), night, against)
        if earlier is None or earlier == night:
            raise ConfigError(Fault("against", repr(str(against)), "previous, or the date of another night"))
        runs = [self._run_of(each) for each in (night, earlier)]
        own, then = (recorded_definitions(run) for run in runs)
        wanted = find_measure(measure, list(own))
        asked = _require_one_definition(wanted, (night, own[wanted]), (earlier, then.get(wanted))).measure(wanted[1])
        if not asked.is_mean_of_users:
            raise ConfigError(Fault("measure", f"{measure}, which is none", "a mean over users or lists"))
        shares = [run["sample_share"] for run in runs]
        if shares[0] != shares[1]:
            found = f"{shares[0]:g} of the users, and {shares[1]:g} on {earlier.evaluation_date}"
            raise InputError(Fault(str(night), found, "the same share on both nights", "run one of them again"))
        now, before = (read_recorded(recorded_values(run["config"])) for run in runs)
        made = [(), *(tuple(names) for names in now.slices if names in before.slices)]
        reported = ReportedSlices(made, now.slicing.min_slice_size, now.intervals.confidence)
        changes = NightChanges.from_unit(MeasureSet.of([asked]), reported, now.policies.unit)
        from rankeval_spark.sums.published import compare_users  # noqa: PLC0415 - imports the engine

        table = schemas.USER_METRICS.name
        users = [self._scan(self._small, table, each.evaluation_date, each.evaluation, {}) for each in (night, earlier)]
        rows = compare_users(users[0], users[1], changes, share=user_share)
        inputs = count_inputs(*({fact["name"]: fact["n_rows"] for fact in run["inputs"] or ()} for run in runs))
        facts = {C.EVALUATION_DATE: night.evaluation_date, "earlier_date": earlier.evaluation_date, **inputs}
        for name, fact in facts.items():
            kind = pa.int64() if name in inputs else pa.date32()
            rows = rows.append_column(name, pa.array([fact] * rows.num_rows, kind))
        order = [(name, "ascending") for name in (C.SLICE, C.SLICE_VALUE, C.MODEL_ID)]
        found_rows = rows.sort_by(order).select([*CHANGE_COLUMNS, *inputs])
        is_all = pc.equal(found_rows[C.SLICE], C.ALL_USERS)
        changes = pa.concat_tables(map(found_rows.filter, (is_all, pc.invert(is_all))))
        return self._show(self._reader.from_arrow(changes), "what_changed", is_ordered=True)

    def explain(
        self,
        user: object,
        measure: object,
        *,
        model: str | None = None,
        list_id: str | None = None,
        date: Day | None = None,
        evaluation: str | None = None,
    ) -> Explanation:
        """Explain the value of a user's list on one night: the inputs of the night are read again, at their versions.

        Parameters
        ----------
        user : str or int
            Id of the user.
        measure : str
            Any measure that has values of lists and that the inputs of the night allow, such as ``"nDCG@10"``.
        model, list_id : str, optional
            The model and the list, where there are several.
        date : date or str, optional
            The newest night that has means where left out.

        Returns
        -------
        Explanation
            As of :meth:`rankeval_spark.Evaluation.explain`.

        Raises
        ------
        ConfigError
            If there is no such night, user, measure, model or list, or several and none is named.
        InputError
            If an input or its version is gone, lacks what the measure needs, or is read by Spark alone and these
            results have no session.
        """
        night = self._run_of(self._choose_night(date, evaluation))
        which = {"model": model, "list_id": list_id}
        module = import_module("rankeval_spark.apps.published.user_lists")  # reads inputs, and stands above results
        explained: Explanation = module.explain_published(self._session, self._root, night, user, measure, **which)
        return explained

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
        if self._session is None and connection is None:
            found, fix = "none", "register(duckdb.connect()), or Results(root, spark).register()"
            raise ConfigError(Fault("register(connection=)", found, "a connection of DuckDB", fix))
        dialect = "spark" if connection is None else "duckdb"
        run = connection.execute if self._session is None else self._session.sql
        is_temporary = connection is None and schema is None
        made = view_statements(self, dialect, schema=schema, is_temporary=is_temporary)
        for statement in made.values():
            run(statement)
        return list(made)

    def _choose_night(self, date: Day | None, evaluation: str | None) -> NightKey:
        """Return the night of a date, by default the newest one with means."""
        return choose_night(self.nights(), evaluation, None if date is None else as_day(date))

    def _side(self, measure: str, model_id: str, night: NightKey, *, argument: str = C.MODEL_ID) -> UserSide:
        """Return the values of users under one model on one night; ``argument`` of the user names the model."""
        rows = self.arrow(
            schemas.METRICS.name,
            date=night.evaluation_date,
            evaluation=night.evaluation,
            columns=[C.MODEL_ID, C.RUN_ID],
        )
        require_models(model_id, rows[C.MODEL_ID].to_pylist(), argument=argument)
        computed = self._computed_by(rows, night)
        columns = {(fact.measure, fact.k): fact.column for fact in computed if fact.column is not None}
        found = find_measure(measure, list(columns))
        run_id = rows[C.RUN_ID][0].as_py()
        return UserSide(night, model_id, run_id, found, columns[found], "desc" if is_lower_better(found[0]) else "asc")

    def _run_of(self, night: NightKey) -> Event:
        """Return the event of the run that published a night, as of the versions that are read."""
        self.table_versions()
        of_night = pc.field(C.EVALUATION_DATE) == night.evaluation_date
        of_night &= (pc.field(C.EVALUATION) == night.evaluation) & (pc.field("status") == PUBLISHED)
        *_, run_id = self._history.filter(of_night)[C.RUN_ID].to_pylist()
        where = [
            *of_nights(night.evaluation_date, night.evaluation),
            (C.RUN_ID, "=", run_id),
            ("status", "=", PUBLISHED),
        ]
        return to_rows(journal.event_table(self._small, where=where, is_lenient=True))[-1]

    def _definitions(self, evaluation: str, measure: tuple[str, int]) -> dict[str, RecordedDefinition]:
        """Read how the published runs of an evaluation computed a measure, by the id of the run."""
        columns = (*C.RUN_KEY, "code_version", "measures", "policies")
        events = self._published_events([(C.EVALUATION, "=", evaluation)], columns)
        runs = {event[C.RUN_ID]: recorded_definitions(event) for event in events}
        return {run: found[measure] for run, found in runs.items() if measure in found}

    def _computed_by(self, rows: pa.Table, night: NightKey) -> list[Requested]:
        """Return the measures of the run that wrote the rows of a night."""
        run_ids = rows[C.RUN_ID].to_pylist()
        computed = self._computed(of_nights(night.evaluation_date, night.evaluation))
        return [fact for fact, runs in computed.items() if not set(runs).isdisjoint(run_ids)]

    def _users(self, side: UserSide) -> Frame:
        """Read a row a user: the mean over their lists, and counts."""
        day, evaluation = side.night.evaluation_date, side.night.evaluation
        equal: dict[str, Values] = {C.MODEL_ID: side.model_id, C.K: side.measure[1]}
        lists = self._scan(self._reader, schemas.USER_METRICS.name, day, evaluation, equal)
        return self._reader.users(lists, side.column)


def _first(names: Sequence[str]) -> str:
    """Return the first names of a list, and how many others there are."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _require_one_definition(
    measure: tuple[str, int],
    night: tuple[NightKey, RecordedDefinition],
    earlier: tuple[NightKey, RecordedDefinition | None],
) -> RecordedDefinition:
    """Return how two nights computed a measure; ConfigError if not alike."""
    (key, now), (earlier_key, then), name = night, earlier, with_cutoff(*measure)
    if then is None:
        found = f"{earlier_key.evaluation_date}, when {name} was not computed"
        raise ConfigError(Fault("against", found, f"a night with {name}"))
    if now != then:
        others = ", ".join(then.differences_from(now)) or "other settings"
        found = f"{earlier_key.evaluation_date}, when {name} was computed with {others}"
        expected = f"as on {key.evaluation_date}: {', '.join(now.differences_from(then)) or 'without these'}"
        fix = "run one of the nights again with the config of the other"
        raise ConfigError(Fault("against", found, expected, fix))
    return now


def results_of(root: str) -> Results[pa.Table]:
    """Read a root for this package, which says itself which names are missing."""
    results = Results(root)
    results._is_of_user = False
    return results


def view_statements(results: Results[Any], dialect: str, **options: Any) -> dict[str, str]:  # noqa: ANN401 - of `views.statements`
    """Return the statements that make the views of published results, by name, see :func:`views.statements`."""
    users = schemas.USER_METRICS.name
    columns = results._small.scan(users).schema.names if users in results.table_versions() else ()
    return views.statements(results._root, dialect, user_columns=columns, **options)


def results_at(spark: SparkSession, root: str, table_versions: Mapping[str, int]) -> Results[DataFrame]:
    """Read the tables as they were, at the versions that an event of ``runs`` names, while they are retained."""
    results = Results(root, spark)
    results._versions, results._is_of_user = dict(table_versions), False
    return results


def _deleted(events: Iterable[Event]) -> Deleted:
    """Return the deleted tables by night, from events in the order of time: a publish brings all tables back."""
    found: Deleted = {}
    announced: set[str] = set()
    for event in events:
        night = (event[C.EVALUATION], event[C.EVALUATION_DATE])
        if event["status"] == MAINTAINING:
            announced.add(event[C.RUN_ID])
        elif event["status"] == PUBLISHED:
            found.pop(night, None)
        elif event[C.RUN_ID] in announced:  # any other MAINTAINED row is about the versions of tables only
            found[night] = found.get(night, frozenset()) | frozenset(event["n_rows"])
    return found
