"""The report of a published night: which rows it needs of a results root, and the file that it is written to."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.night_plan import plan_again
from rankeval_spark.apps.published.comparison import compare_two_best
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.engine.arrays import combine_chunks
from rankeval_spark.engine.buckets import is_drawn
from rankeval_spark.engine.planning import build_outputs
from rankeval_spark.errors import ConfigError, InputError, warn_user
from rankeval_spark.measures import MeasureSet, with_cutoff
from rankeval_spark.report.explanation import Explanation
from rankeval_spark.report.figures.precision_recall import columns_of, find_spots
from rankeval_spark.report.figures.users import KEY, column_of
from rankeval_spark.report.night import MAX_NIGHTS, Night, chosen_run
from rankeval_spark.report.page import report
from rankeval_spark.report.tables import ReportTables, empty_table, keep, rows_of, to_arrow
from rankeval_spark.result_rows.trace_rows import LIST, PART
from rankeval_spark.results import results_of
from rankeval_spark.results.journal import COMMITS
from rankeval_spark.results.published_results import DELETED
from rankeval_spark.results.table_scans import DamagedResultsError
from rankeval_spark.sums import sums
from rankeval_spark.sums.published import PublishedLists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.results import Results
    from rankeval_spark.schemas import Schema

MAX_USERS: Final = 10_000
"""Users whose values are read; of more, a sample is drawn. Figures have bins, so that more would look the same."""

MAX_LISTS: Final = 2_000_000
"""Lists of a night among which those of examples are looked for, in a second or two."""

_NIGHT: Final = (C.EVALUATION, C.EVALUATION_DATE)


def report_of(
    root: str,  # local path or URI of the results root
    *,
    evaluation: str | None = None,
    day: date | None = None,
    baseline: str | None = None,
    hides_users: bool = False,  # leave out all ids of users
) -> str:
    """Return the report of a night of a results root as HTML, chosen as by :func:`report.page.report`."""
    results = results_of(root)
    tables = report_tables(results, evaluation=evaluation, day=day, baseline=baseline)
    tables = _add_best_pair(root, tables, Night(tables, evaluation=evaluation, day=day, baseline=baseline))
    tables = _add_contributions(root, tables)
    tables = without_user_ids(tables) if hides_users else tables
    return report(tables, evaluation=evaluation, day=day, baseline=baseline)


def without_user_ids(tables: ReportTables) -> ReportTables:
    """Number the users in place of their ids, and leave out texts that can name one: sample keys and errors."""
    users, examples, checks, runs = tables.user_metrics, tables.examples, tables.checks, tables.runs
    codes = combine_chunks(users[C.USER_ID]).dictionary_encode().indices.cast(pa.string())
    places = pc.binary_join_element_wise("user", examples["place"].cast(pa.string()), " ")
    none = pa.nulls(runs.num_rows, runs.schema.field("error").type)
    return replace(
        tables,
        user_metrics=_replace(users, C.USER_ID, codes),
        examples=_replace(examples, C.USER_ID, places),
        checks=_replace(checks, "sample_keys", pa.array([[]] * checks.num_rows, pa.list_(pa.string()))),
        runs=_replace(runs, "error", none),
    )


def _replace(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def report_tables(
    results: Results[Any], *, evaluation: str | None = None, day: date | None = None, baseline: str | None = None
) -> ReportTables:
    """Read the rows of a night for its report, and the rows over all users of earlier nights.

    Raises InputError without such a night; ConfigError if an evaluation has to be named, or nothing has that baseline.
    """
    runs = _read_events(results)
    run = chosen_run(runs.select([*_NIGHT, "status", "recorded_at", "n_rows"]), evaluation=evaluation, day=day)
    name, day = str(run[C.EVALUATION]), run[C.EVALUATION_DATE]
    if not _has_commit(runs):
        return ReportTables.without_rows(runs)
    days = [night for of_night, night in results.nights() if of_night == name and night <= day][-MAX_NIGHTS:]
    before = [earlier for earlier in days if earlier != day]

    def read(schema: Schema, days: Sequence[date] = (), **wanted: str) -> pa.Table:
        """Read the night, and what is wanted of earlier days; damaged ones are left out with a warning."""
        of_night = _read(results, schema, evaluation=name, date=day)
        try:
            earlier = _read(results, schema, evaluation=name, date=days, **wanted) if days else of_night.slice(0, 0)
        except DamagedResultsError as error:
            for fault in error.faults:
                warn_user(f"an earlier night is left out: {fault}")
            whole = sorted(set(days) - {damaged for _, damaged in error.nights})
            earlier = _read(results, schema, evaluation=name, date=whole, **wanted)
        return pa.concat_tables([of_night, earlier], promote_options="default")

    since = pc.greater_equal(runs[C.EVALUATION_DATE], pa.scalar(min([*days, day]), pa.date32()))
    tables = ReportTables(
        runs=keep(runs.filter(since), **{C.EVALUATION: name}),
        metrics=read(schemas.METRICS, before, **{C.SLICE: C.ALL_USERS}),
        group_metrics=read(schemas.GROUP_METRICS),
        comparisons=read(schemas.COMPARISONS),
        gates=read(schemas.GATES, before),
        checks=read(schemas.CHECKS),
        user_metrics=empty_table(schemas.USER_METRICS),
    )
    night = Night(tables, evaluation=name, day=day, baseline=baseline)
    tables = _add_users(results, tables, night)
    return _add_changes(results, tables, night, with_cutoff(*night.first)) if before and night.first else tables


def _read_events(results: Results[Any]) -> pa.Table:
    """Read the events of all runs, up to the versions that are read; again if a run published meanwhile."""
    while True:
        runs = to_arrow(results.refresh().runs())
        if not _has_commit(runs):
            return runs
        commits = keep(runs.select(["status", "recorded_at", "table_versions"]), status=COMMITS)
        *_, newest = rows_of(commits, ("table_versions",), recorded_at=pc.max(commits["recorded_at"]).as_py())
        if newest["table_versions"] == results.table_versions():
            return runs


def _has_commit(runs: pa.Table) -> bool:
    return bool(keep(runs.select(["status"]), status=COMMITS).num_rows)


def _read(results: Results[Any], schema: schemas.Schema, **wanted: Any) -> pa.Table:  # noqa: ANN401 - those of `arrow`
    """Read rows of a table; none of one that an older version did not publish."""
    is_there = schema.name in results.table_versions()
    return results.arrow(schema.name, **wanted) if is_there else empty_table(schema)


def _add_users(results: Results[Any], tables: ReportTables, night: Night) -> ReportTables:
    """Add rows of single users: the columns and cutoffs that are drawn, of a sample where there are many users."""
    table = schemas.USER_METRICS.name
    wanted: dict[str, Any] = {"evaluation": night.evaluation, "date": night.day}
    gone = results.deleted(**wanted).get((night.evaluation, night.day), ())
    if schemas.EXAMPLES.name in gone:
        tables = replace(tables, no_examples=f"No examples: {DELETED}. Run the date again to have them.")
    if not night.metrics.num_rows or table in gone or table not in results.table_versions():
        return tables
    examples = _read(results, schemas.EXAMPLES, **wanted)
    n_users = pc.max(night.means["n_users"]).as_py() or 0
    share = min(1.0, MAX_USERS / n_users) if n_users else 1.0
    ks = {C.WHOLE_LIST, *(k for _, k in night.headlines)} & {*night.metrics[C.K].to_pylist()}
    scan = results.scan(table, **wanted, k=sorted(ks))
    of_measures = [
        *columns_of(find_spots(night.means)),
        *filter(None, (column_of(label) for label, _ in night.headlines)),
    ]
    named = dict.fromkeys([*_NIGHT, *KEY, C.K, C.N_RELEVANT, C.N_RECOMMENDED, *of_measures])
    users = _read_sample(scan, [name for name in named if name in scan.schema.names], share)
    return replace(tables, user_metrics=users, user_share=share, examples=examples)


def _add_changes(results: Results[Any], tables: ReportTables, night: Night, measure: str) -> ReportTables:
    """Add what changed the headline measure since the night before, or why that cannot be said."""
    wanted: dict[str, Any] = {"evaluation": night.evaluation, "date": night.day, "user_share": tables.user_share}
    try:
        return replace(tables, night_changes=results.what_changed(measure, **wanted))
    except (ConfigError, InputError, DamagedResultsError) as error:
        return replace(tables, no_changes=f"No comparison with the night before. {error.faults[0]}.")


def _add_best_pair(root: str, tables: ReportTables, night: Night) -> ReportTables:
    """Add the comparison of the two best models from their users, if the night did not make it and has the users."""
    if night.first is None or not tables.user_metrics.num_rows or "has_support" not in night.metrics.column_names:
        return tables
    of_night = published_nights(root, evaluation=night.evaluation, dates=[night.day])[0]
    of_all = night.gates, rows_of(night.means), night.pairs, night.baseline
    return replace(tables, best_pair=compare_two_best(root, of_night, night.first, *of_all))


def _add_contributions(root: str, tables: ReportTables) -> ReportTables:
    """Add to the examples how the values come about, and what each item adds, where the published lists tell it."""
    examples = tables.examples
    if not examples.num_rows:
        return tables
    first = examples.slice(0, 1).to_pylist()[0]
    of_night: dict[str, Any] = {"evaluation": first[C.EVALUATION], "date": first[C.EVALUATION_DATE]}
    (night,) = published_nights(root, evaluation=of_night["evaluation"], dates=[of_night["date"]])
    asked = (first[C.MEASURE], first[C.K])
    measure = next((each for each in night.measures.per_list if (each.label, each.k) == asked), None)
    results = results_of(root)
    if measure is None or {*measure.needs} - {C.HIT_SCORES} or not night.has_lists or results.deleted(**of_night):
        return tables
    request = plan_again(night, night.config, MeasureSet.of([measure])).request.copy_with(slices=())
    lists = PublishedLists(build_outputs(request, averages_lists=False, has_judged_lists=False), ())
    totals = sums.ListTotals(lists, {sums.TRACES: sums.Traces(measure)})
    keys = {(row[C.USER_ID], row["listed_by"]) for row in examples.to_pylist()}
    users, models = (pa.array(sorted({key[place] for key in keys})) for place in range(2))
    is_shown = pc.field(C.USER_ID).isin(users) & pc.field(C.MODEL_ID).isin(models)
    published = results.scan(schemas.LISTS.name, **of_night)
    if published.count_rows() > MAX_LISTS:
        return tables
    batches = published.filter(is_shown).to_batches(columns=lists.columns)
    found = sums.finish_sums(totals.sums, [*totals.add(batches)])[sums.TRACES]
    shown = examples.select([C.USER_ID, "listed_by", C.LIST_ID, C.RANK, C.ITEM_ID, C.TITLE]).to_pylist()
    ranks = [tuple(row.values())[:4] for row in shown]
    items = {rank: row[C.ITEM_ID] for rank, row in zip(ranks, shown, strict=True)}
    titles = {row[C.ITEM_ID]: row[C.TITLE] for row in shown if row[C.TITLE]}
    by_list, added = dict[tuple[str, ...], list[dict[str, Any]]](), dict[tuple[Any, ...], float]()
    for row in found.to_pylist():
        of_list = row[C.USER_ID], row[C.MODEL_ID], row[C.LIST_ID]
        if row[PART] == LIST:
            row[C.ITEM_ID] = items.get((*of_list, row[C.RANK]))
            added |= {(*of_list, row[C.RANK]): row["contribution"]} if row[C.GAIN] else {}
        by_list.setdefault(of_list, []).append(row)
    explained = [
        Explanation(measure, pa.Table.from_pylist(rows, found.schema), request.policies, titles)
        for rows in by_list.values()
    ]
    places = {of_list: number for number, of_list in enumerate(by_list)}
    terms = pa.array([added.get(rank) for rank in ranks], pa.float64())
    numbers = pa.array([places.get(rank[:3]) for rank in ranks], pa.int64())
    examples = examples.append_column("contribution", terms).append_column("explained", numbers)
    return replace(tables, examples=examples, explained=explained)


def _read_sample(scan: Any, columns: list[str], share: float) -> pa.Table:  # noqa: ANN401 - a dataset
    """Read the rows of the users with the lowest hashes, up to a share; no other than ``--sample-users`` draws from."""
    if share >= 1:
        return scan.to_table(columns=columns)
    names = [scan.schema.field(name) for name in columns]
    batches = scan.to_batches(columns=columns)
    kept = (batch.filter(pa.array(is_drawn(batch[C.USER_ID], share))) for batch in batches)
    return pa.Table.from_batches(kept, schema=pa.schema(names))
