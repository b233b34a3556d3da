"""Checks and warnings of inputs: rows that the sums of checks read, and inputs that are hardly what was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_codes, to_numpy
from rankeval_spark.engine.attribution import micros_text
from rankeval_spark.engine.checks import ITEM_FIELDS, NotFiniteVector, first_and_last_id, meets, user_value_checks
from rankeval_spark.errors import Fault, InputError, listed, nearest, warn_user
from rankeval_spark.measures.options import option_text
from rankeval_spark.result_rows.check_rows import SEGMENTS, CheckCount
from rankeval_spark.sums.input_checks import (
    BANDS,
    N_KNOWN,
    ROWS,
    SEGMENT_VALUES,
    VALUE_NAMES,
    VECTORS,
    BandFacts,
    SegmentValues,
    ValueNames,
    VectorLengths,
    tallies_to_rows,
)
from rankeval_spark.sums.input_warnings import least_gain, no_list_left_text, undefined_text
from rankeval_spark.sums.sums import ITEMS

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.in_process.assembly import Usable
    from rankeval_spark.inputs.arrow.reading import Source, Tables
    from rankeval_spark.sums.input_checks import InputChecks


_MAX_NAMED: Final = 10  # models that a warning names


def input_partials(usable: Usable, wanted: InputChecks) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield partial rows of the inputs that workers do not check, with the names of their sums."""
    tables = usable.tables
    for name in ("train", "items", "user_values", "user_weights", *(["segments"] if wanted.is_judged else [])):
        if name in wanted.of_rows:
            checks, table = wanted.of_rows[name], usable.rows_of(name)
            yield ROWS, tallies_to_rows(checks.tallies(table, checks.flag_failures(table)))
    if wanted.has_bands:
        facts = [asdict(fact) for fact in usable.segments_and_facts[1]]
        yield BANDS, pa.RecordBatch.from_pylist(facts, BandFacts.schema)
    if wanted.catalogue is not None and usable.catalogue is not None:  # its rows by item
        codes = to_codes(usable.catalogue[C.ITEM_ID])
        n_rows, none = np.bincount(codes.code, minlength=codes.n_values), np.zeros(codes.n_values, dtype=np.int64)
        cells = [codes.values, to_arrow(none), to_arrow(none), to_arrow(n_rows)]
        yield ITEMS, pa.RecordBatch.from_arrays(cells, [*ITEM_FIELDS, N_KNOWN])
    if wanted.has_vectors and usable.items is not None:
        yield VECTORS, _vector_lengths(usable.items)
    if wanted.texts and tables.segments is not None:
        segments = wanted.of_rows["segments"].usable(tables.segments.table)
        values = ((name, pc.unique(segments[name]).drop_null().to_pylist()) for name in wanted.texts)
        rows = [{"segment": name, "value": value} for name, segment_values in values for value in segment_values]
        yield SEGMENT_VALUES, pa.RecordBatch.from_pylist(rows, SegmentValues.schema)
    if wanted.value_names and tables.user_values is not None:
        rows = [{"name": name} for name in _value_names(tables.user_values)]
        yield VALUE_NAMES, pa.RecordBatch.from_pylist(rows, ValueNames.schema)


def _value_names(source: Source) -> list[str]:
    """List the names of own values that some usable row has."""
    found: list[str] = pc.unique(user_value_checks().usable(source.table)[C.NAME]).to_pylist()
    return found


def check_value_names(tables: Tables, request: Request) -> None:
    """Refuse a measure of an own value that no row has, with the names that rows have; warn where none is read."""
    wanted, source = request.measure_set.user_value_names, tables.user_values
    if source is None:
        return
    known = sorted(_value_names(source))
    if known and not wanted:
        measure = f"UserValue(name={option_text(known[0])})"
        warn_user(f"user_values= is given and not used; measures=[{measure!r}] reads one of: {listed('', known)}")
    absent = [name for name in wanted if name not in known]
    expected = f"a name that rows have: {listed('', known)}" if known else "rows that can be used"
    if absent:
        faults = (Fault("user_values", f"no row named {name!r}", expected, nearest(name, known)) for name in absent)
        raise InputError(*faults)


def _vector_lengths(items: pa.Table) -> pa.RecordBatch:
    """Count the items by the length of their vector; one some of whose numbers are no numbers has none."""
    vectors = combine_chunks(items[C.VECTOR])
    has_vector = to_numpy(pc.is_valid(vectors)) & ~meets(items, NotFiniteVector(C.VECTOR))
    length = to_numpy(pc.list_value_length(vectors), null=0)[has_vector]
    ids = combine_chunks(items[C.ITEM_ID]).filter(to_arrow(has_vector))
    lengths, n_items = (each.tolist() for each in np.unique(length, return_counts=True))
    first = [first_and_last_id(ids, length == each)[0] for each in lengths]
    columns = dict(zip(VectorLengths.schema.names, (lengths, n_items, first), strict=True))
    return pa.RecordBatch.from_pydict(columns, VectorLengths.schema)


def count_left_out(usable: Usable) -> Iterator[CheckCount]:
    """Count the rows that cannot be used, by input and check; none of an input without a usable row."""
    for name, of_input in usable.row_checks.items():
        rows = usable.rows_of(name)
        checks = [replace(check, refuse=None) for check in of_input.checks if check.drops or check.warning]
        flags = replace(of_input, checks=tuple(checks)).flag_failures(rows)
        if name != SEGMENTS and of_input.is_usable(flags).any():
            yield from (CheckCount(name, check.name, int(flags[check.name].sum()), rows.num_rows) for check in checks)


def warn_if_nothing_is_measured(
    metrics: pa.Table, tables: Tables, log: pa.Table, judged: pa.Table, request: Request
) -> None:
    """Warn of inputs with nothing in common: means are 0, NaN or missing. ``log``, ``judged``: usable rows."""
    given = tables.recommendations.table
    if not judged.num_rows:
        found = f"held_out has no rows{' left by own_item' if tables.held_out.table.num_rows else ''}"
    elif log.num_rows:
        is_alone = bool(_find_absent_models(tables, request.measure_set.other_models))
        found = next(_find_reasons(metrics, log, judged, request, is_alone=is_alone), "")
    elif _find_absent_models(tables, request.models or ()):
        return  # they have a warning of their own
    elif given.num_rows and request.policies.own_item != "keep":
        others = " and unknown_items" if request.policies.unknown_items == "drop" else ""
        found = f"no recommended item is left by own_item{others}"
    elif given.num_rows:
        found = "no recommended item is in the catalogue, and unknown_items drops all others"
    else:
        found = f"recommendations have no row{' of a model' if C.MODEL_ID in given.column_names else ''}"
    if found:
        warn_user(f"nothing is measured: {found}; see .checks")


def _find_reasons(
    metrics: pa.Table, log: pa.Table, judged: pa.Table, request: Request, *, is_alone: bool
) -> Iterator[str]:
    """Yield the reasons why no user has a value, or why all values are 0, by the ids and gains of both inputs.

    ``is_alone``: whether a model that a measure compares with has no row, which has a warning of its own.
    """
    rows = metrics.filter((pc.field(C.SLICE) == C.ALL_USERS) & pc.field("n_missing").is_valid())
    if not rows.num_rows:  # measures of all lists together need no judgement
        return
    population = request.policies.population
    has_users, is_all_zero = pc.max(rows["n_users"]).as_py() > 0, not pc.max(pc.abs(rows["value"])).as_py()
    if not is_all_zero and population == "run":
        return  # of users that need no judgement
    if unmatched := _unmatched_ids_text(log, judged):
        yield unmatched
    if pc.min(rows["n_missing"]).as_py() == pc.count_distinct(judged[C.USER_ID]).as_py():
        yield no_list_left_text(request) or "no user of held_out has a list"
    least = least_gain(request)
    if is_all_zero and least is not None:
        relevant, largest = judged.filter(pc.greater_equal(judged[C.GAIN], least)), pc.max(judged[C.GAIN]).as_py()
        if not relevant.num_rows:
            yield f"no user has a relevant judgement (a gain of at least {least:g}; the largest is {largest:g})"
        elif population in ("truth", "intersection") and not _has_common_id(C.USER_ID, log, relevant):
            yield "no user with a relevant judgement has a list"
    if not has_users and not is_alone:
        times = (log[C.RECOMMENDED_AT], judged[C.INTERACTED_AT]) if request.policies.is_attributed else ()
        spans = [" to ".join(dict.fromkeys(map(_moment_text, pc.min_max(each).values()))) for each in times]
        where = ", of lists of {} and interactions of {}".format(*spans) if spans else undefined_text(request)
        yield f"no user has a value{where}"
    if has_users and is_all_zero and not _has_common_id(C.ITEM_ID, log, judged):
        yield "no item of held_out is in a list; ids of both tables have to match"


def warn_of_absent_models(tables: Tables, request: Request) -> None:
    """Warn of models without a row in the log that are expected or that measures compare with."""
    lost = dict.fromkeys(
        [
            *_find_absent_models(tables, request.models or ()),
            *_find_absent_models(tables, request.measure_set.other_models),
        ]
    )
    if lost:
        known = sorted(filter(None, pc.unique(tables.recommendations.table[C.MODEL_ID]).to_pylist()))
        warn_user(
            f"recommendations have no row of {', '.join(map(repr, lost))}, which models= or a measure names; "
            f"the log has: {', '.join(known[:_MAX_NAMED])}"
        )


def _find_absent_models(tables: Tables, names: Sequence[str]) -> list[str]:
    """Return the models without a row in a log that has models."""
    log = tables.recommendations.table
    if not names or C.MODEL_ID not in log.column_names or not log.num_rows:
        return []
    known = set(pc.unique(log[C.MODEL_ID]).to_pylist())
    return [name for name in names if name not in known]


def warn_of_unread_times(tables: Tables) -> None:
    """Warn of rows whose time is NULL or could not be read: attribution leaves them out."""
    for source, name in ((tables.recommendations, C.RECOMMENDED_AT), (tables.held_out, C.INTERACTED_AT)):
        times = source.table[name]
        if times.null_count:
            warn_user(
                f"{source.name}: {times.null_count:,} of {len(times):,} rows have no time that can be read in {name!r} "
                "and are left out; expected timestamps, text such as '2026-01-31 05:00:00', or seconds since 1970 "
                "(pandas.to_datetime reads other forms and units)"
            )


def warn_of_merged_lists(log: Source) -> None:
    """Warn of a log without ids of lists in which users were shown lists at several times: they would be one list."""
    if C.LIST_ID in log.given:
        return
    keys = [name for name in (C.MODEL_ID, C.USER_ID) if name in log.table.column_names]
    users = log.table.group_by(keys).aggregate([(C.RECOMMENDED_AT, "min"), (C.RECOMMENDED_AT, "max")])
    is_several = pc.not_equal(users[f"{C.RECOMMENDED_AT}_min"], users[f"{C.RECOMMENDED_AT}_max"])
    n_several = pc.sum(is_several).as_py()
    if not n_several or log.table.group_by([*keys, C.RECOMMENDED_AT]).aggregate([]).num_rows * 2 > log.table.num_rows:
        return  # one time of each list, or times of single items
    warn_user(
        "recommendations have no column 'list_id', so all rows of a user are one list, but "
        f"{n_several:,} of {len(users):,} have several times in recommended_at; name the lists in list_id, "
        "such as by a copy of recommended_at"
    )


def _has_common_id(name: str, log: pa.Table, judged: pa.Table) -> bool:
    """Return True if an id of the judgements is in the log."""
    ids = pc.unique(judged[name]).drop_null()
    return bool(pc.any(pc.is_in(log[name], value_set=ids.cast(log[name].type))).as_py())


def _unmatched_ids_text(log: pa.Table, judged: pa.Table) -> str:
    """Write that no user of the judgements, or no list that they name, is in the log; nothing where one is."""
    if not _has_common_id(C.USER_ID, log, judged):
        return "no user of held_out has a list; ids of both tables have to match"
    if C.LIST_ID not in judged.column_names:
        return ""
    parts = ((table[C.USER_ID].cast(pa.string()), table[C.LIST_ID]) for table in (log, judged))
    listed, named = (pc.unique(pc.binary_join_element_wise(*part, "\0")) for part in parts)
    if pc.any(pc.is_in(named, value_set=listed)).as_py():
        return ""
    judged_id, log_id = (pc.min(table[C.LIST_ID]).as_py() for table in (judged, log))
    return f"no list of held_out is in the log; ids of lists are compared as text, such as {judged_id!r} and {log_id!r}"


def _moment_text(time: pa.Scalar) -> str:
    """Write a timestamp in UTC; "no time" for NULL."""
    return micros_text(time.value) if time.is_valid else "no time"
